"""The exercise build_stack of lesson 08: how people make a module of n layers.

What comes back is a module, so it is not compared: it is tried, and the words that describe what it did are compared.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from .. import model
from .exercise import Exercise, Probe, Result, Symptom, each
from .outcome import Outcome, freeze, observe, said
from .sandbox import Budget
from .symptoms import Seen
from .wording import kind_of

__all__ = ["BUILD_STACK", "Layer", "Maker", "StackExercise", "described"]


class Layer(nn.Module):
    """(row, 2) -> (row, 2), in whole numbers, so that what a stack gives can be read."""

    made = 0  # how many there have been so far

    def __init__(self) -> None:
        super().__init__()
        Layer.made += 1
        self.weight = nn.Parameter(torch.tensor([[1.0, 1.0], [-2.0, 1.0]]))
        self.bias = nn.Parameter(torch.tensor([1.0, 0.0]))
        self.calls: list[Layer] | None = None  # where a check wants to know the order of the calls

    def forward(self, x: Tensor) -> Tensor:
        if self.calls is not None:
            self.calls.append(self)
        return x @ self.weight + self.bias


@dataclass(frozen=True)
class Maker:
    """The argument make_layer: each call makes a layer, and all have the same first values, as copies would."""

    def __call__(self) -> Layer:
        return Layer()


# ---------------------------------------------------------------- what a stack does, in words
def described(stack: object) -> str:
    """What there is to know of a reader's stack."""
    if not isinstance(stack, nn.Module):
        return _kind(stack)
    parameters = list({p.data_ptr(): p for p in stack.parameters()}.values())
    layers = [m for m in stack.modules() if isinstance(m, Layer)]
    calls: list[Layer] = []
    for layer in layers:
        layer.calls = calls
    made = Layer.made
    try:
        y = stack(torch.tensor([[1.0, 2.0]]))
        calls = list(calls)  # what is called later on, as by a checkpoint in the backward pass, is not counted
    except NotImplementedError:
        return f"a module with {_count(parameters)} and without forward"
    if not isinstance(y, Tensor):
        return f"a module with {_count(parameters)}; its forward gives {kind_of(freeze(y))}"
    words = [f"a module with {_count(parameters)}", f"[1, 2] becomes {_row(y)}"]
    words += ["layers are made in forward"] if Layer.made > made else []
    words += _untrained(y, parameters, layers)
    in_turn = len(calls) == len(set(calls)) == len(layers)
    if calls and not in_turn:
        words.append("layers called: " + ", ".join(str(layers.index(layer)) for layer in calls))
    if in_turn and len(calls) > 1 and _in_one_container(stack, calls[::-1]):
        words.append("layers called from the last to the first")
    return "; ".join([*words, *_in_double(stack)])


def _kind(x: object) -> str:
    if isinstance(x, type):
        return "a class"
    return {"generator": "a generator"}.get(
        type(x).__name__, kind_of(x).replace("(is a pair of parentheses missing?)", "").strip()
    )


def _count(parameters: list) -> str:
    return f"{len(parameters)} parameter tensors"


def _untrained(y: Tensor, parameters: list[nn.Parameter], layers: list[Layer]) -> list[str]:
    """What of it would not be trained, and what belongs to no layer."""
    if y.requires_grad:
        y.sum().backward()
    words = []
    if without := [p for p in parameters if p.grad is None or not p.grad.any()]:
        numbers = [str(i) for i, m in enumerate(layers) if any(p is q for p in m.parameters() for q in without)]
        words.append("no gradient for layers " + ", ".join(numbers) if numbers else "no gradient for some of them")
    if not all(p.requires_grad for p in parameters):
        words.append("some of them frozen (requires_grad False)")
    own = {p.data_ptr() for m in layers for p in m.parameters()}
    if other := [p for p in parameters if p.data_ptr() not in own]:
        words.append(f"{len(other)} of them not in a layer")
    return words


def _row(y: Tensor) -> str:
    shape = "" if y.shape == (1, 2) else f" of shape {tuple(y.shape)}"
    return "[" + ", ".join(f"{value:.5g}" for value in y.flatten().tolist()[:10]) + "]" + shape


def _in_one_container(stack: nn.Module, layers: list[Layer]) -> bool:
    """Whether some part of the stack has these layers for its children, in this order."""
    return any([c for c in m.children() if isinstance(c, Layer)] == layers for m in stack.modules())


