/**
 * A sentence as an SVG tree: words with tags and lemmas below, arcs above, shaded by probability.
 *
 * The view draws and says what was pointed at; what that means is the page's business.
 *
 * @typedef {object} TreeWord
 * @property {number} id
 * @property {string} form
 * @property {string | null} [lemma]
 * @property {string | null} [upos]
 * @property {number | null} head 0 is the root, null unknown
 * @property {string | null} [label]
 * @property {number | null} [probability] of the head
 * @property {boolean} [pinned]
 * @property {boolean} [changed] differs from the tree before
 * @property {"error" | "warning" | null} [mark] something is wrong with the word
 *
 * @typedef {{first: number, last: number, form: string}} Token a multiword token
 * @typedef {{first: number, last: number, cluster: number}} Mention
 * @typedef {{words: TreeWord[], tokens?: Token[], mentions?: Mention[], text: string}} Tree
 *
 * @typedef {object} Choices
 * @property {boolean} [numbers] show the words' numbers
 * @property {boolean} [moves] the arrow keys go from word to word
 * @property {(word: number) => void} [onpoint] the mouse or the focus came to a word; 0: it left
 * @property {(word: number, event: MouseEvent) => void} [onclick] a word was clicked
 * @property {(word: number, event: MouseEvent) => void} [onarc] the arc of a word was clicked
 * @property {(word: number, event: PointerEvent) => void} [onpress] a pointer went down on a word
 */

import { counted, probability, set, svg } from "./dom.js";
import { LABEL_SPACE, layout } from "./layout.js";
import { isRightToLeft, shortened, textWidth } from "./measure.js";

export const UNSURE_BELOW = 0.7; // as in the pictures that headway draws

const [WORD, TAG, LEMMA, LABEL] = [17, 10.5, 12, 12]; // sizes of type
const FIRST_LEVEL = 38; // from the words to the horizontal part of the lowest arcs
const LEVEL = 25;
const CORNER = [20, 16];
const ARROW = [8, 7];
const GAP = 4; // between a label and its own arc
const MARGIN = 12;
const TOP = 8;
const PIN = 14; // room for the mark of a pinned arc, before its label
const LONGEST_FORM = 40; // characters shown
const LEAST_LEVELS = 3; // room for the arcs of alternatives
const LINE = 16; // of what stands below a word
const MENTION_LINE = 7;

/** What an arc's label says. @param {TreeWord} word */
export function arcText(word) {
  const label = shortened(word.label && word.label !== "_" ? word.label : "", LONGEST_FORM);
  return isUnsure(word) ? `${label} ${probability(/** @type {number} */ (word.probability))}`.trim() : label;
}

/** @param {TreeWord} word */
export function isUnsure(word) {
  return !word.pinned && word.head !== null && typeof word.probability === "number" && word.probability < UNSURE_BELOW;
}

/** The word and its arc for those who do not see the picture. @param {TreeWord} word @param {TreeWord[]} words */
export function spoken(word, words) {
  const parts = [`${shortened(word.form, LONGEST_FORM)}, word ${word.id}`];
  if (shown(word.upos)) parts.push(shown(word.upos));
  if (word.head === null) parts.push("no head");
  else parts.push(word.head ? `${word.label ?? "under"} of ${words[word.head - 1]?.form}` : "root");
  if (word.pinned) parts.push("pinned");
  else if (typeof word.probability === "number") parts.push(`probability ${probability(word.probability)}`);
  if (word.mark) parts.push(`has ${word.mark === "error" ? "an error" : "a warning"}`);
  return parts.join(", ");
}

