"""Recall: a question, a budget, and a view of what is remembered with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from memoranda.context import Context
from memoranda.errors import InvalidInput
from memoranda.index.analysis import analyze
from memoranda.index.recipes import NamedRecipe
from memoranda.notes.pointers import written
from memoranda.notes.words import KINDS, SCOPES
from memoranda.operations.asking import PLACES, TOP, recall_home
from memoranda.operations.open_home import OpenHome
from memoranda.operations.pipeline import Call, known_words, pass_guards
from memoranda.operations.presenting import Budget, Coverage, Item, Pointed, View, enveloped
from memoranda.operations.space import Space
from memoranda.recall.explaining import placed_by_score
from memoranda.recall.items import Found
from memoranda.recall.page import Placed, fill
from memoranda.recall.view import MANY, how_many
from memoranda.trust.labels import is_private
from memoranda.values import replace

BUDGET = 2000
_MOST = 1000
_MOST_WITHHELD = 3
_QUERY_LIMIT = 20_000  # characters


def recall(
    context: Context,
    space: Space,
    query: str,
    *,
    budget: int = BUDGET,
    k: int | None = TOP,
    kinds: Sequence[str] = (),
    subject: str | None = None,
    scopes: Sequence[str] = (),
    include: Sequence[str] = PLACES,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    at: datetime | None = None,
    history: bool = False,
    recipe: NamedRecipe | None = None,
) -> View:
    """Finds what is remembered about `query` in all open Homes and fits it into `budget` tokens.

    At most `k` items; None means as many as the budget has room for, as long as they are half as good as the best one
    (see `how_many`). `as_of` asks what held then, `known_at` what was known then, `at` sets both; each defaults to
    now. `history` shows superseded notes too. A question without words to look for has no items. With `recipe` the
    nearest Home answers by that one.

    Raises:
        InvalidInput: an unknown kind, scope or place, a budget or k out of bounds, a query that is far too long.
    """
    pass_guards(context, Call("recall", text=query))
    _check(query, budget, TOP if k is None else k, kinds, scopes, include)
    as_of, known_at = as_of or at, known_at or at
    homes = space.homes()
    clean = not any(home.sessions.met(context).taint for home in homes)
    asked = k or MANY
    while True:
        answers = [
            recall_home(
                context, home, query, k=asked, kinds=kinds, subject=subject, scopes=scopes, include=include,
                as_of=as_of, known_at=known_at, history=history, clean=clean,
                recipe=recipe if home is homes[0] else None,
            )
            for home in homes
        ]  # fmt: skip
        ranked = _best_first(homes, [answer.items for answer in answers])
        beside = _best_first(homes, [answer.beside for answer in answers])
        most = k or how_many([(item.text, item.score) for _, item in ranked], budget, TOP)
        page, blocked = fill(ranked, beside, most, budget, of=_found, fold=_words, blocks=not context.person)
        more = asked < _MOST and any(len(answer.items) >= asked for answer in answers)
        if len(page) >= most or not (blocked and more):
            break
        asked = min(_MOST, asked * 4)  # what was blocked has left places empty
    shown = [(*(ranked + beside)[placed.at], placed) for placed in page]
    _record_what_is_met(context, shown)
    withheld = [
        Pointed(w.id, w.kind, w.at, w.schemes, home.name)
        for home, answer in zip(homes, answers, strict=True)
        for w in answer.withheld
    ]
    coverage = _coverage(
        [_report(home, recipe if home is homes[0] else None) for home in homes],
        (len(ranked) if k else min(len(ranked), most + blocked)) - len(page) - blocked,
        space.notices,
    )
    coverage = replace(coverage, withheld=tuple(withheld[:_MOST_WITHHELD]), blocked=blocked)
    by_score = placed_by_score([item.score for _, item, _ in shown])
    items = [_item(*given, place) for given, place in zip(shown, by_score, strict=True)]
    return View(query, tuple(items), coverage, Budget(budget, sum(placed.form.tokens for placed in page)))


def _best_first(homes: Sequence[OpenHome], found: Sequence[Sequence[Found]]) -> list[tuple[OpenHome, Found]]:
    """Scores of two Homes are comparable as far as both use one scale; ties go to the nearer Home."""
    pairs = [(home, item) for home, items in zip(homes, found, strict=True) for item in items]
    return sorted(pairs, key=lambda pair: (-pair[1].score, homes.index(pair[0]), pair[1].id))


def _found(pair: tuple[OpenHome, Found]) -> Found:
    return pair[1]


def _check(
    query: str, budget: int, k: int, kinds: Sequence[str], scopes: Sequence[str], include: Sequence[str]
) -> None:
    if len(query) > _QUERY_LIMIT:
        raise InvalidInput(
            f"The question has {len(query)} characters and {_QUERY_LIMIT} are the most.", remedy="Ask in fewer words."
        )
    if not 1 <= k <= _MOST:
        raise InvalidInput(f"k is {k} and not between 1 and {_MOST}.", remedy="Give a number such as 8.")
    if budget < 1:
        raise InvalidInput(f"The budget is {budget} tokens.", remedy="Give a positive number such as 2000.")
    known_words("kind", kinds, (*KINDS, "journal"))
    known_words("scope", scopes, SCOPES)
    known_words("place", include, PLACES)


def _record_what_is_met(context: Context, shown: Sequence[tuple[OpenHome, Found, Placed]]) -> None:
    """What the answer will do to the session is durable before the answer is given."""
    for home in {id(home): home for home, _, _ in shown}.values():
        given = [item for other, item, placed in shown if other is home and placed.form.text]
        roots = {root for item in given if item.trust != "reviewed" for root in item.roots.roots}
        if roots:
            home.sessions.raise_taint(context, sorted(roots))
        if any(is_private(item.classification) for item in given):
            home.sessions.raise_private(context)


def _words(text: str) -> set[str]:
    return set(analyze(text).terms)


def _item(home: OpenHome, item: Found, placed: Placed, by_score: int) -> Item:
    """One item as it is shown; `by_score` is its place by score alone, while a reviewed note keeps its place."""
    form = placed.form
    whole = form.view in ("full", "outline", "pointer") and item.kind != "journal"
    uri = written(home.name, item.path, item.blob, *(() if whole else (form.first, form.last)))
    words = partial(enveloped, home.envelope) if form.text else ""  # many who ask want the words alone
    return Item(
        item.id, uri, item.kind, item.subject, item.scope, form.view, form.text, item.score,
        item.ranked, by_score, item.sources, item.reviewed, item.taint, item.valid_from, item.valid_to,
        item.recorded_at, item.supersedes, item.superseded_by, item.state, item.trust, item.origin, home.name,
        item.speaker, item.session, item.contested_by, item.proposed_by, placed.verdict.reasons, words,
    )  # fmt: skip


_BENT = "The catalog says of reviewed notes what they do not say; `memoranda index rebuild` makes it again."


def _report(home: OpenHome, recipe: NamedRecipe | None) -> dict[str, object]:
    return home.indexes.mending(lambda: _reported(home, recipe))


def _reported(home: OpenHome, recipe: NamedRecipe | None) -> dict[str, object]:
    indexes = home.indexes
    with indexes.trying(recipe):
        totals = indexes.catalog.totals()
        notices, indexes.notices = indexes.notices, []
        if indexes.catalog.bent:
            notices.append(_BENT)
        return {
            "name": home.name, "root": str(home.repository.root), "notes": totals.notes, "journal": totals.entries,
            "commit": totals.commit, "indexes": indexes.serving(), "notices": notices,
        }  # fmt: skip


def _coverage(reports: list[dict[str, object]], more: int, said_before: Sequence[str]) -> Coverage:
    def total(name: str) -> int:
        return sum(value for report in reports if isinstance(value := report[name], int))

    first = reports[0] if reports else {}
    commit, names = first.get("commit"), first.get("indexes", [])
    notices = list(said_before)
    notices += [str(n) for report in reports if isinstance(said := report["notices"], list) for n in said]
    if not reports:
        notices.append("There is no Home yet; the first `remember` makes one.")
    return Coverage(
        total("notes"), total("journal"), str(commit) if commit else None,
        tuple(str(n) for n in names) if isinstance(names, list) else (), more, tuple(reports), tuple(notices),
    )  # fmt: skip
