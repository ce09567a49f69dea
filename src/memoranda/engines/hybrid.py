"""Several engines as one: Mem0 for memories, Cognee for knowledge, builtin for sessions.

A write goes to one of them. A recall asks all that may know something at once, within one deadline, and answers with
what came: the same words once, with every source. An agent whose engine is `mem0` has the same without the knowledge,
since the memory of sessions is builtin's whichever engine the policy names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import (
    CapabilityDocument,
    Coverage,
    Found,
    Gone,
    GraphFound,
    GraphSearchRequest,
    Health,
    Isolation,
    Item,
    Listed,
    OperationContext,
    Passage,
    Purged,
    RecallRequest,
    RememberRequest,
    Scope,
    ScoredItem,
    UpdateRequest,
)
from memoranda.engines.datasets import DatasetRow
from memoranda.engines.egress import no_later_than
from memoranda.engines.exporting import Exported
from memoranda.engines.mem0 import Mem0
from memoranda.engines.provider import KnowledgeEngine, Lasted, MemoryEngine
from memoranda.engines.together import Begun, next_ready
from memoranda.errors import MemorandaError, NotFound, Unavailable
from memoranda.notes.sameness import same_text
from memoranda.notes.times import format_instant, parse_instant
from memoranda.operations.asking import TOP

T = TypeVar("T")
DEADLINE = 10.0  # seconds of a recall, where the request has no earlier one
_RANKS = 60  # how much the first places count, as in every fusion by rank


class Hybrid:
    """`memories` and `sessions`, and where there is one `knowledge`, as one engine. Not kept: made for a call."""

    def __init__(self, memories: Mem0, sessions: Builtin, knowledge: Any = None) -> None:
        self._memories, self._sessions = memories, sessions
        self._knowledge: Any = knowledge if isinstance(knowledge, KnowledgeEngine) else None

    @property
    def instance(self) -> str:
        return self._memories.instance

    def document(self) -> CapabilityDocument:
        return self._memories.document()

    def isolation(self, tenant: str) -> Isolation:
        return self._memories.isolation(tenant)

    def health(self, context: Context) -> Health:
        return self._memories.health(context)

    # Reading

    def recall(self, context: Context, where: OperationContext, asked: RecallRequest) -> Found:
        """What any of them knows. EngineUnavailable when none answers; who did not is told in the coverage."""
        lasting, passing = _apart(where, asked.scopes)
        left_out = self._left_out(asked) if lasting.reads else ()
        elsewhere: dict[str, Callable[[], Begun[Found]]] = {}
        if lasting.reads:
            elsewhere[self.instance] = lambda: self._memories.begin(context, lasting, asked)
            if self._knowledge is not None and not left_out:
                elsewhere[self._knowledge.instance] = lambda: self._known(context, lasting, asked)
        here: dict[str, Callable[[], Found]] = {}
        if passing.reads:
            here[self._sessions.instance] = lambda: self._sessions.recall(context, passing, asked)
        answers, failed = _asked(elsewhere, here)
        if failed and not answers:
            raise next(iter(failed.values()))
        if len(answers) == 1 and not failed:  # nobody else was asked: its scores are its own
            return _noticed(next(iter(answers.values())), left_out)
        return _noticed(merged(answers, failed, asked.top_k or TOP), left_out)

    def _left_out(self, asked: RecallRequest) -> tuple[str, ...]:
        """Why knowledge is not asked this, if it is not: what it holds cannot be told apart by that."""
        if self._knowledge is None:
            return ()
        if asked.as_of is not None or asked.known_at is not None:
            return (f"{self._knowledge.instance} was not asked: its documents do not say when they held.",)
        if asked.kinds:
            return (f"{self._knowledge.instance} was not asked: its documents are not told apart by kind.",)
        return ()

    def _known(self, context: Context, where: OperationContext, asked: RecallRequest) -> Begun[Found]:
        request = GraphSearchRequest(query=asked.query, top_k=min(asked.top_k or TOP, 100))
        begun: Begun[tuple[GraphFound, Mapping[str, DatasetRow]]] = self._knowledge.begin(context, where, request)
        return begun.then(self._as_found)

    def _as_found(self, told: tuple[GraphFound, Mapping[str, DatasetRow]]) -> Found:
        found, datasets = told
        items = tuple(
            _as_item(self._knowledge.instance, passage, datasets[passage.dataset_id])
            for passage in found.passages
            if passage.dataset_id in datasets
        )
        return Found(items=items, coverage=found.coverage)

    def get(self, context: Context, where: OperationContext, item_id: str, *, exact: bool = False) -> Item:
        def read(engine: MemoryEngine, its: OperationContext) -> Item:
            return engine.get(context, its, item_id, exact=exact)

        return self._whose(where, read)

    def list(
        self, context: Context, where: OperationContext, *, scope: Scope | None, limit: int,
        after: tuple[str, str] | None, words: bool = True,
    ) -> Listed:  # fmt: skip
        """Memories and those of the session, newest first, from where each of the two lists ended."""
        lasting, passing = _apart(where, () if scope is None else (scope,))
        ended: list[Any] = json.loads(after[0]) if after is not None else [None, None]
        parts: list[tuple[int, Item]] = []
        both: tuple[tuple[MemoryEngine, OperationContext], ...] = (self._memories, lasting), (self._sessions, passing)
        for n, (engine, its) in enumerate(both):
            if its.reads:
                place = None if ended[n] is None else (str(ended[n][0]), str(ended[n][1]))
                page = engine.list(context, its, scope=None, limit=limit + 1, after=place, words=words)
                parts += [(n, item) for item in page.items]
        parts.sort(key=lambda part: (str(part[1].recorded_at or ""), part[1].id), reverse=True)
        shown, more = parts[:limit], len(parts) > limit
        for n, item in shown:
            ended[n] = self._place_of(where, n, item)
        following = (json.dumps(ended, separators=(",", ":")), "") if more else None
        return Listed(items=tuple(item for _, item in shown), next=following)

    def _place_of(self, where: OperationContext, n: int, item: Item) -> tuple[str, str]:
        if n == 0:
            return self._memories.place_of(where, item.id)
        return str(int(parse_instant(str(item.recorded_at)).timestamp())), item.id

    def history(self, context: Context, where: OperationContext, item_id: str) -> tuple[Lasted, ...]:
        return self._whose(where, lambda engine, its: engine.history(context, its, item_id))

    def export(
        self, context: Context, where: OperationContext, scopes: Sequence[Scope], form: str, *,
        passes: Callable[[tuple[Item, ...]], Sequence[bool]] | None = None,
    ) -> Exported:  # fmt: skip
        """What lies in Mem0; the memory of a session when its scope alone is asked for."""
        if tuple(scopes) == ("session",):
            return self._sessions.export(context, where, scopes, form, passes=passes)
        lasting, _ = _apart(where, scopes)
        return self._memories.export(context, lasting, (), form, passes=passes)

    # Writing

    def remember(self, context: Context, where: OperationContext, new: RememberRequest, *, infer: bool = False) -> Item:
        """To one engine: what belongs to a session to builtin, everything else to Mem0."""
        if where.writes is not None and where.writes.scope == "session":
            return self._sessions.remember(context, where, new)
        return self._memories.remember(context, where, new, infer=infer)

    def update(
        self, context: Context, where: OperationContext, item_id: str, change: UpdateRequest, *, if_match: str | None,
        retention_days: int | None = None, legal_hold: bool = False,
    ) -> Item:  # fmt: skip
        def supersede(engine: MemoryEngine, its: OperationContext) -> Item:
            return engine.update(
                context, its, item_id, change, if_match=if_match, retention_days=retention_days, legal_hold=legal_hold
            )

        return self._whose(where, supersede)

    def forget(self, context: Context, where: OperationContext, item_id: str, *, if_match: str | None) -> Gone:
        engines = [self._knowledge] if self._knowledge is not None else []

        def end(engine: MemoryEngine, its: OperationContext) -> Gone:
            return engine.forget(context, its, item_id, if_match=if_match)

        return self._whose(where, end, engines)

    def review(
        self, context: Context, where: OperationContext, item_id: str, verdict: Literal["accept", "reject"], *,
        comment: str, reviewer: str, if_match: str | None,
    ) -> Item:  # fmt: skip
        def decide(engine: MemoryEngine, its: OperationContext) -> Item:
            return engine.review(context, its, item_id, verdict, comment=comment, reviewer=reviewer, if_match=if_match)

        return self._whose(where, decide)

    def purge(self, context: Context, where: OperationContext) -> Purged:
        """One place, in each of them. What one did not do is told; EngineUnavailable when none did anything."""
        several: dict[str, Callable[[], Purged]] = {
            self._sessions.instance: lambda: self._sessions.purge(context, where)
        }
        if where.writes is None or where.writes.scope != "session":
            several[self.instance] = lambda: self._memories.purge(context, where)
            if self._knowledge is not None:
                several[self._knowledge.instance] = lambda: self._knowledge.purge(context, where)
        done: dict[str, Purged] = {}
        failed: dict[str, Unavailable] = {}
        for name, call in several.items():
            try:
                done[name] = call()
            except Unavailable as error:
                failed[name] = error
        if failed and not any(one.removed for one in done.values()):
            raise next(iter(failed.values()))
        remains = [line for one in done.values() for line in one.remains]
        remains += [f"all that lies in {name}: it did not answer; purge again" for name in failed]
        return Purged(removed=sum(one.removed for one in done.values()), remains=tuple(dict.fromkeys(remains)))

    # Between

    def _whose(
        self, where: OperationContext, call: Callable[[MemoryEngine, OperationContext], T], others: Iterable[Any] = ()
    ) -> T:
        """What the engine that has the item gives; NotFound when none of them has it."""
        lasting, passing = _apart(where, ())
        missing: NotFound | None = None
        for engine, its in ((self._memories, lasting), (self._sessions, passing), *((o, lasting) for o in others)):
            if its.reads or missing is None:
                try:
                    return call(engine, its)
                except NotFound as error:
                    missing = missing or error
        assert missing is not None
        raise missing


def merged(answers: dict[str, Found], failed: dict[str, Unavailable], top: int) -> Found:
    """One answer of several: by rank, since scores of different engines say different things; the same words once."""
    scores: dict[str, float] = {}
    items: dict[str, ScoredItem] = {}
    for name, found in answers.items():
        for rank, item in enumerate(found.items, 1):
            words = same_text(item.content or "")
            scores[words] = scores.get(words, 0.0) + 1 / (_RANKS + rank)
            items[words] = _joined(items[words], item) if words in items else _of(item, name)
    order = sorted(items, key=lambda words: (-scores[words], items[words].id))[:top]
    told = [found.coverage for found in answers.values()]
    searched = [coverage.searched for coverage in told if coverage.searched is not None]
    coverage = Coverage(
        engines=tuple(answers), searched=sum(searched) if searched else None,
        blocked=sum(one.blocked for one in told), withheld=tuple(p for one in told for p in one.withheld)[:3],
        notices=(*(n for one in told for n in one.notices), *(f"{name} did not answer." for name in failed)),
        failed=tuple(failed),
    )  # fmt: skip
    return Found(
        items=tuple(items[words].model_copy(update={"score": round(scores[words], 6)}) for words in order),
        coverage=coverage,
    )


def _noticed(found: Found, more: Sequence[str]) -> Found:
    if not more:
        return found
    coverage = found.coverage.model_copy(update={"notices": (*found.coverage.notices, *more)})
    return found.model_copy(update={"coverage": coverage})


def _of(item: ScoredItem, name: str) -> ScoredItem:
    return item.model_copy(update={"why": {**item.why, "found_by": {name: {"id": item.id, "score": item.score}}}})


def _joined(first: ScoredItem, other: ScoredItem) -> ScoredItem:
    """The first of two that say the same, with the sources of both, and as doubtful as the more doubtful one."""
    by = {**first.why.get("found_by", {}), other.engine: {"id": other.id, "score": other.score}}
    return first.model_copy(
        update={
            "sources": tuple(dict.fromkeys((*first.sources, *other.sources))),
            "taint": tuple(dict.fromkeys((*first.taint, *other.taint))),
            "why": {**first.why, "found_by": by},
        }
    )


def _as_item(instance: str, passage: Passage, dataset: DatasetRow) -> ScoredItem:
    """A passage of knowledge as something that was found: its id is the document's, its source the dataset."""
    told = hashlib.sha256(f"{passage.dataset_id}\n{passage.text}".encode()).hexdigest()[:24]
    return ScoredItem.model_validate(
        {
            "id": passage.source or f"passage_{told}", "engine": instance, "scope": dataset.scope,
            "owner": dataset.owner, "kind": "semantic", "content": passage.text,
            "classification": dataset.classification, "origin": "import",
            "sources": (f"engine://{instance}/{passage.dataset_id}",),
            "recorded_at": format_instant(parse_instant(dataset.created_at)),
            "score": passage.score or 0.0, "why": {"engine": instance}, "envelope": getattr(passage, "envelope", ""),
        }
    )  # fmt: skip


