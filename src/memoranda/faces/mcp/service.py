"""The tools at work, without the protocol: a call in, an answer out, whatever happens."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memoranda.context import Context
from memoranda.errors import InvalidInput, MemorandaError, RuleOfTwo, Unavailable
from memoranda.faces import local
from memoranda.faces.covering import covered, covered_data, frames_of, secrets_in
from memoranda.faces.mcp import present
from memoranda.faces.mcp.arguments import understood
from memoranda.faces.mcp.tools import INSTRUCTIONS, TOOLS
from memoranda.index.journal_mode import named
from memoranda.operations.space import Space
from memoranda.values import dataclass

if TYPE_CHECKING:
    from memoranda.faces.mcp.desk import Desk, Offer

_READ_BUDGET = 4000


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call came to: words, the same as data, and whether it is an error.

    `review` names the bytes that a person is to be asked about, if any, and `asked` the operation that was refused.
    """

    text: str
    data: dict[str, Any]
    is_error: bool = False
    review: str | None = None
    asked: str | None = None

    def reviewed(self, came: str) -> Answer:
        """The same answer with what came of asking the person: a key of `present.REVIEWS`, and of `PERMISSIONS`."""
        words = present.PERMISSIONS if self.asked else present.REVIEWS
        return replace(self, text=f"{self.text}\n{words[came]}", data=self.data | {"review": came})


class Service:
    """Calls of tools on the Homes of one connection. Threads may share it."""

    def __init__(self, home: str | None, agent: str | None, session: str | None) -> None:
        self._home = home
        self._agent = agent
        self._session = session
        self._lock = threading.Lock()
        self._choice: local.Choice | None = None
        self._desk: Desk | None = None
        self._asked: set[str] = set()
        self._pending: dict[str, Answer] = {}  # by the number of the page that they wait for
        self._spaces: list[Space] = []  # the last one is in use; the others wait for calls that still hold them

    def call(self, name: str, arguments: Mapping[str, Any] | None, client: str = "") -> Answer:
        """Calls a tool. Never raises: an error is an answer that says what, why, and what to do."""
        try:
            tool = TOOLS.get(name)
            if tool is None:
                raise InvalidInput(f"There is no tool {name!r}.", remedy=f"The tools are {', '.join(TOOLS)}.")
            given, hints = understood(tool, arguments)
            asked = bool(given.pop("review", False))
            context = self._context(client)
            space = self._space(context)
            text, data = _CALLS[name](context, space, given)
            if tool.writes:
                space.keep_memory()
        except RuleOfTwo as error:
            return replace(failed(error, [name, arguments]), asked=self._first_time(error.asked))
        except MemorandaError as error:
            return failed(error, [name, arguments])
        except OSError as error:
            return failed(local.refused_by_system(error), [name, arguments])
        except Exception as error:  # noqa: BLE001 - a defect must not end the server; its frames go to the log
            if named_error := named(error):
                return failed(named_error, [name, arguments])
            sys.stderr.write(frames_of(error))
            why = f"{type(error).__name__} was not expected here; this is a defect of Memoranda."
            told = Unavailable("The call broke off.", why=why, remedy="Try it in another way, and report it.")
            return failed(told, [name, arguments])
        if hints:
            data["hints"] = hints
        answer = Answer(present.with_hints(text, hints), data, review=str(data["uri"]) if asked else None)
        return _covered(answer, [arguments])

    def _first_time(self, mark: str) -> str | None:
        """The mark of a refused operation, when the person was not asked about it before: no page opens twice."""
        with self._lock:
            if not mark or mark in self._asked:
                return None
            self._asked.add(mark)
            return mark

    def _space(self, context: Context) -> Space:
        """The Homes that are chosen now; a Home that was made since the last call is found."""
        choice = local.choose(self._home)
        with self._lock:
            if choice != self._choice or not self._spaces:
                self._spaces.append(local.open_space(context, choice))
                self._choice = choice
            space = self._spaces[-1]
        space.watch()
        return space

    def instructions(self) -> str:
        """The server's instructions, with what is loaded automatically, or why that cannot be read now."""
        from memoranda.faces.mcp.loaded import instructions_with_context

        try:
            context = self._context("")
            return instructions_with_context(context, self._space(context))
        except (MemorandaError, OSError) as error:
            what = error.what if isinstance(error, MemorandaError) else str(error)
            return f"{INSTRUCTIONS}\n\nWhat was reviewed cannot be read now: {what[:300]}"

    def context_resource(self, client: str = "") -> str:
        """The text of the resource. MemorandaError, OSError."""
        from memoranda.faces.mcp.loaded import context_resource

        context = self._context(client)
        return context_resource(context, self._space(context))

    def _context(self, client: str) -> Context:
        name = "mcp" if secrets_in([client]) else local.fit_name(client, "mcp")
        return local.make_context(self._agent, self._session, otherwise=name)

    def offer(self, answer: Answer, client: str) -> Offer:
        """A page on which the person at this machine decides what `answer` asks about."""
        from memoranda.faces.mcp.desk import Desk
        from memoranda.faces.mcp.spot import offer, offer_operation

        context = self._context(client)
        with self._lock:
            if self._desk is None:
                self._desk = Desk(context.random)
            desk = self._desk
        if answer.asked:
            page = offer_operation(desk, lambda: self._space(context), answer.asked)
        else:
            page = offer(desk, lambda: self._space(context), str(answer.review), context.agent)
        with self._lock:
            self._pending = {n: a for n, a in self._pending.items() if desk.waits(n)} | {page.number: answer}
        return page

    def pending(self, number: str) -> Answer | None:
        """The answer that waits for the review on this page."""
        with self._lock:
            return self._pending.get(number)

    def wait(self, number: str, seconds: float) -> str | None:
        """What was answered on a page, accept or reject, as soon as it is; None when it is not within these seconds."""
        desk = self._desk
        return desk.wait(number, seconds) if desk is not None else None

    def withdraw(self, number: str) -> None:
        """The person does not look at a page now: it ends."""
        if self._desk is not None:
            self._desk.withdraw(number)

    def close(self) -> None:
        """Commits what is left and lets go."""
        with self._lock:
            spaces, self._spaces = self._spaces, []
            desk, self._desk = self._desk, None
        if desk is not None:
            desk.close()
        for space in spaces:
            space.close()


