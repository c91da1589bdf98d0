"""What the code of an institution holds: the objects that can be reached from a model, a loss or rows, their state, and
the generators of random numbers among them."""

from __future__ import annotations

import functools
import random
import site
import sys
import sysconfig
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

#: Objects that are looked at, and elements of a container that may hold others: rows are no state.
_MOST, _ELEMENTS = 50_000, 1_000
#: Numbers of an array or a tensor that is put back, and of one beside rows: larger ones are rows.
_NUMBERS, FEW = 10_000_000, 1_000
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType, types.BuiltinFunctionType, range, slice)
_LIBRARIES = tuple(
    {path for name in ("stdlib", "platstdlib", "purelib", "platlib") if (path := sysconfig.get_paths().get(name))}
    | set(site.getsitepackages() if hasattr(site, "getsitepackages") else ())
)


def _is_own(code: types.CodeType) -> bool:
    """Whether a function is neither of Python nor of an installed package."""
    return not code.co_filename.startswith((*_LIBRARIES, "<frozen"))


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _names(one)


def _globals_of(function: types.FunctionType) -> dict[str, Any]:
    known = function.__globals__
    found = {name: known[name] for name in set(_names(function.__code__)) if name in known}
    return {name: value for name, value in found.items() if not isinstance(value, (types.ModuleType, type))}


#: Classes without a function of the institution's: those of layers have a hundred others.
_foreign: weakref.WeakSet[type] = weakref.WeakSet()


def _methods(kind: type) -> list[Any]:
    """The functions of the institution's own classes."""
    if kind in _foreign:
        return []
    functions = [getattr(value, "__func__", value) for one in kind.__mro__ for value in vars(one).values()]
    found = [one for one in functions if isinstance(one, types.FunctionType) and _is_own(one.__code__)]
    if not found:
        _foreign.add(kind)
    return found


def _inside(one: Any) -> Iterator[Any]:
    """What an object holds."""
    if isinstance(one, types.FunctionType):
        if not _is_own(one.__code__):
            return
        yield from (cell for cell in one.__closure__ or ())
        yield from one.__defaults__ or ()
        yield from (one.__kwdefaults__ or {}).values()
        yield from vars(one).values()
        yield from _globals_of(one).values()
    elif isinstance(one, types.CellType):
        try:
            yield one.cell_contents
        except ValueError:
            return
    elif isinstance(one, types.MethodType):
        yield one.__func__
        yield one.__self__
    elif isinstance(one, functools.partial):
        yield one.func
        yield from one.args
        yield one.keywords
    elif isinstance(one, dict):
        if len(one) <= _ELEMENTS:
            yield from one.values()
    elif isinstance(one, (list, tuple, set, frozenset, deque)):
        if len(one) <= _ELEMENTS:
            yield from one
    else:
        held = getattr(one, "__dict__", None)
        if isinstance(held, dict):
            yield held
        for kind in type(one).__mro__:
            slots = vars(kind).get("__slots__", ())
            for name in [slots] if isinstance(slots, str) else slots:
                if not name.startswith("__") and hasattr(one, name):
                    yield getattr(one, name)
        yield from _methods(type(one))


#: Whether objects of these types are leaves.
_leaves: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def _is_leaf(one: Any) -> bool:
    kind = type(one)
    try:
        if (known := _leaves.get(kind)) is None:
            known = _leaves[kind] = _are_leaves(kind)
    except TypeError:  # A type that cannot be a key.
        return _are_leaves(kind)
    return known


def _are_leaves(kind: type) -> bool:
    if issubclass(kind, (*_PLAIN, np.ndarray, np.generic, np.random.Generator, np.random.RandomState, random.Random)):
        return True
    torch: Any = sys.modules.get("torch")
    if torch is not None and issubclass(kind, (torch.Tensor, torch.Generator, torch.device, torch.dtype)):
        return True
    root = kind.__module__.partition(".")[0]
    # Locks, files, threads and the like have no state that a training changes.
    own = issubclass(kind, (dict, list, tuple, set, frozenset, deque, types.FunctionType, types.MethodType, types.CellType, functools.partial))
    return not own and root in sys.stdlib_module_names and root not in ("__main__", "types", "collections", "argparse")


def reached(roots: Iterable[Any]) -> list[Any]:
    """All objects that these hold, themselves among them, each once."""
    seen: dict[int, Any] = {}
    todo = [one for one in roots if one is not None]
    while todo and len(seen) < _MOST:
        one = todo.pop()
        if id(one) in seen or isinstance(one, _PLAIN):
            continue
        seen[id(one)] = one
        if not _is_leaf(one):
            todo += _inside(one)
    return list(seen.values())


