"""Further spellings of scikit-learn beside plain fits: equal, or refused with what works."""

import numpy as np
import pytest

import rota
from rota import _notes

from conftest import training

linear = pytest.importorskip("sklearn.linear_model")
import rota.sklearn  # noqa: E402
from scipy import sparse  # noqa: E402
from sklearn import ensemble, model_selection, multiclass, multioutput, svm  # noqa: E402
from sklearn.base import clone, is_classifier  # noqa: E402
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor  # noqa: E402
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # noqa: E402
from sklearn.feature_selection import SelectKBest  # noqa: E402
from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, RobustScaler, StandardScaler  # noqa: E402

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(200, 3))
TWO = (X[:, 0] + 0.5 * DRAW.normal(size=200) > 0.3).astype(int)
THREE = np.digitize(X[:, 0] + 0.3 * DRAW.normal(size=200), [-0.5, 0.5])
NUMBER = 3 + X @ [1.0, -2.0, 0.5] + 0.1 * DRAW.normal(size=200)
SOME = np.where(np.arange(200) % 3 == 0, 0.0, 2.0)
NAMES = np.array(["no", "yes"])


@pytest.fixture(autouse=True)
def notes_anew():
    _notes.again()


def learner(estimator, x=X, y=NUMBER, weights=None, test=None, **options):
    train = (x, y) if weights is None else (x, y, weights)
    return rota.sklearn.Learner(estimator, train, test or (x, y), **options)


def coefficients(made, **how):
    start = {tensor.name: np.zeros(tensor.shape, np.float32) for tensor in made.tensors()}
    return made.train(start, training(**how)).model


def same(found, plain, **tolerance):
    """Whether a model has the parameters of a plain fit."""
    coef = np.asarray(plain.coef_).reshape(found["coef"].shape)
    intercept = np.broadcast_to(np.asarray(plain.intercept_).reshape(-1), found["intercept"].shape)
    tolerance = {"atol": 1e-3} | tolerance
    return np.allclose(found["coef"], coef, **tolerance) and np.allclose(found["intercept"], intercept, **tolerance)


def pandas():
    return pytest.importorskip("pandas")


def tight(**options):
    return linear.LogisticRegression(max_iter=10_000, tol=1e-8, **options)


