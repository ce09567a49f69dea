"""`read`: a note, a journal, or exact lines at their commit, within a budget."""

from __future__ import annotations

import argparse
import re

from memoranda.faces.cli.frame import Command, Frame, Parser, usage_error


def _options(parser: Parser) -> None:
    parser.add_argument("uri", metavar="URI", help="a pointer (nas://…), the id of a note or an entry, or a path")
    parser.add_argument(
        "--view", choices=("outline", "section", "lines", "full"), help="how much of it (default: what the URI names)"
    )
    parser.add_argument("--section", metavar="HEADING", help="a heading, or its number in the outline")
    parser.add_argument("--lines", metavar="A-B", help="the first and the last line")
    parser.add_argument("--budget", type=int, metavar="TOKENS", help="shorten what does not fit")
    parser.add_argument(
        "--raw", action="store_true", help="the bytes as they are, also where no terminal is written to"
    )


def _read(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.presenting import NOWHERE
    from memoranda.operations.reading import read

    lines = line_range(args.lines)
    done = read(
        frame.context, frame.space, args.uri, view=args.view, section=args.section, lines=lines, budget=args.budget
    )
    if frame.json:
        frame.document(done.json())
        return 0
    if frame.for_model and not args.raw:
        frame.text(str(done))
        return 0
    if not done.stood:
        frame.remark(NOWHERE)
    if done.superseded_by:
        frame.remark(f"Superseded by {', '.join(done.superseded_by)}.")
    if done.truncated:
        frame.remark(f"It does not fit {args.budget} tokens; this is its {done.view} (lines {done.first}-{done.last}).")
    if done.blocked:
        frame.remark(f"Not shown: it holds what no honest memory contains ({', '.join(done.blocked)}).")
    elif done.view == "pointer":
        frame.answer({}, [done.uri])
    elif not done.text and done.view == "outline":
        frame.remark("It has no headings.")
    else:
        frame.raw(done.text)
    return 0


def line_range(text: str | None) -> tuple[int, int] | None:
    """`12-18`, `L12-L18` or `12`. InvalidInput."""
    if text is None:
        return None
    match = re.fullmatch(r"L?(\d{1,9})(?:[-:,]L?(\d{1,9}))?", text.strip())
    if match is None:
        raise usage_error("The lines are not a range.", "Give the first and the last, such as 12-18.")
    return int(match[1]), int(match[2] or match[1])


COMMANDS = {
    "read": Command(
        "Prints what a URI names: a whole note or journal, a section, lines, or its outline; with a revision, "
        "as it was there. With --budget, what does not fit is given in a shorter form, and it is said. Where the "
        "answer does not go to a terminal, a model is taken to read it: the words stand between markers.",
        _options,
        _read,
        "memoranda read nas://notes/agents/cleo/journal/2026-10-02.md@9f2c1de#L12-L18",
    ),
}
