"""Who may attend to whom.

A mask is a bool tensor that broadcasts to (batch, heads, query, key). **True = this query may attend to this
key**, as in `torch.nn.functional.scaled_dot_product_attention`. Masks are combined with `&`.
A query row may be left with no key at all (a sequence of length 0): that is no error here, and
`attention.scaled_dot_product_attention` gives such a row weights 0 and output 0.

Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3 (why the decoder needs a causal mask).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .errors import check_broadcast, check_count, check_divides, check_tensor, shape_text

__all__ = [
    "causal_mask",
    "chunk_mask",
    "combine_masks",
    "cross_mask",
    "decoder_mask",
    "empty_rows",
    "from_additive",
    "from_integers",
    "from_multihead",
    "padding_mask",
    "padding_mask_from_ids",
    "sliding_window_mask",
    "to_additive",
    "to_integers",
    "to_multihead",
]


# ---------------------------------------------------------------- padding
def padding_mask(lengths: Tensor | Sequence[int], max_length: int) -> Tensor:
    """True at the real tokens of each sequence, False at its padding. Shape (batch, 1, 1, key).

    `lengths` (batch,) holds the number of real tokens of each sequence, 0 to `max_length`; `max_length` is the
    width that the batch was padded to. Raises ValueError for a length outside 0..max_length and for lengths
    that are not whole numbers.

    >>> padding_mask([3, 1], 4)[:, 0, 0].int().tolist()
    [[1, 1, 1, 0], [1, 0, 0, 0]]
    """
    lengths = _checked_lengths(lengths, max_length)
    positions = torch.arange(max_length, device=lengths.device)  # (key,)
    real = positions < lengths[:, None]  # (batch, key)
    return real[:, None, None, :]  # (batch, 1, 1, key)


def padding_mask_from_ids(ids: Tensor, pad_id: int) -> Tensor:
    """True where `ids` (batch, length) is not `pad_id`. Shape (batch, 1, 1, key).

    Works for padding on either side. `pad_id` is the one of the vocabulary that `ids` come from: source and
    target may have different ones.

    >>> padding_mask_from_ids(torch.tensor([[7, 3, 0], [0, 5, 9]]), pad_id=0)[:, 0, 0].int().tolist()
    [[1, 1, 0], [0, 1, 1]]
    """
    check_tensor("ids", ids, dims=("batch", "length"))
    if isinstance(pad_id, bool) or not isinstance(pad_id, int):
        raise TypeError(f"pad_id must be an int, the id of the padding token, got {type(pad_id).__name__}")
    return (ids != pad_id)[:, None, None, :]  # (batch, 1, 1, key)


def _checked_lengths(
    lengths: Tensor | Sequence[int], max_length: int, name: str = "lengths", limit: str = "max_length"
) -> Tensor:
    """`lengths` as a tensor (batch,) of whole numbers in 0..max_length, called `name` and `limit` by the caller."""
    check_count(limit, max_length, least=0)
    try:
        lengths = torch.as_tensor(lengths)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} must be a tensor or a list of whole numbers, got {type(lengths).__name__}") from error
    if lengths.dim() == 0:
        raise ValueError(
            f"{name} must have 1 axis (batch), got a single number: put it into a list, [{lengths.item()}]"
        )
    check_tensor(name, lengths, dims=("batch",))
    if lengths.dtype == torch.bool or lengths.is_floating_point() or lengths.is_complex():
        if lengths.numel():
            raise ValueError(f"{name} must be whole numbers, got dtype {lengths.dtype}: {name}.long() makes them so")
        lengths = lengths.long()
    if lengths.is_meta:  # shapes without numbers: nothing to compare
        return lengths
    wrong = [n for n in lengths.tolist() if not 0 <= n <= max_length]
    if wrong:
        way_out = f"{limit} must be at least {max(wrong)}" if wrong[0] > 0 else "a sequence has 0 or more tokens"
        raise ValueError(f"{name} must lie in 0..{limit} ({max_length}), got {wrong[0]}: {way_out}")
    return lengths


# ---------------------------------------------------------------- order
def causal_mask(length: int, *, device: torch.device | str | None = None) -> Tensor:
    """Each query may attend to itself and to what came before it. Shape (query, key) = (length, length).

    >>> causal_mask(3).int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    check_count("length", length, least=0)
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def sliding_window_mask(length: int, *, left: int, right: int = 0, device: torch.device | str | None = None) -> Tensor:
    """Each query may attend to `left` keys before it, itself, and `right` keys after it. Shape (query, key).

    With right=0 the window is causal (Beltagy et al. 2020, "Longformer", section 3.1).

    >>> sliding_window_mask(4, left=1).int().tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    """
    check_count("length", length, least=0)
    check_count("left", left, least=0)
    check_count("right", right, least=0)
    positions = torch.arange(length, device=device)  # (length,)
    distance = positions[None, :] - positions[:, None]  # (query, key): key position minus query position
    return (-left <= distance) & (distance <= right)


