"""Simulations, comparisons and the lead's mathematics, by the program."""

import importlib.util
import threading

import numpy as np
import pytest

import rota
from rota import _toml

from conftest import EXAMPLES, external, scenario, silo


def load(name):
    found = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_a_built_in_scenario_gives_plain_data():
    summary = rota.simulate("diabetes", rounds=3, references=False)
    assert isinstance(summary, dict) and len(summary["rounds"]) == 3
    curves = summary.curves()
    assert len(curves) == 8
    assert all(values.shape == (3,) and np.isfinite(values[-1]) for values in curves.values())
    assert len(summary.silos()) == 8


def test_a_simulation_has_no_messages_unless_asked_for_them():
    given = scenario({"constant": {"parameters": 3}}, rounds=2)
    direct = rota.simulate(given, references=False)
    assert direct["mesh"] == "direct" and "trace" not in direct
    slow = given | {"network": {"latency": ["50ms", "90ms"]}}
    for mesh in (rota.simulate(slow, references=False), rota.simulate(given, references=False, mesh="virtual")):
        assert mesh["mesh"] == "virtual" and mesh["trace"]
        assert [one["outcome"] for one in mesh["rounds"]] == [one["outcome"] for one in direct["rounds"]]
    with pytest.raises(rota.RotaError, match="mesh"):
        rota.simulate(given, references=False, mesh="none")


