"""One panel of cells and what stands around it.

Inches are counted from the upper left corner of a figure; sizes of letters are in points, 72 to the inch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import matplotlib.style
import numpy as np
from matplotlib import colormaps, font_manager
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.image import BboxImage
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox, TransformedBbox

from .values import number

LETTER = 9.0  # points
HATCH = "////"
MOST_NUMBERS = 64  # cells; in a larger matrix they are a thicket, and slow to draw
PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # behind a number that stands on hatch
SANS = (
    "DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Microsoft YaHei", "PingFang SC",
    "Hiragino Sans GB", "WenQuanYi Micro Hei", "Arial Unicode MS", "Droid Sans Fallback",
)  # fmt: skip


class Look(NamedTuple):
    """A colour map and the numbers at its two ends."""

    colours: str
    low: float
    high: float


# One hue, light to dark: the order survives colour blindness and grey print.
WEIGHTS = Look("Blues", 0.0, 1.0)
YES_NO = Look("Blues", 0.0, 1.25)


def signed(*arrays: np.ndarray) -> Look:
    """Two hues about 0, as far up as down, so that no sign is mistaken."""
    reach = max((float(np.abs(array[np.isfinite(array)]).max(initial=0.0)) for array in arrays), default=0.0)
    return Look("PuOr", -(reach or 1.0), reach or 1.0)


# --- letters ---


def style() -> Any:
    """Context: matplotlib's own defaults, whatever the notebook has set, and put back afterwards."""
    return matplotlib.style.context(["default", {"font.sans-serif": list(_families())}])


@lru_cache(maxsize=1)
def _families() -> tuple[str, ...]:
    present = set(font_manager.fontManager.get_font_names())
    return tuple(name for name in SANS if name in present) or ("sans-serif",)


@lru_cache(maxsize=16)
def _glyphs(family: str) -> frozenset[int]:
    return frozenset(font_manager.get_font(font_manager.findfont(family)).get_charmap())


@lru_cache(maxsize=4096)
def width(text: str, size: float = LETTER) -> float:
    """Inches that a line of text takes."""
    family = _families()[0]
    known = "".join(letter if ord(letter) in _glyphs(family) else "\u25a0" for letter in text)
    font = font_manager.get_font(font_manager.findfont(family))
    font.set_size(size, 72)
    font.set_text(known, 0.0)
    return font.get_width_height()[0] / 64 / 72


def written(text: str) -> str:
    """A text, or a number, as the fonts at hand can draw it: a letter that none of them has becomes its escape."""
    return "".join(
        letter
        if any(ord(letter) in _glyphs(family) for family in _families())
        else letter.encode("unicode_escape").decode()
        for letter in str(text)
    )


class Fit(NamedTuple):
    """How the labels of an axis fit beside its cells."""

    size: float  # points
    turn: int  # degrees
    step: int  # every step-th label is written
    room: float  # inches taken away from the cells
    aside: float  # inches taken to the right of the last cell


def fit(labels: Sequence[str], cell: float, *, above: bool) -> Fit:
    """Labels above columns (upright where they fit, else turned) or left of rows; `cell` in inches."""
    step = max(1, math.ceil(0.125 / cell))
    pitch = cell * step
    size = min(LETTER, pitch * 72 * 0.8)
    longest = max((width(written(label), size) for label in labels), default=0.0)
    height = size * 1.25 / 72
    if not above:
        return Fit(size, 0, step, longest, 0.0)
    if longest <= pitch * 0.94:
        return Fit(size, 0, step, height, 0.0)
    if pitch >= 0.22:
        slant = 0.71 * (longest + height)
        return Fit(size, 45, step, slant, max(0.0, slant - cell / 2))
    return Fit(size, 90, step, longest, 0.0)


# --- figures ---


def side(rows: int, columns: int, *, most: float = 0.5, room: float = 6.0) -> float:
    """Inches of one cell: at most `most` (less without numbers), the longer side staying within `room`."""
    return min(most if rows * columns <= MOST_NUMBERS else 0.32, room / max(rows, columns, 1))


