"""What the learners of a large simulation hold between their turns: a map of a file, and the same results."""

import gc
import os
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from rota import write_tensors  # noqa: E402
from rota._shelf import Shelf  # noqa: E402
from rota.torch import _rest  # noqa: E402
from torch import nn  # noqa: E402

from conftest import external, scenario, silo, training  # noqa: E402
from plain import classes, draw, values  # noqa: E402

torch.set_num_threads(1)
F = nn.functional

NETWORKS = {
    "dense": lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)),
    "statistics and draws": lambda: nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Dropout(0.3), nn.Linear(5, 3)),
}


class Aliased(nn.Module):
    """A layer whose memory something else has, too: what is trained shows there."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(6, 3)
        self.seen = self.dense.weight.data

    def forward(self, x):
        return self.dense(x) + self.seen.sum()


class Tied(nn.Module):
    """Two layers with one memory."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(6, 6), nn.Linear(6, 6)
        self.other.weight.data = self.one.weight.data
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.other(self.one(x).tanh()))


@pytest.fixture
def large(monkeypatch):
    """Every simulation counts as a large one."""
    monkeypatch.setattr(_rest, "BETWEEN", 0)


def rows(place):
    return draw(20, 6, seed=place + 1), classes(3, 20, seed=place + 1)


def federation(network, held=None, **options):
    """What the trainings of a federation were given and gave, and its summary."""
    made = lambda of: rota.torch.Learner(network(), F.cross_entropy, rows(of.place), rows(of.place + 5), silo=of, device="cpu", **options)  # noqa: E731
    notes = []

    def factory(of):
        learner = made(of)
        train = learner.train

        def noted(start, how):
            start_then = {name: value.copy() for name, value in start.items()}
            found = train(start, how)
            assert all(np.array_equal(start[name], value) for name, value in start_then.items()), "it was changed"
            notes.append((of.place, how.seed, start_then, dict(found.model), dict(found.personal)))
            return found

        learner.train = noted
        if held is not None:
            held.append(learner.model)
        return learner

    task = external(made(silo()))
    name = "adam" if options.get("keep") == "adam" else "sgd"
    how = {"epochs": 1, "batch": 8, "optimiser": {"name": name, "rate": 0.1}}
    summary = rota.simulate(
        scenario(task, rounds=3, strategy={"name": "fedavg", "training": how}), learner=factory, references=False
    )
    # The silos of a round train in any order.
    notes = [note for nth in range(0, len(notes), 3) for note in sorted(notes[nth : nth + 3], key=lambda note: note[0])]
    return notes, {part: summary[part] for part in ("means", "silos", "curves")}


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    return np.array_equal(one, other)


tells = pytest.mark.skipif(
    not hasattr(torch._C, "_storage_Use_Count"), reason="this version of PyTorch does not tell who has a memory: models stay in it"
)


@tells
@pytest.mark.parametrize("options", [{}, {"keep": "adam"}], ids=["plain", "with an optimiser's state"])
@pytest.mark.parametrize("kind", NETWORKS)
def test_a_large_simulation_learns_the_same_to_the_bit(kind, options, monkeypatch):
    notes, summary = federation(NETWORKS[kind], **options)
    laid = []
    plain = _rest.laid_down
    monkeypatch.setattr("rota.torch._learner.laid_down", lambda *given: laid.append(plain(*given)) or laid[-1])
    monkeypatch.setattr(_rest, "BETWEEN", 0)
    again, as_before = federation(NETWORKS[kind], **options)
    assert len(laid) > 9 and None not in laid
    assert len(notes) == len(again) == 9 and summary == as_before
    for one, other in zip(notes, again, strict=True):
        assert one[:2] == other[:2] and all(same(mine, theirs) for mine, theirs in zip(one[2:], other[2:], strict=True))


@pytest.mark.parametrize("network", [Aliased, Tied])
def test_memory_that_something_else_has_stays(network, monkeypatch):
    notes, summary = federation(network)
    monkeypatch.setattr(_rest, "BETWEEN", 0)
    held = []
    again, as_before = federation(network, held)
    assert summary == as_before and all(same(one[3], other[3]) for one, other in zip(notes, again, strict=True))
    for model in held:
        if network is Aliased:
            assert model.seen.data_ptr() == model.dense.weight.data_ptr()
        else:
            assert model.one.weight.data_ptr() == model.other.weight.data_ptr()


def test_a_module_has_the_last_measured_model_and_its_own_memory(large):
    held, last = [], {}

    def factory(of):
        learner = rota.torch.Learner(NETWORKS["dense"](), F.cross_entropy, rows(of.place), rows(5), silo=of, device="cpu")
        for kind in ("evaluate", "outputs"):

            def noted(model, *rest, plain=getattr(learner, kind)):
                last[of.place] = {name: value.copy() for name, value in model.items()}
                return plain(model, *rest)

            setattr(learner, kind, noted)
        held.append(learner.model)
        return learner

    task = external(rota.torch.Learner(NETWORKS["dense"](), F.cross_entropy, rows(0), rows(5), device="cpu"))
    rota.simulate(scenario(task, rounds=2), learner=factory, references=False)
    gc.collect()
    for place, model in enumerate(held):
        assert same({name: value.numpy() for name, value in model.state_dict().items()}, last[place])
        assert all(value.grad is None for value in model.parameters())
    before = {name: value.clone() for name, value in held[1].state_dict().items()}
    with torch.no_grad():
        for value in held[0].parameters():
            value.fill_(7.0)
    assert all(torch.equal(value, before[name]) for name, value in held[1].state_dict().items())
    # It learns on.
    optimiser = torch.optim.SGD(held[1].parameters(), lr=0.1)
    F.cross_entropy(held[1](rows(0)[0]), rows(0)[1]).backward()
    optimiser.step()
    assert not torch.equal(held[1][0].weight, before["0.weight"])


