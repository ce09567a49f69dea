"""Keeps out of the catalog what is forgotten, however its files came: by a merge, a pull, another branch, an old state.

The files stay as they are. What is kept out has no row that recall, a list or the automatic context could show; the
table `kept_out` says where it stands, for `doctor` and for forgetting it again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from memoranda.errors import InvalidTime
from memoranda.home.erasing.blanking import erased_on
from memoranda.home.tombstones import Mirror, Mirrored, Seals
from memoranda.index.withheld import Tombstone, tombstones
from memoranda.notes.sameness import same_text, says_something
from memoranda.notes.times import parse_instant
from memoranda.values import dataclass

DROPPED = -1  # in the feed: the content indexes forget the document, former states included


class Tombs:
    """The tombstones in force, as one asks whether something is forgotten."""

    def __init__(self, tombstones: Iterable[Tombstone], seals: Seals) -> None:
        self._by_mark = {tomb.mark: tomb for tomb in tombstones}
        self._seals = seals
        self._owners = sorted({tomb.owner for tomb in self._by_mark.values() if tomb.owner})

    def __bool__(self) -> bool:
        return bool(self._by_mark)

    def __iter__(self) -> Iterator[Tombstone]:
        yield from self._by_mark.values()

    def of_id(self, about: str) -> Tombstone | None:
        """The tombstone of this very note or entry."""
        return self._by_mark.get(about)

    def of_text(self, text: str) -> list[Tombstone]:
        """The tombstones of this content, under whoever's key; empty too when the keys are not here."""
        if not self._owners:
            return []
        found = (self._by_mark.get(mark) for mark in self._seals.hashes(self._owners, same_text(text)))
        return [tomb for tomb in found if tomb is not None]

    def of(self, about: str, text: str, *, turn: bool = False) -> Tombstone | None:
        """The tombstone that keeps this note or entry out; `turn`: a short one is only known by its id."""
        tomb = self._by_mark.get(about)
        if tomb is not None or not self._owners or (turn and not says_something(same_text(text))):
            return tomb
        return next((tomb for tomb in self.of_text(text) if about not in tomb.stays), None)

    def unchecked(self) -> dict[tuple[str, str], int]:
        """(owner, version of the key) -> how many hashes cannot be compared, since that key is not here."""
        found: dict[tuple[str, str], int] = {}
        for tomb in self._by_mark.values():
            if tomb.owner and tomb.key and tomb.key not in self._seals.held(tomb.owner):
                found[tomb.owner, tomb.key] = found.get((tomb.owner, tomb.key), 0) + 1
        return found


def tombs_of(db: sqlite3.Connection, mirror: Mapping[str, Mirrored], seals: Seals) -> Tombs:
    """The tombstones in force: of the ledger, and of the mirror, which nobody reaches who writes in the Home.

    What the mirror has as set stays so whatever became of the ledger, and whose it is and what stays is said by the
    mirror too: the catalog's table is a file like others. What it has as lifted, a later line sets again.
    """
    found = {
        tomb.mark: tomb
        for tomb in tombstones(db)
        if (told := mirror.get(tomb.mark)) is None or not told.lifted or (tomb.at and _at(told) < tomb.at)
    }
    for mark, told in mirror.items():
        if not told.lifted:
            known = found.get(mark)
            at, reason = (_at(told), None) if known is None else (known.at, known.reason)
            found[mark] = Tombstone(mark, told.owner, told.key, at, reason, frozenset(told.stays))
    return Tombs(found.values(), seals)


def _at(told: Mirrored) -> datetime:
    try:
        return parse_instant(told.at or "")
    except InvalidTime:
        return datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class KeptOut:
    """A file that holds something forgotten now: which note, by which blob, or which entry, whose blob is empty."""

    path: str
    about: str
    blob: str


