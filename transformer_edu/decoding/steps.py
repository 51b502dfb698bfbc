"""What a step must be, and what it must answer; its first answer is looked at, the others are of the same kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import Tensor

from ..errors import check_callable, check_float, check_int, shape_text
from ..model import Transformer

__all__ = ["Step", "check_answer", "check_search"]

Step = Callable[[Tensor], Tensor]  # ids (batch, length) -> what the next token may be


def check_search(step: object, **ids: int) -> None:
    """Raise unless `step` can be called with ids alone, and each special id is a whole number."""
    if isinstance(step, Transformer):
        raise TypeError(
            "step must be a function of the target ids alone, got a Transformer: CachedStep makes one of it"
        )
    check_callable("step", step, "step(ids)")
    for name, value in ids.items():
        check_int(name, value)


def check_answer(answer: object, ids: Tensor, *, dims: Sequence[str]) -> None:
    """Raise unless the answer to `ids` is a float tensor with these axes, a row for each of ids, and numbers in it."""
    check_float("step(ids)", answer, dims=dims)
    if len(answer) != len(ids) or (len(ids) and not answer.numel()):
        raise ValueError(
            f"step(ids) must have a row for each of the {len(ids)} rows of ids, and a number for each token, got "
            f"{shape_text(answer)} = ({', '.join(dims)})"
        )
    if not answer.is_meta and not (answer.amax(-1) > -math.inf).all():  # the largest of nan is nan
        got = "nan" if answer.isnan().any() else "-inf for each of them"
        raise ValueError(f"step(ids) must give some token in each row a chance, got {got}")
