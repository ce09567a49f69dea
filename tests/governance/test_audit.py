"""The audit: one event for every operation, never its content, found again by who, what and which memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import select

from memoranda.context import Context
from memoranda.errors import ComponentUnavailable, ConfigRefused, InvalidInput
from memoranda.governance.audit import INTERRUPTED, Audit, AuditEvent
from memoranda.governance.sinks import Sink, open_sink
from memoranda.governance.verifying import verify
from memoranda.home.keys import Keys
from memoranda.state import tables
from memoranda.state.database import Database
from memoranda.state.opening import open_database
from memoranda.values import replace
from tests.conftest import Clock

from .meddling import everything_in

NOTE = "mem_4kq2v7n1x9a3c5e8"
READ = AuditEvent("recall", tenant="acme", organization="acme-group", project="atlas", user="ana", agent="cleo",
                  session="s1", scope="user", team="sales", actor="agent:tok_1", engine="builtin",
                  decision="allow:memory.search", outcome="success", items=(NOTE,), request_id="r-1")  # fmt: skip
CHANGE = AuditEvent("remember", tenant="acme", user="ana", agent="cleo", engine="builtin")


@pytest.fixture
def audit(context: Context, state: Database, keys: Keys) -> Iterator[Audit]:
    with Audit(context, state, keys) as opened:
        yield opened


def _phases(audit: Audit) -> list[str]:
    with audit.database.read(tables.AUDIT) as connection:
        table = tables.every_audit_events
        return list(connection.execute(select(table.c.phase).order_by(table.c.n)).scalars())


@pytest.mark.requirement("S-072")
def test_an_event_is_read_back_with_operation_context_engine_decision_and_outcome(
    audit: Audit, context: Context
) -> None:
    event_id = audit.note(context, READ)
    (entry,), more = audit.query("acme")
    assert more is None and entry.id == event_id and entry.event == READ
    assert entry.json()["decision"] == "allow:memory.search" and entry.json()["items"] == [NOTE]


def test_a_change_is_an_intent_before_it_and_an_outcome_after_it(audit: Audit, context: Context) -> None:
    event_id = audit.begin(context, CHANGE)
    assert _phases(audit) == ["chain", "intent"]
    (entry,), _ = audit.query("acme")
    assert (entry.id, entry.event.outcome) == (event_id, None)
    audit.finish(context, event_id, "success", items=(NOTE,), decision="allow:memory.write")
    assert _phases(audit) == ["chain", "intent", "outcome"]
    (entry,), _ = audit.query("acme")
    assert entry.event == replace(CHANGE, outcome="success", items=(NOTE,), decision="allow:memory.write")


def test_a_read_and_a_refusal_are_one_line(audit: Audit, context: Context) -> None:
    audit.note(context, READ)
    audit.note(context, replace(CHANGE, outcome="deny", code="memory_forbidden"))
    assert _phases(audit) == ["chain", "single", "single"]
    with pytest.raises(ValueError, match="outcome"):
        audit.note(context, CHANGE)


def test_who_recalled_this_note_is_one_query(audit: Audit, context: Context) -> None:
    for user in ("ana", "otto"):
        audit.note(context, replace(READ, user=user, items=(NOTE, "mem_0000000000000001")))
    audit.note(context, replace(READ, user="sam", items=("mem_0000000000000001",)))
    event_id = audit.begin(context, replace(CHANGE, user="eve"))
    audit.finish(context, event_id, "success", items=(NOTE,))
    entries, _ = audit.query("acme", item=NOTE, operation="recall")
    assert [entry.event.user for entry in entries] == ["otto", "ana"]
    assert [entry.event.user for entry in audit.query("acme", item=NOTE)[0]] == ["eve", "otto", "ana"]


def test_a_tenant_reads_its_own_events_only(audit: Audit, context: Context) -> None:
    audit.note(context, READ)
    audit.note(context, replace(READ, tenant="globex", user="bob"))
    audit.note(context, AuditEvent("authenticate", outcome="deny", code="memory_unauthenticated"))
    assert [entry.event.user for entry in audit.query("acme")[0]] == ["ana"]
    assert [entry.event.user for entry in audit.query("globex", item=NOTE)[0]] == ["bob"]
    assert [entry.event.operation for entry in audit.query(None)[0]] == ["authenticate"]
    (entry,), _ = audit.query("acme")
    assert audit.query("globex", cursor=("9999", entry.id))[0][0].event.user == "bob"


def test_pages_hold_every_event_once_while_others_are_added(audit: Audit, context: Context) -> None:
    for n in range(7):
        audit.note(context, replace(READ, request_id=f"r-{n}"))
    seen, cursor = [], None
    while True:
        entries, cursor = audit.query("acme", limit=3, cursor=cursor)
        seen += [entry.event.request_id for entry in entries]
        audit.note(context, replace(READ, request_id="later"))
        if cursor is None:
            break
    assert seen == [f"r-{n}" for n in range(6, -1, -1)]


def test_events_are_found_by_their_fields_and_by_time(audit: Audit, context: Context, clock: Clock) -> None:
    audit.note(context, READ)
    clock.tick(days=1)
    audit.note(context, replace(READ, user="otto", session="s2", outcome="failure", code="memory_engine_unavailable"))
    for found in ({"user": "otto"}, {"session": "s2"}, {"outcome": "failure"}, {"code": "memory_engine_unavailable"},
                  {"since": "2026-10-03"}):  # fmt: skip
        assert [entry.event.user for entry in audit.query("acme", **found)[0]] == ["otto"]
    assert [entry.event.user for entry in audit.query("acme", until="2026-10-03")[0]] == ["ana"]
    with pytest.raises(InvalidInput):
        audit.query("acme", content="x")


class TestNoContent:
    def test_there_is_no_field_for_it(self) -> None:
        fields = set(AuditEvent.__match_args__)
        assert fields == {
            "operation", "tenant", "organization", "project", "user", "agent", "session", "scope", "team", "actor",
            "engine", "decision", "outcome", "code", "items", "request_id",
        }  # fmt: skip

    @pytest.mark.parametrize("field", ["operation", "decision", "code", "scope"])
    def test_a_sentence_is_no_word_of_the_audit(self, audit: Audit, context: Context, field: str) -> None:
        with pytest.raises(ValueError, match=field) as refused:
            audit.note(context, replace(READ, **{field: "The password is hunter2"}))
        assert "hunter2" not in str(refused.value)
        assert audit.query("acme")[0] == []

    @pytest.mark.parametrize("field", ["user", "agent", "session", "team", "project", "request_id", "actor", "engine"])
    def test_a_sentence_in_place_of_a_name_is_told_by_a_hash_and_found_by_itself(
        self, audit: Audit, context: Context, field: str, tmp_path: Path
    ) -> None:
        words = "the password is hunter2"
        audit.note(context, replace(READ, **{field: words}))
        (entry,), _ = audit.query("acme", **{field: words})
        assert getattr(entry.event, field).startswith("sha256:")
        assert b"hunter2" not in everything_in(audit.database, tmp_path / "state")

    def test_an_id_that_somebody_made_up_is_told_by_a_hash_and_found_by_itself(
        self, audit: Audit, context: Context, tmp_path: Path
    ) -> None:
        made_up = ("mem_hunter2", "hunter2", "../hunter2", "my hunter2")
        uuid = "0f8fad5b-d9cb-469f-a165-70867728950e"
        audit.note(context, replace(READ, items=(*made_up, uuid, NOTE)))
        for item in (*made_up, uuid, NOTE):
            assert len(audit.query("acme", item=item)[0]) == 1
        (entry,), _ = audit.query("acme")
        assert {uuid, NOTE} < set(entry.event.items)
        assert b"hunter2" not in everything_in(audit.database, tmp_path / "state")


_CHILD = """
import os, signal, sys
from pathlib import Path
from memoranda.context import Context
from memoranda.governance.audit import Audit, AuditEvent
from memoranda.home.keys import Keys
from memoranda.state.opening import open_database
url, folder, then = sys.argv[1:]
context = Context()
audit = Audit(context, open_database(url), Keys(Path(folder) / "keys"))
change = AuditEvent("remember", tenant="acme", user="ana", agent="cleo", items=("mem_4kq2v7n1x9a3c5e8",))
done = Path(folder) / "done"
"""


def _killed(url: str, folder: Path, body: str) -> None:
    ended = subprocess.run([sys.executable, "-c", _CHILD + body, url, str(folder), ""], check=False)
    assert ended.returncode == -9


KILL = "os.kill(os.getpid(), signal.SIGKILL)"


class TestAKilledProcess:
    def test_between_intent_and_operation_leaves_a_failure(
        self, url: str, tmp_path: Path, audit: Audit, context: Context
    ) -> None:
        _killed(url, tmp_path, f"audit.begin(context, change); {KILL}; done.touch()")
        assert not (tmp_path / "done").exists()
        (entry,), _ = audit.query("acme")
        assert entry.event.outcome is None
        assert audit.recover(context) == 1
        (entry,), _ = audit.query("acme")
        assert (entry.event.outcome, entry.event.code, entry.event.user) == ("failure", INTERRUPTED, "ana")
        assert entry.event.items == (NOTE,) and len(audit.query("acme", item=NOTE)[0]) == 1
        assert audit.recover(context) == 0
        assert verify(audit.database, Keys(tmp_path / "keys")).whole

    def test_between_operation_and_outcome_loses_neither(
        self, url: str, tmp_path: Path, audit: Audit, context: Context
    ) -> None:
        _killed(
            url, tmp_path, f"audit.begin(context, change); done.touch(); {KILL}; audit.finish(context, '', 'success')"
        )
        assert (tmp_path / "done").exists()
        audit.recover(context)
        (entry,), _ = audit.query("acme")
        assert (entry.event.outcome, entry.event.code) == ("failure", INTERRUPTED)

    def test_after_the_outcome_keeps_it(self, url: str, tmp_path: Path, audit: Audit, context: Context) -> None:
        body = f"id = audit.begin(context, change); audit.finish(context, id, 'success'); {KILL}"
        _killed(url, tmp_path, body)
        assert audit.recover(context) == 0
        (entry,), _ = audit.query("acme")
        assert entry.event.outcome == "success"

    def test_after_a_read_was_noted_keeps_it(self, url: str, tmp_path: Path, audit: Audit) -> None:
        body = f"from memoranda.values import replace\naudit.note(context, replace(change, outcome='success')); {KILL}"
        _killed(url, tmp_path, body)
        assert len(audit.query("acme")[0]) == 1
        assert verify(audit.database, Keys(tmp_path / "keys")).whole

    def test_a_process_that_lives_keeps_its_intents(
        self, url: str, audit: Audit, context: Context, state: Database, keys: Keys
    ) -> None:
        event_id = audit.begin(context, CHANGE)
        with Audit(context, state, keys) as other:
            assert other.recover(context) == 0
        audit.finish(context, event_id, "success")
        assert [entry.event.outcome for entry in audit.query("acme")[0]] == ["success"]
        assert verify(audit.database, keys).whole


def test_threads_and_processes_append_at_once_and_each_has_a_chain_that_holds(
    url: str, tmp_path: Path, audit: Audit, context: Context, keys: Keys
) -> None:
    body = """
