"""Scaled dot-product attention: a weighted average of values, weighted by how well each key answers the query.

    weights = softmax(query key^T / sqrt(d_k) + bias),  output = weights value

Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1. The lesson is notebooks/02_attention.ipynb.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from .errors import check_broadcast, check_choice, check_mask, check_share, check_tensor, shape_text

__all__ = ["scaled_dot_product_attention", "softmax"]

EMPTY_ROWS = ("zero", "uniform")


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """exp(x) divided by its sum along `dim`. Same shape; the numbers along `dim` are positive and sum to 1.

    The largest entry is subtracted first. That changes nothing in the result, since exp(x - m) / sum exp(x - m) =
    exp(x) / sum exp(x), but keeps exp from overflowing (in float32 exp(89) is already inf). A slice of nothing but
    -inf gives zeros.

    >>> softmax(torch.tensor([10000.0, 10000.0, -10000.0])).tolist()
    [0.5, 0.5, 0.0]
    """
    check_tensor("x", x)
    if not x.is_floating_point():
        raise TypeError(f"x must be a float tensor, got {x.dtype}: x.float() makes one")
    largest = x.amax(dim, keepdim=True)
    largest = largest.masked_fill(largest == -torch.inf, 0.0)  # -inf - -inf would be NaN
    exponentials = (x - largest).exp()
    total = exponentials.sum(dim, keepdim=True)
    return exponentials / total.masked_fill(total == 0, 1.0)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    scale: float | None = None,
    bias: Tensor | None = None,
    empty_rows: str = "zero",
    dropout: float = 0.0,
    extra_output: Callable[[Tensor], Tensor] | None = None,
    need_weights: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Attend: returns (output, weights).

    Args:
        query: (..., query, d_k). The leading axes are usually (batch, heads); any that broadcast will do.
        key: (..., key, d_k).
        value: (..., key, d_v).
        mask: bool, broadcastable to (..., query, key), True = this query may attend to this key.
        scale: what the dot products are multiplied by; 1 / sqrt(d_k) unless given.
        bias: float, broadcastable to (..., query, key), added to the scaled scores; -inf in it forbids.
        empty_rows: what a query with no key to attend to receives: "zero" (weights 0, output 0), or "uniform"
            (the plain average of all values, forbidden ones too), as systems do that fill with a finite number.
        dropout: share of the weights set to 0 whenever it is above 0: pass 0.0 in evaluation.
        extra_output: a function of the weights after dropout (..., query, key), whose result (..., query, d_v) is added
            to the output (the values of `relative.ShawPosition`). The fused kernel cannot run it.
        need_weights: False leaves the work to torch's fused kernel, which keeps no weights: returns (output, None).

    Returns:
        output (..., query, d_v); weights (..., query, key) before dropout. Each row of weights sums to 1, or to 0 if
        it is empty. Gradients are finite in both cases.

    Raises:
        ValueError: a mask that is not bool, or shapes that do not fit (both are named).

    >>> query = torch.tensor([[0.0, 2.0]])                       # one query
    >>> key = torch.tensor([[0.0, 2.0], [2.0, 0.0], [0.0, 2.0]])  # three keys
    >>> value = torch.tensor([[1.0], [10.0], [3.0]])
    >>> mask = torch.tensor([[True, True, False]])
    >>> output, weights = scaled_dot_product_attention(query, key, value, mask)
    >>> [round(w, 3) for w in weights[0].tolist()], round(output.item(), 2)
    ([0.944, 0.056, 0.0], 1.5)
    """
    shape = _checked_shape(query, key, value)
    check_choice("empty_rows", empty_rows, EMPTY_ROWS)
    check_share("dropout", dropout, of="the weights")
    if mask is not None:
        check_mask(mask, shape, axes=_axes_text(shape))
    if bias is not None:
        check_tensor("bias", bias)
        if not bias.is_floating_point():
            raise ValueError(f"bias must be a float tensor, got {bias.dtype}: a bool mask goes to mask=")
        check_broadcast("bias", bias, shape, axes=_axes_text(shape))
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    if not need_weights and empty_rows == "zero" and extra_output is None:
        return _fused(query, key, value, mask, scale=scale, bias=bias, dropout=dropout), None

    scores = (query * scale) @ key.transpose(-2, -1)  # (..., query, key)
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = _softmax_or_empty(scores, empty_rows)
    dropped = F.dropout(weights, dropout) if dropout else weights
    output = dropped @ value  # (..., query, d_v)
    if extra_output is not None:
        extra = extra_output(dropped)
        check_broadcast("extra_output(weights)", extra, output.shape, axes="the output (..., query, d_v)")
        output = output + extra
    return output, weights if need_weights else None


