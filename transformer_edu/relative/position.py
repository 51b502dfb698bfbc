"""What all schemes share: the distances, and how a scheme enters attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import check_count, check_tensor, shape_text

__all__ = ["Position", "distances", "relative_shift"]


def distances(n_queries: int, n_keys: int, *, device: torch.device | None = None) -> Tensor:
    """How far each key stands from each query: key position - query position, int64 (query, key).

    Below 0 is the past, above 0 the future. **The queries are the last `n_queries` of the `n_keys` positions**, so
    query i stands at position i + n_keys - n_queries. In self-attention both start at 0; with a cache, or with
    Transformer-XL's memory of earlier tokens, the newest token is the last query and the last key.

    >>> distances(2, 3).tolist()
    [[-1, 0, 1], [-2, -1, 0]]
    """
    check_count("n_queries", n_queries)
    check_count("n_keys", n_keys)
    keys = torch.arange(n_keys, device=device)  # (key,)
    queries = torch.arange(n_keys - n_queries, n_keys, device=device)  # (query,)
    return keys - queries[:, None]  # (query, key)


def relative_shift(x: Tensor) -> Tensor:
    """From one column for each distance to one column for each key: (..., query, distances) -> (..., query, key).

    The columns of `x` run over the distances query - key = n_keys - 1, ..., 0, ..., -(n_queries - 1), so there are
    n_queries + n_keys - 1 of them (2 T - 1 in self-attention over T tokens), and

        out[i, j] = x[i, n_queries - 1 - i + j].

    Row i has to move n_queries - 1 - i columns to the left, one less than the row above it. Nothing is looped over,
    gathered or copied: the result is a view of `x` in which the way from one row to the next is one entry shorter.
    Dai et al. 2019, "Transformer-XL", appendix B, where the same comes from padding and a change of shape. Raises
    ValueError if there are fewer columns than rows.

    >>> relative_shift(torch.tensor([[2, 1, 0, -1], [2, 1, 0, -1]])).tolist()  # 2 queries, 3 keys: query - key
    [[1, 0, -1], [2, 1, 0]]
    """
    check_tensor("x", x, dims=("query", "distances"), leading=True)
    n_queries, n_distances = x.shape[-2:]
    n_keys = n_distances - n_queries + 1
    if not 1 <= n_queries <= n_distances:
        raise ValueError(
            f"x must have a row for each query, and a column for each of the query + key - 1 distances, at least as "
            f"many as rows, got shape {shape_text(x)}"
        )
    if x.stride(-2) < x.stride(-1):  # transposed or expanded: there is no such view
        x = x.clone(memory_format=torch.contiguous_format)
    *leading, row, column = x.stride()
    strides = (*leading, row - column, column)  # one row down is one entry to the left
    start = x.storage_offset() + (n_queries - 1) * column
    return x.as_strided((*x.shape[:-2], n_queries, n_keys), strides, start)  # (..., query, key)


class Position(nn.Module):
    """A scheme of relative positions, as a part of `MultiHeadAttention(position=...)`. This one does nothing.

    Attention calls its position with the projected queries (batch, heads, query, d_k) and keys (batch, kv_heads,
    key, d_k) and with the scale of the dot products. Back come the queries and keys to use instead, and a bias that
    is added to the scaled scores: a tensor that broadcasts to (batch, heads, query, key), or None. The queries
    stand at the last positions (see `distances`).

    A scheme that also adds something to the output has a second method, `values(weights)`: from the weights (batch,
    heads, query, key), after dropout, to what is added to the output, (batch, heads, query, d_v).

    Any callable of this form will do: attention asks for nothing else.

    >>> query, key = torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 5, 4)
    >>> new_query, new_key, bias = Position()(query, key, scale=0.5)
    >>> new_query is query, new_key is key, bias
    (True, True, None)
    """

    def forward(self, query: Tensor, key: Tensor, *, scale: float) -> tuple[Tensor, Tensor, Tensor | None]:
        return query, key, None


def check_queries(query: Tensor, *, n_heads: int | None = None, d_k: int | None = None) -> None:
    """Raise unless the queries have the heads, and the width, that a scheme was made for."""
    check_tensor("query", query, dims=("batch", "heads", "query", "d_k"))
    for name, mine, theirs in (("n_heads", n_heads, query.shape[1]), ("d_k", d_k, query.shape[3])):
        if mine not in (None, theirs):
            raise ValueError(f"this position was made for {name}={mine}, but the queries have {name}={theirs}")
