"""The exercise relative_shift of lesson 07: which columns each row takes, the trick with a view, what is done after.

The right answer is out[i, j] = x[i, T - 1 - i + j]: row i starts at column T - 1 - i.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import relative
from .attention_symptoms import NUMPY
from .exercise import Exercise, Mistake, Probe, Result, Symptom, each
from .outcome import said, same_outcome
from .relative_symptoms import LIST_RESULT, results, right_only_where
from .symptoms import CHANGES_INPUT, MORE_RESULTS, ONLY_SHAPE, ONLY_VIEW, VIEW_AND_MORE, Seen


# ---------------------------------------------------------------- the wrong implementation with switches
def _picked(x: Tensor, take: str) -> Tensor:
    """Entry (i, j) of the result is one of row i's columns, counted around the end."""
    t, n = x.shape[2:]
    i, j = torch.arange(t)[:, None], torch.arange(t)[None, :]
    columns = {
        "right": t - 1 - i + j,
        "down": i + j,
        "mirrored": t - 1 + i - j,
        "rolled": j - i,
        "distance": i - j,
        "rolled_back": j - (t - 1 - i),
        "early": t - 2 - i + j,
        "late": t - i + j,
        "early_clamped": (t - 2 - i + j).clamp(min=0),
        "late_clamped": (t - i + j).clamp(max=n - 1),
        "mirrored_clamped": (t + i - j).clamp(max=n - 1),
        "plus": (t - 1 + i + j).clamp(max=n - 1),
        "counted_back": j - i - 1,
        "distance_clamped": (i - j).clamp(min=0),
        "first": 0 * i + j,
        "centre": 0 * i + j + (n - t) // 2,
        "last": 0 * i + j + n - t,
        "twice": t - 1 - 2 * i + j,
        "absolute": (i - j).abs(),
        "absolute_descending": t - 1 - (i - j).abs(),
        "absolute_ascending": t - 1 + (i - j).abs(),
        "clamped": (t - 1 - i + j).clamp(max=t - 1),
        "diagonal_only": (t - 1 - i).expand(t, t),
        "by_key": (t - 1 - j).expand(t, t),
        "first_row": t - 1 - i + j,
        "row_of_the_key": t - 1 - i + j,
    }[take]
    if take == "first_row":
        return x[:, :, 0][:, :, columns]
    if take == "row_of_the_key":
        return x[:, :, j, columns]
    return x[:, :, i, columns % n]


