"""The benchmarks run and say what they measured; how fast it was is nobody's test."""

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import relative, verdicts
from transformer_edu.exercises import load


def test_an_unknown_benchmark_is_refused_with_the_list_of_all(capsys):
    assert benchmarks.main(["verdict"]) == 2
    assert "no such benchmark: verdict; there are imports, verdicts, pictures" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_names_the_benchmarks_and_runs_none(word, capsys):
    assert benchmarks.main([word]) == 0
    said = capsys.readouterr().out
    assert all(f"[{name}]" in said for name in benchmarks.BENCHMARKS)
    assert len(said.splitlines()) == 1


def test_a_benchmark_prints_a_line_for_each_measurement(capsys, monkeypatch):
    monkeypatch.setitem(benchmarks.BENCHMARKS, "imports", lambda: [("import torch", "1.00 s")])
    assert benchmarks.main(["imports"]) == 0
    assert capsys.readouterr().out.split() == ["imports", "import", "torch", "1.00", "s"]


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
