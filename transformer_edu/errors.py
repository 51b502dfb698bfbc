"""The one home of argument checks and of their wording.

Every function here either returns nothing or raises an error that names the argument, what came, what was
expected, and a way out. The lesson modules call these checks; they never write such a text a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import torch
from torch import Tensor

__all__ = [
    "check_broadcast",
    "check_choice",
    "check_count",
    "check_divides",
    "check_mask",
    "check_share",
    "check_tensor",
]


def shape_text(x: Tensor | Sequence[int]) -> str:
    """A shape as a reader writes it.

    >>> shape_text(torch.zeros(2, 3))
    '(2, 3)'
    """
    return str(tuple(x.shape if isinstance(x, Tensor) else x))


def check_tensor(name: str, x: object, *, dims: Sequence[str] = (), leading: bool = False) -> None:
    """Raise unless `x` is a tensor whose axes are `dims` (with any axes before them if `leading`).

    >>> check_tensor("query", [1.0], dims=("length",))
    Traceback (most recent call last):
    TypeError: query must be a torch.Tensor, got list: torch.as_tensor(query) makes one
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(x).__name__}: torch.as_tensor({name}) makes one")
    if not dims or x.dim() == len(dims) or (leading and x.dim() > len(dims)):
        return
    axes = ", ".join(["...", *dims] if leading else dims)
    raise ValueError(
        f"{name} must have {'at least ' if leading else ''}{_axes(len(dims))} ({axes}), "
        f"got {_axes(x.dim())}: shape {shape_text(x)}"
    )


def _axes(count: int) -> str:
    return "1 axis" if count == 1 else f"{count} axes"


def check_count(name: str, value: object, *, least: int = 1) -> None:
    """Raise unless `value` is a whole number of at least `least`.

    >>> check_count("n_heads", 0)
    Traceback (most recent call last):
    ValueError: n_heads must be at least 1, got 0
    """
    if isinstance(value, bool) or not isinstance(value, int):
        whole = isinstance(value, (float, str, Integral)) or (isinstance(value, Tensor) and value.dim() == 0)
        whole = whole and not isinstance(value, bool)
        way_out = f" ({value!r}): int({name}) makes one" if whole else ": are the arguments in their order?"
        raise TypeError(f"{name} must be an int, got {type(value).__name__}{way_out}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")


def check_divides(part_name: str, part: int, whole_name: str, whole: int, *, why: str) -> None:
    """Raise unless `part` divides `whole`; `why` says what each part is.

    >>> check_divides("n_heads", 3, "d_model", 8, why="each head gets d_model / n_heads columns")
    Traceback (most recent call last):
    ValueError: d_model (8) must be divisible by n_heads (3): each head gets d_model / n_heads columns
    """
    check_count(part_name, part)
    if whole % part:
        raise ValueError(f"{whole_name} ({whole}) must be divisible by {part_name} ({part}): {why}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless `value` is one of `choices`.

    >>> check_choice("empty_rows", "nan", ("zero", "uniform"))
    Traceback (most recent call last):
    ValueError: empty_rows must be one of 'zero', 'uniform', got 'nan'
    """
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_share(name: str, value: float, *, of: str) -> None:
    """Raise unless `value` lies in 0..1; `of` says what it is a share of.

    >>> check_share("dropout", 1.5, of="the weights")
    Traceback (most recent call last):
    ValueError: dropout must lie in 0..1, got 1.5: it is the share of the weights that are set to 0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number in 0..1, got {type(value).__name__}")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie in 0..1, got {value}: it is the share of {of} that are set to 0")


def check_broadcast(name: str, x: Tensor, shape: Sequence[int], *, axes: str) -> None:
    """Raise unless `x` broadcasts to exactly `shape`; `axes` names the axes of that shape.

    >>> check_broadcast("mask", torch.zeros(2, 4), (2, 3, 4, 5), axes="(batch, heads, query, key)")
    Traceback (most recent call last):
    ValueError: mask of shape (2, 4) does not broadcast to (2, 3, 4, 5) = (batch, heads, query, key): \
shapes are aligned from the right, so the last axis of mask must be 5 or 1
    """
    shape = tuple(shape)
    padded = (1,) * (len(shape) - x.dim()) + tuple(x.shape)
    fits = len(padded) == len(shape) and all(a in (1, b) for a, b in zip(padded, shape, strict=True))
    if fits:
        return
    text = f"{name} of shape {shape_text(x)} does not broadcast to {shape} = {axes}: "
    if len(padded) > len(shape):
        raise ValueError(f"{text}it has {_axes(x.dim())}, at most {len(shape)} fit")
    # Broadcasting aligns from the right, so the first axis to complain about is the rightmost one that differs.
    at = max(i for i, (a, b) in enumerate(zip(padded, shape, strict=True)) if a not in (1, b)) - len(shape)
    which = "the last axis" if at == -1 else f"axis {at}"
    raise ValueError(
        f"{text}shapes are aligned from the right, so {which} of {name} must be {shape[at]}"
        + ("" if shape[at] == 1 else " or 1")
    )


def check_mask(mask: object, shape: Sequence[int], *, axes: str = "(batch, heads, query, key)") -> None:
    """Raise unless `mask` is a bool tensor that broadcasts to the shape of the scores.

    >>> check_mask(torch.ones(4, 5), (2, 3, 4, 5))
    Traceback (most recent call last):
    ValueError: mask of shape (4, 5) for scores of shape (2, 3, 4, 5) must have dtype bool (True = this query may \
attend to this key), got torch.float32: convert it with masks.from_additive (0 and -inf) or \
masks.from_integers (0 and 1), or pass it to scaled_dot_product_attention as bias=
    """
    check_tensor("mask", mask)
    if mask.dtype != torch.bool:
        raise ValueError(
            f"mask of shape {shape_text(mask)} for scores of shape {tuple(shape)} must have dtype bool (True = this "
            f"query may attend to this key), got {mask.dtype}: convert it with masks.from_additive (0 and -inf) "
            "or masks.from_integers (0 and 1), or pass it to scaled_dot_product_attention as bias="
        )
    check_broadcast("mask", mask, shape, axes=axes)