from concurrent.futures import ThreadPoolExecutor
from memoranda.values import replace
def one(n):
    if n % 3: audit.note(context, replace(change, outcome='success', request_id=f'{os.getpid()}-{n}'))
    else: audit.finish(context, audit.begin(context, replace(change, request_id=f'{os.getpid()}-{n}')), 'success')
with ThreadPoolExecutor(4) as pool: list(pool.map(one, range(40)))
audit.close()
"""
    audit.note(context, READ)
    command = [sys.executable, "-c", _CHILD + body, url, str(tmp_path), ""]
    running = [subprocess.Popen(command) for _ in range(3)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda n: audit.note(context, replace(READ, request_id=f"here-{n}")), range(40)))
    assert [one.wait() for one in running] == [0, 0, 0]
    entries, _ = audit.query("acme", limit=1000)
    assert len({entry.event.request_id for entry in entries}) == len(entries) == 161
    verdict = verify(audit.database, keys)
    assert verdict.whole and verdict.chains == 4 and verdict.lines == 161 + 4 + 3 * 14


def test_whenever_processes_are_killed_every_acknowledged_event_is_there_and_every_chain_holds(
    url: str, tmp_path: Path, audit: Audit, context: Context, keys: Keys
) -> None:
    """Three processes at a time, killed after a while that is different each time."""
    body = """
