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


linear = pytest.importorskip("sklearn.linear_model")
import rota.sklearn  # noqa: E402

DRAW = np.random.default_rng(0)
ROWS = DRAW.normal(size=(400, 3))
RARE = (ROWS[:, 0] + 0.5 * DRAW.normal(size=400) > 1.5).astype(int)


def coefficients(learner, batch=0):
    start = {tensor.name: np.zeros(tensor.shape, np.float32) for tensor in learner.tensors()}
    return learner.train(start, training(batch=batch)).model


def sensitivity(model):
    told = ROWS @ model["coef"][0] + model["intercept"][0] > 0
    return told[RARE == 1].mean()


@pytest.mark.parametrize("labels", [[0, 1], [1, 0], [5, 7], ["no", "yes"], [False, True], [-1.0, 1.0]])
def test_weights_of_classes_are_by_label(labels):
    # The rare class is the second label in the rows, wherever it stands among `classes`.
    pair = sorted(labels) if labels != [1, 0] else [0, 1]
    y = np.array(pair)[RARE]
    estimator = linear.LogisticRegression(class_weight={pair[1]: 9})
    learner = rota.sklearn.Learner(estimator, (ROWS, y), (ROWS, y), classes=labels)
    plain = linear.LogisticRegression(class_weight={pair[1]: 9}).fit(ROWS, y)
    found = coefficients(learner)
    turned = -1.0 if labels[1] != plain.classes_[1] else 1.0
    assert np.allclose(turned * found["coef"], plain.coef_, atol=1e-3)
    assert estimator.class_weight == {pair[1]: 9}, "the estimator of the institution stays as it is"


def test_weights_of_a_class_that_is_none_are_refused():
    with pytest.raises(ValueError, match="`class_weight` names the class 3"):
        rota.sklearn.Learner(linear.LogisticRegression(class_weight={3: 2}), (ROWS, RARE), (ROWS, RARE), classes=[0, 1])


@pytest.mark.parametrize(
    "estimator",
    [linear.LinearRegression(), linear.Ridge(), linear.LogisticRegression(), linear.RidgeClassifier(), linear.SGDRegressor(), linear.SGDClassifier(loss="log_loss")],
    ids=lambda one: type(one).__name__,
)
def test_weights_of_rows_are_those_of_the_fit(estimator):
    from sklearn.base import clone, is_classifier

    weights = np.where(ROWS[:, 1] > 0, 5.0, 0.1)
    y = RARE if is_classifier(estimator) else 3.6 + ROWS[:, 0] - 3 * (ROWS[:, 1] < 0)
    classes = {"classes": [0, 1]} if is_classifier(estimator) else {}

    def trained(train):
        return coefficients(rota.sklearn.Learner(clone(estimator), train, (ROWS, y), **classes))

    found, without = trained((ROWS, y, weights)), trained((ROWS, y))
    assert not np.allclose(found["intercept"], without["intercept"], atol=1e-2)
    if not hasattr(estimator, "partial_fit"):
        plain = clone(estimator).fit(ROWS, y, sample_weight=weights)
        assert np.allclose(found["coef"], plain.coef_, atol=1e-3) and np.allclose(found["intercept"], plain.intercept_, atol=1e-3)


def test_weights_that_nobody_would_take_are_refused():
    ones = np.ones(400)
    with pytest.raises(TypeError, match="Lars takes no `sample_weight`"):
        rota.sklearn.Learner(linear.Lars(), (ROWS, ROWS[:, 0], ones), (ROWS, ROWS[:, 0]))
    with pytest.raises(ValueError, match="weights of the shape \\(3,\\)"):
        rota.sklearn.Learner(linear.Ridge(), (ROWS, ROWS[:, 0], np.ones(3)), (ROWS, ROWS[:, 0]))
    with pytest.raises(ValueError, match="held-out rows have no weights"):
        rota.sklearn.Learner(linear.Ridge(), (ROWS, ROWS[:, 0]), (ROWS, ROWS[:, 0], ones))
    with pytest.raises(ValueError, match="has 4 parts"):
        rota.sklearn.Learner(linear.Ridge(), (ROWS, ROWS[:, 0], ones, ones), (ROWS, ROWS[:, 0]))


def test_numbers_that_a_model_of_32_bits_cannot_tell_apart_are_refused():
    y = ROWS[:, 0]
    for by in (1e7, 1e9):
        with pytest.raises(ValueError, match="the target is around .*subtract a number that all silos agree on"):
            rota.sklearn.Learner(linear.Ridge(), (ROWS, y + by), (ROWS, y + by))
    with pytest.raises(ValueError, match="column 2 of the features"):
        far = ROWS + np.array([0, 0, 1e9])
        rota.sklearn.Learner(linear.Ridge(), (far, y), (far, y))
    # A constant column has nothing to tell.
    constant = np.hstack([ROWS, np.full((400, 1), 1e9)])
    rota.sklearn.Learner(linear.Ridge(), (constant, y + 100), (constant, y + 100))
