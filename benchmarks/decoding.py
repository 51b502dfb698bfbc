"""What a cache saves: decoding many tokens with it, against computing everything again for each token.

Two models of the same width and depth: a decoder alone, as in a language model, and a decoder that reads a memory.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from transformer_edu.cache import KeyValueCache
from transformer_edu.decoding import CachedStep
from transformer_edu.feedforward import FeedForward
from transformer_edu.heads import MultiHeadAttention
from transformer_edu.masks import causal_mask
from transformer_edu.model import (
    Embedding,
    Encoder,
    EncoderLayer,
    Transformer,
    TransformerConfig,
    build_transformer,
)
from transformer_edu.norms import LayerNorm
from transformer_edu.positions import SinusoidalPositions, TokenEmbedding

from .rows import Row

D_MODEL, HEADS, LAYERS, VOCAB = 128, 4, 4, 100
TOKENS, SOURCE = 1024, 32
SAMPLES = 8  # of the recomputed steps: the time between two of them is nearly a straight line
ROUNDS, NEAR = 3, 16  # a token's time with a cache is the median of those so near

Step = Callable[[Tensor], Tensor]  # from all ids so far (1, length) to the logits of the next


class DecoderAlone(nn.Module):
    """A language model: pre-norm layers of attention and feed-forward under a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        tokens = TokenEmbedding(vocab_size=VOCAB, d_model=D_MODEL)
        self.embedding = Embedding(tokens=tokens, positions=SinusoidalPositions(d_model=D_MODEL))
        layers = [self._layer() for _ in range(LAYERS)]
        self.stack = Encoder(layers, final_norm=LayerNorm(d_model=D_MODEL))
        self.output = nn.Linear(D_MODEL, VOCAB)

    @staticmethod
    def _layer() -> EncoderLayer:
        return EncoderLayer(
            self_attention=MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS),
            feed_forward=FeedForward(d_model=D_MODEL, d_ff=4 * D_MODEL),
            norms=[LayerNorm(d_model=D_MODEL) for _ in range(2)],
            placement="pre",
        )

    def forward(self, ids: Tensor, mask: Tensor | None = None, cache: KeyValueCache | None = None) -> Tensor:
        x = self.embedding(ids, offset=0 if cache is None else cache.length)  # (1, length, d_model)
        return self.output(self.stack(x, mask, cache=cache))[:, -1]  # (1, vocab_size)


def encoder_decoder() -> Transformer:
    sizes = {"source_vocab_size": VOCAB, "target_vocab_size": VOCAB, "d_model": D_MODEL, "n_heads": HEADS}
    return build_transformer(TransformerConfig(**sizes, n_layers=LAYERS)).eval()


def steps_alone(model: DecoderAlone) -> tuple[Callable[[], Step], Step]:
    """For a new sequence, a step with a cache; and the step without."""

    def begin() -> Step:
        cache = KeyValueCache()
        return lambda ids: model(ids[:, cache.length :], None, cache)

    return begin, lambda ids: model(ids, causal_mask(ids.shape[1]))


def steps_behind(model: Transformer, source: Tensor) -> tuple[Callable[[], Step], Step]:
    """The same for a decoder behind an encoder, whose memory is computed once in both."""
    with torch.no_grad():
        memory = model.encode(source)
    return (
        lambda: CachedStep(model, source),
        lambda ids: model.decode(ids, memory, causal_mask(ids.shape[1]))[:, -1],
    )


@torch.inference_mode()
def seconds(step: Step, target: Tensor, lengths: list[int]) -> list[float]:
    """The time of the step behind so many tokens, for each length."""
    times = []
    for length in lengths:
        ids = target[:, :length]
        start = time.perf_counter()
        step(ids)
        times.append(time.perf_counter() - start)
    return times


def compared(name: str, begin: Callable[[], Step], again: Step, target: Tensor) -> Iterator[Row]:
    """Rounds of both ways, interleaved."""
    tokens = target.shape[1]
    lengths = [tokens * (2 * i + 1) // (2 * SAMPLES) for i in range(SAMPLES)]
    cached, recomputed = [], []
    for _ in range(ROUNDS):
        cached.append(seconds(begin(), target, list(range(1, tokens + 1))))
        recomputed.append(seconds(again, target, lengths))
    with_cache, without = [sum(times) for times in cached], [tokens * statistics.mean(times) for times in recomputed]
    yield Row(f"{name}: {tokens} tokens with a cache", statistics.median(with_cache), "s")
    yield Row(f"{name}: {tokens} tokens computed again", statistics.median(without), "s", f"from {SAMPLES} of them")
    ratios = [slow / fast for slow, fast in zip(without, with_cache, strict=True)]
    yield Row(f"{name}: computed again", statistics.median(ratios), "times the time with a cache")
    for i, length in enumerate(lengths):
        near = [second for times in cached for second in times[max(0, length - NEAR) : length + NEAR]]
        yield Row(f"{name}: token {length}, with a cache", 1000 * statistics.median(near), "ms")
        slow = 1000 * statistics.median(times[i] for times in recomputed)
        yield Row(f"{name}: token {length}, computed again", slow, "ms")


def run() -> Iterator[Row]:
    """Both models, on two threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        torch.manual_seed(0)
        source, target = torch.randint(VOCAB, (1, SOURCE)), torch.randint(VOCAB, (1, TOKENS))
        yield from compared("alone", *steps_alone(DecoderAlone().eval()), target)
        yield from compared("with memory", *steps_behind(encoder_decoder(), source), target)
    finally:
        torch.set_num_threads(threads)
