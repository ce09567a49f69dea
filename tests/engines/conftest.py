"""A pool of Homes and the engine over it, with a clock that stands where it is put."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.homes import Homes


@pytest.fixture
def homes(tmp_path: Path, context: Context) -> Iterator[Homes]:
    with Homes(tmp_path / "data", context) as pool:
        yield pool


@pytest.fixture
def engine(homes: Homes) -> Builtin:
    return Builtin(homes)
