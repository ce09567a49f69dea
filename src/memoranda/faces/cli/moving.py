"""`engine export` and `engine import`: an agent's memories out of one engine as notes, and into another."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.faces.cli.frame import Command, Frame, Parser
from memoranda.faces.cli.service import opened, where_options

if TYPE_CHECKING:
    from memoranda.service.caller import Caller
    from memoranda.service.desk import Desk


def _options(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="the zip of notes")
    parser.add_argument("--agent", metavar="ID", required=True, help="the agent whose memories they are")
    parser.add_argument("--token-file", metavar="FILE", required=True, help="holds the token of whoever may do this")
    where_options(parser)


def _caller(desk: Desk, args: argparse.Namespace) -> Caller:
    from dataclasses import replace

    from memoranda.context import Context
    from memoranda.errors import InvalidInput
    from memoranda.service.caller import authenticate

    try:
        token = Path(args.token_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise InvalidInput("The file of the token cannot be read.", remedy="Name a file that holds it.") from None
    caller = authenticate(desk, Context(user="operator", agent="cli"), token)
    # Whoever gives a person's token at a terminal is that person, whom nothing that is read taints.
    person = caller.identity.kind == "user"
    return replace(caller, context=replace(caller.context, person=person))


def _export(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.engines.contract import ExportRequest
    from memoranda.home.keys import write_privately
    from memoranda.service import memories

    with opened(args) as desk:
        done = memories.export(desk, _caller(desk, args), args.agent, ExportRequest())
    path = Path(args.file).expanduser()
    path.unlink(missing_ok=True)
    write_privately(path.absolute(), done.data)
    count = done.manifest["count"]
    frame.answer({"file": str(path), "count": count}, (f"{count} memories are in {path}, as notes.",))
    return 0


def _import(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.errors import InvalidInput
    from memoranda.service.moving import take_in

    try:
        data = Path(args.file).expanduser().read_bytes()
    except OSError as error:
        raise InvalidInput(f"{args.file} cannot be read.", why=f"{error.strerror}.", remedy="Name the zip.") from None
    with opened(args) as desk:
        done = take_in(desk, _caller(desk, args), args.agent, data)
    lines = [f"{len(done.kept)} memories are kept; they wait for a review.", *(
        f"left out: {path}: {why}" for path, why in sorted(done.left_out.items())
    )]  # fmt: skip
    frame.answer({"kept": dict(done.kept), "left_out": dict(done.left_out)}, lines)
    return 1 if done.left_out else 0


COMMANDS = {
    "engine export": Command(
        "Writes an agent's memories, wherever they lie, to a zip of notes that opens as a Home.",
        _options, _export, "memoranda engine export acme.zip --agent cleo --token-file token",
    ),
    "engine import": Command(
        "Remembers the notes of such a zip for an agent, in the engine of its policy; doing it again keeps none twice.",
        _options, _import, "memoranda engine import acme.zip --agent cleo --token-file token",
    ),
}  # fmt: skip
