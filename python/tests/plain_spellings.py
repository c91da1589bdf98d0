"""Spellings of models, losses, rows and trainings, each as a researcher might write it, for the comparison of
`rota.simulate` with plain loops."""

from __future__ import annotations

import functools
from collections import OrderedDict
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from plain import classes, draw

F = nn.functional
ROWS, WIDTH, CLASSES = 12, 4, 3


def x(place, *shape):
    return draw(ROWS, *(shape or (WIDTH,)), seed=10 + place)


def y(place, *shape):
    return classes(CLASSES, ROWS, *shape, seed=20 + place)


def numbers(place, *shape):
    return draw(ROWS, *(shape or (1,)), seed=30 + place)


class Spelling:
    """A model, a loss, and the rows of a silo. `batches(data)` gives the loader where rows are not tensors; `options` are
    those of the learner, and `how` the agreed training. `own(model)` is an optimiser in place of the agreed one,
    `schedule(optimiser)` a schedule of its rates, and `by_hand(optimiser, loss, model)` a step of both sides."""

    def __init__(self, model, loss=F.cross_entropy, data=None, *, batches=None, call=None, how=None, own=None, schedule=None, by_hand=None, **options):
        self.model, self.loss, self.data = model, loss, data or (lambda place: (x(place), y(place)))
        self.own, self.schedule, self.by_hand = own, schedule, by_hand
        if own is not None:
            options["optimiser"] = lambda model, training: own(model)
        if schedule is not None:
            options["scheduler"] = lambda optimiser, training: schedule(optimiser)
        if by_hand is not None:
            options["step"] = by_hand
        self.batches, self.options = batches, options
        self.how = {"epochs": 2, "batch": 5, "optimiser": {"name": "sgd", "rate": 0.1}} | (how or {})
        self.call = call or (lambda model, batch: (model(batch[0]), batch[1]))


def mlp(*layers, out=CLASSES):
    return lambda: nn.Sequential(nn.Linear(WIDTH, 8), *(layer() for layer in layers), nn.Linear(8, out))


