"""The operations of the service on the embedded defaults: what they give, and whom they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoranda.context import Context
from memoranda.engines.contract import ExportRequest, PurgeRequest, RecallRequest, RememberRequest, UpdateRequest
from memoranda.errors import (
    ClassificationRefused,
    ConfirmationRequired,
    Conflict,
    Forbidden,
    Frozen,
    InvalidInput,
    NotFound,
    PersonalDataRefused,
    PreconditionFailed,
    Refused,
    SecretRefused,
)
from memoranda.service import admin, memories
from memoranda.service.answers import ReviewRequest, TaintRequest
from memoranda.service.caller import Caller, refuse_claims
from memoranda.service.desk import Desk
from memoranda.values import replace
from tests.conftest import Clock

Made = Callable[..., Caller]


@pytest.fixture
def database(on_both: str) -> str:
    return on_both


def test_what_is_remembered_is_recalled_enveloped(desk: Desk, caller: Made) -> None:
    ana = caller("acme", "ana")
    item = memories.remember(desk, ana, "cleo", RememberRequest(content="Acme renewed for 24 months."))
    assert (item.scope, item.owner, item.kind) == ("user", "ana", "fact")
    answer = memories.recall(desk, ana, "cleo", RecallRequest(query="for how long did Acme renew?"))
    (segment,) = answer.segments
    assert segment.type == "memory"
    assert segment.item.id == item.id
    assert segment.item.content is None
    assert "Acme renewed for 24 months." in segment.content
    assert segment.content != "Acme renewed for 24 months."
    assert 0 < answer.budget.used <= answer.budget.limit
    found = memories.search(desk, ana, "cleo", RecallRequest(query="Acme renewed"))
    assert [one.id for one in found.items] == [item.id]


def test_the_agent_itself_and_its_owner_and_nobody_else(desk: Desk, caller: Made) -> None:
    memories.remember(desk, caller("acme", "ana", "cleo"), "cleo", RememberRequest(content="The agent knows this."))
    with pytest.raises(Forbidden):
        memories.remember(desk, caller("acme", "bob"), "cleo", RememberRequest(content="Not mine."))
    with pytest.raises(Forbidden):
        memories.recall(desk, caller("acme", "bob", "max"), "cleo", RecallRequest(query="what?"))
    with pytest.raises(NotFound):
        memories.recall(desk, caller("acme", "ana"), "nobody", RecallRequest(query="what?"))
    with pytest.raises(Forbidden):
        memories.recall(desk, caller(None, "root"), "cleo", RecallRequest(query="what?"))
    desk.relations.write(add=[admin.Tuple("user:acme/bob", "can_invoke", "agent:acme/cleo")])
    memories.remember(desk, caller("acme", "bob"), "cleo", RememberRequest(content="Bob likes tea."))


def test_users_of_one_agent_do_not_see_each_other(desk: Desk, caller: Made) -> None:
    desk.relations.write(add=[admin.Tuple("user:acme/bob", "can_invoke", "agent:acme/cleo")])
    ana, bob = caller("acme", "ana"), caller("acme", "bob")
    hers = memories.remember(desk, ana, "cleo", RememberRequest(content="Ana keeps bees."))
    assert memories.search(desk, bob, "cleo", RecallRequest(query="who keeps bees?")).items == ()
    assert memories.list_items(desk, bob, "cleo").items == ()
    with pytest.raises(NotFound):
        memories.get(desk, bob, "cleo", hers.id)
    with pytest.raises(NotFound):
        memories.update(desk, bob, "cleo", hers.id, UpdateRequest(content="Ana keeps wasps."))
    with pytest.raises(NotFound):
        memories.forget(desk, bob, "cleo", hers.id)
    assert memories.get(desk, ana, "cleo", hers.id).content == "Ana keeps bees."


def test_another_tenant_finds_nothing(desk: Desk, caller: Made) -> None:
    item = memories.remember(desk, caller("acme", "ana"), "cleo", RememberRequest(content="Acme keeps bees."))
    zoe = caller("globex", "zoe")
    assert memories.search(desk, zoe, "cleo", RecallRequest(query="who keeps bees?")).items == ()
    assert memories.list_items(desk, zoe, "cleo").items == ()
    with pytest.raises(NotFound):
        memories.get(desk, zoe, "cleo", item.id)
    with pytest.raises(NotFound):
        memories.get(desk, zoe, "max", item.id)


def test_an_update_supersedes_and_a_stale_etag_is_refused(desk: Desk, caller: Made) -> None:
    ana = caller("acme", "ana")
    first = memories.remember(desk, ana, "cleo", RememberRequest(content="Dana decides."))
    second = memories.update(desk, ana, "cleo", first.id, UpdateRequest(content="Luis decides."), if_match=first.etag)
    assert second.id != first.id
    assert second.supersedes == (first.id,)
    assert memories.get(desk, ana, "cleo", first.id).id == second.id
    assert memories.get(desk, ana, "cleo", first.id, exact=True).content == "Dana decides."
    with pytest.raises(PreconditionFailed):
        memories.update(desk, ana, "cleo", first.id, UpdateRequest(content="Kim decides."), if_match=first.etag)
    memories.forget(desk, ana, "cleo", first.id)
    for gone in (first, second):
        with pytest.raises(NotFound):
            memories.get(desk, ana, "cleo", gone.id)


@pytest.mark.requirement("P-080", "P-082", "P-083", "P-084", "P-085", "P-086", "P-087", "P-093")
def test_the_policy_is_in_force(desk: Desk, caller: Made, set_policy: Callable[..., None]) -> None:
    ana = caller("acme", "ana")

    def keep(**fields: object) -> object:
        return memories.remember(desk, ana, "cleo", RememberRequest(content="A plain text.", **fields))  # type: ignore[arg-type]

    with pytest.raises(Forbidden, match="scope project"):
        keep(scope="project")
    with pytest.raises(Forbidden, match="scope project"):
        memories.recall(desk, ana, "cleo", RecallRequest(query="what?", scopes=("project",)))
    with pytest.raises(ClassificationRefused):
        keep(classification="restricted")
    everything = ("session", "user", "agent", "shared_agents", "project", "team", "organization", "global")
    set_policy("acme", "cleo", write_scopes=everything, read_scopes=everything)
    with pytest.raises(Forbidden, match="mode shared"):
        keep(scope="shared_agents")
    with pytest.raises(Forbidden, match="global_access"):
        keep(scope="global")
    keep(scope="project")
    keep(scope="organization")
    set_policy("acme", "cleo", allowed_kinds=("preference",), default_scope="agent", allow_personal_data=False)
    with pytest.raises(Forbidden, match="kind fact"):
        keep()
    assert keep(kind="preference").scope == "agent"  # type: ignore[attr-defined]
    with pytest.raises(PersonalDataRefused):
        memories.remember(
            desk, ana, "cleo", RememberRequest(content="Write to dana.smith@acme-mail.com.", kind="preference")
        )
    set_policy("acme", "cleo", modes=("session",))
    with pytest.raises(Forbidden, match="mode long_term"):
        keep()


ALL_SCOPES = ("session", "user", "agent", "shared_agents", "project", "team", "organization", "global")
ALL_MODES = ("session", "long_term", "agent", "shared")


@pytest.mark.requirement("P-091")
def test_other_agents_share_only_in_what_the_policy_names_them_for(
    desk: Desk, caller: Made, set_policy: Callable[..., None]
) -> None:
    ana, bob = caller("acme", "ana"), caller("acme", "bob")
    both = {"modes": ALL_MODES, "write_scopes": ALL_SCOPES, "read_scopes": ALL_SCOPES}
    set_policy("acme", "cleo", **both)
    set_policy("acme", "max", **both)
    new = RememberRequest(content="The lock has a new key.", scope="shared_agents")
    kept = memories.remember(desk, ana, "cleo", new)

    def seen() -> list[str]:
        found = memories.search(desk, bob, "max", RecallRequest(query="the lock and its key"))
        return [one.id for one in found.items]

    assert seen() == []
    with pytest.raises(NotFound):
        memories.get(desk, bob, "max", kept.id)
    set_policy("acme", "cleo", **both, shared_with=("max",))
    assert seen() == [kept.id]
    set_policy("acme", "cleo", **both, shared_with=("another",))
    assert seen() == []


@pytest.mark.requirement("P-092")
def test_a_team_shares_only_where_the_policy_names_it(
    desk: Desk, caller: Made, context: Context, set_policy: Callable[..., None]
) -> None:
    ana = caller("acme", "ana")
    for team in ("sales", "legal"):
        desk.registry.add_team(context, "acme", team, ("ana",))
    both = {"write_scopes": ALL_SCOPES, "read_scopes": ALL_SCOPES, "modes": ALL_MODES}
    new = RememberRequest(content="The offer ends in June.", scope="team", team="sales")

    def seen() -> list[str]:
        found = memories.search(desk, ana, "cleo", RecallRequest(query="when does the offer end?"))
        return [one.id for one in found.items]

    for teams in ((), ("legal",)):
        set_policy("acme", "cleo", **both, teams=teams)
        with pytest.raises(Forbidden, match="team"):
            memories.remember(desk, ana, "cleo", new)
    set_policy("acme", "cleo", **both, teams=("sales",))
    kept = memories.remember(desk, ana, "cleo", new)
    assert seen() == [kept.id]
    set_policy("acme", "cleo", **both, teams=("legal",))
    assert seen() == []


@pytest.mark.requirement("P-098")
def test_of_what_the_policy_does_not_permit_nothing_is_kept(
    desk: Desk, caller: Made, tmp_path: Path, set_policy: Callable[..., None]
) -> None:
    ana = caller("acme", "ana")
    rules = {
        "write_scopes": ("user", "session"), "read_scopes": ALL_SCOPES, "modes": ("long_term", "agent"),
        "allowed_kinds": ("fact",), "max_classification": "internal", "allow_personal_data": False,
    }  # fmt: skip
    set_policy("acme", "cleo", **rules)
    kept = memories.remember(desk, ana, "cleo", RememberRequest(content="Permitted words."))
    for more in (
        {"scope": "agent"}, {"scope": "session", "session_id": "s-1"}, {"scope": "project"},
        {"kind": "preference"}, {"classification": "confidential"}, {"source": "mailto:dana.smith@acme-mail.com"},
    ):  # fmt: skip
        with pytest.raises(Refused):
            memories.remember(desk, ana, "cleo", RememberRequest(content="Forbidden words.", **more))  # type: ignore[arg-type]
    with desk.homes.whole("acme", "shop") as home:
        assert home is not None
        written = "".join(text.text for text in home.repository.texts())
    assert "Permitted words" in written and "Forbidden words" not in written
    set_policy("acme", "cleo", read_scopes=ALL_SCOPES, modes=ALL_MODES, global_access=True)
    assert [item.id for item in memories.list_items(desk, ana, "cleo").items] == [kept.id]


class Asked:
    """A part that tells when it is asked anything."""

    def __init__(self, inner: Any, told: list[str], name: str) -> None:
        self._inner, self._told, self._name = inner, told, name

    def __getattr__(self, name: str) -> Any:
        if name in ("recall", "search", "judge"):
            self._told.append(self._name)
        return getattr(self._inner, name)


@pytest.mark.requirement("S-081")
@pytest.mark.parametrize("operation", [memories.recall, memories.search])
def test_permissions_are_checked_before_anything_is_given(
    desk: Desk, caller: Made, set_policy: Callable[..., None], operation: Callable[..., Any]
) -> None:
    told: list[str] = []
    watched = replace(
        desk, builtin=Asked(desk.builtin, told, "engine"), injection=Asked(desk.injection, told, "filter")
    )
    for by in (caller("acme", "ana"), caller("acme", "ana", "cleo")):
        memories.remember(desk, by, "cleo", RememberRequest(content="The safe is on the second floor.", scope="agent"))
    question = RecallRequest(query="where is the safe?")
    for by in (caller("acme", "bob"), caller("acme", "bob", "max"), caller("acme", "ada"), caller("acme", "sam")):
        with pytest.raises(Forbidden):
            operation(watched, by, "cleo", question)
    with pytest.raises(NotFound):
        operation(watched, caller("globex", "bob"), "max", question)
    set_policy("acme", "cleo", read_scopes=("user",))
    with pytest.raises(Forbidden):
        operation(watched, caller("acme", "ana"), "cleo", RecallRequest(query="where is the safe?", scopes=("agent",)))
    assert told == []
    given = operation(watched, caller("acme", "ana"), "cleo", question)
    assert told and "safe" not in given.model_dump_json().replace("where is the safe?", "")
    set_policy("acme", "cleo")
    assert "second floor" in operation(watched, caller("acme", "ana"), "cleo", question).model_dump_json()


def test_a_secret_is_refused_and_nothing_of_it_is_told(desk: Desk, caller: Made) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"[:36]
    with pytest.raises(SecretRefused) as caught:
        memories.remember(desk, caller("acme", "ana"), "cleo", RememberRequest(content=f"The token is {secret}"))
    assert secret not in str(caught.value)


def test_a_session_belongs_to_its_user_and_agent(desk: Desk, caller: Made) -> None:
    """Nobody joins another's by its name, and nobody takes the name away."""
    desk.relations.write(add=[admin.Tuple("user:acme/bob", "can_invoke", "agent:acme/cleo")])
    ana, bob = caller("acme", "ana"), caller("acme", "bob")
    asked = RecallRequest(query="the plan", session_id="s-1")
    memories.remember(desk, ana, "cleo", RememberRequest(content="The plan is tea.", scope="session", session_id="s-1"))
    assert len(memories.search(desk, ana, "cleo", asked).items) == 1
    assert memories.search(desk, bob, "cleo", asked).items == ()
    assert memories.list_items(desk, bob, "cleo", session_id="s-1").items == ()
    own = RememberRequest(content="The plan is coffee.", scope="session", session_id="s-1")
    memories.remember(desk, bob, "cleo", own)
    memories.taint(desk, bob, "cleo", "s-1", TaintRequest(reason="a page of the web"))
    (found,) = memories.search(desk, ana, "cleo", asked).items
    assert "tea" in (found.content or "")
    purge = PurgeRequest(scope="session", session_id="s-1", confirm=True)
    assert memories.purge(desk, bob, "cleo", purge).removed == 1
    assert memories.remember(desk, ana, "cleo", own).trust == "unreviewed"  # what bob's has met, hers has not
    for name in ("s-1!", "s.1", "s-1/..", ":", "S-1"):  # names that a plain one could be taken for
        assert memories.list_items(desk, ana, "cleo", scope="session", session_id=name).items == ()
        memories.remember(desk, ana, "cleo", own.model_copy(update={"session_id": name}))
        assert len(memories.list_items(desk, ana, "cleo", scope="session", session_id=name).items) == 1
    with pytest.raises(InvalidInput, match="needs a session"):
        memories.remember(desk, ana, "cleo", RememberRequest(content="No session.", scope="session"))


