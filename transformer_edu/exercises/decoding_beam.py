"""The exercise beam_search of lesson 10: what competes with what, what is kept, and how it is scored."""

from __future__ import annotations

import dataclasses
import math

import torch

from .. import decoding
from .decoding_parts import LONGEST, Table, one, plain, table
from .exercise import Exercise, Mistake, Probe, Result, Symptom
from .outcome import same_outcome, same_value
from .symptoms import MORE_RESULTS, NOTHING, Seen


# ---------------------------------------------------------------- the wrong implementation with switches
@dataclasses.dataclass
class Candidate:
    """New tokens and what is known of them."""

    tokens: tuple[int, ...] = ()
    score: float = 0.0  # what ranks it: as a rule the sum of its log-probabilities
    last: float = 0.0  # the log-probability of its last token
    parent: int = 0
    ended: bool = False


WITH_LIVE = "_with_live"  # those that live when the search stops compete with those that have ended
WIDE_POOLS = ("not_pruned", "beam_each")


def _rows(step: Table, live: list[Candidate], start: int, feeds: str) -> list[list[float]]:
    """For each live hypothesis the log-probabilities of the next token."""
    ids = {
        "without_start": lambda: [[*c.tokens] for c in live],
        "last": lambda: [[*(c.tokens or (start,))][-1:] for c in live],
        "backwards": lambda: [[*c.tokens[::-1], start] for c in live],
        "start_last": lambda: [[*c.tokens, start] for c in live],
        "first_step": lambda: [[start] for _ in live],
        "best_prefix": lambda: [[start, *live[0].tokens] for _ in live],
    }.get(feeds, lambda: [[start, *c.tokens] for c in live])()
    rows = step(torch.tensor(ids))
    return (rows.log_softmax(0) if feeds == "normalised_over_hypotheses" else rows).tolist()


def _added(before: float, x: float, n: int, adds: str, alpha: float) -> float:
    """The score of n tokens: `before` without the last one, whose log-probability is x."""
    return {
        "logs": lambda: before + x,
        "last": lambda: x,
        "probabilities": lambda: before + math.exp(x),
        "product_of_logs": lambda: x if n == 1 else before * x,
        "halved": lambda: x if n == 1 else (before + x) / 2,
        "mean": lambda: (before * (n - 1) + x) / n,
        "divided_each_time": lambda: (before + x) / n,
        "quotient": lambda: (before + x) / n**alpha,
        "product": lambda: math.exp(x) * (before if n > 1 else 1),
        "first_missing": lambda: before + x if n > 1 else 1e-6 * x,
        "twice": lambda: 2 * before + x,
        "smallest": lambda: min(before, x),
        "difference": lambda: before - x,
    }[adds]()


def _children(
    live: list[Candidate], rows: list[list[float]], n: int, beam: int, adds: str, pool: str, alpha: float
) -> list[Candidate]:
    """The continuations that compete, the best first."""
    found: list[Candidate] = []
    for i, (c, row) in enumerate(zip(live, rows, strict=True)):
        new = [Candidate((*c.tokens, w), _added(c.score, x, n, adds, alpha), x, i) for w, x in enumerate(row)]
        new.sort(key=lambda child: -child.score)
        kept = {
            "all": len(new),
            "one_each": 1 if len(live) == beam else len(new),
            "one_each_from_the_second": 1 if n > 1 else len(new),
            "one_each_always": 1,
            "first_only": len(new) * (i == 0),
            "last_only": len(new) * (i == len(live) - 1),
            "not_pruned": len(new),
            "beam_each": beam,
        }[pool]
        found += new[:kept]
    return sorted(found, key=lambda child: -child.score)


def _divisor(n: int, ended: bool, max_length: int, alpha: float, norm: str) -> float:
    """What the sum of n log-probabilities is divided by."""
    return {
        "n": lambda: n**alpha,
        "none": lambda: 1.0,
        "times": lambda: n**-alpha,
        "with_start": lambda: (n + 1) ** alpha,
        "both_ends": lambda: (n + 2) ** alpha,
        "without_stop": lambda: max(n - ended, 1) ** alpha,
        "one_less": lambda: max(n - 1, 1) ** alpha,
        "limit": lambda: max_length**alpha,
        "wu": lambda: ((5 + n) / 6) ** alpha,
        "mean": lambda: float(n),
        "mean_with_start": lambda: float(n + 1),
        "product": lambda: n * alpha if alpha else 1.0,
        "alpha_to_the_n": lambda: alpha**n if alpha else 1.0,
        "root": lambda: n**0.5 if alpha else 1.0,
        "twice": lambda: n ** (2 * alpha),
        "only_ended": lambda: n**alpha if ended else 1.0,
        "only_cut": lambda: 1.0 if ended else n**alpha,
        "one_plus": lambda: 1 + n * alpha,
        "logarithm": lambda: 1 + alpha * math.log(n),
    }[norm]()


