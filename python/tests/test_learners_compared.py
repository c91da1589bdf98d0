"""What programs compute, compared with the proposer's before the first round: also where outputs are drawn at
random and where rows have other dimensions. What is not compared is said."""

import json
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from torch import nn  # noqa: E402

from conftest import EXAMPLES, external, scenario  # noqa: E402
from plain import classes, draw, values  # noqa: E402

torch.set_num_threads(1)
F = nn.functional

NOT_COMPARED = "it was not compared what the program"


def learner_of(model, shape=(3, 4), targets=None, **options):
    data = (draw(10, *shape), draw(10, 1) if targets is None else targets)
    loss = F.mse_loss if targets is None else F.cross_entropy
    return rota.torch.Learner(model, loss, data, data, device="cpu", **options)


def federation(*makes):
    """A simulation in which each silo has a program of its own."""
    task = external(makes[0](None))
    make = lambda silo: makes[silo.place](silo)  # noqa: E731
    return rota.simulate(scenario(task, rounds=1, silos=len(makes)), learner=make, references=False)


# Outputs that are drawn at random, although nothing is trained.


class Drawing(nn.Module):
    """Draws in the middle, in one of many ways."""

    def __init__(self, kind, between=torch.tanh):
        super().__init__()
        torch.manual_seed(4)
        self.first, self.second = nn.Linear(12, 5), nn.Linear(5, 1)
        self.kind, self.between = kind, between

    def forward(self, x):
        inner = self.between(self.first(x.flatten(1)))
        return self.second(KINDS[self.kind](inner))


KINDS = {
    "dropout left on": lambda x: F.dropout(x, 0.5, training=True),
    "channels dropped": lambda x: F.dropout1d(x[:, :, None], 0.5, training=True)[:, :, 0],
    "noise": lambda x: x + torch.randn(len(x), 5),
    "noise like it": lambda x: x + 0.3 * torch.randn_like(x),
    "noise in place": lambda x: x + torch.empty_like(x).normal_(0.0, 0.2),
    "uniform": lambda x: x * torch.rand(5),
    "a distribution": lambda x: torch.distributions.Normal(x, 0.1).sample(),
    "means and deviations": lambda x: torch.normal(x, torch.full_like(x, 0.2)),
    "chances": lambda x: x * torch.bernoulli(torch.full_like(x, 0.7)),
    "one of them": lambda x: x * F.one_hot(torch.multinomial(x.softmax(-1), 1)[:, 0], 5),
    "by Gumbel": lambda x: F.gumbel_softmax(x, hard=False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_outputs_are_compared_with_the_means_of_draws(kind, capsys):
    one, same, other = (learner_of(Drawing(kind, between)) for between in (torch.tanh, torch.tanh, F.relu))
    model = values(one)
    inputs, outputs = one.tried(model)
    assert "drawn at random also where nothing is trained" in capsys.readouterr().err
    assert len(outputs) == 2 and np.isfinite(outputs).all()
    torch.manual_seed(99)
    further, again = same.tried(model)
    assert list(further) == list(inputs) and np.array_equal(again, outputs)
    assert not np.allclose(other.tried(model)[1], outputs, rtol=0.02)
    # What is drawn afterwards is as random as before.
    assert not torch.equal(F.dropout(torch.ones(99), 0.5), F.dropout(torch.ones(99), 0.5))


def test_dropout_that_is_left_on_is_the_network_without_it():
    model = values(learner_of(Drawing("dropout left on")))
    KINDS["nothing"] = lambda x: x
    try:
        plain = learner_of(Drawing("nothing")).tried(model)[1]
    finally:
        del KINDS["nothing"]
    assert np.array_equal(learner_of(Drawing("dropout left on")).tried(model)[1], plain)


def test_a_program_that_draws_and_has_another_network_is_refused():
    first = lambda silo: learner_of(Drawing("dropout left on"), silo=silo)  # noqa: E731
    assert not federation(first, first)["training_failed"]
    with pytest.raises(rota.RotaError, match='"silo 2": its program computes something else'):
        federation(first, lambda silo: learner_of(Drawing("dropout left on", F.relu), silo=silo))


def test_a_compiled_module_that_draws_is_compared_too():
    model = Drawing("dropout left on")
    plain = learner_of(model)
    compiled = learner_of(torch.compile(Drawing("dropout left on"), backend="eager"))
    start = values(plain)
    assert np.allclose(compiled.tried(start)[1], plain.tried(start)[1], rtol=1e-5)


class DrawingElsewhere(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(12, 1)

    def forward(self, x):
        return self.dense(x.flatten(1)) + float(np.random.default_rng().normal())


def test_outputs_drawn_elsewhere_are_reported_and_not_compared(capsys):
    learner = learner_of(DrawingElsewhere())
    inputs, outputs = learner.tried(values(learner))
    assert len(inputs) == len(outputs) == 0
    assert "its outputs are drawn at random" in capsys.readouterr().err
    plain = lambda silo: learner_of(Drawing("nothing").first, (12,), draw(10, 5).softmax(1), silo=silo)  # noqa: E731
    drawn = lambda silo: learner_of(Noisy(), (12,), draw(10, 5).softmax(1), silo=silo)  # noqa: E731
    notes = federation(plain, drawn)["notes"]
    assert any(NOT_COMPARED in note and "silo 2" in note for note in notes)


class Noisy(nn.Linear):
    def __init__(self):
        super().__init__(12, 5)

    def forward(self, x):
        return super().forward(x) + float(np.random.default_rng().normal())


# Rows of other dimensions.


def pooled(between):
    torch.manual_seed(5)
    return nn.Sequential(nn.Conv2d(1, 3, 3), between, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 2))


def convolved(between):
    torch.manual_seed(5)
    return nn.Sequential(nn.Conv1d(3, 4, 3), between, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(4, 2))


class Series(nn.Module):
    """Steps of any number, each of three values."""

    def __init__(self, between):
        super().__init__()
        torch.manual_seed(5)
        self.inner, self.between, self.out = nn.Linear(3, 4), between, nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.between(self.inner(x)).mean(1))


class Pixels(nn.Module):
    """A class for each pixel."""

    def __init__(self, between):
        super().__init__()
        torch.manual_seed(5)
        self.inner, self.between, self.out = nn.Conv2d(1, 3, 3, padding=1), between, nn.Conv2d(3, 2, 1)

    def forward(self, x):
        return self.out(self.between(self.inner(x)))


SIZES = {
    "images": (pooled, (1, 20, 20), (1, 24, 28)),
    "images larger than the made-up ones": (pooled, (1, 40, 40), (1, 64, 48)),
    "signals": (convolved, (3, 50), (3, 70)),
    "series": (Series, (12, 3), (9, 3)),
    "pixels": (Pixels, (1, 12, 12), (1, 20, 12)),
}


@pytest.mark.parametrize("kind", SIZES)
def test_programs_with_rows_of_other_dimensions_are_compared(kind):
    make, mine, theirs = SIZES[kind]

    def of(shape, between):
        targets = classes(2, 10, *(shape[1:] if kind == "pixels" else ()))
        return lambda silo: learner_of(make(between()), shape, targets, silo=silo)

    found = federation(of(mine, nn.Tanh), of(theirs, nn.Tanh))
    assert not any(NOT_COMPARED in note for note in found["notes"])
    with pytest.raises(rota.RotaError, match='"silo 2": its program computes something else'):
        federation(of(mine, nn.Tanh), of(theirs, nn.Sigmoid))


def test_a_network_of_one_size_is_compared_on_its_own_size():
    fixed = lambda silo: learner_of(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 2)), (1, 8, 8), classes(2, 10), silo=silo)  # noqa: E731
    learner = fixed(None)
    inputs, outputs = learner.tried(values(learner))
    assert list(inputs) == [4, 2, 1, 8, 8, 1, 2] and len(outputs) == 4


