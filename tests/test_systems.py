"""The public systems' own ways: what their faults and options change. Their numbers are held in test_golden.py."""

import pytest
import torch
from sizes import error_text, numbers, same
from torch import nn

from transformer_edu.heads import MultiHeadAttention
from transformer_edu.norms import layer_norm
from transformer_edu.systems import (
    FAULTS_001,
    NAMES_003,
    KeepEverySecond,
    System000,
    System001,
    System002,
    attention_003,
    load_weights,
    our_name,
)

SIZES = {"d_model": 12, "n_heads": 3, "d_ff": 7, "n_layers": 2, "max_length": 9}
TEXT = {"source_vocab_size": 11, "target_vocab_size": 13} | SIZES
FEATURES, LENGTHS, LABELS = numbers(2, 8, 5), torch.tensor([8, 4]), torch.tensor([[1, 4, 2], [1, 2, 0]])
SOURCE, TARGET = torch.tensor([[5, 6, 7, 8], [9, 3, 0, 0]]), torch.tensor([[1, 4, 12], [1, 2, 0]])


def speech(frontend=None, **options):
    torch.manual_seed(0)
    frontend = frontend or nn.Linear(5, 12)
    return System000(frontend=frontend, vocab_size=6, **SIZES, **options).eval()


def text(kind, **options):
    torch.manual_seed(0)
    return kind(**TEXT, **options).eval()


# ---------------------------------------------------------------- 000
def test_system_000_hears_nothing_of_padded_frames():
    model = speech()
    other = FEATURES.clone()
    other[1, 4:] = 3.0
    same(model(other, LENGTHS, LABELS), model(FEATURES, LENGTHS, LABELS), 1e-6)


def test_system_000_hears_padding_when_its_front_end_shortens_what_the_lengths_do_not():
    other = FEATURES.clone()
    other[1, 4:] = 3.0
    for follow, hears in ((False, True), (True, False)):
        model = speech(KeepEverySecond(d_in=5, d_model=12), lengths_follow=follow)
        moved = (model(other, LENGTHS, LABELS) - model(FEATURES, LENGTHS, LABELS))[1].abs().max()
        assert (moved > 1e-4) == hears


def test_keeping_every_second_frame_rounds_up():
    front = KeepEverySecond(d_in=5, d_model=12)
    for n_frames in (7, 8):
        kept = front(numbers(1, n_frames, 5)).shape[1]
        assert kept == front.lengths(torch.tensor([n_frames])).item() == 4


def test_system_000_has_fixed_positions_and_finite_answers_to_silence():
    model = speech()
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert not any("positions" in name for name in trained)
    assert model(FEATURES, torch.tensor([8, 0]), LABELS).isfinite().all()


# ---------------------------------------------------------------- 001
def test_system_001_answers_with_log_probabilities():
    answers = text(System001)(SOURCE, TARGET)
    same(answers.exp().sum(-1), torch.ones(2, 3), 1e-5)


def test_a_mask_of_system_001_counts_unless_it_is_ignored():
    source_mask = (SOURCE != 0)[:, None]
    for faults, counts in (((), True), (["mask_ignored"], False)):
        model = text(System001, faults=faults)
        moved = (model(SOURCE, TARGET, source_mask) - model(SOURCE, TARGET))[1].abs().max()
        assert (moved > 1e-4) == counts
        same(model(SOURCE, TARGET, source_mask.long()), model(SOURCE, TARGET, source_mask), 0)


def test_the_faulty_norm_subtracts_the_sum():
    norm = text(System001, faults=["layer_norm_sum"]).transformer.encoder.final_norm
    x = numbers(2, 4, 12)
    shifted = norm(x) * (x.std(-1, keepdim=True) + 1e-6)
    same(shifted, x - x.sum(-1, keepdim=True), 1e-4)
    right = text(System001).transformer.encoder.final_norm
    same(right(x), layer_norm(x, torch.ones(12), torch.zeros(12), 1e-6, unbiased=True, eps_outside=True), 1e-6)


