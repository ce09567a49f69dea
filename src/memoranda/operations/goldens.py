"""Golden recall tests of a Home: add a question, ask them all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memoranda.context import Context
from memoranda.errors import InvalidInput, NotFound
from memoranda.home.draft import Change, Draft
from memoranda.notes.chains import unknown_note
from memoranda.notes.ids import is_note_id
from memoranda.notes.times import parse_instant
from memoranda.operations.open_home import OpenHome, undisturbed
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.recalling import recall_home
from memoranda.operations.space import Space
from memoranda.recall import golden
from memoranda.recall.golden import GoldenReport, Question


def golden_add(
    context: Context,
    space: Space,
    question: str,
    expect: Sequence[str],
    *,
    as_of: str | None = None,
    known_at: str | None = None,
) -> Question:
    """Adds a question to the Home that is written. UnknownNote for an id that it does not know, InvalidInput."""
    pass_guards(context, Call("golden add", writes=True, text=question, rules=space.writable().rules))
    if not question.strip() or not expect:
        raise InvalidInput("A golden question has words and at least one id.", remedy="Give both.")
    for name, value in (("as_of", as_of), ("known_at", known_at)):
        if value is not None:
            parse_instant(value, what=name)
    home = space.writable()
    home.refresh(context)
    for item in expect:
        if not _known(home, item):
            raise unknown_note(item)
    added = Question(" ".join(question.split()), tuple(expect), as_of, known_at)

    def build(_at: datetime) -> Draft:
        # The file as it stands: another process may have added a question, a person one by hand.
        data = golden.with_question(home.repository.worktree.read(golden.PATH), added)
        reason = f"Add a golden question: {added.question}"
        return Draft("golden", reason, [Change(golden.PATH, data)], (), {}, context.user)

    home.repository.write(context, build)
    return added


def golden_run(context: Context, space: Space, *, k: int | None = None) -> GoldenReport:
    """Asks every question of the nearest Home. NotFound when it has no file of them, InvalidInput for a bad one."""
    pass_guards(context, Call("golden run"))
    home = space.one()
    home.refresh(context)
    data = _file(home)
    if data is None:
        raise NotFound(
            "This Home has no golden questions.", remedy="Add one: `memoranda golden add QUESTION --expect ID`."
        )
    return golden.run(golden.parse(data), k, lambda question, count: _ask(context, home, question, count))


@undisturbed
def _known(home: OpenHome, name: str) -> bool:
    catalog = home.indexes.catalog
    return bool(catalog.by_id(name) if is_note_id(name) else catalog.entry(name))


@undisturbed
def _file(home: OpenHome) -> bytes | None:
    blob = home.indexes.catalog.blob_of(golden.PATH)
    return home.repository.blob(blob) if blob else None


def _ask(context: Context, home: OpenHome, question: Question, k: int) -> list[tuple[str, ...]]:
    def time(text: str | None, what: str) -> datetime | None:
        return None if text is None else parse_instant(text, what=what, end_of_day=True)

    answer = recall_home(
        context, home, question.question, k=k, as_of=time(question.as_of, "as_of"),
        known_at=time(question.known_at, "known_at"),
    )  # fmt: skip
    now = question.as_of is None and question.known_at is None
    # Asked about now, an id stands for its chain: what superseded it since is the right answer.
    return [(item.id, *(_predecessors(home, item.id) if now else ())) for item in answer.items]


@undisturbed
def _predecessors(home: OpenHome, note_id: str) -> tuple[str, ...]:
    return home.indexes.catalog.predecessors(note_id)
