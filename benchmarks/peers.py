"""The libraries `headway.inference` is measured beside, and how each is made to answer the same.

| library | layout | class of trees |
| --- | --- | --- |
| ufal.chu_liu_edmonds | [modifier, head], nan forbids | multi-root only |
| networkx | a DiGraph | multi-root only |
| supar | [modifier, head] with the root, batches only | `multiroot=` |
| torch-struct | [head, modifier], words only, root scores on the diagonal, batches | `multiroot=` |

A missing library is not an error here: `Peer.missing` says why, and the tables show it.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from harness import Answer, DisagreementError, Floats
from numpy.typing import NDArray

from headway.inference import TreeDistribution, argmax

Build = Callable[[Floats, bool], Callable[[], Any]]

TORCH_STRUCT_EPS = 1e-5
SUPAR_MASK = -1e9
EXACT_DIGITS = 1000  # 400 are enough at scale 100: 4000 give the same float64 numbers


@dataclass(frozen=True)
class Peer:
    """The modules used of a library, or why they do not import."""

    modules: Mapping[str, Any]
    missing: str | None

    def __getitem__(self, name: str) -> Any:
        return self.modules[name]


def load(*names: str) -> Peer:
    try:
        return Peer({name: importlib.import_module(name) for name in names}, None)
    except Exception as error:  # whatever a foreign import raises is the reason to report
        return Peer({}, f"missing, {type(error).__name__}: {error}")


def load_torch() -> Peer:
    """One thread, and no validation of distributions' arguments: it only costs the peers time."""
    peer = load("torch")
    if not peer.missing:
        peer["torch"].set_num_threads(1)
        peer["torch"].distributions.Distribution.set_default_validate_args(False)
    return peer


warnings.filterwarnings("ignore", module="torch_struct|supar")
UFAL = load("ufal.chu_liu_edmonds")
NETWORKX = load("networkx")
MPMATH = load("mpmath")
TORCH = load_torch()
TORCH_STRUCT = load("torch_struct")
SUPAR = load("supar.structs", "supar.structs.fn")

PACKAGES = {
    "ufal.chu_liu_edmonds": UFAL,
    "networkx": NETWORKX,
    "mpmath": MPMATH,
    "torch": TORCH,
    "torch-struct": TORCH_STRUCT,
    "supar": SUPAR,
}


# ---------------------------------------------------------------------------------- layouts


def as_batch(scores: Floats) -> Floats:
    return scores.reshape(-1, *scores.shape[-2:])


def to_modifier_head(scores: Floats) -> Floats:
    return np.ascontiguousarray(np.swapaxes(scores, -1, -2))


def to_root_on_diagonal(scores: Floats) -> Floats:
    words = scores[:, 1:, 1:].copy()
    diagonal = np.arange(words.shape[-1])
    words[:, diagonal, diagonal] = scores[:, 0, 1:]
    return words


def from_root_on_diagonal(values: Floats) -> Floats:
    size, n = values.shape[:2]
    words = np.arange(n)
    result = np.zeros((size, n + 1, n + 1))
    result[:, 1:, 1:] = values
    result[:, words + 1, words + 1] = 0.0
    result[:, 0, 1:] = values[:, words, words]
    return result


def to_tensor(values: Floats, dtype: str, requires_grad: bool = False) -> Any:
    torch = TORCH["torch"]
    return torch.tensor(values, dtype=getattr(torch, dtype), requires_grad=requires_grad)


def from_tensor(tensor: Any) -> Floats:
    array: Floats = tensor.detach().numpy().astype(np.float64)
    return array


# ---------------------------------------------------------------------------------- best tree


def headway_argmax(scores: Floats, single_root: bool) -> Callable[[], Any]:
    return lambda: argmax(scores, single_root=single_root, threads=1)


def ufal_argmax(scores: Floats, single_root: bool) -> Callable[[], Any]:
    """One sentence, multi-root whatever is asked for: it has no other decoder."""
    decode, layout = UFAL["ufal.chu_liu_edmonds"].chu_liu_edmonds, to_modifier_head(scores)
    return lambda: decode(layout)


