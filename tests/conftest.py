"""What every test shares: one CPU thread, no windows, one seed."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported; kernels inherit it
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest
import torch


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
