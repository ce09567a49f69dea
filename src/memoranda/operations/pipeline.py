"""The guards of an operation, in the order in which they are asked, to be read in one place.

`LOCAL_GUARDS` protect a person's own Home. A guard gets the context and a description of the call, and raises when
the call may not go on; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from types import ModuleType
from typing import TYPE_CHECKING

from memoranda.context import Context
from memoranda.errors import InvalidInput, InvalidNote, RuleOfTwo
from memoranda.notes.lazyre import lazy
from memoranda.notes.words import SIZE_LIMIT
from memoranda.trust.labels import reaches_beyond, two_met
from memoranda.values import dataclass

if TYPE_CHECKING:
    from memoranda.operations.admission import Rules
    from memoranda.operations.sessions import Met

_NAME = lazy(r"[\w][\w.@+-]{0,63}")
_SESSION = lazy(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


@dataclass(frozen=True, slots=True)
class Call:
    """What an operation is about to do: its name, whether it writes, and the text that it carries.

    Also the scope that it writes to, further `fields` that are kept (name and text), what its session has met
    (None: that does not matter to this operation), and the `rules` of the Home that it writes to.
    """

    operation: str
    writes: bool = False
    text: str = ""
    scope: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    met: Met | None = None
    rules: Rules | None = None


Guard = Callable[[Context, Call], None]


def plausible_names(context: Context, _call: Call) -> None:
    """User, agent and session become parts of paths and of commits: they are names and nothing else."""
    _plausible(context.user, context.agent, context.session)


@lru_cache(maxsize=256)  # the same ones call after call; a refusal is not kept
def _plausible(user: str, agent: str, session: str | None) -> None:
    for what, name in (("user", user), ("agent", agent)):
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                f"The name of the {what} cannot be used.",
                why="It is empty, too long, or holds other characters than letters, digits, `.`, `_`, `@`, `+`, `-`.",
                remedy="Choose a name such as `claude` or `build-bot`.",
            )
    if session is not None and not _SESSION.fullmatch(session):
        raise InvalidInput(
            "The session id cannot be used.",
            why="It is empty, longer than 128 characters, or holds white space or control characters.",
            remedy="Use the id that the agent's harness gives, or leave the session out.",
        )


def bounded_text(_context: Context, call: Call) -> None:
    """No single call carries more than a note may hold."""
    if len(call.text) > SIZE_LIMIT:
        raise InvalidNote(
            f"The text has {len(call.text)} characters and {SIZE_LIMIT} are the most.",
            remedy="Split it, or keep the file where it is and remember a note that cites it.",
        )


@cache
def _admission() -> ModuleType:
    """What only reads does not pay for the rules, and what writes for finding their module once."""
    from memoranda.operations import admission

    return admission


def no_secrets(context: Context, call: Call) -> None:
    """Nothing that is kept holds a password, a token or a key; the names of agent and session are kept too."""
    if call.writes:
        admission = _admission()
        names = (("name of the agent", context.agent), ("session id", context.session or ""))
        doubtful = [pair for pair in names if not admission.innocent(pair[1])]
        admission.refuse_secrets((("text", call.text), *call.fields, *doubtful), call.rules, alone=True)


def no_personal_data(context: Context, call: Call) -> None:
    """No personal data, nor names that are such, where the policy of the Home or of the agent is to keep none."""
    if call.writes and call.rules is not None:
        names = (("name of the agent", context.agent), ("session id", context.session or ""))
        _admission().refuse_personal((("text", call.text), *call.fields, *names), call.rules, context.agent)


def rule_of_two(context: Context, call: Call) -> None:
    """A session that has met untrusted content and private data changes nothing beyond itself without a person."""
    if call.met is None or context.person:
        return
    met = two_met(bool(call.met.taint), call.met.private, reaches_beyond(call.operation, call.scope))
    if met:
        raise RuleOfTwo(
            f"This session may not {call.operation.replace('_', ' ')} beyond itself.",
            why=f"It has met {met[0]} and {met[1]}, and this would reach others.",
            remedy="A person can do it at a terminal, or start a session afresh with `memoranda session fresh`.",
        )


LOCAL_GUARDS: tuple[Guard, ...] = (plausible_names, bounded_text, no_secrets, no_personal_data, rule_of_two)


def pass_guards(context: Context, call: Call, guards: tuple[Guard, ...] = LOCAL_GUARDS) -> None:
    """Asks every guard in turn; the first that objects ends the call."""
    for guard in guards:
        guard(context, call)


def known_words(what: str, given: Sequence[str], words: Sequence[str]) -> None:
    """InvalidInput when one of `given` is not among `words`."""
    for word in given:
        if word not in words:
            raise InvalidInput(f"There is no {what} {word!r}.", remedy=f"The {what}s are {', '.join(words)}.")
