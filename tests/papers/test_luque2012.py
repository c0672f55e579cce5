"""luque2012 on toy treebanks: cells are what the library says, choices look at development data, work is kept."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from headway.drawing import automaton_dot
from headway.errors import TreebankError
from headway.evaluation import evaluate
from headway.inference.operator_automata import OperatorGrammar
from headway.inference.operator_grammar import posteriors
from headway.inference.operator_viterbi import viterbi
from headway.inference.tree_distribution import TreeDistribution
from headway.learning.deterministic import SMOOTHING, deterministic_grammar
from headway.learning.expectation_maximization import em_steps
from headway.learning.modifier_trie import ModifierTrie
from headway.learning.spectral import spectral_grammar
from headway.models.grammar_model import Grammar, GrammarModel, TagSymbols
from headway.models.lexical_grammar import LexicalGrammar
from headway.pipeline import Parser
from headway.training.data import checksum
from headway.training.grammar_settings import BACKED_OFF
from headway.training.grammar_trainer import state_picture, trie_of
from headway.treebank import Sentence, is_projective, projectivise, read_treebank, require_tree, write_treebank
from headway_papers import luque2012, luque2012_figures
from headway_papers.luque2012_recovery import SETTINGS
from tests.models.toy_treebank import sentences

REPOSITORY = Path(__file__).parents[2]
EXPERIMENTS = REPOSITORY / "experiments" / "luque2012"
OPTIONS: dict[str, Any] = {"languages": None, "quick": True, "threads": 1}
TAGS = {"N": "NN"}  # the tag that is always drawn
SPLIT = (40, 60)
NAMES = ("wsj", "ewt")
EWT = Path("ud") / "UD_English-EWT"
VARIANTS: dict[str, dict[str, Any]] = {
    "spectral-paper": {"context": 1, "ridge": 0.0},
    "spectral": {},
    "spectral-scaled": {"ridge": 10.0, "scale": 0.5},
}

Parts = dict[str, list[Sentence]]
Chain = tuple[str, ...]


def toy(count: int, seed: int) -> list[Sentence]:
    """A share of the tags is drawn at random, so that scores differ from grammar to grammar; some trees cross."""
    rng, text = np.random.default_rng(seed), []
    for sentence in sentences(count, seed, crossing=True):
        drawn = rng.choice(["D", "J", "NN", "V", "A", "S"], len(sentence))
        tags = [TAGS.get(tag, tag) for tag in sentence.xpos]
        text.append(replace(sentence, xpos=tuple(np.where(rng.random(len(tags)) < 0.15, drawn, tags).tolist())))
    return text


def write_ewt(data: Path, seeds: Mapping[str, int]) -> None:
    (data / EWT).mkdir(parents=True, exist_ok=True)
    for part, seed in seeds.items():
        write_treebank(toy(66 if part == "train" else 15, seed), data / EWT / f"en_toy-ud-{part}.conllu")


@pytest.fixture(scope="module", autouse=True)
def _small_split() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(luque2012, "SPLIT", SPLIT)
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "wsj-sample").mkdir()
    write_treebank(toy(80, 0), folder / "wsj-sample" / "wsj_sample.conll", format="conllx")
    write_ewt(folder, {"train": 1, "dev": 2, "test": 3})
    return folder


@pytest.fixture(scope="module")
def said() -> list[str]:
    return []


@pytest.fixture(scope="module")
def output(data: Path, said: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("luque2012")
    luque2012.run(data, folder, say=said.append, **OPTIONS)
    return folder


def parts_of(data: Path, name: str) -> Parts:
    """Training (at most 60 sentences of it), development and test sentences, as the files have them."""
    if name == "wsj":
        text = list(read_treebank(data / "wsj-sample" / "wsj_sample.conll"))
        return {"train": text[:40], "dev": text[40:60], "test": text[60:]}
    return {
        part: list(read_treebank(data / EWT / f"en_toy-ud-{part}.conllu"))[:60] for part in ("train", "dev", "test")
    }


def file_of(output: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "quick" / f"{name}.json").read_text("utf-8"))
    return found


def cells_of(output: Path, name: str) -> dict[str, Any]:
    return dict(file_of(output, name)["cells"])


def chains(trees: Sequence[Sentence]) -> dict[tuple[str, int], Counter[Chain]]:
    """The tags of all modifiers of every head, outwards, by the head's tag (or ROOT) and side (0 left, 1 right)."""
    found: dict[tuple[str, int], Counter[Chain]] = {}
    for sentence in trees:
        assert sentence.heads is not None
        tags = ["ROOT", *sentence.xpos]
        for h, tag in enumerate(tags):
            for side, outwards in enumerate((range(h - 1, 0, -1), range(h + 1, len(tags)))):
                chain = tuple(tags[m] for m in outwards if sentence.heads[m] == h)
                found.setdefault((tag, side), Counter())[chain] += 1
    return found


def assert_scores(cell: Mapping[str, Any], gold: Sequence[Sentence], heads: Sequence[Any]) -> None:
    trees = [sentence.with_tree(found, sentence.labels) for sentence, found in zip(gold, heads, strict=True)]
    scores = evaluate(gold, trees)
    assert cell["uas"] == pytest.approx(scores.uas_no_punct, abs=1e-9)
    assert cell["uas_with_punctuation"] == pytest.approx(scores.uas, abs=1e-9)


