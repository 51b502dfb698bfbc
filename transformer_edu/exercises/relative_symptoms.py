"""What the exercises of lesson 07 ask of the outcomes: where is the reader right, and where not."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .attention_symptoms import NUMPY
from .exercise import Probe, Symptom
from .outcome import Outcome, same_outcome, same_value
from .symptoms import Seen

Results = list[tuple[Probe, Tensor, Tensor]]  # probe, right result, reader's


def right_only_where(seen: Seen, fits: Callable[[Probe], bool]) -> bool:
    """Whether every probe that fits is right, and some other one is wrong."""
    right = [(fits(p), same_outcome(e, g)) for p, e, g in seen]
    chosen = [r for f, r in right if f]
    return bool(chosen) and all(chosen) and not all(r for f, r in right if not f)


def results(seen: Seen, *, floats: bool = True, edges: bool = True) -> Results | None:
    """The results side by side; None unless the reader always gave numbers of the right kind and shape."""
    found: Results = []
    for probe, expected, given in seen:
        if edges or not probe.edge:
            if not _alike(expected, given, floats):
                return None
            found.append((probe, expected.value, given.value))
    return found if any(not same_outcome(e, g) for _, e, g in seen) else None


def _alike(expected: Outcome, given: Outcome, floats: bool) -> bool:
    y = given.value
    if given.error is not None or given.changed or not isinstance(y, Tensor) or y.shape != expected.value.shape:
        return False
    return y.is_floating_point() if floats else not (y.is_floating_point() or y.is_complex())


def _right_in_lists(seen: Seen) -> bool:
    """Every result is the right one in nested lists."""
    for _, expected, given in seen:
        if not isinstance(given.value, list):
            return False
        try:
            as_tensor = torch.tensor(given.value, dtype=expected.value.dtype)
        except (TypeError, ValueError, RuntimeError):
            return False
        if not same_value(expected.value, as_tensor):
            return False
    return True


NUMPY_IDS = Symptom(
    "numpy_result",
    "Your result is made by NumPy. Here it must be a torch tensor: torch.as_tensor makes one of it.",
    NUMPY.shows,
)
LIST_RESULT = Symptom(
    "list_result",
    "Your numbers are right, but they come in nested lists: torch.tensor makes a tensor of them.",
    _right_in_lists,
)
