"""What every operation on an agent's memory passes, in this order, before an engine is called.

A guard is a function of the case. It objects by raising, and leaves what it has established for those after it. The
first that objects ends the call; the audit learns of it, and nothing was read or written.
"""

from __future__ import annotations

from collections.abc import Callable

from memoranda.engines.contract import CLASSIFICATION_ORDER, ISOLATIONS, InstanceCapabilities, OperationContext, Policy
from memoranda.errors import (
    CapabilityUnsupported,
    ClassificationRefused,
    Forbidden,
    Frozen,
    IsolationUnsatisfied,
    PersonalDataRefused,
)
from memoranda.governance.decisions import Package
from memoranda.governance.instances import BUILTIN
from memoranda.governance.relations import agent_name, tuples_of_roles
from memoranda.operations.admission import refuse_secrets
from memoranda.service.caller import actor
from memoranda.service.case import WRITES, Case
from memoranda.service.instances import announced
from memoranda.service.places import where_of
from memoranda.trust.personal import find_personal

Guard = Callable[[Case], None]
_DECIDED_AS = {"ingest_knowledge": "ingest", "list_datasets": "list"}
_ANNOUNCED_AS = {
    "export": "list",
    "history": "get",
    "review": "update",
    "taint": "remember",
    "list_datasets": "search_graph",
}
_GRAPH = ("build_graph", "get_relations")


def of_a_tenant(case: Case) -> None:
    """Memory belongs to tenants: who belongs to none, a platform administrator for one, has none to read."""
    if case.caller.identity.tenant is None:
        raise Forbidden(
            "This caller belongs to no tenant, and memory belongs to tenants.",
            remedy="Use a credential of the tenant whose memory is meant.",
        )


def a_person(case: Case) -> None:
    """Reviews are for people: no agent's credential passes, whatever relations it holds."""
    if case.people_only and case.caller.identity.kind != "user":
        raise Forbidden("Only a person may do this.", remedy="Have a person do it, with a credential of their own.")


def an_officer(case: Case) -> None:
    """Holds are for the tenant's security officers."""
    if "security_officer" not in case.caller.identity.roles:
        raise Forbidden("Only a security officer may do this.", remedy="Ask the security officer of the tenant.")


def known(case: Case) -> None:
    """The agent stands in the registry of the caller's own tenant; another tenant's is not found, like none at all."""
    case.known_agent = case.desk.registry.agent(case.tenant, case.agent_id)


def related(case: Case) -> None:
    """The caller is the agent itself, or holds the relation that the operation asks for."""
    identity = case.caller.identity
    itself = identity.kind == "agent" and identity.agent == case.agent.id
    if itself and case.relation == "can_invoke":
        return
    target = agent_name(case.tenant, case.agent.id)
    held = tuples_of_roles(case.tenant, identity.user, identity.roles) if identity.kind == "user" else ()
    if not case.desk.relations.check(actor(identity), case.relation, target, held):
        raise Forbidden(
            f"The caller holds no relation `{case.relation}` on this agent.",
            remedy="Ask an owner of the agent for it.",
        )


def not_frozen(case: Case) -> None:
    """A security officer has not stopped the writes of this agent or tenant."""
    if case.writes and case.operation != "taint" and case.agent.frozen:  # a taint only ever takes away
        raise Frozen(
            "A security officer has stopped all writes here.",
            remedy="Nothing is lost: reading goes on. Ask the security officer of the tenant.",
        )


def of_no_session(case: Case) -> None:
    """Knowledge belongs to no session: what does stays in builtin, which keeps no knowledge."""
    if case.scope == "session" and case.operation in ("ingest_knowledge", "list_datasets"):
        raise CapabilityUnsupported(
            "Knowledge belongs to no session.",
            why="The memory of a session stays in builtin, and never goes to Mem0 or Cognee.",
            remedy="Use another scope.",
        )


