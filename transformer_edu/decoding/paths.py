"""One path through the tokens: always the likeliest, or drawn by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ..errors import check_count, check_ids, check_kind
from .filters import next_probabilities
from .steps import Step, check_answer, check_search

__all__ = ["greedy_decode", "greedy_steps", "sample_decode"]


def greedy_decode(step: Step, prompt: Tensor, stop_id: int, pad_id: int, max_length: int) -> Tensor:
    """The likeliest token, again and again: the new tokens (batch, n), without the prompt.

    Args:
        step: ids (batch, length) -> logits (batch, length, vocab_size); of these the last position counts.
        prompt: (batch, length), without padding.
        stop_id: ends a row; the row keeps it, and has `pad_id` behind it. In the prompt it does not count.
        max_length: at most so many new tokens. Decoding ends earlier as soon as every row has ended.

    >>> def count_up(ids): return torch.nn.functional.one_hot(ids + 1, 6).float()
    >>> greedy_decode(count_up, torch.tensor([[1], [3]]), stop_id=4, pad_id=0, max_length=5).tolist()
    [[2, 3, 4], [4, 0, 0]]
    """
    new = [token for token, _ in greedy_steps(step, prompt, stop_id, pad_id, max_length)]
    return torch.stack(new, 1) if new else prompt[:, :0]  # (batch, n)


def greedy_steps(
    step: Step, prompt: Tensor, stop_id: int, pad_id: int, max_length: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields each step of `greedy_decode`: the new tokens (batch,) and their logits (batch, vocab_size)."""
    yield from _one_path(step, prompt, stop_id, pad_id, max_length, choose=lambda logits: logits.argmax(-1))


def sample_decode(
    step: Step,
    prompt: Tensor,
    stop_id: int,
    pad_id: int,
    max_length: int,
    *,
    generator: torch.Generator,
    temperature: float = 1.0,
    k: int | None = None,
    p: float = 1.0,
) -> Tensor:
    """Each token drawn by its probability: the new tokens (batch, n). Other arguments as in `greedy_decode`.

    `generator` is drawn from on its own device; the other options are those of `next_probabilities`.

    >>> def count_up(ids): return 100.0 * torch.nn.functional.one_hot(ids + 1, 6)
    >>> chance = torch.Generator().manual_seed(0)
    >>> sample_decode(count_up, torch.tensor([[1]]), 4, 0, 5, generator=chance).tolist()
    [[2, 3, 4]]
    """
    check_kind("generator", generator, torch.Generator, "a torch.Generator, such as torch.Generator().manual_seed(0)")

    def draw(logits: Tensor) -> Tensor:
        k_all = logits.shape[-1] if k is None else k
        rows = [next_probabilities(row, temperature, k_all, p) for row in logits]
        chances = torch.stack(rows).to(generator.device)  # (batch, vocab_size)
        return torch.multinomial(chances, 1, generator=generator)[:, 0].to(logits.device)  # (batch,)

    new = [token for token, _ in _one_path(step, prompt, stop_id, pad_id, max_length, choose=draw)]
    return torch.stack(new, 1) if new else prompt[:, :0]  # (batch, n)


def _one_path(
    step: Step, prompt: Tensor, stop_id: int, pad_id: int, max_length: int, *, choose: Callable[[Tensor], Tensor]
) -> Iterator[tuple[Tensor, Tensor]]:
    check_search(step, stop_id=stop_id, pad_id=pad_id)
    check_ids("prompt", prompt, dims=("batch", "length"))
    check_count("max_length", max_length, least=0)
    if not prompt.shape[1]:
        raise ValueError("prompt must hold a first token for each row, such as the start, got length 0")
    ids, ended = prompt, torch.zeros(len(prompt), dtype=torch.bool, device=prompt.device)
    for _ in range(max_length):
        if ended.all():
            return
        answer = step(ids)  # (batch, length or 1, vocab_size)
        if ids is prompt:
            check_answer(answer, ids, dims=("batch", "length", "vocab_size"))
        logits = answer[:, -1]  # (batch, vocab_size)
        token = choose(logits).masked_fill(ended, pad_id)  # (batch,)
        ended = ended | (token == stop_id)
        ids = torch.cat([ids, token[:, None]], 1)  # (batch, length + 1)
        yield token, logits
