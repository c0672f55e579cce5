"""`headway draw --coref`: which file holds which document, whose trees are drawn, what is wrong in them."""

from __future__ import annotations

import dataclasses
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.coreference import read_documents
from headway.coreference.resolver import Resolver
from headway.drawing import MentionText, coreference_drawing, to_svg
from headway.embedded import embedded_models
from tests.cli import toy_coref
from tests.cli.conftest import Invoke, one_error
from tests.cli.test_coref import ODD
from tests.cli.test_draw import names

COUNT = 3  # documents
TOYS = toy_coref.documents(COUNT, 2)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_coref.write(tmp_path_factory.mktemp("drawn") / "test.conllu", COUNT, seed=2)


@pytest.fixture(scope="module")
def confused(tmp_path_factory: pytest.TempPathFactory, invoke: Invoke) -> Path:
    """A model with random weights: many of its arcs are wrong."""
    folder = tmp_path_factory.mktemp("confused")
    path = folder / "m.coref"
    invoke("coref", "train", toy_coref.write(folder / "train.conllu", 6, seed=1), "--epochs", 1, "-o", path)
    model = Resolver.load(path).model
    weights = np.random.default_rng(5).normal(size=model.weights.shape)
    Resolver(dataclasses.replace(model, weights=weights)).save(path)
    return path


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def forms(toy: toy_coref.Toy, sentence: int) -> list[str]:
    return [row.split()[0] for row in toy.sentences[sentence]]


def mention_texts(toy: toy_coref.Toy) -> list[MentionText]:
    return [
        MentionText(sentence, words[0], words[-1], " ".join(forms(toy, sentence)[words[0] - 1 : words[-1]]))
        for sentence, words, _ in toy.mentions
    ]


def chains(toy: toy_coref.Toy) -> list[int]:
    """The nearest mention before with the same entity, for each."""
    heads = [-1]
    for node, (_, _, entity) in enumerate(toy.mentions, start=1):
        before = [other for other in range(1, node) if toy.mentions[other - 1][2] == entity]
        heads.append(max(before, default=0))
    return heads


def chained(toy: toy_coref.Toy) -> str:
    return to_svg(coreference_drawing(mention_texts(toy), chains(toy)))


def page_texts(page: str) -> list[str]:
    """The sentences of a page, without the numbers of sentences and clusters."""
    found = re.findall(r'<p class="sentence"[^>]*><span class="number">\d+ </span>(.*)</p>', page)
    return [unescape(re.sub(r"<sub>\d+</sub>|<[^>]*>", "", each)) for each in found]


def test_without_a_model_mentions_hang_from_the_one_before(invoke: Invoke, here: Path, source: Path) -> None:
    assert invoke("draw", source, "--coref").output == ""
    assert names(here) == ["test.svg"]
    drawn = (here / "test.svg").read_text("utf-8")
    assert drawn == chained(TOYS[0])
    assert "stroke-dasharray" not in drawn
    assert invoke("draw", source, "--coref", "-o", "-").stdout == drawn
    assert invoke("draw", "-", "--coref", stdin=source.read_bytes()).stdout == drawn


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (["--sentence", "2"], {"test-2.svg": 2}),
        (["--sentence", "3", "-o", "a.svg"], {"a.svg": 3}),
        (["--sentence", "all"], {f"test-{n}.svg": n for n in range(1, COUNT + 1)}),
        (["--sentence", "all", "-o", "a.svg"], {f"a-{n}.svg": n for n in range(1, COUNT + 1)}),
        (["--sentence", "all", "-o", "a{n}b.svg"], {f"a{n}b.svg": n for n in range(1, COUNT + 1)}),
        (["--sentence", "2", "-o", "{n}.x", "--format", "svg"], {"2.x": 2}),
    ],
)
def test_documents_and_their_files(
    invoke: Invoke, here: Path, source: Path, words: list[str], written: dict[str, int]
) -> None:
    invoke("draw", source, "--coref", *words)
    assert names(here) == sorted(written)
    for name, number in written.items():
        assert (here / name).read_text("utf-8") == chained(TOYS[number - 1])


