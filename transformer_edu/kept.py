"""Results that outlive the kernel: what a training gave is read from a file while nothing that went into it changes.

A lesson is done in several sittings, shown to a class, run again after a crash. `@kept` on a function that trains
makes every run but the first a matter of seconds, and cannot show an old result for new code: the name of the file is
a fingerprint of all that the result depends on.
"""

from __future__ import annotations

import contextlib
import datetime
import dis
import enum
import functools
import hashlib
import os
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath

import numpy as np
import torch
from torch import Tensor

from .errors import check_callable

__all__ = ["fingerprint", "kept"]

FILES = 1000  # the oldest beyond that many are removed


def kept(function: Callable) -> Callable:
    """Keep what `function` returns in a file, and return it from there while nothing that goes into it has changed.

    Into it go the arguments, the function's code, everything that it looks up by name (other functions of the
    notebook with all that they look up, numbers, tensors, models), the source of this package and torch's version.
    Change any of these, and the function runs again. Where one of them has no fingerprint (an open file, say),
    it runs every time. Of a module of your own the file itself counts, not what that file imports.

    So that its result depends on nothing else, the function should return all that it makes, rather than fill lists
    that stand outside, and print nothing. Its random numbers always begin at torch's seed 0; those outside go on as if
    it had not run.

    The files lie in the folder `.kept` of the notebook, or in the one that the environment variable
    TRANSFORMER_EDU_KEPT names. They are read with pickle, as code of your own: take none from strangers. Deleting
    the folder is safe at any time.

    Raises TypeError if `function` is no function.

    >>> from tempfile import TemporaryDirectory
    >>> from unittest.mock import patch
    >>> @kept
    ... def total(n):
    ...     print("adding")
    ...     return sum(range(n))
    >>> with TemporaryDirectory() as folder, patch.dict(os.environ, TRANSFORMER_EDU_KEPT=folder):
    ...     total(5), total(5), total(6)
    adding
    adding
    (10, 10, 15)
    """
    check_callable("function", function, "def function(...)")

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            name = f"{function.__name__}-{fingerprint(function, args, kwargs)}.pt"
        except Exception:  # something has no fingerprint, whatever the reason: then nothing is kept
            return function(*args, **kwargs)
        file = Path(os.environ.get("TRANSFORMER_EDU_KEPT") or ".kept") / name
        found = _read(file)
        if found:
            return found[0]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            result = function(*args, **kwargs)
        _write(file, (result,))
        return result

    return call


def _read(file: Path) -> tuple:
    """What lies in the file, in a tuple; an empty one if there is none, or it cannot be read."""
    try:
        found = torch.load(file, weights_only=False)
        os.utime(file)  # used last
        return found if isinstance(found, tuple) else ()
    except Exception:  # cut off, or a class is gone: whatever it is, the function can run again
        return ()


def _write(file: Path, content: tuple) -> None:
    """Write the whole file or none; a result that pickle does not take, or a disk that is full, is not kept."""
    part = file.with_name(f"{file.name}.{os.getpid()}.part")  # two kernels may be at it
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save(content, part)
        os.replace(part, file)
        newest_first = sorted(file.parent.glob("*.pt"), key=os.path.getmtime, reverse=True)
        for old in newest_first[FILES:]:
            old.unlink(missing_ok=True)
    except Exception:
        with contextlib.suppress(OSError):
            part.unlink()


# Fingerprints ---------------------------------------------------------------------------------------------


