"""The files that people see: written from records, repaired after a crash, never followed out of the Home."""

from __future__ import annotations

import errno
import glob
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from memoranda.errors import InvalidPath
from memoranda.home.durable import sync_data, sync_path
from memoranda.home.objects import object_id
from memoranda.home.record import FileChange, Record

LARGEST_FILE = 64 << 20
_MANY = 64
_PIECE = 4096  # bytes that are asked for behind the end of a file
_NOT_OURS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EACCES)
_KEPT = 2  # folders above one that goes when it is empty: memory/notes stays without a file


class Worktree:
    """The working tree at `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._base = f"{root}/"  # plain strings: this runs once a note, and pathlib costs more than the system calls
        # path -> what `_mark` saw right after our own write, and the blob that it left there
        self._written: dict[str, tuple[int, int, int, str]] = {}

    def apply(self, change: FileChange, folders: set[str] | None = None) -> None:
        """Does what a change says; what was found outside is there already.

        `folders` are those that this write has been in before: one look at each is enough.
        """
        if change.outside:
            return
        path = self._base + change.path
        if change.new is None:
            Path(path).unlink(missing_ok=True)
            self._leave(change.path)
            return
        folder = change.path.rpartition("/")[0]
        if folders is None or folder not in folders:
            self._folder(change.path)
            if folders is not None:
                folders.add(folder)
        if not change.appended and change.old is not None:
            self._replace(change.path, change.data)
            return
        flags = os.O_APPEND if change.appended else os.O_EXCL
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o644)
        try:
            before = os.fstat(descriptor) if change.appended else None
            # Else somebody had edited what we append to, and it must be found.
            exact = before is None or self._written.get(change.path) == (*_mark(before), change.old)
            try:
                _write_all(descriptor, change.data)
            except OSError:  # half of a note must not stay, and be taken for an edit
                if before is not None:
                    os.ftruncate(descriptor, before.st_size)
                else:
                    os.unlink(path)  # noqa: PTH108
                raise
            self._written.pop(change.path, None)
            if exact:
                self._written[change.path] = (*_mark(os.fstat(descriptor)), change.new)
        finally:
            os.close(descriptor)

    def take_back(self, applied: Iterable[FileChange], blob: Callable[[str], bytes | None]) -> None:
        """Undoes what `apply` did a moment ago; `blob` gives what a replaced or deleted file held."""
        for change in applied:
            path = self.root / change.path
            if change.outside:
                continue
            if change.appended:
                os.truncate(path, path.stat().st_size - len(change.data))
            elif change.old is None:
                path.unlink(missing_ok=True)
            elif (before := blob(change.old)) is not None:
                self._folder(change.path)
                self._replace(change.path, before)

    def _leave(self, name: str) -> None:
        """Removes the folders above a file that went, as far as they are empty: their names are words as well."""
        folder = name.rpartition("/")[0]
        while folder.count("/") >= _KEPT and _is_empty(self._base + folder):
            os.rmdir(self._base + folder)  # noqa: PTH106
            folder = folder.rpartition("/")[0]

    def _replace(self, name: str, data: bytes) -> None:
        path = self.root / name
        fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            _write_all(descriptor, data)
            self._written[name] = (*_mark(os.fstat(descriptor)), object_id("blob", data))
        except OSError:
            fresh.unlink()
            raise
        finally:
            os.close(descriptor)
        fresh.replace(path)

    def _folder(self, name: str) -> None:
        """Makes the folders above a file; InvalidPath when one of them is a link or a file."""
        at = name.find("/")
        while at >= 0:
            folder = self._base + name[:at]
            try:
                mode = os.lstat(folder).st_mode
            except FileNotFoundError:
                Path(folder).mkdir(exist_ok=True)
                mode = stat.S_IFDIR
            if not stat.S_ISDIR(mode):
                raise InvalidPath(
                    f"{name} cannot be written.",
                    why=f"{name[:at]} is a link or a file, not a folder.",
                    remedy="Put a folder in its place.",
                )
            at = name.find("/", at + 1)

    def executable(self, name: str) -> bool:
        """Whether the file may be run as a program: Git keeps that beside its bytes."""
        status = self._status(name)
        return status is not None and bool(status.st_mode & stat.S_IXUSR)

    def exists(self, name: str) -> bool:
        return is_there(self._base + name)

    def size(self, name: str) -> int:
        """The bytes of the file, 0 when there is none; of our own, as we left it last."""
        if (mark := self._written.get(name)) is not None:
            return mark[1]
        try:
            return os.stat(self._base + name).st_size  # noqa: PTH116 - once a note
        except FileNotFoundError:
            return 0

    def stands_in_the_way(self, name: str) -> str | None:
        """What is at the place of a file that may be it, and that cannot be read: a link, a lock. None: it is gone."""
        try:
            status = os.lstat(self._base + name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return f"its folder cannot be looked into ({error.strerror})"
        if stat.S_ISDIR(status.st_mode):
            return None
        if not stat.S_ISREG(status.st_mode):
            return "it is a link" if stat.S_ISLNK(status.st_mode) else "it is no regular file"
        return "it is too large" if status.st_size > LARGEST_FILE else "it cannot be read, or a link leads to it"

    def untouched(self, name: str, blob: str) -> bool:
        """Whether the file is still as our own last write left it, and that was this blob."""
        return self.status_of_ours(name, blob) is not None

    def verify(self, name: str, blob: str, data: bytes) -> None:
        """Looks whether the file holds `data`, which is this blob; if so it counts as ours from now on."""
        status = self._status(name)
        if status is not None and status.st_size == len(data) and self.read(name) == data:
            self._written[name] = (*_mark(status), blob)

    def adopt(self, name: str, blob: str) -> bytes | None:
        """The bytes of the file if they are this blob, which counts as ours from now on; None for anything else."""
        status = self._status(name)
        data = self.read(name)
        if status is None or data is None or object_id("blob", data) != blob:
            return None
        self._written[name] = (*_mark(status), blob)
        return data

    def status_of_ours(self, name: str, blob: str) -> os.stat_result | None:
        """The status of a file that is still as our own last write left it, when that was this blob."""
        mark = self._written.get(name)
        if mark is None or mark[3] != blob:
            return None
        status = self._status(name)
        return status if status is not None and _mark(status) == mark[:3] else None

    def _status(self, name: str) -> os.stat_result | None:
        try:
            return os.lstat(self._base + name)
        except OSError:
            return None

    def read(self, name: str) -> bytes | None:
        """The bytes of a regular file that no link leads to; None for anything else, or when it has just gone."""
        at = name.find("/")
        try:
            while at >= 0:
                if stat.S_ISLNK(os.lstat(self._base + name[:at]).st_mode):
                    return None
                at = name.find("/", at + 1)
            descriptor = os.open(
                self._base + name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            )  # not blocking: a FIFO that bears the name of a note must not stop us
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
                return None
            return _read_all(descriptor, status.st_size)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def repair(
        self,
        records: Iterable[Record],
        blob: Callable[[str], bytes | None],
        holds: Callable[[str], str | None] | None = None,
    ) -> list[str]:
        """Brings the files of records that may not have reached the disk to their last state; returns the mended.

        A file that holds something else than any of its recorded states, and is not torn, was edited by a person and
        stays. With `holds` (path -> blob that the Home knows now) only files that are still what the records made of
        them are mended. OSError when a file cannot be written.
        """
        states: dict[str, list[str | None]] = {}
        contents: dict[str, tuple[str | None, bytes]] = {}  # path -> its last state: one is enough, journals are long
        for record in records:
            for change in record.changes:
                if change.outside and holds is None:
                    states.pop(change.path, None)  # it stood there before it was recorded
                    continue
                known = states.setdefault(change.path, [change.old])
                known.append(change.new)
                contents[change.path] = change.new, _content(change, contents.get(change.path), blob)
        mended = []
        for path, known in states.items():
            if holds is not None and holds(path) != known[-1]:
                continue
            try:
                if self._repair(path, known, contents[path][1]):
                    mended.append(path)
            except InvalidPath:
                continue  # a file or a link stands where its folder was: somebody's doing
        return mended

    def _repair(self, path: str, known: list[str | None], content: bytes) -> bool:
        wanted = known[-1]
        found = self.read(path)
        actual = None if found is None else object_id("blob", found)
        if actual == wanted:
            return False
        if found is None and self.exists(path):
            return False  # a link or something else stands there now: somebody's doing
        if wanted is None:
            if actual in known:
                (self.root / path).unlink(missing_ok=True)
            return actual in known
        if found is not None and actual not in known and not _torn(found, content):
            return False
        self._folder(path)
        for left in (self.root / path).parent.glob(f".{glob.escape(path.rpartition('/')[2])}.*.tmp"):
            left.unlink(missing_ok=True)  # of a repair that was killed as well
        self._replace(path, content)
        return True

    def sync(self, paths: Iterable[str]) -> None:
        """Syncs files and their folders, many by the whole file system.

        What has gone meanwhile, or is a link or a FIFO now, is passed over: it is not what we wrote.
        """
        paths = list(paths)
        if len(paths) > _MANY:
            os.sync()
            return
        folders: set[Path] = set()
        for name in paths:
            path = self.root / name
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                if error.errno not in _NOT_OURS:
                    raise
            else:
                try:
                    if stat.S_ISREG(os.fstat(descriptor).st_mode):
                        sync_data(descriptor)
                finally:
                    os.close(descriptor)
            folders.update(p for p in path.parents if p.is_relative_to(self.root))
        for folder in sorted(folders):
            if folder.exists():
                sync_path(folder)


def is_there(path: str) -> bool:
    """Whether something bears this name, be it a link that leads nowhere; without an exception when nothing does."""
    return os.access(path, os.F_OK, follow_symlinks=False)


def _content(change: FileChange, held: tuple[str | None, bytes] | None, blob: Callable[[str], bytes | None]) -> bytes:
    if not change.appended or change.old is None:
        return change.data
    before = held[1] if held is not None and held[0] == change.old else blob(change.old) or b""
    return before + change.data


def _write_all(descriptor: int, data: bytes) -> None:
    if (done := os.write(descriptor, data)) == len(data):
        return
    view = memoryview(data)[done:]
    while view:
        view = view[os.write(descriptor, view) :]


def _read_all(descriptor: int, size: int) -> bytes:
    """All of an open file that had `size` bytes a moment ago."""
    pieces = []
    while piece := os.read(descriptor, size + 1):
        pieces.append(piece)
        size = max(size - len(piece), _PIECE)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _mark(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_mtime_ns, status.st_size, status.st_ino


def _torn(found: bytes, wanted: bytes) -> bool:
    """Whether `found` is what a loss of power leaves of `wanted`: cut short, or with blocks of zeros."""
    return wanted.startswith(found.rstrip(b"\0")) or (b"\0" * 64 in found and b"\0" not in wanted)


def _is_empty(folder: str) -> bool:
    try:
        return not os.listdir(folder)  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return False
