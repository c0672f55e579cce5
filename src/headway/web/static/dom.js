/** Elements. Text reaches the page through textContent only, whatever it contains. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {string | Node | null | undefined | false} Child
 * @typedef {Record<string, unknown>} Properties `on` + event: a listener; `class`, `data-…`, `aria-…`, `role` and other
 *   attributes by their names; false and null leave an attribute out
 */

/**
 * An HTML element.
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Properties} [properties]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function html(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/**
 * An SVG element.
 *
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Properties} [properties]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[T]}
 */
export function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {Properties} properties
 * @param {Child[]} children
 */
function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else set(element, name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** @param {Element} element @param {string} name @param {unknown} value */
export function set(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/**
 * The element of the page with this id.
 *
 * @template {Element} [E=HTMLElement]
 * @param {string} id
 * @returns {E}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element #${id}`);
  return /** @type {E} */ (/** @type {unknown} */ (found));
}

/** @param {number} count @param {string} thing */
export function counted(count, thing) {
  return `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`;
}

/** A probability in two digits, never rounded up to certainty. @param {number} p */
export function probability(p) {
  if (p > 0.995 && p < 1) return ">0.99";
  if (p < 0.005 && p > 0) return "<0.01";
  return p.toFixed(2);
}
