"""The benchmarks run and say what they measured; how fast it was is nobody's test."""

import pytest
import torch

from benchmarks import __main__ as benchmarks
from benchmarks import decoding, imports, models, relative, rows, verdicts
from benchmarks.rows import Row
from transformer_edu.exercises import load
from transformer_edu.model import count_parameters


def test_an_unknown_benchmark_is_refused_with_the_list_of_all(capsys):
    assert benchmarks.main(["verdict"]) == 2
    assert "no such benchmark: verdict; there are imports, verdicts, pictures" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_names_the_benchmarks_and_runs_none(word, capsys):
    assert benchmarks.main([word]) == 0
    said = capsys.readouterr().out
    assert all(f"[{name}]" in said for name in benchmarks.BENCHMARKS)
    assert len(said.splitlines()) < 8


def test_a_benchmark_prints_a_line_for_each_measurement(capsys, monkeypatch):
    monkeypatch.setattr(imports, "run", lambda: [Row("import torch", 1.0, "s", "cold")])
    assert benchmarks.main(["imports"]) == 0
    torchs, _, title, line = capsys.readouterr().out.splitlines()
    assert torchs == f"torch {torch.__version__}, one thread (relative, models and decoding: two)"
    assert title.startswith("imports: What `import transformer_edu` costs") and "CPU seconds, median of" in title
    assert line.split() == ["import", "torch", "1.00", "s,", "cold"]


def test_the_slow_imports_say_on_stderr_how_far_they_are(capsys, monkeypatch):
    monkeypatch.setattr(imports.subprocess, "check_output", lambda command: b"0.5")
    assert [row.value for row in imports.run()] == [0.5] * 4
    said = capsys.readouterr()
    assert said.out == "" and said.err.splitlines()[-1] == "  round 5 of 5"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["imports", "--figuers=here"], "no such option: --figuers=here; there is --figures=FOLDER"),
        (["imports", "--figures"], "no such option: --figures; there is --figures=FOLDER"),
        (["imports", "figures=here"], "figures=here adds a system to models, which is not asked for"),
    ],
)
def test_a_word_that_would_do_nothing_is_refused(words, complaint, capsys, monkeypatch):
    monkeypatch.setattr(imports, "run", lambda: [])
    assert benchmarks.main(words) == 2
    assert complaint in capsys.readouterr().err


def test_a_benchmark_is_drawn_with_a_panel_for_each_unit_and_a_bar_for_each_row(tmp_path, capsys, monkeypatch):
    made = [Row("a", 1.0, "s"), Row("b", 20.0, "ms"), Row("c", 3.0, "s")]
    monkeypatch.setattr(imports, "run", lambda: made)
    drawn = {}
    monkeypatch.setattr(rows.Figure, "savefig", lambda figure, path, dpi: drawn.update({path: figure}))
    assert benchmarks.main(["imports", f"--figures={tmp_path / 'new'}"]) == 0
    path = tmp_path / "new" / "imports.png"
    panels = drawn[path].axes
    assert drawn[path].get_suptitle() == imports.__doc__.splitlines()[0]
    assert f"drawn: {path}" in capsys.readouterr().out
    assert [ax.get_xlabel() for ax in panels] == ["s", "ms"]
    assert [[bar.get_width() for bar in ax.patches] for ax in panels] == [[1.0, 3.0], [20.0]]
    assert [[label.get_text() for label in ax.get_yticklabels()] for ax in panels] == [["a", "c"], ["b"]]


@pytest.mark.parametrize("name", ["welcome.mix", "masks.causal_mask", "heads.split_heads", "masks.decoder_mask"])
def test_the_strange_answer_of_the_benchmark_is_no_known_mistake(name):
    found = load(name).check(verdicts.strange(load(name).reference), quiet=True)
    assert (found.status, found.mistake) == ("wrong", None)
    assert verdicts.seconds(name, load(name).reference) > 0


def test_the_cost_of_each_scheme_of_positions_is_measured_against_attention_without(monkeypatch):
    monkeypatch.setattr(relative, "TOKENS", 8)
    measured = {name: (milliseconds, ratio) for name, milliseconds, ratio in relative.ratios(4, rounds=1)}
    assert set(measured) == {"none", *relative.SCHEMES}
    assert measured["none"][1] == 1 and all(milliseconds > 0 for milliseconds, _ in measured.values())


def test_torchs_transformer_and_ours_are_one_architecture():
    sizes = models.SIZES | {"d_model": 24, "n_heads": 4, "d_ff": 20, "n_layers": 2}
    ours, theirs = models.ours(**sizes), models.TorchTransformer(**sizes)
    assert count_parameters(ours) == count_parameters(theirs)
    source, target, source_mask, target_mask = models.batch_of(8)
    batch = source[:2], target[:2], source_mask[:2], target_mask
    assert ours(*batch).shape == theirs(*batch).shape == (2, 8, sizes["vocab_size"])
    assert models.step_seconds(ours, batch) > 0
    assert models.forward_seconds(theirs, batch) > 0


def test_another_system_joins_by_its_module_and_factory(monkeypatch, capsys):
    seen = {}
    monkeypatch.setattr(models, "run", lambda wanted: seen.update(wanted) or [])
    assert benchmarks.main(["models", "mine=benchmarks.models:TorchTransformer"]) == 0
    assert models.peers(seen)["mine"] is models.TorchTransformer


def test_with_and_without_a_cache_the_benchmark_times_one_result():
    source, target = torch.arange(3)[None], torch.arange(6)[None]
    model = decoding.encoder_decoder()
    for begin, again in (decoding.steps_alone(decoding.DecoderAlone().eval()), decoding.steps_behind(model, source)):
        step = begin()
        with torch.no_grad():
            for stop in range(1, 7):
                given, wanted = step(target[:, :stop]), again(target[:, :stop])
                torch.testing.assert_close(given.flatten(), wanted.flatten(), atol=1e-5, rtol=1e-5)
        assert len(decoding.seconds(begin(), target, list(range(1, 7)))) == 6


def test_the_cost_of_a_cache_is_told_in_seconds_in_times_and_for_each_length(monkeypatch):
    monkeypatch.setattr(decoding, "ROUNDS", 1)
    rows = list(decoding.compared("mine", lambda: torch.clone, torch.clone, torch.ones(1, 64)))
    assert [row.unit for row in rows] == ["s", "s", "times the time with a cache", *2 * decoding.SAMPLES * ["ms"]]
    assert rows[-1].label == "mine: token 60, computed again"
