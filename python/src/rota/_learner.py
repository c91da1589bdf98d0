"""The base class of learners, and what they are given and give."""

from __future__ import annotations

import hashlib
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ._shelf import Shelf
from ._tensors import Array, Arrays, read_tensors
from ._turn import seeded, turn

Split = Literal["train", "validation", "test"]
OutputsLoss = Literal["softmax", "logistic", "squared", "absolute", "cox"]


@dataclass(frozen=True)
class Tensor:
    """A tensor of a model: its name, its dimensions, and what it is for.

    `role` is `"weight"` (trained, with weight decay), `"bias"` (trained, without) or `"buffer"`
    (averaged, not trained). `initial` says its values before the first round: a number,
    `{"uniform": bound}` for values drawn between minus and plus the bound, or `"program"` for values
    that only the program has, which `Learner.initial` gives. `norm` says whether its layer normalises, as batch
    normalisation does; without it, the name of the layer tells.
    """

    name: str
    shape: tuple[int, ...]
    role: Literal["weight", "bias", "buffer"] = "weight"
    initial: float | str | Mapping[str, float] = 0.0
    norm: bool | None = None

    def document(self) -> dict[str, Any]:
        said: dict[str, Any] = {"name": self.name, "shape": list(self.shape), "role": self.role}
        if self.norm is not None:
            said["norm"] = self.norm
        if isinstance(self.initial, str):
            return said | {"initial": self.initial}
        initial = dict(self.initial) if isinstance(self.initial, Mapping) else float(self.initial)
        for number in initial.values() if isinstance(initial, dict) else [initial]:
            if not math.isfinite(number):
                raise ValueError(f"the initial value of the tensor {self.name!r} is not finite: {number}")
        return said | {"initial": initial}


@dataclass(frozen=True)
class Rows:
    """Numbers of rows by part."""

    train: int
    validation: int = 0
    test: int = 0


@dataclass(frozen=True)
class Given:
    """What the rows are that Rota hands over: numbers per row, and the loss of the agreed model
    (`"squared"`, `"absolute"`, `"logistic"`, `"softmax"`, `"cox"` or `"dice"`)."""

    features: int
    loss: str


@dataclass
class Silo:
    """A silo, as the federation sees it.

    `place` is its position, from 0; `layout` the tensors of the agreed model, empty if none is
    agreed yet; `given` what the rows are, where Rota hands them over; `columns` the agreed names of the
    columns of the learner's own rows, in order, empty if none are agreed; `classes` the agreed labels of
    the classes in the same way.
    """

    name: str
    place: int
    silos: int
    seed: int
    layout: list[Tensor]
    given: Given | None = None
    columns: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    _rows: str | None = field(default=None, repr=False)
    _read: dict[str, Arrays] = field(default_factory=dict, repr=False)

    def rows(self, split: Split) -> tuple[Array, Array]:
        """Features (rows × features) and targets (rows × targets) of a part, where Rota hands the
        rows over: as the agreed model takes them, on the scale that is in force. Times to an event have three targets:
        the event, its time, and the entry.

        Only during `train` and `evaluate`. Raises `ValueError` where there are none.
        """
        if self._rows is None:
            raise ValueError(
                f"silo {self.name!r} is given no rows: the learner reads its own, or the task is a table"
            )
        if self._rows not in self._read:
            self._read = {self._rows: read_tensors(self._rows, mapped=True)}
        tensors = self._read[self._rows]
        if f"{split}.x" not in tensors:
            raise ValueError(f"silo {self.name!r} has no {split} rows")
        return tensors[f"{split}.x"], tensors[f"{split}.y"]


@dataclass(frozen=True)
class Modifier:
    """What a strategy adds to the gradient `g` at the weights `w`: `g + mu·(w − anchor) + shift`;
    tensors in `frozen` are not trained. Tensors that are missing in `anchor` or `shift` have no such
    term."""

    mu: float
    anchor: Arrays
    shift: Arrays
    frozen: frozenset[str]


class Stopped(Exception):
    """The silo needs the training no more. `Training.progress` raises it; let it through."""


@dataclass(frozen=True)
class Training:
    """A training that the silo asks for.

    `epochs`, `batch` (0: all rows at once) and the optimiser (`"sgd"` or `"adam"`, with `rate`,
    `momentum` and `weight_decay`) are the agreed ones; `seed` decides the order of rows. `round` is that of the
    federation, from 1, and `rounds` how many there are; `None` where the silo does not say it.
    """

    epochs: int
    batch: int
    optimiser: str
    rate: float
    momentum: float
    weight_decay: float
    seed: int
    personal: Arrays
    modifier: Modifier | None
    round: int | None = None
    rounds: int | None = None
    _say: Callable[[int, int, float | None], None] = field(repr=False, default=lambda *_: None)

    def progress(self, step: int, steps: int, loss: float | None = None) -> None:
        """Reports the progress. Raises `Stopped` where the training is not needed any more."""
        self._say(step, steps, loss)


