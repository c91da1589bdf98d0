"""Safetensors files as dictionaries of NumPy arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ._notes import note

Array = npt.NDArray[np.float32]
Arrays = dict[str, Array]

#: Bytes of a file up to which reading it takes less time than mapping it.
_SMALL = 1 << 17
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


def read_tensors(path: str | os.PathLike[str], *, mapped: bool = False, writable: bool = False) -> Arrays:
    """The tensors of a safetensors file, by name.

    With `mapped` the arrays of all but small files are views of the file, which is read where it is used. They are read-only, unless
    they are `writable`: what is then written into them stays in memory, and the file as it is.
    """
    path = Path(path)
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if not 0 < size <= path.stat().st_size - 8:
            raise ValueError(f"{path} is no safetensors file")
        header = json.loads(file.read(size))
    data: npt.NDArray[np.uint8]
    if mapped and path.stat().st_size > max(8 + size, _SMALL):
        data = np.asarray(np.memmap(path, dtype=np.uint8, mode="c" if writable else "r", offset=8 + size))
    else:
        data = np.fromfile(path, dtype=np.uint8, offset=8 + size)
    arrays: Arrays = {}
    for name, info in header.items():
        if name == "__metadata__":
            continue
        if info["dtype"] not in _TYPES:
            raise ValueError(f"{path}: the tensor {name!r} has the type {info['dtype']}")
        first, last = info["data_offsets"]
        values = data[first:last].view(_TYPES[info["dtype"]])
        arrays[name] = values.reshape(info["shape"])
    return arrays


def copied(value: Any) -> npt.NDArray[Any]:
    """A copy of an array, or of a tensor of PyTorch on any device."""
    return np.array(value.detach().cpu().numpy() if hasattr(value, "detach") else value)


def travels(arrays: Mapping[str, npt.ArrayLike]) -> Arrays:
    """Arrays as models travel: as 32-bit floats. That 64-bit floats are rounded is said once.

    Raises `ValueError` for what 32-bit floats do not have: whole numbers beyond 2^24 that they skip, floats beyond their
    range, and what is no number.
    """
    found: Arrays = {}
    for name, given in arrays.items():
        value = np.asarray(given)
        if value.dtype == np.float32:
            found[name] = value
            continue
        if value.dtype.kind not in "biuf":
            raise ValueError(f"the array {name!r} is of {value.dtype}, and models are of real numbers: give floats")
        with np.errstate(over="ignore"):
            small = value.astype(np.float32)
        if value.dtype.kind != "f":
            if not np.array_equal(small.astype(np.float64), value.astype(np.float64)):
                raise ValueError(
                    f"the array {name!r} has the whole number {int(np.abs(value).max())}, and models travel as 32-bit floats, which skip "
                    "whole numbers above 2^24: count in larger units, or keep it at the silo as personal state"
                )
        elif bool((np.isfinite(value) & ~np.isfinite(small)).any()):
            raise ValueError(f"the array {name!r} has a number beyond ±3.4e38, which 32-bit floats do not have: use another unit")
        elif value.dtype == np.float64 and not np.array_equal(small, value, equal_nan=True):
            note(
                f"models travel as 32-bit floats: the array {name!r} of 64-bit floats is rounded to seven digits, in every round"
            )
        found[name] = small
    return found


def _is_mapped(array: npt.NDArray[Any]) -> bool:
    """Whether the array's memory is a map of a file."""
    base: Any = array
    while isinstance(base, (np.ndarray, memoryview)):
        if isinstance(base, np.memmap):
            return True
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return isinstance(base, mmap)


def write_tensors(path: str | os.PathLike[str], arrays: Mapping[str, npt.ArrayLike], *, wide: bool = False) -> None:
    """Writes arrays as 32-bit floats to a safetensors file, in the order of their names. With `wide`, arrays
    that would be rounded are written as 64-bit floats."""
    header = {}
    blocks = []
    offset = 0
    for name in sorted(arrays):
        given = np.asarray(arrays[name])
        with np.errstate(over="ignore"):
            array = given.astype("<f4", copy=False)
        large = wide and array is not given and not np.array_equal(array, given, equal_nan=given.dtype.kind == "f")
        array = given.astype("<f8") if large else array
        shape = list(array.shape)
        block = np.ascontiguousarray(array)
        # It may be a map of the very file that is written.
        block = block.copy() if _is_mapped(block) else block
        header[name] = {"dtype": "F64" if large else "F32", "shape": shape, "data_offsets": [offset, offset + block.nbytes]}
        offset += block.nbytes
        blocks.append(block)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with Path(path).open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for block in blocks:
            file.write(block.data)
