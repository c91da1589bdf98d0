"""Spellings of state that lies outside of the parameters, in every place that Python has for it: what is tried before the
first round must leave none of it otherwise than it was."""

from __future__ import annotations

import collections
import ctypes
import dataclasses
import functools
import itertools
import multiprocessing
import queue
import tempfile
import weakref
from array import array

import numpy as np
import torch
from torch import nn

import own_module
from plain_spellings import CLASSES, ROWS, WIDTH, Spelling, mlp, rows_of, x, y

utils = torch.utils.data


class Ticking(nn.Module):
    """A network whose outputs depend on a number that another one follows in every pass of a training."""

    def __init__(self, tick):
        super().__init__()
        self.dense, self.tick = nn.Linear(WIDTH, CLASSES), tick

    def forward(self, rows):
        return self.dense(rows) * (1 + 0.1 * float(self.tick()) if self.training else 1)


def ticking(make, **more):
    return Spelling(lambda: Ticking(make()), **more)


# Classes.


class Counts:
    number, numbers = 0, []

    @classmethod
    def count(cls):
        cls.number += 1
        return cls.number

    @staticmethod
    def note():
        Counts.numbers.append(1)
        return len(Counts.numbers)

    def __call__(self):
        type(self).number += 1
        return Counts.number

    @property
    def next(self):
        self.__class__.late = getattr(self, "late", 0) + 1
        return self.late

    @classmethod
    def again(cls):
        cls.number = 0
        cls.numbers.clear()
        if "late" in vars(cls):
            del cls.late


class Less(Counts):
    """Counts in the class that it derives from."""


class Noisy(utils.TensorDataset):
    draws = np.random.default_rng(0)

    def __getitem__(self, at):
        values, target = super().__getitem__(at)
        return values + 0.1 * float(self.draws.normal()), target


@dataclasses.dataclass(slots=True)
class Slotted:
    number: int = 0

    def __call__(self):
        self.number += 1
        return self.number


class Late:
    """A slot that is empty at first, and one of a private name."""

    __slots__ = ("number", "__hidden")

    def __init__(self):
        self.__hidden = 0

    def __call__(self):
        self.number = getattr(self, "number", 0) + 1
        self.__hidden += self.number
        return self.__hidden


# Modules.


def imported_within():
    import own_module as other

    other.COUNT += 1
    return other.COUNT


def by_name():
    setattr(own_module, "COUNT", getattr(own_module, "COUNT") + 1)
    return vars(own_module)["COUNT"]


def late_variable():
    own_module.LATE = getattr(own_module, "LATE", 0) + 1
    return own_module.LATE


def of_module():
    own_module.COUNT += 1
    return own_module.COUNT


def seen():
    own_module.SEEN.append(1)
    return len(own_module.SEEN)


TICKS = 0


def global_by_name():
    globals()["TICKS"] += 1
    return TICKS


# Functions and iterators.


def counted():
    counted.number += 1
    return counted.number


counted.number = 0


def with_attribute():
    return counted()


def with_default(state=[0], *, more={"number": 0}):  # noqa: B006
    state[0] += 1
    more["number"] += 1
    return state[0] + more["number"]


def without_gradients():
    """What a library has made of a function of one's own."""
    number = 0

    @torch.no_grad()
    def tick():
        nonlocal number
        number += 1
        return number

    return tick


def ramp(step=0.1):
    share = 0.0
    while share < 100:
        share += step
        yield share


def sums(*parts, by=1, **more):
    """A generator that is given iterators."""
    for numbers in zip(*parts):
        yield by * sum(numbers) + len(more)


def within():
    by = 0.5

    def steps(count):
        for step in range(count):
            yield by * step

    return steps(1000)


class In:
    """An iterator in a list, and beside it in an attribute."""

    def __init__(self, made):
        self.parts, self.made = [made], made

    def __call__(self):
        return next(self.parts[0]) + next(self.made)


SHARED = itertools.count(1)


