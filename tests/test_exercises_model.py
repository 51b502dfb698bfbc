"""The galleries of the model's exercises: what is accepted, what is named, and what is said.

That every mistake is diagnosed as itself is tested in test_exercises.py for all exercises.
"""

import copy
import functools
import itertools

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from transformer_edu import attention
from transformer_edu.exercises import load, model_parts, sandbox
from transformer_edu.exercises.model_build_stack import Layer, described
from transformer_edu.exercises.model_decoder_io import batch
from transformer_edu.exercises.outcome import same_outcome

IO, SHIFT, LAYER, BUILD, RUN = (
    load(f"model.{name}") for name in ("decoder_io", "shift_right", "decoder_layer", "build_stack", "run_stack")
)
EXERCISES = (IO, SHIFT, LAYER, BUILD, RUN)
NAMES = [e.name.partition(".")[2] for e in EXERCISES]


def verdict(fn, exercise):
    return exercise.check(fn, quiet=True)


def accepted(fn, exercise):
    found = verdict(fn, exercise)
    assert found.status == "correct", found.message


def named(fn, exercise, name):
    found = verdict(fn, exercise)
    assert (found.status in ("wrong", "error"), found.mistake) == (True, name), found.message
    return found.message


# ---------------------------------------------------------------- the probes
@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
def test_each_probe_builds_equal_arguments_anew(exercise):
    for probe in exercise.probes:
        for a, b in zip(probe.make(), probe.make(), strict=True):
            if isinstance(a, torch.Tensor):
                assert torch.equal(a, b) and a.data_ptr() != b.data_ptr(), probe.says
            elif not isinstance(a, int) and a is not None:
                assert a == b and a is not b, probe.says


@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
def test_a_mistake_is_called_an_edge_case_only_where_ordinary_probes_cannot_see_it(exercise):
    right = exercise.expected()
    core = [i for i, probe in enumerate(exercise.probes) if not probe.edge]
    for mistake in exercise.mistakes:
        outcomes = exercise.expected(exercise.runnable(mistake))
        seen = not all(same_outcome(outcomes[i], right[i]) for i in core)
        assert seen != mistake.edge, (mistake.name, mistake.switches)


@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
def test_every_switch_of_a_mistake_is_known_to_the_one_implementation(exercise):
    for mistake in exercise.mistakes:
        errors = [outcome.error for outcome in exercise.expected(exercise.runnable(mistake))]
        assert not any(isinstance(error, (KeyError, NameError)) for error in errors), mistake.switches


def test_a_switch_for_one_placement_of_the_norm_does_nothing_in_the_other():
    for probe in LAYER.probes:
        other = "_post" if probe.make()[5] else "_pre"
        assert probe.blind_to and all(key.endswith(other) for key in probe.blind_to)


@pytest.mark.parametrize("exercise", [LAYER, RUN], ids=["decoder_layer", "run_stack"])
def test_no_weight_of_a_probes_attention_is_nearly_one_or_nothing(exercise, monkeypatch):
    seen = []

    def watched(*args):
        output, weights = attention.scaled_dot_product_attention(*args)
        seen.append(weights)
        return output, weights

    monkeypatch.setattr(model_parts, "scaled_dot_product_attention", watched)
    for probe in exercise.probes:
        exercise.reference(*probe.make())
    weights = torch.cat([w.flatten() for w in seen])
    weights = weights[(weights != 0) & (weights != 1)]  # what a mask leaves nothing or only one of
    assert len(weights) > 100 and weights.min() > 0.01 and weights.max() < 0.95


def test_a_change_of_the_parts_is_seen():
    def changing(x, memory, parts, *rest):
        result = LAYER.reference(x, memory, parts, *rest)
        parts.norm1 = parts.norm2
        return result

    assert "It changes its input: the third argument" in verdict(changing, LAYER).message
    named(
        lambda x, layers, *rest: RUN.reference(x, [layers.pop(0) for _ in list(layers)], *rest), RUN, "changes_layers"
    )


