"""What the galleries of layer norm and RMS norm share: axes, fraction and eps, gamma, probes, symptoms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from .attention_symptoms import NUMPY, not_finite, right_on_core
from .exercise import Mistake, Probe, Symptom, each, switch
from .outcome import Outcome, close, same_outcome
from .symptoms import CHANGES_INPUT, MORE_RESULTS, ONLY_SHAPE, Seen

__all__ = [
    "COMMON",
    "DIMENSIONS",
    "GAMMA_MISTAKES",
    "HALF",
    "about_axis",
    "alone_wrong",
    "dims",
    "divided",
    "eps_misplaced",
    "eps_mistakes",
    "finite_rows",
    "form_mistakes",
    "formed",
    "gamma_in_a_product",
    "numbers",
    "right_only_with",
    "shaped",
    "small_numbers",
    "times_gamma",
    "tokens",
    "under_the_root",
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


# ---------------------------------------------------------------- the fraction
def divided(above: Tensor, measured: Tensor, eps: float, root: str, place: str) -> Tensor:
    """What is normalised over the root of what measures its size, with eps in any place."""
    if place.startswith("fixed"):
        eps = float(place.removeprefix("fixed_"))
    if place == "numerator":
        above = above + eps
    inside = {
        "outside": lambda: measured,
        "root_outside": lambda: measured,
        "missing": lambda: measured,
        "numerator": lambda: measured,
        "beside": lambda: measured,
        "clamped": lambda: measured.clamp(min=eps),
        "subtracted": lambda: measured - eps,
        "squared": lambda: measured + eps**2,
        "root": lambda: measured + eps**0.5,
        "times": lambda: measured * eps,
        "one_added": lambda: measured + 1,
    }.get(place, lambda: measured + eps)()
    below = {
        "none": lambda: inside,
        "twice": lambda: inside.sqrt().sqrt(),
        "twice_late": lambda: (measured.sqrt() + eps).sqrt(),
        "square": lambda: inside.square(),
        "multiplied": lambda: 1 / inside.sqrt(),
        "multiplied_without_root": lambda: 1 / inside,
    }.get(root, inside.sqrt)()
    if place in ("outside", "twice"):
        below = below + eps
    if place == "root_outside":
        below = below + eps**0.5
    if place == "clamped_late":
        below = measured.sqrt().clamp(min=eps)
    if place == "clamped_length":
        below = (measured * above.shape[-1]).sqrt().clamp(min=eps) / above.shape[-1] ** 0.5
    return above / below + (eps if place == "beside" else 0)


def eps_mistakes(
    *, measured: str, differs: str, token: str, above: str, fixed: str, fixed_at: Sequence[str], default: str
) -> tuple[Mistake, ...]:
    """The mistakes with eps, where `measured` is what it is added to, and `default` its default."""
    under = under_the_root(measured)
    return (
        *each(
            "eps_outside",
            f"You add eps to the root and not under it. {under}. The two differ where {differs} small.",
            {"place": "outside"},
            edge=True,
        ),
        *each(
            "eps_missing",
            f"You do not use eps, which keeps a token of {token} from 0 / 0, which is nan. {under}.",
            {"place": "missing"},
            edge=True,
        ),
        *each("eps_fixed", f"{fixed} {under}.", *switch("place", *(f"fixed_{x}" for x in fixed_at)), edge=True),
        *each(
            "eps_as_minimum",
            f"You use eps as the least value of the {measured} or of its root (clamp, max). {under}.",
            *switch("place", "clamped", "clamped_late", "clamped_length"),
            edge=True,
        ),
        *each(
            "eps_default",
            f"Where eps is left out, yours is not {default}: give the argument that default.",
            *switch("default", *(x for x in ("1e-5", "1e-6", "1e-8", "1e-12", "1e-3", "0") if x != default)),
            edge=True,
        ),
        *each(
            "eps_twice",
            f"You add eps twice, under the root and after it. {under}, and nowhere else.",
            {"place": "twice"},
            edge=True,
        ),
        *each(
            "eps_above",
            f"You add eps to {above}, which prevents nothing. {under}.",
            {"place": "numerator"},
            edge=True,
        ),
        *each(
            "eps_beside",
            "You add eps to the result of the division, which prevents nothing (are parentheses missing around the "
            f"denominator?). {under}.",
            {"place": "beside"},
            edge=True,
        ),
        *each(
            "eps_subtracted",
            f"You subtract eps from the {measured}. {under}.",
            {"place": "subtracted"},
            edge=True,
        ),
        *each("eps_squared", f"You add the square of eps. {under}, as it is.", {"place": "squared"}, edge=True),
        *each(
            "eps_squared",
            f"You add the root of eps. {under}, as it is.",
            {"place": "root"},
            {"place": "root_outside"},
        ),
        *each("eps_multiplied", f"You multiply the {measured} by eps. {under}.", {"place": "times"}),
        *each(
            "one_added",
            f"You add 1 to the {measured} in place of eps, so tokens come out too small.",
            {"place": "one_added"},
        ),
    )


def under_the_root(measured: str) -> str:
    """Where eps belongs."""
    squares = {"variance": "variance", "mean square": "mean of squares"}[measured]
    return f"It belongs under the root, added to the {measured}: sqrt({squares} + eps)"


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


def times_gamma(normed: Tensor, gamma: Tensor, use: str) -> Tensor:
    """What gamma does to the normalised token."""
    weights = shaped(gamma, use)
    return {
        "missing": lambda: normed,
        "before": lambda: normed,
        "added": lambda: normed + weights,
        "dot": lambda: (normed * weights).sum(-1, keepdim=True),
        "dot_dropped": lambda: (normed * weights).sum(-1),
    }.get(use, lambda: normed * weights)()


GAMMA_MISTAKES = (
    *each(
        "one_plus_gamma",
        "You multiply by 1 + gamma, as some systems do whose gamma starts at 0. Here gamma starts at 1 and multiplies "
        "as it is.",
        {"scale": "one_plus"},
    ),
    *each("gamma_added", "You add gamma: it multiplies.", {"scale": "added"}),
    *each("divided_by_gamma", "You divide by gamma: multiply by it.", {"scale": "inverse"}),
    *(
        Mistake(
            "one_gamma_for_all",
            f"You multiply all columns by one and the same number, the {which} of gamma: it holds one number for each "
            "column, (d_model,).",
            switches={"scale": which},
        )
        for which in ("first", "mean", "sum")
    ),
    *each(
        "gamma_along_tokens",
        "You give gamma a new last axis, so that it lies along the tokens: it holds one number for each column, "
        "(d_model,), and broadcasts as it is.",
        {"scale": "rows"},
    ),
    *each("gamma_squared", "You multiply by gamma twice.", {"scale": "squared"}),
    *each("gamma_sign_lost", "You multiply by the absolute value of gamma: it may be negative.", {"scale": "absolute"}),
    *each("gamma_squeezed", "You multiply by the softmax of gamma: it multiplies as it is.", {"scale": "softmax"}),
    *each("gamma_squeezed", "You multiply by the sigmoid of gamma: it multiplies as it is.", {"scale": "sigmoid"}),
    *each("gamma_reversed", "You use gamma in reverse order.", {"scale": "reversed"}),
)


def gamma_in_a_product(*others: Mapping[str, str]) -> tuple[Mistake, ...]:
    """A dot product with gamma; `others` are switches that may come with it."""
    return each(
        "gamma_in_a_product",
        "You take the dot product of each token with gamma (@, or a sum after the product), one number for each token: "
        "gamma multiplies each column by itself, with *.",
        *({"scale": use, **other} for other in ({}, *others) for use in ("dot", "dot_dropped")),
    )


# ---------------------------------------------------------------- what is returned, and what becomes of the inputs
def formed(x: Tensor, result: Tensor, form: str) -> Tensor:
    """What a reader may return in place of the result."""
    return {
        "input": lambda: x,
        "residual": lambda: x + result,
        "transposed": lambda: result.transpose(-2, -1),
        "averaged": lambda: result.mean(-1),
        "first_row": lambda: result[0],
        "softmax": lambda: result.softmax(-1),
    }.get(form, lambda: result)()


def form_mistakes(name: str) -> tuple[Mistake, ...]:
    """Right numbers that are not what is returned; `name` is the norm's."""
    return (
        *each("input_returned", "You return x as it came.", {"form": "input"}, alone=True),
        *each(
            "residual_added",
            "You add x to the result. The residual connection comes later: here the norm alone is asked for.",
            {"form": "residual"},
        ),
        *each(
            "transposed",
            "The last two axes of your result are exchanged: it has the shape of x.",
            {"form": "transposed"},
        ),
        *each(
            "averaged",
            "You return the average of each token: every column is kept.",
            {"form": "averaged"},
            alone=True,
        ),
        *each(
            "first_row_alone",
            "You return the first row or sequence alone: all are asked for.",
            {"form": "first_row"},
            alone=True,
        ),
        *each("clipped", "You cut the normalised numbers off at -1 and 1: they may be larger.", {"form": "clipped"}),
        *each("softmax_after", f"You apply a softmax at the end: {name} has none.", {"form": "softmax"}),
        *each(
            "changes_gamma",
            "The caller's gamma is changed: an operation in place (*=, mul_) works on it.",
            {"inputs": "gamma_changed"},
        ),
    )


