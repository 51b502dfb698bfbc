"""An exercise: what is right, small inputs that tell mistakes apart, and the judgement of a reader's function."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from .gallery import Gallery
from .mistakes import Mistake, Symptom, each, switch
from .outcome import Outcome, Probe, observe, said, same_outcome
from .sandbox import Budget, calm
from .wording import Complaint, Difference, Result, clean, complain, wrapped

__all__ = ["Exercise", "Mistake", "Probe", "Result", "Symptom", "Verdict", "each", "switch"]

Seen = list[tuple[Probe, Outcome, Outcome]]  # probe, expected, given
MARKS = {"correct": "✓", "wrong": "✗", "error": "✗", "not attempted": "○"}


@dataclass(frozen=True)
class Verdict:
    """What came of checking one function."""

    exercise: Exercise
    status: str  # "correct" | "wrong" | "error" | "not attempted"
    mistake: str | None
    message: str
    difference: Difference | None = field(default=None, repr=False)
    fn: object = field(default=None, repr=False)

    def carry_forward(self) -> Callable:
        """The reader's function if it is correct, else the reference, so that the lesson can go on."""
        return self.fn if self.status == "correct" else self.exercise.reference


@dataclass(frozen=True, repr=False)
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
    settled: (arguments, result) -> the result with what does not matter in it as the reference has it; called on every
        result, whatever it is.
    free: switches of `compound` with which it is right as well: what is left to the reader. Each mistake with switches
        is also tried beside each of them.
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
    settled: Callable[[tuple, object], object] | None = None
    free: Sequence[Mapping[str, object]] = ()
    kept: dict[tuple, Outcome] = field(default_factory=dict, repr=False, compare=False)  # outcomes never change

    def __repr__(self) -> str:
        return f"Exercise({self.name!r})"

    def check(self, fn: Callable, quiet: bool = False) -> Verdict:
        """Judge `fn`; prints the message unless `quiet`. Never raises on what `fn` does."""
        with calm() as printed:
            try:
                verdict = _judge(self, fn)
            except Exception as error:  # a result that cannot even be looked at, such as one whose == raises
                text = f"What it returns cannot be compared: {type(error).__name__}: {clean(said(error))}"
                verdict = _verdict(self, fn, "error", text)
        if printed.getvalue() and verdict.status != "not attempted":
            note = f"{verdict.message}\n(What your function prints is hidden while it is checked.)"
            verdict = Verdict(self, verdict.status, verdict.mistake, note, verdict.difference, fn)
        if not quiet:
            print(wrapped(verdict.message))
        return verdict

    def expected(self, answer: Callable | None = None) -> list[Outcome]:
        """What the reference (or another right or wrong answer) does on each probe; computed once."""
        return [self.outcome(answer or self.reference, i) for i in range(len(self.probes))]

    def outcome(self, fn: Callable, i: int) -> Outcome:
        """What a reference or a mistake does on probe `i`, computed once."""
        key = (i, *_key(fn, self.probes[i].blind_to))
        if key not in self.kept:
            self.kept[key] = self.observed(fn, self.probes[i])
        return self.kept[key]

    def observed(self, fn: Callable, probe: Probe, budget: Budget | None = None) -> Outcome:
        """What `fn` does on `probe`; a result that may broadcast is expanded to the size that is expected."""
        outcome = observe(fn, probe, budget)
        if self.settled is not None and outcome.error is None:
            outcome.value = self.settled(probe.untouched, outcome.value)
        if self.broadcast and fn is not self.reference and isinstance(outcome.value, Tensor):
            shape = self.outcome(self.reference, list(self.probes).index(probe)).value.shape
            fits = outcome.value.dim() == len(shape) and all(
                x in (1, y) for x, y in zip(outcome.value.shape, shape, strict=True)
            )
            outcome.value = outcome.value.expand(shape) if fits else outcome.value
        return outcome

    def runnable(self, *mistakes: Mistake, free: Mapping[str, object] | None = None) -> Callable:
        """The wrong function of a mistake, or of several at once, perhaps beside what is left to the reader."""
        if mistakes[0].wrong is not None:
            return mistakes[0].wrong
        return functools.partial(
            self.compound, **{k: v for m in mistakes for k, v in m.switches.items()}, **(free or {})
        )


