"""`init` and `import`: how a Home comes to be, and how a folder of notes comes into it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from memoranda.faces.cli.frame import Command, Frame, Parser, counted

_ROWS = 10  # files of one kind that are named; --json names all


def _init_options(parser: Parser) -> None:
    parser.add_argument("folder", metavar="DIR", nargs="?", help="the folder (default: --home, else this one)")
    parser.add_argument("--name", help="what pointers call the Home (default: the name of the folder)")
    parser.add_argument(
        "--here", action="store_true", help="in a repository of other things, no nested Home: this repository itself"
    )


def _init(frame: Frame, args: argparse.Namespace) -> int:
    import os

    from memoranda.faces import local
    from memoranda.home.create import create, finish
    from memoranda.home.marker import read_marker
    from memoranda.operations.admission import Rules, admitter, refuse_secrets

    rules = Rules(local.keys())
    folder = Path(args.folder or args.home or os.environ.get("MEMORANDA_HOME") or ".").expanduser()
    refuse_secrets([("name", args.name or folder.name)], rules)
    made = create(folder, frame.context, name=args.name, here=args.here)
    notes = 0 if made.existed else finish(made.root, frame.context, local.keys(), admit=admitter(rules))
    marker = read_marker(made.root)
    document = {
        "home": marker.name, "id": marker.id, "path": str(made.root), "nested": made.nested, "existed": made.existed,
        "notes": notes,
    }  # fmt: skip
    if made.existed:
        lines = [f"{made.root} is a Home already ({marker.name}); nothing was changed."]
    else:
        where = ", nested: the repository around it does not see it" if made.nested else ""
        lines = [f"Made the Home {marker.name} in {made.root}{where}."]
        if notes:
            lines.append(f"{counted(notes, 'file')} that lay there: now its notes, as they are.")
    frame.answer(document, lines)
    return 0


def _import_options(parser: Parser) -> None:
    parser.add_argument("folder", metavar="DIR", help="a folder of Markdown: plain, Obsidian, basic-memory")


def _import(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.importing import import_folder

    done = import_folder(frame.context, frame.space, Path(args.folder).expanduser(), frame.progress)

    def lines() -> Iterator[str]:
        present = f"; {done.present:,} were here already" if done.present else ""
        yield f"Took {counted(done.taken, 'file')} into {done.folder} of {done.home}{present}."
        yield from _named("kept as they are, though not wholly understood", done.odd)
        yield from _named("not taken", done.left)

    frame.answer(done.json(), lines())
    return 0


def _named(what: str, rows: tuple[tuple[str, str], ...]) -> Iterator[str]:
    if not rows:
        return
    yield f"{len(rows):,} {what}:"
    for path, reason in rows[:_ROWS]:
        yield f"  {path}: {reason}"
    if len(rows) > _ROWS:
        yield f"  … and {len(rows) - _ROWS:,} more (--json names all)"


COMMANDS = {
    "init": Command(
        "Makes a Home of DIR. Existing files are never rewritten: a folder or repository of Markdown notes "
        "becomes a Home as it is; in a repository that tracks more than notes a nested Home is made in "
        ".memory unless --here.",
        _init_options,
        _init,
        "memoranda init ~/notes --name notes",
    ),
    "import": Command(
        "Copies every Markdown file of DIR into the Home, byte for byte and in the same folders. What could "
        "not be understood is kept as it is and counted. A second time, nothing is added.",
        _import_options,
        _import,
        "memoranda import ~/Documents/vault",
    ),
}
