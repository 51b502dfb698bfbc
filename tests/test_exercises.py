"""The exercise machine: what a verdict says, what it never does, and that each mistake is told from every other."""

import contextlib
import functools
import importlib
import io
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest
import torch

from transformer_edu import masks
from transformer_edu.exercises import Exercise, Mistake, Probe, Result, Symptom, load, names, sandbox

CAUSAL = load("masks.causal_mask")


def right(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


def verdict(fn, name="masks.causal_mask"):
    return load(name).check(fn, quiet=True)


@pytest.fixture
def hurry(monkeypatch):
    """Endless functions are stopped after a third of a second, not after four seconds."""
    monkeypatch.setattr(sandbox.Budget.__init__, "__defaults__", (0.3,))


# ---------------------------------------------------------------- the contract
def test_names_are_the_exercises_of_the_lessons_in_order():
    wanted = [
        "welcome.mix",
        "masks.padding_mask",
        "masks.causal_mask",
        "masks.decoder_mask",
        "masks.cross_mask",
    ]
    wanted += ["attention.softmax", "attention.scaled_dot_product_attention"]
    wanted += ["heads.split_heads", "heads.merge_heads", "heads.multi_head_attention"]
    wanted += ["feedforward.feed_forward", "feedforward.swiglu"]
    wanted += ["norms.layer_norm", "norms.rms_norm", "norms.residual_block"]
    wanted += ["positions.sinusoidal_positions", "positions.add_positions", "positions.embed_tokens"]
    wanted += ["positions.position_ids"]
    wanted += ["relative.alibi_slopes", "relative.alibi_bias", "relative.t5_bucket", "relative.shaw_index"]
    wanted += ["relative.relative_table", "relative.relative_shift", "relative.relative_scores", "relative.rope"]
    wanted += ["model.decoder_io", "model.shift_right", "model.decoder_layer", "model.build_stack", "model.run_stack"]
    wanted += ["training.sequence_loss", "training.joined_loss", "training.perplexity", "training.noam_lr"]
    wanted += ["training.train_step", "training.smoothed_targets", "training.label_smoothing"]
    wanted += ["decoding.greedy_decode", "decoding.top_k_filter", "decoding.top_p_filter"]
    wanted += ["decoding.next_probabilities", "decoding.beam_search", "decoding.cached_causal_mask"]
    wanted += ["decoding.attend_step", "decoding.reorder_cache"]
    assert names() == wanted
    assert [load(name).name for name in names()] == wanted


@pytest.mark.parametrize("name", ["masks.causal", "mask.causal_mask", "causal_mask", ""])
def test_an_unknown_exercise_is_refused_with_the_list_of_all(name):
    with pytest.raises(ValueError, match=r"name must be one of welcome\.mix, .*got"):
        load(name)


@pytest.mark.parametrize("name", names())
def test_the_reference_is_correct_and_carried_forward(name):
    exercise = load(name)
    found = exercise.check(exercise.reference, quiet=True)
    assert (found.status, found.mistake, found.difference) == ("correct", None, None)
    assert found.message == f"✓ {name}: correct."


@pytest.mark.parametrize("name", names())
def test_a_stub_is_not_attempted_and_the_reference_is_carried_forward(name):
    def stub(*arguments):
        raise NotImplementedError

    found = load(name).check(stub, quiet=True)
    assert (found.status, found.mistake) == ("not attempted", None)
    assert found.carry_forward() is load(name).reference


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize(
    "answer", [lambda *a: None, lambda *a: a[0], lambda *a: 1 / 0], ids=["none", "input", "raises"]
)
def test_an_answer_that_does_nothing_is_never_correct(name, answer):
    found = load(name).check(answer, quiet=True)
    assert found.status in ("wrong", "error")
    assert found.carry_forward() is load(name).reference


@pytest.mark.parametrize("name", names())
def test_every_mistake_of_the_gallery_is_diagnosed_as_itself(name):
    exercise = load(name)
    for mistake in exercise.mistakes:
        found = exercise.check(exercise.runnable(mistake), quiet=True)
        assert (found.status, found.mistake) == ("wrong", mistake.name), mistake.switches


@pytest.mark.parametrize("name", names())
def test_a_gallery_has_at_least_three_mistakes_and_sentences_without_filler(name):
    mistakes = load(name).mistakes
    assert len({m.name for m in mistakes}) >= 3
    for mistake in mistakes:
        assert mistake.sentence[0].isupper() and mistake.sentence.endswith((".", ".)", "?")), mistake.name
        assert "!" not in mistake.sentence.replace("!=", "") and "  " not in mistake.sentence, mistake.name


def test_a_correct_answer_is_carried_forward_itself():
    assert verdict(right).carry_forward() is right


def test_check_prints_the_message_unless_quiet(capsys):
    CAUSAL.check(right)
    assert capsys.readouterr().out == "✓ masks.causal_mask: correct.\n"
    CAUSAL.check(right, quiet=True)
    assert capsys.readouterr().out == ""


def test_two_mistakes_at_once_are_named_as_two():
    found = verdict(lambda length: torch.ones(length, length).triu())
    assert found.mistake == "flipped + float_ones"
    assert "Two things at once.\n1. Your triangle is flipped" in found.message
    assert "2. Your mask holds the numbers 1.0 and 0.0" in found.message


# ---------------------------------------------------------------- what an answer may be
class Callable:
    def __call__(self, length):
        return right(length)


@pytest.mark.parametrize(
    "answer",
    [
        Callable(),
        lambda n, *, extra=1: right(n),
        lambda *sizes: right(*sizes),
        eval("lambda n: __import__('torch').ones(n, n).tril() > 0"),
    ],
    ids=["callable object", "keyword with default", "starred", "closure without source"],
)
def test_any_callable_is_accepted(answer):
    assert verdict(answer).status == "correct"


def test_double_precision_is_accepted_where_float_is_expected():
    assert verdict(lambda w, v: w.double() @ v.double(), "welcome.mix").status == "correct"


def test_a_mask_that_broadcasts_to_the_expected_one_is_accepted_for_cross_attention():
    row = lambda lengths, queries, width: masks.padding_mask(lengths, width)  # noqa: E731
    assert verdict(row, "masks.cross_mask").status == "correct"


def test_printing_is_hidden_and_said():
    def chatty(length):
        print("here I am")
        print("and here", file=sys.stderr)
        return right(length)

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        found = CAUSAL.check(chatty)
    assert found.status == "correct"
    assert "here" not in out.getvalue() and "What your function prints is hidden" in out.getvalue()


# ---------------------------------------------------------------- the general answers, in their order
@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (None, "error", "A function was expected, but this is of type NoneType."),
        (lambda: right(2), "error", "It could not be called with 1 positional argument:"),
        (lambda n: right(n)[n + 1], "error", "It raised IndexError"),
        (lambda n: None, "wrong", "The mask should be a tensor, but is None. Did you forget return?"),
        (
            lambda n: right(n).tolist(),
            "wrong",
            "The mask should be a tensor, but is a list or tuple of length 2.",
        ),
        (
            lambda n: right(n).numpy(),
            "wrong",
            "a NumPy array of shape (2, 2): torch.as_tensor makes it a tensor",
        ),
        (lambda n: "mask", "wrong", "The mask should be a tensor, but is of type str."),
        (
            lambda n: right(n).to(torch.complex64),
            "wrong",
            "The mask should have dtype bool, but has complex64.",
        ),
        (lambda n: right(n)[:, :1], "wrong", "should have shape (2, 2) = (query, key), but has (2, 1)."),
        (lambda n: right(n).to("meta"), "wrong", "The mask lives on another device than the inputs"),
    ],
)
def test_the_general_answer_names_what_is_wrong(answer, status, said):
    found = verdict(answer)
    assert found.status == status
    assert said in found.message


