"""Heads against torch's module with the same weights and against loops; split and merge each alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sizes import BATCH, D_K, D_MODEL, D_V, HEADS, KEY, QUERY, error_text, few, numbers, random_mask, same
from torch import nn
from torch.nn import functional as F

from transformer_edu.attention import scaled_dot_product_attention
from transformer_edu.heads import (
    HeadProjection,
    MultiHeadAttention,
    merge_heads,
    multi_head_attention,
    repeat_heads,
    split_heads,
)
from transformer_edu.masks import from_multihead, padding_mask

PROJECTIONS = ("query_projection", "key_projection", "value_projection")


def transplanted(theirs: nn.MultiheadAttention) -> MultiHeadAttention:
    """Our module with the weights of torch's."""
    d_model, weights = theirs.embed_dim, theirs.in_proj_weight
    ours = MultiHeadAttention(d_model=d_model, n_heads=theirs.num_heads, d_key_in=theirs.kdim, d_value_in=theirs.vdim)
    parts = (
        weights.chunk(3) if weights is not None else (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
    )
    state = {f"{name}.linear.weight": part for name, part in zip(PROJECTIONS, parts, strict=True)}
    biases = zip(PROJECTIONS, theirs.in_proj_bias.chunk(3), strict=True)
    state |= {f"{name}.linear.bias": part for name, part in biases}
    state |= {
        "output_projection.weight": theirs.out_proj.weight,
        "output_projection.bias": theirs.out_proj.bias,
    }
    ours.load_state_dict(state)
    return ours


def randomised(module):
    """The same module with random numbers in every parameter, biases too."""
    with torch.no_grad():
        for seed, parameter in enumerate(module.parameters()):
            parameter.copy_(0.4 * numbers(*parameter.shape, seed=seed))
    return module


def tokens(length=QUERY, width=D_MODEL, seed=0):
    return numbers(BATCH, length, width, seed=seed)


# ---------------------------------------------------------------- split and merge, each alone
@few
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
def test_split_and_merge_are_each_right_alone_and_inverse(batch, length, n_heads, d_k):
    x = torch.arange(batch * length * n_heads * d_k).view(batch, length, n_heads * d_k)
    split = split_heads(x, n_heads)
    assert split.shape == (batch, n_heads, length, d_k)
    for b, h, t, j in torch.cartesian_prod(*(torch.arange(n) for n in split.shape)).tolist():
        assert split[b, h, t, j] == x[b, t, h * d_k + j]
    heads = torch.arange(x.numel()).view(batch, n_heads, length, d_k)
    merged = merge_heads(heads)
    assert merged.shape == x.shape
    for b, h, t, j in torch.cartesian_prod(*(torch.arange(n) for n in heads.shape)).tolist():
        assert merged[b, t, h * d_k + j] == heads[b, h, t, j]
    assert torch.equal(merge_heads(split), x) and torch.equal(split_heads(merged, n_heads), heads)


def test_split_is_no_view_without_a_transpose():
    # reczoo/FuxiCTR#30, harvardnlp/annotated-transformer#17: the right shape with tokens and heads mixed
    assert split_heads(torch.arange(12).view(1, 3, 4), 2)[0].tolist() == [
        [[0, 1], [4, 5], [8, 9]],
        [[2, 3], [6, 7], [10, 11]],
    ]
    assert split_heads(torch.arange(8).view(1, 2, 4), 2)[0, 0].tolist() == [[0, 1], [4, 5]]


def test_merge_transposes_back_and_puts_the_heads_side_by_side():
    # jsbaan/transformer-from-scratch#6; a round trip of two wrong views is the identity too
    heads = torch.tensor([[[[0, 1], [4, 5], [8, 9]], [[2, 3], [6, 7], [10, 11]]]])
    assert torch.equal(merge_heads(heads), torch.arange(12).view(1, 3, 4))
    assert merge_heads(torch.tensor([[[[1, 2]], [[3, 4]]]])).tolist() == [[[1, 2, 3, 4]]]  # not their mean


def test_merge_takes_the_heads_of_a_tensor_that_is_not_contiguous():
    heads = numbers(BATCH, QUERY, HEADS, D_V).transpose(1, 2)
    assert torch.equal(merge_heads(heads), heads.transpose(1, 2).reshape(BATCH, QUERY, HEADS * D_V))


def test_repeat_heads_gives_neighbouring_heads_the_same_keys():
    x = numbers(BATCH, 2, KEY, D_K)
    repeated = repeat_heads(x, HEADS)
    assert repeated.shape == (BATCH, 2 * HEADS, KEY, D_K)
    for head in range(2 * HEADS):
        assert torch.equal(repeated[:, head], x[:, head // HEADS])
    assert torch.equal(repeat_heads(x, 1), x)


def test_shapes_that_cannot_be_split_or_merged_are_refused_with_their_numbers():
    cases = {
        "d_model (18) must be divisible by n_heads (4): each head gets d_model / n_heads columns": (
            lambda: split_heads(tokens(), 4)
        ),
        "n_heads must be at least 1, got 0": lambda: split_heads(tokens(), 0),
        "x must have 3 axes (batch, length, d_model), got 2 axes: shape (4, 18)": lambda: split_heads(tokens()[0], 3),
        "x must have 4 axes (batch, heads, length, d_v), got 3 axes: shape (2, 4, 18)": lambda: merge_heads(tokens()),
        "x must have 4 axes (batch, kv_heads, length, d), got 3 axes: shape (2, 4, 18)": (
            lambda: repeat_heads(tokens(), 2)
        ),
        "times must be at least 1, got 0": lambda: repeat_heads(tokens()[None], 0),
    }
    for text, call in cases.items():
        assert error_text(ValueError, call) == text


# ---------------------------------------------------------------- bare matrices
def test_multi_head_attention_equals_a_loop_over_heads():
    x, memory, mask = tokens(), tokens(KEY, seed=1), random_mask(BATCH, HEADS, QUERY, KEY)
    projections = {name: 0.3 * numbers(D_MODEL, D_MODEL, seed=ord(name)) for name in "qkvo"}
    heads, width = [], D_MODEL // HEADS
    for h in range(HEADS):
        query, key, value = (
            t @ projections[name][:, h * width : (h + 1) * width]
            for t, name in ((x, "q"), (memory, "k"), (memory, "v"))
        )
        heads.append(F.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, h]))
    output, weights = multi_head_attention(x, memory, projections, HEADS, mask)
    same(output, torch.cat(heads, dim=-1) @ projections["o"])
    assert weights.shape == (BATCH, HEADS, QUERY, KEY) and torch.equal(weights > 0, mask)


def test_values_are_projected_by_their_own_matrix():
    # pytorch/torchtune 8994e7ad: v = k.reshape(...), a copied line
    identity = torch.eye(2)
    projections = {"q": identity, "k": identity, "v": 2 * identity, "o": identity}
    x = torch.tensor([[[1.0, 0.0]]])
    assert multi_head_attention(x, x, projections, 1)[0].tolist() == [[[2, 0]]]


def test_a_head_reads_all_columns_of_a_token():
    # MarcoMeter/episodic-transformer-memory-ppo#22: split before the projection, it sees its own slice only
    attention = randomised(MultiHeadAttention(d_model=4, n_heads=2))
    assert attention.query_projection.linear.weight.numel() == 16
    x, changed = numbers(1, 1, 4), numbers(1, 1, 4)
    changed[..., 3] += 1
    assert (attention.query_projection(x)[:, 0] != attention.query_projection(changed)[:, 0]).all()


def test_missing_matrices_are_named():
    eye = torch.eye(D_MODEL)
    text = error_text(ValueError, lambda: multi_head_attention(tokens(), tokens(), {"q": eye, "v": eye}, HEADS))
    assert text == "projections must hold 'q', 'k', 'v' and 'o', missing 'k', 'o'"


# ---------------------------------------------------------------- torch's numbers
TORCH = {
    "self": ({}, False, {}),
    "cross": ({}, True, {}),
    "other widths": ({"kdim": 10, "vdim": 8}, True, {}),
    "padding": ({}, True, {"key_padding_mask": ~padding_mask([KEY, 2], KEY)[:, 0, 0]}),
    "mask": ({}, True, {"attn_mask": ~random_mask(QUERY, KEY)}),
    "mask per head": ({}, True, {"attn_mask": ~random_mask(BATCH * HEADS, QUERY, KEY)}),
    "everything": (
        {"kdim": 10, "vdim": 8},
        True,
        {
            "attn_mask": ~random_mask(BATCH * HEADS, QUERY, KEY),
            "key_padding_mask": ~padding_mask([KEY, 2], KEY)[:, 0, 0],
        },
    ),
}


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("case", TORCH)
def test_torchs_weights_give_torchs_numbers_and_gradients(case, need_weights):
    widths, cross, theirs_masks = TORCH[case]
    theirs = randomised(nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True, **widths))
    ours = transplanted(theirs)
    mask = from_multihead(**theirs_masks, n_heads=HEADS)
    query = tokens()
    key = tokens(KEY, widths.get("kdim", D_MODEL), seed=1) if cross else query
    value = tokens(KEY, widths.get("vdim", D_MODEL), seed=2) if cross else query
    copies = [[x.clone().requires_grad_() for x in (query, key, value)] for _ in range(2)]
    expected, expected_weights = theirs(*copies[0], **theirs_masks, average_attn_weights=False)
    output, weights = ours(*copies[1], mask, need_weights=need_weights)
    same(output, expected)
    assert (weights is None) is not need_weights
    if need_weights:
        same(weights, expected_weights)
    for y in (expected, output):
        (y * numbers(*y.shape, seed=9)).sum().backward()
    for a, b in zip(copies[0], copies[1], strict=True):
        same(b.grad, a.grad)
    # torch's gradients put in the place of its weights: a second transplant carries them over
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(parameter.grad)
    for mine, gradient in zip(ours.parameters(), transplanted(theirs).parameters(), strict=True):
        same(mine.grad, gradient, 1e-4)


