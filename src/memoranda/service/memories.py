"""Memories of an agent: remember, recall, search, list, read, update, forget, purge, and what a person does to them."""

from __future__ import annotations

from memoranda.context import Context
from memoranda.engines.contract import (
    ExportRequest,
    Gone,
    Item,
    OperationContext,
    Place,
    Purged,
    PurgeRequest,
    RecallRequest,
    RememberRequest,
    Scope,
    ScoredItem,
    UpdateRequest,
)
from memoranda.engines.exporting import Exported
from memoranda.errors import ConfirmationRequired, EngineUnavailable
from memoranda.governance.injection import Verdict
from memoranda.notes.tokens import count_tokens
from memoranda.service.answers import (
    Budget,
    History,
    Link,
    Page,
    RecallAnswer,
    ReviewRequest,
    SearchAnswer,
    Segment,
    TaintAnswer,
    TaintRequest,
)
from memoranda.service.caller import Caller
from memoranda.service.case import Case
from memoranda.service.cursors import seal, unseal
from memoranda.service.desk import Desk
from memoranda.service.guards import refuse_unkept
from memoranda.service.idempotency import once
from memoranda.service.pipeline import perform
from memoranda.service.places import writable
from memoranda.values import replace

BUDGET = 2000  # tokens of a recall that names none
_PAGES = 10  # of 200 items each that are looked through for what waits


def remember(
    desk: Desk, caller: Caller, agent_id: str, new: RememberRequest, *, idempotency_key: str | None = None
) -> Item:
    """Keeps one memory; durable when it returns."""
    fields = [("content", new.content), ("subject", new.subject or ""), ("source", new.source or "")]
    fields += [("source", source) for source in new.sources]
    case = Case(
        desk, caller, "remember", agent_id, scope=new.scope, team=new.team, session=new.session_id, kind=new.kind,
        classification=new.classification, fields=tuple((name, text) for name, text in fields if text),
        labels={"origin": new.origin, "legal_hold": new.legal_hold},
    )  # fmt: skip

    def keep(case: Case) -> Item:
        kept, infer = _by_policy(case, new), case.policy.policy.infer
        return case.engine.remember(case.context, case.where, kept, **({"infer": True} if infer else {}))

    def done() -> Item:
        return perform(case, keep, items=lambda item: (item.id,))

    def again(item_id: str) -> Item:
        def read(case: Case) -> Item:  # what was written there, whether or not the policy lets anybody read there
            return _again(case, tuple(filter(None, (case.where.writes,))), item_id)

        return perform(case, read, items=lambda item: (item.id,))

    return once(case, idempotency_key, new, Item, done, again)


def _again(case: Case, places: tuple[Place, ...], item_id: str) -> Item:
    """What came of the first call, as it stands in these places, which it may have been written to."""
    where = case.where.model_copy(update={"reads": places})
    return _withheld(case, (case.engine.get(case.context, where, item_id, exact=True),))[0]


def _by_policy(case: Case, new: RememberRequest) -> RememberRequest:
    """As the policy has it: the shorter retention, a hold that is on for everything, and all sources in one list."""
    policy = case.policy.policy
    days = [days for days in (new.retention_days, policy.retention_days) if days is not None]
    sources = (*new.sources, *((new.source,) if new.source else ()))
    return new.model_copy(
        update={
            "retention_days": min(days, default=None), "legal_hold": new.legal_hold or policy.legal_hold,
            "source": None, "sources": tuple(dict.fromkeys(sources)),
        }
    )  # fmt: skip


def recall(desk: Desk, caller: Caller, agent_id: str, asked: RecallRequest) -> RecallAnswer:
    """What is remembered about a question, as segments for a context manager, within a budget of tokens."""
    limit = asked.budget or BUDGET

    def answer(case: Case) -> RecallAnswer:
        found = _found(case, asked)
        segments: list[Segment] = []
        used = 0
        for item in found.items:
            cost = count_tokens(item.envelope)
            if used + cost > limit:
                continue
            used += cost
            bare = item.model_copy(update={"content": None, "envelope": ""})
            segments.append(Segment(content=item.envelope, item=bare))
        return RecallAnswer(segments=tuple(segments), coverage=found.coverage, budget=Budget(limit=limit, used=used))

    case = _asking(desk, caller, "recall", agent_id, asked)
    return perform(case, answer, items=lambda answer: [segment.item.id for segment in answer.segments])


def search(desk: Desk, caller: Caller, agent_id: str, asked: RecallRequest) -> SearchAnswer:
    """What is found for a question, with scores."""
    case = _asking(desk, caller, "search", agent_id, asked)
    return perform(case, lambda case: _found(case, asked), items=lambda answer: [item.id for item in answer.items])


def _asking(desk: Desk, caller: Caller, operation: str, agent_id: str, asked: RecallRequest) -> Case:
    return Case(desk, caller, operation, agent_id, scopes=asked.scopes, session=asked.session_id)


