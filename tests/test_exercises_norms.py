"""The galleries of layer_norm, rms_norm and residual_block: what is accepted, what is named, and what is said.

That every mistake is diagnosed as itself is tested in test_exercises.py for all exercises.
"""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from transformer_edu.exercises import load
from transformer_edu.exercises.outcome import same_outcome
from transformer_edu.exercises.residual import FORMULAS

LAYER = load("norms.layer_norm")
RMS = load("norms.rms_norm")
BLOCK = load("norms.residual_block")
EXERCISES = (LAYER, RMS, BLOCK)


def verdict(fn, exercise=LAYER):
    return exercise.check(fn, quiet=True)


# ---------------------------------------------------------------- the probes
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_each_probe_builds_its_arguments_anew(exercise):
    for probe in exercise.probes:
        for a, b in zip(probe.make(), probe.make(), strict=True):
            if isinstance(a, torch.Tensor):
                assert torch.equal(a, b) and a.data_ptr() != b.data_ptr(), probe.says


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_a_mistake_is_called_an_edge_case_only_where_ordinary_probes_cannot_see_it(exercise):
    right = exercise.expected()
    core = [i for i, probe in enumerate(exercise.probes) if not probe.edge]
    for mistake in exercise.mistakes:
        outcomes = exercise.expected(exercise.runnable(mistake))
        seen = not all(same_outcome(outcomes[i], right[i]) for i in core)
        assert seen != mistake.edge, (mistake.name, mistake.switches)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_every_switch_of_a_mistake_is_known_to_the_one_implementation(exercise):
    for mistake in exercise.mistakes:
        errors = [outcome.error for outcome in exercise.expected(exercise.runnable(mistake))]
        assert not any(isinstance(error, (KeyError, NameError, ValueError)) for error in errors), mistake.switches


@pytest.mark.parametrize("exercise", [LAYER, RMS], ids=lambda e: e.name)
def test_no_axis_of_an_ordinary_probe_has_next_to_no_spread(exercise):
    """Else eps would matter there, and a wrong axis could not be told beside a wrong eps."""
    for probe in exercise.probes:
        x = probe.make()[0]
        if probe.edge or x.shape[0] == 1:
            continue
        for axis in range(x.dim()):
            assert x.var(axis, correction=0).min() > 0.1, probe.says


def test_the_norm_of_a_probe_can_be_told_from_the_norm_of_a_norm():
    x, _, norm, _ = BLOCK.probes[2].make()
    assert not torch.allclose(norm(norm(x)), norm(x), atol=0.01)


# ---------------------------------------------------------------- right answers
def scaled(x, normed, gamma, beta):
    return (normed * gamma + beta).to(x.dtype)


def by_hand(x, gamma, beta, eps=1e-5):
    wide = x.float()
    centred = wide - wide.sum(-1, keepdim=True) / wide.shape[-1]
    spread = (centred * centred).sum(-1, keepdim=True) / wide.shape[-1]
    return (gamma * centred / (spread + eps) ** 0.5 + beta).type_as(x)


def in_one_pass_but_double(x, gamma, beta, eps=1e-5):
    wide = x.double()
    mean = wide.mean(-1, keepdim=True)
    return scaled(x, (wide - mean) * ((wide * wide).mean(-1, keepdim=True) - mean**2 + eps).rsqrt(), gamma, beta)


def corrected(x, gamma, beta, eps=1e-5):
    wide, d = x.float(), x.shape[-1]
    normed = (wide - wide.mean(-1, keepdim=True)) / (wide.var(-1, keepdim=True) * (d - 1) / d + eps).sqrt()
    return scaled(x, normed, gamma, beta)


def with_a_centring_matrix(x, gamma, beta, eps=1e-5):
    d = x.shape[-1]
    centred = x.double() @ (torch.eye(d) - torch.full((d, d), 1 / d)).double()
    length = torch.linalg.vector_norm(centred, dim=-1, keepdim=True)
    return scaled(x, centred / length.square().div(d).add(eps).sqrt(), gamma, beta)