def sheet(size: tuple[float, float], boxes: Iterable[tuple[float, float, float, float]]) -> list[Axes]:
    """The axes of a new figure of so many inches, one in each box (left, top, width, height)."""
    across, down = size
    figure = Figure(figsize=size, facecolor="white")
    return [
        figure.add_axes((left / across, 1 - (top + high) / down, wide / across, high / down))
        for left, top, wide, high in boxes
    ]


def lone_sheet(rows: Sequence[str], columns: Sequence[str], *, cell: float, right: float, below: float = 0.15,
               least: float = 0.0) -> Axes:  # fmt: skip
    """The axes of a new figure for one panel, with room for its labels."""
    over = fit(columns, cell, above=True)
    left, top = fit(rows, cell, above=False).room + 0.4, over.room + 0.62
    wide, high = len(columns) * cell, len(rows) * cell
    size = (max(left + wide + max(over.aside, right), left + least), top + high + below)
    return sheet(size, [(left, top, wide, high)])[0]


class Panel:
    """One matrix as cells: rows downwards, columns to the right, their labels left and above."""

    def __init__(
        self, ax: Axes, rows: Sequence[str], columns: Sequence[str], look: Look, *,
        words: tuple[str, str] = ("query", "key"), left: bool = True, above: bool = True,
    ) -> None:  # fmt: skip
        self.ax, self.rows, self.columns, self.look = ax, list(rows), list(columns), look
        if ax.has_data():
            ax.clear()
        shape = (len(rows), len(columns))
        self.image = ax.imshow(
            np.zeros(shape), cmap=look.colours, vmin=look.low, vmax=look.high,
            origin="upper", aspect="equal", interpolation="nearest",
        )  # fmt: skip
        ax.set_facecolor("white")
        box, inches = ax.get_position(), ax.get_figure(root=True).get_size_inches()
        self.cell = float(min(inches[0] * box.width / shape[1], inches[1] * box.height / shape[0]))
        self.room = self._label(words, left, above)
        for spine in ax.spines.values():
            spine.set(color="0.6", linewidth=0.6)
        across = [[(c - 0.5, -0.5), (c - 0.5, shape[0] - 0.5)] for c in range(1, shape[1])]
        down = [[(-0.5, r - 0.5), (shape[1] - 0.5, r - 0.5)] for r in range(1, shape[0])]
        self.grid = LineCollection(across + down if self.cell >= 0.1 else [], colors="0.75", linewidths=0.5)
        ax.add_collection(self.grid, autolim=False)
        self.hatched = np.zeros(shape, dtype=bool)
        self.hatches: list[Rectangle] = []
        self.texts: dict[tuple[int, int], Text] = {}

    def _label(self, words: tuple[str, str], left: bool, above: bool) -> float:
        """Write the labels and the two words of the axes; inches taken above the cells."""
        ax = self.ax
        ax.tick_params(length=0, top=above, labeltop=above, bottom=False, labelbottom=False, left=left, labelleft=left)
        ax.xaxis.set_label_position("top")
        beside, over = fit(self.rows, self.cell, above=False), fit(self.columns, self.cell, above=True)
        turned = {"rotation": over.turn}
        if over.turn == 45:
            turned |= {"ha": "left", "va": "bottom", "rotation_mode": "anchor"}
        for axis, shown, labels, how, more in (
            (ax.yaxis, left, self.rows, beside, {}),
            (ax.xaxis, above, self.columns, over, turned),
        ):
            ticks = range(0, len(labels), how.step) if shown else ()
            axis.set_ticks(ticks, [written(labels[i]) for i in ticks], fontsize=how.size, parse_math=False, **more)
        if left:
            ax.set_ylabel(words[0], fontsize=LETTER, color="0.3", parse_math=False)
        if above:
            ax.set_xlabel(words[1], fontsize=LETTER, color="0.3", parse_math=False)
        return over.room + 0.28 if above else 0.06

    def title(self, text: str, room: float | None = None) -> None:
        """Write a line above the labels, or so many inches above the cells."""
        pad = 72 * (self.room if room is None else room)
        self.ax.set_title(written(text), fontsize=LETTER + 1, y=1.0, pad=pad, parse_math=False)

    def fill(
        self, values: np.ndarray, hatched: np.ndarray | None = None, texts: np.ndarray | None = None, letters: int = 0
    ) -> None:
        """Show these values, a text in each cell where there is room, and hatch over some of the cells.

        letters  of the longest text of a panel beside it: all are then of one size, where that can be read
        """
        self.image.set_data(np.ma.masked_invalid(np.asarray(values, dtype=np.float64)))
        hatched = np.zeros(values.shape, dtype=bool) if hatched is None else np.array(hatched)
        if not np.array_equal(hatched, self.hatched):
            for patch in self.hatches:
                patch.remove()
            self.hatched, self.hatches = hatched, [self._hatch(*run) for run in _runs(hatched)]
        self._write(texts, letters)

    def _hatch(self, row: int, start: int, stop: int) -> Rectangle:
        cells = Rectangle((start - 0.5, row - 0.5), stop - start, 1, hatch=HATCH)
        cells.set(fill=False, edgecolor="0.45", linewidth=0)
        return self.ax.add_patch(cells)

    def _write(self, texts: np.ndarray | None, letters: int) -> None:
        for text in self.texts.values():
            text.set_visible(False)
        longest = 0 if texts is None else max(len(text) for text in texts.flat)
        own, shared = (min(LETTER - 0.5, self.cell * 72 * 0.86 / (0.64 * max(n, longest, 1))) for n in (0, letters))
        size = shared if shared >= 6.0 else own
        if not longest or size < 6.0 or texts.size > MOST_NUMBERS:
            return self._sign()
        shades = self.image.to_rgba(self.image.get_array())[..., :3] @ (0.299, 0.587, 0.114)
        for (row, column), text in np.ndenumerate(texts):
            if text:
                over = self.hatched[row, column]
                mark = self.texts.get((row, column)) or self.ax.text(column, row, "", ha="center", va="center")
                mark.set(text=text, size=size, visible=True, bbox=PAPER if over else None)
                mark.set_color("black" if over or shades[row, column] > 0.5 else "white")
                self.texts[row, column] = mark

    def _sign(self) -> None:
        """A dash in each cell below 0, where no number tells: the two hues are one in grey print."""
        values = self.image.get_array().filled(0.0)
        rows, columns = np.nonzero(values < 0.02 * self.look.low)
        if self.look.low < 0 and self.cell >= 0.1:
            size = (self.cell * 72 * 0.45) ** 2
            ink = np.where(values[rows, columns] < 0.55 * self.look.low, "white", "black")
            self.ax.scatter(columns, rows, s=size, c=ink, marker="_", linewidths=0.8)

    def outline(self, row: int, column: int) -> None:
        """A thick frame around one cell, seen on any colour."""
        for colour, line in (("white", 4.5), ("black", 2.5)):
            frame = Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=colour, linewidth=line)
            frame.set(zorder=5, clip_on=False)
            self.ax.add_patch(frame)

    def moving(self) -> list[Any]:
        """What `fill` and `title` change, and the lines above it, in the order of drawing."""
        texts = [text for text in self.texts.values() if text.get_visible()]
        return [self.image, *self.hatches, self.grid, *self.ax.spines.values(), *texts, self.ax.title]


