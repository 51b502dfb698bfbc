"""Exercises of lesson 01: padding_mask, causal_mask, cross_mask, decoder_mask.

Each gallery is one wrong implementation with switches: which entries are True, along which axes they lie, and in
which dtype they come. A mistake sets one switch; several at once are several mistakes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .. import masks
from .exercise import Exercise, Mistake, Probe, Result, each, switch

AXES = ("batch", "head axis", "query", "key")


def _tensor(*numbers: int) -> Tensor:
    return torch.tensor(numbers)


# ---------------------------------------------------------------- switches that all four share
FILLS = {
    "minus_inf": -torch.inf,
    "minus_1e9": -1e9,
    "minus_1e4": -1e4,
    "lowest": torch.finfo(torch.float32).min,
    "minus_1e20": -1e20,
}
WHOLE = {"int64": torch.int64, "int32": torch.int32, "int8": torch.int8, "uint8": torch.uint8}


def _as_dtype(mask: Tensor, kind: str) -> Tensor:
    """The bool mask in another dtype."""
    if kind in WHOLE:
        return mask.to(WHOLE[kind])
    if kind in FILLS:
        return torch.zeros(mask.shape).masked_fill(~mask, FILLS[kind])
    return {
        "bool": lambda: mask,
        "float": lambda: mask.float(),
        "ones_and_minus_inf": lambda: torch.ones(mask.shape).masked_fill(~mask, -torch.inf),
        "nan": lambda: torch.zeros(mask.shape).masked_fill(~mask, -torch.inf).masked_fill(mask, torch.nan),
    }[kind]()


DTYPES = (
    Mistake(
        "float_ones",
        "Your mask holds the numbers 1.0 and 0.0 instead of True and False. A float mask is added to the scores, so it "
        "would forbid nothing: a comparison gives dtype bool, and .bool() converts.",
        switches={"dtype": "float"},
    ),
    *each(
        "integers",
        "Your mask holds the whole numbers 1 and 0 instead of True and False: a comparison gives dtype bool, and"
        " .bool() converts.",
        *switch("dtype", *WHOLE),
    ),
    *each(
        "additive",
        "You built the kind of mask that is added to the scores, of zeros and huge negative numbers (or -inf). Here a"
        " mask is bool, with True where attending is allowed.",
        *switch("dtype", *FILLS),
    ),
    Mistake(
        "ones_and_minus_inf",
        "Your mask holds 1.0 and -inf: half a bool mask, half an additive one. Return dtype bool, with True where "
        "attending is allowed.",
        switches={"dtype": "ones_and_minus_inf"},
    ),
    Mistake(
        "nan_from_zero_times_inf",
        "Your mask holds NaN: 0 * -inf is NaN, so a mask cannot be made by multiplying with -inf. Return dtype bool,"
        " with True where attending is allowed.",
        switches={"dtype": "nan"},
    ),
)


def _nothing_allowed(**all_false: str) -> tuple[Mistake, ...]:
    """Zeros everywhere, which are the same as numbers whatever they stand for."""
    text = (
        "Your mask holds 0 everywhere and is not bool. Return dtype bool, with True where attending is allowed, which"
        " is not nowhere."
    )
    return each("all_zero", text, *(all_false | {"dtype": kind} for kind in ("float", *WHOLE)), alone=True)


INVERTED = (
    "Your mask says the exact opposite of the right one: it allows what is forbidden and forbids what is allowed. Here,"
    " and in F.scaled_dot_product_attention, True means may attend; in torch.nn.MultiheadAttention True means blocked."
)


def _real(lengths: Tensor, max_length: int, content: str) -> Tensor:
    """(batch, key), True at what a reader may take for the real tokens."""
    positions = torch.arange(max_length)[None, :]
    n = lengths[:, None]
    return {
        "right": lambda: positions < n,
        "inverted": lambda: positions >= n,
        "one_more": lambda: positions <= n,
        "one_less": lambda: positions < n - 1,
        "without_first": lambda: (positions < n) & (positions > 0),
        "one_based": lambda: (positions >= 1) & (positions <= n),
        "from_the_right": lambda: positions >= max_length - n,
        "padding_count": lambda: positions < max_length - n,
        "all_true": lambda: positions.expand(len(lengths), -1) >= 0,
        "all_false": lambda: positions.expand(len(lengths), -1) < 0,
        "longest_for_all": lambda: positions.expand(len(lengths), -1) < n.max(),
        "shortest_for_all": lambda: positions.expand(len(lengths), -1) < n.min(),
        "first_for_all": lambda: positions.expand(len(lengths), -1) < n[0],
        "last_for_all": lambda: positions.expand(len(lengths), -1) < n[-1],
        "last_token_only": lambda: positions == n - 1,
        "first_padding_only": lambda: positions != n,
        "equal": lambda: positions == n,
        "first_sequence_only": lambda: (positions < n) & (torch.arange(len(lengths))[:, None] == 0),
        "never_empty": lambda: (positions < n) | (positions == 0),
        "reversed_batch": lambda: positions < n.flip(0),
        "sorted_batch": lambda: positions < n.sort(0, descending=True).values,
    }[content]()


def _content(value: str) -> dict[str, str]:
    return {"content": value}


def _length_mistakes(keys: str, lengths: str = "lengths") -> tuple[Mistake, ...]:
    """Mistakes in reading the lengths; `keys` and `lengths` are what they are called in the exercise."""
    return (
        Mistake("inverted", INVERTED, switches=_content("inverted")),
        Mistake(
            "one_too_many",
            f"Each row allows one {keys} too many, the first padding after the real tokens: with positions counted from"
            " 0, a sequence of length n has the positions 0 to n - 1, so compare with <, not <=.",
            switches=_content("one_more"),
        ),
        Mistake(
            "one_too_few",
            f"Each row forbids the last real {keys}: with positions counted from 0, a sequence of length n has the"
            " positions 0 to n - 1, and all of them are real.",
            switches=_content("one_less"),
        ),
        Mistake(
            "first_hidden",
            f"Your mask forbids position 0, which is a real {keys}: positions count from 0, and 0 is the first of"
            " them.",
            switches=_content("without_first"),
        ),
        Mistake(
            "one_based",
            "Your pattern is shifted one place to the right: it counts positions from 1, so it hides the first real"
            " token and allows the first padding. torch.arange counts from 0.",
            switches=_content("one_based"),
        ),
        Mistake(
            "left_padding",
            "You put the real tokens at the end of each row, as if the padding stood on the left. Here sequences are"
            " padded on the right: the real tokens are the first ones.",
            switches=_content("from_the_right"),
        ),
        Mistake(
            "counts_padding",
            "You allow as many positions as there is padding, not as there are real tokens: `lengths` counts the real "
            "tokens, not the padding.",
            switches=_content("padding_count"),
        ),
        Mistake(
            "all_true",
            "Every entry is True: nothing is forbidden, and the padding is attended to like a real token.",
            switches=_content("all_true"),
            alone=True,
        ),
        Mistake(
            "all_false",
            "Every entry is False: nothing may be attended to at all.",
            switches=_content("all_false"),
            alone=True,
        ),
        Mistake(
            "longest_for_all",
            "Every sequence gets the mask of the longest one: compare the positions with each sequence's own length, "
            f"{lengths}[:, None].",
            switches=_content("longest_for_all"),
        ),
        Mistake(
            "shortest_for_all",
            "Every sequence gets the mask of the shortest one: compare the positions with each sequence's own length, "
            f"{lengths}[:, None].",
            switches=_content("shortest_for_all"),
        ),
        Mistake(
            "first_for_all",
            "Every sequence gets the mask of the first one: compare the positions with each sequence's own length, "
            f"{lengths}[:, None].",
            switches=_content("first_for_all"),
        ),
        Mistake(
            "last_for_all",
            "Every sequence gets the mask of the last one: each sequence needs its own length. In a loop, is the result"
            " of each round kept?",
            switches=_content("last_for_all"),
        ),
        Mistake(
            "last_token_only",
            "Only the last real token of each sequence is allowed: all positions below the length are real, so compare "
            "with <, for example, not with ==.",
            switches=_content("last_token_only"),
        ),
        Mistake(
            "first_padding_only",
            "Only the first padding of each sequence is forbidden: all positions from the length on are padding, so"
            " compare with <, for example, not with !=.",
            switches=_content("first_padding_only"),
        ),
        Mistake(
            "equal_instead_of_less",
            f"Only the position after the last real {keys} is allowed: all positions below the length are real, so"
            " compare with <, for example, not with ==.",
            switches=_content("equal"),
        ),
        Mistake(
            "first_sequence_only",
            "Only the first sequence has real tokens in your mask, the rows of all others are False. In a loop, does"
            " the return stand inside it?",
            switches=_content("first_sequence_only"),
        ),
        Mistake(
            "never_empty",
            "Your mask lets a sequence of length 0 attend to position 0, which is padding. A row with nothing to attend"
            " to stays all False: the attention function gives it output 0.",
            switches=_content("never_empty"),
        ),
        Mistake(
            "batch_reversed",
            "The sequences of the batch come out in reverse order: row b of the mask must use its own length.",
            switches=_content("reversed_batch"),
        ),
        Mistake(
            "batch_sorted",
            "The sequences of the batch come out sorted by length: row b of the mask must use its own length.",
            switches=_content("sorted_batch"),
        ),
    )


# ---------------------------------------------------------------- padding_mask
def _padding(
    lengths: Tensor,
    max_length: int,
    *,
    content: str = "right",
    width: str = "right",
    axes: str = "right",
    dtype: str = "bool",
) -> Tensor:
    if width == "longest":
        max_length = int(lengths.max())
    if width == "one_more":
        max_length = max_length + 1
    if width == "one_less":
        max_length = max_length - 1
    real = _real(lengths, max_length, content)
    mask = {
        "right": lambda: real[:, None, None, :],
        "query": lambda: real[:, None, :, None],
        "heads": lambda: real[:, :, None, None],
        "two": lambda: real,
        "three": lambda: real[:, None, :],
        "three_query": lambda: real[:, :, None],
        "no_batch_axis": lambda: real[None, None],
        "batch_as_heads": lambda: real[None, :, None, :],
        "transposed": lambda: real.T,
        "key_by_batch": lambda: real.T[:, None, None, :],
        "square": lambda: real[:, None, None, :].expand(-1, 1, max_length, -1),
        "square_rows": lambda: real[:, None, :, None].expand(-1, 1, -1, max_length),
        "both": lambda: real[:, None, :, None] & real[:, None, None, :],
        "three_square": lambda: real[:, None, :].expand(-1, max_length, -1),
        "squeezed": lambda: real[:, None, None, :].squeeze(),
    }[axes]()
    return _as_dtype(mask, dtype)


SHAPE_NEEDED = (
    "The mask must line up with scores of shape (batch, heads, query, key), so it needs shape (batch, 1, 1, key)"
)

PADDING_MASK = Exercise(
    name="masks.padding_mask",
    reference=lambda lengths, max_length: masks.padding_mask(lengths, max_length),
    results=(Result("mask", ("batch", "head axis", "query axis", "key")),),
    probes=(
        Probe("lengths [3, 1], max_length 4", lambda: (_tensor(3, 1), 4)),
        Probe("lengths [4, 4], max_length 4", lambda: (_tensor(4, 4), 4)),
        Probe("lengths [2, 3], max_length 5", lambda: (_tensor(2, 3), 5)),
        Probe("lengths [2, 1, 3], max_length 3", lambda: (_tensor(2, 1, 3), 3)),
        Probe("lengths [2], max_length 6", lambda: (_tensor(2), 6), edge=True),
        Probe("lengths [0, 2], max_length 3", lambda: (_tensor(0, 2), 3), edge=True),
    ),
    compound=_padding,
    at_once=2,
    mistakes=(
        *_length_mistakes("key"),
        *_nothing_allowed(content="all_false"),
        *DTYPES,
        Mistake(
            "ignores_max_length",
            "Your mask is as wide as the longest sequence, not max_length wide: the batch may be padded further than"
            " its longest sequence, and the mask must cover all of it.",
            switches={"width": "longest"},
        ),
        Mistake(
            "width_plus_one",
            "Your mask has max_length + 1 columns: torch.arange(n) already counts 0 to n - 1, which are n positions.",
            switches={"width": "one_more"},
        ),
        Mistake(
            "width_minus_one",
            "Your mask has max_length - 1 columns: torch.arange(n) counts 0 to n - 1, which are n positions.",
            switches={"width": "one_less"},
        ),
        Mistake(
            "query_axis",
            "Your lengths lie along the query axis, (batch, 1, query, 1): that silences padded queries, while every"
            " query still sees the padded keys. Keys are the last axis: (batch, 1, 1, key).",
            switches={"axes": "query"},
        ),
        Mistake(
            "head_axis",
            "Your lengths lie along the axis of the heads, (batch, key, 1, 1). Keys are the last axis: (batch, 1, 1,"
            " key).",
            switches={"axes": "heads"},
        ),
        Mistake(
            "no_middle_axes",
            f"Its shape is (batch, key). {SHAPE_NEEDED}: shapes are aligned from the right, and "
            "without the two middle axes the batch would meet the queries, silently where both have the same size.",
            switches={"axes": "two"},
        ),
        Mistake(
            "one_middle_axis",
            f"One axis is missing: (batch, 1, key). {SHAPE_NEEDED}; with three axes the batch "
            "would be laid over the heads.",
            switches={"axes": "three"},
        ),
        Mistake(
            "column_per_sequence",
            f"Your mask has shape (batch, key, 1). {SHAPE_NEEDED}: the new axes go between batch and key, not behind"
            " them.",
            switches={"axes": "three_query"},
        ),
        Mistake(
            "new_axes_in_front",
            f"Your mask has shape (1, 1, batch, key): the new axes stand in front. {SHAPE_NEEDED}: the new axes go"
            " between batch and key.",
            switches={"axes": "no_batch_axis"},
        ),
        Mistake(
            "batch_as_heads",
            f"Your mask has shape (1, batch, 1, key): the batch lies where the heads belong. {SHAPE_NEEDED}.",
            switches={"axes": "batch_as_heads"},
        ),
        Mistake(
            "transposed",
            f"Your mask has shape (key, batch): positions and sequences are exchanged. {SHAPE_NEEDED}.",
            switches={"axes": "transposed"},
        ),
        Mistake(
            "transposed",
            f"Your mask has shape (key, 1, 1, batch): positions and sequences are exchanged. {SHAPE_NEEDED}.",
            switches={"axes": "key_by_batch"},
        ),
        Mistake(
            "expanded",
            "You repeat the mask for every query: (batch, 1, query, key). Padding is the same for all "
            "queries, so (batch, 1, 1, key) is enough and fits any number of queries.",
            switches={"axes": "square"},
        ),
        Mistake(
            "expanded_queries",
            "Your mask is (batch, 1, query, key) and False in the rows of padded queries. Padding is about keys: the "
            "columns of padded keys must be False, and (batch, 1, 1, key) is enough.",
            switches={"axes": "square_rows"},
        ),
        Mistake(
            "rows_and_columns",
            "Your mask forbids the rows of padded queries as well as the columns of padded keys. Only keys are masked:"
            " the loss ignores padded queries, and a row with nothing to attend to makes trouble. (batch, 1, 1, key) is"
            " enough.",
            switches={"axes": "both"},
        ),
        Mistake(
            "expanded_without_heads",
            f"Your mask has shape (batch, query, key). {SHAPE_NEEDED}; with three axes the batch would meet the heads.",
            switches={"axes": "three_square"},
        ),
        Mistake(
            "squeezed",
            f"You remove every axis of size 1, so the shape depends on the batch. {SHAPE_NEEDED}, also when the batch"
            " is 1.",
            switches={"axes": "squeezed"},
        ),
    ),
)


# ---------------------------------------------------------------- causal_mask
def _triangle(length: int, content: str) -> Tensor:
    """(query, key), True where a reader may take the past to be."""
    ones = torch.ones(length, length, dtype=torch.bool)
    return {
        "right": lambda: ones.tril(),
        "flipped": lambda: ones.triu(),
        "inverted": lambda: ones.triu(1),
        "without_self": lambda: ones.tril(-1),
        "one_future": lambda: ones.tril(1),
        "two_future": lambda: ones.tril(2),
        "missing_two": lambda: ones.tril(-2),
        "future_and_one_past": lambda: ones.triu(-1),
        "all_true": lambda: ones,
        "all_false": lambda: ~ones,
        "self_only": lambda: torch.eye(length, dtype=torch.bool),
        "others_only": lambda: ~torch.eye(length, dtype=torch.bool),
        "mirrored": lambda: ones.tril().flip(1),
        "upside_down": lambda: ones.tril().flip(0),
        "last_two": lambda: ones.tril() & ones.triu(-1),
        "first_row": lambda: ones.tril()[:1].expand(length, length),
        "last_row": lambda: ones.tril()[-1:].expand(length, length),
    }[content]()


def _triangle_mistakes(inverted: str = INVERTED) -> tuple[Mistake, ...]:
    return (
        Mistake("inverted", inverted, switches=_content("inverted")),
        Mistake(
            "flipped",
            "Your triangle is flipped: each query sees itself and the future, but not the past. Rows are queries and"
            " columns are keys, so row i may look at columns 0 to i: the lower triangle (tril).",
            switches=_content("flipped"),
        ),
        Mistake(
            "without_self",
            "No query may attend to itself: the diagonal is False, and the first query has nothing at all to attend to."
            " The triangle includes the diagonal (tril with diagonal=0, or >= instead of >).",
            switches=_content("without_self"),
        ),
        Mistake(
            "one_future",
            "Each query also sees exactly one key of the future: the triangle reaches one diagonal too far. tril() with"
            " diagonal=0 already includes the token itself.",
            switches=_content("one_future"),
        ),
        Mistake(
            "two_future",
            "Each query also sees two keys of the future: the triangle reaches two diagonals too far. tril() with "
            "diagonal=0 already includes the token itself.",
            switches=_content("two_future"),
        ),
        Mistake(
            "past_missing",
            "No query may attend to itself or to the token just before it: the triangle ends two diagonals too early.",
            switches=_content("missing_two"),
        ),
        Mistake(
            "flipped_with_one_past",
            "Your triangle is flipped: each query sees the future, itself, and one token of the past. Rows are queries,"
            " so row i may look at columns 0 to i: the lower triangle (tril).",
            switches=_content("future_and_one_past"),
        ),
        Mistake(
            "all_true",
            "Every entry is True: nothing hides the future from any query.",
            switches=_content("all_true"),
            alone=True,
        ),
        Mistake(
            "all_false",
            "Every entry is False: no query may attend to anything.",
            switches=_content("all_false"),
            alone=True,
        ),
        Mistake(
            "self_only",
            "Each query may attend to itself alone: the past, below the diagonal, must be True as well.",
            switches=_content("self_only"),
        ),
        Mistake(
            "others_only",
            "Each query may attend to everything but itself: a causal mask hides the future and nothing else.",
            switches=_content("others_only"),
        ),
        Mistake(
            "mirrored",
            "Your triangle is mirrored left to right: columns are keys in their order, so key 0 is the leftmost column"
            " and the diagonal runs from the upper left to the lower right.",
            switches=_content("mirrored"),
        ),
        Mistake(
            "upside_down",
            "Your triangle is upside down: row 0 is the first query and sees only key 0, the last row sees every key.",
            switches=_content("upside_down"),
        ),
        Mistake(
            "last_two_only",
            "Each query sees only itself and the one token before it: all of the past must be True.",
            switches=_content("last_two"),
        ),
        Mistake(
            "first_row_for_all",
            "Every query has the row of the first one: each row i must be True in columns 0 to i.",
            switches=_content("first_row"),
        ),
    )


def _causal(length: int, *, content: str = "right", axes: str = "right", dtype: str = "bool", size: int = 0) -> Tensor:
    square = _triangle(max(length + size, 0), content)
    mask = {
        "right": lambda: square,
        "one": lambda: square[None],
        "two": lambda: square[None, None],
        "flat": lambda: square.flatten(),
        "behind": lambda: square[..., None],
    }[axes]()
    return _as_dtype(mask, dtype)


CAUSAL_MASK = Exercise(
    name="masks.causal_mask",
    reference=lambda length: masks.causal_mask(length),
    results=(Result("mask", ("query", "key")),),
    probes=(
        Probe("length 2", lambda: (2,)),
        Probe("length 3", lambda: (3,)),
        Probe("length 5", lambda: (5,)),
        Probe("length 1", lambda: (1,)),
        Probe("length 12", lambda: (12,)),
    ),
    compound=_causal,
    at_once=2,
    mistakes=(
        *_triangle_mistakes(
            INVERTED.replace("is allowed.", "is allowed (as triu(1) does, the strict upper triangle).")
        ),
        *_nothing_allowed(content="all_false"),
        *DTYPES,
        Mistake(
            "blocked_as_minus_inf",
            "Your matrix holds -inf where attending is allowed and 0 in the future: that is the additive mask with"
            " allowed and forbidden exchanged. Return dtype bool, True where attending is allowed.",
            wrong=lambda length: torch.zeros(length, length).masked_fill(_triangle(length, "right"), -torch.inf),
        ),
        Mistake(
            "extra_axes",
            "The shape is (1, length, length): this mask is the same for every sequence and head, "
            "and (length, length) already broadcasts to them.",
            switches={"axes": "one"},
        ),
        Mistake(
            "extra_axes",
            "The shape is (1, 1, length, length): this mask is the same for every sequence and "
            "head, and (length, length) already broadcasts to them.",
            switches={"axes": "two"},
        ),
        Mistake(
            "flattened",
            "The entries are right, but they lie in one long row of length * length: the mask is a square (query,"
            " key).",
            switches={"axes": "flat"},
        ),
        Mistake(
            "extra_axes",
            "There is an extra axis behind: the mask is a square (query, key).",
            switches={"axes": "behind"},
        ),
        Mistake(
            "one_too_large",
            "Your square is (length + 1, length + 1): there are `length` queries and as many keys.",
            switches={"size": 1},
        ),
        Mistake(
            "one_too_small",
            "Your square is (length - 1, length - 1): there are `length` queries and as many keys.",
            switches={"size": -1},
        ),
        Mistake(
            "one_row",
            "Your mask has a single row, (1, length) or (length,), all True: every query needs a row of its own.",
            wrong=lambda length: torch.ones(length, dtype=torch.bool),
        ),
    ),
)


# ---------------------------------------------------------------- cross_mask
def _cross(
    source_lengths: Tensor,
    target_length: int,
    max_source: int,
    *,
    content: str = "right",
    order: str = "free",
    axes: str = "right",
    dtype: str = "bool",
) -> Tensor:
    width = {"target_width": target_length, "longest": int(source_lengths.max())}.get(axes, max_source)
    real = _real(source_lengths, width, content)
    mask = real[:, None, None, :].expand(-1, 1, target_length, -1)
    if axes == "rows":
        mask = _real(source_lengths, target_length, content)[:, None, :, None].expand(-1, 1, -1, max_source)
    if axes == "rows_and_columns":
        mask = mask & _real(source_lengths, target_length, content)[:, None, :, None]
    if axes == "source_rows":
        mask = real[:, None, :, None].expand(-1, 1, -1, target_length)
    if axes == "source_square":
        mask = real[:, None, None, :].expand(-1, 1, max_source, -1)
    if order != "free":
        triangle = torch.ones(mask.shape[-2:], dtype=torch.bool)
        triangle = triangle.triu() if order == "flipped" else triangle.tril(1 if order == "one_future" else 0)
        mask = triangle.expand(mask.shape) if order == "causal_only" else mask & triangle
    mask = {"two": lambda: real, "three": lambda: mask[:, 0], "three_row": lambda: real[:, None, :]}.get(
        axes, lambda: mask
    )()
    return _as_dtype(mask, dtype)


CROSS_SHAPE = (
    "The scores of cross-attention are (batch, heads, query, key) with target positions as queries and source positions"
    " as keys"
)

CROSS_MASK = Exercise(
    name="masks.cross_mask",
    reference=lambda lengths, target_length, max_source: masks.cross_mask(lengths, target_length, max_source),
    results=(Result("mask", AXES),),
    probes=(
        Probe("source_lengths [3, 1], target_length 2, max_source 4", lambda: (_tensor(3, 1), 2, 4)),
        Probe("source_lengths [3, 2], target_length 5, max_source 4", lambda: (_tensor(3, 2), 5, 4)),
        Probe("source_lengths [2, 3], target_length 3, max_source 3", lambda: (_tensor(2, 3), 3, 3)),
        Probe("source_lengths [2, 1], target_length 5, max_source 2", lambda: (_tensor(2, 1), 5, 2)),
        Probe("source_lengths [3, 3], target_length 2, max_source 3", lambda: (_tensor(3, 3), 2, 3)),
        Probe("source_lengths [2, 4, 1], target_length 3, max_source 6", lambda: (_tensor(2, 4, 1), 3, 6)),
        Probe("source_lengths [0, 2], target_length 3, max_source 2", lambda: (_tensor(0, 2), 3, 2), edge=True),
    ),
    broadcast=True,
    compound=_cross,
    at_once=2,
    mistakes=(
        *_length_mistakes("source position", "source_lengths"),
        *_nothing_allowed(content="all_false"),
        *DTYPES,
        Mistake(
            "causal",
            "Your mask is causal as well: target position i sees only the source positions up to i. The source is"
            " complete before the target begins, so every target position may see every real source position.",
            switches={"order": "causal"},
        ),
        Mistake(
            "causal_only",
            "Your mask is causal and knows nothing of the source's padding. Cross-attention is the other way round: no "
            "causality, since the whole source is known, but padding of the source is forbidden.",
            switches={"order": "causal_only"},
        ),
        Mistake(
            "causal_flipped",
            "Your mask hides the source positions before i from target position i. The source has no future for the"
            " target: every target position may see every real source position.",
            switches={"order": "flipped"},
        ),
        Mistake(
            "causal_with_one_more",
            "Your mask hides the source positions from i + 2 on from target position i. Cross-attention has no order: "
            "every target position may see every real source position.",
            switches={"order": "one_future"},
        ),
        Mistake(
            "masks_target_rows",
            "You compare the lengths with target positions: whole rows are forbidden, and the padding of the source"
            " stays visible. The lengths belong to the source, whose positions are the keys, the last axis.",
            switches={"axes": "rows"},
        ),
        Mistake(
            "rows_and_columns",
            "You compare the source's lengths with the target positions as well, which forbids whole rows. Only source "
            "positions, the keys, are masked.",
            switches={"axes": "rows_and_columns"},
        ),
        Mistake(
            "source_as_queries",
            f"Your mask is (batch, 1, source, target): the axes are exchanged. {CROSS_SHAPE}.",
            switches={"axes": "source_rows"},
        ),
        Mistake(
            "source_square",
            f"Your mask is (batch, 1, source, source), the mask of the encoder. {CROSS_SHAPE}.",
            switches={"axes": "source_square"},
        ),
        Mistake(
            "target_width",
            f"Your mask has target_length columns: its last axis runs over target positions. {CROSS_SHAPE}.",
            switches={"axes": "target_width"},
        ),
        Mistake(
            "ignores_max_source",
            "Your mask is as wide as the longest source, not max_source wide: the batch may be padded further than its "
            "longest source.",
            switches={"axes": "longest"},
        ),
        Mistake(
            "no_middle_axes",
            f"Its shape is (batch, key). {CROSS_SHAPE}: without two axes between, the batch would "
            "meet the queries. (batch, 1, 1, key) or (batch, 1, query, key) fits.",
            switches={"axes": "two"},
        ),
        Mistake(
            "no_head_axis",
            f"Its shape is (batch, query, key). {CROSS_SHAPE}: without an axis for the heads the "
            "batch would be laid over the heads. Give it size 1: (batch, 1, query, key).",
            switches={"axes": "three"},
        ),
        Mistake(
            "no_head_axis",
            f"Its shape is (batch, 1, key). {CROSS_SHAPE}: one axis of size 1 is missing, (batch, 1, 1, key) fits.",
            switches={"axes": "three_row"},
        ),
    ),
)


# ---------------------------------------------------------------- decoder_mask
def _decoder(
    lengths: Tensor,
    max_length: int,
    *,
    padding: str = "key",
    content: str = "right",
    order: str = "right",
    join: str = "and",
    axes: str = "right",
    dtype: str = "bool",
) -> Tensor:
    real = _real(lengths, max_length, content)
    keys, queries = real[:, None, None, :], real[:, None, :, None]
    pad = {"key": keys, "query": queries, "both": keys & queries}.get(padding, torch.ones_like(keys))
    triangle = _triangle(max_length, order)
    mask = {
        "and": lambda: pad & triangle,
        "or": lambda: pad | triangle,
        "xor": lambda: pad ^ triangle,
        "not_and": lambda: ~(pad & triangle),
        "not_or": lambda: ~(pad | triangle),
        "sum": lambda: pad.long() + triangle.long(),
        "sum32": lambda: pad.int() + triangle.int(),
        "itself": lambda: (pad & triangle) | torch.eye(max_length, dtype=torch.bool),
        "block": lambda: pad & queries,
    }[join]()
    mask = mask.expand(len(lengths), 1, max_length, max_length)
    mask = {
        "right": lambda: mask,
        "three": lambda: mask[:, 0],
        "two": lambda: mask[0, 0],
        "heads_first": lambda: mask.transpose(0, 1),
        "swapped": lambda: mask.transpose(-2, -1),
        "row": lambda: pad,
        "longest": lambda: mask[..., : int(lengths.max()), : int(lengths.max())],
    }[axes]()
    return _as_dtype(mask, dtype) if mask.dtype == torch.bool else mask


DECODER_MASK = Exercise(
    name="masks.decoder_mask",
    reference=lambda lengths, max_length: masks.decoder_mask(lengths, max_length),
    results=(Result("mask", AXES),),
    probes=(
        Probe("lengths [2], max_length 3", lambda: (_tensor(2), 3)),
        Probe("lengths [3, 1], max_length 4", lambda: (_tensor(3, 1), 4)),
        Probe("lengths [3, 3], max_length 3", lambda: (_tensor(3, 3), 3)),
        Probe("lengths [2, 4, 1], max_length 5", lambda: (_tensor(2, 4, 1), 5)),
        Probe("lengths [0, 2], max_length 3", lambda: (_tensor(0, 2), 3), edge=True),
    ),
    compound=_decoder,
    at_once=2,
    mistakes=(
        Mistake("inverted", INVERTED, switches={"join": "not_and"}, alone=True),
        Mistake(
            "all_true",
            "Every entry is True: nothing is forbidden, neither the future nor the padding.",
            switches={"padding": "none", "order": "all_true"},
            alone=True,
        ),
        Mistake(
            "all_false",
            "Every entry is False: no query may attend to anything.",
            switches={"content": "all_false"},
            alone=True,
        ),
        Mistake(
            "padding_only",
            "The causal half is missing: your mask hides the padding, but every query sees the future.",
            switches={"order": "all_true"},
        ),
        Mistake(
            "causal_only",
            "The padding half is missing: your mask is causal, but padded keys stay visible. Here only the rows of"
            " padded queries show it, because the padding comes last and causality already hides it from the real"
            " tokens. Where padding comes first, real tokens would attend to it.",
            switches={"padding": "none"},
            beside="The padding half is missing: padded keys stay visible.",
        ),
        Mistake(
            "masks_padded_queries",
            "The rows of padded queries are False throughout, while the rows of real tokens are right. Either your"
            " padding lies along the query axis, (batch, 1, query, 1), or you forbid padded queries as well as padded"
            " keys. Only keys are masked, (batch, 1, 1, key): the loss ignores padded queries, and a row with nothing"
            " to attend to becomes NaN in a plain softmax.",
            switches={"padding": "query"},
            alone=True,
        ),
        Mistake(
            "or_instead_of_and",
            "You join the two masks so that one permission is enough (|, + or max, which mean the same). Both must"
            " allow a pair: join with &.",
            switches={"join": "or"},
        ),
        Mistake(
            "xor",
            "A pair is allowed where exactly one of the two masks allows it (^ or !=). It must be allowed by both: join"
            " with &.",
            switches={"join": "xor"},
        ),
        Mistake(
            "opposite_of_or",
            "Your mask is True only where both masks forbid. It must be True where both allow: check which of your"
            " masks say True for forbidden, and join with &.",
            switches={"join": "not_or"},
            alone=True,
        ),
        Mistake(
            "added",
            "You add the two masks, which gives the numbers 0, 1 and 2. A pair must be allowed by both: join with &.",
            switches={"join": "sum"},
        ),
        Mistake(
            "added",
            "You add the two masks, which gives the numbers 0, 1 and 2. A pair must be allowed by both: join with &.",
            switches={"join": "sum32"},
        ),
        Mistake(
            "itself_always_allowed",
            "Every token may attend to itself in your mask, padding too: a padded key is forbidden to every query,"
            " itself included.",
            switches={"join": "itself"},
            alone=True,
        ),
        Mistake(
            "block_of_real_tokens",
            "In your mask each real token sees all real tokens, so the future is visible, and padded queries see"
            " nothing. Padding and causality must both hold, and the rows of padded queries may stay as causality makes"
            " them.",
            switches={"join": "block"},
            alone=True,
        ),
        Mistake(
            "padding_only",
            "The causal half is missing: your mask hides the padding, but every query sees the future. With it, the"
            " shape is (batch, 1, query, key).",
            switches={"axes": "row"},
            alone=True,
        ),
        Mistake(
            "ignores_max_length",
            "Your mask is as large as the longest sequence, not max_length: the batch may be padded further than that.",
            switches={"axes": "longest"},
        ),
        *(
            Mistake(
                f"causal_{m.name}" if m.name == "inverted" else m.name,
                m.sentence,
                switches={"order": m.switches["content"]},
            )
            for m in _triangle_mistakes(
                "Your causal half is inverted: queries see the strict future and neither themselves nor the past. True"
                " means may attend, so keep the lower triangle."
            )
            if m.name not in ("all_true", "all_false")
        ),
        *(
            Mistake(
                "padding_inverted" if m.name == "inverted" else m.name,
                (
                    "Your padding half is inverted: it allows the padding and forbids the real tokens. True means may"
                    " attend."
                    if m.name == "inverted"
                    else m.sentence
                ),
                switches=m.switches,
            )
            for m in _length_mistakes("key")
            if m.name not in ("all_true", "all_false")
        ),
        *_nothing_allowed(content="all_false"),
        *DTYPES,
        Mistake(
            "no_head_axis",
            "Its shape is (batch, query, key): against scores of shape (batch, heads, query, key) "
            "the batch would be laid over the heads. Give the heads an axis of size 1: (batch, 1, query, key).",
            switches={"axes": "three"},
        ),
        Mistake(
            "first_sequence_only",
            "Your mask is a single square (query, key), that of the first sequence: each sequence has its own padding,"
            " so the shape is (batch, 1, query, key).",
            switches={"axes": "two"},
        ),
        Mistake(
            "batch_as_heads",
            "Your mask has shape (1, batch, query, key): the batch lies where the heads belong. It must be (batch, 1,"
            " query, key).",
            switches={"axes": "heads_first"},
        ),
        Mistake(
            "transposed",
            "Your mask is transposed: its rows are keys and its columns are queries. Rows are queries, so row i may"
            " look at columns 0 to i.",
            switches={"axes": "swapped"},
        ),
    ),
)

EXERCISES = (PADDING_MASK, CAUSAL_MASK, DECODER_MASK, CROSS_MASK)
