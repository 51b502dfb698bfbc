"""`python -m transformer_edu`: checks the functions of a file, and says calmly what is wrong with the file."""

import pytest

from transformer_edu import __main__ as command_line
from transformer_edu.exercises import names

RIGHT = "import torch\ndef causal_mask(n):\n    return torch.ones(n, n).bool().tril()\n"
WRONG = RIGHT.replace("tril", "triu")


@pytest.fixture
def answers(tmp_path):
    def write(text, name="answers.py"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_list_prints_every_exercise(capsys):
    assert command_line.main(["list"]) == 0
    assert capsys.readouterr().out.split() == names()


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (RIGHT, 0, "1 of 1 correct"),
        ("print('hello')\n" + RIGHT, 0, "1 of 1 correct"),
        (WRONG, 1, "Your triangle is flipped"),
        (RIGHT + "def softmax(x, dim):\n    raise NotImplementedError\n", 1, "1 of 2 correct"),
        ("x = (", 1, "the file could not be run: SyntaxError"),
        ("1 / 0", 1, "line 1: the file could not be run: ZeroDivisionError: division by zero"),
        ("exit()", 1, "the file could not be run: it called exit()"),
        ("x = 1", 2, "no function named like an exercise"),
    ],
)
def test_a_file_gets_a_status_and_a_sentence(answers, capsys, text, status, said):
    assert command_line.main(["check", answers(text)]) == status
    out = capsys.readouterr().out
    assert said in out and "hello" not in out


def test_one_exercise_alone_may_be_named_with_or_without_its_topic(answers, capsys):
    file = answers(WRONG + "def softmax(x, dim):\n    return x.softmax(dim)\n")
    for name in ("softmax", "attention.softmax"):
        assert command_line.main(["check", file, "--only", name]) == 0
        assert capsys.readouterr().out.startswith("✓ attention.softmax: correct.")
    assert command_line.main(["check", file, "--only", "hardmax"]) == 2
    assert "hardmax: no such exercise; there are welcome.mix" in capsys.readouterr().err


def test_what_is_no_python_file_is_refused(answers, tmp_path, capsys):
    for path, said in (
        (str(tmp_path / "none.py"), "no such file"),
        (str(tmp_path), "a folder, not a file"),
        (answers("{}", "lesson.ipynb"), "is a notebook: run its check cells"),
    ):
        assert command_line.main(["check", path]) == 2
        assert said in capsys.readouterr().err


def test_a_file_that_never_ends_is_stopped(answers, capsys, monkeypatch):
    monkeypatch.setattr(command_line, "SECONDS", 0.3)
    assert command_line.main(["check", answers("while True:\n    pass")]) == 1
    assert "it did not finish in 0.3 seconds" in capsys.readouterr().out
