"""Copies of what gives one thing after another: an iterator of Python, or a generator function that has not begun. What is
tried moves a copy, and who asks afterwards finds the original where it was."""

from __future__ import annotations

import ast
import functools
import gc
import inspect
import itertools
import types
import warnings
from typing import Any


#: Elements of what is gone through, of which only the number is looked at where there are more.
_LONG = 1_000


class NoCopy(Exception):
    """Something that cannot be copied."""


def moves(one: Any) -> bool:
    """Whether this is an iterator of Python or a generator, or what asks one."""
    kind = type(one)
    if kind is types.GeneratorType or kind is types.MethodWrapperType:
        return kind is types.GeneratorType or one.__name__ == "__next__" and moves(one.__self__)
    return kind.__module__ in ("itertools", "builtins") and kind is not type and hasattr(kind, "__next__")


def copied(one: Any, known: dict[int, Any]) -> Any:
    """A copy that gives what this would give; the same for the same object, by what is `known` of others. Whatever else
    it holds it shares with the original. Raises `NoCopy` where there is none."""
    if id(one) in known:
        return known[id(one)]
    if type(one) is types.MethodWrapperType and moves(one):
        found = copied(one.__self__, known).__next__
    elif type(one) is types.GeneratorType:
        found = _begun_anew(one, known)
    elif moves(one):
        found = _rebuilt(one, known)
    elif type(one) is tuple:
        parts = [copied(part, known) for part in one]
        found = one if all(a is b for a, b in zip(parts, one)) else tuple(parts)
    elif type(one) is functools.partial:
        args = copied(one.args, known)
        found = one if args is one.args else functools.partial(one.func, *args, **one.keywords)
    else:
        return one
    known[id(one)] = found
    return found


def _rebuilt(one: Any, known: dict[int, Any]) -> Any:
    if type(one) is itertools.count:
        return itertools.count(*_of_count(one))
    try:
        make, given, *state = _reduced(one)
        found = make(*(copied(part, known) for part in given))
        if state and state[0] is not None:
            # Such as what a cycle has seen so far, to which both would add.
            own = tuple(list(part) if type(part) is list else part for part in state[0]) if type(state[0]) is tuple else state[0]
            found.__setstate__(copied(own, known))
    except (TypeError, AttributeError, ValueError) as error:
        raise NoCopy from error
    return found


def _of_count(one: Any) -> tuple[Any, ...]:
    """The next number of a count, and its step: from 3.14 on Python says them in words alone."""
    try:
        found = ast.literal_eval(repr(one).removeprefix("count"))
    except (ValueError, SyntaxError) as error:
        raise NoCopy from error
    return found if isinstance(found, tuple) else (found,)


def _reduced(one: Any) -> Any:
    with warnings.catch_warnings():
        # From 3.14 on those of itertools have no such function.
        warnings.simplefilter("ignore", DeprecationWarning)
        return one.__reduce_ex__(2)


def _begun_anew(one: types.GeneratorType[Any, Any, Any], known: dict[int, Any]) -> Any:
    code = one.gi_code
    if inspect.getgeneratorstate(one) != inspect.GEN_CREATED:
        raise NoCopy
    functions = (held for held in gc.get_referents(one) if isinstance(held, types.FunctionType) and held.__code__ is code)
    function = next(functions, None)
    if function is None:
        # Versions of Python whose generators do not hold their function.
        if code.co_freevars:
            raise NoCopy
        function = types.FunctionType(code, one.gi_frame.f_globals)
    values = {name: copied(value, known) for name, value in one.gi_frame.f_locals.items()}
    names, placed = code.co_varnames, code.co_argcount
    end = placed + code.co_kwonlyargcount
    various = code.co_flags & inspect.CO_VARARGS
    args = [values[name] for name in names[:placed]] + list(values[names[end]] if various else ())
    named = {name: values[name] for name in names[placed:end]}
    named |= values[names[end + bool(various)]] if code.co_flags & inspect.CO_VARKEYWORDS else {}
    return function(*args, **named)


def place_of(one: Any) -> Any:
    """Something that is another one after the object has moved, as far as that can be told; to be compared with
    `moved`."""
    if isinstance(one, types.GeneratorType):
        frame = one.gi_frame
        return None if frame is None else (frame.f_lasti, dict(frame.f_locals))
    if type(one) is itertools.count:
        return repr(one)
    try:
        return _places(_reduced(one)[1:])
    except (TypeError, AttributeError, ValueError):
        return object()


def _places(parts: Any) -> Any:
    if type(parts) in (tuple, list):
        if len(parts) > _LONG:
            return len(parts)
        return [_places(part) for part in parts]
    return place_of(parts) if moves(parts) else parts


def moved(place: Any, now: Any) -> bool:
    """Whether an object with these places before and after has moved."""
    if isinstance(place, (tuple, list, dict)) and type(place) is type(now) and len(place) == len(now):
        pairs = zip(place.values(), now.values()) if isinstance(place, dict) else zip(place, now)
        return any(moved(before, after) for before, after in pairs)
    return place is not now and not (isinstance(place, (str, int, float, range)) and type(place) is type(now) and place == now)
