"""The exercise noam_lr of lesson 09."""

from __future__ import annotations

import math

import numpy as np

from .. import training
from .exercise import Exercise, Probe, Result, Symptom
from .outcome import same_outcome
from .symptoms import Seen
from .training_parts import core, number, one, right_only_without, settled_number

__all__ = ["NOAM_LR"]


# ---------------------------------------------------------------- one wrong implementation
def _up(step: float, warmup: float, up: str) -> float:
    """The branch of the warm-up."""
    return {
        "half": lambda: step * warmup**-0.5,
        "whole": lambda: step / warmup,
        "two": lambda: step * warmup**-2.0,
        "no_step": lambda: warmup**-1.5,
        "flat": lambda: warmup**-0.5,
        "squared": lambda: step**2 * warmup**-1.5,
        "quadratic": lambda: step**2 * warmup**-2.5,
        "root": lambda: step**0.5 / warmup,
        "power_of_both": lambda: (step * warmup) ** -1.5,
        "ratio_to_1.5": lambda: (step / warmup) ** 1.5,
        "whole_division": lambda: step // warmup * warmup**-0.5,
    }.get(up, lambda: step * warmup**-1.5)()


def _down(step: float, warmup: float, down: str) -> float:
    """The branch after the warm-up."""
    return {
        "one": lambda: 1 / step,
        "linear": lambda: warmup**0.5 / step,
        "constant": lambda: warmup**-0.5,
        "more": lambda: step**-1.5,
        "two": lambda: step**-2.0,
        "ratio": lambda: (warmup / step) ** 0.5,
        "none": lambda: 1.0,
        "since": lambda: max(step - warmup, 1) ** -0.5,
        "since_and_one": lambda: max(step - warmup + 1, 1) ** -0.5,
        "exponential": lambda: warmup**-0.5 * float(np.exp(1 - step / warmup)),
    }.get(down, lambda: step**-0.5)()


def lr_wrongly(
    step: int,
    d_model: int,
    warmup: int,
    *,
    width: str = "right",
    up: str = "right",
    down: str = "right",
    choice: str = "min",
    zero: str = "right",
    order: str = "right",
    result: str = "right",
) -> object:
    """The learning rate with any of the ways to go wrong; without a switch it is right."""
    if order == "exchanged":
        d_model, warmup = warmup, d_model
    if order == "d_model_fixed":
        d_model = 512
    if step == 0 and zero in ("nothing", "width_alone", "highest"):
        return {"nothing": 0.0, "width_alone": d_model**-0.5, "highest": (d_model * warmup) ** -0.5}[zero]
    step = {"plus_one": step + 1, "minus_one": max(step - 1, 1), "two": step or 2}.get(zero, max(step, 1))
    a, b = _down(step, warmup, down), _up(step, warmup, up)
    rate = {
        "max": lambda: max(a, b),
        "sum": lambda: a + b,
        "mean": lambda: (a + b) / 2,
        "product": lambda: a * b,
        "up_alone": lambda: b,
        "down_alone": lambda: a,
        "power_outside": lambda: min(a, step * warmup) ** -1.5,
        "peak": lambda: warmup**-0.5,
        "up_then_nothing": lambda: b if step <= warmup else 0.0,
    }.get(choice, lambda: min(a, b))()
    rate = {
        "multiplied": lambda: d_model**0.5 * rate,
        "missing": lambda: rate,
        "whole": lambda: rate / d_model,
        "whole_multiplied": lambda: rate * d_model,
        "square": lambda: rate / d_model**2,
        "minus_1.5": lambda: d_model**-1.5 * rate,
        "inside": lambda: min(d_model**-0.5 * a, b),
        "inside_up": lambda: min(a, d_model**-0.5 * b),
        "added": lambda: d_model**-0.5 + rate,
        "negative": lambda: -(d_model**0.5) * rate,
    }.get(width, lambda: d_model**-0.5 * rate)()
    return {
        "peak_one": lambda: rate * (d_model * warmup) ** 0.5,
        "times_root": lambda: rate * warmup**0.5,
        "negative": lambda: -rate,
        "inverse": lambda: 1 / rate,
        "both_branches": lambda: [a, b],
        "whole": lambda: int(rate / 10),
        "logarithm": lambda: math.log(max(rate, 1e-9)),
        "of_base": lambda: rate * 0.001,
    }.get(result, lambda: rate)()