def test_the_readers_own_line_is_shown_where_it_raises():
    def indexed(length):
        mask = right(length)
        return mask[:, length + 3]

    assert "Your line: return mask[:, length + 3]" in verdict(indexed).message


def test_a_transpose_that_would_mend_the_shape_is_pointed_out():
    found = verdict(lambda lengths, n: masks.decoder_mask(lengths, n).permute(3, 1, 2, 0), "masks.decoder_mask")
    assert "should have shape (1, 1, 3, 3) = (batch, head axis, query, key), but has (3, 1, 3, 1)" in found.message


def test_the_first_differing_entry_is_named_with_its_axes_and_both_numbers():
    def moved(weights, values):
        result = weights @ values
        return torch.where(torch.arange(result.shape[1]) == 1, result + 0.5, result)

    found = verdict(moved, "welcome.mix")
    assert "at [query 0, column 1] you gave 0.5, expected 0 (2 of 4 entries differ)." in found.message
    assert found.difference.where == (0, 1)
    assert found.difference.given.shape == found.difference.expected.shape == (2, 2)
    assert found.difference.axes == ("query", "column")


def test_an_input_changed_in_place_is_named():
    def greedy(weights, values):
        result = weights @ values
        values += 1
        return result

    assert "It changes its input: the second argument is not the same" in verdict(greedy, "welcome.mix").message