def test_a_freeze_stops_writing_and_not_reading(desk: Desk, caller: Made) -> None:
    ana, sam = caller("acme", "ana"), caller("acme", "sam")
    memories.remember(desk, ana, "cleo", RememberRequest(content="Written before."))
    with pytest.raises(Forbidden):
        admin.freeze(desk, ana, "cleo")
    admin.freeze(desk, sam, "cleo")
    with pytest.raises(Frozen):
        memories.remember(desk, ana, "cleo", RememberRequest(content="Written after."))
    assert len(memories.list_items(desk, ana, "cleo").items) == 1
    admin.thaw(desk, sam, "cleo")
    memories.remember(desk, ana, "cleo", RememberRequest(content="Written after."))


def test_a_purge_has_to_be_confirmed(desk: Desk, caller: Made) -> None:
    ana = caller("acme", "ana")
    memories.remember(desk, ana, "cleo", RememberRequest(content="One."))
    memories.remember(desk, ana, "cleo", RememberRequest(content="Two.", scope="agent"))
    with pytest.raises(ConfirmationRequired):
        memories.purge(desk, ana, "cleo", PurgeRequest(scope="user"))
    assert len(memories.list_items(desk, ana, "cleo").items) == 2
    assert memories.purge(desk, ana, "cleo", PurgeRequest(scope="user", confirm=True)).removed == 1
    assert [item.scope for item in memories.list_items(desk, ana, "cleo").items] == ["agent"]


