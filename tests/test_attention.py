"""Attention against a loop in float64, against torch, and against what must hold whatever the numbers."""

import inspect
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sizes import BATCH, D_K, D_V, HEADS, KEY, QUERY, TOLERANCE, error_text, few, numbers, random_mask, same
from torch.nn import functional as F

from transformer_edu.attention import scaled_dot_product_attention, softmax
from transformer_edu.exercises.attention import attention_by_loop
from transformer_edu.masks import causal_mask, padding_mask, to_additive

INF = math.inf
LEADING = [(), (BATCH,), (BATCH, HEADS), (BATCH, HEADS, 2)]
DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def inputs(leading=(BATCH, HEADS), dtype=torch.float32):
    """query, key, value of all different sizes."""
    return (
        numbers(*leading, QUERY, D_K, seed=1, dtype=dtype),
        numbers(*leading, KEY, D_K, seed=2, dtype=dtype),
        numbers(*leading, KEY, D_V, seed=3, dtype=dtype),
    )


def mask_with_empty_row(leading=(BATCH, 1)):
    mask = random_mask(*leading, QUERY, KEY, seed=4)
    mask[..., 2, :] = False
    return mask


def by_loops(query, key, value, mask, bias, scale):
    """One query at a time, in float64: the definition, and zeros where nothing is allowed."""
    output = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=torch.float64)
    weights = torch.zeros(*query.shape[:-1], key.shape[-2], dtype=torch.float64)
    for at in torch.cartesian_prod(*(torch.arange(n) for n in query.shape[:-1])).tolist():
        *lead, i = at
        scores = {}
        for j in range(key.shape[-2]):
            if mask[(*lead, i, j)]:
                products = zip(query[tuple(at)].tolist(), key[(*lead, j)].tolist(), strict=True)
                scores[j] = scale * sum(q * k for q, k in products) + bias[(*lead, i, j)].item()
        total = sum(math.exp(score) for score in scores.values())
        for j, score in scores.items():
            weights[(*lead, i, j)] = math.exp(score) / total
            output[tuple(at)] += weights[(*lead, i, j)] * value[(*lead, j)].double()
    return output, weights


# ---------------------------------------------------------------- softmax
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("size", [1.0, 1e4])
def test_softmax_equals_torch_along_every_axis_and_for_large_numbers(dim, size):
    x = size * torch.tanh(numbers(2, 3, 4))
    same(softmax(x, dim), x.softmax(dim), 1e-6)
    same(softmax(x, dim).sum(dim), torch.ones(x.sum(dim).shape), 1e-6)
    with_infinity = x.clone()
    with_infinity[1, 1, 1] = -INF
    same(softmax(with_infinity, dim), with_infinity.softmax(dim), 1e-6)


def test_softmax_runs_along_the_last_axis_unless_told_otherwise():
    x = numbers(3, 4)
    assert torch.equal(softmax(x), softmax(x, 1)) and not torch.equal(softmax(x), softmax(x, 0))


def test_softmax_of_nothing_but_minus_infinity_is_zero_with_a_finite_gradient():
    x = torch.tensor([[-INF, -INF], [0.0, 0.0], [-INF, 5.0]], requires_grad=True)
    result = softmax(x)
    assert result.tolist() == [[0, 0], [0.5, 0.5], [0, 1]]
    (result * torch.tensor([1.0, 2.0])).sum().backward()
    same(x.grad, [[0, 0], [-0.25, 0.25], [0, 0]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_keeps_the_dtype(dtype):
    x = numbers(3, 4, dtype=dtype)
    assert softmax(x).dtype == dtype
    same(softmax(x), x.float().softmax(-1), TOLERANCE[dtype])


@few
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=6), st.floats(-1000, 1000))
def test_softmax_does_not_change_when_a_number_is_added_everywhere(row, number):
    x = torch.tensor(row, dtype=torch.float64)
    same(softmax(x + number), softmax(x), 1e-9)
    assert softmax(x).min() > 0 and abs(softmax(x).sum() - 1) < 1e-9


def test_softmax_has_torchs_gradient():
    assert torch.autograd.gradcheck(softmax, numbers(2, 3, dtype=torch.float64).requires_grad_())


