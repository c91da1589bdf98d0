"""What is refused before a learner trains, because it would go wrong without a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

from .._learner import Training
from ._batches import shapes_in, tensors_in
from ._losses import Known
from ._types import Loss, Refused

#: Packages that make trainings differentially private by an optimiser of their own.
_PRIVATE = {"opacus", "fastDP", "private_transformers", "dp_transformers", "pyvacy"}


def _package(one: Any) -> str | None:
    """The package that makes trainings private, where it made this object."""
    kinds = type(one).__mro__ + ((one,) if isinstance(one, type) else ())
    names = [getattr(kind, "__module__", "") for kind in kinds] + [getattr(one, "__module__", None) or ""]
    found = (str(name).partition(".")[0] for name in names)
    return next((name for name in found if name in _PRIVATE), None)


def check_private(model: nn.Module, loss: Any, parts: Iterable[Any]) -> None:
    """Refuses modules, losses and loaders of Opacus and the like: only their own optimiser clips the
    gradients of rows and adds noise, and it is not the one that trains here."""

    def of_hooks(module: nn.Module) -> Iterator[Any]:
        for kind in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
            for hook in getattr(module, kind, {}).values():
                hook = getattr(hook, "func", hook)
                yield getattr(hook, "__self__", None)
                yield hook

    def found() -> Iterator[tuple[str, Any]]:
        for module in model.modules():
            # Layers that a package offers in place of those of PyTorch do nothing by themselves.
            if ".layers" not in type(module).__module__:
                yield "model", module
            for one in of_hooks(module):
                yield "model", one
        yield "loss", loss
        for data in parts:
            for one in (data, *(getattr(data, name, None) for name in ("sampler", "batch_sampler", "collate_fn"))):
                yield "loader", one
                yield "loader", getattr(one, "func", None)

    for what, one in found():
        if one is not None and (package := _package(one)):
            raise Refused(
                f"the {what} was made private by {package}, and this learner trains with the agreed optimiser, which "
                "neither clips the gradients of rows nor adds noise: nothing would be private; "
                "derive from `rota.Learner` and train with the private optimiser in your own `train`, as "
                "examples/python/private.py does, or give the plain model and loader"
            )


def check_module(model: Any, loss: Any) -> None:
    """Refuses what is no module, layers without shapes, and modules that are compiled already."""
    if not isinstance(model, nn.Module):
        what = f"a class: make a model of it, {model.__name__}(…)" if isinstance(model, type) else type(model).__name__
        raise Refused(f"`model` must be a torch.nn.Module, and it is {what}")
    if isinstance(model, torch.jit.ScriptModule):
        raise Refused("the model is a module of torch.jit, whose layers cannot be told: give it as it was before")
    for one, what in ((model, "the model"), (loss, "`loss`")):
        if not isinstance(one, nn.Module):
            continue
        for name, module in one.named_modules():
            own = [*module._parameters.values(), *module._buffers.values()]
            if any(nn.parameter.is_lazy(value) for value in own):
                raise Refused(
                    f"{what} has a lazy layer, {name or type(module).__name__!r}, whose shape is not known before "
                    "the first batch: call the model once on a batch, model(x), before it is given to the learner"
                )


def check_kinds(model: nn.Module) -> None:
    """Refuses trained parameters that would not travel as they are: models travel as 32-bit floats."""
    for name, value in model.named_parameters():
        if not value.requires_grad:
            continue
        if value.is_complex():
            raise Refused(
                f"the parameter {name!r} is complex, and models travel as real numbers: keep its parts as a "
                "real parameter of the shape (…, 2), and use torch.view_as_complex in `forward`; or freeze it"
            )
        if value.dtype == torch.float64:
            raise Refused(
                f"the parameter {name!r} is of 64-bit floats, and models travel as 32-bit floats, so that it would be "
                "rounded in every round: use model.float(), or freeze it with requires_grad_(False)"
            )


def check_shapes(loss: Known | None, outputs: Any, targets: Any) -> None:
    """Refuses outputs and targets that a known loss would spread over each other."""
    if loss is None:
        return
    if not isinstance(outputs, torch.Tensor) or not isinstance(targets, torch.Tensor):
        raise Refused(
            f"the loss compares one tensor of outputs with one of targets, and there are {shapes_in(outputs)} and "
            f"{shapes_in(targets)}: give `forward`, or a loss of your own"
        )
    mine, theirs = tuple(outputs.shape), tuple(targets.shape)
    if len(mine) > 1 and mine[1] > 1 and theirs == (mine[0], *mine[2:]) and loss.family == "classes":
        return
    shapes = f"outputs have the shape {mine} and targets {theirs}"
    if targets.ndim == 0:
        raise Refused(f"{shapes}: targets have no dimension of rows; give batches, such as those of a DataLoader")
    if loss.family == "numbers":
        if mine != theirs:
            alike = outputs.numel() == targets.numel()
            remedy = "make them equal, such as y.unsqueeze(1) or model(x).squeeze(1)"
            raise Refused(
                f"{shapes}, which the loss would spread over each other: "
                f"{remedy if alike else 'the model must give one number for each target'}"
            )
        return
    if outputs.ndim < 2:
        raise Refused(f"{shapes}: cross-entropy takes outputs of the shape (rows, classes)")
    if outputs.shape[1] == 1:
        raise Refused(
            f"{shapes}: with one output per row a cross-entropy is 0 whatever the model says; use "
            "binary_cross_entropy_with_logits, or one output per class"
        )
    by_class = (mine[0], *mine[2:])
    if targets.is_floating_point() and mine == theirs:
        return
    if theirs != by_class:
        last = theirs == mine[:-1] and len(mine) > 2
        remedy = "classes are dimension 1, such as model(x).movedim(-1, 1)" if last else f"targets must be {by_class}"
        if theirs == (mine[0], 1) and len(mine) == 2:
            remedy = "use y.squeeze(1)"
        raise Refused(f"{shapes}: {remedy}")


def check_meaning(loss: Known | None, outputs: Any, targets: Any) -> None:
    """Refuses targets that a known loss takes and means otherwise."""
    name = getattr(loss.function, "__name__", "") if loss else ""
    if name.startswith("binary_cross_entropy") and targets.numel():
        least, most = float(targets.min()), float(targets.max())
        if least < 0 or most > 1:
            raise Refused(f"targets are between {least:g} and {most:g}: {name} takes probabilities from 0 to 1")
    if name == "nll_loss" and outputs.numel() and float(outputs.max()) > 1e-4:
        raise Refused(
            f"outputs are up to {float(outputs.max()):.3g}: {name} takes logarithms of probabilities, which are at most "
            "0; use cross_entropy, or log_softmax at the end of the model"
        )


def notes(loss: Known | None, outputs: Any, targets: Any) -> Iterator[str]:
    """What is taken as PyTorch takes it, and is often meant otherwise."""
    name = getattr(loss.function, "__name__", "") if loss else ""
    if name == "cross_entropy" and outputs.ndim == 3 and outputs.shape[1] == outputs.shape[2] and targets.ndim == 2:
        yield (
            f"outputs have the shape {tuple(outputs.shape)}: dimension 1 is taken for the classes, and dimension 2 for "
            "the positions; if it is the other way round, use movedim(-1, 1)"
        )
    if name in ("cross_entropy", "binary_cross_entropy_with_logits") and outputs.numel() >= 8:
        least, most = float(outputs.min()), float(outputs.max())
        sums = outputs.float().sum(1) if outputs.ndim > 1 else outputs
        alike = name != "cross_entropy" or bool(((sums - 1).abs() < 1e-4).all())
        if 0 < least and most < 1 and alike:
            yield (
                f"outputs are between {least:.3g} and {most:.3g}, as probabilities are, and {name} takes values before "
                "softmax or sigmoid: leave it out at the end of the model"
            )


def differences(training: Training, undecayed: bool, anew: int | None, size: int | None) -> Iterator[str]:
    """What is agreed and done otherwise than a plain loop would: with parameters of one dimension that weight decay leaves
    out, with a loader that draws `anew` from so many rows, and with one whose batches have this size."""
    if undecayed:
        yield (
            f"weight decay ({training.weight_decay:g}) goes to weights alone: biases and other parameters of one "
            "dimension, such as scales of norm layers, are not decayed, which optimisers of PyTorch do by default"
        )
    if anew is not None:
        yield (
            f"the loader draws other rows of its data set in every epoch, or some more than once: this silo weighs the "
            f"{anew} rows of the data set in the federation, each once"
        )
    if size is not None and training.batch not in (0, size):
        yield (
            f"the loader's batches of {size} rows are taken, and not the agreed ones of {training.batch}: give the "
            "tensors of all rows, (x, y), for batches as agreed"
        )


def check_own_loss(loss: Loss, outputs: Any, targets: Any) -> None:
    """Looks at a loss that is not one of PyTorch's: whether it is one number, whether it spreads
    outputs and targets over each other, and whether it is a sum."""
    if not isinstance(outputs, torch.Tensor) or not isinstance(targets, torch.Tensor):
        return
    if outputs.ndim == 0 or targets.ndim == 0:
        # Such as a loss that `forward` has computed already.
        return

    def of(outputs: torch.Tensor, targets: torch.Tensor) -> float | None:
        try:
            with torch.no_grad():
                return float(loss(outputs, targets))
        except Exception:
            return None

    def differ(one: float, other: float) -> bool:
        return abs(one - other) > 1e-5 * max(abs(one), abs(other), 1e-6)

    outputs, targets = outputs.detach(), targets.detach()
    found = of(outputs, targets)
    if found is None:
        return
    mine, theirs = tuple(outputs.shape), tuple(targets.shape)
    if mine != theirs and outputs.numel() == targets.numel() and len(targets) > 1:
        alike = of(outputs.reshape(theirs), targets)
        if alike is not None and differ(alike, found):
            raise Refused(
                f"outputs have the shape {mine} and targets {theirs}, which the loss spreads over each other: it gives "
                f"{found:.4g}, and {alike:.4g} if they have one shape; use y.unsqueeze(1) or model(x).squeeze(1)"
            )
    if len(outputs) != len(targets) or not found:
        return
    twice = of(torch.cat([outputs, outputs]), torch.cat([targets, targets]))
    if twice is not None and not differ(twice, 2 * found):
        raise Refused(
            "the loss of a batch with every row twice is twice as large: it must be the mean over the rows, and not "
            "their sum"
        )


def check_trained(loss: torch.Tensor, model: nn.Module, batch: Any) -> dict[int, torch.Tensor]:
    """Refuses a loss that depends on parameters which are not the module's. Returns other tensors that
    it depends on and that are neither the module's nor of the batch: those that are the same in two
    passes would be trained elsewhere."""
    own = {id(value) for value in [*model.parameters(), *tensors_in(batch)]}
    seen: set[Any] = set()
    others: dict[int, torch.Tensor] = {}
    todo = [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, nn.Parameter) and id(leaf) not in own:
            raise Refused(elsewhere(leaf))
        if isinstance(leaf, torch.Tensor) and id(leaf) not in own:
            others[id(leaf)] = leaf
        todo += [one for one, _ in node.next_functions]
    return others


def elsewhere(leaf: torch.Tensor) -> str:
    """Why a loss that depends on this tensor is refused."""
    return (
        f"the loss depends on a parameter of the shape {tuple(leaf.shape)} that is not the model's, and would be "
        "neither trained nor shared: make it a part of `model`, such as a module that holds both, or freeze "
        "it with requires_grad_(False)"
    )
