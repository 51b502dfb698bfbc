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
    RELATIVE_SHIFT,
    RELATIVE_TABLE,
    RELATIVE_SCORES,
    SHAW_INDEX,
    T5_BUCKET,
    ALIBI_SLOPES,
    ALIBI_BIAS,
    ROPE,
)
