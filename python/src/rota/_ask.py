"""Questions to all sites, by the program `rota`."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from . import _sites, _toml
from ._answer import Answer
from ._binary import RotaError, command, document, orderly

Question = str | os.PathLike[str] | Mapping[str, Any]

#: Keys whose own keys are names of columns, which stay as they are.
_OF_COLUMNS = {"ranges", "levels"}
#: Keys with lists, of which a single text is one of one.
_LISTS = {"filter", "terms", "without"}
#: What a question that was not in a file is called in errors.
_HERE = "the question"


def ask(
    question: Question | None = None,
    *,
    tables: Mapping[str, Any] | None = None,
    scenario: str | os.PathLike[str] | None = None,
    silos: int | None = None,
    site_rules: Mapping[str, Any] | None = None,
    record: str | os.PathLike[str] | None = None,
    html: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    **keys: Any,
) -> Answer:
    """Asks all sites for one statistic, as `rota ask` does, and returns the answer. One process plays the sites.

    `question` is a TOML file, or a dictionary with the content of such a file. Its keys may be given by their names
    instead, and those given stand in place of the file's: `kind="cox"`, `terms=["age"]`, `ranges={"age": (18, 100)}`;
    dashes are written as underscores.

    `tables` are the rows of the sites by their names, in place of the question's `[sites]`: DataFrames of pandas or
    polars, tables of Arrow, dictionaries of columns, or paths of files. `None`, NaN and the empty text are missing values.
    `scenario` takes the silos of a scenario instead, of which there are `silos`. `site_rules` are what each institution
    allows.

    `record` is a file in which the sites keep what they have answered, so that later questions are checked against it.
    `html` is a new file for a page of the answer, and `data` the folder of public data sets.

    Raises `RotaError` with what the program says where the question cannot be asked, a site refuses, or the data do not
    determine an answer; `TypeError` or `ValueError` for tables that cannot be read.
    """
    try:
        with _written(question, keys, tables, scenario, silos, site_rules) as (asked, file):
            options = [] if record is None else ["--record", os.fspath(record)]
            options += [] if html is None else ["--html", os.fspath(html)]
            options += [] if data is None else ["--data", os.fspath(data)]
            answer: Answer = document(["ask", file, "--json", *options], kind=Answer)
            answer.question = asked
            return answer
    except RotaError as error:
        # At the line that asked, and not where this package runs the program.
        raise error.with_traceback(None)


def explain(question: Question | None = None, **keys: Any) -> str:
    """What each site would compute for a question, and what would be opened, as text. Reads no rows.

    The question is given as to `ask`; it needs no sites.
    """
    try:
        with _written(question, keys, None, None, None, None, explained=True) as (_, file):
            said = command(["ask", file, "--explain"])
    except RotaError as error:
        raise error.with_traceback(None)
    # Without the line that says that one process plays all sites.
    return said.partition("\n\n")[2]


def answers(config: str | os.PathLike[str] | None = None) -> list[Answer]:
    """The questions of a running federation and their answers, as `rota federation answers` prints them.

    `config` is the `node.toml` of a member, or the folder that has it; by default `$ROTA_CONFIG`, or the current folder.
    Needs no key and changes nothing; the node may run. A question without an answer says why: `state` is `"open"` or
    `"stopped"`.
    """
    options = [] if config is None else ["--config", os.fspath(config)]
    try:
        with orderly("a question"):
            found = document(["federation", "answers", "--json", *options])
    except RotaError as error:
        raise error.with_traceback(None)
    return [Answer(one) for one in found]


@contextlib.contextmanager
def _written(
    question: Question | None,
    keys: Mapping[str, Any],
    tables: Mapping[str, Any] | None,
    scenario: str | os.PathLike[str] | None,
    silos: int | None,
    site_rules: Mapping[str, Any] | None,
    *,
    explained: bool = False,
) -> Iterator[tuple[dict[str, Any], str]]:
    """The question, and the file of it. What is not in a file of somebody's own is in a folder that only this user can
    read, and goes with it."""
    if question is None and not keys:
        raise TypeError('nothing is asked: give a file, rota.ask("question.toml"), or keys, rota.ask(kind="describe", …)')
    given = _named(keys)
    asked = _content(question)
    if tables is not None and scenario is not None:
        raise TypeError("give either `tables` or a `scenario`: both say who the sites are")
    own = isinstance(question, (str, os.PathLike))
    as_it_is = not given and tables is None and scenario is None and silos is None and site_rules is None
    if own and as_it_is and ("sites" in asked or not explained):
        with orderly("a question"):
            yield asked, os.fspath(question)  # type: ignore[arg-type]
        return
    with orderly("a question"), TemporaryDirectory(prefix="rota-") as folder:
        path = Path(folder) / "question.toml"
        whole = asked | given
        sites = _moved(whole.get("sites"), Path(os.fspath(question)).parent if own else Path())  # type: ignore[arg-type]
        if tables is not None:
            sites = {key: value for key, value in sites.items() if key == "rules"}
            sites["files"] = _sites.sites(tables, Path(folder))
        elif scenario is not None:
            sites = {key: value for key, value in sites.items() if key == "rules"}
            sites["scenario"] = os.fspath(scenario)
        if silos is not None:
            sites["silos"] = silos
        if site_rules is not None:
            sites["rules"] = _dashed(site_rules)
        if not sites and not explained:
            raise TypeError(
                'who is asked? Give the rows of the sites, tables={"north": north, "east": east}, or scenario="NAME"'
            )
        if not sites:
            # Which none is read of.
            sites["scenario"] = "none"
        path.write_text(_toml.written(whole | {"sites": sites}), encoding="utf-8")
        try:
            yield whole, str(path)
        except RotaError as error:
            raise _renamed(error, path, tables) from error.__cause__


def _content(question: Question | None) -> dict[str, Any]:
    """The keys of a question."""
    if question is None:
        return {}
    if isinstance(question, Mapping):
        return _named(question)
    try:
        return _toml.read(os.fspath(question))
    except (OSError, ValueError):
        # The program says better what is wrong with it.
        command(["ask", os.fspath(question), "--explain"])
        raise


def _named(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Keys as a file has them: with dashes, but for the names of columns."""
    named = {}
    for key, value in keys.items():
        inner = key not in _OF_COLUMNS and key != "sites" and isinstance(value, Mapping)
        listed = isinstance(value, str) and (key in _LISTS or key == "columns" and keys.get("kind") != "crosstab")
        named[key.replace("_", "-")] = _dashed(value) if inner else [value] if listed else value
    return named


