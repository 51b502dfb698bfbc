"""One learnt number for each bucket of distances and each head, added to the scores.

Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer" (T5),
section 2.1. Near distances have a bucket each; farther ones share buckets that grow with the logarithm.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ..errors import check_count, check_flag, check_ids
from .position import Position, check_queries, distances

__all__ = ["T5Position", "t5_bucket"]


def t5_bucket(relative: Tensor, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128) -> Tensor:
    """The bucket of each distance. int64, shape of `relative`.

    Args:
        relative: key position - query position, whole numbers, any shape.
        bidirectional: True gives half of the buckets to the past and the query itself, half to the future. False
            is for causal attention: all buckets for the past; the future shares bucket 0 with the query itself.
        num_buckets: how many there are; of those of one side the first half holds one distance each.
        max_distance: from here on all distances share the last bucket.

    Raises ValueError for too few buckets, or a max_distance that the exact buckets reach already.

    >>> t5_bucket(torch.tensor([-9, -1, 0, 1, 9]), True, num_buckets=8, max_distance=16).tolist()
    [3, 1, 0, 5, 7]
    >>> t5_bucket(torch.tensor([-9, -1, 0, 1, 9]), False, num_buckets=8, max_distance=16).tolist()
    [6, 1, 0, 0, 0]
    """
    check_ids("relative", relative)
    exact = _check_buckets(bidirectional, num_buckets, max_distance)
    side = num_buckets // 2 if bidirectional else num_buckets  # buckets for one direction
    distance = relative.abs() if bidirectional else (-relative).clamp(min=0)
    share = (distance.clamp(min=exact).double() / exact).log() / math.log(max_distance / exact)  # 0 to 1, and beyond
    shared = exact + (share * (side - exact) + 1e-9).long()  # 1e-9: a whole number must not end just below itself
    bucket = torch.where(distance < exact, distance, shared.clamp(max=side - 1))
    return bucket + side * (relative > 0) if bidirectional else bucket


def _check_buckets(bidirectional: bool, num_buckets: int, max_distance: int) -> int:
    """Raise unless the numbers make sense; returns how many distances have a bucket of their own."""
    check_flag("bidirectional", bidirectional)
    check_count("num_buckets", num_buckets, least=4 if bidirectional else 2)
    check_count("max_distance", max_distance)
    exact = num_buckets // 4 if bidirectional else num_buckets // 2
    if max_distance <= exact:
        raise ValueError(
            f"max_distance must be above {exact}, the number of distances with a bucket of their own "
            f"(num_buckets is {num_buckets}), got {max_distance}"
        )
    return exact


class T5Position(Position):
    """T5's bias as a part of attention: a learnt number for each bucket and head, added to the scaled scores.

    All numbers begin with 0, without a preference for any distance: they are scores themselves, and one that begins
    far off takes an optimizer many steps to correct.

    T5 itself leaves the dot products unscaled: give its attention `scale=1.0`. It has one such table for all layers
    of a stack: give them one and the same T5Position.

    Args:
        n_heads: number of query heads.
        bidirectional, num_buckets, max_distance: as in `t5_bucket`.

    >>> query = torch.zeros(1, 2, 3, 4)
    >>> T5Position(n_heads=2)(query, query, scale=1.0)[2].shape  # the bias
    torch.Size([2, 3, 3])
    """

    def __init__(
        self, *, n_heads: int, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128
    ) -> None:
        super().__init__()
        check_count("n_heads", n_heads)
        _check_buckets(bidirectional, num_buckets, max_distance)
        self.n_heads = n_heads
        self.bidirectional, self.num_buckets, self.max_distance = bidirectional, num_buckets, max_distance
        self.table = nn.Parameter(torch.zeros(num_buckets, n_heads))

    def forward(self, query: Tensor, key: Tensor, *, scale: float) -> tuple[Tensor, Tensor, Tensor]:
        check_queries(query, n_heads=self.n_heads)
        relative = distances(query.shape[-2], key.shape[-2], device=query.device)  # (query, key)
        bucket = t5_bucket(relative, self.bidirectional, self.num_buckets, self.max_distance)
        return query, key, self.table[bucket].permute(2, 0, 1)  # (query, key, heads) -> (heads, query, key)