def _viewed(x: Tensor, pad: str = "left", drop: str = "first", cut: str = "first") -> Tensor:
    """Pad, regroup, drop a row, regroup back, cut: each step as it should be or otherwise."""
    b, h, t, _ = x.shape
    sides = {"left": (1, 0), "right": (0, 1), "row": (0, 0, 1, 0), "row_below": (0, 0, 0, 1)}
    y = F.pad(x, sides[pad])
    rows, columns = y.shape[2:]
    y = y.reshape(b, h, columns, rows)
    y = {"first": y[:, :, 1:], "last": y[:, :, :-1], "none": y}[drop]
    y = y.reshape(b, h, rows, columns) if drop == "none" else y.reshape(b, h, t, -1)
    width = y.shape[-1]
    if cut == "short":
        return y[..., : t - 1]
    start = {"first": 0, "last": width - t, "second": 1, "centre": (width - t) // 2, "from_t": t}.get(cut, 0)
    return y if cut == "none" else y[..., start : start + t]


def _square(x: Tensor, part: str) -> Tensor:
    """The shift of Transformer-XL, which knows T distances alone."""
    b, h, t, _ = x.shape
    y = {"first": x[..., :t], "last": x[..., -t:]}[part]
    return F.pad(y, (1, 0)).reshape(b, h, t + 1, t)[:, :, 1:].reshape(b, h, t, t)


def _garbled(x: Tensor, how: str) -> Tensor:
    """The same numbers in another order of batch, heads and rows; all is well for one head of one sequence."""
    b, h, t, n = x.shape
    return {
        "heads_outside": lambda: x.reshape(h, b, t, n).transpose(0, 1),
        "transposed_heads": lambda: x.transpose(0, 1).reshape(b, h, t, n),
        "rows_and_heads": lambda: x.transpose(1, 2).reshape(b, h, t, n),
        "view_rows_first": lambda: x.reshape(b, t, h, n).transpose(1, 2),
        "first_head": lambda: x[:, :1].expand(b, h, t, n),
        "first_sequence": lambda: x[:1].expand(b, h, t, n),
        "mean_of_heads": lambda: x.mean(1, keepdim=True).expand(b, h, t, n),
    }[how]()


VIEWS = {
    "pad_right": {"pad": "right"},
    "pad_right_keeps_last": {"pad": "right", "drop": "last"},
    "drop_last": {"drop": "last"},
    "cut_last": {"cut": "last"},
    "cut_last_drop_last": {"drop": "last", "cut": "last"},
    "cut_second": {"cut": "second"},
    "cut_from_t": {"cut": "from_t"},
    "cut_centre": {"cut": "centre"},
    "not_cut": {"cut": "none"},
    "short": {"cut": "short"},
    "nothing_dropped": {"drop": "none"},
    "nothing_dropped_cut_second": {"drop": "none", "cut": "second"},
}


def shift_wrongly(
    x: Tensor,
    *,
    take: str = "right",
    before: str = "right",
    after: str = "right",
) -> object:
    """Shift with any of the ways to go wrong; without a switch it is right."""
    t = x.shape[2]
    if before in ("flip", "flip_rows"):
        x = x.flip(-1 if before == "flip" else 2)
    elif before != "right":
        x = _garbled(x, before)
    if take in VIEWS:
        y = _viewed(x, **VIEWS[take])
    elif take in ("square_first", "square_last"):
        y = _square(x, take.removeprefix("square_"))
    else:
        y = _picked(x, take)
    return {
        "right": lambda: y,
        "tril": lambda: y.tril(),
        "triu": lambda: y.triu(),
        "strict_tril": lambda: y.tril(-1),
        "minus_inf": lambda: y.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf),
        "transposed": lambda: y.mT,
        "flip": lambda: y.flip(-1),
        "first_row_missing": lambda: y[:, :, 1:],
        "last_row_missing": lambda: y[:, :, :-1],
        "rows_before_heads": lambda: y.transpose(1, 2),
        "rows_in_front": lambda: y.permute(2, 0, 1, 3),
        "first_head_alone": lambda: y[0, 0],
        "first_head_kept": lambda: y[:1, :1],
        "first_sequence_alone": lambda: y[0],
        "first_sequence_kept": lambda: y[:1],
        "scaled": lambda: y / math.sqrt(t),
        "negated": lambda: -y,
        "last_row_empty": lambda: torch.cat([y[:, :, :-1], torch.zeros_like(y[:, :, -1:])], 2),
        "first_row_empty": lambda: torch.cat([torch.zeros_like(y[:, :, :1]), y[:, :, 1:]], 2),
        "heads_added": lambda: y.sum(1),
        "softmax": lambda: y.softmax(-1),
    }[after]()


# ---------------------------------------------------------------- the gallery
ROWS = "Row i has to start at column T - 1 - i, so that distance 0 stands on the diagonal."
TRICK = (
    "The trick is: one filler in front of each row, all rows in one line, without its first T entries (the first row of"
    " a view as (2T, T)), cut into rows of 2T - 1, of which the first T columns are kept."
)


def _take(name: str, sentence: str, *values: str, beside: str = "", alone: bool = False) -> tuple[Mistake, ...]:
    return tuple(Mistake(name, sentence, switches={"take": v}, beside=beside, alone=alone) for v in values)


