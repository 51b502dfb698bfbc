"""Losses, schedules and steps against torch and float64 loops; checkpoints against a process that is killed."""

import math
import os
import random
import re
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from sizes import BATCH, D_K, KEY, QUERY, error_text, numbers, same
from torch import nn
from torch.nn import functional as F
from trial import Trial, begin

from transformer_edu import notebook, training
from transformer_edu.training import (
    accumulated_step,
    calibration,
    cosine_lr,
    fit,
    joined_loss,
    kl_divergence,
    label_smoothing,
    linear_lr,
    load_checkpoint,
    load_weights,
    noam_lr,
    perplexity,
    save_checkpoint,
    sequence_loss,
    set_lr,
    smoothed_targets,
    train_step,
)

VOCAB = 11


def ids(*shape, limit=VOCAB, seed=0):
    return torch.randint(limit, shape, generator=torch.Generator().manual_seed(seed))


def padded_labels(ignore=-100):
    """Labels (BATCH, QUERY), the second row with one real token."""
    labels = ids(BATCH, QUERY)
    labels[1, 1:] = ignore
    return labels


def mean_loss_by_loop(logits, labels, eps=0.0, ignore=-100):
    """One number at a time, in Python's double precision."""
    losses = []
    for row, label in zip(logits.double().flatten(0, -2).tolist(), labels.flatten().tolist(), strict=True):
        if label != ignore:
            log_total = math.log(sum(math.exp(x) for x in row))
            shares = [eps / len(row) + (1 - eps) * (c == label) for c in range(len(row))]
            losses.append(-sum(q * (x - log_total) for q, x in zip(shares, row, strict=True)))
    return sum(losses) / len(losses)


# ---------------------------------------------------------------- losses
@pytest.mark.parametrize("ignore", [-100, 0, 7])
def test_sequence_loss_is_the_mean_over_the_real_tokens(ignore):
    logits, labels = 2 * numbers(BATCH, QUERY, VOCAB), padded_labels(ignore)
    assert sequence_loss(logits, labels, ignore).item() == pytest.approx(mean_loss_by_loop(logits, labels, 0, ignore))


def test_sequence_loss_has_torchs_gradient():
    mine, theirs = (numbers(BATCH, QUERY, VOCAB).requires_grad_() for _ in range(2))
    labels = padded_labels()
    sequence_loss(mine, labels).backward()
    F.cross_entropy(theirs.transpose(1, 2), labels).backward()
    same(mine.grad, theirs.grad)
    assert not mine.grad[1, 1:].any(), "padding pushes nothing"


def test_padding_may_be_as_long_as_one_likes():
    logits, labels = numbers(BATCH, QUERY, VOCAB), padded_labels()
    longer = torch.cat([labels, torch.full((BATCH, 9), -100)], 1)
    same(sequence_loss(torch.cat([logits, numbers(BATCH, 9, VOCAB)], 1), longer), sequence_loss(logits, labels))


@pytest.mark.parametrize("eps", [0.0, 0.1, 0.7, 1.0, 1])
@pytest.mark.parametrize("ignore", [-100, 3])
def test_label_smoothing_has_torchs_numbers_and_gradients(eps, ignore):
    target = padded_labels(ignore).flatten()
    for reduction in ("mean", "sum", "none"):
        mine, theirs = (3 * numbers(len(target), VOCAB) for _ in range(2))
        mine, theirs = mine.requires_grad_(), theirs.requires_grad_()
        loss = label_smoothing(mine, target, eps, ignore, reduction=reduction)
        expected = F.cross_entropy(theirs, target, label_smoothing=eps, ignore_index=ignore, reduction=reduction)
        same(loss, expected)
        loss.sum().backward()
        expected.sum().backward()
        same(mine.grad, theirs.grad)


def test_label_smoothing_equals_its_loop_and_takes_any_leading_axes():
    logits, target = numbers(BATCH, 3, QUERY, VOCAB), ids(BATCH, 3, QUERY)
    assert label_smoothing(logits, target, 0.3).item() == pytest.approx(mean_loss_by_loop(logits, target, 0.3))
    assert label_smoothing(logits, target, reduction="none").shape == target.shape
    same(label_smoothing(logits.double(), target.int(), 0.3), label_smoothing(logits, target, 0.3))


def test_a_batch_of_nothing_but_padding_has_loss_and_gradient_zero():
    logits = numbers(BATCH, QUERY, VOCAB).requires_grad_()
    loss = sequence_loss(logits, torch.full((BATCH, QUERY), -100))
    loss.backward()
    assert loss.item() == 0 and not logits.grad.any()


def test_a_confident_and_right_prediction_costs_nothing_unless_labels_are_smoothed():
    labels = ids(BATCH, QUERY)
    sure = 50.0 * F.one_hot(labels, VOCAB)
    assert sequence_loss(sure, labels).item() == pytest.approx(0, abs=1e-6)
    assert label_smoothing(sure, labels, 0.1).item() == pytest.approx(0.1 * 50 * (VOCAB - 1) / VOCAB, rel=1e-5)


def smoothed_by_loop(target, vocab, eps, pad):
    rows = [[(1 - eps) if c == t else eps / (vocab - 2) for c in range(vocab)] for t in target.tolist()]
    return torch.tensor(
        [[0 if pad in (t, c) else q for c, q in enumerate(row)] for t, row in zip(target.tolist(), rows, strict=True)]
    )


