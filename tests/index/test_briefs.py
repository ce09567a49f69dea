"""What a process keeps at hand of notes is what the catalog says of them now, whoever has written since."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memoranda.context import Context
from memoranda.home.keys import Keys
from memoranda.index.catalog import Catalog
from memoranda.operations.forgetting import Selection, forget
from memoranda.operations.journaling import Turn, append
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.reviewing import decide
from memoranda.operations.space import Space
from memoranda.values import replace


def _keys(catalog: Catalog) -> list[str]:
    return [key for (key,) in catalog.db.execute("SELECT DISTINCT key FROM feed ORDER BY key")]


def test_whatever_is_written_elsewhere_shows_at_once(context: Context, home: Path, keys: Keys) -> None:
    person = replace(context, person=True)
    with Space(context, keys, home, None) as reader, Space(context, keys, home, None) as writer:
        first = remember(context, writer, NewNote("The ferry leaves at six.", subject="harbour"))
        second = remember(context, writer, NewNote("The ferry takes cars.", subject="harbour"))
        third = remember(context, writer, NewNote("The old lamp was lit."))
        place = home / third.path
        text = place.read_text()
        said: list[str] = []

        def edit() -> None:
            place.write_text(text.replace("lit", "dark"))

        def tainted() -> None:
            web = context.in_session("ses_web")
            remember(web, writer, NewNote("The ferry is new.", sources=("https://example.org/a",)))

        steps: list[Callable[[], object]] = [
            lambda: said.append(update(context, writer, first.id, "The ferry leaves at seven.").id),
            tainted,
            lambda: decide(person, writer, [second.id], "accept"),
            lambda: append(context, writer, Turn("The ferry was late.", "dana")),
            edit,
            lambda: place.write_text(text),
            lambda: place.unlink(),
            lambda: forget(person, writer, Selection((second.id,))),
            lambda: writer.one().indexes.rebuild(),
            lambda: update(context, writer, said[0], "The ferry leaves at eight."),
        ]
        for step in steps:
            recall(context, reader, "When does the ferry leave by the lamp?")  # what it has at hand
            mine = reader.one().indexes.catalog
            mine.briefs(_keys(mine))
            step()
            recall(context, reader, "When does the ferry leave by the lamp?")
            mine = reader.one().indexes.catalog
            fresh = Catalog.open(mine.directory)
            assert mine.briefs(_keys(mine)) == fresh.briefs(_keys(fresh))
            fresh.close()
