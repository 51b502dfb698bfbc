"""The exercise top_p_filter of lesson 10: the smallest set of the likeliest tokens that reaches p."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import decoding
from .decoding_filters import ONE_ROW, SYMPTOMS, _fill_mistakes, _filled, _number_kept, _right_but, _wide
from .decoding_parts import one
from .exercise import Exercise, Mistake, Probe, Result, Symptom

LITTLE = 1e-9
UNGUARDED = (
    *("first_out", "tail", "head_out", "head_out_with_p", "from_tail", "tail_until_p"),
    *("rolled", "rolled_reaches"),
)


# ---------------------------------------------------------------- the wrong implementation with switches
def _masses(logits: Tensor, sums: str) -> Tensor:
    """(batch, vocab_size), what is added up."""
    x = logits.double()
    return {
        "probabilities": lambda: x.softmax(-1),
        "logits": lambda: x,
        "log_probabilities": lambda: x.log_softmax(-1),
        "exponentials": lambda: x.exp(),
        "over_rows": lambda: x.softmax(0),
        "over_batch": lambda: x.flatten().softmax(0).view_as(x),
        "sigmoids": lambda: x.sigmoid(),
        "by_largest": lambda: (x - x.amax(-1, keepdim=True)).exp(),
        "shares": lambda: x / x.sum(-1, keepdim=True),
        "twice": lambda: x.softmax(-1).softmax(-1),
    }[sums]()


def _dropped_in_order(mass: Tensor, p: float, border: str) -> Tensor:
    """bool (batch, vocab_size), True at what goes; `mass` is sorted, the likeliest first."""
    through, before = mass.cumsum(-1), mass.cumsum(-1) - mass
    n, size = (before < p - LITTLE).sum(-1, keepdim=True), mass.shape[-1]
    place = torch.arange(size).expand_as(mass)
    tail = mass.flip(-1).cumsum(-1).flip(-1)  # its own mass and that of everything less likely
    return {
        "reaches": lambda: before >= p - LITTLE,
        "passes": lambda: before > p + LITTLE,
        "below": lambda: through > p + LITTLE,
        "strictly_below": lambda: through >= p - LITTLE,
        "one_more": lambda: place >= n + 1,
        "two_less": lambda: place >= n - 2,
        "everything": lambda: place < 0,
        "best_only": lambda: place > 0,
        "first_out": lambda: place == 0,
        "tail": lambda: place < n,
        "head_out": lambda: through < p - LITTLE,
        "head_out_with_p": lambda: through <= p + LITTLE,
        "rolled": lambda: (through > p + LITTLE).roll(1, -1),
        "rolled_reaches": lambda: (through >= p - LITTLE).roll(1, -1),
        "down": lambda: mass.cumsum(0) - mass >= p - LITTLE,
        "above_p": lambda: mass < p - LITTLE,
        "above_rest": lambda: mass < 1 - p,
        "share_of_best": lambda: mass < p * mass[:, :1],
        "share_of_tokens": lambda: place >= max(1, int(p * size)),
        "share_of_tokens_up": lambda: place >= -int(-p * size // 1),
        "rest": lambda: before >= 1 - p - LITTLE,
        "from_tail": lambda: tail - mass >= p - LITTLE,
        "from_tail_and_best": lambda: tail - mass >= p - LITTLE,
        "tail_until_p": lambda: tail > p + LITTLE,
        "tail_below_p": lambda: tail <= p + LITTLE,
        "tail_reaches_rest": lambda: tail < 1 - p - LITTLE if p < 1 else place < 0,
    }[border]()


def top_p_wrongly(
    logits: Tensor,
    p: float,
    *,
    sums: str = "probabilities",
    border: str = "reaches",
    order: str = "descending",
    place: str = "own",
    least: str = "one",
    scope: str = "row",
    fill: str = "minus_inf",
    kept: str = "logits",
    result: str = "filled",
) -> object:
    """Top-p with any of the ways to go wrong; without a switch it is right."""
    mass = _masses(logits, sums)
    by = {"descending": logits, "size": logits.abs(), "none": -torch.arange(logits.shape[-1]).expand_as(logits)}[order]
    order_of = by.argsort(dim=-1, descending=True, stable=True)
    if scope == "batch":
        flat = top_p_wrongly(logits.reshape(1, -1), p, sums=sums, border=border, order=order)
        drop = flat.view_as(logits).isneginf()
    elif scope == "columns":
        drop = top_p_wrongly(logits.T, p, sums=sums, border=border, order=order).isneginf().T
    else:
        order_of = order_of[:1].expand_as(logits) if scope == "first_order" else order_of
        drop = _dropped_in_order(mass.gather(-1, order_of), p, border)  # in that order
        if scope in ("first_row", "last_row", "all_rows", "any_row"):
            drop = {"first_row": drop[:1], "last_row": drop[-1:], "all_rows": drop.all(0), "any_row": drop.any(0)}[
                scope
            ]
            drop = drop.expand_as(logits)
        elif scope == "first_places":
            order_of = order_of[:1].expand_as(logits)
            drop = drop[:1].expand_as(logits)
        if least == "one":
            drop = drop & (torch.arange(logits.shape[-1]) > 0 if border not in UNGUARDED else True)
        elif least == "two":
            drop = drop & (torch.arange(logits.shape[-1]) > 1)
        drop = {
            "own": lambda: torch.zeros_like(drop).scatter(-1, order_of, drop),
            "sorted": lambda: drop,
            "gathered": lambda: drop.gather(-1, order_of),
            "flipped": lambda: drop.flip(-1),
        }[place]()
    return _filled(logits, drop, fill, kept, result)


# ---------------------------------------------------------------- the gallery
SET = (
    "Take the tokens from the likeliest on until their probabilities together reach p; the one with which they do stays"
    " as well."
)
NO_EFFECT = "Everything is kept: p has no effect. (Log-probabilities, which are negative, never add up to p.)"
BEST = "Only the likeliest token stays, whatever p is. (Do the masses that you add up sum to 1?)"
SORTED = "The mask belongs to the sorted tokens: scatter brings it back to their own places."

TOP_P_MISTAKES = (
    *one(
        "border",
        "crossing_token_dropped",
        "The token with which the sum passes p is dropped, so what is left has less than p: shift the mask by one, or"
        f" compare the sum before each token. {SET}",
        "below",
    ),
    *one(
        "border",
        "crossing_token_dropped",
        f"The token with which the sum reaches p is dropped, so what is left has less than p. {SET}",
        "strictly_below",
    ),
    *(
        Mistake(
            "crossing_token_dropped",
            "The token with which the sum reaches p is dropped, so what is left has less than p, or nothing is left."
            f" {SET}",
            switches={"border": border, "least": "none"},
            alone=True,
        )
        for border in ("below", "strictly_below")
    ),
    *(
        Mistake(
            "single_threshold",
            f"Each token is compared with a limit by itself: top-p is about the sum of the likeliest ones. {SET}",
            switches={"border": border, "least": "none"},
            alone=True,
        )
        for border in ("above_p", "above_rest")
    ),
    *one("border", "one_too_many", f"One token too many stays in each row. {SET}", "one_more"),
    *one("border", "everything_kept", f"{NO_EFFECT} {SET}", "everything"),
    *one("sums", "everything_kept", f"{NO_EFFECT} {SET}", "log_probabilities"),
    *one("border", "only_the_best", f"{BEST} {SET}", "best_only"),
    *one("sums", "only_the_best", f"{BEST} {SET}", "by_largest"),
    *one(
        "border",
        "inverted",
        f"The likeliest tokens go and the others stay: it is the other way round. {SET}",
        "tail",
        "head_out",
        "head_out_with_p",
    ),
    *one(
        "border",
        "shifted_round",
        "The likeliest token goes in yours: roll brings the last entry of the mask round to the front. After the shift"
        f" set column 0 to False. {SET}",
        "rolled",
        "rolled_reaches",
    ),
    *one(
        "border",
        "over_the_batch",
        "The sum runs down the rows: each row has its own set. Add up along the last axis.",
        "down",
    ),
    *one("border", "best_dropped", f"The likeliest token is dropped. {SET}", "first_out"),
    *one(
        "border",
        "single_threshold",
        "Each token is compared with a limit by itself: top-p is about the sum of the likeliest ones. " + SET,
        "above_p",
        "above_rest",
    ),
    *one(
        "border",
        "share_of_the_best",
        "You keep what has at least p times the probability of the best token (min-p): top-p is about the sum. " + SET,
        "share_of_best",
    ),
    *one(
        "border",
        "share_of_the_tokens",
        "You keep p times as many tokens as there are: p is a share of the probability, not of their number. " + SET,
        "share_of_tokens",
        "share_of_tokens_up",
    ),
    *one(
        "border",
        "one_minus_p",
        "The sum of what stays is compared with 1 - p (or, added up from the least likely token, the sum of what goes"
        " with"
        f" p). {SET}",
        "rest",
        "tail_below_p",
    ),
    *one(
        "border",
        "from_the_tail",
        "You add up from the least likely token, so that the tail stays. Sort descending (or compare with 1 - p).",
        "from_tail",
        "from_tail_and_best",
        "tail_until_p",
    ),
    *one(
        "border",
        "exact_sum_goes_on",
        "Where the sum reaches p exactly, one token too many stays in yours: it is enough to reach p (>=).",
        "passes",
        edge=True,
    ),
    *one(
        "least",
        "nothing_left",
        "With p = 0 nothing is left in yours: the likeliest token always stays.",
        "none",
        edge=True,
    ),
    *one("least", "two_at_least", "At least two tokens stay in each row: one is enough if it reaches p.", "two"),
    *one(
        "sums",
        "logits_added_up",
        f"You add up the logits: take the softmax first. {SET}",
        "logits",
        "shares",
    ),
    *one(
        "sums",
        "not_normalised",
        "What you add up does not sum to 1: exp alone is no softmax. Divide by the sum.",
        "exponentials",
    ),
    *one("sums", "not_normalised", "You add up sigmoids, which do not sum to 1: take the softmax.", "sigmoids"),
    *one("sums", "softmax_twice", "The softmax is taken twice, which makes the probabilities nearly equal.", "twice"),
    *one(
        "sums",
        "softmax_over_rows",
        "The softmax runs over the rows or over the whole batch: the probabilities of each row sum to 1, dim=-1.",
        "over_rows",
        "over_batch",
    ),
    *one(
        "order",
        "not_sorted",
        f"You add up in the order of the vocabulary: sort first, the likeliest token first. {SET}",
        "none",
    ),
    *one(
        "order",
        "sorted_by_size",
        "You sort by the size of the logits, whatever their sign: -3 is less likely than 1.",
        "size",
    ),
    *one(
        "place", "mask_not_scattered", f"{SORTED} Yours is right only where the tokens happen to be sorted.", "sorted"
    ),
    *one("place", "gathered", f"{SORTED} gather with the same indices does something else.", "gathered"),
    *one(
        "scope",
        "over_the_batch",
        "The tokens of all rows compete for p together: each row has its own set. Work along the last axis.",
        "batch",
    ),
    *one(
        "scope",
        "over_the_batch",
        "You sort and add up down the rows, so that the rows compete in each column: each row has its own set. Work"
        " along the last axis.",
        "columns",
    ),
    *one(
        "scope",
        "one_order_for_all",
        "All rows are added up in the order of the first row: each row has its own order.",
        "first_order",
    ),
    *one(
        "scope",
        "one_number_for_all",
        "As many tokens stay in every row as one row needs: each row has its own number.",
        "first_row",
        "last_row",
        "all_rows",
        "any_row",
    ),
    *one("scope", "same_places_in_all_rows", "The same places stay in every row, those of the first.", "first_places"),
    *_fill_mistakes(drops="The logits of the other tokens"),
)


# ---------------------------------------------------------------- what does not matter, and the probes
def _settled(args: tuple, value: object) -> object:
    """Which of several equally likely tokens stay does not matter, nor whether all of them do."""
    logits, p = args
    right = decoding.top_p_filter(logits, p)
    if len(logits.unique()) > 1 or not isinstance(value, Tensor) or value.shape != right.shape:
        return value
    kept, wanted = value.isfinite(), right.isfinite()
    number = (kept.sum(-1) == wanted.sum(-1)).all() or kept.all()
    same = (
        number and bool(torch.isneginf(value[~kept]).all()) and torch.equal(value[kept].to(logits.dtype), logits[kept])
    )
    return right if same else value


def _p(rows: list[list[float]], p: float, *, edge: bool = False) -> Probe:
    """Rows of probabilities."""
    return Probe(f"logits = log of {rows}, p = {p:g}", lambda: (torch.tensor(rows).log(), p), edge=edge)


TOP_P_FILTER = Exercise(
    name="decoding.top_p_filter",
    reference=lambda logits, p: decoding.top_p_filter(logits, p),
    results=(Result("logits", ("row", "token"), infinite=True),),
    settled=_settled,
    probes=(
        _p([[0.4, 0.3, 0.2, 0.1]], 0.8),
        _p([[0.08, 0.42, 0.16, 0.34]], 0.6),
        _p([[0.05, 0.85, 0.1]], 0.5),
        _p([[0.86, 0.08, 0.06], [0.3, 0.37, 0.33]], 0.6),
        _p([[0.24, 0.16, 0.6]], 1.0),
        Probe("logits [[0, 1, -1, -2]], p = 0.8", lambda: (torch.tensor([[0.0, 1.0, -1.0, -2.0]]), 0.8)),
        Probe("logits (3, 6), p = 0.75", lambda: (_wide(3, 6, 2), 0.75)),
        Probe("logits (2, 7), p = 0.9", lambda: (_wide(2, 7, 5, -3.0), 0.9)),
        _p([[0.2, 0.5, 0.3]], 0.0, edge=True),
        Probe("logits [[1, 1, 1, 1]], p = 0.5", lambda: (torch.ones(1, 4), 0.5), edge=True),
    ),
    mistakes=TOP_P_MISTAKES,
    compound=top_p_wrongly,
    symptoms=(
        *SYMPTOMS,
        Symptom(
            "exact_sum_goes_on",
            "In the cases tried here all is right save where the sum reaches p exactly: then nothing more is needed"
            " (>=, not >).",
            lambda seen: _right_but(seen, lambda p: len(p.make()[0].unique()) == 1, edges=True),
        ),
        Symptom(
            "nothing_left",
            "In the cases tried here all is right save for p = 0: the likeliest token always stays.",
            lambda seen: _right_but(seen, lambda p: p.make()[1] == 0, edges=True),
        ),
        Symptom(
            "wrong_for_p_one",
            "In the cases tried here all is right save for p = 1, where everything stays.",
            lambda seen: _right_but(seen, lambda p: p.make()[1] == 1, edges=True),
        ),
        ONE_ROW,
        Symptom("one_too_few", f"One token too few stays in each row. {SET}", lambda seen: _number_kept(seen, -1)),
        Symptom("one_too_many", f"One token too many stays in each row. {SET}", lambda seen: _number_kept(seen, 1)),
        Symptom(
            "others_kept",
            "As many tokens stay in each row as should, but not the likeliest ones. " + SORTED,
            lambda seen: _number_kept(seen, 0),
        ),
    ),
    at_once=2,
)
