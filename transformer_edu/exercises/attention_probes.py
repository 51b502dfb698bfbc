"""The inputs on which scaled_dot_product_attention is tried."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .exercise import Probe

__all__ = ["EMPTY_ROW", "HALF", "LARGE", "LOW", "PROBES", "numbers", "rows"]


@functools.cache
def numbers(*shape: int, seed: int) -> Tensor:
    """The same random numbers of this shape in every run; clone them before they are given away."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def rows(*rows: Sequence[float]) -> Tensor:
    """A float matrix, row by row."""
    return torch.tensor(rows)


@functools.cache
def _parts(
    batch: int, heads: int, queries: int, keys: int, d_k: int, d_v: int, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    together = numbers(batch, heads, queries * d_k + keys * (d_k + d_v), seed=seed)
    query, key, value = together.split([queries * d_k, keys * d_k, keys * d_v], dim=-1)
    return (
        query.reshape(batch, heads, queries, d_k),
        key.reshape(batch, heads, keys, d_k),
        value.reshape(batch, heads, keys, d_v),
    )


def _inputs(
    batch: int,
    heads: int,
    queries: int,
    keys: int,
    d_k: int,
    d_v: int,
    *,
    seed: int,
    mask: Callable[[], Tensor | None] = lambda: None,
    dtype: torch.dtype = torch.float32,
) -> Callable[[], tuple]:
    """Fresh random arguments of these sizes."""

    def make() -> tuple:
        parts = _parts(batch, heads, queries, keys, d_k, d_v, seed)
        return (*(x.to(dtype, copy=True) for x in parts), mask())

    return make


def _mask(*rows: Sequence[int]) -> Tensor:
    return torch.tensor(rows).bool()


def _padding() -> Tensor:
    return _mask((1, 1, 1, 0), (1, 1, 0, 0))[:, None, None, :]  # (batch, 1, 1, key)


def _long_padding() -> Tensor:
    return _mask((1, 1, 0, 0, 0), (1, 1, 1, 1, 0))[:, None, None, :]


def _causal() -> Tensor:
    return torch.ones(4, 4, dtype=torch.bool).tril()  # (query, key)


def _decoder() -> Tensor:
    return torch.ones(3, 3, dtype=torch.bool).tril() & _mask((1, 1, 0), (1, 1, 1))[:, None, None, :]


def _per_head() -> Tensor:
    """(batch, heads, query, key), no two rows of queries, heads or sequences the same."""
    rows = (
        (1, 1, 0, 0), (0, 1, 1, 1), (1, 0, 0, 1), (0, 1, 1, 0), (1, 1, 1, 0), (0, 0, 1, 1),
        (1, 0, 1, 0), (0, 1, 0, 1), (1, 1, 0, 1), (1, 0, 1, 1), (0, 0, 1, 1), (1, 1, 0, 0),
    )  # fmt: skip
    return _mask(*rows).reshape(2, 2, 3, 4)


def _with_empty_row() -> Tensor:
    return _mask((1, 0, 1), (0, 0, 0))


def _large() -> tuple:
    """Scores of about a thousand, above and below 0; a forbidden key has by far the largest of some rows."""
    query = rows((40.0, 8.0, 0.0, 0.0), (0.0, -40.0, 8.0, 0.0), (8.0, 0.0, 0.0, 40.0))
    key = rows((50.0, 20.0, 0.0, -20.0), (-10.0, 60.0, 5.0, 10.0), (30.0, 0.0, 40.0, -50.0), (80.0, -80.0, 0.0, 60.0))
    return query[None, None], key[None, None], numbers(1, 1, 4, 3, seed=31).clone(), _mask((1, 1, 1, 0))


def _low() -> tuple:
    """Every score is near -16384; each row allows one key. All numbers are exact in float32."""
    query = torch.full((1, 1, 2, 16), -64.0)
    key = 64.0 + torch.arange(3.0)[:, None].expand(3, 16) / 512
    return query, key[None, None].clone(), numbers(1, 1, 3, 4, seed=32).clone(), _mask((0, 0, 1), (1, 0, 0))


def _without(make: Callable[[], tuple]) -> Callable[[], tuple]:
    return lambda: make()[:3]


HALF = "query, key and value in float16, with a mask"
EMPTY_ROW = "a mask with an empty row"
LARGE = "scores of about 1000 and -1000, with a mask"
LOW = "scores of about -16000, with a mask"

BLIND = ("fill", "reading")  # what cannot matter without a mask

PROBES = (
    Probe(
        "batch 1, 1 head, 2 queries, 3 keys, d_k 4, no mask",
        _inputs(1, 1, 2, 3, 4, 4, seed=11),
        blind_to=BLIND,
    ),
    Probe(
        "batch 1, 1 head, 3 queries, 3 keys, d_k 3, no mask",
        _inputs(1, 1, 3, 3, 3, 3, seed=12),
        blind_to=BLIND,
    ),
    Probe(
        "batch 2, 3 heads, 4 queries, 5 keys, d_k 6, d_v 7, no mask",
        _inputs(2, 3, 4, 5, 6, 7, seed=11),
        blind_to=BLIND,
    ),
    Probe(
        "batch 1, 1 head, 2 queries, 3 keys, d_k 1, no mask",
        _inputs(1, 1, 2, 3, 1, 2, seed=16),
        blind_to=BLIND,
    ),
    Probe(
        "batch 1, 2 heads, 1 query, 4 keys, d_k 8, no mask",
        _inputs(1, 2, 1, 4, 8, 8, seed=15),
        blind_to=BLIND,
    ),
    Probe(
        "batch 2, 2 heads, 2 queries, 2 keys, d_k 2, called with three arguments",
        _without(_inputs(2, 2, 2, 2, 2, 2, seed=20)),
        blind_to=BLIND,
    ),
    Probe(
        "batch 1, 2 heads, 4 queries, 4 keys, d_k 4, causal mask (query, key)",
        _inputs(1, 2, 4, 4, 4, 4, seed=17, mask=_causal),
    ),
    Probe(
        "batch 2, 3 heads, 4 queries, 4 keys, d_k 4, padding mask (batch, 1, 1, key)",
        _inputs(2, 3, 4, 4, 4, 4, seed=19, mask=_padding),
    ),
    Probe(
        "batch 2, 2 heads, 3 queries, 5 keys, d_k 3, d_v 4, padding mask (batch, 1, 1, key)",
        _inputs(2, 2, 3, 5, 3, 4, seed=18, mask=_long_padding),
    ),
    Probe(
        "batch 2, 2 heads, 3 queries, 3 keys, d_k 5, mask (batch, 1, query, key)",
        _inputs(2, 2, 3, 3, 5, 5, seed=20, mask=_decoder),
    ),
    Probe(
        "batch 2, 2 heads, 3 queries, 4 keys, d_k 9, d_v 2, mask (batch, heads, query, key)",
        _inputs(2, 2, 3, 4, 9, 2, seed=14, mask=_per_head),
    ),
    Probe(EMPTY_ROW, _inputs(1, 1, 2, 3, 2, 2, seed=22, mask=_with_empty_row), edge=True),
    Probe(
        f"{EMPTY_ROW}, and the gradient",
        _inputs(1, 1, 2, 3, 2, 2, seed=23, mask=_with_empty_row),
        edge=True,
        gradients=True,
    ),
    Probe(
        HALF,
        _inputs(1, 2, 3, 4, 8, 8, seed=24, mask=lambda: _mask((1, 1, 1, 0)), dtype=torch.float16),
        edge=True,
    ),
    Probe(LARGE, _large, edge=True),
    Probe(LOW, _low, edge=True),
)
