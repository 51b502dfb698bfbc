"""The exercises of lesson 10, from one path through the tokens to the cache."""

from __future__ import annotations

from .decoding_beam import BEAM_SEARCH
from .decoding_cache import ATTEND_STEP, CACHED_CAUSAL_MASK, REORDER_CACHE
from .decoding_chances import NEXT_PROBABILITIES
from .decoding_filters import TOP_K_FILTER
from .decoding_greedy import GREEDY_DECODE
from .decoding_top_p import TOP_P_FILTER

__all__ = ["EXERCISES"]

EXERCISES = (
    GREEDY_DECODE,
    TOP_K_FILTER,
    TOP_P_FILTER,
    NEXT_PROBABILITIES,
    BEAM_SEARCH,
    CACHED_CAUSAL_MASK,
    ATTEND_STEP,
    REORDER_CACHE,
)
