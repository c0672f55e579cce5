"""What is drawn is the automaton's, errors are those of plain loops, and the files repeat."""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from headway.inference.operator_automata import RIGHT
from headway.learning import spectral
from headway.learning.spectral import spectral_grammar
from headway_papers import luque2012_recovery
from headway_papers.luque2012_recovery import (
    BAR,
    COUNTED,
    SETTINGS,
    SIZES,
    TRUTH,
    Automaton,
    Row,
    frequencies,
    learnt,
    plot,
    recovery,
    run,
    trie_of,
)

String = tuple[int, ...]
STRINGS: list[String] = [x for length in range(5) for x in product((1, 2, 3), repeat=length)]


def probability(automaton: Automaton, x: String) -> float:
    """By summing over all paths of states."""
    total, states = 0.0, range(len(automaton.initial))
    for path in product(states, repeat=len(x) + 1):
        one = automaton.initial[path[0]] * automaton.final[path[-1]]
        for a, before, after in zip(x, path, path[1:], strict=False):
            one *= automaton.operators[a - 1, after, before]
        total += one
    return float(total)


def split(lengths: np.ndarray, symbols: np.ndarray) -> list[String]:
    ends = np.cumsum(lengths).tolist()
    return [tuple(symbols[end - n : end].tolist()) for end, n in zip(ends, lengths.tolist(), strict=True)]


def test_the_truth_is_a_distribution_that_needs_three_states() -> None:
    np.testing.assert_allclose(TRUTH.operators.sum(axis=(0, 1)) + TRUTH.final, 1.0, rtol=1e-12)
    assert TRUTH.initial.sum() == pytest.approx(1.0, rel=1e-12)
    assert TRUTH.weights(9).sum() == pytest.approx(0.9036, abs=1e-3)
    table = {x: probability(TRUTH, x) for x in STRINGS}
    short = [x for x in STRINGS if len(x) <= 2]
    hankel = np.array([[table[x + y] for y in short] for x in short])
    assert np.linalg.matrix_rank(hankel, tol=1e-12) == 3


def test_weights_are_sums_over_paths_by_length_and_alphabet() -> None:
    np.testing.assert_allclose(TRUTH.weights(4), [probability(TRUTH, x) for x in STRINGS], rtol=1e-12)


def test_what_is_drawn_has_the_automatons_probabilities() -> None:
    """20,000 strings: every short one is within five standard deviations, and so is the mean length."""
    count = 20_000
    lengths, symbols = TRUTH.draw(count, np.random.default_rng(1))
    seen = Counter(split(lengths, symbols))
    assert seen.total() == len(lengths) == count
    for x in STRINGS[:40]:
        p = probability(TRUTH, x)
        assert abs(seen[x] / count - p) < 5 * np.sqrt(p * (1 - p) / count), x
    moves = TRUTH.operators.sum(axis=0)
    mean = float((moves @ np.linalg.solve(np.eye(3) - moves, TRUTH.initial)).sum())
    assert abs(lengths.mean() - mean) < 5 * lengths.std() / np.sqrt(count)


def test_strings_stay_whole() -> None:
    """1 2 in turn, from a fixed first symbol: mixed up steps or strings would show."""
    operators = np.zeros((2, 2, 2))
    operators[0, 1, 0] = operators[1, 0, 1] = 0.7
    turns = Automaton(np.array([1.0, 0.0]), np.array([0.3, 0.3]), operators)
    drawn = split(*turns.draw(500, np.random.default_rng(0)))
    assert len({len(x) for x in drawn}) > 5
    for x in drawn:
        assert x == ((1, 2) * len(x))[: len(x)]


def test_no_strings_can_be_drawn_and_empty_ones() -> None:
    lengths, symbols = TRUTH.draw(0, np.random.default_rng(0))
    assert (len(lengths), len(symbols)) == (0, 0)
    silent = Automaton(np.ones(1), np.ones(1), np.zeros((2, 1, 1)))
    lengths, symbols = silent.draw(4, np.random.default_rng(0))
    assert lengths.tolist() == [0, 0, 0, 0]
    assert not len(symbols)


def test_relative_frequencies_are_those_of_a_counter() -> None:
    lengths, symbols = TRUTH.draw(700, np.random.default_rng(2))
    seen = Counter(split(lengths, symbols))
    found = frequencies(trie_of(3, lengths, symbols), 4)
    np.testing.assert_allclose(found, [seen[x] / 700 for x in STRINGS], rtol=1e-14)


