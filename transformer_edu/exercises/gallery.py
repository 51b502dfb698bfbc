"""The search of a gallery for the mistake, or the mistakes, that do the same as the reader's function."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from .mistakes import Mistake
from .outcome import Outcome, Probe, said, same_outcome, same_value

if TYPE_CHECKING:
    from .exercise import Exercise


class Gallery:
    """The search of an exercise's gallery for what does the same as the reader."""

    def __init__(self, exercise: Exercise, given: list[Outcome]) -> None:
        self.exercise, self.given = exercise, given
        right = exercise.expected()
        wrong = {i for i, outcome in enumerate(given) if not same_outcome(outcome, right[i])}
        # What went wrong tells most, and a number more than an error: it comes first.
        probes = sorted(range(len(given)), key=lambda i: (i not in wrong, given[i].error is not None))
        self.core = [i for i in probes if not exercise.probes[i].edge]
        self.edges = [i for i in probes if exercise.probes[i].edge]
        self.fitting: dict[tuple, bool] = {}
        self.compared: dict[tuple[int, int], bool] = {}
        self.right = [i for i in probes if i not in wrong]
        self.effects: dict[tuple[int, int], str] = {}
        self.numbers = 0  # how many results can be told apart on the most telling probe
        if self.core and given[self.core[0]].error is None:
            theirs, mine = right[self.core[0]].value, given[self.core[0]].value
            several = isinstance(theirs, list) and isinstance(mine, list) and len(mine) == len(theirs)
            self.numbers = len(theirs) if several else 1
        self.numbers_wrong = sum(given[i].error is None for i in wrong.intersection(self.core))

    @functools.cached_property
    def kept(self) -> dict[int, set[int]]:
        """For each ordinary probe: which of several results the reader has right."""
        right = self.exercise.expected()
        return {i: _right_results(self.given[i].value, right[i].value) for i in self.core}

    @functools.cached_property
    def switched(self) -> list[Mistake]:
        """What may be one of several mistakes: nothing that is wrong where the reader is right."""
        joining = (m for m in self.exercise.mistakes if m.switches and not m.alone)
        return [m for m in joining if self._same([m], self.right) and self._may_join(m)]

    @functools.cached_property
    def raising(self) -> set[int] | None:
        """Where the reader's function raises, one of several mistakes must raise by itself: these do."""
        raised = next((i for i in self.core if self.given[i].error is not None), None)
        if raised is None:
            return None
        wrong = [(m, self.exercise.runnable(m)) for m in self.switched]
        return {id(m) for m, fn in wrong if self.exercise.outcome(fn, raised).error is not None}

    def exact(self) -> Sequence[Mistake] | None:
        """The first mistake, or pair or triple of mistakes, that does the same as the reader on every probe."""
        for group in self._groups():
            if self._fits(group) and self._same(group, self.edges):
                wrong = self.exercise.runnable(*group)
                if _telling(self.exercise, wrong, self.given, range(len(self.given))):
                    return group
        return None

    def without_edges(self) -> tuple[Sequence[Mistake], Probe] | None:
        """The mistakes that explain every probe but some of the edge cases, and the first edge case left over."""
        if self.edges and self.numbers_wrong >= 2:
            for group in self._groups():
                if self._fits(group):
                    left = next((i for i in sorted(self.edges) if not self._same(group, [i])), None)
                    return None if left is None else (group, self.exercise.probes[left])
        return None

    def _groups(self) -> Iterator[Sequence[Mistake]]:
        """Single mistakes, then pairs, then triples; those that show on edge probes only join what fits without."""
        yield from ((m,) for m in self.exercise.mistakes)
        trunks, edges = ([m for m in self.switched if m.edge == edge] for edge in (False, True))
        for size in (2, 3):
            for n in range(min(size, len(edges)), max(size - self.exercise.at_once, 0) - 1, -1):
                pool = [m for m in trunks if not m.rare] if size - n == self.exercise.at_once else trunks
                for trunk in itertools.combinations(pool, size - n):
                    if _independent(trunk) and self._plausible(trunk) and (n == 0 or self._fits(trunk)):
                        groups = ((*trunk, *extra) for extra in itertools.combinations(edges, n))
                        yield from filter(_independent, groups)

    def _may_join(self, mistake: Mistake) -> bool:
        """Not if it spoils one of several results where the reader has that one right."""
        for i, kept in self.kept.items():
            if kept:
                value = self.exercise.outcome(self.exercise.runnable(mistake), i).value
                if not kept <= _right_results(value, self.exercise.expected()[i].value):
                    return False
        return True

    def _plausible(self, group: Sequence[Mistake]) -> bool:
        """Whether several mistakes may together do the same as the reader, judged by what each does alone.

        Where the reader's function raises, one of them must raise. Where a result of the reader's is wrong, one of them
        must spoil it, and if only one does, its result must be the reader's.
        """
        if self.raising is not None and not any(id(m) in self.raising for m in group):
            return False
        for j in range(self.numbers):
            effects = [self._effect(m, j) for m in group]
            spoilers = [effect for effect in effects if effect != "right"]
            if len(spoilers) < 2 and (spoilers or ["right"])[0] != self._effect(None, j):
                return False
        return True

    def _effect(self, mistake: Mistake | None, j: int) -> str:
        """What a mistake (None: the reader) makes of result `j` on the most telling probe: right, reader's or other."""
        key = id(mistake), j
        if key not in self.effects:
            i = self.core[0]
            right, mine = (_results(x.value, self.numbers) for x in (self.exercise.expected()[i], self.given[i]))
            if mistake is None:
                theirs = mine
            else:
                outcome = self.exercise.outcome(self.exercise.runnable(mistake), i)
                theirs = _results(outcome.value, self.numbers) if outcome.error is None else None
            if theirs is None:
                self.effects[key] = "other"
            elif same_value(theirs[j], right[j]):
                self.effects[key] = "right"
            else:
                self.effects[key] = "reader's" if same_value(theirs[j], mine[j]) else "other"
        return self.effects[key]

    def _fits(self, group: Sequence[Mistake]) -> bool:
        """Whether the group does the same as the reader on every probe that is not an edge case."""
        key = tuple(map(id, group))
        if key not in self.fitting:
            self.fitting[key] = self._same(group, self.core)
        return self.fitting[key]

    def _same(self, group: Sequence[Mistake], probes: Sequence[int]) -> bool:
        wrong = self.exercise.runnable(*group) if group else self.exercise.reference
        return all(self._same_on(i, self.exercise.outcome(wrong, i)) for i in probes)

    def _same_on(self, i: int, outcome: Outcome) -> bool:
        key = i, id(outcome)  # outcomes are kept by the exercise, so an id stays one outcome's
        if key not in self.compared:
            allowed = self.given[i].refused and bool(self.exercise.probes[i].may_raise)
            self.compared[key] = allowed or same_outcome(outcome, self.given[i])
        return self.compared[key]


def _results(value: object, number: int) -> list | None:
    """The results as a list; None where they are not so many."""
    if number == 1:
        return [value]
    return value if isinstance(value, list) and len(value) == number else None


def _right_results(given: object, right: object) -> set[int]:
    """Which of several results are right; none where there is one result, or another number of them."""
    if not (isinstance(given, list) and isinstance(right, list) and len(given) == len(right)):
        return set()
    return {j for j, (a, b) in enumerate(zip(given, right, strict=True)) if same_value(a, b)}


def _independent(group: Sequence[Mistake]) -> bool:
    keys = [key for m in group for key in m.switches]
    return len(keys) == len(set(keys))


def _telling(exercise: Exercise, wrong: Callable, given: list[Outcome], indices: Sequence[int]) -> bool:
    """Two functions that merely crash with one type of error are not the same: they must share a number or a text."""
    right = exercise.expected()
    for i in indices:
        mine, theirs = given[i], exercise.outcome(wrong, i)
        if mine.refused:
            continue
        if mine.error is not None:
            if said(mine.error) == said(theirs.error):
                return True
        elif not same_outcome(mine, right[i]):
            return True
    return False
