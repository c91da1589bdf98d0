"""Simulations and comparisons, from the program `rota`."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _toml, _turn
from ._binary import RotaError, document
from ._learner import Factory, Learner
from ._shelf import Shelf
from ._talk import ENDING, talk

Scenario = str | os.PathLike[str] | Mapping[str, Any]
Program = str | Sequence[str] | Factory | Learner


class Summary(dict[str, Any]):
    """The summary of a simulation: a plain dictionary, as `rota simulate --json` prints it, with
    a few views of it."""

    def silos(self) -> Any:
        """The silos and their results: a pandas table, or a list of dictionaries without pandas."""
        return _table(self["silos"])

    def curves(self, what: str = "metric") -> dict[str, np.ndarray[Any, Any]]:
        """Values by round of each silo: `"metric"`, the held-out one, or `"loss"`, that of training."""
        rounds = max((point["round"] for point in self["curves"]), default=0)
        curves: dict[str, np.ndarray[Any, Any]] = {}
        for point in self["curves"]:
            values = curves.setdefault(point["silo"], np.full(rounds, np.nan))
            if point[what] is not None:
                values[point["round"] - 1] = point[what]
        return curves

    def plot(self, what: str = "metric") -> Any:
        """Draws `curves` with matplotlib and returns the axes."""
        axes = _axes()
        for silo, values in self.curves(what).items():
            axes.plot(range(1, len(values) + 1), values, marker=".", label=silo)
        unit = self["metric"]["unit"]
        name = self["metric"]["name"] + (f" ({unit})" if unit else "")
        axes.set_xlabel("round")
        axes.set_ylabel(f"{name}, held out" if what == "metric" else "training loss")
        axes.legend()
        return axes


class Comparison(dict[str, Any]):
    """The result of a comparison: a plain dictionary, as `rota compare --json` prints it."""

    def table(self) -> Any:
        """One row per variant, strategy and metric, with mean and standard deviation over the seeds
        of the means over silos and over rows, and of the worst silo: a pandas table, or a list of
        dictionaries without pandas."""
        rows = []
        for variant in self["variants"]:
            for strategy in variant["strategies"]:
                for metric in strategy["metrics"]:
                    row = {"variant": variant["name"], "strategy": strategy["label"], "metric": metric["metric"]}
                    for over in ["silos", "rows", "worst"]:
                        found = (metric["inside"] or {}).get(over) or {"mean": None, "sd": None}
                        row |= {over: found["mean"], f"{over} sd": found["sd"]}
                    rows.append(row)
        return _table(rows)


def _table(rows: Sequence[Mapping[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        return [dict(row) for row in rows]
    return pandas.json_normalize(list(rows))


def _axes() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise RotaError("figures need matplotlib: pip install matplotlib") from error
    _, axes = pyplot.subplots()
    return axes


@contextlib.contextmanager
def _file(scenario: Scenario) -> Iterator[str]:
    """The scenario as a file, or the name of a built-in one."""
    if not isinstance(scenario, Mapping):
        yield os.fspath(scenario)
        return
    # In the folder that paths in it are relative to.
    handle, path = tempfile.mkstemp(prefix=".rota-", suffix=".toml", dir=os.getcwd())
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_toml.written(scenario))
        yield path
    finally:
        os.unlink(path)


@contextlib.contextmanager
def _served(learner: Factory | Learner, errors: list[BaseException]) -> Iterator[str]:
    """Serves a learner of this process at a socket that only this user can open, and notes what it
    raises."""
    make: Factory = (lambda _: learner) if isinstance(learner, Learner) else learner
    # One at a time in this process, however many simulations run in it.
    lock = _turn.inner()
    with tempfile.TemporaryDirectory(prefix="rota-") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(folder, "s")
        listener.bind(path)
        listener.listen()
        served: list[tuple[socket.socket, threading.Thread]] = []
        over = threading.Event()
        shelf = Shelf(folder)

        def accept() -> None:
            while True:
                connection, _ = listener.accept()
                if over.is_set():
                    connection.close()
                    return
                thread = threading.Thread(target=speak, args=(connection,), daemon=True)
                served.append((connection, thread))
                thread.start()

        def speak(connection: socket.socket) -> None:
            _turn.use(lock)
            with connection, connection.makefile("rb") as read, connection.makefile("wb") as write:
                talk(make, read, write, turn=_turn.turn, streams=_turn.Stream, failed=errors.append, shelf=shelf)

        accepts = threading.Thread(target=accept, daemon=True)
        accepts.start()
        try:
            yield f"unix:{path}"
        finally:
            over.set()
            with socket.socket(socket.AF_UNIX) as last:
                last.connect(path)
            accepts.join()
            for connection, thread in served:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                # A training that reports no progress goes on to its end.
                thread.join(ENDING)


@contextlib.contextmanager
def _program(learner: Program | None) -> Iterator[list[str]]:
    """The options for a learner."""
    if learner is None:
        yield []
    elif isinstance(learner, str):
        yield ["--learner", learner]
    elif isinstance(learner, Sequence):
        if any(" " in word for word in learner):
            raise ValueError(
                f"a word of the command has a space in it ({shlex.join(learner)}): write it under "
                "`learner` in the scenario"
            )
        yield ["--learner", " ".join(learner)]
    else:
        errors: list[BaseException] = []
        try:
            with _served(learner, errors) as place:
                yield ["--learner", place]
        except RotaError as error:
            if errors:
                raise error from _cause(error, errors)
            raise


def _cause(error: RotaError, errors: Sequence[BaseException]) -> BaseException:
    """The exception of a learner that the error quotes, or else the last one."""
    return next((one for one in errors if str(one) and str(one) in str(error)), errors[-1])


def _options(**given: Any) -> list[str]:
    options = []
    for name, value in given.items():
        if value is not None:
            options += [f"--{name.replace('_', '-')}", os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    return options


def simulate(
    scenario: Scenario = "diabetes",
    *,
    learner: Program | None = None,
    seed: int | None = None,
    rounds: int | None = None,
    silos: int | None = None,
    strategy: str | None = None,
    data: str | os.PathLike[str] | None = None,
    references: bool = True,
    mesh: str = "auto",
) -> Summary:
    """Runs a federation in one process and returns its summary.

    `scenario` is the name of a built-in one, a TOML file, or a dictionary with the content of
    such a file. `learner` trains the models of all silos: a command, such as
    `"python3 learner.py"`, or in this process a `Learner` or a function from a `Silo` to one.

    `mesh` is the network between the silos, as `rota simulate --mesh` has it. `"auto"` is `"direct"`: no
    messages, leads or votes, and the same models to the bit, so that `summary` lacks what only they have;
    but `"virtual"`, the simulated network, where the scenario has faults, links or times of work.
    `summary["mesh"]` says which it was.

    Raises `RotaError` with what the program says where it fails; `summary` of the error has what the
    program printed before, and its cause is the learner's own exception where there is one. Trainings that fail are missing in
    their rounds: a warning says so, and `summary["training_failed"]` lists them.
    """
    summary: Summary
    with _file(scenario) as file, _program(learner) as program:
        options = _options(seed=seed, rounds=rounds, silos=silos, strategy=strategy, data=data, mesh=mesh)
        rest = [] if references else ["--no-references"]
        summary = document(["simulate", file, "--json", "--quiet", *options, *program, *rest], kind=Summary)
    if failed := summary["training_failed"]:
        first = failed[0]
        warnings.warn(
            f"{len(failed)} of the trainings failed and are missing in their rounds; the first, at "
            f"{first['silo']} in round {first['round']}: {first['reason']}",
            stacklevel=2,
        )
    return summary


def compare(
    experiment: Scenario,
    *,
    strategies: str | Sequence[str] = (),
    seeds: int | None = None,
    learner: Program | None = None,
    threads: int | None = None,
    data: str | os.PathLike[str] | None = None,
    quick: bool = False,
) -> Comparison:
    """Compares strategies on the same data over several seeds.

    `experiment` is the name of a built-in experiment, a TOML file of an experiment or a scenario,
    or a dictionary with a scenario. `learner` as in `simulate`.
    """
    with _program(learner) as program:
        with _file(experiment) as file:
            options = _options(seeds=seeds, threads=threads, data=data)
            chosen = [strategies] if isinstance(strategies, str) else strategies
            names = ["--strategies", ",".join(chosen)] if chosen else []
            rest = ["--quick"] if quick else []
            arguments = ["compare", file, "--json", "--quiet", *names, *options, *program, *rest]
            found: Comparison = document(arguments, kind=Comparison)
            return found
