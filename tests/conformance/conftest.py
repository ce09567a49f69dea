"""Every engine in turn. A new one is added to `MAKING`; each module says in `ENGINES` which of them have to pass it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.cognee import Cognee
from memoranda.engines.homes import Homes
from memoranda.engines.hybrid import Hybrid
from memoranda.engines.mem0 import Mem0
from memoranda.engines.outside import Outside
from tests.cognee_standin import Server as CogneeServer
from tests.cognee_standin import serving_cognee
from tests.conformance.faults import OfBoth, OfCognee, OfMem0
from tests.conformance.subject import Subject
from tests.engines.mem0_standin import KEY, Mem0Server, mem0_standing
from tests.engines.outside import beside, outside

Making = Callable[[Path, Context], AbstractContextManager[Subject]]
USER = "memoranda@users.example:a-long-password"
TIMEOUT = 1.0  # seconds of a call


@contextmanager
def builtin(folder: Path, context: Context) -> Iterator[Subject]:
    with Homes(folder / "data", context) as homes:
        yield Subject("builtin", Builtin(homes), Builtin(homes), "builtin")


@contextmanager
def _mem0(folder: Path, context: Context) -> Iterator[tuple[Mem0Server, Outside]]:
    with mem0_standing() as server, outside(folder, context, server.url, KEY, timeout=TIMEOUT) as rooms:
        yield server, rooms


@contextmanager
def _cognee() -> Iterator[CogneeServer]:
    with serving_cognee() as server:
        server.cognee.register(*USER.split(":"))
        yield server


@contextmanager
def mem0(folder: Path, context: Context) -> Iterator[Subject]:
    with _mem0(folder, context) as (server, rooms):
        engine, sessions = Mem0(rooms), Builtin(rooms.company.homes)
        yield Subject("mem0", engine, sessions, "mem0", None, OfMem0(server, rooms.connection), (engine,))


@contextmanager
def cognee(folder: Path, context: Context) -> Iterator[Subject]:
    with (
        _cognee() as server,
        outside(folder, context, server.url, USER, instance="cognee-1", timeout=TIMEOUT) as rooms,
    ):
        engine, sessions = Cognee(rooms), Builtin(rooms.company.homes)
        yield Subject("cognee", engine, sessions, "cognee", engine, OfCognee(server, rooms.connection), (engine,))


@contextmanager
def hybrid(folder: Path, context: Context) -> Iterator[Subject]:
    with ExitStack() as stack:
        memories, rooms = stack.enter_context(_mem0(folder, context))
        documents = stack.enter_context(_cognee())
        also = stack.enter_context(beside(rooms, documents.url, USER, instance="cognee-1", timeout=TIMEOUT))
        engine, sessions, knowledge = Mem0(rooms), Builtin(rooms.company.homes), Cognee(also)
        both = OfBoth((OfMem0(memories, rooms.connection), OfCognee(documents, also.connection)))
        yield Subject(
            "hybrid", Hybrid(engine, sessions, knowledge), sessions, "mem0", knowledge, both, (engine, knowledge)
        )


MAKING: dict[str, Making] = {"builtin": builtin, "cognee": cognee, "hybrid": hybrid, "mem0": mem0}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "subject" in metafunc.fixturenames:
        metafunc.parametrize("subject", metafunc.module.ENGINES, indirect=True)


@pytest.fixture
def subject(request: pytest.FixtureRequest, tmp_path: Path, context: Context) -> Iterator[Subject]:
    with MAKING[request.param](tmp_path, context) as made:
        yield made
