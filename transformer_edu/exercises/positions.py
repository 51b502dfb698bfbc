"""The exercises of lesson 06: sinusoidal_positions, add_positions, embed_tokens, position_ids.

Each gallery is one wrong implementation with switches, built on the answer that is right.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import positions
from .exercise import Exercise, Mistake, Probe, Result, Symptom, each, switch
from .outcome import same_value
from .sinusoid import SINUSOID
from .symptoms import KIND_SYMPTOMS, SHAPE_SYMPTOMS, Seen, is_right

X = Result("result", ("batch", "token", "column"))


def _numbers(*shape: int, seed: int) -> Tensor:
    """Numbers from -2 to 2 in steps of a twentieth, the same in every call, none of them 0."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randint(0, 40, shape, generator=generator) * 2 - 39).float() / 20


def _right_where_it_runs(seen: Seen) -> bool:
    """Nothing is wrong but errors, and some results are right."""
    ran = [s for s in seen if s[2].error is None]
    return (
        bool(ran) and all(is_right(*s) for s in ran) and any(s[2].error is not None and not s[0].raises for s in seen)
    )


# ---------------------------------------------------------------- add_positions
def _position_rows(x: Tensor, table: Tensor, rows: str) -> Tensor:
    """The rows of the table that a reader may take, to be broadcast over x (batch, length, d_model)."""
    batch, length, d_model = x.shape
    return {
        "right": lambda: table[:length],
        "batch": lambda: table[:batch],
        "batch_middle": lambda: table[:batch, None],
        "last": lambda: table[-length:],
        "from_one": lambda: table[1 : length + 1],
        "one_less": lambda: table[: length - 1],
        "one_more": lambda: table[: length + 1],
        "whole": lambda: table,
        "width": lambda: table[:d_model],
        "first_for_all": lambda: table[0],
        "last_for_all": lambda: table[length - 1],
        "length_for_all": lambda: table[length],
        "batch_for_all": lambda: table[batch],
        "batch_last_for_all": lambda: table[batch - 1],
        "end_for_all": lambda: table[-1],
        "mean": lambda: table[:length].mean(0),
        "mean_of_table": lambda: table.mean(0),
        "mean_of_columns": lambda: table[:length].mean(-1, keepdim=True),
        "sum": lambda: table[:length].sum(0),
        "reversed": lambda: table[:length].flip(0),
        "reversed_whole": lambda: table.flip(0)[:length],
        "running_sum": lambda: table[:length].cumsum(0),
        "first_sequence": lambda: table[:length] * (torch.arange(batch) == 0)[:, None, None],
        "not_first": lambda: table[:length] * (torch.arange(length) > 0)[:, None],
        "first_token": lambda: table[:length] * (torch.arange(length) == 0)[:, None],
        "first_token_any_length": lambda: F.pad(table[:1], (0, 0, 0, length - 1)),
        "not_last": lambda: table[:length] * (torch.arange(length) < length - 1)[:, None],
        "row_by_row": lambda: table[torch.arange(batch * length).view(batch, length) % len(table)],
        "transposed": lambda: table[:length].T,
        "transposed_view": lambda: table[:length].T.reshape(length, d_model),
        "transposed_first": lambda: table.T[:length],
        "columns": lambda: table[:, :length],
        "first_number": lambda: table[:length, :1],
        "token_numbers": lambda: torch.arange(length).float()[:, None],
    }[rows]()


def _beyond(x: Tensor, table: Tensor, beyond: str) -> Tensor | None:
    """A table for a sequence that is longer than it, as a reader may make one up; None where the sequence is cut."""
    missing = x.shape[1] - len(table)
    return {
        "last_row": lambda: torch.cat([table, table[-1:].expand(missing, -1)]),
        "begins_again": lambda: table[torch.arange(x.shape[1]) % len(table)],
        "nothing": lambda: F.pad(table, (0, 0, 0, missing)),
        "first_row": lambda: torch.cat([table, table[:1].expand(missing, -1)]),
        "interpolated": lambda: F.interpolate(table.T[None], size=x.shape[1])[0].T,
        "cut": lambda: None,
    }[beyond]()


def add(
    x: Tensor,
    table: Tensor,
    *,
    rows: str = "right",
    operation: str = "sum",
    scale: str = "right",
    beyond: str = "refuse",
    form: str = "right",
) -> object:
    """Add positions with any of the ways to go wrong; without a switch it is right."""
    d_model = x.shape[-1]
    if x.shape[1] > len(table) and beyond != "refuse":
        if beyond == "unchanged":
            return x
        if beyond == "none":
            return None
        longer = _beyond(x, table, beyond)
        x, table = (x[:, : len(table)], table) if longer is None else (x, longer)
    places = _position_rows(x, table, rows)
    root = math.sqrt(d_model)
    x, places = {
        "right": lambda: (x, places),
        "tokens_times_root": lambda: (x * root, places),
        "positions_times_root": lambda: (x, places * root),
        "positions_over_root": lambda: (x, places / root),
        "both_times_root": lambda: (x * root, places * root),
        "tokens_over_root": lambda: (x / root, places),
        "both_over_root": lambda: (x / root, places / root),
        "mean": lambda: (x / 2, places / 2),
        "twice": lambda: (x, 2 * places),
        "sum_over_root_two": lambda: (x / math.sqrt(2), places / math.sqrt(2)),
        "half_positions": lambda: (x, places / 2),
        "times_width": lambda: (x * d_model, places),
        "both_times_width": lambda: (x * d_model, places * d_model),
        "tenth": lambda: (x, places / 10),
    }[scale]()
    result = {
        "sum": lambda: x + places,
        "dropped": lambda: x + 0 * places.sum(),
        "product": lambda: x * places,
        "difference": lambda: x - places,
        "difference_turned": lambda: places - x,
        "with_product": lambda: x + x * places,
        "positions_only": lambda: places.expand(x.shape),
        "rows_only": lambda: places,
        "joined": lambda: torch.cat([x, places.expand(x.shape)], -1),
        "joined_positions_first": lambda: torch.cat([places.expand(x.shape), x], -1),
        "joined_as_tokens": lambda: torch.cat([x, places.expand(x.shape)], 1),
        "joined_as_tokens_first": lambda: torch.cat([places.expand(x.shape), x], 1),
        "matrix_product": lambda: x @ places.mT,
        "normalised": lambda: F.layer_norm(x + places, x.shape[-1:]),
        "in_place": lambda: x.add_(places),
        "relu": lambda: (x + places).relu(),
        "length_one": lambda: F.normalize(x + places, dim=-1),
        "tanh": lambda: (x + places).tanh(),
        "larger": lambda: torch.maximum(x, places),
        "sine": lambda: x + places.sin(),
    }[operation]()
    return {
        "right": lambda: result,
        "tokens_first": lambda: result.transpose(0, 1),
        "width_before_tokens": lambda: result.mT,
        "first_sequence": lambda: result[0],
        "batch_mean": lambda: result.mean(0),
        "token_mean": lambda: result.mean(1),
        "token_sum": lambda: result.sum(1),
        "last_token": lambda: result[:, -1],
        "first_token": lambda: result[:, 0],
        "pair": lambda: (x, places),
        "integers": lambda: result.long(),
        "extra_axis": lambda: result[None],
    }[form]()