@pytest.mark.parametrize("pad", [0, 4, VOCAB - 1])
@pytest.mark.parametrize("eps", [0.0, 0.4, 1.0])
def test_smoothed_targets_share_eps_among_all_tokens_but_label_and_padding(pad, eps):
    target = torch.arange(VOCAB)
    targets = smoothed_targets(target, VOCAB, eps, pad)
    same(targets, smoothed_by_loop(target, VOCAB, eps, pad))
    same(targets.sum(1), (target != pad).float())
    assert targets.dtype == torch.float32


def test_kl_divergence_is_zero_for_the_targets_themselves_and_differs_from_cross_entropy_by_their_entropy():
    target, logits = torch.tensor([2, 0, 5]), numbers(3, VOCAB)
    targets = smoothed_targets(target, VOCAB, 0.3, pad=0)
    loss = kl_divergence(logits, targets)
    rows = zip(targets.double().flatten().tolist(), logits.double().log_softmax(-1).flatten().tolist(), strict=True)
    assert loss.item() == pytest.approx(sum(q * (math.log(q) - p) for q, p in rows if q))
    assert kl_divergence(targets.log()[[0, 2]], targets[[0, 2]]).item() == pytest.approx(0, abs=1e-6)
    entropy = -2 * (0.7 * math.log(0.7) + 0.3 * math.log(0.3 / (VOCAB - 2)))
    assert loss.item() == pytest.approx(-(targets * logits.log_softmax(-1)).sum().item() - entropy, rel=1e-5)


def test_kl_divergence_of_forbidden_tokens_has_a_finite_gradient():
    logits = numbers(1, VOCAB)
    logits[0, 0] = -torch.inf
    logits.requires_grad_()
    kl_divergence(logits, smoothed_targets(torch.tensor([2]), VOCAB, 0.3, pad=0)).backward()
    assert logits.grad.isfinite().all()


def test_joined_loss_is_the_loss_of_the_large_batch():
    logits, labels = numbers(5, QUERY, VOCAB), ids(5, QUERY)
    labels[0, 1:] = -100
    parts = [slice(0, 1), slice(1, 3), slice(3, 5)]
    means = [sequence_loss(logits[part], labels[part]).item() for part in parts]
    counts = [int((labels[part] != -100).sum()) for part in parts]
    assert joined_loss(means, counts) == pytest.approx(sequence_loss(logits, labels).item())
    assert joined_loss(torch.tensor(means), torch.tensor(counts)) == pytest.approx(joined_loss(means, counts))
    assert joined_loss([1.0, math.nan], [3, 0]) == 1.0, "a part without tokens has no mean, and does not count"


def test_perplexity_is_the_inverse_of_the_geometric_mean_probability():
    probabilities = [0.5, 0.25, 0.125, 0.125]
    means = [-math.log(0.5), -sum(map(math.log, probabilities[1:])) / 3]
    assert perplexity(means, [1, 3]) == pytest.approx(1 / math.prod(probabilities) ** 0.25)
    logits = torch.zeros(BATCH, QUERY, VOCAB)
    assert perplexity([sequence_loss(logits, ids(BATCH, QUERY)).item()], [8]) == pytest.approx(VOCAB)


def test_wrong_losses_are_errors():
    logits, labels = numbers(BATCH, QUERY, VOCAB), ids(BATCH, QUERY)
    wrong = labels.clone()
    wrong[1, 2] = 12
    assert error_text(ValueError, lambda: sequence_loss(logits, wrong)) == (
        "labels must lie in 0..10 or be -100, which is passed over, got 12: is padding marked with another id?"
    )
    assert error_text(ValueError, lambda: sequence_loss(logits, labels - 20)).endswith("marked with another id?")
    assert error_text(ValueError, lambda: sequence_loss(logits.transpose(1, 2), labels)) == (
        "labels must have the shape of logits without its last axis, (2, 11), got (2, 4): "
        "one label for each row of logits (2, 11, 4)"
    )
    assert error_text(ValueError, lambda: sequence_loss(logits.flatten(0, 1), labels)).startswith(
        "logits must have 3 axes (batch, length, vocab_size), got 2 axes"
    )
    assert error_text(TypeError, lambda: sequence_loss(logits, labels.float())) == (
        "labels must hold whole numbers, got torch.float32: .long() makes them"
    )
    assert error_text(ValueError, lambda: label_smoothing(logits, labels, 1.1)) == (
        "eps must lie in 0..1, got 1.1: it is the share that the label gives away"
    )
    assert error_text(TypeError, lambda: label_smoothing(logits, labels, "0.1")) == (
        "eps must be a number in 0..1, got str ('0.1')"
    )
    assert error_text(ValueError, lambda: label_smoothing(logits, labels, reduction="average")) == (
        "reduction must be one of 'mean', 'sum', 'none', got 'average'"
    )
    assert error_text(ValueError, lambda: smoothed_targets(torch.tensor([1]), 2, 0.1, 0)) == (
        "vocab must be at least 3, got 2"
    )
    assert error_text(ValueError, lambda: smoothed_targets(torch.tensor([1]), 5, 0.1, 5)) == (
        "pad must lie in 0..4, because vocab is 5; got 5"
    )
    assert error_text(ValueError, lambda: kl_divergence(logits, logits[0])) == (
        "logits and targets must have one shape, got (2, 4, 11) and (4, 11)"
    )
    assert error_text(ValueError, lambda: joined_loss([1.0], [1, 2])) == (
        "means and counts must have one number for each part, got 1 and 2"
    )
    assert error_text(ValueError, lambda: perplexity([1.0, 2.0], [0, 0])) == (
        "counts must be numbers of tokens, not all of them 0, got [0, 0]"
    )


