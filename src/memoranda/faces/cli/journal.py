"""`journal append` and `journal import`: the raw log of what was said."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from memoranda.faces.cli.frame import Command, Frame, Parser, a_time, counted, the_text, who_options

_ROWS = 10
_NOTHING_TAKEN = 2  # as for any input that cannot be taken as it is


def _append_options(parser: Parser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="+", help="the words, as they were; - reads standard input")
    parser.add_argument("--speaker", metavar="NAME", help="who said it (default: the agent)")
    parser.add_argument("--at", metavar="TIME", help="when it was said (default: now)")
    parser.add_argument("--origin", help="agent, human, external, maintenance or import (default: agent)")
    who_options(parser)


def _append(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.journaling import Turn, append

    turn = Turn(the_text(args.text), args.speaker, a_time(args.at, "at"), args.origin)
    done = append(frame.context, frame.space, turn)
    frame.answer(done.json(), [f"{done.id}  {done.uri}"])
    return 0


def _import_options(parser: Parser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        help="one JSON object a line (speaker, text, at, session, agent, origin), or a Claude Code transcript",
    )
    who_options(parser)


def _import(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.journal_import import import_journal

    done = import_journal(frame.context, frame.space, Path(args.file).expanduser(), frame.progress)

    def lines() -> Iterator[str]:
        present = f"; {done.present:,} were here already" if done.present else ""
        yield f"Wrote {counted(done.written, 'entry', 'entries')}{present}."
        if done.skipped:
            yield "Passed over: " + ", ".join(f"{count:,} {why}" for why, count in sorted(done.skipped.items())) + "."
        for number, reason in done.damaged[:_ROWS]:
            yield f"  line {number}: {reason}"
        if len(done.damaged) > _ROWS:
            yield f"  … and {len(done.damaged) - _ROWS:,} more (--json names all)"

    frame.answer(done.json(), lines())
    return _NOTHING_TAKEN if done.damaged and not (done.written or done.present) else 0


COMMANDS = {
    "journal append": Command(
        "Adds one entry to the journal of an agent: append-only, addressable by its lines. Prints its id and pointer.",
        _append_options,
        _append,
        "memoranda journal append 'We renew, but Luis decides now.' --speaker dana --agent cleo",
    ),
    "journal import": Command(
        "Takes a conversation into the journals. Every good line is taken, every damaged one named; a second "
        "time nothing is added. What tools brought in and what models thought is not conversation and is "
        "passed over. Exits with 2 when every line is damaged.",
        _import_options,
        _import,
        "memoranda journal import conversation.jsonl --agent cleo",
    ),
}
