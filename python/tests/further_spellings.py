"""Further spellings of models, losses, rows and steps, beside those of `plain_spellings.py`: what keeps state beside the
parameters, what draws, what changes while it trains, and loaders of every make."""

from __future__ import annotations

import random

import numpy as np
import torch
import torch.nn.utils.prune
from torch import nn

from plain import classes, draw
from plain_spellings import CLASSES, ROWS, WIDTH, F, Of, Spelling, mlp, numbers, of, rows_of, tokens, x, y

utils = torch.utils.data
optim = torch.optim


# State beside the parameters.


class Buffered(nn.Module):
    """A buffer of some type, which training changes or not, and on which the outputs depend."""

    def __init__(self, kind, moves):
        super().__init__()
        self.dense, self.moves = nn.Linear(WIDTH, CLASSES), moves
        self.register_buffer("state", torch.zeros(3, dtype=kind))

    def forward(self, rows):
        if self.training and self.moves:
            self.state |= True if self.state.dtype == torch.bool else 1
        return self.dense(rows) * (1 + 0.01 * self.state.to(torch.complex64).abs().mean())


class Halved(nn.Module):
    """A buffer of half precision that training changes."""

    def __init__(self, kind):
        super().__init__()
        self.dense = nn.Linear(WIDTH, CLASSES)
        self.register_buffer("state", torch.zeros(3, dtype=kind))

    def forward(self, rows):
        if self.training:
            self.state += 0.125
        return self.dense(rows) * (1 + self.state.float().mean())


class Cached(nn.Module):
    """Outputs of the batch before, in an attribute that is no buffer, and not there at first."""

    def __init__(self):
        super().__init__()
        self.dense, self.before = nn.Linear(WIDTH, CLASSES), None

    def forward(self, rows):
        found = self.dense(rows)
        if self.training:
            mean = found.detach().mean(0)
            found = found if self.before is None else found + self.before
            self.before = mean
        return found


class Smoothed(nn.Module):
    """A moving average in a tensor that is no buffer."""

    def __init__(self):
        super().__init__()
        self.dense, self.slow = nn.Linear(WIDTH, CLASSES), torch.zeros(CLASSES)

    def forward(self, rows):
        found = self.dense(rows)
        if self.training:
            found = found + self.slow
            self.slow = 0.5 * self.slow + 0.5 * found.detach().mean(0)
        return found


class Thawing(nn.Module):
    """Its first layer is trained until a step, or from it on."""

    def __init__(self, at_first):
        super().__init__()
        self.body, self.head, self.steps = nn.Linear(WIDTH, 8), nn.Linear(8, CLASSES), 0
        self.body.requires_grad_(at_first)

    def forward(self, rows):
        self.steps += self.training
        if self.training and self.steps == 3:
            self.body.requires_grad_(not self.body.weight.requires_grad)
        return self.head(self.body(rows).relu())


class Frozen(nn.Module):
    """Batch normalisation that stays as it is while others train."""

    def __init__(self):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(WIDTH, 8), nn.BatchNorm1d(8), nn.Linear(8, CLASSES)

    def forward(self, rows):
        return self.head(self.norm(self.body(rows)))

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self


class Restless(nn.Module):
    """Dropout that is left on, or off, whatever the mode of the module."""

    def __init__(self, on):
        super().__init__()
        self.dense, self.dropout, self.on = nn.Linear(WIDTH, CLASSES), nn.Dropout(0.5), on

    def forward(self, rows):
        self.dropout.train(self.on)
        return self.dense(self.dropout(rows))


class Bounded(nn.Module):
    """Weights that the forward pass clamps, or binds anew."""

    def __init__(self, anew):
        super().__init__()
        self.dense, self.anew = nn.Linear(WIDTH, CLASSES), anew

    def forward(self, rows):
        with torch.no_grad():
            if not self.anew:
                self.dense.weight.clamp_(min=-0.2)
            elif self.training:
                self.dense.weight.data = self.dense.weight.data * 0.99
        return self.dense(rows)


