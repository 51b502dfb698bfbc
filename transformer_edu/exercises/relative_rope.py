"""The exercise rope of lesson 07: a rotation that is right in many forms, and the ways in which it is none.

What counts is that the dot product of a turned query and a turned key depends on their distance, in the right way. So
all of these are right: both pairings, turning forwards or backwards, the slowest pair first or last, and whatever is
done to every position alike (counting from 1, exchanging sine and cosine, columns in another order).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .. import relative
from .attention_symptoms import NUMPY
from .exercise import Exercise, Mistake, Probe, Result, Symptom, Verdict
from .outcome import close, observe, said
from .relative_symptoms import LIST_RESULT, results, right_only_where
from .sandbox import Budget, calm
from .symptoms import CHANGES_INPUT, MORE_RESULTS, ONLY_SHAPE, ONLY_VIEW, VIEW_AND_MORE, Seen
from .wording import wrapped


# ---------------------------------------------------------------- the wrong implementation with switches
def _places(x: Tensor, positions: Tensor | None, places: str) -> Tensor:
    """(length,), where the tokens stand."""
    t = x.shape[2]
    default = torch.arange(t) if positions is None else positions
    return {
        "ignored": lambda: torch.arange(t),
        "default_from_one": lambda: default + (positions is None),
        "given_from_one": lambda: default + (positions is not None),
        "divided": lambda: default / t,
        "times_length": lambda: default * t,
        "doubled": lambda: default * 2,
        "halved": lambda: default / 2,
        "squared": lambda: default**2,
        "summed": lambda: default.cumsum(0),
        "reversed": lambda: default.flip(0),
        "reversed_default": lambda: default.flip(0) if positions is None else default,
        "relative_to_first": lambda: default - default[0],
        "relative_to_last": lambda: default - default[-1],
        "first_for_all": lambda: default[:1].expand(t),
        "last_for_all": lambda: default[-1:].expand(t),
        "default_zero": lambda: default * (positions is not None),
        "first_onward": lambda: default[:1] + torch.arange(t),
        "given_added": lambda: default if positions is None else default + torch.arange(t),
        "last_unturned": lambda: default * (torch.arange(t) < t - 1),
        "first_unturned": lambda: default * (torch.arange(t) > 0),
    }.get(places, lambda: default)().double()


def _frequencies(d: int, base: float, exponent: str) -> Tensor:
    """(pair,), the angle per step."""
    i = torch.arange(d // 2).double()
    powers = {
        "halved": i / d,
        "doubled": 4 * i / d,
        "rising": -2 * i / d,
        "from_one": (2 * i + 2) / d,
        "none": 0 * i,
        "not_divided": 2 * i,
        "floor": (2 * i / d > 0).double(),
        "to_the_end": 2 * i / max(d - 2, 1),
        "odd_columns": (2 * i + 1) / d,
    }.get(exponent, 2 * i / d)
    if exponent == "product":
        return 1 / (base * 2 * i / d)
    return base**-powers


def _turned(a: Tensor, b: Tensor, c: Tensor, s: Tensor, form: str) -> tuple[Tensor, Tensor]:
    """(..., pair) twice: the two columns of each pair after the turn."""
    first = a * c - b * s
    return {
        "no_minus": lambda: (a * c + b * s, a * s + b * c),
        "two_minus": lambda: (a * c - b * s, b * c - a * s),
        "not_exchanged": lambda: (a * c - a * s, b * c + b * s),
        "not_exchanged_minus": lambda: (a * c + a * s, b * c - b * s),
        "sum": lambda: (a * c + a * s, b * c + b * s),
        "cosine_alone": lambda: (a * c, b * c),
        "sine_alone": lambda: (a * s, b * s),
        "cosine_and_sine": lambda: (a * c, b * s),
        "sine_and_cosine": lambda: (a * s, b * c),
        "overwritten": lambda: (first, first * s + b * c),
        "overwritten_second": lambda: (a * c - (a * s + b * c) * s, a * s + b * c),
        "second_kept": lambda: (first, b),
        "first_kept": lambda: (a, a * s + b * c),
        "first_for_both": lambda: (first, first),
        "added": lambda: (a + s, b + c),
        "added_other": lambda: (a + c, b + s),
        "half_of_it": lambda: (first / 2, (a * s + b * c) / 2),
        "cosine_in_both": lambda: (a * c - b * c, a * c + b * c),
        "sine_in_both": lambda: (a * s - b * s, a * s + b * s),
    }.get(form, lambda: (first, a * s + b * c))()


def _split(x: Tensor, pairing: str) -> tuple[Tensor, Tensor]:
    return (x[..., 0::2], x[..., 1::2]) if pairing == "interleaved" else x.chunk(2, -1)


def _joined(a: Tensor, b: Tensor, pairing: str) -> Tensor:
    return torch.stack([a, b], -1).flatten(-2) if pairing == "interleaved" else torch.cat([a, b], -1)


def _whole_angles(angle: Tensor, pairing: str, other: bool) -> tuple[Tensor, Tensor]:
    """The angle of each column, in the order of this pairing or of the other one, cut up like the columns."""
    interleaved = (pairing == "interleaved") != other
    columns = angle.repeat_interleave(2, -1) if interleaved else torch.cat([angle, angle], -1)
    return _split(columns, pairing)


def rope_wrongly(
    x: Tensor,
    positions: Tensor | None = None,
    base: float | None = None,
    *,
    pairing: str = "interleaved",
    turn: str = "forwards",
    slowest: str = "last",
    places: str = "right",
    exponent: str = "right",
    angles: str = "right",
    form: str = "right",
    axis: str = "time",
    part: str = "all",
    base_from: str = "argument",
    result: str = "right",
) -> object:
    """Turn the pairs with any of the ways to go wrong; without a switch it is right."""
    base = (
        {"default_1000": 1000.0, "default_100000": 1e5, "default_500000": 5e5}.get(base_from, 1e4)
        if base is None
        else base
    )
    base = {"fixed": 10000.0, "thousand": base / 10, "tenfold": base * 10, "e": math.e}.get(base_from, base)
    width = {"all": x.shape[-1], "first_pair": 2}.get(part, x.shape[-1] // 4 * 2 or 2)
    turning, rest = x[..., :width], x[..., width:]
    if part in ("second_half", "second_half_own_width"):
        rest, turning = x[..., :-width], x[..., -width:]
    own = part in ("half_own_width", "second_half_own_width")
    of_width = x.shape[-1] * (x.shape[1] if exponent == "by_d_model" else 1)
    frequencies = _frequencies(width if own else of_width, base, exponent)[: width // 2]
    frequencies = frequencies if slowest == "last" else frequencies.flip(0)
    place = _places(x, positions, places)
    if axis in ("heads", "batch"):
        n = x.shape[1] if axis == "heads" else x.shape[0]
        place = torch.arange(n).double() if positions is None else place
    angle = place[:, None] * frequencies
    if axis != "time":
        angle = {"heads": angle[None, :, None], "batch": angle[:, None, None], "transposed": angle.mT}[axis]
    angle = angle * {"forwards": 1, "backwards": -1}[turn]
    angle = angle * {"from_degrees": math.pi / 180, "to_degrees": 180 / math.pi, "two_pi": 2 * math.pi}.get(angles, 1)
    a, b = _split(turning, pairing)
    if angles == "other_pairing":
        (c, s), (c2, s2) = ((z.cos().float(), z.sin().float()) for z in _whole_angles(angle, pairing, True))
        a, b = a * c - b * s, b * c2 + a * s2
    elif form == "plus_angle":
        a, b = a + angle.float(), b + angle.float()
    else:
        c, s = angle.cos().float(), angle.sin().float()
        c, s = (c.round(), s.round()) if angles == "rounded" else (c, s)
        a, b = _turned(a, b, c, s, form)
    out = _joined(a, b, pairing)
    out = torch.cat([rest, out] if part.startswith("second") else [out, rest], -1) if width < x.shape[-1] else out
    d = x.shape[-1]
    if result == "in_place":
        x.copy_(out)
    return {
        "scaled": lambda: out * math.sqrt(d),
        "scaled_down": lambda: out / math.sqrt(d),
        "added_to_x": lambda: x + out,
        "half_the_columns": lambda: a,
        "angles": lambda: angle.float(),
        "transposed": lambda: out.transpose(1, 2),
        "flattened": lambda: out.transpose(1, 2).flatten(2),
        "unit_length": lambda: torch.nn.functional.normalize(out, dim=-1),
        "table": lambda: _joined(angle.sin().float(), angle.cos().float(), pairing),
        "pairs_left": lambda: torch.stack([a, b], -1),
        "mean": lambda: (x + out) / 2,
    }.get(result, lambda: out)()


# ---------------------------------------------------------------- the gallery
TURN = "A pair (a, b) becomes (a cos - b sin, a sin + b cos)."
ANGLE = "Pair i at position p turns by the angle p / base^(2i / d)."
RISE = (
    "The angles grow from pair to pair: the exponent has the wrong sign. The last pairs then turn by hundreds of"
    f" radians per step, which is noise. {ANGLE}"
)
COMMON = "positions are those of the tokens, along axis 2 of x (batch, heads, tokens, d)"


FREQUENT = {  # what may come together with another mistake
    *("other_pairing", "no_minus", "overwritten", "halved", "doubled", "rising", "none", "from_degrees", "ignored"),
    *("default_from_one", "heads", "half", "half_own_width", "thousand", "scaled", "scaled_down", "in_place", "fixed"),
}


def _one(key: str, name: str, sentence: str, *values: str, edge: bool = False) -> tuple[Mistake, ...]:
    return tuple(
        Mistake(name, sentence, switches={key: value}, edge=edge, alone=value not in FREQUENT) for value in values
    )


ONE_ANGLE = (
    "A table with d / 2 columns, one for each pair, meets x with its d columns. An angle serves two columns: take x"
    " apart into two halves of d / 2 columns, or repeat the angles."
)


def _table(x: Tensor, positions: Tensor | None = None, base: float = 10000.0) -> Tensor:
    """(length, pair), the cosines."""
    return (_places(x, positions, "right")[:, None] * _frequencies(x.shape[-1], base, "right")).cos().float()


ROPE_MISTAKES = (
    *_one(
        "angles",
        "mixed_conventions",
        "Two pairings are mixed. One puts the angles side by side for neighbouring columns (0, 1), (2, 3) and so on,"
        " the other turns column i with column i + d / 2; in yours the angles follow one and the columns the other, so"
        " the two columns of a pair turn by different angles. That is no rotation: choose one pairing for both.",
        "other_pairing",
    ),
    *_one(
        "form",
        "no_minus",
        "The signs in the turn are not right (is the minus missing?), so lengths change and nothing is rotated."
        f" {TURN}",
        "no_minus",
    ),
    *_one(
        "form",
        "no_minus",
        f"Both columns of a pair have a minus in the turn, so lengths change and nothing is rotated. {TURN}",
        "two_minus",
    ),
    *_one(
        "form",
        "columns_not_exchanged",
        "The term with the sine takes the same column again instead of its partner: each column is multiplied by a"
        f" number of its own. {TURN}",
        "not_exchanged",
        "not_exchanged_minus",
        "sum",
    ),
    *_one(
        "form",
        "one_term_only",
        f"Each column is multiplied by a cosine or a sine, and its partner is left out. {TURN}",
        "cosine_alone",
        "sine_alone",
        "cosine_and_sine",
        "sine_and_cosine",
    ),
    *_one(
        "form",
        "overwritten",
        "The second column of a pair is made from the new value of the first, which was overwritten by then (or the"
        f" other way round). Both come from the old values: {TURN}",
        "overwritten",
        "overwritten_second",
    ),
    *_one(
        "form",
        "one_column_unturned",
        f"Only one column of each pair is changed, the other stays as it was. {TURN}",
        "second_kept",
        "first_kept",
    ),
    *_one(
        "form",
        "same_column_twice",
        f"Both columns of a pair get the same number, that of the first. {TURN}",
        "first_for_both",
    ),
    *_one(
        "form",
        "added_not_turned",
        "Sine and cosine (or the angle) are added to x, as with the absolute positions of lesson 06. Here nothing is"
        f" added: {TURN}",
        "added",
        "added_other",
        "plus_angle",
    ),
    *_one(
        "form",
        "one_function_only",
        f"Only the cosine, or only the sine, is used in the turn. {TURN}",
        "cosine_in_both",
        "sine_in_both",
    ),
    *_one("form", "halved", "The result is half as long as it should be: a turn keeps lengths.", "half_of_it"),
    *_one(
        "exponent",
        "exponent_halved",
        f"The exponent of pair i is i / d: the slow pairs turn too fast. {ANGLE}",
        "halved",
    ),
    *_one(
        "exponent",
        "exponent_doubled",
        f"The exponent of pair i is 4i / d, so that the slow pairs hardly turn at all. {ANGLE}",
        "doubled",
    ),
    *_one(
        "exponent",
        "exponent_by_d_model",
        "The exponents are divided by the whole width, heads times d, so that with several heads the slow pairs turn"
        f" too fast. {ANGLE} Here d is the width of one head.",
        "by_d_model",
    ),
    *_one(
        "exponent",
        "frequencies_rise",
        RISE,
        "rising",
    ),
    *_one(
        "exponent",
        "exponent_starts_late",
        f"The exponents do not begin with 0: the first pair turns by one radian per step. {ANGLE}",
        "from_one",
        "odd_columns",
    ),
    *_one("exponent", "one_frequency", f"All pairs turn equally fast. {ANGLE}", "none"),
    *_one(
        "exponent",
        "exponent_not_divided",
        f"The exponent is not divided by d (or cut to a whole number): the other pairs hardly turn at all. {ANGLE}",
        "not_divided",
        "floor",
    ),
    *_one(
        "exponent", "exponent_to_the_end", f"The exponents are stretched up to 1: divide 2i by d. {ANGLE}", "to_the_end"
    ),
    *_one(
        "exponent",
        "multiplied_not_raised",
        f"The base is multiplied by 2i / d instead of raised to that power, so the first pair is divided by 0. {ANGLE}",
        "product",
    ),
    *_one(
        "angles",
        "degrees",
        "The angles are taken for degrees, or turned into degrees: sin and cos take radians, and position times"
        " frequency already is one.",
        "from_degrees",
        "to_degrees",
    ),
    *_one("angles", "two_pi", f"The angles are multiplied by 2 pi. {ANGLE}", "two_pi"),
    *_one(
        "places",
        "positions_ignored",
        "The argument positions has no effect: you always count from 0. With a cache, the one new token would stand at"
        " position 0 each time.",
        "ignored",
    ),
    *_one(
        "places",
        "two_starts",
        "Positions that are given and positions that you count yourself do not agree: one of the two is moved by 1. A"
        " key turned today and a query turned later must be counted alike; without positions, count 0, 1, 2, ...",
        "default_from_one",
        "given_from_one",
    ),
    *_one(
        "places",
        "positions_moved",
        "Positions that are given are moved so that the first (or last) of them is 0: one token by itself is then never"
        " turned. Take them as they are.",
        "relative_to_first",
        "relative_to_last",
    ),
    *_one(
        "places",
        "positions_counted_on",
        "Only the first of the given positions is used, and you count on from there: each token has a position of its"
        " own, in any order.",
        "first_onward",
    ),
    *_one(
        "places",
        "positions_scaled",
        f"The positions are multiplied or divided: they count whole steps. {ANGLE}",
        "divided",
        "times_length",
        "doubled",
        "halved",
    ),
    *_one(
        "places",
        "angle_not_linear",
        "The angle does not grow evenly with the position (a square, or a running sum), so that the dot product depends"
        f" on more than the distance. {ANGLE}",
        "squared",
        "summed",
    ),
    *_one(
        "places",
        "positions_reversed",
        "The positions run backwards: the first token gets the last one.",
        "reversed",
        "reversed_default",
    ),
    *_one(
        "places",
        "one_angle_for_all",
        "Every token is turned by the same angle, that of one position: distances have no effect.",
        "first_for_all",
        "last_for_all",
    ),
    *_one(
        "places",
        "no_default_positions",
        "Without the argument positions nothing is turned: count 0, 1, 2, ... then.",
        "default_zero",
    ),
    *_one(
        "places",
        "positions_added_twice",
        "Positions that are given have 0, 1, 2, ... added to them: they already say where each token stands.",
        "given_added",
    ),
    *_one(
        "places",
        "one_token_unturned",
        "The last token is not turned: a loop has to reach it.",
        "last_unturned",
    ),
    *_one(
        "places",
        "one_token_unturned",
        "The first of the given tokens is not turned: its position need not be 0.",
        "first_unturned",
    ),
    *_one(
        "axis",
        "along_heads",
        f"Positions are counted along the heads, axis 1: every token of a head is turned alike. Here {COMMON}.",
        "heads",
    ),
    *_one(
        "axis",
        "along_batch",
        f"Positions are counted along the batch, axis 0: every token of a sequence is turned alike. Here {COMMON}.",
        "batch",
    ),
    *_one(
        "axis",
        "angles_transposed",
        "The table of angles is transposed: a row for each position, a column for each pair, (tokens, d / 2).",
        "transposed",
    ),
    *_one(
        "part",
        "half_of_features",
        "Only half of the columns are turned, and the others stay as they are: they carry no position. Some models want"
        " that; here all d columns turn, in d / 2 pairs.",
        "half",
        "half_own_width",
        "second_half",
        "second_half_own_width",
    ),
    *_one(
        "part",
        "first_pair_only",
        "Only the first pair of columns is turned: all d / 2 pairs turn, each at a speed of its own.",
        "first_pair",
    ),
    *_one("base_from", "wrong_base", f"The frequencies have another base than the argument. {ANGLE}", "thousand"),
    *_one("base_from", "wrong_base", f"The frequencies have another base than the argument. {ANGLE}", "tenfold"),
    *_one("base_from", "wrong_base", f"The frequencies have e for a base (exp without the logarithm). {ANGLE}", "e"),
    *_one(
        "base_from",
        "base_default",
        "Where base is left out, yours is not 10000: give the argument that default.",
        "default_1000",
        "default_100000",
        "default_500000",
    ),
    *_one(
        "base_from",
        "base_ignored",
        "The argument base has no effect: you always take 10000.",
        "fixed",
        edge=True,
    ),
    *_one("result", "scaled", "The result is longer than x: a turn keeps lengths, without a factor.", "scaled"),
    *_one("result", "scaled", "The result is shorter than x: a turn keeps lengths, without a factor.", "scaled_down"),
    *_one("result", "scaled", "Each vector is brought to length 1: a turn keeps lengths.", "unit_length"),
    *_one(
        "result",
        "added_to_x",
        "The turned x is added to x itself: it takes its place.",
        "added_to_x",
        "mean",
    ),
    *_one(
        "result",
        "half_the_columns",
        "Half of the columns are missing: you return one column of each pair. The result has the shape of x.",
        "half_the_columns",
    ),
    *_one("result", "angles_returned", "You return the angles: x is still to be turned by them.", "angles"),
    *_one("result", "table_returned", "You return a table of sines and cosines: x is still to be turned.", "table"),
    *_one(
        "result",
        "axes_exchanged",
        "Heads and tokens are exchanged in the result: it has the shape of x, (batch, heads, tokens, d).",
        "transposed",
    ),
    *_one(
        "result",
        "heads_merged",
        "The heads are merged into the width: the result has the shape of x, (batch, heads, tokens, d).",
        "flattened",
    ),
    *_one(
        "result",
        "pairs_left",
        "The pairs are still an axis of their own, (..., d / 2, 2): bring the columns together again.",
        "pairs_left",
    ),
    Mistake(
        "changes_input",
        "The numbers you return are right, but x is overwritten by them: whoever uses x next gets turned numbers.",
        switches={"result": "in_place"},
        beside="x is overwritten by the result: whoever uses x next gets turned numbers.",
    ),
    Mistake("angles_for_columns", ONE_ANGLE, lambda x, *rest: x * _table(x, *rest)),
    Mistake("angles_for_columns", ONE_ANGLE, lambda x, *rest: _table(x, *rest) * x),
    Mistake("unchanged", f"You return x as it came: nothing is turned. {ANGLE}", lambda x, positions=None, base=1e4: x),
)


# ---------------------------------------------------------------- what is right
def _right(x: Tensor, positions: Tensor | None, base: float, pairing: str, turn: str, slowest: str) -> Tensor:
    """One of the right answers."""
    place = torch.arange(x.shape[2]) if positions is None else positions
    place = place if turn == "forwards" else -place
    if slowest == "first":  # the frequencies exchanged end for end are the columns exchanged in the same way
        x = _joined(*(part.flip(-1) for part in _split(x, pairing)), pairing)
    out = relative.rope(x, place, base, pairing=pairing)
    return _joined(*(part.flip(-1) for part in _split(out, pairing)), pairing) if slowest == "first" else out


FORMS = tuple(
    {"pairing": pairing, "turn": turn, "slowest": slowest}
    for slowest, turn, pairing in itertools.product(
        ("last", "first"), ("forwards", "backwards"), ("interleaved", "half_split")
    )
)


def _answer(form: dict[str, str]) -> Callable:
    return lambda x, positions=None, base=10000.0: _right(x, positions, base, **form)


def _at_zero(fn: Callable, d: int, base: tuple[float, ...]) -> Tensor | None:
    """(d, d), what `fn` does to each column at position 0; None where that is no turn, or none at all."""
    probe = Probe("", lambda: (torch.eye(d).view(1, d, 1, d), torch.tensor([0]), *base))
    value = observe(fn, probe, Budget()).value
    if not isinstance(value, Tensor) or value.shape != (1, d, 1, d) or not value.is_floating_point():
        return None
    m = value.view(d, d).float()
    kept = bool(close(m @ m.T, torch.eye(d)).all()) and not bool(close(m, torch.eye(d)).all())
    return m if kept else None


def _turned_back(fn: Callable) -> Callable | None:
    """`fn` followed by whatever makes it leave position 0 as it is; None where it does so by itself, or is no turn."""
    if _at_zero(fn, 4, ()) is None:
        return None

    def turned(x: Tensor, *rest: object) -> object:
        y = fn(x, *rest)
        m = _at_zero(fn, x.shape[-1], rest[1:])
        fits = m is not None and isinstance(y, Tensor) and y.shape == x.shape
        return y @ m.T.to(y.dtype) if fits else y

    return turned


PATIENCE = 1.5  # seconds: a slower function is not tried beside each right answer in turn


class RopeExercise(Exercise):
    """An exercise with very many right answers: those of `FORMS`, and each followed by a fixed turn."""

    def check(self, fn: Callable, quiet: bool = False) -> Verdict:
        verdict = self._judged(fn)
        if not quiet:
            print(wrapped(verdict.message))
        return verdict

    def _judged(self, fn: Callable) -> Verdict:
        start = time.monotonic()
        found = self._named(fn, FORMS[:1])
        if found is not None or not callable(fn) or time.monotonic() - start > PATIENCE:
            return found or super().check(fn, quiet=True)
        with calm():
            turned = _turned_back(fn)
        back = None if turned is None else self._named(turned, FORMS)
        if back is not None and back.status == "correct":
            note = (
                "In yours position 0 is changed too (turned, or its columns in another order); as that is the same for "
                "all, dot products are right."
            )
            return dataclasses.replace(back, message=f"{back.message}\n{note}", fn=fn)
        found = self._named(fn, FORMS[1:])
        if found is None and back is not None:
            found = dataclasses.replace(back, message=_without_evidence(back), difference=None, fn=fn)
        found = found or self._named(fn, FORMS[:4], at_once=2) or self._named(fn, FORMS[:4], symptoms=SYMPTOMS)
        return found or super().check(fn, quiet=True)

    def _named(self, fn: Callable, forms: Sequence[dict[str, str]], **changes: object) -> Verdict | None:
        """The first verdict that says more than "wrong", when `fn` is judged beside each right answer in turn."""
        parts = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)} | {"symptoms": (), "alternatives": ()}
        for form in forms:
            answer, compound = _answers()[tuple(form.values())], functools.partial(rope_wrongly, **form)
            beside = Exercise(**(parts | {"reference": answer, "compound": compound} | changes))
            verdict = beside.check(fn, quiet=True)
            says = (
                verdict.mistake or verdict.status in ("correct", "not attempted") or "did not finish" in verdict.message
            )
            if says:
                return dataclasses.replace(verdict, exercise=self)
        return None


def _without_evidence(verdict: Verdict) -> str:
    """The message up to where the reader's numbers are shown."""
    return verdict.message.split("\nThe first entry of")[0].split("\nThe result should have")[0]


