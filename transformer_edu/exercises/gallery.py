"""The search of a gallery for the mistake, or the mistakes, that do the same as the reader's function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from .mistakes import Mistake
from .outcome import Outcome, Probe, said, same_outcome, same_value

if TYPE_CHECKING:
    from .exercise import Exercise

NOTHING: Mapping[str, object] = MappingProxyType({})


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
        # What fits first on all but edge probes: mistakes, and what the reader may have chosen beside them.
        self.partly: tuple[Sequence[Mistake], Mapping[str, object]] | None = None
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
            for free in self._freedoms(group):
                if self._fits(group, free):
                    self.partly = self.partly or (group, free)
                    if self._same(group, self.edges, free):
                        wrong = self.exercise.runnable(*group, free=free)
                        if _telling(self.exercise, wrong, self.given, range(len(self.given))):
                            return group
        return None

    def _freedoms(self, group: Sequence[Mistake]) -> Iterator[Mapping[str, object]]:
        """What else the reader may have chosen beside these mistakes: nothing, or one of what is left to the reader."""
        yield NOTHING
        taken = {key for m in group for key in m.switches}
        yield from (free for free in self.exercise.free if taken and taken.isdisjoint(free))

    def without_edges(self) -> tuple[Sequence[Mistake], Probe | None] | None:
        """Where `exact` finds nothing: what explains all but some edge cases, and the first of them that is wrong."""
        if self.partly is None or self.numbers_wrong < 2:
            return None
        group, free = self.partly
        left = [i for i in sorted(self.edges) if not self._same(group, [i], free)]
        wrong = next((self.exercise.probes[i] for i in left if i not in self.right), None)
        return (group, wrong) if left else None

    def _groups(self) -> Iterator[Sequence[Mistake]]:
        """Single mistakes, then pairs, then triples; those that show on edge probes only join what fits without."""
        yield from ((m,) for m in self.exercise.mistakes)
        trunks, edges = ([m for m in self.switched if m.edge == edge] for edge in (False, True))
        for size in (2, 3):
            for n in range(min(size, len(edges)), max(size - self.exercise.at_once, 0) - 1, -1):
                pool = [m for m in trunks if not m.rare] if size - n == self.exercise.at_once else trunks
                for trunk in _independent(pool, size - n):
                    if self._plausible(trunk) and (n == 0 or self._fits(trunk)):
                        yield from ((*trunk, *extra) for extra in _independent(edges, n, trunk))

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
        once = twice = same = 0
        for m in group:
            spoils, as_reader = self.effects[id(m)]
            once, twice, same = once | spoils, twice | once & spoils, same | as_reader
        return not (once ^ self.spoiled | once & ~same) & ~twice

    @functools.cached_property
    def spoiled(self) -> int:
        """Which results the reader spoils on the most telling probe: a set, as the bits of a number."""
        return self._differing(self.given[self.core[0]], self.exercise.expected()[self.core[0]])

    @functools.cached_property
    def effects(self) -> dict[int, tuple[int, int]]:
        """For each mistake: which results it spoils on that probe, and in which of these it does as the reader."""
        first, found = self.core[0], {}
        for m in self.switched:
            outcome = self.exercise.outcome(self.exercise.runnable(m), first)
            spoils = self._differing(outcome, self.exercise.expected()[first])
            found[id(m)] = spoils, spoils & ~self._differing(outcome, self.given[first])
        return found

    def _differing(self, outcome: Outcome, other: Outcome) -> int:
        """Which results of two outcomes differ; all of them where there are not as many."""
        a, b = _results(outcome.value, self.numbers), _results(other.value, self.numbers)
        if outcome.error is not None or a is None:
            return (1 << self.numbers) - 1
        return sum(1 << j for j in range(self.numbers) if not same_value(a[j], b[j]))

    def _fits(self, group: Sequence[Mistake], free: Mapping[str, object] = NOTHING) -> bool:
        """Whether the group does the same as the reader on every probe that is not an edge case."""
        key = *map(id, group), id(free)
        if key not in self.fitting:
            self.fitting[key] = self._same(group, self.core, free)
        return self.fitting[key]

    def _same(self, group: Sequence[Mistake], probes: Sequence[int], free: Mapping[str, object] = NOTHING) -> bool:
        wrong = self.exercise.runnable(*group, free=free) if group else self.exercise.reference
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


def _independent(mistakes: Sequence[Mistake], size: int, beside: Sequence[Mistake] = ()) -> Iterator[tuple]:
    """The groups of so many mistakes that share no switch, neither among themselves nor with those beside them."""
    if size == 0:
        yield ()
        return
    taken = {key for m in beside for key in m.switches}
    for i, m in enumerate(mistakes):
        if taken.isdisjoint(m.switches):
            more = _independent(mistakes[i + 1 :], size - 1, (*beside, m)) if size > 1 else [()]
            yield from ((m, *rest) for rest in more)


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
