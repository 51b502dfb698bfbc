"""Queries against keys: one head, many heads, a mask."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from ..errors import check_kind, check_list
from .drawing import (
    HATCH,
    LETTER,
    MOST_NUMBERS,
    WEIGHTS,
    YES_NO,
    Panel,
    colour_bar,
    fit,
    lone_sheet,
    sheet,
    side,
    style,
    width,
)
from .picture import Picture
from .values import allowed_by, label_lists, numbers, one_mask, sentence, sizes, strongest, weights_of


def attention_map(
    weights: Any, queries: Any = None, keys: Any = None, mask: Any = None, ax: Axes | None = None,
    title: str | None = None, *, exact: bool = True,
) -> Picture:  # fmt: skip
    """The weights of one head as a map.

    weights  (query, key), each from 0 to 1: a tensor, an array or lists
    mask     bool, broadcastable to (query, key), True = may attend; leading axes of size 1 are dropped
    ax       matplotlib axes to draw into; without it a figure of its own is made
    exact    False where the weights come from training, and so differ a little from machine to machine: the alt text
             then names no weight

    Raises ValueError for labels whose number does not fit, for weights that are not (query, key), not finite
    or not between 0 and 1, and for a mask that is not bool or does not broadcast.
    """
    weights = weights_of(weights)
    rows, columns = label_lists(weights.shape, queries, keys)
    allowed_by(mask, weights.shape)
    if ax is not None:
        check_kind("ax", ax, Axes, "one axes of matplotlib, as from plt.subplots()[1]")
    with style():
        if ax is None:
            ax = lone_sheet(rows, columns, cell=side(*weights.shape), right=0.75)
        panel = Panel(ax, rows, columns, WEIGHTS)
        colour_bar(panel, "weight")
    return Picture([panel], fill=partial(_fill_map, panel, exact=exact)).refill(weights, mask, title)


def _fill_map(panel: Panel, weights: Any, mask: Any = None, title: str | None = None, *, exact: bool = True) -> str:
    weights, labels = weights_of(weights), (panel.rows, panel.columns)
    if weights.shape != panel.hatched.shape:
        raise ValueError(f"the picture has shape {panel.hatched.shape} (query, key), the weights {weights.shape}")
    allowed = allowed_by(mask, weights.shape)
    panel.fill(weights, ~allowed, numbers(weights, idle=~allowed))
    panel.title(title or "")
    text = sizes(*labels)
    text += f". Strongest key of each query: {strongest(weights, *labels)}" if exact else ""
    if not allowed.all():
        leaks = int(((weights > 0) & ~allowed).sum())
        text += f". {int((~allowed).sum())} of {allowed.size} cells are forbidden"
        text += f", yet {leaks} of them hold a weight" if leaks else ""
    return sentence("Attention map", title, text)


def head_grid(
    weights: Any, queries: Any = None, keys: Any = None, mask: Any = None, titles: Sequence[str] | None = None,
    *, exact: bool = True,
) -> Picture:  # fmt: skip
    """One map for each head, all on one scale.

    weights  (heads, query, key), each from 0 to 1
    mask     bool, broadcastable to weights, True = may attend
    titles   one for each head; "head 0" and so on by default
    exact    False where the weights come from training, as for attention_map

    Raises ValueError as `attention_map` does, and for a wrong number of titles.
    """
    weights = weights_of(weights, "(heads, query, key)")
    n_heads, *shape = weights.shape
    rows, columns = label_lists(shape, queries, keys)
    allowed = allowed_by(mask, weights.shape)
    word = "head" if titles is None else "map"
    if titles is not None:
        check_list("titles", titles, of="titles, one for each head")
    titles = [f"head {head}" for head in range(n_heads)] if titles is None else [str(title) for title in titles]
    if len(titles) != n_heads:
        raise ValueError(f"{len(titles)} titles for {n_heads} heads (weights of shape {weights.shape}): give one each")
    few = weights.size <= 2 * MOST_NUMBERS
    with style():
        panels = _grid(titles, rows, columns)
        for panel, title, one, may in zip(panels, titles, weights, allowed, strict=True):
            panel.fill(one, ~may, numbers(one, idle=~may) if few else None)
            panel.title(title)
    peaks = (f"{title}: {_peak(one, rows, columns, n_heads)}" for title, one in zip(titles, weights, strict=True))
    heads = ". ".join(peaks) if exact else ", ".join(titles)
    return Picture(
        panels,
        sentence(
            "Attention maps" if n_heads > 1 else "Attention map",
            None,
            f"{n_heads} {word}{'s' * (n_heads > 1)}, {sizes(rows, columns)}. {heads}",
        ),
    )


def _peak(weights: np.ndarray, rows: list[str], columns: list[str], n_heads: int) -> str:
    """What one head attends to: each query of a few small heads, else the strongest one alone."""
    if n_heads <= 4 and len(rows) <= 6:
        return strongest(weights, rows, columns)
    top = int((weights >= weights.max() - 1e-4).any(axis=1).argmax())
    return strongest(weights[top : top + 1], rows[top : top + 1], columns)


def _grid(titles: list[str], rows: list[str], columns: list[str]) -> list[Panel]:
    across = len(titles) if len(titles) <= 4 else math.ceil(math.sqrt(len(titles)))
    cell = side(len(rows), len(columns), most=0.45, room=7.6 / across)
    high, wide = len(rows) * cell, len(columns) * cell
    over = fit(columns, cell, above=True)
    pitch = max(wide + 0.15, max(width(title, LETTER + 1) for title in titles) + 0.1)
    left, top = fit(rows, cell, above=False).room + 0.4, over.room + 0.6
    boxes = [
        (left + (head % across) * pitch, top + (head // across) * (high + 0.34), wide, high)
        for head in range(len(titles))
    ]
    axes = sheet((boxes[across - 1][0] + wide + max(0.75, over.aside), boxes[-1][1] + high + 0.15), boxes)
    panels = [
        Panel(ax, rows, columns, WEIGHTS, left=head % across == 0, above=head < across) for head, ax in enumerate(axes)
    ]
    colour_bar(panels[across - 1], "weight")
    return panels


def mask_picture(mask: Any, queries: Any = None, keys: Any = None, title: str | None = None) -> Picture:
    """Which query may attend to which key.

    mask  bool (query, key), True = may attend; leading axes of size 1 are dropped, and one row that holds for
          all queries is repeated for each of the `queries`

    Raises ValueError for a mask that is not bool or has more axes, and for labels whose number does not fit.
    """
    mask = one_mask(mask, queries)
    rows, columns = label_lists(mask.shape, queries, keys)
    with style():
        ax = lone_sheet(rows, columns, cell=side(*mask.shape, most=0.4), right=0.15, below=0.4, least=3.05)
        panel = Panel(ax, rows, columns, YES_NO)
        looks = (
            ("may attend (True)", {"facecolor": panel.image.to_rgba(1.0)}),
            ("may not (False)", {"facecolor": "white", "hatch": HATCH}),
        )
        ax.legend(
            handles=[Patch(label=label, edgecolor="0.45", linewidth=0.6, **look) for label, look in looks],
            loc="upper left", bbox_to_anchor=(0.0, -0.02), ncol=2, frameon=False, fontsize=LETTER,
            borderaxespad=0.2, borderpad=0.2, handlelength=1.6, columnspacing=1.2,
        )  # fmt: skip
    return Picture([panel], fill=partial(_fill_mask, panel)).refill(mask, title)


def _fill_mask(panel: Panel, mask: Any, title: str | None = None) -> str:
    mask = one_mask(mask, panel.rows)
    if mask.shape != panel.hatched.shape:
        raise ValueError(f"the picture has shape {panel.hatched.shape} (query, key), the mask {mask.shape}")
    panel.fill(mask, ~mask)
    panel.title(title or "")
    text = f"{sizes(panel.rows, panel.columns)}, {int(mask.sum())} of {mask.size} cells allowed"
    if len(mask) <= 12:
        seen = [f"{query} \u2192 {_few(row, panel.columns)}" for query, row in zip(panel.rows, mask, strict=True)]
        text += ". " + "; ".join(seen)
    return sentence("Mask", title, text)


def _few(allowed: np.ndarray, keys: list[str]) -> str:
    if not allowed.any():
        return "nothing"
    if allowed.all():
        return "every key"
    chosen = [key for key, may in zip(keys, allowed, strict=True) if may]
    return ", ".join(chosen) if len(chosen) <= 6 else f"{len(chosen)} keys"