TAKE_MISTAKES = (
    *_take(
        "last_columns_kept",
        "Your numbers are those of the last T columns after the shift, which are right where the table ends with"
        " distance 0 (or 2T - 1 entries are dropped in front of the line). Here the columns run from distance T - 1"
        " down to -(T - 1): drop the first T entries and keep the first T columns.",
        "cut_last",
    ),
    *_take(
        "no_shift",
        "Nothing is shifted: every row takes the same columns, the first T, so the bias depends on the key alone and"
        f" not on how far it is from the query. {ROWS}",
        "first",
    ),
    *_take(
        "no_shift",
        f"Nothing is shifted: every row takes the same T columns from the middle, so only one row can be right. {ROWS}",
        "centre",
    ),
    *_take(
        "no_shift",
        "Nothing is shifted: every row takes the same columns, the last T, which is right for row 0 alone. " + ROWS,
        "last",
    ),
    *_take(
        "nothing_dropped_in_front",
        "Nothing is dropped in front of the line (in a view as (2T, T): the last row goes instead of the first), so"
        " that fillers stay in the result and everything else comes too late. Drop the first T entries.",
        "drop_last",
    ),
    *_take(
        "one_column_too_early",
        "Every row starts one column too early, and the last one with the filler. Are T - 1 entries dropped in front of"
        " the line, or none and the last T columns kept? Drop the first T entries and keep the first T columns.",
        "cut_last_drop_last",
    ),
    *_take(
        "nothing_dropped",
        "Nothing is shifted: each row begins with the filler and its column 0, since nothing is dropped before the line"
        " is cut again. Drop its first T entries (the first row of a view as (2T, T)).",
        "nothing_dropped",
    ),
    *_take(
        "padded_on_the_right",
        "Every row starts one column too late, and row 0 ends with a filler. Does the filler stand behind each row, or"
        " are T + 1 entries dropped in front of the line? One filler belongs in front of each row, and T entries are"
        " dropped.",
        "pad_right",
    ),
    *_take(
        "too_little_dropped",
        "Row 0 begins at its first column, not at column T - 1: too little is dropped in front of the line, the filler"
        f" alone, or nothing with the fillers behind the rows. {TRICK}",
        "pad_right_keeps_last",
    ),
    *_take(
        "cut_too_late",
        "You keep the columns 1 to T after the shift: the cut begins one column too late, at the distance that"
        " belongs to the next key. Keep the first T columns, 0 to T - 1.",
        "cut_second",
    ),
    *_take(
        "cut_too_late",
        "You cut away the first columns after the shift and keep what comes later. The shifted rows begin in column"
        " 0: keep the first T columns.",
        "cut_from_t",
        "cut_centre",
    ),
    *_take(
        "not_cut",
        "The rows are shifted, but all 2T - 1 columns are still there, and the later ones have spilled over from the"
        " next row. Keep the first T columns: one for each key.",
        "not_cut",
    ),
    *_take(
        "one_column_short",
        "Your rows are shifted, but hold T - 1 numbers: one key is missing. With n = 2T - 1 columns, n // 2 is T - 1;"
        " the length is x.shape[2], or (n + 1) // 2. A slice a : b ends before b.",
        "short",
    ),
    *_take(
        "first_row_for_all",
        "Every row of your result is cut out of row 0 of x. Row i comes from row i of x: each query has numbers of its"
        " own.",
        "first_row",
    ),
    *_take(
        "row_of_the_key",
        "You take the column for query i and key j out of row j of x. The rows of x belong to the queries: take row i.",
        "row_of_the_key",
    ),
    *_take(
        "shifted_the_other_way",
        "Your rows move the wrong way: row 0 starts at column 0 and each next row one column later. Column 0 is the"
        f" largest distance, T - 1: a key far back. {ROWS}",
        "down",
    ),
    *_take(
        "shifted_the_other_way",
        "Your rows move the wrong way: row i starts at column T - 1 + i, and what lies beyond the end is the last"
        f" number again. {ROWS}",
        "plus",
    ),
    *_take(
        "distance_mirrored",
        "Past and future are exchanged: entry (i, j) holds the number for distance j - i, key minus query. The columns"
        " of x run from T - 1 down to -(T - 1) with distance query minus key: entry (i, j) is column T - 1 - i + j.",
        "mirrored",
    ),
    *_take(
        "rolled_from_column_0",
        "Row 0 of your result begins with column 0 and row i with column -i, counted from the end: a roll of row i by"
        " i, or the difference j - i used as a column. Column 0 is the largest distance; distance 0 is column T - 1, so"
        " row i has to begin with column T - 1 - i (a roll by i - (T - 1)).",
        "rolled",
    ),
    *_take(
        "distance_as_column",
        "You use the distance i - j itself as the column, counted from the end where it is negative. The columns run"
        " from distance T - 1 down to -(T - 1): distance r is column T - 1 - r, so entry (i, j) is column"
        " T - 1 - i + j.",
        "distance",
    ),
    *_take(
        "distance_as_column",
        "You use the distance i - j itself as the column, cut off at 0. The columns run from distance T - 1 down to"
        " -(T - 1): distance r is column T - 1 - r, so entry (i, j) is column T - 1 - i + j.",
        "distance_clamped",
    ),
    *_take(
        "column_counted_back",
        "Entry (i, j) of your result is column j - i - 1, counted from the end where it is negative: that takes"
        " distance 0 for the last column. It is column T - 1, in the middle, so entry (i, j) is column T - 1 - i + j.",
        "counted_back",
    ),
    *_take(
        "rolled_the_wrong_way",
        "You roll row i by T - 1 - i to the right; it has to move as far to the left. Roll row i by i - (T - 1).",
        "rolled_back",
    ),
    *_take(
        "one_column_too_early",
        "Every row starts one column too early: the diagonal holds distance 1 instead of 0. " + ROWS,
        "early",
    ),
    *_take(
        "one_column_too_early",
        "Every row starts one column too early: the diagonal holds distance 1 instead of 0, and the last row begins"
        f" with column 0 twice, since its start, -1, is cut off at 0. {ROWS}",
        "early_clamped",
        alone=True,
    ),
    *_take(
        "one_column_too_late",
        "Every row starts one column too late: the diagonal holds distance -1 instead of 0, and row 0 ends with the"
        f" last column twice, since there is none behind it. {ROWS}",
        "late_clamped",
        alone=True,
    ),
    *_take(
        "distance_mirrored",
        "Entry (i, j) of your result is column T + i - j, or the last one: the distance counts the wrong way round, key"
        " minus query, and from one column too far on. It is column T - 1 - i + j.",
        "mirrored_clamped",
    ),
    *_take(
        "one_column_too_late",
        "Every row starts one column too late: the diagonal holds distance -1 instead of 0, and there is no column left"
        f" for the last key of row 0. {ROWS}",
        "late",
    ),
    *_take(
        "shift_too_large",
        "Each row moves by two columns against the row above: one query further is one distance more, so it moves by"
        f" one. {ROWS}",
        "twice",
    ),
    *_take(
        "absolute_distance",
        "Entry (i, j) depends on the absolute distance: a key three steps back and one three steps ahead get the same"
        " number. Distances have a sign: entry (i, j) is column T - 1 - i + j.",
        "absolute",
        "absolute_descending",
        "absolute_ascending",
    ),
    *_take(
        "future_clamped",
        "All keys after the query get the number of distance 0: the column index stops at T - 1. The columns from T on"
        " hold the negative distances, for the keys that come later.",
        "clamped",
    ),
    *_take(
        "key_left_out",
        "All entries of a row hold the same number, column T - 1 - i: the key has no influence. The column is"
        " T - 1 - i + j.",
        "diagonal_only",
    ),
    *_take(
        "query_left_out",
        "Every row takes the same columns, T - 1 - j: the query has no influence, and the order is reversed. The"
        " column is T - 1 - i + j.",
        "by_key",
    ),
    *_take(
        "square_shift",
        "You use the shift of Transformer-XL, which knows T distances, from T - 1 to 0. It serves the lower triangle;"
        " above the diagonal stand zeros and numbers of the next row. That is hidden only under a causal mask: with"
        " 2T - 1 columns, the keys to the right have distances of their own.",
        "square_first",
    ),
    *_take(
        "square_shift",
        "You shift the last T columns as a square. They hold the distances 0 to -(T - 1), so that the past gets what"
        " belongs to the future. All 2T - 1 columns take part in the shift.",
        "square_last",
    ),
)

