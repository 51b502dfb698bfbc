"""Small tasks for training: made by code, on the CPU, the same on every machine; nothing is downloaded.

    task = number_words()
    train, test = task.examples(5000), task.examples(500, split="test")
    batch = task.batch_at(train, step=1)

Each example comes with its right alignment: which source tokens a target token is made from.
"""

from .alignment import alignment_matrix, alignment_score
from .draws import Draws, fingerprint
from .iso_dates import DATE_FORMATS, dates, written_date
from .sequences import copy, recall, reverse, sort
from .task import Batch, Example, Task, with_noise
from .vocabulary import Vocabulary
from .words import number_in_words, number_words

__all__ = [
    "DATE_FORMATS",
    "Batch",
    "Draws",
    "Example",
    "Task",
    "Vocabulary",
    "alignment_matrix",
    "alignment_score",
    "copy",
    "dates",
    "fingerprint",
    "number_in_words",
    "number_words",
    "recall",
    "reverse",
    "sort",
    "with_noise",
    "written_date",
]
