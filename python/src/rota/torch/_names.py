"""Which agreed tensor is which one of a module."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from .._tensors import read_tensors
from ._constants import candidates
from ._first import Looked
from ._state import put, shapes, shared_of, state_of
from ._types import Shared
from ._wrappers import buffers_of, plain_name, without_words

#: Names that Rota's own networks have for buffers of `torch.nn.BatchNorm*d`.
_BUFFERS = {"running_mean": "mean", "running_var": "variance"}
#: Tensors of the common scale, which a model that is given its rows on that scale does not have.
_SCALE = {"scale.mean", "scale.rest", "scale.deviation"}

Layout = Mapping[str, tuple[int, ...]]


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
    """For each name of an agreed or exported tensor the name in the module, without what wrappers such as
    `torch.compile` put before it; `shared` says what takes part, as in `Learner`.

    Tensors go together by name, where buffers of norm layers are called `mean` and `variance` too; or
    else layer by layer, where the shapes tell which is which, or both sides have the order of the
    definition, or names count the layers, as `conv2` and `conv10` do. Buffers that no name of the
    layout means are left out. Raises `ValueError` where that does not tell.
    """
    return matched(shapes(model, shared), layout, candidates(model), checked=False)


def names_of(
    model: nn.Module,
    shared: Shared,
    agreed: Mapping[str, tuple[int, ...]],
    names: Mapping[str, str] | None,
    looked: Looked,
    checked: bool,
) -> dict[str, str]:
    """For each tensor that travels, by its agreed name, the one in the module, in the order of depth. `agreed` is empty
    where nothing is agreed yet; buffers that training does not change stay where they are unless somebody agreed on them."""
    constant, own = looked.constant, shapes(model, shared, looked.moving)
    if looked.order is not None:
        own = {name: own[name] for name in looked.order if name in own}
    if names is not None:
        plain = plain_name(model)
        names = {name: plain(mine) for name, mine in names.items()}
        own = {name: shape for name, shape in own.items() if name not in constant - set(names.values())}
        return covered(names, own, agreed or None)
    if agreed:
        return matched(own, agreed, constant, checked)
    return {name: name for name in own if name not in constant}


def matched(
    own: Mapping[str, tuple[int, ...]], layout: Mapping[str, tuple[int, ...]], constant: set[str], checked: bool
) -> dict[str, str]:
    """As `match`, of the tensors of a module with these `constant` buffers. Where it is `checked` afterwards what the
    module computes, the order of depth in names is enough."""
    other = {name: tuple(shape) for name, shape in layout.items() if name not in _SCALE}
    meant = {without_words(_agreed(name)) for name in other}
    left = {name for name in constant if _agreed(name) not in meant}
    attempts = [{name: shape for name, shape in own.items() if name not in left}]
    if left:
        attempts.append(dict(own))
    for tensors in attempts:
        found = _by_name(tensors, other) or _by_layer(tensors, other, checked)
        if found is not None:
            return found
    if (apart := _apart(attempts[-1], other)) is not None:
        raise ValueError(f"the module is another model than the agreed one: {apart}")
    raise ValueError(
        f"the module's tensors {attempts[0]} are not those of the agreed model, {other}: "
        "give `names`, a dictionary from agreed names to those in the module"
    )


def _apart(own: Layout, other: Layout) -> str | None:
    """The tensors that have other shapes than agreed, where all agreed names are there: no `names` would help then."""
    mine = {without_words(_agreed(name)): name for name in own}
    theirs = {without_words(_agreed(name)): name for name in other}
    if not set(theirs) <= set(mine):
        return None
    unlike = [(mine[name], theirs[name]) for name in theirs if own[mine[name]] != other[theirs[name]]]
    if not unlike:
        return None
    said = [f"{one} {tuple(own[one])}, agreed {tuple(other[two])}" for one, two in unlike[:3]]
    return f"other shapes: {'; '.join(said)}" + (f"; and {len(unlike) - 3} more" if len(unlike) > 3 else "")


def _agreed(name: str) -> str:
    layer, dot, part = name.rpartition(".")
    return layer + dot + _BUFFERS.get(part, part)


def _part(name: str) -> str:
    return _agreed(name).rpartition(".")[2]


def _fits(found: Mapping[str, str], own: Layout, other: Layout) -> bool:
    same = all(own[mine] == other[name] for name, mine in found.items())
    return same and len(set(found.values())) == len(own) == len(other)


def _by_name(own: Layout, other: Layout) -> dict[str, str] | None:
    mine = {_agreed(name): name for name in own}
    for said in (_agreed, lambda name: without_words(_agreed(name))):
        found = {name: mine[said(name)] for name in other if said(name) in mine}
        if _fits(found, own, other):
            return found
    return None


def _layers(names: Iterable[str]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for name in names:
        grouped.setdefault(name.rpartition(".")[0], []).append(name)
    return grouped


def _by_layer(own: Layout, other: Layout, checked: bool) -> dict[str, str] | None:
    """Layer by layer: by shape where that tells, otherwise in the order of definition or of depth."""
    mine = _layers(own)
    written = list(other)
    is_sorted = written == sorted(written)
    theirs = _layers(sorted(other, key=_natural) if is_sorted else written)

    def kind(layout: Layout, names: Iterable[str]) -> tuple[Any, ...]:
        return tuple(sorted((_part(name), layout[name]) for name in names))

    ours_by, theirs_by = _grouped(mine, own, kind), _grouped(theirs, other, kind)
    if {one: len(layers) for one, layers in ours_by.items()} != {one: len(layers) for one, layers in theirs_by.items()}:
        return None
    found: dict[str, str] = {}
    for one, layers in ours_by.items():
        pairs = list(zip(layers, theirs_by[one]))
        if is_sorted and not checked and not _are_counted(theirs_by[one]):
            raise ValueError(
                f"which of the agreed layers {', '.join(theirs_by[one])} is which of the module's {', '.join(layers)} "
                "cannot be told: all have the same shapes and other names, and the agreed ones are in the order of the "
                "alphabet. Give `names`, a dictionary from agreed names to those in the module, "
                "or use the proposer's names"
            )
        for ours, layer in pairs:
            by_part = {_part(name): name for name in mine[ours]}
            found |= {name: by_part[_part(name)] for name in theirs[layer]}
    return {name: found[name] for name in other} if _fits(found, own, other) else None


def _grouped(layers: Mapping[str, list[str]], layout: Layout, kind: Any) -> dict[Any, list[str]]:
    grouped: dict[Any, list[str]] = {}
    for layer, names in layers.items():
        grouped.setdefault(kind(layout, names), []).append(layer)
    return grouped


def _are_counted(layers: list[str]) -> bool:
    """Whether the names of these layers differ by numbers alone, which say their order."""
    return len({re.sub(r"\d+", "#", layer) for layer in layers}) == 1


def load(
    model: nn.Module, path: Any, *, names: Mapping[str, str] | None = None, shared: Shared = "all"
) -> nn.Module:
    """Loads a safetensors file that Rota exported into the equivalent module, and returns it.

    `shared` is that of the learners; with `"trainable"` the file has only what was trained. `names`
    has for each tensor of the file its name in the module, where they cannot be matched.
    """
    arrays = read_tensors(path)
    found = {name: value.shape for name, value in arrays.items() if name not in _SCALE}
    # Counters and flags that training changes are in the file under their names.
    meant = {without_words(name) for name in (found if names is None else names.values())}
    more = {name for name in buffers_of(model) if name in meant and name not in shared_of(model, shared)}
    own = shapes(model, shared, more)
    pairs = matched(own, found, candidates(model), checked=False) if names is None else covered(names, own, found)
    state = state_of(model, more)
    with torch.no_grad():
        for name, mine in pairs.items():
            put(state[mine], torch.from_numpy(np.ascontiguousarray(arrays[name])))
    return model
