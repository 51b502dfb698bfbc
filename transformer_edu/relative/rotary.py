"""Turn queries and keys by an angle that grows with the position; the dot product then sees the distance alone.

Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", section 3.2.2.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import check_choice, check_count, check_float, check_number, check_tensor, shape_text
from .position import Position

__all__ = ["RotaryPosition", "pairing_order", "rope"]

PAIRINGS = ("interleaved", "half_split")


def rope(
    x: Tensor,
    positions: Tensor | None = None,
    base: float = 10000.0,
    *,
    pairing: str = "interleaved",
    width: int | None = None,
) -> Tensor:
    """Rotate the pairs of columns of each token: pair i at position p by the angle p / base^(2i / width).

    Args:
        x: (batch, heads, length, d_k) or any other leading axes.
        positions: whole numbers or floats, (length,), or (batch, length) for an x of four axes; 0, 1, 2, ...
            unless given.
        base: the larger, the slower the last pairs turn.
        pairing: "interleaved" pairs columns 2i and 2i + 1 (the paper, GPT-J), "half_split" pairs columns i and
            i + width / 2 (GPT-NeoX, Llama). One is the other with its columns in another order: `pairing_order`.
        width: how many columns turn, from the first on; the others stay as they are. All unless given.

    Returns:
        the shape and dtype of x. Raises ValueError for an odd width, or positions of another length than x.

    >>> rope(torch.tensor([[1.0, 0.0], [1.0, 0.0]])).round(decimals=3).tolist()  # cos 0, sin 0; cos 1, sin 1
    [[1.0, 0.0], [0.5400000214576721, 0.8410000205039978]]
    """
    check_float("x", x, dims=("length", "d_k"), leading=True)
    check_number("base", base, above=0)
    check_choice("pairing", pairing, PAIRINGS)
    width = _checked_width(x, width)
    angles = _angles(_checked_positions(x, positions), width, base)  # (..., length, width / 2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    turning, rest = x[..., :width], x[..., width:]
    if pairing == "interleaved":
        first, second = turning.unflatten(-1, (-1, 2)).unbind(-1)  # (..., length, width / 2) each
    else:
        first, second = turning.chunk(2, -1)
    turned = (first * cos - second * sin, first * sin + second * cos)
    turned = torch.stack(turned, -1).flatten(-2) if pairing == "interleaved" else torch.cat(turned, -1)
    return torch.cat([turned, rest], -1) if rest.shape[-1] else turned  # (..., length, d_k)


def pairing_order(d_k: int, *, device: torch.device | None = None) -> Tensor:
    """The columns of an interleaved vector in half-split order: 0, 2, 4, ..., 1, 3, 5, ... int64 (d_k,).

    `rope(x[..., order], pairing="half_split")` equals `rope(x, pairing="interleaved")[..., order]`. Queries and keys
    in the same new order have the same dot products, so weights trained with one pairing serve the other once
    the rows of the query and key projections are put in this order, head by head.

    >>> pairing_order(6).tolist()
    [0, 2, 4, 1, 3, 5]
    """
    check_count("d_k", d_k)
    columns = torch.arange(d_k, device=device)
    return torch.cat([columns[0::2], columns[1::2]])


def _angles(positions: Tensor, width: int, base: float) -> Tensor:
    """position * base^(-2i / width), in float64: far positions make large angles. (..., length, width / 2)."""
    exponents = torch.arange(0, -width, -2, device=positions.device, dtype=torch.float64) / width
    return positions.double()[..., None] * base**exponents


def _checked_width(x: Tensor, width: int | None) -> int:
    if width is None:
        width = x.shape[-1]
    else:
        check_count("width", width)
    if width % 2 or not 0 < width <= x.shape[-1]:
        raise ValueError(
            f"width must be an even number from 2 to d_k ({x.shape[-1]}), got {width}: columns turn in pairs"
        )
    return width


def _checked_positions(x: Tensor, positions: Tensor | None) -> Tensor:
    if positions is None:
        return torch.arange(x.shape[-2], device=x.device)  # (length,)
    check_tensor("positions", positions)
    if positions.dtype == torch.bool:
        raise ValueError("positions must be numbers, got a mask: positions.position_ids counts the real tokens of one")
    if positions.dim() == 2 and x.dim() == 4 and positions.shape in ((1, x.shape[-2]), (x.shape[0], x.shape[-2])):
        return positions[:, None]  # (batch, 1, length)
    if positions.shape != (x.shape[-2],):
        raise ValueError(
            f"positions must be (length,) = ({x.shape[-2]},), or (batch, length) for an x (batch, heads, length, d_k), "
            f"got {shape_text(positions)} for x {shape_text(x)}"
        )
    return positions


class RotaryPosition(Position):
    """Rotary positions as a part of attention: queries and keys are turned before they meet.

    Args:
        base, pairing: as in `rope`.
        width: how many columns of each head turn; all unless given.

    >>> query, key = torch.ones(1, 1, 1, 2), torch.ones(1, 1, 3, 2)
    >>> turned, keys, bias = RotaryPosition()(query, key, scale=1.0)
    >>> torch.equal(turned, keys[:, :, 2:]), bias  # the query stands at the last position
    (True, None)
    """

    def __init__(self, *, base: float = 10000.0, pairing: str = "interleaved", width: int | None = None) -> None:
        super().__init__()
        check_number("base", base, above=0)
        check_choice("pairing", pairing, PAIRINGS)
        if width is not None:
            check_count("width", width, least=2)
            if width % 2:
                raise ValueError(f"width must be even, got {width}: columns turn in pairs")
        self.base, self.pairing, self.width = base, pairing, width

    def forward(self, query: Tensor, key: Tensor, *, scale: float) -> tuple[Tensor, Tensor, None]:
        n_queries, n_keys = query.shape[-2], key.shape[-2]
        positions = torch.arange(min(0, n_keys - n_queries), n_keys, device=query.device)
        options = {"base": self.base, "pairing": self.pairing, "width": self.width}
        query = rope(query, positions[-n_queries:], **options)  # (batch, heads, query, d_k)
        return query, rope(key, positions[-n_keys:], **options), None  # (batch, kv_heads, key, d_k)
