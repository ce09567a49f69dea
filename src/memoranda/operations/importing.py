"""Takes a folder of Markdown into a Home, byte for byte; a second time it adds nothing."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from memoranda.context import Context
from memoranda.errors import InvalidPath, NotFound
from memoranda.home.draft import Change, Draft
from memoranda.index.catchup import Progress
from memoranda.notes.ids import blob_id
from memoranda.notes.paths import check_path, slug
from memoranda.operations.admission import admit
from memoranda.operations.follower import Follower
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.sessions import Met
from memoranda.operations.space import OpenHome, Space
from memoranda.trust.secrets import masked_path
from memoranda.values import dataclass

_GROUP_BYTES = 1 << 20
_GROUP_FILES = 1000
_MANY = 2000  # files from which on a second process is worth its start
_LARGEST = 64 << 20
_NO_FILE = "it is a link or not a regular file"
_TOO_LONG = 200  # bytes of a file name; file systems end at 255 and copies add to it


@dataclass(frozen=True, slots=True)
class ImportedFolder:
    """What an import did: files `taken`, `present` already, `odd` (taken as they are, though not understood: path
    and reason), `left` (not taken: path and reason), and where the taken ones lie."""

    taken: int
    present: int
    odd: tuple[tuple[str, str], ...]
    left: tuple[tuple[str, str], ...]
    folder: str
    home: str

    def json(self) -> dict[str, object]:
        def rows(pairs: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
            return [{"path": path, "reason": reason} for path, reason in pairs]

        return {
            "taken": self.taken, "present": self.present, "odd": rows(self.odd), "left": rows(self.left),
            "folder": self.folder, "home": self.home,
        }  # fmt: skip


def import_folder(context: Context, space: Space, source: Path, progress: Progress | None = None) -> ImportedFolder:
    """Copies every `*.md` file of `source` to `memory/notes/<name of the folder>/`, keeping its bytes and its place.

    Raises:
        NotFound: `source` is no folder.
        ReadOnlyHome: the Home cannot be written.
    """
    if not source.is_dir():
        raise NotFound(f"{source} is not a folder.", remedy="Name a folder of Markdown files.")
    home = space.writable()
    name = source.resolve().name
    pass_guards(context, Call("import", writes=True, fields=(("name of the folder", name),), rules=home.rules))
    home.refresh(context)
    target = f"memory/notes/{slug(name) or 'imported'}"
    present = home.indexes.catalog.blobs()
    run = _Run(context, home, source, target, present, space.met(context, home))
    files = sorted(_markdown(source, run.left))
    with home.repository.many():
        _take_all(run, files, progress)
    home.indexes.catch_up()
    return ImportedFolder(run.taken, run.already, run.odd(), tuple(run.left), target, home.name)


def _take_all(run: _Run, files: Sequence[str], progress: Progress | None) -> None:
    """Takes in the files, and brings the indexes up meanwhile: here when they are few, else in a second process."""
    indexes, repository = run.home.indexes, run.home.repository
    if len(files) < _MANY:
        run.written = indexes.ahead
        _take_each(run, files, progress)
        indexes.ahead(last=True)
        return
    with Follower(repository.root, repository.keys.folder) as follower:
        run.written = follower.call
        _take_each(run, files, progress)
        if (complaint := follower.finish()) is not None:
            indexes.notices.append(f"A second process of the import failed: {complaint}")


def _take_each(run: _Run, files: Sequence[str], progress: Progress | None) -> None:
    for done, relative in enumerate(files):
        if progress and done % 100 == 0:
            progress("importing files", done, len(files))
        run.take(relative)
    run.write()
    if progress:
        progress("importing files", len(files), len(files))


class _Run:
    """One import under way: collects files and writes them a megabyte at a time."""

    def __init__(
        self, context: Context, home: OpenHome, source: Path, target: str, present: dict[str, int], met: Met
    ) -> None:
        self._context = context
        self._met = met
        self._lines = list(met.lines)
        self.home = home
        self._rules = home.rules
        self._source = f"{source}/"
        self._target = target
        self._present = present
        self._group: list[Change] = []
        self._bytes = 0
        self._used: set[str] = set()
        self._names: dict[str, str] = {}
        self.taken = self.already = 0
        self.left: list[tuple[str, str]] = []
        self.written: Callable[[], None] = lambda: None  # told after each group

    def take(self, name: str) -> None:
        """Takes in the file `name` of the folder."""
        relative = _as_md(name)
        try:
            data = _read(self._source + name)
        except OSError as error:
            self.left.append((relative, error.strerror or "it cannot be read"))
            return
        blob = blob_id(data)
        if data.strip() and self._present.get(blob, 0):
            self._present[blob] -= 1  # of two files with the same bytes an import that was killed may have taken one
            self.already += 1
            return
        place = self._place(relative)
        if place is None:
            self.already += 1
            return
        if (reason := admit(data, relative, self._rules) or self.home.tombs.admit(data, relative)) is not None:
            self.left.append((masked_path(relative), reason))
            return
        self._names[place] = relative
        self._group.append(Change(place, data, blob=blob))
        self._bytes += len(data)
        self.taken += 1
        if self._bytes >= _GROUP_BYTES or len(self._group) >= _GROUP_FILES:
            self.write()

    def _place(self, relative: str) -> str | None:
        """Where a file goes; None when an empty file lies there already. A name in use gets a number."""
        folder, _, name = f"{self._target}/{relative}".rpartition("/")
        folder = self.home.folder_with_room(folder)
        stem = name.removesuffix(".md")
        number = 1
        while True:
            place = f"{folder}/{stem}.md" if number == 1 else f"{folder}/{stem} {number}.md"
            if place.casefold() not in self._used and not self.home.repository.worktree.exists(place):
                self._used.add(place.casefold())
                return place
            if self.home.repository.worktree.read(place) == b"":
                return None
            number += 1

    def odd(self) -> tuple[tuple[str, str], ...]:
        """What was taken without being understood, as the catalog has read it."""
        rows = self.home.indexes.catalog.with_problems()
        return tuple((self._names[row.path], "; ".join(row.problems)) for row in rows if row.path in self._names)

    def write(self) -> None:
        if not self._group:
            return
        group, self._group, self._bytes = self._group, [], 0
        self.home.repository.write(self._context, lambda _at: self._draft(group))
        self.written()

    def _draft(self, group: Sequence[Change]) -> Draft:
        blobs = [change.blob for change in group]
        line = {
            "kind": "writes", "op": "import", "blobs": blobs, "user": self._context.user, "origin": "import",
            "agent": self._context.agent, "session": self._met.session, "taint": self._met.taint.records(),
        }  # fmt: skip
        lines, self._lines = [*self._lines, line], []
        what = f"{len(group)} files" if len(group) != 1 else group[0].path.rpartition("/")[2]
        return Draft("import", f"Import {what}", group, lines, {}, self._context.user)


def _as_md(name: str) -> str:
    """`notes/x.markdown` becomes `notes/x.md`."""
    return name if name.endswith(".md") else f"{name.rpartition('.')[0]}.md"


def _read(path: str) -> bytes:
    """The bytes of a regular file; OSError says why there are none."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, _NO_FILE)
        if status.st_size > _LARGEST:
            raise OSError(errno.EFBIG, "it is larger than 64 MB")
        data = os.read(descriptor, status.st_size + 1)
        if len(data) != status.st_size:  # it is being written, or comes in pieces
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                file.seek(0)
                data = file.read()
        return data
    finally:
        os.close(descriptor)


def _markdown(source: Path, left: list[tuple[str, str]]) -> Iterator[str]:
    """The path, relative to `source`, of every Markdown file; what cannot be taken goes to `left`."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(source / folder) as found:
                entries = [entry for entry in found if not entry.name.startswith(".")]
        except OSError as error:
            left.append((_printable(folder), f"this folder cannot be read: {error.strerror}"))
            continue
        for entry in entries:
            relative = folder + entry.name
            if entry.is_dir(follow_symlinks=False):
                folders.append(f"{relative}/")
            elif entry.name.lower().endswith((".md", ".markdown")):
                if reason := _unfit(entry, relative):
                    left.append((_printable(relative), reason))
                else:
                    yield relative


def _printable(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _unfit(entry: os.DirEntry[str], relative: str) -> str | None:
    if not entry.is_file(follow_symlinks=False):
        return _NO_FILE
    try:
        if len(entry.name.encode("utf-8")) > _TOO_LONG:
            return "its name is too long"
        check_path(relative)
    except UnicodeEncodeError:
        return "its name is not Unicode"
    except InvalidPath as error:
        return error.why
    return None