def _name(group: Sequence[Mistake]) -> str:
    return " + ".join(m.name for m in group)


def _sentence(group: Sequence[Mistake]) -> str:
    if len(group) == 1:
        return group[0].sentence
    number = {2: "Two", 3: "Three"}[len(group)]
    sentences = (f"{i}. {m.beside or m.sentence}" for i, m in enumerate(group, 1))
    return f"{number} things at once.\n" + "\n".join(sentences)


def _key(fn: Callable, blind_to: Sequence[str] = ()) -> tuple:
    if isinstance(fn, functools.partial):
        return fn.func, fn.args, frozenset((k, v) for k, v in fn.keywords.items() if k not in blind_to)
    return (fn,)


def _judge(exercise: Exercise, fn: object) -> Verdict:
    if not callable(fn):
        return _verdict(exercise, fn, "error", f"A function was expected, but this is of type {type(fn).__name__}.")
    budget, given = Budget(), []
    for probe in exercise.probes:
        outcome = exercise.observed(fn, probe, budget)
        if _not_attempted(outcome) and not given:
            return _verdict(exercise, fn, "not attempted", "")
        given.append(outcome)
        if outcome.hung:
            complaint = complain(probe, outcome, outcome, exercise.results)
            return _verdict(exercise, fn, "error", complaint.text)
        if outcome.huge:
            complaint = complain(probe, exercise.outcome(exercise.reference, len(given) - 1), outcome, exercise.results)
            return _verdict(exercise, fn, "wrong", "", complaint=complaint)
    complaints = _complaints(exercise, given)
    unsteady = _unsteady(exercise, fn, given, budget)
    if not any(complaints) and unsteady is None:
        return _verdict(exercise, fn, "correct", "")
    if unsteady is not None:
        return _verdict(exercise, fn, "wrong", unsteady[1], mistake=unsteady[0])
    return _diagnose(exercise, fn, given, complaints)


def _not_attempted(outcome: Outcome) -> bool:
    """Raised NotImplementedError itself; torch raises it too, but says then which operator is missing."""
    return isinstance(outcome.error, NotImplementedError) and "aten::" not in said(outcome.error)


def _complaints(exercise: Exercise, given: list[Outcome]) -> list[Complaint | None]:
    """What is wrong with each outcome, measured against the right answer that it is nearest to."""
    best: list[Complaint | None] | None = None
    for answer in (exercise.reference, *exercise.alternatives):
        triples = zip(exercise.probes, exercise.expected(answer), given, strict=True)
        found = [complain(p, e, g, exercise.results) for p, e, g in triples]
        if best is None or sum(map(bool, found)) < sum(map(bool, best)):
            best = found
    return best


def _unsteady(exercise: Exercise, fn: Callable, given: list[Outcome], budget: Budget) -> tuple[str, str] | None:
    """(name, sentence) of a function that does not give the same answer to the same question."""
    for i in (0, min(2, len(given) - 1)):
        probe = exercise.probes[i]
        again = exercise.observed(fn, probe, budget)
        if same_outcome(again, given[i]) or given[i].error is not None:
            continue
        if again.hung:
            return "keeps_state", (
                "Called a second time with the same input, it did not finish: it keeps something between two calls."
            )
        if _random(exercise, fn, probe, budget):
            return "random", (
                "Two calls with the same input give different results: something random is left in it, such as "
                "dropout that is always on, weights drawn anew in each call, or a token drawn by chance."
            )
        if again.error is not None:
            raised = complain(probe, given[i], again, exercise.results)
            return "keeps_state", (
                "Called once more with the same input, it fails: it keeps something from one call to the next, such as "
                f"an iterator or a list that it uses up.\n{raised.text if raised else ''}"
            ).strip()
        return "keeps_state", (
            "Two calls with the same input give different results: it keeps something from one call to the next, such "
            "as a counter, a cache or a tensor that it changes."
        )
    return None


