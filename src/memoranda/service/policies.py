"""An agent's policy: what is in force, new versions, earlier ones, and going back to one."""

from __future__ import annotations

import re

from memoranda.engines.contract import PolicyBody, PolicyVersion
from memoranda.errors import PreconditionFailed
from memoranda.governance.policies import audited
from memoranda.service.answers import PolicyVersions
from memoranda.service.caller import Caller, actor
from memoranda.service.case import Case
from memoranda.service.desk import Desk
from memoranda.service.guards import POLICY_GUARDS
from memoranda.service.pipeline import perform


def etag(current: PolicyVersion) -> str:
    """What names the state of a policy in `ETag` and `If-Match`."""
    return f"v{current.version}"


def get_policy(desk: Desk, caller: Caller, agent_id: str) -> PolicyVersion:
    """The policy in force: as it was set, within what the tenant's floor leaves."""
    case = Case(desk, caller, "get_policy", agent_id, relation="viewer")
    return perform(case, lambda case: desk.policies.in_force(case.tenant, case.agent.id), guards=POLICY_GUARDS)


def policy_versions(desk: Desk, caller: Caller, agent_id: str, *, before: int | None = None) -> PolicyVersions:
    """The versions as they were written, newest first; `before` one, for the next page."""
    case = Case(desk, caller, "policy_versions", agent_id, relation="viewer")

    def read(case: Case) -> PolicyVersions:
        return PolicyVersions(versions=tuple(desk.policies.versions(case.tenant, case.agent.id, before=before)))

    return perform(case, read, guards=POLICY_GUARDS)


def put_policy(
    desk: Desk, caller: Caller, agent_id: str, body: PolicyBody, *, if_match: str | None = None
) -> PolicyVersion:
    """A new version. A change of engine and a sharing stand in the audit under names of their own.

    Raises:
        InvalidInput: a field that cannot be set so, by name; the tenant's floor is one of the reasons.
        PreconditionFailed: `if_match` names another version than the newest one.
    """
    case = Case(desk, caller, "put_policy", agent_id, relation="editor")

    def put(case: Case) -> PolicyVersion:
        before = desk.policies.current(case.tenant, case.agent.id)
        by, expected = actor(caller.identity), _version(if_match)
        made = desk.policies.put(caller.context, case.tenant, case.agent.id, body, by, expected=expected)
        _tell(case, before, made)
        return made

    return perform(case, put, guards=POLICY_GUARDS)


def restore_policy(
    desk: Desk, caller: Caller, agent_id: str, version: int, *, if_match: str | None = None
) -> PolicyVersion:
    """A new version that says what an earlier one said; NotFound when there is no such version."""
    case = Case(desk, caller, "restore_policy", agent_id, relation="editor")

    def restore(case: Case) -> PolicyVersion:
        before = desk.policies.current(case.tenant, case.agent.id)
        by, expected = actor(caller.identity), _version(if_match)
        made = desk.policies.restore(caller.context, case.tenant, case.agent.id, version, by, expected=expected)
        _tell(case, before, made)
        return made

    return perform(case, restore, guards=POLICY_GUARDS)


def _version(if_match: str | None) -> int | None:
    if if_match is None:
        return None
    if not re.fullmatch(r"v[0-9]{1,9}", if_match):
        raise PreconditionFailed(
            "The policy is not at the state that If-Match names.", remedy="Read it again, and send its ETag."
        )
    return int(if_match[1:])


def _tell(case: Case, before: PolicyVersion, made: PolicyVersion) -> None:
    for operation in audited(before, made):
        case.desk.audit.note(case.caller.context, case.event(operation=operation, outcome="success"))
