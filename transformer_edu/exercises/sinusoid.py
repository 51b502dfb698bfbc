"""The exercise sinusoidal_positions of lesson 06.

Its gallery is one wrong implementation with switches: which angle an entry has (position, unit, base, exponent), which
wave is taken of it, where it stands, what becomes of an odd width, which rows are filled, and what is returned.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import torch
from torch import Tensor

from .. import positions
from .exercise import Exercise, Mistake, Probe, Result, Symptom, each, switch
from .outcome import said
from .symptoms import KIND_SYMPTOMS, MORE_RESULTS, ONLY_SHAPE, Seen, is_right


# ---------------------------------------------------------------- the wrong implementation
def _places(n: int, d: int, position: str) -> Tensor:
    """(n, 1), what a reader may take for the positions."""
    p = torch.arange(n, dtype=torch.float64)[:, None]
    return {
        "right": lambda: p,
        "from_one": lambda: p + 1,
        "from_minus_one": lambda: p - 1,
        "over_length": lambda: p / n,
        "over_last": lambda: p / (n - 1) if n > 1 else p / torch.zeros(()),
        "over_last_kept": lambda: p / max(n - 1, 1),
        "reversed": lambda: p.flip(0),
        "over_width": lambda: p / d,
        "over_root": lambda: p / math.sqrt(d),
        "over_half_width": lambda: p / (d / 2),
        "length": lambda: torch.full_like(p, n),
        "zero": lambda: torch.zeros_like(p),
        "doubled": lambda: 2 * p,
        "halved": lambda: p / 2,
        "centred": lambda: p - n // 2,
    }[position]()


BASES = {
    "10000": 10000.0,
    "1000": 1000.0,
    "100000": 100000.0,
    "1000000": 1e6,
    "500000": 5e5,
    "10": 10.0,
    "e": math.e,
    "log10": math.e ** math.log10(10000),
    "log2": math.e ** math.log2(10000),
    "inverse": 1e-4,
    "two": 2.0,
}


def _base(n: int, d: int, base: str) -> float:
    return {"width": float(d), "length": float(n), "twice_width": 2.0 * d}.get(base) or BASES[base]


def _exponents(pair: Tensor, wave: Tensor, n: int, d: int, exponent: str) -> Tensor:
    """(columns,), the power of the base in each column; `wave` is 0 for a sine and 1 for a cosine."""
    column, pairs = 2 * pair + wave, math.ceil(d / 2)
    zero = torch.zeros_like(pair)

    def over(divisor: float) -> Tensor:
        return 2 * pair / torch.tensor(divisor, dtype=torch.float64)

    def refuse_zero(divisor: float) -> Tensor:
        if divisor == 0:
            raise ZeroDivisionError("division by zero")
        return over(divisor)

    return {
        "right": lambda: 2 * pair / d,
        "doubled": lambda: 4 * pair / d,
        "over_pairs": lambda: 2 * pair / max(d // 2, 1),
        "own_column": lambda: column / d,
        "every_column": lambda: 2 * column / d,
        "halved": lambda: pair / d,
        "next_pair": lambda: 2 * (pair + wave) / d,
        "pairs_from_one": lambda: 2 * (pair + 1) / d,
        "odd_column": lambda: (2 * pair + 1) / d,
        "from_one_halved": lambda: (pair + 1) / d,
        "cosine_doubled": lambda: (2 + 2 * wave) * pair / d,
        "sine_doubled": lambda: (4 - 2 * wave) * pair / d,
        "zero": lambda: zero,
        "over_pairs_minus_one": lambda: over(max(d - 2, 1)),
        "to_one": lambda: pair / max(pairs - 1, 1),
        "to_one_of_whole_pairs": lambda: pair / max(d // 2 - 1, 1),
        "over_pairs_minus_one_nan": lambda: over(d - 2),
        "over_pairs_minus_one_error": lambda: refuse_zero(d - 2),
        "over_width_minus_one": lambda: 2 * pair / max(d - 1, 1),
        "column_over_width_minus_one": lambda: column / max(d - 1, 1),
        "over_width_plus_one": lambda: 2 * pair / (d + 1),
        "not_divided": lambda: 2 * pair,
        "pair_itself": lambda: pair,
        "forgotten": lambda: zero + 2 / d,
        "forgotten_one": lambda: zero + 1 / d,
        "whole_width": lambda: zero + 1,
        "remainder": lambda: 2 * wave / d,
        "over_length": lambda: 2 * pair / n,
        "reversed": lambda: 2 * (pairs - 1 - pair) / d,
        "squared": lambda: (2 * pair / d) ** 2,
        "over_root": lambda: 2 * pair / math.sqrt(d),
        "plain_half": lambda: pair / 2,
        "minus_wave": lambda: (2 * pair - wave) / d,
    }[exponent]()


def _in_unit(angle: Tensor, unit: str) -> Tensor:
    return {
        "radians": lambda: angle,
        "deg2rad": lambda: angle * math.pi / 180,
        "rad2deg": lambda: torch.rad2deg(angle),
        "rad2deg_single": lambda: torch.rad2deg(angle.float()).double(),
        "rad2deg_by_hand": lambda: (angle.float() * 180 / math.pi).double(),
        "rad2deg_factor": lambda: (angle.float() * (180 / math.pi)).double(),
        "turns": lambda: angle * 2 * math.pi,
        "turns_single": lambda: (angle.float() * (2 * math.pi)).double(),
        "turns_by_hand": lambda: (angle.float() * 2 * math.pi).double(),
        "turns_first": lambda: (2 * math.pi * angle.float()).double(),
        "half_turns": lambda: angle * math.pi,
        "half_turns_single": lambda: (angle.float() * math.pi).double(),
        "over_turn": lambda: angle / (2 * math.pi),
        "floored": lambda: angle.floor(),
    }[unit]()


def _waves(angle: Tensor, wave: Tensor, waves: str) -> Tensor:
    """sin or cos of each entry, `wave` (columns,) or (n, columns) being 0 for a sine and 1 for a cosine."""
    sine, cosine = angle.sin(), angle.cos()
    first, second = {
        "right": lambda: (sine, cosine),
        "cosine_first": lambda: (cosine, sine),
        "sines": lambda: (sine, sine),
        "cosines": lambda: (cosine, cosine),
        "minus_sine": lambda: (-sine, cosine),
        "minus_cosine": lambda: (sine, -cosine),
        "minus_sine_again": lambda: (sine, -sine),
        "sine_of_both": lambda: (sine, sine.cos()),
        "no_cosines": lambda: (sine, torch.zeros_like(sine)),
        "no_sines": lambda: (torch.zeros_like(sine), cosine),
        "cosines_one": lambda: (sine, torch.ones_like(sine)),
        "sines_one": lambda: (torch.ones_like(sine), cosine),
        "angles": lambda: (angle, angle),
        "sine_only_angle": lambda: (sine, angle),
        "angle_only_sine": lambda: (angle, cosine),
        "sum": lambda: (sine + cosine, sine + cosine),
        "nothing": lambda: (torch.zeros_like(sine), torch.zeros_like(sine)),
        "ones": lambda: (torch.ones_like(sine), torch.ones_like(sine)),
    }[waves]()
    return torch.where(wave == 0, first, second)


def _ordered(d: int, order: str) -> tuple[Tensor, Tensor]:
    """(pair, wave) of each of d columns, float64 and int64."""
    column, half = torch.arange(d), (d + 1) // 2
    pair, wave = {
        "right": lambda: (column // 2, column % 2),
        "halves": lambda: (column % half, (column >= half).long()),
        "halves_cosine_first": lambda: (column % half, (column < half).long()),
        "reversed": lambda: (column.flip(0) // 2, column.flip(0) % 2),
        "pairs_reversed": lambda: ((column // 2).flip(0), column % 2),
    }[order]()
    return pair.double(), wave


def _rows(table: Tensor, rows: str) -> Tensor:
    index = torch.arange(len(table))[:, None]
    return {
        "right": lambda: table,
        "first_zero": lambda: table * (index > 0),
        "last_zero": lambda: table * (index < len(table) - 1),
        "only_first": lambda: table * (index == 0),
        "only_last": lambda: table * (index == len(table) - 1),
        "missing": lambda: table[:-1],
        "without_first": lambda: table[1:],
        "at_most_1000": lambda: table[:1000],
        "at_most_512": lambda: table[:512],
        "at_most_100": lambda: table[:100],
        "at_most_2048": lambda: table[:2048],
        "at_most_1024": lambda: table[:1024],
    }[rows]()


def _scaled(table: Tensor, d: int, scale: str) -> Tensor:
    return {
        "right": lambda: table,
        "over_root": lambda: table / math.sqrt(d),
        "times_root": lambda: table * math.sqrt(d),
        "length_one": lambda: table / table.norm(dim=-1, keepdim=True).clamp_min(1e-12),
        "over_width": lambda: table / d,
        "positive": lambda: (table + 1) / 2,
        "absolute": lambda: table.abs(),
        "squared": lambda: table**2,
        "softmax": lambda: table.softmax(-1),
        "summed_up": lambda: table.cumsum(0),
        "two_decimals": lambda: table.round(decimals=2),
        "three_decimals": lambda: table.round(decimals=3),
    }[scale]()


def _formed(table: Tensor, n: int, d: int, form: str) -> object:
    half = d // 2
    if form == "overwritten":
        result = torch.zeros(n, d)
        for i in range(half):
            result[:, i], result[:, i + 1] = table[:, 2 * i], table[:, 2 * i + 1]
        return result
    return {
        "right": lambda: table,
        "batch_axis": lambda: table[None],
        "batch_axis_behind": lambda: table[:, None],
        "transposed": lambda: table.T,
        "integers": lambda: table.long(),
        "stacked": lambda: torch.stack([table[:, 0::2], table[:, 1::2]]).reshape(n, d),
        "two_tables": lambda: torch.cat([table[:, 0::2], table[:, 1::2]], 0),
        "pair": lambda: (table[:, 0::2], table[:, 1::2]),
        "half_sines": lambda: table[:, 0::2],
        "half_cosines": lambda: table[:, 1::2],
        "half_sum": lambda: table[:, 0::2] + table[:, 1::2],
        "first_half": lambda: table[:, :half],
        "last_row": lambda: table[-1],
        "first_row": lambda: table[0],
    }[form]()


def _odd_width(table: Tensor, n: int, d: int, odd: str) -> Tensor:
    """What becomes of the table of an odd width in code that is made for even ones; the errors are torch's own."""
    sine, cosine = table[:, 0::2], table[:, 1::2]
    if odd in ("crash_cosine", "crash_sine", "crash_index"):
        empty = torch.zeros(n, d)
        if odd == "crash_cosine":
            empty[:, 1::2] = torch.zeros(n, sine.shape[1])
        if odd == "crash_sine":
            empty[:, 0::2] = torch.zeros(n, cosine.shape[1])
        return empty[0, d]
    return {
        "crash_reshape": lambda: torch.cat([sine, sine], -1).reshape(n, d),
        "zero_last": lambda: torch.cat([table[:, :-1], torch.zeros(n, 1)], -1),
        "narrow": lambda: table[:, :-1],
        "wide": lambda: torch.cat([table, sine[:, -1:].asin().cos()], -1),
        "wide_zero": lambda: torch.cat([table, torch.zeros(n, 1)], -1),
        "nothing": lambda: None,
    }[odd]()


