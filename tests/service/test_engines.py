"""Engine instances through the service: who may see, declare, withdraw them and set keys."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from memoranda.engines.contract import (
    CredentialBody,
    GraphRequest,
    GraphSearchRequest,
    IngestRequest,
    InstanceDeclaration,
    Policy,
    PolicyBody,
    RecallRequest,
    RememberRequest,
)
from memoranda.errors import (
    CapabilityUnsupported,
    Conflict,
    EngineUnavailable,
    Forbidden,
    IsolationUnsatisfied,
    NotFound,
)
from memoranda.service import knowledge, memories
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.service.engines import (
    capabilities,
    declare,
    health,
    list_engines,
    remove,
    remove_credential,
    set_credential,
)
from memoranda.service.policies import put_policy

Made = Callable[..., Caller]


def mem0(name: str = "shared-mem0", **more: object) -> InstanceDeclaration:
    return InstanceDeclaration(id=name, provider="mem0", base_url=f"https://{name}.internal", **more)  # type: ignore[arg-type]


@pytest.mark.requirement("P-002", "P-003", "P-004", "P-007", "P-008", "P-009", "P-020", "P-051")
def test_what_builtin_can_do(desk: Desk, caller: Made, database: str) -> None:
    told = capabilities(desk, caller("acme", "bob"), "builtin").model_dump()
    assert told == {
        "schema_version": "1.0", "provider": "builtin", "engine_instance": "builtin",
        "capabilities": {
            "memory": (
                "remember", "recall", "search", "update", "forget", "list", "get", "purge", "get_health",
                "get_capabilities",
            ),
            "knowledge": (),
        },
        "isolation": "backend" if database else "logical", "session_memory": True,
    }  # fmt: skip


@pytest.mark.requirement("P-052")
def test_health_is_for_the_four_roles(desk: Desk, caller: Made) -> None:
    for user in ("ana", "bob", "sam", "ada"):
        assert health(desk, caller("acme", user), "builtin").status == "ok"
    for other in (caller("globex", "bob"), caller(None, "root"), caller("acme", "ana", "cleo")):
        with pytest.raises(Forbidden):
            health(desk, other, "builtin")


@pytest.mark.requirement("P-049", "P-053", "P-058")
def test_only_the_platform_declares_and_withdraws(desk: Desk, caller: Made) -> None:
    root, ana = caller(None, "root"), caller("acme", "ana")
    with pytest.raises(Forbidden):
        declare(desk, ana, mem0())
    declare(desk, root, mem0())
    declare(desk, root, mem0("globex-mem0", tenant_id="globex"))
    assert [one.id for one in list_engines(desk, ana).engines] == ["builtin", "shared-mem0"]
    assert [one.id for one in list_engines(desk, caller("globex", "bob")).engines] == [
        "builtin", "globex-mem0", "shared-mem0",
    ]  # fmt: skip
    with pytest.raises(NotFound):
        capabilities(desk, ana, "globex-mem0")
    with pytest.raises(Forbidden):
        remove(desk, ana, "shared-mem0")
    put_policy(desk, ana, "cleo", PolicyBody(engine="mem0", mem0_instance="shared-mem0"))
    with pytest.raises(Conflict):
        remove(desk, root, "shared-mem0")
    with pytest.raises(Conflict):
        remove(desk, root, "builtin")
    put_policy(desk, ana, "cleo", PolicyBody())
    remove(desk, root, "shared-mem0")
    assert [one.id for one in list_engines(desk, ana).engines] == ["builtin"]
    assert [entry.event.operation for entry in desk.audit.query("acme", operation="memory.engine.change")[0]] == [
        "memory.engine.change",
        "memory.engine.change",
    ]


@pytest.mark.requirement("P-059", "P-060", "P-061", "P-062", "S-048")
def test_a_tenants_key_lies_below_its_own_prefix_on_a_shared_instance(desk: Desk, caller: Made) -> None:
    root, ana = caller(None, "root"), caller("acme", "ana")
    declare(desk, root, mem0())
    declare(desk, root, mem0("acme-mem0", tenant_id="acme"))
    key = CredentialBody(credential_ref="openbao://secret/tenants/acme/mem0#key")
    for other in (caller("acme", "bob"), root, caller("acme", "ana", "cleo")):
        with pytest.raises(Forbidden):
            set_credential(desk, other, "shared-mem0", key)
    with pytest.raises(Forbidden, match="own"):
        foreign = CredentialBody(credential_ref="openbao://secret/tenants/globex/mem0#key")
        set_credential(desk, ana, "shared-mem0", foreign)
    with pytest.raises(Conflict):
        set_credential(desk, ana, "acme-mem0", key)
    with pytest.raises(ValidationError):
        CredentialBody(credential_ref="env://EAI_CRED_MEMORY_MEM0_API_KEY")
    set_credential(desk, ana, "shared-mem0", key)
    shown = {one.id: one for one in list_engines(desk, ana).engines}["shared-mem0"]
    assert shown.tenant_credential
    assert "openbao" not in shown.model_dump_json()
    with pytest.raises(Forbidden):
        remove_credential(desk, caller("acme", "bob"), "shared-mem0")
    remove_credential(desk, ana, "shared-mem0")
    assert not {one.id: one for one in list_engines(desk, ana).engines}["shared-mem0"].tenant_credential


@pytest.mark.requirement("P-043", "S-075")
def test_an_operation_is_judged_by_the_engine_of_the_policy(desk: Desk, caller: Made) -> None:
    ana = caller("acme", "ana")
    with pytest.raises(CapabilityUnsupported):
        knowledge.search_graph(desk, ana, "cleo", GraphSearchRequest(query="what?"))
    declare(desk, caller(None, "root"), mem0())
    put_policy(desk, ana, "cleo", PolicyBody(engine="mem0", mem0_instance="shared-mem0"))
    with pytest.raises(EngineUnavailable):
        memories.recall(desk, ana, "cleo", RecallRequest(query="what?"))
    (entry, *_) = desk.audit.query("acme", operation="recall")[0]
    assert (entry.event.outcome, entry.event.code) == ("failure", "memory_engine_unavailable")
    kept = memories.remember(
        desk, ana, "cleo", RememberRequest(content="Of this session.", scope="session", session_id="s-1")
    )
    assert kept.engine == "builtin"  # whatever the policy's engine is


@pytest.mark.requirement("P-043", "P-044", "S-062")
def test_what_is_not_announced_or_guaranteed_is_refused_before_an_engine_is_asked(desk: Desk, caller: Made) -> None:
    ana, root = caller("acme", "ana"), caller(None, "root")
    note, ingest = RememberRequest(content="A text."), IngestRequest(texts=("A text.",))
    with pytest.raises(CapabilityUnsupported):  # by builtin, whether or not the mode is active
        knowledge.build_graph(desk, ana, "cleo", GraphRequest(dataset_ids=("d",)))
    declare(desk, root, mem0())
    declare(desk, root, InstanceDeclaration(id="cognee", provider="cognee", base_url="https://cognee.internal"))

    put_policy(desk, ana, "cleo", PolicyBody(engine="mem0", mem0_instance="shared-mem0"))
    with pytest.raises(CapabilityUnsupported):
        knowledge.ingest(desk, ana, "cleo", ingest)
    with pytest.raises(EngineUnavailable):
        memories.remember(desk, ana, "cleo", note)

    put_policy(desk, ana, "cleo", PolicyBody(engine="cognee", cognee_instance="cognee"))
    for refused in (
        lambda: memories.remember(desk, ana, "cleo", note),
        lambda: memories.recall(desk, ana, "cleo", RecallRequest(query="what?")),
        lambda: memories.get(desk, ana, "cleo", "mem_00000000000000a1"),
    ):
        with pytest.raises(CapabilityUnsupported):
            refused()
    with pytest.raises(EngineUnavailable):
        knowledge.ingest(desk, ana, "cleo", ingest)
    with pytest.raises(Forbidden, match="knowledge_graph"):
        knowledge.build_graph(desk, ana, "cleo", GraphRequest(dataset_ids=("d",)))

    dedicated = Policy(required_isolation="dedicated_instance")
    put_policy(desk, ana, "cleo", PolicyBody(engine="mem0", mem0_instance="shared-mem0", policy=dedicated))
    with pytest.raises(IsolationUnsatisfied):
        memories.remember(desk, ana, "cleo", note)
    (entry, *_) = desk.audit.query("acme", operation="remember")[0]
    assert (entry.event.engine, entry.event.code) == ("shared-mem0", "memory_isolation_unsatisfied")
