"""The comparison of stored and fresh outputs sees what it must see, and no more.

One notebook holds a cell for each case, with outputs as they might have been stored; pytest runs it once, as
it runs the lessons.
"""

import os
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import nbformat
import pytest
from notebook_tools import ROOT, solve, text_of

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FIGURE = {"image/png": DOT, "text/plain": "<Figure size 640x480 with 1 Axes>"}
SHOW_FIGURE = f"_ = display({FIGURE!r}, raw=True)"


def printed(text):
    return nbformat.v4.new_output("stream", name="stdout", text=text)


def result(text):
    return nbformat.v4.new_output("execute_result", data={"text/plain": text}, execution_count=1)


def figure(**other):
    return nbformat.v4.new_output("display_data", data=FIGURE | other)


def error(message):
    return nbformat.v4.new_output("error", ename="ValueError", evalue=message, traceback=[message])


# name: (source, outputs as stored, is the cell accepted?)
CASES = {
    "the same": ("print('sum 0.123'); 1 + 1", [printed("sum 0.123\n"), result("2")], True),
    "a last digit": ("print('sum 0.123')", [printed("sum 0.124\n")], True),
    "a last digit of a large number": ("12345.6", [result("12345.7")], True),
    "a zero's sign and its column": ("print('[-0.000, 0.1]')", [printed("[ 0.000,  0.1]\n")], True),
    "other dots of the same picture": (SHOW_FIGURE, [figure(**{"image/png": "iVBORw0KGgo="})], True),
    "a stream in two pieces": ("print('a\\nb')", [printed("a\n"), printed("b\n")], True),
    "an expected error": ("raise ValueError('3 heads')", [error("3 heads")], True),
    "a changed number": ("print('sum 0.123')", [printed("sum 0.126\n")], False),
    "a changed whole number": ("print(1000)", [printed("1001\n")], False),
    "a whole number become a fraction": ("2.0", [result("2")], False),
    "a number become nan": ("float('nan')", [result("0.5")], False),
    "one number fewer": ("print('0.1 0.2')", [printed("0.1 0.2 0.3\n")], False),
    "a changed word": ("print('masked: True')", [printed("masked: False\n")], False),
    "a missing figure": ("_ = 1", [figure()], False),
    "a figure that lost its picture": ("print('<Figure>')", [figure()], False),
    "one of two figures missing": (SHOW_FIGURE, [figure(), figure()], False),
    "an extra figure": (SHOW_FIGURE, [], False),
    "a text after the figure become one before": (
        f"print('a'); {SHOW_FIGURE}",
        [figure(), printed("a\n")],
        False,
    ),
    "an extra line": ("print('a')", [], False),
    "a missing error": ("_ = 1", [error("3 heads")], False),
    "a changed error": ("raise ValueError('4 heads')", [error("3 heads")], False),
    "an unrun cell": ("print('a')", None, False),
}


def notebook():
    cells = []
    for source, outputs, _ in CASES.values():
        cell = nbformat.v4.new_code_cell(source, outputs=outputs or [], execution_count=len(cells) + 1)
        if outputs is None:
            cell.execution_count = None
        if "ValueError" in source or any(each.output_type == "error" for each in cell.outputs):
            cell.metadata["tags"] = ["raises-exception"]
        cells.append(cell)
    return nbformat.v4.new_notebook(cells=cells)


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """Case name -> was the cell accepted, from one run of pytest with the project's settings."""
    folder = tmp_path_factory.mktemp("notebooks")
    shutil.copy(ROOT / "notebooks/conftest.py", folder)
    (folder / "cases.ipynb").write_text(text_of(notebook()))
    settings = ["-c", ROOT / "pyproject.toml", "--rootdir", folder, "-p", "no:cacheprovider"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *settings, f"--junitxml={folder}/report.xml", folder],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    cells = ElementTree.parse(folder / "report.xml").iter("testcase")
    return {case: len(cell) == 0 for case, cell in zip(CASES, cells, strict=True)}


@pytest.mark.parametrize("case", CASES)
def test_a_cell_is_accepted_only_where_it_should_be(verdicts, case):
    assert verdicts[case] == CASES[case][2]


def test_solve_fills_every_stub_and_touches_nothing_else():
    stub = nbformat.v4.new_code_cell(
        "def causal_mask(length):\n    raise NotImplementedError", metadata={"tags": ["exercise"]}
    )
    check = nbformat.v4.new_code_cell('causal_mask = check("masks.causal_mask", causal_mask)')
    nb = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("1 + 1"), stub, nbformat.v4.new_markdown_cell("Well?"), check]
    )
    solved = solve(nb)
    assert solved.cells[1].source.endswith('causal_mask = load("masks.causal_mask").reference')
    assert [cell.source for i, cell in enumerate(solved.cells) if i != 1] == [
        cell.source for i, cell in enumerate(nb.cells) if i != 1
    ]
