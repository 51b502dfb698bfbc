"""What a model costs: its parameters, and the floating-point operations of one forward pass.

A product of matrices (n, k) and (k, m) takes n * m * k multiplications and as many additions: 2 n m k operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

from ..errors import check_module
from ..heads import HeadProjection, MultiHeadAttention

__all__ = ["ParameterRow", "count_flops", "count_parameters", "parameter_table"]


class ParameterRow(NamedTuple):
    """One parameter: its name, its shape, how many numbers it holds, and the name of the one it is shared with."""

    name: str
    shape: tuple[int, ...]
    count: int
    shared_with: str = ""


def parameter_table(model: nn.Module) -> list[ParameterRow]:
    """All parameters of `model` in their order. One that stands in two places is counted at the first.

    >>> tied = nn.ModuleDict({"embed": nn.Linear(3, 2, bias=False), "output": nn.Linear(3, 2)})
    >>> tied["output"].weight = tied["embed"].weight
    >>> [row[:3] for row in parameter_table(tied)]
    [('embed.weight', (2, 3), 6), ('output.weight', (2, 3), 0), ('output.bias', (2,), 2)]
    """
    check_module("model", model)
    first: dict[int, str] = {}
    rows = []
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owner = first.setdefault(id(parameter), name)
        shared = owner if owner != name else ""
        rows.append(ParameterRow(name, tuple(parameter.shape), 0 if shared else parameter.numel(), shared))
    return rows


def count_parameters(model: nn.Module) -> int:
    """How many numbers are learnt; a shared parameter counts once.

    >>> count_parameters(nn.Linear(3, 2))
    8
    """
    return sum(row.count for row in parameter_table(model))


def count_flops(model: nn.Module, *inputs: Tensor, **options: object) -> dict[str, int]:
    """The operations of `model(*inputs, **options)`, by the name of the module that does them.

    Counted are matrix products, as torch's `FlopCounterMode` counts them: 2 * d_in * d_out for each token in a linear
    layer (biases are not counted) or a convolution of width 1, and in each head of an attention 2 * d_k for each
    score and 2 * d_v for each weight, masked ones too. Norms, softmax and residuals grow with the width alone and are
    left out, and so is what a scheme of relative positions adds. Inputs on torch's meta device cost nothing.

    >>> import torch
    >>> count_flops(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)), torch.zeros(1, 3, 4))
    {'0': 192, '2': 192}
    """
    check_module("model", model)
    flops: dict[str, int] = {}
    handles = []
    try:
        for name, module in model.named_modules():
            cost = _cost_of(module)
            if cost is not None:
                handles.append(module.register_forward_hook(_adder(flops, name, cost), with_kwargs=True))
        model(*inputs, **options)
    finally:
        for handle in handles:
            handle.remove()
    return flops


def _adder(flops: dict[str, int], name: str, cost: Callable[..., int]) -> Callable:
    def add(module: nn.Module, args: tuple, kwargs: dict, output: object) -> None:
        flops[name] = flops.get(name, 0) + cost(module, args, kwargs, output)

    return add


def _cost_of(module: nn.Module) -> Callable[..., int] | None:
    if isinstance(module, nn.Linear | nn.Conv1d):
        return _linear_cost
    return _attention_cost if isinstance(module, MultiHeadAttention) else None


def _linear_cost(module: nn.Linear | nn.Conv1d, args: tuple, kwargs: dict, output: Tensor) -> int:
    """Each output number is a dot product as long as a row of the weight."""
    return 2 * output.numel() * module.weight[0].numel()


def _attention_cost(module: MultiHeadAttention, args: tuple, kwargs: dict, output: tuple) -> int:
    """Two products, query key^T and weights value; the projections are linear layers and count there."""
    query = args[0]
    key = args[1] if len(args) > 1 and args[1] is not None else kwargs.get("key")
    batch, n_queries = query.shape[:2]
    n_keys = (query if key is None else key).shape[1]
    d_k = _head_width(module.query_projection, module.n_heads)
    d_v = _head_width(module.value_projection, module.n_kv_heads)
    return 2 * batch * module.n_heads * n_queries * n_keys * (d_k + d_v)


def _head_width(projection: HeadProjection, n_heads: int) -> int:
    width = projection.linear.out_features
    return width if projection.shared else width // n_heads