def test_a_result_that_is_not_finite_is_named():
    found = verdict(lambda w, v: w @ v / (w - w).sum(), "welcome.mix")
    assert "The result is not finite: inf at [query 0, column 0], expected 2." in found.message


def test_addresses_and_temporary_files_never_reach_the_message():
    where = f"bad {object()} in /there/ipykernel_12/34.py"

    def points(length):
        raise ValueError(where)

    message = verdict(points).message
    assert "bad <object object at 0x...> in (your cell)" in message and "ipykernel" not in message


def test_a_result_that_cannot_be_compared_is_wrong():
    class Odd:
        def __eq__(self, other):
            raise RuntimeError("no")

    assert "The mask should be a tensor, but is of type Odd." in verdict(lambda length: Odd()).message
    assert "is a sparse tensor" in verdict(lambda length: right(length).to_sparse()).message
    assert "is a function (is a pair of parentheses missing?)" in verdict(lambda length: right(length).bool).message


def test_a_huge_result_is_refused_after_the_first_call():
    calls = []

    def huge(length):
        calls.append(length)
        return torch.ones(1, dtype=torch.bool).expand(10**6, 10**6)

    assert "should have shape (2, 2) = (query, key), but has (1000000, 1000000)" in verdict(huge).message
    assert calls == [2]


def test_half_precision_is_no_answer_to_single_precision():
    assert "should have dtype float32, but has float16" in verdict(lambda w, v: (w @ v).half(), "welcome.mix").message


def test_an_error_whose_text_raises_is_an_error():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no")

    def mute(length):
        raise Mute

    assert "It raised Mute" in verdict(mute).message


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda n: right(n) and right(n), "& | and ~ work entry by entry"),
        (lambda n: right(n) & right(n + 1), "laid over each other from the right"),
        (lambda n: torch.ones(n, n + 1) @ torch.ones(n, n), "the last axis of a must be as long as the second last"),
        (lambda n: torch.ones(n, 2 * n).T.view(-1), "reshape copies them"),
        (lambda n: torch.cat([torch.ones(n, n), torch.ones(n, 1)]), "axis 0 if none is named"),
        (lambda n: torch.cat([torch.ones(n, n), torch.ones(n)], 1), "[:, None] gives a vector a second one"),
    ],
)
def test_frequent_crashes_are_explained(answer, said):
    assert said in verdict(answer).message


def test_closing_the_screen_hurts_nobody():
    def closing(length):
        sys.stdout.close()
        return right(length)

    assert verdict(closing).status == "correct"


def test_the_stop_button_stops_the_check():
    threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        verdict(endless)


def test_a_missing_torch_operator_is_an_error_and_not_an_unattempted_exercise():
    def missing(length):
        raise NotImplementedError("Could not run 'aten::tril' with arguments from the backend")

    assert verdict(missing).status == "error"


