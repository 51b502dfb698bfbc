"""The exercises joined_loss and perplexity of lesson 09: means of parts, and what becomes of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

import numpy as np

from .. import training
from .exercise import Exercise, Mistake, Probe, Result, Symptom
from .outcome import said, same_outcome
from .symptoms import CHANGES_INPUT, Seen
from .training_parts import number, number_of, one

__all__ = ["JOINED_LOSS", "PERPLEXITY"]

Numbers = Sequence[float]


# ---------------------------------------------------------------- one wrong implementation
def _running(means: Numbers, start: float | None) -> float:
    """The average of the last average and the next number, again and again."""
    value = means[0] if start is None else start
    for mean in means[1:] if start is None else means:
        value = (value + mean) / 2
    return value


def _running_by_first(means: Numbers, counts: Numbers) -> float:
    """The average so far, always with the first count, joined with the next mean and its count."""
    value = means[0]
    for mean, count in zip(means[1:], counts[1:], strict=True):
        value = (value * counts[0] + mean * count) / (counts[0] + count)
    return value


def _joined(means: Numbers, counts: Numbers, how: str) -> object:
    """What a reader may make of the means and counts of the parts."""
    n, total = len(means), sum(counts)
    products = [m * c for m, c in zip(means, counts, strict=True)]
    summed = sum(products)
    so_far = np.cumsum(counts)
    exps = [math.exp(m) for m in means]
    return {
        "unweighted": lambda: sum(means) / n,
        "sum": lambda: sum(means),
        "products": lambda: summed,
        "by_parts": lambda: summed / n,
        "sum_by_total": lambda: sum(means) / total,
        "by_sum_of_means": lambda: summed / sum(means),
        "exchanged": lambda: total / sum(means),
        "total": lambda: total,
        "inverse": lambda: sum(m / c for m, c in zip(means, counts, strict=True)) / sum(1 / c for c in counts),
        "divided": lambda: sum(m / c for m, c in zip(means, counts, strict=True)),
        "divided_mean": lambda: sum(m / c for m, c in zip(means, counts, strict=True)) / n,
        "divided_times_total": lambda: sum(m / c for m, c in zip(means, counts, strict=True)) * total,
        "divided_by_total": lambda: sum(m / c for m, c in zip(means, counts, strict=True)) / total,
        "means_times_total": lambda: sum(means) * total,
        "longest": lambda: summed / (n * max(counts)),
        "longest_alone": lambda: summed / max(counts),
        "first_count": lambda: summed / (n * counts[0]),
        "first_count_alone": lambda: summed / counts[0],
        "last_count_alone": lambda: summed / counts[-1],
        "last": lambda: means[-1],
        "first": lambda: means[0],
        "largest": lambda: max(means),
        "smallest": lambda: min(means),
        "longest_part": lambda: means[list(counts).index(max(counts))],
        "median": lambda: statistics.median(means),
        "last_missing": lambda: sum(products[:-1]) / sum(counts[:-1]) if n > 1 else 0.0,
        "last_missing_above": lambda: sum(products[:-1]) / total,
        "first_missing": lambda: sum(products[1:]) / sum(counts[1:]) if n > 1 else 0.0,
        "first_missing_above": lambda: sum(products[1:]) / total,
        "last_product": lambda: products[-1] / total,
        "returned_early": lambda: products[0] / total,
        "running": lambda: _running(means, None),
        "running_from_zero": lambda: _running(means, 0.0),
        "running_by_first": lambda: _running_by_first(means, counts),
        "whole": lambda: summed // total,
        "rounded": lambda: float(round(summed / total)),
        "one_place": lambda: round(summed / total, 1),
        "two_places": lambda: round(summed / total, 2),
        "geometric": lambda: math.exp(sum(math.log(m) * c for m, c in zip(means, counts, strict=True)) / total),
        "geometric_unweighted": lambda: math.prod(means) ** (1 / n),
        "harmonic": lambda: total / sum(c / m for m, c in zip(means, counts, strict=True)),
        "quadratic": lambda: math.sqrt(sum(m * m * c for m, c in zip(means, counts, strict=True)) / total),
        "softmax": lambda: _softmax_mean(means, counts),
        "root_of_counts": lambda: _weighted(means, [math.sqrt(c) for c in counts]),
        "squared_counts": lambda: _weighted(means, [c * c for c in counts]),
        "log_of_counts": lambda: _weighted(means, [math.log(c) for c in counts]) if max(counts) > 1 else means[0],
        "cumulative": lambda: _weighted(means, so_far.tolist()),
        "reversed": lambda: _weighted(means, list(counts)[::-1]),
        "products_list": lambda: products,
        "shares": lambda: [c / total for c in counts],
        "weighted_list": lambda: [p / total for p in products],
        "two_results": lambda: (summed / total, total),
        "sum_and_total": lambda: (summed, total),
        "by_total_twice": lambda: summed / total**2,
        "by_total_and_parts": lambda: summed / total / n,
        "total_minus_one": lambda: summed / max(total - 1, 1),
        "total_plus_one": lambda: summed / (total + 1),
        "logarithm_first": lambda: sum(math.log(e) for e in exps) / n,
    }.get(how, lambda: summed / total)()


def _weighted(means: Numbers, weights: Numbers) -> float:
    return sum(m * w for m, w in zip(means, weights, strict=True)) / sum(weights)


def _softmax_mean(means: Numbers, counts: Numbers) -> float:
    weights = [math.exp(c - max(counts)) for c in counts]
    return _weighted(means, weights)


def joined_wrongly(
    means: list[float], counts: list[int], *, join: str = "right", after: str = "right", inputs: str = "kept"
) -> object:
    """The joined loss with any of the ways to go wrong; without a switch it is right."""
    if inputs == "means_changed":
        result = _joined(means, counts, join)
        means[:] = [m * c for m, c in zip(means, counts, strict=True)]
        return result
    result = _joined(means, counts, join)
    if after != "right" and isinstance(result, (int, float)):
        return {"exponential": lambda: math.exp(result), "negative": lambda: -result}[after]()
    return result


def _of_each(means: Numbers, counts: Numbers, base: float, how: str) -> float:
    """Means over the perplexities of the parts."""
    return {
        "weighted": lambda: _weighted([base**m for m in means], counts),
        "unweighted": lambda: sum(base**m for m in means) / len(means),
        "sum": lambda: sum(base**m for m in means),
        "last": lambda: base ** means[-1],
        "median": lambda: statistics.median(base**m for m in means),
        "harmonic": lambda: sum(counts) / sum(c / base**m for m, c in zip(means, counts, strict=True)),
        "sum_by_total": lambda: sum(base**m for m in means) / sum(counts),
        "products": lambda: sum(c * base**m for m, c in zip(means, counts, strict=True)),
        "products_by_parts": lambda: sum(c * base**m for m, c in zip(means, counts, strict=True)) / len(means),
        "logarithm": lambda: math.log(_weighted([base**m for m in means], counts)),
        "each": lambda: [base**m for m in means],
    }[how]()


def perplexity_wrongly(
    means: list[float],
    counts: list[int],
    *,
    join: str = "right",
    each: str = "none",
    base: str = "e",
    after: str = "right",
) -> object:
    """The perplexity with any of the ways to go wrong; without a switch it is right."""
    number_base = {"e": math.e, "two": 2.0, "ten": 10.0}[base]
    if each != "none":
        return _of_each(means, counts, number_base, each)
    loss = _joined(means, counts, join)
    if not isinstance(loss, (int, float)):
        return loss
    return {
        "loss": lambda: loss,
        "minus": lambda: number_base**-loss,
        "logarithm": lambda: math.log(loss),
        "square": lambda: loss**2,
        "exp_by_total": lambda: number_base ** (loss * sum(counts)) / sum(counts),
        "twice": lambda: number_base ** (number_base**loss / 10),
        "less_one": lambda: math.expm1(loss),
        "root": lambda: number_base ** (loss / 2),
        "double": lambda: number_base ** (2 * loss),
        "times_log_two": lambda: 2 ** (loss * math.log(2)),
        "e_in_bits": lambda: math.exp(loss / math.log(2)),
        "e_to_log_two": lambda: math.exp(loss * math.log(2)),
        "per_token": lambda: number_base**loss / sum(counts),
        "whole": lambda: float(int(number_base**loss)),
        "one_place": lambda: round(number_base**loss, 1),
        "two_places": lambda: round(number_base**loss, 2),
        "power": lambda: loss**number_base,
        "divided_by_parts": lambda: number_base**loss / len(means),
        "negative": lambda: -(number_base**loss),
        "bits": lambda: loss / math.log(2),
        "two_results": lambda: (number_base**loss, loss),
    }.get(after, lambda: number_base**loss)()


# ---------------------------------------------------------------- the gallery of joined_loss
EACH = "Multiply each mean by its number of tokens, add up, and divide by the number of all tokens."

MEANS = {  # positions of the switch `join`: (name, sentence); both exercises share them
    "unweighted": (
        "unweighted",
        "You take the mean of the means, so a short part weighs as much as a long one: the counts do not enter. "
        + EACH,
    ),
    "sum": (
        "means_summed",
        "What you return is the sum of the means, divided by nothing. With n parts the loss, and every gradient step "
        "made from it, is about n times too large. " + EACH,
    ),
    "products": (
        "not_divided",
        "You add up mean times count, which is the loss of all tokens together: divide it by the number of all tokens.",
    ),
    "by_parts": (
        "divided_by_parts",
        "You divide the loss of all tokens by the number of parts: divide by the number of all tokens, sum(counts).",
    ),
    "sum_by_total": (
        "means_not_weighted",
        "You divide the sum of the means by the number of all tokens, but the means are not multiplied by their "
        "counts. " + EACH,
    ),
    "by_sum_of_means": (
        "divided_by_means",
        "You divide by the sum of the means, which makes the losses the weights: counts are the weights, so divide by "
        "sum(counts).",
    ),
    "exchanged": ("divided_by_means", "You divide the number of tokens by the sum of the means. " + EACH),
    "total": ("counts_alone", "You return the number of tokens: the means do not enter. " + EACH),
    "inverse": (
        "inverse_weights",
        "You weight each mean by 1 / count, so that short parts weigh most: it is the other way round. " + EACH,
    ),
    "divided": (
        "divided_by_count",
        "You divide each mean by its count: it is a mean already, and must be multiplied by it. " + EACH,
    ),
    "divided_mean": (
        "divided_by_count",
        "You divide each mean by its count: it is a mean already, and must be multiplied by it. " + EACH,
    ),
    "divided_times_total": (
        "divided_by_count",
        "You divide each mean by its count: it is a mean already, and must be multiplied by it. " + EACH,
    ),
    "divided_by_total": (
        "divided_by_count",
        "You divide each mean by its count: it is a mean already, and must be multiplied by it. " + EACH,
    ),
    "means_times_total": (
        "multiplied_by_total",
        "You multiply by the number of all tokens where you must divide by it. " + EACH,
    ),
    "longest": (
        "all_as_long_as_the_longest",
        "You divide as if every part had as many tokens as the longest: divide by sum(counts).",
    ),
    "longest_alone": ("one_count_for_all", "You divide by the largest count: divide by the sum of all."),
    "first_count": (
        "one_count_for_all",
        "You divide as if every part had as many tokens as the first: divide by sum(counts).",
    ),
    "first_count_alone": ("one_count_for_all", "You divide by the first count: divide by the sum of all."),
    "last_count_alone": ("one_count_for_all", "You divide by the last count: divide by the sum of all."),
    "last": ("last_part_alone", "Only the last part is in what you return: the others are missing. " + EACH),
    "first": ("first_part_alone", "Only the first part is in what you return: the others are missing. " + EACH),
    "largest": ("one_part_alone", "Only the part with the largest mean is in yours. " + EACH),
    "smallest": ("one_part_alone", "Only the part with the smallest mean is in yours. " + EACH),
    "longest_part": ("one_part_alone", "Only the part with the most tokens is in yours. " + EACH),
    "median": ("median", "You take the median of the means. " + EACH),
    "last_missing": ("last_part_missing", "The last part is missing: a loop over all parts runs to len(means)."),
    "last_missing_above": (
        "last_part_missing",
        "The last part is missing in the sum, though its tokens count: a loop over all parts runs to len(means).",
    ),
    "first_missing": ("first_part_missing", "The first part is missing: parts count from 0."),
    "first_missing_above": (
        "first_part_missing",
        "The first part is missing in the sum, though its tokens count: parts count from 0.",
    ),
    "last_product": (
        "only_last_added",
        "Only the last part is in your sum, divided by the number of all tokens: add up with +=, since = keeps the "
        "last round alone.",
    ),
    "returned_early": (
        "returned_in_the_loop",
        "Only the first part is in your sum, divided by the number of all tokens: does return stand inside the loop?",
    ),
    "running": (
        "running_average",
        "You average the last result with the next mean, (average + mean) / 2, so late parts weigh most. " + EACH,
    ),
    "running_from_zero": (
        "running_average",
        "You average the last result with the next mean, beginning with 0, so late parts weigh most. " + EACH,
    ),
    "running_by_first": (
        "running_average",
        "You join the result so far with the next mean, but its tokens are always those of the first part: add each "
        "count to them.",
    ),
    "whole": ("whole_division", "You cut the mean off to a whole number, with // or int: / divides."),
    "rounded": ("rounded", "Your mean is rounded to a whole number: return it as it is."),
    "one_place": ("rounded", "Your mean is rounded to one place: return it as it is."),
    "two_places": ("rounded", "Your mean is rounded to two places: return it as it is."),
    "geometric": (
        "geometric_mean",
        "You take the geometric mean of the means, in which logarithms are averaged. " + EACH,
    ),
    "geometric_unweighted": (
        "geometric_mean",
        "You take the geometric mean of the means, in which logarithms are averaged. " + EACH,
    ),
    "harmonic": ("harmonic_mean", "You take the harmonic mean, in which the inverses are averaged. " + EACH),
    "quadratic": ("quadratic_mean", "You average the squares of the means and take the root. " + EACH),
    "softmax": ("softmax_of_counts", "You weight with a softmax of the counts: the weights are count / sum(counts)."),
    "root_of_counts": ("other_weights", "You weight with the roots of the counts: the weights are the counts."),
    "squared_counts": ("other_weights", "You weight with the squares of the counts: the weights are the counts."),
    "log_of_counts": ("other_weights", "You weight with the logarithms of the counts: the weights are the counts."),
    "cumulative": (
        "other_weights",
        "You weight with the tokens so far, each part with the sum up to it: the weights are the counts.",
    ),
    "reversed": ("other_weights", "Each mean has the count of another part: the counts are in reverse order."),
    "products_list": ("not_joined", "You return a list: one number for all parts is asked for. " + EACH),
    "shares": ("not_joined", "You return the shares of the parts, a list: weight the means with them and add up."),
    "weighted_list": ("not_joined", "You return a list: its numbers still have to be added up."),
    "two_results": ("two_results", "You return two numbers: the first alone is asked for."),
    "sum_and_total": ("two_results", "You return the sum and the number of tokens: divide one by the other."),
    "by_total_twice": ("divided_twice", "You divide by the number of all tokens twice."),
    "by_total_and_parts": (
        "divided_twice",
        "You divide by the number of all tokens, and then once more by the number of parts.",
    ),
    "total_minus_one": (
        "count_off_by_one",
        "The number that divides your sum is one too small: divide by sum(counts).",
    ),
    "total_plus_one": ("count_off_by_one", "The number that divides your sum is one too large: divide by sum(counts)."),
}
ROUNDED = ("rounded", "one_place", "two_places")
LISTS = ("products_list", "shares", "weighted_list", "two_results", "sum_and_total")

JOINED_MISTAKES = (
    *(Mistake(name, sentence, switches={"join": key}) for key, (name, sentence) in MEANS.items()),
    *one(
        "after",
        "exponential",
        "You return exp of the loss, the perplexity: the loss itself is asked for.",
        "exponential",
    ),
    *one("after", "negative", "Your loss is negative: the means are added as they are.", "negative"),
    *one(
        "inputs",
        "changes_means",
        "The caller's list of means is changed: make a new list, or add up the products in a number of your own.",
        "means_changed",
    ),
)


# ---------------------------------------------------------------- the gallery of perplexity
LAST = "Average the losses per token first; exp comes last and once."

PERPLEXITY_MISTAKES = (
    *one(
        "each",
        "mean_of_perplexities",
        "You average the perplexities of the parts, each by its tokens. exp is convex, so that is too large. " + LAST,
        "weighted",
    ),
    *one(
        "each",
        "mean_of_perplexities",
        "You average the perplexities of the parts, and each part counts the same. exp is convex, so that is too "
        f"large; and a long part must weigh more. {LAST}",
        "unweighted",
    ),
    *one("each", "perplexities_summed", f"You add up the perplexities of the parts. {LAST}", "sum", "products"),
    *one("each", "mean_of_perplexities", f"You take the harmonic mean of the perplexities. {LAST}", "harmonic"),
    *one(
        "each",
        "perplexities_by_total",
        f"You add up the perplexities of the parts and divide by the number of all tokens. {LAST}",
        "sum_by_total",
    ),
    *one(
        "each",
        "divided_by_parts",
        f"You divide by the number of parts where the number of all tokens belongs. {LAST}",
        "products_by_parts",
    ),
    *one("each", "logarithm_after", f"You take a logarithm of the mean perplexity at the end. {LAST}", "logarithm"),
    *one("each", "one_for_each_part", f"You return one perplexity for each part. {LAST}", "each"),
    *one(
        "base",
        "base_two",
        "You raise 2 to the loss. That fits a loss in bits; ours is in nats, made by the natural logarithm, so the "
        "base is e: exp.",
        "two",
    ),
    *one("base", "base_ten", "You raise 10 to the loss: the loss is in nats, so the base is e: exp.", "ten"),
    *(
        Mistake(name, sentence.replace(EACH, f"{EACH} Then take exp."), switches={"join": key})
        for key, (name, sentence) in MEANS.items()
        if key not in (*LISTS, *ROUNDED, "whole", "sum", "products")
    ),
    Mistake(
        "sum_of_means",
        "You take exp of the sum of the means (or multiply the perplexities of the parts): it must be their mean, "
        f"weighted by the tokens. {LAST}",
        switches={"join": "sum"},
    ),
    Mistake(
        "not_divided",
        "You take exp of the loss of all tokens together, which is huge: divide it by the number of tokens first.",
        switches={"join": "products"},
    ),
    *one(
        "join",
        "whole_division",
        f"You cut the mean loss off to a whole number, with // or int: / divides. {LAST}",
        "whole",
    ),
    *one("join", "rounded", f"The mean loss is rounded before exp. {LAST}", *ROUNDED),
    *one("join", "not_joined", f"You return a list: one number for all parts is asked for. {LAST}", *LISTS[:3]),
    *one("join", "two_results", f"You return two numbers: the perplexity alone is asked for. {LAST}", *LISTS[3:]),
    *one("after", "two_results", "You return two numbers: the perplexity alone is asked for.", "two_results"),
    *one("after", "exp_missing", "You return the mean loss: the perplexity is exp of it.", "loss"),
    *one(
        "after", "exp_missing", "You return the mean loss in bits: the perplexity is exp of the loss in nats.", "bits"
    ),
    *one(
        "after",
        "sign_turned",
        "You take exp(-loss), the probability of a typical token: the perplexity is one over it, exp(loss).",
        "minus",
    ),
    *one("after", "logarithm", "You take the logarithm of the mean loss: the perplexity is exp of it.", "logarithm"),
    *one("after", "squared", "You square the mean loss: the perplexity is exp of it.", "square"),
    *one(
        "after",
        "divided_after_exp",
        "You take exp of the loss of all tokens and divide by their number afterwards: divide first.",
        "exp_by_total",
    ),
    *one("after", "divided_after_exp", "You divide the perplexity by the number of tokens once more.", "per_token"),
    *one("after", "one_subtracted", "You subtract 1 from the exponential (expm1).", "less_one"),
    *one("after", "exponent_scaled", "The loss is halved or doubled before exp.", "root", "double"),
    *one(
        "after",
        "bits_mixed_up",
        "You convert between bits and nats in the wrong direction, or where no conversion is needed: the loss is in "
        "nats (natural logarithm), and the perplexity is exp of it.",
        "times_log_two",
        "e_in_bits",
    ),
    *one("after", "rounded", "You round the perplexity: return it as it is.", "one_place", "two_places"),
    *one(
        "after",
        "base_and_exponent",
        "You raise the loss to the power e: the perplexity is e to the loss, exp.",
        "power",
    ),
    *one("after", "divided_after_exp", "You divide the perplexity by the number of parts.", "divided_by_parts"),
    *one("after", "cut_to_whole", "Your perplexity is cut off to a whole number.", "whole"),
    *one("after", "negative", "Your perplexity is negative.", "negative"),
)


# ---------------------------------------------------------------- symptoms
def _numbers(seen: Seen) -> list[tuple[list[float], list[int], float, float]] | None:
    """(means, counts, right, reader's); None unless numbers came out everywhere."""
    found = []
    for probe, expected, given in seen:
        mine = number(given)
        if mine is None or given.changed:
            return None
        found.append((*probe.make(), expected.value, mine))
    return found


def _wrong(seen: Seen) -> list[list[int]]:
    """The counts of the probes on which the reader is wrong."""
    return [p.make()[1] for p, e, g in seen if not same_outcome(e, g)]


def _counts_matter(seen: Seen) -> bool:
    """Right where all parts have the same number of tokens, wrong where not."""
    wrong = _wrong(seen)
    unequal = [p for p, _, _ in seen if len(set(p.make()[1])) > 1]
    return _numbers(seen) is not None and len(wrong) == len(unequal) and all(len(set(c)) > 1 for c in wrong)


def _one_part_right(seen: Seen) -> bool:
    wrong = _wrong(seen)
    return _numbers(seen) is not None and bool(wrong) and all(len(counts) > 1 for counts in wrong)


def _outside(bound: Callable[[float], float]) -> Callable[[Seen], bool]:
    """The reader's number is no mean of the parts: it lies outside them, where they are several."""

    def shows(seen: Seen) -> bool:
        found = [(means, mine) for means, _, _, mine in _numbers(seen) or () if len(means) > 1]
        away = [not bound(min(m)) - 1e-6 <= mine <= bound(max(m)) + 1e-6 for m, mine in found]
        return bool(away) and all(away)

    return shows


def _lists_multiplied(seen: Seen) -> bool:
    return all("multiply sequence by non-int" in said(g.error) for _, _, g in seen)


LISTS_MULTIPLIED = Symptom(
    "lists_multiplied",
    "Lists are not multiplied entry by entry with *: go through both with zip, or make tensors of them.",
    _lists_multiplied,
)


def _settled(_: tuple, value: object) -> object:
    """A number is a number, whether torch, NumPy or Python made it."""
    if isinstance(value, list):
        return [number_of(x) for x in value]
    return number_of(value)


def _probe(means: list[float], counts: list[int]) -> Probe:
    return Probe(f"means {means}, counts {counts}", lambda: (list(means), list(counts)))


JOINED_LOSS = Exercise(
    name="training.joined_loss",
    reference=training.joined_loss,
    results=(Result("loss"),),
    probes=(
        _probe([3.0], [7]),
        _probe([2.0, 4.0], [10, 10]),
        _probe([1.0, 1.5, 5.0], [4, 4, 4]),
        _probe([2.0, 4.0], [30, 10]),
        _probe([1.0, 1.5, 5.0], [40, 25, 1]),
        _probe([0.5, 3.0, 2.0, 2.5], [3, 8, 2, 5]),
        _probe([3.0, 1.0, 4.0, 1.5, 0.5], [6, 2, 9, 4, 3]),
    ),
    compound=joined_wrongly,
    at_once=2,
    mistakes=JOINED_MISTAKES,
    settled=_settled,
    symptoms=(
        CHANGES_INPUT,
        LISTS_MULTIPLIED,
        Symptom(
            "counts_misused",
            "In the cases tried here it is right where all parts have the same number of tokens, and wrong where they "
            f"have not. {EACH}",
            _counts_matter,
        ),
        Symptom(
            "no_mean",
            "What you return lies outside the means of the parts, and a mean of them lies between the smallest and the "
            f"largest. {EACH}",
            _outside(lambda x: x),
        ),
        Symptom(
            "parts_joined_wrongly",
            f"In the cases tried here it is right for one part alone, and not always for several. {EACH}",
            _one_part_right,
        ),
    ),
)

PERPLEXITY = Exercise(
    name="training.perplexity",
    reference=training.perplexity,
    results=(Result("perplexity"),),
    probes=(
        _probe([2.0], [7]),
        _probe([1.0, 3.0], [5, 5]),
        _probe([0.5, 1.0, 3.0], [4, 4, 4]),
        _probe([3.0, 1.0], [9, 3]),
        _probe([0.5, 2.5, 1.5], [2, 6, 4]),
        _probe([0.5, 3.0, 2.0, 2.5], [3, 8, 2, 5]),
    ),
    compound=perplexity_wrongly,
    at_once=2,
    mistakes=PERPLEXITY_MISTAKES,
    settled=_settled,
    symptoms=(
        CHANGES_INPUT,
        LISTS_MULTIPLIED,
        Symptom(
            "counts_misused",
            "In the cases tried here it is right where all parts have the same number of tokens, and wrong where they "
            f"have not: a part counts as often as it has tokens. {EACH} Then take exp.",
            _counts_matter,
        ),
        Symptom(
            "outside_the_parts",
            "What you return lies outside the perplexities of the parts, and that of all must lie between the smallest "
            f"and the largest. {LAST}",
            _outside(math.exp),
        ),
        Symptom(
            "parts_joined_wrongly",
            f"In the cases tried here it is right for one part alone, and not always for several. {LAST}",
            _one_part_right,
        ),
    ),
)
