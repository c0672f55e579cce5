"""Do scores of siblings and grandparents pay on top of a neural parser's arc scores? Measured on development trees.

    python experiments/neural/second_order.py --data DATA --treebank danish
    python experiments/neural/second_order.py --data DATA --treebank danish --small    # without a GPU: some hours
    python experiments/neural/second_order.py --data DATA --treebank ewt --encoder MINILM

The network is that of `headway reproduce neural`; scores of siblings and grandparents come from the same encoder, and a
loss of theirs is added to the likelihood of trees by arcs (`second_order_scores.py`). The variants:

    siblings      siblings, by the conditional loss
    grandparents  siblings and grandparents, by the conditional loss
    automata      siblings, by the loss of head automata

Trees are decoded with certificates (`headway.decode`) by arcs + weight * (siblings + grandparents), over arcs that the
calibrated arc scores do not exclude. The weight for either half of the development sentences, taken in turns, is
chosen on the other half. Compared are the best trees by arcs of the same network, and those of a network without the
second loss from the same seed. What is kept is the average of weights after the last pass: no pass is chosen.

CoNLL-X: the last tenth of the training sentences is developed on, words without punctuation. No test file is read.
Writes `second_order/TREEBANK-MODEL-SEED.json` beside this file or where `--output` says, `…-small.json` with `--small`.
"""

from __future__ import annotations

import os
import subprocess
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from second_order_scores import RANK, Scores, SecondOrder, arcs_of, automata_loss, conditional_loss, conditional_scores
from torch import Tensor

from headway import GrandSiblingParts, SiblingParts, __version__
from headway.arrays import TreeClass
from headway.evaluation import paired_bootstrap, sign_test
from headway.models.dual_decoder import decode_all
from headway.neural import trainer
from headway.neural.batching import Batch, batch_of
from headway.neural.fitting import Fitting
from headway.neural.losses import log_likelihood
from headway.neural.network import Network
from headway.neural.objectives import TreeObjective
from headway.neural.preparation import Prepared, network_settings, prepare
from headway.neural.reading import groups_by_size
from headway.parallel import SERIAL
from headway.torch import TreeDistribution
from headway.training.data import TrainingData, checksum
from headway.training.settings import LSTM, NEURAL, Settings
from headway_papers.corpora import write_json
from headway_papers.neural_plan import MINILM, TREEBANKS, Cell, of_network
from headway_papers.neural_training import Job, Parts

WEIGHTS = (0.25, 0.5, 1.0, 1.5)
UNLIKELY = 1e-3  # times the probability of a word's best head: such heads are not decoded
SMALL = {"epochs": 20, "batch": 1000}  # the network of `benchmarks/neural_train.py`
BUDGET = 20_000  # steps of branch and bound, as in `headway parse`
# The loss that trains second-order scores, and whether there are grandparents among them.
VARIANTS = {
    "siblings": (conditional_loss, False),
    "grandparents": (conditional_loss, True),
    "automata": (automata_loss, False),
}
Loss = Callable[[Tensor, Scores, Tensor, Tensor, TreeClass], Tensor]


class Seen(dict[str, Any]):
    """What a network computed last: its words, and its outputs."""

    @classmethod
    def of(cls, network: Network) -> Seen:
        seen = cls()
        network.arc_heads.register_forward_pre_hook(lambda _, given: seen.update(words=given[0]))
        network.register_forward_hook(lambda _, __, found: seen.update(found=found))
        return seen


@dataclass(frozen=True)
class SecondOrderObjective(TreeObjective):
    """The first-order objective, and a loss of the second-order scores."""

    second_loss: Loss
    seen: Seen

    def loss(self, network: Network, batch: Batch, which: Any, done: float) -> Tensor:
        first = super().loss(network, batch, which, done)
        scores = network.second(self.seen["words"])
        loss = self.second_loss(self.seen["found"].arcs, scores, batch.heads, batch.lengths, self.trees)
        return first + loss.sum()


