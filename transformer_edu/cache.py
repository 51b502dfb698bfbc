"""Keys and values that have been computed already, so that a new token costs one row and not the whole triangle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from .errors import check_ids, check_tensor, shape_text

__all__ = ["KeyValueCache"]


@dataclass
class _Buffer:
    """Keys and values with room for more: `length` of the positions are taken."""

    key: Tensor  # (batch, kv_heads, room, d_k)
    value: Tensor  # (batch, kv_heads, room, d_v)
    length: int


class KeyValueCache:
    """The keys and values of all tokens so far, for every attention module of one model.

    Self-attention appends those of its new tokens and is given all of them; attention to a memory computes them once.
    Queries stay out of it: a token asks only once. Pass one cache to every forward pass of a decoding, each time with
    the new tokens alone, under `torch.no_grad()`.

    >>> import torch
    >>> cache, layer = KeyValueCache(), torch.nn.Identity()
    >>> for token in torch.arange(6.0).view(3, 1, 1, 1, 2):
    ...     key, value = cache.append(layer, token, token)
    >>> cache.length, key.shape, key[0, 0].tolist()
    (3, torch.Size([1, 1, 3, 2]), [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    """

    def __init__(self) -> None:
        self._grown: dict[nn.Module, _Buffer] = {}
        self._fixed: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    @property
    def length(self) -> int:
        """How many positions it holds: the position of the next token. (The longest, in the middle of a pass.)"""
        return max((buffer.length for buffer in self._grown.values()), default=0)

    def append(self, owner: nn.Module, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """All keys (batch, kv_heads, key, d_k) and values of `owner` so far, with the new ones at the end.

        Memory is taken in doubling steps, so that most calls copy the new rows alone.
        """
        check_tensor("key", key, dims=("batch", "kv_heads", "length", "d_k"))
        if key.requires_grad or value.requires_grad:
            raise ValueError("a cache keeps no gradients: decode under torch.no_grad(), or train without a cache")
        if owner not in self._grown:
            if key.shape[:3] != value.shape[:3]:
                raise ValueError(
                    f"key and value must have the same batch, kv_heads and length, got {shape_text(key)} and "
                    f"{shape_text(value)}"
                )
            self._grown[owner] = _Buffer(key[:, :, :0], value[:, :, :0], 0)
        buffer = self._grown[owner]
        if len(key) != len(buffer.key):
            raise ValueError(f"the cache holds a batch of {len(buffer.key)}, got one of {len(key)}: begin a new cache")
        start, stop = buffer.length, buffer.length + key.shape[2]
        if stop > buffer.key.shape[2]:
            buffer.key, buffer.value = (_with_room(x[:, :, :start], 2 * stop) for x in (buffer.key, buffer.value))
        buffer.key[:, :, start:stop], buffer.value[:, :, start:stop] = key, value
        buffer.length = stop
        return buffer.key[:, :, :stop], buffer.value[:, :, :stop]

    def once(self, owner: nn.Module, compute: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """What `compute()` gave for `owner` when it was first asked."""
        if owner not in self._fixed:
            self._fixed[owner] = compute()
        return self._fixed[owner]

    def reorder(self, rows: Tensor) -> None:
        """Go on with other rows of the batch: new row i has what row `rows[i]` had (a beam's parents)."""
        check_ids("rows", rows, dims=("batch",))
        try:
            for buffer in self._grown.values():
                buffer.key, buffer.value = buffer.key[rows], buffer.value[rows]
            self._fixed = {owner: (key[rows], value[rows]) for owner, (key, value) in self._fixed.items()}
        except IndexError as error:
            raise ValueError(f"rows must be rows of the batch that the cache holds, got {rows.tolist()}") from error


def _with_room(x: Tensor, room: int) -> Tensor:
    """A copy of x (batch, kv_heads, length, d) in a tensor with `room` positions."""
    wide = x.new_empty(*x.shape[:2], room, x.shape[3])
    wide[:, :, : x.shape[2]] = x
    return wide