def encode(
    n: int,
    d_model: int,
    *,
    position: str = "right",
    base: str = "10000",
    exponent: str = "right",
    unit: str = "radians",
    waves: str = "right",
    order: str = "right",
    odd: str = "right",
    rows: str = "right",
    scale: str = "right",
    form: str = "right",
) -> object:
    """The sinusoid with any of the ways to go wrong; without a switch it is right."""
    if form == "exchanged":
        n, d_model, form = d_model, n, "right"
    if form == "row_n":
        return encode(n + 1, d_model)[n]
    if rows == "one_more":
        n, rows = n + 1, "right"
    wide = d_model + d_model % 2 * {"rounded_up": 1, "rounded_down": -1, "wide_rounded": 1}.get(odd, 0)
    pair, wave = _ordered(d_model + d_model % 2 * (odd in ("wide", "wide_rounded")), order)
    if order == "halves" and d_model % 2 and odd == "narrow":
        pair, wave = _ordered(d_model - 1, order)
    power = _exponents(pair, wave, n, wide, exponent)
    angle = _places(n, d_model, position) / _base(n, wide, base) ** power  # (n, d_model)
    by_row = waves == "by_row"
    table = _waves(
        _in_unit(angle, unit), torch.arange(n)[:, None] % 2 if by_row else wave, "right" if by_row else waves
    )
    if d_model % 2 and odd == "cosine_last":
        table[:, -1] = _in_unit(angle, unit)[:, -1].cos()
    elif d_model % 2 and odd not in ("right", "rounded_up", "rounded_down", "wide", "wide_rounded"):
        table = _odd_width(table.float(), n, d_model, odd)
    if not isinstance(table, Tensor):
        return table
    table = _scaled(_rows(table, rows), d_model, scale)
    return table.long() if form == "integers_of_double" else _formed(table.float(), n, d_model, form)


