"""What a function did on one probe, and whether two such outcomes are the same."""

from __future__ import annotations

import functools
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .sandbox import Budget, Interrupted, TookTooLong

PACKAGE = str(Path(__file__).parents[1])
TOLERANCE = {torch.float16: 5e-3, torch.bfloat16: 1e-2}  # every other dtype: 1e-4
HUGE = 1_000_000  # entries of a result: a thousand times more than any probe asks for
FLOATS = {torch.float16, torch.bfloat16, torch.float32, torch.float64}


@dataclass(frozen=True)
class Probe:
    """One small input.

    Args:
        says: the input in words, as in "lengths [3, 1], max_length 4".
        make: builds fresh positional arguments.
        edge: the probe looks at an edge case; a mistake may be recognised without it.
        gradients: also take the gradient of the first result with respect to every float argument, and ask that it
            be there and finite.
        raises: the reference refuses this input, and so must the reader, with one of these errors.
        may_raise: the reader may refuse this input with one of these errors, although the reference does not.
        blind_to: switches of the exercise's `compound` that make no difference on this input, which saves work.
    """

    says: str
    make: Callable[[], tuple]
    edge: bool = False
    gradients: bool = False
    raises: tuple[type[BaseException], ...] = ()
    may_raise: tuple[type[BaseException], ...] = ()
    blind_to: tuple[str, ...] = ()

    @functools.cached_property
    def untouched(self) -> tuple:
        """The arguments once more, to compare with; no function is given them."""
        return self.make()


@dataclass
class Outcome:
    """Everything that one call did: what it gave or raised, and which of its arguments it changed."""

    value: object = None
    error: BaseException | None = None
    hung: bool = False
    changed: tuple[int, ...] = ()
    gradients: tuple[str, ...] = ()  # for each float argument "finite", "not finite" or "none"
    line: str | None = field(default=None, compare=False)  # the reader's own line that raised
    called: bool = field(default=True, compare=False)  # False where the call itself failed: wrong number of arguments
    refused: bool = False  # raised what the probe asks for, or allows

    @property
    def huge(self) -> bool:
        """Whether the result is far too large to go on with."""
        return isinstance(self.value, Tensor) and self.value.numel() > HUGE


def observe(fn: Callable, probe: Probe, budget: Budget | None = None) -> Outcome:
    """Call `fn` on fresh arguments of `probe`. Never raises on what `fn` does.

    Without a budget the call is not timed: for functions of this package, which are known to end.
    """
    args = probe.make()
    if probe.gradients:
        _floats(args, lambda x: x.requires_grad_(True))
    try:
        result = budget.call(fn, *args) if budget else fn(*args)
    except Interrupted:
        raise
    except TookTooLong:
        return Outcome(hung=True)
    except BaseException as error:  # whatever it is, it is the reader's function that raised it
        line, called = _own_line(error) if budget else (None, True)
        refused = isinstance(error, (*probe.raises, *probe.may_raise))
        return Outcome(error=error, line=line, called=called, refused=refused)
    value = freeze(result)
    gradients = _gradients(result, args, budget or Budget()) if probe.gradients else ()
    changed = tuple(i for i, (a, b) in enumerate(zip(args, probe.untouched, strict=True)) if not _identical(a, b))
    return Outcome(value=value, gradients=gradients, changed=changed)


def said(error: BaseException | None) -> str:
    """The text of an error, whatever its `__str__` does."""
    try:
        return str(error)
    except BaseException:
        return ""


def freeze(x: object) -> object:
    """A copy that later calls cannot change: tensors detached and cloned, containers copied."""
    if isinstance(x, Tensor):
        return x.detach() if x.numel() > HUGE or x.layout != torch.strided else x.detach().clone()
    if isinstance(x, np.ndarray):
        return x.copy()
    if isinstance(x, (list, tuple)):
        return [freeze(item) for item in x]
    if isinstance(x, dict):
        return {key: freeze(item) for key, item in x.items()}
    return x


def _floats(args: object, do: Callable[[Tensor], object]) -> list:
    """do(x) for every float tensor in `args`, in order."""
    if isinstance(args, Tensor):
        return [do(args)] if args.is_floating_point() else []
    if isinstance(args, dict):
        args = list(args.values())
    return [y for x in args for y in _floats(x, do)] if isinstance(args, (list, tuple)) else []


