"""The messages, spoken with `rota.serve` in a process of its own."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from rota import read_tensors, write_tensors

from conftest import EXAMPLES


class Program:
    def __init__(self, script):
        self.process = subprocess.Popen(
            [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def ask(self, **request):
        body = json.dumps(request).encode()
        self.process.stdin.write(len(body).to_bytes(4, "little") + body)
        self.process.stdin.flush()
        return self.hear() if request["type"] != "stop" else None

    def hear(self):
        size = int.from_bytes(self.process.stdout.read(4), "little")
        return json.loads(self.process.stdout.read(size))

    def end(self):
        self.process.stdin.close()
        return self.process.wait(30)


@pytest.fixture
def program():
    program = Program(EXAMPLES / "two_arrays.py")
    yield program
    program.process.kill()


OPEN = dict(type="open", silo=0, name="n", silos=2, seed=1, layout=[], rows=None)


def test_a_training_by_hand(program, tmp_path):
    said = program.ask(type="hello", protocol=1, program="a test", folder=str(tmp_path))
    assert said == {"type": "hello", "protocol": 1, "name": "rota for Python"}
    opened = program.ask(**OPEN)
    assert opened["rows"] == {"train": 40, "validation": 0, "test": 20}
    start, into = str(tmp_path / "start"), str(tmp_path / "into")
    write_tensors(start, {"weight": np.zeros(3), "bias": np.zeros(1)})
    how = {"epochs": 200, "batch": 0, "optimiser": {"name": "sgd", "rate": 0.1}}
    request = dict(silo=0, rows=None, start=start, personal=None, into=into, personal_into=None)
    said = program.ask(type="train", training=how, seed=2**64 - 1, modifier=None, **request)
    assert said["type"] == "trained" and said["samples"] == 40
    assert np.allclose(read_tensors(into)["weight"], [1, -2, 0.5], atol=0.1)
    measure = dict(silo=0, rows=None, model=into, personal=None, split="test")
    measured = program.ask(type="evaluate", **measure)
    assert measured["samples"] == 20 and measured["metrics"]["loss"] < 0.1
    assert program.end() == 0


def test_an_exception_is_told_and_the_program_goes_on(program, tmp_path):
    program.ask(type="hello", protocol=1, program="a test", folder=str(tmp_path))
    program.ask(**OPEN)
    measure = dict(silo=0, rows=None, model=str(tmp_path / "none"), personal=None, split="test")
    said = program.ask(type="evaluate", **measure)
    assert said["type"] == "failed" and "FileNotFoundError" in said["why"]
    said = program.ask(type="sing")
    assert said["type"] == "failed"
    said = program.ask(type="hello", protocol=2, program="another", folder=str(tmp_path))
    assert "version 2" in said["why"]
    assert program.ask(**OPEN)["type"] == "opened"


def test_what_is_printed_is_not_in_the_protocol(tmp_path):
    script = tmp_path / "loud.py"
    script.write_text(
        "import rota\n"
        "def learner(silo):\n"
        "    print('hello from Python')\n"
        "    return rota.FunctionLearner({'w': (1,)}, None, None, rota.Rows(1))\n"
        "rota.serve(learner)\n"
    )
    program = Program(script)
    program.ask(type="hello", protocol=1, program="a test", folder=str(tmp_path))
    assert program.ask(**OPEN)["layout"][0]["name"] == "w"
    program.process.stdin.close()
    assert b"hello from Python" in program.process.stderr.read()


def test_a_training_is_stopped_at_its_next_progress(tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(
        "import rota\n"
        "def train(model, training):\n"
        "    step = 0\n"
        "    while True:\n"
        "        step += 1\n"
        "        training.progress(step, step + 1, float('nan'))\n"
        "def learner(silo):\n"
        "    return rota.FunctionLearner({'w': (1,)}, train, None, rota.Rows(1))\n"
        "rota.serve(learner)\n"
    )
    program = Program(script)
    program.ask(type="hello", protocol=1, program="a test", folder=str(tmp_path))
    program.ask(**OPEN)
    write_tensors(tmp_path / "start", {"w": np.zeros(1)})
    how = {"epochs": 1, "batch": 0, "optimiser": {"name": "sgd", "rate": 0.1}}
    path = str(tmp_path / "start")
    request = dict(silo=0, rows=None, start=path, personal=None, into=path, personal_into=None)
    said = program.ask(type="train", training=how, seed=1, modifier=None, **request)
    assert said == {"type": "progress", "step": 1, "steps": 2, "loss": None}
    program.ask(type="stop")
    while said["type"] == "progress":
        said = program.hear()
    assert said == {"type": "stopped"}
    program.process.kill()


def started(tmp_path, learner):
    """A program with a learner by this text, which has been greeted."""
    script = tmp_path / "program.py"
    script.write_text("import os, sys, numpy as np, rota\n" + learner + "rota.serve(learner)\n")
    program = Program(script)
    program.ask(type="hello", protocol=1, program="a test", folder=str(tmp_path))
    return program


def train(program, tmp_path):
    write_tensors(tmp_path / "start", {"w": np.zeros(1)})
    how = {"epochs": 1, "batch": 0, "optimiser": {"name": "sgd", "rate": 0.1}}
    path = str(tmp_path / "start")
    request = dict(silo=0, rows=None, start=path, personal=None, into=path, personal_into=None)
    return program.ask(type="train", training=how, seed=1, modifier=None, **request)


def test_numbers_of_numpy_are_numbers(tmp_path):
    program = started(
        tmp_path,
        "def train(model, training):\n"
        "    training.progress(np.int64(1), np.int32(2), np.float32(0.5))\n"
        "    return rota.Update(model, {'loss': np.float32(1.5)}, samples=np.int64(7))\n"
        "learner = rota.FunctionLearner({'w': (1,)}, train, lambda *_: {'loss': np.float64(1)}, rota.Rows(np.int64(7), test=np.int32(3)))\n",
    )
    assert program.ask(**OPEN)["rows"] == {"train": 7, "validation": 0, "test": 3}
    assert train(program, tmp_path) == {"type": "progress", "step": 1, "steps": 2, "loss": 0.5}
    assert program.hear() == {"type": "trained", "samples": 7, "metrics": {"loss": 1.5}}
    assert program.end() == 0


def test_an_answer_that_cannot_be_sent_is_told(tmp_path):
    program = started(
        tmp_path,
        "class Learner(rota.FunctionLearner):\n"
        "    def tensors(self):\n"
        "        yield rota.Tensor('w', (1,), initial=float('nan'))\n"
        "learner = lambda silo: Learner({'w': (1,)}, None, None, rota.Rows(1))\n",
    )
    said = program.ask(**OPEN)
    assert said["type"] == "failed" and "initial value of the tensor 'w' is not finite" in said["why"]
    assert program.end() == 0


def test_a_learner_that_exits_fails_its_request(tmp_path):
    program = started(tmp_path, "def learner(silo):\n    sys.exit('there is no GPU')\n")
    said = program.ask(**OPEN)
    assert said["type"] == "failed" and said["why"].startswith("SystemExit: there is no GPU (")
    assert program.end() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_and_children_of_a_learner_keep_off_the_protocol(tmp_path):
    program = started(
        tmp_path,
        "import subprocess\n"
        "def learner(silo):\n"
        "    worker = os.fork()\n"
        "    if worker == 0:\n"
        "        # What a fork has buffered, reads and writes at its end goes nowhere.\n"
        "        sys.stdin.read()\n"
        "        sys.exit()\n"
        "    os.waitpid(worker, 0)\n"
        "    read = subprocess.run([sys.executable, '-c', 'input()'], stderr=subprocess.DEVNULL)\n"
        "    assert read.returncode == 1, 'it has read from the protocol'\n"
        "    return rota.FunctionLearner({'w': (1,)}, None, None, rota.Rows(1))\n",
    )
    assert program.ask(**OPEN)["type"] == "opened"
    assert program.ask(**OPEN)["type"] == "opened"
    assert program.end() == 0


def test_a_training_without_progress_ends_with_its_silo(tmp_path, monkeypatch):
    program = started(
        tmp_path,
        "import rota._talk\n"
        "rota._talk.ENDING = 0.5\n"
        "def train(model, training):\n"
        "    try:\n"
        "        training.progress(1, 2)\n"
        "    finally:\n"
        "        # Also where the end was heard before this call came back.\n"
        "        os.read(os.pipe()[0], 1)\n"
        "learner = rota.FunctionLearner({'w': (1,)}, train, None, rota.Rows(1))\n",
    )
    assert program.ask(**OPEN)["type"] == "opened"
    assert train(program, tmp_path)["type"] == "progress"
    assert program.end() == 1
