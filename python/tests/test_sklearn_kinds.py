"""Kinds of linear models of scikit-learn and of rows, each against the plain fit."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse  # noqa: E402
from sklearn import linear_model as linear  # noqa: E402
from sklearn.base import clone, is_classifier  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.ensemble import RandomForestClassifier  # noqa: E402
from sklearn.feature_selection import SelectKBest  # noqa: E402
from sklearn.metrics import mean_poisson_deviance, mean_tweedie_deviance  # noqa: E402
from sklearn.pipeline import Pipeline, make_pipeline  # noqa: E402
from sklearn.preprocessing import (  # noqa: E402
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC, LinearSVR  # noqa: E402

import rota  # noqa: E402
import rota.sklearn  # noqa: E402

from conftest import external, scenario, silo, training  # noqa: E402

DRAW = np.random.default_rng(3)
#: Columns of very different scales, far from zero.
X = DRAW.normal(size=(300, 4)) * [1.0, 40.0, 0.02, 3.0] + [0.0, 300.0, 1.0, -2.0]
Z = (X - X.mean(axis=0)) / X.std(axis=0)
SCORE = Z @ [1.0, -0.7, 0.4, 0.0]
NUMBER = 5.0 + SCORE + 0.3 * DRAW.normal(size=300)
COUNT = DRAW.poisson(np.exp(0.5 * SCORE))
BINARY = (SCORE + 0.5 * DRAW.normal(size=300) > 0).astype(int)
THREE = np.digitize(SCORE + 0.3 * DRAW.normal(size=300), [-0.7, 0.7])
TWO = np.column_stack([NUMBER, -2.0 * NUMBER + Z[:, 3]])


def learned(estimator, x, y, **changes):
    """A training from nothing: the learner, and the parameters."""
    classes = {"classes": sorted(set(np.asarray(y).tolist()))} if is_classifier(estimator) else {}
    learner = rota.sklearn.Learner(estimator, (x, y), (x, y), **classes)
    start = {tensor.name: np.zeros(tensor.shape, np.float32) for tensor in learner.tensors()}
    return learner, learner.train(start, training(**changes)).model


SCALERS = [StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False), MinMaxScaler((-1, 1)), MaxAbsScaler(), RobustScaler()]


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
@pytest.mark.parametrize(
    "estimator, y",
    [
        (linear.LogisticRegression(C=0.1), BINARY),
        (linear.LogisticRegression(tol=1e-8, max_iter=1000), THREE),
        (linear.Ridge(30.0), NUMBER),
        (linear.Ridge(30.0), TWO),
        (linear.ElasticNet(0.1), NUMBER),
        (LinearSVC(), BINARY),
    ],
    ids=str,
)
def test_a_pipeline_with_a_scaler_is_its_plain_fit(scaler, estimator, y):
    learner, model = learned(make_pipeline(clone(scaler), estimator), X, y)
    plain = make_pipeline(clone(scaler), clone(estimator))
    # Both begin at random where they draw.
    if "random_state" in estimator.get_params():
        plain[-1].set_params(random_state=7)
    plain.fit(X, y)
    raw = X @ np.float64(model["coef"]).T + model["intercept"]
    own = plain.decision_function(X) if is_classifier(estimator) else plain.predict(X)
    wide = own.reshape(len(X), -1)
    assert np.allclose(raw[:, -wide.shape[1]:], wide, atol=3e-3 * np.abs(wide).max()), np.abs(raw - wide).max()


@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("y", [BINARY, NUMBER])
def test_a_pipeline_goes_on_from_the_given_model(y, epochs):
    estimator = linear.SGDRegressor() if y is NUMBER else linear.SGDClassifier(loss="log_loss")
    classes = {} if y is NUMBER else {"classes": [0, 1]}
    learner = rota.sklearn.Learner(make_pipeline(StandardScaler(), estimator), (X, y), (X, y), **classes)
    start = {"coef": DRAW.normal(size=(1, 4)).astype(np.float32), "intercept": np.ones(1, np.float32)}
    found = learner.train(start, training(rate=0.01, epochs=epochs)).model
    # By hand, on scaled rows.
    scale, mean = X.std(axis=0), X.mean(axis=0)
    plain = clone(estimator).set_params(random_state=7, eta0=0.01, learning_rate="constant")
    plain.partial_fit(Z[:1], y[:1], **classes)
    coef = np.float64(start["coef"]) * scale
    plain.coef_ = coef if classes else coef[0]
    plain.intercept_ = start["intercept"] + start["coef"].astype(np.float64) @ mean
    plain.t_ = 2.0
    order = np.random.default_rng(7)
    for _ in range(epochs):
        chosen = order.permutation(len(Z))
        plain.partial_fit(Z[chosen], y[chosen], **classes)
    assert np.allclose(found["coef"] * scale, plain.coef_, atol=1e-4)
    # And a training of no effect leaves the model as it was.
    same = learner.train(start, training(rate=1e-12)).model
    assert np.allclose(same["coef"], start["coef"], atol=1e-5) and np.allclose(same["intercept"], start["intercept"], atol=1e-3)


def test_silos_with_other_scales_learn_one_model():
    def make(of):
        draw = np.random.default_rng(of.place)
        x = draw.normal(size=(120, 3)) * (1 + 3 * of.place) + 10 * of.place
        y = x @ [1.0, -2.0, 0.5] + 4.0
        return rota.sklearn.Learner(make_pipeline(StandardScaler(), linear.LinearRegression()), (x[:80], y[:80]), (x[80:], y[80:]))

    summary = rota.simulate(scenario(external(make(silo()), metric="mae"), rounds=2), learner=make, keep="models")
    model = summary.model("silo 1")
    assert np.allclose(model["coef"], [[1.0, -2.0, 0.5]], atol=1e-3) and np.allclose(model["intercept"], 4.0, atol=1e-2)


@pytest.mark.parametrize(
    "step", [PolynomialFeatures(), PCA(2), PCA(), SelectKBest(k=2), QuantileTransformer(n_quantiles=50), MinMaxScaler(clip=True)], ids=str
)
def test_a_step_that_is_no_scaler_is_refused(step):
    with pytest.raises((TypeError, ValueError), match="is no scaler of columns|missing 1 required positional argument|requires y"):
        rota.sklearn.Learner(make_pipeline(step, linear.Ridge()), (X, NUMBER), (X, NUMBER))


def test_a_forest_in_a_pipeline_is_refused_as_a_forest():
    with pytest.raises(TypeError, match="RandomForestClassifier has no parameters to average"):
        rota.sklearn.Learner(make_pipeline(StandardScaler(), RandomForestClassifier()), (X, BINARY), (X, BINARY), classes=[0, 1])


def test_a_pipeline_with_nothing_to_do_is_its_estimator():
    plain = linear.Ridge().fit(X, NUMBER)
    for pipeline in [make_pipeline(linear.Ridge()), Pipeline([("none", "passthrough"), ("ridge", linear.Ridge())])]:
        _, model = learned(pipeline, X, NUMBER)
        assert np.allclose(model["coef"], plain.coef_, rtol=1e-5)


def test_weights_of_rows_and_classes_reach_the_end_of_a_pipeline():
    weights = np.where(X[:, 1] > 300, 5.0, 0.1)
    pipeline = make_pipeline(StandardScaler(), linear.LogisticRegression(class_weight={1: 9}))
    learner = rota.sklearn.Learner(pipeline, (X, BINARY, weights), (X, BINARY), classes=[0, 1])
    start = {tensor.name: np.zeros(tensor.shape, np.float32) for tensor in learner.tensors()}
    found = learner.train(start, training()).model
    plain = clone(pipeline).fit(X, BINARY, logisticregression__sample_weight=weights)
    assert np.allclose(found["coef"] * X.std(axis=0), plain[-1].coef_, atol=2e-3)


# Sparse rows.


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array, sparse.lil_matrix], ids=lambda one: one.__name__)
@pytest.mark.parametrize(
    "estimator, y",
    [
        (linear.LogisticRegression(), BINARY),
        (linear.Ridge(solver="lsqr", tol=1e-10), NUMBER),
        # SGD of scikit-learn takes smaller steps of the intercept where rows are sparse.
        (linear.SGDClassifier(loss="log_loss", fit_intercept=False), THREE),
        (make_pipeline(MaxAbsScaler(), linear.LogisticRegression()), BINARY),
        (make_pipeline(StandardScaler(with_mean=False), linear.SGDRegressor(fit_intercept=False)), NUMBER),
    ],
    ids=lambda one: type(one).__name__ if not hasattr(one, "shape") else "",
)
def test_sparse_rows_are_learned_as_full_ones(kind, estimator, y):
    full = np.where(Z > 0.3, Z, 0.0)
    learner, found = learned(clone(estimator), kind(full), y, rate=0.01)
    other, expected = learned(clone(estimator), full, y, rate=0.01)
    for name in found:
        assert np.allclose(found[name], expected[name], atol=2e-3), name
    assert learner.evaluate(found, "test", {}) == pytest.approx(other.evaluate(found, "test", {}))
    assert learner.rows() == other.rows()


def test_many_sparse_columns_federate_without_being_filled():
    def make(of):
        draw = np.random.default_rng(of.place)
        x = sparse.random(60, 20_000, density=0.001, format="csr", random_state=of.place)
        return rota.sklearn.Learner(linear.SGDClassifier(loss="log_loss"), (x, draw.integers(2, size=60)), (x, draw.integers(2, size=60)), classes=[0, 1])

    task = external(make(silo()), metric="accuracy")
    summary = rota.simulate(scenario(task, rounds=2), learner=make)
    assert not summary["training_failed"] and len(summary.curves()["silo 1"]) == 2


def test_scalers_that_fill_sparse_rows_are_refused_by_sklearn():
    with pytest.raises(ValueError, match="Cannot center sparse matrices"):
        rota.sklearn.Learner(make_pipeline(StandardScaler(), linear.Ridge()), (sparse.csr_matrix(X), NUMBER), (sparse.csr_matrix(X), NUMBER))


def test_models_without_sparse_rows_are_refused_at_the_start():
    with pytest.raises(TypeError, match="Lars is no linear model.*[Ss]parse"):
        rota.sklearn.Learner(linear.Lars(), (sparse.csr_matrix(Z), NUMBER), (sparse.csr_matrix(Z), NUMBER))


def test_a_sparse_column_that_32_bits_do_not_have_is_refused():
    far = sparse.csr_matrix(Z + np.array([0, 0, 1e9, 0]))
    with pytest.raises(ValueError, match="column 2 of the features is around"):
        rota.sklearn.Learner(linear.Ridge(), (far, NUMBER), (far, NUMBER))


# Regressions with other losses.


@pytest.mark.parametrize(
    "estimator, y",
    [
        (linear.HuberRegressor(), NUMBER),
        (linear.HuberRegressor(epsilon=1.1, alpha=0.1), np.where(np.arange(300) % 30 == 0, 50.0, NUMBER)),
        (linear.QuantileRegressor(alpha=0.0), NUMBER),
        (LinearSVR(max_iter=100_000), NUMBER),
        (linear.TheilSenRegressor(), NUMBER),
        (linear.BayesianRidge(), NUMBER),
    ],
    ids=str,
)
def test_robust_regressions_are_their_plain_fits(estimator, y):
    learner, found = learned(estimator, Z, y)
    plain = clone(estimator)
    if "random_state" in plain.get_params():
        plain.set_params(random_state=7)
    plain.fit(Z, y)
    assert np.allclose(found["coef"], plain.coef_, atol=1e-4) and np.allclose(found["intercept"], plain.intercept_, atol=1e-4)
    assert learner.evaluate(found, "test", {})["mae"] == pytest.approx(np.mean(np.abs(plain.predict(Z) - y)), abs=1e-4)


GENERALISED = [
    (linear.PoissonRegressor(tol=1e-8), COUNT, 1.0),
    (linear.PoissonRegressor(alpha=0.0, tol=1e-8, max_iter=500), COUNT, 1.0),
    (linear.GammaRegressor(tol=1e-8), np.exp(0.5 * SCORE), 2.0),
    (linear.TweedieRegressor(power=1.5, tol=1e-8), COUNT, 1.5),
    (linear.TweedieRegressor(power=0, tol=1e-8), NUMBER, 0.0),
    (linear.TweedieRegressor(power=0, link="log", tol=1e-8), np.exp(0.3 * SCORE), 0.0),
    (linear.TweedieRegressor(power=1, link="identity", tol=1e-8), 20.0 + COUNT, 1.0),
    (make_pipeline(StandardScaler(), linear.PoissonRegressor(tol=1e-8)), COUNT, 1.0),
]


@pytest.mark.parametrize("estimator, y, power", GENERALISED, ids=lambda one: "" if hasattr(one, "shape") else str(one))
def test_generalised_linear_models_are_their_plain_fits(estimator, y, power):
    x = X if hasattr(estimator, "steps") else Z
    learner, found = learned(clone(estimator), x, y)
    plain = clone(estimator).fit(x, y)
    predicted = plain.predict(x)
    outputs = learner.outputs(found, "test", {})
    assert np.allclose(np.asarray(outputs.outputs), predicted, rtol=2e-3, atol=2e-3)
    metrics = learner.evaluate(found, "test", {})
    assert metrics["mse"] == pytest.approx(np.mean((predicted - y) ** 2), rel=5e-3)
    assert metrics["loss"] == pytest.approx(mean_tweedie_deviance(y, predicted, power=power), rel=5e-3)
    if power == 1.0:
        assert metrics["deviance"] == pytest.approx(mean_poisson_deviance(y, predicted), rel=5e-3)


def test_poisson_regressions_federate_to_the_fit_of_all_rows():
    def make(of):
        mine = slice(of.place, None, 3)
        return rota.sklearn.Learner(linear.PoissonRegressor(alpha=0), (Z[mine], COUNT[mine]), (Z[mine], COUNT[mine]))

    task = external(make(silo()), metric="mae")
    summary = rota.simulate(scenario(task, rounds=2), learner=make, keep="models")
    plain = linear.PoissonRegressor(alpha=0).fit(Z, COUNT)
    assert np.allclose(summary.model("silo 1")["coef"], plain.coef_, atol=0.1)


# Several targets.


@pytest.mark.parametrize(
    "estimator",
    [linear.LinearRegression(), linear.Ridge(), linear.Lasso(0.1), linear.ElasticNet(0.1), linear.MultiTaskLasso(0.1), linear.RidgeCV(), make_pipeline(StandardScaler(), linear.Ridge())],
    ids=str,
)
def test_two_targets_are_learned_together(estimator):
    learner, found = learned(clone(estimator), X, TWO)
    plain = clone(estimator).fit(X, TWO)
    assert found["coef"].shape == (2, 4)
    raw = X @ np.float64(found["coef"]).T + found["intercept"]
    assert np.allclose(raw, plain.predict(X), atol=0.02)
    metrics = learner.evaluate(found, "test", {})
    assert metrics["mse"] == metrics["loss"] == pytest.approx(np.mean((plain.predict(X) - TWO) ** 2), rel=1e-2)


def test_two_targets_federate_with_results_row_by_row():
    def make(of):
        mine = slice(of.place, None, 3)
        return rota.sklearn.Learner(linear.Ridge(), (Z[mine], TWO[mine]), (Z[mine], TWO[mine]))

    summary = rota.simulate(scenario(external(make(silo()), metric="mse"), rounds=2), learner=make, keep="models")
    mean = np.mean([linear.Ridge().fit(Z[place::3], TWO[place::3]).coef_ for place in range(3)], axis=0)
    assert np.allclose(summary.model("silo 2")["coef"], mean, atol=1e-4)
    found = Z[1::3] @ mean.T + np.mean([linear.Ridge().fit(Z[place::3], TWO[place::3]).intercept_ for place in range(3)], axis=0)
    assert summary.curves()["silo 2"][-1] == pytest.approx(np.mean((found - TWO[1::3]) ** 2), rel=1e-3)


def test_one_target_in_a_column_is_one_target():
    _, wide = learned(linear.Ridge(), Z, NUMBER[:, None])
    _, flat = learned(linear.Ridge(), Z, NUMBER)
    assert np.array_equal(wide["coef"], flat["coef"])
    learner, found = learned(linear.LogisticRegression(), Z, BINARY)
    column = rota.sklearn.Learner(linear.LogisticRegression(), (Z, BINARY[:, None]), (Z, BINARY[:, None]), classes=[0, 1])
    assert column.evaluate(found, "test", {}) == learner.evaluate(found, "test", {})


def test_targets_that_no_model_takes_are_refused():
    with pytest.raises(TypeError, match="SGDRegressor is no linear model"):
        rota.sklearn.Learner(linear.SGDRegressor(), (Z, TWO), (Z, TWO))
    with pytest.raises(ValueError, match="one class for each row"):
        rota.sklearn.Learner(linear.LogisticRegression(), (Z, np.column_stack([BINARY, BINARY])), (Z, BINARY), classes=[0, 1])
    with pytest.raises(TypeError, match="PoissonRegressor is no linear model.*y"):
        rota.sklearn.Learner(linear.PoissonRegressor(), (Z, TWO), (Z, TWO))
