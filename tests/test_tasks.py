"""Tasks against num2words, the calendar of the standard library and SHA-256; their splits, batches and alignments."""

import hashlib
import math
import random
from datetime import date, datetime

import pytest
import torch
from num2words import num2words
from sizes import error_text

from transformer_edu import tasks
from transformer_edu.tasks import (
    Draws,
    Example,
    Task,
    Vocabulary,
    alignment_matrix,
    alignment_score,
    number_in_words,
    with_noise,
)

TASKS = {
    "number words": tasks.number_words,
    "dates": tasks.dates,
    "copy": tasks.copy,
    "reverse": tasks.reverse,
    "sort": tasks.sort,
    "recall": tasks.recall,
}


@pytest.fixture(params=TASKS)
def task(request):
    return TASKS[request.param]()


# ---------------------------------------------------------------- draws
def test_a_draw_is_made_from_the_sha_256_of_its_name_and_number():
    numbers = [int(hashlib.sha256(f"dice/{i}".encode()).hexdigest()[:16], 16) for i in (1, 2, 3)]
    draws = Draws("dice")
    assert [draws.below(6) for _ in numbers] == [number * 6 // 2**64 for number in numbers]
    assert tasks.fingerprint("") == 0xE3B0C44298FC1C14  # the SHA-256 of nothing, as in every table of it


def test_draws_are_about_equally_likely():
    draws = Draws("many")
    counts = torch.bincount(torch.tensor([draws.below(5) for _ in range(5000)]), minlength=5)
    assert (counts - 1000).abs().max() < 120  # about four standard deviations


def test_a_sample_has_different_items():
    assert sorted(Draws("all").sample("abcdef", 6)) == list("abcdef")
    samples = {"".join(Draws(str(i)).sample("abc", 2)) for i in range(60)}
    assert samples == {"ab", "ac", "ba", "bc", "ca", "cb"}


def test_making_data_leaves_the_global_generators_alone(task):
    before = torch.get_rng_state(), random.getstate()
    task.batch(task.examples(3))
    assert torch.equal(before[0], torch.get_rng_state()) and before[1] == random.getstate()


# ---------------------------------------------------------------- examples
# What the first examples are, as one number: the same on every machine, in every version of Python and of torch.
FIRST = {
    "number words": 0x9BA7B7BF9E50969C,
    "dates": 0xEB0F133F1AAFCFBD,
    "copy": 0xE939D150BDBEEB11,
    "reverse": 0xFA35B4842723BF76,
    "sort": 0xD686624B23C65437,
    "recall": 0x25DF9051288770BD,
}


def test_the_examples_are_the_same_everywhere(task):
    examples = task.examples(50, seed=1) + task.examples(20, split="test", seed=2)
    assert tasks.fingerprint("|".join(" ".join((*e.source, *e.target)) for e in examples)) == FIRST[task.name]


def test_examples_depend_on_the_seed_and_fewer_are_the_first_of_more(task):
    assert task.examples(20)[:5] == task.examples(5)
    assert task.examples(20) != task.examples(20, seed=1)


def test_no_example_of_the_test_set_is_one_of_the_training_set(task):
    train = {e.key for seed in range(3) for e in task.examples(700, seed=seed)}
    test = [e.key for e in task.examples(200, split="test")]
    assert not train & set(test)
    assert len(set(test)) == len(test) == 200, "the examples of the test set differ"


def test_sets_of_other_lengths_are_disjoint_too():
    short, long = tasks.copy(lengths=(2, 3)), tasks.copy(lengths=(2, 4))
    assert not {e.key for e in short.examples(500)} & {e.key for e in long.examples(200, split="test")}


def test_neither_targets_nor_sources_of_the_test_set_are_met_in_training():
    for task in (tasks.dates(), tasks.sort(lengths=(2, 3)), tasks.reverse(lengths=(2, 3))):
        train, test = task.examples(1000), task.examples(50, split="test")
        assert not {e.source for e in train} & {e.source for e in test}
        assert not {e.target for e in train} & {e.target for e in test}


def test_about_one_key_in_ten_is_in_the_test_set(task):
    draws = Draws("keys")
    splits = [task.split_of(task.draw(draws).key) for _ in range(1000)]
    assert 50 < splits.count("test") < 170


def test_the_vocabularies_hold_exactly_what_the_examples_use(task):
    examples = task.examples(3000)
    assert {token for e in examples for token in e.source} == set(task.source.tokens[3:])
    assert {token for e in examples for token in e.target} == set(task.target.tokens[3:])


def test_each_target_token_has_an_alignment_within_the_source(task):
    for example in task.examples(200):
        assert len(example.alignment) == len(example.target)
        assert all(0 <= place < len(example.source) for places in example.alignment for place in places)


def test_too_few_examples_of_a_set_are_an_error():
    small = tasks.copy(n_symbols=2, lengths=(1, 4))  # 30 sequences in all
    text = error_text(ValueError, lambda: small.examples(40, split="test"))
    assert text.startswith("copy: 2000 draws after ") and "n is 40: ask for fewer" in text
    assert error_text(ValueError, lambda: small.examples(1, split="dev")) == (
        "split must be one of 'train', 'test', got 'dev'"
    )
    assert error_text(ValueError, lambda: small.examples(0)) == "n must be at least 1, got 0"


# ---------------------------------------------------------------- number words
NUMBERS = [*range(2000), *range(2000, 1_000_000, 3701), *range(1000, 1_000_000, 7000), 999_999]


def test_english_words_are_those_of_num2words():
    for n in NUMBERS:
        theirs = num2words(n).replace(" and ", " ").replace("-", " ").replace(",", "")
        assert " ".join(number_in_words(n).source) == theirs


def test_german_words_written_together_are_those_of_num2words():
    for n in NUMBERS:
        theirs = num2words(n, lang="de")
        if n > 2000 and n // 1000 % 100 == 1:  # where num2words 0.5.14 has 'einhunderteinstausend', which is no German
            assert "einstausend" in theirs
            theirs = theirs.replace("einstausend", "eintausend")
        assert "".join(number_in_words(n).target) == theirs


SAME = """null:zero ein:one eins:one zwei:two drei:three vier:four fünf:five sechs:six sieben:seven acht:eight neun:nine
zehn:ten elf:eleven zwölf:twelve sech:sixteen sieb:seventeen zwanzig:twenty dreißig:thirty vierzig:forty fünfzig:fifty
sechzig:sixty siebzig:seventy achtzig:eighty neunzig:ninety hundert:hundred tausend:thousand"""
SAYS = dict(pair.split(":") for pair in SAME.split())


def test_each_german_word_is_aligned_with_the_english_word_it_translates():
    for n in NUMBERS:
        example = number_in_words(n)
        said = [0] * len(example.source)
        for word, places in zip(example.target, example.alignment, strict=True):
            if word == "und":
                assert places == ()
                continue
            (place,) = places
            said[place] += 1
            english = example.source[place]
            assert SAYS[word] == english or (english.endswith("teen") and word in SAYS), (n, word, english)
        assert all(count == 1 + word.endswith("teen") for count, word in zip(said, example.source, strict=True))


def test_the_order_of_tens_and_ones_inverts():
    assert number_in_words(54).alignment == ((1,), (), (0,))
    assert "-".join(number_in_words(21_121).target) == "ein-und-zwanzig-tausend-ein-hundert-ein-und-zwanzig"
    assert number_in_words(21_121).alignment[-3:] == ((6,), (), (5,))


def test_each_number_of_digits_is_about_equally_likely():
    digits = torch.tensor([len(e.key) for e in tasks.number_words().examples(1200)])
    assert torch.bincount(digits, minlength=7)[1:].sub(200).abs().max() < 60
    assert max(len(e.key) for e in tasks.number_words(max_digits=2).examples(100)) == 2


def test_numbers_without_words_are_errors():
    message = "number must be a whole number from 0 to 999999, got "
    assert error_text(ValueError, lambda: number_in_words(1_000_000)) == f"{message}1000000"
    assert error_text(ValueError, lambda: number_in_words(-1)) == f"{message}-1"
    assert error_text(ValueError, lambda: tasks.number_words(max_digits=7)) == (
        "max_digits must lie in 1..6, got 7: the words end below a million"
    )


# ---------------------------------------------------------------- dates
CALENDAR = (
    *("%d %B %Y", "%B %d, %Y", "%d of %B, %Y", "%A, %d %B %Y"),
    *("%A, %B %d, %Y", "%a %d/%m/%Y", "%d.%m.%Y", "%d-%b-%Y"),
)


def test_the_calendar_reads_each_form_as_the_date_it_was_written_from():
    days = [date.fromordinal(date(1900, 1, 1).toordinal() + i) for i in range(0, 73_000, 531)]
    for form, pattern in zip(tasks.DATE_FORMATS, CALENDAR, strict=True):
        for day in (*days, date(2024, 2, 29), date(2099, 12, 31), *(date(1911, 11, n) for n in range(1, 31))):
            example = tasks.written_date(day, form)
            text = "".join(example.source)
            if "{th}" in form:
                ending = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}.get(day.day, "th")
                assert f"{day.day}{ending}" in text
                text = text.replace(f"{day.day}{ending}", str(day.day))
            assert datetime.strptime(text, pattern).date() == day
            assert (example.key, "".join(example.target)) == (day.isoformat(), day.isoformat())


