"""Safetensors files as dictionaries of NumPy arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Arrays = dict[str, Array]

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


def read_tensors(path: str | os.PathLike[str], *, mapped: bool = False) -> Arrays:
    """The tensors of a safetensors file, by name.

    With `mapped` the arrays are read-only views of the file, which is read where it is used.
    """
    path = Path(path)
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if not 0 < size <= path.stat().st_size - 8:
            raise ValueError(f"{path} is no safetensors file")
        header = json.loads(file.read(size))
    data: npt.NDArray[np.uint8]
    if mapped and path.stat().st_size > 8 + size:
        data = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + size)
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


def write_tensors(path: str | os.PathLike[str], arrays: Mapping[str, npt.ArrayLike]) -> None:
    """Writes arrays as 32-bit floats to a safetensors file, in the order of their names."""
    header = {}
    blocks = []
    offset = 0
    for name in sorted(arrays):
        array = np.asarray(arrays[name], dtype="<f4")
        shape = list(array.shape)
        block = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + len(block)]}
        offset += len(block)
        blocks.append(block)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with Path(path).open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for block in blocks:
            file.write(block)
