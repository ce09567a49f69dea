"""`admin …`: tenants, users, teams, agents, tokens and relations, at the machine of the service.

Whoever may read and write the service's folder administers it; what is done stands in the audit as the operator's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from memoranda.faces.cli.frame import Command, Frame, Parser, usage_error, words
from memoranda.faces.cli.service import opened, where_options

if TYPE_CHECKING:
    from memoranda.service.caller import Caller
    from memoranda.service.desk import Desk

Act = Callable[["Desk", "Caller", argparse.Namespace], Sequence[Mapping[str, Any]]]


def _options(*actions: str, tenant: bool = True, more: Callable[[Parser], None] | None = None) -> Any:
    def options(parser: Parser) -> None:
        parser.intermixed = True
        parser.add_argument("action", metavar="ACTION", choices=actions, help=", ".join(actions))
        parser.add_argument("id", metavar="ID", nargs="?", help="which one; `list` needs none")
        if tenant:
            parser.add_argument("--tenant", metavar="ID", help="the tenant; without it, the platform itself")
        if more:
            more(parser)
        where_options(parser)

    return options


def _run(acts: Mapping[str, Act], *, without: tuple[str, ...] = ("list",)) -> Any:
    """Does the action and shows what there is then, a line each."""

    def run(frame: Frame, args: argparse.Namespace) -> int:
        if args.id is None and args.action not in without:
            raise usage_error(f"`{args.action}` needs an ID.", "Name which one.")
        from memoranda.faces.http.operator import operator

        with opened(args) as desk:
            rows = acts[args.action](desk, operator(getattr(args, "tenant", None)), args)
        shown = [{name: _plain(value) for name, value in row.items()} for row in rows]
        frame.answer({"rows": shown}, ("  ".join(_text(row)) for row in shown))
        return 0

    return run


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset | set | tuple) else value


def _text(row: Mapping[str, Any]) -> Iterable[str]:
    for name, value in row.items():
        if value not in (None, "", [], False):
            said = ",".join(value) if isinstance(value, list) else str(value)
            yield said if name in ("id", "secret") else f"{name}={said}"


def _fields(*names: str) -> Callable[[Any], dict[str, Any]]:
    return lambda one: {name: getattr(one, name) for name in names}


def _all(name: str, fields: Callable[[Any], dict[str, Any]]) -> Act:
    """Everything of a kind."""

    def listed(desk: Desk, caller: Caller, _args: argparse.Namespace) -> Sequence[Mapping[str, Any]]:
        from memoranda.service import admin

        return [fields(one) for one in getattr(admin, name)(desk, caller)]

    return listed


def _done(name: str, fields: Callable[[Any], dict[str, Any]] | None, *given: str) -> Act:
    """One operation of `service.admin`, with the id and these options."""

    def act(desk: Desk, caller: Caller, args: argparse.Namespace) -> Sequence[Mapping[str, Any]]:
        from memoranda.service import admin

        told = {option: getattr(args, option) for option in given if getattr(args, option) is not None}
        told = {option: tuple(words(value)) if isinstance(value, list) else value for option, value in told.items()}
        made = getattr(admin, name)(desk, caller, args.id, **told)
        return [fields(made)] if fields else []

    return act


_TENANT = _fields("id", "name", "organization", "frozen")
_USER = _fields("id", "roles")
_TEAM = _fields("id", "members")
_AGENT = _fields("id", "project", "owner", "name", "frozen")
_TOKEN = _fields("id", "kind", "user", "agent", "roles", "name", "created_at", "expires_at", "revoked_at", "used_at")


def _tenant_options(parser: Parser) -> None:
    parser.add_argument("--name", metavar="TEXT", help="what it is called")
    parser.add_argument("--organization", metavar="ID", help="the organization that it belongs to")


def _user_options(parser: Parser) -> None:
    parser.add_argument("--role", dest="roles", metavar="ROLE", action="append", help="a role from now on; may repeat")


def _team_options(parser: Parser) -> None:
    parser.add_argument("--member", dest="members", metavar="USER", action="append", help="who is in it; may repeat")


def _agent_options(parser: Parser) -> None:
    parser.add_argument("--project", metavar="ID", help="its project (needed to add one)")
    parser.add_argument("--owner", metavar="USER", help="who owns it (needed to add one)")
    parser.add_argument("--name", metavar="TEXT", help="what it is called")


def _token_options(parser: Parser) -> None:
    parser.add_argument("--user", metavar="USER", help="for whom it is, or for whom its agent acts")
    parser.add_argument("--agent", metavar="ID", help="the agent that has it")
    parser.add_argument("--role", dest="roles", metavar="ROLE", action="append", help="only these roles; may repeat")
    parser.add_argument("--days", metavar="N", type=int, help="how long it holds; without it, until it is revoked")
    parser.add_argument("--name", metavar="TEXT", help="what it is for")


def _relation_options(parser: Parser) -> None:
    parser.add_argument("--user", metavar="WHO", help="user:acme/ana, team:acme/sales#member or agent:acme/cleo")
    parser.add_argument("--relation", metavar="NAME", help="viewer, editor or can_invoke")


def _add_agent(desk: Desk, caller: Caller, args: argparse.Namespace) -> Sequence[Mapping[str, Any]]:
    if not args.project or not args.owner:
        raise usage_error("An agent needs --project and --owner.", "Name both.")
    return _done("add_agent", _AGENT, "project", "owner", "name")(desk, caller, args)


def _add_token(desk: Desk, caller: Caller, args: argparse.Namespace) -> Sequence[Mapping[str, Any]]:
    from memoranda.service import admin

    if not args.user:
        raise usage_error("A token needs --user.", "Name for whom it is.")
    expires = None if args.days is None else caller.context.now() + timedelta(days=args.days)
    roles = None if args.roles is None else tuple(words(args.roles))
    token_id, secret = admin.issue_token(desk, caller, args.user, args.agent, roles, expires, args.name or "")
    return [{"id": token_id, "secret": secret}]


def _relate(*, add: bool) -> Act:
    def act(desk: Desk, caller: Caller, args: argparse.Namespace) -> Sequence[Mapping[str, Any]]:
        from memoranda.governance.relations import Tuple, agent_name
        from memoranda.service import admin

        if not args.user or not args.relation or not args.tenant:
            raise usage_error("A relation needs --tenant, --user and --relation.", "Name all three.")
        one = [Tuple(args.user, args.relation, agent_name(args.tenant, args.id))]
        admin.write_relations(desk, caller, args.id, one if add else [], [] if add else one)
        return _related(desk, caller, args)

    return act


def _related(desk: Desk, caller: Caller, args: argparse.Namespace) -> Sequence[Mapping[str, Any]]:
    from memoranda.service import admin

    return [{"id": one.user, "relation": one.relation} for one in admin.relations(desk, caller, args.id)]


def _holds(desk: Desk, caller: Caller, args: argparse.Namespace) -> Sequence[Mapping[str, Any]]:
    from memoranda.service import standing

    if not args.tenant:
        raise usage_error("What is held is a tenant's.", "Name it with --tenant.")

    found: list[Mapping[str, Any]] = []
    cursor: str | None = None
    while True:
        page = standing.holds(desk, caller, cursor=cursor, limit=200)
        found += [one.model_dump() for one in page.holds]
        cursor = page.next_cursor
        if cursor is None:
            return found


def _frozen(name: str) -> Act:
    """Stops or lets go an agent, or the tenant that is named as the ID."""

    def act(desk: Desk, caller: Caller, args: argparse.Namespace) -> Sequence[Mapping[str, Any]]:
        from memoranda.faces.http.operator import operator
        from memoranda.service import admin

        if hasattr(args, "tenant"):
            getattr(admin, name)(desk, caller, args.id)
        else:
            getattr(admin, name)(desk, operator(args.id))
        return []

    return act


_FREEZE: dict[str, Act] = {"freeze": _frozen("freeze"), "thaw": _frozen("thaw")}
COMMANDS = {
    "admin tenant": Command(
        "Adds, lists, removes, freezes (no agent of it writes any more) and thaws tenants.",
        _options("add", "list", "remove", "freeze", "thaw", tenant=False, more=_tenant_options),
        _run({
            "add": _done("add_tenant", _TENANT, "name", "organization"), "list": _all("tenants", _TENANT),
            "remove": _done("remove_tenant", None), **_FREEZE,
        }),
        "memoranda admin tenant add acme --name Acme",
    ),
    "admin user": Command(
        "Adds users with their roles, lists and removes them. Without --tenant: those of the platform.",
        _options("add", "list", "remove", more=_user_options),
        _run({
            "add": _done("add_user", _USER, "roles"), "list": _all("users", _USER),
            "remove": _done("remove_user", None),
        }),
        "memoranda admin user add ana --tenant acme --role tenant_admin,developer",
    ),
    "admin team": Command(
        "Sets a tenant's teams with their members, lists and removes them.",
        _options("add", "list", "remove", more=_team_options),
        _run({
            "add": _done("add_team", _TEAM, "members"), "list": _all("teams", _TEAM),
            "remove": _done("remove_team", None),
        }),
        "memoranda admin team add sales --tenant acme --member ana,bob",
    ),
    "admin agent": Command(
        "Sets a tenant's agents, lists, removes, freezes (it writes no more) and thaws them.",
        _options("add", "list", "remove", "freeze", "thaw", more=_agent_options),
        _run({
            "add": _add_agent, "list": _all("agents", _AGENT), "remove": _done("remove_agent", None), **_FREEZE,
        }),
        "memoranda admin agent add cleo --tenant acme --project crm --owner ana",
    ),
    "admin token": Command(
        "Issues tokens, whose secret is shown this once, lists and revokes them.",
        _options("add", "list", "revoke", more=_token_options),
        _run(
            {"add": _add_token, "list": _all("tokens", _TOKEN), "revoke": _done("revoke_token", None)},
            without=("list", "add"),
        ),
        "memoranda admin token add --tenant acme --user ana --agent cleo --days 90",
    ),
    "admin relation": Command(
        "Grants relations on the agent ID, takes them back and lists them.",
        _options("add", "list", "remove", more=_relation_options),
        _run({"add": _relate(add=True), "remove": _relate(add=False), "list": _related}, without=()),
        "memoranda admin relation add cleo --tenant acme --user user:acme/bob --relation can_invoke",
    ),
    "admin hold": Command(
        "Lists what is under legal hold in a tenant, by id, with its labels and no word of it.",
        _options("list"),
        _run({"list": _holds}),
        "memoranda admin hold list --tenant acme",
    ),
}  # fmt: skip
