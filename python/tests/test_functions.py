"""Learners from functions: what they forget to return, and what they can never do."""

import inspect

import numpy as np
import pytest

import rota

from conftest import external, scenario, training

ROWS = rota.Rows(train=4, validation=2, test=2)
LINE = inspect.currentframe().f_lineno + 3


def forgets(model, training):
    model["w"] = model["w"] + 1


def trains(model, training):
    return {"w": model["w"] + 1}


def evaluates(model, split):
    return {"loss": np.array([float(np.mean(model["w"]))])}


def learner(train=trains, evaluate=evaluates):
    return rota.FunctionLearner({"w": (2,)}, train, evaluate, ROWS)


def test_a_training_without_return_is_named():
    why = rf"`train` gave None, it must return the trained arrays by name, or a rota.Update \(test_functions.py:{LINE}, forgets\)"
    with pytest.raises(ValueError, match=why):
        learner(forgets).train({"w": np.zeros(2, np.float32)}, training())
    with pytest.raises(rota.RotaError, match="`train` gave None") as error:
        rota.simulate(scenario(external(learner())), learner=learner(forgets), references=False)
    assert isinstance(error.value.__cause__, ValueError)

    class Own(rota.FunctionLearner):
        def train(self, start, training):
            pass

    own = Own({"w": (2,)}, trains, evaluates, ROWS)
    with pytest.raises(rota.RotaError, match=r"`train` gave None, it must return a rota.Update \(test_functions.py:\d+, train\)"):
        rota.simulate(scenario(external(own)), learner=own, references=False)


def test_a_measurement_without_return_is_named():
    made = learner(evaluate=lambda model, split: None)
    with pytest.raises(ValueError, match=r"`evaluate` gave None, it must return metrics .* \(test_functions.py:\d+, <lambda>\)"):
        made.check()


def test_a_loss_in_an_array_is_a_number_everywhere():
    made = learner()
    made.check()
    update = made.train({"w": np.zeros(2, np.float32)}, training())
    assert update.metrics == {"loss": 1.0}
    many = learner(evaluate=lambda model, split: {"loss": np.zeros(2)})
    with pytest.raises(ValueError, match=r"'loss' is ndarray of the shape \(2,\)"):
        many.check()
    with pytest.raises(ValueError, match=r"'loss' is ndarray of the shape \(2,\)"):
        many.train({"w": np.zeros(2, np.float32)}, training())


def test_a_comparison_asks_first_what_a_learner_can():
    trained = []

    def watched(model, training):
        trained.append(1)
        return model

    made = learner(watched)
    why = r'strategy "ditto": the learner cannot train with a modified gradient.*a rota.FunctionLearner never can: derive from rota.Learner'
    with pytest.raises(rota.RotaError, match=why):
        rota.compare(scenario(external(made)), learner=made, strategies=["fedavg", "ditto"], seeds=1, tuned=False)
    assert not trained


def test_a_comparison_that_fails_says_the_first_reason():
    def diverges(model, training):
        return {"w": model["w"] * np.float32("inf")}

    made = learner(diverges)
    with pytest.raises(rota.RotaError, match="gave no model that is of use; the first is fedavg, seed 0: ") as error:
        rota.compare(scenario(external(made)), learner=made, strategies=["fedavg"], seeds=1, tuned=False)
    assert error.value.summary is not None and "What went wrong" not in str(error.value)
