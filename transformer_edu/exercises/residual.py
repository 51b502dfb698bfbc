"""The exercise residual_block of lesson 05: what people compute for x + f(norm(x)) and for norm(x + f(x)).

A wrong answer is a formula in mode "pre", in mode "post", or in both, so the one wrong implementation has a switch for
each mode, and every formula here can stand in either.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import norms
from .exercise import Exercise, Mistake, Probe, Result, Symptom, each
from .norm_parts import numbers
from .outcome import same_value
from .symptoms import CHANGES_INPUT, MORE_RESULTS, ONLY_SHAPE, Seen

__all__ = ["RESIDUAL_BLOCK"]

Function = Callable[[Tensor], Tensor]

PRE, POST = "x + f(norm(x))", "norm(x + f(x))"
FORMULAS: dict[str, Callable[[Tensor, Function, Function], object]] = {
    PRE: lambda x, f, n: x + f(n(x)),
    POST: lambda x, f, n: n(x + f(x)),
    "f(norm(x))": lambda x, f, n: f(n(x)),
    "norm(f(x))": lambda x, f, n: n(f(x)),
    "x + f(x)": lambda x, f, n: x + f(x),
    "f(x)": lambda x, f, n: f(x),
    "norm(x)": lambda x, f, n: n(x),
    "x": lambda x, f, n: x,
    "norm(x) + f(norm(x))": lambda x, f, n: n(x) + f(n(x)),
    "norm(x) + f(x)": lambda x, f, n: n(x) + f(x),
    "x + norm(f(x))": lambda x, f, n: x + n(f(x)),
    "norm(x) + norm(f(x))": lambda x, f, n: n(x) + n(f(x)),
    "norm(x + f(norm(x)))": lambda x, f, n: n(x + f(n(x))),
    "norm(norm(x) + f(norm(x)))": lambda x, f, n: n(n(x) + f(n(x))),
    "norm(norm(x) + f(x))": lambda x, f, n: n(n(x) + f(x)),
    "norm(f(norm(x)))": lambda x, f, n: n(f(n(x))),
    "x + norm(f(norm(x)))": lambda x, f, n: x + n(f(n(x))),
    "norm(x) + norm(f(norm(x)))": lambda x, f, n: n(x) + n(f(n(x))),
    "norm(x + norm(f(x)))": lambda x, f, n: n(x + n(f(x))),
    "x + norm(x + f(x))": lambda x, f, n: x + n(x + f(x)),
    "x + norm(x + f(norm(x)))": lambda x, f, n: x + n(x + f(n(x))),
    "x + norm(x)": lambda x, f, n: x + n(x),
    "norm(x + x)": lambda x, f, n: n(x + x),
    "f(norm(x + f(x)))": lambda x, f, n: f(n(x + f(x))),
    "x + f(norm(x + f(x)))": lambda x, f, n: x + f(n(x + f(x))),
    "f(x + norm(x))": lambda x, f, n: f(x + n(x)),
    "x + f(x + norm(x))": lambda x, f, n: x + f(x + n(x)),
    "x + f(f(norm(x)))": lambda x, f, n: x + f(f(n(x))),
    "x + f(norm(f(x)))": lambda x, f, n: x + f(n(f(x))),
    "x + f(norm(f(norm(x))))": lambda x, f, n: x + f(n(f(n(x)))),
    "norm(x + f(f(x)))": lambda x, f, n: n(x + f(f(x))),
    "x + f(norm(norm(x)))": lambda x, f, n: x + f(n(n(x))),
    "norm(norm(x + f(x)))": lambda x, f, n: n(n(x + f(x))),
    "norm(norm(x))": lambda x, f, n: n(n(x)),
    "x + f(x) + f(norm(x))": lambda x, f, n: x + f(x) + f(n(x)),
    "x + norm(x) + f(norm(x))": lambda x, f, n: x + n(x) + f(n(x)),
    "x + norm(x) + f(x)": lambda x, f, n: x + n(x) + f(x),
    "x + x + f(norm(x))": lambda x, f, n: x + x + f(n(x)),
    "norm(x + x + f(x))": lambda x, f, n: n(x + x + f(x)),
    "x + f(norm(x)) + f(norm(x))": lambda x, f, n: x + 2 * f(n(x)),
    "norm(x + f(x) + f(x))": lambda x, f, n: n(x + 2 * f(x)),
    "x * f(norm(x))": lambda x, f, n: x * f(n(x)),
    "norm(x * f(x))": lambda x, f, n: n(x * f(x)),
    "x - f(norm(x))": lambda x, f, n: x - f(n(x)),
    "norm(x - f(x))": lambda x, f, n: n(x - f(x)),
    "f(norm(x)) - x": lambda x, f, n: f(n(x)) - x,
    "norm(f(x) - x)": lambda x, f, n: n(f(x) - x),
    "(x + f(norm(x))) / 2": lambda x, f, n: (x + f(n(x))) / 2,
    "norm((x + f(x)) / 2)": lambda x, f, n: n((x + f(x)) / 2),
    "norm(x) + f(norm(x)) + f(x)": lambda x, f, n: n(x) + f(n(x)) + f(x),
    "f(norm(x) + f(x))": lambda x, f, n: f(n(x) + f(x)),
    "f(x) + f(norm(x))": lambda x, f, n: f(x) + f(n(x)),
    "norm(f(x)) + f(x)": lambda x, f, n: n(f(x)) + f(x),
    "f(f(x))": lambda x, f, n: f(f(x)),
    "x + f(f(x))": lambda x, f, n: x + f(f(x)),
    "norm(f(x) + f(x))": lambda x, f, n: n(f(x) + f(x)),
    "norm(x) - f(norm(x))": lambda x, f, n: n(x) - f(n(x)),
    "norm(x + f(norm(x)) + f(x))": lambda x, f, n: n(x + f(n(x)) + f(x)),
    "torch.cat((x, f(norm(x))), -1)": lambda x, f, n: torch.cat((x, f(n(x))), -1),
    "nothing (None)": lambda x, f, n: None,
}


def combine(
    x: Tensor, f: Function, norm: Function, mode: str, *, pre: str = PRE, post: str = POST, changed: str = "never"
) -> object:
    """What a reader makes of the two modes; with no switch set it is right."""
    result = FORMULAS[pre if mode == "pre" else post](x, f, norm)
    if changed in ("both", mode):
        x += 1.0
    return result


def _with_own_norm(x: Tensor, f: Function, norm: Function, mode: str) -> object:
    return combine(x, f, lambda y: F.layer_norm(y, y.shape[-1:]), mode)


# ---------------------------------------------------------------- the gallery
NO_RESIDUAL = "The residual is missing: x itself does not go on, and where f gives 0 nothing is left of it."
ADDED = "What f gives is added to x, not {}."
KNOWN = {  # a formula: a name for it, and what is to be said of it in mode "pre" and in mode "post"
    "f(norm(x))": ("without_residual", NO_RESIDUAL, NO_RESIDUAL + " And the norm stands before f, not after the sum."),
    "norm(f(x))": ("without_residual", NO_RESIDUAL + " And the norm stands after f, not before it.", NO_RESIDUAL),
    "norm(f(norm(x)))": ("without_residual", NO_RESIDUAL + " And one norm is too many.", NO_RESIDUAL),
    "f(x)": ("without_residual", NO_RESIDUAL + " And there is no norm.", NO_RESIDUAL + " And there is no norm."),
    "x + f(x)": ("without_norm", "The norm is missing: f gets norm(x).", "The norm is missing: the sum is normalised."),
    "norm(x)": ("without_f", "The sub-layer f does not enter.", "The sub-layer f does not enter."),
    "x": ("without_f", "The sub-layer f does not enter.", "The sub-layer f does not enter."),
    "x + norm(x)": ("without_f", "The sub-layer f does not enter.", "The sub-layer f does not enter."),
    "norm(x + x)": ("without_f", "The sub-layer f does not enter.", "The sub-layer f does not enter."),
    "norm(norm(x))": ("without_f", "The sub-layer f does not enter.", "The sub-layer f does not enter."),
    "norm(x) + f(norm(x))": (
        "normed_residual",
        "The residual must be x itself, as it came: only f gets the normed one. Is x overwritten, x = norm(x)?",
        "The norm stands before f, and the sum is not normalised.",
    ),
    "norm(x) + f(x)": (
        "x_normed_alone",
        "The norm belongs inside f, and x goes on as it came.",
        "Only x is normalised, the sum is not.",
    ),
    "x + norm(f(x))": (
        "norm_after_f",
        "The norm stands after f, where it must stand before it.",
        "Only what f gives is normalised, the sum is not.",
    ),
    "norm(x) + norm(f(x))": (
        "normed_separately",
        "The norm belongs inside f, and x goes on as it came.",
        "Each part is normalised by itself, the sum is not.",
    ),
    "norm(x + f(norm(x)))": (
        "normed_twice",
        "The norm before f is right, the one around the sum is too many.",
        "The norm around the sum is right, the one before f is too many.",
    ),
    "norm(norm(x) + f(norm(x)))": (
        "normed_twice",
        "Norms stand in two places: only f gets a normed x.",
        "Norms stand in two places: only the sum is normalised. Is x overwritten, x = norm(x)?",
    ),
    "x * f(norm(x))": ("multiplied", ADDED.format("multiplied by it"), ADDED.format("multiplied by it")),
    "norm(x * f(x))": ("multiplied", ADDED.format("multiplied by it"), ADDED.format("multiplied by it")),
    "x - f(norm(x))": ("subtracted", ADDED.format("subtracted from it"), ADDED.format("subtracted from it")),
    "norm(x - f(x))": ("subtracted", ADDED.format("subtracted from it"), ADDED.format("subtracted from it")),
    "torch.cat((x, f(norm(x))), -1)": ("joined", ADDED.format("joined to it"), ADDED.format("joined to it")),
    "nothing (None)": ("nothing_returned", "Is a return missing?", "Is a return missing?"),
}


def _sentence(mode: str, formula: str) -> str:
    more = KNOWN.get(formula, ("", "", ""))[1 if mode == "pre" else 2]
    return f'In mode "{mode}" you compute {formula}: it must be {PRE if mode == "pre" else POST}. {more}'.strip()


def _one_mode(mode: str) -> tuple[Mistake, ...]:
    """Every formula in one mode, the other mode as it should be."""
    right, other = (PRE, POST) if mode == "pre" else (POST, PRE)
    return tuple(
        Mistake(
            f"{mode}_{KNOWN.get(formula, ('other_formula',))[0]}", _sentence(mode, formula), switches={mode: formula}
        )
        for formula in FORMULAS
        if formula not in (right, other)
    )


def _name_of_both(formula: str) -> str:
    return KNOWN.get(formula, ("mode_ignored",))[0]


def _mode_ignored(formula: str) -> str:
    name = KNOWN.get(formula, ("",))[0]
    more = {
        "normed_twice": "Norms stand in two places: each mode has one place for the norm, and only one.",
        "without_residual": NO_RESIDUAL,
        "without_norm": "The norm is missing.",
        "without_f": "The sub-layer f does not enter.",
        "multiplied": ADDED.format("multiplied by it"),
        "subtracted": ADDED.format("subtracted from it"),
        "joined": ADDED.format("joined to it"),
    }.get(name, "")
    return f'You compute {formula} in both modes: "pre" asks for {PRE}, "post" for {POST}. {more}'.strip()


MISTAKES = (
    *each(
        "mode_ignored",
        f'You compute {PRE} in both modes, which is pre-norm. Mode "post" must end with the norm: {POST}. Does the '
        "comparison of mode come out as you think?",
        {"post": PRE},
    ),
    *each(
        "mode_ignored",
        f'You compute {POST} in both modes, which is post-norm. Mode "pre" must leave x without a norm: {PRE}. Does '
        "the comparison of mode come out as you think?",
        {"pre": POST},
    ),
    *each(
        "modes_exchanged",
        f'The modes are exchanged: "pre" (the norm before f) is {PRE}, "post" (the norm after the sum) is {POST}.',
        {"pre": POST, "post": PRE},
    ),
    *each(
        "f_and_norm_exchanged",
        "The arguments f and norm have changed places: the second is the sub-layer f, the third is the norm.",
        {"pre": "x + norm(f(x))", "post": "f(x + norm(x))"},
    ),
    Mistake(
        "own_norm",
        "You use a layer norm of your own in place of the argument norm, which may be another one, with parameters "
        "that it has learnt: call norm(...).",
        wrong=_with_own_norm,
    ),
    *(
        Mistake(_name_of_both(formula), _mode_ignored(formula), switches={"pre": formula, "post": formula})
        for formula in FORMULAS
        if formula not in (PRE, POST)
    ),
    *_one_mode("pre"),
    *_one_mode("post"),
    *each(
        "changes_x",
        "The caller's x is changed: an operation in place (x += ...) works on it. Write x = x + ..., which makes a new "
        "tensor.",
        {"changed": "both"},
        {"changed": "pre"},
        {"changed": "post"},
    ),
)


# ---------------------------------------------------------------- symptoms and probes
def _square(y: Tensor) -> Tensor:
    return y * y


def _halve(y: Tensor) -> Tensor:
    return y / 2


def _mix(y: Tensor) -> Tensor:
    """A sub-layer that mixes the columns of a token."""
    return torch.tanh(y @ numbers(4, 4, seed=11))


def _nothing(y: Tensor) -> Tensor:
    return torch.zeros_like(y)


def _norm(y: Tensor) -> Tensor:
    """A layer norm that has learnt something, so that normalising twice is not the same as once."""
    return F.layer_norm(y, (4,), torch.tensor([0.5, 1.5, 0.75, -1.0]), torch.tensor([0.25, -0.5, 1.0, 0.5]))


def _given(f: Function, norm: Function, mode: str, x: Callable[[], Tensor]) -> Callable[[], tuple]:
    return lambda: (x().clone(), f, norm, mode)


def _small() -> Tensor:
    return torch.tensor([[4.0, 6.0]])


def _tokens() -> Tensor:
    return numbers(2, 3, 4, seed=12)


def _same_in_both_modes(seen: Seen) -> bool:
    (_, _, a), (_, _, b) = seen[:2]
    return isinstance(a.value, Tensor) and isinstance(b.value, Tensor) and same_value(a.value, b.value)


def _right_in(mode: str) -> Callable[[Seen], bool]:
    """Whether this mode is right on every probe, and the other is not, and nothing raises."""

    def shows(seen: Seen) -> bool:
        right = [(p.make()[3] == mode, same_value(e.value, g.value) and not g.changed) for p, e, g in seen]
        return (
            all(g.error is None and isinstance(g.value, Tensor) for _, _, g in seen)
            and all(ok for this, ok in right if this)
            and not all(ok for this, ok in right if not this)
        )

    return shows


def _says(mode: str, what: str) -> str:
    return f'{what}, mode "{mode}"'


RESIDUAL_BLOCK = Exercise(
    name="norms.residual_block",
    reference=norms.residual_block,
    results=(Result("result", ("batch", "token", "column")),),
    probes=tuple(
        Probe(_says(mode, what), _given(f, norm, mode, x))
        for what, f, norm, x in (
            ("x = [[4, 6]], f squares, norm halves", _square, _halve, _small),
            ("x of shape (2, 3, 4), f mixes columns, norm is a layer norm", _mix, _norm, _tokens),
            ("x of shape (2, 3, 4), f gives 0, norm is a layer norm", _nothing, _norm, _tokens),
        )
        for mode in ("pre", "post")
    ),
    compound=combine,
    at_once=2,
    mistakes=MISTAKES,
    symptoms=(
        CHANGES_INPUT,
        MORE_RESULTS,
        ONLY_SHAPE,
        Symptom(
            "mode_ignored",
            f'Both modes give the same numbers: mode is not looked at. "pre" asks for {PRE}, "post" for {POST}.',
            _same_in_both_modes,
        ),
        Symptom(
            "post_wrong",
            f'Mode "pre" is right, mode "post" is not. It must be {POST}: f gets x as it came, and the norm comes '
            "last, around the sum.",
            _right_in("pre"),
        ),
        Symptom(
            "pre_wrong",
            f'Mode "post" is right, mode "pre" is not. It must be {PRE}: f gets norm(x), and x is added as it came.',
            _right_in("post"),
        ),
    ),
)
