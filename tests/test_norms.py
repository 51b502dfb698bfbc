"""Norms against torch and against loops in float64; the residual against torch's encoder layer and by hand."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sizes import BATCH, D_MODEL, HEADS, QUERY, TOLERANCE, error_text, few, numbers, same
from torch import nn
from torch.nn import functional as F

from transformer_edu.heads import MultiHeadAttention
from transformer_edu.inspection import record_attention
from transformer_edu.norms import LayerNorm, Residual, RMSNorm, layer_norm, residual_block, rms_norm

D = D_MODEL
FORMS = {
    "torch's": {},
    "unbiased": {"unbiased": True},
    "eps outside": {"eps_outside": True},
    "both": {"unbiased": True, "eps_outside": True},
}


def tokens(scale=1.0, shift=0.0, dtype=torch.float32):
    return (scale * numbers(BATCH, QUERY, D) + shift).to(dtype)


def gains(width=D, dtype=torch.float32):
    """gamma and beta, no two numbers alike."""
    return numbers(width, seed=1, dtype=dtype), numbers(width, seed=2, dtype=dtype)


def plain(x, eps=1e-5, **form):
    """layer_norm without scale and shift."""
    return layer_norm(x, torch.ones(x.shape[-1]), torch.zeros(x.shape[-1]), eps, **form)


def layer_norm_by_loop(x, gamma, beta, eps, unbiased=False, eps_outside=False):
    """One number at a time, in Python's double precision."""
    rows = []
    for row in x.double().flatten(0, -2).tolist():
        mean = sum(row) / len(row)
        variance = sum((number - mean) ** 2 for number in row) / (len(row) - unbiased)
        spread = math.sqrt(variance) + eps if eps_outside else math.sqrt(variance + eps)
        rows.append([(n - mean) / spread * g + b for n, g, b in zip(row, gamma.tolist(), beta.tolist(), strict=True)])
    return torch.tensor(rows, dtype=torch.float64).view(x.shape)


def rms_norm_by_loop(x, gamma, eps):
    rows = []
    for row in x.double().flatten(0, -2).tolist():
        spread = math.sqrt(sum(number**2 for number in row) / len(row) + eps)
        rows.append([n / spread * g for n, g in zip(row, gamma.tolist(), strict=True)])
    return torch.tensor(rows, dtype=torch.float64).view(x.shape)


# ---------------------------------------------------------------- layer norm
@pytest.mark.parametrize("eps", [1e-5, 1e-6, 0.5])
@pytest.mark.parametrize("shape", [(BATCH, QUERY, D), (BATCH, D), (D,), (BATCH, 3, QUERY, 5)])
def test_layer_norm_has_torchs_numbers_and_gradients(shape, eps):
    copies = [[t.clone().requires_grad_() for t in (3 * numbers(*shape) + 2, *gains(shape[-1]))] for _ in range(2)]
    mine = layer_norm(*copies[0], eps)
    expected = F.layer_norm(copies[1][0], shape[-1:], *copies[1][1:], eps)
    same(mine, expected)
    for y in (mine, expected):
        (y * numbers(*shape, seed=9)).sum().backward()
    for a, b in zip(*copies, strict=True):
        same(a.grad, b.grad)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_each_form_of_layer_norm_equals_its_loop(name, scale):
    x, (gamma, beta), eps = tokens(scale, 0.5 * scale), gains(), 1e-4
    same(layer_norm(x, gamma, beta, eps, **FORMS[name]), layer_norm_by_loop(x, gamma, beta, eps, **FORMS[name]))


def test_the_forms_differ_as_reported():
    # codertimo/BERT-pytorch#30: x.std() divides by d_model - 1
    x = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    same(plain(x)[0, 0], 1.7320, 1e-4)
    same(plain(x, 1e-6, unbiased=True, eps_outside=True)[0, 0], 1.5)
    small = 1e-5 * torch.tensor([[1.0, -1.0]])  # standard deviation 1e-5: here the place of eps is all that counts
    same(plain(small)[0, 0], 1e-5 / math.sqrt(1e-10 + 1e-5))
    same(plain(small, eps_outside=True)[0, 0], 0.5)


