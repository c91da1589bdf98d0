"""Frames of the learner protocol, and the two ways to hear them."""

from __future__ import annotations

import json
import queue
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import numpy as np

LARGEST = 16 << 20
#: Seconds between two looks whether a training is still needed.
_GLANCE = 0.05


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is no number, text or list")


_ENCODER = json.JSONEncoder(allow_nan=False, default=_plain)


def frame_of(answer: Mapping[str, Any]) -> bytes:
    body = _ENCODER.encode(answer).encode()
    if len(body) > LARGEST:
        raise ValueError(f"a message of {len(body)} bytes is larger than a frame may be")
    return len(body).to_bytes(4, "little") + body


class Connection(ABC):
    """Frames to and from the silo."""

    #: Whether nobody waits for a sign of a training that is over at once.
    patient = False

    @abstractmethod
    def hear(self) -> dict[str, Any] | None:
        """The next question; `None` where the silo is gone."""

    @abstractmethod
    def say(self, frame: bytes) -> None:
        """Sends a frame."""

    @abstractmethod
    def is_stopped(self, *, now: bool = False) -> bool:
        """Whether nobody needs the training under way, as far as is known, or as it is `now`."""

    @abstractmethod
    def go_on(self) -> None:
        """Forgets a `stop` that came after the end of its training."""


class Listening(Connection):
    """A thread hears, so that `stop`, and the end of the silo, are heard during a training; it calls `gone` when the silo
    is."""

    def __init__(self, read: BinaryIO, write: BinaryIO, gone: Callable[[], None] | None) -> None:
        self._read, self._write, self._gone = read, write, gone
        self._requests: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._stop = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            while True:
                size = self._exactly(4)
                body = self._exactly(int.from_bytes(size, "little")) if size else b""
                if not body:
                    break
                request = json.loads(body)
                if request["type"] == "stop":
                    self._stop.set()
                else:
                    self._requests.put(request)
        except (OSError, ValueError):
            pass
        # The silo is gone: nobody needs a training.
        self._stop.set()
        self._requests.put(None)
        if self._gone is not None:
            self._gone()

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size > 0:
            part = self._read.read(size)
            if not part:
                return b""
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def hear(self) -> dict[str, Any] | None:
        return self._requests.get()

    def say(self, frame: bytes) -> None:
        self._write.write(frame)
        self._write.flush()

    def is_stopped(self, *, now: bool = False) -> bool:
        return self._stop.is_set()

    def go_on(self) -> None:
        self._stop.clear()


class Looking(Connection):
    """A socket that is looked at now and then during a training: in a simulation a second thread for each question
    would take longer than the question."""

    patient = True

    def __init__(self, ours: socket.socket) -> None:
        self._socket, self._held = ours, bytearray()
        self._stopped = self._gone = False
        self._looked = 0.0

    def _more(self, flags: int = 0) -> bool:
        """Reads what there is. `False` where the silo is gone, or has nothing to say now."""
        try:
            found = self._socket.recv(1 << 16, flags)
        except BlockingIOError:
            return False
        except OSError:
            found = b""
        self._gone = not found
        self._held += found
        return not self._gone

    def _next(self) -> dict[str, Any] | None:
        """The next whole frame of those that were read."""
        held = self._held
        if len(held) < 4:
            return None
        end = 4 + int.from_bytes(held[:4], "little")
        if len(held) < end:
            return None
        body = held[4:end]
        del held[:end]
        request: dict[str, Any] = json.loads(body.decode())
        return request

    def hear(self) -> dict[str, Any] | None:
        while True:
            try:
                request = self._next()
            except ValueError:  # No silo writes that.
                return None
            if request is None:
                if self._gone or not self._more():
                    return None
            elif request["type"] != "stop":
                return request

    def say(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def is_stopped(self, *, now: bool = False) -> bool:
        if self._stopped or self._gone:
            return True
        if (moment := time.monotonic()) - self._looked < _GLANCE and not now:
            return False
        self._looked = moment
        while self._more(socket.MSG_DONTWAIT):
            pass
        # During a training nothing else is said.
        self._stopped = self._gone or self._next() is not None
        return self._stopped

    def go_on(self) -> None:
        self._stopped = False
