"""The exercise train_step of lesson 09. A probe is a small model that is trained for one step or for several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .. import training
from .exercise import Exercise, Mistake, Probe, Result, Symptom
from .outcome import Outcome, said, same_value
from .sandbox import Budget
from .symptoms import Seen
from .training_parts import number_of, one, right_only_without

__all__ = ["TRAIN_STEP"]


# ---------------------------------------------------------------- what a step is tried on
class _Louder(nn.Module):
    """Another result in training than in evaluation, as dropout has, but always the same."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 1.5 if self.training else x


class PlainSGD(torch.optim.Optimizer):
    """Gradient descent with momentum, and what happens around it, in order: "backward", "gradient" and "step".

    As torch's, but without its constructor, which loads torch's compiler: that takes longer than a check may.
    """

    def __init__(self, parameters: list[Tensor], lr: float, momentum: float) -> None:
        self.defaults = {"lr": lr, "momentum": momentum}
        self.param_groups = [{"params": parameters, **self.defaults}]
        self.state: dict[Tensor, Tensor] = {}
        self.events: list[str] = []

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear all gradients."""
        for p in self.param_groups[0]["params"]:
            if p.grad is not None:
                p.grad = None if set_to_none else torch.zeros_like(p)

    def step(self, closure: Callable | None = None) -> object:
        """One update of every parameter that has a gradient."""
        loss = None if closure is None else closure()
        self.events.append("step")
        lr, momentum = self.param_groups[0]["lr"], self.param_groups[0]["momentum"]
        with torch.no_grad():
            for p in self.param_groups[0]["params"]:
                if p.grad is not None:
                    self.state[p] = momentum * self.state.get(p, 0.0) + p.grad
                    p -= lr * self.state[p]
        return loss


@dataclass(frozen=True)
class Situation:
    """A model, an optimizer, a loss and some batches."""

    batches: int = 1
    max_norm: float = 100.0
    momentum: float = 0.0
    evaluated: bool = False
    seed: int = 5
    loss: Callable[[Tensor, Tensor], Tensor] = F.mse_loss

    def model(self) -> nn.Sequential:
        """A linear layer from 3 to 2, then one that tells the modes apart; `evaluated`: left in evaluation mode."""
        generator = torch.Generator().manual_seed(3)
        layer = nn.Linear(3, 2)
        with torch.no_grad():
            for p in layer.parameters():
                p.copy_(torch.randn(p.shape, generator=generator))
        return nn.Sequential(layer, nn.Sequential(_Louder())).train(not self.evaluated)

    def data(self) -> list[tuple[Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(self.seed)
        pairs = [(torch.randn(4, 3, generator=generator), torch.rand(4, 2, generator=generator)) for _ in range(3)]
        return pairs[: self.batches]


def _watched(loss_fn: Callable, events: list[str]) -> Callable:
    """The same loss, with a note of when its gradient is taken."""

    def watched(prediction: Tensor, target: Tensor) -> Tensor:
        loss = loss_fn(prediction, target)
        if loss.requires_grad:
            loss.register_hook(lambda _: events.append("backward"))
        return loss

    return watched


def _update(events: list[str], changed: bool) -> str:
    """What became of the weights, and, where they did not change, why."""
    if "step" not in events:
        return "made without the optimizer" if changed else "missing: the optimizer took no step"
    if events.count("step") > 1:
        return "made more than once"
    if changed:
        return "made"
    if "backward" not in events:
        return "empty: no gradient was taken"
    if "gradient" not in events:
        return "empty: the gradient did not reach the weights"
    early = events.index("step") < events.index("gradient")
    return "empty: the gradient came after it" if early else "empty: the gradient was gone"


def _kind(loss: object) -> str:
    if isinstance(loss, Tensor):
        return "tensor with its graph" if loss.requires_grad else "tensor"
    if isinstance(loss, (np.ndarray, np.generic)) and not isinstance(loss, float):
        return "NumPy number"
    return "number"


def _weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def _run(fn: Callable) -> Callable:
    """A function of a situation: train with the reader's step, and tell how it went."""

    def trained(situation: Situation) -> list:
        model = situation.model()
        optimizer = PlainSGD(list(model.parameters()), 0.1, situation.momentum)
        loss_fn = _watched(situation.loss, optimizer.events)
        for p in model.parameters():
            p.register_hook(lambda _: optimizer.events.append("gradient"))
        weights, loss, update = [_weights(model)], None, "made"
        for x, y in situation.data():
            optimizer.events.clear()
            loss = fn(model, optimizer, loss_fn, x, y, situation.max_norm)
            weights.append(_weights(model))
            if update == "made":
                update = _update(optimizer.events, not torch.equal(*weights[-2:]))
        return [_kind(loss), number_of(loss), update, torch.stack(weights[1:])]

    return trained