def within_policy(case: Case) -> None:
    """Modes, scopes, kinds and classification are those that the policy in force permits; the context is derived."""
    case.known_policy = current = case.desk.policies.in_force(case.tenant, case.agent.id)
    policy = current.policy
    case.known_where = where_of(
        case.desk, case.caller, case.agent, current, writes=case.operation in ("remember", "purge", "ingest_knowledge"),
        scope=case.scope, scopes=case.scopes, team=case.team, session=case.session,
    )  # fmt: skip
    refuse_unkept(policy, case.kind, case.classification)
    if case.labels.get("legal_hold") and not policy.legal_hold and case.caller.identity.kind != "user":
        raise Forbidden(
            "An agent holds nothing by itself.",
            why="A memory under legal hold cannot be forgotten, and the agent's policy has `legal_hold` false.",
            remedy="Leave `legal_hold` out; a person can hold the memory, or an editor everything of the agent.",
        )


def unplaced(case: Case) -> None:
    """The derived context of what concerns no place of the caller's, and no engine but builtin."""
    desk, agent = case.desk, case.agent
    case.known_policy = desk.policies.in_force(case.tenant, agent.id)
    case.known_where = OperationContext(
        tenant=agent.tenant, organization=agent.organization, project=agent.project, user=case.caller.identity.user,
        agent=agent.id, session=case.session, scope=None, team=None, reads=(), writes=None,
        request_id=case.caller.request_id,
    )  # fmt: skip
    case.known_instance = announced(desk, case.tenant, BUILTIN)


def refuse_unkept(policy: Policy, kind: str | None, classification: str | None) -> None:
    """Forbidden or ClassificationRefused for what the policy keeps nothing of; None for what is not known yet."""
    if kind is not None and kind not in policy.allowed_kinds:
        raise Forbidden(
            f"Memories of the kind {kind} are not kept by this agent.",
            why=f"Its policy names {', '.join(policy.allowed_kinds) or 'none'}.",
            remedy="Use another kind, or ask an editor of the agent.",
        )
    highest = policy.max_classification
    if classification is not None and _rank(classification) > _rank(highest):
        raise ClassificationRefused(
            f"What is {classification} is not kept by this agent.",
            why=f"Its policy takes nothing above {highest}.",
            remedy="Keep it elsewhere, or ask an editor of the agent.",
        )


def _rank(classification: str) -> int:
    return CLASSIFICATION_ORDER.index(classification)


def capable(case: Case) -> None:
    """The engine of the agent's policy announces the operation. The memory of sessions is always builtin's."""
    desk, current = case.desk, case.policy
    asked = _ANNOUNCED_AS.get(case.operation, case.operation)
    sessions = case.operation == "taint"  # they are builtin's, whichever engine keeps the memories
    instance = BUILTIN if sessions else desk.instance_for(current, asked, case.where)
    case.known_instance = told = announced(desk, case.tenant, instance)
    if asked not in told.capabilities.memory and asked not in told.capabilities.knowledge:
        raise CapabilityUnsupported(
            f"The engine of this agent does not announce {asked}.",
            why=f"Its policy chooses {current.engine}.",
            remedy="Use what `GET /v1/memory/engines/{engine_id}/capabilities` lists, or choose another engine.",
        )
    if current.policy.infer and case.operation == "remember" and current.engine == "builtin":
        raise CapabilityUnsupported(
            "builtin extracts no facts: it has no language model.",
            why="The agent's policy has `infer` true.",
            remedy="Set `infer` to false, or choose an engine with a language model.",
        )
    if asked in _GRAPH and "knowledge_graph" not in current.policy.modes:
        raise Forbidden(
            "The mode knowledge_graph is not active in the agent's policy.",
            remedy="Ask an editor of the agent to activate it.",
        )


def isolated(case: Case) -> None:
    """Every instance that is touched guarantees what the policy requires; session memory, which builtin keeps for
    others, is exempt."""
    if case.instance.provider == "builtin" and case.policy.engine != "builtin":
        return
    asked = _ANNOUNCED_AS.get(case.operation, case.operation)
    for instance in case.desk.instances_for(case.policy, asked, case.where):
        same = instance == case.instance.engine_instance
        _refuse_less(case, case.instance if same else announced(case.desk, case.tenant, instance))


