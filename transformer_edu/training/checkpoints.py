"""Training on disk: a whole file or the whole file of before, never half of one, and bit for bit what it was."""

from __future__ import annotations

import os
import pickle
import random
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

__all__ = ["load_checkpoint", "load_weights", "save_checkpoint"]

KEYS = ("model", "optimizer", "step", "losses", "random")


def save_checkpoint(
    path: str | Path, *, model: nn.Module, optimizer: Optimizer, step: int, losses: list[float] | None = None
) -> None:
    """Write all that training needs to go on: weights, the optimizer's state, the step, losses, all random states.

    The file is written beside its place under the name `path` + ".part" and moved there in one operation once it is
    complete: whoever is stopped in between leaves the checkpoint of before as it was.
    """
    content = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": step,
        "losses": list(losses or ()),
        "random": _random_states(),
    }
    path = Path(path)
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())  # on the disk, and not only on its way, before the old one goes
    os.replace(part, path)


def load_checkpoint(path: str | Path, *, model: nn.Module, optimizer: Optimizer) -> tuple[int, list[float]]:
    """Put model, optimizer and all random states back to where they were; returns the step and the losses so far.

    Only numbers, texts and containers of them are read, never code (`weights_only`). Raises FileNotFoundError if
    there is no such file, ValueError if it is cut off, damaged or no checkpoint, and torch's RuntimeError, which names
    the parameters, if it belongs to another model; in all these cases the random states stay as they are. Those of GPUs
    are put back where there are as many GPUs as there were.
    """
    content = _read(path)
    if missing := [key for key in KEYS if key not in content]:
        raise ValueError(f"{path} is no checkpoint of save_checkpoint: it has no {', '.join(missing)}")
    model.load_state_dict(content["model"])
    optimizer.load_state_dict(content["optimizer"])
    _set_random_states(content["random"])
    return content["step"], content["losses"]


def load_weights(path: str | Path, model: nn.Module) -> None:
    """Only the model's weights of a checkpoint. Errors as in `load_checkpoint`."""
    content = _read(path)
    if "model" not in content:
        raise ValueError(f"{path} is no checkpoint of save_checkpoint: it has no model")
    model.load_state_dict(content["model"])


def _read(path: str | Path) -> dict:
    """The content of a whole file; torch's own messages do not say that a file is cut off."""
    try:
        with zipfile.ZipFile(path) as archive:  # what torch.save writes; each part has its checksum
            damaged = archive.testzip()
        if damaged is None:
            content = torch.load(path, map_location="cpu", weights_only=True)
            if isinstance(content, dict):
                return content
    except zipfile.BadZipFile as error:
        raise ValueError(
            f"{path} is not a complete checkpoint ({Path(path).stat().st_size} bytes are there): it was cut off, or "
            "is another kind of file; take an earlier one, or delete it and train from the start"
        ) from error
    except (pickle.UnpicklingError, RuntimeError) as error:
        raise ValueError(f"{path} holds more than numbers and texts, or is no file of torch.save: {error}") from error
    raise ValueError(f"{path} is damaged: its part {damaged} has another checksum" if damaged else
                     f"{path} is no checkpoint of save_checkpoint: it holds a {type(content).__name__}")  # fmt: skip


def _random_states() -> dict:
    """The states of all generators that a training step may draw from, as tensors and plain numbers."""
    kind, keys, *rest = np.random.get_state()
    return {
        "python": random.getstate(),
        "numpy": (kind, torch.from_numpy(keys.astype(np.int64)), *rest),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def _set_random_states(states: dict) -> None:
    random.setstate(states["python"])
    kind, keys, *rest = states["numpy"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))
    torch.set_rng_state(states["torch"])
    if len(states["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(states["cuda"])
