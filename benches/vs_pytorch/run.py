"""Training throughput of Rota beside PyTorch: the same models, rows, batches and threads, in turn.

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch==2.9.0 numpy
    cargo build --release -p learn --example throughput
    /tmp/torch/bin/python benches/vs_pytorch/run.py

prints images per second of PyTorch and of every device of Rota, and their ratio. Each model is trained by
plain descent on rows that lie in memory; a step draws a batch, goes forward and back, and moves the
weights. Rota's time includes that a model comes in as a file's values and goes out as such.

With `--program` a program built with `--features tch`, and `--devices cpu tch-cpu`, LibTorch is measured
as well. In a turn the fastest training counts, and of the turns the median. With one thread, seconds are
those that the processor worked for it, not those of the clock, so that other programs on the machine
weigh less.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy

# Name, [table.model], shape of a row, what is predicted, rows per step, steps per epoch, epochs.
MODELS = [
    ("logistic", "'logistic'", (13,), 2, 16, 125, 400),
    ("mlp", "{ mlp = { hidden = [512, 512] } }", (784,), 10, 64, 16, 16),
    ("fedavg-cnn", "{ network = { layers = 'fedavg-cnn' } }", (32, 32, 3), 10, 64, 4, 2),
    ("resnet18-small", "{ network = { layers = 'resnet18-small' } }", (32, 32, 3), 10, 32, 2, 4),
    ("unet", "{ network = { layers = 'unet', image = [3, 64, 64] } }", (64, 64, 3), "mask", 4, 4, 4),
]


def write(folder, model, shape, target, batch, steps):
    """The rows as .npz, and the task that names them."""
    draw = numpy.random.default_rng(1)
    for name, rows in (("train", batch * steps), ("test", 8)):
        x = draw.standard_normal((rows, *shape), dtype=numpy.float32)
        if target == "mask":
            y = (draw.random((rows, *shape[:2])) < 0.3).astype(numpy.uint8)
        else:
            y = (numpy.arange(rows) % target).astype(numpy.int64)
        numpy.savez(folder / f"{name}.npz", x=x, y=y)
    (folder / "task.toml").write_text(
        f"[table]\nmodel = {model}\n[table.data.images]\npartition = 'iid'\n"
        "from = { files = [{ path = 'train.npz' }, { path = 'test.npz', test = true }] }\n"
    )


def of_rota(program, folder, device, batch, epochs, repeats, threads):
    command = [program, folder / "task.toml", device, str(batch), str(epochs), str(repeats)]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def of_pytorch(folder, name, batch, epochs, repeats, threads):
    command = [sys.executable, __file__, "--side", name, folder, str(batch), str(epochs)]
    command += [str(repeats), str(threads)]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    # Rota's LibTorch is not PyTorch's.
    environment.pop("LD_LIBRARY_PATH", None)
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def network(name):
    """The model as PyTorch has it; its weights are counted and compared."""
    from torch import cat, nn

    def conv(ins, outs, kernel, stride=1, bias=False):
        return nn.Conv2d(ins, outs, kernel, stride, kernel // 2, bias=bias)

    class Block(nn.Module):
        """Of ResNet-18."""

        def __init__(self, ins, outs, stride):
            super().__init__()
            layers = [conv(ins, outs, 3, stride), nn.BatchNorm2d(outs), nn.ReLU()]
            layers += [conv(outs, outs, 3), nn.BatchNorm2d(outs)]
            self.around = nn.Sequential(*layers)
            same = ins == outs and stride == 1
            through = nn.Sequential(conv(ins, outs, 1, stride), nn.BatchNorm2d(outs))
            self.through = nn.Identity() if same else through

        def forward(self, x):
            return nn.functional.relu(self.around(x) + self.through(x))

    def twice(ins, outs):
        first = [conv(ins, outs, 3), nn.BatchNorm2d(outs), nn.ReLU()]
        return nn.Sequential(*first, conv(outs, outs, 3), nn.BatchNorm2d(outs), nn.ReLU())

    class UNet(nn.Module):
        channels = [64, 128, 256, 512, 1024]

        def __init__(self):
            super().__init__()
            pairs = list(zip(self.channels, self.channels[1:]))
            self.down = nn.ModuleList([twice(3, 64)] + [twice(a, b) for a, b in pairs])
            self.up = nn.ModuleList([nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairs])
            self.back = nn.ModuleList([twice(b, a) for a, b in pairs])
            self.head = nn.Conv2d(64, 1, 1)

        def forward(self, x):
            kept = []
            for depth, layers in enumerate(self.down):
                x = layers(x if depth == 0 else nn.functional.max_pool2d(x, 2))
                kept.append(x)
            kept.pop()
            for depth in reversed(range(len(self.up))):
                x = self.back[depth](cat([kept[depth], self.up[depth](x)], 1))
            return self.head(x)

    if name == "logistic":
        return nn.Linear(13, 1)
    if name == "mlp":
        layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(512, 10))
    if name == "fedavg-cnn":
        layers = [conv(3, 32, 5, bias=True), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [conv(32, 64, 5, bias=True), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        return nn.Sequential(*layers, nn.Linear(4096, 512), nn.ReLU(), nn.Linear(512, 10))
    if name == "resnet18-small":
        layers = [conv(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU()]
        ins = 64
        for stage in range(4):
            for block in range(2):
                outs = 64 << stage
                layers.append(Block(ins, outs, 2 if stage and not block else 1))
                ins = outs
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)]
        return nn.Sequential(*layers)
    return UNet()


def side(name, folder, batch, epochs, repeats, threads):
    """Runs in a process of its own, so that neither side finds the other's memory."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    rows = numpy.load(Path(folder) / "train.npz")
    x, y = torch.from_numpy(rows["x"]), torch.from_numpy(rows["y"])
    if x.ndim == 4:
        x = x.permute(0, 3, 1, 2).contiguous()
    model = network(name)

    def loss_of(outputs, targets):
        if name == "logistic":
            loss = functional.binary_cross_entropy_with_logits
            return loss(outputs[:, 0], targets.float())
        if name == "unet":
            p, g = outputs.sigmoid().flatten(1), targets.float().flatten(1)
            shared = 2 * (p * g).sum(1) + 1
            return (1 - shared / ((p * p).sum(1) + (g * g).sum(1) + 1)).mean()
        return functional.cross_entropy(outputs, targets)

    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    rates = {"clock": 0.0, "processor": 0.0}
    for repeat in range(repeats + 1):
        began, worked = time.perf_counter(), time.process_time()
        for _ in range(epochs):
            order = torch.randperm(len(x))
            for at in range(0, len(x), batch):
                chosen = order[at : at + batch]
                optimiser.zero_grad()
                loss = loss_of(model(x[chosen]), y[chosen])
                loss.backward()
                optimiser.step()
                # Rota knows the loss of every step, too: it stops where that is no number.
                last = loss.item()
        took = {"clock": time.perf_counter() - began, "processor": time.process_time() - worked}
        if repeat > 0:
            for kind, seconds in took.items():
                rates[kind] = max(rates[kind], len(x) * epochs / seconds)
    weights = sum(parameter.numel() for parameter in model.parameters())
    print(json.dumps({"weights": weights, "loss": last} | rates))


