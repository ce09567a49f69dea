"""What an agent's harness tells a hook: one event, as JSON on standard input."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from memoranda.errors import InvalidInput
from memoranda.values import dataclass, field

LARGEST = 32 << 20  # bytes of an event; what a tool answered stands in it
_HEAD = 1 << 20
_SESSION = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"  # as Claude Code and Codex name their sessions
_TOOL_EVENTS = ("PostToolUse", "PostToolUseFailure")


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `name` is the harness's word for it; `too_large`: only its beginning was looked at, or understood."""

    name: str
    session: str
    transcript: str = ""
    source: str = ""  # of SessionStart: startup, resume, clear or compact
    tool: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict)
    too_large: bool = False

    @property
    def is_tool(self) -> bool:
        return self.name in _TOOL_EVENTS


def read_event(data: bytes) -> Event:
    """The event in these bytes; of one larger than `LARGEST`, its first fields. InvalidInput.

    A tool's answer is somebody else's word: one that no parser takes (brackets without end, a number of 5000 digits)
    must not hide that the tool was used.
    """
    whole = len(data) <= LARGEST
    try:
        fields = _fields(data) if whole else _first_fields(data)
    except InvalidInput:
        fields, whole = _first_fields(data), False
        if fields.get("hook_event_name") not in _TOOL_EVENTS:
            raise
    told = {name: fields.get(name) for name in ("hook_event_name", "session_id")}
    for name, value in told.items():
        if not isinstance(value, str) or not value:
            raise _unreadable(f"It lacks {name}.")
    if re.fullmatch(_SESSION, str(told["session_id"])) is None:
        raise _unreadable("Its session_id is not a UUID.")
    arguments = fields.get("tool_input")
    return Event(
        str(told["hook_event_name"]),
        str(told["session_id"]).lower(),
        _text(fields, "transcript_path"),
        _text(fields, "source"),
        _text(fields, "tool_name"),
        arguments if isinstance(arguments, dict) else {},
        not whole,
    )


def _fields(data: bytes) -> Mapping[str, Any]:
    try:
        fields = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise _unreadable("It is not JSON.") from None
    if not isinstance(fields, dict):
        raise _unreadable("It is not a JSON object.")
    return fields


def _first_fields(data: bytes) -> Mapping[str, Any]:
    """Of an event that is too large or no JSON, the plain texts that stand before a tool's arguments and its answer."""
    head = data[:_HEAD].decode("utf-8", "replace")
    head = re.split(r'"(?:tool_input|tool_response|prompt|error)"\s*:', head, maxsplit=1)[0]
    found = re.findall(r'"(hook_event_name|session_id|transcript_path|tool_name)"\s*:\s*"([^"\\]*)"', head)
    return dict(found)


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _unreadable(why: str) -> InvalidInput:
    return InvalidInput(
        "The event on standard input cannot be understood.",
        why=why,
        remedy="This command is run by an agent's harness; `memoranda hook claude-code --print-config` says how.",
    )