def test_each_digit_of_a_date_is_aligned_with_what_it_is_made_from():
    for example in tasks.dates().examples(500):
        day, text = date.fromisoformat(example.key), "".join(example.source)
        made_from = ["".join(text[place] for place in places) for places in example.alignment]
        assert "".join(made_from[:4]) == str(day.year)
        assert (made_from[4], made_from[7]) == ("", "")
        month = {day.strftime("%B"), day.strftime("%b"), str(day.month)}
        assert "".join(made_from[5:7]) in {f"{day.month:02}", *(2 * text for text in month)}
        assert "".join(made_from[8:]) in (f"{day.day:02}", 2 * str(day.day))
        assert example.alignment[0][0] != example.alignment[2][0], "1919: each digit of the year has its own place"


def test_dates_come_in_all_forms_and_from_all_years():
    examples = tasks.dates().examples(4000)
    assert {e.key[:4] for e in examples} == {str(year) for year in range(1900, 2100)}
    marks = {"".join(c for c in e.source if c in " ,./-") for e in examples}
    assert marks == {"  ", " , ", "  , ", ",   ", ",  , ", " //", "..", "--"}


# ---------------------------------------------------------------- sequences
def test_copy_reverse_and_sort_do_what_they_are_called():
    for name, answer in (("copy", list), ("reverse", lambda s: list(s)[::-1]), ("sort", sorted)):
        examples = TASKS[name](n_symbols=7, lengths=(3, 5)).examples(300)
        assert all(list(e.target) == answer(e.source) for e in examples)
        assert {len(e.source) for e in examples} == {3, 4, 5}
        assert {letter for e in examples for letter in e.source} == set("abcdefg")
        for e in examples:  # every place that a target token may be looked up at holds that token
            assert all(e.source[i] == letter for letter, at in zip(e.target, e.alignment, strict=True) for i in at)


