"""The galleries of softmax and scaled_dot_product_attention: what is accepted, what is named, and how fast.

That every mistake is diagnosed as itself is tested in test_exercises.py for all exercises; it holds every two mistakes
apart, since two that the probes do not tell apart would share the name of the first.
"""

import itertools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from transformer_edu import attention
from transformer_edu.exercises import load
from transformer_edu.exercises.attention import attention_by_loop
from transformer_edu.exercises.outcome import same_outcome

SOFTMAX = load("attention.softmax")
ATTENTION = load("attention.scaled_dot_product_attention")


def verdict(fn, exercise=ATTENTION):
    return exercise.check(fn, quiet=True)


def scores_of(query, key):
    return query @ key.mT / math.sqrt(query.shape[-1])


def zero_where_forbidden(weights, mask):
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


def filled(scores, mask):
    return scores if mask is None else scores.masked_fill(~mask, torch.finfo(scores.dtype).min)


# ---------------------------------------------------------------- the specification
@pytest.mark.parametrize("i", range(len(ATTENTION.probes)), ids=[p.says for p in ATTENTION.probes])
def test_the_loop_gives_the_same_numbers_as_the_reference(i):
    arguments = ATTENTION.probes[i].make()
    tolerance = 5e-3 if arguments[0].dtype == torch.float16 else 1e-4
    expected = attention.scaled_dot_product_attention(*arguments)
    for a, b in zip(attention_by_loop(*arguments), expected, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def test_the_loop_can_be_followed_by_hand():
    query, key = torch.tensor([[[[2.0]]]]), torch.tensor([[[[0.0], [math.log(3) / 2], [9.0]]]])
    value = torch.tensor([[[[4.0], [8.0], [1.0]]]])
    output, weights = attention_by_loop(query, key, value, torch.tensor([True, True, False]))
    torch.testing.assert_close(weights, torch.tensor([[[[0.25, 0.75, 0.0]]]]))
    torch.testing.assert_close(output, torch.tensor([[[[7.0]]]]))


# ---------------------------------------------------------------- the probes
@pytest.mark.parametrize("exercise", [SOFTMAX, ATTENTION], ids=lambda e: e.name)
def test_ordinary_probes_saturate_no_softmax(exercise):
    for probe, outcome in zip(exercise.probes, exercise.expected(), strict=True):
        if probe.edge:
            continue
        weights = outcome.value[1] if exercise is ATTENTION else outcome.value
        mask = probe.make()[3] if exercise is ATTENTION and len(probe.make()) > 3 else None
        several = slice(None) if mask is None else mask.expand(weights.shape).sum(-1) > 1
        assert weights[several].max() < 0.95, probe.says


@pytest.mark.parametrize("exercise", [SOFTMAX, ATTENTION], ids=lambda e: e.name)
def test_each_probe_builds_its_arguments_anew(exercise):
    for probe in exercise.probes:
        for a, b in zip(probe.make(), probe.make(), strict=True):
            if isinstance(a, torch.Tensor):
                assert torch.equal(a, b) and a.data_ptr() != b.data_ptr(), probe.says


def test_a_mistake_is_called_an_edge_case_only_where_ordinary_probes_cannot_see_it():
    for exercise in (SOFTMAX, ATTENTION):
        right = exercise.expected()
        core = [i for i, probe in enumerate(exercise.probes) if not probe.edge]
        for mistake in exercise.mistakes:
            outcomes = exercise.expected(exercise.runnable(mistake))
            seen = not all(same_outcome(outcomes[i], right[i]) for i in core)
            assert seen != mistake.edge, (mistake.name, mistake.switches)


# ---------------------------------------------------------------- right answers
def by_exponentials(x, dim):
    e = torch.exp(x - x.max(dim, keepdim=True).values)
    return e / e.sum(dim, keepdim=True)


def by_log_sum_exp(x, dim):
    wide = x.double()
    return (wide - wide.logsumexp(dim, keepdim=True)).exp()


def by_moving_the_axis(x, dim):
    last = x.movedim(dim, -1)
    rows = [torch.exp(row - max(row)) for row in last.reshape(-1, last.shape[-1])]
    return torch.stack([row / sum(row) for row in rows]).reshape(last.shape).movedim(-1, dim)


def by_pairwise_differences(x, dim):
    last = x.movedim(dim, -1)
    return (1 / (last[..., None, :] - last[..., :, None]).exp().sum(-1)).movedim(-1, dim)


@pytest.mark.parametrize(
    "answer",
    [
        torch.softmax,
        by_exponentials,
        by_log_sum_exp,
        by_moving_the_axis,
        by_pairwise_differences,
        lambda x, dim: nn.Softmax(dim)(x),
        lambda x, dim: F.log_softmax(x, dim).exp(),
        lambda *both: torch.softmax(both[0].double(), both[1]),
    ],
)
def test_a_right_softmax_is_accepted(answer):
    found = verdict(answer, SOFTMAX)
    assert found.status == "correct", found.message
    assert found.carry_forward() is answer


def plain(query, key, value, mask=None):
    weights = zero_where_forbidden(filled(scores_of(query, key), mask).softmax(-1), mask)
    return weights @ value, weights


def with_einsum_and_letters(q, k, v, m=None):
    s = torch.einsum("bhid,bhjd->bhij", q * q.size(-1) ** -0.5, k)
    if m is not None:
        s = torch.where(m, s, -torch.inf)
        s = torch.where(m.any(-1, keepdim=True), s, 0.0)
    w = s.softmax(dim=3)
    if m is not None:
        w = w * m.any(-1, keepdim=True)
    return torch.einsum("bhij,bhjd->bhid", w, v), w


def with_the_maximum_of_allowed_keys(query, key, value, mask=None):
    s = scores_of(query.float(), key.float())
    allowed = torch.ones_like(s, dtype=torch.bool) if mask is None else mask.expand_as(s)
    top = s.masked_fill(~allowed, torch.finfo(s.dtype).min).amax(-1, keepdim=True)
    e = torch.where(allowed, (s - top).clamp(max=0).exp(), 0.0)
    total = e.sum(-1, keepdim=True)
    w = e / torch.where(total == 0, 1.0, total)
    return (w @ value.float()).to(value.dtype), w.to(value.dtype)


def with_heads_folded_into_the_batch(query, key, value, mask=None):
    b, h, n, d = query.shape
    m = key.shape[2]
    s = torch.bmm(query.reshape(b * h, n, d), key.reshape(b * h, m, d).transpose(1, 2)) / d**0.5
    if mask is not None:
        mask = mask.expand(b, h, n, m).reshape(b * h, n, m)
    w = zero_where_forbidden(filled(s, mask).softmax(-1), mask)
    return torch.bmm(w, value.reshape(b * h, m, -1)).reshape(b, h, n, -1), w.reshape(b, h, n, m)


def one_query_at_a_time(query, key, value, mask=None):
    rows = []
    for i in range(query.shape[2]):
        row = (query[:, :, i, None] * key).sum(-1) / math.sqrt(query.shape[-1])  # (batch, heads, key)
        allowed = None if mask is None else mask.expand(*query.shape[:3], key.shape[2])[:, :, i]
        rows.append(zero_where_forbidden(filled(row, allowed).softmax(-1), allowed))
    weights = torch.stack(rows, dim=2)
    return (weights[..., None] * value[:, :, None]).sum(-2), weights


class WithModule(nn.Module):
    def forward(self, query, key, value, mask=None):
        weights = nn.Softmax(-1)(filled(scores_of(query, key), mask))
        weights = nn.Dropout(0.5).eval()(zero_where_forbidden(weights, mask))
        return [weights.matmul(value), weights]


def with_the_fused_kernel_and_one_value_at_a_time(query, key, value, mask=None):
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    columns = [F.scaled_dot_product_attention(query, key, one, attn_mask=mask) for one in _unit_values(key)]
    return output, torch.cat(columns, dim=-1)


def _unit_values(key):
    for j in range(key.shape[2]):
        yield F.one_hot(torch.tensor(j), key.shape[2]).to(key.dtype)[:, None].expand(*key.shape[:2], -1, 1)


def infinity_added_and_mended_before_the_softmax(query, key, value, mask=None):
    s = scores_of(query, key)
    if mask is not None:
        bias = torch.zeros(mask.shape, dtype=s.dtype).masked_fill(~mask, -torch.inf)
        bias = bias.masked_fill(~mask.any(-1, keepdim=True), 0.0)
        s = s + bias
    w = zero_where_forbidden(s.softmax(-1), mask)
    return w @ value, w


def right_with_double_precision(query, key, value, mask=None):
    return plain(query.double(), key.double(), value.double(), mask)


@pytest.mark.parametrize(
    "answer",
    [
        plain,
        with_einsum_and_letters,
        with_the_maximum_of_allowed_keys,
        with_heads_folded_into_the_batch,
        one_query_at_a_time,
        WithModule(),
        with_the_fused_kernel_and_one_value_at_a_time,
        infinity_added_and_mended_before_the_softmax,
        right_with_double_precision,
        lambda *arguments: plain(*arguments),
    ],
)
def test_a_right_attention_is_accepted(answer):
    found = verdict(answer)
    assert found.status == "correct", found.message
    assert found.carry_forward() is answer


# ---------------------------------------------------------------- wrong answers, named
def attend(*, scale=None, dim=-1, fill=None, zero=True, after=False, exchanged=False, inverted=False, **more):
    """A reader's attention with things gone wrong, written without a look at the gallery's."""

    def answer(query, key, value, mask=None):
        s = query @ key.transpose(-2, -1)
        s = s / math.sqrt(query.shape[-1]) if scale is None else s * scale(query, key)
        allowed = mask if mask is None or not inverted else ~mask
        if allowed is not None and not after:
            s = s.masked_fill(allowed.logical_not(), torch.finfo(s.dtype).min if fill is None else fill)
        w = F.softmax(s, dim=dim)
        if allowed is not None and zero:
            w = w.masked_fill(allowed.logical_not(), 0.0)
        output = w.matmul(more.get("average", lambda q, k, v: v)(query, key, value))
        return (w, output) if exchanged else (output, w)

    return answer


def bare(query, key):
    return 1.0


def by_width(query, key):
    return 1 / query.shape[-1]


SINGLES = {
    "no_scale": attend(scale=bare),
    "divided_by_d_k": attend(scale=by_width),
    "scaled_by_d_model": attend(scale=lambda q, k: (q.shape[1] * q.shape[-1]) ** -0.5),
    "scaled_by_length": attend(scale=lambda q, k: k.shape[2] ** -0.5),
    "half_instead_of_root": attend(scale=lambda q, k: 1 / (q.shape[-1] ** 1 / 2)),
    "softmax_over_queries": attend(dim=-2),
    "softmax_over_heads": attend(dim=1, fill=-torch.inf, zero=False),
    "mask_inverted": attend(inverted=True, zero=False),
    "score_zero": attend(fill=1e-9, zero=False),
    "forbidden_preferred": attend(fill=6e4, zero=False),
    "mask_after_softmax": attend(after=True),
    "mask_ignored": attend(after=True, zero=False),
    "keys_averaged": attend(average=lambda q, k, v: k),
    "results_exchanged": attend(exchanged=True),
    "empty_row_uniform": attend(zero=False),
    "empty_row_nan": attend(fill=-torch.inf, zero=False),
    "fill_too_large_for_half": attend(fill=-1e12, zero=False),
    "fill_not_low_enough": attend(fill=-1e4),
}


@pytest.mark.parametrize("name", SINGLES)
def test_one_mistake_is_named(name):
    assert verdict(SINGLES[name]).mistake == name


PAIRS = {
    "no_scale + softmax_over_queries": attend(scale=bare, dim=-2),
    "no_scale + mask_inverted": attend(scale=bare, inverted=True, zero=False),
    "divided_by_d_k + mask_after_softmax": attend(scale=by_width, after=True),
    "no_scale + results_exchanged": attend(scale=bare, exchanged=True),
    "no_scale + empty_row_nan": attend(scale=bare, fill=-torch.inf, zero=False),
    "divided_by_d_k + fill_too_large_for_half": attend(scale=by_width, fill=-1e9, zero=False),
    "mask_after_softmax + softmax_over_queries": attend(dim=-2, after=True),
    "softmax_over_queries + keys_averaged": attend(dim=-2, average=lambda q, k, v: k),
    "score_zero + results_exchanged": attend(fill=0.0, zero=False, exchanged=True),
    "no_scale + keys_averaged + empty_row_uniform": attend(scale=bare, zero=False, average=lambda q, k, v: k),
}


@pytest.mark.parametrize("names", PAIRS)
def test_several_mistakes_at_once_are_named_each(names):
    found = verdict(PAIRS[names])
    assert found.mistake == names
    assert (
        f"1. {next(m.sentence for m in ATTENTION.mistakes if m.name == found.mistake.split(' + ')[0])}" in found.message
    )


def test_several_mistakes_of_the_gallery_are_found_again():
    switches = {m.name: m for m in reversed(ATTENTION.mistakes)}  # the first entry of each name
    some = ("no_scale", "query_and_key_exchanged", "mask_ignored", "softmax_over_queries", "weights_transposed")
    for pair in itertools.combinations(some, 2):
        found = verdict(ATTENTION.runnable(*(switches[name] for name in pair)))
        assert found.mistake == " + ".join(pair)


def test_an_edge_case_that_is_left_over_is_mentioned():
    def half_refused(query, key, value, mask=None):
        if query.dtype == torch.float16:
            raise KeyError("no half precision here")
        return attend(scale=bare)(query, key, value, mask)

    found = verdict(half_refused)
    assert found.mistake == "no_scale"
    assert "There may be more" in found.message and "float16" in found.message


# ---------------------------------------------------------------- wrong answers, named by what shows
def with_weights(change):
    def answer(query, key, value, mask=None):
        output, weights = plain(query, key, value, mask)
        return output, change(weights, mask)

    return answer


def with_output(change):
    def answer(query, key, value, mask=None):
        output, weights = plain(query, key, value, mask)
        return change(output, value), weights

    return answer


def needs_a_mask(query, key, value, mask):
    return plain(query, key, value, mask)


def stumbles_without_a_mask(query, key, value, mask=None):
    mask = mask.bool()
    return plain(query, key, value, mask)


def leaks_a_share(query, key, value, mask=None):
    _, open_weights = plain(query, key, value)
    _, weights = plain(query, key, value, mask)
    mixed = weights if mask is None else 0.9 * weights + 0.1 * open_weights
    return mixed @ value, mixed


def forgets_the_gradient(query, key, value, mask=None):
    return tuple(x.to(value.dtype) for x in attention_by_loop(query, key, value, mask))


def fixes_the_dtype(query, key, value, mask=None):
    weights = torch.zeros(*query.shape[:-1], key.shape[2])
    weights = weights + plain(query, key, value, mask)[1]
    return weights @ value, weights


def shrunk(query, key, value, mask=None):
    weights = plain(query, key, value, mask)[1] * 0.7
    return weights @ value, weights


def repeats_masks_in_the_wrong_order(query, key, value, mask=None):
    if mask is not None:
        mask = mask.expand(*query.shape[:3], key.shape[2])
        mask = mask.transpose(0, 1).reshape(mask.shape)  # heads and sequences mixed up
    return plain(query, key, value, mask)


def overflows(query, key, value, mask=None):
    s = scores_of(query, key)
    e = 2 ** (s / math.log(2))
    e = e if mask is None else e * mask
    w = e / e.sum(-1, keepdim=True).clamp_min(1e-20)
    return w @ value, w


SYMPTOMS = {
    "constant_scale": attend(scale=lambda q, k: 0.125),
    "wrong_scale": attend(scale=lambda q, k: 1 / (1 + math.log(q.shape[-1]))),
    "forbidden_score_too_high": attend(fill=-2.5, zero=False),
    "forbidden_keys_keep_weight": leaks_a_share,
    "weights_not_those_used": with_weights(lambda w, m: w**2),
    "output_not_weighted_values": with_output(lambda o, v: o + 0.1),
    "rows_do_not_sum_to_one": shrunk,
    "mask_of_another_sequence": repeats_masks_in_the_wrong_order,
    "half_precision_raises": fixes_the_dtype,
    "mask_required": needs_a_mask,
    "mask_none_raises": stumbles_without_a_mask,
    "no_gradient": forgets_the_gradient,
}


@pytest.mark.parametrize("name", SYMPTOMS)
def test_a_symptom_is_named(name):
    found = verdict(SYMPTOMS[name])
    assert found.mistake == name, found.message


def test_overflow_is_named():
    assert verdict(overflows).mistake == "unstable_softmax"
    assert verdict(lambda x, dim: x.exp() / x.exp().sum(dim, keepdim=True), SOFTMAX).mistake == "unstable"


def rows_judged_whole(reduced, fill, zero=True):
    def answer(query, key, value, mask=None):
        allowed = None if mask is None else reduced(mask)
        return attend(fill=fill, zero=zero)(query, key, value, allowed)

    return answer


@pytest.mark.parametrize(
    ("reduced", "said"),
    [
        (lambda mask: mask.all(-1, keepdim=True), "A query that may not attend to some key may attend to none"),
        (lambda mask: mask.any(-1, keepdim=True), "Only rows with nothing to attend to are masked"),
    ],
    ids=["all", "any"],
)
@pytest.mark.parametrize(("fill", "zero"), [(None, True), (-torch.inf, False), (-1e9, False), (-1e9, True)])
def test_a_mask_reduced_to_whole_rows_is_not_called_a_mask_after_the_softmax(reduced, said, fill, zero):
    found = verdict(rows_judged_whole(reduced, fill, zero))
    assert found.mistake == "rows_masked_whole"
    assert said in found.message


def test_rows_emptied_where_one_key_is_forbidden_are_named():
    def answer(query, key, value, mask=None):
        weights = plain(query, key, value, mask)[1]
        weights = weights if mask is None else weights * mask.all(-1, keepdim=True)
        return weights @ value, weights

    assert verdict(answer).mistake == "rows_masked_whole"


@pytest.mark.parametrize("settings", [{}, {"zero": False}, {"fill": -torch.inf, "zero": False}])
def test_weights_returned_without_the_mask_beside_a_masked_output_are_named(settings):
    def answer(query, key, value, mask=None):
        return attend(**settings)(query, key, value, mask)[0], scores_of(query, key).softmax(-1)

    found = verdict(answer)
    assert found.mistake == "weights_without_mask"
    assert "The weights that you return were computed without the mask" in found.message
    unscaled = lambda *a: (plain(*a)[0], (a[0] @ a[1].mT).softmax(-1))  # noqa: E731
    assert verdict(unscaled).mistake == "weights_not_those_used"


@pytest.mark.parametrize("fill", [None, -torch.inf])
def test_a_mask_read_in_opposite_ways_before_and_after_the_softmax_is_named(fill):
    def answer(query, key, value, mask=None):
        weights = attend(inverted=True, fill=fill, zero=False)(query, key, value, mask)[1]
        weights = zero_where_forbidden(weights, mask)
        return weights @ value, weights

    assert verdict(answer).mistake == "mask_inverted_once"


def own_softmax(shift, hide=False):
    def answer(x, dim=-1):
        e = (x - shift(x, dim)).exp()
        weights = e / e.sum(dim, keepdim=True)
        return weights.nan_to_num() if hide else weights

    return answer


ABSOLUTE = own_softmax(lambda x, dim: x.abs().amax(dim, keepdim=True))
PLACE = own_softmax(lambda x, dim: x.argmax(dim, keepdim=True))


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("shifted_by_absolute", ABSOLUTE),
        ("shifted_by_absolute", own_softmax(lambda x, dim: x.abs().max())),
        ("clamped", lambda x, dim: own_softmax(lambda x, dim: 0)(x.clamp(max=80), dim)),
        ("clamped", lambda x, dim: torch.softmax(x.clamp(-30, 30), dim)),
        ("clamped", lambda x, dim: torch.softmax(x.clamp(-88, 88), dim)),
        ("overflow_hidden", own_softmax(lambda x, dim: 0, hide=True)),
        ("unstable", PLACE),
        ("unstable", own_softmax(lambda x, dim: x.amax(dim, keepdim=True).clamp(min=0))),
        ("wrong_for_large_numbers", lambda x, dim: (x * (x.abs() < 100)).softmax(dim)),
    ],
)
def test_what_goes_wrong_with_large_numbers_is_told_apart(name, answer):
    assert verdict(answer, SOFTMAX).mistake == name


