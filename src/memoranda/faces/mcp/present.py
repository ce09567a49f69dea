"""What a tool answers, in words for a model. What is recalled is told by `operations.presenting`, for every face."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memoranda.operations.forgetting import Forgotten
    from memoranda.operations.journaling import Appended
    from memoranda.operations.remembering import Remembered

_MOST_WAITING = 20
# What came of asking the person to review a note that was just written.
REVIEWS = {
    "accept": "The user has reviewed it and accepted it.",
    "reject": "The user has reviewed it and rejected it: do not rely on it.",
    "open": "A page to review it is open in the user's browser; it is not answered yet.",
    "declined": "The user does not want to review it now: it waits in the queue (`memoranda review list`).",
    "queued": "It waits for the user's review: `memoranda review list` at a terminal shows it.",
}
# What came of asking the person to allow an operation that was refused.
PERMISSIONS = {
    "accept": "The user allows it once: make the same call again.",
    "reject": "The user does not allow it: do not ask again.",
    "open": "A page to allow it is open in the user's browser; it is not answered yet.",
    "declined": "The user does not want to look at it now: it waits (`memoranda allow asked`).",
    "queued": "It waits for the user: `memoranda allow asked` at a terminal shows it.",
}


def remembered(done: Remembered) -> str:
    lines = [f"Remembered as {done.id} in {done.path} of the Home {done.home}."]
    if done.supersedes and done.proposal:
        lines.append(f"It proposes to supersede {', '.join(done.supersedes)}, and does when a person has reviewed it.")
    elif done.supersedes:
        lines.append(f"It supersedes {', '.join(done.supersedes)}.")
    lines += [f"Source: {source}" for source in done.sources]
    return "\n".join(lines)


def review_queue(waiting: Sequence[Mapping[str, object]], contested: Sequence[Mapping[str, object]]) -> str:
    lines = [f"{len(waiting)} waiting for the user's review, {len(contested)} contradicting each other."]
    lines += [f"{item['id']} {item['state']} ({item['kind']})" for item in waiting[:_MOST_WAITING]]
    lines += [f"{group['reason']}: {group['notes']}" for group in contested[:_MOST_WAITING]]
    lines.append("The user sees them with `memoranda review list` at a terminal.")
    return "\n".join(lines)


def appended(done: Appended) -> str:
    return f"Written to the journal as {done.id}.\nPointer: {done.uri}"


def forgotten(done: Forgotten) -> str:
    """What a forgetting did, in two parts; no path, which repeats words of somebody's note."""
    verb = "Would be removed" if done.dry_run else "Removed"
    lines = [f"{verb}: {item.id} ({item.why})" for item in done.removed]
    if done.needs_person:
        lines.insert(0, f"Only the user can do this, at a terminal: {done.needs_person}")
    left = (item.why if "/" in item.what else f"{item.what}: {item.why}" for item in done.remains)
    lines += [f"Could not be removed: {told}" for told in left]
    return "\n".join(lines)


def with_hints(text: str, hints: Iterable[str]) -> str:
    return "\n".join([text, *(f"Hint: {hint}" for hint in hints)])
