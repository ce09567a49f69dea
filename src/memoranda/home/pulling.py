"""Takes in what another clone of this Home has, and makes one: branch, working tree and ledger."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from memoranda.context import Context
from memoranda.errors import Conflict, GitFailed, HomeBusy, HomeNotFound, InvalidInput, RefMoved
from memoranda.home.disk import DiskStore
from memoranda.home.git import Git
from memoranda.home.layout import MARKER, layout_of
from memoranda.home.marker import Marker, parse_marker
from memoranda.home.merging import Beside, Merge, check_out, merge
from memoranda.home.pieces import Pieces
from memoranda.home.plain_git import plain_git
from memoranda.home.remotes import Fetched, Remote, fetch, remote_of, tracking
from memoranda.home.store import LEDGER_REF, ObjectStore, RefMove
from memoranda.values import dataclass

_TRIES = 3
_TAKEN = "memoranda: pull"


@dataclass(frozen=True, slots=True)
class Pulled:
    """What was taken: from where, which branch, where ours stands now, whether a ledger came, what both had changed."""

    remote: Remote
    branch: str
    commit: str
    ledger: bool
    conflicts: tuple[Beside, ...]


def pull(
    pieces: Pieces, context: Context, told: str | None, *, busy: Callable[[], str | None], note: Callable[[str], bool]
) -> Pulled:
    """Fetches from a remote and brings both together; everything that was recorded has to be in Git's index already.

    Raises:
        HomeBusy: somebody's Git is at work.
        Conflict: a file that is not committed is in the way, or it is another Home.
        NotFound: no such remote. Unavailable: it cannot be reached.
    """
    p = pieces
    branch = p.store.refs.head()
    if branch is None:
        raise HomeBusy("HEAD is detached in this Home.", remedy="Check a branch out and pull again.")
    name = branch.removeprefix("refs/heads/")
    remote = remote_of(p.layout, told, name)
    found = fetch(p.git, p.store, remote.url, branch=name, have=p.store.ref(branch))
    _same_home(p.store, found.commit, p.home)
    for left in reversed(range(_TRIES)):
        try:
            done = _bring(p, context, branch, remote, found, busy, note)
        except RefMoved:
            if left == 0:
                raise
        else:
            break
    _follow(p.store, remote, found)
    return Pulled(remote, found.branch, done.commit, found.ledger is not None, done.conflicts)


def _bring(
    p: Pieces, context: Context, branch: str, remote: Remote, found: Fetched, busy: Callable[[], str | None],
    note: Callable[[str], bool],
) -> Merge:  # fmt: skip
    with p.committer.alone() as commit_all, p.git_index.alone():
        reason = commit_all() or busy()
        head = p.store.ref(branch)
        if reason is None and (head is None or p.git_index.reflects() != head):
            reason = "Git's index is behind what was remembered"
        if reason is not None or head is None:
            raise HomeBusy(f"Nothing can be pulled now: {reason}.", remedy="Try again in a moment.")
        said = f"Merge {found.branch} of {remote.name}"
        done = merge(p.git, p.store, head, found.commit, note=note, who=context.user, told=said, at=context.now())
        if done.commit == head:
            return done
        handle = p.store.put(done.objects)
        try:
            p.git.renew()
            check_out(p.git, p.layout, head, done.commit)
            p.store.move([RefMove(branch, head, done.commit, _TAKEN)])
        finally:
            p.store.release(handle)
        p.git_index.lead(lambda _commit: done.commit)
        return done


def _follow(store: DiskStore, remote: Remote, found: Fetched) -> None:
    """Notes where the refs of the remote stand; its ledger is taken in from there."""
    refs = {f"refs/remotes/{remote.name}/{found.branch}": found.commit}
    if found.ledger is not None:
        refs[tracking(remote.name)] = found.ledger
    moves = [RefMove(ref, old, new, _TAKEN) for ref, new in refs.items() if (old := store.ref(ref)) != new]
    if moves:
        store.move(moves)


def _marker(store: ObjectStore, commit: str) -> Marker | None:
    found = store.get(f"{commit}:{MARKER}")
    return parse_marker(found.data.decode("utf-8", "replace"), "home") if found is not None else None


def _same_home(store: ObjectStore, commit: str, home: str) -> None:
    theirs = _marker(store, commit)
    if theirs is None or theirs.id != home:
        raise Conflict(
            "That is no clone of this Home.",
            why=f"It is {theirs.id}, and this is {home}." if theirs else "It holds no Home.",
            remedy="To take notes of another Home over, use `memoranda import`.",
        )


def clone(context: Context, told: str, folder: Path) -> tuple[Path, bool]:
    """Makes a clone of a Home, with its ledger; (where it lies, whether a ledger came). Open it with `Repository`.

    Raises:
        InvalidInput: there is something in the folder. HomeNotFound: what was told is no Home.
        Unavailable: it cannot be reached.
    """
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 - a link that leads here keeps its name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} is not empty.", remedy="Name a folder that does not exist yet.")
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return folder, _clone(context, told, folder)
    except BaseException:
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if made:
            folder.rmdir()
        raise


def _clone(context: Context, told: str, folder: Path) -> bool:
    plain_git(folder, "init", "-q", "--template=", "--object-format=sha1", "--initial-branch=main")
    (folder / ".git" / "info").mkdir(exist_ok=True)
    layout = layout_of(folder)
    layout.own.mkdir(parents=True, exist_ok=True)
    git = Git(layout)
    store = DiskStore(layout, git, context.clock)
    try:
        url = remote_of(layout, told, "main").url
        found = fetch(git, store, url)
        if _marker(store, found.commit) is None:
            raise HomeNotFound(f"{told} is not a Home.", remedy="Clone it with Git, and make a Home: `memoranda init`.")
        branch = f"refs/heads/{found.branch}"
        for key, value in (
            ("remote.origin.url", url), ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
            ("remote.origin.fetch", f"+{LEDGER_REF}:{tracking('origin')}"),
            (f"branch.{found.branch}.remote", "origin"), (f"branch.{found.branch}.merge", branch),
        ):  # fmt: skip
            plain_git(folder, "config", "--add", key, value)
        plain_git(folder, "symbolic-ref", "HEAD", branch)
        if found.ledger is None:  # Git would refuse to fetch what is not there
            plain_git(folder, "config", "--unset", "remote.origin.fetch", r"^\+refs/memoranda/")
        check_out(git, layout, None, found.commit)
        ledger = [RefMove(LEDGER_REF, None, found.ledger, _TAKEN)] if found.ledger is not None else []
        store.move([RefMove(branch, None, found.commit, _TAKEN), *ledger])
        _follow(store, Remote(url, "origin"), found)
        return found.ledger is not None
    except GitFailed as error:
        raise GitFailed("The clone could not be laid.", why=f"{error.what} {error.why}", remedy=error.remedy) from error
    finally:
        store.close()
