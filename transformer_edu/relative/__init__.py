"""Relative positions: attention that sees how far apart two tokens stand, and not where.

    T5, ALiBi            scores + a number for the distance
    Shaw, Transformer-XL scores + query times a vector for the distance
    rotary               queries and keys turned by their positions, so that their dot product sees the distance

Each scheme is a function or two, and a part for `MultiHeadAttention(position=...)`. The lesson is
notebooks/07_relative.ipynb.
"""

from .alibi import AlibiPosition, alibi_bias, alibi_slopes
from .position import Position, distances, relative_shift
from .rotary import RotaryPosition, pairing_order, rope
from .shaw import ShawPosition, shaw_index
from .t5 import T5Position, t5_bucket
from .transformer_xl import XLPosition, causal_shift, relative_scores, relative_table

__all__ = [
    "AlibiPosition",
    "Position",
    "RotaryPosition",
    "ShawPosition",
    "T5Position",
    "XLPosition",
    "alibi_bias",
    "alibi_slopes",
    "causal_shift",
    "distances",
    "pairing_order",
    "relative_scores",
    "relative_shift",
    "relative_table",
    "rope",
    "shaw_index",
    "t5_bucket",
]
