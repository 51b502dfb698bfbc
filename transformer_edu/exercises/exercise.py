"""An exercise: what is right, small inputs that tell mistakes apart, and a gallery of runnable mistakes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from .outcome import Outcome, Probe, observe, same_outcome, same_value
from .sandbox import Budget, calm
from .wording import Complaint, Difference, Result, clean, complain, wrapped

__all__ = ["Exercise", "Mistake", "Probe", "Result", "Symptom", "Verdict"]

MARKS = {"correct": "✓", "wrong": "✗", "error": "✗", "not attempted": "○"}


@dataclass(frozen=True)
class Mistake:
    """A known mistake.

    Args:
        name: one word or a few joined by underscores; stable, tests and lecturers refer to it.
        sentence: speaks to the reader about the reader's tensor, true whenever `wrong` does what the reader's does.
        wrong: a runnable wrong implementation, or None where `switches` are given.
        switches: keyword arguments for the exercise's `compound`, the one implementation with switches.
        edge: it shows on edge probes only, alone or together with others.
        rare: it is looked for only together with fewer others than the exercise's `at_once` allows.
    """

    name: str
    sentence: str
    wrong: Callable | None = None
    switches: Mapping[str, object] = field(default_factory=dict)
    edge: bool = False
    rare: bool = False


def switch(key: str, *values: str) -> tuple[dict[str, str], ...]:
    """One switch in several positions.

    >>> switch("scale", "none", "twice")
    ({'scale': 'none'}, {'scale': 'twice'})
    """
    return tuple({key: value} for value in values)


def each(name: str, sentence: str, *switches: Mapping[str, object], edge: bool = False) -> tuple[Mistake, ...]:
    """One mistake that comes in several forms."""
    return tuple(Mistake(name, sentence, switches=s, edge=edge) for s in switches)


@dataclass(frozen=True)
class Symptom:
    """A mistake that no single function stands for, told by its outcomes: `shows(seen)` is True.

    `seen` is a list of (probe, expected, given) with the two outcomes. Tried only when nothing in the gallery
    matches, so it must be certain by itself.
    """

    name: str
    sentence: str
    shows: Callable[[list[tuple[Probe, Outcome, Outcome]]], bool]


@dataclass(frozen=True)
class Verdict:
    """What came of checking one function."""

    exercise: Exercise
    status: str  # "correct" | "wrong" | "error" | "not attempted"
    mistake: str | None
    message: str
    difference: Difference | None = None
    fn: object = None

    def carry_forward(self) -> Callable:
        """The reader's function if it is correct, else the reference, so that the lesson can go on."""
        return self.fn if self.status == "correct" else self.exercise.reference


@dataclass(frozen=True)
class Exercise:
    """Args:
    name: "topic.function".
    reference: the right answer.
    probes: small inputs, smallest first; together they tell all mistakes apart.
    results: the names and axes of what the function returns.
    mistakes: the gallery, most specific first.
    compound: one wrong implementation with keyword switches, for mistakes that come two or three at a time.
    symptoms: mistakes without an implementation.
    broadcast: a result that broadcasts to the expected shape is accepted.
    alternatives: other right answers.
    at_once: how many mistakes with switches are tried together; those that show on edge probes only are not counted.
    """

    name: str
    reference: Callable
    probes: Sequence[Probe]
    results: Sequence[Result]
    mistakes: Sequence[Mistake] = ()
    compound: Callable | None = None
    symptoms: Sequence[Symptom] = ()
    broadcast: bool = False
    alternatives: Sequence[Callable] = ()
    at_once: int = 3
    kept: dict[tuple, Outcome] = field(default_factory=dict, repr=False, compare=False)  # outcomes never change

    def check(self, fn: Callable, quiet: bool = False) -> Verdict:
        """Judge `fn`; prints the message unless `quiet`. Never raises on what `fn` does."""
        with calm() as printed:
            try:
                verdict = _judge(self, fn)
            except Exception as error:  # a result that cannot even be looked at, such as one whose == raises
                text = f"What it returns cannot be compared: {type(error).__name__}: {clean(str(error))}"
                verdict = _verdict(self, fn, "error", text)
        if printed.getvalue() and verdict.status != "not attempted":
            note = f"{verdict.message}\n(What your function prints is hidden while it is checked.)"
            verdict = Verdict(self, verdict.status, verdict.mistake, note, verdict.difference, fn)
        if not quiet:
            print(wrapped(verdict.message))
        return verdict

    def expected(self, answer: Callable | None = None) -> list[Outcome]:
        """What the reference (or another right or wrong answer) does on each probe; computed once."""
        return [_outcome(self, answer or self.reference, i) for i in range(len(self.probes))]

    def runnable(self, *mistakes: Mistake) -> Callable:
        """The wrong function of a mistake, or of several at once."""
        if mistakes[0].wrong is not None:
            return mistakes[0].wrong
        return functools.partial(self.compound, **{k: v for m in mistakes for k, v in m.switches.items()})


