"""The exercise decoder_io of lesson 08: how people batch target sequences for teacher forcing.

The rows of the input, the rows of the labels, what fills them up and how long they are said to be go wrong
independently, so the one wrong implementation has a switch for each.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..model import decoder_io
from .exercise import Exercise, Probe, Result, Symptom, each
from .outcome import said, same_outcome, same_value
from .symptoms import CHANGES_INPUT, MORE_RESULTS, Seen

__all__ = ["DECODER_IO"]

Row = Callable[[list, int, int, int], list]

ROWS: dict[str, Row] = {  # what a row may hold, made of the ids y, the start, the stop and ignore
    "start y": lambda y, start, stop, ignore: [start, *y],
    "y stop": lambda y, start, stop, ignore: [*y, stop],
    "start y stop": lambda y, start, stop, ignore: [start, *y, stop],
    "y": lambda y, start, stop, ignore: [*y],
    "y start": lambda y, start, stop, ignore: [*y, start],
    "stop y": lambda y, start, stop, ignore: [stop, *y],
    "stop y start": lambda y, start, stop, ignore: [stop, *y, start],
    "start y[:-1]": lambda y, start, stop, ignore: [start, *y[:-1]],
    "y[1:] stop": lambda y, start, stop, ignore: [*y[1:], stop],
    "y[:-1]": lambda y, start, stop, ignore: y[:-1],
    "y[1:]": lambda y, start, stop, ignore: y[1:],
    "y stop stop": lambda y, start, stop, ignore: [*y, stop, stop],
    "start start y": lambda y, start, stop, ignore: [start, start, *y],
    "ignore y stop": lambda y, start, stop, ignore: [ignore, *y, stop],
    "y reversed stop": lambda y, start, stop, ignore: [*y[::-1], stop],
    "start y reversed": lambda y, start, stop, ignore: [start, *y[::-1]],
}


def _filled(rows: list[list], fill: int, width: int | None, side: str) -> Tensor:
    """The rows as one tensor, filled up to the longest or to a width, where they are cut if need be."""
    width = max(map(len, rows)) if width is None else width
    rows = [row[:width] for row in rows]
    if side == "front":
        return torch.tensor([[fill] * (width - len(row)) + row for row in rows], dtype=torch.int64)
    if side == "before_last":  # a row of one token is only that token
        return torch.tensor([row[:-1] + [fill] * (width - len(row)) + row[-1:] for row in rows], dtype=torch.int64)
    return torch.tensor([row + [fill] * (width - len(row)) for row in rows], dtype=torch.int64)


def _lengths(sequences: list[list], target_in: Tensor, pad: int, count: str) -> object:
    n = [len(y) for y in sequences]
    return torch.tensor({
        "n + 1": lambda: [i + 1 for i in n],
        "n": lambda: n,
        "n + 2": lambda: [i + 2 for i in n],
        "n - 1": lambda: [i - 1 for i in n],
        "longest + 1": lambda: [max(n) + 1] * len(n),
        "longest": lambda: [max(n)] * len(n),
        "longest + 2": lambda: [max(n) + 2] * len(n),
        "padding": lambda: [max(n) - i for i in n],
        "sorted": lambda: sorted((i + 1 for i in n), reverse=True),
        "columns": lambda: (target_in != pad).sum(0).tolist(),
        "not_pad": lambda: (target_in != pad).sum(1).tolist(),
        "number": lambda: len(n),
        "one": lambda: max(n) + 1,
    }[count]())  # fmt: skip


def batch(
    sequences: list[list],
    start: int,
    stop: int,
    pad: int,
    ignore: int = -100,
    *,
    rows_in: str = "start y",
    rows_out: str = "y stop",
    fill_in: str = "pad",
    fill_out: str = "ignore",
    count: str = "n + 1",
    width: str = "own",
    side: str = "behind",
    side_out: str = "behind",
    by_value: str = "no",
    order: str = "in out lengths",
    kind: str = "tensors",
    roles: str = "start stop pad",
    changed: str = "no",
) -> object:
    """What a reader may hand to a decoder; with no switch set it is right."""
    given = dict(zip(("start", "stop", "pad"), (start, stop, pad), strict=True))
    start, stop, pad = (given[role] for role in roles.split())
    longest = max(map(len, sequences))
    fixed = {"own": None, "longest": longest, "longest + 1": longest + 1, "longest + 2": longest + 2}[width]
    fills = {"pad": pad, "ignore": ignore, "start": start, "stop": stop, "0": 0, "-100": -100, "-1": -1}
    ordered = sorted(sequences, key=len, reverse=True) if order == "sorted" else sequences
    target_in = _filled([ROWS[rows_in](y, start, stop, ignore) for y in ordered], fills[fill_in], fixed, side)
    labels = [ROWS[rows_out](y, start, stop, ignore) for y in ordered]
    target_out = _filled(labels, fills[fill_out], fixed, side if side != "behind" else side_out)
    if side_out == "pad_then_ignore":
        target_out[:, :-1] = target_out[:, :-1].masked_fill(target_out[:, :-1] == fills[fill_out], pad)
    if by_value == "labels":  # also a stop that has the id of the padding
        target_out[target_out == pad] = ignore
    if by_value == "labels_by_input" and target_in.shape == target_out.shape:
        target_out[target_in == pad] = ignore
    if by_value == "stop_in_input":  # an input filled by cutting, then cleared of the stop wherever it stands
        target_in[target_in == stop] = pad
    lengths = _lengths(ordered, target_in, pad, count)
    if changed == "sequences":
        for y in sequences:
            y.append(stop)
    results = {"in": target_in, "out": target_out, "lengths": lengths}
    names = {"sorted": "in out lengths"}.get(order, order).split()
    return _as_kind([results[name] for name in names], kind)


def _as_kind(results: list[Tensor], kind: str) -> object:
    return {
        "tensors": lambda: tuple(results),
        "lists": lambda: tuple(x.tolist() for x in results),
        "list_lengths": lambda: (*results[:-1], results[-1].tolist()),
        "int32": lambda: tuple(x.int() for x in results),
        "float": lambda: tuple(x.float() for x in results),
        "float_in": lambda: (results[0].float(), *results[1:]),
        "float_out": lambda: (results[0], results[1].float(), *results[2:]),
        "float_both": lambda: (results[0].float(), results[1].float(), *results[2:]),
        "mask": lambda: (*results[:-1], torch.arange(results[0].shape[1]) < results[-1][:, None]),
        "int_mask": lambda: (*results[:-1], (torch.arange(results[0].shape[1]) < results[-1][:, None]).long()),
        "float_lengths": lambda: (*results[:-1], results[-1].float()),
        "int32_lengths": lambda: (*results[:-1], results[-1].int()),
        "column_lengths": lambda: (*results[:-1], results[-1].unsqueeze(-1)),
        "length_first": lambda: tuple(x.mT if x.dim() == 2 else x for x in results),
        "dict": lambda: dict(zip(("target_in", "target_out", "lengths"), results, strict=False)),
        "nothing": lambda: None,
    }[kind]()


# ---------------------------------------------------------------- the gallery
SHIFT = "The input is start, y_1, ..., y_n and the labels are y_1, ..., y_n, stop: the same tokens, one place apart."
NO_STOP = (
    "The labels hold no stop: a model that is never asked to write it never learns to end a sentence. They are y_1, "
    "..., y_n, stop."
)
NO_START = (
    "The input holds no start: there is then nothing from which the first token could be predicted. It is start, y_1, "
    "..., y_n."
)
BOTH_ENDS = (
    "Input and labels both carry the start and the stop, and so they are the same: at each place the decoder is given "
    "the token that it has to predict, and copies it. Only the input has the start, only the labels have the stop."
)
STOP_IN_INPUT = (
    "Your input carries the stop at its end. It is one token too long: nothing is predicted from the stop, and only "
    "the labels have it."
)
START_IN_LABELS = "Your labels begin with the start: the model is asked to predict it. They begin with y_1."
IGNORE_IN_INPUT = (
    "The input is filled up with the ignore value, and no embedding has a row for it: looking it up fails. It belongs "
    "into the labels alone; the input is filled with pad."
)
PAD_IN_LABELS = (
    "The labels are filled up with pad, where the loss passes over the ignore value only: the model is trained to "
    "write padding. Fill the labels with ignore."
)
OLD_LENGTHS = (
    "The lengths count y alone. Input and labels have one token more than y, so each length is n + 1: a mask made of "
    "yours hides the last place, the one that has to predict the stop."
)
ONE_SHORT = (
    "Your rows end one column too early: with its start or stop the longest sequence has one token more than before, "
    "and its last one is cut off. The width is that of the longest y, plus 1."
)
IN_FRONT = "The padding stands {}in front of the tokens. It stands behind them: each row begins at place 0."

MISTAKES = (
    *each(
        "not_shifted",
        "Input and labels are the same tokens: at each place the decoder is given what it has to predict, a causal "
        f"mask does not hide a place from itself, and so it copies. {SHIFT}",
        {"rows_in": "y stop"},
        {"rows_out": "start y"},
        {"rows_in": "y", "rows_out": "y", "count": "n"},
        {"rows_in": "y", "rows_out": "y", "width": "longest + 1"},
    ),
    *each(
        "not_shifted",
        "Input and labels stand at the same places, and only the start has no label: at each place the decoder is "
        f"given what it has to predict, and copies it. {SHIFT}",
        {"rows_in": "start y stop", "rows_out": "ignore y stop", "count": "n + 2"},
        {"rows_in": "start y stop", "rows_out": "ignore y stop"},
    ),
    *each(
        "both_specials",
        BOTH_ENDS,
        {"rows_in": "start y stop", "rows_out": "start y stop", "count": "n + 2"},
        {"rows_in": "start y stop", "rows_out": "start y stop"},
        {"rows_in": "start y stop", "rows_out": "start y stop", "count": "n"},
    ),
    *each(
        "shifted_left",
        "Input and labels have changed roles: from each token the one before it is predicted, which the model has "
        f"already seen. {SHIFT}",
        {"rows_in": "y stop", "rows_out": "start y"},
    ),
    *each(
        "start_and_stop_exchanged",
        "Start and stop have changed places. The input begins with the start (the second argument), the labels end "
        "with the stop (the third).",
        {"rows_in": "stop y", "rows_out": "y start"},
    ),
    *each(
        "specials_exchanged",
        "Two or three of the special ids have changed places: after the sequences come the start, the stop and the "
        "pad, in this order.",
        {"roles": "stop pad start"}, {"roles": "pad start stop"}, {"roles": "start pad stop"},
        {"roles": "pad stop start"},
        alone=True,
    ),
    *each("stop_before_input", "Your input begins with the stop, and it must begin with the start.",
          {"rows_in": "stop y"}),
    *each("start_after_labels", "Your labels end with the start, and they must end with the stop.",
          {"rows_out": "y start"}),
    *each(
        "no_specials",
        "There is neither a start nor a stop in your rows: y is only cut at its ends, and so its first token is never "
        f"predicted, nor its end. {SHIFT}",
        {"rows_in": "y[:-1]", "rows_out": "y[1:]", "count": "n - 1"},
        {"rows_in": "y[:-1]", "rows_out": "y[1:]", "count": "n"},
        {"rows_in": "y[:-1]", "rows_out": "y[1:]"},
        {"rows_in": "y", "rows_out": "y[1:]", "count": "n"},
    ),
    *each(
        "stop_missing",
        NO_STOP,
        {"rows_in": "start y[:-1]", "rows_out": "y", "count": "n"},
        {"rows_in": "start y[:-1]", "rows_out": "y"},
        {"rows_out": "y"},
        {"rows_out": "y", "width": "longest + 1"},
        {"rows_out": "y", "count": "n"},
        {"rows_out": "y", "width": "longest + 1", "count": "n"},
    ),
    *each(
        "stop_missing",
        f"{NO_STOP} And what fills shorter rows up is pad, not ignore.",
        {"rows_out": "y", "width": "longest + 1", "side_out": "pad_then_ignore"},
    ),
    *each(
        "start_missing",
        NO_START,
        {"rows_in": "y", "rows_out": "y[1:] stop", "count": "n"},
        {"rows_in": "y", "rows_out": "y[1:] stop"},
        {"rows_in": "y"},
        {"rows_in": "y", "width": "longest + 1"},
        {"rows_in": "y", "count": "n"},
    ),
    *each(
        "shifted_by_two",
        "Between input and labels lie two places: the first token of y is missing in the labels, and from each place "
        f"the token after the next is predicted. {SHIFT}",
        {"rows_out": "y[1:] stop"},
        {"rows_out": "y[1:] stop", "width": "longest + 1"},
        {"rows_out": "y[1:]"},
    ),
    *each("stop_in_input", STOP_IN_INPUT, {"rows_in": "start y stop"}, {"rows_in": "start y stop", "count": "n + 2"}),
    *each(
        "start_in_labels",
        START_IN_LABELS,
        {"rows_out": "start y stop"},
        {"rows_out": "start y stop", "count": "n + 2"},
        {"rows_out": "start y stop", "width": "longest + 1"},
    ),
    *each(
        "last_token_missing_in_input",
        "The last token of y is missing in the input: the stop is to be predicted from it. Only a stop would be cut "
        "off there, and y has none yet.",
        {"rows_in": "start y[:-1]"},
        {"rows_in": "start y[:-1]", "width": "longest + 1"},
    ),
    *each("stop_twice", "Each row of labels ends with two stops: one is enough.", {"rows_out": "y stop stop"}),
    *each("start_twice", "Each row of the input begins with two starts: one is enough.", {"rows_in": "start start y"}),
    *each(
        "reversed",
        "Your rows hold the tokens of y in reverse order.",
        {"rows_in": "start y reversed", "rows_out": "y reversed stop"},
        {"rows_in": "start y reversed"},
        {"rows_out": "y reversed stop"},
    ),
    *each(
        "ignore_in_input",
        IGNORE_IN_INPUT,
        {"fill_in": "ignore"},
        {"rows_in": "start y stop", "fill_in": "ignore", "width": "longest + 1"},
    ),
    *each("labels_padded_with_pad", PAD_IN_LABELS, {"fill_out": "pad"}),
    *each(
        "fills_exchanged",
        "What fills the rows up has changed places: the input must be filled with pad, which an embedding knows, the "
        "labels with ignore, which the loss passes over.",
        {"fill_in": "ignore", "fill_out": "pad"},
    ),
    *each(
        "labels_padded_with_stop",
        "The labels are filled up with the stop: the loss counts it at every place of the padding. One stop, then "
        "ignore.",
        {"fill_out": "stop"},
    ),
    *each("padded_with_start", "The rows are filled up with the start, not with pad (input) and ignore (labels).",
          {"fill_in": "start"}, {"fill_out": "start"}),
    *each(
        "pad_hard_coded",
        "The input is filled up with 0 whatever pad is. The id of the padding is the argument pad.",
        {"fill_in": "0"},
    ),
    *each(
        "ignore_hard_coded",
        "The labels are filled up with -100 whatever ignore is: that is only its default.",
        {"fill_out": "-100"},
    ),
    *each("labels_padded_with_0", "The labels are filled up with 0, not with ignore.", {"fill_out": "0"}),
    *each("labels_padded_with_minus_1", "The labels are filled up with -1, not with ignore.", {"fill_out": "-1"}),
    *each("old_lengths", OLD_LENGTHS, {"count": "n"}),
    *each(
        "lengths_count_both",
        "Each of your lengths is one too large: they count the start and the stop, and each row has one of the two.",
        {"count": "n + 2"},
    ),
    *each("lengths_too_short", "Each length is two too small: it is n + 1, the tokens of y and one more.",
          {"count": "n - 1"}),
    *each(
        "lengths_of_the_batch",
        "All your lengths are alike, made of the longest sequence. Each sequence has its own, n + 1, so that a mask "
        "can tell its tokens from its padding.",
        {"count": "longest + 1"}, {"count": "longest"}, {"count": "longest + 2"},
    ),
    *each("lengths_over_sequences", "Your lengths are one for each place: the sum runs over the sequences (axis 0), "
          "and it must run over the places (axis 1).", {"count": "columns"}),
    *each("padding_counted", "Your lengths count the padding of each row, not its tokens.", {"count": "padding"}),
    *each(
        "lengths_sorted",
        "The lengths are sorted, and the rows are not: each length belongs to the row of its own number.",
        {"count": "sorted"},
    ),
    *each("one_length", "The lengths are one number, and each sequence has its own: shape (sequences,).",
          {"count": "number"}, {"count": "one"}),
    *each("one_column_short", ONE_SHORT, {"width": "longest"}),
    *each("one_column_long", "Your rows are one column too wide: the last one is padding in every row. The width is "
          "that of the longest y, plus 1.", {"width": "longest + 2"}),
    *each("padded_in_front", IN_FRONT.format(""), {"side": "front"}),
    *each("labels_padded_in_front", IN_FRONT.format("of the labels stands ").replace("padding stands of", "padding of"),
          {"side_out": "front"}),
    *each(
        "stop_after_padding",
        "In shorter rows the stop stands at the end of the row, behind the padding: it must follow the last token, and "
        "the padding comes after it. Add the stop before you pad.",
        {"side_out": "before_last"},
        {"side_out": "before_last", "fill_out": "pad"},
    ),
    *each(
        "padded_by_value",
        "Every label that has the id of the padding is made ignore, also a real one: where the stop has the same id, "
        "it is lost. What is padding is told by the lengths, not by the id.",
        {"by_value": "labels"},
        edge=True,
    ),
    *each(
        "padded_by_value",
        "Every label is made ignore where the input has the id of the padding: where the start has the same id, the "
        "first label is lost. What is padding is told by the lengths, not by the id.",
        {"by_value": "labels_by_input"},
        edge=True,
    ),
    *each(
        "lengths_by_value",
        "Where the start has the same id as the padding, your lengths are one too small: they count the ids that are "
        "not pad. What is padding is told by len(y), not by the id.",
        {"count": "not_pad"},
        edge=True,
    ),
    *each("sorted_by_length", "Your rows come in another order, the longest first: row i belongs to sequence i.",
          {"order": "sorted"}),
    *each(
        "results_exchanged",
        "The three results come in another order: they are the input, the labels, the lengths.",
        {"order": "out in lengths"}, {"order": "lengths in out"}, {"order": "in lengths out"},
        alone=True,
    ),
    *each("lengths_missing", "The lengths are missing: the results are the input, the labels, the lengths.",
          {"order": "in out"}, alone=True),
    *each("lists", "Your numbers are right, but they come as lists: torch.tensor makes tensors of them.",
          {"kind": "lists"}, alone=True),
    *each("list_lengths", "Your lengths are a list: torch.tensor makes a tensor of it.", {"kind": "list_lengths"}),
    *each("float_ids", "Your results hold floats, and an embedding takes whole numbers: int64.",
          {"kind": "float"}, {"kind": "float_lengths"}, {"kind": "float_in"}, {"kind": "float_out"},
          {"kind": "float_both"}),
    *each("mask_for_lengths", "You return a mask in place of the lengths: they are one number for each sequence, "
          "n + 1.",
          {"kind": "mask"}, {"kind": "int_mask"}),
    *each("int32", "Your results have dtype int32: ids, labels and lengths are int64, torch's own for ids.",
          {"kind": "int32"}, {"kind": "int32_lengths"}),
    *each("column_lengths", "Your lengths have shape (sequences, 1): they are one axis, (sequences,).",
          {"kind": "column_lengths"}),
    *each("length_first", "The axes of your input and labels are exchanged: they are (sequence, place), the batch "
          "first.", {"kind": "length_first"}),
    *each("dict", "The results come in a dict: return them as three values.", {"kind": "dict"}, alone=True),
    *each("nothing_returned", "Nothing comes back: a return is missing.", {"kind": "nothing"}, alone=True),
    *each(
        "changes_sequences",
        "The caller's lists are changed: append, insert and += work on them in place. [start, *y] or [start] + y makes "
        "a new list.",
        {"changed": "sequences"},
    ),
)  # fmt: skip


# ---------------------------------------------------------------- what does not matter, symptoms, probes
def _settled(args: tuple, value: object) -> object:
    """A stop in a padded place of the input harms nobody: it is taken for padding."""
    sequences, _, stop, pad = args[:4]
    width = max(map(len, sequences)) + 1
    if isinstance(value, list) and value and isinstance(value[0], Tensor):
        target_in = value[0]
        if target_in.shape == (len(sequences), width) and not target_in.is_floating_point():
            behind = torch.arange(width) > torch.tensor([len(y) for y in sequences])[:, None]
            return [target_in.masked_fill(behind & (target_in == stop), pad), *value[1:]]
    return value


def _ignore_required(seen: Seen) -> bool:
    """It takes all five arguments, and not four."""
    return all((given.error is not None and not given.called) == ("left out" in p.says) for p, _, given in seen)


def _tensors(seen: Seen) -> list[tuple[list[Tensor], list[Tensor]]] | None:
    """(expected, given) on each probe; None unless three tensors always came."""
    pairs = [(e.value, g.value) for _, e, g in seen]
    fits = all(isinstance(g, list) and len(g) == 3 and all(isinstance(x, Tensor) for x in g) for _, g in pairs)
    return pairs if fits else None


def _default_differs(seen: Seen) -> bool:
    """It is right where ignore is given, and only the labels are wrong where it is left out."""
    pairs = _tensors(seen)
    wrong = [p for p, e, g in seen if not same_outcome(e, g)]
    if pairs is None or [("left out" in p.says) for p in wrong] != [True]:
        return False
    (_, e, g) = next(s for s in seen if s[0] is wrong[0])
    labels = same_value(e.value[1], g.value[1])
    return not labels and same_value([e.value[0], e.value[2]], [g.value[0], g.value[2]])


def _too_wide(seen: Seen) -> bool:
    """All is right, but for columns behind, in which nothing changes."""
    pairs = _tensors(seen)
    if pairs is None:
        return False
    for expected, given in pairs:
        for a, b in zip(expected[:2], given[:2], strict=True):
            width = a.shape[-1]
            behind = b[:, width:] if b.dim() == 2 else b
            if not same_value(a, b[..., :width]) or behind.unique().numel() > 1:
                return False
        if not same_value(expected[2], given[2]):
            return False
    return any(g[0].shape != e[0].shape for e, g in pairs)


def _first_two(seen: Seen) -> list[object] | None:
    """Every input and labels; None unless several values always came."""
    values = [g.value for _, _, g in seen if g.error is None]
    return (
        [x for v in values for x in v[:2]]
        if values and all(isinstance(v, list) and len(v) > 1 for v in values)
        else None
    )


def _one_axis(seen: Seen) -> bool:
    found = _first_two(seen)
    return found is not None and all(isinstance(x, Tensor) and x.dim() == 1 for x in found)


def _rows_in_lists(seen: Seen) -> bool:
    found = _first_two(seen)
    return found is not None and all(
        isinstance(x, list) and all(isinstance(y, (list, Tensor)) for y in x) for x in found
    )


def _says_error(kinds: type[BaseException] | tuple, *words: str) -> Callable[[Seen], bool]:
    """Whether an error was raised, and each is of such a kind and says one of these words."""

    def shows(seen: Seen) -> bool:
        errors = [g.error for _, _, g in seen if g.error is not None]
        return bool(errors) and all(isinstance(e, kinds) and any(w in said(e) for w in words) for e in errors)

    return shows


def _given(sequences: list[list], *specials: int) -> Callable[[], tuple]:
    return lambda: ([list(y) for y in sequences], *specials)


def _says(sequences: list[list], start: int, stop: int, pad: int, ignore: int) -> str:
    return f"sequences {sequences}, start {start}, stop {stop}, pad {pad}, ignore {ignore}"


BATCHES = (  # sequences, start, stop, pad, ignore, whether it is an edge case
    ([[5, 6, 7]], 1, 2, 0, -100, False),
    ([[5, 6, 7], [8]], 1, 2, 0, -100, False),
    ([[5, 6], [8, 9, 4], [7]], 3, 1, 2, -1, False),
    ([[5, 6, 7], [8]], 1, 0, 0, -100, True),
    ([[5, 6, 7], [8]], 0, 1, 0, -100, True),
    ([[], [4]], 1, 2, 0, -100, True),
)

DECODER_IO = Exercise(
    name="model.decoder_io",
    reference=decoder_io,
    results=(
        Result("input", ("sequence", "place")),
        Result("labels", ("sequence", "place")),
        Result("lengths", ("sequence",)),
    ),
    probes=(
        *(Probe(_says(*b[:5]), _given(*b[:5]), edge=b[5]) for b in BATCHES),
        Probe(
            "sequences [[5, 6], [7]], start 1, stop 2, pad 0, ignore left out",
            _given([[5, 6], [7]], 1, 2, 0),
            edge=True,
        ),
    ),
    compound=batch,
    settled=_settled,
    at_once=2,
    mistakes=MISTAKES,
    symptoms=(
        Symptom(
            "ignore_required",
            "It cannot be called without ignore: give the argument its default, ignore=-100.",
            _ignore_required,
        ),
        Symptom(
            "ignore_default",
            "In the cases tried here it is right where ignore is given. Where it is left out, the labels are filled up "
            "with something else than -100, its default.",
            _default_differs,
        ),
        Symptom(
            "too_wide",
            "Your rows are right, and followed by columns that are padding in every row: the width is that of the "
            "longest y, plus 1.",
            _too_wide,
        ),
        Symptom(
            "one_axis",
            "Your input and labels have one axis, and they need two, (sequence, place). Does return stand inside the "
            "loop over the sequences?",
            _one_axis,
        ),
        Symptom(
            "rows_not_joined",
            "Your rows come as a list: fill them up to one length, and make one tensor of them.",
            _rows_in_lists,
        ),
        Symptom(
            "not_padded",
            "The rows differ in length, and torch.tensor wants them all of one length: fill them up first.",
            _says_error(ValueError, "expected sequence of length"),
        ),
        Symptom(
            "slice_does_not_fit",
            "A row and the place made for it differ in length. With its start, or with its stop, a row has n + 1 "
            "tokens: it fills [: n + 1], its last place is n, behind the start y fills [1 : n + 1], and the width is "
            "that of the longest y, plus 1.",
            _says_error(
                (RuntimeError, IndexError, ValueError),
                "expanded size of the tensor",
                "shape mismatch",
                "out of bounds",
                "out of range",
                "could not broadcast",
            ),
        ),
        CHANGES_INPUT,
        MORE_RESULTS,
    ),
)
