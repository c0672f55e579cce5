"""Drawings of trees, comparisons of two trees, probabilities of heads, and coreference, as SVG, PNG, PDF or text.

    to_svg(tree_drawing(sentence))                                  # the text of an SVG file; stacked_svg for several
    save_drawing(tree_drawing(sentence), "tree.pdf")                # with matplotlib, the extra `figures`
    print(tree_text(sentence))                                      # for a terminal

- `tree_drawing(sentence, probabilities=...)`, `comparison_drawing(gold, predicted)`, `heatmap_drawing(sentence,
  marginals)`, `automaton_drawing(automaton, names)` give a `Drawing`: texts, paths and rectangles, independent of the
  file format; `automaton_dot(automaton, names)` is text for Graphviz.
- `coreference_drawing(mentions, heads)` draws the latent tree over a document's mentions;
  `coreference_page(title, sentences, mentions, heads)` is an HTML page with the text and that drawing.
- `agreement(gold, predicted)` gives the counts in the caption of a comparison.
"""

from headway.drawing.automaton import automaton_dot, automaton_drawing
from headway.drawing.coreference import coreference_drawing
from headway.drawing.coreference_page import coreference_page
from headway.drawing.heatmap import heatmap_drawing
from headway.drawing.latent_tree import MentionText
from headway.drawing.matplotlib_export import save_drawing
from headway.drawing.primitives import Drawing
from headway.drawing.svg import stacked_svg, to_svg
from headway.drawing.terminal import tree_text
from headway.drawing.trees import Agreement, agreement, comparison_drawing, tree_drawing

__all__ = [
    "Agreement",
    "Drawing",
    "MentionText",
    "agreement",
    "automaton_dot",
    "automaton_drawing",
    "comparison_drawing",
    "coreference_drawing",
    "coreference_page",
    "heatmap_drawing",
    "save_drawing",
    "stacked_svg",
    "to_svg",
    "tree_drawing",
    "tree_text",
]
