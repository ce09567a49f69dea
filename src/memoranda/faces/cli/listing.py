"""`list`, `history`, `timeline`, `diff` and `log`: what there is, what it was, who changed it and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from memoranda.faces.cli.frame import Command, Frame, Parser, Words, counted, usage_error, words

_TITLE = 70


def filter_options(parser: Parser) -> None:
    """`--kind`, `--subject`, `--scope`, as `list` and `recall` have them."""
    parser.add_argument(
        "--kind", action="append", metavar="KIND", help="only these kinds; repeated or joined by commas"
    )
    parser.add_argument("--subject", metavar="PATH", help="only this subject and those below it")
    parser.add_argument("--scope", action="append", metavar="SCOPE", help="only these scopes")


def short(text: str, limit: int = _TITLE) -> str:
    """The text in one line, cut at `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _list(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.listing import list_notes

    found = list_notes(
        frame.context, frame.space, kinds=words(args.kind), subject=args.subject, scopes=words(args.scope)
    )

    def lines() -> Iterator[str]:
        several = len({note.home for note in found}) > 1
        for note in found:
            ended = f"  (until {_time(note.valid_to)})" if note.valid_to else ""
            home = f"{note.home}  " if several else ""
            yield f"{note.id}  {home}{note.kind:10}  {note.subject or '-'}  {short(note.title)}{ended}"
        if not found:
            yield none

    none = "There is no note here yet." if not (args.kind or args.subject or args.scope) else "None."
    items = (Words(n.home, n.id, short(n.title), _told(n) | {"state": n.trust}, n.uri) for n in found)
    last = none if not found else counted(len(found), "note")
    frame.items({"notes": [note.json() for note in found]}, lines(), items, last)
    return 0


def _told(note: Any) -> dict[str, str]:
    """What is told of a note beside its words: the subject is somebody's too."""
    about = {"kind": note.kind, "about": note.subject or ""}
    return about | {"from": _time(note.valid_from), "until": _time(note.valid_to)}


def _time(t: datetime | None) -> str:
    from memoranda.notes.times import format_day_or_instant

    return "" if t is None else format_day_or_instant(t)


def _id_option(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="any note of the chain")


def _history(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.listing import history

    chain = history(frame.context, frame.space, args.id)
    items = (
        Words(
            home_of(link.uri), link.id, short(link.title),
            {"held": _plain(_span(link)), "head": "yes" if link.head else "", "known": _time(link.known_from)[:10],
             "by": link.author or ""}, link.uri,
        )
        for link in chain
    )  # fmt: skip
    document = {"id": args.id, "chain": [link.json() for link in chain]}
    frame.items(document, (_link(link) for link in chain), items, counted(len(chain), "note"))
    return 0


def home_of(uri: str) -> str:
    """The name of the Home in a pointer."""
    return uri.removeprefix("nas://").partition("/")[0]


def _span(link: Any) -> str:
    held = link.effective
    return "never held (corrected)" if held is None else f"{_time(held.start) or '…'} to {_time(held.end) or '…'}"


def _link(link: Any) -> str:
    span = _span(link)
    state = "  head" if link.head else ""
    known = _time(link.known_from)[:10]
    by = f" from {link.author}" if link.author else ""
    return f"{link.id}  {span}{state}\n {short(link.title)}\n known since {known}{by}  {link.path}"


def _diff(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.listing import diff

    text = diff(frame.context, frame.space, args.id)
    nothing = f"{args.id} has changed nothing: it supersedes no note."
    # Every line of it is somebody's words, and the first ones of each part name the two notes.
    items = [Words(frame.space.one().name, args.id, text, {"view": "diff"})] if text else []
    frame.items({"id": args.id, "diff": text}, text.split("\n") if text else [nothing], items, "" if text else nothing)
    return 0


def _subject_option(parser: Parser) -> None:
    parser.add_argument("subject", metavar="SUBJECT", help="a subject, with all that lies below it")


def _timeline(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.timelines import timeline

    found = timeline(frame.context, frame.space, args.subject)

    def lines() -> Iterator[str]:
        for version in found:
            yield from _version(version)
        if not found:
            yield nothing

    nothing = "Nothing is or was remembered about this."
    items = (Words(v.home, v.id, short(v.title), _told(v) | dict(_beliefs(v)), v.uri) for v in found)
    document = {"subject": args.subject, "versions": [version.json() for version in found]}
    frame.items(document, lines(), items, counted(len(found), "version") if found else nothing)
    return 0


def _beliefs(version: Any) -> Iterator[tuple[str, str]]:
    yield "state", f"{version.state}, {version.trust}"
    yield "known", f"{_time(version.known_from)} to {_time(version.known_to) or 'now'}"
    yield "recorded", version.recorded_at or ""
    for number, belief in enumerate(version.beliefs, 1):
        yield f"believed{number}", _plain(_belief(belief))
    yield "superseded_by", ",".join(version.superseded_by)
    yield "proposed_by", ",".join(version.proposed_by)
    yield "contested_by", ",".join(version.contested_by)


def _plain(span: str) -> str:
    """As it stands in a marker, where other letters than plain ones are hard to read."""
    return span.replace("…", "open")


def _belief(belief: Any) -> str:
    held = belief.held
    told = f"held {_time(held.start) or '…'} to {_time(held.end) or '…'}" if held else "never held"
    return f"{_time(belief.known_from)} to {_time(belief.known_to) or 'now'}: {told}"


def _version(version: Any) -> Iterator[str]:
    says = f"{_time(version.valid_from) or '…'} to {_time(version.valid_to) or '…'}"
    yield f"{says}  {version.id}  {version.state}, {version.trust}"
    yield f"    {short(version.title) or '(from outside and not reviewed: `memoranda review show` shows it)'}"
    until = f" until {_time(version.known_to)}" if version.known_to else ""
    recorded = version.recorded_at
    backdated = f"; its file says recorded {recorded[:10]}" if recorded and recorded[:10] != _day(version) else ""
    yield f"    known from {_time(version.known_from)}{until}{backdated}"
    for belief in version.beliefs:
        yield f"    believed {_belief(belief)}"
    if version.superseded_by:
        yield f"    superseded by {', '.join(version.superseded_by)}"
    if version.proposed_by:
        waits = "waits" if len(version.proposed_by) == 1 else "wait"
        yield f"    {', '.join(version.proposed_by)} would supersede it, and {waits} for a review"
    if version.contested_by:
        yield f"    contested by {', '.join(version.contested_by)}"


def _day(version: Any) -> str:
    return f"{version.known_from:%Y-%m-%d}"


def _log_options(parser: Parser) -> None:
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="how many at most (default: 20)")


def _log(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.listing import log

    if args.limit < 1:
        raise usage_error("The limit is below one.", "Give a positive number.")
    found = log(frame.context, frame.space, limit=args.limit)

    def lines() -> Iterator[str]:
        for entry in found:
            commit = entry.commit[:9] if entry.commit else "(soon)   "
            yield f"{commit}  {entry.at:%Y-%m-%d %H:%M}Z  {short(entry.author, 16):16}  {entry.reason}"

    items = (
        Words(e.home, (e.commit or "soon")[:9], e.reason, {"by": e.author, "at": f"{e.at:%Y-%m-%dT%H:%MZ}"})
        for e in found
    )
    frame.items({"writes": [entry.json() for entry in found]}, lines(), items, counted(len(found), "write"))
    return 0


COMMANDS = {
    "list": Command(
        "Lists the heads of all chains: the notes that no other note supersedes, by Home and path.",
        filter_options,
        _list,
        "memoranda list --subject customer --kind fact,preference",
    ),
    "history": Command(
        "Shows the chain of a note, oldest first: when each note held, since when it is known, who wrote it.",
        _id_option,
        _history,
        "memoranda history mem_4kq27vxjd83n5r0t",
    ),
    "diff": Command(
        "Shows what changed from note to note along a chain.",
        _id_option,
        _diff,
        "memoranda diff mem_4kq27vxjd83n5r0t",
    ),
    "timeline": Command(
        "Shows what held when and what was believed when: every version of every note on a subject, with the time in "
        "which it holds, the time since which this Home knows it, and what later notes and corrections made of it.",
        _subject_option,
        _timeline,
        "memoranda timeline customer/acme",
    ),
    "log": Command(
        "Shows the newest writes of the nearest Home, newest first: commit, time, author, reason.",
        _log_options,
        _log,
        "memoranda log --limit 50",
    ),
}
