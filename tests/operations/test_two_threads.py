"""What is asked while another thread makes the indexes anew is answered as ever."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from memoranda.context import Context
from memoranda.errors import LegalHold
from memoranda.operations import goldens
from memoranda.operations.doctor import doctor
from memoranda.operations.expiring import expire
from memoranda.operations.forgetting import Selection, forget
from memoranda.operations.holding import hold, holds
from memoranda.operations.journaling import Turn, append
from memoranda.operations.keyring import export_keys
from memoranda.operations.listing import diff, history, list_notes, log
from memoranda.operations.loading import automatic_context
from memoranda.operations.reading import read
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.reviewing import decide, queue, show
from memoranda.operations.session_desk import session_show
from memoranda.operations.space import Space
from memoranda.operations.timelines import timeline
from memoranda.operations.tracing import rollback, trace
from memoranda.values import replace
from tests.stores import Opening


@pytest.fixture
def full(context: Context, opening: Opening) -> dict[str, str]:
    """A Home with a chain, a review, journal entries and a golden question; the ids that are asked about."""
    person = replace(context, person=True)
    with opening(context) as space:
        first = remember(context, space, NewNote("The ferry leaves at six.", subject="harbour"))
        second = update(context, space, first.id, "The ferry leaves at seven.")
        entry = append(context, space, Turn("The pilot is Maud.", "dana"))
        cited = remember(context, space, NewNote("Maud is the pilot.", subject="harbour", sources=(entry.uri,)))
        for n in range(8):
            remember(context, space, NewNote(f"Buoy {n} lies in the fairway.", subject=f"buoys/{n}"))
        decide(person, space, [cited.id], "accept")
        for n in range(3):
            wreck = NewNote(f"Wreck {n} is marked.", retention_days=0, legal_hold=n == 2)
            remember(context.in_session("ses_wrecks"), space, wreck)
        gone = remember(context, space, NewNote("The old lamp was lit."))
        forget(person, space, Selection((gone.id,)))
        hold(person, space, [second.id], "set", reason="case 12")
        hold(person, space, [second.id], "release", reason="closed")
        goldens.golden_add(context, space, "Who is the pilot?", [cited.id])
    return {"first": first.id, "second": second.id, "entry": entry.id, "cited": cited.id, "session": second.session}


def expired(context: Context, space: Space) -> object:
    """What would go, of which one note is held."""
    with pytest.raises(LegalHold) as refused:
        expire(context, space, dry_run=True)
    return refused.value.done


def exported(context: Context, space: Space) -> tuple[int, bytes]:
    """How many keys were written, and what the file says."""
    file = space.one().repository.root.parent / "exported.json"
    file.unlink(missing_ok=True)
    return export_keys(context, space, file).keys, file.read_bytes()


_ASKED: dict[str, Callable[[Context, Space, dict[str, str]], object]] = {
    "recall": lambda c, s, i: [item.id for item in recall(c, s, "When does the ferry leave?").items],
    "read a note": lambda c, s, i: read(c, s, i["first"]),
    "read an entry": lambda c, s, i: read(c, s, i["entry"]),
    "list": lambda c, s, i: list_notes(c, s),
    "history": lambda c, s, i: history(c, s, i["first"]),
    "diff": lambda c, s, i: diff(c, s, i["first"]),
    "log": lambda c, s, i: log(c, s),
    "timeline": lambda c, s, i: timeline(c, s, "harbour"),
    "review list": lambda c, s, i: queue(c, s),
    "review show": lambda c, s, i: show(c, s, i["cited"]),
    "trace": lambda c, s, i: trace(c, s, i["entry"]),
    "rollback": lambda c, s, i: rollback(c, s, i["cited"], dry_run=True),
    "forget": lambda c, s, i: forget(c, s, Selection((i["first"], i["entry"])), dry_run=True),
    "forget a subject": lambda c, s, i: forget(c, s, Selection(subject="buoys"), dry_run=True),
    "forget a session": lambda c, s, i: forget(c, s, Selection(sessions=(i["session"],)), dry_run=True),
    "expire": lambda c, s, i: expired(c, s),
    "holds": lambda c, s, i: holds(c, s),
    "key export": lambda c, s, i: exported(c, s),
    "session show": lambda c, s, i: session_show(c, s, i["session"]),
    "golden run": lambda c, s, i: goldens.golden_run(c, s).hit,
    "context": lambda c, s, i: automatic_context(c, s),
    "doctor": lambda c, s, i: [f for f in doctor(c, s).findings if not f.code.startswith("index_")],
}


@pytest.mark.parametrize("name", _ASKED)
def test_no_answer_comes_from_an_index_that_is_being_made(
    context: Context, opening: Opening, full: dict[str, str], name: str
) -> None:
    now = context.now()
    still = replace(context, clock=lambda: now, person=True)
    ask = _ASKED[name]
    with opening(context) as space:
        indexes = space.one().indexes
        usual = ask(still, space, full)
        ended = threading.Event()

        def make_anew() -> None:
            indexes.rebuild()
            while not ended.wait(0.01):  # a lock that is taken again at once lets nobody else have it
                indexes.rebuild()

        other = threading.Thread(target=make_anew)
        other.start()
        try:
            for _ in range(8):
                assert ask(still, space, full) == usual
        finally:
            ended.set()
            other.join()


@pytest.mark.parametrize("name", ["forget", "forget a subject", "forget a session", "expire", "holds", "key export"])
def test_nothing_is_read_while_another_thread_may_be_making_it(
    context: Context, opening: Opening, full: dict[str, str], name: str
) -> None:
    """Each statement that the catalog is asked is asked under the lock that who makes it holds."""
    person = replace(context, person=True)
    with opening(context) as space:
        indexes = space.one().indexes
        _ASKED[name](person, space, full)
        alone: list[str] = []
        indexes.catalog.db.set_trace_callback(lambda said: None if indexes.lock._is_owned() else alone.append(said))
        _ASKED[name](person, space, full)
        if name == "forget":
            forget(person, space, Selection((full["cited"],)))
            hold(person, space, [full["second"]], "set", reason="case 13")
        elif name == "expire":
            hold(person, space, [note.id for note in holds(person, space)], "release", reason="closed")
            assert expire(person, space).removed
        indexes.catalog.db.set_trace_callback(None)
        assert alone == []
