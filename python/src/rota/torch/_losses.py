"""Losses that a learner knows: what outputs mean under them, and the loss of an agreed model."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from .._learner import Given, OutputsLoss
from ._survival import cox
from ._types import Loss, Refused

functional = nn.functional
Family = Literal["classes", "numbers"]

#: Functions of PyTorch by what they compare: a class with outputs per class, or number with number.
_FUNCTIONS: dict[Any, tuple[Family, OutputsLoss | None]] = {
    functional.cross_entropy: ("classes", "softmax"),
    functional.nll_loss: ("classes", None),
    functional.mse_loss: ("numbers", "squared"),
    functional.l1_loss: ("numbers", "absolute"),
    functional.smooth_l1_loss: ("numbers", None),
    functional.huber_loss: ("numbers", None),
    functional.binary_cross_entropy: ("numbers", None),
    functional.binary_cross_entropy_with_logits: ("numbers", "logistic"),
    functional.kl_div: ("numbers", None),
    functional.poisson_nll_loss: ("numbers", None),
    functional.soft_margin_loss: ("numbers", None),
}
#: The same as modules.
_MODULES: dict[type[nn.Module], Any] = {
    nn.CrossEntropyLoss: functional.cross_entropy,
    nn.NLLLoss: functional.nll_loss,
    nn.MSELoss: functional.mse_loss,
    nn.L1Loss: functional.l1_loss,
    nn.SmoothL1Loss: functional.smooth_l1_loss,
    nn.HuberLoss: functional.huber_loss,
    nn.BCELoss: functional.binary_cross_entropy,
    nn.BCEWithLogitsLoss: functional.binary_cross_entropy_with_logits,
    nn.KLDivLoss: functional.kl_div,
    nn.PoissonNLLLoss: functional.poisson_nll_loss,
    nn.SoftMarginLoss: functional.soft_margin_loss,
}


@dataclass(frozen=True)
class Known:
    """A loss of PyTorch with its options."""

    function: Any
    family: Family
    #: What the outputs are, where Rota computes the same loss from them.
    outputs: OutputsLoss | None
    #: The class of targets that do not count.
    ignored: int = -100
    #: Weights of the classes.
    weight: torch.Tensor | None = None
    #: The mean is over rows and not over all numbers.
    by_rows: bool = False

    def counts(self, outputs: torch.Tensor, targets: torch.Tensor) -> float:
        """What the mean of a batch is divided by: with it, the mean over several batches is the one
        over all of their rows."""
        if self.by_rows:
            return float(len(targets))
        if self.family == "numbers":
            return float(outputs.numel())
        if targets.is_floating_point():
            return float(targets.numel() / outputs.shape[1])
        if self.weight is None and not (targets == self.ignored).any():
            return float(targets.numel())
        counted = targets[targets != self.ignored]
        if self.weight is not None:
            return float(self.weight.to(counted.device)[counted].sum())
        return float(counted.numel())


def known(loss: Loss) -> Known | None:
    """What is known of a loss: of those of PyTorch, as functions, as modules, and with options by
    `functools.partial`."""
    options: dict[str, Any] = {}
    while isinstance(loss, functools.partial):
        if loss.args:
            return None
        options = loss.keywords | options
        loss = loss.func
    if isinstance(loss, nn.Module):
        kind = next((kind for kind in _MODULES if isinstance(loss, kind)), None)
        if kind is None or type(loss).forward is not kind.forward:
            return None
        own = {"weight": loss.weight} if isinstance(getattr(loss, "weight", None), torch.Tensor) else {}
        names = ("ignore_index", "reduction", "label_smoothing", "pos_weight")
        options = own | {name: getattr(loss, name) for name in names if hasattr(loss, name)} | options
        function = _MODULES[kind]
    else:
        function = next((one for one in _FUNCTIONS if one is loss), None)
    if function is None:
        return None
    family, outputs = _FUNCTIONS[function]
    changed = any(options.get(name) is not None for name in ("weight", "pos_weight"))
    changed = changed or bool(options.get("label_smoothing"))
    changed = changed or options.get("ignore_index", -100) != -100
    return Known(
        function,
        family,
        None if changed else outputs,
        options.get("ignore_index", -100),
        options.get("weight") if family == "classes" else None,
        options.get("reduction") == "batchmean",
    )


def has_classes(loss: Loss | None) -> bool:
    """Whether the largest output says the class."""
    found = known(loss) if loss is not None else None
    return isinstance(loss, (nn.CrossEntropyLoss, nn.NLLLoss)) or (found is not None and found.family == "classes")


def reduction_of(loss: Loss) -> str:
    """How the loss makes one number of those of a batch."""
    if isinstance(loss, functools.partial):
        return str(loss.keywords.get("reduction") or reduction_of(loss.func))
    return str(getattr(loss, "reduction", "mean")) if isinstance(loss, nn.Module) else "mean"


def check_loss(loss: Loss) -> None:
    """Refuses losses that are no mean, or have parameters that nothing would train."""
    if isinstance(loss, type):
        raise Refused(f"`loss` is a class: make one of it, {loss.__name__}()")
    if reduction_of(loss) in ("sum", "none"):
        raise Refused("`loss` must be the mean over the rows of a batch: leave out `reduction`")
    module: Any = loss
    while isinstance(module, functools.partial):
        module = module.func
    module = module if isinstance(module, nn.Module) else getattr(module, "__self__", None)
    if isinstance(module, nn.Module):
        own = [name for name, value in module.named_parameters() if value.requires_grad]
        if own:
            raise Refused(own_parameters(f"`loss` ({type(module).__name__})", ", ".join(own[:4])))


def own_parameters(what: str, which: str) -> str:
    """Why a loss with parameters is refused, and what works."""
    return (
        f"{what} has parameters of its own ({which}), which would be neither trained nor shared: make them a part of "
        "`model`, such as a module that holds both and whose `forward` returns what the loss needs, or "
        "freeze them with requires_grad_(False)"
    )


def gives_rows(loss: Known | None, outputs: Any, targets: Any) -> OutputsLoss | None:
    """What the outputs are under this loss, where Rota measures the same from them row by row: under the
    plain loss, without weights and smoothing, and with one target for each row."""
    if loss is None or loss.outputs is None or not isinstance(outputs, torch.Tensor):
        return None
    if not isinstance(targets, torch.Tensor) or len(outputs) != len(targets) or len(outputs) == 0:
        return None
    width = outputs[0].numel()
    # A row of more numbers is larger than Rota takes.
    if width > 16_384:
        return None
    if loss.outputs == "softmax":
        single = outputs.ndim == 2 and targets.ndim == 1 and not targets.is_floating_point()
        return "softmax" if single and width > 1 and not bool((targets == loss.ignored).any()) else None
    if loss.outputs == "logistic":
        classes = bool(((targets == 0) | (targets == 1)).all())
        return "logistic" if width == 1 and targets[0].numel() == 1 and classes else None
    return loss.outputs if outputs.shape == targets.shape else None


def _squared(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return functional.mse_loss(outputs.reshape(targets.shape), targets)


def _absolute(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return functional.l1_loss(outputs.reshape(targets.shape), targets)


def _logistic(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return functional.binary_cross_entropy_with_logits(outputs.reshape(targets.shape), targets)


def loss_of(given: Given | None) -> Loss:
    """The loss of the agreed model."""
    agreed: dict[str, Loss] = {
        "softmax": functional.cross_entropy,
        "squared": _squared,
        "absolute": _absolute,
        "logistic": _logistic,
        "cox": cox,
    }
    if given is None or given.loss not in agreed:
        said = f", the agreed one is {given.loss!r}" if given else ""
        raise ValueError(f"no loss: give `loss`{said}")
    return agreed[given.loss]


def targets_of(targets: torch.Tensor, loss: str) -> torch.Tensor:
    """Targets as the agreed loss takes them."""
    return targets[:, 0].long() if loss == "softmax" else targets