def test_without_key_it_is_self_attention_and_without_value_the_keys_are_read():
    attention = randomised(MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS))
    x, memory = tokens(), tokens(KEY, seed=1)
    assert torch.equal(attention(x)[0], attention(x, x, x)[0])
    assert torch.equal(attention(x, memory)[0], attention(x, memory, memory)[0])
    assert not torch.equal(attention(x, memory)[0], attention(x, memory, memory.flip(1))[0])


def test_bare_matrices_and_the_module_without_biases_agree():
    attention = randomised(MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS, bias=False))
    projections = {name[0]: getattr(attention, name).linear.weight.T for name in PROJECTIONS}
    projections["o"] = attention.output_projection.weight.T
    x, memory, mask = tokens(), tokens(KEY, seed=1), random_mask(QUERY, KEY)
    output, weights = attention(x, memory, mask=mask, need_weights=True)
    expected, expected_weights = multi_head_attention(x, memory, projections, HEADS, mask)
    same(output, expected)
    same(weights, expected_weights)


# ---------------------------------------------------------------- free widths, groups, sharing
def test_the_widths_of_a_head_are_free():
    attention = randomised(MultiHeadAttention(d_model=17, n_heads=HEADS, d_k=D_K, d_v=D_V, d_key_in=10, d_value_in=8))
    query, key, value = tokens(width=17), tokens(KEY, 10, seed=1), tokens(KEY, 8, seed=2)
    mask = padding_mask([KEY, 2], KEY)
    heads = []
    for h in range(HEADS):
        parts = []
        for x, name, width in zip((query, key, value), PROJECTIONS, (D_K, D_K, D_V), strict=True):
            linear, rows = getattr(attention, name).linear, slice(h * width, (h + 1) * width)
            parts.append(F.linear(x, linear.weight[rows], linear.bias[rows]))
        heads.append(F.scaled_dot_product_attention(*parts, attn_mask=mask[:, 0]))
    output, weights = attention(query, key, value, mask, need_weights=True)
    same(output, attention.output_projection(torch.cat(heads, dim=-1)))
    assert output.shape == (BATCH, QUERY, 17) and weights.shape == (BATCH, HEADS, QUERY, KEY)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_grouped_heads_equal_plain_heads_whose_key_and_value_weights_are_repeated(n_kv_heads, need_weights):
    sizes = {"d_model": D_MODEL, "n_heads": 6, "d_k": 5, "d_v": 7}
    grouped = randomised(MultiHeadAttention(n_kv_heads=n_kv_heads, **sizes))
    plain = MultiHeadAttention(**sizes)
    state = grouped.state_dict()
    for name, width in (("key_projection", 5), ("value_projection", 7)):
        for kind in ("weight", "bias"):
            rows = state[f"{name}.linear.{kind}"].split(width)  # one block of rows for each key-value head
            repeated = [rows[head * n_kv_heads // 6] for head in range(6)]
            state[f"{name}.linear.{kind}"] = torch.cat(repeated)
    plain.load_state_dict(state)
    x, memory, mask = tokens(), tokens(KEY, seed=1), random_mask(BATCH, 1, QUERY, KEY)
    output, weights = grouped(x, memory, mask=mask, need_weights=need_weights)
    expected, expected_weights = plain(x, memory, mask=mask, need_weights=need_weights)
    same(output, expected)
    if need_weights:
        same(weights, expected_weights)


@pytest.mark.parametrize("widths", [{}, {"d_k": 5, "d_v": 7, "d_key_in": 12, "d_value_in": 15}])
def test_shared_projections_equal_plain_heads_with_block_diagonal_weights(widths):
    sizes = {"d_model": D_MODEL, "n_heads": HEADS, **widths}
    shared, plain = (
        randomised(MultiHeadAttention(shared_projections=True, **sizes)),
        MultiHeadAttention(**sizes),
    )
    state = shared.state_dict()
    for name in PROJECTIONS:
        state[f"{name}.linear.weight"] = torch.block_diag(*[state[f"{name}.linear.weight"]] * HEADS)
        state[f"{name}.linear.bias"] = state[f"{name}.linear.bias"].repeat(HEADS)
    plain.load_state_dict(state)
    key, value = (
        tokens(KEY, widths.get("d_key_in", D_MODEL), 1),
        tokens(KEY, widths.get("d_value_in", D_MODEL), 2),
    )
    output, weights = shared(tokens(), key, value, need_weights=True)
    expected, expected_weights = plain(tokens(), key, value, need_weights=True)
    same(output, expected)
    same(weights, expected_weights)


def count(**kwargs):
    return sum(p.numel() for p in MultiHeadAttention(d_model=24, n_heads=6, **kwargs).parameters())


def test_parameters_are_as_many_as_the_formula_says():
    d, h = 24, 6
    assert count() == 4 * (d * d + d)
    assert count(bias=False) == 4 * d * d
    assert count(bias=False, output_bias=True) == 4 * d * d + d
    assert count(output_bias=False) == 4 * d * d + 3 * d
    assert count(d_k=5, d_v=7) == 2 * (d + 1) * h * 5 + (d + 1) * h * 7 + (h * 7 + 1) * d
    assert count(d_key_in=10, d_value_in=8) == 2 * (d * d + d) + (10 + 1) * d + (8 + 1) * d
    for n_kv_heads in (1, 2, 3):
        assert count(n_kv_heads=n_kv_heads) == 2 * (d * d + d) + 2 * (d + 1) * n_kv_heads * (d // h)
    assert count(shared_projections=True, bias=False) == 3 * (d // h) ** 2 + d * d
    assert count(shared_projections=True, bias=False, output_bias=True) == 3 * (d // h) ** 2 + d * d + d


# ---------------------------------------------------------------- options
def test_the_scale_and_the_empty_rows_reach_attention():
    for option in ({"scale": 0.1}, {"empty_rows": "uniform"}, {}):
        attention = randomised(MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS, **option))
        x, mask = tokens(), random_mask(QUERY, QUERY)
        mask[1] = False
        heads = [getattr(attention, name)(x) for name in PROJECTIONS]
        expected, expected_weights = scaled_dot_product_attention(*heads, mask, **option)
        output, weights = attention(x, mask=mask, need_weights=True)
        assert torch.equal(weights, expected_weights)
        same(output, attention.output_projection(merge_heads(expected)))
        same(attention(x, mask=mask)[0], output)
        if "empty_rows" not in option:
            same(output[:, 1], attention.output_projection.bias.expand(BATCH, D_MODEL))


def test_dropout_acts_in_training_only():
    attention = randomised(MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS, dropout=0.5))
    plain = randomised(MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS))
    for need_weights in (True, False):
        runs = [attention.train()(tokens(), need_weights=need_weights) for _ in range(2)]
        assert not torch.equal(runs[0][0], runs[1][0])
        expected, expected_weights = plain.train()(tokens(), need_weights=need_weights)
        if need_weights:
            assert torch.equal(runs[0][1], expected_weights)  # those before dropout
        same(attention.eval()(tokens(), need_weights=need_weights)[0], expected)


def test_with_everything_dropped_the_output_is_the_bias():
    attention = randomised(MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS, dropout=1.0)).train()
    for need_weights in (True, False):
        output, _ = attention(tokens(), need_weights=need_weights)
        same(output, attention.output_projection.bias.expand(BATCH, QUERY, D_MODEL))


def test_weights_are_kept_nowhere():
    attention = MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS)
    before = set(attention.__dict__), set(attention.state_dict())
    assert attention(tokens())[1] is None
    attention(tokens(), need_weights=True)
    assert (set(attention.__dict__), set(attention.state_dict())) == before
    assert not list(attention.buffers())


