"""PyTorch learners: alone, in federations, and beside Rota's own."""

import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from torch import nn  # noqa: E402

from conftest import EXAMPLES, data, external, scenario, silo, training  # noqa: E402
from test_run import load  # noqa: E402

torch.set_num_threads(1)


def dense(**options):
    x = torch.randn(20, 3, generator=torch.Generator().manual_seed(1))
    y = x.sum(1, keepdim=True)
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    return rota.torch.Learner(model, nn.functional.mse_loss, (x, y), (x, y), device="cpu", **options)


def values(learner):
    return {name: np.array(value) for name, value in learner.initial(0).items()}


def test_one_step_is_the_gradient_step():
    learner = dense()
    start = values(learner)
    update = learner.train(start, training(rate=0.5, weight_decay=0.01))
    learner._set(start)
    x, y = learner._parts["train"]
    learner.model.zero_grad()
    nn.functional.mse_loss(learner.model(x), y).backward()
    for name, value in learner.model.named_parameters():
        decay = 0.01 * start[name] if value.ndim >= 2 else 0.0
        expected = start[name] - 0.5 * (value.grad.numpy() + decay)
        assert np.allclose(update.model[name], expected, atol=1e-6), name


def test_a_modifier_changes_the_gradient_as_agreed():
    learner = dense()
    start = values(learner)
    plain = learner.train(start, training()).model
    shift = {"0.bias": np.full(4, 2.0, np.float32)}
    anchor = {name: value - 1 for name, value in start.items()}
    modifier = rota.Modifier(mu=3.0, anchor=anchor, shift=shift, frozen=frozenset({"2.weight"}))
    found = learner.train(start, training(modifier=modifier)).model
    assert np.allclose(found["0.bias"], plain["0.bias"] - 0.1 * (3.0 + 2.0), atol=1e-5)
    assert np.allclose(found["0.weight"], plain["0.weight"] - 0.1 * 3.0, atol=1e-5)
    assert np.array_equal(found["2.weight"], start["2.weight"])


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_kept_optimiser_state_makes_two_trainings_one(optimiser):
    learner = dense(keep=optimiser)
    how = dict(optimiser=optimiser, momentum=0.9 if optimiser == "sgd" else 0.0, rate=0.05)
    start = values(learner)
    zeros = {tensor.name: np.zeros(tensor.shape, np.float32) for tensor in learner.personal()}
    first = learner.train(start, training(personal=zeros, **how))
    second = learner.train(dict(first.model), training(personal=dict(first.personal), **how))
    both = learner.train(start, training(personal=zeros, epochs=2, **how))
    forgotten = dense().train(dict(first.model), training(**how))
    for name, value in both.model.items():
        assert np.allclose(value, second.model[name], atol=1e-6)
    assert any(not np.allclose(value, forgotten.model[name], atol=1e-4) for name, value in both.model.items())


def test_running_statistics_are_shared_and_counters_are_not():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    x, y = torch.randn(20, 3), torch.randint(0, 2, (20,))
    learner = rota.torch.Learner(model, nn.functional.cross_entropy, (x, y), (x, y), device="cpu")
    tensors = {tensor.name: tensor for tensor in learner.tensors()}
    assert tensors["1.running_var"].role == "buffer" and tensors["1.running_var"].initial == 1.0
    assert tensors["1.weight"].role == "bias" and tensors["0.weight"].role == "weight"
    assert "1.num_batches_tracked" not in tensors
    start = values(learner)
    update = learner.train(start, training())
    assert not np.allclose(update.model["1.running_mean"], start["1.running_mean"])
    metrics = learner.evaluate(dict(update.model), "test", {})
    assert 0 <= metrics["accuracy"] <= 1
    outputs = learner.outputs(dict(update.model), "test", {})
    assert np.asarray(outputs.outputs).shape == (20, 2)


