"""What every test shares: one CPU thread, no windows, one seed, and the order."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported; kernels inherit it
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest


@pytest.fixture(autouse=True)
def seed():
    import torch  # here, since pytest loads this file also in the process that only hands out the tests

    torch.default_generator.manual_seed(0)  # torch.manual_seed would note it for each device


def pytest_collection_modifyitems(items):
    """The longest first, so that two workers end together: stored lessons that train, the browser's lessons, the rest.

    What a stored lesson trains is kept, so its solved copy in the browser need not train it again.
    """
    from notebook_tools import trains

    items.sort(key=lambda item: 0 if trains(item.path) else 1 if item.path.stem == "test_browser" else 2)
