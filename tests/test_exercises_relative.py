"""The galleries of lesson 07: right answers of every form are accepted, and mistakes that no gallery holds are placed.

That every mistake is diagnosed as itself is tested in test_exercises.py for all exercises.
"""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from transformer_edu.exercises import load, relative_rope
from transformer_edu.exercises.relative_alibi import bias_wrongly, slopes_wrongly
from transformer_edu.exercises.relative_rope import FORMS, rope_wrongly
from transformer_edu.exercises.relative_scores import scores_wrongly
from transformer_edu.exercises.relative_shaw import shaw_wrongly
from transformer_edu.exercises.relative_shift import shift_wrongly
from transformer_edu.exercises.relative_t5 import t5_wrongly
from transformer_edu.exercises.relative_table import table_wrongly

arange = torch.arange


def verdict(name, fn):
    return load(f"relative.{name}").check(fn, quiet=True)


def mistake(name, fn):
    return verdict(name, fn).mistake


# ---------------------------------------------------------------- right answers, unusual
def columns(t):
    return t - 1 - arange(t)[:, None] + arange(t)


def padded_and_viewed(x):
    b, h, t, n = x.shape
    return F.pad(x, (1, 0)).view(b, h, n + 1, t)[:, :, 1:].reshape(b, h, t, n)[..., :t]


def padded_and_flattened(x):
    b, h, t, n = x.shape
    flat = F.pad(F.pad(x, (0, 1)).flatten(2), (0, t - 1))
    return flat.view(b, h, t + 1, n)[:, :, :t, t - 1 :]


def rolled(x):
    t = x.shape[2]
    return torch.stack([torch.roll(x[:, :, i], i, -1) for i in range(t)], 2)[..., -t:]


def strided(x):
    b, h, t, n = x.shape
    return x.as_strided((b, h, t, t), (h * t * n, t * n, n - 1, 1), t - 1)


def one_hot(x):
    t, n = x.shape[2:]
    return torch.einsum("bhin,ijn->bhij", x, F.one_hot(columns(t), n).float())


