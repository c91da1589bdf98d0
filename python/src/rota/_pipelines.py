"""Pipelines of scikit-learn: scalers of columns, which are folded into the parameters of the linear model behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

#: Rows on which a scaler is compared with what is folded.
_COMPARED = 200


def taken_apart(estimator: Any) -> tuple[list[Any], Any]:
    """The scalers of a pipeline, also of one inside of it, and the estimator behind them; none before what is no
    pipeline."""
    if not _is_pipeline(estimator):
        return [], estimator
    steps = [step for _, step in estimator.steps[:-1] if step is not None and step != "passthrough"]
    inner, last = taken_apart(estimator.steps[-1][1])
    return [one for step in steps for one in _alone(step)] + inner, last


def _is_pipeline(one: Any) -> bool:
    return getattr(one, "steps", None) is not None and hasattr(one, "named_steps")


def _alone(step: Any) -> list[Any]:
    """The steps of a pipeline that is a step itself."""
    if not _is_pipeline(step):
        return [step]
    return [one for _, inner in step.steps if inner is not None and inner != "passthrough" for one in _alone(inner)]


def scaled(scalers: Sequence[Any], x: Any, others: Sequence[Any] = ()) -> tuple[Any, Any, Any]:
    """The rows as the scalers make them after they were fitted to these rows, and by column the factor and the offset
    with which they do: `x · factor + offset`. They must do the same with all rows of `others`.

    Raises `TypeError` for a step that does something else.
    """
    from sklearn.base import clone

    factor, offset = np.ones(x.shape[1]), np.zeros(x.shape[1])
    for scaler in scalers:
        name = type(scaler).__name__
        try:
            fitted = clone(scaler).fit(x)
            new = fitted.transform(x)
        except TypeError as error:
            raise TypeError(f"{_no_scaler(name)} ({error})") from error
        except ValueError as error:
            if "y" not in str(error).split():
                raise
            # Such as a choice of columns, which looks at the targets.
            raise TypeError(f"{_no_scaler(name)} ({error})") from error
        by, more = _affine(name, fitted, x, new)
        for rows in others:
            for at in range(0, rows.shape[0], _COMPARED):
                some = rows[at : at + _COMPARED]
                if not np.allclose(dense(some) * by + more, dense(fitted.transform(some)), atol=1e-6, equal_nan=True):
                    raise TypeError(_no_scaler(name))
        others = [fitted.transform(rows) for rows in others]
        factor, offset, x = factor * by, offset * by + more, new
    return x, factor, offset


def _no_scaler(name: str) -> str:
    return (
        f"{name} in the pipeline is no scaler of columns, such as StandardScaler or MaxAbsScaler: its part cannot travel "
        "with the coefficients; transform the rows before, alike at every silo"
    )


def _affine(name: str, scaler: Any, x: Any, new: Any) -> tuple[Any, Any]:
    low, high = (dense(end).reshape(-1).astype(np.float64) for end in (x.min(axis=0), x.max(axis=0)))
    high = np.where(high > low, high, low + 1.0)
    # Also beyond the rows, where a scaler may cut off.
    beyond = np.vstack([2 * high - low, 2 * low - high])
    probes = dense(scaler.transform(np.vstack([low, high, beyond])))
    fits = new.shape == x.shape
    if fits:
        by = (probes[1] - probes[0]) / (high - low)
        more = probes[0] - by * low
        folded = np.vstack([dense(x[:_COMPARED]), beyond]) * by + more
        fits = np.allclose(folded, np.vstack([dense(new[:_COMPARED]), probes[2:]]), atol=1e-6)
    if not fits:
        raise TypeError(_no_scaler(name))
    return by, more


def dense(values: Any) -> Any:
    """Rows of a sparse matrix in full."""
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)


__all__: Sequence[str] = ["dense", "scaled", "taken_apart"]
