"""No vectors, only a penalty that grows with the distance: each head has its own slope, and nothing is learnt.

    scores_ij = q_i k_j^T / sqrt(d_k) - slope |i - j|

Press, Smith and Lewis 2022, "Train Short, Test Long: Attention with Linear Biases Enables Input Length
Extrapolation" (ALiBi), section 3.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import check_count
from .position import Position, check_queries, distances

__all__ = ["AlibiPosition", "alibi_bias", "alibi_slopes"]


def alibi_slopes(n_heads: int, *, device: torch.device | None = None) -> Tensor:
    """The slope of each head. float32 (heads,).

    For n heads, n a power of two, 2^(-8/n), 2^(-16/n), ..., 2^-8. For other numbers, as in the authors' code: the
    slopes for the power of two below, followed by the 1st, 3rd, 5th, ... of those for the power of two above, so
    that they do not fall from head to head.

    >>> alibi_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    >>> alibi_slopes(3).tolist()
    [0.0625, 0.00390625, 0.25]
    """
    check_count("n_heads", n_heads)
    below = 2 ** (n_heads.bit_length() - 1)  # the largest power of two up to n_heads
    slopes = [2 ** (-8 * i / below) for i in range(1, below + 1)]
    between = [2 ** (-8 * i / (2 * below)) for i in range(1, 2 * below, 2)]
    return torch.tensor(slopes + between[: n_heads - below], device=device)


def alibi_bias(n_heads: int, n_queries: int, n_keys: int, *, device: torch.device | None = None) -> Tensor:
    """-slope * |query position - key position|, to be added to the scaled scores. float32 (heads, query, key).

    The queries are the last `n_queries` positions. The future is penalised as the past is; to forbid it is a mask's
    business. (Under a causal mask the authors' slope * key position gives the same weights: the two biases
    differ by one number in each row.)

    >>> alibi_bias(1, 2, 2).tolist() == [[[0, -(2**-8)], [-(2**-8), 0]]]
    True
    """
    distance = distances(n_queries, n_keys, device=device).abs()  # (query, key)
    return -alibi_slopes(n_heads, device=device)[:, None, None] * distance  # (heads, query, key)


class AlibiPosition(Position):
    """ALiBi as a part of attention: nothing to learn, only the bias of `alibi_bias`.

    Args:
        n_heads: number of query heads, that of the attention it belongs to.

    >>> query = torch.zeros(1, 2, 3, 4)
    >>> AlibiPosition(n_heads=2)(query, query, scale=1.0)[2].shape  # the bias
    torch.Size([2, 3, 3])
    """

    def __init__(self, *, n_heads: int) -> None:
        super().__init__()
        check_count("n_heads", n_heads)
        self.n_heads = n_heads

    def forward(self, query: Tensor, key: Tensor, *, scale: float) -> tuple[Tensor, Tensor, Tensor]:
        check_queries(query, n_heads=self.n_heads)
        bias = alibi_bias(self.n_heads, query.shape[-2], key.shape[-2], device=query.device)  # (heads, query, key)
        return query, key, bias
