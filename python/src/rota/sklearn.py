"""Learners from scikit-learn: linear models, whose parameters are `coef_` and `intercept_`."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _learner
from ._columns import ordered
from ._linear_rows import as_numbers, check_sizes, check_steps, features, has_rate, instead_of, targets, weights_of
from ._notes import note
from ._pipelines import dense, scaled, taken_apart
from ._learner import Outputs, Rows, Split, Tensor, Training, Update
from ._tensors import Arrays

#: Features and targets, and for training rows their weights, where they have some.
Part = tuple[npt.ArrayLike, ...]


def _is_tree(estimator: Any) -> bool:
    module = type(estimator).__module__
    return hasattr(estimator, "tree_") or module.split(".")[0] in {"xgboost", "lightgbm", "catboost"} or (
        module.startswith(("sklearn.ensemble", "sklearn.tree"))
    )


def _label(value: Any) -> str:
    """The label of a class, by which silos compare: 1, 1.0 and True are one."""
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, (float, np.floating)) and value.is_integer()):
        value = int(value)
    return str(value)


def _agreed(classes: Sequence[Any], agreed: Sequence[str]) -> list[Any]:
    """The classes in the agreed order, or in their own where none is agreed, or others."""
    known = {_label(value): value for value in np.asarray(classes).tolist()}
    if sorted(known) != sorted(agreed):
        return list(classes)
    return [known[label] for label in agreed]


def _links(estimator: Any) -> tuple[float, bool] | None:
    """The power of a generalised linear model's variance, and whether it predicts by the exponential; `None` for
    others."""
    from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor

    for kind, power in ((PoissonRegressor, 1.0), (GammaRegressor, 2.0)):
        if isinstance(estimator, kind):
            return power, True
    if isinstance(estimator, TweedieRegressor):
        return estimator.power, estimator.link == "log" or (estimator.link == "auto" and estimator.power > 0)
    return None


def _check_columns(what: str, x: Any) -> None:
    """`_check_fine` of all columns at once."""
    if not x.shape[0]:
        return
    if hasattr(x, "toarray"):
        largest = dense(abs(x).max(axis=0)).reshape(-1)
        mean = np.asarray(x.mean(axis=0)).reshape(-1)
        spread = np.sqrt(np.maximum(np.asarray(x.multiply(x).mean(axis=0)).reshape(-1) - mean**2, 0.0))
    else:
        with np.errstate(invalid="ignore"):
            largest, spread = np.abs(x).max(axis=0), np.std(x, axis=0)
    for place in np.flatnonzero(np.isnan(largest) | (np.spacing(largest.astype(np.float32)) > 0.01 * spread)):
        _check_fine(f"{what.format(place)}", dense(x[:, [place]]).reshape(-1))


def _check_fine(what: str, values: Any) -> None:
    """Refuses numbers that a model of 32-bit floats cannot tell apart."""
    finite = values[np.isfinite(values)]
    spread = float(np.std(finite)) if finite.size else 0.0
    step = float(np.spacing(np.float32(np.abs(finite).max()))) if finite.size else 0.0
    if spread > 0 and step > 0.01 * spread:
        raise ValueError(
            f"{what} is around {float(np.mean(finite)):.6g} with a deviation of {spread:.3g}, and models travel as 32-bit "
            f"floats, whose steps are {step:.3g} there: subtract a number that all silos agree on, such as "
            f"{float(np.mean(finite)):.3g}"
        )


class Learner(_learner.Learner):
    """A learner from a linear model of scikit-learn, such as `LogisticRegression`, `Ridge`, `PoissonRegressor` or
    `SGDClassifier`, alone or behind scalers in a pipeline.

    `train` and `test` are pairs `(x, y)`; `train` may be `(x, y, sample_weight)`. `x` may be sparse, and `y` of a
    regression have several columns. With `silo`, as the factory of `rota.serve` gets it, columns of a
    DataFrame are put into the agreed order. For a classifier, `classes` are all classes of the
    federation; with `silo` they are put into the agreed order, without it they must be in the same order
    at every silo. Models with `partial_fit` take the agreed number
    of epochs from the start model, row by row, with the agreed rate; others are fitted from it, or
    from nothing where the fit does not depend on the start, and the agreed training does not matter. An estimator with a
    `random_state` keeps it; one without draws by the seed of the training.

    Raises `TypeError` for an estimator that is no linear model of `coef_` and `intercept_`, which is
    tried on a few made-up rows, and `ValueError` for rows that do not fit.
    """

    def __init__(
        self,
        estimator: Any,
        train: Part,
        test: Part,
        *,
        classes: Sequence[Any] | None = None,
        validation: Part | None = None,
        silo: _learner.Silo | None = None,
    ) -> None:
        from sklearn.base import is_classifier

        self._scalers, estimator = taken_apart(estimator)
        name = type(estimator).__name__
        if _is_tree(estimator):
            raise TypeError(
                f"{name} has no parameters to average: trees of different silos do not correspond to each "
                "other; use a linear model or a network"
            )
        if not hasattr(estimator, "get_params") or not hasattr(estimator, "fit"):
            raise TypeError(f"{name} is no estimator of scikit-learn")
        if getattr(estimator, "average", False):
            raise TypeError(f"{name} with `average` keeps two models: leave `average` out, the federation averages")
        self._estimator = estimator
        self._classes = None if classes is None else np.asarray(_agreed(classes, silo.classes if silo is not None else []))
        if is_classifier(estimator):
            if self._classes is None or len(self._classes) < 2:
                raise ValueError("`classes` is needed: all classes of the federation, in one order")
        elif self._classes is not None:
            raise ValueError(f"{name} is no classifier: leave out `classes`")
        train, self._weights = self._weighted(name, estimator, train)
        train, self._columns = ordered("train", train, silo.columns if silo is not None else [])
        test, validation = (ordered(name, part, self._columns)[0] for name, part in (("test", test), ("validation", validation)))
        parts = {"train": train, "test": test, "validation": validation}
        self._parts = {name: self._part(name, part) for name, part in parts.items() if part is not None}
        check_sizes(self._parts)
        for one in check_steps(estimator):
            note(one)
        x, y = self._parts["train"]
        self._features = x.shape[1]
        self._links = _links(estimator)
        if self._scalers:
            # What is no scaler is refused before anything else, also where other rows show it.
            scaled(self._scalers, x, [found for found, _ in self._parts.values()])
            note("each silo scales columns by its own rows; the model travels on the scale of the rows as they are given")
        if self._classes is None:
            self._outputs = y.shape[1] if y.ndim == 2 else 1
            self.outputs_loss = "squared"
        else:
            self._outputs = 1 if len(self._classes) == 2 else len(self._classes)
            self.outputs_loss = "logistic" if self._outputs == 1 else "softmax"
        missing = set(range(len(self._classes))) - set(y.tolist()) if self._classes is not None else None
        if missing and not hasattr(estimator, "partial_fit"):
            raise ValueError(f"{name} needs training rows of every class: use SGDClassifier")
        self._estimator = self._by_place(estimator)
        self._try()

    @staticmethod
    def _weighted(name: str, estimator: Any, train: Part) -> tuple[Part, Any]:
        """Training rows, and their weights where they have some."""
        if len(train) == 2:
            return train, None
        if len(train) != 3:
            raise ValueError(f"`train` has {len(train)} parts: give (x, y), or (x, y, sample_weight)")
        weights = weights_of(train[1], train[2])
        taken = inspect.signature(getattr(estimator, "partial_fit", estimator.fit)).parameters
        if "sample_weight" not in taken:
            raise TypeError(f"{name} takes no `sample_weight`: leave it out, or use another estimator")
        note(
            "rows have weights in the training of a silo; in the mean over silos each silo weighs its number of rows"
        )
        return train[:2], weights

    def _by_place(self, estimator: Any) -> Any:
        """The estimator for classes by their places: `class_weight` has labels as keys."""
        from sklearn.base import clone

        weights = estimator.get_params().get("class_weight")
        if self._classes is None or not isinstance(weights, Mapping):
            return estimator
        places = {value: place for place, value in enumerate(self._classes.tolist())}
        unknown = [label for label in weights if label not in places]
        if unknown:
            raise ValueError(f"`class_weight` names the class {unknown[0]!r}, and `classes` are {', '.join(map(repr, places))}")
        return clone(estimator).set_params(class_weight={places[label]: value for label, value in weights.items()})

    def _try(self) -> None:
        """Trains on made-up rows, and compares what the estimator predicts with what its parameters
        say."""
        draw = np.random.default_rng(1)
        count = max(20, 5 * (0 if self._classes is None else len(self._classes)))
        x = draw.normal(size=(count, self._features)) / np.sqrt(self._features)
        if self._classes is None:
            y = np.exp(x.sum(axis=1)) if self._links else x.sum(axis=1) + 3.0
            y = y if self._outputs == 1 else np.column_stack([(1 + nth) * y for nth in range(self._outputs)])
        else:
            y = np.arange(count) % len(self._classes)
        if hasattr(self._parts["train"][0], "toarray"):
            x = type(self._parts["train"][0])(x)
        # Some need more rows than these, such as those that cross-validate.
        rows = [(x, y), self._parts["train"]]
        how = Training(1, 0, "sgd", 0.01, 0.0, 0.0, 1, {}, None)
        start = {"coef": np.zeros((self._outputs, self._features)), "intercept": np.zeros(self._outputs)}
        agrees, why = False, ""
        for x, y in rows:
            try:
                estimator, model = self._fitted(x, y, None if x is not self._parts["train"][0] else self._weights, start, how)
                raw = self._scores(model, x)
                if self._classes is None:
                    agrees = np.allclose(estimator.predict(scaled(self._scalers, x)[0]), self._predicted(raw), atol=1e-3, rtol=1e-3)
                else:
                    own = raw[:, 0] > 0 if self._outputs == 1 else raw.argmax(axis=1)
                    agrees = bool(np.mean(estimator.predict(scaled(self._scalers, x)[0]) == own) > 0.9)
                why = ""
                break
            except Exception as error:
                why = f" ({type(error).__name__}: {error})"
        if not agrees:
            raise TypeError(
                f"{type(self._estimator).__name__} is no linear model whose `coef_` and `intercept_` can be averaged: "
                f"use one such as LogisticRegression, Ridge or SGDClassifier, or rota.FunctionLearner{instead_of(self._estimator)}{why}"
            )

    def _part(self, name: str, part: Part) -> tuple[Any, Any]:
        if len(part) != 2:
            raise ValueError("held-out rows have no weights: metrics count every row once; give (x, y)")
        x, y = features(name, part[0]), targets(name, part[1])
        _check_columns("column {} of the features", x)
        if y.ndim > (1 if self._classes is not None else 2):
            raise ValueError(f"targets have the shape {y.shape}: give one class for each row, or for a regression one or more numbers")
        if self._classes is None:
            y = as_numbers(name, y)
            _check_columns("the target" if y.ndim == 1 else "target {}", y.reshape(len(y), -1))
            return x, y
        places = {value: place for place, value in enumerate(self._classes.tolist())}
        unknown = sorted({value for value in y.tolist() if value not in places}, key=str)
        if unknown:
            raise ValueError(f"the class {unknown[0]!r} is not among `classes`")
        return x, np.array([places[value] for value in y.tolist()], dtype=np.int64)

    def tensors(self) -> Iterator[Tensor]:
        yield Tensor("coef", (self._outputs, self._features), "weight")
        yield Tensor("intercept", (self._outputs,), "bias")

    def columns(self) -> Sequence[str]:
        return self._columns

    def classes(self) -> Sequence[str]:
        return [] if self._classes is None else [_label(value) for value in self._classes.tolist()]

    def tried(self, model: Arrays) -> tuple[Sequence[int], npt.ArrayLike]:
        # Two rows and their targets, with the values that other learners make up.
        made = np.cos(1.0 + 1.3 * np.arange(2.0 * self._features)).reshape(2, self._features)
        return (2, 2, self._features, 1, 2), self._scores(model, made).reshape(-1)[:16]

    def rows(self) -> Rows:
        return Rows(**{name: len(part[1]) for name, part in self._parts.items()})

    def train(self, start: Arrays, training: Training) -> Update:
        _, model = self._fitted(*self._parts["train"], self._weights, start, training)
        return Update(model=model, metrics={"loss": self._measured(model, "train")["loss"]})

    def _fitted(self, x: Any, y: Any, weights: Any, start: Mapping[str, Any], training: Training) -> tuple[Any, dict[str, Any]]:
        """The estimator after a training on these rows, and its parameters."""
        from sklearn.base import clone

        estimator = clone(self._estimator)
        known = estimator.get_params()
        settings: dict[str, Any] = {}
        if known.get("random_state") is None:
            # With a state of its own it answers the same question in the same way, too.
            settings["random_state"] = training.seed % (1 << 32)
        if hasattr(estimator, "partial_fit"):
            if training.optimiser != "sgd" or training.momentum or training.weight_decay:
                raise ValueError(
                    "scikit-learn takes plain steps of SGD: agree on sgd without momentum and weight decay "
                    "(an estimator has a penalty of its own)"
                )
            settings |= {"eta0": training.rate, "learning_rate": "constant"} if has_rate(known) else {}
        elif "warm_start" in known:
            # Means may not be zero or less, which they are at a start of zeros without the exponential.
            settings["warm_start"] = self._links is None or self._links[1] or self._links[0] <= 0
        estimator.set_params(**{name: value for name, value in settings.items() if name in known})
        coef, intercept = np.array(start["coef"], np.float64), np.array(start["intercept"], np.float64)
        x, factor, offset = scaled(self._scalers, x)
        # The same function of scaled rows, and back after the training.
        coef = np.divide(coef, factor, out=np.zeros_like(coef), where=factor != 0)
        intercept = intercept - coef @ offset
        if self._classes is not None:
            # Some derive it from what they were fitted on.
            with contextlib.suppress(AttributeError):
                estimator.classes_ = np.arange(len(self._classes))
        estimator.coef_ = coef if self._classes is not None or self._outputs > 1 else coef[0]
        estimator.intercept_ = intercept[0] if self._links else intercept
        with warnings.catch_warnings():
            # One training of many need not converge.
            warnings.simplefilter("ignore")
            if hasattr(estimator, "partial_fit"):
                self._epochs(estimator, x, y, weights, training)
            else:
                weighed = {} if weights is None else {"sample_weight": weights}
                try:
                    estimator.fit(x, y, **weighed)
                except AttributeError:
                    # Such as HuberRegressor, which needs more than coefficients to go on, and whose fit does not depend
                    # on the start.
                    estimator = clone(estimator).set_params(warm_start=False).fit(x, y, **weighed)
        coef = dense(estimator.coef_).astype(np.float64).reshape(self._outputs, self._features)
        intercept = np.broadcast_to(np.asarray(estimator.intercept_, np.float64).reshape(-1), (self._outputs,))
        model = {
            "coef": (coef * factor).astype(np.float32),
            "intercept": (intercept + coef @ offset).astype(np.float32),
        }
        return estimator, model

    def _epochs(self, estimator: Any, x: Any, y: Any, weights: Any, training: Training) -> None:
        classes = {} if self._classes is None else {"classes": np.arange(len(self._classes))}
        order = np.random.default_rng(training.seed)
        # The first call makes the parameters, the start model then takes their place.
        coef, intercept = estimator.coef_, estimator.intercept_
        del estimator.coef_, estimator.intercept_
        estimator.partial_fit(x[:1], y[:1], **classes)
        estimator.coef_ = np.ascontiguousarray(coef)
        estimator.intercept_ = np.ascontiguousarray(intercept)
        for epoch in range(training.epochs):
            chosen = order.permutation(x.shape[0])
            weighed = {} if weights is None else {"sample_weight": weights[chosen]}
            estimator.partial_fit(x[chosen], y[chosen], **classes, **weighed)
            training.progress(epoch + 1, training.epochs)

    @staticmethod
    def _scores(model: Mapping[str, Any], x: Any) -> Any:
        return x @ np.asarray(model["coef"], np.float64).T + np.asarray(model["intercept"], np.float64)

    def _raw(self, model: Mapping[str, Any], split: Split) -> tuple[Any, Any]:
        if split not in self._parts:
            raise ValueError(f"this silo has no {split} rows")
        x, y = self._parts[split]
        return self._scores(model, x), y

    def _predicted(self, raw: Any) -> Any:
        """What a regression predicts."""
        found = raw if self._outputs > 1 else raw[:, 0]
        # Beyond this, floats end.
        return np.exp(np.minimum(found, 700.0)) if self._links is not None and self._links[1] else found

    def _measured(self, model: Mapping[str, Any], split: Split) -> dict[str, float]:
        raw, y = self._raw(model, split)
        if self._classes is None:
            found = self._predicted(raw)
            error = found - y
            squared = {"mae": float(np.mean(np.abs(error))), "mse": float(np.mean(error**2))}
            if self._links is None or self._links[0] == 0:
                return {"loss": squared["mse"]} | squared
            from sklearn.metrics import mean_tweedie_deviance

            deviance = float(mean_tweedie_deviance(y, np.maximum(found, np.finfo(float).tiny), power=self._links[0]))
            return {"loss": deviance, "deviance": deviance} | squared
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
        return Outputs(raw if self._classes is not None else self._predicted(raw), y.astype(np.float64))
