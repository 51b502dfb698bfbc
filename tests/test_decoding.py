"""Decoding against plain loops over everything, and cached decoding against decoding without a cache."""

import itertools
import math

import pytest
import torch
from sizes import error_text, numbers, same

from transformer_edu.cache import KeyValueCache
from transformer_edu.decoding import (
    CachedStep,
    Hypothesis,
    attend_step,
    beam_search,
    beam_steps,
    cached_causal_mask,
    greedy_decode,
    greedy_steps,
    next_probabilities,
    reorder_cache,
    sample_decode,
    top_k_filter,
    top_p_filter,
)
from transformer_edu.masks import causal_mask, padding_mask
from transformer_edu.model import TransformerConfig, build_transformer
from transformer_edu.relative import rope

VOCAB = 7
START, STOP, PAD = 1, 2, 0
SOURCE = torch.tensor([[3, 4, 5, 6, 3], [6, 5, 4, 0, 0]])
SOURCE_MASK = padding_mask(torch.tensor([5, 3]), 5)
SCHEMES = ("none", "sinusoid", "learned", "shaw", "transformer_xl", "t5", "alibi", "rotary")


def chain(seed=0, scale=2.0):
    """A step that looks at the last two tokens: log-probabilities (batch, vocab_size)."""
    table = (numbers(VOCAB, VOCAB, VOCAB, seed=seed) * scale).log_softmax(-1)

    def step(ids):
        before = ids[:, -2] if ids.shape[1] > 1 else torch.zeros(len(ids), dtype=torch.long)
        return table[before, ids[:, -1]]

    return step


def as_logits(step):
    return lambda ids: step(ids)[:, None]


def model(position="sinusoid", seed=0, **options):
    torch.manual_seed(seed)
    sizes = {"source_vocab_size": VOCAB, "target_vocab_size": VOCAB, "d_model": 12, "n_heads": 3, "n_layers": 2}
    built = build_transformer(TransformerConfig(**sizes, position=position, **options)).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return built


# ---------------------------------------------------------------- one path
def test_greedy_takes_the_largest_logit_of_every_prefix():
    step = chain()
    prompt = torch.tensor([[3], [4], [5]])
    new = greedy_decode(as_logits(step), prompt, STOP, PAD, 6)
    for row, start in zip(new.tolist(), prompt.tolist(), strict=True):
        ids = list(start)
        for token in row:
            if STOP in ids[1:]:
                assert token == PAD
            else:
                assert token == step(torch.tensor([ids])).argmax().item()
            ids.append(token)


def test_greedy_stops_when_all_rows_have_and_not_for_a_stop_in_the_prompt():
    def end_at_three(ids):
        return torch.nn.functional.one_hot(torch.full_like(ids, STOP if ids.shape[1] >= 3 else 5), VOCAB).float()

    assert greedy_decode(end_at_three, torch.tensor([[STOP]]), STOP, PAD, 9).tolist() == [[5, 5, STOP]]
    assert greedy_decode(end_at_three, torch.tensor([[STOP]]), STOP, PAD, 1).tolist() == [[5]]
    assert greedy_decode(end_at_three, torch.tensor([[3]]), STOP, PAD, 0).shape == (1, 0)


def test_greedy_steps_show_the_logits_that_decided():
    steps = list(greedy_steps(as_logits(chain()), torch.tensor([[3], [4]]), STOP, PAD, 4))
    assert all(logits.shape == (2, VOCAB) for _, logits in steps)
    assert steps[0][0].tolist() == steps[0][1].argmax(-1).tolist()


