"""The lessons with the reference in every stub, in a real JupyterLab in a real browser; and answers typed into one.

Solved, a lesson runs to its end and shows the same below its checks. (As stored, with every stub unsolved, pytest
runs it itself: see notebooks/conftest.py.) Without Chromium or Chrome the solved lessons run in a kernel alone, and
what needs a browser is skipped, or fails if TRANSFORMER_EDU_BROWSER=required.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
from urllib.parse import urlsplit
from urllib.request import urlopen

import nbformat
import pytest
from notebook_tools import (
    LESSONS,
    ROOT,
    WIDGET_VIEW,
    checked,
    execute,
    first_difference,
    read,
    solve,
    tags,
    text_of,
    trains,
)

from transformer_edu.exercises import load
from transformer_edu.exercises.wording import wrapped

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OFF = ("gpu", "quic", "background-networking", "component-update", "sync", "dev-shm-usage")
SWITCHES = ["--no-sandbox", "--no-first-run", *(f"--disable-{each}" for each in OFF)]
ANNOUNCEMENTS = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
SECOND = 1000  # playwright counts in milliseconds
SOLVED = "solved-{}".format
HANDLE = ".noUi-handle:visible"  # a slider with a single place is hidden


def browser_path():
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="module")
def browser():
    path = browser_path()
    if path is None:
        say = pytest.fail if os.environ.get("TRANSFORMER_EDU_BROWSER") == "required" else pytest.skip
        say("no browser was found, so no lesson was tried in one: install Chromium or Chrome")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab that serves the lessons, and solved copies, with settings of its own."""
    home = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "notebooks", home / "notebooks")
    for lesson in LESSONS:
        (home / "notebooks" / SOLVED(lesson.name)).write_text(text_of(solve(read(lesson))), encoding="utf-8")
    (home / "config/labconfig").mkdir(parents=True)
    (home / "config/labconfig/page_config.json").write_text(json.dumps(ANNOUNCEMENTS))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    switches = [f"--port={port}", "--no-browser", "--allow-root", "--IdentityProvider.token="]
    switches += ["--LabApp.expose_app_in_browser=True", f"--ServerApp.root_dir={home / 'notebooks'}"]
    kinds = ("_CONFIG", "_DATA", "_RUNTIME", "LAB_SETTINGS", "LAB_WORKSPACES")
    own = {f"JUPYTER{kind}_DIR": str(home / kind.strip("_").lower()) for kind in kinds}
    with open(home / "log", "w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyter", "lab", *switches], env=os.environ | own, stdout=log, stderr=log
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(server, address, home / "log")
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