# ---------------------------------------------------------------- symptoms
def _core(seen: Seen) -> list[tuple]:
    return [(probe.make(), e, g) for probe, e, g in seen if not probe.edge]


def _odd_only(seen: Seen) -> bool:
    odd = [s for s in seen if s[0].may_raise]
    return all(is_right(*s) for s in seen if not s[0].may_raise) and any(g.error is not None for _, _, g in odd)


def _long_only(seen: Seen) -> bool:
    wrong = [p for p, e, g in seen if not is_right(p, e, g)]
    return [p.says for p in wrong] == [LONG.says]


def _multiplied(seen: Seen) -> bool:
    """The inverse of the right angle, whose waves are so fast that single precision loses their last digits."""
    for (n, d), _, g in _core(seen):
        if not isinstance(g.value, Tensor) or g.value.shape != (n, d) or g.value.dtype == torch.bool:
            return False
        if not torch.allclose(g.value.double(), encode(n, d, base="inverse").double(), atol=5e-3):
            return False
    return True


def _columns(seen: Seen, parity: int) -> tuple[bool, bool]:
    """Whether the sine (parity 0) or cosine columns are all right, and whether the others are all wrong somewhere."""
    right, other = True, False
    for (n, d), e, g in _core(seen):
        if not isinstance(g.value, Tensor) or g.value.shape != (n, d) or g.value.dtype == torch.bool:
            return False, False
        differs = ~torch.isclose(g.value.double(), e.value.double(), rtol=1e-4, atol=1e-4)
        right = right and not differs[:, parity::2].any()
        other = other or bool(differs[:, 1 - parity :: 2].any())
    return right, other


def _first_pair_only(seen: Seen) -> bool:
    first = rest = True
    for (n, d), e, g in _core(seen):
        if not isinstance(g.value, Tensor) or g.value.shape != (n, d) or g.value.dtype == torch.bool:
            return False
        differs = ~torch.isclose(g.value.double(), e.value.double(), rtol=1e-4, atol=1e-4)
        first = first and not differs[:, :2].any()
        rest = rest and (n == 1 or d == 2 or bool(differs[:, 2:4].any()))
    return first and rest


def _same_as(seen: Seen, angles: Callable[[Tensor, Tensor], Tensor], tolerance: float) -> bool:
    """Whether every ordinary table is made of sines and cosines of angles(position, 2i / d_model)."""
    for (n, d), _, g in _core(seen):
        if not isinstance(g.value, Tensor) or g.value.shape != (n, d) or not g.value.is_floating_point():
            return False
        pair, wave = _ordered(d, "right")
        angle = angles(torch.arange(n, dtype=torch.float64)[:, None], 2 * pair / d)
        if not torch.allclose(g.value.double(), _waves(angle, wave, "right"), rtol=0.0, atol=tolerance):
            return False
    return True


def _slowest(seen: Seen) -> tuple[float, float] | None:
    """On the first probe, the angles that the last pair of columns has in the first two rows."""
    value = seen[0][2].value
    if not isinstance(value, Tensor) or value.shape != (3, 4) or not value.is_floating_point():
        return None
    turned = torch.atan2(value[:2, 2].double(), value[:2, 3].double()).tolist()
    return (turned[0], turned[1]) if math.isfinite(sum(turned)) else None


def _angles_moved(seen: Seen, scaled: bool) -> bool:
    """The right angles times one number, or plus one number."""
    angles = _slowest(seen)
    if angles is None:
        return False
    shift, factor = angles[0], (angles[1] - angles[0]) * 100
    if (abs(factor - 1) > 1e-3) != scaled or (abs(shift) > 1e-3) == scaled:
        return False
    return _same_as(seen, lambda p, exponent: factor * p / 10000**exponent + shift, 1e-3 * max(1.0, abs(factor)))


def _from_elsewhere(seen: Seen) -> bool:
    """The right rows of positions that begin with another number than 0."""
    value = seen[0][2].value
    if not isinstance(value, Tensor) or value.shape != (3, 4) or not value.is_floating_point():
        return False
    shift = float(torch.atan2(value[0, 2].double(), value[0, 3].double())) * 100  # told by the slow pair of columns
    return abs(shift) > 0.05 and _same_as(seen, lambda p, exponent: (p + shift) / 10000**exponent, 5e-3)


def _imprecise(seen: Seen) -> bool:
    """Nearly right everywhere, and not quite."""
    return all(
        isinstance(g.value, Tensor)
        and g.value.shape == e.value.shape
        and g.value.dtype in (torch.float32, torch.float64)
        and torch.allclose(g.value.double(), e.value.double(), rtol=0.0, atol=4e-3)
        for _, e, g in _core(seen)
    ) and not all(is_right(p, e, g) for p, e, g in seen if not p.edge)


def _odd_wrong(seen: Seen) -> bool:
    return [p.may_raise for p, e, g in seen if not is_right(p, e, g)] == [ODD_ERRORS]


def _other_base(seen: Seen) -> bool:
    angles = _slowest(seen)
    if angles is None or not 1e-5 < angles[1] < 1.5:
        return False
    base = angles[1] ** -2
    return abs(base - 10000) > 20 and _same_as(seen, lambda p, exponent: p / base**exponent, 2e-3)


def _depends_on_length(seen: Seen) -> bool:
    """Two probes of one width and two lengths give position 1 two rows."""
    rows: dict[int, Tensor] = {}
    for (n, d), _, g in _core(seen):
        if not isinstance(g.value, Tensor) or g.value.shape != (n, d) or not g.value.is_floating_point():
            return False
        if n > 1 and g.value.isfinite().all():
            if d in rows and not torch.allclose(rows[d], g.value[1].double(), atol=1e-3):
                return True
            rows.setdefault(d, g.value[1].double())
    return False


LONG = Probe("length 3000, d_model 2", lambda: (3000, 2), edge=True)
ODD_ERRORS = (ValueError, AssertionError)
SHARE = "Both columns of a pair, sine 2i and cosine 2i + 1, share one angle, p / 10000^(2i / d_model)"
ODD = (
    "An odd d_model has one cosine less than sines: its last column is a sine. Cut the cosines to d_model // 2 "
    "columns, or refuse such a width with a clear ValueError."
)