def test_a_data_loader_brings_its_own_batches():
    rows = torch.utils.data.TensorDataset(torch.randn(20, 3), torch.randn(20, 1))
    loader = torch.utils.data.DataLoader(rows, batch_size=6)
    learner = rota.torch.Learner(nn.Linear(3, 1), nn.functional.mse_loss, loader, loader, device="cpu")
    assert learner.rows() == rota.Rows(train=20, test=20)
    heard = []
    learner.train(values(learner), training(epochs=2, _say=lambda *said: heard.append(said)))
    assert [said[:2] for said in heard] == [(step, 8) for step in range(1, 9)]


def rows(count=20, wide=3):
    x = torch.arange(count * wide, dtype=torch.float32).reshape(count, wide) / count
    return torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))


def test_held_out_rows_are_measured_in_one_order_all_of_them():
    """Results of two models are compared row by row."""
    model, data = nn.Linear(3, 1), torch.utils.data
    for loader in [
        data.DataLoader(rows(), batch_size=6, shuffle=True, drop_last=True),
        data.DataLoader(rows(), batch_size=6, drop_last=True),
        data.DataLoader(rows(), batch_size=6),
    ]:
        learner = rota.torch.Learner(model, nn.functional.mse_loss, loader, loader, device="cpu")
        assert learner.rows() == rota.Rows(train=20, test=20)
        for split in ["train", "test"]:
            found = learner.outputs(values(learner), split, {})
            assert np.array_equal(np.asarray(found.targets), rows().tensors[1].numpy())
    chosen = data.DataLoader(rows(), sampler=data.SubsetRandomSampler([7, 3, 5]))
    learner = rota.torch.Learner(model, nn.functional.mse_loss, chosen, chosen, device="cpu")
    found = learner.outputs(values(learner), "test", {})
    assert np.array_equal(np.asarray(found.targets), rows().tensors[1].numpy()[[3, 5, 7]])
    batches = data.DataLoader(rows(), batch_sampler=data.BatchSampler(data.RandomSampler(rows()), 8, False))
    own = data.DataLoader(rows(), sampler=[2, 9, 4])
    for loader, places in [(batches, range(20)), (own, [2, 9, 4])]:
        learner = rota.torch.Learner(model, nn.functional.mse_loss, loader, loader, device="cpu")
        assert learner.rows() == rota.Rows(train=len(places), test=len(places))
        found = learner.outputs(values(learner), "test", {})
        assert np.array_equal(np.asarray(found.targets), rows().tensors[1].numpy()[list(places)])
    drawn = data.DataLoader(rows(), sampler=data.WeightedRandomSampler([1.0] * 20, 20))
    rota.torch.Learner(model, nn.functional.mse_loss, drawn, chosen, device="cpu")
    with pytest.raises(ValueError, match="`test` draws other rows every time"):
        rota.torch.Learner(model, nn.functional.mse_loss, chosen, drawn, device="cpu")


def test_arrays_are_rows_and_iterators_are_none():
    x, y = (one.numpy().astype(np.float64) for one in rows().tensors)
    learner = rota.torch.Learner(nn.Linear(3, 1), nn.functional.mse_loss, (x, y), (x, y), device="cpu")
    assert learner.rows() == rota.Rows(train=20, test=20)
    learner.train(values(learner), training())
    batches = ((x, y) for _ in range(3))
    with pytest.raises(TypeError, match="`train` is a generator, which ends after one pass"):
        rota.torch.Learner(nn.Linear(3, 1), nn.functional.mse_loss, batches, (x, y), device="cpu")
    with pytest.raises(TypeError, match="`test` is a TensorDataset, without batches"):
        rota.torch.Learner(nn.Linear(3, 1), nn.functional.mse_loss, (x, y), rows(), device="cpu")
    half = rota.torch.Learner(nn.Linear(3, 1).bfloat16(), nn.functional.mse_loss, (x, y), (x, y), device="cpu")
    half.train(values(half), training())
    with pytest.raises(ValueError, match="20 rows and 19 targets"):
        rota.torch.Learner(nn.Linear(3, 1), nn.functional.mse_loss, (x, y[1:]), device="cpu")


