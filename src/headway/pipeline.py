"""The two stories: `Parser.train`, from a treebank to a parser, and `Parser.parse`, from sentences to trees.

parser = Parser.train("train.conllu", dev="dev.conllu")
for parsed in parser.parse(read_treebank("new.conllu")):
    print(parsed.to_conllu())
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast, overload

import numpy as np

from headway import __version__
from headway.archive import Archive, load_archive, save_archive
from headway.drawing import to_svg, tree_drawing
from headway.embedded import embedded_model
from headway.errors import TrainingError, TreebankError
from headway.features.clusters import NO_CLUSTERS
from headway.features.coding import Coder
from headway.features.rules import Rules, read_rules
from headway.inference.batch import Floats, Ints
from headway.inference.dual_decomposition import Status
from headway.inference.tree_distribution import TreeDistribution
from headway.models.arc_factored import ArcText, code_trees
from headway.models.arc_model import ArcModel, Own
from headway.models.automata_model import AutomataModel
from headway.models.grammar_model import GrammarModel
from headway.models.higher_order import PartExamples
from headway.models.pruning import coverage
from headway.models.saved import (
    KIND,
    damage_reported,
    packed,
    segmenter_of,
    tagger_of,
    with_words,
)
from headway.models.segmenter import Segmenter
from headway.models.tagger import Tagger
from headway.models.trust import NO_TRUST, Trust, fit_trust
from headway.training import (
    Development,
    Induction,
    Material,
    Monitor,
    PartDevelopment,
    RuledText,
    Settings,
    Show,
    TagChoice,
    Watch,
    Words,
    arc_development,
    checksum,
    development,
    induce,
    known_heads,
    signature,
    train_arcs,
    train_from_rules,
    train_labeller,
    training_text,
    training_trees,
)
from headway.treebank import Sentence, require_tree
from headway.treebank.annotations import offsets_of

_SENTENCES_AT_ONCE = 512
_ARCS_AT_ONCE = 4_000_000
_OF_RULES = {"learner": "constraints", "labels": "none", "templates": "rules", "tags": "gold"}
_FOR_RULES = (
    *("projective", "single_root", "tags", "templates", "clusters", "epochs", "c", "optimiser", "patience", "seed"),
    "criterion",
)

Model = ArcModel | AutomataModel | GrammarModel
Source = str | os.PathLike[str] | Iterable[Sentence]
Text = str | list[str] | tuple[str, ...] | Sentence  # one sentence


@dataclass(frozen=True)
class Confidence:
    """How sure the model is: of the whole tree, and of each word's head (arcs[0] is 1)."""

    tree: float
    arcs: Floats


@dataclass(frozen=True)
class Parsed:
    """A sentence with the tree the parser found, and whether that is proved to be the best under the model.

    The distribution behind it is computed when first asked for; for a higher-order model it is its pruner's. A grammar
    has its `own` probabilities; their logarithms are its scores.
    """

    sentence: Sentence
    scores: Floats
    projective: bool
    single_root: bool
    status: Status
    gap: float
    trust: Trust = NO_TRUST
    own: Own | None = None

    @property
    def heads(self) -> Ints:
        """(n+1,), heads[0] == -1."""
        assert self.sentence.heads is not None
        return self.sentence.heads

    @property
    def labels(self) -> tuple[str | None, ...]:
        """n+1 entries, labels[0] is None."""
        assert self.sentence.labels is not None
        return self.sentence.labels

    @cached_property
    def distribution(self) -> TreeDistribution:
        """Every tree's probability under the model, whatever the labels."""
        return TreeDistribution(self.scores, projective=self.projective, single_root=self.single_root)

    @cached_property
    def marginals(self) -> Floats:
        """P(head -> modifier), (n+1, n+1); for a higher-order model its pruner's, as `headway.models.trust` has it."""
        if self.own is not None:
            return self.own.marginals
        return self.trust.marginals(self.distribution.marginals, self.heads)

    @property
    def confidence(self) -> Confidence:
        """The tree's probability and each of its arcs'; calibrated where the model was trained with dev data."""
        arcs = np.ones(len(self.heads))
        words = np.arange(1, len(self.heads))
        arcs[1:] = self.marginals[self.heads[1:], words]
        tree = self.own.tree if self.own else float(np.exp(self.distribution.log_prob(self.heads)))
        return Confidence(tree, arcs)

    @property
    def offsets(self) -> tuple[tuple[int, int], ...] | None:
        """Where each word begins and ends in the text it was read from, in characters; None where there was none."""
        return offsets_of(self.sentence)

    def to_conllu(self) -> str:
        """The parsed sentence as CoNLL-U."""
        return self.sentence.to_conllu()

    def to_json(self) -> dict[str, Any]:
        """The parsed sentence as plain data, a dictionary a word, every arc with its probability."""
        s, sure = self.sentence, self.confidence
        offsets = self.offsets or (None,) * len(s)
        words = [
            {
                "id": m,
                "form": s.forms[m - 1],
                "lemma": s.lemmas[m - 1],
                "upos": s.upos[m - 1],
                "xpos": s.xpos[m - 1],
                "feats": s.feats[m - 1],
                "head": int(self.heads[m]),
                "label": self.labels[m],
                "probability": round(float(sure.arcs[m]), 6),
                "offsets": offsets[m - 1],
            }
            for m in range(1, len(s) + 1)
        ]
        return {"words": words, "probability": sure.tree, "status": str(self.status), "gap": self.gap}

    def to_svg(self, *, below: float = 0.7) -> str:
        """The tree as a picture, arcs shaded by probability and dashed `below` one; a notebook shows it by itself."""
        return to_svg(tree_drawing(self.sentence, probabilities=self.confidence.arcs, threshold=below))

    _repr_svg_ = to_svg


