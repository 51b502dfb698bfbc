"""One step of training: loss, gradients, clipping, update; from one batch, or from parts too large to hold at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .losses import joined_loss

__all__ = ["accumulated_step", "train_step"]

Loss = Callable[[Tensor, Tensor], Tensor]


def train_step(model: nn.Module, optimizer: Optimizer, loss_fn: Loss, x: Tensor, y: Tensor, max_norm: float) -> float:
    """One update of the model from the batch (x, y). Returns the loss before it, as a number.

    Args:
        model: put into training mode, so that dropout is on.
        optimizer: holds the parameters; gradients that other batches left are cleared first.
        loss_fn: loss_fn(model(x), y) is the loss.
        max_norm: if the norm of all gradients together, as one long vector, is larger, all are scaled down to it.

    Raises ValueError if the gradients are not finite, and leaves the weights then as they were. Clipping: Pascanu et
    al. 2013, "On the difficulty of training recurrent neural networks", section 3.2.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.ones_(model.weight)
    >>> step = (model, torch.optim.SGD(model.parameters(), lr=0.25), nn.functional.mse_loss)
    >>> train_step(*step, torch.ones(1, 1), torch.zeros(1, 1), max_norm=1.0), round(model.weight.item(), 4)
    (1.0, 0.75)
    """
    model.train()
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    update(model, optimizer, max_norm)
    return loss.item()


def update(model: nn.Module, optimizer: Optimizer, max_norm: float) -> None:
    """Clip the gradients that are there to `max_norm`, and take the optimizer's step."""
    if not max_norm > 0:
        raise ValueError(f"max_norm must be above 0, got {max_norm}: float('inf') clips nothing")
    norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm))
    if not math.isfinite(norm):
        raise ValueError(f"the norm of the gradients is {norm}: the weights stay as they were before this step")
    optimizer.step()


def accumulated_step(
    model: nn.Module,
    optimizer: Optimizer,
    loss_fn: Loss,
    parts: Sequence[tuple[Tensor, Tensor]],
    counts: Sequence[int],
    max_norm: float,
) -> float:
    """The same update as `train_step` with all parts in one batch, but with one part in memory at a time.

    Args:
        parts: the (x, y) that the batch is cut into; loss_fn gives the mean loss per real token of each.
        counts: the number of real tokens of each part. A part's gradient is weighted by its share of them, since the
            mean of all tokens is not the mean of the parts' means.

    Returns the mean loss per token of all parts. Other arguments as in `train_step`. Dropout draws other numbers than
    for one batch; without dropout the two updates are equal up to rounding.
    """
    if len(parts) != len(counts) or not sum(counts) > 0:
        raise ValueError(
            f"counts must have one number of tokens for each of the {len(parts)} parts, not all of them 0, got {counts}"
        )
    model.train()
    optimizer.zero_grad()
    means = []
    for (x, y), count in zip(parts, counts, strict=True):
        loss = loss_fn(model(x), y)
        (loss * (count / sum(counts))).backward()  # gradients add up until they are cleared
        means.append(loss.item())
    update(model, optimizer, max_norm)
    return joined_loss(means, counts)