# ---------------------------------------------------------------- decoder_io
def padded(rows, fill):
    return pad_sequence([torch.tensor(row, dtype=torch.int64) for row in rows], batch_first=True, padding_value=fill)


def lengths_of(sequences):
    return torch.tensor([len(y) + 1 for y in sequences])


def io(target_in=lambda y, a, z: [a, *y], target_out=lambda y, a, z: [*y, z], more=0):
    def answer(sequences, start, stop, pad, ignore=-100):
        rows = [target_in(y, start, stop) for y in sequences], [target_out(y, start, stop) for y in sequences]
        return padded(rows[0], pad), padded(rows[1], ignore), lengths_of(sequences) + more

    return answer


def two_slices(sequences, start, stop, pad, ignore=-100):  # the stop of a short row stays in the padding of the input
    both = padded([[start, *y, stop] for y in sequences], pad)
    lengths = lengths_of(sequences)
    real = torch.arange(both.shape[1] - 1) < lengths[:, None]
    return both[:, :-1], both[:, 1:].where(real, ignore), lengths


def transposed_zip(sequences, start, stop, pad, ignore=-100):
    target_in = torch.tensor(list(itertools.zip_longest(*[[start, *y] for y in sequences], fillvalue=pad))).T
    target_out = torch.tensor(list(itertools.zip_longest(*[[*y, stop] for y in sequences], fillvalue=ignore))).T
    return [target_in, target_out, (target_out != ignore).sum(1)]


@pytest.mark.parametrize("answer", [io(), two_slices, transposed_zip])
def test_a_right_decoder_io_is_accepted(answer):
    accepted(answer, IO)


def io_changed(change):
    def answer(sequences, *specials):
        return change(*io()(sequences, *specials), sequences, *specials)

    return answer


def by_value(target_in, target_out, lengths, sequences, start, stop, pad, ignore=-100):
    target_out = padded([[*y, stop] for y in sequences], pad)
    return target_in, target_out.masked_fill(target_out == pad, ignore), lengths


def stop_last(target_in, target_out, lengths, sequences, start, stop, pad, ignore=-100):
    column = torch.full((len(sequences), 1), stop)
    return target_in, torch.cat([padded(sequences, ignore), column], 1), lengths


def crashing_slice(sequences, start, stop, pad, ignore=-100):
    target_in = torch.full((len(sequences), max(map(len, sequences))), pad)
    for row, y in zip(target_in, sequences, strict=True):
        row[1 : len(y) + 1] = torch.tensor(y)
    return target_in, target_in, lengths_of(sequences)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (io(target_in=lambda y, a, z: [*y, z]), "not_shifted"),
        (io(lambda y, a, z: [a, *y, z], lambda y, a, z: [a, *y, z], 1), "both_specials"),
        (io(lambda y, a, z: [*y, z], lambda y, a, z: [a, *y]), "shifted_left"),
        (io(target_in=lambda y, a, z: y), "start_missing"),
        (io(target_out=lambda y, a, z: y), "stop_missing"),
        (io(target_out=lambda y, a, z: [a, *y, z]), "start_in_labels"),
        (io(target_in=lambda y, a, z: [a, *y, z]), "stop_in_input"),
        (io(target_in=lambda y, a, z: [*y, z], more=-1), "not_shifted + old_lengths"),
        (lambda s, pad, start, stop, ignore=-100: io()(s, start, stop, pad, ignore), "specials_exchanged"),
        (lambda s, start, stop, pad, ignore: io()(s, start, stop, pad, ignore), "ignore_required"),
        (lambda s, start, stop, pad, ignore=0: io()(s, start, stop, pad, ignore), "ignore_default"),
        (lambda s, start, stop, pad, ignore=-100: io()(s, start, stop, ignore, pad), "fills_exchanged"),
        (lambda s, start, stop, pad, ignore=-100: io()(s, start, stop, pad, pad), "labels_padded_with_pad"),
        (lambda s, start, stop, pad, ignore=-100: io()(s, start, stop, ignore, ignore), "ignore_in_input"),
        (io_changed(lambda a, b, n, s, *rest: (a, b, a != rest[2])), "mask_for_lengths"),
        (io_changed(lambda a, b, n, s, *rest: (a, b, (a != rest[2]).sum(1))), "lengths_by_value"),
        (io_changed(lambda a, b, n, *rest: (a, b)), "lengths_missing"),
        (io_changed(lambda a, b, n, *rest: (b, a, n)), "results_exchanged"),
        (io_changed(lambda a, b, n, *rest: (a, b, n.tolist())), "list_lengths"),
        (io_changed(lambda a, b, n, *rest: (a.T, b.T, n)), "length_first"),
        (io_changed(lambda a, b, n, *rest: (a[0], b[0], n[0])), "one_axis"),
        (io_changed(lambda a, b, n, *rest: (a[:, :-1], b[:, :-1], n)), "one_column_short"),
        (io_changed(by_value), "padded_by_value"),
        (io_changed(stop_last), "stop_after_padding"),
        (crashing_slice, "slice_does_not_fit"),
    ],
)
def test_a_wrong_decoder_io_is_named(answer, name):
    named(answer, IO, name)