def assert_parses(cell: Mapping[str, Any], parser: Parser, gold: Sequence[Sentence]) -> None:
    """A cell's scores are those of the parser, and its negative marginals those that the parser counts."""
    assert isinstance(parser.model, GrammarModel)
    parsed = list(parser.parse(gold))
    assert_scores(cell, gold, [one.heads for one in parsed])
    negative = [one.floored[0] for one in parsed]
    assert len(negative) == len(gold)
    assert cell["negative"] == pytest.approx(sum(negative) / sum(len(sentence) ** 2 for sentence in gold))


def parser_of(grammar: Grammar) -> Parser:
    coder = Parser.induce(toy(3, 9), states=1).model.coder
    return Parser(GrammarModel(coder, grammar, None, True, {}))


# What is written


@pytest.mark.parametrize("name", NAMES)
def test_all_cells_are_there(name: str, output: Path, said: list[str]) -> None:
    names = ["det-1", "det-2", *VARIANTS, "em-2-0", "table-1"]
    names += ["lexical-LEX", "lexical-LEX+F", "lexical-LEX+FCP", "timings", "parsing", "pictures"]
    assert list(cells_of(output, name)) == names
    assert [line for line in said if line.startswith(f"{name} ")] == [f"{name} {cell}" for cell in names]


def test_tables_and_figures_are_of_the_cells(output: Path, said: list[str]) -> None:
    text = luque2012_figures.tables_text({name: cells_of(output, name) for name in NAMES})
    assert (output / "quick.md").read_text("utf-8") == text == said[-1]
    for name in ("quick-figure-1", "quick-figure-2"):
        assert (output / f"{name}.png").stat().st_size > 10_000
        assert "<svg" in (output / f"{name}.svg").read_text("utf-8")
    assert not (output / "recovery.json").exists()  # quick leaves it out


@pytest.mark.parametrize("name", NAMES)
def test_files_are_signed(name: str, data: Path, output: Path) -> None:
    parts = parts_of(data, name)
    assert not all(is_projective(require_tree(sentence)) for sentence in parts["train"])
    parts["train"] = list(map(projectivise, parts["train"]))
    signed = file_of(output, name)["signature"]
    assert signed["data"] == {part: checksum(some) for part, some in parts.items()}
    assert signed["spectral"]["spectral-paper"] == [1, 0.0, 1.0, 0.0]
    assert signed["backed_off"] == BACKED_OFF


# What is in the cells


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("states", [1, 2])
def test_deterministic_grammars_score_as_the_parser_does(name: str, states: int, data: Path, output: Path) -> None:
    parts, cells = parts_of(data, name), cells_of(output, name)
    parser = Parser.induce(parts["train"], method="det", states=states, labels="none")
    assert isinstance(parser.model, GrammarModel)
    for part in ("dev", "test"):
        cell = cells[f"det-{states}"][part]
        assert_parses(cell, parser, parts[part])
        grammar = parser.model.grammar
        best = viterbi(grammar.operators, list(map(grammar.symbols.of, parts[part])))
        trees = [sentence.with_tree(heads) for sentence, (heads, _) in zip(parts[part], best, strict=True)]
        assert cell["viterbi"] == pytest.approx(evaluate(parts[part], trees).uas_no_punct, abs=1e-9)
        assert cell["negative"] == cell["negative_sentences"] == 0


def arc_scores(sentence: Sentence, seen: Mapping[tuple[str, int], Counter[Chain]], outcomes: int) -> Any:
    """log P(tag of the modifier | tag of the head, side), smoothed, by counting."""
    tags = ["ROOT", *sentence.xpos]
    found = np.zeros((len(tags), len(tags)))
    for h, m in np.ndindex(found.shape):
        if m not in (0, h):
            those = seen[tags[h], int(h < m)]
            times = sum(chain.count(tags[m]) * count for chain, count in those.items())
            total = sum((len(chain) + 1) * count for chain, count in those.items())
            found[h, m] = log((times + SMOOTHING) / (total + outcomes * SMOOTHING))
    return found


def least_risk(trees: TreeDistribution) -> Any:
    with np.errstate(divide="ignore"):
        return TreeDistribution(np.log(trees.marginals), projective=True).argmax()


@pytest.mark.parametrize("name", NAMES)
def test_det_is_an_arc_factored_distribution(name: str, data: Path, output: Path) -> None:
    """With one state a tree weighs what its arcs do, by counts of tags under tags; STOP is in all trees alike."""
    parts, cell = parts_of(data, name), cells_of(output, name)["det-1"]
    train = list(map(projectivise, parts["train"]))
    seen, symbols = chains(train), TagSymbols.learn(train, "xpos")
    operators = deterministic_grammar(trie_of(train, symbols), first=False)
    for part in ("dev", "test"):
        safest = []
        for sentence in parts[part]:
            arcs = arc_scores(sentence, seen, symbols.size)
            trees = TreeDistribution(arcs, projective=True)
            safest.append(least_risk(trees))
            # other trees may weigh the same, so that scores of the best one cannot be compared
            [(best, _)] = viterbi(operators, [symbols.of(sentence)])
            assert arcs[best[1:], np.arange(1, len(best))].sum() == pytest.approx(trees.max, rel=1e-12)
        assert_scores(cell[part], parts[part], safest)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_spectral_curves_are_of_grammars_learnt_one_by_one(name: str, variant: str, data: Path, output: Path) -> None:
    parts, cells = parts_of(data, name), cells_of(output, name)
    curve = cells[variant]
    assert curve["states"] == [1, 2, 3]
    signs = []
    for states, cell in zip(curve["states"], curve["dev"], strict=True):
        parser = Parser.induce(parts["train"], states=states, labels="none", **VARIANTS[variant])
        assert_parses(cell, parser, parts["dev"])
        assert isinstance(parser.model, GrammarModel)
        grammar = parser.model.grammar
        found = posteriors(grammar.mixture, list(map(grammar.symbols.of, parts["dev"])))
        assert cell["negative_sentences"] == sum(one.sign < 0 for one in found)
        signs.append(cell["negative"])
    assert signs[0] == 0  # one state is the relative frequencies
    assert max(signs) > 0
    best = max(zip(curve["dev"], curve["states"], strict=True), key=lambda one: (one[0]["uas"], -one[1]))[1]
    row = cells["table-1"][variant]
    assert row["states"] == best
    assert_parses(row, Parser.induce(parts["train"], states=best, labels="none", **VARIANTS[variant]), parts["test"])


