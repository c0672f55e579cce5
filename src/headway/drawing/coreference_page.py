"""A document's coreference as a page: the text with its mentions in boxes, and the latent tree below it.

One HTML file that loads nothing else: it contains styles, the drawing and a small script, and a policy that forbids the
rest. Without the script, colours and numbers show the clusters. With it, pointing at a mention or focusing it shows its
cluster and its antecedent, and the arrow keys move along the cluster.

Mentions of clusters of two or more are elements, nested like the mentions. A mention that crosses another cannot be
nested: it is cut where the other ends, into several boxes that are open where they were cut.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from string import Template

from numpy.typing import ArrayLike

from headway.drawing import palette
from headway.drawing.coreference import coreference_drawing
from headway.drawing.latent_tree import CLUSTER_COLOURS, LatentTree, MentionText, alone_text, latent_tree, titles
from headway.drawing.primitives import mixed
from headway.drawing.svg import to_svg
from headway.errors import TreebankError

_PAPER, _NIGHT = "#ffffff", "#15181d"
_MOST_NESTED = 5  # deeper nesting makes a box no higher
_FORBIDDEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")  # in HTML

_Word = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class Piece:
    """The words of a mention in one box; it `begins` or `ends` here unless it is cut."""

    node: int
    first: int
    last: int
    begins: bool
    ends: bool


def coreference_page(
    title: str,
    sentences: Sequence[Sequence[_Word]],
    mentions: Sequence[MentionText],
    heads: ArrayLike,
    *,
    wrong: Collection[int] = (),
    notes: Sequence[str] = (),
) -> str:
    """The page as the text of an HTML file.

    sentences: the words, each with whether a space follows it.
    heads, wrong: as in `coreference_drawing`; mentions with a wrong antecedent are in dashed boxes.
    notes: paragraphs below the title.
    """
    tree = latent_tree(heads, len(mentions), wrong)
    spans = _spans(tree, sentences, mentions)
    cut = [nested_pieces(each) for each in spans]
    boxes = _Boxes(tree, [_escaped(title) for title in titles(tree, mentions)])
    texts = (
        boxes.sentence(number, words, pieces)
        for number, (words, pieces) in enumerate(zip(sentences, cut, strict=True), start=1)
    )
    is_cut = any(not piece.ends for pieces in cut for piece in pieces)
    return _PAGE.substitute(
        title=_escaped(title),
        styles=_STYLES + _computed_styles(),
        notes="".join(f"<p>{_escaped(note)}</p>\n" for note in (*notes, f"{tree.counts()}.")),
        text="\n".join(texts),
        legend="\n".join(f"<li>{entry}</li>" for entry in _legend(tree, is_cut)),
        drawing=to_svg(coreference_drawing(mentions, heads, wrong=wrong), background=None).rstrip(),
        script=_SCRIPT,
    )


def _spans(
    tree: LatentTree, sentences: Sequence[Sequence[_Word]], mentions: Sequence[MentionText]
) -> list[list[tuple[int, int, int]]]:
    """For each sentence: node, first and last word of every mention of a numbered cluster."""
    for number, mention in enumerate(mentions, start=1):
        if not 0 <= mention.sentence < len(sentences):
            raise TreebankError(f"mention {number} is in sentence {mention.sentence + 1} of {len(sentences)}")
        length = len(sentences[mention.sentence])
        if not 1 <= mention.first <= mention.last <= length:
            where = f"words {mention.first} to {mention.last} of sentence {mention.sentence + 1}"
            raise TreebankError(f"mention {number} has {where}, which has words 1 to {length}")
    spans: list[list[tuple[int, int, int]]] = [[] for _ in sentences]
    for cluster in tree.numbered():
        for node in cluster.nodes:
            mention = mentions[node - 1]
            spans[mention.sentence].append((node, mention.first, mention.last))
    return spans


def nested_pieces(spans: Iterable[tuple[int, int, int]]) -> list[Piece]:
    """The spans (node, first, last) in the order in which boxes open, cut where they cross an earlier one.

    >>> [(piece.node, piece.first, piece.last) for piece in nested_pieces([(1, 1, 4), (2, 3, 6), (3, 3, 3)])]
    [(1, 1, 4), (2, 3, 4), (3, 3, 3), (2, 5, 6)]
    """
    waiting: dict[int, list[tuple[int, int, bool]]] = {}  # by first word: (minus the last word, node, begins)
    for node, first, last in spans:
        waiting.setdefault(first, []).append((-last, node, True))
    pieces: list[Piece] = []
    stack: list[int] = []  # last words of the open boxes, the innermost at the end
    while waiting:
        word = min(waiting)
        while stack and stack[-1] < word:
            stack.pop()
        for minus_last, node, begins in sorted(waiting.pop(word)):
            last = -minus_last
            end = min(last, stack[-1]) if stack else last
            pieces.append(Piece(node, word, end, begins, ends=end == last))
            stack.append(end)
            if end < last:
                waiting.setdefault(end + 1, []).append((minus_last, node, False))
    return pieces


class _Boxes:
    """Writes sentences with the mentions of a tree in boxes; `descriptions` are those of the nodes, escaped."""

    def __init__(self, tree: LatentTree, descriptions: Sequence[str]) -> None:
        self._tree = tree
        self._descriptions = descriptions
        self._number = {node: cluster.number for cluster in tree.numbered() for node in cluster.nodes}

    def sentence(self, number: int, words: Sequence[_Word], pieces: Sequence[Piece]) -> str:
        """A paragraph; `pieces` are those of `nested_pieces`."""
        parts = [f'<p class="sentence" id="s{number}" dir="auto"><span class="number">{number} </span>']
        heights = _heights(pieces)
        opened: list[Piece] = []
        coming = 0
        for position, (form, has_space) in enumerate(words, start=1):
            while coming < len(pieces) and pieces[coming].first == position:
                parts.append(self._opening(pieces[coming], heights[coming]))
                opened.append(pieces[coming])
                coming += 1
            parts.append(_escaped(form))
            while opened and opened[-1].last == position:
                parts.append(f"<sub>{self._number[opened.pop().node]}</sub></span>")
            parts.append(" " * has_space)
        return "".join(parts).rstrip() + "</p>"

    def _opening(self, piece: Piece, height: int) -> str:
        node, number = piece.node, self._number[piece.node]
        kinds = ["mention", _colour_class(number), f"h{min(height, _MOST_NESTED)}"]
        kinds += ["wrong"] * (node in self._tree.wrong) + ["cut-before"] * (not piece.begins)
        kinds += ["cut-after"] * (not piece.ends)
        reach = ' tabindex="0" role="group"' if piece.begins else ""
        data = f'data-cluster="{number}" data-node="{node}" data-antecedent="{self._tree.heads[node]}"'
        return f'<span class="{" ".join(kinds)}"{reach} {data} title="cluster {number}: {self._descriptions[node]}">'


def _heights(pieces: Sequence[Piece]) -> list[int]:
    """How deeply boxes are nested in each box."""
    heights = [0] * len(pieces)
    stack: list[int] = []
    for place, piece in enumerate(pieces):
        while stack and pieces[stack[-1]].last < piece.first:
            stack.pop()
        for inside, outer in enumerate(reversed(stack), start=1):
            heights[outer] = max(heights[outer], inside)
        stack.append(place)
    return heights


def _legend(tree: LatentTree, is_cut: bool) -> list[str]:
    entries = ['<span class="number">7</span> the number of a sentence']
    if tree.numbered():
        sample = f'<span class="mention {_colour_class(1)} h0">mention<sub>1</sub></span>'
        entries.append(f"{sample} a mention of cluster 1; mentions with the same number refer to the same thing")
    if tree.wrong:
        sample = f'<span class="mention {_colour_class(1)} h0 wrong">mention<sub>1</sub></span>'
        entries.append(f"{sample} wrong: in the reference its antecedent is in another cluster")
    if is_cut:
        before, after = (f'class="mention {_colour_class(1)} h0 cut-{side}"' for side in ("before", "after"))
        sample = f"<span {after}>one<sub>1</sub></span> <span {before}>mention<sub>1</sub></span>"
        entries.append(f"{sample} one mention, cut at the end of another that it crosses")
    if tree.alone():
        entries.append(f"{alone_text(len(tree.alone()))}, without a box")
    return entries


def _colour_class(number: int) -> str:
    return f"c{(number - 1) % len(CLUSTER_COLOURS)}"


def _computed_styles() -> str:
    """The colours for light and dark pages, and the heights of boxes that contain others."""
    day = [(colour, mixed(_PAPER, colour, 0.1), mixed(_PAPER, colour, 0.35)) for colour in CLUSTER_COLOURS]
    night = [
        (mixed(colour, _PAPER, 0.5), mixed(_NIGHT, colour, 0.3), mixed(_NIGHT, colour, 0.85))
        for colour in CLUSTER_COLOURS
    ]
    heights = (f".h{height} {{ padding-block: {1 + 2.5 * height:g}px }}\n" for height in range(_MOST_NESTED + 1))
    return (
        ":root { color-scheme: light dark }\n"
        f":root {{ --ink: {palette.WORD}; --grey: {palette.TAG}; --paper: {_PAPER}; --error: {palette.WRONG} }}\n"
        f"{_rules(day)}"
        "@media screen and (prefers-color-scheme: dark) {\n"
        f":root {{ --ink: #e5e7eb; --grey: #9ca3af; --paper: {_NIGHT}; --error: #ff8a5c }}\n"
        f"{_rules(night)}"
        ".drawing svg { filter: invert(1) hue-rotate(180deg) }\n"
        "}\n" + "".join(heights)
    )


def _rules(colours: Iterable[tuple[str, str, str]]) -> str:
    return "".join(
        f".c{place} {{ --line: {line}; --pale: {pale}; --strong: {strong} }}\n"
        for place, (line, pale, strong) in enumerate(colours)
    )


def _escaped(text: str) -> str:
    return escape(_FORBIDDEN.sub("\ufffd", text))


_PAGE = Template("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>$title</title>
<style>
$styles</style>
</head>
<body>
<header>
<h1 dir="auto">$title</h1>
$notes</header>
<main>
<section aria-label="Text">
<div class="text" lang="">
$text
</div>
</section>
<section aria-labelledby="legend">
<h2 id="legend">Legend</h2>
<ul class="legend">
$legend
</ul>
</section>
<section aria-labelledby="trees">
<h2 id="trees">Latent trees</h2>
<div class="drawing" tabindex="0" role="region" aria-labelledby="trees">
$drawing
</div>
</section>
</main>
<p id="status" role="status" hidden></p>
<script>
$script</script>
</body>
</html>
""")

