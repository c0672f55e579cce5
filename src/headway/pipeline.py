"""The two stories: `Parser.train`, from a treebank to a parser, and `Parser.parse`, from sentences to trees.

```python
parser = Parser.train("train.conllu", dev="dev.conllu")
for parsed in parser.parse(read_treebank("new.conllu")):
    print(parsed.to_conllu())
```
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, cast, overload

from headway.archive import save_archive
from headway.arrays import Ints
from headway.card import Card, card_of, with_card
from headway.declared import settings_of
from headway.document import Document
from headway.errors import ArgumentError, TrainingError
from headway.features.rules import Rules, read_rules
from headway.inference.scores import Arc
from headway.learning.monitor import Show
from headway.models.constraints import Constraints, constraints_of
from headway.models.drafts import learnt_ends, predict_drafts
from headway.models.portions import SENTENCES, portions
from headway.models.protocol import Description, Options, Prediction, TreeModel
from headway.models.registry import damage_reported, open_archive, read_model
from headway.named_models import path_of_model
from headway.packing import packed
from headway.parallel import SERIAL, Executor, Workers, executor_for
from headway.parsed import Parsed
from headway.text.columns import TAGS, completed
from headway.text.saved import text_models_of, with_text_members
from headway.text.segmenter import Segmenter
from headway.text.tagger import Tagger
from headway.text.tokens import is_tokens, sentence_of
from headway.training.data import (
    Source,
    TrainingData,
    annotated_trees,
    checksum,
    development_trees,
    name_of_source,
    of_class,
    root_labels,
    training_text,
)
from headway.training.grammar_settings import GrammarSettings
from headway.training.settings import RULES_DEFAULTS, RULES_SETTINGS, Settings
from headway.training.stages import Run, fingerprint
from headway.training.text_models import TextModels, train_text_models
from headway.training.trainers import (
    require_trainable,
    require_trainable_from_rules,
    rules_trainer_of,
    trainer_of,
)
from headway.treebank import Sentence
from headway.treebank.raw_text import Newlines, pieces_of

DEVICES = ("cpu", "cuda", "auto")

Text = str | list[str] | tuple[str, ...] | Sentence  # one sentence
Heads = Ints | Sequence[int | None]  # n+1 of them, -1 or None where unknown


@dataclass(frozen=True, repr=False)
class Parser:
    """A trained parser: its model of trees, and what splits and tags plain text where it was trained to.

    `card` has its language, licence and scores, if somebody wrote them down; it is saved with the rest.
    """

    model: TreeModel
    tagger: Tagger | None = None
    segmenter: Segmenter | None = None
    card: Card | None = None

    def __repr__(self) -> str:
        parts = {"tagger": self.tagger, "segmenter": self.segmenter}
        beside = "".join(f", {name}" for name, part in parts.items() if part is not None)
        return f"<Parser: {self.model.kind} model{beside}; {self.model.trees}>"

    @classmethod
    def of(cls, model: TreeModel, text_models: TextModels) -> Parser:
        """A model of trees behind models of text."""
        return cls(model, text_models.tagger, text_models.segmenter)

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
        workers: Workers | None = None,
        **settings: Any,
    ) -> Parser:
        """Train on a treebank; `settings` are the fields of `headway.training.settings.Settings`.

        `workers` (`headway.processes.Processes`, or a cluster's, `headway.ray.Executor`) hold the `shards`, and do at
        the same time what is independent of each other: several runs, the folds of a jack-knife.

        With `dev`, the weights of the best pass are kept, training stops early, and probabilities are calibrated. With
        `checkpoint`, a folder, an interrupted training resumes where it stopped; remove it once the parser is saved.

        Some heads may be unknown, "_" in the file (-1 in a partial `Sentence`). Arc models then learn from the trees
        with the known ones, which are latent (fernandes2012 section 2.3): the learner `perceptron` from the best,
        `margin` from all by their probabilities. Otherwise such a model first fills in the unknown heads. Labels are
        learnt from the words that have one.

        `text` are sentences without trees, on which the `loglinear` learner is to be confident (`entropy_weight`), or
        about which a network learns what its `teacher` says.
        """
        given = settings_of(Settings, settings)
        given.require_trees(text=text is not None)
        chosen = given.complete()
        require_trainable(chosen)
        given_trees = annotated_trees(train, chosen.trees, name_of_source(train, "the training data"), partial=True)
        gold = development_trees(dev)
        more = [] if text is None else training_text(text, name_of_source(text, "the text"), partial=True)
        trees = of_class(given_trees, chosen.trees)  # after all is read: this is where slow work begins
        identity = fingerprint(chosen, checksum(trees), checksum(gold or []), checksum(more))
        run = Run.of(threads, show, checkpoint, identity, workers)
        text_models, data = train_text_models(trees, gold, more, chosen, run)
        data = replace(data, roots=root_labels(given_trees))
        return cls.of(trainer_of(chosen.model)(data, chosen, run), text_models)

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
        workers: Workers | None = None,
        **settings: Any,
    ) -> Parser:
        """Learn from rules about the trees of a tagged text, without any tree (`headway.features.rules`).

        `rules` is a file, or "universal", which is included; the `model` is "arc" or "neural". The rest is as for
        `train`, without labels; `tags` are the text's own unless "predicted" asks for a tagger learnt from them.
        """
        if fixed := set(settings) - set(RULES_SETTINGS):
            known = ", ".join(RULES_SETTINGS)
            raise TrainingError(f"learning from rules has no setting {min(fixed)!r}; there are {known}")
        if not isinstance(rules, Rules | str | os.PathLike):
            raise ArgumentError(f"expected rules or the path of a file of rules, got {type(rules).__name__}")
        chosen = Settings(**{**RULES_DEFAULTS, **settings}).complete()
        require_trainable_from_rules(chosen)
        read = rules if isinstance(rules, Rules) else read_rules(os.fspath(rules))
        sentences = training_text(text, name_of_source(text, "the text"), partial=True)
        gold = development_trees(dev)
        identity = fingerprint(chosen, checksum(sentences), checksum(gold or []), read.to_toml())
        run = Run.of(threads, show, checkpoint, identity, workers)
        text_models, data = train_text_models(sentences, gold, [], chosen, run)
        return cls.of(rules_trainer_of(chosen.model)(data, read, chosen, run), text_models)

    @classmethod
    def induce(
        cls,
        train: Source,
        dev: Source | None = None,
        *,
        threads: int = 1,
        show: Show | None = None,
        workers: Workers | None = None,
        **settings: Any,
    ) -> Parser:
        """Learn a head-automata grammar over tags; `settings` are the fields of `GrammarSettings`.

        With `dev`, the number of states, or EM's best step, is chosen on it. Trees that are not projective are made so.
        """
        from headway.training.grammar_trainer import require_tags, train_grammar_model

        chosen = settings_of(GrammarSettings, settings).complete()
        frame = Settings(projective=True, single_root=chosen.single_root, tags=chosen.tags, seed=chosen.seed).complete()
        given = annotated_trees(train, frame.trees, name_of_source(train, "the training data"))
        gold, run = development_trees(dev), Run.of(threads, show, workers=workers)
        require_tags(given, chosen, choose=gold is not None)
        trees = of_class(given, frame.trees)
        text_models, data = TextModels(), TrainingData(trees, gold, sha256=checksum(trees))
        if chosen.tags == "predicted":
            text_models, data = train_text_models(trees, gold, [], frame, run)
        data = replace(data, roots=root_labels(given))
        return cls.of(train_grammar_model(data, chosen, frame, run), text_models)

    @classmethod
    def load(cls, model: str | os.PathLike[str], *, device: str = "cpu") -> Parser:
        """A parser by name ("en"), or one that was saved, by path. Everything is checked, and no code is run.

        Names are those of included models, of installed packages and of a folder (`headway.named_models`).
        A neural model may parse on a GPU: `device` "cuda", or "auto", which takes the CPU where there is none.
        """
        path = path_of_model(model)
        archive = open_archive(path, "parsing")
        with damage_reported(str(path)):
            card = card_of(archive.data)
            archive, tagger, segmenter = text_models_of(archive)
        return cls(_on_device(read_model(archive, path), device), tagger, segmenter, card)

    def save(self, path: str | os.PathLike[str], *, max_megabytes: float | None = None) -> None:
        """Write the parser to one file; an interruption leaves the old file as it was.

        With `max_megabytes`, small weights are dropped and the others rounded until the file is no larger than that.
        """
        archive = with_card(with_text_members(self.model.to_archive(), self.tagger, self.segmenter), self.card)
        save_archive(archive if max_megabytes is None else packed(archive, max_megabytes), path)

    def describe(self) -> Description:
        """What there is to know of the parser: its model, and what it does with text."""
        found = self.model.describe()
        tags = len(self.tagger.tags) if self.tagger else found.data.get("tags", 0)
        rows = (
            self._tags_row(tags),
            ("raw text", self._raw_text()),
        )
        data = {**found.data, "tags": tags, "segmenter": self.segmenter is not None}
        return replace(found, rows=(*found.rows, *rows), data=data)

    def _tags_row(self, tags: int) -> tuple[str, str]:
        if self._columns:
            return "tags", f"with the tree: {', '.join(sorted(self._columns))}"
        return "tagger", f"{tags} tags" if self.tagger else "none: trained on gold tags"

    def _raw_text(self) -> str:
        if self.segmenter is None:
            return "no: nothing to learn to split it from"
        return "no: its words would have no tags" if self.needs_tags else "yes"

    @property
    def _columns(self) -> frozenset[str]:
        """The columns that the model predicts with the tree."""
        found: frozenset[str] = getattr(self.model, "gives", frozenset())
        return found

    @property
    def gives_tags(self) -> bool:
        """Whether words get tags: from a tagger, or with the tree."""
        return self.tagger is not None or not self._columns.isdisjoint(TAGS)

    @property
    def needs_tags(self) -> bool:
        """Whether words must come with tags: the model reads tags, and there is no tagger."""
        return self.tagger is None and "tags" in self.model.requires

    def with_projective(self, projective: bool) -> Parser:
        """The same weights, for projective trees or for all."""
        return replace(self, model=self.model.with_trees(self.model.trees._replace(projective=projective)))

    @overload
    def parse(  # type: ignore[overload-overlap]  # a str is an iterable of str, too
        self,
        text: Text,
        *,
        mbr: bool = ...,
        exact: bool = ...,
        seconds: float | None = ...,
        threads: int = ...,
        retag: bool = ...,
        heads: Heads | None = ...,
        labels: Sequence[str | None] | None = ...,
        forbid: Iterable[Arc] | None = ...,
        keep_heads: bool = ...,
    ) -> Parsed: ...
    @overload
    def parse(
        self,
        text: Iterable[Text],
        *,
        mbr: bool = ...,
        exact: bool = ...,
        seconds: float | None = ...,
        threads: int = ...,
        retag: bool = ...,
        keep_heads: bool = ...,
    ) -> Iterator[Parsed]: ...
    def parse(
        self,
        text: Text | Iterable[Text],
        *,
        mbr: bool = False,
        exact: bool = True,
        seconds: float | None = None,
        threads: int = 1,
        retag: bool = False,
        heads: Heads | None = None,
        labels: Sequence[str | None] | None = None,
        forbid: Iterable[Arc] | None = None,
        keep_heads: bool = False,
    ) -> Parsed | Iterator[Parsed]:
        """The tree of a sentence, or, one after the other, of any number of them in flat memory.

        A sentence is a `Sentence`, a list or tuple of tokens, or a string, which is split into words (`parse_text`
        splits a text into sentences, too). Columns of tags that a sentence lacks are filled; with `retag`, all are.

        `mbr` maximises the expected number of right heads rather than the tree's probability (arc models). Without
        `exact`, higher-order models stop where dual decomposition stops; after `seconds` they take the best tree of a
        sentence found so far. `status` and `gap` say what is proved. Sentences of more than 1,000 words are parsed in
        stretches (`headway.models.stretches`).

        What is known of the tree is kept, the rest is the best given that, and all probabilities are conditioned on it.
        For one sentence, give the known `heads` (n+1 entries, heads[0] being -1, and -1 or None where unknown), their
        `labels`, and arcs (head, modifier) to `forbid`. With `keep_heads`, every `Sentence` keeps the heads and labels
        that it has, as do partial ones (`read_treebank(..., partial=True)`). NoTreeError names words that contradict.

        >>> parser = Parser.load("en")
        >>> words = ["Visiting", "relatives", "can", "be", "boring", "."]
        >>> parser.parse(words).heads
        array([-1,  5,  1,  5,  5,  0,  5])
        >>> parser.parse(words, heads=[-1, 2, -1, -1, -1, -1, -1]).heads
        array([-1,  2,  5,  5,  5,  0,  5])
        """
        options, executor = Options(mbr, exact, seconds), executor_for(threads)
        parsed = partial(self._parse_each, options=options, executor=executor, retag=retag)
        if isinstance(text, str | Sentence) or is_tokens(text):
            given = _no_draft(text) if isinstance(text, Sentence) else cast(Text, text)
            if heads is None and labels is None and forbid is None and not keep_heads:
                [tree] = next(parsed([given]))
                return tree
            sentence = _with_known(self._sentence(given), heads, labels, keep_heads)
            [tree] = next(parsed([sentence], known=partial(constraints_of, forbid=() if forbid is None else forbid)))
            return tree
        if isinstance(text, bytes) or not isinstance(text, Iterable):
            raise _no_sentence(text)
        if heads is not None or labels is not None or forbid is not None:
            raise ArgumentError(
                "heads, labels and arcs to forbid are those of one sentence, and there are many; expected partial "
                "sentences and keep_heads=True"
            )
        for each in text if isinstance(text, list | tuple) else ():
            _require_sentence(each)
        return chain.from_iterable(parsed(text, known=constraints_of if keep_heads else None))

    def __call__(
        self,
        text: str,
        *,
        newlines: Newlines = "auto",
        mbr: bool = False,
        exact: bool = True,
        seconds: float | None = None,
        threads: int = 1,
    ) -> Document:
        """A text with its sentences and words as objects; all of it is parsed at once.

        `parse` is for sentences that are split already, `parse_text` for texts whose trees are too many to be held.
        """
        parsed = self.parse_text(text, newlines=newlines, mbr=mbr, exact=exact, seconds=seconds, threads=threads)
        return Document(text, tuple(parsed))

    def parse_text(
        self,
        text: str,
        *,
        newlines: Newlines = "auto",
        mbr: bool = False,
        exact: bool = True,
        seconds: float | None = None,
        threads: int = 1,
    ) -> Iterator[Parsed]:
        """The trees of all sentences of a text, which is split into sentences and words (see `sentences`)."""
        found = self.drafts(text, newlines=newlines)
        return self.parse(found, mbr=mbr, exact=exact, seconds=seconds, threads=threads)

    def sentences(self, text: str, offset: int = 0, *, newlines: Newlines = "auto") -> list[Sentence]:
        """The sentences of a text, split into words; `offset` is where it begins in a larger one.

        A blank line always ends a sentence. A single line end does where it looks like one ("auto"), always ("keep"),
        or no more than a space does ("ignore").
        """
        found = self.drafts(text, offset, newlines=newlines)
        if learnt_ends(self.model) is None:
            return found
        some = portions(found, self._at_once)
        trees = chain.from_iterable(predict_drafts(self.model, portion, Options(), SERIAL) for portion in some)
        return [sentence for own in trees for sentence, _ in own]

    def sentence(self, text: str, offset: int = 0) -> Sentence:
        """All of the text as one sentence, split into words."""
        return self._require_segmenter().sentence(text, offset)

    def drafts(self, text: str, offset: int = 0, *, newlines: Newlines = "auto") -> list[Sentence]:
        """The sentences of a text for `parse` or `parse_each`, which may cut them further while it finds their trees.

        Only a model with a second look at sentence ends does that (`headway.neural.sentence_ends`); for others, these
        are the sentences. `sentences` gives what they become, and takes as long as parsing.
        """
        if not isinstance(text, str):
            raise ArgumentError(f"expected a text, got {type(text).__name__}; give one string")
        segmenter, ends = self._require_segmenter(), learnt_ends(self.model)
        if ends is None:
            return segmenter.sentences(text, offset, newlines=newlines)
        return segmenter.drafts(text, ends.doubt, offset, newlines=newlines)

    def require_text(self, *, split: bool = True) -> None:
        """Refuse text, to be split into words or not, if the model cannot split or tag it."""
        if split:
            self._require_segmenter()
        if self.needs_tags:
            raise TrainingError(
                "the model has no tagger, as it was trained on gold tags; give it a treebank with tags, or train a "
                "model with --tags predicted"
            )

    def _require_segmenter(self) -> Segmenter:
        if self.segmenter is None:
            raise TrainingError(
                "the model cannot split text into words, as there were none to learn it from; give it tokens"
            )
        return self.segmenter

    def parse_each(
        self,
        drafts: Iterable[Sentence],
        *,
        mbr: bool = False,
        exact: bool = True,
        seconds: float | None = None,
        threads: int = 1,
    ) -> Iterator[list[Parsed]]:
        """For each sentence its tree, for each draft (`drafts`) those of the sentences that it turns out to be."""
        return self._parse_each(drafts, Options(mbr, exact, seconds), executor_for(threads), retag=False)

    def _parse_each(
        self,
        texts: Iterable[Text],
        options: Options,
        executor: Executor,
        retag: bool,
        known: Callable[[Sentence], Constraints | None] | None = None,
    ) -> Iterator[list[Parsed]]:
        for portion in portions(map(self._sentence, texts), self._at_once):
            some = portion if self.tagger is None else self.tagger.complete(portion, replace_all=retag)
            constraints = None if known is None else [known(sentence) for sentence in portion]
            for own in predict_drafts(self.model, some, options, executor, constraints):
                yield [_parsed(sentence, found, retag) for sentence, found in own]

    @property
    def _at_once(self) -> int:
        """How many sentences are held: a GPU wants more."""
        found: int = getattr(self.model, "sentences_at_once", SENTENCES)
        return found

    def _sentence(self, text: Text) -> Sentence:
        """Words, whatever was given."""
        if isinstance(text, Sentence):
            return text
        _require_sentence(text)
        if self.needs_tags:
            raise TrainingError(
                "the model has no tagger, as it was trained on gold tags; give it sentences with tags "
                "(Sentence.from_words), or train one with tags='predicted'"
            )
        return self._require_segmenter().sentence(text) if isinstance(text, str) else sentence_of(text)


def _parsed(sentence: Sentence, found: Prediction, retag: bool) -> Parsed:
    own = completed(sentence, found.columns, replace_all=retag) if found.columns else sentence
    tree = own.with_tree(found.heads, found.labels)
    return Parsed(tree, found.distribution, found.status, found.gap, found.floored, found.label_probabilities)


def _on_device(model: TreeModel, device: str) -> TreeModel:
    if device not in DEVICES:
        raise ArgumentError(f"device is {device!r}; expected one of {', '.join(DEVICES)}")
    move: Callable[[str], TreeModel] | None = getattr(model, "on_device", None)
    if move is not None:
        return move(device)
    if device == "cuda":
        raise ArgumentError(f"a model of the kind {model.kind} parses on the CPU; only neural models use a GPU")
    return model


def _with_known(
    sentence: Sentence,
    heads: Heads | None,
    labels: Sequence[str | None] | None,
    keep: bool,
) -> Sentence:
    """The sentence with the heads and labels that are given for it, or with its own if these are to be kept."""
    if keep and (heads is not None or labels is not None):
        raise ArgumentError("heads are given, and the sentence's own are to be kept; expected one or the other")
    if keep:
        return sentence
    if heads is None:
        if labels is not None:
            raise ArgumentError("labels are given without heads; expected a head for every word with a known label")
        return replace(sentence, heads=None, labels=None)
    known: Any = [-1 if h is None else h for h in heads] if isinstance(heads, list | tuple) else heads
    names: Any = labels
    if isinstance(labels, list | tuple):
        names = [*labels[:1], *("_" if label is None else label for label in labels[1:])]
    return sentence.with_tree(known, names, partial=True)


def _no_draft(sentence: Sentence) -> Sentence:
    """One sentence stays one."""
    return sentence if sentence.layout.joints is None else pieces_of(sentence, ())[0]


def _require_sentence(given: object) -> None:
    if not (isinstance(given, str | Sentence) or is_tokens(given) or given == []):
        raise _no_sentence(given)


def _no_sentence(given: object) -> ArgumentError:
    return ArgumentError(
        f"expected a sentence (a string, a list of tokens, a Sentence) or many, got {type(given).__name__}; "
        "read files with headway.read_treebank"
    )
