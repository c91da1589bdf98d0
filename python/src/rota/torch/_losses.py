"""Losses that a learner knows: what outputs mean under them, and the loss of an agreed model."""

from __future__ import annotations

import torch
from torch import nn

from .._learner import Given, OutputsLoss
from ._types import Loss


def has_classes(loss: Loss) -> bool:
    return loss is nn.functional.cross_entropy or isinstance(loss, nn.CrossEntropyLoss)


def outputs_loss(loss: Loss) -> OutputsLoss | None:
    """What the outputs are under this loss, where it is the plain one: Rota measures them without
    weights and smoothing."""
    functional = nn.functional
    weights = [getattr(loss, name, None) for name in ("weight", "pos_weight")]
    if any(weight is not None for weight in weights) or bool(getattr(loss, "label_smoothing", None)):
        return None
    if loss is functional.cross_entropy or type(loss) is nn.CrossEntropyLoss:
        return "softmax"
    if loss in (functional.mse_loss, _squared) or type(loss) is nn.MSELoss:
        return "squared"
    if loss in (functional.l1_loss, _absolute) or type(loss) is nn.L1Loss:
        return "absolute"
    if loss in (functional.binary_cross_entropy_with_logits, _logistic) or type(loss) is nn.BCEWithLogitsLoss:
        return "logistic"
    return None


def _squared(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.mse_loss(outputs.reshape(targets.shape), targets)


def _absolute(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.l1_loss(outputs.reshape(targets.shape), targets)


def _logistic(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.binary_cross_entropy_with_logits(outputs.reshape(targets.shape), targets)


def loss_of(given: Given | None) -> Loss:
    """The loss of the agreed model."""
    known: dict[str, Loss] = {
        "softmax": nn.functional.cross_entropy,
        "squared": _squared,
        "absolute": _absolute,
        "logistic": _logistic,
    }
    if given is None or given.loss not in known:
        agreed = f", the agreed one is {given.loss!r}" if given else ""
        raise ValueError(f"no loss: give `loss`{agreed}")
    return known[given.loss]


def targets_of(targets: torch.Tensor, loss: str) -> torch.Tensor:
    return targets[:, 0].long() if loss == "softmax" else targets