def two_halves(t, d):
    frequencies = torch.exp(-arange(0, d, 2) * math.log(10000.0) / d)
    past = torch.zeros(t, d)
    past[:, 0::2], past[:, 1::2] = (arange(t)[:, None] * frequencies).sin(), (arange(t)[:, None] * frequencies).cos()
    future = past * torch.tensor([-1.0, 1.0]).repeat(d // 2)
    return torch.cat([past.flip(0), future[1:]])


def head_by_head(q, k, p, u, v):
    t, d = q.shape[2:]
    scores = torch.empty(*q.shape[:3], t)
    for h in range(q.shape[1]):
        rows = p[h][columns(t)]  # (query, key, d)
        scores[:, h] = (q[:, h] + u[h]) @ k[:, h].mT + torch.einsum("bid,ijd->bij", q[:, h] + v[h], rows)
    return scores / d**0.5


def from_a_cached_square(q_len, k_len, m):
    return ((arange(k_len) - arange(k_len)[:, None]).clamp(-m, m) + m)[-q_len:]


def counted_one_by_one(rel, bidirectional=True, num_buckets=32, max_distance=128):
    def bucket(r):
        n, offset = num_buckets, 0
        if bidirectional:
            n //= 2
            offset, r = n * (r > 0), abs(r)
        r = r if bidirectional else max(-r, 0)
        exact = n // 2
        far = 0 if r < exact else int(math.log(r / exact, max_distance / exact) * (n - exact))
        return offset + (r if r < exact else min(exact + far, n - 1))

    return torch.tensor([bucket(int(r)) for r in rel.flatten()]).view(rel.shape)


def authors_slopes(n):
    def power(m):
        start = 2 ** (-(2 ** -(math.log2(m) - 3)))
        return [start * start**i for i in range(m)]

    low = 2 ** math.floor(math.log2(n))
    return power(low) + power(2 * low)[0::2][: n - low]


def stacked_bias(n_heads, q_len, k_len):
    away = (arange(k_len - q_len, k_len)[:, None] - arange(k_len)).abs().double()
    return torch.stack([-slope * away for slope in authors_slopes(n_heads)])


UNUSUAL = [
    *(("relative_shift", f) for f in (padded_and_viewed, padded_and_flattened, rolled, strided, one_hot)),
    ("relative_table", two_halves),
    ("relative_scores", head_by_head),
    ("shaw_index", from_a_cached_square),
    ("shaw_index", lambda q, k, m: from_a_cached_square(q, k, m).int()),
    ("t5_bucket", counted_one_by_one),
    ("t5_bucket", lambda *a: counted_one_by_one(*a).int()),
    ("alibi_slopes", authors_slopes),
    ("alibi_slopes", lambda n: tuple(authors_slopes(n))),
    ("alibi_slopes", lambda n: np.array(authors_slopes(n))),
    ("alibi_slopes", lambda n: [torch.tensor(x) for x in authors_slopes(n)]),
    ("alibi_bias", stacked_bias),
]


@pytest.mark.parametrize(("name", "fn"), UNUSUAL)
def test_an_unusual_right_answer_is_accepted(name, fn):
    found = verdict(name, fn)
    assert found.status == "correct" and found.carry_forward() is fn, found.message


WRONGLY = {
    "relative_shift": shift_wrongly,
    "relative_table": table_wrongly,
    "relative_scores": scores_wrongly,
    "shaw_index": shaw_wrongly,
    "t5_bucket": t5_wrongly,
    "alibi_slopes": slopes_wrongly,
    "alibi_bias": bias_wrongly,
    "rope": rope_wrongly,
}


@pytest.mark.parametrize("name", WRONGLY)
def test_the_wrong_implementation_is_right_without_a_switch(name):
    assert verdict(name, WRONGLY[name]).status == "correct"


# ---------------------------------------------------------------- rope: every rotation that serves
def pairs(x, pairing):
    return (x[..., 0::2], x[..., 1::2]) if pairing == "interleaved" else x.chunk(2, -1)


def angles(x, positions, base):
    t, d = x.shape[2:]
    places = arange(t) if positions is None else positions
    return places[:, None] * base ** (-arange(0, d, 2).float() / d)


def turned(pairing, layout, turn, start=0.0):
    """A function that turns the pairs of one pairing and puts the columns together by `layout`."""

    def rope(x, positions=None, base=10000.0):
        a, b = pairs(x, pairing)
        at = angles(x, positions, base)
        at = at + start * angles(x, torch.ones(1), base)
        return layout(turn(a, b, at.cos(), at.sin()))

    return rope


def woven(columns):
    return torch.stack(columns, -1).flatten(-2)


def joined(columns):
    return torch.cat(columns, -1)


TURNS = {
    "forwards": lambda a, b, c, s: (a * c - b * s, a * s + b * c),
    "backwards": lambda a, b, c, s: (a * c + b * s, b * c - a * s),
    "sine and cosine exchanged": lambda a, b, c, s: (a * s - b * c, a * c + b * s),
    "mirrored": lambda a, b, c, s: (a * c - b * s, -a * s - b * c),
    "second column first": lambda a, b, c, s: (a * s + b * c, a * c - b * s),
}


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
@pytest.mark.parametrize("layout", [woven, joined])
@pytest.mark.parametrize("pairing", ["interleaved", "half_split"])
def test_every_turn_that_gives_the_right_dot_products_is_accepted(pairing, layout, turn):
    rope = turned(pairing, layout, turn)
    found = verdict("rope", rope)
    assert found.status == "correct" and found.carry_forward() is rope, found.message
    x = torch.randn(1, 1, 6, 8, generator=torch.Generator().manual_seed(0))
    forwards, other = (f(x) @ f(x).mT for f in (load("relative.rope").reference, rope))
    same = (
        pairing == "interleaved" and TURNS["backwards"] is not turn and TURNS["sine and cosine exchanged"] is not turn
    )
    assert torch.allclose(forwards, other, atol=1e-4) == same  # the others have other pairs, or turn the other way


def test_counting_from_one_is_accepted_and_said():
    found = verdict("rope", turned("interleaved", woven, TURNS["forwards"], start=1.0))
    assert found.status == "correct"
    assert "In yours position 0 is changed too" in found.message


def test_the_slowest_pair_may_stand_first():
    assert verdict("rope", lambda *a: rope_wrongly(*a, slowest="first")).status == "correct"


def test_the_plain_answer_is_accepted_without_a_remark():
    assert verdict("rope", turned("half_split", joined, TURNS["forwards"])).message == "✓ relative.rope: correct."


def test_two_ways_of_counting_positions_do_not_agree():
    def rope(x, positions=None, base=10000.0):
        return rope_wrongly(x, arange(1, x.shape[2] + 1) if positions is None else positions, base)

    assert mistake("rope", rope) == "two_starts"


@pytest.mark.parametrize("form", FORMS[:4], ids=lambda form: f"{form['pairing']} {form['turn']}")
@pytest.mark.parametrize("switches", [{"exponent": "halved"}, {"places": "ignored"}, {"axis": "heads"}], ids=str)
def test_a_mistake_is_named_beside_each_right_form(form, switches):
    plain = mistake("rope", lambda *a: rope_wrongly(*a, **switches))
    assert plain is not None
    assert mistake("rope", lambda *a: rope_wrongly(*a, **form, **switches)) == plain


def test_a_mistake_of_an_answer_that_turns_position_0_too_is_named_without_its_numbers():
    def rope(x, positions=None, base=10000.0):
        places = arange(x.shape[2]) if positions is None else positions
        return rope_wrongly(x, places + 1, base, exponent="halved")

    found = verdict("rope", rope)
    assert found.mistake == "exponent_halved" and found.difference is None
    assert "you gave" not in found.message


def test_two_mistakes_are_named_with_the_other_pairing_too():
    both = {"places": "ignored", "exponent": "halved"}
    found = mistake("rope", lambda *a: rope_wrongly(*a, pairing="half_split", **both))
    assert set(found.split(" + ")) == {"positions_ignored", "exponent_halved"}


def test_what_is_no_turn_and_what_turns_otherwise_are_told_apart():
    assert mistake("rope", lambda x, *rest: torch.zeros_like(x)) == "lengths_change"

    def too_fast(x, positions=None, base=10000.0):
        return rope_wrongly(x, 3 * (arange(x.shape[2]) if positions is None else positions), base)

    assert mistake("rope", too_fast) == "angles_wrong"


def test_frequencies_that_rise_are_named_in_single_precision_too():
    def rope(x, positions=None, base=10000.0):
        d = x.shape[-1]
        places = arange(x.shape[2]) if positions is None else positions
        a, b = pairs(x, "half_split")
        at = places.float()[:, None] * torch.exp(arange(0, d, 2) * (math.log(base) / d))
        return torch.cat([a * at.cos() - b * at.sin(), a * at.sin() + b * at.cos()], -1)

    assert mistake("rope", rope) == "frequencies_rise"


def test_a_slow_answer_is_judged_without_trying_all_forms(monkeypatch):
    monkeypatch.setattr(relative_rope, "PATIENCE", -1)
    calls = []

    def slow(*a):
        calls.append(a)
        return rope_wrongly(*a, pairing="half_split")

    assert verdict("rope", slow).status == "correct"
    assert len(calls) < 4 * len(load("relative.rope").probes)


def test_mixed_pairings_are_named_whichever_of_the_two_the_columns_follow():
    def halves_turned(x, positions=None, base=10000.0):
        at = angles(x, positions, base).repeat_interleave(2, -1)
        a, b = pairs(x, "half_split")
        return x * at.cos() + torch.cat([-b, a], -1) * at.sin()

    def neighbours_turned(x, positions=None, base=10000.0):
        at = angles(x, positions, base).repeat(1, 2)
        a, b = pairs(x, "interleaved")
        return x * at.cos() + woven([-b, a]) * at.sin()

    assert mistake("rope", halves_turned) == mistake("rope", neighbours_turned) == "mixed_conventions"


# ---------------------------------------------------------------- what the numbers tell where no gallery does
def test_rows_that_start_elsewhere_are_told_by_their_numbers():
    assert (
        mistake(
            "relative_shift",
            lambda x: x[
                :, :, arange(x.shape[2])[:, None], arange(x.shape[2])[:, None].flip(0) // 2 + arange(x.shape[2])
            ],
        )
        == "wrong_start"
    )


def test_a_column_past_the_end_is_named_however_it_is_read():
    def by_index(x):
        return x[:, :, arange(x.shape[2])[:, None], columns(x.shape[2]) + 1]

    def by_gather(x):
        return x.gather(-1, (columns(x.shape[2]) + 1).expand(*x.shape[:3], -1))

    assert mistake("relative_shift", by_index) == mistake("relative_shift", by_gather) == "column_past_the_end"


def test_heads_that_mix_are_named_where_one_head_is_right():
    assert mistake("relative_shift", lambda x: shift_wrongly(x.flip(1))) == "heads_mixed"
    assert mistake("relative_scores", lambda q, k, p, u, v: scores_wrongly(q, k, p, u.flip(0), v)) == "heads_mixed"


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (lambda q, k, p, u, v: (q, k, p, u * 2, v * 2), "biases_wrong"),
        (lambda q, k, p, u, v: (q, k, p.roll(1, -1), u, v), "position_part_wrong"),
        (lambda q, k, p, u, v: (q, k.roll(1, -1), p, u, v), "content_part_wrong"),
        (lambda q, k, p, u, v: (q * 3, k, p, u * 3, v * 3), "wrong_scale"),
    ],
)
def test_the_part_of_the_scores_that_is_wrong_is_named(changed, named):
    assert mistake("relative_scores", lambda *a: scores_wrongly(*changed(*a))) == named


