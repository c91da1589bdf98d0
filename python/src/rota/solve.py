"""What a lead computes, on arrays: coalitions, groups, topologies and robust losses.

Each function runs `rota solve` and returns what it prints as a dictionary; matrices and vectors
are NumPy arrays.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ._binary import document

_ARRAYS = {"similarity", "adjacency", "centrality", "prior", "utility"}


def _answer(arguments: list[str]) -> dict[str, Any]:
    found = document(["solve", *arguments, "--json"])
    return {name: np.array(value) if name in _ARRAYS and value is not None else value for name, value in found.items()}


@contextlib.contextmanager
def _files(**tables: npt.ArrayLike | None) -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="rota-") as folder:
        paths = {}
        for name, table in tables.items():
            if table is not None:
                paths[name] = os.path.join(folder, f"{name}.csv")
                values = np.atleast_2d(np.asarray(table, dtype=float))
                lines = [",".join(repr(float(value)) for value in row) for row in values]
                Path(paths[name]).write_text("\n".join(lines) + "\n", encoding="utf-8")
        yield paths


def coalitions(
    losses: npt.ArrayLike,
    number: int | str = "auto",
    *,
    held_out: npt.ArrayLike | None = None,
    at_most: bool = False,
    time_limit: float = 60,
    seed: int = 0,
) -> dict[str, Any]:
    """Groups silos into coalitions that share a model (CS-RCFL), with a proof of optimality.

    `losses[i, j]` is the loss of silo j's model on silo i's data. `number` is that of coalitions, or
    `"auto"`, which needs `held_out`, the same on held-out rows, or cross-fitted losses.
    """
    with _files(losses=losses, held_out=held_out) as paths:
        arguments = ["coalitions", paths["losses"], "--coalitions", str(number)]
        arguments += ["--time-limit", str(time_limit), "--seed", str(seed)]
        arguments += ["--held-out", paths["held_out"]] if "held_out" in paths else []
        return _answer(arguments + (["--at-most"] if at_most else []))


def merge(
    updates: npt.ArrayLike,
    samples: npt.ArrayLike,
    *,
    alpha: float | str = "own",
    groups: int | None = None,
    admit: npt.ArrayLike | None = None,
) -> dict[str, Any]:
    """Merges silos into groups as long as the utility rises (HCCT).

    `updates` has a row for each silo, `samples` the number of its training rows.
    """
    column = np.asarray(samples, dtype=float).reshape(-1, 1)
    with _files(updates=updates, admit=admit) as paths:
        with tempfile.TemporaryDirectory(prefix="rota-") as folder:
            counts = os.path.join(folder, "samples.csv")
            lines = [str(int(value)) if value == int(value) else repr(float(value)) for value in column[:, 0]]
            Path(counts).write_text("\n".join(lines) + "\n", encoding="utf-8")
            arguments = ["merge", paths["updates"], "--samples", counts, "--alpha", str(alpha)]
            arguments += ["--groups", str(groups)] if groups is not None else []
            arguments += ["--admit", paths["admit"]] if "admit" in paths else []
            return _answer(arguments)


def domains(models: npt.ArrayLike, number: int, *, seed: int = 0) -> dict[str, Any]:
    """Finds a domain for every silo by k-means on models that silos train alone (FedCG).

    `models` has a row for each silo.
    """
    with _files(models=models) as paths:
        return _answer(["domains", paths["models"], "--domains", str(number), "--seed", str(seed)])


def topology(
    params: npt.ArrayLike | None = None,
    *,
    similarity: npt.ArrayLike | None = None,
    metric: str = "dot",
    epsilon: float = 0.4,
    centrality: str = "betweenness",
    clusters: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Computes the graph of similar silos, their centralities and a prior (TFL).

    `params` has a row for each silo; `similarity` is a symmetric matrix in its place.
    """
    if (params is None) == (similarity is None):
        raise ValueError("give either `params` or `similarity`")
    with _files(params=params, similarity=similarity) as paths:
        arguments = ["topology", "--epsilon", str(epsilon), "--centrality", centrality]
        if "params" in paths:
            arguments += [paths["params"], "--metric", metric]
            arguments += ["--clusters", str(clusters), "--seed", str(seed)] if clusters is not None else []
        else:
            arguments += ["--similarity", paths["similarity"]]
        return _answer(arguments)


def robust_loss(
    features: npt.ArrayLike,
    target: npt.ArrayLike,
    model: npt.ArrayLike,
    *,
    loss: str,
    radius: float,
    label_cost: float | None = None,
    norm: str | int = 2,
) -> dict[str, Any]:
    """The worst-case loss of a linear model near the data (CS-RCFL). `loss` is `"absolute"` or
    `"logistic"`."""
    x = np.atleast_2d(np.asarray(features, dtype=float))
    y = np.asarray(target, dtype=float).reshape(-1, 1)
    with tempfile.TemporaryDirectory(prefix="rota-") as folder, _files(model=model) as paths:
        data = os.path.join(folder, "data.csv")
        names = [f"x{place}" for place in range(x.shape[1])] + ["y"]
        lines = [",".join(repr(float(value)) for value in row) for row in np.hstack([x, y])]
        Path(data).write_text("\n".join([",".join(names), *lines]) + "\n", encoding="utf-8")
        arguments = ["robust-loss", data, "--target", "y", "--model", paths["model"]]
        arguments += ["--loss", loss, "--radius", str(radius), "--norm", str(norm)]
        arguments += ["--label-cost", str(label_cost)] if label_cost is not None else []
        return _answer(arguments)