@dataclass(frozen=True)
class Parser:
    """A trained parser: its model of trees, and what splits and tags plain text where it was trained to."""

    model: Model
    tagger: Tagger | None = None
    segmenter: Segmenter | None = None

    @classmethod
    def train(
        cls,
        train: Source,
        dev: Source | None = None,
        *,
        text: Source | None = None,
        threads: int = 1,
        checkpoint: str | os.PathLike[str] | None = None,
        show: Show | None = None,
        **settings: Any,
    ) -> Parser:
        """Train on a treebank; `settings` are the fields of `headway.training.Settings`.

        With `dev`, the weights of the best pass are kept, training stops early, and probabilities are calibrated. With
        `checkpoint`, an interrupted training goes on where that file says; delete it once the parser is saved.

        Some heads may be unknown, "_" in the file (-1 in a partial `Sentence`). Arc models then learn from the trees
        with the known ones, which are latent (fernandes2012 section 2.3): the learner `perceptron` from the best,
        `margin` from all by their probabilities. For all else such a model fills in the unknown heads first. Labels are
        learnt from the words that have one.

        `text` are sentences without trees, of which the `loglinear` learner is to be sure, too (`entropy_weight`).
        """
        chosen = Settings(**settings).complete()
        chosen.require_trees(text=text is not None)
        sentences = training_trees(train, chosen, _name(train, "the training data"), partial=True)
        gold = _development_trees(dev)
        more = [] if text is None else training_text(text, _name(text, "the text"))
        words = Words.of(sentences, gold, chosen, show, more)
        material = Material.of(words.train, chosen, threads, show, words.clusters, words.text)
        held_out = None if words.dev is None else development(words.dev, material, chosen, threads)
        file, data = None if checkpoint is None else Path(checkpoint), checksum(sentences)
        signed = signature(chosen, data, checksum(gold or []), checksum(more))
        monitor = train_arcs(material, chosen, Watch(held_out, show, file, signed))
        return finish(words, material, chosen, monitor, held_out, data, show)

    @classmethod
    def constrain(
        cls,
        rules: Rules | str | os.PathLike[str],
        text: Source,
        dev: Source | None = None,
        *,
        threads: int = 1,
        checkpoint: str | os.PathLike[str] | None = None,
        show: Show | None = None,
        **settings: Any,
    ) -> Parser:
        """Learn from rules about the trees of a tagged text, without any tree (`headway.features.rules`).

        `rules` is a file, or "universal", which comes with Headway. The rest is as for `train`, without labels; `tags`
        are the text's own unless "predicted" asks for a tagger learnt from them.
        """
        if fixed := set(settings) - set(_FOR_RULES):
            raise TrainingError(f"learning from rules has no setting {min(fixed)!r}; there are {', '.join(_FOR_RULES)}")
        chosen = Settings(**{**_OF_RULES, **settings}).complete()
        told = rules if isinstance(rules, Rules) else read_rules(os.fspath(rules))
        sentences = training_text(text, _name(text, "the text"))
        gold = _development_trees(dev)
        words = Words.of(sentences, gold, chosen, show)
        ruled = RuledText.of(words.train, told, chosen, threads, words.clusters)
        held_out = None
        if words.dev is not None:
            held_out = arc_development(words.dev, ruled.text, ruled.coder, chosen, threads)
        file, data = None if checkpoint is None else Path(checkpoint), checksum(sentences)
        signed = signature(chosen, data, checksum(gold or []), told.to_toml())
        monitor = train_from_rules(ruled, chosen, Watch(held_out, show, file, signed))
        about = _about(chosen, monitor, 1.0, ruled.text, data)
        about["rules"] = told.to_toml()
        trees = (chosen.projective, chosen.single_root)
        assert monitor.best is not None
        model = ArcModel(ruled.coder, ruled.text.scorer, monitor.best, None, np.zeros(0), *trees, about)
        return cls(model, words.tagger, words.segmenter)

    @classmethod
    def induce(
        cls,
        train: Source,
        dev: Source | None = None,
        *,
        tags: TagChoice = "gold",
        labels: bool = True,
        threads: int = 1,
        show: Show | None = None,
        **settings: Any,
    ) -> Parser:
        """Learn a head-automata grammar over tags; `settings` are the fields of `headway.training.Induction`.

        With `dev`, the number of states, or EM's best step, is chosen on it. Trees that are not projective are made so.
        `labels` are chosen after the tree, where the treebank has any.
        """
        chosen = Induction(**settings)
        frame = Settings(projective=True, single_root=chosen.single_root, tags=tags, seed=chosen.seed).complete()
        sentences = training_trees(train, frame, _name(train, "the training data"))
        gold = _development_trees(dev)
        words = Words(NO_CLUSTERS, None, None, sentences, gold)
        if tags == "predicted":
            words = Words.of(sentences, gold, frame, show)
        induced = induce(words.train, words.dev, chosen, threads=threads, show=show)
        coder = Coder.learn(words.train)
        kinds = {label for sentence in words.train for label in (sentence.labels or ())[1:] if label}
        names = tuple(sorted(kinds)) if labels and kinds != {"_"} else ()
        labeller, weights = None, np.zeros(0)
        if names:
            trees = code_trees(words.train, coder, names)
            labeller, weights = train_labeller(coder, trees, names, frame, show, tree=False)
        about = {
            "headway": __version__,
            "settings": {**asdict(chosen), "tags": tags},
            "train": {"sentences": len(sentences), "sha256": checksum(sentences)},
            "chosen": induced.chosen,
            "history": induced.history,
        }
        model = GrammarModel(coder, induced.grammar, labeller, weights, chosen.single_root, about)
        return cls(model, words.tagger, words.segmenter)

    @classmethod
    def load(cls, model: str | os.PathLike[str]) -> Parser:
        """A parser that comes with Headway, by name ("en"), or one saved earlier. Loading checks all, runs nothing."""
        path = embedded_model(model) or model
        archive = load_archive(path, KIND)
        with damage_reported(str(path)):
            read = _model_of(archive)
            return cls(read, tagger_of(archive, read.coder.clusters), segmenter_of(archive))

    def save(self, path: str | os.PathLike[str], *, megabytes: float | None = None) -> None:
        """Write the parser to one file; an interruption leaves the old file as it was.

        With `megabytes`, small weights are dropped and the others rounded until the file is no larger than that.
        """
        archive = with_words(self.model.to_archive(), self.tagger, self.segmenter)
        save_archive(archive if megabytes is None else packed(archive, megabytes), path)

    @property
    def needs_tags(self) -> bool:
        """Whether words must come with tags: it was trained on some, and learnt no tagger."""
        tags = (self.model.coder.fields[field] for field in ("upos", "xpos"))
        return self.tagger is None and any(len(known) > 1 for known in tags)

    def with_projective(self, projective: bool) -> Parser:
        """The same weights, for projective trees or for all."""
        return replace(self, model=self.model.with_projective(projective))

    @overload
    def parse(  # type: ignore[overload-overlap]  # a str is an iterable of str, too
        self, text: Text, *, mbr: bool = ..., exact: bool = ..., threads: int = ..., retag: bool = ...
    ) -> Parsed: ...
    @overload
    def parse(
        self, text: Iterable[Text], *, mbr: bool = ..., exact: bool = ..., threads: int = ..., retag: bool = ...
    ) -> Iterator[Parsed]: ...
    def parse(
        self,
        text: Text | Iterable[Text],
        *,
        mbr: bool = False,
        exact: bool = True,
        threads: int = 1,
        retag: bool = False,
    ) -> Parsed | Iterator[Parsed]:
        """The tree of a sentence, or, one after the other, of any number of them in flat memory.

        A sentence is a `Sentence`, a list or tuple of tokens, or a string, which is split into words (`parse_text`
        splits a text into sentences, too). Columns of tags that a sentence lacks are filled; with `retag`, all are.

        `mbr` maximises the expected number of right heads rather than the tree's probability (arc models). Without
        `exact`, higher-order models stop where dual decomposition stops: `status` and `gap` say what that proves.
        """
        if isinstance(text, str | Sentence) or _is_tokens(text):
            return next(self._parse([cast(Text, text)], mbr, exact, threads, retag))
        return self._parse(text, mbr, exact, threads, retag)

    def parse_text(self, text: str, *, mbr: bool = False, exact: bool = True, threads: int = 1) -> Iterator[Parsed]:
        """The trees of all sentences of a text, which is split into sentences and words."""
        return self.parse(self.sentences(text), mbr=mbr, exact=exact, threads=threads)

    def sentences(self, text: str, offset: int = 0) -> list[Sentence]:
        """The sentences of a text, split into words; `offset` is where it begins in a larger one."""
        if self.segmenter is None:
            raise TrainingError(
                "the model cannot split text into words, as there were none to learn it from; give it tokens"
            )
        return self.segmenter.sentences(text, offset)

    def _parse(self, texts: Iterable[Text], mbr: bool, exact: bool, threads: int, retag: bool) -> Iterator[Parsed]:
        model = self.model
        trust = model.trust if isinstance(model, AutomataModel) else NO_TRUST
        for some in map(partial(self._tagged, retag=retag), _portions(map(self._sentence, texts))):
            if isinstance(model, ArcModel):
                predicted = model.predict(some, mbr=mbr, threads=threads)
            elif isinstance(model, GrammarModel):  # whose decoding is MBR
                predicted = model.predict(some, threads=threads)
            elif mbr:
                raise TrainingError("MBR needs arc marginals, which higher-order models do not have; use an arc model")
            else:
                predicted = model.predict(some, exact=exact, threads=threads)
            for sentence, found in zip(some, predicted, strict=True):
                tree = sentence.with_tree(found.heads, found.labels)
                trees = (model.projective, model.single_root)
                yield Parsed(tree, found.scores, *trees, found.status, found.gap, trust, found.own)

    def _sentence(self, text: Text) -> Sentence:
        """Words, whatever was given."""
        if isinstance(text, Sentence):
            return text
        if self.needs_tags:
            raise TrainingError(
                "the model has no tagger, as it was trained on gold tags; give it sentences with tags "
                "(Sentence.from_words), or train one with tags='predicted'"
            )
        if not isinstance(text, str):
            return Sentence.from_words(map(_token, text))
        if self.segmenter is None:
            self.sentences(text)
        assert self.segmenter is not None
        return self.segmenter.sentence(text)

    def _tagged(self, sentences: list[Sentence], *, retag: bool) -> list[Sentence]:
        """The sentences with tags, in their order: columns they lack, and with `retag` all, are the tagger's."""
        if self.tagger is None:
            return sentences
        which = [i for i, sentence in enumerate(sentences) if retag or self.tagger.is_needed(sentence)]
        for i, tagged in zip(which, self.tagger.tag([sentences[i] for i in which]), strict=True):
            sentences[i] = tagged if retag else _completed(sentences[i], tagged)
        return sentences


