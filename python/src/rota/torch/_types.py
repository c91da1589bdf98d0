"""The types that the files of this folder share, and NumPy arrays of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import torch

Batch = tuple[torch.Tensor, torch.Tensor]
Data = Iterable[Batch]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Metrics = Callable[[torch.Tensor, torch.Tensor], Mapping[str, float]]
Shared = Literal["all", "trainable"]


def array(value: torch.Tensor) -> Any:
    # A copy: the module's own values go on changing.
    return value.detach().cpu().float().numpy().copy()
