"""Scripts written for the Client API of NVIDIA FLARE (`nvflare.client`) as learners.

A script runs in a thread of its own, as it is: `flare.receive()` gives it the model that a round starts from, and
`flare.send()` what it has trained. No server and no job runs. Where the package nvflare is not installed, a module takes
its place that has what scripts use of `nvflare.client`.
"""

from __future__ import annotations

import importlib
import math
import os
import queue
import runpy
import sys
import threading
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _learner
from ._learner import Rows, Silo, Split, Tensor, Training, Update
from ._tensors import Arrays, copied
from ._turn import seeded, turn

#: A file, or a function that does what the file would.
Script = "str | os.PathLike[str] | Callable[[], Any]"


@dataclass
class FLModel:
    """What a script gets and sends, as `nvflare.client` has it."""

    params: Mapping[str, Any] | None = None
    params_type: Any = "FULL"
    metrics: Mapping[str, Any] | None = None
    current_round: int | None = None
    total_rounds: int | None = None
    start_round: int | None = 0
    optimizer_params: Mapping[str, Any] | None = None
    meta: dict[str, Any] = field(default_factory=dict)


class ParamsType:
    """How parameters are meant: in full, or as differences from what was received."""

    FULL, DIFF = "FULL", "DIFF"


class _Ended(SystemExit):
    """Ends a script whose simulation is over."""


class _Talk:
    """A script in its thread, and what it is asked."""

    def __init__(self, script: Any, silo: Silo, config: Mapping[str, Any]) -> None:
        self._script, self.silo, self.config = script, silo, config
        self.asked: queue.Queue[FLModel | None] = queue.Queue()
        self.sent: queue.Queue[Any] = queue.Queue()
        self.task = "train"
        # What was received and not yet answered: a script may receive it several times.
        self._current: FLModel | None = None
        self._over = False
        self._thread: threading.Thread | None = None

    def _run(self) -> None:
        _HERE.talk = self
        try:
            if callable(self._script):
                self._script()
            else:
                runpy.run_path(os.fspath(self._script), run_name="__main__")
            if self._over:
                return
            self.sent.put(RuntimeError("the script ended before the simulation did: does it ask `flare.is_running()` in a loop?"))
        except _Ended:
            return
        except BaseException as error:
            self.sent.put(error)

    def ask(self, task: str, model: FLModel) -> Any:
        """What the script sends for a model."""
        if self._thread is None:
            self._current = None
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        self.task = task
        self.asked.put(model)
        found = self.sent.get()
        if isinstance(found, BaseException):
            self._thread = None
            raise found
        return found

    def end(self) -> None:
        """Lets the script end."""
        self.asked.put(None)

    # What the script calls.

    def receive(self, timeout: float | None = None) -> FLModel | None:
        if self._current is None:
            self._over = (found := self.asked.get()) is None
            if found is None:
                raise _Ended
            self._current = found
        return self._current

    def running(self) -> bool:
        """Waits for the next model; `False` where none comes any more."""
        try:
            return self.receive() is not None
        except _Ended:
            return False

    def clear(self) -> None:
        self._current = None

    def send(self, model: Any, clear_cache: bool = True) -> None:
        if clear_cache:
            self.clear()
        self.sent.put(model)

    def system_info(self) -> dict[str, Any]:
        return {"site_name": self.silo.name, "job_id": "simulation"}


_HERE = threading.local()
_PLAIN: dict[str, Callable[..., Any]] = {}
_CALLS: dict[str, Callable[..., Any]] = {
    "init": lambda talk, *_, **__: None,
    "is_running": lambda talk: talk.running(),
    "receive": lambda talk, timeout=None: talk.receive(timeout),
    "send": lambda talk, model, clear_cache=True: talk.send(model, clear_cache),
    "is_train": lambda talk: talk.task == "train",
    "is_evaluate": lambda talk: talk.task == "validate",
    "is_submit_model": lambda talk: False,
    "get_task_name": lambda talk: talk.task,
    "get_site_name": lambda talk: talk.silo.name,
    "get_job_id": lambda talk: "simulation",
    "get_config": lambda talk: dict(talk.config),
    "system_info": lambda talk: talk.system_info(),
    "clear": lambda talk: talk.clear(),
    "log": lambda talk, *_, **__: None,
    "shutdown": lambda talk: None,
}