def _apart(where: OperationContext, scopes: Sequence[str]) -> tuple[OperationContext, OperationContext]:
    """The context with all places but the session's, and with the session's only; of these scopes, if any."""
    wanted = [place for place in where.reads if not scopes or place.scope in scopes]
    return (
        where.model_copy(update={"reads": tuple(place for place in wanted if place.scope != "session")}),
        where.model_copy(update={"reads": tuple(place for place in wanted if place.scope == "session")}),
    )


def _asked(
    elsewhere: Mapping[str, Callable[[], Begun[Found]]], here: Mapping[str, Callable[[], Found]]
) -> tuple[dict[str, Found], dict[str, Unavailable]]:
    """What each of these answers, and who of them did not, within one deadline for all. Other errors are raised.

    First every engine elsewhere is asked, then what lies here is looked up while they are at work, and then each
    answer is taken in as it comes.
    """
    told: dict[str, Found | MemorandaError] = {}
    with no_later_than(DEADLINE):
        begun: dict[str, Begun[Found]] = {}
        for name, begin in elsewhere.items():
            one = _tried(begin)
            if isinstance(one, MemorandaError):
                told[name] = one
            else:
                begun[name] = one
        told |= {name: _tried(call) for name, call in here.items()}
        while begun:
            name = next_ready(begun)
            told[name] = _tried(begun.pop(name).finish)
    answers: dict[str, Found] = {}
    failed: dict[str, Unavailable] = {}
    for name in (*elsewhere, *here):
        found = told[name]
        if isinstance(found, Unavailable):
            failed[name] = found
        elif isinstance(found, MemorandaError):
            raise found
        else:
            answers[name] = found
    return answers, failed


def _tried(call: Callable[[], T]) -> T | MemorandaError:
    try:
        return call()
    except MemorandaError as error:
        return error
