"""The first exercise: an average in which some things count more than others.

Everything that attention does to values is this one matrix product; the rest of the course is about where the
weights come from. The lesson is notebooks/00_welcome.ipynb.
"""

from __future__ import annotations

from torch import Tensor

from .errors import check_tensor

__all__ = ["mix"]


def mix(weights: Tensor, values: Tensor) -> Tensor:
    """Row i of the result is the average of all rows of `values`, weighted by row i of `weights`.

    `weights` (query, key), rows that sum to 1; `values` (key, d_v). Returns (query, d_v).

    >>> import torch
    >>> mix(torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([[2.0, 0.0], [4.0, 6.0]])).tolist()
    [[2.0, 0.0], [3.0, 3.0]]
    """
    check_tensor("weights", weights, dims=("query", "key"))
    check_tensor("values", values, dims=("key", "d_v"))
    if weights.shape[1] != values.shape[0]:
        raise ValueError(
            f"weights have {weights.shape[1]} columns and values {values.shape[0]} rows: one weight for each value"
        )
    return weights @ values  # (query, d_v)