def _is_over(top_ended: bool, live: list[float], ended: list[float], beam: int, stops: str) -> bool:
    """Whether the search stops after a step; `live` and `ended` are the scores of the hypotheses of each kind."""
    return (
        not live
        or {
            "none_live": lambda: False,
            "first_end": lambda: bool(ended),
            "top_end": lambda: top_ended,
            "beam_ended": lambda: len(ended) >= beam,
            "beaten": lambda: bool(ended) and max(ended) >= max(live),
            "after_one": lambda: True,
        }[stops.removesuffix(WITH_LIVE)]()
    )


def search_wrongly(
    step: Table,
    start: int,
    stop: int,
    beam: int,
    max_length: int,
    alpha: float = 0.0,
    *,
    first: str = "one",
    feeds: str = "all",
    adds: str = "logs",
    pool: str = "all",
    order: str = "best",
    width: str = "beam",
    prefix: str = "own",
    ends: str = "kept",
    stops: str = "none_live",
    look: str = "double",
    cut: str = "kept",
    limit: str = "max_length",
    norm: str = "n",
    pick: str = "best",
    result: str = "right",
    score: str = "right",
) -> object:
    """Beam search with any of the ways to go wrong; without a switch it is right."""
    beam = {"beam": beam, "one": 1, "one_more": beam + 1, "double": 2 * beam, "one_less": max(beam - 1, 1)}[width]
    most = {"max_length": 0, "one_less": -1, "one_more": 1, "none": 2 * LONGEST}[limit] + max_length
    looked_at = {
        "double": 2 * beam,
        "beam": beam,
    }  # either is right: a hypothesis that ends uses up a place or does not
    live, ended = [Candidate()] * (beam if first == "copies" else 1), []

    def scored(c: Candidate) -> float:
        return c.score / _divisor(len(c.tokens), c.ended, max_length, alpha, norm)

    for n in range(1, most + 1):
        candidates = _children(live, _rows(step, live, start, feeds), n, beam, adds, pool, alpha)
        candidates = candidates[::-1] if order == "worst" else candidates
        before, live, here = live, [], []
        wide = pool in WIDE_POOLS and n <= max_length  # beyond it there would be too many
        for rank, c in enumerate(candidates if wide else candidates[: looked_at[look]]):
            if prefix != "own":
                i = min(rank if prefix == "rank" else len(live), len(before) - 1)
                c.tokens = (*before[i].tokens, c.tokens[-1])
            c.ended = c.tokens[-1] == stop
            is_over = n == most or (c.ended and ends != "extended")
            if pick == "worst_of_beam" and not c.ended and sum(not x.ended for x in here) == beam:
                continue
            if is_over and (c.ended or cut != "dropped") and not (c.ended and ends == "never"):
                here.append(c)
            if not is_over or (c.ended and ends == "both" and n < most):
                live += [c] if wide or len(live) < beam else []
        ended = here if ends == "lost" else ended + here
        if _is_over(candidates[0].ended, list(map(scored, live)), list(map(scored, ended)), beam, stops):
            ended += live if stops.endswith(WITH_LIVE) else []
            break
    if cut == "if_none_ended" and any(c.ended for c in ended):
        ended = [c for c in ended if c.ended]
    chosen = {
        "best": lambda: max(ended, key=scored),
        "worst": lambda: min(ended, key=scored),
        "worst_of_beam": lambda: min(ended, key=scored),
        "by_sum": lambda: max(ended, key=lambda c: c.score),
        "last": lambda: ended[-1],
    }[pick]()
    if result == "cut_at_stop" and stop in chosen.tokens:
        chosen.tokens = chosen.tokens[: chosen.tokens.index(stop) + 1]
    return _answer(chosen, _scored(chosen, scored(chosen), score), ended, start, stop, max_length, result)


def _scored(c: Candidate, right: float, score: str) -> float:
    """The score that is returned with the chosen hypothesis."""
    return {
        "right": lambda: right,
        "probability": lambda: math.exp(right),
        "negative": lambda: -right,
        "sum": lambda: c.score,
        "last": lambda: c.last,
        "perplexity": lambda: math.exp(min(-right, 700.0)),
    }[score]()


