"""The first exercise: a weighted average."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from sizes import D_V, KEY, QUERY, error_text, few, numbers, same

from transformer_edu.welcome import mix


def test_mix_equals_a_loop_in_float64():
    weights, values = numbers(QUERY, KEY).softmax(-1), numbers(KEY, D_V, seed=1)
    expected = torch.zeros(QUERY, D_V, dtype=torch.float64)
    for i in range(QUERY):
        for j in range(KEY):
            for column in range(D_V):
                expected[i, column] += weights[i, j].double() * values[j, column].double()
    same(mix(weights, values), expected)


@few
@given(st.integers(1, 6), st.integers(0, 99))
def test_equal_weights_give_the_mean_and_one_hot_weights_give_that_value(n_values, seed):
    values = numbers(n_values, D_V, seed=seed)
    same(mix(torch.full((1, n_values), 1 / n_values), values)[0], values.mean(0))
    assert torch.equal(mix(torch.eye(n_values), values), values)


def test_weights_that_sum_to_1_stay_between_the_smallest_and_the_largest_value():
    weights, values = numbers(QUERY, KEY).softmax(-1), numbers(KEY, D_V, seed=1)
    mixed = mix(weights, values)
    assert (mixed >= values.amin(0) - 1e-6).all() and (mixed <= values.amax(0) + 1e-6).all()


def test_wrong_shapes_name_both_numbers():
    text = error_text(ValueError, lambda: mix(torch.ones(QUERY, KEY), torch.ones(KEY + 1, D_V)))
    assert text == "weights have 5 columns and values 6 rows: one weight for each value"
    text = error_text(ValueError, lambda: mix(torch.ones(KEY), torch.ones(KEY, D_V)))
    assert text == "weights must have 2 axes (query, key), got 1 axis: shape (5,)"
    text = error_text(ValueError, lambda: mix(torch.ones(QUERY, KEY), torch.ones(KEY)))
    assert text == "values must have 2 axes (key, d_v), got 1 axis: shape (5,)"
    assert error_text(TypeError, lambda: mix([[1.0]], torch.ones(1, 1))).startswith("weights must be a torch.Tensor")
