"""What a gallery is made of: mistakes that run, and symptoms that show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .outcome import Outcome, Probe

__all__ = ["Mistake", "Symptom", "each", "switch"]


@dataclass(frozen=True)
class Mistake:
    """A known mistake.

    Args:
        name: one word or a few joined by underscores; stable, tests and lecturers refer to it.
        sentence: speaks to the reader about the reader's tensor, true whenever `wrong` does what the reader's does.
        wrong: a runnable wrong implementation, or None where `switches` are given.
        switches: keyword arguments for the exercise's `compound`, the one implementation with switches.
        edge: it shows on edge probes only, alone or together with others.
        alone: it is never one of several; for a sentence that speaks of the whole result.
        beside: the sentence where it is one of several, if `sentence` holds only alone.
        rare: it is looked for only together with fewer others than the exercise's `at_once` allows.
    """

    name: str
    sentence: str
    wrong: Callable | None = None
    switches: Mapping[str, object] = field(default_factory=dict)
    edge: bool = False
    rare: bool = False
    alone: bool = False
    beside: str = ""


def switch(key: str, *values: str) -> tuple[dict[str, str], ...]:
    """One switch in several positions.

    >>> switch("scale", "none", "twice")
    ({'scale': 'none'}, {'scale': 'twice'})
    """
    return tuple({key: value} for value in values)


def each(
    name: str, sentence: str, *switches: Mapping[str, object], edge: bool = False, alone: bool = False
) -> tuple[Mistake, ...]:
    """One mistake that comes in several forms."""
    return tuple(Mistake(name, sentence, switches=s, edge=edge, alone=alone) for s in switches)


@dataclass(frozen=True)
class Symptom:
    """A mistake that no single function stands for, told by its outcomes: `shows(seen)` is True.

    `seen` is a list of (probe, expected, given) with the two outcomes. Tried only when nothing in the gallery
    matches, so it must be certain by itself.
    """

    name: str
    sentence: str
    shows: Callable[[list[tuple[Probe, Outcome, Outcome]]], bool]
