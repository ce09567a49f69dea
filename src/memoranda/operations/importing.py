"""Takes a folder of Markdown into a Home, byte for byte; a second time it adds nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from memoranda.context import Context
from memoranda.errors import NotFound
from memoranda.home.draft import Change, Draft
from memoranda.home.repository import Repository
from memoranda.index.catchup import Progress
from memoranda.notes.ids import blob_id
from memoranda.notes.paths import slug
from memoranda.operations.admission import admit_many
from memoranda.operations.follower import Follower
from memoranda.operations.open_home import OpenHome
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.scanner import Scanner
from memoranda.operations.sessions import Met
from memoranda.operations.space import Space
from memoranda.operations.vault import as_md, markdown_files, read_file
from memoranda.trust.secrets import masked_path
from memoranda.values import dataclass

_GROUP_BYTES = 1 << 20
_GROUP_FILES = 1000
_MANY = 2000  # files from which on a second process is worth its start
# One question to the process that scans: what is unanswered has to have room in a pipe, and its files in memory.
_ASKED_FILES, _ASKED_NAMES, _ASKED_BYTES = 64, 4000, 1 << 19
_REPORT = 100  # files from one report of progress to the next
_AHEAD = 3  # questions that are asked before the first answer is needed


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
    met = space.met(context, home)
    pass_guards(context, Call("import", scope="project", met=met))  # a file says itself what scope it has
    home.refresh(context)
    target = f"memory/notes/{slug(name) or 'imported'}"
    with home.indexes.lock:
        present = home.indexes.catalog.blobs()
    run = _Run(context, home, source, target, present, met)
    files = sorted(markdown_files(source, run.left))
    with home.repository.many():
        _take_all(run, files, progress)
    home.indexes.catch_up()
    return ImportedFolder(run.taken, run.already, run.odd(), tuple(run.left), target, home.name)


def _take_all(run: _Run, files: Sequence[str], progress: Progress | None) -> None:
    """Takes in the files. Who looks for secrets and who keep the indexes up are processes of their own for many."""
    indexes, repository = run.home.indexes, run.home.repository
    if len(files) < _MANY or not isinstance(repository, Repository):  # others follow a log in a folder
        run.written = indexes.ahead
        _take_each(run, files, progress)
        indexes.ahead(last=True)
        return
    place = repository.root, repository.keys.folder
    parts = ["catalog", "content", *(["vectors"] if indexes.awaits_vectors() else [])]
    with ExitStack() as stack:
        followers = [stack.enter_context(Follower(*place, part)) for part in parts]
        scanner = stack.enter_context(Scanner(run.source, run.rules))

        def written() -> None:
            for follower in followers:
                follower.call()

        run.written, run.scanner = written, scanner
        _take_each(run, files, progress)
        for follower in followers:
            if (complaint := follower.finish()) is not None:
                indexes.notices.append(f"A second process of the import failed: {complaint}")


def _take_each(run: _Run, files: Sequence[str], progress: Progress | None) -> None:
    if progress is not None:
        run.tell = lambda done: progress("importing files", done, len(files))
        run.tell(0)
    for name in files:
        run.offer(name)
    run.write_all()
    run.tell(len(files))


class _Offered(NamedTuple):
    """A file that was read: its name in the folder and in the Home, its bytes and their id."""

    name: str
    relative: str
    data: bytes
    blob: str


class _Run:
    """One import under way: collects files and writes them a megabyte at a time."""

    def __init__(
        self, context: Context, home: OpenHome, source: Path, target: str, present: dict[str, int], met: Met
    ) -> None:
        self._context = context
        self._met = met
        self._lines = list(met.lines)
        self.home = home
        self.rules = home.rules
        self.source = source
        self._folder = f"{source}/"
        self._target = target
        self._present = present
        self._group: list[Change] = []
        self._bytes = 0
        self._offered_names = self._offered_bytes = 0
        self._used: set[str] = set()
        self._names: dict[str, str] = {}
        self.taken = self.already = 0
        self.tell: Callable[[int], None] = lambda _done: None
        self._settled = 0  # files of which it is settled what becomes of them: those that were taken are durable
        self.left: list[tuple[str, str]] = []
        self.written: Callable[[], None] = lambda: None  # told after each group
        self.scanner: Scanner | None = None
        self._offered: list[_Offered] = []
        self._asked: deque[list[_Offered]] = deque()

    def offer(self, name: str) -> None:
        """Reads the file `name` of the folder; it is taken when it is new here and nothing speaks against it."""
        relative = as_md(name)
        try:
            data = read_file(self._folder + name)
        except OSError as error:
            self.left.append((relative, error.strerror or "it cannot be read"))
            self._settle(1)
            return
        blob = blob_id(data)
        if data.strip() and self._present.get(blob, 0):
            self._present[blob] -= 1  # of two files with the same bytes an import that was killed may have taken one
            self.already += 1
            self._settle(1)
            return
        self._offered.append(_Offered(name, relative, data, blob))
        self._offered_names += len(name)
        self._offered_bytes += len(data)
        if (
            len(self._offered) == _ASKED_FILES
            or self._offered_names >= _ASKED_NAMES
            or self._offered_bytes >= _ASKED_BYTES
        ):
            self._ask()

    def _ask(self) -> None:
        """Has what was offered judged, and takes in what was judged meanwhile."""
        batch, self._offered = self._offered, []
        self._offered_names = self._offered_bytes = 0
        if self.scanner is None:
            self._take(batch, admit_many([(item.data, item.relative) for item in batch], self.rules))
            return
        self.scanner.ask([item.name for item in batch])
        self._asked.append(batch)
        if len(self._asked) > _AHEAD:
            self._hear(self.scanner)

    def _hear(self, scanner: Scanner) -> None:
        batch = self._asked.popleft()
        judged = scanner.answer() or [(None, None)] * len(batch)
        reasons = [
            reason if seen == item.blob else admit_many([(item.data, item.relative)], self.rules)[0]
            for item, (seen, reason) in zip(batch, judged, strict=True)
        ]
        self._take(batch, reasons)

    def _take(self, batch: Sequence[_Offered], reasons: Sequence[str | None]) -> None:
        for (_, relative, data, blob), found in zip(batch, reasons, strict=True):
            if (reason := found or self.home.tombs.admit(data, relative)) is not None:
                self.left.append((masked_path(relative), reason))
                self._settle(1)
                continue
            place = self._place(relative)
            if place is None:
                self.already += 1
                self._settle(1)
                continue
            self._names[place] = relative
            self._group.append(Change(place, data, blob=blob))
            self._bytes += len(data)
            self.taken += 1
            if self._bytes >= _GROUP_BYTES or len(self._group) >= _GROUP_FILES:
                self._write()

    def _settle(self, files: int) -> None:
        before, self._settled = self._settled, self._settled + files
        if before // _REPORT != self._settled // _REPORT:
            self.tell(self._settled)

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

    def write_all(self) -> None:
        """Everything that was offered is judged, and what may be taken is written."""
        self._ask()
        while self._asked and self.scanner is not None:
            self._hear(self.scanner)
        self._write()

    def _write(self) -> None:
        if not self._group:
            return
        group, self._group, self._bytes = self._group, [], 0
        self.home.repository.write(self._context, lambda _at: self._draft(group))
        self._settle(len(group))
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
