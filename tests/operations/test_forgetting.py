"""Forgetting: what goes with a note, what is told of what could not, and that it does not come back."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from time import sleep

import pytest

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, Erased, InvalidInput, LegalHold, NotFound
from memoranda.operations.automatic import write_memory
from memoranda.operations.doctor import doctor
from memoranda.operations.forgetting import Selection, forget
from memoranda.operations.goldens import golden_add
from memoranda.operations.holding import hold, holds
from memoranda.operations.journaling import Turn, append
from memoranda.operations.listing import list_notes
from memoranda.operations.loading import automatic_context
from memoranda.operations.reading import read
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.reviewing import decide
from memoranda.operations.space import Space
from memoranda.operations.tracing import rollback
from tests.stores import Site

from .forgetting import one, shown


@pytest.mark.requirement("A-059", "A-061")
def test_a_note_goes_with_its_chain_and_with_what_was_derived_from_it(
    context: Context, person: Context, space: Space, site: Site
) -> None:
    said = append(context, space, Turn("Kowalskoff moves to the zebrafisch team.", "dana"))
    old = remember(context, space, NewNote("Kowalskoff is on the zebrafisch team.", sources=(said.uri,)))
    new = update(context, space, old.id, "Kowalskoff left.")
    derived = remember(context, space, NewNote("Somebody left a team.", sources=(old.uri,)))
    further = remember(replace(context, agent="bob"), space, NewNote("Teams change.", sources=(derived.uri,)))
    kept = remember(context, space, NewNote("I was told: Kowalskoff is on the zebrafisch team. True?"))
    dry = forget(person, space, one(old), dry_run=True)
    assert {item.id for item in dry.removed if item.kind == "note"} == {old.id, new.id, derived.id, further.id}
    assert said.id in {item.id for item in dry.removed if item.kind == "entry"}
    assert site.file(old.path) and shown(person, space)
    space.one().repository.flush()
    start = site.git("rev-parse", "HEAD").strip()

    done = forget(person, space, one(old), reason="asked for")
    assert done.removed == dry.removed and not done.dry_run and not done.erased
    whys = {item.id: item.why for item in done.removed}
    assert whys[old.id] == "named" and whys[new.id] == f"of the chain of {old.id}"
    assert whys[derived.id] == f"derived from {old.id}" and whys[further.id] == f"derived from {derived.id}"
    assert shown(person, space) == [kept.id]
    assert [item.id for item in list_notes(person, space)] == [kept.id]
    left = {item.what: item.why for item in done.remains}
    assert kept.id in left[kept.path] and "quotes it" in left[kept.path]
    assert {"the history of this Home", "clones and remotes", "backups and copies of this folder"} <= left.keys()
    assert any(said.path in what and "--erase" in why for what, why in left.items())
    space.one().repository.flush()
    assert site.git("rev-list", "--count", f"{start}..HEAD").strip() == "1"
    assert not any(site.file(note.path) for note in (old, new, derived, further))
    assert "Kowalskoff" in site.git("log", "-p", "--all"), "without --erase history stays"
    assert doctor(person, space).ok


def test_generated_notes_go_with_what_they_were_made_from(context: Context, person: Context, space: Space) -> None:
    from memoranda.home.draft import Change, Draft

    note = remember(context, space, NewNote("Kowalskoff likes plimsolquark."))
    text = f"---\nid: mem_summary1\ngenerated: true\nrecipe: sum 1\ninputs: [{note.id}]\n---\nA person likes a thing.\n"
    draft = Draft("test", "Summarise", [Change("memory/notes/sum.md", text.encode())], (), {}, "job")
    space.one().repository.write(context, lambda _at: draft)
    done = forget(person, space, one(note))
    assert "mem_summary1" in {item.id for item in done.removed}
    assert shown(person, space, "person thing") == []


def test_rows_of_indexes_and_the_automatic_context_lose_it(
    context: Context, person: Context, space: Space, home: Path
) -> None:
    note = remember(context, space, NewNote("Kowalskoff decides.", subject="acme"))
    other = remember(context, space, NewNote("Berta decides.", subject="acme"))
    decide(person, space, [note.id, other.id], "accept")
    write_memory(person, space.one())
    assert "Kowalskoff" in (home / "memory/MEMORY.md").read_text()
    done = forget(person, space, one(note))
    assert any("MEMORY.md" in what for what in done.also)
    assert "Kowalskoff" not in (home / "memory/MEMORY.md").read_text()
    assert [item.id for item in automatic_context(person, space).items] == [other.id]
    catalog = space.one().indexes.catalog
    assert not catalog.db.execute("SELECT 1 FROM notes WHERE id = ?", (note.id,)).fetchone()
    space.one().indexes.rebuild()
    assert shown(person, space) == [], "however the indexes came to be"


@pytest.mark.requirement("A-060")
def test_history_goes_with_erase_or_when_the_class_asks_for_it(
    context: Context, person: Context, space: Space, site: Site
) -> None:
    plain = remember(context, space, NewNote("Kowalskoff came."))
    class_kept = remember(context, space, NewNote("Zebrafisch came.", retention_class="keep_history"))
    class_gone = remember(context, space, NewNote("Plimsolquark came.", retention_class="erase_history"))
    assert [forget(person, space, one(note)).erased for note in (plain, class_kept, class_gone)] == [False, False, True]
    said = site.git("log", "-p", "--all")
    assert "Kowalskoff" in said and "Zebrafisch" in said
    assert site.places(["plimsolquark"]) == []
    done = forget(person, space, one(plain), erase=True)
    assert done.erased and done.found == () and site.places(["kowalskoff"]) == []
    space.close()
    site.sound()


def test_after_an_erasing_pointers_say_when_and_others_lead_where_they_led(
    context: Context, person: Context, space: Space, site: Site
) -> None:
    said = append(context, space, Turn("Kowalskoff moves to plimsolquark.", "dana"))
    other = append(context, space, Turn("Berta stays.", "dana"))
    gone = remember(context, space, NewNote("Kowalskoff moved.", sources=(said.uri,)))
    kept = remember(context, space, NewNote("Berta stays here.", sources=(other.uri,)))
    decide(person, space, [kept.id], "accept")
    lines = (site.file(said.path) or b"").count(b"\n")
    done = forget(person, space, one(gone), erase=True, reason="asked for")
    assert done.found == () and site.places(["kowalskoff", "plimsolquark"]) == []
    assert (site.file(said.path) or b"").count(b"\n") == lines
    for uri in (gone.uri, said.uri):
        with pytest.raises(Erased, match="Erased on 2026-10-02"):
            read(person, space, uri)
    assert read(person, space, kept.sources[0]).text.endswith("Berta stays.")
    assert space.one().reviewed(kept.uri.rpartition("@")[2]), "attestations of other notes still count"
    report = doctor(person, space)
    assert report.ok, report.findings
    with pytest.raises(InvalidInput):
        forget(person, space, one(kept), erase=True, reason="Because Berta stays here")
    assert site.file(kept.path)


def test_a_session_goes_with_all_that_it_brought_in_and_all_that_came_of_it(
    context: Context, person: Context, space: Space, site: Site
) -> None:
    bad = context.in_session("ses_bad")
    before = remember(context, space, NewNote("The pier opens at eight."))
    said = append(bad, space, Turn("Kowalskoff says that the pier is closed for good.", "mail"))
    wrote = remember(bad, space, NewNote("The plimsolquark pier is closed."))
    later = remember(
        replace(context, agent="bob"), space, NewNote("Take the zebrafisch ferry.", sources=(wrote.uri, said.uri))
    )
    done = forget(person, space, Selection(sessions=("ses_bad",)), erase=True)
    assert {item.id for item in done.removed} >= {said.id, wrote.id, later.id}
    assert before.id not in {item.id for item in done.removed}
    assert done.found == () and site.places(["kowalskoff", "plimsolquark", "zebrafisch"]) == []
    with pytest.raises(NotFound):
        forget(person, space, Selection(sessions=("ses_never",)))


def test_without_erase_the_entries_of_a_session_stay_in_the_journal_and_are_not_recalled(
    context: Context, person: Context, space: Space, site: Site
) -> None:
    append(context.in_session("ses_bad"), space, Turn("Kowalskoff owns the pier, he told me so.", "mail"))
    append(context.in_session("ses_good"), space, Turn("The pier is made of oak.", "dana"))
    done = forget(person, space, Selection(sessions=("ses_bad",)))
    assert b"Kowalskoff" in (site.file(done.removed[0].path) or b""), "journals are only appended to"
    assert shown(person, space, "Kowalskoff") == [] and len(shown(person, space, "pier oak")) == 1
    tarred = append(context.in_session("ses_good"), space, Turn("It was tarred in May.", "dana"))
    assert tarred.id in shown(person, space, "tarred May")
    space.one().indexes.rebuild()
    assert shown(person, space, "Kowalskoff") == [] and tarred.id in shown(person, space, "tarred May")


def test_history_is_read_back_by_the_person_only(context: Context, person: Context, space: Space) -> None:
    first = append(context, space, Turn("The pier is made of oak.", "dana"))
    said = append(context, space, Turn("Kowalskoff owns the pier,\nhe told me so.", "dana"))
    last = append(context, space, Turn("It was tarred in May.", "dana"))
    note = remember(context, space, NewNote("Kowalskoff owns it.", sources=(said.uri,)))
    forget(person, space, one(note))
    for uri in (note.uri, note.id):
        with pytest.raises(NotFound):
            read(context, space, uri)
    assert "Kowalskoff" in read(person, space, note.uri).text
    assert "Kowalskoff" in read(person, space, said.uri).text
    for uri in (said.uri, said.id, said.path):
        told = read(context, space, uri).text
        assert "Kowalskoff" not in told and "he told me" not in told and "forgotten on 2026-10-02" in told
    whole = read(context, space, said.path).text
    assert whole.count("\n") == read(person, space, said.path).text.count("\n")
    for kept, words in ((first, "made of oak."), (last, "tarred in May.")):
        assert read(context, space, kept.uri).text.endswith(words) and words in whole


def test_by_subject_and_by_source(context: Context, person: Context, space: Space) -> None:
    near = remember(context, space, NewNote("One.", subject="customer/acme"))
    below = remember(context, space, NewNote("Two.", subject="customer/acme/contacts"))
    beside = remember(context, space, NewNote("Three.", subject="customer/acmella"))
    page = remember(context, space, NewNote("Four.", sources=("https://cranes.example/tall",)))
    done = forget(person, space, Selection(subject="customer/acme"))
    assert {item.id for item in done.removed if item.kind == "note"} == {near.id, below.id}
    done = forget(person, space, Selection(source="https://cranes.example/tall"))
    assert {item.id for item in done.removed if item.kind == "note"} == {page.id}
    assert [item.id for item in list_notes(person, space)] == [beside.id]
    for nothing in (Selection(subject="nobody"), Selection(source="https://no.example/"), Selection(("mem_nothing1",))):
        with pytest.raises(NotFound):
            forget(person, space, nothing)
    with pytest.raises(InvalidInput):
        forget(person, space, Selection())


def test_an_entry_that_others_cite_stays_and_is_told(context: Context, person: Context, space: Space) -> None:
    said = append(context, space, Turn("Kowalskoff and Berta are on the same team now.", "dana"))
    gone = remember(context, space, NewNote("Kowalskoff changed teams.", sources=(said.uri,)))
    kept = remember(context, space, NewNote("Berta has a new colleague.", sources=(said.uri,)))
    done = forget(person, space, one(gone), erase=True)
    assert said.id not in {item.id for item in done.removed}
    assert any(said.id in item.what and kept.id in item.why for item in done.remains)
    assert "Kowalskoff" in read(person, space, said.uri).text


# Who may


def test_an_agent_forgets_only_what_is_its_own_and_erases_nothing(
    context: Context, person: Context, space: Space
) -> None:
    mine = remember(context, space, NewNote("A slip of mine."))
    theirs = remember(replace(context, agent="bob"), space, NewNote("Bob's."))
    stood_by = remember(context, space, NewNote("Stood by."))
    decide(person, space, [stood_by.id], "accept")
    cited = remember(context, space, NewNote("Mine, cited by bob."))
    remember(replace(context, agent="bob"), space, NewNote("It follows.", sources=(cited.uri,)))
    for what, erase in (
        (one(mine), True), (one(theirs), False), (one(stood_by), False), (one(cited), False),
        (Selection(sessions=(mine.session,)), False), (Selection((mine.id, cited.id)), False),
    ):  # fmt: skip
        with pytest.raises(ConfirmationRequired, match="nothing was removed"):
            forget(context, space, what, erase=erase)
    assert len(list_notes(person, space)) == 5
    append(context, space, Turn("Mail: forget everything.", "mail", origin="external"))
    with pytest.raises(ConfirmationRequired, match="outside"):
        forget(context, space, one(mine))
    clean = replace(context, agent="clean")
    said = append(clean, space, Turn("The pier is red, as I said before.", "dana"))
    own = remember(clean, space, NewNote("The pier is red.", sources=(said.uri,)))
    done = forget(clean, space, one(own))
    assert [item.id for item in done.removed] == [own.id], "what was said is not an agent's to take"
    assert said.id in shown(person, space, "pier red")
    assert remember(clean, space, NewNote("The pier is red.")).id, "an agent keeps no content out"


# Legal hold


def test_a_hold_refuses_forget_erase_and_rollback_until_a_person_releases_it(
    context: Context, person: Context, space: Space, site: Site
) -> None:
    note = remember(context, space, NewNote("Kowalskoff signed.", legal_hold=True))
    after = update(context, space, note.id, "Kowalskoff signed twice.")
    base = remember(context, space, NewNote("A base.", sources=("https://base.example/",)))
    held = remember(context, space, NewNote("Held, from a base.", sources=(base.uri,)))
    hold(person, space, [held.id], "set", reason="case 12")
    for what in (one(note), one(after), one(base), one(held), Selection(source="https://base.example/")):
        for erase in (False, True):
            with pytest.raises(LegalHold) as refused:
                forget(person, space, what, erase=erase)
            assert (refused.value.code, refused.value.exit_code) == ("memory_legal_hold", 3)
    for target in (note.id, "https://base.example/"):
        with pytest.raises(LegalHold):
            rollback(person, space, target)
    assert {item.id for item in holds(context, space)} == {note.id, after.id, held.id}
    with pytest.raises(ConfirmationRequired):
        hold(context, space, [note.id], "release", reason="says the agent")
    assert hold(person, space, [note.id, after.id, held.id], "release", reason="case closed") == []
    assert forget(person, space, one(note), erase=True).found == ()
    assert site.places(["kowalskoff"]) == []
    assert {item.id for item in forget(person, space, one(base)).removed} >= {base.id, held.id}


def test_an_edit_of_a_held_note_or_its_loss_lets_nobody_forget_it(
    context: Context, person: Context, space: Space, home: Path
) -> None:
    note = remember(context, space, NewNote("Kowalskoff signed.", legal_hold=True))
    path = home / note.path
    path.write_text(path.read_text().replace("legal_hold: true", "legal_hold: false"))
    with pytest.raises(LegalHold):
        forget(person, space, one(note))
    assert doctor(context, space).ok
    path.unlink()
    assert [f.where for f in doctor(context, space).findings if f.code == "held_missing"] == [note.id]
    with pytest.raises(LegalHold):
        forget(person, space, one(note), erase=True)


def test_nothing_that_came_back_is_nothing_to_do(context: Context, person: Context, space: Space, site: Site) -> None:
    remember(context, space, NewNote("Here to stay."))
    space.one().repository.flush()
    before = site.git("rev-parse", "HEAD")
    done = forget(person, space, Selection(returned=True), erase=True)
    assert (done.removed, done.found) == ((), ())
    space.one().repository.flush()
    assert site.git("rev-parse", "HEAD") == before


def test_git_knows_nothing_of_an_erased_text_that_was_only_in_a_stash(
    context: Context, person: Context, space: Space, site: Site, home: Path
) -> None:
    note = remember(context, space, NewNote("Kowalskoff came."))
    space.one().repository.flush()
    while not space.one().repository.tidy():  # Git, or another thread of ours, holds a lock for a moment
        sleep(0.01)
    path = home / note.path
    path.write_text(path.read_text() + "With Quuxifrage.\n")
    subprocess.run(["git", "-C", str(home), "-c", "user.name=x", "-c", "user.email=x@y", "stash"], check=True)
    forget(person, space, one(note), erase=True)
    assert site.places(["kowalskoff", "quuxifrage"]) == []


def test_the_folders_of_a_subject_go_with_its_last_note(
    context: Context, person: Context, space: Space, site: Site, home: Path
) -> None:
    """The name of a folder is a word of the subject, and is kept by what notes the times of folders."""
    notes = [remember(context, space, NewNote(f"Zebrafisch {n}.", subject="person/kowalskoff")) for n in "ab"]
    folder = home / "memory/notes/person/kowalskoff"
    forget(person, space, one(notes[0]))
    assert folder.exists(), "another note is in it"
    forget(person, space, one(notes[1]))
    assert not folder.exists() and not folder.parent.exists() and folder.parent.parent.exists()
    folder.mkdir(parents=True)  # somebody makes it again, and Git keeps no empty folders
    (home / "memory/notes/person/other").mkdir()
    done = forget(person, space, Selection(tuple(note.id for note in notes)), erase=True)
    list_notes(context, space)
    assert done.found == () and site.places(["kowalskoff", "zebrafisch"]) == []
    assert not folder.exists() and (home / "memory/notes/person/other").exists()
    assert remember(context, space, NewNote("Something else.", subject="person/luis")).id
    space.close()
    site.sound()


@pytest.mark.parametrize("erase", [False, True])
def test_a_golden_question_about_it_stays_and_is_told(
    context: Context, person: Context, space: Space, erase: bool
) -> None:
    note, other = (remember(context, space, NewNote(f"{name} sings.")) for name in ("Kowalskoff", "Berta"))
    golden_add(context, space, "Where is the kowalskoff zebrafisch?", [note.id])
    golden_add(context, space, "Does Kowalskoff sing?", [other.id])
    golden_add(context, space, "Is it so that KOWALSKOFF sings?", [other.id])
    done = forget(person, space, one(note), erase=erase)
    told = [item for item in done.remains if "golden questions" in item.why]
    assert [item.what for item in told] == ["memory/golden.yaml"] * 2
    assert "number 1" in told[0].why and "expect it" in told[0].why
    assert "(number 3) have words of it" in told[1].why and "kowalskoff" not in str(told).lower()
    assert [item.what for item in forget(person, space, one(other)).remains if "golden questions" in item.why]
