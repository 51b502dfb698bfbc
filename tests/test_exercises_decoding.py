"""The exercises of lesson 10: unusual right answers, models that are tables, functions that are called again."""

import math

import pytest
import torch

from transformer_edu.attention import scaled_dot_product_attention as course
from transformer_edu.exercises import load
from transformer_edu.exercises.decoding import EXERCISES
from transformer_edu.exercises.decoding_parts import LONGEST, Script, table

INF = math.inf


def verdict(name, fn):
    return load(f"decoding.{name}").check(fn, quiet=True)


def mistake(name, fn):
    return verdict(name, fn).mistake


# ---------------------------------------------------------------- greedy: right answers, unusual
def rows_that_still_run(step, prompt, stop, pad, most):
    new, running = [[] for _ in prompt], list(range(len(prompt)))
    for _ in range(most):
        logits = step(torch.tensor([prompt[i].tolist() + new[i] for i in running]))
        for row, i in zip(logits, running, strict=True):
            new[i].append(int(row[-1].argmax()))
        running = [i for i in running if new[i][-1] != stop]
        if not running:
            break
    width = max(map(len, new))
    return torch.tensor([row + [pad] * (width - len(row)) for row in new])


def stops_fed_behind_stops(step, prompt, stop, pad, most):
    ids, ended, n = prompt, torch.zeros(len(prompt), dtype=torch.bool), 0
    out = torch.full((len(prompt), most), pad, dtype=torch.int32)
    while n < most and not ended.all():
        token = step(ids)[:, -1].softmax(-1).max(-1).indices.masked_fill(ended, stop)
        out[~ended, n] = token[~ended].int()
        ended, ids, n = ended | (token == stop), torch.cat([ids, token[:, None]], 1), n + 1
    return out[:, :n]


# ---------------------------------------------------------------- beam search: every way to count the places
def beam_with(counted):
    def search(step, start, stop, beam, most, alpha=0.0):
        live, ended = [((), 0.0)], []
        for _ in range(most):
            rows = step(torch.tensor([[start, *tokens] for tokens, _ in live])).tolist()
            all_of = [
                ((*tokens, w), score + x)
                for (tokens, score), row in zip(live, rows, strict=True)
                for w, x in enumerate(row)
            ]
            all_of.sort(key=lambda c: -c[1])
            best = {"places used up": all_of[:beam], "places kept": all_of[: 2 * beam], "every stop": all_of}[counted]
            ended += [c for c in best if c[0][-1] == stop]
            live = [c for c in best if c[0][-1] != stop][:beam]
            if not live:
                break
        ended += live
        tokens, score = max(ended, key=lambda c: c[1] / len(c[0]) ** alpha)
        return torch.tensor(tokens), torch.tensor([score / len(tokens) ** alpha])

    return search


def ended_ones_stay_in_the_beam(step, start, stop, beam, most, alpha=0.0):
    hypotheses = [([], 0.0)]
    for _ in range(most):
        found = [c for c in hypotheses if c[0][-1:] == [stop]]
        for tokens, score in [c for c in hypotheses if c[0][-1:] != [stop]]:
            row = step(torch.tensor([[start, *tokens]]))[0].log_softmax(-1)
            found += [([*tokens, w], score + x) for w, x in enumerate(row.tolist())]
        hypotheses = sorted(found, key=lambda c: c[1], reverse=True)[:beam]
    tokens, score = max(hypotheses, key=lambda c: c[1] / len(c[0]) ** alpha)
    return tuple(tokens), score / len(tokens) ** alpha


# ---------------------------------------------------------------- filters and chances
def by_counting(logits, k):
    return torch.tensor([[x if sum(y > x for y in row) < k else -INF for x in row] for row in logits.tolist()])


def by_comparing_pairs(logits, p):
    chances = logits.double().softmax(-1)
    better = chances[:, None, :] > chances[:, :, None]  # (batch, token, other)
    before = (better * chances[:, None, :]).sum(-1)
    return torch.where((before < p - 1e-9) | (before == 0), logits, -INF)


def from_the_tail(logits, p):
    values, order = logits.sort(-1)
    drop = values.softmax(-1).cumsum(-1) <= 1 - p + 1e-7
    drop = drop & (p < 1)
    drop[:, -1] = False
    return logits.masked_fill(torch.zeros_like(drop).scatter(-1, order, drop), -INF)


