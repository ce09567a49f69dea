"""One open Home: what every operation works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, TypeVar

from memoranda.context import Context
from memoranda.errors import Unavailable
from memoranda.home.holding import Holding
from memoranda.index.indexes import Indexes
from memoranda.index.journal_mode import named_errors
from memoranda.trust.reviews import reviewed_blobs
from memoranda.values import dataclass, field

FOLDER_LIMIT = 900  # entries of one directory; the next one is called `<name>~2`
_RECOUNT = 64

T = TypeVar("T")
P = ParamSpec("P")
if TYPE_CHECKING:
    from memoranda.home.record import Record
    from memoranda.home.repository import Repository
    from memoranda.operations.admission import Rules
    from memoranda.operations.sessions import SessionBook
    from memoranda.operations.tomb_book import TombBook
    from memoranda.trust.envelope import Envelope
    from memoranda.trust.signing import Signing
    from memoranda.trust.withdrawn import Withdrawn


class Duties(NamedTuple):
    """What a look at a Home may come to, done by operations that stand above it.

    `claim` stamps what commits of Git brought in, `trust` reviews a person's own edits where they have asked for it,
    `retest` asks the golden questions of an index that was made anew, `keep_up` has the vectors of a server brought up
    in the background, `keep_up_others` the recipes that do not answer.
    """

    claim: Callable[[Context, OpenHome], None]
    trust: Callable[[Context, OpenHome], None]
    retest: Callable[[Context, OpenHome], None]
    keep_up: Callable[[OpenHome], None]
    keep_up_others: Callable[[OpenHome], None]


@dataclass(slots=True)
class Upkeep:
    """When the recipes that do not answer are looked at again (`time.monotonic`), and what was seen the last time."""

    due: float = 0.0
    seen: tuple[int, tuple[str, ...]] | None = None


@dataclass(slots=True)
class OpenHome:
    """One open Home with its indexes. `personal` marks the person's own, which no project brought along.

    `sheets` holds the part of an agent's day in its journal that is known to have room: (agent, day) -> part.
    `remembered` is the record after which `memory/MEMORY.md` was last looked at. `trusts_edits` when the person alone
    writes here and has said so outside the Home; `edits` are the blobs of such edits that are not reviewed yet. `made`
    says how often the indexes had been made anew (`Indexes.made`) when a reader's request began.
    """

    repository: Holding
    indexes: Indexes
    withdrawn: Withdrawn
    duties: Duties
    personal: bool = False
    signing: Signing | None = None
    sheets: dict[tuple[str, date], int] = field(default_factory=dict)
    watched: bool = False
    remembered: int = 0
    upkeep: Upkeep = field(default_factory=Upkeep)
    trusts_edits: bool = False
    edits: dict[str, str] = field(default_factory=dict)
    made: int = 0
    _counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    _sessions: SessionBook | None = None
    _tombs: TombBook | None = None
    _envelope: Envelope | None = None
    _rules: Rules | None = None

    @property
    def name(self) -> str:
        return self.repository.name

    @property
    def in_folder(self) -> Repository | None:
        """Its repository, for what is only about files in folders; None for a Home that lies in a database."""
        from memoranda.home.repository import Repository

        return self.repository if isinstance(self.repository, Repository) else None

    @property
    def on_disk(self) -> Repository:
        """The same for what cannot be done elsewhere: Unavailable for a Home that lies in a database."""
        if (repository := self.in_folder) is None:
            raise Unavailable(
                "This works on the files of a Home only.", why=f"The Home {self.name} lies in a database.",
                remedy="Move it to a folder with `memoranda move`, or ask the service.",
            )  # fmt: skip
        return repository

    @property
    def sessions(self) -> SessionBook:
        """The sessions of this Home; opened at the first question."""
        if self._sessions is None:
            from memoranda.operations.sessions import SessionBook

            self._sessions = SessionBook(self.repository, self.indexes)
        return self._sessions

    @property
    def tombs(self) -> TombBook:
        """What is forgotten here; opened at the first question."""
        if self._tombs is None:
            from memoranda.operations.tomb_book import TombBook

            self._tombs = TombBook(self.repository, self.indexes)
        return self._tombs

    @property
    def envelope(self) -> Envelope:
        """What puts recalled words of this Home between markers, under this installation's key."""
        if self._envelope is None:
            from memoranda.trust.envelope import Envelope

            self._envelope = Envelope(self.repository.keys.get("envelope", self.repository.marker.id))
        return self._envelope

    @property
    def rules(self) -> Rules:
        """What a person has settled for what comes in here."""
        if self._rules is None:
            from memoranda.operations.admission import Rules

            self._rules = Rules(self.repository.keys, self.repository.marker.id)
        return self._rules

    def reviewed(self, blob: str) -> bool:
        """Whether a review stands that counts for these exact bytes."""
        with self.indexes.lock:
            return blob in reviewed_blobs(self.indexes.catalog, [blob])

    def refresh(self, context: Context, *, content: bool = True) -> None:
        """Takes in outside edits and brings the indexes up to date: what every read begins with. Without `content`:
        see `Indexes.catch_up`."""
        self.indexes.mending(lambda: self._refresh(context, content))

    def _refresh(self, context: Context, content: bool) -> None:
        if self.repository.comparing:
            self._prepare()
        _, snapshot = self.repository.sight(context)
        self.indexes.catch_up(snapshot, content=content)
        with self.indexes.lock:
            unclaimed = self.indexes.catalog.unclaimed()
        if self._sessions is not None:
            self._sessions.compare()
        if unclaimed:
            self.duties.claim(context, self)
        if self.edits:
            self.duties.trust(context, self)
        if self._tombs is not None:
            self._tombs.compare()
        if self.indexes.changed:
            self.duties.retest(context, self)
        if self.indexes.active().remote:
            self.duties.keep_up(self)
        if self.watched:
            self.duties.keep_up_others(self)

    def _prepare(self) -> None:
        """While Git still compares many files: what comes afterwards, and what an edit would need."""
        self.indexes.catch_up()
        with self.indexes.lock:
            self.indexes.lexical.read_ahead()
        for module in ("operations.admission", "operations.claiming", "index.fill"):
            if self.repository.comparing:
                import_module(f"memoranda.{module}")

    def folder_with_room(self, folder: str) -> str:
        """`folder`, or `folder~2`, … : the first that holds fewer than 900 entries."""
        part = 1
        while True:
            name = folder if part == 1 else f"{folder}~{part}"
            count, age = self._counts.get(name, (0, _RECOUNT))
            if age >= _RECOUNT:  # other processes write here too
                count, age = self.repository.entries(name), 0
            if count < FOLDER_LIMIT:
                self._counts[name] = (count + 1, age + 1)
                return name
            self._counts[name] = (count, 0)
            part += 1

    def news_for_memory(self) -> bool:
        """Whether what was recorded since the last time can change `memory/MEMORY.md`; never without a review."""
        if self.repository.sequence == self.remembered or self.repository.read_only is not None:
            return False
        records = self.repository.ahead(self.remembered)
        self.remembered = self.repository.sequence
        if records is not None and not any(self._may_load(record) for record in records):
            return False
        self.indexes.catch_up()
        with self.indexes.lock:
            return self.indexes.catalog.ledger.has_reviews()

    def _may_load(self, record: Record) -> bool:
        """Whether a record can change what is loaded automatically: it changes a note, or holds a review."""
        notes = any(self.repository.ours.is_note(change.path) for change in record.changes)
        return notes or any('"kind":"review"' in line for line in record.ledger)

    def seen_by(self, places: Iterable[str], keep_days: int | None = None) -> OpenHome:
        """This Home as a reader of these places has it (see `index.reader`), who has to `leave` it.

        For him nothing is kept longer than `keep_days`.
        """
        from memoranda.index.reader import ReaderIndexes

        duties = Duties(
            lambda context, _: self.duties.claim(context, self),
            lambda context, _: self.duties.trust(context, self),
            lambda context, _: self.duties.retest(context, self),
            lambda _: self.duties.keep_up(self),
            lambda _: self.duties.keep_up_others(self),
        )
        return OpenHome(
            self.repository, ReaderIndexes(self.indexes, places, keep_days), self.withdrawn, duties, self.personal,
            self.signing, self.sheets, self.watched, self.remembered, self.upkeep, self.trusts_edits, self.edits, 0,
            self._counts, self.sessions, self.tombs, self.envelope,
        )  # fmt: skip

    def leave(self) -> None:
        """A reader is done with what `seen_by` gave."""
        from memoranda.index.reader import ReaderIndexes

        if isinstance(self.indexes, ReaderIndexes):
            self.indexes.give_back()

    def rest(self) -> None:
        """Nobody asks for a while: what is held in memory and can be read again is given back. IndexDamaged."""
        self.indexes.rest()
        self.repository.rest()

    def close(self) -> None:
        try:
            self.indexes.close()
        finally:
            self.repository.close()


