"""What the code of an institution holds: the objects that can be reached from a model, a loss or rows, and the generators
of random numbers among them."""

from __future__ import annotations

import functools
import os
import random
import site
import sys
import sysconfig
import types
import weakref
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

#: Objects that are looked at, and elements of a container that are: longer ones are rows.
MOST, ELEMENTS = 200_000, 20_000
_PLAIN = (str, bytes, int, float, complex, bool, type(None), types.BuiltinFunctionType, range, slice)
_IS_PLAIN = {*_PLAIN, np.float64, np.float32, np.int64, np.int32, np.bool_}
#: Types of Python in whose objects others lie.
_HOLDERS = (
    dict, list, tuple, set, frozenset, deque, types.FunctionType, types.MethodType, types.MethodWrapperType, types.CellType,
    types.GeneratorType, functools.partial, functools._lru_cache_wrapper, weakref.ref,
)  # fmt: skip
#: Modules of Python with types that are looked into as those of anybody.
_OPEN = ("__main__", "types", "collections", "argparse", "weakref", "queue", "multiprocessing", "tempfile")
_LIBRARIES = tuple(
    os.path.join(path, "")
    for path in {
        *(sysconfig.get_paths().get(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        *(site.getsitepackages() if hasattr(site, "getsitepackages") else ()),
        *(path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")),
        os.path.dirname(__file__),
    }
    if path
)


def _is_own_file(path: str) -> bool:
    """Whether a file is neither of Python nor of an installed package."""
    return not path.startswith((*_LIBRARIES, "<frozen"))


def is_own(one: types.FunctionType | types.ModuleType | type) -> bool:
    """Whether a function, a module or a class is the institution's."""
    if isinstance(one, types.FunctionType):
        return _is_own_file(one.__code__.co_filename)
    if isinstance(one, type):
        # Those of C have no variables.
        module = sys.modules.get(one.__module__)
        return bool(one.__flags__ & 1 << 9) and (module is None or is_own(module))
    path = getattr(one, "__file__", None) or next(iter(getattr(one, "__path__", ())), None)
    if one.__name__ == "__main__" or path is not None:
        return path is None or _is_own_file(path)
    return one.__name__.partition(".")[0] not in sys.stdlib_module_names


#: The names in code that was looked at; the code is held, so that no other one has its place.
_named: dict[int, tuple[types.CodeType, frozenset[str]]] = {}


def _names(code: types.CodeType) -> frozenset[str]:
    """What code may call a variable or an attribute, also in a string."""
    if (known := _named.get(id(code))) is None:
        found = set(code.co_names)
        for one in code.co_consts:
            if isinstance(one, types.CodeType):
                found |= _names(one)
            elif isinstance(one, str) and one.isidentifier():
                found.add(one)
        known = _named[id(code)] = code, frozenset(found)
    return known[1]


def variables_of(function: types.FunctionType) -> list[tuple[dict[str, Any], str]]:
    """The variables that a function names, in its module and in others of the institution, whether they are there yet
    or not: the variables of the module, and the name."""
    known, names = function.__globals__, _names(function.__code__)
    package = known.get("__package__")
    # Modules may be imported within the function.
    inside = (sys.modules.get(name) or sys.modules.get(f"{package}.{name}") for name in names if name not in known)
    spaces = [known, *(vars(module) for module in inside if module is not None and is_own(module))]
    seen = set(map(id, spaces))
    found = []
    for space in spaces:
        for name in names:
            value = space.get(name)
            if not isinstance(value, types.ModuleType):
                found.append((space, name))
            elif id(vars(value)) not in seen and is_own(value):
                seen.add(id(vars(value)))
                spaces.append(vars(value))
    return found


def attributes_of(kind: type) -> dict[str, Any]:
    """The attributes of a class but those of Python itself."""
    return {name: value for name, value in vars(kind).items() if not (name.startswith("__") and name.endswith("__"))}


@functools.lru_cache(1_000)
def slots_of(kind: type) -> list[Any]:
    """The descriptors of all slots of a class written in Python."""
    holders = (one for one in kind.__mro__ if "__slots__" in vars(one))
    return [slot for one in holders for slot in vars(one).values() if isinstance(slot, types.MemberDescriptorType)]


def _inside(one: Any) -> Iterator[Any]:
    """What an object holds."""
    if isinstance(one, types.FunctionType):
        # What others have made of a function of the institution's holds it.
        yield from one.__closure__ or ()
        if not is_own(one):
            yield getattr(one, "__wrapped__", None)
            return
        yield from one.__defaults__ or ()
        yield from (one.__kwdefaults__ or {}).values()
        yield vars(one)
        yield from (space.get(name) for space, name in variables_of(one))
    elif isinstance(one, type):
        own = is_own(one)
        for value in list(vars(one).values()):
            for part in _parts(value):
                # What the institution has put into the class of a package, too.
                if own or isinstance(part, types.FunctionType) and is_own(part):
                    yield part
        yield from one.__mro__[1:]
    elif isinstance(one, types.ModuleType):
        yield vars(one)
    elif isinstance(one, types.CellType):
        try:
            yield one.cell_contents
        except ValueError:
            return
    elif isinstance(one, (types.MethodType, types.MethodWrapperType)):
        yield getattr(one, "__func__", None)
        yield one.__self__
    elif isinstance(one, functools.partial):
        yield from (one.func, one.args, one.keywords)
    elif isinstance(one, weakref.ref):
        yield one()
    elif isinstance(one, types.GeneratorType):
        yield from (one.gi_frame.f_locals if one.gi_frame is not None else {}).values()
    elif isinstance(one, np.ndarray):
        yield from one.flat if one.size <= ELEMENTS else ()
    elif isinstance(one, (dict, list, tuple, set, frozenset, deque)):
        if len(one) <= ELEMENTS:
            yield from one.values() if isinstance(one, dict) else one
        if type(one).__flags__ & 1 << 9:
            yield from _held_by(one)
    else:
        yield from _held_by(one)


def _held_by(one: Any) -> Iterator[Any]:
    """What an object of a class written in Python holds."""
    kind = type(one)
    if (wrapped := getattr(one, "__wrapped__", None)) is not None and kind is functools._lru_cache_wrapper:
        yield wrapped
    held = getattr(one, "__dict__", None)
    if isinstance(held, dict):
        yield held
    for slot in slots_of(kind):
        try:
            yield slot.__get__(one)
        except AttributeError:
            continue
    if kind.__flags__ & 1 << 9:
        yield kind


def _parts(value: Any) -> tuple[Any, ...]:
    """The functions of a method, a property or the like; else the value itself."""
    if isinstance(value, (staticmethod, classmethod)):
        return (value.__func__,)
    if isinstance(value, property):
        return value.fget, value.fset
    return (value.func,) if isinstance(value, (functools.cached_property, functools.partialmethod)) else (value,)


#: Whether objects of these types are leaves.
_leaves: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def _is_leaf(one: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype != object
    kind = type(one)
    try:
        if (known := _leaves.get(kind)) is None:
            known = _leaves[kind] = _are_leaves(kind)
    except TypeError:  # A type that cannot be a key.
        return _are_leaves(kind)
    return known


def _are_leaves(kind: type) -> bool:
    if issubclass(kind, (*_PLAIN, bytearray, array, np.generic, np.random.Generator, np.random.RandomState, random.Random)):
        return True
    torch: Any = sys.modules.get("torch")
    if torch is not None and issubclass(kind, (torch.Tensor, torch.Generator, torch.device, torch.dtype)):
        return True
    root = kind.__module__.partition(".")[0]
    # Locks, files, threads and the like have no state that a training changes.
    return not issubclass(kind, _HOLDERS) and root in sys.stdlib_module_names and root not in _OPEN


def reached(roots: Iterable[Any]) -> list[Any]:
    """All objects that these hold, themselves among them, each once."""
    seen: dict[int, Any] = {}
    todo = list(roots)
    while todo and len(seen) < MOST:
        one = todo.pop()
        if type(one) in _IS_PLAIN or id(one) in seen or isinstance(one, _PLAIN):
            continue
        if isinstance(one, type):
            if not one.__flags__ & 1 << 9 or one.__module__.partition(".")[0] in _CLOSED:
                continue
        elif isinstance(one, types.ModuleType):
            if not is_own(one):
                continue
        elif _is_leaf(one):
            seen[id(one)] = one
            continue
        seen[id(one)] = one
        todo += _inside(one)
    return list(seen.values())


#: Modules whose classes nobody changes.
_CLOSED = {*sys.stdlib_module_names, "builtins"} - {"__main__"}


def generators(found: Iterable[Any]) -> list[Any]:
    """The generators of random numbers among these objects, of PyTorch, NumPy and Python. Those of a whole process are
    not among them."""
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