def test_one_row_of_logits_has_a_loss_too():
    logits = numbers(VOCAB)
    same(label_smoothing(logits, torch.tensor(3), 0.2), label_smoothing(logits[None], torch.tensor([3]), 0.2), 0)
    assert label_smoothing(logits, torch.tensor(3), reduction="none").shape == ()


def test_the_perplexity_of_a_hopeless_model_is_infinite():
    assert perplexity([1000.0], [1]) == math.inf


LOGITS, LABELS = numbers(BATCH, QUERY, VOCAB), ids(BATCH, QUERY)


@pytest.mark.parametrize(
    ("kind", "call", "text"),
    [
        (TypeError, lambda: sequence_loss(LOGITS.long(), LABELS), "logits must be a float tensor, got torch.int64"),
        (TypeError, lambda: sequence_loss(LOGITS, LABELS, None), "ignore must be an int, got NoneType"),
        (TypeError, lambda: label_smoothing(LOGITS, LABELS, 0.1, 1.5), "ignore_index must be an int, got float (1.5)"),
        (TypeError, lambda: smoothed_targets(LABELS[0], VOCAB, 0.1, True), "pad must be an int, got bool"),
        (TypeError, lambda: smoothed_targets(LABELS[0], VOCAB, 0.1, 0.0), "pad must be an int, got float"),
        (TypeError, lambda: kl_divergence(LOGITS, LOGITS.long()), "targets must be a float tensor"),
        (ValueError, lambda: kl_divergence(LOGITS, LOGITS.log_softmax(-1)), "are these logarithms?"),
        (TypeError, lambda: joined_loss(2.0, [1]), "means must be a list of numbers, got float (2.0)"),
        (TypeError, lambda: joined_loss(["2", "4"], [1, 1]), "means[0] must be a number, got str ('2')"),
        (TypeError, lambda: joined_loss([2.0], [None]), "counts[0] must be a number, got NoneType"),
        (ValueError, lambda: joined_loss([2.0, 1.0], [math.inf, 1]), "counts must be numbers of tokens"),
        (ValueError, lambda: calibration(LOGITS * math.nan, LABELS), "logits must hold numbers, got nan"),
        (ValueError, lambda: calibration(LOGITS, LABELS + VOCAB), "labels must lie in 0..10 or be -100"),
        (TypeError, lambda: calibration(LOGITS, LABELS.float()), "labels must hold whole numbers"),
        (TypeError, lambda: calibration(LOGITS, LABELS, None), "ignore must be an int"),
    ],
)
def test_what_no_loss_can_be_made_of_is_an_error(kind, call, text):
    assert text in error_text(kind, call)


# ---------------------------------------------------------------- calibration
def test_the_calibration_error_equals_its_loop():
    logits, labels = 2 * numbers(30, QUERY, VOCAB), ids(30, QUERY)
    labels[:, -1] = -100
    labels[::2] = torch.where(labels[::2] == -100, -100, logits[::2].argmax(-1))
    found = calibration(logits, labels, n_bins=4)
    bins = [[] for _ in range(4)]
    for row, label in zip(logits.double().flatten(0, 1).softmax(-1).tolist(), labels.flatten().tolist(), strict=True):
        if label != -100:
            bins[min(int(max(row) * 4), 3)].append((max(row), row.index(max(row)) == label))
    total = sum(map(len, bins))
    sums = [[sum(column) for column in zip(*pairs, strict=True)] if pairs else [0, 0] for pairs in bins]
    for i, pairs in enumerate(bins):
        assert found.share[i].item() == pytest.approx(len(pairs) / total)
        expected = [x / max(len(pairs), 1) for x in sums[i]]
        assert [found.confidence[i].item(), found.accuracy[i].item()] == pytest.approx(expected)
    assert found.error == pytest.approx(sum(abs(a - b) for a, b in sums) / total)


def test_a_model_that_says_what_it_knows_is_calibrated_and_a_sure_one_is_not():
    labels = torch.cat([torch.full((1000,), 3), ids(1000)])  # half of them known, half random: 6 / 11 are right
    honest = torch.full((2000, VOCAB), math.log(0.5 / VOCAB))
    honest[:, 3] = math.log(0.5 + 0.5 / VOCAB)
    assert calibration(honest, labels).error < 0.02
    assert calibration(9 * honest, labels).error == pytest.approx(1 - 6 / 11, abs=0.03)
    assert calibration(1e4 * honest, labels).share.tolist() == [0] * 9 + [1], "a confidence of 1 is in the last bin"


def test_wrong_calibrations_are_errors():
    logits, labels = numbers(BATCH, QUERY, VOCAB), ids(BATCH, QUERY)
    assert error_text(ValueError, lambda: calibration(logits, labels[0])) == (
        "labels must have the shape of logits without its last axis, (2, 4), got (4,)"
    )
    assert error_text(ValueError, lambda: calibration(logits, labels * 0 - 100)) == (
        "labels must have one that is not -100: there is nothing to count"
    )


