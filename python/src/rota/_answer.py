"""The answer to a question: the document of the program with views of it."""

from __future__ import annotations

import csv
import html
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

#: How the program writes a count that is not printed, because it or another one is small.
SUPPRESSED = "suppressed"
#: The table that says most, by kind.
_MAIN = {
    "describe": "columns",
    "quantiles": "quantiles",
    "crosstab": "counts",
    "correlate": "correlations",
    "km": "survival",
    "logrank": "logrank",
    "meta": "effects",
    "baselines": "gain",
    "trees": "learning_curve",
}
#: Rows of a table that a notebook shows.
_SHOWN = 60
#: Results in the line of `repr`.
_FEW = 3


class Answer(dict[str, Any]):
    """The answer to a question: a plain dictionary, as `rota ask --json` or `rota federation answers --json` prints it,
    with views of it. Small cells are suppressed in all of them."""

    #: The question as it was asked; empty for one of a running federation.
    question: Mapping[str, Any] = {}

    # What it is of.

    @property
    def kind(self) -> str:
        """The kind of the question, such as `"cox"`."""
        return str(self.get("kind") or self.get("question"))

    @property
    def state(self) -> str:
        """`"answered"`; of a running federation also `"open"`, while rounds are to come, and `"stopped"`."""
        return str(self.get("state", "answered"))

    @property
    def why(self) -> str | None:
        """Why there is no answer, in a sentence."""
        return None if self.get("why") is None else str(self["why"])

    @property
    def sites(self) -> int | None:
        """The number of sites whose rows it is of; `None` without an answer."""
        return self._counted("sites")

    @property
    def rows(self) -> int | None:
        """The rows that were asked for: those of all sites that the filter keeps."""
        return self._counted("rows")

    @property
    def n(self) -> int | None:
        """The rows that the answer is computed from: complete, and within the agreed ranges; of boosted trees those that they
        are grown from, which may lack values."""
        return self._counted("rows", "fit") if self.kind == "trees" else self._counted("complete")

    @property
    def missing(self) -> int | None:
        """The rows that are left out because a value is missing."""
        return self._counted("missing")

    @property
    def outside(self) -> int | None:
        """The rows that are left out because a value is beyond its agreed range or levels."""
        return self._counted("outside")

    @property
    def suppressed(self) -> int:
        """The number of cells that are not printed, because they or others are small."""
        return sum(cell == SUPPRESSED for table in self._tables() for row in table["rows"] for cell in row)

    @property
    def notes(self) -> list[str]:
        """What to know about the tables, in sentences."""
        return [str(note) for table in self._tables() for note in table["notes"]]

    @property
    def refused(self) -> list[str]:
        """Which sites of a running federation did not answer, by rule, in sentences: the answer is without them."""
        return [str(said) for said in self.get("refused", [])]

    @property
    def certificate(self) -> Mapping[str, Any] | None:
        """The round, its hashes, and the quorum that made the answer final; `None` where one process played the sites."""
        found: Mapping[str, Any] | None = self.get("certificate")
        return found

    # Its tables.

    @property
    def frames(self) -> dict[str, Any]:
        """All tables by their names: pandas tables, or lists of dictionaries without pandas. A suppressed cell and one with
        nothing to print have no value."""
        return {str(table["name"]): _frame(table) for table in self._tables()}

    def frame(self, name: str | None = None) -> Any:
        """The table of that name; without one the table that says most, such as the coefficients of a regression.

        Raises `ValueError` for a name that is not there, and where the question has no answer.
        """
        return _frame(self._table(name))

    def to_csv(self, path: str | os.PathLike[str] | None = None, *, table: str | None = None) -> str:
        """The tables as CSV with all digits, an empty line between them; with `table` that one alone. Written to the file
        `path`, too, if one is given."""
        chosen = self._tables() if table is None else [self._table(table)]
        text = "\n".join(_csv(one) for one in chosen)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @property
    def json(self) -> str:
        """The document as JSON text."""
        return json.dumps(self, ensure_ascii=False, indent=2)

    def plot(self, axes: Any = None) -> Any:
        """Draws the answer with matplotlib and returns the axes: survival curves with their 95 % intervals and the numbers
        at risk beneath, coefficients or ratios as a forest plot, means and quantiles by column, counts and correlations as
        a map, or observed less expected events. `axes` are some to draw on; an array of them comes back where columns
        have scales of their own.

        Raises `ValueError` where there is nothing to draw.
        """
        from . import _answer_plots

        self._table(None)
        return _answer_plots.drawn(self, axes)

    # In a notebook.

    def _tables(self) -> Sequence[Mapping[str, Any]]:
        tables: Sequence[Mapping[str, Any]] = self["answer"]
        return tables

    def _table(self, name: str | None) -> Mapping[str, Any]:
        tables = {str(table["name"]): table for table in self._tables()}
        if not tables:
            raise ValueError(f"the question has no answer: {self.why or f'{self._rounds()} so far, and more are to come'}")
        name = name or _MAIN.get(self.kind, "coefficients")
        if name not in tables:
            raise ValueError(f"there is no table {name!r}; there are {', '.join(tables)}")
        return tables[name]

    def _counted(self, column: str, name: str = "rows") -> int | None:
        for table in self._tables():
            if table["name"] == name and column in table["columns"]:
                found = table["rows"][0][table["columns"].index(column)]
                return None if found == SUPPRESSED else int(found)
        return None

    def _rounds(self) -> str:
        return f"{self['rounds']} round{'' if self['rounds'] == 1 else 's'}"

    def _facts(self) -> list[tuple[str, str]]:
        number = f", question {self['number']} of the federation: {self['reason']}" if "number" in self else ", played by one process"
        facts = [("question", f"{self.kind}{number}"[:120])]
        if not self._tables():
            return [*facts, ("answer", f"none: {self.why}" if self.why else f"not yet, after {self._rounds()}")]
        events = self._counted("events")
        rows = f"{self.n:,} of {self.rows:,} at {self.sites} sites, {self.missing:,} missing, {self.outside:,} out of range"
        held_out = self._counted("held_out_rows", "fit")
        rows += f", {held_out:,} held out" if held_out else ""
        facts.append(("rows", rows + (f", {events:,} events" if events is not None else "") + self._without()))
        facts.append(("answer", self._result()))
        said = f"{self.suppressed} cells suppressed" if self.suppressed else "nothing suppressed"
        certified = self.certificate
        where = f", final by round {certified['round']} ({str(certified['certificate'])[:12]}…)" if certified else ""
        facts.append(("opened", f"{self._opened()}, {said}{where}"))
        facts.append(("views", '.frames, .frame("' + str(self._table(None)["name"]) + '"), .plot(), .to_csv(), .json'))
        return facts

    def _without(self) -> str:
        return f"; refused: {'; '.join(self.refused)}"[:100] if self.refused else ""

    def _opened(self) -> str:
        if self.get("stored"):
            return "nothing, the answer was stored"
        numbers = self.get("numbers_opened")
        sent = self.get("bytes_per_site")
        return (f"{numbers:,} numbers in " if numbers is not None else "") + self._rounds() + (f", {sent:,} bytes a site" if sent else "")

    def _result(self) -> str:
        """The first results of the main table, in a line."""
        table = self._table(None)
        rows = [dict(zip(table["columns"], row)) for row in table["rows"]]
        rows = self._ends(rows) if self.kind == "km" else rows[-1:] if self.kind == "trees" else rows
        found = [_said(self.kind, table, row) for row in rows]
        more = len(found) - _FEW
        return "; ".join(found[:_FEW]) + (f"; {more} more" if more > 0 else "")

    def _ends(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The last point of each curve."""
        return list({str(row["group"]): row for row in rows}.values())

    def __repr__(self) -> str:
        return "\n".join(f"{name:<10}{text}" for name, text in self._facts())

    def _repr_html_(self) -> str:
        facts = "".join(f"<tr><th>{_escaped(name)}</th><td>{_escaped(text)}</td></tr>" for name, text in self._facts())
        return f"<table>{facts}</table>" + "".join(_html(table) for table in self._tables() if table["name"] != "rows")


def short(number: Any) -> str:
    """A number in four digits, and what is no number as it is."""
    if number is None:
        return ""
    if number == SUPPRESSED:
        return "·"
    return f"{number:.4g}" if isinstance(number, float) else f"{number:,}" if isinstance(number, int) else str(number)


def probability(p: Any) -> str:
    """A p-value as text."""
    return "" if p is None else "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"


def _said(kind: str, table: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """A row of a table in a few words."""
    label = str(row[table["columns"][0]])
    if "ratio" in row:
        return f"{label} ×{short(row['ratio'])} ({probability(row['p_value'])})" if row["p_value"] is not None else f"{label} ×{short(row['ratio'])}"
    value = row.get("coefficient", row.get("effect"))
    if value is not None:
        interval = f" ({short(row['low'])} to {short(row['high'])})" if row["low"] is not None else ""
        return f"{label} {short(value)}{interval}"
    if kind == "km":
        return f"{label} {short(row['survival'])} at {short(row['time'])}"
    if "chi_squared" in row:
        return f"χ² {short(row['chi_squared'])}, {row['freedom']} df, {probability(row['p_value'])}"
    if kind == "trees":
        return f"{label} trees {short(row[table['columns'][1]])}"
    if kind == "quantiles":
        return f"{label} {short(row['probability'])}: {short(row['value'])}"
    group = f"{row['group']} " if "group" in row else ""
    if "mean" in row:
        name = f"{group}{row['column']}"
        return f"{name} {short(row['mean'])} (SD {short(row['standard_deviation'])})"
    return f"{label} " + " ".join(short(cell) for name, cell in row.items() if name != table["columns"][0])


def _unique(names: Sequence[str]) -> list[str]:
    """The names of columns, of which levels may be some: each once."""
    found: list[str] = []
    for name in names:
        own, place = name, 2
        while own in found:
            own, place = f"{name}_{place}", place + 1
        found.append(own)
    return found


def _cells(table: Mapping[str, Any]) -> list[list[Any]]:
    return [[None if cell == SUPPRESSED else cell for cell in row] for row in table["rows"]]


def _frame(table: Mapping[str, Any]) -> Any:
    names = _unique(table["columns"])
    rows = _cells(table)
    try:
        import pandas
    except ImportError:
        return [dict(zip(names, row)) for row in rows]
    columns = {}
    for place, name in enumerate(names):
        cells = [row[place] for row in rows]
        known = [cell for cell in cells if cell is not None]
        kind: Any = None
        if all(isinstance(cell, (int, float)) for cell in known):
            # Counts stay whole, also where one of them is suppressed.
            kind = "Int64" if known and all(isinstance(cell, int) for cell in known) else "float64"
        columns[name] = pandas.Series(cells, dtype=kind)
    frame = pandas.DataFrame(columns, columns=names)
    frame.attrs |= {"title": str(table["title"]), "notes": list(table["notes"])}
    return frame


def _csv(table: Mapping[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table["columns"])
    writer.writerows([["" if cell is None else cell for cell in row] for row in _cells(table)])
    return text.getvalue()


def _escaped(text: str) -> str:
    return html.escape(text)


def _html(table: Mapping[str, Any]) -> str:
    head = "".join(f"<th>{_escaped(name.replace('_', ' '))}</th>" for name in table["columns"])

    def cell(name: str, value: Any) -> str:
        if name == "p_value" and isinstance(value, float):
            return probability(value).removeprefix("p ").removeprefix("= ")
        return short(value)

    rows = "".join(
        "<tr>" + "".join(f"<td>{_escaped(cell(*one))}</td>" for one in zip(table["columns"], row)) + "</tr>" for row in table["rows"][:_SHOWN]
    )
    more = len(table["rows"]) - _SHOWN
    notes = [*([f"{more} more rows: .frame({table['name']!r})"] if more > 0 else []), *table["notes"]]
    said = "".join(f"<p><small>{_escaped(note)}</small></p>" for note in notes)
    return f"<h4>{_escaped(table['title'])}</h4><table><tr>{head}</tr>{rows}</table>{said}"


__all__: Sequence[str] = ["Answer", "probability", "short"]
