"""Golden recall tests of a Home: add a question, ask them all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memoranda.context import Context
from memoranda.errors import InvalidInput, NotFound
from memoranda.home.draft import Change, Draft
from memoranda.index.recipes import NamedRecipe
from memoranda.notes.chains import unknown_note
from memoranda.notes.ids import is_note_id
from memoranda.notes.times import parse_instant
from memoranda.operations.last_recall import last_recall
from memoranda.operations.once import permitted
from memoranda.operations.open_home import OpenHome, undisturbed
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.recipe_upkeep import golden_questions, record_test, run_recipe
from memoranda.operations.space import Space
from memoranda.recall.golden import PATH, GoldenReport, Question, with_question


def golden_add(
    context: Context,
    space: Space,
    question: str,
    expect: Sequence[str],
    *,
    as_of: str | None = None,
    known_at: str | None = None,
) -> Question:
    """Adds a question to the Home that is written. UnknownNote for an id that it does not know, InvalidInput,
    RuleOfTwo."""
    pass_guards(context, Call("golden add", writes=True, text=question, rules=space.writable().rules))
    if not question.strip() or not expect:
        raise InvalidInput("A golden question has words and at least one id.", remedy="Give both.")
    for name, value in (("as_of", as_of), ("known_at", known_at)):
        if value is not None:
            parse_instant(value, what=name)
    home = space.writable()
    home.refresh(context)
    for item in expect:
        if not _known(home, item):
            raise unknown_note(item)
    added = Question(" ".join(question.split()), tuple(expect), as_of, known_at)
    # The questions decide for everybody who has this Home which recipe answers.
    told = {"question": added.question, "expect": list(expect), "as_of": as_of, "known_at": known_at}
    permit = permitted(context, home, space.met(context, home), "golden add", None, told)

    def build(_at: datetime) -> Draft:
        # The file as it stands: another process may have added a question, a person one by hand.
        data = with_question(home.repository.worktree.read(PATH), added)
        reason = f"Add a golden question: {added.question}"
        return Draft("golden", reason, [Change(PATH, data)], (), {}, context.user)

    if permit is not None:
        permit.use(context)
    home.repository.write(context, build)
    return added


def golden_add_last(context: Context, space: Space, which: str = "1") -> Question:
    """Adds the question of the last recall on this Home's command line, with the item that was the right one: its
    place in that answer, from 1, or its id. NotFound when there was no such recall or item."""
    told = last_recall(space.one())
    if told is None:
        raise NotFound(
            "Nothing was recalled here before.", remedy="Run `memoranda recall QUERY`, then say which item was right."
        )
    query, ids, times = told
    place = int(which) if which.isdecimal() else 0
    if which not in ids and not 1 <= place <= len(ids):
        raise NotFound(
            f"The last recall, of {query!r}, showed no {which}.",
            why=f"It showed {len(ids)} items.", remedy="Give the place of an item, from 1, or an id.",
        )  # fmt: skip
    expect = which if which in ids else ids[place - 1]
    return golden_add(context, space, query, [expect], as_of=times.get("as_of"), known_at=times.get("known_at"))


def golden_run(
    context: Context, space: Space, *, k: int | None = None, recipe: NamedRecipe | None = None
) -> GoldenReport:
    """Asks every question of the nearest Home, of the recipe that answers or of another one.

    Raises:
        NotFound: the Home has no file of them. InvalidInput: it is none.
    """
    pass_guards(context, Call("golden run"))
    home = space.one()
    home.refresh(context)
    golden = golden_questions(home)
    if golden is None:
        raise NotFound(
            "This Home has no golden questions.", remedy="Add one: `memoranda golden add QUESTION --expect ID`."
        )
    report = run_recipe(context, home, golden, recipe, k)
    if k is None:
        record_test(context, home, recipe or home.indexes.active(), report)
    return report


@undisturbed
def _known(home: OpenHome, name: str) -> bool:
    catalog = home.indexes.catalog
    return bool(catalog.by_id(name) if is_note_id(name) else catalog.entry(name))