def test_only_plain_losses_are_measured_by_rota():
    x, y = torch.randn(20, 3), torch.randint(0, 2, (20,))
    one, single = y.float()[:, None], nn.BCEWithLogitsLoss()
    for loss, wide, targets, known in [
        (nn.CrossEntropyLoss(), 2, y, "softmax"),
        (nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0])), 2, y, None),
        (nn.CrossEntropyLoss(label_smoothing=0.1), 2, y, None),
        (single, 1, one, "logistic"),
        (nn.BCEWithLogitsLoss(pos_weight=torch.tensor([3.0])), 1, one, None),
        (partial(nn.functional.cross_entropy, label_smoothing=0.1), 2, y, None),
        (partial(nn.functional.mse_loss, reduction="mean"), 1, one, "squared"),
    ]:
        rows = (x, targets)
        learner = rota.torch.Learner(nn.Linear(3, wide), loss, rows, rows, device="cpu")
        assert learner.outputs_loss == known, loss
        if isinstance(loss, nn.CrossEntropyLoss):
            assert set(learner.evaluate(values(learner), "test", {})) == {"loss", "accuracy"}
    batchmean, y = nn.KLDivLoss(reduction="batchmean"), torch.rand(20, 2)
    assert rota.torch.Learner(nn.Linear(3, 2), batchmean, (x, y), (x, y), device="cpu").outputs_loss is None
    with pytest.raises(ValueError, match="must be the mean over the rows"):
        rota.torch.Learner(nn.Linear(3, 2), nn.CrossEntropyLoss(reduction="sum"), (x, y), (x, y), device="cpu")


def test_equal_questions_have_equal_answers_whatever_is_drawn():
    own = torch.Generator().manual_seed(1)
    loader = torch.utils.data.DataLoader(rows(), batch_size=4, shuffle=True, generator=own)
    learner = rota.torch.Learner(nn.Linear(3, 1), nn.functional.mse_loss, loader, loader, device="cpu")
    start = values(learner)
    first, again = (learner.train(start, training(rate=0.01)).model for _ in range(2))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    other = learner.train(start, training(rate=0.01, seed=8)).model
    assert not np.array_equal(first["weight"], other["weight"])


