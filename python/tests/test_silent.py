"""What once differed from a plain loop without a word: each is either the same now, or said."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from rota import _notes  # noqa: E402
from torch import nn  # noqa: E402

from conftest import external, scenario, silo, training  # noqa: E402
from plain import classes, draw, loader, values  # noqa: E402

torch.set_num_threads(1)
F = nn.functional
X, Y = draw(12, 4), classes(3, 12)


@pytest.fixture(autouse=True)
def notes_anew():
    _notes.again()


def learner(model, train=(X, Y), loss=F.cross_entropy, **options):
    return rota.torch.Learner(model, loss, train, train, device="cpu", **options)


# Layers by depth.


class Parts(nn.Module):
    """Layers in one order of definition, applied in another."""

    def __init__(self, order, forward):
        super().__init__()
        sides = {"stem": (4, 8), "body": (8, 8), "head": (8, 3), "decoder": (8, 4), "aux": (8, 3)}
        for name in order:
            setattr(self, name, nn.Linear(*sides[name]))
        self.steps = forward

    def forward(self, rows):
        return self.steps(self, rows)


def plain_steps(own, rows):
    return own.head(own.body(own.stem(rows).relu()).relu())


def with_unused_aux(own, rows):
    found = plain_steps(own, rows)
    own.aux(own.stem(rows))
    return found


def functional(own, rows):
    hidden = F.linear(rows, own.stem.weight, own.stem.bias).relu()
    return F.linear(F.linear(hidden, own.body.weight, own.body.bias).relu(), own.head.weight, own.head.bias)


def repeated(own, rows):
    hidden = own.stem(rows)
    for _ in range(3):
        hidden = own.body(hidden).tanh()
    return own.head(hidden)


def layers(found):
    names = [tensor.name.rpartition(".")[0] for tensor in found.tensors() if tensor.role != "buffer"]
    return list(dict.fromkeys(names))


@pytest.mark.parametrize(
    ("order", "steps"),
    [
        (["stem", "body", "head"], plain_steps),
        (["head", "body", "stem"], plain_steps),
        (["body", "head", "stem"], functional),
        (["head", "stem", "body"], repeated),
        (["head", "body", "stem", "decoder"], plain_steps),
        (["stem", "body", "head", "decoder"], plain_steps),
        (["head", "stem", "body", "aux"], with_unused_aux),
    ],
)
def test_layers_come_in_the_order_in_which_they_are_applied(order, steps):
    found = layers(learner(Parts(order, steps)))
    assert found[-3:] == ["stem", "body", "head"], found


def test_recurrent_tied_and_compiled_modules_have_their_order():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.head, self.cell = nn.Linear(6, 3), nn.LSTMCell(4, 6)

        def forward(self, rows):
            state = None
            found = 0
            for _ in range(2):
                state = self.cell(rows, state)
                found = found + self.head(state[0])
            return found

    assert layers(learner(Recurrent())) == ["cell", "head"]
    model = Parts(["head", "stem", "body"], plain_steps)
    model.body.weight.requires_grad_(False)
    assert layers(learner(model))[-1] == "head"


def personal_of(model, strategy, tmp=None, **options):
    """The tensors that FedPer, or another strategy, leaves with the silos: those whose final values differ."""

    def make(silo):
        torch.manual_seed(0)
        data = (draw(12, 4, seed=silo.place), classes(3, 12, seed=silo.place))
        return rota.torch.Learner(model(), F.cross_entropy, data, data, silo=silo, device="cpu")

    task = external(make(silo()))
    summary = rota.simulate(
        scenario(task, rounds=2, silos=2, strategy={"name": strategy, "training": {"epochs": 1, "batch": 0, "optimiser": {"name": "sgd", "rate": 0.1}}}),
        learner=make, references=False, keep="models",
    )
    one, other = (summary.model(f"silo {nth}") for nth in (1, 2))
    return {name for name in one if not np.array_equal(one[name], other[name])}


@pytest.mark.parametrize("order", [["stem", "body", "head"], ["head", "body", "stem"], ["head", "stem", "body", "decoder"]])
def test_fedper_keeps_the_last_layer_in_any_order_of_definition(order):
    assert personal_of(lambda: Parts(order, plain_steps), "fedper") == {"head.weight", "head.bias"}


class Normed(nn.Module):
    """A normalisation with another name, and dense layers with names of normalisations."""

    def __init__(self):
        super().__init__()
        self.norm_proj, self.ln, self.bneck, self.head = nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, rows):
        return self.head(self.bneck(self.ln(self.norm_proj(rows))).relu())


def test_fedbn_keeps_norm_layers_by_their_type():
    assert personal_of(Normed, "fedbn") == {"ln.weight", "ln.bias"}


class RMSNorm(nn.Module):
    """As models of text write it themselves."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, rows):
        return self.weight * rows / (rows.square().mean(-1, keepdim=True) + 1e-6).sqrt()


