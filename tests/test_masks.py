"""Masks against their definition as loops and against torch's own, and the sentences of their errors."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sizes import BATCH, D_MODEL, HEADS, KEY, QUERY, error_text, few, numbers, random_mask, same
from torch import nn
from torch.nn import functional as F

from transformer_edu import masks
from transformer_edu.attention import scaled_dot_product_attention

lengths_in_5 = st.lists(st.integers(0, 5), min_size=1, max_size=4)
INF = math.inf


def table(n_queries, n_keys, allowed):
    """The definition of a mask, cell by cell."""
    return torch.tensor([[bool(allowed(i, j)) for j in range(n_keys)] for i in range(n_queries)])


# ---------------------------------------------------------------- padding
@few
@given(lengths_in_5)
def test_padding_mask_is_true_at_the_first_tokens_of_each_sequence(lengths):
    mask = masks.padding_mask(torch.tensor(lengths), 5)
    assert mask.shape == (len(lengths), 1, 1, 5) and mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[key < length for key in range(5)] for length in lengths]
    assert torch.equal(mask, masks.padding_mask(lengths, 5))  # a list will do
    assert mask.sum(-1).flatten().tolist() == lengths


@few
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_padding_mask_from_ids_agrees_with_the_lengths(lengths):
    ids = torch.tensor([[7] * length + [0] * (5 - length) for length in lengths])
    assert torch.equal(masks.padding_mask_from_ids(ids, 0), masks.padding_mask(lengths, 5))
    assert torch.equal(masks.padding_mask_from_ids(ids.flip(1), 0), masks.padding_mask(lengths, 5).flip(3))


def test_padding_mask_from_ids_uses_the_pad_id_it_is_given():
    # hyunwoongko/transformer#11: the source's pad id (1) used on the target, whose pad id is 3
    target = torch.tensor([[2, 4, 1, 3, 3]])
    assert masks.padding_mask_from_ids(target, 3).flatten().tolist() == [True, True, True, False, False]


def test_the_kind_of_integer_and_an_empty_batch_make_no_difference():
    for dtype in (torch.int32, torch.int64, torch.uint8):
        assert torch.equal(masks.padding_mask(torch.tensor([3, 0], dtype=dtype), 4), masks.padding_mask([3, 0], 4))
    assert masks.padding_mask([], 4).shape == (0, 1, 1, 4)
    assert masks.padding_mask([0, 0], 0).shape == (2, 1, 1, 0)


def test_padding_leaves_the_rows_of_padded_queries_alone():
    # harvardnlp/annotated-transformer#137: those rows are right as they are, the loss ignores them
    mask = masks.padding_mask_from_ids(torch.tensor([[1, 2, 3, 0, 0]]), 0)
    _, weights = scaled_dot_product_attention(
        torch.zeros(1, 1, 5, 2), torch.zeros(1, 1, 5, 2), numbers(1, 1, 5, 2), mask
    )
    same(weights[0, 0], [[1 / 3, 1 / 3, 1 / 3, 0, 0]] * 5)


def test_lengths_that_cannot_be_are_refused_with_both_numbers():
    def text(lengths, max_length, kind=ValueError):
        return error_text(kind, lambda: masks.padding_mask(lengths, max_length))

    start = "lengths must lie in 0..max_length (4), got"
    assert text([3, 6, 9], 4) == f"{start} 6: max_length must be at least 9"
    assert text([3, -1], 4) == f"{start} -1: a sequence has 0 or more tokens"
    whole = "lengths must be whole numbers, got dtype {}: lengths.long() makes them so"
    assert text([3.0, 1.0], 4) == whole.format("torch.float32")
    assert text(torch.tensor([True, False]), 4) == whole.format("torch.bool")
    assert text([[3], [1]], 4) == "lengths must have 1 axis (batch), got 2 axes: shape (2, 1)"
    assert text(3, 4) == "lengths must have 1 axis (batch), got a single number: put it into a list, [3]"
    assert text([1], -1) == "max_length must be at least 0, got -1"
    assert text([1], torch.tensor(3), TypeError) == (
        "max_length must be an int, got Tensor (tensor(3)): int(max_length) makes one"
    )


def test_ids_of_another_shape_are_refused():
    text = error_text(ValueError, lambda: masks.padding_mask_from_ids(torch.tensor([1, 2, 0]), 0))
    assert text == "ids must have 2 axes (batch, length), got 1 axis: shape (3,)"


# ---------------------------------------------------------------- order
@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_causal_mask_is_the_lower_triangle_and_torchs_own(length):
    mask = masks.causal_mask(length)
    assert mask.dtype == torch.bool and mask.shape == (length, length)
    assert torch.equal(mask, table(length, length, lambda i, j: j <= i).view(length, length))
    if length:
        assert torch.equal(mask, nn.Transformer.generate_square_subsequent_mask(length) == 0)


@pytest.mark.parametrize("left", [0, 1, 3])
@pytest.mark.parametrize("right", [0, 2])
def test_sliding_window_mask_reaches_left_and_right(left, right):
    mask = masks.sliding_window_mask(6, left=left, right=right)
    assert torch.equal(mask, table(6, 6, lambda i, j: i - left <= j <= i + right))


@pytest.mark.parametrize("left_chunks", [None, 0, 1])
@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_chunk_mask_reaches_to_the_end_of_the_chunk_and_so_many_chunks_back(chunk, left_chunks):
    back = 99 if left_chunks is None else left_chunks
    expected = table(7, 7, lambda i, j: i // chunk - back <= j // chunk <= i // chunk)
    assert torch.equal(masks.chunk_mask(7, chunk=chunk, left_chunks=left_chunks), expected)


@few
@given(st.integers(1, 7))
def test_the_special_cases_of_windows_and_chunks_are_the_plain_masks(length):
    causal, everything = masks.causal_mask(length), torch.ones(length, length, dtype=torch.bool)
    assert torch.equal(masks.sliding_window_mask(length, left=length), causal)
    assert torch.equal(masks.sliding_window_mask(length, left=length, right=length), everything)
    assert torch.equal(masks.sliding_window_mask(length, left=0), torch.eye(length, dtype=torch.bool))
    assert torch.equal(masks.chunk_mask(length, chunk=1), causal)
    assert torch.equal(masks.chunk_mask(length, chunk=length), everything)


def test_sizes_that_cannot_be_are_refused_by_name():
    cases = {
        "length must be at least 0, got -1": lambda: masks.causal_mask(-1),
        "length must be at least 0, got -2": lambda: masks.sliding_window_mask(-2, left=1),
        "left must be at least 0, got -1": lambda: masks.sliding_window_mask(4, left=-1),
        "right must be at least 0, got -3": lambda: masks.sliding_window_mask(4, left=0, right=-3),
        "length must be at least 0, got -4": lambda: masks.chunk_mask(-4, chunk=1),
        "chunk must be at least 1, got 0": lambda: masks.chunk_mask(4, chunk=0),
        "left_chunks must be at least 0, got -1": lambda: masks.chunk_mask(4, chunk=2, left_chunks=-1),
        "target_length must be at least 0, got -1": lambda: masks.cross_mask([1], -1, 4),
        "source_lengths must lie in 0..max_source (4), got 5: max_source must be at least 5": lambda: masks.cross_mask(
            [5], 3, 4
        ),
        "lengths must lie in 0..max_length (3), got 4: max_length must be at least 4": lambda: masks.decoder_mask(
            [4], 3
        ),
    }
    for text, call in cases.items():
        assert error_text(ValueError, call) == text
    text = error_text(TypeError, lambda: masks.causal_mask(3.0))
    assert text == "length must be an int, got float (3.0): int(length) makes one"


# ---------------------------------------------------------------- both
@few
@given(lengths_in_5, st.integers(0, 4))
def test_cross_mask_says_for_every_target_position_which_source_is_real(lengths, target_length):
    mask = masks.cross_mask(lengths, target_length, 5)
    assert mask.shape == (len(lengths), 1, target_length, 5)
    for item, length in zip(mask, lengths, strict=True):
        assert item[0].tolist() == [[key < length for key in range(5)]] * target_length


def test_cross_mask_has_no_causality_in_it():
    # keras-team/keras-io#1046
    assert masks.cross_mask([2], 3, 4)[0, 0].tolist() == [[True, True, False, False]] * 3


@few
@given(lengths_in_5)
def test_decoder_mask_is_causal_and_padding(lengths):
    mask = masks.decoder_mask(lengths, 5)
    assert mask.shape == (len(lengths), 1, 5, 5)
    for item, length in zip(mask, lengths, strict=True):
        assert torch.equal(item[0], table(5, 5, lambda i, j, length=length: j <= i and j < length))


def test_combine_masks_forbids_what_any_of_them_forbids():
    padding, causal = masks.padding_mask([3, 1], 4), masks.causal_mask(4)
    combined = masks.combine_masks(padding, causal)
    assert torch.equal(combined, masks.decoder_mask([3, 1], 4))
    assert torch.equal(combined, masks.combine_masks(causal, None, padding, causal))
    assert torch.equal(masks.combine_masks(None, causal), causal)
    assert masks.combine_masks(None, None) is None and masks.combine_masks() is None


def test_causality_does_not_depend_on_a_padding_mask():
    # facebookresearch/xformers#103: the causal mask was skipped when no padding mask came
    mask = masks.combine_masks(masks.causal_mask(3), None)
    _, weights = scaled_dot_product_attention(numbers(3, 2), numbers(3, 2), numbers(3, 2), mask)
    assert weights[0].tolist() == [1, 0, 0]


def test_masks_that_do_not_combine_are_named_with_all_shapes():
    text = error_text(ValueError, lambda: masks.combine_masks(masks.padding_mask([2], 4), None, masks.causal_mask(5)))
    assert text == (
        "masks of shapes (1, 1, 1, 4), (5, 5) do not broadcast together: give each the axes "
        "(batch, heads, query, key), with size 1 where it says the same for all"
    )
    not_bool = " must have dtype bool (True = may attend), got torch.float32: "
    way_out = "masks.from_additive (0 and -inf) and masks.from_integers (0 and 1) convert"
    text = error_text(ValueError, lambda: masks.combine_masks(masks.causal_mask(2), torch.ones(2, 2)))
    assert text == f"mask of shape (2, 2){not_bool}{way_out}"


def test_empty_rows_finds_the_queries_that_may_attend_to_nothing():
    mask = torch.ones(2, 3, 4, dtype=torch.bool)
    mask[1, 2] = False
    mask[0, 1, 1:] = False
    assert masks.empty_rows(mask).nonzero().tolist() == [[1, 2]]
    assert masks.empty_rows(masks.decoder_mask([3, 0], 3))[:, 0].tolist() == [[False] * 3, [True] * 3]
    assert error_text(ValueError, lambda: masks.empty_rows(torch.ones(2, 3))).startswith("mask of shape (2, 3) must")


# ---------------------------------------------------------------- what others call True
@few
@given(st.integers(0, 999))
def test_every_converter_is_undone_by_its_inverse(seed):
    mask = torch.rand(BATCH, HEADS, QUERY, KEY, generator=torch.Generator().manual_seed(seed)) < 0.5
    assert torch.equal(masks.from_additive(masks.to_additive(mask)), mask)
    assert torch.equal(masks.from_integers(masks.to_integers(mask)), mask)
    multihead = masks.to_multihead(mask, BATCH, HEADS)
    assert torch.equal(masks.from_multihead(multihead, n_heads=HEADS), mask)
    assert multihead.shape == (BATCH * HEADS, QUERY, KEY)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_an_additive_mask_is_0_and_minus_infinity_in_every_dtype(dtype):
    additive = masks.to_additive(masks.causal_mask(2), dtype)
    assert additive.dtype == dtype and additive.tolist() == [[0, -INF], [0, 0]]
    for fill in (-1e4, torch.finfo(dtype).min, -INF):  # what others fill with
        filled = torch.tensor([[0, fill], [0, 0]]).to(dtype)
        assert torch.equal(masks.from_additive(filled), masks.causal_mask(2))


def test_an_additive_mask_added_to_the_scores_does_what_the_bool_mask_does():
    query, key, value = numbers(QUERY, 6), numbers(KEY, 6, seed=1), numbers(KEY, 7, seed=2)
    mask = random_mask(QUERY, KEY)
    masked, _ = scaled_dot_product_attention(query, key, value, mask)
    added, _ = scaled_dot_product_attention(query, key, value, bias=masks.to_additive(mask))
    assert torch.equal(masked, added)


def test_integers_are_1_where_attention_is_allowed():
    assert masks.to_integers(masks.causal_mask(2)).tolist() == [[1, 0], [1, 1]]
    for dtype in (torch.int64, torch.uint8, torch.float32, torch.bool):
        assert torch.equal(masks.from_integers(masks.causal_mask(3).to(dtype)), masks.causal_mask(3))


def test_numbers_that_are_no_mask_are_refused_with_the_number():
    cases = {
        "bias must hold only 0 and -inf to be a mask, got 1: this looks like a 0/1 mask: use masks.from_integers": (
            lambda: masks.from_additive(torch.tensor([0.0, 1.0]))
        ),
        "bias must hold only 0 and -inf to be a mask, got -0.5: pass it as bias= instead": (
            lambda: masks.from_additive(torch.tensor([0.0, -0.5, -INF]))
        ),
        "bias must be a float tensor of 0 and -inf, got torch.int64: see masks.from_integers": (
            lambda: masks.from_additive(torch.tensor([0, 1]))
        ),
        "ones must hold only 0 and 1, got -inf: an additive mask goes to masks.from_additive": (
            lambda: masks.from_integers(torch.tensor([0.0, -INF]))
        ),
        "ones must hold only 0 and 1, got 2: an additive mask goes to masks.from_additive": (
            lambda: masks.from_integers(torch.tensor([[0, 1, 2]]))
        ),
    }
    for text, call in cases.items():
        assert error_text(ValueError, call) == text
    for convert in (masks.to_additive, masks.to_integers):
        text = error_text(ValueError, lambda convert=convert: convert(torch.ones(2, 2)))
        assert text.startswith("mask of shape (2, 2) must have dtype bool (True = may attend), got torch.float32: ")


@pytest.mark.parametrize(
    "shape", [(QUERY, KEY), (1, 1, QUERY, KEY), (BATCH, 1, QUERY, KEY), (BATCH, HEADS, QUERY, KEY)]
)
def test_to_multihead_makes_torchs_module_mask_what_ours_masks(shape):
    # lsdefine/attention-is-all-you-need-keras#36: heads and masks must be folded in the same order
    module = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True)
    x, memory = numbers(BATCH, QUERY, D_MODEL), numbers(BATCH, KEY, D_MODEL, seed=1)
    mask = random_mask(*shape, seed=3)
    attn_mask = masks.to_multihead(mask, BATCH, HEADS)
    assert attn_mask.shape == (BATCH * HEADS, QUERY, KEY)
    _, weights = module(x, memory, memory, attn_mask=attn_mask, average_attn_weights=False)
    assert torch.equal(weights > 0, mask.expand(BATCH, HEADS, QUERY, KEY))


def test_from_multihead_reads_both_of_torchs_masks():
    blocked, padding = ~random_mask(QUERY, KEY, seed=1), ~masks.padding_mask([5, 2], KEY)[:, 0, 0]
    both = masks.from_multihead(blocked, padding)
    assert both.shape == (BATCH, 1, QUERY, KEY)
    assert torch.equal(both, ~blocked & ~padding[:, None, None])
    assert torch.equal(masks.from_multihead(blocked), ~blocked)
    assert torch.equal(masks.from_multihead(key_padding_mask=padding), masks.padding_mask([5, 2], KEY))
    assert masks.from_multihead() is None


def test_torchs_masks_of_another_form_are_refused_in_torchs_own_terms():
    bool_mask = torch.ones(6, QUERY, KEY, dtype=torch.bool)
    cases = {
        "attn_mask (6, 4, 5) is (batch * heads, query, key): give n_heads too": (
            lambda: masks.from_multihead(bool_mask)
        ),
        "attn_mask.shape[0] (6) must be divisible by n_heads (4): it is batch * heads": (
            lambda: masks.from_multihead(bool_mask, n_heads=4)
        ),
        "key_padding_mask must have 2 axes (batch, key), got 1 axis: shape (5,)": (
            lambda: masks.from_multihead(key_padding_mask=torch.zeros(5).bool())
        ),
        "attn_mask of shape (4, 5) must have dtype bool (True = blocked), got torch.float32: "
        "masks.from_additive (0 and -inf) and masks.from_integers (0 and 1) convert": (
            lambda: masks.from_multihead(torch.zeros(4, 5))
        ),
        "key_padding_mask of shape (2, 5) must have dtype bool (True = blocked), got torch.int64: "
        "masks.from_additive (0 and -inf) and masks.from_integers (0 and 1) convert": (
            lambda: masks.from_multihead(key_padding_mask=torch.zeros(2, 5).long())
        ),
        "mask must have at least 2 axes (..., query, key), got 1 axis: shape (5,)": (
            lambda: masks.to_multihead(torch.ones(5).bool(), 2, 3)
        ),
        "mask of shape (2, 1, 4, 5) does not broadcast to (3, 2, 4, 5) = (batch, heads, query, key): "
        "shapes are aligned "
        "from the right, so axis -4 of mask must be 3 or 1": (
            lambda: masks.to_multihead(torch.ones(2, 1, 4, 5).bool(), 3, 2)
        ),
        "batch must be at least 1, got 0": lambda: masks.to_multihead(masks.causal_mask(3), 0, 2),
        "n_heads must be at least 1, got 0": lambda: masks.to_multihead(masks.causal_mask(3), 2, 0),
    }
    for text, call in cases.items():
        assert error_text(ValueError, call) == text


def test_a_bool_mask_means_the_opposite_in_torchs_function_and_in_its_module():
    # rasbt/LLMs-from-scratch#1061, pytorch/pytorch#120668
    allow, x = masks.causal_mask(3), numbers(1, 1, 3, 2)
    ours, _ = scaled_dot_product_attention(x, x, x, allow)
    same(ours, F.scaled_dot_product_attention(x, x, x, attn_mask=allow))
    inverted, weights = scaled_dot_product_attention(x, x, x, ~allow)
    assert (weights[0, 0, 0] > 0).tolist() == [False, True, True]  # the first row sees only the future
    assert not inverted[0, 0, -1].any()  # and the last sees nothing


def test_a_float_key_padding_mask_of_0_and_minus_infinity_is_the_bool_one():
    # pytorch/pytorch#92554: as 0 and 1 it only raises the scores of the padded key
    module = nn.MultiheadAttention(6, 2, batch_first=True)
    x = numbers(1, 3, 6)
    padding = torch.tensor([[False, False, True]])
    by_bool, weights = module(x, x, x, key_padding_mask=padding)
    by_float, _ = module(x, x, x, key_padding_mask=masks.to_additive(~padding))
    _, raised = module(x, x, x, key_padding_mask=padding.float())
    same(by_float, by_bool)
    _, unmasked = module(x, x, x)
    assert (weights[..., 2] == 0).all() and (raised[..., 2] > unmasked[..., 2]).all()
    assert masks.from_multihead(key_padding_mask=padding).flatten().tolist() == [True, True, False]


def test_a_batch_by_length_mask_is_taken_for_query_by_key_only_when_the_sizes_happen_to_agree():
    # discuss.pytorch.org 179371: Hugging Face's attention_mask (batch, length) passed as it is
    attention_mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    x = numbers(2, 1, 3, 6)
    text = error_text(ValueError, lambda: scaled_dot_product_attention(x, x, x, masks.from_integers(attention_mask)))
    assert text.startswith("mask of shape (2, 3) does not broadcast to (2, 1, 3, 3) = (batch, heads, query, key): ")
    mask = masks.from_integers(attention_mask)[:, None, None]
    assert torch.equal(mask, masks.padding_mask([3, 2], 3))


def test_arguments_of_another_kind_are_refused_by_name():
    cases = {
        "lengths must be a tensor or a list of whole numbers, got str": lambda: masks.padding_mask("abc", 4),
        "max_length must be an int, got list: are the arguments in their order?": lambda: masks.padding_mask(4, [3, 1]),
        "pad_id must be an int, the id of the padding token, got str": lambda: masks.padding_mask_from_ids(
            torch.zeros(2, 3).long(), "<pad>"
        ),
        "combine_masks takes the masks one by one, got a list of them: combine_masks(*masks)": lambda: (
            masks.combine_masks([masks.causal_mask(2)])
        ),
    }
    for said, call in cases.items():
        assert error_text(TypeError, call) == said
    text = error_text(ValueError, lambda: masks.to_additive(masks.causal_mask(2), torch.int64))
    assert text == "dtype must be a float dtype, which can hold -inf, got torch.int64"