class InPlace(nn.Module):
    """Changes the rows that it is given."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(WIDTH, CLASSES)

    def forward(self, rows):
        return self.dense(rows.mul_(1.5))


class Sign(torch.autograd.Function):
    """A gradient of one's own, straight through a sign."""

    @staticmethod
    def forward(context, rows):
        return rows.sign()

    @staticmethod
    def backward(context, gradient):
        return gradient


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).T


def parametrized(by):
    layer = nn.Linear(8, 8)
    nn.utils.parametrize.register_parametrization(layer, "weight", by())
    return layer


def pruned():
    return nn.utils.prune.l1_unstructured(nn.Linear(8, 8), "weight", 0.5)


def hooked(register):
    """A network whose first layer has a hook."""

    def make():
        model = mlp(nn.ReLU)()
        register(model[0])
        return model

    return make


def doubled(module, given, found):
    return 2 * found


def halved_gradients(module, given, found):
    return tuple(None if one is None else 0.5 * one for one in given)


def at_once(parameter):
    """A step as soon as the gradient is there."""
    with torch.no_grad():
        parameter.add_(parameter.grad, alpha=-0.1)
    parameter.grad = None


def words(**options):
    return of(lambda own, rows: own.head(own.table(rows).mean(1)), table=lambda: nn.Embedding(9, 6, **options), head=lambda: nn.Linear(6, CLASSES))


def tied_words():
    model = Of(lambda own, rows: own.head(own.table(rows).mean(1)), table=nn.Embedding(9, 6), head=nn.Linear(6, 9, bias=False))
    model.head.weight = model.table.weight
    return model


# Losses.


def focal(outputs, targets):
    chosen = outputs.softmax(1).gather(1, targets[:, None])[:, 0]
    return ((1 - chosen) ** 2 * F.cross_entropy(outputs, targets, reduction="none")).mean()


def by_pairs(outputs, targets):
    return ((outputs - outputs.T) - (targets - targets.T)).square().mean()


def of_deviation(outputs, targets):
    return F.gaussian_nll_loss(outputs[:, :1], targets, outputs[:, 1:].exp())


def divided(outputs, targets):
    return F.cross_entropy(outputs, targets, reduction="sum") / len(targets)


# Rows.


def stacked(rows):
    return tuple(torch.stack(one) for one in zip(*rows))


def noisy(rows):
    values, targets = stacked(rows)
    return values + torch.randn(1) * random.random() * float(np.random.rand()), targets


def mixed(rows):
    """Mixed rows with mixed targets."""
    values, targets = stacked(rows)
    share, order = random.random(), torch.randperm(len(values))
    targets = F.one_hot(targets, CLASSES).float()
    return share * values + (1 - share) * values[order], share * targets + (1 - share) * targets[order]


class Counted(utils.Dataset):
    """Rows that depend on how often rows were read, counted in a number, an array and a tensor."""

    def __init__(self, place):
        self.rows, self.reads, self.array, self.tensor = (x(place), y(place)), 0, np.zeros(1), torch.zeros(1)

    def __len__(self):
        return ROWS

    def __getitem__(self, at):
        self.reads += 1
        self.array += 1
        self.tensor += 1
        return self.rows[0][at] * (1 + 0.01 * self.reads + 0.01 * float(self.array[0]) + 0.01 * self.tensor), self.rows[1][at]


class Remembered(utils.Dataset):
    """Rows with noise that is drawn when a row is first read."""

    def __init__(self, place):
        self.rows, self.known = (x(place), y(place)), {}

    def __len__(self):
        return ROWS

    def __getitem__(self, at):
        if at not in self.known:
            self.known[at] = self.rows[0][at] + 0.3 * torch.randn(WIDTH)
        return self.known[at], self.rows[1][at]