def number_by_number(x, gamma, beta, eps=1e-5):
    rows = []
    for row in x.reshape(-1, x.shape[-1]).tolist():
        mean = sum(row) / len(row)
        spread = sum((v - mean) ** 2 for v in row) / len(row)
        rows.append([(v - mean) / math.sqrt(spread + eps) * g + b for v, g, b in zip(row, gamma, beta, strict=True)])
    return torch.tensor(rows).reshape(x.shape).to(x.dtype)


def with_the_columns_first(x, gamma, beta, eps=1e-5):
    columns = x.float().movedim(-1, 0)
    normed = (columns - columns.mean(0)) / (columns.var(0, correction=0) + eps).sqrt()
    return scaled(x, normed.movedim(0, -1), gamma, beta)


def by_groups(x, gamma, beta, eps=1e-5):
    return F.group_norm(x.float().reshape(-1, x.shape[-1]), 1, gamma, beta, eps).reshape(x.shape).to(x.dtype)


def by_a_module(x, gamma, beta, eps=1e-5):
    module = nn.LayerNorm(x.shape[-1], eps=eps)
    module.load_state_dict({"weight": gamma, "bias": beta})
    return module(x.float()).to(x.dtype)


@pytest.mark.parametrize(
    "answer",
    [
        by_hand,
        in_one_pass_but_double,
        corrected,
        with_a_centring_matrix,
        number_by_number,
        with_the_columns_first,
        by_groups,
        by_a_module,
        lambda x, g, b, eps=1e-5: F.layer_norm(x.double(), x.shape[-1:], g.double(), b.double(), eps).to(x.dtype),
        lambda x, g, b, eps=1e-5: F.layer_norm(x, x.shape[-1:], g.to(x.dtype), b.to(x.dtype), eps),
    ],
)
def test_a_right_layer_norm_is_accepted(answer):
    found = verdict(answer)
    assert found.status == "correct", found.message


def root_mean_square(x, eps):
    return x.float().square().mean(-1, keepdim=True).add(eps).sqrt()


@pytest.mark.parametrize(
    "answer",
    [
        lambda x, g, eps=1e-6: F.rms_norm(x.float(), x.shape[-1:], g, eps),
        lambda x, g, eps=1e-6: F.rms_norm(x, x.shape[-1:], g.to(x.dtype), eps),
        lambda x, g, eps=1e-6: x.float() / root_mean_square(x, eps) * g,
        lambda x, g, eps=1e-6: (x.float() / root_mean_square(x, eps)).to(x.dtype) * g.to(x.dtype),
        lambda x, g, eps=1e-6: x / root_mean_square(x, eps) * g,
        lambda x, g, eps=1e-6: x / (x.double().norm(dim=-1, keepdim=True) ** 2 / x.shape[-1] + eps) ** 0.5 * g,
        lambda x, g, eps=1e-6: torch.einsum("...d,...,d->...d", x.float(), 1 / root_mean_square(x, eps)[..., 0], g),
        lambda x, g, eps=1e-6: (
            x.double()
            / (x.double().var(-1, correction=0, keepdim=True) + x.double().mean(-1, keepdim=True) ** 2 + eps).sqrt()
            * g
        ),
    ],
)  # fmt: skip
def test_a_right_rms_norm_is_accepted(answer):
    found = verdict(lambda x, *rest: answer(x, *rest).to(x.dtype), RMS)
    assert found.status == "correct", found.message


@pytest.mark.parametrize(
    "answer",
    [
        lambda x, f, norm, mode: f(norm(x)) + x if mode == "pre" else norm(f(x) + x),
        lambda x, f, norm, mode: {"pre": lambda: x + f(norm(x)), "post": lambda: norm(x + f(x))}[mode](),
        lambda x, f, norm, mode: x.clone().add_(f(norm(x))) if mode != "post" else norm(x.clone().add_(f(x))),
        lambda x, f, norm, mode: f(norm(x)).add_(x) if mode == "pre" else norm(torch.stack((x, f(x))).sum(0)),
    ],
)
def test_a_right_residual_block_is_accepted(answer):
    found = verdict(answer, BLOCK)
    assert found.status == "correct", found.message


