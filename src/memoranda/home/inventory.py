"""Every text that a Home holds: files and their names, and what Git keeps of earlier ones, in messages and in logs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from memoranda.home.erasing.leftovers import files_below
from memoranda.home.git import Git
from memoranda.home.layout import Layout
from memoranda.home.objects import read_tree
from memoranda.notes.ids import blob_id
from memoranda.values import dataclass

_LARGEST = 64 << 20  # bytes; what is larger is no text
_NO_WORDS = frozenset("mac blob blobs sha256 sig signature id kind at path paths".split())


@dataclass(frozen=True, slots=True)
class Text:
    """One text and where it stands.

    `where` is file, name (of a file), history (of a file), ledger, commit, tag, ref or reflog; `rev` the object of
    Git's that holds it, None for what lies in the working tree.
    """

    where: str
    path: str
    text: str
    rev: str | None = None


def in_files(layout: Layout, seen: set[str]) -> Iterator[Text]:
    """The files of the working tree that are text, and their names. Their blob ids are added to `seen`."""
    for file in files_below(layout.root, without=".git"):
        path = file.relative_to(layout.root).as_posix()
        if path.startswith(".memoranda/"):
            continue  # made from the notes, and made again
        shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        yield Text("name", shown, shown)
        data = file.read_bytes()
        seen.add(blob_id(data))
        if _is_text(data):
            yield Text("file", shown, data.decode("utf-8", "replace"))


def in_history(git: Git, layout: Layout, seen: set[str]) -> Iterator[Text]:
    """What every object of the repository says, reachable or not, and the names and logs of its refs.

    A version of a journal that is the beginning of a later one says nothing of its own and is passed over, as are the
    blobs in `seen`.
    """
    objects = _objects(git)
    paths = _paths(git, [oid for oid, kind, _ in objects if kind == "commit"])
    blobs: dict[str, list[str]] = {}
    names = set[str]()
    for oid, kind, size in objects:
        if kind == "blob":
            if oid not in seen and size <= _LARGEST:
                blobs.setdefault(paths.get(oid, ""), []).append(oid)
        elif kind == "tree":
            names.update(_names(git, oid))
        else:
            yield from _message(git, oid, kind)
    yield from (Text("name", name, name, "history") for name in sorted(names))
    for path, oids in blobs.items():
        yield from _versions(git, path, oids)
    yield from _refs(layout)


def _objects(git: Git) -> list[tuple[str, str, int]]:
    form = "--batch-check=%(objectname) %(objecttype) %(objectsize)"
    rows = git.run("cat-file", "--batch-all-objects", "--unordered", form).decode("ascii").splitlines()
    return [(oid, kind, int(size)) for oid, kind, size in (row.split(" ") for row in rows)]


def _paths(git: Git, commits: list[str]) -> dict[str, str]:
    """blob -> a path under which it lies or lay in one of these commits, as far as they can be read."""
    tips = "".join(f"{oid}\n" for oid in commits).encode()
    done = git.call("rev-list", "--objects", "--missing=allow-any", "--stdin", stdin=tips, accept=(0, 128))
    rows = (line.partition(b" ") for line in done.stdout.splitlines())
    return {oid.decode("ascii"): path.decode("utf-8", "replace") for oid, _, path in rows if path}


def _versions(git: Git, path: str, oids: list[str]) -> Iterator[Text]:
    whole: list[bytes] = []
    for data, oid in sorted(((found[2], found[0]) for oid in oids if (found := git.get(oid))), key=_by_size):
        if not _is_text(data) or any(later.startswith(data) for later in whole):
            continue
        whole.append(data)
        if data.startswith(b'{"') and (path.endswith(".jsonl") or not path):  # nothing leads to its earlier states
            yield ledger_text(path, data)
        else:
            yield Text("history", path, data.decode("utf-8", "replace"), oid)


def _by_size(item: tuple[bytes, str]) -> tuple[int, str]:
    return -len(item[0]), item[1]


def ledger_text(path: str, data: bytes) -> Text:
    """What a segment of the ledger says in words, line for line."""
    return Text("ledger", path, "\n".join(_ledger(data)), blob_id(data))


def _ledger(data: bytes) -> Iterator[str]:
    for line in data.splitlines():
        try:
            fields = json.loads(line)
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            yield line.decode("utf-8", "replace")
        else:
            yield " · ".join(_words(fields))


def _words(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield " ".join(value.split())
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in _NO_WORDS:
                yield from _words(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _words(inner)


def _names(git: Git, tree: str) -> Iterator[str]:
    found = git.get(tree)
    for _, name, _ in read_tree(found[2] if found else b""):
        yield name.decode("utf-8", "replace")


def _message(git: Git, oid: str, kind: str) -> Iterator[Text]:
    found = git.get(oid)
    head, _, message = (found[2] if found else b"").partition(b"\n\n")
    author = next((line for line in head.splitlines() if line.startswith((b"author ", b"tagger "))), b"")
    name = author.partition(b" ")[2].rpartition(b" <")[0]
    yield Text(kind, "", message.decode("utf-8", "replace"), oid)
    yield Text("name", "", name.decode("utf-8", "replace"), oid)


def _refs(layout: Layout) -> Iterator[Text]:
    loose = [file.relative_to(layout.common_dir).as_posix() for file in files_below(layout.common_dir / "refs")]
    packed = layout.common_dir / "packed-refs"
    lines = packed.read_bytes().decode("utf-8", "replace").splitlines() if packed.exists() else []
    for ref in sorted({*loose, *(line.partition(" ")[2] for line in lines if line[:1] not in "#^")}):
        yield Text("ref", ref, ref)
    for place in dict.fromkeys((layout.git_dir, layout.common_dir)):
        for file in files_below(place / "logs"):
            moves = file.read_bytes().decode("utf-8", "replace").splitlines()
            said = "\n".join(move.partition("\t")[2] for move in moves)
            yield Text("reflog", f".git/{file.relative_to(place).as_posix()}", said)


def _is_text(data: bytes) -> bool:
    return b"\0" not in data[:8192]