OTHER_MISTAKES = (
    Mistake(
        "future_zeroed",
        "The lower triangle is right, but everything above the diagonal is 0: the numbers for the keys that come later"
        " are lost. A causal mask makes that harmless; in an encoder it is not, so leave them in.",
        switches={"after": "tril"},
        beside="Everything above the diagonal is set to 0: the numbers for the keys that come later are lost. Hiding"
        " keys is the task of a mask.",
    ),
    Mistake(
        "future_zeroed",
        "What is above the diagonal is -inf: hiding keys is the task of the mask. The shift keeps the numbers for the"
        " keys that come later.",
        switches={"after": "minus_inf"},
    ),
    Mistake(
        "past_zeroed",
        "Everything below the diagonal is 0: the numbers for the keys before the query are lost. The shift fills the"
        " whole square.",
        switches={"after": "triu"},
    ),
    Mistake(
        "diagonal_zeroed",
        "Only what is below the diagonal is left; the diagonal and the keys after the query are 0. The shift fills the"
        " whole square.",
        switches={"after": "strict_tril"},
    ),
    Mistake(
        "transposed",
        "The result is transposed: entry (i, j) holds what belongs to query j and key i. Rows belong to queries.",
        switches={"after": "transposed"},
    ),
    Mistake(
        "keys_reversed",
        "Each row of your result is in reverse order: key 0 stands in the first column.",
        switches={"after": "flip"},
    ),
    Mistake(
        "distance_mirrored",
        "You turn the columns of x round before you shift, as if they ran from -(T - 1) up. They already run from"
        " distance T - 1 down to -(T - 1): past and future are exchanged in your result.",
        switches={"before": "flip"},
    ),
    Mistake(
        "queries_reversed",
        "The rows of x are used in reverse order: row i of the result comes from row i of x.",
        switches={"before": "flip_rows"},
    ),
    Mistake(
        "last_row_empty",
        "The last row of your result is 0: a loop over the rows has to reach row T - 1, so range(T).",
        switches={"after": "last_row_empty"},
    ),
    Mistake(
        "first_row_empty",
        "The first row of your result is 0: a loop over the rows begins with row 0, which is shifted furthest.",
        switches={"after": "first_row_empty"},
    ),
    Mistake(
        "first_row_missing",
        "Row 0 of the result is missing: a loop over the rows begins with row 0, which starts at column T - 1.",
        switches={"after": "first_row_missing"},
    ),
    Mistake(
        "last_row_missing",
        "The last row of the result is missing: a loop over the rows has to reach row T - 1, so range(T).",
        switches={"after": "last_row_missing"},
    ),
    Mistake(
        "rows_before_heads",
        "The axis of the queries stands before that of the heads. The result has the axes (batch, head, query, key):"
        " stack the rows along axis 2.",
        switches={"after": "rows_before_heads"},
    ),
    Mistake(
        "rows_before_heads",
        "The axis of the queries stands in front, as torch.stack puts it by itself. The result has the axes (batch,"
        " head, query, key): stack the rows along axis 2, dim=-2.",
        switches={"after": "rows_in_front"},
    ),
    *(
        Mistake(
            "one_head_alone",
            "You return the first head of the first sequence alone: batch and heads stand in front, and every head of"
            " every sequence is shifted by itself.",
            switches={"after": after},
            alone=True,
        )
        for after in ("first_head_alone", "first_head_kept")
    ),
    *(
        Mistake(
            "one_sequence_alone",
            "You return the first sequence of the batch alone: every sequence is shifted by itself.",
            switches={"after": after},
            alone=True,
        )
        for after in ("first_sequence_alone", "first_sequence_kept")
    ),
    Mistake("scaled", "You divide by a square root: the shift only moves numbers.", switches={"after": "scaled"}),
    Mistake(
        "negated", "The sign of every number is changed: the shift only moves numbers.", switches={"after": "negated"}
    ),
    Mistake(
        "heads_added",
        "The heads are added up and their axis is gone: every head keeps a square of its own.",
        switches={"after": "heads_added"},
    ),
    Mistake(
        "softmax_applied",
        "You apply a softmax to the shifted numbers. The shifted numbers are still to be added to the content"
        " scores: return them as they are.",
        switches={"after": "softmax"},
    ),
    *each(
        "heads_mixed",
        "Numbers of another head or sequence come in (with one head of one sequence that does not show). Keep"
        " batch and heads as axes 0 and 1 in every view, in this order.",
        *({"before": how} for how in ("heads_outside", "transposed_heads", "rows_and_heads", "view_rows_first")),
    ),
    Mistake(
        "one_head_for_all",
        "Every head of your result is shifted from head 0 of x: each head has rows of its own.",
        switches={"before": "first_head"},
    ),
    Mistake(
        "one_sequence_for_all",
        "Every sequence of your result comes from the first of the batch: each has rows of its own.",
        switches={"before": "first_sequence"},
    ),
    Mistake(
        "heads_averaged",
        "All heads of your result are the same, the mean of the heads of x: each head has rows of its own.",
        switches={"before": "mean_of_heads"},
    ),
    Mistake(
        "rows_not_indexed",
        "You index the columns alone, so that each row of x is cut by the whole (T, T) square of columns, with one axis"
        " too many. Give the rows too: x[:, :, rows, columns], with rows (T, 1) and columns (T, T).",
        lambda x: x[..., x.shape[2] - 1 - torch.arange(x.shape[2])[:, None] + torch.arange(x.shape[2])],
    ),
    Mistake("unchanged", "You return x as it came, with all its 2T - 1 columns. " + ROWS, lambda x: x),
)


