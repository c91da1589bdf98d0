"""The loop that serves the learner protocol."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ._frames import Connection, Listening, frame_of
from ._learner import Factory, Given, Learner, Modifier, Silo, Split, Stopped, Tensor, Training, numbers
from ._resumed import Recalled
from ._shelf import Shelf
from ._stdio import taken
from ._tensors import Arrays, read_given, travels, write_tensors
from ._turn import seeded
from ._where import defined, said

PROTOCOL = 1
#: Letters of a reason; some exceptions quote whole arrays.
LONGEST = 10_000
#: Seconds between two signs of a training.
BETWEEN = 0.05
#: Seconds that a program has to end after the silo is gone.
ENDING = 10.0


def _given(path: str | None) -> Arrays:
    return read_given(path) if path else {}


def _numbers(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """JSON has no NaN: what is not finite is null."""
    return {name: value if math.isfinite(value) else None for name, value in numbers(metrics).items()}


class _Session:
    """One silo and its learner."""

    def __init__(self, silo: Silo, learner: Learner, recalled: Recalled | None = None, patient: bool = False) -> None:
        self.silo, self.learner, self.recalled = silo, learner, recalled
        #: Whether nobody waits for a sign of a training that is over at once.
        self._patient = patient
        self._said = False
        self._told = -math.inf

    def opened(self) -> dict[str, Any]:
        if self.silo.given is None:
            self.learner.check()
        rows, frozen = self.learner.rows(), self.learner.frozen()
        said: dict[str, Any] = {} if frozen is None else {"frozen": frozen, "held": dict(self.learner.held())}
        if columns := list(self.learner.columns()):
            said["columns"] = columns
        if classes := list(self.learner.classes()):
            said["classes"] = classes
        capabilities = {
            "gradients": self.learner.gradients,
            "initial": type(self.learner).initial is not Learner.initial,
            # Also of a learner that makes up no batch: the silo then says that it was not compared.
            "try": self.silo.given is None,
        }
        return said | {
            "type": "opened",
            "layout": [tensor.document() for tensor in self.learner.tensors()],
            "personal": [tensor.document() for tensor in self.learner.personal()],
            "rows": {"train": rows.train, "validation": rows.validation, "test": rows.test},
            "capabilities": [name for name, able in capabilities.items() if able],
            "outputs": self.learner.outputs_loss,
        }

    def initial(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["into"]:
            write_tensors(request["into"], self.learner.initial(request["seed"]))
        if request["personal_into"]:
            write_tensors(request["personal_into"], self.learner.initial_personal(request["seed"]))
        return {"type": "done"}

    def tried(self, request: dict[str, Any]) -> dict[str, Any]:
        inputs: Any = ()
        outputs: Any = ()
        if type(self.learner).tried is not Learner.tried:
            inputs, outputs = self.learner.tried(_given(request["model"]))
        arrays = {"inputs": np.asarray(inputs, np.float32), "outputs": np.asarray(outputs, np.float32).reshape(-1)}
        write_tensors(request["into"], arrays)
        return {"type": "done"}

    def _rows(self, split: Split, request: dict[str, Any]) -> int:
        """Number of rows of a part, whoever has them."""
        return len(self.silo.rows(split)[0]) if request["rows"] else getattr(self.learner.rows(), split)

    def train(self, request: dict[str, Any], connection: Connection) -> dict[str, Any]:
        if self.recalled is None:
            return self._train(request, connection)
        key = self.recalled.key(request)
        said = self.recalled.answer(key, request)
        if said is None:
            said = self._train(request, connection)
            if said["type"] == "trained":
                self.recalled.keep(key, request, said)
        return said

    def _train(self, request: dict[str, Any], connection: Connection) -> dict[str, Any]:
        if self._patient:
            self._told = time.monotonic()

        def say(step: int, steps: int, loss: float | None) -> None:
            if connection.is_stopped():
                raise Stopped
            # Of many short steps some are told.
            if (now := time.monotonic()) - self._told < BETWEEN:
                return
            self._told = now
            known = loss is not None and math.isfinite(loss)
            said = {"type": "progress", "step": step, "steps": steps, "loss": loss if known else None}
            connection.say(frame_of(said))
            if connection.is_stopped():
                raise Stopped

        modifier = request["modifier"]
        how = request["training"]["optimiser"]
        training = Training(
            epochs=request["training"]["epochs"],
            batch=request["training"]["batch"],
            optimiser=how["name"],
            rate=how["rate"],
            momentum=how.get("momentum", 0.0),
            weight_decay=how.get("weight-decay", 0.0),
            seed=request["seed"],
            personal=_given(request["personal"]),
            modifier=modifier
            and Modifier(
                mu=modifier["mu"],
                anchor=_given(modifier["anchor"]),
                shift=_given(modifier["shift"]),
                frozen=frozenset(modifier["frozen"]),
            ),
            round=self.learner.round,
            rounds=self.learner.rounds,
            _say=say,
        )
        try:
            update = self.learner.train(_given(request["start"]), training)
        except Stopped:
            return {"type": "stopped"}
        if update is None:
            raise ValueError(f"`train` gave None, it must return a rota.Update{defined(type(self.learner).train)}")
        write_tensors(request["into"], travels(update.model))
        if request["personal_into"]:
            write_tensors(request["personal_into"], update.personal or training.personal)
        declared = self._rows("train", request)
        samples = declared if update.samples is None else int(update.samples)
        self._question(samples, declared)
        return {"type": "trained", "samples": samples, "metrics": _numbers(update.metrics)}

    def _question(self, samples: int, declared: int) -> None:
        """Compares the number of rows of a training with that of the learner: it is the weight of the
        model in a mean such as FedAvg's, and a wrong weight shows nowhere."""
        if samples == declared or declared == 0:
            return
        who = f"silo {self.silo.name!r}"
        if samples > declared:
            raise ValueError(
                f"`samples` is {samples}, and {who} has {declared} training rows: count each row once, in one "
                "epoch, or correct `rows()`"
            )
        if 2 * samples < declared and not self.learner.some_rows:
            raise ValueError(
                f"`samples` is {samples}, and {who} has {declared} training rows; `samples` is the weight of this "
                "model in the federation's: count rows (not batches, keys or steps), or set "
                "`some_rows = True` in the learner if it trains on so few of them on purpose"
            )
        if not self._said:
            self._said = True
            print(
                f"note: {who} trained on {samples} of its {declared} training rows, so its weight in the "
                f"federation is {samples}",
                file=sys.stderr,
            )

    def evaluate(self, request: dict[str, Any]) -> dict[str, Any]:
        split: Split = request["split"]
        model, personal = _given(request["model"]), _given(request["personal"])
        metrics = self.learner.evaluate(model, split, personal)
        samples = self._rows(split, request)
        return {"type": "measured", "samples": int(samples), "metrics": _numbers(metrics)}

    def outputs(self, request: dict[str, Any]) -> dict[str, Any]:
        model, personal = _given(request["model"]), _given(request["personal"])
        found = self.learner.outputs(model, request["split"], personal)
        outputs, targets = np.asarray(found.outputs), np.asarray(found.targets)
        write_tensors(
            request["into"],
            {
                "outputs": outputs.reshape(len(outputs), -1),
                "targets": targets.reshape(len(targets), -1),
            },
            wide=True,
        )
        return {"type": "done"}


