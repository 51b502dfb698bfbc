"""The exercise relative_scores of lesson 07: content and position, two biases, the shift, and the scale."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .. import relative
from .attention_symptoms import NUMPY
from .exercise import Exercise, Mistake, Probe, Result, Symptom, each
from .outcome import close
from .relative_shift import shift_wrongly
from .relative_symptoms import LIST_RESULT, results, right_only_where
from .symptoms import CHANGES_INPUT, MORE_RESULTS, ONLY_SHAPE, Seen


# ---------------------------------------------------------------- the wrong implementation with switches
def _biased(query: Tensor, bias: Tensor, other: Tensor, how: str) -> Tensor:
    """(batch, heads, query, d): the query with what a reader may do to it."""
    return {
        "right": lambda: query + bias[:, None],
        "none": lambda: query,
        "other": lambda: query + other[:, None],
        "both": lambda: query + bias[:, None] + other[:, None],
        "times": lambda: query * bias[:, None],
        "minus": lambda: query - bias[:, None],
        "by_token": lambda: query + bias,
        "first_head": lambda: query + bias[0],
        "alone": lambda: bias[:, None].expand_as(query),
        "added_to_score": lambda: query,
    }[how]()


def _position(qv: Tensor, p: Tensor, shift: str, row: str) -> Tensor:
    """(batch, heads, query, key): the position part before the scale."""
    p = {
        "own": lambda: p,
        "first_head": lambda: p[:1].expand_as(p),
        "heads_reversed": lambda: p.flip(0),
        "mean_of_heads": lambda: p.mean(0, keepdim=True).expand_as(p),
    }[row]()
    bd = qv @ p.mT
    if shift == "none":
        return bd
    if shift == "future_zeroed":
        return shift_wrongly(bd, after="tril")
    return shift_wrongly(bd, take=shift)


def scores_wrongly(
    q: Tensor,
    k: Tensor,
    p: Tensor,
    u: Tensor,
    v: Tensor,
    *,
    content: str = "right",
    position: str = "right",
    shift: str = "right",
    row: str = "own",
    join: str = "add",
    scale: str = "sum",
    after: str = "right",
) -> object:
    """The scores with any of the ways to go wrong; without a switch it is right."""
    d = q.shape[-1]
    if content == "on_keys":
        ac = q @ (k + u[:, None]).mT
    elif content == "on_both":
        ac = (q + u[:, None]) @ (k + u[:, None]).mT
    elif content == "keys_first":
        ac = k @ (q + u[:, None]).mT
    else:
        ac = _biased(q, u, v, content) @ k.mT
    if position == "on_table":
        bd = _position(q, p + v[:, None], shift, row)
    elif position == "keys":
        bd = _position(k + v[:, None], p, shift, row)
    else:
        bd = _position(_biased(q, v, u, position), p, shift, row)
    if position == "added_to_score":
        bd = bd + v.sum(-1)[:, None, None]
    if content == "added_to_score":
        ac = ac + u.sum(-1)[:, None, None]
    root = math.sqrt(d)
    if scale in ("content", "twice_content", "position"):
        ac, bd = (ac / root, bd) if scale != "position" else (ac, bd / root)
    scores = {
        "add": lambda: ac + bd,
        "multiply": lambda: ac * bd,
        "subtract": lambda: ac - bd,
        "content_only": lambda: ac,
        "position_only": lambda: bd,
        "mean": lambda: (ac + bd) / 2,
        "content_shifted": lambda: shift_wrongly(torch.nn.functional.pad(ac, (0, ac.shape[-1] - 1))) + bd,
    }[join]()
    factor = {
        "sum": 1 / root,
        "none": 1.0,
        "content": 1.0,
        "twice_content": 1 / root,
        "position": 1.0,
        "d_model": 1 / math.sqrt(d * q.shape[1]),
        "d": 1 / d,
        "times": root,
        "length": 1 / math.sqrt(q.shape[2]),
        "heads": 1 / math.sqrt(q.shape[1]),
        "two_d": 1 / math.sqrt(2 * d),
        "three_d": 1 / math.sqrt(3 * d),
        "fourth_root": d**-0.25,
        "rows": 1 / math.sqrt(p.shape[1]),
    }[scale]
    scores = scores * factor
    t = scores.shape[2]
    return {
        "right": lambda: scores,
        "softmax": lambda: scores.softmax(-1),
        "tril": lambda: scores.tril(),
        "causal": lambda: scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf),
        "transposed": lambda: scores.mT,
        "heads_added": lambda: scores.sum(1),
    }[after]()


# ---------------------------------------------------------------- the gallery
FORMULA = "Divide the sum of both parts by sqrt(d), with d = q.shape[-1], the width of one head."
BOTH = "u belongs to the content part, (q + u) k^T, and v to the position part, (q + v) p^T."


FREQUENT = {  # what may come together with another mistake
    *("content", "position", "none", "d_model", "d", "times", "other", "by_token", "on_keys", "multiply", "first"),
    *("mirrored", "square_first", "first_head", "softmax", "causal", "tril", "cut_last"),
}


def _one(key: str, name: str, sentence: str, *values: str, beside: str = "") -> tuple[Mistake, ...]:
    return tuple(
        Mistake(name, sentence, switches={key: value}, beside=beside, alone=value not in FREQUENT) for value in values
    )


SCALE_MISTAKES = (
    *_one(
        "scale",
        "only_content_scaled",
        "Only the content part is divided by sqrt(d): the position part is sqrt(d) times too large beside it. Divide"
        " the sum.",
        "content",
    ),
    *_one(
        "scale",
        "only_position_scaled",
        "Only the position part is divided by sqrt(d): the content part is sqrt(d) times too large beside it. Divide"
        " the sum.",
        "position",
    ),
    *_one(
        "scale",
        "content_scaled_twice",
        "The content part is divided by sqrt(d) twice, by itself and in the sum. Divide the sum once.",
        "twice_content",
    ),
    *_one("scale", "no_scale", f"The scale is missing: your scores are sqrt(d) times too large. {FORMULA}", "none"),
    *_one(
        "scale",
        "scaled_by_d_model",
        "You divide by the root of the whole width, heads times d: the scores are too small by sqrt(heads), which with"
        f" one head does not show. {FORMULA}",
        "d_model",
    ),
    *_one("scale", "scaled_by_d", f"You divide by d without the root: the scores are too small. {FORMULA}", "d"),
    *_one("scale", "multiplied_by_root", f"You multiply by sqrt(d) instead of dividing. {FORMULA}", "times"),
    *_one(
        "scale",
        "scaled_by_length",
        f"You divide by the root of the number of tokens (or of rows of p). {FORMULA}",
        "length",
        "rows",
    ),
    *_one("scale", "scaled_by_heads", f"You divide by the root of the number of heads. {FORMULA}", "heads"),
    *_one(
        "scale",
        "scaled_by_number_of_parts",
        "You divide by sqrt(2d) or sqrt(3d), as other models do that add several kinds of scores. Here it is sqrt(d).",
        "two_d",
        "three_d",
    ),
    *_one("scale", "fourth_root", f"You divide by the fourth root of d: by sqrt(sqrt(d)). {FORMULA}", "fourth_root"),
)

BIAS_MISTAKES = (
    Mistake(
        "biases_exchanged",
        f"The biases u and v are exchanged. {BOTH}",
        switches={"content": "other", "position": "other"},
    ),
    Mistake(
        "u_for_both",
        f"You use u in both parts, and v not at all. {BOTH}",
        switches={"position": "other"},
        beside=f"The position part uses u instead of v. {BOTH}",
    ),
    Mistake(
        "v_for_both",
        f"You use v in both parts, and u not at all. {BOTH}",
        switches={"content": "other"},
        beside=f"The content part uses v instead of u. {BOTH}",
    ),
    Mistake(
        "no_biases",
        f"Neither u nor v has any influence. {BOTH}",
        switches={"content": "none", "position": "none"},
    ),
    *_one("content", "u_missing", f"The bias u has no influence on your scores. {BOTH}", "none"),
    *_one("position", "v_missing", f"The bias v has no influence on your scores. {BOTH}", "none"),
    Mistake(
        "both_biases_in_both",
        f"Both u and v are added in both parts. {BOTH}",
        switches={"content": "both", "position": "both"},
    ),
    *_one("content", "both_biases_in_content", f"The content part has both u and v in it. {BOTH}", "both"),
    *_one("position", "both_biases_in_position", f"The position part has both u and v in it. {BOTH}", "both"),
    *_one(
        "content",
        "bias_on_keys",
        "The bias u is added to the keys instead of the queries. That adds the same number q . u to a whole row, which"
        f" a softmax removes, so that u has no effect. {BOTH}",
        "on_keys",
    ),
    *_one("content", "bias_on_keys", f"The bias u is added to the queries and to the keys. {BOTH}", "on_both"),
    *_one(
        "position",
        "bias_on_table",
        "The bias v is added to p instead of the queries. That adds the same number q . v to a whole row, which a"
        f" softmax removes, so that v has no effect. {BOTH}",
        "on_table",
    ),
    *each(
        "bias_multiplied",
        "The biases are multiplied with the queries: they are added, q + u and q + v.",
        {"content": "times", "position": "times"},
        {"content": "times"},
        {"position": "times"},
    ),
    *each(
        "bias_subtracted",
        "A bias is subtracted: the sums are q + u and q + v.",
        {"content": "minus", "position": "minus"},
        {"content": "minus"},
        {"position": "minus"},
    ),
    *each(
        "bias_along_tokens",
        "The biases are (heads, d), but q + u lines their first axis up with the tokens: sizes clash, or, where there"
        " are as many tokens as heads, the numbers are wrong. Give them an axis of size 1 for the tokens: (heads, 1,"
        " d).",
        {"content": "by_token", "position": "by_token"},
        {"content": "by_token"},
        {"position": "by_token"},
    ),
    *each(
        "first_bias_for_all",
        "The bias of head 0 is used for every head: each head has its own row of u and v.",
        {"content": "first_head", "position": "first_head"},
        {"content": "first_head"},
        {"position": "first_head"},
    ),
    *each(
        "bias_added_to_score",
        "A bias is added up and put on the scores directly. It is a part of the query: it has to be multiplied with the"
        " keys (u) or with p (v).",
        {"content": "added_to_score", "position": "added_to_score"},
        {"content": "added_to_score"},
        {"position": "added_to_score"},
    ),
    *_one(
        "content",
        "query_missing_in_content",
        f"The content part is u k^T alone: the query is missing in it. {BOTH}",
        "alone",
    ),
    *_one(
        "position",
        "query_missing_in_position",
        f"The position part is v p^T alone: the query is missing in it. {BOTH}",
        "alone",
    ),
)

PART_MISTAKES = (
    *_one("join", "parts_multiplied", "Content and position are multiplied: add the two parts.", "multiply"),
    *_one("join", "parts_subtracted", "The position part is subtracted: add the two parts.", "subtract"),
    *_one("join", "parts_averaged", "You take the mean of the two parts, half their sum. Add them.", "mean"),
    *_one("join", "position_missing", "Only the content part is there: the position part is missing.", "content_only"),
    *_one("join", "content_missing", "Only the position part is there: the content part is missing.", "position_only"),
    *_one(
        "join",
        "content_shifted",
        "The shift is applied to the content part as well. Content scores already have a column for each key: only"
        " (q + v) p^T, with its 2T - 1 columns, is shifted.",
        "content_shifted",
    ),
    *_one(
        "content",
        "content_transposed",
        "The content part is transposed, keys times queries: rows belong to queries, so (q + u) k^T.",
        "keys_first",
    ),
    *_one(
        "position",
        "keys_meet_positions",
        "The position part is made with the keys: it is the query that meets p, (q + v) p^T.",
        "keys",
    ),
    *_one(
        "shift",
        "no_shift",
        "The position part is not shifted: every query takes the same rows of p, those for the first T distances (or"
        " the middle ones, or the last ones). Entry (i, j) needs the row for the distance i - j: relative_shift puts it"
        " there.",
        "first",
        "centre",
        "last",
    ),
    *_one(
        "shift",
        "no_shift",
        "The position part still has 2T - 1 columns, one for each distance, and cannot be added to the content part"
        " with its T columns: relative_shift brings it to (T, T).",
        "none",
    ),
    *_one(
        "shift",
        "distance_mirrored",
        "Past and future are exchanged in the position part: query i and key j get the row of p for the distance j - i,"
        " as if p were read from the bottom up. Row T - 1 - i + j of p is the one for i - j.",
        "mirrored",
    ),
    *_one(
        "shift",
        "wrong_shift",
        "The position part is shifted in another way than it should be: query i and key j need row T - 1 - i + j of p.",
        "down",
        "cut_last",
        "drop_last",
        "pad_right",
        "rolled",
        "early",
        "late",
        "absolute",
        "distance",
    ),
    *_one(
        "shift",
        "square_shift",
        "Only T rows of p take part in the shift, as in Transformer-XL: above the diagonal, numbers of other rows come"
        " in. The keys to the right have distances of their own.",
        "square_first",
    ),
    *_one(
        "shift",
        "future_zeroed",
        "For keys after the query the position part is 0. Those keys have distances of their own, the negative ones;"
        " hiding them is the task of a mask.",
        "future_zeroed",
    ),
    *_one("row", "one_table_for_all", "Every head uses the p of head 0: each head has its own.", "first_head"),
    *_one("row", "one_table_for_all", "All heads use one p, the mean of all: each head has its own.", "mean_of_heads"),
    *_one("row", "heads_exchanged", "The heads of p are used in reverse order.", "heads_reversed"),
    *_one(
        "after",
        "softmax_applied",
        "You apply the softmax already: return the scores, as they are before it.",
        "softmax",
    ),
    *_one(
        "after",
        "causal",
        "The keys after the query are hidden. Hiding is the task of a mask; the scores are asked for all pairs.",
        "tril",
        "causal",
    ),
    *_one(
        "after",
        "transposed",
        "The result is transposed: rows belong to queries, columns to keys.",
        "transposed",
    ),
    *_one(
        "after",
        "heads_added",
        "The heads are added up and their axis is gone: every head keeps scores of its own.",
        "heads_added",
    ),
)

OTHERS = (
    Mistake(
        "query_and_key_exchanged",
        "Queries and keys are exchanged, in both parts. Rows belong to queries: (q + u) k^T and (q + v) p^T.",
        lambda q, k, p, u, v: scores_wrongly(k, q, p, u, v),
    ),
    Mistake(
        "no_shift",
        "The position part still has 2T - 1 columns, one for each distance, and cannot be added to the content part"
        " with its T columns: relative_shift brings it to (T, T).",
        lambda q, k, p, u, v: (q + v[:, None]) @ p.mT + (q + u[:, None]) @ k.mT,
    ),
    Mistake(
        "wrong_transpose",
        "The factors of a matrix product do not fit: q k^T needs the last two axes of k exchanged, and those two alone,"
        " k.transpose(-2, -1); the same holds for p.",
        lambda q, k, p, u, v: (q + u[:, None]) @ k,
    ),
    Mistake(
        "wrong_transpose",
        "The factors of the product with p do not fit: (q + v) p^T needs the last two axes of p exchanged,"
        " p.transpose(-2, -1).",
        lambda q, k, p, u, v: (q + v[:, None]) @ p,
    ),
)


# ---------------------------------------------------------------- symptoms
def _factor(seen: Seen) -> bool:
    """The reader's scores are the right ones times one number on each probe."""
    found, factors = results(seen) or [], []
    for _, r, y in found:
        r, y = r.double(), y.double()
        factors.append(((y * r).sum() / (r * r).sum()).item())
        if not factors[-1] > 0 or not close(r * factors[-1], y).all():
            return False
    return any(abs(factor - 1) > 0.01 for factor in factors)


