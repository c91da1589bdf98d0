"""Optimisers, schedules, clipping, accumulation and steps of the institution's own, beside plain loops."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from rota import _notes  # noqa: E402
from torch import nn  # noqa: E402

from conftest import external, scenario, silo, training  # noqa: E402
from plain import classes, draw, values  # noqa: E402

torch.set_num_threads(1)
F = nn.functional
X, Y = draw(12, 4), classes(3, 12)
SIZE = 5


@pytest.fixture(autouse=True)
def notes_anew():
    _notes.again()


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def learner(**options):
    return rota.torch.Learner(network(), F.cross_entropy, (X, Y), (X, Y), device="cpu", **options)


def plain(optimiser_of, *, schedule=None, clip=None, accumulate=1, epochs=2, seed=7, scale=None):
    model = network()
    optimiser = optimiser_of(model)
    rates = schedule(optimiser) if schedule else None
    order = torch.Generator().manual_seed(seed)
    steps = 0
    for _ in range(epochs):
        waiting = 0
        batches = torch.randperm(12, generator=order).split(SIZE)
        for nth, some in enumerate(batches):
            if waiting == 0:
                optimiser.zero_grad()
            (F.cross_entropy(model(X[some]), Y[some]) / accumulate).backward()
            waiting += 1
            if waiting == accumulate or nth == len(batches) - 1:
                if clip is not None:
                    nn.utils.clip_grad_norm_(model.parameters(), clip)
                optimiser.step()
                steps, waiting = steps + 1, 0
                if rates is not None:
                    rates.step()
    return {name: value.detach().numpy().copy() for name, value in model.named_parameters()}, steps


def same(found, expected):
    expected, steps = expected
    assert found.metrics["steps"] == steps
    for name, value in expected.items():
        assert np.array_equal(found.model[name], value), name


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


OPTIMISERS = {
    "AdamW": lambda model: torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.2),
    "RMSprop": lambda model: torch.optim.RMSprop(model.parameters(), lr=0.1),
    "Adagrad": lambda model: torch.optim.Adagrad(model.parameters(), lr=0.1),
    "Nesterov": lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True),
    "groups": lambda model: torch.optim.SGD([{"params": model[0].parameters(), "lr": 0.01}, {"params": model[2].parameters()}], lr=0.1),
    "PyTorch's own decay": lambda model: torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_optimiser_of_ones_own_is_that_of_the_plain_loop(name, capsys):
    make = OPTIMISERS[name]
    found = learner(optimiser=lambda model, training: make(model))
    for _ in range(2):
        same(found.train(values(found), training(batch=SIZE, epochs=2)), plain(make))
    assert capsys.readouterr().err.count("of its own, and not with the agreed sgd") == 1


def test_the_agreed_rate_and_round_reach_a_custom_optimiser():
    def make(model, how):
        return torch.optim.SGD(model.parameters(), lr=how.rate / how.round)

    found = learner(optimiser=make)
    same(found.train(values(found), training(batch=SIZE, epochs=2, rate=0.4, round=4)), plain(sgd))


SCHEDULES = {
    "exponential": lambda optimiser: torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.5),
    "cosine": lambda optimiser: torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 6),
    "one cycle": lambda optimiser: torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.5, total_steps=10),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_goes_on_after_every_step(name):
    schedule = SCHEDULES[name]
    found = learner(scheduler=lambda optimiser, training: schedule(optimiser))
    same(found.train(values(found), training(batch=SIZE, epochs=2)), plain(sgd, schedule=schedule))


@pytest.mark.parametrize("more", [{"clip": 0.1}, {"accumulate": 2}, {"accumulate": 5}, {"clip": 0.1, "accumulate": 2}])
def test_clipping_and_accumulation_are_those_of_the_plain_loop(more):
    found = learner(**more)
    same(found.train(values(found), training(batch=SIZE, epochs=2)), plain(sgd, **more))


def test_a_step_by_hand_is_all_that_is_done():
    scaler = torch.amp.GradScaler("cpu", enabled=False) if hasattr(torch.amp, "GradScaler") else None

    def step(optimiser, loss, model):
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        if scaler is None:
            optimiser.step()
        else:
            scaler.step(optimiser)
            scaler.update()

    found = learner(step=step)
    same(found.train(values(found), training(batch=SIZE, epochs=2)), plain(sgd, clip=0.1))
    assert not found.gradients


def test_what_cannot_take_steps_is_refused_with_what_can():
    model = network()
    for options, why in [
        ({"optimiser": torch.optim.SGD(model.parameters(), lr=0.1)}, "`optimiser` is SGD, .*lambda model, training"),
        ({"scheduler": "cosine"}, "`scheduler` is str"),
        ({"clip": 0.0}, "`clip` is 0.0"),
        ({"accumulate": 0}, "`accumulate` is 0"),
        ({"step": lambda *_: None, "clip": 1.0}, "`step` takes the place of `clip`"),
        ({"optimiser": lambda *_: None, "keep": "sgd"}, "`keep` goes with the agreed optimiser"),
    ]:
        with pytest.raises(ValueError, match=why):
            learner(**options)
    found = learner(optimiser=lambda model, training: model)
    with pytest.raises(ValueError, match="`optimiser` gave Sequential"):
        found.train(values(found), training())


def test_strategies_changing_gradients_reach_a_custom_optimiser():
    modifier = rota.Modifier(mu=0.5, anchor={"0.weight": np.ones((8, 4), np.float32)}, shift={}, frozen=frozenset({"2.bias"}))
    own = learner(optimiser=lambda model, training: sgd(model))
    agreed = learner()
    one, two = (found.train(values(found), training(batch=SIZE, modifier=modifier)) for found in (own, agreed))
    assert all(np.array_equal(one.model[name], two.model[name]) for name in one.model)


def test_a_step_by_hand_is_refused_where_gradients_are_changed():
    def make(silo):
        return rota.torch.Learner(network(), F.cross_entropy, (X, Y), (X, Y), silo=silo, device="cpu", step=lambda *_: None)

    strategy = {"name": "fedprox", "training": {"epochs": 1, "batch": 0, "optimiser": {"name": "sgd", "rate": 0.1}}}
    with pytest.raises(rota.RotaError, match="modified gradient"):
        rota.simulate(scenario(external(make(silo())), strategy=strategy), learner=make, references=False)


def test_a_training_knows_its_round():
    seen = []

    def make(silo):
        found = learner(silo=silo)
        plain_train = found.train

        def train(start, how):
            seen.append(how.round)
            return plain_train(start, how)

        found.train = train
        return found

    task = external(copy.copy(learner()))
    rota.simulate(scenario(task, rounds=3, silos=2), learner=make, references=False)
    assert seen == [1, 1, 2, 2, 3, 3]


# Gradients that a step by hand leaves for the next batch.


def by_turns(turns, *, zeroes=True, scale=1.0, do=lambda optimiser: optimiser.step()):
    """A step that adds up the gradients of so many batches."""
    count = 0

    def step(optimiser, loss, model):
        nonlocal count
        (loss * scale / turns).backward()
        count += 1
        if count % turns == 0:
            do(optimiser)
            if zeroes:
                optimiser.zero_grad()

    return step


def by_data(optimiser):
    for group in optimiser.param_groups:
        for value in group["params"]:
            value.data = value.data - group["lr"] * value.grad


def by_numbers(optimiser):
    for group in optimiser.param_groups:
        for value in group["params"]:
            value.data.sub_(group["lr"] * value.grad)


@pytest.mark.parametrize("zeroes", [True, False])
@pytest.mark.parametrize("do", [lambda optimiser: optimiser.step(), by_data, by_numbers], ids=["step", "data", "numbers"])
@pytest.mark.parametrize("turns", [1, 2, 3])
def test_gradients_that_a_step_adds_up_are_those_of_the_plain_loop(turns, do, zeroes, capsys):
    found = learner(step=by_turns(turns, zeroes=zeroes, do=do))
    # Without zeroing a plain loop would add up for good: here they are zero after a step.
    model, step = network(), by_turns(turns, do=do)
    optimiser, order = sgd(model), torch.Generator().manual_seed(7)
    for _ in range(2):
        for some in torch.randperm(12, generator=order).split(SIZE):
            step(optimiser, F.cross_entropy(model(X[some]), Y[some]), model)
    expected = {name: value.detach().numpy().copy() for name, value in model.named_parameters()}
    same(found.train(values(found), training(batch=SIZE, epochs=2)), (expected, 6 // turns))
    assert "waited for a step" not in capsys.readouterr().err


def test_gradients_that_wait_in_vain_are_reported_once(capsys):
    found = learner(step=by_turns(4))
    # Six batches of a training, and those of the next one go on counting.
    assert [found.train(values(found), training(batch=SIZE, epochs=2)).metrics["steps"] for _ in range(3)] == [1, 2, 1]
    assert capsys.readouterr().err.count("waited for a step that did not come: they are left out; `accumulate=`") == 1


def test_gradients_that_are_no_numbers_do_not_wait():
    """As a scaler of mixed precision passes them over."""
    count = 0

    def step(optimiser, loss, model):
        nonlocal count
        count += 1
        (loss * (float("inf") if count == 1 else 1.0)).backward()
        if all(bool(value.grad.isfinite().all()) for value in model.parameters()):
            optimiser.step()

    found = learner(step=step)
    update = found.train(values(found), training(batch=SIZE, epochs=2))
    assert update.metrics["steps"] == 5 and all(np.isfinite(value).all() for value in update.model.values())


def test_a_schedule_goes_on_after_steps_that_were_taken():
    schedule = SCHEDULES["exponential"]
    found = learner(step=by_turns(2), scheduler=lambda optimiser, training: schedule(optimiser))
    same(found.train(values(found), training(batch=4, epochs=2)), plain_of_four(schedule))


def plain_of_four(schedule):
    model = network()
    optimiser, order = sgd(model), torch.Generator().manual_seed(7)
    rates, step = schedule(optimiser), by_turns(2)
    batches = [some for _ in range(2) for some in torch.randperm(12, generator=order).split(4)]
    for nth, some in enumerate(batches):
        step(optimiser, F.cross_entropy(model(X[some]), Y[some]), model)
        if nth % 2:
            rates.step()
    return {name: value.detach().numpy().copy() for name, value in model.named_parameters()}, 3
