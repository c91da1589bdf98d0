"""Rows as a learner takes them, and their order and number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import torch


def is_batch(data: Any) -> bool:
    return isinstance(data, tuple) and len(data) == 2 and all(isinstance(one, torch.Tensor) for one in data)


def data_of(part: str, data: Any, kind: torch.dtype) -> Any:
    """Rows as the learner takes them: numbers of arrays are of the `kind` of the module's."""

    def tensor(values: Any) -> torch.Tensor:
        if isinstance(values, torch.Tensor):
            return values
        made = torch.from_numpy(np.array(values))
        return made.to(kind) if made.is_floating_point() else made

    if isinstance(data, (tuple, list)) and len(data) == 2 and all(hasattr(one, "__array__") for one in data):
        x, y = tensor(data[0]), tensor(data[1])
        if len(x) != len(y):
            raise ValueError(f"`{part}` has {len(x)} rows and {len(y)} targets")
        return x, y
    if isinstance(data, torch.utils.data.Dataset):
        raise TypeError(f"`{part}` is a {type(data).__name__}, without batches: give a DataLoader of it")
    if data is not None and isinstance(data, Iterator):
        raise TypeError(
            f"`{part}` is a {type(data).__name__}, which ends after one pass: give a DataLoader, or two tensors (x, y)"
        )
    return data


def in_order(part: str, data: Any) -> Any:
    """The same rows, all that the loader ever draws, in an order that does not change."""
    utils = torch.utils.data
    if type(data) is not utils.DataLoader or isinstance(data.dataset, utils.IterableDataset) or data.batch_sampler is None:
        return data
    plain = type(data.batch_sampler) is utils.BatchSampler and data.batch_size is not None
    if plain and not data.drop_last and type(data.sampler) is utils.SequentialSampler:
        return data

    def drawn() -> list[int]:
        if plain:
            return [int(place) for place in data.sampler]
        return [int(place) for batch in cast(Any, data.batch_sampler) for place in batch]

    places, again = drawn(), drawn()
    if places != again:
        places, again = sorted(set(places)), sorted(set(again))
        if places != again and part != "train":
            raise ValueError(
                f"`{part}` draws other rows every time: give a DataLoader without a sampler, results of two models "
                "are compared row by row"
            )
    return utils.DataLoader(
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


def count_of(data: Any) -> int:
    if data is None:
        return 0
    if is_batch(data):
        return len(data[0])
    dataset = getattr(data, "dataset", None)
    sampled = getattr(data, "sampler", None)
    for counted in (sampled, dataset):
        try:
            return len(counted)  # type: ignore[arg-type]
        except TypeError:
            continue
    return sum(len(x) for x, _ in data)