def failed(error: MemorandaError, given: Sequence[object]) -> Answer:
    text = "\n".join(part for part in (error.what, error.why, error.remedy) if part)
    return _covered(Answer(text, error.problem(), True), given)


def _covered(answer: Answer, given: Sequence[object]) -> Answer:
    """The answer without the secrets that were given."""
    secrets = secrets_in(given)
    if not secrets:
        return answer
    return replace(answer, text=covered(answer.text, secrets), data=covered_data(answer.data, secrets))


def _times(given: dict[str, Any], *names: str, end_of_day: bool) -> dict[str, Any]:
    """The arguments with these as instants."""
    from memoranda.notes.times import parse_instant

    times = {name: parse_instant(given[name], what=name, end_of_day=end_of_day) for name in names if name in given}
    return given | times


def _remember(context: Context, space: Space, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    from memoranda.operations.remembering import NewNote, remember

    done = remember(context, space, NewNote(**_times(given, "valid_from", "valid_to", end_of_day=False)))
    return present.remembered(done), done.json()


def _recall(context: Context, space: Space, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    from memoranda.operations.presenting import DATA
    from memoranda.operations.recalling import recall

    view = recall(context, space, **{"k": None} | _times(given, "as_of", "known_at", "at", end_of_day=True))
    # Hosts give the model the structured content instead of the words, where there is both: it has the markers too.
    items = [item.json() | {"text": item.envelope} for item in view.items]
    return view.text, {"notice": DATA, **view.json(), "items": items}


def _read(context: Context, space: Space, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    from memoranda.faces.cli.reading import line_range
    from memoranda.operations.presenting import DATA
    from memoranda.operations.reading import read

    given = {"budget": _READ_BUDGET, **given, "lines": line_range(given.get("lines"))}
    done = read(context, space, **given)
    return str(done), {"notice": DATA, **done.json(), "text": done.envelope}


def _journal(context: Context, space: Space, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    from memoranda.operations.journaling import Turn, append

    done = append(context, space, Turn(**_times(given, "at", end_of_day=False)))
    return present.appended(done), done.json()


def _forget(context: Context, space: Space, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    from memoranda.operations.forgetting import Selection, forget

    more = {name: given[name] for name in ("reason", "dry_run") if name in given}
    done = forget(context, space, Selection((given["id"],)), **more)
    return present.forgotten(done), done.json()


def _session_taint(context: Context, space: Space, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    from memoranda.operations.session_desk import session_taint

    story = session_taint(context, space, **given)
    said = f"{story.session} has met content from outside. What is remembered in it waits for a person's review."
    return said, {"session": story.session, "tainted": story.tainted, "home": story.home}


def _review_queue(context: Context, space: Space, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    from memoranda.operations.reviewing import contradictions, queue

    waiting = [
        {"id": i.id, "state": i.state, "kind": i.kind} for i in queue(context, space, states=given.get("state", ()))
    ]
    groups = contradictions(context, space)
    contested = [{"reason": g.reason, "notes": [note["id"] for note in g.notes]} for g in groups]
    return present.review_queue(waiting, contested), {"waiting": waiting, "contested": contested}


_CALLS = {
    "nas_remember": _remember, "nas_recall": _recall, "nas_read": _read, "nas_journal": _journal, "nas_forget": _forget,
    "nas_session_taint": _session_taint, "nas_review_queue": _review_queue,
}  # fmt: skip
