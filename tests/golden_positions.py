"""How each kind of golden file about positions is computed with this package."""

from __future__ import annotations

import re
from collections.abc import Callable

import torch
from golden_case import Case, Comparisons, first
from torch import Tensor

from transformer_edu.positions import SinusoidalPositions, sinusoidal_positions, sinusoids


def _float32(positions: Tensor, d_model: int, base: float, kind: str) -> Tensor:
    """The two usual ways in float32, whose angles have lost a few digits at large positions."""
    column = torch.arange(0, d_model, 2, dtype=torch.float32)
    if kind == "power":
        angle = positions.float()[:, None] / base ** (column / d_model)
    else:
        angle = positions.float()[:, None] * torch.exp(column * (-torch.log(torch.tensor(base)) / d_model))
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)[:, :d_model]  # (positions, d_model)


def tables(case: Case) -> Comparisons:
    """Tables of the sinusoid (`table_40x16`), rows of it at `in.positions`, or tokens `in.x` with it added."""
    base = float(case.option("base", default=10000.0))
    for name, golden in case.group("out").items():
        tag, _, leaf = name.rpartition(".")
        length, d_model = golden.shape[-2:]
        inputs = case.group("in", tag)
        positions = first(inputs, "positions", default=torch.arange(length))
        by_hand = re.fullmatch("float32_(power|explog)", leaf)
        if by_hand:
            mine = _float32(positions, d_model, base, by_hand[1])
        elif "x" in inputs:
            mine = SinusoidalPositions(d_model=d_model, base=base)(inputs["x"])
        else:
            mine = sinusoids(positions, d_model, base=base, dtype=golden.dtype)
        yield f"out.{name}", mine, golden


def system_001(case: Case) -> Comparisons:
    """That system adds its whole table, max_len rows: a sequence of length 1 broadcasts to max_len."""
    x, (_, max_length, d_model) = case.group("in")["x"], case.group("w")["pe"].shape
    table = sinusoidal_positions(max_length, d_model)
    torch.testing.assert_close(table[None], case.group("w")["pe"], rtol=1e-4, atol=1e-4)
    for name, golden in case.group("out").items():
        if name.endswith("faithful"):
            yield f"out.{name}", x + table, golden
        elif name.endswith("corrected"):
            yield f"out.{name}", SinusoidalPositions(d_model=d_model)(x), golden


RUNNERS: dict[str, Callable[[Case], Comparisons]] = {
    "sinusoid": tables,
    "s000_pos_table": tables,
    "s001_faithful_pe_len1_broadcast": system_001,
}