_STYLES = """\
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem 1.5rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, Helvetica, Arial, "Liberation Sans", "Noto Sans", sans-serif }
h1 { font-size: 1.5rem; margin: 0 0 .5rem }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
header p { margin: .25rem 0; color: var(--grey) }
header, .text, .legend { max-width: 52rem }
.text { margin-top: 1.5rem }
.sentence { margin: .3rem 0; padding-inline-start: 2.6rem; line-height: 2.1; overflow-wrap: anywhere }
.number { color: var(--grey); font-size: .72rem }
.sentence > .number { display: inline-block; width: 2.6rem; margin-inline-start: -2.6rem; padding-inline-end: .7rem;
  text-align: end; user-select: none }
.mention { border: 1px solid var(--line); border-radius: 4px; background: var(--pale); padding-inline: .18em;
  -webkit-box-decoration-break: clone; box-decoration-break: clone; cursor: default }
.mention.wrong { border: 1.5px dashed var(--error) }
.mention.cut-before { border-inline-start: 0; border-start-start-radius: 0; border-end-start-radius: 0 }
.mention.cut-after { border-inline-end: 0; border-start-end-radius: 0; border-end-end-radius: 0 }
.mention > sub { color: var(--line); font-size: .66em; font-weight: 700; line-height: 0; margin-inline-start: .15em;
  vertical-align: -.25em; user-select: none }
.mention.on { background: var(--strong) }
.mention.on > sub { color: inherit }
.mention.antecedent { outline: 3px solid var(--line); outline-offset: 1px }
.mention.self { text-decoration: underline 2px; text-underline-offset: .2em }
.mention:focus-visible { outline: 2px solid var(--ink); outline-offset: 1px }
.legend { list-style: none; margin: 0; padding: 0; line-height: 2 }
.drawing { overflow-x: auto; margin: 0 -1.5rem; padding: 0 1.5rem }
.drawing svg { display: block }
#status { position: fixed; inset: auto 0 0; margin: 0; padding: .5rem 1.5rem; background: var(--paper);
  border-top: 1px solid var(--grey); font-size: .9rem }
@media print {
html { font-size: 10pt }
body { padding: 0 }
#status { display: none }
.mention, .drawing svg { print-color-adjust: exact; -webkit-print-color-adjust: exact }
.sentence { break-inside: avoid }
.drawing { overflow: visible; margin: 0; padding: 0 }
.drawing svg { max-width: 100%; height: auto }
}
"""

