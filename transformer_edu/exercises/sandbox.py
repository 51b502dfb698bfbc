"""Call a reader's function so that nothing it does can hurt: not the kernel, not the random state, not the screen."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import torch

SECONDS = 4.0  # for all calls of one check together
AGAIN = 0.05  # a function that swallows the first alarm meets another after so many seconds


class TookTooLong(BaseException):
    """Raised inside the reader's function when its time is over. No `except Exception` catches it."""


class Budget:
    """The time that one check may spend inside the reader's function."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.left = seconds

    def call(self, fn: Callable, *args: object) -> object:
        """fn(*args) within the time that is left; raises TookTooLong when it runs out."""
        start = time.monotonic()
        try:
            with _alarm(max(self.left, AGAIN)):
                return fn(*args)
        finally:
            self.left -= time.monotonic() - start


@contextlib.contextmanager
def calm() -> Iterator[io.StringIO]:
    """Hide what is printed or warned, fix dtype, device and grad mode, and restore every global state afterwards."""
    text = io.StringIO()
    limit, folder, trace = sys.getrecursionlimit(), os.getcwd(), sys.gettrace()
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    states = random.getstate(), np.random.get_state()
    try:
        with (
            contextlib.redirect_stdout(text),
            contextlib.redirect_stderr(text),
            warnings.catch_warnings(),
            torch.random.fork_rng(devices=_cuda_devices()),
            _on_the_cpu(),
            torch.enable_grad(),
        ):
            warnings.simplefilter("ignore")
            torch.set_default_dtype(torch.float32)
            torch.set_num_threads(1)  # on a busy machine several threads make small tensors hundreds of times slower
            yield text
    finally:
        sys.setrecursionlimit(limit)
        sys.settrace(trace)
        os.chdir(folder)
        torch.set_default_dtype(dtype)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        random.setstate(states[0])
        np.random.set_state(states[1])


def _on_the_cpu() -> contextlib.AbstractContextManager:
    """Probes live on the CPU; where the reader has made another device the default, a `torch.ones` would not."""
    on_cpu = torch.get_default_device().type == "cpu"
    return contextlib.nullcontext() if on_cpu else torch.device("cpu")


def _cuda_devices() -> list[int]:
    return list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in this thread after `seconds`, again and again until it gets through.

    On the main thread of a Unix system a signal does it; elsewhere a second thread asks the interpreter to raise.
    Neither can break a single endless call into C.
    """
    on_main = threading.current_thread() is threading.main_thread()
    with _signal_alarm(seconds) if on_main and hasattr(signal, "setitimer") else _thread_alarm(seconds):
        yield


@contextlib.contextmanager
def _signal_alarm(seconds: float) -> Iterator[None]:
    armed, rings = True, 0

    def ring(_signal: int, frame: object) -> None:
        nonlocal rings
        rings += 1
        if not armed:
            return
        if rings % 2 or frame is None:
            raise TookTooLong
        # The last one was swallowed by an `except` around the loop's body: raise from the next line instead,
        # which sooner or later is a line outside that body.
        frame.f_trace = _raise_from_line
        sys.settrace(_raise_from_line)

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _raise_from_line(_frame: object, event: str, _arg: object) -> Callable:
    if event == "line":
        sys.settrace(None)
        raise TookTooLong
    return _raise_from_line


@contextlib.contextmanager
def _thread_alarm(seconds: float) -> Iterator[None]:
    done = threading.Event()
    thread = ctypes.c_ulong(threading.get_ident())

    def ring() -> None:
        wait = seconds
        while not done.wait(wait):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(TookTooLong))
            wait = AGAIN

    bell = threading.Thread(target=ring, daemon=True)
    bell.start()
    try:
        yield
    finally:
        done.set()
        bell.join()
