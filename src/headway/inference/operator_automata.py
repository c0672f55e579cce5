"""What operator grammars are made of: an automaton per head symbol and direction, and the factor beside them.

`operator_grammar` sums over the trees of a sentence under both, `operator_viterbi` finds the best one; here they are
held and checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.arrays import Bools, Floats, Ints
from headway.errors import ScoresError, ShapeError
from headway.inference.batch import LARGEST_SCORE, as_floats
from headway.inference.jit import kernel

LEFT, RIGHT = 0, 1

# So that exponents, and sums of them over a sentence, are exact integers.
_LARGEST_LOG = 1e12


@dataclass(frozen=True)
class OperatorGrammar:
    """One operator automaton per head symbol and direction; H symbols, 0 the root, and s states.

    f(x_1 .. x_T | h, d) = final[h, d] @ operators[h, d, x_T] @ ... @ operators[h, d, x_1] @ initial[h, d]

    >>> one = OperatorGrammar(np.ones((2, 2, 1)), np.ones((2, 2, 1)), np.ones((2, 2, 2, 1, 1)))
    >>> one.symbols, one.states
    (2, 1)
    """

    initial: Floats  # (H, 2, s)
    final: Floats  # (H, 2, s)
    operators: Floats  # (H, 2, H, s, s), [head, direction, modifier, to, from]; modifier 0, the root, is unused

    def __post_init__(self) -> None:
        for name in ("initial", "final", "operators"):
            object.__setattr__(self, name, as_floats(getattr(self, name), name))
        shape = self.initial.shape
        symbols, states = (shape[0], shape[2]) if len(shape) == 3 else (0, 0)
        expected = ((symbols, 2, states), (symbols, 2, states), (symbols, 2, symbols, states, states))
        if (shape, self.final.shape, self.operators.shape) != expected or symbols == 0 or states == 0:
            raise ShapeError(
                f"initial, final and operators have shapes {shape}, {self.final.shape} and {self.operators.shape}; "
                "expected (H, 2, s), (H, 2, s) and (H, 2, H, s, s)"
            )
        for name in ("initial", "final", "operators"):
            _require_numbers(getattr(self, name), name)

    @classmethod
    def of_automata(cls, initial: Floats, final: Floats, operators: Floats) -> OperatorGrammar:
        """From automata in a row, the left one of a symbol before its right one: (2H, s), (2H, s), (2H, H, s, s)."""
        shape = (len(initial) // 2, 2)
        return cls(*(array.reshape(*shape, *array.shape[1:]) for array in (initial, final, operators)))

    @property
    def symbols(self) -> int:
        """How many symbols there are, H, the root included."""
        return int(self.initial.shape[0])

    @property
    def states(self) -> int:
        """How many states each automaton has."""
        return int(self.initial.shape[2])

    def weight(self, head: int, direction: int, modifiers: Sequence[int]) -> float:
        """f(x_1 .. x_T | h, d), the modifiers nearest first."""
        alpha = self.initial[head, direction]
        for modifier in modifiers:
            alpha = self.operators[head, direction, modifier] @ alpha
        return float(self.final[head, direction] @ alpha)

    def leading(self, states: int) -> OperatorGrammar:
        """Only the first states: of a spectral grammar, the one that was learnt with so many."""
        block = self.operators[..., :states, :states]
        return OperatorGrammar(self.initial[..., :states], self.final[..., :states], block)

    def mixed(self, other: OperatorGrammar, share: float) -> OperatorGrammar:
        """(1 - share) f + share f', automaton by automaton: the states of both side by side."""
        s = self.states
        operators = np.zeros((*self.operators.shape[:3], s + other.states, s + other.states))
        operators[..., :s, :s] = self.operators
        operators[..., s:, s:] = other.operators
        initial = np.concatenate(((1 - share) * self.initial, share * other.initial), axis=-1)
        return OperatorGrammar(initial, np.concatenate((self.final, other.final), axis=-1), operators)


