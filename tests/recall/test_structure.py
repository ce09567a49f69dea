"""The graph and the outline: what hangs together, and what headings say; both can be had and left out."""

from __future__ import annotations

from typing import Any

import pytest

from memoranda.context import Context
from memoranda.index.embedding.static import installed
from memoranda.index.structure import edges_of, neighbours
from memoranda.operations.forgetting import Selection, forget
from memoranda.operations.journaling import Turn, append_many
from memoranda.operations.presenting import Item, View
from memoranda.operations.recalling import recall
from memoranda.operations.recipes import index_add, index_retire, index_try
from memoranda.operations.remembering import NewNote, Remembered, remember, update
from memoranda.operations.space import Space

FERRY = "# Ferry\n\n## Timetable\n\nIt leaves at seven.\n\n## Crew\n\nSee [[Captain]]. We met Luis Ortega."
BOTH = "words+graph+outline"


@pytest.fixture
def told(context: Context, space: Space) -> dict[str, Remembered]:
    (said,) = append_many(context, space.writable(), [Turn("We said that the quay is too short.", "Dana", session="s")])
    ferry = remember(context, space, NewNote(FERRY))
    captain = remember(context, space, NewNote("# Captain\n\nShe likes strong tea."))
    cited = remember(context, space, NewNote("The pier must grow.", sources=(said.uri,)))
    again = remember(context, space, NewNote("Money was asked for.", sources=(said.uri,)))
    named = remember(context, space, NewNote("Somebody wrote to Luis Ortega about an invoice."))
    for n in range(15):
        remember(context, space, NewNote(f"Filler {n} of another kind."))
    return {"ferry": ferry, "captain": captain, "cited": cited, "again": again, "named": named}


def account(view: View, note: Remembered) -> dict[str, Any]:
    found: Item = next(item for item in view.items if item.id == note.id)
    return dict(found.why)


@pytest.mark.requirement("A-012")
def test_the_graph_can_be_had_and_can_be_left_out(context: Context, space: Space, told: dict[str, Remembered]) -> None:
    plain = recall(context, space, "When does the ferry leave?")
    assert told["captain"].id not in {item.id for item in plain.items}
    assert all("graph" not in item.why["indexes"] for item in plain.items)  # type: ignore[operator]
    index_add(context, space, "words+graph", wait=True)
    view = index_try(context, space, "words+graph", "When does the ferry leave?")
    assert view.items[0].id == told["ferry"].id
    assert account(view, told["captain"])["indexes"]["graph"]["gives"] > 0  # linked by [[Captain]]
    assert account(view, told["named"])["indexes"]["graph"]["gives"] > 0  # both speak of Luis Ortega
    assert [name.split("-")[0] for name in view.coverage.indexes] == ["lexical", "graph"]
    for item in view.items:
        given: Any = item.why
        total = sum(i["gives"] for i in given["indexes"].values()) + sum(given["effects"].values())
        assert total == pytest.approx(item.score, abs=2e-5)
    index_retire(context, space, "words+graph")
    assert [item.id for item in recall(context, space, "When does the ferry leave?").items] == [
        item.id for item in plain.items
    ]


@pytest.mark.skipif(installed() is None, reason="the package wordllama is not installed")
def test_both_stand_beside_vectors(context: Context, space: Space, told: dict[str, Remembered]) -> None:
    index_add(context, space, "static+graph+outline", wait=True)
    view = index_try(context, space, "static+graph+outline", "When does the ferry leave?")
    assert view.items[0].id == told["ferry"].id
    assert account(view, told["captain"])["indexes"]["graph"]["gives"] > 0
    assert set(account(view, told["ferry"])["indexes"]) == {"lexical", "vectors", "graph", "outline"}


def test_notes_that_cite_the_same_lines_hang_together(
    context: Context, space: Space, told: dict[str, Remembered]
) -> None:
    index_add(context, space, "words+graph", wait=True)
    view = index_try(context, space, "words+graph", "pier grow")
    assert account(view, told["again"])["indexes"]["graph"]["gives"] > 0


def test_a_heading_that_says_what_is_asked_counts(context: Context, space: Space, told: dict[str, Remembered]) -> None:
    remember(context, space, NewNote("timetable timetable timetable"))
    index_add(context, space, BOTH, wait=True)
    view = index_try(context, space, BOTH, "timetable")
    assert account(view, told["ferry"])["indexes"]["outline"] == {"rank": 1, "gives": 0.25}
    others = [item for item in view.items if item.id != told["ferry"].id]
    assert others and all(item.why["indexes"]["outline"]["gives"] == 0 for item in others)  # type: ignore[index]


@pytest.mark.requirement("A-003")
def test_both_are_made_from_the_notes_and_follow_them(
    context: Context, space: Space, told: dict[str, Remembered]
) -> None:
    indexes = space.one().indexes
    index_add(context, space, BOTH, wait=True)
    recipe = indexes.recipe(BOTH)
    with indexes.trying(recipe):
        first, outline = indexes.further("graph"), indexes.further("outline")
        assert first is not None and outline is not None
        assert outline.counts().live == 2  # the notes with headings
    newer = remember(context, space, NewNote("# Pilot\n\nA letter to the [[Captain]]."))
    view = index_try(context, space, BOTH, "Captain likes tea")
    assert account(view, newer)["indexes"]["graph"]["gives"] > 0  # found in the same call
    update(context, space, told["captain"].id, "# Captain\n\nShe likes weak tea.")
    forget(context, space, Selection((newer.id,)), reason="a test")
    view = index_try(context, space, BOTH, "Captain likes tea")
    assert newer.id not in {item.id for item in view.items}
    with indexes.trying(recipe):
        graph = indexes.further("graph")
        assert graph is not None
        keys = sorted(graph.keys())
        edges = edges_of(indexes.catalog, keys)
        before = {key: neighbours(graph, edges[key], [], former=True) for key in keys}
    indexes.rebuild()
    index_add(context, space, BOTH, wait=True)
    with indexes.trying(recipe):
        graph = indexes.further("graph")
        assert graph is not None
        assert {key: neighbours(graph, edges[key], [], former=True) for key in sorted(graph.keys())} == before
        graph.check()