export class TreeView {
  /** @param {HTMLElement} scroller the element that holds the picture, and scrolls @param {Choices} [choices] */
  constructor(scroller, choices = {}) {
    this.scroller = scroller;
    this.choices = choices;
    this.svg = svg("svg", { class: "tree", role: "group" });
    this.arcs = svg("g", { class: "arcs", "aria-hidden": "true" });
    this.below = svg("g", { class: "below", "aria-hidden": "true" });
    this.words = svg("g", { class: "words" });
    this.over = svg("g", { class: "over", "aria-hidden": "true" });
    this.svg.append(this.arcs, this.below, this.words, this.over);
    scroller.append(this.svg);
    /** @type {Tree} */
    this.tree = { words: [], text: "" };
    /** @type {import("./layout.js").Geometry} */
    this.geometry = { words: [], boxes: [], width: 0, levels: 0, arcs: [] };
    this.base = 0; // where words begin and arcs end
    this.current = 1; // the word that Tab goes to
    this.lines = 2; // of text, with the words themselves
    this.#listen();
  }

  /** @param {Tree} tree @param {{anchor?: number}} [options] anchor: a word that stays where it is on the screen */
  show(tree, { anchor = 0 } = {}) {
    const before = anchor ? this.#place(anchor) : null;
    this.tree = tree;
    this.current = Math.min(Math.max(1, this.current), Math.max(1, tree.words.length));
    this.#arrange();
    this.#drawArcs();
    this.#drawWords();
    this.#drawBelow();
    this.clear();
    const after = before === null ? null : this.#place(anchor);
    if (before !== null && after !== null) this.scroller.scrollLeft += after - before;
    this.#shade();
  }

