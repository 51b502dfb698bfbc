"""What `kept` keeps, and what makes a function run again. The functions stand in a notebook: here, in text."""

import contextlib
import functools
import importlib
import io
import os
import random
import re
import subprocess
import sys
import types
from datetime import date
from pathlib import Path

import numpy as np
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
    print('ran')
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
    exec(text, vars(main))
    vars(main).update(values)
    return main


def ran(main, *args, **kwargs):
    """Did this call run the function?"""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        main.train(*args, **kwargs)
    return bool(printed.getvalue())


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


ALTERED = {
    "a star before an argument": ("def part(a, {}b): return b", "", "*"),
    "an argument that must be named": ("def part(a, {}b=1): return b", "", "*, "),
    "an attribute of a function": ("def part(): return part.rate\npart.rate = {}", 1, 2),
    "a function with the name of torch's": ("@functools.wraps(F.relu)\ndef part(x): return {}", 1, 2),
    "what decorates a function of torch": ("part = torch.no_grad()(F.{})", "relu", "selu"),
    "what an inner function imports": ("def part():\n    import {}", "math", "json"),
    "the parents of a parent": ("class M(type): n = {}\nclass part(metaclass=M): pass", 1, 2),
    "a method of a named tuple": ("class P(NamedTuple):\n    x: int\n    def f(self): return {}\npart = P(1)", 1, 2),
    "the names of a named tuple": ("part = namedtuple('P', '{}')(1, 2)", "x y", "y x"),
    "a method of a list": ("class L(list):\n    def f(self): return {}\npart = L()", 1, 2),
    "an attribute of a dictionary": ("class D(dict): pass\npart = D()\npart.rate = {}", 1, 2),
    "what is in a dictionary of one's own": ("class D(dict): pass\npart = D(x={})", 1, 2),
    "the default of a dictionary": ("part = defaultdict({})", "int", "list"),
    "a method of a word": ("class W(str):\n    def f(self): return {}\npart = W('a')", 1, 2),
    "a number with a repr of its own": ("class N(int):\n    def __repr__(self): return 'N'\npart = N({})", 1, 2),
    "a method of a choice": ("class E(enum.Enum):\n    A = 1\n    def f(self): return {}\npart = E.A", 1, 2),
    "a value in a slot": ("class S:\n    __slots__ = ('x',)\npart = S()\npart.x = {}", 1, 2),
    "a factory of a data class": ("@dataclass\nclass part:\n    x: list = field(default_factory={})", "list", "dict"),
    "an abstract class": ("class part(abc.ABC):\n    def f(self): return {}", 1, 2),
    "a frozen parameter": ("part = nn.Parameter(torch.ones(2), requires_grad={})", True, False),
    "an attribute of a tensor": ("part = torch.ones(2)\npart.decays = {}", True, False),
    "a gradient": ("part = nn.Parameter(torch.ones(1))\npart.grad = torch.full((1,), {})", 1.0, 2.0),
    "a hook": ("part = torch.ones(1, requires_grad=True)\npart.register_hook(lambda g: g * {})", 1, 2),
    "strides": ("part = torch.zeros(2, 2){}", "", ".T"),
    "a view of one number": ("part = torch.arange(4.0)[{}::2][:1]", 0, 1),
    "a mask of numpy": ("part = np.ma.array([1, 2], mask=[0, {}])", 0, 1),
    "numbers of numpy backwards": ("part = np.arange({})[::-1]", 3, 4),
    "one list twice or two": ("x = [1]\npart = [x, {}]", "x", "[1]"),
    "a class without a module": ("space = {{}}\nexec('class A: x = {}', space)\npart = space['A']", 1, 2),
    "a function without a module": ("space = {{}}\nexec('def f(): return {}', space)\npart = space['f']", 1, 2),
}
IMPORTS = """
import abc, enum, functools, json, torch
import numpy as np
from collections import defaultdict, namedtuple
from dataclasses import dataclass, field
from typing import NamedTuple
from torch import nn
from torch.nn import functional as F
"""