def test_samples_come_as_often_as_their_probability():
    logits = torch.tensor([0.5, 0.3, 0.2]).log()
    prompt = torch.zeros(4000, 1, dtype=torch.long)
    drawn = sample_decode(
        lambda ids: logits.expand(len(ids), 1, 3), prompt, 9, 9, 1, generator=torch.Generator().manual_seed(0)
    )
    shares = drawn.flatten().bincount(minlength=3) / 4000
    same(shares, torch.tensor([0.5, 0.3, 0.2]), 0.03)
    again = sample_decode(
        lambda ids: logits.expand(len(ids), 1, 3), prompt, 9, 9, 1, generator=torch.Generator().manual_seed(0)
    )
    assert torch.equal(drawn, again)
    greedy = sample_decode(
        lambda ids: logits.expand(len(ids), 1, 3), prompt, 9, 9, 1, generator=torch.Generator(), temperature=0
    )
    assert not greedy.any()


# ---------------------------------------------------------------- filters
def test_top_k_keeps_the_k_largest_of_each_row():
    logits = numbers(4, VOCAB)
    for k in (1, 3, VOCAB, VOCAB + 5):
        kept = top_k_filter(logits, k)
        for row, old in zip(kept, logits, strict=True):
            finite = row.isfinite()
            assert finite.sum() == min(k, VOCAB)
            assert old[finite].min() >= old[~finite].max() if k < VOCAB else True
            assert torch.equal(row[finite], old[finite])


def test_top_p_keeps_the_smallest_set_that_reaches_p():
    logits = numbers(5, VOCAB, seed=1)
    for p in (0.0, 0.3, 0.6, 0.95, 1.0):
        for row, old in zip(top_p_filter(logits, p), logits, strict=True):
            probabilities = old.double().softmax(-1)
            kept = row.isfinite()
            smallest = min(
                size
                for size in range(1, VOCAB + 1)
                if probabilities.sort(descending=True).values[:size].sum() >= p - 1e-9
            )
            assert kept.sum() == smallest
            assert probabilities[kept].min() >= probabilities[~kept].max() if smallest < VOCAB else True


def test_probabilities_go_through_temperature_then_top_k_then_top_p():
    logits = torch.tensor([2.0, 1.0, 0.5, -1.0])
    same(next_probabilities(logits, 2.0, 4, 1.0), (logits / 2).softmax(-1))
    two = next_probabilities(logits, 1.0, 2, 1.0)
    same(two, torch.cat([logits[:2].softmax(-1), torch.zeros(2)]))
    # of the three that top-k leaves the first has 0.63: before top-k it had 0.61
    shares = torch.tensor([0.61, 0.2, 0.16, 0.03]).log()
    assert (next_probabilities(shares, 1.0, 3, 0.62) > 0).sum() == 1
    assert (next_probabilities(shares, 1.0, 4, 0.62) > 0).sum() == 2
    assert next_probabilities(logits, 0, 4, 1.0).tolist() == [1, 0, 0, 0]


# ---------------------------------------------------------------- beam
def every_sequence(step, max_length):
    """All hypotheses up to a length with their log-probabilities, ended or cut."""
    for length in range(1, max_length + 1):
        for tokens in itertools.product(range(VOCAB), repeat=length):
            if STOP in tokens[:-1] or (tokens[-1] != STOP and length < max_length):
                continue
            ids, total = [START], 0.0
            for token in tokens:
                total += step(torch.tensor([ids]))[0, token].item()
                ids.append(token)
            yield list(tokens), total


@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
def test_a_wide_beam_finds_the_best_of_all_sequences(alpha):
    step = chain(seed=3, scale=1.0)
    best, total = max(every_sequence(step, 3), key=lambda pair: pair[1] / len(pair[0]) ** alpha)
    tokens, score = beam_search(step, START, STOP, VOCAB**3, 3, alpha)
    assert tokens == best
    assert score == pytest.approx(total / len(best) ** alpha, abs=1e-5)


def test_a_beam_of_one_is_greedy():
    for seed in range(6):
        step = chain(seed)
        greedy = greedy_decode(as_logits(step), torch.tensor([[START]]), STOP, PAD, 5)[0].tolist()
        seen = [state.live[0].tokens for state in beam_steps(step, START, STOP, 1, 5) if state.live]
        for tokens in seen:
            if STOP not in greedy[: len(tokens)]:
                assert list(tokens) == greedy[: len(tokens)]