def test_the_same_without_pandas(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    silos = rota.simulate("diabetes", rounds=2, references=False).silos()
    assert isinstance(silos, list) and silos[0]["name"] == "age Q1 · sex A"


def test_a_learner_of_this_process_trains_every_silo():
    make = load("two_arrays").learner
    opened = []

    def learner(of):
        opened.append((of.place, of.name, of.silos))
        return make(of)

    task = external(make(silo()), metric="mae")
    summary = rota.simulate(scenario(task, rounds=30), learner=learner)
    assert sorted(opened) == [(at, f"silo {at + 1}", 3) for at in range(3)]
    for values in summary.curves().values():
        assert values[-1] < 0.3 < 1 < values[0]


def test_a_command_trains_every_silo():
    import sys

    make = load("two_arrays").learner
    task = external(make(silo()))
    summary = rota.simulate(scenario(task), learner=[sys.executable, str(EXAMPLES / "two_arrays.py")])
    again = rota.simulate(scenario(task), learner=make)
    # Programs and this process compute the same.
    assert summary["rounds"][-1]["outcome"] == again["rounds"][-1]["outcome"]


def test_an_exception_of_a_learner_is_in_the_error():
    make = load("two_arrays").learner
    task = external(make(silo()))

    def broken(of):
        raise RuntimeError("the disk of the ward is full")

    with pytest.raises(rota.RotaError, match="the disk of the ward is full"):
        rota.simulate(scenario(task), learner=broken)


def test_a_learner_that_exits_is_in_the_error():
    task = external(load("two_arrays").learner(silo()))

    def gone(of):
        raise SystemExit("the rows are elsewhere")

    with pytest.raises(rota.RotaError, match="the rows are elsewhere"):
        rota.simulate(scenario(task), learner=gone)


def test_trainings_that_fail_are_a_warning():
    make = load("two_arrays").learner
    task = external(make(silo()))

    def learner(of):
        found = make(of)
        if of.place == 1:
            found.train = lambda *_: 1 / 0
        return found

    with pytest.warns(UserWarning, match="silo 2 in round 1: .*division by zero"):
        summary = rota.simulate(scenario(task), learner=learner)
    assert len(summary["training_failed"]) == 4


def test_one_object_serves_all_silos_one_at_a_time():
    inside, most = 0, 0

    def train(model, training):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        for step in range(50):
            training.progress(step + 1, 50)
        inside -= 1
        return {"w": model["w"] + 1}

    learner = rota.FunctionLearner({"w": (1,)}, train, lambda model, split: {"loss": 1.0}, rota.Rows(1, test=1))
    rota.simulate(scenario(external(learner)), learner=learner, references=False)
    assert most == 1


def test_nothing_is_left_after_a_simulation():
    make = load("two_arrays").learner
    task = external(make(silo()))
    before = threading.active_count()
    for _ in range(3):
        rota.simulate(scenario(task), learner=make, references=False)
    assert threading.active_count() == before


def test_a_strategy_that_needs_gradients_is_refused_at_the_start():
    make = load("two_arrays").learner
    strategy = scenario({})["strategy"] | {"name": "scaffold"}
    with pytest.raises(rota.RotaError, match="cannot train with a modified gradient"):
        rota.simulate(scenario(external(make(silo())), strategy=strategy), learner=make)


def test_a_comparison_has_a_row_for_every_strategy():
    task = {"table": {"data": "diabetes", "model": {"linear": {"loss": "absolute"}}}}
    found = rota.compare(scenario(task, silos=4), strategies=["fedavg", "local"], seeds=1, quick=True)
    rows = found.table()
    # A pandas table where pandas is installed, a list of dictionaries without it.
    rows = rows if isinstance(rows, list) else rows.to_dict("records")
    names = [row["strategy"] for row in rows]
    assert names[:1] == ["fedavg"] and "local" in names


def test_a_comparison_takes_a_learner_for_another_folders_file(tmp_path):
    """With data beside the scenario."""
    (tmp_path / "study").mkdir()
    draw = np.random.default_rng(1)
    for name in "abc":
        x = draw.normal(size=(40, 1))
        lines = ["x,y", *(f"{value:.3f},{2 * value + 1:.3f}" for value in x[:, 0])]
        (tmp_path / "study" / f"{name}.csv").write_text("\n".join(lines) + "\n")
    rows = {"files": [{"path": f"{name}.csv"} for name in "abc"], "columns": {"target": "y"}}
    table = {"data": {"rows": rows}, "model": {"linear": {"loss": "squared"}}}
    (tmp_path / "study" / "s.toml").write_text(_toml.written(scenario({"table": table})))
    trained = []

    def learner(of):
        # The tensors of a linear model: a row of weights and one bias.
        bias, weight = sorted(of.layout, key=lambda tensor: len(tensor.shape))

        def train(model, training):
            trained.append(of.name)
            x, y = of.rows("train")
            slope, level = np.polyfit(x[:, 0], y[:, 0], 1)
            return {weight.name: np.full(weight.shape, slope), bias.name: np.full(bias.shape, level)}

        def evaluate(model, split):
            x, y = of.rows(split)
            return {"loss": np.mean((x * model[weight.name].item() + model[bias.name].item() - y) ** 2)}

        return rota.FunctionLearner({one.name: one.shape for one in of.layout}, train, evaluate, rota.Rows(0))

    found = rota.compare(tmp_path / "study" / "s.toml", strategies="local", seeds=1, learner=learner)
    labels = [one["label"] for one in found["variants"][0]["strategies"]]
    assert labels == ["local"] and set(trained) == {"a", "b", "c"}


def test_questions_about_rows_are_answered_in_the_scenario(tmp_path):
    lines = ["lab,visit,y"]
    for row in range(120):
        lab = 999 if row % 40 == 7 else 3 + row * 37 % 60 / 20
        lines.append(f"{lab},{4_000_000 + 7_177 * (row * 31 % 40)},{(row * 31 % 40) * 40_503 // 32 % 2}")
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    rows = {
        "files": [{"path": str(tmp_path / f"{name}.csv")} for name in "abc"],
        "columns": {"target": "y", "classes": ["0", "1"]},
    }
    table = {"data": {"rows": rows}, "model": "logistic"}
    given = scenario({"table": table}, rounds=1)
    with pytest.raises(rota.RotaError) as asked:
        rota.simulate(given, references=False)
    assert "hold 999" in str(asked.value) and 'learn = ["visit"]' in str(asked.value)
    rows["answers"] = {"keep": {"lab": ["999"]}, "learn": ["visit"]}
    assert len(rota.simulate(given, references=False)["rounds"]) == 1


def test_figures_are_drawn_where_matplotlib_is_installed():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = rota.simulate("diabetes", rounds=2, references=False).plot()
    assert len(axes.lines) == 8


def test_coalitions_of_a_matrix():
    losses = np.array([[0.1, 0.2, 0.9, 0.8], [0.2, 0.1, 0.8, 0.9], [0.9, 0.8, 0.1, 0.2], [0.8, 0.9, 0.2, 0.1]])
    found = rota.solve.coalitions(losses, 2)
    assert found["coalitions"] == [[0, 1], [2, 3]] and found["optimal"]
    assert found["objective"] == pytest.approx(0.6)


def test_the_other_mathematics_give_arrays():
    rows = np.array([[1.0, 0.1], [0.9, 0.2], [-1.0, 0.3]])
    topology = rota.solve.topology(rows, metric="cosine")
    assert topology["adjacency"].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    same = rota.solve.topology(similarity=topology["similarity"])
    assert np.allclose(same["prior"], topology["prior"])
    assert rota.solve.domains(rows, len(rows))["domains"] == list(range(len(rows)))
    groups = rota.solve.merge(rows, [10, 20, 30], groups=2)
    assert groups["groups"] == [[0, 1], [2]] and groups["utility"].shape == (3,)
    loss = rota.solve.robust_loss(rows, [1, 0, 1], [1.0, 2.0], loss="absolute", radius=0.5)
    assert loss["loss"] == pytest.approx(loss["empirical_loss"] + 0.5 * loss["lambda"])
    with pytest.raises(ValueError, match="either"):
        rota.solve.topology()


def test_errors_are_the_programs_own_words():
    with pytest.raises(rota.RotaError, match="no-such"):
        rota.simulate("no-such-scenario")
