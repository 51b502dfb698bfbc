"""The exercise sequence_loss of lesson 09."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import training
from .exercise import Exercise, Probe, Result, Symptom
from .outcome import said, same_outcome
from .symptoms import CHANGES_INPUT, Seen
from .training_parts import LOSS_SYMPTOMS, PER_TOKEN, LossExercise, core, losses, one, right_only_without

__all__ = ["SEQUENCE_LOSS"]


# ---------------------------------------------------------------- one wrong implementation
def _paired(logits: Tensor, labels: Tensor, pair: str) -> tuple[Tensor, Tensor]:
    """Which logits stand beside which labels, (..., vocab_size) and (...)."""
    batch, length, vocab = logits.shape
    return {
        "shifted": lambda: (logits[:, :-1], labels[:, 1:]),
        "shifted_back": lambda: (logits[:, 1:], labels[:, :-1]),
        "rolled": lambda: (logits, labels.roll(-1, 1)),
        "rolled_back": lambda: (logits, labels.roll(1, 1)),
        "last_left_out": lambda: (logits[:, :-1], labels[:, :-1]),
        "first_left_out": lambda: (logits[:, 1:], labels[:, 1:]),
        "last_alone": lambda: (logits[:, -1], labels[:, -1]),
        "first_alone": lambda: (logits[:, 0], labels[:, 0]),
        "first_sequence": lambda: (logits[0], labels[0]),
        "last_sequence": lambda: (logits[-1], labels[-1]),
        "time_first": lambda: (logits.transpose(0, 1), labels.reshape(length, batch)),
        "labels_transposed": lambda: (logits.reshape(length, batch, vocab), labels.T),
        "viewed": lambda: (logits.reshape(batch, vocab, length).transpose(1, 2), labels),
        "flattened_transposed": lambda: (logits.transpose(1, 2).reshape(batch, length, vocab), labels),
        "classes_on_axis_one": lambda: (logits.transpose(1, 2), labels),
        "flipped": lambda: (logits, labels.flip(1)),
        "own_answers": lambda: (logits, torch.where(labels == -100, labels, logits.argmax(-1))),
    }.get(pair, lambda: (logits, labels))()


def _log_probabilities(logits: Tensor, source: str) -> Tensor:
    return {
        "softmax_twice": lambda: logits.softmax(-1).log_softmax(-1),
        "over_time": lambda: logits.log_softmax(-2),
        "softmax_over_time_first": lambda: logits.softmax(-2).log_softmax(-1),
        "over_batch": lambda: logits.log_softmax(0),
        "everything": lambda: logits.flatten().log_softmax(0).view_as(logits),
        "logits": lambda: logits,
        "probabilities": lambda: logits.softmax(-1),
        "sigmoid": lambda: F.logsigmoid(logits),
        "two_steps": lambda: logits.softmax(-1).log(),
        "small_added": lambda: (logits.softmax(-1) + 1e-8).log(),
        "small_as_least": lambda: logits.softmax(-1).clamp(min=1e-8).log(),
        "base_two": lambda: logits.log_softmax(-1) / math.log(2),
        "scaled": lambda: (logits / logits.shape[-1] ** 0.5).log_softmax(-1),
        "negative": lambda: (-logits).log_softmax(-1),
    }.get(source, lambda: logits.log_softmax(-1))()


def _each_token(logp: Tensor, labels: Tensor, smoothing: str) -> Tensor:
    """-log p of the labels, in their shape; a label out of bounds gets class 0."""
    fits = torch.where((labels >= 0) & (labels < logp.shape[-1]), labels, 0)
    loss = -logp.gather(-1, fits[..., None])[..., 0]
    if smoothing == "smoothed":
        return 0.9 * loss - 0.1 * logp.mean(-1)
    if smoothing == "focal":
        return (1 - (-loss).exp()) * loss
    if smoothing == "errors":
        return (logp.argmax(-1) != labels).float()
    if smoothing == "hits":
        return (logp.argmax(-1) == labels).float()
    if smoothing == "squared":
        return (F.one_hot(fits, logp.shape[-1]) - logp.exp()).square().sum(-1)
    return loss


def _masked(labels: Tensor, ignore: int, which: str) -> Tensor:
    """True at the tokens that count."""
    return {
        "default": lambda: labels != -100,
        "zero": lambda: labels != 0,
        "zero_and_default": lambda: (labels != 0) & (labels != -100),
        "positive": lambda: labels > 0,
        "ignored_alone": lambda: labels == ignore,
        "all": lambda: labels == labels,
        "below": lambda: labels > ignore,
    }.get(which, lambda: labels != ignore)()


def _reduced(loss: Tensor, real: Tensor, labels: Tensor, vocab: int, reduction: str) -> Tensor:
    total, count = (loss * real).sum(), real.sum()
    rows = (loss * real).sum(-1)
    lengths = real.sum(-1)
    return {
        "sum": lambda: total,
        "sum_of_all": lambda: loss.sum(),
        "none": lambda: loss * real,
        "all_counted": lambda: total / real.numel(),
        "of_batch": lambda: total / len(labels),
        "of_length": lambda: total / labels.shape[-1],
        "rows": lambda: (rows / lengths).mean(),
        "each_row": lambda: rows / lengths,
        "row_sums": lambda: rows,
        "times": lambda: ((loss * real).sum(0) / real.sum(0)).mean(),
        "each_time": lambda: (loss * real).sum(0) / real.sum(0),
        "vocab": lambda: total / count / vocab,
        "all_and_vocab": lambda: total / real.numel() / vocab,
        "all_summed_real_counted": lambda: loss.sum() / count,
        "all": lambda: loss.mean(),
        "log_of_mean": lambda: -(((-loss).exp() * real).sum() / count).log(),
        "log_of_row_means": lambda: -(((-loss).exp() * real).sum(-1) / lengths).log().mean(),
        "log_of_sum": lambda: -((-loss).exp() * real).sum().log(),
        "most": lambda: (loss * real).max(),
        "median": lambda: loss[real].median(),
        "off_by_one": lambda: total / (count + 1),
        "batch_too": lambda: total / count / len(labels),
        "length_too": lambda: total / count / labels.shape[-1],
        "times_length": lambda: total / count * labels.shape[-1],
        "times_batch": lambda: total / count * len(labels),
        "times_sum": lambda: ((loss * real).sum(0) / real.sum(0)).sum(),
        "rows_of_all": lambda: (rows / lengths).sum(),
    }.get(reduction, lambda: total / count)()


def loss_wrongly(logits: Tensor, labels: Tensor, ignore: int | None = None, **changes: str) -> object:
    """The loss of a batch of sequences with any of the ways to go wrong; without a switch it is right."""
    names = ("pair", "source", "smoothing", "which", "reduction", "graph", "result", "default", "place")
    how = dict.fromkeys(names, "right") | changes
    ignore = (0 if how["default"] == "ignores_0" else -100) if ignore is None else ignore
    if how["place"] == "changed":
        labels[labels == ignore] = 0
    if how["pair"] == "as_it_is":
        return F.cross_entropy(logits, labels, ignore_index=ignore)
    if how["pair"] == "ignores_0_alone":
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0)
    if how["pair"] == "binary":
        keep = labels != ignore
        q = F.one_hot(labels[keep], logits.shape[-1]).float()
        return F.binary_cross_entropy_with_logits(logits[keep], q)
    vocab = logits.shape[-1]
    logits, labels = _paired(logits, labels, how["pair"])
    logp = _log_probabilities(logits, how["source"])
    if how["pair"] == "classes_on_axis_one":
        logp = logp.transpose(1, 2)
    loss = _each_token(logp, labels, how["smoothing"])
    loss = _reduced(loss, _masked(labels, ignore, how["which"]), labels, vocab, how["reduction"])
    if how["graph"] == "cut":
        loss = loss.detach()
    return {
        "negative": lambda: -loss,
        "exponential": lambda: loss.exp(),
        "two_results": lambda: (loss, (labels != ignore).sum()),
    }.get(how["result"], lambda: loss)()


# ---------------------------------------------------------------- the gallery
MEAN = "Add up -log p(label) over all real tokens of the batch and divide by their number."
AHEAD = "The labels are already one place ahead: label t is the token that the model must say at position t."

SEQUENCE_MISTAKES = (
    # the mean
    *one(
        "reduction",
        "mean_of_rows",
        "You take the mean of each sequence and then the mean of the sequences. The two agree only where all are "
        "equally long; otherwise a token of a short sequence weighs more. " + MEAN,
        "rows",
    ),
    *one("reduction", "mean_of_rows", f"You add up the means of the sequences. {MEAN}", "rows_of_all"),
    *one(
        "reduction",
        "logarithm_after_the_mean",
        "You add up or average the probabilities of the labels, and take one logarithm at the end: take the logarithm "
        f"of each, and then the mean. {MEAN}",
        "log_of_mean",
        "log_of_sum",
    ),
    *one(
        "reduction",
        "logarithm_after_the_mean",
        f"You average the probabilities of each sequence, and take the logarithm of that. {MEAN}",
        "log_of_row_means",
    ),
    *one(
        "reduction",
        "padding_counted",
        "Padding adds nothing to your sum, but it counts in the number that divides it (batch times length), so the "
        "loss is too small wherever there is padding: divide by the number of real tokens.",
        "all_counted",
    ),
    *one(
        "reduction",
        "sum_of_tokens",
        "You add up over the tokens and do not divide, so the loss grows with the batch and its length, and so does "
        "each step: divide by the number of real tokens.",
        "sum",
    ),
    *one(
        "reduction",
        "sum_of_tokens",
        f"You add up over all tokens, those of padding too, and do not divide. {MEAN}",
        "sum_of_all",
    ),
    *one(
        "reduction",
        "divided_by_batch",
        "You divide the sum by the number of sequences, so long ones have a larger loss: divide by the number of real "
        "tokens.",
        "of_batch",
    ),
    *one("reduction", "divided_by_length", f"You divide the sum by the length of the rows alone. {MEAN}", "of_length"),
    *one(
        "reduction",
        "not_reduced",
        f"You return a loss for each token, sequence or position: one number for the batch is asked for. {MEAN}",
        "none",
        "each_row",
        "row_sums",
        "each_time",
    ),
    *one(
        "reduction",
        "mean_of_positions",
        f"You take the mean at each position and then the mean of the positions. {MEAN}",
        "times",
    ),
    *one("reduction", "mean_of_positions", f"You add up the means of the positions. {MEAN}", "times_sum"),
    *one(
        "reduction",
        "divided_by_vocab",
        f"You also divide by the size of the vocabulary. {MEAN}",
        "vocab",
        "all_and_vocab",
    ),
    *one(
        "reduction",
        "padding_summed",
        "You divide by the number of real tokens, but padding is in the sum: it must count in neither.",
        "all_summed_real_counted",
    ),
    *one(
        "reduction",
        "padding_learnt",
        "Padding counts in your mean like any other token, in the sum and in the number that divides it: it must count "
        "in neither.",
        "all",
    ),
    *one("reduction", "one_token_alone", f"One token alone makes your loss. {MEAN}", "most", "median"),
    *one("reduction", "count_off_by_one", "The number that divides your sum is one too large.", "off_by_one"),
    *one(
        "reduction",
        "divided_twice",
        "After the mean over all real tokens you divide once more, by the number of sequences or by their length.",
        "batch_too",
        "length_too",
    ),
    *one(
        "reduction",
        "multiplied_again",
        "After the mean over all real tokens you multiply by the number of sequences or by their length.",
        "times_length",
        "times_batch",
    ),
    # which logits beside which labels
    *one(
        "pair",
        "shifted_again",
        f"You shift once more, logits[:, :-1] against labels[:, 1:]. {AHEAD} Shifted twice, the model would learn to "
        "say the token after the next.",
        "shifted",
        "rolled",
    ),
    *one(
        "pair",
        "shifted_back",
        f"You shift the labels back, logits[:, 1:] against labels[:, :-1], so the model would learn to repeat its "
        f"input. {AHEAD}",
        "shifted_back",
        "rolled_back",
    ),
    *one(
        "pair",
        "last_position_left_out",
        f"You leave out the last position. {AHEAD} So all positions count.",
        "last_left_out",
    ),
    *one(
        "pair",
        "first_position_left_out",
        f"You leave out the first position. {AHEAD} So all positions count.",
        "first_left_out",
    ),
    *one(
        "pair",
        "one_position_alone",
        "Only one position of each sequence counts: every position does.",
        "last_alone",
        "first_alone",
    ),
    *one(
        "pair",
        "one_sequence_alone",
        "Only one sequence counts: all of the batch do.",
        "first_sequence",
        "last_sequence",
    ),
    *one(
        "pair",
        "order_mixed",
        "Logits and labels are flattened in two orders: one of them had batch and length exchanged before. Flatten "
        "both as they are, (batch, length).",
        "time_first",
        "labels_transposed",
    ),
    *one(
        "pair",
        "axes_cut_anew",
        "You bring the classes to axis 1, or the logits to two axes, by view or reshape: that cuts the same numbers "
        "into other rows. transpose(1, 2) exchanges axes; flatten(0, 1) merges batch and length.",
        "viewed",
        "flattened_transposed",
    ),
    *one(
        "pair",
        "time_as_classes",
        "You pass logits (batch, length, vocab_size) as they are: cross_entropy takes axis 1 for the classes, here the "
        "positions. That is an error, or silently wrong where length and vocab_size are equal. flatten(0, 1) or "
        "transpose(1, 2) brings the classes where they belong.",
        "as_it_is",
    ),
    *one("pair", "labels_reversed", "The labels are in reverse order.", "flipped"),
    # what stands for log p
    *one(
        "source",
        "softmax_twice",
        "The softmax is taken twice, since cross_entropy has one inside: even a perfect prediction keeps a loss well "
        "above 0. Pass the logits as they are.",
        "softmax_twice",
    ),
    *one(
        "source",
        "wrong_axis",
        "Your softmax runs over the positions (axis 1), so probabilities sum to 1 over time: it must run over the "
        "vocabulary, the last axis.",
        "over_time",
        "softmax_over_time_first",
    ),
    *one(
        "source",
        "wrong_axis",
        "Your softmax runs over the batch (axis 0): it must run over the vocabulary.",
        "over_batch",
    ),
    *one(
        "source",
        "wrong_axis",
        "Your softmax runs over the whole tensor: it must run over the vocabulary.",
        "everything",
    ),
    *one(
        "source",
        "no_log_softmax",
        "You take the logits for log-probabilities (nll_loss wants those), so the loss has no lower bound: log_softmax "
        "comes first, or cross_entropy, which contains it.",
        "logits",
    ),
    *one(
        "source",
        "no_logarithm",
        "You take probabilities where their logarithms belong: log_softmax, not softmax, comes before nll_loss.",
        "probabilities",
    ),
    *one("source", "sigmoid", "You take a sigmoid of each logit: the words share one softmax.", "sigmoid"),
    *one(
        "source",
        "softmax_then_log",
        "Where the logits lie far apart, your loss is infinite, nan or cut off: the softmax gives 0 there, and its "
        "logarithm is taken afterwards. log_softmax does both in one step and stays exact.",
        "two_steps",
        "small_added",
        "small_as_least",
        edge=True,
    ),
    *one("source", "base_two", "Your logarithm has base 2: it must be the natural one.", "base_two"),
    *one(
        "source", "logits_scaled", "You divide the logits by a root: they come into the softmax as they are.", "scaled"
    ),
    *one("source", "logits_negated", "The sign of the logits is turned before the softmax.", "negative"),
    # another loss
    *one("smoothing", "labels_smoothed", "You smooth the labels: plain cross-entropy is asked for.", "smoothed"),
    *one(
        "smoothing",
        "counts_errors",
        "You count how often the likeliest word is the label (or is not). That has no gradient, so nothing can be "
        f"trained with it. {MEAN}",
        "errors",
        "hits",
    ),
    *one("smoothing", "another_loss", f"You weight each token by how wrong it is. {MEAN}", "focal"),
    *one(
        "pair",
        "binary_cross_entropy",
        "You use binary cross-entropy, which asks of each word by itself whether it is the right one: the words share "
        "one softmax, as in cross_entropy.",
        "binary",
    ),
    *one("smoothing", "another_loss", f"You measure a squared distance of probabilities. {MEAN}", "squared"),
    # padding
    *one(
        "which",
        "ignore_unused",
        "The argument ignore does not enter: you always pass over -100 alone (cross_entropy's default). Where padding "
        "has another label, such as 0, it counts as a word.",
        "default",
    ),
    *one(
        "which",
        "zero_ignored",
        "You pass over label 0, whatever `ignore` says: with the default, 0 is a word like any other.",
        "zero",
        "zero_and_default",
        "positive",
    ),
    *one(
        "pair",
        "zero_ignored",
        "You pass over label 0, whatever `ignore` says: with the default, 0 is a word like any other, and -100 is to "
        "be passed over.",
        "ignores_0_alone",
    ),
    *one("which", "padding_alone", "You keep the padding and leave out the real tokens.", "ignored_alone"),
    *one(
        "which",
        "smaller_ids_ignored",
        "You compare with > where != is meant: labels below `ignore` are real words, too.",
        "below",
    ),
    *one(
        "place",
        "changes_labels",
        "The caller's labels are changed: those of padding are overwritten in place. Work on a copy, such as "
        "labels.clamp(min=0) or masked_fill without underscore.",
        "changed",
    ),
    # gradient and result
    *one(
        "graph",
        "no_gradient",
        "No gradient reaches the logits, so nothing could be trained with this loss: it must be a tensor computed from "
        "them by torch, without .item(), detach, .data, NumPy or torch.tensor(...) in between.",
        "cut",
    ),
    *one(
        "result", "negative", "Your loss has the wrong sign: it is the mean of -log p, which is positive.", "negative"
    ),
    *one(
        "result",
        "exponential",
        "You return exp of the loss, the perplexity: the loss itself is asked for.",
        "exponential",
    ),
    *one("result", "two_results", "You return more than the loss: the loss alone is asked for.", "two_results"),
    *one(
        "default",
        "ignore_default",
        "Where ignore is left out, yours is not -100: give the argument that default.",
        "ignores_0",
    ),
)


# ---------------------------------------------------------------- symptoms
def _padding_wrong(seen: Seen) -> bool:
    wrong = ["with padding" in p.says for p, e, g in seen if not same_outcome(e, g)]
    return losses(seen) is not None and len(wrong) >= 2 and all(wrong)


def _default_missing(seen: Seen) -> bool:
    errors = [g.error for p, e, g in seen if "ignore left out" in p.says]
    return _default_wrong(seen) and all(isinstance(e, TypeError) for e in errors)


def _time_as_classes(seen: Seen) -> bool:
    """It runs where length and vocab_size are equal and nowhere else, because of the shape of the labels."""
    errors = [g.error for p, _, g in seen if "square" not in p.says]
    runs = all(g.error is None for p, _, g in seen if "square" in p.says)
    return runs and all(e is not None and "Expected target size" in str(e) for e in errors)


def _all_say(words: str) -> Callable[[Seen], bool]:
    """Whether every ordinary probe is an error that says so."""
    return lambda seen: all(words in said(g.error) for _, _, g in core(seen))


def _ignore_wrong(seen: Seen) -> bool:
    wrong = ["ignore 0" in p.says or "ignore 2" in p.says for p, e, g in seen if not same_outcome(e, g)]
    return losses(seen) is not None and bool(wrong) and all(wrong)


def _default_wrong(seen: Seen) -> bool:
    return right_only_without(seen, "ignore left out")


SYMPTOMS = (
    CHANGES_INPUT,
    PER_TOKEN,
    Symptom(
        "ignore_required",
        "It cannot be called without ignore: give the argument its default, -100.",
        _default_missing,
    ),
    Symptom(
        "time_as_classes",
        "You pass logits (batch, length, vocab_size) as they are: cross_entropy takes axis 1 for the classes, here the "
        "positions. That is an error, or silently wrong where length and vocab_size are equal. flatten(0, 1) or "
        "transpose(1, 2) brings the classes where they belong.",
        _time_as_classes,
    ),
    Symptom(
        "one_side_flattened",
        "Logits and labels do not have the same number of rows: flatten both, batch and length into one axis.",
        _all_say("Expected input batch_size"),
    ),
    Symptom(
        "logits_in_one_axis",
        "The logits are flattened into one axis: batch and length become one, (tokens, vocab_size), and the axis of "
        "the vocabulary stays.",
        _all_say("For 1D input"),
    ),
    Symptom(
        "ignore_default",
        "In the cases tried here it is right except where ignore is left out: give the argument the default -100.",
        _default_wrong,
    ),
    Symptom(
        "padding_as_index",
        "It fails as soon as there is padding: -100 is no word, so it cannot be looked up. Select the real tokens "
        "first, labels[labels != ignore], and the same places of the logits, or pass ignore on to cross_entropy.",
        lambda seen: right_only_without(seen, "-100]", raised=True),
    ),
    Symptom(
        "large_logits",
        "In the cases tried here it is right except where logits are large or lie far apart: work with log_softmax, in "
        "one step, and cut nothing off.",
        lambda seen: right_only_without(seen, "far apart"),
    ),
    Symptom(
        "ignore_unused",
        "In the cases tried here it is right as long as padding has the label -100, and wrong where it has another: "
        "pass over the labels that are equal to `ignore`, and over no others.",
        _ignore_wrong,
    ),
    *LOSS_SYMPTOMS,
    Symptom(
        "padding_wrong",
        f"In the cases tried here it is right as long as there is no padding, and wrong where there is some. {MEAN} "
        "Padding counts in neither.",
        _padding_wrong,
    ),
)


# ---------------------------------------------------------------- probes
def _probe(says: str, labels: list[list[int]], vocab: int, seed: int, ignore: int | None = -100, scale: float = 1.5):
    generator = torch.Generator().manual_seed(seed)
    shape = (len(labels), len(labels[0]), vocab)
    logits = (torch.randn(*shape, generator=generator) * scale * 4).round() / 4
    others = () if ignore is None else (ignore,)
    padded = any(label == (-100 if ignore is None else ignore) for row in labels for label in row)
    text = f"logits of shape {shape}, labels {labels}, ignore {'left out' if ignore is None else ignore}"
    text += ", with padding" * padded + (f", {says}" if says else "")
    make: Callable[[], tuple] = lambda: (logits.clone(), torch.tensor(labels), *others)  # noqa: E731
    return Probe(text, make, edge=scale > 10 or not any(labels[1:]))


SEQUENCE_LOSS: Exercise = LossExercise(
    name="training.sequence_loss",
    reference=lambda logits, labels, ignore=-100: training.sequence_loss(logits, labels, ignore),
    results=(Result("gradient", ("batch", "position", "word")), Result("loss")),
    probes=(
        _probe("", [[1, 2, 3], [0, 2, 1]], 4, 2),
        _probe("", [[1, 2, 3, 2], [0, -100, -100, -100]], 5, 3),
        _probe("square", [[1, 2, 3, 0], [3, 0, 1, 1]], 4, 4),
        _probe("", [[4, 2, -100, -100], [1, 0, 3, -100], [2, 3, 1, 4]], 6, 5, None),
        _probe("", [[1, 2, 3], [2, 0, 0]], 5, 6, 0),
        _probe("", [[1, 3, 2, 2, 2], [3, 0, 1, 0, 1]], 4, 7, 2),
        _probe("one token", [[1]], 3, 9),
        _probe("far apart", [[1, 0], [2, 1]], 3, 8, -100, 300.0),
    ),
    compound=loss_wrongly,
    at_once=2,
    mistakes=SEQUENCE_MISTAKES,
    symptoms=SYMPTOMS,
)