#: Targets as a classifier is given them, with all classes.
TARGETS = {
    "texts": lambda: (NAMES[TWO], ["no", "yes"]),
    "texts as objects": lambda: (NAMES.astype(object)[TWO], ["no", "yes"]),
    "truth values": lambda: (TWO.astype(bool), [False, True]),
    "truth values of numbers": lambda: (TWO.astype(bool), [0, 1]),
    "floats": lambda: (TWO.astype(float), [0.0, 1.0]),
    "floats of whole numbers": lambda: (TWO.astype(float), [0, 1]),
    "small integers": lambda: (TWO.astype(np.int8), [0, 1]),
    "signs": lambda: (2 * TWO - 1, [-1, 1]),
    "a column": lambda: (TWO[:, None], [0, 1]),
    "texts of pandas": lambda: (pandas().Series(NAMES[TWO], dtype="string"), ["no", "yes"]),
    "categories of pandas": lambda: (pandas().Series(NAMES[TWO], dtype="category"), ["no", "yes"]),
    "integers of pandas": lambda: (pandas().Series(TWO, dtype="Int64", index=range(200, 0, -1)), [0, 1]),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_targets_of_any_make_are_those_of_the_fit(kind):
    y, labels = TARGETS[kind]()
    assert same(coefficients(learner(tight(), y=y, classes=labels)), tight().fit(X, TWO))


#: Features as an institution may have them.
FEATURES = {
    "single floats": lambda: X.astype(np.float32),
    "bytes": lambda: np.abs(10 * X).astype(np.uint8),
    "a list of lists": lambda: X.tolist(),
    "objects": lambda: X.astype(object),
    "columns first": lambda: np.asfortranarray(X),
    "every other row of more": lambda: np.repeat(X, 2, axis=0)[::2],
    "a table": lambda: pandas().DataFrame(X, columns=list("abc")),
    "integers of pandas": lambda: pandas().DataFrame({"a": X[:, 0], "b": pandas().array(np.round(X[:, 1]).astype(int), dtype="Int64")}),
    "truth values of pandas": lambda: pandas().DataFrame({"a": X[:, 0], "b": pandas().array(X[:, 1] > 0, dtype="boolean")}),
    "single floats of pandas": lambda: pandas().DataFrame({"a": X[:, 0], "b": pandas().array(X[:, 1], dtype="Float32")}),
    "categories of numbers": lambda: pandas().DataFrame({"a": X[:, 0], "b": pandas().Categorical(np.round(X[:, 1]).astype(int))}),
    "sparse columns of pandas": lambda: pandas().DataFrame({"a": X[:, 0], "b": pandas().arrays.SparseArray(np.maximum(X[:, 1], 0))}),
    "sparse by columns": lambda: sparse.csc_matrix(np.where(X > 0, X, 0)),
    "sparse with zeros written": lambda: sparse.csr_matrix((X.ravel() * (X.ravel() > 0), np.tile(np.arange(3), 200), np.arange(0, 601, 3)), shape=(200, 3)),
}


@pytest.mark.parametrize("kind", FEATURES)
def test_features_of_any_make_are_those_of_the_fit(kind):
    x = FEATURES[kind]()
    plain = np.asarray(x.toarray() if hasattr(x, "toarray") else x, dtype=np.float64)
    assert same(coefficients(learner(linear.Ridge(), x=x)), linear.Ridge().fit(plain, NUMBER))


FITS = {
    "l1": (tight(C=0.1, l1_ratio=1.0, solver="saga"), TWO, None),
    "no intercept": (tight(fit_intercept=False), TWO, None),
    "weights of classes": (tight(class_weight={0: 1, 1: 7}), TWO, None),
    "balanced classes": (tight(class_weight="balanced"), TWO, None),
    "rows of weight zero": (tight(), TWO, SOME),
    "three classes": (tight(), THREE, None),
    "support vectors": (svm.LinearSVC(dual=False), TWO, None),
    "support vectors of three classes": (svm.LinearSVC(dual=False), THREE, None),
    "discriminants": (LinearDiscriminantAnalysis(), TWO, None),
    "discriminants of three classes": (LinearDiscriminantAnalysis(), THREE, None),
    "chosen penalties": (linear.RidgeCV(alphas=(0.1, 1.0, 10.0)), NUMBER, None),
    "a regression with rows of weight zero": (linear.Ridge(), NUMBER, SOME),
    "positive coefficients": (linear.Lasso(alpha=0.01, positive=True), NUMBER, None),
    "a warm start that is off": (linear.ElasticNet(alpha=0.01, warm_start=False), NUMBER, None),
}


@pytest.mark.parametrize("kind", FITS)
def test_fits_with_settings_are_the_plain_ones(kind):
    estimator, y, weights = FITS[kind]
    classes = {"classes": np.unique(y).tolist()} if is_classifier(estimator) else {}
    plain = clone(estimator).fit(X, y, **({} if weights is None else {"sample_weight": weights}))
    assert same(coefficients(learner(estimator, y=y, weights=weights, **classes)), plain)


STEPS = {
    "logistic": linear.SGDClassifier(loss="log_loss"),
    "hinge": linear.SGDClassifier(),
    "l1": linear.SGDClassifier(loss="log_loss", penalty="l1", alpha=0.01),
    "elastic net": linear.SGDClassifier(loss="modified_huber", penalty="elasticnet", alpha=0.01),
    "no intercept": linear.SGDClassifier(loss="log_loss", fit_intercept=False),
    "in order": linear.SGDClassifier(loss="log_loss", shuffle=False),
    "weights of classes": linear.SGDClassifier(loss="log_loss", class_weight={0: 1, 1: 5}),
    "warm": linear.SGDClassifier(loss="log_loss", warm_start=True),
    "perceptron": linear.Perceptron(),
    "squares": linear.SGDRegressor(),
    "huber": linear.SGDRegressor(loss="huber"),
    "a margin": linear.SGDRegressor(loss="epsilon_insensitive"),
}


def stepped(estimator, y, weights, epochs, rate=0.1, seed=7):
    """The same steps by hand."""
    estimator, order = clone(estimator), np.random.default_rng(seed)
    # That of a perceptron is 0 by default, and stays.
    kept = estimator.get_params().get("random_state")
    own = {"random_state": seed if kept is None else kept, "eta0": rate, "learning_rate": "constant"}
    estimator.set_params(**{name: value for name, value in own.items() if name in estimator.get_params()})
    classes = {"classes": np.unique(y)} if is_classifier(estimator) else {}
    for _ in range(epochs):
        chosen = order.permutation(len(y))
        weighed = {} if weights is None else {"sample_weight": weights[chosen]}
        estimator.partial_fit(X[chosen], y[chosen], **classes, **weighed)
    return estimator


@pytest.mark.parametrize("weights", [None, SOME], ids=["each row once", "rows of weight zero"])
@pytest.mark.parametrize("kind", STEPS)
def test_steps_row_by_row_are_those_by_hand(kind, weights):
    estimator = STEPS[kind]
    for y in (TWO, THREE) if is_classifier(estimator) else (NUMBER,):
        classes = {"classes": np.unique(y).tolist()} if is_classifier(estimator) else {}
        found = coefficients(learner(estimator, y=y, weights=weights, **classes), epochs=3)
        assert same(found, stepped(estimator, y, weights, 3), rtol=1e-5, atol=1e-5), len(np.unique(y))


def test_steps_that_follow_from_the_loss_keep_their_size(capsys):
    estimator = linear.SGDClassifier(penalty=None, learning_rate="pa1", eta0=0.3)
    try:
        plain = clone(estimator).set_params(random_state=7)
        order = np.random.default_rng(7).permutation(200)
        plain.partial_fit(X[order], TWO[order], classes=[0, 1])
    except ValueError:
        pytest.skip("this version of scikit-learn has another class for it")
    found = coefficients(learner(estimator, y=TWO, classes=[0, 1]))
    assert same(found, plain, rtol=1e-5, atol=1e-5)
    assert "the agreed rate does not matter" in capsys.readouterr().err


def test_rates_of_ones_own_are_reported_once(capsys):
    for _ in range(2):
        learner(linear.SGDClassifier(learning_rate="adaptive", eta0=0.5), y=TWO, classes=[0, 1])
    learner(linear.SGDRegressor())
    said = capsys.readouterr().err
    assert said.count("SGDClassifier takes steps by the agreed rate") == 1 and "learning_rate='adaptive'" in said
    assert "SGDRegressor" not in said


PIPELINES = {
    "robust": lambda: (RobustScaler(),),
    "two scalers": lambda: (StandardScaler(), MinMaxScaler((-1, 1))),
    "a pipeline in it": lambda: (make_pipeline(StandardScaler()), "passthrough"),
    "a function that scales": lambda: (FunctionTransformer(lambda x: 2 * x + 1),),
    "columns that keep their places": lambda: (ColumnTransformer([("scaled", StandardScaler(), [0, 1])], remainder="passthrough"),),
    "nothing missing": lambda: (SimpleImputer(),),
}


@pytest.mark.parametrize("kind", PIPELINES)
def test_pipelines_of_scalers_predict_as_their_fit(kind):
    whole = make_pipeline(*PIPELINES[kind](), linear.LinearRegression())
    made = learner(clone(whole))
    found = made.outputs(coefficients(made), "test", {}).outputs
    assert np.allclose(np.asarray(found).reshape(-1), clone(whole).fit(X, NUMBER).predict(X), atol=1e-3)


def test_a_pipeline_whose_last_step_is_one_is_taken_apart():
    made = learner(make_pipeline(StandardScaler(), make_pipeline(MinMaxScaler(), linear.LinearRegression())))
    assert same(coefficients(made), linear.LinearRegression().fit(X, NUMBER))


def _below(x):
    return np.where(x < -20, 0.0, x)


#: Steps of a pipeline that scale some rows and do something else with others, and rows that show it.
UNEVEN = {
    "a mark for missing values among later rows": (lambda x: np.where(x == 0.5, 9.0, x), lambda x: np.where(np.arange(600).reshape(200, 3) == 590, 0.5, x), None),
    "a bound below the rows": (lambda x: np.maximum(x, x.min() * 0 - 5), None, None),
    "held-out rows beyond a bound": (_below, None, np.where(np.arange(600).reshape(200, 3) == 0, -30.0, X)),
}


@pytest.mark.parametrize("kind", UNEVEN)
def test_scalers_are_compared_with_all_rows(kind):
    function, change, test = UNEVEN[kind]
    x = X if change is None else np.repeat(change(X), 2, axis=0)
    y = NUMBER if change is None else np.repeat(NUMBER, 2)
    with pytest.raises(TypeError, match="FunctionTransformer in the pipeline is no scaler of columns"):
        learner(make_pipeline(FunctionTransformer(function), linear.Ridge()), x=x, y=y, test=(x if test is None else test, y))


def test_a_choice_of_columns_by_the_targets_is_no_scaler():
    for count in (2, "all"):
        with pytest.raises(TypeError, match="SelectKBest in the pipeline is no scaler of columns"):
            learner(make_pipeline(SelectKBest(k=count), linear.Ridge()))


REFUSED = {
    "settings that are searched": (lambda: model_selection.GridSearchCV(linear.Ridge(), {"alpha": [0.1, 1]}), NUMBER, "best_estimator_"),
    "one classifier for each class": (lambda: multiclass.OneVsRestClassifier(linear.LogisticRegression()), THREE, "take several classes as they are"),
    "one classifier for each class, in steps": (lambda: multiclass.OneVsRestClassifier(linear.SGDClassifier()), THREE, "take several classes as they are"),
    "one regressor for each target, in steps": (lambda: multioutput.MultiOutputRegressor(linear.SGDRegressor()), np.column_stack([NUMBER, NUMBER]), "take several targets"),
    "one regressor for each target": (lambda: multioutput.MultiOutputRegressor(linear.Ridge()), np.column_stack([NUMBER, NUMBER]), "take several targets"),
    "targets that are transformed": (lambda: TransformedTargetRegressor(linear.Ridge(), func=np.log1p, inverse_func=np.expm1), np.abs(NUMBER), "transform the targets before"),
    "boosted trees": (lambda: ensemble.HistGradientBoostingClassifier(), TWO, "use a linear model or a network"),
    "boosted trees of numbers": (lambda: ensemble.HistGradientBoostingRegressor(), NUMBER, "use a linear model or a network"),
    "votes": (lambda: ensemble.VotingClassifier([("a", linear.LogisticRegression())]), TWO, "use a linear model or a network"),
    "a kernel": (lambda: svm.SVC(kernel="linear"), TWO, "use one such as LogisticRegression"),
    "stopping in the fit": (lambda: linear.SGDClassifier(early_stopping=True), TWO, "the federation can stop early"),
    "balanced steps": (lambda: linear.SGDClassifier(class_weight="balanced"), TWO, "give the weights as a dictionary"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_estimators_without_one_model_are_refused_in_words(kind):
    make, y, why = REFUSED[kind]
    classes = {"classes": np.unique(y).tolist()} if is_classifier(make()) else {}
    with pytest.raises((TypeError, ValueError), match=why):
        learner(make(), y=y, **classes)


def missing(kind):
    rows = pandas().DataFrame({"a": X[:, 0], "b": X[:, 1]})
    if kind == "NA":
        return rows.assign(b=pandas().array([None, *range(199)], dtype="Int64"))
    if kind == "time":
        return rows.assign(b=pandas().Timestamp("2020-01-01"))
    return rows.assign(b=pandas().Categorical(np.array(["u", "v"])[TWO]))


@pytest.mark.parametrize("kind", ["NA", "time", "category"])
def test_columns_that_are_no_numbers_are_refused_by_name(kind):
    with pytest.raises(ValueError, match="the features of `train` are no numbers in the column 'b'.*fill in what is missing"):
        learner(linear.Ridge(), x=missing(kind))


ROWS = {
    "complex features": (lambda: (X + 1j * X, NUMBER), None, "the features of `train` are complex numbers"),
    "complex sparse features": (lambda: (sparse.csr_matrix(X + 1j * X), NUMBER), None, "the features of `train` are complex numbers"),
    "complex targets": (lambda: (X, NUMBER + 1j), None, "the targets of `train` are complex numbers"),
    "times as features": (lambda: (np.arange(200).astype("M8[D]")[:, None], NUMBER), None, "the features of `train` are times .*days since"),
    "times as targets": (lambda: (X, np.arange(200).astype("m8[s]")), None, "the targets of `train` are times"),
    "targets of texts": (lambda: (X, NAMES[TWO]), None, "the targets of `train` are no numbers.*give a classifier"),
    "one feature without its dimension": (lambda: (X[:, 0], NUMBER), None, "the shape \\(200,\\): give rows × columns"),
    "pictures": (lambda: (X[:, :, None], NUMBER), None, "the shape \\(200, 3, 1\\): give rows × columns"),
    "fewer targets": (lambda: (X, NUMBER[:-1]), None, "`train` has 200 rows and 199 targets"),
    "one held-out target": (lambda: (X, NUMBER), lambda: (X, NUMBER[:1]), "`test` has 200 rows and 1 targets"),
    "fewer held-out columns": (lambda: (X, NUMBER), lambda: (X[:, :2], NUMBER), "`test` has 2 columns, and `train` 3"),
    "more held-out targets": (lambda: (X, NUMBER), lambda: (X, np.column_stack([NUMBER, NUMBER])), "`test` has targets of the shape"),
    "missing features": (lambda: (np.where(X > 2.5, np.nan, X), NUMBER), None, "the features of `train` are missing or not finite in column .: fill them in"),
    "endless features": (lambda: (np.where(X > 2.5, np.inf, X), NUMBER), None, "the features of `train` are missing or not finite"),
    "missing sparse features": (lambda: (sparse.csr_matrix(np.where(X > 2.5, np.nan, X)), NUMBER), None, "the features of `train` are missing or not finite"),
    "missing targets": (lambda: (X, np.where(TWO, np.nan, NUMBER)), None, "the targets of `train` are missing or not finite: fill them in"),
    "missing held-out features": (lambda: (X, NUMBER), lambda: (np.where(X > 2.5, np.nan, X), NUMBER), "the features of `test` are missing"),
    "missing held-out targets": (lambda: (X, NUMBER), lambda: (X, np.where(TWO, np.nan, NUMBER)), "the targets of `test` are missing"),
    "a missing class": (lambda: (X, np.where(TWO, np.nan, 0.0)), None, "the targets of `train` are missing"),
}


@pytest.mark.parametrize("kind", ROWS)
def test_rows_that_fit_no_model_are_refused_in_words(kind):
    train, test, why = ROWS[kind]
    x, y = train()
    with pytest.raises(ValueError, match=why):
        learner(linear.Ridge(), x=x, y=y, test=None if test is None else test())


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_weights_that_no_row_has_are_refused(wrong):
    with pytest.raises(ValueError, match="the weights of `train` are negative, missing or not finite"):
        learner(linear.Ridge(), weights=np.where(np.arange(200) == 7, wrong, 1.0))
