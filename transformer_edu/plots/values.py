"""The arrays and labels that come in, checked, and the numbers and sentences made of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

LONGEST = 16  # letters of a label; the middle of a longer one is left out


def array_of(value: Any, name: str = "values") -> np.ndarray:
    """A tensor of any device and dtype, with or without gradient, or nested lists, as a numpy array.

    `name` is what the caller calls the value.
    """
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        return (value.double() if value.is_floating_point() else value).numpy()
    if isinstance(value, list | tuple) and any(hasattr(part, "detach") or isinstance(part, list) for part in value):
        value = [array_of(part, name) for part in value]
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"the lists of {name} are not all of one length: each row needs as many numbers as the others"
        ) from error
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def weights_of(value: Any, axes: str = "(query, key)") -> np.ndarray:
    """Attention weights with these axes; raises ValueError unless all are between 0 and 1."""
    array, ndim = array_of(value, "weights"), axes.count(",") + 1
    if array.ndim != ndim or not array.size or array.dtype.kind not in "biuf":
        more = ": take one, as in weights[0]" if array.ndim > ndim else ""
        raise ValueError(f"weights must be numbers {axes}, got shape {array.shape} of {array.dtype}{more}")
    array = array.astype(np.float64)
    for wrong, what in (
        (~np.isfinite(array), "not finite. A row with nothing to attend to has weights 0, not nan"),
        (
            (array < -1e-6) | (array > 1 + 1e-6),
            "not between 0 and 1. Are these the scores, before the softmax?",
        ),
    ):
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise ValueError(f"weights{list(place)} is {array[place]:g}, {what}")
    return array


def matrix_of(name: str, value: Any, *, blocked: bool = False) -> np.ndarray:
    """One matrix of finite numbers; with `blocked`, minus infinity is welcome too."""
    array = array_of(value, name)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be one matrix of numbers, got shape {array.shape} of {array.dtype}")
    array = array.astype(np.float64)
    wrong = ~np.isfinite(array) & ~(np.isneginf(array) if blocked else False)
    if wrong.any():
        raise ValueError(f"{name} is not finite in {int(wrong.sum())} of {array.size} places")
    return array


def floats_of(name: str, value: Any) -> np.ndarray:
    """Numbers of any shape; raises ValueError for what are none."""
    array = array_of(value, name)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numbers, got {value!r}")
    return array.astype(np.float64)


def mask_of(value: Any) -> np.ndarray:
    """A bool mask without its leading axes of size 1, two axes at least left where there are two."""
    array = array_of(value, "the mask")
    if array.dtype.kind != "b":
        raise ValueError(f"a mask is bool, True = may attend; this one, of shape {array.shape}, is {array.dtype}")
    while array.ndim > 2 and len(array) == 1:
        array = array[0]
    return array


def one_mask(mask: Any, queries: Any) -> np.ndarray:
    """A mask (query, key); one row that holds for all queries is repeated for each of them."""
    mask = mask_of(mask)
    if mask.ndim == 2 and len(mask) == 1 and queries is not None and not isinstance(queries, str):
        mask = np.repeat(mask, len(queries), axis=0)
    if mask.ndim != 2 or not mask.size:
        raise ValueError(f"one mask (query, key) is drawn, this one has shape {mask.shape}: take one: mask[0]")
    return mask


def allowed_by(mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Where attention is allowed in weights of this shape; everywhere if the mask is None."""
    if mask is None:
        return np.ones(shape, dtype=bool)
    array = mask_of(mask)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"a mask of shape {array.shape} does not broadcast to weights of shape {shape}") from None


def label_lists(
    shape: Sequence[int], queries: Any, keys: Any, names: tuple[str, str] = ("queries", "keys")
) -> list[list[str]]:
    """One label for each query and key, positions where none are given; raises ValueError if one is over.

    `names` are what the two axes are called, where they are not queries and keys.
    """
    shape = tuple(shape)
    lists = [listed(names[0], queries), listed(names[1], keys)]
    counts = tuple(size if labels is None else len(labels) for size, labels in zip(shape, lists, strict=True))
    for axis, name in enumerate(names):
        if counts[axis] != shape[axis]:
            some = f"{counts[axis]} label{'s' * (counts[axis] != 1)}"
            text = f"{name} has {some}, but shape {shape} {_axes(names)} has {shape[axis]} {name}"
            raise ValueError(text + _way_out(axis, names, shape, counts, lists))
    return [
        [spelled(label) for label in (range(size) if labels is None else labels)]
        for size, labels in zip(shape, lists, strict=True)
    ]


