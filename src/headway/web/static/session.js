/**
 * The annotate page's talk with the server: one sentence at a time, changes one after the other, news from others.
 *
 * A change counts as saved when the server has answered, not before. What was refused or not answered is kept in
 * `unsaved`, and offered again; nothing is sent a second time without being asked.
 *
 * @typedef {{head: number, probability: number}} Alternative
 * @typedef {object} Word
 * @property {number} id
 * @property {string} form
 * @property {string} lemma
 * @property {string} upos
 * @property {string} xpos
 * @property {string} feats
 * @property {string} misc
 * @property {number | null} head
 * @property {string | null} label
 * @property {boolean} pinned
 * @property {number | null} probability
 * @property {number | null} label_probability
 * @property {Alternative[]} alternatives
 *
 * @typedef {{word: number | null, level: "error" | "warning", rule: string, text: string}} Message
 *
 * @typedef {object} View a sentence as GET /api/annotation/sentences/{i} gives it
 * @property {number} sentence
 * @property {string | null} id
 * @property {string} text
 * @property {number} version
 * @property {boolean} done
 * @property {string} note
 * @property {number | null} certainty
 * @property {string | null} status
 * @property {string | null} [problem] why there is no tree
 * @property {Word[]} words
 * @property {{first: number, last: number, form: string}[]} multiword_tokens
 * @property {[number, number][]} forbidden
 * @property {Message[]} messages
 * @property {boolean} can_undo
 * @property {boolean} can_redo
 *
 * @typedef {Record<string, unknown> & {action: string}} Edit
 * @typedef {object} Change
 * @property {"edit" | "undo" | "redo"} path
 * @property {Edit | ((view: View) => Edit | null)} [edit] a function sees the sentence as the changes before left it
 * @property {string} said what it is, for the reader
 * @property {number} [sentence]
 * @property {(words: number) => void} [finish]
 * @typedef {"saved" | "saving" | "unsaved"} Saved
 */

import { ask, CLIENT, Refused, Unreachable } from "./api.js";

const ROOT = "/api/annotation";
const RETRY = 1500; // ms between attempts to reach the server

export class Session extends EventTarget {
  /** @type {any} what GET /api/annotation says */
  overview = null;
  /** @type {View | null} */
  view = null;
  /** @type {Change[]} sent, or waiting for the one before */
  #queue = [];
  /** @type {Change[]} not saved, and offered again */
  unsaved = [];
  isReachable = true;
  /** @type {Promise<void>} */
  #pumping = Promise.resolve();
  #isPumping = false;
  #opening = 0;
  /** @type {EventSource | null} */
  #news = null;
  #isBehind = false;

