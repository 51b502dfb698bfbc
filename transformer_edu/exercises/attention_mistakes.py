"""The mistakes of scaled_dot_product_attention: what each switch of `attention_switches.attend` means to a reader.

A sentence must be true beside any other mistake, so none says that the rest is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .exercise import Mistake, each, switch

__all__ = ["MISTAKES"]

# Looked for alone, or with what shows in edge cases only: not in pairs with the others.
SELDOM = frozenset((
    "all_axes_reversed", "changes_key", "cut_at_zero", "divided_by_heads_again", "divided_by_length",
    "divided_by_number_of_keys", "divided_by_square", "entry_by_entry", "equal_weights", "first_head_alone",
    "first_key_left_out", "first_sequence_alone", "fourth_root", "hard_maximum", "heads_added_up",
    "heads_averaged", "last_key_left_out", "logarithms_returned", "mask_ignored_by_axes",
    "mask_inverted_once", "mask_joined_over_queries", "mask_of_last_sequence", "minus_mask", "minus_sign",
    "multiplied_by_d_k", "multiplied_by_large_number", "output_averaged_over_heads",
    "output_summed_over_heads", "output_summed_over_queries", "output_twice", "past_only", "plain_average",
    "queries_averaged", "query_unused", "root_rounded_down", "rows_masked_whole", "scaled_by_batch",
    "scaled_by_two_widths", "scaled_three_times", "score_minus_one", "score_one", "scores_of_values",
    "scores_rounded_down", "self_forbidden", "softmax_again_after_mask", "softmax_again_in_output",
    "softmax_over_heads_and_keys", "squeezed", "unweighted_sum", "value_first", "value_scrambled",
    "weights_missing", "weights_of_first_head", "weights_summed_over_heads", "weights_twice",
    "weights_twice_applied", "weights_without_mask", "wrong_axes_transposed",
))  # fmt: skip

ROOT = "Divide the scores by sqrt(d_k), with d_k = query.shape[-1], before the softmax"
ROWS = "Each query needs weights of its own that sum to 1: softmax over the keys, dim=-1"

SCALES = (
    *each(
        "no_scale",
        "Your scores are the bare dot products, not scaled, so the weights are too extreme (with d_k = 1 nobody "
        f"sees it). {ROOT}.",
        {"scale": "none"},
    ),
    *each(
        "divided_by_d_k",
        "Your scores are divided by d_k instead of its square root, so the weights are too flat: either the root is "
        "missing, or you divide by sqrt(d_k) twice (query and key each, or once before and once after the product).",
        {"scale": "d_k"},
    ),
    *each(
        "multiplied_by_root",
        "Your scores are multiplied by sqrt(d_k) where they must be divided by it, so the weights are much too "
        "extreme: d_k ** -0.5 is already the reciprocal, to multiply with, and sqrt(d_k) is to divide by.",
        {"scale": "times_root"},
    ),
    *each("multiplied_by_d_k", f"Your scores are multiplied by d_k. {ROOT}.", {"scale": "times_d_k"}),
    *each(
        "scaled_by_d_model",
        "Your scores are divided by sqrt(heads * d_k), the root of the model's whole width: right with one head, "
        "too flat with more. The width that counts is that of one head: d_k = query.shape[-1].",
        {"scale": "d_model"},
    ),
    *each(
        "scaled_by_d_model",
        "Your scores are divided by heads * d_k, the model's whole width, and without a root. It is the root of the "
        "width of one head: sqrt(d_k), d_k = query.shape[-1].",
        {"scale": "d_model_whole"},
    ),
    *each(
        "scaled_by_heads",
        f"Your scores are divided by the root of the number of heads, query.shape[1], not of the width. {ROOT}.",
        {"scale": "root_of_heads"},
    ),
    *each(
        "scaled_by_heads",
        f"Your scores are divided by the number of heads, query.shape[1]. {ROOT}.",
        {"scale": "heads"},
    ),
    *each(
        "divided_by_heads_again",
        "You divide by sqrt(d_k / heads): query.shape[-1] is the width of one head already, nothing is left to "
        "divide by the number of heads.",
        {"scale": "head_width_split_again"},
    ),
    *each(
        "scaled_by_batch",
        f"Your scores are divided by the root of the batch size, query.shape[0], not of the width. {ROOT}.",
        {"scale": "root_of_batch"},
    ),
    *each(
        "scaled_by_batch",
        f"Your scores are divided by the batch size, query.shape[0]. {ROOT}.",
        {"scale": "batch"},
    ),
    *each(
        "scaled_by_length",
        f"Your scores are divided by the root of the number of queries, query.shape[-2], not of the width. {ROOT}.",
        {"scale": "root_of_queries"},
    ),
    *each(
        "scaled_by_length",
        f"Your scores are divided by the number of queries, query.shape[-2]. {ROOT}.",
        {"scale": "queries"},
    ),
    *each(
        "scaled_by_length",
        f"Your scores are divided by the root of the number of keys, not of the width. {ROOT}.",
        {"scale": "root_of_keys"},
    ),
    *each("scaled_by_length", f"Your scores are divided by the number of keys. {ROOT}.", {"scale": "keys"}),
    *each(
        "scaled_by_d_v",
        "Your scores are divided by the root of the values' width, d_v. What grows with the width is the dot "
        "product of query and key, so it is their width that counts: sqrt(d_k), d_k = query.shape[-1].",
        {"scale": "root_of_d_v"},
    ),
    *each(
        "half_instead_of_root",
        "Your scores are divided by d_k / 2, not by the square root. d_k ** 1/2 means (d_k ** 1) / 2: write d_k ** "
        "0.5 or math.sqrt(d_k).",
        {"scale": "half"},
    ),
    *each(
        "fourth_root",
        "Your scores are divided by the fourth root of d_k: either the root is taken twice, or only one of query "
        f"and key gets its fourth root. {ROOT}.",
        {"scale": "fourth_root"},
    ),
    *each(
        "scaled_three_times",
        f"Your scores are divided by d_k * sqrt(d_k): you scale more than once. {ROOT}, once.",
        {"scale": "thrice"},
    ),
    *each("divided_by_square", f"Your scores are divided by d_k squared. {ROOT}.", {"scale": "square"}),
    *each(
        "scaled_by_two_widths",
        f"Your scores are divided by sqrt(2 * d_k): the width is counted twice. {ROOT}.",
        {"scale": "twice_d_k"},
    ),
    *each(
        "root_rounded_down",
        "You round sqrt(d_k) down to a whole number, which is right only where d_k is a square (int, // or isqrt). "
        "Divide by the root itself: / math.sqrt(d_k).",
        {"scale": "root_rounded_down"},
    ),
    *each(
        "scores_rounded_down",
        "Your scores are rounded down to whole numbers: // throws the rest away, / keeps it.",
        {"scale": "rounded"},
    ),
    *each(
        "scaled_after_softmax",
        "You divide by sqrt(d_k) after the softmax, so the weights sum to 1 / sqrt(d_k) instead of 1. It is the "
        "scores that are scaled, before the softmax.",
        {"scale": "after_softmax"},
    ),
    *each(
        "changes_query",
        "The caller's query is changed: an operation in place works on it (query /= ...), so a second call with the "
        "same query gives something else. Write query = query / ..., which makes a new tensor.",
        {"scale": "query_in_place"},
    ),
    *each(
        "changes_key",
        "The caller's key is changed: an operation in place works on it (key /= ...), so a second call with the "
        "same key gives something else. Write key = key / ..., which makes a new tensor.",
        {"scale": "key_in_place"},
    ),
)

PRODUCTS = (
    *each(
        "query_and_key_exchanged",
        "Your scores are transposed: they are key @ query^T, with a row for each key. With as many queries as keys "
        "the shapes fit and only the numbers are mirrored; otherwise they break. A row belongs to a query: query @ "
        "key^T.",
        {"product": "swapped"},
        {"product": "swapped", "weighting": "values_einsum"},
    ),
    *each(
        "view_instead_of_transpose",
        "In your scores the key's numbers are scrambled, though the shape is right: view and reshape read the "
        "memory in the same order as before and only cut it differently. To exchange two axes use key.transpose(-2, "
        "-1).",
        {"product": "view"},
    ),
    *each(
        "key_unused",
        "Your scores compare the query with itself, query @ query^T: the key does not enter.",
        {"product": "query_query"},
    ),
    *each(
        "query_unused",
        "Your scores compare the key with itself, key @ key^T: the query does not enter.",
        {"product": "key_key"},
    ),
    *each(
        "value_as_key",
        "Your scores compare the query with the value: it is the key that a query is compared with. The value is "
        "what is averaged afterwards.",
        {"product": "query_value"},
    ),
    *each(
        "scores_of_values",
        "Your scores compare the value with itself. A score is the dot product of a query and a key.",
        {"product": "value_value"},
    ),
    *each(
        "not_transposed",
        "You multiply query @ key without transposing: that fits only where there are as many keys as d_k, and "
        "means nothing even then. Every query meets every key in query @ key.transpose(-2, -1).",
        {"product": "not_transposed"},
    ),
    *each(
        "all_axes_reversed",
        "The property key.T reverses the order of all four axes, batch and heads too. Exchange only the last two: "
        "key.transpose(-2, -1), or key.mT.",
        {"product": "all_axes_reversed"},
    ),
    *each(
        "wrong_axes_transposed",
        "You exchange the axes of heads and keys. Exchange the last two: key.transpose(-2, -1).",
        {"product": "heads_transposed"},
    ),
    *each(
        "equal_weights",
        "All allowed keys of a query get the same weight: what query and key say does not enter.",
        {"product": "none"},
    ),
    *each(
        "cosine",
        "Your scores compare directions only: query and key are divided by their lengths first (cosine similarity). "
        "The scores are plain dot products, over sqrt(d_k).",
        {"product": "cosine"},
        {"product": "cosine", "scale": "none"},
    ),
    *each(
        "heads_added_up",
        "Your scores are added up over the heads, so that all heads share one set of weights. Each head has its own.",
        {"product": "heads_summed"},
        {"product": "heads_summed_expanded"},
    ),
)

# Ways of forbidding a score. None of them matters beside a mistake that makes each of them look different.
FEW_HABITS = switch("fill", "uniform", "nan", "minus_1e9", "minus_1e9_zeroed", "minus_1e4", "subtracted_1e4")
HABITS = FEW_HABITS + switch("fill", "zeroed", "subtracted_1e9")


def _with_habits(
    name: str, sentence: str, switch: dict[str, str], habits: Sequence[dict[str, str]] = HABITS
) -> tuple[Mistake, ...]:
    """A mistake that looks different for each way of forbidding a score."""
    return each(name, sentence, switch, *(switch | habit for habit in habits))


UNSTABLE = (
    "Your softmax holds for small scores only: exp of a score of 89 is inf in float32, and inf / inf is nan; "
    "where all scores of a row are very low, every exp is 0."
)
SUBTRACT = "Subtract the row's largest score first (amax gives it; argmax gives only its place), or use torch.softmax"
EMPTY = "a row with nothing to attend to"

SOFTMAXES = (
    *_with_habits(
        "softmax_over_queries",
        "Your softmax runs over the queries: down each column the weights of all queries sum to 1, along a row they "
        f"do not (with a single query every weight is 1). {ROWS}.",
        {"softmax": "queries"},
    ),
    *_with_habits(
        "softmax_over_heads",
        "Your softmax runs over the heads: for each query and key the weights of all heads sum to 1 (that is also "
        f"what F.softmax does without dim on four axes). {ROWS}.",
        {"softmax": "heads"},
        HABITS[:-1],
    ),
    *each(
        "softmax_over_heads",
        "Your softmax runs over the heads, and the mask acts after it: without a mask, the weights of all heads sum to "
        f"1 for each query and key. {ROWS}, with forbidden scores at -inf before it.",
        {"softmax": "heads", "fill": "after"},
    ),
    *each(
        "softmax_over_batch",
        "Your softmax runs over the batch, so that the sequences compete with each other, and the mask acts after it. "
        f"{ROWS}, with forbidden scores at -inf before it.",
        {"softmax": "batch", "fill": "after"},
    ),
    *_with_habits(
        "softmax_over_everything",
        "Your softmax runs over queries and keys together: all weights of one head sum to 1, instead of those of "
        f"each row. {ROWS}.",
        {"softmax": "matrix"},
        switch("fill", "zeroed", "minus_1e9", "minus_1e4"),
    ),
    *_with_habits(
        "softmax_over_everything",
        f"Your softmax runs over the whole tensor: all weights of all sequences and heads together sum to 1. {ROWS}.",
        {"softmax": "everything"},
        switch("fill", "zeroed", "minus_1e9", "minus_1e4"),
    ),
    *_with_habits(
        "softmax_over_batch",
        f"Your softmax runs over the batch, so that the sequences compete with each other. {ROWS}.",
        {"softmax": "batch"},
        HABITS[:-1],
    ),
    *_with_habits(
        "softmax_over_heads_and_keys",
        f"Your softmax runs over heads and keys together: for each query the weights of all heads sum to 1. {ROWS}.",
        {"softmax": "heads_and_keys"},
        FEW_HABITS[:4],
    ),
    *_with_habits(
        "no_softmax",
        "You use the scores themselves as weights: they are negative in places and their rows do not sum to 1. The "
        "softmax is missing.",
        {"softmax": "none"},
    ),
    *_with_habits(
        "log_softmax",
        "Your weights are logarithms (log_softmax): none is positive, and it is their exponentials that sum to 1. "
        "Use softmax.",
        {"softmax": "log"},
    ),
    *each(
        "sigmoid",
        "Your weights come from a sigmoid, each by itself, so their rows do not sum to 1. The softmax divides "
        "exp(score) by the row's sum.",
        {"softmax": "sigmoid"},
    ),
    *each(
        "not_normalised",
        "Your weights are the exponentials of the scores: they still have to be divided by the sum of their row.",
        {"softmax": "exponential"},
    ),
    *each(
        "not_normalised",
        "Your weights are exp(score - largest score of the row): they still have to be divided by the sum of their "
        "row.",
        {"softmax": "exponential_shifted"},
    ),
    *_with_habits(
        "no_exponential",
        "You divide the scores themselves by the sum of their row: the exponential is missing, which makes every "
        "weight positive.",
        {"softmax": "linear"},
        FEW_HABITS,
    ),
    *_with_habits(
        "minus_sign",
        "Your largest weight belongs to the smallest score: the sign of the scores is exchanged somewhere.",
        {"softmax": "minus_sign"},
        FEW_HABITS,
    ),
    *each(
        "hard_maximum",
        "Each query gives all its weight to the one key with the largest score. The softmax is soft: every allowed "
        "key keeps a share.",
        {"softmax": "hard"},
    ),
    *_with_habits(
        "softmax_twice",
        "You apply the softmax twice: the weights come out much too flat, and the second time a forbidden key counts "
        "with exp(0).",
        {"softmax": "twice"},
        FEW_HABITS[:4] + switch("fill", "zeroed"),
    ),
    *_with_habits(
        "softmax_twice",
        "You apply the softmax over the queries, and then over the keys. Only the keys: dim=-1, once.",
        {"softmax": "queries_then_keys"},
        FEW_HABITS,
    ),
    *each(
        "cut_at_zero",
        "You cut off negative scores (relu) and divide by the sum of the row. The softmax uses exp, which keeps a "
        "share for every allowed key.",
        *switch("softmax", "relu", "relu_epsilon"),
    ),
    *each(
        "no_keepdim",
        "The row sums that you divide by have one axis less than the weights, so they line up with the wrong axis: "
        "an error, or silently wrong numbers where sizes are equal. keepdim=True keeps the axis with size 1.",
        *switch("softmax", "no_keepdim", "no_keepdim_naive"),
    ),
    *each(
        "divided_by_number_of_keys",
        "You divide the weights by the number of keys after the softmax, which has already made them sum to 1.",
        {"softmax": "divided_by_keys"},
    ),
    *_with_habits(
        "divided_by_length",
        "You divide each row of scores by its Euclidean length (F.normalize) instead of applying the softmax.",
        {"softmax": "length"},
        FEW_HABITS,
    ),
    *each(
        "unstable_softmax",
        f"{UNSTABLE} {SUBTRACT}.",
        {"softmax": "naive"},
        {"softmax": "naive", "fill": "zeroed"},
        {"softmax": "naive_epsilon"},
        {"softmax": "naive_times_mask_epsilon", "fill": "ignored"},
        edge=True,
    ),
    *each(
        "unstable_softmax",
        f"{UNSTABLE} {SUBTRACT}. In {EMPTY} nothing is left of "
        "the sum either: there too 0 / 0 is nan, and the weights must be 0.",
        {"softmax": "naive_times_mask", "fill": "ignored"},
        edge=True,
    ),
    *each(
        "overflow_hidden",
        "Your softmax holds for small scores only: with large ones exp is inf, and with very low ones every exp of a "
        "row is 0. The nan that comes of it (inf / inf, 0 / 0) is replaced by 0 (nan_to_num), which hides the error "
        f"and leaves allowed keys without weight. {SUBTRACT}.",
        {"softmax": "naive_hidden"},
        {"softmax": "naive_hidden", "fill": "nan"},
        {"softmax": "naive_hidden", "fill": "zeroed"},
        edge=True,
    ),
    *each(
        "shifted_by_everything",
        "In your softmax you subtract the largest score of the whole tensor. A row whose scores all lie far below "
        "it becomes 0 everywhere. Subtract the largest score of each row: amax(-1, keepdim=True).",
        *switch("softmax", "shifted_by_everything", "shifted_by_everything_epsilon"),
        edge=True,
    ),
)

INVERTED = (
    "Your mask is inverted: you attend exactly where it says False. True means may attend, here and in "
    "F.scaled_dot_product_attention (in torch.nn.MultiheadAttention True means blocked), and masked_fill fills "
    "where its mask is True, so it needs ~mask."
)

READINGS = (
    *_with_habits("mask_inverted", INVERTED, {"reading": "inverted"}, FEW_HABITS),
    *_with_habits(
        "mask_transposed",
        "Your mask is transposed: its queries lie along the keys. Its last axis belongs to the keys, as that of the "
        "scores, so it needs no transpose.",
        {"reading": "transposed"},
        FEW_HABITS[:2],
    ),
    *_with_habits(
        "causal_always",
        "You forbid the future in addition to what the mask forbids, also when there is no mask. Causality is not a "
        "part of attention: whoever wants it passes a causal mask.",
        {"order": "causal"},
        FEW_HABITS[:4],
    ),
    *each(
        "causal_always",
        "You always forbid the future and never look at the mask. Causality is not a part of attention: whoever "
        "wants it passes a causal mask.",
        {"order": "causal", "reading": "everything"},
    ),
    *each(
        "causal_always",
        "You forbid the future in addition to what the mask forbids, also when there is no mask (counted from the "
        "last query and the last key). Causality is not a part of attention: whoever wants it passes a causal mask.",
        {"order": "causal_at_the_end"},
        {"order": "causal_at_the_end", "reading": "everything"},
    ),
    *each(
        "last_key_left_out",
        "The last key never gets any weight: does a loop or a slice end one too early?",
        {"order": "without_last"},
    ),
    *each(
        "first_key_left_out",
        "The first key never gets any weight: does a loop or a slice begin one too late?",
        {"order": "without_first"},
    ),
    *_with_habits(
        "self_forbidden",
        "No query may attend to the key at its own position: the diagonal is forbidden in addition to what the mask "
        "says.",
        {"order": "others"},
        FEW_HABITS[:4],
    ),
    *_with_habits(
        "past_only",
        "You forbid the present and the future in addition to what the mask forbids, also when there is no mask. "
        "Whoever wants causality passes a causal mask.",
        {"order": "past"},
        FEW_HABITS[:4],
    ),
    *each(
        "mask_of_first_sequence",
        "You use only the first entry of the mask's first axis (mask[0]): with masks of several sequences all get "
        "that of the first, and with a (query, key) mask all queries get the row of the first. Use the whole mask: "
        "it broadcasts.",
        {"reading": "first_sequence"},
    ),
    *each(
        "mask_of_first_sequence",
        "Every sequence of the batch gets the mask of the first one.",
        {"reading": "first_sequence_expanded"},
    ),
    *each(
        "mask_of_last_sequence",
        "Every sequence of the batch gets the mask of the last one.",
        {"reading": "last_sequence"},
    ),
    *each(
        "mask_of_first_head",
        "Every head gets the mask of the first one: a mask may be different for each head.",
        {"reading": "first_head"},
    ),
    *each(
        "mask_of_first_query",
        "Every query gets the mask row of the first one. That does for padding, but a causal mask has a row for "
        "each query.",
        {"reading": "first_query"},
    ),
    *each(
        "mask_of_last_query",
        "Every query gets the mask row of the last one. That does for padding, but a causal mask has a row for each "
        "query.",
        {"reading": "last_query"},
    ),
    *each(
        "mask_joined_over_queries",
        "A key is forbidden to a query only where it is forbidden to all of them. That does for padding, but a "
        "causal mask has a row for each query.",
        {"reading": "any_query"},
    ),
    *_with_habits(
        "mask_joined_over_queries",
        "A key is forbidden to every query as soon as it is forbidden to one of them. Each query has its own row of "
        "the mask.",
        {"reading": "all_queries"},
        FEW_HABITS[:4],
    ),
    *each(
        "mask_gets_new_axis",
        "You give the mask a new axis (unsqueeze or None) in second place, so that it lines up with the wrong axes "
        "of the scores. It already broadcasts to (batch, heads, query, key): use it as it comes.",
        {"reading": "new_axis_1"},
    ),
    *each(
        "mask_gets_new_axis",
        "You give the mask a new axis in front (unsqueeze(0) or mask[None]), so that with a mask of four axes "
        "everything has five. It already broadcasts to (batch, heads, query, key): use it as it comes.",
        {"reading": "new_axis_0"},
    ),
    *each(
        "mask_ignored_by_axes",
        "A mask of shape (query, key) has no effect, one with four axes has. Every mask that broadcasts to (batch, "
        "heads, query, key) counts.",
        {"reading": "four_axes_only"},
    ),
    *each(
        "mask_ignored_by_axes",
        "A mask with four axes has no effect, one of shape (query, key) has. Every mask that broadcasts to (batch, "
        "heads, query, key) counts.",
        {"reading": "two_axes_only"},
    ),
    *each(
        "mask_as_condition",
        "The line `if mask:` asks whether a whole tensor is true, which torch refuses. What you want to know is "
        "whether there is a mask at all: `if mask is not None:` asks that.",
        {"reading": "condition"},
    ),
    *each(
        "one_minus_mask",
        "The expression 1 - mask is not allowed for a bool tensor: ~mask is its opposite.",
        {"reading": "minus"},
    ),
    *each(
        "minus_mask",
        "The expression -mask is not allowed for a bool tensor: ~mask is its opposite.",
        {"reading": "negative"},
    ),
    *each(
        "changes_mask",
        "The caller's mask is changed: an operation in place works on it (logical_not_ or mask[...] = ...), so the "
        "next call gets another mask. Write ~mask, which makes a new one.",
        {"reading": "in_place"},
    ),
    *each(
        "mask_none_raises",
        "Without a mask (mask=None) it raises an error: nothing may be done with the mask outside of `if mask is "
        "not None:`.",
        *switch("none", "type", "attribute"),
    ),
)

NOTHING_ALLOWED = (
    f"{EMPTY.capitalize()} must get weights 0 and output 0. Find those rows with mask.any(-1, keepdim=True)"
)

HALF_RAISES = (
    "Inputs in float16 raise an error: some tensor has its dtype fixed (torch.zeros, torch.tensor and .float() give "
    "float32, and a float32 tensor turns what is added to it into float32), so two dtypes meet in one product. "
    "Create tensors with dtype=query.dtype, or bring all to one dtype."
)
LEFT_OVER = (
    "You remove forbidden keys after the exponentials (or after the softmax) and divide by what is left. Where a "
    "forbidden key has by far the largest score, nothing is left: all allowed exponentials are 0. Mask the scores "
    "first, with -inf, so that the maximum is that of the allowed ones"
)

FILL_MISTAKES = (
    *each(
        "mask_ignored",
        "The mask has no effect: forbidden keys get weight as if there were none. Either it is not used at all, or "
        "the result of masked_fill is thrown away (it returns a new tensor: scores = scores.masked_fill(...)), or "
        "what is added to forbidden scores is next to nothing (-1e-9).",
        {"fill": "ignored"},
    ),
    *each(
        "score_zero",
        "Forbidden keys get the score 0 (the mask is multiplied into the scores, or they are filled with 0 or with "
        "a tiny number such as -1e-9), and 0 is a score like any other: exp(0) = 1, so they keep their weight. A "
        "forbidden score must be very negative: -inf.",
        {"fill": "zero"},
    ),
    *each(
        "score_one",
        "Forbidden keys get the score 1, which is a score like any other. A forbidden score must be very negative: "
        "-inf.",
        {"fill": "one"},
    ),
    *each(
        "score_minus_one",
        "Forbidden keys get the score -1, which is a score like any other: exp(-1) is not 0. A forbidden score must "
        "be very negative: -inf.",
        {"fill": "minus_one"},
    ),
    *each(
        "mask_added",
        "The mask itself is added to the scores, as 1 where it is True and 0 where it is False (or subtracted, the "
        "other way round): that forbids nothing. Only an additive mask, 0 and -inf, is added; a bool mask goes "
        "through masked_fill.",
        {"fill": "added"},
    ),
    *each(
        "forbidden_preferred",
        "The weight goes to the forbidden keys: a large positive number is filled in for their scores, or added to "
        "them. The minus is missing.",
        *switch("fill", "plus_1e9", "forbidden_raised"),
    ),
    *each(
        "forbidden_infinite",
        "Every row with a forbidden key comes out as nan, as it does where forbidden scores are filled with inf (the "
        "minus is missing) or with nan, or where your own softmax subtracts an infinity (the absolute value of -inf "
        "is inf). Fill them with -inf, and subtract no more than the row's largest score.",
        {"fill": "plus_infinity"},
    ),
    *each(
        "allowed_raised",
        "Among the allowed keys all weights are equal: a huge number is added to their scores, and beside it their "
        "differences are rounded away. Leave allowed scores as they are and fill the forbidden ones with -inf.",
        {"fill": "added_1e9"},
    ),
    *each(
        "zero_times_infinity",
        "With a mask everything becomes nan, as it does where the mask is multiplied by infinity (0 * inf is nan), or "
        "where an infinity from another row is subtracted. Use masked_fill or torch.where, which choose instead of "
        "multiplying, and subtract only the row's own largest score.",
        {"fill": "subtracted_infinity"},
    ),
    *each(
        "multiplied_by_large_number",
        "You multiply forbidden scores by a large negative number: where the score is negative, that makes it large "
        "and positive. Replace it (masked_fill with -inf) instead.",
        {"fill": "multiplied_by_1e9"},
    ),
    *each(
        "mask_after_softmax",
        "You set the weights of forbidden keys to 0 after the softmax: what they lose goes to no other key, and "
        "with a mask the weights no longer sum to 1. Mask the scores, before the softmax: fill them with -inf.",
        {"fill": "after"},
    ),
    *each(
        "mask_after_softmax",
        "The mask acts on the output only: the weights that you return ignore it, and those behind your output lose "
        "what the forbidden keys had. Mask the scores, before the softmax: fill them with -inf.",
        {"fill": "after_output_only"},
    ),
    *each(
        "mask_not_in_output",
        "You mask the weights that you return, after the softmax, and your output is made of unmasked ones. Mask "
        "the scores, before the softmax, and use the same weights for both.",
        {"fill": "after_weights_only"},
    ),
    *each(
        "values_masked",
        "You set the values of forbidden keys to 0, but their weight stays: the others get less than they should. "
        "Mask the scores, before the softmax: fill them with -inf.",
        {"fill": "values"},
    ),
    *each(
        "values_masked",
        "You set the keys and values of forbidden positions to 0. A key of zeros still has a score, 0, and takes "
        "weight from the others. Mask the scores, before the softmax: fill them with -inf.",
        {"fill": "keys_and_values"},
    ),
    *each(
        "softmax_again_after_mask",
        "You multiply the weights by the mask and apply the softmax again: exp(0) = 1, so forbidden keys get weight "
        "again. Mask the scores, before the one softmax: fill them with -inf.",
        {"fill": "renormalised_softmax"},
    ),
    *each(
        "mask_as_index",
        "Indexing, scores[~mask], needs a mask of exactly the scores' shape, and a mask may come smaller, to be "
        "broadcast: (query, key) or (batch, 1, 1, key). masked_fill and torch.where broadcast it.",
        {"fill": "indexed"},
    ),
    # From here on: what shows in edge cases only.
    *each(
        "empty_row_nan",
        f"In {EMPTY} every exp is 0, and the weights come out as nan (0 / 0). {NOTHING_ALLOWED}: give them "
        "finite scores before the softmax, so that the gradient stays finite too, and weights 0 after it.",
        {"fill": "nan"},
        edge=True,
    ),
    *each(
        "empty_row_uniform",
        f"In {EMPTY} all weights are equal, as they are where the same large negative number stands in every place, "
        "so that it averages what it must not see. Such a row must get weights 0 and output 0: set the weights of "
        "forbidden keys to 0 after the softmax as well.",
        {"fill": "uniform"},
        edge=True,
    ),
    *each(
        "fill_too_large_for_half",
        "The number that you fill with does not exist in float16, which ends at -65504 (-1e9 lies beyond): that "
        f"raises an error there. Use -inf or torch.finfo(scores.dtype).min. And {EMPTY} does not get weights 0 from "
        "it: set the weights of forbidden keys to 0 after the softmax as well.",
        {"fill": "minus_1e9"},
        edge=True,
    ),
    *each(
        "fill_too_large_for_half",
        "The number that you fill with does not exist in float16, which ends at -65504 (-1e9 lies beyond): that "
        "raises an error there. Use -inf or torch.finfo(scores.dtype).min.",
        {"fill": "minus_1e9_zeroed"},
        edge=True,
    ),
    *each("half_precision_raises", HALF_RAISES, {"dtype": "float32"}, edge=True),
    *each(
        "nan_removed_too_late",
        f"{EMPTY.capitalize()} makes the gradient nan: the nan in its weights is replaced after the softmax, but "
        "backwards it passes through the softmax all the same (0 * nan is nan). Prevent it: give empty rows a "
        "finite score before the softmax, and set their weights to 0 after it.",
        {"fill": "late"},
        edge=True,
    ),
    *each(
        "nan_removed_too_late",
        f"In {EMPTY} you mend the output, but the weights are nan, and so is the gradient. Prevent the nan: give "
        "empty rows a finite score before the softmax, and set their weights to 0 after it.",
        {"fill": "late_output"},
        edge=True,
    ),
    *each(
        "empty_row_uniform",
        f"In {EMPTY} your output is 0, but the weights are all equal. Set the weights to 0; the output follows.",
        {"fill": "uniform_output_zero"},
        edge=True,
    ),
    *each(
        "empty_row_unmasked",
        f"In {EMPTY} your attention does as if nothing were forbidden: either such a row is left unmasked, or what "
        "you add to forbidden scores is a modest number such as -1e4, which changes nothing where it is added to "
        f"all of them. {NOTHING_ALLOWED}.",
        *switch("fill", "empty_rows_unmasked", "subtracted_1e4"),
        edge=True,
    ),
    *each(
        "fill_not_low_enough",
        "The number that you fill forbidden scores with is not low enough: where allowed scores lie below it, the "
        f"weight goes to the forbidden keys. Use -inf, which lies below every score. And {EMPTY} must get weights 0.",
        {"fill": "minus_1e4"},
        edge=True,
    ),
    *each(
        "fill_not_low_enough",
        "The number that you fill forbidden scores with is not low enough: where allowed scores lie below it, the "
        "weight goes to the forbidden keys. Use -inf, which lies below every score.",
        {"fill": "minus_1e4_zeroed"},
        edge=True,
    ),
    *each(
        "forbidden_in_the_maximum",
        f"{LEFT_OVER}. Likewise in {EMPTY}: 0 / 0 is nan, where weights 0 are wanted.",
        {"fill": "renormalised"},
        edge=True,
    ),
    *each(
        "forbidden_in_the_maximum",
        f"{LEFT_OVER}.",
        *switch("fill", "renormalised_epsilon", "renormalised_late"),
        edge=True,
    ),
)

# After the mistakes above, some of which look the same where edge cases are left out.
MISREADINGS = (
    *_with_habits(
        "rows_masked_whole",
        "A query that may not attend to some key may attend to none: its row is treated as a whole. A row is empty "
        "only where all of its keys are forbidden, which is ~mask.any(-1, keepdim=True), and not ~mask.all(...) or "
        "(~mask).any(...); single keys are forbidden by the mask itself.",
        {"reading": "whole_rows"},
        FEW_HABITS[:4],
    ),
    *_with_habits(
        "rows_masked_whole",
        "Only rows with nothing to attend to are masked: that is what mask.any(-1, keepdim=True) tells. Single keys "
        "are forbidden by the mask itself: fill the scores with -inf where ~mask.",
        {"reading": "empty_rows"},
        FEW_HABITS[:4],
    ),
    *each(
        "mask_inverted_once",
        "The mask is read in opposite ways before and after the softmax: what the one leaves, the other removes, so "
        "that rows are left without any weight. True means may attend, and masked_fill fills where its mask is "
        "True: it needs ~mask both times.",
        {"fill": "zeroed_elsewhere"},
        {"fill": "nan_zeroed_elsewhere"},
        {"fill": "zeroed_elsewhere", "reading": "inverted"},
        {"fill": "nan_zeroed_elsewhere", "reading": "inverted"},
    ),
)

WEIGHTINGS = (
    *each(
        "weights_transposed",
        "Your output uses the columns of the weights: row i of the output must be made with row i of the weights, "
        "weights @ value, not weights^T @ value (which breaks where the numbers of queries and keys differ).",
        {"weighting": "columns"},
        {"weighting": "columns_einsum"},
    ),
    *each(
        "keys_averaged",
        "Your output is an average of the keys: average the values, weights @ value.",
        {"weighting": "keys"},
    ),
    *each(
        "queries_averaged",
        "Your output is an average of the queries: average the values, weights @ value.",
        {"weighting": "queries"},
    ),
    *_with_habits(
        "scores_averaged",
        "Your output is made with the scores: weights @ value, not scores @ value.",
        {"weighting": "scores"},
        HABITS[:-1],
    ),
    *each(
        "value_returned",
        "Your output is the value as it came: it still has to be averaged, weights @ value.",
        {"weighting": "value_itself"},
    ),
    *each(
        "plain_average",
        "Your output is the plain average of all values: the weights are not used.",
        {"weighting": "mean"},
    ),
    *each(
        "unweighted_sum",
        "Your output is the sum of all values: the weights are not used.",
        {"weighting": "sum"},
    ),
    *each(
        "output_scaled",
        "Your output is divided by sqrt(d_k) after the average: an average of values needs no scaling.",
        {"weighting": "scaled"},
    ),
    *each(
        "output_scaled",
        "Your output is multiplied by sqrt(d_k): an average of values needs no scaling.",
        {"weighting": "scaled_values"},
    ),
    *each(
        "output_divided_by_keys",
        "Your output is divided by the number of keys: the weights make an average of it already, nothing is left "
        "to divide by.",
        {"weighting": "divided_by_keys"},
    ),
    *each(
        "residual_added",
        "Your output has the query added to it. The residual connection comes later, in the layer: here the output "
        "is the average alone.",
        {"weighting": "residual"},
    ),
    *each(
        "value_scrambled",
        "The numbers of the value are scrambled before they are averaged: view and reshape do not "
        "exchange axes, and none need be exchanged: weights @ value.",
        {"weighting": "value_view"},
    ),
    *each(
        "strongest_only",
        "Your output is the one value with the largest weight: take the average of all of them, weights @ value.",
        {"weighting": "strongest"},
        {"weighting": "strongest", "fill": "nan"},
        {"weighting": "strongest", "fill": "uniform"},
    ),
    *each(
        "softmax_again_in_output",
        "Your output is made with the softmax of the weights, one softmax too many: use the weights as they are.",
        {"weighting": "softmax_again"},
    ),
    *each(
        "value_first",
        "The order of the last product is exchanged: weights @ value takes the average, value @ weights does not "
        "even fit unless sizes happen to be equal.",
        {"weighting": "value_first"},
    ),
    *each(
        "entry_by_entry",
        "You multiply weights and value entry by entry (*): the average is a matrix product, weights @ value.",
        {"weighting": "entry_by_entry"},
    ),
    *each(
        "heads_averaged",
        "Your output is made with the average of the weights of all heads: each head uses its own.",
        {"weighting": "heads_averaged"},
    ),
    *each(
        "weights_twice_applied",
        "You apply the weights twice: the output is weights @ value, once.",
        {"weighting": "squared"},
    ),
    *each(
        "weights_detached",
        "Query and key get no gradient: the weights are cut off from them (detach, .data, .item() or float(), "
        "no_grad), so attention could never learn where to look.",
        {"weighting": "detached"},
        edge=True,
    ),
)

BOTH = "Return both, first the output, then the weights"

FORMS = (
    *each(
        "results_exchanged",
        "You return (weights, output). The order is (output, weights).",
        {"form": "exchanged"},
    ),
    *each("output_alone", f"You return the output alone. {BOTH}.", {"form": "output_only"}),
    *each("weights_alone", f"You return the weights alone. {BOTH}.", {"form": "weights_only"}),
    *each("weights_missing", f"You return None in place of the weights. {BOTH}.", {"form": "weights_missing"}),
    *each("output_twice", f"You return the output twice. {BOTH}.", {"form": "output_twice"}),
    *each("weights_twice", f"You return the weights twice. {BOTH}.", {"form": "weights_twice"}),
    *_with_habits(
        "scores_returned",
        "In place of the weights you return the scores, before the softmax.",
        {"form": "scores"},
        HABITS[:-1],
    ),
    *each(
        "scores_returned",
        "In place of the weights you return the bare dot products.",
        {"form": "plain_scores"},
    ),
    *_with_habits(
        "weights_without_mask",
        "The weights that you return were computed without the mask: forbidden keys have weight in them, though not in "
        "your output. Return the weights that the output is made with.",
        {"form": "unmasked_weights"},
        FEW_HABITS[:4],
    ),
    *each(
        "logarithms_returned",
        "In place of the weights you return their logarithms.",
        {"form": "log_weights"},
    ),
    *each(
        "weights_averaged_over_heads",
        "The weights that you return are averaged over the heads (as torch.nn.MultiheadAttention "
        "does). Return them per head: (batch, heads, query, key).",
        {"form": "weights_averaged_over_heads"},
    ),
    *each(
        "weights_summed_over_heads",
        "The weights that you return are added up over the heads. Return them per head: (batch, heads, query, key).",
        {"form": "weights_summed_over_heads"},
    ),
    *each(
        "weights_of_first_head",
        "You return the weights of the first head alone. Return them all: (batch, heads, query, key).",
        {"form": "weights_of_first_head"},
    ),
    *each(
        "weights_returned_transposed",
        "The weights that you return are transposed: their rows belong to queries, their columns to keys.",
        {"form": "weights_transposed"},
    ),
    *each(
        "output_transposed",
        "The last two axes of your output are exchanged: it is (batch, heads, query, d_v).",
        {"form": "output_transposed"},
    ),
    *each(
        "heads_behind_queries",
        "Your output has the axes (batch, query, heads, d_v). Merging the heads comes later: here it stays (batch, "
        "heads, query, d_v).",
        {"form": "heads_behind"},
    ),
    *each(
        "heads_merged",
        "Your output has the heads merged already, (batch, query, heads * d_v). That comes later: here it stays "
        "(batch, heads, query, d_v).",
        {"form": "merged"},
        {"form": "merged_without_transpose"},
    ),
    *each(
        "output_averaged_over_heads",
        "Your output is averaged over the heads: it keeps one row per head and query, (batch, heads, query, d_v).",
        {"form": "output_averaged_over_heads"},
    ),
    *each(
        "output_summed_over_heads",
        "Your output is added up over the heads: it keeps one row per head and query, (batch, heads, query, d_v).",
        {"form": "output_summed_over_heads"},
    ),
    *each(
        "output_summed_over_queries",
        "Your output is added up over the queries: each query keeps a row of its own, (batch, heads, query, d_v).",
        {"form": "output_summed"},
    ),
    *each(
        "squeezed",
        "A squeeze() has removed every axis of size 1 from what you return. Axes of size 1 stay: (batch, heads, "
        "query, d_v) also where batch or heads is 1.",
        {"form": "squeezed"},
    ),
    *each(
        "first_sequence_alone",
        "You return the first sequence of the batch alone, without its batch axis: all of them are asked for, "
        "(batch, heads, query, d_v).",
        {"form": "first_sequence"},
    ),
    *each(
        "first_head_alone",
        "You return the first head alone, without the axis of the heads: all of them are asked for, (batch, heads, "
        "query, d_v).",
        {"form": "first_head"},
    ),
    *each(
        "dictionary",
        f"You return a dictionary. {BOTH}, as a pair: return output, weights.",
        {"form": "dictionary"},
    ),
    *_with_habits(
        "three_returned",
        f"You return the scores as well. {BOTH}, and nothing else.",
        {"form": "three"},
        FEW_HABITS[:4],
    ),
)

MISTAKES = tuple(
    replace(mistake, rare=mistake.name in SELDOM)
    for mistake in (*SCALES, *PRODUCTS, *READINGS, *FILL_MISTAKES, *MISREADINGS, *SOFTMAXES, *WEIGHTINGS, *FORMS)
)
