"""Tokens and their ids."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index

from torch import Tensor

from ..errors import check_ids, check_kind, check_list

__all__ = ["Vocabulary"]


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
