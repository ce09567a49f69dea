"""Forget: a note with its whole chain, what was derived from it and the raw words behind it; and what could not go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, Conflict, InvalidInput
from memoranda.home.draft import Change, Draft
from memoranda.home.erasing.erase import Blank
from memoranda.home.tombstones import Mark, Seals, owner_of
from memoranda.notes.ids import is_note_id
from memoranda.notes.model import read_note
from memoranda.notes.sameness import same_text, says_something
from memoranda.operations.automatic import MEMORY, write_memory
from memoranda.operations.cascade import Cascade, Lineage, Node, Taken, nothing_called
from memoranda.operations.forgotten import owns_id, tombstone_lines
from memoranda.operations.holding import refuse_held
from memoranda.operations.meeting import hides, quarantined
from memoranda.operations.once import Permit, permitted, shared_of
from memoranda.operations.open_home import OpenHome, sought
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.remains import Remains, citing_elsewhere, quoting, remains_of
from memoranda.operations.returning import brought_back, returned
from memoranda.operations.space import Space
from memoranda.trust.standing import trust_of
from memoranda.values import dataclass, replace

_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Selection:
    """What is to be forgotten: notes and entries by id, all on a subject and below it, all that a session brought in,
    all that comes from a source, or with `returned` what was forgotten before and stands in a file again."""

    ids: tuple[str, ...] = ()
    subject: str | None = None
    sessions: tuple[str, ...] = ()
    source: str | None = None
    returned: bool = False

    def empty(self) -> bool:
        return not (self.ids or self.subject or self.sessions or self.source or self.returned)

    def single(self) -> bool:
        """Whether it names one thing and nothing else."""
        return len(self.ids) == 1 and not (self.subject or self.sessions or self.source or self.returned)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a forgetting did, or with `dry_run` would do.

    `removed` are the notes and entries that went, `also` what else went, in words; `remains` is what could not be
    removed, with the reason. `erased`: their history went too, on `day`. `found` are places in which the search after
    an erasing still met the text; it is empty when nothing in the Home holds it. `needs_person` says of a dry run why
    only a person at a terminal may do it, None when the caller may.
    """

    home: str
    removed: tuple[Taken, ...]
    also: tuple[str, ...]
    remains: tuple[Remains, ...]
    dry_run: bool
    erased: bool
    day: str
    found: tuple[str, ...] = ()
    needs_person: str | None = None

    def json(self) -> dict[str, object]:
        return {
            "home": self.home, "dry_run": self.dry_run, "erased": self.erased, "day": self.day,
            "needs_person": self.needs_person,
            "removed": [item.json() for item in self.removed], "also": list(self.also),
            "remains": [item.json() for item in self.remains], "found": list(self.found),
        }  # fmt: skip


def forget(
    context: Context, space: Space, what: Selection, *, erase: bool = False, dry_run: bool = False, reason: str = ""
) -> Forgotten:
    """Takes away what is selected, with everything that goes with it, in one commit, and keeps it from coming back.

    With `erase`, or when a note that is named has the class `erase_history`, it goes with its history. An agent may
    forget a note of its own that nobody reviewed, and erases nothing.

    Raises:
        UnknownNote, NotFound: nothing of this name is here.
        LegalHold: something that would go is held; nothing went.
        ConfirmationRequired: this needs a person at a terminal.
        InvalidInput: nothing is selected, or the reason repeats the text.
        HomeBusy: nothing can be erased while somebody's Git is at work.
    """
    pass_guards(context, Call("forget", writes=True, text=reason, rules=space.one().rules))
    if what.empty():
        raise InvalidInput("Nothing is selected.", remedy="Name an id, --subject, --session or --source.")
    home = _home_of(context, space, what)
    for _ in range(_ROUNDS):
        with home.indexes.lock:
            lineage = Lineage(home)
            cascade = lineage.cascade(_seeds(home, lineage, what, erase))
            again = tuple(brought_back(home)) if what.returned and erase else ()
            shared = [
                Remains(f"calls without a session, in {ambient}", f"not those of {session} alone: name it")
                for session, ambient in lineage.shared_calls(what.sessions)
            ]
        plan = _planned(context, space, home, lineage, cascade, what.single(), erase, dry_run)
        plan = replace(plan, reason=" ".join(reason.split()), quotes=(*plan.quotes, *shared), again=again)
        if dry_run or not (cascade.taken or again):
            return _spared(context, home, plan.told(context, dry_run=dry_run))
        if plan.permit is not None:
            plan.permit.use(context)
        if (done := carry_out(context, plan)) is not None:
            return _with_successors(context, space, home, done, reason)
    raise Conflict("Others write on these notes all the time.", remedy="Try again.")


