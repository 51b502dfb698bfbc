"""The galleries of lesson 09: right answers of every form are accepted, and mistakes that no gallery holds are placed.

That every mistake is diagnosed as itself is tested in test_exercises.py for all exercises.
"""

import copy
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_

from transformer_edu.exercises import load
from transformer_edu.exercises.outcome import same_value
from transformer_edu.exercises.training_joined import joined_wrongly, perplexity_wrongly
from transformer_edu.exercises.training_rates import lr_wrongly
from transformer_edu.exercises.training_sequence import loss_wrongly
from transformer_edu.exercises.training_smoothing import smoothing_wrongly
from transformer_edu.exercises.training_step import PlainSGD, _makes_optimizers, step_wrongly
from transformer_edu.exercises.training_targets import targets_wrongly


def verdict(name, fn):
    return load(f"training.{name}").check(fn, quiet=True)


def mistake(name, fn):
    return verdict(name, fn).mistake


# ---------------------------------------------------------------- right answers, unusual
def lr_by_cases(step, d_model, warmup):
    step = step or 1
    if step <= warmup:
        return step / math.sqrt(d_model) / warmup / math.sqrt(warmup)
    return 1 / math.sqrt(d_model * step)


def lr_in_torch(step, d_model, warmup):
    step = torch.tensor(float(max(step, 1)))
    return d_model**-0.5 * torch.minimum(step**-0.5, step * warmup**-1.5)


def rows_of_a_square(target, vocab, eps, pad):
    same = torch.eye(vocab, dtype=torch.float64)
    table = same * (1 - eps) + (1 - same) * eps / (vocab - 2)
    table[pad] = 0
    table[:, pad] = 0
    return table[target]


def word_by_word(logits, target, eps=0.1, ignore_index=-100):
    total, count = 0, 0
    for x, t in zip(logits, target.tolist(), strict=True):
        if t != ignore_index:
            logp = x - x.logsumexp(0)
            total = total - (1 - eps) * logp[t] - eps * logp.mean()
            count += 1
    return total / count


def divergence_and_entropy(logits, target, eps=0.1, ignore_index=-100):
    keep = target != ignore_index
    q = F.one_hot(target[keep], logits.shape[-1]) * (1 - eps) + eps / logits.shape[-1]
    divergence = F.kl_div(logits[keep].log_softmax(-1), q, reduction="batchmean")
    return divergence - torch.xlogy(q, q).sum(-1).mean()


def sums_of_rows(logits, labels, ignore=-100):
    pairs = zip(logits, labels, strict=True)
    total = sum(F.cross_entropy(x, t, ignore_index=ignore, reduction="sum") for x, t in pairs)
    return total / (labels != ignore).sum()


def renamed_padding(logits, labels, ignore=-100):
    return F.nll_loss(logits.double().log_softmax(2).mT, labels.where(labels != ignore, -1), ignore_index=-1)


def running_mean(means, counts):
    mean = seen = 0
    for m, c in zip(means, counts, strict=True):
        seen += c
        mean += (m - mean) * c / seen
    return mean


def exact(means, counts):
    return float(sum(Fraction(m) * c for m, c in zip(means, counts, strict=True)) / sum(counts))


def gradients_in_parts(model, optimizer, loss_fn, x, y, max_norm):
    model.train()
    optimizer.zero_grad(set_to_none=False)
    total = 0.0
    for part_x, part_y in zip(x.split(2), y.split(2), strict=True):
        loss = loss_fn(model(part_x), part_y) * len(part_x) / len(x)
        loss.backward()
        total += loss.item()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return total


def closure(model, optimizer, loss_fn, x, y, max_norm):
    model.train()

    def compute():
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        clip_grad_norm_(model.parameters(), max_norm)
        return loss

    return optimizer.step(compute).item()


def gradients_by_autograd(model, optimizer, loss_fn, x, y, max_norm):
    was_training = model.training
    parameters = optimizer.param_groups[0]["params"]
    loss = loss_fn(model.train().forward(x), y)
    gradients = torch.autograd.grad(loss, parameters)
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = g * (max_norm / norm).clamp(max=1)
    optimizer.step()
    model.train(was_training)
    return float(loss.detach())


def cleared_at_the_end(model, optimizer, loss_fn, x, y, max_norm):
    loss = loss_fn(model.train()(x), y)
    loss.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