def test_the_whole_table_makes_many_tokens_of_one_and_refuses_other_lengths():
    model = text(System001, faults=["whole_table"])
    one = torch.tensor([[3]])
    assert model.transformer.encode(one).shape == (1, SIZES["max_length"], 12)
    with pytest.raises(RuntimeError):
        model.transformer.encode(SOURCE)


def test_unknown_faults_are_refused_with_the_list():
    said = error_text(ValueError, lambda: text(System001, faults=["no_dropout"]))
    assert all(fault in said for fault in FAULTS_001)
    said = error_text(TypeError, lambda: text(System001, faults="mask_ignored"))
    assert said == "faults must be a list of names from FAULTS_001, got str ('mask_ignored')"


# ---------------------------------------------------------------- 002
def test_system_002_looks_at_padded_targets_unless_repaired():
    other = TARGET.clone()
    other[1, 0] = 5
    padded = TARGET.clone()
    padded[1, 0] = 0
    for repaired, looks in ((False, True), (True, False)):
        model = text(System002, mask_target_padding=repaired)
        with torch.no_grad():
            model.transformer.target_embedding.tokens.weight[0] = 1.0
            before = model(SOURCE, padded)
            model.transformer.target_embedding.tokens.weight[0] = -1.0
            moved = (model(SOURCE, padded) - before)[1, 1].abs().max()  # the token after a padded one
        assert (moved > 1e-4) == looks


def test_the_scale_of_system_002_flattens_its_weights():
    x = numbers(1, 5, 12) * 3
    mine, repaired = (text(System002, correct_scale=c).transformer.encoder.layers[0] for c in (False, True))
    weights = [layer.self_attention.sublayer(x, need_weights=True)[1] for layer in (mine, repaired)]
    assert weights[0].amax(-1).mean() < weights[1].amax(-1).mean()


# ---------------------------------------------------------------- 003
def test_system_003_knows_positions_only_when_it_is_relative():
    assert attention_003(d_model=12, n_heads=3).position is None
    for legacy in (True, False):
        attention = attention_003(d_model=12, n_heads=3, relative=True, legacy=legacy)
        x = numbers(1, 5, 12)
        order = torch.tensor([1, 0, 2, 3, 4])
        assert (attention(x)[0][:, order] - attention(x[:, order])[0]).abs().max() > 1e-4


def test_system_003_gives_zeros_where_nothing_may_be_read():
    attention = attention_003(d_model=12, n_heads=3)
    output, weights = attention(numbers(1, 5, 12), mask=torch.zeros(5, 5, dtype=torch.bool), need_weights=True)
    assert not weights.any()
    same(output, attention.output_projection.bias.expand(1, 5, 12), 0)


# ---------------------------------------------------------------- weights
def test_weights_that_do_not_fit_are_refused_by_name():
    model = MultiHeadAttention(d_model=4, n_heads=2)
    state = {
        f"linear_{part}.{kind}": torch.zeros(4, 4) if kind == "weight" else torch.zeros(4)
        for part in ("q", "k", "v", "out")
        for kind in ("weight", "bias")
    }
    load_weights(model, state, NAMES_003)
    assert our_name("linear_out.bias", NAMES_003) == "output_projection.bias"
    missing = {name: t for name, t in state.items() if name != "linear_k.bias"} | {"linear_x.bias": torch.zeros(4)}
    said = error_text(ValueError, lambda: load_weights(model, missing, NAMES_003))
    assert "missing ['key_projection.linear.bias'], left over ['linear_x.bias']" in said
    wrong = state | {"linear_q.weight": torch.zeros(4, 3)}
    said = error_text(ValueError, lambda: load_weights(model, wrong, NAMES_003))
    assert "query_projection.linear.weight must have shape (4, 4), got (4, 3)" in said
    for kind, call, said in (
        (TypeError, lambda: load_weights(state, model, NAMES_003), "model must be a torch.nn.Module, got dict"),
        (TypeError, lambda: load_weights(model, model, NAMES_003), "state must be a dict from names to tensors"),
        (
            TypeError,
            lambda: load_weights(model, state | {"linear_q.bias": [0.0]}, NAMES_003),
            "state['linear_q.bias'] mu",
        ),
        (
            ValueError,
            lambda: load_weights(model, state | {"query_projection.linear.bias": LENGTHS}, NAMES_003),
            "as a second",
        ),
        (TypeError, lambda: load_weights(model, state, None), "names must be a list of pairs"),
        (
            ValueError,
            lambda: our_name("a", {"a": "b"}),
            "names must hold pairs (pattern, what takes its place), got 'a'",
        ),
        (TypeError, lambda: our_name(3, NAMES_003), "theirs must be a name, got int (3)"),
    ):
        assert said in error_text(kind, call)