def _gradients(result: object, args: tuple, budget: Budget) -> tuple[str, ...]:
    first = result[0] if isinstance(result, (list, tuple)) and result else result
    if not isinstance(first, Tensor) or not first.requires_grad:
        return tuple(_floats(args, lambda x: "none"))
    try:
        budget.call(first.float().sum().backward)
    except BaseException as error:
        return (f"backward raised {type(error).__name__}",)
    state = {None: "none", True: "finite", False: "not finite"}
    return tuple(_floats(args, lambda x: state[None if x.grad is None else bool(x.grad.isfinite().all())]))


def _own_line(error: BaseException) -> tuple[str | None, bool]:
    """The deepest line of the traceback that the reader wrote, and whether the function was entered at all."""
    frames = traceback.extract_tb(error.__traceback__)
    here = {observe.__code__.co_filename, Budget.call.__code__.co_filename}
    inside = [f for f in frames if f.filename not in here]
    libraries = re.compile(r"[\\/](site-packages|torch)[\\/]")
    own = [f for f in inside if not libraries.search(f.filename) and not f.filename.startswith(PACKAGE)]
    return (own[-1].line or None) if own else None, bool(inside)


def _identical(a: object, b: object) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.detach(), b.detach())
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(_identical(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_identical(x, y) for x, y in zip(a, b, strict=True))
    return a is b or a == b


def same_outcome(a: Outcome, b: Outcome) -> bool:
    """Whether two functions did the same on a probe: value, kind, dtype, shape, exception, NaN, changed arguments."""
    if a.hung or b.hung:
        return False
    if a.error is not None or b.error is not None:
        same = type(a.error) is type(b.error) and _about(a.error) == _about(b.error)
        return same or (a.refused and b.refused)
    return a.changed == b.changed and a.gradients == b.gradients and same_value(a.value, b.value)


ABOUT = (
    "without overflow",
    "dtype|scalar type|same type",
    "leaf Variable|in-place",
    "Boolean value",
    "Subtraction",
    "Negation",
)


def _about(error: BaseException | None) -> int | None:
    """Which of torch's frequent complaints an error is, since it raises nearly all of them as one type."""
    return next((i for i, words in enumerate(ABOUT) if re.search(words, said(error))), None)


def same_value(a: object, b: object) -> bool:
    """Whether two frozen results are alike: kind, shape, dtype (float is float), and numbers within tolerance."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return (
            a.shape == b.shape
            and a.layout == b.layout
            and a.device == b.device
            and (a.dtype == b.dtype or {a.dtype, b.dtype} <= FLOATS)
            and (a.is_meta or a.layout != torch.strided or _same_numbers(a, b))
        )
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same_value(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same_value(a[k], b[k]) for k in a)
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b or bool(np.isclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True))
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return bool(np.array_equal(a, b))
    return a == b if isinstance(a, (str, bytes)) else True  # of what holds no numbers, only the kind can be compared


def _same_numbers(a: Tensor, b: Tensor) -> bool:
    """Whether all entries are close. Most tensors that are compared are equal to the last bit, or far apart."""
    return identical(a, b) or (not _far_apart(a, b) and bool(close(a, b).all()))


def identical(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors hold the same numbers to the last bit: a cheap yes (NaN is left to `close`)."""
    return a.dtype == b.dtype and torch.equal(a, b)


def _far_apart(a: Tensor, b: Tensor) -> bool:
    """Whether the first entries already differ beyond every tolerance: a cheap no for the many that are compared."""
    if not a.numel():
        return False
    x, y = (t[(0,) * t.dim()].item() for t in (a, b))
    return abs(x - y) > 0.1 * (1 + max(abs(x), abs(y)))


def close(a: Tensor, b: Tensor) -> Tensor:
    """Where two tensors of one shape hold the same number, within the coarser dtype's tolerance; NaN equals NaN."""
    tolerance = max(TOLERANCE.get(x.dtype, 1e-4) for x in (a, b))
    if a.is_complex() or b.is_complex():
        return torch.isclose(a.to(torch.complex128), b.to(torch.complex128), rtol=tolerance, atol=tolerance)
    return torch.isclose(a.double(), b.double(), rtol=tolerance, atol=tolerance, equal_nan=True)
