"""What `kept` keeps, and what makes a function run again. The functions stand in a notebook: here, in text."""

import functools
import os
import subprocess
import sys
import types

import pytest
import torch
from notebook_tools import ROOT
from torch import nn

from transformer_edu import kept as module
from transformer_edu import tasks
from transformer_edu.kept import fingerprint, kept
from transformer_edu.model import TransformerConfig, build_transformer

CELL = """
import math, torch
from torch import nn
from torch.nn import functional as F
from transformer_edu import norms
from transformer_edu.kept import kept

rate, table, names = 0.5, torch.arange(3.0), ["a", "b"]

def inner(x):
    return [x + n for n in range(2)]

def outer(x):
    return sum(inner(x)) * rate + len(names)

class Part(nn.Module):
    def __init__(self, size=2):
        super().__init__()
        self.layer = nn.Linear(size, 3)

    def forward(self, x):
        return self.layer(x)

def closing(n):
    return lambda x: x + n

add = closing(1)

@kept
def train(x, times=2):
    runs.append(x)
    part = Part.__name__
    return part, add(outer(x)) * times + float(table.sum()) + math.pi, F.relu(torch.ones(1)), norms.LayerNorm(d_model=2)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_EDU_KEPT", str(tmp_path / "kept"))
    return tmp_path / "kept"


def notebook(*changes, **values):
    """A namespace in which CELL has run, with pieces of it replaced, and then some of its values."""
    text = CELL
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    main = types.ModuleType("__main__")
    main.runs = []
    exec(text, vars(main))
    vars(main).update(values)
    return main


def ran(main, *args, **kwargs):
    """Did this call run the function? `runs` is looked up by name as well, so it is always empty before."""
    main.runs.clear()
    main.train(*args, **kwargs)
    return bool(main.runs)


@pytest.fixture
def main(monkeypatch):
    """A notebook in which train(3) has been kept."""
    main = notebook()
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert ran(main, 3)
    return main


def test_a_second_call_and_another_notebook_with_the_same_cells_read_what_was_kept(main, folder):
    assert not ran(main, 3)
    assert not ran(notebook(), 3)
    assert len(list(folder.glob("train-*.pt"))) == 1


CHANGES = {
    "another line in the function": ("* times", "* times * 1"),
    "a function that it calls": ("sum(inner(x))", "sum(inner(x)[1:])"),
    "a function that this one calls": ("[x + n for", "[x - n for"),
    "a constant two functions away": ("range(2)", "range(3)"),
    "a number": ("rate, table, names = 0.5", "rate, table, names = 0.25"),
    "a tensor": ("torch.arange(3.0)", "torch.arange(3.0).flip(0)"),
    "the kind of a tensor's numbers": ("torch.arange(3.0)", "torch.arange(3.0).double()"),
    "a list": ('["a", "b"]', '["a", "c"]'),
    "a method of a class": ("return self.layer(x)", "return self.layer(x) + 0"),
    "a default of a method": ("size=2", "size=4"),
    "a parent of a class": ("class Part(nn.Module)", "class Part(nn.Sequential)"),
    "a default": ("times=2", "times=4"),
    "what a function closes over": ("add = closing(1)", "add = closing(2)"),
    "a function of torch": ("F.relu", "F.selu"),
    "a function of the package": ("norms.LayerNorm", "norms.RMSNorm"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_it_runs_again_after_a_change_of(main, change):
    changed = notebook(change)
    assert ran(changed, 3)
    assert not ran(changed, 3)
    assert not ran(notebook(), 3)  # the old one is still there


def test_arguments_count_by_value(main):
    assert ran(main, 4)
    assert ran(main, 3.0)
    assert ran(main, 3, times=5)
    assert not ran(main, 3)


def test_a_number_changed_in_a_later_cell_counts(main):
    assert ran(notebook(rate=0.75), 3)
    main.table[1] = 9  # in place
    assert ran(main, 3)


def test_the_source_of_the_package_and_the_version_of_torch_count(main, monkeypatch):
    before = module._ground()
    module._ground.cache_clear()
    monkeypatch.setattr(torch, "__version__", "0.0")
    assert module._ground() != before
    assert ran(main, 3)
    monkeypatch.undo()
    module._ground.cache_clear()
    assert module._ground() == before


def test_a_module_of_the_readers_own_counts_with_its_file(monkeypatch, tmp_path):
    file = tmp_path / "my_part_of_a_model.py"
    file.write_text("def mine(x):\n    return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    import my_part_of_a_model as mine

    before = fingerprint(mine), fingerprint(mine.mine)
    assert (fingerprint(mine), fingerprint(mine.mine)) == before
    file.write_text("def mine(x):\n    return -x\n")
    after = fingerprint(mine), fingerprint(mine.mine)
    assert all(old != new for old, new in zip(before, after, strict=True))


def test_another_process_finds_the_same_fingerprint():
    program = f"""{CELL}