def on_shares(logits, temperature, k, p):
    shares, order = (logits.double() / max(temperature, 1e-4)).softmax(-1).sort(descending=True)
    shares = shares[:k] / shares[:k].sum()
    n = int((shares.cumsum(0) < p - 1e-9).sum()) + 1
    out = torch.zeros(len(logits), dtype=torch.float64)
    out[order[: len(shares[:n])]] = shares[:n] / shares[:n].sum()
    return out


# ---------------------------------------------------------------- the cache
def attend(query, key, value):
    n, total = query.shape[2], key.shape[2]
    mask = torch.ones(n, total, dtype=torch.bool).tril(total - n)
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def grown_in_place(query, key, value, cache, rotate):
    cache = {"key": [], "value": [], "past": 0} if cache is None else cache
    positions = torch.arange(cache["past"], cache["past"] + query.shape[2]) + 5  # only differences count
    cache["key"].append(rotate(key, positions))
    cache["value"].append(value)
    cache["past"] += query.shape[2]
    return attend(rotate(query, positions), torch.cat(cache["key"], 2), torch.cat(cache["value"], 2)), cache


def all_computed_again(query, key, value, cache, rotate):
    whole = (
        (query, key, value)
        if cache is None
        else [torch.cat(x, 2) for x in zip(cache, (query, key, value), strict=True)]
    )
    positions = torch.arange(whole[1].shape[2])
    output = attend(rotate(whole[0], positions), rotate(whole[1], positions), whole[2])
    return [output[:, :, -query.shape[2] :], whole]


def kept_in_one_tensor(query, key, value, cache, rotate):
    past = 0 if cache is None else cache.shape[3]
    positions = torch.arange(past, past + query.shape[2])
    new = torch.stack([rotate(key, positions), value])
    cache = new if cache is None else torch.cat([cache, new], 3)
    return attend(rotate(query, positions), *cache), cache


UNUSUAL = [
    ("greedy_decode", rows_that_still_run),
    ("greedy_decode", stops_fed_behind_stops),
    *(("beam_search", beam_with(how)) for how in ("places used up", "places kept", "every stop")),
    ("beam_search", ended_ones_stay_in_the_beam),
    ("top_k_filter", by_counting),
    ("top_k_filter", lambda x, k: torch.full_like(x, -INF).scatter(-1, *x.topk(min(k, x.shape[-1]))[::-1])),
    ("top_p_filter", by_comparing_pairs),
    ("top_p_filter", from_the_tail),
    ("next_probabilities", on_shares),
    ("cached_causal_mask", lambda n, total: torch.ones(total, total).tril()[total - n :] == 1),
    (
        "cached_causal_mask",
        lambda n, total: torch.tensor([[j <= total - n + i for j in range(total)] for i in range(n)]),
    ),
    ("attend_step", grown_in_place),
    ("attend_step", all_computed_again),
    ("attend_step", kept_in_one_tensor),
    ("reorder_cache", lambda cache, parents: tuple([x[parents.tolist()] for x in layer] for layer in cache)),
    ("reorder_cache", lambda cache, parents: torch.stack([torch.stack(layer)[:, parents] for layer in cache])),
]


@pytest.mark.parametrize(("name", "fn"), UNUSUAL)
def test_an_unusual_right_answer_is_accepted(name, fn):
    found = verdict(name, fn)
    assert found.status == "correct" and found.carry_forward() is fn, found.message


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_the_wrong_implementation_is_right_without_a_switch(exercise):
    assert exercise.check(exercise.compound, quiet=True).status == "correct"


# ---------------------------------------------------------------- the models of the probes
def test_a_script_does_not_look_behind_the_stop_and_answers_a_lost_row_with_other_tokens():
    step = Script((((7,), (3, 4, 2, 5, 6)),))
    rows = step(torch.tensor([[7, 3, 4, 2, 0], [7, 3, 4, 2, 9], [7, 3, 3, 2, 5], [6, 3, 4, 2, 5]])).argmax(-1)
    assert rows[0].tolist() == rows[1].tolist() == [3, 4, 2, 5, 6]
    assert rows[2, :2].tolist() == [3, 4] and rows[2:, 2:].min() > 2
    assert len({tuple(row.tolist()) for row in rows}) == 3


def test_a_table_gives_log_probabilities_of_what_follows_a_prefix():
    step = table({(): {3: 0.6, 4: 0.4}, (3,): {2: 1.0}}, {4: 1.0})
    assert torch.allclose(step(torch.tensor([[1]]))[0, 3:].exp(), torch.tensor([0.6, 0.4]))
    rows = step(torch.tensor([[1, 3], [1, 4], [0, 3]]))  # known, unknown, begins with another token
    assert rows.argmax(-1).tolist() == [2, 4, 4] and rows.min() > -20


