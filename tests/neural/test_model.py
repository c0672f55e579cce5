"""Neural parsers in use: parsed, saved, loaded, damaged; everything that other parsers do."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks are trained with torch")
pytest.importorskip("onnx", reason="graphs are made with onnx")
pytest.importorskip("onnxruntime", reason="graphs run on onnxruntime")
pytest.importorskip("tokenizers", reason="subwords are cut by tokenizers")

from headway import Parser, Sentence
from headway.archive import Archive, load_archive, save_archive
from headway.arrays import TreeClass
from headway.errors import ArchiveError, HeadwayError, MissingExtraError, TrainingError
from headway.inference import TreeDistribution
from headway.models.constraints import Constraints, mask_arcs
from headway.models.protocol import Options
from headway.models.stretches import MOST_WORDS, predict_any_length
from headway.neural.model import NeuralModel
from headway.parallel import SERIAL, Threads
from tests.cli.conftest import run
from tests.neural.tiny import exported, fit, model_of, network_of, sentence_of, sentences, torch_outputs

TREES = sentences()
PLAIN = [Sentence.from_words(tree.forms) for tree in TREES]
COLUMNS = ("lemmas", "upos", "xpos", "feats")


def trained(name, steps=100):
    reader, tasks, network = network_of(name, TREES)
    fit(network, reader, tasks, TREES, steps)
    return reader, network, exported(reader, tasks, network)


@pytest.fixture(scope="module", params=["lstm", "bert"])
def parts(request):
    return trained(request.param)


@pytest.fixture(scope="module")
def parser(parts):
    return Parser(parts[2])


@pytest.fixture(scope="module")
def path(parser, tmp_path_factory):
    made = tmp_path_factory.mktemp("neural") / "tiny.headway"
    parser.save(made)
    return made


def words(found, gold, column):
    pairs = [pair for a, b in zip(found, gold, strict=True) for pair in zip(column(a), column(b), strict=True)]
    return np.mean([a == b for a, b in pairs])


def test_a_trained_parser_finds_trees_labels_and_tags(parser):
    found = [parsed.sentence for parsed in parser.parse(PLAIN)]
    assert words(found, TREES, lambda s: s.heads[1:].tolist()) > 0.9
    assert words(found, TREES, lambda s: s.labels[1:]) > 0.9
    for name in COLUMNS:
        assert words(found, TREES, lambda s, name=name: getattr(s, name)) > 0.9, name
    assert [len(sentence) for sentence in found] == [len(sentence) for sentence in TREES]


def test_trees_and_probabilities_are_those_of_the_scores(parts):
    """By the network itself and the exact distribution, sentence by sentence; with float weights, the same."""
    reader, network, model = parts
    model = exported(reader, model.tasks, network, quantised=False)
    reading = reader.read(TREES)
    for i, found in enumerate(model.predict(PLAIN[:6], Options(), SERIAL)):
        arcs = torch_outputs(network, reading.batch(np.array([i])))["arcs"][0].astype(np.float64) / 1.5
        expected = TreeDistribution(arcs, projective=False, single_root=True)
        np.testing.assert_array_equal(found.heads, expected.argmax())
        np.testing.assert_allclose(found.distribution.marginals, expected.marginals, atol=1e-3)


def test_label_probabilities_are_those_of_the_label_scores(parts):
    """By torch's biaffine product itself and its softmax, over the labels that the head allows."""
    reader, network, model = parts
    model = replace(exported(reader, model.tasks, network, quantised=False), temperature=7.0)
    names, reading, least = model.tasks.labels, reader.read(TREES), 1.0
    for i, found in enumerate(model.predict(PLAIN[:6], Options(), SERIAL)):
        outputs = {k: torch.from_numpy(v) for k, v in torch_outputs(network, reading.batch(np.array([i]))).items()}
        heads = torch.from_numpy(found.heads)[None]
        with torch.no_grad():
            scores = network.label_scores(heads, outputs["label_heads"], outputs["label_modifiers"])[0].tolist()
        assert found.label_probabilities[0] == 1
        for m, head in enumerate(found.heads[1:].tolist(), start=1):
            possible = {n: np.exp(s) for n, s in zip(names, scores[m], strict=True) if (n == "root") == (head == 0)}
            share = possible[found.labels[m]] / sum(possible.values())
            assert found.label_probabilities[m] == pytest.approx(share, abs=1e-4)
            least = min(least, share)
    assert least < 0.999
    [empty] = model.predict([Sentence.from_words([])], Options(), SERIAL)
    assert empty.label_probabilities.tolist() == [1.0]


