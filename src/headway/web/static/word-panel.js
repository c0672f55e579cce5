/** The panel of the selected word: its heads, its columns, what can be done with it, and what is wrong with it. */

import { Combobox } from "./combobox.js";
import { byId, html, probability, set } from "./dom.js";
import { icon } from "./icons.js";
import { characters } from "./measure.js";

/** @typedef {import("./session.js").Word} Word */

/** @type {[string, string, string | null][]} column, name, inventory in the overview */
const COLUMNS = [
  ["form", "Form", null],
  ["lemma", "Lemma", null],
  ["upos", "UPOS", "upos"],
  ["xpos", "XPOS", "xpos"],
  ["feats", "FEATS", "feats"],
  ["misc", "MISC", null],
];

export class WordPanel {
  /** @type {Map<string, HTMLInputElement | Combobox>} */
  #fields = new Map();
  /** @type {Word | null} */
  #word = null;
  pinButton = html("button", { type: "button", class: "small", id: "pin" }, "Pin", shortcut("p"));
  unpinButton = html("button", { type: "button", class: "small", id: "unpin" }, "Unpin", shortcut("u"));
  splitter = html("div", { class: "splitter", hidden: true, role: "group", "aria-label": "Where to split the word" });
  newForm = html("input", {
    type: "text",
    "aria-label": "Form of the new word",
    placeholder: "new word",
    autocomplete: "off",
    dir: "auto",
  });
  inserter = html(
    "form",
    { class: "inserter", hidden: true },
    this.newForm,
    html("button", { class: "small" }, "Insert"),
  );

