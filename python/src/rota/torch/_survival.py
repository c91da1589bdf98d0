"""Cox's partial likelihood: the loss of a model of times to an event."""

from __future__ import annotations

from typing import Any

import torch

from .._learner import OutputsLoss
from ._types import Refused


def cox(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The negative log partial likelihood of risk scores per event (Cox 1975), with ties as Efron (1977) counts them.

    `outputs` has one risk score per row, the logarithm of its relative hazard: (rows,) or (rows, 1). `targets` has for
    each row the event (1, or 0 where the row is censored) and its time, and in a third column the entry where rows are
    not observed from the beginning. Rows are at risk together with those of the same call alone: in a mini-batch with
    those of the batch, which is an approximation (Katzman et al. 2018). Without an event the loss is 0.
    """
    rows = len(targets)
    if targets.ndim != 2 or targets.shape[1] not in (2, 3):
        raise Refused(
            f"targets have the shape {tuple(targets.shape)}: Cox's loss takes the event, its time and where needed the "
            "entry of every row, (rows, 2) or (rows, 3)"
        )
    if outputs.numel() != rows:
        raise Refused(f"outputs have the shape {tuple(outputs.shape)}: Cox's loss takes one risk score per row")
    kind = outputs.dtype
    scores, times = outputs.reshape(rows).double(), targets.to(torch.float32)
    event, time = times[:, 0] > 0.5, times[:, 1]
    entry = times[:, 2] if times.shape[1] == 3 else torch.zeros_like(time)
    if not bool(event.any()):
        return (scores * 0).sum().to(kind)
    order = torch.argsort(time[event], stable=True)
    own, score = time[event][order], scores[event][order]
    moments, place, counts = torch.unique_consecutive(own, return_inverse=True, return_counts=True)
    hazards = _at_risk(scores, time, entry, moments)
    # Of d events at one time the l-th takes l/d of them off its risk set.
    first = torch.cumsum(counts, 0) - counts
    part = (torch.arange(len(own), device=own.device) - first[place]).double() / counts[place]
    dying = torch.zeros_like(hazards).scatter_add(0, place, (score - hazards[place]).exp())
    terms = hazards[place] + torch.log1p(-part * dying[place])
    return ((terms - score).sum() / len(own)).to(kind)


def _at_risk(
    scores: torch.Tensor, time: torch.Tensor, entry: torch.Tensor, moments: torch.Tensor
) -> torch.Tensor:
    """The logarithm of the summed relative hazards of the rows at risk at each of these times."""
    if bool((entry >= time.min()).any()):
        there = (entry[None] < moments[:, None]) & (time[None] >= moments[:, None])
        absent = torch.full((), -torch.inf, dtype=scores.dtype, device=scores.device)
        return torch.logsumexp(torch.where(there, scores[None], absent), 1)
    order = torch.argsort(time, descending=True, stable=True)
    summed = torch.logcumsumexp(scores[order], 0)
    # The rows up to the last of a time, the latest first.
    count = len(time) - torch.searchsorted(time[order].flip(0).contiguous(), moments)
    return summed[count - 1]


def gives_times(loss: Any, outputs: Any, targets: Any) -> OutputsLoss | None:
    """`"cox"` where the outputs are risk scores under Cox's loss, which Rota measures then."""
    if loss is not cox or not isinstance(outputs, torch.Tensor) or not isinstance(targets, torch.Tensor):
        return None
    fits = targets.ndim == 2 and targets.shape[1] in (2, 3) and outputs.numel() == len(targets) > 0
    return "cox" if fits else None
