"""The exercise next_probabilities of lesson 10: temperature, top-k, top-p, in this order."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import decoding
from .decoding_parts import one
from .exercise import Exercise, Mistake, Probe, Result, Symptom
from .outcome import close, same_outcome
from .symptoms import CHANGES_INPUT, KIND_SYMPTOMS, MORE_RESULTS, ONLY_SHAPE, Seen


# ---------------------------------------------------------------- the wrong implementation with switches
def _tempered(logits: Tensor, t: float, temperature: str) -> Tensor:
    """The logits at temperature t."""
    probabilities = logits.softmax(-1)
    return {
        "divides": lambda: logits / t,
        "times": lambda: logits * t,
        "ignored": lambda: logits,
        "squared": lambda: logits / t**2,
        "root": lambda: logits / t**0.5,
        "added": lambda: logits + t,
        "one_plus": lambda: logits / (1 + t),
        "at_least_a_tenth": lambda: logits / max(t, 0.1),
        "only_below_one": lambda: logits / min(t, 1.0),
        "only_above_one": lambda: logits / max(t, 1.0),
        "on_probabilities": lambda: probabilities / t,
        "power": lambda: probabilities**t,
        "probabilities_as_logits": lambda: probabilities,
        "tempered_probabilities": lambda: (logits / t).softmax(-1),
        "logits_power": lambda: logits.abs() ** (1 / t) * logits.sign(),
        "one_minus": lambda: logits * (2 - t),
        "exponential": lambda: logits * 2.718281828**-t,
    }[temperature]()


def _kept(x: Tensor, k: int, p: float, border: str) -> Tensor:
    """bool (vocab_size,): both filters, in the order in which `border` names them."""
    order = x.argsort(descending=True, stable=True)
    place = torch.empty_like(order).scatter(0, order, torch.arange(len(x)))
    n = {"k_one_less": k - 1, "k_one_more": k + 1, "k_ignored": len(x), "k_one": 1}.get(border, k)
    by_k = place >= len(x) - k if border == "smallest_k" else place < n
    after = x.double() if border in ("p_then_k", "p_on_all") else x.double().masked_fill(~by_k, -torch.inf)
    mass = after.softmax(-1)[order]
    before = mass.cumsum(0) - mass
    by_p = {
        "p_ignored": before >= 0,
        "p_rest": before < 1 - p - 1e-9,
        "p_crossing_out": (mass.cumsum(0) <= p + 1e-9) | (torch.arange(len(x)) == 0),
        "p_one_more": torch.cat([torch.ones(1, dtype=torch.bool), before[:-1] < p - 1e-9]),
        "p_threshold": mass >= min(1 - p, float(mass[0])),
        "p_single": (mass >= p) | (torch.arange(len(x)) == 0),
        "p_share_of_best": mass >= p * mass[0],
        "p_tail": (before >= p - 1e-9) if p < 1 else before >= 0,
    }.get(border, before < p - 1e-9)
    by_p[0] = by_p[0] or border != "p_tail"
    by_p = torch.empty_like(by_p).scatter(0, order, by_p)
    return {"neither": place >= 0, "p_not_scattered": by_k & by_p[place]}.get(border, by_k & by_p)


def chances_wrongly(
    logits: Tensor,
    t: float,
    k: int,
    p: float,
    *,
    temperature: str = "divides",
    when: str = "first",
    border: str = "k_then_p",
    shares: str = "renormalised",
    zero: str = "best",
    result: str = "all",
) -> object:
    """The next token's probabilities with any of the ways to go wrong; without a switch it is right."""
    if t == 0:
        best = torch.nn.functional.one_hot(logits.argmax(), len(logits)).to(logits.dtype)
        if zero == "nan":
            return (logits / 0 * (torch.arange(len(logits)) < len(logits))).softmax(-1)
        if zero == "raises":
            return 1 / t
        if zero != "best":
            return {
                "id": lambda: logits.argmax(),
                "as_one": lambda: chances_wrongly(logits, 1.0, k, p, border=border),
                "uniform": lambda: torch.full_like(logits, 1 / len(logits)),
                "hot_logit": lambda: best * logits,
                "minus_inf": lambda: logits.masked_fill(best == 0, -torch.inf),
                "plain": lambda: logits.softmax(-1),
                "logits": lambda: logits,
                "zeros": lambda: torch.zeros_like(logits),
                "zero_and_minus_inf": lambda: torch.zeros_like(logits).masked_fill(best == 0, -torch.inf),
                "as_a_tenth": lambda: chances_wrongly(logits, 0.1, k, p, border=border),
                "hot_ids": lambda: best.long(),
                "worst": lambda: torch.nn.functional.one_hot(logits.argmin(), len(logits)).to(logits.dtype),
                "nan_everywhere": lambda: torch.full_like(logits, torch.nan),
                "bools": lambda: best.bool(),
            }[zero]()
        return _result(best, best, logits, result)
    x = _tempered(logits, t, temperature)
    kept = _kept({"first": x, "last": logits, "not_for_p": x}[when], k, p, border)
    full = x.softmax(-1)
    filtered = x.masked_fill(~kept, -torch.inf)
    answer = {
        "renormalised": lambda: filtered.softmax(-1),
        "not_renormalised": lambda: full * kept,
        "uniform": lambda: kept.to(x.dtype) / kept.sum(),
        "softmax_twice": lambda: filtered.softmax(-1).softmax(-1),
        "softmax_over_rows": lambda: filtered[None].softmax(0)[0],
        "softmax_of_zeros": lambda: (x * kept).softmax(-1),
        "softmax_of_masked_shares": lambda: (full * kept).softmax(-1),
        "by_largest": lambda: full * kept / full.max(),
        "by_number": lambda: full * kept / kept.sum(),
        "logs": lambda: filtered.log_softmax(-1),
        "logits": lambda: filtered,
        "exponentials": lambda: filtered.exp(),
        "sigmoids": lambda: filtered.sigmoid(),
        "untempered": lambda: logits.masked_fill(~kept, -torch.inf).softmax(-1),
        "kept_zeroed_again": lambda: filtered.softmax(-1) * t,
        "divided_again": lambda: (filtered / t).softmax(-1),
    }[shares]()
    return _result(answer, kept, logits, result)


