"""How each kind of golden file about norms is computed with this package."""

from __future__ import annotations

from collections.abc import Callable

from golden_case import Case, Comparisons

RUNNERS: dict[str, Callable[[Case], Comparisons]] = {}