CRASHES = (
    Mistake(
        "rows_not_stacked",
        "Your rows are right, but they come in a list: torch.stack(rows, 2) makes one tensor of them, with the queries"
        " as axis 2.",
        lambda x: list(_picked(x, "right").unbind(2)),
    ),
    Mistake(
        "no_column_of_zeros",
        "The numbers are regrouped without the column of zeros. It is what makes each row one longer than the"
        f" distances, so that the rows slip by one. {TRICK}",
        lambda x: x.reshape(*x.shape[:2], -1, x.shape[2])[:, :, 1:].reshape(*x.shape[:3], -1)[..., : x.shape[2]],
    ),
    Mistake(
        "row_of_zeros",
        "You pad a row of zeros; the trick needs a column of zeros, on the left of the last axis.",
        lambda x: _viewed(x, pad="row"),
    ),
)


# ---------------------------------------------------------------- symptoms: what the numbers themselves tell
def _squares(seen: Seen) -> list[tuple[Tensor, Tensor, Tensor]] | None:
    """(x, right, reader's) of every probe."""
    found = results(seen)
    return found and [(p.make()[0].double(), r.double(), y.double()) for p, r, y in found]


def _wrong_start(seen: Seen) -> bool:
    """Every row is a run of neighbouring columns of its own row of x, somewhere."""
    squares = _squares(seen)
    if squares is None:
        return False
    for x, _, y in squares:
        windows = x.unfold(-1, x.shape[2], 1)  # (b, h, query, start, key)
        if not (windows == y[:, :, :, None]).all(-1).any(-1).all():
            return False
    return True


