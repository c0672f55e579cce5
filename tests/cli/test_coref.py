"""`headway coref`: from documents to a model, to clusters, to figures; what is said when that cannot be."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headway
from headway.coreference import read_documents, tree_mentions
from headway.coreference.resolver import Resolver
from headway.coreference.scores import CoreferenceScores, Ratio, evaluate_coreference
from headway.coreference.settings import ResolverSettings
from headway.embedded import embedded_models
from tests.cli import toy_coref
from tests.cli.conftest import Invoke, Spawn, one_error
from tests.cli.test_info import checksum

METRICS = {"mentions": "mentions", "MUC": "muc", "B-cubed": "b_cubed", "CEAF-m": "ceaf_m", "CEAF-e": "ceaf_e"}
METRICS |= {"BLANC": "blanc", "LEA": "lea"}
NO_MARKS = (
    "no document has Entity= marks; annotate mentions, or find them in the trees "
    "(headway coref resolve --mentions trees)"
)
TRAIN, TEST = 10, 4  # documents

# Anything that must come back as it was: a multiword token, an empty node, nested mentions, one with a gap, other MISC.
ODD = """\
# newdoc id = odd
# global.Entity = GRP-etype
# text = The dog that I'd met, the old one, met the dog.
# x
1\tThe\tthe\tDET\tDT\t_\t2\tdet\t2:det\tA=1|Entity=(9[1/2]-animal|Z=1
2\tdog\tdog\tNOUN\tNN\tNumber=Sing\t6\tnsubj\t6:nsubj\tEntity=9[1/2])
3-4\tI'd\t_\t_\t_\t_\t_\t_\t_\tX=y
3\tI\tI\tPRON\tPRP\t_\t6\tnsubj\t_\tEntity=(3-person)
4\thad\thave\tAUX\tVBD\t_\t6\taux\t_\t_
4.1\tgone\tgo\tVERB\t_\t_\t_\t_\t6:x\tCopyOf=4
5\told\told\tADJ\tJJ\t_\t2\tamod\t_\tEntity=(9[2/2]-animal)
6\tmet\tmeet\tVERB\tVBD\t_\t0\troot\t_\t_
7\tthe\tthe\tDET\tDT\t_\t8\tdet\t_\tEntity=(7-animal
8\tdog\tdog\tNOUN\tNN\tNumber=Sing\t6\tobj\t_\tb|Entity=7)
9\t.\t.\tPUNCT\t.\t_\t6\tpunct\t_\tB=2

