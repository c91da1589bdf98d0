"""Batches of any make: their tensors, their number of rows, and how they are moved, picked and joined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from .._notes import note
from ._types import Refused

#: Keys under which dictionaries have the targets.
TARGETS = ("labels", "label", "targets", "target", "y")
#: What is said where a last batch of one row joins the one before.
JOINED = "a last batch of one row joins the one before, because batch normalisation cannot train on one row"
#: Types of rows that are picked in the shortest way.
_PLAIN = {torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool}


def leaves(value: Any) -> Iterator[Any]:
    """What a batch has besides tuples, lists and dictionaries, in order."""
    if isinstance(value, Mapping):
        for one in value.values():
            yield from leaves(one)
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from leaves(one)
    else:
        yield value


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors of a batch."""
    return [one for one in leaves(value) if isinstance(one, torch.Tensor)]


def _mapped(value: Any, of: Callable[[Any], Any]) -> Any:
    """The same structure with other leaves."""
    if isinstance(value, dict) and type(value) is not dict:
        # A dictionary with attributes, such as an ordered one of a library.
        made = value.copy()
        for key, one in value.items():
            made[key] = _mapped(one, of)
        return made
    if isinstance(value, Mapping):
        return {key: _mapped(one, of) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(one, of) for one in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(one, of) for one in value)
    return of(value)


def moved(batch: Any, device: torch.device) -> Any:
    """The batch on a device. What knows how to move itself does, such as the batch of a tokenizer."""
    if type(batch) is tuple and all([type(one) is torch.Tensor and one.device == device for one in batch]):
        # As most batches are.
        return batch
    if isinstance(batch, (dict, tuple, list)) and not hasattr(batch, "to"):
        if isinstance(batch, tuple) and hasattr(batch, "_fields"):
            return type(batch)(*(moved(one, device) for one in batch))
        if isinstance(batch, (tuple, list)):
            return type(batch)(moved(one, device) for one in batch)
        return _mapped(batch, lambda one: moved(one, device))
    return batch.to(device) if hasattr(batch, "to") else batch


def picked(rows: Any, places: torch.Tensor) -> Any:
    """The rows at these places of tensors that have all rows."""
    if type(rows) is tuple:
        return tuple(_of_rows(one, places) if type(one) is torch.Tensor else picked(one, places) for one in rows)
    return _mapped(rows, lambda one: one[places])


