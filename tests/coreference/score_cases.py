"""Published cases: test/TestCases.README of github.com/conll/reference-coreference-scorers, as facts.

A mention is a letter, a cluster a word. For each metric recall and precision; for BLANC of the coreferent links and of
the others, None where the key has no such links. 0/0 is written "0". Cases A-5 and A-6 have a mention B that overlaps
b, another mention. A-7, A-8 and A-9 repeat a mention in the response: the figures are those of the response without the
repetition, which is given here (`REPEATED` has it with).

The README's fractions in brackets are used. Some of its F1 fractions before them are slips, and are not: CEAF-e of A-3
("3.6/5", with the right 0.76), of A-7 and A-8 ("4.14/7" for 4.4/7), and CEAF-m of A-9 ("8/14=0.57" for 8/13; the
scorer's own test file has 0.61538).
"""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    key: str
    response: str
    figures: dict[str, str]  # "recall precision"
    blanc: tuple[str | None, str | None] | None = None


_A = "a bc def"
_DE = "12345 67 89ABC"
_SIX = "a b c d e f"
_ONES = {"muc": "1 1", "b_cubed": "1 1", "ceaf_m": "1 1", "ceaf_e": "1 1", "lea": "1 1"}
_A_4 = {"muc": "1/3 1/3", "b_cubed": "5/9 17/42", "ceaf_m": "4/6 4/7", "ceaf_e": "11/15 11/20", "lea": "3/6 2/7"}
_A_4_BLANC = ("1/4 1/4", "5/11 5/17")

CASES = {
    "A-1": Case(_A, _A, _ONES, ("4/4 4/4", "11/11 11/11")),
    "A-2": Case(
        _A,
        "a de",
        {"muc": "1/3 1/1", "b_cubed": "7/18 3/3", "ceaf_m": "3/6 3/3", "ceaf_e": "3/5 9/10", "lea": "2/6 3/3"},
        ("1/4 1/1", "2/11 2/2"),
    ),
    "A-3": Case(
        _A,
        "a bcx defy z",
        {"muc": "3/3 3/5", "b_cubed": "6/6 55/108", "ceaf_m": "6/6 6/9", "ceaf_e": "31/35 93/140", "lea": "1 4/9"},
        ("4/4 4/9", "11/11 11/27"),
    ),
    "A-4": Case(_A, "a bcx dy z", _A_4, _A_4_BLANC),
    "A-5": Case(
        _A,
        "a bcxB dy z",
        {"muc": "1/3 1/4", "b_cubed": "5/9 5/16", "ceaf_m": "4/6 4/8", "ceaf_e": "31/45 31/60", "lea": "3/6 5/24"},
        ("1/4 1/7", "5/11 5/21"),
    ),
    "A-6": Case(
        _A,
        "a bcx dy Bz",
        {"muc": "1/3 1/4", "b_cubed": "5/9 17/48", "ceaf_m": "4/6 4/8", "ceaf_e": "11/15 11/20", "lea": "3/6 2/8"},
        ("1/4 1/5", "5/11 5/23"),
    ),
    "A-7": Case(_A, "a bcx dy z", _A_4, _A_4_BLANC),
    "A-8": Case(_A, "a bcx dy z", _A_4, _A_4_BLANC),
    "A-9": Case(_A, "a bcx dy z", _A_4, _A_4_BLANC),
    "A-10": Case(_A, _SIX, {"muc": "0 0", "b_cubed": "3/6 6/6", "lea": "1/6 1/6"}, ("0/4 0", "11/11 11/15")),
    "A-11": Case(_A, "abcdef", {"muc": "3/3 3/5", "b_cubed": "6/6 7/18", "lea": "5/6 4/15"}, ("4/4 4/15", "0/11 0")),
    "A-12": Case(_A, "a x y c d e z", {"muc": "0 0", "b_cubed": "13/36 4/7", "lea": "1/6 1/7"}, ("0/4 0", "5/11 5/21")),
    "A-13": Case(_A, "axycdez", {"muc": "1/3 1/6", "b_cubed": "17/36 6/49", "lea": "1/6 1/21"}, ("1/4 1/21", "0/11 0")),
    "B-1": Case("ab cde", "bcx de", {"lea": "1/5 2/5"}, ("1/4 1/4", "2/6 2/6")),
    "C-1": Case("ab cde fg", "bcx de fg", {"lea": "3/7 4/7"}, ("2/5 2/5", "10/16 10/16")),
    # from the papers on B-cubed (D, E) and MUC (F to L)
    "D-1": Case(_DE, "12345 6789ABC", {"muc": "9/9 9/10", "b_cubed": "12/12 16/21", "lea": "12/12 13/18"}),
    "E-1": Case(_DE, "1234589ABC 67", {"muc": "9/9 9/10", "b_cubed": "1 7/12", "lea": "12/12 29/54"}),
    "F-1": Case("ABCD", "AB CD", {"muc": "2/3 2/2", "lea": "2/6 4/4"}),
    "G-1": Case("AB CD", "ABCD", {"muc": "2/2 2/3", "lea": "1 2/6"}),
    "H-1": Case("ABCD", "ABCD", {"muc": "1 1", "lea": "1 1"}),
    "I-1": Case("ABCD", "AB CD", {"muc": "2/3 2/2", "lea": "2/6 4/4"}),
    "J-1": Case("ABC", "AC", {"muc": "1/2 1/1", "lea": "1/3 1"}),
    "K-1": Case("BCDEGHJ", "ABC DEF GHI", {"muc": "3/6 3/6", "lea": "3/21 3/9"}),
    "L-1": Case("ABC DEFG", "AB CD FGH", {"muc": "2/5 2/4", "lea": "5/21 3/7"}),
    # one cluster in the key
    "M-1": Case("abcdef", "abcdef", _ONES, ("15/15 15/15", None)),
    "M-2": Case("abcdef", _SIX, {"muc": "0 0", "lea": "0 0"}, ("0/15 0", None)),
    "M-3": Case("abcdef", "ab cde f", {"lea": "4/15 5/6"}, ("4/15 4/4", None)),
    "M-4": Case("abcdef", "abcxyz", {"lea": "3/15 3/15"}, ("3/15 3/15", None)),
    "M-5": Case("abcdef", "a b c x y z", {"muc": "0 0", "lea": "0 0"}, ("0/15 0", None)),
    "M-6": Case("abcdef", "ab cxy z", {"lea": "1/15 2/6"}, ("1/15 1/4", None)),
    # only clusters of one in the key
    "N-1": Case(_SIX, _SIX, {**_ONES, "muc": "0 0"}, (None, "15/15 15/15")),
    "N-2": Case(_SIX, "abcdef", {"lea": "0 0"}, (None, "0/15 0")),
    "N-3": Case(_SIX, "ab cde f", {"lea": "1/6 1/6"}, (None, "11/15 11/11")),
    "N-4": Case(_SIX, "a b c x y z", {"muc": "0 0", "lea": "3/6 3/6"}, (None, "3/15 3/15")),
    "N-5": Case(_SIX, "abcxyz", {"lea": "0 0"}, (None, "0/15 0")),
    "N-6": Case(_SIX, "ab cxy z", {"lea": "0 0"}, (None, "2/15 2/11")),
}

