"""Further spellings beside plain loops, in the order of questions of a silo: to the bit, or refused with what works."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from torch import nn  # noqa: E402

from conftest import training  # noqa: E402
from further_spellings import FURTHER  # noqa: E402
from plain_spellings import SPELLINGS, Spelling, mlp, x, y  # noqa: E402
from test_plain_loops import built, measured, near, plain, rows_of  # noqa: E402
from traced_spellings import TABLES, TRACED, again  # noqa: E402

torch.set_num_threads(1)
F = nn.functional
SEEDS = (11, 12)


def learner_of(spelling, **more):
    return rota.torch.Learner(built(spelling), spelling.loss, rows_of(spelling, 0), held_out(spelling), device="cpu", **spelling.options | more)


def held_out(spelling):
    # Some loaders draw other rows every time, which is nothing for rows that are held out.
    targets = F.one_hot(y(7), 3).float() if "collate_fn" in str(spelling.batches) else y(7)
    return (x(7), targets) if spelling.batches is not None else spelling.data(7)


def trained(spelling):
    """The models of two trainings, one after the other, asked as a silo asks: what there is, a try, and measurements
    before the first and after each."""
    learner = learner_of(spelling)
    learner.rows(), learner.frozen(), learner.held(), list(learner.tensors())
    start = {name: np.array(value) for name, value in learner.initial(0).items()}
    learner.tried({name: value.copy() for name, value in start.items()})
    learner.evaluate({name: value.copy() for name, value in start.items()}, "test", {})
    optimiser = spelling.how["optimiser"]
    how = {"epochs": spelling.how["epochs"], "batch": spelling.how["batch"], "rate": optimiser["rate"], "optimiser": optimiser["name"]}
    found = []
    for seed in SEEDS:
        model = learner.train({name: value.copy() for name, value in start.items()}, training(seed=seed, **how)).model
        model = {name: np.array(value) for name, value in model.items()}
        loss = learner.evaluate({name: value.copy() for name, value in model.items()}, "test", {})["loss"]
        found.append((start, model, loss))
        start = model
    return found


@pytest.mark.parametrize("name", FURTHER | TRACED | TABLES)
def test_trainings_are_those_of_a_plain_loop(name):
    if name in TABLES:
        pytest.importorskip("pandas")
    spelling = (FURTHER | TRACED | TABLES)[name]
    again()
    all_found = trained(spelling)
    again()
    model, data = built(spelling), rows_of(spelling, 0)
    fresh = {key: value.clone() for key, value in model.named_buffers()}
    for seed, (start, found, loss) in zip(SEEDS, all_found):
        left = {key: value for key, value in fresh.items() if key not in start}
        expected = plain(spelling, model, 0, start, seed, left, data)
        for key, value in found.items():
            assert np.array_equal(value, expected[key], equal_nan=True), (seed, key)
        assert near(loss, measured(spelling, model, held_out(spelling), found, {}), name), seed


def test_there_are_enough_further_spellings():
    assert len(FURTHER) >= 70 and len(TRACED) >= 45 and len(FURTHER | TRACED | SPELLINGS) == len(FURTHER) + len(TRACED) + len(SPELLINGS)


class Counting(torch.utils.data.IterableDataset):
    """The same stream in every epoch, which are counted."""

    epoch = 0

    def __iter__(self):
        self.epoch += 1
        return zip(x(0), y(0))


def test_rows_are_as_before_until_the_first_training():
    data = Counting()
    train = torch.utils.data.DataLoader(data, 5)
    learner = rota.torch.Learner(nn.Linear(4, 3), F.cross_entropy, train, train, device="cpu")
    start = {name: value.copy() for name, value in learner.initial(0).items()}
    assert learner.rows().train == 12 and data.epoch == 0
    learner.evaluate(start, "test", {})
    learner.outputs(start, "test", {})
    assert data.epoch == 0
    learner.train(start, training(epochs=2, batch=5))
    assert data.epoch == 2
    # From then on it is as in a loop that measures.
    learner.evaluate(start, "test", {})
    assert data.epoch == 3


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"optimiser": lambda model, how: torch.optim.LBFGS(model.parameters())}, "LBFGS takes steps with a function.*derive from `rota.Learner`"),
        ({"scheduler": lambda optimiser, how: torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser)}, "gave ReduceLROnPlateau.*a `step` of your own"),
        ({"scheduler": lambda optimiser, how: None}, "gave NoneType.*such as ExponentialLR"),
        ({"optimiser": lambda model, how: None}, "gave NoneType, it must give a torch.optim.Optimizer"),
    ],
    ids=["a closure", "a plateau", "no schedule", "no optimiser"],
)
def test_steps_that_nobody_can_take_are_refused_in_words(options, why):
    learner = learner_of(Spelling(mlp(nn.ReLU)), **options)
    with pytest.raises(ValueError, match=why):
        learner.train({name: value.copy() for name, value in learner.initial(0).items()}, training())


def test_an_optimiser_that_needs_more_may_take_steps_by_hand():
    def step(optimiser, loss, model):
        loss.backward(retain_graph=True)
        optimiser.step(lambda: loss)

    spelling = Spelling(mlp(nn.ReLU), own=lambda model: torch.optim.LBFGS(model.parameters(), max_iter=1), by_hand=step)
    assert len(trained(spelling)) == 2