def _module() -> types.ModuleType:
    """`nvflare.client`, whose functions talk to this package in the threads of scripts."""
    try:
        module = importlib.import_module("nvflare.client")
    except ImportError:
        package = sys.modules.setdefault("nvflare", types.ModuleType("nvflare"))
        module = sys.modules["nvflare.client"] = package.client = types.ModuleType("nvflare.client")  # type: ignore[attr-defined]
        module.FLModel, module.ParamsType = FLModel, ParamsType  # type: ignore[attr-defined]
    if _PLAIN:
        return module
    # The package has the functions in several places, and its decorators and its callbacks of Lightning take them from there.
    api = sys.modules.get("nvflare.client.api", module)
    places = [api, module, *filter(None, map(sys.modules.get, ("nvflare.client.decorator", "nvflare.app_opt.lightning.api")))]
    for name, call in _CALLS.items():
        _PLAIN[name] = getattr(api, name, getattr(module, name, _nowhere))
        bound = _bound(name, call)
        for place in places:
            if place is module or hasattr(place, name):
                setattr(place, name, bound)
    return module


def _bound(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def function(*given: Any, **named: Any) -> Any:
        talk = getattr(_HERE, "talk", None)
        return _PLAIN[name](*given, **named) if talk is None else call(talk, *given, **named)

    function.__name__ = name
    return function


def _nowhere(*_: Any, **__: Any) -> Any:
    raise RuntimeError("this script runs neither in FLARE nor as a learner of Rota: give it to rota.flare.script")


def script(
    script: Any,
    model: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
    rows: Rows | Callable[[Silo], Rows],
    *,
    loss: Callable[[Mapping[str, float]], float] | None = None,
    config: Mapping[str, Any] | None = None,
) -> Callable[[Silo], _learner.Learner]:
    """Learners from a script: what `rota.simulate(learner=…)` and `rota.serve` take.

    `script` is the file, or a function with its content, that receives and sends in a loop. `model` are the arrays that
    the first round starts from, `net.state_dict()`, and `rows` the numbers of rows of a silo.

    A model is measured by the metrics that the script sends for it. A script that asks `flare.is_evaluate()` then only
    measures; another one trains, too, and what it trained is left. `loss` makes a loss of these metrics, such as
    `lambda metrics: 1 - metrics["accuracy"]`, where none of them is called `loss`.
    """
    _module()

    def of(silo: Silo) -> _learner.Learner:
        arrays = model() if callable(model) else model
        counted = rows(silo) if callable(rows) else rows
        return _Script(_Talk(script, silo, config or {}), arrays, counted, loss)

    return of


class _Script(_learner.Learner):
    def __init__(
        self, talk: _Talk, model: Mapping[str, Any], rows: Rows, loss: Callable[[Mapping[str, float]], float] | None
    ) -> None:
        self._talk, self._counted, self._loss = talk, rows, loss
        self._torch = any(hasattr(value, "detach") for value in model.values())
        self._first = {name: copied(value) for name, value in model.items()}

    def __del__(self) -> None:
        self._talk.end()

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

    def _given(self, model: Mapping[str, Any]) -> Any:
        params: dict[str, Any] = {}
        for name, like in self._first.items():
            value = np.asarray(model[name]).reshape(like.shape)
            params[name] = (np.rint(value) if like.dtype.kind in "iu" else value).astype(like.dtype)
        if self._torch:
            import torch

            params = {name: torch.from_numpy(value) for name, value in params.items()}
        kind = _module().FLModel
        # FLARE counts rounds from 0.
        return kind(params=params, current_round=None if self.round is None else self.round - 1, total_rounds=self.rounds)

    def train(self, start: Arrays, training: Training) -> Update:
        with turn(), seeded(training.seed % (1 << 63)):
            found = self._talk.ask("train", self._given(start))
        if not found.params:
            raise ValueError("the script sent a model without `params` for a training")
        sent = {name: copied(value) for name, value in found.params.items()}
        missing = [name for name in self._first if name not in sent]
        if missing:
            raise ValueError(f"the script sent no {missing[0]!r}; it sent {', '.join(sorted(sent))}")
        if str(getattr(found.params_type, "value", found.params_type)).upper().endswith("DIFF"):
            sent = {name: np.asarray(start[name]).reshape(value.shape) + value for name, value in sent.items()}
        metrics = _numbers(found.metrics)
        steps = (found.meta or {}).get("NUM_STEPS_CURRENT_ROUND")
        more = {"steps": float(steps)} if isinstance(steps, (int, float)) else {}
        return Update(model={name: sent[name] for name in self._first}, metrics=metrics | more | {"loss": metrics.get("loss", math.nan)})

    def evaluate(self, model: Arrays, split: Split, personal: Arrays) -> Mapping[str, float]:
        if split != "test":
            raise ValueError(f"a script of FLARE measures its own held-out rows, and not its {split} rows: use another strategy, or a rota.Learner")
        with turn(), seeded(0):
            metrics = _numbers(self._talk.ask("validate", self._given(model)).metrics)
        if self._loss is not None:
            metrics["loss"] = float(self._loss(metrics))
        return metrics


def _numbers(metrics: Mapping[str, Any] | None) -> dict[str, float]:
    return {name: float(value) for name, value in (metrics or {}).items()}