def _in_double(stack: nn.Module) -> list[str]:
    """What goes wrong once the stack is converted to double precision, as .to(device) would convert it."""
    try:
        y = stack.double()(torch.tensor([[1.0, 2.0]], dtype=torch.float64))
    except RuntimeError:
        return [".double() does not reach all layers"]
    return [] if y.dtype == torch.float64 else ["the result is not in double precision after .double()"]


@dataclass(frozen=True)
class StackExercise(Exercise):
    """An exercise whose answers build a module: the module is tried, and described."""

    def observed(self, fn: Callable, probe: Probe, budget: Budget | None = None) -> Outcome:
        """What `fn` built on `probe`, in words; or what it raised, or what the module raised when it was called."""
        built = observe(fn, probe, budget)
        if built.error is not None or built.hung:
            return built
        kept = replace(probe, make=lambda: ())
        outcome = observe(lambda: described(built.value), kept, budget)
        outcome.changed = built.changed
        return outcome


# ---------------------------------------------------------------- one wrong implementation
class _Stack(nn.Module):
    """Layers in a container of some kind, and a forward of some kind."""

    def __init__(self, layers: list[Layer], held: str, way: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers) if held == "registered" else layers
        if held == "first":
            self.first = layers[0] if layers else None
        if held == "last":
            self.last = layers[-1] if layers else None
        self.way = way

    def forward(self, x: Tensor) -> object:
        return _through(list(self.layers), x, self.way)


def _through(layers: list[Layer], x: Tensor, way: str) -> object:
    start, outputs = x, []
    if way in ("first_only", "last_only"):
        layers = layers[:1] if way == "first_only" else layers[-1:]
    if way in ("without_first", "without_last"):
        layers = layers[1:] if way == "without_first" else layers[:-1]
    if way in ("first_repeated", "last_repeated"):
        layers = [layers[0 if way == "first_repeated" else -1]] * len(layers)
    layers = {"reversed": layers[::-1], "all_twice": layers * 2, "none": [], "each_n_times": layers * len(layers)}.get(
        way, layers
    )
    for i, layer in enumerate(layers):
        y = layer(start if way in ("last_alone", "sum", "mean") else x)
        outputs.append(y)
        x = _handed_on(way, x, start, y, last=i == len(layers) - 1)
    return {
        "sum": lambda: sum(outputs),
        "mean": lambda: sum(outputs) / max(len(outputs), 1),
        "outputs": lambda: outputs,
        "nothing": lambda: None,
        "no_gradient": lambda: x.detach(),
    }.get(way, lambda: x)()


def _handed_on(way: str, x: Tensor, start: Tensor, y: Tensor, *, last: bool) -> Tensor:
    """What the next layer gets, after a layer made y of x."""
    return {
        "residual": lambda: x + y,
        "residual_of_start": lambda: start + y,
        "detached": lambda: y if last else y.detach(),
        "relu_between": lambda: y if last else y.relu(),
        "relu": lambda: y.relu(),
    }.get(way, lambda: y)()


class _Making(nn.Module):
    """Layers that are made when it is called."""

    def __init__(self, make_layer: Callable[[], nn.Module], n: int, way: str) -> None:
        super().__init__()
        self.make_layer, self.n, self.way = make_layer, n, way

    def forward(self, x: Tensor) -> object:
        return _through([self.make_layer() for _ in range(self.n)], x, self.way)


def _made(make_layer: Callable[[], nn.Module], n: int, making: str) -> list:
    if making == "calls":
        return [make_layer() for _ in range(n)]
    layer = make_layer()
    if making == "tied_weights":
        layers = [make_layer() for _ in range(n)]
        for other in layers:
            other.weight = layers[0].weight
        return layers
    if making in ("frozen_copies", "frozen"):
        kept = 1 if making == "frozen_copies" else 0
        layers = [make_layer() for _ in range(n)]
        return [m if i < kept else m.requires_grad_(False) for i, m in enumerate(layers)]
    if making == "shallow":
        return [copy.copy(layer) for _ in range(n)]
    return [layer] * n