RIGHT = [
    ("noam_lr", lr_by_cases),
    ("noam_lr", lr_in_torch),
    ("noam_lr", lr_wrongly),
    ("smoothed_targets", rows_of_a_square),
    ("smoothed_targets", targets_wrongly),
    ("label_smoothing", word_by_word),
    ("label_smoothing", divergence_and_entropy),
    ("label_smoothing", smoothing_wrongly),
    ("sequence_loss", sums_of_rows),
    ("sequence_loss", renamed_padding),
    ("sequence_loss", loss_wrongly),
    ("joined_loss", running_mean),
    ("joined_loss", exact),
    ("joined_loss", lambda means, counts: np.average(means, weights=counts)),
    ("joined_loss", joined_wrongly),
    ("perplexity", lambda means, counts: torch.tensor([exact(means, counts)]).exp()),
    ("perplexity", lambda means, counts: 2 ** (exact(means, counts) / math.log(2))),
    ("perplexity", perplexity_wrongly),
    ("train_step", gradients_in_parts),
    ("train_step", closure),
    ("train_step", gradients_by_autograd),
    ("train_step", cleared_at_the_end),
    ("train_step", step_wrongly),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT, ids=lambda x: getattr(x, "__name__", x))
def test_right_answers_of_every_form_are_accepted(name, answer):
    found = verdict(name, answer)
    assert (found.status, found.mistake) == ("correct", None), found.message


# ---------------------------------------------------------------- wrong answers that are no entries of a gallery
def label_of_all(logits, target, eps, ignore_index):
    """-log p of the labels, and a table of all -log p; what is ignored as class 0."""
    logp = logits.log_softmax(-1)
    return -logp.gather(-1, target.clamp(min=0)[:, None])[:, 0], -logp


def two_means(logits, target, eps=0.1, ignore_index=-100):
    """The uniform part is averaged over ignored targets as well."""
    plain = F.cross_entropy(logits, target, ignore_index=ignore_index)
    return (1 - eps) * plain - eps * logits.log_softmax(-1).mean()


def label_without_gradient(logits, target, eps=0.1, ignore_index=-100):
    keep = target != ignore_index
    label, table = label_of_all(logits[keep], target[keep], eps, ignore_index)
    return ((1 - eps) * label.detach() + eps * table.mean(-1)).mean()


def divergence_of_another_target(logits, target, eps=0.1, ignore_index=-100):
    keep = target != ignore_index
    q = torch.full_like(logits[keep], eps / (logits.shape[-1] - 1)).scatter(1, target[keep][:, None], 1 - eps)
    return F.kl_div(logits[keep].log_softmax(-1), q.detach(), reduction="batchmean")


def looked_up(logits, target, eps=0.1, ignore_index=-100):
    q = F.one_hot(target, logits.shape[-1]) * (1 - eps) + eps / logits.shape[-1]
    return -(q * logits.log_softmax(-1)).sum(-1)[target != ignore_index].mean()


def without_defaults(logits, target, eps, ignore_index):
    return F.cross_entropy(logits, target, label_smoothing=eps, ignore_index=ignore_index)


def larger_than_ignored(logits, target, eps=0.1, ignore_index=-100):
    keep = target > ignore_index
    return F.cross_entropy(logits[keep], target[keep], label_smoothing=eps)


def cut_probabilities(logits, target, eps=0.1, ignore_index=-100):
    keep = target != ignore_index
    q = F.one_hot(target[keep], logits.shape[-1]) * (1 - eps) + eps / logits.shape[-1]
    return -(q * logits[keep].softmax(-1).clamp(1e-7, 1).log()).sum(-1).mean()


def only_labels_flattened(logits, labels, ignore=-100):
    return F.cross_entropy(logits, labels.flatten(), ignore_index=ignore)


def position_by_position(logits, labels, ignore=-100):
    return sum(F.cross_entropy(logits[:, t], labels[:, t], ignore_index=ignore) for t in range(labels.shape[1]))


def padded_logits_zeroed(logits, labels, ignore=-100):
    keep = labels != ignore
    return F.cross_entropy((logits * keep[..., None]).flatten(0, 1), labels.clamp(min=0).flatten())


def sum_of_a_softmax(logits, labels, ignore=-100):
    flat = logits.softmax(-1).flatten(0, 1)
    return F.cross_entropy(flat, labels.flatten(), ignore_index=ignore, reduction="sum")


