"""Learners in PyTorch: any `torch.nn.Module` with a loss, as a whole or only in part."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import nn

from . import _learner
from ._learner import Given, Outputs, OutputsLoss, Rows, Silo, Split, Tensor, Training, Update
from ._lora import LoRA, lora, merged
from ._tensors import Arrays, read_tensors

__all__ = ["Learner", "LoRA", "load", "lora", "match", "merged"]

Batch = tuple[torch.Tensor, torch.Tensor]
Data = Iterable[Batch]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Metrics = Callable[[torch.Tensor, torch.Tensor], Mapping[str, float]]
Shared = Literal["all", "trainable"]

#: One training or measurement at a time in a process: PyTorch has one generator for all of it, from
#: which dropout and data loaders draw.
_TURN = threading.Lock()

#: Names that Rota's own networks have for buffers of `torch.nn.BatchNorm*d`.
_BUFFERS = {"running_mean": "mean", "running_var": "variance"}
#: Layers with running statistics.
_NORMS = (nn.modules.batchnorm._NormBase,)
#: Tensors of the common scale, which a model that is given its rows on that scale does not have.
_SCALE = {"scale.mean", "scale.rest", "scale.deviation"}


def _state(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers that are floats: counters of batches are not averaged."""
    parameters = dict(model.named_parameters())
    buffers = {name: value for name, value in model.named_buffers() if value.is_floating_point()}
    kept = set(model.state_dict())
    return parameters | {name: value for name, value in buffers.items() if name in kept}


def _is_trainable(module: nn.Module) -> bool:
    """Whether the module itself, without those inside of it, has parameters that are trained."""
    return any(value.requires_grad for value in module.parameters(recurse=False))


def _shared(model: nn.Module, shared: Shared) -> dict[str, torch.Tensor]:
    """The part of the state that travels: all of it, or the parameters that are trained, and the
    buffers of the modules that have such parameters themselves."""
    state = _state(model)
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


def _shapes(model: nn.Module, shared: Shared) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in _shared(model, shared).items()}


def _role(name: str, value: torch.Tensor, parameters: set[str]) -> Any:
    if name not in parameters:
        return "buffer"
    # Biases, and scales of norm layers, are not decayed.
    return "weight" if value.ndim >= 2 else "bias"


def _initial(model: nn.Module, name: str, value: torch.Tensor) -> float | dict[str, float]:
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


def _natural(name: str) -> list[str | int]:
    """Layer 10 comes after layer 2."""
    parts: list[str | int] = list(re.split(r"(\d+)", name))
    parts[1::2] = [int(part) for part in parts[1::2]]
    return parts


def _covered(names: Mapping[str, str], own: Mapping[str, Any], other: Mapping[str, Any] | None) -> dict[str, str]:
    """`names` as given, if they are all the tensors of both sides, with their shapes."""
    missing = set(own) ^ set(names.values())
    if other is not None:
        missing |= set(other) ^ set(names)
    if missing:
        raise ValueError(f"`names` must name every tensor of both sides once, and no other; look at {min(missing)!r}")
    if len(set(names.values())) < len(names):
        raise ValueError("`names` names a tensor of the module twice")
    for name, mine in names.items():
        if other is not None and tuple(other[name]) != tuple(own[mine]):
            raise ValueError(f"{name!r} has the shape {tuple(other[name])}, {mine!r} of the module {tuple(own[mine])}")
    return dict(names)


def match(
    model: nn.Module, layout: Mapping[str, tuple[int, ...]], shared: Shared = "all"
) -> dict[str, str]:
    """For each name of an agreed or exported tensor the name in `model.state_dict()`, of which
    `shared` says what takes part, as in `Learner`.

    Tensors go together by name, where buffers of norm layers are called `mean` and `variance`
    too; or else layer by layer in the order of depth, where all shapes are equal. The order of
    depth is that of the module, and that of the names: `conv2` before `conv10`. Raises `ValueError`
    where neither works.
    """
    own = _shapes(model, shared)
    other = {name: tuple(shape) for name, shape in layout.items() if name not in _SCALE}

    def agreed(name: str) -> str:
        layer, dot, part = name.rpartition(".")
        return layer + dot + _BUFFERS.get(part, part)

    def part(name: str) -> str:
        return agreed(name).rpartition(".")[2]

    def fits(found: Mapping[str, str]) -> bool:
        same = all(own[mine] == other[name] for name, mine in found.items())
        return same and len(set(found.values())) == len(own) == len(other)

    by_name = {agreed(name): name for name in own}
    found = {name: by_name[agreed(name)] for name in other if agreed(name) in by_name}
    if fits(found):
        return found

    def layers(names: Iterable[str]) -> dict[str, list[str]]:
        grouped: dict[str, list[str]] = {}
        for name in names:
            grouped.setdefault(name.rpartition(".")[0], []).append(name)
        return grouped

    mine, theirs = layers(own), layers(sorted(other, key=_natural))
    found = {}
    for ours, layer in zip(mine.values(), theirs.values()):
        by_part = {part(name): name for name in ours}
        found |= {name: by_part[part(name)] for name in layer if part(name) in by_part}
    if len(mine) == len(theirs) and fits(found):
        return found
    raise ValueError(
        f"the module's tensors {own} are not those of the agreed model, {other}: "
        "give `names`, a dictionary from agreed names to those in the module"
    )


