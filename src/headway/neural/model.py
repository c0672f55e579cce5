"""A neural parser in use: a reader, a network on ONNX Runtime, exact trees; tags and labels from the same network.

    sentences --reader--> batches --network--> arc scores --decoder--> trees --network--> labels

Arc scores are divided by a temperature, which changes probabilities and never the best tree (Guo et al. 2017); label
scores by one of their own. Arc scores may have one for each sentence besides (`sentence_temperature.py`). Lemmas may go
by the rules of the training words in place of the network's edits (`lemma_rules.py`). Drafts, of which it is not sure
that they are one sentence, may be cut while their trees are found (`sentence_ends.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from headway.archive import Archive
from headway.arrays import Bools, Floats, Ints, TreeClass
from headway.errors import ArchiveError, printable
from headway.extras import require_working_extra
from headway.models.constraints import Constraints, allowed_arcs, mask_arcs
from headway.models.description import labels_table
from headway.models.labelling import NamedLabels, most_probable
from headway.models.protocol import Description, Options, Prediction, Task, TreeModel
from headway.models.root_labels import mask_labels, roots_of
from headway.models.saved import about_of, trees_of
from headway.models.tree_decoder import TreeDecoder
from headway.neural.lexicon import LexiconReader
from headway.neural.reading import Reader, groups_by_size
from headway.neural.sentence_ends import MIDDLE, SentenceEnds
from headway.neural.sentence_temperature import SentenceTemperature
from headway.neural.session import Session
from headway.neural.subwords import SubwordReader
from headway.neural.targets import NONE, Tasks
from headway.parallel import SERIAL, Executor
from headway.saved_values import mapping, number
from headway.text.lemmatiser import Lemmatiser
from headway.treebank import Sentence, require_tree
from headway.treebank.raw_text import pieces_of

Outputs = dict[str, NDArray[np.float32]]

_READERS: Mapping[str, type[LexiconReader | SubwordReader]] = {
    reader.kind: reader for reader in (LexiconReader, SubwordReader)
}
_ROUNDED = ("float32", "int8")  # the weights whose scores on development trees are kept
_MOST = 256  # subwords of a batch, padding included: what is fastest
_ROWS = 128  # words whose labels are scored at once: their products fit the cache


@dataclass(frozen=True, repr=False)
class NeuralModel:
    """`labels` scores the labels of chosen arcs, None where there are none; `roots` are for the root's children."""

    reader: Reader
    network: Session
    labels: Session | None
    tasks: Tasks
    decoder: TreeDecoder
    about: Mapping[str, Any]
    roots: tuple[str, ...] = ()
    temperature: float = 1.0
    label_temperature: float = 1.0
    sentence_temperature: SentenceTemperature | None = None
    lemmatiser: Lemmatiser | None = None
    ends: SentenceEnds | None = None

    kind: ClassVar[str] = "neural"
    task: ClassVar[Task] = "parsing"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.trees}>"

    @classmethod
    def of_graphs(
        cls,
        reader: Reader,
        tasks: Tasks,
        network: bytes,
        labels: bytes | None,
        trees: TreeClass,
        about: Mapping[str, Any],
        roots: tuple[str, ...] = (),
        temperature: float = 1.0,
        label_temperature: float = 1.0,
        *,
        ends: SentenceEnds | None = None,
    ) -> NeuralModel:
        """A model of what `headway.neural.export` makes; a ValueError where the graphs do not fit the rest.

        With `ends`, the network has the output that these need (`headway.neural.sentence_ends_training`).
        """
        if (labels is None) != (not tasks.labels):
            raise ValueError("there is a network for labels without labels, or labels without one")
        outputs = [
            "arcs",
            *(["label_heads", "label_modifiers"] if tasks.labels else []),
            *(["tags"] if tasks.tags else []),
            *([MIDDLE] if ends else []),
        ]
        return cls(
            reader,
            Session(network, reader.inputs, outputs),
            None if labels is None else Session(labels, ("heads", "modifiers"), ("labels",)),
            tasks,
            TreeDecoder(trees),
            about,
            roots,
            temperature,
            label_temperature,
            ends=ends,
        )

    @property
    def trees(self) -> TreeClass:
        return self.decoder.trees

    def with_trees(self, trees: TreeClass) -> NeuralModel:
        """The same weights, for trees of another class."""
        return replace(self, decoder=replace(self.decoder, trees=trees))

    def on_device(self, device: str) -> TreeModel:
        """The same model on torch's device "cuda"; "auto" takes that if there is one, "cpu" is where it is already."""
        if device == "cpu":
            return self
        if device == "auto" and find_spec("torch") is None:
            return self
        require_working_extra("torch", "neural", "a GPU")
        from headway.neural.device import DeviceModel, device_of

        found = device_of(device)
        return self if found is None else DeviceModel.of(self, found)

    @property
    def requires(self) -> frozenset[str]:
        return self.reader.requires

    @property
    def gives(self) -> frozenset[str]:
        """The columns that it predicts with the tree."""
        return self.tasks.names_of_columns

    def predict(
        self,
        given: Sequence[Sentence],
        options: Options,
        executor: Executor,
        constraints: Sequence[Constraints | None] | None = None,
    ) -> list[Prediction]:
        """The trees of some sentences, in their order."""
        reading = self.reader.read(given)
        groups = list(groups_by_size(reading.sizes, _MOST))

        def parsed(which: Ints) -> list[Prediction]:
            outputs = self._scores(reading.batch(which), reading.lengths[which])
            allowed = allowed_arcs(constraints, which, outputs["arcs"].shape[1])
            return self._predicted([given[i] for i in which.tolist()], outputs, allowed, options, SERIAL)

        found: dict[int, Prediction] = {}
        for which, some in zip(groups, executor.map(parsed, groups), strict=True):
            found |= zip(which.tolist(), some, strict=True)
        return [found[i] for i in range(len(given))]

    def predict_drafts(
        self, drafts: Sequence[Sentence], options: Options, executor: Executor
    ) -> list[list[tuple[Sentence, Prediction]]]:
        """The sentences that each draft is, with their trees; the model has `ends`."""
        ends = self.ends
        assert ends is not None
        reading = self.reader.read(drafts)
        groups = list(groups_by_size(reading.sizes, _MOST))

        def parsed(which: Ints) -> list[tuple[list[Sentence], Prediction | None]]:
            """The sentences of each draft, and its tree where it is one of them."""
            inputs, some = reading.batch(which), [drafts[i] for i in which.tolist()]
            outputs = self._scores(inputs, reading.lengths[which], (MIDDLE,))
            pieces = list(map(pieces_of, some, ends.found(some, inputs["words"], outputs.pop(MIDDLE, None))))
            whole = np.flatnonzero([len(own) == 1 for own in pieces])
            kept = outputs if len(whole) == len(some) else {name: each[whole] for name, each in outputs.items()}
            left = [own[0] for own in pieces if len(own) == 1]
            trees = iter(self._predicted(left, kept, None, options, SERIAL) if left else ())
            return [(own, next(trees) if len(own) == 1 else None) for own in pieces]

        found: dict[int, tuple[list[Sentence], Prediction | None]] = {}
        for which, some in zip(groups, executor.map(parsed, groups), strict=True):
            found |= zip(which.tolist(), some, strict=True)
        known = [found[i] for i in range(len(drafts))]
        cut = [one for own, tree in known if tree is None for one in own]
        again = iter(self.predict(cut, options, executor))
        return [[(one, tree or next(again)) for one in own] for own, tree in known]

    def _scores(self, inputs: Mapping[str, NDArray[np.int64]], lengths: Ints, more: tuple[str, ...] = ()) -> Outputs:
        """What the network makes of a batch, its shapes checked; `more` are outputs besides."""
        batch, nodes = len(lengths), int(lengths.max(initial=0)) + 1
        width = self.tasks.width
        if nodes == 1:
            return {"arcs": np.zeros((batch, 1, 1), np.float32), "tags": np.zeros((batch, 1, width), np.float32)}
        found = self.network.run(inputs, [name for name in self.network.outputs if name != MIDDLE or name in more])
        fits = found["arcs"].shape == (batch, nodes, nodes) and all(
            scores.shape[:2] == (batch, nodes) for name, scores in found.items() if name != MIDDLE
        )
        if not fits or (width and found["tags"].shape[2] != width):
            raise misshapen()
        if not np.isfinite(found["arcs"]).all():
            raise not_finite("arcs")
        return found

    def _predicted(
        self,
        sentences: Sequence[Sentence],
        outputs: Outputs,
        allowed: Bools | None,
        options: Options,
        executor: Executor,
    ) -> list[Prediction]:
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        arcs = outputs["arcs"].astype(np.float64) / self.temperature
        if self.sentence_temperature is not None and "label_modifiers" in outputs:
            arcs /= self.sentence_temperature.temperatures(arcs, outputs["label_modifiers"], lengths)[:, None, None]
        arcs = mask_arcs(arcs, allowed)
        trees = self.decoder.decode(arcs, lengths, options, executor)
        ends = [0, *accumulate(lengths.tolist())]
        rows, words = (np.concatenate(parts) for parts in cells(lengths))
        heads = np.concatenate([np.zeros(0, np.int64), *(tree.heads[1:] for tree in trees)])
        scores = self._label_scores(heads, outputs, rows, words)
        chosen = None if scores is None else most_probable(scores / self.label_temperature)
        forms = [form for sentence in sentences for form in sentence.forms]
        columns = self.columns(forms, self._values(outputs["tags"][rows, words])) if self.tasks.tags else {}
        found = []
        for tree, (start, end) in zip(trees, pairwise(ends), strict=True):
            labels = NamedLabels() if chosen is None else chosen.named(self.tasks.labels, slice(start, end))
            own = {name: column[start:end] for name, column in columns.items()} or None
            found.append(
                Prediction(
                    tree.heads,
                    labels.names,
                    tree.distribution,
                    tree.status,
                    tree.gap,
                    columns=own,
                    label_probabilities=labels.probabilities,
                )
            )
        return found

    def columns(self, forms: Sequence[str], chosen: Mapping[str, Ints]) -> dict[str, tuple[str, ...]]:
        """The columns of words for which these values were chosen, by task."""
        if self.lemmatiser is None:
            return self.tasks.columns(forms, chosen)
        found = self.tasks.columns(forms, {name: values for name, values in chosen.items() if name != "lemmas"})
        tags = zip(*(found.get(name, (NONE,) * len(forms)) for name in ("upos", "xpos", "feats")), strict=True)
        return {**found, "lemmas": self.lemmatiser.lemmas(forms, tags)}

    def label_scores(self, given: Sequence[Sentence]) -> Floats:
        """The scores (M, L) of labels for the words of all sentences, which have trees; -inf where the head rules one
        out."""
        reading, found = self.reader.read(given), [np.zeros((0, len(self.tasks.labels)))] * len(given)
        for which in groups_by_size(reading.sizes, _MOST):
            outputs = self._scores(reading.batch(which), reading.lengths[which])
            for row, i in enumerate(which.tolist()):
                heads = require_tree(given[i])[1:]
                scores = self._label_scores(heads, outputs, np.full(len(heads), row), np.arange(1, len(heads) + 1))
                found[i] = found[i] if scores is None else scores
        return np.concatenate(found)

    def _label_scores(self, heads: Ints, outputs: Outputs, rows: Ints, words: Ints) -> Floats | None:
        """The scores (M, L) of labels for words with these heads, -inf where a head rules one out; None without labels.

        `rows` and `words` say where each word is in the batch.
        """
        if self.labels is None:
            return None
        if not len(rows):
            return np.zeros((0, len(self.tasks.labels)))
        own, above = outputs["label_modifiers"][rows, words], outputs["label_heads"][rows, heads]
        scores = np.concatenate(
            [
                self.labels.run({"heads": above[start : start + _ROWS], "modifiers": own[start : start + _ROWS]})[
                    "labels"
                ]
                for start in range(0, len(rows), _ROWS)
            ]
        )
        names = self.tasks.labels
        if scores.shape != (len(rows), len(names)):
            raise misshapen()
        if not np.isfinite(scores).all():
            raise not_finite("labels")
        return mask_labels(scores.astype(np.float64), heads, names, self.roots)

    def _values(self, scores: NDArray[np.float32]) -> dict[str, Ints]:
        """The number of the best value of every word (M, K), by task."""
        sizes = [self.tasks.sizes[name] for name in self.tasks.tags]
        edges = pairwise(accumulate(sizes, initial=0))
        return {
            name: scores[:, start:end].argmax(axis=1) for name, (start, end) in zip(self.tasks.tags, edges, strict=True)
        }

    def describe(self) -> Description:
        sizes, labels = self.tasks.sizes, self.tasks.labels
        weights = len(self.network.graph) + (len(self.labels.graph) if self.labels else 0)
        return Description(
            rows=(
                ("model", self.kind),
                ("trees", str(self.trees)),
                *_encoder_row(self.about),
                ("reads", self.reader.description),
                ("also finds", self.tasks.description),
                ("network", f"{weights / 1e6:.1f} MB"),
                ("temperature", f"{self.temperature:.4g}"),
                *_rounding_rows(self.about),
            ),
            tables=(labels_table(labels),),
            data={
                "model": self.kind,
                "about": dict(self.about),
                **self.trees._asdict(),
                "labels": list(labels),
                "values": sizes,
                "reads": self.reader.description,
                "bytes": weights,
                "temperature": self.temperature,
                "label_temperature": self.label_temperature,
                "tags": sizes.get("upos", sizes.get("xpos", 0)),
            },
        )

    def to_archive(self) -> Archive:
        """The graphs as bytes, what is read and what is found as JSON."""
        data = {
            "about": dict(self.about),
            **self.trees._asdict(),
            "reader": {"kind": self.reader.kind, **self.reader.to_data()},
            "tasks": self.tasks.to_data(),
            "roots": list(self.roots),
            "temperature": self.temperature,
            "label_temperature": self.label_temperature,
        }
        ends = None if self.ends is None else self.ends.network
        graphs = {"network": self.network, "labels": self.labels, "ends": ends}
        arrays = {name: np.frombuffer(each.graph, np.uint8) for name, each in graphs.items() if each is not None}
        if self.sentence_temperature is not None:
            data["sentence_temperature"] = self.sentence_temperature.to_data()
        if self.lemmatiser is not None:
            data["lemmatiser"] = self.lemmatiser.to_data()
        if self.ends is not None:
            data["ends"] = self.ends.to_data()
        return Archive(self.kind, data, arrays)

    @classmethod
    def from_archive(cls, archive: Archive) -> NeuralModel:
        """The model that was saved; a built-in error of lookup or value where the archive is damaged."""
        data = archive.data
        reader = mapping(data["reader"], "the reader")
        tasks = Tasks.from_data(mapping(data["tasks"], "the tasks"))
        temperature = _temperature(data["temperature"])
        label_temperature = _temperature(data.get("label_temperature", 1.0))  # older models have none
        ends = None
        if "ends" in data:
            ends = SentenceEnds.from_data(mapping(data["ends"], "the sentence ends"), _bytes(archive, "ends"))
        made = cls.of_graphs(
            _READERS[reader["kind"]].from_data(reader),
            tasks,
            _bytes(archive, "network"),
            _bytes(archive, "labels") if tasks.labels else None,
            trees_of(data),
            about_of(data),
            roots_of(data, tasks.labels),
            temperature,
            label_temperature,
            ends=ends,
        )
        if "sentence_temperature" in data:
            saved = mapping(data["sentence_temperature"], "the sentence temperature")
            made = replace(made, sentence_temperature=SentenceTemperature.from_data(saved))
        if "lemmatiser" in data:
            made = replace(made, lemmatiser=Lemmatiser.from_data(mapping(data["lemmatiser"], "the lemmatiser")))
        return made