def networkx_argmax(scores: Floats, single_root: bool) -> Callable[[], Any]:
    """One sentence."""
    networkx, nodes = NETWORKX["networkx"], range(len(scores))
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from((h, m, float(scores[h, m])) for h in nodes for m in nodes if m > 0 and h != m)
    return lambda: networkx.maximum_spanning_arborescence(graph)


def supar_argmax(scores: Floats, single_root: bool) -> Callable[[], Any]:
    mst = SUPAR["supar.structs.fn"].mst
    tensor = to_tensor(to_modifier_head(as_batch(scores)), "float32")
    mask = tensor.new_ones(tensor.shape[:2]).bool()
    mask[:, 0] = False
    return lambda: mst(tensor, mask, multiroot=not single_root)


def heads_answer(heads: Any, scores: Floats, single_root: bool) -> Answer:
    """The score of each sentence's tree, after checking that it is a tree of its class."""
    scores = as_batch(scores)
    heads = np.array(heads).reshape(len(scores), -1)
    parents = np.maximum(heads, 0)
    ancestors = parents
    for _ in range(heads.shape[1]):
        ancestors = np.take_along_axis(parents, ancestors, axis=1)
    roots = (heads[:, 1:] == 0).sum(1)
    if ancestors.any() or (single_root and (roots != 1).any()):
        raise DisagreementError(f"not trees of the class asked for: {heads}")
    sentences, words = np.arange(len(heads))[:, None], np.arange(1, heads.shape[1])
    return {"score": scores[sentences, heads[:, 1:], words].sum(1)}


def ufal_answer(result: Any, scores: Floats, single_root: bool) -> Answer:
    """Single-root: the best of n more calls, each with the root arcs of all words but one nan."""
    if not single_root:
        return heads_answer(result[0], scores, single_root)
    decode, layout = UFAL["ufal.chu_liu_edmonds"].chu_liu_edmonds, to_modifier_head(scores)

    def best_under(word: int) -> float:
        forced = layout.copy()
        forced[:, 0] = np.nan
        forced[word, 0] = layout[word, 0]
        return float(decode(forced)[1])

    return {"score": np.array([max(best_under(word) for word in range(1, len(scores)))])}


def networkx_answer(tree: Any, scores: Floats, single_root: bool) -> Answer:
    heads = np.full(len(scores), -1)
    for h, m in tree.edges:
        heads[m] = h
    return heads_answer(heads, scores, single_root)


# ------------------------------------------------------------------- log Z and marginals: headway


def headway_both(scores: Floats, single_root: bool, projective: bool = False) -> tuple[Any, Any]:
    trees = TreeDistribution(scores, projective=projective, single_root=single_root, threads=1)
    mu = trees.marginals  # first: one pass then gives both
    return trees.log_partition, mu


def headway_marginals(projective: bool) -> Build:
    return lambda scores, single_root: lambda: headway_both(scores, single_root, projective)


def marginals_answer(result: Any, scores: Floats, single_root: bool) -> Answer:
    log_z, marginals = result
    return {"log Z": np.reshape(log_z, -1), "marginals": as_batch(marginals)}


# ------------------------------------------------------- log Z and marginals: koo2007 with LAPACK


def laplacian(words: NDArray[Any], root: NDArray[Any], single_root: bool) -> NDArray[Any]:
    """koo2007's matrix [head, modifier] of `words` (.., n, n) (zero diagonal), `root` (.., n)."""
    result = -words
    diagonal = np.arange(words.shape[-1])
    result[..., diagonal, diagonal] = words.sum(-2) if single_root else words.sum(-2) + root
    if single_root:
        result[..., 0, :] = root
    return result


