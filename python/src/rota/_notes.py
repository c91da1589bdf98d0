"""Notes to the institution, each once."""

from __future__ import annotations

import sys

_said: set[str] = set()


def note(text: str) -> None:
    """Says something on standard error that is as it should be and may be meant otherwise; the same words once in a
    simulation, or in a program."""
    if text not in _said:
        _said.add(text)
        print(f"note: {text}", file=sys.stderr)


def again() -> None:
    """Begins anew, as with another simulation."""
    _said.clear()
