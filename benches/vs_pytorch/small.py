"""Processor seconds of a simulation with a small PyTorch model beside those of a plain loop that does the same.

    python3 benches/vs_pytorch/small.py 100 50      # clients, rounds
"""

import resource
import sys

import rota
import rota.torch
import torch
from torch import nn

CLIENTS, ROUNDS = int(sys.argv[1]), int(sys.argv[2])
F = nn.functional
torch.set_num_threads(1)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 3))


def rows(place: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(130, 20, generator=torch.Generator().manual_seed(place))
    return x, x[:, :3].argmax(1)


DATA = [rows(place) for place in range(CLIENTS)]


def plain() -> None:
    model = network()
    start = {name: value.clone() for name, value in model.state_dict().items()}
    for _ in range(ROUNDS):
        mean = {name: torch.zeros_like(value) for name, value in start.items()}
        for x, y in DATA:
            model.load_state_dict(start)
            model.train()
            optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
            for chosen in torch.randperm(100).split(20):
                optimiser.zero_grad()
                loss = F.cross_entropy(model(x[chosen]), y[chosen])
                loss.backward()
                optimiser.step()
            for name, value in model.state_dict().items():
                mean[name] += value / CLIENTS
        start = mean
        model.load_state_dict(start)
        model.eval()
        with torch.no_grad():
            for x, y in DATA:
                outputs = model(x[100:])
                _ = float(F.cross_entropy(outputs, y[100:])), float((outputs.argmax(1) == y[100:]).float().mean())


def learner(silo: rota.Silo) -> rota.Learner:
    x, y = DATA[silo.place]
    return rota.torch.Learner(network(), F.cross_entropy, (x[:100], y[:100]), (x[100:], y[100:]), silo=silo, device="cpu")


def simulated() -> None:
    how = {"epochs": 1, "batch": 20, "optimiser": {"name": "sgd", "rate": 0.1}}
    scenario = {
        "name": "speed", "rounds": ROUNDS, "silos": CLIENTS, "task": rota.task(learner, metric="accuracy"),
        "strategy": {"name": "fedavg", "training": how},
    }  # fmt: skip
    rota.simulate(scenario, learner=learner, references=False)


def seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


times = [seconds()]
for run in (plain, simulated):
    run()
    times.append(seconds())
loop, ours = times[1] - times[0], times[2] - times[1]
print(f"plain loop {loop:.1f} s, simulation {ours:.1f} s: {ours / loop:.2f} times")
