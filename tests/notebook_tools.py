"""Notebooks as data: record, normalise, compare, solve, and set the repository's address.

On the command line (the Makefile calls it):

    python tests/notebook_tools.py record NOTEBOOK...     run from top to bottom, store the outputs, normalise
    python tests/notebook_tools.py normalise NOTEBOOK...  mend the form only
    python tests/notebook_tools.py address URL            write another repository address everywhere
"""

import functools
import math
import os
import re
import sys
import tomllib
from copy import deepcopy
from itertools import groupby, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))

SET_UP = """\
# Set-up: the same in every lesson. In Colab it fetches the course; elsewhere it changes nothing.
import importlib.util
import sys

if importlib.util.find_spec("transformer_edu") is None:
    ![ -d course ] || git clone --quiet --depth 1 {address} course
    sys.path.insert(0, "course")

%matplotlib inline
from transformer_edu.notebook import check, set_up, show

device = set_up()"""


# Form -----------------------------------------------------------------------------------------------------

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
KEPT_CELL_METADATA = {"tags", "slideshow"}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def read(path):
    return nbformat.read(path, as_version=4)


def text_of(nb):
    """The file's text for a notebook: one form, so that a difference between versions is a difference."""
    return nbformat.writes(nb) + "\n"


@functools.cache
def trains(path):
    """Is this a lesson that keeps what it trains?"""
    return path.suffix == ".ipynb" and "@kept" in path.read_text(encoding="utf-8")


def tags(cell):
    return set(cell.metadata.get("tags", []))


def normalise(nb):
    """A copy in the one form in which notebooks are stored. Code, outputs and counts stay what they are."""
    nb = deepcopy(nb)
    nb.nbformat, nb.nbformat_minor = 4, 5
    nb.metadata = nbformat.from_dict(METADATA)
    for i, cell in enumerate(nb.cells):
        cell.id = f"cell-{i}"
        cell.metadata = {key: value for key, value in cell.metadata.items() if key in KEPT_CELL_METADATA}
        cell.source = "\n".join(line.rstrip() for line in cell.source.rstrip().split("\n"))
        if cell.cell_type == "code":
            if is_set_up(cell):
                cell.source = SET_UP.format(address=address())
            cell.outputs = [stored_form(output) for output in joined_streams(cell.outputs)]
    return nbformat.from_dict(nb)


def is_set_up(cell):
    return cell.source.startswith(SET_UP[:8])


def joined_streams(outputs):
    """Neighbouring pieces of one stream as one: how a kernel cuts them is chance."""
    joined = []
    for name, group in groupby(outputs, key=lambda output: output.get("name")):
        group = list(group)
        if name is not None:
            group = [nbformat.v4.new_output("stream", name=name, text="".join(each.text for each in group))]
        joined += group
    return joined


def stored_form(output):
    """Without what only a live kernel understands (a widget's id), and without the paths of a traceback."""
    if output.output_type == "error":
        output.traceback = [f"{output.ename}: {output.evalue}"]
    if "data" in output:
        output.data.pop(WIDGET_VIEW, None)
    return output


# Running --------------------------------------------------------------------------------------------------


def execute(nb, timeout=600):
    """A copy of the notebook, run from top to bottom in a new kernel, beside the lessons."""
    nb = deepcopy(nb)
    where = {"metadata": {"path": str(ROOT / "notebooks")}}
    NotebookClient(nb, timeout=timeout, kernel_name="python3", resources=where).execute()
    return nb


def solve(nb):
    """A copy in which the reference stands in the place of every exercise's stub."""
    nb = deepcopy(nb)
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    for stub, check in pairwise(code):
        if "exercise" in tags(stub):
            name, exercise = checked(check)
            stub.source = f'from transformer_edu.exercises import load\n\n{name} = load("{exercise}").reference'
    return nb


def checked(cell):
    """Function and exercise in a check cell, `name = check("topic.name", name)`; in any other None, None."""
    match = re.fullmatch(r'(\w+) = check\("([\w.]+)", \1\)', cell.source)
    return match.groups() if match else (None, None)


# Comparing ------------------------------------------------------------------------------------------------

TOLERANCE = 1.001e-3  # one in the third decimal, with room for the rounding of the difference itself
NUMBER = re.compile(r"[ \t]*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[ \t]*")
PICTURE = "a picture"


