"""Makes a Home: of nothing, of a folder of notes, of a repository of notes, or nested in a repository of code."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from memoranda.context import Context
from memoranda.errors import InvalidInput
from memoranda.home.draft import Change, Draft
from memoranda.home.durable import sync_path
from memoranda.home.keys import Keys
from memoranda.home.layout import CACHE, MARKER, NESTED, Layout, is_home, layout_of
from memoranda.home.marker import Marker, home_name, write_marker
from memoranda.home.plain_git import plain_git
from memoranda.home.repository import Admit, Repository, everything
from memoranda.notes.ids import new_id
from memoranda.values import dataclass

# What may lie in a repository of notes beside the notes: attachments and the settings of an editor.
_MEDIA = "png jpg jpeg gif svg webp bmp pdf mp3 wav m4a ogg mp4 mov webm txt csv"
_BESIDE_NOTES = frozenset(f".{kind}" for kind in f"md markdown canvas base excalidraw {_MEDIA}".split())
_ATTRIBUTES = b"# Bytes are kept as they were written: a review counts for exact bytes.\n* -text\n"
_ONLY_NOTES = (
    "\n# Written by memoranda init: only notes are kept here.\n*\n!*/\n!*.md\n!/memory/*\n!/agents/.gitattributes\n"
)


@dataclass(frozen=True, slots=True)
class Created:
    """`root` is the Home; `nested` whether it lies in a repository of something else; `existed` whether it was one."""

    root: Path
    nested: bool
    existed: bool


def create(folder: Path, context: Context, *, name: str | None = None, here: bool = False) -> Created:
    """Lays a Home in or below `folder`; no existing file is changed. Returns where; open it with `Repository`."""
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 - a link that leads here keeps its name
    if is_home(folder) and (folder / ".git").exists():
        return Created(folder, False, True)
    if is_home(folder / NESTED) and not here:
        return Created(folder / NESTED, True, True)
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is a file.", remedy="Name a folder.")
    own = (folder / ".git").exists()
    if not own and (folder / "HEAD").is_file() and all((folder / name).is_dir() for name in ("objects", "refs")):
        raise InvalidInput(
            f"{folder} is a bare repository.", why="It has no files beside its history.",
            remedy="Clone it, and use the clone: `git clone`, or `memoranda clone` when it is one of a Home.",
        )  # fmt: skip
    outer = None if own else _outer_repository(folder)
    tracked = _tracked(folder) if own or outer else []
    more = [path for path in tracked if not _beside_notes(path)]
    if more and not here:
        root = folder / NESTED
        _exclude(folder if own else outer or folder, root)
        _lay(root, context, home_name(name or folder.name), roots=("memory/notes",))
        return Created(root, True, False)
    if own:
        _check_format(folder)
    if outer is not None:
        _exclude(outer, folder)
    notes = not more and any(_visible_notes(folder))
    fresh = not own
    _lay(folder, context, home_name(name or folder.name), roots=(".",) if notes else ("memory/notes",))
    if fresh and notes:
        with (layout_of(folder).common_dir / "info" / "exclude").open("a", encoding="utf-8") as file:
            file.write(_ONLY_NOTES)
    return Created(folder, outer is not None, False)


def first_files(marker: Marker) -> dict[str, bytes]:
    """path -> bytes of the files that every Home begins with."""
    return {
        MARKER: write_marker(marker),
        "memory/.gitignore": b"MEMORY.md\n",
        "memory/.gitattributes": _ATTRIBUTES,
        "agents/.gitattributes": _ATTRIBUTES,
    }


def _lay(root: Path, context: Context, name: str, roots: tuple[str, ...]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    if not (root / ".git").exists():
        plain_git(root, "init", "-q", "--template=", "--object-format=sha1", "--initial-branch=main")
        (root / ".git" / "info").mkdir(exist_ok=True)
    marker = Marker(new_id("home", context.random), name, roots=roots)
    for path, data in {**first_files(marker), f"{CACHE}/.gitignore": b"*\n"}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if not (root / path).exists():  # a marker without a repository is a Home's files, brought here by hand
            (root / path).write_bytes(data)


def finish(root: Path, context: Context, keys: Keys, *, admit: Admit = everything) -> int:
    """Commits the first state of a Home that `create` laid; returns how many files of notes were taken in."""
    paths = (MARKER, "memory/.gitignore", "memory/.gitattributes", "agents/.gitattributes")

    def build(_at: datetime) -> Draft:
        files = [Change(path, (root / path).read_bytes(), laid=True) for path in paths]
        return Draft("init", "Make this folder a Home", files, author=context.user)

    with Repository(root, context, keys, admit=admit, first=True) as repository:
        repository.write(context, build)
        taken = len(repository.look(context))
        _make_safe(repository.layout, [root / path for path in paths])
    return taken


def _make_safe(layout: Layout, laid: list[Path]) -> None:
    """Syncs what makes the folder a Home; `git init` leaves that to the system."""
    git_files = [layout.git_dir / "HEAD", layout.common_dir / "config", layout.common_dir / "info" / "exclude"]
    folders = {layout.git_dir, layout.common_dir, layout.root.parent}
    for file in (*git_files, *laid, layout.root / ".git"):
        if file.exists():
            sync_path(file)
            folders |= {folder for folder in file.parents if folder.is_relative_to(layout.root)}
    for inside in ("objects", "objects/pack", "refs", "refs/heads", "info"):
        folders.add(layout.common_dir / inside)
    for folder in sorted(folders):
        if folder.is_dir():
            sync_path(folder)


def _check_format(folder: Path) -> None:
    """InvalidInput for a repository that keeps objects or refs in a form that we do not write."""
    config = layout_of(folder).common_dir / "config"
    for key, ours in (("extensions.objectformat", "sha1"), ("extensions.refstorage", "files")):
        said = plain_git(folder, "config", "--file", str(config), "--default", ours, "--get", key).decode().strip()
        if said.lower() != ours:
            raise InvalidInput(
                f"The repository {folder} cannot hold a Home.",
                why=f"It is kept as {said}, and a Home needs {ours}.",
                remedy="Make a Home in a folder of its own: `memoranda init DIR`.",
            )


def _visible_notes(folder: Path) -> list[Path]:
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(place) / name for name in names if name.endswith(".md")]
        if found:
            break
    return found


def _beside_notes(path: str) -> bool:
    steps = path.split("/")
    if any(step.startswith(".") for step in steps):
        return True
    return Path(path).suffix.lower() in _BESIDE_NOTES or steps[-1].upper() in ("LICENSE", "README")


def _outer_repository(folder: Path) -> Path | None:
    for place in folder.parents:
        if (place / ".git").exists():
            return place
    return None


def _tracked(folder: Path) -> list[str]:
    if not folder.exists():
        return []
    out = plain_git(folder, "ls-files", "-z")
    return [row.decode("utf-8", "surrogateescape") for row in out.split(b"\0") if row]


def _exclude(outer: Path, inner: Path) -> None:
    """Keeps an enclosing repository from seeing the Home as its own file; nothing that it tracks is changed."""
    path = layout_of(outer).common_dir / "info" / "exclude"
    line = f"/{inner.relative_to(outer).as_posix()}/\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if line not in before:
        path.write_text(before + ("" if before.endswith("\n") or not before else "\n") + line, encoding="utf-8")