  /** Where everything goes. */
  #arrange() {
    const { words } = this.tree;
    const { numbers } = this.choices;
    const widths = words.map((word) =>
      Math.max(
        14,
        textWidth(shortened(word.form, LONGEST_FORM), WORD),
        textWidth(tagLine(word, numbers), TAG, "500") + 4,
        textWidth(shortened(word.lemma ?? "", LONGEST_FORM), LEMMA, "italic"),
      ),
    );
    /** @type {import("./layout.js").Arc[]} */
    const arcs = [];
    for (const word of words) {
      if (word.head === null || word.head > words.length || word.head === word.id) continue;
      const text = arcText(word);
      const labelWidth = (text ? textWidth(text, LABEL) : 0) + (word.pinned ? PIN : 0);
      arcs.push({ head: word.head, modifier: word.id, labelWidth });
    }
    const rightToLeft = isRightToLeft(words.map((word) => word.form));
    this.geometry = layout(widths, arcs, { margin: MARGIN, rightToLeft });
    this.scroller.dir = rightToLeft ? "rtl" : "ltr";
    this.base = TOP + height(Math.max(LEAST_LEVELS, this.geometry.levels));
    this.lines = 2 + Number(words.some((word) => word.lemma && word.lemma !== "_"));
    this.tokens = this.base + 12 + this.lines * LINE; // y of the lines for multiword tokens
    const tokens = this.tree.tokens?.length ? LINE + 2 : 0;
    this.mentions = this.tokens + tokens + 4; // y of the first line for coreference
    this.rows = rowsOf(this.tree.mentions ?? []);
    const rows = Math.max(0, ...this.rows.map((row) => row + 1));
    const total = this.mentions + rows * MENTION_LINE + 4;
    set(this.svg, "width", Math.ceil(this.geometry.width));
    set(this.svg, "height", Math.ceil(total));
    set(this.svg, "viewBox", `0 0 ${Math.ceil(this.geometry.width)} ${Math.ceil(total)}`);
    set(
      this.svg,
      "aria-label",
      `Dependency tree of ${counted(words.length, "word")}: ${shortened(this.tree.text, 200)}`,
    );
  }

  #drawArcs() {
    const { words } = this.tree;
    this.arcs.replaceChildren(
      ...this.geometry.arcs.map((arc) => {
        const word = words[arc.modifier - 1];
        const d = arcPath(arc, this.base);
        const group = svg(
          "g",
          { class: arcClass(word), "data-word": word.id },
          svg("title", {}, spoken(word, words)),
          svg("path", { class: "hit", d }),
          svg("path", { class: "line", d }),
          svg("polygon", { class: "tip", points: arrow(arc.modifierX, this.base) }),
          ...label(arc, word, this.base),
        );
        if (typeof word.probability === "number") {
          group.style.setProperty("--share", `${Math.round(100 * word.probability)}%`);
        }
        return group;
      }),
    );
  }

  #drawWords() {
    const { words } = this.tree;
    while (this.words.childElementCount > words.length) this.words.lastElementChild?.remove();
    while (this.words.childElementCount < words.length) {
      // What is seen lies below what is pressed and focused, which stays when the word is drawn anew.
      const face = svg("g", { class: "face", "aria-hidden": "true" });
      const grip = svg("rect", { class: "grip", role: "button", rx: 7 });
      this.words.append(svg("g", { "data-word": this.words.childElementCount + 1 }, face, grip));
    }
    words.forEach((word, i) =>
      this.#drawWord(word, this.words.children[i], this.geometry.words[i], this.geometry.boxes[i]),
    );
  }

  /** @param {TreeWord} word @param {Element} group @param {number} x @param {number} width */
  #drawWord(word, group, x, width) {
    const half = width / 2 + 5;
    const box = { x: round(-half), y: 1, width: round(2 * half), height: 10 + this.lines * LINE, rx: 7 };
    const number = this.choices.numbers ? [svg("tspan", { class: "number" }, String(word.id)), " "] : [];
    set(group, "class", `word${word.mark ? ` ${word.mark}` : ""}`);
    set(group, "transform", `translate(${round(x)},${this.base})`);
    const [face, grip] = group.children;
    face.replaceChildren(
      svg("rect", { class: "box", ...box }),
      svg("text", { class: "form", y: 21, "font-size": WORD }, shortened(word.form, LONGEST_FORM)),
      svg("text", { class: "tag", y: 21 + LINE, "font-size": TAG }, ...number, shown(word.upos)),
      svg("text", { class: "lemma", y: 21 + 2 * LINE, "font-size": LEMMA }, shown(word.lemma)),
    );
    if (word.mark) face.append(svg("circle", { class: "mark", cx: round(half - 4), cy: 6, r: 3.5 }));
    for (const [name, value] of Object.entries(box)) set(grip, name, value);
    set(grip, "tabindex", word.id === this.current ? 0 : -1);
    set(grip, "aria-label", spoken(word, this.tree.words));
  }

  /** Multiword tokens and mentions, below the words. */
  #drawBelow() {
    const edges = (/** @type {{first: number, last: number}} */ span) => {
      const ends = [span.first, span.last].map((m) => this.geometry.words[m - 1]);
      const halves = [span.first, span.last].map((m) => this.geometry.boxes[m - 1] / 2);
      return [Math.min(ends[0] - halves[0], ends[1] - halves[1]), Math.max(ends[0] + halves[0], ends[1] + halves[1])];
    };
    const tokens = (this.tree.tokens ?? []).map((token) => {
      const [x, to] = edges(token);
      const y = this.tokens ?? 0;
      const middle = round((x + to) / 2);
      return svg(
        "g",
        { class: "token" },
        svg("path", { d: `M${round(x)},${y - 2} v4 H${round(to)} v-4` }),
        svg("text", { x: middle, y: y + 15, "font-size": LEMMA }, shortened(token.form, LONGEST_FORM)),
      );
    });
    const mentions = (this.tree.mentions ?? []).map((mention, i) => {
      const [x, to] = edges(mention);
      const y = (this.mentions ?? 0) + (this.rows?.[i] ?? 0) * MENTION_LINE;
      return svg(
        "path",
        {
          class: `mention cluster-${mention.cluster % 8}`,
          "data-cluster": mention.cluster,
          d: `M${round(x)},${y} H${round(to)}`,
        },
        svg("title", {}, `mention of cluster ${mention.cluster + 1}`),
      );
    });
    this.below.replaceChildren(...tokens, ...mentions);
  }

  #listen() {
    const wordOf = (/** @type {Event} */ event) => numberOf(event, ".word");
    const { onpoint, onclick, onarc, onpress } = this.choices;
    this.svg.addEventListener("pointerover", (event) => {
      const word = wordOf(event) || numberOf(event, ".arc");
      if (event.pointerType !== "touch" && word) onpoint?.(word);
    });
    this.svg.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") onpoint?.(0);
    });
    this.svg.addEventListener("focusin", (event) => {
      const word = wordOf(event);
      this.#moveTab(word);
      // Not under a pointer that is about to click.
      if (event.target instanceof Element && event.target.matches(":focus-visible")) this.reveal(word);
      onpoint?.(word);
    });
    this.svg.addEventListener("focusout", () => onpoint?.(0));
    this.svg.addEventListener("pointerdown", (event) => {
      if (wordOf(event) && event.button === 0) onpress?.(wordOf(event), event);
    });
    if (onpress) {
      // A finger that went down on a word drags it, and does not scroll; `touch-action` is not enough for shapes.
      const hold = (/** @type {TouchEvent} */ event) => void (wordOf(event) && event.preventDefault());
      this.svg.addEventListener("touchmove", hold, { passive: false });
    }
    this.svg.addEventListener("click", (event) => {
      const [word, arc] = [wordOf(event), numberOf(event, ".arc")];
      if (word) onclick?.(word, event);
      else if (arc) onarc?.(arc, event);
    });
    if (this.choices.moves) this.svg.addEventListener("keydown", (event) => this.#move(event));
    this.scroller.addEventListener("scroll", () => this.#shade(), { passive: true });
    new ResizeObserver(() => this.#shade()).observe(this.scroller);
  }

  /** Fade the sides where the picture goes on. */
  #shade() {
    const { scrollLeft, scrollWidth, clientWidth } = this.scroller;
    const room = scrollWidth - clientWidth;
    const hidden = this.scroller.dir === "rtl" ? room + scrollLeft : scrollLeft; // on the left
    this.scroller.classList.toggle("more-left", hidden > 2);
    this.scroller.classList.toggle("more-right", hidden < room - 2);
  }

  /** The arrow keys go from word to word as they stand on the screen. @param {KeyboardEvent} event */
  #move(event) {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    const to = this.neighbour(this.current, event.key);
    if (to === null) return;
    event.preventDefault();
    this.focus(to);
  }

  /** The word that an arrow key leads to; null for other keys. @param {number} word @param {string} key */
  neighbour(word, key) {
    const way = this.scroller.dir === "rtl" ? -1 : 1;
    const last = this.tree.words.length;
    /** @type {Record<string, number>} */
    const places = { ArrowLeft: word - way, ArrowRight: word + way, Home: 1, End: last };
    return key in places ? Math.min(Math.max(1, places[key]), last) : null;
  }

  /** @param {number} word */
  #moveTab(word) {
    if (!word) return;
    for (const grip of this.words.querySelectorAll(".grip[tabindex='0']")) set(grip, "tabindex", -1);
    this.current = word;
    this.grip(word)?.setAttribute("tabindex", "0");
  }

  /** @param {number} word @returns {SVGGElement | null} */
  element(word) {
    return /** @type {SVGGElement | null} */ (this.words.children[word - 1] ?? null);
  }

  /** What is pressed and focused of a word. @param {number} word @returns {SVGElement | null} */
  grip(word) {
    return this.element(word)?.querySelector(".grip") ?? null;
  }

  /** @param {number} word */
  focus(word) {
    this.grip(word)?.focus({ preventScroll: true });
    this.reveal(word);
  }

  /** Scroll sideways until the word is in sight. @param {number} word */
  reveal(word) {
    const element = this.element(word);
    if (!element) return;
    const [box, frame] = [element.getBoundingClientRect(), this.scroller.getBoundingClientRect()];
    const room = Math.min(60, frame.width / 5);
    if (box.left < frame.left + room) this.scroller.scrollLeft += box.left - frame.left - room;
    else if (box.right > frame.right - room) this.scroller.scrollLeft += box.right - frame.right + room;
  }

  /** @param {number} word */
  #place(word) {
    return this.element(word)?.getBoundingClientRect().left ?? null;
  }

  /** Mark the word that is being worked on; 0 for none. @param {number} word */
  select(word) {
    [...this.words.children].forEach((element, i) => {
      element.classList.toggle("selected", i + 1 === word);
      this.grip(i + 1)?.setAttribute("aria-pressed", i + 1 === word ? "true" : "false");
    });
    this.#moveTab(word);
  }

  /**
   * Bring out one word's arc, and other heads it might have, as ghosts with their probabilities.
   *
   * @param {number} word
   * @param {{head: number, probability: number}[]} alternatives
   */
  point(word, alternatives) {
    this.clear();
    const own = this.tree.words[word - 1];
    if (!own) return;
    this.svg.classList.add("pointing");
    for (const arc of this.arcs.children) arc.classList.toggle("active", numberAt(arc) === word);
    const heads = own.head === null ? alternatives : [{ head: own.head, probability: own.probability ?? 1 }];
    const all = [...heads, ...alternatives.filter((one) => one.head !== own.head)];
    const sides = [
      (/** @type {number} */ head) => head && head < word,
      (/** @type {number} */ head) => head > word,
      (/** @type {number} */ head) => !head,
    ];
    for (const isHere of sides) {
      const side = all
        .filter((one) => isHere(one.head))
        .sort((a, b) => Math.abs(a.head - word) - Math.abs(b.head - word));
      side.forEach((one, i) => this.#drawPossible(own, one, i, side.length));
    }
  }

  /**
   * One of the n possible heads on one side, the i-th nearest.
   *
   * @param {TreeWord} word
   * @param {{head: number, probability: number}} one
   * @param {number} i
   * @param {number} n
   */
  #drawPossible(word, one, i, n) {
    const room = Math.max(LEAST_LEVELS, this.geometry.levels);
    const level = one.head ? 1 + i * Math.min(1, (room - 1) / Math.max(1, n - 1)) : room;
    const isOwn = one.head === word.head;
    const text = `${isOwn ? (word.label ?? "") : ""} ${probability(one.probability)}`.trim();
    const arc = this.#freeArc(word.id, one.head, level, text, n - 1 - i);
    const place = { x: round(arc.labelX), y: round(levelY(arc, this.base) + LABEL * 0.35), "font-size": LABEL };
    const group = svg(
      "g",
      { class: isOwn ? arcClass({ ...word, changed: false }) : "ghost" },
      svg("path", { class: "line", d: arcPath(arc, this.base) }),
      svg("polygon", { class: "tip", points: arrow(arc.modifierX, this.base) }),
      svg("text", { class: "label", ...place }, text),
    );
    group.style.setProperty("--share", `${Math.round(100 * one.probability)}%`);
    this.over.append(group);
  }

  /**
   * An arc that is not in the layout.
   *
   * @param {number} word
   * @param {number} head
   * @param {number} level
   * @param {string} text
   * @param {number} [place] how far from the middle of the word it ends
   * @returns {import("./layout.js").PlacedArc}
   */
  #freeArc(word, head, level, text, place = 0) {
    const way = head ? Math.sign(this.geometry.words[head - 1] - this.geometry.words[word - 1]) : 0;
    const modifierX = this.geometry.words[word - 1] + way * (3 + 7 * place);
    const headX = head ? this.geometry.words[head - 1] - way * 3 : modifierX;
    const labelWidth = text ? textWidth(text, LABEL) : 0;
    return { head, modifier: word, labelWidth, level, headX, modifierX, labelX: (headX + modifierX) / 2 };
  }

  /** Show a head that may be chosen. @param {number} word @param {number} head */
  propose(word, head) {
    const room = Math.max(LEAST_LEVELS, this.geometry.levels);
    const level = head ? Math.min(room, Math.max(1, Math.abs(head - word) / 2)) : room;
    const arc = this.#freeArc(word, head, level, "");
    this.#overlay(word, head, arcPath(arc, this.base), arc.modifierX);
  }

  /** Show an arc that hangs on the pointer. @param {number} word @param {number} clientX @param {number} clientY */
  stretch(word, clientX, clientY) {
    const frame = this.svg.getBoundingClientRect();
    const [x, y] = [clientX - frame.left, Math.min(clientY - frame.top, this.base + 20)];
    const from = this.geometry.words[word - 1];
    const top = Math.min(y, this.base) - 30;
    this.#overlay(
      word,
      -1,
      `M${round(x)},${round(y)} C${round(x)},${round(top)} ${round(from)},${round(top)} ${round(from)},${this.base - ARROW[0]}`,
      from,
    );
  }

  /** @param {number} word @param {number} head @param {string} d @param {number} x */
  #overlay(word, head, d, x) {
    this.clear();
    this.svg.classList.add("choosing");
    this.element(head)?.classList.add("target");
    this.element(word)?.classList.add("source");
    const zone = svg(
      "g",
      { class: head === 0 ? "root-zone target" : "root-zone" },
      svg("rect", { x: 2, y: 2, width: Math.max(0, Math.ceil(this.geometry.width) - 4), height: 24, rx: 6 }),
      svg("text", { x: round(x), y: 18, "font-size": LABEL }, "root"),
    );
    const tip = svg("polygon", { class: "tip", points: arrow(x, this.base) });
    this.over.append(zone, svg("g", { class: "candidate" }, svg("path", { class: "line", d }), tip));
  }

  /** Without ghosts and proposals. */
  clear() {
    this.svg.classList.remove("pointing", "choosing");
    for (const element of this.words.children) element.classList.remove("target", "source");
    this.over.replaceChildren();
  }

  /** The word at a point of the screen; 0 for the root, null for nothing. @param {number} clientX @param {number} clientY */
  at(clientX, clientY) {
    const frame = this.svg.getBoundingClientRect();
    const [x, y] = [clientX - frame.left, clientY - frame.top];
    if (y < 28 && y > -40) return 0;
    if (y < 0 || y > frame.height + 20) return null;
    let [best, distance] = [0, Infinity];
    this.geometry.words.forEach((middle, i) => {
      const away = Math.abs(middle - x) - this.geometry.boxes[i] / 2;
      if (away < distance) [best, distance] = [i + 1, away];
    });
    return distance < 14 ? best : null;
  }

  /** Where a word stands in the scroller's frame. @param {number} word */
  wordBox(word) {
    return this.element(word)?.querySelector(".box")?.getBoundingClientRect() ?? null;
  }
}

