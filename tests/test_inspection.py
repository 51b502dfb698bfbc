"""Recording: the weights of the one true forward pass, under the right names, and nothing left behind."""

import pytest
import torch
from sizes import BATCH, D_MODEL, HEADS, KEY, QUERY, error_text, numbers, random_mask, same
from torch import nn

from transformer_edu.heads import MultiHeadAttention
from transformer_edu.inspection import record_attention
from transformer_edu.masks import padding_mask


class Block(nn.Module):
    """One attention with its residual; the parts of a small stack."""

    def __init__(self, **options):
        super().__init__()
        self.attention = MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS, **options)

    def forward(self, x):
        return x + self.attention(x, mask=padding_mask([QUERY, 2], QUERY))[0]


def stack(**options):
    return nn.Sequential(Block(**options), nn.Linear(D_MODEL, D_MODEL), Block(**options)).eval()


def tokens(length=QUERY, seed=0):
    return numbers(BATCH, length, D_MODEL, seed=seed)


def traces(model):
    """All that a recording could leave behind on a module."""
    hooks = (
        "_forward_hooks",
        "_forward_pre_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_pre_hooks_with_kwargs",
    )
    counts = [len(getattr(module, name)) for module in model.modules() for name in hooks]
    return counts, [sorted(module.__dict__) for module in model.modules()], sorted(model.state_dict())


def test_the_recorded_weights_are_those_that_need_weights_gives():
    model = stack()
    with record_attention(model) as recorded:
        model(tokens())
    x = tokens()
    for name, module in (("0.attention", model[0]), ("2.attention", model[2])):
        _, expected = module.attention(x, mask=padding_mask([QUERY, 2], QUERY), need_weights=True)
        (weights,) = recorded[name]
        same(weights, expected, 1e-6)
        assert weights.shape == (BATCH, HEADS, QUERY, QUERY)
        assert not weights.requires_grad
        x = model[1](module(x))


def test_the_names_are_those_of_named_modules():
    model = stack()
    with record_attention(model) as recorded:
        assert recorded == {"0.attention": [], "2.attention": []}  # not called yet
    assert set(recorded) <= set(dict(model.named_modules()))
    with record_attention(model[0].attention) as recorded:
        model(tokens())
    assert list(recorded) == [""] and len(recorded[""]) == 1  # the model is the attention itself


@pytest.mark.parametrize("options", [{}, {"empty_rows": "uniform"}, {"n_kv_heads": 1}, {"shared_projections": True}])
def test_the_output_is_the_same_whether_or_not_somebody_records(options):
    model = stack(**options)
    unseen = model(tokens())
    with record_attention(model):
        seen = model(tokens())
    same(seen, unseen, 1e-6)
    assert torch.equal(model(tokens()), unseen)


def test_gradients_flow_through_a_recorded_pass():
    model = stack()
    grads = []
    for recording in (False, True):
        model.zero_grad()
        if recording:
            with record_attention(model):
                model(tokens()).sum().backward()
        else:
            model(tokens()).sum().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    for plain, recorded in zip(*grads, strict=True):
        same(recorded, plain, 1e-4)


def test_nothing_is_left_behind():
    model = stack()
    before = traces(model)
    with record_attention(model):
        model(tokens())
        assert traces(model) != before
    assert traces(model) == before
    with pytest.raises(ZeroDivisionError), record_attention(model):
        raise ZeroDivisionError
    assert traces(model) == before
    with pytest.raises(ValueError), record_attention(model):
        model(tokens(QUERY + 1))  # raises inside the attention, between the hooks
    assert traces(model) == before
    with record_attention(model) as recorded:
        model(tokens())
    assert [len(calls) for calls in recorded.values()] == [1, 1]


def test_a_call_that_fails_does_not_confuse_the_next_one():
    attention = MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS)
    with record_attention(attention) as recorded:
        with pytest.raises(ValueError):
            attention(tokens(), need_weights=True, mask=random_mask(KEY, KEY))
        assert attention(tokens())[1] is None
        assert attention(tokens(), need_weights=True)[1] is not None
    assert len(recorded[""]) == 2


def test_the_caller_gets_weights_only_if_it_asked():
    attention = MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS)
    with record_attention(attention) as recorded:
        assert attention(tokens())[1] is None
        _, weights = attention(tokens(), need_weights=True)
    assert weights.requires_grad and torch.equal(weights, recorded[""][1])


def test_every_call_of_a_module_adds_its_weights():
    model = stack()
    lengths = (QUERY, QUERY, QUERY)
    with record_attention(model) as recorded:
        for seed, length in enumerate(lengths):
            model(tokens(length, seed))
    assert [len(calls) for calls in recorded.values()] == [3, 3]
    first, second, _ = recorded["0.attention"]
    assert not torch.equal(first, second)


