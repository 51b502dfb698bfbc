"""The exercise run_stack of lesson 08: how people send x through the layers, and where they put the last norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from ..model import run_stack
from .exercise import Mistake, Probe, Result, Symptom, each
from .model_parts import D_MODEL, GRADIENT_CUT, LayerExercise, Norm, StackLayer, alone_right, table
from .norm_parts import numbers
from .outcome import said, same_value
from .symptoms import CHANGES_INPUT, MORE_RESULTS, ONLY_SHAPE, Seen

__all__ = ["RUN_STACK"]

Layer = Callable[[Tensor, Tensor | None], Tensor]


def _order(n: int, order: str) -> list[int]:
    """Which layers run, in this order."""
    i = list(range(n))
    return {
        "in_turn": i,
        "reversed": i[::-1],
        "first_only": i[:1],
        "last_only": i[-1:],
        "without_first": i[1:],
        "without_last": i[:-1],
        "first_repeated": i[:1] * n,
        "last_repeated": i[-1:] * n,
        "each_twice": [j for j in i for _ in range(2)],
        "all_twice": i * 2,
        "first_twice": i[:1] + i,
        "last_twice": i + i[-1:],
        "none": [],
    }[order]


def _mask_of(mask: Tensor | None, which: str, first: bool, last: bool) -> Tensor | None:
    if which == "inverted":
        return None if mask is None else ~mask
    given = {"every": True, "none": False, "first": first, "last": last, "not_first": not first, "not_last": not last}[
        which
    ]
    return mask if given else None


def run(
    x: Tensor,
    layers: Sequence[Layer],
    mask: Tensor | None,
    final_norm: Callable[[Tensor], Tensor],
    pre_norm: bool,
    *,
    order: str = "in_turn",
    way: str = "chain",
    masks: str = "every",
    arguments: str = "in_order",
    norm_pre: str = "end",
    norm_post: str = "none",
    changed: str = "no",
    end: str = "x",
) -> object:
    """What a reader makes of the stack; with no switch set it is right."""
    norm = norm_pre if pre_norm else norm_post
    if norm == "own":
        norm, final_norm = "end", lambda y: F.layer_norm(y, y.shape[-1:])
    state = final_norm(x) if norm in ("begin", "both_ends") else x
    start, outputs, states = state, [], []
    which = _order(len(layers), order)
    for place, i in enumerate(which):
        taken = start if way in ("side_by_side", "sum", "mean", "sum_with_x") else state
        taken = final_norm(taken) if norm in ("before_each", "before_each_and_end") else taken
        given = taken, _mask_of(mask, masks, place == 0, place == len(which) - 1)
        y = layers[i](*(given[::-1] if arguments == "exchanged" else given))
        outputs.append(y)
        state = y + {"residual": state, "residual_of_start": start}.get(way, 0.0)
        inner = norm == "between" and place < len(which) - 1
        state = final_norm(state) if norm in ("after_each", "after_each_and_end") or inner else state
        states.append(state)
    if way in ("sum", "mean", "sum_with_x"):
        state = {"sum": sum, "mean": lambda o: sum(o) / len(o), "sum_with_x": lambda o: sum(o) + start}[way](outputs)
    state = state + x if way == "around" else state
    if norm in ("end", "twice", "both_ends", "after_each_and_end", "before_each_and_end"):
        state = final_norm(state)
    state = {"twice": lambda: final_norm(state), "residual": lambda: state + final_norm(state)}.get(
        norm, lambda: state
    )()
    if changed == "x":
        x += 1.0
    if changed == "layers":
        layers.pop()
    if changed == "layers_if_pre" and pre_norm:
        layers.append(final_norm)
    if changed == "order":
        layers.reverse()
    return {
        "x": lambda: state,
        "input": lambda: x.clone(),
        "states": lambda: states,
        "stacked": lambda: torch.stack(states),
        "normed_input": lambda: final_norm(x),
        "nothing": lambda: None,
        "nothing_if_post": lambda: state if pre_norm else None,
        "nothing_if_pre": lambda: None if pre_norm else state,
        "norm_itself": lambda: final_norm if pre_norm else state,
    }[end]()


# ---------------------------------------------------------------- the gallery
NORM = "Behind pre-norm layers stands one last norm, behind post-norm layers none: their last one ends with a norm."
IN_TURN = "Each layer must get what the one before it gave."
ANEW = "Every layer gets the first x: what the other layers gave is lost. x = layer(x, mask) hands it on."
ONCE = "it is called once, behind the last layer, and only where pre_norm is True."
WHERE = (  # where else final_norm is used
    ("norm_after_each_layer", "after each layer", "after_each"),
    ("norm_after_each_layer", "after each layer, and again at the end", "after_each_and_end"),
    ("norm_after_each_layer", "between the layers, and not at the end", "between"),
    ("norm_before_each_layer", "before each layer", "before_each"),
    ("norm_before_each_layer", "before each layer, and at the end", "before_each_and_end"),
    ("norm_before_layers", "before the first layer", "begin"),
    ("norm_before_layers", "before the first layer, and at the end", "both_ends"),
    ("norm_twice", "twice at the end", "twice"),
    ("norm_added", "in a sum, x + final_norm(x)", "residual"),
)


def _norms() -> Iterator[Mistake]:
    yield from each("norm_always", f"You use final_norm whatever pre_norm says. {NORM}", {"norm_post": "end"})
    yield from each("norm_never", f"You never use final_norm. {NORM}", {"norm_pre": "none"})
    yield from each(
        "norm_the_wrong_way_round",
        f"You use final_norm where pre_norm is False, and not where it is True. {NORM}",
        {"norm_pre": "none", "norm_post": "end"},
    )
    for name, how, pre in WHERE:
        pre_only = f"With pre_norm True you use final_norm {how}: it is called once, behind the last layer."
        post_only = f"With pre_norm False you use final_norm {how}: there it is not called at all."
        yield Mistake(name, pre_only, switches={"norm_pre": pre})
        yield Mistake(name, post_only, switches={"norm_post": pre})
        yield Mistake(name, f"You use final_norm {how}: {ONCE}", switches={"norm_pre": pre, "norm_post": pre})
    for name, how, pre, post in (
        ("norm_before_layers", "before the first layer", "both_ends", "begin"),
        ("norm_after_each_layer", "after each layer", "after_each_and_end", "after_each"),
        ("norm_before_each_layer", "before each layer", "before_each_and_end", "before_each"),
    ):
        yield Mistake(name, f"You use final_norm {how}: {ONCE}", switches={"norm_pre": pre, "norm_post": post})


MISTAKES = (
    *_norms(),
    *each("mask_dropped", "The layers run without the mask: each gets it, layer(x, mask).", {"masks": "none"}),
    *each("mask_for_first_only", "Only the first layer gets the mask: each layer reads the tokens anew, and each needs "
          "it.", {"masks": "first"}),
    *each("mask_for_last_only", "Only the last layer gets the mask: each layer needs it.", {"masks": "last"}),
    *each("mask_not_for_first", "The first layer does not get the mask: each layer needs it.", {"masks": "not_first"}),
    *each("mask_not_for_last", "The last layer does not get the mask: each layer needs it.", {"masks": "not_last"}),
    *each("mask_inverted", "The mask is inverted: True already means that a token may be read.", {"masks": "inverted"}),
    *each("reversed", f"The layers run from the last to the first. {IN_TURN}", {"order": "reversed"}),
    *each(
        "input_not_handed_on",
        f"Only one layer has an effect, the last. {ANEW}",
        {"order": "last_only"},
    ),
    *each(
        "first_layer_only",
        "Only the first layer runs. Does return stand inside the loop?",
        {"order": "first_only"},
    ),
    *each("first_layer_missing", "The first layer is left out: counting begins at 0.", {"order": "without_first"}),
    *each("last_layer_missing", "The last layer is left out: layers[:-1] and range(n - 1) end before it.",
          {"order": "without_last"}),
    *each(
        "one_layer_repeated",
        "One and the same layer runs at every step: each layer has weights of its own, and runs once.",
        {"order": "first_repeated"}, {"order": "last_repeated"},
    ),
    *each("layer_twice", "A layer runs twice, and each runs once.", {"order": "each_twice"}, {"order": "all_twice"},
          {"order": "first_twice"}, {"order": "last_twice"}),
    *each("no_layer", "No layer has an effect: what they give is not kept. x = layer(x, mask) keeps it.",
          {"order": "none"}),
    *each("layers_summed", f"The layers run side by side, and their results are added. {IN_TURN}", {"way": "sum"},
          {"way": "sum_with_x"}),
    *each("layers_averaged", f"The layers run side by side, and their results are averaged. {IN_TURN}",
          {"way": "mean"}),
    *each("residual_added", "Its own input is added to what each layer gives: the residuals are inside the layers "
          "already.",
          {"way": "residual"}),
    *each("residual_added", "The first x is added to what each layer gives: the residuals are inside the layers "
          "already.", {"way": "residual_of_start"}),
    *each("residual_added", "The first x is added to what the last layer gives: the residuals are inside the layers "
          "already.", {"way": "around"}),
    *each("residuals_and_norms_added", "You wrap each layer in a residual and in final_norm: both are inside the "
          f"layers already. {NORM}", {"way": "residual", "norm_pre": "before_each", "norm_post": "after_each"},
          alone=True),
    *each("own_norm", "You use a layer norm of your own in place of final_norm, which has parameters that it has "
          "learnt.", {"norm_pre": "own"}, {"norm_pre": "own", "norm_post": "own"}),
    *each("arguments_exchanged", "The arguments of a layer have changed places: layer(x, mask).",
          {"arguments": "exchanged"}),
    *each("norm_not_called", "You return final_norm itself: it is called, final_norm(x).", {"end": "norm_itself"},
          alone=True),
    *each("all_states_returned", "You return the state after every layer: only the last is asked for.",
          {"end": "states"}, {"end": "stacked"}, alone=True),
    *each("input_normed", f"What you return is final_norm of the first x, and the layers have no effect. {NORM}",
          {"end": "normed_input"}, alone=True),
    *each("nothing_returned", "Nothing comes back: a return is missing.", {"end": "nothing"},
          {"end": "nothing_if_post"}, {"end": "nothing_if_pre"}, alone=True),
    *each(
        "changes_x",
        "The caller's x is changed: an operation in place works on it. x = layer(x, mask) gives the name to a new "
        "tensor.",
        {"changed": "x"},
    ),
    *each(
        "changes_layers",
        "The caller's list of layers is changed: pop, append and reverse work on it in place.",
        {"changed": "layers"}, {"changed": "order"}, {"changed": "layers_if_pre"},
    ),
)  # fmt: skip


# ---------------------------------------------------------------- symptoms and probes
MASKED, UNMASKED = "3 layers, a mask", "3 layers, mask None"
HIDDEN = torch.tensor([[False, False, False], [False, True, False]])  # (batch, token)
COUNTS = {MASKED: 3, UNMASKED: 3, "1 layer, a mask": 1, "2 layers, a mask": 2, "2 layers, mask None": 2}


def _says(what: str, pre_norm: bool) -> str:
    return f"{what}, pre_norm {pre_norm}"


def _same(seen: Seen, *pairs: tuple[str, str]) -> bool:
    found = table(seen)
    return found is not None and all(same_value(found[a][1], found[b][1]) for a, b in pairs)


def _mask_unused(seen: Seen) -> bool:
    return _same(seen, *((_says(MASKED, pre), _says(UNMASKED, pre)) for pre in (False, True)))


def _mode_ignored(seen: Seen) -> bool:
    return _same(seen, *((_says(what, False), _says(what, True)) for what in (MASKED, UNMASKED)))


def _ends_with_right(seen: Seen) -> bool:
    """Each result is a list, or one axis too many, whose last item is right, and which begins with another state."""
    found = [(e.value, g.value[-1] if isinstance(g.value, list) and g.value else None) for _, e, g in seen]
    return all(same_value(right, last) for right, last in found)


def _says_error(words: str) -> Callable[[Seen], bool]:
    def shows(seen: Seen) -> bool:
        errors = [said(g.error) for _, _, g in seen if g.error is not None]
        return bool(errors) and all(words in error for error in errors)

    return shows


def _only_hidden_tokens(seen: Seen) -> bool:
    found = table(seen)
    if found is None or any(g.changed for _, _, g in seen):
        return False
    right = all(
        same_value(*(y if "None" in says else y[HIDDEN.logical_not()] for y in pair)) for says, pair in found.items()
    )
    return right and any(not same_value(*pair) for pair in found.values())


def _given(what: str, pre_norm: bool) -> Callable[[], tuple]:
    def make() -> tuple:
        layers = [StackLayer(41 + i) for i in range(COUNTS[what])]
        mask = ~HIDDEN[:, None]  # (batch, 1, key)
        return numbers(2, 3, D_MODEL, seed=40), layers, None if "None" in what else mask, Norm(45), pre_norm

    return make


def _probe(what: str, pre_norm: bool, **options: bool) -> Probe:
    blind = ("norm_post",) if pre_norm else ("norm_pre",)
    return Probe(_says(what, pre_norm), _given(what, pre_norm), blind_to=blind, **options)


RUN_STACK = LayerExercise(
    name="model.run_stack",
    reference=run_stack,
    results=(Result("result", ("batch", "token", "column")),),
    probes=(
        *(
            _probe(what, pre)
            for what in ("1 layer, a mask", "2 layers, a mask", UNMASKED, MASKED)
            for pre in (False, True)
        ),
        *(_probe("2 layers, mask None", pre, edge=True, gradients=True) for pre in (False, True)),
    ),
    compound=run,
    at_once=2,
    mistakes=MISTAKES,
    symptoms=(
        GRADIENT_CUT,
        Symptom(
            "all_states_returned",
            "You return the state after every layer: only the last is asked for.",
            _ends_with_right,
        ),
        Symptom(
            "layer_beyond_last",
            "You ask for more layers than there are: their number is len(layers), and the last one is number "
            "len(layers) - 1.",
            _says_error("list index out of range"),
        ),
        Symptom(
            "norm_given_mask",
            "You call final_norm with more than x: it is not one of the layers, and takes x alone.",
            _says_error("Norm.__call__() takes 2 positional arguments"),
        ),
        Symptom(
            "list_called",
            "The argument layers is a list, which cannot be called: call its layers, one after another.",
            _says_error("'list' object is not callable"),
        ),
        Symptom(
            "hidden_tokens_changed",
            "Only the tokens that the mask hides come out otherwise: you change them yourself. The mask is for the "
            "layers, and says what may be read; x goes in as it is.",
            _only_hidden_tokens,
        ),
        CHANGES_INPUT,
        MORE_RESULTS,
        ONLY_SHAPE,
        Symptom(
            "mask_without_effect",
            "Your result is the same with the mask and without one: each layer gets it, layer(x, mask).",
            _mask_unused,
        ),
        Symptom(
            "mode_ignored",
            f"Your result does not depend on pre_norm. {NORM}",
            _mode_ignored,
        ),
        Symptom(
            "post_wrong",
            "In the cases tried here it is right with pre_norm True, and not with False: there nothing follows the "
            "last layer, and every layer gets the mask as well.",
            alone_right(lambda probe: probe.make()[4]),
        ),
        Symptom(
            "pre_wrong",
            "In the cases tried here it is right with pre_norm False, and not with True: there final_norm is called "
            "once, on what the last layer gives.",
            alone_right(lambda probe: not probe.make()[4]),
        ),
        Symptom(
            "one_layer_right",
            f"In the cases tried here it is right with one layer, and not with more. {IN_TURN}",
            alone_right(lambda probe: "1 layer" in probe.says),
        ),
    ),
)
