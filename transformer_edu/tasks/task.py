"""What a task is: examples, each a source and a target, and batches of padded ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import (
    check_callable,
    check_choice,
    check_count,
    check_ids,
    check_int,
    check_kind,
    check_list,
    check_number,
)
from ..model.decoder_io import decoder_io
from .draws import Draws, fingerprint
from .vocabulary import Vocabulary

__all__ = ["Batch", "Example", "Task", "checked_examples", "with_noise"]

SPLITS = ("train", "test")
ONE_IN = 10  # keys that belong to the test set
PATIENCE = 2000  # draws in a row without anything new, before a split counts as used up


@dataclass(frozen=True)
class Example:
    """One source and the target that is right for it, both as tokens.

    `alignment` has for each target token the places of the source tokens it is made from, none where there are none.
    `key` says which examples are the same in different clothes: they are all in the training set, or all in the test.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[tuple[int, ...], ...]
    key: str


class Batch(NamedTuple):
    """Examples as padded ids, all int64."""

    source: Tensor  # (batch, source length)
    source_lengths: Tensor  # (batch,)
    target_in: Tensor  # (batch, target length): start and the target
    target_out: Tensor  # (batch, target length): the target and stop; -100 at padding, which a loss passes over
    target_lengths: Tensor  # (batch,): one more than the target has tokens

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        return Batch(*(tensor.to(device) for tensor in self))


@dataclass(frozen=True)
class Task:
    """A task that one can learn, with as many examples of it as one likes.

    An example's key decides by itself whether it belongs to the training or to the test set (one in ten does), so
    that the two are disjoint whatever the seeds and the numbers of examples.

    Args:
        name: begins the name of every stream of draws.
        source, target: the vocabularies.
        draw: makes one example out of draws.
    """

    name: str
    source: Vocabulary
    target: Vocabulary
    draw: Callable[[Draws], Example]

    def __post_init__(self) -> None:
        check_kind("name", self.name, str, "a text")
        check_kind("source", self.source, Vocabulary, "a Vocabulary")
        check_kind("target", self.target, Vocabulary, "a Vocabulary")
        check_callable("draw", self.draw, "draw(draws) -> Example")

    def examples(self, n: int, *, split: str = "train", seed: int = 0) -> list[Example]:
        """`n` examples of the "train" or the "test" set: of the same seed the same, everywhere.

        Those of the test set all differ in their keys; in training an example may come again, as in life.
        Raises ValueError if there are fewer than `n` such examples.
        """
        check_count("n", n)
        check_choice("split", split, SPLITS)
        check_int("seed", seed)
        draws = Draws(f"{self.name}/{split}/{seed}")
        found, seen, in_vain = [], set(), 0
        while len(found) < n:
            example = self.draw(draws)
            check_kind("what draw returns", example, Example, "an Example")
            in_vain += 1
            if self.split_of(example.key) == split and example.key not in seen:
                found.append(example)
                in_vain = 0
                if split == "test":
                    seen.add(example.key)
            elif in_vain == PATIENCE:
                raise ValueError(
                    f"{self.name}: {PATIENCE} draws after {len(found)} {split} examples brought no new one, and n is "
                    f"{n}: ask for fewer, or for longer sequences"
                )
        return found

    def split_of(self, key: str) -> str:
        """The set that examples with this key belong to."""
        return "train" if fingerprint(f"{self.name}/{key}") % ONE_IN else "test"

    def batch(self, examples: Sequence[Example]) -> Batch:
        """The examples as padded ids."""
        examples = checked_examples(examples)
        sources = [self.source.encode(example.source) for example in examples]
        targets = [self.target.encode(example.target) for example in examples]
        vocabulary = self.target
        target_in, target_out, lengths = decoder_io(targets, vocabulary.start_id, vocabulary.stop_id, vocabulary.pad_id)
        return Batch(*_padded(sources, self.source.pad_id), target_in, target_out, lengths)

    def batch_at(self, examples: Sequence[Example], step: int, *, batch_size: int = 64, seed: int = 0) -> Batch:
        """The batch of a training step: `batch_size` of the examples, drawn anew for each step.

        A function of the step alone: training that is taken up again at step 300 meets the same batches from there on.
        """
        check_kind("examples", examples, Sequence, "a list of Examples")
        _check_some(examples)
        check_count("batch_size", batch_size)
        check_count("step", step, least=0)
        check_int("seed", seed)
        draws = Draws(f"{self.name}/batch/{seed}/{step}")
        return self.batch([draws.choice(examples) for _ in range(batch_size)])

    def exact_match(self, answers: Tensor | Sequence[Sequence[int]], examples: Sequence[Example]) -> float:
        """The share of answers that are right from start to stop. `answers` holds ids, one row for each example."""
        examples = checked_examples(examples)
        check_list("answers", answers, of="rows of ids")
        if isinstance(answers, Tensor):
            check_ids("answers", answers, dims=("batch", "length"))
        rows = answers.tolist() if isinstance(answers, Tensor) else list(answers)
        if len(rows) != len(examples):
            raise ValueError(f"answers must have one row for each of the {len(examples)} examples, got {len(rows)}")
        right = [self.target.decode(row) == list(e.target) for row, e in zip(rows, examples, strict=True)]
        return sum(right) / len(right)


def _padded(rows: Sequence[Sequence[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    """(batch, longest) with `pad_id` behind each row's end, and the lengths (batch,)."""
    lengths = [len(row) for row in rows]
    longest = max(lengths)
    return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows]), torch.tensor(lengths)


def checked_examples(examples: Iterable[Example]) -> list[Example]:
    """The examples as a list, once they are known to be some, and Examples."""
    check_list("examples", examples, of="Examples")
    examples = list(examples)
    _check_some(examples)
    for i, example in enumerate(examples):
        check_kind(f"examples[{i}]", example, Example, "an Example")
    return examples


def _check_some(examples: Sequence[Example]) -> None:
    if not examples:
        raise ValueError("examples must hold at least one example, got none")


def with_noise(task: Task, examples: Sequence[Example], share: float, *, seed: int = 0) -> list[Example]:
    """The examples with some target tokens wrong: each with probability `share` becomes a random token.

    Any token of the target vocabulary may come, also the right one. The order of the examples does not matter to what
    becomes of one. Raises ValueError for a share outside 0..1.

    >>> from transformer_edu.tasks import copy
    >>> examples = with_noise(copy(), copy().examples(50), 0.5)
    >>> all(e.source == e.target for e in examples), all(len(e.source) == len(e.target) for e in examples)
    (False, True)
    """
    check_kind("task", task, Task, "a Task")
    check_number("share", share, least=0, most=1, why="it is the share of target tokens that are replaced")
    check_int("seed", seed)
    tokens = task.target.tokens[3:]
    noisy = []
    for example in checked_examples(examples):
        draws = Draws(f"{task.name}/noise/{seed}/{' '.join(example.source)}")
        hit = [draws.below(10**9) < share * 10**9 for _ in example.target]
        target = tuple(draws.choice(tokens) if h else t for h, t in zip(hit, example.target, strict=True))
        noisy.append(replace(example, target=target))
    return noisy
