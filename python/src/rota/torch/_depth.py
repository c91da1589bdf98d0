"""The order in which a module applies its tensors, from its input to its output, and which of its layers normalise."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from ._wrappers import modules_of

#: Layers of PyTorch that normalise.
_NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, *((nn.RMSNorm,) if hasattr(nn, "RMSNorm") else ()))
#: How others call theirs: `LlamaRMSNorm`, `LayerNorm2d`, `ActNorm`. What normalises weights, such as `NormedLinear`, is
#: not among them.
_NAMED = re.compile(r"Norm(\d+d)?$|(Batch|Layer|Group|Instance|RMS)Norm")


class _Uses(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is in force, the first use of every tensor is noted, by where its values lie."""

    def __init__(self, places: Iterable[int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._wanted, self.order = set(places), {}  # type: ignore[var-annotated]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # To skip the compiler here, PyTorch would load it.
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for one in tree_flatten((args, kwargs or {}))[0]:
            if isinstance(one, torch.Tensor) and (place := _place(one)) in self._wanted:
                self.order.setdefault(place, len(self.order))
        return func(*args, **(kwargs or {}))


def _place(value: torch.Tensor) -> int:
    try:
        return value.data_ptr()
    except RuntimeError:  # Tensors without memory.
        return 0


def by_depth(model: nn.Module, tensors: Mapping[str, torch.Tensor], forward: Callable[[], torch.Tensor]) -> list[str] | None:
    """The names of these tensors in the order of their first use in a pass, whose loss `forward` gives; its gradients
    are left in the parameters. Tensors that the pass does not use, and parameters that the loss does not depend on, come
    first, in the order of their definition: none of them is the last layer. `None` where the order cannot be seen."""
    places = {name: _place(value) for name, value in tensors.items() if value.numel()}
    uses = _Uses(place for place in places.values() if place)
    try:
        with uses, _eager():
            loss = forward()
    except Exception:  # Kinds of tensors that do not go with a trace.
        return None
    loss.backward()  # type: ignore[no-untyped-call]
    depth = {name: uses.order.get(place, -1) for name, place in places.items()}
    trained = {name for name, value in tensors.items() if isinstance(value, nn.Parameter) and value.requires_grad}
    if not any(depth.get(name, -1) >= 0 for name in trained):
        return None
    for name in trained:
        if tensors[name].grad is None:
            depth[name] = -1
    parameters = [name for name, value in tensors.items() if isinstance(value, nn.Parameter)]
    # Buffers belong to no layer.
    return sorted(parameters, key=lambda name: depth.get(name, -1)) + [name for name in tensors if name not in parameters]


def _eager() -> Any:
    """Compiled modules run as they are written, where this version of PyTorch can do that."""
    if "torch._dynamo" not in sys.modules:
        # Nothing is compiled, and to load the compiler takes seconds.
        return nullcontext()
    stance = getattr(getattr(torch, "compiler", None), "set_stance", None)
    return stance("force_eager") if stance is not None else nullcontext()


def norms_of(model: nn.Module, names: Iterable[str]) -> dict[str, bool]:
    """For every tensor whether its layer normalises, by the type of the layer."""
    modules = modules_of(model)
    found: dict[str, bool] = {}
    for name in names:
        module = modules.get(name.rpartition(".")[0])
        found[name] = module is not None and _is_norm(module)
    return found


def _is_norm(module: nn.Module) -> bool:
    if isinstance(module, _NORMS):
        return True
    # `torch.nn.utils` normalises weights.
    if not _NAMED.search(type(module).__name__) or type(module).__module__.startswith("torch.nn.utils"):
        return False
    # A scale and a shift for each channel; a dense layer has more.
    own = [*module._parameters.values(), *module._buffers.values()]
    return all(value is None or sum(side > 1 for side in value.shape) <= 1 for value in own) and not module._modules


def looks_like_norm(name: str) -> bool:
    """Whether the name of a tensor's layer looks like that of a layer that normalises."""
    own = name.rpartition(".")[0].rpartition(".")[2]
    return "norm" in own or own.startswith("bn")