@pytest.mark.parametrize(
    ("name", "fn"),
    [
        ("relative_table", lambda t, d: table_wrongly(t, d).tolist()),
        ("shaw_index", lambda *a: shaw_wrongly(*a).tolist()),
        ("alibi_bias", lambda *a: bias_wrongly(*a).tolist()),
    ],
)
def test_right_numbers_in_nested_lists_are_named(name, fn):
    assert mistake(name, fn) == "list_result"


def test_half_precision_is_not_taken_for_a_mistake_of_positions():
    found = verdict("alibi_bias", lambda *a: bias_wrongly(*a).half())
    assert (found.status, found.mistake) == ("wrong", None)
    assert "should have dtype float32" in found.message


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (lambda r, both, b: torch.where(r.abs() < 8, r.abs() * 0, b), "near_wrong"),
        (lambda r, both, b: torch.where(r.abs() > 120, 3, b), "last_bucket_wrong"),
        (lambda r, both, b: torch.where(r > 0, 5, b), "future_wrong"),
        (lambda r, both, b: torch.where(r < 0, 5, b), "past_wrong"),
        (lambda r, both, b: b if both else b + 7, "causal_wrong"),
        (lambda r, both, b: b + 7 if both else b, "bidirectional_wrong"),
    ],
)
def test_the_buckets_that_are_wrong_are_named(changed, named):
    def t5(rel, bidirectional=True, *rest):
        return changed(rel, bidirectional, t5_wrongly(rel, bidirectional, *rest)).long()

    assert mistake("t5_bucket", t5) == named


