"""Tokens, words and sentences from raw text: Headway's segmenter beside light libraries, on the development sets of UD.

    python experiments/segmentation/compare.py --data ../shared/data/ud [--only NAME ...]

Everything gets the raw text that `raw_text` builds, one paragraph at a time. Scores are F1 by the definitions of
CoNLL 2018: spans over the characters that are not white space; words by its alignment. Speed is characters per second
of processor time in one thread, the best of three runs. Segmenters that learn do so from the train set; the test sets
are not touched. UDPipe's model is kept in $UDPIPE_MODELS (/tmp) and not trained again. Writes results.json and
README.md beside this file; a peer that is not installed keeps the row it had there.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

from headway import __version__
from headway.evaluation import evaluate_conll2018
from headway.text.segmenter import Segmenter
from headway.training import checksum
from headway.treebank import Sentence, read_treebank
from headway.treebank.raw_text import raw_text, tokens_of

HERE = Path(__file__).parent
TREEBANKS = {
    "English-EWT": "UD_English-EWT/en_ewt",
    "Portuguese-Bosque": "UD_Portuguese-Bosque/pt_bosque",
    "Hungarian-Szeged": "UD_Hungarian-Szeged/hu_szeged",
}
UDPIPE_OPTIONS = "dimension=24;epochs=30;early_stopping=0"
Split = Callable[[str], Iterable[Sequence[str] | Sentence]]  # a paragraph -> sentences, as tokens or with words


INTRODUCTION = """\
# Tokens, words and sentences from raw text

    python experiments/segmentation/compare.py --data DIR     # DIR holds UD_English-EWT and so on

Written by that command, which says how it measures. F1 on the development sets, from raw text with its paragraphs;
what learns has learnt from the train set. Features and settings were chosen on documents held out from EWT's train set
(every tenth document, since its last tenth is reviews only); the test sets were not touched. UDPipe was not tuned, but
trained with `dimension=24;epochs=30`. NLTK's punkt is untrained, since its English model is a download. Peers that
split "don't" into two tokens, which UD has as one token of two words, lose in tokens but not in words.

| treebank | segmenter | version | tokens | words | sentences | characters/s |
| --- | --- | --- | --- | --- | --- | --- |"""


@dataclass(frozen=True)
class Corpus:
    """A treebank's train and dev sentences, and the raw text of dev by paragraph."""

    name: str
    train: list[Sentence]
    dev: list[Sentence]
    paragraphs: list[str]


def corpus(name: str, folder: Path) -> Corpus:
    train, dev = (list(read_treebank(f"{folder / TREEBANKS[name]}-ud-{part}.conllu.gz")) for part in ("train", "dev"))
    return Corpus(name, train, dev, raw_text(dev).text.split("\n\n"))


# Each peer: its distributions, and a function from the corpus to what splits one paragraph.


def _headway(data: Corpus) -> Split:
    return Segmenter.learn(data.train).sentences


def _udpipe(data: Corpus) -> Split:
    udpipe = import_module("ufal.udpipe")
    path = Path(os.environ.get("UDPIPE_MODELS", "/tmp")) / f"udpipe-{data.name}-{checksum(data.train)}.model"
    if not path.exists():
        train, none = _udpipe_sentences(udpipe, data.train), udpipe.Sentences()
        error = udpipe.ProcessingError()
        model = udpipe.Trainer.train("morphodita_parsito", train, none, UDPIPE_OPTIONS, "none", "none", error)
        if error.occurred():
            raise RuntimeError(error.message)
        path.write_bytes(model)
    model = udpipe.Model.load(str(path))
    reader = model.newTokenizer(udpipe.Model.DEFAULT)
    writer = udpipe.OutputFormat.newOutputFormat("conllu")

    def split(text: str, _: Any = model) -> Iterator[Sentence]:  # the reader does not keep its model alive
        reader.setText(text)
        found = udpipe.Sentence()
        lines = []
        while reader.nextSentence(found, udpipe.ProcessingError()):
            lines.append(writer.writeSentence(found))
        return read_treebank(io.StringIO("".join(lines)))

    return split


def _udpipe_sentences(udpipe: Any, sentences: Sequence[Sentence]) -> Any:
    reader = udpipe.InputFormat.newInputFormat("conllu")
    reader.setText("".join(sentence.to_conllu() for sentence in sentences))
    all_of_them = udpipe.Sentences()
    found = udpipe.Sentence()
    while reader.nextSentence(found, udpipe.ProcessingError()):
        all_of_them.append(found)
        found = udpipe.Sentence()
    return all_of_them


def _syntok(_: Corpus) -> Split:
    segmenter = import_module("syntok.segmenter")
    tokenizer = import_module("syntok.tokenizer").Tokenizer(True, False)  # hyphens are tokens, "n't" stays

    def split(text: str) -> Iterator[Sequence[str]]:
        for sentence in segmenter.split(iter(tokenizer.split(text))):
            yield [token.value for token in sentence]

    return split


def _segtok(_: Corpus) -> Split:
    split = import_module("segtok.segmenter").split_single
    tokenizer = import_module("segtok.tokenizer")

    def tokens(text: str) -> Iterator[Sequence[str]]:
        for sentence in split(text):
            if sentence.strip():
                yield [t for token in tokenizer.web_tokenizer(sentence) for t in tokenizer.split_contractions([token])]

    return tokens