def _two_lists(seen: Seen) -> bool:
    """Stops because n positions and d_model / 2 frequencies are multiplied without an axis of size 1."""
    found = []
    for probe, _, given in seen:
        (n, d), sizes = probe.make(), re.findall(r"size of tensor [ab] \((\d+)\)", said(given.error))
        pairs = math.ceil(d / 2)
        if n > 1 and pairs > 1 and n != pairs and not probe.may_raise:
            found.append(sorted(map(int, sizes)) == sorted((n, pairs)))
    return all(found)


SYMPTOMS = (
    Symptom(
        "positions_without_axis",
        "Positions and frequencies are two lists of numbers here, of the length and of d_model / 2, and cannot be "
        "multiplied entry by entry. Give the positions an axis of size 1, (length, 1), as [:, None] does, so that each "
        "meets each.",
        _two_lists,
    ),
    Symptom(
        "odd_width_crash",
        f"Right for even widths, but an odd d_model stops it with another error than a ValueError. {ODD}",
        _odd_only,
    ),
    Symptom(
        "odd_width",
        f"Right for even widths, wrong for an odd one. {ODD}",
        _odd_wrong,
    ),
    Symptom(
        "long_only",
        "Right for short tables, wrong for 3000 positions: does it keep a table of a fixed length, or count "
        "positions in half precision, which has no odd numbers above 2048? Every length that is asked for must come "
        "out, and exactly.",
        _long_only,
    ),
    Symptom(
        "multiplied",
        "Your waves become faster from column to column, by the factor by which they should become slower: the "
        "position is multiplied by 10000^(2i / d_model), and must be divided by it (or the exponent takes a minus "
        "sign).",
        _multiplied,
    ),
    *KIND_SYMPTOMS,
    MORE_RESULTS,
    ONLY_SHAPE,
    Symptom(
        "imprecise",
        "Your numbers are nearly right, and wrong from the third or fourth decimal on: something is rounded, or "
        "computed in half precision, or a constant in the formula is slightly off.",
        _imprecise,
    ),
    Symptom(
        "positions_shifted",
        "Your rows are right, but for positions that begin with another number than 0.",
        _from_elsewhere,
    ),
    Symptom(
        "base_wrong",
        "Columns 0 and 1 are right, and the others slow down steadily, but not at the right rate: your base is not "
        "10000.",
        _other_base,
    ),
    Symptom(
        "position_scaled",
        "All of your angles are too large or too small by one and the same factor: the angle is p / 10000^(2i / "
        "d_model), with p = 0, 1, 2 ...",
        lambda seen: _angles_moved(seen, scaled=True),
    ),
    Symptom(
        "angles_shifted",
        "One and the same number is added to all of your angles: position 0 has the angle 0 in every column, so its "
        "row is 0, 1, 0, 1 ...",
        lambda seen: _angles_moved(seen, scaled=False),
    ),
    Symptom(
        "depends_on_length",
        "The row of position 1 changes with the length of the table. A position's row must depend on the position "
        "and on d_model alone: otherwise the same place means something else in every sequence.",
        _depends_on_length,
    ),
    Symptom(
        "cosine_columns",
        f"Your sine columns (0, 2, 4 ...) are right, your cosine columns (1, 3, 5 ...) are not. {SHARE}.",
        lambda seen: _columns(seen, 0) == (True, True),
    ),
    Symptom(
        "sine_columns",
        f"Your cosine columns (1, 3, 5 ...) are right, your sine columns (0, 2, 4 ...) are not. {SHARE}.",
        lambda seen: _columns(seen, 1) == (True, True),
    ),
    Symptom(
        "exponent_or_base",
        "Columns 0 and 1 are right, and the next two are not: the waves begin right, but do not slow down as they "
        "should. Look at the exponent, 2i / d_model with i the number of the pair (0, 0, 1, 1, 2, 2 ... along the "
        "columns), and at the base, 10000.",
        _first_pair_only,
    ),
)

# ---------------------------------------------------------------- the gallery
NEARLY_STILL = (
    "From the second pair of columns on your waves hardly move: the angle there is p / 10000 or "
    "less. It should be p / 10000^(2i / d_model): the division by d_model belongs inside the power, within "
    "parentheses, and where the power is written with exp, it is exp(-2i / d_model * log(10000))."
)

