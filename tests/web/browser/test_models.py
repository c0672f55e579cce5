"""Servers with models of their own: several to choose from, one for coreference, a token; and one that is trained."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import Browser, Page, expect

from headway.coreference.resolver import Resolver
from headway.pipeline import Parser
from tests.cli import toy, toy_coref
from tests.web.live import Live

TOKEN = "open-sesame"
TEXT = "the bird met the king . the horse saw the king . the king met the ship ."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two parsers, the second with other labels, and a resolver, all of the same documents."""
    found = tmp_path_factory.mktemp("models")
    documents = toy_coref.write(found / "documents.conllu", 12, seed=1)
    renamed = found / "renamed.conllu"
    renamed.write_text(documents.read_text("utf-8").replace("\tnsubj\t", "\tsubject\t"), encoding="utf-8")
    for name, treebank in (("first", documents), ("second", renamed)):
        Parser.train(treebank, epochs=2).save(found / f"{name}.headway")
    Resolver.train(documents, epochs=3).save(found / "coref.headway")
    return found


@pytest.fixture(scope="module")
def live(folder: Path) -> Iterator[Live]:
    first, second, resolver = (folder / f"{name}.headway" for name in ("first", "second", "coref"))
    with Live("serve", first, "--model", second, "--coref", resolver, "--token", TOKEN) as started:
        yield started


@pytest.fixture(scope="module")
def server(browser: Browser, live: Live) -> SimpleNamespace:
    return SimpleNamespace(url=live.address)


def word(page: Page, number: int, sentence: int = 0):
    return page.locator("article").nth(sentence).locator(f'.word[data-word="{number}"] .grip')


def entered(windows) -> Page:
    page = windows(f"/?token={TOKEN}")
    expect(page.locator("article")).to_have_count(1)  # the example
    page.get_by_label("Text to parse").fill(TEXT)
    expect(page.locator("article")).to_have_count(3)
    return page


def test_a_token_opens_the_page_and_leaves_the_address(windows):
    page = entered(windows)
    assert "token" not in page.url
    page.reload()
    expect(page.locator("article")).to_have_count(3)
    stranger = windows("/")
    expect(stranger.locator("body")).to_contain_text("this server needs its token")


def test_another_model_gives_other_labels(windows):
    page = entered(windows)
    expect(page.locator("#model option")).to_have_text(["first", "second"])
    expect(word(page, 2)).to_have_attribute("aria-label", re.compile("nsubj of met"))
    page.locator("#model").select_option("second")
    expect(word(page, 2)).to_have_attribute("aria-label", re.compile("subject of met"))
    page.reload()  # the address has the model
    expect(word(page, 2)).to_have_attribute("aria-label", re.compile("subject of met"))


def test_clusters_are_those_of_the_model(windows, live, screenshot):
    body, bearer = {"text": TEXT, "coreference": True}, f"Bearer {TOKEN}"
    clusters = live.ask("/parse", body, Authorization=bearer)[1]["clusters"]
    assert [mention["text"] for mention in clusters[0]] == ["the king"] * 3
    page = entered(windows)
    for number, cluster in enumerate(clusters):
        expect(page.locator(f'.mention[data-cluster="{number}"]')).to_have_count(len(cluster))
    screenshot(page, "explore-clusters")


def test_a_new_model_is_trained_and_takes_over(windows, folder, tmp_path):
    treebank = toy.write(tmp_path / "toy.conllu", 40, seed=1)  # in a language that the first model has never seen
    with Live("annotate", treebank, "--model", folder / "first.headway") as started:
        page = windows("/annotate", at=SimpleNamespace(url=started.address))
        expect(page.locator("#model-name")).to_have_text("first")
        page.locator("#settings summary").click()
        page.get_by_role("button", name="Retrain on what is pinned").click()
        expect(page.locator("#retraining-bar")).to_be_visible()
        expect(page.locator("#model-name")).to_have_text("model-1", timeout=120_000)
        expect(page.locator("#retraining-bar")).to_be_hidden()
        expect(page.locator("#retraining")).to_contain_text("new model")
        explore = windows("/", at=SimpleNamespace(url=started.address))
        expect(explore.locator("#model")).to_have_value("model-1")
        expect(explore.locator("#model option")).to_have_text(["model-1", "first"])
        page.get_by_role("button", name="Back to the old model").click()
        expect(page.locator("#model-name")).to_have_text("first")
        expect(page.get_by_role("button", name="Use the new model")).to_be_visible()
        assert (tmp_path / "toy.conllu.models" / "model-1.headway").exists()