TOKEN_AXIS = (
    "The rows must run along the tokens, axis 1 of x (batch, length, d_model): take table[:x.shape[1]], which "
    "broadcasts over the batch."
)

ADD_MISTAKES = (
    Mistake(
        "batch_axis",
        "You take as many rows of the table as there are sequences: x.shape[0] is the size of the batch, so it runs "
        f"only where batch and length are equal (or one row broadcasts). {TOKEN_AXIS}",
        switches={"rows": "batch"},
        beside="You take as many rows of the table as there are sequences: x.shape[0] is the size of the batch. "
        f"{TOKEN_AXIS}",
    ),
    Mistake(
        "batch_axis",
        "Each sequence gets one row of the table for all of its tokens: row b is added to sequence b, as in programs "
        f"whose tokens come before the batch. {TOKEN_AXIS}",
        switches={"rows": "batch_middle"},
    ),
    Mistake(
        "result_dropped",
        "You return x unchanged, with no position in it: x + rows makes a new tensor, and leaves x as it was. Return "
        "that new tensor.",
        switches={"operation": "dropped"},
        alone=True,
    ),
    *each(
        "concatenated",
        "The positions stand beside the tokens, and the width is 2 d_model: add them, entry by entry, so that the "
        "width stays what it is.",
        *switch("operation", "joined", "joined_positions_first"),
    ),
    *each(
        "concatenated",
        "The positions stand in the sequence as further tokens: add each row to the token that stands there, so that "
        "length and width stay what they are.",
        *switch("operation", "joined_as_tokens", "joined_as_tokens_first"),
        alone=True,
    ),
    Mistake(
        "sum_scaled",
        "The sum of token and position is multiplied by sqrt(d_model): here nothing is scaled. (Where the scale is "
        "used, it belongs to the token's embedding alone, before the position is added.)",
        switches={"scale": "both_times_root"},
    ),
    Mistake(
        "tokens_scaled",
        "Your tokens are multiplied by sqrt(d_model) here: that is the embedding's work, done before. Only add the "
        "position.",
        switches={"scale": "tokens_times_root"},
    ),
    *(
        Mistake(
            "positions_scaled",
            f"Your positions are {how} before they are added: add the rows as they are.",
            switches={"scale": scale},
        )
        for scale, how in (
            ("positions_times_root", "multiplied by sqrt(d_model)"),
            ("positions_over_root", "divided by sqrt(d_model)"),
            ("twice", "doubled"),
            ("half_positions", "halved"),
            ("tenth", "divided by 10"),
        )
    ),
    *(
        Mistake(
            "sum_scaled",
            f"{what}: add the rows to the tokens as they are, and nothing else.",
            switches={"scale": scale},
        )
        for scale, what in (
            ("tokens_over_root", "Your tokens are divided by sqrt(d_model)"),
            ("both_over_root", "The sum is divided by sqrt(d_model)"),
            ("mean", "You take the mean of token and position, half of their sum"),
            ("sum_over_root_two", "The sum is divided by the root of 2"),
            ("times_width", "Your tokens are multiplied by d_model"),
            ("both_times_width", "The sum is multiplied by d_model"),
        )
    ),
    *(
        Mistake(
            "past_the_table",
            f"Right as long as the table is long enough, but for a longer sequence {what}, and nobody is warned. "
            "Raise an error that names both numbers, the length and the rows there are.",
            switches={"beyond": beyond},
            edge=True,
            beside=f"For a sequence longer than the table {what}, and nobody is warned: raise an error that names "
            "both numbers.",
        )
        for beyond, what in (
            ("last_row", "all late tokens get the last row, and so the same position"),
            ("begins_again", "the positions begin again at 0"),
            ("nothing", "the late tokens get no position"),
            ("first_row", "all late tokens get the row of position 0"),
            ("interpolated", "the rows are stretched"),
            ("cut", "the late tokens are cut off"),
            ("unchanged", "no token gets a position"),
            ("none", "you return None"),
        )
    ),
    Mistake(
        "whole_table",
        "The whole table is added, which runs only where the sequence is as long as the table, or has one token: "
        "that one is then copied to the table's length. Take as many rows as there are tokens, x.shape[1].",
        switches={"rows": "whole"},
    ),
    Mistake(
        "width_axis",
        "You take as many rows of the table as a token has numbers: x.shape[2] is d_model. Take as many as there are "
        "tokens, x.shape[1].",
        switches={"rows": "width"},
    ),
    Mistake(
        "from_one",
        "Your rows begin with position 1: the first token has position 0, so take table[:x.shape[1]].",
        switches={"rows": "from_one"},
    ),
    *each(
        "row_count",
        "You take one row too few or too many: there must be as many as there are tokens, x.shape[1], and table[:n] "
        "has exactly n rows.",
        *switch("rows", "one_less", "one_more"),
    ),
    Mistake(
        "last_rows",
        "You take the last rows of the table: the first token has position 0, so take the first rows.",
        switches={"rows": "last"},
    ),
    *(
        Mistake(
            "one_row_for_all",
            f"Every token gets the same row, {which}: each needs the row of its own place, 0, 1, 2 ...",
            switches={"rows": rows},
        )
        for rows, which in (
            ("first_for_all", "that of position 0"),
            ("last_for_all", "that of the last token's position"),
            ("length_for_all", "table[length]: a single index takes one row, table[:length] the rows up to it"),
            ("batch_for_all", "table[batch]: a single index takes one row, and x.shape[0] is the size of the batch"),
            ("batch_last_for_all", "table[batch - 1], the one of the last sequence's number"),
            ("end_for_all", "the last one of the table"),
            ("mean", "the mean of the rows"),
            ("mean_of_table", "the mean of the whole table"),
            ("sum", "the sum of the rows"),
        )
    ),
    Mistake(
        "mean_of_columns",
        "Every number of a token gets the mean of its row: add the row itself, entry by entry.",
        switches={"rows": "mean_of_columns"},
    ),
    Mistake(
        "mean_of_columns",
        "Every number of a token gets the first number of its row: add the whole row, entry by entry.",
        switches={"rows": "first_number"},
    ),
    Mistake(
        "position_number_added",
        "You add the number of the position itself, 0, 1, 2 ...: add the table's row of that number.",
        switches={"rows": "token_numbers"},
    ),
    *each(
        "rows_reversed",
        "Your rows come in reverse order: the first token has position 0.",
        *switch("rows", "reversed", "reversed_whole"),
    ),
    Mistake(
        "running_sum",
        "Each token gets the sum of all rows up to its own: is the result of one round of the loop kept in the next? "
        "Each token gets one row.",
        switches={"rows": "running_sum"},
    ),
    *(
        Mistake(
            "tokens_left_out",
            f"{which}: every token of every sequence gets the row of its place.",
            switches={"rows": rows},
        )
        for rows, which in (
            ("first_sequence", "Only the first sequence gets positions"),
            ("not_first", "The first token of each sequence gets no position; its row need not be 0"),
            ("first_token", "Only the first token of each sequence gets a position"),
            ("first_token_any_length", "Only the first token of each sequence gets a position"),
            ("not_last", "The last token of each sequence gets no position"),
        )
    ),
    Mistake(
        "counted_through",
        "Your positions go on from one sequence to the next: each sequence begins with position 0.",
        switches={"rows": "row_by_row"},
    ),
    *each(
        "table_transposed",
        "The table's rows and columns are exchanged: a row of it belongs to one position, and its columns to the "
        "columns of x.",
        *switch("rows", "transposed", "transposed_view", "transposed_first", "columns"),
    ),
    Mistake(
        "multiplied",
        "You multiply tokens and positions: add them.",
        switches={"operation": "product"},
        beside="Tokens and positions are multiplied, not added.",
    ),
    Mistake(
        "multiplied",
        "You add the product of token and position: add the row itself.",
        switches={"operation": "with_product"},
    ),
    Mistake("subtracted", "You subtract the positions: add them.", switches={"operation": "difference"}),
    Mistake(
        "subtracted",
        "You subtract the tokens from the positions: add the two.",
        switches={"operation": "difference_turned"},
    ),
    *each(
        "tokens_lost",
        "You return the positions alone, the tokens are gone: add the two.",
        *switch("operation", "positions_only", "rows_only"),
        alone=True,
    ),
    Mistake(
        "matrix_product",
        "You take the matrix product of tokens and positions: add them, entry by entry.",
        switches={"operation": "matrix_product"},
    ),
    *(
        Mistake(
            "something_more",
            f"{what} the sum, which belongs elsewhere: return x plus its rows.",
            switches={"operation": operation},
        )
        for operation, what in (
            ("normalised", "A layer norm is applied to"),
            ("relu", "A relu is applied to"),
            ("length_one", "Each token is divided by its length after"),
            ("tanh", "A tanh is applied to"),
        )
    ),
    Mistake(
        "something_more",
        "You take the larger of token and position in each entry: add them.",
        switches={"operation": "larger"},
    ),
    Mistake(
        "something_more",
        "You take the sine of the rows: they hold sines and cosines already. Add them as they are.",
        switches={"operation": "sine"},
    ),
    Mistake(
        "changes_input",
        "The numbers are right, but x is changed: x += rows (or add_) writes into the caller's tensor, so that "
        "adding again adds twice. x + rows makes a new one.",
        switches={"operation": "in_place"},
        beside="x itself is changed: x += rows writes into the caller's tensor. x + rows makes a new one.",
    ),
    *(
        Mistake(
            "wrong_form",
            f"{what}: return (batch, length, d_model), the same shape as x.",
            switches={"form": form},
        )
        for form, what in (
            ("tokens_first", "Batch and tokens are exchanged in what you return"),
            ("width_before_tokens", "Tokens and width are exchanged in what you return"),
            ("first_sequence", "You return the first sequence alone"),
            ("batch_mean", "You return the mean over the batch"),
            ("token_mean", "You return the mean over the tokens"),
            ("token_sum", "You return the sum over the tokens"),
            (
                "last_token",
                "You return the last token alone; does the return stand behind a loop that keeps one token?",
            ),
            ("first_token", "You return the first token alone; does the return stand inside a loop?"),
            ("extra_axis", "There is one axis too many in what you return"),
            ("integers", "You return whole numbers, which cuts off the decimals"),
        )
    ),
    Mistake(
        "not_added",
        "You return tokens and positions as two tensors: add them.",
        switches={"form": "pair"},
        alone=True,
    ),
)


