"""What is found out about a module before its first round, by a few passes that leave no trace: which buffers stay
where they are, which ones travel besides those of floats, and in which order its tensors are applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ._constants import candidates, chosen, unchanged_by
from ._depth import by_depth
from ._state import NORMS, can_travel, check_whole, shared_of, state_of
from ._trial import unchanged
from ._types import Refused, Shared
from ._wrappers import buffers_of, modules_of, parameters_of


@dataclass
class Looked:
    """What was found out."""

    #: Buffers of floats that training does not change.
    constant: set[str] = field(default_factory=set)
    #: Buffers of other kinds, or outside of `state_dict`, that training changes: they travel, too.
    moving: set[str] = field(default_factory=set)
    #: All other ones, which training must not change.
    others: set[str] = field(default_factory=set)
    #: Names in the order of depth; `None` where it is not known.
    order: list[str] | None = None


def _others(model: nn.Module, shared: Shared) -> set[str]:
    """Buffers that do not travel by themselves: whole numbers, flags, those outside of `state_dict`. Running statistics
    are not among them, nor counters of batches where nothing depends on them, nor what frozen modules have, which is
    put back after every training."""
    own, modules, found = set(shared_of(model, shared)), modules_of(model), set()
    for name in buffers_of(model):
        owner, _, part = name.rpartition(".")
        module = modules[owner]
        statistics = isinstance(module, NORMS) and part in ("running_mean", "running_var", "num_batches_tracked")
        counts = part == "num_batches_tracked" and getattr(module, "momentum", 0.1) is None
        frozen = shared == "trainable" and not any(value.requires_grad for value in module.parameters())
        if name not in own and not frozen and (counts or not statistics):
            found.add(name)
    return found


def look(model: nn.Module, shared: Shared, buffers: Sequence[str], step: Callable[[], torch.Tensor] | None) -> Looked:
    """Looks at a module. `step` gives the loss of a batch; without it nothing is tried."""
    floats, others = candidates(model) & set(shared_of(model, shared)), _others(model, shared)
    named = chosen(floats | others, buffers)
    if step is None:
        return Looked(moving=named & others, others=others - named)
    _check_first_pass(model, step)

    def backward() -> None:
        step().backward()  # type: ignore[no-untyped-call]

    still: set[str] = unchanged_by(model, floats | others, backward) if floats | others else set()
    tensors = buffers_of(model)
    # What cannot travel is refused by name in the trial.
    changed = {name for name in others - still if can_travel(tensors[name]) or not _is_wide(tensors[name])}
    moving = changed | named & others
    for name in moving:
        check_whole(name, tensors[name])
    with unchanged(model):
        model.train()
        model.zero_grad(set_to_none=True)
        order = by_depth(model, state_of(model, moving), step)
    return Looked((floats & still) - named, moving, others - moving, order)


def _is_wide(value: torch.Tensor) -> bool:
    """Whether 32-bit floats do not have its values."""
    return value.is_complex() or value.dtype == torch.float64


def _check_first_pass(model: nn.Module, step: Callable[[], Any]) -> None:
    """Refuses parameters and buffers that a first pass makes: they would be neither trained nor shared."""
    before = {name: id(value) for name, value in (parameters_of(model) | buffers_of(model)).items()}
    with unchanged(model):
        model.train()
        step()
        for name in parameters_of(model):
            if name not in before:
                raise Refused(
                    f"the first pass makes the parameter {name!r}, which the model did not have before, so that it would be "
                    "neither trained nor shared: call the model once on a batch, model(x), before it is given to the learner"
                )
        for name in buffers_of(model):
            if name not in before:
                raise Refused(
                    f"the first pass makes the buffer {name!r}, which the model did not have before: call the model once on "
                    "a batch, model(x), before it is given to the learner"
                )
