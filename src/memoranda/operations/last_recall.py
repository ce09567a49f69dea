"""What was recalled last on the command line, so that a person can say which item was the right one.

It lies below `.memoranda/`, readable by its owner only, and holds the question and ids: no word of an answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memoranda.operations.open_home import OpenHome
from memoranda.operations.space import Space

FILE = "last-recall.json"


class Last(NamedTuple):
    """The question, the ids of the items in their order, and the times as they were given (`as_of`, `known_at`)."""

    query: str
    ids: tuple[str, ...]
    times: Mapping[str, str]


def keep_last(space: Space, query: str, ids: Sequence[str], times: Mapping[str, str | None]) -> None:
    """Remembers a recall of the nearest Home, in the place of the one before."""
    homes = space.homes()
    if not homes:
        return
    target = homes[0].repository.layout.cache / FILE
    draft = target.with_name(f"{FILE}.{os.getpid()}")
    told = {"query": query, "ids": list(ids), "times": {name: text for name, text in times.items() if text}}
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(told, file)
        draft.replace(target)
    except OSError:
        pass  # a Home that cannot be written is recalled from all the same


def last_recall(home: OpenHome) -> Last | None:
    """What was recalled last in this Home, None when nothing was."""
    try:
        told = json.loads((home.repository.layout.cache / FILE).read_bytes())
        times = {name: str(told["times"][name]) for name in ("as_of", "known_at") if told["times"].get(name)}
        return Last(str(told["query"]), tuple(map(str, told["ids"])), times)
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None
