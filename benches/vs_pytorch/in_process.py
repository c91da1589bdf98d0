"""PyTorch in the process of a simulation: `rota.simulate(..., learner=f)` beside a plain loop, and its memory.

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch==2.9.0 numpy
    cargo build --release
    ROTA_BIN=target/release/rota PYTHONPATH=python/src /tmp/torch/bin/python benches/vs_pytorch/in_process.py time
    ROTA_BIN=target/release/rota PYTHONPATH=python/src /tmp/torch/bin/python benches/vs_pytorch/in_process.py memory

`time` trains the FedAvg CNN at several silos by FedAvg: once with `rota.simulate` and a `rota.torch.Learner` for
each silo, and once in a loop of PyTorch alone that has one module and averages in place. Both do the same work on
the same batches: the loop takes start and orders of rows from a simulation before, and the script ends with an
error if the two mean models of the first round differ by more than rounding. What counts is processor time, user and
system, of the process and of the program `rota` that it starts, on one thread; of Rota from before the learners
are made to the summary, with making and trying them, of the loop from before its module is made to its last
measure. Both measure the mean model of every round on the held-out rows of every silo, and the last one on the
training rows and once more on the held-out ones. The rows are made before.

`memory` trains a perceptron of 10 million parameters at 50 silos that have few rows, two rounds, and looks every
50 milliseconds how much memory the Python process and the program have (`Pss` of Linux: pages that both have
count half for each). The largest is printed, of each and of both together, beside the largest resident memory that
the system noted, which has pages of mapped files in it.

Each side runs in a process of its own, in turn; the median of the turns counts.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RATE, BATCH = 0.05, 32


def processor():
    """Seconds of the processor so far, of this process and the programs that it waited for."""
    both = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


def cnn():
    from torch import nn

    first = [nn.Conv2d(3, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    return nn.Sequential(*first, *second, nn.Linear(4096, 512), nn.ReLU(), nn.Linear(512, 10))


def perceptron():
    from torch import nn

    return nn.Sequential(nn.Linear(784, 2816), nn.ReLU(), nn.Linear(2816, 2744), nn.ReLU(), nn.Linear(2744, 10))


def pictures(silos, rows, shape):
    """Rows of every silo, and a sixth as many that are held out: classes are bright in a place of their own."""
    import torch

    draw = torch.Generator().manual_seed(1)

    def some(count):
        x, y = torch.randn(count, *shape, generator=draw), torch.arange(count) % 10
        x.flatten(1)[torch.arange(count), y * 7] += 4
        return x, y

    return [(some(rows), some(max(10, rows // 6))) for _ in range(silos)]


def scenario(task, silos, rounds, epochs, batch):
    training = {"epochs": epochs, "batch": batch, "optimiser": {"name": "sgd", "rate": RATE}}
    strategy = {"name": "fedavg", "training": training}
    return {"name": "in-process", "rounds": rounds, "silos": silos, "task": task, "strategy": strategy}


def of_rota(network, data, rounds, epochs, batch, note=None):
    """Simulates. Returns the processor's seconds, those in which learners were made, those of their work and those of
    the program, and the last loss. `note` gets what
    every training is given, and what comes out."""
    import torch

    import rota
    import rota.torch

    parts = {"making": 0.0, "learning": 0.0}

    def measured(part, work):
        def timed(*given):
            began = time.thread_time()
            try:
                return work(*given)
            finally:
                parts[part] += time.thread_time() - began

        return timed

    def learner(silo):
        train, test = data[silo.place]
        made = rota.torch.Learner(network(), torch.nn.functional.cross_entropy, train, test, silo=silo, device="cpu")
        if note is not None:
            plain = made.train

            def noted(start, how):
                start = {name: value.copy() for name, value in start.items()}
                found = plain(start, how)
                note.append((silo.place, start, how.seed, found.model))
                return found

            made.train = noted
        for name in ("train", "evaluate", "outputs"):
            setattr(made, name, measured("learning", getattr(made, name)))
        return made

    torch.manual_seed(1)
    task = {"external": {"tensors": [one.document() for one in learner(silo_for(len(data))).tensors()]}}
    # Made for the task's sake alone.
    torch.manual_seed(1)
    began = processor()
    document = scenario(task, len(data), rounds, epochs, batch)
    summary = rota.simulate(document, learner=measured("making", learner), references=False)
    losses = [mean["per_silo"] for mean in summary["means"] if mean["model"] == "global"]
    program = resource.getrusage(resource.RUSAGE_CHILDREN)
    program = program.ru_utime + program.ru_stime
    return {"processor": processor() - began, "program": program, "loss": losses[0]} | parts


def silo_for(silos):
    import rota

    return rota.Silo("first", place=0, silos=silos, seed=0, layout=[])


def by_hand(network, data, seeds, start, epochs, batch):
    """FedAvg in PyTorch: `seeds` of the orders of rows by round and silo, from this model."""
    import torch
    from torch.nn import functional

    def measured(x, y):
        with torch.no_grad():
            model.eval()
            total = right = 0.0
            for first in range(0, len(x), 512):
                outputs, targets = model(x[first : first + 512]), y[first : first + 512]
                total += float(functional.cross_entropy(outputs, targets)) * len(targets)
                right += int((outputs.argmax(1) == targets).sum())
        return total / len(x), right / len(x)

    began = processor()
    model = network()
    agreed = {name: torch.from_numpy(value.copy()) for name, value in start.items()}
    everywhere = sum(len(train[0]) for train, _ in data)
    measuring, means = 0.0, []
    for round_seeds in seeds:
        mean = {name: torch.zeros_like(value) for name, value in agreed.items()}
        for ((x, y), _), seed in zip(data, round_seeds):
            model.load_state_dict(agreed)
            model.train()
            optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
            draw = torch.Generator().manual_seed(seed % (1 << 63))
            for _ in range(epochs):
                order = torch.randperm(len(x), generator=draw)
                for at in range(0, len(x), batch):
                    chosen = order[at : at + batch]
                    optimiser.zero_grad()
                    loss = functional.cross_entropy(model(x[chosen]), y[chosen])
                    loss.backward()
                    optimiser.step()
                    # As the loss of a training is reported.
                    loss.item()
            for name, value in model.state_dict().items():
                mean[name].add_(value, alpha=len(x) / everywhere)
        agreed = mean
        means.append(mean)
        model.load_state_dict(agreed)
        before = processor()
        losses = [measured(*test) for _, test in data]
        measuring += processor() - before
    before = processor()
    for train, test in data:
        measured(*test)
        measured(*train)
    measuring += processor() - before
    loss = statistics.mean(one for one, _ in losses)
    return {"processor": processor() - began, "measuring": measuring, "loss": loss}, means[0]


def side(what, folder, silos, rows, rounds, epochs):
    """One side, in a process of its own."""
    import numpy
    import torch

    torch.set_num_threads(1)
    kept = Path(folder) / "noted.npz"
    if what == "memory":
        data = pictures(silos, rows, (784,))
        print(json.dumps(of_rota(perceptron, data, rounds, epochs, BATCH) | {"resident": resident()}))
        return
    data = pictures(silos, rows, (3, 32, 32))
    if what == "rota":
        print(json.dumps(of_rota(cnn, data, rounds, epochs, BATCH)))
        return
    if what == "note":
        notes = []
        found = of_rota(cnn, data, rounds, epochs, BATCH, note=notes)
        arrays = {f"start.{name}": value for name, value in notes[0][1].items()}
        seeds = numpy.zeros((rounds, silos), numpy.uint64)
        for nth in range(rounds):
            # The silos of a round train in any order.
            for place, _, seed, _ in notes[nth * silos : (nth + 1) * silos]:
                seeds[nth, place] = seed
        first = notes[:silos]
        mean = {name: numpy.mean([model[name] for _, _, _, model in first], axis=0) for name in notes[0][1]}
        numpy.savez(kept, seeds=seeds, **arrays, **{f"end.{name}": value for name, value in mean.items()})
        print(json.dumps(found))
        return
    noted = numpy.load(kept)
    start, end = ({key[len(part) :]: noted[key] for key in noted if key.startswith(part)} for part in ("start.", "end."))
    found, model = by_hand(cnn, data, noted["seeds"].tolist(), start, epochs, BATCH)
    apart = max(float(numpy.abs(value.numpy() - end[name]).max()) for name, value in model.items())
    print(json.dumps(found | {"apart": apart}))


def resident():
    """The largest resident memory of this process and of the program, in MB."""
    both = {"python": resource.RUSAGE_SELF, "rota": resource.RUSAGE_CHILDREN}
    return {name: resource.getrusage(whose).ru_maxrss * 1024 / 1e6 for name, whose in both.items()}


def command(what, folder, given):
    numbers = [str(number) for number in (given.silos, given.rows, given.rounds, given.epochs)]
    return [sys.executable, __file__, "--side", what, folder, *numbers]


def of_side(what, folder, given):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command(what, folder, given), env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def own_memory(process):
    """Memory of a process in MB; pages that it shares count in parts."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6


