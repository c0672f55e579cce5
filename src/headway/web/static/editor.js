/**
 * The tree editor: a word is selected, and gets a head by dragging, by number, or by moving along the words.
 *
 * @typedef {import("./session.js").View} View
 * @typedef {{kind: "none"} | {kind: "number", digits: string} | {kind: "head", head: number} | {kind: "label"}} Mode
 */

import { Combobox } from "./combobox.js";
import { byId, counted, html } from "./dom.js";
import { timed } from "./timings.js";
import { isUnsure, TreeView } from "./tree.js";

const DRAG_FROM = 6; // pixels: less is a click
const EDGE = 50; // pixels from the edge where dragging scrolls
const SCROLL = 12; // pixels a frame

export class Editor {
  /** @type {Mode} */
  #mode = { kind: "none" };
  /** @type {View | null} */
  #view = null;
  #dragged = false; // the next click belongs to a drag

  /** @param {import("./session.js").Session} session @param {(word: number) => void} selected told of another word */
  constructor(session, selected) {
    this.session = session;
    this.selected = selected;
    this.word = 1;
    this.prompt = byId("prompt");
    this.stage = byId("stage");
    this.tree = new TreeView(byId("tree"), {
      numbers: true,
      onpress: (word, event) => this.#press(word, event),
      onclick: (word) => this.#click(word),
      onarc: (word, event) => {
        this.select(word);
        if (event.detail > 1) this.openLabels();
      },
      onpoint: (word) => {
        if (word && this.tree.grip(word) === document.activeElement && word !== this.word) this.select(word);
      },
    });
    this.labels = new Combobox("Label", { ontake: (label) => this.#takeLabel(label), oncancel: () => this.cancel() });
    this.labelBox = html("div", { class: "label-box", hidden: true }, this.labels.element);
    this.stage.append(this.labelBox);
  }

  /** @param {View} view @param {View | null} before @param {"open" | "changed" | "elsewhere"} why */
  show(view, before, why) {
    this.#view = view;
    if (why !== "changed") this.cancel();
    const last = why === "open" || before?.words.length !== view.words.length ? null : before;
    /** @type {Map<number, "error" | "warning">} */
    const marks = new Map();
    for (const message of view.messages) {
      if (message.word && marks.get(message.word) !== "error") marks.set(message.word, message.level);
    }
    const words = view.words.map((word, i) => ({
      ...word,
      mark: marks.get(word.id) ?? null,
      changed: Boolean(last) && !word.pinned && word.head !== last?.words[i].head,
    }));
    const tree = { words, tokens: view.multiword_tokens, text: view.text };
    const hadFocus = this.tree.svg.contains(document.activeElement);
    if (why === "open") this.word = this.#first(view);
    this.word = Math.max(1, Math.min(this.word, view.words.length));
    this.tree.show(tree, { anchor: why === "open" ? 0 : this.word });
    this.tree.select(this.word);
    if (why === "open") {
      this.tree.scroller.scrollLeft = 0;
      this.tree.focus(this.word);
    } else if (hadFocus) this.tree.focus(this.word);
    this.#resume();
    const moved = words.filter((word) => word.changed).length;
    this.#say(moved ? `${counted(moved, "other word")} moved.` : "");
  }

  /** Where to begin: the first word that is unsure, or the first of all. @param {View} view */
  #first(view) {
    return view.words.find((word) => isUnsure(word))?.id ?? view.words.find((word) => word.head === null)?.id ?? 1;
  }

  /** @param {number} word */
  select(word) {
    if (!this.#view?.words[word - 1]) return;
    const isOther = word !== this.word;
    if (isOther && this.#mode.kind !== "none") this.cancel();
    this.word = word;
    this.tree.select(word);
    if (this.tree.grip(word) !== document.activeElement) this.tree.focus(word);
    else this.tree.reveal(word);
    if (isOther) {
      this.#say("");
      this.selected(word);
    }
  }

  get current() {
    return this.#view?.words[this.word - 1] ?? null;
  }

  /** @param {number} number */
  form(number) {
    return number ? (this.#view?.words[number - 1]?.form ?? "") : "the root";
  }

  // --- changes ---

  /** @param {NonNullable<import("./session.js").Change["edit"]>} edit @param {string} said @param {string} [name] */
  edit(edit, said, name = typeof edit === "function" ? "edit" : edit.action) {
    this.session.change({ path: "edit", edit, said, finish: timed(name) });
  }

  /**
   * A change that depends on what is shown when its turn comes: keys may be faster than the server.
   *
   * @param {string} name
   * @param {string} said
   * @param {(word: import("./session.js").Word) => import("./session.js").Edit | string} make or why not
   */
  #editShown(name, said, make) {
    const { word } = this;
    const made = (/** @type {View} */ view) => {
      const shown = view.words[word - 1];
      const edit = shown ? make(shown) : "There is no such word any more.";
      if (typeof edit !== "string") return edit;
      this.#say(edit);
      return null;
    };
    this.edit(made, said, name);
  }

  /** @param {number} word @param {number} head */
  setHead(word, head) {
    if (head === word) return;
    this.edit({ action: "head", word, head }, `${this.form(word)} under ${this.form(head)}`);
  }

  pin() {
    this.#editShown("head", `${this.form(this.word)} pinned`, ({ id, head }) =>
      head === null ? "This word has no head to pin." : { action: "head", word: id, head },
    );
  }

  unpin() {
    this.#editShown("unpin", `${this.form(this.word)} unpinned`, ({ id, pinned }) =>
      pinned ? { action: "unpin", word: id } : "This word is not pinned.",
    );
  }

  forbid() {
    this.#editShown("forbid", `a head of ${this.form(this.word)} forbidden`, ({ id, head }) =>
      head === null ? "This word has no head to forbid." : { action: "forbid", word: id, head },
    );
  }

