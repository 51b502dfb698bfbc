"""Which tokens may be drawn, and how likely each is.

Temperature and top-k: Fan et al. 2018, "Hierarchical Neural Story Generation", section 5.4; top-p: Holtzman et al.
2020, "The Curious Case of Neural Text Degeneration", section 3.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import check_count, check_float, check_number

__all__ = ["next_probabilities", "top_k_filter", "top_p_filter"]


def top_k_filter(logits: Tensor, k: int) -> Tensor:
    """The k largest logits of each row stay, the others become -inf. (batch, vocab_size), same shape.

    Entries that tie with the k-th stay too.

    >>> top_k_filter(torch.tensor([[1.0, 3.0, 2.0]]), 2).tolist()
    [[-inf, 3.0, 2.0]]
    """
    check_float("logits", logits, dims=("batch", "vocab_size"))
    check_count("k", k)
    kth = logits.topk(min(k, logits.shape[-1])).values[:, -1:]  # (batch, 1)
    return logits.masked_fill(logits < kth, -torch.inf)


def top_p_filter(logits: Tensor, p: float) -> Tensor:
    """The likeliest tokens whose probabilities together reach p stay, the others become -inf. Same shape.

    The token with which the sum reaches p stays as well, and the likeliest one always, even with p = 0.
    logits: (batch, vocab_size).

    >>> top_p_filter(torch.tensor([[0.5, 0.3, 0.2]]).log(), 0.7).isfinite().tolist()
    [[True, True, False]]
    """
    check_float("logits", logits, dims=("batch", "vocab_size"))
    check_number("p", p, least=0, most=1, why="it is a share of the probability")
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)  # (batch, vocab_size)
    probabilities = ordered.double().softmax(-1)
    before = probabilities.cumsum(-1) - probabilities  # what the likelier tokens have together
    out = before >= p - 1e-9
    out[:, :1] = False
    return logits.masked_fill(torch.zeros_like(out).scatter(-1, order, out), -torch.inf)


def next_probabilities(logits: Tensor, temperature: float, k: int, p: float) -> Tensor:
    """The chances of each next token: temperature, then top-k, then top-p of what is left. (vocab_size,), same shape.

    Temperature 0 puts all probability on the best token; below 1 sharpens, above 1 flattens.

    >>> next_probabilities(torch.tensor([4.0, 2.0, 0.0]).log2(), 1.0, 3, 1.0).sum().item()
    1.0
    >>> next_probabilities(torch.tensor([1.0, 3.0, 2.0]), 0, 3, 1.0).tolist()
    [0.0, 1.0, 0.0]
    """
    check_float("logits", logits, dims=("vocab_size",))
    check_number("temperature", temperature, least=0, why="0 is greedy")
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(), len(logits)).to(logits.dtype)
    return top_p_filter(top_k_filter(logits[None] / temperature, k), p)[0].softmax(-1)