def _dashed(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "-"): value for key, value in table.items()}


def _moved(sites: Any, folder: Path) -> dict[str, Any]:
    """The table of sites, whose paths are those of a question in `folder`, for a question elsewhere."""
    if not isinstance(sites, Mapping):
        return {}
    moved = dict(sites)
    files = moved.get("files")
    if isinstance(files, list):
        moved["files"] = [
            one | {"path": os.path.abspath(folder / str(one["path"]))} if isinstance(one, dict) and "path" in one else one
            for one in files
        ]
    scenario = moved.get("scenario")
    if isinstance(scenario, str) and scenario.endswith(".toml"):
        moved["scenario"] = os.path.abspath(folder / scenario)
    return moved


def _renamed(error: RotaError, path: Path, tables: Mapping[str, Any] | None) -> RotaError:
    """The error without names of files that are gone, and without their lines."""
    said = re.sub(re.escape(str(path)) + r"(, line \d+)?", _HERE, str(error))
    for place, site in enumerate(tables or ()):
        file = re.escape(str(path.with_name(f"{place}.csv"))) + r"(?:, line (\d+))?"
        # The first line has the names.
        said = re.sub(file, lambda found: f"the table of site {site!r}" + (f", row {int(found[1]) - 1}" if found[1] else ""), said)
    renamed = RotaError(said, error.output)
    renamed.summary = error.summary
    return renamed