"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents, and with a model of the first ones."""
    folder = tmp_path_factory.mktemp("coref")
    toy_coref.write(folder / "train.conllu", TRAIN, seed=1)
    toy_coref.write(folder / "test.conllu", TEST, seed=2)
    toy_coref.write(folder / "dev.conllu", 6, seed=3, unsure=True)
    (folder / "bare.conllu").write_text(toy_coref.text(toy_coref.documents(TEST, 2), marks=False), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def resolver(files: Path, invoke: Invoke) -> Path:
    path = files / "toy.coref"
    invoke("coref", "train", files / "train.conllu", "--epochs", 3, "-o", path)
    return path


def partitions(*sources: Path) -> list[list[frozenset[Any]]]:
    return [document.partition() for source in sources for document in read_documents(source)]


def as_sets(clusters: list[frozenset[Any]]) -> set[frozenset[Any]]:
    return set(clusters)


# Training


def test_train_parse_evaluate(invoke: Invoke, files: Path, tmp_path: Path) -> None:
    model, found = tmp_path / "m.coref", tmp_path / "found.conllu"
    done = invoke("coref", "train", files / "train.conllu", "--epochs", 3, "-o", model)
    about = Resolver.load(model).model.about
    mentions = sum(len(toy.mentions) for toy in toy_coref.documents(TRAIN, 1))
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"{model}: latent trees, temperature 30, margin 10, root weight 1, pass 3 of 3",
        f"headway {headway.__version__}, seed 0, {TRAIN} documents with {mentions} mentions "
        f"sha256 {about['train']['sha256']}",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["m.coref"]
    assert invoke("coref", "resolve", model, files / "test.conllu", "-o", found).output == ""
    scores = json.loads(invoke("coref", "evaluate", files / "test.conllu", found, "--json").stdout)
    assert scores["kept"]["conll"] > 0.9  # who has the same noun is the same; all apart have 0.6
    assert scores["kept"]["mentions"]["f1"] == 1


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("", {}),
        ("--margin 0 --root-weight 1.5 --types", {"margin": 0.0, "root_weight": 1.5, "types": True}),
        ("--stretch 0 --epochs 7 --patience 2", {"stretch": 0, "epochs": 7, "patience": 2}),
        ("--stretch 3 --seed 9", {"stretch": 3, "seed": 9}),
        ("--clusters --learn-mentions", {"clusters": True, "learn_mentions": True}),
    ],
)
def test_settings_reach_the_trainer(
    invoke: Invoke, monkeypatch: Any, files: Path, tmp_path: Path, words: str, changed: dict[str, Any]
) -> None:
    given: dict[str, Any] = {}

    def train(cls: Any, /, train: Any, dev: Any, **keywords: Any) -> Resolver:
        given.update(keywords, train=list(train), dev=dev)
        raise KeyboardInterrupt

    monkeypatch.setattr(Resolver, "train", classmethod(train))
    result = invoke("coref", "train", files / "train.conllu", *words.split(), "-o", tmp_path / "m", status=130)
    said = "headway: interrupted; nothing was written"
    assert (result.stdout, result.stderr.strip()) == ("", said)
    assert list(tmp_path.iterdir()) == []
    assert len(given.pop("train")) == TRAIN
    assert (given.pop("dev"), given.pop("show")) == (None, None)
    assert ResolverSettings(**given) == ResolverSettings(**changed)


def test_interrupted_while_it_learns_the_old_model_stays(
    invoke: Invoke, monkeypatch: Any, files: Path, tmp_path: Path
) -> None:
    def interrupt(*args: Any) -> None:
        raise KeyboardInterrupt

    (tmp_path / "m").write_text("old")
    monkeypatch.setattr("headway.coreference.resolver.LatentPerceptron.fit", interrupt)
    result = invoke("coref", "train", files / "train.conllu", "-o", tmp_path / "m", status=130)
    assert "interrupted; nothing was written" in result.stderr
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("m", "old")]


def test_the_seed_decides(invoke: Invoke, files: Path, resolver: Path, tmp_path: Path) -> None:
    words = ("coref", "train", files / "train.conllu", "--epochs", 3, "-o", tmp_path / "m")
    one = Resolver.load(resolver).model
    invoke(*words)
    again = Resolver.load(tmp_path / "m").model
    assert np.array_equal(again.weights, one.weights)
    assert again.about == one.about
    assert ", seed 7, " in invoke(*words, "--seed", 7).stdout
    assert not np.array_equal(Resolver.load(tmp_path / "m").model.weights, one.weights)


def test_development_documents_choose_the_pass(invoke: Invoke, files: Path, tmp_path: Path) -> None:
    dev, model, found = files / "dev.conllu", tmp_path / "m", tmp_path / "found.conllu"
    train = toy_coref.write(tmp_path / "train.conllu", TRAIN, seed=5, unsure=True)
    done = invoke("coref", "train", train, "--dev", dev, "--patience", 2, "--seed", 3, "-o", model)
    about = Resolver.load(model).model.about
    scores = [entry["dev"] for entry in about["history"]]
    best = 1 + scores.index(max(scores))
    assert min(scores) < max(scores) < 100
    assert (about["best_pass"], len(scores)) == (best, min(10, best + 2))
    assert f", pass {best} of 10, dev CoNLL {max(scores):.2f}\n" in done.stdout
    invoke("coref", "resolve", model, dev, "-o", found)
    scored = json.loads(invoke("coref", "evaluate", dev, found, "--json").stdout)
    assert 100 * scored["kept"]["conll"] == pytest.approx(max(scores))


