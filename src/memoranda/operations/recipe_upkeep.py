"""What the recipe of a Home needs after a change: the golden questions asked again, vectors of a server brought up."""

from __future__ import annotations

import time
from datetime import datetime

from memoranda.context import Context
from memoranda.errors import Unavailable
from memoranda.index import building
from memoranda.index.recipes import NamedRecipe
from memoranda.index.serving import Kept, Record, Tested
from memoranda.notes.times import format_instant, parse_instant
from memoranda.operations.asking import recall_home
from memoranda.operations.open_home import OpenHome, undisturbed
from memoranda.recall.golden import PATH, Golden, GoldenReport, Question, parse, run
from memoranda.values import replace

_AGAIN = 60.0  # seconds after which a build that was stopped is tried again by itself
_PAUSE = 10.0  # seconds between two looks at the recipes that do not answer


def golden_questions(home: OpenHome) -> Golden | None:
    """The golden questions of a Home, None where it has no file of them. InvalidInput for a bad one."""
    data = _file(home)
    if data is None:
        return None
    golden = parse(data)
    return replace(golden, questions=tuple(_without_secrets(question, home) for question in golden.questions))


def _without_secrets(question: Question, home: OpenHome) -> Question:
    """The file may have come by plain Git: what it asks is said again in the report."""
    from memoranda.trust.secrets import masked

    allows = home.rules.allows
    times = {name: masked(value, allows) for name in ("as_of", "known_at") if (value := getattr(question, name))}
    expect = tuple(masked(name, allows) for name in question.expect)
    return replace(question, question=masked(question.question, allows), expect=expect, **times)


def run_recipe(
    context: Context, home: OpenHome, golden: Golden, recipe: NamedRecipe | None = None, k: int | None = None
) -> GoldenReport:
    """What this recipe, which is up to date, makes of the questions; None is the active one."""
    return run(golden, k, lambda question, count: _ask(context, home, question, count, recipe))


def record_test(context: Context, home: OpenHome, recipe: NamedRecipe, report: GoldenReport) -> None:
    """Keeps what the questions said of a recipe, so that it is known when another model or version answers."""
    if home.repository.read_only is not None:
        return
    at = format_instant(context.now())
    hit, mrr = round(report.hit, 6), round(report.mrr, 6)
    tested = Tested(recipe.digest(), len(report.outcomes), hit, mrr, report.passed, at)

    def keep(record: Record) -> Record:
        kept = record.kept.get(recipe.name)
        if kept is None:
            kept = Kept(recipe.name, tuple(part.name for part in recipe.parts), at, context.user)
        record = record.keep(replace(kept, tested=tested))
        active = home.indexes.active()
        return replace(record, digest=recipe.digest()) if recipe.name == active.name else record

    home.indexes.serving_record.change(keep)


def retest(context: Context, home: OpenHome) -> None:
    """The active recipe is another one than was tested, by a model, a library or a version of the indexer: the golden
    questions are asked again, and a notice says when they are answered worse than before."""
    former, recipe = home.indexes.take_changed(), home.indexes.active()
    golden = golden_questions(home) if former else None
    if golden is None or not golden.questions:
        return
    before = home.indexes.serving_record.read().kept.get(recipe.name)
    report = run_recipe(context, home, golden, recipe)
    record_test(context, home, recipe, report)
    worse = before is not None and before.tested is not None and (
        (round(report.hit, 6), round(report.mrr, 6)) < (before.tested.hit, before.tested.mrr)
    )  # fmt: skip
    if worse or not report.passed:
        with home.indexes.lock:
            home.indexes.notices.append(
                f"The recipe {recipe.name} changed with a model, a library or a version. The golden questions were "
                f"asked again: hit {report.hit:.3f}, MRR {report.mrr:.3f}. `memoranda golden run` shows the misses."
            )


def keep_up(home: OpenHome) -> None:
    """For an active recipe of a server: has what is new embedded in the background, and says that it is."""
    recipe, layout = home.indexes.active(), home.repository.layout
    part = home.indexes.behind()
    if part is None:
        return
    state = building.progress_of(layout.cache, layout.own, part)
    why = "its server is being asked"
    if state is not None and state.error is not None and time.time() - state.at < _AGAIN:
        why = state.error
    elif not building.under_way(layout.own):
        try:
            building.start(layout, recipe)
        except Unavailable as error:
            why = str(error)
    with home.indexes.lock:
        home.indexes.notices.append(f"Not everything has a vector of {recipe.name} yet: {why}")


def keep_up_others(home: OpenHome) -> None:
    """For a process that lives long: has the recipes that were added and do not answer brought up in the background.

    It opens none of their indexes: whether there is something new, the catalog's feed says. Nobody waits for it.
    """
    if time.monotonic() < home.upkeep.due or home.repository.read_only is not None:
        return
    home.upkeep.due = time.monotonic() + _PAUSE
    with home.indexes.lock:
        last = home.indexes.catalog.fed()
    layout, active = home.repository.layout, home.indexes.active()
    others = [recipe for recipe in home.indexes.kept()[1] if recipe.name != active.name]
    now = (last, tuple(recipe.digest() for recipe in others))
    if not others or now == home.upkeep.seen or building.under_way(layout.own):
        return
    states = [building.progress_of(layout.cache, layout.own, part) for recipe in others for part in recipe.parts]
    if any(state is not None and state.error is not None and time.time() - state.at < _AGAIN for state in states):
        return
    try:
        for recipe in others:
            building.start(layout, recipe)
    except Unavailable as error:
        with home.indexes.lock:
            home.indexes.notices.append(f"What is new does not reach the recipes that do not answer: {error.what}")
        return
    home.upkeep.seen = now


@undisturbed
def _file(home: OpenHome) -> bytes | None:
    blob = home.indexes.catalog.blob_of(PATH)
    return home.repository.blob(blob) if blob else None


def _ask(
    context: Context, home: OpenHome, question: Question, k: int, recipe: NamedRecipe | None
) -> list[tuple[str, ...]]:
    def time(text: str | None, what: str) -> datetime | None:
        return None if text is None else parse_instant(text, what=what, end_of_day=True)

    answer = recall_home(
        context, home, question.question, k=k, as_of=time(question.as_of, "as_of"),
        known_at=time(question.known_at, "known_at"), recipe=recipe,
    )  # fmt: skip
    now = question.as_of is None and question.known_at is None
    # Asked about now, an id stands for its chain: what superseded it since is the right answer.
    return [(item.id, *(_predecessors(home, item.id) if now else ())) for item in answer.items]


@undisturbed
def _predecessors(home: OpenHome, note_id: str) -> tuple[str, ...]:
    return home.indexes.catalog.predecessors(note_id)
