"""A simulation with a small PyTorch model beside a plain loop that does the same: processor seconds and memory.

    ROTA_BIN=target/release/rota PYTHONPATH=python/src python3 benches/vs_pytorch/small.py 100 50       # clients, rounds
    … small.py 10 5 --width 3500 --rows 64 --turns 1        # a model of 12 million weights

A perceptron with one hidden layer is trained by FedAvg, one epoch a round in batches of 20, on one thread. The loop has one
module, trains on as many rows in as many steps, averages in place, and measures what the simulation measures: the mean
model at every client in as many rounds (a simulation of more than 2,000 models measures some of them), and in the end
on training rows and held-out ones once more. What counts is the processor's time, user and system, of Python and of the
program that it starts, from before the first learner is made to the summary, and the largest memory of both together,
looked at every 20 milliseconds (`Pss` of Linux, of which pages that both have are half of each). Each side is a process
of its own; sides take turns, and medians count.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path


def network(width):
    import torch
    from torch import nn

    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, CLASSES))


FEATURES, CLASSES, BATCH = 20, 3, 20


def rows(place, count):
    import torch

    x = torch.randn(count + max(10, 3 * count // 10), FEATURES, generator=torch.Generator().manual_seed(place))
    y = x[:, :CLASSES].argmax(1)
    return (x[:count], y[:count]), (x[count:], y[count:])


def plain(data, rounds, width):
    import torch

    cross_entropy = torch.nn.functional.cross_entropy

    def measured(x, y):
        outputs = model(x)
        return float(cross_entropy(outputs, y)), float((outputs.argmax(1) == y).float().mean())

    every = -(-len(data) * rounds // 2_000)
    model = network(width)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    for round in range(1, rounds + 1):
        mean = {name: torch.zeros_like(value) for name, value in start.items()}
        for (x, y), _ in data:
            model.load_state_dict(start)
            model.train()
            optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
            for chosen in torch.randperm(len(x)).split(BATCH):
                optimiser.zero_grad()
                loss = cross_entropy(model(x[chosen]), y[chosen])
                loss.backward()
                optimiser.step()
                # As the loss of a training is reported.
                loss.item()
            for name, value in model.state_dict().items():
                mean[name].add_(value, alpha=1 / len(data))
        start = mean
        model.load_state_dict(start)
        model.eval()
        with torch.no_grad():
            if round % every == 0 or round == rounds:
                for _, test in data:
                    measured(*test)
            if round == rounds:
                for train, test in data:
                    measured(*test)
                    measured(*train)


def simulated(data, rounds, width):
    import rota
    import rota.torch
    import torch

    def learner(silo):
        train, test = data[silo.place]
        return rota.torch.Learner(network(width), torch.nn.functional.cross_entropy, train, test, silo=silo, device="cpu")

    how = {"epochs": 1, "batch": BATCH, "optimiser": {"name": "sgd", "rate": 0.1}}
    task = rota.task(learner, metric="accuracy")
    scenario = {"name": "small", "rounds": rounds, "silos": len(data), "task": task, "strategy": {"name": "fedavg", "training": how}}
    rota.simulate(scenario, learner=learner, references=False)


def seconds():
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return [one.ru_utime + one.ru_stime for one in used]


def own_memory(process):
    """Memory of a process in MB; pages that it shares count in parts."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6


def family(process):
    """A process and the programs that it started."""
    found = [process]
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except OSError:
            continue
    return found


def side(what, clients, rounds, count, width):
    import rota.torch
    import torch

    torch.set_num_threads(1)
    data = [rows(place, count) for place in range(clients)]
    work = {"plain": plain, "rota": simulated}[what]
    # What is loaded and made at the first step belongs to neither side.
    plain(data[:1], 1, width)
    before = seconds()
    work(data, rounds, width)
    own, program = (after - then for after, then in zip(seconds(), before))
    print(json.dumps({"own": own, "program": program}))


def of_side(what, given):
    numbers = [str(number) for number in (given.clients, given.rounds, given.rows, given.width)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, __file__, "--side", what, *numbers], env=environment, stdout=subprocess.PIPE, text=True)
    memory, over = [0.0], threading.Event()

    def look():
        while given.memory and not over.wait(0.02):
            memory[0] = max(memory[0], sum(map(own_memory, family(process.pid))))

    watch = threading.Thread(target=look)
    watch.start()
    said = process.communicate()[0]
    over.set()
    watch.join()
    if process.returncode:
        sys.exit(f"{what} ended with {process.returncode}")
    return json.loads(said) | {"memory": memory[0]}


def main():
    if sys.argv[1:2] == ["--side"]:
        return side(sys.argv[2], *map(int, sys.argv[3:]))
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("clients", type=int)
    ask.add_argument("rounds", type=int)
    ask.add_argument("--rows", type=int, default=100, help="training rows of a client")
    ask.add_argument("--width", type=int, default=32, help="of the hidden layer")
    ask.add_argument("--turns", type=int, default=3)
    ask.add_argument("--memory", action="store_true", help="look at the memory, which costs time of its own")
    given = ask.parse_args()
    turns = [(of_side("plain", given), of_side("rota", given)) for _ in range(given.turns)]
    for nth, name in enumerate(("plain loop", "rota.simulate")):
        own, program, memory = (statistics.median(turn[nth][part] for turn in turns) for part in ("own", "program", "memory"))
        print(f"{name:14} {own + program:7.2f} s, of which {program:.2f} are the program's" + (f"; {memory:,.0f} MB" if memory else ""))
    total = [[one["own"] + one["program"] for one in turn] for turn in turns]
    ratios = sorted(ours / loop for loop, ours in total)
    print(f"ratio          {statistics.median(ratios):7.2f}, of the turns {', '.join(f'{one:.2f}' for one in ratios)}")
    if given.memory:
        print(f"of the memory  {statistics.median(ours['memory'] / loop['memory'] for loop, ours in turns):7.2f}")


main()
