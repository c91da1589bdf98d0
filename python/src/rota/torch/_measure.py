"""Loss and metrics of a model on a part of the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .._learner import Outputs, check_finite, numbers
from .._notes import note
from ._forward import Passed
from ._losses import Known
from ._types import Loss, Metrics, Refused, wide


def batch_loss(loss: Loss | None, passed: Passed) -> torch.Tensor:
    """The loss of a batch: the learner's, or the one that the model computes itself."""
    if loss is None:
        if passed.loss is None:
            raise Refused("no loss: give `loss`, or a model that returns its own beside its outputs")
        found = passed.loss
    else:
        found = loss(passed.outputs, passed.targets)
    if not isinstance(found, torch.Tensor) or found.numel() != 1:
        shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        raise Refused(f"the loss of a batch is {shape}, it must be one number: the mean over its rows")
    return found.reshape(()) if found.ndim else found


def counts(loss: Loss | None, known: Known | None, by_class: bool, passed: Passed) -> float:
    """What the loss of a batch is the mean over: for one of PyTorch, and a cross-entropy that the model
    computes itself, the targets that count; rows otherwise."""
    if known is not None:
        return known.counts(passed.outputs, passed.targets)
    if loss is None and by_class:
        return float((passed.targets != -100).sum())
    return float(passed.rows)


class Gathered:
    """Tensors of batches one after another in one memory, which is not held twice."""

    def __init__(self, rows: int) -> None:
        self._expected, self._rows = rows, 0
        self._all: torch.Tensor | None = None
        #: Whether all batches had rows of one shape, and there was one at least.
        self.alike = True

    def add(self, batch: torch.Tensor) -> None:
        """Adds the rows of a batch."""
        if self._all is None:
            self._all = torch.empty((max(self._expected, len(batch)), *batch.shape[1:]), dtype=batch.dtype)
        self.alike = self.alike and self._all.shape[1:] == batch.shape[1:]
        if not self.alike:
            return
        kind = torch.promote_types(self._all.dtype, batch.dtype)
        end = self._rows + len(batch)
        if end > len(self._all) or kind != self._all.dtype:
            larger = torch.empty((max(end, 2 * self._rows), *batch.shape[1:]), dtype=kind)
            larger[: self._rows] = self._all[: self._rows]
            self._all = larger
        self._all[self._rows : end] = batch
        self._rows = end

    def all(self) -> torch.Tensor:
        """All rows."""
        assert self._all is not None, "there was a batch"
        return self._all[: self._rows]


class Measuring:
    """Adds up what is measured, batch by batch.

    A loss of PyTorch, and one that the model computes itself, is the mean over all rows (or over all
    targets that count) of those of the batches. A loss of the learner's own is computed on all outputs
    at once, where their shapes allow it and each row has one: it need not be a mean over rows.
    """

    def __init__(
        self, loss: Loss | None, known: Known | None, metrics: Metrics | None, classes: Callable[[], bool], rows: int = 0
    ) -> None:
        """`rows` is how many are expected."""
        self._loss, self._known, self._metrics, self._classes = loss, known, metrics, classes
        self._total = self._count = self._rows = 0.0
        self._right = self._told = 0
        self._own = loss is not None and known is None
        self._all = metrics is not None or self._own
        #: Batches so far; whether each had as many outputs as rows; and the first that had more or fewer than targets.
        self._batches, self._by_row = 0, True
        self._uneven: tuple[int, int] | None = None
        self._outputs, self._targets = Gathered(rows), Gathered(rows)

    @property
    def rows(self) -> int:
        """How many rows were added."""
        return int(self._rows)

    def add(self, passed: Passed, rows: int | None = None) -> None:
        """Adds a batch, of so many rows where that is known."""
        self._batches += 1
        count = counts(self._loss, self._known, self._classes(), passed)
        self._rows += passed.rows
        # A batch without a target that counts has no mean.
        if count > 0:
            self._total += float(batch_loss(self._loss, passed)) * count
            self._count += count
        if self._classes():
            own = int(getattr(self._loss, "ignore_index", -100))
            # Where the mean is over all targets, none is ignored.
            all_count = self._known is not None and self._known.weight is None and count == passed.targets.numel()
            ignored = None if all_count else self._known.ignored if self._known else own
            right, told = hits(passed.outputs, passed.targets, ignored)
            self._right, self._told = self._right + right, self._told + told
        if self._all:
            both = (passed.outputs, passed.targets)
            tensors = all(isinstance(one, torch.Tensor) and one.ndim > 0 for one in both)
            if tensors:
                both_rows = len(passed.outputs), len(passed.targets)
                self._by_row = self._by_row and rows in (None, both_rows[0])
                self._uneven = self._uneven or (both_rows if both_rows[0] != both_rows[1] else None)
                self._outputs.add(passed.outputs)
                self._targets.add(passed.targets)
            self._all = tensors and self._outputs.alike and self._targets.alike

    def found(self, device: torch.device, first: str | None = None) -> dict[str, float]:
        """The metrics of all rows. `first` says which rows they are where the learner's own metrics are tried on
        them before the first round: what fails is then refused."""
        if self._rows == 0:
            raise ValueError("there are no rows to measure on")
        mean = self._total / self._count if self._count else math.nan
        alike = self._all
        if alike:
            outputs, targets = self._outputs.all(), self._targets.all()
            if self._own and self._batches > 1 and (self._uneven or not self._by_row):
                # Views of rows, say, lie side by side in a batch, and would not in all batches one after another.
                note(
                    "outputs are more or fewer than the rows of a batch: the loss is measured batch by batch, and their mean "
                    "by rows is taken; one that depends on how many rows it sees depends on the size of batches"
                )
            elif self._own:
                mean = float(self._loss(outputs.to(device), targets.to(device)))
        found = {"loss": mean}
        if self._told:
            found["accuracy"] = self._right / self._told
        if self._metrics is not None:
            if not alike:
                raise ValueError(
                    "`metrics` takes the outputs of all rows as one tensor, and those of different batches have "
                    "different shapes: leave it out, or pad all rows to one length"
                )
            if self._uneven and self._batches > 1:
                raise Refused(
                    f"`metrics` takes outputs and targets of all rows, and a batch has {self._uneven[0]} outputs for "
                    f"{self._uneven[1]} targets: they would not lie side by side; leave it out, or let `forward` return one "
                    "output for each target"
                )
            found |= _own(self._metrics, outputs, targets) if first is None else _tried(self._metrics, outputs, targets, first)
        return found


