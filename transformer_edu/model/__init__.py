"""The whole machine, put together from the parts of the lessons before.

Layers and stacks are modules that take ready parts; `build_transformer` makes a whole from a config. The lesson is
notebooks/08_model.ipynb.
"""

from .build import TransformerConfig, build_transformer, modern_layer
from .counts import ParameterRow, count_flops, count_parameters, parameter_table
from .decoder_io import IGNORE, decoder_io, shift_right
from .initial import initialise, tie_weights
from .layers import DecoderLayer, EncoderLayer, decoder_layer
from .stacks import Decoder, Embedding, Encoder, Transformer, build_stack, run_stack

__all__ = [
    "IGNORE",
    "Decoder",
    "DecoderLayer",
    "Embedding",
    "Encoder",
    "EncoderLayer",
    "ParameterRow",
    "Transformer",
    "TransformerConfig",
    "build_stack",
    "build_transformer",
    "count_flops",
    "count_parameters",
    "decoder_io",
    "decoder_layer",
    "initialise",
    "modern_layer",
    "parameter_table",
    "run_stack",
    "shift_right",
    "tie_weights",
]
