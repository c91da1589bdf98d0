"""Simulations and comparisons, from the program `rota`."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from . import _notes, _toml, _turn
from ._binary import RotaError, document, orderly
from ._caller import OnRound, RoundDone, called
from ._exchange import content_of, folder_for
from ._frames import Looking
from ._learner import Factory, Learner, Silo
from ._resumed import MODELS, Folder, Recalled
from ._shelf import Shelf
from ._strategy import Strategy, options_of
from ._summary import Comparison, Summary, kept_in
from ._talk import ENDING, talk

Scenario = str | os.PathLike[str] | Mapping[str, Any]
Program = str | Sequence[str] | Factory | Learner


def task(learner: Factory | Learner, **agreed: Any) -> dict[str, Any]:
    """The task of a scenario for a learner of this process: the tensors of its model, and what is `agreed` besides, such
    as `metric="accuracy"`."""
    made = learner if isinstance(learner, Learner) else learner(Silo("silo 1", place=0, silos=1, seed=0, layout=[]))
    said: dict[str, Any] = {"tensors": [tensor.document() for tensor in made.tensors()]}
    columns, classes = list(made.columns()), list(made.classes())
    said |= ({"columns": columns} if columns else {}) | ({"classes": classes} if classes else {})
    return {"external": said | agreed}


@contextlib.contextmanager
def _file(scenario: Scenario) -> Iterator[str]:
    """The scenario as a file, or the name of a built-in one."""
    if not isinstance(scenario, Mapping):
        yield os.fspath(scenario)
        return
    # In the folder that paths in it are relative to; where nobody may write there, in that for temporary files.
    try:
        handle, path = tempfile.mkstemp(prefix=".rota-", suffix=".toml", dir=os.getcwd())
    except OSError:
        handle, path = tempfile.mkstemp(prefix=".rota-", suffix=".toml")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_toml.written(scenario))
        yield path
    finally:
        os.unlink(path)


@contextlib.contextmanager
def _served(
    learner: Factory | Learner, errors: list[BaseException], recalled: Recalled | None, level: _turn.Level
) -> Iterator[str]:
    """Serves a learner of this process at a socket that only this user can open, and notes what it
    raises. Of the learners of a `level` one at a time has its turn, however many simulations run in this process."""
    make: Factory = (lambda _: learner) if isinstance(learner, Learner) else learner
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
            _turn.use(level)
            # The program may be gone before what was written to it has arrived.
            with contextlib.suppress(OSError), connection:
                talk(make, Looking(connection), turn=_turn.turn, seeds=True, failed=errors.append, shelf=shelf, recalled=recalled)

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
            level.give_back()


@contextlib.contextmanager
def _program(learner: Program | None, level: _turn.Level, recalled: Recalled | None = None) -> Iterator[list[str]]:
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
            with _served(learner, errors, recalled, level) as place:
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


def _shown(on_round: OnRound | None, progress: bool) -> OnRound | None:
    """What is called after every round, with a line on standard error where progress is wanted."""
    if not progress:
        return on_round

    def both(done: RoundDone) -> Any:
        loss = "" if done.loss is None else f", training loss {done.loss:.4g}"
        print(f"round {done.number}/{done.rounds}{loss}", file=sys.stderr, flush=True)
        return None if on_round is None else on_round(done)

    return both


def _rules(strategies: Sequence[Any]) -> tuple[dict[str, Strategy], list[str]]:
    """Strategies of one's own by their names, and the options that name them."""
    rules: dict[str, Strategy] = {}
    options: list[str] = []
    for one in strategies:
        if isinstance(one, str):
            continue
        if isinstance(one, type) and issubclass(one, Strategy):
            raise TypeError(f"`strategy` is a class: make one of it, {one.__name__}()")
        if not isinstance(one, Strategy):
            raise TypeError(f"a strategy is {type(one).__name__}: give a name, or an object of a class that derives from rota.Strategy")
        said = options_of(one, list(rules))
        rules[said["rule"]] = one
        options += ["--rule", json.dumps(said)]
    return rules, options


