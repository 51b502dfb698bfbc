"""What the galleries of layer norm and RMS norm share: probes' numbers, the axes of a statistic, and symptoms."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .attention_symptoms import NUMPY, not_finite, right_on_core
from .exercise import Probe, Symptom
from .outcome import Outcome, same_outcome
from .symptoms import CHANGES_INPUT, MORE_RESULTS, ONLY_SHAPE, Seen

__all__ = [
    "COMMON",
    "DIMENSIONS",
    "about_axis",
    "alone_wrong",
    "dims",
    "eps_misplaced",
    "finite_rows",
    "numbers",
    "rounded",
    "shaped",
    "tokens",
    "wrong_on",
]

HALF = "in float16"


def numbers(*shape: int, seed: int) -> Tensor:
    """The same random numbers of this shape in every run."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tokens(*shape: int, seed: int) -> Tensor:
    """Random tokens. With the seeds in use, nothing that a wrong axis may run over has next to no spread by chance."""
    return numbers(*shape, seed=seed) * 1.5 + 0.5


# ---------------------------------------------------------------- axes
def dims(x: Tensor, axis: str) -> tuple[int, ...]:
    """The axes over which a reader's statistic may run."""
    n = x.dim()
    return {
        "last": (-1,),
        "length": (-2,),
        "first": (0,),
        "second": (1,),
        "third": (2,),
        "all_but_last": tuple(range(n - 1)),
        "last_two": tuple(range(max(n - 2, 0), n)),
        "all_but_first": tuple(range(1, n)),
        "everything": tuple(range(n)),
    }[axis]


DIMENSIONS = {  # name of the mistake, and what the statistics are said to run over
    "length": ("over_length", "the second last axis, that of the tokens, so that every token is compared with others"),
    "first": ("over_batch", "axis 0, the batch, so that one sequence changes the others"),
    "second": ("axis_counted_from_front", "axis 1, which is the last only where x has two axes"),
    "third": ("axis_counted_from_front", "axis 2, which is the last only where x has three axes"),
    "all_but_last": (
        "like_batch_norm",
        "all axes but the last, as in batch norm: each column is compared over all tokens of all sequences",
    ),
    "last_two": (
        "over_sequence",
        "the last two axes together: one number for a whole sequence, so that padding and later tokens change a token",
    ),
    "all_but_first": (
        "over_sequence",
        "all axes but the first: one number for a whole sequence, so that padding and later tokens change a token",
    ),
    "everything": ("over_everything", "the whole tensor: one number for all tokens of all sequences"),
}


def about_axis(what: str, axis: str) -> str:
    """A sentence on a statistic over the wrong axis."""
    return f"{what} over {DIMENSIONS[axis][1]}. A token is normalised by itself: over the last axis, dim=-1."


# ---------------------------------------------------------------- gamma and beta
def shaped(parameter: Tensor, use: str) -> Tensor:
    """What a reader may make of gamma or beta."""
    return {
        "first": lambda: parameter[0],
        "mean": lambda: parameter.mean(),
        "sum": lambda: parameter.sum(),
        "rows": lambda: parameter[:, None],
        "one_plus": lambda: 1 + parameter,
        "absolute": lambda: parameter.abs(),
        "squared": lambda: parameter.square(),
        "inverse": lambda: 1 / parameter,
        "minus": lambda: -parameter,
        "softmax": lambda: parameter.softmax(-1),
        "sigmoid": lambda: parameter.sigmoid(),
        "reversed": lambda: parameter.flip(-1),
    }.get(use, lambda: parameter)()


# ---------------------------------------------------------------- symptoms
def wrong_on(seen: Seen) -> list[tuple[Probe, Outcome, Outcome]]:
    """The probes on which the reader is wrong."""
    return [(p, e, g) for p, e, g in seen if not same_outcome(e, g)]


