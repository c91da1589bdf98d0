"""Plain loops of PyTorch, to compare learners with: the same batches, the same steps, nothing else."""

from __future__ import annotations

import copy

import numpy as np
import torch


def values(learner):
    """The model before the first round."""
    return {name: np.array(value) for name, value in learner.initial(0).items()}


def loop(model, batches, loss_of, rate=0.1, epochs=1):
    """The parameters after a plain training; `loss_of(model, batch)` is the loss of a batch."""
    model = copy.deepcopy(model).cpu()
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    model.train()
    for _ in range(epochs):
        for batch in batches:
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()
    return {name: value.detach().float().numpy().copy() for name, value in model.named_parameters()}


def trained_alike(learner, expected, **changes):
    """Whether the learner trains to these parameters, to the last bit."""
    from conftest import training

    found = learner.train(values(learner), training(**changes)).model
    return all(np.array_equal(found[name], value) for name, value in expected.items())


def loader(rows, size=4, **options):
    """A loader that draws the rows in their order."""
    return torch.utils.data.DataLoader(rows, batch_size=size, **options)


def draw(*shape, seed=1):
    """Made-up numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def classes(count, *shape, seed=2):
    """Made-up classes."""
    return torch.randint(0, count, shape, generator=torch.Generator().manual_seed(seed))
