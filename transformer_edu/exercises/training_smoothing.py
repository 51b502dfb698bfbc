"""The exercise label_smoothing of lesson 09."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import training
from .exercise import Exercise, Mistake, Probe, Result, Symptom
from .outcome import said, same_outcome
from .symptoms import CHANGES_INPUT, Seen
from .training_parts import LOSS_SYMPTOMS, PER_TOKEN, LossExercise, core, losses, one, right_only_without

__all__ = ["LABEL_SMOOTHING"]


# ---------------------------------------------------------------- one wrong implementation
def _log_probabilities(logits: Tensor, source: str) -> Tensor:
    """What stands for log p, (tokens, classes)."""
    return {
        "first_axis": lambda: logits.log_softmax(0),
        "everything": lambda: logits.flatten().log_softmax(0).view_as(logits),
        "logits": lambda: logits,
        "probabilities": lambda: logits.softmax(-1),
        "softmax_twice": lambda: logits.softmax(-1).log_softmax(-1),
        "sigmoid": lambda: F.logsigmoid(logits),
        "two_steps": lambda: logits.softmax(-1).log(),
        "small_added": lambda: (logits.softmax(-1) + 1e-8).log(),
        "small_as_least": lambda: logits.softmax(-1).clamp(min=1e-8).log(),
        "base_two": lambda: logits.log_softmax(-1) / math.log(2),
    }.get(source, lambda: logits.log_softmax(-1))()


def _weights(share: str, classes: int, eps: float) -> tuple[float, float]:
    """How much -log p of the label and the sum of all -log p count."""
    return {
        "one_less": lambda: (1 - eps - eps / (classes - 1), eps / (classes - 1)),
        "two_less": lambda: (1 - eps - eps / (classes - 2), eps / (classes - 2)),
        "others_vocab": lambda: (1 - eps - eps / classes, eps / classes),
        "one_less_on_all": lambda: (1 - eps, eps / (classes - 1)),
        "two_less_on_all": lambda: (1 - eps, eps / (classes - 2)),
        "added": lambda: (1.0, eps / classes),
        "added_to_others": lambda: (1 - eps / (classes - 1), eps / (classes - 1)),
        "undivided": lambda: (1 - eps, eps),
        "undivided_others": lambda: (1 - 2 * eps, eps),
        "exchanged": lambda: (eps, (1 - eps) / classes),
        "exchanged_one_less": lambda: (eps - (1 - eps) / (classes - 1), (1 - eps) / (classes - 1)),
        "nothing": lambda: (1.0, 0.0),
        "label_part_alone": lambda: (1 - eps, 0.0),
        "smooth_part_alone": lambda: (0.0, eps / classes),
        "uniform_alone": lambda: (0.0, 1 / classes),
        "smooth_unscaled": lambda: (1 - eps, 1 / classes),
        "both_unscaled": lambda: (1.0, 1 / classes),
        "subtracted": lambda: (1 - eps, -eps / classes),
        "added_and_subtracted": lambda: (1 + eps, -eps / classes),
        "one_plus": lambda: (1 + eps, eps / classes),
        "half": lambda: (1 - eps / 2, eps / 2 / classes),
        "double": lambda: (1 - 2 * eps, 2 * eps / classes),
        "twice": lambda: ((1 - eps) ** 2, (1 - (1 - eps) ** 2) / classes),
        "square": lambda: (1 - eps, eps / classes**2),
        "label_one_others_one_less": lambda: (1 - eps / classes, eps / classes),
    }.get(share, lambda: (1 - eps, eps / classes))()


def _entropy(weights: tuple[float, float], classes: int) -> float:
    """The entropy of the target distribution with these weights."""
    q = [weights[1]] * (classes - 1) + [weights[0] + weights[1]]
    return -sum(x * math.log(x) for x in q if x > 0)


def _per_token(logits: Tensor, target: Tensor, eps: float, how: dict[str, str]) -> tuple[Tensor, Tensor]:
    """The loss of the label and that of the smoothing, for each target, (tokens,) each."""
    classes = logits.shape[-1]
    logp = _log_probabilities(logits, how["source"])
    label = -logp.gather(-1, target.clamp(min=0)[:, None])[:, 0]
    a, b = _weights(how["share"], classes, eps)
    of_all = logp.detach() if how["graph"] == "smooth_cut" else logp
    label, smooth = a * label, -b * of_all.sum(-1)
    form = how["form"]
    if form == "divergence":
        smooth = smooth - _entropy((a, b), classes)
    if form == "smooth_of_probabilities":
        smooth = -eps * logits.softmax(-1).mean(-1)
    if form == "smooth_log_of_mean":
        smooth = -eps * logits.softmax(-1).mean(-1).log()
    if form == "smoothed_predictions":
        p = (1 - eps) * logits.softmax(-1) + eps / classes
        label, smooth = -p.log().gather(-1, target.clamp(min=0)[:, None])[:, 0], 0 * smooth
    if form == "smoothed_logits":
        mixed = (1 - eps) * logits + eps / classes
        label, smooth = -mixed.log_softmax(-1).gather(-1, target.clamp(min=0)[:, None])[:, 0], 0 * smooth
    if form == "confidence_penalty":
        p = logits.softmax(-1)
        label, smooth = label / a, eps * (p * logp).sum(-1)
    if form == "reverse":
        q = torch.full_like(logits, b).scatter_add(1, target.clamp(min=0)[:, None], torch.full_like(label, a)[:, None])
        p = logits.softmax(-1)
        label, smooth = (p * (p.log() - q.log())).sum(-1), 0 * smooth
    if form == "binary":
        q = torch.full_like(logits, b).scatter_add(1, target.clamp(min=0)[:, None], torch.full_like(label, a)[:, None])
        label, smooth = F.binary_cross_entropy_with_logits(logits, q, reduction="none").sum(-1), 0 * smooth
    if form == "squared":
        q = torch.full_like(logits, b).scatter_add(1, target.clamp(min=0)[:, None], torch.full_like(label, a)[:, None])
        label, smooth = (logits.softmax(-1) - q).square().sum(-1), 0 * smooth
    return label, smooth


def _real(target: Tensor, ignore: int, which: str) -> Tensor:
    if which == "negative":
        return target >= 0
    if which == "zero":
        return target != 0
    if which == "zero_and_negative":
        return target > 0
    if which == "only_ignored":
        return target == ignore
    return target != ignore


def _masked(label: Tensor, smooth: Tensor, real: Tensor, masked: str) -> list[tuple[Tensor, Tensor | int]]:
    """What the two parts add up to, and the numbers that divide them."""
    n, every = real.sum(), len(real)
    parts = {
        "counted": (label[real], every, smooth[real], every),
        "smooth_unmasked": (label[real], n, smooth, n),
        "smooth_over_all": (label[real], n, smooth, every),
        "label_unmasked": (label, every, smooth[real], n),
        "smooth_counted": (label[real], n, smooth[real], every),
        "label_counted": (label[real], every, smooth[real], n),
        "label_masked_all_counted": (label[real], every, smooth, every),
        "unmasked": (label, every, smooth, every),
    }.get(masked, (label[real], n, smooth[real], n))
    return [(parts[0].sum(), parts[1]), (parts[2].sum(), parts[3])]


def _reduced(label: Tensor, smooth: Tensor, real: Tensor, classes: int, how: dict[str, str]) -> Tensor:
    both, kept = label + smooth, label[real] + smooth[real]
    alone = {
        "none": lambda: both * real,
        "kept_alone": lambda: kept,
        "last": lambda: kept[-1],
        "first": lambda: kept[0],
        "most": lambda: kept.max(),
        "median": lambda: kept.median(),
    }
    if how["reduction"] in alone:
        return alone[how["reduction"]]()
    (a, n), (b, m) = _masked(label, smooth, real, how["masked"])
    n, m = {
        "sum": (1, 1),
        "label_sum": (1, m),
        "smooth_sum": (n, 1),
        "classes_too": (n * classes, m * classes),
        "one_less": (max(int(n) - 1, 1), max(int(m) - 1, 1)),
        "one_more": (n + 1, m + 1),
    }.get(how["reduction"], (n, m))
    return a / n + b / m


def smoothing_wrongly(
    logits: Tensor, target: Tensor, eps: float | None = None, ignore_index: int | None = None, **changes: str
) -> object:
    """The smoothed loss with any of the ways to go wrong; without a switch it is right."""
    names = ("share", "source", "form", "which", "masked", "reduction", "graph", "result", "default", "place")
    how = dict.fromkeys(names, "right") | changes
    eps = (0.0 if how["default"] == "no_eps" else 0.1) if eps is None else eps
    ignore_index = (0 if how["default"] == "ignores_0" else -100) if ignore_index is None else ignore_index
    if how["default"] == "eps_fixed":
        eps = 0.1
    real = _real(target, ignore_index, how["which"])
    if how["place"] == "error":
        target = target.where(target != -100, logits.shape[-1])  # out of bounds, as in gather or one_hot
        torch.arange(logits.shape[-1])[target]
    if how["place"] == "own_answers":
        target = torch.where(real, logits.argmax(-1), target)
    if how["place"] == "changed":
        target[~real] = 0
    label, smooth = _per_token(logits, target, eps, how)
    loss = _reduced(label, smooth, real, logits.shape[-1], how)
    if how["graph"] == "cut":
        loss = loss.detach()
    return {
        "negative": lambda: -loss,
        "exponential": lambda: loss.exp(),
        "two_results": lambda: (loss, real.sum()),
    }.get(how["result"], lambda: loss)()


# ---------------------------------------------------------------- the gallery
TORCH = (
    "The label keeps 1 - eps, and eps is shared by all classes, the label among them: (1 - eps) * -log p(label) + eps "
    "* the mean of -log p over all classes."
)
IGNORED = "An ignored target counts neither in the sum nor in the number that divides it."
ZERO_EPS = "With eps = 0 it must be plain cross-entropy."

SMOOTHING_MISTAKES = (
    # how eps is shared
    *one(
        "share",
        "label_left_out",
        "You share eps among the other classes alone, eps / (V - 1) each, and the label keeps 1 - eps. That is another "
        "common form. Here, as in torch, eps is shared by all V classes, so that the label has 1 - eps + eps / V.",
        "one_less",
    ),
    *one(
        "share",
        "divided_by_v_minus_two",
        "You share eps as smoothed_targets does, among V - 2 words. Here there is no padding column: eps is shared by "
        "all V classes, so that the label has 1 - eps + eps / V.",
        "two_less",
    ),
    *one(
        "share",
        "sums_to_less",
        "Your target distribution sums to less than 1: the label has 1 - eps and each other class eps / V. The label "
        "gets its eps / V too, on top of 1 - eps.",
        "others_vocab",
    ),
    *one(
        "share",
        "wrong_divisor",
        f"You share eps among V - 1 or V - 2 classes, but give it to V: your target sums to more than 1. {TORCH}",
        "one_less_on_all",
        "two_less_on_all",
    ),
    *one(
        "share",
        "adds_to_one_hot",
        "You add eps / V without taking eps from the label, so your target distribution sums to 1 + eps: scale the "
        "one-hot part by 1 - eps.",
        "added",
    ),
    *one(
        "share",
        "adds_to_one_hot",
        "The label keeps the whole 1 beside the shares of the other classes, so your target distribution sums to more "
        f"than 1. {TORCH}",
        "added_to_others",
    ),
    *one(
        "share",
        "label_keeps_one",
        f"The label keeps 1, and the other classes get eps / V on top. {TORCH}",
        "label_one_others_one_less",
    ),
    *one(
        "share",
        "sum_not_mean",
        "You add up -log p over all classes and multiply by eps, so the smoothing is V times too strong: it must be "
        "eps times their mean, eps / V for each class.",
        "undivided",
        "undivided_others",
    ),
    *one(
        "share",
        "eps_exchanged",
        f"You exchange eps and 1 - eps: the label gets eps and the smoothing 1 - eps. {ZERO_EPS}",
        "exchanged",
        "exchanged_one_less",
    ),
    *one("share", "not_smoothed", f"The argument eps does not enter: this is plain cross-entropy. {TORCH}", "nothing"),
    *one(
        "share",
        "smoothing_part_missing",
        f"You take eps from the label and give it to no class: the second part is missing. {TORCH}",
        "label_part_alone",
    ),
    *one(
        "share",
        "label_part_missing",
        f"The label does not enter: you have the smoothing alone. {TORCH}",
        "smooth_part_alone",
        "uniform_alone",
    ),
    *one(
        "share",
        "smoothing_not_scaled",
        f"The mean over all classes is not multiplied by eps. {ZERO_EPS}",
        "smooth_unscaled",
        "both_unscaled",
    ),
    *one(
        "share",
        "smoothing_subtracted",
        "The smoothing has the wrong sign: you reward a small log p of the other classes. -log p stands in both parts, "
        "with a minus.",
        "subtracted",
        "added_and_subtracted",
    ),
    *one("share", "one_plus_eps", f"The label is multiplied by 1 + eps: it is 1 - eps. {TORCH}", "one_plus"),
    *one(
        "share", "eps_halved_or_doubled", f"You smooth with half of eps, or with twice eps. {TORCH}", "half", "double"
    ),
    *one(
        "share",
        "smoothed_twice",
        f"You smooth twice, as where smoothed targets go to cross_entropy together with label_smoothing=eps. {TORCH}",
        "twice",
    ),
    *one("share", "divided_twice", f"The smoothing is divided by V twice. {TORCH}", "square"),
    # what stands for log p
    *one(
        "source",
        "wrong_axis",
        "Your softmax runs over the targets (axis 0), so that one target changes the loss of the others: it must run "
        "over the classes, dim=-1.",
        "first_axis",
    ),
    *one(
        "source",
        "wrong_axis",
        "Your softmax runs over the whole tensor: it must run over the classes, dim=-1.",
        "everything",
    ),
    *one(
        "source",
        "no_log_softmax",
        "You take the logits for log-probabilities: log_softmax comes first, or the loss has no lower bound.",
        "logits",
    ),
    *one(
        "source",
        "no_logarithm",
        "You take probabilities where their logarithms belong: log_softmax, not softmax.",
        "probabilities",
    ),
    *one(
        "source",
        "softmax_twice",
        "The softmax is taken twice: cross_entropy and log_softmax expect the logits as they are.",
        "softmax_twice",
    ),
    *one("source", "sigmoid", "You take a sigmoid of each logit: the classes share one softmax.", "sigmoid"),
    *one(
        "source",
        "softmax_then_log",
        "Where the logits lie far apart, your loss is infinite, nan or cut off: the softmax gives 0 there, and its "
        "logarithm is taken afterwards. log_softmax does both in one step and stays exact; a small number under the "
        "logarithm changes the loss.",
        "two_steps",
        "small_added",
        "small_as_least",
        edge=True,
    ),
    *one("source", "base_two", "Your logarithm has base 2: it must be the natural one.", "base_two"),
    # another loss
    *one(
        "form",
        "divergence",
        "You have the KL divergence, which is smaller than cross-entropy by the entropy of the target distribution. "
        "The gradients are the same; here the cross-entropy is asked for, -sum of q log p.",
        "divergence",
    ),
    *one(
        "form",
        "smooths_predictions",
        "You smooth the predictions and not the targets: -log((1 - eps) p + eps / V) is bounded, and its gradient "
        "vanishes where the prediction is hopeless. Smooth the target: " + TORCH,
        "smoothed_predictions",
    ),
    *one(
        "form",
        "smoothing_of_probabilities",
        "Your smoothing is the mean of the probabilities, or the logarithm of that mean: it is eps times the mean of "
        "-log p over all classes.",
        "smooth_of_probabilities",
        "smooth_log_of_mean",
    ),
    *one("form", "smooths_predictions", f"You smooth the logits and not the targets. {TORCH}", "smoothed_logits"),
    *one(
        "form",
        "confidence_penalty",
        f"You subtract eps times the entropy of the prediction, which is another method. {TORCH}",
        "confidence_penalty",
    ),
    *one(
        "form",
        "arguments_exchanged",
        "You weight with the predicted probabilities in place of the target distribution: the two sides of the "
        f"divergence are exchanged. {TORCH}",
        "reverse",
    ),
    *(
        Mistake(
            "binary_cross_entropy",
            "You use binary cross-entropy, which asks of each class by itself whether it is the right one: the classes "
            f"share one softmax. {TORCH}",
            switches={"form": "binary", **switches},
        )
        for switches in ({}, {"reduction": "classes_too"})
    ),
    *one("form", "squared_error", f"You measure the squared distance of the probabilities. {TORCH}", "squared"),
    # ignored targets
    *one(
        "masked",
        "ignored_counted",
        "Ignored targets add nothing to your sum, but the mean divides by all targets: divide by the number of those "
        "that are not ignored.",
        "counted",
    ),
    *one(
        "masked",
        "smoothing_unmasked",
        "The smoothing part also counts the ignored targets, so padding pulls towards the uniform distribution. "
        + IGNORED,
        "smooth_unmasked",
        "label_masked_all_counted",
    ),
    *one(
        "masked",
        "smoothing_unmasked",
        f"The smoothing part also counts the ignored targets. {IGNORED} (If you do leave them out: a column (N, 1) "
        "plus a vector (N,) is a table (N, N), which mixes all targets. squeeze, or keepdim=True in both, mends that.)",
        "smooth_over_all",
    ),
    *one(
        "masked",
        "label_part_unmasked",
        f"The label part also counts the ignored targets. {IGNORED}",
        "label_unmasked",
    ),
    *one(
        "masked",
        "one_part_over_all",
        f"One of your two parts is divided by the number of all targets, the other by that of the real ones. {IGNORED}",
        "smooth_counted",
        "label_counted",
    ),
    *one(
        "masked",
        "ignored_not_left_out",
        f"Ignored targets count like any other, as if their label were 0. {IGNORED}",
        "unmasked",
    ),
    *one(
        "which",
        "ignore_index_unused",
        "The argument ignore_index does not enter: you always pass over -100, or every negative label. With "
        "ignore_index=0, as for padding with id 0, that is another target.",
        "negative",
        edge=True,
    ),
    *one(
        "which",
        "zero_ignored",
        "You pass over targets of class 0: those to pass over are given by ignore_index.",
        "zero",
        "zero_and_negative",
    ),
    *one("which", "only_ignored", f"You keep the ignored targets and leave out the others. {IGNORED}", "only_ignored"),
    *one(
        "place",
        "ignored_as_index",
        "It fails as soon as a target is ignored: -100 is no class, so it cannot be looked up. Select the real targets "
        "first, target[target != ignore_index], and the same rows of the logits, or replace -100 by 0 for the lookup "
        "alone.",
        "error",
    ),
    *one(
        "place",
        "changes_target",
        "The caller's target is changed: the ignored labels are overwritten in place. Work on a copy, such as "
        "target.clamp(min=0) or masked_fill without underscore.",
        "changed",
    ),
    *one(
        "place",
        "own_answers",
        "You take the likeliest class of the logits for the label: the label is the target.",
        "own_answers",
    ),
    # the mean
    *one(
        "reduction", "sum_of_targets", "You add up over the targets: divide by the number of those not ignored.", "sum"
    ),
    *one(
        "reduction",
        "not_reduced",
        "You return one loss for each target: their mean is asked for.",
        "none",
        "kept_alone",
    ),
    *one(
        "reduction",
        "divided_by_classes",
        "You divide by the number of targets times that of classes, as the mean over a whole table does. Add up over "
        "the classes; divide by the number of real targets.",
        "classes_too",
    ),
    *one(
        "reduction",
        "one_target_alone",
        "Only one target counts in your loss: all that are not ignored do.",
        "last",
        "first",
        "most",
        "median",
    ),
    *one("reduction", "count_off_by_one", "The number that divides your sum is off by one.", "one_less", "one_more"),
    *one(
        "reduction",
        "one_part_summed",
        "One of your two parts is a sum over the targets, the other a mean: both are means.",
        "label_sum",
        "smooth_sum",
    ),
    # gradient, result, defaults
    *one(
        "graph",
        "smoothing_without_gradient",
        "The loss is right, but its smoothing part has no gradient (detach, no_grad, .data): training would not be "
        "smoothed at all.",
        "smooth_cut",
    ),
    *one(
        "graph",
        "no_gradient",
        "No gradient reaches the logits: the loss must be a tensor computed from them by torch, without .item(), "
        "detach, .data, NumPy or torch.tensor(...) in between.",
        "cut",
    ),
    *one(
        "result", "negative", "Your loss has the wrong sign: it is the mean of -log p, which is positive.", "negative"
    ),
    *one("result", "exponential", "You return exp of the loss, a perplexity.", "exponential"),
    *one("result", "two_results", "You return more than the loss: the loss alone is asked for.", "two_results"),
    *one(
        "default",
        "eps_default",
        "Where eps is left out, yours is not 0.1: give the argument that default.",
        "no_eps",
        edge=True,
    ),
    *one("default", "eps_fixed", "You use 0.1 in place of the argument eps.", "eps_fixed"),
    *one(
        "default",
        "ignore_index_default",
        "Where ignore_index is left out, yours is not -100: give the argument that default.",
        "ignores_0",
        edge=True,
    ),
)


# ---------------------------------------------------------------- symptoms
def _right_without(seen: Seen, part: str) -> bool:
    """Numbers come out, all right where the description does not have `part`, all wrong where it does."""
    wrong = [part in p.says for p, e, g in seen if not same_outcome(e, g)]
    return losses(seen) is not None and bool(wrong) and all(wrong) and len(wrong) >= 2


def _smoothing_wrong(seen: Seen) -> bool:
    plain = [same_outcome(e, g) for p, e, g in seen if "eps 0.0" in p.says]
    smooth = [same_outcome(e, g) for p, e, g in core(seen) if "eps 0.0" not in p.says]
    return all(plain) and not any(smooth) and losses(seen, edges=False) is not None


def _ignore_index_wrong(seen: Seen) -> bool:
    wrong = ["ignore_index" in p.says and "left out" not in p.says for p, e, g in seen if not same_outcome(e, g)]
    return losses(seen) is not None and bool(wrong) and all(wrong)


def _defaults_missing(seen: Seen) -> bool:
    return right_only_without(seen, "left out", raised=True) and all(
        isinstance(g.error, TypeError) for p, _, g in seen if "left out" in p.says
    )


SYMPTOMS: tuple[Symptom, ...] = (
    CHANGES_INPUT,
    PER_TOKEN,
    Symptom(
        "defaults_missing",
        "It cannot be called with two arguments: give eps the default 0.1 and ignore_index the default -100.",
        _defaults_missing,
    ),
    Symptom(
        "ignored_as_index",
        f"It fails as soon as a target is ignored: -100 is no class, so it cannot be looked up. {IGNORED}",
        lambda seen: right_only_without(seen, "-100,", raised=True),
    ),
    Symptom(
        "large_logits",
        "In the cases tried here it is right except where the logits lie far apart: work with log_softmax, in one "
        "step, and cut nothing off.",
        lambda seen: right_only_without(seen, "far apart"),
    ),
    Symptom(
        "ignore_index_wrong",
        "In the cases tried here it is right as long as ignore_index is -100, and wrong where it is an id: pass over "
        "the targets that are equal to it, and over no others; the class itself stays among those that share eps.",
        _ignore_index_wrong,
    ),
    Symptom(
        "rows_do_not_match",
        "There are not as many rows of logits as targets where you compare them: the logits come as (tokens, classes), "
        "and cross_entropy takes them so.",
        lambda seen: any("Expected input batch_size" in said(g.error) for _, _, g in seen),
    ),
    *LOSS_SYMPTOMS,
    Symptom(
        "ignored_wrong",
        f"In the cases tried here it is right as long as no target is ignored, and wrong where some are. {IGNORED}",
        lambda seen: _right_without(seen, "some ignored"),
    ),
    Symptom(
        "smoothing_wrong",
        f"In the cases tried here your loss is right with eps = 0, and not with a larger eps. {TORCH}",
        _smoothing_wrong,
    ),
)


# ---------------------------------------------------------------- probes
def _logits(tokens: int, classes: int, seed: int, scale: float = 1.5) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(tokens, classes, generator=generator) * scale * 4).round() / 4


def _probe(says: str, logits: Tensor, target: list[int], *others: float, edge: bool = False) -> Probe:
    make: Callable[[], tuple] = lambda: (logits.clone(), torch.tensor(target), *others)  # noqa: E731
    return Probe(says, make, edge=edge)


LABEL_SMOOTHING: Exercise = LossExercise(
    name="training.label_smoothing",
    reference=lambda logits, target, eps=0.1, ignore_index=-100: training.label_smoothing(
        logits, target, eps, ignore_index
    ),
    results=(Result("gradient", ("token", "class")), Result("loss")),
    probes=(
        _probe("logits [[0, 1, 3]], target [2], eps 0.1", torch.tensor([[0.0, 1.0, 3.0]]), [2], 0.1, -100),
        _probe("logits of shape (2, 4), target [1, 3], eps 0.2", _logits(2, 4, 1), [1, 3], 0.2, -100),
        _probe("logits of shape (2, 3), target [0, 2], eps 0.0", _logits(2, 3, 9), [0, 2], 0.0, -100),
        _probe("logits of shape (3, 5), target [0, 4, 0], eps 0.3", _logits(3, 5, 3), [0, 4, 0], 0.3, -100),
        _probe(
            "logits of shape (4, 5), target [2, -100, 0, -100], eps 0.1: some ignored",
            _logits(4, 5, 4),
            [2, -100, 0, -100],
            0.1,
            -100,
        ),
        _probe(
            "logits of shape (4, 4), target [3, -100, 0, 1], eps 0.4: some ignored",
            _logits(4, 4, 5),
            [3, -100, 0, 1],
            0.4,
            -100,
        ),
        _probe(
            "logits of shape (4, 3), target [2, 0, 1, 0], eps 0.1, ignore_index 0: some ignored",
            _logits(4, 3, 6),
            [2, 0, 1, 0],
            0.1,
            0,
            edge=True,
        ),
        _probe(
            "logits of shape (3, 4), target [2, 0, 1], eps 0.2, ignore_index 1: some ignored",
            _logits(3, 4, 7),
            [2, 0, 1],
            0.2,
            1,
            edge=True,
        ),
        _probe(
            "logits of shape (3, 4), target [0, 3, 2], eps and ignore_index left out",
            _logits(3, 4, 8),
            [0, 3, 2],
            edge=True,
        ),
        _probe(
            "logits [[1000, 0, -400]], far apart, target [1], eps 0.1",
            torch.tensor([[1000.0, 0.0, -400.0]]),
            [1],
            0.1,
            -100,
            edge=True,
        ),
    ),
    compound=smoothing_wrongly,
    at_once=2,
    mistakes=SMOOTHING_MISTAKES,
    symptoms=SYMPTOMS,
)
