"""The exercise multi_head_attention of lesson 03.

The gallery is one wrong implementation with switches that follow the path of the numbers: which input and which matrix
make queries, keys and values; how they are cut into heads; how scores are scaled, masked and turned into weights; how
the heads are merged and projected; what is returned.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import heads
from .exercise import Exercise, Mistake, Probe, Result, Symptom
from .outcome import Outcome, same_outcome, same_value
from .split_merge import merge_wrongly, split_wrongly
from .symptoms import SHAPE_SYMPTOMS, VIEW_FAILS, Seen

LOW = {"finite": torch.finfo(torch.float32).min, "inf": -math.inf, "repaired": -math.inf}


def _cut(x: Tensor, m: Tensor, h: int, how: str, role: str) -> Tensor:
    """Project x (batch, length, d_model) with m and cut it into heads (batch, heads, length, d_k)."""
    b, t, width = x.shape
    d = width // h
    if how.startswith("before"):
        pieces = split_wrongly(x, h)
        blocks = {
            "before_first_block": lambda: m[:d, :d],
            "before_rows": lambda: m.reshape(h, d, width)[:, :, :d],
            "before_columns": lambda: m[:d].reshape(d, h, d).transpose(0, 1),
            "before_blocks": lambda: torch.stack([m[i : i + d, i : i + d] for i in range(0, width, d)]),
        }
        return pieces @ blocks[how]()
    if how == "matrix_view":
        return x[:, None] @ m.reshape(h, width, d)
    y = x @ m
    if how == "none":
        return y[:, None]
    if how == "none_three":
        return y
    if how.startswith("no_transpose"):
        return y.reshape(b, t, h, d)
    if how.startswith("shared"):
        heads = split_wrongly(y, h)
        return heads[:, :1].expand_as(heads) if role in how.removeprefix("shared_") else heads
    return split_wrongly(y, h, cut=how)


def _scores(q: Tensor, k: Tensor, pair: str) -> Tensor:
    if pair == "cosine":
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    if pair == "not_transposed":
        return q @ k
    if pair == "wrong_axes":
        return q @ k.transpose(1, 2)
    if pair == "exchanged":
        return k @ q.transpose(-2, -1)
    if pair == "reshaped":
        return q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])
    return q @ k.transpose(-2, -1)


def _scale(kind: str, d: int, width: int, sizes: tuple[int, int, int, int]) -> float:
    """What the dot products, taken over d columns, are multiplied by."""
    _, h, queries, keys = sizes
    return {
        "d_k": d**-0.5,
        "none": 1.0,
        "after": 1.0,
        "d_model": width**-0.5,
        "without_root": 1 / d,
        "d_model_without_root": 1 / width,
        "multiplied": d**0.5,
        "n_heads": h**-0.5,
        "n_heads_without_root": 1 / h,
        "keys": keys**-0.5,
        "queries": queries**-0.5,
        "split": (width // h) ** -0.5,
        "half": d**-0.25,
    }[kind]


def _masked(scores: Tensor, mask: Tensor, applied: str, low: float) -> Tensor:
    """The scores with the mask in them, for those ways of applying it that come before the softmax."""
    if applied == "truth" and mask:  # raises
        return scores
    if applied == "added":
        return scores + mask.float()
    if applied == "nan":
        return scores + (~mask).float() * -math.inf
    if applied.startswith(("after", "output")):
        return scores
    return scores.masked_fill(~mask, {"zero": 0.0, "large": 1e9, "plus_infinite": math.inf}.get(applied, low))


def _masked_weights(weights: Tensor, bare: Tensor, mask: Tensor, applied: str) -> tuple[Tensor, Tensor]:
    """(weights used for the output, weights returned), for those ways that come after the softmax."""
    if applied.startswith("after"):
        low = {"after_zero": 0.0, "after_infinite": -math.inf, "after_large": -1e9}[applied]
        weights = weights.masked_fill(~mask, low)
        return weights, weights
    if applied == "output_only":
        return weights.masked_fill(~mask, 0.0), weights
    if applied == "output_bare":
        return weights, weights.masked_fill(~mask, 0.0)
    if applied == "returned_bare":
        return weights, bare
    return (bare, weights) if applied == "returned_masked" else (weights, weights)


def _mask_as(mask: Tensor | None, kind: str, sizes: tuple[int, int, int, int]) -> Tensor | None:
    """The mask as a reader may take it."""
    b, h, q, k = sizes
    if kind == "causal":
        past = torch.ones(q, k, dtype=torch.bool).tril()
        return past if mask is None else mask & past
    if kind == "causal_if_none" and mask is None:
        return torch.ones(q, k, dtype=torch.bool).tril()
    if mask is None or kind == "ignored":
        return None
    if kind in ("right", "causal_if_none"):
        return mask
    four = mask.dim() == 4
    if kind in ("four_only", "two_only"):
        return mask if four == (kind == "four_only") else None
    return {
        "inverted": lambda: ~mask,
        "first_item": lambda: mask[0],
        "first_item_of_four": lambda: mask[:1] if four else mask,
        "last_item": lambda: mask[-1],
        "last_item_of_four": lambda: mask[-1:] if four else mask,
        "transposed": lambda: mask.transpose(-1, -2),
        "tiled": lambda: mask.expand(b, 1, q, k)[:, 0].repeat(h, 1, 1).unflatten(0, (b, h)),
        "heads_outside": lambda: (
            mask.expand(b, 1, q, k)[:, 0].repeat_interleave(h, 0).unflatten(0, (h, b)).transpose(0, 1)
        ),
        "without_head_axis": lambda: mask.squeeze(1) if four else mask,
        "squeezed": lambda: mask.squeeze(),
        "unsqueezed": lambda: mask.unsqueeze(1),
        "unsqueezed_two": lambda: mask[:, None, None],
        "unsqueezed_front": lambda: mask[None, None],
        "first_query": lambda: mask[..., :1, :],
        "last_query": lambda: mask[..., -1:, :],
        "whole_rows": lambda: mask.all(-1, keepdim=True),
        "first_head": lambda: mask | (torch.arange(h)[:, None, None] > 0),
        "rows_too": lambda: mask & mask.transpose(-1, -2) if four and mask.shape[2] == 1 else mask,
    }[kind]()


def _weights(scores: Tensor, kind: str) -> Tensor:
    if kind == "keys":
        return scores.softmax(-1)
    return {
        "queries": lambda: scores.softmax(-2),
        "heads": lambda: scores.softmax(1),
        "batch": lambda: scores.softmax(0),
        "all": lambda: scores.flatten(-2).softmax(-1).view_as(scores),
        "none": lambda: scores,
        "twice": lambda: scores.softmax(-1).softmax(-1),
        "sigmoid": lambda: scores.sigmoid(),
        "exp": lambda: scores.exp(),
        "hard": lambda: (scores == scores.amax(-1, keepdim=True)).float(),
        "no_keepdim": lambda: scores.exp() / scores.exp().sum(-1),
        "everything": lambda: scores.exp() / scores.exp().sum(),
    }[kind]()


def _attention(
    x_query: Tensor,
    x_memory: Tensor,
    w: dict[str, Tensor],
    n_heads: int,
    mask: Tensor | None = None,
    *,
    inputs: str = "qmm",
    matrices: str = "qkvo",
    transposed: str = "",
    skipped: str = "",
    split: str = "right",
    pair: str = "right",
    scale: str = "d_k",
    mask_as: str = "right",
    applied: str = "fill",
    fill: str = "finite",
    softmax: str = "keys",
    merge: str = "right",
    out: str = "right",
    form: str = "right",
    extra: str = "none",
) -> object:
    """Multi-head attention; every switch puts one mistake in the place where it is made."""

    def matrix(role: str) -> Tensor:
        if role == "v" and out == "on_values":
            return w["v"] @ w["o"]
        if role in skipped:
            return torch.eye(x_query.shape[-1])
        m = w[matrices["qkvo".index(role)]]
        return m.T if role in transposed else m

    if inputs == "both":
        x_memory, inputs = torch.cat([x_query, x_memory], 1), "qmm"
    residual = x_query
    if extra == "norm_before":
        x_query, x_memory = (F.layer_norm(x, x.shape[-1:]) for x in (x_query, x_memory))
    sizes = (x_query.shape[0], n_heads, x_query.shape[1], x_memory.shape[1])
    source = {"q": x_query, "m": x_memory}
    q, k, v = (_cut(source[i], matrix(r), n_heads, split, r) for i, r in zip(inputs, "qkv", strict=True))
    bare = _scores(q, k, pair) * _scale(scale, q.shape[-1], x_query.shape[-1], sizes)
    mask = _mask_as(mask, mask_as, sizes)
    scores = bare if mask is None else _masked(bare, mask, applied, LOW[fill])
    weights = _weights(scores, softmax)
    if fill == "repaired":
        weights = weights.nan_to_num(0.0)
    if scale == "after":
        weights = weights * q.shape[-1] ** -0.5
    used = weights
    if mask is not None and applied != "fill":
        used, weights = _masked_weights(weights, _weights(bare, softmax), mask, applied)
    output = (used.transpose(-2, -1) if pair == "read_by_keys" else used) @ v
    output, weights = _unfolded(output, weights, merge, sizes)
    output = _merged(output, split, merge, out, x_query.shape[1])
    if "o" not in skipped and out != "on_values":
        output = _project(output, matrix("o"), n_heads, out)
    if extra == "relu":
        output = output.relu()
    if extra in ("residual", "residual_norm"):
        output = output + residual
    if extra in ("norm", "residual_norm"):
        output = F.layer_norm(output, output.shape[-1:])
    return _returned(output, weights, form)


def _unfolded(output: Tensor, weights: Tensor, merge: str, sizes: tuple[int, int, int, int]) -> tuple[Tensor, Tensor]:
    """Output and weights after heads and batch have been folded in one order and unfolded in the other."""
    b, h, *_ = sizes
    if merge.startswith("batch_heads"):
        mixed = [x.transpose(0, 1).reshape(b, h, *x.shape[2:]) for x in (output, weights)]
    elif merge.startswith("heads_batch"):
        mixed = [x.reshape(h, b, *x.shape[2:]).transpose(0, 1) for x in (output, weights)]
    else:
        return output, weights
    return mixed[0], weights if merge.endswith("output") else mixed[1]


MERGES = {
    "view": {"how": "view"},
    "by_view": {"order": (0, 1, 2, 3)},
    "interleaved": {"order": (0, 2, 3, 1)},
    "inside": {"order": (0, 1, 3, 2)},
    "columns_first": {"order": (0, 3, 1, 2)},
    "columns_tokens": {"order": (0, 3, 2, 1)},
    "reversed": {"heads": "reversed"},
    "first_copied": {"heads": "first_copied"},
    "last_copied": {"heads": "last_copied"},
    "mean_copied": {"heads": "mean_copied"},
}


def _merged(output: Tensor, split: str, merge: str, out: str, t: int) -> Tensor:
    """The heads side by side; as they are where the output projection is applied to each of them."""
    if output.dim() == 3 or out not in ("right", "twice", "on_values"):
        return output
    if split == "no_transpose":
        return output.reshape(output.shape[0], t, -1)
    if split == "no_transpose_then_merge":
        return output.transpose(1, 2).reshape(output.shape[0], t, -1)
    return merge_wrongly(output, **MERGES.get(merge, {}))


def _project(output: Tensor, m: Tensor, h: int, out: str) -> Tensor:
    """The output projection."""
    if out == "right":
        return output @ m
    if out == "twice":
        return output @ m @ m
    width = m.shape[0]
    d = width // h
    rows = m.reshape(h, d, width)  # the rows of the matrix that belong to each head
    return {
        "small_block": lambda: merge_wrongly(output @ m[:d, :d]),
        "small_blocks": lambda: merge_wrongly(
            output @ torch.stack([m[i : i + d, i : i + d] for i in range(0, width, d)])
        ),
        "first_rows": lambda: (output @ m[:d]).sum(1),
        "first_head": lambda: output[:, 0] @ rows[0],
        "last_head": lambda: output[:, -1] @ rows[-1],
        "mean": lambda: (output @ rows).mean(1),
    }[out]()


def _returned(output: Tensor, weights: Tensor, form: str) -> object:
    if form == "right":
        return output, weights
    if form in ("output", "weights", "exchanged", "output_and_none", "three"):
        return {
            "output": output,
            "weights": weights,
            "exchanged": (weights, output),
            "output_and_none": (output, None),
            "three": (output, weights, weights),
        }[form]
    return (
        output,
        {
            "mean": lambda: weights.mean(1),
            "mean_kept": lambda: weights.mean(1, keepdim=True),
            "mean_expanded": lambda: weights.mean(1, keepdim=True).expand_as(weights),
            "sum": lambda: weights.sum(1),
            "first": lambda: weights[:, 0],
            "last": lambda: weights[:, -1],
            "first_kept": lambda: weights[:, :1],
            "last_kept": lambda: weights[:, -1:],
            "max": lambda: weights.amax(1),
            "transposed": lambda: weights.transpose(-1, -2),
            "query_first": lambda: weights.transpose(1, 2),
            "folded": lambda: weights.flatten(0, 1),
            "folded_heads_first": lambda: weights.transpose(0, 1).flatten(0, 1),
            "heads_first": lambda: weights.transpose(0, 1),
            "heads_last": lambda: weights.permute(0, 2, 3, 1),
            "list": lambda: list(weights.unbind(1)),
            "keys_joined": lambda: weights.transpose(1, 2).flatten(2),
            "queries_joined": lambda: weights.flatten(1, 2),
            "first_item": lambda: weights[0],
            "mean_items": lambda: weights.mean(0),
            "squeezed": lambda: weights.squeeze(),
            "batch_heads": lambda: weights.transpose(0, 1).reshape(weights.shape),
            "heads_batch": lambda: weights.reshape(weights.transpose(0, 1).shape).transpose(0, 1),
        }[form](),
    )


def _batch_attended(
    x_query: Tensor, x_memory: Tensor, w: dict[str, Tensor], n_heads: int, mask: Tensor | None = None, **switches: str
) -> object:
    """The first axis is taken for the tokens and the second for the batch."""
    if x_query.shape[1] != x_memory.shape[1]:
        raise RuntimeError("the batches of queries and keys differ")
    output, weights = _attention(x_query.transpose(0, 1), x_memory.transpose(0, 1), w, n_heads, mask, **switches)
    return output.transpose(0, 1), weights


def _whole_matrices_for_each_head(
    x_query: Tensor,
    x_memory: Tensor,
    w: dict[str, Tensor],
    n_heads: int,
    mask: Tensor | None = None,
    *,
    scale: str = "d_k",
) -> object:
    """Every head is computed with the whole matrices, so all heads are the same and have the full width."""
    output, weights = _attention(x_query, x_memory, w, n_heads, mask, split="none", scale=scale)
    return output, weights.expand(-1, n_heads, -1, -1)


OFTEN = {  # what is also looked for three at a time
    "weights_averaged",
    "only_output",
    "memory_unused",
    "value_from_key_matrix",
    "projections_transposed",
    "no_output_projection",
    "split_by_view",
    "merged_by_view",
    "heads_not_moved",
    "view_not_contiguous",
    "no_scale",
    "scaled_by_d_model",
    "mask_ignored",
    "mask_inverted",
}


def _together(name: str, sentence: str, **switches: str) -> Mistake:
    """A mistake that is also looked for together with another, and if it comes often, with two others."""
    return Mistake(name, sentence, switches=switches, rare=name not in OFTEN)


def _alone(name: str, sentence: str, wrong: Callable = _attention, **switches: str) -> Mistake:
    """A mistake that is looked for alone."""
    return Mistake(name, sentence, wrong=functools.partial(wrong, **switches))


# ---------------------------------------------------------------- its gallery: inputs and matrices
ROLES = {"q": "queries", "k": "keys", "v": "values", "o": "output"}


def _input_mistakes() -> tuple[Mistake, ...]:
    rule = "Queries should come from x_query, keys and values from x_memory."
    silent = "In self-attention both are the same tensor, so this shows only in cross-attention."
    return (
        _together(
            "memory_unused",
            "Keys and values are made from x_query, and x_memory is never used: cross-attention ignores the memory, "
            f"and only self-attention does not show it. {rule}",
            inputs="qqq",
        ),
        _together(
            "queries_from_memory",
            f"Queries, keys and values are all made from x_memory, and x_query is never used. {rule} {silent}",
            inputs="mmm",
        ),
        _together(
            "inputs_exchanged",
            f"The two inputs are exchanged: queries come from x_memory, keys and values from x_query. {rule} {silent}",
            inputs="mqq",
        ),
        _together(
            "values_from_query_side",
            "The values are made from x_query. A query reads the values that belong to the keys, so both should "
            f"come from x_memory. {silent}",
            inputs="qmq",
        ),
        _together(
            "keys_from_query_side",
            "The keys are made from x_query while the values come from x_memory: weights and values then belong to "
            f"different tokens. {rule} {silent}",
            inputs="qqm",
        ),
        *(
            _alone(
                "queries_among_keys",
                "Keys and values are made from both inputs, x_query and x_memory put one after the other. Only x_memory"
                " should be attended to.",
                inputs="both",
                mask_as=mask_as,
            )
            for mask_as in ("right", "ignored")
        ),
        _alone(
            "inputs_mixed_up",
            f"Queries and keys are made from x_memory, values from x_query. {rule} {silent}",
            inputs="mmq",
        ),
        _alone(
            "inputs_mixed_up",
            f"Queries and values are made from x_memory, keys from x_query. {rule} {silent}",
            inputs="mqm",
        ),
    )


def _uses(matrices: str) -> str:
    """Which role is computed with which other matrix, in words."""
    odd = [(r, m) for r, m in zip("qkvo", matrices, strict=True) if r != m]
    return " and ".join(f'the {ROLES[r]} with w["{m}"]' for r, m in odd)


def _matrix_mistakes() -> tuple[Mistake, ...]:
    own = "Each needs its own matrix"
    known = {
        "qkko": (
            "value_from_key_matrix",
            (
                'The values are computed with w["k"], so every value is the key of its token (a line copied and '
                f'not changed everywhere?). {own}: values should use w["v"].'
            ),
        ),
        "qqvo": (
            "key_from_query_matrix",
            (
                f'The keys are computed with w["q"], the matrix of the queries (a copied line?). {own}: keys '
                'should use w["k"].'
            ),
        ),
        "qqqo": (
            "one_matrix_for_all",
            f'Queries, keys and values are all computed with w["q"]. {own}: w["q"], w["k"] and w["v"].',
        ),
        "kqvo": (
            "matrices_exchanged",
            'The matrices of queries and keys are exchanged. Queries should use w["q"], keys w["k"].',
        ),
        "qvko": (
            "matrices_exchanged",
            'The matrices of keys and values are exchanged. Keys should use w["k"], values w["v"].',
        ),
    }
    together = [_together(name, text, matrices=m) for m, (name, text) in known.items()]
    others = [
        "".join(m)
        for m in dict.fromkeys(
            (
                *itertools.product("qkv", "qkv", "qkv", "o"),
                *itertools.permutations("qkvo"),
                *(("q", "k", "v", o) for o in "qkv"),
                tuple("qkoo"),
            )
        )
        if "".join(m) not in known and "".join(m) != "qkvo"
    ]
    alone = [
        _alone(
            "wrong_matrix",
            f'You compute {_uses(m)}. {own}: w["q"], w["k"], w["v"], and w["o"] at the end.',
            matrices=m,
        )
        for m in others
    ]
    return (*together, *alone)


def _subsets() -> list[str]:
    return ["".join(s) for n in (4, 3, 2, 1) for s in itertools.combinations("qkvo", n)]


def _listed(roles: str) -> str:
    """w["q"], w["k"] and w["v"]."""
    names = [f'w["{role}"]' for role in roles]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _transposed_mistakes() -> tuple[Mistake, ...]:
    why = (
        "Square matrices hide it. Here a matrix is applied as x @ w; nn.Linear and F.linear store theirs as "
        "(out, in) and apply them as x @ w.T, so hand them w.T."
    )
    known = {
        "qkvo": (
            "projections_transposed",
            f"Every projection that is applied is transposed: they are applied as x @ w.T, not x @ w. {why}",
        ),
        "qkv": (
            "input_projections_transposed",
            (
                "The projections of queries, keys and values are transposed: they are applied as x @ w.T, not x "
                f"@ w. {why}"
            ),
        ),
        "o": (
            "output_projection_transposed",
            f'The output projection is transposed: it is applied as x @ w["o"].T. {why}',
        ),
    }
    mistakes = [_together(name, text, transposed=s) for s, (name, text) in known.items()]
    for s in _subsets():
        if s not in known:
            number = "Part of the matrices is" if len(s) > 1 else "One matrix is"
            text = f"{number} applied transposed: {_listed(s)}. {why}"
            mistakes.append(_alone("some_matrices_transposed", text, transposed=s))
    return tuple(mistakes)


def _skipped_mistakes() -> tuple[Mistake, ...]:
    known = {
        "o": (
            "no_output_projection",
            (
                "The output projection is missing: the merged heads are returned as they are. Multiply them "
                'with w["o"], otherwise the heads only lie side by side and never mix.'
            ),
        ),
        "qkv": (
            "no_input_projections",
            (
                "Queries, keys and values are not projected: the heads are cut straight from the inputs. "
                'Without w["q"], w["k"] and w["v"] a head can neither choose what to look for nor what to read.'
            ),
        ),
        "qkvo": (
            "no_projections",
            (
                "No projection is applied at all, neither before the heads are cut nor after they are merged: "
                'project with w["q"], w["k"], w["v"] first and with w["o"] at the end.'
            ),
        ),
        "v": (
            "values_not_projected",
            (
                "The values are not projected: the heads read slices of x_memory itself. Values should be x_memory @"
                ' w["v"].'
            ),
        ),
    }
    mistakes = [_together(name, text, skipped=s) for s, (name, text) in known.items()]
    for s in _subsets():
        if s not in known:
            text = (
                f"Some projections are missing: you never apply {_listed(s)}. All four matrices take part, "
                "three before the heads are cut and one at the end."
            )
            mistakes.append(_alone("projection_missing", text, skipped=s))
    return tuple(mistakes)


# ---------------------------------------------------------------- its gallery: cutting into heads and merging
OWN_COLUMNS = "head h should get columns h * d_k to (h + 1) * d_k of every projected token"
SPLIT_FIRST = (
    "The input is cut into heads before it is projected: each head sees only its own slice of every token{}. "
    "Project the whole token first, then cut into heads, so that every head can use every column of the "
    "input."
)
HEADS_OVER_TOKENS = (
    "After the projection your axes are (batch, length, heads, d_k), and attention runs over the heads of "
    "one token instead of over the tokens of one head: tokens never meet. Exchange the axes of tokens and "
    "heads before the scores{}."
)
ONE_HEAD = (
    "Your weights are those of a single head as wide as the whole model: the projections are never cut into "
    "n_heads pieces{}. Each head should compute its scores from its own d_k = d_model / n_heads columns."
)
SAME_HEADS = "All heads are the same: each is computed from {} columns. Instead, {}."
BATCH_AND_HEADS = (
    "Sequences and heads are mixed up when the folded axis is taken apart: it was folded as {} and is "
    "unfolded as {}. The result of one sequence then depends on its neighbours in the batch. Fold and unfold "
    "in the same order."
)


def _head_mistakes() -> tuple[Mistake, ...]:
    return (
        _together(
            "split_by_view",
            "Queries, keys and values are cut by a reshape straight to (batch, heads, length, d_k): shapes "
            f"fit, but a head gets pieces of different tokens. Here {OWN_COLUMNS}: split the last axis "
            "first, then exchange the axes of tokens and heads.",
            split="view",
        ),
        _together(
            "split_before_projection",
            SPLIT_FIRST.format(", and all heads share one small matrix"),
            split="before_first_block",
        ),
        _together(
            "split_before_projection",
            SPLIT_FIRST.format(", and only a small block of each matrix is used"),
            split="before_blocks",
        ),
        _alone(
            "split_before_projection",
            SPLIT_FIRST.format(", and only a part of each matrix is used"),
            split="before_rows",
        ),
        _alone(
            "split_before_projection",
            SPLIT_FIRST.format(", and only a part of each matrix is used"),
            split="before_columns",
        ),
        _together("heads_not_moved", HEADS_OVER_TOKENS.format(""), split="no_transpose"),
        _together(
            "heads_not_moved",
            HEADS_OVER_TOKENS.format("; you exchange them only when merging"),
            split="no_transpose_then_merge",
        ),
        _together(
            "split_interleaved",
            "The heads are dealt out column by column: head 0 gets columns 0, n_heads, 2 n_heads and so on. "
            f"Heads should own neighbouring columns: {OWN_COLUMNS}.",
            split="interleaved",
        ),
        _together(
            "matrix_split_by_view",
            "The projection matrices are cut by a reshape straight to (heads, d_model, d_k), which mixes "
            f"their rows. The columns of a matrix should belong to the heads, since {OWN_COLUMNS}: reshape "
            "to (d_model, heads, d_k), then exchange the first two.",
            split="matrix_view",
        ),
        _together("same_slice_for_all", SAME_HEADS.format("the first d_k", OWN_COLUMNS), split="first_slice"),
        _alone("same_slice_for_all", SAME_HEADS.format("the last d_k", OWN_COLUMNS), split="last_slice"),
        _together(
            "shared_keys_and_values",
            "All heads use the keys and values of head 0; only the queries differ. (That is multi-query "
            f"attention, which the lesson comes to later.) Here {OWN_COLUMNS}, keys and values too.",
            split="shared_kv",
        ),
        _alone(
            "shared_keys",
            f"All heads use the keys of head 0. In queries, keys and values alike, {OWN_COLUMNS}.",
            split="shared_k",
        ),
        _alone(
            "shared_values",
            f"All heads use the values of head 0. In queries, keys and values alike, {OWN_COLUMNS}.",
            split="shared_v",
        ),
        _together(
            "overlapping_slices",
            f"Neighbouring heads share columns: each slice begins one column after the one before. Here {OWN_COLUMNS}.",
            split="overlapping",
        ),
        _together(
            "counts_exchanged",
            "The number of heads and their width are exchanged: you make d_model / n_heads heads, each "
            "n_heads wide. n_heads is the number of the pieces, not their width.",
            split="counts_exchanged",
        ),
        _alone(
            "transposed_then_view",
            "Tokens and columns are exchanged before the heads are cut, so a head gets pieces of different "
            "tokens. Split the last axis into (n_heads, d_k) first, then exchange axes 1 and 2.",
            split="transposed_view",
        ),
        _alone(
            "heads_reversed",
            "The heads come in reverse order: head 0 should have the first d_k columns.",
            split="reversed",
            merge="reversed",
        ),
        _alone(
            "heads_reversed",
            "The heads come in reverse order, in the weights and in the output: head 0 has the first d_k columns.",
            split="reversed",
        ),
        _together("single_head", ONE_HEAD.format(", and n_heads is not used"), split="none"),
        _together(
            "single_head",
            ONE_HEAD.format(" (the scale is that of a small head)"),
            split="none",
            scale="split",
        ),
        _alone("single_head", ONE_HEAD.format(", and n_heads is not used"), split="none", form="first"),
        _alone(
            "single_head",
            ONE_HEAD.format(" (the scale is that of a small head)"),
            split="none",
            scale="split",
            form="first",
        ),
        _alone("single_head", ONE_HEAD.format(", and n_heads is not used"), split="none_three"),
        _alone(
            "single_head",
            ONE_HEAD.format(" (the scale is that of a small head)"),
            split="none_three",
            scale="split",
        ),
        *(
            _alone(
                "whole_matrices_for_each_head",
                "All heads are the same: each is computed with the whole matrices, at the full width of the "
                'model. Head h should use only its own columns of w["q"], w["k"] and w["v"].',
                _whole_matrices_for_each_head,
                scale=scale,
            )
            for scale in ("d_k", "split")
        ),
        *(
            _alone(
                "split_by_view",
                f"Queries, keys and values are cut by a reshape straight to (batch, {axes}), and the axes "
                "are exchanged only then: shapes fit, but a head gets pieces of different tokens. Here "
                f"{OWN_COLUMNS}: split the last axis first.",
                split=split,
            )
            for split, axes in (
                ("view_tokens_last", "heads, d_k, length"),
                ("view_width_first", "d_k, heads, length"),
                ("view_tokens_middle", "d_k, length, heads"),
            )
        ),
        _alone(
            "batch_mixed_in",
            "The axis of the heads is made in front of the batch, so a head gets whole sequences of the "
            "batch. The batch stays axis 0, and only the last axis is split.",
            split="view_heads_outside",
        ),
        _together(
            "merged_by_view",
            "The heads are merged by a reshape without exchanging tokens and heads back: the first token "
            "receives the first tokens of head 0 instead of its own columns from every head. Shapes fit, "
            "and it even trains. Bring the token axis before the head axis first.",
            merge="by_view",
        ),
        _together(
            "merge_interleaved",
            "When the heads are merged, their columns are interleaved: first column of every head, then "
            "second column of every head. Heads should lie side by side, all of head 0 first; otherwise the "
            'rows of w["o"] meet the wrong columns.',
            merge="interleaved",
        ),
        _together(
            "merge_transposed_inside",
            "When merging, you exchange tokens and columns inside each head. What must be exchanged before "
            "the reshape is the axis of the heads and that of the tokens (1 and 2).",
            merge="inside",
        ),
        _together(
            "view_not_contiguous",
            f"The heads cannot be merged with view: {VIEW_FAILS}. Use reshape, or call .contiguous() before view.",
            merge="view",
        ),
        *(
            _alone(
                "merge_axes",
                f"When the heads are merged, the axes stand in the order {order}. It must be (batch, token, "
                "head, column) before the last two become one; any other order mixes tokens or heads.",
                merge=merge,
            )
            for merge, order in (
                ("columns_first", "(batch, column, head, token)"),
                ("columns_tokens", "(batch, column, token, head)"),
            )
        ),
        _alone(
            "merge_reversed",
            "The heads are merged in reverse order: head 0 should fill the first d_k columns.",
            merge="reversed",
        ),
        *(
            _alone(
                "heads_combined",
                f"{what}. Put the heads side by side, so that each fills its own columns.",
                merge=how,
            )
            for how, what in (
                ("first_copied", "The first head is repeated where the others belong"),
                ("last_copied", "The last head is repeated where the others belong"),
                ("mean_copied", "The average of the heads is repeated where each head belongs"),
            )
        ),
        _alone(
            "batch_and_heads_mixed",
            BATCH_AND_HEADS.format("(heads * batch)", "(batch, heads)"),
            merge="batch_heads",
        ),
        _alone(
            "batch_and_heads_mixed",
            BATCH_AND_HEADS.format("(batch * heads)", "(heads, batch)"),
            merge="heads_batch",
        ),
        _alone(
            "batch_and_heads_mixed",
            BATCH_AND_HEADS.format("(heads * batch)", "(batch, heads)"),
            merge="batch_heads_output",
        ),
        _alone(
            "batch_and_heads_mixed",
            BATCH_AND_HEADS.format("(batch * heads)", "(heads, batch)"),
            merge="heads_batch_output",
        ),
        *(
            _alone(
                "batch_attended",
                "Attention runs over the sequences of the batch instead of over the tokens: the first axis "
                "is taken for the tokens, as torch.nn.MultiheadAttention does unless it gets "
                "batch_first=True. Here the axes are (batch, length, d_model).",
                _batch_attended,
                **switches,
            )
            for switches in (
                {},
                {"mask_as": "ignored"},
                {"form": "mean"},
                {"mask_as": "ignored", "form": "mean"},
            )
        ),
        *(
            _alone(
                "batch_and_heads_mixed",
                BATCH_AND_HEADS.format(*orders)
                + " Here this concerns the weights that you return; the output is right.",
                form=form,
            )
            for form, orders in (
                ("batch_heads", ("(heads * batch)", "(batch, heads)")),
                ("heads_batch", ("(batch * heads)", "(heads, batch)")),
            )
        ),
        _together(
            "projected_before_merge",
            "The output projection is applied to each head alone, with the first d_k rows and columns of "
            'w["o"], and the heads are merged after it, so they never mix. Merge first, then multiply with '
            'the whole w["o"].',
            out="small_block",
        ),
        _together(
            "projected_before_merge",
            'The output projection is applied to each head alone, with only a small block of w["o"], and '
            "the heads are merged after it, so they never mix. Merge first, then multiply with the whole "
            'w["o"].',
            out="small_blocks",
        ),
        _alone(
            "same_rows_for_all",
            'Every head is projected with the first d_k rows of w["o"]. Head h should meet rows h * d_k to '
            "(h + 1) * d_k, which is what merging first and multiplying then does by itself.",
            out="first_rows",
        ),
        _alone(
            "head_outputs_averaged",
            "The output is n_heads times too small: the contributions of the heads are averaged, or their "
            "sum is divided by n_heads. They should be added, which is what merging first and multiplying "
            'then with w["o"] does by itself.',
            out="mean",
        ),
        *(
            _alone(
                "one_head_in_output",
                f"The weights are right, but only the {which} head reaches the output. In a loop, add up or "
                "keep every head's part.",
                out=f"{which}_head",
            )
            for which in ("first", "last")
        ),
        _alone(
            "projected_before_attention",
            "The output projection is applied to the values, before they are cut into heads and averaged. "
            "It should come last, on the merged heads, where it can mix what they have found.",
            out="on_values",
        ),
        *(
            _alone(
                "one_head_for_all",
                f"Only the {which} head comes out: it is repeated where the others belong, and only its "
                "weights are returned. In a loop, is each round's result kept?",
                merge=f"{which}_copied",
                form=form,
            )
            for which in ("last", "first")
            for form in (which, f"{which}_kept")
        ),
        _together(
            "output_projection_twice",
            "The output projection is applied twice. Once is enough, after the heads have been merged.",
            out="twice",
        ),
    )


# ---------------------------------------------------------------- its gallery: scores, mask, weights
ROOT = "Divide by sqrt(d_k), where d_k = d_model / n_heads is the width of one head"


def _score_mistakes() -> tuple[Mistake, ...]:
    return (
        _together(
            "no_scale",
            f"The scores are not scaled, so the weights are too sharp. {ROOT}: that keeps the size of the "
            "scores the same however wide the heads are.",
            scale="none",
        ),
        _together(
            "scaled_by_d_model",
            f"The scores are divided by sqrt(d_model), so the weights are too even. {ROOT}: the dot product "
            "runs over d_k columns.",
            scale="d_model",
        ),
        _together(
            "scaled_without_root",
            f"The scores are divided by d_k itself, so the weights are too even. {ROOT}.",
            scale="without_root",
        ),
        _together(
            "multiplied_by_root",
            f"The scores are multiplied by sqrt(d_k), so the weights are much too sharp. {ROOT}.",
            scale="multiplied",
        ),
        _together(
            "scaled_by_n_heads",
            f"The scores are divided by sqrt(n_heads). {ROOT}. After the split the sizes are (batch, heads, "
            "length, d_k): is it the last one that you take?",
            scale="n_heads",
        ),
        _alone("scaled_by_n_heads", f"The scores are divided by n_heads. {ROOT}.", scale="n_heads_without_root"),
        _alone(
            "scaled_by_d_model",
            f"The scores are divided by d_model, so the weights are too even. {ROOT}.",
            scale="d_model_without_root",
        ),
        _together(
            "scaled_by_length",
            f"The scores are divided by the root of the number of keys. {ROOT}: the dot product runs over "
            "d_k columns, however many tokens there are.",
            scale="keys",
        ),
        _alone(
            "scaled_by_length",
            f"The scores are divided by the root of the number of queries. {ROOT}: the dot product runs "
            "over d_k columns, however many tokens there are.",
            scale="queries",
        ),
        _alone(
            "scaled_after_softmax",
            "The weights are divided by sqrt(d_k) after the softmax, so their rows no longer sum to 1. It "
            "is the scores that are scaled, before the softmax.",
            scale="after",
        ),
        _alone(
            "scaled_by_fourth_root",
            f"The scores are divided by the fourth root of d_k. {ROOT}; where queries and keys are scaled "
            "one by one, both need the fourth root.",
            scale="half",
        ),
        _together(
            "keys_ask_queries",
            "Rows and columns of the scores are exchanged: they are keys times queries, so each key spreads "
            "its weights over the queries. A row should belong to a query: multiply queries with transposed "
            "keys.",
            pair="exchanged",
        ),
        _alone(
            "keys_reshaped",
            "The keys are brought to (d_k, length) by a reshape, which mixes the tokens. Their last two "
            "axes must be exchanged (transpose).",
            pair="reshaped",
        ),
        _alone(
            "values_weighted_by_columns",
            "The weights are right, but the values are averaged with their columns instead of their rows: "
            "the weights are transposed on the way to the values. Row i of the weights says how much query "
            "i takes of each value.",
            pair="read_by_keys",
        ),
        *(
            _together(
                "keys_not_transposed",
                "Queries are multiplied with the keys as they are, or with the wrong axes of the keys "
                "exchanged. A score is the dot product of a query and a key, so the last two axes of the "
                "keys change places: (batch, heads, d_k, key).",
                pair=pair,
            )
            for pair in ("not_transposed", "wrong_axes")
        ),
        *(
            _alone(
                "cosine_scores",
                "Queries and keys are normalised to length 1, so the scores are cosines. Here the score is "
                "the plain dot product, divided by sqrt(d_k): its size may say how sure a head is.",
                pair="cosine",
                scale=scale,
            )
            for scale in ("none", "d_k")
        ),
        _together(
            "softmax_over_queries",
            "The softmax runs over the queries: columns of the weights sum to 1, rows do not. Each query "
            "should spread its weights over the keys, the last axis.",
            softmax="queries",
        ),
        _together(
            "softmax_over_heads",
            "The softmax runs over the heads: the weights that the heads give to one pair sum to 1. Each "
            "head needs its own weights, which sum to 1 over the keys, the last axis.",
            softmax="heads",
        ),
        _together(
            "softmax_over_heads",
            "The softmax runs over the heads: the weights that the heads give to one pair sum to 1. Each "
            "head needs its own weights, which sum to 1 over the keys, the last axis.",
            softmax="heads",
            fill="inf",
        ),
        _together(
            "softmax_over_queries",
            "The softmax runs over the queries: columns of the weights sum to 1, rows do not. (A column "
            "that the mask forbids altogether even becomes NaN.) Each query should spread its weights over "
            "the keys, the last axis.",
            softmax="queries",
            fill="inf",
        ),
        *(
            _alone(
                "softmax_over_batch",
                "The softmax runs over the batch: the weights of different sequences sum to 1 together. "
                "Each query should spread its weights over the keys, the last axis.",
                softmax="batch",
                fill=fill,
            )
            for fill in ("finite", "inf")
        ),
        _alone(
            "softmax_over_all_pairs",
            "The softmax runs over queries and keys together: a whole map sums to 1. Each row must sum to 1 by itself.",
            softmax="all",
        ),
        *(
            _alone(
                "no_softmax",
                "There is no softmax: the scores themselves are used as weights. Weights must be positive, "
                "and each row must sum to 1.",
                softmax="none",
                fill=fill,
                applied=applied,
            )
            for fill, applied in (("finite", "fill"), ("inf", "fill"), ("finite", "zero"))
        ),
        _alone(
            "softmax_twice",
            "The softmax is applied twice, so the weights are nearly even. Once is enough.",
            softmax="twice",
        ),
        _alone(
            "sigmoid",
            "The weights come from a sigmoid: they do not sum to 1. Each row of scores needs a softmax over the keys.",
            softmax="sigmoid",
        ),
        _alone(
            "not_normalised",
            "The weights are the exponentials of the scores, but not divided by the sum of their row, so "
            "rows do not sum to 1.",
            softmax="exp",
        ),
        _alone(
            "hard_choice",
            "Each query puts all its weight on the key with the largest score. The softmax shares the "
            "weight among the keys, so that gradients reach all of them.",
            softmax="hard",
        ),
        _alone(
            "sum_without_keepdim",
            "The exponentials are divided by the sum of their row, but the sum has lost its axis and lines "
            "up with the wrong one: an error, or silently wrong numbers. keepdim=True keeps the axis with "
            "size 1.",
            softmax="no_keepdim",
            fill="inf",
        ),
        _alone(
            "sum_over_everything",
            "The exponentials are divided by the sum of all of them: everything together sums to 1. Each "
            "row must sum to 1 by itself.",
            softmax="everything",
            fill="inf",
        ),
    )


ALLOWED = "True means may attend: the forbidden ones are ~mask"


def _mask_mistakes() -> tuple[Mistake, ...]:
    inverted = (
        "The mask is used the wrong way round: what it allows is blocked and what it forbids is attended to. "
        f"{ALLOWED}. (In torch.nn.MultiheadAttention True means blocked; F.scaled_dot_product_attention does "
        "as here.)"
    )
    neighbour = (
        "With several sequences in the batch, heads get the mask of another sequence: {} Only with one "
        "sequence, or equal masks, does it come out right."
    )
    broadcast = (
        "The mask already broadcasts to (batch, heads, query, key): a mask (batch, 1, 1, key) keeps its axis "
        "of size 1 for the heads, a mask (query, key) is aligned from the right."
    )
    return (
        _together(
            "mask_ignored",
            "The mask has no effect: forbidden keys receive weight. Where a mask is given, fill the scores "
            "with -inf where it is False, before the softmax.",
            mask_as="ignored",
        ),
        _together("mask_inverted", inverted, mask_as="inverted"),
        _together("mask_inverted", inverted, mask_as="inverted", fill="inf"),
        _alone("mask_inverted", inverted, mask_as="inverted", fill="repaired"),
        _together(
            "zero_fill",
            "Forbidden scores become 0 (or almost 0, like 1e-9), which is an ordinary score: exp(0) = 1, so "
            "forbidden keys still receive weight. Fill with -inf.",
            applied="zero",
        ),
        _together(
            "mask_added",
            "The mask is added to the scores as numbers 1 and 0, which forbids nothing: allowed keys only "
            "gain 1. Fill the scores with -inf where the mask is False.",
            applied="added",
        ),
        _together(
            "fill_has_wrong_sign",
            "Forbidden scores become very large instead of very small (a lost minus sign), so the forbidden "
            "keys receive all the weight. Fill with -inf.",
            applied="large",
        ),
        _alone(
            "forbidden_infinite",
            "Every row with a forbidden key comes out as NaN, as it does where forbidden scores become +inf (a lost "
            "minus sign), where a row is blocked whole for one forbidden key (mask.all), or where a softmax of your "
            "own subtracts an infinity. Fill single scores with -inf, where ~mask.",
            applied="plus_infinite",
        ),
        *(
            _alone(
                "rows_masked_whole",
                "A query that may not attend to some key is treated as if it might attend to none. The mask forbids "
                "single keys, so use it as it comes: mask.all(-1) has no place here, and a row is empty only where "
                "mask.any(-1) is False.",
                mask_as="whole_rows",
                fill=fill,
            )
            for fill in ("finite", "repaired")
        ),
        _alone(
            "zero_times_infinity",
            "With a mask everything is NaN, as it is where the mask is multiplied by infinity (0 times infinity is "
            "NaN) or where an infinity from another row is subtracted. Use masked_fill or torch.where, which put -inf "
            "only where it belongs, and torch.softmax.",
            applied="nan",
        ),
        _together(
            "mask_after_softmax",
            "Forbidden weights are set to 0 after the softmax, so the rows of the weights no longer sum to "
            "1. Mask the scores before the softmax, which then shares all the weight among the allowed keys.",
            applied="after_zero",
        ),
        *(
            _alone(
                "mask_after_softmax",
                "The mask is filled in after the softmax, so the huge negative numbers meant for the scores "
                "stand among the weights. Mask the scores before the softmax.",
                applied=applied,
            )
            for applied in ("after_infinite", "after_large")
        ),
        _alone(
            "mask_on_output_only",
            "Forbidden weights are left out of the output only, and what remains is not shared out again. "
            "Mask the scores before the softmax, and return the weights that made the output.",
            applied="output_only",
        ),
        _alone(
            "unmasked_weights_returned",
            "The output is right, but the weights you return were computed without the mask. Return the "
            "weights that made the output.",
            applied="returned_bare",
        ),
        *(
            _alone(
                "unmasked_output",
                "The weights you return are masked, but the output was computed without the mask. Use for "
                "the output the weights that the masked scores give.",
                applied=applied,
            )
            for applied in ("returned_masked", "output_bare")
        ),
        _together(
            "mask_of_another_sequence",
            neighbour.format(
                "that happens where scores lie as (batch * heads) and mask.repeat(n_heads, 1, 1) puts all "
                "sequences once, then all again. repeat_interleave repeats each sequence's mask n_heads "
                "times in a row."
            ),
            mask_as="tiled",
        ),
        _together(
            "mask_of_another_sequence",
            neighbour.format(
                "that happens where scores lie as (heads * batch) and each sequence's mask is repeated "
                "n_heads times in a row. That order needs mask.repeat(n_heads, 1, 1)."
            ),
            mask_as="heads_outside",
        ),
        *(
            _alone(
                "first_mask_for_all",
                "Only the first entry of the mask is used, and serves all sequences (or all queries). The "
                "mask has one for each: let it broadcast whole.",
                mask_as=kind,
            )
            for kind in ("first_item", "first_item_of_four")
        ),
        *(
            _alone(
                "last_mask_for_all",
                "Only the last entry of the mask is used, and serves all sequences (or all queries). The "
                "mask has one for each: let it broadcast whole.",
                mask_as=kind,
            )
            for kind in ("last_item", "last_item_of_four")
        ),
        *(
            _together(
                "mask_transposed",
                "The mask is transposed: rows and columns, queries and keys, are exchanged. Its last axis "
                "is the keys, like that of the scores; use it as it comes.",
                mask_as="transposed",
                **fill,
            )
            for fill in ({}, {"fill": "inf"})
        ),
        *(
            _alone(
                "mask_of_some_shapes_ignored",
                f"A mask of shape {shape} is not used: forbidden keys receive weight there. {broadcast}",
                mask_as=kind,
            )
            for kind, shape in (
                ("four_only", "(query, key)"),
                ("two_only", "(batch, 1, 1, key) or (batch, 1, query, key)"),
            )
        ),
        _alone(
            "causal_without_mask",
            "Where no mask is given, a causal one is applied. mask=None means that everything may be attended to.",
            mask_as="causal_if_none",
        ),
        *(
            _alone(
                "mask_misaligned",
                "The mask loses an axis of size 1, and what is left lines up with the wrong axes of the "
                f"scores (silently where sizes agree). {broadcast}",
                mask_as=kind,
            )
            for kind in ("without_head_axis", "squeezed")
        ),
        *(
            _alone(
                "mask_misaligned",
                "The mask gets an axis more than it needs, and lines up with the wrong axes of the scores. "
                f"{broadcast}",
                mask_as=kind,
            )
            for kind in ("unsqueezed", "unsqueezed_two", "unsqueezed_front")
        ),
        *(
            _alone(
                "one_row_for_all_queries",
                f"All queries get {which}: one row for all. In a causal mask every query has its own row: use the "
                f"mask whole.",
                mask_as=kind,
            )
            for kind, which in (
                ("first_query", "the first row of the mask, or may attend only to what all of them may"),
                ("last_query", "the last row of the mask, or may attend to what any of them may"),
            )
        ),
        _together(
            "first_head_masked",
            "The mask reaches only the first head; in the others forbidden keys receive weight. It must "
            "broadcast over all heads.",
            mask_as="first_head",
        ),
        _together(
            "always_causal",
            "A causal mask is applied in any case, also where none is given. Only `mask` decides what may "
            "be attended to.",
            mask_as="causal",
        ),
        *(
            _alone(
                "padded_queries_masked",
                "The mask is applied to the rows of padded queries as well, which then have no key left. A "
                "mask is about keys only: the loss ignores padded queries.",
                mask_as="rows_too",
                fill=fill,
            )
            for fill in ("finite", "inf", "repaired")
        ),
        _alone(
            "mask_tested_for_truth",
            "The mask itself is tested (if mask:), but a tensor of several numbers is neither true nor "
            "false. Ask whether there is one: if mask is not None.",
            applied="truth",
        ),
    )


# ---------------------------------------------------------------- its gallery: what is returned
EACH_HEAD = "Return the weights of every head, (batch, heads, query, key): each head has its own map, and they differ"


def _result_mistakes() -> tuple[Mistake, ...]:
    forms = (
        (
            "mean",
            f"The weights are averaged over the heads, as torch.nn.MultiheadAttention does by default. {EACH_HEAD}",
        ),
        ("mean_kept", f"The weights are averaged over the heads. {EACH_HEAD}"),
        ("mean_expanded", f"The weights are averaged over the heads and repeated. {EACH_HEAD}"),
    )
    shape = "The weights must have shape (batch, heads, query, key)"
    return (
        *(_together("weights_averaged", f"{text}.", form=form) for form, text in forms[:1]),
        *(_alone("weights_averaged", f"{text}.", form=form) for form, text in forms[1:]),
        _together(
            "weights_summed",
            f"The weights are added up over the heads. {EACH_HEAD}.",
            form="sum",
        ),
        *(
            _alone(
                "weights_of_one_head",
                f"Only the weights of the {which} head are returned. {EACH_HEAD}.",
                form=form,
            )
            for form, which in (
                ("first", "first"),
                ("first_kept", "first"),
                ("last", "last"),
                ("last_kept", "last"),
            )
        ),
        _alone(
            "weights_maximum",
            f"Of the weights only the largest over the heads are returned. {EACH_HEAD}.",
            form="max",
        ),
        _together(
            "weights_transposed",
            "The weights are returned transposed: rows are keys and columns are queries. A row should "
            "belong to a query and sum to 1.",
            form="transposed",
        ),
        _together(
            "weights_axes",
            f"The axes of the weights are (heads, batch, query, key). {shape}.",
            form="heads_first",
        ),
        *(
            _alone("weights_axes", f"The axes of the weights are {axes}. {shape}.", form=form)
            for form, axes in (
                ("query_first", "(batch, query, heads, key)"),
                ("heads_last", "(batch, query, key, heads)"),
                ("keys_joined", "(batch, query, heads * key)"),
                ("queries_joined", "(batch, heads * query, key)"),
            )
        ),
        *(
            _together(
                "weights_folded",
                f"Heads and batch are still one axis in the weights, ({axes}, query, key). {shape}.",
                form=form,
            )
            for form, axes in (("folded", "batch * heads"), ("folded_heads_first", "heads * batch"))
        ),
        _alone(
            "weights_list",
            "The weights come as a list with one tensor for each head. Stack them along a new axis 1: "
            "(batch, heads, query, key).",
            form="list",
        ),
        *(
            _alone(
                "weights_of_one_sequence",
                f"{what}. {shape}.",
                form=form,
            )
            for form, what in (
                ("first_item", "Only the weights of the first sequence are returned"),
                ("mean_items", "The weights are averaged over the batch"),
            )
        ),
        _alone(
            "weights_squeezed",
            "The output is right, but axes of size 1 are removed from the weights, so their shape depends "
            f"on the input. {shape}, also with one head or one sequence.",
            form="squeezed",
        ),
        _together("only_output", "Only the output is returned. Return two values: output, weights.", form="output"),
        _together(
            "only_weights",
            "Only the weights are returned. Return two values: output, weights.",
            form="weights",
        ),
        _together(
            "results_exchanged",
            "The two results are exchanged. Return first the output, then the weights.",
            form="exchanged",
        ),
        _together(
            "weights_none",
            "None is returned where the weights belong: (output, weights) is asked for.",
            form="output_and_none",
        ),
        _alone("three_results", "You return three values. Two are asked for: output, weights.", form="three"),
        _together(
            "residual_added",
            "You add x_query to the output. That is the residual connection, which belongs to the layer around "
            "attention; this function returns attention alone.",
            extra="residual",
        ),
        _together(
            "normalised",
            "The output is normalised. Layer norm belongs to the layer around attention; this function "
            "returns attention alone.",
            extra="norm",
        ),
        _together(
            "residual_and_norm",
            "You add x_query to the output and normalise the sum. Both belong to the layer around attention; "
            "this function returns attention alone.",
            extra="residual_norm",
        ),
        _alone(
            "inputs_normalised",
            "The inputs are normalised first. Layer norm belongs to the layer around attention; here the "
            "inputs are projected as they come.",
            extra="norm_before",
        ),
        _alone(
            "relu",
            "Negative numbers of the output become 0 (a ReLU). The output projection is the last step, "
            "without an activation.",
            extra="relu",
        ),
    )


# ---------------------------------------------------------------- its probes
@functools.cache
def _drawn(seed: int, batch: int, query: int, key: int, width: int) -> tuple[Tensor, ...]:
    """x_query, x_memory and four matrices, drawn once; a probe hands out copies."""
    generator = torch.Generator().manual_seed(seed)
    inputs = [torch.randn(batch, length, width, generator=generator) for length in (query, key)]
    matrices = [torch.randn(width, width, generator=generator) / math.sqrt(width) for _ in "qkvo"]
    return (*inputs, *matrices)


def _inputs(
    seed: int,
    batch: int,
    query: int,
    key: int,
    width: int,
    n_heads: int,
    mask: Tensor | None = None,
    itself: bool = False,
) -> tuple:
    x_query, x_memory, *matrices = (x.clone() for x in _drawn(seed, batch, query, key, width))
    return x_query, x_query.clone() if itself else x_memory, dict(zip("qkvo", matrices, strict=True)), n_heads, mask


def _real(length: int, *lengths: int) -> Tensor:
    return (torch.arange(length) < torch.tensor(lengths)[:, None])[:, None, None, :]


def _past(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()


def _itself(probe: Probe) -> bool:
    x_query, x_memory, *_ = probe.make()
    return x_query.shape == x_memory.shape and torch.equal(x_query, x_memory)


def _without_mask(probe: Probe) -> bool:
    return probe.make()[4] is None


# ---------------------------------------------------------------- its symptoms
def _partly(
    chosen: Callable[[Probe], bool], wrong: Callable[[Outcome], bool] = lambda given: True
) -> Callable[[Seen], bool]:
    """Right on all probes that are `chosen`, not right on any other, where moreover `wrong` holds."""

    def shows(seen: Seen) -> bool:
        return all(same_outcome(e, g) if chosen(p) else not same_outcome(e, g) and wrong(g) for p, e, g in seen)

    return shows


def _raises(given: Outcome) -> bool:
    return given.error is not None


def _pairs(seen: Seen) -> list[tuple[Tensor, Tensor, Tensor, Tensor]] | None:
    """(expected output, expected weights, given output, given weights) of each probe, if two tensors came back."""
    pairs = []
    for _, expected, given in seen:
        value = given.value
        if given.error is not None or given.changed or not isinstance(value, list) or len(value) != 2:
            return None
        if not all(isinstance(x, Tensor) for x in value):
            return None
        pairs.append((*expected.value, *value))
    return pairs


def _told(test: Callable[[Tensor, Tensor, Tensor, Tensor], bool]) -> Callable[[Seen], bool]:
    """`test` holds on every probe."""

    def shows(seen: Seen) -> bool:
        pairs = _pairs(seen)
        return pairs is not None and all(test(*pair) for pair in pairs)

    return shows


def _scores_returned(output: Tensor, weights: Tensor, given_output: Tensor, given_weights: Tensor) -> bool:
    return (
        same_value(output, given_output)
        and weights.shape == given_weights.shape
        and same_value(given_weights.softmax(-1).nan_to_num(), weights)
    )


def _output_right(output: Tensor, weights: Tensor, given_output: Tensor, given_weights: Tensor) -> bool:
    return same_value(output, given_output)


def _both_right(output: Tensor, weights: Tensor, given_output: Tensor, given_weights: Tensor) -> bool:
    return same_value(output, given_output) and same_value(weights, given_weights)


def _weights_right(seen: Seen) -> bool:
    """The weights are right on every probe, and some output is off by more than small errors in them could explain."""
    pairs = _pairs(seen)
    if pairs is None or not all(same_value(weights, given) for _, weights, _, given in pairs):
        return False
    return any(a.shape != b.shape or not bool(((a - b).abs() < 0.01).all()) for a, _, b, _ in pairs)


def _forbidden_seen(seen: Seen) -> bool:
    """Right without a mask; with one, keys that it forbids receive weight."""
    pairs = _masked_pairs(seen)
    return bool(pairs) and all(
        given.shape == weights.shape and bool((given[weights == 0].abs() > 1e-3).any()) for weights, given in pairs
    )


def _narrow_meets_whole_matrix(seen: Seen) -> bool:
    """With several heads it always stops, at a product of something d_k wide with a whole matrix."""
    for probe, _, given in seen:
        x_query, _, _, n_heads, _ = probe.make()
        width = x_query.shape[-1]
        if n_heads > 1 and not re.search(
            rf"cannot be multiplied \(\d+x{width // n_heads} and {width}x{width}\)"
            rf"|to be: \[\d+, {width // n_heads}\] but got: \[\d+, {width}\]",
            str(given.error),
        ):
            return False
    return True


def _lengths_taken_equal(seen: Seen) -> bool:
    """Right where there are as many queries as keys, and an error where there are not."""
    return _partly(lambda probe: probe.make()[0].shape == probe.make()[1].shape, _raises)(seen)


def _masked_pairs(seen: Seen) -> list[tuple[Tensor, Tensor]]:
    """(expected, given) weights of the probes with a mask, if without a mask all is right."""
    if not all(same_outcome(e, g) for p, e, g in seen if _without_mask(p)):
        return []
    masked = [s for s in seen if not _without_mask(s[0])]
    pairs = _pairs(masked)
    return [(weights, given) for _, weights, _, given in pairs or ()]


def _only_forbidden_seen(seen: Seen) -> bool:
    """Right without a mask; with one, weight falls on forbidden keys only, wherever there are both kinds."""
    pairs = _masked_pairs(seen)
    for weights, given in pairs:
        if given.shape != weights.shape:
            return False
        forbidden = weights == 0
        both = forbidden.any(-1)
        if not torch.allclose((given * forbidden).nan_to_num().sum(-1)[both], torch.ones(()), atol=1e-3):
            return False
    return bool(pairs)


def _stops_with_mask(seen: Seen) -> bool:
    """Right without a mask; with one, it raises at least once, and says that shapes do not fit."""
    right = all(same_outcome(e, g) for p, e, g in seen if _without_mask(p))
    errors = [g.error for p, _, g in seen if not _without_mask(p) and g.error is not None]
    return right and bool(errors) and all(map(_about_shape, errors))


def _about_shape(error: BaseException) -> bool:
    words = (
        "size of tensor",
        "expanded size",
        "dimension",
        "is invalid for input",
        "cannot be multiplied",
        "must match",
    )
    return isinstance(error, (RuntimeError, IndexError)) and any(word in str(error) for word in words)


def _calculates_with_bool(seen: Seen) -> bool:
    """It always stops at a mask, because a bool tensor knows no minus."""
    masked = [g for p, _, g in seen if not _without_mask(p)]
    return all("with a bool tensor is not supported" in str(g.error) for g in masked)


def _axes_too_many(seen: Seen) -> bool:
    """Right without a mask; with one, it raises or, at least once, the weights get more than four axes."""
    if not all(same_outcome(e, g) for p, e, g in seen if _without_mask(p)):
        return False
    masked = [s for s in seen if not _without_mask(s[0])]
    ran = _pairs([s for s in masked if s[2].error is None])
    return bool(ran) and any(given.dim() > 4 for *_, given in ran)


def _asks_for_more(seen: Seen) -> bool:
    """Always a missing key or attribute of a dictionary."""
    return all(
        isinstance(g.error, KeyError)
        or (isinstance(g.error, AttributeError) and "'dict' object has no attribute" in str(g.error))
        for _, _, g in seen
    )


def _wrong_factor(seen: Seen) -> bool:
    """The weights are the softmax of the right scores times a factor, which is not always 1."""
    pairs = _pairs(seen)
    if pairs is None:
        return False
    factors = []
    for _, weights, _, given in pairs:
        if given.shape != weights.shape or not torch.equal(given > 0, weights > 0) or not (given >= 0).all():
            return False
        allowed = weights > 0
        logs = []
        for x in (weights, given):
            log = x.double().clamp(min=1e-30).log() * allowed
            logs.append((log - log.sum(-1, keepdim=True) / allowed.sum(-1, keepdim=True)) * allowed)
        right, mine = logs
        factor = (right * mine).sum() / (right * right).sum()
        sums = given.double().sum(-1)
        if not torch.allclose(mine, factor * right, atol=1e-3) or not torch.allclose(sums, torch.ones_like(sums)):
            return False
        factors.append(float(factor))
    return any(abs(f - 1) > 0.01 for f in factors) and all(f > 0 for f in factors)


def _rows_do_not_sum(seen: Seen) -> bool:
    """The weights have the right shape and are finite, but their rows do not always sum to 1."""
    pairs = _pairs(seen)
    if pairs is None or not all(a.shape == b.shape and b.isfinite().all() for _, a, _, b in pairs):
        return False
    sums = [given.double().sum(-1) for *_, given in pairs]
    return any(bool((((s - 1).abs() > 0.01) & (s.abs() > 0.01)).any()) for s in sums)  # an empty row is another matter


def _crashes_without_mask(seen: Seen) -> bool:
    return all(
        isinstance(g.error, (TypeError, AttributeError)) if _without_mask(p) else same_outcome(e, g) for p, e, g in seen
    )


SYMPTOMS = (
    *SHAPE_SYMPTOMS,
    Symptom(
        "no_such_matrix",
        'It asks for something that w does not hold. w is a dictionary with four matrices: w["q"], w["k"], '
        'w["v"] and w["o"].',
        _asks_for_more,
    ),
    Symptom(
        "heads_meet_whole_matrix",
        "It stops where a tensor only d_k wide is multiplied with a whole matrix, which has d_model rows. "
        "Look at two places: the whole token must be projected before it is cut into heads, and the heads "
        'must be put side by side again (not averaged, not added, none left out) before w["o"].',
        _narrow_meets_whole_matrix,
    ),
    Symptom(
        "mask_required",
        "With a mask it is right, but without one (mask=None) it stops: the mask is used although there is "
        "none. Put that step under: if mask is not None.",
        _crashes_without_mask,
    ),
    Symptom(
        "lengths_taken_equal",
        "It is right where there are as many queries as keys, and stops where there are not: the length of "
        "x_query is used for x_memory as well, or the other way round. In cross-attention the two differ; take each "
        "from its own shape, or let reshape find it (-1).",
        _lengths_taken_equal,
    ),
    Symptom(
        "scores_returned",
        "The output is right, but what you return as weights are the scores, or their logarithm: a softmax "
        "over the last axis makes the right weights of them. Return what comes after the softmax.",
        _told(_scores_returned),
    ),
    Symptom(
        "mask_misaligned",
        "Without a mask it is right, but with one the weights get more than four axes: the mask has an axis "
        "too many. It already broadcasts to the scores (batch, heads, query, key), be it (batch, 1, 1, key) "
        "or (query, key): use it as it comes.",
        _axes_too_many,
    ),
    Symptom(
        "bool_minus",
        "It stops at the mask: True and False cannot be subtracted or get a minus sign. The opposite of a "
        "bool mask is ~mask; to calculate with it, convert it first (mask.float()).",
        _calculates_with_bool,
    ),
    Symptom(
        "mask_does_not_fit",
        "Without a mask it is right; with one it stops, at least for some shapes of the mask. The mask "
        "broadcasts as it is to the scores (batch, heads, query, key), be it (batch, 1, 1, key), (batch, 1, "
        "query, key) or (query, key): nothing needs to be added to its axes or taken from them.",
        _stops_with_mask,
    ),
    Symptom(
        "mask_inverted",
        "Without a mask it is right, but with one all the weight falls on the keys that it forbids: the "
        "mask is used the wrong way round. True means may attend: the forbidden ones are ~mask.",
        _only_forbidden_seen,
    ),
    Symptom(
        "mask_leaks",
        "Without a mask it is right, but with one, keys that it forbids still receive weight. Their scores "
        "must be -inf (or very negative) before the softmax.",
        _forbidden_seen,
    ),
    Symptom(
        "wrong_scale",
        "Your weights are the softmax of scores that are right but for a factor, so they are all too even "
        "or all too sharp. A score is the dot product of query and key divided by sqrt(d_k), where d_k = "
        "d_model / n_heads is the width of a head.",
        _wrong_factor,
    ),
    Symptom(
        "wrong_with_mask",
        "Without a mask it is right, with one it is not: the way the mask is brought into the scores is the "
        "place to look.",
        _partly(_without_mask),
    ),
    Symptom(
        "output_right_weights_wrong",
        "The output is right on every input, so the weights inside must have been right: what you return as "
        "weights is something else, or they are changed on the way out. They must have shape (batch, heads, "
        "query, key).",
        lambda seen: _told(_output_right)(seen) and not _told(_both_right)(seen),
    ),
    Symptom(
        "rows_do_not_sum_to_one",
        "The rows of your weights do not all sum to 1: each query must share a weight of 1 among the keys, "
        "which is what a softmax over the last axis does, if nothing changes the weights afterwards.",
        _rows_do_not_sum,
    ),
    Symptom(
        "wrong_in_cross_attention",
        "In self-attention it is right, in cross-attention it is not: somewhere x_query stands for x_memory or the "
        "other way round, or the two lengths are taken to be equal.",
        _partly(_itself),
    ),
    Symptom(
        "wrong_with_several_heads",
        "With one head it is right, with several it is not: cutting into heads, what is done to each head, "
        "or merging them is the place to look.",
        _partly(lambda probe: probe.make()[3] == 1),
    ),
    Symptom(
        "wrong_with_several_sequences",
        "With one sequence it is right, with several in the batch it is not: somewhere the batch axis is "
        "mixed with another, or lost.",
        _partly(lambda probe: len(probe.make()[0]) == 1),
    ),
    Symptom(
        "weights_right_output_wrong",
        "The weights are right on every input, and the output is not: the mistake comes after the softmax "
        'or with the values. Check w["v"] and how the values are cut into heads, then the merging, then '
        'w["o"].',
        _weights_right,
    ),
)

MULTI_HEAD_ATTENTION = Exercise(
    name="heads.multi_head_attention",
    reference=lambda x_query, x_memory, w, n_heads, mask=None: heads.multi_head_attention(
        x_query, x_memory, w, n_heads, mask
    ),
    results=(
        Result("output", ("batch", "query", "column")),
        Result("weights", ("batch", "head", "query", "key")),
    ),
    probes=(
        Probe(
            "self-attention of one sequence of 4 tokens, d_model 6, 2 heads",
            lambda: _inputs(6, 1, 4, 4, 6, 2, itself=True),
        ),
        Probe(
            "self-attention of one sequence of 3 tokens, d_model 4, 1 head",
            lambda: _inputs(3, 1, 3, 3, 4, 1, itself=True),
        ),
        Probe("2 queries and 3 keys, batch 2, d_model 6, 3 heads", lambda: _inputs(5, 2, 2, 3, 6, 3)),
        Probe("3 queries and 5 keys, batch 2, d_model 8, 4 heads", lambda: _inputs(4, 2, 3, 5, 8, 4)),
        Probe(
            "3 queries and 3 keys from another input, batch 2, d_model 6, 2 heads",
            lambda: _inputs(2, 2, 3, 3, 6, 2),
        ),
        Probe(
            "self-attention, batch 3, 4 tokens, d_model 12, 3 heads",
            lambda: _inputs(7, 3, 4, 4, 12, 3, itself=True),
        ),
        Probe(
            "3 queries and 4 keys, batch 2, d_model 8, 2 heads, mask (2, 1, 1, 4) for lengths [4, 2]",
            lambda: _inputs(1, 2, 3, 4, 8, 2, _real(4, 4, 2)),
        ),
        Probe(
            "self-attention of 4 tokens, batch 2, d_model 8, 2 heads, causal mask (4, 4)",
            lambda: _inputs(8, 2, 4, 4, 8, 2, _past(4), itself=True),
        ),
        Probe(
            "self-attention of 3 tokens, batch 3, d_model 9, 3 heads, mask (3, 1, 1, 3) for lengths [3, 1, 2]",
            lambda: _inputs(28, 3, 3, 3, 9, 3, _real(3, 3, 1, 2), itself=True),
        ),
        Probe(
            "2 queries and 3 keys, batch 3, d_model 8, 4 heads, mask (3, 1, 1, 3) for lengths [1, 3, 2]",
            lambda: _inputs(9, 3, 2, 3, 8, 4, _real(3, 1, 3, 2)),
        ),
        Probe(
            "self-attention of 4 tokens, batch 2, d_model 6, 3 heads, mask (2, 1, 4, 4), causal, lengths [4, 2]",
            lambda: _inputs(10, 2, 4, 4, 6, 3, _past(4) & _real(4, 4, 2), itself=True),
        ),
        Probe(
            "self-attention of 3 tokens, batch 2, d_model 3, 3 heads, causal mask (3, 3)",
            lambda: _inputs(12, 2, 3, 3, 3, 3, _past(3), itself=True),
        ),
        Probe(
            "2 queries and 4 keys, batch 2, d_model 5, 1 head, mask (2, 1, 1, 4) for lengths [2, 3]",
            lambda: _inputs(17, 2, 2, 4, 5, 1, _real(4, 2, 3)),
        ),
        Probe(
            "3 queries and 4 keys, one sequence, d_model 6, 2 heads, mask (1, 1, 1, 4) for length 3",
            lambda: _inputs(11, 1, 3, 4, 6, 2, _real(4, 3)),
        ),
    ),
    compound=_attention,
    mistakes=(
        *_result_mistakes(),
        *_input_mistakes(),
        *_matrix_mistakes(),
        *_transposed_mistakes(),
        *_skipped_mistakes(),
        *_head_mistakes(),
        *_score_mistakes(),
        *_mask_mistakes(),
    ),
    symptoms=SYMPTOMS,
)
