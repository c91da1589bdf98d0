"""Writes dictionaries as TOML, and reads TOML files."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file."""
    with Path(path).open("rb") as file:
        return tomllib.load(file)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items() if one is not None)
        return "{ " + inner + " }" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    if hasattr(value, "tolist"):  # NumPy
        return _value(value.tolist())
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ("nan" if math.isnan(value) else ("inf" if value > 0 else "-inf"))
    if isinstance(value, (str, Path)):
        # TOML's basic strings are JSON's, but for DEL.
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    raise TypeError(f"{type(value).__name__} cannot be written as TOML: {value!r}")


def _key(key: Any) -> str:
    text = str(key)
    bare = text and all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in text)
    return text if bare else json.dumps(text, ensure_ascii=False)


def written(table: Mapping[str, Any]) -> str:
    """The table as TOML, one top-level key a line. `None` is left out."""
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in table.items() if value is not None)