@dataclass
class Update:
    """The result of a training: the model, metrics (`loss` at least), and the personal state.

    `samples` is the number of rows that it trained on, each counted once: the weight of the model in
    means such as FedAvg's. By default all training rows."""

    model: Mapping[str, npt.ArrayLike]
    metrics: Mapping[str, float] = field(default_factory=dict)
    personal: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    samples: int | None = None


@dataclass
class Outputs:
    """Outputs of a model row by row (rows × k), and the targets (rows, or rows × t): with `"cox"` one risk score, and
    the event (1, or 0 where the row is censored), its time, and where rows are not observed from the beginning the
    entry."""

    outputs: npt.ArrayLike
    targets: npt.ArrayLike


class Learner(ABC):
    """A silo's rows together with a family of models.

    A learner has no state that matters: what it needs from one training to the next is its
    personal state, which comes in with `Training.personal` and goes out with `Update.personal`.
    """

    #: Whether `train` honours `Training.modifier`.
    gradients: bool = False
    #: What the outputs of `outputs` mean; `None` where it gives none.
    outputs_loss: OutputsLoss | None = None
    #: Whether a training may take fewer than half of the rows, so that `Update.samples` says fewer.
    some_rows: bool = False
    #: While it trains or measures: the round, from 1. In `evaluate` it is the round in which the silo trained last;
    #: `None` before its first, and where the silo does not say it.
    round: int | None = None
    #: How many rounds there are; `None` where the silo does not say it.
    rounds: int | None = None

    @abstractmethod
    def tensors(self) -> Iterable[Tensor]:
        """The tensors of the model, the same at every silo, in the order of depth, from input to output, by
        which strategies find the last layer."""

    def personal(self) -> Iterable[Tensor]:
        """The tensors of the personal state; none by default."""
        return ()

    def frozen(self) -> str | None:
        """The `digest` of the tensors that the learner has besides and does not train, such as those
        of a pretrained model under adapters: they never travel, and the members agree on the digest.
        `None`, the default, where there are none."""
        return None

    def held(self) -> Mapping[str, str]:
        """Short digests of the same tensors one by one, by which an error can name the first that differs;
        none by default."""
        return {}

    def columns(self) -> Sequence[str]:
        """Names of the columns of the rows, in the order in which the model takes them: the same at every
        silo. Empty, the default, where they have no names."""
        return ()

    def classes(self) -> Sequence[str]:
        """Labels of the classes that the model tells apart, in the order of its outputs: the same at every
        silo. Empty, the default, where they are not known by name."""
        return ()

    def tried(self, model: Arrays) -> tuple[Sequence[int], npt.ArrayLike]:
        """The dimensions of a made-up batch, the same at every silo with the same program, and the first
        outputs of a model for it, by which the programs are compared before the first round. Empty
        where it cannot be computed. A learner without this method is not compared, which a note of its silo
        says where the proposer's program gave outputs."""
        raise NotImplementedError("this learner makes up no batch")

    def check(self) -> None:
        """Tries, before the first round, what would otherwise fail in all of them: called once for a learner
        with rows of its own. By default it measures the first model on a held-out part; where values
        of it are `"program"`, only with a method `initial`.

        Raises `ValueError` for an `evaluate` that fails, gives no loss, or gives something else than numbers.
        """
        check_measuring(self)

    def rows(self) -> Rows:
        """How many rows there are. Not needed where Rota hands them over."""
        return Rows(0)

    def initial(self, seed: int) -> Mapping[str, npt.ArrayLike]:
        """The model that this learner holds before any training: what all silos start from, if it is the
        proposer's, or the first one's in a simulation. Without this method the start is what `tensors`
        describes."""
        raise NotImplementedError("this learner gives no initial model: use `start = \"tensors\"`")

    def initial_personal(self, seed: int) -> Mapping[str, npt.ArrayLike]:
        """The personal state before the first round; zeros by default."""
        return {tensor.name: np.zeros(tensor.shape, np.float32) for tensor in self.personal()}

    @abstractmethod
    def train(self, start: Arrays, training: Training) -> Update:
        """Trains from `start`."""

    @abstractmethod
    def evaluate(self, model: Arrays, split: Split, personal: Arrays) -> Mapping[str, float]:
        """Metrics of a model on a part of the rows, `loss` at least."""

    def outputs(self, model: Arrays, split: Split, personal: Arrays) -> Outputs:
        """Outputs row by row, where `outputs_loss` says what they mean."""
        raise NotImplementedError("this learner gives no outputs row by row")

    #: Whether it seeds the generators of the process itself for each question.
    _seeds: bool = False

    def _rest(self, shelf: Shelf, silos: int) -> None:
        """Called after each request in a simulation of this many silos in this process: what the learner holds until
        the next one may lie on the shelf meanwhile."""