def _answer(
    c: Candidate, score: float, ended: list[Candidate], start: int, stop: int, max_length: int, result: str
) -> object:
    """What is returned of the chosen hypothesis."""
    tokens = list(c.tokens)
    return {
        "right": lambda: (tokens, score),
        "cut_at_stop": lambda: (tokens, score),
        "with_start": lambda: ([start, *tokens], score),
        "without_stop": lambda: (tokens[:-1] if tokens[-1] == stop else tokens, score),
        "without_last": lambda: (tokens[:-1], score),
        "without_first": lambda: (tokens[1:], score),
        "stop_added": lambda: (tokens if tokens[-1] == stop else [*tokens, stop], score),
        "stop_twice": lambda: ([*tokens, stop], score),
        "with_start_and_stop": lambda: ([start, *tokens] + [stop] * (tokens[-1] != stop), score),
        "filled": lambda: (tokens + [stop] * (max_length - len(tokens)), score),
        "backwards": lambda: (tokens[::-1], score),
        "exchanged": lambda: (score, tokens),
        "tokens_only": lambda: tokens,
        "score_only": lambda: score,
        "all": lambda: [(list(x.tokens), x.score) for x in ended],
        "last_token": lambda: (tokens[-1:], score),
    }[result]()


# ---------------------------------------------------------------- the gallery
NEGATIVE = "log-probabilities are negative"
COUNTS = "n is the number of new tokens, the stop included and the start not."
ENDS = "A hypothesis that has written the stop is put aside with its score: it neither grows nor takes part any more."
ALL = "The best is chosen at the end from all that have ended and from those that max_length cut off."
RETURNS = "Return (tokens without the start, with the stop; score)."
POOL = "All continuations of all hypotheses compete for the `beam` places."
GREEDY = (
    "Your result is that of a single hypothesis, as if beam were 1. Has the width an effect? If so, does the search"
    " start with `beam` equal hypotheses? They have equal continuations, and so the same tokens take every place: start"
    " with one, or give the others the score -inf. Or does every hypothesis get the log-probabilities of the first?"
    " Keep the `beam` best of all continuations."
)

