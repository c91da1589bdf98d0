"""A learner from functions on arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from ._learner import Learner, Rows, Split, Tensor, Training, Update, number
from ._tensors import Arrays, travels
from ._where import defined

Train = Callable[[Arrays, Training], "Mapping[str, npt.ArrayLike] | Update"]
Evaluate = Callable[..., Mapping[str, float]]


class FunctionLearner(Learner):
    """A learner from two functions: `train(model, training)` returns the trained arrays, and
    `evaluate(model, split)` their metrics, `loss` at least. One that takes a third argument, `evaluate(model, split,
    round)`, gets the round in which the silo trained last, `None` before its first.

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
        self._train, self._rows, self._asked = train, rows, evaluate
        self._evaluate: Evaluate = evaluate if _takes_round(evaluate) else lambda model, split, _: evaluate(model, split)

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
        return {name: value.copy() for name, value in self._model.items()}

    def train(self, start: Arrays, training: Training) -> Update:
        found = self._train(start, training)
        if isinstance(found, Update):
            return found
        if not isinstance(found, Mapping):
            raise ValueError(
                f"`train` gave {_said(found)}, it must return the trained arrays by name, or a rota.Update{defined(self._train)}"
            )
        model = travels(found)
        # What is measured may be changed in place, and what was learned travels.
        copy = {name: value.copy() for name, value in model.items()}
        return Update(model=model, metrics={"loss": number("loss", self._measured(copy, "train", training.round)["loss"])})

    def evaluate(self, model: Arrays, split: Split, personal: Arrays) -> Mapping[str, float]:
        return self._measured(model, split, self.round)

    def _measured(self, model: Arrays, split: Split, round: int | None) -> Mapping[str, float]:
        found = self._evaluate(model, split, round)
        if found is None:
            raise ValueError(f"`evaluate` gave None, it must return metrics by name, `loss` at least{defined(self._asked)}")
        return found


def _said(found: object) -> str:
    return "None" if found is None else type(found).__name__


def _takes_round(evaluate: Evaluate) -> bool:
    """Whether the function has a third argument for the round."""
    try:
        taken = list(inspect.signature(evaluate).parameters.values())
    except (TypeError, ValueError):
        return False
    placed = [one for one in taken if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return len(placed) > 2 and (placed[2].name == "round" or placed[2].default is placed[2].empty)
