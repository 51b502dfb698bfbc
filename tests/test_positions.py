"""Positions: outside numbers, properties, and what the errors say."""

import math

import hypothesis
import pytest
import torch
from golden_case import Case
from golden_runners import runner_for
from hypothesis import strategies as some
from sizes import BATCH, D_MODEL, KEY, QUERY, error_text, few, numbers, same
from torch import nn

from transformer_edu.attention import scaled_dot_product_attention
from transformer_edu.masks import padding_mask, padding_mask_from_ids
from transformer_edu.positions import (
    LearnedPositions,
    SinusoidalPositions,
    TokenEmbedding,
    add_positions,
    embed_tokens,
    position_ids,
    sinusoidal_positions,
    sinusoids,
)

VOCAB, MAX_LENGTH = 11, 9


def by_loop(length, d_model, base=10000.0):
    """The paper's formula, one Python float at a time."""
    rows = []
    for p in range(length):
        row = []
        for column in range(d_model):
            angle = p / base ** (2 * (column // 2) / d_model)
            row.append(math.cos(angle) if column % 2 else math.sin(angle))
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64).reshape(length, d_model)


# ---------------------------------------------------------------- the sinusoid
@few
@hypothesis.given(some.integers(0, 40), some.integers(1, 19), some.sampled_from([10000.0, 1000.0, 1.0, 7.5]))
def test_the_sinusoid_is_the_papers_formula_at_every_length_width_and_base(length, d_model, base):
    table = sinusoidal_positions(length, d_model, base=base)
    assert table.dtype == torch.float32
    same(table, by_loop(length, d_model, base), tolerance=1e-6)


@pytest.mark.parametrize("p", [1000, 4999, 20000, 10**6])
def test_large_positions_are_as_exact_as_small_ones(p):
    row = sinusoidal_positions(1, 16, offset=p)
    exact = [f(p / 10000 ** (2 * i / 16)) for i in range(8) for f in (math.sin, math.cos)]
    same(row[0], torch.tensor(exact, dtype=torch.float64), tolerance=1e-6)


def test_a_longer_table_begins_with_the_shorter_one_and_an_offset_skips_rows():
    table = sinusoidal_positions(50, 7)
    assert torch.equal(table[:KEY], sinusoidal_positions(KEY, 7))
    assert torch.equal(table[30:], sinusoidal_positions(20, 7, offset=30))


@pytest.mark.parametrize("d_model", [2, 16, 18])
def test_rows_of_even_width_have_one_length_and_products_that_depend_on_the_distance_alone(d_model):
    table = sinusoidal_positions(40, d_model, dtype=torch.float64)
    products = table @ table.T
    same(products.diagonal(), torch.full((40,), d_model / 2))
    for distance in range(1, 40):
        same(products.diagonal(distance), products[0, distance].expand(40 - distance), tolerance=1e-9)


def test_a_shift_is_one_linear_map_for_all_positions_that_turns_each_pair_of_columns():
    table, shift = sinusoidal_positions(30, 6, dtype=torch.float64), 5
    turn = torch.zeros(6, 6, dtype=torch.float64)
    for i in range(3):
        angle = shift / 10000 ** (2 * i / 6)
        turn[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor(
            [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]], dtype=torch.float64
        )
    same(table[:-shift] @ turn, table[shift:], tolerance=1e-9)


@pytest.mark.parametrize("d_model", [1, 5, 15])
def test_an_odd_width_ends_with_a_sine_whose_cosine_is_left_out(d_model):
    table = sinusoidal_positions(8, d_model)
    last = [math.sin(p / 10000 ** ((d_model - 1) / d_model)) for p in range(8)]
    same(table[:, -1], torch.tensor(last, dtype=torch.float64), tolerance=1e-6)


def test_sinusoids_of_any_positions_negative_ones_too_keep_their_shape():
    places = torch.tensor([[-3, 0, 2], [7, 7, 100]])
    rows = sinusoids(places, 8)
    assert rows.shape == (2, 3, 8)
    same(rows[1, 2], sinusoidal_positions(101, 8)[100])
    same(rows[0, 0], sinusoidal_positions(4, 8)[3] * torch.tensor([-1.0, 1.0] * 4))  # sin is odd, cos is even


def test_the_numbers_of_a_smaller_dtype_are_the_exact_ones_rounded():
    for dtype in (torch.float16, torch.bfloat16):
        assert torch.equal(sinusoidal_positions(300, 8, dtype=dtype), by_loop(300, 8).to(dtype))


# ---------------------------------------------------------------- adding it
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_the_module_adds_the_table_to_every_sequence_in_the_tokens_dtype(dtype):
    x = numbers(BATCH, KEY, D_MODEL, dtype=dtype)
    out = SinusoidalPositions(d_model=D_MODEL)(x)
    assert out.dtype == dtype
    assert torch.equal(out, x + by_loop(KEY, D_MODEL).to(dtype))


def test_a_long_sequence_needs_no_table_and_the_module_learns_nothing():
    module = SinusoidalPositions(d_model=4)
    same(module(torch.zeros(1, 7000, 4))[0, 6999], sinusoidal_positions(1, 4, offset=6999)[0])
    assert list(module.parameters()) == [] and module.state_dict() == {}


def made(kind):
    if kind == "sinusoidal":
        return SinusoidalPositions(d_model=D_MODEL)
    torch.manual_seed(0)
    return LearnedPositions(max_length=MAX_LENGTH, d_model=D_MODEL)


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_one_token_at_a_time_with_an_offset_is_the_same_as_all_at_once(kind):
    module, x = made(kind), numbers(BATCH, KEY, D_MODEL)
    steps = [module(x[:, t : t + 1], offset=t) for t in range(KEY)]
    assert torch.equal(torch.cat(steps, 1), module(x))


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_positions_given_for_each_token_make_left_padding_harmless(kind):
    module, x = made(kind), numbers(1, 3, D_MODEL)
    padded = torch.cat([numbers(1, 2, D_MODEL, seed=1), x], 1)
    ids = position_ids(torch.tensor([[False, False, True, True, True]]))
    assert torch.equal(module(padded, positions=ids)[:, 2:], module(x))
    assert not torch.allclose(module(padded)[:, 2:], module(x))


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_dropout_falls_on_the_sum_and_in_training_only(kind):
    module, x = made(kind), numbers(BATCH, KEY, D_MODEL)
    module.dropout = 1.0
    assert not module.train()(x).any()
    module.dropout, plain = 0.5, module.eval()(x)
    out = module.train()(x)
    assert 0.3 < (out == 0).float().mean() < 0.7
    same(out[out != 0], 2 * plain[out != 0])


def test_attention_without_positions_is_blind_to_order_and_with_them_is_not():
    x, order = numbers(1, KEY, D_MODEL), torch.tensor([3, 0, 4, 1, 2])

    def attend(x):
        return scaled_dot_product_attention(x, x, x)[0]

    same(attend(x)[:, order], attend(x[:, order]))
    add = SinusoidalPositions(d_model=D_MODEL)
    assert (attend(add(x))[:, order] - attend(add(x[:, order]))).abs().max() > 0.1


def test_add_positions_takes_the_tables_first_rows_leaves_x_and_passes_gradients_to_both():
    x = numbers(BATCH, QUERY, D_MODEL).requires_grad_()
    table = numbers(MAX_LENGTH, D_MODEL, seed=1).requires_grad_()
    before = x.detach().clone()
    out = add_positions(x, table)
    for b in range(BATCH):
        for t in range(QUERY):
            same(out[b, t], x[b, t] + table[t])
    out.sum().backward()
    assert torch.equal(x, before) and torch.equal(x.grad, torch.ones_like(x))
    same(table.grad[:, 0], [float(BATCH)] * QUERY + [0.0] * (MAX_LENGTH - QUERY))


def test_learned_rows_that_no_sequence_reaches_keep_their_first_numbers():
    module = made("learned")
    first = module.table.detach().clone()
    module(numbers(BATCH, KEY, D_MODEL)).square().sum().backward()
    with torch.no_grad():
        module.table -= 0.1 * module.table.grad
    assert torch.equal(module.table[KEY:], first[KEY:]) and (module.table[:KEY] != first[:KEY]).all()


def test_learned_rows_begin_small_and_random():
    torch.manual_seed(0)
    assert 0.09 < LearnedPositions(max_length=200, d_model=50).table.std() < 0.11
    assert 0.9 < LearnedPositions(max_length=200, d_model=50, std=1.0).table.std() < 1.1


# ---------------------------------------------------------------- tokens
def test_an_embedding_is_torchs_times_the_root_of_the_width():
    tokens = torch.tensor([[3, 0, 10], [7, 7, 1]])
    theirs = nn.Embedding(VOCAB, D_MODEL)
    same(embed_tokens(tokens, theirs.weight), theirs(tokens) * D_MODEL**0.5)
    same(embed_tokens(tokens, theirs.weight, scale=1.0), theirs(tokens))
    module = TokenEmbedding(vocab_size=VOCAB, d_model=D_MODEL)
    module.load_state_dict(theirs.state_dict())
    same(module(tokens), theirs(tokens) * D_MODEL**0.5)
    assert torch.equal(embed_tokens(tokens.int(), theirs.weight), embed_tokens(tokens, theirs.weight))


@pytest.mark.parametrize("scale", [None, 1.0, 3.0])
def test_what_comes_out_of_a_new_embedding_has_variance_1_whatever_the_scale(scale):
    torch.manual_seed(0)
    out = TokenEmbedding(vocab_size=200, d_model=64, scale=scale)(torch.arange(200)[None])
    assert 0.95 < out.var() < 1.05


def test_the_padding_token_has_a_vector_of_0_and_no_gradient():
    torch.manual_seed(0)
    module = TokenEmbedding(vocab_size=VOCAB, d_model=D_MODEL, pad_id=2)
    tokens = torch.tensor([[5, 2, 2], [1, 4, 2]])
    out = module(tokens)
    assert torch.equal((out == 0).all(-1), tokens == 2)
    (out + 1).square().sum().backward()
    assert module.weight.grad[5].abs().min() > 0 and not module.weight.grad[2].any()


# ---------------------------------------------------------------- padding
def counted(row):
    ids, count = [], 0
    for real in row:
        ids.append(count if real else None)
        count += real
    return ids


@few
@hypothesis.given(some.lists(some.lists(some.booleans(), min_size=6, max_size=6), min_size=1, max_size=4))
def test_real_tokens_are_counted_from_0_and_padding_has_a_valid_id(rows):
    ids = position_ids(torch.tensor(rows))
    assert ids.dtype == torch.int64 and ids.min() >= 0 and ids.max() < 6
    for row, mine in zip(rows, ids.tolist(), strict=True):
        assert all(want is None or want == got for want, got in zip(counted(row), mine, strict=True))


def test_the_masks_of_lesson_01_give_position_ids():
    assert position_ids(padding_mask([3, 1], 4)[:, 0, 0]).tolist() == [[0, 1, 2, 2], [0, 0, 0, 0]]
    ids = torch.tensor([[0, 0, 5, 6]])
    assert position_ids(padding_mask_from_ids(ids, pad_id=0)[:, 0, 0]).tolist() == [[0, 0, 0, 1]]


# ---------------------------------------------------------------- golden files of other sizes
def test_golden_files_of_other_sizes_and_bases_need_no_new_code():
    x = numbers(BATCH, KEY, 10)
    cases = [
        ("sinusoid_other", {}, {"out.table_7x9": by_loop(7, 9).float(), "out.b.table_3x6": by_loop(3, 6).float()}),
        ("sinusoid_base", {"base": 100.0}, {"out.table": by_loop(6, 8, 100.0)}),
        ("sinusoid_rows", {}, {"in.positions": torch.tensor([2, 5]), "out.float64": by_loop(6, 4)[[2, 5]]}),
        ("sinusoid_sum", {}, {"in.x": x, "out.y": x + by_loop(KEY, 10).float()}),
        ("s000_pos_table_other", {}, {"out.table_4x3": by_loop(4, 3).float()}),
    ]
    table = by_loop(12, 10).float()
    x = numbers(3, 1, 10)
    one = {"in.x": x, "w.pe": table[None], "out.corrected": x + table[:1], "out.faithful": x + table}
    cases.append(("s001_faithful_pe_len1_broadcast_other", {"max_len": 12}, one))
    for name, config, tensors in cases:
        case = Case(name, {"config": config}, tensors)
        compared = list(runner_for(name)(case))
        assert {entry for entry, _, _ in compared} == {entry for entry in tensors if entry.startswith("out.")}
        for entry, mine, golden in compared:
            assert mine.shape == golden.shape, entry
            same(mine, golden)


def test_the_golden_runners_see_a_wrong_exponent(monkeypatch):
    monkeypatch.setattr("golden_positions.sinusoids", lambda p, d, **_: sinusoids(p, 2 * d)[:, :d])
    case = Case("sinusoid_other", {}, {"out.table_7x9": by_loop(7, 9).float()})
    ((_, mine, golden),) = runner_for("sinusoid_other")(case)
    assert not torch.allclose(mine, golden, atol=1e-2)


# ---------------------------------------------------------------- errors
TABLE, X = torch.zeros(MAX_LENGTH, 4), torch.zeros(2, 5, 4)
IDS = torch.zeros(2, 5, dtype=torch.long)
REFUSED = {
    "length_negative": (ValueError, lambda: sinusoidal_positions(-1, 4), "length must be at least 0, got -1"),
    "width_0": (ValueError, lambda: sinusoidal_positions(3, 0), "d_model must be at least 1, got 0"),
    "length_float": (TypeError, lambda: sinusoidal_positions(3.0, 4), "length must be an int, got float (3.0)"),
    "offset_negative": (ValueError, lambda: sinusoidal_positions(3, 4, offset=-1), "offset must be at least 0"),
    "base_0": (ValueError, lambda: sinusoidal_positions(3, 4, base=0), "base must be above 0, got 0: the paper"),
    "positions_list": (TypeError, lambda: sinusoids([1, 2], 4), "positions must be a torch.Tensor, got list"),
    "beyond": (
        ValueError,
        lambda: add_positions(torch.zeros(1, 12, 4), TABLE),
        "there are 12 tokens, but max_length is 9: there is no row for a position above 8. Cut the sequence, or make",
    ),
    "beyond_by_offset": (
        ValueError,
        lambda: LearnedPositions(max_length=9, d_model=4)(X, offset=6),
        "there are 5 tokens after the first 6, but max_length is 9",
    ),
    "positions_beyond": (
        ValueError,
        lambda: add_positions(X, TABLE, positions=IDS + 9),
        "positions must lie in 0..8, because max_length is 9; got 9",
    ),
    "positions_negative": (ValueError, lambda: add_positions(X, TABLE, positions=IDS - 1), "in 0..8, .*; got -1"),
    "positions_float": (ValueError, lambda: add_positions(X, TABLE, positions=IDS.float()), "positions.long()"),
    "positions_shape": (
        ValueError,
        lambda: add_positions(X, TABLE, positions=IDS[:, :3]),
        "positions must have a number for each token, (2, 5) = (batch, length), got (2, 3)",
    ),
    "positions_and_offset": (
        ValueError,
        lambda: SinusoidalPositions(d_model=4)(X, offset=2, positions=IDS),
        "give offset (2) or positions, not both",
    ),
    "x_axes": (ValueError, lambda: add_positions(X[0], TABLE), "x must have 3 axes (batch, length, d_model), got 2"),
    "x_width": (
        ValueError,
        lambda: SinusoidalPositions(d_model=6)(X),
        "x must have tokens of width d_model (6), got width 4 in (2, 5, 4)",
    ),
    "table_axes": (ValueError, lambda: add_positions(X, TABLE[None]), "table must have 2 axes (max_length, d_model)"),
    "token_beyond": (
        ValueError,
        lambda: embed_tokens(IDS + 9, TABLE),
        "tokens must lie in 0..8, because vocab_size is 9; got 9",
    ),
    "token_negative": (ValueError, lambda: embed_tokens(IDS - 1, TABLE), "in 0..8, because vocab_size is 9; got -1"),
    "token_float": (
        ValueError,
        lambda: TokenEmbedding(vocab_size=9, d_model=4)(IDS.float()),
        "tokens must be whole numbers (torch.int64), got torch.float32: tokens.long() makes them so",
    ),
    "weight_axes": (ValueError, lambda: embed_tokens(IDS, TABLE[0]), "weight must have 2 axes (vocab_size, d_model)"),
    "pad_id_beyond": (
        ValueError,
        lambda: TokenEmbedding(vocab_size=9, d_model=4, pad_id=9),
        "pad_id must lie in 0..8, because vocab_size is 9; got 9",
    ),
    "dropout": (ValueError, lambda: SinusoidalPositions(d_model=4, dropout=2.0), "dropout must lie in 0..1, got 2.0"),
    "max_length_0": (ValueError, lambda: LearnedPositions(max_length=0, d_model=4), "max_length must be at least 1"),
    "mask_integers": (
        ValueError,
        lambda: position_ids(torch.ones(2, 5, dtype=torch.long)),
        "mask must have dtype bool (True = real token), got torch.int64: mask != 0 makes it so",
    ),
    "mask_axes": (
        ValueError,
        lambda: position_ids(padding_mask([2], 3)),
        "mask must have 2 axes (batch, length), got 4 axes: shape (1, 1, 1, 3)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_right_is_refused_with_both_numbers(name):
    kind, call, said = REFUSED[name]
    for part in said.split(".*"):
        assert part in error_text(kind, call)