def _add_probe(batch: int, length: int, d_model: int, rows: int, seed: int) -> Probe:
    return Probe(
        f"x of shape {(batch, length, d_model)}, table of shape {(rows, d_model)}",
        lambda: (_numbers(batch, length, d_model, seed=seed), _numbers(rows, d_model, seed=seed + 50)),
    )


def _error_returned(seen: Seen) -> bool:
    """Right wherever rows suffice; where they do not, an error, or a text, comes back as a result."""
    must_raise = [(p, g) for p, _, g in seen if p.raises and g.error is None]
    others = [is_right(p, e, g) for p, e, g in seen if not p.raises]
    return bool(must_raise) and all(others) and all(isinstance(g.value, (BaseException, str)) for _, g in must_raise)


def _rows_elsewhere(seen: Seen) -> bool:
    """What is added to each token is a row of the table, but somewhere not the row of its place."""
    for probe, e, g in seen:
        if probe.edge:
            continue
        x, table = probe.make()
        if not isinstance(g.value, Tensor) or g.value.shape != e.value.shape or not g.value.is_floating_point():
            return False
        added = (g.value - x)[..., None, :] - table
        if not (added.abs() < 1e-4).all(-1).any(-1).all():
            return False
    return any(not is_right(*s) for s in seen if not s[0].edge)


LONGER = Probe(
    "x of shape (1, 5, 2), table of shape (3, 2): a sequence longer than the table",
    lambda: (_numbers(1, 5, 2, seed=8), _numbers(3, 2, seed=58)),
    edge=True,
    raises=(Exception,),
    may_raise=(Exception,),  # whoever refuses it does what is asked, whatever else is wrong
)

