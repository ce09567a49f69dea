"""What many tests need: a fresh Home with its own keys, a clock that stands where it is put, seeded random bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.home.create import create, finish
from memoranda.home.keys import Keys
from memoranda.operations.space import Space
from tests import postgres as postgres_server
from tests.postgres import empty_postgres, own_postgres, postgres, postgres_of_module  # noqa: F401 fixtures
from tests.standin import StandIn, serving


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        postgres_server.name_folder()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        postgres_server.stop_server()


class Clock:
    """A clock that can be set; each look moves it on by a millisecond, so that no two moments are the same."""

    def __init__(self, now: datetime = datetime(2026, 10, 2, 9, 0, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    def set(self, now: datetime) -> None:
        self.now = now

    def tick(self, **by: float) -> None:
        self.now += timedelta(**(by or {"seconds": 1}))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def seeded() -> Callable[[int], bytes]:
    """Random bytes that are the same in every run."""
    return random.Random(2).randbytes


@pytest.fixture
def context(clock: Clock, seeded: Callable[[int], bytes]) -> Context:
    return Context(user="dana", agent="cleo", clock=clock, random=seeded)


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "keys")


@pytest.fixture
def home(tmp_path: Path, context: Context, keys: Keys) -> Path:
    """The root of a fresh Home in which nothing was remembered yet; nothing holds it open."""
    made = create(tmp_path / "home", context)
    finish(made.root, context, keys)
    return made.root


@pytest.fixture
def space(home: Path, context: Context, keys: Keys) -> Iterator[Space]:
    with Space(context, keys, home, None) as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[StandIn]:
    """A server of embeddings, as `tests.standin` describes it."""
    with serving() as standing:
        yield standing
