"""The policy of an agent's memory: read with the relation `viewer`, changed with `editor`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from memoranda.engines.contract import PolicyBody, PolicyVersion
from memoranda.faces.http.calls import Call, taking
from memoranda.faces.http.parts import AgentId, IfMatch, matching, tagged
from memoranda.service import policies
from memoranda.service.answers import PolicyVersions, RestoreRequest

router = APIRouter(prefix="/v1/memory/agents/{agent_id}/policy", tags=["policy"])
Bare = Annotated[Call[Any], Depends(taking())]


@router.get("", summary="The policy in force")
def get_policy(call: Bare, response: Response, agent_id: AgentId) -> PolicyVersion:
    """The policy in force: as it was set, within what the tenant's floor leaves."""
    caller = call.caller
    call.nothing()
    return _tagged(response, policies.get_policy(call.desk, caller, agent_id))


@router.put("", summary="Change the policy")
def put_policy(
    call: Annotated[Call[PolicyBody], Depends(taking(PolicyBody))],
    response: Response,
    agent_id: AgentId,
    if_match: IfMatch = None,
) -> PolicyVersion:
    """A new version. What is left out takes its default."""
    made = policies.put_policy(call.desk, call.caller, agent_id, call.body, if_match=matching(if_match))
    return _tagged(response, made)


@router.get("/versions", summary="Earlier versions")
def policy_versions(call: Bare, agent_id: AgentId) -> PolicyVersions:
    """The earlier versions, newest first."""
    caller = call.caller
    call.nothing()
    versions: PolicyVersions = policies.policy_versions(call.desk, caller, agent_id)
    return versions


@router.post("/restore", summary="Restore a version")
def restore_policy(
    call: Annotated[Call[RestoreRequest], Depends(taking(RestoreRequest))],
    response: Response,
    agent_id: AgentId,
    if_match: IfMatch = None,
) -> PolicyVersion:
    """A new version that says what an earlier one said."""
    made = policies.restore_policy(call.desk, call.caller, agent_id, call.body.version, if_match=matching(if_match))
    return _tagged(response, made)


def _tagged(response: Response, version: PolicyVersion) -> PolicyVersion:
    tagged(response, policies.etag(version))
    return version
