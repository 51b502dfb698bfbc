"""The galleries of lesson 06: what is accepted, what is named, and that no name is given falsely.

That every mistake is diagnosed as itself is tested in test_exercises.py for all exercises.
"""

import math
import time

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from transformer_edu.exercises import load

SINUSOID, ADD, EMBED, IDS = (
    load(f"positions.{n}") for n in ("sinusoidal_positions", "add_positions", "embed_tokens", "position_ids")
)


def verdict(exercise, fn):
    return exercise.check(fn, quiet=True)


def textbook(n, d, base=10000.0, cut=True):
    """The usual code in single precision."""
    table = torch.zeros(n, d)
    place = torch.arange(n).unsqueeze(1).float()
    divisor = torch.exp(torch.arange(0, d, 2).float() * (-math.log(base) / d))
    table[:, 0::2] = torch.sin(place * divisor)
    table[:, 1::2] = torch.cos(place * divisor)[:, : d // 2 if cut else None]
    return table


def angles(n, d, base=10000.0):
    return torch.arange(n)[:, None] / base ** (torch.arange(0, d, 2) / d)


# ---------------------------------------------------------------- right answers, unusual
def by_numpy(n, d):
    c = np.arange(d)
    table = np.arange(n)[:, None] / np.power(10000, 2 * (c // 2) / d)
    table[:, 0::2], table[:, 1::2] = np.sin(table[:, 0::2]), np.cos(table[:, 1::2])
    return torch.FloatTensor(table)


def by_turning(n, d):
    if d % 2:
        raise ValueError(f"d_model must be even, got {d}")
    step = torch.polar(torch.ones(d // 2).double(), 10000.0 ** (-torch.arange(0, d, 2).double() / d))
    turned, rows = torch.ones_like(step), []
    for _ in range(n):
        rows.append(torch.view_as_real(turned).flip(-1).flatten())
        turned = turned * step
    return torch.stack(rows).float()


def by_assert(n, d):
    assert d % 2 == 0, "even widths only"
    a = angles(n, d)
    return torch.stack((a.sin(), a.cos()), 2).view(n, d)


def in_a_list(n, d):
    return torch.tensor(
        [[(math.sin, math.cos)[c % 2](p / 10000 ** (2 * (c // 2) / d)) for c in range(d)] for p in range(n)]
    )


def by_cells(x, table):
    y = torch.empty_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            y[b, t] = x[b, t] + table[t]
    return y


def on_a_copy(x, table):
    assert x.shape[1] <= len(table), "too long"
    y = x.clone()
    y += table[: x.shape[1]]
    return y


def each_row(tokens, weight):
    return torch.stack([torch.stack([weight[i] * len(weight[i]) ** 0.5 for i in row]) for row in tokens])


def counted_by_loop(mask):
    ids = torch.full(mask.shape, 7)
    for row, real in zip(ids, mask, strict=True):
        row[real] = torch.arange(int(real.sum()))
    return ids


RIGHT = [
    (SINUSOID, textbook),
    (SINUSOID, by_numpy),
    (SINUSOID, by_turning),
    (SINUSOID, by_assert),
    (SINUSOID, in_a_list),
    (SINUSOID, lambda n, d: nn.Parameter(textbook(n, d))),
    (SINUSOID, lambda n, d: SINUSOID.reference(n, d).double()),
    (ADD, by_cells),
    (ADD, on_a_copy),
    (ADD, lambda x, table: x + nn.Embedding.from_pretrained(table)(torch.arange(x.size(1))[None])),
    (ADD, lambda x, table: x.double() + table.double()[torch.arange(x.shape[1])].repeat(x.shape[0], 1, 1)),
    (EMBED, each_row),
    (EMBED, lambda tokens, weight: F.one_hot(tokens, len(weight)).float() @ (weight * weight.shape[1] ** 0.5)),
    (EMBED, lambda tokens, weight: weight.double()[tokens] * math.sqrt(weight.shape[-1])),
    (IDS, counted_by_loop),
    (IDS, lambda mask: mask.long().cumsum(1) - mask.long()),
    (IDS, lambda mask: (mask.long().cumsum(-1) - 1).masked_fill(~mask, 1)),
    (IDS, lambda mask: F.pad(mask.long(), (1, 0))[:, :-1].cumsum(1)),
    (IDS, lambda mask: (mask.double() @ torch.ones(mask.shape[1], mask.shape[1]).double().triu(1)).long()),
]


@pytest.mark.parametrize(("exercise", "answer"), RIGHT, ids=[f"{e.name}-{i}" for i, (e, _) in enumerate(RIGHT)])
def test_a_right_answer_is_accepted_however_it_is_written(exercise, answer):
    found = verdict(exercise, answer)
    assert found.status == "correct", found.message


# ---------------------------------------------------------------- wrong answers as readers write them
def return_in_the_loop(n, d):
    table = torch.zeros(n, d)
    for p in range(n):
        for i in range(0, d, 2):
            table[p, i] = math.sin(p / 10000 ** (i / d))
            if i + 1 < d:
                table[p, i + 1] = math.cos(p / 10000 ** (i / d))
        return table


def whole_numbers(n, d):
    c = torch.arange(d)
    a = torch.arange(n)[:, None] / 10000 ** (2 * (c // 2) // d)
    return torch.where(c % 2 == 0, a.sin(), a.cos())


def precedence(n, d):
    c = torch.arange(d)
    a = torch.arange(n)[:, None] / 10000**2 * (c // 2) / d
    return torch.where(c % 2 == 0, a.sin(), a.cos())


def pairs_overwritten(n, d):
    table, a = torch.zeros(n, d), angles(n, d)
    for i in range(d // 2):
        table[:, i], table[:, i + 1] = a[:, i].sin(), a[:, i].cos()
    return table


def last_column_left_out(n, d):
    return torch.cat([textbook(n, d - 1), torch.full((n, 1), math.nan)], -1) if d % 2 else textbook(n, d)


def halves(a, d):
    return torch.cat([a.sin(), a.cos()], -1)[:, :d]


def no_odd_widths_by_accident(n, d):
    a = angles(n, d)
    return torch.stack([a.sin(), a.cos()], -1).reshape(n, d)


def waves(n, d, angle):
    c = torch.arange(d)
    a = angle(torch.arange(n)[:, None].float(), 2 * (c // 2))
    return torch.where(c % 2 == 0, a.sin(), a.cos())


def product_by_loop(n, d):
    table = torch.zeros(n, d)
    for p in range(n):
        for i in range(d // 2):
            table[p, 2 * i] = math.sin(p / (10000 * (2 * i / d)))
            table[p, 2 * i + 1] = math.cos(p / (10000 * (2 * i / d)))
    return table


def waves_divided(n, d):
    p, c = torch.arange(n)[:, None], torch.arange(d)
    return torch.where(c % 2 == 0, p.sin(), p.cos()) / 10000 ** (2 * (c // 2) / d)


def up_to_one(n, d):
    a = torch.arange(n)[:, None] / 10000 ** torch.linspace(0, 1, (d + 1) // 2)
    return torch.stack([a.sin(), a.cos()], -1).flatten(1)[:, :d]


def written_at_the_end(mask):
    ids = torch.zeros(mask.shape, dtype=torch.long)
    for row, real in zip(ids, mask, strict=True):
        row[len(real) - int(real.sum()) :] = torch.arange(int(real.sum()))
    return ids


def first_sequence_only(x, table):
    y = x.clone()
    y[0] += table[: x.shape[1]]
    return y


def scales_the_callers_weight(tokens, weight):
    weight *= math.sqrt(weight.shape[1])
    return weight[tokens]


def count_goes_on(mask):
    ids = torch.zeros(mask.shape, dtype=torch.long)
    ids[mask] = torch.arange(int(mask.sum()))
    return ids


WRONG = [
    (SINUSOID, lambda n, d: textbook(n, d, cut=False), "odd_width_crash"),
    (SINUSOID, lambda n, d: textbook(n, d, 1000.0, cut=False), "base_wrong + odd_width_crash"),
    (SINUSOID, lambda n, d: textbook(n, d, 20000.0), "base_wrong"),
    (SINUSOID, no_odd_widths_by_accident, "odd_width_crash"),
    (SINUSOID, lambda n, d: textbook(n, d)[None].transpose(0, 1), "batch_axis"),
    (SINUSOID, lambda n, d: halves(angles(n, d), d), "halves"),
    (SINUSOID, lambda n, d: halves(angles(n + 1, d)[1:], d), "halves + positions_from_one"),
    (SINUSOID, lambda n, d: halves(angles(n, d, 1e5), d), "halves + base_wrong"),
    (SINUSOID, lambda n, d: halves(angles(n, d, 1e8), d), "doubled_exponent + halves"),
    (SINUSOID, lambda n, d: textbook(n, d, 1e-4), "multiplied"),
    (SINUSOID, return_in_the_loop, "one_row_filled"),
    (SINUSOID, whole_numbers, "one_wave_for_all"),
    (SINUSOID, precedence, "stands_still"),
    (SINUSOID, lambda n, d: by_numpy(n, d).tolist(), "not_a_tensor"),
    (SINUSOID, lambda n, d: by_numpy(n, d).numpy(), "not_a_tensor"),
    (SINUSOID, lambda n, d: textbook(1000, d)[:n], "fixed_length"),
    (SINUSOID, lambda n, d: textbook(1500, d)[:n], "long_only"),
    (SINUSOID, lambda n, d: textbook(n, d).half(), "half_precision"),
    (SINUSOID, lambda n, d: textbook(n, d).long(), "integers"),
    (SINUSOID, lambda n, d: (textbook(n, d) - textbook(n, d).mean()) / 2, "depends_on_length"),
    (SINUSOID, lambda n, d: textbook(n + 1, d)[n], "one_row"),
    (SINUSOID, lambda n, d: nn.Embedding(n, d).weight, "random"),
    (SINUSOID, pairs_overwritten, "columns_overwritten"),
    (SINUSOID, last_column_left_out, "odd_width"),
    (SINUSOID, lambda n, d: textbook(n, d).half().float(), "imprecise"),
    (SINUSOID, lambda n, d: textbook(2 * n + 7, d)[7 : n + 7], "positions_shifted"),
    (SINUSOID, lambda n, d: None, "returns_nothing"),
    (ADD, lambda x, table: x.add_(table[torch.arange(x.shape[1])]), "changes_input"),
    (ADD, lambda x, table: x + table[: x.size(0)].unsqueeze(1), "batch_axis"),
    (ADD, lambda x, table: x + table[None], "whole_table"),
    (ADD, lambda x, table: x + table[torch.arange(x.shape[1]) % len(table)], "past_the_table"),
    (ADD, lambda x, table: x[:, : len(table)] + table[: x.shape[1]], "past_the_table"),
    (ADD, first_sequence_only, "tokens_left_out"),
    (ADD, lambda x, table: F.dropout(x + table[: x.shape[1]], 0.1), "random"),
    (ADD, lambda x, table: x * x.shape[-1] ** 0.5 + table[torch.arange(x.shape[1]) % len(table)], None),
    (ADD, lambda x, table: [x[b] + table[: x.shape[1]] for b in range(len(x))], "not_a_tensor"),
    (EMBED, scales_the_callers_weight, "changes_input"),
    (EMBED, lambda tokens, weight: (weight[tokens] * weight.shape[1] ** 0.5).half(), "half_precision"),
    (EMBED, lambda tokens, weight: tokens @ weight, "ids_as_numbers"),
    (EMBED, lambda tokens, weight: weight[tokens] * weight.shape[1] ** 1 / 2, "wrong_factor"),
    (EMBED, lambda tokens, weight: nn.Embedding(*weight.shape)(tokens), "random"),
    (EMBED, lambda tokens, weight: F.embedding_bag(tokens, weight, mode="sum") * weight.shape[1] ** 0.5, "wrong_form"),
    (IDS, lambda mask: mask.long().cumsum(-1) * mask.long() + 1, "from_two"),
    (IDS, lambda mask: mask.long().cumsum(-1).masked_fill(~mask, 1), "from_one"),
    (IDS, lambda mask: torch.arange(mask.shape[1]) * mask, "columns_numbered"),
    (IDS, lambda mask: torch.arange(mask.shape[1]) - mask.long().argmax(-1, keepdim=True), "negative"),
    (IDS, lambda mask: (torch.arange(mask.shape[1]) - (~mask).sum(-1, keepdim=True)).clamp(0), "left_padding_only"),
    (IDS, count_goes_on, "counted_through"),
    (IDS, lambda mask: mask.sum(-1), "one_number_per_row"),
    (IDS, lambda mask: counted_by_loop(mask).tolist(), "lists"),
    (SINUSOID, lambda n, d: waves(n, d, lambda p, c: p / (10000 * (c / d))), "multiplied_not_raised"),
    (SINUSOID, product_by_loop, "multiplied_not_raised"),
    (SINUSOID, lambda n, d: waves(n, d, lambda p, c: p / 10000 * c / d), "multiplied_not_raised"),
    (SINUSOID, lambda n, d: waves(n, d, lambda p, c: p / (c / d) ** 10000), "power_turned_round"),
    (SINUSOID, waves_divided, "wave_divided"),
    (SINUSOID, lambda n, d: (torch.arange(n) * 10000 ** (-torch.arange(0, d, 2) / d)).sin(), "positions_without_axis"),
    (SINUSOID, lambda n, d: (10000 ** (-torch.arange(0, d, 2) / d) * torch.arange(n)).sin(), "positions_without_axis"),
    (SINUSOID, lambda n, d: waves(n, d, lambda p, c: p / 10000 ** (c / (d // 2))), "doubled_exponent"),
    (SINUSOID, up_to_one, "last_wave_at_base"),
    (EMBED, lambda tokens, weight: F.one_hot(tokens).float() @ weight * weight.shape[1] ** 0.5, "one_hot_width"),
    (EMBED, lambda tokens, weight: F.one_hot(tokens, weight.shape[1]).float() @ weight, "one_hot_width"),
    (EMBED, lambda tokens, weight: weight[tokens] * torch.sqrt(weight.shape[1]), "root_of_a_number"),
    (IDS, lambda mask: (mask.long().flip(-1).cumsum(-1).flip(-1) - 1).clamp(min=0), "from_the_right"),
    (IDS, lambda mask: mask.sum(-1, keepdim=True) - mask.long().cumsum(-1), "from_the_right"),
    (IDS, lambda mask: (mask.shape[1] - mask.long().cumsum(-1)).clamp(min=0), "from_the_right"),
    (IDS, lambda mask: (mask.long().flip(-1).cumsum(-1) - 1).clamp(min=0), "flipped_once"),
    (IDS, lambda mask: (torch.arange(mask.shape[1]) - (~mask[0]).sum()).clamp(0).expand_as(mask), "one_shift_for_all"),
    (IDS, lambda mask: (mask.long().cumsum(-1) - 2).clamp(min=0), "one_too_small"),
    (IDS, lambda mask: mask.long().cumsum(-1) - 2, "one_too_small"),
    (IDS, written_at_the_end, "left_padding_only"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("exercise", "answer", "name"), WRONG, ids=[f"{e.name}-{name}-{i}" for i, (e, _, name) in enumerate(WRONG)]
)
def test_a_wrong_answer_is_caught_and_named(exercise, answer, name):
    found = verdict(exercise, answer)
    assert found.status in ("wrong", "error")
    assert name is None or found.mistake == name, found.message


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (SINUSOID, lambda n, d: (textbook(n, d) * 3).sin()),
        (SINUSOID, lambda n, d: textbook(n, d) + torch.arange(n)[:, None] / 50),
        (ADD, lambda x, table: x + table[: x.shape[1]] + 0.3),
        (EMBED, lambda tokens, weight: weight[tokens] * 1.37),
        (IDS, lambda mask: (mask.long().cumsum(-1) - 1).clamp(0) ** 2),
    ],
)
def test_what_no_mistake_explains_gets_the_general_answer(exercise, answer):
    found = verdict(exercise, answer)
    assert (found.status, found.mistake) == ("wrong", None)
    assert "The first entry of the" in found.message


def test_an_odd_width_may_be_refused_clearly_and_other_mistakes_are_still_named_alone():
    def refusing(n, d):
        if d % 2:
            raise ValueError("d_model must be even")
        return textbook(n, d, 1000.0)

    found = verdict(SINUSOID, refusing)
    assert found.mistake == "base_wrong" and "There may be more" not in found.message
    assert "your base is 1000" in found.message


@pytest.mark.parametrize(
    ("exercise", "answer", "said"),
    [
        (IDS, lambda mask: (mask.long().cumsum(-1) - 2).clamp(min=0), "and cut off at 0"),
        (IDS, lambda mask: mask.long().cumsum(-1) - 2, "and yours has -1"),
        (SINUSOID, lambda n, d: waves(n, d, lambda p, c: p / 10000 * c / d), "is divided by 10000 and multiplied by"),
        (SINUSOID, lambda n, d: waves(n, d, lambda p, c: p / (10000 * (c / d))), "for the first pair you divide by 0"),
    ],
)
def test_what_is_said_is_true_of_this_form_of_the_mistake(exercise, answer, said):
    assert said in verdict(exercise, answer).message


def test_an_odd_width_refused_with_another_error_is_said_to_be_so():
    def strict(n, d):
        if d % 2:
            raise TypeError("d_model must be even")
        return textbook(n, d)

    found = verdict(SINUSOID, strict)
    assert found.mistake == "odd_width_crash" and "with another error than a ValueError" in found.message


def test_ids_under_padding_are_free_but_must_be_valid():
    def filled(value):
        return lambda mask: (mask.long().cumsum(-1) - 1).masked_fill(~mask, value)

    assert verdict(IDS, filled(0)).status == verdict(IDS, filled(5)).status == "correct"
    found = verdict(IDS, filled(-1))
    assert found.mistake == "negative" and "table's LAST row" in found.message


def test_a_sequence_longer_than_the_table_must_raise_whatever_the_error():
    def strict(error):
        def answer(x, table):
            if x.shape[1] > len(table):
                raise error("no row for that")
            return x + table[: x.shape[1]]

        return answer

    assert all(verdict(ADD, strict(error)).status == "correct" for error in (ValueError, IndexError, KeyError))


def test_who_leaves_the_refusal_to_broadcasting_is_right():
    assert verdict(ADD, lambda x, table: x + table[torch.arange(x.shape[1])]).status == "correct"
    assert verdict(ADD, lambda x, table: x + table[: x.shape[1]]).status == "correct"
    assert verdict(ADD, lambda x, table: x * x.shape[-1] ** 0.5 + table[: x.shape[1]]).mistake == "tokens_scaled"


def returned(error):
    return lambda x, table: error if x.shape[1] > len(table) else x + table[: x.shape[1]]


@pytest.mark.parametrize("error", [ValueError("too long"), "too long"])
def test_an_error_that_is_returned_is_named(error):
    assert verdict(ADD, returned(error)).mistake == "error_returned"


def test_rows_at_the_wrong_places_are_told_by_their_numbers():
    def mixed(x, table):
        (batch, length, d), places = x.shape, torch.arange(x.shape[1])
        return x + table[places].repeat(batch, 1).view(length, batch, d).transpose(0, 1)

    assert verdict(ADD, mixed).mistake == "rows_elsewhere"


def filled_in_the_loop(x, table):
    y = x.clone()
    for p in range(x.shape[1]):
        y[:, p] = x[:, p] + table[p]
        return y


def test_a_loop_that_returns_after_one_token_is_said_to_leave_out_the_others_and_no_more():
    found = verdict(ADD, filled_in_the_loop)
    assert found.mistake == "tokens_left_out" and "Two things" not in found.message


def test_nothing_more_is_said_of_a_sum_that_is_dropped():
    def dropped(x, table):
        x + table[torch.arange(x.shape[1])]
        return x

    found = verdict(ADD, dropped)
    assert found.mistake == "result_dropped" and "There may be more" not in found.message


@pytest.mark.parametrize("exercise", [SINUSOID, ADD, EMBED, IDS], ids=lambda e: e.name)
def test_a_right_answer_is_judged_at_once(exercise):
    verdict(exercise, exercise.reference)
    start = time.process_time()
    verdict(exercise, exercise.reference)
    assert time.process_time() - start < 0.3


@pytest.mark.parametrize("exercise", [ADD, EMBED, IDS], ids=lambda e: e.name)
def test_what_is_said_of_an_input_is_its_shape_or_its_content(exercise):
    for probe in exercise.probes:
        for x in probe.make():
            content = str(x.long().tolist())
            assert str(tuple(x.shape)) in probe.says or content in probe.says, probe.says
