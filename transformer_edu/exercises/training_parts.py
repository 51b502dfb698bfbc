"""What the exercises of lesson 09 share: numbers of any kind, and losses that are judged with their gradient."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from .exercise import Exercise, Mistake, Probe, Symptom
from .outcome import Outcome, said, same_outcome
from .sandbox import Budget
from .symptoms import Seen

__all__ = [
    "LOSS_SYMPTOMS",
    "PER_TOKEN",
    "LossExercise",
    "core",
    "losses",
    "number",
    "number_of",
    "one",
    "right_only_without",
    "settled_number",
]


def one(
    key: str, name: str, sentence: str, *values: str, edge: bool = False, alone: bool = False, rare: bool = False
) -> tuple[Mistake, ...]:
    """One mistake that one switch makes, in each of several positions."""
    return tuple(Mistake(name, sentence, switches={key: v}, edge=edge, alone=alone, rare=rare) for v in values)


def number_of(x: object) -> object:
    """A number that came as a tensor or an array of one entry, as a Python number; all else as it is."""
    if isinstance(x, (Tensor, np.ndarray, np.generic)) and np.prod(x.shape) == 1:
        return x.item()
    return x


def settled_number(_: tuple, value: object) -> object:
    """For `Exercise.settled`: which kind of number it is does not matter."""
    return number_of(value)


def number(outcome: Outcome) -> float | None:
    """The finite number that came out, if one did."""
    x = outcome.value
    fits = outcome.error is None and isinstance(x, (int, float)) and not isinstance(x, bool)
    return float(x) if fits and np.isfinite(x) else None


def core(seen: Seen) -> Seen:
    """What was seen on the probes that are no edge cases."""
    return [s for s in seen if not s[0].edge]


def right_only_without(seen: Seen, *parts: str, raised: bool | None = None) -> bool:
    """Whether the reader is wrong wherever the description has one of `parts`, and nowhere else.

    `raised`: whether each of those must, or must not, be an error.
    """
    wrong = [(p, g) for p, e, g in seen if not same_outcome(e, g)]
    there = [p for p, _, _ in seen if any(part in p.says for part in parts)]
    return (
        bool(wrong)
        and [p for p, _ in wrong] == there
        and all(raised is None or (g.error is not None) == raised for _, g in wrong)
    )


# ---------------------------------------------------------------- losses with their gradient
class LossExercise(Exercise):
    """The function is given logits that want a gradient; judged are the gradient and the loss."""

    def observed(self, fn: Callable, probe: Probe, budget: Budget | None = None) -> Outcome:
        """What `fn` does on `probe`, as [gradient of the logits, loss]."""
        outcome = super().observed(_with_gradient(fn), probe, budget)
        if isinstance(outcome.error, TypeError):  # from within the function, or from the call of it?
            frames = traceback.extract_tb(outcome.error.__traceback__)
            outcome.called = frames[-1].name != "watched"
        return outcome


def _with_gradient(fn: Callable) -> Callable:
    def watched(logits: Tensor, *others: object) -> list:
        leaf = logits.clone().requires_grad_()
        given = leaf.clone()  # no leaf, so that a function that changes it in place gets no further error for that
        loss = fn(given, *others)
        changed = given.shape != logits.shape or not torch.equal(given.detach(), logits)
        if changed:
            logits.add_(1.0)  # what the reader changed is a copy: the argument itself is changed in its place
        gradient = None
        if isinstance(loss, Tensor) and loss.requires_grad:
            with contextlib.suppress(RuntimeError) if changed else contextlib.nullcontext():
                (gradient,) = torch.autograd.grad(loss.sum(), leaf, allow_unused=True)
        return [torch.zeros_like(leaf) if gradient is None else gradient, number_of(loss)]

    return watched


def losses(seen: Iterable, *, edges: bool = True) -> list[tuple[Probe, float, float]] | None:
    """(probe, right loss, reader's) where numbers came out; None unless they always did."""
    found = []
    for probe, expected, given in seen:
        if probe.edge and not edges:
            continue
        value = given.value
        if given.error is not None or given.changed or not isinstance(value, list) or len(value) != 2:
            return None
        mine = value[1]
        if isinstance(mine, bool) or not isinstance(mine, (int, float)) or not np.isfinite(mine):
            return None
        found.append((probe, float(expected.value[1]), float(mine)))
    return found


def per_token(seen: Seen) -> bool:
    """Whether a loss came out for each target instead of one for all."""
    shown = [(e, g) for p, e, g in seen if not p.edge]
    several = [
        isinstance(g.value, list) and len(g.value) == 2 and isinstance(g.value[1], Tensor) and g.value[1].numel() > 1
        for _, g in shown
    ]
    return sum(several) >= 2


def _core_losses(seen: Seen) -> list[tuple[Tensor, Tensor, float, float]] | None:
    """(right gradient, reader's, right loss, reader's) on the ordinary probes; None unless all are finite and fit."""
    if losses(seen, edges=False) is None:
        return None
    return [(e.value[0], g.value[0], float(e.value[1]), float(g.value[1])) for _, e, g in core(seen)]


def _constant_factor(seen: Seen) -> bool:
    """Loss and gradient are always the right ones times one number."""
    found = _core_losses(seen) or [(torch.ones(1), torch.ones(1), 1.0, 1.0)]
    ratio = found[0][3] / found[0][2]
    return (
        abs(ratio - 1) > 1e-3
        and abs(ratio) > 1e-3
        and all(
            abs(b - ratio * a) <= 1e-3 * abs(b) and torch.allclose(y, ratio * x, rtol=1e-3, atol=1e-4)
            for x, y, a, b in found
        )
    )


def _constant_added(seen: Seen) -> bool:
    """The gradient is always right, the loss is not."""
    found = _core_losses(seen) or []
    gradients = all(torch.allclose(x, y, rtol=1e-4, atol=1e-4) for x, y, _, _ in found)
    return gradients and any(abs(a - b) > 1e-3 for _, _, a, b in found)


def _gradient_wrong(seen: Seen) -> bool:
    """The loss is always right, and its gradient is not."""
    found = _core_losses(seen) or []
    gradients = all(torch.allclose(x, y, rtol=1e-4, atol=1e-4) for x, y, _, _ in found)
    return not gradients and all(abs(a - b) <= 1e-4 * (1 + abs(a)) for _, _, a, b in found)


def _numpy_refused(seen: Seen) -> bool:
    return any("Can't call numpy() on Tensor that requires grad" in said(g.error) for _, _, g in seen)


LOSS_SYMPTOMS = (
    Symptom(
        "numpy_used",
        "NumPy knows no gradients, and a loss without a gradient trains nothing: compute it with torch alone.",
        _numpy_refused,
    ),
    Symptom(
        "gradient_wrong",
        "The loss is right, but its gradient is not: some part of it is computed without gradient (detach, no_grad, "
        ".data, .item()).",
        _gradient_wrong,
    ),
    Symptom(
        "constant_factor",
        "Your loss is always the right one times one and the same number, and so is its gradient: nothing multiplies "
        "the mean of -log p.",
        _constant_factor,
    ),
    Symptom(
        "constant_added",
        "The gradient is right and the loss is not: you add or subtract something that does not depend on the logits.",
        _constant_added,
    ),
)
PER_TOKEN = Symptom(
    "not_reduced",
    "Your loss is still a tensor with several numbers, where one is asked for: add up what the real tokens give and "
    "divide by their number.",
    per_token,
)