# Programs that make up no batch.


class WithoutTrial(rota.Learner):
    """A learner of one's own with the tensors of a module, and no method `tried`."""

    def __init__(self, inner):
        self._inner = inner

    def tensors(self):
        return self._inner.tensors()

    def rows(self):
        return self._inner.rows()

    def train(self, start, training):
        return self._inner.train(start, training)

    def evaluate(self, model, split, personal):
        return self._inner.evaluate(model, split, personal)


def test_a_learner_without_made_up_batch_is_reported_uncompared():
    plain = lambda silo: learner_of(nn.Sequential(nn.Flatten(), nn.Linear(12, 1)), silo=silo)  # noqa: E731
    own = lambda silo: WithoutTrial(plain(silo))  # noqa: E731
    notes = federation(plain, own, plain)["notes"]
    assert [note for note in notes if NOT_COMPARED in note and '"silo 2"' in note]
    # Where the proposer's program gave no outputs there is nothing to compare with.
    assert not any(NOT_COMPARED in note for note in federation(own, own)["notes"])


def test_linear_models_of_scikit_learn_are_compared():
    linear = pytest.importorskip("sklearn.linear_model")
    sklearn = pytest.importorskip("rota.sklearn")
    x, y = draw(40, 3).numpy(), (draw(40, seed=3) > 0).numpy().astype(int)

    def learner(order):
        return lambda silo: sklearn.Learner(linear.SGDClassifier(loss="log_loss"), (x, y), (x, y), classes=order)

    model = {"coef": np.array([[1.0, 2.0, 3.0]], np.float32), "intercept": np.array([0.5], np.float32)}
    inputs, outputs = learner([0, 1])(None).tried(model)
    made = np.cos(1.0 + 1.3 * np.arange(6.0)).reshape(2, 3)
    assert list(inputs) == [2, 2, 3, 1, 2] and np.allclose(outputs, made @ [1, 2, 3] + 0.5, atol=1e-6)
    assert not any(NOT_COMPARED in note for note in federation(learner([0, 1]), learner([0, 1]))["notes"])


def test_a_program_says_that_it_can_be_asked_what_it_computes(tmp_path):
    """Also a learner that makes up no batch, which answers with nothing, so that the silo says it."""
    process = subprocess.Popen(
        [sys.executable, EXAMPLES / "two_arrays.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )

    def ask(**request):
        body = json.dumps(request).encode()
        process.stdin.write(len(body).to_bytes(4, "little") + body)
        process.stdin.flush()
        return json.loads(process.stdout.read(int.from_bytes(process.stdout.read(4), "little")))

    ask(type="hello", protocol=1, program="a test", folder=str(tmp_path))
    opened = ask(type="open", silo=0, name="n", silos=2, seed=1, layout=[], rows=None)
    assert "try" in opened["capabilities"]
    start, into = str(tmp_path / "start"), str(tmp_path / "into")
    rota.write_tensors(start, {"weight": np.zeros(3), "bias": np.zeros(1)})
    assert ask(type="try", silo=0, model=start, into=into) == {"type": "done"}
    assert {name: len(value) for name, value in rota.read_tensors(into).items()} == {"inputs": 0, "outputs": 0}
    process.stdin.close()
    assert process.wait(30) == 0
    process.stdout.close()
    process.stderr.close()
