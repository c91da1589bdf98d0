"""The descriptors of the learner protocol.

A silo talks to a program over its standard input and output. What the program prints there would be read
as a message. So the descriptors are taken as soon as `rota` is imported in a program that a silo has
started (it sets `ROTA_LEARNER`), and what is printed goes to standard error from then on.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys

#: The silo's mark of a program and all that it starts, and the mark whose descriptors were taken.
MARK, TAKEN = "ROTA_LEARNER", "ROTA_LEARNER_TAKEN"

_found: tuple[int, int] | None = None


def take_where_started() -> None:
    """Takes the descriptors where a silo has started this process: what the process starts has the mark,
    too, but standard input and output of its own. So may a line of Python in a script of a shell that
    starts the program, `$(python3 -c "import rota; …")`."""
    mark = os.environ.get(MARK)
    if not mark or os.environ.get(TAKEN) == mark or sys.argv[:1] == ["-c"]:
        return
    with contextlib.suppress(OSError):
        if all(_is_pipe(descriptor) for descriptor in (0, 1)):
            taken()


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def taken() -> tuple[int, int]:
    """Descriptors to read from and to write to, which no process that is started here gets."""
    global _found
    if _found is not None:
        return _found
    if mark := os.environ.get(MARK):
        os.environ[TAKEN] = mark
    read, write = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    # What was printed before and is not written yet goes where all else goes that is printed.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    sys.stdout = sys.stderr

    def forked() -> None:
        os.dup2(null, read)
        os.dup2(null, write)

    if hasattr(os, "register_at_fork"):
        # Workers of a data loader are copies of this process.
        os.register_at_fork(after_in_child=forked)
    _found = (read, write)
    return _found
