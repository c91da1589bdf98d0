"""A small transformer that three hospitals fine-tune together, each on notes in its own style.

    python3 transformer.py            # trains the base, compares adapters with full fine-tuning
    rota simulate transformer.toml    # the federation alone; each silo runs `transformer.py serve`

Nothing is downloaded: the notes are made up here, and the base is trained in a few seconds on notes
in public styles. Every silo puts low-rank adapters (LoRA) around the dense layers of this base, and
only they are trained and travel.
"""

import random
import statistics
import sys
import time
from pathlib import Path

import rota
import rota.torch
import torch
from torch import nn

BASE = Path(__file__).with_name("transformer-base.safetensors")
LETTERS = "\n abcdefghijklmnopqrstuvwxyz0123456789.,:;=/|+-"
WINDOW = 48
WIDTH = 64
NOTES = 160
ROUNDS = 8

# How notes are written: in public, and at each of the silos.
PUBLIC = [
    "patient aged {age}, pulse {pulse}, temperature {temp}: {state}, {plan}.\n",
    "{age} y; p {pulse}; temp. {temp}; {state}; {plan}\n",
    "{state} / {plan} / pulse: {pulse} / temp: {temp} / age: {age}\n",
    "note: {plan}. {age} years, {state}, {temp} degrees, {pulse} per minute.\n",
]
STYLES = [
    "pt {age}y | hr {pulse} | t {temp} | {state} - {plan}\n",
    "age={age};pulse={pulse};temp={temp};state={state};plan={plan}\n",
    "{state}, {age} years: {plan}. puls {pulse}/min, temperature {temp}\n",
]
WORDS = {
    "state": ["stable", "tired", "feverish", "restless", "improving", "dizzy"],
    "plan": ["rest and fluids", "observe", "x-ray today", "home tomorrow", "blood test", "call surgeon"],
}


def notes(styles: list[str], count: int, seed: int) -> torch.Tensor:
    """Notes in these styles, as one long row of letters."""
    draw = random.Random(seed)
    text = ""
    for _ in range(count):
        numbers = {"age": draw.randint(18, 97), "pulse": draw.randint(55, 130), "temp": draw.randint(360, 405) / 10}
        text += draw.choice(styles).format(**numbers, **{key: draw.choice(words) for key, words in WORDS.items()})
    return torch.tensor([LETTERS.index(letter) for letter in text])


def rows(place: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of a silo: most notes in its own style, a few as at the others."""
    styles = [style for at, style in enumerate(STYLES) for _ in range(6 if at == place % len(STYLES) else 1)]
    return windows(notes(styles, NOTES, seed=place + 1))


def windows(text: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of `WINDOW` letters, and the letter that follows each of them."""
    rows = text[: len(text) // (WINDOW + 1) * (WINDOW + 1)].reshape(-1, WINDOW + 1)
    return rows[:, :-1], rows[:, 1:]


class Attention(nn.Module):
    def __init__(self, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        split = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(seen.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(WIDTH), Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """Says for every letter of a text how likely each letter is to follow."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(WINDOW, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(LETTERS))

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.letters(text) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())


def base() -> Transformer:
    """The transformer that is fine-tuned: from its file, or trained now, which makes the file. In a
    real federation one member trains it, or it is a public model, and all have the same file."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Transformer()
    if BASE.exists():
        rota.torch.load(model, BASE)
        return model
    x, y = windows(notes(PUBLIC, 1500, seed=0))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
    for _ in range(3):
        order = torch.randperm(len(x))
        for first in range(0, len(x), 32):
            chosen = order[first : first + 32]
            optimiser.zero_grad()
            loss(model(x[chosen]), y[chosen]).backward()
            optimiser.step()
    unfinished = BASE.with_suffix(".unfinished")
    rota.write_tensors(unfinished, {name: value.numpy() for name, value in model.state_dict().items()})
    unfinished.replace(BASE)
    return model


def learner(silo: rota.Silo, all_of_it: bool = False) -> rota.Learner:
    """Trains adapters around the dense layers of the blocks and nothing else, or all of the model."""
    x, y = rows(silo.place)
    test = len(x) // 3
    parts = {"train": (x[test:], y[test:]), "test": (x[:test], y[:test])}
    model = base() if all_of_it else rota.torch.lora(base(), rank=8, alpha=16, layers=["blocks.*"])
    shared = "all" if all_of_it else "trainable"
    return rota.torch.Learner(model, loss, **parts, silo=silo, shared=shared, threads=1, device="cpu")


def fine_tuned(all_of_it: bool, strategy: str = "fedavg") -> dict[str, float]:
    """Fine-tunes at three silos. Returns the bytes of a model and of all that they sent each other, and
    the loss on held-out notes in the end, as the mean over the silos."""

    def make(silo: rota.Silo) -> rota.Learner:
        return learner(silo, all_of_it)

    first = make(rota.Silo("first", 0, 3, 0, []))
    tensors = [tensor.document() for tensor in first.tensors()]
    # All of the model starts as the base; adapters start from values that the agreement describes.
    task = {"external": {"tensors": tensors, "start": "learner" if all_of_it else "tensors"}}
    how = {"epochs": 2, "batch": 16, "optimiser": {"name": "adam", "rate": 0.003 if all_of_it else 0.01}}
    scenario = {"name": "notes", "rounds": ROUNDS, "silos": 3, "task": task, "strategy": {"name": strategy, "training": how}}
    summary = rota.simulate(scenario, learner=make, references=False)
    return {
        "model": sum(4 * value.size for value in first.initial(0).values()),
        "sent": summary["bytes_blobs"],
        "after": statistics.mean(float(losses[-1]) for losses in summary.curves().values()),
    }


def main() -> None:
    began = time.monotonic()
    model = base()
    print(f"the base, {BASE.name}: {time.monotonic() - began:.0f} seconds")
    parts = [rows(style) for style in range(len(STYLES))]
    with torch.no_grad():
        before = statistics.mean(float(loss(model(x[: len(x) // 3]), y[: len(x) // 3])) for x, y in parts)
    print(f"{'':28}{'bytes of a model':>18}{'sent in all':>14}{'loss before':>13}{'after':>8}{'seconds':>9}")
    for name, all_of_it, strategy in [
        ("adapters, together", False, "fedavg"),
        ("adapters, each alone", False, "local"),
        ("all of the model, together", True, "fedavg"),
    ]:
        began = time.monotonic()
        found = fine_tuned(all_of_it, strategy)
        numbers = f"{found['model']:18,}{found['sent']:14,}{before:13.3f}{found['after']:8.3f}"
        print(f"{name:28}{numbers}{time.monotonic() - began:9.0f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        rota.serve(learner)
    else:
        main()