def _runs(hatched: np.ndarray) -> Iterable[tuple[int, int, int]]:
    """Row, first column and the column past the last, of each run of True."""
    for row, cells in enumerate(hatched):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], cells.astype(np.int8), [0]))))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            yield row, int(start), int(stop)


@dataclass
class Step:
    """One matrix in a row of them, and the operator that stands before it."""

    name: str
    values: np.ndarray
    rows: list[str]
    columns: list[str]
    look: Look
    words: tuple[str, str] = ("query", "key")
    before: str = ""
    left: bool = True
    above: bool = True


def row_of_panels(steps: Sequence[Step], cell: float, *, over: float = 0.0, below: float = 0.15) -> list[Panel]:
    """The matrices from left to right, their upper edges in one line, the operators between them.

    over, below  inches kept free above the titles and under the cells
    """
    room = max(fit(step.columns, cell, above=True).room if step.above else 0.0 for step in steps) + 0.28
    boxes, marks, right, top = [], [], 0.0, over + room + 0.3
    for step in steps:
        wide = len(step.columns) * cell
        slack = max(0.0, 0.5 * (width(step.name, LETTER + 1) - wide))
        sign = max(width(line, LETTER + 2) for line in step.before.split("\n"))
        marks.append(right + 0.12 + sign / 2)
        labels = fit(step.rows, cell, above=False).room + 0.35 if step.left else 0.12
        left = right + (sign + 0.12 if sign else 0.0) + max(slack, labels) + 0.05
        boxes.append((left, top, wide, len(step.rows) * cell))
        right = left + wide + max(slack, fit(step.columns, cell, above=True).aside, 0.05)
    axes = sheet((right + 0.1, top + max(box[3] for box in boxes) + below), boxes)
    figure = axes[0].get_figure(root=True)
    panels = [
        Panel(ax, step.rows, step.columns, step.look, words=step.words, left=step.left, above=step.above)
        for ax, step in zip(axes, steps, strict=True)
    ]
    across, down = figure.get_size_inches()
    for panel, step, mark in zip(panels, steps, marks, strict=True):
        panel.title(step.name, room)
        figure.text(mark / across, 1 - (top + boxes[0][3] / 2) / down, step.before, fontsize=LETTER + 2,
                    ha="center", va="center", parse_math=False)  # fmt: skip
    return panels