def _name(group: Sequence[Mistake]) -> str:
    return " + ".join(m.name for m in group)


def _sentence(group: Sequence[Mistake]) -> str:
    if len(group) == 1:
        return group[0].sentence
    number = {2: "Two", 3: "Three"}[len(group)]
    return f"{number} things at once.\n" + "\n".join(f"{i}. {m.sentence}" for i, m in enumerate(group, 1))


def _outcome(exercise: Exercise, fn: Callable, i: int) -> Outcome:
    """What a reference or a mistake does on probe `i`, computed once."""
    key = (i, *_key(fn, exercise.probes[i].blind_to))
    if key not in exercise.kept:
        exercise.kept[key] = observe(fn, exercise.probes[i])
    return exercise.kept[key]


def _key(fn: Callable, blind_to: Sequence[str] = ()) -> tuple:
    if isinstance(fn, functools.partial):
        return fn.func, fn.args, frozenset((k, v) for k, v in fn.keywords.items() if k not in blind_to)
    return (fn,)


def _judge(exercise: Exercise, fn: object) -> Verdict:
    if not callable(fn):
        return _verdict(exercise, fn, "error", f"A function was expected, but this is of type {type(fn).__name__}.")
    budget, given = Budget(), []
    for probe in exercise.probes:
        outcome = observe(fn, probe, budget)
        if _not_attempted(outcome) and not given:
            return _verdict(exercise, fn, "not attempted", "")
        given.append(outcome)
        if outcome.hung:
            complaint = complain(probe, outcome, outcome, exercise.results)
            return _verdict(exercise, fn, "error", complaint.text)
    complaints = _complaints(exercise, given)
    unsteady = _unsteady(exercise, fn, given, budget)
    if not any(complaints) and unsteady is None:
        return _verdict(exercise, fn, "correct", "")
    if unsteady is not None:
        return _verdict(exercise, fn, "wrong", unsteady[1], mistake=unsteady[0])
    return _diagnose(exercise, fn, given, complaints)


def _not_attempted(outcome: Outcome) -> bool:
    """Raised NotImplementedError itself; torch raises it too, but says then which operator is missing."""
    return isinstance(outcome.error, NotImplementedError) and "aten::" not in str(outcome.error)


def _complaints(exercise: Exercise, given: list[Outcome]) -> list[Complaint | None]:
    """What is wrong with each outcome, measured against the right answer that it is nearest to."""
    best: list[Complaint | None] | None = None
    for answer in (exercise.reference, *exercise.alternatives):
        triples = zip(exercise.probes, exercise.expected(answer), given, strict=True)
        found = [complain(p, e, g, exercise.results, broadcast=exercise.broadcast) for p, e, g in triples]
        if best is None or sum(map(bool, found)) < sum(map(bool, best)):
            best = found
    return best


def _unsteady(exercise: Exercise, fn: Callable, given: list[Outcome], budget: Budget) -> tuple[str, str] | None:
    """(name, sentence) of a function that does not give the same answer to the same question."""
    for i in (0, min(2, len(given) - 1)):
        again = observe(fn, exercise.probes[i], budget)
        if same_outcome(again, given[i]) or again.hung or given[i].error is not None:
            continue
        pair = []
        for _ in range(2):
            torch.manual_seed(0)
            pair.append(observe(fn, exercise.probes[i], budget))
        if same_outcome(*pair):
            return "random", (
                "Two calls with the same input give different results: something random is left in it, such as "
                "dropout that is always on or weights drawn anew in each call."
            )
        return "keeps_state", (
            "Two calls with the same input give different results: it keeps something from one call to the next, such "
            "as a counter, a cache or a tensor that it changes."
        )
    return None


