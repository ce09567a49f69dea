"""Who calls: established once at the door, from a credential. Nothing that a caller sends replaces any of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memoranda.context import Context
from memoranda.errors import Forbidden, MemorandaError, Unauthenticated
from memoranda.governance.audit import AuditEvent, Outcome
from memoranda.governance.identity import PREFIX, Identity
from memoranda.governance.relations import agent_name, user_name
from memoranda.service.desk import Desk


@dataclass(frozen=True, slots=True)
class Caller:
    """One authenticated request: the machine's `context` (clock, random source, deadline) and whose it is."""

    context: Context
    identity: Identity
    request_id: str = ""


def authenticate(desk: Desk, context: Context, bearer: str | None, request_id: str = "") -> Caller:
    """The caller whose credential this is.

    Raises:
        Unauthenticated: there is none, nobody is known by it, it has expired, or it was revoked.
        ComponentUnavailable: what would know does not answer.
    """
    try:
        if not bearer:
            raise Unauthenticated(
                "No credential came with this request.",
                remedy="Send `Authorization: Bearer …` with a token that an administrator issued.",
            )
        if bearer.startswith(PREFIX) or not desk.authenticators:
            return Caller(context, desk.tokens.authenticate(context, bearer), request_id)
        return Caller(context, _by_others(desk, context, bearer), request_id)
    except MemorandaError as error:
        outcome: Outcome = "deny" if isinstance(error, Unauthenticated) else "failure"
        desk.audit.note(context, AuditEvent("authenticate", outcome=outcome, code=error.code, request_id=request_id))
        raise


def _by_others(desk: Desk, context: Context, bearer: str) -> Identity:
    refusal: Unauthenticated | None = None
    for authenticator in desk.authenticators:
        try:
            return authenticator.authenticate(context, bearer)
        except Unauthenticated as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def actor(identity: Identity) -> str:
    """How relations name the caller: `user:acme/ana`, `agent:acme/cleo`."""
    tenant = identity.tenant or "-"
    if identity.kind == "agent" and identity.agent is not None:
        return agent_name(tenant, identity.agent)
    return user_name(tenant, identity.user)


def credential(identity: Identity) -> str:
    """By which credential somebody acts, for the audit: `user:tok_…`."""
    return f"{identity.kind}:{identity.token_id}" if identity.token_id else identity.kind


def refuse_claims(desk: Desk, caller: Caller, claims: Mapping[str, str]) -> None:
    """Refuses, on record, a tenant, user, agent, team or session that was sent and is not the caller's.

    Args:
        claims: what was sent, by the word that it is about: tenant, organization, project, user, agent, team, session.

    Raises:
        Forbidden: one of them is not the caller's own; nothing else was looked at.
    """
    identity = caller.identity
    own = {
        "tenant": identity.tenant, "organization": identity.organization, "user": identity.user,
        "agent": identity.agent if identity.kind == "agent" else None,
    }  # fmt: skip
    for word, claimed in claims.items():
        if claimed != own.get(word) or own.get(word) is None:
            desk.audit.note(
                caller.context,
                AuditEvent(
                    "claim", tenant=identity.tenant, user=identity.user, agent=identity.agent,
                    actor=credential(identity), outcome="deny", code=Forbidden.code, request_id=caller.request_id,
                ),
            )  # fmt: skip
            raise Forbidden(
                f"The {word} of a request is not for the caller to say.",
                why="What was sent is not what the credential stands for.",
                remedy=f"Leave the {word} out: it is derived from the credential.",
            )
