"""The exercise shift_right of lesson 08: how people make the decoder's input from the labels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..model import shift_right
from .exercise import Exercise, Probe, Result, Symptom, each
from .norm_parts import alone_wrong
from .outcome import said
from .relative_symptoms import LIST_RESULT
from .symptoms import CHANGES_INPUT, MORE_RESULTS, ONLY_SHAPE, Seen

__all__ = ["SHIFT_RIGHT"]


def _first(labels: Tensor, start: int, pad: int, ignore: int, first: str) -> Tensor:
    """The column (batch, 1) that a reader puts in front."""
    if first == "last_label":
        return labels[:, -1:]
    value = {"start": start, "pad": pad, "0": 0, "1": 1, "ignore": ignore}[first]
    return labels.new_full((len(labels), 1), value)


def _moved(labels: Tensor, column: Tensor, move: str, ignore: int) -> Tensor:
    start = column[:1, :1]
    return {
        "right": lambda: torch.cat([column, labels[:, :-1]], 1),
        "roll": lambda: labels.roll(1, 1),
        "roll_left": lambda: labels.roll(-1, 1),
        "roll_flat": lambda: labels.roll(1),
        "left": lambda: torch.cat([labels[:, 1:], column], 1),
        "rows": lambda: torch.cat([start.expand(1, labels.shape[1]), labels[:-1]], 0),
        "roll_rows": lambda: labels.roll(1, 0),
        "roll_rows_and_set": lambda: torch.cat([column, labels.roll(1, 0)[:, 1:]], 1),
        "longer": lambda: torch.cat([column, labels], 1),
        "none": lambda: labels.clone(),
        "first_replaced": lambda: torch.cat([column, labels[:, 1:]], 1),
        "last_replaced": lambda: torch.cat([labels[:, :-1], column], 1),
        "roll_left_and_set": lambda: torch.cat([column, labels.roll(-1, 1)[:, 1:]], 1),
        "without_last": lambda: labels[:, :-1].clone(),
        "without_first": lambda: labels[:, 1:].clone(),
        "both_cut": lambda: torch.cat([column, labels[:, 1:-1]], 1),
        "two": lambda: torch.cat([column, column, labels[:, :-2]], 1)[:, : labels.shape[1]],
        "first_twice": lambda: torch.cat([labels[:, :1], labels[:, :-1]], 1),
        "one_by_one": lambda: column.expand(labels.shape).clone(),
        "first_label_everywhere": lambda: torch.cat([column, labels[:, :1].expand(-1, labels.shape[1] - 1)], 1),
        "start_then_shift": lambda: torch.cat([column, column, labels[:, 1:-1]], 1)[:, : labels.shape[1]],
        "start_in_row_0": lambda: torch.cat([column.expand(labels.shape)[:1], labels.roll(1, 1)[1:]], 0),
        "start_in_one_row": lambda: torch.cat([torch.cat([start, labels[1:, -1:]], 0), labels[:, :-1]], 1),
        "flat": lambda: torch.cat([start[0], labels.flatten()[:-1]]).view(labels.shape),
        "reversed": lambda: torch.cat([column, labels[:, :-1].flip(1)], 1),
        "stop_dropped": lambda: _without_stop(labels, column, ignore),
        "overlap": lambda: _within_itself(labels.clone(), column, start_first=False),
        "overlap_start_first": lambda: _within_itself(labels.clone(), column, start_first=True),
        "first_row_only": lambda: torch.cat([torch.cat([column[:1], labels[:1, :-1]], 1), labels[1:]], 0),
    }[move]()


def _within_itself(out: Tensor, column: Tensor, *, start_first: bool) -> Tensor:
    """A shift that reads what it has already written; torch refuses it for one row."""
    if start_first:
        out[:, :1] = column
    out[:, 1:] = out[:, :-1]
    if not start_first:
        out[:, :1] = column
    return out


def _without_stop(labels: Tensor, column: Tensor, ignore: int) -> Tensor:
    """Of each row the last label that is not ignore is dropped, in place of the last column."""
    out = torch.cat([column, labels[:, :-1]], 1)
    following = torch.cat([labels[:, 1:] == ignore, torch.zeros_like(column, dtype=torch.bool)], 1)
    last = following & (labels != ignore)  # the last label before padding
    return out.masked_fill(torch.cat([torch.zeros_like(column, dtype=torch.bool), last[:, :-1]], 1), ignore)


def _replaced(out: Tensor, labels: Tensor, start: int, pad: int, ignore: int, replaced: str) -> Tensor:
    if replaced == "misaligned":  # asks the labels, before they are shifted
        return out.masked_fill(labels == ignore, pad) if out.shape == labels.shape else out
    if replaced == "others":
        return out.masked_fill(out != ignore, pad)
    if replaced == "removed":
        return out[out != ignore]
    if replaced == "negatives":
        return out.masked_fill(out < 0, pad)
    old = {"minus_100": -100, "pad_to_ignore": pad}.get(replaced, ignore)
    new = {"kept": old, "0": 0, "start": start, "pad_to_ignore": ignore, "minus_1": -1, "1": 1}.get(replaced, pad)
    return out.masked_fill(out == old, new)


def shift(
    labels: Tensor,
    start: int,
    pad: int,
    ignore: int = -100,
    *,
    move: str = "right",
    first: str = "start",
    replaced: str = "pad",
    kind: str = "ids",
    changed: str = "no",
) -> object:
    """What a reader makes of the labels; with no switch set it is right."""
    before = labels.clone()
    out = _moved(labels, _first(labels, start, pad, ignore, first), move, ignore)
    out = _replaced(out, labels, start, pad, ignore, replaced)
    if changed == "ignore":
        labels.masked_fill_(before == ignore, pad)
    if changed == "all":
        labels += 1
    return {
        "ids": lambda: out,
        "float": lambda: out.float(),
        "int32": lambda: out.int(),
        "bool": lambda: out.bool(),
        "both": lambda: (out, before),
        "nothing": lambda: None,
    }[kind]()


# ---------------------------------------------------------------- the gallery
RULE = "The input is the start, then all labels but the last."
IGNORED = "Where the shift brings ignore, the input must be pad, since no embedding has a row for ignore. Yours {}"

MISTAKES = (
    *each(
        "roll",
        "The last label comes round to the front, as roll brings it, where the start must stand: the first place is "
        "given the end of the answer, and the model never sees the start. Overwrite column 0 after roll.",
        {"move": "roll"},
        {"first": "last_label"},
    ),
    *each(
        "roll_flat",
        "The last label of a row comes to the front of the next one: roll without an axis runs through the whole "
        "batch. The start stands in column 0 of each row.",
        {"move": "roll_flat"},
    ),
    *each(
        "shifted_left",
        "You shift to the left: place t holds label t + 1, the future is given away. To the right, place t holds "
        f"label t - 1. {RULE}",
        {"move": "left"},
        {"move": "roll_left"},
        {"move": "roll_left_and_set"},
        {"move": "without_first"},
    ),
    *each(
        "not_shifted",
        f"Nothing is shifted: place t holds label t, the very token that is to be predicted there. {RULE}",
        {"move": "none"},
    ),
    *each(
        "first_replaced",
        "The start has taken the place of the first label, and the others stand where they stood: place t holds label "
        f"t, the very token that is to be predicted there. {RULE}",
        {"move": "first_replaced"},
    ),
    *each(
        "last_replaced",
        f"The start stands at the end, in place of the last label, and the others stand where they stood. {RULE}",
        {"move": "last_replaced"},
    ),
    *each(
        "flat",
        "The rows are shifted as one: the last label of a row comes to the front of the next one. The start stands in "
        "column 0 of each row.",
        {"move": "flat"},
    ),
    *each(
        "start_in_first_row",
        "The first row holds nothing but the start, and the others begin with their last label: [0] is row 0, [:, 0] "
        "column 0.",
        {"move": "start_in_row_0"},
    ),
    *each(
        "start_in_one_row",
        "Only the first row begins with the start, the others with their last label: [0, 0] is one place, [:, 0] the "
        "whole column.",
        {"move": "start_in_one_row"},
    ),
    *each(
        "over_the_batch",
        "You shift along axis 0, the batch: each sequence gets the tokens of the one before it. The places are axis 1.",
        {"move": "rows"},
        {"move": "roll_rows"},
        {"move": "roll_rows_and_set"},
    ),
    *each(
        "first_row_only",
        "Only the first row is shifted: [0] takes a row, [:, 0] a column.",
        {"move": "first_row_only"},
    ),
    *each(
        "last_label_kept",
        "Your input is one place longer than the labels: the start is put in front, and the last label is not dropped. "
        "After it nothing is to be predicted.",
        {"move": "longer"},
    ),
    *each(
        "start_missing",
        f"There is no start: the last label is dropped, and nothing is put in front. {RULE}",
        {"move": "without_last"},
    ),
    *each(
        "both_ends_cut",
        f"The first label is missing: it is dropped as well as the last one. {RULE}",
        {"move": "both_cut"},
    ),
    *each("shifted_by_two", "You shift by two places, and one is right.", {"move": "two"}),
    *each(
        "first_label_twice",
        "The first label stands where the start must stand, in column 0: the model never sees the start.",
        {"move": "first_twice"},
    ),
    *each(
        "start_everywhere",
        "The start has run through the whole row: each place is copied from the one before it, which has been "
        "overwritten already. Read from the labels, write to a new tensor.",
        {"move": "one_by_one"},
    ),
    *each(
        "written_while_read",
        "A tensor is shifted within its own memory, out[:, 1:] = out[:, :-1]: places are written that have still to be "
        "read, so one number runs through the row, and for one row torch refuses it. Read from the labels, write to "
        "another tensor.",
        {"move": "overlap"},
        {"move": "overlap_start_first"},
    ),
    *each(
        "written_while_read",
        "Behind the start the first label stands everywhere: each place is copied from the one before it, which has "
        "been overwritten already. Read from the labels, write to another tensor.",
        {"move": "first_label_everywhere"},
    ),
    *each(
        "first_label_lost",
        "The start takes the place of the first label before the shift, so that label is lost and the start stands "
        "twice: shift first, then write the start.",
        {"move": "start_then_shift"},
    ),
    *each("reversed", "The labels behind the start stand in reverse order.", {"move": "reversed"}),
    *each(
        "stop_dropped",
        "In a row that ends with ignore, your input loses the last real label, the stop, as well. Only the last column "
        "is dropped; ask the shifted tensor, not the labels, where ignore stands.",
        {"move": "stop_dropped"},
    ),
    *each(
        "replaced_before_shift",
        "The mask of what becomes pad is that of the labels before the shift, so it lies one place too far to the "
        "left: a label before ignore is lost, and what stands after ignore is not replaced. Ask the shifted tensor.",
        {"replaced": "misaligned"},
    ),
    *each("pad_in_front", "What you put in for the start is pad: the two may differ.", {"first": "pad"}),
    *each("start_and_pad_exchanged", "Start and pad have changed places: the start stands in column 0, pad where "
          "the shift brings ignore.", {"first": "pad", "replaced": "start"}),
    *each("zero_in_front", "What you put in for the start is 0 whatever the start is.", {"first": "0"}),
    *each("one_in_front", "What you put in for the start is 1 whatever the start is.", {"first": "1"}),
    *each(
        "ignore_kept",
        IGNORED.format("still holds ignore, and looking it up fails. Replace it after the shift."),
        {"replaced": "kept"},
    ),
    *each(
        "ignore_hard_coded",
        IGNORED.format("replaces -100 whatever ignore is: that is only its default."),
        {"replaced": "minus_100"},
    ),
    *each(
        "negatives_replaced",
        "Where the shift brings ignore, the input must be pad. Yours replaces every negative label: ignore may be "
        "another number, such as 0.",
        {"replaced": "negatives"},
        edge=True,
    ),
    *each("ignore_becomes_zero", IGNORED.format("is 0 there whatever pad is."), {"replaced": "0"}),
    *each("ignore_becomes_start", IGNORED.format("is the start there."), {"replaced": "start"}),
    *each("ignore_becomes_minus_1", IGNORED.format("is -1 there."), {"replaced": "minus_1"}),
    *each(
        "pad_becomes_ignore",
        "The replacement goes the wrong way: pad becomes ignore. In the labels padding is ignore, in the input it must "
        "be pad, which an embedding knows.",
        {"replaced": "pad_to_ignore"},
    ),
    *each(
        "branches_exchanged",
        "The two branches are exchanged: every id becomes pad, and ignore stays. torch.where(condition, a, b) takes a "
        "where the condition holds.",
        {"replaced": "others"},
        alone=True,
    ),
    *each(
        "ignore_removed",
        IGNORED.format("leaves those places out, which makes one axis of all rows. The shape stays (batch, place)."),
        {"replaced": "removed"},
        alone=True,
    ),
    *each("float_ids", "Your result holds floats, and an embedding takes whole numbers: int64, as the labels.",
          {"kind": "float"}),
    *each("int32", "Your result has dtype int32, and the labels have int64.", {"kind": "int32"}),
    *each("bool", "Your result holds True and False, and ids are asked for.", {"kind": "bool"}, alone=True),
    *each("labels_returned_too", "You return the labels as well: only the input is asked for.", {"kind": "both"},
          alone=True),
    *each("nothing_returned", "Nothing comes back: a return is missing.", {"kind": "nothing"}, alone=True),
    *each(
        "ignore_replaced_in_place",
        "The labels are changed: ignore becomes pad in the caller's own tensor, and the loss then counts the padding. "
        "Work on a copy, or use torch.where or masked_fill, which make a new tensor.",
        {"changed": "ignore"},
    ),
)  # fmt: skip


# ---------------------------------------------------------------- symptoms and probes
def _only_labels_changed(seen: Seen) -> bool:
    """The labels are overwritten with what is returned, which is right."""
    return all(
        g.error is None and isinstance(g.value, Tensor) and torch.equal(e.value, g.value) for _, e, g in seen
    ) and any(g.changed for _, _, g in seen)


def _ignore_required(seen: Seen) -> bool:
    """It takes all four arguments, and not three."""
    return all((given.error is not None and not given.called) == ("left out" in p.says) for p, _, given in seen)


def _says_error(*words: str) -> Callable[[Seen], bool]:
    """Whether every error that was raised says so."""

    def shows(seen: Seen) -> bool:
        errors = [said(g.error) for _, _, g in seen if g.error is not None]
        return bool(errors) and all(any(w in error for w in words) for error in errors)

    return shows


def _given(rows: list[list], *specials: int) -> Callable[[], tuple]:
    return lambda: (torch.tensor(rows), *specials)


BATCHES = (  # labels, start, pad, ignore, whether it is an edge case
    ([[4, 5, 6, 2]], 1, 0, -100, False),
    ([[4, 5, 2, -100], [7, 2, -100, -100], [8, 9, 6, 2]], 1, 3, -100, False),
    ([[4, 2, -1, -1], [5, 6, 8, 2]], 7, 3, -1, False),
    ([[4, 2, -100, -100]], 0, 0, -100, True),
    ([[-100, -100, 5, 6, 2]], 1, 3, -100, True),
    ([[5], [6]], 1, 0, -100, True),
    ([[4, 5, 2, 0, 0], [6, 2, 0, 0, 0]], 1, 3, 0, True),
)

SHIFT_RIGHT = Exercise(
    name="model.shift_right",
    reference=shift_right,
    results=(Result("input", ("sequence", "place")),),
    probes=(
        *(Probe(f"labels {b[0]}, start {b[1]}, pad {b[2]}, ignore {b[3]}", _given(*b[:4]), edge=b[4]) for b in BATCHES),
        Probe(
            "labels [[4, 5, -100], [6, 2, -100]], start 1, pad 3, ignore left out",
            _given([[4, 5, -100], [6, 2, -100]], 1, 3),
            edge=True,
        ),
    ),
    compound=shift,
    at_once=2,
    mistakes=MISTAKES,
    symptoms=(
        Symptom(
            "ignore_required",
            "It cannot be called without ignore: give the argument its default, ignore=-100.",
            _ignore_required,
        ),
        Symptom(
            "labels_overwritten",
            "What you return is right, but the labels themselves are changed, and the loss needs them as they were. "
            "Write to a new tensor (clone, cat, empty_like).",
            _only_labels_changed,
        ),
        Symptom(
            "start_for_one_row",
            "What is put in front has not as many rows as the labels: each sequence has its own start, shape "
            "(batch, 1).",
            _says_error("Sizes of tensors must match except in dimension 1"),
        ),
        Symptom(
            "joined_along_the_batch",
            "The pieces are joined along axis 0, the batch, as torch.cat does if nothing is said: the start stands in "
            "front of each row, dim=1.",
            _says_error("Sizes of tensors must match except in dimension 0"),
        ),
        Symptom(
            "rows_differ",
            "Your rows have become unequal in length: where the shift brings ignore, the input is pad. Replace it, do "
            "not leave it out.",
            _says_error("expected sequence of length"),
        ),
        Symptom(
            "start_has_other_axes",
            "What is put in front has not as many axes as the labels: it has two, (batch, 1).",
            _says_error("Tensors must have same number of dimensions", "expected to be in range of [-1, 0], but got 1"),
        ),
        CHANGES_INPUT,
        MORE_RESULTS,
        ONLY_SHAPE,
        LIST_RESULT,
        Symptom(
            "wrong_beside_ignore",
            "In the cases tried here it is right where no label is ignore, and wrong where one is: in the shifted "
            "tensor each ignore becomes pad, and all else stays.",
            alone_wrong("-100]", "-1]", "[-100", "ignore 0"),
        ),
    ),
)