def test_the_lists_of_the_caller_must_stay_as_they_are():
    def appending(sequences, start, stop, pad, ignore=-100):
        for y in sequences:
            y.append(stop)
        return io(lambda y, a, z: [a, *y[:-1]], lambda y, a, z: y, -1)(sequences, start, stop, pad, ignore)

    assert "[start, *y]" in named(appending, IO, "changes_sequences")


# ---------------------------------------------------------------- shift_right
def joined(labels, start, pad, ignore=-100):
    return torch.cat([torch.full_like(labels[:, :1], start), labels[:, :-1]], 1)


def backwards(labels, start, pad, ignore=-100):
    out = labels.clone()
    for place in range(labels.shape[1] - 1, 0, -1):
        out[:, place] = out[:, place - 1]
    out[:, 0] = start
    return out.masked_fill(out == ignore, pad)


def forwards(labels, start, pad, ignore=-100):
    out = labels.clone()
    for place in range(1, labels.shape[1]):
        out[:, place] = out[:, place - 1]
    out[:, 0] = start
    return out.masked_fill(out == ignore, pad)


@pytest.mark.parametrize(
    "answer",
    [
        backwards,
        lambda x, start, pad, ignore=-100: nn.functional.pad(torch.where(x == ignore, pad, x), (1, -1), value=start),
        lambda x, start, pad, ignore=-100: torch.tensor(
            [[start, *(pad if i == ignore else i for i in row[:-1])] for row in x.tolist()]
        ),
        lambda x, start, pad, ignore=-100: x.roll(1).masked_fill(x.roll(1) == ignore, pad).index_fill(
            1, torch.tensor([0]), start
        ),
    ],
)  # fmt: skip
def test_a_right_shift_is_accepted(answer):
    accepted(answer, SHIFT)


def rolled(set_start):
    def answer(labels, start, pad, ignore=-100):
        out = labels.roll(1, 1)
        set_start(out, start)
        return out.masked_fill(out == ignore, pad)

    return answer


def without_the_stop(labels, start, pad, ignore=-100):
    rows = [[start, *[i for i in row if i != ignore][:-1]] for row in labels.tolist()]
    return torch.tensor([row + [pad] * (labels.shape[1] - len(row)) for row in rows])


