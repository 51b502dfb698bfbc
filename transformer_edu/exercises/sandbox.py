"""Call a reader's function so that nothing it does can hurt: not the kernel, not the random state, not the screen."""

from __future__ import annotations

import contextlib
import ctypes
import importlib._bootstrap
import io
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from types import FrameType

import numpy as np
import torch

SECONDS = 4.0  # for all calls of one check together
AGAIN = 0.05  # a function that swallows the first alarm meets another after so many seconds
IMPORTS = 20.0  # the import of a large module is not broken off before so many seconds

FIND_AND_LOAD = importlib._bootstrap._find_and_load.__code__  # runs while a module is imported for the first time


class TookTooLong(BaseException):
    """Raised inside the reader's function when its time is over. No `except Exception` catches it."""


class Interrupted(BaseException):
    """The reader has pressed Ctrl-C, or the notebook's stop button."""


class Budget:
    """The time that one check may spend inside the reader's function."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.left = seconds

    def call(self, fn: Callable, *args: object) -> object:
        """fn(*args) within the time that is left; raises TookTooLong when it runs out.

        On the main thread of a Unix system a signal does it; elsewhere a second thread asks the interpreter to raise.
        Neither can break a single endless call into C.
        """
        on_main = threading.current_thread() is threading.main_thread()
        alarm = (SignalAlarm if on_main and hasattr(signal, "setitimer") else ThreadAlarm)(max(self.left, AGAIN))
        try:
            result = fn(*args)
        finally:
            alarm.armed = False  # first of all, and without a call: the next ring may come at any call
            alarm.stop()
            self.left -= time.monotonic() - alarm.counted
        if alarm.rang:  # swallowed by the function, which went on to its end
            raise TookTooLong
        return result


class Alarm:
    """When it is time. An import under way is waited for, since half a module would stay behind; its time is free."""

    def __init__(self, seconds: float) -> None:
        self.armed, self.rang, self.seconds, self.waited = True, False, seconds, False
        self.start = self.counted = time.monotonic()

    def early(self, frame: FrameType | None) -> float:
        """How many seconds the function in this frame has still got when the alarm rings."""
        while frame is not None and frame.f_code is not FIND_AND_LOAD:
            frame = frame.f_back
        now = time.monotonic()
        if frame is not None and now - self.start < IMPORTS:
            self.waited = True
            return AGAIN
        if self.waited and self.counted == self.start:  # once, the time begins anew after an import
            self.counted = now
            return self.seconds
        return 0.0


class SignalAlarm(Alarm):
    """Raises TookTooLong after `seconds`, and again some microseconds after each ring.

    A function may catch the exception and go on. Sooner or later one of the next meets it while it still handles the
    last, where its `try` does not reach; the time between two rings changes from ring to ring, so that it is soon.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.wait = 0.0
        self.before = signal.signal(signal.SIGALRM, self.ring)
        self.timer = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)

    def ring(self, _signal: int, frame: FrameType | None) -> None:
        if self.armed and not self.rang and (left := self.early(frame)):
            signal.setitimer(signal.ITIMER_REAL, left, AGAIN)
        elif self.armed:
            self.rang, self.wait = True, (self.wait + 1.37e-6) % 6e-5
            signal.setitimer(signal.ITIMER_REAL, 2e-6 + self.wait, AGAIN)
            raise TookTooLong

    def stop(self) -> None:
        """Put back the handler, and the time that was left on a timer of the reader's own."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)
        if self.timer[0]:
            left = max(self.timer[0] - (time.monotonic() - self.start), AGAIN)
            signal.setitimer(signal.ITIMER_REAL, left, self.timer[1])


class ThreadAlarm(Alarm):
    """The same from a second thread, again and again."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.done = threading.Event()
        self.bell = threading.Thread(target=self.watch, args=(seconds, threading.get_ident()), daemon=True)
        self.bell.start()

    def watch(self, wait: float, thread: int) -> None:
        while not self.done.wait(wait) and self.armed:
            wait = AGAIN if self.rang else self.early(sys._current_frames().get(thread))
            if not wait or self.rang:
                self.rang, wait = True, AGAIN
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TookTooLong))

    def stop(self) -> None:
        self.done.set()
        self.bell.join()


class _Screen(io.StringIO):
    """Takes what is printed, and does not let itself be closed."""

    def close(self) -> None:
        pass


@contextlib.contextmanager
def calm() -> Iterator[io.StringIO]:
    """Hide what is printed or warned, fix dtype, device and grad mode, and restore every global state afterwards."""
    text = _Screen()
    limit, folder, trace = sys.getrecursionlimit(), os.getcwd(), sys.gettrace()
    threads, dtype, device = torch.get_num_threads(), torch.get_default_dtype(), torch.get_default_device()
    states = random.getstate(), np.random.get_state()
    try:
        with (
            _stop_button(),
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
    except Interrupted:
        raise KeyboardInterrupt from None
    finally:
        sys.setrecursionlimit(limit)
        sys.settrace(trace)
        os.chdir(folder)
        torch.set_default_dtype(dtype)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        if torch.get_default_device() != device:
            torch.set_default_device(device)
        random.setstate(states[0])
        np.random.set_state(states[1])


@contextlib.contextmanager
def _stop_button() -> Iterator[None]:
    """While a check runs, Ctrl-C raises Interrupted, so that it is not taken for the reader's own KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _on_the_cpu() -> contextlib.AbstractContextManager:
    """Probes live on the CPU; where the reader has made another device the default, a `torch.ones` would not."""
    on_cpu = torch.get_default_device().type == "cpu"
    return contextlib.nullcontext() if on_cpu else torch.device("cpu")


def _cuda_devices() -> list[int]:
    return list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