def test_buckets_for_a_list_alone_are_named():
    def t5(rel, *rest):
        return torch.tensor([int(counted_one_by_one(r, *rest)) for r in rel])

    assert mistake("t5_bucket", t5) == "one_axis_only"


def test_no_distance_is_asked_for_at_which_rounding_decides():
    for probe in load("relative.t5_bucket").probes:
        rel, both, *rest = probe.make()
        n, limit = rest or (32, 128)
        n = n // 2 if both else n
        exact = n // 2
        away = rel.abs().double() if both else (-rel).clamp(min=0).double()
        inside = away[(away > exact) & (away < limit)]
        place = torch.log(inside / exact) / math.log(limit / exact) * (n - exact)
        assert ((place - place.round()).abs() > 1e-3).all(), probe.says


def test_three_mistakes_at_once_are_named_as_three():
    found = verdict("shaw_index", lambda q, k, m: (arange(q)[:, None] - arange(k)).clamp(-m, m))
    assert set(found.mistake.split(" + ")) == {"query_minus_key", "queries_from_zero", "no_offset"}
    assert "Three things at once." in found.message
    found = verdict("alibi_bias", lambda h, q, k: -bias_wrongly(h, q, k, queries="from_zero", axes="last"))
    assert set(found.mistake.split(" + ")) == {"queries_from_zero", "heads_last", "no_minus"}