def overwriting(labels, start, pad, ignore=-100):
    labels[:, 1:] = labels[:, :-1].clone()
    labels[:, 0] = start
    return labels.masked_fill(labels == ignore, pad)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (joined, "ignore_kept"),
        (rolled(lambda out, start: None), "roll"),
        (rolled(lambda out, start: out[0].fill_(start)), "start_in_first_row"),
        (rolled(lambda out, start: out[0, 0].fill_(start)), "start_in_one_row"),
        (forwards, "written_while_read"),
        (without_the_stop, "stop_dropped"),
        (overwriting, "labels_overwritten"),
        (lambda x, a, p, i=-100: joined(x, a, p).masked_fill(x == i, p), "replaced_before_shift"),
        (lambda x, a, p, i=-100: joined(x, a, p).masked_fill(joined(x, a, p) == -100, p), "ignore_hard_coded"),
        (lambda x, a, p, i=-100: torch.where(joined(x, a, p) == i, joined(x, a, p), p), "branches_exchanged"),
        (lambda x, p, a, i=-100: joined(x, a, p).masked_fill(joined(x, a, p) == i, p), "start_and_pad_exchanged"),
        (lambda x, a, p, i=-100: torch.cat([torch.tensor([[a]]), x[:, :-1]], 1), "start_for_one_row"),
        (lambda x, a, p, i=-100: torch.cat([x[:, :1] * 0 + a, x[:, :-1]]), "joined_along_the_batch"),
        (lambda x, a, p, i=-100: torch.cat([torch.tensor([a]), x[:, :-1]], 1), "start_has_other_axes"),
        (lambda x, a, p, i=-100: joined(x, a, p).float(), "ignore_kept + float_ids"),
    ],
)
def test_a_wrong_shift_is_named(answer, name):
    named(answer, SHIFT, name)


# ---------------------------------------------------------------- decoder_layer
def wired(  # a reader's layer with things gone wrong, written without a look at the gallery's
    *,
    own=lambda p, a, m, t, k: p.self_attn(a, a, a, t),
    cross=lambda p, a, m, t, k: p.cross_attn(a, m, m, k),
    norms="123",
    order=(0, 1, 2),
    before=lambda x, f, n: x + f(n(x)),
    after=lambda x, f, n: n(x + f(x)),
    pre=bool,
):
    def answer(x, memory, p, tgt_mask, mem_mask, pre_norm):
        steps = (
            lambda a: own(p, a, memory, tgt_mask, mem_mask),
            lambda a: cross(p, a, memory, tgt_mask, mem_mask),
            p.ffn,
        )
        for i in order:
            x = (before if pre(pre_norm) else after)(x, steps[i], getattr(p, f"norm{norms[i]}"))
        return x

    return answer


def token_by_token(x, memory, p, tgt_mask, mem_mask, pre_norm):
    """Each token by itself, with the tokens that it may see, so that no causal mask is needed."""

    def own(a):
        tokens = range(a.shape[1])
        return torch.cat([p.self_attn(a[:, i : i + 1], a[:, : i + 1], a[:, : i + 1], None) for i in tokens], 1)

    return wired(own=lambda q, a, *rest: own(a))(x, memory, p, tgt_mask, mem_mask, pre_norm)


def written_into_a_copy(x, memory, p, tgt_mask, mem_mask, pre_norm):
    x = x.clone()
    for f, norm in (
        (lambda a: p.self_attn(query=a, key=a, value=a, mask=tgt_mask), p.norm1),
        (lambda a: p.cross_attn(a, memory, memory, mask=mem_mask), p.norm2),
        (p.ffn, p.norm3),
    ):
        x += f(norm(x) if pre_norm else x.clone())
        x = x if pre_norm else norm(x)
    return x