EVERY = (
    *one("first", "one_hypothesis", GREEDY, "copies"),
    *one("width", "one_hypothesis", GREEDY, "one"),
    *one("feeds", "one_hypothesis", GREEDY, "best_prefix"),
    *one("pool", "one_hypothesis", GREEDY, "first_only", "one_each_always"),
    *one(
        "pool",
        "best_child_each",
        f"Every hypothesis keeps its own best continuation. {POOL} Two children of one parent may both be better than"
        " the child of another.",
        "one_each",
        "one_each_from_the_second",
    ),
    *one(
        "pool", "last_hypothesis_only", f"Only the continuations of the last hypothesis are kept. {POOL}", "last_only"
    ),
    *one(
        "pool",
        "not_pruned",
        f"More than `beam` hypotheses live on: the search looks at paths that a beam of this width has dropped. {POOL}",
        "not_pruned",
        "beam_each",
    ),
    *one(
        "width",
        "not_pruned",
        f"More than `beam` hypotheses live on: the search looks at paths that a beam of this width has dropped. {POOL}",
        "one_more",
        "double",
    ),
    *one("width", "wrong_width", f"Fewer than `beam` hypotheses live on. {POOL}", "one_less"),
    *one(
        "order",
        "worst_kept",
        f"The worst continuations are kept, not the best: {NEGATIVE}, and the best are the largest, those nearest to"
        " 0.",
        "worst",
    ),
    *one(
        "prefix",
        "parents_mixed_up",
        "The new tokens are put behind the wrong hypotheses: the best continuations may come from any of them, in any"
        " order, and each goes on with the tokens of its own parent.",
        "rank",
        "live_rank",
    ),
    *one(
        "adds",
        "prefix_score_lost",
        "Continuations are ranked by the log-probability of their last token: the score of what stands before it is"
        " thrown away. Add it.",
        "last",
    ),
    *one(
        "adds",
        "probabilities_added",
        "You add up probabilities. Those of a sequence are multiplied, and so their logarithms are added.",
        "probabilities",
    ),
    *one(
        "adds",
        "logs_multiplied",
        "You multiply log-probabilities. Probabilities are multiplied, and so their logarithms are added.",
        "product_of_logs",
    ),
    *one(
        "adds",
        "divided_on_the_way",
        "The score is divided in every step, and then goes on growing: what comes first counts less and less. Keep the"
        " sum, and divide by n ** alpha only to compare and to return.",
        "halved",
        "divided_each_time",
        "quotient",
    ),
    Mistake(
        "divided_on_the_way",
        "The sum is divided by n ** alpha in every step, and the quotient goes on growing: what comes first is divided"
        " again and again. Keep the sum, and divide by n ** alpha only to compare and to return.",
        switches={"adds": "quotient", "norm": "none"},
    ),
    *one(
        "adds",
        "probabilities_multiplied",
        "You multiply probabilities, and your score is such a product (which becomes 0 for a long hypothesis): the"
        " score is the sum of the log-probabilities, divided by n ** alpha.",
        "product",
    ),
    *one(
        "adds",
        "mean_instead_of_sum",
        "The score of a hypothesis is the mean of its log-probabilities before alpha comes in. Keep the sum: alpha = 0"
        " means the sum itself.",
        "mean",
    ),
    *one(
        "adds",
        "first_step_missing",
        "The log-probability of the first new token is missing from the scores.",
        "first_missing",
    ),
    *one("adds", "prefix_counted_twice", "The score of the prefix is counted twice: add only what is new.", "twice"),
    *one(
        "adds",
        "smallest_only",
        "The score is the smallest log-probability of a hypothesis: add them all up.",
        "smallest",
    ),
    *one(
        "adds",
        "logs_subtracted",
        f"The log-probabilities are subtracted: {NEGATIVE}, so the least likely tokens win. Add them.",
        "difference",
    ),
    *one(
        "ends",
        "continues_after_stop",
        f"Hypotheses go on after the stop like all others. {ENDS}",
        "extended",
    ),
    Mistake(
        "continues_after_stop",
        "Hypotheses go on after the stop like all others, and what comes behind it counts in their sums, although you"
        f" cut it off in the end. {ENDS}",
        switches={"ends": "extended", "result": "cut_at_stop"},
    ),
    *one(
        "ends",
        "continues_after_stop",
        f"A hypothesis that has ended is put aside, but it also lives on and takes a place in the beam. {ENDS}",
        "both",
    ),
    *one(
        "ends",
        "ended_forgotten",
        "Only what the last step of the search brings counts, the longest hypotheses: those that ended before are lost."
        f" Put each one aside when it ends. {ALL}",
        "lost",
    ),
    *one(
        "ends",
        "ended_never_kept",
        f"Hypotheses that write the stop are thrown away: only those that max_length cut off are left. {ALL}",
        "never",
    ),
    *one(
        "stops",
        "first_end_wins",
        "You return what ends first, or as soon as something ends. Others may still become better, above all where the"
        f" score is divided by their length. {ALL}",
        "first_end",
        f"first_end{WITH_LIVE}",
    ),
    *one(
        "stops",
        "best_end_wins",
        "You return as soon as the best continuation of a step is one that ends. With a score that is divided by the"
        f" length, a longer one may still become better. {ALL}",
        "top_end",
        f"top_end{WITH_LIVE}",
    ),
    *one(
        "stops",
        "stops_at_beam_ends",
        f"You return as soon as `beam` hypotheses have ended. Others may still become better. {ALL}",
        "beam_ended",
        f"beam_ended{WITH_LIVE}",
    ),
    *one(
        "stops",
        "stops_when_ahead",
        "You return as soon as an ended hypothesis has a better score than the live ones have now. Divided by a larger"
        f" length later, a live one may still overtake it. {ALL}",
        "beaten",
    ),
    *one("stops", "one_step_only", f"The search ends after its first step. {ALL}", "after_one"),
    *one(
        "cut",
        "cut_ones_ignored",
        "Hypotheses that max_length cuts off do not count in yours, though they may be better than all that"
        f" ended. {ALL}",
        "dropped",
    ),
    *one(
        "cut",
        "cut_only_if_none_ended",
        "Hypotheses that max_length cuts off count in yours only where none has ended, though they may be"
        " better than all"
        f" that have. {ALL}",
        "if_none_ended",
    ),
    *one("limit", "limit_one_less", "The search ends one token before max_length.", "one_less"),
    *one("limit", "limit_one_more", "Hypotheses get max_length + 1 tokens.", "one_more"),
    *one(
        "limit",
        "limit_missing",
        "Where no hypothesis ends, the search goes on without end: the model takes at most 24 tokens. Cut off at"
        " max_length"
        " new tokens.",
        "none",
    ),
    *one(
        "feeds",
        "normalised_over_hypotheses",
        "You normalise over the hypotheses, axis 0: what step gives are log-probabilities of the next token already,"
        " and nothing is to be normalised.",
        "normalised_over_hypotheses",
    ),
    *one(
        "feeds",
        "start_missing",
        "The start is missing from what step is given: in the first step there is nothing to look at. Each hypothesis"
        " is"
        " the start and its tokens.",
        "without_start",
    ),
    *one(
        "feeds",
        "prefix_not_fed",
        "After the first step, step is not given the whole hypothesis: the start, and then all tokens so far in their"
        " order.",
        "last",
        "backwards",
        "start_last",
    ),
    *one(
        "feeds",
        "prefix_not_fed",
        "The function step is given the start alone, in every step: it needs the start and all tokens so far.",
        "first_step",
    ),
    *one(
        "norm",
        "alpha_ignored",
        "The exponent alpha has no effect: divide the sum by n ** alpha. Sums favour short hypotheses, because"
        f" {NEGATIVE}.",
        "none",
    ),
    *one(
        "norm",
        "multiplied_by_length",
        f"The sum is multiplied by n ** alpha. Since {NEGATIVE}, that makes long hypotheses worse still: divide.",
        "times",
    ),
    *one(
        "norm",
        "start_counted",
        f"The length counts the start as well. {COUNTS}",
        "with_start",
    ),
    *one("norm", "start_counted", f"The length is too large by two. {COUNTS}", "both_ends"),
    *one("norm", "stop_not_counted", f"The length leaves out the stop. {COUNTS}", "without_stop"),
    *one("norm", "length_one_less", f"The length is too small by one. {COUNTS}", "one_less"),
    *one(
        "norm",
        "divided_by_limit",
        f"Every sum is divided by max_length ** alpha, however long the hypothesis is. {COUNTS}",
        "limit",
    ),
    *one(
        "norm",
        "other_penalty",
        "You divide by ((5 + n) / 6) ** alpha, the penalty of Wu et al. 2016. Here it is the plain n ** alpha.",
        "wu",
    ),
    *one(
        "norm",
        "always_mean",
        "The sum is divided by n whatever alpha is: n ** alpha is 1 for alpha = 0 and n for alpha = 1.",
        "mean",
    ),
    *one(
        "norm",
        "always_mean",
        "The sum is divided by n + 1 whatever alpha is: alpha is an exponent, n ** alpha, and the start is not"
        " counted.",
        "mean_with_start",
    ),
    *one("norm", "times_alpha", "You divide by n * alpha: alpha is an exponent, n ** alpha.", "product"),
    *one("norm", "alpha_to_the_n", "You divide by alpha ** n: it is n ** alpha.", "alpha_to_the_n"),
    *one("norm", "wrong_exponent", f"The exponent is not alpha: divide by n ** alpha. {COUNTS}", "root", "twice"),
    *one(
        "norm",
        "wrong_penalty",
        f"The length enters in another way than as n ** alpha. {COUNTS}",
        "one_plus",
        "logarithm",
    ),
    *one(
        "norm",
        "one_kind_divided",
        "Hypotheses that ended are divided by n ** alpha, those cut off are not: both kinds are scored alike.",
        "only_ended",
    ),
    *one(
        "norm",
        "one_kind_divided",
        "Hypotheses that were cut off are divided by n ** alpha, those that ended are not: both kinds are scored"
        " alike.",
        "only_cut",
    ),
    *one(
        "pick",
        "worst_returned",
        f"Of the hypotheses at the end the worst is returned: {NEGATIVE}, and the best is the largest.",
        "worst",
        "worst_of_beam",
    ),
    *one(
        "pick",
        "chosen_by_sum",
        "The best is chosen by its sum, and only then divided: choose by the divided score. " + ALL,
        "by_sum",
    ),
    *one("pick", "last_returned", f"The last hypothesis that ended, or was cut off, is returned. {ALL}", "last"),
    *one("result", "start_in_result", f"Your tokens begin with the start. {RETURNS}", "with_start"),
    *one(
        "result",
        "start_in_result",
        f"Your tokens begin with the start and always end with a stop. {RETURNS}",
        "with_start_and_stop",
    ),
    *one("result", "stop_missing", f"The stop is missing at the end of your tokens. {RETURNS}", "without_stop"),
    *one(
        "result",
        "last_token_missing",
        f"The last token is missing, whether it is a stop or not. {RETURNS}",
        "without_last",
    ),
    *one(
        "result",
        "first_token_missing",
        f"The first new token is missing: the start is not among them. {RETURNS}",
        "without_first",
    ),
    *one(
        "result",
        "stop_added",
        "You put a stop behind what max_length cut off, which the model has not written. Those tokens are"
        " returned as they"
        " are.",
        "stop_added",
    ),
    *one("result", "stop_added", f"You put one more stop behind the tokens. {RETURNS}", "stop_twice"),
    *one(
        "result",
        "filled_up",
        "Your tokens are filled up with stops to the length max_length: they end with the first stop.",
        "filled",
    ),
    *one("result", "backwards", "Your tokens are in reverse order.", "backwards"),
    *one("result", "last_token_only", f"You return the last token alone. {RETURNS}", "last_token"),
    *one("result", "exchanged", f"You return the score first and then the tokens. {RETURNS}", "exchanged"),
    *one("result", "no_score", f"You return the tokens without their score. {RETURNS}", "tokens_only"),
    *one("result", "no_tokens", f"You return the score without the tokens. {RETURNS}", "score_only"),
    *one(
        "score",
        "probability_returned",
        "Your score is a probability, exp of what is asked for: the score is the (divided) sum of log-probabilities.",
        "probability",
    ),
    *one(
        "score",
        "negative_score",
        "Your score has the wrong sign: the sum of log-probabilities is negative, a loss would be positive.",
        "negative",
    ),
    *one(
        "score",
        "score_not_divided",
        "The right hypothesis is chosen, but the score you return is its plain sum: return the one divided by"
        " n ** alpha.",
        "sum",
    ),
    *one(
        "score", "score_of_last_token", "The score you return is the log-probability of the last token alone.", "last"
    ),
    *one(
        "score",
        "perplexity_returned",
        "Your score is exp(-score), a perplexity: the score is the (divided) sum of log-probabilities.",
        "perplexity",
    ),
    *one("result", "all_returned", f"You return all hypotheses with their scores. {RETURNS}", "all"),
)
FREQUENT = {  # what may come together with another mistake
    *("one_hypothesis", "best_child_each", "parents_mixed_up", "prefix_score_lost", "continues_after_stop"),
    *("ended_forgotten", "first_end_wins", "best_end_wins", "stops_at_beam_ends", "cut_ones_ignored"),
    *("cut_only_if_none_ended", "limit_one_less", "limit_one_more", "alpha_ignored", "multiplied_by_length"),
    *("start_counted", "stop_not_counted", "always_mean", "other_penalty", "start_in_result", "stop_missing"),
    *("probability_returned", "negative_score", "score_not_divided", "no_score", "exchanged", "probabilities_added"),
}
BEAM_MISTAKES = tuple(dataclasses.replace(mistake, alone=mistake.name not in FREQUENT) for mistake in EVERY)


