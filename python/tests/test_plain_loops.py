"""`rota.simulate` beside a plain loop, with the same rows, order and seeds: every training to the bit, the mean of the
silos, and what is measured in the end."""

import copy
import functools
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402

from conftest import external, scenario  # noqa: E402
from plain_spellings import SPELLINGS  # noqa: E402

torch.set_num_threads(1)
SILOS, ROUNDS = 2, 2


def built(spelling):
    torch.manual_seed(0)
    return spelling.model()


def rows_of(spelling, place):
    """The rows of a silo as the learner gets them."""
    data = spelling.data(place)
    if spelling.batches is None:
        return data
    if spelling.batches == "generator":
        dataset = torch.utils.data.TensorDataset(*data)
        return torch.utils.data.DataLoader(dataset, batch_size=5, shuffle=True, generator=torch.Generator().manual_seed(8))
    return spelling.batches(data)


class Recorded(rota.torch.Learner):
    """A learner that writes down what it was asked and what it answered."""

    def train(self, start, training):
        start = {name: np.array(value) for name, value in start.items()}
        found = super().train(start, training)
        self.asked.append((start, training, found))
        return found

    def evaluate(self, model, split, personal):
        found = super().evaluate(model, split, personal)
        self.losses.append(({name: np.array(value) for name, value in model.items()}, found["loss"]))
        return found


def seeded_alike(model, data, seed):
    """All generators, as the learner documents it: the process's, the module's and those of the rows."""
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    torch.manual_seed(seed)
    dataset = getattr(data, "dataset", data)
    for held in (model, dataset, data, getattr(data, "sampler", None)):
        # Those of the class, too.
        for name, value in list({**vars(type(held)), **getattr(held, "__dict__", {})}.items()):
            if isinstance(value, torch.Generator):
                value.manual_seed(seed)
            elif isinstance(value, np.random.Generator):
                setattr(held, name, np.random.default_rng(seed))


def batches_of(spelling, data, size, order):
    if spelling.batches is not None:
        yield from data
        return
    parts = list(data.values()) if isinstance(data, dict) else list(data)
    count = len(parts[0])
    places = torch.randperm(count, generator=order)
    chosen = list(places.split(size or count))
    if spelling.call == "joined" and len(chosen[-1]) == 1:
        chosen[-2:] = [torch.cat(chosen[-2:])]
    for some in chosen:
        if isinstance(data, dict):
            yield {name: value[some] for name, value in data.items()}
        else:
            yield tuple(value[some] for value in data)


def call_of(spelling):
    return (lambda model, batch: (model(batch[0]), batch[1])) if spelling.call == "joined" else spelling.call


def loss_of(spelling, outputs, targets):
    return torch.nn.functional.cross_entropy(outputs, targets) if spelling.loss is None else spelling.loss(outputs, targets)


def all_tensors(model):
    return dict(model.named_parameters()) | dict(model.named_buffers())


def put(model, values):
    with torch.no_grad():
        tensors = all_tensors(model)
        for name, value in values.items():
            given = value if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value))
            # The mean of counters is rounded.
            counts = given.is_floating_point() and not tensors[name].is_floating_point()
            tensors[name].copy_(given.round() if counts else given)


