"""The exercises of lesson 09."""

from __future__ import annotations

from .training_joined import JOINED_LOSS, PERPLEXITY
from .training_rates import NOAM_LR
from .training_sequence import SEQUENCE_LOSS
from .training_smoothing import LABEL_SMOOTHING
from .training_step import TRAIN_STEP
from .training_targets import SMOOTHED_TARGETS

__all__ = ["EXERCISES"]

EXERCISES = (SEQUENCE_LOSS, JOINED_LOSS, PERPLEXITY, NOAM_LR, TRAIN_STEP, SMOOTHED_TARGETS, LABEL_SMOOTHING)