# ---------------------------------------------------------------- schedules
def rates_of(scheduler, optimizer, steps):
    """What a torch scheduler gives the steps 1, 2, ..."""
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def test_noam_rises_in_a_straight_line_and_falls_like_one_over_the_square_root():
    rate = {step: noam_lr(step, 512, 4000) for step in (1, 2, 2000, 4000, 16_000, 64_000)}
    assert max(noam_lr(step, 512, 4000) for step in range(3900, 4100)) == rate[4000] == pytest.approx(7e-4, rel=0.01)
    assert rate[4000] == pytest.approx(1 / math.sqrt(512 * 4000))
    assert (rate[2] / rate[1], rate[2000] / rate[4000]) == pytest.approx((2, 0.5))
    assert (rate[16_000] / rate[4000], rate[64_000] / rate[4000]) == pytest.approx((0.5, 0.25))
    assert noam_lr(0, 512, 4000) == rate[1]
    assert noam_lr(7, 16, 4, factor=3.0) == pytest.approx(3 * noam_lr(7, 16, 4))


def test_linear_and_cosine_have_the_rates_of_torchs_schedulers():
    def optimizer():
        return torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.3)

    scheduler = torch.optim.lr_scheduler
    for mine, after in (
        (linear_lr, lambda o: scheduler.LinearLR(o, 1.0, 0.1 / 0.3, total_iters=13)),
        (cosine_lr, lambda o: scheduler.CosineAnnealingLR(o, 13, eta_min=0.1)),
    ):
        o = optimizer()
        up = scheduler.LinearLR(o, 1 / 5, 1.0, total_iters=4)
        theirs = rates_of(scheduler.SequentialLR(o, [up, after(o)], [4]), o, 18)
        rates = [mine(step, peak=0.3, warmup=5, total=18, final=0.1) for step in range(1, 19)]
        assert rates == pytest.approx(theirs)
        assert rates[4] == 0.3 == max(rates) and rates[17] == pytest.approx(0.1)
        assert mine(100, peak=0.3, warmup=5, total=18, final=0.1) == pytest.approx(0.1)
        assert mine(0, peak=0.3, warmup=5, total=18) == mine(1, peak=0.3, warmup=5, total=18) == pytest.approx(0.06)
        assert mine(1, peak=0.3, warmup=0, total=1, final=0.1) == pytest.approx(0.1)


def test_a_schedule_may_be_given_to_torchs_lambda_lr():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: noam_lr(step, 16, 4))
    assert rates_of(scheduler, optimizer, 9) == [noam_lr(step, 16, 4) for step in (1, *range(1, 9))]


def test_set_lr_reaches_every_group():
    optimizer = torch.optim.SGD([{"params": [nn.Parameter(torch.zeros(1))], "lr": lr} for lr in (0.1, 0.2)])
    set_lr(optimizer, 0.3)
    assert [group["lr"] for group in optimizer.param_groups] == [0.3, 0.3]


def test_wrong_schedules_are_errors():
    assert error_text(ValueError, lambda: noam_lr(-1, 512, 4000)) == "step must be at least 0, got -1"
    assert error_text(ValueError, lambda: noam_lr(1, 512, 0)) == "warmup must be at least 1, got 0"
    assert error_text(TypeError, lambda: noam_lr(1.0, 512, 4000)) == (
        "step must be an int, got float (1.0): int(step) makes one"
    )
    for schedule in (linear_lr, cosine_lr):
        assert error_text(ValueError, lambda schedule=schedule: schedule(1, peak=1.0, warmup=5, total=5)) == (
            "total must be above warmup (5), got 5: it is the number of all steps"
        )
        for peak, text in ((math.nan, "be at least 0, got nan"), (math.inf, "be finite"), (-1.0, "be at least 0")):
            call = partial(schedule, 1, peak=peak, warmup=2, total=5)
            assert f"peak must {text}" in error_text(ValueError, call)
        call = partial(schedule, 1, peak=1.0, warmup=2, total=5, final="0")
        assert error_text(TypeError, call) == "final must be a number, got str ('0')"
    assert error_text(ValueError, lambda: noam_lr(1, 512, 4, factor=-1.0)) == "factor must be at least 0, got -1.0"
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
    assert error_text(TypeError, lambda: set_lr(0.1, optimizer)).startswith("optimizer must be a torch.optim.Optimizer")
    assert error_text(TypeError, lambda: set_lr(optimizer, lambda step: 0.1)) == "lr must be a number, got function"
    assert error_text(ValueError, lambda: set_lr(optimizer, math.nan)) == "lr must be at least 0, got nan"


# ---------------------------------------------------------------- one step
def line(seed=0, dropout=0.0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(D_K, KEY), nn.Dropout(dropout))


def xy(n=BATCH, seed=0):
    return numbers(n, D_K, seed=seed), numbers(n, KEY, seed=seed + 1)


def weights_after(step, make=torch.optim.SGD, lr=0.5, **options):
    """The weights of a line after `step(model, optimizer)`, and what that returned."""
    model = line(**options)
    result = step(model, make(model.parameters(), lr=lr))
    return torch.cat([p.detach().flatten() for p in model.parameters()]), result


