"""Simulations of Rota beside those of Flower and a plain loop: the same rows, models, steps and rounds, in turn.

    python3 -m venv /tmp/flower && /tmp/flower/bin/pip install "flwr[simulation]" numpy
    cargo build --release
    /tmp/flower/bin/python benches/vs_flower/run.py digits20 --data DIR
    /tmp/flower/bin/python benches/vs_flower/run.py many-clients --data DIR --turns 1
    /tmp/flower/bin/python benches/vs_flower/run.py many-clients --data DIR --turns 1 --clients 10000 --rounds 20

`digits20` is Rota's built-in scenario: 20 silos, 30 rounds of FedAvg, a perceptron 64-128-10. In Flower every client
trains in NumPy, by the arithmetic and on the batches of `benches/vs_numpy/run.py`, and Flower's `FedAvg` averages;
the script checks that the same model comes out. `many-clients` is `examples/many-clients.toml`: a perceptron
784-200-200-10 on Fashion-MNIST, dealt to 1,000 clients, of which 100 are drawn for each round. Its clients train
in NumPy as well, on their own deal and draws. The plain loop has the same clients, one after the other in one process,
and averages. Nobody measures anything there or in Flower; Rota measures what came out.

Flower runs by `flwr.simulation.run_simulation` with one processor for each client, so that as many train at once as
there are cores. Two times are taken of each side: of the whole process, from its start to its end, by the clock
(`process`) and as seconds that processors worked for it and all that it starts (`processor`); Flower's own time of its
rounds is printed besides (`rounds`), of Rota the `seconds` of `--json`. `memory` is the most that the process and all
that it starts have at once (`Pss` of Linux, looked at every half second). Medians of the turns.
"""

import argparse
import gzip
import json
import logging
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy

SHAPES = {
    "digits20": [(128, 64), (128,), (10, 128), (10,)],
    "many-clients": [(200, 784), (200,), (200, 200), (200,), (10, 200), (10,)],
}
ROUNDS = {"digits20": 30, "many-clients": 50}
#: Clients, where `--clients` does not say how many.
CLIENTS = {"digits20": 20, "many-clients": 1000}
RATE = {"digits20": 0.05, "many-clients": 0.1}
BATCH = {"digits20": 32, "many-clients": 10}
#: Clients that train in a round.
DRAWN = {"digits20": 20, "many-clients": 100}
#: The sum of all |weights| after digits20, which benches/vs_numpy/run.py and Rota reach.
SUM = 610.335


class Digits:
    """Rows, orders of rows and first model of digits20, as files have them."""

    def __init__(self, data, rounds):
        folder = Path(data) / "digits8_bench"
        self.sizes = json.loads((folder / "digits_20.json").read_text())["sizes"]
        self.x = numpy.fromfile(folder / "digits_20_X.f32", numpy.float32).reshape(-1, 64)
        self.y = numpy.fromfile(folder / "digits_20_y.u8", numpy.uint8)
        orders = numpy.fromfile(folder / "order_20x30.u16", numpy.uint16).astype(numpy.int64)
        self.orders = orders.reshape(-1, sum(self.sizes))[:rounds]
        start = numpy.fromfile(folder / "w0.f32", numpy.float32)
        cuts = numpy.cumsum([int(numpy.prod(shape)) for shape in SHAPES["digits20"]])[:-1]
        self.start = [part.reshape(shape) for part, shape in zip(numpy.split(start, cuts), SHAPES["digits20"])]

    def rows(self, client, nth):
        """The rows of a client in the order of a round."""
        first = sum(self.sizes[:client])
        order = self.orders[nth, first : first + self.sizes[client]] + first
        return self.x[order], self.y[order]


class Fashion:
    """Fashion-MNIST, dealt at random."""

    def __init__(self, data, clients):
        folder = Path(data) / "fashion_mnist"
        x, y = (self.idx(next(folder.glob(f"train-{name}*"))) for name in ("images", "labels"))
        draw = numpy.random.default_rng(1)
        deal = draw.permutation(len(y))
        # Pixels stay bytes until they are trained on, as in Rota.
        self.x, self.y = x.reshape(len(y), -1)[deal], y[deal]
        self.share = len(y) // clients
        self.start = []
        for shape in SHAPES["many-clients"]:
            bound = 1 / numpy.sqrt(shape[-1] if len(shape) > 1 else 784)
            self.start.append(draw.uniform(-bound, bound, shape).astype(numpy.float32))

    @staticmethod
    def idx(path):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        dimensions = [int.from_bytes(data[4 * at : 4 * at + 4], "big") for at in range(1, data[3] + 1)]
        return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * len(dimensions)).reshape(dimensions)

    def rows(self, client, nth):
        order = numpy.random.default_rng((client, nth)).permutation(self.share) + client * self.share
        return self.x[order].astype(numpy.float32) / 255, self.y[order]


