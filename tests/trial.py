"""A small training with everything in it that has a state; a process is killed in it, so it imports little."""

from __future__ import annotations

import random

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_edu.training import cosine_lr, fit


class Trial:
    """Dropout, AdamW, a schedule, and draws from three generators. `seed` chooses the first weights."""

    def __init__(self, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.3))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1.0)

    def loss_at(self, step: int) -> Tensor:
        generator = torch.Generator().manual_seed(step)
        x, y = torch.randn(8, 6, generator=generator), torch.randn(8, 5, generator=generator)
        return F.mse_loss(self.model(x + random.random() + np.random.rand() + torch.rand(1)), y)

    def fit(self, steps: int, **options) -> list[float]:
        def schedule(step: int) -> float:
            return cosine_lr(step, peak=0.05, warmup=4, total=40)

        return fit(self.model, self.optimizer, self.loss_at, steps=steps, schedule=schedule, **options)

    def numbers(self) -> Tensor:
        """All numbers of the model and of the optimizer."""
        state = [*self.model.state_dict().values()]
        state += [t for group in self.optimizer.state_dict()["state"].values() for t in group.values()]
        return torch.cat([t.double().flatten() for t in state])


def begin() -> Trial:
    """A trial before its first step, with all generators seeded."""
    trial = Trial()
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    return trial
