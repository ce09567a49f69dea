"""`golden add` and `golden run`: questions that a Home must answer."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memoranda.faces.cli.frame import Command, Frame, Parser, counted, usage_error

if TYPE_CHECKING:
    from memoranda.recall.golden import GoldenReport


def _is_expected(word: str) -> bool:
    return word.startswith(("mem_", "j_")) and " " not in word


def _add_options(parser: Parser) -> None:
    parser.add_argument("question", metavar="QUESTION", nargs="*", help="the question, as somebody would ask it")
    parser.add_argument(
        "--last", nargs="?", const="1", metavar="ITEM",
        help="the question of the last recall, and which of its items was the right one: its place, or its id (1)",
    )  # fmt: skip
    parser.several(
        "--expect", _is_expected, metavar="ID", help="a note or entry that answers it; repeated: any of them will do"
    )
    parser.add_argument("--as-of", metavar="TIME", help="ask what held then")
    parser.add_argument("--known-at", metavar="TIME", help="ask what was known then")


def _add(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.goldens import golden_add

    if args.last is not None:
        from memoranda.operations.goldens import golden_add_last

        if args.question or args.expect or args.as_of or args.known_at:
            raise usage_error("--last takes the question and its times from the last recall.", "Leave the rest out.")
        done = golden_add_last(frame.context, frame.space, args.last)
    elif not args.question or not args.expect:
        raise usage_error(
            "A question and the note that must be found are needed.",
            "Give QUESTION --expect ID, or after a recall only --last, with the place of the right item.",
        )
    else:
        done = golden_add(
            frame.context, frame.space, " ".join(args.question), args.expect, as_of=args.as_of, known_at=args.known_at
        )
    document = {
        "question": done.question, "expect": list(done.expect), "as_of": done.as_of, "known_at": done.known_at,
    }  # fmt: skip
    frame.answer(document, [f"Added to memory/golden.yaml: {done.question}"])
    return 0


def _run_options(parser: Parser) -> None:
    parser.add_argument("--k", type=int, metavar="N", help="among how many it must be (default: what the file says)")
    parser.add_argument("--compare", metavar="RECIPE", help="ask two recipes, this one beside the one that answers")


def _run(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.goldens import golden_run

    if args.k is not None and not 1 <= args.k <= 100:
        raise usage_error("k is not between 1 and 100.", "Give a number such as 8.")
    if args.compare is not None:
        return _compare(frame, args)
    report = golden_run(frame.context, frame.space, k=args.k)

    def lines() -> Iterator[str]:
        yield _figures(report)
        for outcome in report.outcomes:
            if outcome.rank is None:
                yield f"  missed: {outcome.question.question}"
                yield f"    expected {', '.join(outcome.question.expect)}"
                yield f"    found    {', '.join(outcome.found) or 'nothing'}"
        wanted = f"hit {report.wanted_hit:g} and MRR {report.wanted_mrr:g}"
        yield f"Passed; the threshold is {wanted}." if report.passed else f"Failed: the threshold is {wanted}."

    frame.answer(report.json(), lines())
    return 0 if report.passed else 1


def _figures(report: GoldenReport) -> str:
    return f"{counted(len(report.outcomes), 'question')}: hit@{report.k} {report.hit:.3f}, MRR {report.mrr:.3f}"


def _compare(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.recipes import golden_compare

    done = golden_compare(frame.context, frame.space, args.compare, k=args.k)

    def lines() -> Iterator[str]:
        for name, report in ((done.active, done.one), (done.other, done.two)):
            yield f"{name}: {_figures(report)}"
        yield f"{done.active:>12}  {done.other:>12}  question"
        for one, two in zip(done.one.outcomes, done.two.outcomes, strict=True):
            yield f"{_rank(one.rank):>12}  {_rank(two.rank):>12}  {one.question.question}"
        yield f"{done.other} is worse." if done.worse else f"{done.other} is no worse."

    frame.answer(done.json(), lines())
    return 1 if done.worse else 0


def _rank(rank: int | None) -> str:
    return "missed" if rank is None else str(rank)


COMMANDS = {
    "golden add": Command(
        "Adds a question to memory/golden.yaml, with the notes of which one must be found.",
        _add_options,
        _add,
        "memoranda golden add 'Who decides at Acme?' --expect mem_4kq27vxjd83n5r0t",
    ),
    "golden run": Command(
        "Asks every question of memory/golden.yaml; prints hit@k, the mean reciprocal rank and every miss. "
        "Exits with 1 below the file's threshold. With --compare it shows for each question at which place each of two "
        "recipes found the note, and exits with 1 when the named one is worse.",
        _run_options,
        _run,
        "memoranda golden run --k 5",
    ),
}
