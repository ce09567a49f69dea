"""Edits that a person makes in files of a Home in which nobody else writes: reviewed at once, where he has set that.

The setting lies outside the Home (`faces.local`), so that no file in it says so. What bears a taint, what came through
Git, what contradicts something and what is found where signed reviews are asked for waits for a review as ever.
"""

from __future__ import annotations

from memoranda.context import Context
from memoranda.home.draft import Draft
from memoranda.operations.attesting import Decision, attested
from memoranda.operations.open_home import OpenHome, undisturbed
from memoranda.operations.settling import contested_groups
from memoranda.trust.standing import trust_of

COMMENT = "trust_edits: edited in a file, in a Home in which this person alone writes"


def review_edits(context: Context, home: OpenHome) -> None:
    """Accepts what was edited since the last time, as far as it may be."""
    edits = dict(home.edits)
    decisions = _untainted(home, edits)
    if decisions:
        contested = {note["path"] for group in contested_groups(context, home) for note in group.notes}
        decisions = [decision for decision in decisions if decision.path not in contested]
    if decisions:
        lines = attested(context, home, decisions, COMMENT)
        what = decisions[0].id if len(decisions) == 1 else f"{len(decisions)} notes"
        draft = Draft("review", f"Accept {what}, edited in a file", (), lines, {}, context.user)
        home.repository.write(context, lambda _at: draft)
        home.indexes.catch_up()
    for blob in edits:
        home.edits.pop(blob, None)


@undisturbed
def _untainted(home: OpenHome, edits: dict[str, str]) -> list[Decision]:
    """The edits that stand in their files still and bear no taint, not even one that only the file admits to."""
    catalog = home.indexes.catalog
    rows = [row for blob, path in edits.items() if (row := catalog.by_path(path)) is not None and row.blob == blob]
    trust = trust_of(catalog, rows)
    return [
        Decision(row.id, row.path, row.blob, "accept")
        for row in rows
        if trust[row.blob].state in ("unclaimed", "contested") and not trust[row.blob].rejected
    ]
