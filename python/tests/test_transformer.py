"""The example of a transformer that is fine-tuned by adapters."""

import re
import shutil
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
from rota import _toml  # noqa: E402

from conftest import EXAMPLES, silo  # noqa: E402
from test_run import load  # noqa: E402


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A folder with the example, after it has run there, and what it printed."""
    folder = tmp_path_factory.mktemp("transformer")
    for name in ["transformer.py", "transformer.toml"]:
        shutil.copy(EXAMPLES / name, folder / name)
    done = subprocess.run(
        [sys.executable, folder / "transformer.py"], capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder, done.stdout


def test_adapters_need_fewer_bytes_and_learn(compared):
    _, said = compared
    found = {}
    for line in said.splitlines():
        if match := re.match(r"(a[a-z ]+, [a-z ]+?) {2,}([\d,]+) +([\d,]+) +([\d.]+) +([\d.]+) +\d+$", line):
            found[match[1]] = [float(number.replace(",", "")) for number in match.groups()[1:]]
    adapters, alone = found["adapters, together"], found["adapters, each alone"]
    everything = found["all of the model, together"]
    # Rank 8 around 8 layers of two blocks: 64 → 192, 64 → 64, 64 → 256, 256 → 64.
    assert adapters[0] == 2 * 4 * 8 * (256 + 128 + 320 + 320)
    assert everything[0] > 6 * adapters[0] and everything[1] > 5 * adapters[1]
    for _, _, before, after in found.values():
        assert after < before / 3
    assert everything[3] < adapters[3] < alone[3]


def test_the_scenario_is_that_of_the_example(compared, monkeypatch):
    folder, _ = compared
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    written = _toml.read(folder / "transformer.toml")
    example = load("transformer")
    monkeypatch.setattr(example, "BASE", folder / "transformer-base.safetensors")
    learner = example.learner(silo())
    listed = {one["name"]: (one["shape"], one.get("initial", 0.0)) for one in written["task"]["external"]["tensors"]}
    assert listed == {tensor.name: (list(tensor.shape), tensor.initial) for tensor in learner.tensors()}
    command = [sys.executable, "transformer.py", "serve"]
    said = rota.command(["learner", "describe", *command])
    assert f'frozen = "{learner.frozen()}"' in said
    summary = rota.simulate(folder / "transformer.toml", learner=command, rounds=2, references=False)
    assert not summary["training_failed"]
    assert all(losses[1] < losses[0] < 2.5 for losses in summary.curves().values())