def _makes_optimizers(fn: Callable) -> bool:
    """Whether the code of a function speaks of torch.optim."""
    names = getattr(getattr(fn, "__code__", None), "co_names", ())
    return any(name in ("optim", "SGD", "Adam", "AdamW") for name in names)


class StepExercise(Exercise):
    """The function is called on each batch of a situation in turn; judged are the last loss and all weights."""

    def observed(self, fn: Callable, probe: Probe, budget: Budget | None = None) -> Outcome:
        """What comes of training with `fn`: kind of result, loss, how the update went, the weights."""
        if _makes_optimizers(fn):
            torch.optim.SGD([torch.zeros(1)], lr=0.1)  # loads torch's compiler, which the alarm must not interrupt
        return super().observed(_run(fn), probe, budget)


# ---------------------------------------------------------------- one wrong implementation
def _clipped_by_value(grads: list[Tensor], max_norm: float) -> list[Tensor]:
    return [g.clamp(-max_norm, max_norm) for g in grads]


def _scaled(grads: list[Tensor], max_norm: float, how: str) -> list[Tensor]:
    """The gradients after what the reader takes for clipping by their total norm."""
    norms = torch.stack([g.norm() for g in grads])
    size = {
        "sum_of_norms": lambda: norms.sum(),
        "largest_norm": lambda: norms.max(),
        "mean_of_norms": lambda: norms.mean(),
        "no_root": lambda: norms.square().sum(),
        "largest_entry": lambda: max(g.abs().max() for g in grads),
        "absolute_sum": lambda: sum(g.abs().sum() for g in grads),
        "first_alone": lambda: norms[0],
        "mean_square": lambda: (norms.square().sum() / sum(g.numel() for g in grads)).sqrt(),
    }.get(how, lambda: norms.square().sum().sqrt())()
    if how == "each":
        return [g * min(1.0, max_norm / float(n)) for g, n in zip(grads, norms, strict=True)]
    if how == "each_row":
        return [g * (max_norm / g.norm(dim=-1, keepdim=True)).clamp(max=1.0) for g in grads]
    if how == "value":
        return _clipped_by_value(grads, max_norm)
    if how == "last_clipped":
        return [*grads[:-1], grads[-1] * min(1.0, max_norm / float(norms[-1]))]
    if how == "first_clipped":
        return [grads[0] * min(1.0, max_norm / float(norms[0])), *grads[1:]]
    factor = {
        "none": 1.0,
        "always": max_norm / float(size),
        "unit": 1 / float(size),
        "unit_if_larger": 1 / float(size) if size > max_norm else 1.0,
        "one": min(1.0, 1 / float(size)),
        "times": max_norm if size > max_norm else 1.0,
        "always_times": max_norm,
        "dropped": 0.0 if size > max_norm else 1.0,
        "upside_down": min(1.0, float(size) / max_norm),
        "larger": max(1.0, max_norm / float(size)),
        "signs": 1.0,
    }.get(how, min(1.0, max_norm / float(size)))
    return [g * factor for g in grads]


def _taken(model: nn.Module, loss: Tensor, how: dict[str, str], x: Tensor) -> Tensor:
    """The loss whose gradient the reader takes."""
    return {
        "negative": lambda: -loss,
        "by_batch": lambda: loss / len(x),
        "times_batch": lambda: loss * len(x),
        "square": lambda: loss**2,
        "exponential": lambda: loss.exp(),
        "logarithm": lambda: loss.log(),
        "decay": lambda: loss + 0.01 * sum(p.square().sum() for p in model.parameters()),
    }.get(how["of"], lambda: loss)()


