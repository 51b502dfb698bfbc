"""The exercise softmax of lesson 02: one wrong implementation with switches, its mistakes, and the probes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import attention
from .attention_probes import numbers, rows
from .attention_symptoms import NUMPY, changes_input, not_finite, right_on_core
from .exercise import Exercise, Mistake, Probe, Result, Symptom, each
from .outcome import close, same_value
from .symptoms import Seen


def _shifted(x: Tensor, dim: int, shift: str) -> Tensor:
    """What a reader may take the exponential of."""
    return {
        "largest": lambda: x - x.amax(dim, keepdim=True),
        "absolute": lambda: x - x.abs().amax(dim, keepdim=True),
        "absolute_of_everything": lambda: x - x.abs().max(),
        "cut_above": lambda: x.clamp(max=80.0),
        "cut": lambda: x.clamp(-80.0, 80.0),
        "cut_early": lambda: x.clamp(-30.0, 30.0),
        "none": lambda: x,
        "everything": lambda: x - x.max(),
        "last_axis": lambda: x - x.amax(-1, keepdim=True),
        "first_axis": lambda: x - x.amax(0, keepdim=True),
        "dropped": lambda: x - x.amax(dim),
        "mean": lambda: x - x.mean(dim, keepdim=True),
        "mean_of_everything": lambda: x - x.mean(),
        "smallest": lambda: x - x.amin(dim, keepdim=True),
        "added": lambda: x + x.amax(dim, keepdim=True),
        "divided": lambda: x / x.amax(dim, keepdim=True),
        "standardised": lambda: (x - x.mean(dim, keepdim=True)) / x.std(dim, keepdim=True, correction=0),
        "with_index": lambda: x - x.max(dim, keepdim=True),
    }[shift]()


def _numerators(x: Tensor, dim: int, shift: str, form: str) -> Tensor:
    if form == "softmin":
        return _shifted(-x, dim, shift).exp()
    x = _shifted(x, dim, shift)
    return {
        "linear": lambda: x,
        "base_two": lambda: x.exp2(),
        "minus_after": lambda: (-x).exp(),
        "square": lambda: x**2,
        "absolute": lambda: x.abs(),
        "expm1": lambda: x.expm1(),
    }.get(form, x.exp)()


def _totals(e: Tensor, dim: int, total: str) -> Tensor:
    return {
        "keepdim": lambda: e.sum(dim, keepdim=True),
        "with_epsilon": lambda: e.sum(dim, keepdim=True) + 1e-9,
        "dropped": lambda: e.sum(dim),
        "last_axis": lambda: e.sum(-1, keepdim=True),
        "first_axis": lambda: e.sum(0, keepdim=True),
        "everything": lambda: e.sum(),
        "mean": lambda: e.mean(dim, keepdim=True),
        "largest": lambda: e.amax(dim, keepdim=True),
        "length": lambda: torch.linalg.vector_norm(e, dim=dim, keepdim=True),
        "count": lambda: torch.tensor(float(e.shape[dim])),
        "none": lambda: torch.ones(()),
    }[total]()


def _softmax(
    x: Tensor,
    dim: int,
    *,
    axis: str = "given",
    shift: str = "largest",
    form: str = "exp",
    total: str = "keepdim",
    result: str = "right",
    inputs: str = "kept",
) -> object:
    dim = {"given": dim, "last": -1, "first": 0, "second": 1, "before": dim - 1}[axis]
    if inputs == "shifted":
        x -= x.amax(dim, keepdim=True)
    e = _numerators(x, dim, shift, form)
    weights = e / _totals(e, dim, total)
    return {
        "right": lambda: weights,
        "log": lambda: weights.log(),
        "log_added": lambda: (weights + 1e-9).log(),
        "twice": lambda: weights.softmax(dim),
        "nan_hidden": lambda: weights.nan_to_num(0.0),
        "hard": lambda: (weights == weights.amax(dim, keepdim=True)).to(x.dtype),
        "sigmoid": lambda: x.sigmoid(),
        "relu": lambda: x.relu() / x.relu().sum(dim, keepdim=True),
        "sum": lambda: weights.sum(dim),
        "largest": lambda: weights.amax(dim),
        "index": lambda: x.argmax(dim),
        "transposed": lambda: weights.mT,
        "input": lambda: x,
        "log_of_total": lambda: x.logsumexp(dim, keepdim=True),
        "complement": lambda: 1 - weights,
        "pair": lambda: (weights, e),
        "flat": lambda: weights.flatten(),
        "extra_axis": lambda: weights[None],
    }[result]()


NO_KEEPDIM = (
    "The sum (or the maximum) along dim has one axis less than x, so it lines up with the wrong axis of x: an "
    "error, or silently wrong numbers where two sizes are equal. keepdim=True keeps the axis with size 1."
)
OVERFLOW = (
    "Your softmax holds for small numbers only: exp of a large number is inf (in float32 from 89 on), and exp of a "
    "very negative one is 0, so that nan comes out as inf / inf or 0 / 0. Subtract the largest entry along dim first "
    "(amax gives it; argmax gives only its place); that changes nothing in the result."
)

SOFTMAX_MISTAKES = (
    Mistake("unstable", OVERFLOW, switches={"shift": "none"}, edge=True),
    Mistake("unstable", OVERFLOW, switches={"shift": "none", "total": "with_epsilon"}, edge=True),
    *each(
        "shifted_by_everything",
        "You subtract the largest entry of the whole tensor. A row that lies far below it becomes 0 everywhere, and "
        "its sum 0 as well. Subtract the largest entry along dim: every slice needs its own.",
        {"shift": "everything"},
        {"shift": "everything", "total": "with_epsilon"},
        edge=True,
    ),
    *each(
        "shifted_by_absolute",
        "You subtract the largest absolute value, which is the largest entry only where that is positive. Where all "
        "entries are very negative, twice as negative ones come of it, every exp is 0, and so is their sum. "
        "Subtract the largest entry itself: amax of x, not of x.abs().",
        {"shift": "absolute"},
        {"shift": "absolute", "total": "with_epsilon"},
        {"shift": "absolute_of_everything"},
        {"shift": "absolute_of_everything", "total": "with_epsilon"},
        edge=True,
    ),
    *each(
        "clamped",
        "You cut off large numbers (clamp), which changes them: entries beyond the bound become equal, and their "
        "differences are what the softmax is made of. Subtract the largest entry along dim instead; that "
        "changes no difference.",
        {"shift": "cut_above"},
        {"shift": "cut_above", "total": "with_epsilon"},
        {"shift": "cut"},
        {"shift": "cut_early"},
        edge=True,
    ),
    *each(
        "overflow_hidden",
        "With large numbers exp is inf, and with very negative ones every exp is 0. The nan that comes of it (inf / "
        "inf, 0 / 0) is replaced by 0 (nan_to_num), which hides the error and leaves numbers that do not sum to 1. "
        "Subtract the largest entry along dim first.",
        {"shift": "none", "result": "nan_hidden"},
        edge=True,
    ),
    *each(
        "shifted_by_mean",
        "You subtract the mean, which leaves the largest entries positive: with large numbers exp still overflows "
        "to inf. Subtract the largest entry along dim, so that nothing is above 0.",
        {"shift": "mean"},
        {"shift": "mean_of_everything"},
        {"shift": "mean_of_everything", "total": "with_epsilon"},
        edge=True,
    ),
    Mistake(
        "shifted_by_smallest",
        "You subtract the smallest entry, which makes everything positive: with large numbers exp still overflows "
        "to inf. Subtract the largest entry along dim, so that nothing is above 0.",
        switches={"shift": "smallest"},
        edge=True,
    ),
    Mistake(
        "largest_added",
        "You add the largest entry instead of subtracting it, so exp overflows sooner, not later. Subtract it: "
        "nothing is above 0 then.",
        switches={"shift": "added"},
        edge=True,
    ),
    *each(
        "ignores_dim",
        "You always work along the last axis: the argument dim is not used. Pass it to both the maximum and the sum.",
        {"axis": "last"},
    ),
    *each(
        "ignores_dim",
        "You always work along axis 0: the argument dim is not used. Pass it to both the maximum and the sum.",
        {"axis": "first"},
    ),
    *each(
        "ignores_dim",
        "You always work along axis 1: the argument dim is not used. Pass it to both the maximum and the sum.",
        {"axis": "second"},
    ),
    *each(
        "one_axis_before",
        "You work along the axis before dim: count again, dim=0 is the first axis and dim=-1 the last.",
        {"axis": "before"},
    ),
    *each(
        "no_keepdim",
        NO_KEEPDIM,
        {"total": "dropped"},
        {"shift": "dropped"},
        {"shift": "dropped", "total": "dropped"},
        {"shift": "none", "total": "dropped"},
        {"shift": "everything", "total": "dropped"},
    ),
    *each(
        "largest_of_another_axis",
        "You subtract the largest entry along the last axis, but add up along dim. What is subtracted cancels only "
        "where it is the same number in the whole slice that is added up: take the maximum along dim as well.",
        {"shift": "last_axis"},
    ),
    *each(
        "largest_of_another_axis",
        "You subtract the largest entry along the first axis, but add up along dim. What is subtracted cancels only "
        "where it is the same number in the whole slice that is added up: take the maximum along dim as well.",
        {"shift": "first_axis"},
    ),
    *each(
        "sum_of_another_axis",
        "You always divide by the sum along the last axis: add up along dim.",
        {"total": "last_axis"},
        {"total": "last_axis", "shift": "none"},
        {"total": "last_axis", "shift": "everything"},
    ),
    *each(
        "sum_of_another_axis",
        "You always divide by the sum along the first axis: add up along dim.",
        {"total": "first_axis"},
        {"total": "first_axis", "shift": "none"},
        {"total": "first_axis", "shift": "everything"},
    ),
    *each(
        "sum_of_everything",
        "You divide by the sum of the whole tensor: all numbers together sum to 1. Each slice along dim must sum to "
        "1 by itself, so add up along dim with keepdim=True.",
        {"total": "everything", "shift": "everything"},
        {"total": "everything", "shift": "none"},
        {"total": "everything"},
    ),
    *each(
        "not_normalised",
        "Your numbers do not sum to 1: the exponentials still have to be divided by their sum along dim.",
        {"total": "none"},
        {"total": "none", "shift": "none"},
        {"total": "none", "shift": "everything"},
    ),
    *each(
        "divided_by_mean",
        "You divide by the mean of the exponentials instead of their sum: your numbers sum to the size of dim, not "
        "to 1.",
        {"total": "mean"},
        {"total": "mean", "shift": "none"},
    ),
    *each(
        "divided_by_count",
        "You divide by the number of entries along dim instead of the sum of the exponentials.",
        {"total": "count"},
        {"total": "count", "shift": "none"},
    ),
    *each(
        "divided_by_length",
        "You divide by the Euclidean length of the exponentials (F.normalize, torch.norm): their squares sum to 1 "
        "then. Divide by their plain sum.",
        {"total": "length"},
        {"total": "length", "shift": "none"},
    ),
    *each(
        "divided_by_shift",
        "You divide by the largest entry instead of subtracting it. Only what is subtracted cancels: exp(x - m) "
        "divided by the sum of exp(x - m) equals exp(x) divided by the sum of exp(x).",
        {"shift": "divided"},
    ),
    *each(
        "standardised",
        "You standardise x first (mean 0, standard deviation 1), which changes the distances between its entries, "
        "and so the result. Only subtracting one number from a whole slice changes nothing: subtract the largest "
        "entry.",
        {"shift": "standardised"},
    ),
    *each(
        "minus_sign",
        "Your largest number belongs to the smallest entry: the sign of x is exchanged somewhere. It is exp(x - m), "
        "with m the largest entry, not exp(m - x).",
        {"form": "softmin"},
        {"form": "minus_after"},
        {"form": "softmin", "shift": "none"},
    ),
    *each(
        "no_exponential",
        "The exponential is missing: you divide the entries themselves by their sum. exp makes every number "
        "positive and is what the softmax is about.",
        {"form": "linear", "shift": "none"},
        {"form": "linear"},
    ),
    *each(
        "absolute_values",
        "The exponential is missing: you divide the absolute values by their sum. exp makes every number positive "
        "and keeps the order of the entries.",
        {"form": "absolute", "shift": "none"},
    ),
    *each(
        "squares",
        "The exponential is missing: you divide the squares by their sum. exp makes every number positive and keeps "
        "the order of the entries.",
        {"form": "square", "shift": "none"},
    ),
    *each(
        "base_two",
        "You raise 2 to the power of x; the softmax uses e: torch.exp.",
        {"form": "base_two"},
        {"form": "base_two", "shift": "none"},
    ),
    *each(
        "logarithm",
        "You return the logarithm of the softmax: your numbers are negative, and it is their exponentials that sum "
        "to 1. Return the weights themselves.",
        {"result": "log"},
        {"result": "log_added"},
    ),
    Mistake(
        "logarithm",
        "You return the logarithm of the softmax: your numbers are negative, and it is their exponentials that sum "
        "to 1. Return the weights themselves.",
        wrong=lambda x, dim: F.log_softmax(x, dim),
    ),
    *each(
        "log_of_sum",
        "You return the logarithm of the sum of the exponentials (logsumexp), one number per slice. The softmax has "
        "one number per entry: exp(x - logsumexp).",
        {"result": "log_of_total"},
    ),
    *each(
        "twice",
        "You apply the softmax twice: the result is much too flat.",
        {"result": "twice"},
    ),
    *each(
        "hard_maximum",
        "You give everything to the largest entry. The softmax is soft: the others keep a share, exp(x) over the sum.",
        {"result": "hard"},
    ),
    *each(
        "index_of_largest",
        "You return where the largest entry is (argmax). The softmax gives a weight to every entry.",
        {"result": "index"},
    ),
    *each(
        "sigmoid",
        "You apply the sigmoid to each entry by itself: the numbers along dim do not sum to 1. The softmax divides "
        "exp(x) by the sum of exp(x) along dim.",
        {"result": "sigmoid"},
    ),
    *each(
        "cut_at_zero",
        "You cut off what is negative (relu) and divide by the sum. The softmax uses exp, which keeps a positive "
        "share for every entry.",
        {"result": "relu"},
    ),
    *each("sums_returned", "You return the sums along dim (all 1): return the weights.", {"result": "sum"}),
    *each("largest_returned", "You return only the largest weight of each slice.", {"result": "largest"}),
    *each(
        "input_returned",
        "You return x as it came. Is the result of your computation the one that you return?",
        {"result": "input"},
    ),
    *each("complement", "You return 1 minus the softmax.", {"result": "complement"}),
    *each("pair_returned", "You return the exponentials as well: return the softmax alone.", {"result": "pair"}),
    *each("flattened", "Your result is flattened: it must have the shape of x.", {"result": "flat"}),
    *each(
        "extra_axis",
        "Your result has an extra axis of size 1 in front: it must have the shape of x.",
        {"result": "extra_axis"},
    ),
    *each(
        "maximum_with_indices",
        "The method x.max(dim) gives two things, the largest values and where they are, which cannot be subtracted: "
        "take its .values, or use x.amax(dim, keepdim=True).",
        {"shift": "with_index"},
    ),
    *each(
        "changes_input",
        "The caller's x is changed: an operation in place (-=, exp_, sub_) works on it. "
        "Write x = x - largest, which makes a new one.",
        {"inputs": "shifted"},
    ),
)


def _ordinary(seen: Seen) -> list[tuple[Tensor, int, Tensor]]:
    """(x, dim, what came out) of every ordinary probe of softmax; empty unless all are finite tensors like x."""
    found = []
    for probe, _, given in seen:
        if not probe.edge:
            x, dim = probe.make()
            y = given.value
            if not isinstance(y, Tensor) or y.shape != x.shape or not y.is_floating_point() or not y.isfinite().all():
                return []
            found.append((x, dim, y))
    return found


def _sums_along_dim_differ(seen: Seen) -> bool:
    found = _ordinary(seen)
    return bool(found) and all(not close(y.sum(dim), torch.ones(())).any() for _, dim, y in found)


def _scaled_x(seen: Seen) -> bool:
    found = _ordinary(seen)
    for x, dim, y in found:
        if (y <= 0).any() or not close(y.sum(dim), torch.ones(())).all():
            return False
        logs, x = (z - z.mean(dim, keepdim=True) for z in (y.log(), x))
        factor = (logs * x).sum() / (x * x).sum()
        if abs(factor - 1) < 0.01 or (logs - factor * x).abs().max() > 2e-3:
            return False
    return bool(found)


def _x(*shape: int, seed: int) -> Callable[[int], Callable[[], tuple]]:
    return lambda dim: lambda: (numbers(*shape, seed=seed).clone(), dim)


SOFTMAX = Exercise(
    name="attention.softmax",
    reference=attention.softmax,
    results=(Result("softmax"),),
    probes=(
        Probe("x of shape (2, 3), dim=-1", _x(2, 3, seed=1)(-1)),
        Probe("x of shape (3, 3), dim=0", _x(3, 3, seed=2)(0)),
        Probe("x of shape (3, 3), dim=1", _x(3, 3, seed=3)(1)),
        Probe("x of shape (4,), dim=0", _x(4, seed=4)(0)),
        Probe("x of shape (2, 3, 4), dim=1", _x(2, 3, 4, seed=5)(1)),
        Probe("x of shape (2, 3, 4), dim=0", _x(2, 3, 4, seed=6)(0)),
        Probe("x of shape (2, 3, 4), dim=2", _x(2, 3, 4, seed=7)(2)),
        Probe("x of shape (2, 3, 4, 5), dim=-2", _x(2, 3, 4, 5, seed=8)(-2)),
        # Where large numbers meet, they are a few hundred: at 10000 float32 has steps of a thousandth, and a right
        # answer by way of logsumexp would be off by as much.
        Probe("x = [[200, 199, 198]], dim=-1", lambda: (rows((200.0, 199.0, 198.0)), -1), edge=True),
        Probe("x = [[-60, -59]], dim=-1", lambda: (rows((-60.0, -59.0)), -1), edge=True),
        Probe("x = [[-200, -199]], dim=-1", lambda: (rows((-200.0, -199.0)), -1), edge=True),
        Probe(
            "x = [[200, 199], [0, 1], [-200, -199]], dim=-1",
            lambda: (rows((200.0, 199.0), (0.0, 1.0), (-200.0, -199.0)), -1),
            edge=True,
        ),
        Probe(
            "x = [[200, -200], [199, -199]], dim=0",
            lambda: (rows((200.0, -200.0), (199.0, -199.0)), 0),
            edge=True,
        ),
        Probe("x = [[10000, -10000, 0]], dim=1", lambda: (rows((1e4, -1e4, 0.0)), 1), edge=True),
        Probe("x = [[-10000, -10100]], dim=1", lambda: (rows((-1e4, -10100.0)), 1), edge=True),
    ),
    compound=_softmax,
    at_once=2,
    mistakes=SOFTMAX_MISTAKES,
    symptoms=(
        NUMPY,
        Symptom(
            "scaled",
            "Your numbers sum to 1 along dim, but they are the softmax of x times some other number: x is divided "
            "or multiplied by something. Nothing but its largest entry is subtracted.",
            _scaled_x,
        ),
        Symptom(
            "does_not_sum_to_one",
            "Along dim your numbers do not sum to 1: divide the exponentials by their sum along dim, and by nothing "
            "else.",
            _sums_along_dim_differ,
        ),
        Symptom(
            "changes_input",
            "It works on the caller's tensor: x itself is changed, by an operation in place such as -= or exp_. "
            "Write x = x - largest, which makes a new one.",
            changes_input,
        ),
        Symptom(
            "unstable",
            "Your softmax is right for small numbers, but with large ones nan or inf comes out: exp of a large "
            "number is inf (in float32 from 89 on), and where every exp is 0 so is their sum. Subtract the largest "
            "entry along dim first, neither more nor less; that changes nothing in the result.",
            lambda seen: right_on_core(seen) and any(not_finite(g) for _, _, g in seen),
        ),
        Symptom(
            "wrong_for_large_numbers",
            "Your softmax is right for small numbers and wrong for large ones. Only subtracting the same number "
            "from a whole slice leaves the result as it is: subtract the largest entry along dim, and do nothing "
            "else to x.",
            lambda seen: (
                right_on_core(seen)
                and all(g.error is None and isinstance(g.value, Tensor) and not g.changed for _, _, g in seen)
                and not all(same_value(e.value, g.value) for _, e, g in seen)
            ),
        ),
    ),
)
