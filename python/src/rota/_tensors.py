"""Safetensors files as dictionaries of NumPy arrays."""

from __future__ import annotations

import functools
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
MAPPED = 1 << 17
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


_FLOATS = np.dtype("<f4")
#: What a header says of each tensor: its name, type, first and last byte, and shape.
_Spans = list[tuple[str, str, int, int, tuple[int, ...]]]
#: The small file that was given last: its path and state, the bytes of its tensors, and where each of them lies.
_last: tuple[tuple[Any, ...], npt.NDArray[np.uint8], _Spans] | None = None


def _spans(path: Path, header: bytes) -> _Spans:
    found: _Spans = []
    for name, info in json.loads(header).items():
        if name == "__metadata__":
            continue
        if info["dtype"] not in _TYPES:
            raise ValueError(f"{path}: the tensor {name!r} has the type {info['dtype']}")
        first, last = info["data_offsets"]
        found.append((name, _TYPES[info["dtype"]], first, last, tuple(info["shape"])))
    return found


def _arrays(data: npt.NDArray[np.uint8], spans: _Spans) -> Arrays:
    return {name: data[first:last].view(kind).reshape(shape) for name, kind, first, last, shape in spans}


def read_tensors(path: str | os.PathLike[str], *, mapped: bool = False, writable: bool = False) -> Arrays:
    """The tensors of a safetensors file, by name.

    With `mapped` the arrays of all but small files are views of the file, which is read where it is used. They are read-only, unless
    they are `writable`: what is then written into them stays in memory, and the file as it is.
    """
    return _arrays(*_read(path, os.stat(path).st_size, mapped, writable))


def read_given(path: str | os.PathLike[str]) -> Arrays:
    """The tensors of a file that the silo wrote, which a learner may change as it likes. They are not copied where a
    file can be removed while it is in use.

    A small one that is asked for again, as the model of a round is for every silo, is not read again: the silo gives every
    model a name of its own. Files that others may write anew are for `read_tensors`: within one tick of the clock of a file
    system nothing tells them apart.
    """
    global _last
    state = os.stat(path)
    if state.st_size > MAPPED:
        return _arrays(*_read(path, state.st_size, os.name != "nt", True))
    sign = (os.fspath(path), state.st_ino, state.st_size, state.st_mtime_ns)
    if (last := _last) is None or last[0] != sign:
        _last = last = (sign, *_read(path, state.st_size, False, True))
    return _arrays(last[1].copy(), last[2])


def _read(path: str | os.PathLike[str], length: int, mapped: bool, writable: bool) -> tuple[npt.NDArray[np.uint8], _Spans]:
    """The bytes of the tensors of a file of this length, and where each of them lies."""
    path = Path(path)
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if not 0 < size <= length - 8:
            raise ValueError(f"{path} is no safetensors file")
        spans = _spans(path, file.read(size))
    if mapped and MAPPED < length and length > 8 + size:
        return np.asarray(np.memmap(path, dtype=np.uint8, mode="c" if writable else "r", offset=8 + size)), spans
    return np.fromfile(path, dtype=np.uint8, offset=8 + size), spans


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
    names = sorted(arrays)
    given = [np.asarray(arrays[name]) for name in names]
    blocks = [one if one.dtype == _FLOATS else _as_written(one, wide) for one in given]
    tensors = tuple((name, block.dtype.char, block.shape, block.nbytes) for name, block in zip(names, blocks))
    blocks = [np.ascontiguousarray(block) for block in blocks]
    if sum(block.nbytes for block in blocks) <= MAPPED:
        parts: list[Any] = [_header(tensors), *blocks]
        _write(path, b"".join(parts))
        return
    # One may be a map of the very file that is written.
    blocks = [block.copy() if _is_mapped(block) else block for block in blocks]
    with Path(path).open("wb") as file:
        file.write(_header(tensors))
        for block in blocks:
            file.write(block.data)


def _write(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes a small file."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o666)
    try:
        while content:
            content = content[os.write(file, content) :]
    finally:
        os.close(file)


def _as_written(array: npt.NDArray[Any], wide: bool) -> npt.NDArray[Any]:
    """As 32-bit floats, or with `wide` as 64-bit ones where it would be rounded."""
    with np.errstate(over="ignore"):
        small = array.astype(_FLOATS)
    rounded = wide and not np.array_equal(small, array, equal_nan=array.dtype.kind == "f")
    return array.astype("<f8") if rounded else small


@functools.lru_cache(maxsize=64)
def _header(tensors: tuple[tuple[str, str, tuple[int, ...], int], ...]) -> bytes:
    """The beginning of a file with these tensors: name, type as NumPy has it, shape and bytes of each."""
    said, offset = {}, 0
    for name, kind, shape, size in tensors:
        said[name] = {"dtype": "F64" if kind == "d" else "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
