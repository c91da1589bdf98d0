"""Whether values look freshly drawn, and how."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ._wrappers import modules_of, parameters_of

#: Below this share of chances, values are not taken for draws of a distribution.
_CHANCE = 1e-4
#: Values of which the distribution is looked at.
_MOST = 20_000
#: Values of a tensor that is looked at anew, and smaller ones of which it is kept what was found.
_LARGE, _KEPT = 1 << 20, 500
#: What was found, by what was asked and the digest of the values.
_known: dict[Any, float | str | dict[str, float]] = {}


def described(model: nn.Module, name: str, value: torch.Tensor) -> float | str | dict[str, float]:
    """How an agreement describes the values of a tensor: one number; a bound, where they look freshly
    drawn, as PyTorch draws dense layers and convolutions by default, or with the same deviation; and
    `"program"` where only the program has them: trained weights, tables, masks."""
    return in_layer(modules_of(model).get(name.rpartition(".")[0]), name in parameters_of(model), value)


def in_layer(layer: nn.Module | None, trained: bool, value: torch.Tensor) -> float | str | dict[str, float]:
    """As `described`, of a parameter or another tensor of this layer."""
    weight = getattr(layer, "weight", None)
    inputs = weight[0].numel() if isinstance(weight, torch.Tensor) and weight.ndim >= 2 and len(weight) else None
    asked = trained, inputs
    value = value.detach().float().cpu().contiguous()
    if value.numel() > _LARGE:
        return _described(value, *asked)
    # The modules of a simulation begin alike.
    key = (*asked, tuple(value.shape), hashlib.sha256(value.numpy().tobytes()).digest())
    if key not in _known:
        if len(_known) == _KEPT:
            _known.clear()
        _known[key] = _described(value, *asked)
    return _known[key]


def _described(value: torch.Tensor, trained: bool, inputs: int | None) -> float | str | dict[str, float]:
    """As `described`, of the values of a parameter or not, in a layer with so many inputs."""
    if value.numel() == 0:
        return 0.0
    # Neither is a number where one of the values is none.
    least, most = (float(one) for one in value.aminmax())
    if least == most:
        return least
    if not trained or not math.isfinite(least) or not math.isfinite(most):
        return "program"
    if inputs:
        bound = 1 / math.sqrt(inputs)
        if max(-least, most) <= bound * (1 + 1e-6) and _looks_drawn(value, bound):
            return {"uniform": bound}
    deviation = float(value.std(unbiased=False))
    return {"uniform": math.sqrt(3) * deviation} if _looks_drawn(value, None) else "program"


def _looks_drawn(value: torch.Tensor, bound: float | None) -> bool:
    """Whether the values could be independent draws of one distribution around 0: uniform within the
    bound, or without one uniform or normal with the deviation that they have."""
    if _has_a_constant_part(value):
        return False
    flat = value.flatten()
    flat = flat[:: max(1, flat.numel() // _MOST)].double()
    deviation = float(flat.std(unbiased=False))
    normal: Callable[[torch.Tensor], torch.Tensor] = lambda x: 0.5 * (1 + torch.erf(x / (deviation * math.sqrt(2))))

    def uniform(edge: float) -> Callable[[torch.Tensor], torch.Tensor]:
        return lambda x: ((x + edge) / (2 * edge)).clamp(0, 1)

    if bound is not None:
        return _chance(flat, uniform(bound)) > _CHANCE
    # The largest of n draws lies a little below the bound.
    edge = float(flat.abs().max()) * (1 + 1 / flat.numel())
    return max(_chance(flat, uniform(edge)), _chance(flat, normal)) > _CHANCE


def _has_a_constant_part(value: torch.Tensor) -> bool:
    """Whether a row or a column has one value alone, such as a padding row or a pruned input."""
    if value.ndim < 2:
        return False
    for dimension in (0, 1):
        lines = value.transpose(0, dimension)
        if lines[0].numel() < 2:
            continue
        # Only where the first and the last value are the same, all of them can be.
        within = range(1, lines.ndim)
        first, last = (lines[(slice(None), *(place for _ in within))] for place in (0, -1))
        lines = lines[first == last].flatten(1)
        if len(lines) and bool((lines == lines[:, :1]).all(1).any()):
            return True
    # Zeros that were set one by one.
    return value.numel() - int(value.count_nonzero()) > 0.01 * value.numel()


def _chance(values: torch.Tensor, distribution: Any) -> float:
    """The chance of a distance as large as this one (Kolmogorov & Smirnov; the series of Stephens 1970)."""
    ordered, count = values.sort().values, values.numel()
    expected = distribution(ordered)
    steps = torch.arange(1, count + 1, dtype=torch.float64) / count
    distance = float(torch.maximum((steps - expected).max(), (expected - steps + 1 / count).max()))
    scaled = distance * (math.sqrt(count) + 0.12 + 0.11 / math.sqrt(count))
    total = sum((-1) ** (k - 1) * math.exp(-2 * (k * scaled) ** 2) for k in range(1, 101))
    return min(1.0, max(0.0, 2 * total)) if scaled > 0.2 else 1.0
