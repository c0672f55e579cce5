"""The explore page: trees as one types, alternatives, "what if", the k best trees, links and files."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import Page, Route, expect

from headway.treebank import read_treebank

TELESCOPE = "She saw the man with a telescope."


def word(page: Page, number: int, sentence: int = 0):
    return page.locator("article").nth(sentence).locator(f'.word[data-word="{number}"] .grip')


def says(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text))


def test_trees_appear_as_one_types(windows, screenshot):
    page = windows("/")
    expect(page.locator("article")).to_have_count(1)  # the example
    expect(word(page, 7)).to_have_attribute("aria-label", says("telescope, word 7, NOUN, nmod of man"))
    page.get_by_label("Text to parse").fill("")
    expect(page.locator("article")).to_have_count(0)
    page.get_by_label("Text to parse").press_sequentially("Dogs bark. Cats sleep.")
    expect(page.locator("article")).to_have_count(2)
    expect(word(page, 1, 0)).to_have_attribute("aria-label", says("Dogs, word 1, NOUN, nsubj of bark"))
    expect(word(page, 2, 1)).to_have_attribute("aria-label", says("sleep, word 2, VERB, root"))
    expect(page.locator("#state")).to_have_text("2 sentences, 6 words")
    expect(page.locator("article").first.locator(".facts")).to_contain_text("tree probability")
    expect(page.locator("article").first.locator(".chip")).to_have_text("EXACT")
    screenshot(page, "explore-light")


def test_an_older_answer_never_overwrites_a_newer_one(windows):
    page = windows("/")
    expect(page.locator("article")).to_have_count(1)
    held: list[Route] = []

    def hold(route: Route) -> None:
        if "Slow" in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    page.route("**/parse", hold)
    with page.expect_request("**/parse"):
        page.get_by_label("Text to parse").fill("Slow answers come late.")
    page.get_by_label("Text to parse").fill("Fast ones win.")
    expect(word(page, 1)).to_have_attribute("aria-label", says("Fast, word 1"))
    body = {"model": "en", "sentences": [sentence(["Slow"], [0])]}
    held[0].fulfill(json=body)
    page.locator("#trees").select_option("2")  # and its answer comes after that
    expect(page.locator(".stepper")).to_be_visible()
    expect(word(page, 1)).to_have_attribute("aria-label", says("Fast, word 1"))


def test_a_word_shows_its_other_heads(windows, screenshot):
    page = windows("/")
    word(page, 7).hover()
    card = page.locator(".word-card")
    expect(card).to_be_visible()
    expect(card.locator("tr")).not_to_have_count(0)
    heads = card.locator("tr button").all_inner_texts()
    assert {"man", "saw"} <= set(heads)
    shares = [float(value.strip("<>")) for value in card.locator(".value").all_inner_texts()]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1, abs=0.06)
    expect(page.locator(".ghost")).not_to_have_count(0)
    screenshot(page, "explore-alternatives")
    page.mouse.move(5, 5)
    expect(card).to_be_hidden()
    expect(page.locator(".ghost")).to_have_count(0)
    word(page, 1).focus()  # by the keyboard as well
    expect(card).to_contain_text("She")
    page.keyboard.press("ArrowRight")
    expect(word(page, 2)).to_be_focused()
    expect(card).to_contain_text("saw")


@pytest.mark.parametrize("by", ["mouse", "keyboard", "table"])
def test_what_if(windows, by):
    page = windows("/")
    before = word(page, 7).get_attribute("aria-label")
    assert "nmod of man" in before
    if by == "mouse":
        word(page, 7).click()
        word(page, 2).click()
    elif by == "keyboard":
        word(page, 7).focus()
        page.keyboard.press("Enter")
        for _ in range(5):
            page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
    else:
        word(page, 7).click()
        page.get_by_role("button", name="Pin saw as the head of telescope").click()
    expect(word(page, 7)).to_have_attribute("aria-label", says("obl of saw, pinned"))
    expect(page.locator(".arcs .arc.pinned")).to_have_count(1)
    expect(page.locator(".what-if")).to_contain_text("telescope under saw")
    expect(page.locator(".facts")).to_contain_text("given the pin")
    page.get_by_role("button", name="Remove the pin: telescope under saw").click()
    expect(word(page, 7)).to_have_attribute("aria-label", before)
    expect(page.locator(".what-if")).to_be_hidden()


def test_a_pin_moves_the_other_words(windows):
    page = windows("/")
    word(page, 2).click()
    word(page, 7).click()  # "saw" cannot be the root any more
    expect(word(page, 2)).to_have_attribute("aria-label", says("of telescope, pinned"))
    expect(page.locator(".arcs .arc.changed")).not_to_have_count(0)
    expect(page.locator(".moved")).to_contain_text("moved")


def test_pins_that_leave_no_tree_are_refused_in_words(windows):
    page = windows("/")
    for one, other in ((3, 4), (4, 3)):
        word(page, one).click()
        word(page, other).click()
        if one == 3:
            expect(word(page, 3)).to_have_attribute("aria-label", says("pinned"))
    expect(page.locator("article .problem")).to_contain_text("man")
    expect(page.locator(".pin-chip")).to_have_count(1)


def test_the_best_trees_one_by_one(windows):
    page = windows("/")
    page.locator("#trees").select_option("5")
    expect(page.locator(".stepper")).to_contain_text("tree 1 of 5")
    first = float(page.locator(".facts b").inner_text())
    page.get_by_role("button", name="Next tree").click()
    expect(page.locator(".stepper")).to_contain_text("tree 2 of 5")
    expect(word(page, 7)).to_have_attribute("aria-label", says("obl of saw"))  # with the label of this tree
    assert float(page.locator(".facts b").inner_text()) <= first
    expect(page.locator(".arcs .arc.changed")).not_to_have_count(0)
    page.get_by_role("button", name="Better tree").click()
    expect(word(page, 7)).to_have_attribute("aria-label", says("nmod of man"))


def test_a_link_reproduces_the_view(windows):
    page = windows("/")
    page.get_by_label("Text to parse").fill(f"Dogs & cats = 100% + fun? {TELESCOPE}")
    expect(page.locator("article")).to_have_count(2)
    page.locator("#trees").select_option("3")
    expect(page.locator(".stepper")).to_have_count(2)
    word(page, 7, 1).click()
    word(page, 2, 1).click()
    expect(word(page, 7, 1)).to_have_attribute("aria-label", says("of saw, pinned"))
    page.locator("article").nth(1).get_by_role("button", name="Next tree").click()
    expect(page.locator("article").nth(1).locator(".stepper")).to_contain_text("tree 2 of 3")
    expect(page).to_have_url(re.compile(r"tree=1\.1"))
    expect(word(page, 1, 1)).to_have_attribute("aria-label", re.compile("of"))
    other = windows(page.url.removeprefix(page.url.split("/#")[0]))
    expect(other.get_by_label("Text to parse")).to_have_value(f"Dogs & cats = 100% + fun? {TELESCOPE}")
    expect(other.locator("#trees")).to_have_value("3")
    expect(other.locator("article").nth(1).locator(".pin-chip")).to_contain_text("telescope under saw")


def test_copies_and_files(windows):
    page = windows("/", permissions=["clipboard-read", "clipboard-write"], color_scheme="dark")
    expect(page.locator("article")).to_have_count(1)
    page.get_by_label("Text to parse").fill(f"Dogs don't bark. {TELESCOPE}")
    expect(page.locator("article")).to_have_count(2)
    menu = page.locator("article").first.locator("summary")

    def copied(name: str) -> str:
        menu.click()
        page.get_by_role("group", name=name).get_by_role("button", name="Copy").click()
        expect(page.locator("#toast")).to_have_text(f"{name} copied.")
        return page.evaluate("navigator.clipboard.readText()")

    [tree] = read_treebank(io.StringIO(copied("CoNLL-U")), format="conllu")
    assert tree.forms == ("Dogs", "do", "n't", "bark", ".")
    assert tree.heads.tolist()[4] == 0
    assert "SpaceAfter=No" in tree.to_conllu()
    assert "2-3\tdon't" in tree.to_conllu()
    assert json.loads(copied("JSON"))["words"][0]["form"] == "Dogs"
    picture = ElementTree.fromstring(copied("SVG"))
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Dogs", "bark", "nsubj", "NOUN"} <= set(texts)
    assert not [e for e in picture.iter() if {"class", "style", "tabindex"} & set(e.attrib)]  # it stands alone
    assert picture.find("{http://www.w3.org/2000/svg}rect").get("fill") == "white"  # and is light, as paper is
    with page.expect_download() as download:
        page.locator("#export summary").click()
        page.locator("#export").get_by_role("group", name="CoNLL-U").get_by_role("button", name="Download").click()
    assert len(list(read_treebank(io.StringIO(download.value.path().read_text("utf-8")), format="conllu"))) == 2
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#toast")).to_have_text("Link copied.")
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_long_texts_are_drawn_as_they_are_scrolled_to(windows):
    page = windows("/")
    page.get_by_label("Text to parse").fill("The dogs bark at the cats. " * 120)
    expect(page.locator("article")).to_have_count(120)
    expect(page.locator("#state")).to_have_text("120 sentences, 840 words")
    assert page.locator(".word").count() < 400
    page.locator("article").last.scroll_into_view_if_needed()
    expect(word(page, 3, 119)).to_be_visible()


def test_mentions_of_one_thing_have_one_colour(windows, screenshot):
    page = windows("/")
    expect(page.locator("article")).to_have_count(1)
    sentences = [
        sentence(["Ann", "met", "her", "son", "."], [2, 0, 4, 2, 2]),
        sentence(["She", "hugged", "him", "."], [2, 0, 2, 2]),
    ]
    ann = [{"sentence": 0, "words": [1]}, {"sentence": 0, "words": [3]}, {"sentence": 1, "words": [1]}]
    son = [{"sentence": 0, "words": [3, 4]}, {"sentence": 1, "words": [3]}]
    page.route(
        "**/parse", lambda route: route.fulfill(json={"model": "en", "sentences": sentences, "clusters": [ann, son]})
    )
    page.get_by_label("Text to parse").fill("Ann met her son. She hugged him.")
    expect(page.locator("article")).to_have_count(2)
    expect(page.locator('.mention[data-cluster="0"]')).to_have_count(3)
    expect(page.locator('.mention[data-cluster="1"]')).to_have_count(2)
    rows = {
        m.get_attribute("d").split(",")[1].split(" ")[0]
        for m in page.locator("article").first.locator(".mention").all()
    }
    assert len(rows) == 2  # "her" is below "her son"
    screenshot(page, "explore-coreference")


@pytest.mark.parametrize(("status", "sentence"), [(413, "the text is too long"), (503, "too many requests at once")])
def test_refusals_are_shown_near_the_box(windows, status, sentence):
    page = windows("/")
    expect(page.locator("article")).to_have_count(1)
    page.route("**/parse", lambda route: route.fulfill(status=status, json={"error": sentence}))
    page.get_by_label("Text to parse").fill("Something else.")
    expect(page.get_by_role("alert")).to_have_text(f"{sentence.capitalize()}.")


def test_a_server_that_is_gone_is_said_to_be(windows):
    page = windows("/")
    expect(page.locator("article")).to_have_count(1)
    page.route("**/parse", lambda route: route.abort())
    page.get_by_label("Text to parse").fill("Something else.")
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    page.unroute("**/parse")
    expect(word(page, 1)).to_have_attribute("aria-label", says("Something"))  # it tries again by itself


def sentence(forms: list[str], heads: list[int]) -> dict:
    """A sentence as the server would answer it."""
    words = [
        {"id": i, "form": form, "lemma": form.lower(), "upos": "X", "xpos": None, "feats": {}, "head": head}
        | {"label": "dep", "probability": 0.9, "label_probability": None, "offsets": None}
        for i, (form, head) in enumerate(zip(forms, heads, strict=True), start=1)
    ]
    about = {"multiword_tokens": [], "probability": 0.9, "status": "EXACT", "gap": 0.0}
    return {"text": " ".join(forms), "words": words, "alternatives": [[] for _ in words], "kbest": None, **about}
