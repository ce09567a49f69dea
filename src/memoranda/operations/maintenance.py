"""The indexes as people handle them: look, make again, throw away."""

from __future__ import annotations

from memoranda.context import Context
from memoranda.errors import NotFound
from memoranda.index.serving import Promotion
from memoranda.index.status import IndexStatus, index_states
from memoranda.operations.open_home import OpenHome
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.recipes import RecipeStatus, recipe_states
from memoranda.operations.space import Space
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class HomeIndexes:
    """The indexes and recipes of one Home, the switches between them, and the indexes that an operation `dropped`."""

    home: str
    folder: str
    indexes: tuple[IndexStatus, ...]
    dropped: tuple[str, ...] = ()
    recipes: tuple[RecipeStatus, ...] = ()
    promotions: tuple[Promotion, ...] = ()

    def json(self) -> dict[str, object]:
        rows = [_row(status) for status in self.indexes]
        return {
            "home": self.home, "folder": self.folder, "indexes": rows, "dropped": list(self.dropped),
            "recipes": [recipe.json() for recipe in self.recipes],
            "promotions": [_promotion(promotion) for promotion in self.promotions],
        }  # fmt: skip


def _row(s: IndexStatus) -> dict[str, object]:
    recipe = {"name": s.recipe.name, "version": s.recipe.version, **s.recipe.params} if s.recipe else None
    return {
        "name": s.name, "state": s.state, "recipe": recipe, "inputs": s.inputs, "counts": s.counts,
        "built_at": s.built_at, "took_ms": s.took_ms, "bytes": s.bytes, "serves": s.serves,
    }  # fmt: skip


def _promotion(told: Promotion) -> dict[str, object]:
    return {"at": told.at, "by": told.by, "recipe": told.recipe, "former": told.former, "forced": told.forced}


def index_status(context: Context, space: Space) -> list[HomeIndexes]:
    """Every index and every recipe of every open Home, as it stands: nothing is caught up by asking."""
    pass_guards(context, Call("index status"))
    return [_told(home) for home in space.homes()]


def _told(home: OpenHome) -> HomeIndexes:
    promotions = home.indexes.serving_record.read().promotions
    return HomeIndexes(
        home.name, str(home.repository.layout.cache), tuple(index_states(home.indexes)), (),
        tuple(recipe_states(home)), promotions,
    )  # fmt: skip


def index_rebuild(context: Context, space: Space) -> list[HomeIndexes]:
    """Makes the indexes of the nearest Home again from its notes."""
    pass_guards(context, Call("index rebuild"))
    home = space.one()
    home.repository.look(context)
    home.indexes.rebuild()
    return [_told(home)]


def index_drop(context: Context, space: Space, name: str | None = None) -> list[HomeIndexes]:
    """Deletes the indexes of the nearest Home, or the one called `name`; the next recall makes them again. NotFound."""
    pass_guards(context, Call("index drop"))
    home = space.one()
    gone = home.indexes.drop(name)
    if name is not None and not gone:
        raise NotFound(f"There is no index {name}.", remedy="`memoranda index status` lists them.")
    return [HomeIndexes(home.name, str(home.repository.layout.cache), (), tuple(gone))]