  /** @param {import("./session.js").Session} session @param {import("./editor.js").Editor} editor */
  constructor(session, editor) {
    this.session = session;
    this.editor = editor;
    this.title = byId("word-title");
    this.heads = byId("word-heads");
    this.actions = byId("word-actions");
    this.messages = byId("word-messages");
    this.tools = byId("word-tools");
    const columns = byId("word-columns");
    for (const [column, name, inventory] of COLUMNS) columns.append(this.#field(column, name, inventory));
    columns.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      this.show();
      this.editor.tree.focus(this.editor.word);
      event.stopPropagation();
    });
    this.#buildActions();
    this.#buildTools();
  }

  /** @param {string} column @param {string} name @param {string | null} inventory */
  #field(column, name, inventory) {
    if (inventory) {
      const box = new Combobox(name, { ontake: (value) => this.#set(column, value) });
      this.#fields.set(column, box);
      return html(
        "div",
        { class: "column" },
        html("span", { class: "column-name", "aria-hidden": "true" }, name),
        box.element,
      );
    }
    const input = html("input", { type: "text", autocomplete: "off", spellcheck: "false", dir: "auto" });
    input.addEventListener("change", () => this.#set(column, input.value.trim()));
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) input.blur();
    });
    this.#fields.set(column, input);
    return html("label", { class: "column" }, html("span", { class: "column-name" }, name), input);
  }

  /** @param {string} column @param {string} value */
  #set(column, value) {
    const word = this.#word;
    if (!word || (value || "_") === word[/** @type {keyof Word} */ (column)]) return;
    this.editor.edit(
      { action: "column", word: word.id, column, value },
      `the ${column} of ${word.form} as ${value || "_"}`,
    );
  }

  focusFields() {
    const first = this.#fields.get("form");
    if (first instanceof HTMLInputElement) {
      first.focus();
      first.select();
    }
  }

  #buildActions() {
    const action = (/** @type {string} */ text, /** @type {string} */ key, /** @type {() => void} */ act) =>
      html("button", { type: "button", class: "small", onclick: act }, text, shortcut(key));
    this.pinButton.addEventListener("click", () => this.editor.pin());
    this.unpinButton.addEventListener("click", () => this.editor.unpin());
    this.actions.append(
      this.pinButton,
      this.unpinButton,
      action("Forbid", "x", () => this.editor.forbid()),
      action("Other head", "h", () => this.editor.chooseHead()),
      action("Label", "l", () => this.editor.openLabels()),
    );
  }

  #buildTools() {
    const button = (/** @type {string} */ text, /** @type {() => void} */ act) =>
      html("button", { type: "button", class: "small", onclick: act }, text);
    this.inserter.addEventListener("submit", (event) => {
      event.preventDefault();
      const [word, form] = [this.#word, this.newForm.value.trim()];
      if (!word || !form) return;
      this.editor.edit({ action: "insert", after: word.id, form }, `${form} inserted after ${word.form}`);
      this.newForm.value = "";
      this.inserter.hidden = true;
    });
    this.tools.append(
      html(
        "div",
        { class: "buttons" },
        button("Split…", () => this.#openSplitter()),
        button("Join with next", () => this.#join()),
        button("Insert after…", () => {
          this.inserter.hidden = !this.inserter.hidden;
          if (!this.inserter.hidden) this.newForm.focus();
        }),
        button("Delete", () => this.#delete()),
      ),
      this.splitter,
      this.inserter,
    );
  }

  #join() {
    const word = this.#word;
    if (word)
      this.editor.edit({ action: "join", word: word.id }, `${word.form} joined with ${this.editor.form(word.id + 1)}`);
  }

  #delete() {
    const word = this.#word;
    if (word) this.editor.edit({ action: "delete", word: word.id }, `${word.form} deleted`);
  }

  /** The word's characters, with a button between each two. */
  #openSplitter() {
    const word = this.#word;
    if (!word) return;
    this.splitter.hidden = !this.splitter.hidden;
    const parts = characters(word.form).slice(0, 60);
    if (parts.length < 2) {
      this.splitter.replaceChildren("A word of one character cannot be split.");
      return;
    }
    let at = 0;
    this.splitter.dir = "auto";
    this.splitter.replaceChildren(
      ...parts.flatMap((part, i) => {
        const here = at;
        at += [...part].length; // the server counts code points
        if (!i) return [html("bdi", {}, part)];
        const [before, after] = [parts.slice(0, i).join(""), parts.slice(i).join("")];
        const cut = html("button", {
          type: "button",
          class: "cut",
          "aria-label": `Split into ${before} and ${after}`,
          title: `${before} | ${after}`,
        });
        cut.addEventListener("click", () => {
          this.splitter.hidden = true;
          this.editor.edit(
            { action: "split", word: word.id, at: here },
            `${word.form} split into ${before} and ${after}`,
          );
        });
        return [cut, html("bdi", {}, part)];
      }),
    );
  }

  /** Show the selected word of the sentence that is open. */
  show() {
    const view = this.session.view;
    const word = view?.words[this.editor.word - 1] ?? null;
    byId("word-panel").hidden = !word;
    if (!view || !word) return;
    if (this.#word?.id !== word.id || this.#word.form !== word.form) {
      this.splitter.hidden = true;
      this.inserter.hidden = true;
    }
    this.#word = word;
    const relation =
      word.head === null
        ? "no head"
        : word.head
          ? `${word.label ?? "under"} of ${this.editor.form(word.head)}`
          : (word.label ?? "root");
    this.title.replaceChildren(
      html("span", { class: "number" }, String(word.id)),
      html("bdi", {}, word.form),
      html("span", { class: "relation" }, html("bdi", {}, relation)),
    );
    for (const [column, , inventory] of COLUMNS) {
      const value = String(word[/** @type {keyof Word} */ (column)] ?? "_");
      const field = this.#fields.get(column);
      const shown = value === "_" && column !== "form" ? "" : value;
      if (field instanceof Combobox) field.fill(shown, this.session.overview?.[inventory ?? ""] ?? []);
      else if (field && document.activeElement !== field) field.value = shown;
    }
    set(this.pinButton, "aria-disabled", word.pinned || word.head === null ? "true" : null);
    set(this.unpinButton, "aria-disabled", word.pinned ? null : "true");
    this.#showHeads(
      word,
      view.forbidden.filter(([, modifier]) => modifier === word.id).map(([head]) => head),
    );
    const own = view.messages.filter((message) => message.word === word.id);
    this.messages.replaceChildren(...own.map(messageItem));
  }

  /** @param {Word} word @param {number[]} forbidden */
  #showHeads(word, forbidden) {
    const possible = word.alternatives.filter((one) => !forbidden.includes(one.head));
    const none = html("li", { class: "none" }, "The model says nothing about this word.");
    this.heads.replaceChildren(
      ...(possible.length ? possible.map((one) => this.#possible(word, one)) : [none]),
      ...forbidden.map((head) => this.#forbidden(word, head)),
    );
  }

  /** A head to choose, or to forbid. @param {Word} word @param {import("./session.js").Alternative} one */
  #possible(word, one) {
    const isShown = one.head === word.head;
    const isPinned = isShown && word.pinned;
    const bar = html("span", { class: "bar" });
    bar.style.inlineSize = `${100 * one.probability}%`;
    const choose = html(
      "button",
      {
        type: "button",
        class: "head",
        "aria-pressed": isPinned ? "true" : "false",
        onclick: () => this.editor.setHead(word.id, one.head),
      },
      html("span", { class: "visually-hidden" }, "Pin the head "),
      html("span", { class: "number" }, String(one.head)),
      html("bdi", {}, one.head ? this.editor.form(one.head) : "root"),
      html("span", { class: "share" }, bar),
      html("span", { class: "value" }, probability(one.probability)),
      html("span", { class: "state" }, isPinned && icon("pin")),
    );
    for (const event of ["pointerenter", "focus"]) {
      choose.addEventListener(event, () => isShown || this.editor.tree.propose(word.id, one.head));
    }
    for (const event of ["pointerleave", "blur"]) choose.addEventListener(event, () => this.editor.tree.clear());
    const title = `Forbid the head ${this.editor.form(one.head)}`;
    const forbid = html("button", { type: "button", class: "icon-only", "aria-label": title, title }, icon("close"));
    forbid.addEventListener("click", () => {
      const said = `${word.form} not under ${this.editor.form(one.head)}`;
      this.editor.edit({ action: "forbid", word: word.id, head: one.head }, said);
    });
    return html("li", { class: isShown && "own" }, choose, forbid);
  }

  /** @param {Word} word @param {number} head */
  #forbidden(word, head) {
    const name = this.editor.form(head);
    const allow = () => this.editor.edit({ action: "allow", word: word.id, head }, `${word.form} may be under ${name}`);
    return html(
      "li",
      { class: "forbidden" },
      html("span", {}, "not ", html("bdi", {}, name)),
      html("button", { type: "button", class: "small", onclick: allow }, "Allow again"),
    );
  }
}

/** @param {string} key */
function shortcut(key) {
  return html("kbd", { "aria-hidden": "true" }, key);
}

/** @param {import("./session.js").Message} message */
export function messageItem(message) {
  return html(
    "li",
    { class: `message ${message.level}` },
    icon("warning"),
    html("span", {}, message.text, html("code", {}, message.rule)),
  );
}
