"""Tables of numbers of either sign (positions, dot products, cosines, gradients), and tables of probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..errors import check_number
from .drawing import LETTER, WEIGHTS, Look, Panel, Step, colour_bar, lone_sheet, row_of_panels, side, signed, style
from .picture import Picture
from .values import label_lists, matrix_of, number, numbers, sentence, strongest, two_words


def value_map(
    values: Any,
    rows: Any = None,
    columns: Any = None,
    words: Sequence[str] = ("row", "column"),
    title: str | None = None,
    *,
    reach: float | None = None,
    exact: bool = True,
) -> Picture:
    """Numbers of either sign as cells: one hue above 0, another below, white at 0.

    values         (rows, columns), or name -> (rows, columns) for several side by side, all on one scale; cells of
                   minus infinity, as a mask leaves them among scores, are hatched
    rows, columns  labels; positions where none are given
    words          what a row is, and what a column is
    reach          the scale goes from -reach to reach; to the largest size among the values if None
    exact          False where the numbers come from training, and so differ a little from machine to machine: the
                   alt text then names no number

    Raises ValueError for what is no matrix of such numbers, for matrices of different shapes, for labels whose number
    does not fit, and for words that are not two.
    """
    words = two_words(words)
    if reach is not None:
        check_number("reach", reach, above=0)
    tables = values if isinstance(values, Mapping) else {str(title or ""): values}
    tables = {str(name): matrix_of(str(name) or "values", table, blocked=True) for name, table in tables.items()}
    if not tables:
        raise ValueError("values holds no table: give one matrix, or name -> matrix")
    shapes = {table.shape for table in tables.values()}
    if len(shapes) > 1:
        got = ", ".join(f"{name} {table.shape}" for name, table in tables.items())
        raise ValueError(f"tables side by side must have one shape, got {got}")
    labels = label_lists(shapes.pop(), rows, columns, names=("rows", "columns"))
    look = signed(*tables.values()) if reach is None else Look(signed().colours, -float(reach), float(reach))
    with style():
        panels = _alone(labels, look, words) if len(tables) == 1 else _beside(tables, labels, look, words, title)
        for panel, (name, table) in zip(panels, tables.items(), strict=True):
            blocked = np.isneginf(table)
            panel.fill(table, blocked, numbers(table, idle=blocked))
            if len(tables) == 1:
                panel.title(name)
    return Picture(panels, sentence("Values", title, _in_words(tables, labels, words, exact)))


def probability_map(
    probabilities: Any,
    rows: Any = None,
    columns: Any = None,
    words: Sequence[str] = ("row", "column"),
    title: str | None = None,
    *,
    exact: bool = True,
) -> Picture:
    """Probabilities as cells, on the scale from 0 to 1; where one is exactly 0, the cell is hatched.

    probabilities  (rows, columns), each from 0 to 1; a row need not sum to 1, as it may be a part of one
    rows, columns, words, exact  as in `value_map`

    Raises ValueError for what is no matrix of numbers from 0 to 1, for labels whose number does not fit, and for words
    that are not two.
    """
    words = two_words(words)
    table = _probabilities(probabilities)
    labels = label_lists(table.shape, rows, columns, names=("rows", "columns"))
    with style():
        (panel,) = _alone(labels, WEIGHTS, words, "probability")
    fill = partial(_fill_probabilities, panel, words=words, exact=exact)
    return Picture([panel], fill=fill).refill(table, title)


def _probabilities(value: Any) -> np.ndarray:
    table = matrix_of("probabilities", value)
    if table.min() < -1e-6 or table.max() > 1 + 1e-6:
        raise ValueError(f"probabilities must lie in 0..1, got {table.min():g} to {table.max():g}: are these logits?")
    return table


def _fill_probabilities(
    panel: Panel, probabilities: Any, title: str | None = None, *, words: tuple[str, str], exact: bool
) -> str:
    table = _probabilities(probabilities)
    if table.shape != panel.hatched.shape:
        raise ValueError(f"the picture has shape {panel.hatched.shape}, the probabilities {table.shape}")
    never = table == 0
    panel.fill(table, never, numbers(table, idle=never))
    panel.title(title or "")
    text = f"{len(table)} by {table.shape[1]} ({', '.join(words)})"
    text += f", {int(never.sum())} of them never" if never.any() else ""
    text += f". Likeliest: {strongest(table, panel.rows, panel.columns, words[1])}" if exact else ""
    return sentence("Probabilities", title, text)


def _alone(labels: list[list[str]], look: Look, words: tuple[str, str], measure: str = "value") -> list[Panel]:
    ax = lone_sheet(*labels, cell=side(*map(len, labels)), right=0.75)
    panel = Panel(ax, *labels, look, words=words)
    colour_bar(panel, measure)
    return [panel]


def _beside(
    tables: Mapping, labels: list[list[str]], look: Look, words: tuple[str, str], title: str | None
) -> list[Panel]:
    steps = [Step(name, table, *labels, look, words, left=i == 0) for i, (name, table) in enumerate(tables.items())]
    cell = min(side(*map(len, labels)), 8.2 / (len(tables) * len(labels[1])))
    panels = row_of_panels(steps, cell, over=0.25 if title else 0.0, below=0.45)
    colour_bar(panels[-1], below=True)
    if title:
        figure = panels[0].ax.get_figure(root=True)
        figure.suptitle(title, x=0.01, y=0.99, ha="left", va="top", fontsize=LETTER + 1, parse_math=False)
    return panels


def _in_words(tables: Mapping, labels: list[list[str]], words: Sequence[str], exact: bool) -> str:
    down, across = map(len, labels)
    text = f"{down} by {across} ({', '.join(words)})"
    if len(tables) > 1:
        text = f"{len(tables)} tables, each {text}"
    for name, table in tables.items() if exact else ():
        seen = table[np.isfinite(table)]
        if seen.size:
            text += f". {name}: from" if len(tables) > 1 else ", from"
            text += f" {_extreme(table, seen.min(), labels, words)} to {_extreme(table, seen.max(), labels, words)}"
    return text if exact or len(tables) == 1 else f"{text}: {', '.join(tables)}"


def _extreme(table: np.ndarray, value: float, labels: list[list[str]], words: Sequence[str]) -> str:
    """The value, and where it stands first; the last bit of a device moves nothing."""
    row, column = np.argwhere(np.abs(table - value) <= 1e-4 * max(1.0, abs(value)))[0]
    return f"{number(float(value))} at {words[0]} {labels[0][row]}, {words[1]} {labels[1][column]}"