@pytest.mark.parametrize("max_norm", [1e9, math.inf, 0.05])
def test_a_step_is_gradient_clipping_and_update_by_hand(max_norm):
    x, y = xy()
    after, loss = weights_after(lambda m, o: train_step(m, o, F.mse_loss, x, y, max_norm))
    model = line()
    expected = F.mse_loss(model(x), y)
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(expected, list(model.parameters()))])
    norm = gradient.double().square().sum().sqrt().item()
    before = torch.cat([p.detach().flatten() for p in model.parameters()])
    same(after, before - 0.5 * gradient * min(1.0, max_norm / norm))
    assert isinstance(loss, float) and loss == pytest.approx(expected.item())


def test_a_step_forgets_gradients_that_were_left_and_turns_dropout_on():
    def after_an_evaluation(model, optimizer):
        for p in model.parameters():
            p.grad = torch.full_like(p, 1e3)
        model.eval()
        return train_step(model, optimizer, F.mse_loss, *xy(), 1e9)

    def fresh(model, optimizer):
        return train_step(model.train(), optimizer, F.mse_loss, *xy(), 1e9)

    torch.manual_seed(0)
    with_left, without = (weights_after(step, dropout=0.5)[0] for step in (after_an_evaluation, fresh))
    assert torch.equal(with_left, without)
    assert not torch.equal(without, weights_after(fresh, dropout=0.0)[0])


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.Adam])
@pytest.mark.parametrize("max_norm", [1e9, 0.05])
def test_accumulating_parts_of_any_size_is_one_step_with_all_of_them(make, max_norm):
    x, y = xy(7)
    cuts = [slice(0, 1), slice(1, 5), slice(5, 7)]
    whole, loss = weights_after(lambda m, o: train_step(m, o, F.mse_loss, x, y, max_norm), make, 0.1)
    parts = [(x[cut], y[cut]) for cut in cuts]
    counts = [len(part[0]) for part in parts]
    summed, joined = weights_after(lambda m, o: accumulated_step(m, o, F.mse_loss, parts, counts, max_norm), make, 0.1)
    same(summed, whole)
    assert joined == pytest.approx(loss)


def test_accumulating_sequences_weights_each_part_by_its_real_tokens():
    x, labels = numbers(3, QUERY, D_K), ids(3, QUERY, limit=KEY)
    labels[0, 1:] = -100
    parts = [(x[:1], labels[:1]), (x[1:], labels[1:])]
    whole, loss = weights_after(lambda m, o: train_step(m, o, sequence_loss, x, labels, 1e9))
    summed, joined = weights_after(lambda m, o: accumulated_step(m, o, sequence_loss, parts, [1, 8], 1e9))
    same(summed, whole)
    assert joined == pytest.approx(loss)
    by_sentences, _ = weights_after(lambda m, o: accumulated_step(m, o, sequence_loss, parts, [1, 2], 1e9))
    assert (by_sentences - whole).abs().max() > 0.01, "the mean of means is another loss"


def test_wrong_steps_are_errors_and_leave_the_weights():
    def call(x, max_norm=1.0):
        text = error_text(ValueError, lambda: train_step(model, optimizer, F.mse_loss, x, xy()[1], max_norm))
        assert all(torch.equal(a, b) for a, b in zip(model.parameters(), line().parameters(), strict=True))
        return text

    model = line()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    assert call(xy()[0], 0.0) == "max_norm must be above 0, got 0.0: float('inf') clips nothing"
    assert call(xy()[0] * math.nan) == (
        "the norm of the gradients is nan: the weights stay as they were before this step"
    )
    assert error_text(ValueError, lambda: accumulated_step(model, optimizer, F.mse_loss, [xy()], [1, 2], 1.0)) == (
        "counts must have one number of tokens for each of the 1 parts, not all of them 0, got [1, 2]"
    )


def half(loss=F.mse_loss, parts=None, counts=(2, 2), **options):
    """An accumulated step with something wrong in it."""
    model = line()
    options = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.5), "max_norm": 1.0} | options
    return accumulated_step(**options, loss_fn=loss, parts=[xy()] * 2 if parts is None else parts, counts=counts)


def whole(loss=F.mse_loss, **options):
    model = line()
    options = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.5), "max_norm": 1.0} | options
    return train_step(**options, loss_fn=loss, x=xy()[0], y=xy()[1])


def loop(loss=None, **options):
    model = line()
    options = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.5), "steps": 2} | options
    return fit(**options, loss_at=loss or (lambda step: F.mse_loss(model(xy()[0]), xy()[1])))


@pytest.mark.parametrize("step", [whole, half, loop])
def test_a_step_is_refused_what_it_cannot_learn_with(step):
    def text(kind, **options):
        return error_text(kind, lambda: step(**options))

    assert text(TypeError, model=nn.Linear).startswith("model must be a torch.nn.Module, got the class Linear")
    assert text(TypeError, optimizer=line()) == "optimizer must be a torch.optim.Optimizer, got Sequential"
    other = torch.optim.SGD(line().parameters(), lr=0.1)
    assert text(ValueError, optimizer=other).startswith("optimizer must hold parameters of model, got those of another")
    assert text(TypeError, max_norm="1") == "max_norm must be a number, got str ('1')"
    assert text(ValueError, max_norm=math.nan) == "max_norm must be above 0, got nan: float('inf') clips nothing"
    assert "must be a function" in text(TypeError, loss=nn.MSELoss)
    assert "returns must be a tensor with a gradient, got float (1.0)" in text(TypeError, loss=lambda *_: 1.0)
    assert "must return one number, got shape (2,): .mean() makes one" in text(ValueError, loss=lambda *_: GROWS)
    assert "must return a loss with a gradient" in text(ValueError, loss=lambda *_: torch.zeros(()))