/** @param {string | null | undefined} column */
const shown = (column) => (column && column !== "_" ? shortened(column, LONGEST_FORM) : "");

/** @param {TreeWord} word @param {boolean | undefined} numbers */
function tagLine(word, numbers) {
  return `${numbers ? `${word.id} ` : ""}${shown(word.upos)}`;
}

/** @param {TreeWord} word */
function arcClass(word) {
  const kinds = { pinned: word.pinned, unsure: isUnsure(word), changed: word.changed };
  return ["arc", ...Object.entries(kinds).flatMap(([name, holds]) => (holds ? [name] : []))].join(" ");
}

/** How far an arc of this level reaches from the words, with its label. @param {number} level */
const height = (level) => FIRST_LEVEL + (level - 1) * LEVEL + LABEL;

/** @param {{level: number}} arc @param {number} base */
const levelY = (arc, base) => base - FIRST_LEVEL - (arc.level - 1) * LEVEL;

/** @param {number} value */
const round = (value) => Math.round(100 * value) / 100;

/** @param {import("./layout.js").PlacedArc} arc @param {TreeWord} word @param {number} base */
function label(arc, word, base) {
  const text = arcText(word);
  const y = levelY(arc, base);
  const half = arc.labelWidth / 2;
  /** @type {SVGElement[]} */
  const marks = [];
  const beside = word.pinned ? PIN : 0;
  if (text) {
    const x = round(arc.labelX + beside / 2);
    marks.push(svg("text", { class: "label", x, y: round(y + LABEL * 0.35), "font-size": LABEL }, text));
  }
  if (word.pinned) {
    const x = arc.labelX - half;
    marks.push(
      svg("path", {
        class: "pin",
        d: "M3,1 h4 M3.6,1 l-.4,3.4 -1.7,1.8 v.8 h7 v-.8 l-1.7,-1.8 -.4,-3.4 z M5,7 v3.4",
        transform: `translate(${round(x)},${round(y - 5.6)})`,
      }),
    );
  }
  return marks;
}