@pytest.mark.parametrize("name", NAMES)
def test_em_is_scored_on_the_way(name: str, data: Path, output: Path) -> None:
    parts, cells = parts_of(data, name), cells_of(output, name)
    train = list(map(projectivise, parts["train"]))
    symbols = TagSymbols.learn(train, "xpos")
    trie = trie_of(train, symbols)
    cell = cells["em-2-0"]
    assert cell["iterations"] == [1, 2, 5]
    grammars = [step.grammar for step in islice(em_steps(trie, 2, np.random.default_rng((2, 0))), 5)]
    back_off = deterministic_grammar(trie, first=True)
    parsers = {
        iteration: parser_of(Grammar(symbols, grammars[iteration - 1], back_off, BACKED_OFF))
        for iteration in cell["iterations"]
    }
    for iteration, scores in zip(cell["iterations"], cell["dev"], strict=True):
        assert_parses(scores, parsers[iteration], parts["dev"])
    seen = chains(train)
    assert len(cell["log_likelihoods"]) == 5
    for before, likelihood in zip(grammars[:4], cell["log_likelihoods"][1:], strict=True):
        expected = 0.0
        for (tag, side), those in seen.items():
            head = 0 if tag == "ROOT" else symbols.number(tag)
            for chain, count in those.items():
                expected += count * log(before.weight(head, side, list(map(symbols.number, chain))))
        assert likelihood == pytest.approx(expected, rel=1e-10)
    row = cells["table-1"]["em"]
    best = max(range(3), key=lambda i: cell["dev"][i]["uas"])
    assert (row["states"], row["restart"], row["iteration"]) == (2, 0, cell["iterations"][best])
    assert_parses(row, parsers[row["iteration"]], parts["test"])


@pytest.mark.parametrize("name", NAMES)
def test_table_1_has_the_deterministic_test_scores(name: str, output: Path) -> None:
    cells = cells_of(output, name)
    assert list(cells["table-1"]) == ["det-1", "det-2", *VARIANTS, "em"]
    for method in ("det-1", "det-2"):
        assert cells["table-1"][method] == cells[method]["test"]
        assert cells[method]["test"] != cells[method]["dev"]


@pytest.mark.parametrize("configuration", luque2012.CONFIGURATIONS)
def test_lexical_grammars_with_hidden_states(configuration: Any, data: Path, output: Path) -> None:
    parts, cell = parts_of(data, "ewt"), cells_of(output, "ewt")[f"lexical-{configuration}"]
    assert cell["states"] == [1, 2]
    parsers = {
        states: Parser.induce(parts["train"], states=states, lexical=configuration, labels="none")
        for states in cell["states"]
    }
    for states, scores in zip(cell["states"], cell["dev"], strict=True):
        assert_parses(scores, parsers[states], parts["dev"])
    first, second = (scores["uas"] for scores in cell["dev"])
    assert cell["best"] == (2 if second > first else 1)
    assert_parses(cell["test"], parsers[cell["best"]], parts["test"])


def lexical_factors(configuration: Any, parts: Parts, part: str) -> list[Any]:
    train = list(map(projectivise, parts["train"]))
    lexical = LexicalGrammar.learn(configuration, train, [sentence.xpos for sentence in train])
    return lexical.factors(parts[part], [sentence.xpos for sentence in parts[part]])


@pytest.mark.parametrize("part", ["dev", "test"])
@pytest.mark.parametrize("name", NAMES)
def test_lex_alone_is_an_arc_factored_distribution(name: str, part: str, data: Path, output: Path) -> None:
    parts, found = parts_of(data, name), []
    for factor in lexical_factors("LEX", parts, part):
        arcs = factor.log_weights[:, :, 0].copy()
        arcs[:, 0] = 0.0
        np.fill_diagonal(arcs, 0.0)
        found.append(least_risk(TreeDistribution(arcs, projective=True)))
    assert_scores(cells_of(output, name)["lexical-LEX"]["alone"][part], parts[part], found)


