"""Run all benchmarks, or those named: python -m benchmarks [imports] [verdicts] [pictures] [relative] [models]
[decoding].

NAME=module:factory adds another system to `models` (see benchmarks/models.py).
"""

from __future__ import annotations

import sys

import torch

from . import decoding, imports, models, pictures, relative, verdicts

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
    peers = dict(word.split("=", 1) for word in wanted if "=" in word)
    wanted = [word for word in wanted if "=" not in word]
    unknown = [name for name in wanted if name not in BENCHMARKS]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    for name in wanted or BENCHMARKS:
        print(f"\n{name}")
        for label, value in BENCHMARKS[name](**({"wanted": peers} if name == "models" and peers else {})):
            print(f"  {label:58} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
