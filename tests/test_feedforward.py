"""Feed-forward layers against torch's numbers and loops; each position by itself; errors by their text."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sizes import BATCH, D_MODEL, QUERY, error_text, few, numbers, same
from torch import nn
from torch.nn import functional as F

from transformer_edu.feedforward import (
    ConvolutionFeedForward,
    FeedForward,
    GatedFeedForward,
    feed_forward,
    gated_d_ff,
    geglu,
    glu,
    swiglu,
)

D_FF = 7
X = numbers(BATCH, QUERY, D_MODEL)
PLAIN = (
    numbers(D_MODEL, D_FF, seed=1),
    numbers(D_FF, seed=2),
    numbers(D_FF, D_MODEL, seed=3),
    numbers(D_MODEL, seed=4),
)
GATED = (numbers(D_MODEL, D_FF, seed=5), numbers(D_MODEL, D_FF, seed=6), numbers(D_FF, D_MODEL, seed=7))
GATES = {"sigmoid": glu, "gelu": geglu, "silu": swiglu}
CURVES = {
    "relu": lambda z: max(0.0, z),
    "gelu": lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2,
    "gelu_tanh": lambda z: z * (1 + math.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))) / 2,
    "silu": lambda z: z / (1 + math.exp(-z)),
    "sigmoid": lambda z: 1 / (1 + math.exp(-z)),
}
LAYERS = (FeedForward, ConvolutionFeedForward, GatedFeedForward)
every_layer = pytest.mark.parametrize("kind", LAYERS, ids=lambda kind: kind.__name__)


def curve(name, z):
    """An activation, number by number in double precision."""
    return torch.tensor([CURVES[name](value) for value in z.double().flatten().tolist()]).double().view(z.shape)


def randomised(module):
    """The same module with random numbers in every parameter, biases too."""
    with torch.no_grad():
        for seed, parameter in enumerate(module.parameters()):
            parameter.copy_(0.4 * numbers(*parameter.shape, seed=seed))
    return module


def made(kind, **options):
    return randomised(kind(d_model=D_MODEL, d_ff=D_FF, **options))


# ---------------------------------------------------------------- bare matrices
def test_feed_forward_is_the_formula_one_number_at_a_time():
    w1, b1, w2, b2 = (part.tolist() for part in PLAIN)
    expected = []
    for x in X.flatten(0, 1).tolist():
        hidden = [max(0.0, sum(x[i] * w1[i][u] for i in range(D_MODEL)) + b1[u]) for u in range(D_FF)]
        expected.append([sum(hidden[u] * w2[u][j] for u in range(D_FF)) + b2[j] for j in range(D_MODEL)])
    same(feed_forward(X, *PLAIN), torch.tensor(expected).view(X.shape), 1e-4)


@pytest.mark.parametrize("activation", GATES)
def test_gated_forms_are_their_formulas(activation):
    w_gate, w_up, w_down = (part.double() for part in GATED)
    expected = (curve(activation, X.double() @ w_gate) * (X.double() @ w_up)) @ w_down
    same(GATES[activation](X, *GATED), expected, 1e-4)


def test_glu_is_torchs_with_both_matrices_side_by_side():
    w_gate, w_up, w_down = GATED
    same(glu(X, *GATED), F.glu(X @ torch.cat([w_up, w_gate], dim=1)) @ w_down, 1e-4)


def test_the_gate_and_what_passes_are_not_exchanged():
    w_gate, w_up, w_down = GATED
    for form in GATES.values():
        assert not torch.allclose(form(X, w_up, w_gate, w_down), form(X, *GATED), atol=1e-2)


@pytest.mark.parametrize("shape", [(D_MODEL,), (QUERY, D_MODEL), (2, 3, 4, D_MODEL), (0, D_MODEL)])
def test_any_axes_may_stand_before_the_last(shape):
    x = numbers(*shape)
    flat = x.reshape(-1, D_MODEL)
    for call in (lambda x: feed_forward(x, *PLAIN), lambda x: swiglu(x, *GATED)):
        assert call(x).shape == x.shape
        same(call(x).reshape(-1, D_MODEL), call(flat))


@few
@given(st.integers(0, QUERY - 1), st.permutations(range(QUERY)))
def test_every_position_is_worked_on_by_itself(position, order):
    layers = [made(kind) for kind in LAYERS]
    for call in (lambda x: feed_forward(x, *PLAIN), lambda x: swiglu(x, *GATED), *layers):
        before, changed = call(X), X.clone()
        changed[:, position] += 1.0
        moved = (call(changed) - before).abs().amax(dim=(0, 2)) > 1e-4
        assert moved.nonzero().flatten().tolist() == [position]
        same(call(X[:, order]), before[:, order])


def test_two_layers_without_an_activation_would_be_one():
    # d2l-ai/d2l-en#1564: what the activation is for
    w1, b1, w2, b2 = PLAIN
    y, zero = feed_forward(X, *PLAIN), feed_forward(0 * X, *PLAIN)
    assert not torch.allclose(feed_forward(-X, *PLAIN) - zero, zero - y, atol=1e-2)  # a linear map would be odd
    always_on = b1 + 1000.0  # every unit on: relu does nothing, and one matrix does the same
    same(feed_forward(X, w1, always_on, w2, b2), X @ (w1 @ w2) + (always_on @ w2 + b2), 1e-2)


def test_inputs_are_unchanged_and_gradients_reach_all_of_them():
    for form, parts in ((feed_forward, PLAIN), (swiglu, GATED), (glu, GATED), (geglu, GATED)):
        leaves = [part.clone().requires_grad_() for part in (X, *parts)]
        form(*leaves).sum().backward()
        for leaf, part in zip(leaves, (X, *parts), strict=True):
            assert torch.equal(leaf, part) and leaf.grad.isfinite().all() and (leaf.grad != 0).any()


# ---------------------------------------------------------------- modules
@pytest.mark.parametrize("activation", CURVES)
def test_the_module_with_any_activation_is_the_formula_in_double_precision(activation):
    layer = made(FeedForward, activation=activation)
    w1, b1, w2, b2 = (p.double() for p in layer.parameters())
    hidden = curve(activation, X.double() @ w1.T + b1)
    same(layer.hidden(X), hidden)
    same(layer(X), hidden @ w2.T + b2)


@pytest.mark.parametrize("activation", CURVES)
def test_the_gated_module_with_any_activation_is_the_formula_in_double_precision(activation):
    layer = made(GatedFeedForward, activation=activation, bias=True)
    w_gate, b_gate, w_up, b_up, w_down, b_down = (p.double() for p in layer.parameters())
    gate = curve(activation, X.double() @ w_gate.T + b_gate)
    same(layer.gate(X), gate)
    same(layer.hidden(X), gate * (X.double() @ w_up.T + b_up))
    same(layer(X), (gate * (X.double() @ w_up.T + b_up)) @ w_down.T + b_down)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_torchs_encoder_layer_gives_the_same_with_the_same_weights(activation):
    theirs = nn.TransformerEncoderLayer(D_MODEL, 3, D_FF, dropout=0.0, activation=activation, batch_first=True)
    ours = FeedForward(d_model=D_MODEL, d_ff=D_FF, activation=activation)
    ours.up_projection.load_state_dict(theirs.linear1.state_dict())
    ours.down_projection.load_state_dict(theirs.linear2.state_dict())
    same(ours(X), theirs._ff_block(X))


def test_module_and_bare_matrices_agree():
    plain, gated = made(FeedForward), made(GatedFeedForward)
    w1, b1, w2, b2 = plain.parameters()
    same(plain(X), feed_forward(X, w1.T, b1, w2.T, b2))
    for activation, form in GATES.items():
        gated.activation = activation
        same(gated(X), form(X, *(p.T for p in gated.parameters())))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_two_convolutions_of_width_one_give_the_same_both_ways(activation, bias):
    # brightmart/text_classification#98 asks whether that is allowed
    linear = made(FeedForward, activation=activation, bias=bias, dropout=0.25).eval()
    convolution = ConvolutionFeedForward.from_linear(linear)
    same(convolution(X), linear(X))
    same(convolution.hidden(X), linear.hidden(X))
    back = convolution.to_linear()
    assert torch.equal(back(X), linear(X))
    for layer in (convolution, back):
        assert (layer.training, layer.dropout, layer.activation) == (False, 0.25, activation)
        assert len(list(layer.parameters())) == (4 if bias else 2)


def test_a_converted_layer_owns_its_weights_and_keeps_their_dtype():
    linear = made(FeedForward).double()
    convolution = ConvolutionFeedForward.from_linear(linear)
    before = linear(X.double())
    with torch.no_grad():
        convolution.up_projection.weight.zero_()
    assert convolution.up_projection.weight.dtype == torch.float64
    assert torch.equal(linear(X.double()), before) and convolution.hidden(X.double()).unique(dim=1).shape[1] == 1


def test_gradients_of_convolutions_are_those_of_linear_layers():
    linear = made(FeedForward)
    convolution = ConvolutionFeedForward.from_linear(linear)
    for layer in (linear, convolution):
        (layer(X) * numbers(*X.shape, seed=9)).sum().backward()
    for a, b in zip(linear.parameters(), convolution.parameters(), strict=True):
        same(b.grad.view(a.shape), a.grad, 1e-4)


@every_layer
def test_the_shape_of_the_tokens_is_kept(kind):
    layer = made(kind)
    assert layer(X).shape == X.shape and layer.hidden(X).shape == (BATCH, QUERY, D_FF)


# ---------------------------------------------------------------- parameters, dropout
def count(layer):
    return sum(p.numel() for p in layer.parameters())


def test_parameters_are_as_many_as_the_formula_says():
    d, f = D_MODEL, D_FF
    for kind in (FeedForward, ConvolutionFeedForward):
        assert count(kind(d_model=d, d_ff=f)) == 2 * d * f + f + d
        assert count(kind(d_model=d, d_ff=f, bias=False)) == 2 * d * f
    assert count(GatedFeedForward(d_model=d, d_ff=f)) == 3 * d * f
    assert count(GatedFeedForward(d_model=d, d_ff=f, bias=True)) == 3 * d * f + 2 * f + d


@few
@given(st.integers(2, 400), st.integers(1, 64))
def test_two_thirds_of_d_ff_cost_a_gated_layer_as_much(d_ff, multiple_of):
    plain = count(FeedForward(d_model=5, d_ff=d_ff, bias=False))
    gated = count(GatedFeedForward(d_model=5, d_ff=gated_d_ff(d_ff)))
    assert plain - 3 * 5 < gated <= plain
    rounded = gated_d_ff(d_ff, multiple_of=multiple_of)
    assert rounded % multiple_of == 0 and 0 <= rounded - gated_d_ff(d_ff) < multiple_of


def test_published_sizes_come_out():
    assert gated_d_ff(3072) == 2048  # Shazeer 2020, section 3.1
    assert [gated_d_ff(4 * d, multiple_of=256) for d in (4096, 5120, 8192)] == [11008, 13824, 22016]  # LLaMA


@every_layer
def test_dropout_acts_on_the_hidden_units_in_training_only(kind):
    layer, plain = made(kind, dropout=0.5), made(kind)
    assert not torch.equal(layer.train()(X), layer(X))
    same(layer.eval()(X), plain(X))
    same(layer.train().hidden(X), plain.hidden(X))
    everything = made(kind, dropout=1.0, bias=True)
    same(everything.train()(X), everything.down_projection.bias.expand(X.shape))


def test_dropout_comes_after_the_activation_and_scales_what_is_left():
    layer = made(FeedForward, activation="sigmoid", dropout=0.75)  # sigmoid(0) is not 0: before it nothing would be 0
    seen = []
    layer.down_projection.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    layer(X)
    kept = seen[0] != 0
    assert 0 < kept.float().mean() < 0.6
    same(seen[0][kept], 4 * layer.hidden(X)[kept])


@every_layer
def test_a_layer_says_what_it_is_made_of(kind):
    assert "dropout=0.25" in repr(kind(d_model=2, d_ff=3, dropout=0.25)) and "activation=" in repr(made(kind))


# ---------------------------------------------------------------- errors
def test_matrices_that_do_not_fit_are_refused_with_both_shapes():
    w1, b1, w2, b2 = PLAIN
    w_gate, w_up, w_down = GATED
    cases = {
        "w1 must have shape (18, 7) = (d_model, d_ff), got (5, 7)": lambda: feed_forward(X, w1[:5], b1, w2, b2),
        "w1 must have shape (18, 7) = (d_model, d_ff), got (7, 18): w1.T would fit": lambda: feed_forward(
            X, w1.T, b1, w2, b2
        ),
        "w2 must have shape (7, 18) = (d_ff, d_model), got (18, 7): w2.T would fit": lambda: feed_forward(
            X, w1, b1, w2.T, b2
        ),
        "b1 must have one number for each of the 7 columns, got 18": lambda: feed_forward(X, w1, b2, w2, b2),
        "b2 must have one number for each of the 18 columns, got 7": lambda: feed_forward(X, w1, b1, w2, b1),
        "b1 must have 1 axis (width), got 2 axes: shape (1, 7)": lambda: feed_forward(X, w1, b1[None], w2, b2),
        "w1 must have 2 axes (d_model, d_ff), got 1 axis: shape (7,)": lambda: feed_forward(X, b1, b1, w2, b2),
        "w_up must have shape (18, 7) = (d_model, d_ff), got (18, 6)": lambda: swiglu(X, w_gate, w_up[:, :6], w_down),
        "w_down must have shape (7, 18) = (d_ff, d_model), got (18, 7): w_down.T would fit": (
            lambda: glu(X, w_gate, w_up, w_down.T)
        ),
        "x must have at least 1 axis (..., d_model), got 0 axes: shape ()": lambda: geglu(torch.ones(()), *GATED),
    }
    for text, call in cases.items():
        assert error_text(ValueError, call) == text
    text = error_text(TypeError, lambda: swiglu([1.0], *GATED))
    assert text == "x must be a torch.Tensor, got list: torch.as_tensor(x) makes one"


@every_layer
def test_tokens_that_do_not_fit_are_refused(kind):
    layer = made(kind)
    text = error_text(ValueError, lambda: layer(X[..., :5]))
    assert text == "this layer takes tokens of width d_model (18), got width 5 in (2, 4, 5)"
    text = error_text(TypeError, lambda: layer(torch.zeros(BATCH, QUERY, D_MODEL, dtype=torch.long)))
    assert text == "x must be a float tensor, got torch.int64: token ids become vectors in an embedding first"


def test_convolutions_ask_for_a_batch():
    text = error_text(ValueError, lambda: made(ConvolutionFeedForward)(X[0]))
    assert text == "x must have 3 axes (batch, length, d_model), got 2 axes: shape (4, 18)"


@every_layer
def test_sizes_and_options_that_do_not_fit_are_refused(kind):
    cases = {
        "d_model must be at least 1, got 0": {"d_model": 0},
        "d_ff must be at least 1, got -1": {"d_ff": -1},
        "activation must be one of 'relu', 'gelu', 'gelu_tanh', 'silu', 'sigmoid', got 'swish'": {
            "activation": "swish"
        },
        "dropout must lie in 0..1, got 2.0: it is the share of the hidden units that are set to 0": {"dropout": 2.0},
    }
    for text, options in cases.items():
        assert error_text(ValueError, lambda options=options: kind(**{"d_model": 3, "d_ff": 4} | options)) == text
    with pytest.raises(TypeError):
        kind(3, 4)


def test_a_gated_d_ff_is_made_of_whole_numbers():
    assert error_text(ValueError, lambda: gated_d_ff(1)) == "d_ff must be at least 2, got 1"
    assert error_text(ValueError, lambda: gated_d_ff(8, multiple_of=0)) == "multiple_of must be at least 1, got 0"
    text = error_text(TypeError, lambda: gated_d_ff(8 * 4.0))
    assert text == "d_ff must be an int, got float (32.0): int(d_ff) makes one"
