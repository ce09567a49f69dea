"""The tombstones of an open Home, and what is refused because of them when it is found in a file."""

from __future__ import annotations

from collections.abc import Mapping

from memoranda.home.holding import Holding
from memoranda.home.record import Record
from memoranda.home.tombstones import Mirror, Mirrored, Seals
from memoranda.index.indexes import Indexes
from memoranda.index.keepout import Tombs, tombs_of
from memoranda.index.withheld import Tombstone
from memoranda.notes.journal import is_journal_path

REMEDY = "A person can remember it again at a terminal, and that is kept on record."


def forgotten_on(tomb: Tombstone) -> str:
    """` on <date>`, where that is known."""
    return f" on {tomb.at:%Y-%m-%d}" if tomb.at else ""


class TombBook:
    """The tombstones of one Home, kept up by every record that this process reads or writes."""

    def __init__(self, repository: Holding, indexes: Indexes) -> None:
        self._repository = repository
        self._indexes = indexes
        self._tombs: Tombs | None = None
        self._state: str | None = None
        self._generation = 0  # of erasings: their tombstones come with the ledger and not as records
        self._news = 0  # a record may be heard while the tombstones are read; no lock, since its writer holds one
        repository.subscribe('"kind":"tombstone"', self._heard)

    def _heard(self, _record: Record) -> None:
        self.renew()

    def renew(self) -> None:
        """What is held may be out of date: read again at the next question."""
        self._news += 1
        self._tombs = None

    def now(self) -> Tombs:
        """The tombstones in force."""
        generation = self._repository.erasures.generation()
        tombs = self._tombs if generation == self._generation else None
        if tombs is None:
            news, indexes = self._news, self._indexes
            with indexes.lock:
                indexes.catch_up()
                named = self._repository.keys, self._repository.marker.id
                mirror, told = Mirror(*named), Mirror(*named).read()
                tombs = indexes.mending(lambda: tombs_of(indexes.catalog.db, told, Seals(*named)))
                state = indexes.catalog.state("tombs")
                _keep(mirror, told, tombs)
            if news == self._news:
                self._tombs, self._state, self._generation = tombs, state, generation
        return tombs

    def compare(self) -> None:
        """Lines that another clone wrote come with its ledger, and not as records: the catalog has just met them."""
        with self._indexes.lock:
            if self._tombs is not None and self._indexes.catalog.state("tombs") != self._state:
                self.renew()

    def admit(self, data: bytes, path: str) -> str | None:
        """Why a file that was found may not be taken in, None when it may. A journal may: its words are kept out."""
        tombs = self.now()
        if not tombs or is_journal_path(path):
            return None
        from memoranda.notes.model import read_note

        note = read_note(path, data)
        tomb = tombs.of(note.id, note.body)
        return None if tomb is None else f"what it holds was forgotten{forgotten_on(tomb)}. {REMEDY}"


def _keep(mirror: Mirror, told: Mapping[str, Mirrored], tombs: Tombs) -> None:
    """Takes over into the mirror what the ledger has and the mirror has not."""
    fresh: dict[Mirrored, list[str]] = {}
    for tomb in tombs:
        if tomb.mark not in told or told[tomb.mark].lifted:
            at = tomb.at.isoformat() if tomb.at else None
            said = Mirrored(False, at, tomb.owner, tomb.key, tuple(sorted(tomb.stays)))
            fresh.setdefault(said, []).append(tomb.mark)
    for said, marks in fresh.items():
        mirror.add(marks, said)