def _result(answer: Tensor, kept: Tensor, logits: Tensor, result: str) -> object:
    order = answer.argsort(descending=True, stable=True)
    return {
        "all": lambda: answer,
        "sorted": lambda: answer[order],
        "kept_only": lambda: answer[kept.bool()],
        "kept_sorted": lambda: answer[order][: int(kept.sum())],
        "id": lambda: answer.argmax(),
        "mask": lambda: kept.bool(),
        "complement": lambda: 1 - answer,
        "with_ids": lambda: (answer[order], order),
    }[result]()


# ---------------------------------------------------------------- the gallery
ORDER = "First the temperature, then top-k, then top-p of what is left, then the softmax."

TWICE = "The logits are divided by the temperature twice (or by its square): once is enough."

CHANCES_MISTAKES = (
    *one(
        "temperature",
        "multiplied",
        "You multiply by the temperature: a low one flattens in yours, and a high one sharpens. Divide the logits by"
        " it.",
        "times",
    ),
    *one(
        "temperature",
        "temperature_ignored",
        "The temperature has no effect. If you divide probabilities by it and then make them sum to 1, nothing has"
        " changed: divide the logits, before the softmax.",
        "ignored",
    ),
    *one("temperature", "temperature_twice", TWICE, "squared"),
    *one("shares", "temperature_twice", TWICE, "divided_again"),
    *one(
        "temperature",
        "root_of_temperature",
        "The logits are divided by the root of the temperature: divide by it.",
        "root",
    ),
    *one(
        "temperature",
        "added",
        "The temperature is not a divisor in yours: logits / temperature.",
        "one_plus",
        "one_minus",
        "exponential",
    ),
    *one(
        "temperature",
        "one_side_only",
        "Only temperatures below 1, or only those above 1, have an effect: divide by every one.",
        "only_below_one",
        "only_above_one",
    ),
    *one(
        "temperature",
        "small_temperatures_replaced",
        "A small temperature does not count as it is: yours is 0.1 at least. Only 0 needs an answer of its own.",
        "at_least_a_tenth",
    ),
    Mistake(
        "small_temperatures_replaced",
        "Temperature 0, and every other below 0.1, is replaced by 0.1 in yours: small ones count as they are, and 0"
        " puts all probability on the best token.",
        switches={"temperature": "at_least_a_tenth", "zero": "as_a_tenth"},
    ),
    Mistake(
        "softmax_first",
        "The softmax comes first, so that the filters take probabilities for logits; and what they remove is -inf in"
        " your result. Filter the logits, and take the softmax at the end.",
        switches={"temperature": "tempered_probabilities", "shares": "logits"},
    ),
    *one(
        "temperature",
        "softmax_first",
        "The softmax comes first, and its probabilities are then treated as if they were logits. Divide the logits, and"
        " take the softmax at the end.",
        "on_probabilities",
        "probabilities_as_logits",
        "tempered_probabilities",
    ),
    *one(
        "temperature",
        "softmax_first",
        "The probabilities are raised to the power of the temperature and treated as logits. Divide the logits by it.",
        "power",
    ),
    *one(
        "temperature",
        "logits_raised",
        "The logits are raised to a power: divide them by the temperature.",
        "logits_power",
    ),
    *one(
        "when",
        "temperature_last",
        "The filters look at the logits before the temperature: top-p then counts with other probabilities than those"
        f" that are drawn from. {ORDER}",
        "last",
    ),
    *one(
        "border",
        "p_before_k",
        "Top-p counts with the probabilities of all tokens, as if top-k had not been there. After top-k those that are"
        f" left have larger shares, and fewer of them reach p. {ORDER}",
        "p_then_k",
    ),
    *one("border", "k_ignored", f"The number k has no effect. {ORDER}", "k_ignored"),
    *one("border", "p_ignored", f"The share p has no effect. {ORDER}", "p_ignored"),
    *one("border", "filters_ignored", f"Neither k nor p has an effect. {ORDER}", "neither"),
    *one("border", "k_off_by_one", "Top-k keeps k - 1 tokens.", "k_one_less"),
    *one("border", "k_off_by_one", "Top-k keeps k + 1 tokens.", "k_one_more"),
    *one(
        "border",
        "crossing_token_dropped",
        "Top-p drops the token with which the sum reaches p: that one stays.",
        "p_crossing_out",
    ),
    *one(
        "border",
        "one_minus_p",
        "Top-p keeps the share 1 - p: from the likeliest on, what stays is to reach p.",
        "p_rest",
    ),
    *one(
        "border",
        "inverted",
        "Top-p removes the likeliest tokens and keeps the others: it is the other way round.",
        "p_tail",
    ),
    *one("border", "p_one_too_many", "Top-p keeps one token too many.", "p_one_more"),
    *one(
        "border",
        "single_threshold",
        "Which tokens top-p leaves is not decided by their sum: add up from the likeliest one on, until p is reached.",
        "p_threshold",
        "p_single",
        "p_share_of_best",
    ),
    *one(
        "border",
        "mask_not_scattered",
        "The mask of top-p belongs to the sorted tokens: bring it back to their places.",
        "p_not_scattered",
    ),
    *one("border", "smallest_kept", "Top-k keeps the smallest logits.", "smallest_k"),
    *one(
        "shares",
        "not_renormalised",
        "What is left does not sum to 1: the probabilities of the removed tokens are missing. Take the softmax after"
        " the"
        " filters, or divide by the sum.",
        "not_renormalised",
    ),
    *one(
        "shares", "uniform", "All tokens that are left get the same probability: their logits still count.", "uniform"
    ),
    *one(
        "shares",
        "softmax_twice",
        "The softmax is taken twice: its result is the probabilities already.",
        "softmax_twice",
    ),
    *one(
        "shares",
        "softmax_over_rows",
        "Your softmax runs over an axis of length 1, so that each token gets 1, and a removed one nan: it must run over"
        " the tokens, dim=-1.",
        "softmax_over_rows",
    ),
    *one(
        "shares",
        "zeros_in_softmax",
        "Removed tokens are 0 when the softmax is taken, and exp(0) is 1: they come back. They must be -inf there.",
        "softmax_of_zeros",
        "softmax_of_masked_shares",
    ),
    *one(
        "shares",
        "wrong_divisor",
        "What is left is not divided by its own sum.",
        "by_largest",
        "by_number",
        "kept_zeroed_again",
    ),
    *one("shares", "log_probabilities", "You return log-probabilities: softmax, not log_softmax.", "logs"),
    *one("shares", "logits_returned", "You return logits: the softmax at the end is missing.", "logits"),
    *one("shares", "exponentials", "The exponentials are not divided by their sum.", "exponentials"),
    *one("shares", "sigmoids", "You take sigmoids, which do not sum to 1: softmax.", "sigmoids"),
    *one(
        "shares",
        "temperature_lost",
        f"The softmax at the end is taken of the logits without the temperature. {ORDER}",
        "untempered",
    ),
    *one(
        "zero",
        "divides_by_zero",
        "Temperature 0 divides by zero and gives nan: treat it by itself. All probability goes to the best token.",
        "nan",
        "nan_everywhere",
        edge=True,
    ),
    *one(
        "zero",
        "divides_by_zero",
        "Temperature 0 divides by zero: treat it by itself. All probability goes to the best token.",
        "raises",
        edge=True,
    ),
    *one(
        "zero",
        "zero_gives_id",
        "For temperature 0 you return the id of the best token: return probabilities, 1 for it and 0 for all others.",
        "id",
        edge=True,
    ),
    *one(
        "zero",
        "zero_taken_for_one",
        "Temperature 0 does what temperature 1 does: all probability goes to the best token. (`temperature or 1`"
        " takes 0"
        " for False.)",
        "as_one",
        "plain",
        edge=True,
    ),
    *one(
        "zero",
        "zero_uniform",
        "Temperature 0 gives all tokens the same probability: it goes to the best one alone.",
        "uniform",
        edge=True,
    ),
    *one(
        "zero",
        "zero_gives_logits",
        "For temperature 0 you return logits: return probabilities, 1 for the best token and 0 for all others.",
        "hot_logit",
        "minus_inf",
        "zero_and_minus_inf",
        "logits",
        edge=True,
    ),
    *one("zero", "zero_gives_zeros", "For temperature 0 all is 0 in yours: the best token gets 1.", "zeros", edge=True),
    *one(
        "zero",
        "zero_gives_ids",
        "For temperature 0 you return whole numbers or bools: probabilities are floats.",
        "hot_ids",
        "bools",
        edge=True,
    ),
    *one(
        "zero", "zero_takes_worst", "For temperature 0 you take the worst token, argmin for argmax.", "worst", edge=True
    ),
    *one(
        "result",
        "sorted_result",
        "The probabilities are sorted: they stand at the places of their tokens.",
        "sorted",
    ),
    *one(
        "result",
        "only_the_kept",
        "You return the probabilities of those that are left alone: (vocab_size,), with 0 for all others.",
        "kept_only",
        "kept_sorted",
    ),
    *one("result", "id_returned", "You return the id of the best token: return the probabilities of all.", "id"),
    *one("result", "mask_returned", "You return which tokens are left: return their probabilities.", "mask"),
    *one("result", "complement", "You return 1 minus the probabilities.", "complement"),
    *one(
        "result",
        "values_and_ids",
        "You return sorted values and ids: return the probabilities at the places of their tokens.",
        "with_ids",
    ),
)


