"""`review …`, `session …` and `context`: what a person decides, and what is loaded because of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memoranda.faces.cli.frame import Command, Frame, Parser, Words, counted, usage_error, words

if TYPE_CHECKING:
    from memoranda.operations.reviewing import Decided, Waiting
    from memoranda.operations.settling import Contested


def _list_options(parser: Parser) -> None:
    parser.add_argument("--state", action="append", metavar="STATE", help="only quarantined, contested, unreviewed, …")
    parser.add_argument("--unclaimed", action="store_true", help="only what was found in a file, your own edits")


def _list(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.reviewing import contradictions, edits, queue

    if args.unclaimed:
        found = edits(frame.context, frame.space)
    else:
        found = queue(frame.context, frame.space, states=words(args.state))
    groups = contradictions(frame.context, frame.space)

    def lines() -> Iterator[str]:
        for item in found:
            yield f"{item.id}  {item.state}  {item.path}".rstrip()
            text = item.text.splitlines() if args.unclaimed else [_first(item.text)]
            yield from (f"   {line}" for line in text)
        for group in groups:
            yield from _group(group)
        more = f", {counted(len(groups), 'contradiction')}" if groups else ""
        yield f"{counted(len(found), 'note')} waiting{more}."

    document = {"waiting": [item.json() for item in found], "contested": [group.json() for group in groups]}
    last = f"{counted(len(found), 'note')} waiting, {counted(len(groups), 'contradiction')}."
    frame.items(document, lines(), _listed(found, groups, whole=args.unclaimed), last)
    return 0


def _listed(found: Sequence[Waiting], groups: Sequence[Contested], *, whole: bool) -> Iterator[Words]:
    for item in found:
        text = item.text if whole else _first(item.text)
        yield Words(item.home, item.id, text, {"state": item.state, "about": item.subject or ""}, item.uri)
    for group in groups:
        for note in group.notes:
            labels = {"contested": group.reason, "about": group.about, "path": note["path"] or ""}
            yield Words(group.home, note["id"] or "", _first(note["text"] or ""), labels)


def _first(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "(from outside: `memoranda review show`)")[:100]


def _group(group: Contested) -> Iterator[str]:
    yield f"contested ({group.reason}): {group.about}"
    for note in group.notes:
        yield f"   {note['id']}  {note['path']}"
        yield f"      {_first(note['text'] or '')}"
    if group.reason == "same time":
        yield "   Accept those that you stand by and reject the others; accepting one takes nothing from the others."
    else:
        yield "   Accept one of them, and it supersedes the others; or all in one call, and they stand side by side."


def _id_options(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="the note: its id, its path, or a pointer to its exact bytes")


def _show(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.reviewing import show

    item = show(frame.context, frame.space, args.id)
    frame.items(item.json(), _shown(item), _shown_to_a_model(item), f"{item.id} is {item.state}.")
    return 0


def _shown_to_a_model(item: Waiting) -> Iterator[Words]:
    from memoranda.operations.session_desk import event_line

    by = {"by": item.agent or "", "session": item.session or "", "supersedes": ",".join(item.supersedes)}
    labels = {"state": item.state, "kind": item.kind, "about": item.subject or ""}
    yield Words(item.home, item.id, item.text, labels | by, item.uri)
    for root in item.taint:
        yield Words(item.home, item.id, root.get("reason", ""), {"taint": root["kind"], "from": root.get("source", "")})
    if item.story:
        story = "\n".join(event_line(e) for e in item.story)
        yield Words(item.home, item.id, story, {"view": "session", "session": item.session or ""})
    for evidence in item.evidence:
        found = "" if evidence.text is not None else "leads nowhere that is open"
        labels = {"view": "source", "missing": found, "stood": "" if evidence.stood else "no"}
        yield Words(item.home, item.id, evidence.text or "", labels, evidence.uri)


def _shown(item: Waiting) -> Iterator[str]:
    from memoranda.operations.presenting import NOWHERE
    from memoranda.operations.session_desk import event_line

    yield f"{item.id}  {item.state}  {item.kind}  {item.subject or ''}".rstrip()
    yield item.path
    for line in item.text.splitlines():
        yield f"   {line}"
    for root in item.taint:
        yield f"tainted by {root.get('kind')} {root.get('source')}: {root.get('reason')}"
    if item.supersedes:
        yield f"would supersede {', '.join(item.supersedes)}"
    yield f"written by {item.agent or 'nobody known'} in session {item.session or 'unknown'}"
    yield from (f"   {event_line(e)}" for e in item.story)
    for evidence in item.evidence:
        yield f"source {evidence.uri}"
        if not evidence.stood:
            yield f"   ({NOWHERE})"
        for line in (evidence.text if evidence.text is not None else "(leads nowhere that is open)").splitlines():
            yield f"   {line}"


def _decide_options(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", nargs="*", help="the notes: ids, paths, or pointers to exact bytes")
    parser.add_argument(
        "--unclaimed", action="store_true", help="every edit that was found in a file and contradicts nothing"
    )
    parser.add_argument("--comment", metavar="TEXT", help="why; kept with the decision")


def _decision(verdict: str) -> Command:
    about = {
        "accept": "Attests that you have read these notes and stand by them, byte for byte. They are loaded "
        "automatically from then on, until they are edited. Needs a terminal.",
        "reject": "Attests that you do not stand by these notes. They stay, are not loaded, and wait no more. Needs a "
        "terminal.",
        "revoke": "Takes an acceptance back, of all bytes of the note that stand accepted, and names the notes that "
        "were made from it. Needs a terminal.",
    }[verdict]

    def run(frame: Frame, args: argparse.Namespace) -> int:
        from memoranda.operations.automatic import write_memory
        from memoranda.operations.reviewing import Decided, decide, unclaimed

        ids = list(args.id)
        if args.unclaimed:
            ids += unclaimed(frame.context, frame.space)
        if not ids and args.unclaimed:
            frame.answer(Decided(()).json(), ["Nothing unclaimed waits."])
            return 0
        if not ids:
            raise usage_error("No note was named.", "Name one or more ids, or give --unclaimed.")
        done = decide(frame.context, frame.space, ids, verdict, comment=args.comment)
        write_memory(frame.context, frame.space.one())
        frame.answer(done.json(), _what_came(done))
        return 0

    return Command(about, _decide_options, run, f"memoranda review {verdict} mem_4kq27vxjd83n5r0t --comment 'checked'")


def _what_came(done: Decided) -> Iterator[str]:
    for item in done.items:
        yield f"{item.id}  {item.state}  {_first(item.text)}"
    for note, over in done.settled.items():
        yield f"{note} was written with the accepted words and supersedes {', '.join(over)}."
    for group in done.contested:
        yield from _group(group)
    if done.descendants:
        yield "Made from it, and worth a look:"
        yield from (f"   {note}" for note in done.descendants)


def _context_options(parser: Parser) -> None:
    parser.add_argument("--budget", type=int, default=2000, metavar="TOKENS", help="how much may be loaded (2000)")


def _context(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.automatic import write_memory
    from memoranda.operations.loading import automatic_context
    from memoranda.trust.injection import left_out

    if args.budget < 1:
        raise usage_error("The budget is below one token.", "Give a positive number.")
    found = automatic_context(frame.context, frame.space, budget=args.budget)
    for home in frame.space.homes():
        write_memory(frame.context, home)

    if frame.json:
        frame.document(found.json())
        return 0
    said = [found.said()]
    if found.left_out:
        said.append(f"{counted(found.left_out, 'reviewed note')} had no room.")
    if found.blocked:
        said.append(left_out(found.blocked))
    frame.text("\n\n".join(filter(None, said)))
    return 0


def _session_options(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help="the session (default: your own)")
    parser.add_argument("--agent", metavar="NAME", help="whose ambient session, when no id is given")


def _session_show(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.session_desk import event_line, session_show

    story = session_show(frame.context, frame.space, args.id)

    def lines() -> Iterator[str]:
        private = ", met private text" if story.private else ""
        yield f"{story.session}  {'tainted' if story.tainted else 'clean'}{private}"
        yield from (f"   {event_line(e)}" for e in story.events)

    met = ("tainted" if story.tainted else "clean") + (", met private text" if story.private else "")
    labels = {"state": "tainted" if story.tainted else "clean", "private": "yes" if story.private else ""}
    words = Words(story.home, story.session, "\n".join(event_line(e) for e in story.events), labels)
    frame.items(story.json(), lines(), [words], f"It is {met}.")
    return 0


def _taint_options(parser: Parser) -> None:
    parser.add_argument("--reason", required=True, metavar="TEXT", help="what brought the outside content in")
    parser.add_argument("--agent", metavar="NAME", help="whose session")
    parser.add_argument("--session", metavar="ID", help="which session (default: the ambient one)")


def _session_taint(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.session_desk import session_taint

    story = session_taint(frame.context, frame.space, args.reason)
    frame.answer(story.json(), [f"{story.session} has met content from outside."])
    return 0


def _fresh_options(parser: Parser) -> None:
    parser.add_argument("--agent", metavar="NAME", help="whose ambient session")
    parser.add_argument("--lost", action="store_true", help="the ledger has lost lines: go on with what is left of it")


def _session_fresh(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.session_desk import session_fresh

    session = session_fresh(frame.context, frame.space, lost=args.lost)
    frame.answer({"session": session}, [f"Started afresh: {session}"])
    return 0


COMMANDS = {
    "review list": Command(
        "Lists what waits for a review: quarantined first, then edits of reviewed notes, then the rest.",
        _list_options,
        _list,
        "memoranda review list --state quarantined",
    ),
    "review show": Command(
        "Shows a note as a reviewer needs it: its text, where its taint began, who wrote it in which session, what "
        "that met or inherited from which other, and its sources read back at their commits.",
        _id_options,
        _show,
        "memoranda review show mem_4kq27vxjd83n5r0t",
    ),
    "review accept": _decision("accept"),
    "review reject": _decision("reject"),
    "review revoke": _decision("revoke"),
    "context": Command(
        "Prints what is loaded automatically: notes that a person reviewed and that hold now, with a pointer each, "
        "within a budget. Also brings memory/MEMORY.md up to date.",
        _context_options,
        _context,
        "memoranda context --budget 1500",
    ),
    "session show": Command(
        "Tells what a session has met: what tainted it, when, and by which entry; `inherit` is what another open "
        "session of the same user and agent has met, which counts for this one too unless a person or the harness "
        "opened it.",
        _session_options,
        _session_show,
        "memoranda session show ses_9f2c1de0a1b2c3d4",
    ),
    "session taint": Command(
        "Says that a session has met content from outside. Anybody may say so; nobody can take it back.",
        _taint_options,
        _session_taint,
        "memoranda session taint --agent cleo --reason 'read a web page'",
    ),
    "session fresh": Command(
        "Ends the ambient session of an agent and begins a clean one. Needs a terminal.",
        _fresh_options,
        _session_fresh,
        "memoranda session fresh --agent cleo",
    ),
}
