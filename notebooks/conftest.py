"""How stored outputs are compared with fresh ones when pytest runs the lessons: see `first_difference`."""

from functools import partial

from nbval.plugin import IPyNbCell
from notebook_tools import first_difference


def pytest_itemcollected(item):
    if isinstance(item, IPyNbCell):
        item.compare_outputs = partial(compare_outputs, item)
        if item.cell.execution_count is None:
            item.cell.execution_count = 0  # nbval compares nothing in a cell that was never run


def compare_outputs(cell, fresh, stored):
    """Takes the place of nbval's own comparison, which knows no tolerance and ignores missing pictures."""
    difference = first_difference(stored, fresh)
    cell.comparison_traceback = [difference]
    return difference is None
