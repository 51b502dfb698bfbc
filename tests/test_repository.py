"""The project as a whole: no private places, one address, and what Binder and Colab would make of it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from notebook_tools import LESSONS, ROOT, SET_UP, address, addressed_files, normalise, read, set_address, tags

from transformer_edu.exercises import TOPICS


def text_files(root=ROOT):
    """Every file that people read, by a walk that leaves out what tools made."""
    made = {".git", ".venv", "build", "dist", "__pycache__", ".ipynb_checkpoints"}
    made |= {".pytest_cache", ".ruff_cache", ".hypothesis"}
    kinds = {".py", ".md", ".txt", ".toml", ".yml", ".yaml", ".ipynb", ".json", ""}
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [each for each in subfolders if each not in made and not each.endswith(".egg-info")]
        yield from (Path(folder, file) for file in files if Path(file).suffix in kinds)


def test_what_jupyterlab_keeps_beside_the_lessons_is_nobodys_to_read(tmp_path):
    for folder in ("notebooks", "notebooks/.ipynb_checkpoints"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "01_masks.ipynb").write_text("{}")
    assert list(text_files(tmp_path)) == [tmp_path / "notebooks/01_masks.ipynb"]


def private_places(text):
    """Absolute paths of somebody's machine, and the addresses of package registries."""
    folders = "|".join(("home", "root", "work", "Users"))
    yield from re.findall(rf"(?<![\w.\]{{}})-])/(?:{folders})/\w+", text)
    yield from re.findall(r"\w+://\S*(?:pypi|pythonhosted|npmjs|registry)\.\S*", text)


def test_no_file_names_a_private_place():
    found = {path: list(private_places(path.read_text(encoding="utf-8"))) for path in text_files()}
    assert {path: places for path, places in found.items() if places} == {}


def test_a_private_place_is_seen():
    text = "at {0}home/me/notes, https:{0}{0}registry.example.org/x; not https://arxiv.org/abs/1, ../home/a"
    assert [place[-3:] for place in private_places(text.format("/"))] == ["/me", "/x;"]


# The address ----------------------------------------------------------------------------------------------


def slug(url):
    return url.removeprefix("https://github.com/")


def test_the_address_stands_only_where_one_command_rewrites_it():
    elsewhere = set(text_files()) - set(addressed_files())
    assert [path for path in elsewhere if slug(address()) in path.read_text(encoding="utf-8")] == []


def test_set_address_rewrites_every_button_and_set_up_cell_and_says_so(tmp_path, capsys):
    for path in addressed_files():
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    buttons = "https://mybinder.org/v2/gh/{0}/HEAD https://colab.research.google.com/github/{0}/blob/main/a"
    with open(tmp_path / "README.md", "a") as readme:
        readme.write(buttons.format(slug(address())))
    set_address("https://github.com/someone/else-where", tmp_path)
    assert capsys.readouterr().out.startswith(f"address: {slug(address())} is now someone/else-where")
    assert address(tmp_path) == "https://github.com/someone/else-where"
    texts = {path.name: path.read_text(encoding="utf-8") for path in addressed_files(tmp_path)}
    assert [path for path, text in texts.items() if slug(address()) in text] == []
    assert texts["README.md"].endswith(buttons.format("someone/else-where"))
    assert all("else-where course" in texts[lesson.name] for lesson in LESSONS)
    set_address(address(), tmp_path)
    assert all((tmp_path / path.relative_to(ROOT)).read_bytes() == path.read_bytes() for path in LESSONS)


def test_set_address_rewrites_the_folder_that_the_clone_makes(tmp_path):
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    set_address("https://github.com/someone/else-where", tmp_path)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "git clone https://github.com/someone/else-where\ncd else-where\n" in text
    assert "python -m transformer_edu" in text, "the package keeps its name"
    set_address(address(), tmp_path)
    assert (tmp_path / "README.md").read_bytes() == (ROOT / "README.md").read_bytes()


def test_set_address_refuses_what_is_no_address(tmp_path):
    with pytest.raises(SystemExit, match="must read"):
        set_address("github.com/someone", tmp_path)


# What README and the Makefile say ----------------------------------------------------------------------------

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_has_a_line_for_each_lesson_with_its_minutes_and_says_their_sum():
    promised = {path.name: int(re.search(r"(\d+) minutes", read(path).cells[0].source)[1]) for path in LESSONS}
    lines = re.findall(r"^\| \[.*\]\(notebooks/(\S+)\) \|.*\| (\d+) \|$", README, flags=re.M)
    assert {name: int(minutes) for name, minutes in lines} == promised
    exercises = sum("exercise" in tags(cell) for path in LESSONS for cell in read(path).cells)
    hours = round(sum(promised.values()) / 60)
    assert f"{len(LESSONS)} lessons, {exercises} exercises, {hours} hours" in README