def marginals_from_inverse(
    words: NDArray[Any], root: NDArray[Any], inverse: NDArray[Any], single_root: bool
) -> NDArray[Any]:
    """koo2007's marginals from the inverse of `laplacian`, shaped like scores."""
    n = words.shape[-1]
    diagonal, transposed = inverse.diagonal(0, -2, -1), np.swapaxes(inverse, -1, -2)
    root_factor = transposed[..., 0, :] if single_root else diagonal
    if single_root:
        diagonal, transposed = diagonal.copy(), transposed.copy()
        diagonal[..., 0] = 0
        transposed[..., 0, :] = 0
    result = np.zeros((*words.shape[:-2], n + 1, n + 1), dtype=words.dtype)
    result[..., 1:, 1:] = words * (diagonal[..., None, :] - transposed)
    result[..., 0, 1:] = root * root_factor
    return result


def matrix_tree(scores: Floats, single_root: bool) -> tuple[Any, Floats]:
    """log Z and marginals of one matrix or a stack of them; each column shifted by its maximum."""
    nodes = np.arange(scores.shape[-1])
    arcs = scores.copy()
    arcs[..., nodes, nodes] = -np.inf
    shift = arcs[..., 1:].max(-2)
    weights = np.exp(arcs[..., 1:] - shift[..., None, :])
    root, words = weights[..., 0, :], weights[..., 1:, :]
    matrix = laplacian(words, root, single_root)
    log_z = np.linalg.slogdet(matrix)[1] + shift.sum(-1)
    return log_z, marginals_from_inverse(words, root, np.linalg.inv(matrix), single_root)


def numpy_marginals(scores: Floats, single_root: bool) -> Callable[[], Any]:
    return lambda: matrix_tree(scores, single_root)


def exact_matrix_tree(scores: Floats, single_root: bool) -> tuple[float, Floats]:
    """The same for one matrix with EXACT_DIGITS digits, rounded at the end."""
    mpmath = MPMATH["mpmath"]
    with mpmath.workdps(EXACT_DIGITS):
        weights = np.frompyfunc(lambda x: mpmath.exp(mpmath.mpf(x)), 1, 1)(scores[:, 1:])
        root, words = weights[0], weights[1:]
        np.fill_diagonal(words, mpmath.mpf(0))
        determinant, inverse = determinant_and_inverse(laplacian(words, root, single_root))
        marginals = marginals_from_inverse(words, root, inverse, single_root)
        return float(mpmath.log(determinant)), marginals.astype(np.float64)


