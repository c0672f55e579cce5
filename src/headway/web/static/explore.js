/** The explore page: trees as one types. All of its state is in the address, after the #. */

import { Unreachable, ask, askForLines, isAbort, sentence as inWords } from "./api.js";
import { toConllu } from "./conllu.js";
import { byId, counted, html } from "./dom.js";
import { copyText, exportMenu } from "./export.js";
import { fillIcons } from "./icons.js";
import { SentenceCard } from "./sentence-card.js";
import { timed } from "./timings.js";

/** @typedef {import("./conllu.js").ParsedSentence} ParsedSentence */

const EXAMPLE = "She saw the man with a telescope.";
const DELAY = 150; // ms between the last key and the request
const STREAMED_FROM = 3000; // characters: longer texts come sentence by sentence
const LONGEST_LINK = 30_000;
const MOST_TREES = 10;

const box = /** @type {HTMLTextAreaElement} */ (byId("text"));
const modelField = /** @type {HTMLSelectElement} */ (byId("model"));
const treesField = /** @type {HTMLSelectElement} */ (byId("trees"));
const list = byId("sentences");
const problem = byId("problem");
const state = byId("state");
const toast = byId("toast");

/** @type {SentenceCard[]} */
const cards = [];
let coreference = false;
let asked = new AbortController();
/** @type {number | undefined} */
let typing;
/** @type {Map<number, {pins: Map<number, number>, chosen: number}>} from a link, until its sentences are there */
let wanted = new Map();
/** @type {string | null} from a link, until the models are known */
let wantedModel = null;

const sight = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      sight.unobserve(entry.target);
      cards.find((card) => card.element === entry.target)?.appear();
    }
  },
  { rootMargin: "800px" },
);

// --- the address ---

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  box.value = given.get("text") ?? EXAMPLE;
  const k = Number(given.get("k") ?? 1);
  treesField.value = String(k >= 1 && k <= MOST_TREES ? Math.floor(k) : 1);
  wantedModel = given.get("model");
  chooseModel();
  wanted = new Map();
  const entry = (/** @type {number} */ i) => {
    const found = wanted.get(i) ?? { pins: new Map(), chosen: 0 };
    wanted.set(i, found);
    return found;
  };
  for (const pin of (given.get("pins") ?? "").split(",")) {
    const [i, word, head] = pin.split(".").map(Number);
    if ([i, word, head].every((part) => Number.isInteger(part) && part >= 0) && word) entry(i).pins.set(word, head);
  }
  for (const tree of (given.get("tree") ?? "").split(",")) {
    const [i, place] = tree.split(".").map(Number);
    if (Number.isInteger(i) && Number.isInteger(place) && place > 0) entry(i).chosen = place;
  }
  grow();
}

function chooseModel() {
  if ([...modelField.options].some((option) => option.value === wantedModel)) modelField.value = wantedModel ?? "";
}

/** The address of what is on the page, without what is as usual. */
function address() {
  const values = new URLSearchParams({ text: box.value });
  if (modelField.value) values.set("model", modelField.value);
  if (treesField.value !== "1") values.set("k", treesField.value);
  const pins = cards.flatMap((card) => [...card.pins].map((pin) => [card.number, ...pin].join(".")));
  const trees = cards.flatMap((card) => (card.chosen ? [`${card.number}.${card.chosen}`] : []));
  if (pins.length) values.set("pins", pins.join(","));
  if (trees.length) values.set("tree", trees.join(","));
  return `#${values}`;
}

function writeAddress() {
  const next = address();
  if (next.length <= LONGEST_LINK) history.replaceState(null, "", next);
}

// --- parsing ---

function soon() {
  clearTimeout(typing);
  typing = setTimeout(() => void refresh(), DELAY);
}

async function refresh() {
  clearTimeout(typing);
  asked.abort(); // an older answer never overwrites a newer one
  asked = new AbortController();
  const { signal } = asked;
  const text = box.value;
  problem.hidden = true;
  byId("examples").hidden = text.trim() !== "";
  if (!text.trim()) {
    cut(0);
    state.textContent = "";
    writeAddress();
    return;
  }
  const done = timed("type");
  const slow = setTimeout(() => say(state, "Parsing…"), 400);
  try {
    const words =
      text.length > STREAMED_FROM && !coreference ? await inStream(text, signal) : await atOnce(text, signal);
    clearTimeout(slow);
    if (signal.aborted) return;
    say(state, `${counted(cards.length, "sentence")}, ${counted(words, "word")}`);
    if (!wanted.size) writeAddress();
    restore();
    done(words);
  } catch (error) {
    if (isAbort(error) || signal.aborted) return;
    showProblem(error);
  } finally {
    clearTimeout(slow);
  }
}

/** @param {unknown} error */
function showProblem(error) {
  problem.textContent = inWords(error);
  problem.hidden = false;
  say(state, "");
  if (error instanceof Unreachable) setTimeout(() => problem.hidden || soon(), 2000);
}

/** @param {string} text */
function request(text) {
  const k = Number(treesField.value);
  return { text, ...choices(k) };
}

/** @param {number} k */
function choices(k) {
  return { ...(modelField.value && { model: modelField.value }), alternatives: true, ...(k > 1 && { kbest: k }) };
}