@functools.cache
def _answers() -> dict[tuple[str, ...], Callable]:
    """The right answers by their forms; always the same functions, so that what they do is computed once."""
    return {tuple(form.values()): _answer(form) for form in FORMS}


def _rises(seen: Seen) -> bool:
    """Frequencies that grow: the angles are so large that float32 keeps two or three digits of their cosines."""
    found = results(seen, edges=False)
    for form in FORMS[:4] if found else ():
        wrong = [rope_wrongly(*probe.make(), exponent="rising", **form) for probe, *_ in found]
        if all((y - w).abs().max() < 0.02 for (*_, y), w in zip(found, wrong, strict=True)):
            return True
    return False


def _lengths_kept(seen: Seen) -> bool | None:
    """Whether every vector is as long as before; None where something else than numbers of the right shape came."""
    found = results(seen)
    pairs = [(p.make()[0].norm(dim=-1), y.float().norm(dim=-1)) for p, _, y in found or []]
    return None if found is None else all(bool(close(before, after).all()) for before, after in pairs)


def _nearly_right(seen: Seen) -> bool:
    """Right to about two digits on every input."""
    found = results(seen)
    return found is not None and all(bool((y - r).abs().max() < 0.02) for _, r, y in found)


def _asked_for_truth(seen: Seen) -> bool:
    """Stops wherever several positions are given, and says that a tensor has no one truth value."""
    several = [len(p.make()) > 1 and len(p.make()[1]) > 1 for p, *_ in seen]
    asked = ["Boolean value of Tensor" in said(g.error) for *_, g in seen]
    return any(asked) and several == asked


