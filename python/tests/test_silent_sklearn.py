"""What once differed without a word in learners of scikit-learn."""

import numpy as np
import pytest

import rota
from rota import _notes

from conftest import training

linear = pytest.importorskip("sklearn.linear_model")
import rota.sklearn  # noqa: E402


@pytest.fixture(autouse=True)
def notes_anew():
    _notes.again()


DRAW = np.random.default_rng(0)
ROWS = DRAW.normal(size=(400, 3))
RARE = (ROWS[:, 0] + 0.5 * DRAW.normal(size=400) > 1.5).astype(int)


def coefficients(learner, batch=0):
    start = {tensor.name: np.zeros(tensor.shape, np.float32) for tensor in learner.tensors()}
    return learner.train(start, training(batch=batch)).model


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


def test_numbers_that_32_bits_cannot_tell_apart_are_refused():
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


def test_a_random_state_of_ones_own_stays():
    from sklearn.svm import LinearSVC

    hinge = {"loss": "hinge", "max_iter": 20}
    for own, plain in ((0, 0), (5, 5), (None, 7), (np.random.RandomState(3), np.random.RandomState(3))):
        learner = rota.sklearn.Learner(LinearSVC(**hinge, random_state=own), (ROWS, RARE), (ROWS, RARE), classes=[0, 1])
        found = [coefficients(learner)["coef"] for _ in range(2)]
        expected = LinearSVC(**hinge, random_state=plain).fit(ROWS, RARE).coef_
        assert np.array_equal(*found) and np.allclose(found[0], expected, atol=1e-6), own
    values = ROWS @ [1.0, 2.0, 3.0] + DRAW.normal(size=400)
    made = linear.TheilSenRegressor(random_state=0, max_subpopulation=50)
    learner = rota.sklearn.Learner(made, (ROWS, values), (ROWS, values))
    assert np.allclose(coefficients(learner)["coef"], made.fit(ROWS, values).coef_, atol=1e-6)
