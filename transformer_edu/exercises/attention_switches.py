"""Attention with everything that may go wrong in it: one implementation with a switch for each step.

The switches follow the path of the numbers: how scores are made and scaled, how the mask is read, what becomes of a
forbidden score, over what the softmax runs, what the weights average, and what is returned.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["attend"]


def _scores(query: Tensor, key: Tensor, value: Tensor, product: str) -> Tensor:
    return {
        "dot": lambda: query @ key.mT,
        "none": lambda: query @ key.mT * 0.0,
        "swapped": lambda: key @ query.mT,
        "view": lambda: query @ key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2]),
        "query_query": lambda: query @ query.mT,
        "key_key": lambda: key @ key.mT,
        "query_value": lambda: query @ value.mT,
        "value_value": lambda: value @ value.mT,
        "not_transposed": lambda: query @ key,
        "all_axes_reversed": lambda: query @ key.permute(*range(key.dim() - 1, -1, -1)),
        "heads_transposed": lambda: query @ key.transpose(-3, -2),
        "cosine": lambda: F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT,
        "heads_summed": lambda: (query @ key.mT).sum(-3, keepdim=True),
        "heads_summed_expanded": lambda: (query @ key.mT).sum(-3, keepdim=True).expand(*query.shape[:-1], -1),
    }[product]()


def _factor(query: Tensor, key: Tensor, value: Tensor, scale: str) -> float:
    """What the dot products are multiplied by."""
    batch, heads, queries, d_k = query.shape
    return {
        "none": lambda: 1.0,
        "d_k": lambda: 1 / d_k,
        "times_root": lambda: math.sqrt(d_k),
        "times_d_k": lambda: d_k,
        "d_model": lambda: 1 / math.sqrt(heads * d_k),
        "d_model_whole": lambda: 1 / (heads * d_k),
        "root_of_heads": lambda: 1 / math.sqrt(heads),
        "heads": lambda: 1 / heads,
        "head_width_split_again": lambda: math.sqrt(heads / d_k),
        "root_of_batch": lambda: 1 / math.sqrt(batch),
        "batch": lambda: 1 / batch,
        "root_of_queries": lambda: 1 / math.sqrt(queries),
        "queries": lambda: 1 / queries,
        "root_of_keys": lambda: 1 / math.sqrt(key.shape[-2]),
        "keys": lambda: 1 / key.shape[-2],
        "root_of_d_v": lambda: 1 / math.sqrt(value.shape[-1]),
        "half": lambda: 2 / d_k,
        "fourth_root": lambda: d_k**-0.25,
        "thrice": lambda: d_k**-1.5,
        "square": lambda: d_k**-2,
        "twice_d_k": lambda: 1 / math.sqrt(2 * d_k),
        "root_rounded_down": lambda: 1 / math.isqrt(d_k),
    }.get(scale, lambda: 1 / math.sqrt(d_k))()


def _scaled(scores: Tensor, query: Tensor, key: Tensor, value: Tensor, scale: str) -> Tensor:
    if scale in ("query_in_place", "key_in_place"):
        return scores  # scaled already
    if scale == "rounded":
        return scores // math.sqrt(query.shape[-1])
    if scale == "after_softmax":
        return scores
    return scores * _factor(query, key, value, scale)


def _read(mask: Tensor, shape: torch.Size, reading: str) -> Tensor:
    """The mask as the reader understands it: True = allowed."""
    if reading == "condition" and mask:  # raises: a tensor of several numbers is neither true nor false
        return mask
    if reading == "in_place":
        return mask.logical_not_().logical_not()
    return {
        "inverted": lambda: ~mask,
        "everything": lambda: torch.ones((), dtype=torch.bool),
        "four_axes_only": lambda: mask if mask.dim() == 4 else torch.ones_like(mask),
        "two_axes_only": lambda: mask if mask.dim() == 2 else torch.ones_like(mask),
        "transposed": lambda: mask.mT,
        "first_sequence": lambda: mask[:1],
        "first_sequence_expanded": lambda: mask.expand(shape)[:1],
        "last_sequence": lambda: mask.expand(shape)[-1:],
        "first_head": lambda: mask.expand(shape)[:, :1],
        "first_query": lambda: mask[..., :1, :],
        "last_query": lambda: mask[..., -1:, :],
        "any_query": lambda: mask.any(-2, keepdim=True),
        "whole_rows": lambda: mask.all(-1, keepdim=True),
        "empty_rows": lambda: mask.any(-1, keepdim=True),
        "all_queries": lambda: mask.all(-2, keepdim=True),
        "new_axis_0": lambda: mask.unsqueeze(0),
        "new_axis_1": lambda: mask.unsqueeze(1),
        "minus": lambda: 1 - mask,
        "negative": lambda: -mask,
    }.get(reading, lambda: mask)()


def _ordered(shape: torch.Size, order: str) -> Tensor:
    """What a reader may forbid without being asked."""
    ones = torch.ones(shape[-2:], dtype=torch.bool)
    return {
        "causal": lambda: ones.tril(),
        "causal_at_the_end": lambda: ones.tril(shape[-1] - shape[-2]),
        "past": lambda: ones.tril(-1),
        "others": lambda: ~(ones.tril() & ones.triu()),
        "without_last": lambda: torch.arange(shape[-1]) < shape[-1] - 1,
        "without_first": lambda: torch.arange(shape[-1]) > 0,
    }[order]()


FILLS = {
    "zeroed": "smallest",
    "uniform": "smallest",
    "uniform_output_zero": "smallest",
    "minus_1e9": -1e9,
    "minus_1e9_zeroed": -1e9,
    "minus_1e4": -1e4,
    "minus_1e4_zeroed": -1e4,
    "zeroed_elsewhere": "smallest",
    "zero": 0.0,
    "one": 1.0,
    "minus_one": -1.0,
    "plus_1e9": 1e9,
    "plus_infinity": torch.inf,
}
ADDED = {"added": 1.0, "added_1e9": 1e9}  # to the allowed scores
SUBTRACTED = {  # to the forbidden ones
    "subtracted_1e4": -1e4,
    "subtracted_1e9": -1e9,
    "subtracted_1": -1.0,
    "subtracted_infinity": -torch.inf,
    "forbidden_raised": 1e9,
}
UNTOUCHED = ("ignored", "after", "after_output_only", "after_weights_only", "values", "keys_and_values", "renormalised")


def _filled(scores: Tensor, allowed: Tensor, fill: str) -> Tensor:
    """The scores after the mask."""
    if fill.startswith(UNTOUCHED):
        return scores
    if fill in ADDED:
        return scores + allowed.to(scores.dtype) * ADDED[fill]
    if fill in SUBTRACTED:
        return scores + (~allowed).to(scores.dtype) * SUBTRACTED[fill]
    if fill == "multiplied_by_1e9":
        return scores * torch.where(allowed, 1.0, -1e9)
    if fill == "indexed":
        scores = scores.clone()
        scores[~allowed] = -torch.inf
        return scores
    filler = FILLS.get(fill, -torch.inf)
    filled = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min if filler == "smallest" else filler)
    if fill == "late":  # the -inf is added, not filled in: that differs in the gradient alone
        return scores + torch.zeros_like(scores).masked_fill(~allowed, -torch.inf)
    if fill == "repaired":  # no row of nothing but -inf, which would be NaN
        return filled.masked_fill(~allowed.any(-1, keepdim=True), 0.0)
    if fill == "empty_rows_unmasked":
        return torch.where(allowed.any(-1, keepdim=True), filled, scores)
    return filled


def _repaired(weights: Tensor, allowed: Tensor, fill: str) -> Tensor:
    """The weights after what the reader does to them because of the mask."""

    def total() -> Tensor:
        return (weights * allowed).sum(-1, keepdim=True)

    return {
        "repaired": lambda: weights.masked_fill(~allowed.any(-1, keepdim=True), 0.0),
        "zeroed": lambda: weights.masked_fill(~allowed, 0.0),
        "minus_1e9_zeroed": lambda: weights.masked_fill(~allowed, 0.0),
        "minus_1e4_zeroed": lambda: weights.masked_fill(~allowed, 0.0),
        "zeroed_elsewhere": lambda: weights.masked_fill(allowed, 0.0),
        "nan_zeroed_elsewhere": lambda: weights.masked_fill(allowed, 0.0),
        "late": lambda: weights.nan_to_num(0.0),
        "after": lambda: weights * allowed,
        "after_weights_only": lambda: weights * allowed,
        "renormalised": lambda: weights * allowed / total(),
        "renormalised_epsilon": lambda: weights * allowed / (total() + 1e-9),
        "renormalised_late": lambda: (weights * allowed / total()).nan_to_num(0.0),
        "renormalised_softmax": lambda: (weights * allowed).softmax(-1),
    }.get(fill, lambda: weights)()


def _normalised(scores: Tensor, allowed: Tensor, softmax: str) -> Tensor:
    """The weights."""

    def shifted() -> Tensor:
        return (scores - scores.amax(-1, keepdim=True)).exp()

    def share(e: Tensor, epsilon: float = 0.0, *, keepdim: bool = True) -> Tensor:
        return e / (e.sum(-1, keepdim=keepdim) + epsilon)

    return {
        "keys": lambda: scores.softmax(-1),
        "queries": lambda: scores.softmax(-2),
        "matrix": lambda: scores.flatten(-2).softmax(-1).reshape(scores.shape),
        "everything": lambda: scores.flatten().softmax(0).reshape(scores.shape),
        "heads": lambda: scores.softmax(-3),
        "batch": lambda: scores.softmax(0),
        "heads_and_keys": lambda: (
            scores.transpose(-3, -2).flatten(-2).softmax(-1).reshape(scores.transpose(-3, -2).shape).transpose(-3, -2)
        ),
        "none": lambda: scores,
        "sigmoid": lambda: scores.sigmoid(),
        "log": lambda: scores.log_softmax(-1),
        "exponential": lambda: scores.exp(),
        "exponential_shifted": shifted,
        "linear": lambda: share(scores),
        "minus_sign": lambda: (-scores).softmax(-1),
        "hard": lambda: F.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype),
        "twice": lambda: scores.softmax(-1).softmax(-1),
        "relu": lambda: share(scores.relu()),
        "relu_epsilon": lambda: share(scores.relu(), 1e-9),
        "no_keepdim": lambda: share(shifted(), keepdim=False),
        "no_keepdim_naive": lambda: share(scores.exp(), keepdim=False),
        "queries_then_keys": lambda: scores.softmax(-2).softmax(-1),
        "divided_by_keys": lambda: scores.softmax(-1) / scores.shape[-1],
        "length": lambda: F.normalize(scores, dim=-1),
        "naive": lambda: share(scores.exp()),
        "naive_epsilon": lambda: share(scores.exp(), 1e-9),
        "naive_hidden": lambda: share(scores.exp()).nan_to_num(0.0),
        "naive_times_mask": lambda: share(scores.exp() * allowed),
        "naive_times_mask_epsilon": lambda: share(scores.exp() * allowed, 1e-9),
        "shifted_by_everything": lambda: share((scores - scores.max()).exp()),
        "shifted_by_everything_epsilon": lambda: share((scores - scores.max()).exp(), 1e-9),
    }[softmax]()


def _output(weights: Tensor, scores: Tensor, query: Tensor, key: Tensor, value: Tensor, weighting: str) -> Tensor:
    return {
        "values": lambda: weights @ value,
        "columns": lambda: weights.mT @ value,
        "columns_einsum": lambda: torch.einsum("...qk,...qd->...kd", weights, value),
        "values_einsum": lambda: torch.einsum("...qk,...kd->...qd", weights, value),
        "keys": lambda: weights @ key,
        "queries": lambda: weights @ query,
        "scores": lambda: scores @ value,
        "value_itself": lambda: value,
        "mean": lambda: value.mean(-2, keepdim=True).expand(*weights.shape[:-1], -1),
        "sum": lambda: value.sum(-2, keepdim=True).expand(*weights.shape[:-1], -1),
        "scaled": lambda: weights @ value / math.sqrt(query.shape[-1]),
        "divided_by_keys": lambda: weights @ value / value.shape[-2],
        "detached": lambda: weights.detach() @ value,
        "residual": lambda: weights @ value + query,
        "value_view": lambda: weights @ value.mT.reshape(value.shape),
        "strongest": lambda: value.take_along_dim(weights.argmax(-1, keepdim=True), -2),
        "softmax_again": lambda: weights.softmax(-1) @ value,
        "value_first": lambda: value @ weights,
        "entry_by_entry": lambda: weights * value,
        "heads_averaged": lambda: weights.mean(1, keepdim=True) @ value,
        "squared": lambda: weights @ (weights @ value),
        "scaled_values": lambda: weights @ value * math.sqrt(query.shape[-1]),
    }[weighting]()


def _result(output: Tensor, weights: Tensor, scores: Tensor, plain: Tensor, before: Tensor, form: str) -> object:
    """What is returned. `scores` are masked, `before` not, `plain` neither scaled nor masked."""
    return {
        "pair": lambda: (output, weights),
        "exchanged": lambda: (weights, output),
        "output_only": lambda: output,
        "weights_only": lambda: weights,
        "weights_missing": lambda: (output, None),
        "output_twice": lambda: (output, output),
        "weights_twice": lambda: (weights, weights),
        "scores": lambda: (output, scores),
        "plain_scores": lambda: (output, plain),
        "unmasked_weights": lambda: (output, before.softmax(-1)),
        "log_weights": lambda: (output, weights.log()),
        "weights_averaged_over_heads": lambda: (output, weights.mean(1)),
        "weights_summed_over_heads": lambda: (output, weights.sum(1)),
        "weights_of_first_head": lambda: (output, weights[:, 0]),
        "weights_transposed": lambda: (output, weights.mT),
        "output_transposed": lambda: (output.mT, weights),
        "heads_behind": lambda: (output.transpose(1, 2), weights),
        "merged": lambda: (output.transpose(1, 2).flatten(2), weights),
        "merged_without_transpose": lambda: (
            output.reshape(output.shape[0], output.shape[2], -1),
            weights,
        ),
        "output_averaged_over_heads": lambda: (output.mean(1), weights),
        "output_summed_over_heads": lambda: (output.sum(1), weights),
        "output_summed": lambda: (output.sum(-2), weights),
        "squeezed": lambda: (output.squeeze(), weights.squeeze()),
        "first_sequence": lambda: (output[0], weights[0]),
        "first_head": lambda: (output[:, 0], weights[:, 0]),
        "dictionary": lambda: {"output": output, "weights": weights},
        "three": lambda: (output, weights, scores),
        "stacked": lambda: torch.stack((output, weights)),
        "joined": lambda: torch.cat((output, weights), -1),
    }[form]()


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    product: str = "dot",
    scale: str = "root",
    reading: str = "right",
    order: str = "free",
    none: str = "right",
    fill: str = "repaired",
    softmax: str = "keys",
    weighting: str = "values",
    form: str = "pair",
    dtype: str = "kept",
) -> object:
    """One wrong implementation of attention; with no switch set it is right."""
    if mask is None and none != "right":
        raise {"type": TypeError, "attribute": AttributeError}[none]("mask is None")
    if scale == "query_in_place":
        query /= math.sqrt(query.shape[-1])
    if scale == "key_in_place":
        key /= math.sqrt(key.shape[-1])
    plain = _scores(query, key, value, product)
    scores = _scaled(plain, query, key, value, scale)
    before = scores
    if mask is None:
        fill, allowed = "ignored" if order == "free" else "repaired", torch.ones((), dtype=torch.bool)
    else:
        allowed = _read(mask, scores.shape, reading)
    if order != "free":
        allowed = allowed & _ordered(scores.shape, order)
    if fill != "ignored":
        scores = _filled(scores, allowed, fill)
        if fill in ("values", "keys_and_values"):
            keep = allowed.expand(scores.shape).any(-2, keepdim=True).mT
            value = value * keep
            if fill == "keys_and_values":
                scores = _scaled(_scores(query, key * keep, value, product), query, key, value, scale)
    weights = _normalised(scores, allowed, softmax)
    if fill != "ignored":
        weights = _repaired(weights, allowed, fill)
    if scale == "after_softmax":
        weights = weights / math.sqrt(query.shape[-1])
    if dtype == "float32":
        weights = weights.float()
    used = weights * allowed if fill == "after_output_only" else weights
    if fill == "after_weights_only":
        used = _normalised(before, allowed, softmax)
    output = _output(used, scores, query, key, value, weighting)
    if fill == "late_output":
        output = output.nan_to_num(0.0)
    if fill == "uniform_output_zero":
        output = output.masked_fill(~allowed.any(-1, keepdim=True), 0.0)
    return _result(output, weights, scores, plain, before, form)
