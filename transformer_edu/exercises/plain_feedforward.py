"""The exercise feed_forward of lesson 04: one wrong implementation with switches, its mistakes, and the probes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import feedforward
from .attention_probes import numbers
from .exercise import Exercise, Mistake, Probe, Result, Symptom, each
from .feedforward_parts import BY_ITSELF, ENDS, ended, form_mistakes, formed, probes, tokens
from .feedforward_symptoms import (
    AXES,
    ENDINGS,
    OPENINGS,
    linear,
    off_by_a_constant,
    outcomes,
    tensors,
)
from .outcome import close
from .symptoms import Seen

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "none": lambda h: h,
    "gelu": F.gelu,
    "gelu_tanh": lambda h: F.gelu(h, approximate="tanh"),
    "quick_gelu": lambda h: h * (1.702 * h).sigmoid(),
    "silu": F.silu,
    "sigmoid": F.sigmoid,
    "tanh": F.tanh,
    "leaky": F.leaky_relu,
    "elu": F.elu,
    "selu": F.selu,
    "softplus": F.softplus,
    "mish": F.mish,
    "relu6": F.relu6,
    "squared": lambda h: F.relu(h) ** 2,
    "absolute": lambda h: h.abs(),
    "negative_part": lambda h: h.clamp(max=0.0),
    "negated": lambda h: F.relu(-h),
    "step": lambda h: (h > 0).to(h.dtype),
    "cut_at_one": lambda h: h.clamp(0.0, 1.0),
    "at_least_one": lambda h: h.clamp(min=1.0),
    "softmax": lambda h: h.softmax(-1),
    "softmax_of_tokens": lambda h: h.softmax(-2),
    "log_softmax": lambda h: h.log_softmax(-1),
    "normalised": lambda h: F.relu(F.layer_norm(h, h.shape[-1:])),
    "normalised_after": lambda h: F.layer_norm(F.relu(h), h.shape[-1:]),
    "softmax_of_relu": lambda h: F.relu(h).softmax(-1),
    "minus_relu": lambda h: -F.relu(h),
    "twice_linear": lambda h: h + F.relu(h),
    "twice_relu": lambda h: 2 * F.relu(h),
}


def _over_time(bias: Tensor) -> Tensor:
    return bias[:, None]


def _start(x: Tensor, start: str) -> Tensor:
    return {
        "right": lambda: x,
        "relu": lambda: F.relu(x),
        "norm": lambda: F.layer_norm(x, x.shape[-1:]),
        "scaled": lambda: x * x.shape[-1] ** 0.5,
        "mean": lambda: x.mean(-2, keepdim=True).expand_as(x),
        "cumulative": lambda: x.cumsum(-2),
    }[start]()


def _matrices(w1: Tensor, w2: Tensor, weights: str) -> tuple[Tensor, Tensor]:
    return {
        "right": lambda: (w1, w2),
        "transposed": lambda: (w1.T, w2.T),
        "first_transposed": lambda: (w1.T, w2),
        "second_transposed": lambda: (w1, w2.T),
        "exchanged": lambda: (w2, w1),
        "exchanged_transposed": lambda: (w2.T, w1.T),
        "tied": lambda: (w1, w1.T),
        "tied_second": lambda: (w2.T, w2),
    }[weights]()


def _first_layer(x: Tensor, w1: Tensor, b1: Tensor, bias1: str, act: Callable[[Tensor], Tensor]) -> Tensor:
    h = x @ w1 if bias1 != "product_from_left" else w1 @ x
    return {
        "product_from_left": lambda: act(h + b1),
        "inside": lambda: act(h + b1),
        "none": lambda: act(h),
        "after": lambda: act(h) + b1,
        "minus": lambda: act(h - b1),
        "twice": lambda: act(h + b1) + b1,
        "twice_inside": lambda: act(h + 2 * b1),
        "between_two": lambda: act(act(h) + b1),
        "over_time": lambda: act(h + _over_time(b1)),
        "times": lambda: act(h * b1),
        "on_x": lambda: act((x + b1) @ w1),
        "on_w1": lambda: act(x @ (w1 + b1)),
    }[bias1]()


def _mixed(h: Tensor, x: Tensor, mixing: str) -> Tensor:
    return {
        "none": lambda: h,
        "plus_x": lambda: h + x,
        "mean": lambda: h.mean(-2, keepdim=True).expand_as(h),
        "sum": lambda: h.sum(-2, keepdim=True).expand_as(h),
        "max": lambda: h.amax(-2, keepdim=True).expand_as(h),
        "cumulative": lambda: h.cumsum(-2),
        "mean_kept": lambda: h.mean(-2, keepdim=True),
        "batch_mean": lambda: h.mean(0, keepdim=True).expand_as(h),
        "batch_max": lambda: h.amax(0),
        "dropped_mean": lambda: h.mean(-2),
    }[mixing]()


def _second_layer(h: Tensor, w2: Tensor, b1: Tensor, b2: Tensor, bias2: str) -> Tensor:
    return {
        "right": lambda: h @ w2 + b2,
        "first_again": lambda: h @ w2 + b1,
        "none": lambda: h @ w2,
        "minus": lambda: h @ w2 - b2,
        "twice": lambda: h @ w2 + 2 * b2,
        "over_time": lambda: h @ w2 + _over_time(b2),
        "before": lambda: (h + b2) @ w2,
        "on_w2": lambda: h @ (w2 + b2),
        "mean": lambda: h @ w2 / h.shape[-1] + b2,
        "over_root": lambda: h @ w2 / h.shape[-1] ** 0.5 + b2,
        "product_from_left": lambda: w2 @ h + b2,
        "times": lambda: (h @ w2) * b2,
    }[bias2]()


def _ended(out: Tensor, x: Tensor, b2: Tensor, d_ff: int, end: str) -> Tensor:
    return {
        "relu_before_bias": lambda: F.relu(out - b2) + b2,
        "gelu": lambda: F.gelu(out),
        "tanh": lambda: out.tanh(),
        "residual_minus": lambda: out - x,
        "residual_relu": lambda: F.relu(x + out),
        "over_root_d_model": lambda: out / x.shape[-1] ** 0.5,
        "over_d_ff": lambda: out / d_ff,
        "doubled": lambda: 2 * out,
        "mean": lambda: out.mean(-2, keepdim=True).expand_as(out),
    }.get(end, lambda: ended(out, x, end))()


def wrong_feed_forward(
    x: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    *,
    start: str = "right",
    weights: str = "right",
    biases: str = "right",
    bias1: str = "inside",
    activation: str = "relu",
    mixing: str = "none",
    bias2: str = "right",
    end: str = "right",
    result: str = "right",
    inputs: str = "kept",
) -> object:
    """The feed-forward layer with any of the ways to go wrong; without a switch it is right."""
    if inputs == "relu":
        x.relu_()
    (w1, w2), (b1, b2) = _matrices(w1, w2, weights), (b2, b1) if biases == "exchanged" else (b1, b2)
    before = x
    x = _start(x, start)
    h = _mixed(_first_layer(x, w1, b1, bias1, ACTIVATIONS[activation]), x, mixing)
    if result == "hidden":
        return h
    out = _ended(_second_layer(h, w2, b1, b2, bias2), before, b2, h.shape[-1], end)
    if inputs == "overwritten":
        before.copy_(out)
    return {
        "first_sequence": lambda: out[0],
        "first_sequence_kept": lambda: out[:1],
        "batch_mean": lambda: out.mean(0),
        "batch_sum": lambda: out.sum(0),
        "last_empty": lambda: torch.cat([out[..., :-1, :], torch.zeros_like(out[..., -1:, :])], dim=-2),
        "first_empty": lambda: torch.cat([torch.zeros_like(out[..., :1, :]), out[..., 1:, :]], dim=-2),
    }.get(result, lambda: formed(out, before, result))()


OTHER = (
    "This exercise asks for relu, as in the paper of 2017: max(0, h), which is 0 wherever h = x w1 + b1 is negative."
)
NOT_TRANSPOSED = (
    "here w1 is (d_model, d_ff) and w2 is (d_ff, d_model), and both are multiplied from the right as they are: x @ w1. "
    "Where d_model and d_ff are equal, nothing else would complain."
)
BROADCAST = (
    "The bias {} is added along the axis of the tokens: one number for each token instead of one for each {}. A vector "
    "broadcasts along the last axis by itself, so no axis has to be added to it."
)


def _other(name: str, which: str, *activations: str, edge: bool = False) -> tuple[Mistake, ...]:
    sentence = f"Your hidden units go through {which}. {OTHER}"
    return each(name, sentence, *({"activation": key} for key in activations), edge=edge)


FEED_FORWARD_MISTAKES = (
    *each(
        "no_activation",
        "The activation is missing: nothing stands between your two layers. Two linear maps one after the other are a "
        "single linear map, so the layer could be replaced by one matrix. max(0, ·) belongs between them.",
        {"activation": "none"},
    ),
    *each(
        "activation_first",
        "You cut x off at 0 before the first layer, and nothing after it: what is negative in x is lost, and the two "
        "layers still collapse into one. The activation belongs between them: relu(x w1 + b1).",
        {"start": "relu", "activation": "none"},
    ),
    *each(
        "activation_last",
        "The activation comes after the second layer instead of between the two: they collapse into one linear map, "
        "and your result is never negative.",
        {"activation": "none", "end": "relu"},
        alone=True,
    ),
    *(
        Mistake(
            "activation_last",
            "The activation comes after the second layer instead of between the two, and one bias or both are not "
            f"used: you compute max(0, {inside}), which one matrix could do. It must be max(0, x w1 + b1) w2 + b2.",
            switches={"activation": "none", "end": "relu", **biases},
            alone=True,
        )
        for inside, biases in (
            ("x w1 w2 + b2", {"bias1": "none"}),
            ("(x w1 + b1) w2", {"bias2": "none"}),
            ("x w1 w2", {"bias1": "none", "bias2": "none"}),
        )
    ),
    *each(
        "activation_twice",
        "You apply the activation to the result as well, so it is never negative. Only the hidden units go through it; "
        "the second layer is linear.",
        {"end": "relu"},
    ),
    *each(
        "activation_twice",
        "You apply the activation once more after the product with w2, before b2 is added. Only the hidden units go "
        "through it; the second layer is linear.",
        {"end": "relu_before_bias"},
    ),
    *each(
        "activation_twice",
        "You apply the activation to x as well: what is negative in x is lost before the first layer reads it. Only "
        "the hidden units go through it.",
        {"start": "relu"},
    ),
    *_other("gelu", "gelu instead of relu", "gelu"),
    *_other("gelu", "gelu, in the form with tanh, instead of relu", "gelu_tanh"),
    *_other("gelu", "gelu, in the form h sigmoid(1.702 h), instead of relu", "quick_gelu"),
    *_other("silu", "silu (also called swish) instead of relu", "silu"),
    *_other("sigmoid", "the sigmoid instead of relu", "sigmoid"),
    *_other("tanh", "tanh instead of relu", "tanh"),
    *_other("leaky_relu", "leaky_relu, which lets a hundredth of what is negative through", "leaky"),
    *_other("elu", "elu instead of relu", "elu"),
    *_other("elu", "selu instead of relu", "selu"),
    *_other("softplus", "softplus instead of relu", "softplus"),
    *_other("another_activation", "mish instead of relu", "mish"),
    *_other(
        "softmax_inside", "a softmax over the hidden units of a token", "softmax", "log_softmax", "softmax_of_relu"
    ),
    *_other("minus_sign", "relu with a minus sign before it", "minus_relu"),
    *_other("squared_relu", "the square of relu", "squared"),
    *_other("absolute_values", "the absolute value instead of relu", "absolute"),
    *_other("step", "a step, 1 where h is positive and 0 elsewhere: how strongly a unit responds is lost", "step"),
    *_other("cut_at_one", "a function that also cuts them off at 1", "cut_at_one"),
    *_other("cut_at_six", "a function that also cuts them off at 6 (relu6)", "relu6", edge=True),
    *_other("cut_at_one", "a function that raises them to at least 1", "at_least_one"),
    *_other(
        "wrong_half",
        "the wrong half of relu, which keeps what is negative and cuts off what is positive",
        "negative_part",
    ),
    *_other("wrong_half", "relu with the sign of h exchanged, relu(-h)", "negated"),
    *_other("another_activation", "h + relu(h) instead of relu", "twice_linear"),
    *each(
        "scaled",
        "Your hidden units are twice as large as they should be. (relu(h) is half of h + |h|.)",
        {"activation": "twice_relu"},
    ),
    *each(
        "mixes_positions",
        f"Your softmax runs over the tokens of a sequence, so the tokens influence each other. {BY_ITSELF} {OTHER}",
        {"activation": "softmax_of_tokens"},
    ),
    *each(
        "norm_inside",
        "You normalise the hidden units (layer norm). No norm belongs inside: the layer around this function has one.",
        {"activation": "normalised"},
        {"activation": "normalised_after"},
    ),
    *each(
        "one_layer",
        "You return the hidden units: your result has d_ff columns. The second layer is missing, which leads back to "
        "the width of x: @ w2 + b2.",
        {"result": "hidden"},
    ),
    *each(
        "no_first_bias",
        "The first bias, b1, is missing: your hidden units respond from 0 on, and b1 should move that threshold.",
        {"bias1": "none"},
    ),
    *each(
        "bias_after_activation",
        "You add b1 after the activation. It belongs inside, relu(x w1 + b1), where it moves the threshold from which "
        "a unit responds; added outside, it is the same for every token, and could as well be a part of b2.",
        {"bias1": "after"},
    ),
    *each(
        "bias_after_activation",
        "You apply the activation twice, before b1 is added and after it. b1 belongs inside, relu(x w1 + b1), where it "
        "moves the threshold from which a unit responds.",
        {"bias1": "between_two"},
    ),
    *each("bias_subtracted", "You subtract b1 instead of adding it.", {"bias1": "minus"}),
    *each("bias_twice", "You add b1 twice, inside the activation and once more after it.", {"bias1": "twice"}),
    *each(
        "bias_twice",
        "You add b1 twice before the activation. (F.linear with a bias has added it already.)",
        {"bias1": "twice_inside"},
    ),
    *each(
        "bias_over_time",
        BROADCAST.format("b1", "hidden unit"),
        {"bias1": "over_time"},
    ),
    *each("bias_multiplied", "You multiply by b1 instead of adding it.", {"bias1": "times"}),
    *each(
        "bias_on_x",
        "You add b1 to x, before the product with w1. It has one number for each hidden unit, and is added after the "
        "product; the shapes fit only where d_model and d_ff are equal.",
        {"bias1": "on_x"},
    ),
    *each(
        "bias_on_matrix",
        "You add b1 to the matrix w1. It is added to the product, x w1 + b1, once for each hidden unit.",
        {"bias1": "on_w1"},
    ),
    *each(
        "bias_on_matrix",
        "You add b2 to the matrix w2. It is added to the product, after it, once for each column.",
        {"bias2": "on_w2"},
    ),
    *each(
        "matrix_from_the_left",
        "You multiply with the matrices from the left, w1 @ x. The tokens are the rows of x, so a matrix from the left "
        "mixes tokens, and the shapes fit only where the sizes happen to be equal: x @ w1.",
        {"bias1": "product_from_left", "bias2": "product_from_left"},
        {"bias1": "product_from_left"},
    ),
    Mistake(
        "no_second_bias",
        "The second bias, b2, is missing: your result differs from the right one by these numbers in every position.",
        switches={"bias2": "none"},
        beside="The second bias, b2, is missing.",
    ),
    *each("bias_subtracted", "You subtract b2 instead of adding it.", {"bias2": "minus"}),
    *each("bias_twice", "You add b2 twice.", {"bias2": "twice"}),
    *each(
        "biases_exchanged",
        "You add b1 at the end as well: it has d_ff numbers and belongs to the first product. At the end b2 is added, "
        "which has d_model numbers. The shapes fit the wrong way only where the two widths are equal.",
        {"bias2": "first_again"},
    ),
    *each("bias_over_time", BROADCAST.format("b2", "column"), {"bias2": "over_time"}),
    *each("bias_multiplied", "You multiply by b2 instead of adding it.", {"bias2": "times"}),
    *each(
        "second_bias_too_early",
        "You add b2 before the product with w2. It has one number for each column of the result, and is added after "
        "the product; the shapes fit only where d_model and d_ff are equal.",
        {"bias2": "before"},
    ),
    *each(
        "biases_exchanged",
        "The biases b1 and b2 are exchanged: b1 has d_ff numbers and is added after w1, b2 has d_model numbers and is "
        "added after w2. The shapes fit the other way round only where the two widths are equal.",
        {"biases": "exchanged"},
    ),
    *each(
        "transposed",
        "Both matrices are transposed (as the weights of nn.Linear are stored, and F.linear takes them); "
        f"{NOT_TRANSPOSED}",
        {"weights": "transposed"},
    ),
    *each("transposed", f"The matrix w1 is transposed; {NOT_TRANSPOSED}", {"weights": "first_transposed"}),
    *each("transposed", f"The matrix w2 is transposed; {NOT_TRANSPOSED}", {"weights": "second_transposed"}),
    *each(
        "matrices_exchanged",
        "The matrices w1 and w2 are exchanged: w1 leads from d_model to d_ff and comes first. The shapes fit the other "
        "way round only where the two widths are equal.",
        {"weights": "exchanged"},
    ),
    *each(
        "matrices_exchanged",
        "The matrices w1 and w2 are exchanged, and transposed so that their shapes fit: the first product must be x @ "
        "w1, the second one with w2, both as they are.",
        {"weights": "exchanged_transposed"},
    ),
    *each(
        "matrix_used_twice",
        "The second layer uses w1 again, transposed; w2 is never used.",
        {"weights": "tied"},
    ),
    *each(
        "matrix_used_twice",
        "The first layer uses w2, transposed; w1 is never used.",
        {"weights": "tied_second"},
    ),
    *ENDS,
    *each(
        "residual_inside",
        "You subtract x from the result. Neither adding nor subtracting x belongs here.",
        {"end": "residual_minus"},
    ),
    *each(
        "residual_and_activation",
        "You add x to the result and apply the activation to the sum. Neither belongs here: the layer around this "
        "function adds x, and the second layer is linear.",
        {"end": "residual_relu"},
    ),
    *each(
        "norm_inside",
        "You normalise the result (layer norm). No norm belongs inside: the layer around this function has one.",
        {"end": "norm"},
    ),
    *each(
        "norm_inside",
        "You normalise x first (layer norm). No norm belongs inside: the layer around this function has one.",
        {"start": "norm"},
    ),
    *each(
        "residual_inside",
        "You add x to the hidden units, which fits only where d_model and d_ff are equal. x takes part in the first "
        "product only.",
        {"mixing": "plus_x"},
    ),
    *each(
        "scaled",
        "You divide by d_ff, the number of hidden units. Their contributions are added, not averaged.",
        {"bias2": "mean"},
    ),
    *each(
        "scaled",
        "You divide by the root of d_ff. A root belongs to the scores of attention; nothing is scaled here.",
        {"bias2": "over_root"},
    ),
    *each(
        "scaled",
        "You multiply x by the root of d_model. That belongs to the embedding; nothing is scaled here.",
        {"start": "scaled"},
    ),
    *each(
        "scaled",
        "You divide the result by the root of d_model. That belongs to the scores of attention; nothing is scaled "
        "here.",
        {"end": "over_root_d_model"},
    ),
    *each(
        "scaled",
        "You divide the result by d_ff. The hidden units' contributions are added, not averaged.",
        {"end": "over_d_ff"},
    ),
    *each("scaled", "Your result is twice the right one.", {"end": "doubled"}),
    *each(
        "activation_at_the_end",
        "Your result goes through one more function at the end (gelu, sigmoid, tanh or softmax). The second layer is "
        "linear: return relu(x w1 + b1) w2 + b2 as it is.",
        {"end": "gelu"},
        {"end": "sigmoid"},
        {"end": "tanh"},
        {"end": "softmax"},
        {"activation": "none", "end": "softmax"},
    ),
    *each(
        "multiplied_by_x", "You multiply the result by x. x takes part in the first product only.", {"end": "times_x"}
    ),
    *each(
        "mixes_positions",
        f"Your hidden units are pooled over the tokens of a sequence, and every token gets the same. {BY_ITSELF}",
        {"mixing": "mean"},
        {"mixing": "sum"},
        {"mixing": "max"},
    ),
    *each(
        "mixes_positions",
        "Your hidden units are added up from token to token, so each token gets those of the tokens before it. "
        f"{BY_ITSELF}",
        {"mixing": "cumulative"},
    ),
    *each(
        "mixes_positions",
        f"The tokens are mixed before the first layer. {BY_ITSELF}",
        {"start": "mean"},
        {"start": "cumulative"},
    ),
    *each(
        "mixes_positions",
        f"Every token of a sequence gets the same result, the mean of all. {BY_ITSELF}",
        {"end": "mean"},
    ),
    *each(
        "maximum_along_an_axis",
        "You take the largest entry along axis 0, over the sequences of the batch: that is what torch.max with 0 as "
        "its second argument does. What is wanted is each entry, or 0 where it is negative: torch.relu, or "
        "clamp(min=0).",
        {"activation": "none", "mixing": "batch_max"},
    ),
    *each(
        "mixes_sequences",
        "Sequences are mixed: the hidden units are pooled along the first axis, the batch. Each token must be worked "
        "on by itself.",
        {"mixing": "batch_mean"},
        {"mixing": "batch_max"},
    ),
    *each(
        "pooled",
        "One row is left of each sequence. The result must have the shape of x, a row for each token.",
        {"mixing": "mean_kept"},
        {"mixing": "dropped_mean"},
    ),
    *form_mistakes("result"),
    *each(
        "row_empty",
        "The last token of every sequence gets zeros: it is never written. There are as many rows as tokens, the last "
        "one included.",
        {"result": "last_empty"},
    ),
    *each(
        "row_empty",
        "The first token of every sequence gets zeros: it is never written. There are as many rows as tokens, the "
        "first one, number 0, included.",
        {"result": "first_empty"},
    ),
    *each(
        "first_sequence_only",
        "You return the first sequence of the batch only. The result must have the shape of x.",
        {"result": "first_sequence"},
        {"result": "first_sequence_kept"},
        alone=True,
    ),
    *each(
        "batch_averaged",
        "The axis of the batch is gone: you take the mean, or the sum, of all sequences. The result must have the "
        "shape of x, each sequence by itself.",
        {"result": "batch_mean"},
        {"result": "batch_sum"},
    ),
    *each(
        "changes_input",
        "Your x itself is changed: an operation in place (relu_, or inplace=True) cuts the caller's tensor off at 0, "
        "before the first layer.",
        {"inputs": "relu"},
        {"inputs": "relu", "activation": "none"},
    ),
)


def _with(first: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A wrong feed-forward layer whose hidden units are first(x, w1, b1, w2)."""
    return lambda x, w1, b1, w2, b2: first(x, w1, b1, w2) @ w2 + b2


