"""What viewers can show is drawn here in every state, without a browser."""

import io
import re
import sys
import time

import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient
from PIL import Image

from transformer_edu import plots, viewers

TOKENS = ["ich", "mag", "Käse", "<b>", "</s>"]
VIEW = "application/vnd.jupyter.widget-view+json"


def weights(*shape, seed=0):
    return torch.softmax(torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 2, dim=-1)


def layers():
    """As `record_attention` gives them: name -> one (batch, heads, query, key) for each call."""
    return {"encoder.0": [weights(1, 3, 5, 5)], "encoder.1": [weights(1, 2, 5, 5, seed=1)]}


def kinds():
    """Masks as functions of the real length and the padded one."""
    return {
        "causal": lambda length, size: torch.ones(size, size, dtype=torch.bool).tril(),
        "padding": lambda length, size: (torch.arange(size) < length)[None, None, None],
    }


def shown(picture):
    return np.asarray(picture.axes[0].images[0].get_array())


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def scores_viewer(**words):
    scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    return viewers.weights_viewer(scores, TOKENS, TOKENS, **words)


VIEWERS = {
    "attention": lambda: viewers.attention_viewer(layers(), TOKENS, TOKENS),
    "mask": lambda: viewers.mask_viewer(kinds(), TOKENS),
    "weights": scores_viewer,
    "probabilities": lambda: scores_viewer(words=("last token", "next token")),
}


# --- what there is to see ---


def test_a_viewer_of_trained_weights_names_no_weight():
    viewer = viewers.attention_viewer({"a": weights(1, 4, 5)}, exact=False)
    assert "Attention map (a, head 0): 4 queries by 5 keys." in repr(viewer)
    assert "Strongest" not in repr(viewer)
    assert "Strongest" in repr(viewers.attention_viewer({"a": weights(1, 4, 5)}))


def test_the_attention_viewer_reaches_every_head_of_every_layer():
    viewer = viewers.attention_viewer(layers(), TOKENS, TOKENS)
    counts = {"encoder.0": 3, "encoder.1": 2}
    assert viewer.states() == [{"layer": n, "head": head} for n, heads in counts.items() for head in range(heads)]
    for state, picture in zip(viewer.states(), viewer.draw_all(), strict=True):
        expected = layers()[state["layer"]][0][0, state["head"]]
        np.testing.assert_allclose(shown(picture), expected)
        assert picture.axes[0].get_title() == f"{state['layer']}, head {state['head']}"


def test_a_list_of_layers_is_numbered_and_a_mapping_gives_each_layer_its_labels():
    viewer = viewers.attention_viewer([weights(2, 4, 5), weights(1, 4, 5)])
    assert [state["layer"] for state in viewer.states()] == [0, 0, 1]
    assert viewer.first.axes[0].get_title() == "layer 0, head 0"
    cross = viewers.attention_viewer(
        {"self": weights(2, 4, 4), "cross": weights(2, 4, 5)},
        TOKENS[:4], {"self": TOKENS[:4], "cross": TOKENS}, mask={"self": torch.ones(4, 4).tril().bool(), "cross": None},
    )  # fmt: skip
    pictures = cross.draw_all()
    assert [len(picture.axes[0].get_xticks()) for picture in pictures] == [4, 4, 5, 5]
    assert "6 of 16 cells are forbidden" in pictures[0].alt_text and "forbidden" not in pictures[2].alt_text


def test_the_attention_viewer_calls_what_is_chosen_by_its_name():
    steps = {1: weights(2, 4, 5), 50: weights(2, 4, 5, seed=1), 400: weights(1, 4, 5, seed=2)}
    viewer = viewers.attention_viewer(steps, control="step")
    assert [state["step"] for state in viewer.states()] == [1, 1, 50, 50, 400]
    assert [picture.axes[0].get_title() for picture in viewer.draw_all()][1:3] == ["step 1, head 1", "step 50, head 0"]
    assert repr(viewer).startswith("<Viewer: 5 pictures by step, head. Attention map (step 1, head 0)")
    assert list(viewer.controls) == ["step", "head"]
    slider = viewer.controls["step"]
    assert (type(slider).__name__, slider.description) == ("SelectionSlider", "step")
    slider.value = 400
    assert "step 400, head 0" in viewer.line
    named = viewers.attention_viewer({"rotary": weights(1, 4, 5)}, control="scheme")
    assert named.first.axes[0].get_title() == "rotary, head 0"