def test_softmax_refuses_what_has_no_exponential():
    text = error_text(TypeError, lambda: softmax(torch.tensor([1, 2])))
    assert text == "x must be a float tensor, got torch.int64: x.float() makes one"
    assert error_text(TypeError, lambda: softmax([1.0])) == (
        "x must be a torch.Tensor, got list: torch.as_tensor(x) makes one"
    )


# ---------------------------------------------------------------- the same numbers as elsewhere
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention_equals_a_loop_in_float64(scale, need_weights):
    query, key, value = inputs()
    mask, bias = mask_with_empty_row((BATCH, HEADS)), numbers(BATCH, HEADS, QUERY, KEY, seed=5)
    expected, expected_weights = by_loops(query, key, value, mask, bias, scale or 1 / math.sqrt(D_K))
    kwargs = {"scale": scale, "bias": bias, "need_weights": need_weights}
    output, weights = scaled_dot_product_attention(query, key, value, mask, **kwargs)
    same(output, expected)
    if need_weights:
        same(weights, expected_weights)


@pytest.mark.parametrize("mask", [None, mask_with_empty_row(), padding_mask([KEY, 0], KEY)])
def test_the_loop_of_the_exercise_the_matrix_product_and_the_fused_kernel_are_equal(mask):
    expected, expected_weights = attention_by_loop(*inputs(), mask)
    output, weights = scaled_dot_product_attention(*inputs(), mask)
    fused, _ = scaled_dot_product_attention(*inputs(), mask, need_weights=False)
    same(output, expected)
    same(weights, expected_weights)
    same(fused, expected)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("leading", LEADING)
def test_attention_equals_torch_for_every_number_of_leading_axes(leading, need_weights):
    query, key, value = inputs(leading)
    mask, bias = random_mask(QUERY, KEY), numbers(QUERY, KEY, seed=5)

    def both(theirs, **ours):
        expected = F.scaled_dot_product_attention(query, key, value, **theirs)
        same(scaled_dot_product_attention(query, key, value, need_weights=need_weights, **ours)[0], expected)

    both({})
    both({"attn_mask": mask}, mask=mask)
    both({"attn_mask": mask.expand(*leading, -1, -1)}, mask=mask.expand(*leading, -1, -1))
    both({"attn_mask": bias}, bias=bias)
    both({"attn_mask": bias.masked_fill(~mask, -INF)}, bias=bias, mask=mask)
    both({"scale": 0.25}, scale=0.25)
    both({"scale": 0.0}, scale=0.0)
    both({"is_causal": True}, mask=causal_mask(KEY)[:QUERY])  # both put the triangle at the top left


@pytest.mark.parametrize("need_weights", [True, False])
def test_leading_axes_broadcast(need_weights):
    query, key, value = (
        numbers(BATCH, HEADS, QUERY, D_K),
        numbers(KEY, D_K, seed=1),
        numbers(BATCH, 1, KEY, D_V, seed=2),
    )
    output, weights = scaled_dot_product_attention(query, key, value, need_weights=need_weights)
    whole = (query, key.expand(BATCH, HEADS, KEY, D_K), value.expand(BATCH, HEADS, KEY, D_V))
    same(output, F.scaled_dot_product_attention(*whole))
    assert not need_weights or weights.shape == (BATCH, HEADS, QUERY, KEY)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("shape", [(), (KEY,), (1, KEY), (QUERY, 1), (HEADS, 1, 1), (BATCH, 1, 1, KEY)])
