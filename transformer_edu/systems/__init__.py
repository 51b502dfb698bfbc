"""Four public from-scratch Transformers, each rebuilt from this course's parts.

    000  a speech encoder-decoder: post-norm, convolutions of width 1, uniform weights in empty rows
    001  the Annotated family: pre-norm, unbiased norm, scaled embeddings, log-probabilities
    002  one small projection for all heads, dropout behind the norms, no mask on the target's padding
    003  ESPnet's attention, plain and relative

Each has a builder, and a map from its own parameter names to ours: `load_weights(model, state, NAMES_000)`. What is
a fault of a system stays here, behind an option; the parts know nothing of it. The lesson is
notebooks/13_systems.ipynb.
"""

from .names import load_weights, our_name
from .system_000 import NAMES_000, KeepEverySecond, System000
from .system_001 import FAULTS_001, NAMES_001, System001
from .system_002 import NAMES_002, System002
from .system_003 import NAMES_003, attention_003

__all__ = [
    "FAULTS_001",
    "NAMES_000",
    "NAMES_001",
    "NAMES_002",
    "NAMES_003",
    "KeepEverySecond",
    "System000",
    "System001",
    "System002",
    "attention_003",
    "load_weights",
    "our_name",
]
