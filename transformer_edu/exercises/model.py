"""The exercises of lesson 08, one file for each."""

from __future__ import annotations

from .model_build_stack import BUILD_STACK
from .model_decoder_io import DECODER_IO
from .model_decoder_layer import DECODER_LAYER
from .model_run_stack import RUN_STACK
from .model_shift_right import SHIFT_RIGHT

__all__ = ["EXERCISES"]

EXERCISES = (DECODER_IO, SHIFT_RIGHT, DECODER_LAYER, BUILD_STACK, RUN_STACK)
