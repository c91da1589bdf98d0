"""Clients written for Flower as learners: a `NumPyClient`, or a `ClientApp` with `@app.train` and `@app.evaluate`.

Nothing of Flower runs besides the client's own functions: no server, no SuperLink. Of the package flwr only a `ClientApp`
needs anything, the records of its messages.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _learner
from ._learner import Rows, Silo, Split, Tensor, Training, Update
from ._notes import note
from ._tensors import Arrays, copied
from ._turn import seeded, turn

#: From a training to what a client finds in its `config`.
Config = Callable[[Training], Mapping[str, Any]]
#: Seconds for which a message is good; it is answered at once.
_LIVES = 43_200.0
#: Names under which clients report a loss of their training.
_LOSSES = ("loss", "train_loss", "train-loss")


def config_of(training: Training) -> dict[str, Any]:
    """What a client finds in its `config` unless it is said otherwise: the round, and what is agreed, under the names
    that examples of Flower use."""
    return {
        "num_rounds": training.rounds or 0,
        "num-server-rounds": training.rounds or 0,
        "server_round": training.round or 0,
        "server-round": training.round or 0,
        "current_round": training.round or 0,
        "local_epochs": training.epochs,
        "epochs": training.epochs,
        "batch_size": training.batch,
        "lr": training.rate,
        "learning_rate": training.rate,
        "momentum": training.momentum,
    }


def client(
    make: Any, *, rows: Rows | Callable[[Silo], Rows] | None = None, config: Config = config_of
) -> Callable[[Silo], _learner.Learner]:
    """Learners from a `client_fn`, or from one client: what `rota.simulate(learner=…)` and `rota.serve` take.

    `make` is a `NumPyClient`, or a function that makes one (`.to_client()` or not) of a `Context`, of the place of the
    silo as text, or of nothing. `rows` are the numbers of rows of a silo; without it the client is trained once before
    the first round, only to count them. `config` makes the client's `config` of a training.
    """

    def of(silo: Silo) -> _learner.Learner:
        found = make if hasattr(make, "fit") else _called(make, silo)
        found = getattr(found, "numpy_client", found)
        if not hasattr(found, "fit"):
            raise TypeError(f"the client is {type(found).__name__}, and has no `fit`: give a NumPyClient, or a function that makes one")
        return _Client(_Numpy(found), _rows_of(rows, silo), config)

    return of


def app(
    app: Any,
    model: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
    *,
    rows: Rows | Callable[[Silo], Rows] | None = None,
    config: Config = config_of,
    run_config: Mapping[str, Any] | None = None,
) -> Callable[[Silo], _learner.Learner]:
    """Learners from a `ClientApp` with functions for `train` and `evaluate`, as `client` makes them of clients.

    `model` are the arrays that the server app starts from, by name: `net.state_dict()`. The functions get them as
    `msg.content["arrays"]`, `config` as `msg.content["config"]`, and `run_config` in their context.
    """

    def of(silo: Silo) -> _learner.Learner:
        arrays = model() if callable(model) else model
        return _Client(_App(app, arrays, silo, run_config or {}), _rows_of(rows, silo), config)

    return of


def _called(make: Any, silo: Silo) -> Any:
    """A client of a function, by what it takes."""
    parameters = list(inspect.signature(make).parameters.values())
    if not parameters:
        return make()
    if parameters[0].name in ("cid", "client_id", "partition_id"):
        return make(str(silo.place))
    return make(_context(silo, {}))


def _context(silo: Silo, run_config: Mapping[str, Any]) -> Any:
    """What a Flower client finds in its context."""
    node_config: dict[str, Any] = {"partition-id": silo.place, "num-partitions": silo.silos}
    try:
        from flwr.app import Context, RecordDict
    except ImportError:
        from types import SimpleNamespace

        return SimpleNamespace(node_id=silo.place, node_config=node_config, run_config=dict(run_config), state={}, run_id=0)
    return Context(0, silo.place, node_config, RecordDict(), dict(run_config))


def _rows_of(rows: Rows | Callable[[Silo], Rows] | None, silo: Silo) -> Rows | None:
    return rows(silo) if callable(rows) else rows


class _Numpy:
    """The functions of a NumPyClient."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def first(self) -> dict[str, Any]:
        given = self._client.get_parameters(config={})
        # Their order is all that a client knows of them. They may be the memory of its network, which goes on changing.
        return {f"{nth:04d}": np.array(value) for nth, value in enumerate(given)}

    def fit(self, model: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[dict[str, Any], int, Mapping[str, Any]]:
        arrays, count, metrics = self._client.fit(list(model.values()), dict(config))
        return {name: np.array(value) for name, value in zip(model, arrays, strict=True)}, int(count), metrics or {}

    def measure(self, model: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        loss, count, metrics = self._client.evaluate(list(model.values()), dict(config))
        return int(count), {**(metrics or {}), "loss": loss}


class _App:
    """The functions of a ClientApp, which get messages."""

    def __init__(self, app: Any, model: Mapping[str, Any], silo: Silo, run_config: Mapping[str, Any]) -> None:
        self._app, self._model, self._place = app, model, silo.place
        self._context = _context(silo, run_config)

    def first(self) -> dict[str, Any]:
        return {name: copied(value) for name, value in self._model.items()}

    def _asked(self, kind: str, model: Mapping[str, Any], config: Mapping[str, Any]) -> Any:
        from flwr.app import Array, ArrayRecord, ConfigRecord, Message, Metadata, RecordDict

        make: Any = Message

        arrays = ArrayRecord({name: Array(np.ascontiguousarray(value)) for name, value in model.items()})
        content = RecordDict({"arrays": arrays, "config": ConfigRecord(dict(config))})
        # No run of a SuperLink, which would say who it is.
        metadata = Metadata(0, "", 0, self._place, "", str(config.get("server-round", 0)), time.time(), _LIVES, kind)
        reply = self._app(make(content=content, metadata=metadata), self._context)
        if getattr(reply, "has_error", lambda: False)():
            raise ValueError(f"`{kind}` of the ClientApp replied with an error: {reply.error}")
        return reply.content

    def fit(self, model: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[dict[str, Any], int, Mapping[str, Any]]:
        content = self._asked("train", model, config)
        arrays = next(iter(content.array_records.values()))
        metrics = _metrics(content)
        return {name: arrays[name].numpy() for name in model}, _count(metrics, "train"), metrics

    def measure(self, model: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        metrics = dict(_metrics(self._asked("evaluate", model, config)))
        count = _count(metrics, "evaluate")
        loss = next((metrics[name] for name in ("loss", "eval_loss", "eval-loss") if name in metrics), None)
        if loss is None:
            raise ValueError(f"`evaluate` of the ClientApp gives {sorted(metrics)}, and no `eval_loss`")
        return count, metrics | {"loss": loss}


def _metrics(content: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for record in content.metric_records.values():
        found |= dict(record)
    return found


def _count(metrics: Mapping[str, Any], what: str) -> int:
    if "num-examples" not in metrics:
        raise ValueError(f"`{what}` of the ClientApp gives {sorted(metrics)}, and no `num-examples`, by which a silo weighs")
    return int(metrics["num-examples"])


class _Client(_learner.Learner):
    """A learner of the functions of a client."""

    def __init__(self, client: _Numpy | _App, rows: Rows | None, config: Config) -> None:
        self._client, self._config = client, config
        with turn(), seeded(0):
            self._first = client.first()
            self._counted = rows or self._count()

    def _count(self) -> Rows:
        how = Training(1, 0, "sgd", 0.0, 0.0, 0.0, 0, {}, None)
        note("the client is trained once before the first round, only to count its rows: `rows=` says them without that")
        _, train, _ = self._client.fit(dict(self._first), self._config(how))
        test, _ = self._client.measure(dict(self._first), self._config(how))
        return Rows(train, test=test)

    def _as_given(self, model: Mapping[str, Any]) -> dict[str, Any]:
        """The arrays in the client's order and kinds: counters are whole numbers."""
        found = {}
        for name, like in self._first.items():
            value = np.asarray(model[name]).reshape(like.shape)
            found[name] = (np.rint(value) if like.dtype.kind in "iu" else value).astype(like.dtype)
        return found

    def tensors(self) -> list[Tensor]:
        return [
            Tensor(name, value.shape, "weight" if value.ndim > 1 else "bias" if value.dtype.kind == "f" and value.ndim else "buffer", "program")
            for name, value in self._first.items()
        ]

    def rows(self) -> Rows:
        return self._counted

    def initial(self, seed: int) -> Mapping[str, npt.ArrayLike]:
        return {name: np.asarray(value, np.float32) for name, value in self._first.items()}

    def tried(self, model: Arrays) -> tuple[tuple[int, ...], tuple[float, ...]]:
        return (), ()

    def train(self, start: Arrays, training: Training) -> Update:
        with turn(), seeded(training.seed % (1 << 63)):
            model, count, metrics = self._client.fit(self._as_given(start), self._config(training))
        loss = next((float(metrics[name]) for name in _LOSSES if name in metrics), math.nan)
        more = {name: float(value) for name, value in metrics.items() if isinstance(value, (int, float))}
        return Update(model=model, metrics=more | {"loss": loss}, samples=count)

    def evaluate(self, model: Arrays, split: Split, personal: Arrays) -> Mapping[str, float]:
        if split != "test":
            raise ValueError(f"a client of Flower measures its test rows alone, and not its {split} rows: use another strategy, or a rota.Learner")
        how = Training(1, 0, "sgd", 0.0, 0.0, 0.0, 0, {}, None, self.round, self.rounds)
        with turn(), seeded(0):
            _, metrics = self._client.measure(self._as_given(model), self._config(how))
        return {name: float(value) for name, value in metrics.items() if isinstance(value, (int, float))}