def train(prepared: Prepared, trees: TreeClass, variant: str | None, device: torch.device) -> dict[str, Any]:
    """Fit the network, and leave it with the average of its weights; None is the first-order one."""
    network, sizes = prepared.network, prepared.sizes
    objective: TreeObjective = TreeObjective(prepared.train, trees, log_likelihood, sizes)
    if variant is not None:
        second_loss, grandparents = VARIANTS[variant]
        network.second = SecondOrder(int(network.encoder.size), sizes.dropout, grandparents).to(device)
        objective = SecondOrderObjective(prepared.train, trees, log_likelihood, sizes, second_loss, Seen.of(network))
    fitting = Fitting(network, [objective], sizes, device)
    started, losses = time.monotonic(), []
    for _ in range(sizes.epochs):
        losses.append(fitting.run_pass()[0])
        print(f"  {variant or 'first-order'}: pass {len(losses)}, loss {losses[-1]:.3f}", flush=True)
    network.load_state_dict(fitting.average.weights)
    network.eval()
    weights = sum(weight.numel() for weight in network.parameters())
    return {"training_seconds": time.monotonic() - started, "losses": losses, "parameters": weights}


class Right:
    """Of every development sentence: right heads, and right heads with right labels, by a weight of the second order;
    which trees are proved to be the best, and how long each took."""

    def __init__(self, sentences: int, weights: tuple[float, ...]) -> None:
        self.weights = weights
        self.heads, self.arcs = np.zeros((2, len(weights), sentences), np.int64)
        self.proved, self.seconds = np.ones((len(weights), sentences), np.bool_), np.zeros((len(weights), sentences))
        self.by_others = np.zeros((len(weights), sentences), np.int64)  # each word with the heads of all others given
        self.gold_kept = np.zeros(sentences, np.int64)


@torch.no_grad()
def parse(prepared: Prepared, trees: TreeClass, counted: Any, second: bool, device: torch.device) -> Right:
    """Decode the development sentences by arcs, and with each weight of the second-order scores."""
    data, network = prepared.dev, prepared.network
    assert data is not None
    right = Right(len(data.heads), (0.0, *WEIGHTS) if second else (0.0,))
    temperature = trainer.temperature_of(prepared, trees, device)
    seen = Seen.of(network)
    for which in groups_by_size(data.reading.sizes, prepared.sizes.batch):
        batch = batch_of(data, which, device)
        found = network(batch.inputs)
        tree = TreeDistribution(found.arcs / temperature, batch.lengths, **trees._asdict(), validate_args=False)
        first = tree.argmax()
        likely = tree.marginals
        kept = (likely >= UNLIKELY * likely.amax(1, keepdim=True)) | arcs_of(first)
        words = torch.from_numpy(counted[which, : first.shape[1]]).to(device)
        right.gold_kept[which] = (kept & arcs_of(batch.heads) & words[:, None]).sum((1, 2)).cpu()
        scores = network.second(seen["words"]) if second else None
        for k, weight in enumerate(right.weights):
            heads = first
            if scores is not None:
                own = Scores(*(None if x is None else weight * x for x in scores))
                by_others = conditional_scores(found.arcs, own, batch.heads, batch.lengths, trees).argmax(1)
                right.by_others[k, which] = ((by_others == batch.heads) & words).sum(1).cpu()
                if weight:
                    heads = decode_batch(found.arcs, own, kept, batch.lengths, trees, right, k, which).to(device)
            good = (heads == batch.heads) & words
            labels = network.label_scores(heads, found.label_heads, found.label_modifiers).argmax(2)
            right.heads[k, which] = good.sum(1).cpu()
            right.arcs[k, which] = (good & (labels == batch.targets["labels"])).sum(1).cpu()
    return right