def fingerprint(*values: object) -> str:
    """16 letters that are the same, in every process, for the same values; functions count with all that they use.

    Raises TypeError for a value of which it cannot be said whether two are the same (a file, an iterator).

    >>> fingerprint([1, torch.zeros(2)]) == fingerprint([1, torch.zeros(2)])
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    hashed = hashlib.sha256(_ground())
    _add(hashed, values, {})
    return hashed.hexdigest()[:16]


@functools.cache
def _ground() -> bytes:
    """What every result stands on: the versions, and the files of this package as they were when first asked for."""
    here = Path(__file__).parent
    hashed = hashlib.sha256(repr((sys.version, torch.__version__, np.__version__)).encode())
    for file in sorted(file for kind in ("*.py", "*.pt") for file in here.rglob(kind)):
        hashed.update(file.read_bytes())
    return hashed.digest()


PYTHONS = (type(None), bool, int, float, complex, str, bytes, range, slice, types.EllipsisType, enum.Enum)
PLAIN = (*PYTHONS, datetime.date, datetime.timedelta, PurePath, np.generic, torch.dtype, torch.device)  # by their repr


def _add(hashed: hashlib._Hash, value: object, seen: dict[int, tuple[int, object]]) -> None:
    """Add a value to a hash, part by part. `seen` numbers the parts that have been met, and keeps their ids theirs."""
    hashed.update(type(value).__qualname__.encode())
    if isinstance(value, PLAIN) or _is_row(value):
        hashed.update(repr(value).encode() + b"\0")
    elif id(value) in seen:
        hashed.update(b"again %d" % seen[id(value)][0])
    else:
        seen[id(value)] = (len(seen), value)
        for part in _parts(value):
            _add(hashed, part, seen)
        hashed.update(b"end")


def _is_row(value: object) -> bool:
    """A sequence of words or numbers; examples have thousands of them."""
    return type(value) in (list, tuple) and all(type(each) in (str, int, float, bool) for each in value)


def _parts(value: object) -> Iterable[object]:
    """What a value is made of, as further values."""
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, dict):
        return [part for item in value.items() for part in item]
    if isinstance(value, set | frozenset):
        return sorted(fingerprint(each) for each in value)
    if isinstance(value, Tensor | np.ndarray):
        return _parts_of_array(torch.as_tensor(value).detach())
    if isinstance(value, torch.Generator):
        return [value.get_state()]
    if isinstance(value, types.ModuleType):
        return [value.__name__, _source(value)]
    if isinstance(value, type):
        return _parts_of_class(value)
    if isinstance(value, types.FunctionType):
        return _parts_of_function(value)
    return _parts_of_object(value)


def _parts_of_array(array: Tensor) -> list:
    content = array.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
    return [array.dtype, array.device, tuple(array.shape), content]


def _parts_of_object(value: object) -> list:
    kind = type(value)
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, types.BuiltinFunctionType):  # sum, math.sqrt, torch.zeros, [].append
        bound = value.__self__
        return [value.__qualname__, bound.__name__ if isinstance(bound, types.ModuleType) else bound]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, property):
        return [value.fget, value.fset]
    if isinstance(value, staticmethod | classmethod) or hasattr(value, "cache_info"):  # functools.cache
        return [value.__wrapped__]
    if _is_ours(kind) or kind.__module__.startswith("torch."):
        return [kind, vars(value)]
    raise TypeError(f"no fingerprint of {kind.__name__}")


def _is_ours(kind: type) -> bool:
    return kind.__module__ == "__main__" or kind.__module__.partition(".")[0] == __package__


def _source(module: types.ModuleType | None) -> bytes:
    """The file of a module; of a package, and of this one, the versions have been said."""
    file = getattr(module, "__file__", None) or ""
    return Path(file).read_bytes() if file.endswith(".py") and not file.endswith("__init__.py") else b""


def _parts_of_function(function: types.FunctionType) -> list:
    """Its code, its defaults, what it closes over, what it looks up by name. That of a module is known by its name."""
    module, name = function.__module__, function.__qualname__
    if module != "__main__" and "<" not in name:  # neither <locals> nor <lambda>
        return [module, name, _source(sys.modules.get(module))]
    parts = [name, _parts_of_code(function.__code__), function.__defaults__, function.__kwdefaults__]
    parts += [cell.cell_contents for cell in function.__closure__ or ()]
    for name in sorted(_names(function.__code__)):
        parts.append(name)
        if name in function.__globals__:
            parts.append(function.__globals__[name])
    return parts


def _parts_of_code(code: types.CodeType) -> list:
    inner = [_parts_of_code(each) if isinstance(each, types.CodeType) else each for each in code.co_consts]
    return [code.co_code, code.co_names, code.co_varnames, code.co_freevars, inner]


def _names(code: types.CodeType) -> set[str]:
    """The names that code looks up among the globals, inner functions included."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_names(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)))


def _parts_of_class(kind: type) -> list:
    """That of a module is known by its name; that of the notebook by its parents and what stands in it, too."""
    if kind.__module__ != "__main__":
        return [kind.__module__, kind.__qualname__, _source(sys.modules.get(kind.__module__))]
    content = [part for part in vars(kind).items() if not part[0].startswith("__") or callable(part[1])]
    return [kind.__qualname__, kind.__bases__, content]
