"""Tokens as vectors, and where each of them stands.

    x = sqrt(d_model) * embedding[token] + P[position]
    P[p, 2i] = sin(p / 10000^(2i / d_model)),  P[p, 2i + 1] = cos(p / 10000^(2i / d_model))

Vaswani et al. 2017, "Attention Is All You Need", sections 3.4 (the embedding's scale) and 3.5 (the sinusoid); learned
positions: Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", section 3.1. The lesson is
notebooks/06_positions.ipynb.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .errors import check_count, check_share, check_tensor, shape_text

__all__ = [
    "LearnedPositions",
    "SinusoidalPositions",
    "TokenEmbedding",
    "add_positions",
    "embed_tokens",
    "position_ids",
    "sinusoidal_positions",
    "sinusoids",
]


# ---------------------------------------------------------------- tokens
def embed_tokens(tokens: Tensor, weight: Tensor, *, scale: float | None = None) -> Tensor:
    """One row of `weight` for each token, times sqrt(d_model): (batch, length) -> (batch, length, d_model).

    Args:
        tokens: ids (..., length), whole numbers from 0 to vocab_size - 1.
        weight: (vocab_size, d_model).
        scale: what the rows are multiplied by; sqrt(d_model) unless given.

    Raises ValueError for ids that are not whole numbers or not in the vocabulary. Vaswani et al. 2017, section 3.4.

    >>> embed_tokens(torch.tensor([[1, 0]]), torch.tensor([[0.0, 0, 0, 1], [1.0, 2, 3, 4]])).tolist()
    [[[2.0, 4.0, 6.0, 8.0], [0.0, 0.0, 0.0, 2.0]]]
    """
    check_tensor("weight", weight, dims=("vocab_size", "d_model"))
    _check_ids("tokens", tokens, len(weight), limit="vocab_size")
    scale = math.sqrt(weight.shape[1]) if scale is None else scale
    return F.embedding(tokens, weight) * scale  # (..., length, d_model)


def _check_ids(name: str, ids: object, count: int, *, limit: str) -> None:
    """Raise unless `ids` are whole numbers in 0..count - 1; `limit` is what `count` is called."""
    check_tensor(name, ids)
    if ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"{name} must be whole numbers (torch.int64), got {ids.dtype}: {name}.long() makes them so")
    if ids.is_meta or not ids.numel():
        return
    low, high = (int(i) for i in ids.aminmax())
    if low < 0 or high >= count:
        wrong = low if low < 0 else high
        raise ValueError(f"{name} must lie in 0..{count - 1}, because {limit} is {count}; got {wrong}")


class TokenEmbedding(nn.Module):
    """A learnt vector for each token, multiplied by a scale: (batch, length) -> (batch, length, d_model).

    The weights begin with variance 1 / scale^2, so that what comes out has variance 1, about as large as a sinusoid,
    whose mean square is 1/2. With the usual scale they can then be shared with the output layer, as in section 3.4.

    Args:
        vocab_size: number of tokens.
        d_model: width of a token's vector.
        scale: what the rows are multiplied by; sqrt(d_model) unless given, 1.0 for none.
        pad_id: a token whose vector is 0 and stays so.

    >>> TokenEmbedding(vocab_size=10, d_model=4)(torch.tensor([[7, 1, 1]])).shape
    torch.Size([1, 3, 4])
    """

    def __init__(self, *, vocab_size: int, d_model: int, scale: float | None = None, pad_id: int | None = None) -> None:
        super().__init__()
        check_count("vocab_size", vocab_size)
        check_count("d_model", d_model)
        self.scale = math.sqrt(d_model) if scale is None else scale
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model).normal_(std=1 / self.scale))
        self.pad_id = pad_id
        if pad_id is not None:
            check_count("pad_id", pad_id, least=0)
            if pad_id >= vocab_size:
                raise ValueError(f"pad_id must lie in 0..{vocab_size - 1}, because vocab_size is {vocab_size}; "
                                 f"got {pad_id}")  # fmt: skip
            with torch.no_grad():
                self.weight[pad_id] = 0.0

    def forward(self, tokens: Tensor) -> Tensor:
        x = embed_tokens(tokens, self.weight, scale=self.scale)  # (batch, length, d_model)
        return x if self.pad_id is None else x.masked_fill((tokens == self.pad_id)[..., None], 0.0)


# ---------------------------------------------------------------- the sinusoid
def sinusoids(positions: Tensor, d_model: int, *, base: float = 10000.0, dtype: torch.dtype = torch.float32) -> Tensor:
    """The sinusoid's row for each of any positions, also negative or fractional ones: (...) -> (..., d_model).

    Computed in float64: in float32 an angle of thousands has lost its fourth decimal. An odd width ends with a sine.

    >>> sinusoids(torch.tensor([0.0, math.pi / 2]), 3, base=1.0).round(decimals=4).abs().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """
    check_tensor("positions", positions)
    check_count("d_model", d_model)
    if not base > 0:
        raise ValueError(f"base must be above 0, got {base}: the paper takes 10000")
    column = torch.arange(0, d_model, 2, dtype=torch.float64, device=positions.device)  # (pairs,), the 2i
    angle = positions[..., None] / base ** (column / d_model)  # (..., pairs), float64
    both = torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)  # (..., 2 * pairs), sine and cosine in turn
    return both[..., :d_model].to(dtype)  # (..., d_model)


def sinusoidal_positions(
    length: int,
    d_model: int,
    *,
    offset: int = 0,
    base: float = 10000.0,
    device: torch.device | str | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The sinusoid's table for the positions offset to offset + length - 1: (length, d_model).

    Even columns 2i hold sin(p / base^(2i / d_model)), odd columns 2i + 1 the cosine of the same angle. A row depends on
    its position alone, so a table for more positions begins with the same rows. Vaswani et al. 2017, section 3.5.

    >>> sinusoidal_positions(2, 4).round(decimals=2).add(0.0).tolist()[0]
    [0.0, 1.0, 0.0, 1.0]
    >>> bool((sinusoidal_positions(1, 6, offset=4) == sinusoidal_positions(5, 6)[4:]).all())
    True
    """
    check_count("length", length, least=0)
    check_count("offset", offset, least=0)
    positions = torch.arange(offset, offset + length, device=device)  # (length,)
    return sinusoids(positions, d_model, base=base, dtype=dtype)  # (length, d_model)