@pytest.mark.parametrize("heads", [6, 5, 12])
def test_slopes_in_another_order_are_named(heads):
    assert heads in [probe.make()[0] for probe in load("relative.alibi_slopes").probes]
    swapped = lambda n: authors_slopes(n)[1:] + authors_slopes(n)[:1]  # noqa: E731
    assert mistake("alibi_slopes", swapped) == "wrong_order"


def test_no_sentence_that_may_stand_beside_another_says_that_all_else_is_right():
    for name in WRONGLY:
        for each in load(f"relative.{name}").mistakes:
            if each.switches and not each.alone:
                said = each.beside or each.sentence
                assert "all is right" not in said and "is right;" not in said, (name, each.name)


@pytest.mark.parametrize("name", WRONGLY)
def test_the_probes_of_an_exercise_differ_in_size(name):
    probes = load(f"relative.{name}").probes
    assert len({probe.says for probe in probes}) == len(probes) >= 4


# ---------------------------------------------------------------- sentences that were once false, or missing
def by_columns(column, least=None, most=None):
    """A shift that takes column(T, i, j), cut off at the ends."""

    def shift(x):
        t, n = x.shape[2:]
        i, j = arange(t)[:, None], arange(t)
        return x[:, :, i, column(t, i, j).clamp(0 if least is None else least, n - 1 if most is None else most)]

    return shift


def by_slices(start, end, length=lambda x: x.shape[2]):
    """A shift that stacks slices of the rows."""

    def shift(x):
        t = length(x)
        return torch.stack([x[:, :, i, slice(start(t, i), end(t, i))] for i in range(x.shape[2])], 2)

    return shift


def by_line(first, columns=lambda t: slice(t)):
    """A shift that fills, writes a line, drops the first entries and cuts."""

    def shift(x):
        t, n = x.shape[2:]
        line = F.pad(F.pad(x, (1, 0)).flatten(2), (0, n))  # zeros behind, for whoever drops too much
        return line[..., first(t) : first(t) + t * n].unflatten(-1, (t, n))[..., columns(t)]

    return shift


def in_order(x):
    t = x.shape[2]
    return [x[:, :, i, t - 1 - i : 2 * t - 1 - i] for i in range(t)]