def compile_decoders() -> None:
    """Before any sentence is timed."""
    zeros = [np.zeros((3,) * k) for k in (2, 3, 3)]
    decode_all([SiblingParts.dense(*zeros[:2]), GrandSiblingParts.dense(*zeros)], SERIAL, budget=BUDGET)


def decode_batch(
    arcs: Tensor, scores: Scores, kept: Tensor, lengths: Tensor, trees: TreeClass, right: Right, k: int, which: Any
) -> Tensor:
    """The best trees over the arcs that are kept, on one thread; notes proofs and seconds."""
    allowed = arcs.masked_fill(~kept, -torch.inf).double().cpu().numpy()
    siblings = scores.siblings.double().cpu().numpy()
    above = None if scores.grandparents is None else scores.grandparents.double().cpu().numpy()
    heads = np.full(allowed.shape[:2], -1, np.int64)
    for b, n in enumerate(lengths.tolist()):
        own = (b, *[slice(n + 1)] * 3)
        started = time.perf_counter()
        if above is None:
            parts: Any = SiblingParts.dense(allowed[own[:3]], siblings[own])
        else:
            parts = GrandSiblingParts.dense(allowed[own[:3]], siblings[own], above[own])
        (found,) = decode_all([parts], SERIAL, **trees._asdict(), budget=BUDGET)
        right.seconds[k, which[b]] = time.perf_counter() - started
        right.proved[k, which[b]] = found.status.is_proof
        heads[b, : n + 1] = found.heads
    return torch.from_numpy(heads)


def chosen(right: Right) -> Any:
    """For every sentence the number of its weight: that with most right heads and arcs on the other half."""
    half = np.arange(right.heads.shape[1]) % 2
    best = [(right.heads + right.arcs)[:, half != own].sum(1).argmax() for own in (0, 1)]
    return np.take(best, half)


def compared(right: Right, plain: Right, words: Any) -> dict[str, Any]:
    """The second order beside the arcs of the same network, and beside the first-order network."""
    which, every = chosen(right), np.arange(len(words))
    figures: dict[str, Any] = {"weights": [right.weights[which[own]] for own in (0, 1)]}
    for name in ("heads", "arcs"):
        own = getattr(right, name)
        mine, arcs, other = own[which, every], own[0], getattr(plain, name)[0]
        rows = {"second_order": mine, "its_arcs": arcs, "first_order": other}
        figures["uas" if name == "heads" else "las"] = {
            **{row: 100 * int(count.sum()) / int(words.sum()) for row, count in rows.items()},
            "by_weight": dict(zip(map(str, right.weights), (100 * own.sum(1) / words.sum()).tolist(), strict=True)),
            **{f"minus_{row}": {**asdict(paired_bootstrap(mine, count, words)), "sign": asdict(sign_test(mine, count))}
               for row, count in rows.items() if row != "second_order"},
            "right": {row: " ".join(map(str, count)) for row, count in rows.items()},
        }  # fmt: skip
    decoded = which > 0
    seconds = np.where(decoded, right.seconds[which, every], 0.0)
    return figures | {
        "proved_percent": dict(zip(map(str, right.weights), (100 * right.proved.mean(1)).tolist(), strict=True)),
        "milliseconds": {"mean": 1e3 * seconds.mean(), "median": 1e3 * np.median(seconds), "most": 1e3 * seconds.max()},
        "gold_heads_kept_percent": 100 * int(right.gold_kept.sum()) / int(words.sum()),
        "uas_given_all_other_heads": dict(
            zip(map(str, right.weights), (100 * right.by_others.sum(1) / words.sum()).tolist(), strict=True)
        ),
    }


