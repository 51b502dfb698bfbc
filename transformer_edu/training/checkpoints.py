"""Training on disk: a whole file or the whole file of before, never half of one, and bit for bit what it was."""

from __future__ import annotations

import os
import random
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from ..errors import check_count, check_kind, check_module, shape_text
from .losses import numbers_of

__all__ = ["load_checkpoint", "load_weights", "save_checkpoint"]

# What a checkpoint holds, each of which kind.
FORM = {"model": dict, "optimizer": dict, "optimizer_name": str, "step": int, "losses": list, "random": dict}
FOLDER = 0x10  # the mark of a folder, among the attributes of a part of an archive


def save_checkpoint(
    path: str | Path, *, model: nn.Module, optimizer: Optimizer, step: int, losses: list[float] | None = None
) -> None:
    """Write all that training needs to go on: weights, the optimizer's state, the step, losses, all random states.

    The file is written beside its place under the name `path` + ".part" and moved there in one operation once it is
    complete: whoever is stopped in between leaves the checkpoint of before as it was.
    """
    check_path("path", path)
    _check_both(model, optimizer)
    check_count("step", step, least=0)
    content = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "optimizer_name": type(optimizer).__name__,
        "step": step,
        "losses": numbers_of("losses", () if losses is None else losses),
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
    there is no such file, ValueError if it is cut off, damaged or no checkpoint, or belongs to another model or
    optimizer; in all these cases model, optimizer and random states stay as they are. Those of GPUs are put back where
    there are as many GPUs as there were.
    """
    _check_both(model, optimizer)
    content = _read(path)
    _check_form(path, content)
    _check_fits(path, model, content["model"])
    _load_optimizer(path, optimizer, content)  # it checks before it changes anything
    model.load_state_dict(content["model"])
    _set_random_states(content["random"])
    return content["step"], content["losses"]


def load_weights(path: str | Path, model: nn.Module) -> None:
    """Only the model's weights of a checkpoint. Errors as in `load_checkpoint`."""
    check_module("model", model)
    content = _read(path)
    if not isinstance(content.get("model"), dict):
        raise ValueError(f"{path} is no checkpoint of save_checkpoint: it has no model")
    _check_fits(path, model, content["model"])
    model.load_state_dict(content["model"])


def check_path(name: str, path: object) -> None:
    """Raise unless `path` may be that of a file."""
    check_kind(name, path, (str, os.PathLike), "the path of a file")
    if Path(path).is_dir():
        raise ValueError(f"{name} must be a file, got the folder {path}: name a file in it")


def check_place(name: str, path: object) -> None:
    """Raise unless a file may be written at `path`."""
    check_path(name, path)
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"{Path(path).parent} is no folder: make it before training begins")


def _check_both(model: object, optimizer: object) -> None:
    check_module("model", model)
    check_kind("optimizer", optimizer, Optimizer, "a torch.optim.Optimizer")


def _check_form(path: str | Path, content: dict) -> None:
    """Raise unless the file has what `save_checkpoint` writes, no more and no less."""
    if missing := [key for key in FORM if key not in content]:
        raise ValueError(f"{path} is no checkpoint of save_checkpoint: it has no {', '.join(missing)}")
    if extra := [str(key) for key in content if key not in FORM]:
        raise ValueError(
            f"{path} has {', '.join(extra)} too: a newer version of this course wrote it; load it with that"
        )
    for key, kind in FORM.items():
        if not isinstance(content[key], kind):
            found = type(content[key]).__name__
            raise ValueError(f"{path} is no checkpoint of save_checkpoint: its {key} is no {kind.__name__} but {found}")
    if set(content["random"]) != set(_random_states()):
        raise ValueError(
            f"{path} has random states of {', '.join(map(str, content['random']))}, which no version wrote"
        )


def _check_fits(path: str | Path, model: nn.Module, state: dict) -> None:
    """Raise unless the model has these parameters, in these shapes: torch would load some before it refuses others."""
    wanted = model.state_dict()
    missing, extra = sorted(wanted.keys() - state.keys()), sorted(state.keys() - wanted.keys())
    if missing or extra:
        raise ValueError(
            f"{path} belongs to another model: missing there {', '.join(missing) or 'nothing'}, "
            f"left over {', '.join(map(str, extra)) or 'nothing'}"
        )
    for name, tensor in wanted.items():
        if state[name].shape != tensor.shape:
            raise ValueError(
                f"{path} belongs to another model: {name} has shape {shape_text(state[name])} there, and "
                f"{shape_text(tensor)} in this one"
            )


def _load_optimizer(path: str | Path, optimizer: Optimizer, content: dict) -> None:
    name, mine = content["optimizer_name"], type(optimizer).__name__
    if name != mine:
        raise ValueError(f"{path} was written with {name}, but optimizer is {mine}: give the same kind, or begin anew")
    try:
        optimizer.load_state_dict(content["optimizer"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} does not fit the groups of this optimizer: {error}") from error


def _read(path: str | Path) -> dict:
    """The content of a whole file; torch's own messages do not say that a file is cut off."""
    check_path("path", path)
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:  # what torch.save writes; each part has its checksum
                damaged = archive.testzip() or _marked(archive)
        except Exception as error:  # zipfile has many names for it, EOFError and UnicodeDecodeError among them
            raise ValueError(
                f"{path} is not a complete checkpoint ({Path(path).stat().st_size} bytes are there): it was cut off, "
                "or is another kind of file; take an earlier one, or delete it and train from the start"
            ) from error
    if damaged is not None:
        raise ValueError(f"{path} is damaged: its part {damaged} is not what was written")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(f"{path} holds more than numbers and texts, or is no file of torch.save: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} is no checkpoint of save_checkpoint: it holds a {type(content).__name__}")
    return content


def _marked(archive: zipfile.ZipFile) -> str | None:
    """A part marked as a folder: torch.load skips its numbers and takes what happens to lie in memory."""
    return next((part.filename for part in archive.infolist() if part.external_attr & FOLDER), None)


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