def test_wider_beams_score_no_worse_here_and_sometimes_better():
    scores = [[beam_search(chain(seed), START, STOP, beam, 5)[1] for beam in (1, 4)] for seed in range(12)]
    assert all(wide >= narrow - 1e-9 for narrow, wide in scores)
    assert any(wide > narrow + 1e-3 for narrow, wide in scores)


def test_each_hypothesis_continues_its_parent():
    before = (Hypothesis(),)
    for state in beam_steps(chain(), START, STOP, 3, 4):
        for hypothesis in (*state.live, *state.ended):
            parent = before[hypothesis.parent]
            assert hypothesis.tokens[:-1] == parent.tokens
            assert hypothesis.log_probability <= parent.log_probability + 1e-9
        assert len(state.live) <= 3
        before = state.live
    assert before == ()


def test_a_length_penalty_makes_long_hypotheses_cheaper():
    short, long = Hypothesis((1,), -1.0), Hypothesis((1, 1, 1), -2.0)
    assert short.score(0) > long.score(0)
    assert short.score(1) < long.score(1)


# ---------------------------------------------------------------- cache
def test_a_cached_mask_is_the_end_of_the_whole_one():
    for new, total in ((1, 5), (3, 5), (5, 5)):
        assert torch.equal(cached_causal_mask(new, total), causal_mask(total)[total - new :])


@pytest.mark.parametrize("pieces", [(6,), (1,) * 6, (2, 3, 1)])
def test_attention_in_pieces_is_attention_at_once(pieces):
    query, key, value = (numbers(2, 3, 6, 4, seed=seed) for seed in range(3))
    whole, _ = attend_step(query, key, value, None, rope)
    cache, start, outputs = None, 0, []
    for size in pieces:
        part = slice(start, start + size)
        output, cache = attend_step(query[:, :, part], key[:, :, part], value[:, :, part], cache, rope)
        outputs.append(output)
        start += size
    same(torch.cat(outputs, 2), whole)


def test_a_reordered_cache_has_its_parents_rows_and_leaves_the_old_one():
    cache = [(numbers(3, 2, 4, 5, seed=seed), numbers(3, 2, 4, 6, seed=seed + 9)) for seed in range(2)]
    kept = [(key.clone(), value.clone()) for key, value in cache]
    parents = torch.tensor([2, 2, 0])
    for (key, value), (old_key, old_value) in zip(reorder_cache(cache, parents), cache, strict=True):
        for i, parent in enumerate(parents):
            same(key[i], old_key[parent], 0)
            same(value[i], old_value[parent], 0)
    assert all(torch.equal(a, b) for pair, old in zip(cache, kept, strict=True) for a, b in zip(pair, old, strict=True))


@pytest.mark.parametrize("position", SCHEMES)
def test_decoding_with_a_cache_gives_the_logits_of_decoding_without(position):
    built = model(position)
    target = torch.tensor([[1, 3, 4, 5, 6, 3], [1, 6, 6, 4, 5, 3]])
    with torch.no_grad():
        whole = built(SOURCE, target, SOURCE_MASK, causal_mask(6))
    step = CachedStep(built, SOURCE, SOURCE_MASK)
    for stop in (2, 3, 4, 6):  # the first and the last piece have two tokens
        same(step(target[:, :stop])[:, 0], whole[:, stop - 1], 1e-5)


