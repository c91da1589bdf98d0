"""The round and the number of rounds in trainings and measurements."""

import numpy as np
import pytest

import rota
import rota.flower

from conftest import external, scenario
from test_protocol import OPEN, Program

from rota import write_tensors


def seen_by(kind, seen):
    """Learners that note what they are told."""

    class Mine(rota.Learner):
        def tensors(self):
            return [rota.Tensor("w", (1,))]

        def rows(self):
            return rota.Rows(4, test=2)

        def train(self, start, training):
            assert (self.round, self.rounds) == (training.round, training.rounds)
            seen.append(("train", training.round, training.rounds))
            return rota.Update(start, {"loss": 0.0})

        def evaluate(self, model, split, personal):
            seen.append(("evaluate", self.round, self.rounds))
            return {"loss": 0.0}

    def train(model, training):
        seen.append(("train", training.round, training.rounds))
        return model

    def evaluate(model, split, round):
        seen.append(("evaluate", round, 3))
        return {"loss": 0.0}

    class Client:
        def get_parameters(self, config):
            return [np.zeros(1, np.float32)]

        def fit(self, parameters, config):
            seen.append(("train", config["server_round"], config["num_rounds"]))
            return parameters, 4, {}

        def evaluate(self, parameters, config):
            seen.append(("evaluate", config["server_round"], config["num_rounds"]))
            return 0.0, 2, {}

    if kind == "function":
        return lambda silo: rota.FunctionLearner({"w": (1,)}, train, evaluate, rota.Rows(4, test=2))
    if kind == "flower":
        return rota.flower.client(lambda: Client(), rows=rota.Rows(4, test=2))
    return lambda silo: Mine()


@pytest.mark.parametrize("mesh", ["direct", "virtual"])
@pytest.mark.parametrize("kind", ["class", "function", "flower"])
def test_rounds_are_told_in_trainings_and_measurements(kind, mesh):
    seen = []
    make = seen_by(kind, seen)
    task = external(make(None))
    seen.clear()
    rota.simulate(scenario(task, rounds=3, silos=2), learner=make, references=False, mesh=mesh)
    trained = [(round, rounds) for what, round, rounds in seen if what == "train"]
    assert sorted(trained) == [(1, 3), (1, 3), (2, 3), (2, 3), (3, 3), (3, 3)]
    measured = [(round, rounds) for what, round, rounds in seen if what == "evaluate"]
    first = 0 if kind == "flower" else None
    # Before the first training, and after the last one.
    assert measured[-1] == (3, 3) and measured[0][0] == first
    assert {round for round, _ in measured} <= {first, 1, 2, 3}


def test_a_function_without_third_argument_is_measured_as_before():
    def evaluate(model, split, *more, scale=1.0):
        assert not more
        return {"loss": scale}

    found = rota.FunctionLearner({"w": (1,)}, None, evaluate, rota.Rows(4, test=2))
    assert found.evaluate({"w": np.zeros(1)}, "test", {}) == {"loss": 1.0}
    for more in (lambda model, split: {"loss": 1.0}, lambda model, split, scale=1.0: {"loss": scale}):
        assert rota.FunctionLearner({"w": (1,)}, None, more, rota.Rows(4)).evaluate({}, "test", {}) == {"loss": 1.0}


def test_a_silo_that_says_no_round_is_no_error(tmp_path):
    script = tmp_path / "told.py"
    script.write_text(
        "import rota\n"
        "def train(model, training):\n"
        "    return rota.Update(model, {'loss': 0.0, 'round': training.round or -1, 'rounds': training.rounds or -1})\n"
        "def evaluate(model, split, round):\n"
        "    return {'loss': 0.0, 'round': -1 if round is None else round}\n"
        "rota.serve(lambda silo: rota.FunctionLearner({'w': (1,)}, train, evaluate, rota.Rows(4, test=2)))\n"
    )
    program = Program(script)
    program.ask(type="hello", protocol=1, program="a test", folder=str(tmp_path))
    program.ask(**OPEN)
    start, into = str(tmp_path / "start"), str(tmp_path / "into")
    write_tensors(start, {"w": np.zeros(1)})
    how = {"epochs": 1, "batch": 0, "optimiser": {"name": "sgd", "rate": 0.1}}
    request = dict(silo=0, rows=None, start=start, personal=None, into=into, personal_into=None, training=how, seed=1, modifier=None)
    measure = dict(silo=0, rows=None, model=start, personal=None, split="test")
    told = [(program.ask(type="train", **request, **round)["metrics"], program.ask(type="evaluate", **measure, **round)["metrics"]) for round in ({}, {"round": 4, "rounds": 9}, {})]
    assert [(one["round"], one["rounds"], two["round"]) for one, two in told] == [(-1, -1, -1), (4, 9, 4), (-1, -1, -1)]
    assert program.end() == 0
