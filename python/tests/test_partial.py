"""Learners in PyTorch that share a part of a module: what is trained, or low-rank adapters."""

import hashlib

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from torch import nn  # noqa: E402

from conftest import external, scenario, silo, training  # noqa: E402

torch.set_num_threads(1)


def rows(seed=1, count=24):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 6, generator=draw)
    return x, x[:, :1] * x[:, 1:2] + x[:, 2:3]


def network():
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 16), nn.BatchNorm1d(16), nn.Linear(16, 1)
    )


def body_is_frozen():
    model = network()
    model[:3].requires_grad_(False)
    return model


def sharing(model, **options):
    data = rows()
    return rota.torch.Learner(
        model, nn.functional.mse_loss, data, data, shared="trainable", device="cpu", **options
    )


def values(learner):
    return {name: np.array(value) for name, value in learner.initial(0).items()}


def test_only_what_is_trained_travels():
    learner = sharing(body_is_frozen())
    names = [tensor.name for tensor in learner.tensors()]
    assert names == [
        "3.weight", "3.bias", "4.weight", "4.bias", "5.weight", "5.bias", "4.running_mean", "4.running_var"
    ]  # fmt: skip
    assert list(values(learner)) == names
    update = learner.train(values(learner), training())
    assert list(update.model) == names
    assert not np.array_equal(update.model["4.running_mean"], values(sharing(body_is_frozen()))["4.running_mean"])


def test_frozen_tensors_stay_as_they_are():
    learner = sharing(body_is_frozen())
    before = {name: value.clone() for name, value in learner.model.state_dict().items() if name[0] in "01"}
    # By statistics of the batch the frozen layer would compute something else.
    learner.model[1].running_mean += 0.5
    before["1.running_mean"] += 0.5
    learner = sharing(learner.model)
    heard = []
    hook = learner.model[1].register_forward_hook(lambda norm, _, out: heard.append(norm.training))
    learner.train(values(learner), training(epochs=3, batch=8))
    hook.remove()
    assert heard == [False] * 9
    assert learner.model[4].training and learner.model[2].training
    for name, value in before.items():
        assert torch.equal(learner.model.state_dict()[name], value), name


def test_a_buffer_that_a_frozen_module_changes_is_put_back():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            self.seen += 1
            return x + self.seen

    learner = sharing(nn.Sequential(Counting(), nn.Linear(6, 1)))
    assert [tensor.name for tensor in learner.tensors()] == ["1.weight", "1.bias"]
    first = learner.train(values(learner), training(batch=8))
    learner = sharing(nn.Sequential(Counting(), learner.model[1]))
    start = values(learner)
    same = [learner.train(start, training(batch=8)).model["1.weight"] for _ in range(2)]
    assert np.array_equal(*same) and first.metrics["loss"] > 0


def test_the_digest_is_of_what_does_not_travel():
    learner = sharing(body_is_frozen())
    digest = learner.frozen()
    assert len(digest) == 64 and digest == sharing(body_is_frozen()).frozen()
    # Training changes nothing in it, and what travels is no part of it.
    learner.train(values(learner), training())
    assert learner.frozen() == digest
    for change in ["0.weight", "1.running_var"]:
        model = body_is_frozen()
        with torch.no_grad():
            model.state_dict()[change].flatten()[0] += 1e-6
        assert sharing(model).frozen() != digest, change
    data = rows()
    assert rota.torch.Learner(network(), nn.functional.mse_loss, data, device="cpu").frozen() is None
    assert sharing(network()).frozen() is None


def test_the_digest_is_that_of_the_protocol():
    """Name, zero byte, dimensions and values, as docs/learner-protocol.md says."""
    plain = b"a\0" + (1).to_bytes(8, "little") + (2).to_bytes(8, "little")
    plain += np.array([1.0, -2.5], "<f4").tobytes()
    plain += b"b\0" + bytes(8) + np.float32(3).tobytes()
    found = rota.digest([("a", [1.0, -2.5]), ("b", 3.0)])
    assert found == hashlib.sha256(plain).hexdigest()
    assert rota.digest([]) is None


