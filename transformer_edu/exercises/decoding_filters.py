"""The exercises top_k_filter and top_p_filter of lesson 10: which logits stay, and what becomes of the others."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import decoding
from .decoding_parts import one
from .exercise import Exercise, Mistake, Probe, Result, Symptom
from .outcome import same_outcome
from .symptoms import CHANGES_INPUT, KIND_SYMPTOMS, MORE_RESULTS, ONLY_SHAPE, Seen

LARGE = {
    "minus_100": -100.0,
    "minus_1e4": -1e4,
    "minus_1e5": -1e5,
    "minus_1e6": -1e6,
    "minus_1e8": -1e8,
    "minus_1e9": -1e9,
    "minus_1e10": -1e10,
    "lowest": torch.finfo(torch.float32).min,
}
OTHER = {"minus_inf": -torch.inf, "zero": 0.0, "tiny": 1e-10, "minus_1": -1.0, "nan": torch.nan, "inf": torch.inf}
FILLS = LARGE | OTHER


# ---------------------------------------------------------------- what both filters share
def _filled(logits: Tensor, drop: Tensor, fill: str, kept: str, result: str) -> object:
    """The logits (batch, vocab_size) without those to drop."""
    values = {
        "logits": lambda: logits,
        "probabilities": lambda: logits.softmax(-1),
        "log_probabilities": lambda: logits.log_softmax(-1),
        "ones": lambda: torch.ones_like(logits),
        "zeros": lambda: torch.zeros_like(logits),
        "nan": lambda: torch.full_like(logits, torch.nan),
        "renormalised": lambda: logits.masked_fill(drop, -torch.inf).softmax(-1),
        "zero_lost": lambda: logits.masked_fill(logits == 0, -torch.inf),
        "renormalised_logs": lambda: logits.masked_fill(drop, -torch.inf).log_softmax(-1),
    }[kept]()
    filled = values.masked_fill(drop, FILLS[fill])
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    n = int((~drop).sum(-1).max())
    if result == "in_place":
        logits.copy_(filled)
        return logits
    return {
        "filled": lambda: filled,
        "sorted": lambda: filled.gather(-1, order),
        "ascending": lambda: filled.gather(-1, order).flip(-1),
        "kept_only": lambda: ordered[:, :n],
        "kept_flat": lambda: logits[~drop],
        "in_reading_order": lambda: logits.gather(-1, order[:, :n].sort(-1).values),
        "ids": lambda: order[:, :n],
        "kept_and_ids": lambda: (ordered[:, :n], order[:, :n]),
        "mask": lambda: ~drop,
        "drop_mask": lambda: drop,
        "first_row": lambda: filled[0],
    }[result]()


SHAPE = "Keep the shape (batch, vocab_size): the place of a logit says which token it belongs to."


CHANGED = "the logits that were given are changed: work on a copy (masked_fill without the underscore, or clone)."


def _fill_mistakes(*, drops: str) -> tuple:
    """`drops` says which logits are to become -inf."""
    return (
        *one(
            "fill",
            "zero_for_minus_inf",
            f"{drops} become 0 in yours. For a logit 0 is an ordinary number, larger than any negative one, and"
            " exp(0) is"
            " 1: only -inf has no probability.",
            "zero",
            "tiny",
        ),
        *one(
            "fill",
            "large_for_minus_inf",
            f"{drops} become a large negative number in yours: write -inf (-torch.inf), which is below every logit.",
            *LARGE,
        ),
        *one("fill", "wrong_fill", f"{drops} become -1 in yours: write -inf.", "minus_1"),
        *one(
            "fill", "nan_for_minus_inf", f"{drops} become nan in yours, as 0 * inf is: use masked_fill or where.", "nan"
        ),
        *one(
            "fill",
            "inf_for_minus_inf",
            f"{drops} become +inf in yours, which makes them certain: the sign is missing.",
            "inf",
        ),
        *(
            Mistake(
                "probabilities_returned",
                "You return probabilities: return the logits as they are, and -inf for the others. The softmax comes"
                " later.",
                switches={"kept": kept} | ({"fill": "zero"} if fill == "zero" else {}),
            )
            for kept in ("probabilities", "renormalised")
            for fill in ("zero", "minus_inf")
        ),
        *one(
            "kept",
            "nan_for_minus_inf",
            "What is kept becomes nan in yours: 0 * -inf is nan, so -inf cannot be multiplied in. Use masked_fill or"
            " where.",
            "nan",
        ),
        *one(
            "kept",
            "log_probabilities_returned",
            "What is kept comes as log-probabilities: return the logits as they are.",
            "log_probabilities",
            "renormalised_logs",
        ),
        *one(
            "kept",
            "zero_taken_for_removed",
            "A logit that is 0 goes in yours although it should stay: after a product with a mask, 0 no longer says"
            " what was removed. Use masked_fill or where.",
            "zero_lost",
        ),
        *one("kept", "mask_for_logits", "What is kept comes as 1: return the logits as they are.", "ones"),
        *one(
            "kept",
            "additive_mask",
            "What is kept comes as 0: that is a mask to be added to the logits. Return the logits themselves.",
            "zeros",
        ),
        Mistake(
            "in_place",
            f"The numbers are right, but {CHANGED}",
            switches={"result": "in_place"},
            beside=CHANGED[0].upper() + CHANGED[1:],
        ),
        *one(
            "result",
            "sorted_result",
            f"Your logits are sorted, and no longer stand at the places of their tokens. {SHAPE}",
            "sorted",
            "ascending",
        ),
        *one(
            "result",
            "only_the_kept",
            f"You return only the logits that stay. {SHAPE} The others become -inf.",
            "kept_only",
            "kept_flat",
            "in_reading_order",
        ),
        *one(
            "result",
            "ids_returned",
            "You return the ids of the tokens that stay: return logits, (batch, vocab_size).",
            "ids",
        ),
        *one(
            "result",
            "values_and_ids",
            f"You return what topk or sort gives, values and ids. {SHAPE}",
            "kept_and_ids",
        ),
        *one("result", "mask_returned", "You return the mask: apply it to the logits.", "mask", "drop_mask"),
        *one("result", "first_row_only", f"You return the first row alone. {SHAPE}", "first_row"),
    )


def _some_wrong(seen: Seen) -> bool:
    """Whether an ordinary probe is wrong."""
    return not all(same_outcome(e, g) for p, e, g in seen if not p.edge)


def _fill_symptom(seen: Seen) -> bool:
    """Right where the reference keeps a logit, finite where it does not, and nothing else is wrong."""
    for probe, expected, given in seen:
        y = given.value
        if probe.edge:
            continue
        if given.error is not None or not isinstance(y, Tensor) or y.shape != expected.value.shape:
            return False
        kept = expected.value.isfinite()
        if not torch.equal(y[kept], expected.value[kept]):
            return False
        if (y == probe.make()[0])[~kept].any():  # a logit too many, and no filling
            return False
    return _some_wrong(seen)


def _right_but(seen: Seen, wrong: object, *, edges: bool = False) -> bool:
    """Whether all probes for which `wrong` does not hold are right, and one at least of the others is not."""
    found = [(wrong(p), same_outcome(e, g)) for p, e, g in seen if edges or not p.edge]
    return all(right for w, right in found if not w) and not all(right for w, right in found if w)


def _number_kept(seen: Seen, by: int) -> bool:
    """Whether each row keeps the reader's own logits, `by` more than it should (less, if negative)."""
    for probe, expected, given in seen:
        y = given.value
        if probe.edge:
            continue
        if given.error is not None or not isinstance(y, Tensor) or y.shape != expected.value.shape:
            return False
        logits = probe.make()[0]
        kept, right = y.isfinite(), expected.value.isfinite()
        if not torch.equal(y[kept], logits[kept]) or not torch.isneginf(y[~kept]).all():
            return False
        wanted = (right.sum(-1) + by).clamp(0, y.shape[-1])
        if not torch.equal(kept.sum(-1), wanted):
            return False
    return _some_wrong(seen)


