"""Learnt vectors for clipped distances, added to the keys and to the values.

    scores_ij = q_i (k_j + a_c)^T / sqrt(d_k),  output_i = sum_j weights_ij (v_j + b_c),  c = clip(j - i, -m, m)

Shaw, Uszkoreit and Vaswani 2018, "Self-Attention with Relative Position Representations", section 3.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import check_count
from .position import distances

__all__ = ["shaw_index"]


def shaw_index(n_queries: int, n_keys: int, max_distance: int, *, device: torch.device | None = None) -> Tensor:
    """Which of the 2 * max_distance + 1 vectors stands between a query and a key. int64 (query, key).

    Distances key - query beyond +-max_distance share the outermost vector; the sum with max_distance makes row
    numbers of a table: 0 is far in the past, max_distance is the query's own place.

    >>> shaw_index(3, 3, 1).tolist()
    [[1, 2, 2], [0, 1, 2], [0, 0, 1]]
    """
    check_count("max_distance", max_distance, least=0)
    return distances(n_queries, n_keys, device=device).clamp(-max_distance, max_distance) + max_distance