def test_singletons_are_left_out_of_training_and_development(invoke: Invoke, files: Path, tmp_path: Path) -> None:
    words = ("--dev", files / "dev.conllu", "--drop-singletons", "--epochs", 2, "-o", tmp_path / "m")
    invoke("coref", "train", files / "train.conllu", *words)
    clusters = [cluster for toy in toy_coref.documents(TRAIN, 1) for cluster in toy.partition()]
    alone = sum(len(cluster) == 1 for cluster in clusters)
    about = Resolver.load(tmp_path / "m").model.about
    assert alone > 0
    assert about["train"]["mentions"] == sum(map(len, clusters)) - alone
    dropped = [d.without_singletons() for d in read_documents(files / "train.conllu")]
    dev = [d.without_singletons() for d in read_documents(files / "dev.conllu")]
    assert Resolver.train(dropped, dev, epochs=2).model.about == about


def test_types_are_used_if_asked_for(invoke: Invoke, files: Path, resolver: Path, tmp_path: Path) -> None:
    def of_types(path: Path) -> int:
        templates = Resolver.load(path).model.features.templates
        return sum(any(atom.endswith(".type") for atom in template) for template in templates)

    invoke("coref", "train", files / "train.conllu", "--types", "--epochs", 1, "-o", tmp_path / "m")
    assert of_types(resolver) == 0 < of_types(tmp_path / "m")


@pytest.mark.parametrize("name", ["a.conllu.gz", "crlf.conllu", "-"])
def test_training_documents_from_anywhere(
    invoke: Invoke, files: Path, resolver: Path, tmp_path: Path, name: str
) -> None:
    data = (files / "train.conllu").read_bytes()
    if name.startswith("crlf"):
        data = data.replace(b"\n", b"\r\n")
    source: Any = name
    if name != "-":
        source = tmp_path / name
        source.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    invoke("coref", "train", source, "--epochs", 3, "-o", tmp_path / "m", stdin=data)
    found, expected = Resolver.load(tmp_path / "m").model, Resolver.load(resolver).model
    assert np.array_equal(found.weights, expected.weights)
    assert found.about == expected.about


def test_one_document_is_counted_in_words(invoke: Invoke, tmp_path: Path) -> None:
    source = tmp_path / "one.conllu"
    source.write_text("1\tit\tit\tPRON\t_\t_\t0\troot\t_\tEntity=(1)\n\n", encoding="utf-8")
    out = invoke("coref", "train", source, "--epochs", 1, "-o", tmp_path / "m").stdout
    assert ", 1 document with 1 mention sha256 " in out


