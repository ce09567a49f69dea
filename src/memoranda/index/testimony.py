"""What the lines of the ledger mean for the catalog: who wrote what, what became of sessions, what people attested.

A line counts as vouched when its MAC is right under this installation's key. Reviews, tombstones and everything that
would make more of a note count only when vouched; a line that makes less of it (a taint) always counts.

Reviews are kept as the lines that they are and judged whenever they are asked for: the catalog is a file in the Home,
and a row that somebody wrote into it must vouch for nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from memoranda.home.ledger import read_lines
from memoranda.index import withheld
from memoranda.index.among import among
from memoranda.index.kept import Kept, Moment
from memoranda.index.withheld import instant_in, text_in
from memoranda.notes.times import from_ms, to_ms
from memoranda.values import dataclass

SCHEMA = """
CREATE TABLE IF NOT EXISTS ledger (
  about TEXT PRIMARY KEY, kind TEXT NOT NULL, at INTEGER, session TEXT, agent TEXT, user TEXT, origin TEXT,
  taint TEXT NOT NULL, op TEXT, vouched INTEGER NOT NULL, key TEXT) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ledger_session ON ledger (session);
CREATE INDEX IF NOT EXISTS ledger_tainted ON ledger (about) WHERE taint != '[]';
CREATE TABLE IF NOT EXISTS sessions (
  line TEXT PRIMARY KEY, session TEXT NOT NULL, event TEXT NOT NULL, at INTEGER, user TEXT, agent TEXT, reason TEXT,
  source TEXT, what TEXT, vouched INTEGER NOT NULL, replica TEXT NOT NULL, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sessions_session ON sessions (session);
CREATE TABLE IF NOT EXISTS reviews (
  line TEXT PRIMARY KEY, id TEXT NOT NULL, blob TEXT NOT NULL, at INTEGER, replica TEXT NOT NULL,
  text TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS reviews_blob ON reviews (blob);
CREATE INDEX IF NOT EXISTS reviews_id ON reviews (id);
"""
_OF_THE_LINE = ("n", "at", "mac")  # what the ledger adds to a decision
_MOST_WROTE = 8192  # blobs and ids of which what the ledger says is kept at hand
_SELECT_LEDGER = "SELECT about, kind, at, session, agent, user, origin, taint, op, vouched, key FROM ledger"
_SELECT_REVIEW = "SELECT replica, text FROM reviews"
TABLES = ("ledger", "sessions", "reviews", "tombstones", "holds")


@dataclass(frozen=True, slots=True)
class Wrote:
    """What the ledger says of a note's bytes (by blob) or of a journal entry (by id).

    `key` is what the entry said when it was written, None for a note.
    """

    kind: str
    at: datetime | None
    session: str | None
    agent: str | None
    user: str | None
    origin: str | None
    taint: tuple[dict[str, str], ...]
    op: str | None
    vouched: bool
    key: str | None = None


BESIDE = "calls that name no session belong to "  # and the ambient session: the reason of a harness's "open"


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """Something that befell a session.

    `event` is open (`what` says by whom: ambient, agent, person, hook), taint (`what` is the kind of its root, `source`
    the entry or pointer behind it), private, fresh or close.
    """

    session: str
    event: str
    at: datetime | None
    user: str | None
    agent: str | None
    reason: str | None
    source: str | None
    what: str | None
    vouched: bool


@dataclass(frozen=True, slots=True)
class Review:
    """An attestation of one note's exact bytes: `verdict` is accept, reject or revoke.

    `vouched` when this installation wrote its line; a `signature` is only what the line says until it was verified.
    """

    id: str
    blob: str
    verdict: str
    reviewer: str | None
    at: datetime | None
    comment: str | None
    signature: str | None
    vouched: bool
    fields: dict[str, Any]
    replica: str = ""


class Testimony:
    """The catalog's tables of what the ledger says, as they are asked.

    `vouches(replica, text)` tells whether this installation wrote a line; `counts` whether a review counts. Without
    them none does.
    """

    def __init__(self, db: sqlite3.Connection, moment: Moment) -> None:
        self._db = db
        self._wrote: Kept[str, Wrote] = Kept(db, _MOST_WROTE, moment=moment)
        self.vouches: Callable[[str, str], bool] = lambda _replica, _text: False
        self.counts: Callable[[Review], bool] = vouched
        self.rule: Callable[[], object] = lambda: None  # gives another value when other reviews may count than before

    def wrote(self, about: Iterable[str]) -> dict[str, Wrote]:
        """What the ledger says about blobs of notes and ids of entries."""
        return self._wrote.of(about, self._read_wrote)

    def _read_wrote(self, about: Iterable[str]) -> Iterator[tuple[str, Wrote]]:
        for row in among(self._db, f"{_SELECT_LEDGER} WHERE about IN (?*)", about):
            taint = () if row[7] == "[]" else tuple(json.loads(row[7]))
            told = (row[1], from_ms(row[2]), row[3], row[4], row[5], row[6], taint, row[8], bool(row[9]), row[10])
            yield row[0], Wrote(*told)

    def taints(self, about: Sequence[str]) -> dict[str, str]:
        """The stamps, as JSON, of those of these blobs that were written with a taint: of most Homes, none."""
        query = "SELECT about, taint FROM ledger INDEXED BY ledger_tainted WHERE taint != '[]' AND about IN (?*)"
        return dict(among(self._db, query, about))

    def session_events(self, session: str | None = None) -> Iterator[SessionEvent]:
        """What befell all sessions, or one of them, in the order in which it did.

        Of one replica its own numbers tell the order, since a clock can be set back; between replicas, the times.
        """
        where, values = ("WHERE session = ?", (session,)) if session is not None else ("", ())
        query = (
            "SELECT session, event, at, user, agent, reason, source, what, vouched, replica"
            f" FROM sessions {where} ORDER BY n, event != 'open', line"
        )
        latest: dict[str, int] = {}
        timed = []
        for place, r in enumerate(self._db.execute(query, values).fetchall()):
            at = r[2] or 0
            if r[8]:
                at = latest[r[9]] = max(at, latest.get(r[9], at))
            timed.append((at, place, r))
        for _, _, r in sorted(timed, key=lambda item: item[:2]):
            yield SessionEvent(r[0], r[1], from_ms(r[2]), r[3], r[4], r[5], r[6], r[7], bool(r[8]))

    def by_session(self, session: str) -> list[str]:
        """The blobs and entries that were written in a session."""
        rows = self._db.execute("SELECT about FROM ledger WHERE session = ? ORDER BY at, about", (session,))
        return [row[0] for row in rows]

    def stamped_by(self, source: str) -> list[str]:
        """The blobs and entries whose stamp names this entry, note or address as a root."""
        found = self._db.execute("SELECT about, taint FROM ledger WHERE instr(taint, ?) ORDER BY about", (source,))
        return [about for about, taint in found if any(root.get("source") == source for root in json.loads(taint))]

    def tainted_by(self, source: str) -> list[str]:
        """The sessions that this entry, note or address tainted."""
        query = "SELECT DISTINCT session FROM sessions WHERE event = 'taint' AND source = ? ORDER BY session"
        return [row[0] for row in self._db.execute(query, (source,))]

    def tools_at(self, host: str) -> list[str]:
        """By what name the ledger has the tools that met this host and tainted a session."""
        query = "SELECT DISTINCT source FROM sessions WHERE event = 'taint' AND what = 'tool' ORDER BY source"
        return [source for (source,) in self._db.execute(query) if host and (source or "").endswith(f" {host}")]

    def beside(self, session: str) -> tuple[str, bool] | None:
        """The ambient session to which the calls of a harness's session belong that name none, and whether it is that
        session's alone: begun with it, and given to no other. Only this installation's own lines say so."""
        query = "SELECT session, reason, what FROM sessions WHERE event = 'open' AND vouched AND instr(reason, ?) = 1"
        opened = {r[0]: (r[1].removeprefix(BESIDE), r[2]) for r in self._db.execute(query, (BESIDE,))}
        if session not in opened:
            return None
        ambient, by = opened[session]
        return ambient, by == "hook" and sum(other == ambient for other, _ in opened.values()) == 1

    def has_taint(self) -> bool:
        """Whether anything was ever stamped with a taint here."""
        return self._db.execute("SELECT 1 FROM ledger WHERE taint != '[]' LIMIT 1").fetchone() is not None

    def has_reviews(self) -> bool:
        """Whether anything was ever reviewed here: most questions about reviews end with this."""
        return self._db.execute("SELECT 1 FROM reviews LIMIT 1").fetchone() is not None

    def reviews(self, *, blobs: Iterable[str] = (), note_id: str | None = None) -> list[Review]:
        """The attestations that count of these bytes, or of every state of a note, oldest first."""
        return [r for r in self.attested(blobs=blobs, note_id=note_id) if self.counts(r)]

    def attested(self, *, blobs: Iterable[str] = (), note_id: str | None = None, all: bool = False) -> list[Review]:
        """The same, whether they count or not; or `all` that there are."""
        rows: list[Any] = []
        if all:
            rows = self._db.execute(_SELECT_REVIEW).fetchall()
        if note_id is not None:
            rows = self._db.execute(f"{_SELECT_REVIEW} WHERE id = ?", (note_id,)).fetchall()
        wanted = dict.fromkeys(blobs)
        rows += among(self._db, f"{_SELECT_REVIEW} WHERE blob IN (?*)", wanted)
        found = (self.read_review(replica, text) for replica, text in dict.fromkeys(rows))
        kept = [r for r in found if r is not None and (all or r.id == note_id or r.blob in wanted)]
        return _in_order(kept)

    def read_review(self, replica: str, text: str) -> Review | None:
        """What a line says; None for one that is none, whatever the columns beside it say."""
        fields = next(read_lines(text.encode()), None)
        if fields is None or fields.get("kind") != "review":
            return None
        told = (str(fields.get("id")), str(fields.get("blob")), str(fields.get("verdict")), text_in(fields, "reviewer"))
        said = (text_in(fields, "comment"), text_in(fields, "signature"))
        return Review(*told, from_ms(_decided(fields)), *said, self.vouches(replica, text), fields, replica)


def _in_order(reviews: Iterable[Review]) -> list[Review]:
    """Oldest first. Of one replica its own numbers say what came first: a clock that was set back undoes nothing.

    A signature is one decision: said again later, it does not come after what was decided since. Put under anything
    else it says nothing, and stands in nobody's place.
    """
    latest: dict[str, int] = {}
    said: set[tuple[str, bool]] = set()
    timed = []
    for review in sorted(reviews, key=_number):
        if review.signature is not None:
            told = json.dumps({k: v for k, v in review.fields.items() if k not in _OF_THE_LINE}, sort_keys=True)
            if (told, review.vouched) in said:
                continue
            said.add((told, review.vouched))
        at = to_ms(review.at) or 0
        if review.vouched:
            at = latest[review.replica] = max(at, latest.get(review.replica, at))
        timed.append((at, _number(review), review))
    return [review for _, _, review in sorted(timed, key=lambda item: item[:2])]


def _number(review: Review) -> tuple[int, str]:
    n = review.fields.get("n")
    return n if isinstance(n, int) else 0, json.dumps(review.fields)


def vouched(review: Review) -> bool:
    """Without signing, a line that this installation wrote counts, and no other."""
    return review.vouched


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its fields, a name that no other line has, and whether this installation vouches for it.

    `text` is the line as it stands, `replica` the folder of the ledger that it stands in.
    """

    fields: Mapping[str, Any]
    name: str
    vouched: bool
    text: str
    replica: str


def take_in(db: sqlite3.Connection, lines: Iterable[Line]) -> None:
    """Writes what the lines say into the tables; saying it again changes nothing. How many rows of `ledger` came of it
    or changed is added to the state `told`."""
    told = 0
    for line in lines:
        kind = line.fields.get("kind")
        if kind == "session":
            _session(db, line)
        elif kind == "review":
            _review(db, line)
        elif kind == "tombstone":
            withheld.take_tombstone(db, line.fields, line.vouched)
        elif kind == "hold":
            withheld.take_hold(db, line.fields, line.name, line.vouched)
        else:
            told += _wrote(db, line)
    if told:
        db.execute(
            "INSERT INTO state VALUES ('told', ?) ON CONFLICT (name)"
            " DO UPDATE SET value = CAST(value AS INTEGER) + excluded.value",
            (told,),
        )


def _wrote(db: sqlite3.Connection, line: Line) -> int:
    fields = line.fields
    common = (text_in(fields, "session"), text_in(fields, "agent"), text_in(fields, "user"), text_in(fields, "origin"))
    told = (str(fields.get("kind")), instant_in(fields.get("at")), *common, json.dumps(taint_of(fields)))
    rows = [(about, *told, text_in(fields, "op"), line.vouched, text_in(fields, "key")) for about in _abouts(fields)]
    # The earliest line about some bytes counts: who wrote the same text again later is not its author. A line that is
    # vouched for beats one that is not, whatever time that one claims. Taint is what all of them say together.
    done = db.executemany(
        "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (about) DO UPDATE SET"
        " kind = excluded.kind, at = excluded.at, session = excluded.session, agent = excluded.agent,"
        " user = excluded.user, origin = excluded.origin, op = excluded.op,"
        " vouched = excluded.vouched, key = excluded.key"
        " WHERE excluded.vouched > ledger.vouched OR (excluded.vouched = ledger.vouched AND excluded.at < ledger.at)",
        rows,
    )
    if taint := taint_of(fields):
        for about in _abouts(fields):
            (held,) = db.execute("SELECT taint FROM ledger WHERE about = ?", (about,)).fetchone()
            known = json.loads(held)
            there = {json.dumps(root, sort_keys=True) for root in known}  # a file may cite a hundred thousand
            fresh = [root for root in taint if json.dumps(root, sort_keys=True) not in there]
            if fresh:
                db.execute("UPDATE ledger SET taint = ? WHERE about = ?", (json.dumps(known + fresh), about))
    return done.rowcount


def _session(db: sqlite3.Connection, line: Line) -> None:
    f = line.fields
    if not isinstance(f.get("session"), str):
        return
    values = (
        line.name, f["session"], str(f.get("event")), instant_in(f.get("at")), text_in(f, "user"), text_in(f, "agent"),
        text_in(f, "reason"), text_in(f, "source"), text_in(f, "what") or text_in(f, "by"), line.vouched, line.replica,
        n if isinstance(n := f.get("n"), int) else 0,
    )  # fmt: skip
    db.execute("INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


def _review(db: sqlite3.Connection, line: Line) -> None:
    f = line.fields
    if line.vouched or text_in(f, "signature") is not None:
        values = (line.name, str(f.get("id")), str(f.get("blob")), _decided(f), line.replica, line.text)
        db.execute("INSERT OR IGNORE INTO reviews VALUES (?, ?, ?, ?, ?, ?)", values)


def _decided(fields: Mapping[str, Any]) -> int | None:
    """When a review was given: by the time that its signature covers, else by the line's own."""
    return instant_in(fields.get("signed_at") if "signature" in fields else fields.get("at"))


def taint_of(fields: Mapping[str, Any]) -> list[dict[str, str]]:
    """The roots of the taint that a line stamps; one that has lost its form still counts."""
    taint = fields.get("taint") or []
    roots = taint if isinstance(taint, list) else [taint]
    return [{k: str(v) for k, v in root.items()} if isinstance(root, dict) else {"reason": str(root)} for root in roots]


def _abouts(line: Mapping[str, Any]) -> list[str]:
    kind = line.get("kind")
    if kind == "entry":
        return [str(line.get("id"))]
    if kind in ("write", "found"):
        keys = line.get("keys")
        more = [str(key) for key in keys] if kind == "found" and isinstance(keys, list) else []
        return [*([str(line["blob"])] if line.get("blob") else []), *more]
    if kind == "writes":
        return [str(item) for item in line.get("blobs", ())]
    return []