def wait_for(server, address, log):
    """Returns as soon as the server answers."""
    for _ in range(300):
        try:
            urlopen(f"{address}/api", timeout=1).close()
            return
        except OSError:
            try:
                server.wait(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                continue
    raise RuntimeError(f"JupyterLab does not answer:\n{log.read_text()}")


@pytest.fixture(scope="module")
def window(browser, lab):
    """JupyterLab in a window that stays open, as a reader has it, and collects what must not happen."""
    window = browser.new_page(viewport={"width": 1400, "height": 1000})
    window.set_default_timeout(60 * SECOND)
    window.troubles = []
    window.on("pageerror", lambda error: window.troubles.append(f"error: {error}"))
    window.on("console", lambda message: note_error(window, message))
    window.on("request", lambda request: note_stranger(window, request, urlsplit(lab).netloc))
    window.goto(f"{lab}/lab?reset")
    window.wait_for_function("window.jupyterapp && jupyterapp.shell.currentWidget")
    return window


@pytest.fixture
def page(window):
    """The window without a lesson; after the test the lesson is closed, and there were no errors, no other machines."""
    yield window
    window.evaluate("jupyterapp.shell.currentWidget.dispose()")  # closed, and not saved
    window.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")
    troubles, window.troubles = window.troubles, []
    assert troubles == []


def note_error(page, message):
    if message.type == "error":
        page.troubles.append(f"console: {message.text} ({message.location['url']})")


def note_stranger(page, request, own):
    url = urlsplit(request.url)
    if url.scheme not in ("data", "blob") and url.netloc != own:
        page.troubles.append(f"request: {request.url}")


# What a reader does ---------------------------------------------------------------------------------------

NOTEBOOK = "jupyterapp.shell.currentWidget.content"
CELLS = f"{NOTEBOOK}.model.toJSON().cells"
IDLE = "jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"

DONE = f"""() => {{
    const cells = [...{NOTEBOOK}.model.cells];
    const meant = cell => (cell.getMetadata("tags") ?? []).includes("raises-exception");
    const raised = cell => cell.type === "code" && cell.outputs.toJSON().some(each => each.output_type === "error");
    const ran = cell => cell.executionCount !== null;
    return {IDLE} && (cells.every(ran) || cells.some(cell => raised(cell) && !meant(cell)));
}}"""  # after an error the other cells do not run


def open_lesson(page, name):
    page.evaluate(f"jupyterapp.commands.execute('docmanager:open', {{path: '{name}'}}).then(() => null)")
    page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell").first.wait_for()
    page.wait_for_function(IDLE)


def run_all(page):
    page.evaluate("jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function(DONE, timeout=300 * SECOND, polling=SECOND / 4)  # asked at each frame, it slows all down


def cells(page):
    """The notebook as it now is in the browser."""
    return page.evaluate(CELLS)


def type_and_run(page, index, source):
    """Types a cell's new source, runs it and the cell after it, and returns the latter's outputs."""
    page.evaluate(f"{NOTEBOOK}.activeCellIndex = {index}; {NOTEBOOK}.scrollToItem({index})")
    editor = page.locator(".jp-Notebook .jp-Cell.jp-mod-active .cm-content")
    editor.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(source)
    before = cells(page)[index + 1]["execution_count"]
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    page.wait_for_function(f"{CELLS}[{index + 1}].execution_count > {before} && {IDLE}")
    return cells(page)[index + 1]["outputs"]


def move_a_control(page, index):
    """Drags the first slider of a cell's viewer, or chooses from its menu, and waits for another picture."""
    page.evaluate(f"{NOTEBOOK}.scrollToItem({index})")
    place = f".jp-Cell[data-windowed-list-index='{index}']"
    cell = page.locator(place)
    cell.locator(".jupyter-widgets").first.wait_for()
    cell.locator("img").first.wait_for()
    pictures = f"[...document.querySelectorAll(`{place} img`)].map(image => image.src).join()"
    before = page.evaluate(pictures)
    if cell.locator(HANDLE).count():
        drag_to_the_other_end(page, cell)
    else:
        cell.locator("select").first.select_option(index=1)
    page.wait_for_function(f"!['', {json.dumps(before)}].includes({pictures})")


def drag_to_the_other_end(page, cell):
    handle, track = cell.locator(HANDLE).first, cell.locator(".noUi-base:visible").first
    handle.scroll_into_view_if_needed()
    here, whole = handle.bounding_box(), track.bounding_box()
    x, y = here["x"] + here["width"] / 2, here["y"] + here["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(whole["x"] + (whole["width"] if x < whole["x"] + whole["width"] / 2 else 0), y, steps=5)
    page.mouse.up()


# The tests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lesson", sorted(LESSONS, key=trains), ids=lambda path: path.stem)
def test_a_solved_lesson_shows_the_same_outside_its_checks_and_every_viewer_moves(lesson, request):
    if browser_path() is None and os.environ.get("TRANSFORMER_EDU_BROWSER") != "required":
        assert_same_outside_checks(read(lesson).cells, execute(solve(read(lesson))).cells)
        return
    page = request.getfixturevalue("page")
    open_lesson(page, SOLVED(lesson.name))
    run_all(page)
    fresh = [nbformat.from_dict(cell) for cell in cells(page)]
    assert_same_outside_checks(read(lesson).cells, fresh)
    for index, cell in enumerate(fresh):
        if any(WIDGET_VIEW in output.get("data", {}) for output in cell.get("outputs", [])):
            move_a_control(page, index)


def assert_same_outside_checks(stored, solved):
    """Outputs are what they were, but for the verdicts on the stubs, which must have changed."""
    stub = False
    for old, new in zip(stored, solved, strict=True):
        if old.cell_type == "code":
            difference = first_difference(old.outputs, new.outputs)
            if stub:
                assert difference is not None, f"a solved stub and an empty one get one verdict: {old.source}"
            elif "check" not in tags(old):
                assert difference is None, f"{old.source}\n\n{difference}"
            stub = "exercise" in tags(old)


STUB = "import torch\ndef causal_mask(length):\n    return torch.ones(length, length).bool().{}()"


def test_a_wrong_and_then_a_right_answer_get_their_verdicts(page):
    lesson = next(path for path in LESSONS if path.stem == "01_masks")
    names = [checked(cell)[1] for cell in read(lesson).cells]
    open_lesson(page, lesson.name)
    run_all(page)
    for way, status in (("triu", "wrong"), ("tril", "correct")):
        answer = {}
        exec(STUB.format(way), answer)
        verdict = load("masks.causal_mask").check(answer["causal_mask"], quiet=True)
        outputs = type_and_run(page, names.index("masks.causal_mask") - 1, STUB.format(way))
        assert verdict.status == status
        assert outputs[0]["text"].strip() == wrapped(verdict.message)
        assert any("image/png" in output.get("data", {}) for output in outputs) == (status == "wrong")
