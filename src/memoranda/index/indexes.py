"""All derivatives of one Home: the catalog and what is built on it, brought up to date together, and made again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from memoranda.errors import IndexDamaged, Unavailable
from memoranda.home.draft import Snapshot
from memoranda.home.durable import FileLock
from memoranda.home.store import LEDGER_REF
from memoranda.index.catchup import CatchUp
from memoranda.index.content import ContentIndex, Part, described
from memoranda.index.feeding import Feeding
from memoranda.index.journal_mode import is_broken, named_errors
from memoranda.index.opening import Opened, Present
from memoranda.index.places import put, remove
from memoranda.index.recipe import Manifest
from memoranda.index.recipes import NamedRecipe
from memoranda.index.tables import RECIPE as CATALOG
from memoranda.notes.times import format_instant

T = TypeVar("T")
_DELETIONS = 4  # of `.memoranda/` that may come in between one after the other
_WORTHWHILE = 2048  # documents that are embedded ahead together, so that they make whole chunks
REBUILDING = "rebuilding"  # the directory of `.memoranda/` in which the indexes are made again
_TOGETHER = 16  # documents that writers leave to whoever asks next; more, and the next writer takes them in


class Indexes(Opened):
    """The indexes of one repository, see `Opened`; whoever asks brings them up to date first."""

    # Catching up

    def catch_up(self, seen: Snapshot | None = None, *, content: bool = True) -> Snapshot:
        """Brings catalog and content indexes to the present; returns the snapshot that they reflect now.

        `seen` is a snapshot that was taken a moment ago, if there is one: it is not taken again when nothing changed.
        Without `content` the content indexes may stay behind by some documents: for who does not ask them.
        A damaged index is made again. IndexBusy, Unavailable: nothing is thrown away because it cannot be used now.
        """
        with self.lock:
            for _ in range(_DELETIONS):
                try:
                    return self._caught_up(seen, content)
                except FileNotFoundError:  # somebody is deleting `.memoranda/` just now
                    self._close()
            return self._caught_up(seen, content)

    def _caught_up(self, seen: Snapshot | None, content: bool) -> Snapshot:
        self._reopen_if_deleted()
        try:
            with named_errors("An index"):
                return self._bring(seen, content)
        except IndexDamaged as error:
            self.discard(error)
            return self._bring()
        except Unavailable:
            if not self._reopen_if_deleted():
                raise
            return self._bring()  # it was deleted under our hands, by an erasing or a person

    def claimed(self, upto: str) -> None:
        """See `Catalog.claimed`. No index goes by that: what was up to date stays so."""
        with self.lock:
            before, level = self.catalog.mark(), self._level
            self.catalog.claimed(upto)
            if level is not None and level.catalog == before:
                self._level = level._replace(catalog=(before[0], self.catalog.mark()[1]))

    def ahead(self, *, last: bool = False) -> None:
        """A catch-up while many notes are being written: what the log says, and not yet what becomes of it in Git.

        `catch_up` afterwards finds little to do. Processes can share it: `ahead_catalog`, `ahead_content`,
        `ahead_vectors`.
        """
        self.ahead_catalog()
        self.ahead_content(last=last)

    def ahead_catalog(self) -> None:
        with self.lock, named_errors("The catalog"):
            self._reopen_if_deleted()
            if not CatchUp(self.repository, self.catalog, self.progress, self.admit).ahead():
                CatchUp(self.repository, self.catalog, self.progress, self.admit).run()

    def ahead_content(self, *, last: bool = False) -> None:
        """Many new documents are analysed at once, and written when they make a segment, or with the `last` call."""
        with self.lock:
            self._reopen_if_deleted()
            if self._gathering is None:
                self._gathering = self._feeding()
            if last:
                self._gathering.bring()
                self._gathering = None
            else:
                self._gathering.gather()

    def ahead_vectors(self, *, last: bool = False) -> None:
        """As `ahead_content`, of the vectors that a recall waits for. IndexDamaged, Unavailable, IndexBusy."""
        with self.lock:
            self._reopen_if_deleted()
            part = self.active().table
            if part is None or (index := self.opened(part)) is None:
                return
            if last or self._behind(index) >= _WORTHWHILE:
                part.bring(self.catalog, index, self._identity(), self.progress)

    def awaits_vectors(self) -> bool:
        """Whether there are vectors that a recall waits for."""
        return (part := self.active().table) is not None and self.opened(part) is not None

    def _behind(self, index: ContentIndex) -> int:
        """How much the feed says that an index has not heard."""
        (told,) = self.catalog.db.execute("SELECT coalesce(max(n), 0) FROM feed").fetchone()
        return int(told) - int(index.state().get("feed", "0"))

    def look_again_for_forgotten(self) -> None:
        """A key has come: what could not be compared before is compared at the next catch-up."""
        with self.lock:
            self.catalog.set_state(tombs=None, ledger="")

    def _bring(self, seen: Snapshot | None = None, content: bool = True) -> Snapshot:
        started = time.monotonic()
        if seen is None and self.repository.guarded(()) is not None:
            seen = self.repository.snapshot()  # there is no log behind it: what this node wrote is told from memory
        present = self._present(seen) if seen is not None else None
        if seen is not None and present == self._level:
            return seen
        catching = CatchUp(self.repository, self.catalog, self.progress, self.admit)
        if seen is not None and seen.seq > int(self.catalog.state("seq") or 0):
            catching.ahead()  # what the log tells; that commits hold the same is then seen without asking Git
        done = catching.run(seen)
        self.made += done.rebuilt is not None
        if not (content or done.rebuilt) and self._behind(self.lexical) < _TOGETHER:
            return done.snapshot
        for part in self.active().awaited:
            self._follow(part)
        if done.changed and done.rebuilt:
            self._write_manifests(int((time.monotonic() - started) * 1000))
        self._level = None if present is None else self._reached(present, done.snapshot)
        return done.snapshot

    def _present(self, seen: Snapshot) -> Present:
        """What a catch-up looks at, and whether anybody has written to an index since: equal means nothing to do."""
        ledger = self.repository.store.ref(LEDGER_REF)
        chosen = self.serving_record.mark()
        at = seen.commit, seen.seq, len(seen.tail), ledger, chosen
        return Present(at, self.catalog.mark(), self.lexical.mark())

    def _reached(self, before: Present, now: Snapshot) -> Present | None:
        """To what everything is up to date after a catch-up; None when somebody else has written meanwhile."""
        *_, ledger, chosen = before.at
        catalog, lexical = self.catalog.mark(), self.lexical.mark()
        # The first of each mark is moved by others only, the second by ourselves.
        if (catalog[0], lexical[0]) != (before.catalog[0], before.lexical[0]):
            return None
        return Present((now.commit, now.seq, len(now.tail), ledger, chosen), catalog, lexical)

    def _follow(self, part: Part) -> None:
        """Brings one index up to the catalog."""
        if (index := self.opened(part)) is not None:
            part.bring(self.catalog, index, self._identity(), self.progress)

    def bring(self, recipe: NamedRecipe) -> None:
        """Brings every index of a recipe up to the catalog, whichever is active. Raises what its parts raise."""
        with self.lock:
            for part in recipe.parts:
                part.bring(self.catalog, self._opened(part), self._identity(), self.progress)
                self.describe(part, 0)

    def foresee(self, question: str, recipe: NamedRecipe | None) -> None:
        """Has the server of a remote recipe see a question before anybody waits for this lock because of it."""
        with self.trying(recipe):
            model = self.model
        if model is not None:
            try:
                model.embedder.embed_question(question, lambda _: 1.0)
            except Unavailable:
                pass  # the search finds the same in a moment, and tells of it

    def behind(self) -> Part | None:
        """What the active recipe has in the background and is not up to the catalog; None when all is well."""
        part = self.active().model
        with self.lock:
            if part is None or self.model is None or part.is_level(self.catalog, self._opened(part)):
                return None
        return part

    def _feeding(self) -> Feeding:
        return Feeding(self.catalog, self.lexical, self._identity(), self.progress)

    def _identity(self) -> str:
        """The name of this catalog, by which a content index knows whether it has followed it."""
        identity = self.catalog.state("identity")
        if identity is None:
            identity = self._context.random(8).hex()
            self.catalog.set_state(identity=identity)
        return identity

    # What people ask and tell

    def _write_manifests(self, took_ms: int) -> None:
        inputs = {name: self.catalog.state(name) or "" for name in ("commit", "seq", "ledger")}
        counts = {"notes": self.catalog.count_notes(), "journal": self.catalog.count_entries()}
        Manifest(CATALOG, inputs, self._now(), took_ms, counts).write(self.catalog.directory)
        for part in self.active().awaited:
            if part.name in self._open:
                self.describe(part, took_ms)

    def describe(self, part: Part, took_ms: int) -> None:
        """Writes the manifest of an index, which is as far as the catalog."""
        described(self.catalog, part, self._opened(part), self._now(), took_ms)

    def _now(self) -> str:
        return format_instant(self._context.now().replace(microsecond=0))

    def drop(self, name: str | None = None) -> list[str]:
        """Deletes every index, or the directory `name`; returns what was deleted. Nothing is lost by it."""
        with self.lock:
            self._close()
            cache = self._folder
            found = sorted(path.name for path in cache.iterdir() if path.is_dir()) if cache.is_dir() else []
            gone = [item for item in found if name in (None, item)]
            for item in gone:
                remove(cache / item)
            return gone

    def rebuild(self) -> Snapshot:
        """Makes the catalog and every index of the active recipe again from the notes; what stands beside it stays.

        They are made in a folder of their own and put in their places when they are done: until then other processes
        recall and write by those that are there. Unavailable: `.memoranda/` was deleted meanwhile.
        """
        folder = self._folder / REBUILDING
        with self.lock:
            turn = self._turn()
            try:
                turn.acquire()
                return self._rebuild(folder)
            finally:
                if folder.exists():  # it did not come to an end: the disk is full, somebody interrupted it
                    remove(folder)
                turn.close()

    def _turn(self) -> FileLock:
        return FileLock(self.repository.layout.own / "rebuilding.lock")

    def sweep(self, *, only_look: bool = False) -> bool:
        """Takes away what a rebuild left that was killed; returns whether there is such a thing."""
        folder = self._folder / REBUILDING
        if not folder.exists():
            return False
        turn = self._turn()
        try:
            dead = turn.try_acquire()
            if dead and not only_look:
                remove(folder)
            return dead
        finally:
            turn.close()

    def _rebuild(self, folder: Path) -> Snapshot:
        if folder.exists():  # whoever made it was killed
            remove(folder)
        folder.mkdir(parents=True)
        anew = Indexes(self.repository, self._context, self.progress, self._counts, self._endpoint, folder)
        anew.admit = self.admit
        try:
            anew.catch_up()
        finally:
            anew.close()
        self._close()
        # The catalog last: an index that is ahead of it is compared with it, and nothing is made twice.
        parts = [part.name for part in self.active().parts]
        for name in (*parts, CATALOG.directory_name()):
            put(folder / name, self._folder / name)
        remove(folder)
        return self.catch_up()

    def check(self, name: str) -> None:
        """Reads everything of one index that answers; IndexDamaged when it does not hold together."""
        with self.lock, named_errors(f"The index {name}"):
            if name == CATALOG.directory_name():
                self.catalog.check()
            for part in self.active().parts:
                if part.name == name and (index := self.opened(part)) is not None:
                    index.check()

    def mending(self, ask: Callable[[], T]) -> T:
        """The answer to a question that writes nothing: asked again when an index turns out broken in the middle of it,
        and was made anew. IndexDamaged when that does not help; IndexBusy, Unavailable."""
        try:
            with named_errors("An index"):
                return ask()
        except IndexDamaged as error:
            if not is_broken(error):
                raise
            self.discard(error)
        self.catch_up()
        with named_errors("An index"):
            return ask()

    def discard(self, error: IndexDamaged) -> None:
        """What answers turned out damaged in the middle of a question: the next catch-up makes it again."""
        with self.lock:
            self.notices.append(f"An index was damaged ({error.why or error.what}) and was made again.")
            self._discard()

    def _discard(self) -> None:
        self._close()
        for name in (CATALOG.directory_name(), *(part.name for part in self.active().parts)):
            if (self._folder / name).exists():
                remove(self._folder / name)

    def rest(self) -> None:
        """Gives back what is held in memory and read again by whoever asks next; all stays open. IndexDamaged."""
        with self.lock:
            while len(self.lent) > 1:
                self.lent.pop().close()
            for held in (self._catalog, *self.lent, *self._open.values()):
                if held is not None:
                    held.rest()
