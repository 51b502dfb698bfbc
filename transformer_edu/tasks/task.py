"""What a task is: examples, each a source and a target; their vocabularies; and batches of padded ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import (
    check_callable,
    check_choice,
    check_count,
    check_float,
    check_ids,
    check_int,
    check_kind,
    check_list,
    check_number,
    check_tensor,
    shape_text,
)
from ..model.decoder_io import decoder_io
from .draws import Draws, fingerprint

__all__ = ["Batch", "Example", "Task", "Vocabulary", "alignment_matrix", "alignment_score", "with_noise"]

SPLITS = ("train", "test")
ONE_IN = 10  # keys that belong to the test set
PATIENCE = 2000  # draws in a row without anything new, before a split counts as used up


class Vocabulary:
    """Tokens and their ids. The first three ids are taken: 0 pads, 1 starts a target, 2 stops it.

    >>> vocabulary = Vocabulary(["ein", "zwei", "drei"])
    >>> vocabulary.encode(["drei", "ein"]), vocabulary.decode([1, 5, 3, 2, 0])
    ([5, 3], ['drei', 'ein'])
    """

    pad_id, start_id, stop_id = 0, 1, 2

    def __init__(self, tokens: Iterable[str]) -> None:
        if not isinstance(tokens, str):
            check_list("tokens", tokens, of="texts")
        tokens = tuple(tokens)
        for i, token in enumerate(tokens):
            check_kind(f"tokens[{i}]", token, str, "a text")
        self.tokens = ("<pad>", "<start>", "<stop>", *tokens)
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        if len(self._ids) != len(self.tokens):
            twice = next(token for token in self.tokens if self.tokens.count(token) > 1)
            raise ValueError(f"the tokens of a vocabulary must differ, got {twice!r} twice")

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Their ids, without start and stop. For a vocabulary of characters a plain string will do."""
        try:
            return [self._ids[token] for token in tokens]
        except KeyError as error:
            known = " ".join(self.tokens[3:])
            raise ValueError(f"token {error.args[0]!r} is not in the vocabulary, which holds: {known}") from error
        except TypeError as error:
            raise TypeError(f"tokens must be the texts of one sequence, got {tokens!r}") from error

    def decode(self, ids: Tensor | Iterable[int]) -> list[str]:
        """The tokens of one sequence up to its first stop; padding and start are left out."""
        ids = _whole(ids)
        end = ids.index(self.stop_id) if self.stop_id in ids else len(ids)
        return [token for i, token in zip(ids, self.labels(ids[:end]), strict=False) if i > self.stop_id]

    def labels(self, ids: Tensor | Iterable[int]) -> list[str]:
        """One token for each id, special ones too: what stands along the axis of a picture."""
        ids = _whole(ids)
        if wrong := [i for i in ids if not 0 <= i < len(self)]:
            raise ValueError(f"ids must lie in 0..{len(self) - 1}, the ids of the vocabulary, got {wrong[0]}")
        return [self.tokens[i] for i in ids]


def _whole(ids: Tensor | Iterable[int]) -> list[int]:
    """The ids of one sequence as Python's numbers."""
    if isinstance(ids, Tensor):
        check_ids("ids", ids, dims=("length",))
        return ids.tolist()
    try:
        return [index(i) for i in ids]
    except TypeError as error:
        raise TypeError(f"ids must be the whole numbers of one sequence, got {ids!r}") from error


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
        examples = _checked(examples)
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
        examples = _checked(examples)
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


def _checked(examples: Iterable[Example]) -> list[Example]:
    """The examples as a list, once they are known to be some, and Examples."""
    check_list("examples", examples, of="Examples")
    examples = list(examples)
    _check_some(examples)
    for i, example in enumerate(examples):
        if not isinstance(example, Example):
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
    for example in _checked(examples):
        draws = Draws(f"{task.name}/noise/{seed}/{' '.join(example.source)}")
        hit = [draws.below(10**9) < share * 10**9 for _ in example.target]
        target = tuple(draws.choice(tokens) if h else t for h, t in zip(hit, example.target, strict=True))
        noisy.append(replace(example, target=target))
    return noisy


def alignment_matrix(examples: Sequence[Example]) -> Tensor:
    """True where a target token is made from a source token: bool (batch, target length, source length).

    Row t belongs to label t of `target_out`, so the last row of each example, its stop, has no True: nor have rows of
    tokens without a counterpart, and padding.

    >>> example = Example(("forty", "two"), ("zwei", "und", "vierzig"), ((1,), (), (0,)), "42")
    >>> alignment_matrix([example])[0].int().tolist()
    [[0, 1], [0, 0], [1, 0], [0, 0]]
    """
    examples = _checked(examples)
    n_targets = max(len(example.target) for example in examples) + 1
    n_sources = max(len(example.source) for example in examples)
    matrix = torch.zeros(len(examples), n_targets, n_sources, dtype=torch.bool)
    for row, example in enumerate(examples):
        _check_places(f"examples[{row}]", example)
        for target, sources in enumerate(example.alignment):
            matrix[row, target, list(sources)] = True
    return matrix


def _check_places(name: str, example: Example) -> None:
    n_sources, n_targets = len(example.source), len(example.target)
    places = [place for sources in example.alignment for place in sources]
    if len(example.alignment) > n_targets or not all(0 <= place < n_sources for place in places):
        raise ValueError(
            f"the alignment of {name} must have places in 0..{n_sources - 1} for each of its {n_targets} target "
            f"tokens, got {example.alignment}"
        )


def alignment_score(weights: Tensor, alignment: Tensor) -> float:
    """The share of target tokens whose largest weight lies on a source token that they are made from.

    Args:
        weights: (batch, target length, source length), those of one head or the mean over heads.
        alignment: bool, the same shape, from `alignment_matrix`. Rows without any True do not count.

    >>> alignment_score(torch.tensor([[[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]]]), alignment_matrix([Example(
    ...     ("one", "two"), ("zwei", "eins"), ((1,), (0,)), "")]))
    1.0
    """
    check_float("weights", weights, dims=("batch", "target", "source"))
    check_tensor("alignment", alignment, dims=("batch", "target", "source"))
    if alignment.dtype != torch.bool:
        raise ValueError(f"alignment must have dtype bool, as alignment_matrix gives it, got {alignment.dtype}")
    if weights.shape != alignment.shape:
        raise ValueError(
            f"weights and alignment must have one shape (batch, target, source), got {shape_text(weights)} and "
            f"{shape_text(alignment)}"
        )
    if weights.isnan().any():
        raise ValueError("weights must be numbers, got nan")
    counts = alignment.any(-1)  # (batch, target)
    if not counts.any():
        raise ValueError("alignment must have a True somewhere: there is nothing to score")
    hits = alignment.to(weights.device).gather(-1, weights.argmax(-1, keepdim=True))[..., 0]  # (batch, target)
    return hits[counts.to(hits.device)].double().mean().item()