class Epochs(utils.IterableDataset):
    """A stream that is another one in every epoch."""

    def __init__(self, place):
        self.rows, self.epoch = (x(place), y(place)), 0

    def __iter__(self):
        self.epoch += 1
        return ((row * self.epoch, target) for row, target in zip(*self.rows))


class Shuffled(utils.IterableDataset):
    """A stream in an order that PyTorch draws."""

    def __init__(self, place):
        self.rows = (x(place), y(place))

    def __iter__(self):
        return ((self.rows[0][at], self.rows[1][at]) for at in torch.randperm(ROWS).tolist())


class Turned(utils.Sampler):
    """An order that follows from the number of the epoch, row by row or in batches."""

    def __init__(self, batches=False):
        self.epoch, self.batches = 0, batches

    def __len__(self):
        return 3 if self.batches else ROWS

    def __iter__(self):
        self.epoch += 1
        order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(self.epoch)).tolist()
        return iter([order[:4], order[4:8], order[8:]] if self.batches else order)


class OwnLoader:
    """Batches of a class of one's own, which counts epochs."""

    def __init__(self, data):
        self.data, self.epoch = data, 0

    def __len__(self):
        return 3

    def __iter__(self):
        self.epoch += 1
        return ((self.data[0][at : at + 4] * self.epoch, self.data[1][at : at + 4]) for at in (0, 4, 8))


def loaded(size=5, **options):
    """A loader of the rows, with these options; those that are functions make something of the data set."""

    def make(data):
        rows = data if isinstance(data, (utils.Dataset, utils.IterableDataset)) else rows_of(data)
        return utils.DataLoader(rows, size, **{name: value(rows) if name.endswith("sampler") else value for name, value in options.items()})

    return make


def in_batches(make):
    """A loader whose sampler gives batches."""
    return lambda data: utils.DataLoader(rows_of(data), batch_sampler=make(rows_of(data)))


# Steps.


def two_groups(model):
    return optim.AdamW([{"params": model[0].parameters(), "lr": 0.01}, {"params": model[2].parameters(), "weight_decay": 0.1}], lr=0.05)


def by(kind, **options):
    return lambda model: kind(model.parameters(), **{"lr": 0.05} | options)


def clipped(optimiser, loss, model):
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.01)
    optimiser.step()


def noised(optimiser, loss, model):
    loss.backward()
    for value in model.parameters():
        value.grad += 0.01 * torch.randn_like(value)
    optimiser.step()


def scaled(optimiser, loss, model):
    """As a scaler of mixed precision does."""
    (1024 * loss).backward()
    for value in model.parameters():
        value.grad /= 1024
    optimiser.step()


