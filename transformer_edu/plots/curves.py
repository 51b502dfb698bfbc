"""Lines over steps, lengths or sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..errors import check_choice, check_kind
from .drawing import LETTER, sheet, style, width, written
from .picture import Picture
from .values import floats_of, sentence, short, spelled

HUES = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#000000",
)  # Okabe and Ito, less yellow
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = "osD^vPX*"


def lines(
    x: Any,
    series: Mapping[str, Any],
    xlabel: str,
    ylabel: str,
    log: str = "",
    title: str | None = None,
    exact: bool | None = True,
) -> Picture:
    """One line for each name: the mean over seeds, in a band from the smallest to the largest.

    x       (points,)
    series  name -> (seeds, points) or (points,); told apart by marker and dash as well as by colour
    log     "x", "y" or "xy" for logarithmic axes
    exact   False where the numbers come from training, and so differ a little from machine to machine: the alt
            text then says which way each line goes, without numbers. None where not even that is certain, as with
            times: the alt text then names the lines alone

    Raises TypeError for series without names; ValueError for a series that does not fit x, and for a logarithmic
    axis with numbers not above 0.
    """
    if not isinstance(series, Mapping):
        raise TypeError(f"series must be a dict from names to numbers, got {type(series).__name__}")
    check_kind("xlabel", xlabel, str, "a text")
    check_kind("ylabel", ylabel, str, "a text")
    check_choice("log", log, ("", "x", "y", "xy"))
    check_choice("exact", exact, (True, False, None))
    x = floats_of("x", x)
    runs = {str(name): np.atleast_2d(floats_of(f"series[{name!r}]", values)) for name, values in series.items()}
    _check(x, runs, log)
    with style():
        names = max(width(written(spelled(name))) for name in runs)
        top = 0.4 if title else 0.15
        (ax,) = sheet((6.15 + max(names, 1.1), top + 3.35), [(0.75, top, 4.6, 2.8)])
        handles = [_curve(ax, x, values, place, len(runs)) for place, values in enumerate(runs.values())]
        _dress(ax, x, log, xlabel, ylabel)
        if title:
            ax.set_title(title, fontsize=LETTER + 1, parse_math=False)
        legend = ax.legend(
            handles, [written(spelled(name)) for name in runs], loc="upper left", bbox_to_anchor=(1.01, 1.02),
            frameon=False, fontsize=LETTER, handlelength=3.2,
            title=_spread(runs, "mean, and range\nover {} seeds"),
            title_fontsize=LETTER - 1, alignment="left",
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)
    tell = {True: _ends, False: _way, None: lambda mean: ""}[exact]
    ends = "; ".join(f"{spelled(name)} {tell(values.mean(axis=0))}".rstrip() for name, values in runs.items())
    text = f"{len(runs)} line{'s' * (len(runs) != 1)}{_spread(runs, ', mean and range over {} seeds')}. "
    text += f"From {xlabel} {x[0]:g} to {x[-1]:g}: {ends}"
    return Picture([ax], sentence(f"{ylabel} against {xlabel}", title, text))


def _ends(mean: np.ndarray) -> str:
    return f"{short(mean[0])} to {short(mean[-1])}"


def _way(mean: np.ndarray) -> str:
    room = 0.05 * max(abs(mean[0]), abs(mean[-1]))
    return "stays" if abs(mean[-1] - mean[0]) <= room else "rises" if mean[-1] > mean[0] else "falls"


def _check(x: np.ndarray, runs: Mapping[str, np.ndarray], log: str) -> None:
    if not runs or x.ndim != 1 or not x.size:
        raise ValueError(f"lines need points and at least one series, got x of shape {x.shape} and {len(runs)} series")
    if not np.isfinite(x).all():
        raise ValueError(f"x must be finite, got {x[~np.isfinite(x)][0]:g} among its points")
    for name, values in runs.items():
        if values.ndim != 2 or values.shape[1] != len(x) or not values.size:
            raise ValueError(
                f"{name!r} has shape {values.shape}, x has {len(x)} points: give (points,) or (seeds, points)"
            )
    for axis, arrays in (("x", [x]), ("y", list(runs.values()))):
        if axis in log and any((array <= 0).any() for array in arrays):
            raise ValueError(f"log={log!r}: the {axis} axis has numbers that are not positive and have no logarithm")


def _spread(runs: Mapping[str, np.ndarray], text: str) -> str:
    seeds = sorted({len(values) for values in runs.values()} - {1})
    return text.format(" or ".join(map(str, seeds))) if seeds else ""


def _curve(ax: Axes, x: np.ndarray, values: np.ndarray, place: int, count: int) -> Any:
    hue, every = HUES[place % len(HUES)], max(1, len(x) // 8)
    (line,) = ax.plot(
        x, values.mean(axis=0), color=hue, linestyle=DASHES[place % len(DASHES)], linewidth=1.8,
        marker=MARKERS[place % len(MARKERS)], markersize=5, markevery=(place * every // count, every),
    )  # fmt: skip
    if len(values) > 1:
        ax.fill_between(x, values.min(axis=0), values.max(axis=0), color=hue, alpha=0.18, linewidth=0)
    return line


def _dress(ax: Axes, x: np.ndarray, log: str, xlabel: str, ylabel: str) -> None:
    if "x" in log:
        ax.set_xscale("log")
    if "y" in log:
        ax.set_yscale("log")
    if len(x) <= 8:
        ax.set_xticks(x, [f"{point:g}" for point in x])
        ax.set_xticks([], minor=True)
    ax.tick_params(labelsize=LETTER)
    ax.set_xlabel(xlabel, fontsize=LETTER + 1)
    ax.set_ylabel(ylabel, fontsize=LETTER + 1)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