# ---------------------------------------------------------------- float16
@pytest.mark.parametrize(
    ("answer", "exercise"),
    [
        (lambda x, g, b, eps=1e-5: F.layer_norm(x.float(), x.shape[-1:], g, b, eps), LAYER),
        (lambda x, g, b, eps=1e-5: F.layer_norm(x.double(), x.shape[-1:], g.double(), b.double(), eps), LAYER),
        (lambda x, g, eps=1e-6: F.rms_norm(x.float(), x.shape[-1:], g, eps), RMS),
        (lambda x, g, eps=1e-6: (x.float() / root_mean_square(x, eps)).to(x.dtype) * g, RMS),  # g makes float32 of it
    ],
)
def test_a_result_that_is_wider_than_a_float16_x_is_accepted_as_any_wider_result_is(answer, exercise):
    found = verdict(answer, exercise)
    assert found.status == "correct", found.message


def test_of_a_wider_result_only_what_is_wrong_in_its_numbers_is_said():
    found = verdict(lambda x, g, b, eps=1e-5: annotated(x.float(), g, b, eps))
    assert found.mistake == "unbiased + eps_outside"
    assert "float16" not in found.message


def in_half(mean, spread):
    def answer(x, gamma, beta, eps=1e-5):
        return ((x - mean(x)) / (spread(x) + eps).sqrt() * gamma + beta).to(x.dtype)

    return answer


def mean_of(x):
    return x.mean(-1, keepdim=True)


def variance_of(x):
    return x.var(-1, correction=0, keepdim=True)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (in_half(mean_of, variance_of), "as x.var of a float16 x is"),
        (in_half(lambda x: mean_of(x.float()), variance_of), "as x.var of a float16 x is"),
        (in_half(mean_of, lambda x: (x - mean_of(x)).square().mean(-1, keepdim=True)), "the square of 300 does not"),
    ],
)
def test_a_variance_taken_in_float16_is_named(answer, said):
    found = verdict(answer)
    assert found.mistake == "statistics_in_half" and said in found.message


def test_the_variance_of_some_float16_x_is_no_float16():
    halves = [probe.make()[0] for probe in LAYER.probes if probe.make()[0].dtype == torch.half]
    assert any(x.var(-1, correction=0).isinf().any() and not x.std(-1).isinf().any() for x in halves)


# ---------------------------------------------------------------- layer norm, named
def norm_of(  # a reader's layer norm with things gone wrong, written without a look at the gallery's
    *,
    mean=lambda x: x.mean(-1, keepdim=True),
    spread=lambda x: x.var(-1, unbiased=False, keepdim=True),
    below=lambda spread, eps: torch.sqrt(spread + eps),
    affine=lambda normed, gamma, beta: gamma * normed + beta,
    default=1e-5,
    cast=torch.Tensor.float,
):
    def answer(x, gamma, beta, eps=default):
        y = cast(x)
        return affine((y - mean(y)) / below(spread(y), eps), gamma, beta).to(x.dtype)

    return answer


def outside(spread, eps):
    return spread.sqrt() + eps


def unbiased(x):
    return x.var(-1, keepdim=True)


def over(*axes):
    return {
        "mean": lambda x: x.mean(axes, keepdim=True),
        "spread": lambda x: x.var(axes, correction=0, keepdim=True),
    }


def annotated(x, gamma, beta, eps=1e-6):
    return gamma * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) + beta


