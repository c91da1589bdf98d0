"""From a module and a batch to outputs and targets: by the learner's own `forward`, or by default."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ._batches import TARGETS, rows_in, shapes_in
from ._losses import Known, functional
from ._types import Forward, Refused

HOOK = "give `forward=lambda model, batch: (outputs, targets)`"


@dataclass
class Passed:
    """What a module makes of a batch."""

    outputs: Any
    targets: Any
    #: The loss that the model computes itself, where it does.
    loss: torch.Tensor | None = None

    @property
    def rows(self) -> int:
        return rows_in(self.targets)


class Pass:
    """Gives batches to a module.

    By default the last part of a tuple has the targets, or in a dictionary one of the keys `labels`,
    `label`, `targets`, `target`, `y`; everything else is given to the module, by position or by name.
    """

    def __init__(self, model: nn.Module, forward: Forward | None, loss: Known | None, own: bool) -> None:
        """`loss` is what is known of the loss, and `own` says that it is the one that the model computes
        itself. A loss that is neither takes what the model returns as it is."""
        self._model, self._forward, self._loss, self._own = model, forward, loss, own
        #: By how many places the targets of a language model are moved; `None` where outputs and targets
        #: of a model with a loss of its own are not told apart by class.
        self.shift: int | None = None
        self._aligned = False
        called: Any = getattr(model, "_orig_mod", model)
        if isinstance(called, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            called = called.module
        try:
            self._parameters = list(inspect.signature(called.forward).parameters.values())
        except (TypeError, ValueError):  # A compiled module without a signature.
            self._parameters = []
        names = {one.name for one in self._parameters}
        #: Whether a model that computes its own loss is given the targets by name.
        self._labels = own and "labels" in names

    @property
    def is_own(self) -> bool:
        """Whether it is the learner's own `forward`."""
        return self._forward is not None

    @property
    def state(self) -> tuple[bool, int | None]:
        """What it has learned from a first batch."""
        return self._aligned, self.shift

    @state.setter
    def state(self, value: tuple[bool, int | None]) -> None:
        self._aligned, self.shift = value

    def __call__(self, batch: Any) -> Passed:
        if self._forward is not None:
            found: Any = self._forward(self._model, batch)
            if not isinstance(found, tuple) or len(found) != 2:
                raise Refused(f"`forward` gave {shapes_in(found)}: it must return two things, outputs and targets")
            return Passed(*found)
        arguments, named, targets = self._split(batch)
        found = self._model(*arguments, **named)
        if type(found) is torch.Tensor:
            return Passed(found, targets)
        loss = _part(found, "loss")
        outputs = self._outputs(found)
        tensors = isinstance(outputs, torch.Tensor) and isinstance(targets, torch.Tensor)
        if loss is None or not tensors or not (self._own or self._loss is not None):
            return Passed(outputs, targets, loss)
        return self._align(outputs, targets, loss)

    # What goes in.

    def _split(self, batch: Any) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
        if type(batch) is tuple and len(batch) == 2 and type(batch[0]) is torch.Tensor:
            # As most batches are.
            return batch[:1], {"labels": batch[1]} if self._labels else {}, batch[1]
        if isinstance(batch, Mapping):
            return self._by_name(dict(batch))
        if not isinstance(batch, (tuple, list)) or len(batch) < 2:
            raise Refused(
                f"a batch is {shapes_in(batch)}, without targets: give pairs (x, y), or {HOOK}"
            )
        inputs, targets = batch[:-1], batch[-1]
        if len(inputs) > 1:
            return self._by_place(tuple(inputs), "a batch has", len(batch)), {}, targets
        first = inputs[0]
        if isinstance(first, Mapping) and not self._is_one(first):
            return self._by_name(dict(first) | {TARGETS[0]: targets})
        if isinstance(first, (tuple, list)) and self._required() != 1:
            return self._by_place(tuple(first), "the inputs of a batch have", len(first)), {}, targets
        return (first,), {"labels": targets} if self._labels else {}, targets

    def _required(self) -> int:
        return len([one for one in self._places() if one.default is one.empty])

    def _places(self) -> list[inspect.Parameter]:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return [one for one in self._parameters if one.kind in kinds]

    def _by_place(self, inputs: tuple[Any, ...], what: str, parts: int) -> tuple[Any, ...]:
        """As many inputs as the module needs; whether another part is an input, a mask or a weight of
        rows cannot be told."""
        if len(inputs) != self._required() and len(inputs) != 1:
            names = ", ".join(str(one) for one in self._parameters)
            raise Refused(
                f"{what} {parts} parts, and the module is called with ({names}): which part is what cannot be told; {HOOK}"
            )
        return inputs

    def _is_one(self, inputs: Mapping[Any, Any]) -> bool:
        """Whether the module takes a whole dictionary."""
        names = {one.name for one in self._parameters}
        return self._required() == 1 and not self._takes_any() and not (set(inputs) & names)

    def _takes_any(self) -> bool:
        return any(one.kind is one.VAR_KEYWORD for one in self._parameters)

    def _by_name(self, batch: dict[Any, Any]) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
        found = [key for key in TARGETS if key in batch]
        if len(found) != 1:
            raise Refused(
                f"a batch has the keys {sorted(map(str, batch))}, {'none' if not found else 'more than one'} of them for "
                f"the targets ({', '.join(TARGETS)}): {HOOK}"
            )
        targets = batch.pop(found[0])
        inputs = dict(batch)
        various = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        names = {one.name for one in self._parameters if one.kind not in various}
        # A wrapper hands on whatever it is given.
        wraps = self._takes_any() and not names
        takes = next((name for name in ("labels", found[0]) if name in names), None)
        takes = takes or (found[0] if wraps and self._own else None)
        if takes is not None:
            # A model that computes its own loss.
            batch[takes] = targets
        if wraps or self._takes_any() and set(inputs) & names or set(batch) <= names:
            return (), batch, targets
        if self._required() == 1 and takes is None and not (set(inputs) & names):
            # One input, or a dictionary of several.
            return (next(iter(inputs.values())) if len(inputs) == 1 else inputs,), {}, targets
        unknown = sorted(map(str, set(batch) - names))
        raise Refused(
            f"a batch has the keys {unknown}, which the module is not called with: leave them out of the batch, or {HOOK}"
        )

    # What comes out.

    def _outputs(self, found: Any) -> Any:
        if isinstance(found, torch.Tensor):
            return found
        for name in ("logits", "out"):
            outputs = _part(found, name)
            if not isinstance(outputs, torch.Tensor):
                continue
            more = [one for one in ("aux", "aux_logits") if isinstance(_part(found, one), torch.Tensor)]
            if more and self._model.training:
                raise Refused(
                    f"the module returns {name!r} and {more[0]!r}, of which the loss would see one: {HOOK}"
                )
            return outputs
        if self._loss is not None:
            raise Refused(f"the module returns {shapes_in(found)} and the loss takes one tensor: {HOOK}")
        return found

    def _align(self, outputs: torch.Tensor, targets: torch.Tensor, loss: torch.Tensor) -> Passed:
        """Outputs with classes in dimension 1, as the losses of PyTorch take them, and the targets of
        the same places: how, is what gives the loss that the model computes itself."""
        # A batch without a target that counts tells nothing.
        if not self._aligned and bool((targets != -100).any()):
            self._aligned, self.shift = True, _shift_of(self._model, outputs, targets, loss)
            if self.shift is None and self._loss is not None and self._loss.family == "classes" and outputs.ndim > 2:
                raise Refused(
                    "the loss that the model computes itself is no cross-entropy of its `logits` and the targets, so "
                    f"they cannot be put side by side: leave out `loss`, or {HOOK}"
                )
        if self.shift is None:
            return Passed(outputs, targets, loss)
        return Passed(*_classes_first(outputs, targets, self.shift), loss)


