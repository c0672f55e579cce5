"""Mentions from dependency trees, for documents without marks: the spans of nominals.

The head of a mention is a word whose UPOS and relation suggest that it refers to something: a noun, name, pronoun or
number unless it only modifies another word, some other words in the place of a nominal, or a possessive determiner. The
mention is the run of adjacent words around the head that depend on it. It leaves out what belongs to the clause
(prepositions, conjunctions, the subject and copula of a predicate), further conjuncts and appositions, which are
mentions of their own, and punctuation at either edge. Mentions may nest; none has gaps.

Relations are those of UD without their subtypes, except for two subtypes that matter. FEATS are used if they are there:
relative and interrogative pronouns refer to nothing, possessives may be determiners. The choices were tuned on the
training part of UD English-GUM. Time is linear in the words of the subtrees.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from headway.coreference.documents import Mention
from headway.treebank import Sentence, require_tree
from headway.treebank.trees import children_of, preorder

_NOMINAL = frozenset({"NOUN", "PROPN", "PRON", "NUM"})
_AT_TIMES_NOMINAL = frozenset({"DET", "SYM", "X"})
_ARGUMENTS = frozenset({"nsubj", "obj", "iobj", "obl", "nmod", "root", "appos", "conj"})
_MODIFYING = frozenset(
    {"advmod", "amod", "case", "cc", "det", "discourse", "expl", "fixed", "flat", "goeswith", "mark", "nummod"}
)
_NEVER_INSIDE = frozenset(
    {"advcl", "cop", "csubj", "discourse", "dislocated", "nsubj", "orphan", "parataxis", "vocative"}
)
_NOT_BEFORE = _NEVER_INSIDE | {"advmod", "aux", "case", "cc", "expl", "mark", "obl", "reparandum"}
_NOT_AFTER = _NEVER_INSIDE | {"appos", "conj", "dep", "list"}
_OF_A_PREDICATE = frozenset({"advmod", "ccomp", "obl", "xcomp"})


def tree_mentions(sentences: Iterable[Sentence]) -> list[Mention]:
    """The mentions of a document's sentences, in the order of a document; every sentence needs a tree.

    >>> tree = {"upos": ["PRON", "VERB", "DET", "NOUN"], "heads": [-1, 2, 0, 4, 2]}
    >>> sentence = Sentence.from_words("She saw a dog".split(), labels=[None, "nsubj", "root", "det", "obj"], **tree)
    >>> [mention.words for mention in tree_mentions([sentence])]
    [(1,), (3, 4)]
    """
    return [
        Mention(number, tuple(range(first, last + 1)))
        for number, sentence in enumerate(sentences)
        for first, last in sorted(_spans(sentence), key=lambda span: (span[0], -span[1]))
    ]


def _spans(sentence: Sentence) -> Iterator[tuple[int, int]]:
    """The first and last word of each mention."""
    heads = require_tree(sentence).tolist()
    labels = ["", *map(str, (sentence.labels or ())[1:])]
    if heads[1:] and ({"_"} == set(sentence.upos) or {"_"} == set(labels[1:])):
        cause = "the sentence lacks UPOS or DEPREL, which are needed to find mentions; tag and parse it"
        raise sentence.place.error(cause)
    relations = [label.partition(":")[0] for label in labels]
    upos = ("", *sentence.upos)
    children = children_of(heads)
    order, start, end = preorder(children)
    for head in range(1, len(heads)):
        below = {relations[child] for child in children[head]}
        modified = not below <= {"punct"}
        if not _is_head(upos[head], upos[heads[head]], labels[head], sentence.feats[head - 1], modified):
            continue
        not_here = _OF_A_PREDICATE if below & {"cop", "nsubj"} else frozenset()
        inside = {head}
        for child in children[head]:
            if relations[child] not in not_here | (_NOT_BEFORE if child < head else _NOT_AFTER):
                inside.update(order[start[child] : end[child]])
        # Punctuation that depends on the head surrounds it; other punctuation, such as a closing quote, belongs inside.
        first, last = _run(head, inside)
        while relations[first] == "punct" and heads[first] == head:
            first += 1
        while relations[last] == "punct" and heads[last] == head:
            last -= 1
        yield first, last


def _is_head(upos: str, upos_above: str, label: str, feats: str, modified: bool) -> bool:
    """May a word like this be the head of a mention?"""
    relation = label.partition(":")[0]
    if upos == "DET" and (label == "det:poss" or "Poss=Yes" in feats):
        return True
    if "PronType=Rel" in feats or "PronType=Int" in feats:
        return False
    if upos in _AT_TIMES_NOMINAL:
        return relation in _ARGUMENTS
    if upos not in _NOMINAL or relation in _MODIFYING or label == "nmod:desc":  # a title before a name
        return False
    if relation == "compound":
        return modified or (upos == "PROPN" and upos_above != "PROPN")
    return True


def _run(head: int, inside: Container[int]) -> tuple[int, int]:
    first = last = head
    while first - 1 in inside:
        first -= 1
    while last + 1 in inside:
        last += 1
    return first, last