LAYER_WRONG = {
    "unbiased": norm_of(spread=unbiased),
    "unbiased + eps_outside": norm_of(spread=unbiased, below=outside),
    "unbiased + eps_outside + eps_default": annotated,
    "unbiased + gamma_and_beta_exchanged + eps_outside": lambda x, g, b, eps=1e-5: annotated(x, b, g, eps),
    "unbiased + no_root": norm_of(spread=unbiased, below=lambda v, eps: v + eps),
    "unbiased + root_twice": lambda x, g, b, eps=1e-5: (
        g * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) ** 0.5 + b
    ),
    "unbiased + over_length": lambda x, g, b, eps=1e-5: (
        g * (x - x.mean(-2, keepdim=True)) / (x.var(-2, keepdim=True) + eps).sqrt() + b
    ),
    "unbiased + no_keepdim + statistics_in_half": lambda x, g, b, eps=1e-5: (
        (x - x.mean(-1)) / (x.var(-1) + eps).sqrt() * g + b
    ),
    "unbiased + affine_missing": norm_of(spread=unbiased, affine=lambda n, g, b: n),
    "unbiased + statistics_in_half": norm_of(
        spread=lambda x: (x - x.mean(-1, keepdim=True)).square().sum(-1, keepdim=True) / (x.shape[-1] - 1),
        cast=lambda x: x,
    ),
    "eps_outside": norm_of(below=outside),
    "eps_missing": norm_of(below=lambda v, eps: v.sqrt()),
    "eps_fixed": lambda x, g, b, eps=1e-5: F.layer_norm(x.float(), x.shape[-1:], g, b),
    "eps_default": norm_of(default=1e-6),
    "eps_as_minimum": norm_of(below=lambda v, eps: v.clamp(min=eps).sqrt()),
    "eps_beside": lambda x, g, b, eps=1e-5: (
        ((x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True) + eps) * g + b
    ),
    "no_root": norm_of(below=lambda v, eps: v + eps),
    "squared": norm_of(below=lambda v, eps: (v + eps) ** 2),
    "multiplied": norm_of(below=lambda v, eps: torch.rsqrt(v + eps)),
    "sum_of_squares": norm_of(spread=lambda x: (x - x.mean(-1, keepdim=True)).square().sum(-1, keepdim=True)),
    "wrong_count": norm_of(mean=lambda x: x.sum(-1, keepdim=True) / len(x)),
    "standard_error": norm_of(spread=lambda x: x.var(-1, correction=0, keepdim=True) / x.shape[-1]),
    "over_everything": lambda x, g, b, eps=1e-5: g * (x - x.mean()) / (x.float().var(correction=0) + eps).sqrt() + b,
    "over_sequence": lambda x, g, b, eps=1e-5: F.layer_norm(x.float(), x.shape[1:], None, None, eps) * g + b,
    "axis_counted_from_front": norm_of(**over(1)),
    "over_batch": norm_of(**over(0)),
    "over_length": norm_of(**over(-2)),
    "like_batch_norm": lambda x, g, b, eps=1e-5: (
        by_hand(x.reshape(-1, x.shape[-1]).T, 1.0, 0.0, eps).T.reshape(x.shape) * g + b
    ),
    "mean_over_batch": norm_of(mean=lambda x: x.mean(0)),
    "variance_over_everything": norm_of(spread=lambda x: x.var(correction=0)),
    "no_keepdim": lambda x, g, b, eps=1e-5: (x - x.mean(-1)) / (x.float().var(-1, correction=0) + eps).sqrt() * g + b,
    "not_centred": norm_of(mean=lambda x: 0.0, spread=lambda x: x.square().mean(-1, keepdim=True)),
    "not_normalised": lambda x, g, b, eps=1e-5: x * g + b,
    "not_scaled": norm_of(below=lambda v, eps: 1.0),
    "parentheses_missing": lambda x, g, b, eps=1e-5: (
        g * (x - x.mean(-1, keepdim=True) / (x.float().var(-1, correction=0, keepdim=True) + eps).sqrt()) + b
    ),
    "one_pass": norm_of(spread=lambda x: x.square().mean(-1, keepdim=True) - x.mean(-1, keepdim=True).square()),
    "affine_missing": norm_of(affine=lambda n, g, b: n),
    "beta_missing": norm_of(affine=lambda n, g, b: n * g),
    "gamma_and_beta_exchanged": norm_of(affine=lambda n, g, b: n * b + g),
    "beta_scaled": norm_of(affine=lambda n, g, b: (n + b) * g),
    "one_plus_gamma": norm_of(affine=lambda n, g, b: n * (1 + g) + b),
    "gamma_added": norm_of(affine=lambda n, g, b: n + g + b),
    "one_number_for_all": norm_of(affine=lambda n, g, b: n * g[0] + b[0]),
    "gamma_along_tokens": norm_of(affine=lambda n, g, b: n * g[:, None] + b[:, None]),
    "gamma_in_a_product": norm_of(affine=lambda n, g, b: n @ g + b),
    "statistics_in_half": norm_of(
        spread=lambda x: (x - x.mean(-1, keepdim=True)).square().mean(-1, keepdim=True), cast=lambda x: x
    ),
    "changes_x": lambda x, g, b, eps=1e-5: by_hand(x.sub_(x.mean(-1, keepdim=True)), g, b, eps),
    "changes_input": lambda x, g, b, eps=1e-5: by_hand(x, g, b.add_(1) - 1, eps),
    "residual_added": lambda x, g, b, eps=1e-5: x + by_hand(x, g, b, eps),
    "transposed": lambda x, g, b, eps=1e-5: by_hand(x, g, b, eps).mT,
    "more_results": lambda x, g, b, eps=1e-5: (by_hand(x, g, b, eps), x.mean(-1)),
    "eps_required": lambda x, g, b, eps: by_hand(x, g, b, eps),
    "rounded": lambda x, g, b, eps=1e-5: by_hand(x, g, b, eps).bfloat16().to(x.dtype),
    "random": lambda x, g, b, eps=1e-5: F.dropout(by_hand(x, g, b, eps), 0.1),
    "numpy_result": lambda x, g, b, eps=1e-5: by_hand(x, g, b, eps).numpy(),
    "only_shape": lambda x, g, b, eps=1e-5: by_hand(x, g, b, eps).flatten(0, -2),
    "mean_not_zero": lambda x, g, b, eps=1e-5: by_hand(x, g, b, eps).relu(),
    "variance_not_one": norm_of(below=lambda v, eps: torch.exp(v + eps)),
    "gamma_and_beta_misused": norm_of(affine=lambda n, g, b: n * (g + b)),
    "eps_misplaced": norm_of(below=lambda v, eps: v.sqrt() - eps),
}  # fmt: skip