COUNTS = {
    "n": lambda n: n, "n + 1": lambda n: n + 1, "n - 1": lambda n: n - 1, "2n": lambda n: 2 * n, "1": lambda n: 1,
    "1 or 0": lambda n: min(n, 1), "1 or n": lambda n: max(n, 1),
    "n + 2": lambda n: n + 2, "6": lambda n: 6, "n n": lambda n: n * n, "2": lambda n: 2, "0": lambda n: 0,
    "n - 2": lambda n: n - 2, "12": lambda n: 12, "3": lambda n: 3,
}  # fmt: skip


def build(
    make_layer: Callable[[], nn.Module],
    n: int,
    *,
    count: str = "n",
    making: str = "calls",
    held: str = "registered",
    way: str = "in_turn",
    given: str = "module",
) -> object:
    """What a reader may build; with no switch set it is right."""
    layers = _made(make_layer, max(COUNTS[count](n), 0), making)
    stack = _Stack(layers, held, way)
    return {
        "module": lambda: stack,
        "made_in_forward": lambda: _Making(make_layer, len(layers), way),
        "list": lambda: layers,
        "tuple": lambda: tuple(layers),
        "module_list": lambda: nn.ModuleList(layers),
        "function": lambda: lambda x: _through(layers, x, way),
        "class": lambda: _Stack,
        "generator": lambda: (layer for layer in layers),
        "one_layer": lambda: layers[0] if layers else nn.Identity(),
        "nothing": lambda: None,
        "no_star": lambda: nn.Sequential(layers),
        "no_star_generator": lambda: nn.Sequential(layer for layer in layers),
        "not_called": lambda: nn.Sequential(*[make_layer] * n),
        "indexed": lambda: nn.Sequential(*(make_layer(i) for i in range(n))),
        "multiplied": lambda: nn.Sequential(*(make_layer() * n)),
        "no_super": lambda: _without_super(layers),
        "twice_nested": lambda: nn.Sequential(*(nn.Sequential(*layers) for _ in range(n))),
    }[given]()


def _without_super(layers: Iterable[nn.Module]) -> nn.Module:
    class Stack(nn.Module):
        def __init__(self) -> None:
            self.layers = nn.ModuleList(layers)

    return Stack()


# ---------------------------------------------------------------- the gallery
OWN = "each layer has parameters of its own: call make_layer n times, or make a deepcopy for each."
CHAIN = "Each layer must get what the one before it gave."
REGISTERED = (
    "PyTorch finds layers that are attributes of a module, or in a ModuleList or Sequential; in a plain list, tuple or "
    "dict it does not."
)
NUMBER = "You build {}: n are asked for."