def test_the_default_eps_are_torchs_and_llamas():
    x, gamma = tokens(1e-3), torch.ones(D)
    assert torch.equal(layer_norm(x, gamma, torch.zeros(D)), layer_norm(x, gamma, torch.zeros(D), 1e-5))
    assert torch.equal(rms_norm(x, gamma), rms_norm(x, gamma, 1e-6))
    assert (LayerNorm(d_model=D).eps, RMSNorm(d_model=D).eps) == (1e-5, 1e-6)


@pytest.mark.parametrize("name", FORMS)
def test_a_token_of_equal_numbers_becomes_beta_with_finite_gradients(name):
    gamma, beta = gains()
    x = torch.full((BATCH, QUERY, D), 3.0).requires_grad_()
    y = layer_norm(x, gamma, beta, **FORMS[name])
    same(y, beta.expand(x.shape))
    (y * numbers(*x.shape)).sum().backward()
    assert x.grad.isfinite().all()


@few
@given(st.floats(0.5, 20), st.floats(-50, 50), st.sampled_from(sorted(FORMS)))
def test_layer_norm_does_not_see_scale_and_shift_and_gives_mean_0_and_variance_1(scale, shift, name):
    y = plain(scale * tokens() + shift, 0.0, **FORMS[name])
    same(y, plain(tokens(), 0.0, **FORMS[name]), 1e-3)
    same(y.mean(-1), torch.zeros(BATCH, QUERY), 1e-4)
    same(y.var(-1, correction=int("unbiased" in FORMS[name])), torch.ones(BATCH, QUERY), 1e-4)


def test_a_large_mean_costs_no_digits():
    # pytorch/pytorch#51102: E[x^2] - E[x]^2 has none left
    x = torch.tensor([[0.0, 1.0, -1.0, 2.0]])
    same(plain(x + 10000), [[-0.4472, 0.4472, -1.3416, 1.3416]], 1e-4)


@pytest.mark.parametrize("norm", [layer_norm, lambda x, gamma, beta: rms_norm(x, gamma)], ids=["layer", "rms"])
def test_no_token_reads_another(norm):
    # Kyubyong/transformer#40 asks for batch norm; huggingface/transformers#14385 normalises over the length too
    x, (gamma, beta) = tokens(), gains()
    changed = x.clone()
    changed[1, 2] += 7 * numbers(D, seed=5)
    moved = (norm(x, gamma, beta) != norm(changed, gamma, beta)).any(-1)
    assert moved.nonzero().tolist() == [[1, 2]]


# ---------------------------------------------------------------- RMS norm
@pytest.mark.parametrize("eps", [1e-6, 0.5])
@pytest.mark.parametrize("shape", [(BATCH, QUERY, D), (BATCH, D), (D,)])
def test_rms_norm_has_torchs_numbers_and_gradients(shape, eps):
    copies = [[t.clone().requires_grad_() for t in (3 * numbers(*shape) + 2, gains(shape[-1])[0])] for _ in range(2)]
    mine, expected = rms_norm(*copies[0], eps), F.rms_norm(copies[1][0], shape[-1:], copies[1][1], eps)
    same(mine, expected)
    for y in (mine, expected):
        (y * numbers(*shape, seed=9)).sum().backward()
    for a, b in zip(*copies, strict=True):
        same(a.grad, b.grad)


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_rms_norm_equals_its_loop(scale):
    x, (gamma, _) = tokens(scale, 0.5 * scale), gains()
    same(rms_norm(x, gamma), rms_norm_by_loop(x, gamma, 1e-6))


def test_rms_norm_is_layer_norm_where_the_mean_is_0_and_only_there():
    x, ones = tokens(shift=2.0), torch.ones(D)
    centred = x - x.mean(-1, keepdim=True)
    same(rms_norm(centred, ones, 1e-5), plain(centred))
    assert (rms_norm(x, ones, 1e-5) - plain(x)).abs().max() > 1
    same(rms_norm(x, ones).square().mean(-1), torch.ones(BATCH, QUERY))  # the length becomes sqrt(d_model)
    same(rms_norm(100 * x, ones), rms_norm(x, ones))