def test_with_a_model_the_tree_is_its_own_and_wrong_arcs_are_dashed(
    invoke: Invoke, here: Path, source: Path, confused: Path
) -> None:
    resolved = Resolver.load(confused).resolve(read_documents(source))
    for number, (toy, each) in enumerate(zip(TOYS, resolved, strict=True), start=1):
        entities = ["", *(entity for _, _, entity in toy.mentions)]
        heads = each.heads.tolist()
        wrong = [m for m in range(1, len(heads)) if heads[m] > 0 and entities[m] != entities[heads[m]]]
        assert 0 < len(wrong) < sum(head > 0 for head in heads)
        words = ("draw", source, "--coref", "--model", confused, "--sentence", number)
        drawn = invoke(*words, "-o", "-").stdout
        assert drawn == to_svg(coreference_drawing(mention_texts(toy), heads, wrong=wrong))
        assert drawn.count("stroke-dasharray") == len(wrong) + 1  # and in the legend
        page = invoke(*words, "--format", "html", "-o", "-").stdout
        boxes = re.findall(
            r'<span class="mention ([^"]*)" tabindex[^>]*data-node="(\d+)" data-antecedent="(\d+)"', page
        )
        assert sorted(int(node) for kinds, node, _ in boxes if "wrong" in kinds.split()) == wrong
        assert all(heads[int(node)] == int(antecedent) for _, node, antecedent in boxes)
        assert "<p>Trees: the model&#x27;s latent trees." in page


def test_without_clusters_nothing_is_wrong_and_mentions_are_found(invoke: Invoke, here: Path, confused: Path) -> None:
    (here / "bare.conllu").write_text(toy_coref.text(TOYS, marks=False), encoding="utf-8")
    drawn = invoke("draw", "bare.conllu", "--coref", "--model", confused, "--sentence", 2, "-o", "-").stdout
    toy = TOYS[1]
    unmarked = [(n, (1,), "Anna") for n, rows in enumerate(toy.sentences) if rows[0].startswith("Anna ")]
    every = sorted([*toy.mentions, *unmarked], key=lambda mention: (mention[0], mention[1][0], -mention[1][-1]))
    assert unmarked
    document = list(read_documents(here / "bare.conllu"))[1]
    heads = next(Resolver.load(confused).resolve([document], find_mentions=True)).heads
    expected = mention_texts(dataclasses.replace(toy, mentions=every))
    assert drawn == to_svg(coreference_drawing(expected, heads))
    assert "stroke-dasharray" not in drawn
    # Without a model there is nothing to find mentions for.
    assert "no mentions" in invoke("draw", "bare.conllu", "--coref", "-o", "-").stdout


def test_a_page_has_the_text_and_the_drawing(invoke: Invoke, here: Path, source: Path) -> None:
    invoke("draw", source, "--coref", "--sentence", "all", "-o", "pages-{n}.html")
    assert names(here) == [f"pages-{n}.html" for n in range(1, COUNT + 1)]
    for number, toy in enumerate(TOYS, start=1):
        page = (here / f"pages-{number}.html").read_text("utf-8")
        assert f'<h1 dir="auto">{toy.name}</h1>' in page
        # The last word is not followed by a space.
        texts = [" ".join(forms(toy, n)[:-1]) + forms(toy, n)[-1] for n in range(len(toy.sentences))]
        assert page_texts(page) == texts
        sizes = [len(cluster) for cluster in toy.partition() if len(cluster) > 1]
        assert len(re.findall(r"data-node=", page.partition("<script")[0])) == sum(sizes)
        assert "<p>Trees: each mention below the previous one in its cluster. Clusters of one" in page


def test_a_document_without_a_name(invoke: Invoke, here: Path) -> None:
    data = toy_coref.text(TOYS[:1], newdoc=False).encode()
    assert '<h1 dir="auto">Document</h1>' in invoke("draw", "-", "--coref", "--format", "html", stdin=data).stdout


