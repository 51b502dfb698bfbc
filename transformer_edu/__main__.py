"""Check the functions of a Python file against the exercises, outside a notebook.

python -m transformer_edu check my_answers.py
python -m transformer_edu list
"""

from __future__ import annotations

import argparse
import contextlib
import io
import runpy
import sys
import traceback
from pathlib import Path

from .exercises import load, names
from .exercises.sandbox import Budget, TookTooLong
from .exercises.wording import clean

SECONDS = 60  # for what a file does besides defining functions


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0 if every function found is correct, else 1, 2 for misuse."""
    parser = argparse.ArgumentParser(prog="python -m transformer_edu", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="check every function in FILE that is named like an exercise")
    check.add_argument("file", type=Path, metavar="FILE.py")
    check.add_argument("--only", metavar="TOPIC.NAME", help="check this exercise alone")
    commands.add_parser("list", help="list the exercises")
    options = parser.parse_args(arguments)
    if options.command == "list":
        print("\n".join(names()))
        return 0
    return _check_file(options.file, options.only)


def _check_file(file: Path, only: str | None) -> int:
    if not file.is_file():
        print(f"{file}: {'a folder, not a file' if file.is_dir() else 'no such file'}", file=sys.stderr)
        return 2
    if file.suffix == ".ipynb":
        print(f"{file.name} is a notebook: run its check cells, or copy your functions to a .py file", file=sys.stderr)
        return 2
    only = next((name for name in names() if only in (name, name.partition(".")[2])), only)
    if only is not None and only not in names():
        print(f"{only}: no such exercise; there are {', '.join(names())}", file=sys.stderr)
        return 2
    defined = _run(file)
    if defined is None:
        return 1
    wanted = [only] if only else names()
    found = [name for name in wanted if name.partition(".")[2] in defined]
    if not found:
        print(f"{file.name}: no function named like an exercise ({', '.join(n.partition('.')[2] for n in wanted)})")
        return 2
    verdicts = [load(name).check(defined[name.partition(".")[2]]) for name in found]
    print(f"{sum(v.status == 'correct' for v in verdicts)} of {len(verdicts)} correct")
    return 0 if all(v.status == "correct" for v in verdicts) else 1


def _run(file: Path) -> dict[str, object] | None:
    """What the file defines, or None where it cannot be run; what it prints is hidden."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return Budget(SECONDS).call(runpy.run_path, str(file), None, "answers")
    except TookTooLong:
        print(f"{file.name}: the file could not be run: it did not finish in {SECONDS} seconds")
        return None
    except BaseException as error:  # a file that calls exit(), or whatever else
        lines = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(file)]
        line = lines[-1].lineno if lines else getattr(error, "lineno", None)
        where = f", line {line}" if line else ""
        what = "it called exit()" if isinstance(error, SystemExit) else f"{type(error).__name__}: {clean(str(error))}"
        print(f"{file.name}{where}: the file could not be run: {what}")
        return None


if __name__ == "__main__":
    sys.exit(main())