def chunk_mask(
    length: int, *, chunk: int, left_chunks: int | None = None, device: torch.device | str | None = None
) -> Tensor:
    """Each query may attend to its whole chunk and to `left_chunks` chunks before it (None: all). Shape (query, key).

    This is how a streaming encoder looks ahead to the end of the chunk, and no further.

    >>> chunk_mask(5, chunk=2).int().tolist()
    [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    >>> chunk_mask(5, chunk=2, left_chunks=0).int().tolist()
    [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]]
    """
    check_count("length", length, least=0)
    check_count("chunk", chunk)
    number = torch.arange(length, device=device) // chunk  # (length,): which chunk a position is in
    back = number[:, None] - number[None, :]  # (query, key): how many chunks the key lies behind
    mask = back >= 0
    if left_chunks is not None:
        check_count("left_chunks", left_chunks, least=0)
        mask = mask & (back <= left_chunks)
    return mask


# ---------------------------------------------------------------- both
def cross_mask(source_lengths: Tensor | Sequence[int], target_length: int, max_source: int) -> Tensor:
    """Every target position may attend to every real source position. Shape (batch, 1, query, key).

    The source is complete before the target begins, so nothing here is causal: query runs over the
    `target_length` target positions, key over the `max_source` source positions.

    >>> cross_mask([2], 3, 4)[0, 0].int().tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]
    """
    check_count("target_length", target_length, least=0)
    source_lengths = _checked_lengths(source_lengths, max_source, "source_lengths", "max_source")
    return padding_mask(source_lengths, max_source).expand(-1, -1, target_length, -1)  # (batch, 1, query, key)


def decoder_mask(lengths: Tensor | Sequence[int], max_length: int) -> Tensor:
    """Causal and padding at once, for self-attention in the decoder. Shape (batch, 1, query, key).

    Rows of padded queries are left as they are: the loss ignores what they compute.

    >>> decoder_mask([2], 3)[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 0]]
    """
    padding = padding_mask(lengths, max_length)  # (batch, 1, 1, key)
    return padding & causal_mask(max_length, device=padding.device)  # (batch, 1, query, key)


def combine_masks(*masks: Tensor | None) -> Tensor | None:
    """True where every mask says True. A mask that is None forbids nothing; with no mask left the result is None.

    >>> combine_masks(None, causal_mask(2), padding_mask([1], 2))[0, 0].int().tolist()
    [[1, 0], [1, 0]]
    """
    if len(masks) == 1 and isinstance(masks[0], (list, tuple)):
        raise TypeError("combine_masks takes the masks one by one, got a list of them: combine_masks(*masks)")
    given = [mask for mask in masks if mask is not None]
    for mask in given:
        _check_bool("mask", mask)
    combined = None
    for mask in given:
        try:
            combined = mask if combined is None else combined & mask
        except RuntimeError as error:
            raise ValueError(
                f"masks of shapes {', '.join(shape_text(m) for m in given)} do not broadcast together: give each the "
                "axes (batch, heads, query, key), with size 1 where it says the same for all"
            ) from error
    return combined


def empty_rows(mask: Tensor) -> Tensor:
    """True for each query that has no key to attend to. Shape (..., query), the key axis gone.

    >>> empty_rows(torch.tensor([[True, False], [False, False]])).tolist()
    [False, True]
    """
    _check_bool("mask", mask)
    return ~mask.any(-1)


def _check_bool(name: str, mask: object, *, true: str = "may attend") -> None:
    check_tensor(name, mask)
    if mask.dtype != torch.bool:
        raise ValueError(
            f"{name} of shape {shape_text(mask)} must have dtype bool (True = {true}), got {mask.dtype}: "
            "masks.from_additive (0 and -inf) and masks.from_integers (0 and 1) convert"
        )


