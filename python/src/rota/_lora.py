"""Low-rank adapters (LoRA) around the dense layers of a PyTorch model."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

import torch
from torch import nn

Model = TypeVar("Model", bound=nn.Module)


class LoRA(nn.Module):
    """A dense layer with a low-rank adapter: it has the weight `W + (alpha / rank) · B A`, where only
    `A` (rank × inputs) and `B` (outputs × rank) are trained (Hu et al. 2022, eq. (3)).

    `A` is drawn as PyTorch draws the weights of dense layers, and `B` is 0, so that the layer computes
    what it computed without the adapter.
    """

    def __init__(
        self, base: nn.Linear, rank: int, alpha: float, draw: torch.Generator, freeze_a: bool = False
    ) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.in_features, self.out_features = base.in_features, base.out_features
        self.scale = alpha / rank
        device, bound = base.weight.device, 1 / math.sqrt(base.in_features)
        first = bound * (2 * torch.rand(rank, base.in_features, generator=draw) - 1)
        self.lora_A = nn.Parameter(first.to(device), requires_grad=not freeze_a)
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank, device=device, dtype=torch.float32))

    # Some modules, such as nn.MultiheadAttention, take the weight of a layer instead of calling it.
    @property
    def weight(self) -> torch.Tensor:
        """The weight with the adapter in it."""
        return self.base.weight + (self.scale * (self.lora_B @ self.lora_A)).to(self.base.weight.dtype)

    @property
    def bias(self) -> torch.Tensor | None:
        """The bias of the dense layer."""
        return self.base.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        plain: torch.Tensor = self.base(x)
        low = nn.functional.linear(nn.functional.linear(x.to(self.lora_A.dtype), self.lora_A), self.lora_B)
        return plain + (self.scale * low).to(plain.dtype)

    def merged(self) -> nn.Linear:
        """The dense layer with the adapter in its weight; the adapter is used up."""
        with torch.no_grad():
            self.base.weight.copy_(self.weight)
        return self.base


def lora(
    model: Model,
    rank: int = 8,
    alpha: float = 16.0,
    layers: Sequence[str] = ("*",),
    *,
    freeze_a: bool = False,
    seed: int = 0,
) -> Model:
    """Freezes a model and puts trainable low-rank adapters around its dense layers.

    Args:
        model: The model, which is changed in place.
        rank: Rank of the adapters; an adapter of a layer has `rank · (inputs + outputs)` numbers.
        alpha: The adapters are multiplied by `alpha / rank`.
        layers: Patterns of the names that the layers have in `model.named_modules()`, such as
            `["*.attn.*"]`; all dense layers by default. `*` stands for any characters.
        freeze_a: Only `B` is trained, and `A` stays as it was drawn (FFA-LoRA, Sun et al. 2024). The
            mean of such adapters is exactly the mean of the layers.
        seed: Decides what `A` is drawn as.

    Returns the model, whose outputs are the same as before. Raises `ValueError` where no dense layer
    has such a name, or the model has adapters already.
    """
    if rank < 1:
        raise ValueError(f"`rank` is {rank}, it must be at least 1")
    if any(isinstance(module, LoRA) for module in model.modules()):
        raise ValueError("the model has adapters already: merge them first, with `rota.torch.merged`")
    dense = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    patterns = [layers] if isinstance(layers, str) else layers
    chosen = {name for name in dense if any(fnmatchcase(name, pattern) for pattern in patterns)}
    if not chosen:
        raise ValueError(f"no dense layer has a name like {list(patterns)}; there are {dense}")
    model.requires_grad_(False)
    places = {id(model.get_submodule(name)) for name in chosen}
    draw = torch.Generator().manual_seed(seed)

    def adapted(module: nn.Module) -> nn.Module | None:
        if not isinstance(module, nn.Linear) or id(module) not in places:
            return None
        return LoRA(module, rank, alpha, draw, freeze_a)

    return _replaced(model, adapted)


def merged(model: Model) -> Model:
    """A copy of a model with adapters as a plain model: the same outputs, and the modules and names of
    tensors that it had before `lora`. All of its parameters may be trained again."""
    plain = copy.deepcopy(model)
    plain = _replaced(plain, lambda module: module.merged() if isinstance(module, LoRA) else None)
    return plain.requires_grad_(True)


def _replaced(model: Model, new: Callable[[nn.Module], nn.Module | None]) -> Model:
    """The model with modules in place of others; a module that is in several places stays one."""
    made: dict[int, nn.Module] = {}
    places = dict(model.named_modules(remove_duplicate=False))
    for name, module in places.items():
        instead = made.get(id(module)) or new(module)
        if instead is None:
            continue
        made[id(module)] = instead
        if not name:
            return instead  # type: ignore[return-value]
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, instead)
    return model
