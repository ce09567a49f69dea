"""What is done when an agent's harness tells of an event: load the context, write the turns down, taint the session.

A session that the harness opens starts clean and stands for itself; the ambient session, to which calls without a
session belong (those over MCP), inherits from it while it is open. An event that does not come from the harness, but
from a shell that the agent itself runs, can add a taint and turns; it opens nothing clean and closes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.context import Context
from memoranda.index.testimony import BESIDE
from memoranda.operations.allowing import trusted
from memoranda.operations.hook_events import Event
from memoranda.operations.open_home import OpenHome
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.sessions import event as session_event
from memoranda.operations.space import Space
from memoranda.trust.labels import Root
from memoranda.trust.tools import Brought, Trusted, brought
from memoranda.values import dataclass, replace

if TYPE_CHECKING:
    from memoranda.operations.journal_import import ImportedJournal

_WRITING = ("UserPromptSubmit", "PreCompact", "Stop", "StopFailure", "SubagentStop", "SessionEnd")
_CLEAN_STARTS = ("startup", "clear")
_CUT = 200  # characters of a folder's name; Claude Code cuts longer ones and adds a hash


@dataclass(frozen=True, slots=True)
class Harness:
    """The circumstances of a hook.

    `real`: the harness itself runs it. `transcripts`: the folder of its transcripts. `projects`: the folders whose
    conversations belong into this Home, empty when all do.
    """

    real: bool
    transcripts: Path
    budget: int = 2000
    projects: tuple[str, ...] = ()

    def concerns(self, transcript: str) -> bool:
        """Whether a transcript is one of these projects: it lies in a folder that is called after the project's."""
        name = Path(transcript).parent.name
        flat = [re.sub(r"[^A-Za-z0-9]", "-", project) for project in self.projects]
        long = (folder for folder in flat if len(folder) > _CUT)
        return not flat or name in flat or any(name.startswith(folder[:_CUT]) for folder in long)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a hook has to say: the `context` to load, and `remarks` for the person."""

    context: str = ""
    remarks: tuple[str, ...] = ()

    def json(self, name: str) -> dict[str, object]:
        """As Claude Code reads it; empty when there is nothing to say."""
        said: dict[str, object] = {}
        if self.context:
            said["hookSpecificOutput"] = {"hookEventName": name, "additionalContext": self.context}
        if self.remarks:
            said["systemMessage"] = "\n".join(f"Memoranda: {remark}" for remark in self.remarks)
        return said


def handle(context: Context, space: Space, event: Event, harness: Harness) -> Answer:
    """Does what an event asks for, in the session that it names. Raises what the operations raise."""
    context = context.in_session(event.session)
    pass_guards(context, Call("hook", writes=True))
    homes = space.homes()
    if not homes:
        remark = "there is no Home at or above this folder; nothing is loaded and nothing is kept."
        return Answer(remarks=(remark,) if event.name == "SessionStart" else ())
    home = homes[0]
    if event.name == "SessionStart":
        return _start(context, space, home, event, harness)
    _take_up(context, home, harness)
    if event.is_tool:
        _note_tool(context, home, event)
        return Answer()
    if event.name not in _WRITING:
        return Answer()
    remarks = _write_down(context, space, home, event, harness)
    if event.name == "SessionEnd" and harness.real:
        home.sessions.tell(context, [session_event(event.session, context, "close")], "A session of the agent ended")
    return Answer(remarks=remarks)


def _start(context: Context, space: Space, home: OpenHome, event: Event, harness: Harness) -> Answer:
    from memoranda.operations.loading import automatic_context

    _open(context, home, harness, clean=event.source in _CLEAN_STARTS)
    loaded = automatic_context(context, space, budget=harness.budget)
    left = f"{loaded.left_out} reviewed notes had no room in the context." if loaded.left_out else ""
    doubt = "" if harness.real else "the event did not come from the harness, so its session does not start clean."
    return Answer(loaded.text, tuple(filter(None, (left, doubt))))


def _open(context: Context, home: OpenHome, harness: Harness, *, clean: bool) -> None:
    """Opens the session, or takes it up again. A clean one begins a clean ambient one where nobody else is at work."""
    sessions, session = home.sessions, str(context.session)
    if sessions.knows(session):
        if sessions.closed(session):
            sessions.tell(context, [session_event(session, context, "open", by="agent")], "A session goes on")
        return
    ambient = sessions.ambient(context)
    clean = clean and harness.real
    alone = clean and not sessions.unclosed(context, by=("hook",))
    beside = f"{BESIDE}{sessions.ambient(context, ahead=int(alone))}"
    lines = [session_event(session, context, "open", by="hook" if clean else "agent", reason=beside)]
    if alone:
        lines += [session_event(ambient, context, what) for what in ("close", "fresh")]
    sessions.tell(context, lines, "The agent began a session")


def _take_up(context: Context, home: OpenHome, harness: Harness) -> None:
    """The session of an event is open, and has met what the ambient one has: calls over MCP are made there."""
    _open(context, home, harness, clean=False)
    roots = home.sessions.roots_of(home.sessions.ambient(context))
    home.sessions.raise_taint(context, sorted(roots))


def _note_tool(context: Context, home: OpenHome, event: Event) -> None:
    found = brought(event.tool, event.arguments, trusted(home.repository.keys))
    if found is None and event.too_large:
        found = Brought("a tool", "its answer was too large to look at what was called")
    if found is not None:
        home.sessions.raise_taint(context, [_root(found)])


def _root(found: Brought) -> Root:
    """The root of a taint. Tools and hosts bear somebody's words: one that holds a secret is not kept."""
    from memoranda.trust.secrets import find_secrets

    doubted = any(find_secrets(part) for part in (found.source, *re.split(r"__|[ .]", found.source)))
    return Root("tool", "a tool with a secret in its name" if doubted else found.source, found.reason)


