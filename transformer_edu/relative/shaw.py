"""Learnt vectors for clipped distances, added to the keys and to the values.

    scores_ij = q_i (k_j + a_c)^T / sqrt(d_k),  output_i = sum_j weights_ij (v_j + b_c),  c = clip(j - i, -m, m)

Shaw, Uszkoreit and Vaswani 2018, "Self-Attention with Relative Position Representations", section 3.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import check_count
from .position import Position, check_queries, distances

__all__ = ["ShawPosition", "shaw_index"]


def shaw_index(n_queries: int, n_keys: int, max_distance: int, *, device: torch.device | None = None) -> Tensor:
    """Which of the 2 * max_distance + 1 vectors stands between a query and a key. int64 (query, key).

    Distances key - query beyond +-max_distance share the outermost vector; the sum with max_distance makes row
    numbers of a table: 0 is far in the past, max_distance is the query's own place.

    >>> shaw_index(3, 3, 1).tolist()
    [[1, 2, 2], [0, 1, 2], [0, 0, 1]]
    """
    check_count("max_distance", max_distance, least=0)
    return distances(n_queries, n_keys, device=device).clamp(-max_distance, max_distance) + max_distance


class ShawPosition(Position):
    """Shaw's relative positions as a part of attention: one table for the keys, one for the values, for all heads.

    No vector is ever laid out for each pair of a query and a key. A query meets the 2 m + 1 vectors first, and the
    products go to the places of their distances; the weights of each distance are summed first, and the sums meet
    the 2 m + 1 vectors (section 3.3 of the paper has another way to the same end).

    Args:
        d_k: width of a head's queries and keys.
        max_distance: where distances are clipped, the paper's k: 2 * max_distance + 1 vectors in a table.
        d_v: width of a head's values; as d_k unless given.

    >>> query = torch.zeros(1, 2, 3, 4)
    >>> position = ShawPosition(d_k=4, max_distance=2)
    >>> position(query, query, scale=0.5)[2].shape, position.values(torch.zeros(1, 2, 3, 3)).shape
    (torch.Size([1, 2, 3, 3]), torch.Size([1, 2, 3, 4]))
    """

    def __init__(self, *, d_k: int, max_distance: int, d_v: int | None = None) -> None:
        super().__init__()
        d_v = d_k if d_v is None else d_v
        for name, count, least in (("d_k", d_k, 1), ("d_v", d_v, 1), ("max_distance", max_distance, 0)):
            check_count(name, count, least=least)
        self.max_distance = max_distance
        self.key_table = nn.Parameter(torch.empty(2 * max_distance + 1, d_k))
        self.value_table = nn.Parameter(torch.empty(2 * max_distance + 1, d_v))
        for table in (self.key_table, self.value_table):
            nn.init.xavier_uniform_(table)

    def forward(self, query: Tensor, key: Tensor, *, scale: float) -> tuple[Tensor, Tensor, Tensor]:
        check_queries(query, d_k=self.key_table.shape[1])
        by_distance = query @ (scale * self.key_table).T  # (batch, heads, query, 2 m + 1)
        index = shaw_index(query.shape[-2], key.shape[-2], self.max_distance, device=query.device)  # (query, key)
        return query, key, by_distance.gather(-1, index.expand(*query.shape[:-2], -1, -1))  # (batch, heads, query, key)

    def values(self, weights: Tensor) -> Tensor:
        """What the distances add to the output: (batch, heads, query, key) -> (batch, heads, query, d_v)."""
        index = shaw_index(*weights.shape[-2:], self.max_distance, device=weights.device)  # (query, key)
        by_distance = weights.new_zeros(*weights.shape[:-1], len(self.value_table))
        by_distance.scatter_add_(-1, index.expand_as(weights), weights)  # (batch, heads, query, 2 m + 1)
        return by_distance @ self.value_table  # (batch, heads, query, d_v)