SYMPTOMS = (
    CHANGES_INPUT,
    Symptom(
        "nearly_right",
        "Your numbers are right to about two digits. Are the angles, or their sines and cosines, rounded or computed in"
        " half precision? Angles that grow with the position need float32 at least.",
        _nearly_right,
    ),
    Symptom("frequencies_rise", RISE, _rises),
    Symptom(
        "positions_asked_for_truth",
        "Whether positions were given is asked as if they were true or false (positions or ..., if positions), which"
        " has no answer for several numbers, and says no to the single position 0. Ask `if positions is None`.",
        _asked_for_truth,
    ),
    Symptom(
        "positions_wrong",
        "Without the argument positions all is right; with it, it is not. It says where each token stands, (tokens,).",
        lambda seen: right_only_where(seen, lambda probe: len(probe.make()) == 1),
    ),
    Symptom(
        "heads_mixed",
        "With one head of one sequence all is right; with several it is not. Here " + COMMON + ".",
        lambda seen: right_only_where(seen, lambda probe: probe.make()[0].shape[:2] == (1, 1)),
    ),
    MORE_RESULTS,
    ONLY_SHAPE,
    ONLY_VIEW,
    VIEW_AND_MORE,
    NUMPY,
    LIST_RESULT,
)
GENERAL = (  # true beside every right answer, and so tried last
    Symptom(
        "lengths_change",
        "Lengths change: a vector that is turned stays as long as it was, and so does each of its pairs. " + TURN,
        lambda seen: _lengths_kept(seen) is False,
    ),
    Symptom(
        "angles_wrong",
        "Your vectors keep their lengths, as they should, but do not arrive where they should: the angles or the"
        f" pairs are not right. {ANGLE}",
        lambda seen: _lengths_kept(seen) is True,
    ),
)


