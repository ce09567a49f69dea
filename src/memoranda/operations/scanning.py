"""Looks for what a Home already holds and should not: secrets, and personal data when asked; named, never shown."""

from __future__ import annotations

from collections.abc import Iterator

from memoranda.context import Context
from memoranda.home.inventory import Text
from memoranda.index.catchup import Progress
from memoranda.operations.open_home import OpenHome
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.space import Space
from memoranda.trust.personal import Personal
from memoranda.trust.secrets import Secret, find_secrets, masked_path
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Spot:
    """Where something stands: its `kind`, `line` and `column` (from 1), and the `hash` by which it can be allowed.

    `where` is file, name, history, ledger, commit, tag, ref or reflog; `path` has secrets in it covered; `rev` is the
    object of Git's that holds it, None for the working tree.
    """

    kind: str
    personal: bool
    where: str
    path: str
    rev: str | None
    line: int
    column: int
    hash: str

    def json(self) -> dict[str, object]:
        return {
            "kind": self.kind, "personal": self.personal, "where": self.where, "path": self.path, "rev": self.rev,
            "line": self.line, "column": self.column, "hash": self.hash,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan found in one Home, how many texts it looked through, and how many finds a person has allowed."""

    home: str
    root: str
    found: tuple[Spot, ...]
    texts: int
    allowed: int

    def json(self) -> dict[str, object]:
        return {
            "home": self.home, "root": self.root, "found": [spot.json() for spot in self.found], "texts": self.texts,
            "allowed": self.allowed,
        }  # fmt: skip


def scan(
    context: Context, space: Space, *, history: bool = False, personal: bool = False, progress: Progress | None = None
) -> Scan:
    """Scans the nearest Home: its files, their names and its ledger; with `history` all that Git keeps. HomeNotFound.

    `personal`: for personal data as well.
    """
    pass_guards(context, Call("scan"))
    home = space.one()
    home.repository.flush(wait=True)
    found: list[Spot] = []
    texts = allowed = 0
    for text in home.repository.texts(history=history):
        texts += 1
        if progress and texts % 100 == 0:
            progress("looking through", texts, 0)
        for spot, text_allowed in _look(home, text, personal):
            if text_allowed:
                allowed += 1
            else:
                found.append(spot)
    return Scan(home.name, masked_path(str(home.repository.root)), tuple(dict.fromkeys(found)), texts, allowed)


def _look(home: OpenHome, text: Text, personal: bool) -> Iterator[tuple[Spot, bool]]:
    rules = home.rules
    body = text.text.replace("/", " ") if text.where in ("name", "ref") else text.text
    finds: list[tuple[Secret | Personal, bool]] = [(item, False) for item in find_secrets(body)]
    if personal:
        from memoranda.trust.personal import find_personal

        spans = [(item.start, item.end) for item, _ in finds]
        finds += [
            (item, True) for item in find_personal(body) if not any(a < item.end and item.start < b for a, b in spans)
        ]
    for item, is_personal in finds:
        value = body[item.start : item.end]
        at = (text.where, masked_path(text.path), text.rev, item.line, item.column)
        spot = Spot(item.kind, is_personal, *at, rules.mark(value))
        yield spot, rules.allows(value)
