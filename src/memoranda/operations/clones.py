"""Clones of one Home: making one, and taking in what another has, with the ledger of who wrote what."""

from __future__ import annotations

import re
from pathlib import Path

from memoranda.context import Context
from memoranda.home.keys import Keys
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.space import Space
from memoranda.values import dataclass

_USERINFO = re.compile(r"//[^/@\s]*@")


@dataclass(frozen=True, slots=True)
class Pulled:
    """What was taken in.

    `fresh` counts the notes by which there are more than before, `ledger` says whether the other clone has one.
    `conflicts` are files that both had changed: `other` is where theirs stands beside ours (None: ours was kept).
    """

    home: str
    remote: str
    branch: str
    commit: str
    fresh: int
    ledger: bool
    conflicts: tuple[tuple[str, str | None], ...]

    def json(self) -> dict[str, object]:
        return {
            "home": self.home, "remote": self.remote, "branch": self.branch, "commit": self.commit, "fresh": self.fresh,
            "ledger": self.ledger, "conflicts": [{"path": path, "other": other} for path, other in self.conflicts],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cloned:
    """The clone that was made: its name, where it lies, how many notes it has, whether a ledger came along."""

    home: str
    path: str
    notes: int
    ledger: bool

    def json(self) -> dict[str, object]:
        return {"home": self.home, "path": self.path, "notes": self.notes, "ledger": self.ledger}


def pull(context: Context, space: Space, remote: str | None = None) -> Pulled:
    """Takes into the nearest Home what another clone has: its notes and journals, and its ledger.

    What both have written stands beside each other; a note that both have changed is there twice, for a person to
    decide. What comes is unreviewed unless a line of the ledger says otherwise that counts here.

    Raises:
        NotFound: no such remote. Unavailable: it cannot be reached.
        HomeBusy: somebody's Git is at work. Conflict: a file that is not committed is in the way, or another Home.
    """
    pass_guards(context, Call("import", writes=True, fields=(("remote", remote or ""),), rules=space.one().rules))
    pass_guards(context, Call("import", scope="project", met=space.met(context, space.one())))  # asks another machine
    home = space.one()
    home.refresh(context)
    before = home.indexes.catalog.count_notes()
    done = home.on_disk.pull(context, remote)
    home.refresh(context)
    fresh = max(0, home.indexes.catalog.count_notes() - before)
    conflicts = tuple((item.path, item.other) for item in done.conflicts)
    return Pulled(home.name, _shown(done.remote.url), done.branch, done.commit, fresh, done.ledger, conflicts)


def clone(
    context: Context, keys: Keys, source: str, folder: Path | None = None, *, near: Space | None = None
) -> Cloned:
    """Makes a clone of a Home with its ledger, in `folder` or one named after the source.

    `near` holds the Homes that know what the caller's session has met: an address is told to another machine.

    Raises:
        RuleOfTwo: it has met two.
        InvalidInput: there is something in the folder. HomeNotFound: the source is no Home.
        Unavailable: it cannot be reached.
    """
    from memoranda.home.pulling import clone as lay

    pass_guards(context, Call("import", writes=True))
    if near is not None and not context.person and (homes := near.homes()):
        pass_guards(context, Call("import", scope="project", met=near.met(context, homes[0])))
    if folder is None:
        folder = Path(re.split(r"[/:]", source.rstrip("/"))[-1].removesuffix(".git") or "home")
    root, ledger = lay(context, source, folder)
    with Space(context, keys, root, None) as space:
        home = space.one()
        home.refresh(context)
        return Cloned(home.name, str(root), home.indexes.catalog.count_notes(), ledger)


def _shown(url: str) -> str:
    """An address without the name and the password in it."""
    return _USERINFO.sub("//", url)
