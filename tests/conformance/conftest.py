"""Every engine in turn. A new one is added to `ENGINES`, and then has to pass everything here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.homes import Homes
from memoranda.engines.mem0 import Mem0
from tests.conformance.subject import Subject
from tests.engines.mem0_standin import KEY, mem0_standing
from tests.engines.outside import outside

Making = Callable[[Path, Context], AbstractContextManager[Subject]]


@contextmanager
def builtin(folder: Path, context: Context) -> Iterator[Subject]:
    with Homes(folder / "data", context) as homes:
        yield Subject("builtin", Builtin(homes), Builtin(homes))


@contextmanager
def mem0(folder: Path, context: Context) -> Iterator[Subject]:
    with mem0_standing() as server, outside(folder, context, server.url, KEY) as rooms:
        yield Subject("mem0", Mem0(rooms), Builtin(rooms.company.homes))


ENGINES: dict[str, Making] = {"builtin": builtin, "mem0": mem0}


@pytest.fixture(params=sorted(ENGINES))
def subject(request: pytest.FixtureRequest, tmp_path: Path, context: Context) -> Iterator[Subject]:
    with ENGINES[request.param](tmp_path, context) as made:
        yield made
