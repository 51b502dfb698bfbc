"""Training a Transformer: the loss, the learning rate, the step, the loop, and its state on disk.

The target is shown to the decoder one place to the right (`shift_right`), so that all its tokens are learnt at
once: teacher forcing. The lesson is notebooks/09_training.ipynb.
"""

from ..model import shift_right
from .calibration import Calibration, calibration
from .checkpoints import load_checkpoint, load_weights, save_checkpoint
from .loop import fit
from .losses import joined_loss, kl_divergence, label_smoothing, perplexity, sequence_loss, smoothed_targets
from .schedules import cosine_lr, linear_lr, noam_lr, set_lr
from .steps import accumulated_step, train_step

__all__ = [
    "Calibration",
    "accumulated_step",
    "calibration",
    "cosine_lr",
    "fit",
    "joined_loss",
    "kl_divergence",
    "label_smoothing",
    "linear_lr",
    "load_checkpoint",
    "load_weights",
    "noam_lr",
    "perplexity",
    "save_checkpoint",
    "sequence_loss",
    "set_lr",
    "shift_right",
    "smoothed_targets",
    "train_step",
]