def _of_rows(values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    # What `values[places]` gives, sooner.
    return values.index_select(0, places) if _is_plain(values) else values[places]


def _is_plain(values: torch.Tensor) -> bool:
    return values.dtype in _PLAIN and values.layout == torch.strided and values.is_contiguous() and values.is_cpu


def picker(rows: Any) -> Callable[[torch.Tensor], Any]:
    """As `picked`, of rows that stay the same from batch to batch: what they are is looked at once."""
    if type(rows) is tuple and all(type(one) is torch.Tensor and _is_plain(one) for one in rows):
        return lambda places: tuple([one.index_select(0, places) for one in rows])
    return lambda places: picked(rows, places)


def shapes_in(value: Any) -> str:
    """The shapes of a batch, to say in a message."""
    if isinstance(value, torch.Tensor):
        return str(tuple(value.shape))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {shapes_in(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        some = [shapes_in(one) for one in value[:4]] + (["…"] if len(value) > 4 else [])
        return "[" + ", ".join(some) + "]"
    return type(value).__name__


def rows_in(targets: Any) -> int:
    """The number of rows of a batch, counted by its targets."""
    if isinstance(targets, torch.Tensor):
        if targets.ndim == 0:
            raise Refused("the targets of a batch are one number, without a dimension of rows: stack them by row")
        return int(targets.shape[0])
    if isinstance(targets, Mapping) and targets:
        return rows_in(next(iter(targets.values())))
    if isinstance(targets, (tuple, list)) and targets:
        first = targets[0]
        if isinstance(first, torch.Tensor) and first.ndim and all(
            isinstance(one, torch.Tensor) and one.ndim and len(one) == len(first) for one in targets
        ):
            # Several targets for each row.
            return int(first.shape[0])
        # One entry for each row, such as the boxes of an image.
        return len(targets)
    if hasattr(targets, "__len__") and not isinstance(targets, str):
        return len(targets)
    raise Refused(
        f"the targets of a batch are a {type(targets).__name__}, whose rows cannot be counted: give "
        "`forward`, which returns outputs and targets as tensors"
    )


def rows_of_batch(batch: Any) -> int | None:
    """The number of rows of a batch before the module sees it, where it can be told."""
    if type(batch) is tuple and batch and type(batch[-1]) is torch.Tensor:
        # As of most batches.
        return len(batch[-1]) if batch[-1].ndim else None
    if isinstance(batch, Mapping):
        key = next((key for key in TARGETS if key in batch), None)
        inputs = [one for name, one in batch.items() if name != key]
        targets = batch[key] if key is not None else None
    elif isinstance(batch, (tuple, list)) and batch:
        inputs, targets = list(batch[:-1]), batch[-1]
    else:
        inputs, targets = [batch], None
    if isinstance(targets, torch.Tensor):
        return int(targets.shape[0]) if targets.ndim else None
    given = next((count for one in inputs if (count := _first(one)) is not None), None)
    if isinstance(targets, (tuple, list)) and targets:
        # One target for each row, or several tensors of all rows: as many as the inputs have.
        return len(targets) if given is None or len(targets) == given else given
    return given if targets is None or given is not None else _first(targets)


def _first(value: Any) -> int | None:
    """The first dimension of inputs: that of their first tensor, or the length of a list of them."""
    if isinstance(value, torch.Tensor):
        return int(value.shape[0]) if value.ndim else None
    if isinstance(value, Mapping):
        return next((count for one in value.values() if (count := _first(one)) is not None), None)
    if isinstance(value, tuple) and value:
        return _first(value[0])
    if isinstance(value, list) and value:
        first = [one.shape[:1] for one in value if isinstance(one, torch.Tensor)]
        # A list of images, or a list of inputs as the default of loaders makes it.
        alike = len(first) == len(value) > 1 and len(set(first)) == 1 and bool(first[0])
        return int(first[0][0]) if alike and value[0].ndim == 2 else len(value)
    return None


def joined(first: Any, second: Any) -> Any:
    """Two batches as one."""
    if isinstance(first, torch.Tensor):
        return torch.cat([first, second])
    if isinstance(first, Mapping):
        both = {key: joined(first[key], second[key]) for key in first}
        if isinstance(first, dict) and type(first) is dict:
            return both
        return _remade(first, both)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(joined(one, two) for one, two in zip(first, second, strict=True)))
    if isinstance(first, (tuple, list)):
        if any(tensors_in(one) for one in first) and len(first) == len(second):
            return type(first)(joined(one, two) for one, two in zip(first, second, strict=True))
        return first + second
    return first


def _remade(like: Any, content: dict[str, Any]) -> Any:
    """A dictionary of the same class, or a plain one."""
    try:
        return type(like)(content)
    except Exception:
        return content


def last_joined(batches: Iterator[Any], says: bool = True) -> Iterator[Any]:
    """The same batches, where a last one of one row joins the one before: batch normalisation takes
    mean and variance of the rows of a batch. A note `says` so."""
    held: list[Any] = []
    for batch in batches:
        if len(held) == 2:
            yield held.pop(0)
        held.append(batch)
    if len(held) == 2 and rows_of_batch(held[1]) == 1:
        try:
            held = [joined(*held)]
            if says:
                note(JOINED)
        except Exception as error:
            raise Refused(
                "the last batch has one row, which batch normalisation cannot train on, and it cannot join the "
                f"batch before ({error}): use `drop_last=True`, or another size of batches"
            ) from error
    yield from held