@pytest.mark.parametrize("position", SCHEMES)
def test_prompts_padded_on_the_left_decode_as_they_do_alone(position):
    built = model(position)
    prompts = [[1, 4, 5, 6], [1, 6]]
    padded = torch.tensor([[1, 4, 5, 6], [0, 0, 1, 6]])
    together = greedy_decode(CachedStep(built, SOURCE, SOURCE_MASK, prompt_mask=padded != 0), padded, STOP, PAD, 5)
    step = CachedStep(built, SOURCE, SOURCE_MASK, prompt_mask=padded != 0)
    logits = step(padded)
    for row, prompt in enumerate(prompts):
        own = CachedStep(built, SOURCE[row : row + 1], SOURCE_MASK[row : row + 1])
        same(own(torch.tensor([prompt]))[0], logits[row], 1e-5)
        own = CachedStep(built, SOURCE[row : row + 1], SOURCE_MASK[row : row + 1])
        alone = greedy_decode(own, torch.tensor([prompt]), STOP, PAD, 5)[0].tolist()
        mine = together[row].tolist()
        assert mine[: len(alone)] == alone and set(mine[len(alone) :]) <= {PAD}


def test_a_beam_with_a_cache_is_a_beam_without():
    for seed in range(3):
        built = model(seed=seed)
        memory = built.encode(SOURCE[:1])

        def plain(ids, built=built, memory=memory):
            with torch.no_grad():
                logits = built.decode(ids, memory.expand(len(ids), -1, -1), causal_mask(ids.shape[1]))
            return logits[:, -1].log_softmax(-1)

        cached = CachedStep(built, SOURCE[:1], log_probabilities=True)
        tokens, score = beam_search(cached, START, STOP, 3, 6, 0.6)
        wanted, wanted_score = beam_search(plain, START, STOP, 3, 6, 0.6)
        assert tokens == wanted
        assert score == pytest.approx(wanted_score, abs=1e-5)


def test_a_cache_computes_the_memory_once_and_copies_seldom():
    cache, owner, made = KeyValueCache(), torch.nn.Identity(), []

    def compute():
        made.append(1)
        return numbers(1, 2, 3, 4), numbers(1, 2, 3, 4)

    first = cache.once(owner, compute)
    assert cache.once(owner, compute) is first
    assert len(made) == 1
    rooms = set()
    for i in range(40):
        key, _ = cache.append(owner, numbers(1, 2, 1, 4, seed=i), numbers(1, 2, 1, 5, seed=i))
        rooms.add(key.untyped_storage().data_ptr())
        same(key[:, :, i], numbers(1, 2, 1, 4, seed=i)[:, :, 0], 0)
    assert cache.length == 40
    assert len(rooms) <= 6


# ---------------------------------------------------------------- errors
PROMPT, ONE = torch.tensor([[1], [3]]), numbers(1, 2, 3, 4)


def greedy(**wrong):
    good = {"step": as_logits(chain()), "prompt": PROMPT, "stop_id": STOP, "pad_id": PAD, "max_length": 3}
    return greedy_decode(**good | wrong)


def sample(**wrong):
    good = {"step": as_logits(chain()), "prompt": PROMPT, "stop_id": STOP, "pad_id": PAD, "max_length": 3}
    return sample_decode(**good | {"generator": torch.Generator()} | wrong)


def beam(**wrong):
    return beam_search(**{"step": chain(), "start_id": START, "stop_id": STOP, "beam": 2, "max_length": 3} | wrong)


def pieces(**wrong):
    return attend_step(**{"query": ONE, "key": ONE, "value": ONE, "cache": None, "rotate": rope} | wrong)