class NormedLinear(nn.Linear):
    """Normalises its weights, and is no normalisation of features."""


@pytest.mark.parametrize(
    ("layer", "is_norm"),
    [
        (nn.BatchNorm1d(8), True),
        (nn.LayerNorm(8), True),
        (nn.GroupNorm(2, 8), True),
        (RMSNorm(8), True),
        (nn.Sequential(nn.LayerNorm(8)), True),
        (NormedLinear(8, 8), False),
        (nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)), False),
        (nn.PReLU(8), False),
    ],
)
def test_norm_layers_are_said_by_type(layer, is_norm):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.part, self.head = nn.Linear(4, 8), layer, nn.Linear(8, 3)

        def forward(self, rows):
            return self.head(self.part(self.stem(rows)))

    said = {tensor.name: tensor.norm for tensor in learner(Model()).tensors()}
    assert {bool(norm) for name, norm in said.items() if name.startswith("part")} == {is_norm}
    assert not any(said[name] for name in said if name.startswith(("stem", "head")))


# Buffers.


def test_trained_counters_and_flags_travel_and_others_stay():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense, self.norm = nn.Linear(4, 3), nn.BatchNorm1d(4)
            self.register_buffer("steps", torch.tensor(0))
            self.register_buffer("begun", torch.tensor(False))
            self.register_buffer("fixed", torch.tensor([1, 2]))
            self.register_buffer("last", torch.zeros(4), persistent=False)

        def forward(self, rows):
            if self.training:
                self.steps += 1
                self.begun.fill_(True)
                self.last.copy_(rows.mean(0).detach())
            return self.dense(self.norm(rows) * self.fixed[0])

    found = learner(Model())
    names = [tensor.name for tensor in found.tensors()]
    assert {"steps", "begun", "last"} <= set(names) and "fixed" not in names
    # The counter of batches matters to nobody, because the layer has a momentum.
    assert "norm.num_batches_tracked" not in names
    update = found.train(values(found), training(batch=4))
    assert update.model["steps"] == 3 and update.model["begun"] == 1
    # A mean over silos of which one has seen no batch.
    mean = {name: np.array(value) for name, value in update.model.items()} | {"steps": np.float32(2.6), "begun": np.float32(0.5)}
    assert found.train(mean, training(batch=0)).model["steps"] == 4


def test_a_counter_beyond_integers_of_floats_is_refused_by_name():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense = nn.Linear(4, 3)
            self.register_buffer("seen", torch.tensor(1 << 25))

        def forward(self, rows):
            self.seen += self.training
            return self.dense(rows)

    with pytest.raises(ValueError, match="the buffer 'seen' is of whole numbers above 2\\^24"):
        learner(Model())


def test_a_late_counter_is_reported_and_travels_where_named():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense, self.calls = nn.Linear(4, 3), 0
            self.register_buffer("late", torch.tensor(0))

        def forward(self, rows):
            self.calls += self.training
            if self.calls > 4:
                self.late += 1
            return self.dense(rows)

    found = learner(Model())
    with pytest.raises(ValueError, match="changed the buffer 'late'.*buffers=\\['late'\\]"):
        found.train(values(found), training(batch=1))
    named = learner(Model(), buffers=["late"])
    assert named.train(values(named), training(batch=1)).model["late"] > 0