def colour_bar(panel: Panel, word: str = "", *, below: bool = False) -> None:
    """A strip of the panel's colours, to its right or below it, with three numbers."""
    ax, look, cell = panel.ax, panel.look, panel.cell
    wide, high = len(panel.columns) * cell, len(panel.rows) * cell
    long = min(1.0, 1.6 / wide)
    box = (0.5 - long / 2, -0.2 / high, long, 0.09 / high) if below else (1 + 0.12 / wide, 0.0, 0.12 / wide, 1.0)
    ramp = np.linspace(0, 1, 128)
    strip = BboxImage(TransformedBbox(Bbox.from_bounds(*box), ax.transAxes), cmap=colormaps[look.colours],
                      interpolation="nearest", origin="lower")  # fmt: skip
    strip.set_data(ramp[None, :] if below else ramp[:, None])
    strip.set_clim(0, 1)
    ax.add_artist(strip).set_clip_on(False)
    frame = Rectangle(box[:2], *box[2:], fill=False, edgecolor="0.6", linewidth=0.6, transform=ax.transAxes)
    ax.add_patch(frame).set_clip_on(False)
    small = {
        "fontsize": LETTER - 1,
        "xycoords": ax.transAxes,
        "textcoords": "offset points",
        "annotation_clip": False,
    }
    for part in (0.0, 0.5, 1.0):
        value = look.low + part * (look.high - look.low)
        text = number(value, 0 if value == round(value) else 1 if abs(value) >= 0.1 else 3)
        if below:
            ax.annotate(text, (box[0] + part * box[2], box[1]), (0, -3), ha="center", va="top", **small)
        else:
            ax.annotate(text, (box[0] + box[2], part), (3, 0), ha="left", va="center", **small)
    if word:
        ax.annotate(word, (box[0] + box[2], 0.5), (20, 0), rotation=90, ha="left", va="center", **small)
