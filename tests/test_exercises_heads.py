"""The galleries of split_heads, merge_heads and multi_head_attention: what is accepted, what is named, and how fast.

That every mistake is diagnosed as itself is tested in test_exercises.py for all exercises; it holds every two mistakes
apart, since two that the probes do not tell apart would share the name of the first.
"""

import itertools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from transformer_edu.exercises import load

SPLIT, MERGE, ATTENTION = (load(f"heads.{n}") for n in ("split_heads", "merge_heads", "multi_head_attention"))
ALL = pytest.mark.parametrize("exercise", [SPLIT, MERGE, ATTENTION], ids=lambda e: e.name)


def verdict(fn, exercise=ATTENTION):
    return exercise.check(fn, quiet=True)


def split(x, n):
    return x.unflatten(-1, (n, -1)).transpose(1, 2)


def merge(x):
    return x.transpose(1, 2).flatten(2)


# ---------------------------------------------------------------- the probes
@ALL
def test_each_probe_builds_its_arguments_anew(exercise):
    def tensors(args):
        return [x for a in args for x in (a.values() if isinstance(a, dict) else [a]) if isinstance(x, torch.Tensor)]

    for probe in exercise.probes:
        for a, b in zip(tensors(probe.make()), tensors(probe.make()), strict=True):
            assert torch.equal(a, b) and a.data_ptr() != b.data_ptr(), probe.says


@ALL
def test_what_is_said_of_an_input_is_its_shape(exercise):
    for probe in exercise.probes:
        x = probe.make()[0]
        assert str(tuple(x.shape)) in probe.says or str(x.shape[-1]) in probe.says


def test_no_softmax_of_a_probe_is_saturated_and_no_query_has_nothing_to_attend_to():
    for probe, outcome in zip(ATTENTION.probes, ATTENTION.expected(), strict=True):
        weights, mask = outcome.value[1], probe.make()[4]
        allowed = torch.ones_like(weights, dtype=torch.bool) if mask is None else mask.expand(weights.shape)
        assert allowed.any(-1).all(), probe.says
        assert weights[allowed.sum(-1) > 1].max() < 0.9, probe.says


# ---------------------------------------------------------------- right answers, unusual
def by_index(x, n):
    if x.shape[-1] % n:
        raise AssertionError
    return x[..., torch.arange(x.shape[-1]).view(n, -1)].permute(0, 2, 1, 3)


def by_strides(x, n):
    b, t, d = x.shape
    if d % n:
        raise RuntimeError("no")
    return torch.as_strided(x, (b, n, t, d // n), (t * d, d // n, d, 1))


def by_stacking(x, n):
    return torch.stack(x.double().tensor_split(n, dim=-1)).transpose(0, 1)  # stack refuses unequal pieces


def number_by_number(x, n):
    assert x.shape[-1] % n == 0
    rows, width = x.tolist(), x.shape[-1] // n
    return torch.tensor([[[t[h * width : (h + 1) * width] for t in item] for h in range(n)] for item in rows])


@pytest.mark.parametrize("answer", [split, by_index, by_strides, by_stacking, number_by_number])
def test_a_right_split_is_accepted(answer):
    found = verdict(answer, SPLIT)
    assert found.status == "correct", found.message


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: torch.cat(x.unbind(1), -1),
        lambda x: x.permute(0, 2, 1, 3).contiguous().view(x.shape[0], x.shape[2], -1),
        lambda x: torch.from_numpy(x.numpy().transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1).copy()),
        lambda x: torch.einsum("bhtd,hdm->btm", x, torch.eye(x[0, :, 0].numel()).unflatten(0, x[0, :, 0].shape)),
        lambda x: torch.stack([torch.stack([item[:, t].flatten() for t in range(x.shape[2])]) for item in x]),
    ],
    ids=["cat", "contiguous view", "numpy inside", "einsum", "token by token"],
)
def test_a_right_merge_is_accepted(answer):
    found = verdict(answer, MERGE)
    assert found.status == "correct", found.message


