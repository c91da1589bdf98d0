"""Where models lie that learners of one process need again later: equal ones once, and in files.

In a simulation all learners live in one process, and one of them has its turn at a time. What the others
hold meanwhile need not be in memory.
"""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from ._tensors import MAPPED, Arrays, read_tensors, write_tensors

#: Bytes that all learners of a simulation may hold between their turns. Models that are few or small stay where
#: they are, which is faster.
BETWEEN = 256 << 20
#: Bytes of what all learners of a simulation began with, from which on it lies in files: only the first learner is asked
#: for it.
STARTS = 16 << 20
#: Values of each tensor by which models are told apart before they are compared as a whole.
_FEW = 64


class Kept:
    """Values in a file, which is gone when nobody needs them any more."""

    def __init__(self, path: str, arrays: Arrays, sign: Hashable) -> None:
        write_tensors(path, arrays)
        self._path, self.sign = path, sign
        #: The values where the folder is gone: without memory as long as nobody looks.
        self._map = read_tensors(path, mapped=True) if sum(value.nbytes for value in arrays.values()) > MAPPED else {}
        weakref.finalize(self, _remove, path)

    def read(self) -> Arrays:
        """The values, as a map of the file: what is written into one stays in that one, and the map is good for as
        long as somebody has it."""
        if self._map and not os.path.exists(self._path):
            return {name: value.copy() for name, value in self._map.items()}
        return read_tensors(self._path, mapped=True, writable=True)


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


class Shelf:
    """The models of the learners of one simulation, in a folder of its own."""

    def __init__(self, folder: str) -> None:
        self._folder, self._numbers = folder, itertools.count()
        self._all: weakref.WeakSet[Kept] = weakref.WeakSet()

    def put(self, arrays: Arrays) -> Kept | None:
        """Keeps 32-bit floats. `None` where there is no space for them."""
        sign = _sign(arrays)
        for kept in list(self._all):
            if kept.sign == sign and _same(arrays, kept.read()):
                return kept
        path = os.path.join(self._folder, f"model-{next(self._numbers)}.safetensors")
        try:
            kept = Kept(path, arrays, sign)
        except OSError:
            _remove(path)
            return None
        self._all.add(kept)
        return kept


def _sign(arrays: Arrays) -> Hashable:
    return tuple((name, arrays[name].shape, _bits(arrays[name])[:_FEW].tobytes()) for name in sorted(arrays))


def _same(arrays: Arrays, others: Arrays) -> bool:
    """Whether these are the same bits, of the same names and shapes."""
    return all(np.array_equal(_bits(value), _bits(others[name])) for name, value in arrays.items())


def _bits(values: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    return np.ascontiguousarray(values, np.float32).reshape(-1).view(np.uint32)
