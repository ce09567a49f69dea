"""The real Cognee behind our engine: the suite of the contract.

The tests of `tests.conformance` run here once more, against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.cognee import Cognee as Engine
from tests.conformance.subject import Subject
from tests.conformance.test_everything import *  # noqa: F403 - all of them, with the subject below
from tests.conformance.test_knowledge import *  # noqa: F403
from tests.engines.outside import outside
from tests.real.conftest import Cognee

pytestmark = pytest.mark.xdist_group("cognee")


@pytest.fixture(scope="module")
def user(cognee: Cognee) -> str:
    """The credential of a user of Cognee's own."""
    cognee.user("contract")
    return "contract@users.example:pass-contract-long"


@pytest.fixture
def subject(cognee: Cognee, user: str, tmp_path: Path, context: Context) -> Iterator[Subject]:
    with outside(tmp_path, context, cognee.base, user, instance="cognee-1", timeout=60.0) as rooms:
        engine = Engine(rooms)
        yield Subject("cognee", engine, Builtin(rooms.company.homes), "cognee", engine)