def test_readme_links_the_reference_behind_each_lesson():
    linked = re.findall(r"\]\(transformer_edu/(\w+)(?:\.py)?\)", README)
    assert linked == list(TOPICS)


def make(*arguments):
    run = subprocess.run(["make", "-C", ROOT, *arguments], capture_output=True, text=True)
    return run.stdout + run.stderr


def test_make_help_names_each_setting():
    settings = re.findall(r"^(\w+) \?=", (ROOT / "Makefile").read_text(), flags=re.M)
    said = make("help")
    assert len(settings) == 5
    assert [name for name in settings if f"{name}=" not in said] == []


def test_make_lab_hides_what_is_no_lesson_from_the_list_of_files():
    hidden = re.findall(r"--ContentsManager.hide_globs='(.*?)'", make("--dry-run", "lab"))
    assert hidden == ["__pycache__", "*.egg-info", "conftest.py"]


def test_make_with_an_old_python_says_which_command_would_do(tmp_path):
    old = tmp_path / "python3.10"
    old.write_text(f'#!/bin/sh\nexec {sys.executable} -c "import sys; sys.version_info = (3, 10); $2"\n')
    old.chmod(0o755)
    said = make("lab", f"PYTHON={old}", f"VENV={tmp_path}/venv")
    assert "Python 3.11 or newer is needed: make lab PYTHON=python3.11" in said


# Colab and Binder -----------------------------------------------------------------------------------------

HIDE_THE_COURSE = f"""
import sys
sys.path[:] = [path for path in sys.path if path != {str(ROOT)!r}]
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in str(finder)]
"""
WHERE = """import transformer_edu; print(transformer_edu.__file__, device, sys.path.count("course"))"""


def git(*arguments):
    who = ["-c", "user.name=reader", "-c", "user.email=reader@example.org"]
    subprocess.run(["git", *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def remote(tmp_path):
    """The environment in which git finds a repository with a course of three lines at the address."""
    package = tmp_path / "remote/transformer_edu"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "notebook.py").write_text("check = show = None\ndef set_up():\n    return 'a device'\n")
    git("init", "--quiet", package.parent)
    git("-C", package.parent, "add", ".")
    git("-C", package.parent, "commit", "--quiet", "--message", "the course")
    instead = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.file://{package.parent}.insteadOf"}
    return os.environ | instead | {"GIT_CONFIG_VALUE_0": address()}


def test_the_set_up_cell_fetches_the_course_where_it_is_missing_once(remote, tmp_path):
    set_up = SET_UP.format(address=address())
    cells = [nbformat.v4.new_code_cell(source) for source in (HIDE_THE_COURSE, set_up, set_up, WHERE)]
    nb = nbformat.v4.new_notebook(cells=cells)
    colab = tmp_path / "colab"
    colab.mkdir()
    for _ in ("a new machine", "its kernel started again"):
        NotebookClient(nb, resources={"metadata": {"path": str(colab)}}).execute(env=remote)
        printed = "".join(output.text for cell in nb.cells for output in cell.outputs)
        assert printed == f"{colab}/course/transformer_edu/__init__.py a device 1\n"


def test_binder_would_install_the_course():
    tool = shutil.which("jupyter-repo2docker", path=Path(sys.executable).parent)
    command = [tool, "--no-build", "--no-run", "--debug", "."]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    plan = run.stdout + run.stderr
    assert run.returncode == 0, plan
    assert "Building conda environment for python=3.11" in plan
    steps = ("COPY --chown=0:0 src/ ", '-r "binder/requirements.txt"', "RUN ./binder/postBuild")
    assert [step for step in steps if step not in plan] == []
    found = [plan.index(step) for step in steps]
    assert found == sorted(found), "the requirements name a file that must be there when they are read"


def test_binder_installs_what_a_reader_installs():
    lines = (ROOT / "binder/requirements.txt").read_text().split("\n")
    assert "-r ../requirements.txt" in lines
    assert os.access(ROOT / "binder/postBuild", os.X_OK)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_normalising_twice_is_normalising_once(lesson):
    once = normalise(read(lesson))
    assert normalise(once) == once
