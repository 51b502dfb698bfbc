"""Content and position in separate terms: a query meets a key's content, and a sinusoid of the distance.

    scores_ij = ((q_i + u) k_j^T + (q_i + v) p_(i - j)^T) / sqrt(d_k)

Dai et al. 2019, "Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context", section 3.3.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import check_broadcast, check_count, check_divides, check_flag, check_tensor, shape_text
from ..positions import sinusoids
from .position import Position, check_queries, relative_shift

__all__ = ["XLPosition", "causal_shift", "relative_scores", "relative_table"]


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
    distance = torch.arange(length - 1, -n_queries, -1, device=device)  # (distances,)
    return sinusoids(distance, d_model)  # (distances, d_model)


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
    batch, heads, n_queries, d_k = query.shape
    n_distances = n_queries + key.shape[2] - 1
    check_tensor("position", position, dims=("heads", "distances", "d_k"))
    if position.shape[1] != n_distances:
        raise ValueError(
            f"position must have query + key - 1 = {n_distances} rows, one for each distance, "
            f"got shape {shape_text(position)}"
        )
    sizes = {"batch": batch, "heads": heads, "key": key.shape[2], "distances": n_distances, "d_k": d_k}
    for name, x, dims in (
        ("key", key, ("batch", "heads", "key", "d_k")),
        ("position", position, ("heads", "distances", "d_k")),
        ("u", u, ("heads", "d_k")),
        ("v", v, ("heads", "d_k")),
    ):
        check_tensor(name, x, dims=dims)
        check_broadcast(name, x, [sizes[word] for word in dims], axes=f"({', '.join(dims)})")
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
    padded = F.pad(x, (1, 0))  # (..., query, 1 + key)
    entries = padded.flatten(-2)[..., n_queries:]  # (..., query * key)
    shifted = entries.unflatten(-1, (n_queries, n_keys))
    return shifted.tril(n_keys - n_queries) if zero_future else shifted


class XLPosition(Position):
    """Transformer-XL's positions as a part of attention: a content term with u, a position term with v.

    Args:
        d_model: width of the sinusoids; n_heads, d_k: those of the attention. d_k is d_model / n_heads unless given.
        causal: Transformer-XL's own form, for attention under a causal mask: half the work, since only the distances
            key - 1, ..., 0 are computed (see `causal_shift` for what it does without such a mask).

    >>> query = torch.zeros(1, 2, 3, 4)
    >>> XLPosition(d_model=8, n_heads=2)(query, query, scale=0.5)[2].shape  # the bias
    torch.Size([1, 2, 3, 3])
    """

    def __init__(self, *, d_model: int, n_heads: int, d_k: int | None = None, causal: bool = False) -> None:
        super().__init__()
        check_count("d_model", d_model)
        check_count("n_heads", n_heads)
        check_flag("causal", causal)
        if d_k is None:
            check_divides("n_heads", n_heads, "d_model", d_model, why="d_k is d_model / n_heads, unless you give it")
        d_k = d_model // n_heads if d_k is None else d_k
        check_count("d_k", d_k)
        self.d_model, self.n_heads, self.causal = d_model, n_heads, causal
        self.distance_projection = nn.Linear(d_model, n_heads * d_k, bias=False)
        self.u = nn.Parameter(torch.empty(n_heads, d_k))
        self.v = nn.Parameter(torch.empty(n_heads, d_k))
        for parameter in (self.u, self.v):
            nn.init.xavier_uniform_(parameter)

    def forward(self, query: Tensor, key: Tensor, *, scale: float) -> tuple[Tensor, Tensor, Tensor]:
        shift = causal_shift if self.causal else relative_shift
        bias = shift(self.by_distance(query, key.shape[-2], scale=scale))  # (batch, heads, query, key)
        return query + self.u[:, None], key, bias

    def by_distance(self, query: Tensor, n_keys: int, *, scale: float = 1.0) -> Tensor:
        """What each query makes of each distance, not yet shifted to the keys: (batch, heads, query, distances)."""
        check_queries(query, n_heads=self.n_heads, d_k=self.v.shape[1])
        table = self.table(query.shape[-2], n_keys).to(query.dtype)  # (1, distances, d_model)
        position = self.distance_projection(table).unflatten(-1, (self.n_heads, -1))  # (1, distances, heads, d_k)
        asking = (query + self.v[:, None]) * scale  # (batch, heads, query, d_k)
        return torch.einsum("bhid,brhd->bhir", asking, position)

    def table(self, n_queries: int, n_keys: int) -> Tensor:
        """The sinusoids of all distances, farthest past first, for all items of a batch: (1, distances, d_model)."""
        n_queries = 1 if self.causal else n_queries  # one query has no future
        return relative_table(n_keys, self.d_model, n_queries=n_queries, device=self.u.device)[None]
