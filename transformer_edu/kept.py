"""Results that outlive the kernel: what a training gave is read from a file while nothing that went into it changes.

A lesson is done in several sittings, shown to a class, run again after a crash. `@kept` on a function that trains
makes every run but the first a matter of seconds, and cannot show an old result for new code: the name of the file is
a fingerprint of all that the result depends on.
"""

from __future__ import annotations

import contextlib
import copy
import copyreg
import datetime
import dis
import enum
import functools
import hashlib
import os
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from pathlib import Path, PurePath

import numpy as np
import torch
from torch import Tensor

from .errors import check_callable

__all__ = ["fingerprint", "kept", "source_at_first"]

FILES = 1000  # the oldest beyond that many are removed


def kept(function: Callable) -> Callable:
    """Keep what `function` returns in a file, and return it from there while nothing that goes into it has changed.

    Into it go the arguments, the function's code, everything that it looks up by name (functions of the notebook or of
    a file of your own with all that they look up, numbers, tensors, models), the source of this package, torch's
    version, its default dtype and device. Change any of these, and the function runs again; where one has no
    fingerprint (an open file, say), it always runs. Once this package has been edited, nothing more is kept until the
    kernel is restarted. Not seen: files that the function reads, environment variables, names in a text (`eval`),
    replaced parts of packages (`F.relu = ...`).

    The function should return all that it makes, and print nothing. It is given copies: train a model, and return it.
    If it changes what it looks up (fills a list outside), it runs every time. Its random numbers begin at seed 0.

    The files lie in the folder `.kept` of the notebook, or where the environment variable TRANSFORMER_EDU_KEPT says.
    They are read with pickle, as code of your own: take none from strangers. Delete them whenever you like.

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
    source_at_first()

    @functools.wraps(function)
    def call(*args, **kwargs):
        name = _name(function, args, kwargs)
        file = Path(os.environ.get("TRANSFORMER_EDU_KEPT") or ".kept") / name
        found = name and _read(file)
        if not found:
            given = _copies(name, function, args, kwargs) if name else (args, kwargs)
            with torch.random.fork_rng(devices=[]), contextlib.ExitStack() as afterwards:
                afterwards.callback(random.setstate, random.getstate())
                afterwards.callback(np.random.set_state, np.random.get_state())
                for seed in (torch.manual_seed, np.random.seed, random.seed):
                    seed(0)
                result = function(*given[0], **given[1])
            if name and name == _name(function, args, kwargs) and _source() == source_at_first():
                _write(file, (result,))
                found = _read(file)  # now as later: without gradients, for one
        return found[0] if found else result

    return call


def _name(function: Callable, args: tuple, kwargs: dict) -> str:
    """That of the file: a fingerprint of all that goes into a call. Empty where something has none, for any reason."""
    try:
        around = [torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled(), source_at_first()]
        around += [torch.is_autocast_enabled(device) for device in ("cpu", "cuda")]
        return f"{function.__name__}-{fingerprint(around, function, args, kwargs)}.pt"
    except Exception:
        return ""


def _copies(name: str, function: Callable, *given: tuple | dict) -> tuple:
    """Of the arguments, as no later call trains them; not if it finds them by name as well, or they do not copy."""
    with contextlib.suppress(Exception):
        copies = copy.deepcopy(given)
        return copies if name == _name(function, *copies) else given
    return given


def _read(file: Path) -> tuple:
    """What lies in the file, in a tuple; an empty one if there is none, or it cannot be read."""
    with contextlib.suppress(Exception):  # cut off, or a class is gone: whatever it is, the function can run again
        found = torch.load(file, weights_only=False)
        with contextlib.suppress(OSError):  # if the folder can be written to
            os.utime(file)  # used last
        return found if isinstance(found, tuple) else ()
    return ()


def _write(file: Path, content: tuple) -> None:
    """Write the whole file or none; a result that pickle does not take, or a disk that is full, is not kept."""
    part = file.with_name(f"{file.name}.{os.getpid()}.part")  # two kernels may be at it
    with contextlib.suppress(Exception):
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save(content, part)
        os.replace(part, file)
        for old in sorted(file.parent.glob(f"*-{'?' * 16}.pt"), key=os.path.getmtime)[:-FILES]:
            old.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        part.unlink()


def fingerprint(*values: object) -> str:
    """16 letters that are the same, in every process, for the same values; functions count with all that they use.

    Raises TypeError for a value of which it cannot be said whether two are the same (a file, an iterator).

    >>> fingerprint([1, torch.zeros(2)]) == fingerprint([1, torch.zeros(2)])
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    hashed = hashlib.sha256()
    _add(hashed, values, {})
    return hashed.hexdigest()[:16]


@functools.cache
def source_at_first() -> str:
    """What every result of this kernel stands on: the versions, and the package as it was when this was first asked.

    `set_up` asks, at the beginning of a lesson. Files that are edited later are not what has been imported.
    """
    return _source()


def _source() -> str:
    hashed = hashlib.sha256(repr((sys.version, torch.__version__, np.__version__)).encode())
    for file in sorted(file for kind in ("*.py", "*.pt") for file in Path(__file__).parent.rglob(kind)):
        hashed.update(file.read_bytes() if file.is_file() else b"")
    return hashed.hexdigest()


PYTHONS = (type(None), bool, int, float, complex, str, bytes, range, slice, types.EllipsisType, enum.Enum)
PLAIN = (*PYTHONS, datetime.date, datetime.timedelta, PurePath, np.generic, torch.dtype, torch.device)  # by their repr
APART = f"__future__ _collections collections dataclasses functools numpy random re torch types {__package__}".split()


