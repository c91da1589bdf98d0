"""What is tried before the first round: said where it cannot be put back, and seeded where it draws."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from rota import _notes, _traces  # noqa: E402
from rota._iterators import NoCopy, copied, moved, place_of  # noqa: E402
from rota._traces import Traces  # noqa: E402
from torch import nn  # noqa: E402

from conftest import training  # noqa: E402
from plain import classes, draw, loader, values  # noqa: E402
from traced_spellings import ramp, row, within  # noqa: E402

torch.set_num_threads(1)
F = nn.functional
X, Y = draw(12, 4), classes(3, 12)


@pytest.fixture(autouse=True)
def notes_anew():
    _notes.again()


def learner(model, train=(X, Y), **options):
    return rota.torch.Learner(model, F.cross_entropy, train, (X, Y), device="cpu", **options)


class Asking(nn.Linear):
    """Asks something in every pass."""

    def __init__(self, asked):
        super().__init__(4, 3)
        self.asked = asked

    def forward(self, rows):
        self.asked()
        return super().forward(rows)


def test_a_running_generator_is_said_to_have_moved(capsys):
    begun, not_asked = ramp(), ramp()
    next(begun), next(not_asked)
    model = Asking(begun.__next__)
    model.other = not_asked
    learner(model)
    said = capsys.readouterr().err
    assert said.count("changed the running generator ramp: that cannot be put back") == 1 and said.count("note:") == 1


def test_what_begins_is_silent_and_as_before(capsys):
    steps = within()
    learner(Asking(steps.__next__))
    assert next(steps) == 0 and not capsys.readouterr().err


def test_a_cache_that_was_filled_is_said_to_be_empty(capsys):
    row.cache_clear()
    before = row(3).clone()
    learner(Asking(lambda: row(3)))
    assert torch.equal(row(3), before) and not capsys.readouterr().err
    learner(Asking(lambda: row(4)))
    assert row.cache_info().currsize == 0
    assert "the cache of row was filled before the first round, and is empty again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda: np.zeros(400), "a ndarray of the shape (400,)"),
        (lambda: torch.zeros(400), "a Tensor of the shape (400,)"),
        (lambda: [[0] for _ in range(400)], "a list of 400 elements"),
        (lambda: [np.zeros(1) for _ in range(400)], "a list of 400 elements"),
        (lambda: {nth: torch.zeros(1) for nth in range(400)}, "a dict of 400 elements"),
    ],
)
@pytest.mark.parametrize("change", [True, False])
def test_what_is_too_large_is_said_where_it_changed(made, name, change, monkeypatch, capsys):
    monkeypatch.setattr(_traces, "_TOGETHER", 100)
    for module in ("rota._traces", "rota._reach"):
        monkeypatch.setattr(f"{module}.ELEMENTS", 100)
    state = made()

    def count():
        one = state if isinstance(state, (np.ndarray, torch.Tensor)) else state[7]
        if change:
            one[0] += 1

    learner(Asking(count))
    assert capsys.readouterr().err.count(f"changed {name}") == change


def test_more_objects_than_are_looked_at_are_said(monkeypatch, capsys):
    for module in ("rota._traces", "rota._reach"):
        monkeypatch.setattr(f"{module}.MOST", 10)
    learner(Asking(lambda: 0), loader(torch.utils.data.TensorDataset(X, Y), 5))
    assert "more than 10 objects belong to the model" in capsys.readouterr().err


def test_two_places_of_an_iterator_have_one_copy():
    count, known = itertools.count(3), {}
    held = [count, count.__next__]
    with Traces([held]):
        assert held[0] is not count and [next(held[0]), held[1](), next(held[0])] == [3, 4, 5]
    assert held[0] is count and next(count) == 3
    assert copied(count, known) is copied((1, count), known)[1]


def test_an_iterator_that_is_asked_elsewhere_has_moved():
    for made in (itertools.count(), itertools.cycle([1, 2]), iter([1, 2, 3]), iter(range(3)), enumerate("abc"), zip([1, 2, 3]), ramp()):
        place = place_of(made)
        assert not moved(place, place_of(made))
        next(made)
        assert moved(place, place_of(made)), made
    begun = ramp()
    next(begun)
    with pytest.raises(NoCopy):
        copied(begun, {})


# The same question, the same answer.

GENERATOR = torch.Generator().manual_seed(5)


class Drawing:
    draws = np.random.default_rng(3)


def noise_of_a_closure():
    draws = torch.Generator().manual_seed(5)
    return lambda shape: torch.randn(shape, generator=draws)


NOISE = {
    "a closure": noise_of_a_closure(),
    "a global": lambda shape: torch.randn(shape, generator=GENERATOR),
    "a class": lambda shape: torch.from_numpy(Drawing.draws.normal(size=tuple(shape))).float(),
    "a module": lambda shape: torch.randn(shape, generator=__import__("test_traces").GENERATOR),
}


@pytest.mark.parametrize("where", NOISE)
@pytest.mark.parametrize("what", ["step", "optimiser", "scheduler"])
def test_generators_of_steps_begin_anew_with_every_question(what, where):
    noise = NOISE[where]

    def step(optimiser, loss, model):
        loss.backward()
        for value in model.parameters():
            value.grad += 0.1 * noise(value.shape)
        optimiser.step()

    def optimiser(model, how):
        return torch.optim.SGD(model.parameters(), lr=0.1 + float(noise((1,)).abs()))

    def scheduler(optimiser, how):
        return torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: float(noise((1,)).abs()))

    found = learner(nn.Linear(4, 3), **{what: {"step": step, "optimiser": optimiser, "scheduler": scheduler}[what]})
    start = values(found)
    first = found.train(start, training(seed=3)).model["weight"]
    assert np.array_equal(found.train(start, training(seed=3)).model["weight"], first)
    assert not np.array_equal(found.train(start, training(seed=4)).model["weight"], first)