def test_the_mask_viewer_shows_padding_where_the_sentence_has_ended():
    viewer = viewers.mask_viewer(kinds(), TOKENS)
    assert len(viewer.states()) == 10
    picture = viewer.draw(mask="padding", length=2)
    assert shown(picture).tolist() == [[1, 1, 0, 0, 0]] * 5
    names = [tick.get_text() for tick in picture.axes[0].get_xticklabels()]
    assert names == ["ich", "mag", "<pad>", "<pad>", "<pad>"]
    assert viewer.states()[0] == {"mask": "causal", "length": 1}


def test_the_mask_viewer_chooses_among_examples_and_takes_queries_of_their_own():
    viewer = viewers.mask_viewer(kinds(), {"short": TOKENS[:2], "long": TOKENS})
    assert len(viewer.states()) == 2 * (2 + 5)
    cross = viewers.mask_viewer({"cross": kinds()["padding"]}, TOKENS, queries=["a", "b", "c"])
    assert shown(cross.draw(mask="cross", length=4)).tolist() == [[1, 1, 1, 1, 0]] * 3


def test_temperature_divides_the_scores_before_the_softmax():
    scores = torch.randn(4, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    viewer = viewers.weights_viewer(scores, temperatures=[0.5, 2, 8])
    for temperature, picture in zip([0.5, 2, 8], viewer.draw_all(), strict=True):
        np.testing.assert_allclose(shown(picture), torch.softmax(scores / temperature, dim=-1))
    assert viewers.weights_viewer(scores).start == {"temperature": 1.0}


def test_a_query_with_nothing_to_attend_to_has_no_weight_at_any_temperature():
    mask = torch.ones(4, 5, dtype=torch.bool)
    mask[2] = False
    scores = torch.full((4, 5), 3.0)
    scores[0, 0] = -torch.inf
    for picture in viewers.weights_viewer(scores, mask=mask).draw_all():
        assert shown(picture)[2].tolist() == [0.0] * 5
        assert shown(picture)[0].tolist() == [0.0, 0.25, 0.25, 0.25, 0.25]


def test_scores_of_other_things_than_queries_and_keys_are_drawn_as_probabilities():
    scores = torch.randn(4, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    mask = torch.ones(4, 5, dtype=torch.bool)
    mask[1, 3] = mask[2] = False
    options = {"mask": mask, "temperatures": [0.5, 2], "words": ("last token", "next token")}
    viewer = viewers.weights_viewer(scores, TOKENS[:4], TOKENS, **options)
    for temperature, picture in zip([0.5, 2], viewer.draw_all(), strict=True):
        likely = torch.softmax(scores.masked_fill(~mask, -torch.inf) / temperature, dim=-1)
        np.testing.assert_allclose(shown(picture), likely.nan_to_num(0.0))
        (ax,) = picture.axes
        assert (ax.get_ylabel(), ax.get_xlabel()) == ("last token", "next token")
        assert "probability" in [text.get_text() for text in ax.texts]
        start = (
            f"Probabilities (temperature {temperature:g}): 4 by 5 (last token, next token), 6 of them never. Likeliest:"
        )
        assert picture.alt_text.startswith(start)
    assert not re.search("query|quer|key|weight", repr(viewer), flags=re.I)


@pytest.mark.parametrize(
    "make, text",
    [
        (
            lambda: viewers.attention_viewer({"a": weights(2, 3, 4, 5)}),
            "maps['a']: weights must be numbers (heads",
        ),
        (lambda: viewers.attention_viewer({"a": weights(3, 4, 5) * 2}), "maps['a']: weights["),
        (lambda: viewers.attention_viewer({"a": weights(3, 4, 5)}, TOKENS), "queries has 5 labels"),
        (lambda: viewers.attention_viewer({}), "maps must hold the weights of one layer or more, got none"),
        (
            lambda: viewers.attention_viewer([weights(3, 4, 5)], control="head"),
            "control must be a word for what maps names, such as 'step', and not 'head', got 'head'",
        ),
        (lambda: viewers.attention_viewer([weights(3, 4, 5)], control=""), "such as 'step', and not 'head', got ''"),
        (lambda: viewers.attention_viewer([weights(3, 4, 5)], control=3), "such as 'step', and not 'head', got 3"),
        (lambda: viewers.mask_viewer({"a": lambda n, size: torch.ones(n, 3)}, TOKENS), "a mask is bool"),
        (
            lambda: viewers.mask_viewer({"a": lambda n, size: torch.ones(5, 5 + n // 3).bool()}, TOKENS),
            "keys has 5 labels",
        ),
        (
            lambda: viewers.weights_viewer(torch.ones(4, 5), temperatures=[1, 0]),
            "each of temperatures must be above 0, got 0",
        ),
        (lambda: viewers.weights_viewer(torch.ones(4, 5), TOKENS), "queries has 5 labels"),
        (lambda: viewers.weights_viewer(torch.ones(4, 5), TOKENS, words=("place", "token")), "queries has 5 labels"),
        (
            lambda: viewers.weights_viewer(torch.ones(4, 5), words=("token",)),
            "words must say what a row and what a column is, as in ('query', 'key'), got ('token',)",
        ),
        (lambda: viewers.weights_viewer(torch.ones(4, 5), words="ab"), "as in ('query', 'key'), got 'ab'"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_a_control_is_touched(make, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        make()


def test_what_has_no_names_is_refused():
    with pytest.raises(TypeError, match="maps must be a dict from names to weights, or a list of weights, got 3"):
        viewers.attention_viewer(3)
    with pytest.raises(TypeError, match="masks must be a dict from names to functions, got list"):
        viewers.mask_viewer([], TOKENS)


# --- controls ---


def test_a_change_of_a_control_changes_picture_and_caption():
    viewer = viewers.attention_viewer(layers(), TOKENS, TOKENS)
    seen = {}
    for state in viewer.states()[::-1]:  # from a change on: the first picture is finer
        for name, value in state.items():
            viewer.controls[name].value = value
        seen[viewer.png] = viewer.line
        expected = viewer.draw(**state)
        assert np.array_equal(pixels(viewer.png), pixels(expected.quick_png()))
        assert viewer.line == expected.alt_text
    assert len(seen) == 5


def test_a_layer_with_fewer_heads_offers_fewer():
    viewer = viewers.attention_viewer(layers(), TOKENS, TOKENS)
    viewer.controls["head"].value = 2
    viewer.controls["layer"].value = "encoder.1"
    assert [value for _, value in viewer.controls["head"].options] == [0, 1]
    assert viewer.controls["head"].value == 0
    viewer.controls["head"].value = 1
    viewer.controls["layer"].value = "encoder.0"
    assert viewer.controls["head"].value == 1 and len(viewer.controls["head"].options) == 3


def test_words_make_a_menu_numbers_a_slider_and_a_single_value_no_control():
    viewer = viewers.attention_viewer({"only": weights(3, 4, 5)})
    assert type(viewer.controls["layer"]).__name__ == "Dropdown"
    assert viewer.controls["layer"].layout.display == "none"
    assert type(viewer.controls["head"]).__name__ == "SelectionSlider"
    assert viewer.controls["head"].continuous_update is False
    assert viewer.controls["head"].layout.display is None


def test_the_name_of_a_control_is_not_cut():
    for make in VIEWERS.values():
        assert {control.style.description_width for control in make().controls.values()} == {"initial"}


def test_an_error_while_drawing_is_raised_and_shown_and_no_old_picture_stays():
    def draw(head):
        if head == 2:
            raise ValueError("head 2 <is> broken")
        return plots.attention_map(weights(4, 5))

    viewer = viewers.Viewer(draw, {"head": range(3)})
    with pytest.raises(ValueError, match="head 2 <is> broken"):
        viewer.draw_all()
    with pytest.raises(ValueError, match="head 2 <is> broken"):
        viewer.controls["head"].value = 2
    assert viewer.line == "ValueError: head 2 <is> broken"
    assert viewer.png is None
    viewer.controls["head"].value = 1
    assert viewer.png is not None and "broken" not in viewer.line


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda: viewers.attention_viewer({"a": weights(6, 6, 6)}, list("abcdef"), list("ghijkl")), "head"),
        (lambda: viewers.mask_viewer({"causal": kinds()["causal"]}, list("abcdef")), "length"),
        (lambda: viewers.weights_viewer(torch.randn(6, 6)), "temperature"),
        (lambda: viewers.weights_viewer(torch.randn(6, 30), words=("last token", "next token")), "temperature"),
    ],
)
def test_a_change_takes_less_than_a_tenth_of_a_second(make, name):
    viewer = make()
    viewer.widget  # noqa: B018
    taken = []
    for state in viewer.states()[::-1]:
        before = time.process_time()
        viewer.controls[name].value = state[name]
        taken.append(time.process_time() - before)
    assert sorted(taken)[len(taken) // 2] < 0.1, taken


# --- in the notebook ---


@pytest.mark.parametrize("make", VIEWERS.values(), ids=VIEWERS)
def test_a_viewer_has_a_stable_text_and_its_first_picture(make):
    viewer = make()
    (a, metadata), (b, _) = (each._repr_mimebundle_() for each in (viewer, make()))
    assert set(a) == {"text/plain", "image/png"}
    assert a["text/plain"] != "" and "0x" not in a["text/plain"]
    assert a["text/plain"] == b["text/plain"]
    assert viewer.first.alt_text in repr(viewer)
    assert metadata["image/png"]["alt"].split(":")[0] == viewer.first.alt_text.split(":")[0]


def test_a_picture_that_follows_a_control_stands_where_the_first_one_stood():
    viewer = viewers.attention_viewer(layers(), TOKENS, TOKENS)
    first = viewer._repr_mimebundle_()[1]["image/png"]
    viewer.controls["head"].value = 1
    assert pixels(viewer.png).shape[:2] == (first["height"], first["width"])


def shown_by(viewer, monkeypatch):
    seen = []
    monkeypatch.setattr("IPython.display.display", lambda data, **how: seen.append((data, how)))
    viewer._ipython_display_()
    return seen


def test_a_viewer_shows_its_controls_its_picture_and_its_line_apart(monkeypatch):
    viewer = viewers.attention_viewer(layers(), TOKENS, TOKENS)
    controls, picture, line = (data for data, _ in shown_by(viewer, monkeypatch))
    assert set(controls) == {"text/plain", VIEW} and controls[VIEW]["model_id"] == viewer.widget.model_id
    assert controls["text/plain"] == "<Controls: layer, head. They need a running notebook>"
    assert (picture, line) == (viewer._repr_mimebundle_()[0], {"text/plain": plots.picture.lines_of(viewer.line)})


def test_a_control_changes_picture_and_line_in_their_place(monkeypatch):
    viewer = viewers.attention_viewer(layers(), TOKENS, TOKENS)
    monkeypatch.setattr(viewers, "_page", lambda: "page")
    seen = shown_by(viewer, monkeypatch)
    viewer.controls["head"].value = 1
    (_, _), (_, picture), (_, line), *after = seen
    assert [how["display_id"] for _, how in after] == [picture["display_id"], line["display_id"]]
    assert all(how["update"] for _, how in after)
    assert after[0][0]["image/png"] == viewer.png
    assert after[1][0]["text/plain"].startswith("Attention map (encoder.0, head 1)")
    assert viewer.note.value == ""


def test_a_page_opened_anew_is_told_to_run_the_cell_again(monkeypatch):
    viewer = viewers.attention_viewer(layers(), TOKENS, TOKENS)
    monkeypatch.setattr(viewers, "_page", lambda: "one")
    shown_by(viewer, monkeypatch)
    monkeypatch.setattr(viewers, "_page", lambda: "another")
    viewer.controls["head"].value = 1
    assert "run this cell again" in viewer.note.value and viewer.note in viewer.widget.children


def test_without_ipywidgets_the_first_picture_stands_with_a_note(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    viewer = viewers.attention_viewer(layers(), TOKENS, TOKENS)
    note, picture, line = (data for data, _ in shown_by(viewer, monkeypatch))
    assert [set(data) for data in (note, picture, line)] == [
        {"text/plain"},
        {"text/plain", "image/png"},
        {"text/plain"},
    ]
    assert note["text/plain"].startswith("The controls need ipywidgets (python -m pip install ipywidgets)")
    assert len(viewer.draw_all()) == 5


CELLS = [
    "import numpy as np\nfrom transformer_edu import plots, viewers\nweights = np.eye(3)",
    "plots.attention_map(weights)",
    "for head in range(25):\n    plots.attention_map(weights[:1], title=f'head {head}').show()",
    "viewers.attention_viewer({'a': weights[None]})",
    "viewers.attention_viewer({'a': np.stack([weights, weights.T, 1 - weights])}).controls['head'].value = 2",
    "viewer = viewers.weights_viewer(weights)\nviewer",
    "viewer.controls['temperature'].value = 10",
]


@pytest.fixture(scope="module")
def notebook():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return notebook


def test_in_a_kernel_every_picture_is_shown_once_with_its_line(notebook):
    _, single, many, viewer, *_ = (cell.outputs for cell in notebook.cells)
    assert [set(output.data) for output in single] == [{"text/plain", "image/png"}, {"text/plain"}]
    assert single[1].data["text/plain"] == (
        "Attention map: 3 queries by 3 keys. Strongest key of each query: 0 → 0 1.00, 1 → 1 1.00, 2 → 2 1.00."
    )
    assert [output.output_type for output in many] == ["display_data"] * 50  # no stream: nothing was warned of
    assert sum("image/png" in output.data for output in many) == 25
    assert [set(output.data) for output in viewer] == [
        {"text/plain", VIEW},
        {"text/plain", "image/png"},
        {"text/plain"},
    ]


def test_in_a_kernel_a_control_draws_without_an_output_of_its_own(notebook):
    assert notebook.cells[4].outputs == []


def test_in_a_kernel_a_control_changes_the_picture_and_the_line_of_its_viewer(notebook):
    (_, picture, line), after = notebook.cells[5].outputs, notebook.cells[6].outputs
    assert after == []
    assert "(temperature 10)" in picture.data["text/plain"] and "image/png" in picture.data
    assert line.data["text/plain"].startswith("Attention map (temperature 10): 3 queries by 3 keys.")


# --- what no viewer can be made of ---


def a_map(**state):
    return plots.attention_map(weights(4, 5))


@pytest.mark.parametrize(
    ("kind", "make", "text"),
    [
        (
            ValueError,
            lambda: viewers.attention_viewer([weights(3, 4, 5)], {1: TOKENS}),
            "queries must have an entry for e",
        ),
        (ValueError, lambda: viewers.attention_viewer({"a": weights(3, 4, 5)}, mask={}), "got none for 'a'"),
        (ValueError, lambda: viewers.mask_viewer({}, TOKENS), "masks must hold one entry or more, got none"),
        (
            TypeError,
            lambda: viewers.mask_viewer({"a": torch.ones(5, 5).bool()}, TOKENS),
            "masks['a'] must be a function,",
        ),
        (ValueError, lambda: viewers.mask_viewer(kinds(), "abc"), "tokens is one string, 'abc': pass a list of tokens"),
        (
            ValueError,
            lambda: viewers.mask_viewer(kinds(), {"x": "abc"}),
            "tokens['x'] is one string, 'abc': pass a list",
        ),
        (ValueError, lambda: viewers.mask_viewer(kinds(), []), "tokens must hold one token or more, got none"),
        (ValueError, lambda: viewers.mask_viewer(kinds(), {}), "tokens must hold one entry or more, got none"),
        (TypeError, lambda: viewers.mask_viewer(kinds(), 5), "tokens must be a list of tokens, got 5"),
        (ValueError, lambda: viewers.mask_viewer(kinds(), TOKENS, "abc"), "queries is one string, 'abc'"),
        (
            TypeError,
            lambda: viewers.weights_viewer(torch.ones(4, 5), temperatures=1.0),
            "temperatures must be a list of",
        ),
        (
            TypeError,
            lambda: viewers.weights_viewer(torch.ones(4, 5), temperatures=["1"]),
            "each of temperatures must be a",
        ),
        (
            ValueError,
            lambda: viewers.weights_viewer(torch.ones(4, 5), temperatures=[]),
            "temperatures must hold one numbe",
        ),
        (
            ValueError,
            lambda: viewers.weights_viewer(torch.ones(4, 5), temperatures=[np.nan]),
            "must be above 0, got nan",
        ),
        (
            TypeError,
            lambda: viewers.Viewer(a_map(), {"n": [1, 2]}),
            "draw must be a function, draw(**state) -> Picture",
        ),
        (
            TypeError,
            lambda: viewers.Viewer(lambda n: None, {"n": [1, 2]}),
            "what draw returns must be a Picture, got None",
        ),
        (TypeError, lambda: viewers.Viewer(a_map, [1, 2]), "choices must be a dict from names to values, got list"),
        (
            TypeError,
            lambda: viewers.Viewer(a_map, {"n": "ab"}),
            "choices['n'] must be a list of values, got str ('ab')",
        ),
        (ValueError, lambda: viewers.Viewer(a_map, {"n": []}), "choices['n'] must hold one value or more, got none"),
        (TypeError, lambda: viewers.Viewer(a_map, {"n": [1]}, start=[1]), "start must be a dict from names to values"),
        (
            ValueError,
            lambda: viewers.Viewer(a_map, {"n": [1]}, start={"m": 1}),
            "start must name controls, 'n', got 'm'",
        ),
        (
            TypeError,
            lambda: viewers.Viewer(a_map, {"n": [1]}, quick=3),
            "quick must be a function, quick(**state) -> Pic",
        ),
    ],
)
def test_what_no_viewer_can_be_made_of_is_an_error(kind, make, text):
    with pytest.raises(kind, match=re.escape(text)):
        make()


def test_temperatures_may_be_a_tensor():
    seen = viewers.weights_viewer(torch.ones(4, 5), temperatures=torch.tensor([0.5, 1.0]))
    assert seen.states() == [{"temperature": 0.5}, {"temperature": 1.0}]
