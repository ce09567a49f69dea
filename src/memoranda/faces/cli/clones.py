"""`clone` and `pull`: another copy of a Home, with the ledger of who wrote what."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from memoranda.faces.cli.frame import Command, Frame, Parser, counted


def _clone_options(parser: Parser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="the folder or the address of a Home")
    parser.add_argument("folder", metavar="DIR", nargs="?", help="where to (default: named after SOURCE)")


def _clone(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.faces import local
    from memoranda.operations.clones import clone

    folder = Path(args.folder).expanduser() if args.folder else None
    done = clone(frame.context, local.keys(), args.source, folder, near=frame.space)
    with_it = "with its ledger" if done.ledger else "which has no ledger: who wrote what is not known"
    frame.answer(done.json(), [f"Cloned {done.home} to {done.path}: {counted(done.notes, 'note')}, {with_it}."])
    return 0


def _pull_options(parser: Parser) -> None:
    parser.add_argument(
        "remote", metavar="REMOTE", nargs="?", help="a remote of Git's, or the folder or address of a clone"
    )


def _pull(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.clones import pull

    done = pull(frame.context, frame.space, args.remote)

    def lines() -> Iterator[str]:
        ledger = "its ledger too" if done.ledger else "it has no ledger"
        yield f"Pulled {done.branch} of {done.remote} into {done.home}: {counted(done.fresh, 'new note')}; {ledger}."
        for path, other in done.conflicts:
            yield f"Both had changed {path}: " + (f"theirs is {other}, for you to decide." if other else "ours stays.")

    frame.answer(done.json(), lines())
    return 0


COMMANDS = {
    "clone": Command(
        "Makes a clone of a Home, with the ledger of who wrote what. What this installation vouches for counts there "
        "as it does here; on another machine only signed reviews do.",
        _clone_options,
        _clone,
        "memoranda clone ~/notes ~/elsewhere/notes",
    ),
    "pull": Command(
        "Takes in what another clone of this Home has: notes, journals and its ledger. Where both have changed one "
        "note, both stay, and a person decides. To send yours, push the branch and refs/memoranda/ledger.",
        _pull_options,
        _pull,
        "memoranda pull origin",
    ),
}