/** @param {string} text @param {AbortSignal} signal @returns {Promise<number>} the number of words */
async function atOnce(text, signal) {
  const body = { ...request(text), ...(coreference && { coreference: true }) };
  /** @type {{sentences: ParsedSentence[], clusters?: {sentence: number, words: number[]}[][] | null}} */
  const answer = await ask("/parse", { body, signal });
  if (signal.aborted) return 0;
  const mentions = mentionsOf(answer.clusters ?? []);
  answer.sentences.forEach((each, i) => put(i, each, mentions.get(i) ?? []));
  cut(answer.sentences.length);
  return answer.sentences.reduce((sum, each) => sum + each.words.length, 0);
}

/** @param {string} text @param {AbortSignal} signal @returns {Promise<number>} the number of words */
async function inStream(text, signal) {
  let [i, words] = [0, 0];
  for await (const each of askForLines("/parse/stream", { body: request(text), signal })) {
    if (signal.aborted) return 0;
    if (each.error) throw new Error(each.error);
    put(i++, each, []);
    words += each.words.length;
    say(state, `${counted(i, "sentence")} so far…`);
  }
  cut(i);
  return words;
}

/** By sentence. @param {{sentence: number, words: number[]}[][]} clusters */
function mentionsOf(clusters) {
  /** @type {Map<number, import("./tree.js").Mention[]>} */
  const found = new Map();
  clusters
    .filter((cluster) => cluster.length > 1)
    .forEach((cluster, number) => {
      for (const { sentence, words } of cluster) {
        const own = found.get(sentence) ?? [];
        own.push({ first: Math.min(...words), last: Math.max(...words), cluster: number });
        found.set(sentence, own);
      }
    });
  return found;
}

// --- cards ---

/** @param {number} i @param {ParsedSentence} data @param {import("./tree.js").Mention[]} mentions */
function put(i, data, mentions) {
  if (!cards[i]) {
    cards[i] = new SentenceCard(i, { ask: constrained, tell, changed: writeAddress });
    list.append(cards[i].element);
    sight.observe(cards[i].element);
  }
  cards[i].update(data, mentions);
}

/** @param {number} length */
function cut(length) {
  for (const card of cards.splice(length)) {
    sight.unobserve(card.element);
    card.element.remove();
  }
}

/** Pins and trees of a link, once their sentences are there. */
function restore() {
  for (const [i, { pins, chosen }] of wanted) cards[i]?.restore(pins, chosen);
  wanted.clear();
}

/** @type {import("./sentence-card.js").Around["ask"]} */
async function constrained(conllu, heads, signal) {
  const body = { conllu, heads, ...choices(Number(treesField.value)) };
  const answer = await ask("/parse", { body, signal });
  return answer.sentences[0];
}

// --- the rest of the page ---

/** @param {HTMLElement} place @param {string} text */
function say(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

/** @type {number | undefined} */
let passing;

/** @param {string} message */
function tell(message) {
  toast.textContent = message;
  toast.classList.add("on");
  clearTimeout(passing);
  passing = setTimeout(() => toast.classList.remove("on"), 2500);
}

/** As tall as its text. */
function grow() {
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight + 2, window.innerHeight * 0.4)}px`;
}

async function loadModels() {
  const answer = await ask("/models");
  coreference = Boolean(answer.coreference);
  modelField.replaceChildren(
    ...answer.models.map((/** @type {any} */ model) => {
      const about = [model.name, model.language && model.language !== model.name ? `(${model.language})` : ""];
      return html("option", { value: model.name, selected: model.default }, about.join(" ").trim());
    }),
  );
}

async function copyLink() {
  writeAddress();
  const link = `${location.origin}${location.pathname}${address()}`;
  if (link.length > LONGEST_LINK) tell("The text is too long for a link.");
  else
    tell(
      (await copyText(link))
        ? "Link copied."
        : "The browser does not let this page copy; the address bar has the link.",
    );
}

async function start() {
  fillIcons();
  treesField.replaceChildren(
    ...Array.from({ length: MOST_TREES }, (_, i) => html("option", { value: i + 1 }, String(i + 1))),
  );
  for (const button of document.querySelectorAll("#examples button")) {
    button.addEventListener("click", () => {
      box.value = button.textContent ?? "";
      grow();
      box.focus();
      void refresh();
    });
  }
  const all = () => cards.map((card) => card.result());
  byId("export").append(
    exportMenu(
      "Export all",
      [
        {
          name: "CoNLL-U",
          file: "trees.conllu",
          type: "text/plain",
          text: () =>
            all()
              .map((one) => toConllu(one))
              .join(""),
        },
        {
          name: "JSON",
          file: "trees.json",
          type: "application/json",
          text: () => `${JSON.stringify(all(), null, 1)}\n`,
        },
      ],
      tell,
    ),
  );
  box.addEventListener("input", () => {
    grow();
    soon();
  });
  modelField.addEventListener("change", () => void refresh());
  treesField.addEventListener("change", () => void refresh());
  byId("copy-link").addEventListener("click", () => void copyLink());
  document.addEventListener("pointerdown", (event) => cards.forEach((card) => card.clickedOutside(event)));
  window.addEventListener("hashchange", () => {
    readAddress();
    void refresh();
  });
  window.addEventListener("resize", grow);
  readAddress(); // first of all: whoever types while the models are listed shall not lose it
  try {
    await loadModels();
    chooseModel();
  } catch (error) {
    showProblem(error);
  }
  await refresh();
}

void start();
