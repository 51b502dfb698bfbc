"""Which source token each target token is made from, and whether attention looks there."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..errors import check_float, check_tensor, shape_text
from .task import Example, checked_examples

__all__ = ["alignment_matrix", "alignment_score"]


def alignment_matrix(examples: Sequence[Example]) -> Tensor:
    """True where a target token is made from a source token: bool (batch, target length, source length).

    Row t belongs to label t of `target_out`, so the last row of each example, its stop, has no True: nor have rows of
    tokens without a counterpart, and padding.

    >>> example = Example(("forty", "two"), ("zwei", "und", "vierzig"), ((1,), (), (0,)), "42")
    >>> alignment_matrix([example])[0].int().tolist()
    [[0, 1], [0, 0], [1, 0], [0, 0]]
    """
    examples = checked_examples(examples)
    n_targets = max(len(example.target) for example in examples) + 1
    n_sources = max(len(example.source) for example in examples)
    matrix = torch.zeros(len(examples), n_targets, n_sources, dtype=torch.bool)
    for row, example in enumerate(examples):
        _check_places(f"examples[{row}]", example)
        for target, sources in enumerate(example.alignment):
            matrix[row, target, list(sources)] = True
    return matrix


def _check_places(name: str, example: Example) -> None:
    n_sources, n_targets = len(example.source), len(example.target)
    places = [place for sources in example.alignment for place in sources]
    if len(example.alignment) > n_targets or not all(0 <= place < n_sources for place in places):
        raise ValueError(
            f"the alignment of {name} must have places in 0..{n_sources - 1} for each of its {n_targets} target "
            f"tokens, got {example.alignment}"
        )


def alignment_score(weights: Tensor, alignment: Tensor) -> float:
    """The share of target tokens whose largest weight lies on a source token that they are made from.

    Args:
        weights: (batch, target length, source length), those of one head or the mean over heads.
        alignment: bool, the same shape, from `alignment_matrix`. Rows without any True do not count.

    >>> alignment_score(torch.tensor([[[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]]]), alignment_matrix([Example(
    ...     ("one", "two"), ("zwei", "eins"), ((1,), (0,)), "")]))
    1.0
    """
    check_float("weights", weights, dims=("batch", "target", "source"))
    check_tensor("alignment", alignment, dims=("batch", "target", "source"))
    if alignment.dtype != torch.bool:
        raise ValueError(f"alignment must have dtype bool, as alignment_matrix gives it, got {alignment.dtype}")
    if weights.shape != alignment.shape:
        raise ValueError(
            f"weights and alignment must have one shape (batch, target, source), got {shape_text(weights)} and "
            f"{shape_text(alignment)}"
        )
    if weights.isnan().any():
        raise ValueError("weights must be numbers, got nan")
    counts = alignment.any(-1)  # (batch, target)
    if not counts.any():
        raise ValueError("alignment must have a True somewhere: there is nothing to score")
    hits = alignment.to(weights.device).gather(-1, weights.argmax(-1, keepdim=True))[..., 0]  # (batch, target)
    return hits[counts.to(hits.device)].double().mean().item()
