"""How an outcome is described to the reader. Fixed text: no times, no addresses, no devices.

The first thing that differs decides what is said, in this order: raised, wrong kind of result, wrong dtype, wrong
shape, changed its input, not finite, wrong number.
"""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .outcome import FLOATS, Outcome, Probe, close, identical, said


@dataclass(frozen=True)
class Result:
    """One tensor (or number) that a function returns.

    Args:
        name: what it is called.
        axes: the names of its axes.
        infinite: -inf may stand in it.
        within: what is returned in truth, where it is made into these results before it is compared.
    """

    name: str
    axes: tuple[str, ...] = ()
    infinite: bool = False
    within: str = ""


@dataclass(frozen=True)
class Difference:
    """Two small arrays to draw side by side: what the reader gave, what was expected, where they differ first."""

    title: str
    given: np.ndarray
    expected: np.ndarray
    where: tuple[int, ...] | None
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Complaint:
    """What is wrong with one outcome, in words, and as a picture where a tensor is wrong."""

    kind: str  # raised, called, hung, accepted, kind, dtype, device, shape, changed, gradient, width, finite, value
    text: str
    difference: Difference | None = None
    right: int = 0  # how many of several results are right


def complain(probe: Probe, expected: Outcome, given: Outcome, results: Sequence[Result]) -> Complaint | None:
    """The first thing that is wrong with `given` on `probe`, or None where it is right."""
    if given.hung:
        return Complaint("hung", f"It did not finish (input: {probe.says}). Look for a loop that never ends.")
    if probe.raises:
        if given.error is None:
            return Complaint(
                "accepted",
                f"It should refuse this input with a clear error{_kinds(probe.raises)}, but it returned a result"
                f" (input: {probe.says}).",
            )
        return None if isinstance(given.error, probe.raises) else _raised(probe, given)
    if isinstance(given.error, probe.may_raise):
        return None
    if given.error is not None:
        return _raised(probe, given)
    where = f"Input: {probe.says}."
    if len(results) == 1:
        complaint = _compare(results[0], expected.value, given.value, where)
    else:
        complaint = _compare_several(results, expected.value, given.value, where)
    if complaint is not None and complaint.kind in ("kind", "dtype", "device", "shape"):
        return complaint
    if given.changed:
        return Complaint("changed", f"{_changed_text(probe, given.changed)}\n{where}")
    return complaint or _gradient_complaint(expected, given, where)


def _changed_text(probe: Probe, changed: Sequence[int]) -> str:
    which = " and the ".join(_ordinal(i) for i in changed)
    arguments = "arguments are" if len(changed) > 1 else "argument is"
    kinds = [type(probe.untouched[i]) for i in changed]
    how = "Work on a copy"
    if Tensor in kinds:
        how += ", or use operations that return a new tensor (x = x / 2, not x /= 2)"
    elif list in kinds:
        how += ": append, pop, sort and += change a list in place"
    return f"It changes its input: the {which} {arguments} not the same after the call as before. {how}."


def _kinds(errors: Sequence[type[BaseException]]) -> str:
    """The errors that are asked for, in brackets; nothing where any will do."""
    return "" if Exception in errors else f" ({' or '.join(error.__name__ for error in errors)})"


def _gradient_complaint(expected: Outcome, given: Outcome, where: str) -> Complaint | None:
    if given.gradients == expected.gradients:
        return None
    if "not finite" in given.gradients:
        text = "The result is right, but its gradient is not finite: training would turn every weight into NaN."
    elif "none" in given.gradients:
        which = "the inputs" if set(given.gradients) == {"none"} else "some of the inputs"
        text = f"The result is right, but no gradient reaches {which}: something cuts the graph (detach, numpy, .data)."
    else:
        text = f"The result is right, but its gradient cannot be taken ({given.gradients[0]})."
    return Complaint("gradient", f"{text}\n{where}")


