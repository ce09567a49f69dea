"""Policies through the service: who may see and set them, what a version is, what the audit is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memoranda.engines.contract import Policy, PolicyBody
from memoranda.errors import Forbidden, InvalidInput, NotFound, PreconditionFailed
from memoranda.governance.policies import Floor
from memoranda.governance.relations import Tuple
from memoranda.service import admin
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.service.policies import get_policy, policy_versions, put_policy, restore_policy

Made = Callable[..., Caller]


def body(**fields: object) -> PolicyBody:
    return PolicyBody(policy=Policy(**fields))  # type: ignore[arg-type]


@pytest.mark.requirement("P-079")
def test_a_new_agent_has_every_default(desk: Desk, caller: Made) -> None:
    policy = get_policy(desk, caller("acme", "ana"), "cleo")
    assert (policy.version, policy.engine) == (0, "builtin")
    assert policy.policy.model_dump() == {
        "modes": ("session", "long_term", "agent"), "write_scopes": ("session", "user", "agent"),
        "read_scopes": ("session", "user", "agent"), "default_scope": "user",
        "allowed_kinds": ("episodic", "semantic", "procedural", "preference", "fact"),
        "max_classification": "confidential", "allow_personal_data": True, "retention_days": None,
        "legal_hold": False, "infer": False, "shared_with": (), "teams": (), "global_access": False,
        "required_isolation": "logical", "recall_top_k": 8,
    }  # fmt: skip


@pytest.mark.requirement("P-072", "P-073", "P-074", "P-075")
def test_viewers_see_and_editors_set(desk: Desk, caller: Made) -> None:
    ana, bob, ada = caller("acme", "ana"), caller("acme", "bob"), caller("acme", "ada")
    agent = caller("acme", "ana", "cleo")
    for stranger in (bob, agent):
        for asked in (
            lambda who: get_policy(desk, who, "cleo"),
            lambda who: policy_versions(desk, who, "cleo"),
            lambda who: put_policy(desk, who, "cleo", body()),
            lambda who: restore_policy(desk, who, "cleo", 0),
        ):
            with pytest.raises(Forbidden):
                asked(stranger)
    desk.relations.write(add=[Tuple("user:acme/bob", "viewer", "agent:acme/cleo")])
    for viewer in (bob, ada):  # an auditor may look at every policy of the tenant
        assert get_policy(desk, viewer, "cleo").version == 0
        with pytest.raises(Forbidden):
            put_policy(desk, viewer, "cleo", body())
        with pytest.raises(Forbidden):
            restore_policy(desk, viewer, "cleo", 0)
    assert put_policy(desk, ana, "cleo", body(recall_top_k=3)).version == 1
    assert put_policy(desk, ana, "cleo", body(recall_top_k=4), if_match="v1").version == 2
    with pytest.raises(PreconditionFailed):
        put_policy(desk, ana, "cleo", body(), if_match="v1")
    back = restore_policy(desk, ana, "cleo", 1)
    assert (back.version, back.restored_from, back.policy.recall_top_k) == (3, 1, 3)
    assert [version.version for version in policy_versions(desk, bob, "cleo").versions] == [3, 2, 1]
    with pytest.raises(NotFound):
        restore_policy(desk, ana, "cleo", 9)
    with pytest.raises(NotFound):
        get_policy(desk, caller("globex", "zoe"), "max")


@pytest.mark.requirement("P-097")
def test_a_sharing_stands_in_the_audit(desk: Desk, caller: Made) -> None:
    ana = caller("acme", "ana")
    put_policy(desk, ana, "cleo", body(recall_top_k=3))
    assert desk.audit.query("acme", operation="memory.share")[0] == []
    put_policy(desk, ana, "cleo", body(shared_with=("max",)))
    (entry,) = desk.audit.query("acme", operation="memory.share")[0]
    assert (entry.event.user, entry.event.agent, entry.event.outcome) == ("ana", "cleo", "success")


def test_the_floor_bounds_what_an_editor_may_set(desk: Desk, caller: Made) -> None:
    ana, sam = caller("acme", "ana"), caller("acme", "sam")
    with pytest.raises(Forbidden):
        admin.set_floor(desk, caller("acme", "bob"), Floor(max_classification="public"))
    admin.set_floor(desk, sam, Floor(max_classification="internal", allow_personal_data=False, retention_days=30))
    policy = get_policy(desk, ana, "cleo").policy
    assert (policy.max_classification, policy.allow_personal_data, policy.retention_days) == ("internal", False, 30)
    with pytest.raises(InvalidInput, match=r"policy\.max_classification.*floor"):
        put_policy(desk, ana, "cleo", body(max_classification="confidential"))
    assert get_policy(desk, caller("globex", "zoe"), "cleo").policy.max_classification == "confidential"


def test_an_engine_that_the_tenant_does_not_have_is_named(desk: Desk, caller: Made) -> None:
    ana = caller("acme", "ana")
    with pytest.raises(InvalidInput, match="mem0_instance"):
        put_policy(desk, ana, "cleo", PolicyBody(engine="mem0"))
    with pytest.raises(InvalidInput, match="cognee_instance"):
        put_policy(desk, ana, "cleo", PolicyBody(engine="cognee", cognee_instance="nowhere"))
