"""What many tests need: a fresh Home with its own keys, a clock that stands where it is put, seeded random bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.home.keys import Keys
from memoranda.operations.space import Space
from tests import postgres as postgres_server
from tests import stores
from tests.postgres import (  # noqa: F401 fixtures
    database_of_run,
    empty_postgres,
    own_postgres,
    postgres,
    postgres_of_module,
)
from tests.standin import StandIn, serving
from tests.stores import InPostgres, OnDisk, Opening, Site


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        postgres_server.name_folder()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        postgres_server.stop_server()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    stores.choose(metafunc)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    stores.leave_out(items)


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
def home_store(request: pytest.FixtureRequest) -> str:
    """On which store the Home of a test lies, see `tests.stores`."""
    return str(getattr(request, "param", stores.DISK))


@pytest.fixture
def site(home_store: str, request: pytest.FixtureRequest, tmp_path: Path, context: Context) -> Site:
    """A fresh Home in which nothing was remembered yet; nothing holds it open."""
    if home_store == stores.POSTGRES:
        return InPostgres(tmp_path / "home", context, request.getfixturevalue("database_of_run"))
    return OnDisk(tmp_path / "home", context, Keys(tmp_path / "keys"))


@pytest.fixture
def keys(home_store: str, request: pytest.FixtureRequest, tmp_path: Path) -> Keys:
    if home_store == stores.POSTGRES:
        return request.getfixturevalue("site").keys  # type: ignore[no-any-return]
    return Keys(tmp_path / "keys")


@pytest.fixture
def home(site: Site) -> Path:
    """The root of that Home."""
    return site.root


@pytest.fixture
def opening(site: Site) -> Opening:
    """Opens that Home once more, as another process would: `opening(context)`."""
    return site.open


@pytest.fixture
def space(site: Site, context: Context) -> Iterator[Space]:
    with site.open(context) as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[StandIn]:
    """A server of embeddings, as `tests.standin` describes it."""
    with serving() as standing:
        yield standing