def _temperature(saved: Any) -> float:
    temperature = number(saved, "the temperature")
    if not 1e-6 <= temperature <= 1e6:
        raise ValueError(f"the temperature is {temperature:g}, which no calibration gives")
    return temperature


def _encoder_row(about: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    settings = about.get("settings")
    name = settings.get("encoder") if isinstance(settings, Mapping) else None
    return (("encoder", printable(name)),) if isinstance(name, str) else ()


def _rounding_rows(about: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What weights of one byte cost on the development treebank; nothing where the file does not say."""
    try:
        found = {name: about["rounding"][name] for name in _ROUNDED}
        kinds = ("uas", "las") if all("las" in own for own in found.values()) else ("uas",)
        shown = [f"{name} {' / '.join(f'{own[kind]:.2f}' for kind in kinds)}" for name, own in found.items()]
    except (LookupError, TypeError, ValueError):
        return ()
    return ((f"{' / '.join(kinds).upper()} on dev", ", ".join(shown)),)


def misshapen() -> ArchiveError:
    """The error of a network that does not go with the rest of its model."""
    return ArchiveError("the network of the model gives scores of another shape than it should; save it again")


def not_finite(what: str) -> ArchiveError:
    """The error of a network among whose scores of arcs or labels are some that say nothing."""
    return ArchiveError(f"the network of the model gives {what} scores that are not finite; save it again")


def cells(lengths: Ints) -> tuple[list[Ints], list[Ints]]:
    """The row and the place of every word of a padded batch, sentence by sentence."""
    return [np.full(n, b) for b, n in enumerate(lengths.tolist())], [np.arange(1, n + 1) for n in lengths.tolist()]


def _bytes(archive: Archive, name: str) -> bytes:
    array = archive.arrays[name]
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ValueError(f"{name} is no row of bytes")
    return array.tobytes()