def test_pages_and_their_cursors(desk: Desk, caller: Made, clock: Clock) -> None:
    ana = caller("acme", "ana")
    made = []
    for n in range(5):
        made.append(memories.remember(desk, ana, "cleo", RememberRequest(content=f"Fact {n} of five.")).id)
        clock.tick(seconds=2)
    first = memories.list_items(desk, ana, "cleo", limit=2)
    assert [item.id for item in first.items] == made[:2:-1]
    assert all(item.content is None for item in first.items)
    late = memories.remember(desk, ana, "cleo", RememberRequest(content="Later."))
    memories.forget(desk, ana, "cleo", made[3])
    second = memories.list_items(desk, ana, "cleo", limit=2, cursor=first.next_cursor, include_content=True)
    assert [item.id for item in second.items] == [made[2], made[1]]
    assert second.items[0].content == "Fact 2 of five."
    assert late.id not in [item.id for item in second.items]
    for other in (caller("acme", "ana", "cleo"),):  # the same user by the agent's token: the same list
        memories.list_items(desk, other, "cleo", limit=2, cursor=first.next_cursor)
    with pytest.raises(InvalidInput, match="cursor"):
        memories.list_items(desk, caller("globex", "zoe"), "cleo", limit=2, cursor=first.next_cursor)
    with pytest.raises(InvalidInput, match="cursor"):
        memories.list_items(desk, ana, "cleo", scope="agent", limit=2, cursor=first.next_cursor)


