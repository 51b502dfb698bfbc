"""The galleries of feed_forward and swiglu: what is accepted, what is named, and what is left without a name.

That every mistake is diagnosed as itself is tested in test_exercises.py for all exercises.
"""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from transformer_edu.exercises import load
from transformer_edu.exercises.gated_feedforward import ONE_GATE
from transformer_edu.exercises.plain_feedforward import UNIT

PLAIN, GATED = load("feedforward.feed_forward"), load("feedforward.swiglu")
BOTH = pytest.mark.parametrize("exercise", [PLAIN, GATED], ids=lambda e: e.name)


def verdict(fn, exercise=PLAIN):
    return exercise.check(fn, quiet=True)


# ---------------------------------------------------------------- the probes
@BOTH
def test_each_probe_builds_its_arguments_anew(exercise):
    for probe in exercise.probes:
        for a, b in zip(probe.make(), probe.make(), strict=True):
            assert torch.equal(a, b) and a.data_ptr() != b.data_ptr(), probe.says


@BOTH
def test_what_is_said_of_an_input_is_its_shape(exercise):
    for probe in exercise.probes:
        x, w, *_ = probe.make()
        if "the same" not in probe.says:
            assert str(tuple(x.shape)) in probe.says and f"d_ff {w.shape[1]}" in probe.says


def test_hidden_units_of_every_probe_are_on_and_off():
    for probe in PLAIN.probes:
        x, w1, b1, *_ = probe.make()
        on = (x @ w1 + b1 > 0).float().mean()
        assert 0 < on < 1, probe.says


@BOTH
def test_a_token_that_stands_twice_comes_out_twice(exercise):
    probe, outcome = next(p for p in zip(exercise.probes, exercise.expected(), strict=True) if "twice" in p[0].says)
    x = probe.make()[0]
    assert torch.equal(x[0, 0], x[1, 2]) and len({tuple(token) for token in x.flatten(0, 1).tolist()}) == 5
    torch.testing.assert_close(outcome.value[0, 0], outcome.value[1, 2])


def test_the_probe_of_the_hidden_units_shows_them():
    probe, outcome = next(p for p in zip(PLAIN.probes, PLAIN.expected(), strict=True) if p[0].says == UNIT)
    x, w1, b1, *_ = probe.make()
    torch.testing.assert_close(outcome.value, torch.relu(x @ w1 + b1))
    probe, outcome = next(p for p in zip(GATED.probes, GATED.expected(), strict=True) if p[0].says == ONE_GATE)
    x, w_gate, w_up, _ = probe.make()
    torch.testing.assert_close(outcome.value, F.silu(x @ w_gate) * (x @ w_up))
    gate = x @ w_gate
    torch.testing.assert_close(gate, gate[..., :1].expand_as(gate))
    torch.testing.assert_close(gate[0, 0], gate[0, 1])
    assert not torch.allclose(x[0, 0], x[0, 1])


# ---------------------------------------------------------------- right answers, unusual
def by_convolutions(x, w1, b1, w2, b2):
    hidden = F.conv1d(x.transpose(-2, -1), w1.T[:, :, None], b1).clamp(min=0)
    return F.conv1d(hidden, w2.T[:, :, None], b2).transpose(-2, -1)


def unit_by_unit(x, w1, b1, w2, b2):
    out = b2.expand_as(x).clone()
    for u in range(len(b1)):
        out += torch.relu(x @ w1[:, u] + b1[u])[..., None] * w2[u]
    return out


def with_biases_as_rows_of_the_matrices(x, w1, b1, w2, b2):
    one = torch.ones_like(x[..., :1])
    hidden = (torch.cat([x, one], -1) @ torch.cat([w1, b1[None]])).clamp_min(0)
    return torch.cat([hidden, one], -1) @ torch.cat([w2, b2[None]])


def with_modules(x, w1, b1, w2, b2):
    first, second = nn.Linear(*w1.shape), nn.Linear(*w2.shape)
    state = {"0.weight": w1.T, "0.bias": b1, "2.weight": w2.T, "2.bias": b2}
    layer = nn.Sequential(first, nn.ReLU(inplace=True), second)
    layer.load_state_dict(state)
    return layer(x)


def number_by_number(x, w1, b1, w2, b2):
    first, second, out = w1.T.tolist(), w2.T.tolist(), []
    for token in x.reshape(-1, x.shape[-1]).tolist():
        hidden = [max(0.0, sum(map(float.__mul__, token, w)) + b) for w, b in zip(first, b1.tolist(), strict=True)]
        out.append([sum(map(float.__mul__, hidden, w)) + b for w, b in zip(second, b2.tolist(), strict=True)])
    return torch.tensor(out).view_as(x)