def test_copy_keeps_and_reverse_turns_the_places_and_sort_takes_all_equal_letters():
    assert tasks.copy(lengths=(3, 3)).examples(1)[0].alignment == ((0,), (1,), (2,))
    assert tasks.reverse(lengths=(3, 3)).examples(1)[0].alignment == ((2,), (1,), (0,))
    example = next(e for e in tasks.sort(n_symbols=2, lengths=(3, 3)).examples(50) if "".join(e.source) == "bab")
    assert example.alignment == ((1,), (0, 2), (0, 2))


def test_recall_asks_for_the_digits_of_letters_it_has_shown():
    for e in tasks.recall(n_keys=6, n_pairs=5, n_queries=3).examples(200):
        shown, asked = e.source[:10], e.source[11:]
        digit_of = dict(zip(shown[::2], shown[1::2], strict=True))
        assert e.source[10] == "?" and len(digit_of) == 5 and len(set(asked)) == 3
        assert [digit_of[letter] for letter in asked] == list(e.target)
        assert [e.source[at] for (at,) in e.alignment] == list(e.target)
        assert [e.source[at - 1] for (at,) in e.alignment] == list(asked)


def test_sequences_that_cannot_be_are_errors():
    assert error_text(ValueError, lambda: tasks.copy(n_symbols=27)) == (
        "n_symbols must be at most 26, got 27: the symbols are letters"
    )
    assert error_text(ValueError, lambda: tasks.sort(lengths=(5, 4))) == (
        "lengths must be (shortest, longest) with 1 <= shortest <= longest, got (5, 4)"
    )
    assert error_text(ValueError, lambda: tasks.recall(n_pairs=3, n_queries=4)) == (
        "n_queries <= n_pairs <= n_keys <= 26 must hold, got 4, 3, 8"
    )