def _with_successors(context: Context, space: Space, home: OpenHome, done: Forgotten, reason: str) -> Forgotten:
    """An erasing holds nobody off before it begins: who superseded a note of these chains meanwhile, ends with them."""
    gone = {item.id for item in done.removed}
    with home.indexes.lock:
        newer = sorted({new for item in gone for new in home.indexes.catalog.successors(item)} - gone)
    if not newer:
        return done
    more = forget(context, space, Selection(tuple(newer)), erase=done.erased, reason=reason)
    return replace(
        more, removed=(*done.removed, *more.removed), also=tuple(dict.fromkeys((*done.also, *more.also))),
        found=(*done.found, *more.found),
    )  # fmt: skip


def _spared(context: Context, home: OpenHome, done: Forgotten) -> Forgotten:
    """For a session that has met nothing from outside: without the paths of quarantined notes, which are words too."""
    if not hides(context, home):
        return done
    ids = {item.id for item in done.removed} | {item.note for item in done.remains if item.note}
    with home.indexes.lock:
        catalog = home.indexes.catalog
        rows = [row for note_id in ids for row in catalog.by_id(note_id)]
        trust = trust_of(catalog, rows)
    hidden = {row.id for row in rows if quarantined(trust[row.blob].state)}
    removed = tuple(replace(item, path="") if item.id in hidden else item for item in done.removed)
    remains = tuple(replace(item, what=item.note) if item.note in hidden else item for item in done.remains)
    return replace(done, removed=removed, remains=remains)


def _home_of(context: Context, space: Space, what: Selection) -> OpenHome:
    """The Home that knows what is named; the nearest one for what is not an id."""

    def look(home: OpenHome) -> bool | None:
        home.refresh(context)
        with home.indexes.lock:
            catalog = home.indexes.catalog
            kept = {item[0] for item in catalog.db.execute("SELECT about FROM kept_out")}
            return all(name in kept or catalog.knows(name) for name in what.ids) or None

    if what.ids and (found := sought(context, space.homes(), look)) is not None:
        return found[0]
    home = space.one()
    home.refresh(context)
    return home


def _seeds(home: OpenHome, lineage: Lineage, what: Selection, erase: bool) -> list[tuple[Node, str]]:
    seeds: list[tuple[Node, str]] = []
    for name in what.ids:
        node = ("note" if is_note_id(name) else "entry", name)
        if not lineage.known(node):
            raise nothing_called(name)
        seeds.append((node, "named"))
    if what.subject is not None:
        seeds += [(("note", note_id), f"on {what.subject}") for note_id in lineage.below(what.subject)]
    for session in what.sessions:
        seeds += [(node, f"written in {session}") for node in lineage.written_in(session)]
    if what.source is not None:
        nodes = lineage.nodes_of(what.source) if ":" in what.source else []
        seeds += [(node, f"from {what.source}") for node in nodes if lineage.known(node)]
    if what.returned:
        back = returned(home)
        seeds += [(("note", item.about), f"came back as {item.path}") for item in back if item.blob]
        return seeds + [(("entry", i.about), f"came back in {i.path}") for i in back if erase and not i.blob]
    if not seeds:
        raise nothing_called(
            what.subject or what.source or ", ".join(what.sessions), lineage.shared_calls(what.sessions)
        )
    return seeds