# ---------------------------------------------------------------- what does not matter in a result
LONG = 6  # tokens, each with a log-probability of about -130: their product is 0 in double precision


def _settled(args: tuple, value: object) -> object:
    """Tokens as a list of whole numbers and the score as a number, whatever they came as."""
    if not isinstance(value, list) or len(value) < 2:
        return value
    tokens, score = plain(value[0]), plain(value[1])
    if isinstance(score, list) and len(score) == 1:
        score = score[0]
    if args[4] == LONG and isinstance(score, float) and -math.inf < score < -1 and tokens == LONG_TOKENS:
        score = LONG_SCORE  # log-probabilities that do not sum to 1 may have been normalised
    return [tokens, score, *value[2:]]


# ---------------------------------------------------------------- symptoms
Answers = list[tuple[Probe, list, list]]  # probe, [right tokens, right score], the reader's


def _answers(seen: Seen) -> Answers | None:
    """The answers side by side; None unless the reader always gave tokens and a number."""
    found = []
    for probe, expected, given in seen:
        if probe.edge:
            continue
        mine = given.value
        if given.error is not None or not isinstance(mine, list) or len(mine) != 2 or not isinstance(mine[0], list):
            return None
        if not isinstance(mine[1], (int, float)) or not all(type(token) is int for token in mine[0]):
            return None
        found.append((probe, expected.value, mine))
    return found