# ---------------------------------------------------------------- the gallery
RATE = "The rate is d_model^-0.5 times the smaller of step^-0.5 and step * warmup^-1.5."
MEET = "so that the two branches meet at step = warmup"
WIDER = "a wider model gets a smaller rate"
ZERO = "Step 0, which LambdaLR asks for first, is to be treated as step 1."

NOAM_MISTAKES = (
    # the factor of the width
    *one("width", "d_model_multiplied", f"You multiply by the root of d_model: divide by it, {WIDER}.", "multiplied"),
    *one(
        "width",
        "d_model_multiplied",
        f"You multiply by d_model: divide by its root, {WIDER}.",
        "whole_multiplied",
    ),
    *one("width", "d_model_missing", f"The argument d_model does not enter. {RATE}", "missing"),
    *one("width", "d_model_root_missing", f"You divide by d_model and not by its root. {RATE}", "whole"),
    *one("width", "d_model_exponent", f"The exponent of d_model is not -0.5. {RATE}", "square", "minus_1.5"),
    *one(
        "width",
        "parenthesis",
        "Only one of the two branches is multiplied by d_model^-0.5, and that before the smaller is taken (is a "
        f"parenthesis missing?). {RATE}",
        "inside",
        "inside_up",
    ),
    *one("width", "d_model_added", f"You add d_model^-0.5: it multiplies. {RATE}", "added"),
    *one(
        "width",
        "d_model_multiplied",
        f"Your rates are negative, and multiplied by the root of d_model: -0.5 is an exponent. {RATE}",
        "negative",
    ),
    # which branch
    *one(
        "choice",
        "larger_branch",
        "You take the larger branch: it must be the smaller, the warm-up before step = warmup and the decay after it "
        "(are min and max, or the two sides of an if, exchanged?).",
        "max",
    ),
    *one("choice", "branches_added", f"You add the two branches: take the smaller. {RATE}", "sum", "mean"),
    *one("choice", "branches_multiplied", f"You multiply the two branches: take the smaller. {RATE}", "product"),
    *one(
        "choice",
        "never_falls",
        "Your rate goes on rising after the warm-up: from step = warmup on it must fall like 1 / sqrt(step), which is "
        "step^-0.5 with a minus.",
        "up_alone",
    ),
    *one(
        "choice",
        "no_warmup",
        "Your rate falls from the first step on: there is no warm-up. Up to step = warmup it must rise in a straight "
        "line, step * warmup^-1.5, where the minus matters.",
        "down_alone",
    ),
    *one(
        "choice",
        "parenthesis",
        "You raise the smaller of the two to -1.5: the exponent belongs to warmup alone (is a parenthesis misplaced?). "
        f"{RATE}",
        "power_outside",
    ),
    *one("choice", "constant", f"Your rate is the same at every step: that of the peak. {RATE}", "peak"),
    *one("choice", "zero_after_warmup", f"After the warm-up your rate is 0. {RATE}", "up_then_nothing"),
    # the warm-up
    *one(
        "up",
        "warmup_exponent",
        "The exponent of warmup is -0.5 in your warm-up, so the two branches no longer meet at step = warmup, and the "
        "warm-up ends after a few steps or is none at all. It must be step * warmup^-1.5.",
        "half",
    ),
    *one(
        "up",
        "warmup_exponent",
        f"Your warm-up is step / warmup, which reaches 1. It must be step * warmup^-1.5, {MEET}.",
        "whole",
    ),
    *one(
        "up",
        "warmup_exponent",
        f"The exponent of warmup is wrong in your warm-up. It must be step * warmup^-1.5, {MEET}.",
        "two",
        "ratio_to_1.5",
    ),
    *one(
        "up",
        "warmup_without_step",
        "Your warm-up does not grow with the step. It must be step * warmup^-1.5.",
        "no_step",
    ),
    *one(
        "up",
        "flat_warmup",
        "Before step = warmup your rate stands still at its highest value. It must rise to it in a straight line, step "
        "* warmup^-1.5.",
        "flat",
    ),
    *one(
        "up",
        "warmup_not_straight",
        "Your warm-up does not rise in a straight line: it must be step * warmup^-1.5, with the step as it is.",
        "squared",
        "quadratic",
        "root",
    ),
    *one(
        "up",
        "exponent_on_both",
        "You raise the product of step and warmup to -1.5: only warmup has that exponent, step * warmup^-1.5.",
        "power_of_both",
    ),
    *one(
        "up",
        "whole_division",
        "Your step // warmup is 0 during the whole warm-up, and so is the rate: / gives the fraction.",
        "whole_division",
    ),
    # the decay
    *one(
        "down",
        "linear_decay",
        "After the warm-up your rate falls like 1 / step: at four times warmup it is a quarter of the peak, and must "
        "be half of it. The decay is 1 / sqrt(step).",
        "linear",
    ),
    *one(
        "down",
        "decay_exponent",
        "Your decay is 1 / step. It must be step^-0.5, so that at four times warmup half of the peak is left.",
        "one",
    ),
    *one("down", "decay_exponent", f"The exponent of step is wrong in your decay. {RATE}", "more", "two"),
    *one(
        "down",
        "constant_after_warmup",
        "After the warm-up your rate stays at its peak. It must fall like 1 / sqrt(step): at four times warmup half of "
        "the peak is left.",
        "constant",
    ),
    *one(
        "down",
        "decay_too_high",
        "Your decay is sqrt(warmup / step), which is larger than the right one by sqrt(warmup), so the branches do not "
        "meet at step = warmup. It is step^-0.5.",
        "ratio",
    ),
    *one(
        "down",
        "never_falls",
        "Your rate goes on rising after the warm-up, until another bound. From step = warmup on it must fall like "
        "step^-0.5.",
        "none",
    ),
    *one(
        "down",
        "counted_from_warmup",
        "After the warm-up you count the steps from its end, step - warmup. The step is counted from the beginning.",
        "since",
        "since_and_one",
    ),
    *one("down", "exponential_decay", f"Your decay is exponential: it is 1 / sqrt(step). {RATE}", "exponential"),
    # the step
    *one(
        "zero",
        "step_zero_is_zero",
        f"At step 0 your rate is 0 or next to it, so the first batch would change nothing. {ZERO}",
        "nothing",
        edge=True,
    ),
    *one(
        "zero",
        "step_zero_too_high",
        f"At step 0 your rate is much higher than at step 1. {ZERO}",
        "width_alone",
        "highest",
        edge=True,
    ),
    *one("zero", "step_zero_is_two", f"At step 0 you give the rate of step 2. {ZERO}", "two", edge=True),
    *one(
        "zero",
        "one_step_ahead",
        "You add 1 to every step, so your rates are one step ahead. That is right for a counter from 0; here steps "
        "count from 1, and only step 0 is to be treated as step 1.",
        "plus_one",
    ),
    *one(
        "zero",
        "one_step_behind",
        "You subtract 1 from the step, so your rates are one step behind: steps count from 1, and the first is step 1.",
        "minus_one",
    ),
    # arguments and result
    *one(
        "order",
        "arguments_exchanged",
        "You exchange d_model and warmup: the arguments come as step, d_model, warmup.",
        "exchanged",
    ),
    *one(
        "order",
        "argument_unused",
        "You use a fixed number, 512, in place of the argument d_model.",
        "d_model_fixed",
    ),
    *one(
        "result",
        "next_to_zero",
        "Your rates are 0, or next to it, at every step: they are cut off to whole numbers (int, //), or a large fixed "
        "number, such as 4000, stands in place of the argument warmup.",
        "whole",
    ),
    *one(
        "result",
        "peak_is_one",
        "Your rate has the right shape but reaches 1 at step = warmup: the peak must be 1 / sqrt(d_model * warmup).",
        "peak_one",
    ),
    *one(
        "result",
        "peak_without_warmup",
        "Your rate has the right shape but is larger by sqrt(warmup): the peak, at step = warmup, must be "
        "1 / sqrt(d_model * warmup).",
        "times_root",
    ),
    *one("result", "negative", "Your rates are negative: a step would go uphill.", "negative"),
    *one("result", "logarithm", "You return the logarithm of the rate.", "logarithm"),
    *one("result", "inverse", "You return one over the rate.", "inverse"),
    *one("result", "both_branches", "You return both branches: the smaller is asked for.", "both_branches"),
    *one(
        "result",
        "times_a_base_rate",
        "You multiply by a learning rate of your own, 0.001: the formula is the whole rate.",
        "of_base",
    ),
)


