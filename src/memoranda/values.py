"""Slotted dataclasses that cost a fresh process little.

The standard `dataclass` imports `inspect` and compiles six functions for each class: for the sixty classes that a
`memoranda recall` defines, a third of the whole command. This one compiles a class's `__init__` when its first
instance is made, and nothing else. It knows what is used here: `frozen`, `order`, defaults, factories, `compare`,
`hash`, `__post_init__`, no inheritance. To the standard library and to a type checker its classes are dataclasses:
`dataclasses.replace`, `fields` and `asdict` take them.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

__all__ = ["dataclass", "field", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    _NOTHING = object()

    class _Field:
        """What `field` says of one: `default`, `factory`, whether it counts in comparing, and in the hash."""

        __slots__ = ("compare", "default", "factory", "hash")

        def __init__(self, default, factory, compare, hash):
            self.default, self.factory, self.compare = default, factory, compare
            self.hash = compare if hash is None else hash

    _PLAIN = _Field(_NOTHING, _NOTHING, True, None)

    def field(*, default=_NOTHING, default_factory=_NOTHING, compare=True, hash=None):
        """As `dataclasses.field`."""
        return _Field(default, default_factory, compare, hash)

    def dataclass(*, frozen=False, slots=True, order=False):
        """As `dataclasses.dataclass`, always with slots."""

        def made(cls):
            if not slots or cls.__bases__ != (object,):
                raise TypeError(f"{cls.__name__}: only a slotted class of its own can be made here")
            return _made(cls, frozen, order)

        return made

    def replace(obj, /, **changes):
        """As `dataclasses.replace`."""
        for name in obj.__match_args__:
            if name not in changes:
                changes[name] = getattr(obj, name)
        return obj.__class__(**changes)

    def _made(cls, frozen, order):
        inside = dict(cls.__dict__)
        fields = {}
        for name in inside.get("__annotations__", ()):
            told = inside.pop(name, _NOTHING)
            if told is _NOTHING:
                fields[name] = _PLAIN
            else:
                fields[name] = told if isinstance(told, _Field) else _Field(told, _NOTHING, True, None)
        inside.pop("__dict__", None)
        inside.pop("__weakref__", None)
        inside["__slots__"] = inside["__match_args__"] = tuple(fields)

        def __init__(self, *given, **named):
            """Stands here until there is a first instance."""
            made.__init__ = _compiled(made)
            made.__init__(self, *given, **named)

        inside["__init__"] = __init__
        inside["_fields_told"] = fields
        inside["__dataclass_fields__"] = _Standard()
        inside.setdefault("__repr__", _repr)
        inside.setdefault("__replace__", replace)
        if "__eq__" not in inside:
            _comparing(inside, fields, frozen, order)
        if frozen:
            inside["__setattr__"], inside["__delattr__"] = _refuse_setting, _refuse_deleting
            inside["__getstate__"], inside["__setstate__"] = _state, _set_state
        made = type(cls)(cls.__name__, cls.__bases__, inside)
        return made

    def _compiled(cls):
        known = {"_nothing": _NOTHING}
        heads, lines = [], []
        for n, (name, told) in enumerate(cls._fields_told.items()):
            known[f"_set{n}"] = cls.__dict__[name].__set__
            head = name
            if told.factory is not _NOTHING:
                known[f"_make{n}"] = told.factory
                head = f"{name}=_nothing"
                lines.append(f"    if {name} is _nothing: {name} = _make{n}()")
            elif told.default is not _NOTHING:
                known[f"_default{n}"] = told.default
                head = f"{name}=_default{n}"
            heads.append(head)
            lines.append(f"    _set{n}(self, {name})")
        if "__post_init__" in cls.__dict__:
            lines.append("    self.__post_init__()")
        exec("\n".join([f"def __init__({', '.join(['self', *heads])}):", *lines, "    return None"]), known)
        init = known["__init__"]
        init.__qualname__ = f"{cls.__qualname__}.__init__"
        init.__annotations__ = {**cls.__annotations__, "return": "None"}
        init.__module__ = cls.__module__
        return init

    def _values(names):
        """A function that gives these attributes of an object as a tuple."""
        if len(names) > 1:
            return attrgetter(*names)
        return (lambda self: (getattr(self, names[0]),)) if names else (lambda _self: ())

    def _comparing(inside, fields, frozen, order):
        values = _values([name for name, told in fields.items() if told.compare])

        def __eq__(self, other):
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        inside["__eq__"] = __eq__
        if frozen and "__hash__" not in inside:
            hashed = _values([name for name, told in fields.items() if told.hash])
            inside["__hash__"] = lambda self: hash(hashed(self))
        elif not frozen:
            inside["__hash__"] = None
        if order:
            inside["__lt__"] = _ordered(values, lambda a, b: a < b)
            inside["__le__"] = _ordered(values, lambda a, b: a <= b)
            inside["__gt__"] = _ordered(values, lambda a, b: a > b)
            inside["__ge__"] = _ordered(values, lambda a, b: a >= b)

    def _ordered(values, compare):
        def ordered(self, other):
            return compare(values(self), values(other)) if other.__class__ is self.__class__ else NotImplemented

        return ordered

    def _repr(self):
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{self.__class__.__qualname__}({told})"

    def _refuse_setting(_self, name, _value):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _refuse_deleting(_self, name):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _state(self):
        return [getattr(self, name) for name in self.__match_args__]

    def _set_state(self, state):
        for name, value in zip(self.__match_args__, state, strict=True):
            object.__setattr__(self, name, value)

    class _Standard:
        """`__dataclass_fields__`: what the standard library asks a dataclass for, made when it asks."""

        def __get__(self, obj, cls):
            import dataclasses

            told = []
            for name, one in cls._fields_told.items():
                more = {"compare": one.compare, "hash": one.hash if one.hash != one.compare else None}
                if one.default is not _NOTHING:
                    more["default"] = one.default
                if one.factory is not _NOTHING:
                    more["default_factory"] = one.factory
                told.append((name, cls.__annotations__[name], dataclasses.field(**more)))
            found = dataclasses.make_dataclass(cls.__name__, told).__dataclass_fields__
            cls.__dataclass_fields__ = found
            return found