@pytest.mark.parametrize(
    "answer",
    [
        wired(),
        token_by_token,
        written_into_a_copy,
        wired(before=lambda x, f, n: f(n(x)).add(x), after=lambda x, f, n: n(torch.stack([x, f(x)]).sum(0))),
    ],
)
def test_a_right_decoder_layer_is_accepted(answer):
    accepted(answer, LAYER)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (wired(pre=lambda pre_norm: True), "always_pre_norm"),
        (wired(pre=lambda pre_norm: pre_norm == "pre"), "always_post_norm"),
        (wired(pre=lambda pre_norm: not pre_norm), "placements_exchanged"),
        (wired(own=lambda p, a, m, t, k: p.self_attn(a, a, a)), "self_mask_missing"),
        (wired(own=lambda p, a, m, t, k: p.self_attn(a, a, a, k)), "memory_mask_in_self"),
        (wired(cross=lambda p, a, m, t, k: p.cross_attn(a, m, m, None)), "memory_mask_missing"),
        (wired(cross=lambda p, a, m, t, k: p.cross_attn(a, m, m, t)), "target_mask_in_cross"),
        (wired(cross=lambda p, a, m, t, k: p.cross_attn(m, a, a, k)), "query_from_memory"),
        (wired(cross=lambda p, a, m, t, k: p.cross_attn(a, m, a, k)), "values_from_decoder"),
        (wired(cross=lambda p, a, m, t, k: p.cross_attn(a, a, a, None)), "memory_unused"),
        (wired(cross=lambda p, a, m, t, k: p.cross_attn(a, p.norm2(m), p.norm2(m), k)), "memory_normed"),
        (wired(cross=lambda p, a, m, t, k: p.self_attn(a, m, m, k)), "one_attention_for_both"),
        (wired(order=(0, 2, 1)), "feed_forward_too_early"),
        (wired(order=(1, 0, 2)), "cross_before_self"),
        (wired(order=(0, 2)), "cross_attention_skipped"),
        (wired(norms="122"), "feed_forward_wrong_norm"),
        (wired(norms="111"), "one_norm_for_all"),
        (wired(norms="132"), "norms_exchanged"),
        (wired(before=lambda x, f, n: n(x) + f(n(x))), "pre_residual_of_normed"),
        (wired(after=lambda x, f, n: x + n(f(x))), "post_norm_of_sublayer_alone"),
        (wired(before=lambda x, f, n: f(n(x)), after=lambda x, f, n: n(f(x))), "residuals_missing"),
        (wired(after=lambda x, f, n: x + f(n(x)), order=(0, 2, 1)), "always_pre_norm + feed_forward_too_early"),
        (
            wired(
                own=lambda p, a, m, t, k: p.self_attn(a, a, a, None),
                cross=lambda p, a, m, t, k: p.cross_attn(a, m, m, None),
            ),
            "self_mask_missing + memory_mask_missing",
        ),
        (lambda x, m, *rest: wired()(m, x, *rest), "x_and_memory_exchanged"),
        (lambda x, m, *rest: wired()(x, m.detach(), *rest), "gradient_cut"),
        (lambda *args: (wired()(*args), args[1]), "more_results"),
    ],
)
def test_a_wrong_decoder_layer_is_named(answer, name):
    named(answer, LAYER, name)


@pytest.mark.parametrize(
    ("answer", "name", "said"),
    [
        (
            wired(own=lambda p, a, m, t, k: p.self_attn(a, torch.cat([a, m], 1), torch.cat([a, m], 1), None)),
            "future_seen",
            "Your result at the first target token changes with the last one",
        ),
        (
            wired(cross=lambda p, a, m, t, k: torch.sin(p.cross_attn(a, m, m, None))),
            "padding_seen",
            "changes with the numbers in the padding of the memory",
        ),
        (
            wired(cross=lambda p, a, m, t, k: torch.sin(a)),
            "memory_without_effect",
            "stays the same with another memory",
        ),
        (
            lambda x, m, p, t, k, pre: wired()(x, m, p, t, k, pre) * (1 if pre else 2),
            "post_wrong",
            "it is right with pre_norm True, and not with False.",
        ),
    ],
)
def test_what_no_gallery_foresees_is_told_by_what_the_layer_does(answer, name, said):
    assert said in named(answer, LAYER, name)