_SCRIPT = """\
(() => {
  const boxes = [...document.querySelectorAll(".mention[data-node]")];
  const status = document.getElementById("status");
  const hint = "Point at a mention, or go to it with Tab; the left and right arrow keys move along its cluster.";
  const at = (element) => element && element.closest ? element.closest(".mention[data-node]") : null;
  const show = (chosen) => {
    for (const box of boxes) {
      const same = (mine, its) => chosen !== null && box.dataset[mine] === chosen.dataset[its];
      box.classList.toggle("on", same("cluster", "cluster"));
      box.classList.toggle("self", same("node", "node"));
      box.classList.toggle("antecedent", same("node", "antecedent"));
    }
    status.textContent = chosen === null ? hint : chosen.title;
  };
  document.addEventListener("mouseover", (event) => show(at(event.target) || at(document.activeElement)));
  document.addEventListener("focusin", (event) => show(at(event.target)));
  document.addEventListener("focusout", () => show(null));
  document.addEventListener("keydown", (event) => {
    const chosen = at(document.activeElement);
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (chosen === null || !way || event.altKey || event.ctrlKey || event.metaKey) return;
    const along = boxes.filter((box) => box.tabIndex === 0 && box.dataset.cluster === chosen.dataset.cluster);
    const next = along[along.indexOf(chosen) + way];
    if (next) next.focus();
    event.preventDefault();
  });
  status.hidden = boxes.length === 0;
  show(null);
})();
"""
