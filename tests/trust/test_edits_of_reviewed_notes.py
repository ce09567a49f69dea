"""An edit of a reviewed note waits for its review, and what was reviewed goes on being recalled."""

from __future__ import annotations

import re
from datetime import datetime

import pytest

from memoranda.operations.presenting import Item
from memoranda.operations.reading import read
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.session_desk import session_taint
from memoranda.trust.contested import contests
from trust.stage import Stage

QUESTION = "When does the harbour open?"
TRUE, FALSE = "The harbour opens at six.", "The harbour opens at nine."


def edit(stage: Stage, path: str, old: str = TRUE, new: str = FALSE) -> None:
    file = stage.root / path
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def taint(stage: Stage) -> None:
    session_taint(stage.agent("eve"), stage.space, "read a page")


def told(stage: Stage, name: str = "reader", **more: object) -> list[tuple[str, str, str]]:
    """(id, trust, text) of what is recalled."""
    return [(item.id, item.trust, item.text) for item in stage.recall(QUESTION, name, **more).items]


def reviewed(stage: Stage, **more: object) -> Item:
    (item,) = (item for item in stage.recall(QUESTION, **more).items if item.reviewed)
    return item


@pytest.mark.parametrize("tainted", [True, False])
def test_the_reviewed_words_are_recalled_before_an_edit_of_them(stage: Stage, tainted: bool) -> None:
    note = stage.reviewed(TRUE, subject="harbour")
    if tainted:
        taint(stage)
    edit(stage, note.path)
    state = "quarantined" if tainted else "contested"
    assert told(stage, "eve") == [(note.id, "reviewed", TRUE), (note.id, state, FALSE)]
    item = reviewed(stage)
    assert item.uri == note.uri and item.state == "current" and item.taint == ()
    assert read(stage.person, stage.space, item.uri).text.strip().endswith(TRUE)
    if tainted:
        view = stage.recall(QUESTION)  # a session that has met nothing is handed no word of it
        assert [item.text for item in view.items] == [TRUE]
        assert [pointed.id for pointed in view.coverage.withheld] == [note.id]


def test_a_person_decides_which_words_stand(stage: Stage) -> None:
    note = stage.reviewed(TRUE, subject="harbour")
    edit(stage, note.path)
    assert [text for _, _, text in told(stage)] == [TRUE, FALSE]
    stage.restart(without_indexes=True)
    assert [text for _, _, text in told(stage)] == [TRUE, FALSE]
    stage.accept(note.id)
    assert told(stage) == [(note.id, "reviewed", FALSE)]
    stage.revoke(note.id)
    assert told(stage) == [(note.id, "unclaimed", FALSE)]


def test_what_was_reviewed_is_read_back_when_its_file_bears_another_id_and_others_supersede_it(stage: Stage) -> None:
    note = stage.reviewed(TRUE, subject="harbour")
    taint(stage)
    newer = update(stage.agent("eve"), stage.space, note.id, FALSE)
    edit(stage, note.path, f"id: {note.id}", "id: mem_00000000000other")
    item = reviewed(stage)
    assert item.uri == note.uri and newer.id in item.proposed_by
    assert read(stage.person, stage.space, item.uri).text.strip().endswith(TRUE)


def test_a_file_that_is_gone_is_gone(stage: Stage) -> None:
    note = stage.reviewed(TRUE, subject="harbour")
    edit(stage, note.path)
    assert len(told(stage)) == 2
    (stage.root / note.path).unlink()
    assert told(stage) == [] and TRUE not in stage.loaded()


def test_an_edit_crowds_out_nothing_however_well_it_answers(stage: Stage) -> None:
    note = stage.reviewed(
        f"{TRUE} Ole has the keys, the crane is by the pier, boats pay at the gate.", subject="harbour"
    )
    edit(stage, note.path, "The harbour opens at six. Ole", f"{QUESTION} {QUESTION} At nine. Nobody")
    stage.recall(QUESTION)  # from here on the edit is known
    for k in (1, 2, 8):
        for known_at in (None, stage._clock()):
            first, *_ = stage.recall(QUESTION, k=k, known_at=known_at).items
            assert first.reviewed and TRUE in first.text


@pytest.mark.parametrize("how", ["another id", "no front matter"])
def test_an_edit_that_takes_the_id_away_is_an_edit(stage: Stage, how: str) -> None:
    note = stage.reviewed(TRUE, subject="harbour")
    file = stage.root / note.path
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(note.id, "mem_another0id") if how == "another id" else f"{FALSE}\n", encoding="utf-8")
    assert (note.id, "reviewed", TRUE) in told(stage) and TRUE in stage.loaded()
    edit(stage, note.path, "opens", "always opens")
    assert (note.id, "reviewed", TRUE) in told(stage) and TRUE in stage.loaded()
    stage.accept(note.path)  # a person has read what stands there now
    assert not [1 for note_id, _, _ in told(stage) if note_id == note.id]
    assert f"[{note.id}]" not in stage.loaded()