def test_documents_no_model_can_be_trained_from(invoke: Invoke, files: Path, tmp_path: Path) -> None:
    def error(*words: Any, stdin: bytes | None = None) -> str:
        return one_error(invoke("coref", "train", *words, "-o", tmp_path / "m", status=1, stdin=stdin))

    bare, train = files / "bare.conllu", files / "train.conllu"
    assert error(bare) == f"{bare}: {NO_MARKS}"
    assert error(train, "--dev", bare) == f"{bare}: {NO_MARKS}"
    assert error("-", stdin=bare.read_bytes()) == f"standard input: {NO_MARKS}"
    assert "no Entity= marks" in error("-", stdin=b"")
    apart = b"1\tit\t_\tPRON\t_\t_\t0\troot\t_\tEntity=(1)\n\n"
    assert "no Entity= marks" in error("-", "--drop-singletons", stdin=apart)
    assert error("-", stdin=b"\n" + apart.replace(b"0\troot", b"_\t_")).startswith("standard input, line 2: ")
    assert error("-", stdin=apart.replace(b"(1)", b"(1")).startswith("standard input, line 1: ")
    assert error(tmp_path / "nowhere").startswith(f"{tmp_path / 'nowhere'}: the file cannot be opened")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["train"],
        ["train", "a.conllu"],
        ["train", "a.conllu", "-o", "m", "--stretch", "-1"],
        ["train", "a.conllu", "-o", "m", "--margin", "inf"],
        ["train", "a.conllu", "-o", "m", "--seed", "-1"],
        ["train", "a.conllu", "-o", "m", "--margin", "-1"],
        ["train", "a.conllu", "-o", "no/such/folder/m"],
        ["train", "a.conllu", "-o", "-"],
        ["train", "a.conllu", "-o", "."],
        ["train", "-", "--dev", "-", "-o", "m"],
        ["resolve", "m"],
        ["resolve", "m", "a.conllu", "--mentions", "some"],
        ["evaluate", "a.conllu"],
        ["evaluate", "-", "-"],
        ["resolve"],
    ],
)
def test_wrong_usage_is_status_2(invoke: Invoke, tmp_path: Path, monkeypatch: Any, words: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke("coref", *words, status=2)
    assert result.stdout == ""
    assert "Usage: headway coref" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_stretch_0_is_whole_documents(invoke: Invoke, files: Path, tmp_path: Path) -> None:
    for stretch in (0, 10**6):  # no document has so many mentions
        words = ("--stretch", stretch, "--epochs", 2, "-o", tmp_path / str(stretch))
        invoke("coref", "train", files / "train.conllu", *words)
    one, other = (Resolver.load(tmp_path / name).model.weights for name in ("0", "1000000"))
    assert np.array_equal(one, other)


# Resolving


def test_given_mentions_are_clustered_and_all_else_stays(invoke: Invoke, files: Path, resolver: Path) -> None:
    given = (files / "test.conllu").read_text("utf-8")
    together = toy_coref.text(toy_coref.documents(TEST, 2), entity=lambda name: "one")
    written = invoke("coref", "resolve", resolver, "-", stdin=given.encode()).stdout
    assert toy_coref.without_marks(written) == toy_coref.without_marks(given)
    assert written.count("# global.Entity") == TEST
    # Whatever the clusters of the input were.
    assert invoke("coref", "resolve", resolver, "-", stdin=together.encode()).stdout == written != together


def test_what_is_written_is_what_the_model_finds(invoke: Invoke, files: Path, resolver: Path, tmp_path: Path) -> None:
    found = tmp_path / "found.conllu"
    invoke("coref", "resolve", resolver, files / "dev.conllu", "-o", found)
    resolved = Resolver.load(resolver).resolve(read_documents(files / "dev.conllu"))
    expected = [each.document.partition() for each in resolved]
    assert list(map(as_sets, partitions(found))) == list(map(as_sets, expected))
    assert partitions(found) != partitions(files / "dev.conllu")
    for before, after in zip(read_documents(files / "dev.conllu"), read_documents(found), strict=True):
        assert (after.name, after.mentions, after.fields) == (before.name, before.mentions, before.fields)


def test_odd_documents_come_back(invoke: Invoke, resolver: Path) -> None:
    written = invoke("coref", "resolve", resolver, "-", stdin=ODD.encode()).stdout
    assert toy_coref.without_marks(written) == toy_coref.without_marks(ODD)
    assert written.count("Entity=") == ODD.count("Entity=")
    for kept in ("# global.Entity = GRP-etype\n", "A=1|Entity=(1[1/2]-animal|Z=1\n", "\tb|Entity="):
        assert kept in written


@pytest.mark.parametrize("words", [[], ["--mentions", "trees"]])
def test_line_ends_are_kept(invoke: Invoke, files: Path, resolver: Path, words: list[str]) -> None:
    data = (files / "test.conllu").read_bytes()
    written = invoke("coref", "resolve", resolver, "-", *words, stdin=data).stdout_bytes
    with_returns = invoke("coref", "resolve", resolver, "-", *words, stdin=data.replace(b"\n", b"\r\n")).stdout_bytes
    assert b"\r" not in written
    assert with_returns == written.replace(b"\n", b"\r\n")


def test_files_and_standard_streams_are_the_same(invoke: Invoke, files: Path, resolver: Path, tmp_path: Path) -> None:
    source, packed = files / "test.conllu", tmp_path / "out.conllu.gz"
    written = invoke("coref", "resolve", resolver, source).stdout_bytes
    assert invoke("coref", "resolve", resolver, "-", stdin=source.read_bytes()).stdout_bytes == written
    invoke("coref", "resolve", resolver, source, "-o", packed)
    assert gzip.decompress(packed.read_bytes()) == written
    onto_itself = tmp_path / "a.conllu"
    onto_itself.write_bytes(source.read_bytes())
    invoke("coref", "resolve", resolver, onto_itself, "-o", onto_itself)
    assert onto_itself.read_bytes() == written


def test_mentions_of_the_trees(invoke: Invoke, files: Path, resolver: Path, tmp_path: Path) -> None:
    """More than the marked ones by the names, which are never marked; whether marks were there does not matter."""
    bare, found = files / "bare.conllu", tmp_path / "found.conllu"
    invoke("coref", "resolve", resolver, bare, "--mentions", "trees", "-o", found)
    toys = toy_coref.documents(TEST, 2)
    for toy, document in zip(toys, read_documents(found), strict=True):
        names = [(n, (1,)) for n, rows in enumerate(toy.sentences) if rows[0].startswith("Anna ")]
        marked = [(sentence, words) for sentence, words, _ in toy.mentions]
        spans = [(mention.sentence, mention.words) for mention in document.mentions]
        assert sorted(spans) == sorted(names + marked)
        assert {mention.rest for mention in document.mentions} == {""}
        assert [m.words for m in tree_mentions(document.sentences)] == [words for _, words in spans]
    text = found.read_text("utf-8")
    assert toy_coref.without_marks(text) == bare.read_text("utf-8")
    assert text.count("# global.Entity = eid\n") == 1
    again = tmp_path / "again.conllu"
    invoke("coref", "resolve", resolver, files / "test.conllu", "--mentions", "trees", "-o", again)
    assert partitions(again) == partitions(found)
    scores = evaluate_coreference((toy.partition(), p) for toy, p in zip(toys, partitions(found), strict=True))
    assert scores.mentions.recall == 1 > scores.mentions.precision


def test_mentions_are_learnt(invoke: Invoke, files: Path, tmp_path: Path) -> None:
    """That names are never marked, which no rule knows."""
    model, found = tmp_path / "m.coref", tmp_path / "found.conllu"
    invoke("coref", "train", files / "train.conllu", "--learn-mentions", "--clusters", "--epochs", 3, "-o", model)
    invoke("coref", "resolve", model, files / "bare.conllu", "--mentions", "trees", "-o", found)
    scores = json.loads(invoke("coref", "evaluate", files / "test.conllu", found, "--json").stdout)
    assert scores["kept"]["mentions"]["f1"] == 1
    assert scores["kept"]["conll"] > 0.9
    assert "found by a learnt model" in invoke("info", model).stdout


@pytest.mark.parametrize("mentions", ["given", "trees"])
def test_singletons_are_not_written(invoke: Invoke, files: Path, resolver: Path, tmp_path: Path, mentions: str) -> None:
    every, some = tmp_path / "every.conllu", tmp_path / "some.conllu"
    words = ("coref", "resolve", resolver, files / "test.conllu", "--mentions", mentions)
    invoke(*words, "-o", every)
    invoke(*words, "--drop-singletons", "-o", some)
    expected = [as_sets([cluster for cluster in p if len(cluster) > 1]) for p in partitions(every)]
    assert expected != list(map(as_sets, partitions(every)))
    assert list(map(as_sets, partitions(some))) == expected


def test_documents_before_the_first_newdoc(invoke: Invoke, resolver: Path) -> None:
    toys = toy_coref.documents(TEST, 2)
    text = toy_coref.text(toys[:1], newdoc=False) + toy_coref.text(toys[1:])
    whole = toy_coref.text(toys)
    written = invoke("coref", "resolve", resolver, "-", stdin=text.encode()).stdout
    expected = invoke("coref", "resolve", resolver, "-", stdin=whole.encode()).stdout
    assert written == expected.replace(f"# newdoc id = {toys[0].name}\n", "")


@pytest.mark.parametrize("words", [[], ["--mentions", "trees"], ["--skip-bad", "--drop-singletons"]])
def test_nothing_in_nothing_out(invoke: Invoke, resolver: Path, tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "empty.conllu").touch()
    assert invoke("coref", "resolve", resolver, tmp_path / "empty.conllu", *words).output == ""
    assert invoke("coref", "resolve", resolver, "-", *words, stdin=b"").output == ""


def test_a_document_without_mentions_among_others(invoke: Invoke, files: Path, resolver: Path) -> None:
    toys = toy_coref.documents(2, 2)
    text = toy_coref.text(toys[:1], marks=False) + toy_coref.text(toys[1:])
    written = invoke("coref", "resolve", resolver, "-", stdin=text.encode()).stdout
    assert written.startswith(toy_coref.text(toys[:1], marks=False))
    assert toy_coref.without_marks(written) == toy_coref.without_marks(text)
    assert "Entity=(e1-" in written


def test_marks_that_make_no_sense(invoke: Invoke, files: Path, resolver: Path, tmp_path: Path) -> None:
    toys = toy_coref.documents(3, 2)
    texts = [toy_coref.text([toy]) for toy in toys]
    line = texts[1].splitlines().index(next(row for row in texts[1].splitlines() if row.startswith("2\t")))
    rows = texts[1].splitlines(keepends=True)
    rows[line] = "\t".join([*rows[line].split("\t")[:9], "Entity=zzz)\n"])
    source = tmp_path / "bad.conllu"
    source.write_text(texts[0] + "".join(rows) + texts[2], encoding="utf-8")
    place = f"{source}, line {texts[0].count(chr(10)) + line + 1}: "
    target = tmp_path / "out.conllu"
    said = one_error(invoke("coref", "resolve", resolver, source, "-o", target, status=1))
    assert said.startswith(place)
    assert not target.exists()
    result = invoke("coref", "resolve", resolver, source, "--skip-bad")
    assert result.stderr == f"headway: 1 malformed document skipped; the first: {said}\n"
    expected = invoke("coref", "resolve", resolver, "-", stdin=(texts[0] + texts[2]).encode()).stdout
    assert result.stdout == expected
    source.write_text("".join(rows) * 2, encoding="utf-8")
    result = invoke("coref", "resolve", resolver, source, "--skip-bad")
    assert result.stdout == ""
    assert result.stderr.startswith("headway: 2 malformed documents skipped; the first: ")


def test_documents_that_cannot_be_resolved(invoke: Invoke, files: Path, resolver: Path, tmp_path: Path) -> None:
    def error(*words: Any, stdin: bytes | None = None) -> str:
        return one_error(invoke("coref", "resolve", *words, status=1, stdin=stdin))

    bare, test = files / "bare.conllu", files / "test.conllu"
    assert error(resolver, bare) == f"{bare}: {NO_MARKS}"
    assert error(resolver, "-", stdin=bare.read_bytes()) == f"standard input: {NO_MARKS}"
    flat = b"# a comment\n1\tit\t_\tPRON\t_\t_\t_\t_\t_\tEntity=(1)\n\n"
    for words in ([], ["--mentions", "trees"]):
        no_heads = error(resolver, "-", *words, stdin=flat)
        assert no_heads == "standard input, line 1: the sentence has no heads; annotate it or leave it out"
    untagged = flat.replace(b"PRON\t_\t_\t_\t_", b"_\t_\t_\t0\t_")
    said = error(resolver, "-", "--mentions", "trees", stdin=untagged)
    assert said.startswith("standard input, line 1: the sentence lacks UPOS or DEPREL")
    assert error(resolver, "-", stdin=b"1\tit\n").startswith("standard input, line 1: the line has 2 columns")
    missing = tmp_path / "nowhere"
    assert error(resolver, missing).startswith(f"{missing}: the file cannot be opened")
    assert error(missing, test) == f"{missing}: no such file; give the path of a saved model"
    parser = embedded_models().get("en")
    assert error(parser, test) == f"{parser}: a model for parsing, not for coreference; give another file"
    assert "not a model, or a damaged one" in error(test, test)
    nowhere = tmp_path / "no" / "such"
    assert error(resolver, test, "-o", nowhere).startswith(f"{nowhere}: writing failed")
    assert list(tmp_path.iterdir()) == []


def test_a_coreference_model_is_no_parser(invoke: Invoke, files: Path, resolver: Path) -> None:
    for words in (["parse", resolver, files / "test.conllu"], ["draw", files / "test.conllu", "--model", resolver]):
        said = one_error(invoke(*words, status=1))
        assert said == f"{resolver}: a model for coreference, not for parsing; give another file"


def test_a_damaged_model_is_one_sentence(invoke: Invoke, files: Path, resolver: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.coref"
    data = resolver.read_bytes()
    for content in (data[: len(data) // 2], b"", data.replace(b"PK\x05\x06", b"PK\x05\x07")):
        damaged.write_bytes(content)
        said = one_error(invoke("coref", "resolve", damaged, files / "test.conllu", status=1))
        assert said.startswith(f"{damaged}: not a model, or a damaged one")


def test_resolving_into_a_pipe_that_closes(spawn: Spawn, files: Path, resolver: Path, tmp_path: Path) -> None:
    large = tmp_path / "large.conllu"
    large.write_text((files / "test.conllu").read_text("utf-8") * 40, encoding="utf-8")
    process = spawn("coref", "resolve", resolver, large)
    assert process.stdout is not None
    process.stdout.read(100)
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as errors:
        assert (process.wait(60), errors.read()) == (1, b"")


# Evaluating


@pytest.fixture(scope="module")
def answers(files: Path) -> Path:
    """The test documents, with some nouns taken for others."""
    path = files / "answers.conllu"
    path.write_text(toy_coref.text(toy_coref.documents(TEST, 2), entity=confused), encoding="utf-8")
    return path


def confused(noun: str) -> str:
    return {"dog": "cat", "king": "tower", "ship": "lamp", "horse": "river"}.get(noun, noun)


def expected_scores(*, singletons: bool) -> CoreferenceScores:
    pairs = [(toy.partition(), toy.partition(confused)) for toy in toy_coref.documents(TEST, 2)]
    return evaluate_coreference(pairs, singletons=singletons)


def test_json_has_every_figure_and_the_signature(invoke: Invoke, files: Path, answers: Path) -> None:
    gold = files / "test.conllu"
    found = json.loads(invoke("coref", "evaluate", gold, answers, "--json").stdout)
    assert found.pop("signature") == {
        "headway": headway.__version__,
        "seed": None,
        "options": {},
        "data": {str(path): checksum(path.read_bytes()) for path in (gold, answers)},
    }
    assert found == {name: expected_scores(singletons=name == "kept").to_dict() for name in ("kept", "removed")}
    assert found["kept"]["documents"] == TEST
    assert found["removed"]["conll"] != found["kept"]["conll"]
    assert 0.3 < found["kept"]["conll"] < 1
    # Merging alone loses no link, and finds some that are wrong.
    assert found["kept"]["muc"]["recall"] == 1 > found["kept"]["muc"]["precision"]


def test_text_has_the_figures_and_the_signature(invoke: Invoke, files: Path, answers: Path) -> None:
    gold = files / "test.conllu"
    text = invoke("coref", "evaluate", gold, answers).stdout
    first, *tables, last = text.strip().split("\n\n")
    assert first == f"{TEST} documents"
    assert last == (
        f"headway {headway.__version__}, {gold} sha256 {checksum(gold.read_bytes())}, "
        f"{answers} sha256 {checksum(answers.read_bytes())}"
    )
    for name, shown in zip(("kept", "removed"), tables, strict=True):
        scores = expected_scores(singletons=name == "kept")
        title, header, *rows = [line.split() for line in shown.splitlines()]
        assert (title, header) == (["singletons", name], ["recall", "precision", "F1"])
        ratios: dict[str, Ratio] = {title: getattr(scores, field) for title, field in METRICS.items()}
        expected = [[t, *(f"{100 * x:.2f}" for x in (r.recall, r.precision, r.f1))] for t, r in ratios.items()]
        assert rows == [*expected, ["CoNLL", f"{100 * scores.conll:.2f}"]]


def test_names_of_entities_and_other_marks_do_not_matter(invoke: Invoke, files: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.conllu"
    text = (files / "test.conllu").read_text("utf-8")
    for old, new in (("=(e", "=(x"), ("=e", "=x"), (")e", ")x"), ("-new", "-giv")):
        text = text.replace(old, new)
    other.write_text(text, encoding="utf-8")
    found = json.loads(invoke("coref", "evaluate", files / "test.conllu", other, "--json").stdout)
    assert (found["kept"]["conll"], found["removed"]["lea"]["f1"]) == (1, 1)


def test_evaluating_standard_input_and_compression(invoke: Invoke, files: Path, answers: Path, tmp_path: Path) -> None:
    gold, packed = files / "test.conllu", tmp_path / "answers.conllu.gz"
    packed.write_bytes(gzip.compress(answers.read_bytes()))
    expected = expected_scores(singletons=True).to_dict()
    for words, stdin in (([gold, "-"], answers), (["-", answers], gold), ([gold, packed], gold)):
        found = json.loads(invoke("coref", "evaluate", *words, "--json", stdin=stdin.read_bytes()).stdout)
        assert found["kept"] == expected
        assert set(found["signature"]["data"]) == {"standard input" if w == "-" else str(w) for w in words}


def test_files_that_cannot_be_compared(invoke: Invoke, files: Path, tmp_path: Path) -> None:
    def error(*words: Any) -> str:
        return one_error(invoke("coref", "evaluate", *words, status=1))

    gold, fewer, other = files / "test.conllu", tmp_path / "fewer.conllu", tmp_path / "other.conllu"
    toys = toy_coref.documents(TEST, 2)
    fewer.write_text(toy_coref.text(toys[:-1]), encoding="utf-8")
    other.write_text(toy_coref.text([*toys[:2], toys[3], toys[2]]), encoding="utf-8")
    assert error(gold, fewer) == f"document {TEST} is only in the gold file; give two files of the same text"
    assert error(fewer, gold) == f"document {TEST} is only in the predicted file; give two files of the same text"
    assert error(gold, other) == (
        f"document 3 ({toys[2].name}) has other words in the predicted file; give two files of the same text"
    )
    other.write_text(toy_coref.text(toys, newdoc=False), encoding="utf-8")
    assert error(gold, other).startswith(f"document 1 ({toys[0].name}) has other words in the predicted file")
    assert error(gold, tmp_path / "nowhere").startswith(f"{tmp_path / 'nowhere'}: the file cannot be opened")
    other.write_text("1\tx\n", encoding="utf-8")
    assert error(gold, other).startswith(f"{other}, line 1: the line has 2 columns")


def test_files_without_any_mention_have_no_score(invoke: Invoke, files: Path) -> None:
    def error(*words: Any) -> str:
        return one_error(invoke("coref", "evaluate", *words, status=1, stdin=b""))

    gold, bare = files / "test.conllu", files / "bare.conllu"
    remedy = "no document has Entity= marks; mark the mentions, or run headway coref resolve"
    assert error(bare, bare) == f"{bare}: {remedy}"
    assert error(gold, bare) == f"{bare}: {remedy}"
    assert error(bare, gold, "--json") == f"{bare}: {remedy}"
    assert error("/dev/null", "-") == f"/dev/null: {remedy}"
