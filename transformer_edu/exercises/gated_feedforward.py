"""The exercise swiglu of lesson 04: one wrong implementation with switches, its mistakes, and the probes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import feedforward
from .attention_probes import numbers
from .exercise import Exercise, Mistake, Probe, Result, Symptom, each
from .feedforward_parts import BY_ITSELF, ENDS, ended, form_mistakes, formed, probes, tokens
from .feedforward_symptoms import (
    AXES,
    ENDINGS,
    OPENINGS,
    linear,
    outcomes,
    tensors,
)
from .outcome import close
from .symptoms import Seen

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "none": lambda g: g,
    "sigmoid": F.sigmoid,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda g: F.gelu(g, approximate="tanh"),
    "quick_gelu": lambda g: g * (1.702 * g).sigmoid(),
    "tanh": F.tanh,
    "tanh_times": lambda g: g * g.tanh(),
    "softplus": F.softplus,
    "mish": F.mish,
    "hardswish": F.hardswish,
    "elu": F.elu,
    "leaky": F.leaky_relu,
    "softmax": lambda g: g.softmax(-1),
    "softmax_times": lambda g: g * g.softmax(-1),
    "softmax_of_tokens": lambda g: g.softmax(-2),
    "wrong_sign": lambda g: g * (-g).sigmoid(),
    "negated": lambda g: F.silu(-g),
    "minus_below": lambda g: g / (1 - (-g).exp()),
    "overflowing": lambda g: g * g.exp() / (1 + g.exp()),
    "complement": lambda g: 1 - g.sigmoid(),
    "twice": lambda g: F.silu(F.silu(g)),
    "sigmoid_of_silu": lambda g: F.silu(g).sigmoid(),
    "squared": lambda g: g * F.silu(g),
    "log_sigmoid": F.logsigmoid,
    "silu_plus_one": lambda g: 1 + F.silu(g),
    "mean": lambda g: F.silu(g).mean(-2, keepdim=True).expand_as(g),
    "mean_before": lambda g: F.silu(g.mean(-2, keepdim=True)).expand_as(g),
    "step": lambda g: (g > 0).to(g.dtype),
}


def _matrices(w_gate: Tensor, w_up: Tensor, w_down: Tensor, weights: str) -> tuple[Tensor, Tensor, Tensor]:
    return {
        "right": lambda: (w_gate, w_up, w_down),
        "transposed": lambda: (w_gate.T, w_up.T, w_down.T),
        "first_transposed": lambda: (w_gate.T, w_up.T, w_down),
        "gate_transposed": lambda: (w_gate.T, w_up, w_down),
        "up_transposed": lambda: (w_gate, w_up.T, w_down),
        "down_transposed": lambda: (w_gate, w_up, w_down.T),
        "up_and_down": lambda: (w_gate, w_down, w_up),
        "gate_and_down": lambda: (w_down, w_up, w_gate),
        "gate_twice": lambda: (w_gate, w_gate, w_down),
        "up_twice": lambda: (w_up, w_up, w_down),
        "tied": lambda: (w_gate, w_up, w_up.T),
        "tied_to_gate": lambda: (w_gate, w_up, w_gate.T),
    }[weights]()


def _hidden(x: Tensor, w_gate: Tensor, gate: Tensor, up: Tensor, act: Callable[[Tensor], Tensor], place: str) -> Tensor:
    return {
        "gate": lambda: act(gate) * up,
        "up": lambda: gate * act(up),
        "both": lambda: act(gate) * act(up),
        "product": lambda: act(gate * up),
        "both_and_product": lambda: act(act(gate) * up),
        "gate_only": lambda: act(gate),
        "up_only": lambda: act(up),
        "up_bare": lambda: up,
        "sum": lambda: act(gate) + up,
        "sum_inside": lambda: act(gate + up),
        "difference": lambda: act(gate) - up,
        "largest": lambda: torch.maximum(act(gate), up),
        "mean": lambda: (act(gate) + up) / 2,
        "half": lambda: act(gate) * up / 2,
        "highway": lambda: act(gate) * up + (1 - act(gate)) * gate,
        "side_by_side": lambda: torch.cat([act(gate), up], dim=-1),
        "gates_x": lambda: act(gate) * x,
        "dot": lambda: (act(gate) * up).sum(-1, keepdim=True),
        "matrix": lambda: act(gate) @ up.mT,
        "divided": lambda: up / act(gate),
        "x_sigmoid": lambda: x * gate.sigmoid() * up,
        "up_squared": lambda: act(gate) * up * up,
        "up_plus_one": lambda: act(gate) * (1 + up),
        "silu_of_x": lambda: (F.silu(x) @ w_gate) * up,
    }[place]()


def _start(x: Tensor, start: str) -> Tensor:
    return {
        "right": lambda: x,
        "silu": lambda: F.silu(x),
        "norm": lambda: F.layer_norm(x, x.shape[-1:]),
        "rms_norm": lambda: x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt(),
        "mean": lambda: x.mean(-2, keepdim=True).expand_as(x),
    }[start]()


def _result(x: Tensor, parts: tuple[Tensor, Tensor, Tensor], w_down: Tensor, end: str) -> object:
    hidden, gate, up = parts

    def out() -> Tensor:
        return hidden @ w_down

    return {
        "hidden": lambda: hidden,
        "gate": lambda: gate,
        "norm_inside": lambda: F.layer_norm(hidden, hidden.shape[-1:]) @ w_down,
        "silu": lambda: F.silu(out()),
        "scaled": lambda: out() / hidden.shape[-1] ** 0.5,
        "each": lambda: (gate @ w_down) * (up @ w_down),
        "after": lambda: gate @ w_down * up,
        "gate_after": lambda: (up @ w_down) * gate,
        "gates_x": lambda: out().sigmoid() * x,
        "mean_for_all": lambda: out().mean(-2, keepdim=True).expand_as(x),
    }.get(end, lambda: formed(ended(out(), x, end), x, end))()


def wrong_swiglu(
    x: Tensor,
    w_gate: Tensor,
    w_up: Tensor,
    w_down: Tensor,
    *,
    start: str = "right",
    weights: str = "right",
    activation: str = "silu",
    place: str = "gate",
    end: str = "right",
    inputs: str = "kept",
) -> object:
    """The gated layer with any of the ways to go wrong; without a switch it is right."""
    if inputs == "silu":
        F.silu(x, inplace=True)
    before, act = x, ACTIVATIONS[activation]
    x = _start(x, start)
    w_gate, w_up, w_down = _matrices(w_gate, w_up, w_down, weights)
    if place == "gates_x":  # silu(x w_gate) * x @ w_up @ w_down, read from the left
        return ((act(x @ w_gate) * x) @ w_up) @ w_down
    gate, up = x @ w_gate, x @ w_up
    hidden = _hidden(x, w_gate, gate, up, act, place)
    out = _result(before, (hidden, act(gate), up), w_down, end)
    if inputs == "overwritten":
        before.copy_(out)
    return out


GATE = "The gate is silu(x w_gate), that is x w_gate times its own sigmoid."
NOT_TRANSPOSED = (
    "here w_gate and w_up are (d_model, d_ff) and w_down is (d_ff, d_model), and all three are multiplied from the "
    "right as they are: x @ w_gate. Where d_model and d_ff are equal, nothing else would complain."
)


def _other(name: str, which: str, *activations: str, edge: bool = False) -> tuple[Mistake, ...]:
    return each(name, f"{which} {GATE}", *({"activation": key} for key in activations), edge=edge)


SWIGLU_MISTAKES = (
    Mistake(
        "gate_and_up_exchanged",
        "The gate and what it multiplies are exchanged: silu belongs on x w_gate, and x w_up stays as it is. Silu is "
        "not the same on the one as on the other.",
        switches={"place": "up"},
        beside="The gate and what it multiplies are exchanged: the activation belongs on x w_gate, not on x w_up.",
    ),
    *each(
        "gate_and_up_exchanged",
        "The gate and what it multiplies are exchanged (F.glu, for one, takes its gate from the second half), and the "
        f"gate goes through the sigmoid alone. {GATE} x w_up stays as it is.",
        {"place": "up", "activation": "sigmoid"},
    ),
    *_other(
        "glu",
        "Your gate is the sigmoid alone: that is GLU, the oldest of the gated forms. For SwiGLU it is "
        "multiplied by x w_gate once more.",
        "sigmoid",
    ),
    *_other(
        "geglu",
        "Your gate goes through gelu: that is GEGLU. SwiGLU has silu (also called swish), which is nearly but "
        "not quite the same.",
        "gelu",
        "gelu_tanh",
        "quick_gelu",
    ),
    *_other("reglu", "Your gate goes through relu: that is ReGLU. SwiGLU has silu (also called swish).", "relu"),
    *_other("bilinear", "Your gate has no activation: x w_gate and x w_up are multiplied as they are.", "none"),
    *_other("another_activation", "Your gate goes through tanh.", "tanh", "tanh_times"),
    *_other("another_activation", "Your gate goes through softplus.", "softplus"),
    *_other("another_activation", "Your gate goes through mish.", "mish"),
    *_other(
        "another_activation", "Your gate goes through hardswish, which is silu made of straight pieces.", "hardswish"
    ),
    *_other("another_activation", "Your gate goes through elu.", "elu"),
    *_other("another_activation", "Your gate goes through leaky_relu.", "leaky"),
    *_other("another_activation", "Your gate goes through the logarithm of the sigmoid.", "log_sigmoid"),
    *_other("another_activation", "Your gate is only open or closed, 1 or 0.", "step"),
    *_other(
        "softmax_gate",
        "Your gates are a softmax over the hidden units, so that they compete with each other; each "
        "unit has a gate of its own.",
        "softmax",
        "softmax_times",
    ),
    *each(
        "mixes_positions",
        f"Your softmax runs over the tokens of a sequence, so the tokens influence each other. {BY_ITSELF} {GATE}",
        {"activation": "softmax_of_tokens"},
    ),
    *_other(
        "sign",
        "A sign is wrong in the gate: the sigmoid must be of x w_gate, and 1 / (1 + exp(-g)) has one minus sign.",
        "wrong_sign",
        "negated",
    ),
    *_other(
        "sign",
        "The denominator of your sigmoid is 1 - exp(-g), which is 0 where g is 0: it must be 1 + exp(-g).",
        "minus_below",
    ),
    *_other(
        "overflow",
        "For large x w_gate your gate is nan: exp(g) is infinite from 89 on, and exp(g) / (1 + exp(g)) is then inf / "
        "inf. Write the sigmoid as 1 / (1 + exp(-g)), or use torch.sigmoid.",
        "overflowing",
        edge=True,
    ),
    *_other("complement", "Your gate is 1 minus the sigmoid: open where it should be closed.", "complement"),
    *_other("silu_twice", "You apply silu twice to the gate.", "twice"),
    *_other("silu_twice", "You take the sigmoid of silu: one function too many.", "sigmoid_of_silu"),
    *_other("silu_squared", "You multiply by x w_gate once too often: silu already holds that factor.", "squared"),
    *_other(
        "one_added",
        "You add 1 to the gate (or x w_up to the product), so what passes is never held back entirely.",
        "silu_plus_one",
    ),
    *each(
        "one_added",
        "You add 1 to x w_up (as some models do). Here it is multiplied by the gate as it is.",
        {"place": "up_plus_one"},
    ),
    Mistake(
        "silu_on_both",
        "Silu is on both sides of the product. It belongs on x w_gate only; x w_up is what passes, as it is.",
        switches={"place": "both"},
        beside="The activation is on both sides of the product. It belongs on x w_gate only; x w_up passes as it is.",
    ),
    *each(
        "sigmoid_on_both",
        f"The sigmoid is on both sides of the product. {GATE} x w_up is what passes, as it is.",
        {"place": "both", "activation": "sigmoid"},
    ),
    Mistake(
        "silu_after_product",
        "You multiply first and apply silu to the product. Silu belongs on x w_gate, before the product.",
        switches={"place": "product"},
        beside="You multiply first and apply the activation to the product. It belongs on x w_gate, before that.",
    ),
    *each(
        "silu_after_product",
        "You apply silu once more, to the product. It belongs on x w_gate only.",
        {"place": "both_and_product"},
        alone=True,
    ),
    *each(
        "no_up",
        "The matrix w_up is not used: you have a plain layer, an activation between w_gate and w_down. The gate must "
        "multiply x w_up.",
        {"place": "gate_only"},
        {"place": "gate_only", "activation": "sigmoid"},
        {"place": "gate_only", "activation": "relu"},
        {"place": "gate_only", "activation": "gelu"},
        alone=True,
    ),
    *each(
        "no_gate",
        "The matrix w_gate is not used: you have a plain layer, an activation between w_up and w_down. Multiply x w_up "
        "by a gate, which is silu(x w_gate).",
        {"place": "up_only"},
        {"place": "up_only", "activation": "sigmoid"},
        {"place": "up_only", "activation": "relu"},
        {"place": "up_only", "activation": "gelu"},
        alone=True,
    ),
    *each(
        "no_gate",
        "There is no gate: you have x w_up w_down, which is linear in x. Multiply x w_up by silu(x w_gate).",
        {"place": "up_bare"},
    ),
    *each(
        "no_up",
        "The matrix w_up is not used: both factors are made with w_gate. What the gate multiplies is x w_up.",
        {"weights": "gate_twice"},
    ),
    *each(
        "no_gate",
        "The matrix w_gate is not used: both factors are made with w_up. The gate is silu(x w_gate).",
        {"weights": "up_twice"},
    ),
    *each(
        "added",
        "You add the gate and x w_up. A gate multiplies: where it is 0 nothing passes.",
        {"place": "sum"},
        {"place": "sum_inside"},
        {"place": "mean"},
    ),
    *each(
        "subtracted",
        "You subtract x w_up from the gate. A gate multiplies: where it is 0 nothing passes.",
        {"place": "difference"},
    ),
    *each("larger_of_both", "You take the larger of the gate and x w_up. A gate multiplies.", {"place": "largest"}),
    *each("divided", "You divide by the gate. A gate multiplies: where it is 0 nothing passes.", {"place": "divided"}),
    *each("scaled", "Your result is half of the right one: nothing is divided by 2 here.", {"place": "half"}),
    *each(
        "up_squared",
        "The product x w_up is there twice: it is multiplied by the gate once, and by nothing else.",
        {"place": "up_squared"},
    ),
    *each(
        "x_in_silu",
        f"Your gate multiplies sigmoid(x w_gate) by x. {GATE} The shapes fit only where d_model and d_ff are equal.",
        {"place": "x_sigmoid"},
    ),
    *each(
        "silu_first",
        "You apply silu to x and multiply by w_gate afterwards. The gate is silu(x w_gate): the product first.",
        {"place": "silu_of_x"},
        alone=True,
    ),
    *each(
        "highway",
        "You add (1 - gate) times something, as a highway or GRU does. Here the gate multiplies x w_up, and nothing is "
        "added.",
        {"place": "highway"},
        {"place": "highway", "activation": "sigmoid"},
    ),
    *each(
        "read_from_the_left",
        "Your gate multiplies x and not x w_up: Python reads * and @ from left to right, so that gate * x @ w_up is "
        "(gate * x) @ w_up. Put the product x @ w_up in brackets. The shapes fit the wrong way only where d_model and "
        "d_ff are equal.",
        {"place": "gates_x"},
        {"place": "gates_x", "activation": "sigmoid"},
    ),
    *each(
        "dot_product",
        "You add up the products of gate and x w_up over the hidden units, or over the tokens, as a product with @ "
        "does. The two are multiplied entry by entry, *, which keeps (…, d_ff).",
        {"place": "dot"},
        {"place": "matrix"},
    ),
    *each(
        "side_by_side",
        "You lay the gate and x w_up side by side, which makes the hidden units twice as many. They are multiplied "
        "entry by entry.",
        {"place": "side_by_side"},
    ),
    *each(
        "transposed",
        f"All three matrices are transposed (as the weights of nn.Linear are stored, and F.linear takes them); "
        f"{NOT_TRANSPOSED}",
        {"weights": "transposed"},
    ),
    *each(
        "transposed", f"The matrices w_gate and w_up are transposed; {NOT_TRANSPOSED}", {"weights": "first_transposed"}
    ),
    *each("transposed", f"The matrix w_gate is transposed; {NOT_TRANSPOSED}", {"weights": "gate_transposed"}),
    *each("transposed", f"The matrix w_up is transposed; {NOT_TRANSPOSED}", {"weights": "up_transposed"}),
    *each("transposed", f"The matrix w_down is transposed; {NOT_TRANSPOSED}", {"weights": "down_transposed"}),
    *each(
        "matrices_exchanged",
        "The matrices w_up and w_down are exchanged: w_up leads from d_model to d_ff, w_down back. The shapes fit the "
        "other way round only where the two widths are equal. The order of the arguments is x, w_gate, w_up, w_down.",
        {"weights": "up_and_down"},
    ),
    *each(
        "matrices_exchanged",
        "The matrices w_gate and w_down are exchanged: w_gate leads from d_model to d_ff, w_down back. The shapes fit "
        "the other way round only where the two widths are equal. The order of the arguments is x, w_gate, w_up, "
        "w_down.",
        {"weights": "gate_and_down"},
    ),
    *each("matrix_used_twice", "The last step uses w_up again, transposed; w_down is never used.", {"weights": "tied"}),
    *each(
        "matrix_used_twice",
        "The last step uses w_gate again, transposed; w_down is never used.",
        {"weights": "tied_to_gate"},
    ),
    *each(
        "no_down",
        "You return the hidden units: your result has d_ff columns. The last step is missing, which leads back to the "
        "width of x: @ w_down.",
        {"end": "hidden"},
    ),
    *each(
        "no_down",
        "You return the gate: your result has d_ff columns. It must multiply x w_up, and w_down leads back to the "
        "width of x.",
        {"end": "gate"},
    ),
    *each(
        "down_too_early",
        "You apply w_down to the gate and to x w_up, each by itself, and multiply afterwards. The product comes first, "
        "w_down last.",
        {"end": "each"},
    ),
    *each(
        "down_too_early",
        "You apply w_down before the product of gate and x w_up is made. The product comes first, w_down last: mind "
        "the brackets, (gate * up) @ w_down.",
        {"end": "after"},
        {"end": "gate_after"},
    ),
    *ENDS,
    *each(
        "norm_inside",
        "You normalise the result, or the hidden units (layer norm). No norm belongs inside: the layer around this "
        "function has one.",
        {"end": "norm"},
        {"end": "norm_inside"},
    ),
    *each(
        "norm_inside",
        "You normalise x first. No norm belongs inside: the layer around this function has one.",
        {"start": "norm"},
        {"start": "rms_norm"},
    ),
    *each(
        "silu_first",
        "You apply silu to x, before any product, and not to x w_gate: your gate is silu(x) w_gate.",
        {"start": "silu", "activation": "none"},
    ),
    *each("silu_first", "You apply silu to x as well. It belongs on x w_gate only.", {"start": "silu"}),
    *each(
        "activation_at_the_end",
        "Your result goes through one more function at the end (silu, relu, sigmoid or softmax). The last step is "
        "linear: return (silu(x w_gate) * (x w_up)) w_down as it is.",
        {"end": "silu"},
        {"end": "relu"},
        {"end": "sigmoid"},
        {"end": "softmax"},
    ),
    *each(
        "activation_at_the_end",
        "Your only activation is at the end, on the result. It belongs on x w_gate.",
        {"activation": "none", "end": "silu"},
    ),
    *each(
        "scaled",
        "You divide the result by the root of d_ff. Nothing is scaled here.",
        {"end": "scaled"},
    ),
    *each(
        "multiplied_by_x",
        "You multiply the result by x. x takes part in the products with w_gate and w_up only.",
        {"end": "times_x"},
    ),
    *each(
        "multiplied_by_x",
        "You multiply x by a sigmoid of the result, as if the whole were a gate for x. Return the result itself.",
        {"end": "gates_x"},
    ),
    *each(
        "mixes_positions",
        f"Your gate is a mean over the tokens of a sequence, the same for all of them. {BY_ITSELF}",
        {"activation": "mean"},
        {"activation": "mean_before"},
    ),
    *each(
        "mixes_positions",
        f"Every token of a sequence gets the same result, made of all of them. {BY_ITSELF}",
        {"start": "mean"},
        {"end": "mean_for_all"},
    ),
    *form_mistakes("end"),
    *each(
        "changes_input",
        "Your x itself is changed: silu in place (inplace=True) works on the caller's tensor, before any product.",
        {"inputs": "silu"},
        {"inputs": "silu", "activation": "none"},
    ),
)

OPERATORS = (
    Mistake(
        "read_from_the_left",
        "Python reads * and @ from left to right: x @ w_gate * x @ w_up is ((x @ w_gate) * x) @ w_up. Put each product "
        "with @ in brackets, and apply silu to x @ w_gate alone. The shapes fit the wrong way only where d_model and "
        "d_ff are equal.",
        lambda x, w_gate, w_up, w_down: F.silu(x @ w_gate * x @ w_up) @ w_down,
    ),
    Mistake(
        "chained",
        "You multiply the gate by the matrix w_up. What the gate multiplies is x w_up, entry by entry, *: w_up is "
        "multiplied with x. The shapes fit your way only where d_model and d_ff are equal.",
        lambda x, w_gate, w_up, w_down: F.silu(x @ w_gate) @ w_up @ w_down,
    ),
    Mistake(
        "entry_by_entry",
        "You multiply by the matrices with *, entry by entry: the product of a matrix is @. The shapes fit only where "
        "the sizes happen to be equal.",
        lambda x, w_gate, w_up, w_down: F.silu(x * w_gate) * (x * w_up) * w_down,
    ),
)

ONE_GATE = "x of shape (1, 5, 4), d_ff 4, w_down the identity, all columns of w_gate alike"


def _another_gate(seen: Seen) -> bool:
    """Each hidden unit is x w_up times something that is a function of x w_gate alone, by all appearances."""
    probe = next(p for p, _, _ in seen if p.says.startswith(ONE_GATE))
    ((expected, given),) = outcomes(seen, ONE_GATE)
    if tensors(seen) is None or bool(close(given.value, expected.value).all()):
        return False
    x, _, w_up, _ = probe.make()
    gate = given.value / (x @ w_up)  # one number for each token, if it is a function of x w_gate alone
    if not bool(close(gate[0, 0], gate[0, 1]).all()):
        return False
    return bool(((gate - gate[..., :1]).abs() <= 1e-3 * (1 + gate.abs())).all()) and float(gate.std()) > 1e-2


def _probe(says: str, *shape: int, d_ff: int, seed: int, edge: bool = False, times: float = 1.0,
           twice: bool = False, one_gate: bool = False) -> Probe:  # fmt: skip
    """Random weights of size about 1; `one_gate`: a number for each token is its gate, and w_down does nothing."""

    def make() -> tuple:
        d = shape[-1]
        x = tokens(*shape, seed=seed, times=times, twice=twice)
        w_gate, w_up = numbers(d, d_ff, seed=seed + 100).clone(), numbers(d, d_ff, seed=seed + 200).clone()
        if one_gate:
            w_gate[:] = w_gate[:, :1].clone()
            a, b = w_gate[:2, 0]
            x[0, 1] = x[0, 0] + torch.stack([b, -a, 0 * a, 0 * a])  # another token with the same gate
        return x, w_gate, w_up, torch.eye(d) if one_gate else numbers(d_ff, d, seed=seed + 300).clone()

    return Probe(says, make, edge=edge)


SWIGLU = Exercise(
    name="feedforward.swiglu",
    reference=feedforward.swiglu,
    results=(Result("result", AXES),),
    probes=(
        *probes(_probe, _probe(ONE_GATE, 1, 5, 4, d_ff=4, seed=14, one_gate=True), seed=11),
        _probe(
            "x of shape (1, 2, 3) with numbers up to about 100, d_ff 4", 1, 2, 3, d_ff=4, seed=11, times=60.0, edge=True
        ),
    ),
    compound=wrong_swiglu,
    at_once=2,
    mistakes=(*SWIGLU_MISTAKES, *OPERATORS),
    symptoms=(
        *OPENINGS,
        linear(
            "no_gate",
            "Your result is linear in x: those of x and -x lie opposite each other. x w_up must be multiplied by "
            "silu(x w_gate).",
        ),
        Symptom(
            "another_activation",
            f"You multiply x w_up by a gate that depends on x w_gate, but by another function of it. {GATE}",
            _another_gate,
        ),
        *ENDINGS,
    ),
)
