"""What the tests share. They need the program `rota`: the installed one, or `$ROTA_BIN`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rota

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session", autouse=True)
def the_program_is_there() -> None:
    rota.binary()


def training(**changes: object) -> rota.Training:
    given = dict(
        epochs=1,
        batch=0,
        optimiser="sgd",
        rate=0.1,
        momentum=0.0,
        weight_decay=0.0,
        seed=7,
        personal={},
        modifier=None,
    )
    return rota.Training(**(given | changes))  # type: ignore[arg-type]


def silo(**changes: object) -> rota.Silo:
    given = dict(name="north", place=0, silos=3, seed=1, layout=[], given=None)
    return rota.Silo(**(given | changes))  # type: ignore[arg-type]


def scenario(task: dict[str, object], **changes: object) -> dict[str, object]:
    how = {"epochs": 2, "batch": 16, "optimiser": {"name": "sgd", "rate": 0.1}}
    given: dict[str, object] = {
        "name": "python",
        "rounds": 4,
        "silos": 3,
        "task": task,
        "strategy": {"name": "fedavg", "training": how},
    }
    return given | changes


def external(learner: rota.Learner, **changes: object) -> dict[str, object]:
    """The task of a learner."""
    tensors = [tensor.document() for tensor in learner.tensors()]
    return {"external": {"tensors": tensors, **changes}}


def data() -> Path | None:
    folder = os.environ.get("ROTA_DATA")
    return Path(folder) if folder else None
