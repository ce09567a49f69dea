"""What contradicts what: the notes that a person has to decide between. No model is asked.

Three things are contradictions: one chain that ends in several heads; several files with one id and different bytes;
and two facts about one subject that give one key different values while both hold. A fact's key is its title (the
field or the first heading) or, in a text of a single line, what stands before the colon: `Closing time: six`. Facts
belong together when subject, scope and, where they name one, owner are the same. Quarantined and rejected notes
contest nothing: an attacker could put any fact in doubt with them. A file that somebody wrote supersedes no reviewed
note, and contradicts what does. A note that was edited since its review stands in it with its reviewed words. Notes of
one subject that say when they hold, and hold at the same time (`overlapping`), wait for a reader without being called
contested.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import combinations
from typing import Literal, NamedTuple

from memoranda.index.catalog import Catalog
from memoranda.index.rows import NoteRow
from memoranda.notes.chains import Chains
from memoranda.notes.lazyre import lazy
from memoranda.notes.times import Interval
from memoranda.trust.edited import as_reviewed
from memoranda.trust.overlapping import overlapping
from memoranda.trust.standing import Trust, believed, trust_of
from memoranda.values import dataclass

Reason = Literal["two heads", "same id", "other value", "same time"]

_LINE = lazy(r"[-*\s]*([^:=\n]{1,60}?)\s*[:=]\s+(\S.*)")
# Words that open a sentence and name nothing: `Note: …` twice is no contradiction.
_OPENERS = frozenset(
    "note notes todo update reminder remember fyi warning important decision question answer idea fact info tip "
    "result summary example hint caution attention".split()
)


@dataclass(frozen=True, slots=True)
class Contest:
    """Notes that contradict each other; `about` is the key, or the id that they share or all descend from."""

    reason: Reason
    about: str
    members: tuple[NoteRow, ...]


def contests(catalog: Catalog, now: datetime) -> list[Contest]:
    """Every contradiction of a Home that no person has settled, in a stable order."""
    linked = catalog.linked_notes()
    found = [*_heads(catalog, linked), *_shared(catalog, catalog.shared_ids())]
    found += _values(catalog, as_reviewed(catalog, catalog.crowded_facts()), now)
    told = [{row.row for row in contest.members} for contest in found]
    for subject, members in overlapping(catalog, now):
        if {row.row for row in members} not in told:
            found.append(Contest("same time", subject, members))
    return found


def contests_of(catalog: Catalog, rows: Sequence[NoteRow], now: datetime) -> list[Contest]:
    """The contradictions in which one of these notes has a part; cheap for the few notes of one answer.

    Without those that only hold at the same time: that waits for a reader, and puts nothing in doubt before.
    """
    ids = {row.id for row in rows}
    linked = catalog.linked(ids) | {row.id for row in rows if row.supersedes}
    found = _heads(catalog, [row for row in rows if row.id in linked])
    found += _shared(catalog, catalog.shared_ids(ids))
    keys: dict[str, set[str]] = {}
    for row in rows:
        if row.kind == "fact" and row.subject and (said := statement(row)) is not None:
            keys.setdefault(row.subject, set()).add(said[0])
    facts = [fact for subject in sorted(keys) for fact in _facts(catalog, subject, keys[subject])]
    return found + [c for c in _values(catalog, facts, now) if any(row.id in ids for row in c.members)]


def _facts(catalog: Catalog, subject: str, keys: set[str]) -> list[NoteRow]:
    """The facts about a subject that have one of these keys, by path, and perhaps some that have none."""
    heads = catalog.fact_heads(subject)
    rows = catalog.rows([row for row, title, head in heads if _plain(title) in keys or _before(head) in keys])
    return sorted(as_reviewed(catalog, rows), key=lambda row: row.path)


def _before(text: str) -> str | None:
    """What stands before the colon in the first line of a text."""
    lines = text.split("\n", text.count("\n", 0, 80) + 1)
    match = _LINE.match(next((line for line in lines if line.strip()), ""))
    return None if match is None else _plain(match[1])


def contested_by(catalog: Catalog, rows: Sequence[NoteRow], now: datetime) -> dict[str, tuple[str, ...]]:
    """id -> the ids of the notes that contradict it (its own, when files share it), of those of these notes that are
    contested.
    """
    ids = {row.id for row in rows}
    found: dict[str, dict[str, None]] = {}
    for contest in contests_of(catalog, rows, now):
        for one in contest.members:
            if one.id in ids:
                others = (other.id for other in contest.members if other.path != one.path)
                found.setdefault(one.id, {}).update(dict.fromkeys(others))
    return {note_id: tuple(sorted(others)) for note_id, others in found.items()}


def statement(row: NoteRow) -> tuple[str, str] | None:
    """(key, value) of a fact, both without case and spare white space; None when it has no key."""
    lines = [line for line in row.body.splitlines() if line.strip()]
    if row.title:
        below = lines[1:] if lines and lines[0].lstrip("# ").strip() == row.title else lines
        return _plain(row.title), _plain(" ".join(below))
    match = _LINE.fullmatch(lines[0]) if len(lines) == 1 else None
    if match is None or _plain(match[1]) in _OPENERS:
        return None
    return _plain(match[1]), _plain(match[2])


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip(" .").casefold()


def _standing(trust: Trust) -> bool:
    return trust.state != "quarantined" and not trust.rejected


def _heads(catalog: Catalog, rows: Sequence[NoteRow]) -> list[Contest]:
    found: dict[tuple[str, ...], Contest] = {}
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            continue
        chain = as_reviewed(catalog, catalog.component(row.id))
        seen.update(other.id for other in chain)
        by_id = {other.id: other for other in reversed(chain)}
        chains = Chains(believed(catalog, list(by_id.values()), files=True))
        ends = sum(not chains.successors(member) for member in by_id)
        for member in by_id if ends != 1 or chains.cycles() else ():  # of most chains there is one head
            heads = chains.heads_of(member)
            if len(heads) > 1 and heads not in found and _unsettled(catalog, [by_id[x] for x in heads]):
                found[heads] = Contest("two heads", member, tuple(by_id[x] for x in heads))
    return list(found.values())


def _shared(catalog: Catalog, ids: Iterable[str]) -> list[Contest]:
    found: list[Contest] = []
    for note_id in ids:
        rows = catalog.by_id(note_id)
        trust = trust_of(catalog, rows)
        standing = {row.blob: row for row in reversed(rows) if _standing(trust[row.blob])}
        if len(standing) > 1:
            members = sorted(standing.values(), key=lambda row: row.path)
            found.append(Contest("same id", note_id, tuple(members)))
    return found


def _values(catalog: Catalog, facts: Sequence[NoteRow], now: datetime) -> list[Contest]:
    said: dict[tuple[str, str, str], list[tuple[str, NoteRow]]] = {}
    for row in facts:
        found = statement(row)
        if found is not None:
            said.setdefault((row.subject or "", row.scope, found[0]), []).append((found[1], row))
    contests = []
    for (_, _, key), group in sorted(said.items(), key=lambda item: item[0]):
        if len({value for value, _ in group}) > 1 and (members := _disagreeing(catalog, group, now)):
            contests.append(Contest("other value", key, tuple(members)))
    return contests


def _disagreeing(catalog: Catalog, group: Sequence[tuple[str, NoteRow]], now: datetime) -> list[NoteRow]:
    """Those of these (value, note) that hold while another of them holds with another value."""
    trust = trust_of(catalog, [row for _, row in group])
    held = {row.row: _held(catalog, row, now) for _, row in group if _standing(trust[row.blob])}
    found: dict[int, NoteRow] = {}
    for (value, one), (other_value, other) in combinations(group, 2):
        mine, theirs = held.get(one.row), held.get(other.row)
        if value == other_value or mine is None or theirs is None or other.id in mine.chain:
            continue
        if one.owner and other.owner and one.owner != other.owner:
            continue
        if mine.interval.overlaps(theirs.interval) and _unsettled(catalog, [one, other]):
            found |= {one.row: one, other.row: other}
    return list(found.values())


class _Held(NamedTuple):
    """When a note holds that stands at the end of its chain, and the ids of that chain."""

    interval: Interval
    chain: frozenset[str]


def _held(catalog: Catalog, row: NoteRow, now: datetime) -> _Held | None:
    """None for a note that something supersedes, or that never held."""
    rows = catalog.component(row.id) if row.supersedes or catalog.linked([row.id]) else [row]
    links = believed(catalog, rows)
    chains = Chains(links)
    held = chains.effective(row.id, max(now, *(link.known_from for link in links)))
    if held is None or not chains.is_head(row.id):
        return None
    return _Held(held, frozenset(link.id for link in links))


def _unsettled(catalog: Catalog, rows: Sequence[NoteRow]) -> bool:
    """Whether no person has said that these stand side by side: accepted in one step, each naming the others."""
    if not catalog.ledger.has_reviews():
        return True
    pairs: set[frozenset[str]] = set()
    for review in catalog.ledger.reviews(blobs=[row.blob for row in rows]):
        beside = review.fields.get("beside")
        if review.verdict == "accept" and isinstance(beside, list):
            pairs.update(frozenset((review.blob, str(other))) for other in beside)
    return any(frozenset((one.blob, other.blob)) not in pairs for one, other in combinations(rows, 2))
