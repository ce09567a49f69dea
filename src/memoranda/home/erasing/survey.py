"""Looks through every object of a store for what has to go, before anything is changed.

Blobs first, then commits and tags, then trees. Object ids are 20 bytes here, since there are many.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from memoranda.home.erasing.blanking import Part, blank
from memoranda.home.erasing.needles import ENTRY_GOES, LINE, NOTE_GOES, Needles, text_of, words_of
from memoranda.home.erasing.redact import is_segment, names_any
from memoranda.home.git import CatFile
from memoranda.home.objects import TREE_MODE
from memoranda.values import dataclass, field

ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.S)
_LINK_MODE = b"160000"
_COMMON = 200  # a word in more blobs than these is no sign of anything
_CITED = re.compile(rb"nas://[^\s\"'<>)\]]+?@([0-9a-f]{4,64})(?![0-9a-f])")
# What a line of the ledger says in free words; the other members are names that the program gives.
_FREE = frozenset(("path", "reason", "comment", "text", "title", "subject", "source", "sources", "taint", "fields"))


@dataclass(slots=True)
class Survey:
    """What was found.

    `ids` are all objects, `gone` the blobs that go whole, `more` those among them that nobody named, `lines` the blobs
    of which lines go (with a name), `segments` those of a ledger. `trees` counts the trees in the order of the store,
    `kids` gives (name, tree) for the trees in a tree, `bearers` are the trees that hold a blob that may change.
    `commits` gives (tree, parents), `tags` what a tag names, `spoken` the commits and tags whose message has a word of
    the text. `cited` are the revisions in pointers. `gone_paths` and `line_paths` are where these blobs stand,
    `elsewhere` the paths of files that stay and hold a line of the text.
    """

    ids: set[bytes] = field(default_factory=set)
    gone: set[bytes] = field(default_factory=set)
    more: set[bytes] = field(default_factory=set)
    lines: dict[bytes, bytes] = field(default_factory=dict)
    segments: dict[bytes, bytes] = field(default_factory=dict)
    trees: dict[bytes, int] = field(default_factory=dict)
    kids: dict[bytes, tuple[tuple[bytes, bytes], ...]] = field(default_factory=dict)
    bearers: set[bytes] = field(default_factory=set)
    ledger_bearers: set[bytes] = field(default_factory=set)
    commits: dict[bytes, tuple[bytes, tuple[bytes, ...]]] = field(default_factory=dict)
    tags: dict[bytes, bytes] = field(default_factory=dict)
    spoken: set[bytes] = field(default_factory=set)
    cited: set[str] = field(default_factory=set)
    gone_paths: set[bytes] = field(default_factory=set)
    line_paths: set[bytes] = field(default_factory=set)
    elsewhere: set[bytes] = field(default_factory=set)


class Surveyor:
    """Makes a survey.

    Args:
        reader: a reader of objects of its own.
        needles: what to look for.
        named: the blobs that go whole.
        parts: the lines that go.
    """

    def __init__(self, reader: CatFile, needles: Needles, named: Iterable[bytes], parts: Sequence[Part]) -> None:
        self._reader = reader
        self._needles = needles
        self._parts = parts
        self._blocks = [part for part in parts if part.entry is None]
        self._s = Survey(gone=set(named))
        self._about = frozenset((*(b.hex().encode() for b in self._s.gone), *needles.notes, *needles.entries))
        self._holders: dict[str, set[bytes]] = defaultdict(set)  # a word or a line of the text -> blobs
        self._common: set[str] = set()  # what too many hold
        self._same: set[bytes] = set()  # blobs that bear the id of a note that goes
        self._places: dict[bytes, set[tuple[bytes, bytes]]] = defaultdict(set)  # blob -> (tree, name)
        self._names: dict[bytes, frozenset[str]] = {}
        self._interned: dict[bytes, bytes] = {}
        self._files: dict[bytes, set[bytes]] = defaultdict(set)  # a name with a word of the text -> blobs
        self._folders: dict[bytes, set[bytes]] = defaultdict(set)  # the same -> trees
        self._told: dict[bytes, frozenset[str]] = {}  # a line of a ledger -> words that stay with it
        self._stays: set[str] = set()  # words that stand in something that stays

    def survey(self, objects: Mapping[str, Sequence[str]], head: str, staged: Mapping[bytes, bytes]) -> Survey:
        """Looks through the objects (kind -> ids).

        `head` is the commit whose history the caller knows, `staged` path -> blob of Git's index.
        """
        s = self._s
        s.ids = {bytes.fromhex(oid) for oids in objects.values() for oid in oids}
        for oid, data in self._each(objects.get("blob", ())):
            self._blob(oid, data)
        for oid, data in self._each(objects.get("commit", ())):
            self._commit(oid, data)
        for oid, data in self._each(objects.get("tag", ())):
            s.tags[oid] = bytes.fromhex(data[7:47].decode())
            if self._needles.look_through(data):
                s.spoken.add(oid)
        interesting = s.gone.union(s.lines, self._suspects())
        for oid, data in self._each(objects.get("tree", ())):
            self._tree(oid, data, interesting)
        self._decide(bytes.fromhex(head), staged)
        return s

    def _each(self, oids: Sequence[str]) -> Iterator[tuple[bytes, bytes]]:
        for found in self._reader.get_many(oids):
            if found is not None:
                yield bytes.fromhex(found[0]), found[2]

    # Blobs

    def _blob(self, oid: bytes, data: bytes) -> None:
        s = self._s
        if oid in s.gone:
            return
        if is_segment(data):
            self._segment(oid, data)
            return
        if b"nas://" in data:
            s.cited.update(rev.decode() for rev in _CITED.findall(data))
        words, about = self._needles.gather(data)
        if about & ENTRY_GOES or any(part.lines[0] in data for part in self._blocks):
            left = blank(data, self._parts, b"erased on 0000-00-00")
            if left != data:
                s.lines[oid] = b""
                words, about = self._needles.gather(left)
        for word in words - self._common:
            holders = self._holders[word]
            holders.add(oid)
            if len(holders) > _COMMON:
                self._common.add(word)
        if about & NOTE_GOES:
            self._same.add(oid)

    def _segment(self, oid: bytes, data: bytes) -> None:
        self._s.segments[oid] = b""
        for line in data.split(b"\n"):
            if line not in self._told:
                told = self._told[line] = frozenset(self._ledger_words(line))
                self._stays |= told

    def _ledger_words(self, line: bytes) -> set[str]:
        """The words that a line of the ledger keeps, whatever is erased."""
        try:
            fields = json.loads(line)
        except ValueError:
            return set()
        if not isinstance(fields, dict):
            return set()
        if names_any(line, self._about):
            fields = {key: value for key, value in fields.items() if key not in _FREE}
        text = json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")
        return words_of(text_of(text)) & self._needles.words

    def _suspects(self) -> set[bytes]:
        """Blobs that hold something of the text that not many others hold."""
        few = (holders for word, holders in self._holders.items() if word not in self._common)
        return self._same.union(*few)

    # Commits

    def _commit(self, oid: bytes, data: bytes) -> None:
        head, _, message = data.partition(b"\n\n")
        rows = head.split(b"\n")
        parents = []
        for row in rows[1:]:
            if not row.startswith(b"parent "):
                break
            parents.append(bytes.fromhex(row[7:47].decode()))
        self._s.commits[oid] = (bytes.fromhex(rows[0][5:45].decode()), tuple(parents))
        for row in rows[1 + len(parents) :]:
            if row.startswith((b"author ", b"committer ")):
                self._stays |= self._needles.look(row.rpartition(b">")[0]).words
        if self._needles.look_through(message):
            self._s.spoken.add(oid)

    # Trees

    def _tree(self, oid: bytes, data: bytes, interesting: set[bytes]) -> None:
        s, kids = self._s, []
        s.trees[oid] = len(s.trees)
        for mode, name, target in ENTRY.findall(data):
            words = self._names.get(name)
            if words is None:
                words = self._names[name] = frozenset(words_of(text_of(name)) & self._needles.words)
            if mode == TREE_MODE:
                kids.append((self._interned.setdefault(name, name), target))
                if words:
                    self._folders[name].add(target)
            elif mode != _LINK_MODE:
                if target in s.segments:
                    s.ledger_bearers.add(oid)
                elif target in interesting:
                    s.bearers.add(oid)
                    self._places[target].add((oid, name))
                    if target in s.lines:
                        s.lines[target] = name
                if words:
                    self._files[name].add(target)
        if kids:
            s.kids[oid] = tuple(kids)

    def above(self, trees: Iterable[bytes]) -> set[bytes]:
        """These trees and all that hold them, at any depth."""
        found = fresh = set(trees)
        while fresh:
            fresh = {t for t, kids in self._s.kids.items() if t not in found and any(k in fresh for _, k in kids)}
            found = found | fresh
        return found

    def _decide(self, head: bytes, staged: Mapping[bytes, bytes]) -> None:
        """Which versions of the same notes go too: those that the caller cannot know, outside the history of `head`.

        They lie on other branches, in stashes, in the index, or are reachable from nowhere.
        """
        s = self._s
        around = self.above(s.bearers)
        up: dict[bytes, list[tuple[bytes, bytes]]] = defaultdict(list)
        for tree in around:
            for name, kid in s.kids.get(tree, ()):
                if kid in around:
                    up[kid].append((tree, name))
        paths_of = _paths(up)
        known = self._known(head, around)

        def paths(blob: bytes) -> set[bytes]:
            found = {path + name for tree, name in self._places.get(blob, ()) for path in paths_of(tree)}
            return found | {path for path, held in staged.items() if held == blob}

        s.gone_paths = {path for blob in s.gone for path in paths(blob)}
        eligible = set()
        for blob in self._suspects() - s.gone - s.lines.keys():
            if not any(tree in known for tree, _ in self._places.get(blob, ())):
                places = paths(blob)
                if blob in self._same or not places or not places.isdisjoint(s.gone_paths):
                    eligible.add(blob)
        staying = self._common | {word for word, holders in self._holders.items() if holders - eligible}
        for word, holders in self._holders.items():
            if word not in staying and word not in self._stays:
                s.more |= holders & eligible
        s.gone |= s.more
        for word, holders in self._holders.items():
            if not holders - s.gone:
                continue
            if word.startswith(LINE):
                self._needles.common.add(word.removeprefix(LINE))
                s.elsewhere |= {path for blob in holders - s.gone for path in paths(blob)}
            else:
                self._stays.add(word)
        s.gone_paths |= {path for blob in s.more for path in paths(blob)}
        s.line_paths = {path for blob in s.lines for path in paths(blob)}

    def _known(self, head: bytes, around: set[bytes]) -> set[bytes]:
        """The trees among `around` that stand in the history of `head`."""
        s = self._s
        todo, seen = [head], {head}
        while todo:
            for parent in s.commits.get(todo.pop(), (b"", ()))[1]:
                if parent not in seen:
                    seen.add(parent)
                    todo.append(parent)
        trees = {s.commits[commit][0] for commit in seen if commit in s.commits} & around
        fresh = trees
        while fresh:
            fresh = {kid for tree in fresh for _, kid in s.kids.get(tree, ()) if kid in around} - trees
            trees = trees | fresh
        return trees

    def settle(self, emptied: Callable[[bytes], bool], known: Iterable[str]) -> None:
        """Which words are rare, now that is known which folders go with their files; `known`: words in other files."""
        s = self._s
        for name, blobs in self._files.items():
            if blobs - s.gone:
                self._stays |= self._names[name]
        for name, trees in self._folders.items():
            if not all(emptied(tree) for tree in trees):
                self._stays |= self._names[name]
        self._needles.rare = self._needles.words - self._stays - set(known)


def _paths(up: Mapping[bytes, Sequence[tuple[bytes, bytes]]]) -> Callable[[bytes], frozenset[bytes]]:
    """A function that gives the paths at which a tree stands, each empty or with a `/` at its end."""
    memo: dict[bytes, frozenset[bytes]] = {}

    def paths_of(tree: bytes) -> frozenset[bytes]:
        found = memo.get(tree)
        if found is None:
            above = {(paths_of(parent), name) for parent, name in up.get(tree, ())}
            found = frozenset(path + name + b"/" for paths, name in above for path in paths) or frozenset((b"",))
            memo[tree] = found
        return found

    return paths_of