def test_rows_are_the_errors_of_what_is_learnt() -> None:
    """Of the first strings of one long draw, each setting's, over all strings."""
    sizes, seeds = [50, 400], [3, 4]
    rows = recovery(TRUTH, sizes, seeds, longest=3)
    assert len(rows) == len(sizes) * len(seeds) * (len(SETTINGS) + 1)
    short = [x for x in STRINGS if len(x) <= 3]
    for seed, size in product(seeds, sizes):
        lengths, symbols = TRUTH.draw(400, np.random.default_rng(seed))
        drawn = split(lengths, symbols)[:size]
        trie = trie_of(3, lengths[:size], symbols[: sum(map(len, drawn))])
        assert Counter(dict(trie.sequences(0, RIGHT))) == Counter(drawn)
        for name, (context, ridge, least) in SETTINGS.items():
            grammar = spectral_grammar(trie, 3, context=context, ridge=ridge, least=least)
            errors = [abs(grammar.weight(0, RIGHT, x) - probability(TRUTH, x)) for x in short]
            assert_row(rows, Row(name, seed, size, max(errors), sum(errors)))
        seen = Counter(drawn)
        errors = [abs(seen[x] / size - probability(TRUTH, x)) for x in short]
        assert_row(rows, Row(COUNTED, seed, size, max(errors), sum(errors)))


def assert_row(rows: list[Row], expected: Row) -> None:
    key = (expected.setting, expected.seed, expected.strings)
    [row] = [row for row in rows if (row.setting, row.seed, row.strings) == key]
    assert row.largest == pytest.approx(expected.largest, rel=1e-5)
    assert row.total == pytest.approx(expected.total, rel=1e-5)


def test_the_papers_settings_and_the_default_are_both_there() -> None:
    assert (1, 0.0, 0.0) in SETTINGS.values()
    assert (spectral.CONTEXT, spectral.RIDGE, spectral.LEAST) in SETTINGS.values()
    assert {context for context, *_ in SETTINGS.values()} >= {1, 2}
    assert max(SIZES) == 10**6


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_million_strings_leave_less_than_the_bar(setting: str) -> None:
    lengths, symbols = TRUTH.draw(10**6, np.random.default_rng(0))
    errors = []
    for size in (1000, 10**6):
        found = learnt(trie_of(3, lengths[:size], symbols[: lengths[:size].sum()]), 3, *SETTINGS[setting])
        errors.append(float(np.abs(found.weights(8) - TRUTH.weights(8)).max()))
    assert errors[1] < BAR
    assert errors[1] < errors[0] / 10


def test_the_files_repeat_and_what_is_done_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    one, two = tmp_path / "one", tmp_path / "deep" / "two"
    for folder in (one, two):
        run(folder, sizes=[60, 200], seeds=2, say=said.append)
    assert sorted(path.name for path in one.iterdir()) == ["recovery.json", "recovery.svg"]
    for name in ("recovery.json", "recovery.svg"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    assert len(said) == 2 * (len(SETTINGS) + 1)
    found = json.loads((one / "recovery.json").read_text("utf-8"))
    assert [Row(**row) for row in found["rows"]] == recovery(TRUTH, [60, 200], [0, 1])
    assert len(found["singular_values"]) == 3
    assert found["probability"] == pytest.approx(TRUTH.weights(8).sum(), rel=1e-5)
    svg = (one / "recovery.svg").read_bytes()
    (one / "recovery.svg").unlink()
    monkeypatch.setattr(luque2012_recovery, "recovery", None)  # must not be computed again
    run(one, sizes=[60, 200], seeds=2, say=said.append)
    assert (one / "recovery.svg").read_bytes() == svg


def test_other_sizes_are_computed_anew(tmp_path: Path) -> None:
    for sizes in ([60], [60, 90]):
        run(tmp_path, sizes=sizes, seeds=1, say=lambda line: None)
        found = json.loads((tmp_path / "recovery.json").read_text("utf-8"))
        assert sorted({row["strings"] for row in found["rows"]}) == sizes


def test_what_is_said_is_the_worst_of_the_seeds(tmp_path: Path) -> None:
    said: list[str] = []
    run(tmp_path, sizes=[60, 200], seeds=3, say=said.append)
    rows = recovery(TRUTH, [60, 200], [0, 1, 2])
    for line, name in zip(said, [*SETTINGS, COUNTED], strict=True):
        worst = max(row.largest for row in rows if row.setting == name and row.strings == 200)
        assert line == f"recovery from 200 strings, {name}: largest error {worst:.2g} of 3 seeds"


def test_the_plot_shows_medians_and_the_bar() -> None:
    rows = recovery(TRUTH, [60, 200], [0, 1, 2])
    left, right = plot(rows).axes
    for axes, error in ((left, "largest"), (right, "total")):
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        lines = {line.get_label(): line for line in axes.get_lines()}
        for name in [*SETTINGS, COUNTED]:
            assert lines[name].get_xdata().tolist() == [60, 200]
            for size, height in zip([60, 200], lines[name].get_ydata().tolist(), strict=True):
                values = [getattr(row, error) for row in rows if (row.setting, row.strings) == (name, size)]
                assert height == sorted(values)[1]
    assert any(set(line.get_ydata()) == {BAR} for line in left.get_lines())
