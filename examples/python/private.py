"""A silo that trains with differential privacy: a learner of one's own around Opacus.

`rota.torch.Learner` trains with the agreed optimiser, which adds no noise. This one trains with the
private optimiser, and keeps account of the privacy that its trainings have cost.
"""

import os

import opacus
import rota
import torch
from torch import nn


class Private(rota.Learner):
    """Logistic regression by private gradient descent (Abadi et al. 2016)."""

    # Each row is drawn with the same probability, so a training may take fewer rows than there are.
    some_rows = True

    def __init__(self, train, test, noise=1.0, largest=1.0, delta=1e-5):
        self._parts = {"train": train, "test": test}
        self._noise, self._largest, self._delta = noise, largest, delta
        self._features = train[0].shape[1]
        # The cost of all trainings that this program has done. Keep it in a file to count over restarts.
        self._account = opacus.PrivacyEngine()

    def tensors(self):
        yield rota.Tensor("weight", (2, self._features), "weight")
        yield rota.Tensor("bias", (2,), "bias")

    def rows(self):
        return rota.Rows(train=len(self._parts["train"][0]), test=len(self._parts["test"][0]))

    def _model(self, arrays):
        model = nn.Linear(self._features, 2)
        model.load_state_dict({name: torch.tensor(value) for name, value in arrays.items()})
        return model

    def train(self, start, training):
        plain = self._model(start)
        rows = torch.utils.data.TensorDataset(*self._parts["train"])
        size = training.batch or len(rows)
        # Noise and choice of rows must be a secret: the system draws them, not the agreed seed.
        secret = torch.Generator().manual_seed(int.from_bytes(os.urandom(7), "little"))
        model, optimiser, batches = self._account.make_private(
            module=plain,
            optimizer=torch.optim.SGD(plain.parameters(), lr=training.rate),
            data_loader=torch.utils.data.DataLoader(rows, batch_size=size, generator=secret),
            noise_multiplier=self._noise,
            max_grad_norm=self._largest,
            noise_generator=secret,
        )
        for epoch in range(training.epochs):
            for x, y in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimiser.step()
            training.progress(epoch + 1, training.epochs)
        trained = {name: value.detach().numpy().copy() for name, value in plain.named_parameters()}
        found = self.evaluate(trained, "train", {})
        return rota.Update(trained, {**found, "epsilon": self._account.get_epsilon(self._delta)})

    def evaluate(self, model, split, personal):
        x, y = self._parts[split]
        with torch.no_grad():
            outputs = self._model(model)(x)
        loss = nn.functional.cross_entropy(outputs, y)
        return {"loss": float(loss), "accuracy": float((outputs.argmax(1) == y).float().mean())}


def learner(silo: rota.Silo) -> rota.Learner:
    # A real silo reads its files here.
    draw = torch.Generator().manual_seed(silo.place)
    x = torch.randn(300, 4, generator=draw)
    y = (x[:, 0] - x[:, 1] > 0).long()
    return Private((x[:200], y[:200]), (x[200:], y[200:]))


if __name__ == "__main__":
    rota.serve(learner)