@pytest.mark.parametrize("step", [Script((((7,), (3, 2)),)), table({(): {3: 1.0}}, {4: 1.0})])
def test_a_model_refuses_what_no_model_takes(step):
    with pytest.raises(IndexError, match=f"at most {LONGEST} tokens"):
        step(torch.ones(1, LONGEST + 1, dtype=torch.long))
    with pytest.raises(IndexError, match="at least one token"):
        step(torch.ones(1, 0, dtype=torch.long))
    with pytest.raises(ValueError, match=r"ids must have shape \(batch, length\), got \(3,\)"):
        step(torch.ones(3, dtype=torch.long))


# ---------------------------------------------------------------- what is told by the numbers, or by a second call
def test_a_loop_without_end_meets_the_end_of_the_model():
    def endless(step, prompt, stop, pad, most):
        ids, ended = prompt, torch.zeros(len(prompt), dtype=torch.bool)
        while not ended.all():
            token = step(ids)[:, -1].argmax(-1).masked_fill(ended, pad)
            ended, ids = ended | (token == stop), torch.cat([ids, token[:, None]], 1)
        return ids[:, prompt.shape[1] :]

    assert mistake("greedy_decode", endless) == "limit_missing"


def test_sampling_is_called_random():
    def sample(step, prompt, stop, pad, most):
        ids = prompt
        for _ in range(most):
            ids = torch.cat([ids, torch.multinomial(step(ids)[:, -1].softmax(-1), 1)], 1)
        return ids[:, prompt.shape[1] :]

    assert mistake("greedy_decode", sample) == "random"


def test_a_product_of_probabilities_is_told_by_its_underflow():
    def products(step, start, stop, beam, most, alpha=0.0):
        live, ended = [([], 1.0)], []
        for n in range(1, most + 1):
            rows = step(torch.tensor([[start, *tokens] for tokens, _ in live])).double().exp().tolist()
            found = [([*c[0], w], c[1] * x) for c, row in zip(live, rows, strict=True) for w, x in enumerate(row)]
            best = sorted(found, key=lambda c: -c[1])[: 2 * beam]
            ended += [(t, math.log(s) / n**alpha) for t, s in best if t[-1] == stop or n == most]
            live = [c for c in best if c[0][-1] != stop][:beam]
        return max(ended, key=lambda c: c[1])

    assert mistake("beam_search", products) == "products_underflow"


def test_of_logits_that_tie_any_may_stay_but_nothing_smaller():
    ties = next(p for p in load("decoding.top_k_filter").probes if len(p.make()[0].unique()) < p.make()[0].numel())
    logits, k = ties.make()
    assert (logits == logits.topk(k).values[:, -1:]).sum() > k
    levels = lambda x, k: x.masked_fill(x < x.unique().flip(0)[min(k, len(x.unique())) - 1], -INF)  # noqa: E731
    assert verdict("top_k_filter", lambda x, k: levels(x, k) if len(x) == 1 else by_counting(x, k)).mistake in (
        "equal_ones_counted_once",
        "ties_wrong",
    )


def test_a_sum_that_reaches_p_exactly_is_an_edge_case_that_floats_decide_alike():
    def passes(logits, p, dtype=torch.float32):
        values, order = logits.to(dtype).sort(descending=True)
        drop = values.softmax(-1).cumsum(-1) > p + 1e-7
        drop = torch.cat([torch.zeros_like(drop[:, :1]), drop[:, :-1]], -1)
        return logits.masked_fill(torch.zeros_like(drop).scatter(-1, order, drop), -INF)

    assert mistake("top_p_filter", passes) == "exact_sum_goes_on"
    assert mistake("top_p_filter", lambda logits, p: passes(logits, p, torch.float64)) == "exact_sum_goes_on"


def test_a_cache_that_outlives_its_sequence_keeps_state():
    kept = []

    def global_cache(query, key, value, cache, rotate):
        positions = torch.arange(query.shape[2]) + sum(k.shape[2] for k, _ in kept)
        kept.append((rotate(key, positions), value))
        keys, values = (torch.cat(x, 2) for x in zip(*kept, strict=True))
        return attend(rotate(query, positions), keys, values), kept

    assert mistake("attend_step", global_cache) == "keeps_state"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda q, k, v, cache, rotate: q, "The output should have shape (2, 3, 2, 4)"),
        (lambda q, k, v, cache, rotate: (q, k, v), "but is a list or tuple of length 3"),
        (lambda q, k, v, cache, rotate: ((k, v), q), "You return the cache first"),
        (lambda q, k, v, cache, rotate: None, "Did you forget return?"),
        (lambda q, k, v, cache, rotate: (attend(q, k, v), "no"), "The first entry of the output that differs"),
    ],
)
def test_a_step_that_returns_something_else_is_told_what(wrong, said):
    assert said in verdict("attend_step", wrong).message


