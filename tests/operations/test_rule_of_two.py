"""The Rule of Two: what has met outside content and private data changes nothing for others without a person."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, InvalidInput, NotFound, RuleOfTwo
from memoranda.home.draft import Change, Draft
from memoranda.home.settings import Settings
from memoranda.operations.clones import clone, pull
from memoranda.operations.expiring import expire
from memoranda.operations.forgetting import Selection, forget
from memoranda.operations.goldens import golden_add
from memoranda.operations.importing import import_folder
from memoranda.operations.journal_import import import_journal
from memoranda.operations.journaling import Turn, append
from memoranda.operations.keyring import import_keys
from memoranda.operations.once import allow_once, asked
from memoranda.operations.recalling import recall
from memoranda.operations.recipes import index_add, index_promote, index_retire
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.session_desk import session_show
from memoranda.operations.space import Space
from memoranda.operations.tracing import rollback
from tests.conftest import Clock
from tests.stores import Site

PRIVATE = b"---\nid: mem_salaries1\nclassification: confidential\n---\nSalaries are paid on the 25th.\n"


def meet_private(context: Context, space: Space) -> None:
    path = "memory/notes/salaries.md"
    space.writable().repository.write(context, lambda _at: Draft("test", "A private note", [Change(path, PRIVATE)]))
    assert recall(context, space, "salaries").items


@pytest.mark.requirement("A-062", "A-063")
@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize("private", [True, False])
def test_two_met_and_a_shared_scope_is_refused(context: Context, space: Space, outside: bool, private: bool) -> None:
    if private:
        meet_private(context, space)
    if outside:
        append(context, space, Turn("A mail.", "mail", origin="external"))
    shared = NewNote("Told to everybody.", scope="team")
    if outside and private:
        with pytest.raises(RuleOfTwo) as caught:
            remember(context, space, shared)
        assert "untrusted content" in caught.value.why and "private data" in caught.value.why
        assert len(recall(context, space, "everybody").items) == 0
        # Neither another session nor none gets around it; a person does.
        for way_round in (context.in_session("ses_other"), context.in_session("ses_more")):
            with pytest.raises(RuleOfTwo):
                remember(way_round, space, shared)
        remember(replace(context, person=True), space, shared)
    else:
        remember(context, space, shared)
    remember(context, space, NewNote("For myself.", scope="user"))


# What a person allows once


SHARED = NewNote("Told to everybody.", scope="team", subject="news")


def meet_two(context: Context, space: Space) -> None:
    meet_private(context, space)
    append(context, space, Turn("A mail.", "mail", origin="external"))


def refused(context: Context, space: Space, note: NewNote = SHARED) -> str:
    with pytest.raises(RuleOfTwo) as caught:
        remember(context, space, note)
    assert "untrusted content" in caught.value.why and "private data" in caught.value.why
    assert f"memoranda allow once {caught.value.asked}" in caught.value.remedy
    return caught.value.asked


@pytest.mark.requirement("A-063")
def test_a_person_allows_one_operation_once(context: Context, person: Context, space: Space) -> None:
    meet_two(context, space)
    mark = refused(context, space)
    assert refused(context, space) == mark, "asked again it is the same request"
    (item,) = asked(person, space)
    assert item.told["text"] == SHARED.text and (item.operation, item.scope, item.agent) == ("remember", "team", "cleo")
    allow_once(person, space, mark, "the team asked")
    assert remember(context, space, SHARED).id
    assert asked(person, space) == []
    assert refused(context, space) == mark, "it was used up"
    events = [e for e in session_show(context, space).events if e.event == "allowed"]
    assert [(e.what, e.source, e.reason) for e in events] == [("remember", mark, "once, by dana: the team asked")]


def test_what_is_allowed_serves_nothing_else(context: Context, person: Context, space: Space) -> None:
    meet_two(context, space)
    allow_once(person, space, refused(context, space), "the team asked")
    for other in (
        replace(SHARED, text="Told to everybody!"), replace(SHARED, scope="organization"),
        replace(SHARED, subject="other"), replace(SHARED, sources=("https://x.example/a",)),
    ):  # fmt: skip
        refused(context, space, other)
    refused(context.in_session("ses_other"), space)
    note = remember(context, space, NewNote("For myself."))
    with pytest.raises(RuleOfTwo):
        update(context, space, note.id, SHARED.text, changes={"scope": "team", "subject": "news"})
    with pytest.raises(RuleOfTwo):
        eve = replace(context, agent="eve")
        append(eve, space, Turn("A mail.", "mail", origin="external"))
        space.one().sessions.raise_private(eve)
        remember(eve, space, SHARED)
    remember(context, space, SHARED)


def test_an_agent_allows_itself_nothing(context: Context, person: Context, space: Space) -> None:
    meet_two(context, space)
    mark = refused(context, space)
    own = replace(person, session=asked(person, space)[0].session)
    for who in (context, context.in_session("ses_new"), replace(context, agent="cli"), own):
        with pytest.raises(ConfirmationRequired):
            allow_once(who, space, mark, "I say so")
    assert [item.told for item in asked(context, space)] == [{}], "it is not told what others ask for"
    for unknown in ("", "0" * 32, mark[:-1]):
        with pytest.raises(NotFound):
            allow_once(person, space, unknown, "x")
    with pytest.raises(InvalidInput):
        allow_once(person, space, mark, " ")
    refused(context, space)


@pytest.mark.disk
def test_what_anybody_writes_into_the_file_allows_nothing(context: Context, person: Context, space: Space) -> None:
    meet_two(context, space)
    mark = refused(context, space)
    (file,) = (space.one().repository.keys.folder.parent / "settings").glob("*-once.jsonl")
    line = json.loads(file.read_text().splitlines()[0])
    with file.open("a") as more:
        more.write(json.dumps(line | {"kind": "once"}) + "\n")
        more.write(json.dumps(line | {"kind": "once", "mac": "0" * 32}) + "\n")
    refused(context, space)
    assert not file.is_relative_to(space.one().repository.root)
    allow_once(person, space, mark, "yes")
    remember(context, space, SHARED)


def test_a_permission_and_a_request_are_good_for_a_day(
    context: Context, person: Context, space: Space, clock: Clock
) -> None:
    meet_two(context, space)
    allow_once(person, space, refused(context, space), "yes")
    clock.tick(hours=25)
    assert asked(person, space) == []
    mark = refused(context, space)
    clock.tick(hours=25)
    with pytest.raises(NotFound):
        allow_once(person, space, mark, "late")


def test_requests_without_number_fill_nothing(context: Context, person: Context, space: Space) -> None:
    meet_two(context, space)
    first = refused(context, space)
    for n in range(60):
        with pytest.raises(RuleOfTwo):
            remember(context, space, replace(SHARED, text=f"Number {n}."))
    waiting = asked(person, space)
    assert len(waiting) == 50 and waiting[0].mark == first


def test_many_at_once_use_it_once(
    context: Context, person: Context, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet_two(context, space)
    allow_once(person, space, refused(context, space), "yes")
    done: list[str] = []
    standing = Settings.standing

    def slowly(settings: Settings) -> object:
        found = standing(settings)
        time.sleep(0.05)  # so that without a lock all of them would find the permission standing
        return found

    monkeypatch.setattr(Settings, "standing", slowly)

    def one() -> None:
        with suppress(RuleOfTwo):
            done.append(remember(context, space, SHARED).id)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1


def test_update_rollback_and_forget_are_allowed_likewise(context: Context, person: Context, space: Space) -> None:
    note = remember(context, space, SHARED)
    other = remember(context, space, replace(SHARED, text="Also told."))
    meet_two(context, space)

    def once(work: Callable[[], object]) -> None:
        with pytest.raises(RuleOfTwo) as caught:
            work()
        allow_once(person, space, caught.value.asked, "yes")
        work()

    once(lambda: update(context, space, note.id, "Told anew."))
    once(lambda: rollback(context, space, note.id))
    with pytest.raises(RuleOfTwo):
        forget(context, space, Selection((other.id,)))
    used = [e.what for e in session_show(context, space).events if e.event == "allowed"]
    assert used == ["update", "rollback"], "each was used up"


def test_an_import_needs_a_person(context: Context, person: Context, space: Space, tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "a.md").write_text("---\nscope: team\n---\nTold to everybody.\n")
    meet_two(context, space)
    with pytest.raises(RuleOfTwo):
        import_folder(context, space, folder)
    assert import_folder(person, space, folder).taken == 1
    with pytest.raises(RuleOfTwo):
        pull(context, space, "https://x.example/salaries-are-paid-on-the-25th")


WRITES: dict[str, Callable[[Context, Space, Path], object]] = {
    "golden add": lambda c, s, _: golden_add(c, s, "When are salaries paid?", ["mem_salaries1"]),
    "journal import": lambda c, s, p: import_journal(c, s, p / "turns.jsonl"),
    "index add": lambda c, s, _: index_add(c, s, "plain"),
    "index promote": lambda c, s, _: index_promote(c, s, "plain"),
    "index retire": lambda c, s, _: index_retire(c, s, "plain"),
    "import keys": lambda c, s, p: import_keys(c, s, p / "keys.json"),
    "clone": lambda c, s, p: clone(c, s.one().repository.keys, str(p / "nowhere"), p / "made", near=s),
}


@pytest.mark.requirement("A-062")
@pytest.mark.parametrize("what", WRITES)
def test_every_command_that_writes_for_others_asks(context: Context, space: Space, tmp_path: Path, what: str) -> None:
    (tmp_path / "turns.jsonl").write_text('{"speaker": "dana", "text": "Hello."}\n')
    meet_two(context, space)
    with pytest.raises(RuleOfTwo):
        WRITES[what](context, space, tmp_path)
    assert not (space.one().repository.root / "memory" / "golden.yaml").exists()
    assert not (tmp_path / "made").exists()


def test_a_person_allows_a_golden_question_once(context: Context, person: Context, space: Space) -> None:
    meet_two(context, space)
    with pytest.raises(RuleOfTwo) as caught:
        WRITES["golden add"](context, space, Path())
    allow_once(person, space, caught.value.asked, "it is a good question")
    WRITES["golden add"](context, space, Path())
    with pytest.raises(RuleOfTwo):
        WRITES["golden add"](context, space, Path())


def test_what_is_shared_and_due_expires_by_a_person_only_when_two_were_met(
    context: Context, person: Context, space: Space, site: Site, clock: Clock
) -> None:
    own = remember(context, space, NewNote("For myself.", retention_days=1))
    meet_two(context, space)
    clock.tick(days=2)
    assert {item.id for item in expire(context, space).removed if item.kind == "note"} == {own.id}
    shared = remember(replace(context, person=True), space, NewNote("Told.", scope="team", retention_days=1))
    clock.tick(days=2)
    assert expire(context, space, dry_run=True).dry_run
    with pytest.raises(RuleOfTwo) as caught:
        expire(context, space)
    assert site.file(shared.path)
    allow_once(person, space, caught.value.asked, "it is due")
    assert shared.id in {item.id for item in expire(context, space).removed}
