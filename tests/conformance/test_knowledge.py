"""What every engine of knowledge does, written against the contract: each capability, each error."""

from __future__ import annotations

import pytest

from memoranda.context import Context
from memoranda.engines.contract import KNOWLEDGE, SearchType
from memoranda.errors import CapabilityUnsupported, Forbidden, LegalHold, NotFound, RuleOfTwo
from memoranda.values import replace
from tests.conformance.subject import Subject
from tests.conformance.test_everything import OTHERS, SCOPES, meet_private
from tests.conftest import Clock
from tests.engines.asking import asking

ENGINES = ("cognee", "hybrid")
LYON = "Greta pays Hugo in Lyon every Friday."
ROME = "Ines moves the Archive to Rome in March."
KINDS: tuple[SearchType, ...] = ("CHUNKS", "CHUNKS_LEXICAL", "SUMMARIES", "RAG_COMPLETION", "GRAPH_COMPLETION")


def texts(found) -> list[str]:  # type: ignore[no-untyped-def]
    return [passage.text for passage in found.passages]


@pytest.mark.requirement("P-020", "P-032", "P-042")
def test_it_announces_every_operation_on_knowledge(subject: Subject) -> None:
    told = subject.knowledge.document()
    assert (told.engine_instance, told.capabilities.knowledge) == (subject.knowledge.instance, KNOWLEDGE)


@pytest.mark.requirement("P-037", "P-116", "P-119")
@pytest.mark.parametrize("scope", SCOPES)
def test_texts_are_kept_as_documents_of_a_dataset(subject: Subject, context: Context, scope) -> None:  # type: ignore[no-untyped-def]
    made = subject.ingest(context, LYON, ROME, scope=scope, classification="confidential", retention_days=30)
    where = asking(writes=scope)
    assert where.writes is not None
    assert (made.engine, made.scope, made.owner) == (subject.knowledge.instance, scope, where.writes.owner)
    assert (made.documents, made.built, made.status) == (2, 0, "ingested")
    assert (made.classification, made.retention_days, made.legal_hold) == ("confidential", 30, False)
    assert subject.datasets(context, scope=scope) == (made,)
    more = subject.ingest(context, "A third one.", ROME, scope=scope, dataset_id=made.id)
    assert (more.id, more.documents) == (made.id, 3)  # the same text is kept once


@pytest.mark.requirement("P-121")
def test_datasets_are_listed_a_page_at_a_time(subject: Subject, context: Context, clock: Clock) -> None:
    made = []
    for n in range(4):
        made.append(subject.ingest(context, f"Number {n}.").id)
        clock.tick()
    first = subject.knowledge.datasets(context, asking(), scope=None, limit=3, after=None)
    rest = subject.knowledge.datasets(context, asking(), scope=None, limit=3, after=first.next)
    assert [one.id for one in (*first.items, *rest.items)] == made[::-1] and rest.next is None
    assert subject.datasets(context, scope="project") == ()


@pytest.mark.requirement("P-117", "P-118")
def test_knowledge_belongs_to_no_session(subject: Subject, context: Context) -> None:
    where = asking(writes="session", session="s-1")
    for refused in (
        lambda: subject.ingest(context, LYON, scope="session", by=where),
        lambda: subject.datasets(context, where, scope="session"),
    ):
        with pytest.raises(CapabilityUnsupported, match="no session") as error:
            refused()
        assert error.value.status == 422


@pytest.mark.requirement("P-038", "P-120", "P-122")
def test_a_graph_is_built_in_the_background(subject: Subject, context: Context) -> None:
    made = subject.ingest(context, LYON)
    unbuilt = subject.search(context, "Who pays Hugo?")
    assert unbuilt.passages == () and any(made.id in notice for notice in unbuilt.coverage.notices)
    (begun,) = subject.knowledge.build_graph(context, asking(), (made.id,))
    assert (begun.id, begun.status) == (made.id, "building")
    done = subject.wait(context, made.id)
    assert (done.status, done.built) == ("built", 1)
    assert texts(subject.search(context, "Who pays Hugo?")) == [LYON]