def _content(scenario: Scenario) -> Any:
    """What a scenario says: the text of a file, the content of a dictionary, or a name."""
    if isinstance(scenario, Mapping):
        return scenario
    try:
        with open(scenario, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return os.fspath(scenario)


@contextlib.contextmanager
def _because(errors: Sequence[BaseException]) -> Iterator[None]:
    """Errors of the program come from those of the institution's code."""
    try:
        yield
    except RotaError as error:
        if errors:
            raise error from _cause(error, errors)
        raise


def simulate(
    scenario: Scenario = "diabetes",
    *,
    learner: Program | None = None,
    seed: int | None = None,
    rounds: int | None = None,
    silos: int | None = None,
    strategy: str | Strategy | None = None,
    data: str | os.PathLike[str] | None = None,
    references: bool = True,
    mesh: str = "auto",
    keep: str | os.PathLike[str] | None = None,
    on_round: OnRound | None = None,
    progress: bool = False,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
) -> Summary:
    """Runs a federation in one process and returns its summary.

    `scenario` is the name of a built-in one, a TOML file, or a dictionary with the content of
    such a file. `learner` trains the models of all silos: a command, such as
    `"python3 learner.py"`, or in this process a `Learner` or a function from a `Silo` to one.

    `strategy` takes the place of the scenario's: a name, with the scenario's training and its own defaults, or a
    `Strategy` of this process.

    `mesh` is the network between the silos, as `rota simulate --mesh` has it. `"auto"` is `"direct"`: no
    messages, leads or votes, and the same models to the bit, so that `summary` lacks what only they have;
    but `"virtual"`, the simulated network, where the scenario has faults, links or times of work.
    `summary["mesh"]` says which it was.

    With `keep="models"` the models of all rounds are kept as long as the summary is, for `summary.model(silo)`; any other
    text is a new folder in which they stay. `on_round(done)` is called with a `RoundDone` after every round, and ends the
    simulation with this round if it returns `False`; `progress=True` prints a line per round.

    `out` is a new folder in which the summary stays, and with `keep="models"` the models. With `resume=True` a simulation
    in it that was interrupted goes on: trainings of a learner of this process that were carried out are not repeated, and
    `on_round` is told of their rounds once more. One that had come to its end is read. The learner's code is not compared.

    Raises `RotaError` with what the program says where it fails; `summary` of the error has what the
    program printed before, and its cause is the exception of the learner or the strategy where there is one. Trainings
    that fail are missing in their rounds: a warning says so, and `summary["training_failed"]` lists them.
    """
    summary: Summary
    _notes.again()
    errors: list[BaseException] = []
    rules, told = _rules([] if strategy is None else [strategy])
    watch = _shown(on_round, progress)
    if resume and out is None:
        raise ValueError("`resume` goes with `out`, the folder of the simulation")
    place = None
    if out is not None:
        asked: dict[str, Any] = dict(seed=seed, rounds=rounds, silos=silos, data=data, mesh=mesh, references=references, keep=keep, rules=told)
        asked |= {"scenario": _content(scenario), "strategy": strategy if isinstance(strategy, str) else None}
        asked |= {"learner": learner if isinstance(learner, (str, Sequence)) else None}
        place = Folder(out, asked, resume)
        if (before := place.finished()) is not None:
            summary = Summary(before)
            if keep is not None:
                kept_in(summary, place.path / MODELS if keep == "models" else keep, None)
            return summary
    recalled = place.recalled() if place else None
    held = TemporaryDirectory(prefix="rota-models-") if keep == "models" and place is None else None
    try:
        level = _turn.inner()
        with orderly(), _because(errors), called(rules, watch, errors, level) as caller, _file(scenario) as file, _program(learner, level, recalled) as program:
            named = strategy if isinstance(strategy, str) else None
            folder: Any = os.path.join(held.name, MODELS) if held else place.path / MODELS if place and keep == "models" else keep
            options = _options(seed=seed, rounds=rounds, silos=silos, strategy=named, data=data, mesh=mesh, keep=folder)
            rest = [] if references else ["--no-references"]
            asks = [*caller, *told, *(["--watched"] if watch else [])]
            arguments = ["simulate", file, "--json", "--quiet", *options, *program, *asks, *rest]
            summary = document(arguments, kind=Summary, inside=folder_for(content_of(scenario), silos))
        if errors:
            raise errors[0]
        if place:
            place.finish(summary)
    except BaseException:
        if held is not None:
            held.cleanup()
        raise
    if folder is not None:
        kept_in(summary, folder, held)
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
    strategies: str | Strategy | Sequence[str | Strategy] = (),
    seeds: int | None = None,
    learner: Program | None = None,
    threads: int | None = None,
    data: str | os.PathLike[str] | None = None,
    quick: bool = False,
    tuned: bool = True,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    shard: str | None = None,
) -> Comparison:
    """Compares strategies on the same data over several seeds.

    `experiment` is the name of a built-in experiment, a TOML file of an experiment or a scenario,
    or a dictionary with a scenario. `learner` as in `simulate`. `strategies` are names or labels of the experiment's, and
    objects of `Strategy`; by default all of the experiment.

    Settings and the round that is measured are chosen on validation rows, which the learner then needs; with
    `tuned=False` settings and the last round are taken as they are. `out` is a folder of results, from which `resume=True`
    goes on; `shard="2/8"` runs the second eighth, and `merge` puts the parts together.
    """
    _notes.again()
    errors: list[BaseException] = []
    chosen = [strategies] if isinstance(strategies, (str, Strategy)) else list(strategies)
    rules, told = _rules(chosen)
    level = _turn.inner()
    with orderly(), _because(errors), called(rules, None, errors, level) as caller, _program(learner, level) as program:
        with _file(experiment) as file:
            options = _options(seeds=seeds, threads=threads, data=data, out=out, shard=shard)
            mine = iter(rules)
            labels = [one if isinstance(one, str) else next(mine) for one in chosen]
            names = ["--strategies", ",".join(labels)] if labels else []
            flags = {"--quick": quick, "--untuned": not tuned, "--resume": resume}
            rest = [flag for flag, wanted in flags.items() if wanted]
            arguments = ["compare", file, "--json", "--quiet", *names, *options, *program, *caller, *told, *rest]
            here = isinstance(experiment, Mapping), callable(learner) or isinstance(learner, Learner)
            _called_so(out, here, file, program[-1].removeprefix("unix:") if program else "")
            try:
                found: Comparison = document(arguments, kind=Comparison, inside=folder_for(content_of(experiment), None))
            finally:
                _called_so(out, here)
            return found