GROWS = torch.zeros(2, requires_grad=True)


def test_wrong_parts_and_counts_are_errors():
    assert error_text(TypeError, lambda: half(parts=3)) == "parts must be a list of pairs (x, y), got int (3)"
    assert error_text(ValueError, lambda: half(parts=xy())) == f"parts[0] must be a pair (x, y), got {(BATCH, D_K)}"
    assert error_text(TypeError, lambda: half(counts=4)) == "counts must be a list of numbers, got int (4)"
    assert "counts must have one number of tokens" in error_text(ValueError, lambda: half(counts=[-1, 3]))
    assert math.isfinite(half(parts=(xy() for _ in range(2)), counts=torch.tensor([2, 2])))


# ---------------------------------------------------------------- the loop
def uninterrupted(steps):
    trial = begin()
    return trial.fit(steps), trial.numbers()


def test_fit_takes_the_steps_of_train_step():
    x, y = xy(8)
    fitted, other = line(), line()
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (fitted, other)]
    losses = fit(fitted, optimizers[0], lambda step: F.mse_loss(fitted(x), y), steps=3, max_norm=0.1)
    assert losses == [train_step(other, optimizers[1], F.mse_loss, x, y, 0.1) for _ in range(3)]
    assert all(torch.equal(a, b) for a, b in zip(fitted.parameters(), other.parameters(), strict=True))


def test_fit_reports_each_step_sets_each_rate_and_turns_training_mode_on():
    seen = []
    trial = Trial()

    def report(step, loss):
        seen.append((step, loss, trial.optimizer.param_groups[0]["lr"], trial.model.training))
        trial.model.eval()

    losses = trial.fit(6, report=report)
    rates = [cosine_lr(step, peak=0.05, warmup=4, total=40) for step in range(1, 7)]
    assert seen == list(zip(range(1, 7), losses, rates, [True] * 6, strict=True))


def test_fit_learns():
    trial = Trial()
    losses = fit(trial.model, trial.optimizer, lambda step: F.mse_loss(trial.model(xy()[0]), xy()[1]), steps=60)
    assert sum(losses[-5:]) < sum(losses[:5]) / 2


def test_fit_stops_before_a_loss_that_is_not_finite_reaches_the_weights():
    trial = Trial()
    before = trial.numbers().clone()
    zero = torch.zeros((), requires_grad=True)
    text = error_text(ValueError, lambda: fit(trial.model, trial.optimizer, lambda step: 1 / zero, steps=2))
    assert text.startswith("the loss of step 1 is inf: the weights are as step 0 left them.")
    assert torch.equal(trial.numbers(), before)


def test_a_loop_is_refused_what_it_cannot_call_or_write_to(tmp_path):
    assert error_text(TypeError, lambda: loop(schedule=0.1)).startswith("schedule must be a function, schedule(step)")
    assert error_text(TypeError, lambda: loop(schedule=lambda step: None)) == "lr must be a number, got NoneType"
    assert error_text(TypeError, lambda: loop(report=True)).startswith("report must be a function, report(step, loss)")
    assert (
        error_text(TypeError, lambda: loop(checkpoint=True)) == "checkpoint must be the path of a file, got bool (True)"
    )
    assert error_text(ValueError, lambda: loop(checkpoint=tmp_path)) == (
        f"checkpoint must be a file, got the folder {tmp_path}: name a file in it"
    )


# ---------------------------------------------------------------- checkpoints
@pytest.mark.parametrize("stopped_at", [5, 10])
def test_training_goes_on_from_a_checkpoint_bit_for_bit(tmp_path, stopped_at):
    losses, state = uninterrupted(14)
    path = tmp_path / "run.pt"
    begin().fit(stopped_at, checkpoint=path, every=5)
    for _ in range(3):  # whatever happens in between
        random.random(), np.random.rand(), torch.rand(1)
    second = Trial(seed=1)
    assert second.fit(14, checkpoint=path, every=5) == losses
    assert torch.equal(second.numbers(), state)
    assert os.listdir(tmp_path) == ["run.pt"]


def test_a_finished_training_is_not_trained_further(tmp_path):
    path = tmp_path / "run.pt"
    trial = Trial()
    losses = trial.fit(7, checkpoint=path)
    again = Trial(seed=1)
    assert again.fit(7, checkpoint=path) == losses
    assert torch.equal(again.numbers(), trial.numbers())
    assert error_text(ValueError, lambda: Trial().fit(6, checkpoint=path)) == (
        f"steps is 6, but {path} has 7 already: delete it to begin anew"
    )


# Stops in the midst of writing its third checkpoint, and says so.
CHILD = """
import os, sys, time
from trial import begin
fsync, calls = os.fsync, []
def slow_fsync(file):
    calls.append(file)
    if len(calls) == 3:
        print("writing", flush=True)
        time.sleep(100)
    fsync(file)
os.fsync = slow_fsync
begin().fit(20, checkpoint=sys.argv[1], every=4)
"""


