"""How wrong a prediction is: cross-entropy per real token, plain and smoothed, over one batch and over several.

    loss = -log p(label),  smoothed: -sum_c q(c) log p(c) with q = 1 - eps on the label and eps on all tokens together

Label smoothing: Szegedy et al. 2016, "Rethinking the Inception Architecture for Computer Vision", section 7; Vaswani et
al. 2017, "Attention Is All You Need", section 5.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import (
    check_choice,
    check_count,
    check_float,
    check_ids,
    check_int,
    check_kind,
    check_list,
    check_number,
    check_tensor,
    shape_text,
)

__all__ = [
    "joined_loss",
    "kl_divergence",
    "label_smoothing",
    "perplexity",
    "sequence_loss",
    "smoothed_targets",
]

REDUCTIONS = ("mean", "sum", "none")


def sequence_loss(logits: Tensor, labels: Tensor, ignore: int = -100) -> Tensor:
    """The mean of -log p(label) over the real tokens of a batch. A tensor without axes.

    Args:
        logits: (batch, length, vocab_size), before any softmax.
        labels: ids (batch, length). The label of position t is the token that the model must say there: for a decoder
            that is `target_out`, already one place ahead of `target_in`.
        ignore: the label of padding, which counts neither in the sum nor in the number that divides it.

    A batch of nothing but padding has loss 0 and gradient 0. Raises ValueError for shapes that do not fit and for
    labels that are not in the vocabulary.

    >>> logits = torch.tensor([[[0.0, 0.0], [0.0, 5.0]]])  # two positions, two tokens
    >>> round(sequence_loss(logits, torch.tensor([[1, -100]])).item(), 4) == round(math.log(2), 4)
    True
    """
    check_tensor("logits", logits, dims=("batch", "length", "vocab_size"))
    check_tensor("labels", labels, dims=("batch", "length"))
    check_int("ignore", ignore)
    losses = _losses(logits, "labels", labels, 0.0, ignore)  # (batch, length)
    return _mean(losses, labels, ignore)


def label_smoothing(
    logits: Tensor, target: Tensor, eps: float = 0.1, ignore_index: int = -100, *, reduction: str = "mean"
) -> Tensor:
    """Cross-entropy with a label that shares `eps` among all tokens, itself included: torch's definition.

    Args:
        logits: (..., vocab_size), before any softmax.
        target: ids (...).
        eps: the share that is spread over all tokens of the vocabulary; 0 gives plain cross-entropy.
        ignore_index: the label of padding.
        reduction: "mean" over the targets that are not ignored, their "sum", or "none": one loss for each target,
            0 where it is ignored, in the shape of `target`.

    Nothing but ignored targets gives loss 0 and gradient 0 (torch's mean is NaN there). Raises ValueError for shapes
    that do not fit, for an `eps` outside 0..1 and for targets that are not in the vocabulary.

    >>> logits, target = torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0])
    >>> [round(label_smoothing(logits, target, eps).item(), 4) for eps in (0.0, 0.3)]
    [0.2395, 0.6395]
    """
    check_choice("reduction", reduction, REDUCTIONS)
    check_int("ignore_index", ignore_index)
    losses = _losses(logits, "target", target, eps, ignore_index)  # the shape of target
    if reduction == "mean":
        return _mean(losses, target, ignore_index)
    return losses.sum() if reduction == "sum" else losses


def _losses(logits: Tensor, name: str, labels: Tensor, eps: float, ignore: int) -> Tensor:
    """The loss of each label, 0 where it is ignored, in the shape of the labels, which the caller calls `name`."""
    _check_eps(eps)
    check_float("logits", logits, dims=("vocab_size",), leading=True)
    check_tensor(name, labels)
    if logits.shape[:-1] != labels.shape:
        raise ValueError(
            f"{name} must have the shape of logits without its last axis, {shape_text(logits.shape[:-1])}, "
            f"got {shape_text(labels)}: one label for each row of logits {shape_text(logits)}"
        )
    check_labels(name, labels, logits.shape[-1], ignore)
    rows, columns = logits[None].flatten(0, -2), labels.flatten().long()  # (tokens, vocab_size), (tokens,)
    losses = F.cross_entropy(rows, columns, ignore_index=ignore, label_smoothing=eps, reduction="none")  # (tokens,)
    return losses.view(labels.shape)


def _mean(losses: Tensor, labels: Tensor, ignore: int) -> Tensor:
    return losses.sum() / (labels != ignore).sum().clamp(min=1)


def smoothed_targets(target: Tensor, vocab: int, eps: float, pad: int) -> Tensor:
    """The distribution that the model shall match, as in the Annotated Transformer: (tokens,) -> (tokens, vocab).

    1 - eps on the target, eps / (vocab - 2) on every other token but padding, which is never to be predicted: column
    `pad` is 0, and so is the row of a target that is padding. float32.

    Rush 2018, "The Annotated Transformer", section Label Smoothing. Raises ValueError for a `vocab` below 3 and for
    targets that are not in it.

    >>> smoothed_targets(torch.tensor([2, 0]), vocab=4, eps=0.5, pad=0).tolist()
    [[0.0, 0.25, 0.5, 0.25], [0.0, 0.0, 0.0, 0.0]]
    """
    check_count("vocab", vocab, least=3)
    _check_eps(eps)
    check_tensor("target", target, dims=("tokens",))
    check_int("pad", pad)
    check_labels("target", target, vocab, pad)
    if not 0 <= pad < vocab:
        raise ValueError(f"pad must lie in 0..{vocab - 1}, because vocab is {vocab}; got {pad}")
    targets = torch.full((len(target), vocab), eps / (vocab - 2), device=target.device)  # (tokens, vocab)
    targets.scatter_(1, target[:, None].long(), 1 - eps)
    targets[:, pad] = 0.0
    return targets.masked_fill((target == pad)[:, None], 0.0)


def kl_divergence(logits: Tensor, targets: Tensor) -> Tensor:
    """sum of q (log q - log softmax(logits)) over everything, with 0 log 0 = 0. A tensor without axes.

    The loss that goes with `smoothed_targets`; divide it by the number of real tokens. It differs from cross-entropy by
    the entropy of the targets, which no training changes: a perfect prediction has loss 0.

    >>> targets = smoothed_targets(torch.tensor([2]), vocab=4, eps=0.5, pad=0)
    >>> round(kl_divergence(targets.log(), targets).item(), 4)
    0.0
    """
    check_float("logits", logits, dims=("vocab_size",), leading=True)
    check_float("targets", targets, dims=("vocab_size",), leading=True)
    if logits.shape != targets.shape:
        raise ValueError(f"logits and targets must have one shape, got {shape_text(logits)} and {shape_text(targets)}")
    if not targets.is_meta and (targets < 0).any():
        raise ValueError(f"targets must be probabilities, got {targets.min().item():g}: are these logarithms?")
    terms = F.kl_div(logits.log_softmax(-1), targets, reduction="none")  # (..., vocab_size)
    return terms.masked_fill(targets == 0, 0.0).sum()  # 0 log 0 is 0 also where a logit is -inf


def joined_loss(means: Sequence[float], counts: Sequence[int]) -> float:
    """The mean loss per token of a large batch, from the means of its parts and their numbers of real tokens.

    A part counts as often as it has tokens; the mean of the means would let a short part count as much as a long one.

    >>> joined_loss([2.0, 4.0], [30, 10])
    2.5
    """
    means, counts = numbers_of("means", means), numbers_of("counts", counts)
    if len(means) != len(counts) or not means:
        raise ValueError(f"means and counts must have one number for each part, got {len(means)} and {len(counts)}")
    total = sum(counts)
    if not 0 < total < math.inf or min(counts) < 0:
        raise ValueError(f"counts must be numbers of tokens, not all of them 0, got {counts}")
    return sum(mean * count for mean, count in zip(means, counts, strict=True) if count) / total


def perplexity(means: Sequence[float], counts: Sequence[int]) -> float:
    """exp of the mean loss per token, in nats: among how many equally likely tokens the model might as well guess.

    `means` and `counts` as in `joined_loss`; exp comes last, since the mean of perplexities is too large.

    >>> round(perplexity([math.log(8.0), math.log(2.0)], [10, 10]), 4)
    4.0
    """
    mean = joined_loss(means, counts)
    try:
        return math.exp(mean)
    except OverflowError:  # a loss above 709
        return math.inf


def numbers_of(name: str, values: object) -> list[float]:
    """A list, or a tensor, of numbers as Python's own; raises TypeError for what is none."""
    check_list(name, values, of="numbers")
    values = [value.item() if isinstance(value, Tensor) and not value.dim() else value for value in values]
    for i, value in enumerate(values):
        check_kind(f"{name}[{i}]", value, Real, "a number")
    return values


def _check_eps(eps: float) -> None:
    check_number("eps", eps, least=0, most=1, why="it is the share that the label gives away")


def check_labels(name: str, labels: Tensor, vocab_size: int, ignore: int) -> None:
    """Raise unless the labels are ids of the vocabulary, or `ignore`."""
    check_ids(name, labels)
    if labels.is_meta:
        return
    wrong = labels[(labels != ignore) & ((labels < 0) | (labels >= vocab_size))]
    if len(wrong):
        raise ValueError(
            f"{name} must lie in 0..{vocab_size - 1} or be {ignore}, which is passed over, got {int(wrong[0])}: "
            "is padding marked with another id?"
        )