# What errors that students often meet are about: a part of the text, and a sentence that is true of every such error.
CRASHES = (
    (
        "Boolean value of Tensor",
        (
            "Python's `if`, `and`, `or`, `not`, `min` and `max` need a single True or False: torch.where, clamp and,"
            " for masks, & | and ~ work entry by entry. Whether an argument was given is asked with `is None`."
        ),
    ),
    (
        "must match the size of tensor b",
        (
            "Two shapes do not broadcast: they are laid over each other from the right, and each pair of sizes must be"
            " equal or contain a 1."
        ),
    ),
    (
        "shapes cannot be multiplied",
        "In a matrix product a @ b, the last axis of a must be as long as the second last axis of b.",
    ),
    (
        "Expected size for first two dimensions of batch2",
        "In a matrix product a @ b, the last axis of a must be as long as the second last axis of b.",
    ),
    (
        "view size is not compatible",
        "After transpose the numbers no longer lie in order in memory: reshape copies them.",
    ),
    (
        "Sizes of tensors must match except in dimension",
        "torch.cat joins along one axis, axis 0 if none is named, and all other axes must be of the same size.",
    ),
    (
        "Tensors must have same number of dimensions",
        "torch.cat joins tensors with the same number of axes: [:, None] gives a vector a second one.",
    ),
    ("must have the same dtype", "Two tensors of different dtype meet: .to(x.dtype) converts."),
    ("maximum recursion depth", "It calls itself without end."),
    ("'NoneType' object", "Something is None here: an argument that was left out, or a function that returns nothing."),
)


def _raised(probe: Probe, given: Outcome) -> Complaint:
    name, text = type(given.error).__name__, clean(said(given.error))
    if isinstance(given.error, TypeError) and not given.called:
        count = len(probe.make())
        arguments = f"{count} positional argument{'s' * (count != 1)}"
        hint = " It is a class: check an instance of it, or a function." if "__init__()" in text else ""
        return Complaint("called", f"It could not be called with {arguments}: {text}.{hint}")
    lines = [f"It raised {name}: {text}" if text else f"It raised {name}"]
    lines += [sentence for part, sentence in CRASHES if part in text][:1]
    lines += [f"Input: {probe.says}."]
    lines += [f"Your line: {given.line}"] if given.line else []
    return Complaint("raised", "\n".join(lines))


def wrapped(text: str, width: int = 100) -> str:
    """Text whose lines are broken between words, as a notebook's output does not.

    >>> wrapped("one two three", width=8)
    'one two\\nthree'
    """
    fill = functools.partial(textwrap.fill, width=width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(fill, text.split("\n")))


def clean(text: str) -> str:
    """Text without addresses and temporary file names, cut to a readable length.

    >>> clean("<function f at 0x7f0012ab>")
    '<function f at 0x...>'
    """
    text = re.sub(r"0x[0-9a-fA-F]{4,}", "0x...", text)
    text = re.sub(r"\(?\S*ipykernel_\S+\)?", "(your cell)", text).strip()
    return text if len(text) <= 300 else text[:297] + "..."


def _compare_several(results: Sequence[Result], expected: list, given: object, where: str) -> Complaint | None:
    names = ", ".join(result.name for result in results)
    if not isinstance(given, list) or len(given) != len(results):
        got = f"{len(given)} values" if isinstance(given, list) else kind_of(given)
        got = f"something {got}" if got.startswith("of type") else got
        wanted = results[0].within or f"{len(results)} values ({names})"
        return Complaint("kind", f"It should return {wanted}, but returned {got}.{_forgot(given)}\n{where}")
    first: Complaint | None = None
    order = {"kind": 0, "dtype": 1, "device": 2, "shape": 3}
    complaints = [_compare(r, a, b, where) for r, a, b in zip(results, expected, given, strict=True)]
    # Later results are causes more often than earlier ones (the weights make the output), so ties go to them.
    for complaint in reversed(complaints):
        if complaint and (first is None or order.get(complaint.kind, 9) < order.get(first.kind, 9)):
            first = complaint
    if first and first.kind in ("value", "finite"):
        wrong = [r.name for r, complaint in zip(results, complaints, strict=True) if complaint]
        right = [r.name for r in results if r.name not in wrong]
        if right:
            text = f"On this input the {_listed(right)} right, the {_listed(wrong)} not. {first.text}"
            return Complaint(first.kind, text, first.difference, len(right))
    return first