def shared():
    return next(SHARED)


def again_shared():
    global SHARED
    SHARED = itertools.count(1)


# Containers.


def tally():
    counts = collections.Counter(steps=1)

    def tick():
        counts["steps"] += 1
        return counts["steps"]

    return tick


def of(state, change):
    """Changes a state, and says a number."""
    return lambda: change(state)


def plus(state):
    state[0] += 1
    return state[0]


def appended(state):
    state.append(1)
    return len(state)


def moved(state):
    """The order of a dictionary that has one."""
    state.move_to_end(next(iter(state)))
    return next(iter(state))


def missing(state):
    state["steps"] += 1
    return state["steps"]


def valued(state):
    state.value += 1
    return state.value


def queued(state):
    state.put(1)
    return state.qsize()


WEAK = weakref.WeakKeyDictionary()


class Weakly(nn.Linear):
    def __init__(self):
        super().__init__(WIDTH, CLASSES)

    def forward(self, rows):
        if self.training:
            WEAK[self] = WEAK.get(self, 0) + 1
        return super().forward(rows) * (1 + 0.1 * WEAK.get(self, 0))


def lines():
    file = tempfile.TemporaryFile("w+")
    file.write("".join(f"{nth}\n" for nth in range(1000)))
    file.seek(0)
    return lambda: float(file.readline())


# Rows.


@functools.lru_cache(None)
def row(at):
    return x(0)[at] + 0.3 * torch.randn(WIDTH)


class Rows(utils.Dataset):
    def __init__(self, place=0):
        self.rows = x(place), y(place)

    def __len__(self):
        return ROWS


class Cached(Rows):
    def __getitem__(self, at):
        return row(at), self.rows[1][at]


class CachedByMethod(Rows):
    @functools.cache
    def row(self, at):
        return self.rows[0][at] + 0.3 * torch.randn(WIDTH)

    def __getitem__(self, at):
        return self.row(at), self.rows[1][at]


class CachedOnce(Rows):
    @functools.cached_property
    def noise(self):
        return torch.randn(ROWS, WIDTH)

    def __getitem__(self, at):
        return self.rows[0][at] + self.noise[at], self.rows[1][at]


class Visits(Rows):
    """Counts how often each row was read, in a state of many entries."""

    def __init__(self, place, state, count):
        super().__init__(place)
        self.state, self.count = state, count

    def __getitem__(self, at):
        return self.rows[0][at] / (1 + float(self.count(self.state, 100 * at))), self.rows[1][at]


def at_place(state, at):
    state[at] += 1
    return state[at]


def in_lists(state, at):
    state[at].append(1)
    return len(state[at])


def in_table(state, at):
    state.loc[at, "seen"] += 1
    return state.loc[at, "seen"]


def in_new_column(state, at):
    state["late"] = state["late"] + 1 if "late" in state else 1
    return state["late"][at]


def table():
    pandas = __import__("pandas")
    return pandas.DataFrame({"seen": [0] * 1200, "name": ["a"] * 1200})


def visits(make, count):
    return Spelling(mlp(nn.ReLU), data=lambda place: Visits(place, make(), count), batches=lambda data: utils.DataLoader(data, 5))


def again():
    """Everything outside of models and rows as at first."""
    global TICKS
    TICKS = counted.number = 0
    with_default.__defaults__[0][0] = with_default.__kwdefaults__["more"]["number"] = 0
    Noisy.draws = np.random.default_rng(0)
    WEAK.clear()
    Counts.again()
    own_module.again()
    again_shared()
    row.cache_clear()


def loaded(data):
    return utils.DataLoader(data, 5)


