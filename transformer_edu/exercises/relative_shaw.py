"""The exercise shaw_index of lesson 07: where the queries stand, which way the distance counts, clip and offset."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import relative
from .exercise import Exercise, Mistake, Probe, Result, Symptom
from .relative_symptoms import LIST_RESULT, NUMPY_IDS, results, right_only_where
from .symptoms import MORE_RESULTS, ONLY_SHAPE, Seen


# ---------------------------------------------------------------- the wrong implementation with switches
def _distances(n_queries: int, n_keys: int, queries: str, distance: str) -> Tensor:
    """(query, key)"""
    start = {
        "right": n_keys - n_queries,
        "from_zero": 0,
        "late": n_keys - n_queries + 1,
        "early": n_keys - n_queries - 1,
        "twice": 2 * (n_keys - n_queries),
        "negative": n_queries - n_keys,
        "at_the_end": n_keys,
    }.get(queries, 0)
    i = torch.arange(start, start + n_queries)[:, None]
    if queries == "all_last":
        i = torch.full((n_queries, 1), n_keys - 1)
    if queries == "all_first":
        i = torch.full((n_queries, 1), n_keys - n_queries)
    if queries == "as_many_as_keys":
        i = torch.arange(n_keys)[:, None]
    j = torch.arange(n_queries if queries == "keys_cut" else n_keys)[None, :]
    if queries == "keys_cut":
        i = torch.arange(n_queries)[:, None]
    return {
        "right": lambda: j - i,
        "mirrored": lambda: i - j,
        "absolute": lambda: (j - i).abs(),
        "minus_absolute": lambda: -(j - i).abs(),
        "key_only": lambda: j + 0 * i,
        "query_only": lambda: i + 0 * j,
        "sum": lambda: i + j,
    }[distance]()


def shaw_wrongly(
    n_queries: int,
    n_keys: int,
    max_distance: int,
    *,
    queries: str = "right",
    distance: str = "right",
    clip: str = "right",
    result: str = "right",
) -> object:
    """The ids with any of the ways to go wrong; without a switch it is right."""
    rel, m = _distances(n_queries, n_keys, queries, distance), max_distance
    ids = {
        "right": lambda: rel.clamp(-m, m) + m,
        "none": lambda: rel + m,
        "none_no_offset": lambda: rel,
        "after_to_m": lambda: (rel + m).clamp(0, m),
        "after_to_2m_minus_1": lambda: (rel + m).clamp(0, 2 * m - 1),
        "after_from_minus_m": lambda: (rel + m).clamp(-m, m),
        "above_only": lambda: rel.clamp(max=m) + m,
        "below_only": lambda: rel.clamp(min=-m) + m,
        "no_offset": lambda: rel.clamp(-m, m),
        "one_less": lambda: rel.clamp(-(m - 1), m - 1) + m,
        "one_less_everywhere": lambda: rel.clamp(-(m - 1), m - 1) + m - 1,
        "one_more": lambda: rel.clamp(-(m + 1), m + 1) + m,
        "one_more_everywhere": lambda: rel.clamp(-(m + 1), m + 1) + m + 1,
        "lopsided": lambda: rel.clamp(-(m - 1), m) + m - 1,
        "half": lambda: rel.clamp(-(m // 2), m // 2) + m // 2,
        "sign_only": lambda: rel.sign() + m,
        "all_zero": lambda: 0 * rel,
        "all_middle": lambda: 0 * rel + m,
        "all_last": lambda: 0 * rel + 2 * m,
        "future_only": lambda: rel.clamp(0, m) + m,
        "future_only_no_offset": lambda: rel.clamp(0, m),
        "future_only_no_offset_2m": lambda: rel.clamp(0, 2 * m),
        "offset_one_more": lambda: rel.clamp(-m, m) + m + 1,
        "offset_one_less": lambda: rel.clamp(-m, m) + m - 1,
        "offset_2m": lambda: rel.clamp(-m, m) + 2 * m,
        "offset_length": lambda: rel.clamp(-m, m) + n_keys - 1,
        "offset_n_keys": lambda: rel.clamp(-m, m) + n_keys,
        "offset_subtracted": lambda: rel.clamp(-m, m) - m,
        "negative_wrapped": lambda: rel.clamp(-m, m) % (2 * m + 1),
        "modulo": lambda: (rel + m) % (2 * m + 1),
        "modulo_2m": lambda: (rel + m) % (2 * m) if m else rel,
        "twice_as_far": lambda: rel.clamp(-2 * m, 2 * m) + m,
        "twice_as_far_everywhere": lambda: rel.clamp(-2 * m, 2 * m) + 2 * m,
        "offset_shortest": lambda: rel - rel.min(),
        "zero_outside": lambda: torch.where(rel.abs() <= m, rel + m, 0),
        "middle_outside": lambda: torch.where(rel.abs() <= m, rel + m, m),
        "last_outside": lambda: torch.where(rel.abs() <= m, rel + m, 2 * m),
        "minus_one_outside": lambda: torch.where(rel.abs() <= m, rel + m, -1),
        "extra_outside": lambda: torch.where(rel.abs() <= m, rel + m, 2 * m + 1),
    }[clip]()
    return {
        "right": lambda: ids,
        "transposed": lambda: ids.T,
        "float": lambda: ids.float(),
        "lower": lambda: ids.tril(n_keys - n_queries),
        "lower_from_zero": lambda: ids.tril(),
        "one_hot": lambda: torch.nn.functional.one_hot(ids.clamp(0, 2 * m), 2 * m + 1),
        "flat": lambda: ids.flatten(),
        "first_row": lambda: ids[0],
        "reversed": lambda: ids.flip(0),
        "keys_reversed": lambda: ids.flip(1),
    }[result]()


# ---------------------------------------------------------------- the gallery
FREQUENT = {  # what may come together with two others
    *("none", "no_offset", "after_to_m", "mirrored", "absolute", "from_zero", "late", "early", "transposed", "float"),
}


def _one(key: str, name: str, sentence: str, *values: str) -> tuple[Mistake, ...]:
    return tuple(Mistake(name, sentence, switches={key: v}, rare=v not in FREQUENT) for v in values)


LAST = (
    "The queries are the last n_queries of n_keys positions: query i stands at n_keys - n_queries + i. The keys before"
    " are a cache, what was read earlier."
)
MIDDLE = (
    "With m = max_distance, clip the distance to -m ... m, then add m: ids run from 0 to 2m, with m for the query"
    " itself."
)

MISTAKES = (
    *_one(
        "clip",
        "no_clip",
        "Distances beyond m are not clipped: ids below 0 or above 2m come out, for which the table has no row (a"
        f" negative one silently takes a row from the end). {MIDDLE}",
        "none",
    ),
    *_one(
        "clip",
        "no_clip_no_offset",
        f"You return the distance itself, neither clipped nor moved: half of it is negative. {MIDDLE}",
        "none_no_offset",
    ),
    *_one(
        "clip",
        "clip_after_offset",
        "All keys after the query fall into one id, m, the query's own: you clip to 0 ... m after adding m (or to -m"
        " ... 0 before). After adding m the bounds are 0 and 2m, before it -m and m.",
        "after_to_m",
    ),
    *_one(
        "clip",
        "clip_after_offset",
        "You clip to -m ... m after adding m: the bounds belong to the distance, before m is added. After it they are 0"
        " and 2m.",
        "after_from_minus_m",
    ),
    *_one(
        "clip",
        "last_id_missing",
        "The largest id is 2m - 1: distance m falls together with m - 1. There are 2m + 1 distances from -m to m: the"
        " ids run from 0 to 2m.",
        "after_to_2m_minus_1",
    ),
    *_one(
        "clip",
        "clipped_above_only",
        f"Only distances above m are clipped: those below -m give negative ids. {MIDDLE}",
        "above_only",
    ),
    *_one(
        "clip",
        "clipped_below_only",
        f"Only distances below -m are clipped: those above m give ids past the end of the table. {MIDDLE}",
        "below_only",
    ),
    *_one(
        "clip",
        "no_offset",
        f"The distances are clipped, but m is not added: negative numbers are no rows of a table. {MIDDLE}",
        "no_offset",
    ),
    *_one(
        "clip",
        "clipped_one_too_early",
        f"You clip one step too early, at m - 1: distance m has an id of its own. {MIDDLE}",
        "one_less",
        "one_less_everywhere",
    ),
    *_one(
        "clip",
        "first_id_missing",
        "Your ids run from 0 to 2m - 1: distance -m falls together with -(m - 1). There are 2m + 1 distances from -m to"
        f" m. {MIDDLE}",
        "lopsided",
    ),
    *_one(
        "clip",
        "clipped_too_early",
        f"You clip long before m, at half of it or at 1. {MIDDLE}",
        "half",
        "sign_only",
    ),
    *_one(
        "clip",
        "all_ids_equal",
        f"All ids are the same: the distance has no influence (are the two bounds of the clip exchanged?). {MIDDLE}",
        "all_zero",
        "all_middle",
        "all_last",
    ),
    *_one(
        "clip",
        "clipped_one_too_late",
        f"You clip one step too late, at m + 1. {MIDDLE}",
        "one_more",
        "one_more_everywhere",
    ),
    *_one(
        "clip",
        "clipped_too_late",
        f"You clip at 2m, the last id, where the distance itself must stay within -m ... m. {MIDDLE}",
        "twice_as_far",
        "twice_as_far_everywhere",
    ),
    *_one(
        "clip",
        "past_collapsed",
        "All keys before the query get one id: distances below 0 are cut to 0. They are kept down to -m.",
        "future_only",
    ),
    *_one(
        "clip",
        "past_collapsed",
        "All keys before the query get the id 0: m is not added (or cancels, being added to both places), so that the"
        f" clip at 0 cuts the whole past off. {MIDDLE}",
        "future_only_no_offset",
        "future_only_no_offset_2m",
    ),
    *_one(
        "clip",
        "wrong_offset",
        f"Every id is off by one. {MIDDLE}",
        "offset_one_more",
        "offset_one_less",
    ),
    *_one(
        "clip",
        "wrong_offset",
        f"The distances are clipped as they should be, but what you add to them is not m. {MIDDLE}",
        "offset_2m",
        "offset_length",
        "offset_n_keys",
        "offset_subtracted",
    ),
    *_one(
        "clip",
        "offset_by_smallest",
        "The ids begin with 0 at the smallest distance that occurs, so that the same distance gets other ids in another"
        f" call. {MIDDLE}",
        "offset_shortest",
    ),
    *_one(
        "clip",
        "negative_wrapped",
        "Negative distances are wrapped around the end: the query itself gets id 0, and the key before it the last id."
        f" {MIDDLE}",
        "negative_wrapped",
    ),
    *_one(
        "clip",
        "wrapped_around",
        "Distances beyond m are wrapped around (%), so that a key far away looks like one on the other side. Clip them:"
        " all that is further than m counts as m.",
        "modulo",
        "modulo_2m",
    ),
    *_one(
        "clip",
        "far_replaced",
        "Distances beyond m are replaced by one fixed id. Clip them: what is further back than m counts as -m, id 0,"
        " and what is further ahead counts as m, id 2m.",
        "zero_outside",
        "middle_outside",
        "last_outside",
        "minus_one_outside",
        "extra_outside",
    ),
    *_one(
        "distance",
        "query_minus_key",
        "Your ids are mirrored: the distance counts query minus key. Here it is key minus query: keys before the query"
        " have ids below m.",
        "mirrored",
    ),
    *_one(
        "distance",
        "absolute_distance",
        "Keys before and after the query get the same id: the sign of the distance is lost.",
        "absolute",
        "minus_absolute",
    ),
    Mistake(
        "absolute_distance",
        "Keys before and after the query get the same id, how far away they are: the sign of the distance is lost, and"
        f" m is not added. {MIDDLE}",
        switches={"distance": "absolute", "clip": "no_offset"},
        rare=True,
    ),
    *_one(
        "distance",
        "position_instead_of_distance",
        "All queries get the same ids (or all keys do): the position itself is taken. The distance is key position"
        " minus query position.",
        "key_only",
        "query_only",
    ),
    *_one("distance", "added_positions", "You add the two positions. The distance is their difference.", "sum"),
    *_one(
        "queries",
        "queries_from_zero",
        "Your queries stand at positions 0, 1, ...: with a cache, the oldest key counts as the nearest (without one"
        f" that does not show). {LAST}",
        "from_zero",
    ),
    *_one(
        "queries",
        "queries_shifted",
        f"Your queries stand one position off. {LAST}",
        "late",
        "early",
    ),
    *_one(
        "queries",
        "queries_shifted",
        f"Your queries stand too far along. {LAST}",
        "at_the_end",
        "twice",
    ),
    *_one(
        "queries",
        "queries_shifted",
        f"Your queries stand before position 0: n_keys - n_queries has the wrong sign. {LAST}",
        "negative",
    ),
    *_one(
        "queries",
        "one_query_for_all",
        f"All your queries stand at one position, the last or the first of them. {LAST}",
        "all_last",
        "all_first",
    ),
    *_one(
        "queries",
        "square",
        "The result has a row for each key. It has a row for each of the n_queries queries and a column for each of the"
        " n_keys keys.",
        "as_many_as_keys",
    ),
    *_one(
        "queries",
        "square",
        "The result has a column for each query. It has a row for each of the n_queries queries and a column for each"
        " of the n_keys keys.",
        "keys_cut",
    ),
    *_one(
        "result",
        "transposed",
        "The result is transposed: rows are queries, columns are keys, (n_queries, n_keys).",
        "transposed",
    ),
    *_one(
        "result",
        "float_ids",
        "The ids are floats: a table is indexed by whole numbers. Keep to integers all the way, or use .long().",
        "float",
    ),
    *_one(
        "result",
        "future_zeroed",
        "The ids of the keys after the query are set to 0. Hiding keys is the task of a mask; id 0 is a distance, the"
        " furthest back.",
        "lower",
        "lower_from_zero",
    ),
    *_one(
        "result",
        "one_hot",
        "You return a one-hot code of the ids. Return the ids themselves, (n_queries, n_keys): they index the rows of a"
        " table.",
        "one_hot",
    ),
    *_one("result", "one_row", "You return the ids of the first query alone: one row for each query.", "first_row"),
    *_one(
        "result",
        "queries_reversed",
        "The rows are in reverse order: the first row belongs to the earliest of the queries.",
        "reversed",
    ),
    *_one(
        "result",
        "keys_reversed",
        "The columns are in reverse order: the first column belongs to key 0, the earliest.",
        "keys_reversed",
    ),
)


# ---------------------------------------------------------------- symptoms
def _right_inside(seen: Seen) -> bool:
    """Wrong only where the distance reaches m."""
    found = results(seen, floats=False)
    return found is not None and all(
        torch.equal(r[r % (2 * p.make()[2]) != 0], y[r % (2 * p.make()[2]) != 0].long()) for p, r, y in found
    )


def _right_for(seen: Seen, past: bool) -> bool:
    found = results(seen, floats=False)
    parts = [(r, y.long(), r <= p.make()[2] if past else r >= p.make()[2]) for p, r, y in found or []]
    return found is not None and all(torch.equal(r[part], y[part]) for r, y, part in parts)


def _constant(seen: Seen) -> bool:
    """Off by one number on each input."""
    found = results(seen, floats=False)
    return found is not None and all(len((y.long() - r).unique()) == 1 for _, r, y in found)


SYMPTOMS = (
    Symptom(
        "wrong_offset",
        f"The distances are clipped as they should be, but what you add to them is not m. {MIDDLE}",
        _constant,
    ),
    Symptom(
        "wrong_with_cache",
        f"With as many queries as keys all is right; with a cache it is not. {LAST}",
        lambda seen: right_only_where(seen, lambda probe: probe.make()[0] == probe.make()[1]),
    ),
    Symptom(
        "far_distances_wrong",
        f"Distances of less than m are right; those of m and more are not. {MIDDLE}",
        _right_inside,
    ),
    Symptom(
        "future_wrong",
        "The ids up to m, for the query itself and the keys before it, are right; those of the keys after it are not."
        f" {MIDDLE}",
        lambda seen: _right_for(seen, True),
    ),
    Symptom(
        "past_wrong",
        "The ids from m on, for the query itself and the keys after it, are right; those of the keys before it are not."
        f" {MIDDLE}",
        lambda seen: _right_for(seen, False),
    ),
    MORE_RESULTS,
    ONLY_SHAPE,
    NUMPY_IDS,
    LIST_RESULT,
)

SHAW_INDEX = Exercise(
    name="relative.shaw_index",
    reference=lambda n_queries, n_keys, max_distance: relative.shaw_index(n_queries, n_keys, max_distance),
    alternatives=(lambda n_queries, n_keys, max_distance: relative.shaw_index(n_queries, n_keys, max_distance).int(),),
    results=(Result("ids", ("query", "key")),),
    probes=tuple(
        Probe(f"n_queries = {q}, n_keys = {k}, max_distance = {m}", lambda q=q, k=k, m=m: (q, k, m))
        for q, k, m in ((3, 3, 4), (5, 5, 2), (1, 4, 2), (2, 5, 8), (3, 7, 2), (4, 4, 1))
    ),
    mistakes=MISTAKES,
    compound=shaw_wrongly,
    symptoms=SYMPTOMS,
    at_once=3,
)
