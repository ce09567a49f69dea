"""`index add|try|promote|retire`: recipes side by side."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memoranda.faces.cli.frame import Command, Frame, Parser, counted

if TYPE_CHECKING:
    from memoranda.operations.recipes import RecipeStatus

_BUDGET = 2000
_TOP = 8


def _recipe(parser: Parser) -> None:
    parser.add_argument(
        "recipe", metavar="RECIPE", help="words, static, or static+endpoint:NAME; +graph or +outline behind it"
    )


def _add_options(parser: Parser) -> None:
    _recipe(parser)
    parser.add_argument("--wait", action="store_true", help="build it here and now, and come back when it is done")


def _add(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.recipes import index_add

    done = index_add(frame.context, frame.space, args.recipe, wait=args.wait)

    def lines() -> Iterator[str]:
        yield told(done)
        if done.state in ("building", "missing", "behind"):
            yield "It is built in the background; `memoranda index status` shows how far it is."
        elif not done.active:
            yield f"Try it: `memoranda index try {done.name} QUERY`."
            yield f"Let it answer: `memoranda index promote {done.name}`."

    frame.answer(done.json(), lines())
    return 0


def told(recipe: RecipeStatus) -> str:
    """One recipe in one line."""
    line = f"{recipe.name}  {recipe.state}"
    if recipe.active and recipe.state != "active":
        line += ", answers"
    if recipe.everything:
        line += f"  {recipe.done:,} of {recipe.everything:,} ({recipe.done * 100 // recipe.everything} %)"
    if recipe.tested:
        test = recipe.tested
        line += f"  golden: hit {test.hit:.3f}, MRR {test.mrr:.3f}, {counted(test.questions, 'question')}"
        line += "" if test.passed else ", below the threshold"
    return f"{line}  {recipe.why}" if recipe.why else line


def _try_options(parser: Parser) -> None:
    _recipe(parser)
    parser.add_argument("query", metavar="QUERY", nargs="+", help="what to look for, in your own words")
    parser.add_argument(
        "--budget", type=int, default=_BUDGET, metavar="TOKENS", help=f"how much it may cost (default: {_BUDGET})"
    )
    parser.add_argument("--k", type=int, default=_TOP, metavar="N", help=f"how many items at most (default: {_TOP})")


def _try(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.faces.cli.recalling import answer
    from memoranda.operations.recipes import index_try

    query = " ".join(args.query)
    answer(frame, index_try(frame.context, frame.space, args.recipe, query, budget=args.budget, k=args.k))
    return 0


def _promote_options(parser: Parser) -> None:
    _recipe(parser)
    parser.add_argument("--force", action="store_true", help="even a worse one; it stays on record")


def _promote(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.recipes import index_promote

    done = index_promote(frame.context, frame.space, args.recipe, force=args.force)

    def lines() -> Iterator[str]:
        yield f"{done.recipe} answers now, in the place of {done.former}." + (" Forced." if done.forced else "")
        for name, report in ((done.recipe, done.new), (done.former, done.old)):
            yield f"  {name}: hit@{report.k} {report.hit:.3f}, MRR {report.mrr:.3f}"
        yield f"{done.former} stays until `memoranda index retire {done.former}`."

    frame.answer(done.json(), lines())
    return 0


def _retire(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.recipes import index_retire

    gone = index_retire(frame.context, frame.space, args.recipe)
    frame.answer(
        {"recipe": args.recipe, "dropped": gone},
        [f"{args.recipe} is retired.", *(f"  {name}  deleted" for name in gone)],
    )
    return 0


COMMANDS = {
    "index add": Command(
        "Puts a recipe beside the one that answers, and builds its indexes in the background: words (the words alone), "
        "static (words, and vectors from the installed table) or endpoint:NAME (that, and vectors from a server that "
        "your own settings describe). A build that was stopped is gone on with.",
        _add_options,
        _add,
        "memoranda index add words",
    ),
    "index try": Command(
        "Answers one question by a recipe that was added, as recall would if it were the active one.",
        _try_options,
        _try,
        "memoranda index try words 'Who is the contact at Acme?'",
    ),
    "index promote": Command(
        "Lets a recipe answer from now on, when it does no worse on the golden questions than the one that does now. "
        "The former one stays as it is until it is retired.",
        _promote_options,
        _promote,
        "memoranda index promote words",
    ),
    "index retire": Command(
        "Takes a recipe away, with the indexes that no other one needs. Refused for the one that answers, and for the "
        "last one that passed the golden questions.",
        _recipe,
        _retire,
        "memoranda index retire static",
    ),
}