def _zeros_left(seen: Seen) -> bool:
    squares = _squares(seen)
    left = squares is not None and all((y[y != r] == 0).all() for _, r, y in squares)
    return left and any((y != 0).any() for *_, y in squares)


def _spilled(seen: Seen) -> bool:
    """Every number stands in x of the same head; some in another row."""
    squares = _squares(seen)
    if squares is None:
        return False
    spilled = False
    for x, _, y in squares:
        own = (x[:, :, :, None, :] == y[..., None]).any(-1)
        head = (x.flatten(2)[:, :, None, None, :] == y[..., None]).any(-1)
        if not (head | (y == 0)).all():
            return False
        spilled = spilled or bool((head & ~own).any())
    return spilled


def _past_the_end(seen: Seen) -> bool:
    """Stops because column 2T - 1 is asked for, the first that x does not have."""
    stops = [
        re.search(r"index (\d+) is out of bounds for dimension \d+ with size (\d+)", said(g.error)) for *_, g in seen
    ]
    widths = [str(p.make()[0].shape[-1]) for p, *_ in seen]
    return all(s is not None and s.groups() == (n, n) for s, n in zip(stops, widths, strict=True))


def _stacked(fits: Callable[[int, int, int, int], bool]) -> Callable[[Seen], bool]:
    """torch.stack refuses rows of unequal length: fits(T, numbers in row 0, numbers in row k, k) each time."""

    def shows(seen: Seen) -> bool:
        found = []
        for probe, _, given in seen:
            t = probe.make()[0].shape[2]
            text = re.search(r"got \[.*?(\d+)\] at entry 0 and \[.*?(\d+)\] at entry (\d+)", said(given.error))
            if t > 1:
                found.append(text is not None and fits(t, *map(int, text.groups())))
        return all(found)

    return shows


def _written_for_one_length(seen: Seen) -> bool:
    """Right for T = 5, the lesson's, and for no other length."""
    return all(same_outcome(e, g) == (p.make()[0].shape[2] == 5) for p, e, g in seen)


