"""Names of a module's tensors without what wraps it: `torch.compile`, `DataParallel` and their like put
a word before the names, and one institution may use them and another not."""

from __future__ import annotations

import re
from collections.abc import Callable

import torch
from torch import nn

#: Wrappers by the names of their classes, which may not be there in this version of PyTorch, and where
#: they hold the module.
_HELD_IN = {
    "OptimizedModule": "_orig_mod",
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
    "CheckpointWrapper": "_checkpoint_wrapped_module",
    "AveragedModel": "module",
}
#: The same words in names that another institution's program says.
_WORDS = re.compile(r"(^|\.)(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)(?=\.)")


def _held_in(module: nn.Module) -> str | None:
    for kind in type(module).__mro__:
        if kind.__name__ in _HELD_IN and kind.__module__.startswith(("torch.", "rota.")):
            return _HELD_IN[kind.__name__]
    return None


def _has_wrappers(model: nn.Module) -> bool:
    """Whether a module or one in it wraps another. Names are asked for often, and most modules have none."""
    todo, seen = [model], set()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if _held_in(one) is not None:
            return True
        todo += [part for part in one._modules.values() if part is not None]
    return False


def plain_name(model: nn.Module) -> Callable[[str], str]:
    """The function from a name in `model.state_dict()` to the one that it has without wrappers."""
    if not _has_wrappers(model):
        return lambda name: name
    dropped = set()
    for path, module in model.named_modules(remove_duplicate=False):
        word = _held_in(module)
        if word is not None:
            dropped.add(f"{path}.{word}" if path else word)

    def plain(name: str) -> str:
        parts = name.split(".")
        kept = [part for at, part in enumerate(parts) if ".".join(parts[: at + 1]) not in dropped]
        return ".".join(kept)

    return plain


def parameters_of(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters by their plain names, in the order of their definition."""
    plain = plain_name(model)
    return {plain(name): value for name, value in model.named_parameters()}


def buffers_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """The buffers by their plain names, in the order of their definition."""
    plain = plain_name(model)
    return {plain(name): value for name, value in model.named_buffers()}


def modules_of(model: nn.Module) -> dict[str, nn.Module]:
    """The modules by their plain names: of a wrapper and what it holds, the latter."""
    plain = plain_name(model)
    return {plain(path): module for path, module in model.named_modules(remove_duplicate=False)}


def without_words(name: str) -> str:
    """A name that another program says, without what wrappers put into it. `module.` goes where it
    stands first, as under `DataParallel`; elsewhere it may be a layer that is called so."""
    before = None
    while before != name:
        before, name = name, _WORDS.sub(r"\1", name).lstrip(".")
        name = name.removeprefix("module.")
    return name