@pytest.mark.parametrize(
    "line", ["valid_to: 2026-01-01\n", "supersedes: [mem_other0note]\n", "valid_from: 2030-01-01\n"]
)
def test_an_edit_changes_nothing_about_when_the_reviewed_words_hold(stage: Stage, line: str) -> None:
    other = stage.reviewed("The harbour has a crane that opens by hand.", subject="crane")
    note = stage.reviewed(TRUE, subject="harbour")
    line = line.replace("mem_other0note", other.id)
    text = (stage.root / note.path).read_text(encoding="utf-8")
    text = re.sub(rf"^{line.partition(':')[0]}:.*\n", "", text, flags=re.M)
    stage.put(note.path, text.replace("---\n", f"---\n{line}", 1))
    items = {item.text: item for item in stage.recall(QUESTION).items if item.reviewed}
    assert items[TRUE].state == "current" and len(items) == 2
    assert items[TRUE].valid_from is None and items[TRUE].valid_to is None and items[TRUE].supersedes == ()


def test_what_the_reviewed_words_supersede_does_not_come_back(stage: Stage) -> None:
    old = stage.reviewed("The harbour opens at four.", subject="harbour")
    new = remember(stage.person, stage.space, NewNote(TRUE, subject="harbour", supersedes=(old.id,)))
    stage.accept(new.id)
    edit(stage, new.path, f"supersedes: [{old.id}]\n", "")
    assert {note_id for note_id, _, _ in told(stage)} == {new.id}
    item = reviewed(stage)
    assert item.supersedes == (old.id,)


def test_what_was_known_before_and_since(stage: Stage) -> None:
    note = stage.reviewed(TRUE, subject="harbour")
    before = stage.now
    edit(stage, note.path)
    told(stage)
    between = stage._clock()
    edit(stage, note.path, FALSE, "The harbour opens at noon.")
    told(stage)

    def then(at: datetime) -> list[str]:
        return [text for _, _, text in told(stage, known_at=at)]

    assert then(before) == [TRUE]
    assert then(between) == [TRUE, FALSE]
    assert then(stage.now) == [TRUE, "The harbour opens at noon."]
    assert {text for _, _, text in told(stage, history=True)} == {TRUE, FALSE, "The harbour opens at noon."}
    assert reviewed(stage, history=True).state == "current"


def test_two_files_with_one_id_are_no_edit(stage: Stage) -> None:
    note = stage.reviewed(TRUE, subject="harbour")
    text = (stage.root / note.path).read_text(encoding="utf-8")
    stage.put("memory/notes/copy.md", text.replace(TRUE, FALSE))
    assert [trust for _, trust, _ in told(stage)] == ["reviewed", "contested"]
    (stage.root / note.path).unlink()
    assert [(trust, text) for _, trust, text in told(stage)] == [("reviewed", TRUE), ("contested", FALSE)]


def test_an_edit_neither_settles_a_contradiction_nor_makes_one(stage: Stage) -> None:
    one = stage.reviewed("Closing time: six", subject="harbour")
    other = stage.remember("Closing time: seven", subject="harbour")

    def contested() -> list[set[str]]:
        stage.home.refresh(stage.person)
        return [{row.id for row in c.members} for c in contests(stage.home.indexes.catalog, stage.now)]

    assert contested() == [{one.id, other.id}]
    taint(stage)
    edit(stage, one.path, "Closing time: six", "Closing time: seven")
    assert contested() == [{one.id, other.id}]
    third = stage.reviewed("Crane: green", subject="harbour")
    edit(stage, third.path, "Crane: green", "Closing time: never")
    assert contested() == [{one.id, other.id}]


def test_an_update_goes_on_from_the_reviewed_words(stage: Stage) -> None:
    note = stage.reviewed(TRUE, subject="harbour")
    session_taint(stage.agent("eve"), stage.space, "read a page")
    edit(stage, note.path, "subject: harbour", "subject: what/eve/wants")
    assert len(told(stage, "eve")) == 2
    done = update(stage.agent("cleo"), stage.space, note.id, "The harbour opens at seven.")
    shown = stage.show(done.id)
    assert shown.subject == "harbour" and shown.state == "unreviewed"


def test_former_versions_keep_no_place_of_the_one_that_holds(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoranda.recall.candidates._MOST_BESIDE", 2)
    ids = [stage.remember(f"{TRUE} {QUESTION}", "cli", subject="harbour").id]
    for _ in range(5):
        ids.append(update(stage.person, stage.space, ids[-1], f"{TRUE} {QUESTION}").id)
    ids.append(update(stage.person, stage.space, ids[-1], TRUE).id)
    stage.accept(*ids)
    for n in range(6):
        stage.remember(f"# {QUESTION}\n\n{QUESTION} At nine, says witness {n}.")
    assert [item.id for item in stage.recall(QUESTION, k=2, include=("notes",)).items if item.reviewed] == [ids[-1]]