@pytest.mark.parametrize("configuration", ["LEX+F", "LEX+FCP"])
def test_lexical_grammars_alone(configuration: Any, data: Path, output: Path) -> None:
    """A grammar whose automata weigh every sequence the same leaves the factor alone, whatever that weight is."""
    parts, alone = parts_of(data, "wsj"), cells_of(output, "wsj")[f"lexical-{configuration}"]["alone"]
    train = list(map(projectivise, parts["train"]))
    symbols = TagSymbols.learn(train, "xpos")
    lexical = LexicalGrammar.learn(configuration, train, [sentence.xpos for sentence in train])
    size = symbols.size
    same = OperatorGrammar(np.full((size, 2, 1), 0.5), np.full((size, 2, 1), 4.0), np.full((size, 2, size, 1, 1), 3.0))
    for part in ("dev", "test"):
        assert_parses(alone[part], parser_of(Grammar(symbols, same, lexical=lexical)), parts[part])


@pytest.mark.parametrize("name", NAMES)
def test_timings_count_what_is_learnt_from(name: str, data: Path, output: Path) -> None:
    train, timings = list(map(projectivise, parts_of(data, name)["train"])), cells_of(output, name)["timings"]
    seen = chains(train)
    roots = 2 * (len({tag for tag, _ in seen}) + 1)  # one a head symbol and side, the unknown tag among them
    assert timings["sequences"] == sum(2 * (len(sentence) + 1) for sentence in train)
    assert timings["unshared"] == roots + sum(map(len, train))
    prefixes = {
        (key, chain[:end]) for key, those in seen.items() for chain in those for end in range(1, len(chain) + 1)
    }
    assert timings["prefixes"] == roots + len(prefixes)
    assert set(timings["seconds"]) == {"trie", *VARIANTS, "em-2", "em-sequences-2"}
    assert min(timings["seconds"].values()) > 0


@pytest.mark.parametrize("name", NAMES)
def test_pictures_are_of_where_states_gain_most(name: str, data: Path, output: Path) -> None:
    parts, cell = parts_of(data, name), cells_of(output, name)["pictures"]
    hidden = Parser.induce(parts["train"], states=9, labels="none")
    with_first = Parser.induce(parts["train"], method="det", states=2, labels="none")
    gains: Counter[tuple[str, str]] = Counter()
    for gold, ours, theirs in zip(parts["dev"], *(p.parse(parts["dev"]) for p in (hidden, with_first)), strict=True):
        assert gold.heads is not None
        for m, h in enumerate(gold.heads.tolist()):
            if m:
                key = ("ROOT", *gold.xpos)[h], "left" if m < h else "right"
                gains[key] += (ours.heads[m] == h) * 1 - (theirs.heads[m] == h) * 1
    assert len({gain for _, _, gain in cell["gains"]}) > 2
    assert len(cell["gains"]) == min(10, len(gains))
    ordered = sorted(gains.items(), key=lambda one: (-one[1], one[0]))
    assert [tuple(one) for one in cell["gains"]] == [(*key, gain) for key, gain in ordered[:10]]
    wanted = dict.fromkeys([("NN", "left"), *(key for key, _ in ordered[:2] if key[0] != "ROOT")])
    assert list(cell["drawn"]) == [":".join(one) for one in wanted]
    assert isinstance(hidden.model, GrammarModel)
    names = ["ROOT", "UNKNOWN", *hidden.model.grammar.symbols.names]
    for tag, side in wanted:
        drawn = state_picture(hidden.model.grammar, tag, side, parts["dev"])  # type: ignore[arg-type]
        numbers = {"states": drawn.states, "merges": drawn.merges, "lost": drawn.lost}
        assert cell["drawn"][f"{tag}:{side}"] == numbers
        title = f"{tag}, {side} modifiers ({name})"
        dot = (output / f"quick-{name}-{tag}-{side}.dot").read_text("utf-8")
        assert dot == automaton_dot(drawn, names, title=title)
        svg = (output / f"quick-{name}-{tag}-{side}.svg").read_text("utf-8")
        assert "<svg" in svg
        assert title in svg


