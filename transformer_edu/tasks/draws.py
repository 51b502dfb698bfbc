"""Random draws that come out the same on every machine, in every version of Python and of torch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

from ..errors import check_count, check_kind

__all__ = ["Draws", "fingerprint"]

T = TypeVar("T")


def fingerprint(text: str) -> int:
    """The first 64 bits of the text's SHA-256. Unlike `hash`, which Python salts, the same everywhere and always.

    >>> fingerprint("abc") == 0xBA7816BF8F01CFEA
    True
    """
    check_kind("text", text, str, "a text")
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


class Draws:
    """A stream of random draws known by its name: two of the same name give the same draws.

    The i-th draw is the fingerprint of "name/i", and nothing else is kept: no global seed is read or changed.

    >>> draws, again = Draws("an example"), Draws("an example")
    >>> [draws.below(6) for _ in range(8)] == [again.below(6) for _ in range(8)]
    True
    """

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0

    def below(self, limit: int) -> int:
        """A whole number from 0 to limit - 1, each equally likely (up to limit / 2^64)."""
        check_count("limit", limit)
        self.count += 1
        return fingerprint(f"{self.name}/{self.count}") * limit >> 64

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""
        if not len(items):
            raise ValueError("items must hold at least one to choose, got none")
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], n: int) -> list[T]:
        """`n` different ones of the items, in random order."""
        check_kind("items", items, Iterable, "a list")
        check_count("n", n, least=0)
        rest = list(items)
        if n > len(rest):
            raise ValueError(f"n must be at most {len(rest)}, the number of items, got {n}")
        return [rest.pop(self.below(len(rest))) for _ in range(n)]
