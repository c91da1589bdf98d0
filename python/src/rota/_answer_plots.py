"""Answers to questions, drawn with matplotlib from their printed tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._summary import _pyplot

if TYPE_CHECKING:
    from ._answer import Answer

#: Inches of a row, and of a column with a scale of its own.
_ROW, _COLUMN = 0.42, 3.4
#: Numbers at risk stand at so many times.
_TIMES = 7


def drawn(answer: Answer, axes: Any) -> Any:
    """The axes with the drawing of an answer."""
    draw: Mapping[str, Callable[[Answer, Any], Any]] = {
        "describe": _described,
        "quantiles": _quantiles,
        "crosstab": _counts,
        "correlate": _correlations,
        "km": _curves,
        "logrank": _excess,
        "trees": _learning,
    }
    return draw.get(answer.kind, _forest)(answer, axes)


def _rows(answer: Answer, name: str | None = None) -> list[dict[str, Any]]:
    """The rows of a table; `None` for what is not printed."""
    from ._answer import SUPPRESSED

    table = answer._table(name)
    return [{key: None if cell == SUPPRESSED else cell for key, cell in zip(table["columns"], row)} for row in table["rows"]]


def _axes(axes: Any, size: tuple[float, float], columns: int = 1) -> Any:
    """The axes to draw on, or new ones of that size in inches."""
    if axes is not None:
        found = np.ravel(axes)
        if len(found) != columns:
            raise ValueError(f"this answer needs {columns} axes, and there {'is' if len(found) == 1 else 'are'} {len(found)}")
        return found if columns > 1 else found[0]
    figure, found = _pyplot().subplots(1, columns, figsize=size)
    figure.set_layout_engine("tight")
    return found


# Survival.


def _curves(answer: Answer, axes: Any) -> Any:
    rows = _rows(answer)
    groups = [str(row["group"]) for row in _rows(answer, "groups")]
    if not rows:
        raise ValueError("no step of a curve is printed: each has too few events, or too few rows are at risk")
    axes = _axes(axes, (7.0, 4.2 + 0.25 * len(groups)))
    end = max(row["time"] for row in rows)
    for group in groups:
        points = [row for row in rows if row["group"] == group]
        if not points:
            axes.plot([], [], label=f"{group} (too few events)")
            continue
        times = [0.0, *(row["time"] for row in points)]
        (line,) = axes.step(times, [1.0, *(row["survival"] for row in points)], where="post", label=group)
        # Where nobody or everybody is left there is no interval.
        low, high = ([1.0, *(row["survival"] if row[name] is None else row[name] for row in points)] for name in ("low", "high"))
        axes.fill_between(times, low, high, step="post", alpha=0.15, color=line.get_color(), linewidth=0)
    axes.set(xlim=(0, end * 1.02), ylim=(0, 1.02), xlabel="time", ylabel="survival")
    axes.set_title("Kaplan–Meier, with 95 % intervals", loc="left", fontsize="medium")
    if len(groups) > 1 or groups != ["all"]:
        axes.legend(frameon=False)
    ticks = _pyplot().matplotlib.ticker.MaxNLocator(_TIMES, steps=[1, 2, 3, 5, 6, 10]).tick_values(0, end)
    ticks = [tick for tick in ticks if 0 <= tick <= end]
    axes.set_xticks(ticks)
    _at_risk(axes, groups, rows, ticks)
    return axes


def _at_risk(axes: Any, groups: Sequence[str], rows: Sequence[Mapping[str, Any]], ticks: Sequence[float]) -> None:
    """The numbers at risk beneath the axis of times: those before the step that a time belongs to."""
    # Steps of a line of text below the axis, and its label.
    line, below = 15.0, 44.0

    def text(words: str, x: Any, down: float, **how: Any) -> None:
        # By points below the axis, whatever the height of the figure.
        axes.annotate(words, (x, 0), (0, -down), xycoords=("data", "axes fraction"), textcoords="offset points", va="top", fontsize="small", annotation_clip=False, **how)

    def label(words: str, down: float, **how: Any) -> None:
        axes.annotate(words, (0, 0), (-14, -down), xycoords="axes fraction", textcoords="offset points", ha="right", va="top", fontsize="small", annotation_clip=False, **how)

    label("at risk", below, fontweight="bold")
    colours = [line.get_color() for line in axes.get_lines()]
    for place, group in enumerate(groups):
        down = below + line * (place + 1)
        label(group, down, color=colours[place])
        points = [row for row in rows if row["group"] == group]
        for tick in ticks:
            found = next((row["at_risk"] for row in points if row["time"] >= tick), None)
            if found is not None:
                text(f"{found:,}", tick, down, ha="center")


def _excess(answer: Answer, axes: Any) -> Any:
    from ._answer import probability, short

    rows = _rows(answer, "groups")
    axes = _axes(axes, (6.0, 1.6 + _ROW * len(rows)))
    places = np.arange(len(rows))
    excess = [np.nan if row["excess"] is None else row["excess"] for row in rows]
    axes.barh(places, excess, height=0.6)
    axes.axvline(0, color="0.4", linewidth=0.8)
    axes.set_yticks(places, [f"{row['group']} (n = {row['n']:,})" if row["n"] is not None else str(row["group"]) for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("observed − expected events")
    test = _rows(answer)[0]
    said = f"log-rank: χ² = {short(test['chi_squared'])}, {test['freedom']} df, {probability(test['p_value'])}"
    axes.set_title(said, loc="left", fontsize="medium")
    return axes


# Coefficients.


def _forest(answer: Answer, axes: Any) -> Any:
    rows = [row for row in _rows(answer) if row.get("coefficient", row.get("effect")) is not None]
    ratios = bool(rows) and "ratio" in rows[0]
    named = "term" if "term" in rows[0] else "model"
    axes = _axes(axes, (7.0, 1.6 + _ROW * len(rows)))
    places = np.arange(len(rows))

    def shown(value: Any) -> Any:
        return np.nan if value is None else float(np.exp(value)) if ratios else float(value)

    values, lows, highs = ([shown(row.get(name)) for row in rows] for name in ("coefficient" if named == "term" else "effect", "low", "high"))
    axes.hlines(places, lows, highs, linewidth=1.6)
    axes.plot(values, places, "o", markersize=6)
    axes.axvline(1.0 if ratios else 0.0, color="0.4", linewidth=0.8, linestyle="--")
    axes.set_yticks(places, [str(row[named]) for row in rows])
    axes.invert_yaxis()
    axes.set_ylim(len(rows) - 0.5, -0.5)
    if ratios:
        axes.set_xscale("log")
        ticker = _pyplot().matplotlib.ticker
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0), numticks=20))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        # At least two ticks, also where all ratios are near 1.
        finite = [value for value in (*values, *lows, *highs, 1.0) if np.isfinite(value)]
        axes.set_xlim(min(0.5, *finite) / 1.1, max(2.0, *finite) * 1.1)
    axes.set_xlabel(_ratio(answer) if ratios else "coefficient" if named == "term" else "effect")
    intervals = any(np.isfinite(low) for low in lows)
    axes.set_title("estimates with 95 % intervals" if intervals else "estimates; a ridge leaves no intervals", loc="left", fontsize="medium")
    for place, value, low, high in zip(places, values, lows, highs):
        said = f"{value:.3g}" + (f" ({low:.3g} to {high:.3g})" if np.isfinite(low) else "")
        axes.annotate(said, (1.0, place), (8, 0), xycoords=("axes fraction", "data"), textcoords="offset points", va="center", fontsize="small", annotation_clip=False)
    return axes


def _ratio(answer: Answer) -> str:
    if answer.kind == "cox":
        return "hazard ratio"
    return "odds ratio" if answer.question.get("family") == "binomial" else "ratio"


# Columns.


def _described(answer: Answer, axes: Any) -> Any:
    rows = _rows(answer)
    columns = list(dict.fromkeys(str(row["column"]) for row in rows))
    groups = list(dict.fromkeys(str(row.get("group", "all")) for row in rows))
    found = _axes(axes, (_COLUMN * len(columns), 1.5 + _ROW * len(groups)), len(columns))
    for column, one in zip(columns, np.ravel(found)):
        for row in rows:
            if row["column"] != column:
                continue
            place = groups.index(str(row.get("group", "all")))
            if row["mean"] is None:
                one.annotate("suppressed", (0.5, place), xycoords=("axes fraction", "data"), ha="center", va="center", fontsize="small")
                continue
            one.errorbar([row["mean"]], [place], xerr=[row["standard_deviation"] or 0.0], fmt="o", capsize=3, color="C0")
        one.set_ylim(len(groups) - 0.5, -0.5)
        one.set_yticks(range(len(groups)), groups if len(groups) > 1 or groups != ["all"] else [""])
        one.set_xlabel(column)
    np.ravel(found)[0].set_title("means ± standard deviations", loc="left", fontsize="medium")
    return found


def _quantiles(answer: Answer, axes: Any) -> Any:
    rows = _rows(answer)
    columns = list(dict.fromkeys(str(row["column"]) for row in rows))
    found = _axes(axes, (_COLUMN * len(columns), 3.2), len(columns))
    for column, one in zip(columns, np.ravel(found)):
        own = [row for row in rows if row["column"] == column and row["value"] is not None]
        values, within = [row["value"] for row in own], [row["within"] or 0.0 for row in own]
        one.errorbar(values, [row["probability"] for row in own], xerr=within, fmt="o-", capsize=3)
        one.set_ylim(-0.02, 1.02)
        one.set_xlabel(column)
    np.ravel(found)[0].set_ylabel("share of the rows at most")
    return found


# Trees.


def _learning(answer: Answer, axes: Any) -> Any:
    rows = _rows(answer)
    axes = _axes(axes, (6.4, 3.8))
    losses = {name: "held out" if name.startswith("held_out") else "in training" for name in rows[0] if name != "trees"}
    for name, label in losses.items():
        axes.plot([row["trees"] for row in rows], [row[name] for row in rows], label=label)
    axes.set(xlabel="trees", ylabel=next(iter(losses)).replace("_", " "), xlim=(0, rows[-1]["trees"]))
    axes.legend(frameon=False)
    return axes


# Maps.


def _counts(answer: Answer, axes: Any) -> Any:
    table = answer._table("counts")
    # Totals come last, where they are printed.
    rows, names = list(table["rows"]), list(table["columns"])
    rows = rows[:-1] if rows and rows[-1][0] == "total" else rows
    levels = [str(name) for name in (names[1:-1] if names[-1] == "total" else names[1:])]
    counts = np.array([[cell if isinstance(cell, (int, float)) else np.nan for cell in row[1 : 1 + len(levels)]] for row in rows], dtype=float)
    asked = answer.question
    axes = _map(axes, counts, [str(row[0]) for row in rows], levels, "Blues", (0.0, max(1.0, float(np.nanmax(counts, initial=0.0)))), lambda x: f"{x:,.0f}")
    axes.set(xlabel=asked.get("columns", ""), ylabel=str(table["columns"][0]) if table["columns"][0] != "level" else asked.get("rows", ""))
    axes.set_title(str(table["title"]) + ("; · suppressed" if answer.suppressed else ""), loc="left", fontsize="medium")
    return axes


def _correlations(answer: Answer, axes: Any) -> Any:
    table = answer._table("correlations")
    names = [str(row[0]) for row in table["rows"]]
    values = np.array([row[-len(names) :] for row in table["rows"]], dtype=float)
    axes = _map(axes, values, names, names, "RdBu_r", (-1.0, 1.0), lambda x: f"{x:.2f}")
    axes.set_title("correlations", loc="left", fontsize="medium")
    return axes


def _map(
    axes: Any, values: Any, rows: Sequence[str], columns: Sequence[str], colours: str, span: tuple[float, float], text: Callable[[float], str]
) -> Any:
    """Numbers as colours, with their texts; `·` for one that is not printed."""
    axes = _axes(axes, (1.8 + 0.75 * len(columns), 1.4 + _ROW * len(rows)))
    axes.set_facecolor("0.92")
    axes.imshow(values, cmap=colours, vmin=span[0], vmax=span[1], aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        middle = (value - span[0]) / (span[1] - span[0])
        dark = np.isfinite(value) and (middle > 0.65 or (span[0] < 0 and middle < 0.2))
        axes.text(column, row, text(value) if np.isfinite(value) else "·", ha="center", va="center", fontsize="small", color="white" if dark else "black")
    axes.set_xticks(range(len(columns)), columns, rotation=0 if max(map(len, columns)) < 9 else 30, ha="center" if max(map(len, columns)) < 9 else "right")
    axes.set_yticks(range(len(rows)), rows)
    return axes