def without_parentheses(x, g, b, eps=1e-5):
    y = x.float()
    return (y - y.mean(-1, keepdim=True) / (y.var(-1, correction=0, keepdim=True) + eps).sqrt() * g + b).to(x.dtype)


def with_one_variance(x, g, b, eps=1e-5):
    y = x.float() - x.float().mean(-1, keepdim=True)
    return (y / (y.var(correction=0) + eps).sqrt() * g + b).to(x.dtype)


def centred_in_place(x, g, b, eps=1e-5):
    y = x.float()
    y -= y.mean(-1, keepdim=True)
    return by_hand(y, g, b, eps).to(x.dtype)


@pytest.mark.parametrize(
    ("answer", "name", "said"),
    [
        (without_parentheses, "parentheses_missing", "multiplied by gamma, and that is subtracted from x"),
        (centred_in_place, "changes_x", "x.float() makes no copy"),
        (norm_of(spread=lambda x: x.var(correction=0)), "variance_over_everything", "over the whole tensor"),
        (with_one_variance, "variance_over_everything", "is the axis left out in one of the two calls?"),
    ],
)
def test_another_form_of_a_mistake_gets_a_sentence_of_its_own(answer, name, said):
    found = verdict(answer)
    assert found.mistake == name and said in found.message
    assert "There may be more" not in found.message


