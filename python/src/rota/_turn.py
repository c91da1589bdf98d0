"""One learner at a time in a process, with draws of its own.

PyTorch, NumPy and Python each have one generator for a whole process. Learners that draw from them (at
the start of a layer, in dropout, in the order of rows) would draw from each other if two simulations ran
at once. So each request to a learner waits for its turn, finds the generators seeded for it, and puts back what
was there.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_PROCESS = threading.RLock()
_HERE = threading.local()


def _lock() -> Any:
    return getattr(_HERE, "lock", _PROCESS)


@contextmanager
def turn() -> Iterator[None]:
    """The turn of this thread: nobody else of the process learns meanwhile."""
    with _lock():
        _HERE.depth = getattr(_HERE, "depth", 0) + 1
        try:
            yield
        finally:
            _HERE.depth -= 1


def inner() -> Any:
    """The lock for threads of a simulation that begins here. A learner may simulate in the middle of its
    own turn; the simulation then has a lock of its own, because it would wait for this one forever."""
    return threading.RLock() if getattr(_HERE, "depth", 0) else _lock()


def use(lock: Any) -> None:
    """Makes `lock` that of this thread."""
    _HERE.lock = lock


class Draws:
    """The generators of a process at one moment."""

    def __init__(self) -> None:
        self._python, self._numpy = random.getstate(), np.random.get_state()
        self._torch = self._cuda = None
        if (torch := sys.modules.get("torch")) is not None and hasattr(torch, "get_rng_state"):
            self._torch = torch.get_rng_state()
            if torch.cuda.is_available() and torch.cuda.is_initialized():
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
    """Seeds Python, NumPy and PyTorch, and puts their generators back afterwards."""
    before = Draws()
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    seed_torch(seed % (1 << 63))
    try:
        yield
    finally:
        before.restore()
