"""The loop around the step."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from torch import Tensor, nn
from torch.optim import Optimizer

from ..errors import check_callable, check_count
from .checkpoints import check_place, load_checkpoint, save_checkpoint
from .schedules import set_lr
from .steps import check_loss, check_training, update

__all__ = ["fit"]


def fit(
    model: nn.Module,
    optimizer: Optimizer,
    loss_at: Callable[[int], Tensor],
    *,
    steps: int,
    schedule: Callable[[int], float] | None = None,
    max_norm: float = 1.0,
    report: Callable[[int, float], None] | None = None,
    checkpoint: str | Path | None = None,
    every: int = 100,
) -> list[float]:
    """Train for `steps` steps, 1 to `steps`; returns the loss of each, before its update.

    Args:
        model: in training mode at each step, whatever `report` did to it, and left in it.
        loss_at: loss_at(step) is the model's loss on the batch of that step. Which batch that is should depend on the
            step alone (as `Task.batch_at` has it), so that training can be taken up again anywhere.
        schedule: schedule(step) is the learning rate; that of the optimizer is kept if there is none.
        max_norm: the gradients together are clipped to this norm.
        report: report(step, loss) is called after each step: for a line of progress, or a picture on the way.
        checkpoint: a file that is written after each `every` steps and after the last. **If it is there at the
            beginning, training goes on from it**, bit for bit as if it had never stopped (on a GPU as far as its
            kernels always add in the same order).

    Raises ValueError at the first loss or gradient that is not finite, before it reaches the weights, and for a
    checkpoint that is cut off or comes from beyond `steps`.

    >>> import torch
    >>> model = nn.Linear(1, 1, bias=False)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    >>> losses = fit(model, optimizer, lambda step: (model.weight - 3).square().sum(), steps=20)
    >>> len(losses), losses[-1] < 0.01
    (20, True)
    """
    check_count("steps", steps)
    check_count("every", every)
    check_training(model, optimizer, max_norm)
    check_callable("loss_at", loss_at, "loss_at(step)")
    for name, given, form in (("schedule", schedule, "schedule(step)"), ("report", report, "report(step, loss)")):
        if given is not None:
            check_callable(name, given, form)
    if checkpoint is not None:
        check_place("checkpoint", checkpoint)
    done, losses = 0, []
    if checkpoint is not None and Path(checkpoint).exists():
        done, losses = load_checkpoint(checkpoint, model=model, optimizer=optimizer)
        if done > steps:
            raise ValueError(f"steps is {steps}, but {checkpoint} has {done} already: delete it to begin anew")
    for step in range(done + 1, steps + 1):
        model.train()
        if schedule is not None:
            set_lr(optimizer, schedule(step))
        optimizer.zero_grad()
        loss = loss_at(step)
        check_loss("loss_at", loss)
        losses.append(_finite(loss.item(), step))
        loss.backward()
        update(model, optimizer, max_norm)
        if report is not None:
            report(step, losses[-1])
        if checkpoint is not None and (step % every == 0 or step == steps):
            save_checkpoint(checkpoint, model=model, optimizer=optimizer, step=step, losses=losses)
    return losses


def _finite(loss: float, step: int) -> float:
    if not math.isfinite(loss):
        raise ValueError(
            f"the loss of step {step} is {loss}: the weights are as step {step - 1} left them. A lower learning rate, "
            "a longer warm-up or a smaller max_norm may help; a NaN at step 1 comes from the data or from a mask"
        )
    return loss
