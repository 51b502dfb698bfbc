"""The lessons' form: one rule a function, each proved by a notebook that breaks it."""

import re
from copy import deepcopy
from itertools import pairwise

import nbformat
import pytest
from notebook_tools import LESSONS, ROOT, SET_UP, address, checked, normalise, read, tags, text_of

RULES = {}


def rule(function):
    """A rule yields one sentence for each place in a notebook that breaks it."""
    RULES[function.__name__] = function
    return function


def code_cells(nb):
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def prose_cells(nb):
    return [cell for cell in nb.cells if cell.cell_type == "markdown"]


def prose(cell):
    """A text cell without its code, formulas, addresses and HTML tags."""
    other = r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|<[^>]*>|!\["
    return re.sub(other, " ", cell.source, flags=re.S)


def output_texts(cell):
    """The texts among a cell's outputs, without pictures."""
    for output in cell.outputs:
        yield output.get("text", "") + output.get("evalue", "")
        yield from (data for mime, data in output.get("data", {}).items() if mime.startswith("text/"))


def without_the_kernel_of_the_day(nb):
    """A copy without what JupyterLab writes into every lesson that it opens: how its own kernel is called."""
    nb = deepcopy(nb)
    nb.metadata.pop("language_info", None)
    nb.metadata.get("kernelspec", {}).pop("display_name", None)
    return nb


@rule
def stored_in_the_one_form(nb):
    if without_the_kernel_of_the_day(normalise(nb)) != without_the_kernel_of_the_day(nb):
        yield "run `make notebooks`, or `python tests/notebook_tools.py normalise` on the file"


@rule
def run_from_top_to_bottom(nb):
    counts = [cell.execution_count for cell in code_cells(nb)]
    if counts != list(range(1, len(counts) + 1)):
        yield f"execution counts {counts}"
    for cell in code_cells(nb):
        results = [each.execution_count for each in cell.outputs if each.output_type == "execute_result"]
        if any(count != cell.execution_count for count in results):
            yield f"a result counted {results} in cell [{cell.execution_count}]"


@rule
def every_output_is_compared(nb):
    for cell in code_cells(nb):
        if any(tag.startswith("nbval") for tag in tags(cell)) or "NBVAL_" in cell.source:
            yield f"nbval is told to look away: {cell.source}"


@rule
def outputs_can_be_compared(nb):
    for cell in code_cells(nb):
        for output in cell.outputs:
            if output.get("name") == "stderr":
                yield f"stderr: {output.text}"
            if output.output_type == "error" and "raises-exception" not in tags(cell):
                yield f"an error without the tag raises-exception: {output.evalue}"
            if "image/svg+xml" in output.get("data", {}):
                yield "an SVG picture: its text differs from run to run"


@rule
def outputs_name_no_machine(nb):
    device, time = r"\bcuda\b|device=", r"\d\d:\d\d:\d\d|\b20\d\d-\d\d-\d\d\b"
    signs = rf"{device}|{time}|0x[0-9a-f]{{6,}}|/(?:home|usr|tmp|root|Users)/"
    for cell in code_cells(nb):
        for text in output_texts(cell):
            yield from (f"{found!r} in an output" for found in re.findall(signs, text))


@rule
def the_file_is_small(nb):
    size = len(text_of(nb).encode())
    if size > 300_000:
        yield f"{size} bytes"


@rule
def the_set_up_cell_is_the_same_everywhere(nb):
    if code_cells(nb)[0].source != SET_UP.format(address=address()):
        yield "the first code cell is not the set-up cell"


@rule
def code_cells_are_short(nb):
    for cell in code_cells(nb):
        lines = cell.source.count("\n") + 1
        if lines > 20 or not cell.source:
            yield f"{lines} lines: {cell.source[:60]}"


@rule
def an_exercise_is_followed_by_its_check(nb):
    cells = code_cells(nb)
    for cell, following in pairwise([*cells, nbformat.v4.new_code_cell()]):
        if "exercise" in tags(cell):
            defined = re.findall(r"^def (\w+)", cell.source, flags=re.M)
            if len(defined) != 1 or not cell.source.endswith("    raise NotImplementedError"):
                yield f"not one stub that ends with `raise NotImplementedError`: {cell.source}"
            elif "check" not in tags(following) or checked(following)[0] != defined[0]:
                yield f'no code cell, tagged "check", with {defined[0]} = check("...", {defined[0]}) follows'
        elif "raise NotImplementedError" in cell.source:
            yield f'a stub without the tag "exercise": {cell.source}'


@rule
def every_check_names_an_exercise(nb):
    from transformer_edu.exercises import names

    for cell in code_cells(nb):
        if "check" in tags(cell) and checked(cell)[1] not in names():
            yield f"no such exercise: {cell.source}"


@rule
def every_exercise_has_minutes_and_two_hints(nb):
    text = ""
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            text += cell.source + "\n"
            continue
        if "exercise" in tags(cell):
            if not re.search(r"^#.*\bminutes?\b", text, flags=re.M):
                yield f"no heading with minutes above {cell.source[:40]}"
            if text.count("<details>") != 2:
                yield f"{text.count('<details>')} folded hints above {cell.source[:40]}"
        text = ""


@rule
def every_figure_has_words_beside_it(nb):
    for cell in code_cells(nb):
        pictures = sum("image/png" in output.get("data", {}) for output in cell.outputs)
        names = "(Figure|Picture|Viewer|Controls)"  # what stands where no picture can: not seen beside one
        words = [text for text in output_texts(cell) if not re.fullmatch(f"<{names}.*>", text, flags=re.S)]
        if pictures and len(" ".join(words).split()) < 4:
            yield f"no line of text says what is seen in the picture of {cell.source[:60]}"


@rule
def the_lesson_opens_with_title_and_aims(nb):
    first = nb.cells[0].source
    if not first.startswith("# ") or not re.search("after this", first, flags=re.I) or "minutes" not in first:
        yield "the first cell needs a title, what the reader can do after this, and minutes"


@rule
def links_lead_somewhere(nb):
    for cell in prose_cells(nb):
        for target in re.findall(r"\]\(([^)#\s]+)", cell.source):
            if not re.match("https?://", target) and not (ROOT / "notebooks" / target).exists():
                yield f"no file at {target}"


@rule
def prose_is_calm_and_plain(nb):
    waste = r"\b(?:simply|obviously|clearly|trivial|trivially|basically|of course|needless to say)\b"
    for cell in prose_cells(nb):
        text = prose(cell)
        yield from (f"{found!r} says nothing" for found in re.findall(waste, text, flags=re.I))
        yield from (f"an exclamation mark: {found}" for found in re.findall(r"[^\n]{0,30}!", text))
        yield from (f"an emoji: {found}" for found in re.findall("[\U0001f000-\U0001ffff]", text))


@rule
def one_word_for_a_thing(nb):
    others = r"\b(?:attn|emb_dim|hidden_dim|num_heads|nhead|d_head|head_dim)\b"
    for cell in nb.cells:
        own = re.sub(r"\(.*?\)", "", cell.source, flags=re.S)  # an argument may be a library's own
        yield from (f"{found}: the course has its own word" for found in re.findall(others, own))


# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_lesson_keeps_the_rule(lesson, name):
    assert list(RULES[name](read(lesson))) == []


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_lesson_file_is_what_the_tools_write(lesson):
    assert lesson.read_text(encoding="utf-8") == text_of(read(lesson))


def good_notebook():
    """A small lesson that keeps every rule."""
    markdown, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    output = nbformat.v4.new_output
    hints = "<details><summary>Idea</summary>a</details>\n<details><summary>Shapes</summary>b</details>"
    picture = {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure size 640x480 with 1 Axes>"}
    cells = [
        markdown("# Masks\n\nAfter this you can hide it. 30 minutes.\n\n[module](../pyproject.toml)"),
        code(SET_UP.format(address=address())),
        code("1 + 1", outputs=[output("execute_result", data={"text/plain": "2"}, execution_count=2)]),
        code(
            "draw()",
            outputs=[
                output("stream", name="stdout", text="row 2 looks at key 1 only"),
                output("display_data", data=picture),
            ],
        ),
        markdown(f"## Exercise: the causal mask (5 minutes)\n\n{hints}"),
        code("def causal_mask(length):\n    raise NotImplementedError", metadata={"tags": ["exercise"]}),
        code('causal_mask = check("masks.causal_mask", causal_mask)', metadata={"tags": ["check"]}),
        code("1 / 0", metadata={"tags": ["raises-exception"]}),
    ]
    cells[-1].outputs = [output("error", ename="ZeroDivisionError", evalue="division by zero")]
    for count, cell in enumerate((cell for cell in cells if cell.cell_type == "code"), start=1):
        cell.execution_count = count
    return normalise(nbformat.v4.new_notebook(cells=cells))


def name_the_picture(nb, name):
    """Leaves nothing beside a picture but the name that a browser hides behind it."""
    nb.cells[3].outputs.pop(0)
    nb.cells[3].outputs[0].data["text/plain"] = name


SPOILT = [
    ("stored_in_the_one_form", lambda nb: nb.metadata.update(widgets={"state": {}})),
    ("stored_in_the_one_form", lambda nb: nb.cells[1].update(id="8f3a")),
    ("stored_in_the_one_form", lambda nb: nb.cells[1].metadata.update(execution={"start": "12"})),
    ("stored_in_the_one_form", lambda nb: nb.cells[2].update(source="1 + 1  \n")),
    ("stored_in_the_one_form", lambda nb: nb.metadata.kernelspec.update(name="my-kernel")),
    ("run_from_top_to_bottom", lambda nb: nb.cells[2].update(execution_count=None)),
    ("run_from_top_to_bottom", lambda nb: nb.cells[2].update(execution_count=7)),
    ("run_from_top_to_bottom", lambda nb: nb.cells[2].outputs[0].update(execution_count=7)),
    ("every_output_is_compared", lambda nb: nb.cells[2].metadata.update(tags=["nbval-ignore-output"])),
    ("every_output_is_compared", lambda nb: nb.cells[2].update(source="# NBVAL_SKIP\n1 + 1")),
    ("outputs_can_be_compared", lambda nb: nb.cells[3].outputs[0].update(name="stderr")),
    ("outputs_can_be_compared", lambda nb: nb.cells[7].metadata.update(tags=[])),
    ("outputs_can_be_compared", lambda nb: nb.cells[3].outputs[1].data.update({"image/svg+xml": "<svg/>"})),
    ("outputs_name_no_machine", lambda nb: nb.cells[3].outputs[0].update(text="<object at 0x7f3a5c0d>")),
    ("outputs_name_no_machine", lambda nb: nb.cells[2].outputs[0].data.update({"text/plain": "cuda:0"})),
    ("outputs_name_no_machine", lambda nb: nb.cells[7].outputs[0].update(evalue="no file /usr/a.py")),
    ("the_file_is_small", lambda nb: nb.cells[3].outputs[1].data.update({"image/png": "a" * 300_000})),
    ("the_set_up_cell_is_the_same_everywhere", lambda nb: nb.cells[1].update(source="import torch")),
    ("the_set_up_cell_is_the_same_everywhere", lambda nb: nb.cells.insert(1, nb.cells[2])),
    ("code_cells_are_short", lambda nb: nb.cells[2].update(source="a = 1\n" * 21)),
    ("code_cells_are_short", lambda nb: nb.cells[2].update(source="")),
    ("an_exercise_is_followed_by_its_check", lambda nb: nb.cells.pop(6)),
    ("an_exercise_is_followed_by_its_check", lambda nb: nb.cells[6].metadata.update(tags=[])),
    ("an_exercise_is_followed_by_its_check", lambda nb: nb.cells[5].metadata.update(tags=[])),
    ("an_exercise_is_followed_by_its_check", lambda nb: nb.cells[5].update(source="def f(n):\n    pass")),
    ("an_exercise_is_followed_by_its_check", lambda nb: nb.cells[6].update(source='f = check("masks.f", f)')),
    ("every_check_names_an_exercise", lambda nb: nb.cells[6].update(source='f = check("masks.f", f)')),
    ("every_exercise_has_minutes_and_two_hints", lambda nb: nb.cells[4].update(source="## One (5 minutes)")),
    (
        "every_exercise_has_minutes_and_two_hints",
        lambda nb: nb.cells[4].update(source="## Exercise\n<details></details><details></details>"),
    ),
    ("every_figure_has_words_beside_it", lambda nb: nb.cells[3].outputs.pop(0)),
    ("every_figure_has_words_beside_it", lambda nb: name_the_picture(nb, "<Picture: Mask: 2 queries by 2 keys>")),
    ("every_figure_has_words_beside_it", lambda nb: name_the_picture(nb, "<Viewer: 3 pictures. <stop> → a 0.30.>")),
    ("the_lesson_opens_with_title_and_aims", lambda nb: nb.cells.pop(0)),
    ("the_lesson_opens_with_title_and_aims", lambda nb: nb.cells[0].update(source="# Masks\n\n30 minutes")),
    ("links_lead_somewhere", lambda nb: nb.cells[0].update(source="[the module](../no_such_file.py)")),
    ("prose_is_calm_and_plain", lambda nb: nb.cells[0].update(source="Now it works!")),
    ("prose_is_calm_and_plain", lambda nb: nb.cells[0].update(source="Simply add the mask.")),
    ("prose_is_calm_and_plain", lambda nb: nb.cells[0].update(source="Well done \U0001f389")),
    ("one_word_for_a_thing", lambda nb: nb.cells[2].update(source="attn = scores.softmax(-1)")),
]


@pytest.mark.parametrize("name", RULES)
def test_a_good_notebook_keeps_the_rule(name):
    assert list(RULES[name](good_notebook())) == []


@pytest.mark.parametrize(("name", "spoil"), SPOILT, ids=[f"{name}-{i}" for i, (name, _) in enumerate(SPOILT)])
def test_a_spoilt_notebook_breaks_the_rule(name, spoil):
    nb = deepcopy(good_notebook())
    spoil(nb)
    assert list(RULES[name](nb)) != []


def test_what_jupyterlab_saves_about_its_kernel_breaks_no_rule():
    nb = good_notebook()
    nb.metadata.kernelspec.display_name = "Python 3 (ipykernel)"
    nb.metadata.language_info.update(version="3.11.4", file_extension=".py", codemirror_mode={"name": "ipython"})
    assert [sentence for broken in RULES.values() for sentence in broken(nb)] == []
    assert normalise(nb) == good_notebook(), "what is recorded has the stored form again"


def test_every_rule_is_seen_broken():
    assert {name for name, _ in SPOILT} == set(RULES)


def test_code_and_formulas_may_hold_what_prose_may_not():
    nb = good_notebook()
    nb.cells[0].source = "`a != b`, $n!$, ![a picture](../pyproject.toml)"
    assert list(RULES["prose_is_calm_and_plain"](nb)) == []


def test_every_exercise_is_in_one_lesson():
    from transformer_edu.exercises import names

    given = [found for path in LESSONS for cell in code_cells(read(path)) if (found := checked(cell)[1])]
    assert sorted(set(given)) == sorted(names())
