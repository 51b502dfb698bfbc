"""How each kind of golden file about norms is computed with this package."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from golden_case import Case, Comparisons, first
from torch import Tensor

from transformer_edu.norms import LayerNorm, layer_norm


@dataclass(frozen=True)
class Form:
    """What a system's layer norm is: its eps, and where it differs from torch's."""

    eps: float
    unbiased: bool = False
    eps_outside: bool = False


TORCH = Form(eps=1e-5)
SYSTEM_001 = Form(eps=1e-6, unbiased=True, eps_outside=True)


def layer_norms(case: Case, form: Form) -> Comparisons:
    """Every output once by the function and once by the module, and its gradients where the file has them.

    A name says where a norm is not the file's usual one: `torch_...`, `eps1e-6`, `plain_...` (no gain, no bias),
    `..._sum` (system 001's bug: the sum of the columns is subtracted, and not their mean).
    """
    for by_module in (False, True):
        for name, golden in case.group("out").items():
            run = Run(case, name, form, by_module)
            yield f"out.{name}", run.loss() if name.endswith("loss") else run.y, golden
        for name, golden in case.group("grad").items():
            variant, _, of = name.rpartition(".")
            yield f"grad.{name}", Run(case, variant, form, by_module).gradient(of), golden


class Run:
    """One norm of a case: `variant` is the name of its output, or what stands before the name of a gradient."""

    def __init__(self, case: Case, variant: str, form: Form, by_module: bool) -> None:
        tags = {name.rpartition(".")[0] for name in (*case.group("in"), *case.group("w"))} - {""}
        tag = next((tag for tag in tags if f"{variant}.".startswith(f"{tag}.")), "")
        self.sum = "sum(" in case.description
        given = case.group("in", tag) | case.group("w", tag)
        self.leaves = {n: t.clone().requires_grad_(t.is_floating_point()) for n, t in given.items()}
        x = first(self.leaves, "x", "input", default=next(iter(self.leaves.values())))
        gain, shift = torch.ones(x.shape[-1], dtype=x.dtype), torch.zeros(x.shape[-1], dtype=x.dtype)
        if "plain" not in variant:
            gain = first(self.leaves, "weight", "gamma", "alpha", default=gain)
            shift = first(self.leaves, "bias", "beta", default=shift)
        form = form_of(case, variant, form)
        self.y = by(by_module, x, gain, shift, form)
        if variant.endswith("_sum"):
            spread = x.std(-1, correction=int(form.unbiased), keepdim=True) + form.eps
            self.y = self.y - gain * (x.sum(-1, keepdim=True) - x.mean(-1, keepdim=True)) / spread

    def loss(self) -> Tensor:
        """The sum or mean (as the case says) of y times its cotangent."""
        product = self.y * self.leaves.get("cotangent", torch.ones(()))
        return product.sum() if self.sum else product.mean()

    def gradient(self, of: str) -> Tensor:
        return torch.autograd.grad(self.loss(), self.leaves[of])[0]


def form_of(case: Case, variant: str, form: Form) -> Form:
    form = TORCH if "torch" in variant else replace(form, eps=case.option("eps", "layer_norm_eps", default=form.eps))
    said = re.search(r"eps_?(\d+(?:\.\d+)?(?:e-?\d+)?)", variant)
    return replace(form, eps=float(said[1])) if said else form


def by(module: bool, x: Tensor, gain: Tensor, shift: Tensor, form: Form) -> Tensor:
    if not module:
        return layer_norm(x, gain, shift, form.eps, unbiased=form.unbiased, eps_outside=form.eps_outside)
    norm = LayerNorm(d_model=x.shape[-1], eps=form.eps, unbiased=form.unbiased, eps_outside=form.eps_outside)
    return torch.func.functional_call(norm, {"gamma": gain, "beta": shift}, (x,))


RUNNERS: dict[str, Callable[[Case], Comparisons]] = {
    "layernorm": lambda case: layer_norms(case, TORCH),
    "s001_layernorm": lambda case: layer_norms(case, SYSTEM_001),
}
