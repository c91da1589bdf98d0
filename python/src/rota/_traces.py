"""The state of all that some objects hold, kept while something is tried, and put back."""

from __future__ import annotations

import ctypes
import functools
import io
import marshal
import random
import sys
import types
import zlib
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from ._iterators import NoCopy, copied, moved, moves, place_of
from ._notes import note
from ._reach import ELEMENTS, MOST, attributes_of, generators, is_own, reached, slots_of, variables_of

#: Numbers of an array or a tensor of which a copy is kept, and of all together but those of a module: the smallest come
#: first. What changes in others is said, of arrays up to so many bytes.
_NUMBERS, _TOGETHER, _SUMMED = 10_000_000, 30_000_000, 1 << 30

Undo = Callable[[], None]


class Traces:
    """What some objects hold: attributes, also of classes, slots, containers, variables of functions and of modules of the
    institution, arrays, tensors, tables, caches and generators. Within it iterators are copies; at its end everything is
    as it was when this was made, and a note says what cannot be."""

    def __init__(self, roots: Iterable[Any], without: Iterable[Any] = ()) -> None:
        """`without` are tensors that somebody else puts back."""
        self._reached = reached(roots)
        if len(self._reached) >= MOST:
            note(
                f"more than {MOST} objects belong to the model, the loss and the rows: what is tried before the first round may "
                "leave something behind in those beyond"
            )
        self._undo: list[Undo] = []
        self._places: list[_Places] = []
        self._moving: list[Any] = []
        #: What cannot be put back: what it is, and a function that says whether it has changed.
        self._watched: list[tuple[str, Callable[[], bool]]] = []
        others = {id(one) for one in without}
        torch: Any = sys.modules.get("torch")
        modules = [one for one in self._reached if torch is not None and isinstance(one, torch.nn.Module)]
        # As many copies as a training makes.
        free = {id(value) for one in modules for value in [*one._parameters.values(), *one._buffers.values()]}
        owned = others | free
        numbers: list[tuple[int, Any]] = []
        for one in self._reached:
            if isinstance(one, np.ndarray) or torch is not None and isinstance(one, torch.Tensor):
                size = one.size if isinstance(one, np.ndarray) else one.numel()
                if id(one) in free and size <= _NUMBERS and id(one) not in others:
                    self._add(_numbers(one))
                elif id(one) not in owned:
                    numbers.append((size, one))
            else:
                self._keep(one)
        room = _TOGETHER
        for size, one in sorted(numbers, key=lambda pair: pair[0]):
            room -= size
            if size <= _NUMBERS and room >= 0:
                self._add(_numbers(one))
            else:
                self._watch(one)

    def _add(self, undo: Undo | None) -> None:
        if undo is not None:
            self._undo.append(undo)

    def _keep(self, one: Any) -> None:
        if moves(one):
            if not isinstance(one, types.MethodWrapperType):
                self._moving.append(one)
        elif (places := _places_of(one)) is not None:
            self._places.append(places)
        else:
            self._add(_kept(one))
        if isinstance(one, (dict, list, deque)) and len(one) > ELEMENTS:
            self._watch(one)

    def _watch(self, one: Any) -> None:
        """Says afterwards what has changed and is not put back."""
        if (sign := _sign_of(one)) is not None:
            before = sign()
            self._watched.append((_named(one), lambda: sign() != before))

    def __enter__(self) -> Traces:
        """Puts copies of iterators in their places."""
        known: dict[int, Any] = {}
        self._before = [(one, place_of(one)) for one in self._moving]
        for one in self._moving:
            with suppress(NoCopy):
                copied(one, known)
        for places in self._places if self._moving else ():
            places.swap(known)
        return self

    def __exit__(self, *_: Any) -> None:
        for places in self._places:
            places.restore()
        for undo in self._undo:
            undo()
        left = [_named(one) for one, place in self._before if moved(place, place_of(one))]
        left += [name for name, changed in self._watched if changed()]
        for name in left:
            note(
                f"one batch was tried before the first round, which changed {name}: that cannot be put back, and a plain loop "
                "would find it as it was; make it anew where a training begins, or keep its state in attributes"
            )

    def generators(self) -> list[Any]:
        """The generators of random numbers among what was reached, as `generators` has them."""
        return generators(self._reached)


