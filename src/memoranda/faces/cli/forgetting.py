"""`forget`, `expire`, `hold …` and `key …`: what goes, what is kept from going, and what keeps it from coming back."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, cast

from memoranda.faces.cli.frame import Command, Frame, Parser, counted

if TYPE_CHECKING:
    from memoranda.operations.forgetting import Forgotten

_COLUMN = 58  # characters of each of the two columns


def _forget_options(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", nargs="*", help="notes or journal entries")
    parser.add_argument("--subject", metavar="PATH", help="every note on this subject and those below it")
    parser.add_argument("--session", metavar="ID", action="append", help="everything that this session brought in")
    parser.add_argument("--source", metavar="URI", help="everything that comes from this source")
    parser.add_argument("--returned", action="store_true", help="what was forgotten and stands in a file again")
    parser.add_argument("--erase", action="store_true", help="rewrite history, so that nothing here holds the text")
    parser.add_argument("--dry-run", action="store_true", help="only say what would go, and what could not")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why; it stays on record")


def _forget(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.forgetting import Selection, forget

    chosen, args.session = tuple(args.session or ()), None  # `--session` says what, and not who asks
    what = Selection(tuple(dict.fromkeys(args.id)), args.subject, chosen, args.source, args.returned)
    done = forget(frame.context, frame.space, what, erase=args.erase, dry_run=args.dry_run, reason=args.reason)
    return _tell(frame, done)


def _tell(frame: Frame, done: Forgotten) -> int:
    frame.answer(done.json(), _columns(done))
    return 1 if done.found else 0


def _columns(done: Forgotten) -> Iterator[str]:
    """The report: what went on the left, what could not on the right."""
    verb = "would be removed" if done.dry_run else "removed"
    left = [f"{item.id}  {item.path}\n   {item.why}" for item in done.removed] + list(done.also)
    right = [f"{item.what}\n   {item.why}" for item in done.remains]
    if not done.removed:
        left = ["nothing"]
    how = "with its history" if done.erased else "its history stays"
    notes = sum(item.kind == "note" for item in done.removed)
    entries = counted(len(done.removed) - notes, "journal entry", "journal entries")
    yield f"{done.home}: {counted(notes, 'note')}, {entries} {verb}, {how}."
    if done.needs_person:
        yield f"A person at a terminal has to do it. {done.needs_person}"
    yield ""
    yield f"{verb.upper():{_COLUMN}}  COULD NOT BE REMOVED, AND WHY"
    for one, other in zip_longest(_wrapped(left), _wrapped(right), fillvalue=""):
        yield f"{one:{_COLUMN}}  {other}".rstrip()
    if done.found:
        yield ""
        yield "The search at the end still met the text:"
        yield from (f"   {place}" for place in done.found)


def _wrapped(items: list[str]) -> Iterator[str]:
    for item in items:
        for line in item.split("\n"):
            indent = " " * (len(line) - len(line.lstrip()))
            yield from textwrap.wrap(line, _COLUMN, initial_indent=indent, subsequent_indent=f"{indent}   ") or [""]


def _expire_options(parser: Parser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what would go, and what could not")


def _expire(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.errors import LegalHold
    from memoranda.operations.expiring import expire

    try:
        return _tell(frame, expire(frame.context, frame.space, dry_run=args.dry_run))
    except LegalHold as held:
        if held.done is not None and not frame.json:  # with --json the error holds the report
            frame.answer({}, _columns(cast("Forgotten", held.done)))
        raise


def _hold_options(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", nargs="+", help="the notes")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why; it stays on record")


def _hold(event: str, about: str) -> Command:
    def run(frame: Frame, args: argparse.Namespace) -> int:
        from memoranda.operations.holding import hold

        found = hold(frame.context, frame.space, args.id, event, reason=args.reason)
        lines = [f"{item.id}  held" for item in found]
        held = {item.id for item in found}
        lines += [f"{note_id}  free" for note_id in args.id if note_id not in held]
        frame.answer({"held": [item.json() for item in found]}, lines)
        return 0

    return Command(about, _hold_options, run, f"memoranda hold {event} mem_4kq27vxjd83n5r0t --reason 'case 12'")


def _hold_list(frame: Frame, _args: argparse.Namespace) -> int:
    from memoranda.operations.holding import holds

    found = holds(frame.context, frame.space)

    def lines() -> Iterator[str]:
        for item in found:
            yield f"{item.id}  {item.path or '(in no file any more)'}"
            if item.by:
                yield f"   set by {item.by}: {item.reason}"
        yield f"{counted(len(found), 'note')} held."

    frame.answer({"held": [item.json() for item in found]}, lines())
    return 0


def _file_options(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="where the keys are")


def _key_export(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.keyring import export_keys

    done = export_keys(frame.context, frame.space, Path(args.file))
    frame.answer(done.json(), [f"{counted(done.keys, 'key')} of {done.home} written to {done.file}."])
    return 0


def _key_import(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.keyring import import_keys

    done = import_keys(frame.context, frame.space, Path(args.file))
    frame.answer(done.json(), [f"{counted(done.keys, 'key')} of {done.home}, {done.fresh} of them new here."])
    return 0


COMMANDS = {
    "forget": Command(
        "Takes notes away with their whole chains, what was derived from them, and the journal entries that only they "
        "cite; says in two columns what went and what could not. The same content does not come back by an import, a "
        "merge, a job or an agent. Without --erase Git's history stays. Needs a terminal, except for one note that an "
        "agent wrote itself and nobody reviewed.",
        _forget_options,
        _forget,
        "memoranda forget mem_4kq27vxjd83n5r0t --erase --dry-run",
    ),
    "expire": Command(
        "Removes the notes whose retention_days have passed, with what they superseded and what was generated from "
        "them; with their history when their retention_class is erase_history. A legal hold refuses: the note stays, "
        "the rest goes, and the exit code is 3.",
        _expire_options,
        _expire,
        "memoranda expire --dry-run",
    ),
    "hold list": Command(
        "Lists the notes that are under legal hold.", lambda _parser: None, _hold_list, "memoranda hold list"
    ),
    "hold set": _hold(
        "set",
        "Puts notes under legal hold: they are neither forgotten, erased, rolled back nor let expire. Needs a "
        "terminal.",
    ),
    "hold release": _hold(
        "release", "Releases notes from legal hold, whatever their files say; it stays on record. Needs a terminal."
    ),
    "key export": Command(
        "Writes the keys by which forgotten content is known again to a file that only you can read, for another "
        "installation of yours. Needs a terminal.",
        _file_options,
        _key_export,
        "memoranda key export ~/memoranda-keys.json",
    ),
    "key import": Command(
        "Takes the keys of another installation from a file; your own stay beside them.",
        _file_options,
        _key_import,
        "memoranda key import ~/memoranda-keys.json",
    ),
}
