"""What once differed without a word where numbers come from functions on arrays and from scikit-learn."""

import numpy as np
import pytest

import rota
from rota import _notes

from conftest import external, scenario, training


@pytest.fixture(autouse=True)
def notes_anew():
    _notes.again()


def functions(start, after=lambda model: model):
    return rota.FunctionLearner(start, lambda model, training: after(model), lambda model, split: {"loss": 0.0}, rota.Rows(4, test=2))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (np.array([2**24 + 1]), "whole number 16777217"),
        (np.array([-(2**40) - 1]), "above 2\\^24"),
        (np.array([1e39]), "beyond ±3.4e38"),
        (np.array([1j]), "real numbers"),
        (np.array(["a"]), "real numbers"),
    ],
)
def test_arrays_that_32_bits_do_not_have_are_refused_by_name(value, why):
    with pytest.raises(ValueError, match=f"the array 'w' .*{why}"):
        functions({"w": value})
    learner = functions({"w": (1,)}, lambda model: {"w": value})
    with pytest.raises(ValueError, match=f"the array 'w' .*{why}"):
        learner.train({"w": np.zeros(1, np.float32)}, training())


def test_that_64_bits_are_rounded_is_said_once(capsys):
    learner = functions({"w": np.array([0.1, 0.2])}, lambda model: {"w": np.asarray(model["w"], float) / 3})
    for _ in range(2):
        learner.train(learner.initial(0), training())
    assert capsys.readouterr().err.count("the array 'w' of 64-bit floats is rounded") == 1


def test_whole_numbers_that_are_exact_travel(capsys):
    assert functions({"w": np.array([3, 2**24])}).initial(0)["w"].tolist() == [3.0, 2.0**24]
    assert functions({"w": np.array([0.5])}).initial(0)["w"] == 0.5
    assert not capsys.readouterr().err


def simulated(make, **changes):
    task = external(make(rota.Silo("silo 1", 0, 2, 0, [])))
    task["external"].update(changes)
    return rota.simulate(scenario(task, rounds=1, silos=2), learner=make, references=False)


@pytest.mark.parametrize("by", [0.0, 1e7, 1e9])
def test_errors_at_large_targets_are_those_at_small_ones(by):
    """A learner whose outputs and targets are of 64 bits: Rota measures them in 64 bits."""

    class Given(rota.FunctionLearner):
        outputs_loss = "squared"

        def outputs(self, model, split, personal):
            rows = np.arange(40.0)[:, None]
            return rota.Outputs(by + rows + np.where(rows % 2, 1.0, -0.5), by + rows)

        def tried(self, model):
            return (), ()

    def make(silo):
        return Given({"w": np.array([0.5])}, lambda model, training: model, lambda model, split: {"loss": 0.625}, rota.Rows(40, test=40))

    summary = simulated(make, metric="mse")
    assert [one["coalition"] for one in summary["silos"]] == pytest.approx([0.625, 0.625], rel=1e-6)


def test_what_is_measured_in_place_does_not_travel():
    def centred(model, split):
        for value in model.values():
            value -= value.mean()
        return {"loss": float(np.abs(model["w"]).sum())}

    def train(model, training):
        return {"w": model["w"] + np.float32(1)}

    start = {"w": np.array([1, 2, 3], np.float32)}
    learner = rota.FunctionLearner(start, train, centred, rota.Rows(4, test=2))
    found = learner.train(learner.initial(0), training())
    assert found.model["w"].tolist() == [2, 3, 4] and found.metrics["loss"] == 2
    learner.initial(0)["w"][:] = 0
    assert learner.initial(0)["w"].tolist() == [1, 2, 3]
