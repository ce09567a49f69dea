"""What a person allows on this machine, outside every Home, and takes back: texts, tools, servers, domains.

A text is named by its keyed hash, as the refusal gives it: nothing kept here tells what it said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, InvalidInput, NotFound
from memoranda.home.settings import Setting, Settings
from memoranda.notes.lazyre import lazy
from memoranda.notes.times import format_instant
from memoranda.operations.pipeline import Call, known_words, pass_guards

if TYPE_CHECKING:
    from memoranda.home.keys import Keys
    from memoranda.trust.tools import Trusted

KINDS = ("text", "tool", "server", "domain")
_FORMS: dict[str, tuple[Callable[[str], object], str]] = {
    "text": (lazy(r"[0-9a-f]{32}").fullmatch, "Give the hash of 32 characters that the refusal names."),
    "tool": (lazy(r"[A-Za-z0-9_.:-]{1,100}").fullmatch, "Give its full name, such as `WebSearch` or `mcp__wiki__get`."),
    "server": (lazy(r"[A-Za-z0-9_.:-]{1,100}").fullmatch, "Give the name that the agent's configuration has for it."),
    "domain": (lazy(r"(?:[a-z0-9-]{1,63}\.)+[a-z0-9-]{2,63}").fullmatch, "Give it as in `docs.example.org`."),
}


def allow(context: Context, keys: Keys, kind: str, value: str, reason: str) -> Setting:
    """Allows one text, tool, server or domain from now on. Only for a person at a terminal; InvalidInput."""
    value = _checked(context, kind, value)
    if not reason.strip():
        raise InvalidInput("No reason was given.", remedy="Say why with --reason; it is kept with the decision.")
    pass_guards(context, Call("allow", writes=True, text=reason))
    setting = Setting(kind, value, " ".join(reason.split())[:500], context.user, format_instant(context.now()))
    _person(context)
    Settings(keys).settle(setting)
    return setting


def revoke(context: Context, keys: Keys, kind: str, value: str) -> Setting:
    """Takes back what was allowed. Only for a person at a terminal; NotFound when it does not stand."""
    value = _checked(context, kind, value)
    settings = Settings(keys)
    standing = settings.standing().get((kind, value))
    if standing is None:
        raise NotFound(f"This {kind} is not allowed.", remedy="`memoranda allow list` shows what is.")
    _person(context)
    settings.settle(Setting(kind, value, standing.reason, context.user, format_instant(context.now())), "revoke")
    return standing


def allowed(context: Context, keys: Keys) -> list[Setting]:
    """What stands allowed, oldest first."""
    pass_guards(context, Call("allow list"))
    return [setting for setting in Settings(keys).standing().values() if setting.kind in KINDS]


def trusted(keys: Keys) -> Trusted:
    """The tools, servers and domains that a person trusts."""
    from memoranda.trust.tools import Trusted

    by_kind: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for kind, value in Settings(keys).standing():
        by_kind.setdefault(kind, set()).add(value)
    return Trusted(*(frozenset(by_kind[kind]) for kind in ("tool", "server", "domain")))


def _checked(context: Context, kind: str, value: str) -> str:
    pass_guards(context, Call("allow"))
    known_words("kind", [kind], KINDS)
    value = value.strip() if kind in ("tool", "server") else value.strip().lower()
    fits, remedy = _FORMS[kind]
    if not fits(value):
        raise InvalidInput(f"This cannot be a {kind}.", remedy=remedy)
    return value


def _person(context: Context) -> None:
    if not context.person:
        raise ConfirmationRequired(
            "Only a person at a terminal can decide this.",
            why="Standard input or output is not a terminal.",
            remedy="Run the command in a terminal of your own.",
        )