def _called_so(
    out: str | os.PathLike[str] | None, here: tuple[bool, bool], file: str = "scenario.toml", socket: str = "this process"
) -> None:
    """Gives the file and the socket of a comparison in a folder these names. They are others in every process where the
    scenario is a dictionary and the learner of this process, and tell nothing: parts of one comparison have the same."""
    if out is None:
        return
    path = Path(out) / "experiment.json"
    try:
        origin = json.loads(path.read_text(encoding="utf-8"))
        if here[0]:
            origin["file"] = os.path.join(origin["folder"], os.path.basename(file))
        if here[1]:
            origin["choices"]["learner"]["socket"] = socket
    except (OSError, ValueError, LookupError, TypeError):
        return
    part = path.with_suffix(".part")
    part.write_text(json.dumps(origin), encoding="utf-8")
    os.replace(part, path)


def merge(parts: Sequence[str | os.PathLike[str]], *, out: str | os.PathLike[str] | None = None) -> Comparison:
    """The comparison of which these folders have the parts, that `compare(…, shard=, out=)` wrote."""
    for part in parts:
        # Those of a process that was killed.
        _called_so(part, _names_of(part))
    found: Comparison = document(
        ["compare", "merge", *(os.fspath(part) for part in parts), "--json", *_options(out=out)], kind=Comparison
    )
    return found


def _names_of(part: str | os.PathLike[str]) -> tuple[bool, bool]:
    """Whether the scenario of a part was a dictionary, and its learner one of a process."""
    try:
        origin = json.loads((Path(part) / "experiment.json").read_text(encoding="utf-8"))
        socket = (origin["choices"].get("learner") or {}).get("socket") or ""
        return os.path.basename(origin["file"]).startswith(".rota-"), os.path.basename(os.path.dirname(socket)).startswith("rota-")
    except (OSError, ValueError, LookupError, TypeError):
        return False, False
