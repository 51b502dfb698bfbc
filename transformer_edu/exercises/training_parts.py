"""What the exercises of lesson 09 share: numbers of any kind, and losses that are judged with their gradient."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from .exercise import Exercise, Mistake, Probe, Symptom
from .outcome import Outcome, same_outcome
from .sandbox import Budget
from .symptoms import Seen

__all__ = ["LossExercise", "core", "number", "number_of", "one", "right_only_without", "settled_number"]


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


PER_TOKEN = Symptom(
    "not_reduced",
    "Your loss is still a tensor with several numbers, where one is asked for: add up what the real tokens give and "
    "divide by their number.",
    per_token,
)
