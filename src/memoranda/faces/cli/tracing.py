"""`trace` and `rollback`: what something came from, what it touched, and undoing that."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from memoranda.faces.cli.frame import Command, Frame, Parser, Words, counted


def _trace_options(parser: Parser) -> None:
    parser.add_argument("what", metavar="WHAT", help="a note, a journal entry, a session, or a source as it is cited")


def _trace(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.tracing import trace

    found = trace(frame.context, frame.space, args.what)

    def lines() -> Iterator[str]:
        yield found.start
        for title, steps in (("came from", found.upstream), ("touched", found.downstream)):
            yield f"{title}:" if steps else f"{title}: nothing"
            for step in steps:
                yield f"   {step.of} {step.link} {step.name}"

    words = Words(found.home, found.start, "\n".join(lines()), {"view": "trace"})
    frame.items(found.json(), lines(), [words], "")
    return 0


def _rollback_options(parser: Parser) -> None:
    parser.add_argument("what", metavar="WHAT", help="a note, a journal entry, a session, or a source as it is cited")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be undone")


def _rollback(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.tracing import rollback

    done = rollback(frame.context, frame.space, args.what, dry_run=args.dry_run)

    def lines() -> Iterator[str]:
        verb = "Would take away" if done.dry_run else "Took away"
        yield f"{verb} {counted(len(done.removed), 'note')}."
        yield from (f"   {note_id}" for note_id in done.removed)
        if done.restored:
            yield f"{'Would hold' if done.dry_run else 'Holds'} again: {', '.join(done.restored)}"

    frame.answer(done.json(), lines())
    return 0


COMMANDS = {
    "trace": Command(
        "Follows provenance in both directions: what a note, an entry, a session or a source came from, and what it "
        "touched.",
        _trace_options,
        _trace,
        "memoranda trace j_9f2c1de0a1b2c3d4",
    ),
    "rollback": Command(
        "Takes away, in one commit, every note that something touched; what they had superseded holds again. Journals "
        "stay, and so does Git's history.",
        _rollback_options,
        _rollback,
        "memoranda rollback https://example.org/page --dry-run",
    ),
}
