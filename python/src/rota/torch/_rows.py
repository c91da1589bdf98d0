"""Rows as a learner takes them, and their order and number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import numpy as np
import torch

from .._learner import Training
from ._batches import TARGETS, last_joined, leaves, picked, rows_of_batch
from ._types import Refused


def is_batch(data: Any) -> bool:
    """Whether these are the tensors of all rows, rather than batches."""
    if isinstance(data, torch.Tensor):
        return data.ndim > 0
    if not isinstance(data, (tuple, Mapping)) or len(data) < 2:
        return False
    if isinstance(data, tuple) and not isinstance(data[-1], torch.Tensor):
        return False
    found = list(leaves(data))
    return bool(found) and all(isinstance(one, torch.Tensor) and one.ndim > 0 for one in found)


def data_of(part: str, data: Any, kind: torch.dtype) -> Any:
    """Rows as the learner takes them: numbers of arrays are of the `kind` of the module's."""

    def tensor(values: Any) -> Any:
        if isinstance(values, Mapping):
            return {key: tensor(one) for key, one in values.items()}
        if isinstance(values, (tuple, list)):
            return tuple(tensor(one) for one in values)
        if isinstance(values, torch.Tensor):
            return values
        made = torch.from_numpy(np.array(values))
        if made.dtype in (torch.int8, torch.int16, torch.int32):
            # Classes and indices, which PyTorch takes as 64-bit integers.
            return made.long()
        return made.to(kind) if made.is_floating_point() else made

    if isinstance(data, np.ndarray):
        return tensor(data)
    # Targets are one array: a tuple that ends with a pair is a tuple of batches, as a list is.
    pair = isinstance(data, list) and len(data) == 2 and all(hasattr(one, "__array__") for one in data)
    wide = isinstance(data, tuple) and len(data) > 1 and hasattr(data[-1], "__array__")
    if isinstance(data, Mapping) and not all(hasattr(one, "__array__") for one in leaves(data)):
        raise TypeError(
            f"`{part}` is a dictionary with values that are no arrays: give tensors of all rows (a tokenizer's with "
            'padding=True, return_tensors="pt"), or a DataLoader'
        )
    if pair or wide or isinstance(data, Mapping):
        found = list(leaves(data))
        if len(found) > 1 and all(hasattr(one, "__array__") for one in found):
            rows = tensor(data)
            counts = [len(one) if one.ndim else None for one in leaves(rows)]
            if len(counts) == 2 and counts[0] != counts[1]:
                raise ValueError(f"`{part}` has {counts[0]} rows and {counts[1]} targets")
            if len(set(counts)) > 1:
                raise ValueError(f"the tensors of `{part}` have different numbers of rows: {counts}")
            return rows
    if isinstance(data, torch.utils.data.Dataset):
        raise TypeError(f"`{part}` is a {type(data).__name__}, without batches: give a DataLoader of it")
    if data is not None and isinstance(data, Iterator):
        raise TypeError(
            f"`{part}` is a {type(data).__name__}, which ends after one pass: give a DataLoader, or two tensors (x, y)"
        )
    return data


def in_order(part: str, data: Any) -> tuple[Any, bool]:
    """The same rows, all that the loader ever draws, in an order that does not change; and whether it draws other rows
    in every pass, such as a sampler with replacement: then they are all rows of the data set."""
    utils = torch.utils.data
    if type(data) is not utils.DataLoader or isinstance(data.dataset, utils.IterableDataset) or data.batch_sampler is None:
        return data, False
    plain = type(data.batch_sampler) is utils.BatchSampler and data.batch_size is not None
    if plain and not data.drop_last and type(data.sampler) is utils.SequentialSampler:
        return data, False

    def drawn() -> list[int]:
        if plain:
            return [int(place) for place in data.sampler]
        return [int(place) for batch in cast(Any, data.batch_sampler) for place in batch]

    places, again = drawn(), drawn()
    for _ in range(20 if len(places) < 10 else 0):
        # A few rows come in the same order by chance.
        again = drawn() if places == again else again
    anew = bool(getattr(data.sampler, "replacement", False)) if plain else len(set(places)) < len(places)
    if places != again or anew:
        places, again = sorted(set(places)), sorted(set(again))
        anew = anew or places != again
        if anew and part != "train":
            raise ValueError(
                f"`{part}` draws other rows every time: give a DataLoader without a sampler, results of two models "
                "are compared row by row"
            )
    if anew:
        places = list(range(len(cast(Any, data.dataset))))
    made: Any = utils.DataLoader(
        utils.Subset(data.dataset, places),
        data.batch_size or 512,
        num_workers=data.num_workers,
        collate_fn=data.collate_fn,
        pin_memory=data.pin_memory,
        timeout=data.timeout,
        worker_init_fn=data.worker_init_fn,
        multiprocessing_context=data.multiprocessing_context,
        prefetch_factor=data.prefetch_factor,
    )
    return made, anew


