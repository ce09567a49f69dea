"""What one Home answers to a question, before the answers of several are fitted into a budget."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memoranda.context import Context
from memoranda.index.recipes import NamedRecipe
from memoranda.operations.open_home import OpenHome
from memoranda.recall.candidates import Wanted
from memoranda.recall.find import Answer, find
from memoranda.recall.question import read_question

TOP = 8
PLACES = ("notes", "journal")


def recall_home(
    context: Context,
    home: OpenHome,
    query: str,
    *,
    k: int = TOP,
    kinds: Sequence[str] = (),
    subject: str | None = None,
    scopes: Sequence[str] = (),
    include: Sequence[str] = PLACES,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    history: bool = False,
    clean: bool = True,
    recipe: NamedRecipe | None = None,
) -> Answer:
    """The k best items of one Home, whole; outside edits are taken in first.

    With `clean` what is quarantined or external is only pointed to.
    """
    home.refresh(context)
    wanted = Wanted(
        query, k, tuple(kinds), subject, tuple(scopes), tuple(include), context.now(), as_of, known_at, history, clean,
        home.indexes.places,
    )  # fmt: skip
    if (recipe or home.indexes.active()).remote:
        home.indexes.foresee(read_question(wanted.text, wanted.now).text, recipe)

    def ask() -> Answer:
        with home.indexes.trying(recipe), home.indexes.catalog.steady():
            return find(home.indexes, home.name, wanted)

    return home.indexes.mending(ask)