def test_what_many_modules_begin_with_lies_in_a_file(tmp_path):
    folder = tmp_path / "shelf"
    folder.mkdir()
    network = lambda: nn.Sequential(nn.Linear(6, 6_000), nn.Linear(6_000, 3))  # noqa: E731
    torch.manual_seed(0)
    learners = [rota.torch.Learner(network(), F.cross_entropy, rows(place), rows(5), device="cpu") for place in range(2)]
    others = [values(learner) for learner in learners]
    shelf = Shelf(str(folder))
    learners[0]._rest(shelf, 10)
    assert not os.listdir(folder), "ten of them are no matter"
    for learner in learners:
        learner._rest(shelf, 100)
        learner.train({name: value + np.float32(1) for name, value in learner.initial(0).items()}, training())
    assert len(os.listdir(folder)) == 2
    for learner, first in zip(learners, others):
        assert same(learner.initial(0), first)
    shutil.rmtree(folder)
    gc.collect()
    for learner, first in zip(learners, others):
        assert same(learner.initial(0), first), "also where the simulation is over"


@tells
def test_between_turns_a_module_has_what_it_was_given_last(tmp_path, monkeypatch):
    monkeypatch.setattr(_rest, "BETWEEN", 0)
    shelf = Shelf(str(tmp_path))
    learner = rota.torch.Learner(NETWORKS["dense"](), F.cross_entropy, rows(0), rows(1), device="cpu")
    first = values(learner)
    learner._rest(shelf, 1)
    assert same(values(learner), first) and len(os.listdir(tmp_path)) == 1
    start = {name: value + np.float32(1) for name, value in first.items()}
    found = learner.train(start, training()).model
    assert same({name: value.numpy() for name, value in learner.model.state_dict().items()}, found)
    learner._rest(shelf, 1)
    assert same({name: value.numpy() for name, value in learner.model.state_dict().items()}, start)
    # The first values, and those of now.
    assert same(values(learner), first) and len(os.listdir(tmp_path)) == 2
    learner.evaluate(start, "test", {})
    learner._rest(shelf, 1)
    assert len(os.listdir(tmp_path)) == 2


def test_small_simulations_leave_models_where_they_are(tmp_path):
    learner = rota.torch.Learner(NETWORKS["dense"](), F.cross_entropy, rows(0), rows(1), device="cpu")
    place = learner.model[0].weight.data_ptr()
    learner._rest(Shelf(str(tmp_path)), 100)
    assert learner.model[0].weight.data_ptr() == place and not os.listdir(tmp_path)


def test_equal_models_are_one_file_which_goes_when_unneeded(tmp_path):
    shelf, model = Shelf(str(tmp_path)), {"w": np.arange(100, dtype=np.float32), "b": np.array([np.nan, -0.0], np.float32)}
    kept = shelf.put(model)
    assert shelf.put({name: value.copy() for name, value in model.items()}) is kept
    # They differ behind the values that are looked at first, and by a sign.
    others = [model | {"w": np.append(model["w"][:99], np.float32(0))}, model | {"b": np.array([np.nan, 0.0], np.float32)}]
    others += [model | {"w": model["w"].reshape(10, 10)}]
    also = [shelf.put(other) for other in others]
    assert len({id(one) for one in [kept, *also]}) == 4 == len(os.listdir(tmp_path))
    mine, theirs = kept.read(), kept.read()
    mine["w"][0] = 5
    assert theirs["w"][0] == 0 and kept.read()["w"][0] == 0
    del kept, also
    gc.collect()
    assert not os.listdir(tmp_path) and mine["w"][1] == 1


def test_without_space_models_stay_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(_rest, "BETWEEN", 0)

    def full(path, arrays):
        write_tensors(path, {})
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rota._shelf.write_tensors", full)
    learner = rota.torch.Learner(NETWORKS["dense"](), F.cross_entropy, rows(0), rows(1), device="cpu")
    before, place = values(learner), learner.model[0].weight.data_ptr()
    learner._rest(Shelf(str(tmp_path)), 3)
    assert same(values(learner), before) and learner.model[0].weight.data_ptr() == place
    assert not os.listdir(tmp_path)


def test_what_a_learner_is_given_is_its_own(tmp_path):
    write_tensors(tmp_path / "m.safetensors", {"w": np.ones(3)})
    found = rota.read_tensors(tmp_path / "m.safetensors", mapped=True, writable=True)
    found["w"] += 1
    os.unlink(tmp_path / "m.safetensors")
    assert found["w"].tolist() == [2, 2, 2]
    write_tensors(tmp_path / "m.safetensors", {"w": np.ones(3)})
    found = rota.read_tensors(tmp_path / "m.safetensors", mapped=True, writable=True)
    found["w"][:] = 0
    assert rota.read_tensors(tmp_path / "m.safetensors")["w"].tolist() == [1, 1, 1]
