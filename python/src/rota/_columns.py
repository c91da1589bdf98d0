"""Names of the columns of rows, where rows have some: a model takes columns by their places, so the
order must be the same at every member."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: How the columns of targets are told from those of features.
_TARGET = "target "


def names_of(rows: Any) -> list[str] | None:
    """The names of the columns of a DataFrame of pandas or polars, or a table of Arrow; `None` where they
    have none, or only numbers."""
    columns = getattr(rows, "column_names", None)
    if columns is None:
        columns = getattr(rows, "columns", None)
    if columns is None or isinstance(columns, (str, bytes)) or callable(columns):
        return None
    try:
        names = list(columns)
    except TypeError:
        return None
    return names if names and all(isinstance(name, str) for name in names) else None


def ordered(part: str, data: Any, agreed: Sequence[str]) -> tuple[Any, list[str]]:
    """A pair `(x, y)` with the columns of its tables in the agreed order, or in their own where none is
    agreed, and their names, of which those of several targets begin with `target `.

    Raises `ValueError` for a column that is missing, that nobody agreed on, or that is there twice.
    """
    if not (isinstance(data, (tuple, list)) and len(data) == 2):
        return data, []
    features, targets = ([name for name in agreed if name.startswith(_TARGET) == is_target] for is_target in (False, True))
    x, names = _in_order(part, data[0], features)
    y = data[1]
    further: list[str] = []
    if len(names_of(y) or ()) > 1:
        y, further = _in_order(part, y, [name.removeprefix(_TARGET) for name in targets])
    return (x, y), names + [_TARGET + name for name in further]


def _in_order(part: str, rows: Any, agreed: Sequence[str]) -> tuple[Any, list[str]]:
    names = names_of(rows)
    if names is None:
        return rows, []
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"`{part}` has two columns {twice[0]!r}: give every column a name of its own")
    if not agreed or list(agreed) == names:
        return rows, names
    for name in agreed:
        if name not in names:
            raise ValueError(f"`{part}` has no column {name!r}, which was agreed on; it has {', '.join(names)}")
    for name in names:
        if name not in agreed:
            raise ValueError(
                f"`{part}` has a column {name!r} that nobody agreed on: leave it out; agreed are {', '.join(agreed)}"
            )
    chosen = rows.select(list(agreed)) if hasattr(rows, "column_names") else rows[list(agreed)]
    return chosen, list(agreed)
