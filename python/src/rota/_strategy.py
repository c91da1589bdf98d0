"""A strategy of one's own: who learns with whom, and with which coefficients models are combined."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ._tensors import Arrays, read_tensors

#: Coefficients are whole numbers of this part, so that everybody computes with the same ones.
PARTS = 1 << 24
Matrix = npt.NDArray[np.float64]


@dataclass
class Round:
    """What a strategy sees of a round. What it does not need is `None` or empty."""

    #: The round, from 1.
    number: int
    #: How many models silos started from (the groups of the round before), how many models the strategy kept, and how
    #: many silos contributed.
    starts: int
    kept: int
    entries: int
    #: The group whose model every entry started from.
    groups: npt.NDArray[np.int64]
    #: Training rows of every entry (`"rows"`).
    rows: npt.NDArray[np.float64] | None
    #: What silos reported with their trainings, by name (`"numbers:NAME"`): one number for every entry.
    numbers: dict[str, npt.NDArray[np.float64]]
    #: Inner products of what the entries changed in their start models (`"gram"`): entries × entries.
    gram: Matrix | None
    #: Losses of all models on the training rows of all silos (`"scores"`): the row is whose rows, the column whose model.
    scores: Matrix | None
    #: The member of every entry, the same in every round (`"names"`).
    members: npt.NDArray[np.int64] | None
    #: The numbers that the strategy kept in the round before (`"state"`); empty at first.
    state: npt.NDArray[np.float64]
    _files: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)

    def start_models(self) -> list[Arrays]:
        """The models that silos started from (`"updates"`)."""
        return self._models("starts")

    def kept_models(self) -> list[Arrays]:
        """The models that the strategy kept (`"updates"`)."""
        return self._models("kept")

    def entry_models(self) -> list[Arrays]:
        """The models that silos contributed (`"updates"`)."""
        return self._models("entries")

    def _models(self, what: str) -> list[Arrays]:
        files = self._files.get(what, ())
        if len(files) != getattr(self, what):
            raise ValueError('the models are not seen: write "updates" into `needs`')
        return [read_tensors(path) for path in files]

    def row(
        self,
        entries: npt.ArrayLike | None = None,
        starts: npt.ArrayLike | None = None,
        kept: npt.ArrayLike | None = None,
    ) -> npt.NDArray[np.float64]:
        """A row of coefficients from those of the entries, the start models and the kept ones; what is left out is 0."""
        parts = ((starts, self.starts), (kept, self.kept), (entries, self.entries))
        return np.concatenate([np.zeros(count) if part is None else _sized(part, count) for part, count in parts])


def _sized(part: npt.ArrayLike, count: int) -> npt.NDArray[np.float64]:
    found = np.asarray(part, np.float64).reshape(-1)
    if len(found) != count:
        raise ValueError(f"there are {len(found)} coefficients for {count} models")
    return found


@dataclass
class Settled:
    """What a strategy says of a round: coefficients, and never models.

    A row of `coefficients` is for a group: how much of each start model, of each kept model and of each entry its model
    has (`Round.row` makes one). It sums to one, or has whole numbers, which are divided by their sum. `assignment` has
    the group of every entry; by default all are in group 0. `keep` has rows of the same kind for models that the
    strategy wants in the next round, and `state` numbers.
    """

    coefficients: npt.ArrayLike
    assignment: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None
    keep: npt.ArrayLike | None = None
    state: npt.ArrayLike = ()


class Strategy(ABC):
    """A strategy of one's own, for `rota.simulate` and `rota.compare`.

    `settle` sees what `needs` asks for and returns coefficients, as `Settled` or as one row for all: every member can
    compute the models from them, and models never leave the program. Coefficients are rounded to multiples of 2^-24;
    whole numbers, such as numbers of rows, stay as they are. Buffers, such as running statistics, are combined by the
    coefficients of the entries alone, negative ones as 0. What combines models coordinate by coordinate is no such
    strategy: `aggregation` in a scenario has medians and trimmed means.

    `needs`: `"rows"`, `"numbers:NAME"` (a metric that silos report with their trainings, such as `"numbers:steps"` of
    `rota.torch.Learner`), `"gram"`, `"scores"`, `"updates"`, `"state"`, `"names"`. See `Round`.

    A strategy keeps nothing in itself: what it needs in the next round it returns as `state` or `keep`, because another
    member may lead that round.
    """

    #: The name in tables.
    name: str = ""
    #: What it needs to see.
    needs: Sequence[str] = ("rows",)

    @abstractmethod
    def settle(self, round: Round) -> Settled | npt.ArrayLike:
        """The coefficients of a round."""


_numbers = itertools.count(1)


def options_of(strategy: Strategy, taken: Sequence[str] = ()) -> dict[str, Any]:
    """The options of the strategy `custom`, by which the program finds this one; its name is none of those `taken`."""
    name = strategy.name or type(strategy).__name__.lower()
    rule = next(one for one in itertools.chain([name], (f"{name} {nth}" for nth in itertools.count(2))) if one not in taken)
    if rule == "mean":
        raise ValueError('a strategy cannot be called "mean": give it another `name`')
    needs = [strategy.needs] if isinstance(strategy.needs, str) else list(strategy.needs)
    return {"rule": rule, "needs": needs}


def answer(strategy: Strategy, question: Mapping[str, Any]) -> dict[str, Any]:
    """What a strategy says to a question of the program."""

    def table(name: str) -> Matrix | None:
        found = question.get(name)
        return None if found is None else np.array(found, np.float64)

    def whole(name: str) -> npt.NDArray[np.int64] | None:
        found = question.get(name)
        return None if found is None else np.array(found, np.int64)

    groups = whole("groups")
    assert groups is not None
    seen = Round(
        number=question["round"],
        starts=question["starts"],
        kept=question["kept"],
        entries=question["entries"],
        groups=groups,
        rows=table("rows"),
        numbers={name: np.array(values, np.float64) for name, values in question["reported"].items()},
        gram=table("gram"),
        scores=table("scores"),
        members=whole("members"),
        state=np.array(question["numbers"], np.float64),
        _files=question["files"],
    )
    found = strategy.settle(seen)
    settled = found if isinstance(found, Settled) else Settled(found)
    return written(settled, seen, strategy.needs)


def written(settled: Settled, seen: Round, needs: Sequence[str]) -> dict[str, Any]:
    """Coefficients as whole numbers."""
    columns = seen.starts + seen.kept + seen.entries

    def rows(what: str, given: npt.ArrayLike | None) -> list[list[int]]:
        if given is None:
            return []
        table = np.atleast_2d(np.asarray(given, np.float64))
        if table.size == 0:
            return []
        if table.ndim != 2 or table.shape[1] != columns:
            raise ValueError(
                f"`{what}` has the shape {table.shape}, and a row has {columns} numbers: {seen.starts} start models, "
                f"{seen.kept} kept models and {seen.entries} entries; `round.row(…)` makes one"
            )
        return [parts(f"row {nth} of `{what}`", row) for nth, row in enumerate(table)]

    state = np.asarray(settled.state, np.float64).reshape(-1)
    kept = rows("keep", settled.keep)
    if (kept or len(state)) and "state" not in needs:
        raise ValueError('`keep` and `state` are for the next round: write "state" into `needs`')
    groups = rows("coefficients", settled.coefficients)
    assignment = np.zeros(seen.entries, np.int64) if settled.assignment is None else np.asarray(settled.assignment)
    if assignment.shape != (seen.entries,) or assignment.dtype.kind not in "iu":
        raise ValueError(f"`assignment` must have a whole number, the group, for each of the {seen.entries} entries")
    if len(assignment) and not (0 <= assignment.min() and assignment.max() < len(groups)):
        raise ValueError(f"`assignment` names group {assignment.max()}, and there are {len(groups)} groups, from 0")
    return {
        "assignment": [int(one) for one in assignment],
        "groups": groups,
        "kept": kept,
        "numbers": [float(one) for one in state],
    }


def parts(what: str, row: npt.NDArray[np.float64]) -> list[int]:
    """A row as whole numbers with a sum above 0: as it is, or in parts of 2^24, the largest remainders rounded up."""
    if not np.isfinite(row).all():
        raise ValueError(f"{what} has a coefficient that is not finite")
    total = math.fsum(row)
    if np.array_equal(row, np.rint(row)) and total > 0:
        return [int(one) for one in row]
    if abs(total - 1) > 1e-6:
        raise ValueError(f"{what} sums to {total:.9g}: coefficients sum to one, or are whole numbers")
    scaled = row * PARTS
    low = np.floor(scaled)
    left = int(PARTS - low.sum())
    order = np.argsort(low - scaled, kind="stable")
    low[order[: max(left, 0)]] += 1
    # Rounding of the sum itself, where the remainders are used up.
    low[int(np.argmax(np.abs(row)))] += PARTS - low.sum()
    return [int(one) for one in low]