def _softmax_or_empty(scores: Tensor, empty_rows: str) -> Tensor:
    """Softmax over the keys, with the empty rows replaced before they can make a NaN, forwards or backwards."""
    if not scores.shape[-1]:
        return scores  # without keys there are no weights
    empty = scores.amax(-1, keepdim=True) == -torch.inf  # (..., query, 1)
    weights = torch.where(empty, 0.0, scores).softmax(-1)  # an empty row is uniform now
    return torch.where(empty, 0.0, weights) if empty_rows == "zero" else weights


def _fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    *,
    scale: float,
    bias: Tensor | None,
    dropout: float,
) -> Tensor:
    """The same output by torch's fused kernel, which gives an empty row 0 as well."""
    allowed = mask
    if bias is not None:
        allowed = bias.to(query.dtype) if mask is None else bias.to(query.dtype).masked_fill(~mask, -torch.inf)
    if allowed is not None:  # with all axes, or the CPU's kernel is not used
        allowed = allowed[(None,) * (query.dim() - allowed.dim())]  # (..., 1 or query, 1 or key)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=dropout, scale=scale)


def _checked_shape(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    """The shape (..., query, key) of the scores, once the three inputs are known to fit."""
    check_tensor("query", query, dims=("query", "d_k"), leading=True)
    check_tensor("key", key, dims=("key", "d_k"), leading=True)
    check_tensor("value", value, dims=("key", "d_v"), leading=True)
    _check_dtypes(query.dtype, key.dtype, value.dtype, device=query.device)
    (*leading, queries, d_k), (*key_leading, keys, key_width) = query.shape, key.shape
    *value_leading, values, _ = value.shape
    if d_k != key_width:
        shapes = _shapes_text(query, key, value)
        raise ValueError(f"query and key must have the same width d_k, got {d_k} and {key_width} ({shapes})")
    if keys != values:
        raise ValueError(
            f"key and value must have the same length, got {keys} and {values} ({_shapes_text(query, key, value)}): "
            "every key comes with its value"
        )
    if not leading == key_leading == value_leading:
        try:
            leading = np.broadcast_shapes(leading, key_leading)  # torch's own is slow the first time
            np.broadcast_shapes(leading, value_leading)
        except ValueError as error:
            shapes = _shapes_text(query, key, value)
            raise ValueError(f"the axes before the last two do not broadcast together: {shapes}") from error
    return (*leading, queries, keys)


def _check_dtypes(*dtypes: torch.dtype, device: torch.device) -> None:
    if len(set(dtypes)) > 1 and not torch.is_autocast_enabled(device.type):
        raise ValueError(
            f"query, key and value must have one dtype, got {', '.join(map(str, dtypes))}: .to(query.dtype) converts"
        )
    if not dtypes[0].is_floating_point:
        raise ValueError(f"query, key and value must be float tensors, got {dtypes[0]}: .float() converts")


def _shapes_text(query: Tensor, key: Tensor, value: Tensor) -> str:
    return f"query {shape_text(query)}, key {shape_text(key)}, value {shape_text(value)}"


def _axes_text(shape: tuple[int, ...]) -> str:
    """Words for the axes of the scores, as far as their number tells what they are."""
    return {2: "(query, key)", 4: "(batch, heads, query, key)"}.get(len(shape), "(..., query, key)")