def plain(spelling, model, place, start, seed, fresh, data=None):
    """The tensors after a plain training, with new `data` or those that were read before."""
    put(model, fresh | start)
    data = rows_of(spelling, place) if data is None else data
    seeded_alike(model, data, seed)
    how = spelling.how
    said = how["optimiser"]
    values = {id(value): value for value in model.parameters() if value.requires_grad}.values()
    # As documented: what has one dimension is not decayed.
    groups = [
        {"params": [one for one in values if one.ndim >= 2], "weight_decay": said.get("weight-decay", 0.0)},
        {"params": [one for one in values if one.ndim < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if spelling.own is not None:
        optimiser = spelling.own(model)
    elif said["name"] == "sgd":
        optimiser = torch.optim.SGD(groups, lr=said["rate"], momentum=said.get("momentum", 0.0))
    else:
        optimiser = torch.optim.Adam(groups, lr=said["rate"])
    order, call = torch.Generator().manual_seed(seed), call_of(spelling)
    schedule = None if spelling.schedule is None else spelling.schedule(optimiser)
    model.train()
    for _ in range(how["epochs"]):
        for batch in batches_of(spelling, data, how["batch"], order):
            optimiser.zero_grad()
            loss = loss_of(spelling, *call(model, batch))
            if spelling.by_hand is not None:
                spelling.by_hand(optimiser, loss, model)
            else:
                loss.backward()
                optimiser.step()
            if schedule is not None:
                schedule.step()
    return {name: value.detach().float().numpy().copy() for name, value in all_tensors(model).items() if not value.is_complex()}


def held_out(data):
    """The batches of held-out rows, in order and all of them."""
    if isinstance(data, torch.utils.data.DataLoader) and not isinstance(data.dataset, torch.utils.data.IterableDataset):
        return torch.utils.data.DataLoader(data.dataset, data.batch_size, num_workers=data.num_workers)
    return data if isinstance(data, (list, torch.utils.data.DataLoader)) else [copy.deepcopy(data)]


def measured(spelling, model, data, values, fresh):
    """The loss of these values on all rows, on their outputs at once."""
    put(model, fresh | values)
    seeded_alike(model, data, 0)
    model.eval()
    with torch.no_grad():
        outputs, targets = (torch.cat(one) for one in zip(*(call_of(spelling)(model, batch) for batch in held_out(data))))
        return float(loss_of(spelling, outputs, targets))


def near(one, other, name=""):
    """Whether two losses differ by rounding alone, in sums of batches or of half precision."""
    return np.isclose(one, other, rtol=2e-2 if name in ("autocast", "half precision") else 1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_simulation_is_the_mean_of_plain_loops(name):
    spelling = SPELLINGS[name]
    asked, losses = {}, {}

    def rows_to_measure(place):
        # Rows that are drawn at random are no held-out rows.
        return (spelling.data if name in ("a weighted sampler",) else functools.partial(rows_of, spelling))(place + 3)

    def make(silo):
        learner = Recorded(built(spelling), spelling.loss, rows_of(spelling, silo.place), rows_to_measure(silo.place), silo=silo, device="cpu", **spelling.options)
        learner.asked, learner.losses = asked.setdefault(silo.place, []), losses.setdefault(silo.place, [])
        return learner

    first = make(rota.Silo("silo 1", 0, SILOS, 0, []))
    strategy = {"name": "fedavg", "training": spelling.how}
    task = external(first)
    asked.clear()
    summary = rota.simulate(
        scenario(task, rounds=ROUNDS, silos=SILOS, strategy=strategy), learner=make, references=False
    )
    assert not summary["training_failed"]
    assert [len(asked[place]) for place in range(SILOS)] == [ROUNDS] * SILOS
    # Half precision is exact to its own digits.
    same = (lambda one, other: np.allclose(one, other, atol=1e-7)) if name == "autocast" else np.array_equal
    for place in range(SILOS):
        # As at a silo, one module lives through all rounds.
        model = built(spelling)
        fresh = {key: value.numpy().copy() for key, value in model.named_buffers()}
        for start, training, found in asked[place]:
            expected = plain(spelling, model, place, start, training.seed % (1 << 63), fresh)
            for key, value in found.model.items():
                assert same(value, expected[key]), (place, key)
            last = expected
            assert found.samples == (10 if name == "a loader that drops the last" else 12)
        values, loss = losses[place][-1]
        left = {key: value for key, value in last.items() if key not in values}
        assert near(loss, measured(spelling, model, rows_to_measure(place), values, left), name), place
    for turn in range(1, ROUNDS):
        # All start from the mean of the round before.
        before = [asked[place][turn - 1][2] for place in range(SILOS)]
        for place in range(SILOS):
            start = asked[place][turn][0]
            for key, value in start.items():
                mean = np.average([one.model[key].astype(np.float64) for one in before], axis=0, weights=[one.samples for one in before])
                assert np.allclose(value, mean, atol=1e-6, rtol=1e-6), key


def test_there_are_enough_spellings():
    assert len(SPELLINGS) >= 70