class Of(nn.Module):
    """A module of one function and its parts."""

    def __init__(self, forward, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self._forward = forward

    def forward(self, *inputs, **named):
        return self._forward(self, *inputs, **named)


def of(forward, **parts):
    return lambda: Of(forward, **{name: part() for name, part in parts.items()})


def optimiser(name, **more):
    return {"optimiser": {"name": name, "rate": 0.05} | more}


class Counting(nn.Module):
    """A counter of whole numbers that the outputs depend on."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(WIDTH, CLASSES)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, rows):
        if self.training:
            self.steps += 1
        return self.dense(rows) / (1 + 0.1 * self.steps)


class ActNorm(nn.Module):
    """Scale and shift from the first batch, remembered by a flag."""

    def __init__(self):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))
        self.register_buffer("begun", torch.tensor(False))

    def forward(self, rows):
        if self.training and not self.begun:
            with torch.no_grad():
                self.scale.copy_(1 / (rows.std(0) + 0.1))
                self.shift.copy_(-rows.mean(0))
                self.begun.fill_(True)
        return (rows + self.shift) * self.scale


class Averaged(nn.Module):
    """A moving average of the weights with its count, which the outputs depend on."""

    def __init__(self, persistent=True):
        super().__init__()
        self.dense = nn.Linear(WIDTH, CLASSES)
        self.register_buffer("slow", torch.zeros(CLASSES, WIDTH), persistent=persistent)
        self.register_buffer("n_averaged", torch.tensor(0))

    def forward(self, rows):
        if self.training:
            with torch.no_grad():
                self.n_averaged += 1
                self.slow += (self.dense.weight - self.slow) / self.n_averaged
        return self.dense(rows) + rows @ self.slow.T


class Rebinding(nn.Module):
    """A buffer that is bound anew in every step."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(WIDTH, CLASSES)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int32))

    def forward(self, rows):
        if self.training:
            self.seen = self.seen + 1
        return self.dense(rows) * (1 + 0.01 * self.seen)


class HeadFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.head, self.body = nn.Linear(8, CLASSES), nn.Linear(WIDTH, 8)

    def forward(self, rows):
        return self.head(self.body(rows).relu())


class Clipped(nn.Module):
    """Gradients that are clipped by hooks."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(WIDTH, CLASSES)
        for value in self.parameters():
            value.register_hook(lambda gradient: gradient.clamp(-0.05, 0.05))

    def forward(self, rows):
        return self.dense(rows)


class Noisy(nn.Module):
    """Noise from a generator of its own."""

    def __init__(self, kind):
        super().__init__()
        self.dense = nn.Linear(WIDTH, CLASSES)
        self.draw = torch.Generator().manual_seed(3) if kind == "torch" else np.random.default_rng(3)

    def forward(self, rows):
        if self.training and isinstance(self.draw, torch.Generator):
            rows = rows + 0.1 * torch.randn(rows.shape, generator=self.draw)
        elif self.training:
            rows = rows + 0.1 * torch.from_numpy(self.draw.normal(size=tuple(rows.shape))).float()
        return self.dense(rows)


class Remembering(nn.Module):
    """Counters and lists of Python, which a trial must not touch: the first step has another scale."""

    def __init__(self):
        super().__init__()
        self.dense, self.calls, self.losses = nn.Linear(WIDTH, CLASSES), 0, []

    def forward(self, rows):
        self.calls += 1
        self.losses.append(self.calls)
        return self.dense(rows) * (3.0 if self.training and len(self.losses) == 1 else 1.0)


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(WIDTH, CLASSES)

    def forward(self, one, other):
        return self.dense(one + other)


class Transformers(nn.Module):
    """As models of transformers: the loss is computed inside, and outputs have names."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(WIDTH, CLASSES)

    def forward(self, values, labels=None):
        logits = self.dense(values)
        return SimpleNamespace(logits=logits, loss=None if labels is None else F.cross_entropy(logits, labels))


class Augmented(torch.utils.data.Dataset):
    """Rows with noise from a generator of NumPy in the data set."""

    def __init__(self, place):
        self.rows, self.draw = (x(place), y(place)), np.random.default_rng(5)

    def __len__(self):
        return ROWS

    def __getitem__(self, at):
        return self.rows[0][at] + 0.1 * float(self.draw.normal()), self.rows[1][at]


class Stream(torch.utils.data.IterableDataset):
    def __init__(self, place):
        self.rows = (x(place), y(place))

    def __iter__(self):
        return iter(zip(*self.rows))


def rows_of(data):
    return torch.utils.data.TensorDataset(*data)


def loaded(**options):
    """A loader of the rows, with these options."""
    return lambda data: torch.utils.data.DataLoader(rows_of(data), **{"batch_size": 5} | options)


def weighted(replacement=True):
    def make(data):
        sampler = torch.utils.data.WeightedRandomSampler(1.0 + data[1].float(), ROWS, replacement)
        return torch.utils.data.DataLoader(rows_of(data), batch_size=4, sampler=sampler)

    return make


def lstm(kind):
    return of(lambda own, rows: own.head(own.cell(rows)[0][:, -1]), cell=lambda: kind(WIDTH, 6, batch_first=True), head=lambda: nn.Linear(6, CLASSES))


def series(place):
    return x(place, 5, WIDTH), y(place)


def images(place):
    return x(place, 2, 6, 6), y(place)


def tokens(place):
    return classes(9, ROWS, 5, seed=40 + place), y(place)


def tied():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES))
    model[2].weight = model[0].weight
    return model


def frozen():
    model = mlp(nn.ReLU)()
    model[0].requires_grad_(False)
    return model


def unused():
    return of(lambda own, rows: own.head(own.body(rows)), body=lambda: nn.Linear(WIDTH, 8), head=lambda: nn.Linear(8, CLASSES), decoder=lambda: nn.Linear(8, WIDTH))


def checkpointed(own, rows):
    from torch.utils.checkpoint import checkpoint

    return own.head(checkpoint(own.body, rows, use_reentrant=False))


def autocast(own, rows):
    with torch.autocast("cpu", torch.bfloat16):
        return own.body(rows).float()


