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

TOKENS, SOURCE = 1024, 32
SAMPLES = 32  # of the recomputed steps: the time between two of them is nearly a straight line


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


def run() -> Iterator[tuple[str, str]]:
    """Two threads; three rounds of both, interleaved."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        built = model()
        generator = torch.Generator().manual_seed(0)
        source = torch.randint(100, (1, SOURCE), generator=generator)
        target = torch.randint(100, (1, TOKENS), generator=generator)
        lengths = [TOKENS * (2 * i + 1) // (2 * SAMPLES) for i in range(SAMPLES)]
        ratios, early, late, totals = [], [], [], []
        for _ in range(3):
            cached = cached_seconds(built, source, target)
            recomputed = recomputed_seconds(built, source, target, lengths)
            totals.append((sum(cached), TOKENS * statistics.mean(recomputed)))
            ratios.append(totals[-1][1] / totals[-1][0])
            early.append(statistics.median(cached[:100]))
            late.append(statistics.median(cached[-100:]))
        with_cache, without = (statistics.median(total) for total in zip(*totals, strict=True))
        yield f"{TOKENS} tokens with a cache", f"{with_cache:.2f} s"
        yield f"{TOKENS} tokens computed again (from {SAMPLES} of them)", f"{without:.1f} s"
        yield "computed again, times the time with a cache", f"{statistics.median(ratios):.1f} x"
        yield "a token with a cache, among the first 100", f"{1000 * statistics.median(early):.2f} ms"
        yield "a token with a cache, among the last 100", f"{1000 * statistics.median(late):.2f} ms"
    finally:
        torch.set_num_threads(threads)