def step_wrongly(
    model: nn.Module, optimizer: object, loss_fn: Callable, x: Tensor, y: Tensor, max_norm: float, **changes: str
) -> object:
    """One step of training with any of the ways to go wrong; without a switch it is right."""
    names = ("zero", "mode", "clip", "clip_when", "of", "order", "steps", "loss", "result", "error")
    how = dict.fromkeys(names, "right") | changes
    if how["mode"] == "eval":
        model.eval()
    if how["mode"] in ("right", "set_after"):
        _ = how["mode"] == "set_after" or model.train()
    if how["mode"] == "top_alone":
        model.training = True
    if how["order"] == "step_first":
        optimizer.step()
    if how["zero"] not in ("missing", "after_backward") and how["order"] != "late":
        optimizer.zero_grad()
    with torch.no_grad() if how["error"] == "no_grad" else torch.enable_grad():
        prediction = model(x)
    if how["mode"] == "set_after":
        model.train()
    loss_fn = F.mse_loss if how["loss"] == "own" else loss_fn
    loss = loss_fn(*((y, prediction) if how["loss"] == "exchanged" else (prediction, y)))
    if how["error"] == "item":
        loss = loss.item()
    taken = loss.clamp(max=max_norm) if how["clip"] == "loss" else _taken(model, loss, how, x)
    if how["order"] == "step_before_backward":
        optimizer.step()
    if how["order"] == "late":
        optimizer.step()
        optimizer.zero_grad()
    if how["order"] != "no_backward":
        taken.backward()
    if how["order"] == "backward_twice":
        loss_fn(model(x), y).backward()
    if how["zero"] == "after_backward":
        optimizer.zero_grad()
    norm = _norm(model)
    skipped = how["clip"] == "skipped" and norm > max_norm
    _clip(model, how, max_norm)
    if how["order"] not in ("step_before_backward", "late", "no_step", "step_first") and not skipped:
        optimizer.step()
    if how["steps"] == "twice":
        optimizer.step()
    if how["clip"] == "weights":
        with torch.no_grad():
            for p in model.parameters():
                p.clamp_(-max_norm, max_norm)
    return _returned(model, loss_fn, x, y, taken if how["steps"] == "cut_loss" else loss, how, norm)


def _norm(model: nn.Module) -> float:
    """The norm of all gradients together."""
    norms = [p.grad.norm() for p in model.parameters() if p.grad is not None]
    return float(torch.stack(norms).norm()) if norms else 0.0


def _clip(model: nn.Module, how: dict[str, str], max_norm: float) -> None:
    parameters = [p for p in model.parameters() if p.grad is not None]
    grads = [p.grad for p in parameters]
    if grads and how["clip"] not in ("weights", "loss"):
        for p, grad in zip(parameters, _scaled(grads, max_norm, how["clip"]), strict=True):
            p.grad = grad.sign() if how["clip"] == "signs" else grad


def _returned(
    model: nn.Module, loss_fn: Callable, x: Tensor, y: Tensor, loss: object, how: dict[str, str], norm: float
) -> object:
    if isinstance(loss, float):
        return loss
    number = loss.item()
    return {
        "graph": lambda: loss,
        "detached": lambda: loss.detach(),
        "array": lambda: loss.detach().numpy(),
        "after": lambda: loss_fn(model(x), y).item(),
        "nothing": lambda: None,
        "text": lambda: f"{number:.4f}",
        "times_batch": lambda: number * len(x),
        "by_batch": lambda: number / len(x),
        "two_results": lambda: (number, 0.0),
        "prediction": lambda: model(x),
        "negative": lambda: -number,
        "norm": lambda: norm,
        "norm_after": lambda: _norm(model),
        "doubled": lambda: 2 * number,
        "zero": lambda: 0.0,
    }.get(how["result"], lambda: number)()


# ---------------------------------------------------------------- the gallery
ORDER = "The order is zero_grad, loss, backward, clip, step."
TOTAL = (
    "All gradients together count as one long vector: if its norm is above max_norm, all are scaled by the same factor "
    "so that it is max_norm. clip_grad_norm_(model.parameters(), max_norm) does that."
)

