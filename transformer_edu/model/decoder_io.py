"""What a decoder is given and what it must answer: the same tokens, one place apart."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..errors import check_count, check_ids, check_int, check_list

__all__ = ["IGNORE", "decoder_io", "shift_right"]

IGNORE = -100  # the label of padding, which torch's cross-entropy passes over


def decoder_io(
    sequences: Sequence[Sequence[int]], start_id: int, stop_id: int, pad_id: int, ignore: int = IGNORE
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch target sequences for teacher forcing: (target_in, target_out, lengths), all int64.

    Args:
        sequences: lists of ids without start and stop.
        start_id: begins each row of target_in.
        stop_id: ends the labels of each row.
        pad_id: fills target_in behind its end; an id that the embedding knows.
        ignore: fills target_out behind its end; a label that the loss passes over.

    Returns:
        target_in (batch, length) = start, y_1, ..., y_n; target_out (batch, length) = y_1, ..., y_n, stop; and the
        lengths n + 1 (batch,).

    >>> target_in, target_out, lengths = decoder_io([[5, 6], [7]], start_id=1, stop_id=2, pad_id=0)
    >>> target_in.tolist(), target_out.tolist(), lengths.tolist()
    ([[1, 5, 6], [1, 7, 0]], [[5, 6, 2], [7, 2, -100]], [3, 2])
    """
    check_list("sequences", sequences, of="lists of ids")
    _check_special(start_id=start_id, stop_id=stop_id, pad_id=pad_id)
    check_int("ignore", ignore)
    rows = [_ids_of(row, sequence) for row, sequence in enumerate(sequences)]
    if not rows:
        raise ValueError("sequences must hold at least one sequence, got none")
    lengths = torch.tensor([len(ids) + 1 for ids in rows])  # (batch,)
    shape = (len(rows), int(lengths.max()))
    places, last = torch.arange(shape[1]), lengths[:, None] - 1  # (length,), (batch, 1)
    ids = torch.cat(rows)  # all rows at once, since a batch is made at every step of a training
    target_in, target_out = torch.full(shape, pad_id), torch.full(shape, ignore)  # (batch, length)
    target_in[(places > 0) & (places <= last)], target_in[:, 0] = ids, start_id
    target_out[places < last], target_out[places == last] = ids, stop_id
    return target_in, target_out, lengths


def _ids_of(row: int, sequence: Sequence[int]) -> Tensor:
    try:
        ids = torch.as_tensor(sequence)
    except (TypeError, ValueError, RuntimeError) as error:  # torch has its own word for each kind of thing
        raise TypeError(f"sequences[{row}] must be a list of ids, which are whole numbers, got {sequence!r}") from error
    if ids.numel() and (ids.dtype != torch.int64 or ids.dim() != 1):
        check_ids(f"sequences[{row}]", ids, dims=("length",))
    return ids.long()  # an empty list makes a float tensor


def _check_special(**ids: int) -> None:
    for name, value in ids.items():
        check_count(name, value, least=0)


def shift_right(target_out: Tensor, start_id: int, pad_id: int, ignore: int = IGNORE) -> Tensor:
    """The decoder's input that belongs to these labels: `start_id`, then all labels but the last. Same shape.

    Where the shift brings `ignore` to a place, `pad_id` stands there instead, since no embedding has a row for it. The
    labels stay as they are.

    >>> shift_right(torch.tensor([[5, 6, 2], [7, 2, -100]]), start_id=1, pad_id=0).tolist()
    [[1, 5, 6], [1, 7, 2]]
    """
    check_ids("target_out", target_out, dims=("batch", "length"))
    _check_special(start_id=start_id, pad_id=pad_id)
    check_int("ignore", ignore)
    start = target_out.new_full((len(target_out), 1), start_id)  # (batch, 1)
    target_in = torch.cat([start, target_out], 1)[:, :-1]  # (batch, length)
    return target_in.masked_fill(target_in == ignore, pad_id)
