"""A recall from Mem0: every place is asked at the same time, and what comes is held against our own rows at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from memoranda.context import Context
from memoranda.engines.contract import Coverage, Found, OperationContext, Place, Pointer, RecallRequest, ScoredItem
from memoranda.engines.foreign import Standing, readable, standings
from memoranda.engines.mem0_reading import places_of
from memoranda.engines.mem0_routes import MOST, Memory, Routes
from memoranda.engines.mem0_rows import is_ours, words_of
from memoranda.engines.naming import Named
from memoranda.engines.outside import Outside
from memoranda.engines.records import Record
from memoranda.engines.together import Begun, at_once, begin
from memoranda.notes.times import parse_instant
from memoranda.operations.asking import TOP
from memoranda.values import dataclass

_WITHHELD = 3  # pointers to what is from outside and not shown
_At = tuple[Place, Named]  # a place, under one of the names that it has had


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked, by whom, of which places; `limit` is how many are asked for of each at first."""

    where: OperationContext
    text: str
    kinds: tuple[str, ...]
    places: Sequence[_At]
    as_of: datetime | None
    known_at: datetime | None
    top: int

    @property
    def limit(self) -> int:
        return min(self.top * 2 + 10, MOST)


class Recalling:
    """How one instance is asked."""

    def __init__(self, outside: Outside, routes: Routes) -> None:
        self._outside, self._routes = outside, routes

    def recall(self, context: Context, where: OperationContext, asked: RecallRequest) -> Found:
        """What is found, best first."""
        question = self._question(where, asked)
        return self._found(context, question, at_once(self._searches(question, question.places, question.limit)))

    def begin(self, context: Context, where: OperationContext, asked: RecallRequest) -> Begun[Found]:
        """The same, whose questions are on their way when this returns."""
        question = self._question(where, asked)
        searches = self._searches(question, question.places, question.limit)
        return begin(searches, lambda answers: self._found(context, question, answers))

    def _question(self, where: OperationContext, asked: RecallRequest) -> _Question:
        naming, instance = self._outside.naming, self._outside.instance
        places = places_of(where, asked.scopes)
        return _Question(
            where, asked.query, tuple(asked.kinds),
            [(place, named) for place in places for named in naming.places(instance, where, place)],
            _time(asked.as_of, "as_of"), _time(asked.known_at, "known_at"), asked.top_k or TOP,
        )  # fmt: skip

    def _searches(self, asked: _Question, places: Sequence[_At], limit: int) -> list[Callable[[], list[Memory]]]:
        search = partial(self._routes.search, asked.where.tenant)
        return [partial(search, named, asked.text, limit, expired=True) for _, named in places]

    def _found(self, context: Context, asked: _Question, answers: Sequence[list[Memory]]) -> Found:
        now, company, instance = context.now(), self._outside.company, self._outside.instance
        found = sorted(self._standing(asked, answers, now), key=lambda pair: (-pair[1], pair[0].record.id))
        hides = any(one.quarantined for one, _ in found) and company.withholds(context, asked.where)
        shown = [(one, score) for one, score in found if not (hides and one.quarantined)][: asked.top]
        company.meet(context, asked.where, [one.shown() for one, _ in shown])
        withheld = [one.record for one, _ in found if hides and one.quarantined][:_WITHHELD]
        pointers = tuple(Pointer(id=r.id, kind=r.kind, at=r.created_at) for r in withheld)
        coverage = Coverage(engines=(instance,), withheld=pointers)
        return Found(items=tuple(self._scored(one, score, now) for one, score in shown), coverage=coverage)

    def _standing(
        self, asked: _Question, answers: Sequence[list[Memory]], now: datetime
    ) -> list[tuple[Standing, float]]:
        """What stands of all places; a place is asked for more when what does not stand has taken the room."""
        found: dict[str, tuple[Standing, float]] = {}
        places, limit, records = asked.places, asked.limit, self._outside.records
        while True:
            ids = [hit.id for hits in answers for hit in hits]
            rows, chains = records.with_chains(asked.where.tenant, self._outside.instance, ids)
            again = []
            for at, hits in zip(places, answers, strict=True):
                theirs = _theirs(asked, at, hits, rows, now)
                pairs = [(row, words_of(row, hit)) for row, hit in theirs]
                stands = standings(records, pairs, now, asked.known_at, chains)
                seen = [
                    (one, hit.score) for one, (_, hit) in zip(stands, theirs, strict=True)
                    if one.visible(now, asked.as_of, asked.known_at)
                ]  # fmt: skip
                if len(seen) < asked.top and len(hits) >= limit and limit < MOST:
                    again.append(at)
                else:
                    found |= {one.record.id: (one, score) for one, score in seen}
            if not again:
                return list(found.values())
            places, limit = again, min(limit * 4, MOST)
            answers = at_once(self._searches(asked, places, limit))

    def _scored(self, one: Standing, score: float, now: datetime) -> ScoredItem:
        fields = one.fields(now)
        labels = {
            "state": one.trust, "taint": ",".join(one.taint.labels), "about": one.words.subject or "",
            "generated": "yes" if one.record.generated else "",
            **{f"source{n}": source for n, source in enumerate(one.words.sources[:3], 1)},
        }  # fmt: skip
        instance = self._outside.instance
        envelope = self._outside.envelope.wrap(one.record.id, instance, one.words.content, labels)
        why = {"engine": instance, "similarity": round(score, 6)}
        return ScoredItem(**fields, score=round(score, 6), why=why, envelope=envelope)


def _theirs(
    asked: _Question, at: _At, hits: Sequence[Memory], rows: Mapping[str, Record], now: datetime
) -> list[tuple[Record, Memory]]:
    """Of what was found, what is an item of this place that a question may find."""
    place, named = at
    here = asked.where.model_copy(update={"reads": (place,)})
    return [
        (row, hit) for hit in hits
        if (row := rows.get(hit.id)) is not None and row.recalled and readable(row, here)
        and is_ours(row, named, hit) and not row.due(now) and (not asked.kinds or row.kind in asked.kinds)
    ]  # fmt: skip


def _time(text: str | None, what: str) -> datetime | None:
    return None if text is None else parse_instant(text, what=what, end_of_day=True)
