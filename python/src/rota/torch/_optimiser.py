"""The agreed optimiser, its state from round to round, and what strategies add to gradients."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from .._learner import Modifier, Training
from .._tensors import Arrays
from ._types import array, tensor

Trained = Mapping[str, nn.Parameter]


def made(trained: Trained, training: Training, keep: str | None) -> torch.optim.Optimizer:
    """The agreed optimiser of these parameters; `keep` is the one whose state goes on."""
    values = {id(value): value for value in trained.values()}
    decayed = [value for value in values.values() if value.ndim >= 2]
    others = [value for value in values.values() if value.ndim < 2]
    groups = [{"params": some, "weight_decay": _decay(some[0], training)} for some in (decayed, others) if some]
    if keep not in (None, training.optimiser):
        raise ValueError(f"the agreed optimiser is {training.optimiser!r}, this learner keeps the state of {keep!r}")
    if training.optimiser == "sgd":
        return torch.optim.SGD(groups, lr=training.rate, momentum=training.momentum)
    if training.optimiser == "adam":
        return torch.optim.Adam(groups, lr=training.rate)
    raise ValueError(f"there is no optimiser {training.optimiser!r} here")


def _decay(value: torch.Tensor, training: Training) -> float:
    """Biases, and scales of norm layers, are not decayed."""
    return training.weight_decay if value.ndim >= 2 else 0.0


class Descent:
    """SGD without momentum on the processor, as PyTorch computes it. An optimiser of PyTorch loads its compiler, which
    takes seconds and memory once, and its hooks take longer than the step of a small model."""

    def __init__(self, trained: Trained, training: Training) -> None:
        self._rate = training.rate
        self._values = [(value, _decay(value, training)) for value in {id(value): value for value in trained.values()}.values()]
        self._decays = any(decay for _, decay in self._values)
        self._still = torch.no_grad()

    def zero_grad(self) -> None:
        """Takes the gradients away."""
        for value, _ in self._values:
            value.grad = None

    def step(self) -> None:
        """A step by the gradients."""
        values: list[torch.Tensor] = []
        gradients: list[torch.Tensor] = []
        decays: list[float] = []
        for value, decay in self._values:
            if (gradient := value.grad) is not None:
                values.append(value)
                gradients.append(gradient)
                decays.append(decay)
        if not values:
            return
        with self._still:
            if self._decays:
                gradients = [one.add(value, alpha=decay) if decay else one for value, one, decay in zip(values, gradients, decays)]
            # The same additions one after another, without a call of Python for each.
            torch._foreach_add_(values, gradients, alpha=-self._rate)


def is_descent(trained: Trained, training: Training, keep: str | None) -> bool:
    """Whether the agreed optimiser is `Descent`: nothing goes on from training to training, and nobody else is told of
    its steps."""
    if training.optimiser != "sgd" or training.momentum or keep is not None:
        return False
    module = sys.modules[torch.optim.Optimizer.__module__]
    hooks = (getattr(module, f"_global_optimizer_{when}_hooks", None) for when in ("pre", "post"))
    return all(value.is_cpu for value in trained.values()) and not any(hooks)


def restore(optimiser: torch.optim.Optimizer, trained: Trained, personal: Arrays, keep: str | None) -> None:
    """Gives the optimiser the state that it had after the training before."""
    if keep is None or not personal:
        return
    for name, value in trained.items():
        kept = {
            part: tensor(personal[f"{name}.{part}"]).to(value.device, value.dtype, copy=True)
            for part in ("momentum", "first", "second")
            if f"{name}.{part}" in personal
        }
        if keep == "sgd":
            optimiser.state[value] = {"momentum_buffer": kept["momentum"]}
        else:
            step = torch.tensor(float(personal["step"][0]))
            optimiser.state[value] = {"step": step, "exp_avg": kept["first"], "exp_avg_sq": kept["second"]}


def state_of_optimiser(optimiser: torch.optim.Optimizer, trained: Trained, keep: str | None) -> dict[str, Any]:
    """The state of the optimiser, as personal state."""
    kept: dict[str, Any] = {}
    if keep is None:
        return kept
    names = {"sgd": {"momentum_buffer": "momentum"}, "adam": {"exp_avg": "first", "exp_avg_sq": "second"}}
    for name, value in trained.items():
        state = optimiser.state.get(value, {})
        for theirs, part in names[keep].items():
            found = state.get(theirs)
            kept[f"{name}.{part}"] = array(torch.zeros_like(value) if found is None else found)
        if keep == "adam":
            kept["step"] = np.array([max(float(state.get("step", 0.0)), float(kept.get("step", [0.0])[0]))])
    return kept


Terms = dict[str, tuple[Any, Any]]


def terms_of(trained: Trained, modifier: Modifier | None, device: torch.device) -> Terms:
    """Anchor and shift of each parameter, on the device."""
    if modifier is None:
        return {}

    def on_device(arrays: Arrays, name: str) -> Any:
        found = arrays.get(name)
        return None if found is None else tensor(found).to(device)

    return {name: (on_device(modifier.anchor, name), on_device(modifier.shift, name)) for name in trained}


def modify(trained: Trained, modifier: Modifier | None, terms: Terms) -> None:
    """Adds to the gradients what the strategy asks for."""
    if modifier is None:
        return
    for name, value in trained.items():
        if name in modifier.frozen:
            value.grad = None
        elif value.grad is not None:
            anchor, shift = terms[name]
            if anchor is not None and modifier.mu:
                value.grad.add_(value.detach() - anchor, alpha=modifier.mu)
            if shift is not None:
                value.grad.add_(shift)