# ---------------------------------------------------------------- precision
def both_norms(x):
    gamma, beta = gains()
    return [(layer_norm(x, gamma, beta), (gamma, beta)), (rms_norm(x, gamma), (gamma,))]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_neither_overflows_nor_loses_small_numbers(dtype):
    # jingyaogong/minimind#301: in float16 300 ** 2 is infinite, (1e-4) ** 2 is 0
    for scale in (300.0, 1e-4):
        x = tokens(scale, scale, dtype)
        for (y, parameters), by_loop in zip(both_norms(x), (layer_norm_by_loop, rms_norm_by_loop), strict=True):
            eps = 1e-5 if len(parameters) == 2 else 1e-6
            assert y.dtype == dtype
            same(y, by_loop(x, *parameters, eps), TOLERANCE[dtype])


def test_float64_keeps_its_digits():
    x, (gamma, beta) = tokens(dtype=torch.float64), gains(dtype=torch.float64)
    assert layer_norm(x, gamma, beta).dtype == rms_norm(x, gamma).dtype == torch.float64
    same(layer_norm(x, gamma, beta), layer_norm_by_loop(x, gamma, beta, 1e-5), 1e-13)
    same(rms_norm(x, gamma), rms_norm_by_loop(x, gamma, 1e-6), 1e-13)
    assert torch.autograd.gradcheck(layer_norm, [t.requires_grad_() for t in (x[0, :2], gamma, beta)])
    assert torch.autograd.gradcheck(rms_norm, [t.requires_grad_() for t in (x[1, :2].detach(), gamma)])


# ---------------------------------------------------------------- modules
def test_the_modules_begin_with_gamma_1_and_beta_0_and_learn_both():
    for module, wanted in ((LayerNorm(d_model=D), {"gamma", "beta"}), (RMSNorm(d_model=D), {"gamma"})):
        parameters = dict(module.named_parameters())
        assert parameters.keys() == wanted
        assert all(p.shape == (D,) and (p == float(name == "gamma")).all() for name, p in parameters.items())
        (module(tokens()) * numbers(D)).sum().backward()
        assert all(p.grad.any() for p in parameters.values())


def set_to(module, *values):
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), values, strict=True):
            parameter.copy_(value)
    return module


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", FORMS)
def test_the_layer_norm_module_and_its_kernel_equal_the_function(name, dtype):
    x = [tokens(2.0, 1.0, dtype).requires_grad_() for _ in range(2)]
    module = set_to(LayerNorm(d_model=D, eps=1e-3, **FORMS[name]).to(dtype), *gains())
    parameters = [p.detach().clone().requires_grad_() for p in module.parameters()]
    y, expected = module(x[0]), layer_norm(x[1], *parameters, 1e-3, **FORMS[name])
    tolerance = TOLERANCE.get(dtype, 1e-12)
    same(y, expected, tolerance)
    for each in (y, expected):
        each.sum().backward()
    assert y.dtype == x[0].grad.dtype == dtype
    for mine, other in zip((x[0], *module.parameters()), (x[1], *parameters), strict=True):
        same(mine.grad, other.grad, 5 * tolerance)


def test_parameters_in_float32_serve_tokens_in_float16_and_float64():
    x = tokens(300.0, 300.0, torch.float16)
    for module in (LayerNorm(d_model=D), RMSNorm(d_model=D)):
        assert module(x).dtype == torch.float16 and module(x).isfinite().all()
        wide = tokens(dtype=torch.float64)
        assert module(wide).dtype == torch.float64
        same(module(wide), module(wide.float()), 1e-6)


def test_the_rms_module_equals_the_function():
    module = set_to(RMSNorm(d_model=D, eps=0.1), gains()[0])
    assert torch.equal(module(tokens()), rms_norm(tokens(), gains()[0], 0.1))


