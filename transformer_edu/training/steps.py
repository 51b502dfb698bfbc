"""One step of training: loss, gradients, clipping, update; from one batch, or from parts too large to hold at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..errors import check_callable, check_kind, check_list, check_module, check_number, shape_text
from .losses import joined_loss, numbers_of

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
    check_training(model, optimizer, max_norm)
    check_callable("loss_fn", loss_fn, "loss_fn(model(x), y)")
    model.train()
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    check_loss("loss_fn", loss)
    loss.backward()
    update(model, optimizer, max_norm)
    return loss.item()


def update(model: nn.Module, optimizer: Optimizer, max_norm: float) -> None:
    """Clip the gradients that are there to `max_norm`, and take the optimizer's step."""
    norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm))
    if not math.isfinite(norm):
        raise ValueError(f"the norm of the gradients is {norm}: the weights stay as they were before this step")
    optimizer.step()


def check_training(model: nn.Module, optimizer: Optimizer, max_norm: float) -> None:
    """Raise unless the optimizer can change the model."""
    check_module("model", model)
    check_kind("optimizer", optimizer, Optimizer, "a torch.optim.Optimizer")
    if max_norm != math.inf:
        check_number("max_norm", max_norm, above=0, why="float('inf') clips nothing")
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    if not any(id(parameter) in held for parameter in model.parameters()):
        raise ValueError(
            "optimizer must hold parameters of model, got those of another one, which would learn nothing: make it "
            "anew from model.parameters()"
        )


def check_loss(name: str, loss: object) -> None:
    """Raise unless `loss`, which the function called `name` returned, is one number with a gradient."""
    check_kind(f"what {name} returns", loss, Tensor, "a tensor with a gradient")
    if loss.numel() != 1:
        raise ValueError(f"{name} must return one number, got shape {shape_text(loss)}: .mean() makes one")
    if not loss.requires_grad:
        raise ValueError(
            f"{name} must return a loss with a gradient, got one without: are the parameters frozen, is it detached, "
            "or computed under torch.no_grad()?"
        )


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
    check_training(model, optimizer, max_norm)
    check_callable("loss_fn", loss_fn, "loss_fn(model(x), y)")
    parts, counts = _checked_parts(parts), numbers_of("counts", counts)
    if len(parts) != len(counts) or not 0 < sum(counts) < math.inf or min(counts) < 0:
        raise ValueError(
            f"counts must have one number of tokens for each of the {len(parts)} parts, not all of them 0, got {counts}"
        )
    model.train()
    optimizer.zero_grad()
    means = []
    for (x, y), count in zip(parts, counts, strict=True):
        loss = loss_fn(model(x), y)
        check_loss("loss_fn", loss)
        (loss * (count / sum(counts))).backward()  # gradients add up until they are cleared
        means.append(loss.item())
    update(model, optimizer, max_norm)
    return joined_loss(means, counts)


def _checked_parts(parts: Sequence[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
    check_list("parts", parts, of="pairs (x, y)")
    parts = list(parts)
    for i, part in enumerate(parts):
        if not isinstance(part, tuple | list) or len(part) != 2:
            got = shape_text(part) if isinstance(part, Tensor) else type(part).__name__
            raise ValueError(f"parts[{i}] must be a pair (x, y), got {got}")
    return parts
