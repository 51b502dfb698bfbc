"""How each kind of golden file about training is computed with this package."""

from __future__ import annotations

from collections.abc import Callable

import torch
from golden_case import Case, Comparisons
from torch import Tensor

from transformer_edu.training import kl_divergence, label_smoothing, noam_lr, smoothed_targets


def noam(case: Case) -> Comparisons:
    options = {"d_model": case.option("d_model"), "warmup": case.option("warmup"), "factor": case.option("factor")}
    rates = [noam_lr(step, **options) for step in case.tensors["in.steps"].tolist()]
    yield "out.rate", torch.tensor(rates, dtype=torch.float64), case.tensors["out.rate"]


def annotated(case: Case) -> Comparisons:
    """The Annotated Transformer's loss: the divergence from its smoothed targets, summed; the gradient is the sum's."""
    logits, target = case.tensors["in.logits"].clone().requires_grad_(), case.tensors["in.target"]
    pad = case.option("padding_idx")
    targets = smoothed_targets(target, case.option("size"), case.option("smoothing"), pad)
    total = kl_divergence(logits, targets)
    mine = {
        "out.true_dist": targets,
        "out.kl_sum": total,
        "out.kl_per_token": total / (target != pad).sum(),
        "grad.logits": gradient(total, logits),
    }
    yield from ((entry, mine[entry], golden) for entry, golden in case.tensors.items() if entry in mine)


def torchs(case: Case) -> Comparisons:
    """torch's cross-entropy with label smoothing, in each reduction; the gradient is the mean's."""
    logits, target = case.tensors["in.logits"].clone().requires_grad_(), case.tensors["in.target"]
    eps, ignored = case.option("label_smoothing"), case.option("ignore_index")
    for name, golden in case.group("out").items():
        yield f"out.{name}", label_smoothing(logits, target, eps, ignored, reduction=name), golden
    mean = label_smoothing(logits, target, eps, ignored)
    yield "grad.logits", gradient(mean, logits), case.tensors["grad.logits"]


def gradient(loss: Tensor, logits: Tensor) -> Tensor:
    return torch.autograd.grad(loss, logits, retain_graph=True)[0]


RUNNERS: dict[str, Callable[[Case], Comparisons]] = {
    "noam": noam,
    "label_smoothing": annotated,
    "cross_entropy": torchs,
}
