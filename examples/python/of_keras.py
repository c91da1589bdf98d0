"""A model of Keras, with any of its backends, trained by `fit` in every round."""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
import rota


def rows(place):
    draw = np.random.default_rng(place)
    x = draw.normal(size=(120, 6)).astype(np.float32)
    y = (x[:, 0] + 0.5 * x[:, 1] * x[:, 2] > 0).astype(np.int32)
    return (x[:90], y[:90]), (x[90:], y[90:])


def network():
    return keras.Sequential([
        keras.Input((6,)), keras.layers.Dense(16, activation="tanh"), keras.layers.BatchNormalization(), keras.layers.Dense(2),
    ])


def learner(silo: rota.Silo) -> rota.Learner:
    train_rows, test_rows = rows(silo.place)
    keras.utils.set_random_seed(silo.seed % (1 << 32))
    model = network()
    # By place: Keras numbers the layers of a process, so that their names differ from silo to silo.
    names = [f"{place:02}/{variable.name}" for place, variable in enumerate(model.weights)]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def arrays():
        return {name: np.array(value) for name, value in zip(names, model.get_weights(), strict=True)}

    def train(start, training):
        keras.utils.set_random_seed(training.seed % (1 << 32))
        # A new optimiser: its state is no part of the model.
        model.compile(keras.optimizers.SGD(training.rate), loss)
        model.set_weights([start[name] for name in names])
        past = model.fit(*train_rows, batch_size=training.batch, epochs=training.epochs, verbose=0)
        return rota.Update(arrays(), {"loss": past.history["loss"][-1]})

    def evaluate(start, split):
        model.set_weights([start[name] for name in names])
        x, y = test_rows
        outputs = np.asarray(model(x, training=False))
        return {"loss": float(loss(y, outputs)), "accuracy": float((outputs.argmax(1) == y).mean())}

    return rota.FunctionLearner(arrays(), train, evaluate, rota.Rows(train=90, test=30))


if __name__ == "__main__":
    rota.serve(learner)
