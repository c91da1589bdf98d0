"""Lightning, Keras, Flax, Hugging Face and PEFT: the complete examples, each against what its framework does alone."""

import functools
import importlib.util
import os
import sys

import numpy as np
import pytest

import rota

from conftest import EXAMPLES, external, scenario, silo, training

#: Of every example the packages that it needs.
NEEDS = {
    "of_lightning": ["torch", "lightning"],
    "of_keras": ["keras", "jax"],
    "of_flax": ["flax", "jax", "optax"],
    "of_peft": ["torch", "transformers", "peft"],
}


def load(name):
    # Keras looks for a backend when it is imported.
    os.environ.setdefault("KERAS_BACKEND", "jax")
    for package in NEEDS[name]:
        pytest.importorskip(package)
    if name in sys.modules:
        return sys.modules[name]
    found = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


HOW = {"batch": 16, "epochs": 2, "rate": 0.2}


@pytest.mark.parametrize("name", NEEDS)
def test_an_example_of_a_framework_learns(name):
    module = load(name)
    task = external(module.learner(silo()), metric="accuracy")
    optimiser = {"name": "sgd", "rate": 0.2} if name != "of_peft" else {"name": "adam", "rate": 0.02}
    how = {"epochs": 4, "batch": 16, "optimiser": optimiser}
    summary = rota.simulate(scenario(task, rounds=6, strategy={"name": "fedavg", "training": how}), learner=module.learner, references=False)
    assert not summary["training_failed"]
    accuracy = np.mean([values[-1] for values in summary.curves().values()])
    served = next(one["per_silo"] for one in summary["means"] if one["model"] == "coalition")
    assert accuracy == served > 0.75, accuracy


@pytest.mark.parametrize("name", NEEDS)
def test_an_example_of_a_framework_gives_the_same_again(name):
    module = load(name)
    found = []
    for _ in range(2):
        learner = module.learner(silo())
        first = dict(learner.initial(0))
        start = {one: np.array(value, np.float32) for one, value in first.items()}
        found.append(learner.train(start, training(**HOW)).model)
    assert found[0].keys() == found[1].keys()
    assert all(np.array_equal(found[0][one], found[1][one]) for one in found[0])


@pytest.mark.parametrize("name", NEEDS)
def test_a_program_of_a_framework_is_described(name, tmp_path):
    load(name)
    said = rota.command(["learner", "describe", sys.executable, str(EXAMPLES / f"{name}.py")])
    assert "[task.external]" in said and said.count("name = ") >= 2


def of(learner):
    return {name: np.array(value, np.float32) for name, value in learner.initial(0).items()}


def test_lightning_trains_as_its_trainer_does_alone():
    module = load("of_lightning")
    import lightning
    import torch
    from torch.utils.data import DataLoader

    learner = module.learner(silo())
    start = of(learner)
    found = learner.train(dict(start), training(**HOW)).model
    alone = module.Ward()
    alone.load_state_dict({name: torch.from_numpy(value) for name, value in start.items()})
    alone.rate = 0.2
    torch.manual_seed(7)
    rows, _ = module.rows(0)
    quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    lightning.Trainer(max_epochs=2, accelerator="cpu", **quiet).fit(alone, DataLoader(rows, batch_size=16, shuffle=True))
    for name, value in alone.state_dict().items():
        assert np.array_equal(found[name], value.numpy()), name


def test_lightning_goes_without_its_trainer_too():
    """`training_step` and `configure_optimizers` as they are, in the learner of PyTorch, to the bit as a plain loop."""
    module = load("of_lightning")
    import rota.torch
    import torch

    rows, held_out = module.rows(0)
    torch.manual_seed(3)
    ward, alone = module.Ward(), module.Ward()
    alone.load_state_dict(ward.state_dict())
    learner = rota.torch.Learner(
        ward, lambda loss, targets: loss, rows.tensors, held_out, device="cpu",
        forward=lambda model, batch: (model.training_step(batch, 0), batch[1]),
        optimiser=lambda model, training: model.configure_optimizers(),
    )
    found = learner.train(of(learner), training(batch=0, epochs=3)).model
    optimiser = alone.configure_optimizers()
    for _ in range(3):
        optimiser.zero_grad()
        alone.training_step(rows.tensors, 0).backward()
        optimiser.step()
    for name, value in alone.state_dict().items():
        assert np.allclose(found[name], value.numpy(), atol=1e-6), name


def test_keras_trains_as_fit_does_alone():
    module = load("of_keras")
    import keras

    learner = module.learner(silo())
    start = of(learner)
    found = learner.train(dict(start), training(**HOW)).model
    alone = module.network()
    keras.utils.set_random_seed(7)
    alone.compile(keras.optimizers.SGD(0.2), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    alone.set_weights(list(start.values()))
    alone.fit(*module.rows(0)[0], batch_size=16, epochs=2, verbose=0)
    for name, value in zip(found, alone.get_weights(), strict=True):
        assert np.allclose(found[name], value, atol=1e-6), name


def test_flax_trains_as_a_plain_loop():
    module = load("of_flax")
    learner = module.learner(silo())
    start = of(learner)
    found = learner.train(dict(start), training(batch=0, epochs=3, rate=0.2)).model
    x, y = module.rows(0)[0]
    weights = {name: value.astype(np.float64) for name, value in start.items()}
    order = np.random.default_rng(7)
    for _ in range(3):
        chosen = order.permutation(len(x))
        hidden = np.tanh(x[chosen] @ weights["Dense_0/kernel"] + weights["Dense_0/bias"])
        outputs = hidden @ weights["Dense_1/kernel"] + weights["Dense_1/bias"]
        parts = np.exp(outputs - outputs.max(1, keepdims=True))
        error = parts / parts.sum(1, keepdims=True)
        error[np.arange(len(x)), y[chosen]] -= 1.0
        error /= len(x)
        back = error @ weights["Dense_1/kernel"].T * (1 - hidden**2)
        change = {"Dense_1/kernel": hidden.T @ error, "Dense_1/bias": error.sum(0), "Dense_0/kernel": x[chosen].T @ back, "Dense_0/bias": back.sum(0)}
        weights = {name: value - 0.2 * change[name] for name, value in weights.items()}
    for name, value in weights.items():
        assert np.allclose(found[name], value, atol=1e-5), name


def test_only_peft_adapters_travel_and_train_as_in_a_plain_loop(monkeypatch):
    module = load("of_peft")
    # Dropout draws.
    monkeypatch.setattr(module, "BertConfig", functools.partial(module.BertConfig, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    import torch
    from peft import LoraConfig, get_peft_model

    learner = module.learner(silo())
    names = [tensor.name for tensor in learner.tensors()]
    assert names and all("lora_" in name or "classifier" in name for name in names)
    start = of(learner)
    alone = get_peft_model(module.base(), LoraConfig(task_type="SEQ_CLS", r=4, lora_alpha=16, target_modules=["query", "value"]))
    own = dict(alone.named_parameters())
    for name, value in start.items():
        own[name].data = torch.from_numpy(value.copy())
    whole = module.rows(0)[0]
    found = learner.train(dict(start), training(batch=0, epochs=2, rate=0.5)).model
    trained = [value for value in own.values() if value.requires_grad]
    optimiser = torch.optim.SGD(trained, lr=0.5)
    for _ in range(2):
        optimiser.zero_grad()
        alone(**whole).loss.backward()
        optimiser.step()
    for name in names:
        assert np.allclose(found[name], own[name].detach().numpy(), atol=1e-5), name
