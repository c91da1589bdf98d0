"""Rows and settings that linear models of scikit-learn are given: numbers are made of them, or it is said why not."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ._columns import names_of
from ._pipelines import dense

#: Rules of SGD whose steps follow from the loss of a row, and not from a rate.
_PASSIVE_AGGRESSIVE = ("pa1", "pa2")
#: What works in place of an estimator that has no coefficients of its own.
_INSTEAD = {
    "GridSearchCV": "it chooses settings: fit it before, on rows of one silo, and give the kind of its `best_estimator_`",
    "RandomizedSearchCV": "it chooses settings: fit it before, on rows of one silo, and give the kind of its `best_estimator_`",
    "OneVsRestClassifier": "LogisticRegression, RidgeClassifier and SGDClassifier take several classes as they are",
    "OneVsOneClassifier": "LogisticRegression, RidgeClassifier and SGDClassifier take several classes as they are",
    "MultiOutputRegressor": "LinearRegression, Ridge and Lasso take several targets as they are",
    "MultiOutputClassifier": "give one learner for each target",
    "ClassifierChain": "give one learner for each target",
    "TransformedTargetRegressor": "transform the targets before, alike at every silo, and give the regressor alone",
    "CalibratedClassifierCV": "give the classifier alone, and calibrate the federation's model afterwards",
}


def instead_of(estimator: Any) -> str:
    """What works in place of this estimator, as the end of a sentence; empty where nothing is known."""
    known = _INSTEAD.get(type(estimator).__name__)
    return "" if known is None else f"; {known}"


def features(part: str, values: Any) -> Any:
    """Features as 64-bit floats, sparse ones by rows.

    Raises `ValueError` for what is no table of real numbers.
    """
    # Rows are drawn by their places, for which a matrix is sparse by rows.
    if hasattr(values, "tocsr"):
        from scipy.sparse import csr_matrix

        _check_real(f"the features of `{part}`", values.dtype)
        # Older versions of scikit-learn do not know the sparse arrays of SciPy.
        filled = csr_matrix(values, dtype=np.float64)
        _check_finite(f"the features of `{part}`", filled.data, None)
        return filled
    made = np.asarray(values)
    _check_real(f"the features of `{part}`", made.dtype)
    try:
        found = np.asarray(made, dtype=np.float64)
    except (TypeError, ValueError) as error:
        where = _column_of(made, names_of(values))
        raise ValueError(
            f"the features of `{part}` are no numbers{where} ({error}): give numbers, such as a column of 0 and 1 for each "
            "category, and fill in what is missing, or leave the row out"
        ) from error
    if found.ndim != 2:
        raise ValueError(f"the features of `{part}` have the shape {found.shape}: give rows × columns, such as x.reshape(-1, 1)")
    _check_finite(f"the features of `{part}`", found, names_of(values))
    return found


def targets(part: str, values: Any) -> Any:
    """Targets as they are, in full, those of one column without it."""
    found = dense(values)
    _check_real(f"the targets of `{part}`", found.dtype)
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def weights_of(targets: Any, values: Any) -> Any:
    """Weights of training rows with these targets as 64-bit floats."""
    weights, count = np.asarray(values, dtype=np.float64), len(np.asarray(targets))
    if weights.shape != (count,):
        raise ValueError(f"`train` has {count} targets, and weights of the shape {weights.shape}")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError("the weights of `train` are negative, missing or not finite: leave these rows out, or give them the weight 0")
    return weights


def as_numbers(part: str, values: Any) -> Any:
    """Targets of a regression as 64-bit floats."""
    try:
        found = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the targets of `{part}` are no numbers ({error}): leave out rows without a target, or give a classifier and `classes`"
        ) from error
    _check_finite(f"the targets of `{part}`", found, None)
    return found


def _check_finite(what: str, values: Any, names: list[str] | None) -> None:
    """Refuses what is missing: neither a training nor a loss has a value with it."""
    if np.isfinite(values).all():
        return
    places = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=0))
    where = f" in the column {names[places[0]]!r}" if names else f" in column {places[0]}" if values.ndim == 2 else ""
    raise ValueError(f"{what} are missing or not finite{where}: fill them in, alike at every silo, or leave these rows out")


def _check_real(what: str, kind: Any) -> None:
    if np.dtype(kind).kind == "c":
        raise ValueError(f"{what} are complex numbers, of which a model would take the real part alone: give both parts as columns")
    if np.dtype(kind).kind in "mM":
        raise ValueError(
            f"{what} are times ({np.dtype(kind)}), whose numbers depend on a unit that is another one in other versions of pandas: "
            "give numbers, such as the days since a date that all silos agree on"
        )


def _column_of(made: Any, names: list[str] | None) -> str:
    """Which column has values that are no numbers, as a part of a sentence."""
    for place in range(made.shape[1] if made.ndim == 2 else 0):
        try:
            made[:, place].astype(np.float64)
        except (TypeError, ValueError):
            return f" in the column {names[place]!r}" if names else f" in column {place}"
    return ""


def check_sizes(parts: Mapping[str, tuple[Any, Any]]) -> None:
    """Refuses parts whose rows, columns and targets do not go with each other: NumPy would spread some over others."""
    train_x, train_y = parts["train"]
    for part, (x, y) in parts.items():
        if x.shape[0] != len(y):
            raise ValueError(f"`{part}` has {x.shape[0]} rows and {len(y)} targets")
        if x.shape[1] != train_x.shape[1]:
            raise ValueError(f"`{part}` has {x.shape[1]} columns, and `train` {train_x.shape[1]}")
        if y.shape[1:] != train_y.shape[1:]:
            raise ValueError(f"`{part}` has targets of the shape {y.shape}, and `train` of the shape {train_y.shape}")


def has_rate(settings: Mapping[str, Any]) -> bool:
    """Whether an estimator that takes single steps takes them by a rate."""
    return settings.get("learning_rate") not in _PASSIVE_AGGRESSIVE


def check_steps(estimator: Any) -> Iterator[str]:
    """Refuses settings with which an estimator takes no single steps; what else is done otherwise than it says."""
    settings, name = estimator.get_params(), type(estimator).__name__
    if not hasattr(estimator, "partial_fit"):
        return
    if settings.get("early_stopping"):
        raise ValueError(
            f"{name} with `early_stopping` keeps rows back in a fit of its own: leave it out, the federation can stop early by "
            "validation rows"
        )
    if settings.get("class_weight") == "balanced":
        raise ValueError(
            f'{name} takes single steps, for which `class_weight="balanced"` has no meaning: give the weights as a dictionary, '
            "alike at every silo, or weights of rows, (x, y, sample_weight)"
        )
    if not has_rate(settings):
        yield f"{name} takes steps whose size follows from the loss of each row: the agreed rate does not matter"
        return
    # What wraps another estimator cannot be made without it, and has no such settings.
    own = {key: one.default for key, one in inspect.signature(type(estimator)).parameters.items() if key in ("learning_rate", "eta0")}
    given = [f"{key}={settings[key]!r}" for key, value in own.items() if settings[key] != value]
    if given:
        yield f"{name} takes steps by the agreed rate, the same in all of them, and not by {' and '.join(given)}"
