"""Erases texts from a Home's whole history, so that nothing in the Home holds them any more.

In two halves. The first looks through all objects and writes the new ones beside the old: a crash in it leaves the Home
as it was. Then the plan is written, in ids and numbers and without a word of the text; from there on the erasing will
be finished, by this process or by the next that opens the Home. The old objects go last, so that every step before can
be done again from them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from memoranda.context import Context
from memoranda.errors import HomeBusy
from memoranda.home.durable import lock_with, sync_path, unlock_dead
from memoranda.home.erasing import plan as plans
from memoranda.home.erasing.bytesearch import in_files, in_objects
from memoranda.home.erasing.finish import PURGING, Finisher, Outcome
from memoranda.home.erasing.needles import Needles
from memoranda.home.erasing.plan import Lines, Plan
from memoranda.home.erasing.prepare import Preparation, Texts, known_blobs, list_objects, noted, texts_of
from memoranda.home.erasing.purge import alternates, still_there
from memoranda.home.erasing.redact import Messages
from memoranda.home.erasing.rerefs import linked_worktrees, under_way
from memoranda.home.erasing.survey import Survey
from memoranda.home.pieces import Pieces
from memoranda.notes.ids import new_id
from memoranda.values import dataclass, replace

_LOCK = "lock"
_TRIES = 100
_STEP = 0.02
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Whole:
    """A blob that has to go, wherever it stands: the exact bytes of one version of a note."""

    blob: str


Blank = Whole | Lines


@dataclass(frozen=True, slots=True)
class Erasure:
    """What an erasing did.

    `files` is the number of versions that went whole, `blanked` that of versions of which lines went, `commits` that of
    commits written again. `removed` is told in words, `remains` is (what, why) for everything that holds the text or
    may hold it and could not be reached. `found` are the places where the search at the end still met the text; it is
    empty when nothing in the Home holds it. `id` is empty when there was nothing to do.
    """

    id: str
    day: str
    files: int = 0
    blanked: int = 0
    commits: int = 0
    refs: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    remains: tuple[tuple[str, str], ...] = ()
    found: tuple[str, ...] = ()


class Eraser:
    """Erases in one open Home.

    Args:
        repair: finishes what a writer left that died, inside the log's lock.
        step: told of each step before it is done; tests stop there.
    """

    def __init__(
        self, pieces: Pieces, repair: Callable[[], None], step: Callable[[str], None] = lambda _name: None
    ) -> None:
        self._p = pieces
        self._repair = repair
        self._step = step

    def erase(
        self, context: Context, blanks: Sequence[Blank], reason: str, testimony: Sequence[Mapping[str, Any]] = ()
    ) -> Erasure:
        """Erases these texts; `testimony` are fields of lines that the ledger gets in the same step.

        Raises:
            HomeBusy: a merge, a rebase or a lock is in the way; nothing was changed.
            NotFound: a blob never was in this Home.
            InvalidInput: the reason repeats the text, or a blob is no file.
        """
        p = self._p
        at = context.now().astimezone(UTC)
        header = {
            "erasure": new_id("era", context.random), "at": at.isoformat(), "day": f"{at:%Y-%m-%d}",
            "reason": " ".join(reason.split()), "user": context.user,
            plans.TESTIMONY: [dict(line) for line in testimony],
        }  # fmt: skip
        with self._alone() as flush:
            self._finish_former()
            branch, head = self._quiet(flush)
            nothing = Erasure("", str(header["day"]))
            whole, lines = known_blobs(
                p, [b.blob for b in blanks if isinstance(b, Whole)], [b for b in blanks if isinstance(b, Lines)]
            )
            if head is None or not (whole or lines):
                return nothing
            with self._git_held_off():
                self._step("survey")
                texts = texts_of(p, head, whole, lines)
                assert texts is not None
                if more := [oid for oid in noted(p, texts) if oid not in whole]:
                    whole = [*whole, *more]
                    texts = texts_of(p, head, whole, lines)
                    assert texts is not None
                preparation = Preparation(p, texts, whole, lines, header)
                try:
                    plan = preparation.plan(branch, head, at)
                    if plan is None:
                        preparation.discard()
                        return nothing
                    self._step("decide")
                    plans.save(p.folder, plan)
                except BaseException:
                    if not plans.decided(p.folder):
                        preparation.discard()
                    raise
                plan, outcome = self._carry_out(plan, texts, preparation.messages)
                self._step("search")
                return self._told(plan, outcome, preparation, texts.needles)

    def resume(self) -> None:
        """Finishes an erasing that a crash cut short, or clears away what one left that was not decided."""
        with self._alone():
            self._finish_former()

    def _finish_former(self) -> None:
        p = self._p
        plan = plans.load(p.folder) if p.folder.exists() else None
        if plan is None:
            if p.folder.exists():
                unlock_dead(p.layout.git_dir / "index.lock", p.folder / _LOCK)
                shutil.rmtree(p.folder)
            return
        with self._git_held_off():
            begun = (p.folder / PURGING).exists()
            texts = None if begun else texts_of(p, plan.heads[0], plan.named, plan.lines)
            if texts is not None:
                plan.mark_rare(texts.needles)
            if begun:
                Finisher(p, plan, None, None, self._step).purge()
            else:
                self._carry_out(plan, texts, None)

    def _carry_out(self, plan: Plan, texts: Texts | None, messages: Messages | None) -> tuple[Plan, Outcome]:
        """The second half. When somebody's Git has brought something new on top of the old meanwhile, once more."""
        outcome = Outcome()
        for left in reversed(range(_ROUNDS)):
            finisher = Finisher(self._p, plan, texts, messages, self._step)
            outcome = outcome.joined(finisher.run())
            needed = finisher.needed()
            if not needed or left == 0:  # what somebody goes on needing stays, and the search at the end tells of it
                finisher.purge(needed)
                break
            plan, texts = self._again(plan)
            messages = None
        return plan, outcome

    def _again(self, plan: Plan) -> tuple[Plan, Texts | None]:
        p = self._p
        head = p.store.refs.head_commit() or plan.heads[1]
        texts = texts_of(p, plan.heads[0], plan.named, plan.lines)
        assert texts is not None
        preparation = Preparation(p, texts, plan.named, plan.lines, plan.header)
        fresh = preparation.plan(plan.branch, head, datetime.fromisoformat(plan.header["at"]))
        if fresh is None:
            return plan, texts
        fresh = replace(fresh, packs=(*plan.packs, *fresh.packs))
        plans.save(p.folder, fresh)
        return fresh, texts

    # Holding others off

    @contextmanager
    def _alone(self) -> Iterator[Callable[[], str | None]]:
        """No other thread or process of ours commits, writes, tidies or erases meanwhile."""
        p = self._p
        with p.committer.alone() as flush, p.log.writing(), p.git_index.alone():
            if p.log.unapplied():
                self._repair()
            yield flush

    def _quiet(self, flush: Callable[[], str | None]) -> tuple[str, str | None]:
        """(branch, its commit), with every record committed and its files synced; HomeBusy when Git is at work."""
        p = self._p
        reason = flush()
        if reason is None and p.log.after(p.committer.position().seq):
            reason = "what was written last cannot be committed yet"
        reason = reason or under_way(p.layout)
        if reason is not None:
            raise _busy(reason)
        _, _, records = p.log.unsafe()  # nothing will be able to restore a file from the log later
        p.worktree.sync({change.path for record in records for change in record.changes})
        branch = p.store.refs.head()
        assert branch is not None  # else `flush` had said so
        return branch, p.store.refs.head_commit()

    @contextmanager
    def _git_held_off(self) -> Iterator[None]:
        """Holds Git's lock of the index, so that no commit, checkout, merge or stash comes between."""
        lock, twin = self._p.layout.git_dir / "index.lock", self._p.folder / _LOCK
        twin.parent.mkdir(exist_ok=True)
        unlock_dead(lock, twin)
        twin.write_bytes(b"")
        sync_path(twin.parent)
        sync_path(twin.parent.parent)  # no loss of power leaves the lock without what tells that it is ours
        for _ in range(_TRIES):
            if lock_with(lock, twin):
                break
            time.sleep(_STEP)
        else:
            if not plans.decided(self._p.folder):
                shutil.rmtree(self._p.folder)
            raise _busy("Git is busy in this Home (index.lock)")
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
            sync_path(lock.parent)
            if plans.decided(self._p.folder):
                twin.unlink(missing_ok=True)
            else:
                shutil.rmtree(self._p.folder)

    # What is told

    def _told(self, plan: Plan, outcome: Outcome, preparation: Preparation, needles: Needles) -> Erasure:
        p, s = self._p, preparation.survey
        with p.reader() as reader:
            objects = [oid for oids in list_objects(p.git).values() for oid in oids]
            found = list(in_objects(reader, objects, needles))
        found += in_files(p.layout, needles, self._unchanged())
        held = still_there(p.git, p.layout.objects, set(plan.moved) - {new for new in plan.moved.values() if new})
        found += [f"object {oid.hex()}" for oid in sorted(held)]
        commits = sum(oid in s.commits for oid in plan.moved)
        removed = [f"{len(s.gone)} version(s) of files"] if s.gone else []
        removed += [f"lines of {len(s.lines)} version(s) of journals and files"] if s.lines else []
        removed += outcome.removed
        removed += [f"{ref}: a remote's commits as this Home knew them" for ref in outcome.deleted_refs]
        return Erasure(
            str(plan.header["erasure"]), plan.day, len(s.gone), len(s.lines), commits, outcome.moved_refs,
            tuple(removed), tuple(self._remains(outcome, preparation, s)), tuple(found),
        )  # fmt: skip

    def _unchanged(self) -> set[str]:
        """The files that are what the index says: their texts were looked through among the objects."""
        differing = self._p.git_index.differing()
        if differing is None:
            return set()
        return self._p.git_index.paths() - set(differing)

    def _remains(self, outcome: Outcome, preparation: Preparation, s: Survey) -> Iterator[tuple[str, str]]:
        p = self._p
        yield "clones and remotes", "they keep what they have; fetching from one brings it back"
        yield "backups and copies of this folder", "nothing here can reach them"
        yield "the free blocks of the file system", "deleted files are overwritten only by and by"
        for folder in alternates(p.layout.objects):
            yield folder, "this Home borrows objects from it, and it keeps them"
        for folder in linked_worktrees(p.layout):
            yield folder, "it is another worktree of this repository; its files are not touched"
        for path in sorted(s.elsewhere):
            yield path.decode("utf-8", "replace"), "a line of the text stands there too, and it was not named"
        yield from outcome.left
        if preparation.rewriter.unsigned:
            yield f"{preparation.rewriter.unsigned} signature(s)", "what they signed was written again without them"
        if preparation.ledger.unsigned:
            lines = f"{preparation.ledger.unsigned} line(s) of the ledger"
            yield lines, "another installation signed them, and their words had to go"


def _busy(reason: str) -> HomeBusy:
    return HomeBusy(
        "Nothing can be erased at this moment.",
        why=f"{reason}.",
        remedy="Finish what Git is doing in this Home, then try again.",
    )