def load(
    model: nn.Module, path: Any, *, names: Mapping[str, str] | None = None, shared: Shared = "all"
) -> nn.Module:
    """Loads a safetensors file that Rota exported into the equivalent module, and returns it.

    `shared` is that of the learners; with `"trainable"` the file has only what was trained. `names`
    has for each tensor of the file its name in the module, where they cannot be matched.
    """
    arrays = read_tensors(path)
    shapes = {name: value.shape for name, value in arrays.items() if name not in _SCALE}
    pairs = match(model, shapes, shared) if names is None else _covered(names, _shapes(model, shared), shapes)
    state = _state(model)
    with torch.no_grad():
        for name, mine in pairs.items():
            state[mine].copy_(torch.from_numpy(np.ascontiguousarray(arrays[name])))
    return model


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
            "train": _data("train", train, kind),
            "validation": _data("validation", validation, kind),
            "test": _data("test", test, kind),
        }
        self._in_order = {part: _in_order(part, data) for part, data in self._parts.items()}
        self._given: Given | None = silo.given if silo is not None and train is None else None
        if train is None and self._given is None:
            raise ValueError("no training rows: give `train`, or `silo` where Rota hands the rows over")
        if loss is None:
            loss = _loss_of(self._given)
        self._loss = loss
        self.outputs_loss = None if self._given else _outputs_loss(loss)
        agreed = {tensor.name: tensor.shape for tensor in silo.layout} if silo is not None else {}
        if names is not None:
            self._names = _covered(names, _shapes(model, shared), agreed or None)
        elif agreed:
            self._names = match(model, agreed, shared)
        else:
            self._names = {name: name for name in _shared(model, shared)}
        state, travels = _state(self.model), set(self._names.values())
        self._left = {name: value for name, value in state.items() if name not in travels}
        kept = {name: value for name, value in self._left.items() if not isinstance(value, nn.Parameter)}
        #: Buffers that do not travel, counters of batches among them, with the values that they keep:
        #: a training must not depend on the one before.
        buffers = {name: value for name, value in self.model.named_buffers() if name not in travels}
        self._still = [(value, value.detach().clone()) for value in buffers.values()]
        owners = {name.rpartition(".")[0] for name in kept}
        found = [self.model.get_submodule(name) for name in sorted(owners)]
        self._still_norms = [module for module in found if isinstance(module, _NORMS)]
        # What the module is before the first training, which changes it in place.
        self._first = {name: _array(value) for name, value in self._values().items()}
        self._drawn = {name: _initial(self.model, mine, state[mine]) for name, mine in self._names.items()}

    # What the model is.

    def _values(self) -> dict[str, torch.Tensor]:
        state = _state(self.model)
        return {name: state[mine] for name, mine in self._names.items()}

    def tensors(self) -> Iterator[Tensor]:
        parameters = {name for name, _ in self.model.named_parameters()}
        state = _state(self.model)
        for name, mine in sorted(self._names.items()):
            value = state[mine]
            yield Tensor(name, tuple(value.shape), _role(mine, value, parameters), self._drawn[name])

    def _trained(self) -> dict[str, nn.Parameter]:
        parameters = dict(self.model.named_parameters())
        return {name: parameters[mine] for name, mine in self._names.items() if mine in parameters}

    def frozen(self) -> str | None:
        return _learner.digest((name, _array(self._left[name])) for name in sorted(self._left))

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
        return Rows(**{part: _count(data) for part, data in self._in_order.items()})

    # The rows.

    def _all(self, split: Split) -> Batch | None:
        """All rows of a part, where they are tensors."""
        if self._given is not None:
            assert self._silo is not None
            x, y = self._silo.rows(split)
            features = torch.from_numpy(np.array(x))
            features = features.reshape(-1, *self._shape) if self._shape else features
            return features, _targets(torch.from_numpy(np.array(y)), self._given.loss)
        data = self._parts[split]
        if data is None:
            raise ValueError(f"this silo has no {split} rows")
        return cast(Batch, data) if _is_batch(data) else None

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

    def _optimiser(self, training: Training) -> torch.optim.Optimizer:
        trained = {id(value): value for value in self._trained().values()}
        decayed = [value for value in trained.values() if value.ndim >= 2]
        others = [value for value in trained.values() if value.ndim < 2]
        groups = [
            {"params": decayed, "weight_decay": training.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        groups = [group for group in groups if group["params"]]
        if self._keep not in (None, training.optimiser):
            raise ValueError(
                f'the agreed optimiser is {training.optimiser!r}, this learner keeps the state of {self._keep!r}'
            )
        if training.optimiser == "sgd":
            return torch.optim.SGD(groups, lr=training.rate, momentum=training.momentum)
        if training.optimiser == "adam":
            return torch.optim.Adam(groups, lr=training.rate)
        raise ValueError(f"there is no optimiser {training.optimiser!r} here")

    def _restore(self, optimiser: torch.optim.Optimizer, personal: Arrays) -> None:
        if self._keep is None or not personal:
            return
        for name, value in self._trained().items():
            kept = {
                part: torch.from_numpy(np.array(personal[f"{name}.{part}"])).to(value.device, value.dtype)
                for part in ("momentum", "first", "second")
                if f"{name}.{part}" in personal
            }
            if self._keep == "sgd":
                optimiser.state[value] = {"momentum_buffer": kept["momentum"]}
            else:
                step = torch.tensor(float(personal["step"][0]))
                optimiser.state[value] = {
                    "step": step,
                    "exp_avg": kept["first"],
                    "exp_avg_sq": kept["second"],
                }

    def _keeps(self, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        names = {"sgd": {"momentum_buffer": "momentum"}, "adam": {"exp_avg": "first", "exp_avg_sq": "second"}}
        for name, value in self._trained().items():
            state = optimiser.state.get(value, {})
            for theirs, part in names.get(self._keep or "", {}).items():
                found = state.get(theirs)
                kept[f"{name}.{part}"] = _array(torch.zeros_like(value) if found is None else found)
            if self._keep == "adam":
                kept["step"] = np.array([max(float(state.get("step", 0.0)), float(kept.get("step", [0.0])[0]))])
        return kept

    def _modify(self, training: Training, terms: dict[str, tuple[Any, Any]]) -> None:
        modifier = training.modifier
        if modifier is None:
            return
        for name, value in self._trained().items():
            if name in modifier.frozen:
                value.grad = None
            elif value.grad is not None:
                anchor, shift = terms[name]
                if anchor is not None and modifier.mu:
                    value.grad.add_(value.detach() - anchor, alpha=modifier.mu)
                if shift is not None:
                    value.grad.add_(shift)

    def _terms(self, training: Training) -> dict[str, tuple[Any, Any]]:
        modifier = training.modifier
        if modifier is None:
            return {}

        def on_device(arrays: Arrays, name: str) -> Any:
            found = arrays.get(name)
            return None if found is None else torch.from_numpy(np.array(found)).to(self.device)

        return {
            name: (on_device(modifier.anchor, name), on_device(modifier.shift, name))
            for name in self._trained()
        }

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
        optimiser = self._optimiser(training)
        self._restore(optimiser, training.personal)
        terms = self._terms(training)
        steps, step, mean = self._steps(training), 0, math.nan
        for _ in range(training.epochs):
            total, count = 0.0, 0
            for x, y in self._batches("train", training.batch, order):
                x, y = x.to(self.device), y.to(self.device)
                optimiser.zero_grad(set_to_none=True)
                loss = self._loss(self.model(x), y)
                loss.backward()
                self._modify(training, terms)
                optimiser.step()
                step += 1
                total, count = total + float(loss.detach()) * len(x), count + len(x)
                training.progress(step, max(steps, step), total / count)
            if count == 0:
                raise ValueError("there are no training rows")
            mean = total / count
        model = {name: _array(value) for name, value in self._values().items()}
        return Update(model=model, metrics={"loss": mean}, personal=self._keeps(optimiser), samples=count)

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
        if _has_classes(self._loss) and outputs.ndim == 2:
            found["accuracy"] = float((outputs.argmax(1) == targets).float().mean())
        if self._metrics is not None:
            found |= {name: float(value) for name, value in self._metrics(outputs, targets).items()}
        return found

    def outputs(self, model: Arrays, split: Split, personal: Arrays) -> Outputs:
        outputs, targets = self._measured(model, split)
        return Outputs(_array(outputs), _array(targets.float()))


def _array(value: torch.Tensor) -> Any:
    # A copy: the module's own values go on changing.
    return value.detach().cpu().float().numpy().copy()


def _is_batch(data: Any) -> bool:
    return isinstance(data, tuple) and len(data) == 2 and all(isinstance(one, torch.Tensor) for one in data)


def _data(part: str, data: Any, kind: torch.dtype) -> Any:
    """Rows as the learner takes them: numbers of arrays are of the `kind` of the module's."""

    def tensor(values: Any) -> torch.Tensor:
        if isinstance(values, torch.Tensor):
            return values
        made = torch.from_numpy(np.array(values))
        return made.to(kind) if made.is_floating_point() else made

    if isinstance(data, (tuple, list)) and len(data) == 2 and all(hasattr(one, "__array__") for one in data):
        x, y = tensor(data[0]), tensor(data[1])
        if len(x) != len(y):
            raise ValueError(f"`{part}` has {len(x)} rows and {len(y)} targets")
        return x, y
    if isinstance(data, torch.utils.data.Dataset):
        raise TypeError(f"`{part}` is a {type(data).__name__}, without batches: give a DataLoader of it")
    if data is not None and isinstance(data, Iterator):
        raise TypeError(
            f"`{part}` is a {type(data).__name__}, which ends after one pass: give a DataLoader, or two tensors (x, y)"
        )
    return data


def _in_order(part: str, data: Any) -> Any:
    """The same rows, all that the loader ever draws, in an order that does not change."""
    utils = torch.utils.data
    if type(data) is not utils.DataLoader or isinstance(data.dataset, utils.IterableDataset) or data.batch_sampler is None:
        return data
    plain = type(data.batch_sampler) is utils.BatchSampler and data.batch_size is not None
    if plain and not data.drop_last and type(data.sampler) is utils.SequentialSampler:
        return data

    def drawn() -> list[int]:
        if plain:
            return [int(place) for place in data.sampler]
        return [int(place) for batch in cast(Any, data.batch_sampler) for place in batch]

    places, again = drawn(), drawn()
    if places != again:
        places, again = sorted(set(places)), sorted(set(again))
        if places != again and part != "train":
            raise ValueError(
                f"`{part}` draws other rows every time: give a DataLoader without a sampler, results of two models "
                "are compared row by row"
            )
    return utils.DataLoader(
        utils.Subset(data.dataset, places),
        data.batch_size or 512,
        num_workers=data.num_workers,
        collate_fn=data.collate_fn,
        pin_memory=data.pin_memory,
        timeout=data.timeout,
        worker_init_fn=data.worker_init_fn,
        multiprocessing_context=data.multiprocessing_context,
        prefetch_factor=data.prefetch_factor,
    )


def _count(data: Any) -> int:
    if data is None:
        return 0
    if _is_batch(data):
        return len(data[0])
    dataset = getattr(data, "dataset", None)
    sampled = getattr(data, "sampler", None)
    for counted in (sampled, dataset):
        try:
            return len(counted)  # type: ignore[arg-type]
        except TypeError:
            continue
    return sum(len(x) for x, _ in data)


def _has_classes(loss: Loss) -> bool:
    return loss is nn.functional.cross_entropy or isinstance(loss, nn.CrossEntropyLoss)


def _outputs_loss(loss: Loss) -> OutputsLoss | None:
    """What the outputs are under this loss, where it is the plain one: Rota measures them without
    weights and smoothing."""
    functional = nn.functional
    weights = [getattr(loss, name, None) for name in ("weight", "pos_weight")]
    if any(weight is not None for weight in weights) or bool(getattr(loss, "label_smoothing", None)):
        return None
    if loss is functional.cross_entropy or type(loss) is nn.CrossEntropyLoss:
        return "softmax"
    if loss in (functional.mse_loss, _squared) or type(loss) is nn.MSELoss:
        return "squared"
    if loss in (functional.l1_loss, _absolute) or type(loss) is nn.L1Loss:
        return "absolute"
    if loss in (functional.binary_cross_entropy_with_logits, _logistic) or type(loss) is nn.BCEWithLogitsLoss:
        return "logistic"
    return None


def _squared(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.mse_loss(outputs.reshape(targets.shape), targets)


def _absolute(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.l1_loss(outputs.reshape(targets.shape), targets)


def _logistic(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.binary_cross_entropy_with_logits(outputs.reshape(targets.shape), targets)


def _loss_of(given: Given | None) -> Loss:
    """The loss of the agreed model."""
    known: dict[str, Loss] = {
        "softmax": nn.functional.cross_entropy,
        "squared": _squared,
        "absolute": _absolute,
        "logistic": _logistic,
    }
    if given is None or given.loss not in known:
        agreed = f", the agreed one is {given.loss!r}" if given else ""
        raise ValueError(f"no loss: give `loss`{agreed}")
    return known[given.loss]


def _targets(targets: torch.Tensor, loss: str) -> torch.Tensor:
    return targets[:, 0].long() if loss == "softmax" else targets