def _found(case: Case, asked: RecallRequest) -> SearchAnswer:
    """What the engine found, past the filter: a blocked item is dropped and counted, a doubtful one labelled."""
    top = asked.top_k or case.policy.policy.recall_top_k
    found = case.engine.recall(case.context, case.where, asked.model_copy(update={"top_k": top}))
    for instance in found.coverage.failed:  # some answered, and what they said is given; that others did not is told
        case.desk.audit.note(case.context, case.event(outcome="failure", code=EngineUnavailable.code, engine=instance))
    items, blocked = _filtered(case, found.items[:top])
    coverage = found.coverage.model_copy(update={"blocked": found.coverage.blocked + blocked})
    return SearchAnswer(items=items, coverage=coverage)


def _filtered(case: Case, items: tuple[ScoredItem, ...]) -> tuple[tuple[ScoredItem, ...], int]:
    if case.desk.injection.own and case.engine is case.desk.builtin:
        return items, 0  # what builtin finds has passed it already
    verdicts = _judged(case, [item.content or "" for item in items])
    kept = tuple(
        item.model_copy(update={"suspicious": verdict.suspicious}) if verdict.suspicious else item
        for item, verdict in zip(items, verdicts, strict=True)
        if not verdict.blocked
    )
    return kept, len(items) - len(kept)


def _judged(case: Case, texts: list[str]) -> list[Verdict]:
    return case.desk.injection.judge(texts) if texts else []


def list_items(
    desk: Desk,
    caller: Caller,
    agent_id: str,
    *,
    scope: Scope | None = None,
    limit: int = 50,
    cursor: str | None = None,
    include_content: bool = False,
    session_id: str | None = None,
) -> Page:
    """One page of what holds now, newest first. It stays right while items come and go."""
    case = Case(desk, caller, "list", agent_id, scope=scope, session=session_id)

    def page(case: Case) -> Page:
        where = case.where
        about = (where.user, where.agent, where.project, scope or "", session_id or "")
        after = None if cursor is None else unseal(desk.keys, case.tenant, about, cursor)
        listed = case.engine.list(
            case.context, where, scope=scope, limit=limit, after=after, words=include_content
        )  # fmt: skip
        items = listed.items if include_content else tuple(_bare(item) for item in listed.items)
        following = None if listed.next is None else seal(desk.keys, case.tenant, about, listed.next)
        return Page(items=_withheld(case, items), next_cursor=following)

    return perform(case, page, items=lambda page: [item.id for item in page.items])


def _bare(item: Item) -> Item:
    return item.model_copy(update={"content": None})