ONE_ROW = Symptom(
    "rows_mixed",
    "In the cases tried here one row alone is right, and several rows are not. Each row has its own order and its own"
    " limit: work along the last axis, and keep that axis where rows are compared (keepdim=True).",
    lambda seen: _right_but(seen, lambda probe: len(probe.make()[0]) > 1),
)
OTHER_FILL = Symptom(
    "wrong_fill",
    "The right logits are kept, and the others are not -inf: -torch.inf is the logit of what can never be drawn.",
    _fill_symptom,
)
SYMPTOMS = (CHANGES_INPUT, MORE_RESULTS, *KIND_SYMPTOMS, ONLY_SHAPE, OTHER_FILL)


# ---------------------------------------------------------------- top-k
def _k_dropped(logits: Tensor, k: int, count: str, scope: str, keep: str, compare: str) -> Tensor:
    """bool (batch, vocab_size), True at what goes."""
    size = logits.shape[-1]
    ranked = {"largest": logits, "smallest": -logits, "size": logits.abs(), "inverted": logits}[keep]
    n = {
        "one_less": k - 1,
        "one_less_of_several": max(k - 1, 1),
        "one_more": k + 1,
        "one": 1,
        "all": size,
        "others": size - k,
        "twice": 2 * k,
        "from_below": max(size - k + 1, 0),
    }.get(count, k)
    if count == "distinct":
        levels = [row.unique().flip(0) for row in ranked]
        limit = torch.stack([level[min(k, len(level)) - 1] for level in levels])[:, None]  # (batch, 1)
        return ranked < limit
    if scope == "places":
        drop = (torch.arange(size) >= n).expand_as(logits)
    elif scope == "last_places":
        drop = (torch.arange(size) < size - n).expand_as(logits)
    elif scope == "columns":
        drop = ranked.argsort(0, descending=True).argsort(0) >= n
    elif scope == "batch":
        drop = (ranked.flatten().argsort(descending=True).argsort() >= n).view_as(logits)
    elif scope == "one_argsort":
        drop = ranked.argsort(-1, descending=True) >= n
    elif scope in ("first_row", "last_row", "lowest", "highest"):
        limits = ranked.sort(-1, descending=True).values[:, min(max(n, 1), size) - 1]  # (batch,)
        limit = {"first_row": limits[0], "last_row": limits[-1], "lowest": limits.min(), "highest": limits.max()}[scope]
        drop = ranked < limit
    elif scope == "above_k":
        drop = logits < k
    elif scope == "union":
        drop = (ranked.argsort(-1, descending=True).argsort(-1) >= n).all(0).expand_as(logits)
    elif scope == "first_rows_places":
        drop = (ranked.argsort(-1, descending=True).argsort(-1) >= n)[:1].expand_as(logits)
    elif compare == "limit":  # all that tie with it stay, or all go
        order = ranked.sort(dim=-1, descending=True).values
        limit = order[:, min(max(k if count == "one_less" else n, 1), size) - 1, None]  # (batch, 1)
        drop = ranked <= limit if count == "one_less" else ranked < limit
    else:
        drop = ranked.argsort(dim=-1, descending=True, stable=True).argsort(-1) >= n
    return ~drop if keep == "inverted" else drop


