"""Several heads: the same attention, run in parallel on different columns.

    MultiHead(query, memory) = Concat(head_1, ..., head_h) W_o
    head_i = Attention(query W_q_i, memory W_k_i, memory W_v_i)

Vaswani et al. 2017, section 3.2.2; Shazeer 2019, "Fast Transformer Decoding" (one key-value head for all);
Ainslie et al. 2023, "GQA" (one for each group of heads). The lesson is notebooks/03_heads.ipynb.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from .attention import EMPTY_ROWS, scaled_dot_product_attention
from .cache import KeyValueCache
from .errors import check_choice, check_count, check_divides, check_like, check_share, check_tensor, shape_text

__all__ = ["HeadProjection", "MultiHeadAttention", "merge_heads", "multi_head_attention", "repeat_heads", "split_heads"]


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Give each head its own columns: (batch, length, d_model) -> (batch, heads, length, d_k), d_k = d_model / n_heads.

    Head h gets columns h * d_k to (h + 1) * d_k of every token. Raises ValueError unless n_heads divides d_model.

    >>> import torch
    >>> split_heads(torch.arange(8).view(1, 2, 4), 2).tolist()
    [[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]]
    """
    check_tensor("x", x, dims=("batch", "length", "d_model"))
    batch, length, d_model = x.shape
    check_divides("n_heads", n_heads, "d_model", d_model, why="each head gets d_model / n_heads columns")
    columns = x.view(batch, length, n_heads, d_model // n_heads)  # (batch, length, heads, d_k)
    return columns.transpose(1, 2)  # (batch, heads, length, d_k)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads side by side again: (batch, heads, length, d_v) -> (batch, length, heads * d_v).

    The inverse of `split_heads`.

    >>> import torch
    >>> merge_heads(torch.tensor([[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]])).tolist()
    [[[0, 1, 2, 3], [4, 5, 6, 7]]]
    """
    check_tensor("x", x, dims=("batch", "heads", "length", "d_v"))
    tokens_first = x.transpose(1, 2)  # (batch, length, heads, d_v)
    return tokens_first.flatten(-2)  # (batch, length, heads * d_v)


def repeat_heads(x: Tensor, times: int) -> Tensor:
    """Let `times` query heads share each key-value head: (batch, kv_heads, length, d) -> (batch, heads, length, d).

    Query heads 0 .. times - 1 use key-value head 0, the next ones head 1, and so on.

    >>> import torch
    >>> repeat_heads(torch.tensor([[[[1]], [[2]]]]), 2).flatten().tolist()
    [1, 1, 2, 2]
    """
    check_tensor("x", x, dims=("batch", "kv_heads", "length", "d"))
    check_count("times", times)
    return x if times == 1 else x.repeat_interleave(times, dim=1)  # (batch, kv_heads * times, length, d)


def multi_head_attention(
    x_query: Tensor,
    x_memory: Tensor,
    projections: Mapping[str, Tensor],
    n_heads: int,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Multi-head attention with bare matrices, as on paper: returns (output, weights).

    Args:
        x_query: (batch, query, d_model), the tokens that ask.
        x_memory: (batch, key, d_model), the tokens that are asked; the same tensor in self-attention.
        projections: the matrices "q", "k", "v", "o", each (d_model, d_model), applied as `x @ projections["q"]`.
        n_heads: how many heads; must divide d_model.
        mask: bool, broadcastable to (batch, heads, query, key), True = may attend.

    Returns:
        output (batch, query, d_model) and weights (batch, heads, query, key).

    >>> import torch
    >>> x = torch.eye(4)[None]
    >>> identity = {name: torch.eye(4) for name in "qkvo"}
    >>> output, weights = multi_head_attention(x, x, identity, n_heads=2)
    >>> output.shape, weights.shape
    (torch.Size([1, 4, 4]), torch.Size([1, 2, 4, 4]))
    """
    if not isinstance(projections, Mapping):
        raise TypeError(f"projections must be a dict of four matrices, got {type(projections).__name__}")
    missing = [name for name in "qkvo" if name not in projections]
    if missing:
        raise ValueError(f"projections must hold 'q', 'k', 'v' and 'o', missing {', '.join(map(repr, missing))}")
    for name in "qkvo":
        check_tensor(f"projections[{name!r}]", projections[name], dims=("d_model", "d_model"))
        if projections[name].shape[0] != x_query.shape[-1]:
            raise ValueError(
                f"projections[{name!r}] must have as many rows as a token has numbers ({x_query.shape[-1]}), "
                f"got shape {shape_text(projections[name])}"
            )
    query = split_heads(x_query @ projections["q"], n_heads)  # (batch, heads, query, d_k)
    key = split_heads(x_memory @ projections["k"], n_heads)  # (batch, heads, key, d_k)
    value = split_heads(x_memory @ projections["v"], n_heads)  # (batch, heads, key, d_v)
    output, weights = scaled_dot_product_attention(query, key, value, mask)
    return merge_heads(output) @ projections["o"], weights  # (batch, query, d_model)


class HeadProjection(nn.Module):
    """Project tokens and split the result into heads: (batch, length, d_in) -> (batch, heads, length, d_head).

    Usually one matrix (d_in, n_heads * d_head), so that every head reads all columns of a token. With `shared` the
    token is split first, and one small matrix (d_in / n_heads, d_head) serves all heads: fewer parameters, but a
    head sees only its own slice of the token.
    """

    def __init__(self, *, d_in: int, n_heads: int, d_head: int, bias: bool = True, shared: bool = False) -> None:
        super().__init__()
        self.d_in, self.n_heads, self.shared = d_in, n_heads, shared
        if shared:
            check_divides("n_heads", n_heads, "d_in", d_in, why="a shared projection splits the token before it")
        self.linear = nn.Linear(d_in // n_heads, d_head, bias) if shared else nn.Linear(d_in, n_heads * d_head, bias)

    def forward(self, x: Tensor) -> Tensor:
        check_tensor("x", x, dims=("batch", "length", "d_in"))
        if x.shape[-1] != self.d_in:
            raise ValueError(
                f"this projection takes tokens of width d_in ({self.d_in}), got width {x.shape[-1]} in {shape_text(x)}"
            )
        try:
            if self.shared:
                return self.linear(split_heads(x, self.n_heads))  # (batch, heads, length, d_head)
            return split_heads(self.linear(x), self.n_heads)  # (batch, heads, length, d_head)
        except RuntimeError:
            check_like("x", x, self.linear.weight)
            raise


class MultiHeadAttention(nn.Module):
    """Multi-head attention with learnt projections.

    Args:
        d_model: width of the query tokens and of the output.
        n_heads: number of query heads.
        n_kv_heads: number of key and value heads, a divisor of n_heads: n_heads (the default) is plain, 1 is
            multi-query, in between is grouped-query attention.
        d_k, d_v: width of a head's queries and keys, and of its values; d_model / n_heads unless given.
        d_key_in, d_value_in: width of the key and value tokens, where it is not d_model.
        bias: whether the query, key and value projections add a bias.
        output_bias: whether the output projection adds one; as `bias` unless given.
        shared_projections: one small matrix for all heads instead of one for each (see HeadProjection).
        scale: what the dot products are multiplied by; 1 / sqrt(d_k) unless given.
        position: a scheme of relative positions, for instance `relative.RotaryPosition()`; none unless given. What
            attention asks of it stands in `relative.Position`. Queries that are fewer than the keys are taken for
            the last of them, the newest tokens; a memory of other tokens has no distances, and wants no position.
        dropout: share of the weights set to 0 in training mode.
        empty_rows: "zero" or "uniform", as in `scaled_dot_product_attention`.

    >>> import torch
    >>> attention = MultiHeadAttention(d_model=8, n_heads=2)
    >>> output, weights = attention(torch.zeros(1, 3, 8), need_weights=True)
    >>> output.shape, weights.shape
    (torch.Size([1, 3, 8]), torch.Size([1, 2, 3, 3]))
    """

    def __init__(
        self,
        *,
        d_model: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        d_key_in: int | None = None,
        d_value_in: int | None = None,
        bias: bool = True,
        output_bias: bool | None = None,
        shared_projections: bool = False,
        scale: float | None = None,
        position: Callable | None = None,
        dropout: float = 0.0,
        empty_rows: str = "zero",
    ) -> None:
        super().__init__()
        check_count("d_model", d_model)
        check_count("n_heads", n_heads)
        if d_k is None or d_v is None:
            check_divides(
                "n_heads",
                n_heads,
                "d_model",
                d_model,
                why="each head gets d_model / n_heads columns, unless you give d_k and d_v",
            )
        d_k = d_model // n_heads if d_k is None else d_k
        d_v = d_model // n_heads if d_v is None else d_v
        for name, width in (("d_key_in", d_key_in), ("d_value_in", d_value_in)):
            if width is not None:
                check_count(name, width)
        check_count("d_k", d_k)
        check_count("d_v", d_v)
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        check_divides("n_kv_heads", n_kv_heads, "n_heads", n_heads, why="each key-value head serves equally many heads")
        check_choice("empty_rows", empty_rows, EMPTY_ROWS)
        check_share("dropout", dropout, of="the weights")
        if position is not None and (isinstance(position, type) or not callable(position)):
            got = f"the class {position.__name__}" if isinstance(position, type) else f"{type(position).__name__}"
            raise TypeError(f"position must be a scheme like relative.RotaryPosition(), ready to be called, got {got}")

        def projection(d_in: int | None, heads: int, d_head: int) -> HeadProjection:
            width = d_model if d_in is None else d_in
            return HeadProjection(d_in=width, n_heads=heads, d_head=d_head, bias=bias, shared=shared_projections)

        self.query_projection = projection(None, n_heads, d_k)
        self.key_projection = projection(d_key_in, n_kv_heads, d_k)
        self.value_projection = projection(d_value_in, n_kv_heads, d_v)
        self.output_projection = nn.Linear(n_heads * d_v, d_model, bias if output_bias is None else output_bias)
        self.position = position
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.scale, self.dropout, self.empty_rows = scale, dropout, empty_rows

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        cache: KeyValueCache | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns (output, weights): output (batch, query, d_model), weights (batch, heads, query, key) or None.

        `query` (batch, query, d_model) attends to `key` (batch, key, d_key_in) and reads `value` (batch, key,
        d_value_in). Without `key` this is self-attention; without `value` the keys' tokens are read.
        `mask` (bool) and `bias` (float, added to the scaled scores) broadcast to (batch, heads, query, key).
        With a `cache`, self-attention is given its new tokens alone and attends to the earlier ones too.
        """
        alone = key is None  # self-attention
        key = query if key is None else key
        value = key if value is None else value
        if isinstance(key, Tensor) and key.dtype == torch.bool:
            raise TypeError("key must be a float tensor, got torch.bool: a mask is the fourth argument, or mask=")
        for name, x in (("query", query), ("key", key), ("value", value)):
            check_tensor(name, x, dims=("batch", "length", "width"))
        query = self.query_projection(query)  # (batch, heads, query, d_k)
        if cache is None or alone:
            key = self.key_projection(key)  # (batch, kv_heads, key, d_k)
            value = self.value_projection(value)  # (batch, kv_heads, key, d_v)
            key, value = (key, value) if cache is None else cache.append(self, key, value)
        else:
            key, value = cache.once(self, lambda: (self.key_projection(key), self.value_projection(value)))
        scale = query.shape[-1] ** -0.5 if self.scale is None else self.scale
        if self.position is not None:
            query, key, distance_bias = self.position(query, key, scale=scale)
            bias = _sum(bias, distance_bias)  # broadcasts to (batch, heads, query, key)
        if self.n_kv_heads < self.n_heads:
            groups = self.n_heads // self.n_kv_heads
            key, value = repeat_heads(key, groups), repeat_heads(value, groups)  # (batch, heads, key, d_k or d_v)
        output, weights = scaled_dot_product_attention(
            query,
            key,
            value,
            mask,
            scale=scale,
            bias=bias,
            dropout=self.dropout if self.training else 0.0,
            empty_rows=self.empty_rows,
            extra_output=getattr(self.position, "values", None),
            need_weights=need_weights,
        )
        return self.output_projection(merge_heads(output)), weights  # (batch, query, d_model)


def _sum(bias: Tensor | None, other: Tensor | None) -> Tensor | None:
    return other if bias is None else bias if other is None else bias + other