def default_of_zero(logits, labels, ignore=0):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=ignore)


def first_padding_alone(target, vocab, eps, pad):
    table = targets_wrongly(target, vocab, eps, pad, rows="kept")
    table[(target == pad).nonzero()[:1, 0]] = 0
    return table


def shares_by_the_batch(target, vocab, eps, pad):
    table = torch.full((len(target), vocab), eps / len(target)).scatter(1, target[:, None], 1 - eps)
    table[:, pad] = 0
    table[target == pad] = 0
    return table


WRONG = [
    ("noam_lr", lambda s, d, w: lr_wrongly(s, d, w) * 3, "constant_factor"),
    ("noam_lr", lambda s, d, w: lr_wrongly(s, d, w) * d**0.25, "factor_of_sizes"),
    ("noam_lr", lambda s, d, w: d**-0.5 * min(1 / math.sqrt(s), s * w**-1.5), "step_zero_fails"),
    ("noam_lr", lambda s, d, w: lr_wrongly(s, d, w) if s else None, "step_zero_wrong"),
    ("noam_lr", lambda s, d, w: lr_wrongly(s, d, w) * min(1, 0.5 + s / w / 2), "warmup_wrong"),
    ("noam_lr", lambda s, d, w: lr_wrongly(min(s, 3 * w), d, w), "decay_wrong"),
    ("smoothed_targets", lambda *a: targets_wrongly(*a).tolist(), "list_returned"),
    ("smoothed_targets", lambda *a: targets_wrongly(*a).numpy(), "numpy_result"),
    ("smoothed_targets", first_padding_alone, "pad_rows_wrong"),
    ("smoothed_targets", shares_by_the_batch, "shares_wrong"),
    ("label_smoothing", two_means, "smoothing_unmasked"),
    ("label_smoothing", label_without_gradient, "gradient_wrong"),
    ("label_smoothing", divergence_of_another_target, "label_left_out + divergence"),
    ("label_smoothing", looked_up, "ignored_as_index"),
    ("label_smoothing", without_defaults, "defaults_missing"),
    ("label_smoothing", larger_than_ignored, "ignore_index_wrong"),
    ("label_smoothing", cut_probabilities, "large_logits"),
    ("label_smoothing", lambda *a: smoothing_wrongly(*a).item(), "no_gradient"),
    ("label_smoothing", lambda *a: smoothing_wrongly(*a) * 3, "constant_factor"),
    ("label_smoothing", lambda *a: smoothing_wrongly(*a) + 1, "constant_added"),
    ("label_smoothing", lambda x, *a: smoothing_wrongly(torch.tensor(x.numpy()), *a), "numpy_used"),
    ("sequence_loss", only_labels_flattened, "one_side_flattened"),
    ("sequence_loss", position_by_position, "mean_of_positions"),
    ("sequence_loss", padded_logits_zeroed, "padding_wrong"),
    ("sequence_loss", sum_of_a_softmax, "sum_of_tokens + softmax_twice"),
    ("sequence_loss", default_of_zero, "ignore_default"),
    ("sequence_loss", lambda *a: torch.tensor(loss_wrongly(*a).item(), requires_grad=True), "no_gradient"),
    ("sequence_loss", lambda x, y, i: loss_wrongly(x, y, i), "ignore_required"),
    ("joined_loss", lambda means, counts: sum(means * counts), "lists_multiplied"),
    ("joined_loss", lambda means, counts: sum(means) + max(means), "no_mean"),
    ("joined_loss", lambda means, counts: (max(means) + min(means)) / 2, "parts_joined_wrongly"),
    ("perplexity", lambda means, counts: sum(map(math.exp, means)) / len(means), "mean_of_perplexities"),
    ("perplexity", lambda means, counts: 2 ** (sum(means) / len(means)), "base_two + unweighted"),
    ("perplexity", lambda means, counts: sorted(map(math.exp, means))[len(means) // 2], "parts_joined_wrongly"),
]


@pytest.mark.parametrize(("name", "answer", "wanted"), WRONG, ids=lambda x: getattr(x, "__name__", str(x)))
def test_wrong_answers_that_nobody_foresaw_are_caught_and_placed(name, answer, wanted):
    found = verdict(name, answer)
    assert found.status in ("wrong", "error")
    assert found.mistake == wanted, found.message


# ---------------------------------------------------------------- steps of training
def taken(model, loss_fn, x, y, optimizer, max_norm):
    """Everything up to the optimizer's step, as it should be."""
    model.train()
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    return loss


def by_hand(model, optimizer, loss_fn, x, y, max_norm):
    loss = taken(model, loss_fn, x, y, optimizer, max_norm)
    for p in model.parameters():
        p.data -= optimizer.param_groups[0]["lr"] * p.grad
    return loss.item()


def number_made_a_tensor(model, optimizer, loss_fn, x, y, max_norm):
    loss = torch.tensor(loss_fn(model.train()(x), y).item(), requires_grad=True)
    loss.backward()
    optimizer.step()
    return loss.item()


def copied(model, optimizer, loss_fn, x, y, max_norm):
    loss = taken(copy.deepcopy(model), loss_fn, x, y, optimizer, max_norm)
    optimizer.step()
    return loss.item()


def row_by_row(model, optimizer, loss_fn, x, y, max_norm):
    losses = []
    for i in range(len(x)):
        losses.append(taken(model, loss_fn, x[i : i + 1], y[i : i + 1], optimizer, max_norm).item())
        optimizer.step()
    return sum(losses) / len(losses)


def gradients_elsewhere(model, optimizer, loss_fn, x, y, max_norm):
    loss = loss_fn(model.train()(x), y)
    torch.autograd.grad(loss, list(model.parameters()))
    optimizer.step()
    return loss.item()


def rate_lowered(model, optimizer, loss_fn, x, y, max_norm):
    loss = taken(model, loss_fn, x, y, optimizer, max_norm)
    optimizer.step()
    optimizer.param_groups[0]["lr"] *= 0.9
    return loss.item()


def rate_halved_once(model, optimizer, loss_fn, x, y, max_norm):
    loss = taken(model, loss_fn, x, y, optimizer, max_norm)
    optimizer.param_groups[0]["lr"] = 0.05
    optimizer.step()
    return loss.item()


def loss_in_evaluation(model, optimizer, loss_fn, x, y, max_norm):
    taken(model, loss_fn, x, y, optimizer, max_norm)
    optimizer.step()
    return loss_fn(model.eval()(x), y).item()


def loss_and_norm(model, optimizer, loss_fn, x, y, max_norm):
    loss = taken(model, loss_fn, x, y, optimizer, max_norm)
    optimizer.step()
    return loss.item(), max_norm


def clipped_model(model, optimizer, loss_fn, x, y, max_norm):
    clip_grad_norm_(model, max_norm)


def bias_clipped_alone(model, optimizer, loss_fn, x, y, max_norm):
    loss = taken(model, loss_fn, x, y, optimizer, 1e9)
    for p in model.parameters():
        p.grad.clamp_(-2 * max_norm, 2 * max_norm)
    optimizer.step()
    return loss.item()


def all_forgotten(model, optimizer, loss_fn, x, y, max_norm):
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


STEPS = {
    by_hand: "without_the_optimizer",
    number_made_a_tensor: "no_backward",
    copied: "gradient_elsewhere",
    row_by_row: "several_steps",
    gradients_elsewhere: "cleared_before_the_step",
    rate_lowered: "earlier_batches",
    rate_halved_once: "step_scaled",
    loss_in_evaluation: "loss_wrong",
    loss_and_norm: "two_results",
    clipped_model: "parameters_missing",
    bias_clipped_alone: "clipping_wrong",
    all_forgotten: "tensor_returned",
}


@pytest.mark.parametrize(("answer", "wanted"), STEPS.items(), ids=lambda x: getattr(x, "__name__", x))
def test_wrong_steps_that_nobody_foresaw_are_caught_and_placed(answer, wanted):
    found = verdict("train_step", answer)
    assert found.status in ("wrong", "error")
    assert found.mistake == wanted, found.message


def test_weights_that_never_change_are_told_by_what_happened():
    def found(**how):
        return mistake("train_step", lambda *args: step_wrongly(*args, **how))

    assert found(order="no_step") == "no_step"
    assert found(order="no_backward") == "no_backward"
    assert found(order="step_before_backward") == "step_before_backward"
    assert found(zero="after_backward") == "cleared_before_the_step"


# ---------------------------------------------------------------- what is watched
def test_the_optimizer_of_the_probes_is_gradient_descent_with_momentum():
    weight = torch.tensor(2.0, requires_grad=True)
    optimizer = PlainSGD([weight], 0.1, 0.9)
    wanted, speed = 2.0, 0.0
    for factor in (1.0, 0.5, 3.0):
        optimizer.zero_grad(set_to_none=factor == 0.5)
        (factor * weight**2).backward()
        optimizer.step()
        speed = 0.9 * speed + 2 * factor * wanted
        wanted -= 0.1 * speed
    assert weight.item() == pytest.approx(wanted, abs=1e-6)


def test_a_step_that_makes_its_own_optimizer_is_recognised_before_it_runs():
    def own(model, optimizer, loss_fn, x, y, max_norm):
        mine = torch.optim.SGD(model.parameters(), lr=0.1)
        return step_wrongly(model, mine, loss_fn, x, y, max_norm)

    assert _makes_optimizers(own) and not _makes_optimizers(by_hand)


def test_the_loss_of_a_loss_exercise_is_judged_with_its_gradient():
    message = verdict("sequence_loss", lambda *args: loss_wrongly(*args).detach()).message
    assert "the loss is right, the gradient is not." in message


def test_logits_changed_in_place_are_named_although_they_want_a_gradient():
    def shifted(logits, labels, ignore=-100):
        logits -= logits.amax(-1, keepdim=True)
        return loss_wrongly(logits, labels, ignore)

    assert "It changes its input: the first argument" in verdict("sequence_loss", shifted).message


def test_too_few_arguments_are_named_as_such():
    message = verdict("label_smoothing", lambda logits, target: logits.sum()).message
    assert "It could not be called with 4 positional arguments" in message


def test_a_message_on_several_results_lists_what_is_right_and_what_is_not():
    message = verdict("train_step", lambda *args: step_wrongly(*args, order="no_step")).message
    assert "the kind of result and loss are right, the update and weights are not." in message


# ---------------------------------------------------------------- what students were told in trials
def shared_by_others(logits, target, eps=0.1, ignore_index=-100):
    keep = target != ignore_index
    logits, target = logits[keep], target[keep]
    q = torch.full_like(logits, eps / (logits.shape[-1] - 1)).scatter(1, target[:, None], 1 - eps)
    return -(q * logits.log_softmax(-1)).sum(-1).mean()


def with_torch(smoothing):
    """torch's smoothed loss with `smoothing` made of eps."""
    return lambda logits, target, eps=0.1, ignore_index=-100: F.cross_entropy(
        logits, target, label_smoothing=smoothing(eps), ignore_index=ignore_index
    )


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("label_left_out", shared_by_others),
        ("not_smoothed", with_torch(lambda eps: 0.0)),
        ("eps_exchanged", with_torch(lambda eps: 1 - eps)),
        ("smoothed_twice", with_torch(lambda eps: 1 - (1 - eps) ** 2)),
    ],
)
def test_a_wrong_smoothing_is_shown_where_the_loss_is_wrong(name, answer):
    found = verdict("label_smoothing", answer)
    assert found.mistake == name and found.message.endswith("Input: logits [[0, 1, 3]], target [2], eps 0.1.")
    assert "loss is right" not in found.message


