"""What the exercises of lesson 10 share: models that are tables, and results of any kind made comparable."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .exercise import Mistake

__all__ = ["Script", "Table", "one", "plain", "table", "whole_numbers"]

VOCAB_SIZE = 10
LONGEST = 24  # what a model takes at most, as one with learned positions does: a loop without end meets an error


def one(key: str, name: str, sentence: str, *values: str, edge: bool = False, alone: bool = False) -> tuple:
    """One mistake that one switch makes, in each of several positions."""
    return tuple(Mistake(name, sentence, switches={key: value}, edge=edge, alone=alone) for value in values)


def whole_numbers(_: tuple, value: object) -> object:
    """For `Exercise.settled`: which dtype whole numbers have does not matter."""
    kinds = (torch.int32, torch.int16, torch.int8, torch.uint8)
    return value.long() if isinstance(value, Tensor) and value.dtype in kinds else value


def plain(x: object) -> object:
    """Tensors, arrays and tuples of numbers as Python's own numbers and lists."""
    if isinstance(x, (Tensor, np.ndarray, np.generic)):
        return x.tolist()
    return [plain(item) for item in x] if isinstance(x, (list, tuple)) else x


def _read(ids: Tensor) -> list[list[int]]:
    if ids.dim() != 2:
        raise ValueError(f"ids must have shape (batch, length), got {tuple(ids.shape)}")
    if ids.shape[1] == 0:
        raise IndexError("ids must hold at least one token in each row")
    if ids.shape[1] > LONGEST:
        raise IndexError(f"the model takes at most {LONGEST} tokens, got more")
    return ids.tolist()


@dataclass(frozen=True)
class Script:
    """A model that goes on with a prompt as it is written here: ids (batch, length) -> logits (batch, length, 10).

    Whatever stands behind the stop makes no difference; a row that is not a prompt and its continuation is answered
    with tokens that depend on all of it, and are neither stop nor pad.
    """

    lines: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]  # (prompt, its continuation) for each row
    stop: int = 2

    def __call__(self, ids: Tensor) -> Tensor:
        rows = [[_logits(self._next(tuple(row[: n + 1])), n) for n in range(len(row))] for row in _read(ids)]
        return torch.tensor(rows).view(*ids.shape, VOCAB_SIZE)

    def _next(self, prefix: tuple[int, ...]) -> int:
        for prompt, line in self.lines:
            n = len(prefix) - len(prompt)
            until = len(prompt) + (line.index(self.stop) + 1 if self.stop in line else len(line))
            if 0 <= n < len(line) and prefix[:until] == (prompt + line)[: len(prefix)][:until]:
                return line[n]
        return 3 + int(sum((i + 2) * token for i, token in enumerate(prefix))) % 5


def _logits(token: int, n: int) -> list[float]:
    """Ten different numbers, the largest for `token`."""
    row = [-((7 * w + 3 * token + n) % VOCAB_SIZE) / 4 for w in range(VOCAB_SIZE)]
    row[token] = 0.4 + token / 20 + 0.01 * n
    return row


Chances = Mapping[tuple[int, ...], Mapping[int, float]]


@dataclass(frozen=True)
class Table:
    """A model that is a table: ids (hypotheses, length) -> log-probabilities (hypotheses, vocab_size).

    `chances` gives, for what stands behind the start, the probabilities of the next token; where it gives nothing, the
    last of `chances` holds. A token that is left out has a log-probability of about `rest`.
    """

    chances: tuple[tuple[tuple[int, ...], tuple[tuple[int, float], ...]], ...]
    start: int = 1
    vocab_size: int = 5
    rest: float = -14.0

    def __call__(self, ids: Tensor) -> Tensor:
        known = dict(self.chances)
        rows = []
        for row in _read(ids):
            after = tuple(row[1:]) if row[0] == self.start else None
            rows.append(self._row(dict(known.get(after, self.chances[-1][1]))))
        return torch.tensor(rows)

    def _row(self, chances: dict[int, float]) -> list[float]:
        return [math.log(chances[w]) if w in chances else self.rest - w / 10 for w in range(self.vocab_size)]


def table(chances: Chances, otherwise: Mapping[int, float], **options: float) -> Table:
    """A table of probabilities; `otherwise` holds for every other prefix."""
    entries = [*chances.items(), ((-1,), otherwise)]
    return Table(tuple((prefix, tuple(row.items())) for prefix, row in entries), **options)