from transformer_edu import tasks
from transformer_edu.kept import fingerprint
numbers = tasks.number_words()
runs = []
print(fingerprint(train, numbers, numbers.examples(20), {{"b", "a", "c"}}, torch.Generator().manual_seed(3)))"""
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1 and len(seen.pop().strip()) == 16


def test_models_are_told_apart_by_their_weights_and_come_back_as_they_were(main):
    def small(seed):
        torch.manual_seed(seed)
        return build_transformer(TransformerConfig(source_vocab_size=5, target_vocab_size=7, d_model=8, n_heads=2))

    assert fingerprint(small(0)) == fingerprint(small(0))
    assert fingerprint(small(0)) != fingerprint(small(1))
    assert fingerprint(small(0)) != fingerprint(small(0).eval())

    runs = []

    @kept
    def made(seed):
        runs.append(seed)
        return small(seed).eval(), [1.0, 2.0], {"map": torch.eye(2)}

    ids = torch.tensor([[1, 2, 3]])
    (first, *rest), (second, *others) = made(0), made(0)
    assert torch.equal(first(ids, ids), second(ids, ids)) and not second.training
    assert rest[0] == others[0] and torch.equal(rest[1]["map"], others[1]["map"])
    assert rest[1]["map"] is not others[1]["map"]


def test_equal_parts_at_other_places_are_told_apart():
    x, y = [1], [2]
    assert fingerprint([x, y, x]) != fingerprint([x, y, y])
    assert fingerprint([[1], 2]) != fingerprint([[1, 2]])
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    assert fingerprint({"a": 1, "b": 2}) != fingerprint({"a": 2, "b": 1})
    assert fingerprint(1) != fingerprint(True) != fingerprint(1.0)
    assert fingerprint(torch.zeros(2, 3)) != fingerprint(torch.zeros(3, 2))
    loop = []
    loop.append(loop)
    assert fingerprint(loop) == fingerprint(loop)


def test_every_kind_of_value_has_a_fingerprint_that_a_change_changes():
    from datetime import date
    from pathlib import Path

    import numpy as np

    pairs = [
        (date(1987, 3, 5), date(1987, 3, 6)),
        (Path("a"), Path("b")),
        (np.arange(3), np.arange(3) + 1),
        (np.int64(3), np.int64(4)),
        (torch.zeros(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.bfloat16)),
        (torch.tensor(True), torch.tensor(False)),
        (torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)),
        (functools.partial(max, 1), functools.partial(max, 2)),
        (max, min),
        ([1].append, [2].append),
        (nn.Linear, nn.Bilinear),
        ({1, 2}, {1, 3}),
        (tasks.number_words(), tasks.dates()),
        (tasks.dates().examples(3), tasks.dates().examples(3, split="test")),
        (functools.cache(lambda: 1), functools.cache(lambda: 2)),
        (torch.float16, torch.bfloat16),
        (torch, nn),
        (None, ...),
    ]
    for one, other in pairs:
        assert fingerprint(one) == fingerprint(one) != fingerprint(other), one


@pytest.mark.parametrize("value", [iter([1]), (n for n in "ab"), object(), sys.stdout], ids=lambda v: type(v).__name__)
def test_what_has_no_fingerprint_is_refused_and_keeps_nothing(main, value, folder):
    with pytest.raises(TypeError, match=f"no fingerprint of {type(value).__name__}"):
        fingerprint([1, {"x": value}])
    held = set(folder.iterdir())
    unknown = notebook(rate=types.SimpleNamespace(value=value))
    unknown.train.__wrapped__.__globals__["outer"] = lambda x: x
    unknown.inner_value = value
    exec("add = lambda x: (inner_value, x)[1]", vars(unknown))
    assert ran(unknown, 3) and ran(unknown, 3)
    assert set(folder.iterdir()) == held


def test_random_numbers_begin_at_one_place_and_those_outside_go_on(folder):
    @kept
    def drawn():
        return torch.rand(3)

    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    first = drawn()
    assert torch.equal(torch.rand(2), expected)
    torch.manual_seed(6)
    next(folder.iterdir()).unlink()
    assert torch.equal(drawn(), first)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"anything"])
def test_a_damaged_file_is_written_anew(main, folder, content):
    file = next(folder.iterdir())
    file.write_bytes(content)
    assert ran(main, 3)
    assert not ran(main, 3)


def test_a_result_is_given_though_it_cannot_be_kept(main, folder, monkeypatch):
    @kept
    def unpicklable():
        return lambda: 3

    assert unpicklable()() == unpicklable()() == 3
    monkeypatch.setenv("TRANSFORMER_EDU_KEPT", str(next(folder.iterdir())))  # a file where the folder should be
    assert ran(main, 3) and ran(main, 3)
    assert [file.suffix for file in folder.iterdir()] == [".pt"]  # nothing half written


def test_without_the_variable_the_folder_lies_beside_the_notebook(main, tmp_path, monkeypatch):
    monkeypatch.delenv("TRANSFORMER_EDU_KEPT")
    monkeypatch.chdir(tmp_path)
    assert ran(main, 3) and not ran(main, 3)
    assert len(list((tmp_path / ".kept").iterdir())) == 1


def test_the_files_used_longest_ago_go_first(main, folder, monkeypatch):
    monkeypatch.setattr(module, "FILES", 3)
    assert ran(main, 4) and ran(main, 5)
    for file in folder.iterdir():
        os.utime(file, (1, 1))
    assert not ran(main, 3)  # used now
    assert ran(main, 6) and ran(main, 7)
    assert len(list(folder.iterdir())) == 3
    assert not ran(main, 3) and not ran(main, 6) and not ran(main, 7)
    assert ran(main, 4)


def test_an_error_of_the_function_is_the_readers_to_see(folder):
    @kept
    def fails():
        raise RuntimeError("the loss is nan")

    with pytest.raises(RuntimeError, match="the loss is nan"):
        fails()
    assert not folder.exists()


def test_only_functions_are_kept():
    with pytest.raises(TypeError, match=r"function must be a function, def function\(\.\.\.\), got int \(5\)"):
        kept(5)
    assert kept(fingerprint).__doc__ == fingerprint.__doc__
