"""Exercises of lesson 02: softmax, scaled_dot_product_attention."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .. import attention
from .attention_mistakes import MISTAKES
from .attention_probes import PROBES
from .attention_switches import attend
from .attention_symptoms import SYMPTOMS
from .exercise import Exercise, Result
from .softmax import SOFTMAX

__all__ = ["EXERCISES", "attention_by_loop"]


def attention_by_loop(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Attention one number at a time: the specification, slow and obvious.

    Args:
        query: (batch, heads, query, d_k).
        key: (batch, heads, key, d_k).
        value: (batch, heads, key, d_v).
        mask: bool, broadcastable to (batch, heads, query, key), True = may attend.

    Returns:
        output (batch, heads, query, d_v), weights (batch, heads, query, key), both without gradients.
    """
    batch, heads, queries, d_k = query.shape
    keys, d_v = value.shape[-2:]
    allowed = None if mask is None else mask.expand(batch, heads, queries, keys).tolist()
    q, k, v = query.tolist(), key.tolist(), value.tolist()
    weights = torch.zeros(batch, heads, queries, keys, dtype=query.dtype)
    output = torch.zeros(batch, heads, queries, d_v, dtype=value.dtype)
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                scores = {}  # of the keys that this query may attend to
                for j in range(keys):
                    if allowed is None or allowed[b][h][i][j]:
                        dot = sum(q[b][h][i][c] * k[b][h][j][c] for c in range(d_k))
                        scores[j] = dot / math.sqrt(d_k)
                largest = max(scores.values(), default=0.0)  # subtracted so that exp cannot overflow
                total = sum(math.exp(score - largest) for score in scores.values())
                for j, score in scores.items():
                    weights[b, h, i, j] = math.exp(score - largest) / total
                for c in range(d_v):
                    output[b, h, i, c] = sum(
                        math.exp(score - largest) / total * v[b][h][j][c] for j, score in scores.items()
                    )
    return output, weights


ATTENTION = Exercise(
    name="attention.scaled_dot_product_attention",
    reference=attention.scaled_dot_product_attention,
    results=(
        Result("output", ("batch", "head", "query", "d_v")),
        Result("weights", ("batch", "head", "query", "key")),
    ),
    probes=PROBES,
    compound=attend,
    mistakes=MISTAKES,
    symptoms=SYMPTOMS,
    at_once=2,
)

EXERCISES = (SOFTMAX, ATTENTION)
