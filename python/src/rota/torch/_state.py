"""The tensors of a module that take part in a federation: which ones, their roles, and how they were drawn."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from ._types import Shared

#: Layers with running statistics.
NORMS = (nn.modules.batchnorm._NormBase,)


def state_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers that are floats: counters of batches are not averaged."""
    parameters = dict(model.named_parameters())
    buffers = {name: value for name, value in model.named_buffers() if value.is_floating_point()}
    kept = set(model.state_dict())
    return parameters | {name: value for name, value in buffers.items() if name in kept}


def _is_trainable(module: nn.Module) -> bool:
    """Whether the module itself, without those inside of it, has parameters that are trained."""
    return any(value.requires_grad for value in module.parameters(recurse=False))


def can_travel(value: torch.Tensor) -> bool:
    """Whether 32-bit floats have its values as they are. What else there is stays at the silo."""
    return value.is_floating_point() and value.dtype != torch.float64


def exact(value: torch.Tensor) -> torch.Tensor:
    """Values that 32-bit floats have as they are: those of the tensor, or the bytes of its numbers."""
    value = value.detach().cpu().contiguous()
    if can_travel(value):
        return value
    value = torch.view_as_real(value) if value.is_complex() else value
    return value.reshape(*value.shape, 1).view(torch.uint8)


def shared_of(model: nn.Module, shared: Shared) -> dict[str, torch.Tensor]:
    """The part of the state that travels: all of it, or the parameters that are trained, and the
    buffers of the modules that have such parameters themselves."""
    state = {name: value for name, value in state_of(model).items() if can_travel(value)}
    if shared == "all":
        return state

    def travels(name: str, value: torch.Tensor) -> bool:
        if isinstance(value, nn.Parameter):
            return value.requires_grad
        return _is_trainable(model.get_submodule(name.rpartition(".")[0]))

    found = {name: value for name, value in state.items() if travels(name, value)}
    if not any(isinstance(value, nn.Parameter) for value in found.values()):
        raise ValueError('nothing is trained: with `shared="trainable"` some parameters must require gradients')
    return found


def shapes(model: nn.Module, shared: Shared) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in shared_of(model, shared).items()}


def role(name: str, value: torch.Tensor, parameters: set[str]) -> Any:
    if name not in parameters:
        return "buffer"
    # Biases, and scales of norm layers, are not decayed.
    return "weight" if value.ndim >= 2 else "bias"


def initial(model: nn.Module, name: str, value: torch.Tensor) -> float | dict[str, float]:
    """How the tensor was drawn: as PyTorch draws dense layers and convolutions by default, or
    uniform with the same deviation as the values that it has."""
    value = value.detach()
    if value.numel() == 0 or bool((value == value.flatten()[0]).all()):
        return float(value.flatten()[0]) if value.numel() else 0.0
    layer = model.get_submodule(name.rpartition(".")[0])
    weight = getattr(layer, "weight", None)
    if isinstance(weight, torch.Tensor) and weight.ndim >= 2:
        bound = 1 / math.sqrt(weight[0].numel())
        if float(value.abs().max()) <= bound * (1 + 1e-6):
            return {"uniform": bound}
    return {"uniform": math.sqrt(3) * float(value.std(unbiased=False))}
