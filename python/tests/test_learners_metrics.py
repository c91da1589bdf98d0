"""Metrics of one's own: tried before the first round, because one that fails is missing in all of them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from torch import nn  # noqa: E402

from rota import _toml  # noqa: E402

from conftest import external, scenario  # noqa: E402
from plain import classes, draw, loader, values  # noqa: E402

torch.set_num_threads(1)
F = nn.functional

X = draw(20, 3)
ROWS = (X, X.sum(1, keepdim=True))


def learner(metrics, rows=ROWS, test=ROWS, loss=F.mse_loss, outputs=1, **options):
    torch.manual_seed(0)
    return rota.torch.Learner(nn.Linear(3, outputs), loss, rows, test, device="cpu", metrics=metrics, **options)


def raising(outputs, targets):
    return {"mae": {}["missing"]}


TRIED = r"`metrics` was tried on the 20 rows of `test`, outputs \(20, 1\) and targets \(20, 1\), before the first round"

WRONG = {
    "raises": (raising, r", and failed: KeyError: 'missing'"),
    "of other shapes": (lambda outputs, targets: {"mae": (outputs @ targets).mean()}, ", and failed: RuntimeError"),
    "for each row": (lambda outputs, targets: {"mae": (outputs - targets).abs()}, r": the metric 'mae' is Tensor of the shape \(20, 1\), it must be one number"),
    "an array": (lambda outputs, targets: {"mae": outputs.numpy()[:, 0]}, r".*ndarray of the shape \(20,\)"),
    "an empty tensor": (lambda outputs, targets: {"mae": outputs[:0]}, r".*of the shape \(0, 1\)"),
    "a list": (lambda outputs, targets: {"mae": [0.5]}, ": the metric 'mae' is list, it must be one number"),
    "a text": (lambda outputs, targets: {"mae": "0.5"}, ": the metric 'mae' is '0.5', it must be one number"),
    "a dictionary": (lambda outputs, targets: {"mae": {"mean": 0.5}}, ": the metric 'mae' is dict"),
    "nothing": (lambda outputs, targets: {"mae": None}, ": the metric 'mae' is None"),
    "complex": (lambda outputs, targets: {"mae": torch.tensor(1j)}, ": the metric 'mae' is Tensor"),
    "not a number": (lambda outputs, targets: {"mae": outputs.mean() * float("nan")}, ", and the metric 'mae' is nan with the outputs of the model and with made-up ones"),
    "infinite": (lambda outputs, targets: {"mae": (outputs * 0).mean().exp() / 0}, ", and the metric 'mae' is inf"),
    "no dictionary": (lambda outputs, targets: (outputs - targets).abs().mean(), ": metrics are Tensor, they must be a dictionary"),
    "nothing at all": (lambda outputs, targets: None, ": metrics are NoneType"),
    "a name that is none": (lambda outputs, targets: {0: 0.5}, ": a metric has the name 0"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_a_metric_that_is_no_number_is_refused_before_round_one(kind):
    metrics, why = WRONG[kind]
    with pytest.raises(ValueError, match=TRIED + why):
        learner(metrics)


@pytest.mark.parametrize("kind", ["raises", "for each row", "not a number", "a text"])
def test_such_a_metric_is_refused_in_simulate(kind):
    """Before, all rounds were run, and the summary had no results."""
    metrics, why = WRONG[kind]
    task = external(learner(None), metric="dice")
    with pytest.raises(rota.RotaError, match=TRIED) as error:
        rota.simulate(scenario(task), learner=lambda silo: learner(metrics, silo=silo), references=False)
    assert error.value.summary is None and isinstance(error.value.__cause__, ValueError)


SCRIPT = """
import sys
sys.path[:0] = {path!r}
import rota
from test_learners_metrics import WRONG, learner

if __name__ == "__main__":
    rota.serve(lambda silo: learner(WRONG["for each row"][0] if {wrong} else None, silo=silo))
