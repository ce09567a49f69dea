"""A pool of Homes and the engine over it, in folders and in PostgreSQL, with a clock that stands where it is put."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.homes import Homes
from memoranda.engines.shelves import PostgresShelf
from memoranda.state.opening import open_database

SECRET = b"the secret of all nodes of a test"


@pytest.fixture(params=["disk", "postgres"])
def homes(request: pytest.FixtureRequest, tmp_path: Path, context: Context) -> Iterator[Homes]:
    if request.param == "disk":
        with Homes(tmp_path / "data", context) as pool:
            yield pool
        return
    with open_database(request.getfixturevalue("postgres").service) as database:
        shelf = PostgresShelf(tmp_path / "data", database, (SECRET,))
        with Homes(shelf.folder, context, shelf=shelf) as pool:
            yield pool


@pytest.fixture
def engine(homes: Homes) -> Builtin:
    return Builtin(homes)