# The turns


def _write_down(context: Context, space: Space, home: OpenHome, event: Event, harness: Harness) -> tuple[str, ...]:
    """Writes the turns of the transcript that are new; tools that it shows and no event told of taint first."""
    if not event.transcript:
        return ()
    if not harness.concerns(event.transcript):
        return ("the conversation belongs to another folder and is not written into this Home's journal.",)
    from memoranda.operations.journal_import import take_in
    from memoranda.operations.transcript_files import followed
    from memoranda.operations.transcripts import read_lines

    keys, marker = home.repository.keys, home.repository.marker
    state = keys.folder.parent / "hooks" / marker.id / f"{event.session}.json"
    with followed(event.transcript, harness.transcripts, state) as reading:
        if reading is None:
            return ()
        found = read_lines(reading.lines())
        trust = trusted(keys)
        roots = {_root(use) for line in reading.uses for use in _uses(line, trust)}
        home.sessions.raise_taint(context, sorted(roots))
        found.turns[:] = [replace(turn, session=event.session, agent=context.agent) for turn in found.turns]
        done = take_in(context, home, found, taint=space.met(context, home).taint)
    return tuple(_remarks(done, reading.passed))


def _uses(line: bytes, trust: Trusted) -> Iterator[Brought]:
    """What the tools brought in that a line of a transcript uses."""
    try:
        fields: Any = json.loads(line)
        content = fields["message"]["content"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and block.get("type") == "tool_use" and isinstance(block.get("name"), str):
            arguments = block.get("input")
            found = brought(block["name"], arguments if isinstance(arguments, dict) else {}, trust)
            if found is not None:
                yield found


def _remarks(done: ImportedJournal, passed: int) -> Iterator[str]:
    left = done.refused
    if left:
        what = "1 turn was" if len(left) == 1 else f"{len(left)} turns were"
        yield f"{what} not written to the journal. {left[0]}"
    torn = len(done.damaged) - len(left)
    if torn or passed:
        yield f"{torn + passed} line(s) of the transcript could not be read."
