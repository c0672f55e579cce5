/** The annotate page's keys, and the query language: what the help dialogs say. */

import { html } from "./dom.js";

/** @type {[string, [string[], string][]][]} */
const KEYS = [
  [
    "Words",
    [
      [["←", "→"], "select the word to the left, to the right"],
      [["Home", "End"], "the first word, the last"],
      [["n", "N"], "the next word that is unsure, the one before"],
      [["e"], "edit the word’s form, lemma and tags; Esc comes back"],
    ],
  ],
  [
    "Heads and labels",
    [
      [["1", "2", "…", "Enter"], "type the number of the head; 0 is the root"],
      [["h", "← →", "Enter"], "move along the possible heads; ↑ is the root"],
      [["l"], "choose a label"],
      [["p"], "pin the head that is shown"],
      [["u"], "unpin: leave the head to the model"],
      [["x"], "forbid the head that is shown"],
      [["Esc"], "give up what was begun"],
    ],
  ],
  [
    "The sentence",
    [
      [["a"], "accept: pin all heads that are shown"],
      [["d"], "done; again: not done"],
      [["Enter"], "after done: the next sentence that is not done"],
      [["j", "k"], "the next sentence of the list, the one before"],
      [["Ctrl+Z"], "undo"],
      [["Ctrl+Shift+Z"], "redo"],
    ],
  ],
  [
    "The page",
    [
      [["/"], "search"],
      [["?"], "this help"],
    ],
  ],
];

/** @type {[string, string][]} */
const QUERIES = [
  ["ran", "the form or the lemma is ran"],
  ["form:ran  lemma:run", "a word with this form and this lemma"],
  ["upos:VERB  xpos:VBD", "tags"],
  ["feats:Number=Plur", "a feature"],
  ["label:nsubj  head.upos:VERB", "a relation; something about the head"],
  ['text:"in spite of"', "words of the text"],
  ["note:check", "words of the note"],
  ["is:todo  is:done  is:unsure  is:invalid", "how far the sentence is"],
  ["run*", "* stands for anything"],
  ["-label:punct", "- means not; a space means and"],
];

export function keysHelp() {
  return KEYS.map(([title, rows]) =>
    html(
      "section",
      {},
      html("h3", {}, title),
      html(
        "dl",
        {},
        ...rows.flatMap(([keys, text]) => [
          html("dt", {}, ...keys.map((key) => html("kbd", {}, key))),
          html("dd", {}, text),
        ]),
      ),
    ),
  );
}

export function queryHelp() {
  return [
    html(
      "dl",
      { class: "queries" },
      ...QUERIES.flatMap(([query, text]) => [html("dt", {}, html("code", {}, query)), html("dd", {}, text)]),
    ),
  ];
}