# the responses of A-7 to A-9 as they stand: b comes again in its cluster, in another, ten times in another
REPEATED = {"A-7": "a bcxb dy z", "A-8": "a bcx dy bz", "A-9": "a bcx dy bbbbbbbbbbz"}

# recall, precision, F1 as test/CorefMetricTestConfig.pm of the same scorer has them, to five decimals
BLANC_DECIMALS = {
    "A-1": (1, 1, 1),
    "A-2": (0.21591, 1, 0.35385),
    "A-3": (1, 0.42593, 0.59717),
    "A-4": (0.35227, 0.27206, 0.30357),
    "A-5": (0.35227, 0.19048, 0.24716),
    "A-6": (0.35227, 0.20870, 0.25817),
    "A-10": (0.5, 0.36667, 0.42308),
    "A-11": (0.5, 0.13333, 0.21053),
    "A-12": (0.22727, 0.11905, 0.15625),
    "A-13": (0.125, 0.02381, 0.04),
}
CEAF_DECIMALS = {
    "A-2": ((0.5, 1, 0.66667), (0.6, 0.9, 0.72)),
    "A-3": ((1, 0.66667, 0.8), (0.88571, 0.66429, 0.75918)),
    "A-4": ((0.66667, 0.57143, 0.61538), (0.73333, 0.55, 0.62857)),
    "A-5": ((0.66667, 0.5, 0.57143), (0.68889, 0.51667, 0.59048)),
    "A-6": ((0.66667, 0.5, 0.57143), (0.73333, 0.55, 0.62857)),
}