STEP_MISTAKES = (
    # the gradients of this batch
    *one(
        "zero",
        "gradients_not_cleared",
        "The gradients of earlier batches are still there: backward adds to what p.grad holds. Call "
        "optimizer.zero_grad() (with parentheses) before backward.",
        "missing",
    ),
    *one(
        "zero",
        "cleared_before_the_step",
        "Your weights never change: the gradients are gone from p.grad when the optimizer steps, as they are after a "
        f"zero_grad between backward and step. {ORDER}",
        "after_backward",
    ),
    *one(
        "order",
        "no_backward",
        "Your weights never change: no gradient is taken from the loss that loss_fn gave. Call loss.backward(), with "
        "parentheses, and on that tensor itself: a number made from it knows no weights.",
        "no_backward",
    ),
    *one(
        "order",
        "no_step",
        "Your weights never change: optimizer.step() is missing, or stands without parentheses.",
        "no_step",
    ),
    *one(
        "order",
        "step_before_backward",
        f"Your weights never change: the optimizer steps before backward has made the gradients. {ORDER}",
        "step_before_backward",
    ),
    *one(
        "order",
        "one_batch_late",
        f"Each step uses the gradients of the batch before: the optimizer steps before backward. {ORDER}",
        "late",
        "step_first",
    ),
    *one(
        "order",
        "backward_twice",
        "Your gradients are twice as large as they should be before clipping: backward runs twice, and adds up, or the "
        "loss is doubled.",
        "backward_twice",
    ),
    *one("steps", "two_steps", "The optimizer takes two steps for one batch: one is asked for.", "twice"),
    *one(
        "of",
        "uphill",
        "The loss has a minus before backward, so the step goes uphill: the optimizer subtracts the gradient already.",
        "negative",
    ),
    *one(
        "of",
        "loss_scaled",
        "You divide the loss by the number of rows before backward: loss_fn gives the mean already, so the step is too "
        "small.",
        "by_batch",
    ),
    *one(
        "of",
        "loss_scaled",
        "The gradient that you take is too large by the number of rows: the loss is multiplied by it, or the losses of "
        "single rows are added up and not divided. loss_fn gives the mean: take its gradient as it is.",
        "times_batch",
    ),
    *one(
        "of",
        "another_loss",
        "You take the gradient of something made from the loss (its square, its exponential, its logarithm), not of "
        "the loss itself.",
        "square",
        "exponential",
        "logarithm",
        rare=True,
    ),
    *one(
        "of",
        "weights_penalised",
        "You add a penalty on the weights to the loss: none is asked for, and an optimizer brings its own.",
        "decay",
        rare=True,
    ),
    # clipping
    *one(
        "clip",
        "not_clipped",
        "Your gradients are not clipped when the optimizer steps. Clip between backward and step: before backward "
        "there is nothing to clip yet, after the step it is too late, and clip_grad_norm_ needs the gradients "
        "themselves, in p.grad.",
        "none",
    ),
    *one(
        "clip",
        "clipped_by_value",
        "You cut each entry of the gradients by itself (clip_grad_value_, clamp), so their direction changes and the "
        f"norm may still be above max_norm. {TOTAL}",
        "value",
    ),
    *one("clip", "each_parameter_clipped", f"You clip the gradient of each parameter by itself. {TOTAL}", "each"),
    *one("clip", "each_parameter_clipped", f"You clip each row of the gradients by itself. {TOTAL}", "each_row"),
    *one(
        "clip",
        "one_parameter_clipped",
        f"You clip the gradient of one parameter alone. {TOTAL}",
        "first_clipped",
        "last_clipped",
    ),
    *one(
        "clip",
        "always_scaled",
        "You scale the gradients to max_norm also where their norm is smaller, so small gradients are blown up: those "
        "stay as they are.",
        "always",
        "larger",
    ),
    *one(
        "clip",
        "norm_one",
        f"You scale the gradients to norm 1 and not to max_norm. {TOTAL}",
        "unit",
        "unit_if_larger",
        rare=True,
    ),
    *one("clip", "max_norm_unused", "You clip to norm 1 whatever max_norm says: use the argument.", "one"),
    *one(
        "clip",
        "multiplied_by_max_norm",
        f"You multiply by max_norm without dividing by the norm. {TOTAL}",
        "times",
        "always_times",
        rare=True,
    ),
    *one(
        "clip",
        "large_gradients_dropped",
        f"You take no step where the gradients are larger than max_norm (or set them to 0). {TOTAL}",
        "dropped",
        "skipped",
    ),
    *one(
        "clip",
        "factor_upside_down",
        f"The factor is upside down: it is max_norm / norm. {TOTAL}",
        "upside_down",
        rare=True,
    ),
    *one(
        "clip",
        "wrong_norm",
        "The norm that you compare with max_norm is not that of all gradients together: the root of the sum of all "
        f"squares. {TOTAL}",
        "sum_of_norms",
        "largest_norm",
        "mean_of_norms",
        "no_root",
        "largest_entry",
        "absolute_sum",
        "first_alone",
        "mean_square",
    ),
    *one("clip", "signs_alone", "Only the signs of the gradients are left: their sizes matter.", "signs", rare=True),
    *one(
        "clip",
        "loss_clipped",
        "You cut the loss off at max_norm, which takes its gradient away: clip the gradients, after backward.",
        "loss",
    ),
    Mistake(
        "loss_clipped",
        "You cut the loss off at max_norm, which takes its gradient away: clip the gradients, after backward.",
        switches={"clip": "loss", "steps": "cut_loss"},
    ),
    *one(
        "clip",
        "weights_clipped",
        "You clip the weights, after the step: clip the gradients, before it.",
        "weights",
        rare=True,
    ),
    # modes
    *one(
        "mode",
        "mode_left_as_it_was",
        "The model stays in the mode it was in: after an evaluation, dropout would stay off. Call model.train(), with "
        "parentheses, before the forward pass.",
        "kept",
        "top_alone",
    ),
    *one(
        "mode",
        "evaluation_mode",
        "You switch the model to evaluation mode, so dropout is off: training needs model.train().",
        "eval",
    ),
    *one(
        "mode",
        "train_too_late",
        "You call model.train() after the forward pass, so the first batch after an evaluation runs without dropout: "
        "call it first.",
        "set_after",
    ),
    # the loss
    *one(
        "loss",
        "arguments_of_loss_exchanged",
        "You call loss_fn(y, model(x)): the prediction comes first, loss_fn(model(x), y). For a symmetric loss, such "
        "as mse_loss, that makes no difference; for most it does.",
        "exchanged",
    ),
    *one("loss", "loss_fn_unused", "You call mse_loss, whatever loss_fn is: use the argument.", "own"),
    *one(
        "error",
        "no_graph",
        "The forward pass runs without gradients (no_grad, detach, .data, or parameters that want none), so "
        "backward has nothing to go back through.",
        "no_grad",
        alone=True,
    ),
    *one(
        "error",
        "item_too_early",
        "Your loss is a number already when backward is called: keep the tensor for backward, and return loss.item() "
        "at the end.",
        "item",
        alone=True,
    ),
    *one(
        "result",
        "graph_returned",
        "The numbers are right, but you return the loss as a tensor that still holds its graph: whoever adds up such "
        "losses keeps every forward pass in memory. loss.item() gives the number alone.",
        "graph",
    ),
    *one(
        "result",
        "tensor_returned",
        "You return the loss as a tensor, cut off from its graph. A Python number is asked for: loss.item().",
        "detached",
    ),
    *one(
        "result",
        "array_returned",
        "You return a NumPy number: a Python number is asked for, loss.item().",
        "array",
        rare=True,
    ),
    *one(
        "result",
        "loss_after_the_step",
        "You return the loss after the update, for which the model has run once more: return that of the forward pass "
        "which gave the gradients.",
        "after",
    ),
    *one("result", "nothing_returned", "The step is right, but nothing is returned: return loss.item().", "nothing"),
    *one("result", "text_returned", "You return the loss as text: a number is asked for.", "text", rare=True),
    *one(
        "result",
        "loss_rescaled",
        "The number that you return is multiplied or divided by the number of rows: return the loss that loss_fn gave.",
        "times_batch",
        "by_batch",
        rare=True,
    ),
    *one("result", "loss_doubled", "The number that you return is twice the loss.", "doubled", rare=True),
    *one(
        "result", "two_results", "You return more than the loss: the loss alone is asked for.", "two_results", rare=True
    ),
    *one("result", "prediction_returned", "You return the prediction: the loss is asked for.", "prediction", rare=True),
    *one("result", "negative_returned", "The loss that you return has the wrong sign.", "negative", rare=True),
    *one(
        "result",
        "norm_returned",
        "You return the norm of the gradients: the loss is asked for.",
        "norm",
        "norm_after",
        rare=True,
    ),
    *one("result", "zero_returned", "You return 0: return loss.item().", "zero", rare=True),
)
# ---------------------------------------------------------------- symptoms
WITHOUT = "made without the optimizer"