@pytest.mark.parametrize("name", LAYER_WRONG)
def test_a_wrong_layer_norm_is_named(name):
    found = verdict(LAYER_WRONG[name])
    assert found.mistake == name, found.message


def test_two_mistakes_of_the_annotated_transformer_are_both_said():
    said = verdict(annotated).message
    assert "1. Your variance divides by one less than the number of values" in said
    assert "2. You add eps to the root and not under it." in said
    assert "3. Where eps is left out, yours is not 1e-5" in said


@pytest.mark.parametrize("exercise", [LAYER, RMS], ids=lambda e: e.name)
def test_a_result_of_too_few_digits_is_no_wrong_formula(exercise):
    found = verdict(lambda *a: exercise.reference(*a).half(), exercise)
    assert (found.status, found.mistake) == ("wrong", None)
    assert "should have dtype float32, but has float16" in found.message


def test_a_spread_of_0_treated_as_a_special_case_is_said_to_leave_eps_out():
    def special(spread, eps):
        return torch.where(spread == 0, torch.ones_like(spread), spread.sqrt())

    found = verdict(norm_of(below=special))
    assert found.mistake == "eps_fixed"
    assert "or treat a spread of 0 as a special case" in found.message


# ---------------------------------------------------------------- RMS norm, named
def rms_of(
    *,
    size=lambda x: x.square().mean(-1, keepdim=True),
    below=lambda size, eps: torch.sqrt(size + eps),
    scale=lambda normed, gamma: gamma * normed,
    default=1e-6,
):
    def answer(x, gamma, eps=default):
        y = x.float()
        return scale(y / below(size(y), eps), gamma).to(x.dtype)

    return answer


