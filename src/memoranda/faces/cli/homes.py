"""`move`: the memories of a tenant or of a project, from folders to PostgreSQL or back."""

from __future__ import annotations

import argparse

from memoranda.errors import ConfigRefused
from memoranda.faces.cli.frame import Command, Frame, Parser
from memoranda.faces.cli.service import opened, where_options


def _options(parser: Parser) -> None:
    parser.add_argument("--tenant", metavar="ID", required=True, help="whose memories")
    parser.add_argument(
        "--project", metavar="NAME", help="those of a project; else those of the tenant as a whole (teams and the like)"
    )
    parser.add_argument("--to", choices=("postgresql", "folders"), required=True, help="where to")
    where_options(parser)


def _move(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.context import Context

    with opened(args) as desk:
        from memoranda.engines.shelves import PostgresShelf, carry

        shelf = desk.homes.shelf
        if not isinstance(shelf, PostgresShelf):
            raise ConfigRefused(
                "The settings `database.url` and `homes.secret` are missing.",
                why="Without them nothing lies in PostgreSQL, and nothing can be moved there.",
                remedy="Give the settings that the service has, or will have, there.",
            )
        context = Context(user="operator", agent="cli")
        done = carry(context, shelf, args.tenant, args.project, to=args.to, progress=frame.progress)
    what = f"the project {args.project}" if args.project else "the tenant as a whole"
    lines = [
        f"The Home of {what} is in {args.to}, compared object by object: {done.objects} objects, {done.written} of "
        "them written now.",
        "What lies in the old place stays there; remove it when you need it no more.",
    ]
    frame.answer({"objects": done.objects, "written": done.written, "to": args.to}, lines)
    return 0


COMMANDS = {
    "move": Command(
        "Carries the memories of a tenant, or of a project, from folders to PostgreSQL or back: notes, history, "
        "reviews, keys and pointers, without a byte of difference. Stop the service first: it is refused while other "
        "nodes are connected to the database or a service has Homes open in the folders, and who comes later waits or "
        "is refused. Repeated after a crash, it goes on. The settings are those of the service on PostgreSQL.",
        _options, _move, "memoranda move --tenant acme --project web --to postgresql --config /etc/memoranda.toml",
    ),
}  # fmt: skip
