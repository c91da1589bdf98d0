"""Parameters, losses and private trainings of PyTorch learners: kept exactly, or refused with what works."""

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from torch import nn  # noqa: E402

from conftest import external, scenario, silo, training  # noqa: E402
from plain import classes, draw, loader, loop, trained_alike, values  # noqa: E402
from test_run import load  # noqa: E402

torch.set_num_threads(1)
F = nn.functional
X, Y = draw(12, 3), classes(2, 12)
ROWS = (X, Y)


def learner(model, loss=F.cross_entropy, rows=ROWS, **options):
    return rota.torch.Learner(model, loss, rows, rows, device="cpu", **options)


# Kinds of numbers.


class Extra(nn.Module):
    """A dense layer, and something besides that it multiplies with or keeps."""

    def __init__(self, value, trained=False, buffer=False):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        if buffer:
            self.register_buffer("extra", value)
        else:
            self.extra = nn.Parameter(value, requires_grad=trained)

    def forward(self, x):
        extra = torch.view_as_real(self.extra)[..., 0] if self.extra.is_complex() else self.extra
        return self.layer(x) * extra.float().sum()


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor([16_777_217, 2]),  # One more than 32-bit floats can count.
        torch.tensor([-128, 127], dtype=torch.int8),
        torch.tensor([True, False]),
        torch.tensor([1 + 2j, 3 - 4j]),
        torch.tensor([0.1, 1e-12], dtype=torch.float64),
    ],
    ids=["int64", "int8", "bool", "complex", "double"],
)
def test_frozen_parameters_of_other_kinds_stay_exactly_the_same(value):
    model = Extra(value.clone())
    found = learner(model)
    assert {tensor.name for tensor in found.tensors()} == {"layer.weight", "layer.bias"}
    found.train(values(found), training(epochs=3, batch=4))
    found.evaluate(values(found), "test", {})
    assert torch.equal(model.extra, value) and model.extra.dtype == value.dtype
    # Members agree on it, to the last bit.
    other = value.clone()
    if value.dtype == torch.float64:
        other[1] = torch.nextafter(other[1], torch.ones((), dtype=torch.float64))
    elif value.is_complex():
        other[1] = 3 + 4j
    else:
        other[0] = 0 if value.dtype != torch.int64 else 16_777_216
    assert found.frozen() == learner(Extra(value.clone())).frozen() != learner(Extra(other)).frozen()


def test_trained_parameters_that_cannot_travel_are_refused():
    for model, why in [
        (Extra(torch.ones(2, dtype=torch.complex64), trained=True), "'extra' is complex.*shape"),
        (Extra(torch.ones(2, dtype=torch.float64), trained=True), "'extra' is of 64-bit floats.*model.float()"),
        (nn.Sequential(nn.Linear(3, 2).double()), "'0.weight' is of 64-bit floats"),
    ]:
        with pytest.raises(ValueError, match=why):
            learner(model, rows=(X.double() if isinstance(model, nn.Sequential) else X, Y))


def test_a_double_buffer_that_training_changes_is_refused():
    class Counted(Extra):
        def forward(self, x):
            if self.training:
                self.extra += x.double().mean()
            return self.layer(x)

    with pytest.raises(ValueError, match="training changes the buffer 'extra', which is float64"):
        learner(Counted(torch.zeros(1, dtype=torch.float64), buffer=True))
    kept = learner(Extra(torch.ones(1, dtype=torch.float64) / 3, buffer=True))
    assert kept.train(values(kept), training()).samples == 12 and float(kept.model.extra) == 1 / 3


def test_half_precision_trains_and_travels_as_it_is():
    model = nn.Linear(3, 2).bfloat16()
    batches = loader(torch.utils.data.TensorDataset(X.bfloat16(), Y))
    found = rota.torch.Learner(model, F.cross_entropy, batches, device="cpu")
    assert trained_alike(found, loop(model, batches, lambda model, batch: F.cross_entropy(model(batch[0]), batch[1])))