SHIFTED = [
    ("one_column_too_late", by_columns(lambda t, i, j: t - i + j), "row 0 ends with the last column twice"),
    ("one_column_too_early", by_columns(lambda t, i, j: t - 2 - i + j), "begins with column 0 twice"),
    ("distance_mirrored", by_columns(lambda t, i, j: t + i - j), "column T + i - j"),
    ("distance_as_column", by_columns(lambda t, i, j: i - j), "cut off at 0"),
    ("shifted_the_other_way", by_columns(lambda t, i, j: t - 1 + i + j), "row i starts at column T - 1 + i"),
    ("column_counted_back", by_columns(lambda t, i, j: j - i - 1, least=-1000), "column j - i - 1"),
    ("one_column_too_late", by_slices(lambda t, i: t - i, lambda t, i: 2 * t - i), "row 0 has one number less"),
    ("one_column_too_early", by_slices(lambda t, i: t - 2 - i, lambda t, i: 2 * t - 2 - i), "Your last row is empty"),
    ("slice_without_end", by_slices(lambda t, i: t - 1 - i, lambda t, i: None), "grow from one to the next"),
    ("shifted_the_other_way", by_slices(lambda t, i: t - 1 + i, lambda t, i: 2 * t - 1 + i), "become shorter"),
    (
        "length_from_the_last_axis",
        by_slices(lambda t, i: t - 1 - i, lambda t, i: 2 * t - 1 - i, length=lambda x: x.shape[3]),
        "T is x.shape[-2]",
    ),
    (
        "written_for_one_length",
        lambda x: torch.stack([x[:, :, i, 4 - i : 9 - i] for i in range(5)], 2),
        "are T - 1, 2T - 1 and T",
    ),
    ("too_little_dropped", by_line(lambda t: 1), "the filler alone, or nothing with the fillers behind"),
    ("nothing_dropped_in_front", by_line(lambda t: 0), "Nothing is dropped in front of the line"),
    ("one_column_too_early", by_line(lambda t: t - 1), "T - 1 entries dropped in front"),
    ("padded_on_the_right", by_line(lambda t: t + 1), "or are T + 1 entries dropped"),
    ("last_columns_kept", by_line(lambda t: 2 * t - 1), "or 2T - 1 entries are dropped"),
    ("rows_before_heads", lambda x: torch.stack(in_order(x)), "stands in front, as torch.stack puts it"),
    ("one_head_alone", lambda x: torch.stack(in_order(x[:1, :1]), 2)[0, 0], "the first head of the first sequence"),
    ("one_sequence_alone", lambda x: torch.stack(in_order(x[:1]), 2)[0], "the first sequence of the batch alone"),
    ("one_sequence_alone", lambda x: torch.stack(in_order(x[:1]), 2), "the first sequence of the batch alone"),
]


@pytest.mark.parametrize(("name", "answer", "said"), SHIFTED)
def test_a_wrong_shift_is_told_by_what_comes_out_and_not_by_one_way_of_writing_it(name, answer, said):
    found = verdict("relative_shift", answer)
    assert found.mistake == name and said in found.message, found.message


def test_where_several_axes_have_size_1_no_exchange_of_axes_is_advised():
    for answer in (lambda x: torch.stack(in_order(x)), lambda x: torch.stack(in_order(x), 2)[0]):
        message = verdict("relative_shift", answer).message
        assert "it would be right" not in message and "only the axes are missing" not in message
    assert "it would be right" in verdict("shaw_index", lambda *a: shaw_wrongly(*a).T).message