# The plan


@dataclass(frozen=True, slots=True)
class Plan:
    """A cascade that may be carried out: how, and what will have to be told."""

    home: OpenHome
    lineage: Lineage
    cascade: Cascade
    erase: bool
    content: bool  # whether the same content is kept out too, and not only these very notes
    stays: tuple[str, ...]
    quotes: tuple[Remains, ...]
    operation: str = "forget"
    reason: str = ""
    needs_person: str | None = None
    permit: Permit | None = None
    again: tuple[Blank, ...] = ()  # what was erased before, and Git's objects hold again

    def told(
        self, context: Context, *, dry_run: bool = False, also: Sequence[str] = (),
        remains: Sequence[tuple[str, str]] = (), found: Sequence[str] = (),
    ) -> Forgotten:  # fmt: skip
        """The report in two columns."""
        back = [f"{len(self.again)} erased text(s) that Git's objects hold again"] if self.again else []
        also = tuple(dict.fromkeys(["rows of the indexes", *back, *also]))
        left = remains_of(self.home, self.lineage, self.cascade, self.quotes, erase=self.erase, told=remains)
        return Forgotten(
            self.home.name, self.cascade.taken, also, tuple(left), dry_run, self.erase, f"{context.now():%Y-%m-%d}",
            tuple(found), self.needs_person if dry_run else None,
        )  # fmt: skip

    def testimony(self, context: Context) -> list[dict[str, Any]]:
        """The tombstones: keyed hashes of the content and the ids, never the text."""
        ids = [v.id for v in self.cascade.all_versions() if owns_id(v.id, v.path)]
        with self.home.indexes.lock:
            marks = list(self._marks())
        return list(tombstone_lines(context, marks, [*ids, *self.cascade.entries], self.stays, self.reason))

    def _marks(self) -> Iterator[Mark]:
        repository = self.home.repository
        seals = Seals(repository.keys, repository.marker.id)
        for version in self.cascade.all_versions():
            # What has no id of its own is known again by its content only.
            if self.content or not owns_id(version.id, version.path):
                data = repository.blob(version.blob)
                if data is not None and (body := read_note(version.path, data).body).strip():
                    yield seals.mark(owner_of(version.scope, version.owner), body)
        if not self.content:
            return
        wrote = self.home.indexes.catalog.ledger.wrote(self.cascade.entries)
        for name, taken in self.cascade.entries.items():
            user = (w.user if (w := wrote.get(name)) else None) or ""
            for entry in self.lineage.entries_of(taken.path):
                if entry.id == name and says_something(same_text(entry.text)):
                    yield seals.mark(owner_of("user", {"user": user}), entry.text)


def _planned(
    context: Context, space: Space, home: OpenHome, lineage: Lineage, cascade: Cascade, single: bool, erase: bool,
    dry_run: bool,
) -> Plan:  # fmt: skip
    """The plan for a cascade; refuses what is held and what needs a person, which of a dry run is only told."""
    refuse_held(home, cascade.notes)
    erase = erase or any(v.erase_history for v in cascade.all_versions())
    met = space.met(context, home)
    versions = list(cascade.all_versions())
    told = {
        "notes": sorted({v.id for v in versions}), "bytes": sorted({v.blob for v in versions}),
        "entries": sorted(cascade.entries), "erase": erase,
    }  # fmt: skip
    permit = permitted(context, home, met, "forget", shared_of([v.scope for v in versions]), told)
    why = ""
    if not context.person:
        mine = cascade.without_said()
        why = _why_person(context, home, mine, single=single, erase=erase, met_outside=bool(met.taint))
        if why and not dry_run:
            raise ConfirmationRequired(
                "This is forgotten by a person at a terminal only; nothing was removed.",
                why=why,
                remedy="Run the command in a terminal of your own; --dry-run shows what would go.",
            )
        cascade = cascade if why else mine
    with home.indexes.lock:
        stays, quotes = quoting(home, lineage, cascade)
    quotes += tuple(citing_elsewhere(context, space, home, lineage, cascade))
    return Plan(home, lineage, cascade, erase, context.person, stays, quotes, needs_person=why or None, permit=permit)