@pytest.mark.parametrize(
    "answer",
    [
        by_convolutions,
        unit_by_unit,
        with_biases_as_rows_of_the_matrices,
        with_modules,
        number_by_number,
        lambda x, w1, b1, w2, b2: F.linear(F.linear(x, w1.T, b1).relu_(), w2.T, b2),
        lambda x, w1, b1, w2, b2: torch.max(torch.zeros(1), x @ w1 + b1) @ w2 + b2,
        lambda x, *w: torch.relu(x.double() @ w[0].double() + w[1]) @ w[2].double() + w[3],
        lambda x, w1, b1, w2, b2: ((x @ w1 + b1) + (x @ w1 + b1).abs()) / 2 @ w2 + b2,
        lambda x, *w: torch.from_numpy(
            np.maximum(x.numpy() @ w[0].numpy() + w[1].numpy(), 0) @ w[2].numpy() + w[3].numpy()
        ),
    ],
)
def test_a_right_feed_forward_is_accepted(answer):
    found = verdict(answer)
    assert found.status == "correct", found.message


@pytest.mark.parametrize(
    "answer",
    [
        lambda x, g, u, d: ((x @ g) * torch.sigmoid(x @ g) * (x @ u)) @ d,
        lambda x, g, u, d: (x @ g / (1 + torch.exp(-(x @ g))) * (x @ u)) @ d,
        lambda x, g, u, d: x @ u * F.silu(x @ g) @ d,  # from left to right it comes out right
        lambda x, g, u, d: (x @ g * F.glu(torch.cat([x @ u, x @ g], -1), -1)) @ d,
        lambda x, g, u, d: F.linear(F.silu(F.linear(x, g.T)) * F.linear(x, u.T), d.T),
        lambda x, g, u, d: torch.einsum("...f,...f,fd->...d", F.silu(x @ g), x @ u, d),
        lambda x, g, u, d: ((F.silu(x @ g) * (x @ u))[..., None] * d).sum(-2),
        lambda x, g, u, d: (F.silu(x.double() @ g.double()) * (x.double() @ u.double())) @ d.double(),
        lambda x, g, u, d: torch.stack([(F.silu(t @ g) * (t @ u)) @ d for t in x.flatten(0, -2)]).view_as(x),
        lambda x, g, u, d: nn.SiLU()((x @ torch.cat([g, u], 1))[..., : len(d)]).mul_(x @ u) @ d,
        lambda x, g, u, d: (x @ g * (1 + torch.tanh(x @ g / 2)) / 2 * (x @ u)) @ d,
    ],
)
def test_a_right_swiglu_is_accepted(answer):
    found = verdict(answer, GATED)
    assert found.status == "correct", found.message


# ---------------------------------------------------------------- wrong answers that are in no gallery as they stand
def relu(x, w1, b1, w2, b2):
    return torch.relu(x @ w1 + b1) @ w2 + b2


def gated(x, g, u, d):
    return (F.silu(x @ g) * (x @ u)) @ d


def one_row_after_another(x, w1, b1, w2, b2):
    for t in range(x.shape[-2]):
        out = relu(x[..., t, :], w1, b1, w2, b2)
    return out


def with_a_window_of_three(x, w1, b1, w2, b2):
    wide = w1.T[:, :, None].expand(-1, -1, 3) / 3
    hidden = F.conv1d(x.transpose(-2, -1), wide, b1, padding=1).relu()
    return F.conv1d(hidden, w2.T[:, :, None], b2).transpose(-2, -1)


def loop_over_tokens(x, w1, b1, w2, b2):
    hidden = torch.zeros(x.shape[0], w1.shape[1])
    for t in range(x.shape[0]):
        for u in range(w1.shape[1]):
            hidden[t, u] = max(0.0, sum(x[t, i] * w1[i, u] for i in range(x.shape[1])) + b1[u])
    return hidden @ w2 + b2