def finish(
    words: Words,
    material: Material,
    settings: Settings,
    monitor: Monitor,
    dev: Development | None,
    data: str,
    show: Show | None,
) -> Parser:
    """The parser with the best weights a training found: calibrated where there is dev data, and with labels."""
    assert monitor.best is not None
    scale = dev.scale(monitor.best) if dev else 1.0
    labeller, label_weights = None, np.zeros(0)
    if settings.labels == "after":
        tree = material.pruner is not None
        labeller, label_weights = train_labeller(
            material.coder, material.trees, material.labels, settings, show, tree=tree
        )
    examples = material.examples
    about = _about(settings, monitor, scale, examples, data)
    about["train"]["sentences"] = len(words.train)
    known, count = known_heads(words.train)
    if known < count:
        about["train"]["heads"] = {"known": known, "words": count}
    if material.text is not None:
        about["text"] = {"sentences": len(words.text), "sha256": checksum(words.text)}
    labels = (labeller, label_weights)
    trees = (settings.projective, settings.single_root)
    if isinstance(examples, ArcText):
        weights = scale * monitor.best
        arcs = ArcModel(material.coder, examples.scorer, weights, *labels, *trees, about)
        return Parser(arcs, words.tagger, words.segmenter)
    assert material.pruner is not None
    left = dev.coverage if isinstance(dev, PartDevelopment) else coverage(material.pruner, *material.trees[:2])
    about["pruning"] = {
        "measured_on": "development" if dev else "training",
        "recall": left.recall,
        "heads_per_word": left.heads_per_word,
    }
    parts = (examples.scorer, monitor.best)
    pruner = replace(material.pruner, projective=settings.projective)
    automata = AutomataModel(material.coder, pruner, *parts, *labels, *trees, about)
    if words.dev is not None:
        automata = replace(automata, trust=_trust(automata, words.dev))
    return Parser(automata, words.tagger, words.segmenter)


