"""The results of simulations and comparisons: plain dictionaries with views of them."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ._binary import RotaError
from ._tensors import Arrays, read_tensors, write_tensors

#: How tensors begin that stay at a silo, in the files of what it keeps.
_PERSONAL = "personal."
#: Silos that are drawn one by one; beyond, their middle and where most of them are.
_LINES = 12


class Summary(dict[str, Any]):
    """The summary of a simulation: a plain dictionary, as `rota simulate --json` prints it, with views of it."""

    _folder: Path | None = None
    _held: TemporaryDirectory[str] | None = None

    @property
    def metric(self) -> str:
        """The metric that silos are compared by."""
        return str(self["metric"]["name"])

    def silos(self) -> Any:
        """The silos and their results: a pandas table, or a list of dictionaries without pandas."""
        return table(self["silos"])

    def rounds(self) -> Any:
        """One row per round and silo with its training loss, its held-out metric, and what else a learner says of its
        training: a pandas table, or a list of dictionaries without pandas."""
        points = sorted(self["curves"], key=lambda one: int(one["round"]))

        def row(one: Mapping[str, Any]) -> dict[str, Any]:
            more = {f"{name}, training": value for name, value in one.get("metrics", {}).items()}
            return {"round": one["round"], "silo": one["silo"], "loss": one["loss"], self.metric: one["metric"]} | more

        return table([row(one) for one in points])

    def curves(self, what: str = "metric") -> dict[str, np.ndarray[Any, Any]]:
        """Values by round of each silo: `"metric"`, the held-out one, or `"loss"`, that of training."""
        rounds = max((point["round"] for point in self["curves"]), default=0)
        curves: dict[str, np.ndarray[Any, Any]] = {}
        for point in self["curves"]:
            values = curves.setdefault(point["silo"], np.full(rounds, np.nan))
            if point[what] is not None:
                values[point["round"] - 1] = point[what]
        return curves

    def plot(self, what: str = "metric") -> Any:
        """Draws `curves` with matplotlib and returns the axes: a line for each silo, or beyond twelve silos their median
        and the band in which the middle 80 % are."""
        pyplot = _pyplot()
        figure, axes = pyplot.subplots()
        curves = self.curves(what)
        if len(curves) > _LINES:
            values = np.array(list(curves.values()))
            rounds = range(1, values.shape[1] + 1)
            low, middle, high = np.nanpercentile(values, [10, 50, 90], axis=0)
            axes.fill_between(rounds, low, high, alpha=0.3, label="80 % of the silos")
            axes.plot(rounds, middle, label=f"median of {len(curves)} silos")
        for silo, line in curves.items() if len(curves) <= _LINES else ():
            axes.plot(range(1, len(line) + 1), line, marker=".", label=silo)
        unit = self["metric"]["unit"]
        name = self.metric + (f" ({unit})" if unit else "")
        axes.set_xlabel("round")
        axes.set_ylabel(f"{name}, held out" if what == "metric" else "training loss")
        axes.xaxis.set_major_locator(pyplot.matplotlib.ticker.MaxNLocator(integer=True, min_n_ticks=1))
        if max((len(line) for line in curves.values()), default=0) <= 1:
            # Around a single round there would be parts of rounds.
            axes.set_xlim(0, 2)
        # Beside the lines, where it hides none.
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        figure.set_layout_engine("tight")
        return axes

    # The models.

    def model(self, silo: str, module: Any = None, *, round: int | None = None) -> Any:
        """The model that a silo has after the last round, or after an earlier one: arrays by name, or with `module` this
        module of PyTorch, into which it is loaded.

        Needs a simulation with `keep`. Raises `ValueError` for a silo or a round that is not there.
        """
        path, personal = self._files_of(silo, round)
        arrays = read_tensors(path)
        # Layers that stay at the silo, as under fedper.
        kept = read_tensors(personal) if personal is not None else {}
        own = {name.removeprefix(_PERSONAL): value for name, value in kept.items() if name.startswith(_PERSONAL)}
        if module is None:
            return arrays | own
        from . import torch

        with TemporaryDirectory(prefix="rota-") as folder:
            whole = Path(folder) / "model.safetensors"
            write_tensors(whole, arrays | own)
            return torch.load(module, whole)

    def models(self, round: int | None = None) -> dict[str, Arrays]:
        """The models of all silos, as `model` gives them."""
        return {one["name"]: self.model(one["name"], round=round) for one in self["silos"] if not one["unseen"]}

    def _files_of(self, silo: str, round: int | None) -> tuple[Path, Path | None]:
        """The file of a silo's model, and that of what stays at the silo."""
        if self._folder is None:
            raise ValueError('the models were not kept: simulate(…, keep="models"), or keep=FOLDER')
        index = json.loads((self._folder / "index.json").read_text(encoding="utf-8"))
        names = [one["name"] for one in self["silos"]]
        if silo not in names:
            raise ValueError(f"there is no silo {silo!r}; there are {', '.join(names)}")
        numbers = [one["round"] for one in index["rounds"]]
        if round is not None and round not in numbers:
            raise ValueError(f"there is no round {round}; there are {numbers[0]} to {numbers[-1]}" if numbers else "there is no round")
        if round is None:
            for one in index["exported"]:
                if one["silo"] == silo:
                    return self._folder / str(one["file"]), None
        kept = next(one for one in index["rounds"] if one["round"] == (numbers[-1] if round is None else round))
        for one in kept["models"]:
            if silo in one["silos"]:
                own = next((self._folder / str(two["file"]) for two in kept["personal"] if two["silo"] == silo), None)
                return self._folder / str(one["file"]), own
        raise ValueError(f"silo {silo!r} has no model in round {kept['round']}")

    # In a notebook.

    def _facts(self) -> list[tuple[str, str]]:
        rounds = {one["round"] for one in self["curves"]}
        of = "larger is better" if self["metric"].get("higher_is_better") else "smaller is better"
        unit = f" {self['metric']['unit']}" if self["metric"]["unit"] else ""
        means = [
            f"{one['model']} {one['per_silo']:.4g}" for one in self.get("means", []) if one.get("per_silo") is not None
        ]
        failed = self.get("training_failed", [])
        return [
            ("federation", f"{self['scenario']['name'] if isinstance(self.get('scenario'), Mapping) else self.get('scenario', self.get('name', ''))}"),
            ("silos", f"{sum(not one['unseen'] for one in self['silos'])}, {max(rounds, default=0)} rounds"),
            (f"{self.metric}{unit}", f"{of}; mean over silos: {', '.join(means) or 'none'}"),
            ("trainings", f"{len(failed)} failed" if failed else "none failed"),
            ("views", ".silos(), .rounds(), .curves(), .plot()" + (", .model(silo)" if self._folder else "")),
        ]

    def __repr__(self) -> str:
        return "\n".join(f"{name:<12}{text}" for name, text in self._facts())

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in self._facts())
        return f"<table>{rows}</table>"