# ---------------------------------------------------------------- build_stack
def through(layers, x):
    for layer in layers:
        x = layer(x)
    return x


class Stack(nn.Module):
    def __init__(self, layers, run=through):
        super().__init__()
        self.layers, self.run = layers, run

    def forward(self, x):
        return self.run(self.layers, x)


def listed(make_layer, n):
    return nn.ModuleList(make_layer() for _ in range(n))


def built(run):
    return lambda make_layer, n: Stack(listed(make_layer, n), run)


def inner_first(make_layer, n):
    stack = nn.Identity()
    for _ in range(n):
        stack = nn.Sequential(stack, make_layer())
    return stack


def outer_first(make_layer, n):
    class Then(nn.Module):
        def __init__(self, k):
            super().__init__()
            self.rest, self.layer = Then(k - 1) if k > 1 else nn.Identity(), make_layer()

        def forward(self, x):
            return self.rest(self.layer(x))

    return Then(n) if n else nn.Identity()


def refusing(make_layer, n):
    if not n:
        raise ValueError("n must be at least 1")
    return nn.Sequential(*listed(make_layer, n))


@pytest.mark.parametrize(
    "answer",
    [
        built(through),
        built(lambda layers, x: functools.reduce(lambda y, layer: layer.forward(y), layers, x)),
        inner_first,
        outer_first,
        refusing,
        lambda make, n: nn.Sequential(*(copy.deepcopy(layer) for layer in [make()] * n)),
        lambda make, n: Stack(nn.ModuleDict({str(i): make() for i in range(n)}), lambda d, x: through(d.values(), x)),
    ],
)
def test_a_right_stack_is_accepted(answer):
    accepted(answer, BUILD)


def made_in_forward(make_layer, n):
    return Stack(None, lambda _, x: through([make_layer() for _ in range(n)], x))


def partly_hidden(make_layer, n):
    first = make_layer()
    rest = [copy.deepcopy(first) for _ in range(n - 1)]
    return Stack(first, lambda layer, x: through([layer, *rest], x))


def frozen_copies(make_layer, n):
    return nn.Sequential(*(make_layer().requires_grad_(i == 0) for i in range(n)))


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (lambda make, n: nn.Sequential(*[make()] * n), "one_layer_shared"),
        (lambda make, n: nn.Sequential(*copy.deepcopy([make()] * n)), "one_layer_shared"),
        (lambda make, n: Stack(make(), lambda layer, x: through([layer] * n, x)), "one_layer_shared"),
        (lambda make, n: Stack([make() for _ in range(n)]), "not_registered"),
        (made_in_forward, "made_in_forward"),
        (partly_hidden, "partly_registered + one_layer_at_least"),
        (frozen_copies, "frozen"),
        (listed, "no_forward"),
        (lambda make, n: nn.ModuleList([make()] * n), "no_forward"),
        (lambda make, n: [make() for _ in range(n)], "list"),
        (lambda make, n: functools.partial(through, [make() for _ in range(n)]), "function"),
        (lambda make, n: dict(enumerate(listed(make, n))), "no_module"),
        (lambda make, n: Stack, "class"),
        (lambda make, n: nn.Sequential([make() for _ in range(n)]), "star_missing"),
        (lambda make, n: nn.Sequential(*[make] * n), "maker_not_called"),
        (lambda make, n: nn.Sequential(*map(make, range(n))), "maker_given_argument"),
        (lambda make, n: nn.Sequential(make() * n), "layer_multiplied"),
        (lambda make, n: nn.Sequential(*listed(make, n + 1)), "one_too_many"),
        (lambda make, n: nn.Sequential(make(), *listed(make, n)), "one_too_many"),
        (lambda make, n: nn.Sequential(make(), *listed(make, n - 1)), "one_layer_at_least"),
        (lambda make, n: nn.Sequential(*listed(make, n), nn.LayerNorm(2)), "other_parts"),
        (lambda make, n: nn.Sequential(*(nn.Sequential(make(), nn.Dropout()) for _ in range(n))), "random"),
        (built(lambda layers, x: [layer(x) for layer in layers][-1] if len(layers) else x), "input_not_handed_on"),
        (built(lambda layers, x: through(layers[:1], x)), "first_layer_only"),
        (built(lambda layers, x: through([layers[0] for _ in layers], x)), "one_layer_repeated"),
        (built(lambda layers, x: through(reversed(layers), x)), "reversed"),
        (built(lambda layers, x: sum(layer(x) for layer in layers)), "layers_summed"),
        (built(lambda layers, x: through(layers, x).detach()), "no_gradient"),
        (built(lambda layers, x: None), "forward_returns_nothing"),
        (built(lambda layers, x: (through(layers, x), x)), "forward_gives_no_tensor"),
        (built(lambda layers, x: through(layers, x) * 3), "forward_wrong"),
    ],
)
def test_a_wrong_stack_is_named(answer, name):
    named(answer, BUILD, name)


