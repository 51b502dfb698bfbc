"""System 003: the attention modules of a speech toolkit, plain and with relative positions."""

from __future__ import annotations

from ..errors import check_flag
from ..heads import MultiHeadAttention
from ..relative import XLPosition

__all__ = ["NAMES_003", "attention_003"]

NAMES_003 = (
    (r"linear_q\b", "query_projection.linear"),
    (r"linear_k\b", "key_projection.linear"),
    (r"linear_v\b", "value_projection.linear"),
    (r"linear_out\b", "output_projection"),
    (r"linear_pos\b", "position.distance_projection"),
    (r"pos_bias_u", "position.u"),
    (r"pos_bias_v", "position.v"),
)


def attention_003(
    *, d_model: int, n_heads: int, relative: bool = False, legacy: bool = True, dropout: float = 0.0
) -> MultiHeadAttention:
    """Plain attention, or attention in the manner of Transformer-XL; a query with nothing to attend to gets zeros.

    Args:
        relative: add the position terms u, v and the projected sinusoids of the distances.
        legacy: the first version has rows for the distances key - 1 to 0 alone, so that in an encoder its shift puts
            a 0 and then entries of the next row in the place of the future. False is the newer, bidirectional form.
        dropout: share of the weights set to 0 in training mode.

    >>> attention_003(d_model=8, n_heads=2, relative=True).position.u.shape
    torch.Size([2, 4])
    """
    check_flag("relative", relative)
    check_flag("legacy", legacy)
    position = XLPosition(d_model=d_model, n_heads=n_heads, causal=legacy) if relative else None
    return MultiHeadAttention(d_model=d_model, n_heads=n_heads, position=position, dropout=dropout)
