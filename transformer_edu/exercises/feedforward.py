"""The exercises of lesson 04: feed_forward, swiglu."""

from .gated_feedforward import SWIGLU
from .plain_feedforward import FEED_FORWARD

EXERCISES = (FEED_FORWARD, SWIGLU)
