"""What once differed from a plain loop without a word in how batches are joined, and in what is measured on them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from rota import _notes  # noqa: E402
from torch import nn  # noqa: E402

from plain import classes, draw, loader, loop, trained_alike, values  # noqa: E402

torch.set_num_threads(1)
F = nn.functional
X, Y = draw(13, 4), classes(3, 13)
IMAGES = draw(13, 2, 6, 6)
SERIES = draw(13, 4, 5)


@pytest.fixture(autouse=True)
def notes_anew():
    _notes.again()


# A last batch of one row.


def of_images():
    return nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(48, 3))


def of_series():
    return nn.Sequential(nn.BatchNorm1d(4), nn.Flatten(), nn.Linear(20, 3))


def of_rows():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))


def of_small_images():
    """After which each image has one number for a channel."""
    return nn.Sequential(nn.Conv2d(2, 3, 6), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(3, 3))


def frozen():
    model = of_rows()
    model[1].eval().requires_grad_(False)
    model[1].train = lambda mode=True: model[1]
    return model


class ByFunction(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(4, 3)

    def forward(self, rows):
        return F.batch_norm(self.dense(rows), None, None, training=True)


LAST = {
    "images": (of_images, IMAGES, False),
    "series": (of_series, SERIES, False),
    "rows": (of_rows, X, True),
    "images of one number": (of_small_images, IMAGES, True),
    "a norm that stays": (frozen, X, False),
    "a function": (ByFunction, X, True),
}


@pytest.mark.parametrize("kind", LAST)
@pytest.mark.parametrize("by", ["tensors", "loader"])
def test_a_last_row_joins_only_where_it_cannot_train(kind, by, capsys):
    make, rows, joins = LAST[kind]
    torch.manual_seed(0)
    model = make()
    order = torch.arange(13) if by == "loader" else torch.randperm(13, generator=torch.Generator().manual_seed(7))
    parts = list(order.split(4))
    if joins:
        parts[-2:] = [torch.cat(parts[-2:])]
    data = (rows, Y) if by == "tensors" else loader(torch.utils.data.TensorDataset(rows, Y))
    expected = loop(model, [(rows[some], Y[some]) for some in parts], lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]))
    found = rota.torch.Learner(model, F.cross_entropy, data, (rows, Y), device="cpu")
    assert "a last batch of one row" not in capsys.readouterr().err
    assert trained_alike(found, expected, batch=4)
    assert capsys.readouterr().err.count("a last batch of one row joins the one before") == joins


# Losses of several outputs for a row.


def views(model, batch):
    return torch.cat([model(batch[0]), model(1.1 * batch[0])]), batch[1]


def views_with_targets(model, batch):
    return torch.cat([model(batch[0]), model(1.1 * batch[0])]), torch.cat([batch[1], batch[1]])


def contrast(outputs, targets):
    one, other = F.normalize(outputs, dim=1).chunk(2)
    return F.cross_entropy(one @ other.T / 0.5, torch.arange(len(one)))


def halved(model, batch):
    """An output for two rows."""
    return model(batch[0]).unflatten(0, (-1, 2)).mean(1), batch[1]


def of_pairs(outputs, targets):
    return F.cross_entropy(outputs, targets[::2])


@pytest.mark.parametrize(
    ("forward", "loss", "rows"),
    [(views, contrast, 13), (views_with_targets, contrast, 13), (halved, of_pairs, 12)],
    ids=["views", "views with targets", "halves"],
)
def test_losses_of_views_are_measured_batch_by_batch(forward, loss, rows, capsys):
    data = torch.utils.data.TensorDataset(X[:rows], Y[:rows])
    model = nn.Linear(4, 3)
    found = rota.torch.Learner(model, loss, loader(data), loader(data), device="cpu", forward=forward)
    with torch.no_grad():
        parts = [(float(loss(*forward(model, batch))), len(batch[0])) for batch in loader(data)]
    expected = np.average([value for value, _ in parts], weights=[count for _, count in parts])
    assert np.isclose(found.evaluate(values(found), "test", {})["loss"], expected, rtol=1e-6)
    assert capsys.readouterr().err.count("the loss is measured batch by batch") == 1


def test_the_views_of_one_batch_are_measured_at_once(capsys):
    model = nn.Linear(4, 3)
    found = rota.torch.Learner(model, contrast, (X, Y), (X, Y), device="cpu", forward=views)
    with torch.no_grad():
        expected = float(contrast(*views(model, (X, Y))))
    assert np.isclose(found.evaluate(values(found), "test", {})["loss"], expected, rtol=1e-6)
    assert "batch by batch" not in capsys.readouterr().err


def test_metrics_of_outputs_beside_no_target_are_refused():
    data = loader(torch.utils.data.TensorDataset(X, Y))

    def by(metrics, test):
        return rota.torch.Learner(nn.Linear(4, 3), contrast, data, test, device="cpu", forward=views, metrics=metrics)

    with pytest.raises(ValueError, match="`metrics` takes outputs and targets of all rows, and a batch has 8 outputs for 4 targets"):
        by(lambda outputs, targets: {"mean": float(outputs.mean())}, data)
    # In one batch they lie as `forward` put them.
    assert by(lambda outputs, targets: {"rows": len(outputs) / len(targets)}, (X, Y)).evaluate(values(by(None, (X, Y))), "test", {})["rows"] == 2