# ---------------------------------------------------------------- vocabularies and batches
def test_decoding_gives_back_what_was_encoded(task):
    for e in task.examples(30):
        assert task.source.decode(task.source.encode(e.source)) == list(e.source)
        ids = task.target.encode(e.target)
        assert task.target.decode([1, *ids, 2, 0, 0, *ids]) == list(e.target), "nothing counts behind the stop"


def test_a_vocabulary_gives_labels_for_special_ids_too():
    vocabulary = Vocabulary("ab")
    assert (vocabulary.pad_id, vocabulary.start_id, vocabulary.stop_id, len(vocabulary)) == (0, 1, 2, 5)
    assert vocabulary.labels(torch.tensor([1, 4, 2, 0])) == ["<start>", "b", "<stop>", "<pad>"]


def test_wrong_tokens_and_ids_are_errors():
    vocabulary = Vocabulary("ab")
    assert error_text(ValueError, lambda: vocabulary.encode("ac")) == (
        "token 'c' is not in the vocabulary, which holds: a b"
    )
    assert error_text(ValueError, lambda: vocabulary.decode([3, 5])) == (
        "ids must lie in 0..4, the ids of the vocabulary, got 5"
    )
    assert error_text(ValueError, lambda: Vocabulary("aba")) == (
        "the tokens of a vocabulary must differ, got 'a' twice"
    )


def test_a_batch_holds_padded_ids_and_the_target_one_place_apart():
    task = tasks.number_words()
    batch = task.batch([number_in_words(54), number_in_words(7)])
    first, second = [task.target.encode(number_in_words(n).target) for n in (54, 7)]
    assert batch.source.tolist() == [task.source.encode(["fifty", "four"]), [*task.source.encode(["seven"]), 0]]
    assert batch.source_lengths.tolist() == [2, 1]
    assert batch.target_in.tolist() == [[1, *first], [1, *second, 0, 0]]
    assert batch.target_out.tolist() == [[*first, 2], [*second, 2, -100, -100]]
    assert batch.target_lengths.tolist() == [4, 2]
    assert all(tensor.dtype == torch.int64 for tensor in batch)
    assert all(tensor.is_meta for tensor in batch.to("meta"))


def test_the_batch_of_a_step_depends_on_the_step_alone():
    task = tasks.copy()
    examples = task.examples(30)
    batches = [task.batch_at(examples, step, batch_size=5) for step in (1, 2, 1)]
    assert all(torch.equal(a, b) for a, b in zip(batches[0], batches[2], strict=True))
    assert batches[0].source.tolist() != batches[1].source.tolist()
    assert batches[0].source.tolist() != task.batch_at(examples, 1, batch_size=5, seed=1).source.tolist()
    met = {tuple(row) for s in range(60) for row in task.batch_at(examples, s, batch_size=5).target_out.tolist()}
    assert len({row[: row.index(2)] for row in met}) == 30, "every example is met"


def test_an_answer_is_right_if_it_is_so_from_start_to_stop():
    task = tasks.copy()
    examples = [Example(tuple(text), tuple(text), (), text) for text in ("abc", "abc", "abc", "abc")]
    a, b, c = task.target.encode("abc")
    answers = [[a, b, c, 2, a], [1, a, b, c], [a, b, 2, c], [a, b, c, a]]
    assert task.exact_match(answers, examples) == 0.5
    assert task.exact_match(torch.tensor([[a, b, c, 2]] * 4), examples) == 1.0
    assert error_text(ValueError, lambda: task.exact_match(answers[:3], examples)) == (
        "answers must have one row for each of the 4 examples, got 3"
    )


def test_noise_replaces_the_share_of_target_tokens_it_is_asked_for_and_nothing_else():
    task = tasks.copy(n_symbols=4, lengths=(10, 10))
    examples = task.examples(400)
    noisy = with_noise(task, examples, 0.4)
    pairs = [(a, b) for e, n in zip(examples, noisy, strict=True) for a, b in zip(e.target, n.target, strict=True)]
    assert sum(a != b for a, b in pairs) / len(pairs) == pytest.approx(0.4 * 3 / 4, abs=0.03)
    assert [(n.source, n.alignment, n.key) for n in noisy] == [(e.source, e.alignment, e.key) for e in examples]
    assert with_noise(task, examples[::-1], 0.4) == noisy[::-1], "an example has its noise wherever it stands"
    assert with_noise(task, examples, 0.4, seed=1) != noisy
    assert with_noise(task, examples, 0.0) == examples
    random_targets = with_noise(task, examples, 1)
    assert {token for e in random_targets for token in e.target} == set("abcd")
    assert error_text(ValueError, lambda: with_noise(task, examples, 40)) == (
        "share must lie in 0..1, got 40: it is the share of target tokens that are replaced"
    )