def _behind_the_stop(seen: Seen) -> bool:
    """Tokens stand behind a stop somewhere."""
    return any(probe.make()[2] in mine[0][:-1] for probe, _, mine in _answers(seen) or [])


def _right_but(seen: Seen, wrong: object) -> bool:
    """Whether just those ordinary probes are wrong for which `wrong` holds: all of them or some, and no other."""
    found = [(wrong(p, e), same_outcome(e, g)) for p, e, g in seen if not p.edge]
    return all(right for w, right in found if not w) and not all(right for w, right in found if w)


def _nan_scores(seen: Seen) -> bool:
    found = _answers(seen)
    return found is not None and all(math.isnan(mine[1]) for _, _, mine in found)


def _tokens_right(seen: Seen) -> bool:
    found = _answers(seen)
    return found is not None and all(right[0] == mine[0] for _, right, mine in found)


def _score(args: tuple, tokens: list[int]) -> float | None:
    """The score that tokens have; None where no hypothesis can be so: behind its stop, or neither ended nor cut off."""
    step, start, stop, _, most, alpha = args
    n = len(tokens)
    if not 0 < n <= most or stop in tokens[:-1] or (tokens[-1] != stop and n < most):
        return None
    if not all(0 <= token < step.vocab_size for token in tokens):
        return None
    rows = [step(torch.tensor([[start, *tokens[:i]]]))[0].tolist() for i in range(n)]
    return sum(row[token] for row, token in zip(rows, tokens, strict=True)) / n**alpha


