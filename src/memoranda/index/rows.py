"""The rows of the catalog as values."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from memoranda.notes.chains import Link
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A note as the catalog knows it.

    `key` is its document in the content indexes; `known_to` is None while the row is what the path holds (`live`).
    """

    row: int
    path: str
    blob: str
    key: str
    id: str
    live: bool
    known_from: datetime
    known_to: datetime | None
    kind: str
    subject: str | None
    scope: str
    owner: dict[str, str]
    valid_from: datetime | None
    valid_to: datetime | None
    recorded_at: str | None
    confidence: float | None
    origin: str
    taint: tuple[str, ...]
    reviewed: bool
    classification: str
    generated: bool
    sources: tuple[str, ...]
    supersedes: tuple[str, ...]
    title: str
    tags: tuple[str, ...]
    links: tuple[str, ...]
    body: str
    front_lines: int
    problems: tuple[str, ...]
    retention_days: int | None
    legal_hold: bool
    retention_class: str | None

    def known_at(self, t: datetime) -> bool:
        return self.known_from <= t and (self.known_to is None or t < self.known_to)

    def link(self) -> Link:
        from memoranda.notes.chains import Link  # here: most questions meet no chain

        return Link(self.id, self.supersedes, self.valid_from, self.valid_to, self.known_from)


class Totals(NamedTuple):
    """How many live notes and journal entries a catalog has, and the commit that it reflects."""

    notes: int
    entries: int
    commit: str | None


class Brief(NamedTuple):
    """What is needed to judge whether a note may be shown; times as the table keeps them (known: s, valid: ms).

    `linked` is 1 when some note, live or former, supersedes this one.
    """

    key: str
    row: int
    path: str
    id: str
    live: int
    known_from: int
    known_to: int | None
    kind: str
    valid_from: int | None
    valid_to: int | None
    title: str
    blob: str
    displayed: str
    linked: int
    stamp: str | None

    @property
    def tainted(self) -> bool:
        """Whether the ledger has stamped these bytes with a taint, or the file itself displays one."""
        return self.displayed != "[]" or self.stamp is not None


class Shown(NamedTuple):
    """What a reader is told of a note; times in milliseconds. `disputed` is 1 when another may contradict it.

    `seal` shows that the row says what its blob says (see `tables.is_sealed`).
    """

    row: int
    path: str
    blob: str
    id: str
    kind: str
    subject: str | None
    scope: str
    body: str
    front_lines: int
    origin: str
    valid_from: int | None
    valid_to: int | None
    recorded_at: str | None
    classification: str
    title: str
    seal: bytes
    sources: tuple[str, ...]
    supersedes: tuple[str, ...]
    taint: tuple[str, ...]
    disputed: int


class Said(NamedTuple):
    """A journal entry as ranking sees it, a `recall.facts.Known`: `at_ms` and `recorded` in milliseconds, `recorded`
    by the ledger; `thread` is the path of its file, `session` is "" where it has none."""

    key: str
    at_ms: int
    thread: str
    place: int
    session: str
    speaker: str
    recorded: int | None
    taint: str | None

    @property
    def title(self) -> str:
        return ""

    @property
    def state(self) -> str:
        return "current"


@dataclass(frozen=True, slots=True)
class EntryRow:
    """A journal entry: `place` counts the entries of its file, `first` and `last` are its lines.

    `about` is what the ledger calls it: its id, or its key when its words are not those written under that id.
    """

    path: str
    place: int
    id: str
    key: str
    at: datetime
    speaker: str
    first: int
    last: int
    text: str
    about: str
