"""Simulations in a folder, which go on after an interruption; comparisons in parts; where an error came from."""

import json
import os
import re
import signal
import time

import numpy as np
import pytest

import rota
from rota import _resumed

from conftest import external, scenario


@pytest.fixture(autouse=True)
def interruptions_are_heard():
    """Also where the tests run in the background of a shell, which ignores them there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Counted:
    """Learners that draw without seeds, count their trainings, and may break off."""

    def __init__(self, most=None, personal=False):
        self.most, self.personal, self.trainings, self.rounds = most, personal, 0, []

    def __call__(self, silo):
        learner = Drawing(self, silo)
        return learner


class Drawing(rota.Learner):
    def __init__(self, counted, silo):
        self.counted, self.silo, self.truth = counted, silo, silo.place + 1.0

    def tensors(self):
        return [rota.Tensor("w", (2,)), rota.Tensor("b", (1,), "bias")]

    def personal(self):
        return [rota.Tensor("mine", (1,), "buffer")] if self.counted.personal else []

    def rows(self):
        return rota.Rows(10, validation=3, test=4)

    def train(self, start, training):
        if self.counted.most is not None and self.counted.trainings >= self.counted.most:
            os.kill(os.getpid(), signal.SIGINT)
            for step in range(3000):
                time.sleep(0.01)
                training.progress(step, 3000)
            raise RuntimeError("nobody was interrupted")
        self.counted.trainings += 1
        noise = np.random.normal(size=2) * 0.1
        model = {"w": start["w"] + 0.5 * (self.truth - start["w"]) + noise, "b": start["b"] + np.random.uniform()}
        personal = {"mine": training.personal["mine"] + 1.0} if self.counted.personal else {}
        return rota.Update(model, {"loss": float(abs(noise).sum()), "noise": float(noise[0])}, personal)

    def evaluate(self, model, split, personal):
        return {"loss": float(np.mean((model["w"] - self.truth) ** 2)), "mine": float(personal.get("mine", [0.0])[0])}


def asked(counted, **options):
    task = external(Drawing(counted, rota.Silo("first", 0, 3, 0, [])))
    changes = options.pop("changes", {})
    return rota.simulate(scenario(task, rounds=4, **changes), learner=counted, references=False, **options)


def plain(summary):
    """A summary without what no two runs have in common."""
    return {name: value for name, value in summary.items() if name not in ("seconds", "wall", "timings", "performance")}


@pytest.mark.parametrize("personal", [False, True])
@pytest.mark.parametrize("after", [1, 4, 7, 11])
def test_a_simulation_that_broke_off_goes_on_as_if_it_had_not(after, personal, tmp_path):
    whole = asked(Counted(personal=personal))
    broken = Counted(most=after, personal=personal)
    with pytest.raises(KeyboardInterrupt):
        asked(broken, out=tmp_path / "run")
    rest = Counted(personal=personal)
    found = asked(rest, out=tmp_path / "run", resume=True)
    assert rest.trainings == 12 - after
    assert found["rounds"] == whole["rounds"] and found["curves"] == whole["curves"] and found["silos"] == whole["silos"]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["asked.json", "summary.json"]


def test_a_simulation_that_is_over_is_read(tmp_path):
    first = asked(Counted(), out=tmp_path / "run", keep="models")
    again = Counted()
    found = asked(again, out=tmp_path / "run", keep="models", resume=True)
    assert again.trainings == 0 and found == first and type(found) is rota.Summary
    assert np.array_equal(found.model("silo 2", round=2)["w"], first.model("silo 2", round=2)["w"])


def test_models_of_a_simulation_stay_in_its_folder(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        asked(Counted(most=5), out=tmp_path / "run", keep="models")
    found = asked(Counted(), out=tmp_path / "run", keep="models", resume=True)
    assert (tmp_path / "run" / "models" / "index.json").is_file()
    assert np.array_equal(found.model("silo 1")["w"], asked(Counted(), keep="models").model("silo 1")["w"])


def test_rounds_before_the_interruption_are_told_once_more(tmp_path):
    seen = []
    with pytest.raises(KeyError):
        asked(Counted(), out=tmp_path / "run", on_round=lambda done: {}["stop"] if done.number == 3 else seen.append(done.loss))
    rest = Counted()
    told = []
    asked(rest, out=tmp_path / "run", resume=True, on_round=lambda done: told.append(done.loss))
    assert told[:2] == seen and len(told) == 4
    assert rest.trainings == 3


@pytest.mark.parametrize(
    "change, key", [({"seed": 5}, "seed"), ({"rounds": 9}, "rounds"), ({"silos": 2}, "silos"), ({"changes": {"seed": 8}}, "scenario.seed"), ({"keep": "models"}, "keep")]
)
def test_another_simulation_in_the_folder_is_refused_by_its_key(change, key, tmp_path):
    asked(Counted(), out=tmp_path / "run")
    with pytest.raises(rota.RotaError, match=f"asked with {key} = "):
        asked(Counted(), out=tmp_path / "run", resume=True, **change)


def test_another_scenario_is_refused_by_the_key_that_differs(tmp_path):
    how = scenario({})["strategy"]["training"]
    asked(Counted(), out=tmp_path / "run")
    deep = {"strategy": {"name": "fedavg", "training": how | {"optimiser": {"name": "sgd", "rate": 0.3}}}}
    with pytest.raises(rota.RotaError, match=r"asked with scenario.strategy.training.optimiser.rate = 0.1, and now it is 0.3: ask"):
        asked(Counted(), out=tmp_path / "run", resume=True, changes=deep)
    said = _resumed._difference("scenario", "rounds = 4\nseed = 1\n", "rounds = 4\nseed = 2\n")
    assert said == ("scenario, line 2", "seed = 1", "seed = 2")
    assert _resumed._difference("scenario", {"silos": [{"rows": 3}]}, {"silos": [{"rows": 4}]}) == ("scenario.silos[0].rows", 3, 4)


def test_folders_that_are_in_use_are_refused(tmp_path):
    asked(Counted(), out=tmp_path / "run")
    with pytest.raises(rota.RotaError, match="is not empty: give a new folder, or resume=True"):
        asked(Counted(), out=tmp_path / "run")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    for resume in (False, True):
        with pytest.raises(rota.RotaError, match="give a new folder"):
            asked(Counted(), out=tmp_path / "mine", resume=resume)
    with pytest.raises(ValueError, match="`resume` goes with `out`"):
        asked(Counted(), resume=True)


def test_a_training_that_was_cut_off_is_carried_out_again(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        asked(Counted(most=6), out=tmp_path / "run")
    kept = sorted(path for path in (tmp_path / "run" / "trainings").iterdir() if "." not in path.name)
    assert len(kept) == 6
    kept[0].write_bytes(kept[0].read_bytes()[:7])
    rest = Counted()
    assert asked(rest, out=tmp_path / "run", resume=True)["curves"] == asked(Counted())["curves"]
    assert rest.trainings == 7


def test_rotas_own_models_stay_in_a_folder_too(tmp_path):
    first = rota.simulate("diabetes", rounds=2, references=False, out=tmp_path / "run")
    found = rota.simulate("diabetes", rounds=2, references=False, out=tmp_path / "run", resume=True)
    assert found == first and json.loads((tmp_path / "run" / "summary.json").read_text()) == dict(first)


# Comparisons in parts.

STRATEGIES = ["fedavg, by rows", "local"]


def compared(**options):
    task = external(Drawing(Counted(), rota.Silo("first", 0, 3, 0, [])))
    return rota.compare(scenario(task, rounds=2), learner=Counted(), strategies=STRATEGIES, seeds=4, tuned=False, **options)


def values(comparison):
    return [(row["variant"], row["strategy"], row["metric"], row["silos"], row["silos sd"]) for row in comparison._rows()]


@pytest.mark.parametrize("parts", [2, 3])
def test_the_parts_of_a_comparison_are_the_whole(parts, tmp_path):
    whole = compared()
    folders = [tmp_path / f"part {nth}" for nth in range(1, parts + 1)]
    for nth, folder in enumerate(folders, 1):
        compared(shard=f"{nth}/{parts}", out=folder)
    found = rota.merge(folders, out=tmp_path / "all")
    assert values(found) == values(whole)
    assert type(found) is rota.Comparison and any((tmp_path / "all").iterdir())


def test_parts_in_processes_of_joblib_are_the_whole(tmp_path):
    joblib = pytest.importorskip("joblib")
    folders = [tmp_path / f"part {nth}" for nth in (1, 2)]
    task = external(Drawing(Counted(), rota.Silo("first", 0, 3, 0, [])))
    part = joblib.delayed(rota.compare)
    joblib.Parallel(n_jobs=2)(
        part(scenario(task, rounds=2), learner=PARTS, strategies=STRATEGIES, seeds=4, tuned=False, shard=f"{nth}/2", out=folder)
        for nth, folder in enumerate(folders, 1)
    )
    assert values(rota.merge(folders)) == values(compared())


def PARTS(silo):
    return Drawing(Counted(), silo)


def test_runs_of_a_part_that_is_missing_are_named(tmp_path):
    compared(shard="1/2", out=tmp_path / "one")
    found = rota.merge([tmp_path / "one"])
    assert len(found["missing"]) == 4 and "; 4 runs are missing" in repr(found)
    assert repr(found).startswith("comparison    python")


@pytest.mark.parametrize("shard", ["3/2", "0/2", "x", "1"])
def test_a_part_that_there_is_not_is_refused(shard, tmp_path):
    with pytest.raises(rota.RotaError, match="shard"):
        compared(shard=shard, out=tmp_path / "one")


def test_a_comparison_goes_on_from_its_folder(tmp_path):
    first = compared(out=tmp_path / "all")
    again = compared(out=tmp_path / "all", resume=True)
    assert values(again) == values(first)
    with pytest.raises(rota.RotaError):
        compared(out=tmp_path / "all")


# Where an error came from.


def broken_line():
    """The line of this file that raises."""
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith("# the line"))


def test_an_error_names_the_line_of_the_institutions_code():
    def train(model, training):
        return {"w": model["w"].reshape(7)}  # the line

    def learner(silo):
        return rota.FunctionLearner({"w": (2,)}, train, lambda model, split: {"loss": 0.0}, rota.Rows(4, test=2))

    task = external(learner(None))
    with pytest.raises(rota.RotaError, match=rf"cannot reshape.* \(test_folders\.py, line {broken_line()}, in train\)"):
        rota.simulate(scenario(task), learner=learner, references=False)


def test_a_refusal_names_the_line_that_makes_the_learner():
    def learner(silo):
        return rota.FunctionLearner({"w": np.array([1e30, 2.0**200])}, None, None, rota.Rows(4))

    with pytest.raises(rota.RotaError, match=r"\(test_folders\.py, line \d+, in learner\)"):
        rota.simulate(scenario({"external": {"tensors": [{"name": "w", "shape": [2], "role": "weight"}]}}), learner=learner)


def test_an_error_of_a_strategy_names_its_line():
    class Wrong(rota.Strategy):
        name = "wrong"
        needs = ["rows"]

        def settle(self, round):
            return round.row(entries=round.rows[5])

    with pytest.raises(rota.RotaError, match=r"IndexError.*\(test_folders\.py, line \d+, in settle\)"):
        asked(Counted(), strategy=Wrong())


def test_a_line_of_a_library_is_told_by_the_line_that_called_it():
    from rota._where import said

    try:
        json.loads("{")
    except ValueError as error:
        assert re.search(r"\(test_folders\.py, line \d+, in test_a_line_of_a_library", said(error))
    try:
        rota.Tensor("w", (1,), "weight", float("nan")).document()
    except ValueError as error:
        assert "_learner.py" not in said(error)


# What a program says of its training.


def test_metrics_of_a_training_are_in_the_summary(tmp_path):
    summary = asked(Counted())
    assert all(set(point["metrics"]) == {"noise"} for point in summary["curves"])
    rows = summary.rounds()
    rows = rows.to_dict("records") if hasattr(rows, "to_dict") else rows
    assert all(isinstance(row["noise, training"], float) for row in rows)


def test_a_federation_ends_by_a_metric_of_ones_own():
    def rounds(better):
        stop = {"patience": 1, "measure": {"own": "far", "better": better}}
        strategy = dict(scenario({})["strategy"]) | {"stop": stop}
        return len(asked(Far(), changes={"strategy": strategy})["rounds"])

    assert rounds("larger") == 2 and rounds("smaller") == 4


class Far(Counted):
    """Silos that come nearer to their truth in every round."""

    def __call__(self, silo):
        learner = super().__call__(silo)
        measured = learner.evaluate
        learner.evaluate = lambda model, split, personal: measured(model, split, personal) | {"far": float(np.mean((model["w"] - 2.0) ** 2))}
        return learner


def test_a_model_without_intercept_is_compared_by_usual_weights():
    def learner(silo):
        truth = silo.place + 1.0
        return rota.FunctionLearner(
            {"w": (2,)}, lambda model, training: {"w": model["w"] + np.float32(0.5) * (np.float32(truth) - model["w"])},
            lambda model, split: {"loss": float(np.mean((model["w"] - truth) ** 2))}, rota.Rows(10, validation=3, test=4),
        )  # fmt: skip

    found = rota.compare(scenario(rota.task(learner), rounds=2), strategies=["fedavg", "local"], seeds=2, learner=learner, tuned=False)
    assert [row["strategy"] for row in found._rows()] == ["fedavg", "fedavg, by rows", "fedavg, equal weights", "local"]