def _first(learner: Learner) -> dict[str, Array] | None:
    """A model to measure before the first round; `None` where only a program has its values."""
    if type(learner).initial is not Learner.initial:
        return {name: np.asarray(value, np.float32) for name, value in learner.initial(0).items()}
    draw, found = np.random.default_rng(0), {}
    for tensor in learner.tensors():
        if isinstance(tensor.initial, str):
            return None
        if isinstance(tensor.initial, Mapping):
            bound = tensor.initial["uniform"]
            found[tensor.name] = draw.uniform(-bound, bound, tensor.shape).astype(np.float32)
        else:
            found[tensor.name] = np.full(tensor.shape, tensor.initial, np.float32)
    return found


def check_measuring(learner: Learner) -> None:
    """Measures a first model on a held-out part of the learner's own rows. Raises `ValueError` where that gives
    no loss, or something else than numbers."""
    rows = learner.rows()
    held_out: tuple[Split, ...] = ("test", "validation")
    part = next((part for part in held_out if getattr(rows, part)), None)
    if part is None:
        return
    with turn(), seeded(0):
        model = _first(learner)
        if model is None:
            return
        personal = {name: np.asarray(value, np.float32) for name, value in learner.initial_personal(0).items()}
        where = f"`evaluate` was tried on the {part} rows before the first round"

        def measured(model: dict[str, Array]) -> dict[str, float]:
            try:
                found = learner.evaluate({name: value.copy() for name, value in model.items()}, part, personal)
            except Exception as error:
                raise ValueError(f"{where}, and failed: {type(error).__name__}: {error}") from error
            try:
                values = numbers(found)
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from error.__cause__
            if "loss" not in values:
                raise ValueError(f"{where}, and gave {sorted(values)}: `loss` is always needed")
            return values

        draw = np.random.default_rng(1)
        other = {name: (value + 0.1 * draw.normal(size=value.shape)).astype(np.float32) for name, value in model.items()}
        check_finite(measured(model), lambda: measured(other), where, "with the first model and with another one")


def check_finite(found: Mapping[str, float], again: Callable[[], Mapping[str, float]], where: str, twice: str) -> None:
    """Refuses metrics that have no value whatever is measured; says it of those that have one with what
    `again` measures."""
    lost = [name for name, value in found.items() if not math.isfinite(value)]
    if not lost:
        return
    others = again()
    for name in lost:
        if not math.isfinite(others.get(name, math.nan)):
            raise ValueError(
                f"{where}, and the metric {name!r} is {found[name]} {twice}: look for a division by zero, the "
                "logarithm of zero, and a class without rows; leave a metric out of the dictionary where it has no "
                "value"
            )
        print(f"note: {where}, and the metric {name!r} is {found[name]}: it is missing as long as it is", file=sys.stderr)


def digest(tensors: Iterable[tuple[str, npt.ArrayLike]]) -> str | None:
    """The digest of frozen tensors that members agree on; `None` where there are none.

    `tensors` are their names and values, in the order of the names: `digest(sorted(arrays.items()))`.
    The digest is a SHA-256, in hexadecimal digits, of one tensor after another: the name in UTF-8, a
    zero byte, the number of dimensions and each dimension as 64-bit integers, and the values as 32-bit
    floats, all little-endian.
    """
    found = None
    for name, value in tensors:
        found = found or hashlib.sha256()
        array = np.ascontiguousarray(np.asarray(value, dtype="<f4"))
        found.update(name.encode() + b"\0")
        found.update(np.array([np.ndim(value), *np.shape(value)], dtype="<u8").tobytes())
        found.update(array.tobytes())
    return found.hexdigest() if found else None


Factory = Callable[[Silo], Learner]


def number(name: object, value: Any) -> float:
    """The value of a metric: one number, also in an array or a tensor. Raises `ValueError` for what is none."""
    if not isinstance(name, str):
        raise ValueError(f"a metric has the name {name!r}, a name must be a text")
    shape = getattr(value, "shape", None)
    if shape is not None and math.prod(shape) != 1:
        raise ValueError(
            f"the metric {name!r} is {type(value).__name__} of the shape {tuple(shape)}, it must be one number: such as "
            "its mean over the rows"
        )
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError("a text is no number")
        return float(value if shape is None else value.item())
    except (TypeError, ValueError, RuntimeError, AttributeError) as error:
        said = repr(value) if isinstance(value, (str, bytes)) or value is None else type(value).__name__
        raise ValueError(f"the metric {name!r} is {said[:100]}, it must be one number") from error


def numbers(metrics: Any) -> dict[str, float]:
    """Metrics as numbers by name. Raises `ValueError` for anything else."""
    if not isinstance(metrics, Mapping):
        raise ValueError(f"metrics are {type(metrics).__name__}, they must be a dictionary of numbers by name, {{\"mae\": 0.5}}")
    return {name: number(name, value) for name, value in metrics.items()}
