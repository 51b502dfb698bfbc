"""What was given against what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import check_int, check_list, check_number
from .drawing import LETTER, WEIGHTS, YES_NO, Look, Panel, Step, row_of_panels, side, signed, style
from .picture import Picture
from .values import array_of, number, numbers, sentence, short

DIFFERS = Look("Greys", 0.0, 1.6)


def difference_picture(given: Any, expected: Any, where: Sequence[int] | None = None,
                       axes: Sequence[str] = ("query", "key"), title: str | None = None, *,
                       tolerance: float = 1e-4) -> Picture:  # fmt: skip
    """What was given, what was expected, and where they differ; the first difference is framed in all three.

    given, expected  bool, int or float: one matrix, one row or one number; of two shapes, they stand alone
    where            index of the first difference; found here if None
    axes             names of the axes; the last ones are used
    tolerance        numbers closer than this are equal

    Raises ValueError for arrays of more axes or without numbers, and for a `where` outside of them.
    """
    check_number("tolerance", tolerance, least=0)
    check_list("axes", axes, of="names")
    given, expected = array_of(given, "given"), array_of(expected, "expected")
    shapes = [given.shape, expected.shape]
    given, expected = _flat("given", given), _flat("expected", expected)
    steps = [
        _step("what you gave", given, shapes, axes),
        _step("what was expected", expected, shapes[::-1], axes),
    ]
    unequal = first = None
    if shapes[0] == shapes[1]:
        unequal = ~np.isclose(given, expected, rtol=0.0, atol=tolerance, equal_nan=True)
        first = _first(where, unequal)
        steps.append(_step("where they differ", unequal, shapes, axes))
    look, decimals = _scale(given, expected), _decimals(given, expected, first)
    letters = max(len(text) for values in (given, expected) for text in numbers(values, decimals).flat)
    with style():
        cell = min(side(*step.values.shape, most=0.4, room=2.9) for step in steps)
        for step in steps:
            step.look = DIFFERS if step.values is unequal else look
        panels = row_of_panels(steps, cell, over=0.25 if title else 0.0)
        for panel, step in zip(panels, steps, strict=True):
            _fill(panel, step.values, first, unequal, decimals, letters)
        if title:
            panels[0].ax.get_figure(root=True).suptitle(
                title,
                x=0.01,
                y=0.99,
                ha="left",
                va="top",
                fontsize=LETTER + 1,
                weight="bold",
                parse_math=False,
            )
    return Picture(
        panels,
        sentence("Difference", title, _in_words(given, expected, shapes, unequal, first, axes, decimals)),
    )


def _flat(name: str, array: np.ndarray) -> np.ndarray:
    if array.ndim > 2 or not array.size or array.dtype.kind not in "biuf":
        raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}: one matrix of numbers is drawn")
    array = np.atleast_2d(array)
    return array if array.dtype.kind == "b" else array.astype(np.float64)


def _step(name: str, values: np.ndarray, shapes: list[tuple], axes: Sequence[str]) -> Step:
    """One of the matrices; its shape stands in the title where the other's is not the same."""
    shape, other = shapes
    words = ("", "", *axes)[-max(2, len(shape)) :]
    rows, columns = ([str(i) for i in range(size)] for size in values.shape)
    heading = name if shape == other else f"{name}: {shape}"
    return Step(heading, values, rows, columns, WEIGHTS, words[-2:], left=len(shape) > 1, above=len(shape) > 0)


def _fill(
    panel: Panel, values: np.ndarray, first: Any, unequal: np.ndarray | None, decimals: int, letters: int
) -> None:
    if values is unequal:
        panel.fill(values, None, np.where(values, "\u2260", ""))
    else:
        panel.fill(values, ~np.isfinite(values), numbers(values, decimals), letters)
    if first is not None:
        panel.outline(*first)


def _first(where: Sequence[int] | None, unequal: np.ndarray) -> tuple[int, int] | None:
    if where is None:
        found = np.argwhere(unequal)
        return (int(found[0][0]), int(found[0][1])) if len(found) else None
    check_list("where", where, of="indices, one for each axis")
    for i in where:
        check_int("each index of where", i)
    place = (0, 0, *where)[-2:]
    if not all(0 <= i < size for i, size in zip(place, unequal.shape, strict=True)):
        raise ValueError(f"where is {tuple(where)}, outside of the shape {unequal.shape}")
    return place


def _finite(*arrays: np.ndarray) -> np.ndarray:
    return np.concatenate([array[np.isfinite(array)].ravel() for array in arrays]).astype(np.float64)


def _scale(given: np.ndarray, expected: np.ndarray) -> Look:
    if given.dtype.kind == expected.dtype.kind == "b":
        return YES_NO
    finite = _finite(given, expected)
    return WEIGHTS if finite.size and finite.min() >= 0 and finite.max() <= 1 else signed(given, expected)


def _decimals(given: np.ndarray, expected: np.ndarray, first: tuple[int, int] | None) -> int:
    """As many as it takes to write whole numbers, or else to see the first difference."""
    finite = _finite(given, expected)
    if (finite == np.round(finite)).all():
        return 0
    if first is None or not np.isfinite((given[first], expected[first])).all():
        return 2
    return next((d for d in (2, 3, 4) if number(given[first], d) != number(expected[first], d)), 4)


def _in_words(given, expected, shapes, unequal, first, axes, decimals) -> str:
    if unequal is None:
        return f"the shape given is {shapes[0]}, the shape expected is {shapes[1]}"
    if first is None:
        return "none, given and expected agree"
    depth = len(shapes[0])
    place = ", ".join(f"{word} {i}" for word, i in zip(axes[len(axes) - depth :], first[2 - depth :], strict=False))
    mine, right = (
        str(bool(array[first])) if array.dtype.kind == "b"
        else short(array[first]) if abs(array[first]) >= 1000 else number(array[first], decimals)
        for array in (given, expected)
    )  # fmt: skip
    at = f"first at {place}: " if place else ""
    return f"{int(unequal.sum())} of {unequal.size} entries, {at}given {mine}, expected {right}"
