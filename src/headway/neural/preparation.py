"""What a network is trained on, and the network: sentences as numbers, tasks, settings, and the answers of teachers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from headway.arrays import Bools
from headway.features.coding import Coder
from headway.features.rule_features import RuleFeatures
from headway.features.rules import Rules
from headway.neural.batching import Annotated
from headway.neural.encoders.lstm import LstmEncoder
from headway.neural.encoders.transformer import Folder, TransformerEncoder
from headway.neural.lexicon import LexiconReader
from headway.neural.model import NeuralModel
from headway.neural.network import Network
from headway.neural.reading import Reader
from headway.neural.settings import OF_LSTM, OF_TRANSFORMER, NetworkSettings
from headway.neural.targets import Tasks
from headway.neural.teaching import Answers, ask, require_tasks
from headway.training.data import TrainingData
from headway.training.development import scored_words
from headway.training.rules_trainer import matched
from headway.training.settings import LSTM, Settings
from headway.treebank import Sentence

_RULES_BATCH = 500  # words, as rules take many steps to be met, and texts may be small


@dataclass(frozen=True)
class Prepared:
    """Sentences as numbers, and the network that is to read them."""

    reader: Reader
    tasks: Tasks
    train: Annotated
    dev: Annotated | None
    text: Annotated | None
    counted: Bools | None
    network: Network
    sizes: NetworkSettings
    rules: RuleFeatures | None = None
    answers: Answers | None = None  # of teachers, about `text`


def prepare(
    data: TrainingData,
    settings: Settings,
    device: torch.device,
    sizes: NetworkSettings | None = None,
    rules: Rules | None = None,
    teachers: Sequence[NeuralModel] = (),
) -> Prepared:
    """Number what there is to number, make a network, of the usual `sizes` where none are given, and ask teachers."""
    torch.manual_seed(settings.seed)
    sentences = [sentence for sentence in data.train if sentence.heads is not None or rules is not None]
    sizes = sizes or network_settings(settings)
    gold_tags = settings.tags == "gold"
    tasks = Tasks.learn(sentences, tags=not gold_tags, labels=settings.labels != "none")
    reader: Reader
    encoder: nn.Module
    if settings.encoder == LSTM:
        reader = LexiconReader.learn([*sentences, *data.text], tags=gold_tags)
        encoder = LstmEncoder(
            reader.sizes, embedding=sizes.embedding, hidden=sizes.hidden, layers=sizes.layers, dropout=sizes.dropout
        )
    else:
        folder = Folder.open(settings.encoder)
        reader, pretrained = folder.reader(), TransformerEncoder(folder.config)
        folder.load(pretrained.model)
        encoder = pretrained
    network = Network(
        encoder, tasks.sizes, arc_size=sizes.arc_size, label_size=sizes.label_size, dropout=sizes.dropout
    ).to(device)
    text, answers = None, None
    if teachers:
        for teacher in teachers:
            require_tasks(teacher, tasks)
        asked = data.text or sentences
        answers = ask(teachers, asked, settings.trees, device)
        text = Annotated(reader.read(asked), answers.heads, answers.values)
    elif data.text:
        text = annotated(data.text, reader, tasks)
    return Prepared(
        reader,
        tasks,
        annotated(sentences, reader, tasks),
        None if data.dev is None else annotated(data.dev, reader, tasks),
        text,
        None if data.dev is None else scored_words(data.dev),
        network,
        sizes,
        None if rules is None else _matched(rules, sentences),
        answers,
    )


def _matched(rules: Rules, sentences: Sequence[Sentence]) -> RuleFeatures:
    coder = Coder.learn(sentences)
    return matched(rules, coder, coder.code(sentences))


def network_settings(settings: Settings) -> NetworkSettings:
    """The sizes and rates that go with an encoder, with what the user asks for."""
    base = OF_LSTM if settings.encoder == LSTM else OF_TRANSFORMER
    if settings.method == "constraints":
        base = replace(base, batch=_RULES_BATCH)
    return replace(
        base,
        epochs=settings.epochs or base.epochs,
        batch=settings.batch or base.batch,
        rate=base.rate if settings.rate is None else settings.rate,
        encoder_rate=settings.encoder_rate,
        dropout=settings.dropout,
        smoothing=settings.smoothing,
        seed=settings.seed,
    )


def annotated(sentences: Sequence[Sentence], reader: Reader, tasks: Tasks) -> Annotated:
    """Sentences as a network is trained on them; heads are -1 where they are unknown."""
    heads = np.full((len(sentences), max(map(len, sentences), default=0) + 1), -1, np.int64)
    for row, sentence in zip(heads, sentences, strict=True):
        if sentence.heads is not None:
            row[: len(sentence) + 1] = sentence.heads
    return Annotated(reader.read(sentences), heads, tasks.targets(sentences))