def _above_only(seen: Seen) -> bool:
    """Wrong only above the diagonal."""
    found = results(seen)
    return found is not None and all(bool(close(r.tril(), y.tril()).all()) for _, r, y in found)


SYMPTOMS = (
    CHANGES_INPUT,
    Symptom(
        "wrong_scale",
        f"Your scores are the right ones times a factor. {FORMULA}",
        _factor,
    ),
    Symptom(
        "heads_mixed",
        "With one head of one sequence all is right; with several it is not. Batch and heads are axes 0 and 1; p, u and"
        " v have no batch, and each head has its own.",
        lambda seen: right_only_where(seen, lambda probe: probe.says.startswith("one")),
    ),
    Symptom(
        "biases_wrong",
        f"Where u and v are 0, all is right: what is wrong is how they come in. {BOTH}",
        lambda seen: right_only_where(seen, lambda probe: "u and v are 0" in probe.says),
    ),
    Symptom(
        "position_part_wrong",
        "Where p is 0, all is right, so the content part is: what is wrong is the position part,"
        " relative_shift((q + v) p^T), or how it is scaled.",
        lambda seen: right_only_where(seen, lambda probe: "p is 0" in probe.says),
    ),
    Symptom(
        "content_part_wrong",
        "Where k is 0, all is right, so the position part is: what is wrong is the content part, (q + u) k^T, or how it"
        " is scaled.",
        lambda seen: right_only_where(seen, lambda probe: "k is 0" in probe.says),
    ),
    Symptom(
        "future_wrong",
        "On and below the diagonal all is right; for the keys after the query it is not. The rows of p from T on stand"
        " for these, the negative distances.",
        _above_only,
    ),
    MORE_RESULTS,
    ONLY_SHAPE,
    NUMPY,
    LIST_RESULT,
)


