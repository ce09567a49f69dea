"""Whether the audit is whole: every line as it was written, in its order, none missing, none added.

What it is held against lies outside the database: the key, and the tips beside it. Whoever has both can write another
audit; whoever can only write in the database is found out.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Container, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from sqlalchemy import Select, exists, func, select
from sqlalchemy.engine import Connection, RowMapping

from memoranda.governance.chain import OWNER, read_tip, signature, tips_of
from memoranda.governance.pages import SIGNED
from memoranda.home.keys import Keys
from memoranda.state import tables as t
from memoranda.state.database import Database
from memoranda.values import dataclass

_AT_ONCE = 500  # rows that are read together


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was written. `seq` counts the lines of a chain from 0; None is about all of it.

    `what` is changed (or reordered, or added), missing, cut (at the end), lost (at the end, behind what was durable:
    cut, or gone with the power), removed (a whole chain), unknown_key, items (the list by which memories are found),
    unfinished (the list of open intents), or tip (it cannot be read). Where no line is meant, `chain` is an event's id.
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
    with database.read(t.AUDIT) as connection:
        chains = list(connection.execute(select(t.every_audit_events.c.chain).distinct()).scalars())
        for chain in sorted(chains):
            lines += _check_chain(connection, chain, known, findings)
        findings += _check_links(connection)
        findings += _check_tips(connection, tips, lambda chain: _is_beginning(tips_of(keys) / chain, known, chains))
        findings += _check_items(connection)
        findings += _check_open(connection)
    return Verdict(len(chains), lines, tuple(findings))


def _check_chain(connection: Connection, chain: str, keys: Mapping[str, bytes], findings: list[Finding]) -> int:
    """Every line against its signature; from a broken one on, each is held against what is written before it."""
    of = select(t.every_audit_events).where(t.every_audit_events.c.chain == chain).order_by(t.every_audit_events.c.seq)
    before, expected, count = "", 0, 0
    key: bytes | None = None
    for row in _stream(connection, of):
        count += 1
        if not _sound(row):
            findings.append(Finding("changed", chain, None))
            before, expected = str(row["mac"]), expected + 1
            continue
        first = row["seq"] == 0
        if first and row["phase"] == "chain":
            key = keys.get(row["code"] or "")
            if key is None:
                findings.append(Finding("unknown_key", chain, None))
        if row["seq"] > expected:
            findings.append(Finding("missing", chain, expected))
        line = {name: row[name] for name in SIGNED}
        wrong = key is not None and not _same(signature(key, before, line), row["mac"])
        if wrong or first != (row["phase"] == "chain"):
            findings.append(Finding("changed", chain, row["seq"]))
        before, expected = row["mac"], row["seq"] + 1
    return count


def _stream(connection: Connection, asked: Select[Any]) -> Iterator[RowMapping]:
    yield from connection.execution_options(stream_results=True).execute(asked).mappings().yield_per(_AT_ONCE)


def _sound(row: RowMapping) -> bool:
    """Whether every value is of its column's type: SQLite keeps whatever somebody puts there."""
    return all(isinstance(value, int if name in ("n", "seq") else str | None) for name, value in row.items())


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode("utf-8", "surrogatepass"))


def _check_items(connection: Connection) -> Iterator[Finding]:
    """The list by which memories are found against what the lines say, event by event."""
    lines, table = t.every_audit_events, t.every_audit_items
    told = groupby(_stream(connection, select(lines).where(lines.c.phase != "chain").order_by(lines.c.id)), _by_id)
    listed = groupby(_stream(connection, select(table).order_by(table.c.event)), lambda row: str(row["event"]))
    line, entry = next(told, None), next(listed, None)
    while line is not None or entry is not None:
        if line is None or (entry is not None and entry[0] < line[0]):
            assert entry is not None
            yield Finding("items", entry[0], None)
            entry = next(listed, None)
            continue
        of = list(line[1])
        said = {(row["tenant"], item) for row in of for item in _items(row)}
        found = set()
        if entry is not None and entry[0] == line[0]:
            found = {(row["tenant"], row["item"]) for row in entry[1]}
            entry = next(listed, None)
        if said != found:
            yield Finding("items", str(of[-1]["chain"]), of[-1]["seq"])
        line = next(told, None)


def _by_id(row: RowMapping) -> str:
    return str(row["id"])


def _items(line: RowMapping) -> list[str]:
    try:
        return [str(item) for item in json.loads(line["items"])]
    except (ValueError, TypeError):
        return []  # its signature says so already


def _check_links(connection: Connection) -> Iterator[Finding]:
    """What each chain's first line says of the chain before it: a whole one that is gone is missed there."""
    lines = t.every_audit_events
    for opening in connection.execute(select(lines).where(lines.c.phase == "chain", lines.c.seq == 0)).all():
        try:
            before = json.loads(opening.items)
            chain, seq, mac = before or ("", 0, "")
            seq = int(seq)
        except (ValueError, TypeError):
            continue  # its signature says so already
        if before:
            yield from _reaches(connection, str(chain), seq, str(mac))


def _check_tips(
    connection: Connection, tips: Mapping[str, tuple[int, str, int] | None], is_beginning: Callable[[str], bool]
) -> Iterator[Finding]:
    for chain, tip in tips.items():
        if tip is None:
            if not is_beginning(chain):
                yield Finding("tip", chain, None)
        elif tip[0] >= 0:
            yield from _reaches(connection, chain, *tip)


def _reaches(connection: Connection, chain: str, seq: int, mac: str, synced: int | None = None) -> Iterator[Finding]:
    """Whether a chain holds at `seq` the line with this signature; up to `synced` a loss of power excuses nothing."""
    lines = t.every_audit_events
    found = connection.execute(select(lines.c.mac).where(lines.c.chain == chain, lines.c.seq == seq)).scalar()
    if found is None:
        last = connection.execute(select(func.max(lines.c.seq)).where(lines.c.chain == chain)).scalar()
        lost = synced is not None and (last if isinstance(last, int) else -1) >= synced
        yield Finding("lost" if lost else "removed" if last is None else "cut", chain, seq)
    elif not _same(str(found), mac):
        yield Finding("changed", chain, seq)


def _check_open(connection: Connection) -> Iterator[Finding]:
    """What stands in the list of open intents without a line, and intents that neither ended nor stand there."""
    lines, ended = t.every_audit_events, t.every_audit_events.alias()
    stray = select(t.audit_open.c.event).where(~exists().where(lines.c.id == t.audit_open.c.event))
    for event in connection.execute(stray).scalars():
        yield Finding("unfinished", event, None)
    has_ended = exists().where(ended.c.id == lines.c.id, ended.c.phase == "outcome")
    is_open = exists().where(t.audit_open.c.event == lines.c.id)
    wrong = select(lines.c.chain, lines.c.seq).where(lines.c.phase == "intent", has_ended == is_open)
    for row in connection.execute(wrong):
        yield Finding("unfinished", row.chain, row.seq)


def _is_beginning(path: Path, keys: Mapping[str, bytes], chains: Container[str]) -> bool:
    """Whether a tip could not be read since its process was just making it: the file, then what it says, then a line.

    Asked after the snapshot, so that a chain with lines in it has a tip that says something by now.
    """
    return read_tip(path, keys) is not None or (path.stat().st_size == 0 and path.name not in chains)


def _files(keys: Keys) -> Iterator[Any]:
    folder = tips_of(keys)
    return iter(sorted(folder.iterdir())) if folder.is_dir() else iter(())
