"""Learners from scikit-learn: linear models, whose parameters are `coef_` and `intercept_`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _learner
from ._learner import Outputs, Rows, Split, Tensor, Training, Update
from ._tensors import Arrays

Part = tuple[npt.ArrayLike, npt.ArrayLike]


def _is_tree(estimator: Any) -> bool:
    module = type(estimator).__module__
    return hasattr(estimator, "tree_") or module.split(".")[0] in {"xgboost", "lightgbm", "catboost"} or (
        module.startswith(("sklearn.ensemble", "sklearn.tree"))
    )


class Learner(_learner.Learner):
    """A learner from a linear model of scikit-learn, such as `LogisticRegression`, `Ridge` or
    `SGDClassifier`.

    `train` and `test` are pairs `(x, y)`. For a classifier, `classes` are all classes of the
    federation, in the same order at every silo. Models with `partial_fit` take the agreed number
    of epochs from the start model, with the agreed rate; others are fitted from it, or from
    nothing where the fit does not depend on the start.
    """

    def __init__(
        self,
        estimator: Any,
        train: Part,
        test: Part,
        *,
        classes: Sequence[Any] | None = None,
        validation: Part | None = None,
    ) -> None:
        if _is_tree(estimator):
            raise TypeError(
                f"{type(estimator).__name__} has no parameters to average: trees of different silos do "
                "not correspond to each other; use a linear model or a network"
            )
        if not hasattr(estimator, "get_params") or not hasattr(estimator, "fit"):
            raise TypeError(f"{type(estimator).__name__} is no estimator of scikit-learn")
        self._estimator = estimator
        self._classes = None if classes is None else np.asarray(classes)
        if getattr(estimator, "_estimator_type", None) == "classifier" or hasattr(estimator, "predict_proba"):
            if self._classes is None or len(self._classes) < 2:
                raise ValueError("`classes` is needed: all classes of the federation, in one order")
        parts = {"train": train, "test": test, "validation": validation}
        self._parts = {name: self._part(part) for name, part in parts.items() if part is not None}
        self._features = self._parts["train"][0].shape[1]
        if self._classes is None:
            self._outputs = 1
            self.outputs_loss = "squared"
        else:
            self._outputs = 1 if len(self._classes) == 2 else len(self._classes)
            self.outputs_loss = "logistic" if self._outputs == 1 else "softmax"

    def _part(self, part: Part) -> tuple[Any, Any]:
        x, y = np.asarray(part[0], dtype=np.float64), np.asarray(part[1])
        if self._classes is None:
            return x, y.astype(np.float64)
        places = {value: place for place, value in enumerate(self._classes.tolist())}
        unknown = sorted({value for value in y.tolist() if value not in places}, key=str)
        if unknown:
            raise ValueError(f"the class {unknown[0]!r} is not among `classes`")
        return x, np.array([places[value] for value in y.tolist()], dtype=np.int64)

    def tensors(self) -> Iterator[Tensor]:
        yield Tensor("coef", (self._outputs, self._features), "weight")
        yield Tensor("intercept", (self._outputs,), "bias")

    def rows(self) -> Rows:
        return Rows(**{name: len(part[0]) for name, part in self._parts.items()})

    def train(self, start: Arrays, training: Training) -> Update:
        from sklearn.base import clone

        x, y = self._parts["train"]
        estimator = clone(self._estimator)
        known = estimator.get_params()
        settings: dict[str, Any] = {"random_state": training.seed % (1 << 32)}
        if hasattr(estimator, "partial_fit"):
            settings |= {"eta0": training.rate, "learning_rate": "constant"}
        elif "warm_start" in known:
            settings["warm_start"] = True
        estimator.set_params(**{name: value for name, value in settings.items() if name in known})
        coef, intercept = start["coef"].astype(np.float64), start["intercept"].astype(np.float64)
        if self._classes is not None:
            estimator.classes_ = np.arange(len(self._classes))
            if len(np.unique(y)) < len(self._classes) and not hasattr(estimator, "partial_fit"):
                raise ValueError(
                    f"{type(estimator).__name__} needs training rows of every class: use SGDClassifier"
                )
            estimator.coef_, estimator.intercept_ = coef.copy(), intercept.copy()
        else:
            estimator.coef_, estimator.intercept_ = coef[0].copy(), intercept.copy()
        with warnings.catch_warnings():
            # One training of many need not converge.
            warnings.simplefilter("ignore")
            if hasattr(estimator, "partial_fit"):
                self._epochs(estimator, x, y, training)
            else:
                estimator.fit(x, y)
        model = {
            "coef": np.asarray(estimator.coef_, np.float32).reshape(self._outputs, self._features),
            "intercept": np.broadcast_to(
                np.asarray(estimator.intercept_, np.float32).reshape(-1), (self._outputs,)
            ),
        }
        return Update(model=model, metrics={"loss": self._measured(model, "train")["loss"]})

    def _epochs(self, estimator: Any, x: Any, y: Any, training: Training) -> None:
        classes = {} if self._classes is None else {"classes": np.arange(len(self._classes))}
        order = np.random.default_rng(training.seed)
        # The first call makes the parameters, the start model then takes their place.
        coef, intercept = estimator.coef_, estimator.intercept_
        del estimator.coef_, estimator.intercept_
        estimator.partial_fit(x[:1], y[:1], **classes)
        estimator.coef_ = np.ascontiguousarray(coef)
        estimator.intercept_ = np.ascontiguousarray(intercept)
        for epoch in range(training.epochs):
            chosen = order.permutation(len(x))
            estimator.partial_fit(x[chosen], y[chosen], **classes)
            training.progress(epoch + 1, training.epochs)

    def _raw(self, model: Mapping[str, Any], split: Split) -> tuple[Any, Any]:
        if split not in self._parts:
            raise ValueError(f"this silo has no {split} rows")
        x, y = self._parts[split]
        return x @ np.asarray(model["coef"], np.float64).T + np.asarray(model["intercept"], np.float64), y

    def _measured(self, model: Mapping[str, Any], split: Split) -> dict[str, float]:
        raw, y = self._raw(model, split)
        if self._classes is None:
            error = raw[:, 0] - y
            return {"loss": float(np.mean(error**2)), "mae": float(np.mean(np.abs(error))), "mse": float(np.mean(error**2))}
        scores = np.hstack([np.zeros_like(raw), raw]) if self._outputs == 1 else raw
        top = scores.max(axis=1, keepdims=True)
        total = top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
        loss = float(np.mean(total - scores[np.arange(len(y)), y]))
        right = float(np.mean(scores.argmax(axis=1) == y))
        return {"loss": loss, "log-loss": loss, "accuracy": right}

    def evaluate(self, model: Arrays, split: Split, personal: Arrays) -> Mapping[str, float]:
        return self._measured(model, split)

    def outputs(self, model: Arrays, split: Split, personal: Arrays) -> Outputs:
        raw, y = self._raw(model, split)
        return Outputs(raw, y.astype(np.float64))
