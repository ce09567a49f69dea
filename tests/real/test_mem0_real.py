"""The real Mem0 behind our engine: the suite of the contract, who is let in, and what it does that is a trap.

The tests of `tests.conformance` run here once more, against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import RecallRequest, RememberRequest
from memoranda.engines.mem0 import Mem0
from memoranda.errors import EngineUnavailable, NotFound, OutcomeUnknown
from tests.calling import call
from tests.conformance.subject import Subject
from tests.conformance.test_everything import *  # noqa: F403
from tests.conformance.test_memories import *  # noqa: F403 - all of them, with the subject below
from tests.engines.asking import asking
from tests.engines.outside import outside
from tests.real.full import no_file_grows, small_disk
from tests.real.mem0 import KEY, RealMem0, mem0_running

pytestmark = pytest.mark.xdist_group("mem0")


@pytest.fixture(scope="module")
def mem0() -> Iterator[RealMem0]:
    with mem0_running() as running:
        yield running


@pytest.fixture
def subject(mem0: RealMem0, tmp_path: Path, context: Context) -> Iterator[Subject]:
    with outside(tmp_path, context, mem0.url, KEY, timeout=60.0) as rooms:
        yield Subject("mem0", Mem0(rooms), Builtin(rooms.company.homes), "mem0")


def ask(mem0: RealMem0, method: str, path: str, body: object = None, **headers: str):  # type: ignore[no-untyped-def]
    return call(mem0.url, method, path, body, **headers)


@pytest.mark.requirement("S-002", "S-003", "S-004", "S-007", "S-016")
def test_nobody_is_let_in_without_a_key_that_is_in_force(mem0: RealMem0) -> None:
    path = "/memories?user_id=x"
    assert ask(mem0, "GET", path)[0] == 401
    assert ask(mem0, "GET", path, x_api_key="wrong")[0] == 401
    assert ask(mem0, "GET", path, x_api_key="m0sk_" + "x" * 32)[0] == 401
    assert ask(mem0, "GET", path, authorization="Bearer nonsense")[0] == 401
    assert ask(mem0, "GET", path, x_api_key=KEY)[0] == 200


@pytest.mark.requirement("S-005", "S-016")
def test_once_there_is_an_administrator_nobody_registers(mem0: RealMem0) -> None:
    body = {"name": "root", "email": "root@example.com", "password": "a-long-password-1"}
    first, _ = ask(mem0, "POST", "/auth/register", body)
    assert first in (200, 201, 403)
    assert ask(mem0, "POST", "/auth/register", {**body, "email": "eve@example.com"})[0] == 403


def test_what_it_does_that_is_a_trap_is_as_we_know_it(mem0: RealMem0) -> None:
    """Should one of these change, what stands on it has to be looked at again."""
    headers = {"x_api_key": KEY}
    text = {"messages": [{"role": "user", "content": "A trap."}], "user_id": "traps", "infer": False}
    _, made = ask(mem0, "POST", "/memories", text, **headers)
    (row,) = made["results"]
    assert row["event"] == "ADD" and row["memory"] == "A trap."
    _, found = ask(mem0, "POST", "/search", {"query": "trap", "filters": {"user_id": "*"}}, **headers)
    assert row["id"] in {one["id"] for one in found["results"]}  # a star lifts the scope
    _, every = ask(mem0, "GET", "/memories", **headers)
    assert row["id"] in {one["id"] for one in every["results"]}  # nobody named: everybody's
    assert ask(mem0, "GET", "/memories/" + "0" * 8 + "-0000-0000-0000-" + "0" * 12, **headers) == (200, None)
    assert ask(mem0, "DELETE", f"/memories/{row['id']}", **headers)[0] == 200
    assert ask(mem0, "DELETE", f"/memories/{row['id']}", **headers)[0] == 404
    _, history = ask(mem0, "GET", f"/memories/{row['id']}/history", **headers)
    assert [one["event"] for one in history] == ["ADD", "DELETE"]  # deleting leaves the words behind
    assert "A trap." in str(history)
    assert ask(mem0, "DELETE", "/memories", **headers)[0] == 400


@pytest.mark.requirement("P-090")
def test_its_model_makes_memories_that_cite_what_they_were_made_from(
    subject: Subject, context: Context, mem0: RealMem0
) -> None:
    new = RememberRequest(content="Acme closes at six.")
    item = subject.engine.remember(context, asking(writes="user"), new, infer=True)
    found = subject.engine.recall(context, asking(), RecallRequest(query="Acme closes")).items
    assert found and all(one.generated and one.sources == (f"engine://mem0-1/{item.id}",) for one in found)
    assert subject.get(context, item.id).content == "Acme closes at six."
    subject.engine.forget(context, asking(), item.id, if_match=None)
    assert subject.recall(context, "Acme closes") == []


def test_a_model_that_answers_nonsense_loses_nothing_without_a_word(
    subject: Subject, context: Context, mem0: RealMem0
) -> None:
    mem0.models.broken = True
    try:
        with pytest.raises(EngineUnavailable):
            subject.engine.remember(
                context, asking(writes="user"), RememberRequest(content="Acme closes at six."), infer=True
            )
    finally:
        mem0.models.broken = False
    assert subject.listed(context) == []


def test_another_tenants_memory_is_not_there_by_any_id(subject: Subject, context: Context) -> None:
    kept = subject.remember(context, "The office closes at six.")
    with pytest.raises(NotFound):
        subject.get(context, kept.id, asking(tenant="globex"))


def test_the_library_raised_nothing_that_was_not_expected(mem0: RealMem0) -> None:
    if not mem0.real:
        assert "Traceback" not in mem0.log.read_text()


class TestAFullDisk:
    """The named error, and nothing half-written: what the answer says is what there is."""

    def test_of_its_own_is_settled_before_the_answer(self, subject: Subject, context: Context, mem0: RealMem0) -> None:
        subject.remember(context, "There was room for this.")
        with no_file_grows(mem0.pid):
            told = outcome(lambda: subject.remember(context, "The office closes at six."))
        assert len(subject.listed(context)) == 1 + (told == "kept")
        assert len(subject.texts(context, "office closes six")) == (told == "kept")

    def test_of_its_postgresql_is_an_error_and_leaves_nothing(
        self, subject: Subject, context: Context, mem0: RealMem0
    ) -> None:
        subject.remember(context, "There was room for this.")
        database = f"host=127.0.0.1 port={mem0.port} user=postgres dbname=postgres"
        user = mem0.database.data.owner()
        with (
            small_disk(mem0.database.folder / "small", "32m", user) as disk,
            psycopg.connect(database, autocommit=True) as connection,
        ):
            connection.execute(f"CREATE TABLESPACE small LOCATION '{disk.folder}'")
            try:
                connection.execute("ALTER TABLE memories SET TABLESPACE small")
                with disk.full():
                    for n in range(3):  # a page may have had room for the first
                        told = outcome(lambda n=n: subject.remember(context, f"The office closes at {n}."))
                    assert told == "refused"
                    there = len(subject.listed(context))
                    assert subject.texts(context, "There was room for this.")[0] == "There was room for this."
                subject.remember(context, "There is room again.")
                assert len(subject.listed(context)) == there + 1
            finally:
                connection.execute("ALTER TABLE memories SET TABLESPACE pg_default")
                connection.execute("DROP TABLESPACE small")


def outcome(write: Callable[[], object]) -> str:
    """What is answered: kept, or refused as an engine that is unavailable; never that it is not known."""
    try:
        write()
    except EngineUnavailable as error:
        assert not isinstance(error, OutcomeUnknown) and error.status == 502
        return "refused"
    return "kept"


@pytest.mark.requirement("S-030")
def test_the_way_out_stayed_unused(mem0: RealMem0) -> None:
    assert mem0.proxy.asked == []