# ---------------------------------------------------------------- steadiness
def test_a_random_answer_is_called_random():
    noisy = lambda w, v: torch.nn.functional.dropout(w @ v, 0.5)  # noqa: E731
    assert verdict(noisy, "welcome.mix").mistake == "random"


def test_an_answer_that_counts_its_calls_keeps_state():
    calls = []

    def counting(weights, values):
        calls.append(1)
        return weights @ values * (1 if len(calls) < 4 else len(calls))

    assert verdict(counting, "welcome.mix").mistake == "keeps_state"


def test_an_answer_that_hangs_the_second_time_keeps_state(hurry):
    seen = []

    def once(length):
        seen.append(length)
        while seen.count(length) > 1:
            pass
        return right(length)

    assert verdict(once).mistake == "keeps_state"


def test_an_answer_that_caches_its_first_result_keeps_state():
    kept = []

    def caching(length):
        kept.append(right(length))
        return kept[0]

    assert verdict(caching).mistake == "keeps_state"


def test_an_answer_that_keeps_its_second_result_for_ever_is_not_called_random():
    calls = []

    def settling(weights, values):
        calls.append(1)
        return weights @ values + (len(calls) > 5)

    assert verdict(settling, "welcome.mix").mistake == "keeps_state"


@pytest.mark.parametrize(
    "draw",
    [lambda: torch.rand(1).item(), lambda: np.random.rand(), lambda: random.random()],
    ids=["torch", "numpy", "python"],
)
def test_a_number_drawn_from_any_of_three_generators_is_random(draw):
    assert verdict(lambda w, v: w @ v + draw(), "welcome.mix").mistake == "random"


def test_an_answer_that_uses_something_up_and_then_fails_keeps_state():
    numbers = iter([1.0] * 5)
    found = verdict(lambda w, v: w @ v * next(numbers), "welcome.mix")
    assert found.mistake == "keeps_state" and "it fails: it keeps something" in found.message
    assert "It raised StopIteration" in found.message


# ---------------------------------------------------------------- nothing hurts
def endless(length):
    while True:
        pass


def stubborn(length):
    while True:
        try:  # noqa: SIM105
            length += 1
        except BaseException:
            pass


def sleepy(length):
    time.sleep(60)


def nested(length):
    while True:
        try:
            for i in range(10**9):
                length += i
        except BaseException:
            pass


def swallowing(length):
    try:
        endless(length)
    except BaseException:
        return right(length)


@pytest.mark.parametrize("answer", [endless, stubborn, sleepy, nested, swallowing])
def test_an_endless_answer_is_stopped(answer, hurry):
    start = time.monotonic()
    found = verdict(answer)
    assert time.monotonic() - start < 3
    assert (found.status, found.carry_forward()) == ("error", CAUSAL.reference)
    assert "It did not finish" in found.message


def test_an_endless_answer_is_stopped_off_the_main_thread_too(hurry):
    found = []
    thread = threading.Thread(target=lambda: found.append(verdict(endless)))
    thread.start()
    thread.join(5)
    assert found and "It did not finish" in found[0].message


@pytest.fixture
def slow_module(tmp_path, monkeypatch):
    """The name of a module whose import takes longer than the function may."""
    (tmp_path / "slow_to_import.py").write_text("import time\nfor _ in range(10):\n    time.sleep(0.07)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "slow_to_import", raising=False)
    return "slow_to_import"


def test_the_time_of_an_import_does_not_count(hurry, slow_module):
    def importing(length):
        importlib.import_module(slow_module)
        return right(length)

    assert verdict(importing).status == "correct" and slow_module in sys.modules


def test_the_time_of_an_import_does_not_count_off_the_main_thread_either(hurry, slow_module):
    def importing(length):
        importlib.import_module(slow_module)
        return right(length)

    found = []
    thread = threading.Thread(target=lambda: found.append(verdict(importing)))
    thread.start()
    thread.join(5)
    assert found and found[0].status == "correct"


def test_an_endless_answer_is_stopped_after_an_import(hurry, slow_module):
    def importing(length):
        importlib.import_module(slow_module)
        endless(length)

    start = time.monotonic()
    assert "It did not finish" in verdict(importing).message
    assert time.monotonic() - start < 3


def test_imports_without_end_are_stopped(hurry, monkeypatch):
    monkeypatch.setattr(sandbox, "IMPORTS", 0.5)

    def importing(length):
        while True:
            with contextlib.suppress(ImportError):
                importlib.import_module("there_is_no_such_module")

    start = time.monotonic()
    assert "It did not finish" in verdict(importing).message
    assert time.monotonic() - start < 3


def test_recursion_without_end_is_an_error():
    def again(length):
        return again(length)

    assert "It raised RecursionError" in verdict(again).message


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError])
def test_whatever_is_raised_stays_inside(error):
    def leaving(length):
        raise error("bye")

    assert f"It raised {error.__name__}: bye" in verdict(leaving).message


