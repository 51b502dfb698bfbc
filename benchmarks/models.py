"""A whole encoder-decoder against torch's own, and against any other: forward pass and training step.

Another system is named on the command line as NAME=module:factory. The factory is called with the sizes of `SIZES` as
keyword arguments, and its module with (source ids, target ids, source mask, target mask), masks bool, True = may
attend, (batch, 1, 1, source) and (target, target); it returns logits (batch, target, vocab_size).
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_edu.masks import causal_mask, padding_mask
from transformer_edu.model import TransformerConfig, build_transformer, count_flops
from transformer_edu.positions import SinusoidalPositions, TokenEmbedding

from .rows import Row

SIZES = {"d_model": 256, "n_heads": 8, "d_ff": 1024, "n_layers": 3, "vocab_size": 1000}
BATCH, LENGTHS, WARM = 16, (64, 256), 2
ROUNDS = {64: 48, 256: 12}  # the shorter the work, the more a disturbance weighs


class TorchTransformer(nn.Module):
    """torch's `nn.Transformer` between this course's embeddings and a linear layer."""

    def __init__(self, *, d_model: int, n_heads: int, d_ff: int, n_layers: int, vocab_size: int) -> None:
        super().__init__()
        self.source, self.target = (TokenEmbedding(vocab_size=vocab_size, d_model=d_model) for _ in range(2))
        self.positions = SinusoidalPositions(d_model=d_model)
        self.core = nn.Transformer(d_model, n_heads, n_layers, n_layers, d_ff, dropout=0.0, batch_first=True)
        self.output = nn.Linear(d_model, vocab_size)

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor, target_mask: Tensor) -> Tensor:
        hidden = ~source_mask[:, 0, 0]  # (batch, source), True = masked
        x = self.core(
            self.positions(self.source(source)),
            self.positions(self.target(target)),
            tgt_mask=~target_mask,
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
        )
        return self.output(x)


def ours(*, vocab_size: int, **sizes: int) -> nn.Module:
    """The same architecture from this course's parts: post-norm, with a norm behind both stacks, as torch has it."""
    config = TransformerConfig(
        source_vocab_size=vocab_size, target_vocab_size=vocab_size, **sizes, placement="post", final_norm=True
    )
    return build_transformer(config)


def batch_of(length: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Random ids (batch, length), twice, the second half of the rows a quarter shorter, and their masks."""
    generator = torch.Generator().manual_seed(length)
    source, target = (torch.randint(1, SIZES["vocab_size"], (BATCH, length), generator=generator) for _ in range(2))
    lengths = torch.full((BATCH,), length)
    lengths[BATCH // 2 :] -= length // 4
    return source, target, padding_mask(lengths, length), causal_mask(length)


def forward_seconds(model: nn.Module, batch: tuple[Tensor, ...]) -> float:
    """One forward pass in evaluation mode, without gradients."""
    model.eval()
    with torch.no_grad():
        start = time.perf_counter()
        model(*batch)
        return time.perf_counter() - start


def step_seconds(model: nn.Module, batch: tuple[Tensor, ...]) -> float:
    """One training step: forward, cross-entropy, backward, Adam."""
    model.train()
    if not hasattr(model, "adam"):
        model.adam = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    start = time.perf_counter()
    loss = F.cross_entropy(model(*batch).flatten(0, 1), batch[1].flatten())
    model.adam.zero_grad()
    loss.backward()
    model.adam.step()
    return time.perf_counter() - start


def product_speed() -> float:
    """Operations in a second of a product of two 1024 x 1024 matrices."""
    a = torch.ones(1024, 1024)
    start = time.perf_counter()
    a @ a
    return 2 * 1024**3 / (time.perf_counter() - start)


def peers(wanted: Mapping[str, str]) -> dict[str, Callable[..., nn.Module]]:
    """Factories by name: torch, ours, and NAME -> "module:factory"."""
    found: dict[str, Callable[..., nn.Module]] = {"torch": TorchTransformer, "ours": ours}
    for name, place in wanted.items():
        module, _, factory = place.partition(":")
        found[name] = getattr(importlib.import_module(module), factory)
    return found


def run(wanted: Mapping[str, str] | None = None) -> Iterator[Row]:
    """One line for each length, work and system: its median time, and the median of its ratios to torch.

    Rounds are interleaved, and the order of the systems turns from round to round.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        torch.manual_seed(0)
        models = {name: make(**SIZES) for name, make in peers(wanted or {}).items()}
        for length in LENGTHS:
            batch = batch_of(length)
            flops = 3 * sum(count_flops(models["ours"], *batch).values())  # backward costs two forward passes
            for work, seconds in (("forward", forward_seconds), ("training step", step_seconds)):
                rows, speeds = [], []
                for turn in range(WARM + ROUNDS[length]):
                    names = list(models)[turn % len(models) :] + list(models)[: turn % len(models)]
                    rows.append({name: seconds(models[name], batch) for name in names})
                    speeds.append(product_speed())
                rows, speeds = rows[WARM:], speeds[WARM:]
                for name in models:
                    middle = statistics.median(row[name] for row in rows)
                    ratio = statistics.median(row[name] / row["torch"] for row in rows)
                    yield Row(f"{work}, length {length}, {name}", ratio, "of torch's time", f"{1000 * middle:.0f} ms")
                if work == "training step":
                    share = statistics.median(
                        flops / row["ours"] / speed for row, speed in zip(rows, speeds, strict=True)
                    )
                    yield Row(f"{work}, length {length}, ours", share, "of the speed of a matrix product")
    finally:
        torch.set_num_threads(threads)