def test_one_key_remembers_once(desk: Desk, caller: Made) -> None:
    ana = caller("acme", "ana")
    new = RememberRequest(content="Remembered once.")
    one = memories.remember(desk, ana, "cleo", new, idempotency_key="k1")
    two = memories.remember(desk, ana, "cleo", new, idempotency_key="k1")
    assert one.id == two.id
    assert len(memories.list_items(desk, ana, "cleo").items) == 1
    with pytest.raises(Conflict):
        memories.remember(desk, ana, "cleo", RememberRequest(content="Another."), idempotency_key="k1")
    zoe = caller("globex", "zoe")
    memories.remember(desk, zoe, "cleo", RememberRequest(content="Hers."), idempotency_key="k1")


def test_a_freeze_stops_no_answer_to_what_was_done_before_it(desk: Desk, caller: Made) -> None:
    """Whoever lost the answer learns that it was done; nothing is done anew, and nothing new is."""
    bob, sam = caller("acme", "bob"), caller("acme", "sam")
    new, scope = (
        RememberRequest(content="Kept before the freeze.", scope="user"),
        PurgeRequest(scope="agent", confirm=True),
    )
    gone = memories.remember(desk, bob, "max", RememberRequest(content="Gone before the freeze."))

    def every(key: str) -> list[object]:
        kept = memories.remember(desk, bob, "max", new, idempotency_key=f"{key}-1")
        change = UpdateRequest(content="Changed before the freeze.")
        return [
            kept.id, memories.update(desk, bob, "max", kept.id, change, idempotency_key=f"{key}-2").id,
            memories.forget(desk, bob, "max", gone.id, idempotency_key=f"{key}-3"),
            memories.purge(desk, bob, "max", scope, idempotency_key=f"{key}-4"),
        ]  # fmt: skip

    first, before = every("a"), memories.list_items(desk, bob, "max").items
    for freeze in (lambda: admin.freeze(desk, sam, "max"), lambda: admin.freeze(desk, sam)):
        freeze()
        assert every("a") == first
        with pytest.raises(Frozen):
            every("b")
    with pytest.raises(Conflict):
        memories.remember(desk, bob, "max", new.model_copy(update={"content": "Other."}), idempotency_key="a-1")
    assert memories.list_items(desk, bob, "max").items == before
    events = desk.audit.query("acme", operation="remember", user="bob", limit=100)[0]
    assert [entry.event.code for entry in events].count(Frozen.code) == 2
    admin.thaw(desk, sam)
    admin.thaw(desk, sam, "max")
    assert memories.remember(desk, bob, "max", new, idempotency_key="b-1").id != first[0]


