"""Which agreed tensor is which one of a module."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from .._tensors import read_tensors
from ._state import shapes, state_of
from ._types import Shared

#: Names that Rota's own networks have for buffers of `torch.nn.BatchNorm*d`.
_BUFFERS = {"running_mean": "mean", "running_var": "variance"}
#: Tensors of the common scale, which a model that is given its rows on that scale does not have.
_SCALE = {"scale.mean", "scale.rest", "scale.deviation"}


def _natural(name: str) -> list[str | int]:
    """Layer 10 comes after layer 2."""
    parts: list[str | int] = list(re.split(r"(\d+)", name))
    parts[1::2] = [int(part) for part in parts[1::2]]
    return parts


def covered(names: Mapping[str, str], own: Mapping[str, Any], other: Mapping[str, Any] | None) -> dict[str, str]:
    """`names` as given, if they are all the tensors of both sides, with their shapes."""
    missing = set(own) ^ set(names.values())
    if other is not None:
        missing |= set(other) ^ set(names)
    if missing:
        raise ValueError(f"`names` must name every tensor of both sides once, and no other; look at {min(missing)!r}")
    if len(set(names.values())) < len(names):
        raise ValueError("`names` names a tensor of the module twice")
    for name, mine in names.items():
        if other is not None and tuple(other[name]) != tuple(own[mine]):
            raise ValueError(f"{name!r} has the shape {tuple(other[name])}, {mine!r} of the module {tuple(own[mine])}")
    return dict(names)


def match(
    model: nn.Module, layout: Mapping[str, tuple[int, ...]], shared: Shared = "all"
) -> dict[str, str]:
    """For each name of an agreed or exported tensor the name in `model.state_dict()`, of which
    `shared` says what takes part, as in `Learner`.

    Tensors go together by name, where buffers of norm layers are called `mean` and `variance`
    too; or else layer by layer in the order of depth, where all shapes are equal. The order of
    depth is that of the module, and that of the names: `conv2` before `conv10`. Raises `ValueError`
    where neither works.
    """
    own = shapes(model, shared)
    other = {name: tuple(shape) for name, shape in layout.items() if name not in _SCALE}

    def agreed(name: str) -> str:
        layer, dot, part = name.rpartition(".")
        return layer + dot + _BUFFERS.get(part, part)

    def part(name: str) -> str:
        return agreed(name).rpartition(".")[2]

    def fits(found: Mapping[str, str]) -> bool:
        same = all(own[mine] == other[name] for name, mine in found.items())
        return same and len(set(found.values())) == len(own) == len(other)

    by_name = {agreed(name): name for name in own}
    found = {name: by_name[agreed(name)] for name in other if agreed(name) in by_name}
    if fits(found):
        return found

    def layers(names: Iterable[str]) -> dict[str, list[str]]:
        grouped: dict[str, list[str]] = {}
        for name in names:
            grouped.setdefault(name.rpartition(".")[0], []).append(name)
        return grouped

    mine, theirs = layers(own), layers(sorted(other, key=_natural))
    found = {}
    for ours, layer in zip(mine.values(), theirs.values()):
        by_part = {part(name): name for name in ours}
        found |= {name: by_part[part(name)] for name in layer if part(name) in by_part}
    if len(mine) == len(theirs) and fits(found):
        return found
    raise ValueError(
        f"the module's tensors {own} are not those of the agreed model, {other}: "
        "give `names`, a dictionary from agreed names to those in the module"
    )


def load(
    model: nn.Module, path: Any, *, names: Mapping[str, str] | None = None, shared: Shared = "all"
) -> nn.Module:
    """Loads a safetensors file that Rota exported into the equivalent module, and returns it.

    `shared` is that of the learners; with `"trainable"` the file has only what was trained. `names`
    has for each tensor of the file its name in the module, where they cannot be matched.
    """
    arrays = read_tensors(path)
    found = {name: value.shape for name, value in arrays.items() if name not in _SCALE}
    pairs = match(model, found, shared) if names is None else covered(names, shapes(model, shared), found)
    state = state_of(model)
    with torch.no_grad():
        for name, mine in pairs.items():
            state[mine].copy_(torch.from_numpy(np.ascontiguousarray(arrays[name])))
    return model
