"""What `python -m transformer_edu` does: list the exercises, print where they start, check the functions of files."""

from __future__ import annotations

import argparse
import difflib
import inspect
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from . import TOPICS, load, names, stubs
from .sandbox import Budget, TookTooLong, calm
from .wording import clean

SECONDS = 60  # for what a file does besides defining functions
ALIKE = 0.8  # two names with such a ratio or more are one name, misspelt
LIST = "`python -m transformer_edu list` names them all"


def run(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 if every function found is correct, 1 if one is not, 2 for misuse."""
    parser = argparse.ArgumentParser(
        prog="python -m transformer_edu", description="Work on the exercises outside a notebook."
    )
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("list", help="list the exercises, with their arguments and their lesson")
    stub = commands.add_parser("stub", help="print what an exercise, or all of a topic, starts from")
    stub.add_argument("words", nargs="+", metavar="TOPIC or NAME")
    check = commands.add_parser("check", help="check every function in FILE.py that is named like an exercise")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE.py")
    check.add_argument("--only", metavar="TOPIC or NAME", help="check this exercise, or those of this topic, alone")
    options = parser.parse_args(arguments)
    if options.command == "list":
        return _list()
    if options.command == "stub":
        return _print_stubs(options.words)
    if options.command == "check":
        return _check_files(options.files, options.only)
    parser.print_help()
    return 2


def _list() -> int:
    for topic in TOPICS:
        print(_lesson(topic))
        for name in _named(topic):
            signature = _stub(name).splitlines()[0].removeprefix("def ").removesuffix(":")
            print(f"  {topic}.{signature}")
    return 0


def _print_stubs(words: Sequence[str]) -> int:
    unknown = [word for word in words if not _named(word)]
    if unknown:
        return _refuse(unknown[0])
    wanted = [name for name in names() if any(name in _named(word) for word in words)]
    print('"""Check this file with: python -m transformer_edu check FILE.py"""\n\nimport torch')
    for name in wanted:
        print(f"\n\n# {name}, {_lesson(_topic(name))}\n{_stub(name).rstrip()}")
    return 0


def _check_files(files: Sequence[Path], only: str | None) -> int:
    wanted = _named(only) if only else names()
    if not wanted:
        return _refuse(only)
    status = 0
    for file in files:
        if len(files) > 1:
            print(f"{'' if file is files[0] else chr(10)}{file}", flush=True)
        status = max(status, _check_file(file, wanted))
    return status


def _check_file(file: Path, wanted: Sequence[str]) -> int:
    if not file.is_file():
        print(f"{file}: {'a folder, not a file' if file.is_dir() else 'no such file'}", file=sys.stderr)
        return 2
    if file.suffix == ".ipynb":
        print(f"{file} is a notebook: run its check cells, or copy your functions to a .py file", file=sys.stderr)
        return 2
    defined = _defined(file)
    if defined is None:
        return 1
    found = [name for name in wanted if _function(name) in defined]
    verdicts = [load(name).check(defined[_function(name)]) for name in found]
    misspelt = _misspelt(defined, [name for name in wanted if name not in found])
    for own, name in misspelt.items():
        print(f"? {own}: not an exercise, so not checked. Did you mean {name}?")
    if not found:
        asked = " or ".join(map(_function, wanted)) if len(wanted) < len(names()) else f"like an exercise; {LIST}"
        print(f"{file}: no function is named {asked}")
        return 2
    correct = sum(verdict.status == "correct" for verdict in verdicts)
    print(f"{file}: {correct} of {len(verdicts)} correct" + (f", {len(misspelt)} not checked" if misspelt else ""))
    return 0 if correct == len(verdicts) and not misspelt else 1


def _defined(file: Path) -> dict[str, object] | None:
    """What the file defines, or None where it cannot be run; what it prints is hidden, what it sets is set back."""
    try:
        with calm():
            return Budget(SECONDS).call(runpy.run_path, str(file), None, "answers")
    except TookTooLong:
        print(f"{file}: the file could not be run: it did not finish in {SECONDS} seconds")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a file that calls exit(), or whatever else
        print(f"{file}{_line(error, file)}: the file could not be run: {_reason(error, file)}")
    return None


def _line(error: BaseException, file: Path) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    line = lines[-1] if lines else getattr(error, "lineno", None)
    return f", line {line}" if line else ""


def _reason(error: BaseException, file: Path) -> str:
    if isinstance(error, SystemExit):
        return "it called exit()"
    here = isinstance(error, SyntaxError) and error.filename == str(file)  # its text would say file and line again
    return f"{type(error).__name__}: {clean(error.msg if here else str(error))}"


def _misspelt(defined: dict[str, object], missing: Sequence[str]) -> dict[str, str]:
    """The file's own functions whose name is nearly that of an exercise that is not in the file."""
    functions = {_function(name): name for name in missing}
    near = {}
    for own, value in defined.items():
        if inspect.isfunction(value) and value.__module__ == "answers":
            alike = difflib.get_close_matches(own.lower(), functions, n=1, cutoff=ALIKE)
            near |= {own: functions[alike[0]]} if alike else {}
    return near


def _refuse(word: str) -> int:
    known = {each: each for name in names() for each in (_topic(name), name)} | {_function(n): n for n in names()}
    alike = difflib.get_close_matches(word.lower(), known, n=1, cutoff=ALIKE)
    hint = f"did you mean {known[alike[0]]}?" if alike else LIST
    print(f"{word}: no such exercise or topic; {hint}", file=sys.stderr)
    return 2


def _named(word: str) -> list[str]:
    """The exercises that a word means: those of a topic, or one by its name, with or without its topic."""
    return [name for name in names() if word in (name, _topic(name), _function(name))]


def _topic(name: str) -> str:
    return name.partition(".")[0]


def _function(name: str) -> str:
    return name.partition(".")[2]


def _lesson(topic: str) -> str:
    return f"notebooks/{TOPICS.index(topic):02d}_{topic}.ipynb"


def _stub(name: str) -> str:
    return inspect.getsource(getattr(stubs, _function(name)))
