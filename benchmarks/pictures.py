"""How long it takes to draw a picture, and to redraw a viewer after a touch of its control."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import torch

from transformer_edu import plots, viewers

from .rows import Row

ROUNDS = 9


def milliseconds(do: Callable[[], object]) -> float:
    """Median CPU time of one call, after one that does not count."""
    do()
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        do()
        times.append(time.process_time() - start)
    return 1000 * statistics.median(times)


def run() -> Iterator[Row]:
    """One line for each size."""
    for size in (5, 8, 16):
        weights = torch.rand(2, size, size, generator=torch.Generator().manual_seed(0)).softmax(-1)
        drawn = milliseconds(lambda w=weights: plots.attention_map(w[0]).png())
        yield Row(f"attention map, {size} tokens", drawn, "ms")
        viewer = viewers.attention_viewer({"layer": weights})
        head = viewer.controls["head"]

        def touch(viewer: viewers.Viewer = viewer, head: object = head) -> None:
            head.value = 1 - head.value
            viewer.widget  # noqa: B018  the picture is drawn

        yield Row(f"viewer, {size} tokens, one touch", milliseconds(touch), "ms")
