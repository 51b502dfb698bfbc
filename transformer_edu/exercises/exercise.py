"""An exercise: what is right, small inputs that tell mistakes apart, and a gallery of runnable mistakes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from .outcome import Outcome, Probe, observe, same_outcome
from .sandbox import Budget, calm
from .wording import Complaint, Difference, Result, clean, complain

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
    """

    name: str
    sentence: str
    wrong: Callable | None = None
    switches: Mapping[str, object] = field(default_factory=dict)


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
            print(verdict.message)
        return verdict

    def expected(self, answer: Callable | None = None) -> list[Outcome]:
        """What the reference (or another right or wrong answer) does on each probe; computed once."""
        return [_outcome(self, answer or self.reference, i) for i in range(len(self.probes))]

    def named(self) -> Iterator[tuple[str, str, Callable]]:
        """(name, sentence, wrong function) of every single mistake, then of pairs, then of triples."""
        for mistake in self.mistakes:
            yield mistake.name, mistake.sentence, self.runnable(mistake)
        switched = [m for m in self.mistakes if m.switches]
        for size in (2, 3):
            for group in itertools.combinations(switched, size):
                keys = [key for m in group for key in m.switches]
                if len(keys) == len(set(keys)):
                    yield " + ".join(m.name for m in group), _several(group), self.runnable(*group)

    def runnable(self, *mistakes: Mistake) -> Callable:
        """The wrong function of a mistake, or of several at once."""
        if mistakes[0].wrong is not None:
            return mistakes[0].wrong
        return functools.partial(self.compound, **{k: v for m in mistakes for k, v in m.switches.items()})


def _several(mistakes: Sequence[Mistake]) -> str:
    number = {2: "Two", 3: "Three"}[len(mistakes)]
    return f"{number} things at once.\n" + "\n".join(f"{i}. {m.sentence}" for i, m in enumerate(mistakes, 1))


def _outcome(exercise: Exercise, fn: Callable, i: int) -> Outcome:
    """What a reference or a mistake does on probe `i`, computed once."""
    key = (i, *_key(fn))
    if key not in exercise.kept:
        exercise.kept[key] = observe(fn, exercise.probes[i], Budget())
    return exercise.kept[key]


def _key(fn: Callable) -> tuple:
    if isinstance(fn, functools.partial):
        return fn.func, fn.args, tuple(sorted(fn.keywords.items()))
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


def _unsteady(
    exercise: Exercise, fn: Callable, given: list[Outcome], budget: Budget
) -> tuple[str, str] | None:
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


def _diagnose(
    exercise: Exercise, fn: Callable, given: list[Outcome], complaints: list[Complaint | None]
) -> Verdict:
    first = _first_complaint(complaints)
    found = _in_gallery(exercise, given)
    if found is not None:
        name, sentence = found
        return _verdict(exercise, fn, "wrong", sentence, mistake=name, complaint=first)
    stale = _stale(exercise, given, complaints)
    if stale:
        return _verdict(exercise, fn, "wrong", stale, mistake="keeps_state", complaint=first)
    seen = list(zip(exercise.probes, exercise.expected(), given, strict=True))
    for symptom in exercise.symptoms:
        if symptom.shows(seen):
            return _verdict(exercise, fn, "wrong", symptom.sentence, mistake=symptom.name, complaint=first)
    partly = _in_gallery_without_edges(exercise, given)
    if partly is not None:
        (name, sentence), rest = partly
        text = f"{sentence}\nThat is not all: an edge case still differs when this is mended (input: {rest.says})."
        return _verdict(exercise, fn, "wrong", text, mistake=name, complaint=first)
    status = "error" if first.kind in ("raised", "called", "hung") else "wrong"
    return _verdict(exercise, fn, status, "", complaint=first)


def _first_complaint(complaints: list[Complaint | None]) -> Complaint:
    """The complaint about the smallest input, the gravest kind first."""
    grave = ("raised", "called", "kind", "dtype", "device", "shape", "changed", "finite", "value")
    order = {kind: i for i, kind in enumerate(grave)}
    return min((c for c in complaints if c), key=lambda c: order.get(c.kind, len(grave)))


def _in_gallery(exercise: Exercise, given: list[Outcome]) -> tuple[str, str] | None:
    """The first mistake, or pair or triple of mistakes, that does the same as the reader on every probe."""
    indices = range(len(given))
    for name, sentence, wrong in exercise.named():
        if all(same_outcome(_outcome(exercise, wrong, i), given[i]) for i in indices) and _telling(
            exercise, wrong, given, indices
        ):
            return name, sentence
    return None


def _telling(exercise: Exercise, wrong: Callable, given: list[Outcome], indices: Sequence[int]) -> bool:
    """Two functions that merely crash with one type of error are not the same: they must share a number or a text."""
    right = exercise.expected()
    for i in indices:
        mine, theirs = given[i], _outcome(exercise, wrong, i)
        if mine.error is not None:
            if str(mine.error) == str(theirs.error):
                return True
        elif not same_outcome(mine, right[i]):
            return True
    return False


def _in_gallery_without_edges(
    exercise: Exercise, given: list[Outcome]
) -> tuple[tuple[str, str], Probe] | None:
    """The mistake that explains every probe but some of the edge cases, and the first edge case left over."""
    core = [i for i, probe in enumerate(exercise.probes) if not probe.edge]
    right = exercise.expected()
    wrong_values = [i for i in core if given[i].error is None and not same_outcome(given[i], right[i])]
    if len(core) == len(given) or len(wrong_values) < 2:
        return None
    for name, sentence, wrong in exercise.named():
        if all(same_outcome(_outcome(exercise, wrong, i), given[i]) for i in core):
            edges = (i for i in range(len(given)) if not same_outcome(_outcome(exercise, wrong, i), given[i]))
            return (name, sentence), exercise.probes[next(edges)]
    return None


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