def talk(
    factory: Factory,
    connection: Connection,
    *,
    turn: Callable[[], AbstractContextManager[Any]] = nullcontext,
    seeds: bool = False,
    failed: Callable[[BaseException], None] | None = None,
    shelf: Shelf | None = None,
    recalled: Recalled | None = None,
) -> None:
    """Serves silos until the other side of the connection is gone. Each request waits for its `turn`; `failed` gets what a
    learner raises.
    With `seeds` a learner that seeds nothing draws by the seed of its training, and elsewhere by that of its silo: so the
    same question has the same answer, in whatever order silos are asked. Without it, silos draw from the process.
    Learners put on the `shelf` what they need not hold between their turns. Trainings that are `recalled` are not
    carried out again."""
    sessions: dict[int, _Session] = {}
    process = os.getpid()
    while (request := connection.hear()) is not None:
        # A `stop` that came after the end of its training stops no other.
        connection.go_on()
        try:
            with turn():
                frame = frame_of(_answer(factory, sessions, request, connection, seeds, recalled))
                if shelf is not None and (session := sessions.get(request.get("silo", -1))) is not None:
                    session.learner._rest(shelf, session.silo.silos)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # The silo is told, and goes on without this training.
            if os.getpid() != process:
                raise  # In a fork, which has nobody to tell.
            if isinstance(error, OSError) and connection.is_stopped(now=True):
                return  # The silo is gone in the middle of it.
            traceback.print_exc(file=sys.stderr)
            if failed is not None:
                failed(error)
            frame = frame_of({"type": "failed", "why": said(error, LONGEST)})
        try:
            connection.say(frame)
        except (OSError, ValueError):  # The silo is gone, or the stream is closed.
            return


