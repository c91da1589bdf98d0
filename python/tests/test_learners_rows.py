"""Which rows a PyTorch learner has, and how many: of lists, loaders and samplers as people write them."""

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
X, Y = draw(12, 3), classes(2, 12)
DATA = torch.utils.data.TensorDataset(X, Y)


def learner(rows, model=None, loss=F.cross_entropy, **options):
    model = nn.Linear(3, 2) if model is None else model
    return rota.torch.Learner(model, loss, rows, (X, Y), device="cpu", **options)


def plainly(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


@pytest.mark.parametrize("kind", [list, tuple])
def test_two_batches_are_no_two_inputs(kind):
    batches = kind((X[some], Y[some]) for some in torch.arange(12).split(6))
    found = learner(batches)
    assert found.rows().train == 12
    assert trained_alike(found, loop(found.model, batches, plainly))


def test_two_arrays_in_a_list_are_rows():
    found = learner([X.numpy(), Y.numpy()])
    assert found.rows().train == 12 and found.train(values(found), training(batch=4)).samples == 12


@pytest.mark.parametrize("kind", ["loader", "tensor", "array"])
def test_rows_without_targets_are_learned_with_forward(kind):
    """As an autoencoder does."""
    rows = {"loader": loader(torch.utils.data.TensorDataset(X), 5), "tensor": X, "array": X.numpy()}[kind]

    def forward(model, batch):
        x = batch[0] if kind == "loader" else batch
        return model(x), x

    found = rota.torch.Learner(nn.Linear(3, 3), F.mse_loss, rows, rows, forward=forward, device="cpu")
    assert found.outputs_loss == "squared" and found.rows() == rota.Rows(train=12, test=12)
    if kind == "loader":
        assert trained_alike(found, loop(found.model, rows, lambda model, batch: F.mse_loss(model(batch[0]), batch[0])))
    assert found.train(values(found), training(batch=5)).samples == 12
    with pytest.raises(ValueError, match="without targets: give pairs"):
        rota.torch.Learner(nn.Linear(3, 3), F.mse_loss, rows, device="cpu")


def test_rows_in_a_list_are_no_batches():
    with pytest.raises(ValueError, match="targets have no dimension of rows; give batches"):
        learner([(X[at], Y[at]) for at in range(12)])


def test_classes_in_arrays_may_be_of_any_integers():
    """NumPy's own on some systems, and the codes of categories, have fewer bits than PyTorch takes."""
    for kind in ("int8", "int16", "int32", "int64"):
        found = learner((X.numpy().astype("f8"), Y.numpy().astype(kind)))
        assert found.outputs_loss == "softmax" and found.train(values(found), training()).samples == 12


def test_a_loss_that_forward_computes_is_trained_and_measured():
    """For models that return their loss and nothing else that is needed."""

    def forward(model, batch):
        return F.cross_entropy(model(batch[0]), batch[1]), batch[1]

    batches = loader(DATA, 5)
    found = rota.torch.Learner(
        nn.Linear(3, 2), lambda loss, targets: loss, batches, batches, forward=forward, device="cpu"
    )
    assert trained_alike(found, loop(found.model, batches, plainly))
    found._set(values(found))
    with torch.no_grad():
        by_hand = float(F.cross_entropy(found.model(X), Y))
    assert found.evaluate(values(found), "test", {}) == pytest.approx({"loss": by_hand})


def test_modules_of_jit_are_told_in_one_sentence():
    with pytest.raises(ValueError, match="a module of torch.jit, .*: give it as it was before"):
        learner((X, Y), torch.jit.script(nn.Linear(3, 2)))


def test_a_compiled_module_trains():
    found = learner(loader(DATA), torch.compile(nn.Linear(3, 2), backend="eager"))
    assert found.outputs_loss == "softmax" and found.train(values(found), training()).samples == 12


def test_a_loader_of_whole_batches_counts_rows():
    chunks = [(X[some], Y[some]) for some in torch.arange(12).split(5)]
    batches = torch.utils.data.DataLoader(chunks, batch_size=None)
    found = learner(batches)
    assert trained_alike(found, loop(found.model, batches, plainly))
    assert found.rows().train == 12 and found.train(values(found), training()).samples == 12


def test_a_stream_of_rows_is_counted():
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return ({"x": X[at], "y": Y[at]} for at in range(12))

    found = learner(torch.utils.data.DataLoader(Stream(), batch_size=5))
    assert found.rows().train == 12 and found.train(values(found), training()).samples == 12


def test_rows_that_are_drawn_twice_are_counted_once():
    """Oversampling of a rare class gives a silo no more rows, and so no more weight, and no fewer either."""
    weights = torch.where(Y == 0, 1.0, 5.0)
    sampler = torch.utils.data.WeightedRandomSampler(weights, 60)

    def make(of):
        return learner(loader(DATA, sampler=sampler), silo=of)

    found = make(silo())
    assert found.train(values(found), training()).samples == found.rows().train == 12
    assert not rota.simulate(scenario(external(found)), learner=make, references=False)["training_failed"]


def test_a_loader_that_drops_the_last_batch_weighs_its_own_rows(capfd):
    def make(of):
        return learner(loader(DATA, 5, drop_last=True), silo=of)

    found = make(silo())
    assert found.rows().train == 12 and found.train(values(found), training()).samples == 10
    assert not rota.simulate(scenario(external(found)), learner=make, references=False)["training_failed"]
    assert "note: silo 'silo 1' trained on 10 of its 12 training rows" in capfd.readouterr().err


def test_a_loader_without_batches_is_refused():
    with pytest.raises(ValueError, match="`train` has no batches: .*`drop_last` leaves none"):
        learner(loader(DATA, 20, drop_last=True))


def test_a_dictionary_of_lists_is_refused():
    with pytest.raises(TypeError, match="`train` is a dictionary with values that are no arrays.*padding=True"):
        learner({"x": [[1.0, 2.0, 3.0], [1.0]], "y": [0, 1]})


def test_images_in_lists_count_one_target_each():
    """As models that find objects take them: a list of images, and a list with the boxes of each."""

    class Finder(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 1)

        def forward(self, images):
            return torch.stack([self.head(image.mean((0, 1))) for image in images])

    images = [draw(1, size, 4, seed=size) for size in (3, 4, 5, 6, 7)]
    boxes = [{"boxes": draw(at + 2, 4, seed=at)} for at in range(5)]
    batches = loader(list(zip(images, boxes)), 2, collate_fn=lambda rows: tuple(map(list, zip(*rows))))

    def forward(model, batch):
        return model(batch[0]), torch.stack([one["boxes"].sum()[None] for one in batch[1]])

    found = rota.torch.Learner(Finder(), F.mse_loss, batches, batches, forward=forward, device="cpu")
    assert found.rows() == rota.Rows(train=5, test=5)
    assert trained_alike(found, loop(found.model, batches, lambda model, batch: F.mse_loss(*forward(model, batch))))
    assert found.train(values(found), training()).samples == 5


def test_functional_batch_normalisation_joins_a_last_row_too():
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.last(F.batch_norm(self.first(x), None, None, training=self.training or len(x) > 1))

    rows = loader(torch.utils.data.TensorDataset(draw(9, 3), classes(2, 9)))
    found = rota.torch.Learner(Normed(), F.cross_entropy, rows, device="cpu")
    batches = list(rows)
    joined = [batches[0], [torch.cat(parts) for parts in zip(*batches[1:])]]
    assert trained_alike(found, loop(found.model, joined, plainly))


def test_an_agreed_batch_of_one_row_is_told_with_its_remedy():
    found = learner((X, Y), nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)))
    with pytest.raises(ValueError, match="the agreed size of batches is 1, of 12 rows: agree on larger batches"):
        found.train(values(found), training(batch=1))


