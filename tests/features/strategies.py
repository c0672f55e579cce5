"""Random templates, and random sentences over a vocabulary small enough for values to meet again."""

from __future__ import annotations

from hypothesis import strategies as st

from headway.features.clusters import Clusters
from headway.features.templates import CONJUNCTIONS, FIELDS, LARGEST_OFFSET, Atom, Template
from headway.treebank import Sentence

FORMS = ("Dog", "dog", "12.5", "barks", "barking", "über-Hund", "!")
TAGS = ("N", "V", "P")
FEATS = ("_", "Case=Nom", "Case=Nom|Number=Sing", "sg|neut|def", "Number=Sing")

clusters = st.dictionaries(
    st.sampled_from([form for form in FORMS if form != "dog"] + ["über-hund"]), st.text("01", min_size=1, max_size=9)
).map(Clusters)

plain_atoms = st.builds(
    Atom, st.sampled_from("hm"), st.integers(-LARGEST_OFFSET, LARGEST_OFFSET), st.sampled_from(FIELDS)
)
between_atoms = st.builds(Atom, st.just("b"), st.just(0), st.sampled_from(FIELDS))
feat_atoms = st.sampled_from(
    [(Atom("h", 0, "feat"),), (Atom("m", 0, "feat"),), (Atom("m", 0, "feat"), Atom("h", 0, "feat"))]
)


@st.composite
def templates(draw: st.DrawFn) -> Template:
    each = draw(st.one_of(st.just(()), st.just(()), st.tuples(between_atoms), feat_atoms))
    plain = draw(st.lists(plain_atoms, min_size=0 if each else 1, max_size=3))
    atoms = draw(st.permutations([*plain, *each]))
    return Template(tuple(atoms), draw(st.sampled_from(CONJUNCTIONS)))


@st.composite
def part_templates(draw: st.DrawFn, roles: str) -> Template:
    """Of parts over these roles."""
    atoms = st.builds(
        Atom, st.sampled_from(roles), st.integers(-LARGEST_OFFSET, LARGEST_OFFSET), st.sampled_from(FIELDS)
    )
    return Template(tuple(draw(st.lists(atoms, min_size=1, max_size=5))), draw(st.sampled_from(CONJUNCTIONS)))


@st.composite
def sentences(draw: st.DrawFn, max_words: int = 6) -> Sentence:
    """Any words under any tree."""
    n = draw(st.integers(1, max_words))

    def column(values: tuple[str, ...]) -> list[str]:
        return draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))

    heads, joined = [-1] * (n + 1), [0]
    for word in draw(st.permutations(range(1, n + 1))):
        heads[word] = draw(st.sampled_from(joined))
        joined.append(word)
    return Sentence.from_words(
        column(FORMS),
        lemmas=column(FORMS),
        upos=column(TAGS),
        xpos=column((*TAGS, "_")),
        feats=column(FEATS),
        heads=heads,
    )
