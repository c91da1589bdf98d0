"""What a simulation keeps in a folder, so that one that was interrupted goes on."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ._binary import RotaError

_ASKED, _SUMMARY, _TRAININGS, MODELS = "asked.json", "summary.json", "trainings", "models"
#: Files of a question that its answer depends on; the others are those that it asks for.
_GIVEN = ("start", "personal", "rows")


class Recalled:
    """The trainings of a simulation. A question that was answered before the interruption has the same answer."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder

    def key(self, request: Mapping[str, Any]) -> str:
        """What tells a training from others: the contents of the files that it is given, and all else that is asked."""
        modifier = request["modifier"] or {}
        given = {name: _digest(request[name]) for name in _GIVEN}
        given |= {name: _digest(modifier.get(name)) for name in ("anchor", "shift")}
        plain = {name: request.get(name) for name in ("silo", "seed", "training", "round")}
        plain |= {name: modifier.get(name) for name in ("mu", "frozen")}
        return hashlib.sha256(json.dumps([given, plain], sort_keys=True).encode()).hexdigest()[:32]

    def answer(self, key: str, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to a training that was there before; its files are put where they are asked for."""
        try:
            said: dict[str, Any] = json.loads((self._folder / key).read_text(encoding="utf-8"))
            for into in ("into", "personal_into"):
                if request[into]:
                    shutil.copyfile(self._folder / f"{key}.{into}", request[into])
        except (OSError, ValueError):
            return None
        return said

    def keep(self, key: str, request: Mapping[str, Any], said: Mapping[str, Any]) -> None:
        """Keeps an answer. The last file is the one by which it counts."""
        for into in ("into", "personal_into"):
            if request[into]:
                shutil.copyfile(request[into], self._folder / f"{key}.{into}")
        part = self._folder / f"{key}.part"
        part.write_text(json.dumps(said), encoding="utf-8")
        os.replace(part, self._folder / key)


def _digest(path: str | None) -> str | None:
    if not path:
        return None
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if sys.version_info >= (3, 11) else hashlib.sha256(file.read()).hexdigest()


class Folder:
    """The folder of one simulation: what was asked, its trainings while it runs, and in the end its summary.

    Raises `RotaError` for a folder that is in use, or that has another simulation.
    """

    def __init__(self, path: str | os.PathLike[str], asked: Mapping[str, Any], resume: bool) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asked, indent=1, sort_keys=True, default=str)
        file = self.path / _ASKED
        if not resume and any(self.path.iterdir()):
            raise RotaError(f"{self.path} is not empty: give a new folder, or resume=True to go on with the simulation in it")
        if file.exists():
            before, now = json.loads(file.read_text(encoding="utf-8")), json.loads(text)
            other = next((name for name in sorted({*before, *now}) if before.get(name) != now.get(name)), None)
            if other is not None:
                key, was, is_now = _difference(other, before.get(other), now.get(other))
                raise RotaError(
                    f"the simulation in {self.path} was asked with {key} = {_short(was)}, and now it is {_short(is_now)}: "
                    "ask the same, or give a new folder"
                )
        elif any(self.path.iterdir()):
            raise RotaError(f"{self.path} has other files and no simulation: give a new folder")
        else:
            file.write_text(text, encoding="utf-8")

    def finished(self) -> dict[str, Any] | None:
        """The summary, if the simulation had come to its end."""
        try:
            found: dict[str, Any] = json.loads((self.path / _SUMMARY).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found

    def recalled(self) -> Recalled:
        """The trainings so far. Models of an interrupted run are written anew."""
        shutil.rmtree(self.path / MODELS, ignore_errors=True)
        return Recalled(self.path / _TRAININGS)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Writes the summary; the trainings are needed no more."""
        part = self.path / f"{_SUMMARY}.part"
        part.write_text(json.dumps(summary), encoding="utf-8")
        os.replace(part, self.path / _SUMMARY)
        shutil.rmtree(self.path / _TRAININGS, ignore_errors=True)


def _difference(key: str, before: Any, now: Any) -> tuple[str, Any, Any]:
    """The first place at which two values differ, as a path of keys and numbers, and what is there in both. Of texts, such
    as the files of scenarios, it is a line, which has its number."""
    if isinstance(before, dict) and isinstance(now, dict):
        one = next(name for name in sorted({*before, *now}) if before.get(name) != now.get(name))
        return _difference(f"{key}.{one}", before.get(one), now.get(one))
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        at = next(at for at, (was, is_now) in enumerate(zip(before, now)) if was != is_now)
        return _difference(f"{key}[{at}]", before[at], now[at])
    if isinstance(before, str) and isinstance(now, str) and "\n" in before + now:
        for number, (was, is_now) in enumerate(zip_longest(before.split("\n"), now.split("\n")), 1):
            if was != is_now:
                return f"{key}, line {number}", was, is_now
    return key, before, now


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}…"
