"""What the pictures show, asserted on their arrays and artists; how they look was judged by eye."""

import functools
import io
import re
import warnings

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from PIL import Image

from transformer_edu import plots
from transformer_edu.plots.drawing import WEIGHTS, style
from transformer_edu.plots.picture import DPI
from transformer_edu.plots.values import number, short, spelled

QUERIES = ["ich", "mag", "Käse", "</s>"]
KEYS = ["i", "like", "_cheese_", "$very$", "much"]
AWKWARD = [
    "▁Donaudampfschiff",
    "Übergrößenträger",
    "中文",
    "$x^2$",
    " lead",
    "tab\there",
    "internationalisation",
]


def softmax(scores):
    parts = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return parts / parts.sum(axis=-1, keepdims=True)


def some_weights(*shape):
    return softmax(np.random.default_rng(0).normal(size=shape) * 2)


def some_mask():
    mask = np.ones((4, 5), dtype=bool)
    mask[0, 2:] = mask[1, 3] = mask[3] = False
    return mask


def hatched(ax):
    """The cells under a hatched rectangle of the panel, as a bool array."""
    cells = np.zeros(ax.images[0].get_array().shape, dtype=bool)
    for patch in ax.patches:
        if patch.get_hatch():
            left, top = round(patch.get_x() + 0.5), round(patch.get_y() + 0.5)
            cells[top : top + round(patch.get_height()), left : left + round(patch.get_width())] = True
    return cells


def framed(ax):
    """The cells in a thick frame."""
    return {
        (round(patch.get_y() + 0.5), round(patch.get_x() + 0.5)) for patch in ax.patches if patch.get_linewidth() > 2
    }


def labels(axis):
    return [tick.get_text() for tick in axis.get_ticklabels()]


def shown(ax):
    return np.ma.getdata(ax.images[0].get_array())