# ---------------------------------------------------------------- adding them
def add_positions(x: Tensor, table: Tensor, *, offset: int = 0, positions: Tensor | None = None) -> Tensor:
    """Add to each token the row of the place where it stands: (batch, length, d_model), same shape.

    Args:
        x: tokens (batch, length, d_model).
        table: (max_length, d_model), one row for each position.
        offset: position of the first token, where the ones before it have been worked on already.
        positions: each token's own position (batch, length), where they differ from row to row; see `position_ids`.

    Raises ValueError for a position that the table does not have.

    >>> add_positions(torch.zeros(1, 2, 1), torch.tensor([[0.0], [10.0], [20.0]]), offset=1).tolist()
    [[[10.0], [20.0]]]
    """
    check_tensor("table", table, dims=("max_length", "d_model"))
    _check_tokens(x, table.shape[1], offset, positions)
    if positions is not None:
        _check_ids("positions", positions, len(table), limit="max_length")
        return x + F.embedding(positions, table)  # (batch, length, d_model)
    length, max_length = x.shape[1], len(table)
    if offset + length > max_length:
        after = f" after the first {offset}" if offset else ""
        raise ValueError(
            f"there are {length} tokens{after}, but max_length is {max_length}: there is no row for a position above "
            f"{max_length - 1}. Cut the sequence, or make the table longer"
        )
    return x + table[offset : offset + length]  # (length, d_model) broadcasts over the batch