class KeepOut:
    """Takes rows out of one catalog, inside a transaction of its caller."""

    def __init__(
        self,
        db: sqlite3.Connection,
        seals: Seals,
        mirror: Mirror,
        admit: Callable[[bytes, str], str | None],
        blob: Callable[[str], bytes | None],
        settled: str,
    ) -> None:
        """`settled` changes with whatever a person settles that `admit` asks for."""
        self._admit = admit
        self._blob = blob
        self._settled = settled
        self._db = db
        self._seals = seals
        self._mirror = mirror

    def run(self, notes_since: int, entries_since: int) -> bool:
        """Takes out what is forgotten, and what may not be kept and came by a commit; whether something that was out
        may come back, so that all has to be read again.

        `notes_since`, `entries_since`: rows up to these were looked at before, with the same tombstones.
        """
        if self._allowed_again():
            return True
        self._refuse(notes_since, entries_since)
        tombs = tombs_of(self._db, self._mirror.read(), self._seals)
        held = {row[0] for row in self._db.execute("SELECT DISTINCT mark FROM kept_out")}
        if any(tombs.of_id(mark) is None for mark in held):
            return True
        if not tombs:
            self._db.execute("DELETE FROM state WHERE name = 'tombs'")
            return False
        state = self._state()
        told = self._db.execute("SELECT value FROM state WHERE name = 'tombs'").fetchone()
        if told is None or told[0] != state:
            notes_since = entries_since = 0
            self._db.execute("INSERT OR REPLACE INTO state VALUES ('tombs', ?)", (state,))
        self._notes(tombs, notes_since)
        self._entries(tombs, entries_since)
        return False

    def _state(self) -> str:
        """Changes with every tombstone."""
        query = "SELECT count(*), coalesce(max(at), 0), sum(lifted), sum(vouched) FROM tombstones"
        return " ".join(map(str, self._db.execute(query).fetchone()))

    def _notes(self, tombs: Tombs, since: int) -> None:
        query = "SELECT row, path, blob, key, id, body FROM notes WHERE row > ?"
        out = [
            (row, path, blob, key, note_id, tomb.mark)
            for row, path, blob, key, note_id, body in self._db.execute(query, (since,))
            if (tomb := tombs.of(note_id, body)) is not None
        ]
        for _, path, blob, _, note_id, mark in out:
            self._db.execute("INSERT OR REPLACE INTO kept_out VALUES (?, ?, ?, ?)", (path, note_id, blob, mark))
        self._remove([(row, key) for row, _, _, key, _, _ in out])

    def _remove(self, out: Sequence[tuple[int, str]]) -> None:
        """Takes out notes, by their rows and keys."""
        for row, _ in out:
            for table in ("notes", "edges"):
                self._db.execute(f"DELETE FROM {table} WHERE row = ?", (row,))
            self._db.execute("UPDATE pending SET row = NULL WHERE row = ?", (row,))
        if out:
            self._forget_numbers()
        self._tell("SELECT max(live) FROM notes WHERE key = ?", (key for _, key in out))

    def _refuse(self, notes_since: int, entries_since: int) -> None:
        """Takes out what no operation has written and what would be refused if one did: a secret in a commit.

        An operation's line is one that is vouched for: anybody can push others.
        """
        notes = self._db.execute(
            "SELECT n.row, n.path, n.blob, n.key, n.id FROM notes n"
            " LEFT JOIN ledger l ON l.about = n.blob AND l.vouched"
            " WHERE n.row > ? AND l.about IS NULL",
            (notes_since,),
        ).fetchall()
        out = [item for item in notes if self._admit(self._blob(item[2]) or b"", item[1]) is not None]
        out += self._named_by_git(notes_since)
        for _, path, blob, _, note_id in out:
            self._db.execute("INSERT OR REPLACE INTO refused VALUES (?, ?, ?)", (path, note_id, blob))
        self._remove([(row, key) for row, _, _, key, _ in out])
        entries = self._db.execute(
            "SELECT e.row, e.path, e.id, e.key, e.text FROM entries e"
            " LEFT JOIN ledger l ON l.about = e.id AND l.vouched"
            " WHERE e.row > ? AND (l.about IS NULL OR l.key != e.key) AND e.text != ''",
            (entries_since,),
        ).fetchall()
        said = [item for item in entries if self._admit(item[4].encode("utf-8", "surrogatepass"), item[1]) is not None]
        for _, path, entry, _, _ in said:
            self._db.execute("INSERT OR REPLACE INTO refused VALUES (?, ?, '')", (path, entry))
        self._blank([(row, key) for row, _, _, key, _ in said])

    def _named_by_git(self, since: int) -> list[tuple[int, str, str, str, str]]:
        """What an operation has written and plain Git has moved to a path that may not be kept: a secret in a name."""
        moved = self._db.execute(
            "SELECT n.row, n.path, n.blob, n.key, n.id FROM notes n JOIN ledger l ON l.about = n.blob AND l.vouched"
            " WHERE n.row > ? AND EXISTS (SELECT 1 FROM notes o WHERE o.id = n.id AND o.path != n.path)",
            (since,),
        )
        return [item for item in moved.fetchall() if self._admit(b"", item[1]) is not None]

    def _allowed_again(self) -> bool:
        """Whether a note that was refused is not any more, since a person has allowed what it says.

        Asked again only when something was settled since: each has to be read and searched for that.
        """
        told = self._db.execute("SELECT value FROM state WHERE name = 'settled'").fetchone()
        if told is not None and told[0] == self._settled:
            return False
        self._db.execute("INSERT OR REPLACE INTO state VALUES ('settled', ?)", (self._settled,))
        held = self._db.execute("SELECT path, blob FROM refused WHERE blob != ''").fetchall()
        return any(self._admit(self._blob(blob) or b"", path) is None for path, blob in held)

    def _forget_numbers(self) -> None:
        """The number of a row that went is given again: what bears it then was not looked at by anybody."""
        told = self._db.execute("SELECT value FROM state WHERE name = 'claimed'").fetchone()
        if told is not None:
            note, entry = map(int, told[0].split())
            claimed = f"{min(note, self.rows()[0])} {entry}"
            self._db.execute("UPDATE state SET value = ? WHERE name = 'claimed'", (claimed,))

    def _entries(self, tombs: Tombs, since: int) -> None:
        query = "SELECT row, path, id, key, text FROM entries WHERE row > ? AND text != ''"
        out = [
            (row, path, entry, key, tomb.mark)
            for row, path, entry, key, text in self._db.execute(query, (since,))
            if erased_on(text) is None and (tomb := tombs.of(entry, text, turn=True)) is not None
        ]
        for _, path, entry, _, mark in out:
            self._db.execute("INSERT OR REPLACE INTO kept_out VALUES (?, ?, '', ?)", (path, entry, mark))
        self._blank([(row, key) for row, _, _, key, _ in out])

    def _blank(self, out: Sequence[tuple[int, str]]) -> None:
        """Takes out the words of entries, by their rows and keys; the row stays, since it is a place in its journal."""
        self._db.executemany("UPDATE entries SET text = '' WHERE row = ?", [(row,) for row, _ in out])
        query = "SELECT max(1) FROM entries WHERE key = ? AND text != '' HAVING count(*) > 0"
        self._tell(query, (key for _, key in out))

    def _tell(self, query: str, keys: Iterable[str]) -> None:
        """Tells the content indexes what has become of documents; `query`: whether one is live elsewhere, or None."""
        for key in dict.fromkeys(keys):
            left = self._db.execute(query, (key,)).fetchone()
            live = DROPPED if left is None or left[0] is None else left[0]
            self._db.execute("INSERT INTO feed (key, live) VALUES (?, ?)", (key, live))

    def rows(self) -> tuple[int, int]:
        """The last rows of notes and of entries."""
        found = (self._db.execute(f"SELECT coalesce(max(row), 0) FROM {t}").fetchone()[0] for t in ("notes", "entries"))
        notes, entries = found
        return notes, entries


def refused(db: sqlite3.Connection) -> Iterator[KeptOut]:
    """What stands in a commit now, may not be kept, and is not shown, by path."""
    return _standing(db, "refused")


def kept_out(db: sqlite3.Connection) -> Iterator[KeptOut]:
    """What is kept out now, by path."""
    return _standing(db, "kept_out")


def _standing(db: sqlite3.Connection, table: str) -> Iterator[KeptOut]:
    query = (
        f"SELECT k.path, k.about, k.blob FROM {table} k JOIN files f ON f.path = k.path AND k.blob IN ('', f.blob)"
        " ORDER BY k.path, k.about"
    )
    yield from (KeptOut(*row) for row in db.execute(query))
