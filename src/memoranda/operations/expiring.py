"""Expire: removes the notes whose retention has ended, with their history when their class asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memoranda.context import Context
from memoranda.errors import Conflict
from memoranda.index.retention import Ended, gone_with, held
from memoranda.operations.cascade import Cascade, Lineage
from memoranda.operations.forgetting import Forgotten, Plan, carry_out
from memoranda.operations.holding import held_back
from memoranda.operations.once import Permit, permitted, shared_of
from memoranda.operations.open_home import OpenHome, undisturbed
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.remains import Remains, quoting
from memoranda.operations.space import Space
from memoranda.trust.kept import ended, overdue
from memoranda.trust.reviews import last_accepted, reviewed_blobs
from memoranda.trust.standing import believed
from memoranda.values import dataclass, replace

_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class _Due:
    """What ends together: a note, what it superseded, and what was generated from them."""

    cascade: Cascade
    erase: bool


def expire(
    context: Context, space: Space, *, dry_run: bool = False, limits: Mapping[str, int] | None = None
) -> Forgotten:
    """Removes from the nearest Home what is due, in at most two steps: what keeps its history, and what does not.

    `limits`, agent -> days, is how long what these agents wrote is kept at most, whatever it says of itself; "" is who
    is not named.

    What a person reviewed, and would go only because an unreviewed successor ended, goes when a person asks at a
    terminal.

    Raises:
        LegalHold: something that is due is held. It stays, the rest went; `done` is the report.
        RuleOfTwo: something that is due is shared with others, and this session has met two; nothing went.
        HomeBusy: somebody's Git is at work and history has to go.
    """
    pass_guards(context, Call("expire", writes=True))
    home = space.one()
    for _ in range(_ROUNDS):
        home.refresh(context)
        due, stays, kept = _due(home, context, limits or {})
        if not dry_run and (permit := _permitted(context, space, home, due)) is not None:
            permit.use(context)
        done = [_carried_out(context, home, due, erase, dry_run) for erase in (False, True)]
        if all(item is not None for item in done):
            report = _joined([item for item in done if item is not None], stays, home, context, dry_run)
            if kept:
                raise held_back(kept, report)
            return report
    raise Conflict("Others write on these notes all the time.", remedy="Try again.")


def _permitted(context: Context, space: Space, home: OpenHome, due: Sequence[_Due]) -> Permit | None:
    versions = [version for item in due for version in item.cascade.all_versions()]
    told = {
        "notes": sorted({v.id for v in versions}), "bytes": sorted({v.blob for v in versions}),
        "erase": any(item.erase for item in due),
    }  # fmt: skip
    return permitted(context, home, space.met(context, home), "expire", shared_of([v.scope for v in versions]), told)


@undisturbed
def _due(home: OpenHome, context: Context, limits: Mapping[str, int]) -> tuple[list[_Due], list[Remains], list[str]]:
    """What may go; what stays, with the reason; the ids of the notes that are kept by a hold."""
    lineage, catalog = Lineage(home), home.indexes.catalog
    due: list[_Due] = []
    stays: list[Remains] = []
    kept: list[str] = []
    over = overdue(catalog, context.now(), limits) | ended(catalog, context.now())
    for chain in _chains(lineage, over):
        rows = [row for note_id in chain for row in catalog.by_id(note_id)]
        supersedes = {link.id: link.supersedes for link in believed(catalog, rows)}
        ids = sorted(gone_with(supersedes, (note_id for note_id in over if note_id in chain)))
        seeds = [(("note", note_id), _why(note_id, over)) for note_id in ids]
        cascade = lineage.cascade(seeds, ending=True).without_said()  # what was said has no retention
        if names := held(catalog.db, cascade.notes):
            stays.append(Remains(", ".join(ids), f"under legal hold ({', '.join(names)})"))
            kept += names
        elif not context.person and (names := _anothers(home, cascade, over)):
            why = (
                "somebody else wrote it, or a person reviewed it, and it would go because of a note that superseded it"
            )
            stays.append(Remains(", ".join(names), f"{why}; run it at a terminal"))
        else:
            erase = any(over[note_id].erase_history for note_id in ids if note_id in over)
            due.append(_Due(cascade, erase and (context.person or _written_so(home, cascade))))
    return due, stays, kept


def _written_so(home: OpenHome, cascade: Cascade) -> bool:
    """Whether the class that takes the history was written by an operation: an edit of a file takes none by itself."""
    asking = [version.blob for version in cascade.all_versions() if version.erase_history]
    wrote = home.indexes.catalog.ledger.wrote(asking)
    reviewed = reviewed_blobs(home.indexes.catalog, asking)
    return any(b in reviewed or ((w := wrote.get(b)) and w.vouched and w.kind in ("write", "writes")) for b in asking)


def _anothers(home: OpenHome, cascade: Cascade, over: Mapping[str, Ended]) -> list[str]:
    """The notes that have not ended themselves and are not of those who wrote what has: an agent ends only its own."""
    catalog = home.indexes.catalog
    wrote = catalog.ledger.wrote(version.blob for version in cascade.all_versions())

    def writers(note_id: str) -> set[tuple[str | None, str | None]]:
        lines = (wrote.get(version.blob) for version in cascade.versions[note_id])
        return {(w.user, w.agent) if w is not None and w.vouched else (None, None) for w in lines}

    enders = {who for note_id in cascade.notes if note_id in over for who in writers(note_id)}
    return [
        note_id
        for note_id, states in cascade.versions.items()
        if note_id not in over
        and not any(state.generated for state in states)
        and (last_accepted(catalog, note_id) is not None or not writers(note_id) <= enders)
    ]


def _chains(lineage: Lineage, over: Mapping[str, Ended]) -> list[set[str]]:
    found: list[set[str]] = []
    for note_id in sorted(over):
        if not any(note_id in chain for chain in found):
            found.append(lineage.chain(note_id) or {note_id})
    return found


def _why(note_id: str, over: Mapping[str, Ended]) -> str:
    return f"its retention ended on {over[note_id].at:%Y-%m-%d}" if note_id in over else "superseded by what ended"


def _carried_out(context: Context, home: OpenHome, due: Sequence[_Due], erase: bool, dry_run: bool) -> Forgotten | None:
    """The report on those that keep their history, or on those that do not; None when somebody came between."""
    cascade = Cascade()
    for item in due:
        if item.erase == erase:
            cascade = cascade.joined(item.cascade)
    plan = _planned(home, cascade, erase)
    if not cascade.notes:
        return replace(plan.told(context, dry_run=dry_run), also=(), remains=(), erased=False)
    return plan.told(context, dry_run=True) if dry_run else carry_out(context, plan)


@undisturbed
def _planned(home: OpenHome, cascade: Cascade, erase: bool) -> Plan:
    lineage = Lineage(home)
    stays, quotes = quoting(home, lineage, cascade) if cascade.notes else ((), ())
    return Plan(home, lineage, cascade, erase, False, stays, quotes, "expire")


def _joined(
    done: Sequence[Forgotten], stays: Sequence[Remains], home: OpenHome, context: Context, dry_run: bool
) -> Forgotten:
    return Forgotten(
        home.name, tuple(x for item in done for x in item.removed),
        tuple(dict.fromkeys(x for item in done for x in item.also)),
        tuple(dict.fromkeys((*stays, *(x for item in done for x in item.remains)))), dry_run,
        any(item.erased for item in done), f"{context.now():%Y-%m-%d}",
        tuple(x for item in done for x in item.found),
    )  # fmt: skip
