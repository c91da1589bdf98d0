"""Tables of sites as files that the program reads."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ._columns import names_of

#: Whole numbers beyond it are not exact as floats.
_WHOLE = 2.0**53
#: A column that is there only so that lines are not empty.
_ROW = "(row)"


def sites(tables: Mapping[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Entries of `[sites] files` for tables by the names of their sites: a file of rows by its path, or a table of
    columns, which is written to a file in `folder`.

    Raises `TypeError` for what is no table, and `ValueError` for a name or a cell that cannot be written.
    """
    if not isinstance(tables, Mapping) or not tables:
        raise TypeError('`tables` names the sites and their rows: tables={"north": north, "east": east}')
    found = []
    for place, (site, table) in enumerate(tables.items()):
        if not isinstance(site, str) or not site.strip():
            raise ValueError(f"a site is called {site!r}: give it a name, as text")
        entry: dict[str, Any] = {"silo": site}
        if isinstance(table, (str, os.PathLike)):
            entry["path"] = os.path.abspath(os.fspath(table))
        else:
            path = folder / f"{place}.csv"
            _write(path, site, columns_of(site, table))
            # Only what has no value in the table has none: a level may be called "NA" or "-".
            entry |= {"path": str(path), "format": {"missing": [""]}}
        found.append(entry)
    return found


def columns_of(site: str, table: Any) -> dict[str, list[Any]]:
    """The columns of a DataFrame of pandas or polars, a table of Arrow, a structured array of NumPy, or a dictionary of
    columns, as lists by their names. An index of pandas is no column."""
    names: Sequence[Any] | None
    if isinstance(table, Mapping):
        names, column = list(table), table.__getitem__
    elif getattr(getattr(table, "dtype", None), "names", None):
        names, column = list(table.dtype.names), table.__getitem__
    else:
        names = names_of(table) or _numbered(table)
        if names is None:
            raise TypeError(
                f"the rows of site {site!r} are {type(table).__name__}, in which columns have no names: give a DataFrame, a "
                "dictionary of columns, or the path of a file"
            )

        def column(name: Any) -> Any:
            return table.iloc[:, names.index(name)] if hasattr(table, "iloc") else table[name]

    texts = [str(name) for name in names]
    twice = sorted({name for name in texts if texts.count(name) > 1})
    if twice:
        raise ValueError(f"the table of site {site!r} has two columns {twice[0]!r}: give every column a name of its own")
    found = {text: _listed(column(name)) for text, name in zip(texts, names)}
    lengths = {len(cells) for cells in found.values()}
    if len(lengths) > 1:
        raise ValueError(f"the columns of site {site!r} have different lengths: {', '.join(map(str, sorted(lengths)))}")
    return found


def _numbered(table: Any) -> list[Any] | None:
    """The names of the columns of a DataFrame some of which are no text, such as numbers."""
    columns = getattr(table, "columns", None)
    return list(columns) if hasattr(table, "iloc") and columns is not None else None


def _listed(column: Any) -> list[Any]:
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def _write(path: Path, site: str, columns: Mapping[str, Sequence[Any]]) -> None:
    texts = [_texts(site, name, cells) for name, cells in columns.items()]
    rows = list(zip(*texts))
    if not all(any(row) for row in rows):
        # The program passes over lines without any cell, and a row without any value is a row.
        columns = {**columns, _ROW: []}
        rows = [(*row, "1") for row in rows]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _texts(site: str, column: str, cells: Iterable[Any]) -> list[str]:
    def text(row: int, cell: Any) -> str:
        if cell is None or type(cell).__name__ in ("NAType", "NaTType") or cell != cell:
            return ""
        if isinstance(cell, bool):
            return "1" if cell else "0"
        if isinstance(cell, float):
            if math.isinf(cell):
                raise ValueError(
                    f"site {site!r}, column {column!r}, row {row + 1}: {cell} is no number to compute with; put NaN where the "
                    "value is missing"
                )
            # Numbers of a column that has missing values are floats in pandas; a level 2 is not one 2.0.
            return str(int(cell)) if cell.is_integer() and abs(cell) < _WHOLE else repr(float(cell))
        if hasattr(cell, "tolist") and not hasattr(cell, "__len__"):
            return text(row, cell.tolist())
        if isinstance(cell, (bytes, list, tuple, dict, set)):
            raise ValueError(
                f"site {site!r}, column {column!r}, row {row + 1}: {cell!r} is neither a number nor a text; leave the column out"
            )
        return str(cell)

    return [text(row, cell) for row, cell in enumerate(cells)]
