"""Does a model know what it knows? Of the answers it gives with 80 % confidence, 80 % should be right."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import check_count, check_float, check_int, check_tensor, shape_text
from .losses import check_labels

__all__ = ["Calibration", "calibration"]


class Calibration(NamedTuple):
    """What `calibration` returns; three tensors (bins,) for a picture and one number for all."""

    confidence: Tensor  # the mean probability of the likeliest token, in each bin; 0 in an empty one
    accuracy: Tensor  # the share of answers that are right, in each bin; 0 in an empty one
    share: Tensor  # of all answers, how many are in each bin
    error: float  # the mean of |confidence - accuracy|, each bin counting by its share


def calibration(logits: Tensor, labels: Tensor, ignore: int = -100, *, n_bins: int = 10) -> Calibration:
    """How far the probability of the likeliest token is from the share of cases in which it is right.

    Args:
        logits: (..., vocab_size), before any softmax.
        labels: ids (...).
        ignore: the label of padding, which does not count.
        n_bins: the answers are sorted into this many bins of equal width by their confidence.

    The expected calibration error of Guo et al. 2017, "On Calibration of Modern Neural Networks", section 2. Raises
    ValueError for shapes that do not fit, for labels that are not in the vocabulary and where no label counts.

    >>> logits = torch.tensor([[0.9, 0.1], [0.9, 0.1]]).log()  # twice 90 % sure of token 0, once wrongly
    >>> round(calibration(logits, torch.tensor([0, 1])).error, 4)
    0.4
    """
    check_count("n_bins", n_bins)
    check_int("ignore", ignore)
    check_float("logits", logits, dims=("vocab_size",), leading=True)
    check_tensor("labels", labels)
    if logits.shape[:-1] != labels.shape:
        raise ValueError(
            f"labels must have the shape of logits without its last axis, {shape_text(logits.shape[:-1])}, "
            f"got {shape_text(labels)}"
        )
    check_labels("labels", labels, logits.shape[-1], ignore)
    real = labels != ignore
    if not real.any():
        raise ValueError(f"labels must have one that is not {ignore}: there is nothing to count")
    confidence, answer = logits[real].double().softmax(-1).max(-1)  # (tokens,)
    if confidence.isnan().any():
        raise ValueError("logits must hold numbers, got nan: no confidence comes of it")
    right = (answer == labels[real]).double()
    place = (confidence * n_bins).long().clamp(max=n_bins - 1)  # a confidence of 1 is in the last bin
    counts = torch.bincount(place, minlength=n_bins)  # (bins,)
    by_bin = [torch.bincount(place, weights=x, minlength=n_bins) / counts.clamp(min=1) for x in (confidence, right)]
    share = counts / counts.sum()
    return Calibration(*by_bin, share, ((by_bin[0] - by_bin[1]).abs() * share).sum().item())