def two_words(words: Any) -> tuple[str, str]:
    """What a row is, and what a column is; raises ValueError unless these are two words."""
    if not isinstance(words, list | tuple) or len(words) != 2 or not all(isinstance(word, str) for word in words):
        raise ValueError(f"words must say what a row and what a column is, as in ('query', 'key'), got {words!r}")
    return tuple(words)


def _axes(names: tuple[str, str]) -> str:
    return "(query, key)" if names == ("queries", "keys") else f"({', '.join(names)})"


def _way_out(axis: int, names: tuple[str, str], shape: tuple, counts: tuple, lists: list[list | None]) -> str:
    name = names[axis]
    if None not in lists and counts == shape[::-1]:
        return f". The two lists look exchanged: {names[0]} label the rows, {names[1]} the columns"
    if counts[axis] == 1 and isinstance(lists[axis][0], list | tuple):
        return f". It is a list within a list: pass {name}[0]"
    if counts[axis] > shape[axis]:
        return f". If these are the last {shape[axis]} of {counts[axis]} tokens, pass {name}[-{shape[axis]}:]"
    return ". Each needs a label, padding too"


def listed(name: str, labels: Any) -> list | None:
    """Labels as a list, None for none; raises for a text, which is one label or a sentence that is not cut yet."""
    if isinstance(labels, str):
        raise ValueError(f"{name} is one string, {labels!r}: pass a list of tokens, for example {labels!r}.split()")
    if hasattr(labels, "tolist"):
        labels = labels.tolist()
    if labels is not None and not isinstance(labels, Iterable):
        raise TypeError(f"{name} must be a list of tokens, got {labels!r}: leave it out for positions")
    return None if labels is None else list(labels)


def spelled(label: Any) -> str:
    """A label on one line, of bearable length; control characters and blanks at its ends made visible."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(label))
    core = text.strip(" ")
    lead = len(text) - len(text.lstrip(" "))
    text = "\u2423" * lead + core + "\u2423" * (len(text) - lead - len(core))
    return text if len(text) <= LONGEST else text[: LONGEST // 2] + "\u2026" + text[1 - LONGEST // 2 :]


def number(value: float, decimals: int = 2) -> str:
    """`value` rounded, halves away from 0, with a little room: the last bit of a device is not seen.

    >>> number(0.125), number(-0.001), number(float("-inf"))
    ('0.13', '0.00', '−inf')
    """
    if not math.isfinite(value):
        return str(float(value)).replace("-", "\u2212")
    steps = math.floor(abs(value) * 10**decimals + 0.5 + 1e-4)
    return ("\u2212" if value < 0 and steps else "") + f"{steps / 10**decimals:.{decimals}f}"


def short(value: float) -> str:
    """Three leading digits, for numbers of any size.

    >>> short(1234.5), short(0.00123), short(0)
    ('1235', '0.00123', '0')
    """
    if not value or not math.isfinite(value):
        return number(value, 0)
    return number(value, max(0, 2 - math.floor(math.log10(abs(value)))))


def numbers(values: np.ndarray, decimals: int = 2, idle: np.ndarray | None = None) -> np.ndarray:
    """The text of each cell; none in the cells of `idle` that hold nothing (0, or no number)."""
    texts = np.full(values.shape, "", dtype=object)
    huge = values.dtype.kind == "f" and np.abs(values[np.isfinite(values)]).max(initial=0) >= 1000
    for place, value in np.ndenumerate(values):
        if values.dtype.kind == "b":
            texts[place] = "T" if value else "F"
        elif idle is None or not idle[place] or (value and np.isfinite(value)):
            texts[place] = f"{value:.1e}".replace("e+0", "e") if huge else number(float(value), decimals)
    return texts


def sizes(rows: Sequence[str], columns: Sequence[str]) -> str:
    """The shape in words."""
    down, across = len(rows), len(columns)
    return f"{down} {'query' if down == 1 else 'queries'} by {across} {'key' if across == 1 else 'keys'}"


def strongest(
    weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], word: str = "key", most: int = 12
) -> str:
    """The key that each query attends to most, with its weight; `word` is what a column is."""
    parts = []
    for query, row in zip(rows[:most], weights, strict=False):
        top = np.flatnonzero(row >= row.max() - 1e-4)
        if row.max() < 5e-3:
            parts.append(f"{query} \u2192 nothing")
        else:
            what = columns[top[0]] if len(top) == 1 else f"{len(top)} {word}s alike"
            parts.append(f"{query} \u2192 {what} {number(float(row.max()))}")
    return ", ".join(parts) + (f" and {len(rows) - most} more" if len(rows) > most else "")


def sentence(kind: str, title: str | None, text: str) -> str:
    """One line: what it is, its title, what is seen."""
    return " ".join(f"{kind}{f' ({title})' if title else ''}: {text}.".split())