def first_difference(stored, fresh):
    """None, or a text that shows where two lists of a cell's outputs differ first.

    Words and whole numbers must be the same, other numbers about the same, a picture must be there.
    """
    stored, fresh = comparable(stored), comparable(fresh)
    for (kind, old), (new_kind, new) in zip(stored, fresh, strict=False):
        if kind != new_kind or not same_text(old, new):
            return f"stored ({kind}):\n{old}\n\nnow ({new_kind}):\n{new}"
    if len(stored) != len(fresh):
        kinds = [", ".join(kind for kind, _ in outputs) or "none" for outputs in (stored, fresh)]
        return f"stored outputs: {kinds[0]}\nnow: {kinds[1]}"
    return None


def comparable(outputs):
    """The parts of a cell's outputs that are compared, as (kind, text)."""
    parts = []
    for output in joined_streams(deepcopy(outputs)):
        if output.output_type == "stream":
            parts.append((output.name, output.text))
        elif output.output_type == "error":
            parts.append(("error", f"{output.ename}: {output.evalue}"))
        else:
            parts += sorted(
                (mime, PICTURE if mime.startswith("image/") else str(data))
                for mime, data in output.data.items()
                if mime != WIDGET_VIEW
            )
    return parts


def same_text(stored, fresh):
    """Are two texts the same, but for a thousandth in their numbers and the blanks around these?

    >>> same_text("mean -0.000, sum 0.125", "mean 0.000, sum  0.126")
    True
    >>> same_text("2 heads", "3 heads"), same_text("sum 0.12", "sum 0.13"), same_text("1", "1.0")
    (False, False, False)
    """
    if NUMBER.sub("#", stored) != NUMBER.sub("#", fresh):
        return False
    return all(map(same_number, NUMBER.findall(stored), NUMBER.findall(fresh)))


def same_number(stored, fresh):
    if re.search("[.eE]", stored) is None or re.search("[.eE]", fresh) is None:
        return stored == fresh
    if stored.endswith(".") and fresh.endswith("."):
        return float(stored) == float(fresh)
    return math.isclose(float(stored), float(fresh), rel_tol=TOLERANCE, abs_tol=TOLERANCE)


# The address ----------------------------------------------------------------------------------------------


def address(root=ROOT):
    """The repository's address: pyproject.toml is its one place."""
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]["urls"]["Repository"]


def addressed_files(root=ROOT):
    """The files that repeat the address: buttons and clone lines in texts, set-up cells in notebooks."""
    texts = (root / name for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md"))
    return [path for path in (*texts, *sorted((root / "notebooks").glob("*.ipynb"))) if path.exists()]


def set_address(url, root=ROOT):
    """Write another address into pyproject.toml, every button, clone line and set-up cell."""
    new = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", url)
    if new is None:
        raise SystemExit(f"the address must read https://github.com/OWNER/REPOSITORY, not {url!r}")
    old = address(root).removeprefix("https://github.com/")
    # as in github.com/OWNER/REPO, mybinder.org/v2/gh/OWNER/REPO, colab.research.google.com/github/OWNER/REPO
    where = re.compile(rf"(?<=/)(github\.com|gh|github)/{re.escape(old)}(?![\w-])")
    enter = re.compile(rf"(git clone \S+/{re.escape(new[1])}\ncd ).*")  # the folder that the line above it makes
    for path in addressed_files(root):
        text = path.read_text(encoding="utf-8")
        text = enter.sub(rf"\g<1>{new[1].partition('/')[2]}", where.sub(rf"\1/{new[1]}", text))
        path.write_text(text, encoding="utf-8")
    print(f"address: {old} is now {new[1]} in every button, clone line and set-up cell")


def main(command, *arguments):
    if command == "address":
        return set_address(*arguments)
    if command not in ("record", "normalise"):
        raise SystemExit(__doc__)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.pop("TRANSFORMER_EDU_DEVICE", None)  # outputs are stored from the CPU
    with TemporaryDirectory() as folder:
        os.environ["TRANSFORMER_EDU_KEPT"] = folder  # and from trainings of now
        for path in arguments:
            nb = normalise(read(path))
            if command == "record":
                nb = normalise(execute(nb))
            Path(path).write_text(text_of(nb), encoding="utf-8")
            print(f"{command}: {path}")
    return None


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