OPERATORS = (
    Mistake(
        "brackets_missing",
        "In relu(x w1) + b1 @ w2 only b1 is multiplied by w2, since @ comes before +. Put brackets around the sum that "
        "w2 is to multiply. The shapes fit only where d_model and d_ff are equal.",
        lambda x, w1, b1, w2, b2: F.relu(x @ w1) + b1 @ w2 + b2,
    ),
    Mistake(
        "entry_by_entry",
        "You multiply by the matrices with *, entry by entry: the product of a matrix is @. The shapes fit only where "
        "the sizes happen to be equal.",
        lambda x, w1, b1, w2, b2: F.relu(x * w1 + b1) * w2 + b2,
    ),
    Mistake(
        "comparison_alone",
        "A comparison, h > 0, is True or False: it says where a hidden unit responds, and not how strongly. What goes "
        "on is h itself where it is positive, and 0 elsewhere: torch.relu(h).",
        _with(lambda x, w1, b1, w2: x @ w1 + b1 > 0),
    ),
    Mistake(
        "positive_ones_picked",
        "With h[h > 0] the positive numbers are picked out and stand in one row, so that tokens and units are lost. "
        "What is wanted is h with a 0 in the place of each negative number: torch.relu(h).",
        _with(lambda x, w1, b1, w2: (x @ w1 + b1)[x @ w1 + b1 > 0]),
    ),
)


