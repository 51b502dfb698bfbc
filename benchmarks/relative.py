"""What relative positions cost: attention with each scheme against the same without, forwards and backwards."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping

import torch

from transformer_edu.heads import MultiHeadAttention
from transformer_edu.relative import (
    AlibiPosition,
    Position,
    RotaryPosition,
    ShawPosition,
    T5Position,
    XLPosition,
)

from .rows import Row

D_MODEL, HEADS = 256, 4
D_K = D_MODEL // HEADS
TOKENS = 1024  # in a batch: 16 sequences of 64, 4 of 256
ROUNDS = 15
SCHEMES: Mapping[str, Callable[[], Position]] = {
    "ALiBi": lambda: AlibiPosition(n_heads=HEADS),
    "rotary, interleaved": lambda: RotaryPosition(),
    "rotary, half split": lambda: RotaryPosition(pairing="half_split"),
    "T5": lambda: T5Position(n_heads=HEADS),
    "Shaw": lambda: ShawPosition(d_k=D_K, max_distance=16),
    "Transformer-XL": lambda: XLPosition(d_model=D_MODEL, n_heads=HEADS),
    "Transformer-XL, causal": lambda: XLPosition(d_model=D_MODEL, n_heads=HEADS, causal=True),
}


def seconds(attention: MultiHeadAttention, x: torch.Tensor) -> float:
    """Time of one forward and backward pass."""
    start = time.perf_counter()
    attention(x)[0].sum().backward()
    return time.perf_counter() - start


def ratios(length: int, rounds: int = ROUNDS) -> Iterator[tuple[str, float, float]]:
    """For each scheme its median time in milliseconds, and the median of its ratios to plain attention.

    Each round times all of them one after the other, so that a disturbance meets numerator and denominator alike.
    """
    x = torch.randn(TOKENS // length, length, D_MODEL, generator=torch.Generator().manual_seed(0))
    x.requires_grad_()
    made = {"none": MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS)}
    made |= {
        name: MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS, position=scheme()) for name, scheme in SCHEMES.items()
    }
    table = [{name: seconds(attention, x) for name, attention in made.items()} for _ in range(rounds + 2)][2:]
    for name in made:
        milliseconds = 1000 * statistics.median(row[name] for row in table)
        yield name, milliseconds, statistics.median(row[name] / row["none"] for row in table)


def run() -> Iterator[Row]:
    """One line for each scheme and length, on two threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for length in (64, 256):
            for name, milliseconds, ratio in ratios(length):
                unit = "times attention without positions, forward and backward"
                yield Row(f"length {length}, {name}", ratio, unit, f"{milliseconds:.1f} ms")
    finally:
        torch.set_num_threads(threads)
