"""A notebook's life: models of a simulation, what is called after every round, results that can be looked at."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rota

from conftest import external, scenario


def learner(silo):
    truth = silo.place + 1.0

    def train(model, training):
        return {"w": model["w"] + np.float32(0.5) * (np.float32(truth) - model["w"])}

    def evaluate(model, split):
        return {"loss": float(np.mean((model["w"] - truth) ** 2)), "f1": float(truth), "far": float(abs(model["w"][0] - truth))}

    return rota.FunctionLearner({"w": (2,)}, train, evaluate, rota.Rows(train=10 * (silo.place + 1), test=4))


def task(**changes):
    return external(learner(rota.Silo("first", 0, 2, 0, [])), **changes)


def simulated(**options):
    changes = options.pop("changes", {})
    return rota.simulate(scenario(options.pop("task", task()), silos=2, rounds=3, **changes), learner=learner, references=False, **options)


# Models.


def test_models_of_all_rounds_are_there_where_they_are_kept():
    summary = simulated(keep="models")
    expected = np.zeros(2)
    for round in (1, 2, 3):
        ends = [expected + 0.5 * (truth - expected) for truth in (1.0, 2.0)]
        expected = (10 * ends[0] + 20 * ends[1]) / 30
        assert np.allclose(summary.model("silo 2", round=round)["w"], expected, atol=1e-6)
    assert np.array_equal(summary.model("silo 1")["w"], summary.models()["silo 2"]["w"])
    folder = summary._folder
    assert folder.is_dir()
    del summary
    assert not folder.exists()


def test_a_folder_of_ones_own_stays(tmp_path):
    summary = simulated(keep=tmp_path / "kept")
    model = summary.model("silo 1")
    del summary
    assert (tmp_path / "kept" / "index.json").is_file() and model["w"].shape == (2,)
    with pytest.raises(rota.RotaError, match="is not empty"):
        simulated(keep=tmp_path / "kept")


def test_models_that_are_not_there_are_said_by_name():
    summary = simulated(keep="models")
    with pytest.raises(ValueError, match="no silo 'silo 9'; there are silo 1, silo 2"):
        summary.model("silo 9")
    with pytest.raises(ValueError, match="no round 7; there are 1 to 3"):
        summary.model("silo 1", round=7)
    with pytest.raises(ValueError, match='keep="models"'):
        simulated().model("silo 1")


def test_a_model_goes_into_a_module():
    torch = pytest.importorskip("torch")
    import rota.torch

    def make(silo):
        torch.manual_seed(0)
        data = (torch.randn(10, 3), torch.randn(10, 1))
        return rota.torch.Learner(torch.nn.Linear(3, 1), torch.nn.functional.mse_loss, data, data, silo=silo, device="cpu")

    summary = rota.simulate(
        scenario(external(make(rota.Silo("first", 0, 2, 0, []))), silos=2), learner=make, references=False, keep="models"
    )
    module = summary.model("silo 1", torch.nn.Linear(3, 1))
    assert np.array_equal(module.weight.detach().numpy(), summary.model("silo 1")["weight"])


# After every round.


def test_every_round_is_told_with_its_losses():
    seen = []
    simulated(on_round=seen.append)
    assert [(one.number, one.rounds, sorted(one.losses)) for one in seen] == [(nth, 3, ["silo 1", "silo 2"]) for nth in (1, 2, 3)]
    assert seen[0].loss == pytest.approx(np.mean([0.25, 1.0])) and seen[2].loss < seen[0].loss


def test_a_simulation_ends_with_the_round_that_is_enough():
    summary = simulated(on_round=lambda done: done.number < 2, keep="models")
    assert [one["round"] for one in summary["rounds"]] == [1, 2]
    assert np.allclose(summary.model("silo 1", round=2)["w"], summary.model("silo 1")["w"])


def test_an_exception_after_a_round_comes_out_as_it_is():
    def raises(done):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        simulated(on_round=raises)


def test_progress_is_a_line_per_round(capsys):
    simulated(progress=True)
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in said if line.startswith("round")] == ["round 1/3", "round 2/3", "round 3/3"]


def test_rounds_over_a_network_cannot_be_ended_and_that_is_said():
    with pytest.raises(rota.RotaError, match="cannot be ended from outside"):
        simulated(on_round=lambda done: True, mesh="virtual")


# Metrics of one's own.


def test_metrics_of_ones_own_are_in_the_summary():
    summary = simulated()
    assert [one["program_metrics"] for one in summary["silos"]] == [{"f1": 1.0, "far": pytest.approx(summary["silos"][0]["program_metrics"]["far"])}, {"f1": 2.0, "far": pytest.approx(summary["silos"][1]["program_metrics"]["far"])}]


@pytest.mark.parametrize("better", ["larger", "smaller"])
def test_a_metric_of_ones_own_can_be_agreed(better):
    summary = simulated(task=task(metric={"own": "f1", "better": better}))
    assert summary.metric == "f1" and summary["metric"]["higher_is_better"] == (better == "larger")
    assert [one["coalition"] for one in summary["silos"]] == [1.0, 2.0]
    assert [one["worst"] for one in summary["means"] if one["model"] == "coalition"] == [1.0 if better == "larger" else 2.0]
    assert list(summary.curves()["silo 2"]) == [2.0, 2.0, 2.0]


def test_a_metric_of_ones_own_says_what_is_better():
    for metric, why in [
        ("f1", "own = .*f1.*better = .*larger"),
        ({"own": "f1"}, "better"),
        ({"own": "loss", "better": "smaller"}, "is known"),
        ({"own": "f2", "better": "larger"}, "measures f1, far, loss"),
    ]:
        with pytest.raises(rota.RotaError, match=why):
            simulated(task=task(metric=metric))


def test_a_comparison_has_metrics_of_ones_own():
    experiment = {
        "name": "own metrics", "seeds": 2, "metrics": [{"own": "far", "better": "smaller"}],
        "scenario": {"rounds": 2, "silos": 2, "task": task()},
        "strategy": [{"name": "fedavg"}, {"name": "local"}],
        "training": scenario(task())["strategy"]["training"],
        "tune": {"validation": 0.0},
    }
    found = rota.compare(experiment, learner=learner)
    rows = {row["strategy"]: row for row in found._rows()}
    assert {row["metric"] for row in rows.values()} == {"far"}
    assert rows["local"]["silos"] < rows["fedavg"]["silos"]


def test_a_comparison_without_validation_is_refused_at_the_start():
    asked = []

    def counting(silo):
        made = learner(silo)
        plain = made.train
        made.train = lambda start, training: asked.append(1) or plain(start, training)
        return made

    with pytest.raises(rota.RotaError, match="no silo has validation rows.*validation=…"):
        rota.compare(scenario(task(), silos=2), strategies=["fedavg", "local"], seeds=5, learner=counting)
    assert not asked
    found = rota.compare(scenario(task(), silos=2), strategies=["local"], seeds=2, learner=counting, tuned=False)
    assert asked and found._rows()[0]["silos"] is not None


# What is looked at.


def test_a_summary_is_five_lines_and_a_table():
    summary = simulated(keep="models")
    assert len(repr(summary).splitlines()) == 5 and len(repr(summary)) < 600
    assert repr(summary).startswith("federation  python\nsilos       2, 3 rounds\n")
    assert summary._repr_html_().count("<tr>") == 5
    assert type(summary) is rota.Summary and isinstance(summary, dict)


def test_a_comparison_is_five_lines_and_a_table():
    found = rota.compare(scenario(task(), silos=2, rounds=2), strategies=["fedavg, by rows", "local"], seeds=2, learner=learner, tuned=False)
    assert len(repr(found).splitlines()) == 5 and "fedavg" in repr(found)
    assert found._repr_html_().count("<tr>") == 3


def test_rounds_and_silos_are_a_table():
    rows = simulated().rounds()
    rows = rows.to_dict("records") if hasattr(rows, "to_dict") else rows
    assert [(row["round"], row["silo"]) for row in rows] == [(nth, f"silo {silo}") for nth in (1, 2, 3) for silo in (1, 2)]
    assert all(row["loss"] is not None for row in rows)


def test_figures_of_many_silos_have_a_band_and_whole_rounds():
    pytest.importorskip("matplotlib").use("agg")
    many = rota.simulate(scenario(task(), silos=14, rounds=3), learner=learner, references=False)
    axes = many.plot()
    assert len(axes.lines) == 1 and len(axes.collections) == 1
    assert all(float(tick).is_integer() for tick in axes.get_xticks())
    one = rota.simulate(scenario(task(), silos=3, rounds=1), learner=learner, references=False).plot("loss")
    one.figure.canvas.draw()
    assert all(float(tick).is_integer() for tick in one.get_xticks())
    few = simulated().plot("loss")
    assert len(few.lines) == 2
    box = few.get_legend().get_bbox_to_anchor().transformed(few.transAxes.inverted())
    assert box.x0 > 0.999, "the legend stands outside"


# The end.

ENDLESS = """
import time, numpy as np, rota
def train(model, training):
    print("begun", flush=True)
    while True:
        time.sleep(0.05)
        training.progress(1, 2)