SLOPED = [
    ("formula_for_all + number_of_heads_ignored", lambda n: [2.0 ** -(i + 1) for i in range(n)]),
    ("whole_division", lambda n: [2.0 ** (-(8 // n) * (i + 1)) for i in range(n)]),
    ("not_geometric", lambda n: slopes_wrongly(n, formula="power_first")),
    ("formula_for_all + not_geometric", lambda n: [2 ** (-8 / (i + 1)) for i in range(n)]),
    ("whole_numbers", lambda n: [int(2 ** (-8 * (i + 1) / n)) for i in range(n)]),
]


@pytest.mark.parametrize(("name", "slopes"), SLOPED)
def test_wrong_slopes_are_named(name, slopes):
    found = verdict("alibi_slopes", lambda n: torch.as_tensor(slopes(n)))
    assert found.mistake == name, found.message


def test_a_formula_used_for_all_numbers_of_heads_is_not_said_to_use_that_number():
    message = verdict("alibi_slopes", lambda n: torch.tensor(SLOPED[0][1](n))).message
    assert "you use the same formula as where it is one" in message and "with that n" not in message
    assert "whatever the number of heads" in message


def test_slopes_of_two_lists_that_are_never_cut_are_named():
    def uncut(n):
        low = 2 ** math.floor(math.log2(n))
        return torch.tensor(authors_slopes(low) + authors_slopes(2 * low)[0::2])

    found = verdict("alibi_slopes", uncut)
    assert found.mistake == "too_many" and "none where the number of heads is a power of two" in found.message


def test_a_bias_of_whole_numbers_and_one_with_slopes_in_a_list_are_named():
    assert mistake("alibi_bias", lambda *a: bias_wrongly(*a).long()) == "whole_numbers"
    assert mistake("alibi_bias", lambda n, q, k: authors_slopes(n)[:, None, None]) == "slopes_in_a_list"
    found = verdict("alibi_bias", lambda n, q, k: bias_wrongly(n, q, k, slopes="no_heads_for_all"))
    assert found.mistake == "wrong_slopes" and "There may be more" not in found.message


def test_slopes_with_one_axis_of_size_1_are_named():
    def bias(n_heads, n_queries, n_keys):
        away = (arange(n_keys - n_queries, n_keys)[:, None] - arange(n_keys)).abs()
        return -torch.tensor(authors_slopes(n_heads))[:, None] * away

    assert mistake("alibi_bias", bias) == "slopes_along_queries"


def t5_by_rules(*, limit=lambda m, e: m / e, halved=False, past=False):
    def t5(rel, bidirectional=True, num_buckets=32, max_distance=128):
        away = rel.abs() if bidirectional else (-rel).clamp(min=0)
        n = num_buckets // 2 if bidirectional else num_buckets
        m, e = max_distance // 2 if bidirectional and halved else max_distance, n // 2
        far = e + (torch.log(away.clamp(min=e) / e) / math.log(limit(m, e)) * (n - e)).long()
        side = ((rel < 0) if past else (rel > 0)) & bidirectional
        return torch.where(away < e, away, far.clamp(max=n - 1)) + n * side

    return t5


def lesson_loop(rel, *rest):
    return torch.tensor([[int(counted_one_by_one(r, *rest)) for r in row] for row in rel])


BUCKETED = [
    ("not_relative_to_exact", t5_by_rules(limit=lambda m, e: m), "The logarithm below the fraction line"),
    ("max_distance_halved", t5_by_rules(halved=True), "Only the buckets are shared"),
    ("max_distance_halved + sides_exchanged", t5_by_rules(halved=True, past=True), "Only the buckets are shared"),
    ("two_axes_only", lesson_loop, "Two loops over shape[0] and shape[1] need two axes"),
    ("if_on_a_tensor", lambda rel, *rest: rel if rel.abs() < 8 else 8, "torch.where(d < e, near, far)"),
]


@pytest.mark.parametrize(("name", "answer", "said"), BUCKETED)
def test_wrong_buckets_are_named_in_the_words_of_the_lesson(name, answer, said):
    found = verdict("t5_bucket", answer)
    assert found.mistake == name and said in found.message, found.message


@pytest.mark.parametrize(
    "index", [lambda r, m: r.clamp(0, 2 * m), lambda r, m: ((r + m) - m).clamp(0, 2 * m), lambda r, m: r.clamp(0, m)]
)
def test_a_past_cut_off_because_m_is_not_added_is_named(index):
    found = verdict("shaw_index", lambda q, k, m: index(shaw_wrongly(q, k, m, clip="none_no_offset"), m))
    assert found.mistake == "past_collapsed" and "m is not added (or cancels" in found.message


def test_whole_numbers_made_by_numpy_are_not_said_to_lack_gradients():
    found = verdict("shaw_index", lambda *a: shaw_wrongly(*a).numpy())
    assert found.mistake == "numpy_result" and "gradients" not in found.message


def test_another_default_of_the_base_is_not_taken_for_another_base():
    found = verdict("rope", lambda x, positions=None, base=1000.0: rope_wrongly(x, positions, base))
    assert found.mistake == "base_default" and "There may be more" not in found.message


def test_positions_that_are_asked_for_truth_are_named():
    def rope(x, positions=None, base=10000.0):
        return rope_wrongly(x, positions or arange(x.shape[2]), base)

    found = verdict("rope", rope)
    assert found.mistake == "positions_asked_for_truth" and "if positions is None" in found.message
