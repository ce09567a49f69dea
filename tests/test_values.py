"""Our own `dataclass` beside the standard one: the same to whoever makes, compares, copies or asks its objects."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from typing import Any

import pytest

from memoranda import values


def _point(make: Any, field: Any, **how: bool) -> Any:
    class Point:
        """A place."""

        x: int
        y: int = 2
        name: str = field(default="p", compare=False)
        seen: tuple[int, ...] = field(default_factory=tuple, hash=False)

        def far(self) -> int:
            return self.x + self.y

    Point.__qualname__ = "Point"
    return make(slots=True, **how)(Point)


@values.dataclass(frozen=True, slots=True)
class Span:
    """One that checks itself, and that can be pickled."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError("backwards")


@pytest.mark.parametrize("how", [{"frozen": True}, {"frozen": True, "order": True}, {}, {"order": True}])
def test_it_behaves_as_the_standard_one(how: dict[str, bool]) -> None:
    ours, theirs = (
        _point(values.dataclass, values.field, **how),
        _point(dataclasses.dataclass, dataclasses.field, **how),
    )
    given: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((1,), {}), ((1, 2), {}), ((1,), {"y": 3}), ((), {"x": 1, "name": "q"}), ((2, 1, "p", (1,)), {}), ((1, 9), {}),
    ]  # fmt: skip
    made = [(ours(*a, **k), theirs(*a, **k)) for a, k in given]
    for mine, standard in made:
        assert repr(mine) == repr(standard)
        assert mine.far() == standard.far()
        assert dataclasses.asdict(mine) == dataclasses.asdict(standard)
        assert repr(values.replace(mine, x=7)) == repr(dataclasses.replace(standard, x=7))
        assert repr(dataclasses.replace(mine, x=7)) == repr(dataclasses.replace(standard, x=7))
        assert copy.deepcopy(mine) == mine
        assert not hasattr(mine, "__dict__")
        assert mine != standard
    for mine, standard in made:
        for other, other_standard in made:
            assert (mine == other) == (standard == other_standard)
            if how.get("order"):
                assert (mine < other, mine >= other) == (standard < other_standard, standard >= other_standard)
    assert ours.__match_args__ == theirs.__match_args__
    assert [(f.name, f.type, f.compare) for f in dataclasses.fields(ours)] == [
        (f.name, f.type, f.compare) for f in dataclasses.fields(theirs)
    ]


def test_what_is_frozen_is_hashed_and_cannot_be_changed_and_what_is_not_is_not() -> None:
    frozen, loose = (_point(values.dataclass, values.field, frozen=frozen) for frozen in (True, False))
    one, other = frozen(1, name="a"), frozen(1, name="b")
    assert hash(one) == hash(other)
    assert {one, other} == {one}
    for change in (lambda: setattr(one, "x", 2), lambda: delattr(one, "x"), lambda: setattr(one, "new", 2)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    assert one.x == 1
    changing = loose(1)
    changing.x = 5
    assert changing.far() == 7
    with pytest.raises(TypeError):
        hash(changing)
    assert loose(1).seen is not None


@pytest.mark.parametrize(
    "wrong", [lambda c: c(), lambda c: c(1, z=2), lambda c: c(1, 2, "p", (), 5), lambda c: c(1, x=1)]
)
def test_wrong_arguments_are_refused_before_and_after_the_first_instance(wrong: Any) -> None:
    made = _point(values.dataclass, values.field, frozen=True)
    for _ in range(2):
        with pytest.raises(TypeError):
            wrong(made)
        made(1)
    with pytest.raises(TypeError):
        values.replace(made(1), z=2)


def test_it_checks_itself_and_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(Span(1, 2))) == Span(1, 2)
    for _ in range(2):
        with pytest.raises(ValueError, match="backwards"):
            Span(2, 1)
    with pytest.raises(ValueError, match="backwards"):
        values.replace(Span(1, 2), start=9)
    with pytest.raises(TypeError):
        values.dataclass(frozen=True, slots=True)(type("Child", (Span,), {}))


def test_a_recall_does_not_import_what_only_the_standard_one_needs() -> None:
    told = (
        "import sys, memoranda.operations.recalling as _; print('dataclasses' in sys.modules, 'inspect' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