# ---------------------------------------------------------------- symptoms
def _vectors(seen: Seen) -> list[tuple[Probe, Tensor, Tensor]] | None:
    """The vectors side by side; None unless the reader always gave one of the right size."""
    found = []
    for probe, expected, given in seen:
        y = given.value
        if not probe.edge:
            if given.error is not None or not isinstance(y, Tensor) or y.shape != expected.value.shape:
                return None
            if not y.is_floating_point():
                return None
            found.append((probe, expected.value, y))
    return found


def _all_of(seen: Seen, holds: object) -> bool:
    found = _vectors(seen)
    return found is not None and all(holds(*item) for item in found)


def _right_but(seen: Seen, wrong: object) -> bool:
    found = [(wrong(*p.make()), same_outcome(e, g)) for p, e, g in seen]
    return all(right for w, right in found if not w) and not all(right for w, right in found if w)


SYMPTOMS = (
    CHANGES_INPUT,
    MORE_RESULTS,
    *KIND_SYMPTOMS,
    ONLY_SHAPE,
    Symptom(
        "zero_wrong",
        "In the cases tried here all is right but temperature 0, which puts all probability on the best token: 1 for it"
        " and 0 for all others.",
        lambda seen: _right_but(seen, lambda logits, t, k, p: t == 0),
    ),
    Symptom(
        "not_renormalised",
        "The right tokens are left, with probabilities in the right proportion, but their sum is not 1: divide by it.",
        lambda seen: (
            _all_of(seen, lambda _, x, y: float(y.sum()) > 0 and bool(close(y / y.sum(), x).all()))
            and not _all_of(seen, lambda _, x, y: bool(close(y, x).all()))
        ),
    ),
    Symptom(
        "temperature_wrong",
        "In the cases tried here all is right with temperature 1, and not with others. Divide the logits by it before"
        " anything else.",
        lambda seen: _right_but(seen, lambda logits, t, k, p: t not in (0, 1)),
    ),
    Symptom(
        "top_p_wrong",
        f"In the cases tried here all is right with p = 1, and not with less. {ORDER}",
        lambda seen: _right_but(seen, lambda logits, t, k, p: p < 1),
    ),
    Symptom(
        "top_k_wrong",
        f"In the cases tried here all is right where k lets all tokens pass, and not where it is smaller. {ORDER}",
        lambda seen: _right_but(seen, lambda logits, t, k, p: k < len(logits)),
    ),
    Symptom(
        "filters_wrong",
        f"In the cases tried here all is right without filters (k as large as the vocabulary, p = 1), and not with"
        f" them. {ORDER}",
        lambda seen: _right_but(seen, lambda logits, t, k, p: k < len(logits) or p < 1),
    ),
    Symptom(
        "shares_wrong",
        "The right tokens are left, but their probabilities are not the softmax of their logits over the temperature.",
        lambda seen: (
            _all_of(seen, lambda _, x, y: torch.equal(x > 0, y > 0))
            and not _all_of(seen, lambda _, x, y: bool(close(y, x).all()))
        ),
    ),
)


