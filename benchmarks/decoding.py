"""What a cache saves: decoding many tokens with it, against computing everything again for each token."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import torch
from torch import Tensor

from transformer_edu.decoding import CachedStep
from transformer_edu.masks import causal_mask
from transformer_edu.model import Transformer, TransformerConfig, build_transformer

from .rows import Row

TOKENS, SOURCE = 1024, 32
SAMPLES = 8  # of the recomputed steps: the time between two of them is nearly a straight line
ROUNDS, NEAR = 3, 16  # a token's time with a cache is the median of those so near


def model() -> Transformer:
    torch.manual_seed(0)
    sizes = {"source_vocab_size": 100, "target_vocab_size": 100, "d_model": 128, "n_heads": 4, "n_layers": 4}
    return build_transformer(TransformerConfig(**sizes)).eval()


def cached_seconds(built: Transformer, source: Tensor, target: Tensor) -> list[float]:
    """The time of each token with a cache."""
    step, times = CachedStep(built, source), []
    for stop in range(1, target.shape[1] + 1):
        start = time.perf_counter()
        step(target[:, :stop])
        times.append(time.perf_counter() - start)
    return times


@torch.no_grad()
def recomputed_seconds(built: Transformer, source: Tensor, target: Tensor, lengths: list[int]) -> list[float]:
    """The time of a token behind so many others without a cache, fused kernels and all."""
    memory, times = built.encode(source), []
    for length in lengths:
        mask = causal_mask(length)
        start = time.perf_counter()
        built.decode(target[:, :length], memory, mask)[:, -1]
        times.append(time.perf_counter() - start)
    return times


def run() -> Iterator[Row]:
    """Two threads; rounds of both, interleaved."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        built = model()
        generator = torch.Generator().manual_seed(0)
        source = torch.randint(100, (1, SOURCE), generator=generator)
        target = torch.randint(100, (1, TOKENS), generator=generator)
        lengths = [TOKENS * (2 * i + 1) // (2 * SAMPLES) for i in range(SAMPLES)]
        cached, again = [], []
        for _ in range(ROUNDS):
            cached.append(cached_seconds(built, source, target))
            again.append(recomputed_seconds(built, source, target, lengths))
    finally:
        torch.set_num_threads(threads)
    with_cache, without = [sum(times) for times in cached], [TOKENS * statistics.mean(times) for times in again]
    yield Row(f"{TOKENS} tokens with a cache", statistics.median(with_cache), "s")
    yield Row(f"{TOKENS} tokens computed again", statistics.median(without), "s", f"from {SAMPLES} of them")
    ratios = [slow / fast for slow, fast in zip(without, with_cache, strict=True)]
    yield Row("computed again", statistics.median(ratios), "times the time with a cache")
    for i, length in enumerate(lengths):
        near = [second for times in cached for second in times[length - NEAR : length + NEAR]]
        yield Row(f"token {length}, with a cache", 1000 * statistics.median(near), "ms")
        yield Row(f"token {length}, computed again", 1000 * statistics.median(times[i] for times in again), "ms")