def test_an_exported_model_has_its_counters(tmp_path):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense = nn.Linear(4, 3)
            self.register_buffer("steps", torch.tensor(0))

        def forward(self, rows):
            self.steps += self.training
            return self.dense(rows)

    found = learner(Model())
    rota.write_tensors(tmp_path / "m.safetensors", found.train(values(found), training(batch=6)).model)
    assert rota.torch.load(Model(), tmp_path / "m.safetensors").steps == 2


# The trial.

SEEN = {"loss": 0}


def test_the_trial_leaves_no_trace_in_module_loss_or_elsewhere():
    outside = []

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense, self.calls, self.flag, self.history = nn.Linear(4, 3), 0, False, {"rows": []}
            self.memory = torch.zeros(2)

        def forward(self, rows):
            self.calls, self.flag = self.calls + 1, True
            self.history["rows"].append(len(rows))
            self.memory += 1
            self.late = 5
            outside.append(1)
            with torch.no_grad():
                self.dense.bias += 1.0
            return self.dense(rows)

    count = 0

    def loss(outputs, targets):
        nonlocal count
        count += 1
        SEEN["loss"] += 1
        return F.cross_entropy(outputs, targets)

    model = Model()
    bias = model.dense.bias.detach().clone()
    found = learner(model, loss=loss)
    assert torch.equal(model.dense.bias, bias)
    # Nor do measurements before the first training.
    found.tried(values(found))
    found.evaluate(values(found), "test", {})
    assert (model.calls, model.flag, model.history, count, outside, SEEN) == (0, False, {"rows": []}, 0, [], {"loss": 0})
    assert not hasattr(model, "late") and not model.memory.any()
    found.train(values(found), training(batch=4))
    assert (model.calls, count, model.memory[0]) == (3, 3, 3)
    # From then on it is as in a loop that measures.
    found.evaluate(values(found), "test", {})
    assert model.calls == 4
    SEEN["loss"] = 0


def test_parameters_that_the_first_pass_makes_are_refused():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense, self.scale = nn.Linear(4, 3), None

        def forward(self, rows):
            if self.scale is None:
                self.scale = nn.Parameter(torch.ones(rows.shape[1]))
            return self.dense(rows * self.scale)

    with pytest.raises(ValueError, match="the first pass makes the parameter 'scale'.*call the model once"):
        learner(Model())
    model = Model()
    model(X)
    assert "scale" in values(learner(model))


def test_buffers_and_layers_made_in_the_first_pass_are_refused():
    class Model(nn.Module):
        def __init__(self, what):
            super().__init__()
            self.dense, self.what = nn.Linear(4, 3), what

        def forward(self, rows):
            if self.what == "buffer" and "mean" not in self._buffers:
                self.register_buffer("mean", rows.mean(0).detach())
            if self.what == "layer" and not hasattr(self, "more"):
                self.more = nn.Linear(4, 4)
            return self.dense(self.more(rows) if self.what == "layer" else rows - self.mean)

    for what in ("buffer", "layer"):
        with pytest.raises(ValueError, match="the first pass makes"):
            learner(Model(what))


# Weights of silos.


@pytest.mark.parametrize(
    "sampler",
    [
        lambda rows: torch.utils.data.WeightedRandomSampler(torch.ones(12), 12),
        lambda rows: torch.utils.data.WeightedRandomSampler(1.0 + Y, 36),
        lambda rows: torch.utils.data.WeightedRandomSampler(torch.ones(12), 4),
        lambda rows: torch.utils.data.RandomSampler(rows, replacement=True),
        lambda rows: torch.utils.data.RandomSampler(rows, num_samples=5),
    ],
)
def test_a_silo_weighs_its_data_set_whatever_its_sampler_draws(sampler, capsys):
    rows = torch.utils.data.TensorDataset(X, Y)
    train = torch.utils.data.DataLoader(rows, 4, sampler=sampler(rows))
    found = rota.torch.Learner(nn.Linear(4, 3), F.cross_entropy, train, (X, Y), device="cpu")
    assert found.rows().train == found.train(values(found), training()).samples == 12
    assert "weighs the 12 rows of the data set" in capsys.readouterr().err