def _withheld(case: Case, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Without the words that the filter blocks, for everybody but a person, who has to see them to decide."""
    if case.caller.identity.kind == "user":
        return items
    return tuple(
        item.model_copy(update=less | {"content_withheld": True}) if less else item
        for item, less in zip(items, _blocked(case, items), strict=True)
    )


def _blocked(case: Case, items: tuple[Item, ...]) -> list[dict[str, object]]:
    """Of each item what the filter blocks, as the fields without it: its content, or what names it."""
    texts = [text for item in items for text in (item.content or "", "\n".join((item.subject or "", *item.sources)))]
    verdicts = iter(_judged(case, texts) if any(map(str.strip, texts)) else [Verdict(False)] * len(texts))
    found = []
    for content, names in zip(verdicts, verdicts, strict=True):
        less: dict[str, object] = {"content": None} if content.blocked else {}
        found.append(less | ({"subject": None, "sources": ()} if names.blocked else {}))
    return found


def get(
    desk: Desk, caller: Caller, agent_id: str, item_id: str, *, exact: bool = False, session_id: str | None = None
) -> Item:
    """One item: the head of its chain, or with `exact` the very one."""
    case = Case(desk, caller, "get", agent_id, session=session_id)

    def read(case: Case) -> Item:
        return _withheld(case, (case.engine.get(case.context, case.where, item_id, exact=exact),))[0]

    return perform(case, read, items=lambda item: (item.id,))


def update(
    desk: Desk,
    caller: Caller,
    agent_id: str,
    item_id: str,
    change: UpdateRequest,
    *,
    if_match: str | None = None,
    idempotency_key: str | None = None,
    session_id: str | None = None,
) -> Item:
    """Supersedes an item; the answer is the new one, under its own id."""
    case = Case(desk, caller, "update", agent_id, session=session_id, fields=(("content", change.content),))

    def supersede(case: Case) -> Item:
        where, policy = changeable(case), case.policy.policy
        head = case.engine.get(case.context, where, item_id)
        refuse_unkept(policy, head.kind, head.classification)  # what it takes over is kept anew
        return case.engine.update(
            case.context, where, item_id, change, if_match=if_match, retention_days=policy.retention_days,
            legal_hold=policy.legal_hold,
        )  # fmt: skip

    def done() -> Item:
        return perform(case, supersede, items=lambda item: (item.id, *item.supersedes))

    def again(made: str) -> Item:
        return perform(case, lambda case: _again(case, changeable(case).reads, made), items=lambda item: (item.id,))

    return once(case, idempotency_key, (item_id, if_match, change), Item, done, again)


def _whoever(case: Case) -> Context:
    """For taking away: what a person has reviewed goes when a person asks, and not when an agent does."""
    return replace(case.context, person=case.caller.identity.kind == "user")


def changeable(case: Case) -> OperationContext:
    """The context in which only what may be written is there at all."""
    places: tuple[Place, ...] = writable(case.desk, case.caller, case.agent, case.policy, case.session)
    return case.where.model_copy(update={"reads": places})


def forget(
    desk: Desk,
    caller: Caller,
    agent_id: str,
    item_id: str,
    *,
    if_match: str | None = None,
    idempotency_key: str | None = None,
    session_id: str | None = None,
) -> Gone:
    """Ends an item's whole chain, so that no predecessor comes back to life."""
    case = Case(desk, caller, "forget", agent_id, session=session_id)

    def end(case: Case) -> Gone:
        return case.engine.forget(_whoever(case), changeable(case), item_id, if_match=if_match)

    def done() -> Gone:
        return perform(case, end, items=lambda gone: (gone.id,))

    return once(case, idempotency_key, (item_id, if_match), Gone, done)


def purge(
    desk: Desk, caller: Caller, agent_id: str, asked: PurgeRequest, *, idempotency_key: str | None = None
) -> Purged:
    """Empties one scope of what is the caller's to write there."""
    case = Case(desk, caller, "purge", agent_id, scope=asked.scope, team=asked.team, session=asked.session_id)

    def empty(case: Case) -> Purged:
        if not asked.confirm:
            raise ConfirmationRequired(
                "Nothing was removed: a purge takes everything in a scope and has to be confirmed.",
                remedy="Send `confirm: true`.",
            )
        return case.engine.purge(_whoever(case), case.where)

    return once(case, idempotency_key, asked, Purged, lambda: perform(case, empty))


def history(desk: Desk, caller: Caller, agent_id: str, item_id: str, *, session_id: str | None = None) -> History:
    """The chain of an item, oldest first."""
    case = Case(desk, caller, "history", agent_id, session=session_id)

    def chain(case: Case) -> History:
        links = case.engine.history(case.context, case.where, item_id)
        shown = _withheld(case, tuple(link.item for link in links))
        told = zip(links, shown, strict=True)
        return History(
            id=item_id,
            links=tuple(
                Link(item=item, head=link.head, held_from=link.held_from, held_to=link.held_to) for link, item in told
            ),
        )

    return perform(case, chain, items=lambda chain: [link.item.id for link in chain.links])


def export(
    desk: Desk, caller: Caller, agent_id: str, asked: ExportRequest, *, session_id: str | None = None
) -> Exported:
    """What the caller may read of the scopes, as files: a zip that opens as a Home, lines of JSON, or a Git bundle.

    An agent is given none of what the filter blocks, and so no bundle of a Home that holds it.
    """
    case = Case(desk, caller, "export", agent_id, scopes=asked.scopes, session=session_id)

    def give(case: Case) -> Exported:
        passes = None if caller.identity.kind == "user" else lambda items: [not less for less in _blocked(case, items)]
        return case.engine.export(case.context, case.where, asked.scopes, asked.format, passes=passes)

    return perform(case, give, items=lambda exported: [note["id"] for note in exported.manifest.get("notes", ())])


def review(desk: Desk, caller: Caller, agent_id: str, item_id: str, verdict: ReviewRequest) -> Item:
    """A person's verdict on the exact content of an item."""
    case = Case(
        desk, caller, "review", agent_id, relation="editor", people_only=True, fields=(("comment", verdict.comment),)
    )

    def decide(case: Case) -> Item:
        return case.engine.review(
            case.context, case.where, item_id, verdict.verdict, comment=verdict.comment,
            reviewer=caller.identity.user, if_match=verdict.etag,
        )  # fmt: skip

    return perform(case, decide, items=lambda item: (item.id,))


def waiting(
    desk: Desk, caller: Caller, agent_id: str, states: frozenset[str], *, session_id: str | None = None
) -> tuple[Item, ...]:
    """What waits for a person's review among what the caller may read, newest first: labels, and no words."""
    case = Case(desk, caller, "list", agent_id, session=session_id)

    def look(case: Case) -> tuple[Item, ...]:
        found: list[Item] = []
        after: tuple[str, str] | None = None
        for _ in range(_PAGES):
            page = case.engine.list(case.context, case.where, scope=None, limit=200, after=after, words=False)
            found += [item for item in page.items if item.trust in states]
            after = page.next
            if after is None:
                break
        less = {"content": None, "subject": None, "sources": ()}
        return tuple(item.model_copy(update=less) for item in found)

    return perform(case, look, items=lambda items: [item.id for item in items])


def taint(desk: Desk, caller: Caller, agent_id: str, session_id: str | None, told: TaintRequest) -> TaintAnswer:
    """Raises the taint of a session, or of what goes on without one; nothing that an agent says lowers it."""
    case = Case(desk, caller, "taint", agent_id, session=session_id, fields=(("reason", told.reason),))

    def raise_taint(case: Case) -> TaintAnswer:
        labels = desk.builtin.taint(case.context, case.where, told.reason)
        return TaintAnswer(session_id=session_id or "", taint=tuple(labels))

    return perform(case, raise_taint)
