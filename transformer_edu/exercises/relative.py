"""The exercises of lesson 07, one file for each, save that both of ALiBi share one."""

from __future__ import annotations

from .relative_alibi import ALIBI_BIAS, ALIBI_SLOPES
from .relative_rope import ROPE
from .relative_scores import RELATIVE_SCORES
from .relative_shaw import SHAW_INDEX
from .relative_shift import RELATIVE_SHIFT
from .relative_t5 import T5_BUCKET
from .relative_table import RELATIVE_TABLE

__all__ = ["EXERCISES"]

EXERCISES = (
    ALIBI_SLOPES,
    ALIBI_BIAS,
    T5_BUCKET,
    SHAW_INDEX,
    RELATIVE_TABLE,
    RELATIVE_SHIFT,
    RELATIVE_SCORES,
    ROPE,
)
