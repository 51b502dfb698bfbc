"""The few names that lessons use: set_up, show, check in the first cell of each; progress, kept where one trains."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from . import exercises, plots
from .kept import kept, source_at_first

__all__ = ["check", "kept", "progress", "set_up", "show"]


def set_up() -> torch.device:
    """Prepare a lesson and return the device for its tensors.

    One CPU thread, since tensors as small as a lesson's run slower on several. The device is the CPU unless the
    environment variable TRANSFORMER_EDU_DEVICE names another one. Raises ValueError if that one is not there.
    """
    torch.set_num_threads(1)
    source_at_first()  # for what is kept: the package as it is now
    device = torch.device(os.environ.get("TRANSFORMER_EDU_DEVICE") or "cpu")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"TRANSFORMER_EDU_DEVICE is {device.type!r}, but torch finds none here: unset it to run on the CPU"
        ) from error
    return device


def show(*values: object, digits: int = 3) -> None:
    """Print numbers so that every machine prints the same: on the CPU, rounded, without -0.

    Tensors of up to two axes print as rows; one with more axes prints its shape first and then one block for each
    leading index. Everything else prints as it is.

    >>> show(torch.tensor([[0.25, -0.00001], [10.0, 2.0]]))
    [[ 0.25  0.  ]
     [10.    2.  ]]
    >>> show("rows sum to", torch.tensor([1.0, 1.0]))
    rows sum to [1. 1.]
    >>> show(torch.tensor([[True, False]]))
    [[1 0]]
    """
    text = ""
    for part in (_text(value, digits) for value in values):
        text += part if not text else ("\n" if "\n" in part else " ") + part  # a block begins on a line of its own
    print(text)


def _text(value: object, digits: int) -> str:
    if not isinstance(value, Tensor):
        return str(round(value, digits) + 0.0) if isinstance(value, float) else str(value)
    array = value.detach().cpu()
    if array.dtype == torch.bool:
        array = array.int()
    if array.is_floating_point():
        array = array.double().mul(10**digits).round().div(10**digits) + 0.0  # + 0.0 turns -0 into 0
    if array.dim() == 0:
        return str(array.item())
    if array.dim() <= 2:
        return _rows(array)
    blocks = [_rows(block) for block in array.flatten(0, -3)]
    return f"shape {tuple(array.shape)}\n" + "\n\n".join(blocks)


def _rows(array: Tensor) -> str:
    return np.array2string(array.numpy(), max_line_width=110, suppress_small=True, threshold=10_000)


def check(name: str, fn: Callable) -> Callable:
    """Check the reader's `fn` as the exercise `name`: print the verdict, draw where a tensor is wrong.

    Returns the reader's function once it is correct and the reference until then, so that the lesson goes on.
    """
    verdict = exercises.load(name).check(fn)
    if verdict.difference is not None:
        _draw(verdict.difference)
    return verdict.carry_forward()


def _draw(difference: exercises.Difference) -> None:
    from IPython.display import display

    display(
        plots.difference_picture(
            difference.given,
            difference.expected,
            difference.where,
            axes=difference.axes,
            title=difference.title,
        )
    )


def progress(steps: int) -> Callable[[int, float], None]:
    """One line that says how far training is, for `fit(..., report=progress(steps))`; it changes ten times a second.

    In a notebook it begins and ends as "600 steps", so that the stored output is the same after every run. In a
    terminal it stands on stderr and is gone at the end. Where there is neither, nothing is written.
    """
    rewrite, due = _line(f"{steps} steps"), 0.0

    def report(step: int, loss: float) -> None:
        nonlocal due
        if step == steps:
            rewrite(None)
        elif time.monotonic() >= due:
            rewrite(f"step {step} of {steps}, loss {loss:.3f}")
            due = time.monotonic() + 0.1

    return report


def _line(rest: str) -> Callable[[str | None], None]:
    """A function that rewrites a line of output; None puts it to rest."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is not None:
        from IPython.display import display

        handle = display({"text/plain": rest}, raw=True, display_id=True)
        return lambda text: handle.update({"text/plain": text or rest}, raw=True)
    if sys.stderr is not None and sys.stderr.isatty():
        return lambda text: print(f"\r\x1b[K{text or ''}", end="", file=sys.stderr, flush=True)
    return lambda text: None