def test_a_part_of_a_data_set_weighs_its_rows():
    rows = torch.utils.data.TensorDataset(X, Y)
    train = torch.utils.data.DataLoader(rows, 4, sampler=torch.utils.data.SubsetRandomSampler([1, 3, 5, 7]))
    found = rota.torch.Learner(nn.Linear(4, 3), F.cross_entropy, train, (X, Y), device="cpu")
    assert found.rows().train == found.train(values(found), training()).samples == 4


# The same question, the same answer.


class Noise(nn.Module):
    def __init__(self, draw):
        super().__init__()
        self.dense, self.draw = nn.Linear(4, 3), draw

    def forward(self, rows):
        if isinstance(self.draw, torch.Generator):
            noise = torch.randn(rows.shape, generator=self.draw)
        elif isinstance(self.draw, (np.random.Generator, np.random.RandomState)):
            noise = torch.from_numpy(self.draw.normal(size=tuple(rows.shape))).float()
        else:
            noise = torch.tensor([[self.draw.random() for _ in range(4)]])
        return self.dense(rows + noise)


@pytest.mark.parametrize(
    "made",
    [lambda: torch.Generator(), lambda: np.random.default_rng(), lambda: np.random.RandomState(), lambda: __import__("random").Random()],
)
def test_generators_of_a_module_begin_anew_with_every_question(made):
    found = learner(Noise(made()), compared=False)
    start = values(found)
    first = found.train(start, training(seed=3)).model["dense.weight"]
    measured = found.evaluate(start, "test", {})
    assert np.array_equal(found.train(start, training(seed=3)).model["dense.weight"], first)
    assert found.evaluate(start, "test", {}) == measured
    assert not np.array_equal(found.train(start, training(seed=4)).model["dense.weight"], first)


class Shuffling:
    """Batches in another order every time."""

    def __init__(self, draw):
        self.draw = draw

    def __iter__(self):
        order = self.draw()
        return ((X[order[at : at + 4]], Y[order[at : at + 4]]) for at in (0, 4, 8))


def test_held_out_rows_in_changing_order_are_refused_or_seeded():
    secret = np.random.default_rng()

    def hidden():
        return torch.from_numpy(np.frombuffer(__import__("os").urandom(96), np.uint64).argsort().copy())

    def by(test):
        return rota.torch.Learner(nn.Linear(4, 3), F.cross_entropy, (X, Y), test, device="cpu")

    with pytest.raises(ValueError, match="`test` gives its rows in another order every time"):
        by(Shuffling(hidden))
    for draw_order in (lambda: torch.randperm(12), lambda: torch.from_numpy(secret.permutation(12))):
        found = by(Shuffling(draw_order))
        one, two = (found.outputs(values(found), "test", {}) for _ in range(2))
        assert np.array_equal(one.targets, two.targets) and np.array_equal(one.outputs, two.outputs)


# Numbers.


def test_outputs_and_targets_of_64_bits_travel_as_they_are(tmp_path):
    wide = np.array([[1e9 + 1.0], [1e9 + 3.5]])
    rota.write_tensors(tmp_path / "o", {"outputs": wide, "targets": np.array([[1], [2]])}, wide=True)
    found = rota.read_tensors(tmp_path / "o")
    assert found["outputs"].dtype == np.float64 and np.array_equal(found["outputs"], wide)
    # What 32-bit floats have is not twice as large.
    assert found["targets"].dtype == np.float32
    rota.write_tensors(tmp_path / "m", {"w": wide})
    assert rota.read_tensors(tmp_path / "m")["w"].dtype == np.float32


# Differences that are meant.


def test_unusual_weight_decay_and_batches_are_reported_once(capsys):
    found = learner(nn.Linear(4, 3), loader(torch.utils.data.TensorDataset(X, Y), 5))
    for _ in range(2):
        found.train(values(found), training(batch=3, weight_decay=0.1))
    said = capsys.readouterr().err
    assert said.count("weight decay (0.1) goes to weights alone") == 1
    assert said.count("the loader's batches of 5 rows are taken, and not the agreed ones of 3") == 1
    _notes.again()
    found.train(values(found), training(batch=5))
    assert not capsys.readouterr().err