ADD_POSITIONS = Exercise(
    name="positions.add_positions",
    reference=lambda x, table: positions.add_positions(x, table),
    results=(X,),
    probes=(
        _add_probe(1, 3, 4, 8, 1),
        _add_probe(2, 3, 4, 8, 2),
        _add_probe(3, 3, 4, 8, 3),
        _add_probe(2, 6, 4, 6, 4),
        _add_probe(4, 2, 3, 7, 5),
        _add_probe(2, 1, 3, 5, 6),
        _add_probe(2, 4, 4, 6, 7),
        LONGER,
    ),
    compound=add,
    mistakes=ADD_MISTAKES,
    symptoms=(
        Symptom(
            "too_strict",
            "What comes out is right, but some sequences that fit into the table are refused: only one that has more "
            "tokens than the table has rows has to be.",
            _right_where_it_runs,
        ),
        Symptom(
            "error_returned",
            "For a sequence longer than the table you return an error, or its text: return hands it on as a result. "
            "raise ValueError(...) stops the program.",
            _error_returned,
        ),
        *KIND_SYMPTOMS,
        *SHAPE_SYMPTOMS,
        Symptom(
            "rows_elsewhere",
            "Each token gets some row of the table, but not each the row of its place: token p of every sequence gets "
            "row p. table[:x.shape[1]] holds these rows in order, and broadcasts over the batch by itself.",
            _rows_elsewhere,
        ),
    ),
    at_once=2,
)


# ---------------------------------------------------------------- embed_tokens
def embed(
    tokens: Tensor,
    weight: Tensor,
    *,
    rows: str = "right",
    scale: str = "root",
    form: str = "right",
) -> object:
    """Embed tokens with any of the ways to go wrong; without a switch it is right."""
    count, d_model = weight.shape
    looked_up = {
        "right": lambda: weight[tokens],
        "next": lambda: weight[tokens + 1],
        "before": lambda: weight[tokens - 1],
        "before_error": lambda: F.embedding(tokens - 1, weight),
        "next_wrapped": lambda: weight[(tokens + 1) % count],
        "columns": lambda: weight[:, tokens],
        "columns_moved": lambda: weight.T[tokens],
        "places": lambda: weight[torch.arange(tokens.shape[-1])].expand(*tokens.shape, -1),
        "first_sequence": lambda: weight[tokens[0]],
        "first_token": lambda: weight[tokens[:, 0]],
        "last_token": lambda: weight[tokens[:, -1]],
        "without_0": lambda: weight[tokens] * (tokens != 0)[..., None],
        "reversed": lambda: weight.flip(0)[tokens],
        "view": lambda: weight.T.reshape(count, d_model)[tokens],
        "length_one": lambda: F.normalize(weight, dim=-1)[tokens],
        "length_one_looked_up": lambda: weight[tokens] / weight[tokens].norm(dim=-1, keepdim=True),
        "one_hot": lambda: F.one_hot(tokens, count).float(),
        "as_matrix": lambda: tokens.float() @ weight,
        "as_whole_matrix": lambda: tokens @ weight,
        "one_hot_whole": lambda: F.one_hot(tokens, count) @ weight,
        "one_hot_linear": lambda: F.linear(F.one_hot(tokens, count).float(), weight),
        "product": lambda: tokens[..., None] * weight.mean(0),
        "with_places": lambda: weight[tokens],
    }[rows]()
    factor = {
        "root": lambda: math.sqrt(d_model),
        "none": lambda: 1.0,
        "vocabulary": lambda: math.sqrt(count),
        "width": lambda: float(d_model),
        "over_root": lambda: 1 / math.sqrt(d_model),
        "over_width": lambda: 1 / d_model,
        "length": lambda: math.sqrt(tokens.shape[-1]),
        "batch": lambda: math.sqrt(tokens.shape[0]),
        "tokens": lambda: math.sqrt(tokens.numel()),
        "over_vocabulary": lambda: 1 / math.sqrt(count),
        "square": lambda: float(d_model) ** 2,
        "fourth_root": lambda: d_model**0.25,
        "root_of_half": lambda: math.sqrt(d_model / 2),
        "root_of_512": lambda: math.sqrt(512),
        "half_width": lambda: d_model / 2,
        "floored": lambda: float(math.isqrt(d_model)),
        "three_halves": lambda: d_model**1.5,
        "vocabulary_itself": lambda: float(count),
        "logarithm": lambda: math.log(d_model),
        "axes": lambda: math.sqrt(weight.dim()),
        "all": lambda: math.sqrt(weight.numel()),
    }
    result = looked_up + math.sqrt(d_model) if scale == "added" else None
    result = looked_up**2 if scale == "squared_entries" else result
    result = looked_up.sqrt() * d_model**0.5 if scale == "root_of_entries" else result
    result = looked_up.sqrt() if scale == "root_of_entries_only" else result
    result = looked_up.abs().sqrt() if scale == "root_of_size" else result
    result = looked_up * factor[scale]() if result is None else result
    if rows == "with_places":
        result = result + positions.sinusoidal_positions(tokens.shape[-1], d_model)
    return {
        "right": lambda: result,
        "tokens_first": lambda: result.transpose(0, 1),
        "width_first": lambda: result.mT,
        "mean": lambda: result.mean(1),
        "sum": lambda: result.sum(1),
        "batch_mean": lambda: result.mean(0),
        "batch_sum": lambda: result.sum(0),
        "width_sum": lambda: result.sum(-1),
        "normalised": lambda: F.layer_norm(result, result.shape[-1:]),
        "integers": lambda: result.long(),
        "running_sum": lambda: result.cumsum(1),
        "pair": lambda: (looked_up, factor["root"]()),
        "softmax": lambda: result.softmax(-1),
    }[form]()


FACTOR = "section 3.4 of the paper multiplies by sqrt(d_model), and d_model is weight.shape[1]"

