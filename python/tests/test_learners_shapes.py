"""Outputs and targets of PyTorch learners: what is measured, and what is refused before the first round."""

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from torch import nn  # noqa: E402

from conftest import external, scenario, silo, training  # noqa: E402
from plain import classes, draw, loader, loop, trained_alike, values  # noqa: E402

torch.set_num_threads(1)
F = nn.functional


def learner(model, loss, x, y, **options):
    return rota.torch.Learner(model, loss, (x, y), (x, y), device="cpu", **options)


def own(outputs, targets):
    return ((outputs - targets) ** 2).mean()


class Squared(nn.Module):
    def forward(self, outputs, targets):
        return F.mse_loss(outputs, targets)


SPREAD = [
    F.mse_loss,
    nn.MSELoss(),
    nn.L1Loss(),
    nn.SmoothL1Loss(),
    nn.HuberLoss(),
    nn.SoftMarginLoss(),
    partial(F.huber_loss, delta=0.5),
    own,
    lambda outputs, targets: F.l1_loss(outputs, targets),
    Squared(),
]


@pytest.mark.parametrize("loss", SPREAD, ids=lambda loss: getattr(loss, "__name__", type(loss).__name__))
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_outputs_and_targets_that_would_broadcast_are_refused(loss):
    x = draw(12, 3)
    y = (x.sum(1) > 0).float() * 2 - 1 if isinstance(loss, nn.SoftMarginLoss) else x.sum(1)
    with pytest.raises(ValueError, match=r"outputs have the shape \(12, 1\) and targets \(12,\).*spread.*squeeze"):
        learner(nn.Linear(3, 1), loss, x, y)
    assert learner(nn.Linear(3, 1), loss, x, y[:, None]).rows().train == 12
    flat = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
    with pytest.raises(ValueError, match=r"outputs have the shape \(12,\) and targets \(12, 1\)"):
        learner(flat, loss, x, y[:, None])
    assert learner(flat, loss, x, y).rows().train == 12


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_spreading_is_refused_with_more_dimensions_too():
    x, masks = draw(6, 1, 5, 5), draw(6, 5, 5)
    for loss in [F.mse_loss, own]:
        with pytest.raises(ValueError, match=r"\(6, 1, 5, 5\) and targets \(6, 5, 5\)"):
            learner(nn.Conv2d(1, 1, 3, padding=1), loss, x, masks)
    with pytest.raises(ValueError, match="one number for each target"):
        learner(nn.Linear(3, 4), F.mse_loss, draw(6, 3), draw(6, 1))


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_a_one_row_batch_that_loses_its_dimension_is_refused():
    """`squeeze()` without a dimension takes away that of rows as well."""

    class Squeezed(nn.Linear):
        def forward(self, x):
            return super().forward(x).squeeze()

    x = draw(9, 3)
    found = rota.torch.Learner(Squeezed(3, 1), F.mse_loss, (x, x.sum(1)), device="cpu")
    with pytest.raises(ValueError, match=r"outputs have the shape \(\) and targets \(1,\)"):
        found.train(values(found), training(batch=4))


def test_a_loss_of_ones_own_may_reshape_its_arguments():
    x = draw(12, 3)
    batches = loader(torch.utils.data.TensorDataset(x, x.sum(1)))
    loss = lambda outputs, targets: F.mse_loss(outputs.view(-1), targets.view(-1))  # noqa: E731
    found = rota.torch.Learner(nn.Linear(3, 1), loss, batches, device="cpu")
    expected = loop(found.model, batches, lambda model, batch: F.mse_loss(model(batch[0])[:, 0], batch[1]))
    assert trained_alike(found, expected)


def test_a_sum_is_no_mean():
    x = draw(12, 3)
    for loss in [
        lambda outputs, targets: ((outputs - targets) ** 2).sum(),
        partial(F.mse_loss, reduction="sum"),
        nn.L1Loss(reduction="sum"),
    ]:
        with pytest.raises(ValueError, match="must be the mean over the rows"):
            learner(nn.Linear(3, 1), loss, x, x.sum(1, keepdim=True))
    with pytest.raises(ValueError, match=r"the loss of a batch is \(12, 1\), it must be one number"):
        learner(nn.Linear(3, 1), lambda outputs, targets: (outputs - targets) ** 2, x, x.sum(1, keepdim=True))