def test_a_killed_training_loses_no_more_than_what_came_after_its_last_checkpoint(tmp_path):
    path = tmp_path / "run.pt"
    here = Path(__file__).parent
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, path],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(here), str(here.parent)])},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout.readline() == "writing\n"  # the checkpoint of step 12, with step 8's in its place
    finally:
        child.kill()
        child.communicate()
    assert sorted(os.listdir(tmp_path)) == ["run.pt", "run.pt.part"]
    trial = Trial(seed=1)
    assert load_checkpoint(path, model=trial.model, optimizer=trial.optimizer)[0] == 8
    losses, state = uninterrupted(20)
    assert trial.fit(20, checkpoint=path, every=4) == losses
    assert torch.equal(trial.numbers(), state)
    assert os.listdir(tmp_path) == ["run.pt"]


@pytest.fixture
def checkpoint(tmp_path):
    trial = Trial()
    trial.fit(3, checkpoint=tmp_path / "run.pt")
    return tmp_path / "run.pt"


def test_a_file_cut_off_anywhere_is_refused(checkpoint):
    whole = checkpoint.read_bytes()
    for length in (0, 1, 30, len(whole) // 2, len(whole) - 30, len(whole) - 1):
        checkpoint.write_bytes(whole[:length])
        trial = Trial()
        before = trial.numbers().clone()
        text = error_text(ValueError, lambda trial=trial: trial.fit(5, checkpoint=checkpoint))
        assert text.startswith(f"{checkpoint} is not a complete checkpoint ({length} bytes are there): it was cut off")
        assert torch.equal(trial.numbers(), before)


def test_a_changed_byte_is_refused_or_changes_nothing(checkpoint):
    whole = checkpoint.read_bytes()
    expected = Trial()
    load_checkpoint(checkpoint, model=expected.model, optimizer=expected.optimizer)
    refused = 0
    parts = [found.start() for found in re.finditer(rb"PK\x01\x02", whole)]  # what the archive says of each of them
    places = [*range(0, len(whole), 97), *range(parts[-1], parts[-1] + 70), *(part + 38 for part in parts)]
    for at in places:
        checkpoint.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        trial = Trial(seed=1)
        try:
            load_checkpoint(checkpoint, model=trial.model, optimizer=trial.optimizer)
        except ValueError as error:
            assert str(checkpoint) in str(error)
            refused += 1
        else:
            assert torch.equal(trial.numbers(), expected.numbers())
    assert refused > len(places) / 2


def test_a_checkpoint_is_read_without_running_what_it_holds(tmp_path):
    class Wicked:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    torch.save({"model": Wicked()}, tmp_path / "wicked.pt")
    text = error_text(ValueError, lambda: load_weights(tmp_path / "wicked.pt", line()))
    assert text.startswith(f"{tmp_path / 'wicked.pt'} holds more than numbers and texts")
    assert os.listdir(tmp_path) == ["wicked.pt"]


def test_files_that_are_no_checkpoints_are_errors(tmp_path, checkpoint):
    trial, path = Trial(), tmp_path / "other.pt"

    def load():
        load_checkpoint(path, model=trial.model, optimizer=trial.optimizer)

    assert error_text(FileNotFoundError, load).endswith(f"No such file or directory: '{path}'")
    torch.save({"model": {}, "step": 3}, path)
    assert error_text(ValueError, load) == (
        f"{path} is no checkpoint of save_checkpoint: it has no optimizer, optimizer_name, losses, random"
    )
    torch.save([1], path)
    assert error_text(ValueError, load) == f"{path} is no checkpoint of save_checkpoint: it holds a list"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "b")
    assert error_text(ValueError, load).startswith(
        f"{path} holds more than numbers and texts, or is no file of torch.s"
    )
    text = error_text(FileNotFoundError, lambda: trial.fit(3, checkpoint=tmp_path / "nowhere" / "run.pt"))
    assert text == f"{tmp_path / 'nowhere'} is no folder: make it before training begins"


def test_a_checkpoint_of_another_training_is_refused_and_changes_nothing(tmp_path, checkpoint):
    def text(model=None, optimizer=None, changed=()):
        trial = Trial(seed=1)
        model = trial.model if model is None else model
        optimizer = torch.optim.AdamW(model.parameters()) if optimizer is None else optimizer(model)
        before = [p.clone() for p in model.parameters()], torch.get_rng_state(), str(optimizer.state_dict())
        path = tmp_path / "changed.pt"
        torch.save(torch.load(checkpoint, weights_only=True) | dict(changed), path)
        said = error_text(ValueError, lambda: load_checkpoint(path, model=model, optimizer=optimizer))
        assert all(torch.equal(a, b) for a, b in zip(before[0], model.parameters(), strict=True))
        assert torch.equal(before[1], torch.get_rng_state()) and before[2] == str(optimizer.state_dict())
        assert said.startswith(str(path))
        return said

    said = text(nn.Sequential(nn.ReLU(), nn.Linear(6, 5, bias=False)))
    assert "belongs to another model: missing there 1.weight, left over 0.bias, 0.weight" in said
    assert "another model: 0.weight has shape (5, 6) there, and (5, 7) in" in text(nn.Sequential(nn.Linear(7, 5)))
    assert "written with AdamW, but optimizer is SGD" in text(optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=1))
    assert "does not fit the groups" in text(optimizer=lambda m: torch.optim.AdamW([next(m.parameters())]))
    assert "does not fit the groups" in text(changed={"optimizer": {"a": 1}})
    assert "has version too: a newer version of this course wrote it" in text(changed={"version": 2})
    assert "its step is no int but str" in text(changed={"step": "3"})
    assert "its losses is no list but NoneType" in text(changed={"losses": None})
    assert "has random states of python" in text(changed={"random": {"python": 3}})


