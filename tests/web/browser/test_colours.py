"""Light and dark, and what axe-core finds to criticise: nothing serious, on either page, in either, wide or narrow."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect

from tests.web.browser.treebank import NUMBER

AXE = "axe-core@4.14.0"
AXE_SHA256 = "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"  # of axe.min.js
CACHE = Path(__file__).resolve().parents[3] / ".cache" / "axe-core-4.14.0"
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("address", ["/", f"/annotate#{NUMBER['pin']}"])
def test_dark_follows_the_system_until_somebody_chooses(windows, address, screenshot):
    page = windows(address, color_scheme="dark")
    expect(page.locator(".word").first).to_be_visible()
    dark = background(page)
    screenshot(page, f"{'annotate' if 'annotate' in address else 'explore'}-dark")
    page.emulate_media(color_scheme="light")
    light = background(page)
    assert light != dark
    page.get_by_label("Dark").check()
    assert background(page) == dark
    page.reload()  # and this browser remembers it
    expect(page.locator(".word").first).to_be_visible()
    assert background(page) == dark
    expect(page.get_by_label("Dark")).to_be_checked()
    page.get_by_label("Auto").check()
    assert background(page) == light


@pytest.fixture(scope="session")
def axe() -> str:
    """The text of axe.min.js, fetched once; a tool of the tests only."""
    script = CACHE / "axe.min.js"
    if not script.exists():
        _fetch(script)
    if hashlib.sha256(script.read_bytes()).hexdigest() != AXE_SHA256:
        pytest.fail(f"{script} is not {AXE}; remove it")
    return script.read_text("utf-8")


def _fetch(script: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"there is no npm to fetch {AXE} with")
    script.parent.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", AXE, "--silent", "--pack-destination", str(script.parent)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=script.parent, check=False)
    if done.returncode:
        pytest.skip(f"npm could not fetch {AXE}: {done.stderr.strip()[:200]}")
    with tarfile.open(script.parent / done.stdout.strip().splitlines()[-1]) as package:
        member = package.extractfile("package/axe.min.js")
        assert member is not None
        script.write_bytes(member.read())


@pytest.mark.parametrize(
    ("name", "viewport", "scheme"),
    [
        ("explore", WIDE, "light"),
        ("explore", NARROW, "dark"),
        ("annotate", WIDE, "dark"),
        ("annotate", NARROW, "light"),
        ("keys", WIDE, "light"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value["width"]),
)
def test_axe_finds_nothing_serious(windows, axe, screenshot, name, viewport, scheme):
    page = windows("/" if name == "explore" else f"/annotate#{NUMBER['pin']}", viewport=viewport, color_scheme=scheme)
    expect(page.locator(".word").first).to_be_visible()
    if name == "explore":
        page.locator("#trees").select_option("3")
        expect(page.locator(".stepper")).to_be_visible()
        page.locator(".grip").nth(6).focus()
        expect(page.locator(".word-card")).to_be_visible()
    elif name == "keys":
        page.locator(".grip").first.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
    else:
        page.locator(".grip").nth(6).press("l")
        expect(page.locator(".label-box .options")).to_be_visible()
    screenshot(page, f"{name}-{viewport['width']}-{scheme}")
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    grave = [
        (each["id"], each["impact"], [node["html"][:120] for node in each["nodes"]])
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert not grave
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")  # nothing sticks out
