"""The exercise of lesson 00: mix."""

from __future__ import annotations

import torch
from torch import Tensor

from ..welcome import mix
from .exercise import Exercise, Mistake, Probe, Result


def _weights(rows: int, columns: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, columns, generator=generator).softmax(-1)


def _values(rows: int, columns: int, seed: int) -> Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)).mul(4).round() / 2


MIX = Exercise(
    name="welcome.mix",
    reference=lambda weights, values: mix(weights, values),
    results=(Result("result", ("query", "column")),),
    probes=(
        Probe(
            "weights [[1, 0], [0.25, 0.75]], values [[2, 0], [4, 8]]",
            lambda: (torch.tensor([[1.0, 0.0], [0.25, 0.75]]), torch.tensor([[2.0, 0.0], [4.0, 8.0]])),
        ),
        Probe("weights (3, 3), values (3, 3)", lambda: (_weights(3, 3, 0), _values(3, 3, 1))),
        Probe("weights (2, 3), values (3, 4)", lambda: (_weights(2, 3, 2), _values(3, 4, 3))),
        Probe("weights (1, 4), values (4, 2)", lambda: (_weights(1, 4, 4), _values(4, 2, 5))),
    ),
    mistakes=(
        Mistake(
            "entry_by_entry",
            "You multiply weights and values entry by entry (*). Each row of the result must be a weighted average of"
            " whole rows of values, which is the matrix product: weights @ values.",
            lambda weights, values: weights * values,
        ),
        Mistake(
            "weights_transposed",
            "You average with the columns of the weights instead of their rows: the weights are transposed. Row i of"
            " the result uses row i of the weights.",
            lambda weights, values: weights.T @ values,
        ),
        Mistake(
            "values_transposed",
            "Your values are transposed: you average their columns. Each weight belongs to a whole row of values.",
            lambda weights, values: weights @ values.T,
        ),
        Mistake(
            "order_exchanged",
            "The two factors are in the wrong order: values @ weights mixes columns. weights @ values takes, for each"
            " row of weights, the weighted average of the rows of values.",
            lambda weights, values: values @ weights,
        ),
        Mistake(
            "plain_average",
            "Every row of your result is the plain average of all values: the weights are not used.",
            lambda weights, values: values.mean(0, keepdim=True).expand(len(weights), -1),
        ),
        Mistake(
            "divided_by_count",
            "Your rows are too small, because they are divided by the number of values: the weights already sum to 1.",
            lambda weights, values: weights @ values / len(values),
        ),
        Mistake(
            "summed_up",
            "You add up the rows of your result: each query keeps a row of its own.",
            lambda weights, values: (weights @ values).sum(0),
        ),
        Mistake(
            "averaged_over_queries",
            "You average the rows of your result: each query keeps a row of its own.",
            lambda weights, values: (weights @ values).mean(0),
        ),
        Mistake(
            "strongest_only",
            "Each row is just the value with the largest weight: an average takes from every value its share.",
            lambda weights, values: values[weights.argmax(-1)],
        ),
        Mistake(
            "returns_values",
            "You return the values as they came: they still have to be mixed by the weights.",
            lambda weights, values: values,
        ),
        Mistake(
            "returns_weights",
            "You return the weights as they came: they still have to be applied to the values.",
            lambda weights, values: weights,
        ),
        Mistake(
            "softmax_again",
            "You apply a softmax to the weights first: they are weights already, positive and with rows that sum to 1.",
            lambda weights, values: weights.softmax(-1) @ values,
        ),
        Mistake(
            "result_transposed",
            "Your result is transposed: row i belongs to query i.",
            lambda weights, values: (weights @ values).T,
        ),
        Mistake(
            "last_value_only",
            "Only the last value counts, times its weight. In a loop over the keys, add up with +=: = keeps the last"
            " round alone.",
            lambda weights, values: weights[:, -1:] * values[-1:],
        ),
        Mistake(
            "last_value_missing",
            "The last value is left out of the average: a loop over all keys runs to len(values).",
            lambda weights, values: weights[:, :-1] @ values[:-1],
        ),
        Mistake(
            "first_value_missing",
            "The first value is left out of the average: keys count from 0.",
            lambda weights, values: weights[:, 1:] @ values[1:],
        ),
        Mistake(
            "starts_at_one",
            "Every entry is too large by 1: the sum must begin with zeros, not with ones.",
            lambda weights, values: weights @ values + 1,
        ),
        Mistake(
            "first_query_for_all",
            "Every row of your result uses the weights of the first query: row i needs row i of the weights.",
            lambda weights, values: (weights[:1] @ values).expand(len(weights), -1),
        ),
        Mistake(
            "one_query_only",
            "You return the average for one query only: each query needs a row of its own.",
            lambda weights, values: weights[0] @ values,
        ),
        Mistake(
            "one_query_only",
            "You return the average for one query only: each query needs a row of its own.",
            lambda weights, values: weights[-1] @ values,
        ),
        Mistake(
            "not_summed",
            "You multiply each value by its weight and stop there, so the keys are still an axis: add up over it.",
            lambda weights, values: weights[:, :, None] * values,
        ),
        Mistake(
            "summed_over_columns",
            "You add up over the numbers of a value instead of over the keys: sum over the axis of the keys.",
            lambda weights, values: (weights[:, :, None] * values).sum(-1),
        ),
        Mistake(
            "softmax_again",
            "You apply a softmax to the weights first: they are weights already, positive and with rows that sum to 1.",
            lambda weights, values: weights.softmax(0) @ values,
        ),
        Mistake(
            "columns_normalised",
            "You divide the weights by the sums of their columns first: the rows already sum to 1, and that is what an"
            " average needs.",
            lambda weights, values: weights / weights.sum(0, keepdim=True) @ values,
        ),
        Mistake(
            "divided_by_root",
            "Your rows are too small, because they are divided by a square root of a width: the weights already sum"
            " to 1.",
            lambda weights, values: weights @ values / values.shape[1] ** 0.5,
        ),
        Mistake(
            "unweighted_sum",
            "Every row of your result is the sum of all values: the weights are not used.",
            lambda weights, values: values.sum(0, keepdim=True).expand(len(weights), -1),
        ),
    ),
)

EXERCISES = (MIX,)
