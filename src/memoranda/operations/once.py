"""One operation that the Rule of Two refuses, and that a person lets through once.

A refusal is kept as a request, outside every Home, with what was to be done word for word: that is what the person
reads and allows, at a terminal or on a page of their own browser. Its mark covers the Home, the session, the user, the
agent, the operation, the scope and every word, so that what is allowed serves nothing else; the first operation that
needs it uses it up, and that stands in the session's story. A request and a permission are good for a day.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, InvalidInput, NotFound, RuleOfTwo
from memoranda.operations.pipeline import Call, pass_guards, rule_of_two
from memoranda.values import dataclass

if TYPE_CHECKING:
    from memoranda.home.settings import Settings
    from memoranda.operations.open_home import OpenHome
    from memoranda.operations.sessions import Met
    from memoranda.operations.space import Space

Told = Mapping[str, Any] | Callable[[], Mapping[str, Any]]
_LIFE = timedelta(days=1)
_ANOTHER = "A person can do it, with a credential of their own."
_MOST = 50  # requests of one Home that wait at once; an agent may ask for any number


@dataclass(frozen=True, slots=True)
class Asked:
    """An operation that was refused and waits for a person.

    `told` is what it would do, word for word; `allowed` whether a person has allowed it and it was not done yet.
    """

    mark: str
    home: str
    operation: str
    scope: str | None
    session: str
    user: str
    agent: str
    told: Mapping[str, Any]
    at: str
    allowed: bool = False

    def json(self) -> dict[str, object]:
        return {
            "id": self.mark, "home": self.home, "operation": self.operation, "scope": self.scope,
            "session": self.session, "user": self.user, "agent": self.agent, "told": dict(self.told), "at": self.at,
            "allowed": self.allowed,
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """In words for the person who decides: who, in which session, what, and every word of it."""
        scope = f" to the scope {self.scope}" if self.scope else ""
        yield f"{self.operation.replace('_', ' ')}{scope} by {self.agent} in session {self.session}"
        for name, value in self.told.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{name}: {text}"


@dataclass(frozen=True, slots=True)
class Permit:
    """A person's permission for one operation, which has to be used before anything is done."""

    home: OpenHome
    session: str
    operation: str
    mark: str
    refusal: RuleOfTwo

    def use(self, context: Context) -> None:
        """Uses it up, and tells so in the session's story. RuleOfTwo when somebody else has used it since."""
        from memoranda.operations.sessions import event
        from memoranda.values import replace

        settings = _settings(self.home)
        with settings.lines.alone():
            standing = settings.standing()
            granted = standing.get(("once", self.mark))
            if granted is None or _over(granted.at, context.now()):
                raise self.refusal
            for kind in ("once", "asked"):
                if (setting := standing.get((kind, self.mark))) is not None:
                    settings.settle(replace(setting, at=_now(context)), "revoke")
        told = f"once, by {granted.by}: {granted.reason}"
        line = event(self.session, context, "allowed", what=self.operation, source=self.mark, reason=told)
        self.home.sessions.tell(context, [line], f"A person allowed a session one {self.operation}")


def permitted(
    context: Context, home: OpenHome, met: Met, operation: str, scope: str | None, told: Told
) -> Permit | None:
    """Asks whether a session may do this: None when it may, or the permission that a person gave for it.

    `told` is all that the operation would do, in words, or gives it. RuleOfTwo, which says how a person can allow it.
    """
    if not (met.private and met.taint.roots):
        return None  # it has met one of the three things at most, as nearly all have
    try:
        rule_of_two(context, Call(operation, scope=scope, met=met))
    except RuleOfTwo as refusal:
        if home.indexes.places is not None:  # over a service nobody sits at a terminal, and no words are kept for one
            raise RuleOfTwo(refusal.what, why=refusal.why, remedy=_ANOTHER) from None
        words = {
            name: value
            for name, value in (told() if callable(told) else told).items()
            if value not in (None, "", (), [], False)
        }
        request = {
            "operation": operation, "scope": scope, "session": met.session, "user": context.user,
            "agent": context.agent, "told": words,
        }  # fmt: skip
        text = json.dumps(request, ensure_ascii=False, default=str)
        settings = _settings(home)
        mark = settings.mark(text)
        named = RuleOfTwo(refusal.what, why=refusal.why, remedy=_remedy(context, settings, mark, text))
        named.asked = mark
        granted = settings.standing().get(("once", mark))
        if granted is None or _over(granted.at, context.now()):
            raise named from None
        return Permit(home, met.session, operation, mark, named)
    return None


