"""Recipes side by side: built beside whoever recalls, tried, let answer by the golden questions, taken away."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.errors import CheckFailed, ConfirmationRequired, Conflict, NotFound, Unavailable
from memoranda.home.keys import Keys
from memoranda.index import building
from memoranda.index.embedding.static import installed
from memoranda.index.endpoints import Endpoint
from memoranda.index.serving import Serving
from memoranda.operations.forgetting import Selection, forget
from memoranda.operations.goldens import golden_add, golden_run
from memoranda.operations.recalling import recall
from memoranda.operations.recipes import (
    golden_compare,
    index_add,
    index_promote,
    index_retire,
    index_try,
    recipe_states,
)
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space
from tests.standin import StandIn, meanings, serving

needs_table = pytest.mark.skipif(installed() is None, reason="the package wordllama is not installed")
KEY = "key-of-the-server-5521"


@pytest.fixture
def model() -> Iterator[StandIn]:
    """A server whose model knows what a few words mean."""
    with serving(meanings) as standing:
        yield standing


@pytest.fixture
def endpoints(server: StandIn, model: StandIn) -> dict[str, Endpoint]:
    """What the person's settings say; a test may change it."""
    return {
        "letters": Endpoint(server.url, "letters", 8, batch=4),
        "meanings": Endpoint(model.url, "meanings", 64, KEY, batch=4),
    }


@pytest.fixture
def space(home: Path, context: Context, keys: Keys, endpoints: dict[str, Endpoint]) -> Iterator[Space]:
    """The Home without a table of vectors, whatever is installed: what is tested is how recipes come and go."""
    Serving(home / ".git" / "memoranda").change(lambda record: replace(record, active="words"))
    with Space(context, keys, home, None, endpoints=lambda: endpoints) as opened:
        yield opened


def ids(context: Context, space: Space, question: str) -> list[str]:
    return [item.id for item in recall(context, space, question).items]


def states(space: Space) -> dict[str, str]:
    return {state.name: state.state for state in recipe_states(space.one())}


def until(holds: Callable[[], bool]) -> None:
    """Waits for what another process does."""
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen in half a minute")


def filled(context: Context, space: Space, count: int) -> list[str]:
    return [remember(context, space, NewNote(f"Cabbage {n} stands in row {n * 7}.")).id for n in range(count)]


# Beside each other


@pytest.mark.requirement("A-011")
def test_several_vector_indexes_stand_side_by_side(person: Context, space: Space, home: Path) -> None:
    told = remember(person, space, NewNote("The physician wrote a prescription."))
    for name in ("words+endpoint:letters", "words+endpoint:meanings"):
        index_add(person, space, name, wait=True)
    assert states(space) == {"words": "active", "words+endpoint:letters": "ready", "words+endpoint:meanings": "ready"}
    assert len(list((home / ".memoranda").glob("vectors-*"))) == 2
    assert ids(person, space, "doctor medicine") == []  # the active one goes by words alone
    for n in range(30):  # as many as it takes to know from which likeness on something is shown
        remember(person, space, NewNote(f"{n}a {n}b {n}c {n}d."))
    view = index_try(person, space, "words+endpoint:meanings", "doctor medicine")
    assert [item.id for item in view.items] == [told.id]
    assert [name.split("-")[0] for name in view.coverage.indexes] == ["lexical", "vectors"]
    assert ids(person, space, "doctor medicine") == []


def test_a_process_that_lives_long_keeps_the_others_level_and_nobody_waits(
    person: Context, space: Space, server: StandIn
) -> None:
    home = space.one()
    index_add(person, space, "words+outline", wait=True)
    index_add(person, space, "words+endpoint:letters", wait=True)
    filled(person, space, 3)
    recall(person, space, "cabbage")
    assert states(space)["words+endpoint:letters"] == "behind"  # a process of one question does no more than that
    space.watch()
    server.most = 0  # its answers are held up from here on
    recall(person, space, "cabbage")
    until(lambda: states(space)["words+endpoint:letters"] == "building" and len(server.asked) > 0)
    began = time.monotonic()
    last = filled(person, space, 1)[0]
    assert last in ids(person, space, "cabbage row")
    assert time.monotonic() - began < 15  # the server would be waited for twice as long
    server.most = 1_000_000
    server.gate.set()
    until(lambda: building.under_way(home.repository.layout.own) is False)
    home.upkeep.due = 0.0  # as ten seconds later
    recall(person, space, "cabbage")
    until(lambda: states(space) == {"words": "active", "words+outline": "ready", "words+endpoint:letters": "ready"})
    seen = home.upkeep.seen
    asked = len(server.asked)
    home.upkeep.due = 0.0
    recall(person, space, "cabbage")
    assert home.upkeep.seen == seen
    assert len(server.asked) == asked  # nothing is new, and nothing is begun


