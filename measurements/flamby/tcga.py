"""Fed-TCGA-BRCA in NumPy alone: FLamby's FedAvg over many seeds, and the numbers that tests of survival expect.

    python3 -m venv flamby && flamby/bin/pip install numpy==2.4.6
    flamby/bin/python measurements/flamby/tcga.py DATA/tcga_brca/tcga_brca.csv [SEEDS]
"""

import csv
import sys

import numpy as np

REGIONS = ["northeast", "south", "west", "midwest", "europe", "canada"]
BATCH, STEPS, ROUNDS, RATE = 8, 100, 5, 0.1


def read(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name not in ("region", "fold", "event", "days")]
    x = np.array([[float(row[name]) for name in names] for row in rows])
    column = lambda name: np.array([row[name] for row in rows])
    return names, x, column("event") == "1", column("days").astype(float), column("region"), column("fold")


def concordance(scores, event, time):
    wins = pairs = 0.0
    for row in np.flatnonzero(event):
        longer = (time > time[row]) | ((time == time[row]) & ~event)
        pairs += longer.sum()
        wins += (scores[row] > scores[longer]).sum() + 0.5 * (scores[row] == scores[longer]).sum()
    return wins / pairs if pairs else np.nan


def pulls(scores, event, time):
    """FLamby's slopes of a batch: rows of one time are at risk one after the other, divided by the rows."""
    latest = np.argsort(-time, kind="stable")
    weights = np.exp(scores[latest] - scores.max())
    shares = event[latest] / np.cumsum(weights)
    slopes = np.empty(len(scores))
    slopes[latest] = weights * np.cumsum(shares[::-1])[::-1] - event[latest]
    return slopes / len(scores)


def fedavg(data, seed, drawn):
    """Mean concordance of the six test parts."""
    _, x, event, time, region, fold = data
    draw = np.random.default_rng(seed)
    width = x.shape[1]
    model = draw.uniform(-1, 1, width) / np.sqrt(width) if drawn else np.zeros(width)
    left = {name: np.empty(0, int) for name in REGIONS}
    for _ in range(ROUNDS):
        change, total = np.zeros(width), 0
        for name in REGIONS:
            own = np.flatnonzero((region == name) & (fold == "train"))
            weights = model.copy()
            for _ in range(STEPS):
                if len(left[name]) == 0:
                    left[name] = draw.permutation(own)
                batch, left[name] = left[name][:BATCH], left[name][BATCH:]
                weights -= RATE * x[batch].T @ pulls(x[batch] @ weights, event[batch], time[batch])
            change += len(own) * (weights - model)
            total += len(own)
        model = model + change / total
    parts = [(region == name) & (fold == "test") for name in REGIONS]
    return np.mean([concordance(x[part] @ model, event[part], time[part]) for part in parts])


def efron(scores, event, time):
    """Negative log partial likelihood per event."""
    weights, loss = np.exp(scores), 0.0
    for now in np.unique(time[event]):
        dying = event & (time == now)
        parts = np.arange(dying.sum()) / dying.sum()
        loss += np.log(weights[time >= now].sum() - parts * weights[dying].sum()).sum() - scores[dying].sum()
    return loss / event.sum()


def steps_of(event, time, hidden):
    """Times and factors of a Kaplan-Meier estimate of `event`; rows of `hidden` have left by then."""
    times = np.unique(time[event])
    left = [1 - (event & (time == now)).sum() / ((time >= now) & ~(hidden & (time == now))).sum() for now in times]
    return times, np.array(left)


def metrics(data):
    """Northeast, by 0.02 age - 0.8 treatment: what the tests of task::metrics expect."""
    names, x, event, time, region, fold = data
    scores = 0.02 * x[:, names.index("age_at_index")] - 0.8 * x[:, names.index("treatment_or_therapy_yes")]
    train, test = ((region == "northeast") & (fold == part) for part in ("train", "test"))
    s, e, t = scores[train], event[train], time[train]
    horizon = max(now for now in t[e] if (t >= now).sum() >= 0.1 * len(t))
    deaths, centre = np.unique(t[e]), s.mean()
    hazards = np.array([(e & (t == now)).sum() / np.exp(s[t >= now] - centre).sum() for now in deaths])
    alive = lambda at: np.exp(-hazards[deaths <= at].sum() * np.exp(scores[test] - centre))
    ends, kept = steps_of(~e, t, e)
    s, e, t = scores[test], event[test], time[test]
    before = np.array([kept[ends < end].prod() for end in t])
    brier = 0.0
    for step in range(100):
        at = (step + 0.5) / 100 * horizon
        left = kept[ends <= at].prod()
        brier += np.where(t > at, (1 - alive(at)) ** 2 / left, np.where(e, alive(at) ** 2 / before, 0)).mean() / 100
    falls, factors = steps_of(e, t, np.zeros_like(e))
    calibration = abs(alive(horizon).mean() - factors[falls <= horizon].prod())
    return {"loss": efron(s, e, t), "concordance": concordance(s, e, t), "integrated-brier": brier,
            "calibration-at-time": calibration}


def main():
    data = read(sys.argv[1])
    seeds = range(int(sys.argv[2]) if len(sys.argv) > 2 else 30)
    for drawn in (True, False):
        found = np.array([fedavg(data, seed, drawn) for seed in seeds])
        start = "drawn weights" if drawn else "zero"
        print(f"FedAvg from {start}: {found.mean():.3f} ± {found.std(ddof=1):.3f} over {len(found)} seeds")
    for name, value in metrics(data).items():
        print(f"{name} {value:.12f}")


if __name__ == "__main__":
    main()