def test_a_stack_is_described_in_words():
    assert described(nn.Sequential(Layer(), Layer())) == "a module with 4 parameter tensors; [1, 2] becomes [-7, 1]"
    assert described(nn.ModuleList([Layer()])) == "a module with 2 parameter tensors and without forward"
    assert described([Layer(), Layer()]) == "a list or tuple of length 2"
    hidden = described(Stack([Layer()]))
    assert hidden == "a module with 0 parameter tensors; [1, 2] becomes [-2, 3]; .double() does not reach all layers"


def test_a_stack_whose_forward_never_ends_is_stopped(monkeypatch):
    monkeypatch.setattr(sandbox.Budget.__init__, "__defaults__", (0.3,))
    endless = built(lambda layers, x: [None for _ in itertools.count()])
    assert "It did not finish" in verdict(endless, BUILD).message


def test_an_unwritten_function_is_not_attempted_and_an_unwritten_forward_is():
    def stub(make_layer, n):
        raise NotImplementedError

    assert verdict(stub, BUILD).status == "not attempted"
    assert verdict(listed, BUILD).status == "wrong"


# ---------------------------------------------------------------- run_stack
def ran(
    step=lambda layer, x, mask, i: layer(x, mask), end=lambda norm, x, pre: norm(x) if pre else x, which=slice(None)
):
    def answer(x, layers, mask, final_norm, pre_norm):
        for i, layer in enumerate(layers[which]):
            x = step(layer, x, mask, i)
        return end(final_norm, x, pre_norm)

    return answer


def all_states(x, layers, mask, final_norm, pre_norm):
    states = []
    for layer in layers:
        x = layer(x, mask)
        states.append(final_norm(x) if pre_norm else x)
    return states


def normed_within(x, layers, mask, final_norm, pre_norm):
    for layer in layers:
        x = layer(x, mask)
        x = final_norm(x) if pre_norm else x
    return x


def hidden_set_to_zero(layer, x, mask, i):
    return layer(x if mask is None else x * mask.mT, mask)