def test_no_examples_are_an_error():
    task = tasks.copy()
    for call in (
        lambda: alignment_matrix([]),
        lambda: task.exact_match([], []),
        lambda: task.batch([]),
        lambda: task.batch_at([], 1),
        lambda: with_noise(task, [], 0.5),
    ):
        assert error_text(ValueError, call) == "examples must hold at least one example, got none"


def test_examples_may_come_one_by_one():
    task = tasks.copy()
    examples = task.examples(3)
    ids = task.batch(each for each in examples).target_out
    assert torch.equal(ids, task.batch(examples).target_out)
    assert task.exact_match(ids, (each for each in examples)) == 1.0
    assert torch.equal(alignment_matrix(each for each in examples), alignment_matrix(examples))


COPY, BAD = tasks.copy(), Example(("a",), ("a", "b"), ((0,), (1,)), "")
ALIGNMENT = alignment_matrix([number_in_words(54)])


@pytest.mark.parametrize(
    ("kind", "call", "text"),
    [
        (TypeError, lambda: tasks.fingerprint(b"a"), "text must be a text, got bytes"),
        (ValueError, lambda: Draws("a").choice([]), "items must hold at least one to choose, got none"),
        (TypeError, lambda: Draws("a").sample(None, 1), "items must be a list, got NoneType"),
        (ValueError, lambda: Draws("a").sample("abc", -1), "n must be at least 0, got -1"),
        (ValueError, lambda: tasks.copy(lengths=5), "lengths must be (shortest, longest) with 1 <="),
        (ValueError, lambda: tasks.sort(lengths=(1.0, 4.0)), "got (1.0, 4.0)"),
        (ValueError, lambda: tasks.reverse(lengths=(1, 2, 3)), "got (1, 2, 3)"),
        (ValueError, lambda: tasks.number_words(max_digits=True), "max_digits must lie in 1..6, got True"),
        (ValueError, lambda: number_in_words(54.0), "number must be a whole number from 0 to 999999, got 54.0"),
        (ValueError, lambda: number_in_words(torch.tensor(54)), "got tensor(54)"),
        (
            TypeError,
            lambda: tasks.written_date("1987-03-03", tasks.DATE_FORMATS[0]),
            "day must be a datetime.date, got",
        ),
        (ValueError, lambda: tasks.written_date(date(1987, 3, 3), "%d.%m.%Y"), "form must be one of '{day} {month}"),
        (TypeError, lambda: Vocabulary(3), "tokens must be a list of texts, got int (3)"),
        (TypeError, lambda: Vocabulary(["a", 2]), "tokens[1] must be a text, got int (2)"),
        (TypeError, lambda: Vocabulary("ab").encode([["a"], ["b"]]), "the texts of one sequence, got [['a'], ['b']]"),
        (TypeError, lambda: Vocabulary("ab").encode(None), "tokens must be the texts of one sequence, got None"),
        (TypeError, lambda: Vocabulary("ab").decode([3.7]), "ids must be the whole numbers of one sequence, got [3.7]"),
        (TypeError, lambda: Vocabulary("ab").decode(torch.tensor([3.7])), "ids must hold whole numbers"),
        (
            ValueError,
            lambda: Vocabulary("ab").labels(torch.tensor([[3, 4]])),
            "ids must have 1 axis (length), got 2 axes",
        ),
        (TypeError, lambda: Vocabulary("ab").labels("ab"), "ids must be the whole numbers of one sequence, got 'ab'"),
        (TypeError, lambda: Task("mine", COPY.source, ["a"], COPY.draw), "target must be a Vocabulary, got list"),
        (TypeError, lambda: Task("mine", COPY.source, COPY.target, None), "draw must be a function, draw(draws) -> Ex"),
        (TypeError, lambda: idle().examples(1), "what draw returns must be an Example, got NoneType"),
        (TypeError, lambda: COPY.examples(3, seed="0"), "seed must be an int, got str ('0')"),
        (TypeError, lambda: COPY.batch(COPY.examples(1)[0]), "examples must be a list of Examples, got Example"),
        (TypeError, lambda: COPY.batch(["ab"]), "examples[0] must be an Example, got str ('ab')"),
        (TypeError, lambda: COPY.batch_at(1, COPY.examples(3)), "examples must be a list of Examples, got int (1)"),
        (TypeError, lambda: COPY.batch_at(COPY.examples(3), "1"), "step must be an int, got str ('1')"),
        (TypeError, lambda: COPY.batch_at(COPY.examples(3), 1, seed=None), "seed must be an int, got NoneType"),
        (
            TypeError,
            lambda: COPY.exact_match(None, COPY.examples(3)),
            "answers must be a list of rows of ids, got None",
        ),
        (
            ValueError,
            lambda: COPY.exact_match(torch.zeros(1, 2, 3).long(), COPY.examples(1)),
            "answers must have 2 axes",
        ),
        (TypeError, lambda: COPY.exact_match(torch.zeros(1, 2), COPY.examples(1)), "answers must hold whole numbers"),
        (TypeError, lambda: with_noise(COPY.examples(3), COPY, 0.5), "task must be a Task, got list"),
        (TypeError, lambda: with_noise(COPY, ["ab"], 0.5), "examples[0] must be an Example"),
        (
            TypeError,
            lambda: with_noise(COPY, COPY.examples(3), "0.5"),
            "share must be a number in 0..1, got str ('0.5')",
        ),
        (ValueError, lambda: alignment_matrix([BAD]), "the alignment of examples[0] must have places in 0..0 for each"),
        (TypeError, lambda: alignment_score(ALIGNMENT, ALIGNMENT), "weights must be a float tensor, got torch.bool"),
        (ValueError, lambda: alignment_score(ALIGNMENT.float(), ALIGNMENT.float()), "alignment must have dtype bool"),
        (ValueError, lambda: alignment_score(ALIGNMENT * math.nan, ALIGNMENT), "weights must be numbers, got nan"),
    ],
)
def test_what_no_task_can_work_with_is_an_error(kind, call, text):
    assert text in error_text(kind, call)


