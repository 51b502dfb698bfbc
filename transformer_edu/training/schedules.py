"""The learning rate of each step: up in a warm-up, then down. Functions of the step alone; steps count from 1.

Warm-up is what post-norm stacks need (Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture").
"""

from __future__ import annotations

import math

from torch.optim import Optimizer

from ..errors import check_count, check_kind, check_number

__all__ = ["cosine_lr", "linear_lr", "noam_lr", "set_lr"]


def noam_lr(step: int, d_model: int, warmup: int, *, factor: float = 1.0) -> float:
    """factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5): up in a straight line, then down like 1 / sqrt(step).

    The two branches meet at step = warmup, where the rate is highest: factor / sqrt(d_model * warmup). Step 0, which
    torch's LambdaLR asks for first, is taken as 1.

    Vaswani et al. 2017, section 5.3, equation 3. Raises ValueError for a negative step and for sizes below 1.

    >>> [round(noam_lr(step, d_model=100, warmup=4), 4) for step in (0, 1, 2, 4, 16)]
    [0.0125, 0.0125, 0.025, 0.05, 0.025]
    """
    check_count("step", step, least=0)
    check_count("d_model", d_model)
    check_count("warmup", warmup)
    check_number("factor", factor, least=0)
    step = max(step, 1)
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def linear_lr(step: int, *, peak: float, warmup: int, total: int, final: float = 0.0) -> float:
    """Up in a straight line to `peak` at step `warmup`, down in one to `final` at step `total`, and `final` after it.

    Devlin et al. 2019, "BERT", appendix A.2. Step 0 is taken as 1; `warmup` may be 0.

    >>> [linear_lr(step, peak=8.0, warmup=2, total=6) for step in (1, 2, 3, 4, 5, 6, 7)]
    [4.0, 8.0, 6.0, 4.0, 2.0, 0.0, 0.0]
    """
    up, down = _progress(step, peak, warmup, total, final)
    return peak * up if up < 1 else peak + (final - peak) * down


def cosine_lr(step: int, *, peak: float, warmup: int, total: int, final: float = 0.0) -> float:
    """As `linear_lr`, but down along half a wave of the cosine: slow, fast, slow.

    Loshchilov and Hutter 2017, "SGDR: Stochastic Gradient Descent with Warm Restarts", equation 5, without restarts.

    >>> [round(cosine_lr(step, peak=8.0, warmup=2, total=6), 2) for step in (1, 2, 3, 4, 5, 6, 7)]
    [4.0, 8.0, 6.83, 4.0, 1.17, 0.0, 0.0]
    """
    up, down = _progress(step, peak, warmup, total, final)
    return peak * up if up < 1 else final + (peak - final) * (1 + math.cos(math.pi * down)) / 2


def _progress(step: int, peak: float, warmup: int, total: int, final: float) -> tuple[float, float]:
    """How far the warm-up and the way down are done, both 0 to 1, once all arguments are known to make sense."""
    check_number("peak", peak, least=0)
    check_number("final", final, least=0)
    check_count("step", step, least=0)
    check_count("warmup", warmup, least=0)
    check_count("total", total)
    if total <= warmup:
        raise ValueError(f"total must be above warmup ({warmup}), got {total}: it is the number of all steps")
    step = max(step, 1)
    up = min(step / warmup, 1.0) if warmup else 1.0
    return up, min(max(step - warmup, 0) / (total - warmup), 1.0)


def set_lr(optimizer: Optimizer, lr: float) -> None:
    """Give every group of the optimizer this learning rate."""
    check_kind("optimizer", optimizer, Optimizer, "a torch.optim.Optimizer")
    check_number("lr", lr, least=0)
    for group in optimizer.param_groups:
        group["lr"] = lr