MISTAKES = (
    *each(
        "one_layer_shared",
        "Your stack holds one layer n times ([layer] * n, or copies with the same parameters): parameters() counts it "
        f"once, and all places learn the same. In a stack {OWN}",
        {"making": "shared"},
        {"making": "shallow"},
    ),
    *each(
        "some_parameters_shared",
        f"Your layers share some of their parameters. In a stack {OWN}",
        {"making": "tied_weights"},
    ),
    *each(
        "made_in_forward",
        "The layers are made in forward, anew in each call: nothing that they learn is kept, and parameters() finds "
        "none. Make them once, in __init__, and keep them in a ModuleList.",
        {"given": "made_in_forward"},
    ),
    *each(
        "not_registered",
        "Your stack computes the right result, but parameters() finds nothing in it: no optimiser would train it, no "
        f".to(device) move it. {REGISTERED}",
        {"held": "list"},
    ),
    *each(
        "partly_registered",
        f"In parameters() stands only one of your layers: the others are never trained. {REGISTERED}",
        {"held": "first"},
        {"held": "last"},
    ),
    *each("one_too_many", NUMBER.format("n + 1 layers"), {"count": "n + 1"}),
    *each("one_layer_at_least", "For n = 0 you build one layer, and none is asked for: the first is made "
          "whatever n is.",
          {"count": "1 or n"}, edge=True),
    *each("one_too_few", NUMBER.format("n - 1 layers"), {"count": "n - 1"}),
    *each("one_layer", NUMBER.format("one layer whatever n is"), {"count": "1"}, {"count": "1 or 0"}),
    *each("wrong_number", NUMBER.format("twice as many layers as n"), {"count": "2n"}),
    *each("wrong_number", NUMBER.format("two layers too many"), {"count": "n + 2"}),
    *each("wrong_number", NUMBER.format("n times n layers"), {"count": "n n"}),
    *each("wrong_number", NUMBER.format("two layers too few"), {"count": "n - 2"}),
    *each("no_layers", NUMBER.format("a stack without layers"), {"count": "0"}),
    *each("n_ignored", NUMBER.format("the same number of layers whatever n is"), {"count": "2"}, {"count": "3"},
          {"count": "6"}, {"count": "12"}),
    *each(
        "input_not_handed_on",
        "Only the last layer has an effect: each layer is given the first x, and what the one before it gave is lost. "
        "x = layer(x) hands it on.",
        {"way": "last_alone"},
    ),
    *each("last_layer_only", "Only the last layer is called: all n are, in turn.", {"way": "last_only"}),
    *each(
        "first_layer_only",
        "All n layers are there, and only the first is called. Does return stand inside the loop?",
        {"way": "first_only"},
    ),
    *each("first_layer_missing", "Your forward leaves out the first layer.", {"way": "without_first"}),
    *each("last_layer_missing", "Your forward leaves out the last layer.", {"way": "without_last"}),
    *each(
        "one_layer_repeated",
        "All n layers are there, and one and the same is called at every step: the others are never trained.",
        {"way": "first_repeated"}, {"way": "last_repeated"},
    ),
    *each("layers_called_too_often", "Your forward calls each layer more than once: each is called once, in turn.",
          {"way": "all_twice"}, {"way": "each_n_times"}),
    *each("layers_called_too_often", "The whole stack stands n times in your module: each layer is called once.",
          {"given": "twice_nested"}),
    *each("no_layer_called", "Your forward gives back its input: what the layers give is not kept. x = layer(x) "
          "keeps it.", {"way": "none"}),
    *each("reversed", "The layers run from the last to the first: in turn means that layer 0 gets the input.",
          {"way": "reversed"}),
    *each("layers_summed", f"The layers run side by side on one input, and their results are added. {CHAIN}",
          {"way": "sum"}),
    *each("layers_averaged", f"The layers run side by side on one input, and their results are averaged. {CHAIN}",
          {"way": "mean"}),
    *each("residual_added", "Its own input is added to what each layer gives: a residual belongs inside a layer, not "
          "between two.",
          {"way": "residual"}),
    *each("residual_added", "The first x is added to what each layer gives: a residual belongs inside a layer.",
          {"way": "residual_of_start"}),
    *each("relu_between", "A relu stands between the layers: the stack only hands on what a layer gives.",
          {"way": "relu"}, {"way": "relu_between"}),
    *each("gradient_cut", "The result is right, but no gradient reaches the layers before the last: something cuts the "
          "graph between two layers (detach, .data, a new tensor).", {"way": "detached"}),
    *each("no_gradient", "The result is right, but no gradient reaches the layers: something cuts the graph (detach, "
          "no_grad, numpy).", {"way": "no_gradient"}),
    *each("frozen", "Parameters of your layers are frozen (requires_grad is False): no optimiser can train them.",
          {"making": "frozen"}, {"making": "frozen_copies"}),
    *each("all_outputs", "Your forward gives what every layer gave: only the last is asked for.",
          {"way": "outputs"}, alone=True),
    *each("forward_returns_nothing", "Your forward returns nothing: a return is missing.", {"way": "nothing"},
          alone=True),
    *each("list", "A plain list or tuple of layers comes back: what is asked for is a module, which can be called and "
          "knows its parameters (nn.Sequential, or a class of your own).", {"given": "list"}, {"given": "tuple"},
          alone=True),
    *each("no_forward", "Your stack has no forward (a ModuleList has none): it cannot be called. nn.Sequential has "
          "one, or write a module of your own around the list.", {"given": "module_list"}, alone=True),
    *each("function", "A function comes back: it computes, but has no parameters that an optimiser could find. What is "
          "asked for is a module.", {"given": "function"}, alone=True),
    *each("class", "The class itself comes back, not a stack made of it: a pair of parentheses is missing.",
          {"given": "class"}, alone=True),
    *each("generator", "A generator of layers comes back: what is asked for is a module.", {"given": "generator"},
          alone=True),
    *each("nothing_returned", "Nothing comes back: a return is missing.", {"given": "nothing"}, alone=True),
    *each("star_missing", "The layers go into nn.Sequential one by one, not a list of them: a star unpacks a list, "
          "nn.Sequential(*layers).", {"given": "no_star"}, {"given": "no_star_generator"}, alone=True),
    *each("maker_not_called", "The function make_layer itself is put into the stack, not the layer that it makes: call "
          "it, make_layer().", {"given": "not_called"}, alone=True),
    *each("maker_given_argument", "A layer is made by make_layer(), without an argument: all n are made alike.",
          {"given": "indexed"}, alone=True),
    *each("layer_multiplied", "A layer cannot be multiplied by n. Multiplying a list of one layer would not help: it "
          f"holds the same layer n times, and {OWN}", {"given": "multiplied"}, alone=True),
    *each("super_missing", "Your class does not call super().__init__() before it takes its layers: nothing can be "
          "registered before that.", {"given": "no_super"}, alone=True),
)  # fmt: skip