def main():
    if sys.argv[1:2] == ["--side"]:
        name, folder, *numbers = sys.argv[2:]
        return side(name, folder, *map(int, numbers))
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--program", default="target/release/examples/throughput")
    arguments.add_argument("--devices", nargs="+", default=["cpu"])
    arguments.add_argument("--models", nargs="+", default=[model[0] for model in MODELS])
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--turns", type=int, default=3, help="times that every side has its turn")
    arguments.add_argument("--repeats", type=int, default=3, help="trainings in a turn")
    chosen = arguments.parse_args()
    print("| model (batch) | weights | PyTorch | " + " | ".join(chosen.devices) + " |")
    print("|---|---|---|" + "---|" * len(chosen.devices))
    for name, model, shape, target, batch, steps, epochs in MODELS:
        if name not in chosen.models:
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            write(folder, model, shape, target, batch, steps)
            with_numbers = (batch, epochs, chosen.repeats, chosen.threads)
            rates = {device: [] for device in [None, *chosen.devices]}
            weights = set()
            for _ in range(chosen.turns):
                for device in rates:
                    if device is None:
                        result = of_pytorch(folder, name, *with_numbers)
                    else:
                        result = of_rota(chosen.program, folder, device, *with_numbers)
                    kind = "processor" if chosen.threads == 1 else "clock"
                    rates[device].append(result[kind])
                    weights.add(result["weights"])
            if len(weights) != 1:
                sys.exit(f"{name}: the models differ, they have {weights} weights")
        found = {device: statistics.median(each) for device, each in rates.items()}
        cells = [f"{name} ({batch})", f"{weights.pop():,}", f"{found[None]:,.0f}"]
        for device in chosen.devices:
            cells.append(f"{found[device]:,.0f} ({found[device] / found[None]:.2f})")
        print("| " + " | ".join(cells) + " |", flush=True)


main()
