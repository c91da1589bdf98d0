"""Finds and runs the program `rota`."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


class Interrupted(KeyboardInterrupt):
    """What the program computed was interrupted. Where nobody catches it, a line says so: where in this package it was
    tells nobody anything."""


def _said(plain: Callable[..., Any]) -> Callable[..., Any]:
    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if issubclass(kind, Interrupted):
            print(error, file=sys.stderr)
        else:
            plain(kind, error, trace)

    return hook


sys.excepthook = _said(sys.excepthook)

#: Seconds that the program has to end after it is asked to.
ENDING = 5.0


class RotaError(RuntimeError):
    """The program `rota` ended with an error; its text is what the program said.

    Where the program printed a document before it ended, `summary` has it: what `simulate` or `compare`
    would have returned, of a federation whose models are of no use, for instance. `__cause__` is the
    exception of a learner of this process, where one led to the error.
    """

    def __init__(self, said: str, output: str = "") -> None:
        super().__init__(said)
        #: What the program wrote to standard output.
        self.output = output
        #: The document in it, or `None`.
        self.summary: Any = None


def binary() -> str:
    """The path of the program: `$ROTA_BIN`, or the one that was installed with this package, in a folder or an
    environment, or the one on the path.

    Raises `RotaError` where there is none.
    """
    name = "rota.exe" if os.name == "nt" else "rota"
    # Beside the package lies the one that `pip install --target` has put there.
    places = [os.environ.get("ROTA_BIN"), str(Path(__file__).resolve().parents[1] / "bin" / name)]
    for scheme in [None, f"{os.name}_user"]:
        try:
            folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        except KeyError:
            continue
        places.append(str(Path(folder) / name))
    places.append(str(Path(sys.executable).parent / name))
    places.append(shutil.which(name))
    for place in places:
        if place and Path(place).is_file():
            return place
    raise RotaError(
        "the program rota is not there: install the wheel that `just wheel` builds, or set ROTA_BIN"
    )


def command(arguments: Sequence[str], *, text: str | None = None, inside: str | None = None) -> str:
    """Runs `rota` with these arguments, with `text` as its standard input, and returns its output. What it exchanges with
    learners lies in a folder `inside` of this one, by default that for temporary files.

    Raises `RotaError` with the program's own words where it fails.
    """
    # What it exchanges with learners goes with this folder, however it ends.
    with TemporaryDirectory(prefix="rota-", dir=inside) as folder, subprocess.Popen(
        [binary(), *arguments],
        env=os.environ | {"TMPDIR": folder},
        stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            output, said = process.communicate(text)
        except BaseException:
            # Interrupted: the program removes what it has in files, and what it started.
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(ENDING)
            process.kill()
            raise
    if process.returncode != 0:
        raise RotaError(said.strip() or f"rota ended with {process.returncode}", output)
    return output


@contextlib.contextmanager
def orderly(what: str = "a simulation") -> Iterator[None]:
    """Ends a simulation, or something else, in order where this process is asked to end (SIGTERM): folders for exchange
    go, as they do after an interruption. In other threads than the first, and where the process has a handler of its
    own, nothing changes."""
    first = threading.current_thread() is threading.main_thread()
    if not first or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def ended(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, ended)
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"{what} was interrupted") from None
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def document(
    arguments: Sequence[str], *, text: str | None = None, kind: Callable[[Any], Any] = lambda it: it, inside: str | None = None
) -> Any:
    """Runs `rota` with these arguments and reads its output as JSON, as a `kind` of document.

    Where the program fails after it has printed one, the document is the `summary` of the error.
    """
    try:
        return kind(json.loads(command(arguments, text=text, inside=inside)))
    except RotaError as error:
        with contextlib.suppress(ValueError, TypeError):
            error.summary = kind(json.loads(error.output))
        raise