def test_the_temperature_divides_scores(parts):
    model = parts[2]
    [cold], [warm] = (replace(model, temperature=t).predict(PLAIN[3:4], Options(), SERIAL) for t in (0.5, 50.0))
    np.testing.assert_array_equal(cold.heads, warm.heads)
    assert cold.distribution.log_prob(cold.heads) > warm.distribution.log_prob(cold.heads) + 1


def test_classes_of_trees(parser):
    rng = np.random.default_rng(5)
    scrambled = [Sentence.from_words(rng.permutation(tree.forms).tolist()) for tree in TREES]
    for projective in (True, False):
        for found in parser.with_projective(projective).parse(scrambled):
            assert (found.heads == 0).sum() == 1
    several = replace(parser, model=parser.model.with_trees(TreeClass(projective=False, single_root=False)))
    assert several.model.trees.single_root is False
    assert all(found.status == "EXACT" for found in several.parse(PLAIN))


def test_the_root_has_its_label_and_no_other_word_has_it(parts):
    untrained = model_of("lstm", TREES)
    for found in untrained.predict(PLAIN, Options(), SERIAL):
        assert all(
            (label == "root") == (head == 0) for label, head in zip(found.labels[1:], found.heads[1:], strict=True)
        )


def test_the_same_in_any_order_company_and_number_of_threads(parser):
    alone = [parser.parse(sentence).to_conllu() for sentence in PLAIN]
    assert [found.to_conllu() for found in parser.parse(PLAIN)] == alone
    assert [found.to_conllu() for found in parser.parse(PLAIN[::-1])][::-1] == alone
    assert [found.to_conllu() for found in parser.parse(PLAIN, threads=2)] == alone


def test_empty_sentences(parser):
    empty = Sentence.from_words([])
    for given in ([empty], [empty, PLAIN[0], empty, PLAIN[3]], []):
        assert [len(found.sentence) for found in parser.parse(given)] == [len(each) for each in given]
    assert parser.parse(empty).sentence.labels == (None,)


def test_tokens_and_tags(parser):
    assert not parser.needs_tags
    assert parser.gives_tags
    found = parser.parse(["the", "dog", "sees", "a", "cats"])
    assert found.sentence.upos == ("DET", "NOUN", "VERB", "DET", "NOUN")
    assert found.sentence.lemmas == ("the", "dog", "see", "a", "cat")


def test_tags_that_are_given_stay_unless_they_are_to_be_replaced(parser):
    own = Sentence.from_words(["the", "dog", "sees"], upos=["X"] * 3, xpos=["Y"] * 3, lemmas=["l"] * 3)
    found = parser.parse(own).sentence
    assert (found.upos, found.xpos, found.lemmas, found.feats) == (own.upos, own.xpos, own.lemmas, own.feats)
    half = replace(own, xpos=("_",) * 3)
    found = parser.parse(half).sentence
    assert (found.upos, found.lemmas, found.xpos) == (own.upos, own.lemmas, ("DT", "NN", "VBZ"))
    assert found.feats != own.feats
    assert parser.parse(own, retag=True).sentence.upos == ("DET", "NOUN", "VERB")


def test_a_model_that_reads_tags_needs_them():
    parser = Parser(model_of("tags", TREES))
    assert parser.needs_tags
    assert not parser.gives_tags
    assert parser.model.requires == {"words", "tags"}
    with pytest.raises(TrainingError, match="tags"):
        parser.parse(["the", "dog"])
    found = parser.parse(TREES[0]).sentence
    assert found.upos == TREES[0].upos
    assert dict(parser.describe().rows)["tagger"] == "none: trained on gold tags"