from concurrent.futures import ThreadPoolExecutor
from memoranda.values import replace
audit.recover(context)
def one(n):
    if n % 2:
        id = audit.note(context, replace(change, outcome='success'))
    else:
        id = audit.begin(context, change)
        audit.finish(context, id, 'success')
    os.write(1, f'{id}\\n'.encode())
with ThreadPoolExecutor(3) as pool: list(pool.map(one, range(10_000)))
"""
    acknowledged: set[str] = set()
    for n in range(2):
        command = [sys.executable, "-c", _CHILD + body, url, str(tmp_path), ""]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
        for m, one in enumerate(running):
            assert one.stdout is not None
            told = b""
            while told.count(b"\n") < 20 + 17 * m + 31 * n:
                told += os.read(one.stdout.fileno(), 4096)
            one.kill()
            told += one.stdout.read()
            one.wait()
            one.stdout.close()
            acknowledged |= set(told.decode().rpartition("\n")[0].split("\n"))
    audit.recover(context)
    entries, more = audit.query("acme", limit=100_000)
    there = {entry.id: entry.event.outcome for entry in entries}
    assert more is None and {there[event_id] for event_id in acknowledged} == {"success"}
    assert set(there.values()) <= {"success", "failure"} and audit.recover(context) == 0
    assert verify(audit.database, keys).whole


def test_it_can_be_verified_while_it_is_written(audit: Audit, context: Context, keys: Keys) -> None:
    going = True

    def write() -> None:
        while going:
            audit.finish(context, audit.begin(context, CHANGE), "success", items=(NOTE,))
            audit.note(context, READ)

    with ThreadPoolExecutor(2) as pool:
        writing = [pool.submit(write) for _ in range(2)]
        try:
            assert [one for _ in range(15) for one in verify(audit.database, keys).findings] == []
        finally:
            going = False
    assert [one.result() for one in writing] == [None, None]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
class TestWhatCannotBeWritten:
    def test_is_not_begun_and_goes_on_when_it_can_be(
        self, audit: Audit, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: Keys
    ) -> None:
        audit.note(context, READ)
        with audit.database.raw() as other:
            other.execute("BEGIN IMMEDIATE")
            audit._chain._pages._connection.execute("PRAGMA busy_timeout = 20")
            with pytest.raises(ComponentUnavailable):
                audit.begin(context, CHANGE)
            with pytest.raises(ComponentUnavailable):
                audit.note(context, READ)
            other.execute("ROLLBACK")
        other.close()
        audit.note(context, READ)
        assert len(audit.query("acme")[0]) == 2 and verify(audit.database, keys).whole

    def test_to_a_sync_that_failed_nothing_more_is_entrusted(
        self, audit: Audit, context: Context, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr("memoranda.governance.pages.sync_data", fail)
        with pytest.raises(ComponentUnavailable):
            audit.begin(context, CHANGE)
        monkeypatch.undo()
        for refused in (lambda: audit.begin(context, CHANGE), lambda: audit.note(context, READ), audit.ready):
            with pytest.raises(ComponentUnavailable):
                refused()


class TestSinks:
    def test_a_file_gets_every_line_as_json(
        self, context: Context, state: Database, keys: Keys, tmp_path: Path
    ) -> None:
        sink = open_sink(str(tmp_path / "logs/audit.jsonl"))
        with Audit(context, state, keys, [sink]) as audit:
            audit.note(context, READ)
            audit.finish(context, audit.begin(context, CHANGE), "failure", code="memory_engine_unavailable")
        sink.close()
        lines = [json.loads(line) for line in (tmp_path / "logs/audit.jsonl").read_text().splitlines()]
        assert [line["phase"] for line in lines] == ["chain", "single", "intent", "outcome"]
        assert [line["seq"] for line in lines] == [0, 1, 2, 3] and lines[1]["items"] == [NOTE]
        assert lines[3]["code"] == "memory_engine_unavailable" and lines[2]["id"] == lines[3]["id"]

    def test_the_standard_output_is_one(self, url: str, tmp_path: Path) -> None:
        body = (
            "from memoranda.governance.sinks import open_sink\n"
            "audit._sinks = (open_sink('-'),)\naudit.finish(context, audit.begin(context, change), 'success')"
        )
        command = [sys.executable, "-c", _CHILD + body, url, str(tmp_path), ""]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert [json.loads(line)["phase"] for line in told.splitlines()] == ["chain", "intent", "outcome"]

    def test_one_that_takes_nothing_stops_what_it_could_not_tell_and_gets_it_later(
        self, context: Context, state: Database, keys: Keys
    ) -> None:
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        filled = 0
        while True:
            try:
                filled += os.write(writing, b"x" * 4096)
            except BlockingIOError:
                break
        with Audit(context, state, keys, [Sink(writing, "a pipe")]) as audit:
            audit.note(context, READ)  # written, and kept for the sink
            for refused in (lambda: audit.note(context, READ), lambda: audit.begin(context, CHANGE), audit.ready):
                with pytest.raises(ComponentUnavailable, match="copy of the audit"):
                    refused()
            assert os.read(reading, filled) and len(audit.query("acme")[0]) == 1
            audit.note(context, READ)
        os.close(writing)
        told = os.read(reading, 1 << 20).lstrip(b"x").decode().splitlines()
        os.close(reading)
        assert [json.loads(line)["seq"] for line in told] == [0, 1, 2]

    def test_one_that_cannot_be_opened_is_refused_at_the_start(self) -> None:
        with pytest.raises(ConfigRefused):
            open_sink("/dev/null/audit.jsonl")


def test_opening_it_to_read_writes_nothing(audit: Audit, url: str) -> None:
    assert audit.query("acme") == ([], None)
    assert _phases(audit) == []
    with open_database(url) as other, other.read(tables.AUDIT) as connection:
        assert connection.execute(select(tables.every_audit_events)).all() == []