def check_order(part: str, data: Any, begin: Callable[[], None]) -> None:
    """Refuses held-out rows that come in another order every time, where nobody but the loader knows their order.
    `begin` makes two passes begin alike."""
    known = data is None or is_batch(data) or isinstance(data, (list, tuple))
    plain = type(data) is torch.utils.data.DataLoader and not isinstance(data.dataset, torch.utils.data.IterableDataset)
    if known or plain and data.batch_sampler is not None:
        return

    def signs() -> list[int]:
        begin()
        return [hash(tuple(_sign(one) for one in leaves(batch))) for batch in data]

    if signs() != signs():
        raise Refused(
            f"`{part}` gives its rows in another order every time, or others, and results of two models are compared row "
            "by row: give a DataLoader that does not shuffle, or draw the order from torch, NumPy or Python, whose "
            "generators are seeded for every measurement"
        )


def _sign(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return hash(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()) if value.numel() else 0
    return hash(value.tobytes()) if isinstance(value, np.ndarray) else hash(repr(value))


def count_of(data: Any, rows: Callable[[Any], int]) -> int:
    """The number of rows of a part; `rows` counts those of a batch."""
    if data is None:
        return 0
    if is_batch(data):
        return len(next(leaves(data)))
    dataset = getattr(data, "dataset", None)
    sampled = getattr(data, "sampler", None)
    if isinstance(data, torch.utils.data.DataLoader) and data.batch_size is None and data.batch_sampler is None:
        # A loader of whole batches, which counts these.
        sampled = dataset = None
    for counted in (sampled, dataset):
        try:
            return len(counted)  # type: ignore[arg-type]
        except TypeError:
            continue
    return sum(rows(batch) for batch in data)


def first_of(part: str, data: Any) -> Any:
    """A batch to try; `None` where there is none."""
    if is_batch(data):
        count = len(next(leaves(data)))
        return picked(data, torch.arange(min(count, 32))) if count else None
    # A last batch of one row may have joined the one before.
    batch = next(last_joined(itertools.islice(iter(data), 3), says=False), None)
    rows, size = rows_of_batch(batch), getattr(data, "batch_size", None)
    if rows is not None and isinstance(size, int) and isinstance(getattr(data, "dataset", None), torch.utils.data.Dataset):
        # One more may have joined it.
        if rows > size + 1:
            raise Refused(
                f"a batch of `{part}` has {rows} targets, and the loader draws {size} rows: rows are counted by the first "
                "dimension of the targets; keep it in `collate_fn`, and reshape in `forward`"
            )
    return batch


def targets_in(data: Any) -> torch.Tensor | None:
    """The targets of all rows, where they lie in one tensor."""
    if isinstance(dataset := getattr(data, "dataset", None), torch.utils.data.Subset):
        dataset = dataset.dataset
    if isinstance(dataset, torch.utils.data.TensorDataset):
        data = dataset.tensors
    elif not is_batch(data) or isinstance(data, torch.Tensor):
        return None
    if isinstance(data, Mapping):
        data = [data[key] for key in TARGETS if key in data]
    found = data[-1] if len(data) else None
    return found if isinstance(found, torch.Tensor) else None


def steps_of(rows: Any, data: Any, training: Training, joins: Callable[[], bool]) -> int:
    """How many batches a training on these rows has, or with these `data` where rows are not tensors of all of them; 0
    where that is not known. `joins` says whether a last batch of one row joins the one before."""
    try:
        if rows is not None:
            count = len(next(leaves(rows)))
            size = training.batch or count
            steps = math.ceil(count / size)
        else:
            steps, size = len(data), getattr(data, "batch_size", None) or 0
            count = len(getattr(data, "sampler", ())) if size and not data.drop_last else 0
    except (TypeError, AttributeError):
        return 0
    joined = steps > 1 and size > 1 and count % size == 1 and joins()
    return training.epochs * (steps - joined)
