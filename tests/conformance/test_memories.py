"""What every engine of memories does, written against the contract: each capability, each error."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from memoranda.context import Context
from memoranda.engines.contract import MEMORY, OperationContext, PurgeRequest, RememberRequest, Scope
from memoranda.errors import (
    ChainConflict,
    ConfirmationRequired,
    Conflict,
    InvalidInput,
    LegalHold,
    NotFound,
    PreconditionFailed,
    RuleOfTwo,
    SecretRefused,
)
from memoranda.values import replace
from tests.conformance.subject import Subject
from tests.conftest import Clock
from tests.engines.asking import asking

ENGINES = ("builtin", "hybrid", "mem0")
SCOPES: tuple[Scope, ...] = ("user", "agent", "shared_agents", "project", "team", "organization", "global")
OTHERS = {
    "another tenant": asking(tenant="globex"), "another project": asking(project="bank"),
    "another user": asking("bob", "max", reads=("user", "agent", "shared_agents")),
}  # fmt: skip


@pytest.mark.requirement("P-020", "P-030", "P-031")
def test_it_announces_every_operation_on_memories_and_none_on_knowledge(subject: Subject) -> None:
    told = subject.engine.document()
    assert told.provider == subject.provider and told.engine_instance == subject.engine.instance
    assert told.capabilities.memory == MEMORY and told.capabilities.knowledge == ()


@pytest.mark.requirement("P-021", "P-027")
@pytest.mark.parametrize("scope", SCOPES)
def test_what_is_remembered_is_read_again_in_every_scope_with_all_that_was_said(
    subject: Subject, context: Context, scope: Scope
) -> None:
    where = asking(writes=scope)
    new = RememberRequest(
        content="Acme renews in May.\n\n  – two  spaces, é and 日本 –", subject="customer/acme", kind="semantic",
        classification="public", confidence=0.75, valid_from="2026-01-02", valid_to="2027-01-01",
        source="https://acme.example/terms", retention_days=30, legal_hold=True, origin="human",
    )  # fmt: skip
    item = subject.engine.remember(context, where, new)
    assert where.writes is not None
    assert (item.engine, item.scope, item.owner) == (subject.engine.instance, scope, where.writes.owner)
    assert (item.content, item.subject, item.kind) == (new.content, "customer/acme", "semantic")
    assert (item.classification, item.confidence, item.retention_days) == ("public", 0.75, 30)
    assert (item.sources, item.legal_hold, item.origin) == (("https://acme.example/terms",), True, "human")
    assert (item.valid_from, item.valid_to) == ("2026-01-02T00:00:00Z", "2027-01-01T00:00:00Z")
    assert subject.get(replace(context, person=True), item.id, where) == item


@pytest.mark.requirement("P-022", "P-023")
def test_a_question_finds_it_with_its_envelope(subject: Subject, context: Context) -> None:
    kept = subject.remember(context, "The office closes at six.")
    subject.remember(context, "Bread is baked at four.")
    (item, *_) = subject.recall(context, "When does the office close? The office closes")
    assert (item.id, item.content, item.owner) == (kept.id, "The office closes at six.", "ana")
    assert item.score > 0 and item.why
    assert "The office closes at six." in item.envelope and item.envelope != item.content
    assert item.etag == subject.get(context, kept.id).etag == kept.etag
    assert subject.engine.instance in subject.found(context, "office").coverage.engines


def test_a_question_can_be_narrowed(subject: Subject, context: Context) -> None:
    for n in range(4):
        subject.remember(context, f"The office closes at {n}.", "user" if n % 2 else "project", kind="episodic")
    subject.remember(context, "The office closes late.", kind="fact")
    query = "office closes"
    assert len(subject.recall(context, query, top_k=2)) == 2
    assert {i.scope for i in subject.recall(context, query, scopes=("project",))} == {"project"}
    assert {i.kind for i in subject.recall(context, query, kinds=("fact",))} == {"fact"}
    assert len(subject.recall(context, query, top_k=10)) == 5


@pytest.mark.requirement("P-024")
def test_an_update_is_another_item_that_supersedes(subject: Subject, context: Context, clock: Clock) -> None:
    old = subject.remember(context, "The office closes at six.", subject="office", classification="public")
    clock.tick()
    new = subject.update(context, old.id, "The office closes at seven.")
    assert new.id != old.id and new.supersedes == (old.id,)
    assert (new.subject, new.classification, new.content) == ("office", "public", "The office closes at seven.")
    assert subject.get(context, old.id) == subject.get(context, new.id) == new
    before = subject.get(context, old.id, exact=True)
    assert (before.content, before.state, before.superseded_by) == (old.content, "superseded", (new.id,))
    assert subject.texts(context, "office closes") == ["The office closes at seven."]
    assert [item.id for item in subject.listed(context)] == [new.id]
    again = subject.update(context, old.id, "The office closes at eight.")  # any id of a chain resolves to its head
    assert again.supersedes == (new.id,)


def test_what_everybody_corrects_is_still_found(subject: Subject, context: Context, clock: Clock) -> None:
    """Forty former versions, each as near to the question as the one that holds."""
    item = subject.remember(context, "The office closes at hour 0.")
    for n in range(1, 41):
        clock.tick()
        item = subject.update(context, item.id, f"The office closes at hour {n}.")
    assert subject.texts(context, "office closes hour", top_k=1) == ["The office closes at hour 40."]


def test_an_earlier_day_is_answered_by_what_held_then(subject: Subject, context: Context, clock: Clock) -> None:
    old = subject.remember(context, "The office closes at six.", valid_from="2026-01-01")
    clock.tick(days=10)
    subject.update(context, old.id, "The office closes at seven.")
    assert subject.texts(context, "office closes", as_of="2026-05-01") == ["The office closes at six."]
    assert subject.texts(context, "office closes", known_at="2026-10-05") == ["The office closes at six."]
    assert subject.texts(context, "office closes", as_of="2026-10-20") == ["The office closes at seven."]
    assert subject.texts(context, "office closes", as_of="2025-05-01") == []
    assert subject.texts(context, "office closes", known_at="2026-09-01") == []


def test_an_update_of_what_has_changed_meanwhile_is_refused(subject: Subject, context: Context) -> None:
    old = subject.remember(context, "The office closes at six.")
    new = subject.update(context, old.id, "The office closes at seven.", old.etag)
    with pytest.raises(PreconditionFailed):
        subject.update(context, old.id, "The office closes at eight.", old.etag)
    with pytest.raises(PreconditionFailed):
        subject.engine.forget(context, asking(), old.id, if_match=old.etag)
    assert subject.update(context, new.id, "The office closes at nine.", new.etag).content


def test_a_chain_gets_no_second_head(subject: Subject, context: Context) -> None:
    old = subject.remember(context, "The office closes at six.")
    subject.remember(context, "The office closes at seven.", supersedes=(old.id,))
    with pytest.raises(ChainConflict):
        subject.remember(context, "The office closes at eight.", supersedes=(old.id,))
    assert subject.texts(context, "office closes") == ["The office closes at seven."]


@pytest.mark.parametrize("other", OTHERS)
def test_what_lies_elsewhere_is_not_there(subject: Subject, context: Context, other: str) -> None:
    scope: Scope = "user" if other == "another user" else "project"
    kept = subject.remember(context, "The office closes at six.", scope)
    where = OTHERS[other]
    assert subject.recall(context, "office closes", where) == [] and subject.listed(context, where) == []
    refused = []
    for ask in (
        lambda item: subject.get(context, item, where),
        lambda item: subject.get(context, item, where, exact=True),
        lambda item: subject.update(context, item, "Mine.", where=where),
        lambda item: subject.engine.forget(context, where, item, if_match=None),
    ):
        for item in (kept.id, "mem_00000000000000a1"):
            with pytest.raises(NotFound) as error:
                ask(item)
            refused.append(str(error.value))
    assert len(set(refused)) == 1  # another's is as unknown as one that nobody has
    writes = where.model_copy(update={"writes": next(p for p in where.reads if p.scope == scope)})
    assert subject.engine.purge(context, writes).removed == 0
    with pytest.raises(NotFound):
        subject.remember(context, "Mine.", by=writes, supersedes=(kept.id,))
    assert subject.get(context, kept.id).content == "The office closes at six."


@pytest.mark.requirement("P-025")
def test_what_is_forgotten_is_gone_with_its_chain(subject: Subject, context: Context) -> None:
    old = subject.remember(context, "The office closes at six.")
    new = subject.update(context, old.id, "The office closes at seven.")
    subject.remember(context, "Bread is baked at four.")
    gone = subject.engine.forget(context, asking(), old.id, if_match=None)
    assert gone.removed == 2 and gone.remains
    assert subject.texts(context, "office closes") == []
    for item in (old.id, new.id):
        for exact in (False, True):
            with pytest.raises(NotFound):
                subject.get(context, item, exact=exact)
    assert [item.content for item in subject.listed(context)] == ["Bread is baked at four."]
    again = subject.remember(replace(context, person=True), "The office closes at six.")
    assert subject.texts(context, "office closes") == [again.content]


@pytest.mark.requirement("P-028")
def test_a_purge_empties_one_place(subject: Subject, context: Context) -> None:
    for n in range(12):
        subject.remember(context, f"The office closes at {n}.")
    subject.remember(context, "The office closes never.", "project")
    assert PurgeRequest(scope="user").confirm is False
    done = subject.engine.purge(context, asking(writes="user"))
    assert done.removed == 12
    assert subject.texts(context, "office closes") == ["The office closes never."]
    assert subject.engine.purge(context, asking(writes="user")).removed == 0


def test_what_is_held_is_neither_forgotten_nor_purged(subject: Subject, context: Context) -> None:
    held = subject.remember(context, "The office closes at six.", legal_hold=True)
    subject.remember(context, "Bread is baked at four.")
    with pytest.raises(LegalHold):
        subject.engine.forget(context, asking(), held.id, if_match=None)
    done = subject.engine.purge(context, asking(writes="user"))
    assert done.removed == 1 and any(held.id in line for line in done.remains)
    assert subject.get(context, held.id).legal_hold


def test_what_is_past_its_retention_is_hidden_on_time(subject: Subject, context: Context, clock: Clock) -> None:
    kept = subject.remember(context, "The office closes at six.", retention_days=1)
    subject.remember(context, "The office closes at seven.", retention_days=1, legal_hold=True)
    clock.tick(days=1, seconds=-5)
    assert len(subject.recall(context, "office closes")) == 2
    clock.tick(seconds=10)
    assert subject.recall(context, "office closes") == [] and subject.listed(context) == []
    for exact in (False, True):
        with pytest.raises(NotFound):
            subject.get(context, kept.id, exact=exact)


@pytest.mark.parametrize("days", [(None, None, None), (5, None, 5), (5, 3, 3), (3, 5, 3), (None, 2, 2)])
def test_an_update_is_kept_for_the_shorter_time(
    subject: Subject, context: Context, days: tuple[int | None, int | None, int | None]
) -> None:
    had, asked, expected = days
    old = subject.remember(context, "The office closes at six.", retention_days=had)
    new = subject.update(context, old.id, "The office closes at seven.", retention_days=asked, legal_hold=True)
    assert (new.retention_days, new.legal_hold) == (expected, True)


@pytest.mark.parametrize(
    "more",
    [{"content": " \n "}, {"content": "a\0b"}, {"subject": "a/../b"}, {"valid_from": "soon"},
     {"valid_to": "2026-13-01"}, {"valid_from": "2026-05-01", "valid_to": "2026-04-01"}, {"sources": ("no uri",)},
     {"supersedes": ("mem-1",)}],
)  # fmt: skip
def test_what_cannot_be_kept_as_it_is_is_refused_and_leaves_nothing(
    subject: Subject, context: Context, more: dict[str, object]
) -> None:
    new = RememberRequest.model_validate({"content": "The office closes at six.", **more})
    with pytest.raises((InvalidInput, NotFound)):
        subject.engine.remember(context, asking(writes="user"), new)
    assert subject.listed(context) == [] and subject.recall(context, "office closes") == []


def test_a_secret_is_not_kept(subject: Subject, context: Context) -> None:
    kept = subject.remember(context, "The office closes at six.")
    secret = "The password is hunter2-Xk9!q"
    for write in (
        lambda: subject.remember(context, secret),
        lambda: subject.remember(context, "Fine.", subject=secret),
        lambda: subject.update(context, kept.id, secret),
    ):
        with pytest.raises(SecretRefused):
            write()
    assert len(subject.listed(context)) == 1


@pytest.fixture
def outsider(subject: Subject, context: Context) -> OperationContext:
    """A session that has met something from outside."""
    where = asking(session="s-out", writes="user")
    subject.sessions.taint(replace(context, session="s-out"), where, "a page of the web")
    return where


class TestWhatComesFromOutside:
    def test_is_withheld_from_a_session_that_has_met_none(
        self, subject: Subject, context: Context, outsider: OperationContext
    ) -> None:
        kept = subject.remember(context, "The office closes at six.", by=outsider)
        assert (kept.taint, kept.trust) == (("external",), "quarantined")
        clean = asking(session="s-clean", agent="max", reads=("user",))
        found = subject.found(context, "office closes", clean)
        assert found.items == () and [p.id for p in found.coverage.withheld] == [kept.id]
        (listed,) = subject.listed(context, clean)
        assert (listed.id, listed.content, listed.subject) == (kept.id, None, None)
        assert subject.texts(context, "office closes", outsider) == ["The office closes at six."]

    def test_taints_who_reads_it(self, subject: Subject, context: Context, outsider: OperationContext) -> None:
        kept = subject.remember(context, "The office closes at six.", by=outsider)
        clean = asking(session="s-clean", agent="max", reads=("user",), writes="user")
        assert subject.sessions.met(context, clean) == ()
        assert subject.get(context, kept.id, clean).content
        assert subject.sessions.met(context, clean) == ("external",)
        assert subject.remember(context, "It closes early.", by=clean).taint == ("external",)

    def test_only_proposes_to_supersede_until_a_person_accepts_it(
        self, subject: Subject, context: Context, outsider: OperationContext
    ) -> None:
        old = subject.remember(context, "The office closes at six.", by=asking(agent="max", writes="user"))
        new = subject.update(context, old.id, "The office closes at noon.", where=outsider)
        assert subject.get(context, old.id).id == old.id
        told = {"comment": "seen", "reviewer": "ana"}
        seen = subject.get(replace(context, person=True), new.id, exact=True)
        with pytest.raises(PreconditionFailed):
            subject.engine.review(context, asking(), new.id, "accept", if_match=old.etag, **told)
        done = subject.engine.review(context, asking(), new.id, "accept", if_match=seen.etag, **told)
        assert (done.trust, done.reviewed) == ("reviewed", True)
        assert subject.get(context, old.id).id == new.id
        clean = asking(session="s-clean", agent="max", reads=("user",))
        assert subject.texts(context, "office closes", clean) == ["The office closes at noon."]

    def test_says_so_itself(self, subject: Subject, context: Context) -> None:
        where = asking(agent="max", writes="user")
        kept = subject.remember(context, "The office closes at six.", by=where, origin="external")
        cited = subject.remember(context, "Six.", by=where, source="https://web.example/page")
        assert kept.trust == cited.trust == "quarantined"

    def test_and_what_is_private_together_reach_no_others(
        self, subject: Subject, context: Context, outsider: OperationContext
    ) -> None:
        private = subject.remember(
            context, "The offer is two million.", by=asking(agent="max", writes="user"), classification="confidential"
        )
        subject.remember(context, "Bread.", by=asking(agent="max", writes="project"))
        subject.get(context, private.id, outsider)
        shared = outsider.model_copy(update={"writes": asking(writes="project").writes})
        for write in (
            lambda: subject.remember(context, "Told to everybody.", by=shared),
            lambda: subject.engine.purge(context, shared),
            lambda: subject.engine.export(context, outsider, (), "ndjson"),
        ):
            with pytest.raises(RuleOfTwo):
                write()
        assert subject.remember(context, "Told to nobody.", by=outsider)


def test_what_a_person_has_reviewed_no_agent_takes_away(subject: Subject, context: Context) -> None:
    kept = subject.remember(context, "The office closes at six.")
    told = {"comment": "seen", "reviewer": "ana", "if_match": kept.etag}
    subject.engine.review(context, asking(), kept.id, "accept", **told)
    with pytest.raises(ConfirmationRequired):
        subject.engine.forget(context, asking(), kept.id, if_match=None)
    assert subject.engine.purge(context, asking(writes="user")).removed == 0
    person = replace(context, person=True)
    assert subject.engine.forget(person, asking(), kept.id, if_match=None).removed == 1


def test_a_chain_tells_its_history(subject: Subject, context: Context, clock: Clock) -> None:
    old = subject.remember(context, "The office closes at six.", valid_from="2026-01-01")
    clock.tick(days=2)
    new = subject.update(context, old.id, "The office closes at seven.")
    links = subject.engine.history(context, asking(), old.id)
    assert [(link.item.id, link.head) for link in links] == [(old.id, False), (new.id, True)]
    assert links[0].held_from == "2026-01-01T00:00:00Z" and links[0].held_to == links[1].held_from
    assert links[0].item.content == "The office closes at six."
    with pytest.raises(NotFound):
        subject.engine.history(context, OTHERS["another tenant"], old.id)


def test_an_export_gives_what_may_be_read_as_notes(subject: Subject, context: Context) -> None:
    kept = subject.remember(context, "The office closes at six.", subject="office", classification="public")
    subject.remember(context, "Bread.", "project")
    subject.remember(context, "Not for ana.", by=asking("bob", writes="user"))
    person = replace(context, person=True)
    lines = subject.engine.export(person, asking(), (), "ndjson").data.decode().splitlines()
    texts = {json.loads(line)["item"]["content"] for line in lines[1:]}
    assert texts == {"The office closes at six.", "Bread."}
    exported = subject.engine.export(person, asking(), ("user",), "zip")
    (note,) = exported.manifest["notes"]
    with zipfile.ZipFile(io.BytesIO(exported.data)) as file:
        text = file.read(note["path"]).decode()
    assert kept.id in text and "The office closes at six." in text and "classification: public" in text


def test_two_who_update_at_once_leave_one_head(subject: Subject, context: Context) -> None:
    import threading

    old = subject.remember(context, "The office closes at six.")
    ended: list[object] = []

    def write(n: int) -> None:
        try:
            ended.append(subject.update(context, old.id, f"The office closes at {n}.", old.etag).id)
        except Conflict as error:
            ended.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = [one for one in ended if isinstance(one, str)]
    assert len(ended) == 4 and len(kept) == 1
    assert [item.id for item in subject.listed(context)] == kept
    assert len(subject.recall(context, "office closes")) == 1
