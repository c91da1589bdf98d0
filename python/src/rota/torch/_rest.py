"""What a module holds while other learners of a simulation have their turns: a map of a file, in place of memory."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import nn

from .._shelf import BETWEEN, STARTS, Kept, Shelf
from .._tensors import MAPPED, Arrays
from ._types import tensor


#: Bytes of a tensor from which on it has pages of its own.
_LARGE = 1 << 20


def _has_its_own_memory(value: torch.Tensor) -> bool:
    """Whether nothing else, such as a view or another layer, has the memory of this tensor."""
    plain = type(value) in (torch.Tensor, nn.Parameter) and value.layout == torch.strided and value.is_contiguous()
    if not plain or value.device.type != "cpu" or value.dtype != torch.float32:
        return False
    # Versions of PyTorch that do not tell keep their memory.
    return _uses(value) is not None and _uses(value) == _uses(torch.empty(1))


def _uses(value: torch.Tensor) -> int | None:
    """How many hold the memory of a tensor, as this version of PyTorch counts: some count who asks."""
    count: Any = getattr(torch._C, "_storage_Use_Count", None)
    return None if count is None else int(count(value.untyped_storage()._cdata))


def is_large(values: Iterable[torch.Tensor], silos: int) -> bool:
    """Whether this many modules with such values are more than a process should hold at once."""
    return silos * sum(value.numel() * value.element_size() for value in values) > BETWEEN


def start_of(first: Arrays, silos: int, shelf: Shelf) -> Arrays | Kept:
    """What a module begins with, on the shelf where this many modules with such values are more than a process should hold
    for a question that only one of them is asked."""
    size = sum(value.nbytes for value in first.values())
    large = silos * size > BETWEEN or (size > MAPPED and silos * size > STARTS)
    return (shelf.put(first) or first) if large else first


def laid_down(values: Mapping[str, torch.Tensor], given: Arrays, shelf: Shelf) -> Kept | None:
    """Gives the memory of these tensors of a module back: they become maps of a file with the values `given`, which
    are read where somebody looks, and may be written into as before. `None`, and nothing changes, where that cannot
    be."""
    if not all(_has_its_own_memory(value) for value in values.values()):
        return None
    if (kept := shelf.put({name: np.asarray(given[name], np.float32) for name in values})) is None:
        return None
    mapped = kept.read()
    for name, value in values.items():
        value.data = tensor(mapped[name]).reshape(value.shape)
    return kept


def give_back() -> None:
    """Lets the C library give the system what it keeps for later, where it is one that can: gradients, and what a
    module was made in."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _mapped(size: int) -> torch.Tensor:
    """Memory that the system has back as soon as it is not used. What the C library frees, it keeps for later, with
    holes where other blocks do not fit: after fifty models that is as much as fifty models."""
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(memory, dtype=torch.float32)


def taken_up(value: torch.Tensor, given: torch.Tensor) -> None:
    """Gives a tensor that was laid down memory again, with these values."""
    made = torch.empty_like(value) if value.nbytes < _LARGE else _mapped(value.nbytes).reshape(value.shape)
    value.data = made.copy_(given)
