"""`golden add` and `golden run`: questions that a Home must answer."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from memoranda.faces.cli.frame import Command, Frame, Parser, counted, usage_error


def _is_expected(word: str) -> bool:
    return word.startswith(("mem_", "j_")) and " " not in word


def _add_options(parser: Parser) -> None:
    parser.add_argument("question", metavar="QUESTION", nargs="+", help="the question, as somebody would ask it")
    parser.several(
        "--expect", _is_expected, metavar="ID", help="a note or entry that answers it; repeated: any of them will do"
    )
    parser.add_argument("--as-of", metavar="TIME", help="ask what held then")
    parser.add_argument("--known-at", metavar="TIME", help="ask what was known then")


def _add(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.goldens import golden_add

    if not args.expect:
        raise usage_error("No --expect was given.", "Name the note that must be found: --expect ID.")
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


def _run(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.operations.goldens import golden_run

    if args.k is not None and not 1 <= args.k <= 100:
        raise usage_error("k is not between 1 and 100.", "Give a number such as 8.")
    report = golden_run(frame.context, frame.space, k=args.k)

    def lines() -> Iterator[str]:
        yield f"{counted(len(report.outcomes), 'question')}: hit@{report.k} {report.hit:.3f}, MRR {report.mrr:.3f}"
        for outcome in report.outcomes:
            if outcome.rank is None:
                yield f"  missed: {outcome.question.question}"
                yield f"    expected {', '.join(outcome.question.expect)}"
                yield f"    found    {', '.join(outcome.found) or 'nothing'}"
        wanted = f"hit {report.wanted_hit:g} and MRR {report.wanted_mrr:g}"
        yield f"Passed; the threshold is {wanted}." if report.passed else f"Failed: the threshold is {wanted}."

    frame.answer(report.json(), lines())
    return 0 if report.passed else 1


COMMANDS = {
    "golden add": Command(
        "Adds a question to memory/golden.yaml, with the notes of which one must be found.",
        _add_options,
        _add,
        "memoranda golden add 'Who decides at Acme?' --expect mem_4kq27vxjd83n5r0t",
    ),
    "golden run": Command(
        "Asks every question of memory/golden.yaml; prints hit@k, the mean reciprocal rank and every miss. "
        "Exits with 1 below the file's threshold.",
        _run_options,
        _run,
        "memoranda golden run --k 5",
    ),
}