def _named(one: Any) -> str:
    kind = type(one).__name__
    if isinstance(one, types.GeneratorType):
        return f"the running generator {one.__qualname__}"
    if isinstance(one, functools._lru_cache_wrapper):
        return f"the cache of {one.__wrapped__.__qualname__}"
    if shape := getattr(one, "shape", None):
        return f"a {kind} of the shape {tuple(shape)}"
    return f"a {kind} of {len(one)} elements" if hasattr(one, "__len__") else f"the iterator {kind}"


def _sign_of(one: Any) -> Callable[[], Any] | None:
    """The function that gives something that is another one after a change."""
    if isinstance(one, np.ndarray):
        plain = one.flags.writeable and one.flags.c_contiguous and one.dtype != object and not isinstance(one, np.memmap)
        if not plain or one.nbytes > _SUMMED:
            return None
        return lambda: int(one.reshape(-1).view(np.uint8)[: one.nbytes // 8 * 8].view(np.uint64).sum())
    if hasattr(one, "_version"):
        return lambda: None if one.is_inference() else one._version
    # The elements of a long container are not looked into: those that can change are compared.
    elements = list(one.values() if isinstance(one, dict) else one)
    if not set(map(type, elements)) & {list, dict, set, bytearray, deque, np.ndarray, *_tensors()}:
        return None
    return lambda: sum(_changes(part) for part in elements)


def _tensors() -> tuple[type, ...]:
    torch: Any = sys.modules.get("torch")
    return () if torch is None else (torch.Tensor,)


def _changes(one: Any) -> int:
    """A number that is another one after most changes of a small object."""
    if isinstance(one, _tensors()):
        return 0 if one.is_inference() else int(one._version)
    if isinstance(one, np.ndarray):
        return zlib.crc32(one.tobytes()) if one.nbytes < 1 << 16 and one.dtype != object else 0
    try:
        # The first version writes no references, which are others every time.
        return zlib.crc32(marshal.dumps(list(one) if isinstance(one, deque) else one, 0))
    except ValueError:
        return 0


class _Places:
    """Places by a name, each of which holds an object."""

    def __init__(self, read: Callable[[], dict[Any, Any]], put: Callable[[Any, Any], None], drop: Callable[[Any], None]) -> None:
        self._read, self._put, self._drop, self._held = read, put, drop, read()

    def swap(self, copies: dict[int, Any]) -> None:
        """Puts copies of objects in their places."""
        for name, value in self._held.items():
            with suppress(NoCopy):
                if (found := copied(value, copies)) is not value:
                    self._put(name, found)

    def restore(self) -> None:
        """Puts every object back in its place, and takes those out that were not there."""
        now = self._read()
        for name in reversed([name for name in now if name not in self._held]):
            self._drop(name)
        for name, value in self._held.items():
            if name not in now or now[name] is not value:
                self._put(name, value)


class _Dictionary(_Places):
    """A dictionary, in its order."""

    def __init__(self, one: dict[Any, Any]) -> None:
        # Classes of one's own may do something else when a value is set, as counters do when they are updated.
        kind: Any = OrderedDict if isinstance(one, OrderedDict) else dict
        put, drop = functools.partial(kind.__setitem__, one), functools.partial(kind.__delitem__, one)
        super().__init__(lambda: dict(kind.items(one)), put, drop)
        self._one, self._kind = one, kind

    def restore(self) -> None:
        now = list(self._kind.items(self._one))
        if len(now) == len(self._held) and all(a is c and b is d for (a, b), (c, d) in zip(now, self._held.items())):
            return
        if len(now) == len(self._held) and all(a is b for (a, _), b in zip(now, self._held)):
            super().restore()
            return
        self._kind.clear(self._one)
        for name, value in self._held.items():
            self._put(name, value)


class _List(_Places):
    """A list or a deque."""

    def __init__(self, one: Any) -> None:
        self._one, self._elements = one, list(one)

    def swap(self, copies: dict[int, Any]) -> None:
        for place, value in enumerate(self._elements if len(self._elements) <= ELEMENTS else ()):
            with suppress(NoCopy):
                if (found := copied(value, copies)) is not value:
                    self._one[place] = found

    def restore(self) -> None:
        if len(self._one) != len(self._elements) or not all(a is b for a, b in zip(self._one, self._elements)):
            self._one.clear()
            self._one.extend(self._elements)


def _places_of(one: Any) -> _Places | None:
    """The places of an object that others can be put in."""
    if isinstance(one, dict):
        return _Dictionary(one)
    if isinstance(one, (list, deque)):
        return _List(one)
    if isinstance(one, types.CellType):
        return _Places(lambda: _contents(one), lambda _, value: setattr(one, "cell_contents", value), lambda _: None)
    if isinstance(one, types.FunctionType):
        return _variables(one) if is_own(one) else None
    if isinstance(one, type):
        own = is_own(one)
        put, drop = functools.partial(type.__setattr__, one), functools.partial(type.__delattr__, one)
        return _Places(lambda: attributes_of(one), put, drop) if own else None
    if slots := {slot.__name__: slot for slot in slots_of(type(one))}:
        return _Places(
            lambda: _filled(one, slots), lambda name, value: slots[name].__set__(one, value), lambda name: slots[name].__delete__(one)
        )
    return None


def _contents(cell: types.CellType) -> dict[str, Any]:
    try:
        return {"contents": cell.cell_contents}
    except ValueError:
        return {}


def _filled(one: Any, slots: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, slot in slots.items():
        with suppress(AttributeError):
            found[name] = slot.__get__(one)
    return found


def _variables(function: types.FunctionType) -> _Places:
    spaces = {(id(space), name): (space, name) for space, name in variables_of(function)}

    def read() -> dict[Any, Any]:
        # Modules that are imported within a function stay.
        found = {key: space.get(name, read) for key, (space, name) in spaces.items()}
        return {key: value for key, value in found.items() if value is not read and not isinstance(value, types.ModuleType)}

    def put(key: Any, value: Any) -> None:
        space, name = spaces[key]
        space[name] = value

    def drop(key: Any) -> None:
        space, name = spaces[key]
        del space[name]

    return _Places(read, put, drop)


def _kept(one: Any) -> Undo | None:
    """The function that puts the state of an object back; `None` where it has none."""
    if isinstance(one, set):
        members = set(one)

        def of_set() -> None:
            if one != members:
                one.clear()
                one.update(members)

        return of_set
    if isinstance(one, (bytearray, array)):
        values = one[:]

        def of_bytes() -> None:
            one[:] = values

        return of_bytes
    if isinstance(one, functools._lru_cache_wrapper):
        return _cache(one)
    if isinstance(one, io.IOBase):
        return _file(one)
    if isinstance(one, (ctypes._SimpleCData, ctypes.Array, ctypes.Structure)) and not isinstance(one, ctypes.py_object):
        held = bytes(one)
        return lambda: ctypes.memmove(ctypes.addressof(one), held, len(held)) and None
    return _table(one) if type(one).__module__.partition(".")[0] == "pandas" else _generator(one)


def _cache(one: Any) -> Undo:
    before = one.cache_info()

    def undo() -> None:
        nonlocal before
        if one.cache_info().misses != before.misses:
            one.cache_clear()
            held, before = before.currsize, one.cache_info()
            if held:
                note(f"{_named(one)} was filled before the first round, and is empty again: what it held is computed anew")

    return undo


def _file(one: Any) -> Undo | None:
    """A file that is read goes back to its place."""
    try:
        place = one.tell() if one.readable() and one.seekable() else None
    except (OSError, ValueError):
        return None

    def undo() -> None:
        with suppress(OSError, ValueError):
            one.seek(place)

    return None if place is None else undo


def _table(one: Any) -> Undo | None:
    """A table or a column of pandas."""
    if not callable(getattr(one, "_update_inplace", None)) or one.size > _NUMBERS:
        return None
    copy = one.copy()

    def undo() -> None:
        if not (one.equals(copy) and one.index.equals(copy.index)):
            one._update_inplace(copy.copy())

    return undo


def _numbers(value: Any) -> Undo | None:
    return _array(value) if isinstance(value, np.ndarray) else _tensor(value)


def _array(value: np.ndarray[Any, Any]) -> Undo | None:
    if not value.flags.writeable:
        return None
    copy = value.copy()

    def undo() -> None:
        # Numbers that are none differ from themselves, and are written again.
        if value.dtype == object or not np.array_equal(value, copy):
            value[...] = copy

    return undo


def _tensor(value: Any) -> Undo | None:
    torch: Any = sys.modules["torch"]
    if type(value) is torch.nn.parameter.UninitializedParameter:
        return None
    try:
        copy = value.detach().clone()
    except (RuntimeError, NotImplementedError, ValueError):
        return None

    def undo() -> None:
        # Tensors of inference mode, and others that nobody may write into, stay as they are.
        with torch.no_grad(), suppress(RuntimeError):
            now = value.detach()
            if now.shape != copy.shape or now.dtype != copy.dtype:
                value.data = copy
            elif not torch.equal(now, copy):
                now.copy_(copy)

    return undo


def _generator(one: Any) -> Undo | None:
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
