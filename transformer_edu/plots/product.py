"""The whole of attention as four matrices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .drawing import WEIGHTS, Step, colour_bar, row_of_panels, side, signed, style
from .picture import Picture
from .values import label_lists, matrix_of, numbers, sentence, sizes, strongest, weights_of

WIDEST = 9.6  # inches; beyond them the labels of the queries are written once


def product_picture(
    scores: Any, weights: Any, value: Any, output: Any, queries: Any = None, keys: Any = None
) -> Picture:
    """scores, softmax, weights, times value, is output: the four matrices of attention side by side.

    scores, weights  (query, key); a score of minus infinity is hatched, and so is its weight
    value            (key, d_v)
    output           (query, d_v)

    Nothing is computed here: a wrong output is drawn as it is. Raises ValueError for shapes that do not
    belong together, for numbers that are not finite, and for labels whose number does not fit.
    """
    scores, weights = matrix_of("scores", scores, blocked=True), weights_of(weights)
    value, output = matrix_of("value", value), matrix_of("output", output)
    (n_queries, n_keys), d_v = scores.shape, value.shape[1]
    for name, array, shape in (("weights", weights, (n_queries, n_keys)), ("value", value, (n_keys, d_v)),
                               ("output", output, (n_queries, d_v))):  # fmt: skip
        if array.shape != shape:
            raise ValueError(
                f"{name} has shape {array.shape}; with scores {scores.shape} (query, key) and value "
                f"{value.shape} (key, d_v) it must be {shape}"
            )
    rows, columns = label_lists(scores.shape, queries, keys)
    depth = [str(i) for i in range(d_v)]
    steps = [
        Step(f"scores {scores.shape}", scores, rows, columns, signed(scores)),
        Step(f"weights {weights.shape}", weights, rows, columns, WEIGHTS, before="softmax\n\u2192"),
        Step(f"value {value.shape}", value, columns, depth, signed(value, output), ("key", "d_v"), before="@"),
        Step(f"output {output.shape}", output, rows, depth, signed(value, output), ("query", "d_v"), before="="),
    ]
    cell = min(side(1, 2 * (n_keys + d_v), most=0.4, room=7.2), side(n_queries, n_keys, most=0.4))
    with style():
        panels = row_of_panels(steps, cell, below=0.45)
        if panels[0].ax.get_figure(root=True).get_size_inches()[0] > WIDEST:
            short = [replace(step, left=step.words[0] == "key" or i == 0) for i, step in enumerate(steps)]
            panels = row_of_panels(short, cell, below=0.45)
        for panel, step in zip(panels, steps, strict=True):
            blocked = np.isneginf(scores) if step.values.shape == scores.shape and step.words[1] == "key" else None
            panel.fill(step.values, blocked, numbers(step.values, idle=blocked))
            colour_bar(panel, below=True)
    text = f"{sizes(rows, columns)}, d_v {d_v}; scores, softmax, weights, times value, output. "
    text += f"Strongest key of each query: {strongest(weights, rows, columns)}"
    return Picture(panels, sentence("Attention step by step", None, text))