def _check_tokens(x: object, d_model: int, offset: int, positions: object) -> None:
    check_tensor("x", x, dims=("batch", "length", "d_model"))
    if x.shape[-1] != d_model:
        raise ValueError(f"x must have tokens of width d_model ({d_model}), got width {x.shape[-1]} in {shape_text(x)}")
    check_count("offset", offset, least=0)
    if positions is None:
        return
    check_tensor("positions", positions, dims=("batch", "length"))
    if offset:
        raise ValueError(f"give offset ({offset}) or positions, not both: add the offset to the positions")
    if positions.shape[1] != x.shape[1] or positions.shape[0] not in (1, x.shape[0]):
        raise ValueError(
            f"positions must have a number for each token, {shape_text(x.shape[:2])} = (batch, length), "
            f"got {shape_text(positions)}"
        )


class SinusoidalPositions(nn.Module):
    """Adds the sinusoid to tokens of any number, since rows are computed and not stored: nothing here is learnt.

    Args:
        d_model: width of a token.
        base: the longest wave is nearly base times as long as the shortest.
        dropout: share of the sum's entries set to 0 in training mode (section 5.4).

    >>> SinusoidalPositions(d_model=4)(torch.zeros(2, 3, 4))[0, 0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """

    def __init__(self, *, d_model: int, base: float = 10000.0, dropout: float = 0.0) -> None:
        super().__init__()
        check_count("d_model", d_model)
        check_share("dropout", dropout, of="the entries")
        self.d_model, self.base, self.dropout = d_model, base, dropout

    def forward(self, x: Tensor, *, offset: int = 0, positions: Tensor | None = None) -> Tensor:
        """x (batch, length, d_model) with the positions added, counted from `offset` or given as (batch, length)."""
        _check_tokens(x, self.d_model, offset, positions)
        if positions is None:
            positions = torch.arange(offset, offset + x.shape[1], device=x.device)  # (length,)
        x = x + sinusoids(positions, self.d_model, base=self.base, dtype=x.dtype)  # (batch, length, d_model)
        return F.dropout(x, self.dropout, self.training)


class LearnedPositions(nn.Module):
    """Adds a learnt vector for each position up to max_length - 1; there is none beyond.

    A position that no training sequence reaches keeps the random row that it began with.

    Args:
        max_length: number of positions.
        d_model: width of a token.
        dropout: share of the sum's entries set to 0 in training mode.
        std: standard deviation of the first, random rows (0.1 as in Gehring et al. 2017).

    >>> LearnedPositions(max_length=3, d_model=4)(torch.zeros(1, 5, 4))
    Traceback (most recent call last):
    ValueError: there are 5 tokens, but max_length is 3: there is no row for a position above 2. Cut the sequence, or \
make the table longer
    """

    def __init__(self, *, max_length: int, d_model: int, dropout: float = 0.0, std: float = 0.1) -> None:
        super().__init__()
        check_count("max_length", max_length)
        check_count("d_model", d_model)
        check_share("dropout", dropout, of="the entries")
        self.table = nn.Parameter(torch.empty(max_length, d_model).normal_(std=std))
        self.dropout = dropout

    def forward(self, x: Tensor, *, offset: int = 0, positions: Tensor | None = None) -> Tensor:
        """x (batch, length, d_model) with the positions added, counted from `offset` or given as (batch, length)."""
        return F.dropout(add_positions(x, self.table, offset=offset, positions=positions), self.dropout, self.training)


# ---------------------------------------------------------------- padding
def position_ids(mask: Tensor) -> Tensor:
    """Count the real tokens of each sequence from 0, on whichever side its padding is: (batch, length), dtype int64.

    `mask` (batch, length) is bool, True = real token. Padding gets the id of the real token before it, or 0 where there
    is none: a valid id that nobody reads. Raises ValueError for a mask of another dtype.

    >>> position_ids(torch.tensor([[True, True, False], [False, True, True]])).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    check_tensor("mask", mask, dims=("batch", "length"))
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must have dtype bool (True = real token), got {mask.dtype}: mask != 0 makes it so")
    return (mask.cumsum(-1) - 1).clamp(min=0)  # (batch, length)
