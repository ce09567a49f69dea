"""Lines of a conversation in a file, read into turns: our own JSONL, and Claude Code's session transcripts.

Claude Code calls its format internal, so everything unknown in it is counted and passed over. What a tool brought in
(`tool_result`) is not conversation and is left out, as are a model's thoughts, notices of the program and what a
sub-agent said to itself.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from memoranda.errors import InvalidInput, InvalidTime
from memoranda.notes.lazyre import lazy
from memoranda.notes.times import parse_instant
from memoranda.operations.journaling import Turn
from memoranda.trust.secrets import masked
from memoranda.values import dataclass, field

_MARKUP = lazy(r"\s*<(command-name|command-message|local-command-\w+|system-reminder|bash-\w+)\b")
_KIND = lazy(r"[a-z]+(?:-[a-z]+){0,4}")
_OWN = ("speaker", "text", "at", "session", "agent", "origin")


@dataclass(slots=True)
class Transcript:
    """What a file held: its turns, what was passed over (reason -> count), and the lines that are damaged.

    `numbers` says at which line each turn begins, in their order.
    """

    turns: list[Turn] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    damaged: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Pending:
    """An answer of the assistant that stands on several lines, one block each."""

    message: str
    turn: Turn
    number: int


def read_lines(lines: Iterable[bytes]) -> Transcript:
    """Reads lines of JSON; the two kinds may be mixed. Nothing is raised: bad lines are named in `damaged`."""
    found = Transcript()
    seen: Counter[str] = Counter()
    uuids: set[str] = set()
    pending: _Pending | None = None

    def take(number: int, turn: Turn) -> None:
        found.turns.append(turn)
        found.numbers.append(number)

    def finish() -> None:
        nonlocal pending
        if pending is not None:
            take(pending.number, pending.turn)
            pending = None

    for number, raw in enumerate(lines, 1):
        text = raw.decode("utf-8", "replace").removeprefix("\ufeff").strip()
        if not text:
            continue
        try:
            line = json.loads(text)
            if not isinstance(line, dict):
                raise InvalidInput("It is not a JSON object.")
            if "type" not in line:  # which every line of Claude Code's has
                finish()
                take(number, _own(line, seen))
                continue
            taken = _claude(line, uuids, found.skipped)
        except (ValueError, InvalidInput) as error:
            reason = error.what if isinstance(error, InvalidInput) else "It is not JSON."
            found.damaged.append((number, masked(reason)))  # it may repeat the line
            continue
        if taken is None:
            continue
        message, turn = taken
        if pending is not None and message and pending.message == message:
            joined = f"{pending.turn.text}\n\n{turn.text}"
            pending.turn = Turn(joined, *_rest(pending.turn))
        else:
            finish()
            pending = _Pending(message, turn, number)
    finish()
    return found


def _rest(turn: Turn) -> tuple[Any, ...]:
    return turn.speaker, turn.at, turn.origin, turn.session, turn.agent, turn.id


def _own(line: Mapping[str, Any], seen: Counter[str]) -> Turn:
    """A line of our own form: `text`, and as far as known `speaker`, `at`, `session`, `agent`, `origin`."""
    unknown = sorted(set(line) - set(_OWN))
    if unknown:
        raise InvalidInput(f"It has a field {unknown[0]!r}; the fields are {', '.join(_OWN)}.")
    if line.get("text") is None:
        raise InvalidInput(f"It has no text; the fields are {', '.join(_OWN)}.")
    values = {name: line.get(name) for name in _OWN}
    for name, value in values.items():
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"Its {name} is not a text.")
    at = _time(values["at"])
    told = json.dumps([values[name] for name in _OWN])
    seen[told] += 1
    return Turn(
        str(values["text"]), values["speaker"], at, values["origin"], values["session"], values["agent"],
        _id(f"{told}#{seen[told]}"),
    )  # fmt: skip


def _time(value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        return parse_instant(value, what="at")
    except InvalidTime as error:
        raise InvalidInput(f"Its at is not a time. {error.why}") from None


def _id(told: str) -> str:
    return f"j_{hashlib.sha256(told.encode('utf-8', 'replace')).hexdigest()[:20]}"


def _claude(line: Mapping[str, Any], uuids: set[str], skipped: Counter[str]) -> tuple[str, Turn] | None:
    """(message id, turn) of a line of a Claude Code transcript, None for one that is no conversation."""
    kind, message = line.get("type"), line.get("message")
    if kind not in ("user", "assistant") or not isinstance(message, dict):
        skipped[kind if isinstance(kind, str) and _KIND.fullmatch(kind) else "unknown"] += 1
        return None
    reason = _passed_over(line, message)
    text = "" if reason else "\n\n".join(_said(message.get("content")))
    if not reason and (not text.strip() or (kind == "user" and _MARKUP.match(text))):
        reason = "tool results, thoughts and markup"
    uuid = str(line.get("uuid") or "")
    if not reason and uuid and uuid in uuids:
        reason = "repeated lines"
    if reason:
        skipped[reason] += 1
        return None
    uuids.add(uuid)
    at = _time(line["timestamp"]) if isinstance(line.get("timestamp"), str) else None
    session = line.get("sessionId") if isinstance(line.get("sessionId"), str) else None
    speaker = "user" if kind == "user" else "claude"
    turn = Turn(
        text,
        speaker,
        at,
        "human" if kind == "user" else "agent",
        session,
        "claude",
        _id(uuid or f"{session}{at}{text}"),
    )
    return str(message.get("id") or "") if kind == "assistant" else "", turn


def _passed_over(line: Mapping[str, Any], message: Mapping[str, Any]) -> str:
    if line.get("isSidechain"):
        return "sub-agents"
    if line.get("isMeta") or line.get("isCompactSummary"):
        return "notices and summaries"
    if line.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
        return "errors of the program"
    return ""


def _said(content: object) -> Iterator[str]:
    """The texts of a message's content; tool calls, results, thoughts and pictures are not said."""
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            yield block["text"]
