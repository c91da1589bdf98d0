"""Learners as programs and in threads: what they print, draw, count, and raise."""

import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest

import rota
from rota import write_tensors

from conftest import external, scenario, silo
from test_protocol import OPEN, Program
from test_run import load


def started(script, program=sys.executable, **environment):
    """The program, started as a silo does."""
    command = [program, script]
    program = object.__new__(Program)
    program.process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"ROTA_LEARNER": "1-2-3"} | environment,
    )
    return program


SERVE = (
    "def learner(silo):\n"
    "    return rota.FunctionLearner({'w': (1,)}, lambda model, how: model, lambda model, part: {'loss': 1.0}, rota.Rows(1))\n"
    "rota.serve(learner)\n"
)


@pytest.mark.parametrize(
    "said",
    [
        "import rota\nprint('loud')\n",
        "import rota\nprint('loud', flush=True)\n",
        "print('loud')\nimport rota\n",
        "import rota, sys\nsys.stdout.write('loud\\n'); sys.stdout.flush()\n",
        "import rota, os\nos.write(1, b'loud\\n')\n",
        "import rota, os\nos.system('echo loud')\n",
        "import rota, subprocess\nsubprocess.run(['echo', 'loud'])\n",
    ],
    ids=["print", "flushed", "before the import", "write", "descriptor", "shell", "process"],
)
def test_what_is_printed_before_serve_is_not_in_the_protocol(tmp_path, said):
    script = tmp_path / "loud.py"
    script.write_text(said + SERVE)
    program = started(script, PYTHONUNBUFFERED="")
    program.ask(type="hello", protocol=1, program="a test", folder=str(tmp_path))
    assert program.ask(**OPEN)["layout"][0]["name"] == "w"
    program.process.stdin.close()
    assert b"loud" in program.process.stderr.read()
    assert program.process.wait(30) == 0


def test_a_simulation_with_a_program_that_prints_before_serve(tmp_path):
    script = tmp_path / "loud.py"
    script.write_text("import rota\nprint('loading the rows', flush=True)\n" + SERVE)
    task = {"external": {"tensors": [rota.Tensor("w", (1,)).document()]}}
    assert rota.simulate(scenario(task, rounds=1), learner=[sys.executable, str(script)], references=False)


def test_processes_of_a_learner_and_others_keep_their_output(tmp_path):
    """What a learner starts has its mark, but standard output of its own."""
    child = tmp_path / "child.py"
    child.write_text("import rota\nprint('from the child')\n")
    script = tmp_path / "parent.py"
    script.write_text(
        "import rota, subprocess, sys\n"
        f"said = subprocess.run([sys.executable, {str(child)!r}], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)\n"
        "assert said.stdout == 'from the child\\n', said\n" + SERVE
    )
    program = started(script)
    program.ask(type="hello", protocol=1, program="a test", folder=str(tmp_path))
    assert program.ask(**OPEN)["type"] == "opened"
    assert program.end() == 0
    plain = subprocess.run([sys.executable, child], capture_output=True, stdin=subprocess.PIPE, text=True, check=True)
    assert plain.stdout == "from the child\n"


def test_a_shell_that_starts_the_program_may_ask_python_before(tmp_path):
    script = tmp_path / "learner.py"
    script.write_text("import rota\nprint('loud', flush=True)\n" + SERVE)
    shell = tmp_path / "start.sh"
    shell.write_text(
        f'version=$("{sys.executable}" -c "import rota; print(rota.__version__)")\n'
        'echo "rota $version" >&2\n'
        f'"{sys.executable}" "{script}"\n'
    )
    program = started(shell, program="sh")
    program.ask(type="hello", protocol=1, program="a test", folder=str(tmp_path))
    assert program.ask(**OPEN)["layout"][0]["name"] == "w"
    program.process.stdin.close()
    said = program.process.stderr.read().decode()
    assert f"rota {rota.__version__}\n" in said and "loud" in said


# Draws.


def drawing(of):
    """A learner that draws from the generators of the process, after it has seeded them at its start."""
    random.seed(of.place)
    np.random.seed(of.place)
    first = [random.random(), np.random.rand()]

    def train(model, how):
        found = [random.random() + np.random.rand() for _ in range(200)]
        return {"w": model["w"] + first[0] + first[1] + sum(found) / 200}

    return rota.FunctionLearner({"w": (1,)}, train, lambda model, part: {"loss": float(model["w"][0])}, rota.Rows(1, test=1))