def _consistent(seen: Seen) -> bool:
    """Every answer is a hypothesis with the score that it has."""
    found = _answers(seen)
    return found is not None and all(same_value(_score(p.make(), mine[0]), mine[1]) for p, _, mine in found)


SYMPTOMS = (
    MORE_RESULTS,
    NOTHING,
    Symptom(
        "score_nan",
        f"Your score is nan. Do you take the logarithm of what step gives? These are log-probabilities already:"
        f" {NEGATIVE}, and have no logarithm.",
        _nan_scores,
    ),
    Symptom(
        "products_underflow",
        "In the cases tried here short hypotheses are right, and those whose log-probabilities sum to about -780 are"
        " not. Do you multiply probabilities? Their product is 0 there, as exp(-780) is: add log-probabilities. (And an"
        " empty place begins with -inf, not with some -100.)",
        lambda seen: (
            all(same_outcome(e, g) for p, e, g in seen if p.make()[4] != LONG)
            and not all(same_outcome(e, g) for p, e, g in seen)
        ),
    ),
    Symptom(
        "penalty_wrong",
        f"In the cases tried here it is right without a length penalty, and wrong with one. {COUNTS} {ALL}",
        lambda seen: _right_but(seen, lambda probe, _: probe.make()[5] > 0),
    ),
    Symptom(
        "score_wrong",
        "The tokens are right, the score is not: it is the sum of their log-probabilities, divided by n ** alpha."
        f" {COUNTS}",
        _tokens_right,
    ),
    Symptom(
        "cut_ones_wrong",
        "In the cases tried here all is right where the best hypothesis ends with the stop, and not where it is one"
        f" that max_length cuts off. {ALL}",
        lambda seen: _right_but(seen, lambda probe, right: right.value[0][-1] != probe.make()[2]),
    ),
    Symptom(
        "tokens_behind_the_stop",
        "Tokens stand behind a stop in your result: either a hypothesis goes on after its stop, or new tokens are put"
        f" behind the wrong hypothesis. {ENDS}",
        _behind_the_stop,
    ),
    Symptom(
        "better_one_missed",
        "The score fits the tokens that you return, but the search misses a better hypothesis or finds one that a beam"
        f" of this width does not. {POOL} {ENDS} {ALL}",
        _consistent,
    ),
)