def _add(hashed: hashlib._Hash, value: object, seen: dict[int, tuple[int, object]]) -> None:
    """Add a value to a hash, part by part. `seen` numbers the parts that have been met, and keeps their ids theirs."""
    hashed.update(type(value).__qualname__.encode())
    if isinstance(value, PLAIN) and not _is_own(type(value).__module__):
        hashed.update(repr(value).encode() + b"\0")
    elif id(value) in seen:
        hashed.update(b"again %d" % seen[id(value)][0])
    else:
        if type(value) is not tuple:  # equal tuples may be one or two, as the compiler likes
            seen[id(value)] = (len(seen), value)
        row = type(value) in (list, tuple) and all(type(each) in (str, int, float, bool) for each in value)
        for part in [repr(value)] if row else _parts(value):  # examples have thousands of rows of words
            _add(hashed, part, seen)
        hashed.update(b"end")


@functools.cache
def _is_own(module: str) -> bool:
    """Is this module the notebook, or a file of the reader's own? The others are installed, or of this package."""
    found = sys.modules.get(module)
    file = getattr(found, "__file__", None) or "".join(getattr(found, "__path__", ()))
    installed = "-packages" in file or file.startswith((os.path.dirname(os.__file__), os.path.dirname(__file__)))
    return module == "__main__" or (os.path.isabs(file) and not installed)


def _known(value: type | types.FunctionType) -> list:
    """Module, name and version of what is installed; nothing if another thing has taken that name, by a decorator."""
    module, name = value.__module__, value.__qualname__
    with contextlib.suppress(KeyError, AttributeError):
        if attrgetter(name)(sys.modules[module]) is value and not _is_own(module):
            return [module, name, getattr(sys.modules[module.partition(".")[0]], "__version__", "")]
    return []


def _parts(value: object) -> Iterable[object]:
    """What a value is made of, as further values."""
    kind = type(value)
    if kind in (list, tuple, dict):
        return value.items() if kind is dict else value
    if kind in (set, frozenset):
        return sorted(fingerprint(each) for each in value)
    if isinstance(value, Tensor):
        return _parts_of_tensor(value)
    if isinstance(value, types.ModuleType):
        own = _is_own(value.__name__) and {name: part for name, part in vars(value).items() if name[:2] != "__"}
        return [value.__name__, own or getattr(value, "__version__", "")]
    if isinstance(value, type):
        return _known(value) or _parts_of_class(value)
    if isinstance(value, types.FunctionType):
        return _known(value) or _parts_of_function(value)
    if isinstance(value, types.CodeType):  # not the lines, nor the file, in which it stands
        takes = [value.co_flags, value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount]
        names = [value.co_names, value.co_varnames, value.co_cellvars, value.co_freevars]
        return [value.co_code, value.co_exceptiontable, takes, names, value.co_consts]
    if isinstance(value, types.MethodType | types.BuiltinFunctionType):  # part.forward; torch.zeros, [].append
        return [getattr(value, "__func__", value.__qualname__), value.__self__]
    if isinstance(value, types.MemberDescriptorType | types.MethodDescriptorType):  # of __slots__; str.lower
        return [value.__objclass__, value.__name__]
    if isinstance(value, property):
        return [value.fget, value.fset]
    if isinstance(value, staticmethod | classmethod | functools._lru_cache_wrapper):
        return [value.__wrapped__]
    if _is_own(kind.__module__) or kind.__module__.partition(".")[0] in APART:
        made = copyreg.dispatch_table.get(kind, lambda value: value.__reduce_ex__(2))(value)  # as pickle does
        return [kind, *(list(part) if isinstance(part, Iterator) else part for part in made)]
    raise TypeError(f"no fingerprint of {kind.__name__}")


def _parts_of_tensor(tensor: Tensor) -> list:
    content = tensor.detach().resolve_conj().resolve_neg().cpu().clone(memory_format=torch.contiguous_format)
    looks = [type(tensor), tensor.dtype, tensor.device, tensor.shape, tensor.stride()]
    hooks = list((tensor._backward_hooks or {}).values())
    learns = [tensor.requires_grad, tensor.grad if tensor.is_leaf else None, hooks]  # others warn if asked for theirs
    return [*looks, *learns, vars(tensor), content.flatten().view(torch.uint8).numpy().tobytes()]


def _parts_of_function(function: types.FunctionType) -> list:
    """Its code, its defaults, its attributes, what it closes over, what it looks up by name or imports."""
    parts = [function.__qualname__, function.__code__, function.__defaults__, function.__kwdefaults__, vars(function)]
    parts += [cell.cell_contents for cell in function.__closure__ or ()]
    for how, name in sorted(_names(function.__code__)):
        found = sys.modules if how == "IMPORT_NAME" else function.__globals__
        if name in found or how == "IMPORT_NAME":  # what is not imported yet has no fingerprint
            parts.append((name, found[name]))
    return parts


def _names(code: types.CodeType) -> set[tuple[str, str]]:
    """The names that code looks up among the globals, or imports, and how; inner functions included."""
    steps = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_GLOBAL", "IMPORT_NAME"}
    names = {(step.opname, step.argval) for step in dis.get_instructions(code) if step.opname in steps}
    return names.union(*(_names(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)))


def _parts_of_class(kind: type) -> list:
    """One of the reader's own by its parents and what stands in it."""
    content = [part for part in vars(kind).items() if not part[0].startswith("__") or callable(part[1])]
    return [kind.__qualname__, type(kind), kind.__bases__, [part for part in content if part[0] != "_abc_impl"]]