def test_cross_attention_is_recorded_with_its_two_lengths():
    attention = MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS)
    mask = random_mask(BATCH, 1, QUERY, KEY)
    with record_attention(attention) as recorded:
        attention(tokens(), tokens(KEY, 1), mask=mask)
        attention(query=tokens(), key=tokens(KEY, 1), value=None, mask=mask)
    first, second = recorded[""]
    assert first.shape == (BATCH, HEADS, QUERY, KEY) and torch.equal(first, second)
    assert torch.equal(first > 0, mask.expand_as(first))


def test_recordings_may_be_nested():
    model = stack()
    before = traces(model)
    with record_attention(model) as outer:
        model(tokens())
        with record_attention(model[2]) as inner:
            model(tokens(seed=1))
            assert model[2].attention(tokens(seed=2))[1] is None
        model(tokens(seed=3))
    assert {name: len(calls) for name, calls in outer.items()} == {"0.attention": 3, "2.attention": 4}
    assert len(inner["attention"]) == 2
    assert torch.equal(inner["attention"][0], outer["2.attention"][1])
    assert traces(model) == before


@pytest.mark.parametrize("average", [True, False])
def test_torchs_own_module_is_recorded_and_returns_what_it_always_did(average):
    module = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True)
    x, memory, blocked = tokens(), tokens(KEY, 1), ~random_mask(QUERY, KEY)
    kwargs = {"attn_mask": blocked, "average_attn_weights": average}
    expected, expected_weights = module(x, memory, memory, **kwargs)
    per_head = module(x, memory, memory, attn_mask=blocked, average_attn_weights=False)[1]
    with record_attention(module) as recorded:
        output, weights = module(x, memory, memory, **kwargs)
        assert module(x, memory, memory, None, False)[1] is None  # need_weights by position
    same(output, expected, 1e-6)
    same(weights, expected_weights, 1e-6)
    same(recorded[""][0], per_head, 1e-6)
    assert recorded[""][1].shape == (BATCH, HEADS, QUERY, KEY)


@pytest.mark.parametrize("grad", [True, False])
def test_torchs_layers_are_recorded_though_they_have_a_fast_path(grad):
    layer = nn.TransformerEncoderLayer(D_MODEL, HEADS, 7, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    with torch.set_grad_enabled(grad):
        expected = model(tokens())
        with record_attention(model) as recorded:
            output = model(tokens())
    same(output, expected)
    assert {name: len(calls) for name, calls in recorded.items()} == {
        "layers.0.self_attn": 1,
        "layers.1.self_attn": 1,
    }


def test_dropout_does_not_show_in_the_recorded_weights():
    attention = MultiHeadAttention(d_model=D_MODEL, n_heads=HEADS, dropout=0.5).train()
    with record_attention(attention) as recorded:
        attention(tokens())
    same(recorded[""][0].sum(-1), torch.ones(BATCH, HEADS, QUERY))


def test_a_model_without_attention_is_told_so():
    def enter(model):
        with record_attention(model):
            pass

    assert error_text(ValueError, lambda: enter(nn.Linear(2, 2))) == (
        "no attention module in Linear: a module counts as one when its forward takes need_weights"
    )


X = torch.zeros(2, 4, 5)


@pytest.mark.parametrize(
    ("result", "got"),
    [((X, None), "NoneType"), ((X, X), "(2, 4, 5)"), (X, "(2, 4, 5)"), (None, "NoneType"), ((X, X, X), "tuple")],
)
def test_a_module_that_gives_no_weights_is_told_so(result, got):
    class Odd(nn.Module):
        def forward(self, x, need_weights=False):
            return result

    model = nn.ModuleDict({"odd": Odd()})
    with record_attention(model):
        text = error_text(ValueError, lambda: model["odd"](tokens()))
    assert text == f"module 'odd' must return (output, weights (batch, heads, query, key)), got {got}"


@pytest.mark.parametrize(("model", "got"), [([], "list"), (nn.Linear, "the class Linear: Linear(...) makes one")])
def test_something_else_than_a_module_is_refused_by_its_type(model, got):
    def enter():
        with record_attention(model):
            pass

    assert error_text(TypeError, enter) == f"model must be a torch.nn.Module, got {got}"


def test_a_name_that_is_not_there_is_answered_with_those_that_are():
    with record_attention(nn.ModuleDict({"first": MultiHeadAttention(d_model=4, n_heads=2)})) as recorded:
        with pytest.raises(KeyError, match="no attention module is called 'frist': their names are 'first'"):
            recorded["frist"]
        assert recorded.get("frist") is None
    assert dict(recorded) == {"first": []}
