"""Pictures: arrays and labels in, figures out. Nothing here knows a model.

Every function returns a `Picture`: `picture.figure` and `picture.axes` are matplotlib's, `picture.alt_text`
is one line that says what is seen, `picture.save(path)` writes a file. In a notebook it shows itself as the
last line of a cell, or by `picture.show()`.

Queries go downwards, keys to the right; weights have the scale 0 to 1, always; what the mask forbids is
hatched. Labels are any sequence of tokens (strings, numbers, a tensor of ids); where none are given,
positions are written.
"""

from .curves import lines
from .difference import difference_picture
from .flow import flow_picture
from .maps import attention_map, head_grid, mask_picture
from .picture import Picture
from .product import product_picture
from .tables import probability_map, value_map
from .trees import beam_tree

__all__ = [
    "Picture",
    "attention_map",
    "beam_tree",
    "difference_picture",
    "flow_picture",
    "head_grid",
    "lines",
    "mask_picture",
    "probability_map",
    "product_picture",
    "value_map",
]
