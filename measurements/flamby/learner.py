"""Local training as in FLamby: with SGD 100 steps in every round, whatever the number of rows."""

import numpy as np
import rota

STEPS = 100


class Steps(rota.Learner):
    """The agreed logistic model, on the rows that Rota hands over."""

    gradients = True

    def __init__(self, silo: rota.Silo) -> None:
        self.silo = silo
        names = {tensor.role: tensor.name for tensor in silo.layout}
        self.weight, self.bias = names["weight"], names["bias"]

    def tensors(self):
        return self.silo.layout

    def off(self, model, x, y):
        """Predicted probabilities less the labels."""
        linear = x @ model[self.weight].reshape(-1) + float(model[self.bias].reshape(-1)[0])
        return (1 + np.tanh(linear / 2)) / 2 - y.reshape(-1)

    def train(self, start, training):
        x, y = (part.astype(np.float64) for part in self.silo.rows("train"))
        model = {name: value.astype(np.float64) for name, value in start.items()}
        draw = np.random.default_rng([training.seed, self.silo.place])
        left = np.empty(0, dtype=int)
        whole = training.epochs * -(-len(x) // training.batch)
        moments = {name: (np.zeros_like(value), np.zeros_like(value)) for name, value in model.items()}
        for step in range(1, 1 + (STEPS if training.optimiser == "sgd" else whole)):
            if len(left) == 0:
                left = draw.permutation(len(x))
            batch, left = left[: training.batch], left[training.batch :]
            off = self.off(model, x[batch], y[batch])
            gradient = {
                self.weight: (x[batch].T @ off / len(batch)).reshape(model[self.weight].shape),
                self.bias: np.full(model[self.bias].shape, off.mean()),
            }
            for name, g in gradient.items():
                if training.modifier is not None:
                    if name in training.modifier.anchor:
                        g = g + training.modifier.mu * (model[name] - training.modifier.anchor[name])
                    g = g + training.modifier.shift.get(name, 0.0)
                if training.optimiser == "adam":
                    first, second = moments[name]
                    first = 0.9 * first + 0.1 * g
                    second = 0.999 * second + 0.001 * g * g
                    moments[name] = first, second
                    g = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
                model[name] = model[name] - training.rate * g
        found = {name: value.astype(np.float32) for name, value in model.items()}
        return rota.Update(model=found, metrics=self.evaluate(found, "train", {}))

    def evaluate(self, model, split, personal):
        x, y = self.silo.rows(split)
        off = self.off(model, x.astype(np.float64), y)
        return {"loss": float(-np.log(np.clip(1 - np.abs(off), 1e-12, 1)).mean())}


if __name__ == "__main__":
    rota.serve(Steps)
