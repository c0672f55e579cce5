/** Copy and download: a small menu of formats. */

import { html } from "./dom.js";
import { icon } from "./icons.js";

/**
 * @typedef {{name: string, file: string, type: string, text: () => string}} Format
 */

/**
 * A menu with a row for each format.
 *
 * @param {string} title
 * @param {Format[]} formats
 * @param {(message: string) => void} tell
 */
export function exportMenu(title, formats, tell) {
  const rows = formats.map((format) =>
    html(
      "div",
      { class: "menu-row", role: "group", "aria-label": format.name },
      html("span", {}, format.name),
      html("button", { type: "button", class: "small", onclick: () => copied(format) }, "Copy"),
      html("button", { type: "button", class: "small", onclick: () => download(format) }, "Download"),
    ),
  );
  /** @param {Format} format */
  async function copied(format) {
    tell((await copyText(format.text())) ? `${format.name} copied.` : "The browser does not let this page copy.");
    menu.open = false;
  }
  /** @param {Format} format */
  function download(format) {
    const address = URL.createObjectURL(new Blob([format.text()], { type: format.type }));
    html("a", { href: address, download: format.file }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    menu.open = false;
  }
  const menu = html(
    "details",
    { class: "menu" },
    html("summary", { class: "button quiet" }, icon("share"), title),
    html("div", { class: "menu-panel" }, ...rows),
  );
  closeFromOutside(menu);
  return menu;
}

/** Clicks elsewhere and Escape close it. @param {HTMLDetailsElement} menu */
export function closeFromOutside(menu) {
  const close = (/** @type {Event} */ event) => {
    if (!menu.isConnected || !(event.target instanceof Node) || !menu.contains(event.target)) menu.open = false;
  };
  menu.addEventListener("toggle", () => {
    if (menu.open) document.addEventListener("pointerdown", close);
    else document.removeEventListener("pointerdown", close);
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary")?.focus();
    event.stopPropagation();
  });
}

/** @param {string} text @returns {Promise<boolean>} whether it worked */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyTheOldWay(text); // browsers keep the clipboard from pages of other machines without TLS
  }
}

/** @param {string} text */
function copyTheOldWay(text) {
  const field = html("textarea", { class: "offscreen", "aria-hidden": "true" });
  field.value = text;
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  const worked = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return worked;
}