def test_targets_that_a_loss_means_otherwise_are_refused():
    x, two = draw(12, 3), classes(2, 12)
    with pytest.raises(ValueError, match="targets are between -1 and 1: .*probabilities from 0 to 1"):
        learner(nn.Linear(3, 1), nn.BCEWithLogitsLoss(), x, two[:, None].float() * 2 - 1)
    with pytest.raises(ValueError, match="a cross-entropy is 0 whatever the model says"):
        learner(nn.Linear(3, 1), F.cross_entropy, x, torch.zeros(12, dtype=torch.long))
    with pytest.raises(ValueError, match=r"use y.squeeze\(1\)"):
        learner(nn.Linear(3, 2), F.cross_entropy, x, two[:, None])
    with pytest.raises(ValueError, match="nll_loss takes logarithms of probabilities.*use cross_entropy"):
        learner(nn.Linear(3, 2), F.nll_loss, x, two)
    assert learner(nn.Sequential(nn.Linear(3, 2), nn.LogSoftmax(1)), nn.NLLLoss(), x, two).rows().train == 12
    with pytest.raises(ValueError, match="one batch of `train`.*Target [67] is out of bounds"):
        learner(nn.Linear(3, 2), F.cross_entropy, x, two + 6)
    with pytest.raises(ValueError, match="the loss is nan before any training: look for missing values"):
        learner(nn.Linear(3, 1), F.mse_loss, x / 0 * 0, x.sum(1, keepdim=True))


def test_what_fails_in_batch_one_is_reported_before_round_one():
    x, y = draw(12, 3), classes(2, 12)
    with pytest.raises(ValueError, match=r"one batch of `train`, \[\(12, 3\), \(12,\)\], was tried before the first round"):
        learner(nn.Linear(4, 2), F.cross_entropy, x, y)
    with pytest.raises(ValueError, match="one batch of `test`"):
        rota.torch.Learner(nn.Linear(3, 2), F.cross_entropy, (x, y), (x[:, :2], y), device="cpu")
    with pytest.raises(ValueError, match="does not depend on any parameter"):
        learner(nn.Linear(3, 2), lambda outputs, targets: F.cross_entropy(outputs.detach(), targets), x, y)


def test_a_wrong_shape_is_refused_in_describe_and_simulate(tmp_path):
    import sys

    script = tmp_path / "wrong.py"
    script.write_text(
        "import torch, rota, rota.torch\n"
        "def learner(of):\n"
        "    x = torch.randn(20, 3)\n"
        "    rows = (x, x.sum(1))\n"
        "    return rota.torch.Learner(torch.nn.Linear(3, 1), torch.nn.MSELoss(), rows, rows, silo=of, device='cpu')\n"
        "if __name__ == '__main__':\n"
        "    rota.serve(learner)\n"
    )
    with pytest.raises(rota.RotaError, match=r"outputs have the shape \(20, 1\) and targets \(20,\)"):
        rota.command(["learner", "describe", sys.executable, str(script)])
    tensors = [rota.Tensor("weight", (1, 3)).document(), rota.Tensor("bias", (1,), "bias").document()]
    with pytest.raises(rota.RotaError, match=r"outputs have the shape \(20, 1\) and targets \(20,\)"):
        rota.simulate(scenario({"external": {"tensors": tensors}}), learner=[sys.executable, str(script)])


def test_the_trial_leaves_nothing_behind():
    x, y = draw(12, 3), classes(2, 12)
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    drawn = torch.get_rng_state()
    found = learner(model, F.cross_entropy, x, y)
    assert torch.equal(torch.get_rng_state(), drawn)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(value.grad is None for value in model.parameters()) and model.training
    state = torch.get_rng_state()
    found.train(values(found), training(batch=4))
    found.evaluate(values(found), "test", {})
    assert torch.equal(torch.get_rng_state(), state)


# A class for each position.


