/** A tree on the page as an SVG file: the same marks, in the light colours, with nothing that only the page needs. */

import { html, set, svg } from "./dom.js";

const OF_LINES = ["stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin"];
const OF_TEXTS = ["font-size", "font-style", "font-weight", "text-anchor"];
const ONLY_ON_PAGE = ["class", "tabindex", "role", "aria-label", "aria-hidden", "aria-pressed", "style"];
const INITIAL = new Set(["none", "normal", "400", "butt", "miter", "start"]);

/** @param {SVGSVGElement} shown @param {string} text the sentence */
export function pictureOf(shown, text) {
  const copy = /** @type {SVGSVGElement} */ (shown.cloneNode(true));
  for (const part of copy.querySelectorAll(".hit, .over, .box, .grip")) part.remove();
  copy.classList.remove("pointing", "choosing");
  for (const part of copy.querySelectorAll(".active, .selected, .changed")) {
    part.classList.remove("active", "selected", "changed");
  }
  const light = html("div", { class: "offscreen", "data-theme": "light", "aria-hidden": "true" }, copy);
  document.body.append(light);
  const family = getComputedStyle(document.documentElement).fontFamily;
  const { width, height } = copy.viewBox.baseVal;
  for (const part of copy.querySelectorAll("path, polygon, text, tspan, circle")) paint(part);
  light.remove();
  for (const part of [copy, ...copy.querySelectorAll("*")]) {
    for (const name of ONLY_ON_PAGE) part.removeAttribute(name);
    for (const name of part.getAttributeNames()) if (name.startsWith("data-")) part.removeAttribute(name);
  }
  set(copy, "xmlns", "http://www.w3.org/2000/svg");
  set(copy, "role", "img");
  set(copy, "font-family", family.replaceAll('"', "'"));
  copy.prepend(svg("title", {}, `Dependency tree: ${text}`), svg("rect", { width, height, fill: "white" }));
  return `${new XMLSerializer().serializeToString(copy)}\n`;
}

/** Write what the style sheets say into the element itself. @param {Element} part */
function paint(part) {
  const computed = getComputedStyle(part);
  const stroke = solid(computed.stroke);
  set(part, "fill", solid(computed.fill));
  set(part, "stroke", stroke === "none" ? null : stroke);
  const isText = part instanceof SVGTextContentElement;
  for (const name of [...(stroke === "none" ? [] : OF_LINES), ...(isText ? OF_TEXTS : [])]) {
    const value = computed.getPropertyValue(name);
    set(part, name, INITIAL.has(value) ? null : value);
  }
}

const canvas = /** @type {CanvasRenderingContext2D} */ (
  Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", {
    willReadFrequently: true,
  })
);

/** Mixed colours as #rrggbb, which every program reads. @param {string} value */
function solid(value) {
  if (!/^(color|oklab|rgb)/.test(value)) return value;
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = value;
  canvas.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
  if (!alpha) return "none";
  return `#${[red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}