def settings_of(given: Namespace, parts: Parts) -> tuple[Settings, dict[str, Any]]:
    """Those of the table of trainings, and what only networks have."""
    model = LSTM if given.encoder is None else MINILM
    own = Cell(given.treebank, model, "loglinear", given.seed).own_settings(quick=given.quick)
    own = dict(SMALL) if given.small else own
    own |= {} if given.epochs is None else {"epochs": given.epochs}
    settings = Settings(
        model=NEURAL,
        learner="loglinear",
        tags=TREEBANKS[given.treebank].tags,
        seed=given.seed,
        single_root=parts.single_root,
        encoder=LSTM if given.encoder is None else str(given.encoder),
        **{name: value for name, value in own.items() if not of_network(name)},
    ).complete()
    return settings, {name: value for name, value in own.items() if of_network(name)}


def run(given: Namespace) -> dict[str, Any]:
    """Train the first-order network and every variant, and compare them."""
    cell = Cell(given.treebank, LSTM, "loglinear", given.seed, given.limit)
    parts = Parts.of(cell, Job(given.data, Path(), None, dev_only=True))
    dev = (parts.dev or [])[: given.limit]
    settings, more = settings_of(given, parts)
    sizes = replace(network_settings(settings), **more)
    device = trainer.device_of(settings)
    data = TrainingData(parts.train, dev, roots=parts.roots)
    figures: dict[str, Any] = {}
    compile_decoders()
    with trainer.deterministic():
        plain = None
        for variant in (None, *given.variants):
            prepared = prepare(data, settings, device, sizes)
            counted = prepared.dev.heads >= 0 if TREEBANKS[given.treebank].is_ud else prepared.counted
            trained = train(prepared, settings.trees, variant, device)
            right = parse(prepared, settings.trees, counted, variant is not None, device)
            words = counted.sum(1)
            plain = plain or right
            figures[variant or "first-order"] = trained | (compared(right, plain, words) if variant else {})
    return {
        "headway": __version__,
        "commit": commit(),
        "settings": {**asdict(settings), "encoder": LSTM if given.encoder is None else MINILM},
        "network": asdict(sizes) | {"rank": RANK},
        "encoder": None if given.encoder is None else file_checksum(given.encoder / "model.safetensors"),
        "scripts": {path.name: file_checksum(path) for path in sorted(Path(__file__).parent.glob("second_order*.py"))},
        "data": {"train": checksum(parts.train), "dev": checksum(dev)},
        "sentences": {"train": len(parts.train), "dev": len(dev)},
        "words": " ".join(map(str, words)),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "variants": figures,
    }


def commit() -> str | None:
    """Of the code; HEADWAY_COMMIT says it where there is no repository."""
    if "HEADWAY_COMMIT" in os.environ:
        return os.environ["HEADWAY_COMMIT"]
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def file_checksum(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:16]


def main() -> None:
    """Read the options, run, tell, and keep."""
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of `conllx` and `ud`")
    parser.add_argument("--treebank", choices=TREEBANKS, required=True)
    parser.add_argument("--encoder", type=Path, help="a folder with MiniLM; an LSTM without")
    parser.add_argument("--epochs", type=int, help="as in the table of trainings without")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, help="sentences to learn from and to develop on, for trials")
    parser.add_argument("--small", action="store_true", help="a network that a CPU can train")
    parser.add_argument("--quick", action="store_true", help="a tiny network, for trials")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "second_order")
    given = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    found = run(given)
    for name in given.variants:
        for score in ("uas", "las"):
            own = found["variants"][name][score]
            gains = {row: own[f"minus_{row}"] for row in ("its_arcs", "first_order")}
            told = ", ".join(f"{x['difference']:+.2f} over {row} (p {x['p_value']:.3f})" for row, x in gains.items())
            print(f"{given.treebank} {name}: {score.upper()} {own['second_order']:.2f}, {told}")
    given.output.mkdir(parents=True, exist_ok=True)
    model = LSTM if given.encoder is None else MINILM
    small = "-small" if given.small else ""
    write_json(given.output / f"{given.treebank}-{model}-{given.seed}{small}.json", found)


if __name__ == "__main__":
    main()
