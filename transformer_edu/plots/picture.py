"""What every picture function returns, and how a notebook shows it."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from ..errors import check_kind, check_number
from .drawing import style

DPI = 144  # of a stored picture, shown at 96 pixels an inch: sharp on screens of either kind
CSS = 96
ACROSS = 100  # letters: a notebook breaks a longer line anywhere, in the middle of words and numbers


def lines_of(text: str) -> str:
    """One line of words as the lines that a notebook shows.

    >>> lines_of("0 → 0 1.00, " * 9).splitlines()[1:]
    ['0 1.00,']
    """
    return textwrap.fill(text, ACROSS, break_long_words=False, break_on_hyphens=False)


def _fewer_colours(png: io.BytesIO, alt_text: str) -> bytes:
    """The same PNG with a palette of 128 colours: a third of the size, which a stored notebook feels."""
    note, smaller = PngInfo(), io.BytesIO()
    note.add_text("Description", alt_text)
    image = Image.open(png).convert("RGBA")
    pixels = np.asarray(image).view(np.uint32)[..., 0]  # (height, width), one number for each colour
    colours, place, count = np.unique(pixels, return_inverse=True, return_counts=True)
    colours = colours.view(np.uint8).reshape(-1, 4)[:, :3].astype(np.float32)  # (colours, red green blue)
    palette, nearest = _palette(image.convert("RGB"), colours, count)
    indexed = Image.fromarray(nearest.astype(np.uint8)[place].reshape(pixels.shape))
    indexed.putpalette(palette.round().astype(np.uint8).tobytes())
    indexed.save(smaller, "png", pnginfo=note, compress_level=8)  # 9 takes three times as long, for one byte in fifty
    return smaller.getvalue()


def _palette(image: Image.Image, colours: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """128 colours for an image, and for each of its own the nearest of these.

    Chosen to reach all colours, then moved to where most of them lie, so that no cell of a table changes its shade
    visibly. (Pillow's `kmeans` does the same pixel by pixel, which takes several times as long.)
    """
    chosen = image.quantize(128, method=Image.Quantize.MAXCOVERAGE).getpalette()
    palette = np.array(chosen, np.float32).reshape(-1, 3)[:128]
    for _ in range(3):
        nearest = _nearest(colours, palette)
        held = np.bincount(nearest, count, len(palette))
        sums = [np.bincount(nearest, count * channel, len(palette)) for channel in colours.T]
        palette = np.where(held[:, None] > 0, np.stack(sums, 1) / np.maximum(held, 1)[:, None], palette)
    return palette, _nearest(colours, palette)


def _nearest(colours: np.ndarray, palette: np.ndarray) -> np.ndarray:
    """For each colour, the place in the palette of the nearest one."""
    return (np.square(palette).sum(1) - 2 * colours @ palette.T).argmin(1)  # squared distances, less the colour's own


class Picture:
    """A drawn figure and one line that says in words what it shows.

    As the last line of a notebook cell, or by `show()`, it is shown once, the line beneath it. It belongs to
    no list of open figures, so nothing has to be closed.
    """

    def __init__(self, panels: Sequence[Any], alt_text: str = "", fill: Callable[..., str] | None = None) -> None:
        self.panels = tuple(panels)
        self.alt_text = alt_text
        self._fill = fill
        self._still: tuple[int, FigureCanvasAgg, Any] | None = None

    @property
    def axes(self) -> tuple[Axes, ...]:
        """The axes of the panels, in reading order."""
        return tuple(getattr(panel, "ax", panel) for panel in self.panels)

    @property
    def figure(self) -> Figure:
        """matplotlib's figure."""
        return self.axes[0].get_figure(root=True)

    def refill(self, *arrays: Any) -> Picture:
        """Show other arrays of the same shape under the same labels: several times faster than a new picture.

        An attention map takes weights, mask and title; a mask picture takes mask and title, a probability map
        probabilities and title.
        """
        if self._fill is None:
            kinds = "an attention map, a mask picture or a probability map"
            raise TypeError(f"only {kinds} can be filled again: draw a new picture")
        with style():
            self.alt_text = self._fill(*arrays)
        return self

    def png(self, dpi: int = DPI, *, whole: bool = False) -> bytes:
        """The picture as PNG, cut to what is drawn, or the whole figure; the alt text is stored in it."""
        return self._bytes("png", dpi, whole)

    def quick_png(self, dpi: int = CSS) -> bytes:
        """The whole figure as PNG; from the second time on, only what a panel's `fill` changes is drawn."""
        check_number("dpi", dpi, above=0)
        with style():
            if self._still is None or self._still[0] != dpi:
                self._still = self._draw_still(dpi)
            _, canvas, background = self._still
            canvas.restore_region(background)
            for panel in self.panels:
                for artist in panel.moving():
                    panel.ax.draw_artist(artist)
            buffer = io.BytesIO()
            Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").save(buffer, "png", compress_level=3)
        return buffer.getvalue()

    def _draw_still(self, dpi: int) -> tuple[int, FigureCanvasAgg, Any]:
        self.figure.set_dpi(dpi)
        canvas = FigureCanvasAgg(self.figure)
        for panel in self.panels:
            for artist in panel.moving():
                artist.set_animated(True)  # left out by canvas.draw, not by savefig
        canvas.draw()
        return dpi, canvas, canvas.copy_from_bbox(self.figure.bbox)

    def save(self, path: str | Path, dpi: int = DPI) -> None:
        """Write the picture to a file; its ending decides the format (png, svg, pdf)."""
        check_kind("path", path, (str, Path), "the path of a file")
        Path(path).write_bytes(self._bytes(Path(path).suffix.lstrip(".") or "png", dpi))

    def _bytes(self, kind: str, dpi: int, whole: bool = False) -> bytes:
        notes = {
            "png": {"Software": None, "Description": self.alt_text},
            "svg": {"Date": None, "Description": self.alt_text},
            "pdf": {"CreationDate": None, "Subject": self.alt_text},
        }.get(kind)
        check_number("dpi", dpi, above=0)
        buffer = io.BytesIO()
        cut = {} if whole else {"bbox_inches": "tight", "pad_inches": 0.06}
        with style():
            quick = {"pil_kwargs": {"compress_level": 1}} if kind == "png" else {}  # it is compressed again below
            self.figure.savefig(buffer, format=kind, dpi=dpi, metadata=notes, **quick, **cut)
        return _fewer_colours(buffer, self.alt_text) if kind == "png" else buffer.getvalue()

    def show(self) -> None:
        """Show the picture here and now: in a loop, or before the last line of a cell."""
        self._ipython_display_()

    def _ipython_display_(self) -> None:
        from IPython.display import display

        pyplot_shows_it = self.figure.canvas.manager is not None and "inline" in matplotlib.get_backend()
        if not pyplot_shows_it:
            data, metadata = self._repr_mimebundle_()
            display(data, metadata=metadata, raw=True)
        display({"text/plain": lines_of(self.alt_text)}, raw=True)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        return self.bundle()

    def bundle(self, *, whole: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a notebook stores, and what it is told about it: the PNG, its size on the page, its alt text."""
        png = self.png(whole=whole)
        wide, high = (int.from_bytes(png[at : at + 4], "big") * CSS // DPI for at in (16, 20))
        return (
            {"text/plain": repr(self), "image/png": png},
            {"image/png": {"alt": self.alt_text, "width": wide, "height": high}},
        )

    def __repr__(self) -> str:
        return f"<Picture: {self.alt_text.split('. ')[0].rstrip('.')}>"