def _development_trees(dev: Source | None) -> list[Sentence] | None:
    """Trees of any class: they are only compared with."""
    return None if dev is None else training_trees(dev, Settings(single_root=False), _name(dev, "the development data"))


def _about(
    settings: Settings, monitor: Monitor, scale: float, examples: ArcText | PartExamples, data: str
) -> dict[str, Any]:
    """What a model says of itself."""
    return {
        "headway": __version__,
        "settings": asdict(settings),
        "train": {"sentences": len(examples.lengths), "sha256": data},
        "best_pass": monitor.best_pass(),
        "scale": scale,
        "collisions": examples.scorer.collisions,
        "history": monitor.history,
    }


def _trust(model: AutomataModel, dev: Sequence[Sentence]) -> Trust:
    """Fitted to the model's own arcs of the development sentences, without proofs that they are the best."""
    parsed = Parser(model).parse(iter(dev), exact=False)
    own, right = [], []
    for gold, found in zip(dev, parsed, strict=True):
        own.append(found.confidence.arcs[1:])
        right.append(found.heads[1:] == require_tree(gold)[1:])
    return fit_trust(np.concatenate(own), np.concatenate(right))


def _model_of(archive: Archive) -> Model:
    if archive.data["model"] == "arc":
        return ArcModel.from_archive(archive)
    if archive.data["model"] == "automata":
        return AutomataModel.from_archive(archive)
    if archive.data["model"] == "grammar":
        return GrammarModel.from_archive(archive)
    raise ValueError(f"a model of the unknown kind {archive.data['model']!r}")


