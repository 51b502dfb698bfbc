"""Symptoms that several exercises share: mistakes that are told by what came out, not by a wrong implementation."""

from __future__ import annotations

import itertools
import operator

import torch
from torch import Tensor

from .exercise import Probe, Seen, Symptom
from .outcome import Outcome, same_outcome, same_value


def _errors(seen: Seen) -> list[BaseException]:
    """What was raised where the reference raises nothing."""
    return [given.error for probe, _, given in seen if not (probe.raises or given.refused) and given.error is not None]


def is_right(probe: Probe, expected: Outcome, given: Outcome) -> bool:
    """Whether the reader's outcome on a probe is the expected one, or the refusal that the probe asks for."""
    if probe.raises:
        return isinstance(given.error, probe.raises)
    return given.refused or same_outcome(expected, given)


def _float_size(seen: Seen) -> bool:
    errors = _errors(seen)
    return len(errors) == sum(not probe.raises for probe, _, _ in seen) and all(_is_float_size(e) for e in errors)


def _is_float_size(error: BaseException) -> bool:
    said = str(error)
    return isinstance(error, TypeError) and (
        ("must be tuple of ints" in said and "float" in said)
        or "'float' object cannot be interpreted as an integer" in said
        or "slice indices must be integers" in said
        or ("(position" in said and "must be int, not float" in said)
    )


def _view_error(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and "view size is not compatible" in str(error)


def _only_view_fails(seen: Seen) -> bool:
    errors = _errors(seen)
    others = [is_right(*s) for s in seen if s[2].error is None or s[0].raises]
    return bool(errors) and all(map(_view_error, errors)) and all(others)


def _view_fails(seen: Seen) -> bool:
    errors = _errors(seen)
    return bool(errors) and all(map(_view_error, errors))


def _only_changes_input(seen: Seen) -> bool:
    """The results are right wherever it runs, and some argument is changed."""
    ran = [(e, g) for p, e, g in seen if not (p.raises or g.refused)]
    values = all(g.error is None and same_value(e.value, g.value) for e, g in ran)
    return values and any(g.changed for _, g in ran)


def _right_and_more(seen: Seen) -> bool:
    """A tuple that begins with the right result (or results) and goes on."""
    for probe, expected, given in seen:
        if probe.raises or given.refused:
            continue
        right = expected.value if isinstance(expected.value, list) else [expected.value]
        value = given.value
        if not isinstance(value, list) or len(value) <= len(right) or not same_value(value[: len(right)], right):
            return False
    return True


def _only_shape(seen: Seen) -> bool:
    """Every number is right and in order; only axes of size 1, axes made one, or one made two, stand in the way."""
    shapes_differ = False
    for probe, expected, given in seen:
        if probe.raises or given.refused:
            continue
        right = expected.value if isinstance(expected.value, list) else [expected.value]
        value = given.value if isinstance(expected.value, list) else [given.value]
        if not isinstance(value, list) or len(value) != len(right):
            return False
        for a, b in zip(right, value, strict=True):
            if not isinstance(b, Tensor) or a.numel() != b.numel() or not same_value(a, b.reshape(a.shape)):
                return False
            steps, mine = (set(itertools.accumulate(x.shape, operator.mul)) for x in (a, b))
            if not (steps <= mine or mine <= steps):  # axes are merged and cut at the same time
                return False
            shapes_differ = shapes_differ or a.shape != b.shape
    return shapes_differ


def _ordinary(seen: Seen) -> list[tuple[Outcome, Outcome]]:
    return [(e, g) for p, e, g in seen if not (p.edge or p.raises)]


def _nothing(seen: Seen) -> bool:
    return all(g.error is None and g.value is None for _, g in _ordinary(seen))


def _plain(x: object) -> object:
    """Nested lists of numbers of a list, an array or a tensor."""
    if isinstance(x, list):
        return [_plain(item) for item in x]
    return x.tolist() if hasattr(x, "tolist") else x


def _not_a_tensor(seen: Seen) -> bool:
    """A list or a NumPy array in the place of one tensor, all numbers right."""
    for e, g in _ordinary(seen):
        array = type(g.value).__module__ == "numpy"
        if not isinstance(e.value, Tensor) or not (array or isinstance(g.value, list)):
            return False
        try:
            mine = torch.tensor(_plain(g.value), dtype=torch.float64)
        except (TypeError, ValueError, RuntimeError):
            return False
        if not same_value(e.value.double(), mine):
            return False
    return True


def _half(seen: Seen) -> bool:
    halves = (torch.float16, torch.bfloat16)
    return all(
        isinstance(g.value, Tensor) and g.value.dtype in halves and same_value(e.value, g.value)
        for e, g in _ordinary(seen)
    )


FLOAT_SIZE = Symptom(
    "float_size",
    "One of the sizes in your code is a float: / gives a float even where the division comes out even, and "
    "a size or a slice needs a whole number. The width of a head is d_model // n_heads, with two strokes.",
    _float_size,
)
VIEW_FAILS = "view can only regroup axes that lie one after another in memory, and a transposed tensor no longer does"
ONLY_VIEW = Symptom(
    "view_not_contiguous",
    f"The idea is right, but view cannot do it: {VIEW_FAILS}. Use reshape, or call .contiguous() before view.",
    _only_view_fails,
)
VIEW_AND_MORE = Symptom(
    "view_not_contiguous",
    f"It stops at a view: {VIEW_FAILS}. Use reshape, or call .contiguous() before view, and check again: "
    "whether the axes are in the right order then shows only after that.",
    _view_fails,
)
CHANGES_INPUT = Symptom(
    "changes_input",
    "What you return is right, but the call leaves one of its inputs changed, and whoever uses that next gets "
    "something else.",
    _only_changes_input,
)


MORE_RESULTS = Symptom(
    "more_results",
    "The right result is among what you return, but together with something else: return nothing more than "
    "is asked for.",
    _right_and_more,
)
ONLY_SHAPE = Symptom(
    "only_shape",
    "All numbers are right and in the right order; only the shape is not: axes of size 1 are missing or too many, axes "
    "have become one, or one is cut in two. reshape, squeeze or unsqueeze at the end mends that.",
    _only_shape,
)
SHAPE_SYMPTOMS = (FLOAT_SIZE, ONLY_VIEW, VIEW_AND_MORE, CHANGES_INPUT, MORE_RESULTS, ONLY_SHAPE)
NOTHING = Symptom(
    "returns_nothing",
    "Your function gives nothing back: whatever it computes is lost at its end. A function returns what stands behind "
    "the word return.",
    _nothing,
)
NOT_A_TENSOR = Symptom(
    "not_a_tensor",
    "All numbers are right, but they come as a list or a NumPy array: torch.tensor makes a tensor of numbers, and "
    "torch.stack one of tensors.",
    _not_a_tensor,
)
HALF_PRECISION = Symptom(
    "half_precision",
    "The numbers are right as far as half precision reaches, but that is the dtype of your result: it should be "
    "float32.",
    _half,
)
KIND_SYMPTOMS = (NOTHING, NOT_A_TENSOR, HALF_PRECISION)