# ---------------------------------------------------------------- symptoms
def _ratios(seen: Seen) -> list[tuple[tuple[int, int], float]] | None:
    """((d_model, warmup), reader's rate over the right one) on the ordinary probes."""
    found = []
    for probe, expected, given in core(seen):
        rate = number(given)
        if rate is None or expected.value == 0:
            return None
        found.append((probe.make()[1:], rate / expected.value))
    return found


def _one_factor(ratios: list[float]) -> bool:
    return bool(np.allclose(ratios, ratios[0], rtol=0.02)) and ratios[0] != 0


def _constant_factor(seen: Seen) -> bool:
    found = _ratios(seen)
    return found is not None and _one_factor([r for _, r in found]) and not np.isclose(found[0][1], 1, rtol=0.02)


def _factor_of_sizes(seen: Seen) -> bool:
    found = _ratios(seen)
    groups: dict[tuple[int, int], list[float]] = {}
    for sizes, ratio in found or ():
        groups.setdefault(sizes, []).append(ratio)
    return bool(groups) and all(map(_one_factor, groups.values())) and not _right(core(seen))


def _right(seen: Seen) -> bool:
    return all(same_outcome(e, g) for _, e, g in seen)


def _numbers_wrong(seen: Seen) -> bool:
    """Wrong numbers, and no errors."""
    return not _right(seen) and all(number(g) is not None for _, _, g in seen)