@pytest.mark.parametrize(
    "lazy",
    [
        lambda: nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 2)),
        lambda: nn.Sequential(nn.Linear(3, 4), nn.LazyBatchNorm1d(), nn.Linear(4, 2)),
        lambda: nn.Sequential(nn.Unflatten(1, (1, 3)), nn.LazyConv1d(2, 3), nn.Flatten()),
    ],
    ids=["dense", "norm", "convolution"],
)
def test_lazy_layers_are_told_in_one_sentence(lazy):
    with pytest.raises(ValueError, match=r"the model has a lazy layer, '\d', .*call the model once on a batch"):
        learner(lazy())
    model = lazy()
    model(X)
    assert learner(model).rows().train == 12


# A loss with parameters of its own.


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, outputs, targets):
        return F.cross_entropy(outputs * self.scale, targets)


def test_a_loss_with_parameters_of_its_own_is_refused():
    loss, hidden = Scaled(), Scaled()
    scale = nn.Parameter(torch.ones(()))
    for wrong, why in [
        (loss, r"`loss` \(Scaled\) has parameters of its own \(scale\)"),
        (loss.forward, "has parameters of its own"),
        (lambda outputs, targets: hidden(outputs, targets), r"a parameter of the shape \(\) that is not the model's"),
        (lambda outputs, targets: F.cross_entropy(outputs * scale, targets), "is not the model's"),
    ]:
        with pytest.raises(ValueError, match=f"{why}.*make (it|them) a part of `model`"):
            learner(nn.Linear(3, 2), wrong)
    frozen = Scaled().requires_grad_(False)
    assert learner(nn.Linear(3, 2), frozen).rows().train == 12


def test_plain_tensors_a_loss_trains_are_refused_inputs_are_not():
    scale = torch.ones((), requires_grad=True)
    with pytest.raises(ValueError, match=r"a parameter of the shape \(\) that is not the model's"):
        learner(nn.Linear(3, 2), lambda outputs, targets: F.cross_entropy(outputs * scale, targets))

    def steep(model, batch):
        """With a penalty on the gradient by the inputs."""
        x = batch[0].clone().requires_grad_(True)
        outputs = model(x)
        if not outputs.requires_grad:
            return outputs, batch[1]
        slope, = torch.autograd.grad(outputs.sum(), x, create_graph=True)
        return outputs + slope.square().mean(), batch[1]

    assert learner(nn.Linear(3, 2), forward=steep).rows().train == 12

    def marked(model, batch):
        return model(batch[0].requires_grad_(True)), batch[1]

    assert learner(nn.Linear(3, 2), forward=marked, rows=(draw(12, 3), Y)).rows().train == 12


def test_a_class_of_models_or_losses_is_told():
    with pytest.raises(ValueError, match=r"`model` must be a torch.nn.Module, and it is a class: make a model of it, Linear"):
        learner(nn.Linear)
    with pytest.raises(ValueError, match=r"`loss` is a class: make one of it, CrossEntropyLoss\(\)"):
        learner(nn.Linear(3, 2), nn.CrossEntropyLoss)


def test_a_second_model_in_forward_is_refused_unless_frozen():
    teacher = nn.Linear(3, 2)

    def forward(model, batch):
        return model(batch[0]) + teacher(batch[0]), batch[1]

    with pytest.raises(ValueError, match=r"a parameter of the shape .* that is not the model's"):
        learner(nn.Linear(3, 2), forward=forward)
    teacher.requires_grad_(False)
    assert learner(nn.Linear(3, 2), forward=forward).rows().train == 12


def test_a_loss_inside_of_the_model_is_trained_and_shared():
    """What the refusal says to do."""

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.loss = nn.Linear(3, 2), Scaled()

        def forward(self, x):
            return self.net(x) * self.loss.scale

    batches = loader(torch.utils.data.TensorDataset(X, Y))
    found = rota.torch.Learner(Both(), F.cross_entropy, batches, batches, device="cpu")
    assert "loss.scale" in {tensor.name for tensor in found.tensors()}
    expected = loop(found.model, batches, lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]))
    assert trained_alike(found, expected) and expected["loss.scale"] != 1.0


# Differential privacy.


def private(**options):
    """What Opacus makes of a model, an optimiser and a loader."""
    opacus = pytest.importorskip("opacus")
    model = nn.Linear(3, 2)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = loader(torch.utils.data.TensorDataset(X, Y))
    engine = opacus.PrivacyEngine()
    made = engine.make_private(
        module=model, optimizer=optimiser, data_loader=rows, noise_multiplier=1.0, max_grad_norm=1.0, **options
    )
    return model, rows, *made