def children(process):
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += task.read_text().split()
        except OSError:
            continue
    return found


def watched(process):
    """The most memory until the process ends."""
    most = {"python": 0.0, "rota": 0.0, "both": 0.0}
    while process.poll() is None:
        python, programs = own_memory(process.pid), sum(own_memory(child) for child in children(process.pid))
        now = {"python": python, "rota": programs, "both": python + programs}
        most = {name: max(most[name], now[name]) for name in most}
        time.sleep(0.05)
    return most


def memory(given):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    turns = []
    for _ in range(given.turns):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(command("memory", folder, given), env=environment, stdout=subprocess.PIPE, text=True)
            most = watched(process)
            found = json.loads(process.communicate()[0])
            if process.returncode:
                sys.exit(f"the simulation failed with {process.returncode}")
            turns.append((most, found["resident"]))
    print("MB, medians         Python      rota  together")
    for nth, name in enumerate(("memory (Pss)", "resident")):
        each = {whose: statistics.median(turn[nth].get(whose, float("nan")) for turn in turns) for whose in turns[0][0]}
        print(f"{name:16}" + "".join(f"{each[whose]:10,.0f}" for whose in ("python", "rota", "both")))


def times(given):
    turns = []
    with tempfile.TemporaryDirectory() as folder:
        of_side("note", folder, given)
        for _ in range(given.turns):
            turns.append((of_side("plain", folder, given), of_side("rota", folder, given)))
    apart = max(plain["apart"] for plain, _ in turns)
    if apart > 1e-6:
        sys.exit(f"the two models differ by {apart}")
    def median(side, part):
        return statistics.median(turn[side][part] for turn in turns)

    ratio = statistics.median(ours["processor"] / plain["processor"] for plain, ours in turns)
    print(f"by hand        {median(0, 'processor'):7.2f} s, of which {median(0, 'measuring'):.2f} measure")
    parts = f"{median(1, 'learning'):.2f} train and measure, {median(1, 'making'):.2f} make and try the learners"
    print(f"rota.simulate  {median(1, 'processor'):7.2f} s, of which {parts}, and {median(1, 'program'):.2f} are the program's")
    print(f"ratio          {ratio:7.3f}, the median of the turns'")
    print(f"mean models of the first round differ by {apart:.1e} at most")


def main():
    if sys.argv[1:2] == ["--side"]:
        what, folder, *numbers = sys.argv[2:]
        return side(what, folder, *map(int, numbers))
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("what", choices=("time", "memory"))
    ask.add_argument("--silos", type=int, help="by default 10 for the time, 50 for the memory")
    ask.add_argument("--rows", type=int, help="training rows of a silo; by default 500 and 64")
    ask.add_argument("--rounds", type=int, help="by default 5 and 2")
    ask.add_argument("--epochs", type=int, default=1)
    ask.add_argument("--turns", type=int, default=3)
    given = ask.parse_args()
    defaults = (10, 500, 5) if given.what == "time" else (50, 64, 2)
    for name, value in zip(("silos", "rows", "rounds"), defaults):
        if getattr(given, name) is None:
            setattr(given, name, value)
    return (times if given.what == "time" else memory)(given)


main()