def numbers_in(ax):
    return {(int(t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in ax.texts if cell_text(t)}


def cell_text(text):
    return text.get_visible() and not hasattr(text, "xycoords")


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


# --- attention maps ---


def test_each_weight_stands_in_the_row_of_its_query_and_the_column_of_its_key():
    weights = some_weights(4, 5)
    (ax,) = plots.attention_map(weights, QUERIES, KEYS).axes
    np.testing.assert_array_equal(shown(ax), weights)
    assert ax.images[0].origin == "upper"
    assert ax.get_xlim() == (-0.5, 4.5)
    assert ax.get_ylim() == (3.5, -0.5)  # query 0 at the top
    assert numbers_in(ax)[1, 3] == f"{weights[1, 3]:.2f}"


def test_tokens_label_both_sides_in_their_order_and_the_axes_are_named():
    (ax,) = plots.attention_map(some_weights(4, 5), QUERIES, KEYS).axes
    assert labels(ax.yaxis) == QUERIES
    assert labels(ax.xaxis) == KEYS
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("query", "key")
    assert ax.xaxis.get_ticks_position() == "top"
    assert list(ax.get_yticks()) == [0, 1, 2, 3]


def test_transposed_weights_make_another_picture():
    weights = some_weights(5, 5)
    a, b = (plots.attention_map(w, KEYS, KEYS) for w in (weights, weights.T))
    assert not np.array_equal(shown(a.axes[0]), shown(b.axes[0]))
    assert a.png() != b.png()
    assert a.alt_text != b.alt_text


@pytest.mark.parametrize("factor", [1e-6, 0.3, 1.0])
def test_the_scale_is_0_to_1_whatever_the_weights(factor):
    (ax,) = plots.attention_map(some_weights(4, 5) * factor).axes
    assert ax.images[0].get_clim() == (0, 1)


def test_colours_go_from_light_to_dark_so_that_grey_print_keeps_the_order():
    grey = matplotlib.colormaps[WEIGHTS.colours](np.linspace(0, 1, 50))[:, :3] @ (0.299, 0.587, 0.114)
    assert (np.diff(grey) < 0).all()
    assert grey[0] > 0.9 and grey[-1] < 0.25


def test_exactly_the_forbidden_cells_are_hatched():
    mask = some_mask()
    (ax,) = plots.attention_map(some_weights(4, 5) * mask, QUERIES, KEYS, mask=mask).axes
    np.testing.assert_array_equal(hatched(ax), ~mask)
    assert set(numbers_in(ax)) == {tuple(place) for place in np.argwhere(mask)}


def test_a_forbidden_cell_that_holds_a_weight_shows_it_and_the_line_says_so():
    mask = some_mask()
    picture = plots.attention_map(some_weights(4, 5), QUERIES, KEYS, mask=mask)
    assert len(numbers_in(picture.axes[0])) == 20
    assert "9 of 20 cells are forbidden, yet 9 of them hold a weight" in picture.alt_text


def test_without_a_mask_nothing_is_hatched():
    assert not hatched(plots.attention_map(some_weights(4, 5)).axes[0]).any()


def test_a_padding_mask_of_one_example_fits_as_it_is():
    mask = torch.tensor([[[[True, True, True, False, False]]]])
    (ax,) = plots.attention_map(some_weights(4, 5), mask=mask).axes
    np.testing.assert_array_equal(hatched(ax), np.tile([False, False, False, True, True], (4, 1)))


@pytest.mark.parametrize(
    "mask, text",
    [
        (np.ones((4, 5)), "a mask is bool, True = may attend; this one, of shape (4, 5), is float64"),
        (np.ones((5, 4), bool), "a mask of shape (5, 4) does not broadcast to weights of shape (4, 5)"),
        (np.ones((2, 4, 5), bool), "a mask of shape (2, 4, 5) does not broadcast to weights of shape (4, 5)"),
    ],
)
def test_a_mask_that_is_none_is_refused(mask, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        plots.attention_map(some_weights(4, 5), mask=mask)


@pytest.mark.parametrize(
    "queries, keys, text",
    [
        (QUERIES[:3], KEYS, "queries has 3 labels, but shape (4, 5) (query, key) has 4 queries. Each"),
        (QUERIES, KEYS[:2], "keys has 2 labels, but shape (4, 5) (query, key) has 5 keys. Each needs"),
        (KEYS, KEYS, "(query, key) has 4 queries. If these are the last 4 of 5 tokens, pass queries[-4:]"),
        (KEYS, QUERIES, "The two lists look exchanged: queries label the rows, keys the columns"),
        ([QUERIES], KEYS, "It is a list within a list: pass queries[0]"),
        (QUERIES, [KEYS], "It is a list within a list: pass keys[0]"),
        ("ich mag", KEYS, "queries is one string, 'ich mag': pass a list of tokens, for example 'ich"),
    ],
)  # fmt: skip
def test_labels_that_do_not_fit_are_refused_with_both_numbers_and_the_way_out(queries, keys, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        plots.attention_map(some_weights(4, 5), queries, keys)


def test_what_are_no_labels_is_refused():
    with pytest.raises(TypeError, match="keys must be a list of tokens, got 5: leave it out for positions"):
        plots.attention_map(some_weights(4, 5), QUERIES, 5)
    with pytest.raises(ValueError, match="queries has 1 label, but"):
        plots.attention_map(some_weights(4, 5), ["ich"])


def test_labels_may_be_ids_and_positions_stand_where_none_are_given():
    (ax,) = plots.attention_map(some_weights(4, 5), torch.tensor([7, 8, 9, 2])).axes
    assert labels(ax.yaxis) == ["7", "8", "9", "2"]
    assert labels(ax.xaxis) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    "weights, text",
    [
        (np.ones((1, 2, 4, 5)), "weights must be numbers (query, key), got shape (1, 2, 4, 5) of float64"),
        (np.ones(5), "weights must be numbers (query, key), got shape (5,) of float64"),
        (np.ones((0, 5)), "weights must be numbers (query, key), got shape (0, 5) of float64"),
        ([[1.0, 0.0], [1.0]], "the lists of weights are not all of one length: each row needs as many numbers as the"),
        ([["a"]], "weights must be numbers (query, key), got shape (1, 1) of <U1"),
        ([[0.5, 0.5], [np.nan, 0.5]], "weights[1, 0] is nan, not finite. A row with nothing to attend to has "
                                      "weights 0"),
        ([[0.5, 2.5]], "weights[0, 1] is 2.5, not between 0 and 1. Are these the scores, before"),
        ([[-0.25, 1.0]], "weights[0, 0] is -0.25, not between 0 and 1"),
    ],
)  # fmt: skip
def test_what_is_no_weight_is_refused(weights, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        plots.attention_map(weights)


@pytest.mark.parametrize(
    "make",
    [
        lambda w: torch.tensor(w, requires_grad=True),
        lambda w: torch.tensor(w, dtype=torch.float32),
        lambda w: torch.tensor(w).to(torch.bfloat16).requires_grad_(),
        lambda w: torch.tensor(w).half().T.contiguous().T,
        lambda w: w.tolist(),
        lambda w: list(torch.tensor(w, requires_grad=True)),
        lambda w: [list(row) for row in torch.tensor(w)],
    ],
)
def test_tensors_of_every_kind_and_lists_are_drawn(make):
    weights = some_weights(4, 5)
    (ax,) = plots.attention_map(make(weights), QUERIES, KEYS).axes
    np.testing.assert_allclose(shown(ax), weights, atol=4e-3)


def test_numbers_stand_in_small_matrices_only():
    assert len(numbers_in(plots.attention_map(some_weights(8, 8)).axes[0])) == 64
    assert not numbers_in(plots.attention_map(some_weights(8, 9)).axes[0])


def test_many_tokens_get_every_second_label():
    (ax,) = plots.attention_map(some_weights(64, 64)).axes
    assert labels(ax.xaxis)[:3] == ["0", "2", "4"]
    assert list(ax.get_xticks()[:3]) == [0, 2, 4]


def test_a_map_is_drawn_into_given_axes_and_replaces_what_was_there():
    figure, axes = plt.subplots(1, 2)
    for weights in (some_weights(4, 5), some_weights(3, 2)):
        picture = plots.attention_map(weights, ax=axes[1])
    assert picture.figure is figure and picture.axes == (axes[1],)
    assert len(axes[1].images) == 1 and shown(axes[1]).shape == (3, 2)
    assert not axes[0].images
    plt.close(figure)


def test_filling_a_map_again_is_the_same_as_drawing_it_anew():
    old, new = some_weights(4, 5), some_weights(6, 5)[2:]
    mask = some_mask()
    picture = plots.attention_map(new, QUERIES, KEYS)
    picture.quick_png()
    fresh = plots.attention_map(old * mask, QUERIES, KEYS, mask, title="t")
    picture.refill(old * mask, mask, "t")
    assert np.array_equal(pixels(picture.quick_png()), pixels(fresh.quick_png()))
    assert np.array_equal(pixels(picture.png()), pixels(fresh.png()))
    assert picture.alt_text == fresh.alt_text
    with pytest.raises(ValueError, match=re.escape("the picture has shape (4, 5) (query, key), the weights (3, 5)")):
        picture.refill(old[:3])


# --- many heads ---


def test_every_head_has_a_panel_and_all_share_one_scale():
    weights = some_weights(3, 4, 5)
    mask = some_mask()
    picture = plots.head_grid(weights, QUERIES, KEYS, mask=mask, titles=["a", "b", "c"])
    assert len(picture.axes) == 3
    for ax, one, title in zip(picture.axes, weights, "abc", strict=True):
        np.testing.assert_array_equal(shown(ax), one)
        np.testing.assert_array_equal(hatched(ax), ~mask)
        assert ax.images[0].get_clim() == (0, 1)
        assert ax.get_title() == title
        assert labels(ax.xaxis) == KEYS
    assert [labels(ax.yaxis) for ax in picture.axes] == [QUERIES, [], []]


def test_sixteen_heads_stand_four_by_four_with_labels_outside():
    picture = plots.head_grid(some_weights(16, 4, 5), QUERIES, KEYS)
    corners = {(round(ax.get_position().x0, 3), round(ax.get_position().y0, 3)) for ax in picture.axes}
    assert len({x for x, _ in corners}) == len({y for _, y in corners}) == 4
    assert [bool(labels(ax.xaxis)) for ax in picture.axes] == [True] * 4 + [False] * 12
    assert picture.axes[13].get_title() == "head 13"
    assert picture.figure.get_size_inches()[0] < 10


def test_a_mask_may_differ_from_head_to_head():
    mask = np.ones((2, 4, 5), bool)
    mask[1, 0, 4] = False
    picture = plots.head_grid(some_weights(2, 4, 5), mask=mask)
    assert [int(hatched(ax).sum()) for ax in picture.axes] == [0, 1]


def test_a_head_grid_refuses_one_matrix_and_a_wrong_number_of_titles():
    with pytest.raises(ValueError, match=re.escape("numbers (heads, query, key), got shape (4, 5)")):
        plots.head_grid(some_weights(4, 5))
    with pytest.raises(ValueError, match=re.escape("2 titles for 3 heads (weights of shape (3, 4, 5)): give one each")):
        plots.head_grid(some_weights(3, 4, 5), titles=["a", "b"])


# --- masks ---


def test_a_mask_picture_fills_what_is_allowed_hatches_what_is_not_and_says_which_is_which():
    mask = some_mask()
    picture = plots.mask_picture(torch.tensor(mask)[None, None], QUERIES, KEYS)
    (ax,) = picture.axes
    np.testing.assert_array_equal(shown(ax), mask)
    np.testing.assert_array_equal(hatched(ax), ~mask)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "may attend (True)",
        "may not (False)",
    ]
    light, dark = (ax.images[0].to_rgba(float(value))[:3] @ np.array([0.299, 0.587, 0.114]) for value in (0, 1))
    assert light - dark > 0.5


def test_one_row_for_all_queries_is_repeated_for_each():
    (ax,) = plots.mask_picture(torch.tensor([[[[True, True, False, False, False]]]]), QUERIES, KEYS).axes
    assert shown(ax).tolist() == [[1, 1, 0, 0, 0]] * 4
    assert plots.mask_picture(np.ones((1, 5), bool)).axes[0].images[0].get_array().shape == (1, 5)


@pytest.mark.parametrize(
    "mask, text",
    [
        (np.ones((2, 1, 4, 5), bool), "one mask (query, key) is drawn, this one has shape (2, 1, 4, 5)"),
        (np.ones(5, bool), "this one has shape (5,)"),
        (np.ones((4, 5), int), "a mask is bool, True = may attend; this one, of shape (4, 5), is int64"),
    ],
)  # fmt: skip
def test_what_is_no_single_mask_is_refused(mask, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        plots.mask_picture(mask)


# --- the product ---


def product(**changes):
    rng = np.random.default_rng(1)
    scores, value = rng.normal(size=(4, 5)) * 3, rng.normal(size=(5, 3))
    scores[0, 3:] = -np.inf
    arrays = {"scores": scores, "weights": softmax(scores), "value": value, "output": softmax(scores) @ value}
    return arrays | changes


def test_the_product_shows_four_matrices_with_their_operators():
    arrays = product()
    picture = plots.product_picture(**arrays, queries=QUERIES, keys=KEYS)
    for ax, (name, array) in zip(picture.axes, arrays.items(), strict=True):
        np.testing.assert_array_equal(np.ma.filled(ax.images[0].get_array(), -np.inf), array)
        assert ax.get_title() == f"{name} {array.shape}"
    assert [text.get_text() for text in picture.figure.texts] == ["", "softmax\n→", "@", "="]
    assert labels(picture.axes[0].xaxis) == labels(picture.axes[1].xaxis) == labels(picture.axes[2].yaxis) == KEYS
    assert labels(picture.axes[0].yaxis) == QUERIES
    assert [ax.get_xlabel() for ax in picture.axes] == ["key", "key", "d_v", "d_v"]


def test_scores_and_values_have_0_in_the_middle_and_weights_go_from_0_to_1():
    scores, weights, value, output = (ax.images[0].get_clim() for ax in plots.product_picture(**product()).axes)
    finite = product()["scores"][np.isfinite(product()["scores"])]
    assert scores == (-abs(finite).max(), abs(finite).max())
    assert weights == (0, 1)
    assert value == output == (-abs(product()["value"]).max(), abs(product()["value"]).max())


def test_blocked_scores_are_hatched_in_scores_and_weights_alike():
    axes = plots.product_picture(**product()).axes
    expected = np.isneginf(product()["scores"])
    for ax in axes[:2]:
        np.testing.assert_array_equal(hatched(ax), expected)
    assert not hatched(axes[2]).any() and not hatched(axes[3]).any()
    assert (0, 3) not in numbers_in(axes[0]) and numbers_in(axes[0])[0, 0] == number(product()["scores"][0, 0])


@pytest.mark.parametrize(
    "changes, text",
    [
        ({"weights": np.ones((5, 4)) / 4}, "weights has shape (5, 4); with scores (4, 5) (query, key) and "
                                           "value (5, 3) (key, d_v) it must be (4, 5)"),
        ({"value": np.ones((4, 3))}, "value has shape (4, 3)"),
        ({"output": np.ones((4, 5))}, "output has shape (4, 5)"),
        ({"value": np.full((5, 3), np.nan)}, "value is not finite in 15 of 15 places"),
        ({"scores": np.full((4, 5), np.inf)}, "scores is not finite in 20 of 20 places"),
        ({"scores": np.ones((1, 4, 5))}, "scores must be one matrix of numbers, got shape (1, 4, 5)"),
    ],
)  # fmt: skip
def test_matrices_that_do_not_belong_together_are_refused(changes, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        plots.product_picture(**product(**changes))


def test_signs_are_told_without_numbers_too():
    rng = np.random.default_rng(1)
    scores, value = rng.normal(size=(9, 9)), rng.normal(size=(9, 2))
    (ax, *_) = plots.product_picture(scores, softmax(scores), value, softmax(scores) @ value).axes
    (dashes,) = [c for c in ax.collections if hasattr(c, "get_offsets") and len(c.get_offsets()) > 1]
    seen = {(int(y), int(x)) for x, y in dashes.get_offsets()}
    assert seen == {tuple(place) for place in np.argwhere(scores < -0.02 * abs(scores).max())}


# --- differences ---


def test_given_and_expected_stand_side_by_side_and_the_first_difference_is_framed_in_all():
    expected = np.tril(np.ones((4, 5), bool))
    given = expected.copy()
    given[1, 4] = given[3, 0] = not given[1, 4]
    given[3, 0] = False
    picture = plots.difference_picture(given, torch.tensor(expected), (1, 4), title="causal_mask")
    assert [ax.get_title() for ax in picture.axes] == [
        "what you gave",
        "what was expected",
        "where they differ",
    ]
    for ax, array in zip(picture.axes, (given, expected, given != expected), strict=True):
        np.testing.assert_array_equal(shown(ax), array)
        assert framed(ax) == {(1, 4)}
        assert (ax.get_ylabel(), ax.get_xlabel()) == ("query", "key")
    assert numbers_in(picture.axes[0])[1, 4] == "T" and numbers_in(picture.axes[1])[1, 4] == "F"
    assert numbers_in(picture.axes[2]) == {(1, 4): "≠", (3, 0): "≠"}
    assert picture.alt_text == (
        "Difference (causal_mask): 2 of 20 entries, first at query 1, key 4: given True, expected False."
    )


@pytest.mark.parametrize("given", [np.arange(3), [0, 1, 2], 3, [[0.5]], [[True]], np.arange(6).reshape(2, 3) / 7])
def test_rows_numbers_and_matrices_of_every_kind_are_compared(given):
    given = np.asarray(given)
    expected = ~given if given.dtype == bool else given + 1
    picture = plots.difference_picture(given, expected)
    assert len(picture.axes) == 3
    np.testing.assert_array_equal(shown(picture.axes[0]), np.atleast_2d(given))
    assert framed(picture.axes[0]) == {(0, 0)}


def test_a_row_needs_one_index_and_one_name():
    picture = plots.difference_picture([1, 2, 3], [1, 2, 4], (2,), axes=("batch",))
    assert framed(picture.axes[1]) == {(0, 2)}
    assert picture.axes[0].get_xlabel() == "batch"
    assert picture.alt_text == "Difference: 1 of 3 entries, first at batch 2: given 3, expected 4."


def test_arrays_of_two_shapes_stand_alone_with_their_shapes():
    picture = plots.difference_picture(np.zeros((3, 4)), np.zeros((4, 3)))
    assert [ax.get_title() for ax in picture.axes] == ["what you gave: (3, 4)", "what was expected: (4, 3)"]
    assert picture.alt_text == "Difference: the shape given is (3, 4), the shape expected is (4, 3)."
    assert len(plots.difference_picture(np.zeros(4), np.zeros((4, 3))).axes) == 2


def test_nan_is_hatched_and_counts_as_a_difference():
    given = np.array([[0.5, np.nan], [0.25, 0.75]])
    picture = plots.difference_picture(given, np.nan_to_num(given))
    np.testing.assert_array_equal(hatched(picture.axes[0]), np.isnan(given))
    assert not hatched(picture.axes[1]).any()
    assert "1 of 4 entries, first at query 0, key 1: given nan, expected 0.00" in picture.alt_text
    assert plots.difference_picture(given, given).alt_text == "Difference: none, given and expected agree."


def test_a_small_difference_is_written_with_enough_digits():
    given = np.array([[0.3337, 0.1]])
    picture = plots.difference_picture(given, given - [[0.001, 0]])
    assert (numbers_in(picture.axes[0])[0, 0], numbers_in(picture.axes[1])[0, 0]) == ("0.334", "0.333")


def test_equal_arrays_have_no_frame():
    picture = plots.difference_picture([[1.0, 2.0]], [[1.0, 2.00001]])
    assert picture.alt_text == "Difference: none, given and expected agree."
    assert all(framed(ax) == set() for ax in picture.axes)
    assert framed(plots.difference_picture([[1.0, 2.0]], [[1.0, 2.00001]], tolerance=1e-6).axes[0]) == {(0, 1)}


@pytest.mark.parametrize("given", [np.zeros((2, 3, 4)), np.zeros((0, 3)), np.array([["a"]]), np.zeros((2, 2), complex)])
def test_what_cannot_be_compared_in_a_picture_is_refused(given):
    with pytest.raises(ValueError, match="one matrix of numbers is drawn"):
        plots.difference_picture(given, np.zeros((2, 2)))


def test_an_index_outside_is_refused():
    with pytest.raises(ValueError, match=re.escape("where is (2, 0), outside of the shape (1, 2)")):
        plots.difference_picture([[1, 2]], [[1, 3]], (2, 0))


# --- lines ---


def test_a_line_is_the_mean_over_seeds_in_a_band_from_least_to_most():
    runs = np.array([[1.0, 2.0, 6.0], [3.0, 2.0, 0.0], [2.0, 2.0, 3.0]])
    picture = plots.lines([1, 4, 16], {"a": runs, "b": torch.tensor([1.0, 1.0, 2.0])}, "d_k", "loss", log="x")
    (ax,) = picture.axes
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [2, 2, 3])
    (band,) = ax.collections
    corners = {tuple(point) for point in band.get_paths()[0].vertices}
    assert {(1.0, 1.0), (1.0, 3.0), (16.0, 0.0), (16.0, 6.0)} <= corners
    assert ax.get_xscale() == "log" and labels(ax.xaxis) == ["1", "4", "16"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("d_k", "loss")
    assert picture.alt_text == (
        "loss against d_k: 2 lines, mean and range over 3 seeds. From d_k 1 to 16: a 2.00 to 3.00; b 1.00 to 2.00."
    )


def test_lines_are_told_apart_without_colour():
    (ax,) = plots.lines([1, 2], {f"_{i}$": [i, i] for i in range(8)}, "step", "loss").axes
    looks = {(line.get_marker(), line.get_linestyle()) for line in ax.lines}
    assert len(looks) == len({line.get_marker() for line in ax.lines}) == 8
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [f"_{i}$" for i in range(8)]


@pytest.mark.parametrize(
    "x, series, log, text",
    [
        (
            [1, 2],
            {"a": [1, 2, 3]},
            "",
            "'a' has shape (1, 3), x has 2 points: give (points,) or (seeds, points)",
        ),
        ([1, 2], {}, "", "at least one series"),
        ([0, 2], {"a": [1, 2]}, "x", "log='x': the x axis has numbers that are not positive"),
        ([1, 2], {"a": [1, -2]}, "xy", "log='xy': the y axis has numbers that are not positive"),
    ],
)
def test_series_that_cannot_be_drawn_are_refused(x, series, log, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        plots.lines(x, series, "step", "loss", log=log)


def test_series_need_names():
    with pytest.raises(TypeError, match="series must be a dict from names to numbers, got list"):
        plots.lines([1, 2], [3, 4], "step", "loss")


# --- words ---


def test_the_line_beside_a_map_tells_each_querys_strongest_key():
    weights = [[1.0, 0.0, 0.0], [0.125, 0.875, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.0, 0.0, 0.0]]
    picture = plots.attention_map(weights, QUERIES, ["the", "cat", "sat"], title="head 2")
    assert picture.alt_text == (
        "Attention map (head 2): 4 queries by 3 keys. Strongest key of each query: "
        "ich → the 1.00, mag → cat 0.88, Käse → 3 keys alike 0.33, </s> → nothing."
    )


def test_the_line_beside_a_mask_lists_what_each_query_may_see():
    assert plots.mask_picture(some_mask(), QUERIES, list("abcde")).alt_text == (
        "Mask: 4 queries by 5 keys, 11 of 20 cells allowed. ich → a, b; mag → a, b, c, e; Käse → every key; "
        "</s> → nothing."
    )


def test_the_line_beside_many_heads_stays_short():
    words = plots.head_grid(some_weights(16, 12, 12)).alt_text
    assert words.startswith("Attention maps: 16 heads, 12 queries by 12 keys. head 0: ")
    assert len(words) < 500
    assert "\n" not in plots.attention_map(some_weights(2, 2), ["a\nb", "c"], title="two\nlines").alt_text


def test_numbers_are_rounded_so_that_the_last_bit_of_a_device_changes_nothing():
    assert number(0.125) == number(0.125 - 1e-7) == number(0.125 + 1e-7) == "0.13"
    assert number(-0.004) == "0.00" and number(-1.5, 1) == "−1.5" and number(float("nan")) == "nan"
    assert [short(x) for x in (0.0, 0.001234, 12.34, 1234.5, float("inf"))] == [
        "0",
        "0.00123",
        "12.3",
        "1235",
        "inf",
    ]


def test_labels_are_spelled_on_one_line_and_cut_in_the_middle():
    assert spelled("a\n\tb") == "a\\n\\tb"
    assert spelled(" the ") == "␣the␣" and spelled("   ") == "␣␣␣"
    assert spelled("Donaudampfschifffahrt") == "Donaudam…fffahrt"
    assert spelled(7) == "7" and spelled("") == ""


def test_strange_tokens_are_drawn_without_a_warning_and_without_formulas():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = plots.attention_map(some_weights(7, 7), AWKWARD, AWKWARD, title="$not_math$")
        picture.png()
    (ax,) = picture.axes
    assert labels(ax.yaxis)[3] == "$x^2$" and not ax.get_yticklabels()[3].get_parse_math()
    assert not ax.title.get_parse_math()


# --- values of either sign ---


def some_values(*shape):
    return np.random.default_rng(1).normal(size=shape)


def test_each_value_stands_in_its_row_and_column_with_0_in_the_middle_of_the_scale():
    values = some_values(3, 4)
    (ax,) = plots.value_map(torch.tensor(values), list("abc"), words=("token", "number")).axes
    np.testing.assert_array_equal(shown(ax), values)
    low, high = ax.images[0].get_clim()
    assert low == -high and high == np.abs(values).max()
    assert labels(ax.yaxis) == list("abc") and labels(ax.xaxis) == ["0", "1", "2", "3"]
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("token", "number")
    assert numbers_in(ax)[1, 2] == number(values[1, 2])


def test_the_scale_of_values_can_be_set_and_is_one_for_tables_side_by_side():
    assert plots.value_map(some_values(2, 3), reach=2).axes[0].images[0].get_clim() == (-2, 2)
    small, large = some_values(2, 3), 10 * some_values(2, 3)
    axes = plots.value_map({"small": small, "large": large}).axes
    assert {ax.images[0].get_clim()[1] for ax in axes} == {np.abs(large).max()}
    assert [ax.get_title() for ax in axes] == ["small", "large"]
    np.testing.assert_array_equal(shown(axes[1]), large)


def test_values_that_a_mask_has_blocked_are_hatched_and_not_counted():
    values, mask = some_values(3, 3), np.tri(3, dtype=bool)
    blocked = np.where(mask, values, -np.inf)
    picture = plots.value_map({"scores": blocked, "other": values})
    first, second = picture.axes
    np.testing.assert_array_equal(hatched(first), ~mask)
    assert not hatched(second).any()
    (alone,) = plots.value_map(blocked).axes
    assert alone.images[0].get_clim()[1] == np.abs(values[mask]).max()
    assert set(numbers_in(alone)) == set(zip(*np.nonzero(mask), strict=True))
    least = number(values[mask].min())
    assert f"from {least} at" in plots.value_map(blocked).alt_text
    assert plots.value_map([[-np.inf]]).alt_text == "Values: 1 by 1 (row, column)."


def test_the_line_beside_values_says_where_the_least_and_the_largest_stand():
    values = np.array([[0.0, -2.0, 1.0], [3.0, 0.5, -1.0]])
    assert plots.value_map(values, words=("position", "column"), title="table").alt_text == (
        "Values (table): 2 by 3 (position, column), from −2.00 at position 0, column 1 to 3.00 at position 1, column 0."
    )
    assert plots.value_map(values, exact=False).alt_text == "Values: 2 by 3 (row, column)."
    assert plots.value_map({"a": values, "b": -values}).alt_text == (
        "Values: 2 tables, each 2 by 3 (row, column). a: from −2.00 at row 0, column 1 to 3.00 at row 1, column 0. "
        "b: from −3.00 at row 1, column 0 to 2.00 at row 0, column 1."
    )
    two = plots.value_map({"a": values, "b": -values}, exact=False)
    assert two.alt_text == "Values: 2 tables, each 2 by 3 (row, column): a, b."


def test_the_line_beside_measured_times_only_names_them():
    series = {"with a cache": [1.0, 2.0], "without": [3.0, 1.0]}
    picture = plots.lines([64, 128], series, "tokens", "ms", exact=None)
    assert picture.alt_text == "ms against tokens: 2 lines. From tokens 64 to 128: with a cache; without."


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.attention_map(some_weights(12, 13)),
        lambda: plots.value_map(np.random.default_rng(0).normal(size=(12, 13))),
    ],
)
def test_a_stored_picture_is_half_the_size_and_looks_the_same(draw):
    picture, whole = draw(), io.BytesIO()
    with style():
        picture.figure.savefig(whole, format="png", dpi=DPI, bbox_inches="tight", pad_inches=0.06)
    assert len(picture.png()) < len(whole.getvalue()) / 2
    changed = np.abs(pixels(picture.png()) - pixels(whole.getvalue())).max(axis=-1)  # of 255
    assert changed.max() <= 10 and changed.mean() < 3


def test_the_line_beside_trained_weights_names_no_weight():
    weights = np.array([[[1.0, 0.0], [0.25, 0.75]], [[1.0, 0.0], [0.5, 0.5]]])
    mask = np.tri(2, dtype=bool)
    one = plots.attention_map(weights[0], mask=mask, title="trained", exact=False)
    assert one.alt_text == "Attention map (trained): 2 queries by 2 keys. 1 of 4 cells are forbidden."
    assert one.refill(weights[1]).alt_text == "Attention map: 2 queries by 2 keys."
    grid = plots.head_grid(weights, titles=["first", "second"], exact=False)
    assert grid.alt_text == "Attention maps: 2 maps, 2 queries by 2 keys. first, second."


def test_values_next_to_the_largest_do_not_move_the_line():
    nearly = np.array([[1.0, 1.0 + 1e-7]])
    assert plots.value_map(nearly).alt_text == plots.value_map(nearly[:, ::-1]).alt_text


@pytest.mark.parametrize(
    ("values", "options", "text"),
    [
        (np.zeros(3), {}, "values must be one matrix of numbers, got shape (3,)"),
        ([[np.nan, 1.0]], {}, "values is not finite in 1 of 2 places"),
        ({"a": np.zeros((2, 3)), "b": np.zeros((3, 2))}, {}, "must have one shape, got a (2, 3), b (3, 2)"),
        ({}, {}, "values holds no table"),
        (np.zeros((2, 3)), {"rows": ["a"]}, "rows has 1 label, but shape (2, 3) (rows, columns) has 2 rows"),
        (np.zeros((2, 3)), {"words": ("a",)}, "words must say what a row and what a column is, as in ('query', 'key')"),
    ],
)
def test_what_is_no_table_of_values_is_refused(values, options, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        plots.value_map(values, **options)


# --- probabilities ---


def test_probabilities_keep_one_scale_and_what_can_never_come_is_hatched():
    table = np.array([[0.25, 0.75, 0.0], [1e-6, 0.0, 0.5]])
    (ax,) = plots.probability_map(torch.tensor(table), ["a", "b"], ["x", "y", "z"], ("setting", "token")).axes
    assert np.array_equal(ax.images[0].get_array(), table)
    assert ax.images[0].get_clim() == (0.0, 1.0)
    assert np.array_equal(hatched(ax), table == 0)
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("setting", "token")
    assert [t.get_text() for t in ax.texts if cell_text(t)] == ["0.25", "0.75", "0.00", "0.50"]


def test_the_line_beside_probabilities_names_the_likeliest_of_each_row():
    table = [[0.25, 0.75, 0.0], [0.5, 0.0, 0.125]]
    picture = plots.probability_map(table, ["a", "b"], ["x", "y", "z"], ("setting", "token"), title="t")
    text = "Probabilities (t): 2 by 3 (setting, token), 2 of them never"
    assert picture.alt_text == f"{text}. Likeliest: a → y 0.75, b → x 0.50."
    trained = plots.probability_map(table, ["a", "b"], ["x", "y", "z"], ("setting", "token"), title="t", exact=False)
    assert trained.alt_text == f"{text}."
    even = plots.probability_map([[0.5, 0.5]], ["a"], ["x", "y"], ("setting", "token"))
    assert even.alt_text == "Probabilities: 1 by 2 (setting, token). Likeliest: a → 2 tokens alike 0.50."


@pytest.mark.parametrize(
    ("table", "options", "text"),
    [
        ([[1.5, 0.0]], {}, "probabilities must lie in 0..1, got 0 to 1.5: are these logits?"),
        ([[-0.5, 0.0]], {}, "probabilities must lie in 0..1, got -0.5 to 0"),
        ([0.5], {}, "probabilities must be one matrix of numbers, got shape (1,)"),
        ([[0.5, 0.5]], {"columns": ["a"]}, "columns has 1 label, but shape (1, 2) (rows, columns) has 2 columns"),
        (
            [[0.5, 0.5]],
            {"words": "ab"},
            "words must say what a row and what a column is, as in ('query', 'key'), got 'ab'",
        ),
        ([[0.5, 0.5]], {"words": ("a", 2)}, "as in ('query', 'key'), got ('a', 2)"),
    ],
)
def test_what_is_no_table_of_probabilities_is_refused(table, options, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        plots.probability_map(table, **options)


# --- a beam as a tree ---


TREE = {
    "tokens": [["a", "b"], ["c", "d", "</s>"], ["</s>", "e"]],
    "scores": [[-0.5, -1.0], [-1.5, -2.0, -1.25], [-1.75, -3.0]],
    "parents": [[0, 0], [1, 0, 0], [0, 0]],
    "ended": [[False, False], [False, False, True], [True, False]],
}


def frames(ax):
    """Label -> (left, middle, line width, dash) of each node's frame, by the text that stands in it."""
    found = {}
    for patch in ax.patches:
        (left, low), (right, high) = patch.get_xy().min(axis=0), patch.get_xy().max(axis=0)
        inside = [t for t in ax.texts if left < t.get_position()[0] < right and low < t.get_position()[1] < high]
        text = " ".join(t.get_text() for t in sorted(inside, key=lambda t: t.get_position()[1]))
        found[text] = (left, (low + high) / 2, patch.get_linewidth(), patch.get_linestyle())
    return found


def test_a_beam_grows_to_the_right_with_a_column_for_each_round():
    (ax,) = plots.beam_tree(**TREE).axes
    nodes = frames(ax)
    assert {"round 1", "round 2", "round 3"} <= {text.get_text() for text in ax.texts}
    assert set(nodes) == {"<start>", "a −0.50", "b −1.00", "c −1.50", "d −2.00", "</s> −1.25", "</s> −1.75", "e −3.00"}
    lefts = {text: place[0] for text, place in nodes.items()}
    assert lefts["<start>"] < lefts["a −0.50"] == lefts["b −1.00"] < lefts["c −1.50"] == lefts["d −2.00"]
    assert lefts["</s> −1.25"] == lefts["d −2.00"] < lefts["e −3.00"] == lefts["</s> −1.75"]


def test_each_branch_of_a_beam_leads_from_the_parent_to_its_child():
    (ax,) = plots.beam_tree(**TREE).axes
    middle = {text: place[1] for text, place in frames(ax).items()}
    pairs = {(round(line.get_ydata()[0], 6), round(line.get_ydata()[-1], 6)) for line in ax.lines}
    wanted = [
        ("<start>", "a −0.50"),
        ("<start>", "b −1.00"),
        ("b −1.00", "c −1.50"),
        ("a −0.50", "d −2.00"),
        ("a −0.50", "</s> −1.25"),
        ("c −1.50", "</s> −1.75"),
        ("c −1.50", "e −3.00"),
    ]
    assert pairs == {(round(middle[a], 6), round(middle[b], 6)) for a, b in wanted}
    assert all((np.diff(line.get_xdata()) >= 0).all() for line in ax.lines)


def test_what_won_is_thick_and_what_goes_no_further_is_dashed():
    plain = frames(plots.beam_tree(**TREE).axes[0])
    lines = {text: (width, dash) for text, (_, _, width, dash) in plain.items()}
    assert lines["d −2.00"][1] != "-" and lines["d −2.00"][1] != lines["c −1.50"][1]  # no child, and not at the end
    assert lines["e −3.00"] == lines["a −0.50"] == lines["c −1.50"]  # the last round: nobody knows
    assert lines["</s> −1.25"][0] > lines["a −0.50"][0]
    won = frames(plots.beam_tree(**TREE, best=(2, 0)).axes[0])
    thick = {text for text, (_, _, width, _) in won.items() if width > lines["</s> −1.25"][0]}
    assert thick == {"b −1.00", "c −1.50", "</s> −1.75"}


def test_what_ended_is_filled_and_nothing_else():
    (ax,) = plots.beam_tree(**TREE, best=(2, 0)).axes
    filled = [patch.get_xy() for patch in ax.patches if patch.get_facecolor()[:3] != (1.0, 1.0, 1.0)]
    places = {(corners[:, 0].min(), (corners[:, 1].min() + corners[:, 1].max()) / 2) for corners in filled}
    assert places == {frames(ax)[text][:2] for text in ("</s> −1.25", "</s> −1.75")}


def test_no_two_nodes_of_a_beam_touch():
    (ax,) = plots.beam_tree(**TREE, title="t").axes
    boxes = [patch.get_extents() for patch in ax.patches]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_the_line_beside_a_beam_tells_the_best_and_the_others_that_ended():
    text = "Beam (t): 3 rounds, 7 hypotheses, 2 of them ended, 1 goes no further"
    picture = plots.beam_tree(**TREE, best=(2, 0), title="t")
    assert picture.alt_text == f"{text}. Best: b c </s> −1.75. Others that ended: a </s> −1.25."
    trained = plots.beam_tree(**TREE, best=(2, 0), title="t", exact=False)
    assert trained.alt_text == f"{text}. Best: b c </s>. Others that ended: a </s>."
    tensor = {**TREE, "scores": [torch.tensor(level) for level in TREE["scores"]], "ended": None}
    assert plots.beam_tree(**tensor).alt_text == "Beam: 3 rounds, 7 hypotheses, 0 of them ended, 2 go no further."


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"tokens": []}, "tokens must have at least one round, and each round a hypothesis, got rounds of []"),
        ({"scores": [[0.0], [0.0]]}, "scores must have one entry for each token, in rounds of [2, 3, 2], got rounds"),
        ({"parents": [[0, 0], [2, 0, 0], [0, 0]]}, "parents[1][0] is hypothesis 2 of the round before, of 2"),
        ({"parents": [[0, 0], [1, 0, 0], [0, 2]]}, "parents[2][1] is hypothesis 2 of the round before, which ended"),
        ({"best": (2, 2)}, "best is (2, 2), but there is no hypothesis 2 of round 2"),
    ],
)
def test_what_is_no_beam_is_refused(change, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        plots.beam_tree(**{**TREE, **change})


# --- parts in their order ---


MACHINE = {
    "encoder": ["source", "embedding", ("2 layers of", ["self-attention", "feed-forward"]), "memory"],
    "decoder": ["target", ("2 layers of", ["self-attention", "cross-attention"]), "output", "logits"],
}


def flow(link=("memory", "cross-attention")):
    """The axes, the place (x, y) of each text, and the arrows (begin, end), left to right; y grows downwards."""
    (ax,) = plots.flow_picture(MACHINE, link).axes
    places = [(t.get_text(), t.get_position()) for t in ax.texts if t.get_text()]
    arrows = [(tuple(t.xyann), tuple(t.xy)) for t in ax.texts if not t.get_text()]
    half = len(places) // 2
    return ax, [dict(places[:half]), dict(places[half:])], arrows


def test_the_steps_of_a_column_stand_below_each_other_with_an_arrow_from_each_to_the_next():
    _, columns, arrows = flow()
    names = ["source", "embedding", "self-attention", "feed-forward", "memory"]
    ys = [columns[0][name][1] for name in names]
    assert ys == sorted(ys) and len({columns[0][name][0] for name in names}) == 1
    assert columns[0]["source"][0] < columns[1]["target"][0]
    down = [(begin, end) for begin, end in arrows if begin[0] == end[0] == columns[0]["source"][0]]
    assert len(down) == 4 and len(arrows) == 4 + 4 + 1
    for (begin, end), above, below in zip(down, ys, ys[1:], strict=False):
        assert above < begin[1] < end[1] < below


@pytest.mark.parametrize("link", [("memory", "cross-attention"), ("source", "logits")])
def test_the_ends_of_a_link_stand_level_and_its_arrow_leads_from_the_first_to_the_second(link):
    _, columns, arrows = flow(link)
    (a, level), (b, same) = columns[0][link[0]], columns[1][link[1]]
    ((begin, end),) = [(begin, end) for begin, end in arrows if begin[1] == end[1]]
    assert begin[1] == pytest.approx(level) and same == pytest.approx(level)
    assert a < begin[0] < end[0] < b


def test_parts_have_boxes_and_a_frame_holds_exactly_its_own():
    ax, columns, _ = flow()
    boxes = [patch.get_bbox() for patch in ax.patches if patch.get_facecolor()[3]]
    frames = [patch.get_bbox() for patch in ax.patches if not patch.get_facecolor()[3]]

    def inside(boxes, column):
        return {name for name, place in columns[column].items() if any(box.contains(*place) for box in boxes)}

    assert inside(boxes, 0) == {"embedding", "self-attention", "feed-forward"}
    assert inside(boxes, 1) == {"self-attention", "cross-attention", "output"}
    assert inside(frames, 0) == {"2 layers of", "self-attention", "feed-forward"}
    assert inside(frames, 1) == {"2 layers of", "self-attention", "cross-attention"}


def test_the_line_beside_parts_tells_their_order():
    assert plots.flow_picture(MACHINE, ("memory", "cross-attention")).alt_text == (
        "Parts in order: encoder, decoder. "
        "encoder: source → embedding → 2 layers of (self-attention → feed-forward) → memory. "
        "decoder: target → 2 layers of (self-attention → cross-attention) → output → logits. memory → cross-attention."
    )


@pytest.mark.parametrize(
    ("columns", "link", "error", "text"),
    [
        (["a", "b"], None, TypeError, "got list"),
        ({}, None, ValueError, "got none"),
        ({"a": ["in"]}, None, ValueError, "'a' must have what goes in and what comes out, got 1"),
        ({"a": ["in", ("twice", ["b", "b"]), "out"]}, None, ValueError, "'b' twice"),
        (MACHINE, ("memory", "feed-forward"), ValueError, "('memory', 'feed-forward')"),
        ({"a": ["in", "out"]}, ("in", "out"), ValueError, "a step of the second"),
    ],
)
def test_what_is_no_column_of_parts_is_refused(columns, link, error, text):
    with pytest.raises(error, match=re.escape(text)):
        plots.flow_picture(columns, link)


# --- what a picture is ---


def test_one_number_looks_the_same_in_what_was_given_and_in_what_was_expected():
    given, expected = [-np.inf] * 4, [-0.92, -1.2, -1.61, -np.inf]
    panels = plots.difference_picture(np.array(given), np.array(expected)).axes[:2]
    assert len({text.get_size() for ax in panels for text in ax.texts if cell_text(text)}) == 1
    long = plots.difference_picture(np.array([1.001, 5.0]), np.array([1.002, -10.5])).axes[:2]
    assert [len(numbers_in(ax)) for ax in long] == [2, 0]  # what has no room on one side stays on the other


PICTURES = {
    "map": lambda: plots.attention_map(some_weights(7, 7), AWKWARD, AWKWARD, title="a title"),
    "one cell": lambda: plots.attention_map([[1.0]], ["W" * 30], ["W" * 30]),
    "one query": lambda: plots.attention_map(some_weights(1, 12)),
    "large map": lambda: plots.attention_map(some_weights(40, 40)),
    "heads": lambda: plots.head_grid(some_weights(16, 7, 14), AWKWARD, AWKWARD * 2),
    "one head": lambda: plots.head_grid(some_weights(1, 2, 3), titles=["a rather long title of one head"]),
    "mask": lambda: plots.mask_picture(np.tril(np.ones((7, 7), bool)), AWKWARD, AWKWARD, title="t"),
    "small mask": lambda: plots.mask_picture([[True]]),
    "product": lambda: plots.product_picture(**product(), queries=QUERIES, keys=KEYS),
    "difference": lambda: plots.difference_picture(np.zeros((4, 5)), np.eye(4, 5), title="merge_heads, 0"),
    "shapes": lambda: plots.difference_picture(np.zeros((1, 1)), np.zeros((2, 2))),
    "values": lambda: plots.value_map(some_values(7, 9), AWKWARD, title="t"),
    "one value": lambda: plots.value_map([[1.0]], ["W" * 30], ["W" * 30]),
    "large table": lambda: plots.value_map(some_values(64, 48)),
    "three tables": lambda: plots.value_map({f"seed {i}": some_values(16, 16) for i in range(3)}, title="three"),
    "probabilities": lambda: plots.probability_map(some_weights(7, 9), AWKWARD, title="t"),
    "beam": lambda: plots.beam_tree([AWKWARD[:2], AWKWARD[4:]], [[-1, -9], [-20] * 3], [[0, 0], [0, 1, 0]], title="t"),
    "parts": lambda: plots.flow_picture(MACHINE, ("memory", "cross-attention"), title="a title"),
    "awkward parts": lambda: plots.flow_picture({"W" * 30: [*AWKWARD, ("W" * 30, ["i"]), "end"]}),
    "lines": lambda: plots.lines([1, 2], {"a name of some length": np.ones((3, 2))}, "x", "y", title="t"),
}  # fmt: skip


@functools.cache
def drawn(kind):
    return PICTURES[kind]()


@pytest.mark.parametrize("kind", list(PICTURES))
def test_nothing_is_cut_off_at_the_edge_of_the_figure(kind):
    figure = drawn(kind).figure
    box, (wide, high) = figure.get_tightbbox(), figure.get_size_inches()
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= wide and box.y1 <= high


@pytest.mark.parametrize("kind", list(PICTURES))
def test_a_picture_fits_a_notebook_and_is_the_same_every_time(kind):
    a, b = drawn(kind), PICTURES[kind]()
    (data, metadata), png = a._repr_mimebundle_(), b.png()
    assert data["image/png"] == png
    assert a.alt_text == b.alt_text and "\n" not in a.alt_text
    assert repr(a).startswith("<Picture: ") and " at 0x" not in repr(a)
    assert metadata["image/png"]["width"] <= 1000


def test_alt_text_is_stored_in_the_file_and_offered_to_the_page(tmp_path):
    picture = plots.attention_map(some_weights(4, 5), QUERIES, KEYS)
    data, metadata = picture._repr_mimebundle_()
    assert metadata["image/png"]["alt"] == picture.alt_text
    assert Image.open(io.BytesIO(data["image/png"])).text["Description"] == picture.alt_text
    for name in ("a.png", "a.svg", "a.pdf"):
        picture.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    assert "Strongest key of each query" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_twenty_five_pictures_are_all_shown_and_none_stays_open(monkeypatch):
    seen = []
    monkeypatch.setattr("IPython.display.display", lambda data, **_: seen.append(data))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pictures = [plots.attention_map([[1.0]], title=str(i)) for i in range(25)]
        for picture in pictures:
            picture.show()
    assert plt.get_fignums() == []
    assert [list(data) for data in seen] == [["text/plain", "image/png"], ["text/plain"]] * 25
    assert [data["text/plain"] for data in seen[1::2]] == [picture.alt_text for picture in pictures]


def test_the_line_beside_a_picture_is_broken_between_words_where_a_notebook_shows_it(monkeypatch):
    seen = []
    monkeypatch.setattr("IPython.display.display", lambda data, **_: seen.append(data["text/plain"]))
    picture = plots.attention_map(some_weights(6, 6), [f"token-{i}" for i in range(6)])
    picture.show()
    lines = seen[-1].split("\n")
    assert len(lines) > 1 and max(map(len, lines)) <= 100
    assert " ".join(lines) == picture.alt_text
    assert not any(line.endswith("-") for line in lines)


def test_a_picture_in_a_figure_that_pyplot_shows_is_not_shown_twice(monkeypatch):
    seen = []
    monkeypatch.setattr("IPython.display.display", lambda data, **_: seen.append(data))
    monkeypatch.setattr(matplotlib, "get_backend", lambda: "inline")
    figure, ax = plt.subplots()
    picture = plots.attention_map(some_weights(2, 3), ax=ax)
    picture.show()
    assert seen == [{"text/plain": plots.picture.lines_of(picture.alt_text)}]
    plt.close(figure)


def test_a_notebooks_own_style_neither_changes_a_picture_nor_is_changed_by_it():
    plain = plots.attention_map(some_weights(4, 5), QUERIES, KEYS).png()
    with plt.style.context("dark_background"), plt.rc_context({"image.origin": "lower", "font.size": 20}):
        before = dict(matplotlib.rcParams)
        assert plots.attention_map(some_weights(4, 5), QUERIES, KEYS).png() == plain
        assert dict(matplotlib.rcParams) == before


def test_only_maps_and_masks_can_be_filled_again():
    likely = plots.probability_map(np.eye(2, 3), ["a", "b"], ["x", "y", "z"], ("setting", "token"))
    likely.refill([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]], "other")
    assert np.array_equal(hatched(likely.axes[0]), [[True, False, False], [False, True, True]])
    assert likely.axes[0].get_title() == "other"
    assert likely.alt_text.startswith("Probabilities (other): 2 by 3 (setting, token), 3 of them never")
    for wrong, text in (
        (np.eye(3), "the picture has shape (2, 3), the probabilities (3, 3)"),
        (2 * np.eye(2, 3), "0..1"),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            likely.refill(wrong)
    picture = plots.mask_picture(some_mask(), QUERIES, KEYS)
    picture.refill(np.ones((4, 5), bool), "all")
    assert shown(picture.axes[0]).all() and not hatched(picture.axes[0]).any()
    with pytest.raises(TypeError, match="draw a new picture"):
        plots.head_grid(some_weights(2, 4, 5)).refill(some_weights(2, 4, 5))


def test_black_and_white_numbers_stand_on_light_and_dark_cells():
    (ax,) = plots.attention_map([[1.0, 0.0]]).axes
    inks = [to_rgb(text.get_color()) for text in ax.texts if cell_text(text)]
    assert inks == [(1.0, 1.0, 1.0), (0.0, 0.0, 0.0)]


# --- what no picture can be made of ---

MAP, SERIES = some_weights(2, 3), {"a": [1.0, 2.0]}
COLUMNS = {"one": ["in", "part", "out"], "two": ["in", "out"]}


def tree(**wrong):
    good = {"tokens": [["a", "b"], ["c"]], "scores": [[-1.0, -2.0], [-3.0]], "parents": [[0, 0], [1]]}
    return plots.beam_tree(**good | wrong)


@pytest.mark.parametrize(
    ("kind", "make", "text"),
    [
        (TypeError, lambda: plots.attention_map(MAP, ax=plt.subplots(1, 2)[1]), "ax must be one axes of matplotlib"),
        (TypeError, lambda: plots.attention_map(MAP, ax=True), "as from plt.subplots()[1], got bool (True)"),
        (
            TypeError,
            lambda: plots.head_grid(MAP[None], titles="ab"),
            "titles must be a list of titles, one for each head",
        ),
        (ValueError, lambda: plots.value_map([[1.0], [1.0, 2.0]]), "the lists of values are not all of one length"),
        (ValueError, lambda: plots.value_map(MAP, reach=0), "reach must be above 0, got 0"),
        (ValueError, lambda: plots.value_map(MAP, reach=np.inf), "reach must be finite, got inf"),
        (TypeError, lambda: plots.value_map(MAP, reach="1"), "reach must be a number, got str ('1')"),
        (
            TypeError,
            lambda: plots.difference_picture([1], [2], where=0),
            "where must be a list of indices, one for each",
        ),
        (
            TypeError,
            lambda: plots.difference_picture([1], [2], where=["a"]),
            "each index of where must be an int, got str",
        ),
        (
            TypeError,
            lambda: plots.difference_picture([1], [2], axes=None),
            "axes must be a list of names, got NoneType",
        ),
        (ValueError, lambda: plots.difference_picture([1], [2], tolerance=-1), "tolerance must be at least 0, got -1"),
        (
            ValueError,
            lambda: plots.difference_picture([[1], [1, 2]], [2]),
            "the lists of given are not all of one length",
        ),
        (ValueError, lambda: plots.lines("ab", SERIES, "x", "y"), "x must be numbers, got 'ab'"),
        (
            ValueError,
            lambda: plots.lines([1, 2], {"a": ["b", "c"]}, "x", "y"),
            "series['a'] must be numbers, got ['b',",
        ),
        (ValueError, lambda: plots.lines([1, np.nan], SERIES, "x", "y"), "x must be finite, got nan among its points"),
        (
            ValueError,
            lambda: plots.lines([1, 2], SERIES, "x", "y", log="Y"),
            "log must be one of '', 'x', 'y', 'xy', got",
        ),
        (
            ValueError,
            lambda: plots.lines([1, 2], SERIES, "x", "y", exact="no"),
            "exact must be one of True, False, None",
        ),
        (TypeError, lambda: plots.lines([1, 2], SERIES, None, "y"), "xlabel must be a text, got NoneType"),
        (
            TypeError,
            lambda: plots.flow_picture({"one": "abc"}),
            "columns['one'] must be a list of steps, got str ('abc')",
        ),
        (
            TypeError,
            lambda: plots.flow_picture({"one": ["in", 3]}),
            "a step of columns['one'] must be a text, or a tuple",
        ),
        (TypeError, lambda: plots.flow_picture({"one": ["in", ("a", "bc")]}), "(caption, texts), got ('a', 'bc')"),
        (TypeError, lambda: plots.flow_picture(COLUMNS, link=3), "link must be a list of two steps, got int (3)"),
        (
            ValueError,
            lambda: plots.flow_picture(COLUMNS, link=("part",)),
            "link must be a step of the first column and a",
        ),
        (ValueError, lambda: plots.flow_picture(COLUMNS, link=("part", "in", "out")), "got ('part', 'in', 'out')"),
        (TypeError, lambda: tree(tokens=None), "tokens must be a list of rounds, got NoneType"),
        (TypeError, lambda: tree(scores=[-1.0, -2.0]), "scores[0] must be a list of hypotheses, got float (-1.0)"),
        (ValueError, lambda: tree(scores=[["x", "y"], ["z"]]), "scores[0][0] must be numbers, got 'x'"),
        (TypeError, lambda: tree(parents=[[0, 0], [0.5]]), "parents[1][0] must be an int, got float (0.5)"),
        (TypeError, lambda: tree(best=3), "best must be a pair (round, i), got 3"),
        (TypeError, lambda: tree(best=(0.0, 1.0)), "each number of best must be an int, got float (0.0)"),
        (TypeError, lambda: plots.attention_map(MAP).save(3), "path must be the path of a file, got int (3)"),
        (ValueError, lambda: plots.attention_map(MAP).png(0), "dpi must be above 0, got 0"),
        (TypeError, lambda: plots.attention_map(MAP).quick_png("96"), "dpi must be a number, got str ('96')"),
    ],
)
def test_what_no_picture_can_be_made_of_is_an_error(kind, make, text):
    with pytest.raises(kind, match=re.escape(text)):
        make()


def test_a_title_may_be_a_number():
    for picture in (plots.attention_map(MAP, title=3), plots.value_map(MAP, title=3), tree(title=3)):
        assert "(3)" in picture.alt_text