def test_global_state_is_as_before():
    def rude(length):
        torch.manual_seed(1), random.seed(1), np.random.seed(1)
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        sys.setrecursionlimit(500)
        return right(length)

    def states():
        return (
            torch.get_rng_state().tolist(),
            random.getstate(),
            np.random.get_state()[1].tolist(),
            torch.is_grad_enabled(),
            torch.get_default_dtype(),
            sys.getrecursionlimit(),
            signal.getsignal(signal.SIGALRM),
            signal.getitimer(signal.ITIMER_REAL),
            sys.gettrace(),
        )

    torch.rand(3), random.random(), np.random.rand()
    before = states()
    assert verdict(rude).status == "correct"
    assert states() == before


def test_an_answer_is_judged_the_same_under_no_grad_and_in_double_precision():
    with torch.no_grad():
        assert verdict(lambda w, v: w @ v, "welcome.mix").status == "correct"
    torch.set_default_dtype(torch.float64)
    try:
        assert verdict(lambda w, v: w @ v, "welcome.mix").status == "correct"
    finally:
        torch.set_default_dtype(torch.float32)


# ---------------------------------------------------------------- a small exercise of our own
def small(**changes):
    parts = {
        "name": "test.double",
        "reference": lambda x: 2 * x,
        "probes": (
            Probe("x = 3", lambda: (3.0,)),
            Probe("x = 5", lambda: (5.0,)),
            Probe("x = 0", lambda: (0.0,), edge=True),
        ),
        "results": (Result("result"),),
        "mistakes": (Mistake("squared", "You square it.", lambda x: x * x),),
    }
    return Exercise(**(parts | changes))


def test_a_mistake_is_named_when_only_an_edge_case_is_left_over():
    found = small().check(lambda x: x * x if x else 7.0, quiet=True)
    assert found.mistake == "squared"
    assert "There may be more: it is also wrong on an edge case (input: x = 0). Mend this first." in found.message


def test_nothing_more_is_said_where_only_edge_cases_are_left_over_and_they_are_right():
    found = small().check(lambda x: x * x if x else 0.0, quiet=True)
    assert found.mistake == "squared"
    shifted = Mistake("shifted", "You add one.", lambda x: 2 * x + 1)
    found = small(mistakes=(shifted,)).check(lambda x: 2 * x + 1 if x else 0.0, quiet=True)
    assert found.mistake == "shifted" and "There may be more" not in found.message


def test_a_mistake_is_recognised_beside_what_is_left_to_the_reader():
    def at_most_ten(x, *, times=2, limit="last"):
        return min(times * x, 10) if limit == "last" else times * min(x, 5)

    parts = {
        "reference": at_most_ten,
        "compound": at_most_ten,
        "mistakes": (Mistake("triples", "You triple it.", switches={"times": 3}),),
        "probes": (
            Probe("x = 3", lambda: (3.0,)),
            Probe("x = 2", lambda: (2.0,)),
            Probe("x = 7", lambda: (7.0,), edge=True),
        ),
    }
    answer = functools.partial(at_most_ten, times=3, limit="first")
    assert "There may be more" in small(**parts).check(answer, quiet=True).message
    found = small(**parts, free=({"limit": "first"},)).check(answer, quiet=True)
    assert found.mistake == "triples" and "There may be more" not in found.message