@dataclass(frozen=True)
class ModifierFactor:
    """The deterministic factor of one sentence, multiplied into the operators (equation 21); D states.

    Every sequence of modifiers starts in state 0 and is in state follows[m] after modifier m. -inf forbids. Column 0 of
    `log_weights`, its diagonal, and the left side of the root are ignored.

    >>> factor = ModifierFactor(np.zeros((3, 3, 2)), np.zeros((3, 2, 2)), np.array([0, 1, 1]))
    >>> factor.n, factor.states
    (2, 2)
    """

    log_weights: Floats  # (n+1, n+1, D): log P(m | h, side, state), [head, modifier, state]
    log_stops: Floats  # (n+1, 2, D): log P(STOP | h, direction, state)
    follows: Ints  # (n+1,)

    def __post_init__(self) -> None:
        for name in ("log_weights", "log_stops"):
            object.__setattr__(self, name, as_floats(getattr(self, name), name))
        follows = np.asarray(self.follows)
        shape = self.log_weights.shape
        nodes, states = (shape[0], shape[2]) if len(shape) == 3 else (0, 0)
        expected = ((nodes, nodes, states), (nodes, 2, states), (nodes,))
        if (shape, self.log_stops.shape, follows.shape) != expected or nodes == 0 or states == 0:
            raise ShapeError(
                f"log_weights, log_stops and follows have shapes {shape}, {self.log_stops.shape} and {follows.shape}; "
                "expected (n+1, n+1, D), (n+1, 2, D) and (n+1,)"
            )
        if follows.dtype.kind not in "iu" or not ((follows[1:] >= 0) & (follows[1:] < states)).all():
            raise ScoresError(f"follows must be states 0 to {states - 1}, one after each word")
        object.__setattr__(self, "follows", np.ascontiguousarray(follows, dtype=np.int64))
        h, m, q = _first_bad_weight(self.log_weights, _LARGEST_LOG)
        if h >= 0:
            raise _bad_log(f"log_weights[{h}, {m}, {q}]", self.log_weights[h, m, q])
        h, d, q = _first_bad_stop(self.log_stops, _LARGEST_LOG)
        if h >= 0:
            raise _bad_log(f"log_stops[{h}, {d}, {q}]", self.log_stops[h, d, q])

    @classmethod
    def of_nothing(cls, n: int) -> ModifierFactor:
        """The factor of one state that gives every sequence weight 1."""
        return cls(np.zeros((n + 1, n + 1, 1)), np.zeros((n + 1, 2, 1)), np.zeros(n + 1, np.int64))

    def only(self, allowed: Bools) -> ModifierFactor:
        """The same for trees of allowed arcs (n+1, n+1); others weigh nothing, so that probabilities are conditional.

        >>> ModifierFactor.of_nothing(1).only(np.array([[True, False], [True, True]])).log_weights[0, 1]
        array([-inf])
        """
        return replace(self, log_weights=np.where(allowed[..., None], self.log_weights, -np.inf))

    @property
    def n(self) -> int:
        """How many words the sentence has."""
        return len(self.follows) - 1

    @property
    def states(self) -> int:
        """How many states there are, D."""
        return int(self.log_weights.shape[2])


def as_symbols(symbols: Ints, grammar: OperatorGrammar, sentence: int | None) -> Ints:
    """A sentence's symbols (n+1,), checked: the root first, then words of the grammar's alphabet."""
    where = "" if sentence is None else f"sentence {sentence}: "
    array = np.asarray(symbols)
    if array.dtype.kind not in "iu" or array.ndim != 1 or len(array) == 0:
        raise ShapeError(
            f"{where}symbols have shape {array.shape} and dtype {array.dtype}; expected integers (n+1,), the root first"
        )
    words = array[1:]
    outside = np.flatnonzero((words < 1) | (words >= grammar.symbols)) + 1
    if array[0] != 0 or outside.size:
        m = int(outside[0]) if array[0] == 0 else 0
        expected = "0, the root" if m == 0 else f"1 to {grammar.symbols - 1}"
        raise ScoresError(f"{where}symbols[{m}] is {array[m]}; expected {expected}")
    return np.ascontiguousarray(array, dtype=np.int64)


def as_factors(factors: Sequence[ModifierFactor] | None, sentences: Sequence[Ints]) -> Sequence[ModifierFactor]:
    """One factor per sentence, of its length; without any, factors of one state that weigh nothing."""
    if factors is None:
        none = {nodes: ModifierFactor.of_nothing(nodes - 1) for nodes in {len(symbols) for symbols in sentences}}
        return [none[len(symbols)] for symbols in sentences]
    if len(factors) != len(sentences):
        raise ShapeError(f"there are {len(factors)} factors for {len(sentences)} sentences; expected one each")
    for where, (factor, symbols) in enumerate(zip(factors, sentences, strict=True)):
        if factor.n != len(symbols) - 1:
            raise ShapeError(f"sentence {where} has {len(symbols) - 1} words, and its factor {factor.n}")
    return factors


def _require_numbers(array: Floats, name: str) -> None:
    if array.max() <= LARGEST_SCORE and array.min() >= -LARGEST_SCORE:  # false for nan as well
        return
    at = [int(x) for x in np.argwhere(~(np.abs(array) <= LARGEST_SCORE))[0]]
    raise ScoresError(f"{name}{at} is {array[tuple(at)]}; expected finite numbers of at most {LARGEST_SCORE:g}")


def _bad_log(place: str, value: float) -> ScoresError:
    return ScoresError(f"{place} is {value}; expected a logarithm of at most {_LARGEST_LOG:g} either way, or -inf")


@kernel
def _first_bad_weight(log_weights: Floats, largest: float) -> tuple[int, int, int]:
    """The first log weight of an arc that is nan, +inf or absurd; (-1, -1, -1) if there is none."""
    nodes, _, states = log_weights.shape
    for h in range(nodes):
        for m in range(1, nodes):
            for q in range(states):
                x = log_weights[h, m, q]
                if h != m and not (x <= largest and (x >= -largest or x == -np.inf)):
                    return h, m, q
    return -1, -1, -1


@kernel
def _first_bad_stop(log_stops: Floats, largest: float) -> tuple[int, int, int]:
    nodes, _, states = log_stops.shape
    for h in range(nodes):
        for d in range(RIGHT if h == 0 else LEFT, 2):
            for q in range(states):
                x = log_stops[h, d, q]
                if not (x <= largest and (x >= -largest or x == -np.inf)):
                    return h, d, q
    return -1, -1, -1