def test_a_module_of_which_nothing_is_trained_is_refused():
    with pytest.raises(ValueError, match="nothing is trained"):
        sharing(network().requires_grad_(False))
    with pytest.raises(ValueError, match="`shared` is 'half'"):
        rota.torch.Learner(network(), nn.functional.mse_loss, rows(), shared="half")


def test_a_trained_part_goes_into_the_module_again(tmp_path):
    learner = sharing(body_is_frozen())
    update = learner.train(values(learner), training(epochs=5))
    rota.write_tensors(tmp_path / "part.safetensors", update.model)
    again = rota.torch.load(body_is_frozen(), tmp_path / "part.safetensors", shared="trainable")
    x = rows(9)[0]
    assert torch.equal(again.eval()(x), learner.model.eval()(x))
    with pytest.raises(ValueError, match="give `names`"):
        rota.torch.load(network(), tmp_path / "part.safetensors")


# Adapters.


def adapted(rank=2, layers=("*",)):
    return rota.torch.lora(network(), rank=rank, alpha=4, layers=layers)


def encoder():
    torch.manual_seed(5)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def drawn(model):
    """The same model with adapters that do something."""
    for name, value in model.named_parameters():
        if name.endswith("lora_B"):
            nn.init.normal_(value, std=0.3)
    return model


def test_a_model_with_new_adapters_computes_what_it_did():
    x = rows(9)[0]
    assert torch.equal(adapted().eval()(x), network().eval()(x))


def test_gradients_reach_adapters_only():
    model = drawn(adapted())
    model(rows()[0]).square().mean().backward()
    found = {name for name, value in model.named_parameters() if value.grad is not None}
    assert found == {f"{layer}.lora_{part}" for layer in (0, 3, 5) for part in "AB"}


def test_layers_are_chosen_by_name():
    model = rota.torch.lora(encoder(), rank=2, layers=["*.linear?"])
    trained = {name for name, value in model.named_parameters() if value.requires_grad}
    assert trained == {f"layers.{at}.linear{of}.lora_{part}" for at in (0, 1) for of in (1, 2) for part in "AB"}
    with pytest.raises(ValueError, match=r"no dense layer has a name like \['\*.attn'\]; there are \['0', '3', '5'\]"):
        rota.torch.lora(network(), layers=["*.attn"])
    with pytest.raises(ValueError, match="at least 1"):
        rota.torch.lora(network(), rank=0)
    with pytest.raises(ValueError, match="adapters already"):
        rota.torch.lora(adapted())


def test_the_mean_of_adapters_with_a_frozen_a_is_exact():
    def at(seed, freeze_a):
        model = rota.torch.lora(nn.Linear(6, 4), rank=2, freeze_a=freeze_a)
        torch.manual_seed(seed)
        for value in model.parameters():
            if value.requires_grad:
                nn.init.normal_(value)
        return model

    for freeze_a, exact in [(True, True), (False, False)]:
        models = [at(seed, freeze_a) for seed in (1, 2, 3)]
        layers = torch.stack([model.weight - model.base.weight for model in models]).mean(0)
        mean = at(4, freeze_a)
        with torch.no_grad():
            for name, value in mean.named_parameters():
                if value.requires_grad:
                    value.copy_(torch.stack([model.get_parameter(name) for model in models]).mean(0))
        assert torch.allclose(mean.weight - mean.base.weight, layers, atol=1e-5) == exact
    # A is drawn alike at every silo, and belongs to what they agree on.
    first, other = (rota.torch.lora(network(), 2, freeze_a=True, seed=seed) for seed in (0, 1))
    names = [tensor.name for tensor in sharing(first).tensors()]
    assert names == ["0.lora_B", "3.lora_B", "5.lora_B"]
    assert sharing(first).frozen() == sharing(rota.torch.lora(network(), 2, freeze_a=True)).frozen()
    assert sharing(first).frozen() != sharing(other).frozen()


