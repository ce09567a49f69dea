"""The one path of an operation: guards, the audit's intent, the engine, the audit's outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol, TypeVar

from memoranda.context import Context
from memoranda.errors import Conflict, Forbidden, InvalidInput, MemorandaError, NotFound, Refused, Unavailable
from memoranda.governance.audit import Audit, AuditEvent, Outcome
from memoranda.service.caller import Caller, credential
from memoranda.service.case import Case
from memoranda.service.desk import Desk
from memoranda.service.guards import SERVICE_GUARDS, Guard

T = TypeVar("T")
_ROUNDS = 5
_DENIALS = (Refused, NotFound, InvalidInput, Conflict)  # the caller was told no; everything else failed


class Telling(Protocol):
    """Gives the event of a call as it stands, with what came of it."""

    def __call__(self, *, outcome: Outcome | None = None, code: str | None = None) -> AuditEvent: ...


def perform(
    case: Case,
    work: Callable[[Case], T],
    *,
    items: Callable[[T], Iterable[str]] = lambda _: (),
    guards: tuple[Guard, ...] = SERVICE_GUARDS,
) -> T:
    """Does `work` once every guard has passed, and tells the audit what came of it; `items` gives the ids concerned.

    Raises:
        MemorandaError: what a guard or the engine objected; it stands in the audit, by its code.
    """
    audit, context = case.desk.audit, case.caller.context
    try:
        _pass(case, guards)
    except MemorandaError as error:
        audit.note(context, case.event(outcome=outcome_of(error), code=error.code))
        raise

    def done() -> T:
        answer = _carried_out(case, work, guards)
        case.items = tuple(items(answer))
        return answer

    return recorded(audit, context, case.event, done, writes=case.writes)


def _pass(case: Case, guards: tuple[Guard, ...]) -> None:
    case.mark = case.desk.database.mark()  # before anything is read: what the guards go by is at least as new
    for guard in guards:
        guard(case)


def _carried_out(case: Case, work: Callable[[Case], T], guards: tuple[Guard, ...]) -> T:
    """What `work` gives. A change goes by what holds when it is made: where anybody has changed who may do what since
    the guards were passed, they are passed again, before the engine is called and inside the lock of what is written;
    for an engine elsewhere also when it has written, and nobody was told.
    """
    if not case.writes:
        return work(case)
    for _ in range(_ROUNDS):
        if case.desk.database.mark() != case.mark:
            _pass(case, guards)
        case.recheck = _unmoved(case)
        with suppress(_Moved):
            return work(case)
    raise Unavailable("Who may do what changes all the time; nothing was written.", remedy="Try again.")


def _unmoved(case: Case) -> Callable[[bool], None]:
    """Says whether the state is the one that the guards went by, until it was asked for the last time: what has begun
    to be written, and cannot be taken back, is not stopped."""
    begun = False

    def check(last: bool) -> None:
        nonlocal begun
        if not begun and case.desk.database.mark() != case.mark:
            raise _Moved("Who may do what was changed meanwhile.")
        begun = begun or last

    return check


class _Moved(Unavailable):
    """The state is another one than the guards went by, and nothing was written yet."""


def recorded(audit: Audit, context: Context, event: Telling, work: Callable[[], T], *, writes: bool) -> T:
    """Does something on record.

    A change is announced before it is begun, so that neither it nor its record can be lost to a crash; a read is one
    line, written before its answer is given back.
    """
    intent = audit.begin(context, event()) if writes else None

    def end(outcome: Outcome, code: str | None = None) -> None:
        ended = event(outcome=outcome, code=code)
        if intent is None:
            audit.note(context, ended)
        else:
            audit.finish(context, intent, outcome, code=code, items=ended.items)

    try:
        answer = work()
    except BaseException as error:
        end(outcome_of(error), error.code if isinstance(error, MemorandaError) else MemorandaError.code)
        raise
    end("success")
    return answer


def told(
    desk: Desk, caller: Caller, operation: str, work: Callable[[], T], engine: str | None = None, *,
    writes: bool = False,
) -> T:  # fmt: skip
    """Does something that concerns no single agent's memory, on record."""
    identity = caller.identity

    def event(*, outcome: Outcome | None = None, code: str | None = None) -> AuditEvent:
        return AuditEvent(
            operation, tenant=identity.tenant, organization=identity.organization, user=identity.user,
            agent=identity.agent, actor=credential(identity), engine=engine, outcome=outcome, code=code,
            request_id=caller.request_id,
        )  # fmt: skip

    return recorded(desk.audit, caller.context, event, work, writes=writes)


def needs(caller: Caller, *roles: str) -> None:
    """Forbidden unless the caller has one of these roles."""
    if not caller.identity.roles & set(roles):
        raise Forbidden(
            "The caller does not have the role that this asks for.",
            why=f"It is for {' or '.join(sorted(roles))}.",
            remedy="Use a credential that has it.",
        )


def outcome_of(error: BaseException) -> Outcome:
    """`deny` for what the caller was refused, `failure` for what did not work."""
    return "deny" if isinstance(error, _DENIALS) else "failure"