def _diagnose(exercise: Exercise, fn: Callable, given: list[Outcome], complaints: list[Complaint | None]) -> Verdict:
    first = _first_complaint(exercise, complaints)
    gallery = _Gallery(exercise, given)
    found = gallery.exact()
    if found is not None:
        return _verdict(exercise, fn, "wrong", _sentence(found), mistake=_name(found), complaint=first)
    stale = _stale(exercise, given, complaints)
    if stale:
        return _verdict(exercise, fn, "wrong", stale, mistake="keeps_state", complaint=first)
    partly = gallery.without_edges()
    if partly is not None:
        group, rest = partly
        left = f"That is not all: an edge case still differs when this is mended (input: {rest.says})."
        return _verdict(exercise, fn, "wrong", f"{_sentence(group)}\n{left}", mistake=_name(group), complaint=first)
    seen = list(zip(exercise.probes, exercise.expected(), given, strict=True))
    for symptom in exercise.symptoms:
        if symptom.shows(seen):
            return _verdict(exercise, fn, "wrong", symptom.sentence, mistake=symptom.name, complaint=first)
    status = "error" if first.kind in ("raised", "called", "hung") else "wrong"
    return _verdict(exercise, fn, status, "", complaint=first)


def _first_complaint(exercise: Exercise, complaints: list[Complaint | None]) -> Complaint:
    """The complaint about the smallest input, ordinary ones before edge cases, the gravest kind first."""
    grave = ("raised", "called", "kind", "dtype", "device", "shape", "changed", "finite", "value")
    order = {kind: i for i, kind in enumerate(grave)}
    pairs = zip(exercise.probes, complaints, strict=True)
    found = [(probe.edge, order.get(c.kind, len(grave)), c) for probe, c in pairs if c]
    return min(found, key=lambda item: item[:2])[-1]


class _Gallery:
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
        return [m for m in self.exercise.mistakes if m.switches and self._same([m], self.right) and self._may_join(m)]

    @functools.cached_property
    def raising(self) -> set[int] | None:
        """Where the reader's function raises, one of several mistakes must raise by itself: these do."""
        raised = next((i for i in self.core if self.given[i].error is not None), None)
        if raised is None:
            return None
        wrong = [(m, self.exercise.runnable(m)) for m in self.switched]
        return {id(m) for m, fn in wrong if _outcome(self.exercise, fn, raised).error is not None}

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
                value = _outcome(self.exercise, self.exercise.runnable(mistake), i).value
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
                outcome = _outcome(self.exercise, self.exercise.runnable(mistake), i)
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
        return all(self._same_on(i, _outcome(self.exercise, wrong, i)) for i in probes)

    def _same_on(self, i: int, outcome: Outcome) -> bool:
        key = i, id(outcome)  # outcomes are kept by the exercise, so an id stays one outcome's
        if key not in self.compared:
            self.compared[key] = same_outcome(outcome, self.given[i])
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
        mine, theirs = given[i], _outcome(exercise, wrong, i)
        if mine.refused:
            continue
        if mine.error is not None:
            if str(mine.error) == str(theirs.error):
                return True
        elif not same_outcome(mine, right[i]):
            return True
    return False


def _stale(exercise: Exercise, given: list[Outcome], complaints: list[Complaint | None]) -> str | None:
    """Every wrong answer is the right answer to an earlier question: the function remembers."""
    right = exercise.expected()
    for i, complaint in enumerate(complaints):
        if complaint and not any(
            same_outcome(given[i], right[j]) and not same_outcome(right[i], right[j]) for j in range(i)
        ):
            return None
    return (
        "It answers with what was right for an earlier call: something (a mask, a table, a first result) is kept and "
        "used again for an input that it does not belong to."
    )


def _verdict(
    exercise: Exercise,
    fn: object,
    status: str,
    text: str,
    *,
    mistake: str | None = None,
    complaint: Complaint | None = None,
) -> Verdict:
    headline = {
        "correct": "correct.",
        "not attempted": "not attempted yet. The lesson goes on with the reference.",
    }.get(status, "not right yet.")
    parts = [f"{MARKS[status]} {exercise.name}: {headline}", text, complaint.text if complaint else ""]
    message = "\n".join(part for part in parts if part)
    return Verdict(exercise, status, mistake, message, complaint.difference if complaint else None, fn)
