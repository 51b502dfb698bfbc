"""What the outcomes alone tell about a wrong feed-forward layer, where no wrong implementation stands for it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .attention_symptoms import NUMPY, right_on_core
from .exercise import Symptom
from .outcome import Outcome, close, said, same_outcome
from .symptoms import CHANGES_INPUT, MORE_RESULTS, ONLY_SHAPE, Seen

__all__ = ["AXES", "ENDINGS", "OPENINGS", "REPEATED", "SIGNS", "linear", "off_by_a_constant", "outcomes", "tensors"]

FINE = (torch.float32, torch.float64)
AXES = ("batch", "token", "column")
REPEATED = "x of shape (2, 3, 4) in which one token stands twice, d_ff 7"
SIGNS = ("x of shape (1, 2, 3), d_ff 4", "the same negated", "the same doubled", "the same with x = 0")  # same weights


def tensors(seen: Seen) -> list[tuple[Tensor, Tensor]] | None:
    """(expected, given) of every probe that is no edge case; None unless all gave finite tensors of the right shape."""
    pairs = [(e.value, g.value) for p, e, g in seen if not p.edge]
    fine = all(
        isinstance(y, Tensor) and y.shape == x.shape and y.dtype in FINE and y.isfinite().all() for x, y in pairs
    )
    return pairs if fine and pairs else None


def outcomes(seen: Seen, *starts: str) -> list[tuple[Outcome, Outcome]]:
    """(expected, given) of the probes that are described by these words, in the order of the words."""
    return [next((e, g) for p, e, g in seen if p.says.startswith(start)) for start in starts]


def _errors(seen: Seen) -> list[str]:
    """The texts of the errors, where every probe raised one; else nothing."""
    errors = [g.error for _, _, g in seen]
    return [said(error) for error in errors] if all(errors) else []


def _everywhere(*parts: str) -> Callable[[Seen], bool]:
    return lambda seen: bool(_errors(seen)) and all(any(p in text for p in parts) for text in _errors(seen))


def _width_d_ff(seen: Seen) -> bool:
    """All results have width d_ff, and some of these differ from d_model."""
    differs = False
    for probe, expected, given in seen:
        if probe.edge:
            continue
        right, mine = expected.value.shape, given.value.shape if isinstance(given.value, Tensor) else ()
        d_ff = probe.make()[1].shape[1]
        if tuple(mine) != (*right[:-1], d_ff):
            return False
        differs = differs or d_ff != right[-1]
    return differs


def _tells_places_apart(seen: Seen) -> bool:
    """One token, standing at two places, comes out as two different ones."""
    ((expected, given),) = outcomes(seen, REPEATED)
    value = given.value
    if not isinstance(value, Tensor) or value.shape != expected.value.shape or not value.isfinite().all():
        return False
    return not bool(close(value[0, 0], value[1, 2]).all())


def _linear(seen: Seen) -> bool:
    """f(x) and f(-x) lie opposite each other about f(0), and f(2 x) lies twice as far from it."""
    values = [g.value for _, g in outcomes(seen, *SIGNS)]
    if tensors(seen) is None:
        return False
    plus, minus, twice, zero = values
    opposite, far = close(plus - zero, zero - minus).all(), close(twice - zero, 2 * (plus - zero)).all()
    return bool(opposite and far) and not bool(close(plus, minus).any())


def _off_by_a_constant(seen: Seen) -> bool:
    """In each result every token is off by the same numbers."""
    pairs = tensors(seen)
    if pairs is None:
        return False
    gaps = [(given - right).flatten(0, -2) for right, given in pairs]
    return all(bool(close(gap, gap[:1].expand_as(gap)).all()) for gap in gaps) and any(
        g.abs().max() > 1e-2 for g in gaps
    )


def _a_multiple(seen: Seen) -> bool:
    """Every result is the right one times a number of its own."""
    pairs = tensors(seen)
    if pairs is None:
        return False
    for right, given in pairs:
        factor = (right * given).sum() / (right * right).sum()
        if abs(factor) < 1e-2 or not bool(close(given, factor * right).all()):
            return False
    return True


def _x_too_much(seen: Seen) -> bool:
    """Every result is the right one plus the same multiple of x."""
    factors = []
    for probe, expected, given in seen:
        x = probe.make()[0]
        if probe.edge or not x.any():
            continue
        if tensors(seen) is None:
            return False
        gap = given.value - expected.value
        factor = (gap * x).sum() / (x * x).sum()
        if abs(factor) < 1e-2 or not bool(close(gap, factor * x).all()):
            return False
        factors.append(factor)
    return bool(factors) and bool(close(torch.stack(factors), factors[0]).all())


def _fails_without_a_batch(seen: Seen) -> bool:
    """Right on every ordinary input, and an error or another shape where there is no axis for the batch."""
    return right_on_core(seen) and any(
        p.edge and p.make()[0].dim() == 2 and (g.error is not None or getattr(g.value, "shape", None) != e.value.shape)
        for p, e, g in seen
    )


def _right_without_a_batch_alone(seen: Seen) -> bool:
    """Right where x has two axes; an error, or a result of another shape, where it has three."""
    two = [same_outcome(e, g) for p, e, g in seen if p.make()[0].dim() == 2]
    three = [(e.value.shape, g) for p, e, g in seen if p.make()[0].dim() == 3]
    return all(two) and all(g.error is not None or getattr(g.value, "shape", None) != shape for shape, g in three)


OPENINGS = (
    NUMPY,
    Symptom(
        "python_max",
        "Python's max, if, and, or need a single True or False, and a comparison of a whole tensor has no one answer. "
        "Torch works entry by entry: torch.relu(h), h.clamp(min=0), or torch.where(h > 0, h, 0.0).",
        _everywhere("Boolean value of Tensor"),
    ),
    Symptom(
        "max_with_indices",
        "torch.max with a second argument of 0 takes the largest entries along axis 0, and gives their indices as "
        "well. What is wanted is each entry, or 0 where it is negative: torch.relu, or clamp(min=0).",
        _everywhere("return_types.max"),
    ),
    Symptom(
        "maximum_of_a_number",
        "torch.maximum takes two tensors, not a tensor and the number 0: torch.relu(h) or h.clamp(min=0) does the "
        "same.",
        _everywhere("maximum(): argument", "max() received an invalid combination"),
    ),
    Symptom(
        "class_not_called",
        "nn.ReLU and its like are classes: nn.ReLU(h) makes a layer and computes nothing. Make it first and call it "
        "then, nn.ReLU()(h), or use the function torch.relu (for the others, torch.nn.functional).",
        _everywhere("'ReLU'", "'SiLU'", "'GELU'", "'Sigmoid'"),
    ),
    CHANGES_INPUT,
    MORE_RESULTS,
    ONLY_SHAPE,
    Symptom(
        "two_axes_only",
        "Without a batch, where x is (length, d_model), your result is right; with one it is not. A loop that takes "
        "x[t] for a token gets a whole sequence there, and x[t, i] is a token and no number. Any axes may stand before "
        "the last two: torch's operations, such as x @ w, work on all of them at once.",
        _right_without_a_batch_alone,
    ),
    Symptom(
        "needs_a_batch",
        "With a batch your result is right; without one, where x is (length, d_model), it is not. Count axes from "
        "the right, -1 and -2, and any axes may stand before them; a product with @ does that by itself.",
        _fails_without_a_batch,
    ),
)

ENDINGS = (
    Symptom(
        "one_layer",
        "Your result has width d_ff, as many columns as there are hidden units. The last step must lead back to the "
        "width of x, through the matrix of shape (d_ff, d_model).",
        _width_d_ff,
    ),
    Symptom(
        "residual_inside",
        "Your result is the right one plus a multiple of x. The layer around this function adds x; here it is not "
        "added.",
        _x_too_much,
    ),
    Symptom(
        "scaled",
        "Your numbers are the right ones times some factor: something is multiplied or divided once too often.",
        _a_multiple,
    ),
    Symptom(
        "mixes_positions",
        "Two equal tokens at two places come out different: something depends on the other tokens, or on where a token "
        "stands. Each token must be worked on by itself, with the same weights.",
        _tells_places_apart,
    ),
)


def linear(name: str, sentence: str) -> Symptom:
    """Shown by a result that is linear in x, but for what it is at 0."""
    return Symptom(name, sentence, _linear)


def off_by_a_constant(name: str, sentence: str) -> Symptom:
    """Shown by a result that is off by the same numbers at every token."""
    return Symptom(name, sentence, _off_by_a_constant)