# ---------------------------------------------------------------- the probes
def _given(b: int, h: int, t: int, d: int, positions: list[int] | None, *base: float, edge: bool = False) -> Probe:
    """x of random numbers, with or without positions."""
    where = "no positions" if positions is None else f"positions {positions}"
    says = f"x ({b}, {h}, {t}, {d}), {where}" + (f", base {base[0]:g}" if base else "")

    def make() -> tuple:
        x = torch.randn(b, h, t, d, generator=torch.Generator().manual_seed(b + 10 * h + 100 * t + 1000 * d))
        given = () if positions is None else (torch.tensor(positions),)
        return (x, *given, *base)

    return Probe(says, make, edge=edge)


ROPE = RopeExercise(
    name="relative.rope",
    reference=lambda x, positions=None, base=10000.0: relative.rope(x, positions, base),
    alternatives=tuple(_answers().values()),
    results=(Result("result", ("batch", "head", "token", "column")),),
    probes=(
        _given(1, 1, 3, 4, None),
        _given(1, 1, 1, 4, [7]),
        _given(2, 3, 5, 8, None),
        _given(2, 3, 3, 4, [1, 4, 20]),
        _given(3, 2, 3, 8, None),
        _given(1, 2, 4, 8, [3, 2, 9, 9]),
        _given(1, 1, 3, 8, [0, 1, 5], 100.0, edge=True),
    ),
    mistakes=ROPE_MISTAKES,
    compound=rope_wrongly,
    symptoms=(*SYMPTOMS, *GENERAL),
    at_once=1,
)