def _remedy(context: Context, settings: Settings, mark: str, text: str) -> str:
    """Keeps the request, and says how a person allows it."""
    itself = "A person can do it at a terminal, or start a session afresh with `memoranda session fresh`."
    if not _keep(context, settings, mark, text):
        return f"{itself} Too many such requests wait to keep another one."
    return (
        f"A person can allow it once, at a terminal of their own: `memoranda allow once {mark} --reason …` "
        f"(`memoranda allow asked` shows every word of it). {itself}"
    )


def _keep(context: Context, settings: Settings, mark: str, text: str) -> bool:
    from memoranda.home.settings import Setting

    with settings.lines.alone():
        waiting = [s for (kind, _), s in settings.standing().items() if kind == "asked"]
        for old in [s for s in waiting if _over(s.at, context.now())]:
            settings.settle(old, "revoke")
            waiting.remove(old)
        if any(s.value == mark for s in waiting):
            return True
        if len(waiting) >= _MOST:
            return False
        settings.settle(Setting("asked", mark, text, context.agent, _now(context)))
        return True


def asked(context: Context, space: Space) -> list[Asked]:
    """What waits for a person in the open Homes, oldest first. An agent is not told what it is."""
    pass_guards(context, Call("list_reviews"))
    found = [item for home in space.homes() for item in _waiting(context, home)]
    return found if context.person else [_without_words(item) for item in found]


def _waiting(context: Context, home: OpenHome) -> list[Asked]:
    standing = _settings(home).standing()
    return [
        _read(home, setting.value, setting.reason, setting.at, ("once", setting.value) in standing)
        for (kind, _), setting in standing.items()
        if kind == "asked" and not _over(setting.at, context.now())
    ]


def _read(home: OpenHome, mark: str, text: str, at: str, allowed: bool) -> Asked:
    f = json.loads(text)
    return Asked(
        mark, home.name, f["operation"], f["scope"], f["session"], f["user"], f["agent"], f["told"], at, allowed
    )


def _without_words(item: Asked) -> Asked:
    from memoranda.values import replace

    return replace(item, told={})


def find_asked(context: Context, space: Space, mark: str) -> tuple[OpenHome, Asked]:
    """The request with this mark. NotFound when none waits."""
    for home in space.homes():
        for item in _waiting(context, home):
            if item.mark == mark:
                return home, item
    raise NotFound(
        "No such request waits.",
        why="It was done already, it is older than a day, or nobody asked for it.",
        remedy="`memoranda allow asked` shows what waits; the operation can be tried again.",
    )


def allow_once(context: Context, space: Space, mark: str, reason: str) -> Asked:
    """Lets the operation with this mark through once. Only for a person, and never from the session that asks.

    Raises:
        ConfirmationRequired: nobody is at a terminal, or it is the session's own.
        NotFound: no such request waits. InvalidInput: no reason was given.
    """
    from memoranda.home.settings import Setting
    from memoranda.values import replace

    home, item = find_asked(context, space, mark)
    pass_guards(context, Call("allow", writes=True, text=reason, rules=home.rules))
    if not reason.strip():
        raise InvalidInput("No reason was given.", remedy="Say why with --reason; it is kept with the decision.")
    if not context.person or context.session == item.session:
        raise ConfirmationRequired(
            "Only a person can allow this, and not from the session that asks for it.",
            why="Standard input or output is not a terminal, or the shell is that of the session.",
            remedy="Run the command in a terminal of your own.",
        )
    settings = _settings(home)
    with settings.lines.alone():
        settings.settle(Setting("once", mark, " ".join(reason.split())[:500], context.user, _now(context)))
    return replace(item, allowed=True)


def refuse_asked(context: Context, space: Space, mark: str) -> Asked:
    """A person does not want it: the request waits no more. ConfirmationRequired, NotFound."""
    from memoranda.home.settings import Setting

    home, item = find_asked(context, space, mark)
    if not context.person:
        raise ConfirmationRequired(
            "Only a person can decide this.", remedy="Run the command in a terminal of your own."
        )
    settings = _settings(home)
    with settings.lines.alone():
        for kind in ("once", "asked"):
            settings.settle(Setting(kind, mark, "refused", context.user, _now(context)), "revoke")
    return item


def _settings(home: OpenHome) -> Settings:
    from memoranda.home.settings import Settings

    return Settings(home.repository.keys, f"{home.repository.marker.id}-once")


def _now(context: Context) -> str:
    from memoranda.notes.times import format_instant

    return format_instant(context.now())


def _over(at: str, now: datetime) -> bool:
    from memoranda.notes.times import parse_instant

    return now - parse_instant(at) > _LIFE


def shared_of(scopes: Sequence[str]) -> str | None:
    """One of these scopes that others read too, if any: the same for the same scopes."""
    from memoranda.trust.labels import SHARED_SCOPES

    return next((scope for scope in sorted(scopes) if scope in SHARED_SCOPES), None)
