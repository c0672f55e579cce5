/**
 * Where words and arcs go: a pure function from widths and arcs to numbers, the twin of headway/drawing/layout.py.
 *
 * An arc rises from its head, runs level, and falls to its modifier. For any heads, trees or not:
 * - Levels: an arc is above every shorter arc that shares a stretch of words with it, and no higher than necessary.
 * - Fans: each arc at a word has its own end, longer ones inside, so that arcs of one word do not cross.
 * - Labels: as near to the middle of the arc as possible, where no vertical line of another arc passes.
 * - Words: as close together as that allows. Each demand is "word b at least d to the right of word a"; the smallest
 *   solution is a longest path. A label without enough room adds one more demand, at most one per arc.
 *
 * @typedef {{head: number, modifier: number, labelWidth: number}} Arc head 0 is the root
 * @typedef {Arc & {level: number, headX: number, modifierX: number, labelX: number}} PlacedArc level 1 is the lowest
 * @typedef {{words: number[], boxes: number[], width: number, levels: number, arcs: PlacedArc[]}} Geometry
 *   the middle and the width of each word, word 1 first; the whole width; the number of levels
 * @typedef {[number, number, number]} Demand word, later word, distance
 */

export const WORD_SPACE = 20;
export const LABEL_SPACE = 11;
const END_SPACE = 7;
const WIDEST_END_SPACE = 11;

/** @param {Arc} arc */
const left = (arc) => (arc.head ? Math.min(arc.head, arc.modifier) : arc.modifier);
/** @param {Arc} arc */
const right = (arc) => Math.max(arc.head, arc.modifier);
/** @param {Arc} arc */
const span = (arc) => right(arc) - left(arc);

/**
 * Place words of these widths, word 1 first, with arcs above them, between two margins.
 *
 * @param {number[]} widths
 * @param {Arc[]} arcs
 * @param {{margin?: number, rightToLeft?: boolean}} [options] right to left: word 1 is the rightmost
 * @returns {Geometry}
 */
export function layout(widths, arcs, { margin = 0, rightToLeft = false } = {}) {
  const levels = levelsOf(arcs, widths.length);
  const fans = fansOf(widths, arcs, levels);
  const boxes = widths.map((width, i) => Math.max(width, fans.widths[i + 1]));
  const demands = firstDemands(boxes, arcs, fans);
  let x = leastPlaces(boxes, demands);
  let [placed, missing] = placeArcs(arcs, levels, fans, x);
  while (missing.length) {
    for (const demand of missing) add(demands, ...demand);
    x = leastPlaces(boxes, demands);
    [placed, missing] = placeArcs(arcs, levels, fans, x);
  }
  let start = 0;
  let end = boxes.length ? x[boxes.length] + boxes[boxes.length - 1] / 2 : 0;
  for (const arc of placed) {
    if (arc.head) continue; // the label of a root arrow may reach further than the words
    start = Math.min(start, arc.labelX - arc.labelWidth / 2);
    end = Math.max(end, arc.labelX + arc.labelWidth / 2);
  }
  const width = end - start + 2 * margin;
  const moved = (/** @type {number} */ place) => {
    const own = place - start + margin;
    return rightToLeft ? width - own : own;
  };
  return {
    words: x.slice(1).map(moved),
    boxes,
    width,
    levels: Math.max(0, ...levels),
    arcs: placed.map((arc) => ({
      ...arc,
      headX: moved(arc.headX),
      modifierX: moved(arc.modifierX),
      labelX: moved(arc.labelX),
    })),
  };
}

/**
 * The level of each arc: above every shorter arc it shares a stretch with; root arrows on top.
 *
 * @param {Arc[]} arcs
 * @param {number} n the number of words
 * @returns {number[]}
 */
