"""Small parts for the probes of lesson 08: what a layer and a stack are made of, with fixed numbers.

Two parts made alike are equal, so that a check can see whether a reader has changed what it was given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import Tensor
from torch.nn import functional as F

from ..attention import scaled_dot_product_attention
from .exercise import Exercise, Probe, Symptom
from .norm_parts import numbers
from .outcome import Outcome, same_value
from .sandbox import Budget
from .symptoms import Seen

__all__ = [
    "D_MODEL",
    "GRADIENT_CUT",
    "Attention",
    "FeedForward",
    "LayerExercise",
    "Norm",
    "Numbers",
    "StackLayer",
    "alone_right",
    "make_parts",
    "table",
]

D_MODEL = 4
Numbers = dict[str, tuple[Tensor, Tensor]]  # what a probe says: right result, reader's


@functools.cache
def _weights(*shape: int, seed: int) -> tuple[Tensor, ...]:
    """Made once; a reader never sees them."""
    return tuple(numbers(*shape, seed=seed))


@dataclass(frozen=True)
class Attention:
    """One head: query (batch, target, d_model) reads key and value (batch, source, d_model)."""

    seed: int

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        w_query, w_key, w_value = _weights(3, D_MODEL, D_MODEL, seed=self.seed)
        query, key = 0.3 * query @ w_query, 0.3 * key @ w_key  # moderate scores, so that no weight is 0 or 1
        return scaled_dot_product_attention(query, key, value @ w_value, mask)[0]


@dataclass(frozen=True)
class FeedForward:
    """Two linear maps with a relu between them, for each token by itself."""

    seed: int

    def __call__(self, x: Tensor) -> Tensor:
        w_in, w_out = _weights(2, D_MODEL, D_MODEL, seed=self.seed)
        return (x @ w_in).relu() @ w_out


@dataclass(frozen=True)
class Norm:
    """A layer norm that has learnt something, so that no two are alike and twice is not the same as once."""

    seed: int

    def __call__(self, x: Tensor) -> Tensor:
        gamma, beta = _weights(2, D_MODEL, seed=self.seed)
        return F.layer_norm(x, (D_MODEL,), 1 + 0.5 * gamma, beta)


@dataclass(frozen=True)
class StackLayer:
    """A layer of a stack: x reads itself under the mask, with a residual."""

    seed: int

    def __call__(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return x + torch.tanh(Attention(self.seed)(x, x, x, mask))


def make_parts() -> SimpleNamespace:
    """The parts of a decoder layer."""
    return SimpleNamespace(
        self_attn=Attention(21), cross_attn=Attention(22), ffn=FeedForward(23),
        norm1=Norm(24), norm2=Norm(25), norm3=Norm(26),
    )  # fmt: skip


class LayerExercise(Exercise):
    """A result may be written into a copy of x, step by step, although torch then cannot take every gradient of it."""

    def observed(self, fn: Callable, probe: Probe, budget: Budget | None = None) -> Outcome:
        """What `fn` does; of gradients it counts only where they do not arrive."""
        outcome = super().observed(fn, probe, budget)
        if any("raised" in gradient for gradient in outcome.gradients):
            outcome.gradients = self.outcome(self.reference, list(self.probes).index(probe)).gradients
        return outcome


# ---------------------------------------------------------------- what the outcomes show
def table(seen: Seen) -> Numbers | None:
    """The results on the ordinary probes; None unless each is a finite tensor of the right shape."""
    found: Numbers = {}
    for probe, expected, given in seen:
        y = given.value
        if not probe.edge:
            if given.error is not None or not isinstance(y, Tensor) or y.shape != expected.value.shape:
                return None
            if not y.is_floating_point() or not y.isfinite().all():
                return None
            found[probe.says] = expected.value, y
    return found


def alone_right(fits: Callable[[Probe], bool]) -> Callable[[Seen], bool]:
    """Whether the numbers are right on every probe that fits, and wrong, but of the right kind, on some other."""

    def right(expected: Outcome, given: Outcome) -> bool:
        return given.error is None and not given.changed and same_value(expected.value, given.value)

    def shows(seen: Seen) -> bool:
        ordinary = [(fits(p), right(e, g)) for p, e, g in seen if not p.edge]
        return (
            table(seen) is not None
            and all(ok for fitting, ok in ordinary if fitting)
            and not all(ok for fitting, ok in ordinary if not fitting)
        )

    return shows


def _only_gradients(seen: Seen) -> bool:
    """Every number is right, and some gradient does not arrive."""
    right = all(g.error is None and not g.changed and same_value(e.value, g.value) for _, e, g in seen)
    return right and any(g.gradients != e.gradients and "none" in g.gradients for _, e, g in seen)


GRADIENT_CUT = Symptom(
    "gradient_cut",
    "The numbers are right, but something cuts the graph (detach, no_grad, .data): what stands before it would learn "
    "nothing.",
    _only_gradients,
)
