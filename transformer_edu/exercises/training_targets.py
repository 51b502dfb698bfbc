"""The exercise smoothed_targets of lesson 09."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import training
from .attention_symptoms import NUMPY
from .exercise import Exercise, Mistake, Probe, Result, Symptom
from .outcome import close, said, same_outcome, same_value
from .symptoms import CHANGES_INPUT, MORE_RESULTS, ONLY_SHAPE, Seen
from .training_parts import one, right_only_without

__all__ = ["SMOOTHED_TARGETS"]


# ---------------------------------------------------------------- one wrong implementation
def _others(vocab: int, eps: float, share: str) -> float:
    """What every word gets that is neither the target nor padding."""
    return {
        "vocab": lambda: eps / vocab,
        "one_less": lambda: eps / (vocab - 1),
        "three_less": lambda: eps / (vocab - 3),
        "undivided": lambda: eps,
        "nothing": lambda: 0.0,
        "rest": lambda: (1 - eps) / (vocab - 2),
        "rest_vocab": lambda: (1 - eps) / vocab,
        "rest_one_less": lambda: (1 - eps) / (vocab - 1),
        "uniform": lambda: 1 / vocab,
        "uniform_two_less": lambda: 1 / (vocab - 2),
        "negative": lambda: -eps / (vocab - 2),
    }.get(share, lambda: eps / (vocab - 2))()


def _on_target(eps: float, others: float, confidence: str) -> float:
    return {
        "one": lambda: 1.0,
        "eps": lambda: eps,
        "and_share": lambda: 1 - eps + others,
        "less_share": lambda: 1 - eps - others,
        "one_and_share": lambda: 1 + others,
        "nothing": lambda: 0.0,
        "share": lambda: others,
        "twice": lambda: 1 - 2 * eps,
    }.get(confidence, lambda: 1 - eps)()


def _placed(table: Tensor, target: Tensor, value: float, place: str) -> Tensor:
    """The table with the value of the targets in it."""
    if place == "columns":
        table[:, target] = value
    elif place == "rows":
        table[target] = value
    elif place == "one_less":
        table.scatter_(1, (target - 1).clamp(min=0)[:, None], value)
    else:
        table.scatter_(1, target[:, None], value)
    return table


def _rows_of_padding(table: Tensor, target: Tensor, pad: int, rows: str, eps: float) -> Tensor:
    """The table after what the reader does to the rows of padding."""
    vocab = table.shape[1]
    is_pad = (target == pad)[:, None]
    if rows == "row_number":
        table[pad] = 0.0
    if rows == "others_zeroed":
        table = table.masked_fill(~is_pad, 0.0)
    if rows == "any_entry":
        table[(table == float(pad)).any(-1)] = 0.0
    if rows == "last":
        table[-1] = 0.0
    filled = {"right": 0.0, "uniform": 1 / vocab, "ones": 1.0, "minus_inf": -torch.inf, "nan": torch.nan}
    if rows in filled:
        table = table.masked_fill(is_pad, filled[rows])
    if rows == "one_hot":
        table = torch.where(is_pad, F.one_hot(target, vocab).float(), table)
    if rows == "one_beside_shares":
        table = torch.where(is_pad & (torch.arange(vocab) == pad), 1.0, table)
    if rows == "confident":
        table = torch.where(is_pad & (torch.arange(vocab) == pad), 1 - eps, table)
    if rows == "mask_without_axis":
        table = table * (target != pad)
    if rows == "removed":
        table = table[target != pad]
    return table


def _finished(table: Tensor, target: Tensor, pad: int, result: str) -> object:
    return {
        "normalised": lambda: table / table.sum(-1, keepdim=True).clamp(min=1e-9),
        "transposed": lambda: table.T,
        "logarithm": lambda: table.log(),
        "softmax": lambda: table.softmax(-1),
        "integers": lambda: table.long(),
        "bool": lambda: table > 0,
        "averaged": lambda: table.mean(0),
        "summed": lambda: table.sum(0),
        "column_missing": lambda: torch.cat([table[:, :pad], table[:, pad + 1 :]], 1),
        "at_target": lambda: table.gather(1, target[:, None])[:, 0],
    }.get(result, lambda: table)()


def targets_wrongly(
    target: Tensor,
    vocab: int,
    eps: float,
    pad: int,
    *,
    share: str = "right",
    confidence: str = "right",
    place: str = "right",
    column: str = "right",
    rows: str = "right",
    which: str = "right",
    result: str = "right",
) -> object:
    """The table of targets with any of the ways to go wrong; without a switch it is right."""
    pad = {"zero": 0, "last": vocab - 1, "one": 1}.get(which, pad)
    eps = 0.1 if which == "eps_fixed" else eps
    others = _others(vocab, eps, share)
    table = torch.full((len(target), vocab), others)
    table = _placed(table, target, _on_target(eps, others, confidence), place)
    if column == "right":
        table[:, pad] = 0.0
    if column == "minus_inf":
        table[:, pad] = -torch.inf
    if column == "others_zeroed":
        table[:, torch.arange(vocab) != pad] = 0.0
    table = _rows_of_padding(table, target, pad, rows, eps)
    return _finished(table, target, pad, result)


# ---------------------------------------------------------------- the gallery
SHARES = (
    "The share eps goes to vocab - 2 words: all but the target, which keeps 1 - eps, and padding, which gets nothing."
)
ROWS = "A target that is padding gives a row of zeros, which adds nothing to the loss."
WHICH_ROWS = "Which rows those are must be asked of the target: target == pad."
COLUMN = "Padding is never to be predicted: column `pad` is 0 in every row."

PADDING = "Row and column of padding are 0."
PADDINGS = ({}, {"column": "kept"}, {"rows": "kept"}, {"column": "kept", "rows": "kept"})

TARGETS_MISTAKES = (
    # how much the other words get
    *one(
        "share",
        "divided_by_vocab",
        f"You divide eps by vocab, so your rows sum to less than 1. {SHARES}",
        "vocab",
    ),
    *one(
        "share",
        "divided_by_vocab_minus_one",
        "You divide eps by vocab - 1, so your rows sum to less than 1: padding's share is counted and then taken away. "
        + SHARES,
        "one_less",
    ),
    *one("share", "divided_by_vocab_minus_three", f"You divide eps by vocab - 3. {SHARES}", "three_less", rare=True),
    *one(
        "share",
        "eps_undivided",
        f"Every other word gets the whole of eps, so your rows sum to more than 1. {SHARES}",
        "undivided",
    ),
    *one(
        "share",
        "others_get_nothing",
        f"The other words get nothing: eps is taken from the target and given to none. {SHARES}",
        "nothing",
    ),
    *one(
        "share",
        "rest_shared",
        f"The other words share 1 - eps instead of eps. {SHARES}",
        "rest",
        "rest_vocab",
        "rest_one_less",
    ),
    *one(
        "share",
        "share_without_eps",
        f"What the other words get does not depend on eps in your table. {SHARES}",
        "uniform",
    ),
    *one(
        "share",
        "share_without_eps",
        f"What the other words get does not depend on eps in your table. {SHARES}",
        "uniform_two_less",
    ),
    *one("share", "negative_share", f"The other words get a negative share. {SHARES}", "negative", rare=True),
    *(
        Mistake(
            "torch_form",
            "You smooth as torch's cross_entropy does: eps is divided by vocab, and the target gets such a share on "
            "top of "
            f"its 1 - eps. The Annotated Transformer does otherwise. {SHARES} {PADDING if padding else ''}".strip(),
            switches={"share": "vocab", "confidence": "and_share", **padding},
        )
        for padding in PADDINGS
    ),
    *(
        Mistake(
            "rows_normalised",
            "You divide each row by its sum at the end, so that the target gets more than 1 - eps. Share eps among "
            "vocab - 2 words, and the rows sum to 1 by themselves.",
            switches={"share": share, "confidence": confidence, "result": "normalised"},
        )
        for share, confidence in (("vocab", "and_share"), ("vocab", "right"), ("one_less", "right"))
    ),
    *(
        Mistake(
            "eps_exchanged",
            "You have exchanged eps and 1 - eps: the target keeps 1 - eps, and the others share eps.",
            switches={"share": share, "confidence": "eps"},
        )
        for share in ("rest", "rest_vocab", "rest_one_less")
    ),
    *(
        Mistake(
            "not_smoothed",
            f"Your table has a 1 at each target, and nothing is smoothed. {SHARES} {PADDING}",
            switches={"share": "nothing", "confidence": "one", **padding, **kind},
        )
        for padding in PADDINGS
        for kind in ({}, {"result": "integers"})
    ),
    # how much the target gets
    *one(
        "confidence",
        "target_keeps_one",
        f"The target keeps 1, so your rows sum to more than 1: what the others get is taken from it, 1 - eps is left. "
        f"{SHARES}",
        "one",
    ),
    *one(
        "confidence",
        "target_gets_eps",
        f"The target gets eps, and must get 1 - eps. {SHARES}",
        "eps",
    ),
    *one(
        "confidence",
        "target_shares_too",
        "The target gets a share of eps on top of its 1 - eps. In this layout it gets 1 - eps alone (torch's own label "
        "smoothing is the one that spreads eps over all words).",
        "and_share",
    ),
    *one(
        "confidence",
        "target_shares_too",
        f"You add the shares to a full one at the target. {SHARES}",
        "one_and_share",
    ),
    *one("confidence", "target_wrong", f"The target gets 1 - eps less a share. {SHARES}", "less_share", rare=True),
    *one("confidence", "target_wrong", f"The target gets 1 - 2 eps. {SHARES}", "twice", rare=True),
    *one("confidence", "target_gets_nothing", f"The target gets 0. {SHARES}", "nothing", rare=True),
    *one(
        "confidence",
        "target_like_others",
        f"The target gets no more than the other words. {SHARES} (scatter returns a new table, scatter_ writes into "
        "the old one.)",
        "share",
        rare=True,
    ),
    # where it stands
    *one(
        "place",
        "columns_set",
        "You write into columns, table[:, target] = ..., which changes them in every row. Each row has one target of "
        "its own: table[torch.arange(len(target)), target], or scatter_ along axis 1.",
        "columns",
    ),
    *one(
        "place",
        "rows_set",
        "You write into whole rows, table[target] = ..., those with the numbers of the targets. Row i has its target "
        "in column target[i]: table[torch.arange(len(target)), target], or scatter_ along axis 1.",
        "rows",
    ),
    *one(
        "place",
        "one_column_off",
        "Your targets stand one column too far left: ids count from 0.",
        "one_less",
        rare=True,
    ),
    # the column of padding
    *one(
        "column",
        "pad_column_kept",
        f"The column of padding keeps its share. {COLUMN}",
        "kept",
    ),
    *one(
        "column",
        "pad_column_infinite",
        f"The column of padding holds -inf: these are probabilities. {COLUMN}",
        "minus_inf",
        rare=True,
    ),
    *one(
        "column",
        "only_pad_column_kept",
        f"You zero every column but that of padding: it is the other way round. {COLUMN}",
        "others_zeroed",
        rare=True,
    ),
    # the rows of padding
    *one(
        "rows",
        "pad_rows_kept",
        f"The rows of padding are not zeroed: they hold the shares of the other words. {ROWS} {WHICH_ROWS}",
        "kept",
    ),
    *one(
        "rows",
        "row_number_pad_zeroed",
        f"You zero row number `pad`: pad is a word, not a place in the batch. {ROWS} {WHICH_ROWS}",
        "row_number",
    ),
    *one(
        "rows",
        "table_compared_with_pad",
        f"You zero the rows in which some entry equals pad: entries are probabilities, pad is an id. {WHICH_ROWS}",
        "any_entry",
    ),
    *one(
        "rows",
        "real_rows_zeroed",
        f"You zero the rows of the real targets: it is the other way round. {ROWS}",
        "others_zeroed",
        rare=True,
    ),
    *one("rows", "pad_rows_filled", f"The rows of padding are uniform, 1 / vocab. {ROWS}", "uniform", rare=True),
    *one("rows", "pad_rows_filled", f"The rows of padding hold ones. {ROWS}", "ones", rare=True),
    *one("rows", "pad_rows_filled", f"The rows of padding hold -inf. {ROWS}", "minus_inf", rare=True),
    *one("rows", "pad_rows_nan", f"The rows of padding are nan, as 0 / 0 is. {ROWS}", "nan", rare=True),
    *one(
        "rows", "pad_rows_one_hot", f"The rows of padding have a 1 at padding. {ROWS}", "one_hot", "one_beside_shares"
    ),
    *one(
        "rows",
        "pad_rows_kept",
        f"The rows of padding hold 1 - eps at padding. {ROWS} {WHICH_ROWS}",
        "confident",
    ),
    *one(
        "rows",
        "row_mask_without_axis",
        "Your mask target != pad has the shape (tokens,), so beside a table (tokens, vocab) it lines up with the "
        "words: an error, or silently wrong where there are as many tokens as words. [:, None] gives it a second axis.",
        "mask_without_axis",
    ),
    *one("rows", "last_row_zeroed", f"You zero the last row, whatever its target. {WHICH_ROWS}", "last", rare=True),
    *one(
        "rows",
        "pad_rows_removed",
        f"You leave out the rows of padding: every target has its row. {ROWS}",
        "removed",
    ),
    # arguments and result
    *one(
        "which",
        "pad_is_zero",
        "You take padding to be id 0: it is the argument pad, which may be another.",
        "zero",
    ),
    *one("which", "pad_is_last", "You take padding to be the last id: it is the argument pad.", "last", rare=True),
    *one("which", "pad_is_one", "You take padding to be id 1: it is the argument pad.", "one", rare=True),
    *one("which", "eps_fixed", "You use 0.1 in place of the argument eps.", "eps_fixed"),
    *one("result", "transposed", "Your table is transposed: one row for each target, (tokens, vocab).", "transposed"),
    *one(
        "result",
        "logarithm",
        "You return logarithms: the loss takes them later; here the table is asked for.",
        "logarithm",
        rare=True,
    ),
    *one("result", "softmax", "You apply a softmax: the rows are distributions already.", "softmax", rare=True),
    *one(
        "result",
        "integers",
        "Your table holds whole numbers, so every share becomes 0. It must be float (torch.zeros_like(target) has the "
        "dtype of the ids).",
        "integers",
    ),
    *one("result", "bool", "Your table is bool: it holds the probabilities themselves.", "bool", rare=True),
    *one(
        "result",
        "rows_merged",
        "You average or add up the rows: every target has its row.",
        "averaged",
        "summed",
        rare=True,
    ),
    *one(
        "result",
        "pad_column_removed",
        "You leave out the column of padding: it stays, as zeros, so that ids and columns agree.",
        "column_missing",
        rare=True,
    ),
    *one(
        "result",
        "target_entries_alone",
        "You return one number for each target: a row is asked for.",
        "at_target",
        rare=True,
    ),
)


# ---------------------------------------------------------------- symptoms
def _regions(seen: Seen) -> dict[str, bool] | None:
    """Where the reader is wrong at least once: at the target, other words, the pad column, the pad rows."""
    wrong = dict.fromkeys(("target", "others", "column", "rows"), False)
    for probe, expected, given in seen:
        y = given.value
        if given.error is not None or given.changed or not isinstance(y, Tensor):
            return None
        if y.shape != expected.value.shape or not y.is_floating_point():
            return None
        target, vocab, _, pad = probe.make()
        off = ~close(expected.value, y)
        in_row = (target == pad)[:, None].expand_as(off)
        in_column = (torch.arange(vocab) == pad).expand_as(off) & ~in_row
        at_target = (torch.arange(vocab) == target[:, None]) & ~in_row
        places = (at_target, ~(in_row | in_column | at_target), in_column, in_row)
        for key, place in zip(wrong, places, strict=True):
            wrong[key] = wrong[key] or bool((off & place).any())
    return wrong


def _wrong_at(*places: str) -> Callable[[Seen], bool]:
    def shows(seen: Seen) -> bool:
        wrong = _regions(seen)
        return wrong is not None and {place for place, off in wrong.items() if off} == set(places)

    return shows


def _lists(seen: Seen) -> bool:
    """Lists of the right numbers, where a tensor is asked for."""
    for _, expected, given in seen:
        try:
            table = torch.tensor(given.value, dtype=torch.float32)
        except (TypeError, ValueError):
            return False
        if not isinstance(given.value, list) or not same_value(expected.value, table):
            return False
    return True


def _along_tokens(seen: Seen) -> bool:
    """An id is taken for a row, so that the first probe, where ids are larger than the rows are many, is an error."""
    return "out of bounds for dimension 0" in said(seen[0][2].error)


SYMPTOMS = (
    Symptom(
        "list_returned",
        "The numbers are right, but they are lists: torch.tensor(...) makes a tensor of them.",
        _lists,
    ),
    Symptom(
        "rows_set",
        "The ids of the targets are used along axis 0, that of the tokens. Row i has its target in column target[i]: "
        "table[torch.arange(len(target)), target], or scatter_ along axis 1.",
        _along_tokens,
    ),
    NUMPY,
    CHANGES_INPUT,
    MORE_RESULTS,
    ONLY_SHAPE,
    Symptom(
        "pad_rows_wrong",
        f"In the cases tried here only the rows of padding are wrong. {ROWS} {WHICH_ROWS}",
        _wrong_at("rows"),
    ),
    Symptom(
        "pad_column_wrong",
        f"In the cases tried here only the column of padding is wrong. {COLUMN}",
        _wrong_at("column"),
    ),
    Symptom(
        "padding_wrong",
        f"In the cases tried here only padding is wrong, its rows and its column. {COLUMN} {ROWS}",
        _wrong_at("rows", "column"),
    ),
    Symptom(
        "target_wrong",
        f"In the cases tried here only what the target itself gets is wrong. {SHARES}",
        _wrong_at("target"),
    ),
    Symptom(
        "shares_wrong", f"In the cases tried here only what the other words get is wrong. {SHARES}", _wrong_at("others")
    ),
    Symptom(
        "shares_wrong",
        f"In the cases tried here padding is right, and what the target and the other words get is not. {SHARES}",
        _wrong_at("target", "others"),
    ),
    Symptom(
        "pad_row_is_error",
        f"It fails as soon as a target is padding. {ROWS}",
        lambda seen: (
            right_only_without(seen, "and padding", raised=True)
            and all(not same_outcome(e, g) for p, e, g in seen if "and padding" in p.says)
        ),
    ),
)


def _probe(target: list[int], vocab: int, eps: float, pad: int) -> Probe:
    more = " and padding" if pad in target else ""
    says = f"target {target}, vocab {vocab}, eps {eps}, pad {pad}: words{more}"
    return Probe(says, lambda: (torch.tensor(target), vocab, eps, pad))


SMOOTHED_TARGETS = Exercise(
    name="training.smoothed_targets",
    reference=training.smoothed_targets,
    results=(Result("table", ("token", "word")),),
    probes=(
        _probe([2, 1], 4, 0.4, 0),
        _probe([2, 0, 3], 4, 0.3, 0),
        _probe([2, 1, 0, 3, 3, 0], 5, 0.4, 0),
        _probe([4, 0, 5, 1], 6, 0.2, 5),
        _probe([3, 2, 0, 2], 4, 0.5, 2),
        _probe([1, 3, 1], 5, 0.2, 1),
        _probe([2, 0], 4, 0.0, 0),
        _probe([0, 4, 2, 3], 7, 0.1, 6),
    ),
    compound=targets_wrongly,
    mistakes=TARGETS_MISTAKES,
    symptoms=SYMPTOMS,
)
