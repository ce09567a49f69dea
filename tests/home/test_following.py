"""Who follows another process's notes, with a person at work in Git between, knows what who begins anew knows."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from home.tools import git, note, quiet, rows, texts
from memoranda.context import Context
from memoranda.home.create import create, finish
from memoranda.home.keys import Keys
from memoranda.operations.recalling import recall
from memoranda.operations.space import Space

_STEPS = st.lists(
    st.sampled_from(("note", "note", "note", "commit", "commit", "ask", "ask", "edit", "person", "back")),
    min_size=4, max_size=14,
)  # fmt: skip

_ELSEWHERE = {
    "back": ("reset", "-q", "--hard", "HEAD~1"), "soft": ("reset", "-q", "--soft", "HEAD~1"),
    "revert": ("revert", "--no-edit", "HEAD"),
}  # fmt: skip


@settings(max_examples=8, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(steps=_STEPS, watched=st.booleans())
@example(steps=["note", "commit", "ask", "person", "note", "commit", "ask"], watched=False)
# What was told in a commit that was left is taken back.
@example(steps=["edit", "back", "note", "commit"], watched=False)
@example(steps=["note", "revert", "soft", "soft"], watched=True)
def test_who_follows_knows_what_who_begins_anew_knows(steps: list[str], watched: bool) -> None:
    with TemporaryDirectory() as folder:
        context, keys = Context(user="dana", agent="cleo"), Keys(Path(folder) / "keys")
        home = create(Path(folder) / "home", context).root
        finish(home, context, keys)
        with Space(context, keys, home, None) as writer, Space(context, keys, home, None) as reader:
            note(context, writer, "the first")
            writer.one().repository.flush()
            if watched:
                reader.watch()
            recall(context, reader, "first")
            for n, step in enumerate(steps):
                _take(context, writer, reader, home, step, n)
            recall(context, reader, "first")
            known = texts(context, reader)
            followed = rows(reader)
        with Space(context, keys, home, None) as fresh:
            fresh.one().indexes.drop()
            assert texts(context, fresh) == known
            assert rows(fresh) == followed


def _take(context: Context, writer: Space, reader: Space, home: Path, step: str, n: int) -> None:
    if step == "note":
        told = note(context, writer, f"number {n}")
        if n % 2:
            assert told.path in texts(context, reader)
    elif step == "commit":
        writer.one().repository.flush()
    elif step == "ask":
        recall(context, reader, "number first")
    elif step == "edit":
        for path in sorted(texts(context, reader))[:1]:
            (home / path).write_text((home / path).read_text() + f"\nedited {n}\n")
    elif step == "person":
        _still(context, writer, reader)
        (home / "memory" / "notes").mkdir(exist_ok=True)
        (home / "memory" / "notes" / f"person-{n}.md").write_text(f"Typed by a person, {n}.\n")
        git(home, "add", "-A")
        git(home, "commit", "-qm", "a person's", "--allow-empty")
    else:
        _still(context, writer, reader)
        git(home, "add", "-A")
        if git(home, "rev-list", "--count", "HEAD").strip() != "1":
            git(home, *_ELSEWHERE[step])


def _still(context: Context, writer: Space, reader: Space) -> None:
    """Both have seen everything, and neither has anything left to commit."""
    recall(context, writer, "number first")
    recall(context, reader, "number first")
    for space in (writer, reader):
        quiet(space)