MISTAKES = (
    Mistake(
        "doubled_exponent",
        "The first pair of columns is right, but the exponent grows twice as fast as it should, so that the others "
        "vary far too slowly. It is 2i / d_model with i the number of the PAIR; a counter that already steps by 2 is "
        "the 2i.",
        switches={"exponent": "doubled"},
        beside="The exponent grows twice as fast as it should: it is 2i / d_model with i the number of the PAIR, and "
        "a counter that already steps by 2 is the 2i.",
    ),
    Mistake(
        "doubled_exponent",
        "The first pair of columns is right, but the exponent grows twice as fast as it should: 2i is divided by half "
        "of d_model, the number of pairs. It is 2i / d_model with i the number of the pair.",
        switches={"exponent": "over_pairs"},
        beside="2i is divided by half of d_model, the number of pairs: the exponent is 2i / d_model.",
        rare=True,
    ),
    Mistake(
        "cosine_own_column",
        "Your sine columns are right, but each cosine column c uses an exponent of its own, c / d_model, and so "
        f"varies more slowly than its sine. {SHARE}, so that a shift of the position turns the pair as a rotation "
        "does.",
        switches={"exponent": "own_column"},
        beside=f"Each cosine column c uses an exponent of its own, c / d_model, instead of its sine's. {SHARE}.",
    ),
    Mistake(
        "every_column_doubled",
        "The exponents run 0, 2/d, 4/d, 6/d ... over the columns: every column has an angle of its own. They must "
        "come in pairs, 0, 0, 2/d, 2/d ...: column c belongs to pair c // 2, so its exponent is 2 (c // 2) / d_model.",
        switches={"exponent": "every_column"},
    ),
    Mistake(
        "base_wrong",
        "Columns 0 and 1 are right, the others vary too fast: your base is 1000, and should be 10000.",
        switches={"base": "1000"},
        beside="Your base is 1000, and should be 10000.",
    ),
    Mistake(
        "halves",
        "All numbers are there, but the columns stand in another order: the sines in the first half, the cosines in "
        "the second. Some programs use that order, and a model learns with it as well. The paper's, which is asked "
        "for here, has sine and cosine in turn: sines in the even columns, cosines in the odd ones.",
        switches={"order": "halves"},
        beside="The sines stand in the first half of the columns and the cosines in the second, as in some programs. "
        "Here, as in the paper, they stand in turn: sines in the even columns, cosines in the odd ones.",
    ),
    *(
        Mistake(
            "odd_width_crash",
            f"Right for even widths, but an odd d_model stops it with another error than a ValueError. {ODD}",
            switches={"odd": odd},
            edge=True,
            beside=f"An odd d_model stops it with another error than a ValueError. {ODD}",
        )
        for odd in ("crash_cosine", "crash_sine", "crash_index", "crash_reshape")
    ),
    Mistake(
        "halved_exponent",
        "The first pair of columns is right, but the exponent grows half as fast as it should, so that the others "
        "vary too fast. It is 2i / d_model with i the number of the pair: is the factor 2 missing, or is the base "
        "100 instead of 10000?",
        switches={"exponent": "halved"},
        beside="The exponent grows half as fast as it should: it is 2i / d_model with i the number of the pair (or "
        "your base is 100, and should be 10000).",
    ),
    Mistake(
        "cosine_first",
        "Sine and cosine are exchanged: yours has cosines in the even columns (0, 2, ...). The even ones hold the "
        "sine, the odd ones the cosine, so position 0 is 0, 1, 0, 1 ...",
        switches={"waves": "cosine_first"},
    ),
    Mistake(
        "positions_from_one",
        "Your table begins with the row of position 1: positions count from 0, so the first row is 0, 1, 0, 1 ...",
        switches={"position": "from_one"},
        beside="Your positions count from 1: the first row should be that of position 0.",
    ),
    Mistake(
        "positions_from_minus_one",
        "Your table begins with position -1: positions count from 0, so the first row is 0, 1, 0, 1 ...",
        switches={"position": "from_minus_one"},
        rare=True,
    ),
    *each(
        "positions_scaled",
        "Your positions are divided by the length of the table, so that they run from 0 to about 1. The row of "
        "position 1 then depends on the length, but the table must not change when the sequence grows.",
        *switch("position", "over_length", "over_last", "over_last_kept"),
    ),
    *(
        Mistake(
            "base_wrong",
            f"Columns 0 and 1 are right, the others vary too {how}: your base is {said}, and should be 10000.",
            switches={"base": base},
            beside=f"Your base is {said}, and should be 10000.",
            rare=base != "100000",
        )
        for base, said, how in (
            ("100000", "100000", "slowly"),
            ("1000000", "1000000", "slowly"),
            ("500000", "500000", "slowly"),
            ("10", "10", "fast"),
            ("two", "2", "fast"),
            ("width", "d_model", "fast"),
            ("twice_width", "2 d_model", "fast"),
            ("length", "the length of the table", "fast on short tables"),
        )
    ),
    Mistake(
        "logarithm_forgotten",
        "Columns 0 and 1 are right, the others vary too fast: your base is e, the base of exp. 10000^x is exp(x log "
        "10000): the logarithm of 10000 is missing.",
        switches={"base": "e"},
        beside="Your base is e, the base of exp: 10000^x is exp(x log 10000), and the logarithm of 10000 is missing.",
    ),
    *(
        Mistake(
            "wrong_logarithm",
            f"Columns 0 and 1 are right, the others vary too {how}: {which} stands where exp needs the natural "
            "logarithm. 10000^x is exp(x log 10000).",
            switches={"base": base},
            beside=f"{which} stands where exp needs the natural logarithm: 10000^x is exp(x log 10000).",
            rare=True,
        )
        for base, which, how in (("log10", "log10", "fast"), ("log2", "log2", "slowly"))
    ),
    Mistake(
        "multiplied",
        "Your waves become faster from column to column, by the factor by which they should become slower: the "
        "position is multiplied by 10000^(2i / d_model), and must be divided by it (or the exponent takes a minus "
        "sign).",
        switches={"base": "inverse"},
    ),
    *each(
        "degrees",
        "You convert from degrees to radians: your waves are 57 times too slow. The angle p / 10000^(2i / d_model) "
        "is in radians already, which is what sin and cos take.",
        {"unit": "deg2rad"},
    ),
    *each(
        "degrees",
        "You convert the angle to degrees, but sin and cos take radians: your waves are 57 times too fast.",
        *switch("unit", "rad2deg", "rad2deg_single", "rad2deg_by_hand", "rad2deg_factor"),
    ),
    *each(
        "two_pi",
        "Your angles are 2 pi times too large, as if 10000^(2i / d_model) were the length of the wave. The paper's "
        "formula has no 2 pi: the angle itself is p / 10000^(2i / d_model).",
        *switch("unit", "turns", "turns_single", "turns_by_hand", "turns_first"),
    ),
    *each(
        "two_pi",
        "Your angles are pi times too large: the angle is p / 10000^(2i / d_model), without pi.",
        *switch("unit", "half_turns", "half_turns_single"),
    ),
    Mistake(
        "two_pi",
        "Your angles are 2 pi times too small: the angle is p / 10000^(2i / d_model), without pi.",
        switches={"unit": "over_turn"},
        rare=True,
    ),
    Mistake(
        "floored",
        "Your angles are rounded down to whole numbers, as // does: use /.",
        switches={"unit": "floored"},
        rare=True,
    ),
    *(
        Mistake(
            "shared_wave_missing",
            f"Your table holds {which} in all columns: {what}.",
            switches={"waves": waves},
            beside=f"All columns hold {which}: {what}.",
        )
        for waves, which, what in (
            ("sines", "sines", "the odd columns need the cosine of their pair's angle"),
            ("cosines", "cosines", "the even columns need the sine of their pair's angle"),
        )
    ),
    *(
        Mistake(
            "columns_not_filled",
            f"The {which} columns are never filled, they hold {what} everywhere: {then}.",
            switches={"waves": waves},
        )
        for waves, which, what, then in (
            ("no_cosines", "odd", "0", "they need the cosine of their pair's angle"),
            ("no_sines", "even", "0", "they need the sine of their pair's angle"),
            ("cosines_one", "odd", "1", "they need the cosine of their pair's angle"),
            ("sines_one", "even", "1", "they need the sine of their pair's angle"),
        )
    ),
    *(
        Mistake(
            "wrong_sign",
            f"The {which} have the wrong sign: {why}.",
            switches={"waves": waves},
        )
        for waves, which, why in (
            (
                "minus_sine",
                "sines",
                "a minus sign in front of the angle leaves the cosine alone, but turns the sine round",
            ),
            ("minus_cosine", "cosines", "cos(a) is sin(a + pi/2), and sin(a - pi/2) is its opposite"),
        )
    ),
    Mistake(
        "shared_wave_missing",
        "Your odd columns hold the opposite of their sine, which is what cos(a + pi / 2) gives: the cosine is sin(a "
        "+ pi / 2).",
        switches={"waves": "minus_sine_again"},
    ),
    Mistake(
        "columns_overwritten",
        "Pair i is written into columns i and i + 1, so that the next pair overwrites its cosine, and the right half "
        "of the table stays empty: its columns are 2i and 2i + 1.",
        switches={"form": "overwritten"},
    ),
    Mistake(
        "angles_themselves",
        "Your table holds the angles themselves: take the sine in the even columns and the cosine in the odd ones.",
        switches={"waves": "angles"},
        alone=True,
    ),
    Mistake(
        "one_wave_not_taken",
        "The odd columns still hold the angle itself: take its cosine there.",
        switches={"waves": "sine_only_angle"},
    ),
    Mistake(
        "one_wave_not_taken",
        "The even columns still hold the angle itself: take its sine there.",
        switches={"waves": "angle_only_sine"},
    ),
    Mistake(
        "cosine_of_the_sine",
        "Your odd columns hold the cosine of the sine: take the cosine of the angle, before anything is overwritten.",
        switches={"waves": "sine_of_both"},
    ),
    Mistake(
        "summed_waves",
        "Each entry is the sum of a sine and a cosine: they stand in columns of their own, sine in the even ones, "
        "cosine in the odd ones.",
        switches={"waves": "sum"},
        rare=True,
    ),
    *each(
        "nothing_filled",
        "Every entry of your table is the same number: nothing is written into it.",
        *switch("waves", "nothing", "ones"),
        alone=True,
    ),
    Mistake(
        "rows_alternate",
        "Sine and cosine alternate from row to row: your rows of even positions hold sines, those of odd positions "
        "cosines. They must alternate from column to column: [:, 0::2] and [:, 1::2] choose columns, [0::2] and "
        "[1::2] rows.",
        switches={"waves": "by_row"},
    ),
    Mistake(
        "halves_cosine_first",
        "All numbers are there, but the columns stand in another order: the cosines in the first half, the sines in "
        "the second. Here, as in the paper, they stand in turn: sines in the even columns, cosines in the odd ones.",
        switches={"order": "halves_cosine_first"},
        beside="The cosines stand in the first half of the columns and the sines in the second. They should stand in "
        "turn: sines in the even columns, cosines in the odd ones.",
    ),
    Mistake(
        "columns_reversed",
        "The columns stand in reverse order: the fastest wave belongs into column 0.",
        switches={"order": "reversed"},
        rare=True,
    ),
    Mistake(
        "pairs_reversed",
        "The pairs stand in reverse order: the fastest wave, sin p and cos p, belongs into columns 0 and 1.",
        switches={"order": "pairs_reversed"},
        rare=True,
    ),
    Mistake(
        "next_pair",
        "Your sine columns are right, but each cosine uses the exponent of the next pair, 2 (i + 1) / d_model, and "
        f"so varies more slowly than its sine. {SHARE}.",
        switches={"exponent": "next_pair"},
        beside=f"Each cosine uses the exponent of the next pair, 2 (i + 1) / d_model. {SHARE}.",
    ),
    Mistake(
        "cosine_own_column",
        f"Your sine columns are right, but a cosine column 2i + 1 uses the exponent (2i - 1) / d_model. {SHARE}.",
        switches={"exponent": "minus_wave"},
        rare=True,
        beside=f"A cosine column 2i + 1 uses the exponent (2i - 1) / d_model. {SHARE}.",
    ),
    Mistake(
        "cosine_doubled",
        f"Your sine columns are right, but in the cosine columns the exponent grows twice as fast. {SHARE}.",
        switches={"exponent": "cosine_doubled"},
        beside=f"In the cosine columns the exponent grows twice as fast as in the sine columns. {SHARE}.",
        rare=True,
    ),
    Mistake(
        "sine_doubled",
        f"Your cosine columns are right, but in the sine columns the exponent grows twice as fast. {SHARE}.",
        switches={"exponent": "sine_doubled"},
        beside=f"In the sine columns the exponent grows twice as fast as in the cosine columns. {SHARE}.",
        rare=True,
    ),
    Mistake(
        "pairs_from_one",
        "Your pairs count from 1, so that the first pair of columns is already slowed down and nothing varies as "
        "fast as sin p: the pairs are i = 0, 1, 2 ..., and the first exponent is 0.",
        switches={"exponent": "pairs_from_one"},
        beside="Your pairs count from 1: the pairs are i = 0, 1, 2 ..., and the first exponent is 0.",
    ),
    Mistake(
        "pairs_from_one",
        "Your exponents are 1/d, 1/d, 3/d, 3/d ...: they come from the odd columns. They should come from the even "
        "ones, 0, 0, 2/d, 2/d ..., so that the first pair is sin p and cos p.",
        switches={"exponent": "odd_column"},
        rare=True,
    ),
    Mistake(
        "pairs_from_one",
        "Your exponents are 1/d, 1/d, 2/d, 2/d ...: they should be 0, 0, 2/d, 2/d, 4/d ..., so that the first pair "
        "is sin p and cos p.",
        switches={"exponent": "from_one_halved"},
        rare=True,
    ),
    Mistake(
        "one_wave_for_all",
        "All pairs of columns are the same: every exponent is 0, as // gives it. With only one wave, positions a "
        "turn of 2 pi apart look nearly alike; the exponent is 2i / d_model, with /.",
        switches={"exponent": "zero"},
    ),
    *each(
        "one_wave_for_all",
        "All pairs of columns are the same: your exponent does not depend on the column. It is 2i / d_model, with i "
        "the number of the pair.",
        *switch("exponent", "forgotten", "forgotten_one", "whole_width"),
    ),
    *each(
        "last_wave_at_base",
        "Your exponents reach 1 in the last pair: i is divided by one less than the number of pairs. Some programs "
        "do that; the paper, and this exercise, divide 2i by d_model.",
        *switch(
            "exponent",
            *("over_pairs_minus_one", "over_pairs_minus_one_nan", "over_pairs_minus_one_error"),
            *("to_one", "to_one_of_whole_pairs"),
        ),
    ),
    *(
        Mistake(
            "exponent_divided_by_other",
            f"The exponent is divided by {what}, and should be divided by d_model: it is 2i / d_model.",
            switches={"exponent": exponent},
            rare=True,
        )
        for exponent, what in (
            ("over_width_minus_one", "d_model - 1"),
            ("over_width_plus_one", "d_model + 1"),
            ("over_length", "the length of the table"),
            ("over_root", "the root of d_model"),
        )
    ),
    Mistake(
        "own_exponent_for_each",
        "Every column has an exponent of its own, c / (d_model - 1), so that no two share an angle. The exponents "
        "come in pairs: 0, 0, 2/d, 2/d ...",
        switches={"exponent": "column_over_width_minus_one"},
        rare=True,
    ),
    *each("exponent_not_divided", NEARLY_STILL, *switch("exponent", "not_divided", "pair_itself")),
    Mistake(
        "exponent_not_divided",
        "The exponent grows by a half from pair to pair, whatever the width is: it is 2i / d_model, with i the "
        "number of the pair.",
        switches={"exponent": "plain_half"},
        rare=True,
    ),
    Mistake(
        "exponent_not_divided",
        "The waves hardly move from the second pair of columns on, and the first is d_model times too slow: the "
        "exponent is 2i, and what is divided by d_model is the angle. It should be 10000^(2i / d_model), with the "
        "division within parentheses.",
        switches={"exponent": "not_divided", "position": "over_width"},
    ),
    Mistake(
        "exponent_not_divided",
        "The waves hardly move from the second pair of columns on, and the first is d_model times too slow: the "
        "exponent is i, and what is divided by d_model is the angle. It should be 10000^(2i / d_model), with the "
        "division within parentheses.",
        switches={"exponent": "pair_itself", "position": "over_width"},
    ),
    Mistake(
        "stands_still",
        "Your table hardly changes from position to position: all sines are nearly 0 and all cosines nearly 1. The "
        "angle is p / 10000^(2i / d_model): are the exponent and the denominator each within parentheses? a ** 2 * i "
        "/ d is a^2 * i / d.",
        switches={"position": "zero"},
        alone=True,
    ),
    Mistake(
        "remainder",
        "Only two angles alternate along your columns: % gives the remainder, 0 or 1, and // the number of the pair. "
        f"{SHARE}.",
        switches={"exponent": "remainder"},
    ),
    Mistake(
        "slow_first",
        "Your frequencies run the wrong way round: the slowest wave stands in the first pair of columns, and sin p "
        "and cos p in the last. The first exponent is 0.",
        switches={"exponent": "reversed"},
        rare=True,
    ),
    Mistake(
        "squared_exponent",
        "The exponent is squared: it is 2i / d_model.",
        switches={"exponent": "squared"},
        rare=True,
    ),
    Mistake(
        "rows_reversed",
        "The rows stand in reverse order: row p belongs to position p, so the first is 0, 1, 0, 1 ...",
        switches={"position": "reversed"},
        rare=True,
    ),
    *(
        Mistake(
            "position_scaled",
            f"Your positions are {how}: the angle is p / 10000^(2i / d_model), with p = 0, 1, 2 ...",
            switches={"position": position},
            rare=True,
        )
        for position, how in (
            ("over_width", "divided by d_model"),
            ("over_root", "divided by the root of d_model"),
            ("over_half_width", "divided by d_model / 2"),
            ("doubled", "doubled"),
            ("halved", "halved"),
            ("centred", "counted from the middle of the table, and so depend on its length"),
        )
    ),
    Mistake(
        "rows_alike",
        "Every row is the same, that of position n, the length: each row needs its own position, 0 to n - 1, which "
        "is what torch.arange(n) gives.",
        switches={"position": "length"},
        rare=True,
    ),
    Mistake(
        "first_row_zero",
        "Your row of position 0 holds only 0, the others are right: its cosines are 1, so the row is 0, 1, 0, 1 ... "
        "Does the loop begin with position 1, or is row 0 kept free for padding?",
        switches={"rows": "first_zero"},
        beside="Your row of position 0 holds only 0: its cosines are 1, so the row is 0, 1, 0, 1 ...",
    ),
    Mistake(
        "last_row_zero",
        "Your last row holds only 0: it is never written. range(n) already ends with n - 1.",
        switches={"rows": "last_zero"},
    ),
    Mistake(
        "one_row_filled",
        "Only the first row is filled, all others hold 0: does the return stand inside the loop over positions?",
        switches={"rows": "only_first"},
    ),
    Mistake(
        "one_row_filled",
        "Only the last row is filled, all others hold 0: is the row of each position written into its own place?",
        switches={"rows": "only_last"},
    ),
    Mistake(
        "row_count",
        "Your table has one row too many: the positions are 0 to n - 1, which is what range(n) and torch.arange(n) "
        "give.",
        switches={"rows": "one_more"},
    ),
    Mistake(
        "row_count",
        "The last row is missing: the positions are 0 to n - 1, which is what range(n) and torch.arange(n) give.",
        switches={"rows": "missing"},
    ),
    Mistake(
        "row_count",
        "The first row is missing: your table begins with position 1 and has n - 1 rows. The positions are 0 to n - 1.",
        switches={"rows": "without_first"},
        rare=True,
    ),
    *(
        Mistake(
            "fixed_length",
            f"Your table never has more than {most} rows: it is cut from one of a fixed length. Compute as many rows "
            "as are asked for.",
            switches={"rows": f"at_most_{most}"},
            edge=True,
        )
        for most in (100, 512, 1000, 1024, 2048)
    ),
    *(
        Mistake(
            "table_scaled",
            f"Every entry is {how}: the table holds the sines and cosines as they are.",
            switches={"scale": scale},
            rare=True,
        )
        for scale, how in (
            ("over_root", "divided by sqrt(d_model)"),
            ("times_root", "multiplied by sqrt(d_model)"),
            ("over_width", "divided by d_model"),
            ("length_one", "divided by the length of its row"),
            ("positive", "moved from -1..1 to 0..1"),
            ("absolute", "made positive"),
            ("squared", "squared"),
            ("two_decimals", "rounded to two decimals"),
            ("three_decimals", "rounded to three decimals"),
            ("summed_up", "the sum of all entries above it"),
        )
    ),
    Mistake(
        "table_scaled",
        "A softmax over the columns is left in it: the table holds the sines and cosines as they are.",
        switches={"scale": "softmax"},
        rare=True,
    ),
    Mistake(
        "batch_axis",
        "Your table has an axis for the batch in front, (1, n, d_model), as programs do that add it to a batch at "
        "once. Here it is (n, d_model), which broadcasts over a batch by itself.",
        switches={"form": "batch_axis"},
    ),
    Mistake(
        "batch_axis",
        "Your table has an axis in the middle, (n, 1, d_model), as in programs whose tokens come before the batch. "
        "Here it is (n, d_model).",
        switches={"form": "batch_axis_behind"},
    ),
    Mistake(
        "transposed",
        "Rows and columns are exchanged: your table is (d_model, n). Each position is a row, (n, d_model).",
        switches={"form": "transposed"},
    ),
    Mistake(
        "arguments_exchanged",
        "The length and the width are exchanged: the first argument is the number of positions, the second d_model.",
        switches={"form": "exchanged"},
    ),
    *each(
        "integers",
        "Your table holds whole numbers, so every sine and cosine is cut to 0, 1 or -1: make it of dtype float32.",
        *switch("form", "integers", "integers_of_double"),
        alone=True,
    ),
    Mistake(
        "stacked_in_front",
        "Sines and cosines are stacked along a new first axis, and reshape then reads them in that order: the first "
        "half of the rows is made of sines, the second of cosines. Stack them along a new last axis, and flatten "
        "that one.",
        switches={"form": "stacked"},
    ),
    Mistake(
        "joined_below",
        "The cosines stand below the sines: (2 n, d_model / 2). Each position is one row of both, in turn.",
        switches={"form": "two_tables"},
    ),
    Mistake(
        "sine_and_cosine_apart",
        "Sines and cosines come as two tables: they belong into one, sines in the even columns, cosines in the odd "
        "ones.",
        switches={"form": "pair"},
    ),
    *(
        Mistake(
            "half_the_columns",
            f"Your table has half its columns: {what}. Sines stand in the even columns, cosines in the odd ones, "
            "d_model in all.",
            switches={"form": form},
        )
        for form, what in (
            ("half_sines", "only the sines are in it"),
            ("half_cosines", "only the cosines are in it"),
            ("half_sum", "sines and cosines are added"),
            ("first_half", "the others are cut off"),
        )
    ),
    Mistake(
        "one_row",
        "You return one row, that of position n, as if the first argument were a position: it is the number of "
        "positions, and the table has a row for each of 0 to n - 1.",
        switches={"form": "row_n"},
        alone=True,
    ),
    Mistake(
        "one_row",
        "You return one row, that of the last position: the table has a row for each of the positions 0 to n - 1.",
        switches={"form": "last_row"},
    ),
    Mistake(
        "one_row",
        "You return one row, that of position 0: the table has a row for each of the positions 0 to n - 1.",
        switches={"form": "first_row"},
    ),
    *(
        Mistake(
            "odd_width",
            f"Right for even widths, but with an odd d_model {what}. {ODD}",
            switches={"odd": odd},
            edge=True,
            beside=f"With an odd d_model {what}. {ODD}",
        )
        for odd, what in (
            ("zero_last", "the last column holds only 0"),
            ("cosine_last", "the last column holds a cosine, which is the one to leave out"),
            ("narrow", "the last column is missing"),
            ("wide", "there is one column too many"),
            ("wide_rounded", "there is one column too many, and the exponents are those of d_model + 1"),
            ("wide_zero", "there is one column too many, of zeros"),
            ("rounded_up", "the exponents are those of d_model + 1: they are 2i / d_model, whatever d_model is"),
            ("rounded_down", "the exponents are those of d_model - 1: they are 2i / d_model, whatever d_model is"),
            ("nothing", "you return None"),
        )
    ),
)