def idle():
    """A task that makes nothing."""
    return Task("idle", COPY.source, COPY.target, lambda draws: None)


# ---------------------------------------------------------------- alignments
def test_an_alignment_matrix_has_a_row_for_each_label_and_a_column_for_each_source_token():
    examples = [number_in_words(n) for n in (54, 13, 116)]
    matrix, batch = alignment_matrix(examples), tasks.number_words().batch(examples)
    assert matrix.shape == (*batch.target_out.shape, batch.source.shape[1])
    assert matrix[0].int().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert matrix[1].int().tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert matrix[2].nonzero().tolist() == [[0, 0], [1, 1], [2, 2], [3, 2]]


def test_the_score_is_the_share_of_rows_with_an_alignment_that_look_there():
    alignment = alignment_matrix([number_in_words(n) for n in (54, 13)])  # rows with an alignment: 2 and 2
    weights = alignment.float() + 0.1
    assert alignment_score(weights, alignment) == 1.0
    assert alignment_score(1 - weights, alignment) == 0.0
    weights[0, 0] = torch.tensor([0.6, 0.4])  # looks at fifty where four is right
    assert alignment_score(weights, alignment) == 0.75
    weights[0, 1], weights[1, 3] = torch.tensor([0.9, 0.1]), torch.tensor([0.9, 0.1])  # `und` and padding do not count
    assert alignment_score(weights, alignment) == 0.75


def test_alignments_that_do_not_fit_are_errors():
    alignment = alignment_matrix([number_in_words(54)])
    assert error_text(ValueError, lambda: alignment_score(torch.zeros(1, 3, 2), alignment)) == (
        "weights and alignment must have one shape (batch, target, source), got (1, 3, 2) and (1, 4, 2)"
    )
    assert error_text(ValueError, lambda: alignment_score(torch.zeros(1, 4, 2), alignment & False)) == (
        "alignment must have a True somewhere: there is nothing to score"
    )
    assert error_text(ValueError, lambda: alignment_score(torch.zeros(1, 2, 4, 2), alignment)).startswith(
        "weights must have 3 axes (batch, target, source), got 4 axes"
    )
