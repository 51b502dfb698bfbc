"""The lessons with the reference in every stub: they run to the end, and below the checks nothing changes.

(As stored, with every stub unsolved, pytest runs them itself: see notebooks/conftest.py.)
"""

import pytest
from notebook_tools import LESSONS, execute, first_difference, read, solve, tags


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_solved_lesson_shows_the_same_outside_its_checks(lesson):
    stored = read(lesson)
    solved = execute(solve(stored))
    before = None
    for old, new in zip(stored.cells, solved.cells, strict=True):
        if old.cell_type == "code":
            difference = first_difference(old.outputs, new.outputs)
            if before is not None and "exercise" in tags(before):
                assert difference is not None, f"a solved stub and an empty one get one verdict: {old.source}"
            elif "check" not in tags(old):
                assert difference is None, f"{old.source}\n\n{difference}"
            before = old


def test_solve_fills_every_stub_and_touches_nothing_else():
    from nbformat import v4

    stub = v4.new_code_cell("def causal_mask(length):\n    raise NotImplementedError", metadata={"tags": ["exercise"]})
    check = v4.new_code_cell('causal_mask = check("masks.causal_mask", causal_mask)')
    nb = v4.new_notebook(cells=[v4.new_code_cell("1 + 1"), stub, v4.new_markdown_cell("Well?"), check])
    solved = solve(nb)
    assert solved.cells[1].source.endswith('causal_mask = load("masks.causal_mask").reference')
    assert [cell.source for i, cell in enumerate(solved.cells) if i != 1] == [
        cell.source for i, cell in enumerate(nb.cells) if i != 1
    ]