FEWER = [0, 2, 4, 6, 8, 10]
dense = {"dense": lambda: nn.Linear(WIDTH, CLASSES)}
FURTHER = {
    # State.
    **{f"a buffer of {kind} that moves": Spelling(lambda kind=kind: Buffered(kind, True)) for kind in (torch.bool, torch.int8, torch.uint8, torch.int64)},
    **{f"a buffer of {kind} that stays": Spelling(lambda kind=kind: Buffered(kind, False)) for kind in (torch.complex64, torch.float64, torch.bool, torch.int64)},
    **{f"a buffer of {kind} that moves": Spelling(lambda kind=kind: Halved(kind)) for kind in (torch.float16, torch.bfloat16)},
    "outputs of the batch before": Spelling(Cached),
    "an average in no buffer": Spelling(Smoothed),
    "frozen from a step on": Spelling(lambda: Thawing(True)),
    "trained from a step on": Spelling(lambda: Thawing(False), own=by(optim.SGD, lr=0.1)),
    "batch norm that stays": Spelling(Frozen, how={"batch": 4}),
    "batch norm without scale": Spelling(mlp(lambda: nn.BatchNorm1d(8, affine=False)), how={"batch": 4}),
    "dropout left on": Spelling(lambda: Restless(True)),
    "dropout left off": Spelling(lambda: Restless(False)),
    "weights clamped": Spelling(lambda: Bounded(False)),
    "weights bound anew": Spelling(lambda: Bounded(True)),
    "rows changed in place": Spelling(InPlace),
    "batches changed in place": Spelling(InPlace, batches=lambda data: [(data[0][:5].clone(), data[1][:5]), (data[0][5:].clone(), data[1][5:])]),
    # Layers.
    "weight norm as it was": Spelling(mlp(lambda: nn.utils.weight_norm(nn.Linear(8, 8)))),
    "spectral norm as it was": Spelling(mlp(lambda: nn.utils.spectral_norm(nn.Linear(8, 8)))),
    "a parametrization of one's own": Spelling(mlp(lambda: parametrized(Symmetric))),
    "pruned": Spelling(mlp(pruned)),
    "tied words": Spelling(tied_words, data=lambda place: (tokens(place)[0], classes(9, ROWS, seed=50 + place))),
    "words with sparse gradients": Spelling(words(sparse=True), data=tokens),
    "words of a largest norm": Spelling(words(max_norm=0.5), data=tokens),
    "words by frequency": Spelling(words(scale_grad_by_freq=True), data=tokens),
    "a bag of words": Spelling(of(lambda own, rows: own.head(own.table(rows)), table=lambda: nn.EmbeddingBag(9, 6, sparse=True), head=lambda: nn.Linear(6, CLASSES)), data=tokens),
    "a dictionary of parameters": Spelling(of(lambda own, rows: rows @ own.parts["w"] + own.parts["b"], parts=lambda: nn.ParameterDict({"w": nn.Parameter(draw(WIDTH, CLASSES)), "b": nn.Parameter(torch.zeros(CLASSES))}))),
    "functional_call": Spelling(of(lambda own, rows: torch.func.functional_call(own.dense, {name: 1.5 * value for name, value in own.dense.named_parameters()}, (rows,)), **dense)),
    "a gradient of one's own": Spelling(of(lambda own, rows: own.head(Sign.apply(own.body(rows))), body=lambda: nn.Linear(WIDTH, 8), head=lambda: nn.Linear(8, CLASSES))),
    "a hook after the pass": Spelling(hooked(lambda layer: layer.register_forward_hook(doubled))),
    "a hook on the way back": Spelling(hooked(lambda layer: layer.register_full_backward_hook(halved_gradients))),
    "steps within backward": Spelling(hooked(lambda layer: layer.weight.register_post_accumulate_grad_hook(at_once))),
    "randomised relu": Spelling(mlp(nn.RReLU)),
    "gumbel": Spelling(of(lambda own, rows: F.gumbel_softmax(own.dense(rows)), **dense)),
    "dropout of channels": Spelling(lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.Dropout2d(), nn.Flatten(), nn.Linear(48, CLASSES)), data=lambda place: (x(place, 2, 6, 6), y(place))),
    "half precision": Spelling(lambda: mlp(nn.ReLU)().bfloat16(), data=lambda place: (x(place).bfloat16(), y(place))),
    # Losses.
    "several margins": Spelling(mlp(nn.ReLU), nn.MultiMarginLoss()),
    "soft margins of labels": Spelling(mlp(nn.ReLU), nn.MultiLabelSoftMarginLoss(), data=lambda place: (x(place), F.one_hot(y(place), CLASSES).float())),
    "focal": Spelling(mlp(nn.ReLU), focal),
    "pairs of rows": Spelling(mlp(nn.ReLU, out=1), by_pairs, data=lambda place: (x(place), numbers(place))),
    "a deviation as output": Spelling(mlp(nn.ReLU, out=2), of_deviation, data=lambda place: (x(place), numbers(place))),
    "a sum over the rows of the batch": Spelling(mlp(nn.ReLU), divided),
    # Rows.
    "a sampler of some rows": Spelling(mlp(nn.ReLU), batches=loaded(sampler=lambda rows: utils.SubsetRandomSampler(FEWER))),
    "batches of a sampler": Spelling(mlp(nn.ReLU), batches=in_batches(lambda rows: utils.BatchSampler(utils.RandomSampler(rows), 3, True))),
    "a list of batches of places": Spelling(mlp(nn.ReLU), batches=in_batches(lambda rows: [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9, 10, 11]])),
    "batches that overlap": Spelling(mlp(nn.ReLU), batches=in_batches(lambda rows: [[0, 1, 2, 11], [3, 4, 5, 6], [6, 7, 8, 9, 10, 11]])),
    "batches of a data set": Spelling(mlp(nn.ReLU), batches=loaded(None, sampler=lambda rows: utils.BatchSampler(utils.SequentialSampler(rows), 3, False))),
    "an order by epoch": Spelling(mlp(nn.ReLU), batches=loaded(sampler=lambda rows: Turned())),
    "batches by epoch": Spelling(mlp(nn.ReLU), batches=in_batches(lambda rows: Turned(True))),
    "rows joined by one's own hand": Spelling(mlp(nn.ReLU), batches=loaded(collate_fn=stacked, shuffle=True)),
    "noise while rows are joined": Spelling(mlp(nn.ReLU), batches=loaded(collate_fn=noisy)),
    "mixed rows": Spelling(mlp(nn.ReLU), batches=loaded(collate_fn=mixed, shuffle=True)),
    "a part of a data set": Spelling(mlp(nn.ReLU), batches=lambda data: utils.DataLoader(utils.Subset(rows_of(data), FEWER), 4, shuffle=True)),
    "data sets one after another": Spelling(mlp(nn.ReLU), batches=lambda data: utils.DataLoader(utils.ConcatDataset([rows_of(data)] * 2), 5, shuffle=True)),
    "a data set that counts": Spelling(mlp(nn.ReLU), data=Counted, batches=loaded()),
    "a data set that remembers": Spelling(mlp(nn.ReLU), data=Remembered, batches=loaded()),
    "a stream that counts epochs": Spelling(mlp(nn.ReLU), data=Epochs, batches=loaded()),
    "a stream in a drawn order": Spelling(mlp(nn.ReLU), data=Shuffled, batches=loaded()),
    "a loader of one's own that counts": Spelling(mlp(nn.ReLU), batches=OwnLoader),
    # Steps.
    "groups of parameters": Spelling(mlp(nn.ReLU), own=two_groups),
    **{name: Spelling(mlp(nn.ReLU), own=by(getattr(optim, name))) for name in ("Adagrad", "RMSprop", "NAdam", "RAdam", "Rprop", "Adadelta", "ASGD")},
    "nesterov": Spelling(mlp(nn.ReLU), own=by(optim.SGD, momentum=0.9, nesterov=True)),
    "an optimiser of the head alone": Spelling(mlp(nn.ReLU), own=lambda model: optim.SGD(model[2].parameters(), lr=0.1)),
    "sparse Adam": Spelling(words(sparse=True), data=tokens, own=lambda model: optim.SparseAdam([model.table.weight], lr=0.05)),
    "rates that fall": Spelling(mlp(nn.ReLU), own=by(optim.SGD), schedule=lambda optimiser: optim.lr_scheduler.ExponentialLR(optimiser, 0.5)),
    "one cycle of rates": Spelling(mlp(nn.ReLU), own=by(optim.SGD, momentum=0.9), schedule=lambda optimiser: optim.lr_scheduler.OneCycleLR(optimiser, 0.2, total_steps=7)),
    "a schedule of the agreed rate": Spelling(mlp(nn.ReLU), schedule=lambda optimiser: optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 / (1 + step))),
    "gradients clipped by hand": Spelling(mlp(nn.ReLU), by_hand=clipped),
    "noise on gradients": Spelling(mlp(nn.ReLU), by_hand=noised),
    "a scaled loss": Spelling(mlp(nn.ReLU), by_hand=scaled),
}
