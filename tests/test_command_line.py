"""`python -m transformer_edu`: checks the functions of files, and says calmly what is wrong with a file."""

import subprocess
import sys

import pytest
import torch
from notebook_tools import LESSONS, ROOT, read, tags

from transformer_edu.__main__ import main
from transformer_edu.exercises import command_line, names

RIGHT = "import torch\ndef causal_mask(n):\n    return torch.ones(n, n).bool().tril()\n"
WRONG = RIGHT.replace("tril", "triu")
SOFTMAX = "def softmax(x, dim):\n    return x.softmax(dim)\n"


@pytest.fixture
def answers(tmp_path):
    def write(text, name="answers.py"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def stubs_in_the_lessons():
    """(lesson, text) of every cell that a reader fills in."""
    for lesson in LESSONS:
        for cell in read(lesson).cells:
            if "exercise" in tags(cell):
                yield lesson, cell.source


def test_list_prints_every_exercise_with_its_arguments_below_its_lesson(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("(")[0].strip() for line in lines if line.startswith(" ")] == names()
    assert [line for line in lines if not line.startswith(" ")] == [f"notebooks/{path.name}" for path in LESSONS]
    assert "  norms.layer_norm(x, gamma, beta, eps=1e-5)" in lines


def test_exercises_and_stubs_are_those_of_the_lessons_in_their_order(capsys):
    """To mend it, copy the cell of the lesson to exercises/stubs.py, or bring EXERCISES into the lessons' order."""
    lessons, texts = zip(*stubs_in_the_lessons(), strict=True)
    assert main(["stub", *command_line.TOPICS]) == 0
    head, *printed = capsys.readouterr().out.split("\n\n\n")
    assert "import torch" in head
    wanted = zip(names(), lessons, texts, strict=True)
    assert [each.rstrip() for each in printed] == [
        f"# {name}, notebooks/{lesson.name}\n{text}" for name, lesson, text in wanted
    ]


def test_stubs_are_a_file_that_can_be_checked(answers, capsys):
    main(["stub", "welcome", "causal_mask", "masks.cross_mask", "causal_mask"])
    text = capsys.readouterr().out
    assert text.count("def ") == 3
    assert main(["check", answers(text)]) == 1
    out = capsys.readouterr().out
    assert [line.split(":")[0] for line in out.splitlines()[:3]] == [
        "○ welcome.mix",
        "○ masks.causal_mask",
        "○ masks.cross_mask",
    ]
    assert out.endswith("answers.py: 0 of 3 correct\n")


@pytest.mark.parametrize("arguments", [["stub", "masks", "casual_mask"], ["check", "none.py", "--only", "casual_mask"]])
def test_an_unknown_word_is_refused_with_the_nearest(capsys, arguments):
    assert main(arguments) == 2
    said = "casual_mask: no such exercise or topic; did you mean masks.causal_mask?\n"
    assert capsys.readouterr() == ("", said)
    assert main([*arguments[:-1], "hardmax"]) == 2
    assert "hardmax: no such exercise or topic; `python -m transformer_edu list`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (RIGHT, 0, "answers.py: 1 of 1 correct"),
        ("print('hello')\n" + RIGHT, 0, "1 of 1 correct"),
        (WRONG, 1, "Your triangle is flipped"),
        (RIGHT + "def softmax(x, dim):\n    raise NotImplementedError\n", 1, "1 of 2 correct"),
        ("x = (", 1, "line 1: the file could not be run: SyntaxError: '(' was never closed\n"),
        ("1 / 0", 1, "line 1: the file could not be run: ZeroDivisionError: division by zero"),
        ("\ncompile('x = (', 'other.py', 'exec')", 1, "line 2: the file could not be run: SyntaxError: '(' was never"),
        ("compile('x = (', 'other.py', 'exec')", 1, "closed (other.py, line 1)"),
        ("exit()", 1, "the file could not be run: it called exit()"),
        ("x = 1", 2, "no function is named like an exercise; `python -m transformer_edu list` names them all\n"),
    ],
)
def test_a_file_gets_a_status_and_a_sentence(answers, capsys, text, status, said):
    assert main(["check", answers(text)]) == status
    out = capsys.readouterr().out
    assert said in out and "hello" not in out


