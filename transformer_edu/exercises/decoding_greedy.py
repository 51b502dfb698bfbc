"""The exercise greedy_decode of lesson 10: when each row ends, and what stands behind its end."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import decoding
from .decoding_parts import Script, one, whole_numbers
from .exercise import Exercise, Mistake, Probe, Result, Symptom
from .outcome import same_outcome
from .symptoms import CHANGES_INPUT, KIND_SYMPTOMS, MORE_RESULTS, ONLY_SHAPE, Seen

Step = Script


# ---------------------------------------------------------------- the wrong implementation with switches
def _fed(prompt: Tensor, new: list[Tensor], feeds: str) -> Tensor:
    """The ids that the model is given."""
    ids = torch.cat([prompt, *(token[:, None] for token in new)], 1)  # (batch, length)
    return {
        "all": lambda: ids,
        "last": lambda: ids[:, -1:],
        "last_after_first": lambda: ids[:, -1:] if new else prompt,
        "prompt": lambda: prompt,
        "prompt_and_last": lambda: torch.cat([prompt, ids[:, -1:]], 1) if new else prompt,
        "new": lambda: ids[:, prompt.shape[1] :] if new else prompt,
        "in_front": lambda: torch.cat([*(token[:, None] for token in reversed(new)), prompt], 1),
        "without_first": lambda: ids[:, 1:] if new else prompt,
        "never_first": lambda: ids[:, 1:] if ids.shape[1] > 1 else ids,
        "window": lambda: ids[:, -prompt.shape[1] :],
    }[feeds]()


def _read_off(logits: Tensor, length: int, reads: str) -> Tensor:
    """(batch, vocab_size), the logits from which the next token is picked; `length` is that of the prompt."""
    return {
        "last": lambda: logits[:, -1],
        "first": lambda: logits[:, 0],
        "second_last": lambda: logits[:, -2],
        "one_before": lambda: logits[:, max(logits.shape[1] - 2, 0)],
        "prompt_end": lambda: logits[:, length - 1],
        "first_new": lambda: logits[:, min(length, logits.shape[1] - 1)],
        "count": lambda: logits[:, logits.shape[1] - length],
        "mean": lambda: logits.mean(1),
        "sum": lambda: logits.sum(1),
        "max": lambda: logits.amax(1),
        "last_row": lambda: logits[-1],
    }[reads]()


def _picked(logits: Tensor, picks: str) -> Tensor:
    """(batch,)"""
    return {
        "largest": lambda: logits.argmax(-1),
        "smallest": lambda: logits.argmin(-1),
        "second": lambda: logits.topk(2).indices[:, 1],
        "over_batch": lambda: logits.argmax().remainder(logits.shape[-1]).expand(len(logits)),
        "over_batch_flat": lambda: logits.argmax().expand(len(logits)),
        "first_row": lambda: logits[0].argmax().expand(len(logits)),
        "last_row": lambda: logits[-1].argmax().expand(len(logits)),
        "value": lambda: logits.amax(-1),
        "one_less": lambda: logits.argmax(-1) - 1,
        "one_more": lambda: logits.argmax(-1) + 1,
        "never_stop": lambda: logits.index_fill(-1, torch.tensor([2, 9]), -torch.inf).argmax(-1),
    }[picks]()


def _next(logits: Tensor, length: int, reads: str, picks: str) -> Tensor:
    """(batch,), the tokens that are picked from logits (batch, length, vocab_size)."""
    if picks == "over_positions":
        return logits.argmax(1)[:, -1]
    return _picked(_read_off(logits, length, reads), picks)


def _most(prompt: Tensor, max_length: int, limit: str) -> int:
    """The largest number of new tokens."""
    return {
        "new": max_length,
        "total": max_length - prompt.shape[1],
        "one_less": max_length - 1,
        "one_more": max_length + 1,
        "none": 1000,
        "plus_prompt": max_length + prompt.shape[1],
    }[limit]


def _over(new: list[Tensor], ended: Tensor, stop: int, ends: str) -> bool:
    """Whether to stop after these tokens."""
    return {
        "all": lambda: ended.all(),
        "any": lambda: ended.any(),
        "same_step": lambda: (new[-1] == stop).all(),
        "first_row": lambda: ended[0],
        "last_row": lambda: ended[-1],
        "most": lambda: 2 * ended.sum() > len(ended),
        "never": lambda: False,
        "after_one": lambda: True,
        "late": lambda: len(new) > 1 and (torch.stack(new[:-1]) == stop).any(0).all(),
        "count": lambda: (torch.stack(new) == stop).sum() >= len(ended),
    }[ends]()


def _tail(new: list[Tensor], tokens: Tensor, stop: int, pad: int, tail: str) -> Tensor:
    """(batch,), what a row that has ended goes on with; `tokens` is what the model goes on with."""
    return {
        "pad": lambda: torch.full_like(tokens, pad),
        "model": lambda: tokens,
        "stop": lambda: torch.full_like(tokens, stop),
        "zero": lambda: torch.zeros_like(tokens),
        "minus_one": lambda: torch.full_like(tokens, -1),
        "ignored": lambda: torch.full_like(tokens, -100),
        "other_rows": lambda: tokens[[-1]].expand(len(tokens)),
        "pad_times": lambda: tokens * pad,
    }[tail]()


def greedy_wrongly(
    step: Step,
    prompt: Tensor,
    stop: int,
    pad: int,
    max_length: int,
    *,
    ends: str = "all",
    tail: str = "pad",
    limit: str = "new",
    feeds: str = "all",
    reads: str = "last",
    picks: str = "largest",
    in_prompt: str = "ignored",
    memory: str = "stops",
    keeps: str = "stop",
    result: str = "new",
) -> object:
    """Greedy decoding with any of the ways to go wrong; without a switch it is right."""
    new: list[Tensor] = []
    ended = (prompt == stop).any(1) if in_prompt == "counts" else torch.zeros(len(prompt), dtype=torch.bool)
    if in_prompt == "last_counts":
        ended = prompt[:, -1] == stop
    for _ in range(_most(prompt, max_length, limit)):
        if in_prompt.endswith("counts") and ended.all():
            break
        tokens = _next(step(_fed(prompt, new, feeds)), prompt.shape[1], reads, picks)
        tokens = torch.where(ended, _tail(new, tokens, stop, pad, tail), tokens)
        ended = (tokens == stop) | (ended & (memory != "last_step")) | ((tokens == pad) & (memory == "pads"))
        if in_prompt == "counts_after":
            ended = ended | (prompt == stop).any(1)
        if keeps == "not_added" and _over([*new, tokens], ended, stop, ends):
            break
        new.append(tokens)
        if _over(new, ended, stop, ends):
            break
    if not new:
        return prompt[:, :0]
    return _arranged(prompt, torch.stack(new, 1), stop, pad, keeps, result)


def _arranged(prompt: Tensor, new: Tensor, stop: int, pad: int, keeps: str, result: str) -> object:
    """What is returned of the new tokens (batch, n)."""
    if keeps in ("pad", "cut"):
        new = new.masked_fill(new == stop, pad)
        new = new[:, : int((new != pad).sum(1).max())] if keeps == "cut" else new
    if keeps == "column_cut":
        new = new[:, :-1]
    return {
        "new": lambda: new,
        "with_prompt": lambda: torch.cat([prompt, new], 1),
        "with_last": lambda: torch.cat([prompt[:, -1:], new], 1),
        "without_first": lambda: new[:, 1:],
        "without_one": lambda: torch.cat([prompt, new], 1)[:, 1:],
        "last_only": lambda: new[:, -1:],
        "last_vector": lambda: new[:, -1],
        "first_row": lambda: new[0],
        "first_row_kept": lambda: new[:1],
        "turned": lambda: new.T,
        "flat": lambda: new.flatten(),
        "column": lambda: new[..., None],
        "backwards": lambda: new.flip(1),
        "float": lambda: new.float(),
        "steps": lambda: list(new.T),
        "cut_rows": lambda: [_cut(row, stop) for row in new.tolist()],
        "cut_tensors": lambda: [torch.tensor(_cut(row, stop)) for row in new.tolist()],
    }[result]()


def _cut(row: list[int], stop: int) -> list[int]:
    return row[: row.index(stop) + 1] if stop in row else row


# ---------------------------------------------------------------- the gallery
STOP = "A row keeps its stop, and behind it stands nothing but pad."
ALL = "Decoding ends when every row has had its stop, in whichever step that was, or after max_length tokens."
RETURNS = "Return the new tokens alone, (batch, n)."
LAST = "The logits at position j speak of the token behind j: the next token is read off the last position, [:, -1]."
GROWS = "step is given all tokens so far, the prompt and every new one, in their order."

GREEDY_MISTAKES = (
    Mistake(
        "goes_on_after_stop",
        f"The stop is never looked at: rows go on behind it until max_length is reached. {STOP} {ALL}",
        switches={"ends": "never", "tail": "model"},
        alone=True,
    ),
    *one(
        "ends",
        "any_row_ends",
        "You stop as soon as one row has ended, and the others are cut off in the middle. Remember for each row whether"
        f" it has ended. {ALL}",
        "any",
    ),
    Mistake(
        "all_in_one_step",
        "You stop only where all rows write the stop in the same step, and rows that have ended go on: nothing"
        f" remembers that they have. Keep one bool for each row. {STOP}",
        switches={"ends": "same_step", "tail": "model"},
        alone=True,
    ),
    *one(
        "ends",
        "all_in_one_step",
        "You ask whether all rows write the stop in the same step. Rows end in different steps, so you run on to"
        " max_length and the result has columns of padding at its end. Keep one bool for each row that remembers.",
        "same_step",
    ),
    *one(
        "ends",
        "one_row_decides",
        f"One row decides when decoding ends, whatever the others do. {ALL}",
        "first_row",
        "last_row",
    ),
    *one(
        "memory",
        "end_forgotten",
        "A row remembers its end for one step only, and then goes on: ended = ended | (new == stop_id), or |=, keeps"
        f" what was known before. {STOP}",
        "last_step",
    ),
    *one(
        "memory",
        "pad_ends_row",
        "A row ends in yours when the model says pad. Only the stop ends it, and what the model says before stands as"
        " it is.",
        "pads",
        edge=True,
    ),
    *one("ends", "most_rows_decide", f"You stop when more than half of the rows have ended. {ALL}", "most"),
    *one(
        "ends",
        "runs_to_the_limit",
        "Your rows are right, but they always have max_length columns: stop as soon as every row has ended, so that the"
        " longest row has no padding.",
        "never",
    ),
    *one("ends", "one_token_only", "You return after the first new token. " + ALL, "after_one"),
    *one(
        "ends",
        "one_step_too_many",
        "One column too many: when every row has ended you still take a step. Ask right after the new tokens are"
        " known.",
        "late",
    ),
    *(
        Mistake(
            "stops_are_counted",
            f"You count the stops of all rows together, but one row can write several. {ALL} {STOP}",
            switches={"ends": "count", "tail": tail},
            alone=True,
        )
        for tail in ("model", "stop")
    ),
    *one(
        "tail",
        "tail_not_padded",
        "It stops at the right time, but a row that has ended goes on with what the model says next. Write pad there:"
        f" {STOP[0].lower() + STOP[1:]}",
        "model",
    ),
    *one(
        "tail",
        "stop_repeated",
        f"A row that has ended is filled with more stops. {STOP}",
        "stop",
    ),
    *one("tail", "zeros_for_pad", "Behind the stop you write 0. The padding is the argument pad.", "zero", "pad_times"),
    *one("tail", "wrong_filler", f"Behind the stop you write a negative number. {STOP}", "minus_one", "ignored"),
    *one(
        "tail",
        "tail_from_other_row",
        f"A row that has ended goes on with the tokens of another row. {STOP}",
        "other_rows",
    ),
    *one(
        "keeps",
        "stop_removed",
        "The stop itself is missing: pad stands in its place. Then nobody can tell a row that ended from one that was"
        f" cut off. {STOP}",
        "pad",
    ),
    *one(
        "keeps",
        "stop_removed",
        f"The stop itself is missing from every row. {STOP}",
        "cut",
    ),
    *one(
        "keeps",
        "stop_not_added",
        "The last column is missing: when the last row writes its stop, you leave before that token is added. Add the"
        " new tokens first, then ask whether to go on.",
        "not_added",
    ),
    *one("keeps", "last_column_missing", "The last column of new tokens is missing.", "column_cut"),
    *one(
        "result",
        "includes_prompt",
        f"Your result begins with the prompt. {RETURNS} ids[:, prompt.shape[1]:] cuts the prompt off.",
        "with_prompt",
    ),
    *one(
        "result",
        "includes_last_of_prompt",
        f"Your result begins with the last token of the prompt. {RETURNS}",
        "with_last",
    ),
    *one(
        "result",
        "cuts_one_token",
        "You cut off one token in front, but a prompt can be longer: cut off prompt.shape[1] of them.",
        "without_one",
    ),
    *one("result", "first_token_missing", "The first new token is missing from your result.", "without_first"),
    *one(
        "result",
        "last_token_only",
        f"You return the token of the last step alone: collect those of all steps. {RETURNS}",
        "last_only",
        "last_vector",
    ),
    *one("result", "first_row_only", f"You return the first row alone. {RETURNS}", "first_row", "first_row_kept"),
    *one(
        "result",
        "turned",
        "Your result is (n, batch), a row for each step. It should be (batch, n): torch.stack(tokens, 1).",
        "turned",
    ),
    *one("result", "flattened", f"All tokens stand in one row. {RETURNS}", "flat"),
    *one(
        "result",
        "axis_left_over",
        "Your result has a third axis of size 1, (batch, n, 1): argmax(-1) of (batch, vocab_size) gives (batch,), one"
        " id"
        " for each row.",
        "column",
    ),
    *one("result", "backwards", "The new tokens are in reverse order.", "backwards"),
    *one("result", "float_ids", "The tokens are floats. Ids are whole numbers: dtype int64.", "float"),
    *one(
        "result",
        "list_of_steps",
        "You return a list with one tensor for each step: torch.stack(tokens, 1) makes (batch, n) of it.",
        "steps",
    ),
    *one(
        "result",
        "ragged_rows",
        "You return a list of rows of different lengths, cut after their stops: fill them with pad to the length of the"
        " longest, one tensor (batch, n).",
        "cut_rows",
        "cut_tensors",
    ),
    *one(
        "limit",
        "limit_counts_prompt",
        "The limit max_length is the number of new tokens. In yours it counts the prompt as well, so there are"
        " too few.",
        "total",
    ),
    *one("limit", "limit_one_less", "You stop one token before max_length.", "one_less"),
    *one("limit", "limit_one_more", "You return max_length + 1 tokens where no row ends before.", "one_more"),
    *one(
        "limit",
        "limit_missing",
        "Where a row never writes the stop, you go on without end: the model takes at most 24 tokens. Stop after"
        " max_length"
        " new tokens.",
        "none",
    ),
    *one(
        "limit",
        "limit_plus_prompt",
        "The length of the prompt is added to max_length, which counts new tokens.",
        "plus_prompt",
    ),
    *one(
        "feeds",
        "only_last_token_fed",
        "The function step is given the newest token alone, and has forgotten everything before it (there is no cache"
        " here)."
        f" {GROWS}",
        "last_after_first",
        "last",
    ),
    *one("feeds", "prompt_forgotten", f"After the first step, step no longer gets the prompt. {GROWS}", "new"),
    *one(
        "feeds",
        "only_newest_kept",
        f"The function step is given the prompt and the newest token, without those in between. {GROWS}",
        "prompt_and_last",
    ),
    *one("feeds", "new_tokens_in_front", f"New tokens are put in front of the old ones. {GROWS}", "in_front"),
    *one(
        "feeds",
        "first_token_dropped",
        f"The function step is not given the first token of the prompt. {GROWS}",
        "without_first",
        "never_first",
    ),
    *one(
        "feeds",
        "window",
        f"The function step is given as many tokens as the prompt has, the last ones. {GROWS}",
        "window",
    ),
    Mistake(
        "same_logits_each_time",
        "Every step picks the token that follows the prompt, again and again: either new tokens are not added to what"
        f" step is given, or the logits are read where the prompt ends. {GROWS} {LAST}",
        switches={"feeds": "prompt"},
    ),
    *one("reads", "first_position", f"You read the logits of position 0, [:, 0]. {LAST}", "first"),
    *one("reads", "first_new_position", f"You always read the logits of the first new token. {LAST}", "first_new"),
    *one(
        "reads",
        "wrong_position",
        f"You read the logits one position before the last. {LAST}",
        "second_last",
        "one_before",
    ),
    *one(
        "reads",
        "wrong_position",
        f"You read the logits at the number of new tokens, as if there were no prompt. {LAST}",
        "count",
    ),
    *one("reads", "positions_mixed", f"You add up or average the logits of all positions. {LAST}", "mean", "sum"),
    *one("reads", "positions_mixed", f"You take the largest logit of all positions. {LAST}", "max"),
    *one(
        "reads",
        "last_row_of_batch",
        "Here logits[-1] is the last row of the batch, not the last position of each row: [:, -1].",
        "last_row",
    ),
    *one("picks", "smallest", "You pick the smallest logit: argmax, not argmin.", "smallest"),
    *one("picks", "second_best", "You pick the second largest logit.", "second"),
    *one(
        "picks",
        "argmax_over_batch",
        "Every row gets the same token: argmax without an axis looks for the largest logit of the whole batch. Each row"
        " needs its own, argmax(-1).",
        "over_batch",
        "over_batch_flat",
    ),
    *one(
        "picks",
        "argmax_over_positions",
        "Your argmax runs over the positions, axis 1: take the last position first, logits[:, -1], then argmax(-1).",
        "over_positions",
    ),
    *one(
        "picks",
        "one_row_for_all",
        "Every row gets the token of one row: something is read off a single row, as with [0] or .item().",
        "first_row",
        "last_row",
    ),
    *one(
        "picks",
        "logits_for_ids",
        "Your tokens are logits: max gives the largest number, argmax says where it stands, and that is the id.",
        "value",
    ),
    *one("picks", "ids_shifted", "All ids are off by one.", "one_less", "one_more"),
    *one("picks", "stop_forbidden", "The stop is never picked, though its logit is the largest.", "never_stop"),
    *one(
        "in_prompt",
        "stop_in_prompt_counts",
        "A stop in the prompt ends the row in yours. Only a stop among the new tokens does.",
        "counts",
        "last_counts",
        "counts_after",
        edge=True,
    ),
)


# ---------------------------------------------------------------- symptoms
Rows = list[tuple[Probe, list[list[int]], list[list[int]]]]  # probe, the right rows, the reader's


def _rows(seen: Seen, *, edges: bool = False) -> Rows | None:
    """The rows side by side; None unless the reader always gave as many rows of ids as there are prompts."""
    found = []
    for probe, expected, given in seen:
        if edges or not probe.edge:
            y = given.value
            if given.error is not None or not isinstance(y, Tensor) or y.dim() != 2 or len(y) != len(expected.value):
                return None
            if y.is_floating_point() or given.changed:
                return None
            found.append((probe, expected.value.tolist(), y.tolist()))
    return found


def _some_wrong(seen: Seen) -> bool:
    """Whether an ordinary probe is wrong."""
    return not all(same_outcome(e, g) for p, e, g in seen if not p.edge)


def _stop_of(probe: Probe) -> int:
    return probe.make()[2]


def _right_to_the_stop(seen: Seen) -> bool:
    """Every row is right up to its stop, or its last column, and something else follows somewhere."""
    found = _rows(seen) if _some_wrong(seen) else None
    return found is not None and all(
        mine[: len(_cut(right, _stop_of(probe)))] == _cut(right, _stop_of(probe))
        for probe, rows, given in found
        for right, mine in zip(rows, given, strict=True)
    )


def _cut_short(seen: Seen) -> bool:
    """Every row is the beginning of the right one."""
    found = _rows(seen) if _some_wrong(seen) else None
    pairs = [pair for _, rows, given in found or [] for pair in zip(rows, given, strict=True)]
    return bool(pairs) and all(right[: len(mine)] == mine for right, mine in pairs)


def _first_right(seen: Seen) -> bool:
    """The first new token is right in every row, and the second wherever there is one is not."""
    found = _rows(seen)
    pairs = [pair for _, rows, given in found or [] for pair in zip(rows, given, strict=True)]
    first = all(mine[:1] == right[:1] for right, mine in pairs)
    second = [mine[1:2] == right[1:2] for right, mine in pairs if len(right) > 1 and right[1] > 2]
    return bool(pairs) and first and not any(second)


def _right_only_where(seen: Seen, fits: object) -> bool:
    right = [(fits(p), same_outcome(e, g)) for p, e, g in seen if not p.edge]
    return all(r for f, r in right if f) and not any(r for f, r in right if not f)


def _wrong_only_where(seen: Seen, fits: object) -> bool:
    """Whether all is right but for some of the probes that fit, edge cases among them."""
    wrong = [p for p, e, g in seen if not same_outcome(e, g)]
    return bool(wrong) and all(map(fits, wrong))


def _differ(probe: Probe) -> bool:
    """Whether the rows of a probe end in different steps."""
    step, _, stop, _, most = probe.make()
    return len({(line.index(stop) if stop in line else most) for _, line in step.lines}) > 1


SYMPTOMS = (
    CHANGES_INPUT,
    MORE_RESULTS,
    *KIND_SYMPTOMS,
    ONLY_SHAPE,
    Symptom(
        "stop_in_prompt_counts",
        "In the cases tried here all is right but where a stop stands in the prompt: only one among the new tokens ends"
        " a row.",
        lambda seen: _wrong_only_where(seen, lambda probe: _stop_of(probe) in probe.make()[1]),
    ),
    Symptom(
        "long_prompts_wrong",
        "In the cases tried here all is right with a prompt of one token, and not with longer ones. "
        + GROWS
        + " "
        + LAST,
        lambda seen: _right_only_where(seen, lambda probe: probe.make()[1].shape[1] == 1),
    ),
    Symptom(
        "tail_wrong",
        f"Every row is right up to its stop, but not behind it, or there are too many columns. {STOP} {ALL}",
        _right_to_the_stop,
    ),
    Symptom(
        "cut_short", f"What you return is right as far as it goes, but tokens are missing at its end. {ALL}", _cut_short
    ),
    Symptom(
        "ends_wrong",
        "In the cases tried here all is right where all rows end in the same step, and not where they end in different"
        f" ones. {STOP} {ALL}",
        lambda seen: _right_only_where(seen, lambda probe: not _differ(probe)),
    ),
    Symptom(
        "rows_mixed",
        "In the cases tried here one row alone is right, and several rows are not. Each row picks its own token, and"
        " ends by itself.",
        lambda seen: _right_only_where(seen, lambda probe: len(probe.make()[1]) == 1),
    ),
    Symptom(
        "later_tokens_wrong",
        f"The first new token of every row is right, the second one never is. {GROWS} {LAST}",
        _first_right,
    ),
)


# ---------------------------------------------------------------- the probes
def _given(lines: dict[tuple[int, ...], str], most: int, *, stop: int = 2, pad: int = 0, edge: bool = False) -> Probe:
    """Prompts, and what the model writes behind them."""
    rows = tuple((prompt, tuple(int(token) for token in line)) for prompt, line in lines.items())
    step = Script(rows, stop)
    prompts = [list(prompt) for prompt in lines]
    wanted = [str(list(line[:most])) for _, line in rows]
    says = (
        f"prompt {prompts}, stop_id {stop}, pad_id {pad}, max_length {most};"
        f" the model goes on with {' and '.join(wanted)}"
    )
    return Probe(says, lambda: (step, torch.tensor(prompts), stop, pad, most), edge=edge)


GREEDY_DECODE = Exercise(
    name="decoding.greedy_decode",
    reference=lambda step, prompt, stop, pad, most: decoding.greedy_decode(step, prompt, stop, pad, most),
    results=(Result("tokens", ("row", "token")),),
    settled=whole_numbers,
    probes=(
        _given({(7,): "342563425"}, 5),
        _given({(7,): "324536475", (8,): "428563475"}, 5),
        _given({(7,): "463734856", (8,): "379345345"}, 4, stop=9, pad=1),
        _given({(7,): "395634856", (8,): "458937456"}, 6, stop=9, pad=1),
        _given({(5,): "458234856", (6,): "272345683", (7,): "342863475"}, 6),
        _given({(7, 5, 4): "342563475", (8, 6, 3): "534738657"}, 7, pad=1),
        _given({(2,): "342753475"}, 5, edge=True),
        _given({(3, 2, 5): "657253475", (3, 4, 2): "426735364"}, 6, edge=True),
        _given({(4,): "567345865", (5,): "624345634"}, 1, edge=True),
        _given({(4,): "506234586", (5,): "607823456"}, 6, edge=True),
    ),
    mistakes=GREEDY_MISTAKES,
    compound=greedy_wrongly,
    symptoms=SYMPTOMS,
    at_once=2,
)
