"""`forget --erase` in Homes as people and agents make them, and killed in its middle: nothing of it is left, or all."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from home import histories as people
from home import test_erase_crash as crashes
from home.histories import played
from home.tools import git, note, rows
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memoranda.context import Context
from memoranda.errors import Forgotten
from memoranda.home.erasing import erase as erasing
from memoranda.home.keys import Keys
from memoranda.operations.doctor import doctor
from memoranda.operations.forgetting import Selection, forget
from memoranda.operations.importing import import_folder
from memoranda.operations.journaling import Turn, append
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.reviewing import decide
from memoranda.operations.space import Space


@dataclass
class Story(people.Story):
    """Also sessions, sources, imports and reviews; `words` is what each note and entry alone says."""

    words: dict[str, str] = field(default_factory=dict)  # id -> word
    accepted: dict[str, str] = field(default_factory=dict)  # id -> blob

    def told(self, made: str, word: str) -> None:
        self.notes.append((made, word))
        self.words[made] = word

    def uri_of(self, n: int) -> str | None:
        path = self.path(n)
        row = self.space.one().indexes.catalog.by_path(path.relative_to(self.root).as_posix()) if path else None
        return f"nas://{self.space.one().name}/{row.path}@{row.blob}" if row else None


def write(s: Story, seed: int) -> None:
    word = s.word()
    context = s.context.in_session(f"ses_{seed % 3}")
    subject = ["customer/acme", "customer/acme/contacts", None][seed % 3]
    s.told(remember(context, s.space, NewNote(s.text(word, seed), subject=subject)).id, word)


def say(s: Story, seed: int) -> None:
    word = s.word()
    made = append(s.context.in_session(f"ses_{seed % 3}"), s.space, Turn(s.text(word, seed), speaker="dana"))
    s.turns.append((made.uri, word))
    s.words[made.id] = word


def cite(s: Story, seed: int) -> None:
    """A note that stands on a turn, on another note, or on a page."""
    source = [s.turns[seed % len(s.turns)][0], s.uri_of(seed), "https://page.example/one"][seed % 3]
    if source is not None:
        word = s.word()
        s.told(remember(s.context, s.space, NewNote(s.text(word, seed), sources=(source,))).id, word)


def supersede(s: Story, seed: int) -> None:
    if s.path(seed) is not None:
        word = s.word()
        s.told(update(s.context, s.space, s.notes[seed % len(s.notes)][0], s.text(word, seed)).id, word)


def bring(s: Story, seed: int) -> None:
    word = s.word()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "vault").mkdir()
        (Path(folder) / "vault" / f"f{s.counted}.md").write_text(s.text(word, seed))
        import_folder(s.context, s.space, Path(folder) / "vault")
    s.space.one().refresh(s.context)
    row = next(iter(s.space.one().indexes.catalog.live_notes(f"AND instr(n.body, '{word}')")))
    s.told(row.id, word)


def review(s: Story, seed: int) -> None:
    note_id = s.notes[seed % len(s.notes)][0]
    s.space.one().refresh(s.context)
    found = s.space.one().indexes.catalog.by_id(note_id)
    if found:
        decide(replace(s.context, person=True), s.space, [note_id], "accept")
        s.accepted[note_id] = found[0].blob


ACTS: tuple[people.Act[Story], ...] = (
    write, say, cite, cite, supersede, bring, review, people.edit, people.commit_by_hand, people.side_branch,
    people.stash, people.pack,
)  # fmt: skip


def chosen(s: Story, which: int) -> Selection:
    kind, n = which % 5, which // 5
    named = s.notes[n % len(s.notes)][0]
    here = s.space.one().indexes.catalog.knows(named)
    if (
        kind == 0
        and s.space.one().indexes.catalog.db.execute("SELECT 1 FROM notes WHERE subject IS NOT NULL").fetchone()
    ):
        return Selection(subject="customer/acme")
    if kind == 1:
        return Selection(sessions=(f"ses_{n % 3}",))
    turn = next(name for name, word in s.words.items() if word == s.turns[n % len(s.turns)][1])
    return Selection((named,) if here and kind != 2 else (turn,))


@settings(
    max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@given(
    acts=st.lists(st.tuples(st.integers(0, len(ACTS) - 1), st.integers(0, 50)), min_size=4, max_size=14),
    which=st.integers(0, 60),
)
def test_nothing_of_it_is_left_and_everything_else_is(acts: list[tuple[int, int]], which: int) -> None:
    with played(Story, (write, say), 3, ACTS, acts) as (s, _):
        root, space, context = s.root, s.space, s.context
        person = replace(context, person=True)
        done = forget(person, space, chosen(s, which), erase=True)
        gone = {item.id for item in done.removed}
        s.gone = words = [word for name, word in s.words.items() if name in gone]
        assert done.found == ()
        space.one().refresh(context)
        assert [name for name in gone if space.one().indexes.catalog.by_id(name)] == []
        told = repr(rows(space))
        assert not any(word in told for word in words)
        left = [name for name in s.words if name not in gone]
        assert all(space.one().indexes.catalog.knows(name) for name in left if name.startswith("j_"))
        for name, blob in s.accepted.items():
            assert name in gone or space.one().reviewed(blob), "attestations of other notes still count"
        assert git(root, "fsck", "--strict", "--full", "--no-dangling") == ""
        for word in words:
            found = recall(person, space, word, known_at=context.now(), k=3).items
            assert not any(word in item.text for item in found)
        assert [f.code for f in doctor(person, space).findings if f.severity != "notice"] == []


# Killed in the middle


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> crashes.Ready:
    made = crashes.ready.__wrapped__ if hasattr(crashes.ready, "__wrapped__") else None
    assert made is not None
    result: crashes.Ready = made(tmp_path_factory)
    return result


def forget_and_die(root: Path, keys: Path, note_id: str, at: str) -> None:
    person = Context(user="dana", agent="cleo", person=True)
    real = erasing.Eraser.__init__

    def step(reached: str) -> None:
        if reached == at:
            os.kill(os.getpid(), 9)

    def init(self: erasing.Eraser, pieces: object, repair: object, _step: object = None) -> None:
        real(self, pieces, repair, step)  # type: ignore[arg-type]

    erasing.Eraser.__init__ = init  # type: ignore[method-assign, assignment]
    with Space(person, Keys(keys), root, None) as space:
        note(person, space, "The last word before it.")
        forget(person, space, Selection((note_id,)), erase=True)


@pytest.mark.parametrize(
    "name", ["survey", "decide", "map", "refs", "files", "log", "cache", "purging", "end", "search"]
)
def test_killed_in_the_middle_it_is_finished_or_undone(ready: crashes.Ready, tmp_path: Path, name: str) -> None:
    root = crashes.copied(ready, tmp_path / "home")
    code, said = crashes.in_a_child(lambda: forget_and_die(root, ready.keys, ready.secret, name))
    assert code == -9, said
    erased = crashes.check(root, ready)
    assert erased == (name not in ("survey", "decide"))
    context = Context(user="dana", agent="cleo")
    with Space(context, Keys(ready.keys), root, None) as space:
        if erased:  # with the text, and not before or after it, came what keeps it out
            with pytest.raises(Forgotten):
                remember(context, space, NewNote(crashes.TEXT))
        else:
            assert not space.one().tombs.now()
            assert remember(context, space, NewNote(crashes.TEXT)).id