def test_no_item_of_a_batch_sees_another():
    attention = randomised(MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS))
    x, mask = tokens(), padding_mask([1, 3], QUERY)
    before = attention(x, mask=mask)[0][1]
    x[0] = 100.0
    assert torch.equal(attention(x, mask=mask)[0][1], before)


# ---------------------------------------------------------------- errors
def test_sizes_that_do_not_fit_are_refused_with_both_numbers():
    cases = {
        "d_model (18) must be divisible by n_heads (4): each head gets d_model / n_heads columns, "
        "unless you give d_k and d_v": {"n_heads": 4},
        "n_heads (3) must be divisible by n_kv_heads (2): each key-value head serves equally many heads": {
            "n_kv_heads": 2
        },
        "d_in (10) must be divisible by n_heads (3): a shared projection splits the token before it": {
            "shared_projections": True,
            "d_key_in": 10,
        },
        "d_model must be at least 1, got 0": {"d_model": 0},
        "n_heads must be at least 1, got 0": {"n_heads": 0},
        "d_k must be at least 1, got 0": {"d_k": 0},
        "d_v must be at least 1, got -2": {"d_v": -2},
        "empty_rows must be one of 'zero', 'uniform', got 'nan'": {"empty_rows": "nan"},
        "dropout must lie in 0..1, got 1.5: it is the share of the weights that are set to 0": {"dropout": 1.5},
    }
    for text, options in cases.items():
        kwargs = {"d_model": D_MODEL, "n_heads": HEADS, **options}
        assert error_text(ValueError, lambda kwargs=kwargs: MultiHeadAttention(**kwargs)) == text
    assert MultiHeadAttention(d_model=D_MODEL, n_heads=4, d_k=5, d_v=7)(tokens())[0].shape == tokens().shape


