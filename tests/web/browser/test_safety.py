"""Hostile text is text on both pages. The fixture `windows` fails a test if anything runs, opens, or is fetched."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect

from tests.web.browser.treebank import HOSTILE, NUMBER

MARKUP = (
    f'{HOSTILE} "><svg onload=alert(1)> javascript:alert(1) </title><script>alert(1)</script> {{{{7*7}}}} &lt;b&gt;'
)
RIGHT_TO_LEFT = "Sales \u202erose\u202c and \u2067fell\u2069 \u200f\u200e again \u061c."
CONTROLS = "Ta\tb \u0000null\u0007 bell \ufeff zero\u200bwidth \U0001f600\u200d\U0001f469 e\u0301\u0327\u0301."


@pytest.mark.parametrize(
    "text",
    [MARKUP, RIGHT_TO_LEFT, CONTROLS, "x" * 10_000],
    ids=["markup", "rtl", "controls", "long"],
)
def test_hostile_text_is_only_text(windows, text):
    page = windows("/")
    expect(page.locator("article")).to_have_count(1)
    page.get_by_label("Text to parse").fill(text)
    expect(page.locator("article .form").first).not_to_have_text("She")
    expect(page.locator("#state")).to_have_text(re.compile(r"^[\d,]+ sentences?, [\d,]+ words?$"))
    page.locator("article .grip").first.hover()
    expect(page.locator(".word-card").first).to_be_visible()
    page.mouse.move(2, 2)
    expect(page.locator("main img, main script, main iframe, main a[href^=javascript]")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")  # long words do not break the page
    page.reload()  # the address has the text, and gives it back
    if len(text) < 5_000:
        expect(page.get_by_label("Text to parse")).not_to_have_value("")
        assert page.get_by_label("Text to parse").input_value().replace("\n", " ") == text.replace("\n", " ")


def test_markup_is_shown_as_it_is(windows):
    page = windows("/")
    page.get_by_label("Text to parse").fill(f"He wrote {HOSTILE} there.")
    forms = page.locator("article .form")
    expect(forms.nth(1)).to_have_text("wrote")
    assert "".join(forms.all_text_contents()).replace(" ", "") == f"Hewrote{HOSTILE}there.".replace(" ", "")


def test_hostile_words_in_a_treebank(windows, screenshot):
    page = windows(f"/annotate#{NUMBER['hostile']}")
    expect(page.locator(".grip").nth(2)).to_have_attribute("aria-label", re.compile("onerror=alert"))
    page.locator(".grip").nth(2).click()
    expect(page.locator("#word-title")).to_contain_text("onerror=alert(1)>")
    page.get_by_label("Note on the sentence").fill(HOSTILE)
    page.keyboard.press("Enter")
    page.keyboard.press("x")
    expect(page.locator(".heads .forbidden")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type('text:"<script>"')
    expect(page.locator(".rows .row")).to_have_count(1)
    expect(page.locator(".row-text")).to_contain_text("<script>alert(2)</script>")
    expect(page.locator("main img, main script, aside img, aside script")).to_have_count(0)
    screenshot(page, "annotate-hostile")