def filled(x=None):
    cache = KeyValueCache()
    if x is not None:
        cache.append(None, x, x)
    return cache


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: greedy_decode(chain(), torch.tensor([1]), STOP, PAD, 3), "prompt"),
        (lambda: top_k_filter(numbers(2, 3), 0), "k must be"),
        (lambda: top_p_filter(numbers(2, 3), 1.5), "p must lie in 0..1, got 1.5"),
        (lambda: next_probabilities(numbers(3), -1.0, 3, 1.0), "0 is greedy"),
        (lambda: beam_search(chain(), START, STOP, 0, 3), "beam must be"),
        (lambda: cached_causal_mask(4, 3), "n_total must be"),
        (lambda: greedy(prompt=PROMPT[:, :0]), "prompt must hold a first token for each row"),
        (lambda: greedy(step=chain()), "step(ids) must have 3 axes (batch, length, vocab_size), got 2 axes"),
        (lambda: greedy(step=lambda ids: torch.zeros(5, 1, VOCAB)), "a row for each of the 2 rows of ids"),
        (lambda: greedy(step=lambda ids: torch.zeros(2, 0, VOCAB)), "got (2, 0, 7) = (batch, length, vocab_size)"),
        (
            lambda: greedy(step=lambda ids: torch.full((2, 1, VOCAB), math.nan)),
            "some token in each row a chance, got n",
        ),
        (lambda: sample(step=lambda ids: torch.full((2, 1, VOCAB), -math.inf)), "a chance, got -inf for each of them"),
        (lambda: sample(temperature=math.nan), "temperature must be at least 0, got nan: 0 is greedy"),
        (lambda: next_probabilities(numbers(3), math.inf, 3, 1.0), "temperature must be finite, got inf"),
        (lambda: beam(step=as_logits(chain())), "of the next token, got shape (1, 1, 7): step(ids)[:, -1].log_softmax"),
        (lambda: beam(step=CachedStep(model(), SOURCE[:1])), "CachedStep(..., log_"),
        (lambda: beam(step=lambda ids: torch.ones(len(ids), VOCAB)), "which are at most 0, got 1: step(ids)[:, -1]"),
        (lambda: beam(step=lambda ids: torch.full((len(ids), VOCAB), math.nan)), "a chance, got nan"),
        (lambda: beam(step=lambda ids: torch.zeros(5, VOCAB)), "a row for each of the 1 rows of ids"),
        (lambda: beam(alpha=math.nan), "alpha must be finite, got nan"),
        (lambda: CachedStep(model().train(), SOURCE), "model must be in evaluation mode"),
        (lambda: CachedStep(model(), SOURCE, prompt_mask=SOURCE), "prompt_mask must have dtype bool"),
        (lambda: CachedStep(model(), SOURCE, prompt_mask=SOURCE_MASK), "prompt_mask must have 2 axes (batch, length)"),
        (lambda: CachedStep(model(), SOURCE, prompt_mask=SOURCE != 0)(PROMPT), "the shape of the first ids, (2, 1)"),
        (lambda: CachedStep(model(), SOURCE, prompt_mask=SOURCE[:1] != 0)(SOURCE), "got (1, 5)"),
        (lambda: CachedStep(model(), SOURCE)(PROMPT[:, 0]), "ids must have 2 axes (batch, length), got 1 axis"),
        (lambda: pieces(key=ONE[:, :, :2]), "key must have the new tokens that query has, got (1, 2, 2, 4)"),
        (lambda: pieces(query=ONE[0]), "query must have 4 axes (batch, heads, new, d_k)"),
        (lambda: pieces(cache=(ONE.repeat(3, 1, 1, 1),) * 2), "got (3, 2, 3, 4): begin anew with None"),
        (lambda: pieces(cache=(ONE, ONE[0])), "the value of cache must have 4 axes"),
        (lambda: reorder_cache([(ONE, ONE)], torch.tensor([1])), "parents must lie in 0..0, the hypotheses of the ca"),
        (lambda: reorder_cache([(ONE, ONE)], torch.tensor([-1])), "got [-1]"),
        (lambda: filled().append(None, ONE, ONE[:, :, :2]), "the same batch, kv_heads and length"),
        (
            lambda: filled(ONE).reorder(torch.tensor([1])),
            "rows must be rows of the batch that the cache holds, got [1]",
        ),
        (lambda: KeyValueCache().append(None, numbers(1, 1, 1, 1).requires_grad_(), numbers(1, 1, 1, 1)), "gradients"),
    ],
)
def test_wrong_input_is_refused_with_a_sentence(call, text):
    assert text in error_text(ValueError, call)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: greedy(step=model()), "got a Transformer: CachedStep makes one of it"),
        (lambda: greedy(step=torch.nn.Linear), "step must be a function, step(ids), got the class Linear"),
        (lambda: greedy(step=lambda ids: None), "step(ids) must be a torch.Tensor, got NoneType"),
        (lambda: greedy(step=lambda ids: (ids, None)), "step(ids) must be a torch.Tensor, got tuple"),
        (lambda: greedy(prompt=PROMPT.float()), "prompt must hold whole numbers, got torch.float32"),
        (lambda: greedy(stop_id=None), "stop_id must be an int, got NoneType"),
        (lambda: greedy(pad_id="0"), "pad_id must be an int, got str ('0')"),
        (
            lambda: sample(generator=0),
            "generator must be a torch.Generator, such as torch.Generator().manual_seed(0), g",
        ),
        (lambda: sample(generator=None), "generator must be a torch.Generator"),
        (lambda: sample(temperature="1"), "temperature must be a number, got str ('1')"),
        (lambda: top_k_filter(numbers(2, 3).long(), 2), "logits must be a float tensor, got torch.int64"),
        (lambda: top_p_filter(numbers(2, 3), None), "p must be a number in 0..1, got NoneType"),
        (lambda: beam(step=model()), "got a Transformer: CachedStep makes one of it"),
        (lambda: beam(start_id=PROMPT), "start_id must be an int, got Tensor"),
        (lambda: beam(stop_id="2"), "stop_id must be an int, got str ('2')"),
        (lambda: beam(alpha=None), "alpha must be a number, got NoneType"),
        (lambda: CachedStep(None, SOURCE), "model must be a Transformer, or what has its encode and decode, got None"),
        (lambda: CachedStep(type(model()), SOURCE), "got the class Transformer"),
        (lambda: CachedStep(model(), SOURCE)([[1]]), "ids must be a torch.Tensor, got list"),
        (lambda: CachedStep(model(), SOURCE).reorder([1, 0]), "parents must be a torch.Tensor, got list"),
        (lambda: pieces(cache=KeyValueCache()), "cache must be a pair (key, value) of tensors, got KeyValueCache"),
        (lambda: pieces(rotate=None), "rotate must be a function, rotate(x, positions), got NoneType"),
        (lambda: reorder_cache((ONE, ONE), torch.tensor([0])), "cache[0] must be a pair (key, value) of tensors"),
        (lambda: reorder_cache(KeyValueCache(), torch.tensor([0])), "cache must be a list of pairs (key, value)"),
        (lambda: reorder_cache([(ONE, ONE)], torch.tensor([True])), "parents must hold whole numbers, got torch.bool"),
        (lambda: filled(ONE).reorder(torch.tensor([True])), "rows must hold whole numbers, got torch.bool"),
    ],
)
def test_what_is_of_another_kind_is_refused_with_a_sentence(call, text):
    assert text in error_text(TypeError, call)


def test_a_vocabulary_of_nothing_has_no_token_to_filter():
    for filtered in (top_k_filter(torch.zeros(2, 0), 1), top_p_filter(torch.zeros(2, 0), 0.5)):
        assert filtered.shape == (2, 0)


def test_a_step_or_a_cache_that_has_seen_more_is_refused():
    step = CachedStep(model(), SOURCE)
    ids = torch.tensor([[1, 3], [1, 4]])
    step(ids)
    assert "longer than the 2 tokens" in error_text(ValueError, lambda: step(ids))
    assert "each of the 2 sources, got 1" in error_text(ValueError, lambda: step(torch.tensor([[1, 3, 4]])))
    cache = KeyValueCache()
    cache.append(None, numbers(2, 1, 1, 1), numbers(2, 1, 1, 1))
    said = error_text(ValueError, lambda: cache.append(None, numbers(3, 1, 1, 1), numbers(3, 1, 1, 1)))
    assert "a batch of 2, got one of 3: begin a new cache" in said
    assert math.isfinite(step(torch.tensor([[1, 3, 5], [1, 4, 5]])).sum())
