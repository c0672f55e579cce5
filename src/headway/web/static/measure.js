/** How wide texts are in the page's own fonts, whatever their script: measured on a canvas, and remembered. */

const context = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
/** @type {Map<string, number>} */
const known = new Map();
const MOST_KNOWN = 20000;

let family = "";

/** @param {string} text @param {number} size in pixels @param {string} [style] e.g. "italic" or "600" */
export function textWidth(text, size, style = "") {
  family ||= getComputedStyle(document.documentElement).fontFamily;
  const font = `${style} ${size}px ${family}`;
  const key = `${font}\n${text}`;
  let width = known.get(key);
  if (width === undefined) {
    context.font = font;
    width = context.measureText(text).width;
    if (known.size > MOST_KNOWN) known.clear();
    known.set(key, width);
  }
  return width;
}

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** What readers call characters: an emoji or a letter with its accents is one. @param {string} text */
export function characters(text) {
  return Array.from(segmenter.segment(text), (part) => part.segment);
}

/** The text, or its first characters and an ellipsis. @param {string} text @param {number} most */
export function shortened(text, most) {
  if (text.length <= most) return text;
  const start = characters(text.slice(0, most * 8));
  return start.length <= most && text.length <= most * 8 ? text : `${start.slice(0, most - 1).join("")}…`;
}

const RIGHT_TO_LEFT = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

/** Whether most words with letters are written from right to left. @param {string[]} forms */
export function isRightToLeft(forms) {
  const lettered = forms.filter((form) => /\p{L}/u.test(form));
  return lettered.filter((form) => RIGHT_TO_LEFT.test(form)).length * 2 > lettered.length;
}