SYMPTOMS = (
    CHANGES_INPUT,
    Symptom(
        "written_for_one_length",
        "With T = 5, as in the lesson, it is right, and with no other length: are its numbers still there? 4, 9 and 5"
        " are T - 1, 2T - 1 and T, with T = x.shape[-2].",
        _written_for_one_length,
    ),
    Symptom(
        "one_column_too_late",
        "Your rows are of unequal length: row 0 has one number less, as if it started one column too late and met the"
        f" end of x. {ROWS}",
        _stacked(lambda t, first, other, k: (first, other, k) == (t - 1, t, 1) and t > 1),
    ),
    Symptom(
        "one_column_too_early",
        "Your last row is empty, and the others are not: a slice that starts at -1 starts at the last column. The rows"
        f" start one column too early. {ROWS}",
        _stacked(lambda t, first, other, k: (first, other, k) == (t, 0, t - 1)),
    ),
    Symptom(
        "slice_without_end",
        "Your rows grow from one to the next: each goes on to the end of x. A row has T numbers, from column T - 1 - i"
        " to column 2T - 2 - i, so its slice ends before 2T - 1 - i.",
        _stacked(lambda t, first, other, k: (first, other, k) == (t, t + 1, 1)),
    ),
    Symptom(
        "shifted_the_other_way",
        "Your rows become shorter from one to the next: they move to the right, where x soon ends. Each row starts one"
        f" column before the row above. {ROWS}",
        _stacked(lambda t, first, other, k: (first, other, k) == (t, t - 1, 1)),
    ),
    Symptom(
        "length_from_the_last_axis",
        "Your rows are of unequal length, and row 0 has one number alone: is T taken from the last axis? That one has"
        " 2T - 1 columns; T is x.shape[-2].",
        _stacked(lambda t, first, other, k: (first, other, k) == (1, 2, 1)),
    ),
    Symptom(
        "column_past_the_end",
        "It stops because column 2T - 1 is asked for, and the last one is 2T - 2. Row i begins at column T - 1 - i and"
        " ends at column 2T - 2 - i.",
        _past_the_end,
    ),
    Symptom(
        "heads_mixed",
        "With one head of one sequence all is right; with several it is not. Batch and heads are axes 0 and 1, and"
        " every head of every sequence is shifted by itself.",
        lambda seen: right_only_where(seen, lambda probe: probe.make()[0].shape[:2] == (1, 1)),
    ),
    Symptom(
        "wrong_start",
        "Each row of your result is a run of T neighbouring columns of its own row of x, as it should be, but starts"
        f" at the wrong place. {ROWS}",
        _wrong_start,
    ),
    Symptom(
        "zeros_left",
        "What is wrong in your result is 0, and everything else is right: zeros of a padding (or of torch.zeros) stay"
        f" where numbers of x belong. {ROWS}",
        _zeros_left,
    ),
    Symptom(
        "rows_spill_over",
        "Rows of your result hold numbers from other rows of x; row i belongs to row i of x alone. With the trick of"
        " padding and viewing, the column of zeros, the dropped row and the columns that are kept have to fit each"
        f" other. {TRICK}",
        _spilled,
    ),
    MORE_RESULTS,
    ONLY_SHAPE,
    ONLY_VIEW,
    VIEW_AND_MORE,
    NUMPY,
    LIST_RESULT,
)


def _numbers(b: int, h: int, t: int, start: int, edge: bool = False) -> Probe:
    """Whole numbers that are all different; every probe starts at another one."""
    shape = (b, h, t, 2 * t - 1)
    size = math.prod(shape)
    says = f"x ({', '.join(map(str, shape))}) = {start}, {start + 1}, {start + 2}, ..." if size > 1 else f"x = {start}"
    return Probe(says, lambda: (torch.arange(start, start + size).float().view(shape),), edge=edge)


RELATIVE_SHIFT = Exercise(
    name="relative.relative_shift",
    reference=lambda x: relative.relative_shift(x),
    results=(Result("result", ("batch", "head", "query", "key")),),
    probes=(
        _numbers(1, 1, 2, 1),
        _numbers(1, 1, 1, 7, edge=True),
        _numbers(1, 1, 3, 11),
        _numbers(1, 1, 4, 101),
        _numbers(2, 3, 5, 201),
    ),
    mistakes=(*TAKE_MISTAKES, *OTHER_MISTAKES, *CRASHES),
    compound=shift_wrongly,
    symptoms=SYMPTOMS,
    at_once=2,
)
