"""The first half of an erasing: what has to go is looked for, and what takes its place is written beside it."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from memoranda.errors import InvalidInput, NotFound
from memoranda.home.disk import DiskStore
from memoranda.home.erasing.blanking import Part, erased_on, mark_of, parts_of
from memoranda.home.erasing.erasures import Moved, ledger_lines
from memoranda.home.erasing.leftovers import Tree, files_below, settings_words
from memoranda.home.erasing.needles import Needles, note_texts, text_of, words_of
from memoranda.home.erasing.plan import TESTIMONY, Lines, Plan
from memoranda.home.erasing.redact import LedgerLines, Messages
from memoranda.home.erasing.rerefs import all_refs, git_dirs, who_moved
from memoranda.home.erasing.rewrite import Rewriter, Sink
from memoranda.home.erasing.survey import Survey, Surveyor
from memoranda.home.git import Git
from memoranda.home.history import walk
from memoranda.home.ledger import LedgerTail, Pen, last_segment
from memoranda.home.objects import Signature, TreeEditor, commit_data, make_object, read_tree
from memoranda.home.pieces import Pieces
from memoranda.home.store import LEDGER_REF
from memoranda.values import dataclass

_OURS = ("replica.json", "commit.json")  # ids and numbers, under names of our own
_NAMES = ("generation", "map", "erased", "erasing", "plan", "objects", "purging")  # of what an erasing makes itself
_SAYS_SOMETHING = 4  # words of a line that nobody else has written by accident


@dataclass(frozen=True, slots=True)
class Texts:
    """What has to go, as it is read from the old objects: needles for it, and the parts that lines are."""

    needles: Needles
    parts: tuple[Part, ...]


def texts_of(pieces: Pieces, head: str, whole: Sequence[str], lines: Sequence[Lines]) -> Texts | None:
    """Reads what has to go; None when some of it is not there (any more)."""
    said: list[bytes] = []
    notes: list[str] = []
    parts: list[Part] = []
    store = pieces.store
    for oid, found in zip(whole, store.get_many(whole), strict=True):
        if found is None:
            return None
        if found.kind != "blob":
            raise InvalidInput(f"{oid[:12]} is not a file.", remedy="Name blobs: the exact bytes of versions.")
        own, note = note_texts(found.data)
        said += own
        notes += [note] if note else []
    for item in lines:
        holder = store.get(item.blob)
        if holder is None:
            return None
        parts += parts_of(holder.data, item.first, item.last)
    # A part that was erased before, and came back beside what had taken its place, says nothing by that.
    lines_of_parts = (line for part in parts for line in part.lines if not line.startswith(b"## "))
    said += [line for line in lines_of_parts if erased_on(line.decode("utf-8", "replace")) is None]
    said += _names(pieces, head, whole)
    entries = [part.entry for part in parts if part.entry is not None]
    return Texts(Needles(said, entries, notes), tuple(parts))


def noted(pieces: Pieces, texts: Texts) -> list[str]:
    """The blobs of Git's own notes (`git notes`) that repeat a line of it: they speak of a commit as its message does.

    Short lines say too little: what anybody may have written stays.
    """
    refs = all_refs(pieces.layout.common_dir)
    tips = "".join(f"{tip}\n" for name, tip in refs.items() if name.startswith("refs/notes/"))
    if not tips:
        return []
    stdin = tips.encode("ascii")
    rows = pieces.git.run("rev-list", "--objects", "--ignore-missing", "--stdin", stdin=stdin).split(b"\n")
    found = []
    with pieces.reader() as reader:
        for item in reader.get_many([row[:40].decode("ascii") for row in rows if row]):
            if item is not None and item[1] == "blob":
                held = {phrase for hit in texts.needles.look_through(item[2]) for phrase in hit.phrases}
                if any(len(words_of(phrase)) >= _SAYS_SOMETHING for phrase in held):
                    found.append(item[0])
    return found


def _names(pieces: Pieces, head: str, whole: Sequence[str]) -> list[bytes]:
    """The names of the files as which these blobs stood in the history of `head`, without their endings."""
    found: set[str] = set()
    if whole:
        wanted = set(whole)
        for step in walk(pieces.git, None, head):
            found.update(c.path for c in step.changes if c.new in wanted or c.old in wanted)
    names = sorted(path.rpartition("/")[2].removesuffix(".md") for path in found)
    return [name.encode("utf-8", "surrogateescape") for name in names]


class Preparation:
    """Writes the new objects and makes the plan.

    `survey`, `rewriter`, `needles`, `messages` and `ledger` are there afterwards.
    """

    survey: Survey
    rewriter: Rewriter
    messages: Messages
    ledger: LedgerLines

    def __init__(
        self, pieces: Pieces, texts: Texts, whole: Sequence[str], lines: Sequence[Lines], header: Mapping[str, Any]
    ) -> None:
        self._p = pieces
        self._whole = whole
        self._lines = lines
        self._header = dict(header)
        self._handles: list[object] = []
        self._by: Signature | None = None
        self.needles = texts.needles
        self.parts = texts.parts

    def plan(self, branch: str, head: str, at: datetime) -> Plan | None:
        """Looks through the Home and writes what takes the place of what goes; None when nothing has to."""
        self._by = Signature("Memoranda", "memoranda@localhost", at)
        sink = Sink(lambda objects: self._handles.append(self._p.store.put(objects)))
        if not self._write_again(sink, head):
            return None
        sink.flush()
        s, r = self.survey, self.rewriter
        moved = {old: new for old, new in r.moved.items() if old in s.ids}
        ledger = self._ledger_tip(sink, moved, at)
        tips = self._note_tips(sink, moved) | ({LEDGER_REF: (ledger[0], ledger[1])} if ledger[0] is not None else {})
        sink.flush()
        words, phrases = self.needles.words_in_order(), self.needles.phrases_in_order()
        return Plan(
            {**self._header, "paths": sorted(self._p.erasures.path_key(_text(path)) for path in s.gone_paths)},
            branch,
            (head, _led(moved, head)),
            ledger,
            tips,
            tuple(oid.hex() for oid in sorted(s.gone)),
            tuple(self._whole),
            tuple(self._lines),
            tuple(n for n, word in enumerate(words) if word in self.needles.rare),
            tuple(n for n, phrase in enumerate(phrases) if phrase in self.needles.common),
            tuple(handle.stem for handle in self._handles if isinstance(handle, Path)),
            moved,
            r.silent,
            {old: self._kind(old) for old in moved},
            r.hints,
        )

    def _write_again(self, sink: Sink, head: str) -> bool:
        """Finds what has to go and writes the objects without it; whether there is anything."""
        with self._p.reader() as reader:
            surveyor = Surveyor(reader, self.needles, [bytes.fromhex(oid) for oid in self._whole], self.parts)
            self.survey = s = surveyor.survey(list_objects(self._p.git), head, self._staged())
            if not (s.gone & s.ids or s.lines):
                return False
            self.rewriter = r = Rewriter(reader, sink, s, self.parts, mark_of(self._header["day"]))
            about = [*(oid.hex() for oid in s.gone), *(n.decode() for n in self.needles.notes | self.needles.entries)]
            self.messages = Messages(self.needles, self._header["day"])
            self.ledger = LedgerLines(self.needles, about, [_text(path) for path in s.gone_paths], self._pens())
            r.files()
            r.trees(surveyor.above(s.bearers))
            # Which folders go with their last file decides which words are rare, and these what is told of the text.
            surveyor.settle(r.emptied, self._settings() | self._our_words())
            if self.needles.told(str(self._header.get("reason", "")), near=False):
                raise InvalidInput(
                    "The reason repeats words of what is to be erased.", remedy="Give another one; it stays on record."
                )
            r.segments(self.ledger)
            r.trees(surveyor.above(s.ledger_bearers))
            r.commits(self.messages)
            r.tags(self.messages)
        return True

    def _staged(self) -> dict[bytes, bytes]:
        return Tree(self._p.layout, self._p.git, self._p.worktree, (), b"", lambda _oid: b"").staged()

    def _settings(self) -> set[str]:
        """Words that stand in settings, in the names of refs, and in who did what by the reflogs."""
        found: set[str] = set()
        places = git_dirs(self._p.layout)
        names = (name.encode("utf-8", "surrogateescape") for name in all_refs(self._p.layout.common_dir))
        for data in (*settings_words(places), *names, *who_moved(places)):
            found |= words_of(text_of(data))
        return found

    def _our_words(self) -> set[str]:
        """Words that the program says itself, in the record of an erasing and beside it: no sign of the text.

        Not those of the reason, which a person gives, and which must not repeat the text.
        """
        lines = [{k: v for k, v in line.items() if k != "reason"} for line in self._header.get(TESTIMONY, ())]
        header = {k: v for k, v in self._header.items() if k not in ("reason", TESTIMONY)}
        told = json.dumps([{"kind": "erased", "objects": {}, "paths": [], "reason": "", "mac": "", **header}, *lines])
        found = words_of(text_of(told.encode("utf-8")))
        for path in files_below(self._p.layout.own):
            found |= words_of(text_of(path.name.encode("utf-8", "replace")))
            if path.name in _OURS:
                found |= words_of(text_of(path.read_bytes()))
        return found | set(_NAMES)

    def _pens(self) -> list[Pen]:
        p = self._p
        root = p.store.get(f"{p.store.ref(LEDGER_REF)}^{{tree}}")
        replicas = [name.decode("utf-8", "replace") for _, name, _ in read_tree(root.data if root else b"")]
        return [Pen(p.keys, p.home, replica) for replica in dict.fromkeys((p.replica, *replicas))]

    def _kind(self, oid: bytes) -> str:
        s = self.survey
        if oid in s.commits:
            return "c"
        if oid in s.tags:
            return "g"
        return "t" if oid in s.trees else "s" if oid in s.segments else "b"

    # The ledger, and Git's own notes

    def _ledger_tip(self, sink: Sink, moved: Mapping[bytes, bytes | None], at: datetime) -> tuple[str | None, str]:
        """(old, new) commit of the ledger, with the lines that tell of this erasing."""
        p = self._p
        old = p.store.ref(LEDGER_REF)
        base = None if old is None else _led(moved, old)
        pen = Pen(p.keys, p.home, p.replica)
        place = {"n": p.log.last, "at": at.isoformat()}
        header = {k: v for k, v in self._header.items() if k not in ("at", TESTIMONY)}
        lines = [pen.line({**place, **header, **line}) for line in ledger_lines({}, self._told(moved))]
        lines += [pen.line({**place, **line}) for line in self._header.get(TESTIMONY, ())]

        def read(oid: str) -> bytes:
            found = p.store.get(oid)
            return found.data if found else b""

        root = p.store.get(f"{base}^{{tree}}") if base else None
        folder = p.store.get(f"{base}:{p.replica}") if base else None
        editor = TreeEditor(read, root.oid if root else None)
        number = last_segment(folder.data) if folder else 1
        LedgerTail(p.replica, read).extend(editor, lines, sink.take, number)
        return old, self._commit(editor.write(sink.take), base, f"{len(lines)} line(s)", sink)

    def _commit(self, tree: str, parent: str | None, message: str, sink: Sink) -> str:
        assert self._by is not None
        data = commit_data(tree, [parent] if parent else [], self._by, self._by, message)
        return sink.emit(make_object("commit", data)).hex()

    def _told(self, moved: Mapping[bytes, bytes | None]) -> list[Moved]:
        """What the ledger tells: the blobs that were blanked, and the commits that somebody cites."""
        s = self.survey
        blobs = [oid for oid in (*sorted(s.gone), *s.lines) if oid in moved]
        commits = sorted(oid.hex() for oid in moved if oid in s.commits)
        cited = [bytes.fromhex(name) for rev in sorted(s.cited) for name in _beginning(commits, rev)]
        return [Moved("b", oid, moved[oid]) for oid in blobs] + [Moved("c", oid, moved[oid]) for oid in cited]

    def _note_tips(self, sink: Sink, moved: Mapping[bytes, bytes | None]) -> dict[str, tuple[str, str]]:
        """(old, new) of the refs below refs/notes: their files are named by the commits that they are about."""
        p = self._p
        tips: dict[str, tuple[str, str]] = {}
        for name, old in all_refs(p.layout.common_dir).items():
            if not name.startswith("refs/notes/"):
                continue
            base = _led(moved, old)
            root = p.store.get(f"{base}^{{tree}}")
            editor = TreeEditor(lambda oid: _data(p.store, oid), root.oid if root else None)
            followed = 0
            for path in p.git.run("ls-tree", "-r", "-z", "--name-only", base).decode("utf-8", "replace").split("\0"):
                about = path.replace("/", "")
                new = moved.get(bytes.fromhex(about)) if len(about) == 40 and _is_hex(about) else None
                blob = editor.get(path) if new is not None else None
                if new is not None and blob is not None:
                    editor.remove(path)
                    editor.put(_in_folders(new.hex(), path), blob)
                    followed += 1
            if followed:
                tree = editor.write(sink.take)
                tips[name] = old, self._commit(tree, base, "Follow commits that were written again", sink)
        return tips

    def discard(self) -> None:
        """Nothing was decided: the new objects go again."""
        for handle in self._handles:
            if isinstance(handle, Path):
                for suffix in (".idx", ".pack", ".keep"):
                    handle.with_suffix(suffix).unlink(missing_ok=True)


def list_objects(git: Git) -> dict[str, list[str]]:
    """kind -> ids of every object that the repository can read, in an order in which they are read quickly."""
    out = git.run("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname) %(objecttype)")
    found: dict[str, list[str]] = {}
    for row in out.decode("ascii").splitlines():
        name, _, kind = row.partition(" ")
        found.setdefault(kind, []).append(name)
    return found


def known_blobs(pieces: Pieces, whole: Iterable[str], lines: Iterable[Lines]) -> tuple[list[str], list[Lines]]:
    """What of this is there: blobs that an earlier erasing took are passed over; NotFound for what never was."""
    there: list[str] = []
    for oid in dict.fromkeys(whole):
        if pieces.store.get(oid) is not None:
            there.append(oid)
        elif (led := pieces.erasures.find(oid)) is None or led.name is not None:
            raise _no_file(oid)
    kept = []
    for item in dict.fromkeys(lines):
        led = None if pieces.store.get(item.blob) else pieces.erasures.find(item.blob)
        blob = item.blob if led is None else led.name
        if blob is None:
            continue
        if pieces.store.get(blob) is None:
            raise _no_file(blob)
        kept.append(Lines(blob, item.first, item.last))
    return there, kept


def _no_file(oid: str) -> NotFound:
    return NotFound(f"There is no file {oid[:12]} in this Home.", remedy="Name blobs as the catalog gives them.")


def _data(store: DiskStore, oid: str) -> bytes:
    found = store.get(oid)
    return found.data if found else b""


def _led(moved: Mapping[bytes, bytes | None], oid: str) -> str:
    new = moved.get(bytes.fromhex(oid))
    return oid if new is None else new.hex()


def _beginning(names: Sequence[str], rev: str) -> list[str]:
    at = bisect_left(names, rev)
    found = []
    while at < len(names) and names[at].startswith(rev):
        found.append(names[at])
        at += 1
    return found


def _in_folders(name: str, like: str) -> str:
    """A name cut into folders as another one of the same length is."""
    out, at = [], 0
    for step in like.split("/"):
        out.append(name[at : at + len(step)])
        at += len(step)
    return "/".join(out)


def _is_hex(text: str) -> bool:
    return not set(text) - set("0123456789abcdef")


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
