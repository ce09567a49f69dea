"""`allow …` and `policy …`: what a person lets through and keeps out on this machine, kept outside every Home."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memoranda.faces import local
from memoranda.faces.cli.frame import Command, Frame, Parser, counted, usage_error

if TYPE_CHECKING:
    from memoranda.operations.policy import Policy

_KINDS = "text, tool, server or domain"


def _which(parser: Parser) -> None:
    parser.add_argument("kind", metavar="KIND", help=_KINDS)
    parser.add_argument("value", metavar="VALUE", help="a text's hash, or the name of a tool, server or domain")


def _add_options(parser: Parser) -> None:
    _which(parser)
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why; kept with the decision")


def _add(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.allowing import allow

    done = allow(frame.context, local.keys(), args.kind, args.value, args.reason)
    frame.answer(done.json(), [f"Allowed: {done.kind} {done.value}"])
    return 0


def _revoke(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.allowing import revoke

    done = revoke(frame.context, local.keys(), args.kind, args.value)
    frame.answer(done.json(), [f"No longer allowed: {done.kind} {done.value}"])
    return 0


def _list(frame: Frame, _args: argparse.Namespace) -> int:
    from memoranda.operations.allowing import allowed

    found = allowed(frame.context, local.keys())

    def lines() -> Iterator[str]:
        for item in found:
            yield f"{item.kind}  {item.value}  {item.at}  {item.by}: {item.reason}"
        yield f"{counted(len(found), 'thing')} allowed."

    frame.answer({"allowed": [item.json() for item in found]}, lines())
    return 0


def _once_options(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="the request, as the refusal and `allow asked` name it")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why; kept with the decision")


def _once(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.once import allow_once

    done = allow_once(frame.context, frame.space, args.id, args.reason)
    frame.answer(done.json(), ["Allowed once:", *(f"   {line}" for line in done.lines())])
    return 0


def _asked(frame: Frame, _args: argparse.Namespace) -> int:
    from memoranda.operations.once import asked

    found = asked(frame.context, frame.space)

    def lines() -> Iterator[str]:
        for item in found:
            yield f"{item.mark}  {item.at}  {item.home}{'  allowed' if item.allowed else ''}"
            yield from (f"   {line}" for line in item.lines())
        yield f"{counted(len(found), 'request')} waiting."

    frame.answer({"asked": [item.json() for item in found]}, lines())
    return 0


def _policy_show(frame: Frame, _args: argparse.Namespace) -> int:
    from memoranda.operations.policy import policy_show

    return _policy(frame, policy_show(frame.context, frame.space))


def _policy_options(parser: Parser) -> None:
    parser.add_argument("field", metavar="FIELD", help="allow_personal_data")
    parser.add_argument("value", metavar="VALUE", help="true or false")
    parser.add_argument("--for-agent", metavar="NAME", help="only for what this agent writes")


def _policy_set(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.policy import policy_set

    value = {"true": True, "false": False}.get(args.value.lower())
    if value is None:
        raise usage_error("The value is neither true nor false.", "Give `true` or `false`.")
    return _policy(frame, policy_set(frame.context, frame.space, args.field, value, agent=args.for_agent))


def _policy(frame: Frame, policy: Policy) -> int:
    def lines() -> Iterator[str]:
        yield f"{policy.home}  allow_personal_data: {str(policy.allow_personal_data).lower()}"
        for agent in policy.agents:
            yield f"  {agent}  allow_personal_data: false"

    frame.answer(policy.json(), lines())
    return 0


COMMANDS = {
    "allow add": Command(
        "Allows one text that was refused as a secret or as personal data and is none, by the hash that the refusal "
        "names; or a tool, an MCP server or a domain whose content does not taint a session. Needs a terminal.",
        _add_options,
        _add,
        "memoranda allow add domain docs.example.org --reason 'our own pages'",
    ),
    "allow list": Command(
        "Lists what is allowed, by whom, when and why.",
        lambda _parser: None,
        _list,
        "memoranda allow list",
    ),
    "allow once": Command(
        "Lets one operation through that was refused to a session that has met untrusted content and private data: the "
        "one with these words, in this session, once, within a day. Needs a terminal, which is not the session's own.",
        _once_options,
        _once,
        "memoranda allow once 0d9b1c52f7a84e63b1d0c2a4e6f80917 --reason 'the team asked for it'",
    ),
    "allow asked": Command(
        "Lists the operations that were refused and that a person can allow once, with every word of them; to an agent "
        "without the words.",
        lambda _parser: None,
        _asked,
        "memoranda allow asked",
    ),
    "allow revoke": Command(
        "Takes back what was allowed. Needs a terminal.",
        _which,
        _revoke,
        "memoranda allow revoke domain docs.example.org",
    ),
    "policy show": Command(
        "Shows the policy of the nearest Home on this machine.",
        lambda _parser: None,
        _policy_show,
        "memoranda policy show",
    ),
    "policy set": Command(
        "Sets a field of the policy of the nearest Home on this machine. With allow_personal_data false, mail "
        "addresses, telephone numbers, accounts, cards, national numbers and IP addresses are refused as secrets are. "
        "Needs a terminal.",
        _policy_options,
        _policy_set,
        "memoranda policy set allow_personal_data false",
    ),
}