# ---------------------------------------------------------------- the probes
def _given(says: str, b: int, h: int, t: int, d: int, seed: int, *, zero: str = "", edge: bool = False) -> Probe:
    """Random q, k, p, u, v of which those named in `zero` are 0."""
    shapes = {"q": (b, h, t, d), "k": (b, h, t, d), "p": (h, 2 * t - 1, d), "u": (h, d), "v": (h, d)}

    def make() -> tuple[Tensor, ...]:
        generator = torch.Generator().manual_seed(seed)
        drawn = {name: torch.randn(*shape, generator=generator) for name, shape in shapes.items()}
        return tuple(torch.zeros_like(x) if name in zero else x for name, x in drawn.items())

    return Probe(f"{says}: q and k {(b, h, t, d)}, p {(h, 2 * t - 1, d)}", make, edge=edge)


RELATIVE_SCORES = Exercise(
    name="relative.relative_scores",
    reference=lambda q, k, p, u, v: relative.relative_scores(q, k, p, u, v),
    results=(Result("scores", ("batch", "head", "query", "key")),),
    probes=(
        _given("one head", 1, 1, 3, 4, 1),
        _given("one token", 1, 1, 1, 4, 2, edge=True),
        _given("u and v are 0", 1, 2, 3, 4, 3, zero="uv"),
        _given("p is 0", 1, 2, 3, 5, 4, zero="p"),
        _given("k is 0", 1, 2, 4, 3, 5, zero="k"),
        _given("as many heads as tokens", 2, 3, 3, 2, 6),
        _given("several heads", 2, 3, 4, 8, 7),
    ),
    mistakes=(*SCALE_MISTAKES, *BIAS_MISTAKES, *PART_MISTAKES, *OTHERS),
    compound=scores_wrongly,
    symptoms=SYMPTOMS,
    at_once=2,
)