@pytest.mark.parametrize(
    "answer",
    [
        ran(),
        lambda x, layers, mask, norm, pre: functools.reduce(
            lambda y, f: f(y), [*(functools.partial(layer, mask=mask) for layer in layers), *[norm] * pre], x
        ),
        lambda x, layers, mask, norm, pre: RUN.reference(x.clone(), tuple(layers), mask, norm, pre),
    ],
)
def test_a_right_run_is_accepted(answer):
    accepted(answer, RUN)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (ran(end=lambda norm, x, pre: norm(x)), "norm_always"),
        (ran(end=lambda norm, x, pre: x), "norm_never"),
        (ran(end=lambda norm, x, pre: x if pre else norm(x)), "norm_the_wrong_way_round"),
        (ran(end=lambda norm, x, pre: norm if pre else x), "norm_not_called"),
        (ran(end=lambda norm, x, pre: norm(x, None) if pre else x), "norm_given_mask"),
        (ran(end=lambda norm, x, pre: norm(x) if pre else None), "nothing_returned"),
        (normed_within, "norm_after_each_layer"),
        (all_states, "all_states_returned"),
        (ran(step=lambda layer, x, mask, i: layer(x)), "mask_dropped"),
        (ran(step=lambda layer, x, mask, i: layer(x, mask if i == 0 else None)), "mask_for_first_only"),
        (ran(step=lambda layer, x, mask, i: layer(mask, x)), "arguments_exchanged"),
        (ran(step=lambda layer, x, mask, i: x + layer(x, mask)), "residual_added"),
        (ran(step=hidden_set_to_zero), "hidden_tokens_changed"),
        (ran(step=lambda layer, x, mask, i: layer(x, mask).detach()), "gradient_cut"),
        (ran(step=lambda layer, x, mask, i: torch.sin(layer(x))), "mask_without_effect"),
        (ran(which=slice(None, None, -1)), "reversed"),
        (ran(which=slice(None, -1)), "last_layer_missing"),
        (ran(which=slice(1)), "first_layer_only"),
        (ran(which=slice(None, None, 2)), "one_layer_right"),
        (ran(which=slice(1), end=lambda norm, x, pre: norm(x)), "norm_always + first_layer_only"),
        (lambda x, layers, mask, norm, pre: layers(x, mask), "list_called"),
        (lambda x, layers, mask, norm, pre: [x := layers[i](x, mask) for i in range(6)], "layer_beyond_last"),
    ],
)
def test_a_wrong_run_is_named(answer, name):
    named(answer, RUN, name)


# ---------------------------------------------------------------- what students were told in trials
def test_two_mistakes_of_a_batch_are_shown_where_both_can_be_seen():
    def both(sequences, start, stop, pad, ignore=-100):
        width = max(map(len, sequences)) + 1
        rows = [([start, *y], [*y, stop], [ignore] * (width - len(y) - 1)) for y in sequences]
        target_in, target_out = (torch.tensor([row[i] + row[2] for row in rows]) for i in (0, 1))
        return target_in, target_out, torch.tensor([len(y) for y in sequences])

    found = verdict(both, load("model.decoder_io"))
    assert found.mistake == "ignore_in_input + old_lengths"
    assert "On this input the labels are right, the input and lengths are not." in found.message


def test_a_negative_number_is_not_taken_for_ignore():
    def below_zero(labels, start, pad, ignore=-100):
        out = torch.cat([labels.new_full((len(labels), 1), start), labels[:, :-1]], 1)
        return out.masked_fill(out < 0, pad)

    found = verdict(below_zero, load("model.shift_right"))
    assert found.mistake == "negatives_replaced" and "no embedding has a row" not in found.message


def test_layers_made_in_forward_are_not_said_to_compute_the_right_result():
    found = verdict(made_in_forward, load("model.build_stack"))
    assert found.mistake == "made_in_forward" and "right result" not in found.message


def test_a_last_layer_left_out_is_not_said_to_come_of_range_alone():
    def short(x, layers, mask, final_norm, pre_norm):
        for layer in layers[:-1]:
            x = layer(x, mask)
        return final_norm(x) if pre_norm else x

    found = verdict(short, load("model.run_stack"))
    assert found.mistake == "last_layer_missing" and "layers[:-1]" in found.message


def test_lists_changed_where_ignore_is_left_out_are_not_labels_filled_up_with_something_else():
    def changing(sequences, start, stop, pad, ignore=None):
        right = batch(sequences, start, stop, pad, -100 if ignore is None else ignore)
        if ignore is None:
            sequences[0].append(stop)
        return right

    assert verdict(changing, IO).mistake == "changes_input"
