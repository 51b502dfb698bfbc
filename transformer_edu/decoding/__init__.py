"""From logits to text: one token after the other, greedily, by chance, or with several hypotheses at once.

A step is any function that looks at the tokens so far and answers for the next one. `CachedStep` makes one of a model.
The lesson is notebooks/10_decoding.ipynb.
"""

from .beam import Beam, Hypothesis, beam_search, beam_steps
from .cached import CachedStep, attend_step, cached_causal_mask, reorder_cache
from .filters import next_probabilities, top_k_filter, top_p_filter
from .paths import greedy_decode, greedy_steps, sample_decode

__all__ = [
    "Beam",
    "CachedStep",
    "Hypothesis",
    "attend_step",
    "beam_search",
    "beam_steps",
    "cached_causal_mask",
    "greedy_decode",
    "greedy_steps",
    "next_probabilities",
    "reorder_cache",
    "sample_decode",
    "top_k_filter",
    "top_p_filter",
]