def test_a_key_that_was_used_opens_nothing_that_was_closed_since(desk: Desk, caller: Made) -> None:
    """A repeated call passes the guards as they stand now, and stands in the audit, whether it did anything or not."""
    bob = caller("acme", "bob")
    item = memories.remember(desk, bob, "max", RememberRequest(content="Gone soon.", scope="user"))
    asked = PurgeRequest(scope="user", confirm=True)

    def both() -> None:
        memories.forget(desk, bob, "max", item.id, idempotency_key="k1")
        memories.purge(desk, bob, "max", asked, idempotency_key="k2")

    both()
    before = len(desk.audit.query("acme", limit=100)[0])
    both()
    assert len(desk.audit.query("acme", limit=100)[0]) == before + 2
    with pytest.raises(Conflict):
        memories.forget(desk, bob, "max", item.id, if_match="another", idempotency_key="k1")
    assert desk.audit.query("acme", limit=1)[0][0].json()["code"] == Conflict.code
    admin.add_agent(desk, caller("acme", "ana"), "max", "shop", owner="ana")
    with pytest.raises(Forbidden):
        memories.forget(desk, bob, "max", item.id, idempotency_key="k1")
    with pytest.raises(Forbidden):
        memories.purge(desk, bob, "max", asked, idempotency_key="k2")