class Comparison(dict[str, Any]):
    """The result of a comparison: a plain dictionary, as `rota compare --json` prints it."""

    def table(self) -> Any:
        """One row per variant, strategy and metric, with mean and standard deviation over the seeds
        of the means over silos and over rows, and of the worst silo: a pandas table, or a list of
        dictionaries without pandas."""
        return table(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for variant in self["variants"]:
            for strategy in variant["strategies"]:
                for metric in strategy["metrics"]:
                    row = {"variant": variant["name"], "strategy": strategy["label"], "metric": _named(metric["metric"])}
                    for over in ["silos", "rows", "worst"]:
                        found = (metric["inside"] or {}).get(over) or {"mean": None, "sd": None}
                        row |= {over: found["mean"], f"{over} sd": found["sd"]}
                    rows.append(row)
        return rows

    def _lines(self) -> list[tuple[str, str]]:
        rows = self._rows()
        first = rows[0]["metric"] if rows else ""
        shown = [row for row in rows if row["metric"] == first and row["silos"] is not None]
        best = [f"{row['strategy']} {row['silos']:.4g} ± {row['silos sd'] or 0:.2g}" for row in shown[:4]]
        failed = len([row for row in rows if row["metric"] == first]) - len(shown)
        return [
            ("comparison", str(self.get("experiment", ""))),
            ("runs", f"{len({(row['variant'], row['strategy']) for row in rows})} ways of learning"),
            (str(first), "; ".join(best) + (f"; {len(shown) - 4} more" if len(shown) > 4 else "")),
            ("without value", str(failed) + (f"; {len(missing)} runs are missing" if (missing := self.get("missing")) else "")),
            ("views", ".table()"),
        ]

    def __repr__(self) -> str:
        return "\n".join(f"{name:<14}{text}" for name, text in self._lines())

    def _repr_html_(self) -> str:
        rows = self._rows()
        names = list(rows[0]) if rows else []
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)

        def cell(value: Any) -> str:
            return f"<td>{html.escape('' if value is None else f'{value:.4g}' if isinstance(value, float) else str(value))}</td>"

        body = "".join("<tr>" + "".join(cell(row[name]) for name in names) + "</tr>" for row in rows)
        return f"<table><tr>{head}</tr>{body}</table>"


def _named(metric: Any) -> str:
    """The name of a metric; one of one's own comes with what is better."""
    return str(metric["own"] if isinstance(metric, Mapping) else metric)


def table(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Rows as a pandas table, or a list without pandas."""
    rows = list(rows)
    try:
        import pandas
    except ImportError:
        return [dict(row) for row in rows]
    return pandas.json_normalize(rows)


def _pyplot() -> Any:
    try:
        import matplotlib.ticker
        from matplotlib import pyplot
    except ImportError as error:
        raise RotaError("figures need matplotlib: pip install matplotlib") from error
    assert matplotlib.ticker
    return pyplot


def kept_in(summary: Summary, folder: str | os.PathLike[str], held: TemporaryDirectory[str] | None) -> None:
    """Says where the models of a summary are, and what holds the folder."""
    summary._folder, summary._held = Path(folder), held


__all__: Sequence[str] = ["Comparison", "Summary", "kept_in", "table"]