def _part(found: Any, name: str) -> Any:
    if isinstance(found, torch.Tensor):
        return None
    return found.get(name) if isinstance(found, Mapping) else getattr(found, name, None)


def _classes_first(outputs: torch.Tensor, targets: torch.Tensor, shift: int) -> tuple[torch.Tensor, torch.Tensor]:
    if outputs.ndim <= 2:
        return outputs, targets
    if shift:
        outputs, targets = outputs[:, :-shift], targets[:, shift:]
    return outputs.movedim(-1, 1), targets


def _shift_of(model: nn.Module, outputs: torch.Tensor, targets: torch.Tensor, loss: torch.Tensor) -> int | None:
    """Whether the loss is a cross-entropy with the target at the same place (0) or the next one (1)."""
    if targets.is_floating_point() or outputs.ndim < 2 or outputs.shape[:-1] != targets.shape or outputs.shape[-1] < 2:
        return None
    gaps: dict[int, float] = {}
    with torch.no_grad():
        for shift in (0, 1) if outputs.ndim == 3 and outputs.shape[1] > 1 else (0,):
            own = functional.cross_entropy(*_by_class(*_classes_first(outputs, targets, shift)))
            gaps[shift] = abs(float(own) - float(loss))
    near = [shift for shift, gap in gaps.items() if gap <= 1e-4 * max(1.0, abs(float(loss)))]
    if len(near) > 1 and abs(gaps[0] - gaps[1]) < 1e-6:
        # All classes are equally likely before the training: the name tells.
        names = [type(one).__name__ for one in model.modules()]
        return int(any("CausalLM" in name or "LMHead" in name for name in names))
    return min(near, key=lambda shift: gaps[shift]) if near else None


def _by_class(outputs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return outputs.float(), targets.long()
