"""Exercises of lesson 05: layer_norm, rms_norm, residual_block."""

from __future__ import annotations

from .layer_norm import LAYER_NORM
from .residual import RESIDUAL_BLOCK
from .rms_norm import RMS_NORM

__all__ = ["EXERCISES"]

EXERCISES = (LAYER_NORM, RMS_NORM, RESIDUAL_BLOCK)