RMS_WRONG = {
    "mean_subtracted": lambda x, g, eps=1e-6: F.layer_norm(x.float(), x.shape[-1:], g, None, eps),
    "mean_subtracted + eps_outside": lambda x, g, eps=1e-6: annotated(x, g, 0, eps),
    "mean_subtracted + one_plus_gamma": lambda x, g, eps=1e-6: F.layer_norm(x.float(), x.shape[-1:], 1 + g, None, eps),
    "standard_deviation": lambda x, g, eps=1e-6: x / (x.float().var(-1, keepdim=True) + eps).sqrt() * g,
    "sum_of_squares": rms_of(size=lambda x: x.square().sum(-1, keepdim=True)),
    "sum_of_squares + eps_fixed": lambda x, g, eps=1e-6: F.normalize(x.float(), dim=-1) * g,
    "eps_outside": rms_of(below=outside),
    "eps_missing": rms_of(below=lambda s, eps: s.sqrt()),
    "eps_fixed": lambda x, g, eps=1e-6: F.rms_norm(x.float(), x.shape[-1:], g),
    "eps_default": rms_of(default=1e-5),
    "eps_outside + eps_default": rms_of(below=outside, default=1e-8),
    "eps_as_minimum": lambda x, g, eps=1e-6: F.normalize(x.float(), dim=-1, eps=eps) * x.shape[-1] ** 0.5 * g,
    "eps_misplaced": rms_of(below=lambda s, eps: s.sqrt() - eps),
    "no_root": rms_of(below=lambda s, eps: s + eps),
    "no_root + gamma_missing": rms_of(below=lambda s, eps: s + eps, scale=lambda n, g: n),
    "multiplied": rms_of(below=lambda s, eps: torch.rsqrt(s + eps)),
    "gamma_missing": rms_of(scale=lambda n, g: n),
    "gamma_missing + square_in_half": lambda x, g, eps=1e-6: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps),
    "one_plus_gamma": rms_of(scale=lambda n, g: n * (1 + g)),
    "gamma_in_a_product": rms_of(scale=lambda n, g: n @ g),
    "gamma_too_early": lambda x, g, eps=1e-6: rms_of()(x.float() * g, torch.ones(x.shape[-1]), eps),
    "gamma_misused": rms_of(scale=lambda n, g: n * g.abs().sqrt()),
    "wrong_count": rms_of(size=lambda x: x.square().sum(-1, keepdim=True) / len(x)),
    "one_less": rms_of(size=lambda x: x.square().sum(-1, keepdim=True) / (x.shape[-1] - 1)),
    "squared_after_the_mean": rms_of(size=lambda x: x.mean(-1, keepdim=True) ** 2),
    "mean_of_absolute_values": rms_of(size=lambda x: x.abs().mean(-1, keepdim=True), below=lambda s, eps: s + eps),
    "divided_by_largest": rms_of(size=lambda x: x.abs().amax(-1, keepdim=True), below=lambda s, eps: s + eps),
    "not_divided": lambda x, g, eps=1e-6: x * g,
    "over_everything": rms_of(size=lambda x: x.square().mean()),
    "like_batch_norm": rms_of(size=lambda x: x.square().flatten(0, -2).mean(0)),
    "axis_counted_from_front": rms_of(size=lambda x: x.square().mean(1, keepdim=True)),
    "no_keepdim": rms_of(size=lambda x: x.square().mean(-1)),
    "square_in_half": lambda x, g, eps=1e-6: x.float() / (x.square().mean(-1, keepdim=True) + eps).sqrt() * g,
    "half_precision": lambda x, g, eps=1e-6: x.float() / ((x * x).float().mean(-1, keepdim=True) + eps).sqrt() * g,
    "length_times_root": lambda x, g, eps=1e-6: (
        x.float() / ((x.float().norm(dim=-1, keepdim=True) ** 2 * x.shape[-1] + eps) ** 0.5) * g
    ),
    "length_times_root + eps_outside": lambda x, g, eps=1e-6: (
        x.float() / (x.float().norm(dim=-1, keepdim=True) * x.shape[-1] ** 0.5 + eps) * g
    ),
    "size_not_one": rms_of(below=lambda s, eps: torch.exp(s)),
    "size_returned": lambda x, g, eps=1e-6: root_mean_square(x, eps),
    "changes_x": lambda x, g, eps=1e-6: x.div_(root_mean_square(x, eps)) * g,
    "rounded": lambda x, g, eps=1e-6: rms_of()(x, g, eps).half().float(),
}  # fmt: skip


def test_a_root_taken_before_the_mean_is_said():
    found = verdict(rms_of(size=lambda x: (x.square() + 1e-6).sqrt().mean(-1, keepdim=True), below=lambda s, e: s), RMS)
    assert found.mistake == "mean_of_absolute_values"
    exact = verdict(lambda x, g, eps=1e-6: x / (x.float() ** 2 + eps).sqrt().mean(-1, keepdim=True) * g, RMS)
    assert "You take the root of each square before the mean is taken" in exact.message


@pytest.mark.parametrize("name", RMS_WRONG)
def test_a_wrong_rms_norm_is_named(name):
    found = verdict(RMS_WRONG[name], RMS)
    assert found.mistake == name, found.message


# ---------------------------------------------------------------- the residual block, named
def block_of(pre=lambda x, f, n: x + f(n(x)), post=lambda x, f, n: n(x + f(x))):
    return lambda x, f, norm, mode: (pre if mode == "pre" else post)(x, f, norm)


def overwritten(x, f, norm, mode):
    if mode == "pre":
        x = norm(x)
    x = x + f(x)
    return norm(x) if mode == "post" else x


def without_else(x, f, norm, mode):
    if mode == "pre":
        return x + f(norm(x))