  /** @returns {Saved} */
  get saved() {
    if (this.unsaved.length || (!this.isReachable && this.#queue.length)) return "unsaved";
    return this.#queue.length ? "saving" : "saved";
  }

  get isBusy() {
    return this.#queue.length > 0;
  }

  async start() {
    await this.refreshOverview();
    this.#listen();
    document.addEventListener("visibilitychange", () => this.#listen());
  }

  async refreshOverview() {
    this.overview = await ask(ROOT);
    this.#tell("overview");
  }

  /** @param {Record<string, string | number>} choices */
  listing(choices) {
    const query = new URLSearchParams(Object.entries(choices).map(([name, value]) => [name, String(value)]));
    return ask(`${ROOT}/sentences?${query}`);
  }

  /** Show another sentence, when the changes to this one are saved. @param {number} sentence */
  async open(sentence) {
    const turn = ++this.#opening;
    await this.#pumping;
    const view = await ask(`${ROOT}/sentences/${sentence}`);
    await this.#pumping; // a change may have been made while this was read
    if (turn !== this.#opening) return;
    this.#answered();
    this.#show(view, "open");
  }

  /** Read this sentence again, unless a change of ours is under way, which will bring it. */
  async reread() {
    const current = this.view;
    if (!current || this.#queue.length) return;
    const view = await ask(`${ROOT}/sentences/${current.sentence}`);
    const now = this.view;
    if (now?.sentence !== view.sentence || this.#queue.length || view.version < (now?.version ?? 0)) return;
    this.#show(view, "elsewhere");
  }

  /** @param {Change} change */
  change(change) {
    if (!this.view) return;
    this.#queue.push({ ...change, sentence: this.view.sentence });
    this.#tell("saving");
    if (!this.#isPumping) this.#pumping = this.#pump();
  }

  /** Try again what was not saved, in the sentence it was meant for. */
  async again() {
    const sentence = this.unsaved[0]?.sentence;
    if (sentence !== undefined && sentence !== this.view?.sentence) await this.open(sentence);
    const changes = this.unsaved;
    this.unsaved = [];
    for (const change of changes) this.change(change);
  }

  forget() {
    this.unsaved = [];
    this.#tell("saving");
  }

  async #pump() {
    this.#isPumping = true;
    while (this.#queue.length && this.view) {
      const [change] = this.#queue;
      if (typeof change.edit === "function") {
        const made = change.edit(this.view);
        if (!made) {
          this.#queue.shift();
          continue;
        }
        change.edit = made;
      }
      try {
        const { sentence, version } = this.view;
        const body = { version, ...(change.edit && { edit: change.edit }) };
        const view = await ask(`${ROOT}/sentences/${sentence}/${change.path}`, { body });
        this.#answered();
        this.#queue.shift();
        this.#show(view, "changed");
        change.finish?.(view.words.length);
      } catch (error) {
        this.#failed(change, error);
      }
    }
    this.#isPumping = false;
    this.#tell("saving");
  }

  /** @param {Change} change @param {unknown} error */
  #failed(change, error) {
    if (error instanceof Refused && error.status === 409) {
      this.unsaved.push(...this.#queue.splice(0));
      if (error.body?.current) this.#show(error.body.current, "elsewhere");
      this.#tell("conflict", error);
    } else if (error instanceof Refused && error.status < 500) {
      this.#queue.shift();
      this.#tell("refused", error);
    } else {
      this.unsaved.push(...this.#queue.splice(0));
      if (error instanceof Unreachable) this.#lost();
      else this.#tell("refused", error);
    }
  }

  /** @param {View} view @param {"open" | "changed" | "elsewhere"} why */
  #show(view, why) {
    const before = this.view;
    this.view = view;
    this.dispatchEvent(new CustomEvent("view", { detail: { view, before, why } }));
  }

  /** @param {string} name @param {unknown} [detail] */
  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  // --- news ---

  /** A window that nobody sees does not listen: a browser has six connections to a server for all its windows. */
  #listen() {
    this.#news?.close();
    if (document.hidden) {
      this.#isBehind = true;
      return;
    }
    const news = new EventSource(`${ROOT}/events?client=${CLIENT}`);
    this.#news = news;
    news.onopen = () => {
      if (!this.isReachable || this.#isBehind) void this.#back();
    };
    news.onmessage = (message) => this.#heard(JSON.parse(message.data));
    news.onerror = () => {
      this.#lost();
      if (news.readyState === EventSource.CLOSED) setTimeout(() => this.#listen(), RETRY);
    };
  }

  /** @param {any} event */
  #heard(event) {
    if (event.kind === "sentence") this.#heardOfSentence(event);
    else if (event.kind === "certainty") this.#tell("certainty", event);
    else if (event.kind === "reload" || event.kind === "model") void this.#quietly(() => this.#readAll());
    else if (event.kind !== "written") void this.#quietly(() => this.refreshOverview());
  }

  /** @param {{sentence: number, version: number, by: string}} event */
  #heardOfSentence({ sentence, version, by }) {
    const isOurs = by === CLIENT;
    const { view } = this;
    if (!isOurs && view?.sentence === sentence && view.version !== version) void this.#quietly(() => this.reread());
    this.#tell("sentence", { sentence, isOurs });
  }

  /** Everything may be different. */
  async #readAll() {
    await this.refreshOverview();
    const last = this.overview.sentences - 1;
    if (this.view && !this.#queue.length && last >= 0) {
      this.#show(await ask(`${ROOT}/sentences/${Math.min(this.view.sentence, last)}`), "elsewhere");
    }
    this.#tell("reload");
  }

  /** What is asked in the background may fail; the connection's own events say so. @param {() => Promise<void>} task */
  async #quietly(task) {
    try {
      await task();
    } catch (error) {
      if (error instanceof Unreachable) this.#lost();
    }
  }

  #lost() {
    if (!this.isReachable) return;
    this.isReachable = false;
    this.#tell("lost");
  }

  #answered() {
    if (this.isReachable) return;
    this.isReachable = true;
    this.#tell("back");
  }

  async #back() {
    await this.#quietly(async () => {
      await this.#readAll();
      this.#isBehind = false;
      this.#answered();
    });
  }

  // --- the file and the model ---

  /** @param {"settings" | "retrain" | "model" | "file"} what @param {Record<string, unknown>} body */
  async command(what, body) {
    try {
      await ask(`${ROOT}/${what}`, { body });
      await this.refreshOverview();
    } catch (error) {
      if (error instanceof Unreachable) this.#lost();
      this.#tell("refused", error);
    }
  }
}
