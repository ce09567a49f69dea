"""Which notes an asker may be shown: those that held at one time as it was known at another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memoranda.index.catalog import Catalog
from memoranda.index.retention import gone_with
from memoranda.index.rows import Brief
from memoranda.notes.times import to_ms
from memoranda.trust.edited import edited
from memoranda.trust.kept import ended
from memoranda.trust.standing import believed
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    """The two times of a question. None means now, and is looser: what has ended without a successor still shows.

    `history` shows superseded notes too.
    """

    now: datetime
    as_of: datetime | None = None
    known_at: datetime | None = None
    history: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """How a note stands: `state` is current, ended, future or superseded; `superseded_by` names its successors."""

    brief: Brief
    state: str
    superseded_by: tuple[str, ...] = ()


class Visibility:
    """Judges candidates of one Home for one question.

    `edited` holds the last reviewed bytes of the notes whose files say something else: these stand beside those.
    """

    def __init__(self, catalog: Catalog, asked: Asked) -> None:
        self._catalog = catalog
        self._asked = asked
        self._at = to_ms(asked.as_of or asked.now) or 0
        self._known_s = None if asked.known_at is None else int(asked.known_at.timestamp())
        self.edited = edited(catalog, asked.known_at)
        self._stand = frozenset(state.row for state in self.edited.values())

    def judge(self, briefs: dict[str, list[Brief]]) -> dict[str, Standing]:
        """key -> the standing of the note that may be shown; keys whose notes may not be seen are left out."""
        known = {key: brief for key, rows in briefs.items() if (brief := self._known(rows)) is not None}
        gone = ended(self._catalog, self._asked.now, (brief.id for brief in known.values()))
        found: dict[str, Standing] = {}
        for key, brief in known.items():
            if brief.id in gone:
                continue
            standing = self._chained(brief) if brief.linked else self._alone(brief)
            if standing is not None:
                found[key] = standing
        return found

    def _known(self, rows: Sequence[Brief]) -> Brief | None:
        """The row that was known then; the one with the lowest path when files share their text."""
        at, history = self._known_s, self._asked.history
        if at is None and len(rows) == 1:  # the usual case
            return rows[0] if history or self._there(rows[0]) else None
        fit = [row for row in rows if self._there(row) or (history and (at is None or row.known_from <= at))]
        return min(fit, key=lambda row: (not row.live, row.path, row.row), default=None)

    def _there(self, row: Brief) -> bool:
        """Whether the file says this, as it was known then, or it stands as its last reviewed bytes."""
        if row.row in self._stand:
            return True
        if self._known_s is None:
            return bool(row.live)
        return row.known_from <= self._known_s and (row.known_to is None or self._known_s < row.known_to)

    def _alone(self, brief: Brief) -> Standing | None:
        start, end = brief.valid_from, brief.valid_to
        state = "current" if self._known_s is not None or self._there(brief) else "superseded"
        if start is not None and end is not None and end <= start:
            return self._judged(brief, None, None, False, (), state)
        return self._judged(brief, start, end, True, (), state)

    def _chained(self, brief: Brief) -> Standing | None:
        from memoranda.notes.chains import Chains  # here: most recalls meet no chain

        asked = self._asked
        rows = self._catalog.component(brief.id, asked.known_at)
        if not any(row.id == brief.id for row in rows):
            rows = [*rows, *self._catalog.rows([brief.row])]  # a former state, shown with --history
        links = believed(self._catalog, rows)
        gone = ended(self._catalog, asked.now, (link.id for link in links))
        if gone and brief.id in gone_with({link.id: link.supersedes for link in links}, gone):
            return None
        chains = Chains(links)
        heads = chains.heads_of(brief.id, asked.known_at)
        after = tuple(other for other in chains.successors(brief.id) if other != brief.id)
        # Asked about now, a note counts from the moment in which it was written, whatever the asker's clock says.
        held = chains.effective(brief.id, asked.known_at or max(link.known_from for link in links))
        there = self._known_s is not None or self._there(brief)
        state = "current" if brief.id in heads and there else "superseded"
        if held is None:
            return self._judged(brief, None, None, False, after, state)
        if brief.id in self.edited and brief.row not in self._stand:  # it proposes an interval of its own
            return self._judged(brief, brief.valid_from, brief.valid_to, True, after, state)
        return self._judged(brief, to_ms(held.start), to_ms(held.end), True, after, state)

    def _judged(
        self, brief: Brief, start: int | None, end: int | None, held: bool, after: tuple[str, ...], state: str
    ) -> Standing | None:
        holds = held and (start is None or start <= self._at)
        if brief.kind != "episodic":  # an episode is a record: it begins and does not end
            holds = holds and (end is None or self._at < end)
        future = held and start is not None and self._at < start
        if self._asked.as_of is not None:
            if holds:
                return Standing(brief, state, after)
            return Standing(brief, "future" if future else "ended", after) if self._asked.history else None
        if state == "superseded":
            # A successor that begins later than the moment asked about has not taken over yet.
            if holds and after:
                return Standing(brief, "current", after)
            return Standing(brief, state, after) if self._asked.history else None
        return Standing(brief, "current" if holds else "future" if future else "ended", after)