def positions(model, x, y, loss=F.cross_entropy):
    """Accuracy and loss of all rows by hand."""
    with torch.no_grad():
        outputs = model.eval()(x)
    counted = y != getattr(loss, "ignore_index", -100)
    right = (outputs.argmax(1) == y)[counted].double().mean()
    return {"loss": float(loss(outputs, y)), "accuracy": float(right)}


def test_a_class_per_pixel_is_measured_and_federates():
    x, y = draw(10, 1, 6, 6), classes(3, 10, 6, 6)

    def make(of):
        torch.manual_seed(1)
        return learner(nn.Conv2d(1, 3, 3, padding=1), F.cross_entropy, x, y, silo=of)

    found = make(silo())
    assert found.outputs_loss is None and found.rows() == rota.Rows(train=10, test=10)
    assert found.evaluate(values(found), "test", {}) == pytest.approx(positions(found.model, x, y))
    batches = loader(torch.utils.data.TensorDataset(x, y))
    by_loader = rota.torch.Learner(found.model, F.cross_entropy, batches, device="cpu")
    expected = loop(found.model, batches, lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]))
    assert trained_alike(by_loader, expected)
    summary = rota.simulate(scenario(external(found, metric="accuracy")), learner=make)
    assert summary["usable"] and not summary["training_failed"] and np.isfinite(summary.curves()["silo 1"]).all()


def test_positions_that_are_ignored_do_not_count():
    x, y = draw(9, 1, 6, 6), classes(3, 9, 6, 6)
    # Rows with different numbers of positions that count, and one without any.
    y[0, 2:] = y[4, 1:] = y[8] = -100
    weighted = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 0.5]))
    other = nn.CrossEntropyLoss(ignore_index=0)
    for loss, targets in [(nn.CrossEntropyLoss(), y), (weighted, y), (other, y.clamp(min=0))]:
        model = nn.Conv2d(1, 3, 3, padding=1)
        batches = loader(torch.utils.data.TensorDataset(x, targets), 2)
        found = rota.torch.Learner(model, loss, batches, batches, device="cpu")
        assert found.outputs_loss is None
        # As over all rows at once, whatever the batches.
        assert found.evaluate(values(found), "test", {}) == pytest.approx(positions(model, x, targets, loss))
        assert found.train(values(found), training(rate=0.0)).samples == 9


def test_a_batch_without_a_target_that_counts_is_passed_over():
    """Its mean is no number: a plain step with it would leave no model."""
    x, y = draw(9, 1, 6, 6), classes(3, 9, 6, 6)
    y[3:6] = -100
    batches = loader(torch.utils.data.TensorDataset(x, y), 3)
    found = rota.torch.Learner(nn.Conv2d(1, 3, 3, padding=1), F.cross_entropy, batches, batches, device="cpu")
    others = [batch for at, batch in enumerate(batches) if at != 1]
    assert trained_alike(found, loop(found.model, others, lambda model, batch: F.cross_entropy(model(batch[0]), batch[1])))
    update = found.train(values(found), training())
    assert update.samples == 9 and np.isfinite(update.metrics["loss"])


def test_ignored_rows_are_measured_but_not_row_by_row():
    x, y = draw(40, 3), classes(3, 40)
    y[35] = -100
    found = learner(nn.Linear(3, 3), F.cross_entropy, x, y)
    assert found.outputs_loss is None
    assert found.evaluate(values(found), "test", {}) == pytest.approx(positions(found.model, x, y))
    batches = loader(torch.utils.data.TensorDataset(x, y), 8)
    assert rota.torch.Learner(nn.Linear(3, 3), F.cross_entropy, batches, batches, device="cpu").outputs_loss is None


def test_soft_labels_are_measured():
    x, y = draw(12, 3), torch.softmax(draw(12, 4, seed=5), 1)
    found = learner(nn.Linear(3, 4), nn.CrossEntropyLoss(), x, y)
    with torch.no_grad():
        outputs = found.model(x)
    right = float((outputs.argmax(1) == y.argmax(1)).double().mean())
    expected = {"loss": float(F.cross_entropy(outputs, y)), "accuracy": right}
    assert found.outputs_loss is None and found.evaluate(values(found), "test", {}) == pytest.approx(expected)


