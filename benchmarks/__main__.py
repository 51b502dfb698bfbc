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
    "imports": imports,
    "verdicts": verdicts,
    "pictures": pictures,
    "relative": relative,
    "models": models,
    "decoding": decoding,
}


def main(words: list[str]) -> int:
    """Print one table for each benchmark; returns the exit status."""
    if {"-h", "--help"} & set(words):
        print(__doc__)
        return 0
    wanted = [word for word in words if "=" not in word and not word.startswith("-")] or list(BENCHMARKS)
    complaint = _complaint(words, wanted)
    if complaint is not None:
        print(complaint, file=sys.stderr)
        return 2
    systems = dict(word.split("=", 1) for word in words if "=" in word)
    folder = systems.pop("--figures", None)
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread (relative, models and decoding: two)")
    for name in wanted:
        title = BENCHMARKS[name].__doc__.splitlines()[0]
        print(f"\n{name}: {title}", flush=True)
        rows = []
        for row in BENCHMARKS[name].run(**({"wanted": systems} if name == "models" and systems else {})):
            print(row.line, flush=True)
            rows.append(row)
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
            path = Path(folder) / f"{name}.png"
            draw(title, rows, path)
            print(f"drawn: {path}")
    return 0


def _complaint(words: list[str], wanted: list[str]) -> str | None:
    """What is wrong with the words of the command line: each must do something."""
    for word in words:
        if word.startswith("-") and not word.startswith("--figures="):
            return f"no such option: {word}; there is --figures=FOLDER"
        if not word.startswith("-") and "=" in word and "models" not in wanted:
            return f"{word} adds a system to models, which is not asked for"
    unknown = [name for name in wanted if name not in BENCHMARKS]
    if unknown:
        return f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