def _completed(given: Sentence, tagged: Sentence) -> Sentence:
    """The tagged sentence, but for the columns that were given."""
    columns = {name: getattr(given, name) for name in ("lemmas", "upos", "xpos", "feats")}
    return replace(tagged, **{name: column for name, column in columns.items() if column.count("_") < len(column)})


def _is_tokens(text: object) -> bool:
    return isinstance(text, list | tuple) and bool(text) and all(isinstance(token, str) for token in text)


def _token(token: str) -> str:
    if token.split() != [token]:
        raise TreebankError(
            f"the token {token[:40]!r} is empty or has white space in it; for sentences of raw text give an iterator "
            "of them, or parse_text one text"
        )
    return token


def _portions(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """The sentences, some at once: as many as fill the kernels' batches, few enough to stay small in memory."""
    portion: list[Sentence] = []
    arcs = 0
    for sentence in sentences:
        portion.append(sentence)
        arcs += (len(sentence) + 1) ** 2
        if len(portion) == _SENTENCES_AT_ONCE or arcs > _ARCS_AT_ONCE:
            yield portion
            portion, arcs = [], 0
    if portion:
        yield portion


def _name(source: Source, otherwise: str) -> str:
    return str(source) if isinstance(source, (str, os.PathLike)) else otherwise
