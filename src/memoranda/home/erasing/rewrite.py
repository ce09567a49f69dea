"""Writes a history again without what has to go: new blobs, trees, commits and tags where something changes, the rest
stays as it is. Authors, dates and the number of commits stay; a signature that no longer fits is left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from memoranda.home.erasing.blanking import Part, blank
from memoranda.home.erasing.redact import LedgerLines, Messages, unsigned_message
from memoranda.home.erasing.survey import ENTRY, Survey
from memoranda.home.git import CatFile
from memoranda.home.objects import GitObject, make_object

_CHUNK = 32 << 20  # bytes of new objects in one pack
_DROPPED = (b"gpgsig", b"gpgsig-sha256", b"mergetag")


class Sink:
    """Gathers new objects and hands them on in lots."""

    def __init__(self, put: Callable[[Sequence[GitObject]], None]) -> None:
        self._put = put
        self._held: list[GitObject] = []
        self._bytes = 0
        self.ids: set[bytes] = set()

    def emit(self, item: GitObject) -> bytes:
        """Takes one object, once; returns its id."""
        oid = bytes.fromhex(item.oid)
        if oid not in self.ids:
            self.ids.add(oid)
            self._held.append(item)
            self._bytes += len(item.data)
            if self._bytes > _CHUNK:
                self.flush()
        return oid

    def take(self, item: GitObject) -> None:
        """Takes one object, once."""
        self.emit(item)

    def flush(self) -> None:
        if self._held:
            self._put(self._held)
            self._held, self._bytes = [], 0


class Rewriter:
    """Makes the new objects.

    `moved` maps the id of every object that goes to the one in its place, None for none. `silent` are the commits and
    tags whose message had words of the text.

    Args:
        reader: a reader of objects of its own.
        survey: what was found.
        parts: the lines that go, `mark` the line that stands for them.
    """

    def __init__(self, reader: CatFile, sink: Sink, survey: Survey, parts: Sequence[Part], mark: bytes) -> None:
        self._reader = reader
        self._sink = sink
        self._s = survey
        self._parts = parts
        self._mark = mark
        self.moved: dict[bytes, bytes | None] = dict.fromkeys(survey.gone)
        self.silent: set[bytes] = set()
        self.unsigned = 0
        self.hints: dict[bytes, bytes] = {}  # new object -> a name by which Git finds what resembles it
        self._lost: dict[bytes, int] = {}  # tree -> a digest of what it loses, for comparison only

    # Blobs

    def files(self) -> None:
        """Blanks lines of files."""
        last: dict[bytes, str] = {}
        for oid, data in self._each(self._s.lines):
            self._blob(oid, data, blank(data, self._parts, self._mark), self._s.lines[oid], last)

    def segments(self, ledger: LedgerLines) -> None:
        """Takes the text out of the ledger."""
        last: dict[bytes, str] = {}
        for oid, data in self._each(self._s.segments):
            self._blob(oid, data, ledger.redact(data), b"ledger", last)

    def _blob(self, oid: bytes, old: bytes, new: bytes, name: bytes, last: dict[bytes, str]) -> None:
        if new != old:
            item = make_object("blob", new, last.get(name))
            last[name] = item.oid
            self.moved[oid] = self._sink.emit(item)
            self.hints[bytes.fromhex(item.oid)] = name

    def _each(self, oids: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        names = [oid.hex() for oid in oids]
        for name, found in zip(names, self._reader.get_many(names), strict=True):
            if found is not None:
                yield bytes.fromhex(name), found[2]

    # Trees

    def trees(self, around: set[bytes]) -> None:
        """Writes the trees again that hold something that changed; `around` are all that may, at any depth."""
        names = {kid: name for tree in around for name, kid in self._s.kids.get(tree, ())}
        for level in self._levels(around):
            last: dict[bytes, str] = {}
            for oid, data in self._each(sorted(level, key=self._s.trees.__getitem__)):
                self._tree(oid, data, names.get(oid, b""), last)

    def _levels(self, around: set[bytes]) -> list[list[bytes]]:
        """The trees, those without others in them first."""
        depth: dict[bytes, int] = {}
        kids = {tree: [kid for _, kid in self._s.kids.get(tree, ()) if kid in around] for tree in around}
        for tree in around:
            stack = [tree]
            while stack:
                now = stack[-1]
                todo = [kid for kid in kids[now] if kid not in depth] if now not in depth else []
                if todo:
                    stack += todo
                else:
                    depth.setdefault(now, 1 + max((depth[kid] for kid in kids[now]), default=-1))
                    stack.pop()
        levels: dict[int, list[bytes]] = defaultdict(list)
        for tree, level in depth.items():
            levels[level].append(tree)
        return [levels[level] for level in sorted(levels)]

    def _tree(self, oid: bytes, data: bytes, name: bytes, last: dict[bytes, str]) -> None:
        kept: list[bytes] = []
        lost: list[tuple[bytes, object]] = []
        changed = False
        for mode, entry, target in ENTRY.findall(data):
            new = self.moved.get(target, target)
            if target in self._lost:
                lost.append((entry, self._lost[target]))
            elif new is None:
                lost.append((entry, target))
            changed = changed or new != target
            if new is not None:
                kept.append(mode + b" " + entry + b"\0" + new)
        if lost:
            self._lost[oid] = hash(tuple(lost))
        if not changed:
            return
        if not kept:
            self.moved[oid] = None
            return
        tree = make_object("tree", b"".join(kept), last.get(name))
        last[name] = tree.oid
        self.moved[oid] = self._sink.emit(tree)
        self.hints[bytes.fromhex(tree.oid)] = name

    def emptied(self, tree: bytes) -> bool:
        """Whether nothing is left of a tree."""
        return tree in self.moved and self.moved[tree] is None

    def _root(self, tree: bytes) -> bytes:
        new = self.moved.get(tree, tree)
        return self._sink.emit(make_object("tree", b"")) if new is None else new

    # Commits and tags

    def commits(self, messages: Messages) -> None:
        """Writes the commits again that hold, follow or tell of something that changed."""
        touched = {oid for oid in self._s.commits if self._loses(oid)}
        silent = self._silenced(touched, messages)
        for oid, data in self._each(self._in_order(silent)):
            item = make_object("commit", self._commit(oid, data, silent))
            self.moved[oid] = self._sink.emit(item)
        self.silent |= set(silent)

    def _loses(self, oid: bytes) -> bool:
        """Whether a commit brought, changed or took away something that goes."""
        tree, parents = self._s.commits[oid]
        before = self._s.commits.get(parents[0], (b"", ()))[0] if parents else b""
        return self._lost.get(tree) != self._lost.get(before)

    def _silenced(self, touched: set[bytes], messages: Messages) -> dict[bytes, bytes]:
        """commit -> its message without the text; our own first, whose subjects others repeat."""
        found: dict[bytes, bytes] = {}
        spoken = [oid for oid in self._s.commits if oid in self._s.spoken]
        for oids in ([o for o in spoken if o in touched], [o for o in spoken if o not in touched]):
            for oid, data in self._each(oids):
                message = data.partition(b"\n\n")[2]
                clean = messages.redact(message, touched=oid in touched)
                if clean != message:
                    found[oid] = clean
        return found

    def _in_order(self, silent: Mapping[bytes, bytes]) -> list[bytes]:
        """The commits that are to be written again, parents before children."""
        commits = self._s.commits
        children: dict[bytes, list[bytes]] = defaultdict(list)
        for oid, (_, parents) in commits.items():
            for parent in parents:
                children[parent].append(oid)
        todo = [oid for oid, (tree, _) in commits.items() if oid in silent or tree in self.moved]
        again = set(todo)
        while todo:
            fresh = [child for child in children.get(todo.pop(), ()) if child not in again]
            again.update(fresh)
            todo += fresh
        waiting = {oid: sum(parent in again for parent in set(commits[oid][1])) for oid in again}
        ready = [oid for oid, count in waiting.items() if count == 0]
        order = []
        while ready:
            oid = ready.pop()
            order.append(oid)
            for child in dict.fromkeys(children.get(oid, ())):
                waiting[child] -= 1
                if waiting[child] == 0:
                    ready.append(child)
        return order

    def _commit(self, oid: bytes, data: bytes, silent: Mapping[bytes, bytes]) -> bytes:
        head, _, message = data.partition(b"\n\n")
        rows: list[bytes] = []
        dropping = False
        for row in head.split(b"\n"):
            if row.startswith(b" ") and dropping:
                continue
            word, _, rest = row.partition(b" ")
            dropping = word in _DROPPED
            if dropping:
                self.unsigned += word != b"mergetag"
            elif word == b"tree" and not rows:
                rows.append(b"tree " + self._root(bytes.fromhex(rest.decode())).hex().encode())
            elif word == b"parent" and rows[-1].startswith((b"tree ", b"parent ")):
                parent = bytes.fromhex(rest.decode())
                new = self.moved.get(parent) or parent
                rows.append(b"parent " + new.hex().encode())
            else:
                rows.append(row)
        return b"\n".join(rows) + b"\n\n" + silent.get(oid, message)

    def tags(self, messages: Messages) -> None:
        """Writes the tags again whose object has changed or whose message tells of the text."""
        todo = dict(self._s.tags)
        while todo:  # a tag may name a tag
            ready = [oid for oid, target in todo.items() if target not in todo]
            for oid, data in self._each(ready):
                self._tag(oid, data, todo[oid], messages)
            for oid in ready:
                del todo[oid]

    def _tag(self, oid: bytes, data: bytes, target: bytes, messages: Messages) -> None:
        head, _, message = data.partition(b"\n\n")
        clean = messages.redact(message, touched=False) if oid in self._s.spoken else message
        new = self.moved.get(target, target)
        if new == target and clean == message:
            return
        if new is None:
            self.moved[oid] = None  # it named a file that is gone
            return
        if clean != message:
            self.silent.add(oid)
        bare = unsigned_message(clean)
        self.unsigned += bare != clean
        rows = [b"object " + new.hex().encode(), *head.split(b"\n")[1:]]
        self.moved[oid] = self._sink.emit(make_object("tag", b"\n".join(rows) + b"\n\n" + bare))
