"""The model of number words: its recipe, its training, and its weights on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from ..decoding import CachedStep, greedy_decode
from ..errors import check_choice, check_count, check_kind
from ..masks import causal_mask, padding_mask
from ..model import Transformer, TransformerConfig, build_transformer
from ..tasks import Task, number_words
from ..training import fit, linear_lr, sequence_loss
from ..training.checkpoints import check_place

__all__ = ["RECIPE", "number_words_model", "rebuild", "summary"]

WEIGHTS = Path(__file__).with_name("number_words.pt")

# All that the weights depend on. It stands in their file too, so that a test sees where the two part.
RECIPE = {
    "model": {"d_model": 64, "n_heads": 1, "n_layers": 1, "d_ff": 128, "placement": "pre", "position": "sinusoid"},
    "seed": 2,
    "examples": 5000,
    "batch_size": 64,
    "peak_lr": 3e-3,
    "warmup": 30,
    "stages": {"early": 40, "final": 500},  # after how many steps each of the two states was taken
}


def number_words_model(stage: str = "final") -> tuple[Transformer, Task]:
    """The trained model, on the CPU and in evaluation mode, and the task that it has learnt.

    Args:
        stage: "final", right on 99 of 100 numbers that it has never seen; or "early", the same training after a
            twelfth of its steps, when the model still doubts: there decoding makes a difference.

    Only numbers and texts are read from the file, never code. Raises ValueError for another stage.

    >>> model, task = number_words_model()
    >>> source = torch.tensor([task.source.encode(["fifty", "four"])])
    >>> target_in = torch.tensor([[task.target.start_id, *task.target.encode(["vier", "und"])]])
    >>> with torch.no_grad():
    ...     logits = model(source, target_in, None, causal_mask(3))  # (batch, target, vocab_size)
    >>> task.target.labels(logits[0].argmax(-1))
    ['vier', 'und', 'fünfzig']
    """
    check_choice("stage", stage, tuple(RECIPE["stages"]))
    task = number_words()
    model = _untrained(task)
    content = torch.load(WEIGHTS, map_location="cpu", weights_only=True)
    model.load_state_dict(content["weights"][stage])  # stored in half precision, copied into float32
    return model.eval(), task


def rebuild(path: str | Path = WEIGHTS, recipe: Mapping = RECIPE) -> None:
    """Train the model by its recipe, and write its weights at each stage, and the recipe, to a file.

    The same machine with the same version of torch writes the same file again. Another one writes another: sums are
    rounded elsewhere, training carries that on, and in the end weights differ in their first digits. The model is as
    good, but its maps have other numbers, and some of its answers are others. So the file that ships is kept; lessons
    that show it must be run and read again when it is replaced. `summary` says what a new one can do.

    Torch's generator is left as it was.
    """
    check_place("path", path)
    _check_recipe(recipe)
    task, stages = number_words(), dict(recipe["stages"])
    train = task.examples(recipe["examples"])
    model, weights = _untrained(task, recipe), {}

    def loss_at(step: int) -> Tensor:
        batch = task.batch_at(train, step, batch_size=recipe["batch_size"], seed=recipe["seed"])
        source_mask = padding_mask(batch.source_lengths, batch.source.shape[1])
        logits = model(batch.source, batch.target_in, source_mask, causal_mask(batch.target_in.shape[1]))
        return sequence_loss(logits, batch.target_out)

    def keep(step: int, loss: float) -> None:
        weights.update({stage: _halved(model) for stage, at in stages.items() if at == step})

    fit(
        model,
        torch.optim.Adam(model.parameters()),
        loss_at,
        steps=max(stages.values()),
        schedule=lambda step: linear_lr(
            step, peak=recipe["peak_lr"], warmup=recipe["warmup"], total=max(stages.values())
        ),
        report=keep,
    )
    torch.save({"recipe": dict(recipe), "weights": weights}, path)


def summary(count: int = 500) -> str:
    """Where the weights lie, and how many of so many numbers, never seen in training, each stage says right.

    >>> print(summary(20).splitlines()[1])
    of 20 numbers never seen in training, final says 20 right
    """
    lines = [str(WEIGHTS)]
    for stage in reversed(RECIPE["stages"]):
        model, task = number_words_model(stage)
        examples = task.examples(count, split="test")
        batch = task.batch(examples)
        step = CachedStep(model, batch.source, padding_mask(batch.source_lengths, batch.source.shape[1]))
        prompt = torch.full((count, 1), task.target.start_id)
        answers = greedy_decode(step, prompt, task.target.stop_id, task.target.pad_id, 16)
        right = round(count * task.exact_match(answers, examples))
        lines.append(f"of {count} numbers never seen in training, {stage} says {right} right")
    return "\n".join(lines)


def _check_recipe(recipe: Mapping) -> None:
    check_kind("recipe", recipe, Mapping, "a dict such as RECIPE")
    missing, extra = sorted(RECIPE.keys() - recipe.keys()), sorted(recipe.keys() - RECIPE.keys())
    if missing or extra:
        raise ValueError(
            f"recipe must have the names of RECIPE: missing {missing or 'none'}, left over {extra or 'none'}"
        )
    check_kind("recipe['stages']", recipe["stages"], Mapping, "a dict of steps")
    if not recipe["stages"]:
        raise ValueError("recipe['stages'] must name one stage or more, got none")
    for stage, step in recipe["stages"].items():
        check_count(f"recipe['stages'][{stage!r}]", step)


def _untrained(task: Task, recipe: Mapping = RECIPE) -> Transformer:
    sizes = {"source_vocab_size": len(task.source), "target_vocab_size": len(task.target)}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe["seed"])
        return build_transformer(TransformerConfig(**sizes, **recipe["model"]))


def _halved(model: nn.Module) -> dict[str, Tensor]:
    """Its parameters in half precision: half the file, and the same answers."""
    return {name: parameter.detach().half() for name, parameter in model.state_dict().items()}