@pytest.mark.requirement("S-071", "S-072", "S-074")
def test_everything_is_on_record_and_no_word_of_it(desk: Desk, caller: Made, context: Context) -> None:
    ana = caller("acme", "ana")
    item = memories.remember(desk, ana, "cleo", RememberRequest(content="The zebra sings."))
    memories.recall(desk, ana, "cleo", RecallRequest(query="does the zebra sing?"))
    with pytest.raises(Forbidden):
        memories.recall(desk, caller("acme", "bob"), "cleo", RecallRequest(query="zebra"))
    entries, _ = desk.audit.query("acme")
    told = [(entry.event.operation, entry.event.outcome, entry.event.user, entry.event.items) for entry in entries]
    assert told[:3] == [
        ("recall", "deny", "bob", ()),
        ("recall", "success", "ana", (item.id,)),
        ("remember", "success", "ana", (item.id,)),
    ]
    assert entries[1].event.engine == "builtin"
    assert entries[1].event.decision == "allow"
    assert "zebra" not in str([entry.json() for entry in entries])
    who, _ = desk.audit.query("acme", item=item.id, operation="recall")
    assert [entry.event.user for entry in who] == ["ana"]
    assert desk.audit.query("globex")[0] == []


def test_a_claim_that_is_not_the_callers_is_refused_on_record(desk: Desk, caller: Made) -> None:
    ana = caller("acme", "ana")
    refuse_claims(desk, ana, {"tenant": "acme", "user": "ana"})
    for claim in ({"tenant": "globex"}, {"user": "bob"}, {"agent": "cleo"}, {"team": "sales"}):
        with pytest.raises(Forbidden):
            refuse_claims(desk, ana, claim)
    entries, _ = desk.audit.query("acme", operation="claim")
    assert len(entries) == 4


def test_a_review_is_for_a_person_with_the_relation(desk: Desk, caller: Made) -> None:
    ana = caller("acme", "ana")
    item = memories.remember(desk, ana, "cleo", RememberRequest(content="Luis decides."))
    accept = ReviewRequest(verdict="accept", etag=item.etag, comment="as he said")
    with pytest.raises(Forbidden, match="person"):
        memories.review(desk, caller("acme", "ana", "cleo"), "cleo", item.id, accept)
    desk.relations.write(add=[admin.Tuple("user:acme/bob", "can_invoke", "agent:acme/cleo")])
    with pytest.raises(Forbidden, match="editor"):
        memories.review(desk, caller("acme", "bob"), "cleo", item.id, accept)
    with pytest.raises(PreconditionFailed):
        memories.review(desk, ana, "cleo", item.id, ReviewRequest(verdict="accept", etag="0" * 40))
    reviewed = memories.review(desk, ana, "cleo", item.id, accept)
    assert reviewed.reviewed
    assert memories.history(desk, ana, "cleo", item.id).links[0].item.reviewed


def test_a_taint_goes_with_the_session(desk: Desk, caller: Made) -> None:
    ana = caller("acme", "ana")
    told = memories.taint(desk, ana, "cleo", "s-9", TaintRequest(reason="read a page of the web"))
    assert "external" in told.taint
    new = RememberRequest(content="The page says so.", session_id="s-9")
    assert "external" in memories.remember(desk, ana, "cleo", new).taint


def test_what_is_exported_is_what_may_be_read(desk: Desk, caller: Made) -> None:
    desk.relations.write(add=[admin.Tuple("user:acme/bob", "can_invoke", "agent:acme/cleo")])
    ana, bob = caller("acme", "ana"), caller("acme", "bob")
    memories.remember(desk, ana, "cleo", RememberRequest(content="Ana keeps bees."))
    memories.remember(desk, bob, "cleo", RememberRequest(content="Bob keeps goats."))
    told = memories.export(desk, ana, "cleo", ExportRequest(format="ndjson")).data.decode()
    assert "bees" in told
    assert "goats" not in told
