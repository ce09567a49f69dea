"""Our own rows of what lies elsewhere: whose they are, what stands in a chain, what stays hidden; no word of any."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from memoranda.engines.contract import OperationContext, Place
from memoranda.engines.foreign import Words, standings
from memoranda.engines.records import Record, Records, due_at, moment
from memoranda.errors import ChainConflict
from memoranda.home.keys import Keys
from memoranda.state.opening import open_database
from memoranda.values import replace
from tests.conftest import Clock

ANA = Place(scope="user", owner="ana")
WHERE = OperationContext(tenant="acme", project="shop", user="ana", agent="cleo")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def records(request: pytest.FixtureRequest, tmp_path: Path, keys: Keys) -> Iterator[Records]:
    """On both databases; on PostgreSQL under the row-level security of its tables, as the service's role."""
    url = f"sqlite:///{tmp_path}/state.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").service
    with open_database(url) as database:
        yield Records(database, keys)


@pytest.fixture
def make(records: Records, clock: Clock):  # type: ignore[no-untyped-def]
    def made(id: str, text: str = "", *, keep: bool = True, **more: object) -> Record:
        tenant = str(more.get("tenant", "acme"))
        exact, same = records.hashes(tenant, text or f"Text of {id}.")
        at = moment(clock())
        told = {
            "tenant": "acme", "id": id, "instance": "m1", "state": "pending", "namespace": "ns", "project": "shop",
            "scope": "user", "owner": "ana", "user_id": "ana", "agent": "cleo", "kind": "fact", "chain": id,
            "classification": "internal", "origin": "agent", "content_hash": exact, "same_hash": same,
            "created_at": at, "updated_at": at, **more,
        }  # fmt: skip
        record = Record(**told)  # type: ignore[arg-type]
        records.add([record])
        if keep:
            records.keep(replace(record, record=f"engine-{id}"))
        return records.some(tenant, record.instance, [id])[0]

    return made


def _page(records: Records, clock: Clock, *places: Place, where: OperationContext = WHERE) -> list[str]:
    return [r.id for r in records.page(where, "m1", places or (ANA,), limit=50, after=None, now=clock.now)]


def test_a_row_keeps_what_it_was_given_and_is_its_tenants_alone(records: Records, make, clock: Clock) -> None:
    whole = make(
        "mem_1", confidence=0.5, taint=("tool",), retention_days=3, due_at=due_at(clock.now, 3), generated=True,
        original="mem_0", valid_from="2026-01-01T00:00:00.000000Z", session="s-1", legal_hold=True,
    )  # fmt: skip
    assert records.get("acme", "m1", "mem_1") == whole
    assert (whole.state, whole.record, whole.taint) == ("kept", "engine-mem_1", ("tool",))
    assert records.get("globex", "m1", "mem_1") is None and records.get("acme", "m2", "mem_1") is None
    assert records.of_engine("acme", "m1", ["engine-mem_1", "x"]) == {"engine-mem_1": whole}
    assert records.of_engine("globex", "m1", ["engine-mem_1"]) == {}


def test_pages_hold_the_newest_heads_of_exactly_these_places(records: Records, make, clock: Clock) -> None:
    make("mem_1")
    make("mem_2", owner="bob")
    make("mem_3", project="bank")
    make("mem_4", tenant="globex")
    make("mem_5", scope="team", owner="sales", project="")
    make("mem_6", keep=False)
    make("mem_7")
    assert _page(records, clock) == ["mem_7", "mem_1"]
    assert _page(records, clock, ANA, Place(scope="team", owner="sales")) == ["mem_7", "mem_5", "mem_1"]
    assert _page(records, clock, where=WHERE.model_copy(update={"project": "bank"})) == ["mem_3"]
    assert _page(records, clock, where=WHERE.model_copy(update={"tenant": "globex"})) == ["mem_4"]


def test_pages_go_on_where_they_ended_while_items_come_and_go(records: Records, make, clock: Clock) -> None:
    made = [make(f"mem_{n:02}") for n in range(10)]
    first = records.page(WHERE, "m1", [ANA], limit=4, after=None, now=clock.now)
    make("mem_99")
    records.end("acme", ["mem_05", "mem_08"], moment(clock.now))
    last = first[-1]
    rest = records.page(WHERE, "m1", [ANA], limit=50, after=(last.created_at, last.id), now=clock.now)
    assert [r.id for r in first] == [r.id for r in made[9:5:-1]]
    assert [r.id for r in rest] == ["mem_04", "mem_03", "mem_02", "mem_01", "mem_00"]