# ---------------------------------------------------------------- what others call True
def to_additive(mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The same mask as numbers to add to the scores: 0 where allowed, -inf where forbidden. Same shape.

    >>> to_additive(causal_mask(2)).tolist()
    [[0.0, -inf], [0.0, 0.0]]
    """
    _check_bool("mask", mask)
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be a float dtype, which can hold -inf, got {dtype}")
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)


def from_additive(bias: Tensor) -> Tensor:
    """The bool mask of an additive one: True where `bias` is 0, False where it is -inf or a huge negative number.

    "Huge" is anything at or below -1e4, the smallest fill in use. Raises ValueError for any other number: that
    would be a bias, not a mask, and belongs in `scaled_dot_product_attention(..., bias=...)`.

    >>> from_additive(torch.tensor([[0.0, -1e9], [0.0, 0.0]])).tolist()
    [[True, False], [True, True]]
    """
    check_tensor("bias", bias)
    if not bias.is_floating_point():
        raise ValueError(f"bias must be a float tensor of 0 and -inf, got {bias.dtype}: see masks.from_integers")
    allowed, forbidden = bias == 0, bias <= -1e4
    if not bias.is_meta and not (allowed | forbidden).all():
        other = bias[~(allowed | forbidden)][0].item()
        hint = "this looks like a 0/1 mask: use masks.from_integers" if other == 1 else "pass it as bias= instead"
        raise ValueError(f"bias must hold only 0 and -inf to be a mask, got {other:g}: {hint}")
    return allowed


def to_integers(mask: Tensor) -> Tensor:
    """The same mask as 1 (may attend) and 0 (may not), dtype int64, as Hugging Face's `attention_mask`. Same shape.

    >>> to_integers(padding_mask([2], 3))[0, 0].tolist()
    [[1, 1, 0]]
    """
    _check_bool("mask", mask)
    return mask.long()


def from_integers(ones: Tensor) -> Tensor:
    """The bool mask of a 0/1 tensor (1 = may attend), of whole or float dtype. Same shape.

    A tokenizer's `attention_mask` (batch, key) still needs its two middle axes: `from_integers(m)[:, None, None]`.

    >>> from_integers(torch.tensor([[1, 1, 0]])).tolist()
    [[True, True, False]]
    """
    check_tensor("ones", ones)
    if not ones.is_meta and not ((ones == 0) | (ones == 1)).all():
        other = ones[(ones != 0) & (ones != 1)].flatten()[0].item()
        raise ValueError(f"ones must hold only 0 and 1, got {other:g}: an additive mask goes to masks.from_additive")
    return ones == 1


def to_multihead(mask: Tensor, batch: int, n_heads: int) -> Tensor:
    """The same mask for `torch.nn.MultiheadAttention(attn_mask=...)`, where **True = blocked**.

    `mask` broadcasts to (batch, heads, query, key); the result is (batch * heads, query, key), batch-major as
    torch wants it. The query axis must be there in full: `padding_mask` has size 1 there, `cross_mask` does not.
    An empty row stays empty, and torch's module makes NaN of it.

    >>> to_multihead(causal_mask(2), batch=1, n_heads=1).tolist()
    [[[False, True], [False, False]]]
    """
    _check_bool("mask", mask)
    check_count("batch", batch)
    check_count("n_heads", n_heads)
    check_tensor("mask", mask, dims=("query", "key"), leading=True)
    shape = (batch, n_heads, *mask.shape[-2:])
    check_broadcast("mask", mask, shape, axes="(batch, heads, query, key)")
    blocked = (~mask).expand(shape)  # (batch, heads, query, key)
    return blocked.flatten(0, 1)  # (batch * heads, query, key)


def from_multihead(
    attn_mask: Tensor | None = None, key_padding_mask: Tensor | None = None, *, n_heads: int | None = None
) -> Tensor | None:
    """The one mask that `torch.nn.MultiheadAttention`'s two say together (there True = blocked).

    `attn_mask` is (query, key), or (batch * heads, query, key) with `n_heads` given; `key_padding_mask` is
    (batch, key). The result broadcasts to (batch, heads, query, key), or is None when neither is given.

    >>> from_multihead(key_padding_mask=torch.tensor([[False, False, True]]))[0, 0, 0].tolist()
    [True, True, False]
    """
    if attn_mask is not None:
        _check_bool("attn_mask", attn_mask, true="blocked")
        attn_mask = ~attn_mask
        if attn_mask.dim() == 3:
            if n_heads is None:
                raise ValueError(f"attn_mask {shape_text(attn_mask)} is (batch * heads, query, key): give n_heads too")
            check_divides("n_heads", n_heads, "attn_mask.shape[0]", attn_mask.shape[0], why="it is batch * heads")
            attn_mask = attn_mask.unflatten(0, (-1, n_heads))  # (batch, heads, query, key)
    if key_padding_mask is not None:
        _check_bool("key_padding_mask", key_padding_mask, true="blocked")
        check_tensor("key_padding_mask", key_padding_mask, dims=("batch", "key"))
        key_padding_mask = ~key_padding_mask[:, None, None, :]  # (batch, 1, 1, key)
    return combine_masks(attn_mask, key_padding_mask)