# ---------------------------------------------------------------- the probes
def _given(shares: list[float], t: float, k: int, p: float, *, shift: float = 0.0, edge: bool = False) -> Probe:
    says = f"logits = log of {shares}" + (f" + {shift:g}" if shift else "")
    return Probe(
        f"{says}, temperature {t:g}, k = {k}, p = {p:g}",
        lambda: (torch.tensor(shares).log() + shift, t, k, p),
        edge=edge,
    )


NEXT_PROBABILITIES = Exercise(
    name="decoding.next_probabilities",
    reference=lambda logits, t, k, p: decoding.next_probabilities(logits, t, k, p),
    results=(Result("probabilities", ("token",)),),
    probes=(
        _given([0.2, 0.5, 0.3], 1.0, 3, 1.0),
        _given([0.2, 0.5, 0.3], 0.5, 3, 1.0, shift=2.0),
        _given([0.3, 0.2, 0.5], 2.0, 3, 1.0, shift=1.0),
        _given([0.1, 0.4, 0.2, 0.3], 1.0, 2, 1.0),
        _given([0.1, 0.2, 0.4, 0.3], 1.0, 4, 0.6),
        _given([0.1, 0.4, 0.3, 0.2], 1.0, 2, 0.5),
        _given([0.1, 0.4, 0.3, 0.2], 1.0, 4, 0.35),
        _given([0.3, 0.5, 0.2], 0.5, 3, 0.6, shift=1.0),
        _given([0.12, 0.36, 0.22, 0.04, 0.26], 2.0, 4, 0.7, shift=3.0),
        _given([0.12, 0.3, 0.22, 0.1, 0.26], 0.7, 4, 0.65, shift=1.5),
        _given([0.3, 0.33, 0.37], 0.05, 3, 1.0),
        _given([0.2, 0.5, 0.3], 0.0, 3, 1.0, shift=1.0, edge=True),
        _given([0.1, 0.2, 0.3, 0.4], 0.0, 2, 0.5, shift=1.0, edge=True),
    ),
    mistakes=CHANCES_MISTAKES,
    compound=chances_wrongly,
    symptoms=SYMPTOMS,
    at_once=2,
)
