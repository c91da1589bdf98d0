"""What a federation of PyTorch programs starts from: the values of the first program, whatever they are and
wherever the others begin, without a seed."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.utils import prune  # noqa: E402

from conftest import external, scenario, silo, training  # noqa: E402
from plain import classes, draw, values  # noqa: E402

torch.set_num_threads(1)
F = nn.functional
SIZE, LENGTH = 12, 6


class Attention(nn.Module):
    """Causal attention with its mask in a buffer, as small models of text have it."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.register_buffer("bias", torch.tril(torch.ones(LENGTH, LENGTH))[None])

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = (q @ k.mT / 8**0.5).masked_fill(self.bias[:, : x.shape[1], : x.shape[1]] == 0, float("-inf"))
        return self.out(scores.softmax(-1) @ v)


class Text(nn.Module):
    """Next tokens, with a table of positions that nobody trains."""

    def __init__(self, table):
        super().__init__()
        self.embed, self.attention, self.head = nn.Embedding(SIZE, 8), Attention(), nn.Linear(8, SIZE)
        angles = torch.arange(LENGTH)[:, None] / 100 ** (torch.arange(8) / 8)
        if table == "buffer":
            self.register_buffer("places", angles.sin())
        else:
            self.places = nn.Parameter(angles.sin(), requires_grad=False)

    def forward(self, tokens):
        x = self.embed(tokens) + self.places[: tokens.shape[1]]
        return self.head(x + self.attention(x)).movedim(-1, 1)


class Padded(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(SIZE, 8, padding_idx=0), nn.Linear(8, SIZE)

    def forward(self, tokens):
        return self.head(self.embed(tokens)).movedim(-1, 1)


class Taught(nn.Module):
    """A student and a copy of it that is not trained."""

    def __init__(self):
        super().__init__()
        self.student = nn.Sequential(nn.Embedding(SIZE, 8), nn.Linear(8, SIZE))
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)

    def forward(self, tokens):
        return (self.student(tokens) + 0.1 * self.teacher(tokens)).movedim(-1, 1)


