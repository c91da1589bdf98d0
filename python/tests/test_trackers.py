"""MLflow, Weights & Biases and TensorBoard after every round, as the page has it."""

import re

import pytest

import rota

from conftest import ROOT, scenario
from test_notebook import learner, task

TEXT = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def lines(tracker):
    """The lines of the page for this tracker."""
    return re.search(rf"```python\n# {tracker}\n(.*?)```", TEXT, re.DOTALL).group(1)


def run(tracker, **names):
    given = {"rota": rota, "scenario": scenario(task(), silos=2, rounds=3), "learner": learner} | names
    text = lines(tracker)
    assert len([line for line in text.splitlines() if line.strip()]) <= 3, "three lines"
    exec(text, given)
    return given


def losses():
    seen = []
    rota.simulate(scenario(task(), silos=2, rounds=3), learner=learner, on_round=lambda done: seen.append(done.loss))
    return seen


def test_mlflow(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    mlflow = pytest.importorskip("mlflow")
    try:
        mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
        mlflow.set_experiment("rota")
    except Exception as error:
        # The small package has no data base.
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        mlflow.set_tracking_uri(f"file:{tmp_path}/runs")
        mlflow.set_experiment("rota")
        assert error
    done = run("MLflow", mlflow=mlflow)["run"]
    history = mlflow.MlflowClient().get_metric_history(done.info.run_id, "loss")
    assert [(one.step, one.value) for one in history] == list(enumerate(losses(), 1))
    assert len(mlflow.search_runs(output_format="list")) == 1


def test_weights_and_biases(tmp_path, monkeypatch):
    for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    wandb = pytest.importorskip("wandb")
    logged = []
    plain = wandb.init

    def watched(**given):
        made = plain(**given)
        log = made.log
        made.log = lambda values, step=None: logged.append((step, values["loss"])) or log(values, step=step)
        return made

    monkeypatch.setattr(wandb, "init", watched)
    run("Weights & Biases", wandb=wandb)["run"].finish()
    assert logged == list(enumerate(losses(), 1))
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))


def test_tensorboard(tmp_path):
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    made = run("TensorBoard", SummaryWriter=lambda: tensorboard.SummaryWriter(str(tmp_path / "runs")))
    made["writer"].close()
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(tmp_path / "runs"))
    found.Reload()
    assert [(one.step, one.value) for one in found.Scalars("loss")] == [(step, pytest.approx(loss)) for step, loss in enumerate(losses(), 1)]
