"""The one home of argument checks and of their wording.

Every function here either returns nothing or raises an error that names the argument, what came, what was
expected, and a way out. The lesson modules call these checks; they never write such a text a second time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real

import torch
from torch import Tensor, nn

__all__ = [
    "check_broadcast",
    "check_callable",
    "check_choice",
    "check_count",
    "check_divides",
    "check_flag",
    "check_float",
    "check_ids",
    "check_int",
    "check_kind",
    "check_like",
    "check_list",
    "check_mask",
    "check_module",
    "check_number",
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


def check_ids(name: str, x: object, *, dims: Sequence[str] = ()) -> None:
    """Raise unless `x` is a tensor of whole numbers whose axes are `dims`.

    >>> check_ids("prompt", torch.ones(1, 2), dims=("batch", "length"))
    Traceback (most recent call last):
    TypeError: prompt must hold whole numbers, got torch.float32: .long() makes them
    """
    check_tensor(name, x, dims=dims)
    if x.is_floating_point() or x.is_complex() or x.dtype == torch.bool:
        raise TypeError(f"{name} must hold whole numbers, got {x.dtype}: .long() makes them")


def check_float(name: str, x: object, *, dims: Sequence[str] = (), leading: bool = False) -> None:
    """Raise unless `x` is a float tensor; `dims` and `leading` as in `check_tensor`.

    >>> check_float("logits", torch.ones(2, 3).long())
    Traceback (most recent call last):
    TypeError: logits must be a float tensor, got torch.int64: .float() makes one
    """
    check_tensor(name, x, dims=dims, leading=leading)
    if not x.is_floating_point():
        raise TypeError(f"{name} must be a float tensor, got {x.dtype}: .float() makes one")


def check_kind(name: str, value: object, kind: type | tuple[type, ...], called: str) -> None:
    """Raise unless `value` is a `kind`, which a reader calls `called`.

    >>> check_kind("optimizer", torch.optim.SGD, torch.optim.Optimizer, "an optimizer")
    Traceback (most recent call last):
    TypeError: optimizer must be an optimizer, got the class SGD: SGD(...) makes one
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {called}, got {_came(value)}")


def check_module(name: str, value: object) -> None:
    """Raise unless `value` is a `torch.nn.Module`.

    >>> check_module("model", torch.relu)
    Traceback (most recent call last):
    TypeError: model must be a torch.nn.Module, got builtin_function_or_method
    """
    check_kind(name, value, nn.Module, "a torch.nn.Module")


def check_callable(name: str, value: object, form: str) -> None:
    """Raise unless `value` is a function or a module, which is called as `form` says.

    >>> check_callable("schedule", 0.1, "schedule(step) -> learning rate")
    Traceback (most recent call last):
    TypeError: schedule must be a function, schedule(step) -> learning rate, got float (0.1)
    """
    if isinstance(value, type) or not callable(value):
        raise TypeError(f"{name} must be a function, {form}, got {_came(value)}")


def check_list(name: str, value: object, *, of: str) -> None:
    """Raise unless `value` holds several things, one after the other; `of` says what they are.

    >>> check_list("norms", nn.LayerNorm(4), of="norms")
    Traceback (most recent call last):
    TypeError: norms must be a list of norms, got LayerNorm
    """
    if isinstance(value, (str, type)) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        raise TypeError(f"{name} must be a list of {of}, got {_came(value)}")


def check_flag(name: str, value: object) -> None:
    """Raise unless `value` is True or False: a word would count as True, whatever it says.

    >>> check_flag("pre_norm", "post")
    Traceback (most recent call last):
    TypeError: pre_norm must be True or False, got str ('post')
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {_came(value)}")


def check_like(name: str, x: Tensor, weight: Tensor) -> None:
    """Raise unless `x` has the dtype and the device of a layer's `weight`: asked once torch has refused the two.

    >>> check_like("x", torch.zeros(2, dtype=torch.float64), torch.zeros(3))
    Traceback (most recent call last):
    ValueError: x must be torch.float32 on cpu, as the layer's weights are, got torch.float64 on cpu: .to() converts
    """
    if (x.dtype, x.device) != (weight.dtype, weight.device):
        raise ValueError(
            f"{name} must be {weight.dtype} on {weight.device}, as the layer's weights are, got {x.dtype} on "
            f"{x.device}: .to() converts"
        )


def _came(value: object) -> str:
    """What came instead: its type, and a word or number itself."""
    if isinstance(value, type):
        return f"the class {value.__name__}: {value.__name__}(...) makes one"
    return f"{type(value).__name__} ({value!r})" if isinstance(value, (str, Real)) else type(value).__name__


def check_number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    why: str = "",
) -> None:
    """Raise unless `value` is a finite number, above `above`, in `least`..`most`; `why` says what it is for.

    >>> check_number("temperature", -1.0, least=0, why="0 is greedy")
    Traceback (most recent call last):
    ValueError: temperature must be at least 0, got -1.0: 0 is greedy
    """
    if type(value) not in (int, float) and (isinstance(value, bool) or not isinstance(value, Real)):
        within = "" if most is None else f" in {least}..{most}"
        raise TypeError(f"{name} must be a number{within}, got {_came(value)}")
    why = f": {why}" if why else ""
    if most is not None and not least <= value <= most:
        raise ValueError(f"{name} must lie in {least}..{most}, got {value}{why}")
    if above is not None and not value > above:
        raise ValueError(f"{name} must be above {above}, got {value}{why}")
    if least is not None and not value >= least:
        raise ValueError(f"{name} must be at least {least}, got {value}{why}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}{why}")


def check_int(name: str, value: object) -> None:
    """Raise unless `value` is a whole number.

    >>> check_int("seed", 1.0)
    Traceback (most recent call last):
    TypeError: seed must be an int, got float (1.0): int(seed) makes one
    """
    if isinstance(value, bool) or not isinstance(value, int):
        whole = isinstance(value, (float, str, Integral)) or (isinstance(value, Tensor) and value.dim() == 0)
        whole = whole and not isinstance(value, bool)
        way_out = f" ({value!r}): int({name}) makes one" if whole else ": are the arguments in their order?"
        raise TypeError(f"{name} must be an int, got {type(value).__name__}{way_out}")


def check_count(name: str, value: object, *, least: int = 1) -> None:
    """Raise unless `value` is a whole number of at least `least`.

    >>> check_count("n_heads", 0)
    Traceback (most recent call last):
    ValueError: n_heads must be at least 1, got 0
    """
    if type(value) is not int:  # asked for each token: the usual case costs one comparison
        check_int(name, value)
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
    if type(value) is not float or not 0 <= value <= 1:  # asked for each token, as above
        check_number(name, value, least=0, most=1, why=f"it is the share of {of} that are set to 0")


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