def with_softmax(softmax, fill=None):
    def answer(query, key, value, mask=None):
        scores = scores_of(query, key)
        scores = filled(scores, mask) if fill is None or mask is None else scores.masked_fill(~mask, fill)
        weights = zero_where_forbidden(softmax(scores), mask if fill is None else None)
        return weights @ value, weights

    return answer


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("unstable_softmax", with_softmax(PLACE)),  # and not "fill_not_low_enough" beside it
        ("empty_row_nan + unstable_softmax", with_softmax(PLACE, -torch.inf)),
        ("overflow_hidden", with_softmax(own_softmax(lambda x, dim: 0, hide=True))),
        ("overflow_hidden", with_softmax(own_softmax(lambda x, dim: 0, hide=True), -torch.inf)),
        ("empty_row_attended", with_softmax(lambda x: x.clamp(-88, 88).softmax(-1), -torch.inf)),
        ("forbidden_infinite", with_softmax(ABSOLUTE, -torch.inf)),
        (None, with_softmax(lambda x: (x - x.amax(-1, keepdim=True)).clamp(min=-10).softmax(-1), -torch.inf)),
        (None, with_softmax(ABSOLUTE)),
    ],
)
def test_a_softmax_of_the_readers_own_is_not_blamed_on_the_mask(name, answer):
    assert verdict(answer).mistake == name


