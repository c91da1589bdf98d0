"""A silo whose model is two arrays, trained by a function, without any framework."""

import numpy as np
import rota


def learner(silo: rota.Silo) -> rota.Learner:
    draw = np.random.default_rng(silo.place)
    x = draw.normal(size=(60, 3)).astype(np.float32)
    y = x @ np.array([1.0, -2.0, 0.5], np.float32) + 3 + draw.normal(size=60, scale=0.1)
    parts = {"train": slice(0, 40), "test": slice(40, 60)}

    def error(model, part):
        return x[part] @ model["weight"] + model["bias"] - y[part]

    def train(model, training):
        part = parts["train"]
        for _ in range(training.epochs):
            off = error(model, part)
            model["weight"] = model["weight"] - training.rate * x[part].T @ off / len(off)
            model["bias"] = model["bias"] - training.rate * off.mean()
        return model

    def evaluate(model, split):
        off = error(model, parts[split])
        return {"loss": float((off**2).mean()), "mae": float(np.abs(off).mean())}

    shapes = {"weight": (3,), "bias": (1,)}
    return rota.FunctionLearner(shapes, train, evaluate, rota.Rows(train=40, test=20))


if __name__ == "__main__":
    rota.serve(learner)
