"""Moving memories between engines: out as notes that anybody can read, in by the same guards as everything else.

What goes out is an export; what comes in is remembered anew, in the order in which it was known, with its kind, times,
labels and chain. It comes in unreviewed, for a review is about the bytes of one Home; what was quarantined stays so. A
source that only says by which call builtin has written a note leads nowhere elsewhere, and is left out.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import PurePosixPath

from pydantic import ValidationError

from memoranda.engines.contract import RememberRequest
from memoranda.errors import InvalidInput, NotFound, Refused, TooLarge
from memoranda.notes.model import Note, read_note
from memoranda.notes.times import format_instant
from memoranda.service import memories
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.values import dataclass

_MOST = 200_000  # notes of one import
_LARGEST = 4 << 20  # bytes of a note's file
_NOTES = "memory/notes/"


@dataclass(frozen=True, slots=True)
class Moved:
    """What an import did: `kept` leads from the ids as they were to the new ones, `left_out` from a path to why."""

    kept: Mapping[str, str]
    left_out: Mapping[str, str]


def take_in(desk: Desk, caller: Caller, agent_id: str, data: bytes) -> Moved:
    """Remembers every note of an exported zip for an agent, wherever its policy has its memories.

    Doing it again keeps nothing twice. InvalidInput: no zip; TooLarge: more than anybody exports.
    """
    kept: dict[str, str] = {}
    left: dict[str, str] = {}
    project = desk.registry.agent(caller.identity.tenant or "", agent_id).project
    for path, raw, note in _notes(data):
        try:
            new = _new(note, kept, caller, agent_id, project)
            key = f"import-{hashlib.sha256(raw).hexdigest()[:40]}"
            kept[note.id] = memories.remember(desk, caller, agent_id, new, idempotency_key=key).id
        except ValidationError as error:
            left[path] = f"its {'.'.join(map(str, error.errors()[0]['loc']))} cannot be taken"
        except (Refused, InvalidInput, NotFound) as error:
            left[path] = f"{error.code}: {error.what}"
        except _Left as why:
            left[path] = str(why)
    return Moved(kept, left)


class _Left(Exception):
    """Why a note is not for this caller and agent."""


def _notes(data: bytes) -> list[tuple[str, bytes, Note]]:
    """The notes, each after those that it supersedes, else by when they were recorded."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            there = [one for one in file.infolist() if one.filename.startswith(_NOTES) and _is_note(one.filename)]
            if len(there) > _MOST or any(one.file_size > _LARGEST for one in there):
                raise TooLarge("This is more than an export of memories holds.", remedy="Import it in parts.")
            found = [(one.filename, raw, read_note(one.filename, raw)) for one in there if (raw := file.read(one))]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise InvalidInput("This is no zip of an export.", remedy="Give the file that an export made.") from error
    found.sort(key=lambda one: (format_instant(one[2].recorded_at) if one[2].recorded_at else "", one[2].id))
    ready: list[tuple[str, bytes, Note]] = []
    waiting, ids, done = found, {note.id for _, _, note in found}, set[str]()
    while waiting:
        fit = [one for one in waiting if all(old in done or old not in ids for old in one[2].supersedes)] or waiting
        ready += fit
        done |= {note.id for _, _, note in fit}
        waiting = [one for one in waiting if one[2].id not in done]
    return ready


def _is_note(name: str) -> bool:
    return name.endswith(".md") and ".." not in PurePosixPath(name).parts


def _new(note: Note, kept: Mapping[str, str], caller: Caller, agent_id: str, project: str) -> RememberRequest:
    owner = {"user": caller.identity.user, "agent": agent_id, "shared_agents": agent_id, "project": project}
    field = "agent" if note.scope == "shared_agents" else note.scope
    if note.scope == "session":
        raise _Left("it belongs to a session, and sessions do not move")
    if note.scope in owner and note.owner.get(field, owner[note.scope]) != owner[note.scope]:
        raise _Left("it belongs to somebody else")
    now = caller.context.now()
    external = bool(note.taint) or note.origin == "external"
    return RememberRequest.model_validate(
        {
            "content": note.body, "scope": note.scope, "kind": note.kind, "classification": note.classification,
            "subject": note.subject, "confidence": note.confidence,
            "valid_from": _text(note.valid_from), "valid_to": _text(note.valid_to), "team": note.owner.get("team"),
            "retention_days": _left_of(note, now), "legal_hold": note.legal_hold,
            "supersedes": tuple(kept[old] for old in note.supersedes if old in kept),
            "sources": tuple(source for source in note.sources if not _of_a_call(source)),
            "origin": "external" if external else "import",
        }
    )  # fmt: skip


def _of_a_call(source: str) -> bool:
    return source.startswith("nas://") and "/journal/" in source


def _left_of(note: Note, now: datetime) -> int | None:
    """The days that are left: moving makes nothing live longer."""
    if note.retention_days is None:
        return None
    ends = (note.recorded_at or now) + timedelta(days=note.retention_days)
    days = -((now - ends) // timedelta(days=1)) if ends > now else 0
    if days < 1 and not note.legal_hold:
        raise _Left("its retention has ended")
    return max(days, 1)


def _text(t: datetime | None) -> str | None:
    return None if t is None else format_instant(t)