# ---------------------------------------------------------------- probes
def without_eps(make: Callable[[], tuple]) -> Callable[[], tuple]:
    """The arguments but the last, which is eps."""
    return lambda: make()[:-1]


def small_numbers(given: Callable[[Callable[[], Tensor]], Callable[[], tuple]]) -> tuple[Probe, ...]:
    """Two probes on which eps matters; `given` makes the arguments of an x."""
    return (
        Probe("x of shape (2, 4), numbers around 0.001", given(lambda: numbers(2, 4, seed=7) * 1e-3), edge=True),
        Probe(
            "x of shape (2, 4), numbers around 0.001, eps left out",
            without_eps(given(lambda: numbers(2, 4, seed=8) * 1e-3)),
            edge=True,
        ),
    )


# ---------------------------------------------------------------- symptoms
def right_only_with(seen: Seen, plain: str) -> bool:
    """Right on the ordinary probes whose description contains `plain`, of the right shape and wrong on all others."""
    same = [(e, g) for p, e, g in seen if not p.edge and plain in p.says]
    other = [(e, g) for p, e, g in seen if not p.edge and plain not in p.says]
    tensors = all(isinstance(g.value, Tensor) and g.value.shape == e.value.shape for e, g in (*same, *other))
    return (
        tensors
        and all(close(e.value, g.value).all() and not g.changed for e, g in same)
        and not any(close(e.value, g.value).all() for e, g in other)
    )


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