def _why_person(
    context: Context, home: OpenHome, cascade: Cascade, *, single: bool, erase: bool, met_outside: bool
) -> str:
    """Why this is for a person at a terminal; empty for what an agent may: a note of its own that nobody reviewed."""
    with home.indexes.lock:
        ledger = home.indexes.catalog.ledger
        wrote = ledger.wrote(v.blob for v in cascade.all_versions())
        reviewed = any(ledger.reviews(note_id=note_id) for note_id in cascade.notes)
    own = all(
        (w := wrote.get(v.blob)) is not None and w.vouched and w.agent == context.agent and w.user == context.user
        for v in cascade.all_versions()
    )
    clean = met_outside and not all(w.taint for w in wrote.values())
    return (
        "Its history would go too." if erase else
        "More than one note was selected." if not single or not cascade.notes else
        "It takes notes that a person reviewed." if reviewed else
        "It takes notes that others wrote." if not own else
        "This session has met content from outside, and the note was written before." if clean else ""
    )  # fmt: skip


# Doing it


def carry_out(context: Context, plan: Plan) -> Forgotten | None:
    """Takes away what is planned; None when somebody wrote on these chains meanwhile, so that it is planned anew."""
    home, done = plan.home, None
    shown = (home.repository.root / MEMORY).exists()
    if plan.erase:
        with home.indexes.lock:
            blanks = [*plan.lineage.blanks(plan.cascade), *plan.again]
        erasure = home.repository.erase(context, blanks, plan.reason, plan.testimony(context))
        if erasure.id:
            done = plan.told(context, also=erasure.removed, remains=erasure.remains, found=erasure.found)
        elif not plan.cascade.taken:
            done = plan.told(context)
        else:
            plan = replace(plan, erase=False)  # all of it was erased before
    if done is None:
        if not _take_away(context, plan):
            return None
        done = plan.told(context)
    home.tombs.renew()
    home.refresh(context)
    home.tombs.now()  # what is forgotten is kept beside the keys too
    if shown and write_memory(context, home):
        done = replace(done, also=(*done.also, "memory/MEMORY.md was made again"))
    return done


def _take_away(context: Context, plan: Plan) -> bool:
    home, cascade = plan.home, plan.cascade
    overtaken = False

    def build(_at: datetime) -> Draft:
        nonlocal overtaken
        context.still_allowed()
        home.indexes.catch_up()
        known = plan.lineage.versions
        with home.indexes.lock:
            catalog = home.indexes.catalog
            overtaken = any(new not in known for old in cascade.notes for new in catalog.successors(old))
        if overtaken:
            raise _Overtaken("Somebody superseded a note that is about to go.")
        count, of = (len(cascade.notes), "note") if cascade.notes else (len(cascade.entries), "journal entrie")
        what = f"{count} {of.replace('ie', 'y') if count == 1 else of + 's'}"
        verb = "Forget" if plan.operation == "forget" else "Let expire"
        subject = f"{verb} {what}" + (f": {plan.reason}" if plan.reason else "")
        changes = [Change(path, None) for path in cascade.live_paths()]
        return Draft(plan.operation, subject, changes, plan.testimony(context), {"Agent": context.agent}, context.user)

    try:
        home.repository.write(context, build)
    except _Overtaken:
        return False
    return True


class _Overtaken(Conflict):
    """A chain that is about to go got a new head."""