def test_of_nothing_no_graph_is_built(subject: Subject, context: Context) -> None:
    made = subject.ingest(context, LYON)
    (item,) = [
        row for row in subject.knowledge.list(context, asking(), scope=None, limit=9, after=None).items
    ]  # fmt: skip
    subject.engine.forget(context, asking(), item.id, if_match=None)
    assert subject.datasets(context)[0].status == "empty"
    with pytest.raises(CapabilityUnsupported) as error:
        subject.knowledge.build_graph(context, asking(), (made.id,))
    assert error.value.status == 422


@pytest.mark.requirement("P-039", "P-123", "P-124", "P-125")
def test_every_search_finds_with_comparable_scores(subject: Subject, context: Context) -> None:
    one, other = subject.built(context, LYON, ROME), subject.built(context, "Hugo sings on Monday.")
    ids = {item.id for item in subject.knowledge.list(context, asking(), scope=None, limit=9, after=None).items}
    for kind in KINDS:
        found = subject.search(context, "Who pays Hugo in Lyon?", search_type=kind)
        assert found.passages and "Hugo" in found.passages[0].text, kind
        scores = [passage.score for passage in found.passages]
        assert all(score is not None and 0 <= score <= 1 for score in scores) and scores == sorted(scores, reverse=True)
        assert {passage.dataset_id for passage in found.passages} == {one.id, other.id}
        assert all(passage.text in passage.envelope != passage.text for passage in found.passages)
        if kind in ("CHUNKS", "CHUNKS_LEXICAL"):
            assert {passage.source for passage in found.passages} <= ids
        only = subject.search(context, "Who pays Hugo in Lyon?", search_type=kind, dataset_ids=(other.id,))
        assert {passage.dataset_id for passage in only.passages} == {other.id}
    assert len(subject.search(context, "Hugo", top_k=1).passages) == 1
    assert subject.search(context, "Hugo").coverage.engines == (subject.knowledge.instance,)


@pytest.mark.requirement("P-040", "P-126")
def test_entities_and_what_relates_them(subject: Subject, context: Context) -> None:
    made = subject.built(context, LYON)
    found = subject.knowledge.relations(context, asking(), made.id)
    names = {entity.id: entity.name for entity in found.entities}
    assert {"greta", "hugo", "lyon"} <= set(names.values())
    assert ("greta", "stands_before", "hugo") in {
        (names[one.source], one.relation, names[one.target]) for one in found.relations
    }


def test_a_list_reads_the_documents_words_or_asks_for_none(subject: Subject, context: Context) -> None:
    texts = {f"  Number {n}:\r\n\n Lyon, é\u2028and 日本  " for n in range(11)}
    subject.ingest(context, *sorted(texts))
    read = subject.knowledge.list(context, asking(), scope=None, limit=50, after=None)
    assert {item.content for item in read.items} == {text.replace("\r", "") for text in texts}
    bare = subject.knowledge.list(context, asking(), scope=None, limit=50, after=None, words=False)
    assert [(item.id, item.content, item.etag) for item in bare.items] == [(i.id, None, i.etag) for i in read.items]


@pytest.mark.requirement("P-041", "P-127")
def test_a_dataset_is_deleted_and_no_other(subject: Subject, context: Context) -> None:
    one, other = subject.ingest(context, LYON, ROME), subject.ingest(context, LYON)
    gone = subject.knowledge.delete_dataset(context, asking(), one.id)
    assert gone.removed == 2 and gone.remains
    assert [left.id for left in subject.datasets(context)] == [other.id]
    for again in (
        lambda: subject.knowledge.delete_dataset(context, asking(), one.id),
        lambda: subject.search(context, "Hugo", dataset_ids=(one.id,)),
        lambda: subject.ingest(context, "More.", dataset_id=one.id),
    ):
        with pytest.raises(NotFound):
            again()


