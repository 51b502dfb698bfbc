"""The exercises of lesson 10 about the cache: cached_causal_mask, attend_step, reorder_cache."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from .. import decoding
from ..attention import scaled_dot_product_attention
from ..relative import rope
from .decoding_parts import one
from .exercise import Exercise, Mistake, Probe, Result, Symptom
from .masks import DTYPES, INVERTED, _as_dtype
from .outcome import Outcome, same_outcome
from .sandbox import Budget
from .symptoms import KIND_SYMPTOMS, MORE_RESULTS, NOTHING, SHAPE_SYMPTOMS, Seen


def _right_but(seen: Seen, wrong: Callable[..., bool]) -> bool:
    """Whether all probes are right for which `wrong` does not hold, and some other is not."""
    found = [(wrong(*p.make()), same_outcome(e, g)) for p, e, g in seen]
    return all(right for w, right in found if not w) and not all(right for w, right in found if w)


# ---------------------------------------------------------------- cached_causal_mask
def cached_mask_wrongly(
    n_new: int, n_total: int, *, pattern: str = "right", dtype: str = "bool", layout: str = "right"
) -> object:
    """The mask with any of the ways to go wrong; without a switch it is right."""
    past = n_total - n_new
    full = torch.ones(n_new, n_total, dtype=torch.bool)
    square = torch.ones(n_new, n_new, dtype=torch.bool).tril()
    mask = {
        "right": lambda: full.tril(past),
        "top_left": lambda: full.tril(),
        "one_more": lambda: full.tril(past + 1),
        "one_less": lambda: full.tril(past - 1),
        "new_only": lambda: square,
        "past_right": lambda: torch.cat([square, full[:, n_new:]], 1),
        "all_true": lambda: full,
        "all_false": lambda: ~full,
        "inverted": lambda: ~full.tril(past),
        "inverted_top_left": lambda: ~full.tril(),
        "flipped": lambda: full.triu(past),
        "flipped_top_left": lambda: full.triu(),
        "past_hidden": lambda: full.tril(past).triu(past) | torch.cat([~full[:, n_new:], square], 1),
        "past_only": lambda: torch.cat([full[:, n_new:], torch.zeros_like(square)], 1),
        "square_of_all": lambda: torch.ones(n_total, n_total, dtype=torch.bool).tril(),
        "turned_round": lambda: full.tril(past).flip(1),
        "rows_flipped": lambda: full.tril(past).flip(0),
        "self_only": lambda: full.tril(past).triu(past),
        "by_new": lambda: full.tril(n_new),
        "negative": lambda: full.tril(-past),
        "square_past": lambda: torch.cat([torch.ones(n_new, past, dtype=torch.bool).tril(), square], 1),
        "past_square": lambda: torch.ones(n_new, past + n_new, dtype=torch.bool).tril(past // 2),
        "last_row": lambda: full.tril(past)[-1:],
        "rows_of_past": lambda: torch.ones(past, n_total, dtype=torch.bool).tril(),
        "twice": lambda: torch.ones(n_new, n_new + n_total, dtype=torch.bool).tril(n_total),
    }[pattern]()
    mask = {
        "right": lambda: mask,
        "turned": lambda: mask.T,
        "additive": lambda: mask,
    }[layout]()
    return _as_dtype(mask, dtype)


LAST = "The queries are the last n_new of n_total positions: query i stands at position n_total - n_new + i."
ALIGN = "Align the triangle bottom right: tril(diagonal=n_total - n_new)."


def _pattern(name: str, sentence: str, *values: str, alone: bool = False) -> tuple[Mistake, ...]:
    return one("pattern", name, sentence, *values, alone=alone)


CACHED_MASK_MISTAKES = (
    *_pattern(
        "top_left",
        "Your triangle starts top left, as if the queries were the first tokens: a single new token sees key 0 and"
        " nothing"
        f" else. {LAST} {ALIGN}",
        "top_left",
    ),
    *_pattern("one_too_many", f"Each query sees one key too many, its successor. {LAST}", "one_more"),
    *_pattern("without_self", f"No query sees itself: it may look at its own position as well. {LAST}", "one_less"),
    *_pattern(
        "new_block_only",
        "Your mask is (n_new, n_new): the cached keys have no columns. Keys are all n_total positions.",
        "new_only",
    ),
    *_pattern(
        "square_of_all",
        "Your mask is (n_total, n_total): there are queries for the new tokens alone, its last n_new rows.",
        "square_of_all",
    ),
    *_pattern(
        "queries_are_the_past",
        "Your mask has a row for each cached position: the queries are the new ones.",
        "rows_of_past",
    ),
    *_pattern(
        "too_many_keys", "Your mask has n_new + n_total columns: n_total counts the new tokens already.", "twice"
    ),
    *_pattern(
        "past_on_the_right",
        "The triangle of the new tokens comes first and the past behind it: the cache stands before the new keys.",
        "past_right",
        "turned_round",
    ),
    *_pattern("past_hidden", f"The cached keys are hidden: every new token may see all of them. {LAST}", "past_hidden"),
    *_pattern(
        "past_only",
        f"Only the cached keys may be seen: a new token also sees itself and the new ones before. {LAST}",
        "past_only",
    ),
    *_pattern("self_only", f"Each query sees itself alone: it may look at everything before, too. {LAST}", "self_only"),
    *_pattern(
        "past_triangle",
        f"The past is a triangle in your mask: every new token may see all of it. {LAST}",
        "square_past",
        "past_square",
    ),
    *_pattern("wrong_diagonal", f"The diagonal is in the wrong place. {LAST} {ALIGN}", "by_new", "negative"),
    *_pattern("rows_upside_down", f"The rows are in reverse order. {LAST}", "rows_flipped"),
    *_pattern("one_row_only", "Your mask has one row, for the last query: each new token needs its own.", "last_row"),
    *_pattern(
        "nothing_forbidden",
        "Every entry is True: among the new tokens, none may see those that come after it.",
        "all_true",
        alone=True,
    ),
    *_pattern("nothing_allowed", f"Every entry is False: nothing may be seen. {LAST}", "all_false", alone=True),
    *_pattern("inverted", INVERTED, "inverted"),
    *_pattern(
        "inverted_top_left",
        "Your mask is the wrong way round, since True means may look; and it starts top left, as if the queries were"
        f" the first tokens. {LAST} {ALIGN}",
        "inverted_top_left",
    ),
    *_pattern(
        "flipped", f"You allow the future and forbid the past: tril, not triu. {LAST}", "flipped", "flipped_top_left"
    ),
    *one(
        "layout",
        "turned",
        "Your mask is (n_total, n_new): rows are queries and columns are keys, (n_new, n_total).",
        "turned",
    ),
    *DTYPES,
)


def _mask_probe(n_new: int, n_total: int) -> Probe:
    return Probe(f"n_new {n_new}, n_total {n_total}", lambda: (n_new, n_total))


CACHED_CAUSAL_MASK = Exercise(
    name="decoding.cached_causal_mask",
    reference=lambda n_new, n_total: decoding.cached_causal_mask(n_new, n_total),
    results=(Result("mask", ("query", "key")),),
    probes=tuple(_mask_probe(*sizes) for sizes in ((2, 3), (1, 4), (3, 3), (2, 6), (3, 5), (4, 6))),
    mistakes=CACHED_MASK_MISTAKES,
    compound=cached_mask_wrongly,
    symptoms=(
        *SHAPE_SYMPTOMS,
        *KIND_SYMPTOMS,
        Symptom(
            "wrong_with_a_cache",
            f"In the cases tried here all is right without a cache (n_new = n_total), and not with one. {LAST}",
            lambda seen: _right_but(seen, lambda n_new, n_total: n_new < n_total),
        ),
        Symptom(
            "wrong_for_several",
            "In the cases tried here one new token is right, and several are not: query i sees one key more than query"
            f" i - 1. {LAST}",
            lambda seen: _right_but(seen, lambda n_new, n_total: n_new > 1),
        ),
    ),
    at_once=2,
)


# ---------------------------------------------------------------- attend_step
def _attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: str, applies: str, by: str
) -> Tensor:
    if by == "course":
        return scaled_dot_product_attention(query, key, value, mask)[0]
    n = {"right": query.shape[-1], "none": 1, "by_key": key.shape[2], "whole": query.shape[-1] ** 2}.get(
        scale, query.shape[-1]
    )
    scores = query @ key.mT / math.sqrt(n)
    if applies == "times_scores" and mask is not None:
        scores = scores * mask
    elif applies != "after_softmax" and mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf if by == "hand_with_inf" else torch.finfo(scores.dtype).min)
    weights = scores.softmax(-2 if scale == "over_queries" else -1)
    return (weights * mask if applies == "after_softmax" and mask is not None else weights) @ value


def _step_mask(n_new: int, n_total: int, is_first: bool, mask: str) -> Tensor | None:
    if mask == "none" or (mask == "first_only" and not is_first):
        return None
    pattern = {"right": "right", "first_only": "right"}.get(mask, mask)
    return cached_mask_wrongly(n_new, n_total, pattern=pattern)


@dataclasses.dataclass
class Kept:
    """What the wrong implementation keeps of the pieces so far."""

    key: Tensor
    value: Tensor
    past: int  # how many tokens there were
    pieces: int  # in how many calls
    query: Tensor


def _positions(past: int, pieces: int, n: int, positions: str) -> tuple[Tensor, Tensor]:
    """The positions of the queries and of the keys of n new tokens."""
    right, zero, later = torch.arange(past, past + n), torch.arange(n), int(past > 0)
    return {
        "right": (right, right),
        "restart": (zero, zero),
        "twice": (zero + 2 * past, zero + 2 * past),
        "query_restarts": (zero, right),
        "key_restarts": (right, zero),
        "query_ahead": (right + 1, right),
        "query_behind": (right - 1, right),
        "one_gap": (right + later, right + later),
        "one_back": (right - later, right - later),
        "pieces": (zero + pieces, zero + pieces),
        "piece_number": (zero * 0 + pieces, zero * 0 + pieces),
        "same": (zero * 0 + past, zero * 0 + past),
        "end": (zero * 0 + past + n, zero * 0 + past + n),
        "reversed": (right.flip(0), right.flip(0)),
        "query_last": (zero * 0 + past + n - 1, right),
        "end_on": (right + n, right + n),
        "batch": (zero + 2 * later, zero + 2 * later),  # the sizes of all probes
        "heads": (zero + 3 * later, zero + 3 * later),
        "columns": (zero + 4 * later, zero + 4 * later),
    }[positions]


def attend_wrongly(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cache: Kept | None,
    rotate: Callable,
    *,
    positions: str = "right",
    rotates: str = "both",
    stores: str = "rotated",
    grows: str = "both",
    order: str = "old_new",
    axis: int = 2,
    mask: str = "right",
    scale: str = "right",
    result: str = "right",
    applies: str = "before",
    counts: str = "calls",
    by: str = "hand",
) -> object:
    """One step with any of the ways to go wrong; without a switch, or with the last two alone, it is right."""
    n, past, pieces = query.shape[2], cache.past if cache else 0, cache.pieces if cache else 0
    if counts == "kept" and cache:
        past = cache.key.shape[2]
    of_query, of_key = _positions(past, pieces, n, positions)
    new_key, new_value = key, value
    if rotates in ("both", "query", "values_too"):
        query = rotate(query, of_query)
    if rotates in ("both", "key", "values_too") and stores not in ("rotated_again", "past_again"):
        key = rotate(key, of_key)
    if rotates == "values_too":
        value = rotate(value, of_key)
    new_key = new_key if stores == "raw" else key
    old = [cache.key, cache.value] if cache and grows != "nothing" else [key[:, :, :0], value[:, :, :0]]
    if stores == "keys_for_values" and cache:
        old[1] = cache.key
    if stores == "values_for_keys" and cache:
        old[0] = cache.value
    join = {"old_new": lambda a, b: [a, b], "new_old": lambda a, b: [b, a]}[order]
    value = new_value if rotates != "values_too" else value
    if old[0].shape[2]:
        key, value = torch.cat(join(old[0], key), axis), torch.cat(join(old[1], value), axis)
    if stores == "rotated_again":
        key = rotate(key, torch.arange(key.shape[2]))
    if stores == "past_again":
        key = rotate(key, of_key if key.shape[2] == n else torch.arange(past, past + key.shape[2]))
    if result == "queries_cached" and cache:
        query = torch.cat([cache.query, query], 2)
    output = _attend(
        query, key, value, _step_mask(query.shape[2], key.shape[2], cache is None, mask), scale, applies, by
    )
    kept = Kept(key, value, past + n, pieces + 1, query)
    if stores == "raw":
        kept.key = torch.cat([old[0], new_key], axis)
    if grows in ("last_only", "first_lost"):
        lost = n if grows == "last_only" else (0 if cache is None else key.shape[2])
        kept.key, kept.value = key[:, :, key.shape[2] - lost :], value[:, :, value.shape[2] - lost :]
    if grows == "first_only" and cache:
        kept = dataclasses.replace(cache, past=past + n, pieces=pieces + 1)
    if grows == "frozen" and cache:
        kept = cache
    if grows == "keys_only":
        kept.value = value[:, :, value.shape[2] - n :]
    if grows == "last_token":
        kept.key, kept.value = torch.cat([old[0], key[:, :, -1:]], 2), torch.cat([old[1], value[:, :, -1:]], 2)
    if grows == "window":
        kept.key, kept.value = key[:, :, -2:], value[:, :, -2:]
    return {
        "right": lambda: (output, kept),
        "queries_cached": lambda: (output, kept),
        "exchanged": lambda: (kept, output),
        "output_only": lambda: output,
        "no_cache": lambda: (output, None),
        "last_only": lambda: (output[:, :, -1:], kept),
        "plus_query": lambda: (output + query, kept),
        "merged": lambda: (output.transpose(1, 2).flatten(2), kept),
        "three": lambda: (output, kept.key, kept.value),
        "cache_first": lambda: (kept.key, kept.value, output),
        "values": lambda: (value[:, :, -n:], kept),
    }[result]()


POSITION = "With m tokens in the cache, new tokens stand at the positions m, m + 1, ..."
GROWS = (
    "The cache holds the keys and values of all tokens so far: those of the last call, and the new ones behind them."
)
MASK = "New tokens see all cached ones, and of the new ones those up to themselves: align the triangle bottom right."

PAST = (
    "New tokens see only each other: either you return no cache, or what it holds is not used, or the mask hides it."
    f" {GROWS}"
)

ATTEND_MISTAKES = (
    *one(
        "positions",
        "positions_restart",
        f"In every call the positions begin with 0 again, so that each piece looks like the first one. {POSITION}",
        "restart",
    ),
    *one(
        "positions",
        "offset_twice",
        f"The positions run ahead: they begin at twice the length of the cache. {POSITION}",
        "twice",
    ),
    *one(
        "positions",
        "query_restarts",
        f"The keys are rotated by the right positions, the queries by positions that begin with 0. {POSITION}",
        "query_restarts",
    ),
    *one(
        "positions",
        "key_restarts",
        f"The queries are rotated by the right positions, the new keys by positions that begin with 0. {POSITION}",
        "key_restarts",
    ),
    *one(
        "positions",
        "query_off_by_one",
        "Queries are rotated by other positions than the keys of the same tokens, one apart: a token has one position.",
        "query_ahead",
        "query_behind",
    ),
    *one("positions", "off_by_one", f"With a cache, the positions are off by one: too large. {POSITION}", "one_gap"),
    *one("positions", "off_by_one", f"With a cache, the positions are off by one: too small. {POSITION}", "one_back"),
    *one("positions", "off_by_one", f"The positions begin behind the new tokens and not at them. {POSITION}", "end_on"),
    *one(
        "positions",
        "another_size_for_past",
        "With a cache, the positions begin at the size of its batch, of its heads or of its last axis; len(key) is the"
        f" batch. How many tokens it holds is key.shape[2]. {POSITION}",
        "batch",
        "heads",
        "columns",
    ),
    *one(
        "positions",
        "calls_counted",
        f"The positions count calls, not tokens: a call may bring several. {POSITION}",
        "pieces",
        "piece_number",
    ),
    *one(
        "positions",
        "one_position_for_all",
        f"All tokens of one call get the same position. {POSITION}",
        "same",
        "end",
    ),
    *one(
        "positions",
        "query_at_the_end",
        f"All queries of one call get the position of the last. {POSITION}",
        "query_last",
    ),
    *one("positions", "positions_reversed", f"The positions of new tokens run down. {POSITION}", "reversed"),
    *one(
        "rotates",
        "not_rotated",
        "Nothing is rotated: queries and keys go through rotate, each by its position.",
        "none",
    ),
    *one(
        "rotates", "only_query_rotated", "Queries are rotated, keys are not: both are, each by its position.", "query"
    ),
    *one("rotates", "only_key_rotated", "Keys are rotated, queries are not: both are, each by its position.", "key"),
    *one(
        "rotates",
        "values_rotated",
        "Values are rotated as well: only queries and keys are, values stay as they are.",
        "values_too",
    ),
    *one(
        "stores",
        "rotated_again",
        "Keys from the cache are rotated once more in every call, and so turn further and further. Rotate each key"
        " once,"
        " before it is stored, or store keys that are not rotated and rotate all of them in every call.",
        "rotated_again",
        "past_again",
    ),
    *one(
        "stores",
        "stored_before_rotation",
        "The cache holds keys that are not rotated, and the next call uses them so: store them rotated, or rotate all"
        " of"
        " them in every call.",
        "raw",
    ),
    *one(
        "stores",
        "keys_for_values",
        "The values of the past are keys in yours: keys are joined with keys, values with values.",
        "keys_for_values",
    ),
    *one(
        "stores",
        "values_for_keys",
        "The keys of the past are values in yours: keys are joined with keys, values with values.",
        "values_for_keys",
    ),
    *one("grows", "first_not_stored", f"The keys and values of the first call are not stored. {GROWS}", "first_lost"),
    *one("grows", "only_last_stored", f"The cache holds the tokens of the last call alone. {GROWS}", "last_only"),
    *one(
        "grows", "cache_does_not_grow", f"The cache stays what the first call made it. {GROWS}", "first_only", "frozen"
    ),
    *one("grows", "past_ignored", PAST, "nothing"),
    *one("result", "past_ignored", PAST, "no_cache"),
    *one("mask", "past_ignored", PAST, "past_hidden"),
    *one(
        "grows",
        "values_not_stored",
        f"The keys of all calls are kept, of the values only those of the last. {GROWS}",
        "keys_only",
    ),
    *one("grows", "one_token_stored", f"Of each call only the last token is stored. {GROWS}", "last_token"),
    *one("grows", "window", f"The cache holds no more than the last two tokens. {GROWS}", "window"),
    *one(
        "order",
        "new_before_old",
        "New keys and values are put before the old ones: the mask then hides the wrong keys. The old ones come first.",
        "new_old",
    ),
    *one(
        "axis",
        "joined_along_heads",
        "Old and new are joined along the wrong axis: the tokens are axis 2 of (batch, heads, tokens, d).",
        0,
        1,
        3,
    ),
    *(
        Mistake(
            "joined_along_heads",
            "Old and new are joined along the wrong axis: the tokens are axis 2 of (batch, heads, tokens, d).",
            switches={"axis": axis, "by": "course"},
        )
        for axis in (0, 1, 3)
    ),
    *one(
        "mask",
        "no_mask",
        f"There is no mask. One new token needs none, but where several come at once they see their future. {MASK}",
        "none",
    ),
    *one(
        "mask",
        "mask_in_first_call_only",
        f"Only the first call has a mask: later pieces of several tokens see their future. {MASK}",
        "first_only",
    ),
    *one(
        "mask",
        "mask_top_left",
        "The triangle starts top left, so with a cache new tokens see its first keys only (is_causal=True does that,"
        " too)."
        f" {MASK}",
        "top_left",
    ),
    *one("mask", "mask_one_too_many", f"Each token sees its successor. {MASK}", "one_more"),
    *one("mask", "mask_without_self", f"Tokens do not see themselves. {MASK}", "one_less"),
    *one("mask", "mask_past_only", f"The mask lets new tokens see nothing but the past. {MASK}", "past_only"),
    *one("mask", "mask_past_on_the_right", f"In your mask the past comes behind the new tokens. {MASK}", "past_right"),
    *one("mask", "mask_inverted", f"The mask is the wrong way round: True means may attend. {MASK}", "inverted"),
    *one("mask", "mask_new_block_only", f"The mask has columns for the new tokens alone. {MASK}", "new_only"),
    *one(
        "applies",
        "masked_after_softmax",
        "The weights are masked after the softmax, so that those of a query no longer sum to 1: the scores become -inf"
        " before it.",
        "after_softmax",
    ),
    *one(
        "applies",
        "mask_multiplied",
        "The scores are multiplied by the mask: a score of 0 still gets its share, exp(0) is 1. It must become -inf.",
        "times_scores",
    ),
    *one("scale", "wrong_scale", "The scores are not divided by the root of d.", "none", "by_key", "whole"),
    *one(
        "scale",
        "softmax_over_queries",
        "The softmax runs over the queries: the weights of each query sum to 1 over its keys, dim=-1.",
        "over_queries",
    ),
    *one("result", "exchanged", "You return the cache first and then the output: (output, cache).", "exchanged"),
    *one(
        "result",
        "cache_not_returned",
        "You return no cache: the next call gets what this one returns. Return (output, cache).",
        "output_only",
    ),
    *one(
        "result",
        "two_caches",
        "You return three things: the output, and one cache, which may be a pair.",
        "three",
        "cache_first",
    ),
    *one(
        "result",
        "queries_cached",
        "Queries are kept and joined like keys, so you return outputs for old tokens again: return those of the new"
        " tokens.",
        "queries_cached",
    ),
    *one(
        "result",
        "last_output_only",
        "You return the output of the last new token alone: return those of all new tokens.",
        "last_only",
    ),
    *one("result", "query_added", "The query is added to the output: return the attention alone.", "plus_query"),
    *one("result", "heads_merged", "Your output has its heads merged: (batch, heads, new, d).", "merged"),
    *one("result", "values_returned", "You return the values as they came.", "values"),
)


class InPieces(Exercise):
    """An exercise about a function that is called again and again, each time with what it returned the last time."""

    def observed(self, fn: Callable, probe: Probe, budget: Budget | None = None) -> Outcome:
        """What comes of all calls: the outputs side by side, or what was returned where it is no (output, cache)."""
        return super().observed(_in_pieces(fn), probe, budget)


def _in_pieces(fn: Callable) -> Callable:
    def run(query: Tensor, key: Tensor, value: Tensor, sizes: list[int], rotate: Callable) -> object:
        outputs, cache, at = [], None, 0
        for n in sizes:
            piece = (x[:, :, at : at + n].clone() for x in (query, key, value))
            result = fn(*piece, cache, rotate)
            if not isinstance(result, (list, tuple)) or len(result) != 2:
                return result
            output, cache = result
            if not isinstance(output, Tensor):
                return [None, cache] if isinstance(cache, Tensor) else output  # see `_exchanged`
            outputs.append(output)
            at += n
        fits = len({(x.dim(), x.dtype, *x.shape[:2], *x.shape[3:]) for x in outputs}) == 1 and outputs[0].dim() > 2
        return torch.cat(outputs, 2) if fits else outputs[-1]

    return run


def _exchanged(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and value[0] is None and isinstance(value[1], Tensor)


def _with_weights(sizes: list[int], value: object) -> bool:
    """Whether the first call gave (output, weights) in the place of the output."""
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(x, Tensor) for x in value):
        return False
    output, weights = value
    rows = torch.ones(output.shape[:-1])
    return weights.shape == (*output.shape[:-1], sizes[0]) and torch.allclose(weights.sum(-1), rows, atol=1e-4)


def turn(x: Tensor, positions: Tensor) -> Tensor:
    """The rotation that the reader is given: any positions that broadcast with the tokens."""
    return rope(x, torch.as_tensor(positions), base=100.0)


def _sizes_with(seen: Seen, wrong: Callable[[list[int]], bool]) -> bool:
    return _right_but(seen, lambda query, key, value, sizes, rotate: wrong(sizes))


def _attend_probe(sizes: list[int], b: int, h: int, d: int) -> Probe:
    n = sum(sizes)
    generator = torch.Generator().manual_seed(n + 10 * d)
    query, key, value = (torch.randn(b, h, n, d, generator=generator) for _ in range(3))
    says = f"{n} tokens in pieces of {sizes}; query, key, value ({b}, {h}, n, {d})"
    blind = ("counts",) if len(sizes) == 1 else ()
    return Probe(says, lambda: (query.clone(), key.clone(), value.clone(), list(sizes), turn), blind_to=blind)


ATTEND_STEP = InPieces(
    name="decoding.attend_step",
    reference=decoding.attend_step,
    results=(Result("output", ("batch", "head", "token", "column")),),
    probes=(
        _attend_probe([3], 2, 3, 4),
        _attend_probe([1, 1], 2, 3, 4),
        _attend_probe([1, 1, 1, 1], 2, 3, 4),
        _attend_probe([3, 1, 1], 2, 3, 4),
        _attend_probe([2, 3], 2, 3, 4),
        _attend_probe([2, 1, 3], 2, 3, 4),
        _attend_probe([1, 4], 2, 3, 4),
    ),
    mistakes=ATTEND_MISTAKES,
    compound=attend_wrongly,
    free=({"counts": "kept"}, {"by": "hand_with_inf"}, {"counts": "kept", "by": "hand_with_inf"}),
    symptoms=(
        NOTHING,
        Symptom(
            "weights_too",
            "Your output is a pair: scaled_dot_product_attention returns (output, weights), and the output is the"
            " first.",
            lambda seen: all(_with_weights(probe.make()[3], given.value) for probe, _, given in seen),
        ),
        Symptom(
            "exchanged",
            "You return the cache first and then the output: (output, cache).",
            lambda seen: all(_exchanged(given.value) for _, _, given in seen),
        ),
        Symptom(
            "wrong_in_several_calls",
            f"In the cases tried here all tokens at once are right, and not in several calls. {POSITION} {GROWS}"
            f" {MASK}",
            lambda seen: _sizes_with(seen, lambda sizes: len(sizes) > 1),
        ),
        Symptom(
            "wrong_for_later_chunks",
            "In the cases tried here all is right as long as later calls bring one token each, and not where they bring"
            f" several. {POSITION} {MASK}",
            lambda seen: _sizes_with(seen, lambda sizes: max(sizes[1:], default=1) > 1),
        ),
        Symptom(
            "wrong_for_several_tokens",
            f"In the cases tried here one token in each call is right, and several at once are not. {POSITION} {MASK}",
            lambda seen: _sizes_with(seen, lambda sizes: max(sizes) > 1),
        ),
        Symptom(
            "wrong_from_the_third_call",
            f"In the cases tried here two calls are right, and not from the third on. {POSITION} {GROWS}",
            lambda seen: _sizes_with(seen, lambda sizes: len(sizes) > 2),
        ),
    ),
    at_once=2,
)


# ---------------------------------------------------------------- reorder_cache
Layers = list[tuple[Tensor, Tensor]]


def _moved(x: Tensor, parents: Tensor, index: str, axis: int) -> Tensor:
    """One tensor of the cache, (beam, heads, length, d), with its beams in the new order."""
    if axis:
        size = x.shape[axis]
        keep = torch.cat([parents[parents < size], torch.arange(len(parents), size)])[:size]
        return x.index_select(axis, keep)
    if index in ("inverse", "inverse_into_zeros", "in_place", "inverse_in_place"):
        moved = torch.zeros_like(x) if index == "inverse_into_zeros" else x.clone()
        if index == "in_place":
            for i, parent in enumerate(parents.tolist()):
                moved[i] = moved[parent]
        else:
            moved[parents] = x.clone()
        return moved
    if index == "heads":
        return x[:, parents]
    if index == "tokens":
        return x[:, :, parents]
    if index == "columns":
        return x[..., parents]
    places = {
        "parents": lambda: parents,
        "identity": lambda: torch.arange(len(x)),
        "sorted": lambda: parents.sort().values,
        "argsort": lambda: parents.argsort(stable=True),
        "reversed": lambda: parents.flip(0),
        "unique": lambda: parents.unique(),
        "first": lambda: parents[:1].expand(len(parents)),
        "one_more": lambda: (parents + 1) % len(x),
        "one_less": lambda: parents - 1,
        "twice": lambda: parents[parents],
        "flipped": lambda: torch.arange(len(x)).flip(0),
        "from_the_end": lambda: len(x) - 1 - parents,
        "best": lambda: parents[:1],
        "swapped": lambda: torch.arange(len(x)).roll(1),
    }[index]()
    return x[places]


def reorder_wrongly(
    cache: Layers, parents: Tensor, *, index: str = "parents", which: str = "both", axis: int = 0, result: str = "list"
) -> object:
    """The reordered cache with any of the ways to go wrong; without a switch it is right."""
    moved = [tuple(_moved(x, parents, index, axis) for x in layer) for layer in cache]
    new = {
        "both": lambda: moved,
        "keys": lambda: [(a[0], b[1]) for a, b in zip(moved, cache, strict=True)],
        "values": lambda: [(b[0], a[1]) for a, b in zip(moved, cache, strict=True)],
        "first_layer": lambda: [moved[0], *cache[1:]],
        "last_layer": lambda: [*cache[:-1], moved[-1]],
        "layer_0_for_all": lambda: [moved[0]] * len(cache),
        "last_for_all": lambda: [moved[-1]] * len(cache),
        "keys_twice": lambda: [(a[0], a[0]) for a in moved],
        "values_twice": lambda: [(a[1], a[1]) for a in moved],
        "exchanged": lambda: [a[::-1] for a in moved],
        "layers_reversed": lambda: moved[::-1],
        "layers_by_parents": lambda: [moved[i] for i in parents.tolist()],
        "layers_too": lambda: [moved[i % len(moved)] for i in parents.tolist()][: len(moved)],
    }[which]()
    if result == "in_place":
        for layer, (key, value) in zip(cache, new, strict=True):
            layer[0].copy_(key.clone())
            layer[1].copy_(value.clone())
        return cache
    if result == "list_changed":
        cache[:] = new
        return cache
    return {
        "list": lambda: new,
        "first_layer": lambda: new[:1],
        "last_layer": lambda: new[-1],
        "rows": lambda: [tuple(list(x) for x in layer) for layer in new],
        "flat": lambda: [x for layer in new for x in layer],
        "two_lists": lambda: ([layer[0] for layer in new], [layer[1] for layer in new]),
        "two_tensors": lambda: tuple(torch.stack([layer[i] for layer in new]) for i in (0, 1)),
        "keys": lambda: [layer[0] for layer in new],
        "dict": lambda: dict(enumerate(new)),
        "twice": lambda: [*cache, *new],
        "by_beam": lambda: [[tuple(x[i] for x in layer) for layer in new] for i in range(len(parents))],
    }[result]()


BEAMS = "New beam i goes on with what beam parents[i] had: key[parents], and the values and every other layer likewise."

HEADS = f"You reorder the heads: the beams are axis 0 of (beam, heads, length, d). {BEAMS}"

REORDER_MISTAKES = (
    *one(
        "index",
        "not_reordered",
        "The cache comes back as it was: beam i then goes on with the past of another hypothesis. With one beam, or"
        " where"
        f" no beam changes its place, that cannot be seen. {BEAMS}",
        "identity",
    ),
    *one(
        "index",
        "inverse",
        "You write to the places parents (new[parents] = old) instead of reading from them (new = old[parents]). For"
        " two"
        f" beams that change places it is the same, otherwise not. {BEAMS}",
        "inverse",
        "inverse_into_zeros",
    ),
    *one(
        "index",
        "overwritten",
        "Beams are overwritten one after the other, and some are read after they have been overwritten. Build new"
        " tensors"
        f" from the old ones: {BEAMS[0].lower() + BEAMS[1:]}",
        "in_place",
    ),
    *one("index", "sorted", f"The parents are sorted first: their order matters. {BEAMS}", "sorted"),
    *one("index", "argsort", f"You take argsort of the parents: they are indices already. {BEAMS}", "argsort"),
    *one("index", "reversed", f"The beams are in reverse order. {BEAMS}", "reversed", "from_the_end", "flipped"),
    *one("index", "parents_used_once", f"Each parent is used once: two beams may have the same. {BEAMS}", "unique"),
    *one("index", "first_parent_for_all", f"All beams get what the first parent had. {BEAMS}", "first"),
    *one("index", "one_beam_only", f"You return one beam: there is one for each of parents. {BEAMS}", "best"),
    *one(
        "index",
        "off_by_one",
        f"The beams are shifted by one: they count from 0. {BEAMS}",
        "one_more",
        "one_less",
        "swapped",
    ),
    *one("index", "parents_twice", f"The beams are reordered twice. {BEAMS}", "twice"),
    *one("axis", "head_axis", HEADS, 1),
    *one("index", "head_axis", HEADS, "heads"),
    *one("axis", "wrong_axis", f"You reorder the positions or the columns: the beams are axis 0. {BEAMS}", 2, 3),
    *one(
        "index",
        "wrong_axis",
        f"You reorder the positions or the columns: the beams are axis 0. {BEAMS}",
        "tokens",
        "columns",
    ),
    Mistake(
        "layers_picked",
        f"You pick layers by the parents: these are numbers of beams, rows of each key and value. {BEAMS}",
        switches={"index": "identity", "which": "layers_by_parents"},
    ),
    *one("which", "only_keys", "The keys are reordered, the values are not: both belong to the same past.", "keys"),
    *one("which", "only_values", "The values are reordered, the keys are not: both belong to the same past.", "values"),
    *one(
        "which",
        "one_layer_only",
        "Only one layer is reordered: each has its own keys and values.",
        "first_layer",
        "last_layer",
    ),
    *one(
        "which",
        "one_layer_for_all",
        "Every layer gets the keys and values of one layer: each has its own.",
        "layer_0_for_all",
        "last_for_all",
    ),
    *one(
        "which",
        "keys_twice",
        "Keys stand in the place of the values, or values in that of the keys: each layer is (key, value).",
        "keys_twice",
        "values_twice",
    ),
    *one("which", "exchanged", "Keys and values have changed places: each layer is (key, value).", "exchanged"),
    *one(
        "which",
        "layers_mixed",
        "The layers are in another order: only the beams change their places.",
        "layers_reversed",
        "layers_too",
    ),
    *one(
        "result",
        "changes_cache",
        "The new cache is right, but the old one is changed: build new tensors and a new list.",
        "in_place",
        "list_changed",
    ),
    *one(
        "result",
        "one_layer_returned",
        "You return one layer alone: return a list with a pair (key, value) for each layer.",
        "first_layer",
        "last_layer",
    ),
    *one(
        "result",
        "not_pairs",
        "The numbers are there, but not as a list of pairs: return [(key, value), ...], one pair for each layer.",
        "flat",
        "two_lists",
        "two_tensors",
        "dict",
        "by_beam",
    ),
    *one(
        "result",
        "not_pairs",
        "You return keys or values alone: return [(key, value), ...], one pair for each layer.",
        "keys",
    ),
    *one(
        "result",
        "rows_not_joined",
        "The beams of each key and value come as a list: key[parents] makes one tensor of them at once.",
        "rows",
    ),
    *one("result", "old_and_new", "You return the old layers and the new ones: return the new ones alone.", "twice"),
)


def _cache_probe(parents: list[int], beams: int, heads: int, layers: int = 2, *, length: int = 3, d: int = 2) -> Probe:
    shape = (beams, heads, length, d)

    def make() -> tuple:
        n = beams * heads * length * d
        numbers = [torch.arange(n).view(shape) + 1000.0 * i + 1 for i in range(2 * layers)]
        return [tuple(numbers[2 * i : 2 * i + 2]) for i in range(layers)], torch.tensor(parents)

    return Probe(f"parents {parents}, {layers} layers of keys and values {shape}", make)


def _pairs(value: object) -> list[list[Tensor]] | None:
    """The layers of a list of pairs of tensors, or of one tensor that holds them all; None where it is no such list."""
    layers = list(value) if isinstance(value, Tensor) and value.dim() == 6 else value
    if not isinstance(layers, list) or not layers:
        return None
    pairs = [list(x) if isinstance(x, Tensor) and x.dim() == 5 else x for x in layers]
    fits = all(isinstance(x, list) and len(x) == 2 and all(isinstance(y, Tensor) for y in x) for x in pairs)
    return pairs if fits and len({x.shape for pair in pairs for x in pair}) == 1 else None


def _settled_cache(_: tuple, value: object) -> object:
    """The keys of all layers and the values of all layers, each as one tensor, and then what came beside the list."""
    beside: list = []
    if _pairs(value) is None and isinstance(value, list) and len(value) > 1 and isinstance(value[0], list):
        value, *beside = value if _pairs(value[0]) else [value]
    pairs = _pairs(value)
    return value if pairs is None else [*(torch.stack([pair[i] for pair in pairs]) for i in (0, 1)), *beside]


def _only_right_for(seen: Seen, fits: Callable[[list[int]], bool]) -> bool:
    return _right_but(seen, lambda cache, parents: not fits(parents.tolist()))


REORDER_CACHE = Exercise(
    name="decoding.reorder_cache",
    reference=lambda cache, parents: decoding.reorder_cache(cache, parents),
    results=tuple(
        Result(
            f"{kind} of all layers",
            ("layer", "beam", "head", "token", "column"),
            within="a list of pairs (key, value), one for each layer",
        )
        for kind in ("keys", "values")
    ),
    settled=_settled_cache,
    probes=(
        _cache_probe([1, 0], 2, 3),
        _cache_probe([1, 2, 0], 3, 4, 3),
        _cache_probe([0, 0], 2, 2),
        _cache_probe([2, 0, 0], 3, 3, d=4),
        _cache_probe([0, 1, 2], 3, 4),
        _cache_probe([3, 1, 3, 0], 4, 5, 1, length=5, d=6),
    ),
    mistakes=REORDER_MISTAKES,
    compound=reorder_wrongly,
    symptoms=(
        MORE_RESULTS,
        NOTHING,
        Symptom(
            "generator_returned",
            "You return a generator: round brackets around `... for ... in ...` make one, and zip and map are no lists"
            " either. Square brackets make the list of pairs.",
            lambda seen: all(isinstance(given.value, Iterator) for _, _, given in seen),
        ),
        Symptom(
            "copies_wrong",
            "In the cases tried here all is right where every beam has one child, and not where a beam has two, or"
            " none. " + BEAMS,
            lambda seen: _only_right_for(seen, lambda parents: len(set(parents)) == len(parents)),
        ),
        Symptom(
            "order_wrong",
            "In the cases tried here it is right where every beam keeps its place, and not always where they change. "
            + BEAMS,
            lambda seen: _only_right_for(seen, lambda parents: parents == list(range(len(parents)))),
        ),
    ),
    at_once=2,
)