EMBED_MISTAKES = (
    Mistake(
        "no_scale",
        f"The right rows, but smaller than they should be by the factor sqrt(d_model): {FACTOR}.",
        switches={"scale": "none"},
        beside=f"The rows are not scaled: {FACTOR}.",
    ),
    Mistake(
        "scaled_by_vocabulary",
        "The right rows, but the factor is sqrt(vocab_size), the number of rows of weight: take the width, "
        "weight.shape[1].",
        switches={"scale": "vocabulary"},
        beside="The factor is sqrt(vocab_size), the number of rows of weight: take the width, weight.shape[1].",
    ),
    Mistake(
        "divided",
        "The right rows, but divided by sqrt(d_model), as the scores of attention are. Here the rows are multiplied "
        "by it.",
        switches={"scale": "over_root"},
        beside="The rows are divided by sqrt(d_model), and should be multiplied by it.",
    ),
    Mistake(
        "root_missing",
        "The right rows, but the factor is d_model: take its square root, and multiply once.",
        switches={"scale": "width"},
        beside="The factor is d_model: take its square root, and multiply once.",
    ),
    *(
        Mistake(
            "wrong_factor",
            f"The right rows, but the factor is {what}: {FACTOR}.",
            switches={"scale": scale},
            beside=f"The factor is {what}: {FACTOR}.",
        )
        for scale, what in (
            ("length", "sqrt(length), the number of tokens in a sequence"),
            ("batch", "sqrt(batch), the number of sequences"),
            ("tokens", "the root of the number of all tokens"),
            ("over_width", "1 / d_model"),
            ("over_vocabulary", "1 / sqrt(vocab_size)"),
            ("square", "the square of d_model, not its root"),
            ("fourth_root", "the fourth root of d_model"),
            ("root_of_half", "sqrt(d_model / 2)"),
            ("root_of_512", "sqrt(512), the root of the paper's width"),
            ("half_width", "d_model / 2, which ** 1 / 2 or * 0.5 gives; ** 0.5 is the root"),
            ("floored", "sqrt(d_model) rounded down to a whole number"),
            ("three_halves", "d_model times sqrt(d_model)"),
            ("vocabulary_itself", "vocab_size"),
            ("logarithm", "log(d_model)"),
            ("axes", "the root of 2: weight.dim() and len(weight.shape) count the axes of weight"),
            ("all", "the root of the number of all entries of weight"),
        )
    ),
    Mistake(
        "added",
        f"You add sqrt(d_model) to every entry: {FACTOR}.",
        switches={"scale": "added"},
    ),
    *each(
        "root_of_entries",
        f"You take the root of the entries (nan where one is negative), not of d_model: {FACTOR}.",
        *switch("scale", "root_of_entries", "root_of_entries_only", "root_of_size"),
    ),
    Mistake(
        "squared_entries",
        f"You square the entries: {FACTOR}.",
        switches={"scale": "squared_entries"},
    ),
    *each(
        "ids_shifted",
        "Every token gets the row of the id after its own: ids count from 0, and token i has row i of weight.",
        *switch("rows", "next", "next_wrapped"),
    ),
    *each(
        "ids_shifted",
        "Every token gets the row of the id before its own: ids count from 0, and token i has row i of weight.",
        *switch("rows", "before", "before_error"),
    ),
    *each(
        "columns_looked_up",
        "You look up columns of weight: a token's vector is a row, weight[tokens].",
        *switch("rows", "columns", "columns_moved"),
    ),
    Mistake(
        "places_looked_up",
        "You look up the tokens' places, 0, 1, 2 ..., and not the tokens: the row is chosen by the token's id.",
        switches={"rows": "places"},
    ),
    *(
        Mistake(
            "tokens_left_out",
            f"{what}: every token of every sequence gets a vector, (batch, length, d_model).",
            switches={"rows": rows},
        )
        for rows, what in (
            ("first_sequence", "Only the first sequence is looked up"),
            ("first_token", "Only the first token of each sequence is looked up"),
            ("last_token", "Only the last token of each sequence is looked up"),
        )
    ),
    Mistake(
        "token_0_zero",
        "Token 0 gets a vector of zeros, as a padding token would: nothing says here that 0 is padding, so look its "
        "row up like any other.",
        switches={"rows": "without_0"},
    ),
    Mistake(
        "rows_reversed",
        "The rows of weight are counted from the end: token i has row i, counted from the first.",
        switches={"rows": "reversed"},
    ),
    Mistake(
        "weight_reshaped",
        "The numbers of weight are cut into other rows, by a reshape of its transpose: a token's vector is a row of "
        "weight as it is.",
        switches={"rows": "view"},
    ),
    *each(
        "rows_normalised",
        "Your rows are divided by their own length, so that all are equally long: multiply them as they are.",
        *switch("rows", "length_one", "length_one_looked_up"),
    ),
    Mistake(
        "one_hot_only",
        "You return one-hot vectors of width vocab_size: their product with weight is the lookup, (batch, length, "
        "d_model).",
        switches={"rows": "one_hot"},
    ),
    Mistake(
        "ids_as_numbers",
        "The ids are used as numbers: they are multiplied, but they only name a row of weight. Look it up: "
        "weight[tokens].",
        switches={"rows": "product"},
    ),
    *each(
        "ids_as_numbers",
        "The ids are used as numbers, in a matrix product: they only name a row of weight. Look it up: weight[tokens].",
        *switch("rows", "as_matrix", "as_whole_matrix"),
    ),
    Mistake(
        "one_hot_of_whole_numbers",
        "One-hot vectors are whole numbers and weight is not, so their product is refused: .float() converts them. A "
        "lookup, weight[tokens], needs neither.",
        switches={"rows": "one_hot_whole"},
    ),
    Mistake(
        "one_hot_width",
        "F.one_hot makes as many columns as the largest id that occurs needs: tell it the number of rows of weight, "
        "F.one_hot(tokens, weight.shape[0]).",
        wrong=lambda tokens, weight: F.one_hot(tokens).float() @ weight * weight.shape[1] ** 0.5,
    ),
    Mistake(
        "one_hot_width",
        "Your one-hot vectors have d_model columns: they need one for each row of weight, F.one_hot(tokens, "
        "weight.shape[0]).",
        wrong=lambda tokens, weight: F.one_hot(tokens, weight.shape[1]).float() @ weight * weight.shape[1] ** 0.5,
    ),
    Mistake(
        "root_of_a_number",
        "The function torch.sqrt takes a tensor, and d_model is a number of Python: math.sqrt(d_model) or d_model ** "
        "0.5.",
        wrong=lambda tokens, weight: weight[tokens] * torch.sqrt(weight.shape[1]),
    ),
    Mistake(
        "one_hot_transposed",
        "F.linear multiplies by the transpose of weight: the product of one-hot vectors is with weight itself, "
        "one_hot @ weight.",
        switches={"rows": "one_hot_linear"},
    ),
    Mistake(
        "positions_too",
        "Positions are added here already: this function only looks up and scales.",
        switches={"rows": "with_places"},
    ),
    *(
        Mistake(
            "wrong_form",
            f"{what}: the result should be (batch, length, d_model), one vector for each token.",
            switches={"form": form},
        )
        for form, what in (
            ("tokens_first", "Batch and tokens are exchanged in what you return"),
            ("width_first", "Tokens and width are exchanged in what you return"),
            ("mean", "You return the mean over the tokens"),
            ("sum", "You return the sum over the tokens"),
            ("batch_mean", "You return the mean over the batch"),
            ("batch_sum", "You return the sum over the batch"),
            ("width_sum", "You return the sum over the width"),
            ("running_sum", "Each token holds the sum of all up to it"),
            ("integers", "You return whole numbers, which cuts off the decimals"),
        )
    ),
    Mistake(
        "normalised",
        "A layer norm is applied to the result, which belongs elsewhere: only look up and multiply.",
        switches={"form": "normalised"},
        alone=True,
    ),
    Mistake(
        "softmax_too",
        "A softmax is applied to the result: only look up and multiply.",
        switches={"form": "softmax"},
    ),
    Mistake(
        "not_multiplied",
        "You return the rows and the factor apart: multiply them.",
        switches={"form": "pair"},
        alone=True,
    ),
)


