"""A silo that trains the network of fashion.toml with PyTorch."""

import rota
import rota.torch
from torch import nn


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 4 * 4, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def learner(silo: rota.Silo) -> rota.Learner:
    # Rows and loss are those of the task.
    return rota.torch.Learner(network(), silo=silo, shape=(1, 16, 16), threads=1)


if __name__ == "__main__":
    rota.serve(learner)