def test_tokens_of_another_width_or_shape_are_refused_with_both_numbers():
    attention = MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS, d_key_in=10, d_value_in=8)
    query, key, value = tokens(), tokens(KEY, 10), tokens(KEY, 8)
    wrong = "this projection takes tokens of width d_in ({}), got width {} in {}"
    cases = {
        wrong.format(18, 17, (2, 4, 17)): lambda: attention(tokens(width=17), key, value),
        wrong.format(10, 18, (2, 4, 18)): lambda: attention(query),
        wrong.format(8, 10, (2, 5, 10)): lambda: attention(query, key),
        "query must have 3 axes (batch, length, width), got 2 axes: shape (4, 18)": lambda: attention(
            query[0], key, value
        ),
    }
    for text, call in cases.items():
        assert error_text(ValueError, call) == text
    text = error_text(ValueError, lambda: attention(query, key, value, random_mask(KEY, QUERY)))
    assert text.startswith("mask of shape (5, 4) does not broadcast to (2, 3, 4, 5) = (batch, heads, query, key): ")


def test_the_constructors_take_names_only():
    for kind in (MultiHeadAttention, HeadProjection):
        with pytest.raises(TypeError):
            kind(D_MODEL, HEADS)


def test_wrong_arguments_of_attention_are_refused_by_name():
    attention, x = MultiHeadAttention(d_model=6, n_heads=2), torch.zeros(2, 4, 6)
    text = error_text(TypeError, lambda: attention(x, torch.ones(4, 4, dtype=torch.bool)))
    assert text == "key must be a float tensor, got torch.bool: a mask is the fourth argument, or mask="
    text = error_text(TypeError, lambda: multi_head_attention(x, x, [x, x, x, x], 2))
    assert text == "projections must be a dict of four matrices, got list"
    matrices = {name: torch.zeros(6, 6) for name in "qko"} | {"v": torch.zeros(5, 6)}
    text = error_text(ValueError, lambda: multi_head_attention(x, x, matrices, 2))
    assert text == "projections['v'] must have as many rows as a token has numbers (6), got shape (5, 6)"
    text = error_text(ValueError, lambda: MultiHeadAttention(d_model=6, n_heads=2, d_key_in=0))
    assert text == "d_key_in must be at least 1, got 0"