def determinant_and_inverse(matrix: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
    """Gauss-Jordan without pivoting, on numbers of any precision."""
    result, determinant = matrix.copy(), 1
    for k in range(len(matrix)):
        pivot, column = result[k, k], result[:, k].copy()
        determinant = determinant * pivot
        result[:, k] = 0
        result[k, k] = 1
        result[k] = result[k] / pivot
        column[k] = 0
        result = result - np.multiply.outer(column, result[k])
    return determinant, result


# ------------------------------------------------------------ log Z and marginals: torch libraries


def torch_struct_marginals(projective: bool = False, dtype: str = "float32") -> Build:
    """With a current torch, its projective class fails unless the input requires gradients."""

    def build(scores: Floats, single_root: bool) -> Callable[[], Any]:
        library = TORCH_STRUCT["torch_struct"]
        kind = library.DependencyCRF if projective else library.NonProjectiveDependencyCRF
        tensor = to_tensor(to_root_on_diagonal(as_batch(scores)), dtype, projective)

        def run() -> tuple[Any, Any]:
            trees = kind(tensor, multiroot=not single_root)
            return trees.partition, trees.marginals

        return run

    return build


def torch_struct_answer(result: Any, scores: Floats, single_root: bool) -> Answer:
    log_z, marginals = map(from_tensor, result)
    return {"log Z": log_z, "marginals": from_root_on_diagonal(marginals)}


def torch_struct_reference(scores: Floats, single_root: bool) -> Answer:
    """What torch-struct's non-projective class computes, by headway.

    It adds 1e-5 to the weight of every arc between words (not to root arcs) in its matrix, and
    multiplies with the weight without it at the end.
    """
    shifted = scores.copy()
    shifted[:, 1:, 1:] = np.logaddexp(scores[:, 1:, 1:], np.log(TORCH_STRUCT_EPS))
    log_z, marginals = headway_both(shifted, single_root)
    return {"log Z": log_z, "marginals": marginals * np.exp(scores - shifted)}


def supar_marginals(projective: bool = False, dtype: str = "float32") -> Build:
    """Self-arcs are masked: they cancel only up to rounding in its matrix."""

    def build(scores: Floats, single_root: bool) -> Callable[[], Any]:
        structs = SUPAR["supar.structs"]
        kind = structs.DependencyCRF if projective else structs.MatrixTree
        nodes = np.arange(scores.shape[-1])
        layout = to_modifier_head(as_batch(scores))
        layout[:, nodes, nodes] = SUPAR_MASK
        tensor = to_tensor(layout, dtype)

        def run() -> tuple[Any, Any]:
            trees = kind(tensor, multiroot=not single_root)
            return trees.log_partition, trees.marginals

        return run

    return build


def supar_answer(result: Any, scores: Floats, single_root: bool) -> Answer:
    log_z, marginals = map(from_tensor, result)
    return {"log Z": log_z, "marginals": np.swapaxes(marginals, 1, 2)}


# ---------------------------------------------------------------------------------- covariance


def arc_function(scores: Floats) -> Floats:
    """A fixed f for one matrix or a batch: the scores of the same arcs in another order."""
    return np.ascontiguousarray(scores[..., ::-1, ::-1])


def headway_covariance(scores: Floats, single_root: bool) -> Callable[[], Any]:
    f = arc_function(scores)
    return lambda: TreeDistribution(scores, single_root=single_root, threads=1).covariance_with_arcs(f)


def druck_covariance(scores: Floats, single_root: bool) -> Callable[[], Any]:
    f = arc_function(scores)
    return lambda: covariance_over_pairs(scores, f, single_root)


def covariance_over_pairs(scores: Floats, f: Floats, single_root: bool) -> Floats:
    """Cov(f, 1[a]) for every arc a of one sentence as druck2009's sum over all pairs, O(n^4).

    In the form of DESIGN 5.2: Cov(a, b) = [a = b] P(a) - K(a, b) K(b, a), where K(a, b) is
    w_b u[a, m_b] and u[h, m] the row v_a B of the inverse.
    """
    n = len(scores) - 1
    weights = np.exp(scores[:, 1:] - scores[:, 1:].max(0))
    weights[np.arange(1, n + 1), np.arange(n)] = 0.0
    root, words = weights[0], weights[1:]
    matrix = np.diag(words.sum(0) if single_root else words.sum(0) + root) - words.T
    if single_root:
        matrix[:, 0] = root
    inverse = np.linalg.inv(matrix)
    rows = inverse.copy()
    if single_root:
        rows[0] = 0.0
    from_root = np.broadcast_to(inverse[0], (n, n)) if single_root else rows
    u = np.concatenate([from_root[None], rows[None] - rows[:, None]])
    f_weights = f[:, 1:] * weights
    pairs = np.einsum("hmk,gkm,gk->hm", u, u, f_weights, optimize=False)
    result = np.zeros_like(scores)
    result[:, 1:] = f_weights * np.einsum("hmm->hm", u) - weights * pairs
    return result


def covariance_answer(result: Any, scores: Floats, single_root: bool) -> Answer:
    return {"covariance": as_batch(result)}


def covariance_reference(scores: Floats, single_root: bool) -> Answer:
    """Central differences of the marginals in direction f, whose limit is the covariance."""
    step = 1e-4
    f = arc_function(scores)
    ahead, behind = (headway_both(scores + s * f, single_root)[1] for s in (step, -step))
    return {"covariance": (ahead - behind) / (2 * step)}
