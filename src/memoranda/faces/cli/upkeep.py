"""`index status|rebuild|drop` and `doctor`: the state of a Home and of what is derived from it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memoranda.faces.cli.frame import Command, Frame, Parser, counted

if TYPE_CHECKING:
    from memoranda.operations.doctor import Report
    from memoranda.operations.maintenance import HomeIndexes

_PROMOTIONS = 5  # that are printed; --json has all


def _no_options(_parser: Parser) -> None:
    pass


def _status(frame: Frame, _args: argparse.Namespace) -> int:
    from memoranda.operations.maintenance import index_status

    return _tell(frame, index_status(frame.context, frame.space))


def _rebuild(frame: Frame, _args: argparse.Namespace) -> int:
    from memoranda.operations.maintenance import index_rebuild

    return _tell(frame, index_rebuild(frame.context, frame.space))


def _drop_options(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="only this one, as `index status` calls it")


def _drop(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.maintenance import index_drop

    return _tell(frame, index_drop(frame.context, frame.space, args.name))


def _tell(frame: Frame, homes: list[HomeIndexes]) -> int:
    from memoranda.faces.cli.recipes import told

    def lines() -> Iterator[str]:
        for home in homes:
            yield f"{home.home}  {home.folder}"
            for recipe in home.recipes:
                yield f"  recipe {told(recipe)}"
            for switch in home.promotions[-_PROMOTIONS:]:
                forced = ", forced though worse" if switch.forced else ""
                yield f"  {switch.at}  {switch.by} let {switch.recipe} answer in the place of {switch.former}{forced}"
            for index in home.indexes:
                counts = ", ".join(f"{count:,} {what}" for what, count in index.counts.items())
                commit = index.inputs.get("commit", "")[:9]
                at = f" at {commit}" if commit else ""
                beside = "" if index.serves or index.state in ("damaged", "foreign") else ", beside"
                size = f"{index.bytes / 1e6:.1f} MB"
                yield f"  {index.name}  {index.state}{beside}{at}  {counts or '-'}  {size}"
            for name in home.dropped:
                yield f"  {name}  deleted; the next recall makes it again"
            if not home.indexes and not home.dropped:
                yield "  there was none"
        if not homes:
            yield "There is no Home here."

    frame.answer({"homes": [home.json() for home in homes]}, lines())
    return 0


def _doctor_options(parser: Parser) -> None:
    parser.add_argument("--fix", action="store_true", help="mend what can be mended without losing anything")


def _doctor(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.doctor import doctor

    report = doctor(frame.context, frame.space, fix=args.fix)
    frame.answer(report.json(), _findings(report))
    return 0 if report.ok else 1


def _findings(report: Report) -> Iterator[str]:
    entries = counted(report.journal, "journal entry", "journal entries")
    yield f"{report.home}  {report.root}: {counted(report.notes, 'note')}, {entries}"
    for finding in report.findings:
        yield f"{'fixed' if finding.fixed else finding.severity}: {finding.where}"
        yield f"  {finding.what}"
        if not finding.fixed:
            yield f"  {finding.remedy}"
    if not report.findings:
        yield "Nothing is wrong."
    elif report.ok:
        yield "Nothing is left that needs you."


def _scan_options(parser: Parser) -> None:
    parser.add_argument("--history", action="store_true", help="all that Git keeps as well: earlier texts, messages")
    parser.add_argument("--personal", action="store_true", help="personal data as well")


def _scan(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.scanning import scan

    done = scan(frame.context, frame.space, history=args.history, personal=args.personal, progress=frame.progress)

    def lines() -> Iterator[str]:
        for spot in done.found:
            at = f"{spot.rev[:12]} " if spot.rev else ""
            yield f"{spot.kind}  {spot.where} {at}{spot.path}:{spot.line}:{spot.column}  {spot.hash}"
        allowed = f", {done.allowed:,} allowed" if done.allowed else ""
        yield f"{counted(len(done.found), 'find')} in {counted(done.texts, 'text')}{allowed}."

    frame.answer(done.json(), lines())
    return 1 if done.found else 0


COMMANDS = {
    "scan": Command(
        "Looks for secrets that the nearest Home already holds: in its files, their names and its ledger. Names kind, "
        "place and a hash, never the value. Exits with 1 when something was found. What is none is let through with "
        "`allow add text HASH`.",
        _scan_options,
        _scan,
        "memoranda scan --history --personal",
    ),
    "index status": Command(
        "Shows every index of the open Homes: its recipe, what it reflects, its size. Nothing is changed by asking.",
        _no_options,
        _status,
        "memoranda index status",
    ),
    "index rebuild": Command(
        "Makes the indexes of the nearest Home again from its notes.",
        _no_options,
        _rebuild,
        "memoranda index rebuild",
    ),
    "index drop": Command(
        "Deletes the indexes of the nearest Home. Nothing is lost: the next recall makes them again.",
        _drop_options,
        _drop,
        "memoranda index drop",
    ),
    "doctor": Command(
        "Looks for what is wrong with the nearest Home: notes that cannot be understood, broken supersede "
        "links, two heads, stale or foreign indexes, sources that lead nowhere, damage in the repository, "
        "contradictions, and whatever claims to be reviewed and is not. Exits with 1 when something needs "
        "attention. --fix mends only what cannot lose anything, and says what it did.",
        _doctor_options,
        _doctor,
        "memoranda doctor --fix",
    ),
}