def test_no_example_of_a_loss_is_right_by_chance_where_the_gradient_is_wrong():
    for name in ("label_smoothing", "sequence_loss"):
        exercise = load(f"training.{name}")
        for mistake in exercise.mistakes:
            if "graph" not in mistake.switches:
                pairs = zip(exercise.expected(), exercise.expected(exercise.runnable(mistake)), strict=True)
                values = [(right.value, wrong.value) for right, wrong in pairs if isinstance(wrong.value, list)]
                hidden = [
                    right for right, mine in values if same_value(right[1], mine[1]) and not same_value(right, mine)
                ]
                assert not hidden, mistake


def test_targets_in_place_are_the_one_mistake_where_the_edge_case_is_right():
    def clamping(logits, target, eps=0.1, ignore_index=-100):
        keep = target != ignore_index
        logp = logits.log_softmax(-1)
        label = -logp.gather(-1, target.clamp_(min=0)[:, None])[:, 0]
        return ((1 - eps) * label - eps * logp.mean(-1))[keep].mean()

    found = verdict("label_smoothing", clamping)
    assert found.mistake == "changes_target" and "There may be more" not in found.message


def test_a_column_beside_a_vector_is_named_where_targets_are_mixed():
    def mixed(logits, target, eps=0.1, ignore_index=-100):
        keep = target != ignore_index
        logp = logits.log_softmax(-1)
        return ((1 - eps) * -logp.gather(-1, target.clamp(min=0)[:, None]) - eps * logp.mean(-1))[keep].mean()

    found = verdict("label_smoothing", mixed)
    assert found.mistake == "smoothing_unmasked" and "(N, 1) plus a vector (N,)" in found.message