@pytest.mark.parametrize("other", OTHERS)
def test_another_ones_dataset_is_not_there(subject: Subject, context: Context, other: str) -> None:
    scope = "user" if other == "another user" else "project"
    made = subject.ingest(context, LYON, scope=scope)
    where = OTHERS[other]
    assert subject.datasets(context, where) == () and subject.search(context, "Hugo", where).passages == ()
    writes = where.model_copy(update={"writes": next(p for p in where.reads if p.scope == scope)})
    told = []
    for one in (made.id, "ds_00000000000000a1"):
        for refused in (
            lambda one: subject.search(context, "Hugo", where, dataset_ids=(one,)),
            lambda one: subject.knowledge.relations(context, where, one),
            lambda one: subject.knowledge.build_graph(context, where, (one,)),
            lambda one: subject.knowledge.delete_dataset(context, where, one),
            lambda one: subject.ingest(context, "Mine.", scope=scope, by=writes, dataset_id=one),
        ):
            with pytest.raises(NotFound) as error:
                refused(one)
            told.append(str(error.value))
    assert len(set(told)) == 1  # another's is as unknown as one that nobody has
    assert [one.id for one in subject.datasets(context)] == [made.id]


def test_a_place_that_is_not_the_callers_own_gets_no_dataset(subject: Subject, context: Context) -> None:
    where = asking(writes="user").model_copy(update={"writes": asking("bob", writes="user").writes})
    with pytest.raises(Forbidden):
        subject.ingest(context, LYON, by=where)


def test_what_is_held_keeps_its_dataset(subject: Subject, context: Context) -> None:
    made = subject.ingest(context, LYON, legal_hold=True)
    with pytest.raises(LegalHold):
        subject.knowledge.delete_dataset(context, asking(), made.id)
    held = subject.ingest(context, ROME)
    subject.ingest(context, LYON, dataset_id=held.id, legal_hold=True)
    with pytest.raises(LegalHold):
        subject.knowledge.delete_dataset(context, asking(), held.id)
    done = subject.engine.purge(context, asking(writes="user"))
    assert done.removed == 1 and any("legal hold" in line for line in done.remains)
    assert {one.id: one.documents for one in subject.datasets(context)} == {made.id: 1, held.id: 1}


def test_a_document_that_was_forgotten_or_is_due_is_not_found(subject: Subject, context: Context, clock: Clock) -> None:
    made = subject.built(context, LYON, ROME)
    hit = subject.search(context, LYON, top_k=1).passages[0]
    gone = subject.engine.forget(context, asking(), hit.source, if_match=None)
    assert gone.removed == 1 and any("until its dataset is deleted" in line for line in gone.remains)
    assert texts(subject.search(context, LYON)) == [ROME]
    due = subject.built(context, "Hugo sings on Monday.", retention_days=1)
    assert "Hugo sings on Monday." in texts(subject.search(context, "Hugo sings"))
    clock.tick(days=2)
    assert "Hugo sings on Monday." not in texts(subject.search(context, "Hugo sings"))
    for kind in ("SUMMARIES", "RAG_COMPLETION"):
        found = subject.search(context, "Hugo sings", search_type=kind, dataset_ids=(due.id,))
        assert found.passages == () and any(due.id in notice for notice in found.coverage.notices)
    with pytest.raises(Forbidden):
        subject.knowledge.relations(context, asking(), due.id)
    assert made.id != due.id


def test_what_came_from_outside_is_withheld_from_a_session_that_has_met_none(
    subject: Subject, context: Context
) -> None:
    where = asking(session="s-out", writes="user")
    subject.sessions.taint(replace(context, session="s-out"), where, "a page of the web")
    made = subject.built(context, LYON, by=where)
    clean = asking(session="s-clean", agent="max", reads=("user",), writes="user")
    found = subject.search(context, LYON, clean)
    assert found.passages == () and len(found.coverage.withheld) == 1
    assert subject.search(context, LYON, clean, search_type="RAG_COMPLETION").passages == ()
    with pytest.raises(Forbidden):
        subject.knowledge.relations(context, clean, made.id)
    assert subject.sessions.met(context, clean) == ()
    assert texts(subject.search(context, LYON, where)) == [LYON]
    assert subject.knowledge.relations(context, where, made.id).entities


def test_who_has_met_too_much_takes_no_shared_dataset_away(subject: Subject, context: Context) -> None:
    made = subject.ingest(context, LYON, scope="project")
    where = asking(session="s-out", writes="user")
    subject.sessions.taint(replace(context, session="s-out"), where, "a page of the web")
    meet_private(subject, context, where)
    with pytest.raises(RuleOfTwo):
        subject.knowledge.delete_dataset(context, where, made.id)
    assert [one.id for one in subject.datasets(context)] == [made.id]