def test_where_an_infinity_is_subtracted_the_sentence_says_so():
    assert "the absolute value of -inf" in verdict(with_softmax(ABSOLUTE, -torch.inf)).message
    assert "(amax gives it; argmax gives only its place)" in verdict(with_softmax(PLACE)).message


@pytest.mark.parametrize(("name", "dim"), [("softmax_over_heads", 1), ("softmax_over_batch", 0)])
def test_a_softmax_over_another_axis_with_the_mask_after_it_is_named(name, dim):
    found = verdict(attend(dim=dim, after=True))
    assert found.mistake == name
    assert "the mask acts after it" in found.message


@pytest.mark.parametrize("settings", [{}, {"zero": False}, {"fill": -torch.inf, "zero": False}])
def test_a_softmax_applied_twice_is_named_however_the_mask_is_applied(settings):
    def answer(query, key, value, mask=None):
        scores = scores_of(query, key)
        if mask is not None:
            scores = scores.masked_fill(~mask, settings.get("fill", torch.finfo(scores.dtype).min))
        weights = scores.softmax(-1).softmax(-1)
        weights = zero_where_forbidden(weights, mask) if settings.get("zero", True) else weights
        return weights @ value, weights

    assert verdict(answer).mistake == "softmax_twice"


def test_an_empty_row_whose_exponentials_are_all_0_is_not_said_to_hold_minus_infinity():
    found = verdict(with_softmax(lambda x: x.exp() / x.exp().sum(-1, keepdim=True), -1e4))
    assert "-inf, and the weights" not in found.message and "every exp is 0" in found.message


