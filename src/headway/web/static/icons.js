/** Icons as paths on a grid of 24, drawn with the colour of the text beside them. */

import { svg } from "./dom.js";

/** @type {Record<string, string>} */
const PATHS = {
  accept: "M2 13l4.5 4.5L16 8M12 17.5l1 1L22 9",
  check: "M4 12.5l5.5 5.5L20 7",
  close: "M6 6l12 12M18 6L6 18",
  down: "M6 9.5l6 6 6-6",
  help: "M9 9.2a3 3 0 1 1 4.6 2.5c-1 .7-1.6 1.3-1.6 2.6M12 18v.1",
  left: "M15 5l-7 7 7 7",
  link: "M10 14a4.5 4.5 0 0 0 6.4 0l3-3A4.5 4.5 0 0 0 13 4.600l-1 1M14 10a4.5 4.5 0 0 0-6.4 0l-3 3A4.5 4.5 0 0 0 11 19.400l1-1",
  list: "M8 6h12M8 12h12M8 18h12M4 6h.1M4 12h.1M4 18h.1",
  pin: "M12 15.500V21M8 4h8M9.5 4l-.5 6.5-3 3.500v1.500h12V14l-3-3.500L14.5 4",
  redo: "M20 9H9.500a5.5 5.5 0 0 0 0 11H15M16 5l4 4-4 4",
  right: "M9 5l7 7-7 7",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13M15.5 15.500L20.5 20.5",
  share: "M12 15V4M7.5 8L12 3.5 16.5 8M5 13v6.500h14V13",
  undo: "M4 9h10.500a5.5 5.5 0 0 1 0 11H9M8 5L4 9l4 4",
  warning: "M12 4L2.5 20h19zM12 10v4.500M12 17.300v.1",
};

/** @param {string} name */
export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: PATHS[name] }));
}

/** Put the icons where the page's own HTML names them: `<button data-icon="undo">`. */
export function fillIcons() {
  for (const element of document.querySelectorAll("[data-icon]")) {
    element.prepend(icon(/** @type {HTMLElement} */ (element).dataset.icon ?? ""));
  }
}
