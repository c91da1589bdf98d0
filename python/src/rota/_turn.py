"""One learner at a time in a process, with draws of its own.

PyTorch, NumPy and Python each have one generator for a whole process. Learners that draw from them (at
the start of a layer, in dropout, in the order of rows) would draw from each other if two simulations ran
at once. So each request to a learner waits for its turn and finds the generators seeded for it. What was there is put
back: after the request, or in a simulation before anybody else's code is called, as its requests come one after another.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class Level:
    """The learners of a process of which one at a time has its turn."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        #: The generators as they were before the learners of simulations began to draw from them.
        self._before: Draws | None = None
        #: Whether they are to be put back as soon as nobody has a turn.
        self.owed = False

    def begin(self) -> None:
        """Keeps the generators as they are, where no simulation has drawn from them since they were put back."""
        if self._before is None:
            self._before = Draws()

    def give_back(self) -> None:
        """Puts the generators back, for code that is no learner's. Where somebody has a turn, after it: a learner that
        has long to go is not waited for."""
        self.owed = True
        if not self.lock.acquire(blocking=False):
            return
        try:
            self.owed, before, self._before = False, self._before, None
            if before is not None:
                before.restore()
        finally:
            self.lock.release()


_PROCESS = Level()


class _Here(threading.local):
    """What is known of a thread."""

    level = _PROCESS
    #: How many turns the thread has, one inside of the other, and how many of them are seeded.
    depth = seeded = 0
    #: Whether it serves the learners of a simulation.
    serves = False


_HERE = _Here()


@contextmanager
def turn() -> Iterator[None]:
    """The turn of this thread: nobody else of the process learns meanwhile."""
    level = _HERE.level
    level.lock.acquire()
    _HERE.depth += 1
    try:
        yield
    finally:
        _HERE.depth -= 1
        level.lock.release()
        if level.owed and not _HERE.depth:
            level.give_back()


def inner() -> Level:
    """That of the threads of a simulation that begins here. A learner may simulate in the middle of its
    own turn; the simulation then has turns of its own, because it would wait for this one forever."""
    return Level() if _HERE.depth else _HERE.level


def use(level: Level) -> None:
    """Makes this thread serve the learners of a simulation."""
    _HERE.level, _HERE.serves = level, True


class Draws:
    """The generators of a process at one moment."""

    def __init__(self) -> None:
        self._python, self._numpy = random.getstate(), np.random.get_state()
        self._torch = self._cuda = None
        if (torch := sys.modules.get("torch")) is not None and hasattr(torch, "get_rng_state"):
            self._torch = torch.get_rng_state()
            if not _only_processor(torch) and torch.cuda.is_available() and torch.cuda.is_initialized():
                self._cuda = torch.cuda.get_rng_state_all()

    def restore(self) -> None:
        """Puts the generators back."""
        random.setstate(self._python)
        np.random.set_state(self._numpy)
        torch: Any = sys.modules.get("torch")
        if self._torch is not None:
            torch.set_rng_state(self._torch)
        if self._cuda is not None:
            torch.cuda.set_rng_state_all(self._cuda)


def seed_torch(seed: int) -> None:
    """Seeds PyTorch, where it is imported."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "manual_seed"):
        return
    if _only_processor(torch):
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def _only_processor(torch: Any) -> bool:
    """Whether there is no other device. `torch.manual_seed` then notes, for a device that never comes, the stack of every
    call, which takes longer than a small training."""
    global _PROCESSOR
    if _PROCESSOR is None:
        kinds = (torch.cuda, getattr(torch, "xpu", None), getattr(torch.backends, "mps", None), getattr(torch, "mtia", None))
        _PROCESSOR = hasattr(torch, "default_generator") and not any(kind is not None and kind.is_available() for kind in kinds)
    return _PROCESSOR


_PROCESSOR: bool | None = None


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seeds Python, NumPy and PyTorch for a turn, and puts their generators back afterwards: to what they were in the turn
    around this one, or before the simulation that this thread serves, when that gives them back."""
    before = None
    if _HERE.serves and _HERE.depth and not _HERE.seeded:
        _HERE.level.begin()
    else:
        before = Draws()
    _HERE.seeded += 1
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    seed_torch(seed % (1 << 63))
    try:
        yield
    finally:
        _HERE.seeded -= 1
        if before is not None:
            before.restore()


@contextmanager
def alone() -> Iterator[None]:
    """A turn in which what is drawn is always the same."""
    with turn(), seeded(0):
        yield
