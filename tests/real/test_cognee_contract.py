"""The real Cognee behind our engine: the suite of the contract.

The tests of `tests.conformance` run here once more, against it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.cognee import Cognee as Engine
from memoranda.errors import EngineUnavailable, OutcomeUnknown
from memoranda.manager.running import running
from tests.conformance.subject import Subject
from tests.conformance.test_everything import *  # noqa: F403 - all of them, with the subject below
from tests.conformance.test_knowledge import *  # noqa: F403
from tests.conftest import Clock
from tests.engines.asking import asking
from tests.engines.outside import outside
from tests.real.conftest import Cognee
from tests.real.full import no_file_grows

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


def test_a_full_disk_is_an_error_and_leaves_nothing_half_written(
    subject: Subject, context: Context, cognee: Cognee, clock: Clock
) -> None:
    there = subject.ingest(context, "There was room for this.")
    pid = running(cognee.place, "cognee")
    assert pid is not None
    with no_file_grows(pid):
        for write in (
            lambda: subject.ingest(context, "The office closes at six.", dataset_id=there.id),
            lambda: subject.ingest(context, "The office closes at six."),
        ):
            with pytest.raises(EngineUnavailable) as error:
                write()
            assert error.value.status == 502
            if isinstance(error.value, OutcomeUnknown):  # it does not answer then what it has, either
                assert error.value.item_id.startswith("doc_")
        assert len(subject.listed(context, words=False)) == 1  # our own rows: the words are not to be had now
    time.sleep(2.5)  # no connection is used again that it has cut
    until = time.monotonic() + 60
    while subject.engine.health(context).status != "ok":  # it has cut its connections
        assert time.monotonic() < until
        time.sleep(0.2)
    clock.tick(minutes=20)
    subject.engine.expire(context, "acme")  # what was unknown is found out
    assert len(subject.listed(context)) == 1
    assert there.id in [one.id for one in subject.datasets(context)]
    again = subject.ingest(context, "The office closes at six.", dataset_id=there.id)
    assert (again.documents, len(subject.listed(context))) == (2, 2)
    subject.knowledge.build_graph(context, asking(), (there.id,))
    assert subject.wait(context, there.id).built == 2