NAMED = [
    ("activation_last", lambda x, w1, b1, w2, b2: torch.relu((x @ w1 + b1) @ w2 + b2)),
    ("activation_twice", lambda *a: torch.relu(relu(*a))),
    ("random", lambda x, w1, b1, w2, b2: F.dropout(torch.relu(x @ w1 + b1), 0.1) @ w2 + b2),
    ("random", lambda x, w1, *_: nn.Linear(w1.shape[1], len(w1))(torch.relu(nn.Linear(*w1.shape)(x)))),
    ("another_activation", lambda x, w1, b1, w2, b2: F.leaky_relu(x @ w1 + b1, 0.2) @ w2 + b2),
    ("another_activation", lambda x, w1, b1, w2, b2: F.hardtanh(x @ w1 + b1) @ w2 + b2),
    ("transposed", lambda x, w1, b1, w2, b2: F.linear(F.linear(x, w1, b1).relu(), w2, b2)),
    ("no_first_bias + no_second_bias", lambda x, w1, b1, w2, b2: torch.relu(x @ w1) @ w2),
    ("gelu + no_first_bias", lambda x, w1, b1, w2, b2: F.gelu(x @ w1) @ w2 + b2),
    ("maximum_along_an_axis", lambda x, w1, b1, w2, b2: torch.max(x @ w1 + b1, 0)[0] @ w2 + b2),
    ("max_with_indices", lambda x, w1, b1, w2, b2: torch.max(x @ w1 + b1, 0) @ w2 + b2),
    ("python_max", lambda x, w1, b1, w2, b2: max(0, x @ w1 + b1) @ w2 + b2),
    ("maximum_of_a_number", lambda x, w1, b1, w2, b2: torch.maximum(x @ w1 + b1, 0) @ w2 + b2),
    ("maximum_of_a_number", lambda x, w1, b1, w2, b2: torch.max(0, x @ w1 + b1) @ w2 + b2),
    ("class_not_called", lambda x, w1, b1, w2, b2: nn.ReLU(x @ w1 + b1) @ w2 + b2),
    ("residual_inside", lambda x, *w: 0.5 * x + relu(x, *w)),
    ("scaled", lambda *a: 2 * relu(*a)),
    ("constant_off", lambda *a: relu(*a) + a[2].sum()),
    ("mixes_positions", with_a_window_of_three),
    ("pooled", one_row_after_another),
    ("only_shape", lambda *a: relu(*a).squeeze()),
    ("more_results", lambda x, w1, b1, w2, b2: (relu(x, w1, b1, w2, b2), torch.relu(x @ w1 + b1))),
    ("numpy_result", lambda *a: relu(*a).numpy()),
    ("needs_a_batch", lambda x, *w: relu(x.flatten(0, 1), *w).unflatten(0, x.shape[:2])),
    ("bias_on_matrix", lambda x, w1, b1, w2, b2: torch.relu(x @ (w1 + b1)) @ w2 + b2),
    ("bias_twice", lambda x, w1, b1, w2, b2: torch.relu(F.linear(x, w1.T, b1) + b1) @ w2 + b2),
    ("biases_exchanged", lambda x, w1, b1, w2, b2: torch.relu(x @ w1 + b1) @ w2 + b1),
    ("residual_and_activation", lambda x, *w: torch.relu(x + relu(x, *w))),
    ("scaled", lambda x, w1, b1, w2, b2: ((x @ w1 + b1) + (x @ w1 + b1).abs()) @ w2 + b2),
    ("activation_last", lambda x, w1, b1, w2, b2: torch.relu(x @ w1 @ w2 + b2)),
    ("brackets_missing", lambda x, w1, b1, w2, b2: torch.relu(x @ w1) + b1 @ w2 + b2),
    ("entry_by_entry", lambda x, w1, b1, w2, b2: torch.relu(x * w1 + b1) * w2 + b2),
    ("comparison_alone", lambda x, w1, b1, w2, b2: (x @ w1 + b1 > 0) @ w2 + b2),
    ("activation_last", lambda x, w1, b1, w2, b2: torch.relu((x @ w1 + b1) @ w2)),
    ("activation_last", lambda x, w1, b1, w2, b2: torch.relu(x @ w1 @ w2)),
    ("first_sequence_only", lambda x, *w: relu(x[0], *w)[None]),
    ("two_axes_only", loop_over_tokens),
    ("only_shape", lambda x, *w: relu(x.reshape(-1, x.shape[-1]), *w)),
    ("bias_after_activation", lambda x, w1, b1, w2, b2: torch.relu(torch.relu(x @ w1) + b1) @ w2 + b2),
    ("positive_ones_picked", lambda x, w1, b1, w2, b2: (h := x @ w1 + b1)[h > 0] @ w2 + b2),
]
GATED_NAMED = [
    ("read_from_the_left", lambda x, g, u, d: F.silu(x @ g) * x @ u @ d),
    ("gate_and_up_exchanged", lambda x, g, u, d: F.glu(torch.cat([x @ g, x @ u], -1), -1) @ d),
    ("glu", lambda x, g, u, d: (1 / (1 + torch.exp(-(x @ g))) * (x @ u)) @ d),
    ("sign", lambda x, g, u, d: (x @ g / (1 + torch.exp(x @ g)) * (x @ u)) @ d),
    ("another_activation", lambda x, g, u, d: (x @ g * torch.sigmoid(2 * (x @ g)) * (x @ u)) @ d),
    ("transposed", lambda x, g, u, d: F.linear(F.silu(F.linear(x, g)) * F.linear(x, u), d)),
    ("x_in_silu", lambda x, g, u, d: (x * torch.sigmoid(x @ g) * (x @ u)) @ d),
    ("silu_first", lambda x, g, u, d: ((F.silu(x) @ g) * (x @ u)) @ d),
    ("random", lambda x, g, u, d: F.dropout(F.silu(x @ g) * (x @ u), 0.1) @ d),
    ("no_gate", lambda x, g, u, d: torch.relu(x @ u) @ d),
    ("dot_product", lambda x, g, u, d: F.silu(x @ g) @ (x @ u).mT @ d),
    ("class_not_called", lambda x, g, u, d: (nn.SiLU(x @ g) * (x @ u)) @ d),
    ("mixes_positions", lambda *a: gated(*a).cumsum(1)),
    ("more_results", lambda *a: (gated(*a), a[0])),
    ("changes_input", lambda x, g, u, d: (F.silu(x, inplace=True) @ g * (x @ u)) @ d),
    ("sign", lambda x, g, u, d: (x @ g / (1 - torch.exp(-(x @ g))) * (x @ u)) @ d),
    ("overflow", lambda x, g, u, d: ((z := x @ g) * z.exp() / (1 + z.exp()) * (x @ u)) @ d),
    ("one_added", lambda x, g, u, d: (F.silu(x @ g) * (x @ u + 1)) @ d),
    ("read_from_the_left", lambda x, g, u, d: F.silu(x @ g * x @ u) @ d),
    ("chained", lambda x, g, u, d: F.silu(x @ g) @ u @ d),
    ("entry_by_entry", lambda x, g, u, d: F.silu(x * g) * (x * u) * d),
]


