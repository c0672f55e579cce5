/** Messages at the top of the page that stay until they are settled. */

import { byId, html } from "./dom.js";

/** @type {Map<string, HTMLElement>} */
const shown = new Map();

/**
 * @param {string} name one at a time under each name
 * @param {"bad" | "note"} kind
 * @param {string} text
 * @param {[string, () => void][]} [actions] what each button says and does
 */
export function notice(name, kind, text, actions = []) {
  const buttons = actions.map(([title, act], i) =>
    html("button", { type: "button", class: i ? "small" : "small main", onclick: act }, title),
  );
  const element = html(
    "div",
    { class: `notice ${kind}`, "data-notice": name, role: "alert" },
    html("p", {}, text),
    html("span", { class: "buttons" }, ...buttons),
  );
  const before = shown.get(name);
  if (before?.isConnected) before.replaceWith(element);
  else byId("notices").append(element);
  shown.set(name, element);
}

/** @param {string} name */
export function settled(name) {
  shown.get(name)?.remove();
  shown.delete(name);
}
