"""The first hour of the page, as it stands there, and the blocks that come with it."""

import re
import subprocess
import sys

import numpy as np
import pytest

import rota

from conftest import ROOT, scenario

TEXT = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
HOUR = TEXT[TEXT.index("## The first hour") : TEXT.index("## A silo with PyTorch")]
BLOCKS = re.findall(r"```python\n(.*?)```", HOUR, re.DOTALL)


def test_the_first_hour_runs_as_one_script(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    script = tmp_path / "hour.py"
    script.write_text("".join(BLOCKS) + "print(summary)\nprint(found)\nprint(comparison)\nprint(max(comparison._rows(), key=lambda row: row['silos'])['strategy'])\n")
    monkeypatch.setenv("ROTA_BIN", rota.binary())
    found = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("federation  first hour") == 2
    # The kinds are found.
    assert found.stdout.splitlines()[-1].startswith("two-kinds"), found.stdout


def test_a_task_is_that_of_the_learner():
    def learner(silo):
        return rota.FunctionLearner({"w": (2,), "b": np.array([1.0, 2.0])}, None, None, rota.Rows(4))

    said = rota.task(learner, metric={"own": "f1", "better": "larger"})
    assert [one["name"] for one in said["external"]["tensors"]] == ["w", "b"]
    assert said["external"]["metric"] == {"own": "f1", "better": "larger"}
    assert rota.task(learner(None)) == {"external": {"tensors": said["external"]["tensors"]}}


def test_a_task_has_the_columns_and_classes_of_a_learner():
    linear = pytest.importorskip("sklearn.linear_model")
    pandas = pytest.importorskip("pandas")
    import rota.sklearn

    draw = np.random.default_rng(0)

    def learner(silo):
        x = pandas.DataFrame(draw.normal(size=(60, 2)), columns=["age", "height"])
        y = np.array(["no", "yes"])[(x["age"] > 0).astype(int)]
        return rota.sklearn.Learner(linear.LogisticRegression(), (x, y), (x, y), classes=["no", "yes"], silo=silo)

    said = rota.task(learner, metric="accuracy")
    assert said["external"]["columns"] == ["age", "height"] and said["external"]["classes"] == ["no", "yes"]
    assert rota.simulate(scenario(said, rounds=1), learner=learner, references=False)["silos"]