def _parts(seen: Seen) -> list[tuple[Probe, list, list]] | None:
    """(probe, right, reader's) results; None unless it always ran to its end."""
    if any(g.error is not None for _, _, g in seen):
        return None
    return [(p, e.value, g.value) for p, e, g in seen]


def _without_optimizer(seen: Seen) -> bool:
    parts = _parts(seen)
    return parts is not None and all(mine[2] == WITHOUT for _, _, mine in parts)


def _updates(word: str) -> Callable[[Seen], bool]:
    return lambda seen: (parts := _parts(seen)) is not None and all(word in mine[2] for _, _, mine in parts)


def _loss_alone_wrong(seen: Seen) -> bool:
    parts = _parts(seen)
    return parts is not None and all(same_value(right[3], mine[3]) for _, right, mine in parts)


def _right_weights(seen: Seen, fits: Callable[[Probe], bool]) -> bool:
    parts = [(right, mine) for p, right, mine in _parts(seen) or () if fits(p)]
    return bool(parts) and all(same_value(right[3], mine[3]) for right, mine in parts)


def _wrong_where(*words: str) -> Callable[[Seen], bool]:
    """Whether some weights are wrong, and none where the description has none of the words."""

    def shows(seen: Seen) -> bool:
        return _right_weights(seen, lambda p: not any(w in p.says for w in words)) and not _right_weights(
            seen, lambda p: True
        )

    return shows


