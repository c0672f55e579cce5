/**
 * A text field that completes from a list: type to narrow it, the arrow keys choose, Enter takes, Escape lets be.
 *
 * What is typed may also be none of the list. Built as WAI-ARIA describes an editable combobox with a listbox.
 */

import { html, set } from "./dom.js";

const MOST = 12; // shown at once

let count = 0;

export class Combobox {
  #options = /** @type {string[]} */ ([]);
  #shown = /** @type {string[]} */ ([]);
  #active = -1;
  #kept = "";

  /**
   * @param {string} label
   * @param {{ontake: (value: string) => void, oncancel?: () => void}} choices
   */
  constructor(label, { ontake, oncancel }) {
    this.ontake = ontake;
    this.oncancel = oncancel;
    const id = `list-${++count}`;
    this.list = html("ul", { id, role: "listbox", class: "options", hidden: true, "aria-label": "Suggestions" });
    this.input = html("input", {
      type: "text",
      role: "combobox",
      "aria-label": label,
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": id,
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
    });
    this.element = html("div", { class: "combobox" }, this.input, this.list);
    this.input.addEventListener("input", () => this.#narrow(false));
    this.input.addEventListener("keydown", (event) => this.#key(event));
    this.input.addEventListener("blur", () => this.#leave());
    this.input.addEventListener("click", () => this.#narrow(true));
    this.list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
    this.list.addEventListener("click", (event) => {
      const option = event.target instanceof Element ? event.target.closest("li") : null;
      if (option) this.#take(this.#shown[[...this.list.children].indexOf(option)]);
    });
  }

  /** @param {string} value @param {string[]} options */
  fill(value, options) {
    this.#options = options;
    if (document.activeElement === this.input && this.input.value !== this.#kept) return; // somebody is typing
    this.#kept = value;
    this.input.value = value;
  }

  /** Put the focus here, with the whole list open. */
  open() {
    this.input.focus();
    this.input.select();
    this.#narrow(true);
  }

  /** @param {boolean} all */
  #narrow(all) {
    const typed = this.input.value.trim();
    this.#shown = all ? [...this.#options] : matching(this.#options, typed);
    this.list.replaceChildren(
      ...this.#shown.map((one, i) =>
        html("li", { role: "option", id: `${this.list.id}-${i}`, "aria-selected": "false" }, one),
      ),
    );
    this.#expand(this.#shown.length > 0);
    this.#activate(all ? this.#shown.indexOf(this.#kept) : typed ? 0 : -1);
  }

  /** @param {boolean} open */
  #expand(open) {
    this.list.hidden = !open;
    set(this.input, "aria-expanded", open ? "true" : "false");
    if (!open) this.#activate(-1);
  }

  /** @param {number} i */
  #activate(i) {
    this.#active = i;
    [...this.list.children].forEach((option, k) => set(option, "aria-selected", k === i ? "true" : "false"));
    set(this.input, "aria-activedescendant", i < 0 ? null : `${this.list.id}-${i}`);
    this.list.children[i]?.scrollIntoView({ block: "nearest" });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.isComposing) return;
    const open = !this.list.hidden;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const way = event.key === "ArrowDown" ? 1 : -1;
      if (!open) this.#narrow(true);
      else this.#activate((this.#active + way + this.#shown.length) % this.#shown.length);
    } else if (event.key === "Enter") {
      this.#take(open && this.#active >= 0 ? this.#shown[this.#active] : this.input.value.trim());
    } else if (event.key === "Tab") {
      if (open && this.#active >= 0 && this.input.value !== this.#kept) this.input.value = this.#shown[this.#active];
      return;
    } else if (event.key === "Escape") {
      if (!open && !this.oncancel) return;
      this.input.value = this.#kept;
      this.#expand(false);
      this.oncancel?.();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} value */
  #take(value) {
    this.input.value = value;
    this.#expand(false);
    const changed = value !== this.#kept;
    this.#kept = value;
    if (changed || this.oncancel) this.ontake(value);
  }

  #leave() {
    this.#expand(false);
    if (this.oncancel) this.oncancel();
    else if (this.input.value.trim() !== this.#kept) this.#take(this.input.value.trim());
  }
}

/**
 * What completes the typed text, the best first: itself, what begins with it, what contains it; at the end, if the list
 * lacks it, the text as it was typed.
 *
 * @param {string[]} options
 * @param {string} typed
 */
function matching(options, typed) {
  const wanted = typed.toLocaleLowerCase();
  const rank = (/** @type {string} */ one) => {
    const place = one.toLocaleLowerCase().indexOf(wanted);
    return one === typed ? 0 : place === 0 ? 1 : place > 0 ? 2 : 3;
  };
  const found = options.filter((one) => rank(one) < 3).sort((a, b) => rank(a) - rank(b));
  const shown = found.slice(0, MOST);
  return typed && !options.includes(typed) ? [...shown, typed] : shown;
}
