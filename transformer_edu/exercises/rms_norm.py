"""The exercise rms_norm of lesson 05: one wrong implementation with switches, its mistakes, and the probes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .. import norms
from .exercise import Exercise, Mistake, Probe, Result, Symptom, each, switch
from .norm_parts import (
    COMMON,
    DIMENSIONS,
    GAMMA_MISTAKES,
    HALF,
    about_axis,
    dims,
    divided,
    eps_misplaced,
    eps_mistakes,
    finite_rows,
    form_mistakes,
    formed,
    gamma_in_a_product,
    right_only_with,
    small_numbers,
    times_gamma,
    tokens,
    under_the_root,
)
from .symptoms import Seen

__all__ = ["RMS_NORM"]


# ---------------------------------------------------------------- one wrong implementation
def _measured(x: Tensor, over: tuple[int, ...], size: str, keepdim: bool, eps: float) -> Tensor:
    """What stands under the root, before eps."""

    def mean(y: Tensor) -> Tensor:
        return y.mean(over, keepdim=keepdim)

    return {
        "mean_square": lambda: mean(x.square()),
        "sum": lambda: x.square().sum(over, keepdim=keepdim),
        "one_less": lambda: x.square().sum(over, keepdim=keepdim) / (x.shape[-1] - 1),
        "variance": lambda: x.var(over, correction=0, keepdim=keepdim),
        "unbiased": lambda: x.var(over, correction=1, keepdim=keepdim),
        "mean": lambda: mean(x),
        "square_of_mean": lambda: mean(x).square(),
        "absolute": lambda: mean(x.abs()),
        "square_of_absolute": lambda: mean(x.abs()).square(),
        "square_of_largest": lambda: x.abs().amax(over, keepdim=keepdim).square(),
        "largest": lambda: x.abs().amax(over, keepdim=keepdim),
        "over_rows": lambda: x.square().sum(over, keepdim=keepdim) / len(x),
        "over_second": lambda: x.square().sum(over, keepdim=keepdim) / x.shape[1],
        "sum_absolute": lambda: x.abs().sum(over, keepdim=keepdim).square(),
        "root_before_mean": lambda: mean((x.square() + eps).sqrt()),
        "root_of_sum": lambda: (x.square().sum(over, keepdim=keepdim).sqrt() / x.shape[-1]).square(),
        "ones": lambda: torch.ones(()),
        "median": lambda: x.square().median(-1, keepdim=keepdim).values,
        "mean_of_fourth": lambda: mean(x**4),
        "sum_times_width": lambda: x.square().sum(over, keepdim=keepdim) * x.shape[-1],
    }[size]()


def normalise(
    x: Tensor,
    gamma: Tensor,
    eps: float | None = None,
    *,
    default: str = "1e-6",
    axis: str = "last",
    kept: str = "yes",
    centre: str = "none",
    size: str = "mean_square",
    root: str = "root",
    place: str = "inside",
    scale: str = "right",
    precision: str = "wide",
    form: str = "right",
    inputs: str = "kept",
) -> object:
    """One wrong implementation of RMS norm; with no switch set it is right."""
    eps = float(default) if eps is None else eps
    wide = x.clone() if precision == "half" else x.to(torch.float32, copy=True)
    if scale == "before":
        wide = wide * gamma
    over = dims(x, axis)
    above = wide - wide.mean(over, keepdim=True) if centre in ("both", "above") else wide
    below = wide - wide.mean(over, keepdim=True) if centre == "both" else wide
    if precision == "half_square":
        below = x.clone()
    measured = _measured(below, over, size, kept == "yes", eps)
    if form == "absolute":
        above = above.abs()
    if form == "square":
        above = above.square()
    normed = divided(above, measured, eps, root, place)
    if inputs == "x_changed" or (inputs == "x_changed_in_float32" and x.dtype == torch.float32):
        x /= 2
    if inputs == "gamma_changed":
        gamma *= 1.5
    if form == "clipped":
        normed = normed.clamp(-1, 1)
    result = times_gamma(normed, gamma, scale).to(x.dtype)
    return {
        "size": lambda: measured,
        "root_of_size": lambda: (measured + eps).sqrt(),
    }.get(form, lambda: formed(x, result, form))()


# ---------------------------------------------------------------- the gallery
RMS_MISTAKES = (
    *each(
        "mean_subtracted",
        "You subtract the mean first, which is layer norm. RMS norm subtracts nothing: it divides x by the root of the "
        "mean of its squares.",
        {"centre": "both"},
        {"centre": "both", "size": "unbiased"},
        {"centre": "above", "size": "variance"},
    ),
    *each(
        "mean_subtracted",
        "You subtract the mean above the fraction line: RMS norm divides x as it is.",
        {"centre": "above"},
    ),
    *each(
        "standard_deviation",
        "You divide by the standard deviation (x.std or x.var), which subtracts the mean from x: it must be the root "
        "of the mean of x squared.",
        {"size": "variance"},
        {"size": "unbiased"},
    ),
    *each(
        "sum_of_squares",
        "You divide by the root of the sum of the squares, so every token has length 1 (as with F.normalize): it must "
        "be their mean, and the result is larger by sqrt(d_model).",
        {"size": "sum"},
        {"size": "sum", "place": "clamped_late"},
        {"size": "sum", "place": "missing"},
    ),
    *each(
        "wrong_count",
        "You divide the sum of the squares by len(x), which is the size of the first axis: the number of columns is "
        "x.shape[-1].",
        {"size": "over_rows"},
    ),
    *each(
        "wrong_count",
        "You divide the sum of the squares by x.shape[1], which counts the columns only where x has two axes: their "
        "number is x.shape[-1].",
        {"size": "over_second"},
    ),
    *each(
        "one_less",
        "You divide the sum of the squares by d_model - 1: no mean is subtracted, so it is d_model.",
        {"size": "one_less"},
    ),
    *each(
        "not_squared",
        "Under your root stands the mean of x, not squared: it must be the mean of x squared.",
        {"size": "mean"},
    ),
    *each(
        "squared_after_the_mean",
        "You square the mean, where you must take the mean of the squares: square first.",
        {"size": "square_of_mean"},
    ),
    *each(
        "mean_of_absolute_values",
        "You divide by the mean of the absolute values: it must be the root of the mean of the squares.",
        {"size": "square_of_absolute"},
        {"size": "absolute", "root": "none"},
    ),
    *each(
        "mean_of_absolute_values",
        "Under your root stands the mean of the absolute values: it must be the mean of the squares.",
        {"size": "absolute"},
    ),
    *each(
        "mean_of_absolute_values",
        "You take the root of each square before the mean is taken, which leaves absolute values: first the mean of "
        "the squares, then its root.",
        {"size": "root_before_mean", "root": "none", "place": "missing"},
    ),
    *each(
        "sum_of_absolute_values",
        "You divide by the sum of the absolute values: it must be the root of the mean of the squares.",
        {"size": "sum_absolute"},
    ),
    *each(
        "divided_by_largest",
        "You divide by the largest absolute value: it must be the root of the mean of the squares.",
        {"size": "square_of_largest"},
        {"size": "largest", "root": "none"},
    ),
    *each(
        "mean_outside_the_root",
        "You take the root of the sum first and divide by d_model after it: the mean belongs under the root.",
        {"size": "root_of_sum"},
    ),
    *each(
        "length_times_root",
        "You divide by the length of x times sqrt(d_model), where the root of the mean of the squares is that length "
        "divided by sqrt(d_model).",
        {"size": "sum_times_width"},
        {"size": "sum_times_width", "place": "missing"},
        {"size": "sum_times_width", "place": "clamped_late"},
    ),
    *each(
        "not_divided",
        "You divide by nothing: the size of the token stays what it was.",
        {"size": "ones", "place": "missing"},
    ),
    *each("median", "You take the median of the squares: it must be their mean.", {"size": "median"}),
    *each(
        "squared_twice",
        "You take the mean of the fourth powers: the squares are squared again.",
        {"size": "mean_of_fourth"},
    ),
    *each(
        "no_root",
        "You divide by the mean of the squares and not by its root, so a token with ten times larger numbers comes out "
        "ten times smaller, where it should come out the same.",
        {"root": "none"},
    ),
    *each("root_twice", "The root is taken twice.", {"root": "twice"}),
    *each(
        "squared",
        "You divide by the square of the mean square: it must be its root, ** 0.5 and not ** 2.",
        {"root": "square"},
    ),
    *each(
        "multiplied",
        "You multiply by the root of the mean square where you must divide by it (or you divide by rsqrt, which is one "
        "over the root already).",
        {"root": "multiplied"},
    ),
    *each(
        "multiplied",
        "You multiply by the mean square: divide by its root.",
        {"root": "multiplied_without_root"},
    ),
    *eps_mistakes(
        measured="mean square",
        differs="the numbers are",
        token="zeros",
        above="x",
        fixed="The argument eps is not added: you use a number of your own in its place (or torch's, which takes its "
        "own where none is given), or treat a token of zeros as a special case.",
        fixed_at=("1e-5", "1e-6", "1.1920929e-7", "1e-8", "1e-12"),
        default="1e-6",
    ),
    # axes
    *(
        Mistake(DIMENSIONS[axis][0], about_axis("Your mean of squares runs", axis), switches={"axis": axis})
        for axis in DIMENSIONS
    ),
    *(
        Mistake(
            DIMENSIONS[axis][0],
            about_axis("Your mean of squares runs", axis) + " And eps is not used: where a column is 0, that is 0 / 0.",
            switches={"axis": axis, "place": "missing"},
        )
        for axis in ("length", "first", "all_but_last")
    ),
    *each(
        "no_keepdim",
        "Without keepdim=True the mean of squares has one axis less than x and lines up with the columns instead of "
        "the tokens: an error, or silently wrong numbers where there are as many tokens as columns. keepdim=True keeps "
        "the axis with size 1.",
        {"kept": "no"},
    ),
    # gamma
    *each("gamma_missing", "You do not multiply by gamma (or replace it by ones).", {"scale": "missing"}),
    *GAMMA_MISTAKES,
    *each(
        "gamma_too_early",
        "You multiply x by gamma before the mean square is taken, so that it is that of another x: normalise first, "
        "then multiply.",
        {"scale": "before"},
    ),
    *gamma_in_a_product(),
    # what is returned, and what becomes of the inputs
    *form_mistakes("RMS norm"),
    *each("size_returned", "You return the mean of squares: return the normalised x.", {"form": "size"}, alone=True),
    *each(
        "size_returned",
        "You return the root of the mean square: return the normalised x.",
        {"form": "root_of_size"},
        alone=True,
    ),
    *each(
        "sign_lost",
        "You divide the absolute value of x: the sign of x must stay.",
        {"form": "absolute"},
    ),
    *each(
        "square_divided",
        "You divide the square of x: above the fraction line stands x itself, only the mean below is of squares.",
        {"form": "square"},
    ),
    *each(
        "changes_x",
        "The caller's x is changed: an operation in place works on it. In a layer the residual still needs the x that "
        "came. Write x = x / ..., which makes a new tensor.",
        {"inputs": "x_changed"},
    ),
    *each(
        "changes_x",
        "The caller's x is changed: where x is float32 already, x.float() makes no copy, and an operation in place "
        "(*=, /=, mul_) on what it gives works on x itself. In a layer the residual still needs the x that came. Write "
        "y = y / ..., which makes a new tensor.",
        {"inputs": "x_changed_in_float32"},
    ),
    *each(
        "square_in_half",
        "With float16 you keep the mean of the squares in float16, where numbers end at 65504 and nothing lies between "
        "0 and 0.00000006: the square of 300 does not fit, and that of 0.0001 is 0. Convert first, x.float(), then "
        "square.",
        *switch("precision", "half_square", "half"),
        edge=True,
    ),
)


# ---------------------------------------------------------------- symptoms and probes
PLAIN = "gamma 1"
KINDS = "gamma of all kinds"


def _sizes_off(seen: Seen) -> bool:
    rows = finite_rows(seen, PLAIN)
    return bool(rows) and all(((y.square().mean(-1) - 1).abs() > 1e-2).any() for y in rows)


def _given(make_x: Callable[[], Tensor], *, plain: bool = False, eps: float = 1e-6) -> Callable[[], tuple]:
    """Fresh arguments with this x."""

    def make() -> tuple:
        x = make_x()
        gamma = torch.tensor([1.5, -0.5, 2.0, 0.75, -1.25, 0.25])[: x.shape[-1]]
        return x, (torch.ones(x.shape[-1]) if plain else gamma), eps

    return make


RMS_NORM = Exercise(
    name="norms.rms_norm",
    reference=norms.rms_norm,
    results=(Result("result", ("batch", "token", "column")),),
    probes=(
        Probe("x = [[3, 4, 0, 0]], " + PLAIN, _given(lambda: torch.tensor([[3.0, 4.0, 0.0, 0.0]]), plain=True)),
        Probe("x = [[3, 4, 0, 0]], " + KINDS, _given(lambda: torch.tensor([[3.0, 4.0, 0.0, 0.0]]))),
        Probe("x of shape (2, 3, 5), " + PLAIN, _given(lambda: tokens(2, 3, 5, seed=264), plain=True)),
        Probe("x of shape (2, 3, 4), " + KINDS, _given(lambda: tokens(2, 3, 4, seed=226))),
        Probe("x of shape (4, 4), " + KINDS, _given(lambda: tokens(4, 4, seed=1))),
        Probe("x of shape (3, 2, 5), " + KINDS, _given(lambda: tokens(3, 2, 5, seed=386))),
        Probe("x of shape (1, 1, 6), " + KINDS, _given(lambda: tokens(1, 1, 6, seed=26))),
        Probe("x = [[1, -1, 2, -2]], " + KINDS, _given(lambda: torch.tensor([[1.0, -1.0, 2.0, -2.0]]))),
        Probe(
            "x = [[3, 4, 0, 0], [0.3, 0.1, -0.2, 0]], eps 0.5",
            _given(lambda: torch.tensor([[3.0, 4.0, 0.0, 0.0], [0.3, 0.1, -0.2, 0.0]]), eps=0.5),
            edge=True,
        ),
        Probe("a token with all numbers equal, [[0, 0, 0, 0]]", _given(lambda: torch.zeros(1, 4)), edge=True),
        *small_numbers(_given),
        Probe(
            f"x = [[300, -300, 100, 20]] {HALF}",
            _given(lambda: torch.tensor([[300.0, -300.0, 100.0, 20.0]]).half()),
            edge=True,
        ),
        Probe(
            f"x = [[0.0001, -0.0001, 0.0002, 0.0001]] {HALF}, eps 1e-12",
            _given(lambda: torch.tensor([[1e-4, -1e-4, 2e-4, 1e-4]]).half(), eps=1e-12),
            edge=True,
        ),
    ),
    compound=normalise,
    at_once=2,
    mistakes=RMS_MISTAKES,
    symptoms=(
        *COMMON,
        Symptom(
            "eps_misplaced",
            "It is right where eps is next to nothing, and wrong where eps matters: beside an eps of 0.5, or a mean "
            f"square as small as eps. {under_the_root('mean square')}.",
            eps_misplaced,
        ),
        Symptom(
            "gamma_misused",
            "With gamma all 1 your numbers are right, with another gamma they are not: each column is multiplied by "
            "its gamma, after the division.",
            lambda seen: right_only_with(seen, PLAIN),
        ),
        Symptom(
            "size_not_one",
            "With gamma all 1 the squares of each token should come out with mean 1, and yours do not: divide x by the "
            "root of the mean of its squares, over the last axis, and do nothing else to it.",
            _sizes_off,
        ),
    ),
)