# ---------------------------------------------------------------- the residual
def double(x):
    return 2 * x


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("pre", [-1, 5]),
        ("post", [-1, 1]),
        ("normed_residual", [-3, 3]),
        ("sum_not_normed", [1, 7]),
        ("no_residual", [-1, 1]),
    ],
)
def test_each_mode_by_hand(mode, expected):
    # harvardnlp/annotated-transformer#1: the text says post-norm, the code is pre-norm
    x = torch.tensor([1.0, 3.0])  # which the norm makes [-1, 1]
    same(residual_block(x, double, lambda y: plain(y, 0.0), mode), torch.tensor(expected))


def test_with_a_sublayer_that_adds_nothing_pre_norm_is_the_identity_and_post_norm_the_norm():
    x = tokens()
    assert torch.equal(residual_block(x, torch.zeros_like, plain, "pre"), x)
    assert torch.equal(residual_block(x, torch.zeros_like, plain, "post"), plain(x))
    assert not residual_block(x, torch.zeros_like, plain, "no_residual").any()  # nothing of x goes on


def test_the_normed_residual_is_post_norm_with_its_norms_one_place_too_early():
    # Howuhh/faster-trajectory-transformer#3
    layers = [nn.Linear(D, D) for _ in range(3)]
    early, post = tokens(), plain(tokens())
    for layer in layers:
        early = residual_block(early, layer, plain, "normed_residual")
        post = residual_block(post, layer, plain, "post")
    same(plain(early), post)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_two_residuals_are_torchs_encoder_layer(placement):
    theirs = nn.TransformerEncoderLayer(D, HEADS, 7, dropout=0.0, batch_first=True, norm_first=placement == "pre")
    feed_forward = nn.Sequential(theirs.linear1, nn.ReLU(), theirs.linear2)
    set_to(theirs.norm1, *gains())
    set_to(theirs.norm2, *(2 * g for g in gains()))
    norms = [set_to(LayerNorm(d_model=D), norm.weight, norm.bias) for norm in (theirs.norm1, theirs.norm2)]
    first = Residual(norm=norms[0], sublayer=theirs.self_attn, placement=placement)
    second = Residual(norm=norms[1], sublayer=feed_forward, placement=placement)
    mine = second(attend_to_itself(first, tokens()))
    same(mine, theirs(tokens()))


def attend_to_itself(block, x):
    """torch's attention wants query, key and value, all three of them with the norm before it."""
    theirs = block.sublayer
    return residual_block(x, lambda y: theirs(y, y, y)[0], block.norm, block.placement)


def test_the_block_hands_on_what_comes_after_x_and_takes_the_output_of_a_tuple():
    x, memory = tokens(), numbers(BATCH, 5, D, seed=3)
    mask = torch.ones(QUERY, 5, dtype=torch.bool).tril()
    attention = MultiHeadAttention(d_model=D, n_heads=HEADS)
    for placement in ("pre", "post", "normed_residual", "sum_not_normed", "no_residual"):
        block = Residual(norm=LayerNorm(d_model=D), sublayer=attention, placement=placement)
        expected = residual_block(x, lambda y: attention(y, memory, mask=mask)[0], block.norm, placement)
        assert torch.equal(block(x, memory, mask=mask), expected)
        with record_attention(block) as weights:
            block(x, memory, mask=mask)
        assert weights["sublayer"][0].shape == (BATCH, HEADS, QUERY, 5)
    assert {name.partition(".")[0] for name, _ in block.named_parameters()} == {"norm", "sublayer"}


def test_dropout_falls_on_what_is_added_in_training_only():
    # after the norm it would leave zeros in the output of post-norm, and drop the residual too
    x = tokens()
    for placement in ("pre", "post"):
        block = Residual(norm=LayerNorm(d_model=D), sublayer=nn.Identity(), placement=placement, dropout=0.5)
        assert torch.equal(block.eval()(x), residual_block(x, lambda y: y, block.norm, placement))
        y = block.train()(x)
        assert (y != 0).all() and not torch.equal(y, block(x))
    pre = Residual(norm=nn.Identity(), sublayer=nn.Identity(), placement="pre", dropout=0.5)(x) / x
    assert {round(ratio) for ratio in pre.flatten().tolist()} == {1, 3}  # x + 0, x + 2 x
    nothing = Residual(norm=LayerNorm(d_model=D), sublayer=nn.Linear(D, D), placement="pre", dropout=1.0)
    assert torch.equal(nothing(x), x)