def _waves_of(angle: Callable[[Tensor, Tensor, int], Tensor]) -> Callable[[int, int], Tensor]:
    """The table of angles that are made by angle(position, 2i, d_model)."""

    def table(n: int, d: int) -> Tensor:
        pair, wave = _ordered(d, "right")
        return _waves(angle(_places(n, d, "right"), 2 * pair, d), wave, "right").float()

    return table


def _divided_by_zero(n: int, d: int) -> Tensor:
    raise ZeroDivisionError("float division by zero")


def _waves_divided(n: int, d: int) -> Tensor:
    pair, wave = _ordered(d, "right")
    return (_waves(_places(n, d, "right").expand(n, d), wave, "right") / 10000 ** (2 * pair / d)).float()


PRODUCT = (
    "The base 10000 is multiplied by 2i / d_model where it must be raised to that power: for the first pair you divide "
    "by 0. A power is written **, 10000 ** (2i / d_model)."
)
FORMULA_MISTAKES = (
    Mistake("multiplied_not_raised", PRODUCT, _waves_of(lambda p, two_i, d: p / (10000 * (two_i / d)))),
    Mistake("multiplied_not_raised", PRODUCT, _divided_by_zero),
    Mistake(
        "multiplied_not_raised",
        "The position is divided by 10000 and multiplied by 2i / d_model: 10000 must be raised to that power, and the "
        "position divided by the result. A power is written **, p / 10000 ** (2i / d_model).",
        _waves_of(lambda p, two_i, d: p / 10000 * two_i / d),
    ),
    Mistake(
        "power_turned_round",
        "The power is the wrong way round, (2i / d_model) ** 10000, which is 0: it is 10000 ** (2i / d_model).",
        _waves_of(lambda p, two_i, d: p / (two_i / d) ** 10000),
    ),
    Mistake(
        "wave_divided",
        "You take sine and cosine of the position itself and divide them by 10000^(2i / d_model). What is divided is "
        "the position: sin(p / 10000^(2i / d_model)), the division within the parentheses.",
        _waves_divided,
    ),
)

SINUSOID = Exercise(
    name="positions.sinusoidal_positions",
    reference=lambda length, d_model: positions.sinusoidal_positions(length, d_model),
    results=(Result("table", ("position", "column")),),
    probes=(
        Probe("length 3, d_model 4", lambda: (3, 4)),
        Probe("length 1, d_model 4", lambda: (1, 4), blind_to=("base", "exponent", "unit")),
        Probe("length 6, d_model 6", lambda: (6, 6)),
        Probe("length 4, d_model 2", lambda: (4, 2)),
        Probe("length 5, d_model 8", lambda: (5, 8)),
        Probe("length 7, d_model 4", lambda: (7, 4)),
        Probe("length 30, d_model 10", lambda: (30, 10)),
        Probe("length 4, d_model 5, which is odd", lambda: (4, 5), edge=True, may_raise=ODD_ERRORS),
        LONG,
    ),
    compound=encode,
    mistakes=(*MISTAKES, *FORMULA_MISTAKES),
    symptoms=SYMPTOMS,
    at_once=2,
)
