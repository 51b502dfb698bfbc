"""What the outcomes alone tell about a wrong softmax or attention, where no wrong implementation stands for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .attention_mistakes import HALF_RAISES
from .attention_probes import EMPTY_ROW, HALF, LARGE, LOW
from .exercise import Symptom
from .outcome import Outcome, close, same_outcome, same_value
from .symptoms import MORE_RESULTS, ONLY_SHAPE, Seen

__all__ = ["NUMPY", "SYMPTOMS", "changes_input", "not_finite", "right_on_core"]


def right_on_core(seen: Seen) -> bool:
    """Whether only edge cases are wrong."""
    return all(p.edge or same_outcome(e, g) for p, e, g in seen)


def edge_case(seen: Seen, says: str) -> tuple[Outcome, Outcome] | None:
    """(expected, given) of the edge case whose description begins with `says`."""
    return next((e, g) for p, e, g in seen if p.edge and p.says.startswith(says))


def not_finite(outcome: Outcome) -> bool:
    """Whether nan or inf came out."""
    tensors = outcome.value if isinstance(outcome.value, list) else [outcome.value]
    return any(isinstance(x, Tensor) and not x.isfinite().all() for x in tensors)


def changes_input(seen: Seen) -> bool:
    """Whether an argument is changed while every ordinary result is right."""
    ordinary = [(e, g) for p, e, g in seen if not p.edge]
    right = all(g.error is None and same_value(e.value, g.value) for e, g in ordinary)
    return right and any(g.changed for _, _, g in seen)


def _numpy(seen: Seen) -> bool:
    def arrays(x: object) -> bool:
        return type(x).__module__ == "numpy" or (isinstance(x, list) and bool(x) and all(map(arrays, x)))

    return all(arrays(g.value) for _, _, g in seen if g.error is None) and any(g.error is None for *_, g in seen)


NUMPY = Symptom(
    "numpy_result",
    "Your result is made by NumPy. Here it must be a torch tensor, and best made by torch operations all the way: "
    "NumPy cuts off the gradients, without which nothing can be trained.",
    _numpy,
)


@dataclass(frozen=True)
class _Case:
    """One ordinary probe where the reader returned two finite tensors of the right shapes."""

    scores: Tensor  # bare dot products
    d_k: int
    value: Tensor
    allowed: Tensor
    masked: bool
    right_output: Tensor
    right: Tensor
    output: Tensor
    weights: Tensor


def _cases(seen: Seen) -> list[_Case] | None:
    """Every ordinary probe; None unless all of them gave two finite float tensors of the right shapes."""
    cases = []
    for probe, expected, given in seen:
        if probe.edge:
            continue
        both = given.value
        if given.error is not None or not isinstance(both, list) or len(both) != 2:
            return None
        for a, b in zip(both, expected.value, strict=True):
            if not isinstance(a, Tensor) or a.shape != b.shape or not a.is_floating_point() or not a.isfinite().all():
                return None
        query, key, value, *rest = probe.make()
        mask = rest[0] if rest else None
        scores = query.double() @ key.double().mT
        allowed = torch.ones(scores.shape, dtype=torch.bool) if mask is None else mask.expand(scores.shape)
        numbers = (x.double() for x in (*expected.value, *both))
        cases.append(_Case(scores, query.shape[-1], value.double(), allowed, mask is not None, *numbers))
    return cases


def _symptom(name: str, sentence: str, shows: Callable[[list[_Case]], bool]) -> Symptom:
    def told(seen: Seen) -> bool:
        cases = _cases(seen)
        return cases is not None and bool(shows(cases))

    return Symptom(name, sentence, told)


def _temperatures(cases: list[_Case]) -> list[tuple[int, float]] | None:
    """(d_k, the factor on the dot products) of every probe without a mask, or None where there is no such factor."""
    found = []
    for case in cases:
        if case.masked or case.scores.shape[-1] < 2:
            continue
        if (case.weights <= 0).any() or not close(case.weights.sum(-1), torch.ones(())).all():
            return None
        logs = case.weights.log()
        logs, scores = (x - x.mean(-1, keepdim=True) for x in (logs, case.scores))
        factor = (logs * scores).sum() / (scores * scores).sum()
        if (logs - factor * scores).abs().max() > 2e-3 * max(1.0, logs.abs().max()):
            return None
        found.append((case.d_k, factor.item()))
    return found


def _wrong_scale(cases: list[_Case]) -> bool:
    found = _temperatures(cases)
    if not found or all(abs(c) < 0.01 for _, c in found):  # with a factor of 0 there are no scores to speak of
        return False
    return any(abs(c * math.sqrt(d) - 1) > 0.01 for d, c in found)


def _constant_scale(cases: list[_Case]) -> bool:
    found = _temperatures(cases)
    if not _wrong_scale(cases):
        return False
    factors = [c for _, c in found]
    return max(factors) - min(factors) < 0.01 * abs(sum(factors) / len(factors))


def _right_without_mask(cases: list[_Case]) -> bool:
    return all(close(c.right, c.weights).all() for c in cases if not c.masked)


def _forbidden_scores(cases: list[_Case]) -> list[float]:
    """The score that each forbidden key seems to have, measured against the allowed ones of its row."""
    found = []
    for case in cases:
        if not case.masked:
            continue
        allowed = case.allowed & (case.weights > 0)
        if (case.allowed & ~allowed).any() or not close(case.weights.sum(-1), torch.ones(())).all():
            return []
        scores = case.scores / math.sqrt(case.d_k)
        levels = (case.weights.log() - scores).masked_fill(~allowed, torch.nan)
        level = levels.nanmean(-1, keepdim=True)
        if ((levels - level).abs() > 2e-3).any():
            return []
        forbidden = ~case.allowed
        found += (case.weights.log() - level).masked_select(forbidden).tolist()
    return found


def _one_score_for_forbidden(cases: list[_Case]) -> bool:
    scores = _forbidden_scores(cases) if _right_without_mask(cases) else []
    high = bool(scores) and all(math.isfinite(s) and s > -10 for s in scores)  # exp(-10) is below every tolerance
    return high and max(scores) - min(scores) < 0.01


def _forbidden_keep_weight(cases: list[_Case]) -> bool:
    masked = [c for c in cases if c.masked]
    leaks = [bool((c.weights.masked_select(~c.allowed).abs() > 1e-3).any()) for c in masked]
    return _right_without_mask(cases) and all(leaks)


def _only_forbidden(cases: list[_Case]) -> bool:
    return all(
        (c.weights.masked_select(c.allowed) == 0).all() and (c.weights * ~c.allowed).sum() > 0
        for c in cases
        if c.masked
    )


def _mask_of_another(cases: list[_Case]) -> bool:
    """The weights of each head of each sequence fit the mask of some head of some sequence, not always its own."""
    strangers = False
    for case in cases:
        if case.masked:
            scores = (case.scores / math.sqrt(case.d_k)).flatten(0, 1)  # (items, query, key)
            masks = case.allowed.flatten(0, 1)
            expected = scores[:, None].masked_fill(~masks[None], -torch.inf).softmax(-1)
            fits = close(expected, case.weights.flatten(0, 1)[:, None]).flatten(2).all(-1)  # (item, mask)
            if not fits.any(-1).all():
                return False
            strangers |= not bool(fits.diagonal().all())
    return strangers and _right_without_mask(cases)


def _sums(cases: list[_Case], axis: int, *, masked: bool) -> list[bool]:
    """For each case with or without a mask and more than one number along both axes: whether weights sum to 1."""
    return [
        bool(close(c.weights.sum(axis), torch.ones(())).all())
        for c in cases
        if c.masked == masked and min(c.scores.shape[-2:]) > 1
    ]


def _sums_off(cases: list[_Case]) -> list[bool]:
    return [not ok for ok in _sums(cases, -1, masked=False)]


def _removed_after_softmax(cases: list[_Case]) -> bool:
    """With a mask the weights are those without one, but for zeros."""
    if not _right_without_mask(cases):
        return False
    for case in cases:
        if case.masked:
            unmasked = (case.scores / math.sqrt(case.d_k)).softmax(-1)
            if not close(unmasked * case.allowed, case.weights).all():
                return False
    return True


def _all_weights(cases: list[_Case], *, right: bool) -> bool:
    return (
        all(close(c.right, c.weights).all() for c in cases)
        if right
        else not any(close(c.right, c.weights).all() for c in cases)
    )


def _all_outputs(cases: list[_Case], *, right: bool) -> bool:
    return all(bool(close(c.right_output, c.output).all()) == right for c in cases)


def _output_made_otherwise(cases: list[_Case]) -> list[bool]:
    """For each case: whether the reader's output is not the average that the reader's own weights make."""
    return [not bool(close(c.weights @ c.value, c.output).all()) for c in cases]


def _none_raises(seen: Seen) -> bool:
    ordinary = [(len(p.make()), p.make()[-1] is None, g) for p, _, g in seen if not p.edge]
    return all(
        (g.error is not None and g.called) == (is_none or n == 3) or not g.called for n, is_none, g in ordinary
    ) and any(is_none and isinstance(g.error, (TypeError, AttributeError)) and g.called for _, is_none, g in ordinary)


def _mask_required(seen: Seen) -> bool:
    return all(
        not g.called if len(p.make()) == 3 else g.error is None and same_outcome(e, g) for p, e, g in seen if not p.edge
    )


def _edge_raises(says: str, *words: str) -> Callable[[Seen], bool]:
    def shows(seen: Seen) -> bool:
        error = edge_case(seen, says)[1].error
        return right_on_core(seen) and error is not None and any(w in str(error) for w in words or ("",))

    return shows


def _row(seen: Seen, says: str, row: int) -> tuple[list[Tensor], list[Tensor]] | None:
    """(expected, given) output and weights of one query of an edge case, if they are tensors of the right shape."""
    expected, given = edge_case(seen, says)
    both = given.value
    if given.error is not None or not isinstance(both, list) or len(both) != 2:
        return None
    if any(not isinstance(x, Tensor) or x.shape != y.shape for x, y in zip(both, expected.value, strict=True)):
        return None
    return [x[0, 0, row] for x in expected.value], [x[0, 0, row] for x in both]


def _empty_row_filled(seen: Seen) -> bool:
    found, other = _row(seen, EMPTY_ROW, 1), _row(seen, EMPTY_ROW, 0)
    if not right_on_core(seen) or found is None:
        return False
    return (
        all(close(a, b).all() for a, b in zip(*other, strict=True))
        and all(x.isfinite().all() for x in found[1])
        and not all(close(a, b).all() for a, b in zip(*found, strict=True))
    )


def _edge_not_finite(says: str) -> Callable[[Seen], bool]:
    return lambda seen: right_on_core(seen) and not_finite(edge_case(seen, says)[1])


def _low_leaks(seen: Seen) -> bool:
    if not right_on_core(seen):
        return False
    rows = [_row(seen, LOW, i) for i in (0, 1)]
    return all(r is not None and (r[1][1][r[0][1] == 0] > 0.01).any() for r in rows)


def _gradient(state: str) -> Callable[[Seen], bool]:
    """Everything ordinary is right, and so is the value where the gradient is not."""
    return lambda seen: (
        right_on_core(seen) and any(state in g.gradients and same_value(e.value, g.value) for _, e, g in seen)
    )


SYMPTOMS = (
    NUMPY,
    Symptom(
        "mask_required",
        "It cannot be called without a mask: give the argument a default, mask=None.",
        _mask_required,
    ),
    Symptom(
        "mask_none_raises",
        "Without a mask (mask=None) it raises an error: nothing may be done with the mask outside of `if mask is "
        "not None:`.",
        _none_raises,
    ),
    _symptom(
        "weights_not_those_used",
        "Your output is right, but the weights that you return are not those that made it: return what the softmax "
        "gave, masked, and before anything else is done with it.",
        lambda cases: _all_outputs(cases, right=True) and not _all_weights(cases, right=True),
    ),
    _symptom(
        "constant_scale",
        "Your weights are those of scores that are scaled by the same number whatever d_k is. Divide by sqrt(d_k), "
        "with d_k = query.shape[-1], so that the scale fits every width.",
        _constant_scale,
    ),
    _symptom(
        "wrong_scale",
        "Your weights are a softmax of scores that are scaled by a wrong factor. The scores must be divided by "
        "sqrt(d_k), with d_k = query.shape[-1], and by nothing else.",
        _wrong_scale,
    ),
    _symptom(
        "softmax_over_queries",
        "Down each column your weights sum to 1, along the rows they do not: your softmax runs over the queries. "
        "Each query needs weights of its own that sum to 1: softmax over the keys, dim=-1.",
        lambda cases: all(_sums(cases, -2, masked=False)) and not any(_sums(cases, -1, masked=False)),
    ),
    _symptom(
        "mask_of_another_sequence",
        "Some heads get the mask of another sequence of the batch: sequences and heads are laid out in one order in "
        "the scores and in another in the mask (repeat where repeat_interleave is meant). The mask broadcasts as it "
        "comes: no need to repeat it.",
        _mask_of_another,
    ),
    _symptom(
        "only_forbidden_attended",
        "With a mask, only forbidden keys get weight and no allowed one does. True in the mask means may attend, "
        "and masked_fill fills where its mask is True, so it needs ~mask.",
        _only_forbidden,
    ),
    _symptom(
        "forbidden_score_too_high",
        "Forbidden keys get one fixed score that is not low enough, so they keep some weight. A forbidden score "
        "must be very negative: -inf.",
        _one_score_for_forbidden,
    ),
    _symptom(
        "mask_after_softmax",
        "With a mask your rows of weights sum to less than 1: the weight of forbidden keys is removed after the "
        "softmax. Mask the scores, before the softmax: fill them with -inf.",
        _removed_after_softmax,
    ),
    _symptom(
        "forbidden_keys_keep_weight",
        "Without a mask your weights are right; with one, forbidden keys still get weight. Their scores must be "
        "-inf before the softmax.",
        _forbidden_keep_weight,
    ),
    _symptom(
        "output_not_weighted_values",
        "Your weights are right, but the output is not always weights @ value.",
        lambda cases: _all_weights(cases, right=True) and any(_output_made_otherwise(cases)),
    ),
    _symptom(
        "allowed_keys_without_weight",
        "Even without a mask some keys get weight 0, though every key is allowed then. Does a loop or a slice leave "
        "one out, or is something forbidden that nobody asked for?",
        lambda cases: any((c.weights == 0).any() for c in cases if not c.masked) and not any(_sums_off(cases)),
    ),
    _symptom(
        "rows_do_not_sum_to_one",
        "Even without a mask the rows of your weights do not sum to 1. Each query needs weights of its own that sum "
        "to 1: softmax over the keys, dim=-1, with nothing after it.",
        lambda cases: not any(_sums(cases, -1, masked=False)),
    ),
    Symptom(
        "fill_too_large_for_half",
        "Inputs in float16 raise an error: a number in your code lies beyond what float16 can hold, which ends at "
        "65504 (-1e9 lies beyond). Fill forbidden scores with -inf or torch.finfo(scores.dtype).min.",
        _edge_raises(HALF, "without overflow"),
    ),
    Symptom(
        "half_precision_raises",
        HALF_RAISES,
        _edge_raises(HALF, "dtype", "scalar type", "Half"),
    ),
    Symptom(
        "changes_input",
        "It works on the caller's tensors: one of them is changed, by an operation in place such as -= or "
        "masked_fill_. Use operations that return a new tensor.",
        changes_input,
    ),
    Symptom(
        "empty_row_nan",
        "A row with nothing to attend to comes out as nan. Such a row must get weights "
        "0 and output 0: find it with mask.any(-1, keepdim=True), and mend it before the softmax, so that the "
        "gradient stays finite too.",
        _edge_not_finite(EMPTY_ROW),
    ),
    Symptom(
        "empty_row_attended",
        "A row with nothing to attend to gets something all the same. Such a row must get "
        "weights 0, and the output that follows from them, which is 0.",
        _empty_row_filled,
    ),
    Symptom(
        "unstable_softmax",
        "Your attention is right for moderate scores, but with large ones nan or inf comes out: exp of a score "
        "of 89 is inf in float32, and where every exp is 0 so is their sum. Subtract the row's largest allowed "
        "score first (amax gives it; argmax gives only its place), or use torch.softmax.",
        lambda seen: _edge_not_finite(LARGE)(seen) or _edge_not_finite(LOW)(seen),
    ),
    Symptom(
        "fill_not_low_enough",
        "The number that you fill forbidden scores with is not low enough: where allowed scores lie below it, the "
        "weight goes to the forbidden keys. Use -inf, which lies below every score.",
        _low_leaks,
    ),
    Symptom(
        "gradient_not_finite",
        "The result is right, but with an empty row the gradient is nan: a nan that is replaced after the softmax "
        "passes through it backwards all the same (0 * nan is nan). Prevent it: give empty rows a finite score "
        "before the softmax, and set their weights to 0 after it.",
        _gradient("not finite"),
    ),
    Symptom(
        "no_gradient",
        "The result is right, but an input gets no gradient: the graph is cut (detach, .data, .item(), tolist, numpy, "
        "torch.tensor of computed numbers). Compute with torch operations on the tensors themselves.",
        _gradient("none"),
    ),
    MORE_RESULTS,
    ONLY_SHAPE,
)
