"""Linear models of scikit-learn."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.ensemble import RandomForestClassifier  # noqa: E402
from sklearn.gaussian_process import GaussianProcessRegressor  # noqa: E402
from sklearn.isotonic import IsotonicRegression  # noqa: E402
from sklearn.linear_model import (  # noqa: E402
    LassoCV,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402
from sklearn.neural_network import MLPRegressor  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVC, LinearSVC  # noqa: E402

import rota  # noqa: E402
import rota.sklearn  # noqa: E402

from conftest import external, scenario, silo, training  # noqa: E402


def rows(place, classes):
    draw = np.random.default_rng(place)
    x = draw.normal(size=(150, 4))
    score = x @ np.array([1.0, -1.0, 0.5, 0.0])
    y = score if classes == 0 else np.digitize(score, np.linspace(-1, 1, classes - 1))
    return (x[:100], y[:100]), (x[100:], y[100:])


def learner(estimator, classes):
    def make(of):
        train, test = rows(of.place, classes)
        names = list(range(classes)) if classes else None
        return rota.sklearn.Learner(estimator, train, test, classes=names)

    return make


@pytest.mark.parametrize(
    "estimator, classes",
    [
        (LinearRegression(), 0),
        (Ridge(), 0),
        (SGDRegressor(), 0),
        (LogisticRegression(), 2),
        (LogisticRegression(), 3),
        (SGDClassifier(loss="log_loss"), 2),
        (SGDClassifier(loss="log_loss"), 3),
        (RidgeClassifier(), 3),
        (LinearSVC(), 2),
    ],
    ids=str,
)
def test_linear_models_federate(estimator, classes):
    make = learner(estimator, classes)
    metric = "accuracy" if classes else "mae"
    task = external(make(silo()), metric=metric)
    how = {"epochs": 5, "batch": 0, "optimiser": {"name": "sgd", "rate": 0.01}}
    strategy = {"name": "fedavg", "training": how}
    summary = rota.simulate(scenario(task, strategy=strategy, rounds=3), learner=make)
    last = np.mean([values[-1] for values in summary.curves().values()])
    assert last > 0.8 if classes else last < 0.1, last


def test_training_starts_from_the_given_model():
    make = learner(SGDClassifier(loss="log_loss"), 3)(silo())
    start = {"coef": np.full((3, 4), 5.0, np.float32), "intercept": np.zeros(3, np.float32)}
    found = make.train(start, training(rate=1e-6)).model
    assert np.allclose(found["coef"], start["coef"], atol=0.01)


def test_tree_ensembles_are_refused_in_one_sentence():
    train, test = rows(0, 2)
    with pytest.raises(TypeError, match="RandomForestClassifier has no parameters to average"):
        rota.sklearn.Learner(RandomForestClassifier(), train, test, classes=[0, 1])


def test_classes_that_are_not_agreed_are_refused():
    train, test = rows(0, 3)
    with pytest.raises(ValueError, match="not among `classes`"):
        rota.sklearn.Learner(LogisticRegression(), train, test, classes=[0, 1])
    with pytest.raises(ValueError, match="`classes` is needed"):
        rota.sklearn.Learner(LogisticRegression(), train, test)
    # Classifiers that give no probabilities are classifiers, too.
    for estimator in [RidgeClassifier(), LinearSVC()]:
        with pytest.raises(ValueError, match="`classes` is needed"):
            rota.sklearn.Learner(estimator, train, test)
    with pytest.raises(ValueError, match="Ridge is no classifier: leave out `classes`"):
        rota.sklearn.Learner(Ridge(), train, test, classes=[0, 1, 2])
    some = (train[0][train[1] < 2], train[1][train[1] < 2])
    with pytest.raises(ValueError, match="LogisticRegression needs training rows of every class"):
        rota.sklearn.Learner(LogisticRegression(), some, test, classes=[0, 1, 2])
    rota.sklearn.Learner(SGDClassifier(), some, test, classes=[0, 1, 2])


@pytest.mark.parametrize(
    "estimator, classes",
    [
        (KNeighborsClassifier(), 2),
        (GaussianNB(), 3),
        (SVC(kernel="linear"), 3),
        (SVC(), 2),
        (make_pipeline(StandardScaler(), GaussianNB()), 2),
        (MLPRegressor(max_iter=5), 0),
        (GaussianProcessRegressor(), 0),
        (IsotonicRegression(), 0),
    ],
    ids=str,
)
def test_what_is_no_linear_model_is_refused_before_round_one(estimator, classes):
    with pytest.raises(TypeError, match="is no linear model whose `coef_` and `intercept_` can be averaged"):
        learner(estimator, classes)(silo())


def test_what_needs_more_rows_than_a_trial_is_tried_locally():
    (x, y), test = rows(0, 0)
    rota.sklearn.Learner(LassoCV(cv=25), (x, y), test)


def test_what_scikit_learn_cannot_do_as_agreed_is_refused():
    with pytest.raises(TypeError, match="leave `average` out"):
        learner(SGDClassifier(average=True), 2)(silo())
    made = learner(SGDRegressor(), 0)(silo())
    start = {"coef": np.zeros((1, 4), np.float32), "intercept": np.zeros(1, np.float32)}
    for how in [{"optimiser": "adam"}, {"weight_decay": 0.1}, {"momentum": 0.9}]:
        with pytest.raises(ValueError, match="agree on sgd without momentum and weight decay"):
            made.train(start, training(**how))


LABELS = ["benign", "malign", "unknown"]


def labelled(place):
    (x, y), (test, truth) = rows(place, 3)
    named = np.array(LABELS)
    return (x, named[y]), (test, named[truth])


def in_other_orders(told):
    """A factory whose silos name their classes in other orders."""
    orders = [LABELS, LABELS[::-1], ["unknown", "benign", "malign"]]

    def make(of):
        train, test = labelled(of.place)
        silo = {"silo": of} if told else {}
        return rota.sklearn.Learner(LogisticRegression(), train, test, classes=orders[of.place], **silo)

    return make


def test_classes_in_another_order_are_put_into_the_agreed_one():
    make = in_other_orders(told=True)
    task = external(make(silo()), metric="accuracy")
    curves = rota.simulate(scenario(task, rounds=1), learner=make).curves()
    # By hand: the mean of what scikit-learn fits at each silo, whose rows are as many.
    fits = []
    for place in range(3):
        (x, y), _ = labelled(place)
        fits.append(LogisticRegression().fit(x, [LABELS.index(label) for label in y]))
    coef = np.mean([one.coef_ for one in fits], axis=0)
    intercept = np.mean([one.intercept_ for one in fits], axis=0)
    for place, values in enumerate(curves.values()):
        _, (x, y) = labelled(place)
        right = np.mean([LABELS[best] for best in (x @ coef.T + intercept).argmax(axis=1)] == y)
        assert values[-1] == pytest.approx(right, abs=1e-9) and right > 0.8


def test_classes_in_another_order_are_refused_if_none_is_agreed():
    make = in_other_orders(told=False)
    task = external(make(silo()), metric="accuracy")
    with pytest.raises(rota.RotaError, match="its classes are others than the agreed ones.*in another order"):
        rota.simulate(scenario(task), learner=make)


def test_other_classes_are_refused_by_name():
    def make(of):
        train, test = labelled(of.place)
        return rota.sklearn.Learner(SGDClassifier(loss="log_loss"), train, test, classes=LABELS, silo=of)

    task = external(make(silo()), metric="accuracy", classes=["benign", "malign", "other"])
    with pytest.raises(rota.RotaError, match='it has no class "other"'):
        rota.simulate(scenario(task), learner=make)


def test_labels_of_one_class_are_compared_by_their_value():
    def labels(classes):
        (x, y), test = rows(0, 2)
        made = rota.sklearn.Learner(LogisticRegression(), (x, y), test, classes=classes)
        return made.classes()

    assert labels([0, 1]) == labels([0.0, 1.0]) == labels([False, True]) == ["0", "1"]