/**
 * From the head to the modifier, with a gap for the label; both corners stay clear of it.
 *
 * @param {import("./layout.js").PlacedArc} arc
 * @param {number} base
 */
function arcPath(arc, base) {
  const level = levelY(arc, base);
  const stop = base - ARROW[0] + 2;
  const half = arc.labelWidth / 2;
  if (!arc.head) {
    const start = half ? level + LABEL * 0.6 + GAP : level;
    return `M${round(arc.modifierX)},${round(start)} V${stop}`;
  }
  const [from, to] = [arc.headX, arc.modifierX];
  const way = to > from ? 1 : -1;
  const [near, far] = [arc.labelX - way * half, arc.labelX + way * half];
  const least = LABEL_SPACE - GAP;
  const corner = (/** @type {number} */ room) => Math.min(CORNER[0], Math.max(least, room - GAP));
  const [first, second] = [corner(Math.abs(near - from)), corner(Math.abs(to - far))];
  const tall = Math.min(CORNER[1], Math.abs(level - stop));
  const side = level + tall;
  const gap = half ? `H${round(near - way * GAP)} M${round(far + way * GAP)},${round(level)}` : "";
  const rise = `M${round(from)},${base - 1} V${round(side)} ${bend(from, side, from + way * first, level, false)}`;
  const fall = `H${round(to - way * second)} ${bend(to - way * second, level, to, side, true)} V${stop}`;
  return `${rise} ${gap} ${fall}`;
}

