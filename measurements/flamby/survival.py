"""Local training as in FLamby's Fed-TCGA-BRCA: with SGD 100 steps in every round, whatever the number of rows.

The loss of a batch is Cox's partial likelihood with the rows of the batch at risk, divided by its rows, as there.
"""

import numpy as np
import rota

STEPS = 100


def pulls(scores, lives):
    """Slopes of a batch's loss with respect to its scores; rows of one time are at risk one after the other."""
    latest = np.argsort(-lives[:, 1], kind="stable")
    sorted_scores, events = scores[latest], lives[latest, 0]
    at_risk = np.logaddexp.accumulate(sorted_scores)
    # Row i is at risk at its own time and at the earlier ones, which stand behind it. Scores may be far apart.
    shares = np.triu(np.exp(np.minimum(sorted_scores[:, None] - at_risk, 0.0))) @ events
    slopes = np.empty(len(scores))
    slopes[latest] = shares - events
    return slopes / len(scores)


def agreed_loss(scores, lives):
    """The loss that Rota measures: per event, ties as Efron counts them."""
    event, time = lives[:, 0] > 0, lives[:, 1]
    loss = 0.0
    for now in np.unique(time[event]):
        dying, largest = event & (time == now), scores[time >= now].max()
        weights = np.exp(np.minimum(scores - largest, 0.0))
        parts = np.arange(dying.sum()) / dying.sum()
        rest = weights[time >= now].sum() - parts * weights[dying].sum()
        loss += (np.log(rest) + largest).sum() - scores[dying].sum()
    return float(loss / max(event.sum(), 1))


class Steps(rota.Learner):
    """The agreed Cox model, on the rows that Rota hands over."""

    gradients = True

    def __init__(self, silo: rota.Silo) -> None:
        self.silo = silo
        self.weight = next(tensor.name for tensor in silo.layout if tensor.role == "weight")

    def tensors(self):
        return self.silo.layout

    def train(self, start, training):
        x, lives = (part.astype(np.float64) for part in self.silo.rows("train"))
        lives = lives.reshape(len(x), 3)
        model = {name: value.astype(np.float64) for name, value in start.items()}
        draw = np.random.default_rng([training.seed, self.silo.place])
        left = np.empty(0, dtype=int)
        whole = training.epochs * -(-len(x) // training.batch)
        first, second = np.zeros_like(model[self.weight]), np.zeros_like(model[self.weight])
        for step in range(1, 1 + (STEPS if training.optimiser == "sgd" else whole)):
            if len(left) == 0:
                left = draw.permutation(len(x))
            batch, left = left[: training.batch], left[training.batch :]
            weight = model[self.weight]
            g = (x[batch].T @ pulls(x[batch] @ weight.reshape(-1), lives[batch])).reshape(weight.shape)
            if training.modifier is not None:
                if self.weight in training.modifier.anchor:
                    g = g + training.modifier.mu * (weight - training.modifier.anchor[self.weight])
                g = g + training.modifier.shift.get(self.weight, 0.0)
            if training.optimiser == "adam":
                first = 0.9 * first + 0.1 * g
                second = 0.999 * second + 0.001 * g * g
                g = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
            model[self.weight] = weight - training.rate * g
        found = {name: value.astype(np.float32) for name, value in model.items()}
        return rota.Update(model=found, metrics=self.evaluate(found, "train", {}))

    def evaluate(self, model, split, personal):
        x, lives = self.silo.rows(split)
        scores = x.astype(np.float64) @ model[self.weight].reshape(-1).astype(np.float64)
        return {"loss": agreed_loss(scores, lives.astype(np.float64).reshape(len(x), 3))}


if __name__ == "__main__":
    rota.serve(Steps)