def with_the_fused_kernel(x_query, x_memory, w, n, mask=None):
    q, k, v = (split(x @ w[name], n) for name, x in (("q", x_query), ("k", x_memory), ("v", x_memory)))
    unit = torch.eye(k.shape[2]).expand(*k.shape[:3], -1)
    attend = F.scaled_dot_product_attention
    return [merge(attend(q, k, v, mask)) @ w["o"], attend(q, k, unit, mask)]


def with_heads_folded_into_the_batch(x_query, x_memory, w, n, mask=None):
    def fold(x):
        return torch.cat(x.chunk(n, -1))

    s = fold(x_query @ w["q"]) @ fold(x_memory @ w["k"]).mT / math.sqrt(x_query.shape[-1] // n)
    if mask is not None:
        s = s - 1e9 * (~mask).float().expand(len(x_query), 1, *s.shape[1:])[:, 0].repeat(n, 1, 1)
    a = s.softmax(-1)
    return torch.cat((a @ fold(x_memory @ w["v"])).chunk(n), -1) @ w["o"], a.unflatten(0, (n, -1)).transpose(0, 1)


def with_each_head_s_matrices_multiplied_first(x_query, x_memory, w, n, mask=None):
    d, output, maps = x_query.shape[-1] // n, torch.zeros_like(x_query), []
    for i in range(0, n * d, d):
        c = slice(i, i + d)
        s = torch.einsum("bqi,ij,bkj->bqk", x_query, w["q"][:, c] @ w["k"][:, c].T, x_memory) / d**0.5
        if mask is not None:
            s = torch.where(mask[:, 0] if mask.ndim == 4 else mask, s, float("-inf"))
        maps.append(s.softmax(2))
        output += maps[-1] @ x_memory @ (w["v"][:, c] @ w["o"][c])
    return output, torch.stack(maps, dim=1)


def with_the_functional_form(x_query, x_memory, w, n, mask=None):
    if mask is not None:
        mask = (
            torch.zeros(len(x_query), n, x_query.shape[1], x_memory.shape[1])
            .masked_fill(~mask, -torch.inf)
            .flatten(0, 1)
        )
    output, weights = F.multi_head_attention_forward(
        *(x.transpose(0, 1) for x in (x_query, x_memory, x_memory)),
        *(x_query.shape[-1], n, torch.cat([w[name].T for name in "qkv"]), None, None, None, False, 0.0, w["o"].T, None),
        training=False,
        attn_mask=mask,
        average_attn_weights=False,
    )
    return output.transpose(0, 1), weights


def in_double_precision_with_exp(x_query, x_memory, w, n, mask=None):
    q, k, v = (split(x.double() @ w[m].double(), n) for m, x in (("q", x_query), ("k", x_memory), ("v", x_memory)))
    e = torch.exp(torch.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5)
    e = e if mask is None else e * mask
    a = e / e.sum(-1, keepdim=True)
    return torch.einsum("bhqk,bhkd,hdm->bqm", a, v, w["o"].double().unflatten(0, (n, -1))), a


@pytest.mark.parametrize(
    "answer",
    [
        with_the_fused_kernel,
        with_heads_folded_into_the_batch,
        with_each_head_s_matrices_multiplied_first,
        with_the_functional_form,
        in_double_precision_with_exp,
    ],
)
def test_a_right_multi_head_attention_is_accepted(answer):
    found = verdict(answer)
    assert found.status == "correct", found.message
    assert found.carry_forward() is answer


# ---------------------------------------------------------------- wrong answers, named
def pieces(x, n):
    return [x[..., i : i + x.shape[-1] // n] for i in range(0, x.shape[-1] // n * n, x.shape[-1] // n)]


def refusing(fn):
    def answer(x, n):
        assert x.shape[-1] % n == 0
        return fn(x, n)

    return answer


WRONG_SPLITS = {
    "split_by_view": lambda x, n: x.view(len(x), n, x.shape[1], -1),
    "no_transpose": lambda x, n: x.unflatten(2, (n, -1)),
    "tokens_last": lambda x, n: x.unflatten(2, (n, -1)).permute(0, 2, 3, 1),
    "heads_first": refusing(lambda x, n: torch.stack(pieces(x, n))),
    "axes_in_wrong_order": lambda x, n: x.unflatten(2, (n, -1)).transpose(0, 2),
    "interleaved": refusing(lambda x, n: torch.stack([x[:, :, i::n] for i in range(n)], 1)),
    "counts_exchanged": refusing(lambda x, n: torch.stack(x.split(n, 2), 1)),
    "folded_into_batch": refusing(lambda x, n: torch.cat(pieces(x, n))),
    "list_of_heads": refusing(pieces),
    "whole_token_for_all": refusing(lambda x, n: x[:, None].repeat(1, n, 1, 1)),
    "same_slice_for_all": refusing(lambda x, n: torch.stack([pieces(x, n)[0]] * n, 1)),
    "overlapping_slices": refusing(lambda x, n: x.unfold(-1, x.shape[-1] // n, 1)[:, :, :n].transpose(1, 2)),
    "heads_reversed": refusing(lambda x, n: torch.stack(pieces(x, n)[::-1], 1)),
    "head_missing": refusing(lambda x, n: torch.stack(pieces(x, n)[:-1], 1)),
    "tokens_split": lambda x, n: torch.stack(x.tensor_split(n, dim=1), 1),
    "heads_among_tokens": lambda x, n: x.reshape(len(x), x.shape[1] * n, x.shape[2] // n),
    "remainder_dropped": lambda x, n: torch.stack(pieces(x, n), 1)[:, :n],
    "remainder_padded": lambda x, n: split(F.pad(x, (0, -x.shape[2] % n)), n),
    "returns_instead_of_raising": lambda x, n: print("they do not fit") if x.shape[2] % n else split(x, n),
    "unclear_error": lambda x, n: {0: split}[x.shape[2] % n](x, n),
    "remainder_accepted": lambda x, n: torch.zeros(0) if x.shape[2] % n else split(x, n),
    "float_size": lambda x, n: x.view(len(x), x.shape[1], n, x.shape[2] / n).transpose(1, 2),
    "more_results": lambda x, n: (split(x, n), x.shape[2] // n),
    "only_shape": lambda x, n: split(x, n).squeeze(),
    "changes_input": lambda x, n: (split(x, n).clone(), x.zero_())[0],
    "no_transpose + remainder_dropped": lambda x, n: torch.stack(pieces(x, n)[:n], 2),
    "split_by_view + folded_into_batch": lambda x, n: x.reshape(len(x) * n, x.shape[1], -1),
    "tokens_last + interleaved": lambda x, n: x.unflatten(2, (-1, n)).transpose(1, 3),
}


@pytest.mark.parametrize("name", WRONG_SPLITS)
def test_a_wrong_split_is_named(name):
    found = verdict(WRONG_SPLITS[name], SPLIT)
    assert found.mistake == name, found.message
    assert "There may be more" not in found.message


WRONG_MERGES = {
    "merged_by_view": lambda x: x.reshape(len(x), x.shape[2], -1),
    "interleaved": lambda x: torch.stack(x.unbind(1), -1).flatten(2),
    "transposed_inside_heads": lambda x: x.mT.reshape(len(x), x.shape[2], -1),
    "axes_in_wrong_order": lambda x: x.transpose(1, 3).reshape(len(x), x.shape[2], -1),
    "view_not_contiguous": lambda x: x.swapaxes(1, 2).view(len(x), x.shape[2], -1),
    "view_not_contiguous + interleaved": lambda x: x.movedim(1, 3).view(len(x), x.shape[2], -1),
    "averaged": lambda x: sum(x.unbind(1)) / x.shape[1],
    "summed": lambda x: torch.einsum("bhtd->btd", x),
    "maximum": lambda x: x.max(1).values,
    "first_head_only": lambda x: x[:, 0],
    "last_head_only": lambda x: x.select(1, -1),
    "same_head_for_all": lambda x: torch.cat([x[:, 0]] * x.shape[1], -1),
    "first_sequence_only": lambda x: torch.cat(list(x[0]), -1),
    "heads_reversed": lambda x: torch.cat(x.unbind(1)[::-1], -1),
    "along_tokens": lambda x: torch.cat(x.unbind(1), 1),
    "along_batch": lambda x: torch.cat(x.unbind(1)),
    "tokens_merged": lambda x: x.flatten(2),
    "not_merged": lambda x: x.transpose(1, 2),
    "unchanged": lambda x: x,
    "too_flat": lambda x: x.transpose(1, 2).flatten(1),
    "transposed": lambda x: merge(x).mT,
    "head_axis_left": lambda x: torch.cat(x.split(1, 1), -1),
    "tokens_first": lambda x: x.permute(2, 0, 1, 3).flatten(2),
    "squeezed": lambda x: merge(x).squeeze(),
    "more_results": lambda x: (merge(x), None),
    "changes_input": lambda x: merge(x.mul_(1).transpose_(1, 2).transpose(1, 2)),
}


@pytest.mark.parametrize("name", WRONG_MERGES)
def test_a_wrong_merge_is_named(name):
    found = verdict(WRONG_MERGES[name], MERGE)
    assert found.mistake == name, found.message


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("interleaved + heads_reversed", lambda x: x.flip(1).permute(0, 2, 3, 1).flatten(2)),
        ("heads_reversed + not_merged", lambda x: x.flip(1).transpose(1, 2)),
        ("heads_reversed + unchanged", lambda x: x.flip(1)),
        ("interleaved + not_merged", lambda x: x.permute(0, 2, 3, 1)),
    ],
)
def test_two_mistakes_of_a_merge_do_not_contradict_each_other(name, answer):
    found = verdict(answer, MERGE)
    assert found.mistake == name
    for said in ("lie side by side in reverse", "axes are in the right order", "gives x back as it was"):
        assert said not in found.message


def test_view_of_a_transposed_tensor_is_not_called_a_wrong_axis():
    for exercise, name in ((MERGE, "view_not_contiguous"), (ATTENTION, "view_not_contiguous")):
        answer = WRONG_MERGES[name] if exercise is MERGE else reader(merge=WRONG_MERGES[name])
        found = verdict(answer, exercise)
        assert found.mistake == "view_not_contiguous"
        assert "reshape" in found.message and "contiguous()" in found.message and "exchange" not in found.message


def reader(**wrong):
    """A reader's attention with things gone wrong, written without a look at the gallery's."""

    def answer(x_query, x_memory, w, n, mask=None):
        d = x_query.shape[-1]
        w = wrong.get("w", lambda w: w)(w)
        one, two, three = wrong.get("inputs", lambda q, m: (q, m, m))(x_query, x_memory)
        cut = wrong.get("split", split)
        q, k, v = cut(one @ w["q"], n), cut(two @ w["k"], n), cut(three @ w["v"], n)
        s = torch.einsum("bhqd,bhkd->bhqk", q, k) * wrong.get("scale", lambda d, n, t: (d / n) ** -0.5)(
            d, n, k.shape[2]
        )
        m = wrong.get("mask", lambda m, b, n: m)(mask, len(x_query), n)
        if m is not None and "after" not in wrong:
            s = torch.where(m, s, torch.tensor(wrong.get("fill", -torch.inf)))
        a = F.softmax(s, dim=wrong.get("dim", -1))
        if m is not None and "after" in wrong:
            a = wrong["after"](a, m)
        output = wrong.get("output", lambda x: x)(wrong.get("merge", merge)(a @ v) @ w["o"])
        return wrong.get("result", lambda o, a: (o, a))(output, wrong.get("weights", lambda a: a)(a))

    return answer


def with_w(**names):
    return lambda w: {k: w[names.get(k, k)] for k in "qkvo"}


def transposed(names):
    return lambda w: {k: w[k].T if k in names else w[k] for k in w}


def without(names):
    return lambda w: {k: torch.eye(len(w[k])) if k in names else w[k] for k in w}


def of_mask(change):
    return lambda m, b, n: None if m is None else change(m, b, n)


def tiled(m, b, n):
    m = m.expand(b, 1, m.shape[-2], m.shape[-1]).flatten(0, 1).repeat(n, 1, 1)
    return m.reshape(b, n, m.shape[-2], m.shape[-1])


SINGLES = {
    "memory_unused": {"inputs": lambda q, m: (q, q, q)},
    "queries_from_memory": {"inputs": lambda q, m: (m, m, m)},
    "inputs_exchanged": {"inputs": lambda q, m: (m, q, q)},
    "values_from_query_side": {"inputs": lambda q, m: (q, m, q)},
    "value_from_key_matrix": {"w": with_w(v="k")},
    "key_from_query_matrix": {"w": with_w(k="q")},
    "one_matrix_for_all": {"w": with_w(k="q", v="q")},
    "matrices_exchanged": {"w": with_w(q="k", k="q")},
    "wrong_matrix": {"w": with_w(o="v")},
    "projections_transposed": {"w": transposed("qkvo")},
    "input_projections_transposed": {"w": transposed("qkv")},
    "output_projection_transposed": {"w": transposed("o")},
    "some_matrices_transposed": {"w": transposed("k")},
    "no_output_projection": {"w": without("o")},
    "no_input_projections": {"w": without("qkv")},
    "no_projections": {"w": without("qkvo")},
    "values_not_projected": {"w": without("v")},
    "projection_missing": {"w": without("qk")},
    "split_by_view": {"split": WRONG_SPLITS["split_by_view"]},
    "split_interleaved": {"split": WRONG_SPLITS["interleaved"]},
    "same_slice_for_all": {"split": WRONG_SPLITS["same_slice_for_all"]},
    "overlapping_slices": {"split": WRONG_SPLITS["overlapping_slices"]},
    "counts_exchanged": {
        "split": WRONG_SPLITS["counts_exchanged"],
        "scale": lambda d, n, t: n**-0.5,
    },
    "heads_not_moved": {"split": WRONG_SPLITS["no_transpose"], "merge": lambda x: x.flatten(2)},
    "merged_by_view": {"merge": WRONG_MERGES["merged_by_view"]},
    "merge_interleaved": {"merge": WRONG_MERGES["interleaved"]},
    "heads_combined": {"merge": WRONG_MERGES["same_head_for_all"]},
    "heads_meet_whole_matrix": {"merge": WRONG_MERGES["averaged"]},
    "no_scale": {"scale": lambda d, n, t: 1},
    "scaled_by_d_model": {"scale": lambda d, n, t: d**-0.5},
    "scaled_without_root": {"scale": lambda d, n, t: n / d},
    "scaled_by_n_heads": {"scale": lambda d, n, t: n**-0.5},
    "scaled_by_length": {"scale": lambda d, n, t: t**-0.5},
    "wrong_scale": {"scale": lambda d, n, t: 1 / 8},
    "softmax_over_queries": {"dim": -2, "fill": -1e9},
    "softmax_over_heads": {"dim": 1},
    "mask_ignored": {"mask": of_mask(lambda m, b, n: None)},
    "mask_inverted": {"mask": of_mask(lambda m, b, n: ~m), "fill": -1e9},
    "zero_fill": {"fill": 1e-9},
    "fill_has_wrong_sign": {"fill": 1e9},
    "mask_leaks": {"fill": -1.0},
    "mask_after_softmax": {"after": lambda a, m: a * m},
    "mask_of_another_sequence": {"mask": of_mask(tiled)},
    "first_mask_for_all": {"mask": of_mask(lambda m, b, n: m[:1] if m.dim() == 4 else m)},
    "mask_transposed": {"mask": of_mask(lambda m, b, n: m.mT)},
    "mask_misaligned": {"mask": of_mask(lambda m, b, n: m.squeeze())},
    "mask_does_not_fit": {"mask": of_mask(lambda m, b, n: m.reshape(b, -1))},
    "bool_minus": {"mask": of_mask(lambda m, b, n: 1 - m)},
    "mask_required": {"mask": lambda m, b, n: ~(~m)},
    "weights_averaged": {"weights": lambda a: a.sum(1) / a.shape[1]},
    "weights_of_one_head": {"weights": lambda a: a[:, -1]},
    "weights_transposed": {"weights": lambda a: a.mT},
    "weights_folded": {"weights": lambda a: a.flatten(0, 1)},
    "weights_axes": {"weights": lambda a: torch.cat(a.unbind(1), -1)},
    "weights_list": {"weights": lambda a: list(a.unbind(1))},
    "scores_returned": {"weights": lambda a: a.log()},
    "output_right_weights_wrong": {"weights": lambda a: a**2},
    "weights_right_output_wrong": {"output": lambda o: o.sin()},
    "rows_do_not_sum_to_one": {"weights": lambda a: a**2, "output": lambda o: o + 1},
    "only_output": {"result": lambda o, a: o},
    "only_weights": {"result": lambda o, a: a},
    "results_exchanged": {"result": lambda o, a: (a, o)},
    "more_results": {"result": lambda o, a: (o, a, 0)},
    "only_shape": {"result": lambda o, a: (o[:, None], a)},
    "head_outputs_averaged": {"merge": lambda x: merge(x) / x.shape[1]},
}


@pytest.mark.parametrize("name", SINGLES)
def test_one_mistake_in_attention_is_named(name):
    found = verdict(reader(**SINGLES[name]))
    assert found.mistake == name, found.message


SEVERAL = {
    "no_output_projection + no_scale": {**SINGLES["no_scale"], **SINGLES["no_output_projection"]},
    "split_by_view + merged_by_view": {**SINGLES["split_by_view"], **SINGLES["merged_by_view"]},
    "split_interleaved + merge_interleaved": {**SINGLES["split_interleaved"], **SINGLES["merge_interleaved"]},
    "weights_averaged + memory_unused": {**SINGLES["memory_unused"], **SINGLES["weights_averaged"]},
    "weights_averaged + mask_ignored": {**SINGLES["mask_ignored"], **SINGLES["weights_averaged"]},
    "projections_transposed + mask_inverted": {**SINGLES["projections_transposed"], **SINGLES["mask_inverted"]},
    "merged_by_view + scaled_by_d_model": {**SINGLES["scaled_by_d_model"], **SINGLES["merged_by_view"]},
    "inputs_exchanged + no_output_projection": {**SINGLES["inputs_exchanged"], **SINGLES["no_output_projection"]},
    "no_scale + softmax_over_queries": {**SINGLES["no_scale"], **SINGLES["softmax_over_queries"]},
    "merge_interleaved + zero_fill": {**SINGLES["zero_fill"], **SINGLES["merge_interleaved"]},
    "only_output + value_from_key_matrix": {**SINGLES["value_from_key_matrix"], **SINGLES["only_output"]},
    "scaled_without_root + mask_of_another_sequence": {
        **SINGLES["scaled_without_root"],
        **SINGLES["mask_of_another_sequence"],
    },
    "no_output_projection + split_by_view + no_scale": {
        **SINGLES["no_scale"],
        **SINGLES["no_output_projection"],
        **SINGLES["split_by_view"],
    },
    "only_output + no_scale + mask_inverted": {
        **SINGLES["no_scale"],
        **SINGLES["only_output"],
        **SINGLES["mask_inverted"],
    },
}


@pytest.mark.parametrize("names", SEVERAL)
def test_several_mistakes_at_once_are_named_each(names):
    found = verdict(reader(**SEVERAL[names]))
    assert found.mistake == names, found.message
    sentences = {m.name: m.sentence for m in reversed(ATTENTION.mistakes) if m.switches}
    for i, name in enumerate(names.split(" + "), start=1):
        assert f"\n{i}. {sentences[name]}" in found.message


def with_mask(weigh):
    """Multi-head attention whose weights are made by `weigh(scores, mask)`."""

    def answer(x_query, x_memory, w, n, mask=None):
        q, k, v = (split(x @ w[name], n) for x, name in ((x_query, "q"), (x_memory, "k"), (x_memory, "v")))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.softmax(-1) if mask is None else weigh(scores, mask)
        return merge(weights @ v) @ w["o"], weights

    return answer


def less_the_largest_absolute_value(scores, mask):
    scores = scores.masked_fill(~mask, -torch.inf)
    return (scores - scores.abs().amax(-1, keepdim=True)).softmax(-1)


def cut_after_the_shift(scores, mask):
    scores = scores.masked_fill(~mask, -torch.inf)
    return (scores - scores.amax(-1, keepdim=True)).clamp(min=-10).softmax(-1)


@pytest.mark.parametrize(
    ("name", "weigh"),
    [
        ("rows_masked_whole", lambda s, mask: s.masked_fill(~mask.all(-1, keepdim=True), -1e9).softmax(-1)),
        ("rows_masked_whole", lambda s, mask: s.masked_fill(~mask, -1e9).softmax(-1) * mask.all(-1, keepdim=True)),
        ("forbidden_infinite", lambda s, mask: s.masked_fill(~mask.all(-1, keepdim=True), -torch.inf).softmax(-1)),
        ("forbidden_infinite", less_the_largest_absolute_value),
        ("one_row_for_all_queries", lambda s, mask: s.masked_fill(~mask.any(-2, keepdim=True), -torch.inf).softmax(-1)),
        (None, cut_after_the_shift),
    ],
)
def test_what_is_said_of_a_misread_mask_is_true(name, weigh):
    assert verdict(with_mask(weigh)).mistake == name


def test_a_sentence_that_may_be_one_of_several_does_not_call_the_rest_right():
    for exercise in (SPLIT, MERGE, ATTENTION):
        for mistake in exercise.mistakes:
            if mistake.switches:
                assert " right, but" not in mistake.sentence and "in place, but" not in mistake.sentence, mistake.name


def test_several_mistakes_of_the_gallery_are_found_again():
    switches = {m.name: m for m in reversed(ATTENTION.mistakes) if m.switches}  # the first entry of each name
    some = ("weights_folded", "memory_unused", "one_matrix_for_all", "merged_by_view", "no_scale", "zero_fill")
    for pair in itertools.combinations(some, 2):
        found = verdict(ATTENTION.runnable(*(switches[name] for name in pair)))
        assert found.mistake == " + ".join(pair)


# ---------------------------------------------------------------- wrong answers in other people's styles
def through_the_module(x_query, x_memory, w, n, mask=None, *, transpose=True, first=True, blocked=True, **more):
    module = nn.MultiheadAttention(x_query.shape[-1], n, bias=False, batch_first=first)
    m = {k: w[k].T if transpose else w[k] for k in w}
    module.in_proj_weight = nn.Parameter(torch.cat([m["q"], m["k"], m["v"]]))
    module.out_proj.weight = nn.Parameter(m["o"])
    if mask is not None:
        mask = ~mask if blocked else mask
        mask = mask.expand(len(x_query), n, x_query.shape[1], x_memory.shape[1]).flatten(0, 1)
    return module(x_query, x_memory, x_memory, attn_mask=mask, **more)


def one_head_at_a_time(x_query, x_memory, w, n, mask=None, *, first=False, stack=1, before=False):
    d, outputs, maps = x_query.shape[-1] // n, [], []
    for h in range(n):
        c = slice(0, d) if first else slice(h * d, h * d + d)
        rows = c if before else slice(None)
        q, k, v = (
            x_query[..., rows] @ w["q"][rows, c],
            x_memory[..., rows] @ w["k"][rows, c],
            x_memory[..., rows] @ w["v"][rows, c],
        )
        s = q @ k.mT / d**0.5
        if mask is not None:
            s = s.masked_fill(~(mask[:, 0] if mask.dim() == 4 else mask), -1e9)
        maps.append(s.softmax(-1))
        outputs.append(maps[-1] @ v)
    return torch.cat(outputs, -1) @ w["o"], torch.stack(maps, stack)


def as_one_head(x_query, x_memory, w, n, mask=None):
    s = torch.bmm(x_query @ w["q"], (x_memory @ w["k"]).mT) / x_query.shape[-1] ** 0.5
    if mask is not None:
        s = s.masked_fill(~(mask.squeeze(1) if mask.dim() == 4 else mask), -1e9)
    return s.softmax(-1) @ (x_memory @ w["v"]) @ w["o"], s.softmax(-1)


def with_an_unchanged_length(x_query, x_memory, w, n, mask=None):
    b, t, d = x_query.shape
    return reader(split=lambda x, n: x.view(b, t, n, d // n).transpose(1, 2))(x_query, x_memory, w, n, mask)


def with_a_scaled_matrix(x_query, x_memory, w, n, mask=None):
    w["q"] /= (x_query.shape[-1] // n) ** 0.5
    return reader(**SINGLES["no_scale"])(x_query, x_memory, w, n, mask)


def splitting_too_early(x_query, x_memory, w, n, mask=None):
    return split(x_query, n) @ w["q"], split(x_memory, n) @ w["k"]


def options(fn, **more):
    return lambda *args: fn(*args, **more)


OTHERS = {
    "the module averages": (through_the_module, "weights_averaged"),
    "the module stores them transposed": (
        options(through_the_module, transpose=False, average_attn_weights=False),
        "projections_transposed",
    ),
    "the module blocks where True": (
        options(through_the_module, blocked=False, average_attn_weights=False),
        "mask_inverted",
    ),
    "the module takes the batch second": (
        lambda q, m, w, n, mask=None: through_the_module(q, m, w, n, first=False, average_attn_weights=False),
        "batch_attended",
    ),
    "a loop over one slice": (options(one_head_at_a_time, first=True), "same_slice_for_all"),
    "a loop that stacks in front": (options(one_head_at_a_time, stack=0), "weights_axes"),
    "a loop over slices of the input": (options(one_head_at_a_time, before=True), "split_before_projection"),
    "one head": (as_one_head, "single_head"),
    "F.linear": (
        lambda q, m, w, n, mask=None: reader()(q, m, {k: w[k].T for k in w}, n, mask),
        "projections_transposed",
    ),
    "residual": (lambda q, *a: (lambda o, a: (o + q, a))(*reader()(q, *a)), "residual_added"),
    "unchanged length": (with_an_unchanged_length, "lengths_taken_equal"),
    "scaled matrix": (with_a_scaled_matrix, "changes_input"),
    "split too early": (splitting_too_early, "heads_meet_whole_matrix"),
    "another name": (lambda q, m, w, n, mask=None: q @ w["W_q"], "no_such_matrix"),
    "if mask": (lambda q, m, w, n, mask=None: reader()(q, m, w, n, mask if mask else None), "mask_tested_for_truth"),
    "dropout": (reader(weights=F.dropout), "random"),
}


@pytest.mark.parametrize("style", OTHERS)
def test_a_wrong_answer_in_another_style_is_named(style):
    answer, name = OTHERS[style]
    found = verdict(answer)
    assert found.mistake == name, found.message


def by_distance(x_query, x_memory, w, n, mask=None):
    q, k, v = (split(x @ w[m], n) for m, x in (("q", x_query), ("k", x_memory), ("v", x_memory)))
    s = -torch.cdist(q, k)
    a = (s if mask is None else s.masked_fill(~mask, -1e9)).softmax(-1)
    return merge(a @ v) @ w["o"], a


def with_a_bias(x_query, x_memory, w, n, mask=None):
    return reader(split=lambda x, n: split(x + 0.1, n))(x_query, x_memory, w, n, mask)


@pytest.mark.parametrize("answer", [by_distance, with_a_bias])
def test_an_unknown_mistake_gets_no_name_but_the_first_difference(answer):
    found = verdict(answer)
    assert (found.status, found.mistake) == ("wrong", None)
    assert "The first entry of the weights that differs: at [batch 0, head 0, query 0, key 0]" in found.message
    assert found.difference is not None


def test_results_in_half_precision_are_not_called_wrong_weights():
    exercise = load("heads.multi_head_attention")
    halves = lambda *args: tuple(x.half() for x in exercise.reference(*args))  # noqa: E731
    found = exercise.check(halves, quiet=True)
    assert found.mistake is None and "should have dtype float32" in found.message
