"""Answers of pooled rows in NumPy, with which those of questions are compared."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np


def rows_of(path: Path) -> dict[str, list]:
    """The columns of a CSV file: numbers where all cells are, `nan` for an empty one."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    def column(name):
        cells = [row[name] for row in rows]
        try:
            return [float(cell) if cell else math.nan for cell in cells]
        except ValueError:
            return cells

    return {name: column(name) for name in rows[0]}


def pooled(sites: dict[str, dict[str, list]]) -> dict[str, np.ndarray]:
    """The rows of all sites below each other, with the number of their site."""
    names = next(iter(sites.values()))
    found = {name: np.concatenate([np.asarray(table[name]) for table in sites.values()]) for name in names}
    found["site"] = np.concatenate([np.full(len(table["age"]), place) for place, table in enumerate(sites.values())])
    return found


def logistic(x: np.ndarray, y: np.ndarray, site: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and standard errors with an intercept for each site, by Newton's method."""
    dummies = np.eye(site.max() + 1)[site]
    whole = np.hstack([x, dummies])
    beta = np.zeros(whole.shape[1])
    for _ in range(50):
        mean = 1 / (1 + np.exp(-whole @ beta))
        information = whole.T @ (whole * (mean * (1 - mean))[:, None])
        step = np.linalg.solve(information, whole.T @ (y - mean))
        beta += step
        if np.abs(step).max() < 1e-13:
            break
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    return beta[: x.shape[1]], errors[: x.shape[1]]


def cox(x: np.ndarray, time: np.ndarray, event: np.ndarray, site: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log hazard ratios and standard errors, stratified by site, with Efron's ties."""
    beta = np.zeros(x.shape[1])
    for _ in range(50):
        score, information = np.zeros_like(beta), np.zeros((len(beta), len(beta)))
        weight = np.exp(x @ beta)
        for one in np.unique(site):
            for moment in np.unique(time[(site == one) & event]):
                risk = (site == one) & (time >= moment)
                died = (site == one) & (time == moment) & event
                for nth in range(died.sum()):
                    share = weight * risk - nth / died.sum() * weight * died
                    mean = share @ x / share.sum()
                    score -= mean
                    information += (x * share[:, None]).T @ x / share.sum() - np.outer(mean, mean)
                score += x[died].sum(axis=0)
        step = np.linalg.solve(information, score)
        beta += step
        if np.abs(step).max() < 1e-12:
            break
    return beta, np.sqrt(np.diag(np.linalg.inv(information)))


def survival(time: np.ndarray, event: np.ndarray, step: float) -> dict[float, float]:
    """The Kaplan–Meier estimate of times that are rounded up to a grid, at its points with an event."""
    rounded = np.ceil(time / step) * step
    found, alive = {}, 1.0
    for moment in np.unique(rounded[event]):
        alive *= 1 - (event & (rounded == moment)).sum() / (rounded >= moment).sum()
        found[float(moment)] = alive
    return found


def logrank(time: np.ndarray, event: np.ndarray, second: np.ndarray, site: np.ndarray) -> float:
    """The log-rank statistic of two groups, stratified by site."""
    excess = variance = 0.0
    for one in np.unique(site):
        for moment in np.unique(time[(site == one) & event]):
            risk = (site == one) & (time >= moment)
            died = risk & (time == moment) & event
            n, d, k = risk.sum(), died.sum(), (risk & second).sum()
            excess += (died & second).sum() - d * k / n
            variance += d * k / n * (1 - k / n) * (n - d) / (n - 1) if n > 1 else 0.0
    return excess**2 / variance
