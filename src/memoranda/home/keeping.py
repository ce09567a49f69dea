"""Keeps the ledger whole: what was cut from it is put back, what other clones wrote is taken in.

Whoever can write refs can set `refs/memoranda/ledger` back, delete it, or shorten a segment. Where it stood last is
kept beside the keys (`LedgerTip`), and Git keeps objects that no ref leads to for a while: as long as these are there,
the lines come back. When they are gone, the ledger has lost lines, and nobody knows what sessions had met.
"""

from __future__ import annotations

from datetime import datetime

from memoranda.errors import RefMoved
from memoranda.home.disk import DiskStore
from memoranda.home.joining import joined, lacks, segments
from memoranda.home.ledger_tip import LedgerTip
from memoranda.home.objects import GitObject, Signature, commit_data, make_object
from memoranda.home.refs import Refs
from memoranda.home.store import FROM, LEDGER_REF, RefMove

_TRIES = 5


def keep(store: DiskStore, tip: LedgerTip, replica: str, now: datetime) -> str | None:
    """Brings the ledger of a clone to what it was and what others have fetched into it.

    Returns the commit whose lines the ledger has lost, None when it has lost none.
    """
    for _ in range(_TRIES):
        try:
            for name in store.refs.names(FROM):
                _take_in(store, tip, name, replica, now)
            return _restore(store, tip, now)
        except RefMoved:
            continue  # somebody commits at this moment
    return tip.read()


def fetched(refs: Refs) -> str:
    """Where the ledgers of other clones stand that were fetched, as one text."""
    return "".join(f"{name} {refs.read(name)}\n" for name in refs.names(FROM))


def settle(store: DiskStore, tip: LedgerTip) -> None:
    """A person has said that the ledger counts as it is now."""
    stands = store.ref(LEDGER_REF)
    if stands is not None:
        tip.write(stands)


def _take_in(store: DiskStore, tip: LedgerTip, name: str, replica: str, now: datetime) -> None:
    theirs, stands = store.ref(name), store.ref(LEDGER_REF)
    if theirs is None or (stands is not None and store.is_ancestor(theirs, stands)):
        return
    if stands is not None and not _readable(store, stands):
        return
    if stands is None:
        if tip.read() is None and store.get(theirs) is not None:
            store.move([RefMove(LEDGER_REF, None, theirs, "memoranda: take in a clone's ledger")])
        return
    told = f"Take in the ledger of {name.removeprefix(f'{FROM}/')}"
    if (both := joined(store, stands, theirs, own=replica)) is not None:
        _move(store, stands, [stands, theirs], both, told, now)
    elif store.get(theirs) is not None:
        same = store.get(f"{stands}^{{tree}}")
        assert same is not None
        _move(store, stands, [stands, theirs], (same.oid, []), told, now)


def _restore(store: DiskStore, tip: LedgerTip, now: datetime) -> str | None:
    known, stands = tip.read(), store.ref(LEDGER_REF)
    if known is None:
        known = next((commit for commit in tip.under_other_ids() if _readable(store, commit)), None)
    if known is None or known == stands:
        if known is None and stands is not None:
            tip.write(stands)
        return None
    readable = stands is not None and _readable(store, stands)
    lost = lacks(store, stands, known) if _readable(store, known) else None
    if lost is None:
        return known
    if lost:
        both = joined(store, known, stands) if stands is not None and readable else None
        same = store.get(f"{known}^{{tree}}")
        assert same is not None  # its segments were read
        parents = [stands, known] if stands is not None and readable else [known]
        told = "Put back what was cut from the ledger"
        stands = _move(store, stands, parents, both or (same.oid, []), told, now)
        tip.tell_cut(now)
    assert stands is not None
    tip.write(stands)
    return None


def _readable(store: DiskStore, commit: str) -> bool:
    """Whether a ledger can be read; what another process is packing this moment is there at the second look."""
    if segments(store, commit) is not None:
        return True
    store.look_again()
    return segments(store, commit) is not None


def _move(
    store: DiskStore, old: str | None, parents: list[str], made: tuple[str, list[GitObject]], told: str, now: datetime
) -> str:
    by = Signature("Memoranda", "memoranda@localhost", now)
    commit = make_object("commit", commit_data(made[0], parents, by, by, told))
    handle = store.put([*made[1], commit])
    try:
        store.move([RefMove(LEDGER_REF, old, commit.oid, f"memoranda: {told[:1].lower()}{told[1:]}")])
    finally:
        store.release(handle)
    return commit.oid