def _answer(
    factory: Factory,
    sessions: dict[int, _Session],
    request: dict[str, Any],
    connection: Connection,
    seeds: bool,
    recalled: Recalled | None,
) -> dict[str, Any]:
    kind = request["type"]
    if kind == "hello":
        if request["protocol"] != PROTOCOL:
            raise ValueError(
                f"{request['program']} speaks version {request['protocol']} of the learner protocol, "
                f"this package version {PROTOCOL}"
            )
        return {"type": "hello", "protocol": PROTOCOL, "name": "rota for Python"}
    if kind == "open":
        given = request["rows"]
        silo = Silo(
            name=request["name"],
            place=request["silo"],
            silos=request["silos"],
            seed=request["seed"],
            layout=[
                Tensor(one["name"], tuple(one["shape"]), one["role"], one.get("initial", 0.0))
                for one in request["layout"]
            ],
            given=given and Given(given["features"], given["loss"]),
            columns=list(request.get("columns", ())),
            classes=list(request.get("classes", ())),
        )
        with seeded(silo.seed) if seeds else nullcontext():
            session = _Session(silo, factory(silo), recalled, connection.patient)
            sessions[silo.place] = session
            return session.opened()
    session = sessions[request["silo"]]
    session.silo._rows = request.get("rows")
    # A learner may serve several silos.
    session.learner.round, session.learner.rounds = request.get("round"), request.get("rounds")
    seeds = seeds and not (session.learner._seeds and kind in ("train", "evaluate"))
    with seeded(request["seed"] if kind == "train" else session.silo.seed) if seeds else nullcontext():
        return _asked(session, kind, request, connection)


def _asked(session: _Session, kind: str, request: dict[str, Any], connection: Connection) -> dict[str, Any]:
    if kind == "initial":
        return session.initial(request)
    if kind == "try":
        return session.tried(request)
    if kind == "train":
        return session.train(request, connection)
    if kind == "evaluate":
        return session.evaluate(request)
    if kind == "outputs":
        return session.outputs(request)
    raise ValueError(f"there is no request {kind!r} in version {PROTOCOL} of the protocol")


def serve(factory: Factory | Learner) -> None:
    """Runs as the program of a silo: serves learners on standard input and output until the silo
    closes them.

    `factory` makes the learner of a silo; a learner serves every silo. What is printed goes to
    standard error, because standard output belongs to the protocol: from `import rota` on where a
    silo has started the program, from here on elsewhere.
    """
    # An interruption from the terminal is for the silo, which ends this program in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    read, write = taken()
    make = (lambda _: factory) if isinstance(factory, Learner) else factory
    # Without a buffer, which a fork could copy in the middle of a message.
    talk(make, Listening(os.fdopen(read, "rb", buffering=0), os.fdopen(write, "wb"), _end_soon))


def _end_soon() -> None:
    """Ends this program, also where a training goes on that reports no progress."""
    timer = threading.Timer(ENDING, os._exit, [1])
    timer.daemon = True
    timer.start()