@pytest.mark.parametrize(("text", "old", "new"), ALTERED.values(), ids=ALTERED)
def test_it_tells_apart(text, old, new, monkeypatch):
    def made(filling):
        main = types.ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", main)
        exec(IMPORTS + text.format(filling), vars(main))
        return fingerprint(main.part)

    assert made(old) == made(old) != made(new)


def test_where_an_error_is_caught_counts():
    """The same steps, of which one stands inside the `try` or outside of it."""

    def part(x):
        try:
            return int(x)
        except ValueError:
            return 0

    changed = types.FunctionType(part.__code__.replace(co_exceptiontable=b""), {}, "part")
    assert fingerprint(part) != fingerprint(changed)


def test_what_torch_is_set_to_counts(main):
    with torch.no_grad():
        assert ran(main, 3)
    with torch.device("meta"):
        assert ran(main, 3)
    with torch.autocast("cpu"):
        assert ran(main, 3)
    torch.set_default_dtype(torch.float64)
    try:
        assert ran(main, 3)
    finally:
        torch.set_default_dtype(torch.float32)
    assert not ran(main, 3)


CHANGING = {
    "a model": "from torch import nn\nnet = nn.Linear(1, 1)\ndef train(_): print('ran'); net.weight.data += 1",
    "a mode": "from torch import nn\nnet = nn.Linear(1, 1)\ndef train(_): print('ran'); net.train(not net.training)",
    "a list outside": "losses = []\ndef train(model): print('ran'); losses.append(1)",
    "a new name outside": "def train(model):\n    global best\n    print('ran'); best = model",
}


@pytest.mark.parametrize("text", CHANGING.values(), ids=CHANGING)
def test_what_changes_something_outside_is_not_kept(text, folder):
    main = types.ModuleType("__main__")
    exec(text, vars(main))
    main.train = kept(main.train)
    for _ in range(2):
        assert ran(main, nn.Linear(2, 2))
    assert not folder.exists()


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
    monkeypatch.setattr(torch, "__version__", "0.0")
    assert module._source() != module.source_at_first()
    assert ran(main, 3)
    monkeypatch.setattr(module, "source_at_first", module._source)  # as in a kernel that has begun with it
    assert ran(main, 3) and not ran(main, 3)


def test_nothing_is_kept_once_the_package_has_been_edited(main, monkeypatch, folder):
    """Code that was imported before must not be taken for what the files now say."""
    monkeypatch.setattr(module, "_source", lambda: "edited")
    assert ran(main, 4) and ran(main, 4)
    assert not ran(main, 3)  # that came from the code that this kernel still has
    assert len(list(folder.iterdir())) == 1


@pytest.fixture
def own(monkeypatch, tmp_path):
    """A module and a package of the reader's own: `own(n)` imports them anew with the function g returning n."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(n):
        uses = "def f():\n    return g()\nclass A:\n    def f(self): return g()\n"
        files = {
            "own_deep.py": f"def g():\n    return {n}\n",
            "own_part.py": f"from __future__ import annotations\nfrom own_deep import g\n{uses}",
            "own_package/__init__.py": "from .sub import f\n",
            "own_package/sub.py": f"from .deep import g\n{uses}",
            "own_package/deep.py": f"def g():\n    return {n}\n",
            "own_package/late.py": "def f():\n    from .deep import g\n    return g()\n",
        }
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)

    def load(n):
        write(n)
        for name in [name for name in sys.modules if name.startswith("own_")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        part, package = importlib.import_module("own_part"), importlib.import_module("own_package")
        return part, part.f, part.A, part.A(), package, package.f, package.sub.A()

    load.write = write
    yield load
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


def test_what_a_function_imports_only_when_it_runs_has_no_fingerprint(own):
    own(1)
    with pytest.raises(KeyError):
        fingerprint(importlib.import_module("own_package.late").f)


def test_files_of_the_readers_own_count_with_all_that_they_use(own):
    first, again, other = ([fingerprint(each) for each in own(n)] for n in (1, 1, 2))
    assert first == again
    assert all(old != new for old, new in zip(first, other, strict=True))


def test_of_a_file_of_the_readers_own_what_was_imported_counts(own):
    """Edited, but not yet imported again: what runs is the old code, and it must not be kept as the new one's."""
    loaded = own(1)
    before = [fingerprint(each) for each in loaded]
    own.write(2)
    assert [fingerprint(each) for each in loaded] == before
    assert [fingerprint(each) for each in own(2)] != before