def top_k_wrongly(
    logits: Tensor,
    k: int,
    *,
    count: str = "k",
    scope: str = "row",
    keep: str = "largest",
    large_k: str = "all",
    fill: str = "minus_inf",
    kept: str = "logits",
    result: str = "filled",
    compare: str = "rank",
    clip: str = "never",
) -> object:
    """Top-k with any of the ways to go wrong; without a switch, or with the last two alone, it is right."""
    if clip == "first":
        k = min(k, logits.shape[-1])
    if large_k == "topk":
        logits.topk(k)
    elif large_k == "index":
        logits.sort(-1, descending=True).values[:, k - 1]
    elif large_k == "kthvalue":
        logits.kthvalue(logits.shape[-1] - k + 1)
    elif large_k == "nothing" and k > logits.shape[-1]:
        return torch.full_like(logits, -torch.inf)
    return _filled(logits, _k_dropped(logits, k, count, scope, keep, compare), fill, kept, result)


EACH_ROW = "Each row has its own limit, its k-th largest logit."
TOP_K_MISTAKES = (
    *one(
        "count",
        "one_too_few",
        "You keep k - 1 logits of each row: the k-th largest itself belongs to them, so compare with < and not <= (or"
        " count from 0 to k - 1).",
        "one_less",
        "one_less_of_several",
    ),
    *one("count", "one_too_many", "You keep k + 1 logits of each row. The k-th largest is at place k - 1.", "one_more"),
    *one(
        "count",
        "counted_from_below",
        "You keep all but the k - 1 smallest logits of each row: sort goes upwards, and so does kthvalue, so that yours"
        " is the k-th smallest. The k-th largest is at place -k, or at place k - 1 with descending=True.",
        "from_below",
    ),
    *one("count", "only_the_best", "You keep one logit of each row, whatever k is.", "one"),
    *one("count", "everything_kept", "Everything is kept: k has no effect.", "all"),
    *one("count", "k_removed", "You remove k logits of each row: keep k.", "others"),
    *one("count", "twice_as_many", "You keep 2k logits of each row.", "twice"),
    *one(
        "count",
        "equal_ones_counted_once",
        "Equal logits are counted once in yours, so more than they and k - 1 others stay: the k largest entries are"
        " meant,"
        " not the k largest different values.",
        "distinct",
        edge=True,
    ),
    *one(
        "scope",
        "over_the_batch",
        f"The k largest logits of the whole batch stay, and rows compete with each other. {EACH_ROW}",
        "batch",
    ),
    *one(
        "scope",
        "over_the_batch",
        f"You look for the k largest in each column. {EACH_ROW} Work along the last axis.",
        "columns",
    ),
    *one(
        "scope",
        "one_limit_for_all",
        f"All rows are compared with the limit of one row. {EACH_ROW} values[:, -1:] keeps the axis that is needed.",
        "first_row",
        "last_row",
        "lowest",
        "highest",
    ),
    *one(
        "scope",
        "same_places_in_all_rows",
        "The same places stay in every row: those of one row, or of all together. Each row has its own largest logits.",
        "first_rows_places",
        "union",
    ),
    *one(
        "scope",
        "first_places",
        "You keep the first k tokens of the vocabulary: those with the largest logits are meant.",
        "places",
    ),
    *one(
        "scope",
        "first_places",
        "You keep the last k tokens of the vocabulary: those with the largest logits are meant.",
        "last_places",
    ),
    *one(
        "scope",
        "order_taken_for_rank",
        "One argsort gives the places in the order of their logits, not the rank of each place. A second argsort"
        " turns the"
        " one into the other, or scatter writes to the places.",
        "one_argsort",
    ),
    *one("scope", "compared_with_k", "Logits are compared with the number k itself: k says how many stay.", "above_k"),
    *one("keep", "smallest_kept", "You keep the k smallest logits: sort descending, or topk.", "smallest"),
    *one("keep", "largest_size", "You keep the logits of the largest size: -3 is small, whatever its size.", "size"),
    *one(
        "keep",
        "inverted",
        "The k largest logits become -inf, and the others stay: it is the other way round.",
        "inverted",
    ),
    *one(
        "large_k",
        "k_too_large",
        "It fails where k is larger than the vocabulary: then everything stays. min(k, logits.shape[-1]) makes it fit.",
        "topk",
        "index",
        "kthvalue",
        edge=True,
    ),
    *one(
        "large_k",
        "k_too_large",
        "Where k is larger than the vocabulary nothing is left in yours: everything should stay.",
        "nothing",
        edge=True,
    ),
    *_fill_mistakes(drops="The logits that do not belong to the k largest"),
)


