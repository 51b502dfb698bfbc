"""The argument checks: what passes, and the exact words of what does not."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sizes import error_text, few

from transformer_edu import errors


def test_a_tensor_of_the_named_axes_passes():
    errors.check_tensor("x", torch.zeros(2, 3), dims=("batch", "length"))
    errors.check_tensor("x", torch.zeros(2, 3))
    errors.check_tensor("x", torch.zeros(4, 2, 3), dims=("batch", "length"), leading=True)


def test_the_wrong_number_of_axes_is_named_with_the_axes_and_the_shape():
    def text(x, **kwargs):
        return error_text(ValueError, lambda: errors.check_tensor("x", x, dims=("length", "d_k"), **kwargs))

    assert text(torch.zeros(3)) == "x must have 2 axes (length, d_k), got 1 axis: shape (3,)"
    assert text(torch.zeros(4, 2, 3)) == "x must have 2 axes (length, d_k), got 3 axes: shape (4, 2, 3)"
    too_few = "x must have at least 2 axes (..., length, d_k), got 1 axis: shape (3,)"
    assert text(torch.zeros(3), leading=True) == too_few
    one = error_text(ValueError, lambda: errors.check_tensor("x", torch.zeros(2, 3), dims=("batch",)))
    assert one == "x must have 1 axis (batch), got 2 axes: shape (2, 3)"


def test_something_else_than_a_tensor_is_named_by_its_type():
    text = error_text(TypeError, lambda: errors.check_tensor("x", [[1.0]], dims=("length", "d_k")))
    assert text == "x must be a torch.Tensor, got list: torch.as_tensor(x) makes one"


def test_a_count_must_be_a_whole_number_that_is_large_enough():
    errors.check_count("n", 1)
    errors.check_count("n", 0, least=0)
    assert error_text(ValueError, lambda: errors.check_count("n", 0)) == "n must be at least 1, got 0"
    assert error_text(ValueError, lambda: errors.check_count("n", 2, least=3)) == "n must be at least 3, got 2"
    for value, said in (
        (2.0, "float (2.0): int(n) makes one"),
        ("2", "str ('2'): int(n) makes one"),
        (True, "bool: are the arguments in their order?"),
        ([3, 1], "list: are the arguments in their order?"),
    ):
        text = error_text(TypeError, lambda value=value: errors.check_count("n", value))
        assert text == f"n must be an int, got {said}"


def test_a_part_must_divide_the_whole_and_both_numbers_are_named():
    errors.check_divides("n_heads", 3, "d_model", 18, why="because")
    text = error_text(ValueError, lambda: errors.check_divides("n_heads", 3, "d_model", 16, why="because"))
    assert text == "d_model (16) must be divisible by n_heads (3): because"
    text = error_text(ValueError, lambda: errors.check_divides("n_heads", 0, "d_model", 16, why="because"))
    assert text == "n_heads must be at least 1, got 0"


def test_a_share_lies_between_0_and_1():
    for share in (0, 0.0, 0.5, 1):
        errors.check_share("dropout", share, of="the weights")
    for share in (-0.1, 1.5):
        text = error_text(ValueError, lambda share=share: errors.check_share("dropout", share, of="the weights"))
        assert text == f"dropout must lie in 0..1, got {share}: it is the share of the weights that are set to 0"


def test_a_choice_lists_what_may_be_chosen():
    errors.check_choice("side", "left", ("left", "right"))
    text = error_text(ValueError, lambda: errors.check_choice("side", "up", ("left", "right")))
    assert text == "side must be one of 'left', 'right', got 'up'"
    for near in ("lef", None, 0):
        with pytest.raises(ValueError, match="side must be one of"):
            errors.check_choice("side", near, ("left", "right"))


@few
@given(st.lists(st.integers(1, 3), max_size=4), st.lists(st.integers(1, 3), max_size=4))
def test_a_shape_passes_exactly_when_torch_can_expand_it(shape, target):
    x = torch.zeros(shape)
    try:
        x.expand(target)
    except RuntimeError:
        with pytest.raises(ValueError, match="does not broadcast to"):
            errors.check_broadcast("x", x, target, axes="(axes)")
    else:
        errors.check_broadcast("x", x, target, axes="(axes)")


def test_a_shape_that_does_not_broadcast_names_both_shapes_and_the_axis():
    def text(*shape, target=(2, 3, 4, 5)):
        x = torch.zeros(shape)
        return error_text(ValueError, lambda: errors.check_broadcast("mask", x, target, axes="(b, h, q, k)"))

    start = "does not broadcast to (2, 3, 4, 5) = (b, h, q, k): "
    aligned = "shapes are aligned from the right, so "
    assert text(5, 4) == f"mask of shape (5, 4) {start}{aligned}the last axis of mask must be 5 or 1"
    assert text(2, 4, 5) == f"mask of shape (2, 4, 5) {start}{aligned}axis -3 of mask must be 3 or 1"
    assert text(1, 2, 3, 4, 5) == f"mask of shape (1, 2, 3, 4, 5) {start}it has 5 axes, at most 4 fit"
    start = "does not broadcast to (1, 5) = (b, h, q, k): "
    assert text(2, 5, target=(1, 5)) == f"mask of shape (2, 5) {start}{aligned}axis -2 of mask must be 1"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8])
def test_a_mask_that_is_not_bool_is_told_where_to_go(dtype):
    text = error_text(ValueError, lambda: errors.check_mask(torch.ones(4, 5, dtype=dtype), (2, 3, 4, 5)))
    assert text == (
        "mask of shape (4, 5) for scores of shape (2, 3, 4, 5) must have dtype bool (True = this query may "
        f"attend to this key), got {dtype}: convert it with masks.from_additive (0 and -inf) or "
        "masks.from_integers (0 and 1), or pass it to scaled_dot_product_attention as bias="
    )


def test_a_mask_of_another_shape_names_both_shapes():
    text = error_text(ValueError, lambda: errors.check_mask(torch.ones(5, 4).bool(), (2, 3, 4, 5)))
    assert text.startswith("mask of shape (5, 4) does not broadcast to (2, 3, 4, 5) = (batch, heads, query, key): ")
    errors.check_mask(torch.ones(2, 1, 1, 5).bool(), (2, 3, 4, 5))


def test_a_mask_that_is_no_tensor_is_told_so():
    text = error_text(TypeError, lambda: errors.check_mask([[True]], (1, 1)))
    assert text == "mask must be a torch.Tensor, got list: torch.as_tensor(mask) makes one"


def test_a_share_must_be_a_number():
    text = error_text(TypeError, lambda: errors.check_share("dropout", "0.1", of="the weights"))
    assert text == "dropout must be a number in 0..1, got str ('0.1')"


def test_ids_are_whole_numbers_and_floats_are_floats():
    errors.check_ids("x", torch.zeros(2, 3, dtype=torch.int32), dims=("batch", "length"))
    errors.check_float("x", torch.zeros(2, 3).half(), dims=("length",), leading=True)
    for x in (torch.zeros(2), torch.zeros(2).bool(), torch.zeros(2).to(torch.complex64)):
        text = error_text(TypeError, lambda x=x: errors.check_ids("x", x))
        assert text == f"x must hold whole numbers, got {x.dtype}: .long() makes them"
    for x in (torch.zeros(2).long(), torch.zeros(2).bool()):
        text = error_text(TypeError, lambda x=x: errors.check_float("x", x))
        assert text == f"x must be a float tensor, got {x.dtype}: .float() makes one"
    for check in (errors.check_ids, errors.check_float):
        assert "x must be a torch.Tensor, got list" in error_text(TypeError, lambda check=check: check("x", [1]))
        text = error_text(ValueError, lambda check=check: check("x", torch.zeros(2), dims=("batch", "length")))
        assert "x must have 2 axes (batch, length), got 1 axis" in text


def test_what_is_of_another_kind_is_named_and_a_class_is_told_to_be_called():
    errors.check_kind("model", torch.nn.ReLU(), torch.nn.Module, "a module")
    errors.check_module("model", torch.nn.ReLU())
    errors.check_callable("step", torch.relu, "step(x)")
    errors.check_callable("step", torch.nn.ReLU(), "step(x)")
    module = "model must be a torch.nn.Module, got {}"
    call = "step must be a function, step(x), got {}"
    for value, came in (
        (torch.nn.Linear, "the class Linear: Linear(...) makes one"),
        (3, "int (3)"),
        ("relu", "str ('relu')"),
        (None, "NoneType"),
        ([1], "list"),
    ):
        text = error_text(TypeError, lambda value=value: errors.check_module("model", value))
        assert text == module.format(came)
        text = error_text(TypeError, lambda value=value: errors.check_callable("step", value, "step(x)"))
        assert text == call.format(came)


def test_a_list_is_anything_to_go_through_but_a_text():
    for several in ([1], (1,), range(2), torch.nn.ModuleList(), (i for i in range(2)), torch.zeros(2)):
        errors.check_list("norms", several, of="norms")
    for value, came in ((None, "NoneType"), ("ab", "str ('ab')"), (torch.nn.ReLU(), "ReLU"), (3, "int (3)")):
        text = error_text(TypeError, lambda value=value: errors.check_list("norms", value, of="norms"))
        assert text == f"norms must be a list of norms, got {came}"
    text = error_text(TypeError, lambda: errors.check_list("norms", torch.tensor(0.1), of="norms"))
    assert text == "norms must be a list of norms, got Tensor"
    assert "got the class list" in error_text(TypeError, lambda: errors.check_list("norms", list, of="norms"))


def test_what_meets_weights_has_their_dtype_and_device():
    errors.check_like("x", torch.zeros(2), torch.zeros(3, 4))
    text = error_text(ValueError, lambda: errors.check_like("x", torch.zeros(2, device="meta"), torch.zeros(3)))
    assert text == (
        "x must be torch.float32 on cpu, as the layer's weights are, got torch.float32 on meta: .to() converts"
    )


def test_a_flag_is_true_or_false_and_no_word():
    errors.check_flag("pre_norm", False)
    for value, came in (("post", "str ('post')"), (1, "int (1)"), (None, "NoneType")):
        text = error_text(TypeError, lambda value=value: errors.check_flag("pre_norm", value))
        assert text == f"pre_norm must be True or False, got {came}"


def test_a_number_is_finite_and_within_its_bounds():
    def text(value, kind=ValueError, **bounds):
        return error_text(kind, lambda: errors.check_number("p", value, **bounds))

    for value in (0, -2.5, np.float32(1.0), np.int64(3)):
        errors.check_number("p", value)
    errors.check_number("p", 1, least=0, most=1)
    assert text("0.5", TypeError) == "p must be a number, got str ('0.5')"
    assert text(True, TypeError, least=0, most=1) == "p must be a number in 0..1, got bool (True)"
    assert text(torch.tensor(0.5), TypeError) == "p must be a number, got Tensor"
    assert text(90, least=0, most=1, why="a share") == "p must lie in 0..1, got 90: a share"
    assert text(-1.0, least=0, why="0 is greedy") == "p must be at least 0, got -1.0: 0 is greedy"
    assert text(0.0, above=0) == "p must be above 0, got 0.0"
    for bounds, said in (({}, "be finite"), ({"least": 0, "most": 1}, "lie in 0..1"), ({"above": 0}, "be above 0")):
        assert text(math.nan, **bounds) == f"p must {said}, got nan"
    assert text(math.inf) == text(math.inf, above=0) == "p must be finite, got inf"


def test_a_whole_number_may_be_negative():
    errors.check_int("seed", -3)
    for value, said in (
        (1.0, "float (1.0): int(seed) makes one"),
        (None, "NoneType: are the arguments in their order?"),
    ):
        text = error_text(TypeError, lambda value=value: errors.check_int("seed", value))
        assert text == f"seed must be an int, got {said}"