# The newer one is there from 2.1 on.
weight_norm = getattr(nn.utils.parametrizations, "weight_norm", nn.utils.weight_norm)
WEIGHT = torch.tensor([1.0, 2.0, 0.5])
SPELLINGS = {
    # Losses.
    "cross_entropy": Spelling(mlp(nn.ReLU)),
    "CrossEntropyLoss": Spelling(mlp(nn.ReLU), nn.CrossEntropyLoss()),
    "label smoothing": Spelling(mlp(nn.ReLU), nn.CrossEntropyLoss(label_smoothing=0.1)),
    "class weights": Spelling(mlp(nn.ReLU), nn.CrossEntropyLoss(weight=WEIGHT)),
    "class weights by partial": Spelling(mlp(nn.ReLU), functools.partial(F.cross_entropy, weight=WEIGHT)),
    "ignored class": Spelling(mlp(nn.ReLU), nn.CrossEntropyLoss(ignore_index=2)),
    "probabilities of classes": Spelling(mlp(nn.ReLU), data=lambda place: (x(place), F.one_hot(y(place), CLASSES).float())),
    "nll": Spelling(mlp(nn.ReLU, lambda: nn.Identity()), F.nll_loss, call=lambda model, batch: (model(batch[0]).log_softmax(1), batch[1]), forward=lambda model, batch: (model(batch[0]).log_softmax(1), batch[1])),
    "mse": Spelling(mlp(nn.ReLU, out=1), F.mse_loss, lambda place: (x(place), numbers(place))),
    "MSELoss of two targets": Spelling(mlp(nn.ReLU, out=2), nn.MSELoss(), lambda place: (x(place), numbers(place, 2))),
    "l1": Spelling(mlp(nn.ReLU, out=1), F.l1_loss, lambda place: (x(place), numbers(place))),
    "smooth l1": Spelling(mlp(nn.ReLU, out=1), nn.SmoothL1Loss(), lambda place: (x(place), numbers(place))),
    "huber": Spelling(mlp(nn.ReLU, out=1), nn.HuberLoss(delta=0.5), lambda place: (x(place), numbers(place))),
    "poisson": Spelling(mlp(nn.ReLU, out=1), nn.PoissonNLLLoss(), lambda place: (x(place), numbers(place).abs().round())),
    "kl": Spelling(mlp(nn.ReLU), nn.KLDivLoss(reduction="batchmean"), lambda place: (x(place), draw(ROWS, CLASSES, seed=place).softmax(1)), call=lambda model, batch: (model(batch[0]).log_softmax(1), batch[1]), forward=lambda model, batch: (model(batch[0]).log_softmax(1), batch[1])),
    "bce with logits": Spelling(mlp(nn.ReLU, out=1), F.binary_cross_entropy_with_logits, lambda place: (x(place), (y(place, 1) > 0).float())),
    "bce of several labels": Spelling(mlp(nn.ReLU, out=2), nn.BCEWithLogitsLoss(pos_weight=torch.tensor([2.0, 1.0])), lambda place: (x(place), (y(place, 2) > 0).float())),
    "a loss of one's own": Spelling(mlp(nn.ReLU, out=1), lambda outputs, targets: ((outputs - targets).abs() ** 1.5).mean(), lambda place: (x(place), numbers(place))),
    "a loss as a module of one's own": Spelling(mlp(nn.ReLU), Of(lambda own, outputs, targets: F.cross_entropy(outputs * 2, targets))),
    "cosine": Spelling(mlp(nn.Tanh, out=3), lambda outputs, targets: (1 - F.cosine_similarity(outputs, targets)).mean(), lambda place: (x(place), numbers(place, 3))),
    # Optimisers and the order of rows.
    "momentum": Spelling(mlp(nn.ReLU), how=optimiser("sgd", momentum=0.9)),
    "weight decay": Spelling(mlp(nn.ReLU), how=optimiser("sgd", **{"weight-decay": 0.1})),
    "adam": Spelling(mlp(nn.ReLU), how=optimiser("adam")),
    "adam with weight decay": Spelling(mlp(nn.ReLU), how=optimiser("adam", **{"weight-decay": 0.1})),
    "all rows at once": Spelling(mlp(nn.ReLU), how={"batch": 0, "epochs": 3}),
    "one row at a time": Spelling(mlp(nn.ReLU), how={"batch": 1, "epochs": 1}),
    # Layers.
    "linear": Spelling(lambda: nn.Linear(WIDTH, CLASSES)),
    "gelu and silu": Spelling(mlp(nn.GELU, nn.SiLU)),
    "prelu": Spelling(mlp(nn.PReLU)),
    "dropout": Spelling(mlp(nn.ReLU, nn.Dropout)),
    "alpha dropout": Spelling(mlp(nn.SELU, nn.AlphaDropout)),
    "batch norm": Spelling(mlp(lambda: nn.BatchNorm1d(8), nn.ReLU), how={"batch": 4}),
    "batch norm without momentum": Spelling(mlp(lambda: nn.BatchNorm1d(8, momentum=None), nn.ReLU), how={"batch": 4}),
    "batch norm without statistics": Spelling(mlp(lambda: nn.BatchNorm1d(8, track_running_stats=False)), how={"batch": 4}),
    "batch norm, last row joined": Spelling(mlp(lambda: nn.BatchNorm1d(8)), how={"batch": 11, "epochs": 1}, call="joined"),
    "layer norm": Spelling(mlp(lambda: nn.LayerNorm(8))),
    "group norm": Spelling(mlp(lambda: nn.GroupNorm(2, 8))),
    "instance norm": Spelling(of(lambda own, rows: own.head(own.norm(rows).mean(1)), norm=lambda: nn.InstanceNorm1d(5, affine=True, track_running_stats=True), head=lambda: nn.Linear(WIDTH, CLASSES)), data=series),
    "convolutions": Spelling(lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, CLASSES)), data=images, how={"batch": 4}),
    "convolutions of series": Spelling(lambda: nn.Sequential(nn.Conv1d(5, 3, 2), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(3, CLASSES)), data=series),
    "a class per pixel": Spelling(lambda: nn.Conv2d(2, CLASSES, 3, padding=1), data=lambda place: (x(place, 2, 6, 6), y(place, 6, 6))),
    "embedding": Spelling(of(lambda own, rows: own.head(own.table(rows).mean(1)), table=lambda: nn.Embedding(9, 6, padding_idx=0), head=lambda: nn.Linear(6, CLASSES)), data=tokens),
    "embedding bag": Spelling(of(lambda own, rows: own.head(own.table(rows)), table=lambda: nn.EmbeddingBag(9, 6), head=lambda: nn.Linear(6, CLASSES)), data=tokens),
    "lstm": Spelling(lstm(nn.LSTM), data=series),
    "gru": Spelling(lstm(nn.GRU), data=series),
    "rnn": Spelling(lstm(nn.RNN), data=series),
    "attention": Spelling(of(lambda own, rows: own.head(own.mix(rows, rows, rows)[0].mean(1)), mix=lambda: nn.MultiheadAttention(WIDTH, 2, batch_first=True), head=lambda: nn.Linear(WIDTH, CLASSES)), data=series),
    "a transformer's layer": Spelling(of(lambda own, rows: own.head(own.layer(rows).mean(1)), layer=lambda: nn.TransformerEncoderLayer(WIDTH, 2, 8, batch_first=True), head=lambda: nn.Linear(WIDTH, CLASSES)), data=series),
    "weight norm": Spelling(mlp(lambda: weight_norm(nn.Linear(8, 8)))),
    "spectral norm": Spelling(mlp(lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)))),
    "tied weights": Spelling(tied),
    "a frozen layer": Spelling(frozen),
    "a list of modules": Spelling(of(lambda own, rows: own.parts[1](own.parts[0](rows).relu()), parts=lambda: nn.ModuleList([nn.Linear(WIDTH, 8), nn.Linear(8, CLASSES)]))),
    "a dictionary of modules": Spelling(of(lambda own, rows: own.parts["out"](own.parts["in"](rows)), parts=lambda: nn.ModuleDict({"out": nn.Linear(8, CLASSES), "in": nn.Linear(WIDTH, 8)}))),
    "a list of parameters": Spelling(of(lambda own, rows: rows @ own.parts[0] + own.parts[1], parts=lambda: nn.ParameterList([nn.Parameter(draw(WIDTH, CLASSES)), nn.Parameter(torch.zeros(CLASSES))]))),
    "names of one's own": Spelling(lambda: nn.Sequential(OrderedDict(body=nn.Linear(WIDTH, 8), act=nn.ReLU(), head=nn.Linear(8, CLASSES)))),
    "the head defined first": Spelling(HeadFirst),
    "an unused decoder": Spelling(unused()),
    "a residual": Spelling(of(lambda own, rows: own.head(rows + own.body(rows).tanh()), body=lambda: nn.Linear(WIDTH, WIDTH), head=lambda: nn.Linear(WIDTH, CLASSES))),
    "fourier": Spelling(of(lambda own, rows: own.head(torch.fft.rfft(own.body(rows)).abs()), body=lambda: nn.Linear(WIDTH, 6), head=lambda: nn.Linear(4, CLASSES))),
    "checkpoints": Spelling(of(checkpointed, body=lambda: nn.Linear(WIDTH, 8), head=lambda: nn.Linear(8, CLASSES))),
    "autocast": Spelling(of(autocast, body=lambda: nn.Linear(WIDTH, CLASSES))),
    "clipping by hooks": Spelling(Clipped),
    # State of modules.
    "a counter": Spelling(Counting),
    "an initialised flag": Spelling(lambda: nn.Sequential(ActNorm(), nn.Linear(WIDTH, CLASSES))),
    "a moving average": Spelling(Averaged),
    "a moving average outside of state_dict": Spelling(lambda: Averaged(persistent=False)),
    "a buffer bound anew": Spelling(Rebinding),
    "a mask": Spelling(of(lambda own, rows: own.dense(rows * own.mask), dense=lambda: nn.Linear(WIDTH, CLASSES), mask=lambda: nn.Buffer(torch.tensor([1.0, 0.0, 1.0, 1.0])) if hasattr(nn, "Buffer") else torch.tensor([1.0, 0.0, 1.0, 1.0]))),
    "counters of Python": Spelling(Remembering),
    "a generator of PyTorch": Spelling(lambda: Noisy("torch")),
    "a generator of NumPy": Spelling(lambda: Noisy("numpy")),
    "noise of the process": Spelling(of(lambda own, rows: own.dense(rows + 0.1 * torch.randn_like(rows) * own.training), dense=lambda: nn.Linear(WIDTH, CLASSES))),
    "transformers": Spelling(Transformers, None, call=lambda model, batch: (model(batch[0], batch[1]).logits, batch[1])),
    # Rows.
    "dictionaries": Spelling(of(lambda own, values: own.dense(values), dense=lambda: nn.Linear(WIDTH, CLASSES)), data=lambda place: {"values": x(place), "labels": y(place)}, call=lambda model, batch: (model(batch["values"]), batch["labels"])),
    "two inputs": Spelling(Both, data=lambda place: (x(place), x(place + 5), y(place)), call=lambda model, batch: (model(batch[0], batch[1]), batch[2])),
    "a forward of one's own": Spelling(mlp(nn.ReLU), forward=lambda model, batch: (2 * model(batch[0]), batch[1]), call=lambda model, batch: (2 * model(batch[0]), batch[1])),
    "a loader that shuffles": Spelling(mlp(nn.ReLU), batches=loaded(shuffle=True)),
    "a loader in order": Spelling(mlp(nn.ReLU), batches=loaded()),
    "a loader that drops the last": Spelling(mlp(nn.ReLU), batches=loaded(drop_last=True, shuffle=True)),
    "a loader with a generator": Spelling(mlp(nn.ReLU), batches="generator"),
    "a weighted sampler": Spelling(mlp(nn.ReLU), batches=weighted()),
    "a list of batches": Spelling(mlp(nn.ReLU), batches=lambda data: [(data[0][:5], data[1][:5]), (data[0][5:], data[1][5:])]),
    "augmentations of NumPy": Spelling(mlp(nn.ReLU), data=Augmented, batches=lambda data: torch.utils.data.DataLoader(data, batch_size=5)),
    "a stream": Spelling(mlp(nn.ReLU), data=Stream, batches=lambda data: torch.utils.data.DataLoader(data, batch_size=5)),
    "workers that stay": Spelling(mlp(nn.ReLU), data=Augmented, batches=lambda data: torch.utils.data.DataLoader(data, batch_size=5, num_workers=1, persistent_workers=True)),
}