@pytest.mark.requirement("A-013")
def test_a_build_disturbs_neither_recall_nor_writing_and_goes_on_after_a_kill(
    person: Context, space: Space, server: StandIn, home: Path
) -> None:
    """The server answers nothing for a while, so that whoever waited for the build would wait for ever."""
    before = filled(person, space, 20)
    server.most = 2
    assert index_add(person, space, "words+endpoint:letters").state == "building"
    until(lambda: len(server.asked) == 3)
    during = remember(person, space, NewNote("The zeppelin lands on Monday."))
    assert ids(person, space, "zeppelin") == [during.id]
    assert before[3] in ids(person, space, "cabbage 3")
    assert states(space)["words+endpoint:letters"] == "building"
    pid = _pid(home)
    os.kill(pid, signal.SIGKILL)
    until(lambda: states(space)["words+endpoint:letters"] == "stopped")
    (told,) = [state for state in recipe_states(space.one()) if state.name == "words+endpoint:letters"]
    assert told.why and "goes on" in told.why
    assert 0 < _embedded(space, home) < 21
    server.most = 1_000_000
    index_add(person, space, "words+endpoint:letters")
    until(lambda: states(space)["words+endpoint:letters"] == "ready")
    under_way = server.asked[2]["input"]  # when it was killed: that is asked for again, and nothing else
    assert under_way and len(server.texts) == 21 + len(under_way)
    assert len(set(server.texts)) == 21
    assert _embedded(space, home) == 21


def _embedded(space: Space, home: Path) -> int:
    """How many documents have a vector of letters."""
    part = space.one().indexes.recipe("words+endpoint:letters").model
    assert part is not None
    index = part.open(home / ".memoranda" / part.name)
    try:
        index.check()
        return index.counts().live
    finally:
        index.close()


def _pid(home: Path) -> int:
    (file,) = (home / ".memoranda").glob(f"vectors-*/{building.FILE}")
    return int(json.loads(file.read_bytes())["pid"])


def tree(home: Path) -> str:
    """The id of everything that is remembered in notes."""
    words = ["git", "rev-parse", "HEAD:memory"]
    return subprocess.run(words, cwd=home, capture_output=True, text=True, check=True).stdout


def test_what_stopped_a_build_is_told_and_it_can_go_on(person: Context, space: Space, server: StandIn) -> None:
    filled(person, space, 3)
    server.says = [(401, {}, b"")]
    with pytest.raises(Unavailable, match="refuses"):
        index_add(person, space, "words+endpoint:letters", wait=True)
    (told,) = [state for state in recipe_states(space.one()) if state.name == "words+endpoint:letters"]
    assert told.state == "stopped" and told.why and "401" in told.why
    assert index_add(person, space, "words+endpoint:letters", wait=True).state == "ready"


@needs_table
@pytest.mark.requirement("A-016")
def test_vectors_of_a_fixed_model_are_the_same_again(context: Context, space: Space, home: Path) -> None:
    filled(context, space, 12)
    made = []
    for _ in range(2):
        index_add(context, space, "static", wait=True)
        part = space.one().indexes.recipe("static").table
        assert part is not None
        index = part.open(home / ".memoranda" / part.name)
        made.append(index.vectors_of(sorted(index.keys())))  # type: ignore[attr-defined]
        index.close()
        space.one().indexes.drop()
        space.one().refresh(context)
    assert len(made[0]) == 12 and made[0] == made[1]


# Promotion


@pytest.fixture
def stocked(person: Context, space: Space) -> str:
    """A note among others that only a model of meanings finds by the golden question; its id."""
    told = remember(person, space, NewNote("The physician wrote a prescription."))
    for n in range(30):
        remember(person, space, NewNote(f"{n}a {n}b {n}c {n}d."))
    return told.id