  accept() {
    this.edit({ action: "accept" }, "all heads accepted");
  }

  /** @param {boolean} done */
  setDone(done) {
    this.edit({ action: "done", done }, done ? "the sentence done" : "the sentence not done");
  }

  undo() {
    if (this.#view?.can_undo || this.session.isBusy) this.#change("undo");
    else this.#say("There is nothing to undo.");
  }

  redo() {
    if (this.#view?.can_redo || this.session.isBusy) this.#change("redo");
    else this.#say("There is nothing to redo.");
  }

  /** @param {"undo" | "redo"} path */
  #change(path) {
    this.session.change({ path, said: path, finish: timed(path) });
  }

  // --- modes ---

  /** @param {string} text */
  #say(text) {
    this.prompt.textContent = text;
    this.prompt.classList.toggle("asking", false);
  }

  /** @param {string} text */
  #ask(text) {
    this.prompt.textContent = text;
    this.prompt.classList.toggle("asking", true);
  }

  /** Give up what was begun. */
  cancel() {
    const was = this.#mode.kind;
    this.#mode = { kind: "none" };
    this.tree.clear();
    this.labelBox.hidden = true;
    if (was !== "none") this.#say("");
    if (was === "label") this.tree.focus(this.word);
  }

  /** After a redrawing, show again what was begun. */
  #resume() {
    const mode = this.#mode;
    if (mode.kind === "number") this.#showNumber(mode.digits);
    if (mode.kind === "head") this.#showHead(mode.head);
  }

  /** @param {string} digits */
  #showNumber(digits) {
    const head = Number(digits);
    const isWord = head <= (this.#view?.words.length ?? 0) && head !== this.word;
    this.#mode = { kind: "number", digits };
    if (isWord) this.tree.propose(this.word, head);
    else this.tree.clear();
    const name = isWord ? this.form(head) : head === this.word ? "the word itself" : "no such word";
    this.#ask(`Head of ${this.form(this.word)}: ${digits} (${name}). Enter pins it, Esc gives up.`);
  }

  /** @param {number} head */
  #showHead(head) {
    this.#mode = { kind: "head", head };
    this.tree.propose(this.word, head);
    if (head) this.tree.reveal(head);
    this.#ask(
      `Head of ${this.form(this.word)}: ${head} (${this.form(head)}). Arrow keys move, Enter pins it, Esc gives up.`,
    );
  }

  openLabels() {
    const word = this.current;
    if (!word) return;
    if (word.head === null) {
      this.#say("Give the word a head before its label.");
      return;
    }
    this.cancel();
    this.#mode = { kind: "label" };
    this.labelBox.hidden = false;
    const box = this.tree.wordBox(this.word);
    const frame = this.stage.getBoundingClientRect();
    if (box) {
      const x = box.left + box.width / 2 - frame.left - this.labelBox.offsetWidth / 2;
      this.labelBox.style.left = `${Math.max(4, Math.min(x, frame.width - this.labelBox.offsetWidth - 4))}px`;
      this.labelBox.style.top = `${box.bottom - frame.top + 4}px`;
    }
    this.#ask(`Label of ${word.form}: type to narrow the list, Enter takes it, Esc gives up.`);
    this.labels.fill(word.label ?? "", this.session.overview?.labels ?? []);
    this.labels.open();
  }

  /** @param {string} label */
  #takeLabel(label) {
    const word = this.current;
    this.cancel();
    if (!word || !label) return;
    this.edit({ action: "label", word: word.id, label }, `${word.form} as ${label}`);
  }

  /** The next word that is unsure. @param {number} way */
  goToUnsure(way) {
    const words = this.#view?.words ?? [];
    for (let i = 1; i <= words.length; i++) {
      const word = words[(this.word - 1 + way * i + words.length * i) % words.length];
      if (isUnsure(word) || word.head === null) {
        this.select(word.id);
        return;
      }
    }
    this.#say("No word is unsure.");
  }

  /**
   * A key that was not meant for a field; says whether it was taken.
   *
   * @param {KeyboardEvent} event
   * @param {boolean} atTree the focus is in the tree, or nowhere
   */
  key(event, atTree) {
    if (!this.#view?.words.length) return false;
    const { key } = event;
    const mode = this.#mode;
    if (key === "Escape" && mode.kind !== "none") this.cancel();
    else if (/^[0-9]$/.test(key)) this.#showNumber(mode.kind === "number" ? `${mode.digits}${key}`.slice(-4) : key);
    else if (mode.kind === "number" && key === "Backspace") {
      if (mode.digits.length > 1) this.#showNumber(mode.digits.slice(0, -1));
      else this.cancel();
    } else if (key === "Enter" && (mode.kind === "number" || mode.kind === "head")) this.#takeHead(mode);
    else if (mode.kind === "head" && this.#moveHead(mode.head, key)) return true;
    else if (key === "h") this.#showHead(this.current?.head ?? (this.word === 1 ? 2 : 1));
    else if (key === "l") this.openLabels();
    else if (key === "p") this.pin();
    else if (key === "u") this.unpin();
    else if (key === "x") this.forbid();
    else if (key === "a") this.accept();
    else if (key === "n" || key === "N") this.goToUnsure(key === "n" ? 1 : -1);
    else if (atTree && mode.kind === "none" && this.tree.neighbour(this.word, key) !== null) {
      this.select(/** @type {number} */ (this.tree.neighbour(this.word, key)));
    } else return false;
    return true;
  }

  /** @param {Mode} mode */
  #takeHead(mode) {
    const head = mode.kind === "number" ? Number(mode.digits) : mode.kind === "head" ? mode.head : this.word;
    if (head === this.word || head > (this.#view?.words.length ?? 0)) return;
    this.cancel();
    this.setHead(this.word, head);
  }

  /** @param {number} head @param {string} key */
  #moveHead(head, key) {
    if (key === "ArrowUp") {
      this.#showHead(0);
      return true;
    }
    if (key === "ArrowDown" && head === 0) {
      this.#showHead(this.#beside(this.word, "ArrowRight"));
      return true;
    }
    const to = this.#beside(head || this.word, key);
    if (!to) return false;
    this.#showHead(to);
    return true;
  }

  /** The neighbour that is not the word itself. @param {number} from @param {string} key */
  #beside(from, key) {
    const next = this.tree.neighbour(from, key);
    if (next === null) return 0;
    if (next !== this.word) return next;
    const after = this.tree.neighbour(next, key);
    return after === null || after === this.word ? from : after;
  }

  // --- pointers ---

  /** @param {number} word */
  #click(word) {
    if (this.#dragged) {
      this.#dragged = false;
      return;
    }
    if (this.#mode.kind === "head" && word !== this.word) {
      this.cancel();
      this.setHead(this.word, word);
      return;
    }
    this.select(word);
  }

  /** Begin to choose a head by a click or by the arrow keys. */
  chooseHead() {
    this.tree.focus(this.word);
    this.#showHead(this.current?.head ?? (this.word === 1 ? Math.min(2, this.#view?.words.length ?? 1) : 1));
  }

  /** @param {number} word @param {PointerEvent} start */
  #press(word, start) {
    this.#dragged = false;
    /** @type {number | null} */
    let target = null;
    let isDrag = false;
    let [x, y] = [start.clientX, start.clientY];
    let frame = 0;
    const ended = new AbortController();
    const { signal } = ended;
    const follow = () => {
      target = this.tree.at(x, y);
      if (target === null || target === word) this.tree.stretch(word, x, y);
      else this.tree.propose(word, target);
      this.#ask(
        target === null || target === word
          ? `Drag ${this.form(word)} to its head.`
          : `${this.form(word)} under ${this.form(target)}`,
      );
    };
    const scroll = () => {
      const box = this.tree.scroller.getBoundingClientRect();
      const way = x < box.left + EDGE ? -1 : x > box.right - EDGE ? 1 : 0;
      if (way) {
        this.tree.scroller.scrollLeft += way * SCROLL;
        follow();
      }
      frame = requestAnimationFrame(scroll);
    };
    const end = () => {
      ended.abort();
      cancelAnimationFrame(frame);
      if (isDrag) this.cancel();
      this.#say("");
    };
    window.addEventListener(
      "pointermove",
      (event) => {
        if (event.pointerId !== start.pointerId) return;
        [x, y] = [event.clientX, event.clientY];
        if (!isDrag && Math.hypot(x - start.clientX, y - start.clientY) < DRAG_FROM) return;
        if (!isDrag) {
          isDrag = true;
          this.cancel();
          this.select(word);
          frame = requestAnimationFrame(scroll);
        }
        follow();
      },
      { signal },
    );
    window.addEventListener(
      "pointerup",
      (event) => {
        if (event.pointerId !== start.pointerId) return;
        end();
        if (!isDrag) return;
        this.#dragged = true;
        setTimeout(() => (this.#dragged = false));
        if (target !== null && target !== word) this.setHead(word, target);
      },
      { signal },
    );
    window.addEventListener("pointercancel", end, { signal });
    window.addEventListener("keydown", (event) => event.key === "Escape" && isDrag && end(), { signal });
    this.session.addEventListener(
      "view",
      (event) => /** @type {CustomEvent} */ (event).detail.why !== "changed" && end(),
      { signal },
    );
  }
}
