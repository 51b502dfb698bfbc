"""The exercises of lesson 07."""

from __future__ import annotations

from .exercise import Exercise

EXERCISES: tuple[Exercise, ...] = ()
