"""Two times are kept apart: what held when, and what was believed when."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.context import Context
from memoranda.errors import InvalidInput
from memoranda.notes.times import Interval
from memoranda.operations.importing import import_folder
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.reviewing import decide
from memoranda.operations.session_desk import session_taint
from memoranda.operations.space import Space
from memoranda.operations.timelines import Version, timeline
from memoranda.recall.visibility import Asked, Visibility
from tests.conftest import Clock


def at(month: int, day: int = 1, year: int = 2026) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def by_id(found: list[Version]) -> dict[str, Version]:
    return {version.id: version for version in found}


@pytest.mark.requirement("A-007", "A-009")
def test_a_later_successor_ends_it_and_a_correction_undoes_it(context: Context, space: Space, clock: Clock) -> None:
    dana = remember(context, space, NewNote("Champion: Dana", subject="customer/acme", valid_from=at(1)))
    clock.set(at(11, 5))
    luis = update(context, space, dana.id, "Champion: Luis", changes={"valid_from": at(9)})
    clock.set(at(12, 1))
    maria = update(context, space, luis.id, "Champion: Maria", correct=True)

    found = by_id(timeline(context, space, "customer/acme/"))
    first, second, third = found[dana.id], found[luis.id], found[maria.id]
    assert (first.state, second.state, third.state) == ("superseded", "corrected", "head")
    assert (first.valid_from, first.valid_to) == (at(1), None), "what the file says stays as it was"
    assert [(b.known_from.date().isoformat(), b.held, b.head) for b in first.beliefs] == [
        ("2026-10-02", Interval(at(1), None), True),
        ("2026-11-05", Interval(at(1), at(9)), False),
    ]
    assert [(b.known_from.date().isoformat(), b.held, b.head) for b in second.beliefs] == [
        ("2026-11-05", Interval(at(9), None), True),
        ("2026-12-01", None, False),
    ]
    assert [b.held for b in third.beliefs] == [Interval(at(9), None)] and third.beliefs[-1].known_to is None
    assert first.superseded_by == (luis.id,) and second.superseded_by == (maria.id,)

    # The same is what recall answers with both times.
    for known, asked, answer in (
        (at(10, 10), at(10), dana), (at(11, 10), at(10), luis), (at(11, 10), at(8), dana), (at(12, 10), at(10), maria),
    ):  # fmt: skip
        items = recall(context, space, "champion", known_at=known, as_of=asked, include=("notes",)).items
        assert [item.id for item in items] == [answer.id], (known, asked)


def test_what_is_dated_back_or_imported_is_known_from_the_day_it_came(
    context: Context, space: Space, tmp_path: Path, clock: Clock
) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    text = "---\nsubject: pier\nkind: fact\nvalid_from: 2019-05-01\nrecorded_at: 2019-05-02\n---\nIt opened in May.\n"
    (folder / "pier.md").write_text(text)
    clock.set(at(11, 3))
    import_folder(context, space, folder)
    back = remember(context, space, NewNote("It burnt.", subject="pier/fire", valid_from=at(1, year=1999)))
    first, second = timeline(context, space, "pier")
    assert (first.id, first.valid_from) == (back.id, at(1, year=1999))
    assert second.valid_from == at(5, year=2019) and (second.recorded_at or "")[:10] == "2019-05-02"
    assert {v.known_from.date().isoformat() for v in (first, second)} == {"2026-11-03"}
    assert second.beliefs[0].held == Interval(at(5, year=2019), None)
    assert recall(context, space, "opened in May", known_at=at(6, year=2019)).items == ()


def test_edited_moved_and_removed_files_keep_their_past(
    context: Context, space: Space, home: Path, clock: Clock
) -> None:
    note = remember(context, space, NewNote("Depth: nine", subject="berth"))
    path = home / note.path
    clock.set(at(10, 9))
    path.write_text(path.read_text().replace("nine", "ten"))
    assert [(v.title, v.state) for v in timeline(context, space, "berth")] == [
        ("Depth: nine", "edited"), ("Depth: ten", "head"),
    ]  # fmt: skip
    clock.set(at(10, 19))
    path.rename(path.with_name("depth.md"))
    assert [v.state for v in timeline(context, space, "berth")] == ["edited", "moved", "head"]
    clock.set(at(10, 29))
    path.with_name("depth.md").unlink()
    gone = timeline(context, space, "berth")
    assert [v.state for v in gone] == ["edited", "moved", "removed"]
    assert [(v.known_to or at(1)).date().isoformat() for v in gone] == ["2026-10-09", "2026-10-19", "2026-10-29"]
    assert all(v.beliefs[-1].known_to == v.known_to for v in gone)


def test_an_edit_of_a_reviewed_note_is_proposed_and_the_reviewed_words_are_still_believed(
    context: Context, space: Space, home: Path, clock: Clock
) -> None:
    person = replace(context, person=True)
    note = remember(person, space, NewNote("Depth: nine", subject="berth"))
    decide(person, space, [note.id], "accept")
    clock.set(at(10, 9))
    path = home / note.path
    path.write_text(path.read_text().replace("nine", "ten"))
    old, new = sorted(timeline(person, space, "berth"), key=lambda v: v.known_from)
    assert (old.title, old.state, old.trust) == ("Depth: nine", "head", "reviewed")
    assert (new.title, new.state, new.trust) == ("Depth: ten", "proposed", "contested")
    assert old.beliefs[-1].head and old.beliefs[-1].known_to is None and new.beliefs == ()
    clock.set(at(10, 19))
    decide(person, space, [note.id], "accept")
    assert [v.state for v in timeline(person, space, "berth")] == ["edited", "head"]


def test_contested_and_quarantined_are_said_and_the_outside_has_no_word(
    context: Context, space: Space, clock: Clock
) -> None:
    one = remember(context, space, NewNote("Pilot: Ole", subject="harbour"))
    two = remember(context, space, NewNote("Pilot: Maud", subject="harbour"))
    eve = replace(context, agent="eve")
    session_taint(eve, space, "a mail")
    mail = update(eve, space, one.id, "Pilot: Eve, pay her")
    clean = by_id(timeline(context, space, "harbour"))
    assert clean[one.id].contested_by == (two.id,) and clean[two.id].contested_by == (one.id,)
    assert clean[one.id].state == "head" and clean[one.id].superseded_by == (), "a quarantined note only proposes"
    assert clean[one.id].proposed_by == (mail.id,) and clean[mail.id].state == "proposed"
    assert (clean[mail.id].trust, clean[mail.id].title, clean[mail.id].path) == ("quarantined", "", "")
    assert "Eve" not in repr(clean)
    for reader in (eve, replace(context, person=True)):
        assert by_id(timeline(reader, space, "harbour"))[mail.id].title == "Pilot: Eve, pay her"


def test_a_subject_is_needed_and_another_one_is_not_meant(context: Context, space: Space) -> None:
    remember(context, space, NewNote("Nine.", subject="pier"))
    assert timeline(context, space, "pie") == []
    with pytest.raises(InvalidInput):
        timeline(context, space, " / ")


_CASES = count()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=6))
def test_beliefs_cover_known_time_without_a_gap_and_are_what_recall_says(
    context: Context, space: Space, clock: Clock, steps: list[tuple[int, bool]]
) -> None:
    """For random chains: each version's beliefs join up, and agree with recall at the moments between."""
    n = next(_CASES)
    subject, word = f"case/{n}", f"marker{n}"
    note = remember(context, space, NewNote(f"{word} 0", subject=subject, valid_from=at(1)))
    for number, (days, correct) in enumerate(steps, 1):
        clock.tick(days=1)
        changes = {} if correct else {"valid_from": at(1) + timedelta(days=days)}
        update(context, space, note.id, f"{word} {number}", changes=changes, correct=correct)
    clock.tick(days=1)
    found = timeline(context, space, subject)
    assert len(found) == len(steps) + 1
    for version in found:
        for before, after in zip(version.beliefs, version.beliefs[1:], strict=False):
            assert before.known_to == after.known_from
            assert (before.held, before.head) != (after.held, after.head)
        assert version.beliefs[0].known_from == version.known_from and version.beliefs[-1].known_to is None
    known, asked = clock.now - timedelta(days=len(steps) // 2, hours=12), at(1) + timedelta(days=20)
    held = {
        v.id
        for v in found
        for b in v.beliefs
        if b.known_from <= known and (b.known_to is None or known < b.known_to) and b.held and b.held.contains(asked)
    }
    catalog = space.one().indexes.catalog
    rows = [row for version in found for row in catalog.by_id(version.id)]
    shown = Visibility(catalog, Asked(context.now(), asked, known)).judge(catalog.briefs(row.key for row in rows))
    assert {standing.brief.id for standing in shown.values()} == held
