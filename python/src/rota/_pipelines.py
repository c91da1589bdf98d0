"""Pipelines of scikit-learn: scalers of columns, which are folded into the parameters of the linear model behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

#: Rows on which a scaler is compared with what is folded.
_COMPARED = 200


def taken_apart(estimator: Any) -> tuple[list[Any], Any]:
    """The scalers of a pipeline and the estimator behind them; none before what is no pipeline."""
    steps = getattr(estimator, "steps", None)
    if steps is None or not hasattr(estimator, "named_steps"):
        return [], estimator
    return [step for _, step in steps[:-1] if step is not None and step != "passthrough"], steps[-1][1]


def scaled(scalers: Sequence[Any], x: Any) -> tuple[Any, Any, Any]:
    """The rows as the scalers make them after they were fitted to these rows, and by column the factor and the offset
    with which they do: `x · factor + offset`.

    Raises `TypeError` for a step that does something else.
    """
    from sklearn.base import clone

    factor, offset = np.ones(x.shape[1]), np.zeros(x.shape[1])
    for scaler in scalers:
        fitted = clone(scaler).fit(x)
        new = fitted.transform(x)
        by, more = _affine(type(scaler).__name__, fitted, x, new)
        factor, offset, x = factor * by, offset * by + more, new
    return x, factor, offset


def _affine(name: str, scaler: Any, x: Any, new: Any) -> tuple[Any, Any]:
    low, high = (dense(end).reshape(-1).astype(np.float64) for end in (x.min(axis=0), x.max(axis=0)))
    high = np.where(high > low, high, low + 1.0)
    # Also beyond the rows, where a scaler may cut off.
    probes = dense(scaler.transform(np.vstack([low, high, 2 * high - low])))
    fits = new.shape == x.shape
    if fits:
        by = (probes[1] - probes[0]) / (high - low)
        more = probes[0] - by * low
        folded = np.vstack([dense(x[:_COMPARED]), 2 * high - low]) * by + more
        fits = np.allclose(folded, np.vstack([dense(new[:_COMPARED]), probes[2]]), atol=1e-6)
    if not fits:
        raise TypeError(
            f"{name} in the pipeline is no scaler of columns, such as StandardScaler or MaxAbsScaler: its part cannot travel "
            "with the coefficients; transform the rows before, alike at every silo"
        )
    return by, more


def dense(values: Any) -> Any:
    """Rows of a sparse matrix in full."""
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)


__all__: Sequence[str] = ["dense", "scaled", "taken_apart"]
