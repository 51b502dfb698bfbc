"""What the galleries of the plain and the gated feed-forward layer share: what is returned, and the probes."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as F

from .attention_probes import numbers
from .exercise import Mistake, Probe, each
from .feedforward_symptoms import REPEATED, SIGNS

__all__ = ["BY_ITSELF", "ENDS", "ended", "form_mistakes", "formed", "probes", "tokens"]

BY_ITSELF = "Each token must be worked on by itself: changing one token may change its own row of the result only."


# ---------------------------------------------------------------- after the second product
def ended(out: Tensor, x: Tensor, end: str) -> Tensor:
    """What a reader may do to the result that both layers have in common."""
    return {
        "relu": lambda: F.relu(out),
        "sigmoid": lambda: out.sigmoid(),
        "softmax": lambda: out.softmax(-1),
        "residual": lambda: x + out,
        "norm": lambda: F.layer_norm(out, out.shape[-1:]),
        "residual_norm": lambda: F.layer_norm(x + out, out.shape[-1:]),
        "times_x": lambda: out * x,
    }.get(end, lambda: out)()


ENDS = (
    Mistake(
        "residual_inside",
        "You add x to the result: it differs from the right one by exactly x. The layer around this function adds the "
        "residual, so that x would be there twice.",
        switches={"end": "residual"},
        beside="You add x to the result. The layer around this function adds the residual: x would be there twice.",
    ),
    *each(
        "residual_and_norm",
        "You add x and normalise (layer norm). Residual and norm belong to the layer around this function.",
        {"end": "residual_norm"},
    ),
    *each(
        "changes_input",
        "The caller's x is overwritten by your result, which has x added to it (+= works in place). Nothing is added "
        "here, and x must stay as it is.",
        {"inputs": "overwritten", "end": "residual"},
    ),
)


# ---------------------------------------------------------------- what is returned
def formed(out: Tensor, x: Tensor, form: str) -> Tensor:
    """What a reader may return in place of the result."""
    return {
        "first_token": lambda: out[..., 0, :],
        "last_token": lambda: out[..., -1, :],
        "mean": lambda: out.mean(-2),
        "sum": lambda: out.sum(-2),
        "transposed": lambda: out.mT,
        "input": lambda: x,
    }.get(form, lambda: out)()


def form_mistakes(key: str) -> tuple[Mistake, ...]:
    """Results of another form, where the switch is called `key`."""
    return (
        *each(
            "pooled",
            "One row is left of each sequence. The result must have the shape of x, a row for each token.",
            *({key: form} for form in ("mean", "sum", "first_token", "last_token")),
        ),
        *each(
            "axes_exchanged",
            "The last two axes of your result are exchanged: (batch, d_model, length). After a convolution they must "
            "be exchanged back.",
            {key: "transposed"},
        ),
        *each(
            "input_returned",
            "You return x as it came. Is the result of your computation the one that you return?",
            {key: "input"},
        ),
    )


# ---------------------------------------------------------------- probes
def tokens(*shape: int, seed: int, times: float, twice: bool) -> Tensor:
    """Numbers of size about 1, `times` as large; `twice`: the first token of all stands once more as the last."""
    x = numbers(*shape, seed=seed) * times
    if twice:
        x[-1, -1] = x[0, 0]
    return x


def probes(probe: Callable[..., Probe], special: Probe, seed: int) -> tuple[Probe, ...]:
    """The inputs of both layers, smallest first; `special` shows the hidden units, and `seed` is the first of eight."""
    return (
        probe(SIGNS[0], 1, 2, 3, d_ff=4, seed=seed),
        probe(SIGNS[1], 1, 2, 3, d_ff=4, seed=seed, times=-1.0),
        probe("x of shape (2, 3, 4), d_ff 5", 2, 3, 4, d_ff=5, seed=seed + 1),
        probe("x of shape (2, 4, 4), d_ff 4", 2, 4, 4, d_ff=4, seed=seed + 2),
        probe(SIGNS[2], 1, 2, 3, d_ff=4, seed=seed, times=2.0),
        probe(SIGNS[3], 1, 2, 3, d_ff=4, seed=seed, times=0.0),
        special,
        probe(REPEATED, 2, 3, 4, d_ff=7, seed=seed + 4, twice=True),
        probe("x of shape (3, 3, 2), d_ff 3", 3, 3, 2, d_ff=3, seed=seed + 5),
        probe("x of shape (1, 1, 4), d_ff 2", 1, 1, 4, d_ff=2, seed=seed + 6),
        probe("x of shape (3, 4), without a batch, d_ff 5", 3, 4, d_ff=5, seed=seed + 7, edge=True),
    )
