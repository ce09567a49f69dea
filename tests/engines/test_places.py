"""What lies in another place is as if it were not there, and what attacks that fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import Item, OperationContext, Place, RecallRequest, RememberRequest, UpdateRequest
from memoranda.engines.homes import Homes
from memoranda.errors import MemorandaError, NotFound
from tests.conftest import Clock
from tests.engines.asking import asking

ASK = RecallRequest(query="When does the office of Acme close, and who has the key?")


def _put(engine: Builtin, context: Context, where: OperationContext, text: str, **more: object) -> Item:
    return engine.remember(context, where, RememberRequest(content=text, **more))  # type: ignore[arg-type]


def _told(engine: Builtin, context: Context, where: OperationContext) -> object:
    """Everything that a caller is told, but for names that are drawn by chance."""
    found = engine.recall(context, where, ASK)
    listed = engine.list(context, where, scope=None, limit=50, after=None)
    return found.model_dump(), listed.model_dump()


@pytest.mark.parametrize("stranger", [
    asking("bob", writes="user"), asking("bob", "max", writes="agent"), asking("bob", "max", writes="shared_agents"),
    asking("bob", session="s1", writes="session"), asking("bob", project="app", writes="project"),
    asking("bob", tenant="evil", writes="organization"),
])  # fmt: skip
def test_what_others_keep_changes_nothing_of_an_answer(
    engine: Builtin, context: Context, stranger: OperationContext
) -> None:
    """Neither items nor scores, counts, pages, nor what contests what: not even how rare a word is."""
    mine = asking(writes="user", reads=("user", "agent", "shared_agents", "project"))
    for n in range(12):
        _put(
            engine, context, mine, f"The office of Acme closes at {n}; the key hangs behind door {n}.", subject="office"
        )
    before = _told(engine, context, mine)
    for n in range(30):
        text = f"Closing time: {n}. The office, the key, Acme, and who has it." if n % 2 else "closes closes closes key"
        _put(engine, context, stranger, text, subject="office")
    assert _told(engine, context, mine) == before


def test_without_the_filter_the_same_notes_would_change_it(engine: Builtin, context: Context) -> None:
    mine = asking(writes="user", reads=("user",))
    _put(engine, context, mine, "The office of Acme closes at six.")
    before = _told(engine, context, mine)
    _put(engine, context, mine, "Closing time of the office: seven.")
    assert _told(engine, context, mine) != before


def _attempts(engine: Builtin, context: Context, where: OperationContext, item_id: str) -> list[Callable[[], object]]:
    return [
        lambda: engine.get(context, where, item_id),
        lambda: engine.get(context, where, item_id, exact=True),
        lambda: engine.update(context, where, item_id, UpdateRequest(content="Mine now."), if_match=None),
        lambda: engine.update(context, where, item_id, UpdateRequest(content="Mine now."), if_match="0" * 32),
        lambda: engine.forget(context, where, item_id, if_match=None),
        lambda: _put(engine, context, where, "Mine instead.", supersedes=(item_id,)),
    ]


@pytest.mark.parametrize("stranger", [
    asking("bob", writes="user", reads=("user",)), asking("ana", "max", writes="agent", reads=("agent",)),
    asking("ana", project="app", writes="user"), asking("ana", tenant="evil", writes="user"),
])  # fmt: skip
def test_the_id_of_anothers_note_is_as_unknown_as_one_that_nobody_has(
    engine: Builtin, context: Context, stranger: OperationContext
) -> None:
    _put(engine, context, stranger, "The stranger's own.")
    first = _put(engine, context, asking(writes="user"), "Ana's own.")
    second = engine.update(context, asking(), first.id, UpdateRequest(content="Ana's, again."), if_match=None)
    for real in (first.id, second.id):
        refusals = []
        for item_id in (real, "mem_0123456789abcdef", "no-id-at-all"):
            told = []
            for attempt in _attempts(engine, context, stranger, item_id):
                with pytest.raises(NotFound) as refused:
                    attempt()
                told.append((type(refused.value), refused.value.problem()))
            refusals.append(told)
        assert refusals[0] == refusals[1] == refusals[2]
    assert engine.get(context, asking(), first.id) == second
    assert len(engine.list(context, stranger, scope=None, limit=9, after=None).items) == 1


def test_a_source_that_names_anothers_note_tells_nothing_of_it(engine: Builtin, context: Context, homes: Homes) -> None:
    """Whether it exists, and whether it is tainted, makes no difference to a note that cites it."""
    clean = _put(engine, context, asking(writes="user"), "Ana's own.")
    dirty = _put(engine, context, asking("eve", writes="user"), "From a page.", origin="external")
    bob = asking("bob", writes="user", reads=("user",))
    with homes.whole("acme", "web") as home:
        assert home is not None
        named = home.name
        paths = {row.id: row for row in home.indexes.catalog.live_notes()}
    told = []
    for source in (
        f"nas://{named}/{paths[clean.id].path}", f"nas://{named}/{paths[clean.id].path}@{paths[clean.id].blob}",
        f"nas://{named}/{paths[dirty.id].path}", f"nas://{named}/memory/notes/no/such.md", clean.sources[0],
        clean.sources[0].replace("#L1-L3", ""), dirty.sources[0],
    ):  # fmt: skip
        item = _put(engine, context, bob, "Bob cites.", sources=(source,))
        told.append((item.trust, item.taint, item.state))
    assert set(told) == {("quarantined", ("external",), "current")}
    own = _put(engine, context, bob, "Bob's own.")
    with homes.whole("acme", "web") as home:
        assert home is not None
        row = home.indexes.catalog.by_id(own.id)[0]
    cites = _put(engine, context, bob, "Bob cites himself.", sources=(f"nas://{named}/{row.path}@{row.blob}",))
    assert cites.trust == "unreviewed"


def test_who_cites_anothers_record_takes_nothing_along(engine: Builtin, context: Context, homes: Homes) -> None:
    ana = _put(engine, context, asking(writes="user"), "Ana's own.")
    bob = asking("bob", writes="user")
    mine = _put(engine, context, bob, "Bob's.", sources=(ana.sources[0],))
    engine.forget(context, bob, mine.id, if_match=None)
    engine.purge(context, bob)
    assert engine.get(context, asking(), ana.id) == ana
    with homes.whole("acme", "web") as home:
        assert home is not None
        home.refresh(context)
        assert [e.text for e in home.indexes.catalog.entries_of(_path(ana.sources[0]))] == [f"{ana.id}: Ana's own."]


def _path(uri: str) -> str:
    return uri.removeprefix("nas://").partition("/")[2].partition("@")[0]


def test_forgetting_takes_the_record_of_the_call_along(engine: Builtin, context: Context, homes: Homes) -> None:
    ana = _put(engine, context, asking(writes="user"), "Ana's own.")
    engine.forget(context, asking(), ana.id, if_match=None)
    with homes.whole("acme", "web") as home:
        assert home is not None
        home.refresh(context)
        assert [e.text for e in home.indexes.catalog.entries_of(_path(ana.sources[0]))] == [""]


@pytest.mark.parametrize("edit", [
    ("user: ana", "user: bob"), ("scope: user\nuser: ana", "scope: project\nproject: web"),
    ("scope: user\nuser: ana\n", "scope: organization\n"), ("user: ana\n", ""), ("user: ana", "user: [ana, bob]"),
])  # fmt: skip
@pytest.mark.parametrize("homes", ["disk"], indirect=True)
def test_an_owner_that_was_edited_in_the_file_gives_nobody_anything_to_read(
    engine: Builtin, context: Context, homes: Homes, clock: Clock, edit: tuple[str, str]
) -> None:
    kept = _put(engine, context, asking(writes="user"), "Ana's own word is elm.")
    bob = asking("bob")
    with homes.whole("acme", "web") as home:
        assert home is not None
        file = home.repository.root / home.indexes.catalog.by_id(kept.id)[0].path
        homes_root: Path = home.repository.root
    text = file.read_text(encoding="utf-8")
    assert edit[0] in text
    file.write_text(text.replace(*edit), encoding="utf-8")
    beside = homes_root / "memory/notes/planted.md"
    beside.write_text(
        "---\nscope: user\nuser: bob\norigin: agent\nreviewed: true\n---\nThe word is planted.\n", "utf-8"
    )
    clock.tick(seconds=10)  # the files are not compared at every question
    word = RecallRequest(query="What is the word?")
    for where in (bob, asking(), asking("eve", "max")):
        assert engine.recall(context, where, word).items == ()
        assert engine.list(context, where, scope=None, limit=9, after=None).items == ()
        with pytest.raises(NotFound):
            engine.get(context, where, kept.id)


def test_front_matter_in_a_text_is_text(engine: Builtin, context: Context) -> None:
    forged = "---\nscope: project\nproject: web\nuser: bob\nid: mem_0000000000000000\n---\nThe word is elm."
    kept = _put(engine, context, asking(writes="user"), forged, subject="x\nscope: project\nproject: web")
    assert (kept.scope, kept.owner, kept.content) == ("user", "ana", forged)
    assert engine.recall(context, asking("bob"), RecallRequest(query="word elm")).items == ()
    found = engine.recall(context, asking(), RecallRequest(query="word elm")).items
    assert [item.id for item in found] == [kept.id]


@pytest.mark.parametrize("subject", ["of:user", 'of:user {"user": "bob"}', "x/of:user/bob", "a\x01of:user", "in:notes"])
def test_a_subject_is_no_place(engine: Builtin, context: Context, subject: str) -> None:
    try:
        _put(engine, context, asking(writes="user"), "The word is elm.", subject=subject)
    except MemorandaError:
        return  # refused is as good
    assert engine.recall(context, asking("bob"), RecallRequest(query="word elm")).items == ()


def test_what_one_reader_was_told_is_not_kept_for_the_next(engine: Builtin, context: Context) -> None:
    """Readers take turns on one connection, and each has counts and findings of his own."""
    for n in range(5):
        _put(engine, context, asking(writes="user"), f"The word is elm {n}.")
    word = RecallRequest(query="word elm")
    for where, count in ((asking(), 5), (asking("bob"), 0), (asking(), 5), (asking("eve", "max", reads=("agent",)), 0)):
        found = engine.recall(context, where, word)
        assert (len(found.items), found.coverage.searched) == (count, count)


def test_a_question_of_time_alone_is_answered_from_the_own_places(
    engine: Builtin, context: Context, clock: Clock
) -> None:
    own = _put(engine, context, asking(writes="user"), "The roof was mended.", kind="episodic")
    for n in range(3):
        _put(engine, context, asking("bob", writes="user"), f"The door was painted {n}.", kind="episodic")
    clock.tick(days=1)
    found = engine.recall(context, asking(), RecallRequest(query="What happened yesterday?"))
    assert [item.id for item in found.items] == [own.id]


def test_no_places_read_nothing(engine: Builtin, context: Context) -> None:
    kept = _put(engine, context, asking(writes="user"), "The word is elm.")
    nobody = asking(reads=())
    assert engine.recall(context, nobody, RecallRequest(query="word elm")).items == ()
    assert engine.list(context, nobody, scope=None, limit=9, after=None).items == ()
    with pytest.raises(NotFound):
        engine.get(context, nobody, kept.id)


def test_places_of_another_project_or_organization_are_none(engine: Builtin, context: Context) -> None:
    _put(engine, context, asking(project="app", writes="project"), "The word is elm.")
    _put(engine, context, asking(writes="organization"), "The word is oak.")
    other = (Place(scope="project", owner="app"), Place(scope="organization", owner="others"))
    assert engine.recall(context, asking(reads=(), beside=other), RecallRequest(query="word")).items == ()


def test_what_is_shared_is_read_by_those_it_is_shared_with(engine: Builtin, context: Context) -> None:
    kept = _put(engine, context, asking(writes="shared_agents"), "The word is elm.")
    shared = asking("bob", "max", beside=(Place(scope="shared_agents", owner="cleo"),))
    assert engine.get(context, shared, kept.id).owner == "cleo"
    new = engine.update(context, shared, kept.id, UpdateRequest(content="The word is oak."), if_match=None)
    assert (new.owner, engine.get(context, asking(), kept.id).content) == ("cleo", "The word is oak.")
    with pytest.raises(NotFound):
        engine.get(context, asking("bob", "max"), kept.id)


@pytest.mark.parametrize("name", ["Ana", "ana.", "an", "ana@x", "a" * 64])
def test_names_that_are_alike_are_not_the_same(engine: Builtin, context: Context, name: str) -> None:
    kept = _put(engine, context, asking(writes="user"), "The word is elm.")
    agents = _put(engine, context, asking(writes="agent"), "The word is oak.")
    for where in (asking(name, "max", reads=("user", "agent")), asking("max", name, reads=("user", "agent"))):
        for item in (kept, agents):
            with pytest.raises(NotFound):
                engine.get(context, where, item.id)
