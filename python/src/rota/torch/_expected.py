"""Random draws of PyTorch replaced by their means, so that what draws can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def _argument(place: int, name: str, default: float) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Any]:
    def of(given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        return named.get(name, given[place] if len(given) > place else default)

    return of


def _middle(given: tuple[Any, ...], named: Mapping[str, Any]) -> float:
    low, high = _argument(1, "from", 0.0)(given, named), _argument(2, "to", 1.0)(given, named)
    return (float(low) + float(high)) / 2


#: The mean of what these operations fill their first argument with.
_FILLED: dict[str, Callable[[tuple[Any, ...], Mapping[str, Any]], Any]] = {
    "bernoulli_": _argument(1, "p", 0.5),
    "uniform_": _middle,
    "normal_": _argument(1, "mean", 0.0),
    "exponential_": lambda given, named: 1 / float(_argument(1, "lambd", 1.0)(given, named)),
}
#: That of operations that make numbers of a shape, or of that of another tensor.
_MADE = {"rand": 0.5, "randn": 0.0, "rand_like": 0.5, "randn_like": 0.0}


class Expected(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is in force, what PyTorch draws is the mean of its distribution: dropout leaves its inputs as
    they are, and noise is zero. Draws of other kinds stay as they are."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        # Such as `bernoulli_` of aten::bernoulli_.float.
        kind = str(func).split(".")[1]
        if kind in _FILLED:
            mean = _FILLED[kind](args, named)
            return args[0].copy_(mean) if isinstance(mean, torch.Tensor) else args[0].fill_(mean)
        if kind in _MADE:
            return func(*args, **named).fill_(_MADE[kind])
        if kind == "normal":
            # Of means and deviations, either of which may be a number.
            mean = args[0]
            made = func(*args, **named)
            return made.copy_(mean) if isinstance(mean, torch.Tensor) else made.fill_(mean)
        if kind == "bernoulli":
            made = func(*args, **named)
            return made.copy_(args[0] if len(args) == 1 else torch.full_like(made, float(args[1])))
        if kind == "native_dropout":
            return args[0].clone(), torch.ones_like(args[0], dtype=torch.bool)
        if kind == "multinomial":
            made = func(*args, **named)
            return made.copy_(args[0].argmax(-1, keepdim=True).expand_as(made))
        return func(*args, **named)
