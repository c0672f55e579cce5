/**
 * One sentence of the explore page: its tree, the alternatives of its words, its k best trees, and "what if" pins.
 *
 * @typedef {import("./conllu.js").ParsedSentence} ParsedSentence
 * @typedef {import("./tree.js").Mention} Mention
 *
 * @typedef {object} Around what the page does for its cards
 * @property {(conllu: string, heads: (number | null)[], signal: AbortSignal) => Promise<ParsedSentence>} ask
 * @property {(message: string) => void} tell say something that passes
 * @property {() => void} changed pins or the chosen tree changed
 */

import { isAbort, sentence as inWords } from "./api.js";
import { featuresText, toConllu } from "./conllu.js";
import { counted, html, probability } from "./dom.js";
import { exportMenu } from "./export.js";
import { icon } from "./icons.js";
import { pictureOf } from "./picture.js";
import { timed } from "./timings.js";
import { TreeView } from "./tree.js";

const LEAST_ROW = 0.005; // less probable heads are not in the table
const LEAST_GHOST = 0.02; // nor drawn

/** @type {Record<string, string>} */
const STATUS = {
  EXACT: "Proved: under the model, no tree is more probable.",
  CERTIFIED: "Proved: dual decomposition found a certificate that no tree is better under the model.",
};
const NOT_PROVED = "The search was stopped before it was proved that no tree is better under the model.";

export class SentenceCard {
  /** @type {ParsedSentence | null} what the model says by itself */
  #free = null;
  /** @type {ParsedSentence | null} what it says given the pins */
  #pinned = null;
  /** @type {Map<number, (string | null)[]>} labels of the k best trees, by their place */
  #labels = new Map();
  #key = "";
  #drawn = false;
  #visible = false;
  #waiting = new AbortController();
  /** @type {Mention[]} */
  #mentions = [];
  #picked = 0; // the word whose head is being chosen
  #pointed = 0;