def test_reordered_keys_and_values_are_compared_one_with_the_other():
    found = verdict("reorder_cache", lambda cache, parents: [(key[parents], value) for key, value in cache])
    assert found.mistake == "only_keys"
    assert "the keys of all layers are right, the values of all layers are not." in found.message


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_each_probe_is_said_in_its_own_words(exercise):
    assert len({probe.says for probe in exercise.probes}) == len(exercise.probes) >= 5


# ---------------------------------------------------------------- what students were told in trials
def largest(logits, k):
    return logits.topk(min(k, logits.shape[-1])).values


def limited(wrong):
    """A top-k filter that compares with the k-th largest, as most are written."""
    return lambda logits, k: wrong(logits, largest(logits, k)[:, -1:])


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("one_too_few", limited(lambda x, limit: x.masked_fill(x <= limit, -INF))),
        ("inverted", limited(lambda x, limit: x.masked_fill(x >= limit, -INF))),
        ("probabilities_returned", limited(lambda x, limit: x.masked_fill(x < limit, -INF).softmax(-1))),
        ("over_the_batch", lambda x, k: x.masked_fill(x < largest(x.view(1, -1), min(k, x.shape[-1]))[0, -1], -INF)),
        ("counted_from_below", lambda x, k: x.masked_fill(x < x.sort().values[:, min(k, x.shape[-1]) - 1, None], -INF)),
    ],
)
def test_ties_and_a_large_k_are_no_second_mistake(name, answer):
    found = verdict("top_k_filter", answer)
    assert found.mistake == name and "There may be more" not in found.message
    assert "not finite" not in found.message


def test_a_logit_that_is_0_is_not_taken_for_a_removed_one():
    product = limited(lambda x, limit: (x * (x >= limit)).masked_fill(x * (x >= limit) == 0, -INF))
    assert mistake("top_k_filter", product) == "zero_taken_for_removed"


def sorted_out(wrong, dim=-1):
    """A top-p filter whose mask in sorted order is wrong(sums, probabilities, p)."""

    def answer(logits, p):
        values, order = logits.sort(dim, descending=True)
        chances = values.softmax(dim)
        out = wrong(chances.cumsum(dim), chances, p)
        return logits.masked_fill(torch.zeros_like(out).scatter(dim, order, out), -INF)

    return answer


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("shifted_round", sorted_out(lambda sums, chances, p: (sums > p).roll(1, -1))),
        ("inverted", sorted_out(lambda sums, chances, p: sums <= p)),
        ("over_the_batch", sorted_out(lambda sums, chances, p: sums - chances >= p, dim=0)),
        ("log_probabilities_returned", lambda x, p: by_comparing_pairs(x, p).log_softmax(-1)),
    ],
)
def test_slips_of_the_usual_top_p_recipe_are_named(name, answer):
    assert mistake("top_p_filter", answer) == name


def test_beside_another_mistake_the_numbers_of_a_filter_that_changes_its_input_are_not_called_right():
    def in_place(logits, p):
        return logits.copy_(sorted_out(lambda sums, chances, p: sums - chances >= p)(logits, p))

    found = verdict("top_p_filter", in_place)
    assert found.mistake == "in_place + nothing_left" and "numbers are right" not in found.message


def chances(softmax=lambda x: x.softmax(-1), zero=None, p_of=lambda p: p, least=0.0):
    """The next token's probabilities, with one step of it changed."""

    def answer(logits, temperature, k, p):
        if temperature == 0 and zero is not None:
            return zero(logits)
        if temperature == 0 and not least:
            return torch.nn.functional.one_hot(logits.argmax(), len(logits)).float()
        kept = by_counting((logits / max(temperature, least))[None], k)
        return softmax(by_comparing_pairs(kept, p_of(p)))[0]

    return answer


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("one_minus_p", chances(p_of=lambda p: 1 - p)),
        ("softmax_over_rows", chances(softmax=lambda x: x.softmax(0))),
        ("small_temperatures_replaced", chances(least=0.1)),
        ("zero_gives_logits", chances(zero=lambda x: torch.where(x == x.max(), 0.0, -INF))),
    ],
)
def test_slips_of_the_three_filters_together_are_named(name, answer):
    assert verdict("next_probabilities", chances()).status == "correct"
    assert mistake("next_probabilities", answer) == name