def _compare(result: Result, expected: object, given: object, where: str) -> Complaint | None:
    if isinstance(expected, Tensor):
        return _compare_tensors(result, expected, given, where)
    if isinstance(expected, bool) or not isinstance(expected, (int, float)):
        return _compare_objects(result, expected, given, where)
    number = given.item() if isinstance(given, (Tensor, np.generic, np.ndarray)) and np.size(given) == 1 else given
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return Complaint(
            "kind", f"The {result.name} should be a number, but is {kind_of(given)}.{_forgot(given)}\n{where}"
        )
    if np.isfinite(expected) and not np.isfinite(number):
        return Complaint("finite", f"The {result.name} is {_number(number)}, expected {_number(expected)}.\n{where}")
    if not np.isclose(number, expected, rtol=1e-4, atol=1e-4):
        return Complaint("value", f"The {result.name} is {_number(number)}, expected {_number(expected)}.\n{where}")
    return None


def _compare_objects(result: Result, expected: object, given: object, where: str) -> Complaint | None:
    given = given.tolist() if isinstance(given, (Tensor, np.ndarray)) and isinstance(expected, list) else given
    if isinstance(expected, list) and not isinstance(given, list):
        return Complaint(
            "kind", f"The {result.name} should be a list, but is {kind_of(given)}.{_forgot(given)}\n{where}"
        )
    if given == expected:
        return None
    return Complaint("value", f"The {result.name} is {clean(repr(given))}, expected {clean(repr(expected))}.\n{where}")


def _compare_tensors(result: Result, expected: Tensor, given: object, where: str) -> Complaint | None:
    name = result.name
    if not isinstance(given, Tensor):
        return Complaint(
            "kind", f"The {name} should be a tensor, but {_is(name)} {kind_of(given)}.{_forgot(given)}\n{where}"
        )
    if given.device != expected.device:
        return Complaint(
            "device",
            f"The {name} lives on another device than the inputs: create tensors with device=x.device.\n{where}",
        )
    if given.layout != torch.strided:
        return Complaint("kind", f"The {name} is a sparse tensor: .to_dense() makes it an ordinary one.\n{where}")
    if given.dtype != expected.dtype and not _wider(given, expected):
        return Complaint(
            "dtype",
            f"The {name} should have dtype {_dtype(expected)}, but {_has(name)} {_dtype(given)}.\n{where}",
            _slices(result, expected, given, None),
        )
    if given.shape != expected.shape:
        text = _shape_text(result, expected, given)
        return Complaint("shape", f"{text}\n{where}", _slices(result, expected, given, None))
    if identical(expected, given):
        return None
    wrong = ~close(expected, given)
    if not wrong.any():
        return None
    infinite = expected.isfinite() & ~given.isfinite() & ~(given.isneginf() & result.infinite)
    if infinite.any():
        at = tuple(infinite.nonzero()[0].tolist())
        text = (
            f"The {name} {_is(name)} not finite: {_number(given[at])} at {_place(result, at)}, expected"
            f" {_number(expected[at])}.\n{where}"
        )
        return Complaint("finite", text, _slices(result, expected, given, at))
    at = tuple(wrong.nonzero()[0].tolist())
    share = "everywhere" if wrong.all() else f"{int(wrong.sum())} of {wrong.numel()} entries differ"
    text = (
        f"The first entry of the {name} that differs: at {_place(result, at)} you gave {_number(given[at])}, expected"
        f" {_number(expected[at])} ({share}).\n{where}"
    )
    return Complaint(
        "value", text.replace("(everywhere)", "(all entries differ)"), _slices(result, expected, given, at)
    )


def _wider(given: Tensor, expected: Tensor) -> bool:
    """Whether a float result has at least the precision that is expected: double precision is welcome."""
    return {given.dtype, expected.dtype} <= FLOATS and given.element_size() >= expected.element_size()


def _has(name: str) -> str:
    return "have" if _is(name) == "are" else "has"


