"""Whoever can write in the audit's database, and has no key, changes nothing without being found out."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.governance.audit import Audit, AuditEvent
from memoranda.governance.chain import SIGNED, read_tip, signature, tips_of
from memoranda.governance.verifying import verify
from memoranda.home.keys import Keys, fingerprint
from memoranda.state.database import Database
from memoranda.state.sqlite import SqliteDatabase
from memoranda.values import replace

from .meddling import Meddler, meddling

READ = AuditEvent("recall", tenant="acme", user="ana", outcome="success", items=("mem_4kq2v7n1x9a3c5e8",))


@pytest.fixture
def written(context: Context, state: Database, keys: Keys) -> Iterator[Audit]:
    """Three chains, as three starts of the service leave them; the last one is still open."""
    for _ in range(2):
        with Audit(context, state, keys) as audit:
            for n in range(4):
                audit.note(context, replace(READ, request_id=f"r-{n}"))
            audit.finish(context, audit.begin(context, AuditEvent("forget", tenant="acme", user="otto")), "success")
    with Audit(context, state, keys) as audit:
        audit.finish(context, audit.begin(context, AuditEvent("purge", tenant="globex", user="eve")), "success")
        yield audit


def _chains(db: Meddler) -> list[str]:
    return [row["chain"] for row in db.execute("SELECT chain FROM audit_events WHERE phase = 'chain' ORDER BY n")]


def _rewrite(db: Meddler, chain: str, sign: Callable[[str, dict[str, object]], str]) -> None:
    """Another user in line 2, and every signature from there on made anew by `sign`."""
    db.execute("UPDATE audit_events SET user_id = 'nobody' WHERE chain = ? AND seq = 2", (chain,))
    rows = db.execute("SELECT * FROM audit_events WHERE chain = ? AND seq > 0 ORDER BY seq", (chain,))
    before = db.one("SELECT mac FROM audit_events WHERE chain = ? AND seq = 0", (chain,))
    for row in rows:
        before = sign(before, {name: row[name] for name in SIGNED})
        db.execute("UPDATE audit_events SET mac = ? WHERE n = ?", (before, row["n"]))


def _change(db: Meddler) -> None:
    db.execute("UPDATE audit_events SET user_id = 'nobody' WHERE user_id = 'otto' AND phase = 'outcome'")


def _move_to_another_tenant(db: Meddler) -> None:
    db.execute("UPDATE audit_events SET tenant = 'globex' WHERE request_id = 'r-2'")


def _say_it_was_denied(db: Meddler) -> None:
    db.execute("UPDATE audit_events SET outcome = 'deny' WHERE operation = 'purge' AND phase = 'outcome'")


def _change_the_time(db: Meddler) -> None:
    db.execute("UPDATE audit_events SET at = '2020-01-01T00:00:00.000000Z' WHERE request_id = 'r-1'")


def _remove_one(db: Meddler) -> None:
    db.execute("DELETE FROM audit_events WHERE chain = ? AND seq = 2", (_chains(db)[1],))


def _remove_and_close_the_gap(db: Meddler) -> None:
    chain = _chains(db)[1]
    db.execute("DELETE FROM audit_events WHERE chain = ? AND seq = 2", (chain,))
    for seq in range(3, 7):
        db.execute("UPDATE audit_events SET seq = ? WHERE chain = ? AND seq = ?", (seq - 1, chain, seq))


def _swap_two(db: Meddler) -> None:
    chain = _chains(db)[0]
    for old, new in ((1, 99), (2, 1), (99, 2)):
        db.execute("UPDATE audit_events SET seq = ? WHERE chain = ? AND seq = ?", (new, chain, old))


def _cut_the_tail(db: Meddler) -> None:
    db.execute("DELETE FROM audit_events WHERE chain = ? AND seq > 0", (_chains(db)[2],))


def _cut_an_older_tail(db: Meddler) -> None:
    db.execute("DELETE FROM audit_events WHERE chain = ? AND seq > 3", (_chains(db)[0],))
    db.execute("DELETE FROM audit_items WHERE event NOT IN (SELECT id FROM audit_events)")


def _remove_a_chain(db: Meddler) -> None:
    db.execute("DELETE FROM audit_events WHERE chain = ?", (_chains(db)[0],))
    db.execute("DELETE FROM audit_items WHERE event NOT IN (SELECT id FROM audit_events)")


def _remove_the_last_chain(db: Meddler) -> None:
    db.execute("DELETE FROM audit_events WHERE chain = ?", (_chains(db)[2],))


def _remove_everything(db: Meddler) -> None:
    db.execute("DELETE FROM audit_events")
    db.execute("DELETE FROM audit_items")


def _remove_the_first_line(db: Meddler) -> None:
    db.execute("DELETE FROM audit_events WHERE phase = 'chain' AND chain = ?", (_chains(db)[1],))


def _sign_with_plain_hashes(db: Meddler) -> None:
    def sign(before: str, line: dict[str, object]) -> str:
        body = json.dumps({name: line[name] for name in SIGNED if line[name] is not None}, separators=(",", ":"))
        return hashlib.sha256(f"{before}\n{body}".encode()).hexdigest()[:32]

    _rewrite(db, _chains(db)[0], sign)


def _sign_with_another_key(db: Meddler) -> None:
    _rewrite(db, _chains(db)[0], lambda before, line: signature(b"k" * 32, before, line))


def _sign_all_with_another_key_and_name_it(db: Meddler) -> None:
    chain = _chains(db)[0]
    db.execute("UPDATE audit_events SET code = ? WHERE chain = ? AND seq = 0", (fingerprint(b"k" * 32), chain))
    _sign_with_another_key(db)


def _copy_a_line_to_the_end(db: Meddler) -> None:
    chain = _chains(db)[2]
    names = ", ".join(name for name in SIGNED if name != "seq")
    db.execute(
        f"INSERT INTO audit_events (seq, mac, {names}) SELECT 3, mac, {names} FROM audit_events "
        "WHERE chain = ? AND seq = 2",
        (chain,),
    )


def _hide_who_recalled(db: Meddler) -> None:
    db.execute("DELETE FROM audit_items WHERE event = (SELECT min(id) FROM audit_events WHERE request_id = 'r-1')")


def _claim_that_others_recalled(db: Meddler) -> None:
    db.execute("UPDATE audit_items SET tenant = 'globex' WHERE event = (SELECT min(event) FROM audit_items)")


def _make_up_a_recall(db: Meddler) -> None:
    db.execute("INSERT INTO audit_items VALUES ('acme', 'mem_x', 'evt_nowhere', '2026')")


def _let_an_outcome_vanish(db: Meddler) -> None:
    db.execute("INSERT INTO audit_open SELECT id, tenant, chain FROM audit_events WHERE phase = 'intent' LIMIT 1")


def _put_bytes_where_texts_stand(db: Meddler) -> None:
    db.execute("UPDATE audit_events SET user_id = x'00ff' WHERE request_id = 'r-1'")


def _put_words_where_numbers_stand(db: Meddler) -> None:
    db.execute("UPDATE audit_events SET seq = 'many' WHERE chain = ? AND seq = 6", (_chains(db)[1],))


def _put_nonsense_into_the_list(db: Meddler) -> None:
    db.execute("INSERT INTO audit_items VALUES ('acme', x'00', x'00ff', '')")


def _put_letters_into_a_signature(db: Meddler) -> None:
    db.execute("UPDATE audit_events SET mac = 'é' WHERE phase = 'chain' AND chain = ?", (_chains(db)[0],))


def _put_nonsense_into_a_first_line(db: Meddler) -> None:
    db.execute("UPDATE audit_events SET items = '[1, {}, null]' WHERE phase = 'chain' AND chain = ?", (_chains(db)[1],))


ONLY_WITHOUT_TYPES = (_put_bytes_where_texts_stand, _put_words_where_numbers_stand, _put_nonsense_into_the_list)


@pytest.mark.parametrize(
    ("attack", "found"),
    [
        (_change, {"changed"}),
        (_move_to_another_tenant, {"changed", "items"}),
        (_say_it_was_denied, {"changed"}),
        (_change_the_time, {"changed"}),
        (_remove_one, {"missing", "changed", "items"}),
        (_remove_and_close_the_gap, {"changed", "cut", "items"}),
        (_swap_two, {"changed"}),
        (_cut_the_tail, {"cut"}),
        (_cut_an_older_tail, {"cut"}),
        (_remove_a_chain, {"removed"}),
        (_remove_the_last_chain, {"removed"}),
        (_remove_everything, {"removed"}),
        (_remove_the_first_line, {"missing"}),
        (_sign_with_plain_hashes, {"changed"}),
        (_sign_with_another_key, {"changed"}),
        (_sign_all_with_another_key_and_name_it, {"unknown_key", "changed"}),
        (_copy_a_line_to_the_end, {"changed"}),
        (_hide_who_recalled, {"items"}),
        (_claim_that_others_recalled, {"items"}),
        (_make_up_a_recall, {"items"}),
        (_let_an_outcome_vanish, {"unfinished"}),
        (_put_bytes_where_texts_stand, {"changed"}),
        (_put_words_where_numbers_stand, {"changed", "cut"}),
        (_put_nonsense_into_the_list, {"items"}),
        (_put_letters_into_a_signature, {"changed"}),
        (_put_nonsense_into_a_first_line, {"changed"}),
    ],
)
def test_what_was_done_to_the_database_shows(
    written: Audit, keys: Keys, attack: Callable[[Meddler], None], found: set[str]
) -> None:
    if attack in ONLY_WITHOUT_TYPES and not isinstance(written.database, SqliteDatabase):
        pytest.skip("PostgreSQL takes no value of another type")
    assert verify(written.database, keys).whole
    with meddling(written.database) as db:
        attack(db)
    assert {finding.what for finding in verify(written.database, keys).findings} == found


def test_a_finding_names_the_chain_and_the_line(written: Audit, keys: Keys) -> None:
    with meddling(written.database) as db:
        chain = _chains(db)[1]
        db.execute("UPDATE audit_events SET user_id = 'x' WHERE chain = ? AND seq = 3", (chain,))
    verdict = verify(written.database, keys)
    assert [(one.what, one.chain, one.seq) for one in verdict.findings] == [("changed", chain, 3)]
    assert (verdict.chains, verdict.lines) == (3, 7 + 7 + 3) and verdict.json()["whole"] is False


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_an_older_copy_of_the_database_put_in_its_place_shows(
    context: Context, state: Database, keys: Keys, tmp_path: Path
) -> None:
    with Audit(context, state, keys) as audit:
        audit.finish(context, audit.begin(context, replace(READ, outcome=None)), "success")
        path = audit.database.path  # type: ignore[attr-defined]
        with sqlite3.connect(path) as db:
            db.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
        db.close()
        audit.begin(context, replace(READ, outcome=None))
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    shutil.copy(tmp_path / "copy.db", path)
    with Audit(context, state, keys) as audit:
        assert [finding.what for finding in verify(audit.database, keys).findings] == ["cut"]


def test_a_line_that_is_cut_before_it_was_durable_is_missed_too(context: Context, state: Database, keys: Keys) -> None:
    with Audit(context, state, keys) as audit:
        audit.finish(context, audit.begin(context, replace(READ, outcome=None)), "success")
        audit.note(context, READ)
        with meddling(audit.database) as db:
            db.execute("DELETE FROM audit_events WHERE seq > 2")
            db.execute("DELETE FROM audit_items WHERE event NOT IN (SELECT id FROM audit_events)")
        (finding,) = verify(audit.database, keys).findings
        assert finding.seq == 3 and finding.what in ("lost", "cut")  # by whether the disk had it by then


def test_what_was_read_becomes_durable_by_itself(context: Context, state: Database, keys: Keys) -> None:
    with Audit(context, state, keys) as audit:
        audit.note(context, READ)
        tip = tips_of(keys) / audit._chain.name
        for _ in range(500):
            if (read_tip(tip, keys.versions("audit", "service")) or (0, "", -1))[2] == 1:
                break
            audit._chain._stopping.wait(0.01)
        else:
            pytest.fail("nobody synced it")


def test_a_tip_that_is_just_being_made_is_no_finding_and_an_emptied_one_is(written: Audit, keys: Keys) -> None:
    tip = sorted(tips_of(keys).iterdir())[0]
    (tip.parent / "chn_0000000000000000").touch()  # its process has made the file, and no line yet
    assert verify(written.database, keys).findings == ()
    tip.write_bytes(b"")
    assert [(one.what, one.chain) for one in verify(written.database, keys).findings] == [("tip", tip.name)]


def test_a_tip_that_somebody_wrote_is_no_tip(written: Audit, keys: Keys) -> None:
    tip = sorted(tips_of(keys).iterdir())[0]
    tip.write_text(f"{1:020d} {1:020d} {'0' * 32} {'0' * 32}\n")
    assert [(one.what, one.chain) for one in verify(written.database, keys).findings] == [("tip", tip.name)]


def test_without_the_key_nothing_is_called_whole(written: Audit, tmp_path: Path) -> None:
    assert {one.what for one in verify(written.database, Keys(tmp_path / "other")).findings} == {"unknown_key"}
