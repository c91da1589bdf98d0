"""One batch of each part, tried before the first round.

What fails or is refused in it would fail in every round, or would be found after all of them. The module,
its buffers and all generators are as before afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import nn

from ._batches import leaves, moved, picked, rows_of_batch, shapes_in
from ._checks import check_meaning, check_own_loss, check_shapes, check_trained, elsewhere
from ._forward import Pass, Passed
from ._losses import Known
from ._measure import batch_loss, counts
from ._state import can_travel
from ._types import Loss, Refused

#: What PyTorch says of one row under batch normalisation.
ONE_ROW = "more than 1 value per channel"


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Puts back buffers, gradients and modes of the module."""
    modes = {module: module.training for module in model.modules()}
    buffers = [
        (module, name, value, value.detach().clone())
        for module in model.modules()
        for name, value in module._buffers.items()
        if value is not None
    ]
    gradients = [(value, value.grad) for value in model.parameters()]
    for parameter, _ in gradients:
        parameter.grad = None
    try:
        yield
    finally:
        with torch.no_grad():
            for module, name, value, kept in buffers:
                value.copy_(kept)
                module._buffers[name] = value
        for parameter, gradient in gradients:
            parameter.grad = gradient
        for module, mode in modes.items():
            module.training = mode


class Trial:
    """Tries batches of a learner."""

    def __init__(
        self, model: nn.Module, passes: Pass, loss: Loss | None, known: Known | None, device: torch.device
    ) -> None:
        self._model, self._pass, self._loss, self._known, self._device = model, passes, loss, known, device

    def measured(self, part: str, batch: Any) -> Passed:
        """Measures a batch, and returns what the module makes of it."""
        with unchanged(self._model), torch.no_grad(), _said(part, batch):
            self._model.eval()
            passed = self._pass(moved(batch, self._device))
            self._check(passed)
            if self._loss is not None and self._known is None:
                check_own_loss(self._loss, passed.outputs, passed.targets)
            batch_loss(self._loss, passed)
            return passed

    def trained(self, part: str, batch: Any, still: Sequence[nn.Module]) -> None:
        """Computes the gradients of a batch; `still` are the modules that measure while others train."""
        with unchanged(self._model), _said(part, batch):
            self._model.train()
            for module in still:
                module.eval()
            before = {name: value.clone() for name, value in self._model.named_buffers() if not can_travel(value)}
            named = self._loss.named_buffers() if isinstance(self._loss, nn.Module) else ()
            memory = {name: value.clone() for name, value in named}
            given = moved(batch, self._device)
            passed = self._pass(given)
            self._check(passed)
            loss = batch_loss(self._loss, passed)
            if not loss.requires_grad:
                raise Refused("the loss does not depend on any parameter that is trained: look for detach() or no_grad()")
            if others := check_trained(loss, self._model, given):
                again = check_trained(batch_loss(self._loss, self._pass(given)), self._model, given)
                if both := others.keys() & again.keys():
                    raise Refused(elsewhere(others[min(both)]))
            if counts(self._loss, self._known, self._pass.shift is not None, passed) > 0 and not math.isfinite(float(loss.detach())):
                raise Refused(
                    f"the loss is {float(loss.detach())} before any training: look for missing values among the rows, "
                    "and for logarithms and divisions in the loss"
                )
            loss.backward()  # type: ignore[no-untyped-call]
            for name, kept in memory.items():
                if not torch.equal(dict(cast(nn.Module, self._loss).named_buffers())[name], kept):
                    raise Refused(
                        f"training changes the buffer {name!r} of `loss`, which would not travel with the model and go on "
                        "from one training to the next: make the loss a part of `model`"
                    )
            for name, value in self._model.named_buffers():
                # Counters of integers are meant to begin anew in every training.
                if name not in before or not (value.is_floating_point() or value.is_complex()):
                    continue
                if not torch.equal(value.cpu(), before[name].cpu()):
                    raise Refused(
                        f"training changes the buffer {name!r}, which is {str(value.dtype).partition('.')[2]} and would "
                        "not travel with the model: keep it as 32-bit floats"
                    )

    def needs_two(self, batch: Any, still: Sequence[nn.Module]) -> bool | None:
        """Whether a training fails with one row, as that of batch normalisation may; `None` where no row can be taken
        from the batch."""
        rows = rows_of_batch(batch)
        if rows is None or not all(isinstance(one, torch.Tensor) and one.ndim and len(one) == rows for one in leaves(batch)):
            return None
        with unchanged(self._model), torch.no_grad():
            self._model.train()
            for module in still:
                module.eval()
            try:
                self._pass(moved(picked(batch, torch.arange(1)), self._device))
            except Exception as error:
                return ONE_ROW in str(error)
            return False

    def _check(self, passed: Passed) -> None:
        check_shapes(self._known, passed.outputs, passed.targets)
        check_meaning(self._known, passed.outputs, passed.targets)
        if passed.rows == 0:
            raise Refused("a batch has no rows")


@contextmanager
def _said(part: str, batch: Any) -> Iterator[None]:
    """What went wrong, with the part and the batch."""
    where = f"one batch of `{part}`, {shapes_in(batch)}, was tried before the first round"
    try:
        yield
    except Refused as error:
        raise Refused(f"{where}: {error}") from error.__cause__
    except Exception as error:
        hint = ""
        if ONE_ROW in str(error) and rows_of_batch(batch) == 1:
            hint = "; batch normalisation cannot train on batches of one row: agree on larger ones"
        raise ValueError(f"{where}, and failed: {type(error).__name__}: {error}{hint}") from error
