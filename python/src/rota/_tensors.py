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

Array = npt.NDArray[np.float32]
Arrays = dict[str, Array]

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


def read_tensors(path: str | os.PathLike[str], *, mapped: bool = False, writable: bool = False) -> Arrays:
    """The tensors of a safetensors file, by name.

    With `mapped` the arrays are views of the file, which is read where it is used. They are read-only, unless
    they are `writable`: what is then written into them stays in memory, and the file as it is.
    """
    path = Path(path)
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if not 0 < size <= path.stat().st_size - 8:
            raise ValueError(f"{path} is no safetensors file")
        header = json.loads(file.read(size))
    data: npt.NDArray[np.uint8]
    if mapped and path.stat().st_size > 8 + size:
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


def _is_mapped(array: npt.NDArray[Any]) -> bool:
    """Whether the array's memory is a map of a file."""
    base: Any = array
    while isinstance(base, (np.ndarray, memoryview)):
        if isinstance(base, np.memmap):
            return True
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return isinstance(base, mmap)


def write_tensors(path: str | os.PathLike[str], arrays: Mapping[str, npt.ArrayLike]) -> None:
    """Writes arrays as 32-bit floats to a safetensors file, in the order of their names."""
    header = {}
    blocks = []
    offset = 0
    for name in sorted(arrays):
        array = np.asarray(arrays[name], dtype="<f4")
        shape = list(array.shape)
        block = np.ascontiguousarray(array)
        # It may be a map of the very file that is written.
        block = block.copy() if _is_mapped(block) else block
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + block.nbytes]}
        offset += block.nbytes
        blocks.append(block)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with Path(path).open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for block in blocks:
            file.write(block.data)