class Traces:
    """The state of all that some objects hold, to be put back: attributes, containers, variables of functions,
    arrays, tensors and generators. What iterators have given, and what is written elsewhere, cannot be put back."""

    def __init__(self, roots: Iterable[Any], without: Iterable[Any] = (), most: int = _NUMBERS) -> None:
        """`without` are arrays and tensors that somebody else puts back; those of more numbers than `most` stay as they are."""
        self._undo: list[Callable[[], None]] = []
        others = {id(one) for one in without}
        self._reached = reached(roots)
        for one in self._reached:
            if id(one) not in others and (undo := _kept(one, most)) is not None:
                self._undo.append(undo)

    def restore(self) -> None:
        """Puts everything back."""
        for undo in self._undo:
            undo()

    def generators(self) -> list[Any]:
        """The generators of random numbers among what was reached, as `generators` has them."""
        return _generators(self._reached)


def _same(one: Iterable[Any], other: Iterable[Any]) -> bool:
    return all(a is b for a, b in zip(one, other))


def _kept(one: Any, most: int) -> Callable[[], None] | None:
    """The function that puts the state of an object back; `None` where it has none, or more numbers than that."""
    torch: Any = sys.modules.get("torch")
    if isinstance(one, dict):
        # Types of dictionaries with an order of their own keep it.
        held = list(one.items())

        def of_dict() -> None:
            now = list(one.items())
            if len(now) != len(held) or not all(a is c and b is d for (a, b), (c, d) in zip(now, held)):
                one.clear()
                one.update(held)

        return of_dict
    if isinstance(one, (list, deque)):
        elements = list(one)

        def of_list() -> None:
            if len(one) != len(elements) or not _same(one, elements):
                one.clear()
                one.extend(elements)

        return of_list
    if isinstance(one, set):
        members = set(one)

        def of_set() -> None:
            if one != members:
                one.clear()
                one.update(members)

        return of_set
    if isinstance(one, types.CellType):
        return _variable(one)
    if isinstance(one, types.FunctionType) and _is_own(one.__code__):
        return _variables(one)
    if isinstance(one, np.ndarray):
        return _array(one) if one.flags.writeable and one.size <= most and one.dtype != object else None
    if torch is not None and isinstance(one, torch.Tensor):
        return _tensor(one) if one.numel() <= most and type(one) is not torch.nn.parameter.UninitializedParameter else None
    return _generator(one)


def _variable(cell: types.CellType) -> Callable[[], None] | None:
    try:
        value = cell.cell_contents
    except ValueError:
        return None

    def undo() -> None:
        cell.cell_contents = value

    return undo


def _variables(function: types.FunctionType) -> Callable[[], None]:
    values, known = _globals_of(function), function.__globals__

    def undo() -> None:
        for name, value in values.items():
            if known.get(name, undo) is not value:
                known[name] = value

    return undo


def _array(value: np.ndarray[Any, Any]) -> Callable[[], None]:
    copy = value.copy()

    def undo() -> None:
        if value.tobytes() != copy.tobytes():
            value[...] = copy

    return undo


def _tensor(value: Any) -> Callable[[], None] | None:
    torch: Any = sys.modules["torch"]
    try:
        copy = value.detach().clone()
    except (RuntimeError, NotImplementedError, ValueError):
        return None

    def undo() -> None:
        with torch.no_grad(), _quiet():
            now = value.detach()
            if now.shape != copy.shape or now.dtype != copy.dtype:
                value.data = copy
            elif not torch.equal(now, copy):
                now.copy_(copy)

    return undo


class _quiet:
    """Tensors of inference mode, and others that nobody may write into, stay as they are."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        return isinstance(error, RuntimeError)


def _generator(one: Any) -> Callable[[], None] | None:
    torch: Any = sys.modules.get("torch")
    if isinstance(one, np.random.Generator):
        state = one.bit_generator.state
        return lambda: setattr(one.bit_generator, "state", state)
    if isinstance(one, np.random.RandomState):
        legacy = one.get_state()
        return lambda: one.set_state(legacy)
    if isinstance(one, random.Random):
        drawn = one.getstate()
        return lambda: one.setstate(drawn)
    if torch is not None and isinstance(one, torch.Generator):
        tensor = one.get_state()
        return lambda: one.set_state(tensor)
    return None


def generators(roots: Iterable[Any]) -> list[Any]:
    """The generators of random numbers that these objects hold, of PyTorch, NumPy and Python. Those of a whole process
    are not among them."""
    return _generators(reached(roots))


def _generators(found: Iterable[Any]) -> list[Any]:
    torch: Any = sys.modules.get("torch")
    kinds: tuple[type, ...] = (np.random.Generator, np.random.RandomState, random.Random)
    shared: list[Any] = [getattr(random, "_inst", None), getattr(np.random.mtrand, "_rand", None)]
    if torch is not None:
        kinds = (*kinds, torch.Generator)
        shared.append(torch.default_generator)
    return [one for one in found if isinstance(one, kinds) and not any(one is other for other in shared)]


def seed_all(found: Iterable[Any], seed: int) -> None:
    """Seeds generators, so that the same question has the same answer."""
    for one in found:
        if isinstance(one, np.random.Generator):
            bits = one.bit_generator
            bits.state = type(bits)(seed).state
        elif isinstance(one, np.random.RandomState):
            one.seed(seed % (1 << 32))
        elif isinstance(one, random.Random):
            one.seed(seed)
        else:
            one.manual_seed(seed % (1 << 63))
