"""The policy of a Home on this machine, as a person sets it: what comes in, and what does not.

It lies outside the Home, where no edit, merge or call of an agent reaches it. A clone on another machine has its own.
"""

from __future__ import annotations

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, InvalidInput
from memoranda.home.settings import Setting, Settings
from memoranda.notes.times import format_instant
from memoranda.operations.open_home import OpenHome
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.space import Space
from memoranda.values import dataclass, replace

FIELDS = ("allow_personal_data",)
_REFUSED = ("refuse", "personal_data")


@dataclass(frozen=True, slots=True)
class Policy:
    """`allow_personal_data`: whether mail addresses, telephone numbers and the like are kept (true by default).

    `agents` are those that keep none although the Home does.
    """

    home: str
    allow_personal_data: bool
    agents: tuple[str, ...] = ()

    def json(self) -> dict[str, object]:
        agents = {agent: {"allow_personal_data": False} for agent in self.agents}
        return {"home": self.home, "allow_personal_data": self.allow_personal_data, "agents": agents}


def policy_show(context: Context, space: Space) -> Policy:
    """The policy of the nearest Home."""
    pass_guards(context, Call("policy show"))
    return _policy(space.one())


def policy_set(context: Context, space: Space, field: str, value: bool, *, agent: str | None = None) -> Policy:
    """Sets one field for the nearest Home, or for one agent in it. Only for a person at a terminal; InvalidInput."""
    pass_guards(replace(context, agent=agent or context.agent), Call("policy set", writes=True))
    if field not in FIELDS:
        raise InvalidInput("The policy has no such field.", remedy=f"The fields are {', '.join(FIELDS)}.")
    if not context.person:
        raise ConfirmationRequired(
            "The policy is set by a person at a terminal.",
            why="Standard input or output is not a terminal.",
            remedy="Run the command in a terminal of your own.",
        )
    home = space.one()
    kind, name = _REFUSED
    told = f"{name} {agent}" if agent else name
    setting = Setting(kind, told, field, context.user, format_instant(context.now()))
    _settings(home).settle(setting, "revoke" if value else "allow")
    return _policy(home)


def _settings(home: OpenHome) -> Settings:
    return Settings(home.repository.keys, home.repository.marker.id)


def _policy(home: OpenHome) -> Policy:
    standing = _settings(home).standing()
    kind, name = _REFUSED
    agents = sorted(value.removeprefix(f"{name} ") for k, value in standing if k == kind and value != name)
    return Policy(home.name, _REFUSED not in standing, tuple(agents))