@pytest.mark.requirement("A-014")
def test_a_recipe_answers_when_the_golden_questions_find_it_no_worse(
    person: Context, space: Space, home: Path, stocked: str
) -> None:
    index_add(person, space, "words+endpoint:meanings", wait=True)
    with pytest.raises(CheckFailed, match="no golden question"):
        index_promote(person, space, "words+endpoint:meanings")
    golden_add(person, space, "doctor medicine", [stocked])
    assert ids(person, space, "doctor medicine") == []
    done = index_promote(person, space, "words+endpoint:meanings")
    assert (done.former, done.forced, done.new.hit, done.old.hit) == ("words", False, 1.0, 0.0)
    assert ids(person, space, "doctor medicine") == [stocked]
    with pytest.raises(Conflict, match="answers already"):
        index_promote(person, space, "words+endpoint:meanings")
    # The way back: the old index is there still, and worse.
    assert states(space) == {"words+endpoint:meanings": "active", "words": "ready"}
    with pytest.raises(CheckFailed, match="words is worse"):
        index_promote(person, space, "words")
    assert ids(person, space, "doctor medicine") == [stocked]
    with pytest.raises(ConfirmationRequired):
        index_promote(replace(person, person=False), space, "words", force=True)
    assert index_promote(person, space, "words", force=True).forced
    assert ids(person, space, "doctor medicine") == []
    told = Serving(home / ".git" / "memoranda").read().promotions
    assert [(p.recipe, p.former, p.by, p.forced) for p in told] == [
        ("words+endpoint:meanings", "words", "dana", False), ("words", "words+endpoint:meanings", "dana", True),
    ]  # fmt: skip


def test_both_are_shown_question_by_question(person: Context, space: Space, stocked: str) -> None:
    golden_add(person, space, "doctor medicine", [stocked])
    golden_add(person, space, "Who wrote a prescription?", [stocked])
    index_add(person, space, "words+endpoint:meanings", wait=True)
    done = golden_compare(person, space, "words+endpoint:meanings")
    assert not done.worse
    rows = [(row["question"], row["ranks"]) for row in done.json()["questions"]]  # type: ignore[union-attr, attr-defined]
    assert rows == [
        ("doctor medicine", {"words": None, "words+endpoint:meanings": 1}),
        ("Who wrote a prescription?", {"words": 1, "words+endpoint:meanings": 1}),
    ]


def test_what_answers_and_the_last_that_passed_are_not_retired(
    person: Context, space: Space, home: Path, stocked: str
) -> None:
    golden_add(person, space, "doctor medicine", [stocked])
    index_add(person, space, "words+endpoint:meanings", wait=True)
    index_promote(person, space, "words+endpoint:meanings")
    with pytest.raises(Conflict, match="answers"):
        index_retire(person, space, "words+endpoint:meanings")
    index_promote(person, space, "words", force=True)
    with pytest.raises(Conflict, match="last recipe that passed"):
        index_retire(person, space, "words+endpoint:meanings")
    with pytest.raises(NotFound):
        index_retire(person, space, "words+endpoint:letters")
    golden_add(person, space, "Who wrote a prescription?", [stocked])
    golden = home / "memory" / "golden.yaml"
    golden.write_text(golden.read_text().replace("hit: 1.0, mrr: 0.5", "hit: 0.5, mrr: 0.5"))
    assert golden_run(person, space).passed
    (gone,) = index_retire(person, space, "words+endpoint:meanings")
    assert gone.startswith("vectors-") and not (home / ".memoranda" / gone).exists()
    assert not list((home / ".memoranda" / "models").glob("answers-*"))
    assert states(space) == {"words": "active"}
    assert stocked in ids(person, space, "prescription")


@pytest.mark.requirement("A-053")
def test_no_exchange_touches_a_note(person: Context, space: Space, home: Path, stocked: str) -> None:
    golden_add(person, space, "Who wrote a prescription?", [stocked])
    space.one().repository.flush()
    before = tree(home)
    assert before
    for name in ("words+endpoint:meanings", "words+endpoint:letters", "words"):
        if name != "words":
            index_add(person, space, name, wait=True)
        index_promote(person, space, name, force=True)
        assert stocked in ids(person, space, "Who wrote a prescription?")
        space.one().repository.flush()
        assert tree(home) == before


@pytest.mark.requirement("A-050")
def test_another_model_or_version_is_tested_by_itself(
    person: Context, space: Space, home: Path, keys: Keys, stocked: str, model: StandIn, endpoints: dict[str, Endpoint]
) -> None:
    golden_add(person, space, "doctor medicine", [stocked])
    index_add(person, space, "words+endpoint:meanings", wait=True)
    index_promote(person, space, "words+endpoint:meanings")
    record = Serving(home / ".git" / "memoranda")
    first = record.read()
    assert recall(person, space, "doctor medicine").coverage.notices == ()
    assert record.read() == first  # nothing changed, nothing is asked again
    space.close()
    # A model that knows nothing, at the same address under another name.
    model.model = lambda _: [1.0] * 64
    endpoints["meanings"] = endpoints["meanings"]._replace(model="meanings-2")
    with Space(person, keys, home, None, endpoints=lambda: endpoints) as again:
        view = recall(person, again, "doctor medicine")
        assert any("golden questions were asked again: hit 0.000" in notice for notice in view.coverage.notices)
        assert not any("golden" in notice for notice in recall(person, again, "doctor").coverage.notices)
        second = record.read()
        assert second.digest != first.digest and second.kept["words+endpoint:meanings"].tested != first.kept[
            "words+endpoint:meanings"].tested  # fmt: skip