# ---------------------------------------------------------------- the probes: the same for every way to count the beam
TRAP = {(): {3: 0.6, 4: 0.4}, (3,): {2: 0.35, 3: 0.31, 4: 0.34}, (4,): {2: 0.9, 3: 0.1}}
GREEDY_PATH = {(): {3: 0.55, 4: 0.45}, (3,): {3: 0.6, 4: 0.4}, (4,): {4: 0.95, 3: 0.05}}
LONGER = {(): {2: 0.5, 3: 0.45, 4: 0.05}, (3,): {4: 0.95, 2: 0.05}, (3, 4): {2: 0.95, 3: 0.05}}
LATER = {
    (): {3: 0.6, 2: 0.35, 4: 0.05},
    (3,): {4: 0.7, 3: 0.2, 2: 0.1},
    (3, 4): {3: 0.9, 2: 0.1},
    (3, 4, 3): {2: 0.9, 4: 0.1},
}
SECOND = {
    (): {3: 0.7, 4: 0.3},
    (3,): {4: 0.6, 2: 0.25, 3: 0.15},
    (3, 4): {3: 0.9, 2: 0.1},
    (3, 4, 3): {2: 0.95, 4: 0.05},
}
OVERTAKEN = {(): {3: 0.55, 2: 0.4, 4: 0.05}, (3,): {3: 0.28, 4: 0.27, 0: 0.25, 2: 0.2}, (3, 3): {2: 0.95, 4: 0.05}}
EARLY = {(): {2: 0.5, 3: 0.3, 4: 0.2}, (3,): {3: 0.6, 4: 0.4}, (4,): {3: 0.45, 4: 0.55}}
JOINT = {
    (): {3: 0.9, 4: 0.1},
    (3,): {3: 0.52, 4: 0.48},
    (3, 3): {2: 0.2, 3: 0.8},
    (3, 4): {2: 0.93, 3: 0.07},
    (4,): {2: 0.6, 3: 0.4},
}
NO_END = {(): {3: 0.58, 4: 0.42}, (3,): {3: 0.36, 4: 0.34, 0: 0.3}, (4,): {3: 0.95, 4: 0.05}, (4, 3): {4: 0.9, 3: 0.1}}
CUT_IS_BEST = {(): {3: 0.8, 2: 0.2}, (3,): {4: 0.7, 2: 0.3}, (3, 4): {3: 0.9, 2: 0.1}}
WIDE = {
    (): {3: 0.4, 4: 0.33, 0: 0.27},
    (3,): {3: 0.35, 4: 0.33, 0: 0.32},
    (4,): {4: 0.5, 3: 0.3, 0: 0.2},
    (0,): {4: 0.9, 3: 0.1},
}
DROPPED = {
    (): {3: 0.61, 4: 0.39},
    (3,): {3: 0.52, 4: 0.48},
    (3, 3): {3: 0.5, 4: 0.3, 0: 0.2},
    (3, 4): {3: 0.49, 4: 0.3, 0: 0.21},
    (4,): {3: 0.5, 4: 0.4, 0: 0.1},
    (4, 3): {3: 0.95, 4: 0.05},
}
AFTER_END = {(): {3: 0.7, 4: 0.3}, (3,): {2: 0.9, 4: 0.1}, (4,): {4: 0.6, 3: 0.4}}
NEVER = {3: 0.7, 4: 0.3}
SMALL = {3: math.exp(-130), 4: math.exp(-131)}
LONG_TABLE = {(): SMALL, (3,) * (LONG - 1): {3: math.exp(-131), 4: math.exp(-130)}}
LONG_TOKENS = [3] * (LONG - 1) + [4]
LONG_SCORE = -130.0 * LONG


def _given(
    says: str, chances: dict, beam: int, most: int, alpha: float, otherwise: dict | None = None, *, edge: bool = False
) -> Probe:
    """A table of probabilities; where nothing else is said, 3 and 4 follow with 0.7 and 0.3."""
    step = table(chances, otherwise or NEVER, rest=-2000.0 if otherwise else -14.0)
    return Probe(
        f"{says}; beam {beam}, max_length {most}, alpha {alpha:g}", lambda: (step, 1, 2, beam, most, alpha), edge=edge
    )


def _shown(chances: dict) -> str:
    """The first two steps of a table, in words."""
    first = ", ".join(f"{token}: {chance:g}" for token, chance in chances[()].items())
    return f"start 1, stop 2; the first token is {first}"


BEAM_SEARCH = Exercise(
    name="decoding.beam_search",
    reference=lambda step, start, stop, beam, most, alpha=0.0: decoding.beam_search(
        step, start, stop, beam, most, alpha
    ),
    results=(Result("token list"), Result("score")),
    settled=_settled,
    probes=(
        _given(_shown(GREEDY_PATH), GREEDY_PATH, 1, 2, 0.0),
        _given(_shown(TRAP), TRAP, 2, 3, 0.0),
        _given(_shown(NO_END), NO_END, 2, 3, 0.0),
        _given(_shown(LONGER), LONGER, 2, 4, 0.0),
        _given(_shown(LONGER), LONGER, 2, 4, 1.0),
        _given(_shown(LATER), LATER, 2, 5, 1.0),
        _given(_shown(SECOND), SECOND, 2, 4, 1.0),
        _given(_shown(OVERTAKEN), OVERTAKEN, 2, 4, 1.0),
        _given(_shown(EARLY), EARLY, 2, 4, 0.0),
        _given(_shown(JOINT), JOINT, 2, 3, 0.0),
        _given(_shown(CUT_IS_BEST), CUT_IS_BEST, 2, 3, 0.5),
        _given(_shown(AFTER_END), AFTER_END, 2, 4, 0.0),
        _given(_shown(WIDE), WIDE, 3, 2, 0.0),
        _given(_shown(DROPPED), DROPPED, 2, 3, 0.0),
        _given("each token has a log-probability of about -130", LONG_TABLE, 2, LONG, 0.0, SMALL, edge=True),
    ),
    mistakes=BEAM_MISTAKES,
    compound=search_wrongly,
    symptoms=SYMPTOMS,
    free=({"look": "beam"},),
    at_once=2,
)