def test_several_labels_per_row_are_measured_and_federate():
    x = draw(12, 3)
    y = (x @ draw(3, 4, seed=5) > 0).float()

    def make(of):
        torch.manual_seed(1)
        return learner(nn.Linear(3, 4), nn.BCEWithLogitsLoss(), x, y, silo=of)

    found = make(silo())
    with torch.no_grad():
        expected = {"loss": float(F.binary_cross_entropy_with_logits(found.model(x), y))}
    assert found.outputs_loss is None and found.evaluate(values(found), "test", {}) == pytest.approx(expected)
    assert rota.simulate(scenario(external(found)), learner=make)["usable"]


def test_one_label_per_row_is_measured_by_row_if_it_is_a_class():
    x = draw(12, 3)
    hard, soft = (x.sum(1, keepdim=True) > 0).float(), torch.sigmoid(x.sum(1, keepdim=True))
    assert learner(nn.Linear(3, 1), nn.BCEWithLogitsLoss(), x, hard).outputs_loss == "logistic"
    assert learner(nn.Linear(3, 1), nn.BCEWithLogitsLoss(), x, soft).outputs_loss is None


def test_language_of_different_lengths_is_measured():
    """A class per position, in batches whose lengths differ."""
    batches = [(classes(7, 4, length, seed=length), classes(7, 4, length, seed=length + 9)) for length in (5, 8, 3)]

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows, self.head = nn.Embedding(7, 6), nn.Linear(6, 7)

        def forward(self, x):
            return self.head(self.rows(x)).movedim(-1, 1)

    found = rota.torch.Learner(Words(), F.cross_entropy, batches, batches, device="cpu")
    assert found.rows() == rota.Rows(train=12, test=12)
    expected = loop(found.model, batches, lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]))
    assert trained_alike(found, expected)
    found._set(values(found))
    with torch.no_grad():
        outputs = torch.cat([found.model(x).movedim(1, -1).reshape(-1, 7) for x, _ in batches])
        targets = torch.cat([y.reshape(-1) for _, y in batches])
    by_hand = positions(nn.Identity(), outputs, targets)
    assert found.evaluate(values(found), "test", {}) == pytest.approx(by_hand)


def test_classes_in_the_last_dimension_are_refused_with_a_remedy():
    x, y = draw(6, 5, 3), classes(4, 6, 5)
    with pytest.raises(ValueError, match=r"classes are dimension 1, such as model\(x\).movedim\(-1, 1\)"):
        learner(nn.Linear(3, 4), F.cross_entropy, x, y)


def test_what_is_often_meant_otherwise_is_said(capsys):
    """Probabilities where a loss takes values before softmax, and as many classes as positions."""
    x, y = draw(12, 3), classes(2, 12)
    for last, loss, target in [
        (nn.Softmax(1), F.cross_entropy, y),
        (nn.Sigmoid(), nn.BCEWithLogitsLoss(), torch.stack([y, 1 - y], 1).float()),
    ]:
        learner(nn.Sequential(nn.Linear(3, 2), last), loss, x, target)
        assert "as probabilities are, and" in capsys.readouterr().err
        learner(nn.Linear(3, 2), loss, x, target)
        assert capsys.readouterr().err == ""
    learner(nn.Linear(3, 5), F.cross_entropy, draw(6, 5, 3), classes(5, 6, 5))
    assert "dimension 1 is taken for the classes" in capsys.readouterr().err


def test_a_loss_of_ones_own_is_computed_on_all_rows_at_once():
    """Such as one minus a coefficient of Dice, which is no mean over rows."""

    def dice(outputs, targets):
        told = torch.sigmoid(outputs)
        return 1 - 2 * (told * targets).sum() / (told.sum() + targets.sum())

    x, y = draw(10, 1, 6, 6), (draw(10, 1, 6, 6, seed=4) > 0).float()
    batches = loader(torch.utils.data.TensorDataset(x, y), 3)
    found = rota.torch.Learner(nn.Conv2d(1, 1, 3, padding=1), dice, batches, batches, device="cpu")
    with torch.no_grad():
        assert found.evaluate(values(found), "test", {})["loss"] == pytest.approx(float(dice(found.model(x), y)))
