"""The parts of a machine, in the order in which numbers pass through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from ..errors import check_list
from .drawing import LETTER, sheet, style, width, written
from .picture import Picture
from .values import sentence

HIGH, GAP, PAD, APART = 0.3, 0.19, 0.13, 0.6  # inches: of a step, between two, inside a frame, between two columns
LINE, FACE = "#08519c", "#deebf7"

Steps = Sequence[str | tuple[str, Sequence[str]]]


class _Column(NamedTuple):
    """One column: the middle of each step and the frames (caption, top, bottom), all in inches, downwards."""

    name: str
    middles: dict[str, float]
    frames: list[tuple[str, float, float]]
    wide: float  # of a step in a box
    bottom: float

    def reach(self, step: str) -> float:
        """How far a step extends to either side: the first and the last have no box."""
        bare = step in (next(iter(self.middles)), next(reversed(self.middles)))
        return width(written(step)) / 2 + 0.06 if bare else self.wide / 2


def flow_picture(
    columns: Mapping[str, Steps], link: tuple[str, str] | None = None, title: str | None = None
) -> Picture:
    """Columns of steps, with an arrow from each step to the next and one from column to column.

    columns  name -> its steps downwards, all different: first what goes in, last what comes out, between them the
             parts. Parts in one frame are a tuple (caption, parts)
    link     (from, to): a step of the first column and a step of the second, which stand level, an arrow between them

    Raises TypeError for columns without names; ValueError for no column, for one that has not two steps or has one of
    them twice, and for a link whose steps are not there.
    """
    if not isinstance(columns, Mapping):
        raise TypeError(f"columns must be a dict from names to steps, got {type(columns).__name__}")
    if not columns:
        raise ValueError("columns must hold one column or more, got none")
    top = 0.7 if title else 0.4
    with style():
        placed = [_placed(name, steps, top) for name, steps in columns.items()]
        if link is not None:
            lags = zip(columns.items(), _lags(placed, link), strict=False)
            placed[:2] = [_placed(name, steps, top + lag) for (name, steps), lag in lags]
        ax = _drawn(placed, link, title)
    told = [f"{name}: {_told(steps)}" for name, steps in columns.items()] + [" → ".join(link or ())]
    return Picture([ax], sentence("Parts in order", title, ". ".join([", ".join(columns), *filter(None, told)])))


def _placed(name: str, steps: Steps, top: float) -> _Column:
    middles, frames = {}, []
    check_list(f"columns[{name!r}]", steps, of="steps")
    for step in steps:
        caption, parts = ("", [step]) if isinstance(step, str) else _framed(name, step)
        begin, top = top, top + (HIGH if caption else 0.0)
        for part in parts:
            if part in middles:
                raise ValueError(f"the steps of {name!r} must differ, got {part!r} twice")
            middles[part] = top + HIGH / 2
            top += HIGH + GAP
        if caption:
            frames.append((caption, begin, top - GAP + PAD))
            top += PAD
    if len(middles) < 2:
        raise ValueError(f"{name!r} must have what goes in and what comes out, got {len(middles)} of them")
    captions = [2 * width(written(caption), LETTER - 1) for caption, _, _ in frames]  # each ends left of the arrows
    wide = max(*(width(written(step)) + 0.3 for step in middles), *captions)
    return _Column(name, middles, frames, wide, top - GAP)


def _framed(name: str, step: Any) -> tuple[str, Sequence[str]]:
    pair = isinstance(step, tuple | list) and len(step) == 2 and isinstance(step[0], str)
    if not pair or isinstance(step[1], str) or not all(isinstance(part, str) for part in step[1]):
        raise TypeError(f"a step of columns[{name!r}] must be a text, or a tuple (caption, texts), got {step!r}")
    return step


def _lags(columns: Sequence[_Column], link: tuple[str, str]) -> tuple[float, float]:
    """How far the first two columns must move down so that the two ends of the link stand level."""
    check_list("link", link, of="two steps")
    if (
        len(columns) < 2
        or len(link) != 2
        or any(end not in column.middles for end, column in zip(link, columns, strict=False))
    ):
        raise ValueError(f"link must be a step of the first column and a step of the second, got {link}")
    gap = columns[0].middles[link[0]] - columns[1].middles[link[1]]
    return max(0.0, -gap), max(0.0, gap)


def _drawn(columns: Sequence[_Column], link: tuple[str, str] | None, title: str | None) -> Axes:
    lefts = [0.05 + PAD + sum(c.wide + 2 * PAD + APART for c in columns[:i]) for i in range(len(columns))]
    size = (lefts[-1] + columns[-1].wide + PAD + 0.05, max(column.bottom for column in columns))
    (ax,) = sheet(size, [(0.0, 0.0, *size)])
    ax.set(xlim=(0, size[0]), ylim=(size[1], 0))
    ax.set_axis_off()
    if title:
        _write(ax, 0.05, 0.2, title, size=LETTER + 1, ha="left")
    xs = [left + column.wide / 2 for left, column in zip(lefts, columns, strict=True)]
    for x, column in zip(xs, columns, strict=True):
        _draw(ax, x, column)
    if link is not None:
        (a, b), level = columns[:2], columns[0].middles[link[0]]
        _arrow(ax, (xs[0] + a.reach(link[0]), level), (xs[1] - b.reach(link[1]), level))
    return ax


def _draw(ax: Axes, x: float, column: _Column) -> None:
    middles, half = list(column.middles.values()), column.wide / 2
    _write(ax, x, middles[0] - 0.8 * HIGH, column.name, size=LETTER + 1, weight="bold")
    for caption, top, bottom in column.frames:
        frame = Rectangle((x - half - PAD, top), column.wide + 2 * PAD, bottom - top, facecolor="none", edgecolor="0.6")
        ax.add_patch(frame)
        _write(ax, x - half, top + HIGH / 2, caption, size=LETTER - 1, ha="left", color="0.3")
    for step, middle in column.middles.items():
        if middle not in (middles[0], middles[-1]):
            box = Rectangle((x - half, middle - HIGH / 2), column.wide, HIGH, facecolor=FACE, edgecolor=LINE)
            ax.add_patch(box)
        _write(ax, x, middle, step)
    for above, below in pairwise(middles):
        _arrow(ax, (x, above + HIGH / 2), (x, below - HIGH / 2))


def _write(ax: Axes, x: float, y: float, text: str, **look: object) -> None:
    ax.text(x, y, written(text), **{"size": LETTER, "ha": "center", "va": "center", "parse_math": False} | look)


def _arrow(ax: Axes, begin: tuple[float, float], end: tuple[float, float]) -> None:
    ax.annotate("", end, begin, arrowprops={"arrowstyle": "->", "color": LINE, "shrinkA": 0, "shrinkB": 0})


def _told(steps: Steps) -> str:
    """The steps in words, a frame in brackets."""
    return " → ".join(step if isinstance(step, str) else f"{step[0]} ({_told(step[1])})" for step in steps)
