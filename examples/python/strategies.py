"""Three strategies of one's own: FedNova, groups by k-means, and momentum at the server.

    python3 examples/python/strategies.py

A strategy returns coefficients and never models: how much of each start model and of each contributed model the new
model of a group has. Needs nothing but NumPy.
"""

import numpy as np

import rota


class FedNova(rota.Strategy):
    """Normalised averaging (Wang et al. 2020, Tackling the Objective Inconsistency Problem): a silo that takes more
    steps than others pulls no harder. `θ ← θ + τ Σ p_i (θ_i − θ) / τ_i` with `τ = Σ p_i τ_i`, where silo `i` has the
    share `p_i` of all rows and took `τ_i` steps of plain SGD."""

    name = "fednova"
    needs = ["rows", "numbers:steps"]

    def settle(self, round):
        share, steps = round.rows / round.rows.sum(), round.numbers["steps"]
        mine = share @ steps * share / steps
        return round.row(entries=mine, starts=[1 - mine.sum()])


class KMeans(rota.Strategy):
    """Groups of silos whose first updates point alike, each with a model of its own: k-means on the inner products of
    the updates, which say all distances between them."""

    name = "k-means"
    needs = ["rows", "gram"]

    def __init__(self, groups):
        self.groups = groups

    def settle(self, round):
        # The groups of the first round stay: every silo starts from the model of its own.
        group = self.grouped(round.gram) if round.number == 1 else round.groups
        share = np.array([round.rows * (group == one) for one in range(group.max() + 1)])
        return rota.Settled([round.row(entries=row) for row in share], assignment=group)

    def grouped(self, gram):
        """The group of every silo, from 0 in the order of their first silos."""
        length = np.diag(gram)
        distance = length[:, None] + length[None, :] - 2 * gram
        first = [0]
        while len(first) < self.groups:
            first.append(int(distance[first].min(0).argmax()))
        group = distance[first].argmin(0)
        for _ in range(100):
            members = np.array([(group == one) / max(1, (group == one).sum()) for one in range(self.groups)])
            # The squared distance of every update from the mean of every group.
            to_mean = length[None, :] - 2 * members @ gram + np.einsum("gi,ij,gj->g", members, gram, members)[:, None]
            again = to_mean.argmin(0)
            if np.array_equal(again, group):
                break
            group = again
        return np.unique(group, return_inverse=True)[1]


class Momentum(rota.Strategy):
    """Momentum at the server (Hsu et al. 2019): `θ_t = mean + β (θ_{t−1} − θ_{t−2})`. The model before the last one is
    what the strategy keeps."""

    name = "momentum"
    needs = ["rows", "state"]

    def __init__(self, beta=0.9):
        self.beta = beta

    def settle(self, round):
        share = round.rows / round.rows.sum()
        if round.kept:
            row = round.row(entries=share, starts=[self.beta], kept=[-self.beta])
        else:
            row = round.row(entries=share)
        return rota.Settled(row, keep=[round.row(starts=[1])])


def learner(silo):
    """A linear model of three numbers at every silo. Silos at odd places have the opposite truth."""
    draw = np.random.default_rng(silo.place)
    rows = 20 + 10 * silo.place
    x = draw.normal(size=(rows, 3))
    y = x @ np.array([1.0, -2.0, 0.5]) * (-1) ** silo.place + 0.1 * draw.normal(size=rows)

    def train(model, training):
        weight, steps = model["weight"].astype(float), 0
        for _ in range(training.epochs):
            for first in range(0, rows, training.batch or rows):
                some = slice(first, first + (training.batch or rows))
                weight = weight - training.rate * 2 * (x[some] @ weight - y[some]) @ x[some] / len(x[some])
                steps += 1
        loss = float(np.mean((x @ weight - y) ** 2))
        return rota.Update({"weight": weight.astype(np.float32)}, {"loss": loss, "steps": steps})

    def evaluate(model, split):
        return {"loss": float(np.mean((x @ model["weight"] - y) ** 2))}

    return rota.FunctionLearner({"weight": (3,)}, train, evaluate, rota.Rows(train=rows, test=rows))


SCENARIO = {
    "name": "strategies",
    "rounds": 8,
    "silos": 6,
    "task": {"external": {"tensors": [{"name": "weight", "shape": [3], "role": "weight"}]}},
    "strategy": {
        "name": "fedavg",
        "training": {"epochs": 1, "batch": 10, "optimiser": {"name": "sgd", "rate": 0.02}},
    },
}


def main():
    for strategy in ["fedavg", FedNova(), KMeans(groups=2), Momentum(beta=0.5)]:
        summary = rota.simulate(SCENARIO, learner=learner, strategy=strategy, references=False)
        name = strategy if isinstance(strategy, str) else strategy.name
        print(f"{name:<10} loss {np.mean([silo['coalition'] for silo in summary['silos']]):.4f}")


if __name__ == "__main__":
    main()
