/**
 * The list of sentences: sorted, searched, filtered, and loaded as it is scrolled.
 *
 * Rows stay where they are while one works, though certainties change: the list is sorted anew when it is asked for.
 *
 * @typedef {{sentence: number, id: string | null, text: string, certainty: number | null, done: boolean, pins: number,
 *   words: number, errors: number, note: boolean}} Row
 */

import { sentence as inWords } from "./api.js";
import { byId, counted, html, probability, set } from "./dom.js";
import { icon } from "./icons.js";

const PAGE = 50;
const LARGEST = 1000; // the server gives no more at once
const DELAY = 200;
const UPDATE_DELAY = 700;
const SORT_DELAY = 1500;

export class SentenceList {
  /** @type {Row[]} */
  rows = [];
  matches = 0;
  current = -1;
  #filter = "";
  #turn = 0;
  #isLoading = false;
  /** @type {number | undefined} */
  #typing;
  /** @type {number | undefined} */
  #updating;
  /** @type {number | undefined} */
  #sorting;

  /** @param {import("./session.js").Session} session @param {(sentence: number) => void} open */
  constructor(session, open) {
    this.session = session;
    this.open = open;
    this.list = byId("rows");
    this.query = /** @type {HTMLInputElement} */ (byId("query"));
    this.sort = /** @type {HTMLSelectElement} */ (byId("sort"));
    this.found = byId("found");
    this.problem = byId("query-problem");
    this.query.addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => void this.load(), DELAY);
    });
    this.sort.addEventListener("change", () => void this.load());
    for (const button of byId("filters").querySelectorAll("button")) {
      button.addEventListener("click", () => this.#choose(button));
    }
    this.list.addEventListener("click", (event) => {
      const row = event.target instanceof Element ? event.target.closest("button") : null;
      if (row) this.open(Number(row.dataset.sentence));
    });
    new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting) && this.rows.length < this.matches) void this.#more();
    }).observe(byId("rows-end"));
    session.addEventListener("sentence", (event) => {
      if (!(/** @type {CustomEvent} */ (event).detail.isOurs)) this.updateSoon();
    });
    session.addEventListener("reload", () => void this.load(true));
    session.addEventListener("certainty", () => this.#sortSoon());
  }

  /** @param {HTMLButtonElement} button */
  #choose(button) {
    this.#filter = button.dataset.filter ?? "";
    for (const each of byId("filters").querySelectorAll("button")) {
      set(each, "aria-pressed", each === button ? "true" : "false");
    }
    void this.load();
  }

  /** @param {number} offset @param {number} limit */
  #ask(offset, limit) {
    const query = `${this.query.value} ${this.#filter}`.trim();
    return this.session.listing({ query, sort: this.sort.value, offset, limit });
  }

  #loaded() {
    return Math.min(LARGEST, Math.max(PAGE, this.rows.length));
  }

  /** Ask for the list anew. @param {boolean} [stay] keep what was loaded, and the place in it */
  async load(stay = false) {
    const turn = ++this.#turn;
    try {
      const answer = await this.#ask(0, stay ? this.#loaded() : PAGE);
      if (turn !== this.#turn) return;
      this.problem.hidden = true;
      this.rows = answer.rows;
      this.matches = answer.matches;
      this.#draw(0);
      if (!stay) byId("rows-frame").scrollTop = 0;
    } catch (error) {
      if (turn !== this.#turn) return;
      this.problem.textContent = inWords(error);
      this.problem.hidden = false;
    }
  }

  async #more() {
    if (this.#isLoading) return;
    this.#isLoading = true;
    const turn = this.#turn;
    try {
      const answer = await this.#ask(this.rows.length, PAGE);
      if (turn !== this.#turn) return;
      const known = new Set(this.rows.map((row) => row.sentence));
      const start = this.rows.length;
      this.rows.push(...answer.rows.filter((/** @type {Row} */ row) => !known.has(row.sentence)));
      this.matches = this.rows.length === start ? start : answer.matches;
      this.#draw(start);
    } catch {
      // the page says elsewhere that the server is gone
    } finally {
      this.#isLoading = false;
    }
  }

  updateSoon() {
    clearTimeout(this.#updating);
    this.#updating = setTimeout(() => void this.#update(), UPDATE_DELAY);
  }

  /** While the certainties of the sentences become known, they are sorted now and then. */
  #sortSoon() {
    this.#sorting ??= setTimeout(() => {
      this.#sorting = undefined;
      void this.load(true);
    }, SORT_DELAY);
  }

  /** What the rows say may have changed; their order stays. */
  async #update() {
    if (!this.rows.length) return this.load();
    const turn = this.#turn;
    try {
      const answer = await this.#ask(0, this.#loaded());
      if (turn !== this.#turn) return;
      const fresh = new Map(answer.rows.map((/** @type {Row} */ row) => [row.sentence, row]));
      this.rows = this.rows.map((row) => fresh.get(row.sentence) ?? row);
      this.#draw(0);
    } catch {
      // as above
    }
  }

  /** The row of a sentence that was just changed here. @param {import("./session.js").View} view */
  refresh(view) {
    const i = this.rows.findIndex((row) => row.sentence === view.sentence);
    if (i < 0) return;
    this.rows[i] = {
      ...this.rows[i],
      text: view.text,
      certainty: view.certainty,
      done: view.done,
      pins: view.words.filter((word) => word.pinned).length,
      words: view.words.length,
      errors: view.messages.filter((message) => message.level === "error").length,
      note: view.note !== "",
    };
    this.list.children[i]?.replaceWith(this.#row(this.rows[i]));
  }

  /** @param {number} sentence */
  select(sentence) {
    this.current = sentence;
    for (const item of this.list.children) {
      const button = /** @type {HTMLElement} */ (item.firstElementChild);
      const isCurrent = Number(button.dataset.sentence) === sentence;
      set(button, "aria-current", isCurrent ? "true" : null);
      if (isCurrent) item.scrollIntoView({ block: "nearest" });
    }
  }

  /** The next sentence in the list, or the one before; null at the ends. @param {number} way @param {boolean} todo */
  async neighbour(way, todo) {
    let i = this.rows.findIndex((row) => row.sentence === this.current);
    for (;;) {
      i += way;
      if (i >= this.rows.length && this.rows.length < this.matches && way > 0) await this.#more();
      const row = this.rows[i];
      if (!row) return null;
      if (!todo || !row.done) return row.sentence;
    }
  }

  /** @param {number} start */
  #draw(start) {
    if (!start) this.list.replaceChildren();
    this.list.append(...this.rows.slice(start).map((row) => this.#row(row)));
    const total = this.session.overview?.sentences ?? this.matches;
    this.found.textContent =
      this.matches === total
        ? counted(total, "sentence")
        : `${counted(this.matches, "sentence")} of ${total.toLocaleString("en")}`;
  }

  /** @param {Row} row */
  #row(row) {
    const marks = [
      row.errors ? mark("warning", counted(row.errors, "error"), "bad") : null,
      row.note ? html("span", { class: "mark-note", title: "has a note" }, "note") : null,
      row.done ? mark("check", "done", "good") : null,
    ];
    const sure =
      row.certainty === null || row.done
        ? null
        : html(
            "span",
            {
              class: row.certainty < 0.7 ? "share unsure" : "share",
              title: "the probability of its least certain arc",
            },
            probability(row.certainty),
          );
    return html(
      "li",
      {},
      html(
        "button",
        {
          type: "button",
          class: row.done ? "row done" : "row",
          "data-sentence": row.sentence,
          "aria-current": row.sentence === this.current ? "true" : null,
        },
        html("bdi", { class: "row-text", dir: "auto" }, row.text || "(empty)"),
        html(
          "span",
          { class: "row-facts" },
          html("span", { class: "row-number" }, String(row.sentence + 1)),
          `${row.pins}/${row.words} pinned`,
          html("span", { class: "space" }),
          ...marks,
          sure,
        ),
      ),
    );
  }
}

/** @param {string} image @param {string} title @param {string} kind */
function mark(image, title, kind) {
  return html(
    "span",
    { class: `row-mark ${kind}`, title },
    icon(image),
    html("span", { class: "visually-hidden" }, title),
  );
}