def _refuse_less(case: Case, told: InstanceCapabilities) -> None:
    asked = case.policy.policy.required_isolation
    if ISOLATIONS.index(told.isolation) < ISOLATIONS.index(asked):
        raise IsolationUnsatisfied(
            f"The policy requires {asked} and the instance guarantees {told.isolation}.",
            why="A dedicated instance installed by the Navin Manager is needed."
            if asked == "dedicated_instance"
            else "It separates tenants less than the policy requires.",
            remedy="A dedicated instance installed by the Navin Manager is needed; or an editor lowers "
            "`required_isolation`.",
        )


def reached(case: Case) -> None:
    """There is an engine for the instance here; what it does not announce or guarantee was refused before."""
    asked = _ANNOUNCED_AS.get(case.operation, case.operation)
    case.known_engine = case.desk.engine(case.policy, case.instance.engine_instance, asked)


def no_secrets(case: Case) -> None:
    """Nothing that is kept holds a password, a token or a key."""
    if case.fields:
        refuse_secrets(case.fields)


def no_personal_data(case: Case) -> None:
    """No personal data where the policy has `allow_personal_data` false; where it may be kept, whether there is any."""
    allowed = case.policy.policy.allow_personal_data
    if allowed and case.desk.decisions.shipped:
        return  # nobody asks, and to look for it is the dearest of all guards
    for name, text in case.fields:
        for found in find_personal(text):
            if allowed:
                case.personal_data = True
                return
            raise PersonalDataRefused(
                f"The {name} holds what looks like personal data, and the agent's policy is to keep none.",
                why=f"It is taken for {found.kind.replace('_', ' ')} at line {found.line}, column {found.column}.",
                remedy="Take it out.",
            )


def decided(case: Case) -> None:
    """The decision `memory.write` or `memory.search` allows it; no answer is no."""
    package: Package = "memory.write" if case.operation in WRITES else "memory.search"
    case.decision = decision = case.desk.decisions.decide(package, _input(case))
    if not decision.allow:
        raise Forbidden(
            f"The decision {package} does not allow this.",
            why=" ".join(decision.reasons) or "No rule allows it.",
            remedy="Ask the security officer of the tenant.",
        )


def _input(case: Case) -> dict[str, object]:
    identity, where, agent = case.caller.identity, case.where, case.agent
    place = where.writes
    return {
        "operation": _DECIDED_AS.get(case.operation, case.operation), "tenant": agent.tenant,
        "caller_tenant": identity.tenant, "organization": agent.organization,
        "project": agent.project, "user": where.user, "agent": agent.id, "session": where.session,
        "scope": place.scope if place else where.scope, "team": where.team, "owner": place.owner if place else None,
        "kind": case.kind, "classification": case.classification, "roles": sorted(identity.roles),
        "actor_kind": identity.kind, "scopes": list(case.scopes),
        "engine": case.instance.provider, "isolation": case.instance.isolation,
        "personal_data": case.personal_data, "taint": _taint(case),
        "policy": case.policy.policy.model_dump(mode="json"), "frozen": agent.frozen and not case.replays,
        "size": sum(len(text) for _, text in case.fields), "request_id": case.caller.request_id, **case.labels,
    }  # fmt: skip


def _taint(case: Case) -> list[str]:
    """What the caller's session has met, and what a memory that would be kept says of itself; where anybody asks."""
    if case.desk.decisions.shipped:
        return []
    met = case.desk.builtin.met(case.context, case.where)
    return sorted({*met, *(("external",) if case.labels.get("origin") == "external" else ())})


SERVICE_GUARDS: tuple[Guard, ...] = (
    of_a_tenant, a_person, known, related, not_frozen, of_no_session, within_policy, capable, isolated, reached,
    no_secrets, no_personal_data, decided,
)  # fmt: skip
# A hold lies on whoever's memory, and a session on no place: both by people, and by builtin.
HOLD_GUARDS: tuple[Guard, ...] = (of_a_tenant, a_person, an_officer, known, related, unplaced, no_secrets, decided)
SESSION_GUARDS: tuple[Guard, ...] = (
    of_a_tenant, a_person, known, related, not_frozen, unplaced, decided,
)  # fmt: skip
# Reading and setting an agent's policy touches no engine and no memory.
POLICY_GUARDS: tuple[Guard, ...] = (of_a_tenant, a_person, known, related)