# ---------------------------------------------------------------- symptoms and probes
def _words(seen: Seen) -> list[tuple[str, str]] | None:
    """(expected, given) on the ordinary probes, if something came back on each."""
    pairs = [(e.value, g.value) for p, e, g in seen if not p.edge]
    return pairs if all(isinstance(given, str) for _, given in pairs) else None


def _no_module(seen: Seen) -> bool:
    pairs = _words(seen)
    return pairs is not None and all(not given.startswith("a module") for _, given in pairs)


def _says_error(words: str) -> Callable[[Seen], bool]:
    def shows(seen: Seen) -> bool:
        errors = [said(g.error) for _, _, g in seen if g.error is not None]
        return bool(errors) and all(words in error for error in errors)

    return shows


def _says_everywhere(words: str) -> Callable[[Seen], bool]:
    def shows(seen: Seen) -> bool:
        pairs = _words(seen)
        return pairs is not None and all(words in given for _, given in pairs)

    return shows


def _right(part: int, other: int) -> Callable[[Seen], bool]:
    """Whether one part of the description is always right, and the other one wrong wherever there are two layers."""

    def shows(seen: Seen) -> bool:
        pairs = _words(seen)
        if pairs is None or not all("becomes" in given for _, given in pairs):
            return False
        same = [[a == b for a, b in zip(e.split("; "), g.split("; "), strict=False)] for e, g in pairs]
        return all(row[part] for row in same) and not any(row[other] for row in same[:2])

    return shows


def _reference(make_layer: Callable[[], nn.Module], n: int) -> nn.Module:
    """The package's, which refuses a stack without layers; a reader's may be empty, and hands on what it gets."""
    return model.build_stack(make_layer, n) if n else nn.Sequential()


BUILD_STACK = StackExercise(
    name="model.build_stack",
    reference=_reference,
    results=(Result("stack"),),
    probes=(
        *(Probe(f"layers that turn [1, 2] into [-2, 3], n = {n}", lambda n=n: (Maker(), n)) for n in (2, 3, 1)),
        Probe("n = 0", lambda: (Maker(), 0), edge=True, may_raise=(ValueError, AssertionError)),
    ),
    compound=build,
    at_once=2,
    mistakes=MISTAKES,
    symptoms=(
        Symptom("no_module", "What comes back is not a module (nn.Module), which can be called and knows its "
                "parameters: nn.Sequential, or a class of your own.", _no_module),
        Symptom("no_forward", "Your stack has no forward: it cannot be called. nn.Sequential has one, or write a "
                "module of your own around the list.", _says_everywhere("without forward")),
        Symptom("attribute_missing", "Something is asked for that was never kept: inside a class the layers are kept "
                "by self, self.layers = ..., and found by the same name.", _says_error("object has no attribute")),
        Symptom("other_parts", "Your stack has parameters that belong to none of its layers, such as those of a norm "
                "or a linear map: it holds n layers, and nothing that learns besides.",
                _says_everywhere("not in a layer")),
        Symptom("forward_gives_no_tensor", "Your forward does not give one tensor: it gives what the last layer gave, "
                "and nothing more.", _says_everywhere("its forward gives")),
        Symptom("parameters_missing_or_shared", "Your stack computes the right result, but has not as many parameters "
                f"as n layers: some are shared, or not registered. In a stack {OWN} {REGISTERED}",
                _right(1, 0)),
        Symptom("forward_wrong", "Your stack has as many parameters as n layers, but what it computes is not right: "
                "either it is not the chain of its layers, each of which gets what the one before it gave, or their "
                "parameters are no longer as make_layer made them.", _right(0, 1)),
    ),
)  # fmt: skip
