"""What makes small trainings short: nothing that is computed, drawn or told is another one by it."""

import json
import os
import random
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

import rota
from rota import _exchange
from rota._frames import Looking, frame_of
from rota._tensors import read_given, write_tensors
from rota._turn import Level, inner, seeded, turn, use

from conftest import external, scenario, training


def drawing(seen):
    """A learner that draws in every training and measurement."""

    def train(model, training):
        seen.append(("train", training.round, random.random(), float(np.random.rand())))
        return rota.Update(model, {"loss": 0.0})

    def evaluate(model, split):
        seen.append(("evaluate", None, random.random(), float(np.random.rand())))
        return {"loss": 0.0}

    return rota.FunctionLearner({"w": (2,)}, train, evaluate, rota.Rows(4, test=2))


def test_generators_are_put_back_for_each_round_and_afterwards():
    seen, told = [], []
    made = drawing(seen)
    task = external(made)
    random.seed(5), np.random.seed(5)
    expected = [(random.random(), float(np.random.rand())) for _ in range(4)]
    random.seed(5), np.random.seed(5)

    def on_round(done):
        told.append((random.random(), float(np.random.rand())))

    rota.simulate(scenario(task, rounds=3, silos=2), learner=made, references=False, on_round=on_round)
    assert [*told, (random.random(), float(np.random.rand()))] == expected
    first = sorted(seen, key=str)
    seen.clear()
    rota.simulate(scenario(task, rounds=3, silos=2), learner=made, references=False)
    assert sorted(seen, key=str) == first, "the same questions draw the same"


def test_seeds_inside_of_a_turn_are_put_back_at_once():
    def serves():
        use(Level())
        with turn(), seeded(1):
            before = random.random()
            with seeded(2):
                random.random()
            found.append((before, random.random()))

    found = []
    thread = threading.Thread(target=serves)
    thread.start()
    thread.join()
    again = random.Random(1)
    assert found == [(again.random(), again.random())]


def test_generators_are_put_back_after_the_turn_that_is_under_way():
    level, entered, go_on = Level(), threading.Event(), threading.Event()
    random.seed(9)
    expected = random.random()
    random.seed(9)

    def serves():
        use(level)
        with turn(), seeded(1):
            entered.set()
            go_on.wait(20)

    thread = threading.Thread(target=serves)
    thread.start()
    assert entered.wait(20)
    level.give_back()
    assert level.owed, "it waits for no learner"
    go_on.set()
    thread.join()
    assert random.random() == expected and not level.owed


def test_a_simulation_in_a_turn_has_turns_of_its_own():
    assert inner() is inner()
    with turn():
        assert inner() is not inner()


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="sockets of Unix")
def test_frames_are_heard_in_pieces_and_a_late_stop_is_none():
    ours, theirs = socket.socketpair()
    looking = Looking(ours)
    one, two, stop = (frame_of({"type": kind}) for kind in ("hello", "train", "stop"))
    theirs.sendall(one[:3])
    later = threading.Timer(0.05, theirs.sendall, [one[3:] + stop + two])
    later.start()
    assert looking.hear() == {"type": "hello"}
    assert looking.hear() == {"type": "train"}, "the stop was for a training that is over"
    assert not looking.is_stopped(now=True)
    theirs.sendall(stop)
    assert looking.is_stopped(now=True) and looking.is_stopped()
    looking.go_on()
    assert not looking.is_stopped(now=True)
    looking.say(one)
    assert json.loads(theirs.recv(100)[4:]) == {"type": "hello"}
    theirs.close()
    assert looking.is_stopped(now=True) and looking.hear() is None
    ours.close()


def test_a_file_that_is_read_again_is_another_array(tmp_path):
    path = tmp_path / "m.safetensors"
    write_tensors(path, {"a": np.arange(3.0), "b": np.zeros(()), "c": np.zeros((0, 2))})
    first = read_given(path)
    first["a"][:] = 7
    assert first["a"].flags.writeable
    again = read_given(path)
    assert again["a"].tolist() == [0, 1, 2] and again["b"].shape == () and again["c"].shape == (0, 2)
    write_tensors(path, {"a": np.arange(3.0) + 1, "b": np.ones(()), "c": np.zeros((0, 2))})
    os.utime(path, ns=(1, 1))
    assert read_given(path)["a"].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="no safetensors"):
        path.write_bytes(b"\0" * 40)
        read_given(path)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files in memory of Linux")
