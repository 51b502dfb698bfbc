"""Two exercises of lesson 03: split_heads and merge_heads.

Each gallery is one wrong implementation with switches. For splitting: how the columns are cut, in which order the axes
stand, what is returned, and what becomes of a width that does not divide. For merging: in which order the axes stand
when they are merged, with what, what becomes of the heads, and what is returned.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import heads
from .exercise import Exercise, Mistake, Probe, Result, Symptom
from .symptoms import SHAPE_SYMPTOMS, VIEW_FAILS, Seen, is_right

REFUSALS = (ValueError, AssertionError, RuntimeError)


def _axes_text(order: Sequence[int], names: Sequence[str]) -> str:
    return "(" + ", ".join(names[i] for i in order) + ")"


def _numbers(shape: tuple[int, ...], start: int) -> Tensor:
    """Whole numbers that are all different, as floats; every probe starts at another one."""
    return torch.arange(start, start + math.prod(shape)).float().view(shape)


# ---------------------------------------------------------------- split_heads
def _refuses_oddly(seen: Seen) -> bool:
    odd = [s for s in seen if s[0].raises and not is_right(*s)]
    return bool(odd) and all(s[2].error is not None for s in odd) and all(is_right(*s) for s in seen if not s[0].raises)


def _accepts_all(seen: Seen) -> bool:
    odd = [s for s in seen if s[0].raises and not is_right(*s)]
    return bool(odd) and all(s[2].error is None for s in odd) and all(is_right(*s) for s in seen if not s[0].raises)


SPLIT_AXES = ("batch", "head", "token", "d_k")


def split_wrongly(
    x: Tensor,
    n_heads: int,
    *,
    cut: str = "right",
    axes: tuple[int, ...] = (0, 1, 2, 3),
    odd: str = "refuse",
    form: str = "right",
) -> object:
    """Split the heads with any of the ways to go wrong; without a switch it is right."""
    batch, length, width = x.shape
    if width % n_heads:
        if odd == "refuse":
            raise ValueError(f"{n_heads} heads do not divide width {width}")
        if odd == "none":
            return None
        if odd == "unchanged":
            return x
        x = F.pad(x, (0, -width % n_heads)) if odd == "pad" else x[..., : width - width % n_heads]
        width = x.shape[-1]
    d = width // n_heads
    b, t, h = batch, length, n_heads
    split = {
        "right": lambda: x.reshape(b, t, h, d).transpose(1, 2),
        "view": lambda: x.reshape(b, h, t, d),
        "interleaved": lambda: x.reshape(b, t, d, h).permute(0, 3, 1, 2),
        "counts_exchanged": lambda: x.reshape(b, t, d, h).transpose(1, 2),
        "view_tokens_last": lambda: x.reshape(b, h, d, t).transpose(2, 3),
        "view_width_first": lambda: x.reshape(b, d, h, t).permute(0, 2, 3, 1),
        "view_tokens_middle": lambda: x.reshape(b, d, t, h).permute(0, 3, 2, 1),
        "view_heads_outside": lambda: x.reshape(h, b, t, d).transpose(0, 1),
        "heads_outside_view": lambda: x.reshape(b, t, h, d).permute(2, 0, 1, 3).reshape(b, h, t, d),
        "transposed_view": lambda: x.transpose(1, 2).reshape(b, h, t, d),
        "first_slice": lambda: x[..., :d][:, None].expand(b, h, t, d),
        "last_slice": lambda: x[..., -d:][:, None].expand(b, h, t, d),
        "overlapping": lambda: torch.stack([x[..., i : i + d] for i in range(h)], 1),
        "reversed": lambda: x.reshape(b, t, h, d).transpose(1, 2).flip(1),
        "whole": lambda: x[:, None].expand(b, h, t, width),
        "one_head": lambda: x[:, None],
        "time": lambda: x.reshape(b, h, t // h, width),
        "time_chunks": lambda: torch.stack(x.chunk(h, dim=1), 1),
        "last_missing": lambda: torch.stack([x[..., i * d : (i + 1) * d] for i in range(h - 1)], 1),
        "first_missing": lambda: torch.stack([x[..., i * d : (i + 1) * d] for i in range(1, h)], 1),
        "last_empty": lambda: split_wrongly(x, h) * (torch.arange(h) < h - 1)[:, None, None],
        "first_empty": lambda: split_wrongly(x, h) * (torch.arange(h) > 0)[:, None, None],
    }[cut]()
    split = split.permute(axes)
    return {
        "right": lambda: split,
        "list": lambda: list(split.unbind(1)),
        "folded": lambda: split.reshape(-1, *split.shape[-2:]),
        "folded_heads_first": lambda: split.transpose(0, 1).reshape(-1, *split.shape[-2:]),
        "tokens_and_heads": lambda: split.transpose(1, 2).flatten(1, 2),
        "heads_and_tokens": lambda: split.flatten(1, 2),
        "first_head": lambda: split[:, 0],
        "last_head": lambda: split[:, -1],
        "unchanged": lambda: x,
    }[form]()


SPLIT_SHAPE = "(batch, heads, length, d_k)"
SPLIT_GARBLED = (
    "Tokens are mixed: the numbers are cut up in the order in which they lie in memory, one token after "
    "another, so a head does not get its own columns of every token. Split the last axis first, then "
    "exchange axes."
)


def _split_axes_mistakes() -> list[Mistake]:
    """Every other order of the four axes."""
    known = {
        (0, 2, 1, 3): (
            "no_transpose",
            "The axes are (batch, length, heads, d_k): the axis of the heads still stands behind that of "
            "the tokens. Attention would run over the heads of one token instead of over the tokens of one "
            "head, and where there are as many heads as tokens nothing complains. Exchange the two axes.",
        ),
        (1, 0, 2, 3): (
            "heads_first",
            "The axis of the heads stands before the batch: (heads, batch, length, d_k). It belongs behind "
            f"the batch: {SPLIT_SHAPE}.",
        ),
        (0, 1, 3, 2): (
            "tokens_last",
            "The last two axes are exchanged: (batch, heads, d_k, length). Each token of a head should be a "
            f"row: {SPLIT_SHAPE}.",
        ),
    }
    mistakes = []
    for order in itertools.permutations(range(4)):
        if order == (0, 1, 2, 3):
            continue
        sentence = (
            f"Your axes are {_axes_text(order, SPLIT_AXES)}: the order must be "
            f"{_axes_text(range(4), SPLIT_AXES)}, so another pair of axes has to be exchanged."
        )
        name, sentence = known.get(order, ("axes_in_wrong_order", sentence))
        mistakes.append(Mistake(name, sentence, switches={"axes": order}))
    return sorted(mistakes, key=lambda m: m.name == "axes_in_wrong_order")


SPLIT_HEADS = Exercise(
    name="heads.split_heads",
    reference=lambda x, n_heads: heads.split_heads(x, n_heads),
    results=(Result("result", ("batch", "head", "token", "column")),),
    probes=(
        Probe("x of shape (1, 3, 4), n_heads 2", lambda: (_numbers((1, 3, 4), 1), 2)),
        Probe("x of shape (2, 3, 12), n_heads 4", lambda: (_numbers((2, 3, 12), 20), 4)),
        Probe("x of shape (2, 2, 4), n_heads 2", lambda: (_numbers((2, 2, 4), 100), 2)),
        Probe("x of shape (1, 1, 6), n_heads 3", lambda: (_numbers((1, 1, 6), 200), 3)),
        Probe("x of shape (2, 3, 4), n_heads 1", lambda: (_numbers((2, 3, 4), 300), 1)),
        Probe("x of shape (1, 3, 4), n_heads 4", lambda: (_numbers((1, 3, 4), 400), 4)),
        Probe("x of shape (3, 4, 6), n_heads 2", lambda: (_numbers((3, 4, 6), 500), 2)),
        Probe(
            "x of shape (1, 2, 7), n_heads 3, which does not divide 7",
            lambda: (_numbers((1, 2, 7), 600), 3),
            edge=True,
            raises=REFUSALS,
        ),
        Probe(
            "x of shape (1, 2, 12), n_heads 5, which does not divide 12",
            lambda: (_numbers((1, 2, 12), 700), 5),
            edge=True,
            raises=REFUSALS,
        ),
    ),
    compound=split_wrongly,
    at_once=2,
    mistakes=(
        Mistake("split_by_view", SPLIT_GARBLED, switches={"cut": "view"}),
        *_split_axes_mistakes(),
        Mistake(
            "interleaved",
            "The columns are dealt out in turn: head 0 gets columns 0, n_heads, 2 n_heads and so on. A head "
            "should own neighbouring columns: head h columns h * d_k to (h + 1) * d_k, so n_heads comes "
            "before d_k when the last axis is split.",
            switches={"cut": "interleaved"},
        ),
        Mistake(
            "counts_exchanged",
            "The number of heads and their width are exchanged: you make d_model / n_heads heads, each "
            "n_heads wide. n_heads is the number of the pieces, not their width; split and reshape are "
            "easily given the wrong one of the two.",
            switches={"cut": "counts_exchanged"},
        ),
        Mistake(
            "folded_into_batch",
            "The heads are folded into the batch: (batch * heads, length, d_k). Keep the axis of the heads, "
            f"{SPLIT_SHAPE}: otherwise a mask of shape (batch, 1, 1, key) no longer fits the scores.",
            switches={"form": "folded"},
        ),
        Mistake(
            "folded_into_batch",
            "The heads are folded into the batch, heads outside: (heads * batch, length, d_k). Keep the "
            f"axis of the heads, {SPLIT_SHAPE}: otherwise a mask of shape (batch, 1, 1, key) no longer fits "
            "the scores.",
            switches={"form": "folded_heads_first"},
        ),
        Mistake(
            "list_of_heads",
            "The heads come as a list. Put them into one tensor along a new axis 1 (torch.stack), so that "
            "all heads are computed at once.",
            switches={"form": "list"},
        ),
        *(
            Mistake(
                "split_by_view",
                f"{SPLIT_GARBLED} (It is what comes of a reshape straight to (batch, {axes}).)",
                switches={"cut": cut},
            )
            for cut, axes in (
                ("view_tokens_last", "heads, d_k, length"),
                ("view_width_first", "d_k, heads, length"),
                ("view_tokens_middle", "d_k, length, heads"),
            )
        ),
        Mistake(
            "batch_mixed_in",
            "Sequences are mixed: the axis of the heads is made in front of the batch, so a head gets whole "
            "sequences of the batch. The batch stays axis 0, and only the last axis is split.",
            switches={"cut": "view_heads_outside"},
        ),
        Mistake(
            "batch_mixed_in",
            "Sequences and heads are mixed: the heads stand in front of the batch, and a reshape to (batch, heads, "
            "length, d_k) only renames the axes, it does not exchange them. Exchange them with transpose, or stack "
            "the heads along axis 1.",
            switches={"cut": "heads_outside_view"},
        ),
        Mistake(
            "transposed_then_view",
            "Tokens and columns are exchanged before the split, so that the pieces of one head are not its "
            "own columns of every token. Split the last axis into (n_heads, d_k) first, then exchange axes "
            "1 and 2.",
            switches={"cut": "transposed_view"},
        ),
        Mistake(
            "same_slice_for_all",
            "All heads get the same columns, the first d_k: head h needs columns h * d_k to (h + 1) * d_k.",
            switches={"cut": "first_slice"},
        ),
        Mistake(
            "same_slice_for_all",
            "All heads get the same columns, the last d_k: head h needs columns h * d_k to (h + 1) * d_k. "
            "In a loop, is each round's slice kept?",
            switches={"cut": "last_slice"},
        ),
        Mistake(
            "overlapping_slices",
            "Neighbouring heads share columns: each slice begins one column after the one before. Head h "
            "should begin at column h * d_k.",
            switches={"cut": "overlapping"},
        ),
        Mistake(
            "heads_reversed",
            "The heads come out in reverse order: head 0 should have the first d_k columns.",
            switches={"cut": "reversed"},
        ),
        Mistake(
            "whole_token_for_all",
            "Every head gets a copy of the whole token. Splitting gives each head its own d_model / n_heads "
            "columns, so the heads together are no larger than x.",
            switches={"cut": "whole"},
        ),
        Mistake(
            "one_head",
            "You add an axis for the heads, but its size is 1: all columns stay in one head, whatever n_heads is.",
            switches={"cut": "one_head"},
        ),
        *(
            Mistake(
                "tokens_split",
                "You cut the sequence into n_heads pieces. What is split is the width: every head sees all "
                "tokens, but only its own columns of each.",
                switches={"cut": cut},
            )
            for cut in ("time", "time_chunks")
        ),
        *(
            Mistake(
                "head_missing",
                f"The {which} head is missing: n_heads heads are needed, 0 to n_heads - 1, which is what "
                "range(n_heads) gives.",
                switches={"cut": f"{which}_missing"},
            )
            for which in ("last", "first")
        ),
        *(
            Mistake(
                "head_empty",
                f"The {which} head holds only zeros: it is never written. There are n_heads heads, 0 to "
                "n_heads - 1, which is what range(n_heads) gives.",
                switches={"cut": f"{which}_empty"},
            )
            for which in ("last", "first")
        ),
        *(
            Mistake(
                "heads_among_tokens",
                f"Heads and tokens share one axis: {axes}. The heads need an axis of their own: {SPLIT_SHAPE}.",
                switches={"form": form},
            )
            for form, axes in (
                ("tokens_and_heads", "(batch, length * heads, d_k)"),
                ("heads_and_tokens", "(batch, heads * length, d_k)"),
            )
        ),
        Mistake(
            "first_head_only",
            "Only the first head comes out: the first d_k columns of every token, without an axis for the heads.",
            switches={"form": "first_head"},
        ),
        Mistake(
            "last_head_only",
            "Only the last head comes out: the last d_k columns of every token, without an axis for the "
            "heads. In a loop, is each round's slice kept?",
            switches={"form": "last_head"},
        ),
        Mistake(
            "not_split",
            "Your function gives x back as it was. Its last axis must be split into n_heads and d_k, which "
            "gives four axes.",
            switches={"form": "unchanged"},
        ),
        Mistake(
            "remainder_dropped",
            "Where n_heads does not divide the width, the last columns disappear without a word: // rounds "
            "down. Raise a ValueError in that case, because lost columns are very hard to notice later.",
            switches={"odd": "truncate"},
            edge=True,
        ),
        Mistake(
            "remainder_padded",
            "Where n_heads does not divide the width, you fill up with columns of zeros. Raise a ValueError "
            "in that case: the width of the model must be a multiple of n_heads.",
            switches={"odd": "pad"},
            edge=True,
        ),
        Mistake(
            "returns_instead_of_raising",
            "Where n_heads does not divide the width, you return None. Raise a ValueError: None fails only "
            "later and elsewhere, and a printed warning is overlooked.",
            switches={"odd": "none"},
            edge=True,
        ),
        Mistake(
            "returns_instead_of_raising",
            "Where n_heads does not divide the width, you return x as it was. Raise a ValueError: whoever "
            "called it goes on as if the heads had been split.",
            switches={"odd": "unchanged"},
            edge=True,
        ),
    ),
    symptoms=(
        *SHAPE_SYMPTOMS,
        Symptom(
            "unclear_error",
            "You refuse an n_heads that does not divide the width, which is right, but the kind of error is "
            "not one a caller expects. Raise a ValueError that names both numbers.",
            _refuses_oddly,
        ),
        Symptom(
            "remainder_accepted",
            "You accept an n_heads that does not divide the width. Raise a ValueError in that case, "
            "otherwise columns are lost or heads have different widths.",
            _accepts_all,
        ),
    ),
)


# ---------------------------------------------------------------- merge_heads
MERGE_AXES = ("batch", "head", "token", "d_v")


def merge_wrongly(
    x: Tensor,
    *,
    order: tuple[int, ...] = (0, 2, 1, 3),
    how: str = "reshape",
    heads: str = "right",
    form: str = "right",
) -> object:
    """Merge the heads with any of the ways to go wrong; without a switch it is right."""
    b, h, t, d = x.shape
    if heads == "reversed":
        x = x.flip(1)
    combined = {
        "mean": lambda: x.mean(1),
        "sum": lambda: x.sum(1),
        "max": lambda: x.amax(1),
        "product": lambda: x.prod(1),
        "first": lambda: x[:, 0],
        "last": lambda: x[:, -1],
        "mean_kept": lambda: x.mean(1, keepdim=True),
        "first_copied": lambda: x[:, 0].repeat(1, 1, h),
        "last_copied": lambda: x[:, -1].repeat(1, 1, h),
        "mean_copied": lambda: x.mean(1).repeat(1, 1, h),
        "overlapping": lambda: _overlapping_buffer(x),
        "first_sequence": lambda: torch.cat(list(x[0]), -1),
        "first_sequence_kept": lambda: torch.cat(list(x[0]), -1)[None],
    }.get(heads)
    if combined is not None:
        return combined()
    if form == "unchanged":
        return x
    ordered = x.permute(order)
    if form == "not_merged":
        return ordered
    shape = {
        "right": (b, t, h * d),
        "along_tokens": (b, h * t, d),
        "flat": (b, h * t * d),
        "two_axes": (b * t, h * d),
        "heads_first": (b, h, t * d),
        "transposed": (b, t, h * d),
        "head_axis": (b, 1, t, h * d),
        "tokens_first": (b, t, h * d),
        "along_batch": (b * h, t, d),
        "squeezed": (b, t, h * d),
        "sizes_exchanged": (b, d, h * t),
        "length_last": (b, h * d, t),
    }[form]
    merged = ordered.view(shape) if how == "view" else ordered.reshape(shape)
    if form == "tokens_first":
        return merged.transpose(0, 1)
    if form == "squeezed":
        return merged.squeeze()
    return merged.transpose(1, 2) if form == "transposed" else merged


def _overlapping_buffer(x: Tensor) -> Tensor:
    """Head i is written to the columns from i on, instead of from i * d on."""
    b, h, t, d = x.shape
    merged = torch.zeros(b, t, h * d)
    for i in range(h):
        merged[:, :, i : i + d] = x[:, i]
    return merged


def _merge_order_mistakes() -> list[Mistake]:
    """Every other order of the axes before the last reshape."""
    known = {
        (0, 1, 2, 3): (
            "merged_by_view",
            "Tokens are mixed: without exchanging the axes back, the numbers are regrouped in the order "
            "head, token, so the first token receives the first tokens of head 0 instead of its own columns "
            "from every head. Bring the token axis before the head axis first, then merge the last two.",
        ),
        (0, 2, 3, 1): (
            "interleaved",
            "The columns of different heads are interleaved: first column of every head, then second column "
            "of every head. The heads should lie side by side, all of head 0 first, so the last two axes "
            "must be (heads, d_v) when they are merged.",
        ),
        (0, 1, 3, 2): (
            "transposed_inside_heads",
            "You exchange the last two axes, tokens and columns, before you merge. What must be exchanged "
            "is the axis of the heads and that of the tokens (1 and 2).",
        ),
    }
    mistakes = []
    for order in itertools.permutations(range(4)):
        if order == (0, 2, 1, 3):
            continue
        sentence = (
            "Before the last two axes become one, your axes are in the order "
            f"{_axes_text(order, MERGE_AXES)}. It must be {_axes_text((0, 2, 1, 3), MERGE_AXES)}; with any "
            "other order the reshape mixes tokens, heads or sequences."
        )
        name, sentence = known.get(order, ("axes_in_wrong_order", sentence))
        mistakes.append(Mistake(name, sentence, switches={"order": order}))
    return sorted(mistakes, key=lambda m: m.name == "axes_in_wrong_order")


CONCATENATED = "Put the heads side by side, so that the width is heads * d_v"

MERGE_HEADS = Exercise(
    name="heads.merge_heads",
    reference=lambda x: heads.merge_heads(x),
    results=(Result("result", ("batch", "token", "column")),),
    probes=(
        Probe("x of shape (1, 2, 3, 2)", lambda: (_numbers((1, 2, 3, 2), 1),)),
        Probe("x of shape (2, 3, 4, 5)", lambda: (_numbers((2, 3, 4, 5), 1) * 71 % 127,)),
        Probe("x of shape (2, 2, 2, 2)", lambda: (_numbers((2, 2, 2, 2), 150),)),
        Probe("x of shape (1, 3, 1, 2)", lambda: (_numbers((1, 3, 1, 2), 200),)),
        Probe("x of shape (2, 1, 3, 4)", lambda: (_numbers((2, 1, 3, 4), 300),)),
        Probe("x of shape (3, 4, 2, 1)", lambda: (_numbers((3, 4, 2, 1), 400),)),
        Probe(
            "x of shape (1, 2, 3, 2), a transposed tensor (not contiguous)",
            lambda: (_numbers((1, 3, 2, 2), 500).transpose(1, 2),),
        ),
        Probe(
            "x of shape (2, 3, 2, 4), with its last axes exchanged (not contiguous)",
            lambda: (_numbers((2, 3, 4, 2), 600).transpose(2, 3),),
        ),
    ),
    compound=merge_wrongly,
    at_once=2,
    mistakes=(
        *_merge_order_mistakes()[:2],
        Mistake(
            "view_not_contiguous",
            f"The idea is right, but view cannot do it: {VIEW_FAILS}. Use reshape, or call .contiguous() before view.",
            wrong=functools.partial(merge_wrongly, how="view"),
        ),
        Mistake(
            "view_not_contiguous",
            f"You merge with view, and view cannot do it: {VIEW_FAILS}. Use reshape, or call .contiguous() "
            "before view.",
            switches={"how": "view"},
        ),
        *_merge_order_mistakes()[2:],
        Mistake(
            "averaged",
            f"You average the heads, so the result is only d_v wide. {CONCATENATED}: averaging throws away "
            "what each head has found, and the output projection is there to mix them.",
            switches={"heads": "mean"},
        ),
        Mistake(
            "averaged",
            f"You average the heads and keep their axis with size 1. {CONCATENATED}: averaging throws away "
            "what each head has found, and the output projection is there to mix them.",
            switches={"heads": "mean_kept"},
        ),
        Mistake(
            "summed",
            f"You add the heads up, so the result is only d_v wide. {CONCATENATED}: a sum no longer tells "
            "which head found what.",
            switches={"heads": "sum"},
        ),
        Mistake(
            "maximum",
            f"You take the largest number over the heads, so the result is only d_v wide. {CONCATENATED} "
            "and nothing is lost.",
            switches={"heads": "max"},
        ),
        Mistake(
            "multiplied",
            f"You multiply the heads with each other. {CONCATENATED} and nothing is lost.",
            switches={"heads": "product"},
        ),
        Mistake(
            "first_head_only",
            f"Only the first head comes out, the others are lost. {CONCATENATED}.",
            switches={"heads": "first"},
        ),
        Mistake(
            "last_head_only",
            f"Only the last head comes out, the others are lost. {CONCATENATED}. In a loop, is each round's head kept?",
            switches={"heads": "last"},
        ),
        *(
            Mistake(
                "same_head_for_all",
                f"Wherever a head belongs, {what} is repeated. Each head should fill its own d_v columns.",
                switches={"heads": f"{which}_copied"},
            )
            for which, what in (
                ("first", "head 0"),
                ("last", "the last head"),
                ("mean", "the average of the heads"),
            )
        ),
        Mistake(
            "overlapping_columns",
            "Head i is written to the columns from i on, so heads overwrite each other and the last columns "
            "stay empty. Head i should begin at column i * d_v.",
            switches={"heads": "overlapping"},
        ),
        *(
            Mistake(
                "first_sequence_only",
                "Only the first sequence of the batch is merged. All of them are needed: merge along the "
                "last axis and leave the batch axis alone.",
                switches={"heads": kind},
            )
            for kind in ("first_sequence", "first_sequence_kept")
        ),
        Mistake(
            "sizes_exchanged",
            "The numbers stand in the right order, but the last reshape is given the length and the width the wrong "
            "way round: the result is (batch, heads * d_v, length) instead of (batch, length, heads * d_v).",
            wrong=functools.partial(merge_wrongly, form="length_last"),
        ),
        Mistake(
            "sizes_exchanged",
            "The sizes are read in another order: x is (batch, heads, length, d_v), but your result has the "
            "shape that comes of taking axis 2 for d_v and axis 3 for the length.",
            switches={"form": "sizes_exchanged"},
        ),
        Mistake(
            "heads_reversed",
            "The heads lie side by side in reverse order: head 0 should fill the first d_v columns.",
            switches={"heads": "reversed"},
            beside="The heads are taken in reverse order, the last one first: begin with head 0.",
        ),
        Mistake(
            "along_tokens",
            "The heads are put one after another along the tokens: (batch, heads * length, d_v). They "
            "belong side by side in the last axis, so that each token keeps one row: (batch, length, heads "
            "* d_v).",
            switches={"form": "along_tokens", "order": (0, 1, 2, 3)},
        ),
        Mistake(
            "along_tokens",
            "Heads and tokens are merged into one axis: (batch, length * heads, d_v). The heads belong side "
            "by side in the last axis, so that each token keeps one row: (batch, length, heads * d_v).",
            switches={"form": "along_tokens"},
        ),
        Mistake(
            "tokens_merged",
            "You merge the last two axes of x, tokens and columns: (batch, heads, length * d_v). Bring the "
            "token axis before the head axis first, then merge heads and columns.",
            switches={"form": "heads_first", "order": (0, 1, 2, 3)},
        ),
        Mistake(
            "tokens_merged",
            "The axes are misread: x is (batch, heads, length, d_v), but you take axis 1 for the tokens and "
            "axis 2 for the heads, and so merge tokens and columns.",
            switches={"form": "heads_first"},
        ),
        *(
            Mistake(
                "along_batch",
                f"The heads are put one after another along the batch: {axes}. They belong side by side in "
                "the last axis: (batch, length, heads * d_v).",
                switches={"form": "along_batch", "order": order},
            )
            for order, axes in (
                ((1, 0, 2, 3), "(heads * batch, length, d_v)"),
                ((0, 1, 2, 3), "(batch * heads, length, d_v)"),
            )
        ),
        Mistake(
            "squeezed",
            "Axes of size 1 are removed from the result, so its shape depends on the input. It should have "
            "three axes, also with one sequence or one token.",
            switches={"form": "squeezed"},
        ),
        Mistake(
            "not_merged",
            "The axes are in the right order, (batch, length, heads, d_v), but not merged yet: make one "
            "axis of the last two.",
            switches={"form": "not_merged"},
            beside="Nothing is merged yet: make one axis of the last two, the heads and their columns.",
        ),
        Mistake(
            "unchanged",
            "Your function gives x back as it was. Bring the token axis before the head axis, then make one "
            "axis of heads and columns.",
            switches={"form": "unchanged"},
            beside="The axes are still those of x: bring the token axis before the head axis, then make one axis of "
            "heads and columns.",
        ),
        Mistake(
            "too_flat",
            "Too many axes are merged: the tokens are gone into the columns, (batch, length * heads * d_v). "
            "Only the last two axes, heads and columns, become one.",
            switches={"form": "flat"},
        ),
        Mistake(
            "too_flat",
            "Too many axes are merged: batch and tokens have become one, (batch * length, heads * d_v). "
            "Only heads and columns become one.",
            switches={"form": "two_axes"},
        ),
        Mistake(
            "transposed",
            "The result is transposed: (batch, heads * d_v, length). Each token should be a row: (batch, "
            "length, heads * d_v).",
            switches={"form": "transposed"},
        ),
        Mistake(
            "head_axis_left",
            "An axis of size 1 is left where the heads were. The result should have three axes.",
            switches={"form": "head_axis"},
        ),
        Mistake(
            "tokens_first",
            "The token axis stands before the batch: (length, batch, heads * d_v). The batch should be axis 0.",
            switches={"form": "tokens_first"},
        ),
    ),
    symptoms=SHAPE_SYMPTOMS,
)