def test_gaps_and_multiword_tokens(invoke: Invoke, here: Path) -> None:
    """Dots stand for words that a mention leaves out; a token's words are not set apart."""
    text = ODD.replace("(7-", "(9-").replace("=7)", "=9)").replace("\tI\tI", "\tdo\tdo").replace("\thad\t", "\tn't\t")
    drawn = invoke("draw", "-", "--coref", stdin=text.encode()).stdout
    assert ">The dog ... old<" in drawn
    assert ">the dog<" in drawn
    for misc, sentence in (
        ("X=y", "The dog don't old met the dog ."),
        ("SpaceAfter=No", "The dog don'told met the dog ."),
    ):
        given = text.replace("X=y", misc).encode()
        assert page_texts(invoke("draw", "-", "--coref", "--format", "html", stdin=given).stdout) == [sentence]


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG\r\n"), ("a.pdf", b"%PDF-")])
def test_painted_pictures(invoke: Invoke, here: Path, source: Path, name: str, magic: bytes) -> None:
    invoke("draw", source, "--coref", "-o", name)
    assert (here / name).read_bytes().startswith(magic)


def test_what_does_not_exist_is_said_in_one_sentence(invoke: Invoke, here: Path, source: Path, confused: Path) -> None:
    def error(*words: Any) -> str:
        return one_error(invoke("draw", *words, "--coref", status=1))

    (here / "empty.conllu").touch()
    (here / "one.conllu").write_text(toy_coref.text(TOYS[:1]), encoding="utf-8")
    assert error(source, "--sentence", 4) == f"{source}: document 4 does not exist; there are 3 documents"
    assert error("one.conllu", "--sentence", 2) == "one.conllu: document 2 does not exist; there is 1 document"
    for words in ([], ["--sentence", "all"], ["--model", confused]):
        assert error("empty.conllu", *words) == "empty.conllu: there are no documents; give a file that has some"
    assert "cannot be opened (No such file or directory)" in error("nowhere.conllu")
    parser = embedded_models().get("en")
    said = error(source, "--model", parser)
    assert said == f"{parser}: a model for parsing, not for coreference; give another file"
    (here / "flat.conllu").write_text("1\tit\t_\t_\t_\t_\t_\t_\t_\tEntity=(1)\n\n", encoding="utf-8")
    said = error("flat.conllu", "--model", confused)
    assert said == "flat.conllu, line 1: the sentence has no heads; annotate it or leave it out"
    assert error(source, "-o", "no/such/folder/a.html").startswith("no/such/folder/a.html: writing failed")
    assert names(here) == ["empty.conllu", "flat.conllu", "one.conllu"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--coref", "--format", "text"], "clusters are drawn as svg, html, png or pdf"),
        (["--coref", "-o", "a.txt"], "clusters are drawn as svg, html, png or pdf"),
        (["--coref", "--gold", "b.conllu"], "leave out --gold, --heatmap and --probabilities"),
        (["--coref", "--model", "m", "--heatmap"], "leave out --gold, --heatmap and --probabilities"),
        (["--coref", "--probabilities"], "leave out --gold, --heatmap and --probabilities"),
        (["--coref", "--sentence", "0"], "expected a number, 1 or more, or all"),
        (["--coref", "--sentence", "all", "-o", "-"], "standard output takes only one picture"),
        (["-o", "a.html"], "html is for coreference; give --coref"),
        (["--format", "html"], "html is for coreference; give --coref"),
    ],
)
def test_wrong_usage_is_status_2(invoke: Invoke, here: Path, source: Path, words: list[str], said: str) -> None:
    result = invoke("draw", source, *words, status=2)
    assert said in " ".join(result.stderr.split())
    assert (result.stdout, names(here)) == ("", [])


def test_no_probabilities_are_no_contradiction(invoke: Invoke, here: Path, source: Path) -> None:
    assert invoke("draw", source, "--coref", "--no-probabilities", "-o", "-").stdout == chained(TOYS[0])
