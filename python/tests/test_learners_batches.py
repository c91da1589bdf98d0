"""Batches and models of PyTorch learners as people write them, compared with plain loops."""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from torch import nn  # noqa: E402

from conftest import training  # noqa: E402
from plain import classes, draw, loader, loop, trained_alike, values  # noqa: E402

torch.set_num_threads(1)
F = nn.functional


class Rows(torch.utils.data.Dataset):
    """Rows of any make, by a function from a place."""

    def __init__(self, count, row):
        self._count, self._row = count, row

    def __len__(self):
        return self._count

    def __getitem__(self, place):
        return self._row(place)


class Two(nn.Module):
    """A module with two inputs."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(3, 2), nn.Linear(4, 2)

    def forward(self, a, b):
        return self.one(a) + self.other(b)


A, B, Y = draw(13, 3), draw(13, 4, seed=3), classes(2, 13)
Pair = namedtuple("Pair", ["x", "y"])


def same(batches, model, loss_of, rows=13, loss=F.cross_entropy, **options):
    """Whether a learner of these batches does what a plain loop does."""
    found = rota.torch.Learner(model, loss, batches, batches, device="cpu", **options)
    assert found.rows() == rota.Rows(train=rows, test=rows)
    assert trained_alike(found, loop(found.model, batches, loss_of, epochs=2), epochs=2)
    assert found.train(values(found), training()).samples == rows
    total = 0.0
    found._set(values(found))
    found.model.eval()
    with torch.no_grad():
        for batch in batches:
            total += float(loss_of(found.model, batch)) * count(batch)
    assert found.evaluate(values(found), "test", {})["loss"] == pytest.approx(total / rows)
    return found


def count(batch):
    """Rows of a batch, as the tests below build them."""
    found = batch
    while not isinstance(found, torch.Tensor):
        if hasattr(found, "keys"):
            found = found["labels"] if "labels" in found else next(iter(found.values()))
        else:
            found = found[-1] if isinstance(found, (list, tuple)) else found.y
    return len(found)


def test_triples_are_two_inputs_and_targets():
    batches = loader(torch.utils.data.TensorDataset(A, B, Y))
    found = same(batches, Two(), lambda model, batch: F.cross_entropy(model(batch[0], batch[1]), batch[2]))
    assert found.outputs_loss == "softmax"


def test_three_tensors_are_rows_with_two_inputs():
    found = rota.torch.Learner(Two(), F.cross_entropy, (A, B, Y), (A, B, Y), device="cpu")
    assert found.rows() == rota.Rows(train=13, test=13)
    order = torch.randperm(13, generator=torch.Generator().manual_seed(7))
    batches = [(A[some], B[some], Y[some]) for some in order.split(4)]
    expected = loop(found.model, batches, lambda model, batch: F.cross_entropy(model(batch[0], batch[1]), batch[2]))
    assert trained_alike(found, expected, batch=4)
    with pytest.raises(ValueError, match=r"different numbers of rows: \[13, 13, 12\]"):
        rota.torch.Learner(Two(), F.cross_entropy, (A, B, Y[1:]), device="cpu")


def test_nested_inputs_are_given_one_by_one():
    batches = loader(Rows(13, lambda at: ((A[at], B[at]), Y[at])))
    same(batches, Two(), lambda model, batch: F.cross_entropy(model(*batch[0]), batch[1]))
    tensors = rota.torch.Learner(Two(), F.cross_entropy, ((A, B), Y), ((A, B), Y), device="cpu")
    assert tensors.rows().train == 13 and tensors.train(values(tensors), training(batch=4)).samples == 13


def test_pairs_of_a_dictionary_and_targets_are_given_by_name():
    batches = loader(Rows(13, lambda at: ({"b": B[at], "a": A[at]}, Y[at])))
    same(batches, Two(), lambda model, batch: F.cross_entropy(model(**batch[0]), batch[1]))


def test_named_tuples_are_pairs():
    batches = loader(Rows(13, lambda at: Pair(A[at], Y[at])))
    same(batches, nn.Linear(3, 2), lambda model, batch: F.cross_entropy(model(batch.x), batch.y))


@pytest.mark.parametrize("key", ["labels", "label", "targets", "target", "y"])
def test_dictionaries_have_their_targets_under_a_usual_key(key):
    batches = loader(Rows(13, lambda at: {"a": A[at], key: Y[at], "b": B[at]}))
    same(batches, Two(), lambda model, batch: F.cross_entropy(model(batch["a"], batch["b"]), batch[key]))


def test_a_dictionary_of_one_input_is_given_by_position():
    batches = loader(Rows(13, lambda at: {"image": A[at], "label": Y[at]}))
    same(batches, nn.Linear(3, 2), lambda model, batch: F.cross_entropy(model(batch["image"]), batch["label"]))


def test_rows_may_be_a_dictionary_of_tensors():
    rows = {"a": A, "b": B, "labels": Y}
    found = rota.torch.Learner(Two(), F.cross_entropy, rows, rows, device="cpu")
    assert found.rows() == rota.Rows(train=13, test=13) and found.outputs_loss == "softmax"
    order = torch.randperm(13, generator=torch.Generator().manual_seed(7))
    batches = [(A[some], B[some], Y[some]) for some in order.split(4)]
    expected = loop(found.model, batches, lambda model, batch: F.cross_entropy(model(batch[0], batch[1]), batch[2]))
    assert trained_alike(found, expected, batch=4)


def test_what_a_part_of_a_batch_is_must_be_told():
    """An input, a mask, or a weight of the row."""
    weights = torch.utils.data.TensorDataset(A, Y, torch.rand(13))
    with pytest.raises(ValueError, match="3 parts, .*which part is what cannot be told; give `forward="):
        rota.torch.Learner(nn.Linear(3, 2), F.cross_entropy, loader(weights), device="cpu")
    with pytest.raises(ValueError, match=r"keys \['id'\], which the module is not called with: leave them out"):
        rows = Rows(13, lambda at: {"a": A[at], "b": B[at], "id": at, "y": Y[at]})
        rota.torch.Learner(Two(), F.cross_entropy, loader(rows), device="cpu")
    with pytest.raises(ValueError, match="more than one of them for the targets"):
        rows = Rows(13, lambda at: {"x": A[at], "labels": Y[at], "y": Y[at]})
        rota.torch.Learner(nn.Linear(3, 2), F.cross_entropy, loader(rows), device="cpu")
    with pytest.raises(ValueError, match="none of them for the targets"):
        rows = Rows(13, lambda at: {"x": A[at], "class": Y[at]})
        rota.torch.Learner(nn.Linear(3, 2), F.cross_entropy, loader(rows), device="cpu")
    with pytest.raises(ValueError, match="without targets: give pairs"):
        rota.torch.Learner(nn.Linear(3, 2), F.cross_entropy, loader(Rows(13, lambda at: A[at])), device="cpu")


def test_forward_says_what_outputs_and_targets_are():
    """Rows with a weight each."""
    rows = torch.utils.data.TensorDataset(A, Y, torch.rand(13, generator=torch.Generator().manual_seed(4)))

    def loss(outputs, targets):
        return (F.cross_entropy(outputs, targets[0], reduction="none") * targets[1]).mean()

    found = rota.torch.Learner(
        nn.Linear(3, 2),
        loss,
        loader(rows),
        loader(rows),
        forward=lambda model, batch: (model(batch[0]), (batch[1], batch[2])),
        device="cpu",
    )
    expected = loop(found.model, loader(rows), lambda model, batch: loss(model(batch[0]), batch[1:]))
    assert trained_alike(found, expected)
    assert found.rows() == rota.Rows(train=13, test=13)
    assert found.train(values(found), training()).samples == 13
    found._set(values(found))
    with torch.no_grad():
        by_hand = float(loss(found.model(A), rows.tensors[1:]))
    assert found.evaluate(values(found), "test", {})["loss"] == pytest.approx(by_hand)
    with pytest.raises(ValueError, match="must return two things, outputs and targets"):
        rota.torch.Learner(
            nn.Linear(3, 2), loss, loader(rows), forward=lambda model, batch: model(batch[0]), device="cpu"
        )


def test_objects_are_batches_with_forward():
    @dataclass
    class Ward:
        x: torch.Tensor
        y: torch.Tensor

        def to(self, device):
            return Ward(self.x.to(device), self.y.to(device))

    batches = [Ward(A[:5], Y[:5]), Ward(A[5:], Y[5:])]
    same(
        batches,
        nn.Linear(3, 2),
        lambda model, batch: F.cross_entropy(model(batch.x), batch.y),
        forward=lambda model, batch: (model(batch.x), batch.y),
    )


def test_positions_made_rows_by_forward_leave_rows_unchanged():
    """The weight of a silo is its rows, and not the words in them."""
    words, following = classes(7, 13, 5), classes(7, 13, 5, seed=8)
    batches = loader(torch.utils.data.TensorDataset(words, following))
    model = nn.Sequential(nn.Embedding(7, 6), nn.Linear(6, 7))
    found = same(
        batches,
        model,
        lambda model, batch: F.cross_entropy(model(batch[0]).reshape(-1, 7), batch[1].reshape(-1)),
        forward=lambda model, batch: (model(batch[0]).reshape(-1, 7), batch[1].reshape(-1)),
    )
    assert found.outputs_loss is None


def test_targets_made_flat_by_the_loader_are_refused():
    def flat(rows):
        return torch.stack([x for x, _ in rows]), torch.cat([y for _, y in rows])

    rows = Rows(13, lambda at: (classes(7, 5, seed=at), classes(7, 5, seed=at + 50)))
    with pytest.raises(ValueError, match="a batch of `train` has 20 targets, and the loader draws 4 rows"):
        rota.torch.Learner(
            nn.Sequential(nn.Embedding(7, 6), nn.Linear(6, 7), nn.Flatten(0, 1)),
            F.cross_entropy,
            loader(rows, collate_fn=flat),
            device="cpu",
        )


def test_several_targets_per_row_go_to_a_loss_of_ones_own():
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.kind, self.size = nn.Linear(3, 2), nn.Linear(3, 1)

        def forward(self, x):
            return {"kind": self.kind(x), "size": self.size(x)[:, 0]}

    def loss(outputs, targets):
        return F.cross_entropy(outputs["kind"], targets["kind"]) + F.mse_loss(outputs["size"], targets["size"])

    batches = loader(Rows(13, lambda at: (A[at], {"kind": Y[at], "size": A[at].sum()})))
    same(batches, Heads(), lambda model, batch: loss(model(batch[0]), batch[1]), loss=loss)
    with pytest.raises(ValueError, match="the loss takes one tensor: give `forward="):
        rota.torch.Learner(Heads(), F.cross_entropy, (A, Y), device="cpu")


def test_models_that_return_more_than_outputs():
    class Masked(nn.Linear):
        def forward(self, x):
            found = super().forward(x)
            return {"out": found, "aux": 2 * found} if self.more else {"out": found}

        more = False

    same(
        loader(torch.utils.data.TensorDataset(A, Y)),
        Masked(3, 2),
        lambda model, batch: F.cross_entropy(model(batch[0])["out"], batch[1]),
    )
    model = Masked(3, 2)
    model.more = True
    with pytest.raises(ValueError, match="returns 'out' and 'aux', of which the loss would see one"):
        rota.torch.Learner(model, F.cross_entropy, (A, Y), device="cpu")

    class Memory(nn.LSTM):
        pass

    with pytest.raises(ValueError, match="the loss takes one tensor"):
        rota.torch.Learner(Memory(3, 2, batch_first=True), F.cross_entropy, (draw(13, 4, 3), classes(2, 13, 4)), device="cpu")


# One row under batch normalisation.


def normed():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


@pytest.mark.parametrize("kind", ["tensors", "loader", "list", "dictionary"])
def test_a_last_batch_of_one_row_joins_the_one_before(kind):
    drawn = torch.Generator().manual_seed(7)
    orders = [torch.randperm(13, generator=drawn) if kind == "tensors" else torch.arange(13) for _ in range(2)]
    batches = [(A[some], Y[some]) for order in orders for some in (order[:4], order[4:8], order[8:])]
    data = {
        "tensors": (A, Y),
        "loader": loader(torch.utils.data.TensorDataset(A, Y)),
        "list": [(A[some], Y[some]) for some in torch.arange(13).split(4)],
        "dictionary": loader(Rows(13, lambda at: {"input": A[at], "y": Y[at]})),
    }[kind]
    found = rota.torch.Learner(normed(), F.cross_entropy, data, (A, Y), device="cpu")
    expected = loop(normed(), batches, lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]))
    heard = []
    update = found.train(values(found), training(epochs=2, batch=4, _say=lambda *said: heard.append(said[:2])))
    assert all(np.array_equal(update.model[name], value) for name, value in expected.items())
    assert update.samples == 13
    if kind in ("tensors", "loader", "dictionary"):
        assert heard == [(step, 6) for step in range(1, 7)]
    # Running statistics are those of the same batches.
    plain = normed().train()
    with torch.no_grad():
        for x, _ in batches[:3]:
            plain(x)
    once = found.train(values(found), training(batch=4, rate=0.0)).model
    assert np.allclose(once["1.running_mean"], plain[1].running_mean, atol=1e-6)


def test_without_batch_normalisation_batches_stay_as_they_are():
    model = nn.Linear(3, 2)
    found = rota.torch.Learner(model, F.cross_entropy, loader(torch.utils.data.TensorDataset(A, Y)), device="cpu")
    expected = loop(model, [(A[some], Y[some]) for some in torch.arange(13).split(4)],
                    lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]))  # fmt: skip
    assert trained_alike(found, expected)


def test_batches_of_one_row_cannot_train_batch_normalisation():
    with pytest.raises(ValueError, match="cannot train on batches of one row: agree on larger ones"):
        rota.torch.Learner(normed(), F.cross_entropy, loader(torch.utils.data.TensorDataset(A, Y), 1), device="cpu")