def test_what_is_no_tag_is_not_drawn(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root gains, but is no tag; NN:left is drawn once."""
    gains = [("ROOT", "right", 9), ("NN", "left", 8), ("V", "left", 7)]
    for first, drawn in ((0, ["NN:left"]), (1, ["NN:left", "V:left"])):
        monkeypatch.setattr(luque2012.Experiment, "_gains", lambda self, grammar, first=first: gains[first:])
        folder = tmp_path / str(first) / "quick"
        experiment = luque2012.Experiment.of(data, "ewt", luque2012.QUICK, folder, 1, print)
        folder.mkdir(parents=True)
        assert list(experiment._pictures()["drawn"]) == drawn
        files = [f"quick-ewt-{one.replace(':', '-')}.{suffix}" for one in drawn for suffix in ("dot", "svg")]
        assert sorted(path.name for path in folder.parent.glob("quick-*")) == files


# What choices look at, and what is kept


def test_choices_do_not_look_at_the_test_sentences(data: Path, output: Path, tmp_path: Path) -> None:
    """Others, on which other grammars are best, change scores and nothing that was chosen."""
    other = tmp_path / "data"
    shutil.copytree(data, other)
    write_ewt(other, {"test": 28})
    luque2012.run(other, tmp_path / "out", say=lambda line: None, **{**OPTIONS, "languages": ["ewt"]})
    before, after = cells_of(output, "ewt"), cells_of(tmp_path / "out", "ewt")
    parts = parts_of(other, "ewt")
    differ = 0
    for variant in VARIANTS:
        assert after[variant] == before[variant]
        assert after["table-1"][variant]["states"] == before["table-1"][variant]["states"]
        assert after["table-1"][variant]["uas"] != before["table-1"][variant]["uas"]
        on_test = []
        for states in (1, 2, 3):
            parser = Parser.induce(parts["train"], states=states, labels="none", **VARIANTS[variant])
            trees = [one.sentence for one in parser.parse(parts["test"])]
            on_test.append(evaluate(parts["test"], trees).uas_no_punct)
        differ += on_test[after["table-1"][variant]["states"] - 1] < max(on_test)
    assert differ  # else it would be no matter what was looked at
    assert after["em-2-0"] == before["em-2-0"]
    for key in ("states", "restart", "iteration"):
        assert after["table-1"]["em"][key] == before["table-1"]["em"][key]
    for configuration in luque2012.CONFIGURATIONS:
        for key in ("dev", "best"):
            assert after[f"lexical-{configuration}"][key] == before[f"lexical-{configuration}"][key]
    assert after["pictures"] == before["pictures"]


def forbid(patch: pytest.MonkeyPatch) -> None:
    """Nothing may be learnt; figures are left out, for the time they take."""

    def never(*arguments: Any, **keywords: Any) -> Any:
        raise AssertionError("learns")

    for learner in ("deterministic_grammar", "spectral_grammar", "em_steps", "state_picture"):
        patch.setattr(luque2012, learner, never)
    patch.setattr(LexicalGrammar, "learn", never)
    patch.setattr(luque2012, "draw", lambda *arguments: None)


def test_what_is_done_is_not_done_again(data: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [file_of(output, name) for name in NAMES]
    (output / "quick.md").unlink()
    forbid(monkeypatch)
    said: list[str] = []
    luque2012.run(data, output, say=said.append, **OPTIONS)
    assert [file_of(output, name) for name in NAMES] == before
    assert said == [(output / "quick.md").read_text("utf-8")]  # no cell is said to be new


@pytest.fixture
def done(output: Path, tmp_path: Path) -> Path:
    shutil.copytree(output, tmp_path / "done")
    return tmp_path / "done"


def test_a_cell_that_is_missing_is_computed_alone(
    data: Path, done: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = done / "quick" / "wsj.json"
    found = json.loads(path.read_text("utf-8"))
    del found["cells"]["spectral"]
    path.write_text(json.dumps(found), encoding="utf-8")
    forbid(monkeypatch)
    monkeypatch.setattr(luque2012, "spectral_grammar", spectral_grammar)
    monkeypatch.setattr(luque2012, "deterministic_grammar", deterministic_grammar)
    said: list[str] = []
    luque2012.run(data, done, say=said.append, **OPTIONS)
    assert said[:-1] == ["wsj spectral"]
    assert cells_of(done, "wsj") == cells_of(output, "wsj")


def test_an_interruption_loses_the_cell_it_falls_into(data: Path, tmp_path: Path, monkeypatch: Any) -> None:
    def interrupted(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(luque2012, "em_steps", interrupted)
    with pytest.raises(KeyboardInterrupt):
        luque2012.run(data, tmp_path, say=lambda line: None, **OPTIONS)
    assert list(cells_of(tmp_path, "wsj")) == ["det-1", "det-2", *VARIANTS]


def test_other_data_are_computed_anew(data: Path, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "data"
    shutil.copytree(data, other)
    write_ewt(other, {"dev": 15})
    forbid(monkeypatch)
    luque2012.run(other, done, say=lambda line: None, **{**OPTIONS, "languages": ["wsj"]})
    with pytest.raises(AssertionError, match="learns"):
        luque2012.run(other, done, say=lambda line: None, **{**OPTIONS, "languages": ["ewt"]})


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("VARIANTS", {"spectral-paper": (1, 0.0, 1.0, 0.0), "spectral": (2, 7.0, 20.0, 0.0)}),
        ("BACKED_OFF", 0.25),
        ("__version__", "0.0.0"),
    ],
)
def test_other_settings_are_computed_anew(
    setting: str, value: Any, data: Path, done: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch)
    monkeypatch.setattr(luque2012, setting, value)
    with pytest.raises(AssertionError, match="learns"):
        luque2012.run(data, done, say=lambda line: None, **OPTIONS)


def test_the_whole_experiment_also_recovers_a_known_automaton(
    data: Path, output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its files have their own names."""
    recovered: list[Path] = []
    monkeypatch.setattr(luque2012, "FULL", replace(luque2012.QUICK))
    monkeypatch.setattr(luque2012, "recovery", lambda folder, say: recovered.append(folder))
    found = file_of(output, "ewt")
    del found["cells"]["pictures"]
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "ewt.json").write_text(json.dumps(found), encoding="utf-8")
    luque2012.run(data, tmp_path, say=lambda line: None, languages=["ewt"], quick=False, threads=1)
    assert recovered == [tmp_path]
    pictures = {path.name.removeprefix("quick-") for path in output.glob("quick-ewt-*")}
    others = {"results", "tables.md", *(f"figure-{i}.{suffix}" for i in (1, 2) for suffix in ("png", "svg"))}
    assert {path.name for path in tmp_path.iterdir()} == pictures | others
    assert json.loads((tmp_path / "results" / "ewt.json").read_text("utf-8"))["cells"] == cells_of(output, "ewt")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wsj", r"wsj-sample: has no wsj_sample\.conll\*; give the folder that holds wsj-sample and ud"),
        ("ewt", r"UD_English-EWT: has no \*-ud-train\.conllu\*; give the folder that holds wsj-sample and ud"),
        ("latin", "no treebank 'latin'; there are wsj, ewt"),
    ],
)
def test_data_that_are_not_there(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(TreebankError, match=said):
        luque2012.run(tmp_path, tmp_path / "out", say=lambda line: None, **{**OPTIONS, "languages": [name]})


# Choices


def curve(scores: Sequence[float], **others: Any) -> dict[str, Any]:
    return {"dev": [{"uas": uas} for uas in scores], **others}


def test_the_best_number_of_states_is_the_smallest_of_the_best() -> None:
    assert luque2012.best_states(curve([50.0, 70.5, 60.0], states=[1, 4, 9])) == 4
    assert luque2012.best_states(curve([50.0, 70.5, 70.5], states=[1, 4, 9])) == 4


EM = {
    "det-1": {"dev": {"uas": 99.0}},
    "em-2-0": curve([70.0, 80.0], iterations=[1, 5]),
    "em-2-1": curve([79.99, 80.5], iterations=[1, 20]),
    "em-11-1": curve([79.0, 82.0, 81.0], iterations=[1, 5, 10]),
}


def test_the_best_of_em_is_over_states_starts_and_iterations() -> None:
    assert luque2012.best_em(EM) == (11, 1, 5)
    assert luque2012.best_em({name: cell for name, cell in EM.items() if name != "em-11-1"}) == (2, 1, 20)
    assert list(luque2012.em_scores(EM))[1:4] == [(2, 0, 5, 80.0), (2, 1, 1, 79.99), (2, 1, 20, 80.5)]


@pytest.mark.parametrize(
    ("goal", "seconds", "soonest", "reached"),
    [
        (80.0, {"em-2": 0.1, "em-11": 0.2}, {"states": 2, "restart": 0, "iteration": 5, "uas": 80.0}, 3),
        (80.0, {"em-2": 0.5, "em-11": 0.2}, {"states": 11, "restart": 1, "iteration": 5, "uas": 82.0}, 3),
        (80.2, {"em-2": 0.1, "em-11": 0.5}, {"states": 2, "restart": 1, "iteration": 20, "uas": 80.5}, 2),
        (82.0, {"em-2": 0.1, "em-11": 0.5}, {"states": 11, "restart": 1, "iteration": 5, "uas": 82.0}, 1),
        (82.1, {"em-2": 0.1, "em-11": 0.5}, {"states": 11, "restart": 1, "iteration": 10, "uas": 82.0}, 0),
    ],
)
def test_em_reaches_a_score_where_it_takes_the_least_time(
    goal: float, seconds: dict[str, float], soonest: Any, reached: int, data: Path, output: Path
) -> None:
    """From any number of states and start, by iterations times the seconds of one; equal scores count. Where none does,
    all iterations of the nearest."""
    experiment = luque2012.Experiment.of(data, "ewt", luque2012.QUICK, output / "quick", 1, print)
    cells = {**EM, "spectral": curve([60.0, goal, 70.0]), "spectral-paper": curve([1.0])}
    found = replace(experiment, file=replace(experiment.file, cells=cells))._reached("spectral", seconds)
    assert found == {"uas": goal, "starts": 3, "reached": reached, "soonest": soonest}


# Sequences that share nothing


@pytest.fixture(scope="module")
def train(data: Path) -> list[Sentence]:
    return list(map(projectivise, parts_of(data, "ewt")["train"]))


@pytest.fixture(scope="module")
def trie(train: list[Sentence]) -> ModifierTrie:
    return trie_of(train, TagSymbols.learn(train, "xpos"))


def test_unshared_sequences_are_those_of_the_trees(train: list[Sentence], trie: ModifierTrie) -> None:
    single, symbols = luque2012._unshared(trie), TagSymbols.learn(train, "xpos")
    seen = chains(train)
    for head in range(trie.size):
        for side in range(2):
            found: Counter[Chain] = Counter()
            for sequence, count in single.sequences(head, side):
                assert count == 1 or not sequence
                found[tuple(map(symbols.name, sequence))] += int(count)
            assert found == seen.get((symbols.name(head), side), Counter())
    below = single.parents >= 0
    assert below.sum() == sum(map(len, train)) > (trie.parents >= 0).sum()  # one node a word
    assert (single.through[below] == 1).all()
    assert (single.parents[below] < np.flatnonzero(below)).all()
    np.testing.assert_array_equal(single.counts, trie.counts)


def test_em_is_the_same_without_sharing(trie: ModifierTrie) -> None:
    ours, theirs = (
        list(islice(em_steps(one, 3, np.random.default_rng(7)), 6)) for one in (trie, luque2012._unshared(trie))
    )
    assert ours[0].log_likelihood < ours[-1].log_likelihood
    for one, other in zip(ours, theirs, strict=True):
        assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-11)
        np.testing.assert_allclose(one.grammar.operators, other.grammar.operators, rtol=1e-6, atol=1e-12)