class Noised(nn.Module):
    """A schedule of noise, as diffusion models have it."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(SIZE, 8), nn.Linear(8, SIZE)
        self.register_buffer("kept", torch.cumprod(1 - torch.linspace(1e-4, 0.2, LENGTH), 0))

    def forward(self, tokens):
        return self.head(self.embed(tokens) * self.kept[: tokens.shape[1], None]).movedim(-1, 1)


def pruned():
    """Half of the weights of a layer, the same everywhere, are cut."""
    model = Padded()
    prune.custom_from_mask(model.head, "weight", (torch.arange(SIZE * 8).reshape(SIZE, 8) % 2).float())
    return model


def pretrained():
    """Weights that no longer look drawn."""
    model = Padded()
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(value.sign() * value.abs() ** 3 + 2)
    return model


KINDS = {
    "a causal mask": lambda: Text("buffer"),
    "a table of positions": lambda: Text("parameter"),
    "a padding row": Padded,
    "a teacher": Taught,
    "a schedule of noise": Noised,
    "a pruning mask": pruned,
    "a pretrained model": pretrained,
}


def learner_of(model, **options):
    tokens = classes(SIZE, 10, LENGTH)
    data = (tokens, tokens.roll(-1, 1))
    return rota.torch.Learner(model, F.cross_entropy, data, data, device="cpu", **options)


def federation(make, rounds=None, **changes):
    """A federation in which every program draws its own values. Returns the learners that it made, and
    what each was given in its first training; `rounds` gets all trainings."""
    made, given = {}, {}

    def factory(silo):
        # No program has a seed.
        torch.seed()
        learner = make(silo)
        made[silo.place] = (learner, values(learner))
        train = learner.train

        def noted(start, how):
            start = {name: np.array(value) for name, value in start.items()}
            given.setdefault(silo.place, start)
            found = train(start, how)
            if rounds is not None:
                rounds.append((silo.place, start, how.seed, found.model))
            return found

        learner.train = noted
        return learner

    torch.seed()
    task = external(make(silo()))
    rota.simulate(scenario(task, rounds=2, **changes), learner=factory, references=False)
    return made, given


@pytest.mark.parametrize("kind", KINDS)
def test_all_silos_start_from_what_the_first_program_holds(kind):
    make = lambda silo: learner_of(KINDS[kind](), silo=silo)  # noqa: E731
    made, given = federation(make)
    assert sorted(given) == [0, 1, 2]
    held = made[0][1]
    for place, start in given.items():
        assert sorted(start) == sorted(held)
        for name, value in held.items():
            assert np.array_equal(start[name], value), (place, name)
    # They do begin elsewhere by themselves.
    assert any(not np.array_equal(made[1][1][name], value) for name, value in held.items())


def test_the_future_stays_hidden_behind_a_causal_mask():
    make = lambda silo: learner_of(Text("buffer"), silo=silo)  # noqa: E731
    made, given = federation(make)
    for learner, _ in made.values():
        learner._set(given[1])
        tokens = classes(SIZE, 2, LENGTH)
        other = tokens.clone()
        other[:, -1] = (other[:, -1] + 1) % SIZE
        with torch.no_grad():
            one, two = learner.model(tokens), learner.model(other)
        assert torch.equal(one[..., :-1], two[..., :-1]) and not torch.equal(one[..., -1], two[..., -1])


def test_a_federation_is_the_mean_of_plain_loops_from_one_start():
    """FedAvg by hand, on the same batches: what the silos train differs by 0.0, and their mean by rounding."""
    rows = {place: (draw(8, 3, seed=place + 1), draw(8, 1, seed=place + 9)) for place in range(3)}

    def make(silo):
        model = nn.Linear(3, 1)
        return rota.torch.Learner(model, F.mse_loss, rows[silo.place], rows[silo.place], device="cpu", silo=silo)

    how = {"name": "fedavg", "training": {"epochs": 1, "batch": 0, "optimiser": {"name": "sgd", "rate": 0.1}}}
    rounds = []
    made, given = federation(make, strategy=how, rounds=rounds)
    assert sorted(place for place, _, _, _ in rounds[:3]) == [0, 1, 2] and len(rounds) == 6
    model, expected = nn.Linear(3, 1), made[0][1]
    for nth in (0, 1):
        trained = []
        for place, start, seed, found in rounds[3 * nth : 3 * nth + 3]:
            assert all(np.allclose(start[name], value, atol=2e-7, rtol=0) for name, value in expected.items())
            assert nth or all(np.array_equal(start[name], value) for name, value in expected.items())
            model.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in start.items()})
            model.zero_grad()
            order = torch.randperm(8, generator=torch.Generator().manual_seed(seed % (1 << 63)))
            x, y = (one[order] for one in rows[place])
            F.mse_loss(model(x), y).backward()
            own = {name: value.detach().add(value.grad, alpha=-0.1).numpy() for name, value in model.named_parameters()}
            assert all(np.array_equal(found[name], value) for name, value in own.items())
            trained.append(own)
        expected = {name: np.mean([one[name] for one in trained], axis=0) for name in expected}


def test_the_start_is_drawn_only_where_wanted_and_possible():
    torch.seed()
    plain = lambda silo: rota.torch.Learner(  # noqa: E731
        nn.Linear(3, 1), F.mse_loss, (draw(8, 3), draw(8, 1)), (draw(8, 3), draw(8, 1)), device="cpu", silo=silo
    )
    task = external(plain(silo()), start="tensors")
    seen = []

    def factory(silo):
        learner = plain(silo)
        train = learner.train
        learner.train = lambda start, how: (seen.append((silo.place, np.array(start["weight"]))), train(start, how))[1]
        return learner

    rota.simulate(scenario(task, rounds=1), learner=factory, references=False)
    first, second = (next(value for place, value in seen if place == which) for which in (0, 1))
    assert np.array_equal(first, second) and float(np.abs(first).max()) <= 3**-0.5
    # What does not look drawn cannot be.
    task = external(learner_of(pretrained()), start="tensors")
    with pytest.raises(rota.RotaError, match='nothing describes the values of "embed.weight"'):
        rota.simulate(scenario(task), learner=lambda silo: learner_of(pretrained(), silo=silo))


def test_functions_on_arrays_start_from_their_arrays():
    start = {"w": np.array([3.0, -1.0, 8.0], np.float32), "b": np.ones(2, np.float32)}
    seen = []

    def make(silo):
        own = {name: value + silo.place for name, value in start.items()}
        train = lambda model, how: seen.append(model) or dict(model)  # noqa: E731
        return rota.FunctionLearner(own, train, lambda model, split: {"loss": 1.0}, rota.Rows(4, 0, 2))

    task = external(make(silo()))
    tensors = {one["name"]: one["initial"] for one in task["external"]["tensors"]}
    assert tensors == {"w": "program", "b": 1.0}
    rota.simulate(scenario(task, rounds=1), learner=make, references=False)
    assert len(seen) == 3
    for model in seen:
        assert all(np.array_equal(model[name], value) for name, value in start.items())


# What looks freshly drawn.


def made_by(make):
    torch.manual_seed(11)
    value = nn.Parameter(torch.empty(40, 30))
    with torch.no_grad():
        make(value)
    return value


DRAWN = {
    "kaiming uniform": lambda value: nn.init.kaiming_uniform_(value, a=5**0.5),
    "xavier": nn.init.xavier_uniform_,
    "normal": lambda value: value.normal_(0, 0.02),
    "orthogonal": nn.init.orthogonal_,
    "truncated": lambda value: nn.init.trunc_normal_(value, std=0.02),
}
HELD = {
    "heavy tails": lambda value: value.copy_(torch.distributions.StudentT(2.0).sample(value.shape) / 50),
    "sines": lambda value: value.copy_((torch.arange(40)[:, None] / 10 ** (torch.arange(30) / 30)).sin()),
    "a padding row": lambda value: value.normal_()[0].zero_(),
    "a pruned column": lambda value: value.normal_()[:, 3].zero_(),
    "a mean that is not 0": lambda value: value.normal_(0.3, 0.2),
    "ones below the diagonal": lambda value: value.copy_(torch.tril(torch.ones(40, 30))),
    "single zeros": lambda value: value.normal_().mul_((torch.arange(1200).reshape(40, 30) % 10 != 0).float()),
    "steps": lambda value: value.copy_(torch.linspace(-1, 1, 1200).reshape(40, 30) ** 3),
}


def described(value):
    from rota.torch._drawn import described

    model = nn.Module()
    model.weight = value
    return described(model, "weight", value)


@pytest.mark.parametrize("kind", DRAWN)
def test_fresh_weights_are_described_as_draws(kind):
    found = described(made_by(DRAWN[kind]))
    assert isinstance(found, dict) and found["uniform"] > 0


@pytest.mark.parametrize("kind", HELD)
def test_values_that_nobody_drew_are_the_programs_own(kind):
    assert described(made_by(HELD[kind])) == "program"


def test_layers_of_pytorch_look_freshly_drawn():
    torch.manual_seed(5)
    model = nn.ModuleDict(
        {
            "dense": nn.Linear(30, 20),
            "conv": nn.Conv2d(3, 8, 3),
            "embedding": nn.Embedding(40, 16),
            "attention": nn.MultiheadAttention(16, 4),
            "norm": nn.BatchNorm1d(4),
            "recurrent": nn.LSTM(8, 16),
        }
    )
    from rota.torch._drawn import described

    found = {name: described(model, name, value) for name, value in model.named_parameters()}
    assert "program" not in found.values(), found
    assert found["dense.weight"] == {"uniform": 30**-0.5} and found["norm.weight"] == 1.0


# Buffers that training does not change.


def other_mask(place):
    model = Text("buffer")
    with torch.no_grad():
        model.attention.bias[..., 0] = 1.0 if place < 2 else 0.0
        model.attention.bias[..., 0, 0] = 1.0
    return model


def test_constant_buffers_are_compared_and_do_not_travel():
    learner = learner_of(Text("buffer"))
    names = [tensor.name for tensor in learner.tensors()]
    assert "attention.bias" not in names and "places" not in names and "embed.weight" in names
    assert set(learner.held()) == {"attention.bias", "places"} and len(learner.frozen()) == 64
    task = external(learner)
    rota.simulate(scenario(task, rounds=1), learner=lambda silo: learner_of(other_mask(0), silo=silo))
    with pytest.raises(rota.RotaError, match='"attention.bias" has other values than at the first silo'):
        rota.simulate(scenario(task, rounds=1), learner=lambda silo: learner_of(other_mask(silo.place), silo=silo))


def test_a_buffer_that_is_to_travel_does():
    travels = lambda silo=None: learner_of(Text("buffer"), silo=silo, buffers=["pla*"])  # noqa: E731
    names = [tensor.name for tensor in travels().tensors()]
    assert "places" in names and "attention.bias" not in names
    made, given = federation(lambda silo: travels(silo))
    assert np.array_equal(given[2]["places"], made[0][1]["places"])
    with pytest.raises(ValueError, match="`buffers` names 'plaice'.*attention.bias, places"):
        learner_of(Text("buffer"), buffers=["plaice"])


def test_a_drawn_constant_buffer_is_refused_with_a_remedy():
    def make(silo=None, **options):
        model = nn.Sequential(nn.utils.parametrizations.orthogonal(nn.Linear(5, 5)), nn.Linear(5, 1))
        data = (draw(8, 5), draw(8, 1))
        return rota.torch.Learner(model, F.mse_loss, data, data, device="cpu", silo=silo, **options)

    with pytest.raises(rota.RotaError, match=r'base" has other values than at the first silo.*`buffers`'):
        federation(lambda silo: make(silo))
    made, given = federation(lambda silo: make(silo, buffers=["*.base"]))
    assert all(np.array_equal(given[2][name], value) for name, value in made[0][1].items())


def test_an_agreement_that_has_a_constant_buffer_keeps_it():
    """Agreements from before buffers were compared list them."""
    learner = learner_of(Text("buffer"))
    more = [rota.Tensor("attention.bias", (1, LENGTH, LENGTH), "buffer"), rota.Tensor("places", (LENGTH, 8), "buffer")]
    layout = [*learner.tensors(), *more]
    again = learner_of(Text("buffer"), silo=silo(layout=layout))
    assert sorted(tensor.name for tensor in again.tensors()) == sorted(tensor.name for tensor in layout)
    assert again.frozen() is None


class Following(nn.Module):
    """Buffers that training changes, each in another way."""

    def __init__(self, every=1):
        super().__init__()
        self.dense, self.every, self.count = nn.Linear(3, 1), every, 0
        self.register_buffer("in_place", torch.zeros(1))
        self.register_buffer("replaced", torch.zeros(1))
        self.register_buffer("teacher", self.dense.weight.detach().clone())
        self.register_buffer("still", torch.full((2,), 5.0))

    def forward(self, x):
        if self.training:
            self.count += 1
            if self.count % self.every == 0:
                with torch.no_grad():
                    self.in_place += x.mean()
                    self.replaced = self.replaced * 0.9 + x.std()
                    self.teacher.mul_(0.9).add_(self.dense.weight, alpha=0.1)
        return self.dense(x) + 0.0 * self.still.sum()


def following(**options):
    data = (draw(12, 3), draw(12, 1))
    model = Following(options.pop("every", 1))
    return rota.torch.Learner(model, F.mse_loss, data, data, device="cpu", **options)


def test_buffers_that_training_changes_travel():
    torch.manual_seed(3)
    learner = following()
    before = copy.deepcopy(learner.model.state_dict())
    assert {tensor.name for tensor in learner.tensors()} == {
        "dense.weight", "dense.bias", "in_place", "replaced", "teacher",
    }  # fmt: skip
    assert set(learner.held()) == {"still"}
    found = learner.train(values(learner), training(batch=4)).model
    for name in ("in_place", "replaced", "teacher"):
        assert not np.array_equal(found[name], before[name].numpy()), name
    # Trying it out has left nothing behind.
    again = following()
    again.model.load_state_dict(before)
    assert torch.equal(again.model.state_dict()["teacher"], before["teacher"])


def test_normalisation_of_spectra_travels():
    model = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 4)), nn.Linear(4, 1))
    data = (draw(12, 6), draw(12, 1))
    learner = rota.torch.Learner(model, F.mse_loss, data, data, device="cpu")
    assert learner.frozen() is None and any(name.endswith("_u") for name in values(learner))


def test_a_buffer_that_changes_late_is_reported_not_restored():
    learner = following(every=5)
    with pytest.raises(ValueError, match=r"changed the buffer '(in_place|replaced|teacher)'.*buffers=\["):
        learner.train(values(learner), training(batch=2))
    named = following(every=5, buffers=["in_place", "replaced", "teacher"])
    found = named.train(values(named), training(batch=2)).model
    assert not np.array_equal(found["in_place"], np.zeros(1))


def test_trying_out_leaves_the_module_as_it_was():
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), Following().dense.__class__(4, 3), Following())
    model.eval()
    before, drawn = copy.deepcopy(model.state_dict()), torch.random.get_rng_state()
    data = (draw(12, 3), draw(12, 1))
    rota.torch.Learner(model, F.mse_loss, data, data, device="cpu")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not model.training and all(value.grad is None for value in model.parameters())
    assert torch.equal(torch.random.get_rng_state(), drawn)