# A server is asked only when a person has let it be


def test_nobody_else_than_a_person_lets_texts_be_sent(context: Context, space: Space, server: StandIn) -> None:
    remember(context, space, NewNote("The roof lost two slates."))
    with pytest.raises(ConfirmationRequired, match="would be sent"):
        index_add(context, space, "words+endpoint:letters", wait=True)
    index_add(replace(context, person=True), space, "words")
    with pytest.raises(Unavailable, match="cannot be used here"):
        index_try(context, space, "words+endpoint:letters", "slates")
    assert server.asked == []


def test_a_home_that_names_a_server_makes_nobody_call_it(
    context: Context, space: Space, server: StandIn, home: Path
) -> None:
    """Who can write every file of a Home, Git's folder included, can name a recipe, and that is all."""
    told = remember(context, space, NewNote("The roof lost two slates."))
    Serving(home / ".git" / "memoranda").change(lambda record: replace(record, active="words+endpoint:letters"))
    view = recall(context, space, "slates")
    assert [item.id for item in view.items] == [told.id]
    assert any("cannot be used here" in notice and "answers" in notice for notice in view.coverage.notices)
    assert server.asked == []


def test_another_address_under_the_same_name_needs_another_word(
    person: Context, space: Space, server: StandIn, model: StandIn, endpoints: dict[str, Endpoint]
) -> None:
    remember(person, space, NewNote("The roof lost two slates."))
    index_add(person, space, "words+endpoint:letters", wait=True)
    before = len(server.asked)
    assert before
    endpoints["letters"] = endpoints["letters"]._replace(url=model.url)
    with pytest.raises(Unavailable, match="cannot be used here"):
        index_try(replace(person, person=False), space, "words+endpoint:letters", "slates")
    assert model.asked == [] and len(server.asked) == before


def test_a_record_that_cannot_be_read_is_named_and_recall_goes_on(context: Context, space: Space, home: Path) -> None:
    told = remember(context, space, NewNote("The roof lost two slates."))
    (home / ".git" / "memoranda" / "recipes.json").write_text("{")
    view = recall(context, space, "slates")
    assert [item.id for item in view.items] == [told.id]
    assert "does not say which recipe answers" in view.coverage.notices[0]


# A server that answers


@pytest.fixture
def remote(person: Context, space: Space, stocked: str) -> str:
    """The Home when the model of meanings answers."""
    golden_add(person, space, "doctor medicine", [stocked])
    index_add(person, space, "words+endpoint:meanings", wait=True)
    index_promote(person, space, "words+endpoint:meanings")
    return stocked


def test_what_is_new_is_found_by_its_words_at_once_and_by_its_meaning_soon(
    person: Context, space: Space, model: StandIn, remote: str
) -> None:
    new = remember(person, space, NewNote("A vessel from Oslo came in."))
    view = recall(person, space, "vessel")
    assert [item.id for item in view.items] == [new.id]
    assert any("has a vector" in notice for notice in view.coverage.notices)
    until(lambda: ids(person, space, "ship boat") == [new.id])
    assert model.texts.count("A vessel from Oslo came in.") == 1


def test_without_its_server_words_answer_and_it_is_said(
    person: Context, space: Space, model: StandIn, remote: str
) -> None:
    model.says = [(500, {}, b"")] * 3
    view = recall(person, space, "physician")
    assert [item.id for item in view.items] == [remote]
    assert any("goes by the words alone" in notice for notice in view.coverage.notices)
    assert model.says == [(500, {}, b"")] * 2  # a question is asked once, and then others for a while not at all
    assert ids(person, space, "prescription") == [remote]
    assert model.says == [(500, {}, b"")] * 2


def test_what_is_forgotten_is_forgotten_here_too(person: Context, space: Space, home: Path, remote: str) -> None:
    forget(person, space, Selection((remote,)))
    assert ids(person, space, "doctor medicine") == []
    until(lambda: states(space)["words+endpoint:meanings"] == "active" and _answers(home) == 0)


def _answers(home: Path) -> int:
    (file,) = (home / ".memoranda" / "models").glob("answers-*/embeddings.sqlite")
    db = sqlite3.connect(file)
    try:
        return int(db.execute("SELECT count(*) FROM vectors").fetchone()[0])
    finally:
        db.close()


def test_the_key_is_written_nowhere(person: Context, space: Space, home: Path, model: StandIn, remote: str) -> None:
    assert set(model.keys) == {f"Bearer {KEY}"}
    for path in [*home.rglob("*"), *space.one().repository.keys.folder.parent.rglob("*")]:
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path