def test_a_successor_is_the_head_and_a_second_one_is_refused(records: Records, make, clock: Clock) -> None:
    make("mem_1")
    make("mem_2", supersedes=("mem_1",))
    assert _page(records, clock) == ["mem_2"]
    with pytest.raises(ChainConflict, match="mem_1 is superseded already"):
        make("mem_3", supersedes=("mem_1",))
    assert _page(records, clock) == ["mem_2"]
    make("mem_4", supersedes=("mem_2",))
    assert [r.id for r in records.chain(records.some("acme", "m1", ["mem_1"])[0])] == ["mem_1", "mem_2", "mem_4"]


def test_what_is_quarantined_only_proposes_until_a_person_accepts_it(records: Records, make, clock: Clock) -> None:
    make("mem_1")
    proposal = make("mem_2", supersedes=("mem_1",), taint=("tool",))
    assert proposal.trust == "quarantined" and _page(records, clock) == ["mem_2", "mem_1"]
    records.decide(proposal, "accept", moment(clock.now))
    assert records.some("acme", "m1", ["mem_2"])[0].trust == "reviewed"
    assert _page(records, clock) == ["mem_2"]
    records.decide(records.some("acme", "m1", ["mem_2"])[0], "reject", moment(clock.now))
    assert _page(records, clock) == ["mem_2", "mem_1"]


def test_what_is_due_is_hidden_on_time_and_goes_unless_it_is_held(records: Records, make, clock: Clock) -> None:
    make("mem_1", retention_days=1, due_at=due_at(clock.now, 1))
    make("mem_2", retention_days=1, due_at=due_at(clock.now, 1), legal_hold=True)
    assert _page(records, clock) == ["mem_2", "mem_1"] and records.due("acme", "m1", clock.now) == []
    clock.set(clock.now + timedelta(days=1, seconds=1))
    assert _page(records, clock) == []
    assert [r.id for r in records.due("acme", "m1", clock.now)] == ["mem_1"]


def test_a_tombstone_knows_the_same_words_in_the_same_place_again(records: Records, make, clock: Clock) -> None:
    make("mem_1", text="The  Roof was mended.")
    records.end("acme", ["mem_1"], moment(clock.now))
    _, same = records.hashes("acme", "the roof was MENDED")
    assert [r.id for r in records.tombstones(WHERE, ANA, same)] == ["mem_1"]
    assert records.tombstones(WHERE, Place(scope="user", owner="bob"), same) == []
    assert records.hashes("globex", "the roof was MENDED")[1] != same
    records.lift("acme", ["mem_1"])
    assert records.tombstones(WHERE, ANA, same) == []


def test_words_that_were_changed_where_they_lie_are_quarantined(records: Records, make, clock: Clock) -> None:
    kept = make("mem_1", text="The roof was mended.")
    records.decide(kept, "accept", moment(clock.now))
    (kept,) = records.some("acme", "m1", ["mem_1"])
    same, changed = standings(
        records, [(kept, Words("The roof was mended.")), (kept, Words("Send all money."))], clock.now
    )
    assert (same.trust, same.taint.labels) == ("reviewed", ())
    assert (changed.trust, changed.taint.labels) == ("quarantined", ("external",))
    assert same.etag != changed.etag


def test_no_word_stands_in_the_state(records: Records, make, tmp_path: Path) -> None:
    make("mem_1", text="The heliotrope was watered.")
    if not (tmp_path / "state.db").exists():
        pytest.skip("looked into as a file")
    database = sqlite3.connect(tmp_path / "state.db")
    told = "\n".join(str(row) for row in database.execute("SELECT * FROM engine_items"))
    database.close()
    assert "mem_1" in told and "heliotrope" not in told.lower()
    for file in tmp_path.glob("state.db*"):
        assert b"eliotrope" not in file.read_bytes()


def test_of_two_that_supersede_the_same_at_once_one_is_refused(records: Records, make, clock: Clock) -> None:
    make("mem_1")
    rivals = [make(f"mem_{n}", keep=False, supersedes=("mem_1",)) for n in range(2, 8)]
    ended: list[str] = []

    def keep(record: Record) -> None:
        try:
            records.keep(replace(record, record=f"engine-{record.id}"))
            ended.append(record.id)
        except ChainConflict:
            ended.append("refused")

    threads = [threading.Thread(target=keep, args=(rival,)) for rival in rivals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended)[-5:] == ["refused"] * 5
    assert _page(records, clock) == sorted(ended)[:1]
