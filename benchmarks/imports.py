"""What `import transformer_edu` costs beside `import torch`: CPU seconds, median of 5 fresh processes."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator

from .rows import Row

ROUNDS = 5


def run() -> Iterator[Row]:
    """Medians over interleaved rounds, in seconds of CPU time."""
    modules = ("torch", "transformer_edu", "transformer_edu.heads", "transformer_edu.notebook")
    seconds: dict[str, list[float]] = {module: [] for module in modules}
    for done in range(1, ROUNDS + 1):
        for module in modules:
            code = f"import time; start = time.process_time(); import {module}; print(time.process_time() - start)"
            seconds[module].append(float(subprocess.check_output([sys.executable, "-c", code])))
        print(f"  round {done} of {ROUNDS}", file=sys.stderr)
    for module, times in seconds.items():
        ratio = statistics.median(mine / torchs for mine, torchs in zip(times, seconds["torch"], strict=True))
        yield Row(f"import {module}", statistics.median(times), "s", f"{ratio:.3f} of torch")