def test_two_mistakes_are_shown_on_an_input_on_which_both_can_be_seen():
    def both(x, *, add=0, times=2):
        return [times * x, add + 3 * x]

    mistakes = (
        Mistake("adds", "You add one.", switches={"add": 1}),
        Mistake("triples", "You triple it.", switches={"times": 3}),
    )
    probes = (Probe("x = 0", lambda: (0.0,)), Probe("x = 5", lambda: (5.0,)))
    exercise = small(
        reference=both,
        compound=both,
        mistakes=mistakes,
        probes=probes,
        results=(Result("double"), Result("triple")),
    )
    found = exercise.check(lambda x: [3 * x, 1 + 3 * x], quiet=True)
    assert found.mistake == "adds + triples" and found.message.endswith("Input: x = 5.")
    assert "On this input" not in found.message
    found = exercise.check(lambda x: [2 * x, 1 + 3 * x], quiet=True)
    assert "On this input the double is right, the triple is not." in found.message
    assert found.message.endswith("Input: x = 0.")


def test_an_edge_case_is_not_shown_for_a_picture_where_ordinary_inputs_are_wrong():
    exercise = small(
        reference=lambda x: 2 * x,
        probes=(Probe("x = 3", lambda: (3.0,)), Probe("a tensor", lambda: (torch.ones(2) * 3,), edge=True)),
        mistakes=(Mistake("adds", "You add 2.", lambda x: x + 2),),
    )
    found = exercise.check(lambda x: x + 2, quiet=True)
    assert found.mistake == "adds" and found.message.endswith("Input: x = 3.")


def test_minus_infinity_is_a_wrong_number_where_it_may_stand_in_the_result():
    def tail(x):
        return torch.cat([x[:1], torch.tensor([-torch.inf])])

    probes = (Probe("x = [1, 2]", lambda: (torch.tensor([1.0, 2.0]),)),)
    for infinite, said in ((True, "The first entry of the logits that differs"), (False, "The logits are not finite")):
        exercise = small(reference=lambda x: x, probes=probes, results=(Result("logits", ("token",), infinite),))
        assert f"{said}" in exercise.check(tail, quiet=True).message
    exercise = small(reference=lambda x: x, probes=probes, results=(Result("logits", ("token",), True),))
    assert "not finite: nan" in exercise.check(lambda x: x * torch.nan, quiet=True).message
    assert "not finite: inf" in exercise.check(lambda x: x * torch.inf, quiet=True).message


def test_a_changed_list_is_called_a_list_and_two_arguments_are_two():
    probes = (Probe("[1], [2]", lambda: ([1], [2])), Probe("[3], [4]", lambda: ([3], [4])))
    exercise = small(reference=lambda x, y: x + y, probes=probes, mistakes=())
    message = exercise.check(lambda x, y: [x.pop(), y.pop()], quiet=True).message
    assert (
        "the first and the second arguments are not the same after the call as before. Work on a copy: append"
        in message
    )


def test_a_verdict_is_short_when_it_is_printed():
    exercise = load("masks.causal_mask")
    assert repr(exercise) == "Exercise('masks.causal_mask')"
    shown = repr(exercise.check(lambda n: right(n).T, quiet=True))
    assert "status='wrong', mistake='flipped'" in shown and len(shown) < 1000 and "0x" not in shown


def test_a_mistake_that_agrees_on_some_probes_only_is_not_named():
    found = small().check(lambda x: x * x if x == 3 else 2 * x + 1, quiet=True)
    assert found.mistake is None
    assert "The result is 9, expected 6." in found.message


def test_a_sentence_that_holds_only_alone_gives_way_beside_another():
    def two(x, *, add=0, times=2):
        return times * x + add

    mistakes = (
        Mistake("adds", "You add one, and that is all.", switches={"add": 1}, beside="You add one."),
        Mistake("triples", "You triple it.", switches={"times": 3}),
        Mistake("constant", "It is 4 whatever comes.", switches={"times": 0, "add": 4}, alone=True),
    )
    exercise = small(mistakes=mistakes, compound=two)
    assert "1. You add one.\n2. You triple it." in exercise.check(lambda x: 3 * x + 1, quiet=True).message
    assert exercise.check(lambda x: 4.0, quiet=True).mistake == "constant"


