"""The types that the files of this folder share, and NumPy arrays of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np
import torch

#: Inputs and targets: a pair, a longer tuple, a dictionary, or what `forward` takes.
Batch = Any
#: Batches, or the tensors of all rows.
Data = Iterable[Any]
#: From outputs and targets to a mean over the rows of a batch.
Loss = Callable[[Any, Any], torch.Tensor]
#: From the module and a batch to outputs and targets.
Forward = Callable[[Any, Any], tuple[Any, Any]]
Metrics = Callable[[torch.Tensor, torch.Tensor], Mapping[str, float]]
Shared = Literal["all", "trainable"]


class Refused(ValueError):
    """Something of a learner that would go wrong without a word; the text says what to do instead."""


def array(value: torch.Tensor) -> Any:
    """A copy, as 32-bit floats: the module's own values go on changing."""
    value = value.detach()
    if not (value.is_cpu and value.dtype == torch.float32):
        value = value.cpu().float()
    return value.numpy().copy()


def wide(value: torch.Tensor) -> Any:
    """Outputs or targets as an array: of 64-bit floats where 32-bit ones may not have them. Without a copy where it is
    one of floats already."""
    whole = value.detach().cpu()
    large = whole.dtype in (torch.float64, torch.int64, torch.int32)
    return (whole.double() if large else whole.float()).numpy()


def tensor(values: Any) -> torch.Tensor:
    """Values of an array as a tensor, without a copy where PyTorch can use them as they are."""
    flags = getattr(values, "flags", None)
    ready = flags is not None and flags.c_contiguous and flags.writeable
    return torch.from_numpy(values if ready else np.require(values, requirements=["C_CONTIGUOUS", "WRITEABLE"]))