def _random(exercise: Exercise, fn: Callable, probe: Probe, budget: Budget) -> bool:
    """Whether the seeds decide what comes out: the same with the same seed, and something else with some other."""
    outcomes = []
    for seed in (0, 0, 1, 2, 3):
        torch.manual_seed(seed), np.random.seed(seed), random.seed(seed)
        outcomes.append(exercise.observed(fn, probe, budget))
    first, second, *others = outcomes
    return same_outcome(first, second) and not all(same_outcome(first, other) for other in others)


def _diagnose(exercise: Exercise, fn: Callable, given: list[Outcome], complaints: list[Complaint | None]) -> Verdict:
    gallery = Gallery(exercise, given)
    found = gallery.exact()
    if found is not None:
        first = _evidence(exercise, complaints, len(found))
        return _verdict(exercise, fn, "wrong", _sentence(found), mistake=_name(found), complaint=first)
    first = _evidence(exercise, complaints)
    stale = _stale(exercise, given, complaints)
    if stale:
        return _verdict(exercise, fn, "wrong", stale, mistake="keeps_state", complaint=first)
    partly = gallery.without_edges()
    if partly is not None:
        group, edge = partly
        first, text = _evidence(exercise, complaints, len(group)), _sentence(group)
        if edge is not None:
            text += f"\nThere may be more: it is also wrong on an edge case (input: {edge.says}). Mend this first."
        return _verdict(exercise, fn, "wrong", text, mistake=_name(group), complaint=first)
    seen = list(zip(exercise.probes, exercise.expected(), given, strict=True))
    for symptom in exercise.symptoms:
        if _shows(symptom, seen):
            return _verdict(exercise, fn, "wrong", symptom.sentence, mistake=symptom.name, complaint=first)
    first = _first_complaint(exercise, complaints)
    status = "error" if first.kind in ("raised", "called", "hung") else "wrong"
    return _verdict(exercise, fn, status, "", complaint=first)


def _shows(symptom: Symptom, seen: Seen) -> bool:
    """Whether a symptom shows; not, where it cannot even look at what came, such as a tensor of another dtype."""
    try:
        return symptom.shows(seen)
    except Exception:
        return False


def _evidence(exercise: Exercise, complaints: list[Complaint | None], mistakes: int = 1) -> Complaint:
    """The complaint that shows what is named best, on an ordinary input if one of them is wrong.

    The smallest on which numbers can be drawn; of several mistakes at once, the one on which fewest results are right.
    """
    ordinary = [None if probe.edge else c for probe, c in zip(exercise.probes, complaints, strict=True)]
    shown = ordinary if any(ordinary) else complaints
    if mistakes > 1:
        fewest = min(c.right for c in shown if c)
        shown = [c if c and c.right == fewest else None for c in shown]
    drawn = [c if c and c.difference else None for c in shown]
    return _first_complaint(exercise, drawn if any(drawn) else shown)


def _first_complaint(exercise: Exercise, complaints: list[Complaint | None]) -> Complaint:
    """The complaint about the smallest input, ordinary ones before edge cases, the gravest kind first."""
    grave = ("raised", "called", "kind", "dtype", "device", "shape", "changed", "finite", "value")
    order = {kind: i for i, kind in enumerate(grave)}
    pairs = zip(exercise.probes, complaints, strict=True)
    found = [(probe.edge, order.get(c.kind, len(grave)), c) for probe, c in pairs if c]
    return min(found, key=lambda item: item[:2])[-1]


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