def traces(learner):
    """The trace of a simulation alone, and those of eight at the same time."""
    task = external(learner(silo()))
    found = []

    def run():
        found.append(rota.simulate(scenario(task), learner=learner, references=False)["rounds"][-1]["outcome"])

    run()
    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found[0], found[1:]


def test_simulations_in_threads_do_not_draw_from_each_other():
    alone, together = traces(drawing)
    assert together == [alone] * 8


def test_pytorch_in_threads_does_not_draw_from_other_simulations():
    torch = pytest.importorskip("torch")
    import rota.torch

    torch.set_num_threads(1)

    def learner(of):
        torch.manual_seed(of.place)
        x = torch.randn(40, 6)
        rows = torch.utils.data.TensorDataset(x, x[:, :1] * x[:, 1:2])
        loader = torch.utils.data.DataLoader(rows, batch_size=8, shuffle=True)
        model = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.Dropout(0.3), torch.nn.Linear(32, 1))
        return rota.torch.Learner(model, torch.nn.functional.mse_loss, loader, loader, silo=of, device="cpu")

    alone, together = traces(learner)
    assert together == [alone] * 8


def test_silos_that_seed_nothing_draw_by_their_seeds():
    """The same federation twice is the same, and no two silos draw the same numbers."""

    def learner(of):
        rows = np.random.rand(), random.random()
        drawn[of.place] = rows

        def train(model, how):
            return {"w": model["w"] + np.random.rand() + random.random()}

        return rota.FunctionLearner({"w": (1,)}, train, lambda model, part: {"loss": 1.0}, rota.Rows(1, test=1))

    found = []
    for seed in (1, 1, 2):
        drawn = {}
        summary = rota.simulate(
            scenario({"external": {"tensors": [rota.Tensor("w", (1,)).document()]}}), learner=learner, seed=seed,
            references=False,
        )  # fmt: skip
        assert len(set(drawn.values())) == 3
        found.append((drawn, summary["rounds"][-1]["outcome"]))
    assert found[0] == found[1] != found[2]


def test_a_measurement_that_fails_leaves_the_turn_to_others():
    """Also while its exception, and the frames in it, are kept."""
    torch = pytest.importorskip("torch")
    import rota.torch

    x = torch.randn(20, 3)

    class Both(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x), x

    def loss(outputs, targets):
        return torch.nn.functional.mse_loss(outputs[0], targets)

    learner = rota.torch.Learner(Both(3, 3), loss, (x, x), (x, x), device="cpu")
    kept = []
    try:
        # It has no outputs row by row.
        learner.outputs(dict(learner.initial(0)), "test", {})
    except Exception as error:
        kept.append(error)
    assert kept and torch.is_grad_enabled()
    done = []
    thread = threading.Thread(target=lambda: done.append(learner.evaluate(dict(learner.initial(0)), "test", {})), daemon=True)
    thread.start()
    thread.join(30)
    assert done and done[0]["loss"] > 0


def test_a_simulation_leaves_the_generators_of_the_process_alone():
    random.seed(4)
    np.random.seed(4)
    task = external(load("two_arrays").learner(silo()))
    python, numpy = random.getstate(), np.random.get_state()[1].copy()
    rota.simulate(scenario(task), learner=load("two_arrays").learner, references=False)
    assert random.getstate() == python and np.array_equal(np.random.get_state()[1], numpy)


def test_a_learner_may_simulate_in_its_training():
    """It holds its turn meanwhile."""
    inner = load("two_arrays").learner
    task = external(inner(silo()))

    def learner(of):
        def train(model, how):
            best = rota.simulate(scenario(task, rounds=1), learner=inner, references=False)
            return {"w": model["w"] + len(best["silos"])}

        return rota.FunctionLearner({"w": (1,)}, train, lambda model, part: {"loss": 1.0}, rota.Rows(1, test=1))

    outer = scenario(external(learner(silo())), rounds=1)
    found = []
    thread = threading.Thread(target=lambda: found.append(rota.simulate(outer, learner=learner, references=False)), daemon=True)
    thread.start()
    thread.join(60)
    assert found and not found[0]["training_failed"]


# Rows.


def counting(samples, rows=100, some=False):
    class Counting(rota.FunctionLearner):
        some_rows = some

    def train(model, how):
        return rota.Update({"w": model["w"]}, {"loss": 1.0}, samples=samples)

    return Counting({"w": (1,)}, train, lambda model, part: {"loss": 1.0}, rota.Rows(rows, test=1))


