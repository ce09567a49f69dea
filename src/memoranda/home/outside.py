"""Finds what was edited outside the program: by an editor, by `git pull`, by anything that writes files.

A candidate is read and its blob id compared with what the Home knows at its path; only a real difference counts.
Candidates come from the watcher, or from Git's comparison of file times with its index and from folders whose time
has changed, so that looking costs what changed and not what there is.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from memoranda.errors import InvalidPath
from memoranda.home.layout import MARKER, Layout, make_cache
from memoranda.home.marker import Marker
from memoranda.home.objects import object_id
from memoranda.home.worktree import Worktree
from memoranda.notes.paths import check_path
from memoranda.values import dataclass

_ROOT_FILES = (MARKER, "memory/golden.yaml", "memory/.gitignore", "memory/.gitattributes", "agents/.gitattributes")
_GENERATED = "memory/MEMORY.md"
_ASKED = 2048
_NOT_KEPT = (errno.ENOENT, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SETTLED_NS = 50_000_000  # a folder changed less than this before we looked may change again within the same tick


class Ours:
    """Which paths of the working tree belong to the Home."""

    def __init__(self, marker: Marker) -> None:
        self._known: dict[str, bool] = {}  # what was asked last: most paths are asked about several times in a row
        self._everything = "." in marker.roots
        self._roots = tuple(root + "/" for root in marker.roots if root != ".")
        self.roots = (".",) if self._everything else (*marker.roots, "agents", "memory")

    def __contains__(self, path: str) -> bool:
        known = self._known.get(path)
        if known is None:
            known = path in _ROOT_FILES or (self.would_be(path) and unfit(path) is None)
            if len(self._known) >= _ASKED:
                self._known.clear()
            self._known[path] = known
        return known

    def would_be(self, path: str) -> bool:
        """Whether the place of a file is one for notes or journals, whatever its name."""
        if not path.endswith(".md") or path == _GENERATED or path[0] == "." or "/." in path:
            return False
        if path.startswith("agents/"):
            steps = path.split("/")
            return (len(steps) == 4 and steps[2] == "journal") or self._everything
        return self._everything or path.startswith(self._roots)

    def is_note(self, path: str) -> bool:
        """Whether the file at this path is a note (and not a journal, a marker or a setting)."""
        if path in _ROOT_FILES or path not in self:
            return False
        if not path.startswith("agents/"):
            return True
        steps = path.split("/")
        return not (len(steps) == 4 and steps[2] == "journal")

    def folder(self, path: str) -> bool:
        """Whether files of the Home may lie in or below this folder."""
        if path == ".":
            return True
        return not any(step.startswith(".") for step in path.split("/"))


@dataclass(frozen=True, slots=True)
class Found:
    """One difference: `old` is the blob that the Home knows, `data` the bytes now, None for a deleted file."""

    path: str
    old: str | None
    data: bytes | None

    @property
    def blob(self) -> str | None:
        return None if self.data is None else object_id("blob", self.data)


class Outside:
    """Looks for outside edits in one Home."""

    def __init__(self, layout: Layout, worktree: Worktree, ours: Ours) -> None:
        self._worktree = worktree
        self._ours = ours
        self._root = layout.root
        self._note = layout.cache / "folders.json"
        self._folders: dict[str, int] | None = None
        self._saved: tuple[dict[str, int], str | None] = ({}, None)
        self.looked: str | None = None  # the commit that the working tree was compared with last
        self.strange: dict[str, str] = {}  # path -> why a file was left alone

    def compare(self, candidates: Iterable[str], known: Callable[[str], str | None]) -> Iterator[Found]:
        """What really differs among the candidates."""
        for path in sorted(set(candidates)):
            if path not in self._ours:
                continue
            old = known(path)
            if old is not None and self._worktree.untouched(path, old):
                continue
            self.strange.pop(path, None)
            data = self._worktree.read(path)
            if data is None:
                if why := self._worktree.stands_in_the_way(path):
                    self.strange[path] = why
                elif old is not None:
                    yield Found(path, old, None)
            elif object_id("blob", data) != old:
                yield Found(path, old, data)

    def new_names(self, listed: Callable[[str], Iterable[str]], now_ns: int) -> list[str]:
        """Paths that appeared in, or went from, the folders whose time has changed since the last look.

        `listed` gives the names of the files that the Home knows in a folder.
        """
        before = self._load()
        after: dict[str, int] = {}
        children: dict[str, list[str]] = {}
        for name in before:
            children.setdefault(name.rpartition("/")[0] or ".", []).append(name)
        found: list[str] = []
        stack = list(self._ours.roots)
        seen: set[str] = set()
        root = str(self._root)
        while stack:
            folder = stack.pop()
            if folder in seen:
                continue
            seen.add(folder)
            try:
                changed = os.lstat(f"{root}/{folder}").st_mtime_ns
            except (FileNotFoundError, NotADirectoryError):
                if folder in before:
                    found += (self._join(folder, name) for name in listed(folder))
                continue
            below = children.get(folder, [])
            if before.get(folder) == changed:
                after[folder] = changed
                stack += below
                continue
            names, folders = self._list(folder)
            stack += {*folders, *below}
            differing = [] if names is None else [self._join(folder, name) for name in names ^ set(listed(folder))]
            found += differing
            # What differs may not be taken in this time: a process is killed, the disk is full, a file is unreadable.
            settled = changed < now_ns - _SETTLED_NS and names is not None and not differing
            after[folder] = changed if settled else 0
        self._folders = after
        return found

    def folders(self) -> list[str]:
        """Every folder seen by the last look, for the watcher."""
        return list(self._load())

    def closed(self) -> list[str]:
        """The folders, as far as the last look went, that this process may not read: what changes there is not seen."""
        rights = os.R_OK | os.X_OK
        known = ((folder, self._root / folder) for folder in sorted(self._load()))
        return [folder for folder, path in known if path.is_dir() and not os.access(path, rights)]

    def _join(self, folder: str, name: str) -> str:
        return name if folder == "." else f"{folder}/{name}"

    def _list(self, folder: str) -> tuple[set[str] | None, list[str]]:
        """The names of our files in a folder, None when it cannot be read, and the folders below it."""
        names: set[str] = set()
        folders: list[str] = []
        try:
            with os.scandir(self._root / folder) as entries:
                for entry in entries:
                    path = self._join(folder, entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        if self._ours.folder(path) and not (Path(entry.path) / ".git").exists():
                            folders.append(path)
                    elif path in self._ours:
                        names.add(entry.name)
                    elif self._ours.would_be(path):
                        self.strange[path] = unfit(path) or ""
                        names.add(entry.name)  # known nowhere: the folder is listed again the next time, and it is told
        except FileNotFoundError:
            pass  # vanished meanwhile
        except PermissionError:
            return None, []  # see `closed`
        return names, folders

    def _load(self) -> dict[str, int]:
        if self._folders is None:
            self._folders = {}
            try:
                held = json.loads(self._note.read_bytes())
                self._folders, self.looked = dict(held["folders"]), held["commit"]
                self._saved = (self._folders, self.looked)
            except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError, RecursionError):
                pass  # deleted, or another version's: everything is compared
        return self._folders

    def last_commit(self) -> str | None:
        """The commit that the working tree was compared with last, by this process or another."""
        self._load()
        return self.looked

    def forget(self) -> None:
        """What was kept for the next process is void: it is compared anew."""
        self._folders, self._saved, self.looked = {}, ({}, None), None

    def save(self) -> None:
        """Keeps for the next process what this one has seen, when everything seen was taken in."""
        now = (self._load(), self.looked)
        if now == self._saved:
            return
        fresh = self._note.with_name(f"{self._note.name}.{os.getpid()}")
        try:
            make_cache(self._note.parent)
            for left in self._note.parent.glob(f"{self._note.name}.*"):
                left.unlink(missing_ok=True)  # of a killed process
            fresh.write_text(json.dumps({"commit": now[1], "folders": now[0]}), encoding="utf-8")
            fresh.replace(self._note)
            self._saved = now
        except OSError as error:
            if error.errno not in _NOT_KEPT:
                raise
            fresh.unlink(missing_ok=True)  # no room for it, or `.memoranda/` was deleted: the next process looks closer


def unfit(path: str) -> str | None:
    """Why a file with this path cannot be a note, whatever it holds; None when it can."""
    try:
        path.encode("utf-8")
        check_path(path)
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    except InvalidPath as error:
        return f"its name cannot be kept in Git everywhere: {error.why}"
    return None
