"""Finds and runs the program `rota`."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


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
    """The path of the program: `$ROTA_BIN`, or the one that was installed with this package, or the
    one on the path.

    Raises `RotaError` where there is none.
    """
    name = "rota.exe" if os.name == "nt" else "rota"
    places = [os.environ.get("ROTA_BIN")]
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


def command(arguments: Sequence[str], *, text: str | None = None) -> str:
    """Runs `rota` with these arguments, with `text` as its standard input, and returns its output.

    Raises `RotaError` with the program's own words where it fails.
    """
    done = subprocess.run(
        [binary(), *arguments],
        input=text,
        stdin=None if text is not None else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip() or f"rota ended with {done.returncode}"
        raise RotaError(said, done.stdout)
    return done.stdout


def document(arguments: Sequence[str], *, text: str | None = None, kind: Callable[[Any], Any] = lambda it: it) -> Any:
    """Runs `rota` with these arguments and reads its output as JSON, as a `kind` of document.

    Where the program fails after it has printed one, the document is the `summary` of the error.
    """
    try:
        return kind(json.loads(command(arguments, text=text)))
    except RotaError as error:
        with contextlib.suppress(ValueError, TypeError):
            error.summary = kind(json.loads(error.output))
        raise