@pytest.mark.parametrize(("name", "answer"), NAMED, ids=[f"{i}-{name}" for i, (name, _) in enumerate(NAMED)])
def test_a_wrong_feed_forward_is_named(name, answer):
    found = verdict(answer)
    assert (found.mistake, found.status) == (name, "wrong"), found.message


@pytest.mark.parametrize(
    ("name", "answer"), GATED_NAMED, ids=[f"{i}-{name}" for i, (name, _) in enumerate(GATED_NAMED)]
)
def test_a_wrong_swiglu_is_named(name, answer):
    found = verdict(answer, GATED)
    assert (found.mistake, found.status) == (name, "wrong"), found.message


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (PLAIN, lambda x, *w: relu(x.abs(), *w)),
        (PLAIN, lambda x, *w: relu(relu(x, *w), *w)),
        (PLAIN, lambda *a: relu(*a).half()),
        (PLAIN, lambda x, w1, b1, w2, b2: (torch.relu(x @ w1) + torch.relu(b1)) @ w2 + b2),
        (GATED, lambda x, g, u, d: (torch.tanh(x @ g) * torch.sigmoid(x @ u)) @ d),
        (GATED, lambda *a: gated(*a).bfloat16()),
        (GATED, lambda x, g, u, d: gated(x.abs(), g, u, d)),
    ],
)
def test_what_is_not_known_gets_no_name(exercise, answer):
    found = verdict(answer, exercise)
    assert (found.mistake, found.status) == (None, "wrong")
    assert "you gave" in found.message or "dtype" in found.message


def test_where_a_batch_has_one_sequence_its_missing_axis_is_not_said_to_be_all_that_is_wrong():
    found = verdict(lambda x, *w: relu(x[0], *w))
    assert found.mistake == "first_sequence_only" and "only the axes are missing" not in found.message


def test_a_loop_over_tokens_is_told_of_the_batch():
    assert "A loop that takes x[t] for a token gets a whole sequence there" in verdict(loop_over_tokens).message