def test_a_layer_in_two_places_has_one_adapter():
    layer = nn.Linear(4, 4)
    model = drawn(rota.torch.lora(nn.Sequential(layer, nn.ReLU(), layer), rank=1))
    assert model[0] is model[2] and len([value for value in model.parameters() if value.requires_grad]) == 2
    alone = drawn(rota.torch.lora(nn.Linear(4, 3), rank=1))
    assert isinstance(alone, rota.torch.LoRA)
    x = torch.randn(5, 4)
    assert torch.allclose(rota.torch.merged(alone)(x), alone(x), atol=1e-6)


def test_bytes_that_travel_are_those_of_the_adapters():
    rank = 3
    learner = sharing(adapted(rank))
    travels = sum(4 * int(np.prod(tensor.shape)) for tensor in learner.tensors())
    assert travels == 4 * rank * ((6 + 16) + (16 + 16) + (16 + 1))
    initial = {tensor.name: tensor.initial for tensor in learner.tensors()}
    # The agreement describes their start: A as PyTorch draws dense layers, B at 0.
    assert initial["3.lora_A"] == {"uniform": 0.25} and initial["3.lora_B"] == 0.0
    assert learner.frozen() is not None


@pytest.mark.parametrize("make, shape", [(network, (5, 6)), (encoder, (3, 4, 8))], ids=["dense", "attention"])
def test_merged_adapters_give_the_same_outputs(make, shape):
    """Also where PyTorch takes the weights of layers without calling them, as in attention."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2))
    model = drawn(rota.torch.lora(make(), rank=2)).eval()
    plain = rota.torch.merged(model)
    assert list(plain.state_dict()) == list(make().state_dict())
    assert all(value.requires_grad for value in plain.parameters())
    with torch.no_grad():
        found, expected, base = plain.eval()(x), model(x), make().eval()(x)
    assert torch.allclose(found, expected, atol=1e-5)
    assert not torch.allclose(found, base, atol=0.1)
    model.train()
    for norm in model.modules():
        if isinstance(norm, nn.BatchNorm1d):
            norm.eval()
    assert torch.allclose(model(x), expected, atol=1e-5)


def silo_with_adapters(of, base=network):
    train, test = rows(of.place + 10, 60), rows(of.place + 20, 30)
    model = rota.torch.lora(base(), rank=4)
    return rota.torch.Learner(
        model, nn.functional.mse_loss, train, test, silo=of, shared="trainable", device="cpu"
    )


def test_the_mean_of_adapters_is_a_better_model():
    first = silo_with_adapters(silo())
    task = external(first, frozen=first.frozen())
    strategy = scenario({})["strategy"] | {"training": training_of(0.05)}
    summary = rota.simulate(scenario(task, strategy=strategy, rounds=8), learner=silo_with_adapters)
    curves = summary.curves()
    before = [silo_with_adapters(silo(place=place)) for place in range(3)]
    before = np.mean([learner.evaluate(values(learner), "test", {})["loss"] for learner in before])
    after = np.mean([losses[-1] for losses in curves.values()])
    assert len(curves) == 3 and after < 0.7 * before, (before, after)


def training_of(rate):
    return {"epochs": 2, "batch": 16, "optimiser": {"name": "sgd", "rate": rate}}


def test_a_silo_with_another_base_is_refused():
    def other(of):
        def base():
            model = network()
            with torch.no_grad():
                model[0].weight[0, 0] += of.place
            return model

        return silo_with_adapters(of, base)

    first = silo_with_adapters(silo())
    with pytest.raises(rota.RotaError, match="frozen tensors are others than the agreed ones"):
        rota.simulate(scenario(external(first, frozen=first.frozen())), learner=other)
    # Those of a simulation are compared with each other where none are agreed.
    with pytest.raises(rota.RotaError, match="frozen tensors are others than the agreed ones"):
        rota.simulate(scenario(external(first)), learner=other)