def _weight_changed(seen: Seen) -> bool:
    return all(same_value(e.value, g.value) for _, e, g in seen) and any(1 in g.changed for *_, g in seen)


EMBED_TOKENS = Exercise(
    name="positions.embed_tokens",
    reference=lambda tokens, weight: positions.embed_tokens(tokens, weight),
    results=(X,),
    probes=(
        Probe(
            "tokens [[1, 0, 2], [2, 2, 1]], weight of shape (3, 4)",
            lambda: (torch.tensor([[1, 0, 2], [2, 2, 1]]), _numbers(3, 4, seed=11)),
        ),
        Probe("tokens [[3, 1]], weight of shape (5, 9)", lambda: (torch.tensor([[3, 1]]), _numbers(5, 9, seed=12))),
        Probe(
            "tokens [[0, 6], [5, 4], [1, 1]], weight of shape (7, 2)",
            lambda: (torch.tensor([[0, 6], [5, 4], [1, 1]]), _numbers(7, 2, seed=13)),
        ),
        Probe(
            "tokens [[4, 0, 2, 3, 1], [0, 0, 1, 2, 3]], weight of shape (5, 6)",
            lambda: (torch.tensor([[4, 0, 2, 3, 1], [0, 0, 1, 2, 3]]), _numbers(5, 6, seed=14)),
        ),
        Probe(
            "tokens [[1, 0, 2], [2, 2, 1]], weight of shape (3, 1)",
            lambda: (torch.tensor([[1, 0, 2], [2, 2, 1]]), _numbers(3, 1, seed=15)),
        ),
    ),
    compound=embed,
    mistakes=EMBED_MISTAKES,
    symptoms=(
        Symptom(
            "changes_input",
            "The numbers are right, but weight itself is changed: *= writes into the caller's tensor, so that the "
            "next lookup is scaled twice. Multiply what was looked up, with *.",
            _weight_changed,
        ),
        *KIND_SYMPTOMS,
        *SHAPE_SYMPTOMS,
    ),
    at_once=2,
)


# ---------------------------------------------------------------- position_ids
def _settled(arguments: tuple, result: object) -> object:
    """Ids under padding are free, as long as they are valid: they are set to what the reference has."""
    (mask,) = arguments
    if not isinstance(result, Tensor) or result.shape != mask.shape or result.dtype != torch.int64 or result.is_meta:
        return result
    return torch.where(mask | (result < 0), result, positions.position_ids(mask))


def count(
    mask: Tensor,
    *,
    counted: str = "right",
    start: str = "zero",
    padding: str = "free",
    form: str = "right",
) -> object:
    """Count positions with any of the ways to go wrong; without a switch it is right."""
    real, (batch, length) = mask.long(), mask.shape
    column = torch.arange(length).expand(batch, length)
    total = real.sum(-1, keepdim=True)
    ids = {
        "right": lambda: real.cumsum(-1) - 1,
        "columns": lambda: column,
        "left_padding_only": lambda: column - (length - total),
        "tokens": lambda: real,
        "batch": lambda: real.cumsum(0) - 1,
        "flat": lambda: real.flatten().cumsum(0).view(batch, length) - 1,
        "padding_counted": lambda: (1 - real).cumsum(-1) - 1,
        "padding_counted_from_zero": lambda: (1 - real).cumsum(-1),
        "padding_counted_clamped": lambda: ((1 - real).cumsum(-1) - 1).clamp(min=0),
        "backwards": lambda: real.cumsum(-1) - total,
        "from_the_right": lambda: real.flip(-1).cumsum(-1).flip(-1) - 1,
        "from_the_right_clamped": lambda: (real.flip(-1).cumsum(-1).flip(-1) - 1).clamp(min=0),
        "from_the_right_of_all": lambda: length - real.cumsum(-1),
        "from_the_right_columns": lambda: length - 1 - column,
        "flipped_once": lambda: real.flip(-1).cumsum(-1) - 1,
        "flipped_once_clamped": lambda: (real.flip(-1).cumsum(-1) - 1).clamp(min=0),
        "first_pads": lambda: (column - (1 - real[0]).sum()).clamp(min=0),
        "from_the_end": lambda: column - total,
        "total": lambda: total.expand(batch, length),
        "total_alone": lambda: total[:, 0],
        "total_column": lambda: total,
        "first_without_axis": lambda: torch.arange(length) - real.argmax(-1),
        "total_minus_one": lambda: total.expand(batch, length) - 1,
        "first_shift": lambda: (column - real[0].argmax()).clamp(min=0),
        "first_row": lambda: (real[:1].cumsum(-1) - 1).expand(batch, length),
        "last_row": lambda: (real[-1:].cumsum(-1) - 1).expand(batch, length),
        "most_padding": lambda: column - (length - total).max(),
        "least_padding": lambda: column - (length - total).min(),
        "cut_at_length": lambda: torch.minimum(column, total - 1),
        "columns_times_mask": lambda: column * real,
        "counted_twice": lambda: real.cumsum(-1).cumsum(-1) - 1,
        "squeezed": lambda: mask.nonzero()[:, 1],
        "nonzero": lambda: mask.nonzero(),
        "all_zero": lambda: torch.zeros_like(real),
        "batch_numbers": lambda: torch.arange(batch)[:, None].expand(batch, length),
        "longest": lambda: torch.arange(int(total.max())).expand(batch, -1),
        "added": lambda: column + (length - total),
    }[counted]()
    ids = {"zero": ids, "one": ids + 1, "two": ids + 2, "minus_one": ids - 1}[start]
    if padding == "free" and ids.shape == mask.shape:
        ids = ids.clamp(min=0) if counted in ("right", "left_padding_only", "most_padding", "flat", "batch") else ids
    if padding in ("minus_one", "minus_100") and ids.shape == mask.shape:
        ids = ids.masked_fill(~mask, -1 if padding == "minus_one" else -100)
    return {
        "right": lambda: ids,
        "float": lambda: ids.float(),
        "double": lambda: ids.double(),
        "int32": lambda: ids.int(),
        "bool": lambda: ids.bool(),
        "transposed": lambda: ids.T,
        "one_sequence": lambda: ids[0],
        "one_sequence_axis": lambda: ids[:1],
        "row": lambda: torch.arange(length),
        "row_axis": lambda: torch.arange(length)[None],
        "last": lambda: ids[:, -1],
        "only_real": lambda: ids[mask],
        "list_of_rows": lambda: [row[keep] for row, keep in zip(ids, mask, strict=True)],
        "one_hot": lambda: F.one_hot(ids.clamp(min=0)),
    }[form]()