  /** @param {number} number counted from 0 @param {Around} around */
  constructor(number, around) {
    this.number = number;
    this.around = around;
    /** @type {Map<number, number>} heads by word */
    this.pins = new Map();
    this.chosen = 0; // of the k best trees
    this.facts = html("div", { class: "facts" });
    this.tools = html("div", { class: "tools" });
    this.what = html("div", { class: "what-if", hidden: true });
    this.scroller = html("div", { class: "tree-scroll" });
    this.popover = html("div", { class: "word-card", hidden: true });
    this.problem = html("p", { class: "problem", role: "alert", hidden: true });
    this.element = html(
      "article",
      { class: "card sentence", "aria-label": `Sentence ${number + 1}` },
      html("header", {}, this.facts, this.tools),
      this.what,
      this.problem,
      html("div", { class: "stage" }, this.scroller, this.popover),
    );
    this.view = new TreeView(this.scroller, {
      moves: true,
      onpoint: (word) => this.#point(word),
      onclick: (word) => this.#click(word),
      onarc: (word) => this.#click(word),
    });
    this.view.svg.addEventListener("keydown", (event) => this.#onkey(event));
    this.popover.addEventListener("pointerenter", () => this.#stay());
    this.popover.addEventListener("pointerleave", () => this.#leave());
    this.popover.addEventListener("focusin", () => this.#stay());
    this.popover.addEventListener("focusout", () => this.#leave());
  }

  /** What is shown: the free parse, or the one given pins. */
  get shown() {
    return this.#pinned ?? this.#free;
  }

  /** @param {ParsedSentence} data @param {Mention[]} mentions */
  update(data, mentions) {
    const key = JSON.stringify([data, mentions]);
    if (key === this.#key) return;
    const sameWords = this.#free !== null && sameForms(this.#free, data);
    this.#key = key;
    this.#free = data;
    this.#mentions = mentions;
    this.#labels.clear();
    this.#picked = 0;
    this.#hidePopover();
    if (!sameWords) {
      this.pins.clear();
      this.chosen = 0;
    }
    this.chosen = Math.min(this.chosen, Math.max(0, (data.kbest?.length ?? 1) - 1));
    this.#pinned = null;
    this.#drawn = false;
    if (this.pins.size) void this.#decode();
    else this.#draw();
  }

  /** From a link. @param {Map<number, number>} pins @param {number} chosen */
  restore(pins, chosen) {
    const n = this.#free?.words.length ?? 0;
    this.pins = new Map([...pins].filter(([word, head]) => word <= n && head <= n && word !== head));
    this.chosen = chosen;
    if (this.pins.size) void this.#decode();
    else this.#step(chosen);
  }

  /** Draw it now that it is in sight. */
  appear() {
    this.#visible = true;
    this.#draw();
  }

  /** The sentence as it is on the page. @returns {ParsedSentence} */
  result() {
    const shown = /** @type {ParsedSentence} */ (this.shown);
    const tree = this.chosen ? shown.kbest?.[this.chosen] : null;
    if (!tree) return shown;
    const labels = this.#labels.get(this.chosen);
    const words = shown.words.map((word, i) => {
      const head = tree.heads[i];
      if (head === word.head) return word;
      const one = shown.alternatives?.[i]?.find((each) => each.head === head);
      return {
        ...word,
        head,
        label: labels?.[i] ?? null,
        probability: one?.probability ?? null,
        label_probability: null,
      };
    });
    return { ...shown, words, probability: tree.probability };
  }

  #draw() {
    if (!this.#visible || this.#drawn || !this.shown) return;
    this.#drawn = true;
    const result = this.result();
    const free = /** @type {ParsedSentence} */ (this.#free);
    const best = /** @type {ParsedSentence} */ (this.shown);
    const before = this.chosen ? best : free;
    const words = result.words.map((word, i) => ({
      ...word,
      pinned: this.pins.has(word.id),
      changed: word.head !== before.words[i]?.head && !this.pins.has(word.id),
    }));
    this.view.show({ words, tokens: result.multiword_tokens, mentions: this.#mentions, text: result.text });
    this.view.select(this.#picked);
    this.#drawFacts(result);
    this.#drawTools();
    const moved = best.words.filter((word, i) => word.head !== free.words[i]?.head && !this.pins.has(word.id));
    this.#drawPins(moved.length);
  }

  /** @param {ParsedSentence} result */
  #drawFacts(result) {
    const share = result.probability;
    const given = this.pins.size ? ` given the pin${this.pins.size > 1 ? "s" : ""}` : "";
    const facts = [html("span", { class: "number" }, String(this.number + 1))];
    if (typeof share === "number") {
      facts.push(html("span", { class: "fact" }, "tree probability ", html("b", {}, probability(share)), given));
    }
    if (!this.chosen) {
      const isProved = result.status in STATUS;
      const title = STATUS[result.status] ?? NOT_PROVED;
      facts.push(html("abbr", { class: isProved ? "chip proved" : "chip", title }, result.status));
    }
    facts.push(html("span", { class: "fact count" }, counted(result.words.length, "word")));
    this.facts.replaceChildren(...facts);
  }

  #drawTools() {
    const trees = this.shown?.kbest ?? [];
    const held = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.step : undefined;
    const stepper = html(
      "div",
      { class: "stepper", role: "group", "aria-label": "Best trees" },
      this.#stepButton(-1, "Better tree", "left"),
      html("span", { "aria-live": "polite" }, `tree ${this.chosen + 1} of ${trees.length}`),
      this.#stepButton(1, "Next tree", "right"),
    );
    const menu = exportMenu("Export", this.#formats(), this.around.tell);
    this.tools.replaceChildren(...(trees.length > 1 ? [stepper] : []), menu);
    if (held && this.element.contains(this.tools)) {
      /** @type {HTMLElement | null} */ (this.tools.querySelector(`[data-step="${held}"]`))?.focus();
    }
  }

  /** @param {number} way @param {string} title @param {string} image */
  #stepButton(way, title, image) {
    const last = (this.shown?.kbest?.length ?? 1) - 1;
    const button = html("button", {
      type: "button",
      class: "icon-only",
      "aria-label": title,
      "data-step": way,
      "aria-disabled": this.chosen + way < 0 || this.chosen + way > last ? "true" : null,
      onclick: () => this.#step(this.chosen + way),
    });
    button.append(icon(image));
    return button;
  }

  /** @returns {import("./export.js").Format[]} */
  #formats() {
    const file = `tree-${this.number + 1}`;
    return [
      {
        name: "SVG",
        file: `${file}.svg`,
        type: "image/svg+xml",
        text: () => pictureOf(this.view.svg, this.result().text),
      },
      { name: "CoNLL-U", file: `${file}.conllu`, type: "text/plain", text: () => toConllu(this.result()) },
      {
        name: "JSON",
        file: `${file}.json`,
        type: "application/json",
        text: () => `${JSON.stringify(this.result(), null, 1)}\n`,
      },
    ];
  }

  /** @param {number} moved how many words have another head now */
  #drawPins(moved) {
    this.what.hidden = !this.pins.size;
    if (!this.pins.size) return;
    const words = this.#free?.words ?? [];
    const chips = [...this.pins].map(([word, head]) => {
      const said = `${words[word - 1]?.form} under ${head ? words[head - 1]?.form : "the root"}`;
      const button = html("button", {
        type: "button",
        class: "icon-only",
        "aria-label": `Remove the pin: ${said}`,
        onclick: () => this.#unpin(word),
      });
      button.append(icon("close"));
      return html("span", { class: "pin-chip" }, html("bdi", {}, said), button);
    });
    const rest = moved ? `${counted(moved, "other word")} moved.` : "The other words stay where they were.";
    this.what.replaceChildren(
      html("span", { class: "what" }, "What if"),
      ...chips,
      html("span", { class: "moved", role: "status" }, rest),
    );
    if (this.pins.size > 1) {
      this.what.append(
        html("button", { type: "button", class: "small", onclick: () => this.#unpinAll() }, "Remove all"),
      );
    }
  }

  // --- pins ---

  /** @param {number} word @param {number} head */
  #pin(word, head) {
    this.pins.set(word, head);
    void this.#decode(() => this.pins.delete(word));
  }

  /** @param {number} word */
  #unpin(word) {
    this.pins.delete(word);
    void this.#decode();
  }

  #unpinAll() {
    this.pins.clear();
    void this.#decode();
  }

  /** Ask for the best tree given the pins. @param {() => void} [takeBack] if there is no such tree */
  async #decode(takeBack) {
    this.#waiting.abort();
    this.#waiting = new AbortController();
    const { signal } = this.#waiting;
    const free = /** @type {ParsedSentence} */ (this.#free);
    const done = timed("pin");
    this.#picked = 0;
    this.#hidePopover();
    this.problem.hidden = true;
    try {
      if (this.pins.size) {
        const heads = free.words.map((word) => this.pins.get(word.id) ?? null);
        const found = await this.around.ask(toConllu(free, { tree: false }), heads, signal);
        if (signal.aborted) return;
        this.#pinned = merged(free, found);
      } else {
        this.#pinned = null;
      }
    } catch (error) {
      if (isAbort(error)) return;
      takeBack?.();
      this.problem.textContent = inWords(error);
      this.problem.hidden = false;
    }
    this.#labels.clear();
    this.chosen = 0;
    this.#drawn = false;
    this.#draw();
    this.around.changed();
    done(free.words.length);
  }

  // --- the k best trees ---

  /** @param {number} place */
  #step(place) {
    const trees = this.shown?.kbest ?? [];
    if (place < 0 || place >= trees.length) return;
    this.chosen = place;
    this.#drawn = false;
    this.#draw();
    this.around.changed();
    if (place && !this.#labels.has(place)) void this.#label(place, trees[place].heads);
  }

  /** The labels of another tree: those the model gives it. @param {number} place @param {number[]} heads */
  async #label(place, heads) {
    const shown = /** @type {ParsedSentence} */ (this.shown);
    try {
      const found = await this.around.ask(toConllu(shown, { tree: false }), heads, this.#waiting.signal);
      if (this.shown !== shown) return;
      this.#labels.set(
        place,
        found.words.map((word) => word.label),
      );
    } catch (error) {
      if (!isAbort(error)) this.around.tell(inWords(error));
      return;
    }
    if (this.chosen !== place) return;
    this.#drawn = false;
    this.#draw();
  }

  // --- pointing at words ---

  /** @param {number} word 0: at nothing */
  #point(word) {
    if (this.#picked && word && word !== this.#picked) {
      this.view.propose(this.#picked, word);
      return;
    }
    if (!word) {
      this.#leave();
      return;
    }
    this.#stay();
    if (word === this.#pointed) return;
    this.#pointed = word;
    this.view.point(word, this.#alternatives(word));
    this.#drawPopover(word);
  }

  /** @param {number} word @param {number} [least] */
  #alternatives(word, least = LEAST_GHOST) {
    return (this.shown?.alternatives?.[word - 1] ?? []).filter((one) => one.probability >= least);
  }

  /** @type {number | undefined} */
  #leaving;

  #stay() {
    clearTimeout(this.#leaving);
  }

  #leave() {
    clearTimeout(this.#leaving);
    this.#leaving = setTimeout(() => {
      if (this.#picked) this.#showPicked();
      else if (!this.popover.contains(document.activeElement)) this.#hidePopover();
    }, 180);
  }

  #hidePopover() {
    this.#pointed = 0;
    this.popover.hidden = true;
    this.view.clear();
  }

  #showPicked() {
    this.#pointed = this.#picked;
    this.view.point(this.#picked, this.#alternatives(this.#picked));
  }

  /** @param {number} word */
  #drawPopover(word) {
    const shown = this.result();
    const own = shown.words[word - 1];
    const alternatives = this.#alternatives(word, LEAST_ROW);
    const nameOf = (/** @type {number} */ head) => (head ? shown.words[head - 1]?.form : "the root");
    const rows = alternatives.map((one) => {
      const bar = html("span", { class: "bar" });
      bar.style.inlineSize = `${100 * one.probability}%`;
      const pinned = this.pins.get(word) === one.head;
      const said = pinned ? `${nameOf(one.head)} is pinned` : `Pin ${nameOf(one.head)} as the head of ${own.form}`;
      return html(
        "tr",
        { class: one.head === own.head ? "own" : null },
        html(
          "td",
          {},
          html(
            "button",
            {
              type: "button",
              class: "link",
              "aria-label": said,
              disabled: pinned,
              onclick: () => this.#pin(word, one.head),
            },
            html("bdi", {}, nameOf(one.head)),
          ),
        ),
        html("td", { class: "share" }, bar),
        html("td", { class: "value" }, probability(one.probability)),
      );
    });
    const tags = [own.upos, own.xpos !== own.upos ? own.xpos : null, featuresText(own.feats)].filter(
      (part) => part && part !== "_",
    );
    const relation = own.head ? `${own.label ?? "under"} of ${nameOf(own.head)}` : (own.label ?? "root");
    const hint = this.#picked === word ? "Now click its head." : "Click the word, then another, to pin its head.";
    this.popover.replaceChildren(
      html("p", { class: "title" }, html("bdi", {}, own.form), html("span", {}, html("bdi", {}, relation))),
      html("p", { class: "tags" }, tags.join(" · ")),
      rows.length
        ? html(
            "table",
            {},
            html("caption", { class: "visually-hidden" }, `Heads of ${own.form} and their probabilities`),
            html("tbody", {}, ...rows),
          )
        : html("p", { class: "tags" }, "No alternatives are known for this sentence."),
      this.pins.has(word)
        ? html("button", { type: "button", class: "small", onclick: () => this.#unpin(word) }, "Remove the pin")
        : html("p", { class: "hint" }, hint),
    );
    this.popover.hidden = false;
    this.#placePopover(word);
  }

  /** Below the word, and inside the card. @param {number} word */
  #placePopover(word) {
    const box = this.view.wordBox(word);
    const stage = this.popover.parentElement?.getBoundingClientRect();
    if (!box || !stage) return;
    const width = this.popover.offsetWidth;
    const middle = box.left + box.width / 2 - stage.left;
    const x = Math.max(0, Math.min(middle - width / 2, stage.width - width));
    this.popover.style.left = `${x}px`;
    this.popover.style.top = `${box.bottom - stage.top + 6}px`;
  }

  /** @param {number} word */
  #click(word) {
    if (!this.#picked) {
      this.#picked = word;
      this.view.select(word);
      this.#pointed = 0;
      this.#point(word);
      return;
    }
    const picked = this.#picked;
    this.#drop();
    if (word !== picked) this.#pin(picked, word);
  }

  #drop() {
    this.#picked = 0;
    this.view.select(0);
    this.#hidePopover();
  }

  /** @param {KeyboardEvent} event */
  #onkey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const word = this.view.current;
    if (event.key === "Enter" || event.key === " ") this.#click(word);
    else if (event.key === "Escape") this.#drop();
    else if (event.key === "0" && this.#picked) {
      const picked = this.#picked;
      this.#drop();
      this.#pin(picked, 0);
    } else if ((event.key === "Delete" || event.key === "Backspace") && this.pins.has(word)) this.#unpin(word);
    else return;
    event.preventDefault();
  }

  /** A click elsewhere lets the chosen word go. @param {Event} event */
  clickedOutside(event) {
    if (this.#picked && event.target instanceof Node && !this.element.contains(event.target)) this.#drop();
  }
}

/** @param {ParsedSentence} one @param {ParsedSentence} other */
function sameForms(one, other) {
  return one.words.length === other.words.length && one.words.every((word, i) => word.form === other.words[i].form);
}

/**
 * The answer about the words alone, with what is known of their place in the text.
 *
 * @param {ParsedSentence} free
 * @param {ParsedSentence} found
 * @returns {ParsedSentence}
 */
function merged(free, found) {
  const words = found.words.map((word, i) => ({ ...word, offsets: free.words[i]?.offsets ?? null }));
  return { ...found, words, text: free.text, multiword_tokens: free.multiword_tokens };
}