@pytest.mark.parametrize("reduced", [lambda w: w.any(-1, keepdim=True), lambda w: (~w).any(-1, keepdim=True)])
def test_an_inverted_mask_is_named_however_empty_rows_are_treated(reduced):
    def answer(query, key, value, mask=None):
        weights = attend(inverted=True, zero=False)(query, key, value, mask)[1]
        weights = weights if mask is None else weights * reduced(mask)
        return weights @ value, weights

    assert verdict(answer).mistake == "mask_inverted"


def test_dropout_that_is_always_on_is_named():
    def answer(query, key, value, mask=None):
        weights = plain(query, key, value, mask)[1]
        return F.dropout(weights, 0.1) @ value, weights

    assert verdict(answer).mistake == "random"


def test_numpy_arrays_are_named():
    assert verdict(lambda *a: tuple(x.detach().numpy() for x in plain(*a))).mistake == "numpy_result"
    assert verdict(lambda x, dim: x.softmax(dim).numpy(), SOFTMAX).mistake == "numpy_result"


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("ignores_dim", lambda x, dim: x.softmax(-1)),
        ("no_keepdim", lambda x, dim: (x - x.max()).exp() / (x - x.max()).exp().sum(dim)),
        ("not_normalised", lambda x, dim: x.exp()),
        ("logarithm", lambda x, dim: x - x.logsumexp(dim, keepdim=True)),
        ("maximum_with_indices", lambda x, dim: (x - x.max(dim, keepdim=True)).exp()),
        ("shifted_by_everything", lambda x, dim: by_exponentials(x - x.max(), dim) if x.max() - x.min() < 20
         else (x - x.max()).exp() / (x - x.max()).exp().sum(dim, keepdim=True)),
        ("sum_of_everything", lambda x, dim: x.flatten().softmax(0).reshape(x.shape)),
        ("changes_input", lambda x, dim: x.sub_(x.amax(dim, keepdim=True)).softmax(dim)),
        ("ignores_dim + logarithm", lambda x, dim: x.log_softmax(-1)),
        ("scaled", lambda x, dim: (x / 2).softmax(dim)),
        ("does_not_sum_to_one", lambda x, dim: x.softmax(dim) ** 2),
    ],
)  # fmt: skip
def test_a_wrong_softmax_is_named(name, answer):
    assert verdict(answer, SOFTMAX).mistake == name


# ---------------------------------------------------------------- wrong answers without a name
def squashed(query, key, value, mask=None):
    s = filled(torch.tanh(scores_of(query, key)), mask)
    w = zero_where_forbidden(s.softmax(-1), mask)
    return w @ value, w


def by_distance(query, key, value, mask=None):
    s = filled(-torch.cdist(query.float(), key.float()), mask)
    w = zero_where_forbidden(s.softmax(-1), mask)
    return w @ value.float(), w


@pytest.mark.parametrize("answer", [squashed, by_distance])
def test_an_unknown_mistake_gets_no_name_but_the_first_difference(answer):
    found = verdict(answer)
    assert (found.status, found.mistake) == ("wrong", None)
    assert "The first entry of the weights that differs: at [batch 0, head 0, query 0, key 0]" in found.message
    assert found.difference is not None


def test_a_softmax_in_half_precision_is_not_called_wrong_for_large_numbers():
    found = load("attention.softmax").check(lambda x, dim: x.softmax(dim).half(), quiet=True)
    assert found.mistake is None and "should have dtype float32, but has float16" in found.message