"""


def script(path, wrong):
    path.write_text(SCRIPT.format(path=[str(Path(__file__).parent), *sys.path], wrong=wrong))
    return [sys.executable, str(path)]


def test_such_a_metric_is_refused_in_describe_and_in_a_node(tmp_path):
    wrong = script(tmp_path / "child.py", True)
    with pytest.raises(rota.RotaError, match=TRIED):
        rota.command(["learner", "describe", *wrong])
    right = script(tmp_path / "child.py", False)
    how = scenario(external(learner(None)), learner={"command": right})
    (tmp_path / "s.toml").write_text(_toml.written(how))
    base = str(20_000 + os.getpid() % 1_000 * 16)
    said = rota.command(["federation", "demo", "demo", "--scenario", "s.toml", "--base-port", base])
    config = next(line.split("--config ")[1].strip() for line in said.splitlines() if "rota run --config" in line)
    script(tmp_path / "child.py", True)
    node = subprocess.run([rota.binary(), "run", "--config", config], capture_output=True, text=True, timeout=120)
    assert node.returncode != 0 and "before the first round: the metric 'mae' is Tensor" in node.stderr


def test_such_a_metric_is_refused_where_rota_has_the_rows(tmp_path):
    lines = [",".join(f"{value:.3f}" for value in [*row, row.sum()]) for row in draw(40, 3).tolist() for row in [np.array(row)]]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,c,y", *lines]) + "\n")
    rows = {"files": [{"path": "rows.csv"}], "split-into": 2, "columns": {"target": "y"}}
    task = {"table": {"model": {"linear": {}}, "data": {"rows": rows}}}
    given = {"name": "given", "rounds": 2, "task": task, "strategy": scenario({})["strategy"]}
    how = lambda metrics: lambda silo: rota.torch.Learner(nn.Linear(3, 1), silo=silo, metrics=metrics, device="cpu")  # noqa: E731
    for kind in ["raises", "for each row"]:
        with pytest.raises(rota.RotaError, match="missing|of the shape"):
            rota.simulate(given, learner=how(WRONG[kind][0]), references=False)
    assert not rota.simulate(given, learner=how(RIGHT["a number"]), references=False)["training_failed"]


RIGHT = {
    "a number": lambda outputs, targets: {"mae": float((outputs - targets).abs().mean())},
    "a tensor of one value": lambda outputs, targets: {"mae": (outputs - targets).abs().mean()[None]},
    "an array of one value": lambda outputs, targets: {"mae": np.abs((outputs - targets).numpy()).mean(keepdims=True)},
    "of NumPy": lambda outputs, targets: {"mae": np.float64((outputs - targets).abs().mean())},
    "a truth": lambda outputs, targets: {"mae": True, "mse": torch.tensor(False)},
    "no metrics": lambda outputs, targets: {},
    "in place": lambda outputs, targets: {"mae": outputs.sub_(targets).abs_().mean()},
}


@pytest.mark.parametrize("kind", RIGHT)
def test_metrics_that_are_numbers_are_measured(kind):
    one = learner(RIGHT[kind])
    found = one.evaluate(values(one), "test", {})
    plain = learner(None)
    assert found["loss"] == plain.evaluate(values(plain), "test", {})["loss"]
    expected = float((nn.functional.linear(X, *map(torch.tensor, values(one).values())) - ROWS[1]).abs().mean())
    if "mae" in found:
        assert np.isclose(found["mae"], 1.0 if kind == "a truth" else expected, rtol=1e-6)


def test_the_trial_of_metrics_leaves_nothing_behind():
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    drawn = torch.get_rng_state()
    rota.torch.Learner(model, F.mse_loss, ROWS, ROWS, device="cpu", metrics=lambda outputs, targets: {"mae": torch.rand(1)})
    assert torch.equal(torch.get_rng_state(), drawn) and model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def ranked(outputs, targets):
    """The share of pairs of two classes that are in order: without a second class there is none."""
    ones, zeros = outputs[targets[:, 0] > 0.5], outputs[targets[:, 0] <= 0.5]
    if not len(ones) or not len(zeros):
        raise ValueError("only one class is present")
    return {"roc-auc": (ones > zeros.T).float().mean()}


def test_a_metric_that_one_batch_lacks_is_tried_on_all_rows():
    """Rows in order of their class: the first batch has only one."""
    y = (torch.arange(20) >= 10).float()[:, None]
    rows = loader(torch.utils.data.TensorDataset(X, y), 5)
    binary = nn.functional.binary_cross_entropy_with_logits
    one = learner(ranked, rows, rows, binary)
    assert 0 <= one.evaluate(values(one), "test", {})["roc-auc"] <= 1
    with pytest.raises(ValueError, match=r"20 rows of `test`.*only one class is present"):
        learner(ranked, rows, (X, torch.zeros(20, 1)), binary)


def test_a_metric_without_a_value_before_training_is_reported(capsys):
    """The precision of a class that the first model never names."""

    def precision(outputs, targets):
        named = outputs[:, 0] > 0
        return {"precision": (named & (targets[:, 0] > 0.5)).sum() / named.sum()}

    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    nn.init.constant_(model.bias, -99.0)
    y = (X.sum(1, keepdim=True) > 0).float()
    rota.torch.Learner(model, F.binary_cross_entropy_with_logits, (X, y), (X, y), device="cpu", metrics=precision)
    assert "the metric 'precision' is nan: it is missing as long as it is" in capsys.readouterr().err


def test_metrics_of_rows_of_different_lengths_are_refused():
    """Before, this failed in every round, and nothing was measured."""
    rows = [(draw(4, 3, length), classes(5, 4, length)) for length in (6, 9)]

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Conv1d(3, 5, 1)

        def forward(self, x):
            return self.inner(x)

    with pytest.raises(ValueError, match="different shapes: leave it out, or pad all rows to one length"):
        rota.torch.Learner(Words(), F.cross_entropy, rows, rows, device="cpu", metrics=lambda outputs, targets: {})


def test_metrics_are_tried_on_training_rows_where_none_are_left():
    with pytest.raises(ValueError, match="the 20 rows of `train`"):
        learner(raising, test=None)
    with pytest.raises(ValueError, match="the 20 rows of `validation`"):
        learner(raising, test=None, validation=ROWS)


def test_metrics_in_a_dictionary_are_refused():
    with pytest.raises(ValueError, match="`metrics` is dict, it must be a function from outputs and targets"):
        learner({"mae": F.l1_loss})


# Learners that measure themselves.


def measuring(evaluate, **changes):
    def train(model, training):
        return model

    return rota.FunctionLearner({"weight": np.ones(3)}, train, evaluate, rota.Rows(train=4, test=2, **changes))


SELF = {
    "fails": (lambda model, split: {"loss": model["bias"]}, "and failed: KeyError: 'bias'"),
    "has no loss": (lambda model, split: {"mae": 1.0}, r"gave \['mae'\]: `loss` is always needed"),
    "gives no dictionary": (lambda model, split: 1.0, ": metrics are float"),
    "gives many numbers": (lambda model, split: {"loss": model["weight"]}, r"'loss' is ndarray of the shape \(3,\)"),
    "is never a number": (lambda model, split: {"loss": float("nan")}, "'loss' is nan with the first model and with another one"),
}  # fmt: skip


@pytest.mark.parametrize("kind", SELF)
def test_a_learner_that_cannot_measure_is_refused_at_the_start(kind):
    evaluate, why = SELF[kind]
    task = external(measuring(evaluate))
    with pytest.raises(rota.RotaError, match="`evaluate` was tried on the test rows before the first round.*" + why):
        rota.simulate(scenario(task), learner=measuring(evaluate), references=False)


def test_a_learner_that_measures_changes_nothing_by_the_trial():
    asked = []

    def evaluate(model, split):
        asked.append((split, model["weight"].tolist(), np.random.rand()))
        model["weight"] += 5
        return {"loss": float(np.square(model["weight"]).mean())}

    summary = rota.simulate(scenario(external(measuring(evaluate)), rounds=1), learner=measuring(evaluate), references=False)
    assert not summary["training_failed"]
    first = [one[1] for one in asked if one[0] == "test"][:2]
    assert asked[0][0] == "test" and first == [[1.0, 1.0, 1.0]] * 2


def test_an_agreed_metric_nobody_measures_is_refused_at_start():
    trained = []

    class Watched(rota.torch.Learner):
        def train(self, start, training):
            trained.append(1)
            return super().train(start, training)

    def make(silo):
        torch.manual_seed(0)
        # A class for each pixel is measured as a whole, and no outputs are given row by row.
        x = draw(12, 2, 4, 4)
        rows = (x, (x.sum(1) > 0).long())
        return Watched(nn.Conv2d(2, 2, 1), F.cross_entropy, rows, rows, device="cpu")

    task = external(make(None), metric="brier")
    with pytest.raises(rota.RotaError, match='no program measures the agreed metric "brier".*measures accuracy, .*loss'):
        rota.simulate(scenario(task), learner=make)
    assert not trained
    summary = rota.simulate(scenario(external(make(None), metric="accuracy")), learner=make)
    assert all(np.isfinite(values[-1]) for values in summary.curves().values())


def test_measuring_holds_the_outputs_of_all_rows_once():
    """Not as batches, as their sum and as a copy for a metric of all rows."""
    from rota.torch._measure import Gathered

    gathered = Gathered(1000)
    for at in range(0, 1000, 100):
        gathered.add(torch.full((100, 3), float(at)))
    found = gathered.all()
    assert found.shape == (1000, 3) and found[950, 0] == 900.0 and found.data_ptr() == gathered.all().data_ptr()
    assert found.untyped_storage().nbytes() == 1000 * 3 * 4
    # More rows than were expected, and other kinds of numbers.
    gathered = Gathered(2)
    gathered.add(torch.ones(2, 1, dtype=torch.int32))
    gathered.add(torch.full((3, 1), 0.5))
    assert gathered.all().flatten().tolist() == [1.0, 1.0, 0.5, 0.5, 0.5] and gathered.alike
    gathered.add(torch.ones(1, 2))
    assert not gathered.alike


# Metrics beside results row by row.


def f1(outputs, targets):
    named, right = outputs.argmax(1) == 1, targets == 1
    return {"f1": 2 * (named & right).sum() / (named.sum() + right.sum()).clamp(min=1)}


def classifying(silo):
    x = draw(60, 4, seed=silo.place)
    y = (x[:, 0] > 0).long()
    torch.manual_seed(0)
    parts = {"train": slice(0, 30), "validation": slice(30, 45), "test": slice(45, None)}
    rows = {part: (x[of], y[of]) for part, of in parts.items()}
    return rota.torch.Learner(nn.Linear(4, 2), F.cross_entropy, silo=silo, device="cpu", metrics=f1, **rows)


@pytest.mark.parametrize("agreed", [True, False])
def test_own_metrics_are_there_beside_results_row_by_row(agreed):
    """Before, they were in the curves alone: what has results row by row was measured by Rota only."""
    metric = {"metric": {"own": "f1", "better": "larger"}} if agreed else {}
    summary = rota.simulate(scenario(rota.task(classifying, **metric), rounds=2), learner=classifying, keep="models")
    for place, one in enumerate(summary["silos"]):
        silo = rota.Silo(one["name"], place=place, silos=3, seed=1, layout=[])
        measured = classifying(silo).evaluate(summary.model(one["name"]), "test", {})
        assert one["program_metrics"] == {"f1": measured["f1"]}
        assert one["coalition"] == pytest.approx(measured["f1" if agreed else "loss"], rel=1e-6)
        assert 0 <= one["local"] and (one["local"] <= 1 or not agreed)
    means = {mean["model"]: mean["per_silo"] for mean in summary["means"]}
    assert means["coalition"] == pytest.approx(np.mean([one["coalition"] for one in summary["silos"]]))
    assert "local" in means


def test_a_comparison_is_by_the_agreed_metric():
    task = rota.task(classifying, metric={"own": "f1", "better": "larger"})
    found = rota.compare(scenario(task, rounds=2), learner=classifying, strategies=["fedavg", "local"], seeds=1, tuned=False)
    assert found["metrics"] == [{"own": "f1", "better": "larger"}]
    assert all(0 <= row["silos"] <= 1 for row in found._rows())
