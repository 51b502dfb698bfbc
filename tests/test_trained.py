"""The model that ships with the course: what it can do, and that its file is what its recipe says."""

import re
import tomllib

import torch
from notebook_tools import ROOT
from sizes import error_text

from transformer_edu.decoding import CachedStep, greedy_decode
from transformer_edu.inspection import record_attention
from transformer_edu.masks import causal_mask, padding_mask
from transformer_edu.tasks import alignment_matrix, alignment_score, number_in_words
from transformer_edu.trained import RECIPE, number_words_model, rebuild, summary

FILE = ROOT / "transformer_edu/trained/number_words.pt"


def accuracy(stage, examples):
    model, task = number_words_model(stage)
    batch = task.batch(examples)
    step = CachedStep(model, batch.source, padding_mask(batch.source_lengths, batch.source.shape[1]))
    prompt = torch.full((len(examples), 1), task.target.start_id)
    return task.exact_match(greedy_decode(step, prompt, task.target.stop_id, task.target.pad_id, 16), examples)


def unseen(n):
    return number_words_model()[1].examples(n, split="test")


def test_it_translates_numbers_that_it_has_never_seen():
    assert accuracy("final", unseen(400)) >= 0.99


def test_it_translates_the_numbers_of_two_digits():
    assert accuracy("final", [number_in_words(n) for n in range(10, 100)]) >= 0.98


def test_the_early_stage_knows_some_and_doubts():
    assert 0.05 < accuracy("early", unseen(200)) < 0.5


def test_padding_on_the_left_spoils_no_row_when_told_and_many_when_not():
    # lesson 10 counts this; a new checkpoint, or one made on another machine, must show it too
    model, task = number_words_model()
    words, examples = task.target, unseen(100)
    batch = task.batch(examples)
    source_mask = padding_mask(batch.source_lengths, batch.source.shape[1])
    prompts = [[words.start_id, *words.encode(each.target[: len(each.target) // 2])] for each in examples]
    width = max(map(len, prompts))
    left = torch.tensor([[words.pad_id] * (width - len(row)) + row for row in prompts])

    def right(prompt_mask):
        step = CachedStep(model, batch.source, source_mask, prompt_mask=prompt_mask)
        rests = greedy_decode(step, left, words.stop_id, words.pad_id, 16)
        wanted = [list(each.target[len(each.target) // 2 :]) for each in examples]
        return sum(words.decode(rest) == want for rest, want in zip(rests, wanted, strict=True))

    assert right(left != words.pad_id) >= 98
    assert right(None) <= 80


def test_its_attention_to_the_source_is_the_right_alignment():
    model, task = number_words_model()
    examples = unseen(200)
    batch = task.batch(examples)
    source_mask = padding_mask(batch.source_lengths, batch.source.shape[1])
    with torch.no_grad(), record_attention(model) as weights:
        model(batch.source, batch.target_in, source_mask, causal_mask(batch.target_in.shape[1]))
    (cross,) = (calls[0][:, 0] for name, calls in weights.items() if "cross_attention" in name)
    assert alignment_score(cross, alignment_matrix(examples)) > 0.95


def test_it_comes_ready_to_use_and_leaves_the_random_state():
    before = torch.get_rng_state()
    model, _ = number_words_model()
    assert torch.equal(torch.get_rng_state(), before)
    assert not model.training
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_the_file_is_small_and_holds_the_recipe_of_the_code():
    content = torch.load(FILE, weights_only=True)
    assert FILE.stat().st_size <= 500_000
    assert content["recipe"] == RECIPE, "the recipe has changed: run `make checkpoint`"
    assert set(content["weights"]) == set(RECIPE["stages"])


def test_rebuilding_takes_each_stage_from_one_run_and_comes_out_the_same(tmp_path):
    short = RECIPE | {"examples": 20, "batch_size": 4, "warmup": 0, "stages": {"early": 1, "final": 3}}
    before = torch.get_rng_state()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        rebuild(tmp_path / name / "number_words.pt", short)
    assert torch.equal(torch.get_rng_state(), before)
    first, second = (tmp_path / name / "number_words.pt" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    content = torch.load(first, weights_only=True)
    early, final = content["weights"].values()
    assert content["recipe"] == short
    assert early.keys() == final.keys() == number_words_model()[0].state_dict().keys()
    assert not torch.equal(early["output.weight"], final["output.weight"])


def test_another_stage_is_refused():
    assert "stage must be one of" in error_text(ValueError, lambda: number_words_model("last"))


def test_a_recipe_that_cannot_be_trained_is_refused_before_training(tmp_path):
    def text(kind, path=tmp_path / "new.pt", recipe=None, **changed):
        return error_text(kind, lambda: rebuild(path, RECIPE | changed if recipe is None else recipe))

    assert text(ValueError, lr=0.1) == "recipe must have the names of RECIPE: missing none, left over ['lr']"
    assert "missing ['seed']" in text(ValueError, recipe={name: RECIPE[name] for name in RECIPE if name != "seed"})
    assert text(TypeError, recipe=[1]) == "recipe must be a dict such as RECIPE, got list"
    assert text(ValueError, stages={}) == "recipe['stages'] must name one stage or more, got none"
    assert text(ValueError, stages={"early": 0, "final": 3}) == "recipe['stages']['early'] must be at least 1, got 0"
    assert text(ValueError, path=tmp_path) == f"path must be a file, got the folder {tmp_path}: name a file in it"
    assert text(TypeError, path=3) == "path must be the path of a file, got int (3)"
    assert text(FileNotFoundError, path=tmp_path / "no" / "new.pt").startswith(f"{tmp_path / 'no'} is no folder")
    assert list(tmp_path.iterdir()) == []


def test_the_summary_names_the_file_and_counts_what_each_stage_says_right():
    place, *lines = summary(500).splitlines()
    assert place == str(FILE)
    said = [
        re.fullmatch(r"of 500 numbers never seen in training, (\w+) says (\d+) right", line).groups() for line in lines
    ]
    counted = {stage: round(500 * accuracy(stage, unseen(500))) for stage in ("final", "early")}
    assert {stage: int(right) for stage, right in said} == counted


def test_the_file_is_made_by_make_and_shipped_with_the_package():
    (made,) = re.findall(r"^checkpoint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert "trained.rebuild()" in made
    assert "print(trained.summary())" in made
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert packages["package-data"]["transformer_edu.trained"] == ["*.pt"]