def _shape_text(result: Result, expected: Tensor, given: Tensor) -> str:
    want = tuple(expected.shape)
    words = f" = ({', '.join(result.axes)})" if len(result.axes) == len(want) else ""
    text = f"The {result.name} should have shape {want}{words}, but {_has(result.name)} {tuple(given.shape)}."
    swaps = [
        (i, j)
        for i in range(given.dim())
        for j in range(i + 1, given.dim())
        if given.dim() == expected.dim() and given.transpose(i, j).shape == expected.shape
    ]
    for i, j in swaps:
        if bool(close(given.transpose(i, j), expected).all()):
            if want.count(1) > 1 and 1 in (want[i], want[j]):  # which of several axes of size 1 stands where?
                return text
            return f"{text} With axes {i} and {j} exchanged (.transpose({i}, {j})) it would be right."
    named = result.axes if words else ("",) * len(want)
    told_apart = (
        given.dim() != expected.dim()
        and expected.unique().numel() > expected.numel() // 2  # a few Trues and Falses agree by chance
        and all(size > 1 or axis.endswith(" axis") for size, axis in zip(want, named, strict=True))
    )  # one sequence may be all that was asked for, or the first of several
    if told_apart and given.numel() == expected.numel() and bool(close(given.reshape(expected.shape), expected).all()):
        return f"{text} The numbers are right and in the right order: only the axes are missing or merged."
    if swaps:
        return (
            f"{text} The sizes would fit with axes {swaps[0][0]} and {swaps[0][1]} exchanged, but the numbers would"
            " still be wrong."
        )
    return text


def _slices(result: Result, expected: Tensor, given: Tensor, at: tuple[int, ...] | None) -> Difference | None:
    """The last two axes around the first difference, as arrays to draw."""
    if not 0 < given.numel() < 10_000 or expected.numel() == 0 or given.is_meta:
        return None
    lead = (at or (0,) * expected.dim())[: max(expected.dim() - 2, 0)]

    def cut(x: Tensor, lead: tuple[int, ...]) -> np.ndarray:
        x = x[lead] if lead else x
        return (x if x.dtype == torch.bool else x.double()).numpy()

    same = given.shape == expected.shape
    mine = cut(given, lead if same else (0,) * max(given.dim() - 2, 0))
    where = None if at is None or not same else at[len(lead) :]
    names = result.axes[: len(lead)]
    title = result.name + "".join(f", {n} {i}" for n, i in zip(names, lead, strict=False))
    return Difference(title, mine, cut(expected, lead), where, result.axes[-2:])


def _place(result: Result, at: tuple[int, ...]) -> str:
    if len(result.axes) == len(at):  # axes of size 1 that only make room ("head axis") are left out
        named = [f"{axis} {i}" for axis, i in zip(result.axes, at, strict=True) if not axis.endswith(" axis")]
        return "[" + ", ".join(named) + "]"
    return str(list(at))


def _number(x: object) -> str:
    x = x.item() if isinstance(x, Tensor) else x
    return f"{x:.4g}" if isinstance(x, float) else str(x)


def _dtype(x: Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


def kind_of(x: object) -> str:
    """What a value is, in words.

    >>> kind_of(None), kind_of([1, 2])
    ('None', 'a list or tuple of length 2')
    """
    if x is None:
        return "None"
    if isinstance(x, Tensor):
        return f"one tensor of shape {tuple(x.shape)}"
    if isinstance(x, np.ndarray):
        return f"a NumPy array of shape {x.shape}: torch.as_tensor makes it a tensor"
    if isinstance(x, list):
        return f"a list or tuple of length {len(x)}"
    if callable(x):
        return "a function (is a pair of parentheses missing?)"
    return f"of type {type(x).__name__}"


def _forgot(x: object) -> str:
    return " Did you forget return?" if x is None else ""


def _listed(names: list[str]) -> str:
    """ "output is", "output and weights are", "a, b and c are"."""
    *others, last = names
    return f"{', '.join(others)} and {last} are" if others else f"{last} {_is(last)}"


def _is(name: str) -> str:
    return "are" if name.endswith("s") and not name.endswith("ss") else "is"


def _ordinal(i: int) -> str:
    return ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")[i]