def decode(pick=lambda logits: logits[:, -1].argmax(-1), ended=lambda ended, new, stop, pad: ended | (new == stop)):
    """Greedy decoding, with the choice of a token or the memory of the rows' ends changed."""

    def answer(step, prompt, stop, pad, most):
        ids, over = prompt, torch.zeros(len(prompt), dtype=torch.bool)
        for _ in range(most):
            new = pick(step(ids)).masked_fill(over, pad)
            over, ids = ended(over, new, stop, pad), torch.cat([ids, new[:, None]], 1)
            if over.all():
                break
        return ids[:, prompt.shape[1] :]

    return answer


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("end_forgotten", decode(ended=lambda ended, new, stop, pad: new == stop)),
        ("pad_ends_row", decode(ended=lambda ended, new, stop, pad: ended | (new == stop) | (new == pad))),
        ("argmax_over_positions", decode(pick=lambda logits: logits.argmax(1)[:, -1])),
    ],
)
def test_slips_of_the_greedy_loop_are_named(name, answer):
    assert verdict("greedy_decode", decode()).status == "correct"
    assert mistake("greedy_decode", answer) == name


def test_what_is_wrong_only_for_a_stop_in_the_prompt_is_said_of_the_prompt():
    def cut_from_the_prompt_on(step, prompt, stop, pad, most):
        ids = torch.cat([prompt, decode()(step, prompt, stop, pad, most)], 1)
        behind = (ids == stop).cumsum(1) - (ids == stop).long() > 0
        return ids.masked_fill(behind, pad)[:, prompt.shape[1] :]

    found = verdict("greedy_decode", cut_from_the_prompt_on)
    assert found.mistake == "stop_in_prompt_counts" and "right up to its stop" not in found.message


def test_a_prompt_that_is_changed_is_named_as_such():
    def writing(step, prompt, stop, pad, most):
        new = decode()(step, prompt, stop, pad, most)
        prompt += 1
        return new

    assert mistake("greedy_decode", writing) == "changes_input"


def search(add=lambda score, x, n, alpha: score + x, look=2, final=lambda score, n, alpha: score / n**alpha, **how):
    """Beam search, with one step of it changed; `look` says how many continuations use up the places of the beam."""
    rows, over, best = how.get("rows", lambda x: x), how.get("over", lambda *_: False), how.get("best", max)
    stop_of, first = how.get("stop_of", lambda tokens: tokens), how.get("first", 0.0)

    def answer(step, start, stop, beam, most, alpha=0.0):
        live, ended = [([], first)], []
        for n in range(1, most + 1):
            found = rows(step(torch.tensor([[start, *tokens] for tokens, _ in live]))).tolist()
            new = [
                ([*t, w], add(s, x, n, alpha))
                for (t, s), row in zip(live, found, strict=True)
                for w, x in enumerate(row)
            ]
            new = sorted(new, key=lambda c: -c[1])[: look * beam]
            ended += [c for c in new if c[0][-1] == stop]
            live = [c for c in new if c[0][-1] != stop][:beam]
            if not live or over(ended, beam):
                break
        tokens, score = best(ended + live, key=lambda c: final(c[1], len(c[0]), alpha))
        return stop_of(tokens), final(score, len(tokens), alpha)

    return answer


@pytest.mark.parametrize("look", [1, 2])
@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("prefix_score_lost", {"add": lambda score, x, n, alpha: x}),
        ("probabilities_added", {"add": lambda score, x, n, alpha: score + math.exp(x)}),
        ("probabilities_multiplied", {"add": lambda score, x, n, alpha: score * math.exp(x), "first": 1.0}),
        (
            "divided_on_the_way",
            {"add": lambda score, x, n, alpha: (score + x) / n**alpha, "final": lambda score, n, alpha: score},
        ),
        ("score_nan", {"rows": torch.log}),
        ("worst_returned", {"best": min}),
        ("first_end_wins", {"over": lambda ended, beam: ended}),
        ("stops_at_beam_ends", {"over": lambda ended, beam: len(ended) >= beam}),
    ],
)
def test_slips_of_a_beam_search_are_named_whatever_uses_up_its_places(name, changed, look):
    assert verdict("beam_search", search(look=look)).status == "correct"
    assert mistake("beam_search", search(look=look, **changed)) == name


