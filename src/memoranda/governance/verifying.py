"""Whether the audit is whole: every line as it was written, in its order, none missing, none added.

What it is held against lies outside the database: the key, and the tips beside it. Whoever has both can write another
audit; whoever can only write in the database is found out.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import exists, func, select
from sqlalchemy.engine import Connection

from memoranda.governance.chain import OWNER, SIGNED, read_tip, signature, tips_of
from memoranda.home.keys import Keys
from memoranda.state import tables as t
from memoranda.state.database import Database
from memoranda.values import dataclass

_AT_ONCE = 500  # lines whose items are compared by one query


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was written. `seq` counts the lines of a chain from 0; None is about all of it.

    `what` is changed (or reordered, or added), missing, cut (at the end), lost (at the end, behind what was durable:
    cut, or gone with the power), removed (a whole chain), unknown_key, items (the list by which memories are found),
    unfinished (the list of open intents), or tip (it cannot be read).
    """

    what: str
    chain: str
    seq: int | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was looked at, and what was found; `whole` when nothing was."""

    chains: int
    lines: int
    findings: tuple[Finding, ...]

    @property
    def whole(self) -> bool:
        return not self.findings

    def json(self) -> dict[str, Any]:
        findings = [{"what": one.what, "chain": one.chain, "seq": one.seq} for one in self.findings]
        return {"whole": self.whole, "chains": self.chains, "lines": self.lines, "findings": findings}


def verify(database: Database, keys: Keys) -> Verdict:
    """Reads every line of the audit's database, in one snapshot; other processes go on writing meanwhile."""
    known = keys.versions("audit", OWNER)
    tips = {path.name: read_tip(path, known) for path in _files(keys)}  # before the snapshot: they are behind it
    findings: list[Finding] = []
    lines = 0
    with database.read() as connection:
        chains = list(connection.execute(select(t.audit_events.c.chain).distinct()).scalars())
        for chain in sorted(chains):
            lines += _check_chain(connection, chain, known, findings)
        findings += _check_links(connection)
        findings += _check_tips(connection, tips)
        findings += _check_lists(connection)
    return Verdict(len(chains), lines, tuple(findings))


def _check_chain(connection: Connection, chain: str, keys: Mapping[str, bytes], findings: list[Finding]) -> int:
    """Every line against its signature; from a broken one on, each is held against what is written before it."""
    of = select(t.audit_events).where(t.audit_events.c.chain == chain).order_by(t.audit_events.c.seq)
    before, expected, count = "", 0, 0
    key: bytes | None = None
    for rows in connection.execution_options(stream_results=True).execute(of).mappings().partitions(_AT_ONCE):
        for row in rows:
            count += 1
            if row["seq"] == 0 and row["phase"] == "chain":
                key = keys.get(row["code"] or "")
                if key is None:
                    findings.append(Finding("unknown_key", chain, None))
            for missing in _between(expected, row["seq"]):
                findings.append(Finding("missing", chain, missing))
            if row["seq"] == 0 and row["phase"] != "chain":
                findings.append(Finding("changed", chain, 0))
            line = {name: row[name] for name in SIGNED}
            if key is not None and not hmac.compare_digest(signature(key, before, line), row["mac"]):
                findings.append(Finding("changed", chain, row["seq"]))
            before, expected = row["mac"], row["seq"] + 1
        findings.extend(_check_items(connection, chain, rows))
    return count


def _between(expected: int, seq: int) -> Iterator[int]:
    """The first of the numbers that are not there, if any: one finding a gap."""
    if seq > expected:
        yield expected


def _check_items(connection: Connection, chain: str, rows: Any) -> Iterator[Finding]:
    """The list by which memories are found against what the lines say."""
    said: dict[str, set[tuple[str, str]]] = {}
    for row in rows:
        if row["phase"] != "chain":
            said.setdefault(row["id"], set())
    table = t.audit_items
    listed: dict[str, set[tuple[str, str]]] = {}
    for found in connection.execute(select(table).where(table.c.event.in_(list(said)))):
        listed.setdefault(found.event, set()).add((found.tenant, found.item))
    lines = t.audit_events
    for line in connection.execute(select(lines).where(lines.c.id.in_(list(said)))):  # both lines of an event
        try:
            said[line.id] |= {(line.tenant, item) for item in json.loads(line.items)}
        except ValueError:
            continue  # its signature says so already
    for row in rows:
        if row["id"] in said and said.pop(row["id"]) != listed.get(row["id"], set()):
            yield Finding("items", chain, row["seq"])


def _check_links(connection: Connection) -> Iterator[Finding]:
    """What each chain's first line says of the chain before it: a whole one that is gone is missed there."""
    lines = t.audit_events
    for opening in connection.execute(select(lines).where(lines.c.phase == "chain", lines.c.seq == 0)).all():
        try:
            before = json.loads(opening.items)
            chain, seq, mac = before or ("", 0, "")
        except ValueError:
            continue
        if before:
            yield from _reaches(connection, str(chain), int(seq), str(mac))


def _check_tips(connection: Connection, tips: Mapping[str, tuple[int, str, int] | None]) -> Iterator[Finding]:
    for chain, tip in tips.items():
        if tip is None:
            yield Finding("tip", chain, None)
        elif tip[0] >= 0:
            yield from _reaches(connection, chain, *tip)


def _reaches(connection: Connection, chain: str, seq: int, mac: str, synced: int | None = None) -> Iterator[Finding]:
    """Whether a chain holds at `seq` the line with this signature; up to `synced` a loss of power excuses nothing."""
    lines = t.audit_events
    found = connection.execute(select(lines.c.mac).where(lines.c.chain == chain, lines.c.seq == seq)).scalar()
    if found is None:
        last = connection.execute(select(func.max(lines.c.seq)).where(lines.c.chain == chain)).scalar()
        lost = synced is not None and (-1 if last is None else last) >= synced
        yield Finding("lost" if lost else "removed" if last is None else "cut", chain, seq)
    elif not hmac.compare_digest(found, mac):
        yield Finding("changed", chain, seq)


def _check_lists(connection: Connection) -> Iterator[Finding]:
    """What stands in the lists of items and of open intents without a line, and intents that neither ended nor stand
    there."""
    lines, ended = t.audit_events, t.audit_events.alias()
    for table in (t.audit_items, t.audit_open):
        stray = select(table.c.event).where(~exists().where(lines.c.id == table.c.event))
        for event in connection.execute(stray).scalars():
            yield Finding("items" if table is t.audit_items else "unfinished", event, None)
    has_ended = exists().where(ended.c.id == lines.c.id, ended.c.phase == "outcome")
    is_open = exists().where(t.audit_open.c.event == lines.c.id)
    wrong = select(lines.c.chain, lines.c.seq).where(lines.c.phase == "intent", has_ended == is_open)
    for row in connection.execute(wrong):
        yield Finding("unfinished", row.chain, row.seq)


def _files(keys: Keys) -> Iterator[Any]:
    folder = tips_of(keys)
    return iter(sorted(folder.iterdir())) if folder.is_dir() else iter(())