BLOCK_WRONG = {
    "mode_ignored": lambda x, f, n, mode: x + f(n(x)) if mode else n(x + f(x)),
    "modes_exchanged": lambda x, f, n, mode: block_of()(x, f, n, "post" if mode == "pre" else "pre"),
    "pre_normed_residual": overwritten,
    "pre_without_residual": block_of(pre=lambda x, f, n: f(n(x))),
    "post_without_residual": block_of(post=lambda x, f, n: n(f(x))),
    "pre_without_residual + post_without_residual": block_of(lambda x, f, n: f(n(x)), lambda x, f, n: n(f(x))),
    "post_x_normed_alone": block_of(post=lambda x, f, n: n(x) + f(x)),
    "post_norm_after_f": block_of(post=lambda x, f, n: n(f(x)) + x),
    "post_normed_separately": block_of(post=lambda x, f, n: n(x) + n(f(x))),
    "pre_normed_twice": block_of(pre=lambda x, f, n: n(x + f(n(x)))),
    "normed_twice": lambda x, f, n, mode: n(x + f(n(x))),
    "without_norm": lambda x, f, n, mode: x + f(x),
    "without_f": lambda x, f, n, mode: n(x),
    "post_other_formula": block_of(post=lambda x, f, n: n(x + f(f(x)))),
    "pre_multiplied + post_multiplied": block_of(lambda x, f, n: x * f(n(x)), lambda x, f, n: n(x * f(x))),
    "pre_joined": block_of(pre=lambda x, f, n: torch.cat((x, f(n(x))), -1)),
    "post_nothing_returned": without_else,
    "f_and_norm_exchanged": lambda x, n, f, mode: block_of()(x, f, n, mode),
    "own_norm": lambda x, f, n, mode: block_of()(x, f, nn.LayerNorm(x.shape[-1]), mode),
    "changes_input": block_of(pre=lambda x, f, n: x.add_(f(n(x)))),
    "more_results": lambda x, f, n, mode: (block_of()(x, f, n, mode), None),
    "pre_wrong": block_of(pre=lambda x, f, n: (x + f(n(x))) / 2**0.5),
    "post_wrong": block_of(post=lambda x, f, n: n(x + f(x) / 2)),
    "random": lambda x, f, n, mode: F.dropout(block_of()(x, f, n, mode), 0.1),
}


@pytest.mark.parametrize("name", BLOCK_WRONG)
def test_a_wrong_residual_block_is_named(name):
    found = verdict(BLOCK_WRONG[name], BLOCK)
    assert found.mistake == name, found.message


@pytest.mark.parametrize("mode", ["pre", "post"])
@pytest.mark.parametrize("formula", ["norm(x) + f(x)", "f(x)", "x + f(f(norm(x)))"])
def test_the_formula_that_is_computed_is_said(mode, formula):
    right = {"pre": "x + f(norm(x))", "post": "norm(x + f(x))"}[mode]
    found = verdict(block_of(**{mode: FORMULAS[formula]}), BLOCK)
    assert f'In mode "{mode}" you compute {formula}: it must be {right}.' in found.message


def test_a_formula_computes_what_it_says():
    x, f, norm, _ = BLOCK.probes[2].make()
    for formula, computed in FORMULAS.items():
        if formula != "nothing (None)":
            written = eval(formula, {"x": x, "f": f, "norm": norm, "torch": torch})
            assert torch.allclose(computed(x, f, norm), written, atol=1e-5), formula


# ---------------------------------------------------------------- wrong answers without a name
def sorted_first(x, gamma, beta, eps=1e-5):
    return by_hand(x.sort(-1).values, gamma, beta, eps)


def width_four(x, gamma, eps=1e-6):
    return x.float() / (x.float().square().sum(-1, keepdim=True) / 4 + eps).sqrt() * gamma


def raising(x, f, norm, mode):
    return x + f(norm(x)) if mode == "pre" else norm(x)[:, 7]


@pytest.mark.parametrize(("answer", "exercise"), [(sorted_first, LAYER), (width_four, RMS), (raising, BLOCK)])
def test_an_unknown_mistake_gets_no_name(answer, exercise):
    found = verdict(answer, exercise)
    assert found.status in ("wrong", "error") and found.mistake is None