def _by_value(seen: Seen) -> list[tuple[float, float, float]]:
    """(h, relu(h), what the reader made of it) for each hidden unit of the probe whose second layer does nothing."""
    probe = next(p for p, _, _ in seen if p.says.startswith(UNIT))
    ((expected, given),) = outcomes(seen, UNIT)
    if not isinstance(given.value, Tensor) or given.value.shape != expected.value.shape:
        return []
    x, w1, b1, *_ = probe.make()
    columns = (x @ w1 + b1, expected.value, given.value.double())
    return sorted(zip(*(column.flatten().tolist() for column in columns), strict=True))


def _negative_let_through(seen: Seen) -> bool:
    """Right for positive h, and something else than 0 for every negative one."""
    if tensors(seen) is None:
        return False
    found = _by_value(seen)
    return bool(found) and all((abs(got - right) < 1e-3) == (h > 0) for h, right, got in found if abs(h) > 0.1)


def _grows_with_h(seen: Seen) -> bool:
    """A function of h alone, by all appearances: it never falls as h rises over twenty values. No multiple of relu."""
    found = _by_value(seen)
    if tensors(seen) is None or not found:
        return False
    steps = [b[-1] - a[-1] for a, b in pairwise(found)]
    right, given = (torch.tensor([row[i] for row in found]) for i in (1, 2))
    multiple = (right * given).sum() / (right * right).sum() * right
    return min(steps) >= -1e-5 and max(steps) > 1e-3 and not bool(close(given, multiple).all())