# Tables and figures from cells made by hand


def scores(uas: float, **others: Any) -> dict[str, Any]:
    return {"uas": uas, "uas_with_punctuation": uas - 1, "negative": 0.0, "negative_sentences": 0, **others}


def made_by_hand() -> dict[str, Any]:
    broken = {"negative": 0.1234, "negative_sentences": 3}
    lexical = {
        "alone": {"dev": scores(81.0), "test": scores(80.126)},
        "states": [1, 2, 5],
        "dev": [scores(84.0), scores(85.5), scores(83.0)],
        "best": 2,
        "test": scores(82.344),
    }
    return {
        "det-1": {"dev": scores(61.0, viterbi=55.5), "test": scores(60.0, viterbi=54.321)},
        "det-2": {"dev": scores(71.0, viterbi=65.5), "test": scores(70.0, viterbi=64.5)},
        "spectral-paper": curve([60.0, 75.0], states=[1, 2]),
        "spectral": curve([61.0, 76.0, 77.0], states=[1, 2, 4]),
        "em-2-0": curve([70.0, 75.0, 78.0], iterations=[1, 5, 25]),
        "em-10-0": curve([60.0, 71.0, 79.0], iterations=[1, 5, 25]),
        "em-10-1": curve([60.0, 74.0, 80.0], iterations=[1, 5, 25]),
        "em-3-0": curve([69.0], iterations=[1]),
        "table-1": {
            "det-1": scores(60.0, viterbi=54.321),
            "det-2": scores(70.0, viterbi=64.5),
            "spectral-paper": scores(74.0, states=2, **broken),
            "spectral": scores(75.678, states=4),
            "em": scores(77.0, states=10, restart=1, iteration=25),
        },
        "lexical-LEX": lexical,
        "lexical-LEX+FCP": {**lexical, "best": 5, "test": scores(90.0)},
        "timings": {
            "sequences": 10.0,
            "prefixes": 5,
            "unshared": 20,
            "seconds": {
                "trie": 0.1,
                "spectral-paper": 0.002,
                "spectral": 0.0123,
                "em-2": 0.004,
                "em-sequences-2": 0.04,
                "em-10": 0.5,
                "em-sequences-10": 5.0,
            },
            "reached": {
                "spectral-paper": {
                    "uas": 75.0,
                    "soonest": {"states": 2, "restart": 0, "iteration": 5, "uas": 76.0},
                    "starts": 4,
                    "reached": 3,
                },
                "spectral": {
                    "uas": 81.5,
                    "soonest": {"states": 10, "restart": 1, "iteration": 25, "uas": 80.0},
                    "starts": 4,
                    "reached": 0,
                },
            },
        },
        "parsing": {"states": 9, "words_per_sentence": 23.56, "sentences_per_second": 1234.5},
    }