def test_tags_are_read_where_they_are_given():
    model = model_of("tags", TREES)
    other = replace(TREES[0], upos=TREES[0].upos[::-1], xpos=TREES[0].xpos[::-1])
    one, two = (found.distribution.marginals for found in model.predict([TREES[0], other], Options(), SERIAL))
    assert np.abs(one - two).max() > 1e-3


def test_probabilities_confidence_and_the_least_expected_loss(parser):
    for plain, risky in zip(parser.parse(PLAIN[:8]), parser.parse(PLAIN[:8], mbr=True), strict=True):
        np.testing.assert_allclose(plain.marginals[:, 1:].sum(axis=0), 1)
        assert 0 <= plain.confidence.arcs.min() <= plain.confidence.arcs.max() <= 1
        expected = [found.marginals[found.heads[1:], np.arange(1, len(found.heads))].sum() for found in (plain, risky)]
        assert expected[1] >= expected[0] - 1e-9
        assert plain.is_proved


def test_outputs(parser):
    found = parser.parse(PLAIN[1])
    assert found.to_conllu().count("\t") == 9 * len(PLAIN[1])
    assert json.dumps(found.to_dict())
    assert "<svg" in found.to_svg()


def test_very_long_sentences_keep_their_tags(parser):
    rng = np.random.default_rng(0)
    long = sentence_of(rng, 1 + MOST_WORDS // 6 + 40)
    assert len(long) > MOST_WORDS
    found, short = parser.parse([Sentence.from_words(long.forms), PLAIN[0]])
    assert found.status == "IN_STRETCHES"
    assert words([found.sentence], [long], lambda s: s.upos) > 0.9
    assert words([found.sentence], [long], lambda s: s.lemmas) > 0.9
    assert short.sentence.upos == TREES[0].upos


def test_what_is_saved_is_loaded(parser, path, tmp_path):
    loaded = Parser.load(path)
    assert isinstance(loaded.model, NeuralModel)
    assert [found.to_conllu() for found in loaded.parse(PLAIN)] == [found.to_conllu() for found in parser.parse(PLAIN)]
    assert loaded.model.temperature == 1.5
    assert loaded.model.about == {"settings": {"seed": 1}}
    assert loaded.describe() == parser.describe()
    loaded.save(tmp_path / "again.headway")
    assert (tmp_path / "again.headway").read_bytes() == path.read_bytes()


def test_it_is_copied_between_processes(parser):
    copied = pickle.loads(pickle.dumps(parser))
    assert copied.parse(PLAIN[0]).to_conllu() == parser.parse(PLAIN[0]).to_conllu()


def test_parsing_needs_neither_torch_nor_onnx(path):
    code = (
        "import sys; sys.modules['torch'] = sys.modules['onnx'] = None\n"
        f"from headway import Parser; print(Parser.load({str(path)!r}).parse(['the', 'dog']).sentence.upos)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "('DET', 'NOUN')\n"
    assert done.stderr == ""


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_a_library_that_cannot_be_imported_is_one_sentence(package, monkeypatch):
    """As on a system without the libraries that it needs itself: the model is not to blame."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError) as caught:
        Parser.load("en").parse("The dog sleeps.")
    assert str(caught.value).startswith(f"networks need {package}, which cannot be imported (")
    assert str(caught.value).endswith(f"); install it again with: pip install --force-reinstall {package}")


def test_describe(parser):
    rows = dict(parser.describe().rows)
    assert rows["model"] == "neural"
    assert rows["tags"] == "with the tree: feats, lemmas, upos, xpos"
    assert parser.describe().data["tags"] == 4
    assert json.dumps(parser.describe().data)


def test_commands(path, tmp_path):
    text = tmp_path / "plain.conllu"
    text.write_text("".join(sentence.to_conllu() for sentence in PLAIN[:4]))
    gold = tmp_path / "gold.conllu"
    gold.write_text("".join(sentence.to_conllu() for sentence in TREES[:4]))
    assert "neural" in run("info", path).output
    assert "NOUN" in run("parse", path, text).output
    assert "EXACT" in run("parse", path, text, "--status").output
    assert "NOUN" in run("parse", path, gold, "--retag", "--marginals", "--mbr").output
    run("parse", path, text, "-o", tmp_path / "system.conllu")
    assert "LAS" in run("evaluate", gold, tmp_path / "system.conllu").output
    run("draw", text, "--model", path, "-o", tmp_path / "tree.svg")
    assert "<svg" in (tmp_path / "tree.svg").read_text()


def test_what_other_parsers_do_is_done(parser, path, tmp_path):
    """Lists of the best trees, draws, entropies; probabilities as JSON, as text and in pictures."""
    found = parser.parse(PLAIN[1])
    trees = found.distribution.kbest(3)
    assert trees[0][0].tolist() == found.heads.tolist()
    assert trees[0][1] >= trees[1][1] >= trees[2][1]
    drawn = found.distribution.sample(20, 0)
    assert drawn.shape == (20, len(found.heads))
    assert all((heads == 0).sum() == 1 for heads in drawn)
    assert found.distribution.entropy >= 0
    assert found.distribution.log_prob(found.heads) == pytest.approx(np.log(found.confidence.tree))
    text = tmp_path / "plain.conllu"
    text.write_text("".join(sentence.to_conllu() for sentence in PLAIN[:2]))
    rows = [json.loads(line) for line in run("parse", path, text, "--format", "json").output.splitlines()]
    assert [row["status"] for row in rows] == ["EXACT", "EXACT"]
    assert rows[0]["words"][1]["upos"] == "NOUN"
    assert 0 < rows[0]["words"][1]["probability"] <= 1
    assert "the" in run("parse", path, text, "--format", "tree", "--unsure-below", "1").output
    assert "arcs are less probable than 1" in run("parse", path, text, "--unsure-below", "1").output
    marked = run("parse", path, text, "--marginals", "--status").output
    assert "# tree_probability = " in marked
    assert "# headway_status = EXACT" in marked
    assert "HeadProbability=" in marked
    plain = tmp_path / "tokens.txt"
    plain.write_text("the dog sees a cats\n")
    assert "NOUN" in run("parse", path, plain, "--input-format", "tokens").output


def test_info_says_what_there_is_to_know(parser, tmp_path):
    about = {
        "settings": {"encoder": "minilm"},
        "rounding": {"float32": {"uas": 92.5, "las": 90.25}, "int8": {"uas": 92.4, "las": 90.2}},
    }
    Parser(replace(parser.model, about=about)).save(tmp_path / "m.headway")
    said = run("info", tmp_path / "m.headway", "--all").output
    for row in (
        ("model", "neural"),
        ("trees", "non-projective, one word on the root"),
        ("encoder", "minilm"),
        ("reads", ""),
        ("also finds", "6 labels, 3 edits for lemmas, 4 upos, 5 xpos, 3 features"),
        ("network", "MB"),
        ("temperature", "1.5"),
        ("UAS / LAS on dev", "float32 92.50 / 90.25, int8 92.40 / 90.20"),
    ):
        assert any(line.startswith(row[0]) and row[1] in line for line in said.splitlines()), (row, said)
    data = json.loads(run("info", tmp_path / "m.headway", "--json").output)
    assert data["about"] == about
    assert data["values"]["upos"] == 4
    unlabelled = Parser(replace(parser.model, about={"rounding": {"float32": {"uas": 92.5}, "int8": {"uas": 92.4}}}))
    assert dict(unlabelled.describe().rows)["UAS on dev"] == "float32 92.50, int8 92.40"
    for odd in (3, {"float32": 1}, {"float32": {"uas": "x"}}, []):
        strange = Parser(replace(parser.model, about={"rounding": odd, "settings": 3}))
        assert not [name for name, _ in strange.describe().rows if name.endswith("on dev")]


def test_spacy(path):
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("headway", config={"model": str(path)})
    doc = nlp("the dog sees a cats")
    assert [token.pos_ for token in doc] == ["DET", "NOUN", "VERB", "DET", "NOUN"]
    assert [token.lemma_ for token in doc] == ["the", "dog", "see", "a", "cat"]
    assert doc[2].dep_ == "ROOT"


def changed(path, tmp_path, data=None, arrays=None):
    archive = load_archive(path)
    head = {name: value for name, value in archive.data.items() if name not in ("headway", "kind")}
    made = Archive(archive.kind, {**head, **(data or {})}, {**archive.arrays, **(arrays or {})})
    save_archive(made, tmp_path / "changed.headway")
    return tmp_path / "changed.headway"


def refused(path):
    with pytest.raises(ArchiveError) as caught:
        Parser.load(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert len(message) < len(str(path)) + 260
    return message


def test_damaged_values_are_one_sentence(path, tmp_path):
    archive = load_archive(path)
    tasks, reader = archive.data["tasks"], archive.data["reader"]
    for data, cause in [
        ({"tasks": {**tasks, "upos": [*tasks["upos"][1:], 3]}}, "a value"),
        ({"tasks": {**tasks, "upos": []}}, "without values"),
        ({"tasks": {**tasks, "lemmas": ["x"]}}, ""),
        ({"tasks": {**tasks, "lemmas": ["k 0 0 0 a\nb"]}}, "a value"),
        ({"tasks": {**tasks, "lemmas": ["= "]}}, "a lemma"),
        ({"tasks": {**tasks, "labels": ["a\tb"]}}, "a value"),
        ({"tasks": {name: values for name, values in tasks.items() if name != "labels"}}, "outputs"),
        ({"tasks": []}, "the tasks"),
        ({"temperature": 0}, "temperature"),
        ({"temperature": "1"}, "temperature"),
        ({"roots": 3}, "root"),
        ({"projective": 1}, "projective"),
        ({"about": 1}, "about"),
        ({"reader": {}}, "kind"),
        ({"reader": {**reader, "kind": "other"}}, "other"),
        ({"reader": {"kind": "lexicon", "values": {"words": ["a"], "eval": ["b"]}}}, "columns"),
        ({"reader": {"kind": "lexicon", "values": {"words": ["a"]}}}, "inputs"),
        (
            {
                "reader": {
                    "kind": "subwords",
                    "tokenizer": "{",
                    "longest": 9,
                    "start": 0,
                    "end": 0,
                    "padding": 0,
                    "unknown": 0,
                }
            },
            "tokenizer",
        ),
        ({"reader": {"kind": "subwords", "tokenizer": 3}}, "tokenizer"),
    ]:
        assert cause in refused(changed(path, tmp_path, data)), data


def test_damaged_graphs_are_one_sentence(path, tmp_path):
    graph = load_archive(path).arrays["network"]
    for network, cause in [
        (graph[:-10], "cut short"),
        (graph[:0], "graph"),
        (np.zeros(100, np.uint8), "graph"),
        (graph.astype(np.float32), "bytes"),
        (graph.reshape(1, -1), "bytes"),
        (load_archive(path).arrays["labels"], "inputs"),
    ]:
        assert cause in refused(changed(path, tmp_path, arrays={"network": network}))


def test_flipped_bytes_of_the_file_are_one_sentence(path, tmp_path):
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    copy = tmp_path / "flipped.headway"
    for at in rng.integers(0, len(content), 40).tolist():
        copy.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        try:
            Parser.load(copy)  # some bytes of a zip file mean nothing
        except HeadwayError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_scores_of_another_shape_are_one_sentence(path, tmp_path):
    tasks = load_archive(path).data["tasks"]
    fewer = Parser.load(changed(path, tmp_path, {"tasks": {**tasks, "upos": tasks["upos"][:-1]}}))
    with pytest.raises(ArchiveError, match="another shape"):
        fewer.parse(["the", "dog"])
    fewer = Parser.load(changed(path, tmp_path, {"tasks": {**tasks, "labels": tasks["labels"][:-1]}}))
    with pytest.raises(ArchiveError, match="another shape"):
        fewer.parse(["the", "dog"])


def test_numbers_beyond_the_embeddings_are_one_sentence(tmp_path):
    model = model_of("bert", TREES)
    parser = Parser(replace(model, reader=replace(model.reader, start=10_000)))
    with pytest.raises(ArchiveError, match="cannot be run"):
        parser.parse(["the", "dog"])


def test_a_tokenizer_that_cannot_cut_a_word_is_one_sentence(tmp_path):
    model = model_of("bert", TREES)
    tokenizer = json.loads(model.reader.tokenizer)
    tokenizer["model"]["unk_token"] = "[GONE]"
    Parser(replace(model, reader=replace(model.reader, tokenizer=json.dumps(tokenizer)))).save(tmp_path / "m.headway")
    with pytest.raises(ArchiveError, match="cannot cut"):
        Parser.load(tmp_path / "m.headway").parse(["q"])


def test_refusals_print_nothing(path, tmp_path, capfd):
    graph = load_archive(path).arrays["network"].copy()
    graph[graph.tobytes().index(b"v1_0") + 1] = 0xFE  # a name that is no text
    refused(changed(path, tmp_path, arrays={"network": graph}))
    assert capfd.readouterr() == ("", "")


def test_threads_share_the_session(parts):
    model = parts[2]
    one, two = (model.predict(PLAIN, Options(), executor) for executor in (SERIAL, Threads(2)))
    assert all((a.heads == b.heads).all() and a.columns == b.columns for a, b in zip(one, two, strict=True))


def test_the_runtime_leaves_nothing_on_disk_and_tells_nobody(path, tmp_path):
    """ONNX Runtime 1.31 and later would keep a number of the machine there, for what they send to their makers."""
    code = "import sys, headway; headway.Parser.load(sys.argv[1])"
    homes = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "caches")}
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "NUMBA_CACHE_DIR") if name in os.environ}
    subprocess.run([sys.executable, "-c", code, str(path)], env={**kept, **homes}, check=True)
    assert list(tmp_path.iterdir()) == []


def test_known_heads_are_kept_and_the_rest_is_the_best_given_them(parser):
    """By the exact distribution of the network's scores without what is ruled out, in any company."""
    model, rng = parser.model, np.random.default_rng(4)
    given = []
    for tree in TREES[:6]:
        heads = np.where(rng.random(len(tree) + 1) < 0.4, tree.heads, -1)
        heads[0] = -1
        upside_down = int(rng.integers(1, len(tree) + 1))
        forbidden = ((int(tree.heads[upside_down]), upside_down),) if heads[upside_down] < 0 else ()
        labels = (None, *("unheard-of" if h >= 0 else "_" for h in heads[1:]))
        given.append(Constraints(heads, labels, forbidden))
    given[2] = None
    free = model.predict(PLAIN[:6], Options(), SERIAL)
    found = predict_any_length(model, PLAIN[:6], Options(), SERIAL, given)
    by_risk = model.predict(PLAIN[:6], Options(mbr=True), SERIAL, given)
    alone = [predict_any_length(model, [s], Options(), SERIAL, [c])[0] for s, c in zip(PLAIN, given, strict=False)]
    for i, (known, one) in enumerate(zip(given, found, strict=True)):
        if known is None:
            np.testing.assert_array_equal(one.distribution.marginals, free[i].distribution.marginals)
            continue
        scores = free[i].distribution._batch.scores[0]
        trees = TreeDistribution(mask_arcs(scores, known.allowed), *model.trees)
        np.testing.assert_array_equal(one.heads, trees.argmax())
        np.testing.assert_array_equal(by_risk[i].heads, trees.mbr())
        np.testing.assert_array_equal(alone[i].heads, one.heads)
        np.testing.assert_allclose(one.distribution.marginals, trees.marginals, rtol=1e-9, atol=1e-12)
        words = np.flatnonzero(known.heads >= 0)
        np.testing.assert_array_equal(one.heads[words], known.heads[words])
        assert all(one.heads[m] != h for h, m in known.forbidden)
        if one.labels is not None:
            assert {one.labels[m] for m in words} <= {"unheard-of"}
            assert (one.label_probabilities[words] == 1.0).all()
    assert any((one.heads != before.heads).any() for one, before in zip(found, free, strict=True))
