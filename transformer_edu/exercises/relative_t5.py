"""The exercise t5_bucket of lesson 07: halves, near and far, the logarithm, and the last bucket."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .. import relative
from .exercise import Exercise, Mistake, Probe, Result, Symptom, each
from .outcome import said
from .relative_symptoms import LIST_RESULT, NUMPY_IDS, results, right_only_where
from .symptoms import CHANGES_INPUT, MORE_RESULTS, ONLY_SHAPE, Seen


# ---------------------------------------------------------------- the wrong implementation with switches
def _side(rel: Tensor, both: bool, n: int, side: str) -> tuple[Tensor, Tensor]:
    """(what is added for the side of the query, the distance that is put into a bucket)"""
    zero = torch.zeros_like(rel)
    if both:
        after, before = (rel > 0).long(), (rel < 0).long()
        return {
            "sign": (before * n, rel.abs()),
            "past_offset": (before * n, rel.abs()),
            "zero_with_future": ((rel >= 0).long() * n, rel.abs()),
            "no_offset": (zero, rel.abs()),
            "half_offset": (after * (n // 2), rel.abs()),
            "whole_offset": (after * 2 * n, rel.abs()),
            "offset_one_more": (after * (n + 1), rel.abs()),
            "offset_one_less": (after * (n - 1), rel.abs()),
            "no_absolute": (after * n, -rel),
            "no_absolute_key": (after * n, rel),
            "past_lost": (after * n, rel.clamp(min=0)),
            "future_lost": (after * n, (-rel).clamp(min=0)),
            "future_plus_one": (after * n, (rel - 1).abs()),
        }.get(side, (after * n, rel.abs()))
    return {
        "sign": (zero, rel.clamp(min=0)),
        "causal_sign": (zero, rel.clamp(min=0)),
        "causal_absolute": (zero, rel.abs()),
        "causal_not_cut": (zero, -rel),
        "causal_minimum": (zero, -rel.clamp(min=0)),
        "causal_future_last": (zero, torch.where(rel > 0, 10**6, -rel)),
        "causal_raw": (zero, rel),
    }.get(side, (zero, (-rel).clamp(min=0)))


def _far(distance: Tensor, exact: int, n: int, limit: float, large: str) -> Tensor:
    """The bucket by the logarithm, before the last one caps it; float."""
    r, e = distance.double(), float(max(exact, 1))
    width, span = n - exact, math.log(limit / e)
    share = torch.log(r / e) / span
    part = {
        "round": lambda: (share * width).round(),
        "ceil": lambda: (share * width).ceil(),
        "share_cut": lambda: share.trunc() * width,
        "whole_ratio": lambda: torch.log((r // e).clamp(min=1)) / span * width,
        "plain_logs": lambda: r.log() / math.log(limit) * width,
        "limit_not_divided": lambda: torch.log(r / e) / math.log(limit) * width,
        "distance_not_divided": lambda: r.log() / span * width,
        "exact_not_added": lambda: (share * width).trunc() - exact,
        "times_all": lambda: share * n,
        "times_all_less_one": lambda: share * (n - 1),
        "times_one_less": lambda: share * (width - 1),
        "two_over_e": lambda: torch.log2(r / e) / span * width,
        "ten_over_e": lambda: torch.log10(r / e) / span * width,
        "e_over_two": lambda: torch.log(r / e) / math.log2(limit / e) * width,
        "e_over_ten": lambda: torch.log(r / e) / math.log10(limit / e) * width,
        "not_scaled": lambda: torch.log(r / e) * width,
        "logarithm_alone": lambda: torch.log(r / e),
        "logarithm_two_alone": lambda: torch.log2(r / e),
        "share_alone": lambda: share,
        "linear": lambda: (r - e) / (limit - e) * width,
        "linear_from_zero": lambda: r / limit * width,
        "less_exact": lambda: torch.log((r - e).clamp(min=1)) / math.log(limit - e) * width,
        "limit_less_exact": lambda: torch.log(r / e) / math.log(limit - e) * width,
        "root": lambda: ((r - e).clamp(min=0) / (limit - e)).sqrt() * width,
        "root_of_share": lambda: (r / limit).sqrt() * width,
        "inverted": lambda: torch.log(e / r) / span * width,
        "span_inverted": lambda: torch.log(r / e) / -span * width,
        "limit_by_buckets": lambda: torch.log(r / e) / math.log(limit / n) * width,
        "one_more": lambda: 1 + share * width,
        "log_plus_one": lambda: torch.log(r / e + 1) / math.log(limit / e + 1) * width,
    }.get(large, lambda: share * width)()
    return exact + (part if large == "not_cut" else part.long())


def t5_wrongly(
    rel: Tensor,
    bidirectional: bool = True,
    num_buckets: int = 32,
    max_distance: int = 128,
    *,
    mode: str = "right",
    halves: str = "right",
    side: str = "right",
    exact: str = "half",
    large: str = "right",
    cap: str = "right",
    join: str = "right",
    arguments: str = "right",
    result: str = "right",
) -> object:
    """The buckets with any of the ways to go wrong; without a switch it is right."""
    both = {"inverted": not bidirectional, "always": True, "never": False}.get(mode, bidirectional)
    num_buckets = 32 if arguments in ("buckets", "both") else num_buckets
    max_distance = 128 if arguments in ("distance", "both") else max_distance
    if arguments == "distance_halved" and both:
        max_distance //= 2
    n = num_buckets // 2 if both and halves != "whole" else num_buckets
    near_count = {
        "half": n // 2,
        "before": num_buckets // 2,
        "quarter": n // 4,
        "one_more": n // 2 + 1,
        "one_less": n // 2 - 1,
        "fixed": 16,
        "fixed_eight": 8,
    }[exact]
    offset, distance = _side(rel, both, n, side)
    far = _far(distance, near_count, n, max_distance, large)
    last = {"right": n - 1, "none": 10**9, "one_more": n, "whole": num_buckets - 1, "one_less": n - 2}[cap]
    far = far.clamp(max=last)
    near = distance < near_count
    from_one = _far(distance.clamp(min=1), near_count, n, max_distance, large).clamp(max=last)
    ids = {
        "right": lambda: torch.where(near, distance, far),
        "exchanged": lambda: torch.where(near, far, distance),
        "exchanged_from_one": lambda: torch.where(near, from_one, distance),
        "exchanged_greater": lambda: torch.where(distance > near_count, distance, far),
        "far_only": lambda: far,
        "far_from_one": lambda: from_one,
        "near_only": lambda: distance,
        "near_only_capped": lambda: distance.clamp(max=n - 1),
        "near_capped": lambda: distance.clamp(max=near_count),
        "near_capped_below": lambda: distance.clamp(max=near_count - 1),
        "far_zero": lambda: torch.where(near, distance, 0),
        "added": lambda: distance.clamp(max=near_count) + torch.where(near, 0, far),
        "all_last": lambda: torch.where(near, distance, n - 1),
    }[join]()
    ids = ids + offset
    if result in ("no_offset_far", "no_offset_near"):
        ids = torch.where(near == (result == "no_offset_near"), ids - offset, ids)
    return {
        "float": lambda: ids.float(),
        "one_hot": lambda: torch.nn.functional.one_hot(ids.clamp(0, num_buckets - 1), num_buckets),
        "one_more": lambda: ids + 1,
        "negative": lambda: -ids,
    }.get(result, lambda: ids)()


# ---------------------------------------------------------------- the gallery
NEAR = "e = n // 2 distances have a bucket each, with n the buckets of one side"
LOG = (
    "From e = n // 2 on, distance d has the bucket e + log(d / e) / log(max_distance / e) * (n - e), cut to a whole"
    " number, and at most n - 1."
)
SIGN = "rel is key minus query: negative for keys before the query, positive for keys after it."
CAUSAL = "In a causal model the distance is -rel, and 0 for keys after the query, which a mask hides anyway."


def _one(key: str, name: str, sentence: str, *values: str, edge: bool = False) -> tuple[Mistake, ...]:
    return each(name, sentence, *({key: value} for value in values), edge=edge)


MISTAKES = (
    *_one(
        "mode",
        "modes_exchanged",
        "The two modes are exchanged: with bidirectional=True your buckets are those of the causal mode and the other"
        " way round, so that a causal model spends half of its buckets on the future.",
        "inverted",
    ),
    *_one(
        "mode",
        "bidirectional_ignored",
        "The argument bidirectional has no effect: you always give half of the buckets to the keys after the query."
        " With False, all buckets are for the past.",
        "always",
    ),
    *_one(
        "mode",
        "bidirectional_ignored",
        "The argument bidirectional has no effect: you always treat the future as distance 0. With True, the second"
        " half of the buckets is for keys after the query.",
        "never",
    ),
    *_one(
        "cap",
        "no_last_bucket",
        "Distances of max_distance and more get ids past the last bucket: outside the table, or among those of the"
        " other side. Nothing is above n - 1, with n the buckets of one side.",
        "none",
        "whole",
    ),
    *_one(
        "cap",
        "last_bucket_off_by_one",
        "The far end is off by one: buckets are counted from 0, so with n buckets on one side the last is n - 1.",
        "one_more",
        "one_less",
    ),
    *_one(
        "halves",
        "buckets_not_halved",
        "In bidirectional mode each side gets half of the buckets: n = num_buckets // 2, for the offset and for"
        " everything after it. Yours gives all of them to each side, and ids of num_buckets and more come out.",
        "whole",
    ),
    Mistake(
        "buckets_not_halved",
        "In bidirectional mode each side gets half of the buckets: num_buckets // 2 is the offset, and it also is the n"
        " of everything after it. In yours, each side goes on counting with all of them.",
        switches={"halves": "whole", "side": "half_offset"},
    ),
    *_one(
        "arguments",
        "max_distance_halved",
        "In bidirectional mode you halve max_distance as well. Only the buckets are shared between the two sides: each"
        " side reaches as far as max_distance.",
        "distance_halved",
    ),
    *_one(
        "exact",
        "exact_before_halving",
        "Your e is half of all buckets: in bidirectional mode the near distances fill their whole side, and none are"
        " left for the logarithm. Halve num_buckets for the two sides first, then take e, half of what one side has.",
        "before",
    ),
    *_one(
        "exact",
        "too_few_exact",
        f"Too few distances have a bucket of their own: {NEAR}.",
        "quarter",
        "one_less",
    ),
    *_one(
        "exact",
        "too_many_exact",
        f"Too many distances have a bucket of their own: {NEAR}.",
        "one_more",
    ),
    *_one(
        "exact",
        "exact_fixed",
        f"The number of near distances does not follow from the number of buckets: {NEAR}.",
        "fixed_eight",
    ),
    *_one(
        "side",
        "sides_exchanged",
        "Past and future are exchanged: you read rel as query minus key. " + SIGN,
        "sign",
    ),
    *_one(
        "side",
        "sides_exchanged",
        "In bidirectional mode the second half of the buckets goes to the keys before the query. It is for those after"
        f" it, where rel > 0. {SIGN}",
        "past_offset",
    ),
    *_one(
        "side",
        "sides_exchanged",
        f"In causal mode you keep the keys after the query and take those before it for distance 0. {SIGN}",
        "causal_sign",
    ),
    *_one(
        "side",
        "zero_with_the_future",
        "Distance 0, the query itself, is counted with the future (rel >= 0), so that bucket 0 stays empty. The second"
        " half is for rel > 0.",
        "zero_with_future",
    ),
    *_one(
        "side",
        "no_offset",
        "In bidirectional mode keys before and after the query share their buckets: add n to the ids where rel > 0.",
        "no_offset",
    ),
    *_one(
        "side",
        "wrong_offset",
        "What you add for the keys after the query is not the number of buckets of one side, num_buckets // 2.",
        "half_offset",
        "whole_offset",
        "offset_one_more",
        "offset_one_less",
    ),
    *_one(
        "side",
        "no_absolute",
        "In bidirectional mode one side of the distances stays negative and comes out as it is: take the absolute value"
        " once the side is noted.",
        "no_absolute",
        "no_absolute_key",
    ),
    *_one(
        "side",
        "one_side_collapsed",
        "In bidirectional mode all keys before the query fall into bucket 0: their distance is cut to 0. Take the"
        " absolute value.",
        "past_lost",
    ),
    *_one(
        "side",
        "one_side_collapsed",
        "In bidirectional mode all keys after the query fall into one bucket: their distance is cut to 0, which belongs"
        " to the causal mode. Take the absolute value.",
        "future_lost",
    ),
    *_one(
        "side",
        "future_counts_from_zero",
        "In bidirectional mode the keys after the query are one bucket too low: distance 1 is the second bucket of its"
        " half, n + 1. The first one, n, stays empty.",
        "future_plus_one",
    ),
    *_one(
        "side",
        "causal_absolute",
        f"In causal mode keys after the query are treated like keys as far before it. {CAUSAL}",
        "causal_absolute",
    ),
    *_one(
        "side",
        "causal_not_cut",
        f"In causal mode keys after the query get negative ids. {CAUSAL}",
        "causal_not_cut",
    ),
    *_one(
        "side",
        "causal_not_cut",
        f"In causal mode the distance has the wrong sign or is cut on the wrong side: negative ids come out. {CAUSAL}",
        "causal_minimum",
        "causal_raw",
    ),
    *_one(
        "side",
        "causal_future_far",
        f"In causal mode keys after the query get the last bucket. {CAUSAL}",
        "causal_future_last",
    ),
    *_one(
        "large",
        "rounded",
        "The logarithmic part is rounded to the nearest number: cut it off towards 0 (.long(), int or floor).",
        "round",
    ),
    *_one(
        "large",
        "rounded_up",
        "The logarithmic part is rounded up: cut it off towards 0 (.long(), int or floor).",
        "ceil",
    ),
    *_one(
        "large",
        "cut_too_early",
        "You cut to a whole number too early, before multiplying by n - e, so that all far distances fall into one"
        f" bucket. {LOG}",
        "share_cut",
    ),
    *_one(
        "large",
        "cut_too_early",
        f"You divide d by e without a remainder (//): the ratio must keep its fraction. {LOG}",
        "whole_ratio",
    ),
    *_one(
        "large",
        "not_relative_to_exact",
        "The logarithms are those of d and of max_distance themselves: both are divided by e first, so that the far"
        f" buckets begin at distance e. {LOG}",
        "plain_logs",
    ),
    *_one(
        "large",
        "not_relative_to_exact",
        "The logarithm below the fraction line is that of max_distance itself: it must be that of max_distance / e, or"
        f" the last bucket is reached far too late. {LOG}",
        "limit_not_divided",
    ),
    *_one(
        "large",
        "not_relative_to_exact",
        "The logarithm above the fraction line is that of d itself: it must be that of d / e, which is 0 at distance e."
        f" {LOG}",
        "distance_not_divided",
    ),
    *_one(
        "large",
        "exact_not_added",
        f"The far buckets start again from 0: e is not added to the logarithmic part. {LOG}",
        "exact_not_added",
    ),
    *_one(
        "large",
        "wrong_factor",
        f"The logarithmic part is multiplied by another number than n - e, the buckets that are left. {LOG}",
        "times_all",
        "times_all_less_one",
        "times_one_less",
    ),
    *_one(
        "large",
        "two_bases",
        "Two different logarithms meet: the one above is to another base than the one below. Either base is right, as"
        " long as it is the same in both.",
        "two_over_e",
        "ten_over_e",
        "e_over_two",
        "e_over_ten",
    ),
    *_one(
        "large",
        "not_scaled",
        f"The logarithm of d / e is not divided by that of max_distance / e. {LOG}",
        "not_scaled",
    ),
    *_one(
        "large",
        "not_scaled",
        f"The logarithm is not stretched over the n - e buckets that are left. {LOG}",
        "logarithm_alone",
        "logarithm_two_alone",
        "share_alone",
    ),
    *_one(
        "large",
        "no_logarithm",
        f"The far buckets are all equally wide: the logarithm is missing. {LOG}",
        "linear",
        "linear_from_zero",
    ),
    *_one(
        "large",
        "root_instead",
        f"The far buckets grow with a root, not with a logarithm. {LOG}",
        "root",
        "root_of_share",
    ),
    *_one(
        "large",
        "exact_subtracted",
        f"You subtract e inside the logarithm: divide by it. {LOG}",
        "less_exact",
        "limit_less_exact",
    ),
    *_one(
        "large",
        "ratio_inverted",
        f"A ratio is upside down, so that its logarithm is negative and the far buckets count backwards. {LOG}",
        "inverted",
        "span_inverted",
    ),
    *_one(
        "large",
        "divided_by_buckets",
        f"You divide max_distance by the number of buckets of one side: divide by e. {LOG}",
        "limit_by_buckets",
    ),
    *_one("large", "far_off_by_one", f"All far buckets are too high by one. {LOG}", "one_more"),
    *_one("large", "one_inside_logarithm", f"There is a + 1 inside the logarithms. {LOG}", "log_plus_one"),
    *_one(
        "join",
        "near_and_far_exchanged",
        "Near and far are exchanged: below e = n // 2 the distance itself is the bucket, from there on the logarithm.",
        "exchanged",
        "exchanged_from_one",
        "exchanged_greater",
    ),
    *_one(
        "join",
        "logarithm_everywhere",
        "The logarithm is used for near distances too: below e = n // 2, the distance itself is the bucket.",
        "far_only",
        "far_from_one",
    ),
    *_one("join", "logarithm_missing", f"Every distance has a bucket of its own, without end. {LOG}", "near_only"),
    *_one(
        "join",
        "logarithm_missing",
        f"Every distance has a bucket of its own until the buckets are used up. {LOG}",
        "near_only_capped",
    ),
    *_one(
        "join",
        "far_in_one_bucket",
        f"All distances from e on share one bucket. {LOG}",
        "near_capped",
        "near_capped_below",
        "far_zero",
        "all_last",
    ),
    *_one("join", "far_added", f"From e on, e is added twice. {LOG}", "added"),
    *_one(
        "result",
        "offset_on_one_part",
        "The offset for the keys after the query is added to the near buckets or to the far ones alone: add it to"
        " both.",
        "no_offset_far",
        "no_offset_near",
    ),
    *_one(
        "result",
        "float_ids",
        "The buckets are floats: a table is indexed by whole numbers, .long() converts.",
        "float",
    ),
    *_one(
        "large",
        "not_cut",
        "The far buckets keep their fraction, and so the whole result is made of floats: cut to a whole number,"
        " .long().",
        "not_cut",
    ),
    *_one(
        "result",
        "one_hot",
        "You return a one-hot code of the buckets. Return the ids themselves: they index the rows of a table.",
        "one_hot",
    ),
    *_one("result", "off_by_one", "All ids are too high by one: buckets are counted from 0.", "one_more"),
    *_one("result", "negative", "All ids have the wrong sign.", "negative"),
    *_one(
        "arguments",
        "argument_ignored",
        "The argument num_buckets has no effect: you always count with 32.",
        "buckets",
        edge=True,
    ),
    *_one(
        "arguments",
        "argument_ignored",
        "The argument max_distance has no effect: you always go up to 128.",
        "distance",
        edge=True,
    ),
    *_one(
        "arguments",
        "argument_ignored",
        "The arguments num_buckets and max_distance have no effect: you always take 32 and 128.",
        "both",
        edge=True,
    ),
)


# ---------------------------------------------------------------- symptoms
def _right_where(seen: Seen, what: str) -> bool:
    found = results(seen, floats=False, edges=False)
    for probe, expected, mine in found or []:
        rel, both = probe.make()[:2]
        exact = 8 if both else 16
        right = expected == mine
        part = {
            "everywhere": torch.ones_like(right),
            "both": torch.full_like(right, both),
            "causal": torch.full_like(right, not both),
            "near": rel.abs() < exact,
            "far": rel.abs() >= exact,
            "past": rel <= 0,
            "future": rel >= 0,
            "within": rel.abs() < 120,
        }[what]
        if not right[part].all():
            return False
    return found is not None


def _fits_only(seen: Seen, axes: int) -> bool:
    """Right where rel has so many axes; an error, or a result of another shape, where it has not."""
    others = [(e.value, g) for p, e, g in seen if p.make()[0].dim() != axes]
    misfits = [g.error is not None or getattr(g.value, "shape", None) != right.shape for right, g in others]
    return all(misfits) and right_only_where(seen, lambda probe: probe.make()[0].dim() == axes)


SYMPTOMS = (
    CHANGES_INPUT,
    Symptom(
        "if_on_a_tensor",
        "Python's if, and min and max, decide once for a whole tensor, and a comparison has no one answer there. Entry"
        " by entry decides torch.where(d < e, near, far), with both computed everywhere; clamp takes the place of min"
        " and max.",
        lambda seen: all("Boolean value of Tensor" in said(g.error) for *_, g in seen),
    ),
    Symptom(
        "two_axes_only",
        "It works for a table of distances, (query, key), but rel may have any shape, such as a list. Two loops over"
        " shape[0] and shape[1] need two axes: torch operations work on each entry, whatever the shape.",
        lambda seen: _fits_only(seen, 2),
    ),
    Symptom(
        "one_axis_only",
        "It works for a list of distances, but rel may have any shape, such as (query, key), and the result has the"
        " same.",
        lambda seen: _fits_only(seen, 1),
    ),
    Symptom(
        "arguments_wrong",
        "With 32 buckets up to distance 128 all is right; with other values of num_buckets and max_distance it is not."
        " Every number in it follows from these two.",
        lambda seen: _right_where(seen, "everywhere"),
    ),
    Symptom(
        "last_bucket_wrong",
        "Only distances of about max_distance and more are wrong: they share the last bucket of their side, n - 1.",
        lambda seen: _right_where(seen, "within"),
    ),
    Symptom(
        "near_wrong",
        f"Far distances are right, near ones are not: {NEAR}, and the bucket is the distance itself.",
        lambda seen: _right_where(seen, "far"),
    ),
    Symptom(
        "far_wrong",
        f"Near distances, below e, are right; far ones are not. {LOG}",
        lambda seen: _right_where(seen, "near"),
    ),
    Symptom(
        "future_wrong",
        "Keys before the query are right, keys after it are not. In bidirectional mode their ids are those of the same"
        f" distance plus num_buckets // 2. {CAUSAL}",
        lambda seen: _right_where(seen, "past"),
    ),
    Symptom(
        "past_wrong",
        f"Keys after the query are right, keys before it are not. {SIGN}",
        lambda seen: _right_where(seen, "future"),
    ),
    Symptom(
        "causal_wrong",
        f"The bidirectional mode is right, the causal one is not: there all buckets are for the past. {CAUSAL}",
        lambda seen: _right_where(seen, "both"),
    ),
    Symptom(
        "bidirectional_wrong",
        "The causal mode is right, the bidirectional one is not: there each side has half of the buckets, n, which the"
        " formula goes on with; max_distance stays what it is, and the keys after the query have n added.",
        lambda seen: _right_where(seen, "causal"),
    ),
    MORE_RESULTS,
    ONLY_SHAPE,
    NUMPY_IDS,
    LIST_RESULT,
)


# ---------------------------------------------------------------- the probes: no distance at which rounding decides
SIDE = (1, 7, 8, 9, 12, 15, 17, 20, 25, 40, 50, 100, 127, 128, 500)
FAR = [*(-r for r in reversed(SIDE)), 0, *SIDE]


def _given(rel: list, bidirectional: bool, *rest: int, edge: bool = False) -> Probe:
    shown = rel if len(rel) < 8 else "[-500, -128, ..., 500]"
    more = f", {rest[0]} buckets up to distance {rest[1]}" if rest else ""
    says = f"rel = {shown}, bidirectional = {bidirectional}{more}"
    return Probe(says, lambda: (torch.tensor(rel), bidirectional, *rest), edge=edge)


T5_BUCKET = Exercise(
    name="relative.t5_bucket",
    reference=lambda rel, bidirectional=True, num_buckets=32, max_distance=128: relative.t5_bucket(
        rel, bidirectional, num_buckets, max_distance
    ),
    alternatives=(
        lambda rel, bidirectional=True, num_buckets=32, max_distance=128: relative.t5_bucket(
            rel, bidirectional, num_buckets, max_distance
        ).int(),
    ),
    results=(Result("buckets", ("entry",)),),
    probes=(
        _given([-7, -3, 0, 3, 7], True),
        _given([-15, -3, 0, 3], False),
        _given([[0, 1, 2, 3], [-1, 0, 1, 2]], True),
        _given(FAR, True),
        _given(FAR, False),
        _given([-30, -9, -7, -3, -2, 0, 2, 5], True, 8, 20, edge=True),
        _given([-30, -12, -7, -5, -2, 0, 2, 5], False, 8, 20, edge=True),
    ),
    mistakes=MISTAKES,
    compound=t5_wrongly,
    symptoms=SYMPTOMS,
    at_once=2,
)