def _spacy(_: Corpus) -> Split:
    nlp = import_module("spacy").blank("en")
    nlp.add_pipe("sentencizer")
    return lambda text: [[token.text for token in sentence if not token.is_space] for sentence in nlp(text).sents]


def _nltk(_: Corpus) -> Split:
    punkt = import_module("nltk.tokenize.punkt").PunktSentenceTokenizer()  # untrained: the English model is a download
    words = import_module("nltk.tokenize").NLTKWordTokenizer()

    def split(text: str) -> Iterator[Sequence[str]]:
        for sentence in punkt.tokenize(text):
            yield [sentence[start:end] for start, end in words.span_tokenize(sentence)]

    return split


def _sacremoses(_: Corpus) -> Split:
    words = import_module("sacremoses").MosesTokenizer("en")
    return lambda text: [words.tokenize(text, escape=False)]  # has no sentence splitter


PEERS: dict[str, tuple[str, Callable[[Corpus], Split]]] = {
    "headway": ("", _headway),
    "UDPipe 1 (trained here)": ("ufal.udpipe", _udpipe),
    "spaCy blank + sentencizer": ("spacy", _spacy),
    "syntok": ("syntok", _syntok),
    "segtok": ("segtok", _segtok),
    "NLTK words + untrained punkt": ("nltk", _nltk),
    "sacremoses (no sentences)": ("sacremoses", _sacremoses),
}


def measure(split: Split, data: Corpus) -> dict[str, float]:
    """F1 and speed on the dev set."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        found = [list(split(paragraph)) for paragraph in data.paragraphs]
        seconds.append(time.process_time() - start)
    predicted = [_sentence(one) for paragraph in found for one in paragraph if len(one)]
    tokens, sentences = (_f1(_spans(data.dev, unit), _spans(predicted, unit)) for unit in ("tokens", "sentences"))
    words = evaluate_conll2018(map(_chain, data.dev), map(_chain, predicted)).words.f1
    size = sum(map(len, data.paragraphs))
    return {
        "tokens": tokens,
        "words": words,
        "sentences": sentences,
        "characters_per_second": round(size / min(seconds), -3),
    }


def _sentence(found: Sequence[str] | Sentence) -> Sentence:
    return found if isinstance(found, Sentence) else Sentence.from_words("".join(token.split()) for token in found)


def _chain(sentence: Sentence) -> Sentence:
    """The sentence with some tree, which the scorer wants."""
    return sentence.with_tree(np.arange(-1, len(sentence)))


def _spans(sentences: Iterable[Sentence], unit: str) -> set[tuple[int, int]]:
    """Spans over the characters that are not white space."""
    spans = set()
    end = 0
    for sentence in sentences:
        first = end
        for token in tokens_of(sentence):
            start, end = end, end + len("".join(token.form.split()))
            if unit == "tokens":
                spans.add((start, end))
        if unit == "sentences":
            spans.add((first, end))
    return spans


def _f1(gold: set[tuple[int, int]], found: set[tuple[int, int]]) -> float:
    return 100 * 2 * len(gold & found) / (len(gold) + len(found))


def readme(results: dict[str, Any]) -> str:
    """The table, and what it was measured on."""
    lines = [INTRODUCTION]
    sums = []
    for name in TREEBANKS:
        found = results.get(name, {"rows": {}})
        for peer, row in sorted(found["rows"].items(), key=lambda item: -item[1]["words"]):
            scores = " | ".join(f"{row[unit]:.2f}" for unit in ("tokens", "words", "sentences"))
            speed = f"{row['characters_per_second']:,.0f}"
            lines.append(f"| {name} | {peer} | {row['version']} | {scores} | {speed} |")
        if "data" in found:
            sums.append(f"{name} train {found['data']['train']}, dev {found['data']['dev']}")
    lines += ["", f"Data (checksums of `headway.training.checksum`): {'; '.join(sums)}. {results['machine']}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure every peer on EWT, and Headway's segmenter on the other treebanks too."""
    options = argparse.ArgumentParser()
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--only", nargs="*", default=list(PEERS))
    options.add_argument("--treebank", nargs="*", default=list(TREEBANKS))
    chosen = options.parse_args()
    if "headway" in chosen.only:  # compile first, then time
        Segmenter.learn([Sentence.from_words(["Dogs", "bark", "."])]).sentences("Dogs bark.")
    target = HERE / "results.json"
    results: dict[str, Any] = json.loads(target.read_text("utf-8")) if target.exists() else {}
    for name in chosen.treebank:
        data = corpus(name, chosen.data)
        rows = results.setdefault(name, {"data": {}, "rows": {}})
        rows["data"] = {"train": checksum(data.train), "dev": checksum(data.dev)}
        for peer in chosen.only:
            distribution, prepare = PEERS[peer]
            if name != "English-EWT" and peer != "headway":
                continue
            start = time.process_time()
            try:
                split = prepare(data)
            except ImportError:
                continue
            seconds = time.process_time() - start
            version = metadata.version(distribution) if distribution else __version__
            rows["rows"][peer] = {"version": version, **measure(split, data), "seconds_to_prepare": round(seconds, 1)}
            print(name, peer, rows["rows"][peer], flush=True)
            results["machine"] = f"{platform.machine()}, Python {platform.python_version()}"
            target.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
            (HERE / "README.md").write_text(readme(results), "utf-8")


if __name__ == "__main__":
    main()