def _split(seen: Seen) -> tuple[Seen, Seen]:
    """What was seen before, and after, the end of the warm-up."""
    early = [s for s in core(seen) if s[0].make()[0] < s[0].make()[2]]
    late = [s for s in core(seen) if s[0].make()[0] > s[0].make()[2]]
    return early, late


def _warmup_wrong(seen: Seen) -> bool:
    early, late = _split(seen)
    return _right(late) and _numbers_wrong(early)


def _decay_wrong(seen: Seen) -> bool:
    early, late = _split(seen)
    return _right(early) and _numbers_wrong(late)


SYMPTOMS = (
    Symptom(
        "step_zero_fails",
        "Step 0 is an error in your function: 0 has no power -0.5, which would be a division by zero. " + ZERO,
        lambda seen: right_only_without(seen, "step 0", raised=True),
    ),
    Symptom(
        "step_zero_wrong",
        "In the cases tried here every step from 1 on is right, and step 0 is not. " + ZERO,
        lambda seen: right_only_without(seen, "step 0"),
    ),
    Symptom(
        "constant_factor",
        f"All your rates are the right ones times one and the same number. {RATE} Nothing else multiplies it.",
        _constant_factor,
    ),
    Symptom(
        "factor_of_sizes",
        "In the cases tried here the shape is right: for one d_model and one warmup, all your rates are the right ones "
        "times one number. But that number changes with the sizes, so the power of d_model or of warmup in front is "
        "wrong. The peak, at step = warmup, must be 1 / sqrt(d_model * warmup).",
        _factor_of_sizes,
    ),
    Symptom(
        "warmup_wrong",
        f"In the cases tried here your rate is right after the warm-up, and not before its end: there it is step * "
        f"warmup^-1.5, {MEET}.",
        _warmup_wrong,
    ),
    Symptom(
        "decay_wrong",
        "In the cases tried here your rate is right before the end of the warm-up, and not after it: there it is "
        "step^-0.5.",
        _decay_wrong,
    ),
)


def _probe(step: int, d_model: int, warmup: int) -> Probe:
    says = f"step {step}, d_model {d_model}, warmup {warmup}"
    return Probe(says, lambda: (step, d_model, warmup), edge=step == 0)


NOAM_LR = Exercise(
    name="training.noam_lr",
    reference=lambda step, d_model, warmup: training.noam_lr(step, d_model, warmup),
    results=(Result("rate"),),
    probes=tuple(
        _probe(*sizes)
        for sizes in (
            (1, 6, 9),
            (3, 6, 9),
            (9, 6, 9),
            (36, 6, 9),
            (2, 3, 4),
            (4, 3, 4),
            (16, 3, 4),
            (1, 2, 7),
            (5, 11, 2),
            (0, 6, 9),
            (0, 3, 4),
        )
    ),
    compound=lr_wrongly,
    at_once=2,
    mistakes=NOAM_MISTAKES,
    symptoms=SYMPTOMS,
    settled=settled_number,
)
