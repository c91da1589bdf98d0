"""A silo with rows of its own, a model that only it and its like know, and PyTorch."""

import rota
import rota.torch
import torch
from torch import nn


def learner(silo: rota.Silo) -> rota.Learner:
    # A real silo reads its files here.
    draw = torch.Generator().manual_seed(silo.place)
    x = torch.randn(120, 6, generator=draw)
    y = (x[:, 0] + 0.5 * x[:, 1] * x[:, 2] + 0.3 * torch.randn(120, generator=draw) > 0).long()
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
    return rota.torch.Learner(
        model,
        nn.functional.cross_entropy,
        train=(x[:90], y[:90]),
        test=(x[90:], y[90:]),
        silo=silo,
        keep="sgd",
    )


if __name__ == "__main__":
    rota.serve(learner)
