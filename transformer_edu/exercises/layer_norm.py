"""The exercise layer_norm of lesson 05: one wrong implementation with switches, its mistakes, and the probes.

The switches follow the formula: over which axes, what is subtracted, what measures the spread, what becomes of the
root and of eps, and what gamma and beta do at the end.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import norms
from .exercise import Exercise, Mistake, Probe, Result, Symptom, each
from .norm_parts import (
    COMMON,
    DIMENSIONS,
    GAMMA_MISTAKES,
    HALF,
    about_axis,
    alone_wrong,
    dims,
    divided,
    eps_misplaced,
    eps_mistakes,
    finite_rows,
    form_mistakes,
    formed,
    gamma_in_a_product,
    right_only_with,
    shaped,
    small_numbers,
    times_gamma,
    tokens,
    under_the_root,
)
from .symptoms import Seen

__all__ = ["LAYER_NORM"]


# ---------------------------------------------------------------- one wrong implementation
def _centred(x: Tensor, mean: Tensor, centre: str) -> Tensor:
    """What stands above the fraction line."""
    return {
        "mean": lambda: x - mean,
        "none": lambda: x,
        "added": lambda: x + mean,
        "median": lambda: x - x.median(-1, keepdim=True).values,
        "smallest": lambda: x - x.amin(-1, keepdim=True),
        "largest": lambda: x - x.amax(-1, keepdim=True),
        "reversed": lambda: mean - x,
        "absolute": lambda: (x - mean).abs(),
        "mean_alone": lambda: mean.expand(x.shape),
        "sum_over_rows": lambda: x - x.sum(-1, keepdim=True) / len(x),
        "sum_over_second": lambda: x - x.sum(-1, keepdim=True) / x.shape[1],
    }[centre]()


def _spread(x: Tensor, centred: Tensor, over: tuple[int, ...], spread: str, keepdim: bool) -> Tensor:
    """What measures the spread, before the root."""

    def mean(y: Tensor) -> Tensor:
        return y.mean(over, keepdim=keepdim)

    deviations = x - x.mean(over, keepdim=True)
    count = torch.tensor(x.numel() / x.mean(over, keepdim=True).numel())
    return {
        "variance": lambda: mean(deviations.square()),
        "unbiased": lambda: mean(deviations.square()) * (count / (count - 1)),
        "two_less": lambda: deviations.square().sum(over, keepdim=keepdim) / (x.shape[-1] - 2),
        "about_centre": lambda: mean(centred.square()),
        "about_centre_unbiased": lambda: centred.square().sum(over, keepdim=keepdim) / (x.shape[-1] - 1),
        "about_centre_over_rows": lambda: centred.square().sum(over, keepdim=keepdim) / len(x),
        "about_centre_over_second": lambda: centred.square().sum(over, keepdim=keepdim) / x.shape[1],
        "about_zero": lambda: mean(x.square()),
        "sum": lambda: deviations.square().sum(over, keepdim=keepdim),
        "sum_about_zero": lambda: x.square().sum(over, keepdim=keepdim),
        "one_pass": lambda: mean(x.square()) - mean(x).square(),
        "mean_not_squared": lambda: mean(x.square()) - mean(x),
        "exchanged": lambda: mean(x).square() - mean(x.square()),
        "absolute": lambda: mean(deviations.abs()),
        "range": lambda: x.amax(over, keepdim=keepdim) - x.amin(over, keepdim=keepdim),
        "largest": lambda: deviations.abs().amax(over, keepdim=keepdim),
        "deviations_not_squared": lambda: mean(deviations),
        "ones": lambda: torch.ones(()),
        "over_rows": lambda: deviations.square().sum(over, keepdim=keepdim) / len(x),
        "over_second": lambda: deviations.square().sum(over, keepdim=keepdim) / x.shape[1],
        "standard_error": lambda: mean(deviations.square()) / x.shape[-1],
        "deviations_over_everything": lambda: deviations.square().mean(),
    }[spread]()


def _scaled(normed: Tensor, gamma: Tensor, beta: Tensor, scale: str, shift: str) -> Tensor:
    """What gamma and beta do to the normalised token."""
    beta = shaped(beta, shift)
    if shift == "scaled":
        return shaped(gamma, scale) * (normed + beta)
    scaled = times_gamma(normed, gamma, scale)
    return {
        "missing": lambda: scaled,
        "before": lambda: scaled,
        "multiplied": lambda: scaled * beta,
    }.get(shift, lambda: scaled + beta)()


def normalise(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    eps: float | None = None,
    *,
    default: str = "1e-5",
    axis: str = "last",
    mean_axis: str = "",
    spread_axis: str = "",
    kept: str = "both",
    centre: str = "mean",
    spread: str = "variance",
    root: str = "root",
    place: str = "inside",
    roles: str = "right",
    scale: str = "right",
    shift: str = "right",
    precision: str = "wide",
    form: str = "right",
    inputs: str = "kept",
) -> object:
    """One wrong implementation of layer norm; with no switch set it is right."""
    eps = float(default) if eps is None else eps
    wide = x.clone() if precision == "half" else x.to(torch.float32, copy=True)
    if roles == "exchanged":
        gamma, beta = beta, gamma
    if scale == "before":
        wide = wide * gamma
    if shift == "before":
        wide = wide + beta
    over = dims(x, mean_axis or axis)
    mean = wide.mean(over, keepdim=kept in ("both", "spread_dropped"))
    if inputs == "x_changed" or (inputs == "x_changed_in_float32" and x.dtype == torch.float32):
        x -= mean
    if inputs == "gamma_changed":
        gamma *= 1.5
    centred = _centred(wide, mean, centre)
    measured = _spread(wide, centred, dims(x, spread_axis or axis), spread, kept in ("both", "mean_dropped"))
    if precision == "half_spread":
        measured = measured.to(x.dtype).float()
    normed = divided(mean if form == "mean_divided" else centred, measured, eps, root, place)
    if form == "mean_divided":
        normed = wide - normed
    if form == "clipped":
        normed = normed.clamp(-1, 1)
    if form == "mean_scaled":
        normed = -divided(mean, measured, eps, root, place)
    result = _scaled(normed, gamma, beta, scale, shift)
    result = (wide + result if form == "mean_scaled" else result).to(x.dtype)
    return {
        "statistics": lambda: (mean, measured),
        "spread": lambda: measured,
        "twice": lambda: F.layer_norm(result.float(), x.shape[-1:], None, None, eps).to(x.dtype),
    }.get(form, lambda: formed(x, result, form))()


# ---------------------------------------------------------------- the gallery
DROPPED = (
    "Without keepdim=True {what} one axis less than x, so that it stands along the columns instead of the tokens: an "
    "error, or silently wrong numbers where there are as many tokens as columns. keepdim=True keeps the axis with "
    "size 1."
)

HALF_RIGHT = ("length", "first", "second", "all_but_last", "last_two", "everything")

AXES = (
    *(
        Mistake(DIMENSIONS[axis][0], about_axis("Your mean and your variance run", axis), switches={"axis": axis})
        for axis in DIMENSIONS
    ),
    *(
        Mistake(
            DIMENSIONS[axis][0],
            about_axis("Your mean and your variance run", axis)
            + " And eps is not used: where a single number is compared with itself, that is 0 / 0.",
            switches={"axis": axis, "place": "missing"},
        )
        for axis in ("length", "first", "all_but_last")
    ),
    *(
        Mistake(
            f"variance_{DIMENSIONS[axis][0]}",
            about_axis("Your variance runs", axis),
            switches={"spread_axis": axis},
        )
        for axis in HALF_RIGHT
    ),
    *each(
        "variance_over_everything",
        "Your mean is that of each token, and your variance is one number for the whole tensor: is the axis left out "
        "in one of the two calls? Both run over the last axis, dim=-1, keepdim=True.",
        {"spread": "deviations_over_everything"},
    ),
    *(
        Mistake(f"mean_{DIMENSIONS[axis][0]}", about_axis("Your mean runs", axis), switches=switches)
        for axis in HALF_RIGHT
        for switches in ({"mean_axis": axis}, {"mean_axis": axis, "spread": "about_centre"})
    ),
    *each(
        "no_keepdim",
        DROPPED.format(what="the mean, like the variance, has"),
        {"kept": "none"},
        {"kept": "none", "spread": "about_centre"},
    ),
    *each(
        "no_keepdim",
        DROPPED.format(what="the mean has"),
        {"kept": "mean_dropped"},
        {"kept": "mean_dropped", "spread": "about_centre"},
    ),
    *each("no_keepdim", DROPPED.format(what="the variance has"), {"kept": "spread_dropped"}),
)

CENTRES = (
    *each(
        "not_centred",
        "The mean is not subtracted: you divide x by the root of its mean square, which is RMS norm. Layer norm "
        "subtracts the mean of the token first, and divides by the standard deviation.",
        {"centre": "none", "spread": "about_zero"},
    ),
    *each(
        "not_centred",
        "The mean is not subtracted from x above the fraction line: it is (x - mean) that is divided.",
        {"centre": "none"},
        {"centre": "none", "spread": "unbiased"},
    ),
    *each(
        "variance_about_zero",
        "What you take for the variance is the mean of x squared: it must be the mean of (x - mean) squared.",
        {"spread": "about_zero"},
    ),
    *each(
        "mean_added",
        "The mean is added to x where it must be subtracted.",
        {"centre": "added"},
        {"centre": "added", "spread": "about_centre"},
    ),
    *each(
        "parentheses_missing",
        "You divide the mean alone by the standard deviation, and subtract that from x: it is the whole difference, (x "
        "- mean), that is divided. Parentheses are missing.",
        {"form": "mean_divided"},
    ),
    *each(
        "parentheses_missing",
        "The mean alone is divided by the standard deviation and multiplied by gamma, and that is subtracted from x: * "
        "and / come before -. It is the whole difference that is divided: parentheses are missing, (x - mean) / ...",
        {"form": "mean_scaled"},
    ),
    *each(
        "median_subtracted",
        "You subtract the median: the centre of a token here is its mean.",
        {"centre": "median"},
        {"centre": "median", "spread": "about_centre"},
    ),
    *each(
        "smallest_subtracted",
        "You subtract the smallest number of the token: the centre of a token here is its mean.",
        {"centre": "smallest"},
        {"centre": "smallest", "spread": "about_centre"},
    ),
    *each(
        "largest_subtracted",
        "You subtract the largest number of the token, as a stable softmax does: the centre of a token here is its "
        "mean.",
        {"centre": "largest"},
        {"centre": "largest", "spread": "about_centre"},
    ),
    *each(
        "sign_exchanged",
        "The sign is exchanged: mean - x where it must be x - mean.",
        {"centre": "reversed"},
    ),
    *each(
        "absolute_deviations",
        "You take absolute values of x - mean above the fraction line, so the sign is lost.",
        {"centre": "absolute"},
    ),
    *each(
        "mean_normalised",
        "Above the fraction line stands the mean alone, so that every column gets the same number: it must be x - "
        "mean.",
        {"centre": "mean_alone"},
    ),
)

SPREADS = (
    *each(
        "unbiased",
        "Your variance divides by one less than the number of values, as var and std do by themselves. Layer norm "
        "divides by their number, d_model: unbiased=False (or correction=0).",
        {"spread": "unbiased"},
        {"spread": "about_centre_unbiased"},
    ),
    *each(
        "two_less",
        "Your variance divides by d_model - 2: it must be the mean of the squared deviations, over d_model.",
        {"spread": "two_less"},
    ),
    *each(
        "wrong_count",
        "You divide a sum over the columns by len(x), which is the size of the first axis: the number of columns is "
        "x.shape[-1].",
        {"spread": "over_rows"},
        {"centre": "sum_over_rows"},
        {"centre": "sum_over_rows", "spread": "about_centre"},
        {"centre": "sum_over_rows", "spread": "about_centre_over_rows"},
    ),
    *each(
        "wrong_count",
        "You divide a sum over the columns by x.shape[1], which counts the columns only where x has two axes: their "
        "number is x.shape[-1].",
        {"spread": "over_second"},
        {"centre": "sum_over_second"},
        {"centre": "sum_over_second", "spread": "about_centre"},
        {"centre": "sum_over_second", "spread": "about_centre_over_second"},
    ),
    *each(
        "sum_of_squares",
        "You divide by the root of the sum of the squared deviations, so every token has length 1: it must be their "
        "mean, then every token has variance 1.",
        {"spread": "sum"},
    ),
    *each(
        "length_of_x",
        "You divide by the Euclidean length of x: it must be the standard deviation, the root of the mean squared "
        "deviation.",
        {"spread": "sum_about_zero"},
    ),
    *each(
        "unit_length",
        "You divide x by its Euclidean length (F.normalize): layer norm subtracts the mean, and divides by the "
        "standard deviation.",
        {"spread": "sum_about_zero", "centre": "none"},
        {"spread": "sum_about_zero", "centre": "none", "place": "missing"},
        {"spread": "sum_about_zero", "centre": "none", "place": "clamped_late"},
    ),
    *each(
        "mean_not_squared",
        "Your variance is mean(x * x) - mean(x): the mean must be squared too, and (x - mean) squared is safer with "
        "large numbers.",
        {"spread": "mean_not_squared"},
    ),
    *each(
        "variance_negative",
        "Your variance has the wrong sign, mean(x) squared - mean(x * x): its root is nan.",
        {"spread": "exchanged"},
    ),
    *each(
        "absolute_deviation",
        "You divide by the mean absolute deviation: it must be the root of the mean squared deviation.",
        {"spread": "absolute", "root": "none"},
    ),
    *each(
        "divided_by_range",
        "You divide by the largest minus the smallest number of the token: it must be the standard deviation.",
        {"spread": "range", "root": "none"},
        {"spread": "range", "root": "none", "place": "missing"},
    ),
    *each(
        "scaled_to_range",
        "You bring every token to the range from 0 to 1, (x - smallest) / (largest - smallest): layer norm brings it "
        "to mean 0 and variance 1.",
        {"spread": "range", "root": "none", "centre": "smallest"},
        {"spread": "range", "root": "none", "centre": "smallest", "place": "missing"},
    ),
    *each(
        "divided_by_largest",
        "You divide by the largest deviation: it must be the standard deviation.",
        {"spread": "largest", "root": "none"},
    ),
    *each(
        "deviations_not_squared",
        "Your variance is the mean of x - mean, which is always 0: the deviations must be squared first.",
        {"spread": "deviations_not_squared"},
    ),
    *each(
        "not_normalised",
        "Nothing is normalised: x is only multiplied by gamma and beta is added. Subtract the mean first, and divide "
        "by sqrt(variance + eps).",
        {"spread": "ones", "place": "missing", "centre": "none"},
    ),
    *each(
        "not_scaled",
        "You subtract the mean and divide by nothing: the spread of the token stays what it was. Divide by "
        "sqrt(variance + eps).",
        {"spread": "ones", "place": "missing"},
    ),
    *each(
        "standard_error",
        "You divide by sqrt(variance / d_model), the standard error of the mean: d_model is used once too often.",
        {"spread": "standard_error"},
    ),
    *each(
        "one_pass",
        "Your variance is mean(x * x) - mean(x) squared. On paper that is the same, but where the mean is large both "
        "terms are huge and nearly equal, and float32 has no digits left for their difference. Subtract the mean "
        "first, then square.",
        {"spread": "one_pass"},
        edge=True,
    ),
)

ROOTS = (
    *each(
        "no_root",
        "You divide by the variance and not by its root, so a token with ten times larger numbers comes out ten times "
        "smaller, where it should come out the same. Divide by sqrt(variance + eps).",
        {"root": "none"},
    ),
    *each(
        "root_twice",
        "The root is taken twice: the standard deviation is a root already, so sqrt(std + eps) is one too many.",
        {"root": "twice"},
        {"root": "twice_late"},
    ),
    *each(
        "squared",
        "You divide by the square of the variance: it must be its root, ** 0.5 and not ** 2.",
        {"root": "square"},
    ),
    *each(
        "multiplied",
        "You multiply by the standard deviation where you must divide by it (or you divide by rsqrt, which is one over "
        "the root already).",
        {"root": "multiplied"},
    ),
    *each(
        "multiplied",
        "You multiply by the variance: divide by its root, sqrt(variance + eps).",
        {"root": "multiplied_without_root"},
    ),
)

EPS = eps_mistakes(
    measured="variance",
    differs="the variance is",
    token="equal numbers",
    above="the numerator, x - mean",
    fixed="The argument eps is not added: you use a number of your own in its place, or treat a spread of 0 as a "
    "special case.",
    fixed_at=("1e-5", "1e-6", "1e-8", "1e-12"),
    default="1e-5",
)

VECTORS = "gamma and beta hold one number for each column, (d_model,)"

AFFINE = (
    *each(
        "affine_missing",
        "You do not use gamma and beta (or replace them by ones and zeros): multiply each column by its gamma, then "
        "add its beta.",
        {"scale": "missing", "shift": "missing"},
    ),
    *each(
        "gamma_missing",
        "You do not multiply by gamma.",
        {"scale": "missing"},
    ),
    *each(
        "beta_missing",
        "You do not add beta.",
        {"shift": "missing"},
    ),
    *each(
        "gamma_and_beta_exchanged",
        "Gamma and beta have changed places: gamma multiplies, beta is added.",
        {"roles": "exchanged"},
    ),
    *each(
        "beta_scaled",
        "You add beta before you multiply by gamma, so beta is multiplied as well: multiply by gamma first, add beta "
        "last.",
        {"shift": "scaled"},
    ),
    *each("beta_multiplied", "You multiply by beta: it is added.", {"shift": "multiplied"}),
    *each("beta_subtracted", "You subtract beta: add it.", {"shift": "minus"}),
    *GAMMA_MISTAKES,
    *each(
        "one_beta_for_all",
        f"You add one and the same number to all columns, the first of beta: {VECTORS}.",
        {"shift": "first"},
    ),
    *each(
        "one_beta_for_all",
        f"You add one and the same number to all columns, the mean of beta: {VECTORS}.",
        {"shift": "mean"},
    ),
    *each(
        "one_beta_for_all",
        f"You add one and the same number to all columns, the sum of beta: {VECTORS}.",
        {"shift": "sum"},
    ),
    *each(
        "one_number_for_all",
        "You use the first number of gamma and the first of beta for all columns, which nobody sees while gamma is all "
        f"1 and beta all 0: {VECTORS}.",
        {"scale": "first", "shift": "first"},
    ),
    *each(
        "one_number_for_all",
        "You use the mean of gamma and the mean of beta for all columns, which nobody sees while gamma is all 1 "
        f"and beta all 0: {VECTORS}.",
        {"scale": "mean", "shift": "mean"},
    ),
    *each(
        "gamma_along_tokens",
        f"You give gamma and beta a new last axis, so that they lie along the tokens: {VECTORS}, and broadcast as they "
        "are.",
        {"scale": "rows", "shift": "rows"},
    ),
    *each(
        "beta_along_tokens",
        "You give beta a new last axis, so that it lies along the tokens: it holds one number for each column, "
        "(d_model,), and broadcasts as it is.",
        {"shift": "rows"},
    ),
    *each(
        "gamma_too_early",
        "You multiply x by gamma before the statistics are taken, so that they are those of another x: normalise "
        "first, then multiply.",
        {"scale": "before"},
    ),
    *each(
        "beta_too_early",
        "You add beta to x before the statistics are taken, so that they are those of another x: normalise first, add "
        "beta last.",
        {"shift": "before"},
    ),
    *each(
        "affine_too_early",
        "You use gamma and beta on x before the statistics are taken, so that the result has mean 0 and variance 1 "
        "whatever they are: normalise first, then multiply and add.",
        {"scale": "before", "shift": "before"},
    ),
    *gamma_in_a_product({"shift": "missing"}),
)

FORMS = (
    *form_mistakes("layer norm"),
    *each(
        "normalised_again",
        "You normalise once more after gamma and beta, which undoes them.",
        {"form": "twice"},
    ),
    *each(
        "statistics_returned",
        "You return the mean and the variance: return the normalised x.",
        {"form": "statistics"},
        alone=True,
    ),
    *each("statistics_returned", "You return the variance: return the normalised x.", {"form": "spread"}, alone=True),
    *each(
        "changes_x",
        "The caller's x is changed: an operation in place (x -= mean, sub_) works on it. In a layer the residual still "
        "needs the x that came. Write x = x - mean, which makes a new tensor.",
        {"inputs": "x_changed"},
    ),
    *each(
        "changes_x",
        "The caller's x is changed: where x is float32 already, x.float() makes no copy, and an operation in place "
        "(-=, /=, sub_) on what it gives works on x itself. In a layer the residual still needs the x that came. Write "
        "y = y - mean, which makes a new tensor.",
        {"inputs": "x_changed_in_float32"},
    ),
    *each(
        "statistics_in_half",
        "With float16 your variance is a float16 too, where numbers end at 65504: the square of 300 does not fit. "
        "Convert first, x.float(), and convert back at the end.",
        {"precision": "half"},
        edge=True,
    ),
    *each(
        "statistics_in_half",
        "With float16 your variance is a float16 too, as x.var of a float16 x is: numbers end at 65504 there, and the "
        "variance of [600, -600, 200, 40] does not fit. Convert first, x.float(), and convert back at the end.",
        {"precision": "half_spread"},
        edge=True,
    ),
)

WITH_TORCH = (
    Mistake(
        "over_sequence",
        "F.layer_norm normalises over all the axes that its second argument names: it must be the last alone, "
        "x.shape[-1:].",
        wrong=lambda x, gamma, beta, eps=1e-5: F.layer_norm(x.float(), x.shape[1:], gamma.float(), beta.float(), eps),
    ),
    Mistake(
        "over_everything",
        "F.layer_norm normalises over all the axes that its second argument names: it must be the last alone, "
        "x.shape[-1:].",
        wrong=lambda x, gamma, beta, eps=1e-5: F.layer_norm(x.float(), x.shape, gamma.float(), beta.float(), eps),
    ),
)

LAYER_MISTAKES = (*WITH_TORCH, *SPREADS, *EPS, *ROOTS, *AXES, *CENTRES, *AFFINE, *FORMS)


# ---------------------------------------------------------------- symptoms and probes
PLAIN = "gamma 1, beta 0"


def _means_off(seen: Seen) -> bool:
    rows = finite_rows(seen, PLAIN)
    return bool(rows) and all((y.mean(-1).abs() > 1e-2).any() for y in rows)


def _variances_off(seen: Seen) -> bool:
    rows = finite_rows(seen, PLAIN)
    return (
        bool(rows)
        and all((y.mean(-1).abs() < 1e-3).all() for y in rows)
        and all(((y.var(-1, correction=0) - 1).abs() > 1e-2).any() for y in rows)
    )


def _parameters(width: int, plain: bool) -> tuple[Tensor, Tensor]:
    if plain:
        return torch.ones(width), torch.zeros(width)
    gamma = torch.tensor([1.5, -0.5, 2.0, 0.75, -1.25, 0.25])[:width]
    beta = torch.tensor([0.5, 1.0, -2.0, 3.0, -0.25, -1.5])[:width]
    return gamma, beta


def _given(make_x: Callable[[], Tensor], *, plain: bool = False, eps: float = 1e-5) -> Callable[[], tuple]:
    """Fresh arguments with this x."""

    def make() -> tuple:
        x = make_x()
        return (x, *_parameters(x.shape[-1], plain), eps)

    return make


LARGE_MEAN = "numbers around 60000"

LAYER_NORM = Exercise(
    name="norms.layer_norm",
    reference=norms.layer_norm,
    results=(Result("result", ("batch", "token", "column")),),
    probes=(
        Probe("x = [[3, 1, 0, 0]], " + PLAIN, _given(lambda: torch.tensor([[3.0, 1.0, 0.0, 0.0]]), plain=True)),
        Probe("x = [[3, 1, 0, 0]], gamma and beta of all kinds", _given(lambda: torch.tensor([[3.0, 1.0, 0.0, 0.0]]))),
        Probe("x of shape (2, 3, 5), " + PLAIN, _given(lambda: tokens(2, 3, 5, seed=264), plain=True)),
        Probe("x of shape (2, 3, 4), gamma and beta of all kinds", _given(lambda: tokens(2, 3, 4, seed=226))),
        Probe("x of shape (4, 4), gamma and beta of all kinds", _given(lambda: tokens(4, 4, seed=1))),
        Probe("x of shape (3, 2, 5), gamma and beta of all kinds", _given(lambda: tokens(3, 2, 5, seed=386))),
        Probe("x of shape (1, 1, 6), gamma and beta of all kinds", _given(lambda: tokens(1, 1, 6, seed=26))),
        Probe(
            "x = [[3, 1, 0, 0], [0.3, 0.1, -0.2, 0]], eps 0.5",
            _given(lambda: torch.tensor([[3.0, 1.0, 0.0, 0.0], [0.3, 0.1, -0.2, 0.0]]), eps=0.5),
            edge=True,
        ),
        Probe(
            "a token with all numbers equal, [[[3, 3, 3, 3], [0, 0, 0, 0]]]",
            _given(lambda: torch.tensor([[[3.0] * 4, [0.0] * 4]])),
            edge=True,
        ),
        *small_numbers(_given),
        Probe(
            f"x = [[60000, 60100, 59900, 60203]], {LARGE_MEAN}",
            _given(lambda: torch.tensor([[60000.0, 60100.0, 59900.0, 60203.0]])),
            edge=True,
        ),
        Probe(
            f"x = [[300, 310, 290, 305]] {HALF}",
            _given(lambda: torch.tensor([[300.0, 310.0, 290.0, 305.0]]).half()),
            edge=True,
        ),
        *(
            Probe(
                f"x = [[{3 * n}, {-3 * n}, {n}, {n // 5}]] {HALF}",
                _given(lambda n=n: torch.tensor([[3.0 * n, -3.0 * n, n, n / 5]]).half()),
                edge=True,
            )
            for n in (100, 200)
        ),
    ),
    compound=normalise,
    at_once=2,
    mistakes=LAYER_MISTAKES,
    symptoms=(
        *COMMON,
        Symptom(
            "wrong_for_large_means",
            "It is right for small numbers, and wrong where the numbers are large and differ little: then mean(x * x) "
            "- mean(x) squared has no digits left. Subtract the mean first, then square, in float32 or better.",
            alone_wrong(LARGE_MEAN),
        ),
        Symptom(
            "eps_misplaced",
            "It is right where eps is next to nothing, and wrong where eps matters: beside an eps of 0.5, or a "
            f"variance as small as eps. {under_the_root('variance')}.",
            eps_misplaced,
        ),
        Symptom(
            "gamma_and_beta_misused",
            "With gamma all 1 and beta all 0 your numbers are right, with others they are not: what you do with gamma "
            "and beta is wrong. Each column is multiplied by its gamma, then its beta is added.",
            lambda seen: right_only_with(seen, PLAIN),
        ),
        Symptom(
            "mean_not_zero",
            "With gamma all 1 and beta all 0 each token should come out with mean 0, and yours do not: the mean "
            "over the last axis must be subtracted, and nothing but gamma and beta may change the numbers after the "
            "division.",
            _means_off,
        ),
        Symptom(
            "variance_not_one",
            "With gamma all 1 and beta all 0 each token should come out with variance 1. Yours have mean 0, as they "
            "should, but another variance: divide by sqrt(variance + eps), over the last axis.",
            _variances_off,
        ),
    ),
)