def rows(target, vocab, eps, pad, share=2, column=True, empty=True):
    table = torch.full((len(target), vocab), eps / (vocab - share))
    table.scatter_(1, target[:, None], 1 - eps)
    if column:
        table[:, pad] = 0
    if empty:
        table[target == pad] = 0
    return table


def as_torch(target, vocab, eps, pad):
    table = F.one_hot(target, vocab) * (1 - eps) + eps / vocab
    return table.masked_fill((target == pad)[:, None] | (torch.arange(vocab) == pad), 0.0)


@pytest.mark.parametrize(
    ("name", "answer", "unsaid"),
    [
        ("torch_form", as_torch, "padding among them"),
        ("rows_normalised", lambda *a: as_torch(*a) / as_torch(*a).sum(-1, keepdim=True).clamp(min=1e-9), "wrong"),
        ("pad_column_kept + pad_rows_kept", lambda *a: rows(*a, column=False, empty=False), "only the rows"),
        ("eps_exchanged", lambda t, v, eps, p: rows(t, v, 1 - eps, p), "Two things"),
        (
            "divided_by_vocab_minus_one + pad_rows_one_hot",
            lambda t, v, eps, p: torch.where(
                (t == p)[:, None] & (torch.arange(v) == p), 1.0, rows(t, v, eps, p, 1, empty=False)
            ),
            "shares of the other words. A",
        ),
    ],
)
def test_of_a_table_of_targets_only_what_holds_is_said(name, answer, unsaid):
    assert verdict("smoothed_targets", rows).status == "correct"
    found = verdict("smoothed_targets", answer)
    assert found.mistake == name and unsaid not in found.message


