"""Work on the exercises outside a notebook.

python -m transformer_edu list
python -m transformer_edu stub masks > my_answers.py
python -m transformer_edu check my_answers.py
"""

from __future__ import annotations

import os
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0 if every function found is correct, else 1, 2 for misuse."""
    try:
        from .exercises.command_line import run
    except ModuleNotFoundError as error:
        print(
            f"{error.name} is not installed for {sys.executable}: use the environment's Python, as in "
            "`.venv/bin/python -m transformer_edu list` (on Windows .venv\\Scripts\\python)",
            file=sys.stderr,
        )
        return 2
    try:
        status = run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on, as in `list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
