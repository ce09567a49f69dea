"""What contradicts what is recalled is named with it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.context import Context
from memoranda.home.create import create, finish
from memoranda.home.keys import Keys
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.reviewing import decide
from memoranda.operations.session_desk import session_taint
from memoranda.operations.space import Space
from memoranda.trust.contested import contested_by
from memoranda.values import replace


def _by_hand(home: Path, name: str, supersedes: str, text: str) -> str:
    """A note as an editor, or a merge of two clones, leaves it."""
    note_id = f"mem_{name:0<16}"
    (home / "memory" / "notes" / f"{name}.md").write_text(
        f"---\nid: {note_id}\nkind: fact\nsubject: harbour\nscope: user\nsupersedes: [{supersedes}]\n---\n{text}\n",
        encoding="utf-8",
    )
    return note_id


def _told(context: Context, space: Space, query: str, **more: object) -> dict[str, tuple[str, ...]]:
    view = recall(context, space, query, **more)  # type: ignore[arg-type]
    assert [item.json()["contested_by"] for item in view.items] == [list(item.contested_by) for item in view.items]
    return {item.id: item.contested_by for item in view.items}


def test_two_heads_of_a_chain_name_each_other(context: Context, space: Space, home: Path) -> None:
    first = remember(context, space, NewNote("The ferry leaves at six.", subject="harbour"))
    second = update(context, space, first.id, "The ferry leaves at seven.")
    third = update(context, space, second.id, "The ferry leaves at eight.")
    assert _told(context, space, "When does the ferry leave?") == {third.id: ()}
    other = _by_hand(home, "other", first.id, "The ferry leaves at nine.")
    assert _told(context, space, "When does the ferry leave?") == {third.id: (other,), other: (third.id,)}
    update(context, space, third.id, "The ferry leaves at ten.", changes={"supersedes": (third.id, other)})
    assert set(_told(context, space, "When does the ferry leave?").values()) == {()}


@pytest.mark.parametrize("accepted", [(), ("first",), ("first", "second")])
def test_two_heads_name_each_other_whoever_reviewed_what(
    context: Context, space: Space, home: Path, accepted: tuple[str, ...]
) -> None:
    """As a merge of two clones leaves it: the one who merges has written one of the heads, and reviewed something."""
    person = replace(context, person=True)
    first = remember(context, space, NewNote("The ferry leaves at six.", subject="harbour"))
    second = update(context, space, first.id, "The ferry leaves at seven.")
    if accepted:
        decide(person, space, [{"first": first, "second": second}[name].id for name in accepted], "accept")
    other = _by_hand(home, "other", first.id, "The ferry leaves at nine.")
    question = "When does the ferry leave?"
    assert _told(context, space, question) == {second.id: (other,), other: (second.id,)}
    items = recall(context, space, question, as_of=context.now(), include=("notes",)).items
    assert [item.contested for item in items if item.state == "current"] == [True, True]
    decide(person, space, [second.id], "accept")
    (told,) = _told(context, space, question).items()
    assert told[1] == () and told[0] not in (second.id, other)


def test_what_only_proposes_names_what_stands(context: Context, space: Space, home: Path) -> None:
    first = remember(context, space, NewNote("The ferry leaves at six.", subject="harbour"))
    decide(replace(context, person=True), space, [first.id], "accept")
    other = _by_hand(home, "other", first.id, "The ferry leaves at nine.")
    assert _told(context, space, "When does the ferry leave?") == {first.id: (), other: (first.id,)}
    decide(replace(context, person=True), space, [other], "reject")
    assert _told(context, space, "When does the ferry leave?") == {first.id: (), other: (first.id,)}
    path = home / first.path
    path.write_text(path.read_text().replace("six", "ten"))
    view = recall(context, space, "When does the ferry leave?", include=("notes",))
    told = [(item.id, item.reviewed, item.contested_by, item.proposed_by) for item in view.items]
    assert told[0] == (first.id, True, (), (first.id,)), "and of the others vectors say which is nearer"
    assert sorted(told[1:]) == sorted([(first.id, False, (first.id,), ()), (other, False, (first.id,), ())])


def test_two_values_of_one_key_name_each_other_until_a_person_decides(context: Context, space: Space) -> None:
    one = remember(context, space, NewNote("Closing time: six", subject="harbour"))
    remember(context, space, NewNote("Closing time: six", subject="pier"))
    assert set(_told(context, space, "closing time").values()) == {()}
    other = remember(context, space, NewNote("Closing  Time: seven", subject="harbour"))
    told = _told(context, space, "closing time")
    assert told[one.id] == (other.id,) and told[other.id] == (one.id,)
    decide(replace(context, person=True), space, [one.id, other.id], "accept")
    assert set(_told(context, space, "closing time").values()) == {()}


def test_an_outsider_puts_nothing_in_doubt(context: Context, space: Space) -> None:
    one = remember(context, space, NewNote("Closing time: six", subject="harbour"))
    evil = replace(context, agent="scraper", session="ses_scraper")
    session_taint(evil, space, "read a page")
    remember(evil, space, NewNote("Closing time: never", subject="harbour"))
    assert _told(replace(context, person=True), space, "closing time")[one.id] == ()


def test_asked_about_what_was_known_before_nothing_of_now_is_told(context: Context, space: Space) -> None:
    one = remember(context, space, NewNote("Closing time: six", subject="harbour"))
    then = context.now()
    context.clock.tick(hours=1)  # type: ignore[attr-defined]
    remember(context, space, NewNote("Closing time: seven", subject="harbour"))
    assert _told(context, space, "closing time", known_at=then) == {one.id: ()}


_TEXTS = ("Closing time: six", "closing time = seven.", "# Closing time\nsix", "Note: closing", "It is closing time.")
_STEPS = st.lists(
    st.tuples(st.sampled_from(_TEXTS), st.sampled_from(["harbour", "pier", ""]), st.integers(-1, 8), st.booleans()),
    min_size=1,
    max_size=9,
)


@given(_STEPS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_is_passed_over_that_the_whole_comparison_finds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, int, bool]]
) -> None:
    base = tmp_path_factory.mktemp("contested")
    context = Context(user="dana", agent="cleo", person=True, clock=lambda: datetime(2026, 10, 2, 9, tzinfo=UTC))
    made = create(base / "home", context)
    keys = Keys(base / "keys")
    finish(made.root, context, keys)
    (made.root / "memory" / "notes").mkdir(exist_ok=True)
    ids: list[str] = []
    for n, (text, subject, older, same) in enumerate(steps):
        note_id = ids[older % len(ids)] if same and ids else f"mem_{n:016d}"
        fields = {"id": note_id, "kind": "fact", "scope": "user"} | ({"subject": subject} if subject else {})
        if older >= 0 and ids and not same:
            fields["supersedes"] = f"[{ids[older % len(ids)]}]"
        head = "".join(f"{name}: {value}\n" for name, value in fields.items())
        (made.root / "memory" / "notes" / f"n{n}.md").write_text(f"---\n{head}---\n{text}\n", encoding="utf-8")
        ids.append(note_id)
    with Space(context, keys, made.root, None) as space:
        view = recall(context, space, "closing time six seven", k=20)
        catalog = space.one().indexes.catalog
        rows = [row for item in view.items for row in catalog.by_id(item.id)]
        whole = contested_by(catalog, rows, context.now())
        assert {item.id: item.contested_by for item in view.items if item.contested_by} == whole
