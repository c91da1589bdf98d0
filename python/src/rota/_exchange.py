"""Where this process and the program exchange models: in memory, where they are small."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from typing import Any

#: The folder of Linux whose files are in memory.
_MEMORY = "/dev/shm"
#: Bytes of a model up to which it is exchanged there. For a larger one a file of the disk takes no longer, and its pages
#: can go when memory is scarce.
_SMALL = 1 << 22
#: Models that are in the folder at once beside one of every silo, with room to spare.
_BESIDE = 16


def folder_for(content: Any, silos: int | None) -> str | None:
    """The folder for exchange of a scenario with this content: in memory where its models are small and there is room
    for those of all silos, else `None`, that for temporary files. Who sets `TMPDIR` has chosen already."""
    if not sys.platform.startswith("linux") or os.environ.get("TMPDIR") or (size := _bytes(content)) is None:
        return None
    asked = silos if silos is not None else content.get("silos")
    count = asked if isinstance(asked, int) else len(asked) if isinstance(asked, (list, tuple)) else 1_000
    try:
        free = os.statvfs(_MEMORY)
    except OSError:
        return None
    room = free.f_bavail * free.f_frsize
    usable = os.access(_MEMORY, os.W_OK | os.X_OK)
    return _MEMORY if usable and size <= _SMALL and 4 * size * (count + _BESIDE) <= room else None


def _bytes(content: Any) -> int | None:
    """Bytes of the model of a scenario whose tensors are said in it."""
    try:
        tensors = content["task"]["external"]["tensors"]
        return 4 * sum(int(math.prod(one["shape"])) for one in tensors)
    except (KeyError, TypeError):
        return None


def content_of(scenario: Mapping[str, Any] | str | os.PathLike[str]) -> Any:
    """What a scenario says, where that can be read here; else `None`."""
    if isinstance(scenario, Mapping):
        return scenario
    try:
        import tomllib  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        import tomli as tomllib  # type: ignore[import-not-found, no-redef, unused-ignore]
    try:
        with open(scenario, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError):
        return None