/** A quarter of an ellipse. @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 @param {boolean} levelFirst */
function bend(x0, y0, x1, y1, levelFirst) {
  const k = 0.5523;
  const [ax, ay] = levelFirst ? [x0 + k * (x1 - x0), y0] : [x0, y0 + k * (y1 - y0)];
  const [bx, by] = levelFirst ? [x1, y1 - k * (y1 - y0)] : [x1 - k * (x1 - x0), y1];
  return `C${round(ax)},${round(ay)} ${round(bx)},${round(by)} ${round(x1)},${round(y1)}`;
}

/** @param {number} x @param {number} base */
function arrow(x, base) {
  const [length, width] = ARROW;
  const points = [
    [x, base],
    [x - width / 2, base - length],
    [x, base - length * 0.75],
    [x + width / 2, base - length],
  ];
  return points.map((point) => point.map(round).join(",")).join(" ");
}

/** Lines for mentions: those that overlap are below one another. @param {Mention[]} mentions */
function rowsOf(mentions) {
  const order = mentions.map((_, i) => i);
  const size = (/** @type {number} */ i) => mentions[i].last - mentions[i].first;
  order.sort((i, j) => size(i) - size(j) || mentions[i].first - mentions[j].first);
  /** @type {number[]} */
  const rows = new Array(mentions.length).fill(0);
  /** @type {Mention[][]} */
  const taken = [];
  for (const i of order) {
    const one = mentions[i];
    let row = 0;
    while (taken[row]?.some((other) => other.first <= one.last && one.first <= other.last)) row++;
    rows[i] = row;
    (taken[row] ??= []).push(one);
  }
  return rows;
}

/** @param {Event} event @param {string} selector */
function numberOf(event, selector) {
  const found = event.target instanceof Element ? event.target.closest(selector) : null;
  return found ? numberAt(found) : 0;
}

/** @param {Element} element */
const numberAt = (element) => Number(/** @type {SVGElement} */ (element).dataset.word);
