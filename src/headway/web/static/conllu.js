/**
 * Parsed sentences as CoNLL-U.
 *
 * @typedef {object} ParsedWord as POST /parse gives it
 * @property {number} id
 * @property {string} form
 * @property {string | null} lemma
 * @property {string | null} upos
 * @property {string | null} xpos
 * @property {Record<string, string | boolean>} feats
 * @property {number} head
 * @property {string | null} label
 * @property {number | null} probability
 * @property {number | null} label_probability
 * @property {[number, number] | null} offsets
 *
 * @typedef {{first: number, last: number, form: string, offsets: [number, number] | null}} ParsedToken
 * @typedef {{head: number, probability: number}} Alternative
 *
 * @typedef {object} ParsedSentence
 * @property {string} text
 * @property {ParsedWord[]} words
 * @property {ParsedToken[]} multiword_tokens
 * @property {number | null} probability
 * @property {string} status
 * @property {number | null} gap
 * @property {Alternative[][] | null} [alternatives]
 * @property {{heads: number[], probability: number}[] | null} [kbest]
 */

/** @param {ParsedSentence} sentence @param {{tree?: boolean}} [options] without a tree, HEAD and DEPREL are unknown */
export function toConllu(sentence, { tree = true } = {}) {
  const lines = [`# text = ${sentence.text.replace(/\s+/g, " ")}`];
  for (const word of sentence.words) {
    const token = sentence.multiword_tokens.find((each) => each.first === word.id);
    if (token) {
      const misc = spacing(token.offsets, sentence.words[token.last]?.offsets);
      lines.push([`${token.first}-${token.last}`, cell(token.form), ..."_______", misc].join("\t"));
    }
    const inside = sentence.multiword_tokens.some((each) => each.first <= word.id && word.id <= each.last);
    const misc = inside ? "_" : spacing(word.offsets, sentence.words[word.id]?.offsets);
    const columns = [word.form, word.lemma, word.upos, word.xpos, featuresText(word.feats)].map(cell);
    const [head, label] = tree ? [String(word.head), cell(word.label)] : ["_", "_"];
    lines.push([String(word.id), ...columns, head, label, "_", misc].join("\t"));
  }
  return `${lines.join("\n")}\n\n`;
}

/** @param {Record<string, string | boolean>} feats */
export function featuresText(feats) {
  return Object.entries(feats)
    .map(([name, value]) => (value === true ? name : `${name}=${value}`))
    .join("|");
}

/** @param {string | null} value */
const cell = (value) => value?.replace(/[\t\n\r]/g, " ") || "_";

/** @param {[number, number] | null} own @param {[number, number] | null | undefined} next */
function spacing(own, next) {
  return own && next && own[1] === next[0] ? "SpaceAfter=No" : "_";
}
