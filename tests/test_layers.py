"""The package's layers and its manners, read from its source."""

import ast
import functools
import re
import subprocess
import sys

import pytest
from notebook_tools import LESSONS, ROOT

PACKAGE = ROOT / "transformer_edu"
MODULES = sorted(PACKAGE.rglob("*.py"))

# A module imports only from the lines above its own.
LAYERS = """
errors
masks attention feedforward norms positions cache
relative heads welcome
model
training decoding speech language_model
systems pretrained clinic scaling
tasks
trained
inspection
exercises
plots
viewers
kept
notebook
__main__
"""
LAYER = {word: i for i, line in enumerate(LAYERS.strip().splitlines()) for word in line.split()}
DRAWING = {"plots", "viewers"}  # the only parts that import the drawing libraries
SPEAKING = {"exercises", "notebook", "__main__"}  # the only parts that print: verdicts, and what is asked for


def name(path):
    return str(path.relative_to(PACKAGE))


def part(path):
    """The module or folder of the package that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@functools.cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imports(path):
    """Every absolute dotted name that a file imports, wherever it stands in it."""
    here, names = ("transformer_edu", *path.relative_to(PACKAGE).parent.parts), []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) + 1 - node.level] if node.level else ()
            origin = ".".join([*base, *([node.module] if node.module else [])])
            names += [f"{origin}.{alias.name}" for alias in node.names]
    return names


def imported_parts(path):
    return {each.split(".")[1] for each in imports(path) if each.startswith("transformer_edu.")}


def wrong_way_imports(path):
    own = part(path)
    for other in (imported_parts(path) - {own}) & LAYER.keys():
        if LAYER[other] >= LAYER[own]:
            yield f"{own} imports {other}"
        if own in DRAWING and other not in DRAWING | {"errors"}:
            yield f"{own} draws arrays and knows nothing of {other}"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_module_imports_only_from_the_layers_above_it(path):
    if part(path) == "__init__":
        assert imported_parts(path) <= {"__version__"}
    else:
        assert part(path) in LAYER, "a new module: give it a line in LAYERS"
        assert list(wrong_way_imports(path)) == []


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_only_plots_and_viewers_import_drawing_libraries(path):
    if part(path) not in DRAWING:
        assert not {each.split(".")[0] for each in imports(path)} & {"matplotlib", "ipywidgets"}


def bad_manners(path):
    """Star imports, assertions and prints anywhere; on the module's own level anything but definitions."""
    module = tree(path)
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            yield f"line {node.lineno}: a star import"
        if isinstance(node, ast.Assert):
            yield f"line {node.lineno}: an assertion"
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
        if called == "print" and part(path) not in SPEAKING:
            yield f"line {node.lineno}: a print"
    harmless = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.If)
    for node in module.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not isinstance(node, harmless):
            yield f"line {node.lineno}: work at import"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_module_has_manners(path):
    assert list(bad_manners(path)) == []


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_public_definition_has_a_docstring(path):
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{node.name} has no docstring"


def test_bad_code_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    bad = tmp_path / "masks.py"
    bad.write_text("from os import *\nfrom .heads import a\nimport matplotlib.pyplot\nassert 1\nprint(2)\n")
    assert list(wrong_way_imports(bad)) == ["masks imports heads"]
    assert "matplotlib.pyplot" in imports(bad)
    kinds = [each.split(": ")[1] for each in bad_manners(bad)]
    assert kinds == ["a star import", "an assertion", "a print", "work at import", "work at import"]
    plots = tmp_path / "plots.py"
    plots.write_text("def draw():\n    from transformer_edu import model\n")
    assert list(wrong_way_imports(plots)) == ["plots draws arrays and knows nothing of model"]


IMPORT_ALL = """
import importlib, pkgutil, random, sys
import numpy, torch
state = torch.get_rng_state(), random.getstate(), torch.is_grad_enabled(), torch.get_num_threads()
import transformer_edu
def load(prefix, path):
    for module in pkgutil.iter_modules(path, prefix):
        if not module.name.endswith(".__main__"):
            loaded = importlib.import_module(module.name)
            if module.ispkg:
                load(module.name + ".", loaded.__path__)
cheap = not {"matplotlib", "ipywidgets"} & set(sys.modules)
load("transformer_edu.", transformer_edu.__path__)
new = torch.get_rng_state(), random.getstate(), torch.is_grad_enabled(), torch.get_num_threads()
same = torch.equal(state[0], new[0]) and state[1:] == new[1:]
sys.exit(f"{cheap=} {same=}")
"""


def test_importing_draws_nothing_prints_nothing_and_changes_nothing():
    run = subprocess.run([sys.executable, "-c", IMPORT_ALL], cwd=ROOT, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("", "cheap=True same=True\n")


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_topic_has_one_word_from_notebook_to_test(lesson):
    number, word = re.fullmatch(r"(\d\d)_(\w+)", lesson.stem).groups()
    assert number == f"{LESSONS.index(lesson):02d}"
    exercises = PACKAGE / "exercises" / word
    assert (PACKAGE / f"{word}.py").exists() or (PACKAGE / word / "__init__.py").exists()
    assert exercises.is_dir() or exercises.with_suffix(".py").exists()
    assert (ROOT / f"tests/test_{word}.py").exists()
