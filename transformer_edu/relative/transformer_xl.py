"""Content and position in separate terms: a query meets a key's content, and a sinusoid of the distance.

    scores_ij = ((q_i + u) k_j^T + (q_i + v) p_(i - j)^T) / sqrt(d_k)

Dai et al. 2019, "Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context", section 3.3.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..errors import check_count, check_tensor, shape_text
from .position import relative_shift

__all__ = ["causal_shift", "relative_scores", "relative_table"]


def relative_table(
    length: int, d_model: int, *, n_queries: int | None = None, device: torch.device | None = None
) -> Tensor:
    """A sinusoid for each distance query - key = length - 1, ..., 0, ..., -(length - 1): (2 length - 1, d_model).

    Row r is that of distance length - 1 - r: the farthest past first. Even columns 2i hold sin(distance /
    10000^(2i / d_model)), odd columns the cosine with the same i, as in `sinusoidal_positions`; for the future the
    sines change their sign. `n_queries` is for queries that are the last of `length` keys: the distances then end
    at -(n_queries - 1), and one query has no future: (length, d_model).

    >>> [[round(x, 2) for x in row] for row in relative_table(2, 2).tolist()]  # distances 1, 0, -1
    [[0.84, 0.54], [0.0, 1.0], [-0.84, 0.54]]
    """
    check_count("length", length)
    check_count("d_model", d_model)
    n_queries = length if n_queries is None else n_queries
    check_count("n_queries", n_queries)
    distance = torch.arange(length - 1, -n_queries, -1, device=device, dtype=torch.float64)  # (distances,)
    column = torch.arange(d_model, device=device)
    angle = distance[:, None] / 10000.0 ** (2 * (column // 2) / d_model)  # (distances, d_model)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos()).float()


def relative_scores(query: Tensor, key: Tensor, position: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """The scaled scores of Transformer-XL: (batch, heads, query, key).

    Args:
        query: (batch, heads, query, d_k), the last of the keys' positions.
        key: (batch, heads, key, d_k).
        position: (heads, query + key - 1, d_k), the projected table of the distances, farthest past first.
        u, v: (heads, d_k), learnt: what every query asks of content, and of position.

    >>> one = torch.ones(1, 1, 1, 4)
    >>> relative_scores(one, one, one[0], torch.zeros(1, 4), torch.zeros(1, 4)).tolist()
    [[[[4.0]]]]
    """
    check_tensor("query", query, dims=("batch", "heads", "query", "d_k"))
    check_tensor("key", key, dims=("batch", "heads", "key", "d_k"))
    n_distances = query.shape[-2] + key.shape[-2] - 1
    for name, x, dims in (
        ("position", position, ("heads", "distances", "d_k")),
        ("u", u, ("heads", "d_k")),
        ("v", v, ("heads", "d_k")),
    ):
        check_tensor(name, x, dims=dims)
    if position.shape[-2] != n_distances:
        raise ValueError(
            f"position must have query + key - 1 = {n_distances} rows, one for each distance, got {shape_text(position)}"
        )
    content = (query + u[:, None]) @ key.transpose(-2, -1)  # (batch, heads, query, key)
    by_distance = (query + v[:, None]) @ position.transpose(-2, -1)  # (batch, heads, query, distances)
    return (content + relative_shift(by_distance)) / math.sqrt(query.shape[-1])


def causal_shift(x: Tensor, *, zero_future: bool = False) -> Tensor:
    """The shift as Transformer-XL has it, for the distances key - 1, ..., 0 alone: (..., query, key), same shape.

    Right for the keys up to each query, the queries being the last positions: out[i, j] = x[i, j - i + query - 1].
    **To the right of them it is not**: there stand a 0 and then entries of the next row, which a causal mask must
    hide; speech encoders that had no such mask trained with them (ESPnet's first version). `zero_future` puts 0
    there.

    >>> causal_shift(torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]])).tolist()
    [[3, 0, 4], [5, 6, 0], [7, 8, 9]]
    """
    check_tensor("x", x, dims=("query", "key"), leading=True)
    n_queries, n_keys = x.shape[-2:]
    padded = torch.nn.functional.pad(x, (1, 0))  # (..., query, 1 + key)
    entries = padded.flatten(-2)[..., n_queries:]  # (..., query * key)
    shifted = entries.unflatten(-1, (n_queries, n_keys))
    return shifted.tril(n_keys - n_queries) if zero_future else shifted