def test_two_crashes_of_one_type_are_not_the_same_mistake():
    def crashes(x):
        raise ValueError("one")

    def crashes_otherwise(x):
        raise ValueError("two")

    exercise = small(mistakes=(Mistake("crash", "You crash.", crashes),))
    assert exercise.check(crashes, quiet=True).mistake == "crash"
    assert exercise.check(crashes_otherwise, quiet=True).mistake is None


def test_a_symptom_is_told_by_its_outcomes():
    grows = Symptom("grows", "It grows.", lambda seen: all(g.value >= e.value for _, e, g in seen))
    assert small(symptoms=(grows,)).check(lambda x: 2 * x + 1, quiet=True).mistake == "grows"
    assert small(symptoms=(grows,)).check(lambda x: 2 * x - 1, quiet=True).mistake is None


def test_a_symptom_that_cannot_look_at_what_came_does_not_show():
    def looks(seen):
        raise RuntimeError("Half did not match Float")

    found = small(symptoms=(Symptom("odd", "It is odd.", looks),)).check(lambda x: 2 * x + 1, quiet=True)
    assert found.mistake is None and found.message.endswith("The result is 7, expected 6.\nInput: x = 3.")


def test_one_of_several_right_answers_is_enough():
    exercise = small(alternatives=(lambda x: -2 * x,))
    assert exercise.check(lambda x: -2 * x, quiet=True).status == "correct"
    assert exercise.check(lambda x: abs(x - 4) * 2 - 8, quiet=True).status == "wrong"


def test_an_input_that_must_be_refused_is_refused_with_one_of_the_errors():
    def checked(x):
        if x < 0:
            raise ValueError("negative")
        return 2 * x

    exercise = small(
        reference=checked, probes=(*small().probes, Probe("x = -1", lambda: (-1.0,), raises=(ValueError,)))
    )
    assert exercise.check(checked, quiet=True).status == "correct"
    assert (
        "It should refuse this input with a clear error (ValueError)"
        in exercise.check(lambda x: 2 * x, quiet=True).message
    )


def test_an_input_that_may_be_refused_may_be_refused_with_one_of_the_errors_only():
    def refusing(error, times=2):
        def answer(x):
            if x > 5:
                raise error("too large")
            return times * x

        return answer

    mistakes = (*small().mistakes, Mistake("tripled", "You triple it.", lambda x: 3 * x))
    probe = Probe("x = 7", lambda: (7.0,), edge=True, may_raise=(ValueError,))
    exercise = small(mistakes=mistakes, probes=(*small().probes, probe))
    assert exercise.check(lambda x: 2 * x, quiet=True).status == "correct"
    assert exercise.check(refusing(ValueError), quiet=True).status == "correct"
    assert exercise.check(refusing(RuntimeError), quiet=True).status == "error"
    assert exercise.check(lambda x: 2 * min(x, 5), quiet=True).status == "wrong"
    found = exercise.check(refusing(ValueError, times=3), quiet=True)
    assert found.mistake == "tripled" and "There may be more" not in found.message


def test_what_does_not_matter_in_a_result_is_settled_before_it_is_compared():
    exercise = small(
        reference=lambda x: [2 * x, 0.0],
        settled=lambda args, value: [value[0], 0.0] if isinstance(value, list) and len(value) == 2 else value,
        results=(Result("double"), Result("rest")),
        mistakes=(Mistake("squared", "You square it.", lambda x: [x * x, 0.0]),),
    )
    assert exercise.check(lambda x: [2 * x, x], quiet=True).status == "correct"
    assert exercise.check(lambda x: [x * x, x], quiet=True).mistake == "squared"
    assert exercise.check(lambda x: 2 * x, quiet=True).status == "wrong"
