"""Simulations of Rota beside the same arithmetic written by hand in NumPy, in turn.

    cargo build --release
    cargo build --release -p silo --example checks_alone
    ROTA_DATA=DIR python3 benches/vs_numpy/run.py

Where PyTorch is installed, the same loop with its layers, gradients and optimiser takes its turns, too.
Rota runs without messages (`--mesh direct`), and over the simulated network with equal checks done once,
or by every member. `digits20` and `digits100` need the folder `digits8_bench` in ROTA_DATA. By hand there is one process that
trains and averages, and nothing else: no messages, no signatures, no hashes, no verification, no
measuring of what came out. Two times are taken of each side: of the work alone (`work`; of Rota the
`seconds` of `--json`), and of the whole process, from the start of the interpreter or program to its end
(`process`). The median of the turns counts. For `null` with every check by every member the script also
runs what cannot be left out of it: each member hashes every model, computes the mean and hashes that, on
all cores.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy

RATE, BATCH = 0.05, 32


SHAPES = [(128, 64), (128,), (10, 128), (10,)]
CUTS = numpy.cumsum([int(numpy.prod(shape)) for shape in SHAPES])[:-1]


def digits_of(silos, rounds):
    """The weight of every silo, rows, classes, the rows of every silo in every round, and the first model."""
    folder = Path(os.environ["ROTA_DATA"]) / "digits8_bench"
    sizes = json.loads((folder / f"digits_{silos}.json").read_text())["sizes"]
    x = numpy.fromfile(folder / f"digits_{silos}_X.f32", numpy.float32).reshape(-1, 64)
    y = numpy.fromfile(folder / f"digits_{silos}_y.u8", numpy.uint8)
    order = numpy.fromfile(folder / f"order_{silos}x{rounds}.u16", numpy.uint16).astype(numpy.int64)
    ends = numpy.cumsum(sizes)
    share = (numpy.array(sizes, numpy.float64) / ends[-1]).astype(numpy.float32)

    def turn(nth):
        # Cut as they are needed, so that this counts as work.
        at = nth * ends[-1]
        for end, size in zip(ends, sizes):
            yield order[at + end - size : at + end] + (end - size)

    return share, x, y, map(turn, range(rounds)), numpy.fromfile(folder / "w0.f32", numpy.float32)


def digits(silos, rounds):
    """FedAvg with a perceptron 64-128-10. Returns the seconds and the sum of all |weights|."""
    share, x, y, turns, model = digits_of(silos, rounds)

    began = time.perf_counter()
    for turn in turns:
        mean = numpy.zeros_like(model)
        for weight, rows in zip(share, turn):
            own = model.copy()
            w1, b1, w2, b2 = (part.reshape(shape) for part, shape in zip(numpy.split(own, CUTS), SHAPES))
            for first in range(0, len(rows), BATCH):
                batch = rows[first : first + BATCH]
                inputs, count = x[batch], len(batch)
                hidden = numpy.maximum(inputs @ w1.T + b1, 0)
                scores = hidden @ w2.T + b2
                scores -= scores.max(axis=1, keepdims=True)
                slope = numpy.exp(scores)
                slope /= slope.sum(axis=1, keepdims=True)
                slope[numpy.arange(count), y[batch]] -= 1
                slope *= RATE / count
                back = (slope @ w2) * (hidden > 0)
                w2 -= slope.T @ hidden
                b2 -= slope.sum(axis=0)
                w1 -= back.T @ inputs
                b1 -= back.sum(axis=0)
            mean += weight * own
        model = mean
    return time.perf_counter() - began, float(numpy.abs(model).sum(dtype=numpy.float64))


def null(silos=20, rounds=10, parameters=1_000_000):
    """Training that adds a constant, and the mean."""
    model = numpy.zeros(parameters, numpy.float32)
    began = time.perf_counter()
    for _ in range(rounds):
        mean = numpy.zeros_like(model)
        for silo in range(silos):
            mean += (model + numpy.float32(silo)) / numpy.float32(silos)
        model = mean
    return time.perf_counter() - began, float(model[0])


def torch_digits(silos, rounds):
    """`digits` with a module of PyTorch, its gradients and its descent, on one thread."""
    import torch

    share, x, y, turns, start = digits_of(silos, rounds)
    torch.set_num_threads(1)
    x, y, model = (torch.from_numpy(one) for one in (x, y.astype(numpy.int64), start))
    network = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    weights = list(network.parameters())
    descent = torch.optim.SGD(weights, lr=RATE)

    began = time.perf_counter()
    for turn in turns:
        mean = torch.zeros_like(model)
        for weight, rows in zip(share, turn):
            # A copy: the weights lie in what they are given.
            torch.nn.utils.vector_to_parameters(model.clone(), weights)
            for batch in torch.from_numpy(rows).split(BATCH):
                descent.zero_grad()
                torch.nn.functional.cross_entropy(network(x[batch]), y[batch]).backward()
                descent.step()
            with torch.no_grad():
                mean += float(weight) * torch.nn.utils.parameters_to_vector(weights)
        model = mean
    return time.perf_counter() - began, float(model.abs().sum(dtype=torch.float64))


def torch_null(silos=20, rounds=10, parameters=1_000_000):
    import torch

    torch.set_num_threads(1)
    model = torch.zeros(parameters)
    began = time.perf_counter()
    for _ in range(rounds):
        mean = torch.zeros_like(model)
        for silo in range(silos):
            mean += (model + silo) / silos
        model = mean
    return time.perf_counter() - began, float(model[0])


WORK = {"digits20": lambda: digits(20, 30), "digits100": lambda: digits(100, 10), "null": null}
TORCH = {"digits20": lambda: torch_digits(20, 30), "digits100": lambda: torch_digits(100, 10), "null": torch_null}


def timed(command, work):
    """Runs a command. Returns the seconds of its work, read off its output, and of the whole process."""
    began = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    whole = time.perf_counter() - began
    return work(done.stdout), whole


#: The sums of |weights|, and a parameter of `null`, that every side reaches.
REACHED = {"digits20": 610.335, "digits100": 574.564, "null": 95.0}


def first(printed):
    """The first number that a command prints."""
    return float(printed.split()[0])


def reached(name):
    """Reads the seconds of a loop by hand, which ends with the model that Rota has."""

    def seconds(printed):
        took, came_out = map(float, printed.split())
        if abs(came_out - REACHED[name]) > 0.01:
            sys.exit(f"{name}: another model came out: {came_out}")
        return took

    return seconds


def rota(program, scenario, *how):
    command = [program, "simulate", scenario, "--quiet", "--json", "--no-references", *how]
    return timed(command, lambda out: json.loads(out)["seconds"])


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--program", default="target/release/rota")
    ask.add_argument("--alone", default="target/release/examples/checks_alone")
    ask.add_argument("--turns", type=int, default=9)
    ask.add_argument("--by-hand", choices=WORK, help="only this work, here: prints its seconds and what came out")
    ask.add_argument("--torch", action="store_true", help="with --by-hand: in PyTorch")
    given = ask.parse_args()
    if given.by_hand:
        print(*(TORCH if given.torch else WORK)[given.by_hand]())
        return
    torch = importlib.util.find_spec("torch") is not None
    sides = ["by hand", *(["PyTorch"] if torch else []), "direct", "once", "every member"]
    print("seconds, medians" + "".join(f"{side:>17}" for side in sides))
    print(" " * 16 + "     work process" * len(sides))
    for name in WORK:
        by_hand = [sys.executable, __file__, "--by-hand", name]
        turns = []
        for _ in range(given.turns):
            turn = [*timed(by_hand, reached(name))]
            if torch:
                turn += timed([*by_hand, "--torch"], reached(name))
            turn += rota(given.program, name, "--mesh", "direct")
            turn += rota(given.program, name, "--check", "once")
            turn += rota(given.program, name, "--check", "every-member")
            if name == "null":
                turn += timed([given.alone], first)
            turns.append(turn)
        each = [statistics.median(column) for column in zip(*turns)]
        print(f"{name:16}" + "".join(f"{seconds:9.3f}{whole:8.3f}" for seconds, whole in zip(each[0 : 2 * len(sides) : 2], each[1::2])))
        if name == "null":
            # The last two are those of `checks_alone`, the two before them those of the federation.
            print(f"{'':16} hashing and averaging alone {each[-2]:.3f}, ratio {each[-4] / each[-2]:.2f}")


if __name__ == "__main__":
    main()
