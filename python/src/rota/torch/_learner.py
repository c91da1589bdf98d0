"""The learner of a PyTorch module."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from .. import _learner
from .._learner import Given, Outputs, Rows, Silo, Split, Tensor, Training, Update
from .._tensors import Arrays
from ._losses import has_classes, loss_of, outputs_loss, targets_of
from ._names import covered, match
from ._optimiser import made, modify, restore, state_of_optimiser, terms_of
from ._rows import count_of, data_of, in_order, is_batch
from ._state import NORMS, initial, role, shapes, shared_of, state_of
from ._types import Batch, Data, Loss, Metrics, Shared, array

#: One training or measurement at a time in a process: PyTorch has one generator for all of it, from
#: which dropout and data loaders draw.
_TURN = threading.Lock()


class Learner(_learner.Learner):
    """A learner from a module and a loss.

    Args:
        model: The module.
        shared: What of the module travels. `"all"`: its parameters, and buffers of floats such as
            those of batch normalisation. `"trainable"`: the parameters that require gradients, and
            the buffers of modules that have such parameters themselves. All else is frozen: it stays
            as it is, with normalisation by the running statistics that it has, and must be the same
            at every member (`frozen`).
        loss: The mean loss of a batch, `loss(model(x), y)`, such as
            `torch.nn.functional.cross_entropy`. Where Rota hands the rows over, by default the
            agreed one.
        train: Batches of the training rows: a `DataLoader` (its batches and order are its own), or
            two tensors or arrays `(x, y)` (batches and order are as agreed). Without it, the rows
            that Rota hands over.
        test, validation: The same for the held-out rows. They are measured in the order of the data
            set, all of them, whatever the loader's: results of two models are compared row by row.
        silo: The silo, as the factory of `rota.serve` gets it. Needed where Rota hands the rows
            over, or the agreed tensors have other names than the module's.
        shape: Shape of a row, such as `(1, 28, 28)`, where Rota hands over rows.
        metrics: More metrics of all outputs and targets of a part. Accuracy, for a loss by
            cross-entropy, is measured without it.
        keep: `"sgd"` or `"adam"`: the optimiser's state is the silo's personal state and goes on
            from round to round; the agreed optimiser must be that one. By default every training
            starts anew.
        names: For each agreed tensor its name in the module, where they cannot be matched.
        device: Where it trains; by default a GPU where there is one.
        threads: Threads of PyTorch on the CPU; by default PyTorch's own choice.
    """

    gradients = True

    def __init__(
        self,
        model: nn.Module,
        loss: Loss | None = None,
        train: Data | Batch | None = None,
        test: Data | Batch | None = None,
        *,
        validation: Data | Batch | None = None,
        silo: Silo | None = None,
        shape: tuple[int, ...] | None = None,
        metrics: Metrics | None = None,
        keep: str | None = None,
        names: Mapping[str, str] | None = None,
        shared: Shared = "all",
        device: str | torch.device | None = None,
        threads: int | None = None,
    ) -> None:
        if shared not in ("all", "trainable"):
            raise ValueError(f'`shared` is {shared!r}, it must be "all" or "trainable"')
        if keep not in (None, "sgd", "adam"):
            raise ValueError(f'`keep` is {keep!r}, it must be "sgd", "adam" or None')
        if threads is not None:
            torch.set_num_threads(threads)
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.model = model.to(self.device)
        if isinstance(loss, nn.Module):
            loss = loss.to(self.device)
        if isinstance(loss, nn.modules.loss._Loss) and loss.reduction in ("sum", "none"):
            raise ValueError("`loss` must be the mean over the rows of a batch: leave out `reduction`")
        self._silo, self._shape, self._metrics, self._keep = silo, shape, metrics, keep
        kinds = [value.dtype for value in self.model.parameters() if value.is_floating_point()]
        kind = kinds[0] if kinds else torch.float32
        self._parts: dict[str, Data | Batch | None] = {
            "train": data_of("train", train, kind),
            "validation": data_of("validation", validation, kind),
            "test": data_of("test", test, kind),
        }
        self._in_order = {part: in_order(part, data) for part, data in self._parts.items()}
        self._given: Given | None = silo.given if silo is not None and train is None else None
        if train is None and self._given is None:
            raise ValueError("no training rows: give `train`, or `silo` where Rota hands the rows over")
        if loss is None:
            loss = loss_of(self._given)
        self._loss = loss
        self.outputs_loss = None if self._given else outputs_loss(loss)
        agreed = {tensor.name: tensor.shape for tensor in silo.layout} if silo is not None else {}
        if names is not None:
            self._names = covered(names, shapes(model, shared), agreed or None)
        elif agreed:
            self._names = match(model, agreed, shared)
        else:
            self._names = {name: name for name in shared_of(model, shared)}
        state, travels = state_of(self.model), set(self._names.values())
        self._left = {name: value for name, value in state.items() if name not in travels}
        kept = {name: value for name, value in self._left.items() if not isinstance(value, nn.Parameter)}
        #: Buffers that do not travel, counters of batches among them, with the values that they keep:
        #: a training must not depend on the one before.
        buffers = {name: value for name, value in self.model.named_buffers() if name not in travels}
        self._still = [(value, value.detach().clone()) for value in buffers.values()]
        owners = {name.rpartition(".")[0] for name in kept}
        found = [self.model.get_submodule(name) for name in sorted(owners)]
        self._still_norms = [module for module in found if isinstance(module, NORMS)]
        # What the module is before the first training, which changes it in place.
        self._first = {name: array(value) for name, value in self._values().items()}
        self._drawn = {name: initial(self.model, mine, state[mine]) for name, mine in self._names.items()}

    # What the model is.

    def _values(self) -> dict[str, torch.Tensor]:
        state = state_of(self.model)
        return {name: state[mine] for name, mine in self._names.items()}

    def tensors(self) -> Iterator[Tensor]:
        parameters = {name for name, _ in self.model.named_parameters()}
        state = state_of(self.model)
        for name, mine in sorted(self._names.items()):
            value = state[mine]
            yield Tensor(name, tuple(value.shape), role(mine, value, parameters), self._drawn[name])

    def _trained(self) -> dict[str, nn.Parameter]:
        parameters = dict(self.model.named_parameters())
        return {name: parameters[mine] for name, mine in self._names.items() if mine in parameters}

    def frozen(self) -> str | None:
        return _learner.digest((name, array(self._left[name])) for name in sorted(self._left))

    def personal(self) -> Iterator[Tensor]:
        parts = {None: (), "sgd": ("momentum",), "adam": ("first", "second")}[self._keep]
        for part in parts:
            for name, value in self._trained().items():
                yield Tensor(f"{name}.{part}", tuple(value.shape), "buffer")
        if self._keep == "adam":
            yield Tensor("step", (1,), "buffer")

    def initial(self, seed: int) -> Mapping[str, Any]:
        return self._first

    def rows(self) -> Rows:
        return Rows(**{part: count_of(data) for part, data in self._in_order.items()})

    # The rows.

    def _all(self, split: Split) -> Batch | None:
        """All rows of a part, where they are tensors."""
        if self._given is not None:
            assert self._silo is not None
            x, y = self._silo.rows(split)
            features = torch.from_numpy(np.array(x))
            features = features.reshape(-1, *self._shape) if self._shape else features
            return features, targets_of(torch.from_numpy(np.array(y)), self._given.loss)
        data = self._parts[split]
        if data is None:
            raise ValueError(f"this silo has no {split} rows")
        return cast(Batch, data) if is_batch(data) else None

    def _batches(self, split: Split, size: int, order: torch.Generator | None) -> Iterator[Batch]:
        """Batches to train on, in this order; to measure without one."""
        rows = self._all(split)
        if rows is None:
            yield from cast(Data, (self._in_order if order is None else self._parts)[split])
            return
        x, y = rows
        size = size or len(x)
        places = torch.arange(len(x)) if order is None else torch.randperm(len(x), generator=order)
        for first in range(0, len(x), size):
            chosen = places[first : first + size]
            yield x[chosen], y[chosen]

    def _steps(self, training: Training) -> int:
        rows = self._all("train")
        if rows is not None:
            return training.epochs * math.ceil(len(rows[0]) / (training.batch or len(rows[0])))
        try:
            return training.epochs * len(cast(Any, self._parts["train"]))
        except TypeError:
            return 0

    # Training and measuring.

    def _set(self, model: Arrays) -> None:
        with torch.no_grad():
            for name, value in self._values().items():
                value.copy_(torch.from_numpy(np.array(model[name])))
            for value, kept in self._still:
                value.copy_(kept)

    def train(self, start: Arrays, training: Training) -> Update:
        with _TURN:
            return self._train(start, training)

    def _train(self, start: Arrays, training: Training) -> Update:
        seed = training.seed % (1 << 63)
        torch.manual_seed(seed)
        loader = self._parts["train"]
        batches = getattr(loader, "batch_sampler", None)
        for of in (loader, getattr(loader, "sampler", None), getattr(batches, "sampler", None)):
            # A data loader may draw from a generator of its own.
            if isinstance(own := getattr(of, "generator", None), torch.Generator):
                own.manual_seed(seed)
        order = torch.Generator().manual_seed(seed)
        self._set(start)
        self.model.train()
        for norm in self._still_norms:
            norm.eval()
        trained = self._trained()
        optimiser = made(trained, training, self._keep)
        restore(optimiser, trained, training.personal, self._keep)
        terms = terms_of(trained, training.modifier, self.device)
        steps, step, mean = self._steps(training), 0, math.nan
        for _ in range(training.epochs):
            total, count = 0.0, 0
            for x, y in self._batches("train", training.batch, order):
                x, y = x.to(self.device), y.to(self.device)
                optimiser.zero_grad(set_to_none=True)
                loss = self._loss(self.model(x), y)
                loss.backward()
                modify(trained, training.modifier, terms)
                optimiser.step()
                step += 1
                total, count = total + float(loss.detach()) * len(x), count + len(x)
                training.progress(step, max(steps, step), total / count)
            if count == 0:
                raise ValueError("there are no training rows")
            mean = total / count
        model = {name: array(value) for name, value in self._values().items()}
        return Update(model=model, metrics={"loss": mean}, personal=state_of_optimiser(optimiser, trained, self._keep), samples=count)

    def _measured(self, model: Arrays, split: Split) -> Batch:
        outputs, targets = [], []
        with _TURN, torch.no_grad():
            self._set(model)
            self.model.eval()
            for x, y in self._batches(split, 512, None):
                outputs.append(self.model(x.to(self.device)).cpu())
                targets.append(y.cpu())
        return torch.cat(outputs), torch.cat(targets)

    def evaluate(self, model: Arrays, split: Split, personal: Arrays) -> Mapping[str, float]:
        outputs, targets = self._measured(model, split)
        loss = self._loss(outputs.to(self.device), targets.to(self.device))
        found: dict[str, float] = {"loss": float(loss)}
        if has_classes(self._loss) and outputs.ndim == 2:
            found["accuracy"] = float((outputs.argmax(1) == targets).float().mean())
        if self._metrics is not None:
            found |= {name: float(value) for name, value in self._metrics(outputs, targets).items()}
        return found

    def outputs(self, model: Arrays, split: Split, personal: Arrays) -> Outputs:
        outputs, targets = self._measured(model, split)
        return Outputs(array(outputs), array(targets.float()))
