"""Recipes side by side: add one, see how it does, let it answer, take it away. No note is touched by any of it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from memoranda.context import Context
from memoranda.errors import CheckFailed, ConfirmationRequired, Conflict, NotFound
from memoranda.home.settings import Setting, Settings
from memoranda.index import building
from memoranda.index.opening import MODELS
from memoranda.index.recipes import ENDPOINT, NamedRecipe, server_of
from memoranda.index.serving import Kept, Promotion, Record, Tested
from memoranda.notes.times import format_instant
from memoranda.operations.asking import TOP
from memoranda.operations.goldens import golden_run
from memoranda.operations.open_home import OpenHome
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.presenting import View
from memoranda.operations.recalling import BUDGET, recall
from memoranda.operations.recipe_upkeep import golden_questions, record_test, run_recipe
from memoranda.operations.space import Space, embedder_setting
from memoranda.values import dataclass, replace

if TYPE_CHECKING:
    from memoranda.recall.golden import GoldenReport


@dataclass(frozen=True, slots=True)
class RecipeStatus:
    """One recipe of a Home: `state` is active, ready, behind, building, stopped, missing or unusable.

    `done` of `everything` documents are in its index while one is being built; `why` says what stopped it. `tested` is
    what the golden questions said last, of exactly this digest.
    """

    name: str
    state: str
    active: bool
    digest: str | None
    indexes: tuple[str, ...]
    done: int = 0
    everything: int = 0
    why: str | None = None
    tested: Tested | None = None

    def json(self) -> dict[str, object]:
        tested = self.tested
        return {
            "name": self.name, "state": self.state, "active": self.active, "digest": self.digest,
            "indexes": list(self.indexes), "done": self.done, "all": self.everything, "why": self.why,
            "tested": None if tested is None else {
                "questions": tested.questions, "hit": tested.hit, "mrr": tested.mrr, "passed": tested.passed,
                "at": tested.at,
            },
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Promoted:
    """A switch of recipes, and what the golden questions said of both."""

    recipe: str
    former: str
    forced: bool
    new: GoldenReport
    old: GoldenReport

    def json(self) -> dict[str, object]:
        return {
            "recipe": self.recipe, "former": self.former, "forced": self.forced,
            "golden": {self.recipe: self.new.json(), self.former: self.old.json()},
        }  # fmt: skip


def index_add(context: Context, space: Space, name: str, *, wait: bool = False) -> RecipeStatus:
    """Puts a recipe beside the one that answers and builds its indexes in the background; with `wait`, here and now.

    One that was added before is gone on with. A recipe of a server sends it the texts of this Home: that is a person's
    to decide, once for each Home and address.

    Raises:
        NotFound, InvalidInput: no recipe is called so. Unavailable: what it needs is not there.
        ConfirmationRequired: nobody is at a terminal to let the texts be sent.
    """
    _ask(context, space, "index add")
    home = space.one()
    if server := server_of(name):
        _allow(context, space, home, server)
    recipe = home.indexes.recipe(name)
    home.refresh(context)
    indexes = tuple(part.name for part in recipe.parts)

    def keep(record: Record) -> Record:
        before = record.kept.get(name)
        if before is not None:
            return record.keep(replace(before, indexes=indexes))
        return record.keep(Kept(name, indexes, format_instant(context.now()), context.user))

    home.indexes.serving_record.change(keep)
    begun = False
    if wait:
        layout = home.repository.layout
        building.build(layout.cache, layout.own, recipe, space.progress)
    elif not _level(home, recipe):
        building.start(home.repository.layout, recipe)
        begun = True
    status = _status(home, recipe, home.indexes.serving_record.read())
    # The process that was started has not told of itself yet: what is read is how things stood before.
    return replace(status, state="building", why=None) if begun and status.state != "building" else status


def _ask(context: Context, space: Space, operation: str) -> None:
    """Which recipe answers is the same for everybody who asks this Home: a session that has met two changes it not."""
    pass_guards(context, Call(operation, writes=True, met=space.met(context, space.one())))


def _allow(context: Context, space: Space, home: OpenHome, server: str) -> None:
    told = space.endpoints().get(server)
    if told is None:
        return  # who looks for the recipe says what is missing
    settings = Settings(home.repository.keys, home.repository.marker.id)
    kind, value = embedder_setting(server, told)
    if (kind, value) in settings.standing():
        return
    if not context.person:
        raise ConfirmationRequired(
            f"The texts of this Home would be sent to {told.url}.",
            why="Whether they may is a person's to decide, and nobody is at a terminal.",
            remedy=f"Run `memoranda index add {ENDPOINT}{server}` at a terminal.",
        )
    settings.settle(Setting(kind, value, "index add", context.user, format_instant(context.now())))


def recipe_states(home: OpenHome) -> list[RecipeStatus]:
    """Every recipe of a Home, the active one first, as it stands."""
    record, usable = home.indexes.kept()
    found = [_status(home, recipe, record) for recipe in usable]
    missing = record.kept.keys() - {recipe.name for recipe in usable}
    for name in sorted(missing):
        kept = record.kept[name]
        why = f"What it needs is not here: `memoranda index add {name}` says what."
        found.append(RecipeStatus(name, "unusable", False, None, kept.indexes, why=why, tested=kept.tested))
    return found


def _status(home: OpenHome, recipe: NamedRecipe, record: Record) -> RecipeStatus:
    layout, active = home.repository.layout, home.indexes.active().name == recipe.name
    kept, digest = record.kept.get(recipe.name), recipe.digest()
    tested = kept.tested if kept and kept.tested and kept.tested.digest == digest else None
    indexes = tuple(part.name for part in recipe.parts)
    states = [building.progress_of(layout.cache, layout.own, part) for part in recipe.parts]
    told = next((state for state in states if state is not None), None)
    if told is not None:
        state, why = ("building", None) if told.running else ("stopped", told.error)
        if state == "stopped":
            why = f"{why or 'It was cut short.'} `memoranda index add {recipe.name}` goes on."
        return RecipeStatus(recipe.name, state, active, digest, indexes, told.done, told.everything, why, tested)
    if active:
        state = "active"
    elif not all((layout.cache / name).is_dir() for name in indexes):
        state = "building" if building.under_way(layout.own) else "missing"
    else:
        state = "ready" if _level(home, recipe) else "behind"
    return RecipeStatus(recipe.name, state, active, digest, indexes, tested=tested)


def _level(home: OpenHome, recipe: NamedRecipe) -> bool:
    with home.indexes.lock:
        for part in recipe.parts:
            if not (home.repository.layout.cache / part.name).is_dir():
                return False
            index = home.indexes.opened(part)
            if index is None or not part.is_level(home.indexes.catalog, index):
                return False
    return True


def index_try(
    context: Context, space: Space, name: str, query: str, *, budget: int = BUDGET, k: int = TOP
) -> View:  # fmt: skip
    """What the nearest Home would answer if this recipe were active. Errors: those of `recall`, and of `added`."""
    pass_guards(context, Call("index try", text=query))
    home = space.one()
    recipe = added(home, name)
    _bring(context, home, recipe)
    return recall(context, space, query, budget=budget, k=k, recipe=recipe)


def added(home: OpenHome, name: str) -> NamedRecipe:
    """The recipe, when it is active or was added. NotFound, Unavailable."""
    active = home.indexes.active()
    if name == active.name:
        return active
    recipe = home.indexes.recipe(name)
    if name not in home.indexes.serving_record.read().kept:
        raise NotFound(
            f"The recipe {name} was not added to this Home.", remedy=f"Add it first: `memoranda index add {name}`."
        )
    return recipe


def _bring(context: Context, home: OpenHome, recipe: NamedRecipe) -> None:
    """Brings it up to date here and now, going on with what a build has left."""
    home.refresh(context)
    if not _level(home, recipe):
        layout = home.repository.layout
        building.build(layout.cache, layout.own, recipe, home.indexes.progress)


def index_promote(context: Context, space: Space, name: str, *, force: bool = False) -> Promoted:
    """Lets this recipe answer from now on, when the golden questions find it no worse than the one that answers now.

    Both are asked every golden question. Worse is who finds fewer of the expected notes, or as many and lower down. The
    switch is one step; the former recipe stays as it is until it is retired.

    Raises:
        NotFound, Unavailable: see `added`. Conflict: it answers already, or another was promoted meanwhile.
        CheckFailed: there is no golden question, or it is worse; `force`, by a person, overrules the latter.
    """
    _ask(context, space, "index promote")
    if force and not context.person:
        raise ConfirmationRequired(
            "A recipe is forced by a person only.", why="Nobody is at a terminal.", remedy="Run it at a terminal."
        )
    home = space.one()
    former, recipe = home.indexes.active(), added(home, name)
    if recipe.name == former.name:
        raise Conflict(f"The recipe {name} answers already.", remedy="`memoranda index status` shows the others.")
    home.refresh(context)
    golden = golden_questions(home)
    if golden is None or not golden.questions:
        raise CheckFailed(
            "This Home has no golden question, so nothing says whether a recipe is as good as another.",
            remedy="Add one: `memoranda golden add QUESTION --expect ID`, or `golden add --last` after a recall.",
        )
    for each in (former, recipe):
        _bring(context, home, each)
    old, new = (run_recipe(context, home, golden, each) for each in (former, recipe))
    record_test(context, home, former, old)
    record_test(context, home, recipe, new)
    worse = Compared(former.name, name, old, new).worse
    if worse and not force:
        raise CheckFailed(
            f"{name} is worse than {former.name}: hit {new.hit:.3f} and MRR {new.mrr:.3f}, not {old.hit:.3f} and "
            f"{old.mrr:.3f}.",
            remedy=f"`memoranda golden run --compare {name}` shows question by question what each of them did.",
        )
    at = format_instant(context.now())

    def switch(record: Record) -> Record:
        if (record.active or former.name) != former.name:
            raise Conflict(f"Meanwhile {record.active} was promoted.", remedy="Look at it, and try again.")
        promotion = Promotion(at, context.user, name, former.name, worse)
        return replace(record, active=name, digest=recipe.digest(), promotions=(*record.promotions, promotion))

    home.indexes.serving_record.change(switch)
    return Promoted(name, former.name, worse, new, old)


@dataclass(frozen=True, slots=True)
class Compared:
    """The golden questions asked of two recipes: the active one and another."""

    active: str
    other: str
    one: GoldenReport
    two: GoldenReport

    @property
    def worse(self) -> bool:
        """Whether the other finds fewer of the expected notes, or as many and lower down."""
        return (self.two.hit, self.two.mrr) < (self.one.hit, self.one.mrr)

    def json(self) -> dict[str, object]:
        pairs = zip(self.one.outcomes, self.two.outcomes, strict=True)
        return {
            "recipes": [self.active, self.other], "worse": self.worse,
            "golden": {self.active: self.one.json(), self.other: self.two.json()},
            "questions": [
                {"question": one.question.question, "ranks": {self.active: one.rank, self.other: two.rank}}
                for one, two in pairs
            ],
        }  # fmt: skip


def golden_compare(context: Context, space: Space, name: str, *, k: int | None = None) -> Compared:
    """Asks every golden question of the recipe that answers and of another one. Errors: of `golden_run`, of `added`."""
    home = space.one()
    active, other = home.indexes.active(), added(home, name)
    _bring(context, home, other)
    one, two = (golden_run(context, space, k=k, recipe=each) for each in (active, other))
    return Compared(active.name, other.name, one, two)


def index_retire(context: Context, space: Space, name: str) -> list[str]:
    """Takes a recipe away with the indexes that no other one needs; returns the names of their directories.

    Raises:
        NotFound: it was never added.
        Conflict: it answers, or is the last one that passed the golden questions.
    """
    _ask(context, space, "index retire")
    home = space.one()
    indexes = home.indexes
    active = indexes.active()
    if name == active.name:
        raise Conflict(f"The recipe {name} answers.", remedy="Promote another one first.")
    gone: list[str] = []

    def without(record: Record) -> Record:
        kept = record.kept.get(name)
        if kept is None:
            raise NotFound(f"There is no recipe {name} here.", remedy="`memoranda index status` lists them.")
        passed = {other for other, entry in record.kept.items() if entry.tested and entry.tested.passed}
        if passed == {name}:
            raise Conflict(
                f"{name} is the last recipe that passed the golden questions.",
                remedy="Keep it until another one passes: `memoranda golden run`.",
            )
        needed = {part.name for part in active.parts}
        needed |= {index for other, entry in record.kept.items() if other != name for index in entry.indexes}
        gone[:] = [index for index in kept.indexes if index not in needed]
        return record.without(name)

    indexes.serving_record.change(without)
    cache = home.repository.layout.cache
    digests = [index.rpartition("-")[2] for index in gone]
    with indexes.lock:
        for index in gone:
            indexes.drop(index)
        for digest in digests:  # what its server answered
            shutil.rmtree(cache / MODELS / f"answers-{digest}", ignore_errors=True)
    return gone