def emptied(means, counts):
    total = n = 0
    while means:
        n += counts[-1]
        total += means.pop() * counts.pop()
    return total / n


@pytest.mark.parametrize(
    ("exercise", "name", "answer", "said", "unsaid"),
    [
        ("joined_loss", "changes_input", emptied, "pop, sort and += change a list", "tensor"),
        ("joined_loss", "rounded", lambda m, c: round(exact(m, c), 2), "two places", "right for one part"),
        ("perplexity", "rounded", lambda m, c: math.exp(round(exact(m, c), 1)), "before exp", "return it as it is"),
        ("noam_lr", "step_zero_is_zero", lambda s, d, w: rate(max(s, 1e-8), d, w), "0 or next to it", "rate is 0,"),
    ],
)
def test_numbers_are_told_what_holds_of_them(exercise, name, answer, said, unsaid):
    found = verdict(exercise, answer)
    assert found.mistake == name and said in found.message and unsaid not in found.message


def rate(step, d_model, warmup):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def chances_of(logits, labels):
    return logits.softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]


@pytest.mark.parametrize(
    "answer",
    [
        lambda logits, labels, ignore=-100: -chances_of(logits, labels)[labels != ignore].mean().log(),
        lambda logits, labels, ignore=-100: -chances_of(logits, labels)[labels != ignore].sum().log(),
    ],
)
def test_a_logarithm_after_the_mean_is_named(answer):
    assert verdict("sequence_loss", answer).mistake == "logarithm_after_the_mean"


def test_an_optimizer_of_the_probes_is_one_of_torch():
    seen = []
    verdict("train_step", lambda model, optimizer, *others: seen.append(isinstance(optimizer, torch.optim.Optimizer)))
    assert seen and all(seen)


def test_a_gradient_is_called_wrong_only_where_it_is():
    def fails_far_apart(logits, target, eps=0.1, ignore_index=-100):
        if logits.abs().max() > 100:
            return None
        return smoothing_wrongly(logits, target, eps, ignore_index)

    assert verdict("label_smoothing", fails_far_apart).mistake == "large_logits"
    of_an_id = lambda x, t, eps=0.1, i=-100: None if i == 1 else smoothing_wrongly(x, t, eps, i)  # noqa: E731
    assert verdict("label_smoothing", of_an_id).mistake != "gradient_wrong"