def _only_under_padding(seen: Seen) -> bool:
    """Real tokens are right everywhere, and some padding has a negative id."""
    below = False
    for probe, e, g in seen:
        (mask,) = probe.make()
        if not isinstance(g.value, Tensor) or g.value.shape != mask.shape or g.value.dtype != torch.int64:
            return False
        if not torch.equal(g.value[mask], e.value[mask]):
            return False
        below = below or bool((g.value < 0).any())
    return below


def _lists(seen: Seen) -> bool:
    """Lists of numbers, right on all real tokens."""
    for probe, e, g in seen:
        (mask,) = probe.make()
        if not isinstance(g.value, list):
            return False
        try:
            mine = torch.tensor(g.value)
        except (TypeError, ValueError, RuntimeError):
            return False
        if mine.shape != mask.shape or not torch.equal(mine[mask].long(), e.value[mask]):
            return False
    return True


def _no_left_padding(seen: Seen) -> bool:
    """Right where no padding stands on the left, wrong on real tokens wherever some does."""
    sides = []
    for probe, e, g in seen:
        (mask,) = probe.make()
        if not isinstance(g.value, Tensor) or g.value.shape != mask.shape or g.value.dtype != torch.int64:
            return False
        sides.append((bool((~mask[:, 0]).any()), torch.equal(g.value[mask], e.value[mask])))
    return all(left != right for left, right in sides)


NEGATIVE_BESIDE = (
    "Padding gets a negative id. In a lookup with F.embedding or nn.Embedding -1 is an error, and weight[-1] is the "
    "table's LAST row: ids under padding may be anything that is valid, so clamp them to 0."
)
NEGATIVE = f"The real tokens are counted right, but not the padding. {NEGATIVE_BESIDE}"
LEFT = (
    "With padding on the left every real token's id is too large, by the number of pads before it: you number the "
    "columns. That holds only while the padding stands on the right; count the real tokens instead, each row for "
    "itself."
)

ALL_PADS = (
    "With padding on the right the ids of real tokens come out too small, as if all the padding of the row stood on "
    "the left: is the number of ALL pads subtracted from the column, or are the ids written to the end of the row? "
    "Only the pads before a token count."
)

