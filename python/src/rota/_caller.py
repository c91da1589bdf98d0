"""What the program asks this process in a simulation: to settle rounds by a strategy of its own, and whether to go on."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
import threading
import traceback
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ._strategy import Strategy, answer
from ._turn import Level
from ._where import said as where


@dataclass(frozen=True)
class RoundDone:
    """A round of a simulation that became final, for `on_round`."""

    #: The round, from 1, and the rounds in all.
    number: int
    rounds: int
    #: The training losses of the silos that took part, by name.
    losses: Mapping[str, float | None]

    @property
    def loss(self) -> float | None:
        """The mean training loss over these silos; `None` where there is none."""
        known = [loss for loss in self.losses.values() if loss is not None]
        return sum(known) / len(known) if known else None


#: Called after every round; `False` ends the simulation with it.
OnRound = Callable[[RoundDone], Any]


@contextlib.contextmanager
def called(
    strategies: Mapping[str, Strategy], on_round: OnRound | None, errors: list[BaseException], level: Level
) -> Iterator[list[str]]:
    """The options by which the program finds this process. Errors of the institution's code are noted. It draws from
    the generators as they were before the learners of `level` did."""
    if not strategies and on_round is None:
        yield []
        return

    def said(question: Mapping[str, Any]) -> dict[str, Any]:
        if question["type"] == "settle":
            return answer(strategies[question["rule"]], question)
        assert on_round is not None
        go_on = on_round(RoundDone(question["round"], question["rounds"], question["losses"]))
        return {"end": go_on is False}

    def asked(connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as read:
            size = int.from_bytes(read.read(4), "little")
            question = json.loads(read.read(size) or b"null")
            if question is None:
                return
            level.give_back()
            try:
                found = said(question)
            except BaseException as error:  # The program is told, and ends.
                errors.append(error)
                traceback.print_exc(file=sys.stderr)
                found = {"why": where(error), "end": True}
            body = json.dumps(found, allow_nan=False).encode()
            connection.sendall(len(body).to_bytes(4, "little") + body)

    with tempfile.TemporaryDirectory(prefix="rota-") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(folder, "c")
        listener.bind(path)
        listener.listen()
        over = threading.Event()

        def accept() -> None:
            while True:
                connection, _ = listener.accept()
                if over.is_set():
                    connection.close()
                    return
                with contextlib.suppress(OSError, ValueError):
                    asked(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield ["--caller", path]
        finally:
            over.set()
            with socket.socket(socket.AF_UNIX) as last:
                last.connect(path)
            thread.join(10.0)
