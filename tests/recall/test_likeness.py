"""Recall by vectors, end to end on a real Home: what is said in other words is found, and nothing else is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from memoranda.context import Context
from memoranda.home.keys import Keys
from memoranda.index._scores import Scores
from memoranda.index.embedding.static import installed
from memoranda.index.lexical import LexicalIndex
from memoranda.index.status import index_states
from memoranda.operations.journaling import Turn, append_many
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.space import Space

pytestmark = pytest.mark.skipif(installed() is None, reason="the package wordllama is not installed")


def ids(context: Context, space: Space, question: str, **how: object) -> list[str]:
    return [item.id for item in recall(context, space, question, **how).items]  # type: ignore[arg-type]


def test_other_words_for_the_same_are_found_in_the_same_call(context: Context, space: Space) -> None:
    remember(context, space, NewNote("The build server stands in Lyon."))
    told = remember(context, space, NewNote("The physician wrote a prescription."))
    view = recall(context, space, "doctor medicine")
    assert [item.id for item in view.items] == [told.id]
    assert view.items[0].why["signals"].keys() == {"like"}  # type: ignore[attr-defined]
    assert len(view.coverage.indexes) == 2
    newer = remember(context, space, NewNote("A doctor gave her medicines."))
    assert set(ids(context, space, "physicians and nurses")) == {told.id, newer.id}


def test_what_is_nowhere_is_still_not_found(context: Context, space: Space) -> None:
    remember(context, space, NewNote("The physician wrote a prescription."))
    for question in ("quantum chromodynamics", "zeppelin", "the of and", "🙂", "invoice 4711"):
        assert ids(context, space, question) == []


def test_who_names_a_thing_exactly_gets_that_thing(context: Context, space: Space) -> None:
    told = [remember(context, space, NewNote(f"Ticket ops{n} is about the doctor.")) for n in range(20)]
    assert ids(context, space, "ops7") == [told[7].id]


def test_filters_and_states_hold_for_what_words_did_not_find(context: Context, space: Space) -> None:
    old = remember(context, space, NewNote("The physician wrote a prescription.", subject="health"))
    assert ids(context, space, "doctor medicine", subject="work") == []
    assert ids(context, space, "doctor medicine", kinds=("preference",)) == []
    assert ids(context, space, "doctor medicine", include=("journal",)) == []
    new = update(context, space, old.id, "The physician wrote a new prescription.")
    assert ids(context, space, "doctor medicine prescription") == [new.id]


def test_passages_count_with_what_is_around_them(context: Context, space: Space) -> None:
    said = append_many(
        context,
        space.writable(),
        [
            Turn("I went to the physician this morning.", "Dana", session="s1"),
            Turn("And what came of it?", "Luis", session="s1"),
            Turn("A prescription and three days of rest.", "Dana", session="s1"),
            Turn("The build server stands in Lyon.", "Luis", session="s2"),
        ],
    )
    view = recall(context, space, "Which medicine did the doctor give to Dana?")
    shown = [item.id for item in view.items]
    assert {said[0].id, said[2].id} <= set(shown[:3])
    assert {"like", "like_near", "like_session"} <= set(view.items[0].why["signals"])  # type: ignore[call-overload]


def test_vectors_are_made_again_when_they_are_gone_or_damaged(context: Context, space: Space, home: Path) -> None:
    told = remember(context, space, NewNote("The physician wrote a prescription."))
    assert ids(context, space, "doctor medicine") == [told.id]
    vectors = space.one().indexes.table
    assert vectors is not None
    shutil.rmtree(vectors.directory)
    assert ids(context, space, "doctor medicine") == [told.id]
    vectors = space.one().indexes.table
    assert vectors is not None
    file = vectors.directory / "vectors.bin"
    file.write_bytes(bytes(len(file.read_bytes())))
    view = recall(context, space, "doctor prescription")
    assert [item.id for item in view.items] == [told.id] and "vectors" not in view.items[0].why["indexes"]  # type: ignore[operator]
    assert "by the words alone" in view.coverage.notices[0]
    assert ids(context, space, "doctor medicine") == [told.id]


def test_status_names_the_vectors(context: Context, space: Space) -> None:
    remember(context, space, NewNote("The physician wrote a prescription."))
    space.one().repository.flush()
    recall(context, space, "doctor")
    status = {item.name.split("-")[0]: item for item in index_states(space.one().indexes)}
    assert status["vectors"].state == "fresh"
    assert status["vectors"].counts == {"live": 1, "retired": 0}
    assert status["vectors"].recipe is not None and status["vectors"].recipe.params["model"] == "wordllama-256"


def test_what_another_process_says_in_the_middle_of_a_question_breaks_nothing(
    context: Context, space: Space, home: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look for words and that for what is alike, the other has written and brought the indexes up."""
    append_many(context, space.writable(), [Turn("The build server stands in Lyon.", "Luis", session="s1")])
    assert ids(context, space, "doctor medicine") == []
    search, spoken = LexicalIndex.search, []

    def meanwhile(self: LexicalIndex, *given: Any, **more: Any) -> Scores:
        scores = search(self, *given, **more)
        if not spoken:
            spoken.append(True)
            with Space(context, keys, home, None) as other:
                append_many(context, other.writable(), [Turn("The physician wrote a prescription.", session="s1")])
                assert ids(context, other, "doctor medicine")
        return scores

    monkeypatch.setattr(LexicalIndex, "search", meanwhile)
    recall(context, space, "doctor medicine")
    assert spoken and ids(context, space, "doctor medicine")
