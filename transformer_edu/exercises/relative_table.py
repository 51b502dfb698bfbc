"""The exercise relative_table of lesson 07: which distance each row stands for, and how its columns are made."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .. import relative
from .attention_symptoms import NUMPY
from .exercise import Exercise, Mistake, Probe, Result, Symptom, each
from .outcome import close
from .relative_symptoms import LIST_RESULT, results
from .symptoms import MORE_RESULTS, ONLY_SHAPE, Seen


# ---------------------------------------------------------------- the wrong implementation with switches
def _distances(t: int, rows: str) -> Tensor:
    """(row,), the distance that each row stands for."""
    past, future = torch.arange(t - 1, -1, -1), torch.arange(0, -t, -1)
    return {
        "right": lambda: torch.arange(t - 1, -t, -1),
        "ascending": lambda: torch.arange(-(t - 1), t),
        "past": lambda: past,
        "past_ascending": lambda: past.flip(0),
        "future": lambda: future,
        "zero_twice": lambda: torch.cat([past, future]),
        "zero_twice_ascending": lambda: torch.cat([future.flip(0), past.flip(0)]),
        "no_zero": lambda: torch.cat([past[:-1], future[1:]]),
        "from_t": lambda: torch.arange(t, -t + 1, -1),
        "to_minus_t": lambda: torch.arange(t - 2, -t - 1, -1),
        "t_to_minus_t": lambda: torch.arange(t, -t - 1, -1),
        "one_more": lambda: torch.arange(t - 1, -t - 1, -1),
        "one_more_ascending": lambda: torch.arange(-t, t),
        "last_missing": lambda: torch.arange(t - 1, -t + 1, -1),
        "first_missing": lambda: torch.arange(t - 2, -t, -1),
        "last_missing_ascending": lambda: torch.arange(-(t - 1), t - 1),
        "positions": lambda: torch.arange(2 * t - 1),
        "positions_from_one": lambda: torch.arange(1, 2 * t),
        "positions_descending": lambda: torch.arange(2 * t - 2, -1, -1),
        "absolute": lambda: torch.arange(t - 1, -t, -1).abs(),
        "halves_exchanged": lambda: torch.cat([future, past[:-1]]),
        "halves_exchanged_ascending": lambda: torch.cat([past.flip(0), future[1:].flip(0)]),
        "past_ascending_first": lambda: torch.cat([past.flip(0), future[1:]]),
        "both_descending": lambda: torch.cat([past, past[:-1]]),
        "doubled": lambda: torch.arange(2 * t - 1, -2 * t, -1),
        "from_minus_t": lambda: torch.arange(-t, t - 1),
        "from_minus_t_plus_two": lambda: torch.arange(-t + 2, t + 1),
        "half_step": lambda: torch.arange(t - 1, -t, -1) / t,
        "up_to_one": lambda: torch.arange(t - 1, -t, -1) / max(t - 1, 1),
    }[rows]().double()


def _angles(distance: Tensor, d: int, exponent: str, base: float) -> tuple[Tensor, Tensor]:
    """(row, pair) twice: the angles of the sine and of the cosine columns."""
    i = torch.arange(d // 2).double()
    if exponent == "product":
        return (distance[:, None] / (base * 2 * i / d),) * 2
    sine, cosine = {
        "right": (2 * i / d, 2 * i / d),
        "column": (2 * i / d, (2 * i + 1) / d),
        "twice_column": (4 * i / d, (4 * i + 2) / d),
        "pair": (i / d, i / d),
        "double_pair": (4 * i / d, 4 * i / d),
        "rising": (-2 * i / d, -2 * i / d),
        "from_one": ((2 * i + 2) / d, (2 * i + 2) / d),
        "odd_columns": ((2 * i + 1) / d, (2 * i + 1) / d),
        "to_the_end": (2 * i / max(d - 2, 1), 2 * i / max(d - 2, 1)),
        "less_one": (2 * i / (d - 1), 2 * i / (d - 1)),
        "none": (0 * i, 0 * i),
        "reversed": (2 * i.flip(0) / d, 2 * i.flip(0) / d),
        "whole": (2 * i, 2 * i),
    }[exponent]
    return distance[:, None] * base**-sine, distance[:, None] * base**-cosine


def table_wrongly(
    t: int,
    d: int,
    *,
    rows: str = "right",
    exponent: str = "right",
    base: float = 10000.0,
    angle: str = "right",
    sign: str = "right",
    layout: str = "interleaved",
    result: str = "right",
) -> object:
    """The table with any of the ways to go wrong; without a switch it is right."""
    distance = _distances(t, rows)
    for_sine, for_cosine = _angles(distance, d, exponent, base)
    turn = {"right": 1.0, "radians_taken": math.pi / 180, "degrees_taken": 180 / math.pi, "two_pi": 2 * math.pi}[angle]
    sine, cosine = (for_sine * turn).sin(), (for_cosine * turn).cos()
    future = (distance < 0)[:, None]
    if sign in ("cosine", "both"):
        cosine = torch.where(future, -cosine, cosine)
    if sign in ("negated", "both_kept"):
        sine, cosine = -sine, -cosine
    if sign == "both":
        sine = torch.where(future, -((-for_sine * turn).sin()), sine)
    pairs = {
        "interleaved": (sine, cosine),
        "cosine_first": (cosine, sine),
        "sine_only": (sine, sine),
        "cosine_only": (cosine, cosine),
        "halves": (sine, cosine),
        "halves_cosine_first": (cosine, sine),
    }[layout]
    table = torch.cat(pairs, -1) if layout.startswith("halves") else torch.stack(pairs, -1).flatten(1)
    table = table.float()
    return {
        "right": lambda: table,
        "transposed": lambda: table.T,
        "angles": lambda: torch.stack([for_sine, for_cosine], -1).flatten(1).float(),
        "scaled": lambda: table * math.sqrt(d),
        "scaled_down": lambda: table / math.sqrt(d),
        "half": lambda: sine.float(),
        "square": lambda: table[t - 1 - torch.arange(t)[:, None] + torch.arange(t)[None, :]],
    }[result]()


# ---------------------------------------------------------------- the gallery
ORDER = "With T = length, row r stands for distance T - 1 - r: the first row for T - 1, the last for -(T - 1)."


FREQUENT = {  # what may come together with another mistake
    *("ascending", "past", "past_ascending", "zero_twice", "positions", "absolute", "from_t", "last_missing"),
    *("column", "pair", "double_pair", "rising", "none"),
}


def _rows(name: str, sentence: str, *values: str) -> tuple[Mistake, ...]:
    return tuple(Mistake(name, sentence, switches={"rows": v}, alone=v not in FREQUENT) for v in values)


def _exponent(name: str, sentence: str, *values: str) -> tuple[Mistake, ...]:
    return tuple(Mistake(name, sentence, switches={"exponent": v}, alone=v not in FREQUENT) for v in values)


TABLE_MISTAKES = (
    *_rows(
        "rows_upside_down",
        "The distances run up from -(T - 1) to T - 1, so the rows are upside down (or each distance has the wrong sign,"
        f" key minus query). {ORDER} With your order, the shift exchanges past and future.",
        "ascending",
    ),
    *_rows(
        "only_the_past",
        "Your table has T rows, for the distances T - 1 to 0, as in Transformer-XL, where no key comes after its query."
        " Here there are keys on both sides: go on to -(T - 1), 2T - 1 rows in all.",
        "past",
    ),
    *_rows(
        "only_the_past",
        "Your table has T rows, for the positions 0 to T - 1. Distances lie on both sides of 0: from T - 1 down to"
        " -(T - 1), 2T - 1 rows in all.",
        "past_ascending",
    ),
    *_rows(
        "only_the_future",
        "Your table has T rows, for the distances 0 to -(T - 1): the keys before the query are missing. Begin with"
        " T - 1.",
        "future",
    ),
    *_rows(
        "zero_twice",
        "Your table has 2T rows: the two halves both hold distance 0, the query itself. Leave it out of one of them.",
        "zero_twice",
        "zero_twice_ascending",
    ),
    *_rows(
        "zero_missing",
        "Your table has 2T - 2 rows: distance 0, the query itself, is in neither half.",
        "no_zero",
    ),
    *_rows(
        "one_step_too_far",
        "Every row stands for a distance one larger than it should: your table begins with T, but two of T tokens are"
        " at most T - 1 apart.",
        "from_t",
    ),
    *_rows(
        "one_step_too_far",
        "Every row stands for a distance one smaller than it should: your table begins with T - 2. " + ORDER,
        "to_minus_t",
    ),
    *_rows(
        "one_step_too_far",
        "The distances run up, and one step off: from -T to T - 2, or from -(T - 2) to T. " + ORDER,
        "from_minus_t",
        "from_minus_t_plus_two",
    ),
    *_rows(
        "too_many_rows",
        "Your table runs from T to -T, with 2T + 1 rows. Two of T tokens are at most T - 1 apart: 2T - 1 rows, from"
        " T - 1 to -(T - 1).",
        "t_to_minus_t",
    ),
    *_rows(
        "too_many_rows",
        "Your table has 2T rows, one for distance -T as well, which no two of T tokens have. The end of arange is left"
        " out: going down it is -T, so that -(T - 1) comes last.",
        "one_more",
        "one_more_ascending",
    ),
    *_rows(
        "too_many_rows",
        "Your table has about twice as many rows as there are distances. Two of T tokens are at most T - 1 apart:"
        " 2T - 1 rows, from T - 1 to -(T - 1).",
        "doubled",
    ),
    *_rows(
        "last_row_missing",
        "One row is missing at the end, that of the last distance: arange leaves out its end. Going down from T - 1,"
        " the end is -T.",
        "last_missing",
        "last_missing_ascending",
    ),
    *_rows(
        "first_row_missing",
        "The first row is missing, that of distance T - 1: the first key as the last query sees it.",
        "first_missing",
    ),
    *_rows(
        "positions_instead_of_distances",
        "Your rows are coded as the positions 0, 1, 2, ... up. They stand for distances, which go down from T - 1"
        " through 0 to -(T - 1), with the query itself in the middle row.",
        "positions",
        "positions_from_one",
    ),
    *_rows(
        "positions_instead_of_distances",
        "Your rows count down from 2T - 2 to 0. The row in the middle is the query itself, distance 0: count from T - 1"
        " to -(T - 1).",
        "positions_descending",
    ),
    *_rows(
        "absolute_distance",
        "The two halves of your table are mirror images: the sign of the distance is lost, and a key before the query"
        " looks like one after it. The sine of a negative distance is negative.",
        "absolute",
    ),
    *_rows(
        "absolute_distance",
        "The lower half of your table repeats the distances of the past. Below the middle row the distances are"
        " negative: -1 to -(T - 1).",
        "both_descending",
    ),
    *_rows(
        "halves_exchanged",
        "The two halves are in another order: distance 0 stands in the first row, and the largest jump is in the"
        f" middle. {ORDER}",
        "halves_exchanged",
        "halves_exchanged_ascending",
        "past_ascending_first",
    ),
    *_rows(
        "distance_divided",
        "The distances are divided by T or T - 1. They are whole numbers, steps from token to token, whatever the"
        " length.",
        "half_step",
        "up_to_one",
    ),
    *_exponent(
        "exponent_by_column",
        "The cosine has another frequency than the sine beside it: the exponent counts columns. Columns 2i and 2i + 1"
        " are a pair and share the exponent 2i / d_model.",
        "column",
    ),
    *_exponent(
        "exponent_by_column",
        "The exponent grows too fast, and the cosine has another frequency than the sine beside it: twice the column"
        " over d_model. Columns 2i and 2i + 1 are a pair and share the exponent 2i / d_model.",
        "twice_column",
    ),
    *_exponent(
        "exponent_halved",
        "Pair i has the frequency 10000^(-i/d_model) in your table (which is also what base 100 gives): the slow"
        " columns turn too fast. It is 10000^(-2i/d_model).",
        "pair",
    ),
    *_exponent(
        "exponent_doubled",
        "The exponent of pair i is 4i / d_model in your table: column numbers 0, 2, 4, ... are doubled once more. It is"
        " 2i / d_model, the even column over d_model.",
        "double_pair",
    ),
    *_exponent(
        "frequencies_rise",
        "The frequencies grow from pair to pair: the distance is multiplied by 10000^(2i/d_model). Divide by it.",
        "rising",
    ),
    *_exponent(
        "exponent_starts_late",
        "The exponents do not begin with 0: i counts from 0, and the first pair turns by one radian per step.",
        "from_one",
        "odd_columns",
    ),
    *_exponent(
        "exponent_to_the_end",
        "The exponents are stretched: divide 2i by d_model.",
        "to_the_end",
        "less_one",
    ),
    *_exponent(
        "one_frequency",
        "All pairs turn equally fast: the frequency does not depend on the column. Divide by 10000^(2i/d_model).",
        "none",
    ),
    *_exponent(
        "frequencies_reversed",
        "The frequencies are in reverse order: the first pair is the fastest.",
        "reversed",
    ),
    *_exponent(
        "exponent_not_divided",
        "The exponent of pair i is 2i in your table and not 2i / d_model: from the second pair on nothing moves.",
        "whole",
    ),
    *_exponent(
        "multiplied_not_raised",
        "The base 10000 is multiplied by 2i / d_model instead of raised to that power: for the first pair you divide by"
        " 0, which gives nan. It is 10000 ** (2i / d_model).",
        "product",
    ),
    *each(
        "wrong_base",
        "Your frequencies have another base than 10000.",
        *({"base": b} for b in (1000.0, 100000.0, 1e6, math.e, 10.0)),
    ),
    Mistake(
        "degrees",
        "The angles are treated as degrees and turned into radians. sin and cos take radians, and distance times"
        " frequency already is one.",
        switches={"angle": "radians_taken"},
    ),
    Mistake(
        "degrees",
        "The angles are turned into degrees. sin and cos take radians, and distance times frequency already is one.",
        switches={"angle": "degrees_taken"},
    ),
    Mistake(
        "two_pi",
        "The angles are multiplied by 2 pi: distance times frequency already is the angle.",
        switches={"angle": "two_pi"},
    ),
    Mistake(
        "cosine_negated",
        "For negative distances the cosine has the wrong sign: the cosine is the same for r and -r. Only the sine"
        " changes its sign.",
        switches={"sign": "cosine"},
    ),
    Mistake("negated", "All numbers have the wrong sign.", switches={"sign": "negated"}),
    Mistake(
        "halves_of_columns",
        "All sines stand in the first half of the columns and all cosines in the second. Here they alternate: sine in"
        " the even columns, cosine in the odd ones.",
        switches={"layout": "halves"},
    ),
    Mistake(
        "halves_of_columns",
        "All cosines stand in the first half of the columns and all sines in the second. Here they alternate: sine in"
        " the even columns, cosine in the odd ones.",
        switches={"layout": "halves_cosine_first"},
    ),
    Mistake(
        "sine_and_cosine_exchanged",
        "Sine and cosine are exchanged: the sine belongs in the even columns 0, 2, ..., the cosine in the odd ones.",
        switches={"layout": "cosine_first"},
    ),
    Mistake(
        "only_sines",
        "All columns are sines: the odd columns are cosines of the same angles.",
        switches={"layout": "sine_only"},
    ),
    Mistake(
        "only_cosines",
        "All columns are cosines: the even columns are sines of the same angles.",
        switches={"layout": "cosine_only"},
    ),
    Mistake(
        "transposed",
        "The table is transposed: a row for each distance, a column for each feature, (2T - 1, d_model).",
        switches={"result": "transposed"},
    ),
    Mistake(
        "no_sine_or_cosine",
        "You return the angles themselves: take their sine in the even columns, their cosine in the odd ones.",
        switches={"result": "angles"},
    ),
    Mistake(
        "scaled",
        "The table is multiplied by a factor: sine and cosine stay as they are, between -1 and 1.",
        switches={"result": "scaled"},
    ),
    Mistake(
        "scaled",
        "The table is divided by a factor: sine and cosine stay as they are, up to 1.",
        switches={"result": "scaled_down"},
    ),
    Mistake(
        "half_the_columns",
        "Your table has d_model / 2 columns, the sines alone. Each angle gives two columns, its sine and its cosine.",
        switches={"result": "half"},
    ),
    Mistake(
        "square_built",
        "You return a row for each pair of query and key, (T, T, d_model). The table holds each distance once:"
        " (2T - 1, d_model).",
        switches={"result": "square"},
    ),
)


# ---------------------------------------------------------------- symptoms
def _tables(seen: Seen) -> list[tuple[Tensor, Tensor]] | None:
    """(right, reader's) of every probe."""
    found = results(seen)
    return found and [(right, mine) for _, right, mine in found]


def _right_where(seen: Seen, rows: str) -> bool:
    tables = _tables(seen)
    if tables is None:
        return False
    middles = [len(r) // 2 for r, _ in tables]
    parts = {
        "past": [(r[: m + 1], y[: m + 1]) for (r, y), m in zip(tables, middles, strict=True)],
        "future": [(r[m:], y[m:]) for (r, y), m in zip(tables, middles, strict=True)],
        "even": [(r[:, ::2], y[:, ::2]) for r, y in tables],
        "odd": [(r[:, 1::2], y[:, 1::2]) for r, y in tables],
        "first pair": [(r[:, :2], y[:, :2]) for r, y in tables],
    }[rows]
    return all(bool(close(r, y).all()) for r, y in parts)


def _wrong_size(seen: Seen, axis: int) -> bool:
    """Every table has two axes, and only one of them has the wrong size."""
    tables = [(e.value, g.value) for _, e, g in seen if g.error is None]
    if len(tables) < len(seen) or not all(isinstance(y, Tensor) and y.dim() == 2 for _, y in tables):
        return False
    wrong = any(r.shape[axis] != y.shape[axis] for r, y in tables)
    return wrong and all(r.shape[1 - axis] == y.shape[1 - axis] for r, y in tables)


def _codes_of_distances(seen: Seen) -> bool:
    """Every row is the row of some whole distance."""
    for probe, _, given in seen:
        (t, d), y = probe.make(), given.value
        if not isinstance(y, Tensor) or y.dim() != 2 or y.shape[1] != d or not y.is_floating_point():
            return False
        codes = table_wrongly(3 * t + 3, d)
        if not close(codes[None].expand(len(y), -1, -1), y[:, None].expand(-1, len(codes), -1)).all(-1).any(-1).all():
            return False
    return True


SYMPTOMS = (
    Symptom(
        "future_wrong",
        "The rows down to the middle, distances T - 1 to 0, are right; those of the negative distances are not. The"
        " same formula holds for them, with a negative angle.",
        lambda seen: _right_where(seen, "past"),
    ),
    Symptom(
        "past_wrong",
        "The rows from the middle on, distances 0 to -(T - 1), are right; those of the positive distances are not. The"
        " same formula holds for all.",
        lambda seen: _right_where(seen, "future"),
    ),
    Symptom(
        "cosines_wrong",
        "The even columns, the sines, are right; the odd ones are not. Column 2i + 1 is the cosine of the same angle as"
        " column 2i.",
        lambda seen: _right_where(seen, "even"),
    ),
    Symptom(
        "sines_wrong",
        "The odd columns, the cosines, are right; the even ones are not. Column 2i is the sine of the same angle as"
        " column 2i + 1.",
        lambda seen: _right_where(seen, "odd"),
    ),
    Symptom(
        "frequencies_wrong",
        "The first pair of columns is right, so the distances are, but later pairs are not: something is wrong with the"
        " frequencies. Pair i turns by 1 / 10000^(2i/d_model) per step.",
        lambda seen: _right_where(seen, "first pair"),
    ),
    Symptom(
        "number_of_columns",
        "The number of columns is not right: there are d_model / 2 frequencies, and each gives two columns, a sine and"
        " a cosine, which makes d_model.",
        lambda seen: _wrong_size(seen, 1),
    ),
    Symptom(
        "number_of_rows",
        "The number of rows is not right: the distances of T tokens run from T - 1 through 0 to -(T - 1), which makes"
        " 2T - 1 rows.",
        lambda seen: _wrong_size(seen, 0),
    ),
    Symptom(
        "wrong_distances",
        "Each of your rows is the right code of some distance, but the distances are not the right ones, or not in the"
        f" right order. {ORDER}",
        _codes_of_distances,
    ),
    MORE_RESULTS,
    ONLY_SHAPE,
    NUMPY,
    LIST_RESULT,
)

RELATIVE_TABLE = Exercise(
    name="relative.relative_table",
    reference=lambda length, d_model: relative.relative_table(length, d_model),
    results=(Result("table", ("row", "column")),),
    probes=tuple(
        Probe(f"length = {t}, d_model = {d}", lambda t=t, d=d: (t, d), edge=t == 1)
        for t, d in ((3, 4), (1, 4), (4, 8), (2, 6))
    ),
    mistakes=TABLE_MISTAKES,
    compound=table_wrongly,
    symptoms=SYMPTOMS,
    at_once=2,
)