def test_what_a_beam_adds_behind_a_stop_is_named_though_it_is_cut_off():
    def goes_on(step, start, stop, beam, most, alpha=0.0):
        live = [([], 0.0)]
        for _ in range(most):
            rows = step(torch.tensor([[start, *tokens] for tokens, _ in live])).tolist()
            new = [([*t, w], s + x) for (t, s), row in zip(live, rows, strict=True) for w, x in enumerate(row)]
            live = sorted(new, key=lambda c: -c[1])[:beam]
        tokens, score = live[0]
        tokens = tokens[: tokens.index(stop) + 1] if stop in tokens else tokens
        return tokens, score / len(tokens) ** alpha

    assert mistake("beam_search", goes_on) == "continues_after_stop"


def test_a_beam_that_is_twice_as_wide_does_not_grow():
    found = verdict(
        "beam_search", lambda step, a, b, beam, most, alpha=0.0: search()(step, a, b, 2 * beam, most, alpha)
    )
    assert found.mistake == "not_pruned" and "grows" not in found.message


def step_with(join=lambda a, b: torch.cat([a, b], 2), past_of=lambda cache: cache[0].shape[2], **how):
    """One step with a cache, with one part of it changed."""
    kept = how.get("kept", lambda key, value, new_key, new_value: (key, value))
    to_weights = how.get("to_weights", lambda scores, mask: scores.masked_fill(~mask, -INF).softmax(-1))
    attends = how.get(
        "attends", lambda query, key, value, mask: to_weights(query @ key.mT / query.shape[-1] ** 0.5, mask) @ value
    )

    def answer(query, key, value, cache, rotate):
        past = 0 if cache is None else past_of(cache)
        positions = torch.arange(past, past + query.shape[2])
        query, key = rotate(query, positions), rotate(key, positions)
        new_key, new_value = key, value
        if cache is not None:
            key, value = join(cache[0], key), join(cache[1], value)
        n, total = query.shape[2], key.shape[2]
        output = attends(query, key, value, torch.ones(n, total, dtype=torch.bool).tril(total - n))
        return output, kept(key, value, new_key, new_value)

    return answer


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("only_last_stored", {"kept": lambda key, value, new_key, new_value: (new_key, new_value)}),
        ("another_size_for_past", {"past_of": lambda cache: len(cache[0])}),
        ("joined_along_heads", {"join": lambda a, b: torch.cat([a, b], 1), "attends": lambda *a: course(*a)[0]}),
        ("weights_too", {"attends": lambda *a: course(*a)}),
        ("mask_inverted", {"to_weights": lambda scores, mask: scores.masked_fill(mask, -INF).softmax(-1)}),
        ("masked_after_softmax", {"to_weights": lambda scores, mask: scores.softmax(-1) * mask}),
        ("mask_multiplied", {"to_weights": lambda scores, mask: (scores * mask).softmax(-1)}),
    ],
)
def test_slips_of_a_step_with_a_cache_are_named(name, changed):
    assert verdict("attend_step", step_with()).status == "correct"
    assert mistake("attend_step", step_with(**changed)) == name


@pytest.mark.parametrize(
    ("name", "said", "answer"),
    [
        ("inverse", "You write to the places parents", lambda cache, p: [written(p, *layer) for layer in cache]),
        ("generator_returned", "a list of pairs", lambda cache, p: ((key[p], value[p]) for key, value in cache)),
        ("layers_picked", "rows of each key and value", lambda cache, p: [cache[i] for i in p.tolist()]),
        ("wrong_axis", "axis 0", lambda cache, p: [(key[..., p], value[..., p]) for key, value in cache]),
        ("rows_not_joined", "one tensor", lambda cache, p: [([x[i] for i in p], [y[i] for i in p]) for x, y in cache]),
        ("more_results", "nothing more", lambda cache, p: ([(key[p], value[p]) for key, value in cache], p)),
        (None, "(2, 6, 3, 2)", lambda cache, p: [(torch.cat(list(x[p])), torch.cat(list(y[p]))) for x, y in cache]),
    ],
)
def test_slips_of_a_cache_that_is_reordered_are_named(name, said, answer):
    found = verdict("reorder_cache", answer)
    assert found.mistake == name and said in found.message
    assert "Only where" not in found.message and "2 values" not in found.message


def written(parents, *tensors):
    new = tuple(torch.zeros_like(x) for x in tensors)
    for old, place in zip(tensors, new, strict=True):
        place[parents] = old
    return new
