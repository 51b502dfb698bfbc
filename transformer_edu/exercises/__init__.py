"""Exercises that check the reader's own function and name its particular mistake.

>>> import torch
>>> verdict = load("masks.causal_mask").check(lambda length: torch.ones(length, length).bool().triu(), quiet=True)
>>> verdict.status, verdict.mistake
('wrong', 'flipped')
"""

from __future__ import annotations

import importlib

from .exercise import Exercise, Mistake, Probe, Result, Symptom, Verdict
from .wording import Difference

__all__ = ["Difference", "Exercise", "Mistake", "Probe", "Result", "Symptom", "Verdict", "load", "names"]

TOPICS = (
    "welcome",
    "masks",
    "attention",
    "heads",
    "feedforward",
    "norms",
    "positions",
    "relative",
    "model",
    "training",
    "decoding",
)


def names() -> list[str]:
    """The names of all exercises, in the order of the lessons."""
    return [exercise.name for topic in TOPICS for exercise in _topic(topic)]


def load(name: str) -> Exercise:
    """The exercise of that name. Raises ValueError for an unknown one."""
    for exercise in _topic(name.partition(".")[0]) if name.partition(".")[0] in TOPICS else ():
        if exercise.name == name:
            return exercise
    raise ValueError(f"name must be one of {', '.join(names())}, got {name!r}")


def _topic(topic: str) -> tuple[Exercise, ...]:
    return importlib.import_module(f".{topic}", __name__).EXERCISES