ROWS = """
| paper, all of the WSJ (ten times our sample) | 69.45 | 75.91 | 80.44 |  |  | 81.68 |
| WSJ sample | 60.00 (59.00) | 70.00 (69.00) | 74.00 (73.00), 2 states | 75.68 (74.68), 4 states |  | \
77.00 (76.00), 10 states, iteration 25 |
| UD English-EWT |  |  |  |  |  |  |
| paper, all of the WSJ, dev | 62.65 | 68.52 | 72.72 | 74.80 |
| WSJ sample, dev | 55.50 | 61.00 | 65.50 | 71.00 |
| WSJ sample, test | 54.32 | 60.00 | 64.50 | 70.00 |
| UD English-EWT, dev |  |  |  |  |
| UD English-EWT, test |  |  |  |  |
| WSJ sample | LEX | 81.00 | 80.13 | 2 | 85.50 | 82.34 |
| WSJ sample | LEX+FCP | 81.00 | 80.13 | 5 | 85.50 | 90.00 |
| WSJ sample | spectral, the paper's statistics | 2 | 12.3% | 3 |
| WSJ sample | spectral, ours | 4 | 0.0% | 0 |
| WSJ sample | spectral, the paper's statistics | 100.0 | 2.0 | 75.00 | 3 of 4 | 2 states, 5 iterations | 20 | 10 \
| 1.2 | 200 | 100 |
| WSJ sample | spectral, ours | 100.0 | 12.3 | 81.50 | 0 of 4 | 10 states, 25 iterations | > 12500 | > 1016 | > 112.2 \
| > 125000 | > 10163 |
| WSJ sample | 9 | 23.6 | 1234 |
"""


def test_tables_have_a_row_a_treebank() -> None:
    """And what is not there yet is left out, or empty."""
    text = luque2012_figures.tables_text({"wsj": made_by_hand(), "ewt": {}})
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    headers = ("| treebank |", "| sentences |", "| test sentences |")
    rows = [line for line in lines if not line.startswith(headers)]
    assert len(lines) - len(rows) == 6
    assert rows == ROWS.strip().splitlines()
    header = (
        "| treebank | DET | DET+F | spectral, the paper's statistics | spectral, ours | spectral, ours, scaled | EM |"
    )
    assert header in lines
    titles = [line.split(":")[0].split(",")[0] for line in text.splitlines() if line.startswith("## ")]
    assert titles == [
        "## Table 1",
        "## Footnote 7",
        "## Lexicalised grammars",
        "## Spectral grammars only come near to distributions",
        "## Time to learn",
        "## Parsing speed",
    ]


def test_every_row_of_a_table_is_as_wide_as_its_header() -> None:
    text = luque2012_figures.tables_text({"wsj": made_by_hand(), "ewt": {}})
    for table in text.split("## ")[1:]:
        widths = {line.count(" | ") for line in table.splitlines() if line.startswith("| ")}
        assert len(widths) == 1, table


def test_em_curves_are_means_over_the_starts() -> None:
    cells = made_by_hand()
    assert luque2012_figures.em_curve(cells, 5) == [(2, 75.0), (10, 72.5)]
    assert luque2012_figures.em_curve(cells, 1) == [(2, 70.0), (3, 69.0), (10, 60.0)]
    assert luque2012_figures.em_curve(cells, 100) == []