def test_small_models_are_exchanged_in_memory(monkeypatch):
    monkeypatch.delenv("TMPDIR", raising=False)

    def of(shape, silos=None, room=1 << 30, said=None):
        free = type("Free", (), {"f_bavail": room // 4096, "f_frsize": 4096})
        monkeypatch.setattr(_exchange.os, "statvfs", lambda _: free)
        monkeypatch.setattr(_exchange.os, "access", lambda *_: True)
        content = {"task": {"external": {"tensors": [{"name": "w", "shape": shape}]}}} | ({} if said is None else {"silos": said})
        return _exchange.folder_for(content, silos)

    assert of([1000]) == "/dev/shm"
    assert of([2_000_000]) is None, "large ones are files"
    assert of([100_000], room=1 << 20) is None, "there is no room"
    assert of([100_000], silos=3, room=1 << 26) == of([100_000], said=3, room=1 << 26) == "/dev/shm"
    assert _exchange.folder_for("heart", None) is None and _exchange.folder_for({"task": {}}, None) is None
    monkeypatch.setenv("TMPDIR", "/tmp")
    assert of([1000]) is None, "somebody has chosen"


def test_a_scenario_in_a_file_is_read_for_the_size_of_its_model(tmp_path):
    pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    path = tmp_path / "s.toml"
    path.write_text("silos = 3\n[[task.external.tensors]]\nname = 'w'\nshape = [3]\n")
    assert _exchange._bytes(_exchange.content_of(path)) == 12
    path.write_text("silos = ")
    assert _exchange.content_of(path) is None and _exchange.content_of("diabetes") is None


# Of PyTorch.


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_a_short_step_of_sgd_is_the_one_of_pytorch(torch, decay):
    from rota.torch._optimiser import Descent, is_descent, made

    def after(short):
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 2))
        model[0].bias.requires_grad_(False)
        how = training(rate=0.3, weight_decay=decay)
        trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
        assert is_descent(trained, how, None)
        optimiser = Descent(trained, how) if short else made(trained, how, None)
        for _ in range(9):
            optimiser.zero_grad()
            model(torch.randn(4, 5)).square().sum().backward()
            optimiser.step()
        return [value.detach().numpy().tobytes() for value in model.parameters()]

    assert after(True) == after(False)


def test_steps_that_others_are_told_of_are_those_of_pytorch(torch):
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from rota.torch._optimiser import is_descent

    trained = {"w": torch.nn.Parameter(torch.zeros(2))}
    assert is_descent(trained, training(), None) and not is_descent(trained, training(), "sgd")
    assert not is_descent(trained, training(momentum=0.9), None) and not is_descent(trained, training(optimiser="adam"), None)
    hook = register_optimizer_step_post_hook(lambda *_: None)
    try:
        assert not is_descent(trained, training(), None)
    finally:
        hook.remove()


def test_a_small_training_does_not_load_the_compiler(torch):
    code = (
        "import sys, torch, rota, rota.torch\n"
        "before = 'torch._dynamo' in sys.modules\n"
        "x, y = torch.randn(40, 3), torch.arange(40) % 3\n"
        "made = rota.torch.Learner(torch.nn.Linear(3, 3), torch.nn.functional.cross_entropy, (x, y), (x, y), device='cpu')\n"
        "how = rota.Training(1, 20, 'sgd', 0.1, 0.0, 0.0, 5, {}, None)\n"
        "made.train(dict(made.initial(0)), how), made.evaluate(made.initial(0), 'test', {})\n"
        "print(before or 'torch._dynamo' not in sys.modules)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.split()[-1] == "True"


def test_what_a_module_holds_is_sought_anew_where_it_changed(torch):
    from rota.torch._held import Held

    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    held = Held(model)
    assert held.parameters() is held.parameters() and list(held.parameters()) == [name for name, _ in model.named_parameters()]
    model[0].weight = torch.nn.Parameter(torch.ones(3, 2))
    assert held.parameters()["0.weight"] is model[0].weight
    model[1].running_mean = torch.full((3,), 2.0)
    assert held.buffers()["1.running_mean"] is model[1].running_mean
    model[0] = torch.nn.Linear(2, 3, bias=False)
    assert "0.bias" not in held.parameters() and held.parameters()["0.weight"] is model[0].weight


def test_rows_are_picked_as_by_an_index(torch):
    from rota.torch._batches import picked

    places = torch.tensor([3, 0, 3])
    x = torch.arange(40.0).reshape(5, 2, 2, 2)
    rows = (x, {"a": x.contiguous(memory_format=torch.channels_last)}, x[:, :1], x.half(), torch.arange(5), [torch.arange(5) > 1])
    found = picked(rows, places)
    assert torch.equal(found[0], x[places]) and found[0].stride() == x[places].stride()
    expected = rows[1]["a"][places]
    assert torch.equal(found[1]["a"], expected) and found[1]["a"].stride() == expected.stride()
    assert torch.equal(found[2], x[:, :1][places]) and found[3].dtype == torch.float16
    assert found[4].tolist() == [3, 0, 3] and found[5][0].tolist() == [True, False, True]


def test_batches_without_targets_that_count_still_count_nothing(torch):
    F = torch.nn.functional
    x, y = torch.randn(8, 3), torch.tensor([-100] * 4 + [0, 1, 2, 0])
    made = rota.torch.Learner(torch.nn.Linear(3, 3), F.cross_entropy, (x[4:], y[4:]), (x, y), device="cpu")
    assert set(made.evaluate(made.initial(0), "test", {})) == {"loss", "accuracy"}
    model = torch.nn.Linear(3, 3)
    made = rota.torch.Learner(model, F.cross_entropy, [(x[4:], y[4:]), (x[:4], y[:4])], device="cpu")
    found = made.train({name: value.copy() for name, value in made.initial(0).items()}, training())
    assert np.isfinite(found.metrics["loss"]) and found.metrics["steps"] == 1
    assert all(np.isfinite(value).all() for value in found.model.values())