def undisturbed(work: Callable[Concatenate[OpenHome, P], T]) -> Callable[Concatenate[OpenHome, P], T]:
    """For a function that reads the catalog of a Home, its first argument, more than once or for long.

    Until it has returned no other thread is in the middle of catching up, and the index is the same one. It may not
    write: who writes waits for indexes, so that two threads would wait for each other. IndexDamaged, IndexBusy.
    """

    @wraps(work)
    def alone(home: OpenHome, /, *args: P.args, **more: P.kwargs) -> T:
        with home.indexes.lock, named_errors("An index"):
            return work(home, *args, **more)

    return alone


def first_found(homes: Sequence[OpenHome], look: Callable[[OpenHome], T | None]) -> tuple[OpenHome, T] | None:
    """The first Home in which `look` finds something, with what it found."""
    for home in homes:
        found = look(home)
        if found is not None:
            return home, found
    return None


def sought(
    context: Context, homes: Sequence[OpenHome], look: Callable[[OpenHome], T | None]
) -> tuple[OpenHome, T] | None:
    """As `first_found`, and once more after a fresh look at the files when nothing is found: an editor may have written
    it a moment ago, or a person's Git have been elsewhere just then."""
    found = first_found(homes, look)
    if found is None:
        for home in homes:
            home.refresh(context)
        found = first_found(homes, look)
    return found
