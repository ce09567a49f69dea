"""`remember` and `update`: one note, one commit."""

from __future__ import annotations

import argparse
from typing import Any

from memoranda.faces.cli.frame import Command, Frame, Parser, a_time, the_text, who_options


def _is_uri(word: str) -> bool:
    return "://" in word and " " not in word


def _is_id(word: str) -> bool:
    from memoranda.notes.ids import is_note_id

    return is_note_id(word)


def _field_options(parser: Parser, kind: str, scope: str, origin: str) -> None:
    parser.add_argument("--subject", metavar="PATH", help="what it is about, such as customer/acme")
    parser.add_argument("--kind", help=f"fact, semantic, episodic, procedural or preference{kind}")
    parser.add_argument(
        "--scope", help=f"session, user, agent, shared_agents, project, team, organization or global{scope}"
    )
    parser.several("--source", _is_uri, metavar="URI", help="where it comes from; may be repeated")
    parser.add_argument("--valid-from", metavar="TIME", help="from when it holds: a date, or a date and time (UTC)")
    parser.add_argument("--valid-to", metavar="TIME", help="until when; a date ends at its first instant")
    parser.add_argument("--confidence", type=float, metavar="0..1", help="how sure it is")
    parser.add_argument("--origin", help=f"agent, human, external, maintenance or import{origin}")
    parser.add_argument("--retention-days", type=int, metavar="N", help="how many days it is kept; then it is hidden")
    parser.add_argument("--retention-class", metavar="CLASS", help="keep_history or erase_history, once it expires")
    parser.add_argument("--legal-hold", action="store_true", default=None, help="not to be removed until released")
    who_options(parser)


def _fields(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of the note that were given."""
    given = {
        "subject": args.subject, "kind": args.kind, "scope": args.scope, "confidence": args.confidence,
        "origin": args.origin, "valid_from": a_time(args.valid_from, "valid_from"),
        "valid_to": a_time(args.valid_to, "valid_to"), "sources": tuple(args.source) or None,
        "retention_days": args.retention_days, "retention_class": args.retention_class, "legal_hold": args.legal_hold,
    }  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


def _remember_options(parser: Parser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="+", help="the words to remember; - reads standard input")
    _field_options(parser, " (default: fact)", " (default: user)", " (default: agent)")
    parser.several("--supersedes", _is_id, metavar="ID", help="a note that this one replaces; may be repeated")


def _remember(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.remembering import NewNote, remember

    new = NewNote(the_text(args.text), supersedes=tuple(args.supersedes), **_fields(args))
    return _done(frame, remember(frame.context, frame.space, new))


def _update_options(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="the note, or any other note of its chain")
    parser.add_argument("text", metavar="TEXT", nargs="+", help="what holds now; - reads standard input")
    _field_options(parser, "", "", " (default: agent)")
    parser.add_argument(
        "--correct", action="store_true", help="the old note never held: the new one takes over its interval"
    )


def _update(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.remembering import update

    text = the_text(args.text)
    done = update(frame.context, frame.space, args.id, text, changes=_fields(args), correct=args.correct)
    return _done(frame, done)


def _done(frame: Frame, done: Any) -> int:
    lines = [f"{done.id}  {done.path}"]
    if done.supersedes:
        said = "proposes to supersede" if done.proposal else "supersedes"
        until = ", when a person has reviewed it" if done.proposal else ""
        lines.append(f"{said} {', '.join(done.supersedes)}{until}")
    frame.answer(done.json(), lines)
    return 0


COMMANDS = {
    "remember": Command(
        "Writes one note and commits it; it is durable when this returns. Prints its id and its path. Without "
        "a source the note cites the journal entry that records this call.",
        _remember_options,
        _remember,
        "memoranda remember 'Acme renewed for 24 months.' --subject customer/acme --valid-from 2026-10-02",
    ),
    "update": Command(
        "Writes a note that supersedes what holds now on the chain of ID; the old note stays as it was. "
        "Subject, kind, scope, confidence and retention are taken over unless given; of two retentions the shorter "
        "wins. The new note holds from now on, or from --valid-from.",
        _update_options,
        _update,
        "memoranda update mem_4kq27vxjd83n5r0t 'Acme renewed for 36 months.' --valid-from 2026-11-01",
    ),
}
