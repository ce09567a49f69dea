"""From the context of an operation to places, and to the context that the operations below know."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from memoranda.context import Context
from memoranda.engines.contract import OperationContext, Place, Scope
from memoranda.errors import Forbidden
from memoranda.notes.belonging import belongs_to
from memoranda.values import replace

TENANT_WIDE: frozenset[str] = frozenset(("team", "organization", "global"))


def places_of(where: OperationContext, scopes: Iterable[str] = ()) -> dict[str, Place]:
    """What the context may read, by its place in the catalog (`notes.belonging`); only these scopes, if any."""
    wanted = frozenset(scopes)
    found = {}
    for place in where.reads:
        if not wanted or place.scope in wanted:
            owner = _owner(where, place)
            if owner is not None:
                found[belongs_to(place.scope, owner)] = place
    return found


def written_place(where: OperationContext) -> tuple[str, Place]:
    """The place that the context writes to. Forbidden when there is none, or when it is not the caller's own."""
    place = where.writes
    owner = None if place is None else _owner(where, place)
    if place is None or owner is None or _whose(where, place.scope) != place.owner:
        raise Forbidden("Nothing may be written there.", why="The place does not follow from who asks.")
    return belongs_to(place.scope, owner), place


def home_of(scope: str) -> str:
    """Which Home holds the notes of a scope: `project` or `tenant`."""
    return "tenant" if scope in TENANT_WIDE else "project"


def circumstances(context: Context, where: OperationContext) -> Context:
    """The context of the operations below: whoever asks, with the machine's clock, random source and deadline."""
    team = where.writes.owner if where.writes is not None and where.writes.scope == "team" else where.team
    session = None if where.session is None else session_name(where, where.session)
    return replace(
        context, user=where.user, agent=where.agent, session=session, tenant=where.tenant,
        organization=where.organization, project=where.project, team=team,
    )  # fmt: skip


def session_name(where: OperationContext, session: str) -> str:
    """A session as the Homes know it: its id, as far as it is plain, and a digest of it with its user and agent.

    So each user has names of their own with each agent: nobody joins another's session by its name, and nobody takes
    a name that another one wants.
    """
    told = "\n".join((where.user, where.agent, session)).encode("utf-8", "surrogatepass")
    plain = re.sub(r"[^A-Za-z0-9_:-]+", "-", session).strip("-_:")[:64]
    return f"{plain or 'session'}.{hashlib.sha256(told).hexdigest()[:24]}"


def _owner(where: OperationContext, place: Place) -> Mapping[str, str] | None:
    """The owner fields of the notes of a place; None for a place that no note of these Homes lies in."""
    scope, owner = place.scope, place.owner
    if scope == "session":  # it is bound to who uses it: another's session of that name is another place
        return {"user": where.user, "agent": where.agent, "session": session_name(where, owner)}
    if scope == "project":
        return {"project": owner} if owner == where.project else None
    if scope == "organization":
        return {} if owner and owner == where.organization else None
    if scope == "global":
        return {}
    return {_FIELDS[scope]: owner} if owner else None


_FIELDS: Mapping[Scope, str] = {"user": "user", "agent": "agent", "shared_agents": "agent", "team": "team"}


def _whose(where: OperationContext, scope: Scope) -> str | None:
    """Whose the notes are that the context itself may write in a scope; of a team, whichever it is told."""
    whose: Mapping[Scope, str | None] = {
        "session": where.session, "user": where.user, "agent": where.agent, "shared_agents": where.agent,
        "project": where.project, "organization": where.organization, "global": "",
        "team": where.writes.owner if where.writes is not None else None,
    }  # fmt: skip
    return whose[scope]
