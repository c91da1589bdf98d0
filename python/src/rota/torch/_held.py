"""What a module holds by its plain names, sought anew only where the module has changed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, TypeVar

import torch
from torch import nn

from ._wrappers import buffers_of, parameters_of

_Found = TypeVar("_Found")


class Held:
    """The parameters and buffers of a module. A training asks for them several times, and to go through all
    modules and their names takes as long as a step of a small one."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        #: Every dictionary of a module; what was in them, one after another; and who that was.
        self._all: list[dict[str, Any]] = []
        self._seen: list[Any] = []
        self._who: list[int] = []
        self._known: dict[Any, Any] = {}

    def of(self, key: Any, find: Callable[[], _Found]) -> _Found:
        """What `find` finds in the module; by this key, what it found before."""
        if not self._who or list(map(id, chain.from_iterable(map(dict.values, self._all)))) != self._who:
            modules = self._model.modules()
            self._all = [one for module in modules for one in (module._modules, module._parameters, module._buffers)]
            self._seen = list(chain.from_iterable(map(dict.values, self._all)))
            self._who = list(map(id, self._seen))
            self._known.clear()
        if key not in self._known:
            self._known[key] = find()
        found: _Found = self._known[key]
        return found

    def parameters(self) -> dict[str, nn.Parameter]:
        """As `parameters_of`; not to be changed."""
        return self.of("parameters", lambda: parameters_of(self._model))

    def buffers(self) -> dict[str, torch.Tensor]:
        """As `buffers_of`; not to be changed."""
        return self.of("buffers", lambda: buffers_of(self._model))
