"""What may be read of some places, as a file: a zip of Markdown that opens as a Home, NDJSON, or a Git bundle.

The zip holds the exact files of the notes in a Home of its own, committed, without anybody's key, ledger or journal:
whoever opens it has them all unreviewed, and what is quarantined says so in its file. A bundle is the Home itself with
its history, and so is given only to who may read everything that was ever in it.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.context import Context
from memoranda.engines.contract import Item, Place
from memoranda.errors import Forbidden
from memoranda.home.create import create, finish
from memoranda.home.erasing.blanking import erased_on
from memoranda.home.keys import Keys
from memoranda.home.layout import MARKER
from memoranda.home.plain_git import plain_git
from memoranda.index.feeding import RECORDS
from memoranda.notes.belonging import belongs_to
from memoranda.notes.journal import day_of, is_journal_path, parse_journal
from memoranda.notes.model import read_note
from memoranda.notes.times import format_instant
from memoranda.operations.open_home import OpenHome
from memoranda.values import dataclass

FORMAT = 1
MANIFEST = "manifest.json"
_LAID = (MARKER, "memory/.gitignore", "memory/.gitattributes", "agents/.gitattributes")
_LEFT_OUT = (".memoranda/", ".git/memoranda/", ".git/refs/memoranda/", ".git/index.lock")


@dataclass(frozen=True, slots=True)
class Exported:
    """A file to be sent: its name, its media type, its bytes, and the manifest that it holds or that goes with it."""

    name: str
    media_type: str
    data: bytes
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Given:
    """One note that is given out: its id, path and exact bytes, and what it is to the contract."""

    id: str
    path: str
    data: bytes
    item: Item


def manifest_of(context: Context, places: Collection[Place], notes: Sequence[tuple[str, Given]]) -> dict[str, Any]:
    """What is in an export: from which places, and each note with its path and the digest of its bytes."""
    return {
        "format": FORMAT, "kind": "memoranda export", "made_at": format_instant(context.now()),
        "places": [{"scope": p.scope, "owner": p.owner} for p in sorted(places, key=lambda p: (p.scope, p.owner))],
        "count": len(notes),
        "notes": [
            {
                "id": given.id, "path": path, "scope": given.item.scope, "owner": given.item.owner,
                "sha256": hashlib.sha256(given.data).hexdigest(),
            }
            for path, given in notes
        ],
    }  # fmt: skip


def as_zip(context: Context, places: Collection[Place], notes: Sequence[Given]) -> Exported:
    """A zip of a Home with these notes."""
    named = list(_apart(notes))
    manifest = manifest_of(context, places, named)
    with tempfile.TemporaryDirectory(prefix="memoranda-export-") as place:
        root = create(Path(place) / "home", context, name="export").root
        for path, given in named:
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(given.data)
        finish(root, context, Keys(Path(place) / "keys"))
        with (root / ".git/info/exclude").open("a", encoding="utf-8") as exclude:
            exclude.write(f"/{MANIFEST}\n")
        (root / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        data = _zipped(root)
    return Exported("memories.zip", "application/zip", data, manifest)


def _apart(notes: Sequence[Given]) -> Iterator[tuple[str, Given]]:
    """Each with a path of its own: two Homes may have used the same one."""
    taken: set[str] = set()
    for given in notes:
        path, n = given.path, 2
        while path.casefold() in taken:
            path, n = f"{given.path.removesuffix('.md')}~{n}.md", n + 1
        taken.add(path.casefold())
        yield path, given


def _zipped(root: Path) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix() + ("/" if path.is_dir() else "")
            if not name.startswith(_LEFT_OUT):
                file.write(path, name)  # empty folders too: Git wants some of its own
    return out.getvalue()


def as_lines(context: Context, places: Collection[Place], notes: Sequence[Given]) -> Exported:
    """NDJSON: the manifest, then each memory, one JSON object a line; `type` says which is which."""
    manifest = manifest_of(context, places, [(given.path, given) for given in notes])
    lines = [json.dumps({"type": "manifest", "manifest": manifest}, ensure_ascii=False)]
    lines += [
        json.dumps({"type": "memory", "item": given.item.model_dump(mode="json")}, ensure_ascii=False)
        for given in notes
    ]
    return Exported("memories.ndjson", "application/x-ndjson", "\n".join([*lines, ""]).encode(), manifest)


def as_bundle(context: Context, places: Mapping[str, Place], home: OpenHome) -> Exported:
    """A Git bundle of the whole Home, which clones natively. Forbidden unless all that it ever held may be read."""
    home.refresh(context)
    home.repository.flush()
    refuse_others(home, places.keys())
    with tempfile.TemporaryDirectory(prefix="memoranda-export-") as folder, home.repository.whole() as root:
        file = Path(folder) / "home.bundle"
        plain_git(root, "bundle", "create", str(file), "HEAD", _branch(home))
        data = file.read_bytes()
    manifest = manifest_of(context, places.values(), ())
    del manifest["notes"], manifest["count"]
    manifest |= {"commit": home.repository.head(), "sha256": hashlib.sha256(data).hexdigest()}
    return Exported("home.bundle", "application/x-git-bundle", data, manifest)


def refuse_others(home: OpenHome, places: Collection[str]) -> None:
    """Forbidden when a text in the Home, or in its history, lies in none of these places."""
    if any(not mine for mine in _mine(home, frozenset(places))):
        raise Forbidden(
            "This Home cannot be given out whole.",
            why="It holds, or its history does, what the caller may not read.",
            remedy="Export as zip or as ndjson: that gives what may be read.",
        )


def _mine(home: OpenHome, places: frozenset[str]) -> Iterator[bool]:
    """Of every text of notes and journals that there ever was, whether it may be read."""
    notes: dict[str, tuple[str, bytes]] = {}
    journals: list[tuple[str, bytes]] = []
    for path, blob, data in _history(home):
        if is_journal_path(path):
            journals.append((path, data))
        elif home.repository.ours.is_note(path):
            notes[blob] = (path, data)
        else:
            yield path in _LAID
    with home.indexes.lock:
        wrote = home.indexes.catalog.ledger.wrote(notes)
    readable: set[str] = set()
    for blob, (path, data) in notes.items():
        note, line = read_note(path, data), wrote.get(blob)
        written = line is not None and line.vouched and line.kind in ("write", "writes")
        yield written and belongs_to(note.scope, note.owner) in places
        readable.add(note.id)
    for path, data in journals:
        for entry in parse_journal(data, day_of(path)):
            record = entry.speaker.endswith(RECORDS) and entry.text.partition(": ")[0] in readable
            yield record or erased_on(entry.text) is not None


def _history(home: OpenHome) -> Iterator[tuple[str, str, bytes]]:
    """(path, blob, bytes) of every file in every commit of the branch."""
    with home.repository.whole() as root:
        listed = plain_git(root, "rev-list", "--objects", _branch(home))
    for line in listed.splitlines():
        oid, _, path = line.partition(b" ")
        if path and (data := home.repository.blob(oid.decode("ascii"))) is not None:
            yield path.decode("utf-8", "surrogateescape"), oid.decode("ascii"), data


def _branch(home: OpenHome) -> str:
    return home.repository.branch() or "HEAD"
