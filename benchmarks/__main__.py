"""Run all benchmarks, or those named: python -m benchmarks [imports] [verdicts] [pictures] [relative] [models]
[decoding].

NAME=module:factory adds another system to `models` (see benchmarks/models.py).
--figures=FOLDER also draws each benchmark as FOLDER/NAME.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from . import decoding, imports, models, pictures, relative, verdicts
from .rows import draw

BENCHMARKS = {
    "imports": imports.run,
    "verdicts": verdicts.run,
    "pictures": pictures.run,
    "relative": relative.run,
    "models": models.run,
    "decoding": decoding.run,
}


def main(wanted: list[str]) -> int:
    """Print one table for each benchmark; returns the exit status."""
    if {"-h", "--help"} & set(wanted):
        print(__doc__)
        return 0
    options = dict(word.split("=", 1) for word in wanted if "=" in word)
    folder = options.pop("--figures", None)
    wanted = [word for word in wanted if "=" not in word]
    unknown = [name for name in wanted if name not in BENCHMARKS]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    for name in wanted or BENCHMARKS:
        print(f"\n{name}")
        rows = []
        for row in BENCHMARKS[name](**({"wanted": options} if name == "models" and options else {})):
            print(row.line, flush=True)
            rows.append(row)
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
            draw(name, rows, Path(folder) / f"{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