IDS_MISTAKES = (
    Mistake("columns_numbered", LEFT, switches={"counted": "columns"}),
    *(
        Mistake("negative", NEGATIVE, switches={"padding": padding}, beside=NEGATIVE_BESIDE)
        for padding in ("kept", "minus_one", "minus_100")
    ),
    Mistake(
        "tokens_as_ids",
        "You return the mask itself as numbers: all real tokens get the id 1. Count them, 0, 1, 2 ... in each row.",
        switches={"counted": "tokens"},
        alone=True,
    ),
    Mistake(
        "from_one",
        "Your ids count the real tokens from 1: the first should have id 0, so subtract 1 from the running sum.",
        switches={"start": "one"},
        beside="Your ids are one too large: the first real token should have id 0.",
    ),
    Mistake(
        "from_two",
        "Your ids count the real tokens from 2, as in models that keep ids 0 and 1 for padding. Here the first "
        "should have id 0.",
        switches={"start": "two"},
        beside="Your ids are two too large: the first real token should have id 0.",
    ),
    Mistake(
        "one_too_small",
        "Your ids are one too small and cut off at 0, so that the first two real tokens of a row get the same id: the "
        "first should have id 0, the second 1.",
        switches={"start": "minus_one"},
    ),
    Mistake(
        "one_too_small",
        "Your ids are one too small: the first real token should have id 0, and yours has -1.",
        switches={"start": "minus_one", "padding": "kept"},
        alone=True,
    ),
    *(
        Mistake(
            "left_padding_only",
            f"Right for padding on the left. {ALL_PADS}",
            switches={"counted": "left_padding_only", "padding": padding},
            beside=ALL_PADS,
        )
        for padding in ("clamped", "free")
    ),
    Mistake(
        "batch_axis",
        "You count down the batch (axis 0): the positions run along a row, axis 1, so cumsum(-1).",
        switches={"counted": "batch"},
    ),
    Mistake(
        "counted_through",
        "Your count goes on from one sequence to the next: each row begins with 0, so count along the last axis.",
        switches={"counted": "flat"},
    ),
    *each(
        "padding_counted",
        "You count the padding instead of the real tokens: True in mask is a real token.",
        *switch("counted", "padding_counted", "padding_counted_from_zero", "padding_counted_clamped"),
    ),
    *each(
        "from_the_right",
        "Your ids run from right to left: the first real token of a row should have id 0, the next one 1.",
        *switch("counted", "from_the_right", "from_the_right_clamped", "from_the_right_columns"),
    ),
    Mistake(
        "from_the_right",
        "Your ids run from right to left, and begin with the length of the row less 1, padding included: the first "
        "real token of a row should have id 0, the next one 1.",
        switches={"counted": "from_the_right_of_all"},
    ),
    *each(
        "flipped_once",
        "You turn the mask round to count it (flip), and do not turn the ids back, so that each real token gets the id "
        "of the column at the other end. Count from the left: no flip is needed.",
        *switch("counted", "flipped_once", "flipped_once_clamped"),
    ),
    Mistake(
        "from_the_end",
        "You subtract the number of real tokens from the column: what has to be subtracted is the number of pads "
        "before the token.",
        switches={"counted": "from_the_end"},
    ),
    Mistake(
        "backwards",
        "Your ids end with 0 at the last real token and are negative before it: what is subtracted from the running "
        "sum is 1, not the whole sum.",
        switches={"counted": "backwards"},
    ),
    *each(
        "one_number_per_row",
        "Every token of a row gets the same number, the count of the row's real tokens: use the running sum, cumsum, "
        "not the sum.",
        *switch("counted", "total", "total_minus_one"),
    ),
    *each(
        "one_number_per_row",
        "You return one number for each row, the count of its real tokens: use the running sum, cumsum, not the sum.",
        *switch("counted", "total_alone", "total_column"),
    ),
    Mistake(
        "no_keepdim",
        "Where each row begins is known as (batch,), and lines up with the columns instead of the rows: keepdim=True "
        "keeps an axis of size 1, (batch, 1).",
        switches={"counted": "first_without_axis"},
    ),
    *(
        Mistake(
            "one_row_for_all",
            f"All sequences get the ids of the {which} one: each has its own padding.",
            switches={"counted": f"{which}_row"},
        )
        for which in ("first", "last")
    ),
    *(
        Mistake(
            "one_shift_for_all",
            f"All sequences are shifted alike, by {which} in the batch: each row has its own.",
            switches={"counted": counted},
        )
        for counted, which in (
            ("most_padding", "the most padding of any"),
            ("least_padding", "the least padding of any"),
            ("first_shift", "the padding of the first"),
            ("first_pads", "the padding of the first"),
        )
    ),
    Mistake(
        "columns_numbered",
        f"{LEFT} (Columns past the row's length keep its last id, which is harmless.)",
        switches={"counted": "cut_at_length"},
    ),
    Mistake(
        "columns_numbered",
        f"{LEFT} (That the padding itself gets 0 is harmless.)",
        switches={"counted": "columns_times_mask"},
    ),
    Mistake(
        "counted_twice",
        "The running sum is taken twice: one cumsum counts the real tokens.",
        switches={"counted": "counted_twice"},
    ),
    Mistake(
        "all_zero",
        "Every id is 0: all tokens stand in the same place.",
        switches={"counted": "all_zero"},
        alone=True,
    ),
    Mistake(
        "batch_numbers",
        "Every token gets the number of its sequence in the batch: ids run along a row.",
        switches={"counted": "batch_numbers"},
        alone=True,
    ),
    Mistake(
        "shift_added",
        "The number of pads is added to the column: subtract those that stand before the token.",
        switches={"counted": "added"},
    ),
    Mistake(
        "longest_only",
        "Your ids are as wide as the longest sequence has real tokens: return one id for each column of mask, "
        "(batch, length).",
        switches={"counted": "longest"},
    ),
    *each(
        "floats",
        "The ids are floats: a lookup takes whole numbers, dtype int64. cumsum of a float mask stays float, .long() "
        "converts.",
        *switch("form", "float", "double"),
    ),
    Mistake(
        "int32",
        "Your ids are of dtype int32: positions are int64, as torch.arange gives them. mask.long() converts before "
        "the count.",
        switches={"form": "int32"},
    ),
    Mistake(
        "bools",
        "Your ids are bool, True for every count but 0: return whole numbers, dtype int64.",
        switches={"form": "bool"},
        alone=True,
    ),
    Mistake(
        "transposed",
        "Batch and length are exchanged in what you return: (batch, length), as mask.",
        switches={"form": "transposed"},
    ),
    *(
        Mistake(
            "one_row_only",
            f"{what}: every sequence needs its own ids, (batch, length), since each has its own padding.",
            switches={"form": form},
            alone=True,
        )
        for form, what in (
            ("row", "You return one row of column numbers for the whole batch"),
            ("row_axis", "You return one row of column numbers for the whole batch"),
            ("one_sequence", "You return the ids of the first sequence alone"),
            ("one_sequence_axis", "You return the ids of the first sequence alone"),
            ("last", "You return the last column alone"),
        )
    ),
    *each(
        "only_real",
        "You return ids for the real tokens alone, without the padding: the result has the shape of mask, and "
        "padding gets some valid id, such as 0.",
        *switch("form", "only_real", "list_of_rows"),
    ),
    *each(
        "only_real",
        "You list where the real tokens stand, as nonzero does, instead of counting them: the result has the shape "
        "of mask, and cumsum counts along its rows.",
        *switch("counted", "nonzero", "squeezed"),
    ),
    Mistake(
        "one_hot_too",
        "You return the ids as one-hot vectors: return the numbers, (batch, length).",
        switches={"form": "one_hot"},
    ),
)


def _mask_probe(*rows: str) -> Probe:
    says = ", ".join(f"[{', '.join(row)}]" for row in rows)
    return Probe(f"mask [{says}] (1 = real)", lambda: (torch.tensor([[c == "1" for c in row] for row in rows]),))


POSITION_IDS = Exercise(
    name="positions.position_ids",
    reference=lambda mask: positions.position_ids(mask),
    results=(Result("ids", ("sequence", "column")),),
    probes=(
        _mask_probe("111", "111"),
        _mask_probe("111", "110"),
        _mask_probe("1111", "0011"),
        _mask_probe("00011", "01111", "11111"),
        _mask_probe("1100", "1000", "1110"),
        _mask_probe("0111"),
        _mask_probe("001", "111", "011"),
        _mask_probe("1110", "0111"),
    ),
    compound=count,
    mistakes=IDS_MISTAKES,
    symptoms=(
        Symptom("negative", NEGATIVE, _only_under_padding),
        Symptom(
            "lists",
            "The real tokens are counted right, but the ids come as lists: torch.tensor makes a tensor of them.",
            _lists,
        ),
        Symptom(
            "left_padding",
            "Right while the padding stands on the right, wrong as soon as some stands on the left. Count the real "
            "tokens of each row: the first should have id 0, wherever it stands.",
            _no_left_padding,
        ),
        *KIND_SYMPTOMS,
        *SHAPE_SYMPTOMS,
    ),
    settled=_settled,
    at_once=2,
)

EXERCISES: tuple[Exercise, ...] = (SINUSOID, ADD_POSITIONS, EMBED_TOKENS, POSITION_IDS)
