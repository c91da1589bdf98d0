"""A learner from functions on arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from ._learner import Learner, Rows, Split, Tensor, Training, Update
from ._tensors import Arrays, travels

Train = Callable[[Arrays, Training], "Mapping[str, npt.ArrayLike] | Update"]
Evaluate = Callable[[Arrays, Split], Mapping[str, float]]


class FunctionLearner(Learner):
    """A learner from two functions: `train(model, training)` returns the trained arrays, and
    `evaluate(model, split)` their metrics, `loss` at least.

    `model` holds the arrays of the model before the first round, or their shapes.
    """

    def __init__(
        self,
        model: Mapping[str, npt.ArrayLike | tuple[int, ...]],
        train: Train,
        evaluate: Evaluate,
        rows: Rows,
    ) -> None:
        self._model = travels(
            {name: np.zeros(value, np.float32) if isinstance(value, tuple) else value for name, value in model.items()}
        )
        self._train, self._evaluate, self._rows = train, evaluate, rows

    def tensors(self) -> Iterable[Tensor]:
        for name, value in self._model.items():
            if value.size and np.all(value == value.flat[0]):
                yield Tensor(name, value.shape, "weight", float(value.flat[0]))
            else:
                # No number describes them: all silos start from these.
                yield Tensor(name, value.shape, "weight", "program")

    def rows(self) -> Rows:
        return self._rows

    def initial(self, seed: int) -> Mapping[str, npt.ArrayLike]:
        return self._model

    def train(self, start: Arrays, training: Training) -> Update:
        found = self._train(start, training)
        if isinstance(found, Update):
            return found
        model = travels(found)
        return Update(model=model, metrics={"loss": float(self._evaluate(model, "train")["loss"])})

    def evaluate(self, model: Arrays, split: Split, personal: Arrays) -> Mapping[str, float]:
        return self._evaluate(model, split)
