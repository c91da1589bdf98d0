"""How a training takes its steps: with the agreed optimiser, or as the institution says."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import nn

from .._learner import Training
from .._notes import note
from ._optimiser import Descent, is_descent, made, modify, restore, state_of_optimiser, terms_of
from ._types import Refused

#: From the module and the training to an optimiser.
MakeOptimiser = Callable[[nn.Module, Training], torch.optim.Optimizer]
#: From the optimiser and the training to a schedule of its rates, which goes on after every step.
MakeScheduler = Callable[[torch.optim.Optimizer, Training], Any]
#: One step by hand: `step(optimiser, loss, model)`.
Step = Callable[[torch.optim.Optimizer, torch.Tensor, nn.Module], Any]


@dataclass(frozen=True)
class How:
    """What the institution says of its steps."""

    optimiser: MakeOptimiser | None = None
    scheduler: MakeScheduler | None = None
    clip: float | None = None
    accumulate: int = 1
    step: Step | None = None

    def __post_init__(self) -> None:
        for name in ("optimiser", "scheduler", "step"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)) or not callable(value):
                example = {
                    "optimiser": "lambda model, training: torch.optim.AdamW(model.parameters(), lr=training.rate)",
                    "scheduler": "lambda optimiser, training: torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.9)",
                    "step": "def step(optimiser, loss, model): …",
                }[name]
                raise Refused(
                    f"`{name}` is {type(value).__name__}, and every training makes a new one: give a function, {example}"
                )
        if self.clip is not None and not self.clip > 0:
            raise Refused(f"`clip` is {self.clip}, it must be above 0: the largest norm of all gradients together")
        if self.accumulate < 1:
            raise Refused(f"`accumulate` is {self.accumulate}, it must be at least 1: batches for a step")
        if self.step is not None and (self.clip is not None or self.accumulate > 1):
            raise Refused("`step` takes the place of `clip` and `accumulate`: do both in it")

    @property
    def by_hand(self) -> bool:
        """Whether nothing can be added to the gradients."""
        return self.step is not None


class Steps:
    """The steps of one training."""

    def __init__(
        self, how: How, model: nn.Module, trained: Mapping[str, nn.Parameter], training: Training, keep: str | None, device: torch.device
    ) -> None:
        self._how, self._model, self._trained, self._training, self._keep = how, model, trained, training, keep
        self.optimiser: torch.optim.Optimizer | Descent
        agreed = how.optimiser is None and how.scheduler is None and how.step is None
        if agreed and is_descent(trained, training, keep):
            self.optimiser = Descent(trained, training)
        elif how.optimiser is None:
            self.optimiser = made(trained, training, keep)
            restore(self.optimiser, trained, training.personal, keep)
        else:
            self.optimiser = how.optimiser(model, training)
            if not isinstance(self.optimiser, torch.optim.Optimizer):
                raise ValueError(f"`optimiser` gave {type(self.optimiser).__name__}, it must give a torch.optim.Optimizer")
            if how.step is None and _needs(self.optimiser):
                raise ValueError(
                    f"{type(self.optimiser).__name__} takes steps with a function that computes the loss anew, and one loss is "
                    "computed for each batch: give another optimiser, or derive from `rota.Learner` and train in your own `train`"
                )
            note(
                f"this silo trains with {type(self.optimiser).__name__} of its own, and not with the agreed {training.optimiser}, of "
                "which it has what it takes from `training`, such as `training.rate`"
            )
        self._schedule = None if how.scheduler is None else how.scheduler(cast(torch.optim.Optimizer, self.optimiser), training)
        if how.scheduler is not None and (not callable(getattr(self._schedule, "step", None)) or _needs(self._schedule)):
            raise ValueError(
                f"`scheduler` gave {type(self._schedule).__name__}, and it goes on after every step, by `step()` alone: give one "
                "such as ExponentialLR or OneCycleLR; what is decided by a measured loss can be done in a `step` of your own"
            )
        self._terms = terms_of(trained, training.modifier, device)
        self._waiting = 0
        #: Steps of the optimiser so far.
        self.taken = 0
        self._hand = None if how.step is None else _ByHand(how.step, cast(torch.optim.Optimizer, self.optimiser), model, trained)

    def begin(self) -> None:
        """Before the pass of a batch."""
        if self._waiting == 0 and not (self._hand is not None and self._hand.waiting):
            self.optimiser.zero_grad()

    def take(self, loss: torch.Tensor) -> None:
        """After the pass of a batch: its gradients, and a step where it is time for one."""
        if self._how.step is not None:
            assert self._hand is not None, "made with the step"
            if self._hand.take(loss):
                self._done()
            return
        (loss if self._how.accumulate == 1 else loss / self._how.accumulate).backward()  # type: ignore[no-untyped-call]
        self._waiting += 1
        if self._waiting == self._how.accumulate:
            self._step()

    def end(self) -> None:
        """After the last batch of an epoch: a step with the gradients that wait for one."""
        if self._waiting:
            self._step()

    def _step(self) -> None:
        modify(self._trained, self._training.modifier, self._terms)
        if self._how.clip is not None:
            nn.utils.clip_grad_norm_([one for one in self._trained.values() if one.grad is not None], self._how.clip)
        self.optimiser.step()
        self._waiting = 0
        self._done()

    def _done(self) -> None:
        self.taken += 1
        if self._schedule is not None:
            self._schedule.step()

    def over(self) -> None:
        """After the training: until the next one nobody needs the gradients."""
        if self._hand is not None:
            self._hand.counting.remove()
        if self._hand is not None and self._hand.waiting:
            note(
                "`step` adds up gradients, and those of the last batches of a training waited for a step that did not come: "
                "they are left out; `accumulate=` takes such a step at the end of every epoch"
            )
        self.optimiser.zero_grad()

    def personal(self) -> dict[str, Any]:
        """The state of the optimiser, where it goes on."""
        return state_of_optimiser(cast(torch.optim.Optimizer, self.optimiser), self._trained, self._keep)


class _ByHand:
    """Steps by hand. Gradients are zero before a batch, but where the function has left them for the next one: it has
    neither taken a step nor zeroed them, as one that adds them up."""

    def __init__(self, step: Step, optimiser: torch.optim.Optimizer, model: nn.Module, trained: Mapping[str, nn.Parameter]) -> None:
        self._step, self._optimiser, self._model, self._trained = step, optimiser, model, list(trained.values())
        #: Whether gradients wait for a later batch.
        self.waiting = False
        #: Whether the last call took a step of the optimiser: otherwise the parameters are compared.
        self._stepped = False
        self._taken = 0
        self.counting = optimiser.register_step_post_hook(self._count)

    def _count(self, *_: Any) -> None:
        self._taken += 1

    def take(self, loss: torch.Tensor) -> bool:
        """Calls the function. Whether it took a step."""
        before, values = self._taken, None if self._stepped else [value.detach().clone() for value in self._trained]
        versions = [value._version for value in self._trained]
        self._step(self._optimiser, loss, self._model)
        self._stepped = self._taken > before
        moved = self._stepped or versions != [value._version for value in self._trained]
        moved = moved or values is not None and not all(map(torch.equal, values, self._trained))
        found = (value.grad for value in self._trained if value.grad is not None)
        gradients = [one.to_dense() if one.is_sparse else one for one in found]
        # What a scaler of mixed precision has passed over is no number, and would stay so.
        self.waiting = not moved and any(bool(one.any()) for one in gradients) and all(bool(one.isfinite().all()) for one in gradients)
        return moved


def _needs(one: Any) -> bool:
    """Whether the method `step` of an optimiser or a schedule must be given something."""
    try:
        parameters = inspect.signature(one.step).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(found.default is found.empty and found.kind not in kinds for found in parameters)