def test_a_mask_or_bias_that_broadcasts_means_the_same_as_the_whole_one(shape, need_weights):
    query, key, value = inputs()
    mask, bias = numbers(*shape, seed=8) > 0, numbers(*shape, seed=5)

    def run(**kwargs):
        return scaled_dot_product_attention(query, key, value, need_weights=need_weights, **kwargs)[0]

    whole = (BATCH, HEADS, QUERY, KEY)
    same(run(mask=mask), run(mask=mask.expand(whole)))
    same(run(bias=bias), run(bias=bias.expand(whole)))
    same(run(mask=mask, bias=bias), run(mask=mask.expand(whole), bias=bias.expand(whole)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_result_has_the_dtype_of_the_query_and_no_input_changes(dtype):
    given_inputs, mask, bias = (
        inputs(dtype=dtype),
        mask_with_empty_row(),
        numbers(QUERY, KEY, dtype=torch.float64),
    )
    before = [x.clone() for x in (*given_inputs, mask, bias)]
    for need_weights in (True, False):
        output, weights = scaled_dot_product_attention(*given_inputs, mask, bias=bias, need_weights=need_weights)
        assert output.dtype == dtype and (weights is None) is not need_weights
        assert weights is None or weights.dtype == dtype
    assert all(torch.equal(a, b) for a, b in zip(before, (*given_inputs, mask, bias), strict=True))


# ---------------------------------------------------------------- gradients and empty rows
def gradients(mask, bias, dtype, **kwargs):
    """output, weights, and the gradients of query, key, value and bias."""
    tensors = [x.clone().requires_grad_() for x in (*inputs(dtype=dtype), bias.to(dtype))]
    query, key, value, bias = tensors
    output, weights = scaled_dot_product_attention(query, key, value, mask, bias=bias, **kwargs)
    (output.float() * numbers(*output.shape, seed=6)).sum().backward()
    return output, weights, [x.grad for x in tensors]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("cause", ["mask", "bias"])
def test_the_fused_kernel_gives_the_same_output_and_the_same_gradients(dtype, cause):
    mask, bias = random_mask(BATCH, 1, QUERY, KEY), numbers(BATCH, HEADS, QUERY, KEY, seed=5)
    if cause == "mask":
        mask[0, 0, 2] = False
    else:
        bias[0, :, 2] = -INF
    plain, _, plain_gradients = gradients(mask, bias, dtype)
    fused, weights, fused_gradients = gradients(mask, bias, dtype, need_weights=False)
    assert weights is None
    for a, b in zip([plain, *plain_gradients], [fused, *fused_gradients], strict=True):
        assert a.isfinite().all()
        same(a, b, TOLERANCE[dtype])


def test_the_fused_kernel_runs_exactly_when_nobody_needs_the_weights(monkeypatch):
    kernel, calls = F.scaled_dot_product_attention, []
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *x, **kwargs: calls.append(1) or kernel(*x, **kwargs))
    scaled_dot_product_attention(*inputs())
    assert not calls
    scaled_dot_product_attention(*inputs(), mask_with_empty_row(), need_weights=False)
    assert len(calls) == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("cause", ["mask", "bias", "both"])
def test_an_empty_row_has_weights_0_output_0_and_finite_gradients(dtype, need_weights, cause):
    mask, bias = random_mask(BATCH, HEADS, QUERY, KEY), numbers(BATCH, HEADS, QUERY, KEY, seed=5)
    if cause == "mask":
        mask[0, 1, 2] = False
    elif cause == "bias":
        bias[0, 1, 2] = -INF
    else:  # each forbids what the other allows
        mask[0, 1, 2] = torch.arange(KEY) < 3
        bias[0, 1, 2, :3] = -INF
    output, weights, grads = gradients(mask, bias, dtype, need_weights=need_weights)
    assert torch.equal(output[0, 1, 2], torch.zeros(D_V, dtype=dtype))
    assert output.isfinite().all() and all(gradient.isfinite().all() for gradient in grads)
    assert not grads[0][0, 1, 2].any() and not grads[3][0, 1, 2].any()  # nothing depends on that query
    assert grads[0][0, 1, 1].any()
    if need_weights:
        assert torch.equal(weights[0, 1, 2], torch.zeros(KEY, dtype=dtype))
        full = weights.float().sum(-1)
        full[0, 1, 2] += 1
        same(full, torch.ones(BATCH, HEADS, QUERY), TOLERANCE[dtype])


def test_an_empty_row_leaves_the_other_rows_as_they_are():
    query, key, value = inputs()
    mask = mask_with_empty_row()
    other = torch.arange(QUERY) != 2
    output, weights = scaled_dot_product_attention(query, key, value, mask)
    alone, alone_weights = scaled_dot_product_attention(query[..., other, :], key, value, mask[..., other, :])
    same(output[..., other, :], alone)
    same(weights[..., other, :], alone_weights)


def test_a_sequence_of_length_0_gives_zeros_and_finite_gradients():
    # pytorch/pytorch#41508: there NaN, and NaN gradients for every weight
    query = numbers(2, 1, 2, 4).requires_grad_()
    output, weights = scaled_dot_product_attention(query, query, query, padding_mask([2, 0], 2))
    expected, expected_weights = scaled_dot_product_attention(query[:1], query[:1], query[:1])
    assert not output[1].any() and not weights[1].any()
    same(output[0], expected[0])
    same(weights[0], expected_weights[0])
    output.sum().backward()
    assert query.grad.isfinite().all() and query.grad[0].any() and not query.grad[1].any()


def test_the_gradients_are_those_of_finite_differences_with_empty_rows_too():
    mask = mask_with_empty_row((HEADS,))[1:]
    tensors = (*inputs((2,), dtype=torch.float64), numbers(2, QUERY, KEY, seed=5, dtype=torch.float64))
    tensors = [x.requires_grad_() for x in tensors]

    def attend(query, key, value, bias, **kwargs):
        return scaled_dot_product_attention(query, key, value, mask, bias=bias, **kwargs)[0]

    assert torch.autograd.gradcheck(attend, tensors, fast_mode=True)
    assert torch.autograd.gradcheck(lambda *x: attend(*x, empty_rows="uniform"), tensors, fast_mode=True)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(("dtype", "fill"), [(torch.float32, -1e9), (torch.float32, -1e4), (torch.float16, -6e4)])
def test_uniform_empty_rows_reproduce_systems_that_fill_with_a_finite_number(dtype, fill, need_weights):
    query, key, value = inputs(dtype=dtype)
    mask = mask_with_empty_row()
    scores = (query @ key.transpose(-2, -1) / math.sqrt(D_K)).masked_fill(~mask, fill)
    kwargs = {"empty_rows": "uniform", "need_weights": need_weights}
    output, weights = scaled_dot_product_attention(query, key, value, mask, **kwargs)
    same(output, scores.softmax(-1) @ value, TOLERANCE[dtype])
    same(output[:, :, 2], value.float().mean(-2), TOLERANCE[dtype])
    assert (weights is None) is not need_weights
    if need_weights:
        same(weights, scores.softmax(-1), TOLERANCE[dtype])


def test_uniform_empty_rows_change_no_other_row():
    mask = mask_with_empty_row()
    zero, zero_weights = scaled_dot_product_attention(*inputs(), mask)
    uniform, weights = scaled_dot_product_attention(*inputs(), mask, empty_rows="uniform")
    other = torch.arange(QUERY) != 2
    assert torch.equal(zero[:, :, other], uniform[:, :, other])
    assert torch.equal(zero_weights[:, :, other], weights[:, :, other])
    same(weights[:, :, 2], torch.full((BATCH, HEADS, KEY), 1 / KEY))


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("empty_rows", ["zero", "uniform"])
def test_no_keys_at_all_give_output_0(empty_rows, need_weights):
    query, key, value = inputs()
    kwargs = {"empty_rows": empty_rows, "need_weights": need_weights}
    output, weights = scaled_dot_product_attention(query, key[..., :0, :], value[..., :0, :], **kwargs)
    assert torch.equal(output, torch.zeros(BATCH, HEADS, QUERY, D_V))
    assert weights is None or weights.shape == (BATCH, HEADS, QUERY, 0)


# ---------------------------------------------------------------- what must hold whatever the numbers
@few
@given(st.integers(0, 9999), st.floats(0, 1))
def test_rows_sum_to_1_or_0_and_masked_weights_are_exactly_0(seed, density):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(BATCH, 1, QUERY, KEY, generator=generator) < density
    query = numbers(BATCH, HEADS, QUERY, D_K, seed=seed)
    _, weights = scaled_dot_product_attention(query, *inputs()[1:], mask)
    allowed = mask.expand_as(weights)
    same(weights.sum(-1), allowed.any(-1).float())
    assert (weights[~allowed] == 0).all() and (weights[allowed] > 0).all()


@few
@given(st.permutations(range(KEY)))
def test_permuting_keys_and_values_together_changes_nothing(order):
    query, key, value = inputs()
    mask = mask_with_empty_row()
    output, weights = scaled_dot_product_attention(query, key, value, mask)
    moved = (query, key[:, :, order], value[:, :, order], mask[..., order])
    same(scaled_dot_product_attention(*moved)[0], output)
    same(scaled_dot_product_attention(*moved)[1], weights[..., order])
    same(scaled_dot_product_attention(*moved, need_weights=False)[0], output)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("position", range(1, 5))
def test_a_future_token_never_moves_a_past_output(position, need_weights):
    query, key, value = (numbers(BATCH, HEADS, 5, width, seed=seed) for width, seed in ((D_K, 1), (D_K, 2), (D_V, 3)))

    def run():
        return scaled_dot_product_attention(query, key, value, causal_mask(5), need_weights=need_weights)[0]

    before = run()
    for x in (query, key, value):
        x[:, :, position] = 1e3
    after = run()
    assert torch.equal(before[:, :, :position], after[:, :, :position])
    assert not torch.equal(before[:, :, position], after[:, :, position])


@pytest.mark.parametrize("need_weights", [True, False])
def test_what_stands_at_a_masked_key_is_never_read(need_weights):
    query, key, value = inputs()
    mask = padding_mask([5, 3], KEY)
    before, _ = scaled_dot_product_attention(query, key, value, mask, need_weights=need_weights)
    key[1, :, 3:], value[1, :, 3:] = 1e3, -1e3
    after, _ = scaled_dot_product_attention(query, key, value, mask, need_weights=need_weights)
    assert torch.equal(before, after)


# ---------------------------------------------------------------- dropout
@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_happens_only_when_asked(need_weights):
    # pytorch/pytorch#124464: torch's function drops whenever dropout_p is above 0, in evaluation too
    runs = [scaled_dot_product_attention(*inputs(), need_weights=need_weights)[0] for _ in range(2)]
    assert torch.equal(*runs)
    runs = [scaled_dot_product_attention(*inputs(), dropout=0.5, need_weights=need_weights)[0] for _ in range(2)]
    assert not torch.equal(*runs)


def test_dropout_acts_on_the_weights_and_the_returned_ones_are_those_before_it():
    query, key, value = inputs()
    _, expected = scaled_dot_product_attention(query, key, value)
    torch.manual_seed(7)
    output, weights = scaled_dot_product_attention(query, key, value, dropout=0.4)
    torch.manual_seed(7)
    same(output, F.dropout(expected, 0.4) @ value)
    assert torch.equal(weights, expected)


@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_keeps_the_mean_and_of_everything_leaves_nothing(need_weights):
    output, _ = scaled_dot_product_attention(*inputs(), need_weights=need_weights)
    many = [x.expand(4000, *x.shape) for x in inputs()]
    dropped, _ = scaled_dot_product_attention(*many, dropout=0.3, need_weights=need_weights)
    same(dropped.mean(0), output, 0.06)
    nothing, _ = scaled_dot_product_attention(*inputs(), dropout=1.0, need_weights=need_weights)
    assert not nothing.any()


# ---------------------------------------------------------------- reports from elsewhere, as small numbers
def weights_of(scores, mask=None, **kwargs):
    """The weights of one query whose scores are given."""
    keys = torch.tensor(scores)[:, None]
    return scaled_dot_product_attention(torch.ones_like(keys[:1]), keys, keys, mask, **kwargs)


def test_a_masked_key_keeps_no_weight():
    # hyunwoongko/transformer 9c5515d: a fill of -1e-12 left it .0900
    mask = torch.tensor([True, True, False])
    keys, value = torch.tensor([[2.0], [1.0], [3.0]]), torch.tensor([[1.0], [2.0], [10.0]])
    output, weights = scaled_dot_product_attention(torch.ones(1, 1), keys, value, mask)
    same(weights[0], [0.7311, 0.2689, 0], 1e-4)
    same(output, [[1.2689]], 1e-4)


def test_half_precision_has_no_fill_that_overflows():
    # fairseq#3575, NVIDIA/apex#1052: -1e9 does not exist in float16
    query, keys = torch.ones(1, 1).half(), torch.tensor([[1.0], [2.0], [3.0]]).half()
    _, weights = scaled_dot_product_attention(query, keys, keys, torch.tensor([True, True, False]))
    same(weights[0], [0.2689, 0.7311, 0], 1e-3)


def test_the_mask_says_what_is_valid_not_what_to_fill():
    # lucidrains/halonet-pytorch#4: the inverted mask gives [0, 0, 1]
    same(weights_of([1.0, 2.0, 3.0], torch.tensor([True, True, False]))[1][0], [0.2689, 0.7311, 0], 1e-4)


def test_an_additive_mask_is_added_and_not_multiplied():
    # huggingface/transformers#32598: a score of 0 is not a weight of 0
    bias = to_additive(torch.tensor([True, True, False]))
    same(weights_of([1.0, 2.0, 3.0], bias=bias)[1][0], [0.2689, 0.7311, 0], 1e-4)


def test_scores_are_divided_by_the_root_of_the_width_of_a_head():
    # hyunwoongko/transformer ee92100 and others: by sqrt(d_model), which one head does not show
    query = torch.tensor([[2.0, 0, 0, 0], [0, 0, 0, 0]]).expand(1, 2, 2, 4)
    _, weights = scaled_dot_product_attention(query, query, query)
    same(weights[0, 0, 0], torch.tensor([4 / 2, 0.0]).softmax(0))
    # esceptico/perceiver-io#9: a raw score of 2 with d_k = 4 is 1, not 2 * sqrt(4)
    _, weights = scaled_dot_product_attention(query[..., :1, :], torch.eye(4)[:2], torch.eye(4)[:2])
    same(weights[0, 0, 0], torch.tensor([1.0, 0.0]).softmax(0))


def test_rows_sum_to_1_and_columns_need_not():
    # labmlai#146 and others: softmax over the queries makes every weight of a single query 1
    _, weights = scaled_dot_product_attention(numbers(1, 1, 1, 2), numbers(1, 1, 3, 2, seed=1), numbers(1, 1, 3, 2))
    same(weights.sum(-1), [[[1.0]]])
    assert weights.max() < 1
    x = numbers(1, 1, 3, 2)  # with as many queries as keys the shape does not tell
    _, weights = scaled_dot_product_attention(x, x, x)
    same(weights.sum(-1), torch.ones(1, 1, 3))
    assert (weights.sum(-2) - 1).abs().max() > 0.01


def test_a_float_matrix_of_0_and_1_is_refused_as_a_mask_and_only_added_as_a_bias():
    # pytorch/pytorch#21518: nn.MultiheadAttention adds it, so that it masks nothing
    x, ones = torch.ones(1, 4, 6), torch.ones(4, 4).tril()
    text = error_text(ValueError, lambda: scaled_dot_product_attention(x, x, x, ones))
    assert text.startswith("mask of shape (4, 4) for scores of shape (1, 4, 4) must have dtype bool")
    assert text.endswith("masks.from_integers (0 and 1), or pass it to scaled_dot_product_attention as bias=")
    _, weights = scaled_dot_product_attention(x, x, x, bias=ones)
    same(weights[0, [0, 3]], [[0.4754, 0.1749, 0.1749, 0.1749], [0.25] * 4], 1e-4)


# ---------------------------------------------------------------- errors
def test_inputs_that_do_not_fit_are_named_with_both_numbers_and_all_shapes():
    query, key, value = inputs()

    def text(*args, **kwargs):
        return error_text(ValueError, lambda: scaled_dot_product_attention(*args, **kwargs))

    assert text(query, value, value) == (
        "query and key must have the same width d_k, got 6 and 7 "
        "(query (2, 3, 4, 6), key (2, 3, 5, 7), value (2, 3, 5, 7))"
    )
    assert text(query, key, query) == (
        "key and value must have the same length, got 5 and 4 (query (2, 3, 4, 6), key (2, 3, 5, 6), value "
        "(2, 3, 4, 6)): every key comes with its value"
    )
    assert text(query, key[:, :2], value[:, :2]) == (
        "the axes before the last two do not broadcast together: "
        "query (2, 3, 4, 6), key (2, 2, 5, 6), value (2, 2, 5, 7)"
    )
    assert text(query, key, value[:, :2]).startswith("the axes before the last two do not broadcast together: ")
    assert text(query[0, 0, 0], key, value) == (
        "query must have at least 2 axes (..., query, d_k), got 1 axis: shape (6,)"
    )
    assert text(query, key[0, 0, 0], value).startswith("key must have at least 2 axes (..., key, d_k), got 1 axis")
    assert text(query, key, value[0, 0, 0]).startswith("value must have at least 2 axes (..., key, d_v), got 1 axis")


def test_a_mask_or_bias_that_does_not_fit_is_named_with_both_shapes():
    query, key, value = inputs()

    def text(leading=(), **kwargs):
        tensors = [x.expand(*leading, *x.shape) for x in (query, key, value)]
        return error_text(ValueError, lambda: scaled_dot_product_attention(*tensors, **kwargs))

    end = "shapes are aligned from the right, so the last axis of {} must be 5 or 1"
    scores = "does not broadcast to (2, 3, 4, 5) = (batch, heads, query, key): "
    transposed = random_mask(KEY, QUERY)
    assert text(mask=transposed) == f"mask of shape (5, 4) {scores}{end.format('mask')}"
    assert text(bias=transposed.float()) == f"bias of shape (5, 4) {scores}{end.format('bias')}"
    assert text(mask=random_mask(1, 1, 1, 1, 5)).endswith("it has 5 axes, at most 4 fit")
    assert "to (2, 2, 3, 4, 5) = (..., query, key): " in text(leading=(2,), mask=transposed)
    assert text(bias=random_mask(KEY)) == "bias must be a float tensor, got torch.bool: a bool mask goes to mask="
    for dtype in (torch.float32, torch.int64):
        assert f"must have dtype bool (True = this query may attend to this key), got {dtype}" in text(
            mask=torch.ones(QUERY, KEY, dtype=dtype)
        )
    two = error_text(ValueError, lambda: scaled_dot_product_attention(query[0, 0], key[0, 0], value[0, 0], transposed))
    assert two.startswith("mask of shape (5, 4) does not broadcast to (4, 5) = (query, key): ")


@pytest.mark.parametrize("need_weights", [True, False])
def test_options_that_do_not_exist_are_refused(need_weights):
    def text(kind=ValueError, **kwargs):
        kwargs["need_weights"] = need_weights
        return error_text(kind, lambda: scaled_dot_product_attention(*inputs(), **kwargs))

    assert text(empty_rows="nan") == "empty_rows must be one of 'zero', 'uniform', got 'nan'"
    share = "it is the share of the weights that are set to 0"
    assert text(dropout=-0.1) == f"dropout must lie in 0..1, got -0.1: {share}"
    assert text(dropout=1.5) == f"dropout must lie in 0..1, got 1.5: {share}"
    assert text(TypeError, mask=[[True]]) == "mask must be a torch.Tensor, got list: torch.as_tensor(mask) makes one"
    assert text(TypeError, bias=0.5) == "bias must be a torch.Tensor, got float: torch.as_tensor(bias) makes one"


def test_everything_after_the_mask_is_named():
    kinds = [p.kind for p in inspect.signature(scaled_dot_product_attention).parameters.values()]
    assert kinds == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 4 + [inspect.Parameter.KEYWORD_ONLY] * 6


def test_inputs_of_different_or_whole_dtypes_are_refused_by_name():
    x = torch.zeros(4, 6)
    text = error_text(ValueError, lambda: scaled_dot_product_attention(x, x.double(), x))
    want = "query, key and value must have one dtype, got torch.float32, torch.float64, torch.float32: "
    assert text == want + ".to(query.dtype) converts"
    text = error_text(ValueError, lambda: scaled_dot_product_attention(x.long(), x.long(), x.long()))
    assert text == "query, key and value must be float tensors, got torch.int64: .float() converts"


def test_autocast_may_mix_dtypes():
    x = torch.ones(4, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, _ = scaled_dot_product_attention(x.bfloat16(), x, x)
    assert output.shape == (4, 6)
