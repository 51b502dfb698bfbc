"""A golden file as a case: `in.` inputs, `w.` weights, `mid.` intermediates, `out.` results, `grad.` gradients,
and `__meta__` with its options.

One file may hold several runs, told apart by a tag: `in.5x5.q`, `out.5x5.y`, or only `out.masked`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

Comparisons = Iterator[tuple[str, Tensor, Tensor]]  # entry, mine, golden


@dataclass(frozen=True)
class Case:
    name: str
    meta: dict
    tensors: dict[str, Tensor]

    @classmethod
    def load(cls, path: Path) -> Case:
        with np.load(path, allow_pickle=False) as file:
            tensors = {name: torch.from_numpy(file[name]) for name in file.files if name != "__meta__"}
            return cls(path.stem, json.loads(str(file["__meta__"])), tensors)

    @property
    def description(self) -> str:
        return self.meta.get("description", "")

    def option(self, *names: str, default: object = None) -> object:
        """The first of `names` in the case's config: systems name the same size differently."""
        config = self.meta.get("config") or {}
        return next((config[name] for name in names if name in config), default)

    def group(self, prefix: str, tag: str = "") -> dict[str, Tensor]:
        """What stands under a prefix; for a tag, its own tensors take the place of those without one."""

        def under(start: str) -> dict[str, Tensor]:
            return {name.removeprefix(start): t for name, t in self.tensors.items() if name.startswith(start)}

        return under(f"{prefix}.") | (under(f"{prefix}.{tag}.") if tag else {})


def first(tensors: Mapping[str, Tensor], *names: str, default: Tensor | None = None) -> Tensor | None:
    return next((tensors[name] for name in names if name in tensors), default)


def split_name(name: str, known: set[str]) -> tuple[str, str]:
    """(tag, leaf) of a name. Without a known leaf it is a tag, and stands for the output: `out.masked`."""
    for leaf in sorted(known, key=len, reverse=True):
        if name == leaf or name.endswith(f".{leaf}"):
            return name.removesuffix(leaf).removesuffix("."), leaf
    return name, "y"