# ---------------------------------------------------------------- errors
def test_wrong_arguments_are_refused_by_name():
    x, gamma, beta = tokens(), *gains()
    attention = MultiHeadAttention(d_model=D, n_heads=HEADS)
    values = {
        "gamma must have one number for each of the 18 columns of x (2, 4, 18), got 4": lambda: layer_norm(
            x, gamma[:4], beta
        ),
        "beta must have one number for each of the 18 columns of x (2, 4, 18), got 1": lambda: layer_norm(
            x, gamma, beta[:1]
        ),
        "gamma must have 1 axis (d_model), got 2 axes: shape (4, 18)": lambda: rms_norm(x, x[0]),
        "x must have at least 1 axis (..., d_model), got 0 axes: shape ()": lambda: rms_norm(x[0, 0, 0], gamma),
        "unbiased divides by d_model - 1, and d_model is 1: leave unbiased=False": lambda: layer_norm(
            x[..., :1], gamma[:1], beta[:1], unbiased=True
        ),
        "gamma must have one number for each of the 17 columns of x (2, 4, 17), got 18": lambda: LayerNorm(d_model=D)(
            x[..., 1:]
        ),
        "d_model must be at least 1, got 0": lambda: RMSNorm(d_model=0),
        "mode must be one of 'pre', 'post', 'normed_residual', 'sum_not_normed', 'no_residual', got 'before'": (
            lambda: residual_block(x, double, plain, "before")
        ),
        "placement must be one of 'pre', 'post', 'normed_residual', 'sum_not_normed', 'no_residual', got None": (
            lambda: Residual(norm=plain, sublayer=double, placement=None)
        ),
        "dropout must lie in 0..1, got 2: it is the share of the numbers in the sub-layer's output that are set to 0": (
            lambda: Residual(norm=plain, sublayer=double, placement="pre", dropout=2)
        ),
        "f must return the shape of its input (2, 4, 18), got (2, 4, 1): the two are added": (
            lambda: residual_block(x, lambda y: y[..., :1], plain, "pre")
        ),
    }
    types = {
        "x must be a float tensor, got torch.int64: x.float() makes one": lambda: rms_norm(x.long(), gamma),
        "x must be a torch.Tensor, got list: torch.as_tensor(x) makes one": lambda: layer_norm([1.0], gamma, beta),
        "beta must be a torch.Tensor, got NoneType: torch.as_tensor(beta) makes one": lambda: layer_norm(
            x, gamma, None
        ),
        "f must return a torch.Tensor, got tuple: attention returns (output, weights), and only the output is added": (
            lambda: residual_block(x, attention, plain, "post")
        ),
        "f must return a torch.Tensor, got NoneType": lambda: residual_block(x, lambda y: None, plain, "post"),
    }
    for kind, cases in ((ValueError, values), (TypeError, types)):
        for text, call in cases.items():
            assert error_text(kind, call) == text


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_an_eps_that_is_no_small_number_is_refused_where_it_is_given(norm):
    assert error_text(ValueError, lambda: norm(d_model=4, eps=-1.0)) == "eps must be at least 0, got -1.0"
    assert error_text(ValueError, lambda: norm(d_model=4, eps=math.nan)) == "eps must be at least 0, got nan"
    assert error_text(TypeError, lambda: norm(d_model=4, eps="1e-5")) == "eps must be a number, got str ('1e-5')"


def test_the_constructors_take_names_only():
    for call in (lambda: LayerNorm(D), lambda: RMSNorm(D), lambda: Residual(plain, double, "pre")):
        with pytest.raises(TypeError):
            call()