TRACED = {
    # Classes.
    "a number of a class": ticking(lambda: Counts.count),
    "a list of a class": ticking(lambda: Counts.note),
    "a number of the class of an object": ticking(Counts),
    "a number of the class before": ticking(Less),
    "a number that a class has later": ticking(lambda: (lambda counts: lambda: counts.next)(Counts())),
    "a generator of a class": Spelling(mlp(nn.ReLU), data=lambda place: Noisy(x(place), y(place)), batches=loaded),
    "slots": ticking(Slotted),
    "slots that are empty, and private ones": ticking(Late),
    # Modules.
    "a variable of a module": ticking(lambda: of_module),
    "a function of a module": ticking(lambda: own_module.count),
    "a list of a module": ticking(lambda: seen),
    "a module that is imported within": ticking(lambda: imported_within),
    "a variable by its name": ticking(lambda: by_name),
    "a variable that a module has later": ticking(lambda: late_variable),
    "a global by its name": ticking(lambda: global_by_name),
    # Functions.
    "an attribute of a function": ticking(lambda: with_attribute),
    "defaults of a function": ticking(lambda: with_default),
    "a function that a library wraps": ticking(without_gradients),
    # Iterators.
    "a count": ticking(lambda: functools.partial(next, itertools.count(1))),
    "the next of a count": ticking(lambda: itertools.count(1).__next__),
    "a cycle": ticking(lambda: functools.partial(next, itertools.cycle([1.0, 2.0, 0.5]))),
    "an iterator of a list": ticking(lambda: iter([0.1 * nth for nth in range(100)]).__next__),
    "pairs": ticking(lambda: (lambda pairs: lambda: sum(next(pairs)))(zip(itertools.count(), itertools.cycle([1, 2])))),
    "a generator function": ticking(lambda: ramp().__next__),
    "a generator function of iterators": ticking(lambda: sums(itertools.count(), iter(range(100)), by=0.1, more=1).__next__),
    "a generator function within another": ticking(lambda: within().__next__),
    "a generator expression": ticking(lambda: (0.1 * nth for nth in range(100)).__next__),
    "a count in two places": ticking(lambda: In(itertools.count(1))),
    "a count of a module": ticking(lambda: shared),
    "lines of a file": ticking(lines),
    # Containers.
    "a counter that is not empty": ticking(tally),
    "a default": ticking(lambda: of(collections.defaultdict(int, steps=3), missing)),
    "an ordered dictionary": ticking(lambda: of(collections.OrderedDict.fromkeys([1, 2, 3]), moved)),
    "a queue of a largest length": ticking(lambda: of(collections.deque([0, 1], 3), appended)),
    "a bytearray": ticking(lambda: of(bytearray(1), plus)),
    "an array of Python": ticking(lambda: of(array("d", [0.0]), plus)),
    "an array of objects": ticking(lambda: of(np.array([0, None], object), plus)),
    "a number of C": ticking(lambda: of(ctypes.c_int(0), valued)),
    "a number of several processes": ticking(lambda: of(multiprocessing.Value("i", 0), valued)),
    "a queue": ticking(lambda: of(queue.Queue(), queued)),
    "a weak dictionary": Spelling(Weakly),
    # Caches.
    "rows in a cache": Spelling(mlp(nn.ReLU), data=Cached, batches=loaded),
    "rows in a cache of a method": Spelling(mlp(nn.ReLU), data=CachedByMethod, batches=loaded),
    "rows in a cached property": Spelling(mlp(nn.ReLU), data=CachedOnce, batches=loaded),
    # More than a thousand entries.
    "many counts in an array": visits(lambda: np.zeros(1200), at_place),
    "many counts in a tensor": visits(lambda: torch.zeros(1200), at_place),
    "many counts in a list": visits(lambda: [0] * 1200, at_place),
    "many lists": visits(lambda: [[] for _ in range(1200)], in_lists),
    "many small tensors": visits(lambda: [torch.zeros(1) for _ in range(1200)], at_place),
    "many arrays of one number": visits(lambda: [np.zeros(()) for _ in range(1200)], at_place),
}
#: With pandas alone.
TABLES = {"a column of a table": visits(table, in_table), "a new column of a table": visits(table, in_new_column)}