# ---------------------------------------------------------------- errors
WIDE = SIZES | {"n_layers": 2.0}


def second():
    return KeepEverySecond(d_in=5, d_model=4)


@pytest.mark.parametrize(
    ("kind", "call", "said"),
    [
        (ValueError, lambda: KeepEverySecond(d_in=0, d_model=4), "d_in must be at least 1, got 0"),
        (TypeError, lambda: KeepEverySecond(d_in=4, d_model=4.0), "d_model must be an int, got float (4.0)"),
        (TypeError, lambda: second()([[1.0]]), "features must be a torch.Tensor, got list"),
        (ValueError, lambda: second()(FEATURES[..., :4]), "features must have d_in (5) columns, got 4"),
        (ValueError, lambda: second()(FEATURES.double()), "features must be torch.float32 on cpu"),
        (TypeError, lambda: second().lengths(torch.tensor([3.5])), "lengths must hold whole numbers"),
        (TypeError, lambda: speech(KeepEverySecond), "frontend must be a function, frontend(features), got the class"),
        (
            TypeError,
            lambda: speech(lengths_follow=True),
            "frontend must have a method lengths for lengths_follow, got Lin",
        ),
        (TypeError, lambda: speech()(FEATURES, [8, 4], LABELS), "lengths must be a torch.Tensor, got list"),
        (TypeError, lambda: speech()(FEATURES, None, LABELS), "lengths must be a torch.Tensor, got NoneType"),
        (
            TypeError,
            lambda: System000(**WIDE, frontend=nn.Identity(), vocab_size=3),
            "n_layers must be an int, got float",
        ),
        (TypeError, lambda: System001(**TEXT | WIDE), "n_layers must be an int, got float (2.0)"),
        (TypeError, lambda: System002(**TEXT | WIDE), "n_layers must be an int, got float (2.0)"),
        (ValueError, lambda: System002(**TEXT | {"d_model": 0}), "d_model must be at least 1, got 0"),
        (TypeError, lambda: text(System002, source_pad_id=None), "source_pad_id must be an int, got NoneType"),
        (TypeError, lambda: text(System002, dropout="0.1"), "dropout must be a number in 0..1, got str ('0.1')"),
        (
            ValueError,
            lambda: text(System001)(SOURCE, TARGET, SOURCE != 0),
            "source_mask must have 3 axes (batch, query, k",
        ),
        (TypeError, lambda: text(System001)(SOURCE, TARGET, None, 3), "target_mask must be a torch.Tensor, got int"),
        (ValueError, lambda: text(System002)(SOURCE, TARGET[0]), "target must have 2 axes (batch, target), got 1 axis"),
        (TypeError, lambda: text(System002)(SOURCE, None), "target must be a torch.Tensor, got NoneType"),
        (
            TypeError,
            lambda: attention_003(d_model=8, n_heads=2, relative="rope"),
            "relative must be True or False, got st",
        ),
    ],
)
def test_what_no_system_can_work_with_is_refused_with_a_sentence(kind, call, said):
    assert said in error_text(kind, call)