def test_a_loss_that_remembers_is_refused():
    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("centre", torch.zeros(2))

        def forward(self, outputs, targets):
            if outputs.requires_grad:
                self.centre = 0.9 * self.centre + 0.1 * outputs.detach().mean(0)
            return F.cross_entropy(outputs - self.centre, targets)

    with pytest.raises(ValueError, match="training changes the buffer 'centre' of `loss`"):
        learner((X, Y), loss=Centred())


def test_a_wrapper_hands_on_what_it_is_given():
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(3, 2)

        def forward(self, x, labels=None):
            logits = self.head(x)
            return {"loss": F.cross_entropy(logits, labels), "logits": logits}

    class Wrapper(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, *arguments, **named):
            return self.inner(*arguments, **named)

    batches = [{"x": X[some], "labels": Y[some]} for some in torch.arange(12).split(5)]
    found = rota.torch.Learner(Wrapper(), None, batches, batches, device="cpu")
    assert found.rows() == rota.Rows(train=12, test=12) and found.outputs_loss == "softmax"
    assert trained_alike(found, loop(found.model, batches, lambda model, batch: model(**batch)["loss"]))
    found._set(values(found))
    with torch.no_grad():
        by_hand = float(F.cross_entropy(found.model.inner.head(X), Y))
    assert found.evaluate(values(found), "test", {})["loss"] == pytest.approx(by_hand)


def test_augmentations_drawn_from_numpy_repeat_for_a_question():
    class Noisy(torch.utils.data.Dataset):
        def __len__(self):
            return 12

        def __getitem__(self, at):
            return X[at] + float(np.random.normal()), Y[at]

    found = learner(loader(Noisy()))
    start = values(found)
    first, again = (found.train(start, training(epochs=2)).model for _ in range(2))
    other = found.train(start, training(epochs=2, seed=8)).model
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["weight"], other["weight"])