def _no_parameters(seen: Seen) -> bool:
    words = ("object has no attribute 'grad'", "object is not iterable")
    return all(any(w in said(g.error) for w in words) and "clip_grad" in (g.line or "") for _, _, g in seen)


def _more_than_the_loss(seen: Seen) -> bool:
    parts = _parts(seen)
    return parts is not None and all(
        isinstance(mine[1], list) and any(same_value(right[1], x) for x in mine[1]) and same_value(right[3], mine[3])
        for _, right, mine in parts
    )


def _scaled_update(seen: Seen) -> bool:
    """Where nothing is to be clipped, the first step is the right one times the same number everywhere."""
    ratios = []
    for probe, right, mine in _parts(seen) or ():
        if "clipped" not in probe.says:
            if mine[3].shape != right[3].shape:
                return False
            start = _weights(probe.make()[0].model())
            step, wanted = mine[3][0] - start, right[3][0] - start
            ratio = float(step @ wanted / (wanted @ wanted))
            if not (step - ratio * wanted).abs().max() < 1e-3 * wanted.abs().max():
                return False
            ratios.append(ratio)
    return bool(ratios) and ratios[0] > 0 and max(ratios) - min(ratios) < 1e-3 and abs(ratios[0] - 1) > 0.01


def _later_steps(seen: Seen) -> bool:
    """The first step is always right, and a later one is not."""
    parts = _parts(seen)
    if parts is None or any(mine[3].shape != right[3].shape for _, right, mine in parts):
        return False
    first = all(same_value(right[3][0], mine[3][0]) for _, right, mine in parts)
    return first and not all(same_value(right[3], mine[3]) for _, right, mine in parts)