UNIT = "x of shape (1, 5, 4), d_ff 4, w2 the identity"


def _probe(says: str, *shape: int, d_ff: int, seed: int, edge: bool = False, times: float = 1.0,
           twice: bool = False, identity: bool = False) -> Probe:  # fmt: skip
    """Random weights of size about 1; `identity`: a second layer that does nothing."""

    def make() -> tuple:
        d = shape[-1]
        x = tokens(*shape, seed=seed, times=times, twice=twice)
        w2 = torch.eye(d) if identity else numbers(d_ff, d, seed=seed + 300).clone()
        b2 = torch.zeros(d) if identity else numbers(d, seed=seed + 400).clone()
        return x, numbers(d, d_ff, seed=seed + 100).clone(), numbers(d_ff, seed=seed + 200).clone(), w2, b2

    return Probe(says, make, edge=edge)


FEED_FORWARD = Exercise(
    name="feedforward.feed_forward",
    reference=feedforward.feed_forward,
    results=(Result("result", AXES),),
    probes=(
        *probes(_probe, _probe(UNIT, 1, 5, 4, d_ff=4, seed=4, identity=True), seed=1),
        _probe(
            "x of shape (1, 2, 3) with numbers up to about 20, d_ff 4", 1, 2, 3, d_ff=4, seed=1, times=10.0, edge=True
        ),
    ),
    compound=wrong_feed_forward,
    at_once=2,
    mistakes=(*FEED_FORWARD_MISTAKES, *OPERATORS),
    symptoms=(
        *OPENINGS,
        linear(
            "no_activation",
            "Your result is linear in x: those of x and -x lie opposite each other about that of 0. max(0, ·) "
            "must stand between the two layers, or they are no more than one.",
        ),
        off_by_a_constant(
            "constant_off",
            "Your result differs from the right one by the same numbers at every position: look at how b2 is added, "
            "and at what else is added that does not depend on x.",
        ),
        Symptom(
            "another_activation",
            f"Where a hidden unit is positive yours is right; where it is negative, something is let through. {OTHER}",
            _negative_let_through,
        ),
        Symptom(
            "another_activation", f"Your hidden units go through another function than relu. {OTHER}", _grows_with_h
        ),
        *ENDINGS,
    ),
)