export function levelsOf(arcs, n) {
  const order = arcs.map((_, i) => i);
  const rank = (/** @type {Arc} */ arc) => (arc.head ? 0 : 1);
  order.sort(
    (i, j) => rank(arcs[i]) - rank(arcs[j]) || span(arcs[i]) - span(arcs[j]) || arcs[i].modifier - arcs[j].modifier,
  );
  const found = new Array(arcs.length).fill(0);
  const top = new Array(n + 2).fill(0); // of the arcs so far, between each word and the next
  for (const i of order) {
    const arc = arcs[i];
    const [from, to] = arc.head ? [left(arc), right(arc)] : [arc.modifier - 1, arc.modifier + 1];
    let highest = 0;
    for (let k = from; k < to; k++) highest = Math.max(highest, top[k]);
    found[i] = highest + 1;
    if (arc.head) top.fill(highest + 1, from, to);
  }
  return found;
}

/**
 * Where arcs end at each word, as offsets from its middle.
 *
 * @typedef {{ends: Map<number, number>[], tops: Map<number, number>[], widths: number[], reach: number[]}} Fans
 *   by word: the end of each arc (by number), the highest level at each end, the room taken, the outermost end
 *
 * @param {number[]} widths
 * @param {Arc[]} arcs
 * @param {number[]} levels
 * @returns {Fans}
 */
function fansOf(widths, arcs, levels) {
  /** @type {number[][]} */
  const at = Array.from({ length: widths.length + 1 }, () => []);
  arcs.forEach((arc, i) => new Set([left(arc), right(arc)]).forEach((word) => at[word].push(i)));
  /** @type {Fans} */
  const fans = { ends: at.map(() => new Map()), tops: at.map(() => new Map()), widths: [0], reach: [0] };
  for (let word = 1; word < at.length; word++) {
    const own = at[word].sort((i, j) => compare(orderAt(word, arcs[i]), orderAt(word, arcs[j])));
    const step = Math.min(WIDEST_END_SPACE, Math.max(END_SPACE, widths[word - 1] / Math.max(1, own.length)));
    own.forEach((i, position) => {
      const end = (position - (own.length - 1) / 2) * step;
      fans.ends[word].set(i, end);
      fans.tops[word].set(end, Math.max(levels[i], fans.tops[word].get(end) ?? 0));
    });
    fans.widths.push(own.length * step);
    fans.reach.push((Math.max(0, own.length - 1) / 2) * step);
  }
  return fans;
}

/**
 * From left to right at one word: arcs to the left, shortest first; the root; arcs to the right, longest first.
 * Of two arcs between the same words, the one with the smaller modifier is lower, so it is the inner one.
 *
 * @param {number} word
 * @param {Arc} arc
 */
function orderAt(word, arc) {
  if (!arc.head) return [1, 0, 0];
  return right(arc) === word ? [0, span(arc), arc.modifier] : [2, -span(arc), -arc.modifier];
}

/** @param {number[]} a @param {number[]} b */
function compare(a, b) {
  const i = a.findIndex((value, k) => value !== b[k]);
  return i < 0 ? 0 : a[i] - b[i];
}

/**
 * Room for words beside each other, for each label between the ends of its arc, and for root labels.
 *
 * @param {number[]} boxes
 * @param {Arc[]} arcs
 * @param {Fans} fans
 * @returns {Map<number, number>[]} by word: the words before it, and how far away they must be
 */
function firstDemands(boxes, arcs, fans) {
  /** @type {Map<number, number>[]} */
  const demands = Array.from({ length: boxes.length + 1 }, () => new Map());
  for (let m = 1; m < boxes.length; m++) add(demands, m, m + 1, (boxes[m - 1] + boxes[m]) / 2 + WORD_SPACE);
  /** @type {[number, number, number][]} */
  const roots = []; // word, offset, width of the label
  arcs.forEach((arc, i) => {
    if (arc.head) {
      const [a, b] = [left(arc), right(arc)];
      add(demands, a, b, arc.labelWidth + 2 * LABEL_SPACE + end(fans, a, i) - end(fans, b, i));
      return;
    }
    const word = arc.modifier;
    const [half, own] = [arc.labelWidth / 2 + LABEL_SPACE / 2, end(fans, arc.modifier, i)];
    if (word > 1) add(demands, word - 1, word, half + fans.reach[word - 1] - own);
    if (word < boxes.length) add(demands, word, word + 1, half + own + fans.reach[word + 1]);
    roots.push([word, own, arc.labelWidth]);
  });
  roots.sort((a, b) => a[0] - b[0]);
  for (let i = 1; i < roots.length; i++) {
    const [[a, endA, widthA], [b, endB, widthB]] = [roots[i - 1], roots[i]];
    add(demands, a, b, (widthA + widthB) / 2 + LABEL_SPACE + endA - endB);
  }
  return demands;
}