def test_another_process_finds_the_same_fingerprint():
    program = f"""{CELL}
from transformer_edu import tasks
from transformer_edu.kept import fingerprint
numbers = tasks.number_words()
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

    @kept
    def made(seed):
        return small(seed).eval(), [1.0, 2.0], {"map": torch.eye(2)}

    ids = torch.tensor([[1, 2, 3]])
    (first, *rest), (second, *others) = made(0), made(0)
    assert torch.equal(first(ids, ids), second(ids, ids)) and not second.training
    assert rest[0] == others[0] and torch.equal(rest[1]["map"], others[1]["map"])
    assert rest[1]["map"] is not others[1]["map"]


def test_a_model_that_is_trained_is_returned_and_stays_as_it_was_where_it_came_from(main):
    @kept
    def trained(model, groups):
        print("ran")
        optimizer = torch.optim.SGD(groups, lr=0.1)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        return model.eval()

    main.train = trained
    model = nn.Linear(2, 2)
    before = model.weight.clone()
    assert ran(main, model, [model.weight]) and not ran(main, model, [model.weight])
    assert torch.equal(model.weight, before) and model.training
    assert torch.allclose(trained(model, [model.weight]).weight, before - 0.1)


def test_an_argument_that_the_function_also_looks_up_is_not_copied(main, folder):
    model = nn.Linear(2, 2, bias=False)
    before = model.weight.clone()

    @kept
    def trained(given):
        given.weight.data += 1
        return (model.weight - before).sum().item()  # of the one outside

    assert trained(model) == pytest.approx(4) and trained(model) == pytest.approx(8)
    assert len(list(folder.iterdir())) == 1  # what `main` has kept


def test_the_first_call_returns_what_later_ones_do(main):
    """Else what is kept of a trained model would be made twice: with the gradients, and without."""

    @kept
    def made(x):
        layer = nn.Linear(2, 2)
        layer(x).sum().backward()
        return layer, layer(x), x

    x = torch.ones(1, 2)
    first, second = made(x), made(x)
    assert fingerprint(first) == fingerprint(second)
    assert first[-1] is not x


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
        (re.compile("a"), re.compile("b")),
        (np.sin, np.cos),
        (str.lower, str.upper),
        (list[int], list[str]),
        (types.SimpleNamespace(x=1), types.SimpleNamespace(x=2)),
        (random.Random(1), random.Random(2)),
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


@pytest.mark.parametrize("value", [0, iter("ab")], ids=["kept", "not kept"])
def test_random_numbers_begin_at_one_place_and_those_outside_go_on(folder, value):
    def draw(n):
        return torch.rand(n).tolist(), np.random.rand(n).tolist(), [random.random() for _ in range(n)]

    @kept
    def drawn(_):
        return draw(3)

    def seed(n):
        torch.manual_seed(n), np.random.seed(n), random.seed(n)

    seed(5)
    expected = draw(2)
    seed(5)
    first = drawn(value)
    assert draw(2) == expected
    seed(6)
    for file in folder.glob("*"):
        file.unlink()
    assert drawn(value) == first


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


def test_what_a_folder_that_can_only_be_read_holds_is_read(main, monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(os, "utime", refused)
    assert not ran(main, 3)


def test_something_callable_without_a_name_runs():
    assert kept(functools.partial(max, 3))(4) == 4


def test_no_fingerprint_warns(recwarn):
    fixed = np.broadcast_to(np.arange(3), (2, 3))
    made = torch.ones(2, requires_grad=True) * 2  # not a leaf: its gradient is not to be asked for
    assert fingerprint(fixed, made) and not recwarn.list


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
