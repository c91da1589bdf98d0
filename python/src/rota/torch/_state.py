"""The tensors of a module that take part in a federation: which ones, and their roles."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import nn

from ._types import Refused, Shared
from ._wrappers import modules_of, plain_name

#: Layers with running statistics.
NORMS = (nn.modules.batchnorm._NormBase,)


def state_of(model: nn.Module, more: Collection[str] = ()) -> dict[str, torch.Tensor]:
    """Parameters and buffers that are floats, by their names without wrappers and in the order of their
    definition: counters of batches are not averaged. `more` names other buffers that travel."""
    # Once for all of them: this is asked for in every training.
    plain = plain_name(model)
    found: dict[str, torch.Tensor] = {plain(name): value for name, value in model.named_parameters()}
    buffers = list(model.named_buffers())
    kept = {plain(name) for name in model.state_dict()} if buffers else set()
    for name, value in buffers:
        name = plain(name)
        if name in more or value.is_floating_point() and name in kept:
            found[name] = value
    return found


def _is_trainable(module: nn.Module) -> bool:
    """Whether the module itself, without those inside of it, has parameters that are trained."""
    return any(value.requires_grad for value in module.parameters(recurse=False))


def can_travel(value: torch.Tensor) -> bool:
    """Whether 32-bit floats have its values as they are. What else there is stays at the silo."""
    return value.is_floating_point() and value.dtype != torch.float64


def put(value: torch.Tensor, given: torch.Tensor) -> None:
    """Writes a mean that has travelled into a tensor: that of counters is rounded, and a flag is set if it is set at any
    silo."""
    whole = not (value.is_floating_point() or value.is_complex() or value.dtype == torch.bool)
    given = given.round() if whole else given
    value.copy_(given if given.shape == value.shape else given.reshape(value.shape))


#: Beyond this, 32-bit floats skip whole numbers.
_WHOLE = 1 << 24


def check_whole(name: str, value: torch.Tensor) -> None:
    """Refuses a counter that 32-bit floats do not have."""
    if value.is_floating_point() or value.dtype == torch.bool or not value.numel():
        return
    if int(value.abs().max()) > _WHOLE:
        raise Refused(
            f"the buffer {name!r} is of whole numbers above 2^24, which models, that travel as 32-bit floats, do not have: "
            "keep it as a float, or count in larger units"
        )


def exact(value: torch.Tensor) -> torch.Tensor:
    """Values that 32-bit floats have as they are: those of the tensor, or the bytes of its numbers."""
    value = value.detach().cpu().contiguous()
    if can_travel(value):
        return value
    value = torch.view_as_real(value) if value.is_complex() else value
    return value.reshape(*value.shape, 1).view(torch.uint8)


def shared_of(model: nn.Module, shared: Shared, more: Collection[str] = ()) -> dict[str, torch.Tensor]:
    """The part of the state that travels: all of it, or the parameters that are trained, and the
    buffers of the modules that have such parameters themselves; and the buffers that `more` names."""
    state = {name: value for name, value in state_of(model, more).items() if can_travel(value) or name in more}
    if shared == "all":
        return state

    modules = modules_of(model)

    def travels(name: str, value: torch.Tensor) -> bool:
        if isinstance(value, nn.Parameter):
            return value.requires_grad
        return name in more or _is_trainable(modules[name.rpartition(".")[0]])

    found = {name: value for name, value in state.items() if travels(name, value)}
    if not any(isinstance(value, nn.Parameter) for value in found.values()):
        raise ValueError('nothing is trained: with `shared="trainable"` some parameters must require gradients')
    return found


def shapes(model: nn.Module, shared: Shared, more: Collection[str] = ()) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in shared_of(model, shared, more).items()}


def role(name: str, value: torch.Tensor, parameters: set[str]) -> Any:
    if name not in parameters:
        return "buffer"
    # Biases, and scales of norm layers, are not decayed.
    return "weight" if value.ndim >= 2 else "bias"
