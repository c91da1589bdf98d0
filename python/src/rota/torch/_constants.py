"""Buffers that training does not change, such as masks and positional tables: they are compared between
members and do not travel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase

import torch
from torch import nn

from ._state import NORMS, can_travel, state_of
from ._trial import unchanged
from ._wrappers import buffers_of, modules_of

#: How far each of two steps moves the parameters, so that a buffer that follows them shows it.
_STEP = 1e-2


class UnknownBuffer(ValueError):
    """A pattern that names no buffer."""


def candidates(model: nn.Module) -> set[str]:
    """Buffers of floats that may be constant: all but the running statistics of norm layers."""
    modules = modules_of(model)

    def may_be(name: str) -> bool:
        return not isinstance(modules[name.rpartition(".")[0]], NORMS)

    def is_one(name: str, value: torch.Tensor) -> bool:
        return not isinstance(value, nn.Parameter) and can_travel(value) and may_be(name)

    return {name for name, value in state_of(model).items() if is_one(name, value)}


def unchanged_by(model: nn.Module, names: Iterable[str], step: Callable[[], None]) -> set[str]:
    """Those of these buffers that two steps of training do not change. `step` computes gradients of a
    batch. The module is afterwards as it was before."""
    parameters = list(model.parameters())
    before = [value.detach().clone() for value in parameters]
    first = {name: buffers_of(model)[name].detach().clone() for name in names}
    try:
        with unchanged(model):
            model.train()
            for _ in range(2):
                model.zero_grad(set_to_none=True)
                step()
                with torch.no_grad():
                    for value in parameters:
                        if value.requires_grad and value.grad is not None:
                            value.add_(value.grad.sign(), alpha=-_STEP)
            now = buffers_of(model)
            return {name for name, value in first.items() if same(value, now[name])}
    finally:
        with torch.no_grad():
            for value, kept in zip(parameters, before):
                value.copy_(kept)


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether all values are the same, those that are no numbers among them."""
    return one.shape == other.shape and one.dtype == other.dtype and bool(((one == other) | ((one != one) & (other != other))).all())


def chosen(names: Iterable[str], patterns: Iterable[str]) -> set[str]:
    """The buffers that some pattern names, each pattern one at least."""
    names, found = set(names), set()
    for pattern in patterns:
        matching = {name for name in names if fnmatchcase(name, pattern)}
        if not matching:
            raise UnknownBuffer(
                f"`buffers` names {pattern!r}, and the module has no such buffer that could travel; it has "
                f"{', '.join(sorted(names)) or 'none'}"
            )
        found |= matching
    return found