def _settled_ties(args: tuple, value: object) -> object:
    """Of entries that tie with the k-th all may stay: where enough of them do, let all stay."""
    logits, k = args
    if not isinstance(value, Tensor) or value.shape != logits.shape or not value.is_floating_point():
        return value
    limit = logits.topk(min(k, logits.shape[-1])).values[:, -1:]
    ties, more = logits == limit, logits > limit
    enough = ((value == logits) & ties).sum(-1, keepdim=True) >= k - more.sum(-1, keepdim=True)
    return torch.where(ties & enough, logits.to(value.dtype), value)


def _k(rows: list[list[float]], k: int, *, edge: bool = False) -> Probe:
    blind = ("clip",) if k <= len(rows[0]) else ()
    return Probe(f"logits {rows}, k = {k}", lambda: (torch.tensor(rows), k), edge=edge, blind_to=blind)


def _wide(b: int, v: int, seed: int, shift: float = 0.0) -> Tensor:
    """Logits with rows of different heights, so that rows which compete do not agree by chance."""
    x = torch.randn(b, v, generator=torch.Generator().manual_seed(seed)).mul(8).round() / 4
    return x + torch.arange(v) / 64 + torch.arange(b)[:, None] * 0.75 + shift


TOP_K_FILTER = Exercise(
    name="decoding.top_k_filter",
    reference=lambda logits, k: decoding.top_k_filter(logits, k),
    results=(Result("logits", ("row", "token"), infinite=True),),
    settled=_settled_ties,
    free=({"compare": "limit"}, {"clip": "first"}, {"compare": "limit", "clip": "first"}),
    probes=(
        _k([[0.5, 2.0, 1.5, -1.0]], 2),
        _k([[0.5, 2.0, 1.5, -1.0]], 1),
        _k([[-1.5, -3.5, -0.5, -4.0, -2.0]], 3),
        _k([[-0.5, -1.0, 0.0, -3.0]], 2),
        _k([[0.5, 2.0, 1.5, -1.0], [3.0, 0.0, 0.25, 2.5]], 2),
        Probe("logits (3, 6), k = 2", lambda: (_wide(3, 6, 0), 2)),
        Probe("logits (2, 7), all negative, k = 3", lambda: (_wide(2, 7, 1, -8.0), 3)),
        _k([[0.5, 2.0, 1.5]], 3, edge=True),
        _k([[0.5, 2.0, 1.5], [1.0, -2.0, 0.0]], 50, edge=True),
        _k([[1.0, 1.0, 0.0, 1.0, -1.0]], 2, edge=True),
    ),
    mistakes=TOP_K_MISTAKES,
    compound=top_k_wrongly,
    symptoms=(
        *SYMPTOMS,
        Symptom(
            "k_too_large",
            "In the cases tried here all is right as long as k is smaller than the vocabulary; where it is not,"
            " everything should stay.",
            lambda seen: _right_but(seen, lambda p: p.make()[1] >= p.make()[0].shape[-1], edges=True),
        ),
        Symptom(
            "ties_wrong",
            "In the cases tried here all is right where all logits differ; where several tie with the k-th, at least k"
            " must stay, and nothing that is smaller.",
            lambda seen: _right_but(seen, lambda p: len(p.make()[0].unique()) < p.make()[0].numel(), edges=True),
        ),
        ONE_ROW,
        Symptom("one_too_few", "You keep k - 1 entries of each row: keep k.", lambda seen: _number_kept(seen, -1)),
        Symptom("one_too_many", "You keep k + 1 entries of each row: keep k.", lambda seen: _number_kept(seen, 1)),
        Symptom(
            "others_kept",
            "You keep as many logits of each row as you should, but not the largest ones.",
            lambda seen: _number_kept(seen, 0),
        ),
    ),
    at_once=2,
)