def trained(model, x, y, rate, size):
    """Plain descent on a perceptron, batch by batch."""
    model = [values.copy() for values in model]
    layers = [(model[at], model[at + 1]) for at in range(0, len(model), 2)]
    for first in range(0, len(y), size):
        inputs, count = [x[first : first + size]], len(y[first : first + size])
        for weights, bias in layers[:-1]:
            inputs.append(numpy.maximum(inputs[-1] @ weights.T + bias, 0))
        weights, bias = layers[-1]
        scores = inputs[-1] @ weights.T + bias
        scores -= scores.max(axis=1, keepdims=True)
        slope = numpy.exp(scores)
        slope /= slope.sum(axis=1, keepdims=True)
        slope[numpy.arange(count), y[first : first + size]] -= 1
        slope *= rate / count
        for (weights, bias), given in zip(reversed(layers), reversed(inputs)):
            back = (slope @ weights) * (given > 0)
            weights -= slope.T @ given
            bias -= slope.sum(axis=0)
            slope = back
    return model


def rows_of(what, data, clients, rounds):
    return Digits(data, rounds) if what == "digits20" else Fashion(data, clients)


def ended(seconds, model):
    total = sum(float(numpy.abs(one).sum(dtype=numpy.float64)) for one in model)
    print(json.dumps({"seconds": seconds, "sum": total}))


def by_hand(what, data, clients, rounds):
    """The plain loop, in a process of its own."""
    rows = rows_of(what, data, clients, rounds)
    draw = numpy.random.default_rng(1)
    began = time.perf_counter()
    model = rows.start
    for nth in range(rounds):
        sums, weight = [numpy.zeros_like(one) for one in model], 0
        for client in sorted(draw.choice(clients, DRAWN[what], replace=False)):
            x, y = rows.rows(int(client), nth)
            for one, own in zip(sums, trained(model, x, y, RATE[what], BATCH[what])):
                one += numpy.float32(len(y)) * own
            weight += len(y)
        model = [one / numpy.float32(weight) for one in sums]
    ended(time.perf_counter() - began, model)


def by_flower(what, data, clients, rounds):
    """The simulation, in a process of its own."""
    from flwr.app import Context
    from flwr.client import ClientApp, NumPyClient
    from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
    from flwr.server import ServerApp, ServerAppComponents, ServerConfig
    from flwr.server.strategy import FedAvg
    from flwr.simulation import run_simulation

    logging.getLogger("flwr").setLevel(logging.WARNING)
    rows = {}

    def of():
        # Once for each worker, not once for each client and round.
        if what not in rows:
            rows[what] = rows_of(what, data, clients, rounds)
        return rows[what]

    class Client(NumPyClient):
        def __init__(self, client):
            self.client = client

        def fit(self, parameters, config):
            x, y = of().rows(self.client, config["nth"])
            return trained(parameters, x, y, RATE[what], BATCH[what]), len(y), {}

    def client(context: Context):
        return Client(int(context.node_config["partition-id"])).to_client()

    last = {}

    class Mean(FedAvg):
        def aggregate_fit(self, server_round, results, failures):
            if failures or len(results) != DRAWN[what]:
                raise RuntimeError(f"{len(results)} results and {len(failures)} failures in round {server_round}")
            found = super().aggregate_fit(server_round, results, failures)
            last["model"] = found[0]
            return found

    def server(context: Context):
        strategy = Mean(
            fraction_fit=DRAWN[what] / clients,
            min_fit_clients=DRAWN[what],
            min_available_clients=clients,
            fraction_evaluate=0.0,
            initial_parameters=ndarrays_to_parameters(of().start),
            on_fit_config_fn=lambda server_round: {"nth": server_round - 1},
        )
        last["began"] = time.perf_counter()
        return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=rounds))

    run_simulation(
        ServerApp(server_fn=server),
        ClientApp(client_fn=client),
        num_supernodes=clients,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"log_to_driver": False}},
    )
    ended(time.perf_counter() - last["began"], parameters_to_ndarrays(last["model"]))


