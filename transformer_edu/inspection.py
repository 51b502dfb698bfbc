"""Look at the attention weights of a forward pass, of the one true forward pass.

Nothing is computed twice and nothing stays behind: torch hooks ask each attention module for its weights while
the context is open, and are gone afterwards.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor, nn

from .errors import check_module, shape_text

__all__ = ["record_attention"]


@contextmanager
def record_attention(model: nn.Module) -> Iterator[Mapping[str, list[Tensor]]]:
    """Collect the weights of every attention module in `model`, by its name in `model.named_modules()`.

    An attention module is any module whose `forward` takes `need_weights` and returns (output, weights): this
    course's `MultiHeadAttention`, a reader's own, and torch's. The value under each name is a list with one tensor
    (batch, heads, query, key) per call, detached; a module that was not called has an empty list. Raises ValueError
    if there is no attention module in `model`; a name that is not there gets a KeyError with those that are.

    >>> from transformer_edu.heads import MultiHeadAttention
    >>> import torch
    >>> model = nn.ModuleDict({"first": MultiHeadAttention(d_model=4, n_heads=2)})
    >>> with record_attention(model) as weights:
    ...     output, _ = model["first"](torch.zeros(1, 3, 4))
    >>> {name: [tuple(w.shape) for w in calls] for name, calls in weights.items()}
    {'first': [(1, 2, 3, 3)]}
    """
    check_module("model", model)
    found = {name: module for name, module in model.named_modules() if _gives_weights(module)}
    if not found:
        raise ValueError(
            f"no attention module in {type(model).__name__}: a module counts as one when its forward takes need_weights"
        )
    recorded = _Recorded({name: [] for name in found})
    handles = []
    try:
        for name, module in found.items():
            handles += _hook(module, name, recorded[name])
        yield recorded
    finally:
        for handle in handles:
            handle.remove()


class _Recorded(dict[str, list[Tensor]]):
    """Names of modules, which are long and easily misspelt, and the weights of each call."""

    def __missing__(self, name: str) -> list[Tensor]:
        raise KeyError(f"no attention module is called {name!r}: their names are {', '.join(map(repr, self))}")


def _gives_weights(module: nn.Module) -> bool:
    return "need_weights" in inspect.signature(module.forward).parameters


def _hook(module: nn.Module, name: str, calls: list[Tensor]) -> list:
    """Ask `module` for its weights before each call, and take them after it."""
    asked: list[tuple[bool, bool]] = []  # a stack: whether the caller wanted the weights, and their mean over heads

    def before(_module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
        bound.apply_defaults()
        asked.append((bool(bound.arguments["need_weights"]), bool(bound.arguments.get("average_attn_weights"))))
        bound.arguments["need_weights"] = True
        if "average_attn_weights" in bound.arguments:  # torch's module would return the mean over heads
            bound.arguments["average_attn_weights"] = False
        return bound.args, bound.kwargs

    def after(_module: nn.Module, _args: tuple, _kwargs: dict, result: tuple) -> tuple[Tensor, Tensor | None]:
        output, weights = result if isinstance(result, tuple) and len(result) == 2 else (None, result)
        if not isinstance(weights, Tensor) or weights.dim() != 4:
            got = shape_text(weights) if isinstance(weights, Tensor) else type(weights).__name__
            raise ValueError(f"module {name!r} must return (output, weights (batch, heads, query, key)), got {got}")
        calls.append(weights.detach())
        wanted, mean = asked.pop()
        return output, (weights.mean(1) if mean else weights) if wanted else None

    return [
        module.register_forward_pre_hook(before, with_kwargs=True),
        # First of the hooks, so that of two nested recordings the inner one takes the weights first, as it asked last.
        module.register_forward_hook(after, with_kwargs=True, prepend=True),
    ]