def asked(tmp_path, learner):
    """The answer to a training, and what was said besides."""
    import io
    from contextlib import redirect_stderr

    from rota._talk import _Session

    write_tensors(tmp_path / "start", {"w": np.zeros(1)})
    how = {"epochs": 1, "batch": 0, "optimiser": {"name": "sgd", "rate": 0.1}}
    request = dict(rows=None, start=str(tmp_path / "start"), personal=None, into=str(tmp_path / "into"))
    session, said = _Session(silo(), learner), io.StringIO()
    with redirect_stderr(said):
        for _ in range(2):
            answer = session.train(request | dict(training=how, seed=1, modifier=None, personal_into=None), None)
    return answer, said.getvalue()


def test_samples_that_are_not_the_rows_are_questioned(tmp_path):
    """They are the weight of the model, and a wrong weight shows nowhere."""
    for samples in (None, 100):
        assert asked(tmp_path, counting(samples)) == (
            {"type": "trained", "samples": 100, "metrics": {"loss": 1.0}},
            "",
        )
    for samples in (300, 101):
        with pytest.raises(ValueError, match=f"`samples` is {samples}, and silo 'north' has 100 training rows: count each row once"):
            asked(tmp_path, counting(samples))
    for samples in (3, 7, 49):
        with pytest.raises(ValueError, match=f"`samples` is {samples}, .*count rows .not batches, keys or steps.*some_rows = True"):
            asked(tmp_path, counting(samples))
        answer, said = asked(tmp_path, counting(samples, some=True))
        assert answer["samples"] == samples and said.count("trained on") == 1
    answer, said = asked(tmp_path, counting(96))
    assert answer["samples"] == 96
    assert said == "note: silo 'north' trained on 96 of its 100 training rows, so its weight in the federation is 96\n"


def test_samples_that_are_keys_of_a_batch_fail_a_federation():
    task = external(counting(3))
    with pytest.raises(rota.RotaError, match="`samples` is 3, and silo .* has 100 training rows"):
        rota.simulate(scenario(task, rounds=1), learner=lambda of: counting(3), references=False)


# Errors.


class Ward(Exception):
    """An exception of a learner."""


def test_an_error_has_the_document_that_was_printed():
    """Of a federation whose models are of no use at any silo."""

    def learner(of):
        def evaluate(model, part):
            return {"loss": float("nan") if model["w"][0] > 1 else 1.0}

        return rota.FunctionLearner({"w": (1,)}, lambda model, how: {"w": model["w"] + 1}, evaluate, rota.Rows(5, test=5))

    with pytest.raises(rota.RotaError, match="of no use") as caught:
        rota.simulate(scenario(external(learner(silo()))), learner=learner)
    summary = caught.value.summary
    assert isinstance(summary, rota.Summary) and not summary["usable"]
    assert len(summary["rounds"]) == 4 and len(summary.silos()) == 3
    with pytest.raises(rota.RotaError) as caught:
        rota.simulate("no-such-scenario")
    assert caught.value.summary is None and caught.value.__cause__ is None


def test_an_error_comes_from_the_learners_own_exception():
    def learner(of):
        def ward():
            raise Ward("the disk is full")

        ward()

    task = external(load("two_arrays").learner(silo()))
    with pytest.raises(rota.RotaError, match="the disk is full") as caught:
        rota.simulate(scenario(task), learner=learner)
    cause = caught.value.__cause__
    assert isinstance(cause, Ward)
    # With the line of the learner in which it was raised.
    names, trace = [], cause.__traceback__
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert names[-2:] == ["learner", "ward"]


def test_a_failed_comparison_comes_from_the_learners_exception():
    def learner(of):
        raise Ward("the rows are elsewhere")

    table = {"table": {"data": "diabetes", "model": {"linear": {"loss": "squared"}}}}
    with pytest.raises(rota.RotaError, match="the rows are elsewhere") as caught:
        rota.compare(scenario(table, silos=3), strategies=["fedavg"], seeds=1, learner=learner, quick=True)
    assert isinstance(caught.value.__cause__, Ward)


def test_the_first_exception_that_the_error_quotes_is_its_cause():
    def learner(of):
        raise Ward(f"nothing at {of.name}")

    task = external(load("two_arrays").learner(silo()))
    with pytest.raises(rota.RotaError) as caught:
        rota.simulate(scenario(task), learner=learner)
    assert str(caught.value.__cause__) in str(caught.value)
