"""A module of Flax with Optax; the parameters are a tree, and travel as arrays by their paths."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import rota
from flax.traverse_util import flatten_dict, unflatten_dict


class Ward(nn.Module):
    @nn.compact
    def __call__(self, x):
        # In the order of depth, which is that of the parameters.
        x = nn.tanh(nn.Dense(16)(x))
        return nn.Dense(2)(x)


def rows(place):
    draw = np.random.default_rng(place)
    x = draw.normal(size=(120, 6)).astype(np.float32)
    y = (x[:, 0] + 0.5 * x[:, 1] * x[:, 2] > 0).astype(np.int32)
    return (x[:90], y[:90]), (x[90:], y[90:])


module = Ward()


def loss_of(params, x, y):
    outputs = module.apply({"params": params}, x)
    return optax.softmax_cross_entropy_with_integer_labels(outputs, y).mean()


step = jax.jit(jax.value_and_grad(loss_of))


def flat(params):
    return {name: np.asarray(value) for name, value in flatten_dict(params, sep="/").items()}


def tree(arrays):
    return unflatten_dict({name: jnp.asarray(value) for name, value in arrays.items()}, sep="/")


def learner(silo: rota.Silo) -> rota.Learner:
    (x, y), test_rows = rows(silo.place)
    start = module.init(jax.random.key(silo.seed % (1 << 32)), x[:1])["params"]

    def train(model, training):
        params, order = tree(model), np.random.default_rng(training.seed)
        optimiser = optax.sgd(training.rate)
        state, loss = optimiser.init(params), 0.0
        for _ in range(training.epochs):
            chosen = order.permutation(len(x))
            for at in range(0, len(x), training.batch or len(x)):
                some = chosen[at : at + (training.batch or len(x))]
                loss, gradient = step(params, x[some], y[some])
                change, state = optimiser.update(gradient, state, params)
                params = optax.apply_updates(params, change)
        return rota.Update(flat(params), {"loss": float(loss)})

    def evaluate(model, split):
        params = tree(model)
        outputs = module.apply({"params": params}, test_rows[0])
        return {"loss": float(loss_of(params, *test_rows)), "accuracy": float((outputs.argmax(1) == test_rows[1]).mean())}

    return rota.FunctionLearner(flat(start), train, evaluate, rota.Rows(train=len(x), test=len(test_rows[1])))


if __name__ == "__main__":
    rota.serve(learner)
