"""The exercises alibi_slopes and alibi_bias of lesson 07."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from .. import relative
from .attention_symptoms import NUMPY
from .exercise import Exercise, Mistake, Probe, Result, Symptom, each
from .outcome import close, said
from .relative_symptoms import LIST_RESULT, results, right_only_where
from .symptoms import MORE_RESULTS, ONLY_SHAPE, Seen

FREQUENT = {  # what may come together with two others
    *("from_zero", "signed", "signed_other", "past_only", "plus", "first", "no_heads", "last", "transposed", "formula"),
}


def _one(key: str, name: str, sentence: str, *values: str, edge: bool = False, beside: str = "") -> tuple[Mistake, ...]:
    return tuple(
        Mistake(name, sentence, switches={key: v}, edge=edge, beside=beside, rare=v not in FREQUENT) for v in values
    )


# ---------------------------------------------------------------- alibi_slopes
def _as_tensor(_: tuple, slopes: object) -> object:
    """The slopes may come as a list, a tuple or an array of numbers as well: each is read as a tensor."""
    if isinstance(slopes, np.ndarray) and slopes.dtype.kind == "f":
        return torch.from_numpy(slopes)
    if isinstance(slopes, list) and all(isinstance(x, (int, float, np.floating)) for x in slopes):
        return torch.tensor(slopes, dtype=torch.float64)
    if isinstance(slopes, list) and all(isinstance(x, Tensor) and x.dim() == 0 for x in slopes):
        return torch.stack(slopes)
    return slopes


def _series(m: int, formula: str) -> list[float]:
    """The slopes of m heads, m a power of two unless the reader takes another."""
    rows = {
        "from_zero": lambda i: 2 ** (-8 * i / m),
        "no_eight": lambda i: 2 ** (-(i + 1) / m),
        "no_heads": lambda i: 2.0 ** -(i + 1),
        "no_heads_from_zero": lambda i: 2.0**-i,
        "eight_alone": lambda i: 2.0 ** (-8 * (i + 1)),
        "base_e": lambda i: math.exp(-8 * (i + 1) / m),
        "base_ten": lambda i: 10 ** (-8 * (i + 1) / m),
        "no_minus": lambda i: 2 ** (8 * (i + 1) / m),
        "reciprocal": lambda i: 1 / (i + 1),
        "straight": lambda i: (i + 1) / m,
        "straight_down": lambda i: 1 - i / m,
        "exponents": lambda i: 8 * (i + 1) / m,
        "minus_exponents": lambda i: -8 * (i + 1) / m,
        "negated": lambda i: -(2 ** (-8 * (i + 1) / m)),
        "four": lambda i: 2 ** (-4 * (i + 1) / m),
        "sixteen": lambda i: 2 ** (-16 * (i + 1) / m),
        "one_head_more": lambda i: 2 ** (-8 * (i + 1) / (m + 1)),
        "one_to_eight": lambda i: 2.0 ** -(1 + 7 * i / max(m - 1, 1)),
        "zero_to_eight": lambda i: 2.0 ** -(8 * i / max(m - 1, 1)),
        "halving": lambda i: 2 ** (-8 / m - i),
        "from_a_half": lambda i: 2 ** (-1 - 8 * i / m),
        "same": lambda i: 2 ** (-8 / m),
        "last_for_all": lambda i: 2.0**-8,
        "from_two": lambda i: 2 ** (-8 * (i + 2) / m),
        "squared": lambda i: 2 ** (-8 * (i + 1) ** 2 / m),
        "power_outside": lambda i: 2.0**-8 * (i + 1) / m,
        "whole_division": lambda i: 2.0 ** (-8 * (i + 1) // m),
        "whole_step": lambda i: 2.0 ** (-(8 // m) * (i + 1)),
        "base_exponent": lambda i: ((i + 1) / m) ** 8,
        "product": lambda i: 2 * (-8 * (i + 1) / m),
        "power_first": lambda i: 2 ** (-8 / m) * (i + 1),
        "eight_over_number": lambda i: 2 ** (-8 / (i + 1)),
    }
    return [float(rows.get(formula, lambda i: 2 ** (-8 * (i + 1) / m))(i)) for i in range(m)]


def _heads(n: int, formula: str, rest: str) -> list[float]:
    low = 2 ** (n.bit_length() - 1)
    high = low if low == n else 2 * low
    left = n - low
    below, above = _series(low, formula), _series(2 * low, formula)
    if left == 0 and rest not in ("always_above", "uncut_always"):
        return below
    return {
        "right": lambda: below + above[0::2][:left],
        "formula": lambda: _series(n, formula),
        "doubled": lambda: below + above[1::2][:left],
        "first_above": lambda: below + above[:left],
        "last_above": lambda: below + above[0::2][-left:],
        "last_of_above": lambda: below + above[-left:],
        "cut_above": lambda: above[:n],
        "above_first": lambda: above[0::2][:left] + below,
        "odd_then_even": lambda: (above[0::2] + above[1::2])[:n],
        "even_then_odd_all": lambda: above[1::2] + above[0::2],
        "always_above": lambda: above[:n] if left else above[0::2][:n],
        "continued": lambda: [float(2 ** (-8 * (i + 1) / low)) for i in range(n)],
        "below_alone": lambda: below,
        "above_alone": lambda: _series(high, formula),
        "zeros": lambda: below + [0.0] * left,
        "ones": lambda: below + [1.0] * left,
        "last_repeated": lambda: below + below[-1:] * left,
        "rest_series": lambda: below + _series(left, formula),
        "rest_recursive": lambda: below + _heads(left, formula, "rest_recursive"),
        "rest_of_double_rest": lambda: below + _series(2 * left, formula)[0::2],
        "uncut": lambda: below + above[0::2],
        "uncut_always": lambda: below + above[0::2],
        "uncut_all": lambda: below + above,
        "mixed": lambda: [x for pair in zip(below, above[0::2], strict=True) for x in pair][:n],
        "half_below": lambda: _series(max(low // 2, 1), formula) + _series(low, formula)[0::2],
    }[rest]()


def slopes_wrongly(
    n: int, *, formula: str = "right", rest: str = "right", order: str = "right", result: str = "right"
) -> object:
    """The slopes with any of the ways to go wrong; without a switch it is right."""
    slopes = _heads(n, formula, rest)
    slopes = {
        "right": lambda: slopes,
        "sorted": lambda: sorted(slopes, reverse=True),
        "reversed": lambda: slopes[::-1],
        "ascending": lambda: sorted(slopes),
    }[order]()
    out = torch.tensor(slopes)
    return {
        "right": lambda: out,
        "integers": lambda: out.long(),
        "normalised": lambda: out / out.sum(),
        "by_largest": lambda: out / out.max(),
        "log": lambda: out.log(),
        "square": lambda: torch.diag(out),
        "last_missing": lambda: out[:-1],
        "first_missing": lambda: out[1:],
    }[result]()


LIST = "Head i of n, counted from 1, has the slope 2^(-8i/n), where n is a power of two."
OTHER = (
    "For another number of heads, the slopes of the power of two below it come first, and then every second one, the"
    " 1st, 3rd, 5th and so on, of the power of two above it."
)

SLOPES_MISTAKES = (
    *_one(
        "formula",
        "starts_at_one",
        f"Your slopes begin with 1, one step too early: the exponents are counted from 0. {LIST}",
        "from_zero",
    ),
    *_one(
        "rest",
        "formula_for_all",
        "For a power of two all is right; for other numbers you use the same formula, 2^(-8i/n), with that n. The"
        f" authors' code does otherwise, and released weights count on it. {OTHER}",
        "formula",
        beside=f"Where the number of heads is no power of two, you use the same formula as where it is one. {OTHER}",
    ),
    *_one(
        "order",
        "sorted",
        "The values are right, but you sort them. Where the number of heads is no power of two, the slopes of the power"
        " of two below it come first and the others after them; released weights count on this order.",
        "sorted",
        beside="You sort the slopes. Where the number of heads is no power of two, those of the power of two below it"
        " come first and the others after them.",
    ),
    *_one(
        "order",
        "heads_reversed",
        "The heads are in reverse order: the first one should have the largest slope.",
        "reversed",
    ),
    *_one(
        "order",
        "heads_reversed",
        "You sort the slopes from small to large: the first head should have the largest, and where the number of heads"
        " is no power of two they are not sorted at all.",
        "ascending",
    ),
    *_one(
        "rest",
        "slopes_doubled",
        "The heads beyond the power of two get slopes that are used already, those of the first heads, which are also"
        f" the 2nd, 4th, 6th of the power of two above. {OTHER}",
        "doubled",
    ),
    *_one(
        "rest",
        "neighbours_taken",
        "From the power of two above you take the slopes one after another, where it is every second one: half of yours"
        f" are there already. {OTHER}",
        "first_above",
        "last_of_above",
    ),
    *_one(
        "rest",
        "last_taken",
        f"From every second slope of the power of two above you take the last ones: take the first. {OTHER}",
        "last_above",
    ),
    *_one(
        "rest",
        "power_above_cut",
        f"You take the slopes of the power of two above and cut them to the number of heads. {OTHER}",
        "cut_above",
    ),
    *_one(
        "rest",
        "additional_first",
        f"The slopes of the power of two above stand first: they come after those of the power of two below. {OTHER}",
        "above_first",
        "odd_then_even",
    ),
    *_one(
        "rest",
        "slopes_interleaved",
        f"You put the two lists together in turns, one slope of each: the first list comes whole. {OTHER}",
        "mixed",
    ),
    *_one(
        "rest",
        "slopes_repeated",
        f"The heads beyond the power of two all get its last slope again. {OTHER}",
        "last_repeated",
    ),
    *_one(
        "rest",
        "series_continued",
        "Where the heads are more than the power of two below, you go on with its series, below 2^-8 (as also happens"
        f" if 8 / n is cut to a whole number). {OTHER}",
        "continued",
    ),
    *_one(
        "rest",
        "rest_by_itself",
        "The heads beyond the power of two get a series of their own, as if they were a model by themselves. Theirs are"
        f" taken from the power of two above. {OTHER}",
        "rest_series",
        "rest_recursive",
        "rest_of_double_rest",
    ),
    *_one(
        "rest",
        "rest_filled",
        f"The heads beyond the power of two all get 0, or 1. {OTHER}",
        "zeros",
        "ones",
    ),
    *_one(
        "rest",
        "too_few",
        "Where the number of heads is no power of two, you return fewer slopes than there are heads: those of the power"
        f" of two below. {OTHER}",
        "below_alone",
    ),
    *_one(
        "rest",
        "too_many",
        "Where the number of heads is no power of two, you return more slopes than there are heads: cut the second list"
        f" to the heads that are left. {OTHER}",
        "above_alone",
        "uncut",
        "uncut_all",
        "even_then_odd_all",
    ),
    *_one(
        "rest",
        "too_many",
        "You return more slopes than there are heads: take as many of the second list as heads are left, none where the"
        f" number of heads is a power of two. {OTHER}",
        "uncut_always",
    ),
    *_one(
        "formula",
        "no_eight",
        f"The 8 is missing in the exponent: your slopes run down to 1/2 and not to 2^-8. {LIST}",
        "no_eight",
    ),
    *_one(
        "formula",
        "number_of_heads_ignored",
        "Your slopes halve from head to head, whatever the number of heads: that is the factor of 8 heads alone."
        f" {LIST}",
        "no_heads",
        "no_heads_from_zero",
    ),
    *_one(
        "formula",
        "number_of_heads_ignored",
        f"The exponents are not divided by the number of heads: your slopes fall by 2^8 from head to head. {LIST}",
        "eight_alone",
    ),
    *_one("formula", "wrong_base", f"The base is not 2 in your slopes, but e or 10. {LIST}", "base_e", "base_ten"),
    *_one(
        "formula",
        "no_minus",
        f"Your slopes grow and are larger than 1: the exponent is negative. {LIST}",
        "no_minus",
    ),
    *_one(
        "formula",
        "negated",
        "Your slopes are negative. They are positive here: the minus comes with the distance, in the bias.",
        "negated",
    ),
    *_one(
        "formula",
        "not_geometric",
        "Your slopes are no geometric series: each should be the one before times the same factor, 2^(-8/n). " + LIST,
        "reciprocal",
        "straight",
        "straight_down",
        "squared",
        "power_outside",
        "base_exponent",
    ),
    *_one(
        "formula",
        "not_geometric",
        "Your slopes grow in equal steps: the power is taken first, 2^(-8/n), and then multiplied by i. The i belongs"
        f" in the exponent, within parentheses: 2 ** (-8 * i / n). {LIST}",
        "power_first",
    ),
    *_one(
        "formula",
        "not_geometric",
        f"The number of the head stands below the 8: the exponent is 8 times i over n, and yours is 8 / i. {LIST}",
        "eight_over_number",
    ),
    *_one(
        "formula",
        "exponents_alone",
        f"You return the exponents (or twice the exponents): the slopes are powers, 2 ** (-8i/n). {LIST}",
        "exponents",
        "minus_exponents",
        "product",
    ),
    *_one(
        "formula",
        "wrong_exponent",
        f"There is another number than 8 in the exponent. {LIST}",
        "four",
        "sixteen",
    ),
    *_one(
        "formula",
        "wrong_exponent",
        f"You divide by the number of heads plus one. {LIST}",
        "one_head_more",
    ),
    *_one(
        "formula",
        "exponents_from_one_to_eight",
        "The exponents are spread evenly from 1 (or 0) to 8. That is right for 8 heads alone, if it begins with 1: they"
        f" begin with 8/n and go on in steps of 8/n. {LIST}",
        "one_to_eight",
        "zero_to_eight",
    ),
    *_one(
        "formula",
        "wrong_factor",
        "The factor from head to head is 1/2 in your series: the first slope is also the factor. " + LIST,
        "halving",
    ),
    *_one(
        "formula",
        "wrong_start",
        f"Your series begins with another slope than it should: the first slope is the factor itself. {LIST}",
        "from_a_half",
        "from_two",
    ),
    *_one("formula", "same_for_all", f"All heads have one slope: each has its own. {LIST}", "same", "last_for_all"),
    *_one(
        "formula",
        "whole_division",
        f"The exponents are cut to whole numbers (//): with more than 8 heads they are fractions. {LIST}",
        "whole_division",
        "whole_step",
    ),
    Mistake(
        "whole_division",
        "The factor is cut to a whole number, 8 // n, which is 1 for 5 to 8 heads and 0 for more than 8, and other"
        f" numbers of heads are treated as powers of two are. {OTHER}",
        switches={"formula": "whole_step", "rest": "formula"},
        alone=True,
    ),
    *_one(
        "result",
        "whole_numbers",
        "Your slopes are whole numbers, so that 2^-2 becomes 0 (a whole number to the power of a tensor of whole"
        " numbers is one in torch): make the exponents floats, or 2.0 the base.",
        "integers",
    ),
    *_one("result", "normalised", "Your slopes are divided by their sum: they do not sum to 1.", "normalised"),
    *_one("result", "normalised", "Your slopes are divided by the largest, so that one is 1.", "by_largest"),
    *_one("result", "logarithm", "You return the logarithms of the slopes.", "log"),
    *_one(
        "result",
        "one_missing",
        "One slope is missing: head i is counted from 1 to n, so range(1, n + 1).",
        "last_missing",
        "first_missing",
    ),
    *_one("result", "matrix", "You return a square of numbers: one slope for each head, (heads,).", "square"),
)


def _vectors(seen: Seen) -> list[tuple[int, Tensor, Tensor]] | None:
    """(heads, right, reader's) of every probe; None unless the reader always gave a list of floats."""
    found = []
    for probe, expected, given in seen:
        y = given.value
        if not isinstance(y, Tensor) or y.dim() != 1 or not y.is_floating_point():
            return None
        found.append((probe.make()[0], expected.value.double(), y.double()))
    return found


def _same_slopes(seen: Seen) -> bool:
    vectors = _vectors(seen)
    return vectors is not None and all(
        r.shape == y.shape and bool(close(r.sort().values, y.sort().values).all()) for _, r, y in vectors
    )


def _powers_right(seen: Seen) -> bool:
    return right_only_where(seen, lambda probe: probe.make()[0] in (1, 4, 8))


def _first_right(seen: Seen) -> bool:
    """The slopes of the power of two below are right in every probe, and something follows."""
    vectors = _vectors(seen)
    return vectors is not None and all(
        len(y) == n and bool(close(r[:low], y[:low]).all())
        for n, r, y in vectors
        for low in [2 ** (n.bit_length() - 1)]
    )


ALIBI_SLOPES = Exercise(
    name="relative.alibi_slopes",
    reference=lambda n_heads: relative.alibi_slopes(n_heads),
    results=(Result("slopes", ("head",)),),
    settled=_as_tensor,
    probes=tuple(Probe(f"{n} head{'s' * (n > 1)}", lambda n=n: (n,)) for n in (4, 8, 1, 6, 5, 12)),
    mistakes=SLOPES_MISTAKES,
    compound=slopes_wrongly,
    symptoms=(
        Symptom(
            "wrong_order",
            f"The slopes are the right ones, but not in the right order. {OTHER}",
            _same_slopes,
        ),
        Symptom(
            "additional_heads_wrong",
            f"The slopes of the first heads are right, but those beyond the power of two are not. {OTHER}",
            _first_right,
        ),
        Symptom(
            "not_a_power_of_two",
            f"For a power of two all is right, for other numbers of heads it is not. {OTHER}",
            _powers_right,
        ),
        MORE_RESULTS,
        ONLY_SHAPE,
    ),
    at_once=3,
)


# ---------------------------------------------------------------- alibi_bias
def _places(n_queries: int, n_keys: int, queries: str) -> tuple[Tensor, Tensor]:
    """(query, 1) and (1, key): where each stands."""
    start = {
        "right": n_keys - n_queries,
        "from_zero": 0,
        "late": n_keys - n_queries + 1,
        "early": n_keys - n_queries - 1,
        "negative": n_queries - n_keys,
        "at_the_end": n_keys,
    }.get(queries, 0)
    i = torch.arange(start, start + n_queries)[:, None]
    if queries == "all_last":
        i = torch.full((n_queries, 1), n_keys - 1)
    if queries == "as_many_as_keys":
        i = torch.arange(n_keys)[:, None]
    j = torch.arange(n_queries if queries == "keys_cut" else n_keys)[None, :]
    return i, j


def bias_wrongly(
    n_heads: int,
    n_queries: int,
    n_keys: int,
    *,
    slopes: str = "right",
    queries: str = "right",
    distance: str = "right",
    sign: str = "minus",
    axes: str = "right",
) -> object:
    """The bias with any of the ways to go wrong; without a switch it is right."""
    i, j = _places(n_queries, n_keys, queries)
    away = {
        "right": lambda: (i - j).abs(),
        "signed": lambda: i - j,
        "signed_other": lambda: j - i,
        "past_only": lambda: (i - j).clamp(min=0),
        "future_only": lambda: (j - i).clamp(min=0),
        "future_forbidden": lambda: (i - j).double().masked_fill(j > i, torch.inf),
        "squared": lambda: (i - j) ** 2,
        "root": lambda: (i - j).abs().sqrt(),
        "logarithm": lambda: (i - j).abs().double().log1p(),
        "one_more": lambda: (i - j).abs() + 1,
        "key": lambda: j + 0 * i,
        "minus_key": lambda: -j + 0 * i,
        "query": lambda: i + 0 * j,
        "divided": lambda: (i - j).abs() / n_keys,
        "one_step": lambda: ((i - j) != 0).long(),
        "nearness": lambda: n_keys - (i - j).abs(),
    }[distance]()
    s = {
        "right": lambda: torch.tensor(_heads(n_heads, "right", "right")),
        "from_zero": lambda: torch.tensor(_heads(n_heads, "from_zero", "right")),
        "no_heads": lambda: torch.tensor(_heads(n_heads, "no_heads", "right")),
        "no_eight": lambda: torch.tensor(_heads(n_heads, "no_eight", "right")),
        "formula": lambda: torch.tensor(_heads(n_heads, "right", "formula")),
        "from_zero_for_all": lambda: torch.tensor(_heads(n_heads, "from_zero", "formula")),
        "no_heads_for_all": lambda: torch.tensor(_heads(n_heads, "no_heads", "formula")),
        "no_eight_for_all": lambda: torch.tensor(_heads(n_heads, "no_eight", "formula")),
        "sorted": lambda: torch.tensor(sorted(_heads(n_heads, "right", "right"), reverse=True)),
        "reversed": lambda: torch.tensor(_heads(n_heads, "right", "right")[::-1]),
        "first": lambda: torch.tensor(_heads(n_heads, "right", "right")[:1] * n_heads),
        "last": lambda: torch.tensor(_heads(n_heads, "right", "right")[-1:] * n_heads),
        "mean": lambda: torch.tensor(_heads(n_heads, "right", "right")).mean().expand(n_heads),
        "sum": lambda: torch.tensor(_heads(n_heads, "right", "right")).sum().expand(n_heads),
        "ones": lambda: torch.ones(n_heads),
        "ones_whole": lambda: torch.ones(n_heads, dtype=torch.int64),
        "numbers": lambda: torch.arange(1.0, n_heads + 1),
        "numbers_whole": lambda: torch.arange(1, n_heads + 1),
        "divides": lambda: 1 / torch.tensor(_heads(n_heads, "right", "right")),
    }[slopes]()
    s = s if sign == "minus" else -s
    bias = -s[:, None, None] * away
    return {
        "right": lambda: bias,
        "last": lambda: bias.permute(1, 2, 0),
        "middle": lambda: bias.permute(1, 0, 2),
        "transposed": lambda: bias.mT,
        "first_head": lambda: bias[0],
        "summed": lambda: bias.sum(0),
        "without_heads": lambda: bias[:1],
        "last_row": lambda: bias[:, -1:],
        "first_row": lambda: bias[:, :1],
        "softmax": lambda: bias.softmax(-1),
        "exponential": lambda: bias.exp(),
        "integers": lambda: bias.long(),
        "lower": lambda: bias.tril(n_keys - n_queries),
        "lower_from_zero": lambda: bias.tril(),
    }[axes]()


LAST = (
    "The queries are the last of the key positions: with 1 query and 5 keys the query stands at position 4, and the"
    " last key is the nearest."
)


def _clash(first: str, axes: int = 0) -> Callable[[int, int, int], Tensor]:
    """The slopes meet the keys, or with one axis of size 1 the queries, where they need two."""

    def wrong(n_heads: int, n_queries: int, n_keys: int) -> Tensor:
        i, j = _places(n_queries, n_keys, "right")
        slopes, away = relative.alibi_slopes(n_heads).view(-1, *(1,) * axes), (i - j).abs()
        return -slopes * away if first == "slopes" else -away * slopes

    return wrong


ALONG_KEYS = (
    "The slopes (heads,) are multiplied with the distances (query, key) directly, so that heads and keys are lined up:"
    " give the slopes two axes of size 1, (heads, 1, 1)."
)

BIAS_MISTAKES = (
    Mistake("slopes_along_keys", ALONG_KEYS, _clash("slopes")),
    Mistake("slopes_along_keys", ALONG_KEYS, _clash("distances")),
    Mistake(
        "slopes_along_queries",
        "The slopes have one axis of size 1, (heads, 1), and meet the distances (query, key) so that heads and queries"
        " are lined up: they need two, (heads, 1, 1).",
        _clash("slopes", axes=1),
    ),
    Mistake(
        "slopes_along_queries",
        "The slopes have one axis of size 1, (heads, 1), and meet the distances (query, key) so that heads and queries"
        " are lined up: they need two, (heads, 1, 1).",
        _clash("distances", axes=1),
    ),
    *_one(
        "queries",
        "queries_from_zero",
        "Your queries stand at positions 0, 1, ...: where there are more keys than queries, the oldest key counts as"
        f" the nearest. {LAST}",
        "from_zero",
    ),
    *_one("queries", "queries_shifted", f"Your queries stand one position off. {LAST}", "late", "early"),
    *_one(
        "queries",
        "queries_shifted",
        f"Your queries stand in the wrong place: before position 0, or after the last key. {LAST}",
        "negative",
        "at_the_end",
    ),
    *_one(
        "queries",
        "one_query_for_all",
        f"Every query gets the same row, as if all stood at the last position. {LAST}",
        "all_last",
    ),
    *_one(
        "queries",
        "square",
        "Your result is square: it should have a row for each query and a column for each key, (heads, queries, keys).",
        "as_many_as_keys",
        "keys_cut",
    ),
    *_one(
        "distance",
        "signed_distance",
        "Keys after the query get a bonus instead of a fine: the sign of the distance is kept. Under a causal mask that"
        " does not show, in an encoder it does: take the absolute value.",
        "signed",
    ),
    *_one(
        "distance",
        "signed_distance",
        "Keys before the query get a bonus instead of a fine: the sign of the distance is kept, and it is key minus"
        " query with a minus before it. Take the absolute value.",
        "signed_other",
    ),
    *_one(
        "distance",
        "future_not_fined",
        "Keys after the query have bias 0. Under a causal mask that does not show; here the future is fined as the past"
        " is: take the absolute value.",
        "past_only",
    ),
    *_one(
        "axes",
        "future_not_fined",
        "Everything above the diagonal is cut to 0 (tril). Here the future is fined as the past is.",
        "lower",
        "lower_from_zero",
    ),
    *_one(
        "distance",
        "past_not_fined",
        "Keys before the query have bias 0: the difference is the wrong way round before it is cut at 0. Take the"
        " absolute value: both sides are fined.",
        "future_only",
    ),
    *_one(
        "distance",
        "future_forbidden",
        "Keys after the query have -inf: to forbid them is the task of a mask. The bias is -slope * distance for all"
        " keys.",
        "future_forbidden",
    ),
    *_one(
        "distance",
        "not_linear",
        "Your fine is no straight line in the distance: slope times distance, without a square, root or logarithm.",
        "squared",
        "root",
        "logarithm",
    ),
    *_one(
        "distance",
        "not_linear",
        "All keys but the query itself have the same fine: it grows with the distance, slope * |i - j|.",
        "one_step",
    ),
    *_one(
        "distance",
        "one_step_too_far",
        "Every distance is one too large: a query is at distance 0 from itself, and has no fine there.",
        "one_more",
    ),
    *_one(
        "distance",
        "key_alone",
        "Every query gets the same row: your bias depends on the key alone. The authors' code has such a form, which"
        " under a causal mask gives the same weights, but here entry (i, j) is -slope * |i - j|.",
        "key",
        "minus_key",
    ),
    *each(
        "key_alone",
        "You return one row for all queries: your bias depends on the key alone. The authors' code has such a form,"
        " which under a causal mask gives the same weights, but here entry (i, j) is -slope * |i - j|.",
        {"distance": "key", "axes": "first_row"},
        {"distance": "minus_key", "axes": "first_row"},
    ),
    *_one("distance", "query_alone", "All keys of a row have the same bias: it depends on the query alone.", "query"),
    *_one(
        "distance",
        "divided_by_length",
        "The distance is divided by the number of keys: it counts whole steps, so that the bias of two tokens does not"
        " change as the text grows.",
        "divided",
    ),
    *_one(
        "distance",
        "nearness",
        "The nearest key has the largest fine: you count nearness, the number of keys minus the distance.",
        "nearness",
    ),
    *_one(
        "sign",
        "no_minus",
        "The minus is missing: distant keys get a bonus instead of a fine. The bias is at most 0.",
        "plus",
    ),
    *_one(
        "slopes",
        "same_slope",
        "All heads have the same bias: each head has its own slope.",
        "first",
        "last",
        "mean",
        "sum",
    ),
    *_one("slopes", "no_slopes", "The slopes are missing: your bias is the bare distance.", "ones", "ones_whole"),
    *_one(
        "slopes",
        "wrong_slopes",
        "The slopes are not those of alibi_slopes: 2^(-8i/n) for head i of n, counted from 1.",
        "from_zero",
        "no_heads",
        "no_eight",
        "from_zero_for_all",
        "no_heads_for_all",
        "no_eight_for_all",
        "numbers",
        "numbers_whole",
    ),
    *_one("slopes", "divided_by_slope", "You divide the distance by the slope: multiply.", "divides"),
    *_one(
        "slopes",
        "heads_reversed",
        "The heads are in reverse order: the first should have the largest slope.",
        "reversed",
    ),
    *_one(
        "slopes",
        "slopes_of_other_numbers",
        "Where the number of heads is no power of two, the slopes are not those of alibi_slopes.",
        "formula",
        "sorted",
        edge=True,
    ),
    *_one(
        "axes",
        "heads_last",
        "The head axis is the last one. Scores are (batch, heads, query, key), so the bias is (heads, query, key).",
        "last",
    ),
    *_one(
        "axes",
        "heads_last",
        "The head axis stands between those of queries and keys. Scores are (batch, heads, query, key), so the bias is"
        " (heads, query, key).",
        "middle",
    ),
    *_one(
        "axes",
        "transposed",
        "The last two axes are exchanged: rows are queries, columns are keys, (heads, query, key).",
        "transposed",
    ),
    *_one(
        "axes",
        "heads_missing",
        "The result has no bias for each head: (heads, query, key), one square of numbers for each slope.",
        "first_head",
        "summed",
        "without_heads",
    ),
    *_one(
        "axes",
        "whole_numbers",
        "Your bias is made of whole numbers, which cuts off the decimals: -0.25 becomes 0. The slopes are floats, and"
        " the product is one too.",
        "integers",
    ),
    *_one("axes", "one_row", "Only the row of the last query is there: one row for each query.", "last_row"),
    *_one("axes", "one_row", "Only the row of the first query is there: one row for each query.", "first_row"),
    *_one(
        "axes",
        "softmax_applied",
        "You take the softmax or the exponential of the bias. It is added to the scores before the softmax.",
        "softmax",
        "exponential",
    ),
)


def _factors_only(seen: Seen) -> bool:
    """Every head is the right one times a number of its own, which is not 0."""
    found = results(seen)
    if found is None or not all(y.isfinite().all() for *_, y in found):
        return False
    for _, r, y in found:
        factor = (r * y).sum((1, 2), keepdim=True) / (r * r).sum((1, 2), keepdim=True)
        if (factor <= 0).any() or not close(r * factor, y).all():
            return False
    return True


def _past_right(seen: Seen) -> bool:
    found = results(seen)
    k = [r.shape[2] - r.shape[1] for _, r, _ in found or []]
    return found is not None and all(
        bool(close(r.tril(n), y.tril(n)).all()) for (_, r, y), n in zip(found, k, strict=True)
    )


def _list_indexed(seen: Seen) -> bool:
    return all("list indices must be integers or slices, not tuple" in said(g.error) for *_, g in seen)


ALIBI_BIAS = Exercise(
    name="relative.alibi_bias",
    reference=lambda n_heads, n_queries, n_keys: relative.alibi_bias(n_heads, n_queries, n_keys),
    results=(Result("result", ("head", "query", "key")),),
    probes=tuple(
        Probe(
            f"{h} head{'s' * (h > 1)}, {q} quer{'ies' if q > 1 else 'y'}, {k} keys",
            lambda h=h, q=q, k=k: (h, q, k),
            edge=h == 6,
        )
        for h, q, k in ((2, 3, 3), (4, 6, 6), (1, 2, 2), (4, 1, 5), (2, 2, 4), (6, 2, 3))
    ),
    mistakes=BIAS_MISTAKES,
    compound=bias_wrongly,
    symptoms=(
        Symptom(
            "wrong_with_cache",
            f"With as many queries as keys all is right; with more keys it is not. {LAST}",
            lambda seen: right_only_where(seen, lambda probe: probe.make()[1] == probe.make()[2]),
        ),
        Symptom(
            "wrong_slopes",
            "The distances and the minus are right, but the slopes are not those of alibi_slopes: each head is right"
            " but for a factor.",
            _factors_only,
        ),
        Symptom(
            "future_wrong",
            "For the query itself and the keys before it all is right; for the keys after it it is not. They are fined"
            " in the same way.",
            _past_right,
        ),
        Symptom(
            "slopes_in_a_list",
            "Your slopes are a list, and a list has no axes to add: torch.tensor(slopes) can be indexed with None.",
            _list_indexed,
        ),
        MORE_RESULTS,
        ONLY_SHAPE,
        NUMPY,
        LIST_RESULT,
    ),
    at_once=3,
)