def test_what_is_no_model_optimizer_path_step_or_loss_is_neither_written_nor_read(tmp_path, checkpoint):
    trial = Trial()
    both, path = {"model": trial.model, "optimizer": trial.optimizer}, tmp_path / "other.pt"
    for kind, call, said in (
        (
            TypeError,
            lambda: save_checkpoint(path, **both | {"model": nn.Linear}, step=1),
            "model must be a torch.nn.Mod",
        ),
        (
            TypeError,
            lambda: save_checkpoint(path, **both | {"optimizer": None}, step=1),
            "optimizer must be a torch.op",
        ),
        (TypeError, lambda: save_checkpoint(None, **both, step=1), "path must be the path of a file, got NoneType"),
        (ValueError, lambda: save_checkpoint(tmp_path, **both, step=1), "path must be a file, got the folder"),
        (TypeError, lambda: save_checkpoint(path, **both, step="3"), "step must be an int, got str ('3')"),
        (TypeError, lambda: save_checkpoint(path, **both, step=1, losses="ab"), "losses must be a list of numbers"),
        (TypeError, lambda: save_checkpoint(path, **both, step=1, losses=[None]), "losses[0] must be a number"),
        (TypeError, lambda: load_checkpoint(checkpoint, **both | {"model": {}}), "model must be a torch.nn.Module"),
        (TypeError, lambda: load_checkpoint(checkpoint, **both | {"optimizer": {}}), "optimizer must be a torch.optim"),
        (ValueError, lambda: load_checkpoint(tmp_path, **both), "path must be a file, got the folder"),
        (TypeError, lambda: load_weights(3, trial.model), "path must be the path of a file, got int (3)"),
        (TypeError, lambda: load_weights(trial.model, checkpoint), "model must be a torch.nn.Module"),
        (ValueError, lambda: load_weights(checkpoint, nn.Linear(2, 3)), "belongs to another model"),
    ):
        assert said in error_text(kind, call)
    assert os.listdir(tmp_path) == ["run.pt"]


def test_weights_alone_can_be_loaded_and_a_failed_write_leaves_the_old_file(checkpoint, monkeypatch):
    trained = Trial()
    load_checkpoint(checkpoint, model=trained.model, optimizer=trained.optimizer)
    other = line(seed=1)
    load_weights(checkpoint, other)
    assert all(torch.equal(a, b) for a, b in zip(other.parameters(), trained.model.parameters(), strict=True))
    before = checkpoint.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda file: (_ for _ in ()).throw(OSError("No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(checkpoint, model=other, optimizer=trained.optimizer, step=4)
    assert checkpoint.read_bytes() == before


# ---------------------------------------------------------------- the line of progress
class Screen:
    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


def test_in_a_terminal_the_line_of_progress_is_gone_at_the_end(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    losses = Trial().fit(5, report=notebook.progress(5))
    assert screen.text.startswith(f"\r\x1b[Kstep 1 of 5, loss {losses[0]:.3f}")
    assert screen.text.endswith("\r\x1b[K")
    assert re.findall("\n", screen.text) == []


def test_elsewhere_there_is_no_line(capfd):
    Trial().fit(5, report=notebook.progress(5))
    assert capfd.readouterr() == ("", "")


def test_in_a_notebook_the_line_ends_as_it_began(monkeypatch):
    display = pytest.importorskip("IPython.display")
    shown = []

    class Handle:
        def update(self, data, raw):
            shown.append(data["text/plain"])

    def fake(data, raw, display_id):
        assert raw and display_id
        shown.append(data["text/plain"])
        return Handle()

    shell = type("Shell", (), {"kernel": object()})()
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)
    monkeypatch.setattr(display, "display", fake)
    times = iter([1.0, 1.0, 1.05, 1.2, 1.2])  # step 2 comes too soon after step 1 to be shown
    monkeypatch.setattr(notebook.time, "monotonic", lambda: next(times))
    report = notebook.progress(4)
    for step in (1, 2, 3, 4):
        report(step, 0.5 / step)
    assert shown == ["4 steps", "step 1 of 4, loss 0.500", "step 3 of 4, loss 0.167", "4 steps"]


# ---------------------------------------------------------------- devices
def test_losses_stay_on_the_device_of_the_inputs():
    logits, labels = (torch.empty(2, 3, 7, device="meta"), torch.empty(2, 3, device="meta", dtype=torch.long))
    targets = smoothed_targets(labels.flatten(), 7, 0.1, 0)
    results = [
        sequence_loss(logits, labels),
        label_smoothing(logits, labels, reduction="none"),
        targets,
        kl_divergence(logits.flatten(0, 1), targets),
        training.shift_right(labels, 1, 0),
    ]
    assert all(result.is_meta for result in results)