SYMPTOMS = (
    Symptom(
        "no_step",
        "Your weights never change: the optimizer takes no step. Call optimizer.step(), with parentheses, on the "
        "optimizer that is given.",
        _updates("missing"),
    ),
    Symptom(
        "no_backward",
        "Your weights never change: no gradient is taken from the loss that loss_fn gave, so the optimizer finds none. "
        "Call loss.backward() on that tensor itself, before the step.",
        _updates("no gradient was taken"),
    ),
    Symptom(
        "step_before_backward",
        f"Your weights never change: the optimizer steps before the gradients are there. {ORDER}",
        _updates("came after it"),
    ),
    Symptom(
        "cleared_before_the_step",
        f"Your weights never change, although backward runs and the optimizer steps: the gradients are gone, or have "
        f"not reached p.grad, when it does. {ORDER}",
        _updates("was gone"),
    ),
    Symptom(
        "without_the_optimizer",
        "The weights change, but the optimizer that is given takes no step: they are changed by hand or by another "
        "optimizer. It may have momentum or be Adam: call its step.",
        _without_optimizer,
    ),
    Symptom(
        "several_steps",
        "The optimizer takes more than one step for one batch: one is asked for.",
        lambda seen: (
            (parts := _parts(seen)) is not None and all(mine[2] == "made more than once" for *_, mine in parts)
        ),
    ),
    Symptom(
        "gradient_elsewhere",
        "Your weights never change: the gradient does not reach them, because it goes to a copy of the model or to a "
        "new tensor made from the loss.",
        _updates("did not reach"),
    ),
    Symptom(
        "backward_twice",
        "You call backward twice on the same loss, and the first time frees what it went through: once is enough.",
        lambda seen: all("backward through the graph a second time" in said(g.error) for _, _, g in seen),
    ),
    Symptom(
        "parameters_missing",
        "To clip_grad_norm_ goes model.parameters(), and not the model.",
        _no_parameters,
    ),
    Symptom(
        "two_results",
        "The weights are right, and the loss is among what you return, but not alone: return the loss only.",
        _more_than_the_loss,
    ),
    Symptom(
        "loss_fn_unused",
        "In the cases tried here it is right with mse_loss, and wrong with another loss: call loss_fn(model(x), y).",
        lambda seen: right_only_without(seen, "cross-entropy"),
    ),
    Symptom(
        "loss_wrong",
        "The weights are right after every step; only the loss that you return is not. Return loss.item(), of the "
        "forward pass which gave the gradients.",
        _loss_alone_wrong,
    ),
    Symptom(
        "step_scaled",
        "Your first step goes in the right direction, but it is always longer, or always shorter, by the same factor: "
        "something multiplies or divides the loss before backward, the gradients after it, or the learning rate.",
        _scaled_update,
    ),
    Symptom(
        "clipping_wrong",
        f"In the cases tried here it is right as long as the gradients are small, and wrong where they are above "
        f"max_norm. {TOTAL}",
        _wrong_where("clipped"),
    ),
    Symptom(
        "mode_wrong",
        "In the cases tried here it is right for a model in training mode, and wrong for one that comes from an "
        "evaluation: call model.train() before the forward pass.",
        _wrong_where("evaluation"),
    ),
    Symptom(
        "earlier_batches",
        "The first step is right, a later one is not: something that an earlier call left behind takes part in it, "
        "such as gradients that were not cleared, or the optimizer has been changed between the steps.",
        _later_steps,
    ),
    Symptom(
        "tensor_returned",
        "You return the loss as a tensor: a Python number is asked for, loss.item(). The weights are not right either, "
        "at least not always: check again when that is mended.",
        lambda seen: (parts := _parts(seen)) is not None and all(mine[0].startswith("tensor") for *_, mine in parts),
    ),
)


def _probe(says: str, situation: Situation) -> Probe:
    return Probe(f"{says}, max_norm {situation.max_norm:g}", lambda: (situation,))


TRAIN_STEP: Exercise = StepExercise(
    name="training.train_step",
    reference=training.train_step,
    results=(
        Result("kind of result"),
        Result("loss"),
        Result("update"),
        Result("weights", ("step", "weight")),
    ),
    probes=(
        _probe("one step", Situation()),
        _probe("three steps", Situation(batches=3, seed=6)),
        _probe("one step, gradients to be clipped", Situation(max_norm=4.0, seed=11)),
        _probe("three steps, gradients to be clipped", Situation(batches=3, max_norm=0.5, seed=7)),
        _probe("two steps after an evaluation", Situation(batches=2, evaluated=True, seed=8)),
        _probe("two steps, optimizer with momentum", Situation(batches=2, momentum=0.9, seed=9)),
        _probe(
            "one step, loss_fn binary cross-entropy from logits",
            Situation(loss=F.binary_cross_entropy_with_logits, seed=10),
        ),
    ),
    compound=step_wrongly,
    mistakes=STEP_MISTAKES,
    symptoms=SYMPTOMS,
)