/** @param {Fans} fans @param {number} word @param {number} i the number of the arc */
const end = (fans, word, i) => /** @type {number} */ (fans.ends[word].get(i));

/** @param {Map<number, number>[]} demands @param {number} a @param {number} b @param {number} distance */
function add(demands, a, b, distance) {
  demands[b].set(a, Math.max(distance, demands[b].get(a) ?? 0));
}

/**
 * The leftmost places that meet all demands; [0], for the root, means nothing.
 *
 * @param {number[]} boxes
 * @param {Map<number, number>[]} demands
 */
function leastPlaces(boxes, demands) {
  const x = [0];
  boxes.forEach((box, i) => {
    let place = box / 2;
    for (const [a, distance] of demands[i + 1]) place = Math.max(place, x[a] + distance);
    x.push(place);
  });
  return x;
}

/**
 * The arcs over words at these places, and the demands of labels that have too little room.
 *
 * @param {Arc[]} arcs
 * @param {number[]} levels
 * @param {Fans} fans
 * @param {number[]} x
 * @returns {[PlacedArc[], Demand[]]}
 */
function placeArcs(arcs, levels, fans, x) {
  /** @type {Demand[]} */
  const missing = [];
  const placed = arcs.map((arc, i) => {
    const modifierX = x[arc.modifier] + end(fans, arc.modifier, i);
    const headX = arc.head ? x[arc.head] + end(fans, arc.head, i) : modifierX;
    let labelX = (headX + modifierX) / 2;
    if (arc.head && arc.labelWidth) {
      const spot = labelSpot(arc, i, levels[i], fans, x);
      if (typeof spot === "number") labelX = spot;
      else missing.push(spot);
    }
    return { ...arc, level: levels[i], headX, modifierX, labelX };
  });
  return [placed, missing];
}

/**
 * The middle of the label: as near as possible to the middle of the arc, clear of higher arcs; or what it lacks.
 *
 * @param {Arc} arc
 * @param {number} i
 * @param {number} level
 * @param {Fans} fans
 * @param {number[]} x
 * @returns {number | Demand}
 */
function labelSpot(arc, i, level, fans, x) {
  const [a, b] = [left(arc), right(arc)];
  const [start, stop] = [x[a] + end(fans, a, i), x[b] + end(fans, b, i)];
  /** @type {[number, number, number][]} */
  const lines = [
    [start, a, end(fans, a, i)],
    [stop, b, end(fans, b, i)],
  ];
  for (let word = a; word <= b; word++) {
    for (const [offset, top] of fans.tops[word]) {
      const place = x[word] + offset;
      if (top > level && place > start && place < stop) lines.push([place, word, offset]);
    }
  }
  lines.sort((one, other) => one[0] - other[0]);
  const [middle, need] = [(start + stop) / 2, arc.labelWidth + 2 * LABEL_SPACE];
  /** @type {number | null} */
  let best = null;
  /** @type {Demand | null} */
  let widest = null;
  let room = -Infinity;
  for (let k = 1; k < lines.length; k++) {
    const [[from, wordA, endA], [to, wordB, endB]] = [lines[k - 1], lines[k]];
    if (to - from >= need - 1e-6) {
      const spot = Math.min(Math.max(middle, from + need / 2), to - need / 2);
      if (best === null || Math.abs(spot - middle) < Math.abs(best - middle)) best = spot;
    } else if (wordA !== wordB && to - from > room) {
      room = to - from;
      widest = [wordA, wordB, need + endA - endB];
    }
  }
  return best ?? widest ?? middle;
}