def _narrower(expected: Outcome, given: Outcome) -> bool:
    """Whether the result has a dtype of fewer digits than is expected."""
    a, b = expected.value, given.value
    return isinstance(a, Tensor) and isinstance(b, Tensor) and b.element_size() < a.element_size()


def rounded(seen: Seen) -> bool:
    """Whether every ordinary number is nearly right, and has no more digits than float16 or bfloat16."""
    found = [(e.value, g.value) for p, e, g in seen if not p.edge]
    if any(not isinstance(b, Tensor) or b.shape != a.shape or b.dtype != a.dtype for a, b in found):
        return False
    short = any(
        all(torch.equal(b, b.to(dtype).to(b.dtype)) for _, b in found) for dtype in (torch.half, torch.bfloat16)
    )
    near = all(((a - b).abs() <= 0.03 * (1 + a.abs())).all() for a, b in found)
    return short and near and not right_on_core(seen)


def alone_wrong(*parts: str) -> Callable[[Seen], bool]:
    """Whether a number is wrong on probes whose description contains one of `parts`, and on no other."""

    def shows(seen: Seen) -> bool:
        wrong = wrong_on(seen)
        return (
            bool(wrong)
            and all(
                any(part in p.says for part in parts) and isinstance(g.value, Tensor) and not g.changed
                for p, _, g in wrong
            )
            and not any(_narrower(e, g) for _, e, g in seen)
        )

    return shows


def finite_rows(seen: Seen, plain: str) -> list[Tensor]:
    """What came out on the ordinary probes whose description contains `plain`; empty unless all are finite and fit."""
    found = []
    for probe, expected, given in seen:
        if not probe.edge and plain in probe.says:
            y = given.value
            if (
                given.changed
                or not isinstance(y, Tensor)
                or y.shape != expected.value.shape
                or not y.is_floating_point()
            ):
                return []
            if not y.isfinite().all():
                return []
            found.append(y.double())
    return found


def _eps_required(seen: Seen) -> bool:
    """It takes all arguments, and not without eps."""
    left_out = [(e, g) for p, e, g in seen if "eps left out" in p.says]
    others = [same_outcome(e, g) for p, e, g in seen if "eps left out" not in p.says]
    return all(others) and all(g.error is not None and not g.called for _, g in left_out)


def _nan_where_equal(seen: Seen) -> bool:
    return right_on_core(seen) and any(not_finite(g) for p, _, g in seen if "all numbers equal" in p.says)


def eps_misplaced(seen: Seen) -> bool:
    """Whether numbers are wrong where eps matters, and where it is large in any case."""
    large = [same_outcome(e, g) for p, e, g in seen if "eps 0.5" in p.says]
    return not any(large) and alone_wrong("eps 0.5", "around 0.001", "all numbers equal")(seen)


COMMON = (
    NUMPY,
    Symptom(
        "eps_required",
        "It cannot be called without eps: give the argument its default.",
        _eps_required,
    ),
    CHANGES_INPUT,
    MORE_RESULTS,
    ONLY_SHAPE,
    Symptom(
        "nan_on_equal_numbers",
        "Where all numbers of a token are equal, nan or inf comes out: what you divide by is 0 there, and 0 / 0 is "
        "nan. Preventing that is what eps is for: add it under the root.",
        _nan_where_equal,
    ),
    Symptom(
        "eps_default",
        "It is right where eps is given, and wrong where eps is left out: its default is not the one that is asked "
        "for.",
        alone_wrong("eps left out"),
    ),
    Symptom(
        "rounded",
        "Your numbers are nearly right, and have no more digits than a float16 or a bfloat16: something is converted "
        "on the way (half, bfloat16). Compute in float32.",
        rounded,
    ),
    Symptom(
        "half_precision",
        "It is right in float32, and wrong in float16, where numbers end at 65504 and have three digits: the square of "
        "300 does not fit. Convert first, x.float(), compute everything, and convert back at the end.",
        alone_wrong(HALF),
    ),
)