def test_a_misspelt_exercise_is_told_and_counts_as_not_correct(answers, capsys):
    assert main(["check", answers(SOFTMAX + RIGHT.replace("causal", "casual"))]) == 1
    out = capsys.readouterr().out
    assert "? casual_mask: not an exercise, so not checked. Did you mean masks.causal_mask?\n" in out
    assert out.endswith("answers.py: 1 of 1 correct, 1 not checked\n")
    assert main(["check", answers("def CausalMask(n):\n    return n\n")]) == 2
    assert "? CausalMask: not an exercise" in capsys.readouterr().out


@pytest.mark.parametrize(
    "helper",
    [
        "def causal_mask_(n):\n    return n\n",  # the exercise itself is in the file
        "def helper(n):\n    return n\n",
        "from torch.nn.functional import rms_norm as rms_norm_\n",  # not the file's own
        "class LayerNorm:\n    pass\n",
    ],
)
def test_helpers_are_no_misspelt_exercises(answers, capsys, helper):
    assert main(["check", answers(RIGHT + helper)]) == 0
    assert "not an exercise" not in capsys.readouterr().out


def test_one_exercise_or_topic_alone_may_be_named(answers, capsys):
    file = answers(WRONG + SOFTMAX)
    for name in ("softmax", "attention.softmax", "attention"):
        assert main(["check", file, "--only", name]) == 0
        assert capsys.readouterr().out.startswith("✓ attention.softmax: correct.")
    assert main(["check", file, "--only", "heads"]) == 2
    said = "answers.py: no function is named split_heads or merge_heads or multi_head_attention\n"
    assert capsys.readouterr().out.endswith(said)


def test_several_files_are_checked_each_by_itself(answers, tmp_path, capsys):
    files = [answers(RIGHT, "a.py"), answers(WRONG, "b.py"), str(tmp_path / "none.py"), answers(RIGHT, "c.py")]
    assert main(["check", files[0], files[3]]) == 0
    assert capsys.readouterr().out.splitlines()[0] == files[0]
    assert main(["check", files[0], files[1]]) == 1
    capsys.readouterr()
    assert main(["check", *files]) == 2
    out = capsys.readouterr().out
    assert [line[-14:] for line in out.splitlines() if line.endswith(" correct")] == [
        "1 of 1 correct",
        "0 of 1 correct",
        "1 of 1 correct",
    ]


def test_what_a_file_sets_does_not_reach_the_next(answers):
    main(["check", answers("import torch\ntorch.set_default_dtype(torch.float64)\n" + RIGHT)])
    assert torch.get_default_dtype() == torch.float32


def test_what_is_no_python_file_is_refused(answers, tmp_path, capsys):
    for path, said in (
        (str(tmp_path / "none.py"), "no such file"),
        (str(tmp_path), "a folder, not a file"),
        (answers("{}", "lesson.ipynb"), "is a notebook: run its check cells"),
    ):
        assert main(["check", path]) == 2
        assert said in capsys.readouterr().err


def test_a_file_that_never_ends_is_stopped(answers, capsys, monkeypatch):
    monkeypatch.setattr(command_line, "SECONDS", 0.3)
    assert main(["check", answers("while True:\n    pass")]) == 1
    assert "it did not finish in 0.3 seconds" in capsys.readouterr().out


def test_without_a_command_the_help_is_shown(capsys):
    assert main([]) == 2
    out = capsys.readouterr().out
    assert out.startswith("usage: python -m transformer_edu") and "stub" in out


def test_a_python_without_torch_is_told_in_one_sentence():
    code = "import sys, runpy; sys.modules['torch'] = None; runpy.run_module('transformer_edu', run_name='__main__')"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"torch is not installed for {sys.executable}: use the environment's Python")
    assert run.stderr.count("\n") == 1


def test_a_reader_that_stops_reading_is_no_error():
    command = [sys.executable, "-m", "transformer_edu", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as run:
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 1
