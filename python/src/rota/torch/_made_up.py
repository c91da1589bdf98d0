"""A batch that every member makes up alike, on which models are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from .._turn import seed_torch
from ._batches import tensors_in
from ._expected import Expected

#: Rows of the batch.
ROWS = 2
#: Tokens of the batch where texts have any length.
LENGTH = 8
#: Places of the batch in dimensions that a model may take of any size, such as height and width.
PLACES = 32
#: Most outputs that are compared.
OUTPUTS = 16
#: Why nothing can be compared, and what was compared instead.
DRAWN = "its outputs are drawn at random"
MEANS = "with the means of what is drawn"


class Size(NamedTuple):
    """Which dimensions of a batch are of a size that every member takes, since its own rows may be of another:
    the tokens of a text, the height and width of an image, the steps of a series."""

    text: bool = False
    image: bool = False
    series: bool = False

    def of(self, like: torch.Tensor) -> tuple[int, ...]:
        """The shape of a tensor of two rows."""
        own = tuple(like.shape[1:])
        if like.ndim == 0:
            return ()
        if self.text and like.ndim == 2 and not like.is_floating_point():
            return (ROWS, min(LENGTH, own[0]))
        if self.image and like.ndim >= 4:
            return (ROWS, own[0], *(PLACES for _ in own[1:]))
        if self.image and like.ndim == 3 and not like.is_floating_point():
            return (ROWS, PLACES, PLACES)
        if like.ndim == 3 and like.is_floating_point() and (self.image or self.series):
            return (ROWS, PLACES, own[1]) if self.series else (ROWS, own[0], PLACES)
        return (ROWS, *own)


def sizes(batch: Any) -> Iterator[Size]:
    """Sizes to try, the one that most members can take first, and that of the batch last."""
    tensors, text = tensors_in(batch), is_text(batch)
    if any(one.ndim >= 3 for one in tensors):
        yield Size(text, image=True)
    if any(one.ndim == 3 and one.is_floating_point() for one in tensors):
        yield Size(text, series=True)
    if text:
        yield Size(text)
    yield Size()


def made_up(batch: Any, size: Size, name: str = "", nth: int = 0) -> Any:
    """A batch of two rows like this one, with made-up values: the same wherever the dimensions are."""
    if isinstance(batch, torch.Tensor):
        return _tensor(batch, size, name, nth)
    if isinstance(batch, Mapping):
        made = {key: made_up(value, size, str(key), at) for at, (key, value) in enumerate(batch.items())}
        try:
            return type(batch)(made)  # type: ignore[call-arg]
        except TypeError:
            return made
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(made_up(value, size, name, at) for at, value in enumerate(batch)))
    if isinstance(batch, (tuple, list)):
        return type(batch)(made_up(value, size, name, nth + at) for at, value in enumerate(batch))
    return batch


def is_text(batch: Any) -> bool:
    """Whether it has rows of whole numbers, such as tokens."""
    if isinstance(batch, torch.Tensor):
        return batch.ndim == 2 and not batch.is_floating_point()
    parts = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (tuple, list)) else ()
    return any(is_text(one) for one in parts)


def _tensor(like: torch.Tensor, size: Size, name: str, nth: int) -> torch.Tensor:
    shape = size.of(like)
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
    """What is computed, and `MEANS` if it draws at random, or nothing and why: it must be the same twice,
    with the means of what is drawn where that is random."""
    found, why = _twice(compute)
    if why == DRAWN:
        with Expected():  # type: ignore[no-untyped-call]
            found, why = _twice(compute)
        if not why:
            return found, MEANS
    return found, why


def _twice(compute: Callable[[], Any]) -> tuple[Any, str]:
    found = []
    for seed in (1, 2):
        seed_torch(seed)
        try:
            found.append(numbers(compute()))
        except Exception as error:
            return np.zeros(0, np.float32), f"{type(error).__name__}: {error}"
    if not np.array_equal(found[0], found[1], equal_nan=True):
        return np.zeros(0, np.float32), DRAWN
    if not np.isfinite(found[0]).all():
        return np.zeros(0, np.float32), "with made-up values its outputs are not finite"
    if not len(found[0]):
        return found[0], "it gives no outputs"
    return found[0], ""