def family(process):
    """A process and all that it started."""
    found = [process]
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            for child in task.read_text().split():
                found += family(int(child))
        except OSError:
            continue
    return found


def memory(processes):
    total = 0
    for process in processes:
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total * 1024 / 1e6


def worked(processes):
    """Seconds of the processor by process, with those of children that it waited for."""
    found = {}
    for process in processes:
        try:
            text = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            continue
        user, system, of_children, in_system = map(int, text.rpartition(")")[2].split()[11:15])
        found[process] = (user + system + of_children + in_system) / os.sysconf("SC_CLK_TCK")
    return found


def timed(command, environment):
    """Runs a command. Returns what it printed, and its times and memory."""
    began, most, seen = time.perf_counter(), 0.0, {}
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            # What ends without being waited for, as some of Ray's processes do, is counted until it was last seen.
            while process.poll() is None:
                all_of_it = family(process.pid)
                most = max(most, memory(all_of_it))
                time.sleep(0.5 if time.perf_counter() - began > 2 else 0.02)
                seen |= worked(family(process.pid))
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        whole = time.perf_counter() - began
        if process.returncode:
            sys.exit(f"{command[1:3]} ended with {process.returncode}")
        out.seek(0)
        found = json.loads(out.read().splitlines()[-1] if command[0] == sys.executable else out.read())
    return found, {"process": whole, "memory": most, "seen": seen}


def processor_of(run):
    """Runs it, and returns its result with the processor's seconds of all that it started."""
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found, times = run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    waited = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # Ray's processes are not children that anybody waits for.
    times["processor"] = max(waited, sum(times.pop("seen").values()))
    return found, times


def main():
    if sys.argv[1:2] == ["--side"]:
        side, what, data, clients, rounds = sys.argv[2:7]
        return {"Flower": by_flower, "by hand": by_hand}[side](what, data, int(clients), int(rounds))
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("what", choices=ROUNDS)
    ask.add_argument("--data", default=os.environ.get("ROTA_DATA"), help="the folder with the data [default: $ROTA_DATA]")
    ask.add_argument("--program", default="target/release/rota")
    ask.add_argument("--rounds", type=int, help="by default those of the scenario")
    ask.add_argument("--clients", type=int, help="of many-clients [default: 1000]")
    ask.add_argument("--turns", type=int, default=3)
    ask.add_argument("--sides", nargs="+", choices=("Flower", "by hand", "Rota"), default=["Flower", "by hand", "Rota"])
    given = ask.parse_args()
    rounds = given.rounds or ROUNDS[given.what]
    if given.clients and given.what == "digits20":
        ask.error("digits20 has 20 clients")
    clients = CLIENTS[given.what] if given.clients is None else given.clients
    if clients < DRAWN[given.what]:
        ask.error(f"{DRAWN[given.what]} clients train in a round, so there have to be as many")
    # Neither tells anybody that it runs.
    quiet = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    # One thread for each client: two of NumPy's would wait for each other.
    environment = os.environ | quiet | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    scenario = "digits20" if given.what == "digits20" else str(Path(__file__).parents[2] / "examples/many-clients.toml")
    ours = [given.program, "simulate", scenario, "--mesh", "direct", "--no-references", "--quiet", "--json"]
    ours += ["--data", given.data, "--rounds", str(rounds)]
    if given.clients:
        ours += ["--silos", str(clients)]
    turns = {name: [] for name in given.sides}
    for _ in range(given.turns):
        for name in given.sides:
            side = [sys.executable, __file__, "--side", name, given.what, given.data, str(clients), str(rounds)]
            command = ours if name == "Rota" else side
            found, times = processor_of(lambda: timed(command, environment))
            turns[name].append(times | {"rounds": found["seconds"]})
            known = name != "Rota" and given.what == "digits20" and rounds == 30
            if known and abs(found["sum"] - SUM) > 0.01:
                sys.exit(f"{name}: another model came out, whose sum of |weights| is {found['sum']}")
    print(f"{given.what}, {clients} clients, {rounds} rounds, medians of {given.turns} turns")
    print(f"{'':8}{'rounds, s':>12}{'process, s':>12}{'processor, s':>14}{'memory, MB':>12}")
    for name, all_turns in turns.items():
        each = {kind: statistics.median(turn[kind] for turn in all_turns) for kind in all_turns[0]}
        print(f"{name:8}{each['rounds']:12.2f}{each['process']:12.2f}{each['processor']:14.2f}{each['memory']:12,.0f}")


if __name__ == "__main__":
    main()
