"""Where in somebody's own code an exception came from."""

from __future__ import annotations

import inspect
import os
import sysconfig
import traceback

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARIES = tuple(
    path + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib") if (path := sysconfig.get_path(name)) is not None
)


def _own(file: str) -> bool:
    inside = file.startswith((_PACKAGE, *_LIBRARIES)) or f"{os.sep}site-packages{os.sep}" in file
    return not inside and not file.startswith("<frozen")


def said(error: BaseException, longest: int = 10_000) -> str:
    """The exception in one line, with the line of somebody's own code that it came from, where there is one."""
    text = f"{type(error).__name__}: {error}"[:longest]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _own(frame.filename)]
    if not frames:
        return text
    last = frames[-1]
    return f"{text} ({os.path.basename(last.filename)}, line {last.lineno}, in {last.name})"


def defined(function: object) -> str:
    """Where a function of somebody's own begins, in parentheses; nothing where that is not known."""
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    if code is None:
        return ""
    return f" ({os.path.basename(code.co_filename)}:{code.co_firstlineno}, {code.co_name})"