def lines_of(panel: Any, cells: Mapping[str, Any]) -> dict[str, tuple[list[float], list[float]]]:
    axes = Figure().subplots()
    panel(axes, cells)
    return {
        str(line.get_label()): (np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist())
        for line in axes.get_lines()
    }


def test_figure_1_shows_the_development_scores() -> None:
    lines = lines_of(luque2012_figures._figure_1, made_by_hand())
    assert lines.pop("DET")[1] == [61.0, 61.0]
    assert lines.pop("DET+F")[1] == [71.0, 71.0]
    assert lines == {
        "spectral, ours": ([1, 2, 4], [61.0, 76.0, 77.0]),
        "spectral, the paper's statistics": ([1, 2], [60.0, 75.0]),
        "EM, 5 iterations": ([2, 10], [75.0, 72.5]),
        "EM, 25 iterations": ([2, 10], [78.0, 79.5]),
    }


def test_figure_2_shows_the_development_scores() -> None:
    lines = lines_of(luque2012_figures._figure_2, made_by_hand())
    for configuration in ("LEX", "LEX+FCP"):
        assert lines.pop(configuration)[1] == [81.0, 81.0]
        assert lines.pop(f"{configuration} + spectral") == ([1, 2, 5], [84.0, 85.5, 83.0])
    assert not lines


def test_figures_repeat_and_have_a_panel_a_treebank(tmp_path: Path) -> None:
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        luque2012_figures.draw({"wsj": made_by_hand(), "ewt": made_by_hand()}, folder, "x-")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == [f"x-figure-{i}.{suffix}" for i in (1, 2) for suffix in ("png", "svg")]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    luque2012_figures.draw({}, tmp_path / "one", "y-")
    assert not list((tmp_path / "one").glob("y-*"))


# The results that are part of the repository


def committed() -> dict[str, Any]:
    return {name: json.loads((EXPERIMENTS / "results" / f"{name}.json").read_text("utf-8")) for name in NAMES}


needs_results = pytest.mark.skipif(
    not (EXPERIMENTS / "tables.md").is_file(), reason="the experiments are not part of this copy"
)


@needs_results
def test_the_readme_and_the_tables_say_what_was_measured() -> None:
    found = {name: file["cells"] for name, file in committed().items()}
    assert set(found) == set(luque2012.TREEBANKS)
    tables = luque2012_figures.tables_text(found)
    assert (EXPERIMENTS / "tables.md").read_text("utf-8") == tables
    first = tables.partition("## Footnote 7")[0].splitlines()
    rows = [line for line in first if line.startswith(("| WSJ sample", "| UD English-EWT"))]
    assert len(rows) == 2
    readme = (REPOSITORY / "docs" / "results.md").read_text("utf-8").splitlines()
    assert all(row in readme for row in rows)


@needs_results
@pytest.mark.parametrize("name", luque2012.TREEBANKS)
def test_the_results_are_of_the_whole_experiment_with_the_settings_there_are(name: str) -> None:
    file = committed()[name]
    assert file["signature"]["spectral"] == {variant: list(how) for variant, how in luque2012.VARIANTS.items()}
    assert file["signature"]["backed_off"] == BACKED_OFF
    full = luque2012.FULL
    runs = {f"em-{states}-{restart}" for states in full.em for restart in range(full.restarts)}
    assert {cell for cell in file["cells"] if cell.startswith("em-")} == runs
    assert all(file["cells"][run]["iterations"] == list(full.iterations) for run in runs)
    assert all(file["cells"][variant]["states"] == list(full.spectral) for variant in luque2012.VARIANTS)


@needs_results
@pytest.mark.parametrize("name", luque2012.TREEBANKS)
def test_hidden_states_beat_det_and_come_near_to_em(name: str) -> None:
    """The bar: DET < DET+F < spectral, and EM's best at most two points above."""
    cells = committed()[name]["cells"]
    dev = {method: cells[method]["dev"]["uas"] for method in ("det-1", "det-2")}
    dev["spectral"] = max(scores["uas"] for scores in cells["spectral"]["dev"])
    dev["em"] = max(scores["uas"] for run, cell in cells.items() if run.startswith("em-") for scores in cell["dev"])
    test = {method: cells["table-1"][method]["uas"] for method in dev}
    for uas in (dev, test):
        assert uas["det-1"] < uas["det-2"] < uas["spectral"]
        assert uas["spectral"] > uas["em"] - 2


@needs_results
def test_em_was_ten_times_slower_to_the_score_of_a_scaled_grammar() -> None:
    """The bar, on EWT, counting included."""
    timings = committed()["ewt"]["cells"]["timings"]
    seconds, soonest = timings["seconds"], timings["reached"]["spectral-scaled"]["soonest"]
    em = soonest["iteration"] * seconds[f"em-{soonest['states']}"]
    assert seconds["trie"] + em > 10 * (seconds["trie"] + seconds["spectral-scaled"])


@needs_results
@pytest.mark.parametrize("start", ["the default: ", "the paper's: "])
def test_a_known_automaton_was_recovered(start: str) -> None:
    rows = json.loads((EXPERIMENTS / "recovery.json").read_text("utf-8"))["rows"]
    [setting] = [name for name in SETTINGS if name.startswith(start)]
    errors = [row["largest"] for row in rows if row["setting"] == setting and row["strings"] == 10**6]
    assert len(errors) == 5
    assert max(errors) < 1e-3
