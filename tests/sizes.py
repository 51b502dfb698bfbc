"""Sizes that the tests share, all different so that a swapped axis cannot pass, and a few small helpers."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis
import pytest
import torch
from torch import Tensor

BATCH, HEADS, QUERY, KEY, D_K, D_V, D_MODEL = 2, 3, 4, 5, 6, 7, 18

# How near two ways to compute the same thing come in each dtype.
TOLERANCE = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}

few = hypothesis.settings(max_examples=25, deadline=None, derandomize=True, database=None)


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normal random numbers, the same on every call."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def random_mask(*shape: int, seed: int = 0) -> Tensor:
    """A bool mask, about two thirds True, and True at the first key of every row."""
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.6
    mask[..., 0] = True
    return mask


def same(mine: Tensor, expected: Tensor | list, tolerance: float = 1e-5) -> None:
    """Assert that shapes are equal and numbers nearly so, whatever the dtypes."""
    torch.testing.assert_close(
        mine.detach().double(), torch.as_tensor(expected).detach().double(), rtol=tolerance, atol=tolerance
    )


def error_text(kind: type[Exception], call: Callable[[], object]) -> str:
    """What the exception says that `call` must raise."""
    with pytest.raises(kind) as caught:
        call()
    assert caught.type is kind
    return str(caught.value)
