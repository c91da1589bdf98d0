"""A batch that every member makes up alike, on which models are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

#: Rows of the batch.
ROWS = 2
#: Tokens of the batch where texts have any length.
LENGTH = 8
#: Most outputs that are compared.
OUTPUTS = 16


def made_up(batch: Any, short: bool, name: str = "", nth: int = 0) -> Any:
    """A batch of two rows like this one, with made-up values: the same wherever the dimensions are.
    Where it is `short`, of texts only as many tokens, since they are of other lengths elsewhere."""
    if isinstance(batch, torch.Tensor):
        return _tensor(batch, short, name, nth)
    if isinstance(batch, Mapping):
        made = {key: made_up(value, short, str(key), at) for at, (key, value) in enumerate(batch.items())}
        try:
            return type(batch)(made)  # type: ignore[call-arg]
        except TypeError:
            return made
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(made_up(value, short, name, at) for at, value in enumerate(batch)))
    if isinstance(batch, (tuple, list)):
        return type(batch)(made_up(value, short, name, nth + at) for at, value in enumerate(batch))
    return batch


def is_text(batch: Any) -> bool:
    """Whether it has rows of whole numbers, such as tokens."""
    if isinstance(batch, torch.Tensor):
        return batch.ndim == 2 and not batch.is_floating_point()
    parts = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (tuple, list)) else ()
    return any(is_text(one) for one in parts)


def _tensor(like: torch.Tensor, short: bool, name: str, nth: int) -> torch.Tensor:
    shape = (ROWS, *like.shape[1:]) if like.ndim else ()
    if short and like.ndim == 2 and not like.is_floating_point():
        shape = (ROWS, min(LENGTH, like.shape[1]))
    places = torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape)
    if like.is_floating_point() and "mask" not in name:
        return torch.cos(1.0 + 0.7 * nth + 1.3 * places).to(like.device, like.dtype)
    if "mask" in name or like.dtype == torch.bool:
        return torch.ones(shape, dtype=like.dtype, device=like.device)
    # Every vocabulary and every set of classes has two members.
    return (places % 2).to(like.device, like.dtype)


def dimensions(batch: Any) -> list[int]:
    """The dimensions of all tensors of a batch, one after another."""
    if isinstance(batch, torch.Tensor):
        return [batch.ndim, *batch.shape]
    if isinstance(batch, Mapping):
        return [size for value in batch.values() for size in dimensions(value)]
    if isinstance(batch, (tuple, list)):
        return [size for value in batch for size in dimensions(value)]
    return []


def numbers(outputs: Any) -> Any:
    """The first outputs, as NumPy numbers."""
    if isinstance(outputs, torch.Tensor):
        flat = outputs.detach().cpu().float().flatten()[:OUTPUTS]
        return flat.numpy().copy()
    if isinstance(outputs, Mapping):
        outputs = list(outputs.values())
    if isinstance(outputs, (tuple, list)):
        parts = [numbers(one) for one in outputs]
        return np.concatenate(parts)[:OUTPUTS] if parts else np.zeros(0, np.float32)
    return np.zeros(0, np.float32)


def computed(compute: Callable[[], Any]) -> tuple[Any, str]:
    """What is computed, or nothing and why: it must be the same twice, whatever is drawn meanwhile."""
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        try:
            found.append(numbers(compute()))
        except Exception as error:
            return np.zeros(0, np.float32), f"{type(error).__name__}: {error}"
    if not np.array_equal(found[0], found[1], equal_nan=True):
        return np.zeros(0, np.float32), "its outputs are drawn at random"
    if not np.isfinite(found[0]).all():
        return np.zeros(0, np.float32), "with made-up values its outputs are not finite"
    if not len(found[0]):
        return found[0], "it gives no outputs"
    return found[0], ""
