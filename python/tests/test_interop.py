"""Models that cross between Rota and PyTorch, with real nodes."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from torch import nn  # noqa: E402

from rota import _toml  # noqa: E402

CHILD = """
import rota, rota.torch, torch
from torch import nn

def network():
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 3),
    )

if __name__ == "__main__":
    rota.serve(lambda silo: rota.torch.Learner(network(), silo=silo, shape=(1, 4, 4), threads=1, device="cpu"))
"""


def base_port():
    """The first of sixteen ports that no other run of these tests takes at the same time."""
    return 20_000 + os.getpid() % 1_000 * 16


@pytest.fixture
def nodes(tmp_path, monkeypatch):
    """A federation of three nodes after its last round: two of PyTorch, one of Rota."""
    (tmp_path / "child.py").write_text(CHILD)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    columns = [f"p{place:02}" for place in range(16)]
    draw = np.random.default_rng(1)
    for silo in "abc":
        x = draw.normal(size=(60, 16)).round(4)
        y = (x[:, :8].sum(axis=1) > 0).astype(int) + (x[:, 8:].sum(axis=1) > 2)
        lines = [",".join([*map(str, row), ["low", "middle", "high"][label]]) for row, label in zip(x, y)]
        (tmp_path / f"{silo}.csv").write_text("\n".join([",".join([*columns, "label"]), *lines]) + "\n")
    conv = {"conv": {"channels": 3, "kernel": 3, "bias": False}}
    layers = [conv, "norm", "relu", {"max-pool": {"size": 2}}, {"dense": 5}, "relu"]
    scenario = {
        "name": "interop",
        "rounds": 2,
        "learner": {"command": ["python3", "child.py"], "silos": ["a", "b"]},
        "task": {
            "table": {
                "model": {"network": {"layers": layers, "image": [1, 4, 4]}},
                "data": {
                    "rows": {
                        "files": [{"path": f"{silo}.csv"} for silo in "abc"],
                        "columns": {"target": "label", "classes": ["low", "middle", "high"]},
                    }
                },
            }
        },
        "strategy": {
            "name": "fedavg",
            "training": {"epochs": 2, "batch": 16, "optimiser": {"name": "sgd", "rate": 0.05}},
        },
    }
    (tmp_path / "s.toml").write_text(_toml.written(scenario))
    base = str(base_port())
    said = rota.command(["federation", "demo", "demo", "--scenario", "s.toml", "--base-port", base])
    configs = [line.split("--config ")[1].strip() for line in said.splitlines() if "rota run --config" in line]
    assert len(configs) == 3
    started = [
        subprocess.Popen(
            [rota.binary(), "run", "--json", "--until-done", "--config", config],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for config in configs
    ]
    try:
        for node in started:
            output, error = node.communicate(timeout=240)
            assert node.returncode == 0, error.decode()[-2000:]
            assert "cannot be contributed" not in output.decode()
    finally:
        for node in started:
            node.kill()
    return configs


def test_an_exported_model_gives_the_same_in_pytorch(nodes, tmp_path):
    rota.command(["model", "export", "--config", nodes[2], "--which", "global", "--out", "m.safetensors"])
    lines = (tmp_path / "a.csv").read_text().splitlines()
    rows = [line.rpartition(",")[0] for line in lines]
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    rota.command(["model", "predict", "rows.csv", "--model", "m.safetensors", "--out", "predictions.csv"])
    with open("predictions.csv", newline="") as file:
        expected = [[float(row[f"probability_{name}"]) for name in ["low", "middle", "high"]] for row in csv.DictReader(file)]
    names = {}
    exec(CHILD.split("if __name__")[0], names)
    model = rota.torch.load(names["network"](), "m.safetensors").eval()
    card = json.loads((tmp_path / "m.card.json").read_text())
    with open("a.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    x = np.array([[float(row[column["name"]]) for column in card["columns"]] for row in rows])
    mean, deviation = (np.array([column[key] for column in card["columns"]]) for key in ["mean", "deviation"])
    with torch.no_grad():
        scaled = torch.tensor(((x - mean) / deviation).astype(np.float32)).reshape(-1, 1, 4, 4)
        found = torch.softmax(model(scaled), 1).numpy()
    assert np.allclose(found, expected, atol=1e-4), np.abs(found - expected).max()


def test_names_of_rotas_networks_are_those_of_their_modules():
    """By name alone, whatever the order of the modules."""

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer1 = nn.Linear(4, 2)
            self.layer0 = nn.Linear(3, 4)

    shapes = {"layer0.weight": (4, 3), "layer0.bias": (4,), "layer1.weight": (2, 4), "layer1.bias": (2,)}
    found = rota.torch.match(Named(), shapes)
    assert found == {name: name for name in shapes}


def test_layers_beyond_ten_go_together_by_depth():
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.ModuleList(nn.Linear(3, 3) for _ in range(12))

    shapes = {}
    for layer in range(12):
        shapes |= {f"conv{layer}.weight": (3, 3), f"conv{layer}.bias": (3,)}
    # As in a file, whose names are in the order of text.
    found = rota.torch.match(Deep(), dict(sorted(shapes.items())))
    assert found == {f"conv{layer}.{part}": f"inner.{layer}.{part}" for layer in range(12) for part in ["weight", "bias"]}


def test_norm_layers_go_together_by_depth_under_either_name():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    for mean, variance in [("mean", "variance"), ("running_mean", "running_var")]:
        norm = {f"b.{part}": (4,) for part in ["weight", "bias", mean, variance]}
        shapes = {"a.weight": (4, 3), "a.bias": (4,), **norm, "c.weight": (2, 4), "c.bias": (2,)}
        found = rota.torch.match(model, shapes)
        assert found[f"b.{mean}"] == "1.running_mean" and found[f"b.{variance}"] == "1.running_var"
        assert len(found) == 8


def test_names_are_all_or_none(tmp_path):
    rota.write_tensors(tmp_path / "m.safetensors", {"w": np.ones((2, 3)), "b": np.ones(2)})
    for names, why in [
        ({"w": "weight"}, "must name every tensor of both sides once, and no other; look at 'b'"),
        ({"w": "weight", "b": "weight"}, "look at 'bias'"),
        ({"w": "bias", "b": "weight"}, "has the shape"),
    ]:
        with pytest.raises(ValueError, match=why):
            rota.torch.load(nn.Linear(3, 2), tmp_path / "m.safetensors", names=names)
    loaded = rota.torch.load(nn.Linear(3, 2), tmp_path / "m.safetensors", names={"w": "weight", "b": "bias"})
    assert loaded.weight.min() == 1
    data = (torch.zeros(2, 3), torch.zeros(2, 2))
    with pytest.raises(ValueError, match="must name every tensor"):
        rota.torch.Learner(nn.Linear(3, 2), nn.functional.mse_loss, data, data, names={"w": "weight"}, device="cpu")


def test_a_module_in_safetensors_goes_back_and_forth(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    with torch.no_grad():
        model[1].running_mean += 3
    learner = rota.torch.Learner(model, nn.functional.cross_entropy, (torch.zeros(2, 3), torch.tensor([0, 1])), device="cpu")
    rota.write_tensors(tmp_path / "m.safetensors", learner.initial(0))
    other = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    rota.torch.load(other, tmp_path / "m.safetensors")
    x = torch.randn(5, 3)
    assert torch.equal(model.eval()(x), other.eval()(x))