def _own(metrics: Metrics, outputs: torch.Tensor, targets: torch.Tensor) -> dict[str, float]:
    try:
        return numbers(metrics(outputs, targets))
    except ValueError as error:
        raise Refused(f"`metrics`: {error}") from error


def _tried(metrics: Metrics, outputs: torch.Tensor, targets: torch.Tensor, rows: str) -> dict[str, float]:
    """The learner's own metrics, which must be numbers with these outputs or with made-up ones: some have no
    value before a training, such as the precision of a class that a model never names."""
    shapes = f"outputs {tuple(outputs.shape)} and targets {tuple(targets.shape)}"
    where = f"`metrics` was tried on {rows}, {shapes}, before the first round"

    def measured(outputs: torch.Tensor) -> dict[str, float]:
        try:
            found: Any = metrics(outputs.clone(), targets.clone())
        except Exception as error:
            raise Refused(f"{where}, and failed: {type(error).__name__}: {error}") from error
        try:
            return numbers(found)
        except ValueError as error:
            raise Refused(f"{where}: {error}") from error.__cause__

    found = measured(outputs)
    made = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(1)).to(outputs.dtype)
    try:
        check_finite(found, lambda: measured(made), where, "with the outputs of the model and with made-up ones")
    except ValueError as error:
        raise Refused(str(error)) from error.__cause__
    return found


def hits(outputs: torch.Tensor, targets: torch.Tensor, ignored: int | None) -> tuple[int, int]:
    """How many classes are right, and how many there are to tell: targets are indices, where an ignored
    one does not count, or probabilities of classes. `None` where it is known that none is ignored."""
    if not isinstance(outputs, torch.Tensor) or not isinstance(targets, torch.Tensor) or outputs.ndim < 2:
        return 0, 0
    told = outputs.argmax(1)
    if targets.shape not in (told.shape, outputs.shape):
        return 0, 0
    if targets.is_floating_point():
        return int((told == targets.argmax(1)).sum()), told.numel()
    right = told == targets
    if ignored is None or not (targets == ignored).any():
        return int(right.sum()), told.numel()
    counted = targets != ignored
    return int(right[counted].sum()), int(counted.sum())


def row_by_row(passes: Iterable[Passed], rows: int = 0) -> Outputs:
    """Outputs and targets of all rows, of which so many are expected."""
    outputs, targets = Gathered(rows), Gathered(rows)
    for passed in passes:
        outputs.add(passed.outputs)
        targets.add(passed.targets)
    return Outputs(wide(outputs.all()), wide(targets.all()))