@pytest.mark.filterwarnings("ignore")
def test_private_modules_and_loaders_are_refused():
    plain, rows, model, _, batches = private()
    for module, data, what in [
        (model, batches, "model"),
        (model, rows, "model"),
        # The module inside, which has the hooks, and a model around it.
        (plain, rows, "model"),
        (nn.Sequential(plain), rows, "model"),
        (nn.Linear(3, 2), batches, "loader"),
    ]:
        with pytest.raises(ValueError, match=f"the {what} was made private by opacus.*nothing would be private.*own `train`"):
            rota.torch.Learner(module, F.cross_entropy, data, rows, device="cpu")
    own = torch.utils.data.DataLoader(batches.dataset, batch_sampler=batches.batch_sampler)
    with pytest.raises(ValueError, match="the loader was made private by opacus"):
        rota.torch.Learner(nn.Linear(3, 2), F.cross_entropy, own, rows, device="cpu")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["functorch", "ghost"])
def test_other_ways_of_opacus_are_refused(mode):
    options = {"criterion": nn.CrossEntropyLoss()} if mode == "ghost" else {}
    plain, rows, model, _, *more = private(grad_sample_mode=mode, **options)
    with pytest.raises(ValueError, match="was made private by opacus"):
        rota.torch.Learner(model, F.cross_entropy, rows, rows, device="cpu")
    if mode == "ghost":
        loss = next(one for one in more if "Loss" in type(one).__name__)
        with pytest.raises(ValueError, match="the loss was made private by opacus"):
            rota.torch.Learner(nn.Linear(3, 2), loss, rows, rows, device="cpu")


@pytest.mark.filterwarnings("ignore")
def test_the_plain_model_and_layers_of_opacus_train():
    layers = pytest.importorskip("opacus.layers")

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows, self.head = layers.DPLSTM(3, 4, batch_first=True), nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.rows(x)[0][:, -1])

    found = learner(Recurrent(), rows=(draw(12, 5, 3), Y))
    assert found.train(values(found), training()).samples == 12


@pytest.mark.filterwarnings("ignore")
def test_a_learner_with_a_private_optimiser_of_its_own_federates():
    """What the refusal says to do."""
    pytest.importorskip("opacus")
    example = load("private")
    costs = []

    def learner(of):
        found = example.learner(of)
        train = found.train

        def heard(start, how):
            update = train(start, how)
            costs.append((of.place, update.metrics["epsilon"]))
            return update

        found.train = heard
        return found

    task = external(example.learner(silo()), metric="accuracy")
    summary = rota.simulate(scenario(task, rounds=6), learner=learner, references=False)
    assert not summary["training_failed"] and summary["usable"]
    assert np.mean([values[-1] for values in summary.curves().values()]) > 0.7
    first = [cost for place, cost in costs if place == 0]
    assert first[0] > 0 and first == sorted(first) and len(set(first)) == len(first) == 6


@pytest.mark.filterwarnings("ignore")
def test_a_private_learners_noise_is_not_of_the_agreed_seed():
    """Whoever knows the seed could take the noise away."""
    pytest.importorskip("opacus")
    found = load("private").learner(silo())
    start = {"weight": np.zeros((2, 4), np.float32), "bias": np.zeros(2, np.float32)}
    first, again = (found.train(start, training(batch=32)).model for _ in range(2))
    assert not np.array_equal(first["weight"], again["weight"])


def test_refusals_reach_whoever_starts_the_program(tmp_path):
    script = tmp_path / "lazy.py"
    script.write_text(
        "import torch, rota, rota.torch\n"
        "from torch import nn\n"
        "def learner(of):\n"
        "    rows = (torch.randn(20, 3), torch.zeros(20, dtype=torch.long))\n"
        "    return rota.torch.Learner(nn.LazyLinear(2), nn.CrossEntropyLoss(), rows, rows, silo=of, device='cpu')\n"
        "rota.serve(learner)\n"
    )
    with pytest.raises(rota.RotaError, match="the model has a lazy layer, 'LazyLinear'"):
        rota.command(["learner", "describe", sys.executable, str(script)])
