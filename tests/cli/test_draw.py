"""`headway draw`: which file holds which tree, where probabilities come from, and what it says when it cannot."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner, Result

from headway import extras
from headway.cli import draw as command
from headway.cli import trees_as_text
from headway.cli.failures import in_one_sentence
from headway.drawing import comparison_drawing, heatmap_drawing, to_svg, tree_drawing, tree_text
from headway.pipeline import Parser
from headway.treebank import Sentence, read_treebank, write_treebank
from tests.cli import toy
from tests.cli.conftest import Invoke, one_error
from tests.cli.test_parse import with_spaces


class Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        with in_one_sentence():
            return super().invoke(ctx)


app = typer.Typer(cls=Commands, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
app.callback()(lambda: None)
app.command()(command.draw)


def draw(*words: Any, status: int = 0, stdin: bytes | None = None) -> Result:
    runner = CliRunner(env={"HEADWAY_QUIET": "1"})
    result = runner.invoke(app, ["draw", *map(str, words)], input=stdin, prog_name="headway")
    if result.exit_code != status or not isinstance(result.exception, SystemExit | None):
        raise AssertionError(f"exit status {result.exit_code}: {result.output}") from result.exception
    return result


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def trees(test_file: Path) -> list[Sentence]:
    return list(read_treebank(test_file))


@pytest.fixture(scope="module")
def unsure(folder: Path, invoke: Invoke, random_model: Path, test_file: Path) -> Path:
    """Trees with probabilities, many of them low."""
    path = folder / "unsure.conllu"
    invoke("parse", random_model, test_file, "--marginals", "-o", path)
    return path


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def svg_of(sentence: Sentence) -> str:
    return to_svg(tree_drawing(sentence))


def test_the_first_tree_goes_into_a_file_of_that_name_in_this_folder(
    here: Path, test_file: Path, trees: list[Sentence]
) -> None:
    assert draw(test_file).output == ""
    assert names(here) == ["test.svg"]
    assert (here / "test.svg").read_text("utf-8") == svg_of(trees[0])
    draw(test_file)  # again


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (["--sentence", "3"], {"test-3.svg": 3}),
        (["--sentence", "3", "-o", "a.svg"], {"a.svg": 3}),
        (["-o", "tree"], {"tree": 1}),
        (["-o", "tree.x", "--format", "svg"], {"tree.x": 1}),
        (["--sentence", "all"], {f"test-{n}.svg": n for n in range(1, 21)}),
        (["--sentence", "all", "-o", "a.svg"], {f"a-{n}.svg": n for n in range(1, 21)}),
        (["--sentence", "all", "-o", "a{n}b.svg"], {f"a{n}b.svg": n for n in range(1, 21)}),
        (["--sentence", "20", "-o", "{n}.svg"], {"20.svg": 20}),
    ],
)
def test_names_of_files(
    here: Path, test_file: Path, trees: list[Sentence], words: list[str], written: dict[str, int]
) -> None:
    draw(test_file, *words)
    assert names(here) == sorted(written)
    for name, number in written.items():
        assert (here / name).read_text("utf-8") == svg_of(trees[number - 1])


def test_standard_streams(test_file: Path, trees: list[Sentence], here: Path) -> None:
    data = test_file.read_bytes()
    for words in (["-"], ["-", "-o", "-"], [test_file, "-o", "-"]):
        assert draw(*words, stdin=data).stdout_bytes.decode() == svg_of(trees[0])
    assert draw("-", "--format", "png", stdin=data).stdout_bytes.startswith(b"\x89PNG")
    assert names(here) == []


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.pdf", b"%PDF-"), ("A.PDF", b"%PDF-")])
def test_pictures_by_name(here: Path, test_file: Path, name: str, start: bytes) -> None:
    draw(test_file, "-o", name)
    assert (here / name).read_bytes().startswith(start)
    draw(test_file, "-o", "other", "--format", name[-3:].lower())
    assert (here / "other").read_bytes() == (here / name).read_bytes()


def test_text_goes_to_the_terminal_or_into_one_file(here: Path, test_file: Path, trees: list[Sentence]) -> None:
    every = "\n".join(tree_text(tree) + "\n" for tree in trees)
    assert draw(test_file, "--format", "text").stdout == tree_text(trees[0]) + "\n"
    assert draw(test_file, "--format", "text", "--sentence", "all").stdout == every
    assert names(here) == []
    draw(test_file, "--sentence", "all", "-o", "all.txt")
    assert (here / "all.txt").read_text("utf-8") == every
    draw(test_file, "--sentence", "2", "-o", "{n}.txt")
    assert (here / "2.txt").read_text("utf-8") == tree_text(trees[1]) + "\n"


def test_a_terminal_without_these_lines_gets_others(
    test_file: Path, trees: list[Sentence], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees_as_text, "_has_lines", lambda encoding: False)
    assert draw(test_file, "--format", "text").stdout == tree_text(trees[0], ascii=True) + "\n"


def test_recorded_probabilities_shade_unless_told_otherwise(here: Path, unsure: Path) -> None:
    sentence = next(iter(read_treebank(unsure)))
    recorded = [1.0, *(float(misc.partition("HeadProbability=")[2]) for misc in sentence.layout.misc)]
    shaded = to_svg(tree_drawing(sentence, probabilities=recorded))
    assert min(recorded) < 0.7
    assert draw(unsure, "-o", "-").stdout == shaded
    assert draw(unsure, "-o", "-", "--probabilities").stdout == shaded
    assert draw(unsure, "-o", "-", "--no-probabilities").stdout == svg_of(sentence)
    marked = tree_text(sentence, probabilities=recorded, unsure_below=0.7)
    assert draw(unsure, "--format", "text").stdout == marked + "\n"
    assert re.search(r"\? \d+%", marked)


def test_a_model_parses_first(test_file: Path, random_model: Path) -> None:
    for number, parsed in enumerate(Parser.load(random_model).parse(list(read_treebank(test_file))), start=1):
        if number not in (1, 4):
            continue
        words = (test_file, "--model", random_model, "--sentence", number, "-o", "-")
        assert draw(*words).stdout == svg_of(parsed.sentence)
        shaded = tree_drawing(parsed.sentence, probabilities=parsed.confidence.arcs)
        assert draw(*words, "--probabilities").stdout == to_svg(shaded)
        assert draw(*words, "--heatmap").stdout == to_svg(heatmap_drawing(parsed.sentence, parsed.marginals))


def test_a_treebank_without_trees_can_be_parsed_and_drawn(here: Path, model: Path, trees: list[Sentence]) -> None:
    bare = here / "bare.conllu"
    words = Sentence.from_words(trees[0].forms, upos=trees[0].upos, xpos=trees[0].xpos, lemmas=trees[0].lemmas)
    write_treebank([words], bare)
    assert draw(bare, "--model", model, "-o", "-").stdout == svg_of(Parser.load(model).parse(words).sentence)
    assert one_error(draw(bare, status=1)) == f"{bare}, line 1: the sentence has no heads to draw; parse it first"


@pytest.fixture(scope="module")
def text_model(folder: Path, invoke: Invoke) -> Path:
    """A model that can split text: its treebank shows where there are no spaces."""
    source, path = folder / "drawn.conllu", folder / "drawn.headway"
    source.write_text(with_spaces(toy.treebank(60, seed=1)), encoding="utf-8")
    invoke("train", source, "--epochs", 3, "-o", path)
    return path


def test_a_text_is_split_and_parsed(here: Path, text_model: Path) -> None:
    path = here / "a.txt"
    text = "la hundo vidas un kato.\r\n\r\nun kato amas floro! bela hundo vidas kato.\r\n"
    path.write_text("\ufeff" + text, encoding="utf-8", newline="")
    expected = list(Parser.load(text_model).parse_text(text))
    assert len(expected) == 3
    draw(path, "--model", text_model, "--sentence", "all")
    assert names(here) == ["a-1.svg", "a-2.svg", "a-3.svg", "a.txt"]
    for number, parsed in enumerate(expected, start=1):
        assert (here / f"a-{number}.svg").read_text("utf-8") == svg_of(parsed.sentence)
    drawn = draw("-", "--model", text_model, "--sentence", 2, stdin=path.read_bytes()).stdout
    assert drawn == svg_of(expected[1].sentence)
    error = one_error(draw(path, "--model", text_model, "--sentence", 4, status=1))
    assert error == f"{path}: sentence 4 does not exist; there are 3 sentences"
    dataclasses.replace(Parser.load(text_model), segmenter=None).save(here / "m")
    assert "cannot split text into words" in one_error(draw(path, "--model", "m", status=1))
    path.write_bytes(b"un\n\xff")
    error = one_error(draw(path, "--model", text_model, status=1))
    assert error == f"{path}, line 2: 0xff at byte 4 is not valid UTF-8; save the file as UTF-8"


def test_standard_input_is_looked_at(test_file: Path, text_model: Path) -> None:
    data = test_file.read_bytes()
    drawn = draw(test_file, "--model", text_model, "-o", "-").stdout
    assert draw("-", "--model", text_model, stdin=data).stdout == drawn


def test_the_last_column_of_conllx_is_no_probability(here: Path) -> None:
    path = here / "a.conll"
    path.write_text("1\tGo\t_\t_\t_\t_\t0\troot\t_\tHeadProbability=0.1\n\n")
    assert draw(path, "-o", "-").stdout == svg_of(next(iter(read_treebank(path))))


def test_gold_trees_are_compared(here: Path, test_file: Path, unsure: Path, random_model: Path) -> None:
    pairs = list(zip(read_treebank(test_file), read_treebank(unsure), strict=True))
    for number in (1, 20):
        expected = to_svg(comparison_drawing(*pairs[number - 1]))
        words = ("--gold", test_file, "--sentence", number, "-o", "-")
        assert draw(unsure, *words).stdout == expected
        assert draw(test_file, "--model", random_model, *words).stdout == expected
    draw(unsure, "--gold", test_file, "--sentence", "all", "-o", "{n}.svg")
    assert names(here) == sorted(f"{n}.svg" for n in range(1, 21))
    assert (here / "7.svg").read_text("utf-8") == to_svg(comparison_drawing(*pairs[6]))


def test_what_does_not_exist_is_said_in_one_sentence(here: Path, test_file: Path, trees: list[Sentence]) -> None:
    def error(*words: Any) -> str:
        return one_error(draw(*words, status=1))

    empty, short, other = here / "empty.conllu", here / "short.conllu", here / "other.conllu"
    empty.write_text("")
    write_treebank(trees[:1], short)
    write_treebank(trees[1:2], other)
    assert error(test_file, "--sentence", 21) == f"{test_file}: sentence 21 does not exist; there are 20 sentences"
    assert error(short, "--sentence", 2) == f"{short}: sentence 2 does not exist; there is 1 sentence"
    assert error(empty) == f"{empty}: there are no sentences; give a file that has some"
    assert error(empty, "--sentence", "all") == f"{empty}: there are no sentences; give a file that has some"
    assert "cannot be opened (No such file or directory)" in error("nowhere.conllu")
    assert error(short, "--probabilities") == (
        f"{short}, line 1: not every word has a HeadProbability; give --model, or write them with "
        "headway parse --marginals"
    )
    assert error(test_file, "--gold", short, "--sentence", 2).startswith(f"{short}: sentence 2 does not exist")
    assert "draw two trees of the same words" in error(short, "--gold", other)
    assert error(short, "-o", "no/such/folder/a.svg").startswith("no/such/folder/a.svg: writing failed")
    assert error(short, "-o", "no/such/folder/a.png") == (
        "no/such/folder/a.png: writing failed (No such file or directory); create its folder first, or choose another "
        "name"
    )
    assert names(here) == ["empty.conllu", "other.conllu", "short.conllu"]


def test_files_of_different_lengths_cannot_be_compared(here: Path, test_file: Path, trees: list[Sentence]) -> None:
    short = here / "short.conllu"
    write_treebank(trees[:2], short)
    words = ("--sentence", "all", "-o", "{n}.svg")
    error = one_error(draw(test_file, "--gold", short, *words, status=1))
    assert error == f"{short}: sentence 3 of {test_file} is missing; give two files of the same text"
    error = one_error(draw(short, "--gold", test_file, *words, status=1))
    assert error == f"{test_file}: there are more sentences than in {short}; give two files of the same text"


@pytest.mark.parametrize("value", ["x", "nan", "2", "-1", ""])
def test_a_recorded_probability_must_be_one(here: Path, value: str) -> None:
    path = here / "a.conllu"
    path.write_text(f"1\tGo\t_\t_\t_\t_\t0\troot\t_\tHeadProbability={value}\n\n")
    error = one_error(draw(path, status=1))
    assert error == f"{path}, line 1: a HeadProbability is {value!r}; expected a number from 0 to 1"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["a.conllu", "--sentence", "0"],
        ["a.conllu", "--sentence", "two"],
        ["a.conllu", "--sentence", "9" * 30],
        ["a.conllu", "-o", "a.docx"],
        ["a.conllu", "--format", "docx"],
        ["a.txt"],
        ["a.conllu", "--heatmap"],
        ["a.conllu", "--heatmap", "--model", "m", "--gold", "b.conllu"],
        ["a.conllu", "--gold", "b.conllu", "--probabilities"],
        ["a.conllu", "--gold", "b.conllu", "--format", "text"],
        ["a.conllu", "--heatmap", "--model", "m", "-o", "a.txt"],
        ["-", "--gold", "-"],
        ["-", "--sentence", "all"],
        ["a.conllu", "--sentence", "all", "-o", "-"],
    ],
)
def test_wrong_usage_is_status_2(here: Path, words: list[str]) -> None:
    assert "Usage: headway" in draw(*words, status=2).output
    assert names(here) == []


def test_without_matplotlib_it_says_so_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    error = one_error(draw("nowhere.conllu", "-o", "a.png", status=1))
    assert "pip install 'headway[figures]'" in error


def test_characters_without_a_font_are_reported_once(here: Path) -> None:
    path = here / "a.conllu"
    write_treebank([Sentence.from_words(["\U000e0100\uf8ff", "\uf8fe"], heads=[-1, 0, 1])], path)
    result = draw(path, "-o", "a.png")
    assert result.stdout == ""
    assert re.fullmatch(r"headway: no font here has \d+ characters, drawn as boxes; .*\n", result.stderr)


def test_a_terminal_is_not_sent_pictures(test_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "sys", _Terminal())
    assert "a terminal cannot show PNG" in draw(test_file, "--format", "png", "-o", "-", status=2).output


class _Terminal:
    """`sys` as seen from a terminal."""

    class stdout:  # noqa: N801  (as in sys)
        encoding = "utf-8"

        @staticmethod
        def isatty() -> bool:
            return True


def test_a_terminal_gets_colours_and_its_own_width(
    test_file: Path, trees: list[Sentence], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees_as_text, "sys", _Terminal())
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.delenv("NO_COLOR", raising=False)
    found = trees_as_text.tree_as_text(trees[0], None, 0.5, "-")
    assert found == tree_text(trees[0], color=True, width=30)
    assert trees_as_text.tree_as_text(trees[0], None, 0.5, "a.txt") == tree_text(trees[0])
    monkeypatch.setenv("NO_COLOR", "1")
    assert trees_as_text.tree_as_text(trees[0], None, 0.5, "-") == tree_text(trees[0], width=30)


@pytest.mark.parametrize("name", ["trees/{n}.svg", "{n}/tree.svg", "a/b/{n}.txt"])
def test_folders_of_numbered_pictures_are_made(test_file: Path, here: Path, name: str) -> None:
    draw(test_file, "--sentence", "all", "-o", name)
    assert sorted(here.rglob("*.*")) == sorted(here / name.replace("{n}", str(n)) for n in range(1, 21))
    (here / "file").touch()
    said = one_error(draw(test_file, "-o", f"file/{name}", status=1))
    assert said.endswith("choose another name")
    assert said.startswith("file/")


def test_a_long_sentence_is_wrapped_into_rows(here: Path) -> None:
    words = [f"word{m}" for m in range(1, 81)]
    write_treebank([Sentence.from_words(words, heads=[-1, *range(80)])], "long.conllu")
    widths = []
    for words in ([], ["--width", "700"], ["--width", "0"]):
        draw("long.conllu", *words)
        head = re.search(r'width="([\d.]+)"', (here / "long.svg").read_text("utf-8"))
        assert head is not None
        widths.append(float(head[1]))
    assert widths[0] <= 1600
    assert widths[1] <= 700
    assert widths[2] > 4000
