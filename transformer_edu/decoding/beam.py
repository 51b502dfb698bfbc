"""Several paths at once: beam search, as a function and round by round.

Sutskever et al. 2014, section 3.2; the length penalty: Wu et al. 2016, section 7 (here the plain n^alpha).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import check_count, check_number, shape_text
from .steps import Step, check_answer, check_search

__all__ = ["Beam", "Hypothesis", "beam_search", "beam_steps"]


@dataclass(frozen=True)
class Hypothesis:
    """New tokens, with the sum of their log-probabilities; `parent` is its place among the live ones before."""

    tokens: tuple[int, ...] = ()
    log_probability: float = 0.0
    parent: int = 0
    ended: bool = False

    def score(self, alpha: float = 0.0) -> float:
        """log_probability / n^alpha for n tokens, the stop included: alpha 0 favours short ones, 1 is a mean."""
        return self.log_probability / max(1, len(self.tokens)) ** alpha


@dataclass(frozen=True)
class Beam:
    """One round of the search: the best continuations, those of them that live on, and those that ended here."""

    live: tuple[Hypothesis, ...]
    ended: tuple[Hypothesis, ...]


def beam_search(
    step: Step, start_id: int, stop_id: int, beam: int, max_length: int, alpha: float = 0.0
) -> tuple[list[int], float]:
    """The best of many hypotheses: (its tokens without the start, its score).

    Args:
        step: ids (hypotheses, length) -> log-probabilities (hypotheses, vocab_size) of the next token.
        start_id: begins every hypothesis.
        stop_id: ends one; it counts as a token.
        beam: how many live hypotheses are kept.
        max_length: so many rounds, however many have ended by then; what is cut off there competes with what has ended.
        alpha: length penalty, see `Hypothesis.score`.

    >>> table = torch.tensor([[0.0, 0.6, 0.4], [0.0, 0.5, 0.5], [0.9, 0.05, 0.05]]).clamp(min=1e-9).log()
    >>> tokens, _ = beam_search(lambda ids: table[ids[:, -1]], start_id=0, stop_id=0, beam=1, max_length=2)
    >>> tokens  # the greedy path: 0.6 * 0.5
    [1, 1]
    >>> tokens, score = beam_search(lambda ids: table[ids[:, -1]], start_id=0, stop_id=0, beam=2, max_length=2)
    >>> tokens, round(2.718281828**score, 2)  # 0.4 * 0.9
    ([2, 0], 0.36)
    """
    check_number("alpha", alpha)
    finished = [
        hypothesis for state in beam_steps(step, start_id, stop_id, beam, max_length) for hypothesis in state.ended
    ]
    best = max(finished, key=lambda hypothesis: hypothesis.score(alpha))
    return list(best.tokens), best.score(alpha)


def beam_steps(step: Step, start_id: int, stop_id: int, beam: int, max_length: int) -> Iterator[Beam]:
    """Yields each round of `beam_search`, as long as a hypothesis lives. In the last one all are `ended`.

    From each round's continuations the 2 * beam best are looked at: among them at least `beam` do not end. A step with
    a method `reorder(parents)` is told which hypotheses live on, so that its cache can follow.
    """
    check_search(step, start_id=start_id, stop_id=stop_id)
    check_count("beam", beam)
    check_count("max_length", max_length)
    live = [Hypothesis()]
    for length in range(1, max_length + 1):
        ids = torch.tensor([[start_id, *hypothesis.tokens] for hypothesis in live])  # (live, length)
        log_probabilities = step(ids)
        if length == 1:
            _check_first(log_probabilities, ids)
        best = _continued(live, log_probabilities, 2 * beam)
        last = length == max_length
        ended = [h for h in best if h.tokens[-1] == stop_id or last]
        live = [h for h in best if h.tokens[-1] != stop_id and not last][:beam]
        yield Beam(tuple(live), tuple(Hypothesis(h.tokens, h.log_probability, h.parent, True) for h in ended))
        if not live:
            return
        if hasattr(step, "reorder"):
            step.reorder(torch.tensor([hypothesis.parent for hypothesis in live]))


def _check_first(log_probabilities: Tensor, ids: Tensor) -> None:
    way_out = "step(ids)[:, -1].log_softmax(-1) makes them of logits, as does CachedStep(..., log_probabilities=True)"
    if isinstance(log_probabilities, Tensor) and log_probabilities.dim() == 3:
        raise ValueError(
            "step(ids) must be log-probabilities (hypotheses, vocab_size) of the next token, got shape "
            f"{shape_text(log_probabilities)}: {way_out}"
        )
    check_answer(log_probabilities, ids, dims=("hypotheses", "vocab_size"))
    if (most := log_probabilities.max().item()) > 1e-2:  # with room for float16
        raise ValueError(f"step(ids) must be log-probabilities, which are at most 0, got {most:g}: {way_out}")


def _continued(live: list[Hypothesis], log_probabilities: Tensor, count: int) -> list[Hypothesis]:
    """The `count` likeliest continuations by one token, the best first; ties in their order."""
    sums = log_probabilities.double().cpu() + torch.tensor([[h.log_probability] for h in live], dtype=torch.float64)
    vocab_size = sums.shape[1]
    values, places = sums.flatten().sort(descending=True, stable=True)
    pairs = zip(values[:count].tolist(), places[:count].tolist(), strict=True)
    return [
        Hypothesis((*live[place // vocab_size].tokens, place % vocab_size), value, parent=place // vocab_size)
        for value, place in pairs
    ]
