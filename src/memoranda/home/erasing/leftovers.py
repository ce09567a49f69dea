"""The files around a repository that may hold an erased text: working tree, Git's index, what editors and Git left."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from memoranda.home.durable import sync_path, write_durably
from memoranda.home.erasing.blanking import Part, blank
from memoranda.home.erasing.needles import Needles
from memoranda.home.git import Git
from memoranda.home.indexfile import blob_of, make_entry, read_entries, write_entries
from memoranda.home.layout import CACHE, Layout
from memoranda.home.objects import object_id
from memoranda.home.store import TreeChange
from memoranda.home.worktree import LARGEST_FILE, Worktree

_GONE = "0" * 40
_MODE_GONE = "0"
# What Git, or a tool beside it, leaves and nobody needs once it is over.
_SPENT = re.compile(
    r".*_EDITMSG|.*_MSG|FETCH_HEAD|ORIG_HEAD|EDIT_DESCRIPTION|ADD_EDIT\.patch|addp-hunk-edit\.diff|gitk\.cache"
    r"|sharedindex\..*|index\..*|next-index-.*|memoranda-index\..*|rr-cache|lost-found|.*~|\..*\.sw.|#.*#|.*\.orig"
)
_NOT_LOOKED_AT = ("objects", "refs", "logs", "worktrees", "memoranda", "index", "packed-refs", "HEAD", "shallow")
_STAYS = ("config", "config.worktree", "description", "hooks", "info", "branches")

Places = Mapping[bytes, bytes | None]


class Tree:
    """The working tree and the index of the Home, as an erasing changes them.

    Args:
        parts: the lines that go, `mark` the line that stands for them.
        read: gives the content of a new blob.
    """

    def __init__(
        self,
        layout: Layout,
        git: Git,
        worktree: Worktree,
        parts: Sequence[Part],
        mark: bytes,
        read: Callable[[str], bytes],
    ) -> None:
        self._layout = layout
        self._git = git
        self._worktree = worktree
        self._parts = parts
        self._mark = mark
        self._read = read

    def bring(self, changes: Iterable[TreeChange], needles: Needles) -> list[tuple[str, str]]:
        """Brings the files to the new commit; returns (path, why) of what was left because it is another text.

        An edit that nobody looked for yet is a version of the file: it goes with it when it holds some of the text.
        """
        left = []
        for change in changes:
            _coming(self._layout.root / change.path).unlink(missing_ok=True)  # of a run that was killed
            data = self._worktree.read(change.path)
            if data is None or change.old is None:
                continue
            same = object_id("blob", data) == change.old
            if change.new is None:
                if same or needles.holds(data):
                    self._remove(change.path)
                else:
                    left.append((change.path, "it was edited and holds another text"))
            elif same:
                self._rewrite(change.path, self._read(change.new))
            else:
                new = blank(data, self._parts, self._mark)
                if new != data:
                    self._rewrite(change.path, new)
        return left

    def _rewrite(self, path: str, data: bytes) -> None:
        """Replaces a file durably: the log will not be able to restore it."""
        place = self._layout.root / path
        mode = place.stat().st_mode & 0o777
        write_durably(place, data)
        place.chmod(mode)
        self._worktree.verify(path, object_id("blob", data), data)

    def _remove(self, path: str) -> None:
        (self._layout.root / path).unlink(missing_ok=True)
        for folder in (self._layout.root / path).parents:
            if folder == self._layout.root or not _empty(folder):
                break
            folder.rmdir()
        sync_path(folder)

    # What lies beside the files

    def beside(self, paths: Iterable[str], needles: Needles) -> tuple[list[str], list[str]]:
        """What bears the name of an erased file: (removed since it held the text, left since it does not)."""
        removed, left = [], []
        for path in sorted(set(paths)):
            folder, _, name = path.rpartition("/")
            for other in _bearing(self._layout.root / folder, name):
                place = f"{folder}/{other.name}" if folder else other.name
                data = self._worktree.read(place)
                if data is None:
                    continue
                if needles.holds(data):
                    self._remove(place)
                    removed.append(place)
                else:
                    left.append(place)
        return removed, left

    def empty_folders(self, needles: Needles) -> list[str]:
        """Removes the folders that hold nothing and whose name says something of it; returns them."""
        found = []
        for place, folders, _ in os.walk(self._layout.root):
            folders[:] = [name for name in folders if name not in (".git", CACHE)]
            found += [Path(place) / name for name in folders]
        removed = []
        for folder in reversed(found):
            if not folder.is_symlink() and _empty(folder) and needles.stands_in(os.fsencode(folder.name)):
                folder.rmdir()
                sync_path(folder.parent)
                removed.append(folder.relative_to(self._layout.root).as_posix())
        return removed

    # Git's index

    def staged(self) -> dict[bytes, bytes]:
        """path -> blob of everything that the index holds."""
        if not self._layout.index.exists():
            return {}
        out = self._git.call("ls-files", "-s", "-z", accept=(0, 128), index=self._layout.index).stdout
        rows = (row.partition(b"\t") for row in out.split(b"\0") if row)
        return {path: bytes.fromhex(head.split(b" ")[1].decode()) for head, _, path in rows}

    def rewrite_index(self, path: Path, moved: Places) -> None:
        """Takes erased blobs out of an index and leads its entries to the new ones; what is staged stays staged."""
        if not path.exists():
            return
        fresh = path.with_name(f"memoranda-index.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        entries = read_entries(path)
        if entries is not None:
            write_entries(fresh, self._led(entries, moved, ours=path == self._layout.index))
        else:
            self._led_by_git(path, fresh, moved)
        fresh.replace(path)
        sync_path(path.parent)
        for shared in path.parent.glob("sharedindex.*"):
            shared.unlink()

    def _led(self, entries: dict[bytes, bytes], moved: Places, *, ours: bool) -> dict[bytes, bytes]:
        led = {}
        for name, entry in entries.items():
            old = bytes.fromhex(blob_of(entry))
            new = moved.get(old, old)
            if new == old:
                led[name] = entry
            elif new is not None:
                path = name.decode("utf-8", "surrogateescape")
                status = self._worktree.status_of_ours(path, new.hex()) if ours else None
                led[name] = make_entry(name, new.hex(), status, entry[24:28] == b"\0\0\x81\xed")
        return led

    def _led_by_git(self, path: Path, fresh: Path, moved: Places) -> None:
        os.link(path, fresh)  # Git never writes into an index, it replaces it
        rows = []
        for row in self._git.call("ls-files", "-s", "-z", index=path).stdout.split(b"\0"):
            head, _, name = row.partition(b"\t")
            mode, blob, stage = head.split(b" ") if row else (b"", _GONE.encode(), b"")
            old = bytes.fromhex(blob.decode())
            new = moved.get(old, old)
            if new is None:
                rows.append(b"0 " + _GONE.encode() + b"\t" + name)
            elif new != old:
                rows.append(mode + b" " + new.hex().encode() + b" " + stage + b"\t" + name)
        options = ("--no-split-index", "--no-untracked-cache", "--clear-resolve-undo")
        stdin = b"".join(row + b"\0" for row in rows)
        self._git.call("update-index", *options, "-z", "--index-info", stdin=stdin, index=fresh)
        if path == self._layout.index:
            self._git.call("update-index", "-q", "--refresh", accept=(0, 1), index=fresh)


def sweep_git_dir(place: Path, needles: Needles) -> tuple[list[str], list[str]]:
    """What Git or its helpers left with the text: (removed, left because it is somebody's setting or unknown)."""
    removed, left = [], []
    for path in sorted(place.iterdir()):
        if path.name in _NOT_LOOKED_AT or path.name.endswith(".lock"):
            continue
        for file in files_below(path):
            if not needles.holds(file.read_bytes()):
                continue
            name = file.relative_to(place).as_posix()
            if _SPENT.fullmatch(path.name):
                file.unlink()
                sync_path(file.parent)
                removed.append(name)
            else:
                left.append(name)
    return removed, left


def settings_words(places: Iterable[Path]) -> Iterator[bytes]:
    """What stands in the settings of a repository, and stays there whatever is erased."""
    for place in places:
        for name in _STAYS:
            for file in files_below(place / name):
                yield file.read_bytes()


def files_below(path: Path, *, without: str = "") -> Iterator[Path]:
    """The regular files at or below a path, without those that are too large to be a text.

    A folder directly in `path` with the name `without` is left out.
    """
    if path.is_file() and not path.is_symlink():
        if path.stat().st_size <= LARGEST_FILE:
            yield path
    elif path.is_dir() and not path.is_symlink():
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if name != without or folder != str(path))
            for name in sorted(names):
                file = Path(folder) / name
                if file.is_file() and not file.is_symlink() and file.stat().st_size <= LARGEST_FILE:
                    yield file


def _bearing(folder: Path, name: str) -> list[Path]:
    """What an editor left of a file: `.note.md.swp`, `note.md~`, `#note.md#`, `note.md.orig`."""
    stem = name.removesuffix(".md")
    try:
        found = [path for path in folder.iterdir() if path.name.lstrip(".#~_").startswith(stem)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(p for p in found if not p.name.endswith(".md") and p.is_file() and not p.is_symlink())


def _coming(path: Path) -> Path:
    """Where a file is written before it takes its place."""
    return path.with_name(f"{path.name}.new")


def _empty(folder: Path) -> bool:
    try:
        return not any(folder.iterdir())
    except FileNotFoundError:
        return True
