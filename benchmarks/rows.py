"""What a benchmark yields: a line of a table, and a bar of a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


class Row(NamedTuple):
    """One measurement. `note` stands behind it in the table, and not in the figure."""

    label: str
    value: float
    unit: str
    note: str = ""

    @property
    def number(self) -> str:
        """The value with about three digits.

        >>> [Row("a step", value, "ms").number for value in (0.0871, 8.71, 87.1, 871.2)]
        ['0.09', '8.71', '87.1', '871']
        """
        return f"{self.value:.{2 if self.value < 10 else 1 if self.value < 100 else 0}f}"

    @property
    def line(self) -> str:
        """The row as the table has it."""
        return f"  {self.label:58} {self.number} {self.unit}{', ' * bool(self.note)}{self.note}"


def draw(title: str, rows: Sequence[Row], path: Path) -> None:
    """Write a picture with a panel for each unit, and in it a bar for each row, from top to bottom."""
    panels: dict[str, list[Row]] = {}
    for row in rows:
        panels.setdefault(row.unit, []).append(row)
    heights = [0.3 * len(panel) + 0.8 for panel in panels.values()]
    figure = Figure(figsize=(9, sum(heights) + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    axes = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
    for ax, (unit, panel) in zip(axes, panels.items(), strict=True):
        bars = ax.barh(range(len(panel)), [row.value for row in panel])
        ax.bar_label(bars, [row.number for row in panel], padding=3)
        ax.set_yticks(range(len(panel)), [row.label for row in panel])
        ax.invert_yaxis()
        ax.set_xlabel(unit)
        ax.margins(x=0.1)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