def test_a_training_leaves_nothing_behind():
    """Counters of batches decide about running statistics where there is no momentum."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, momentum=None), nn.Linear(4, 1))
    model.register_buffer("noise", torch.ones(3), persistent=False)
    learner = rota.torch.Learner(model, nn.functional.mse_loss, rows().tensors, rows().tensors, device="cpu")
    start, described = values(learner), list(learner.tensors())
    first = learner.train(start, training(epochs=3, batch=8)).model
    model.noise += 1
    again = learner.train(start, training(epochs=3, batch=8)).model
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert torch.equal(model.noise, torch.ones(3))
    assert list(learner.tensors()) == described
    assert all(np.array_equal(start[name], value) for name, value in learner.initial(0).items())


def test_workers_of_a_data_loader_do_not_touch_the_protocol(tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(
        "import torch, rota, rota.torch\n"
        "from torch import nn\n"
        "def learner(of):\n"
        "    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(of.place))\n"
        "    rows = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))\n"
        "    loader = torch.utils.data.DataLoader(rows, batch_size=8, num_workers=2)\n"
        "    return rota.torch.Learner(nn.Linear(3, 1), nn.functional.mse_loss, loader, loader, silo=of, device='cpu')\n"
        "if __name__ == '__main__':\n"
        "    rota.serve(learner)\n"
    )
    tensors = [rota.Tensor("weight", (1, 3)).document(), rota.Tensor("bias", (1,), "bias").document()]
    summary = rota.simulate(
        scenario({"external": {"tensors": tensors}}, rounds=2), learner=[sys.executable, str(script)], references=False
    )
    assert not summary["training_failed"]


def test_modules_that_are_not_the_agreed_model_are_refused():
    with pytest.raises(ValueError, match=r"other shapes: weight \(2, 3\), agreed \(2, 4\)"):
        rota.torch.match(nn.Linear(3, 2), {"weight": (2, 4), "bias": (2,)})


def test_hospitals_with_programs_learn_together():
    wards = load("wards")
    task = external(wards.learner(silo()), metric="accuracy")
    for name in ["fedavg", "fedprox", "scaffold"]:
        strategy = scenario({})["strategy"] | {"name": name}
        summary = rota.simulate(scenario(task, strategy=strategy, rounds=5), learner=wards.learner)
        accuracies = [values[-1] for values in summary.curves().values()]
        assert np.mean(accuracies) > 0.7, (name, accuracies)


def test_silos_of_one_process_do_not_draw_from_each_other():
    """Dropout and data loaders draw from the one generator of the process."""

    def learner(of):
        draw = torch.Generator().manual_seed(of.place)
        x = torch.randn(80, 6, generator=draw)
        rows = torch.utils.data.TensorDataset(x, x[:, :1] * x[:, 1:2])
        loader = torch.utils.data.DataLoader(rows, batch_size=8, shuffle=True)
        model = nn.Sequential(nn.Linear(6, 32), nn.Dropout(0.3), nn.Linear(32, 1))
        return rota.torch.Learner(model, nn.functional.mse_loss, loader, loader, silo=of, device="cpu")

    task = external(learner(silo()))
    traces = {rota.simulate(scenario(task, silos=4), learner=learner)["rounds"][-1]["outcome"] for _ in range(3)}
    assert len(traces) == 1


def test_robust_losses_come_from_rota_where_it_has_the_rows():
    """A linear model on a table: coalitions by robust losses, trained with PyTorch."""

    def learner(of):
        return rota.torch.Learner(nn.Linear(10, 1), silo=of, threads=1, device="cpu")

    summary = rota.simulate("diabetes", learner=learner, references=False, strategy="cs-rcfl")
    assert summary["strategy"] == "cs-rcfl" and summary["usable"]


def test_a_program_that_computes_another_function_is_refused():
    def learner(of):
        class Wrong(nn.Linear):
            def forward(self, x):
                return 2 * super().forward(x)

        features = of.layout[-1].shape[1]
        return rota.torch.Learner(Wrong(features, 1), silo=of, device="cpu")

    with pytest.raises(rota.RotaError, match="computes something else than the agreed model"):
        rota.simulate("diabetes", learner=learner)


def test_another_activation_is_refused_where_the_rows_are_large(tmp_path):
    """Far from 0, where rows are before the members agree on a scale, GELU and ReLU are the same."""
    draw = np.random.default_rng(1)
    for name in "abc":
        x = draw.normal(500, 20, size=(40, 3))
        y = 3000 + x.sum(1) + draw.normal(size=40)
        lines = ["u,v,w,y", *(",".join(f"{value:.3f}" for value in [*row, target]) for row, target in zip(x, y))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    rows = {"files": [{"path": str(tmp_path / f"{name}.csv")} for name in "abc"], "columns": {"target": "y"}}
    model = {"mlp": {"hidden": [8]}}
    table = scenario({"table": {"data": {"rows": rows}, "model": model, "standardise": "federation"}})

    def learner(activation):
        return lambda of: rota.torch.Learner(
            nn.Sequential(nn.Linear(3, 8), activation, nn.Linear(8, 1)), silo=of, threads=1, device="cpu"
        )

    assert rota.simulate(table, learner=learner(nn.ReLU()), references=False)["usable"]
    with pytest.raises(rota.RotaError, match="computes something else than the agreed model"):
        rota.simulate(table, learner=learner(nn.GELU()))


@pytest.mark.skipif(data() is None, reason="needs ROTA_DATA with fashion_mnist")
def test_three_pytorch_silos_and_one_of_rota_federate(monkeypatch):
    # The scenario says python3.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    summary = rota.simulate(EXAMPLES / "fashion.toml", learner=None, data=data(), references=False)
    assert not summary["training_failed"]
    last = [values[-1] for values in summary.curves().values()]
    first = [values[0] for values in summary.curves().values()]
    assert len(last) == 4 and np.mean(last) > 0.6 > np.mean(first), (first, last)