def learner(silo):
    return rota.FunctionLearner({"w": (2,)}, train, lambda model, split: {"loss": 0.0}, rota.Rows(4, test=2))
task = {"external": {"tensors": [{"name": "w", "shape": [2], "role": "weight"}]}}
how = {"epochs": 1, "batch": 0, "optimiser": {"name": "sgd", "rate": 0.1}}
rota.simulate({"name": "x", "rounds": 2, "silos": 2, "task": task, "strategy": {"name": "fedavg", "training": how}},
              learner=learner, references=False, keep="models", on_round=print)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize("by", ["SIGINT", "SIGTERM"])
def test_an_interrupted_simulation_leaves_nothing(by, tmp_path):
    script, folder = tmp_path / "endless.py", tmp_path / "temporary"
    script.write_text(ENDLESS)
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, script], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(folder)},
    )
    assert process.stdout.readline() == "begun\n"
    process.send_signal(getattr(signal, by))
    _, said = process.communicate(timeout=30)
    assert process.returncode in (-signal.SIGINT, 1, 130, 128 + signal.SIGTERM)
    # What is in the package tells nobody anything.
    assert not re.search(r"rota/_(binary|run|talk)\.py", said), said
    assert not list(folder.iterdir()) and not list(tmp_path.glob(".rota-*"))


def test_a_scenario_needs_no_folder_to_write_in(monkeypatch, tmp_path):
    import tempfile

    plain = tempfile.mkstemp

    def refused(*args, dir=None, **named):
        if dir == os.getcwd():
            raise PermissionError("read-only")
        return plain(*args, dir=dir, **named)

    monkeypatch.setattr(tempfile, "mkstemp", refused)
    assert simulated()["silos"]
    assert not list(Path.cwd().glob(".rota-*"))
