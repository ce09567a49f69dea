"""What every command shares: its options, its Homes, and one way to answer.

A command is described by a `Command` and run with a `Frame`. With `--json` its answer is one JSON document on standard
output; otherwise it is lines for a person.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from memoranda.errors import InvalidInput, InvalidNote
from memoranda.faces import local
from memoranda.faces.covering import covered, secrets_in

if TYPE_CHECKING:
    from memoranda.context import Context
    from memoranda.home.comparison import Comparison
    from memoranda.operations.space import Space

# A text can hold what a terminal obeys: everything below a space but tab and newline, and the upper control range.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
# Line and paragraph separators, marks of writing direction, invisible characters: they let words look like others.
_UNSEEN = (0x61C, 0x200B, *range(0x200E, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF)
_CONTROLS |= {code: f"\\u{code:04x}" for code in (*_UNSEEN, *range(0xFFF9, 0xFFFC), *range(0xE0000, 0xE0080))}
_READ_AT_MOST = 16 << 20


class Words(NamedTuple):
    """Words of somebody else for a model, and what stands in the markers around them."""

    home: str
    item: str
    text: str
    labels: Mapping[str, str]
    source: str = ""


class Command(NamedTuple):
    """One command: what it does (its help), its options, what runs it, an example."""

    about: str
    options: Callable[[Parser], None]
    run: Callable[[Frame, argparse.Namespace], int]
    example: str


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors of ours, so that they look the same as all others."""

    several_values: dict[str, Callable[[str], bool]]
    intermixed = False  # whether options may stand before the last of several arguments
    _width = 78

    def several(self, option: str, looks: Callable[[str], bool], **more: Any) -> None:
        """An option that is repeated, or given once with several values; `looks` tells a further value from a text."""
        self.several_values[option] = looks
        self.add_argument(option, action="append", default=[], **more)

    def parse(self, given: Sequence[str]) -> argparse.Namespace:
        """The arguments; SystemExit after --help, InvalidInput for what cannot be understood."""
        spread: list[str] = []
        option, has_value = "", False
        for at, word in enumerate(given):
            if word == "--":
                spread += given[at:]
                break
            if word in self.several_values:
                option, has_value = word, False
            elif option and not has_value:
                has_value = True
            elif option and self.several_values[option](word):
                spread.append(option)
            else:
                option = ""
            spread.append(word)
        return self.parse_intermixed_args(spread) if self.intermixed else self.parse_args(spread)

    def _get_formatter(self) -> argparse.HelpFormatter:
        # One is made for every option that is added; the usual one imports `shutil` to learn how wide the terminal is.
        return self.formatter_class(prog=self.prog, width=self._width)  # type: ignore[call-arg]

    def format_help(self) -> str:
        import shutil
        import textwrap

        self._width = shutil.get_terminal_size().columns - 2
        self.description = textwrap.fill(self.description or "", 79)
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        raise usage_error(f"{message[:1].upper()}{message[1:]}.", f"`{self.prog} --help` shows how it is used.")


def usage_error(what: str, remedy: str) -> InvalidInput:
    """The error for a command line that cannot be understood."""
    return InvalidInput(what, remedy=remedy)


def make_parser(name: str, command: Command) -> Parser:
    """The parser of one command, with the options that all have."""
    parser = Parser(
        prog=f"memoranda {name}",
        description=command.about,
        epilog=f"example:\n  {command.example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.several_values = {}
    command.options(parser)
    common = parser.add_argument_group("options of every command")
    common.add_argument("--home", metavar="DIR", help="the Home to use (else MEMORANDA_HOME, else the nearest)")
    common.add_argument("--json", action="store_true", help="answer with one JSON document")
    return parser


def who_options(parser: Parser, agent: str = "MEMORANDA_AGENT, then cli") -> None:
    """`--agent` and `--session`."""
    parser.add_argument("--agent", metavar="NAME", help=f"who writes (default: {agent})")
    parser.add_argument(
        "--session", metavar="ID", help="the session it belongs to (default: MEMORANDA_SESSION, then the ambient one)"
    )


def words(values: Iterable[str] | None) -> tuple[str, ...]:
    """Values that may be repeated or joined by commas, as one tuple."""
    return tuple(word.strip() for value in values or () for word in value.split(",") if word.strip())


def counted(number: int, one: str, many: str = "") -> str:
    """`1 note`, `2,000 notes`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def a_time(text: str | None, what: str, *, end_of_day: bool = False) -> datetime | None:
    """The instant that an option names. InvalidTime."""
    if text is None:
        return None
    from memoranda.notes.times import parse_instant

    return parse_instant(text, what=what, end_of_day=end_of_day)


def the_text(pieces: Iterable[str]) -> str:
    """The text that was given as arguments, or on standard input for a lone `-`. InvalidNote when it is not UTF-8."""
    given = " ".join(pieces)
    if given != "-":
        return given
    data = sys.stdin.buffer.read(_READ_AT_MOST)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidNote(
            "Standard input is not UTF-8.", why="Notes are Unicode text.", remedy="Convert it, for instance with iconv."
        ) from None


_PATHS = ("home", "folder", "file")  # the arguments that name files, which may be any bytes


def check_unicode(args: argparse.Namespace) -> None:
    """InvalidInput for an argument that is not UTF-8."""
    for name, value in vars(args).items():
        for text in value if isinstance(value, list) else (value,):
            if isinstance(text, str) and not text.isascii() and name not in _PATHS:
                try:
                    text.encode()
                except UnicodeEncodeError:
                    raise usage_error(f"The {name} is not valid text.", "Write it in UTF-8.") from None


class Frame:
    """One run of a command: its Homes are opened when asked for and closed at the end."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.json: bool = args.json
        self._space: Space | None = None
        self._choice: local.Choice | None = None
        self._begun: Comparison | None = None
        self._context: Context | None = None
        self._secrets: dict[str, str] | None = None
        self.told_notices = False  # whether the answer itself says which Homes were left out
        self.progress: local.Progress | None = Progress() if sys.stderr.isatty() and not self.json else None

    @property
    def context(self) -> Context:
        if self._context is None:
            who = (getattr(self.args, "agent", None), getattr(self.args, "session", None))
            self._context = local.make_context(*who, person=local.at_a_terminal())
        return self._context

    @property
    def space(self) -> Space:
        if self._space is None:
            choice = self._choice or local.choose(self.args.home)
            self._space = local.open_space(self.context, choice, self.progress, self._begun)
        return self._space

    def look_ahead(self) -> None:
        """For a command that will look for outside edits: Git compares the files while the rest is imported."""
        self._choice = local.choose(self.args.home)
        self._begun = local.begin(self._choice)

    def answer(self, document: Mapping[str, object], lines: Iterable[str]) -> None:
        """The answer of the command: `document` with --json, otherwise `lines`, made fit for a terminal."""
        if self.json:
            self.document(document)
            return
        self._clear()
        for line in lines:
            # A line break in somebody's words must not begin a line that reads as ours.
            sys.stdout.write(printable(self._covered(line)).replace("\n", "\n   ") + "\n")

    @property
    def for_model(self) -> bool:
        """Whether a model is taken to read the answer: it goes to no terminal, and is no JSON for a program."""
        return not (self.json or sys.stdout.isatty())

    def items(self, document: Mapping[str, object], lines: Iterable[str], items: Iterable[Words], last: str) -> None:
        """An answer that is a list: `lines` at a terminal, and each of `items` between its markers for a model.

        `last` is said where there is none, and behind them if it is not empty.
        """
        if not self.for_model:
            self.answer(document, lines)
            return
        from memoranda.operations.presenting import DATA, words_between

        told = [words_between(self.context, self.space, *item) for item in items]
        self.text("\n\n".join(filter(None, [DATA if told else "", *told, last])))

    def text(self, text: str) -> None:
        """An answer in words for a model, whose items stand between their markers."""
        self._clear()
        sys.stdout.write(printable(self._covered(text)))
        sys.stdout.write("\n")  # by itself: of one long write Python does not say that nobody read it to its end

    def document(self, document: Mapping[str, object]) -> None:
        self._clear()
        sys.stdout.write(self._covered(json_text(document)) + "\n")

    def raw(self, text: str) -> None:
        """A text as it is; only for a terminal without what it would obey."""
        self._clear()
        text = self._covered(text)
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
        if text and not text.endswith("\n"):
            sys.stdout.write("\n")

    def remark(self, line: str) -> None:
        """Something that is not part of the answer: on standard error, and not beside JSON."""
        if not self.json:
            self._clear()
            sys.stderr.write(printable(self._covered(line)) + "\n")

    def keep_last(self, query: str, ids: list[str], times: Mapping[str, str | None]) -> None:
        """Remembers what was recalled, for `golden add --last`; not when the words of the command hold a secret."""
        self._covered("")
        if ids and not self._secrets:
            from memoranda.operations.last_recall import keep_last

            keep_last(self.space, query, ids, times)

    def _covered(self, text: str) -> str:
        """The text without the secrets that the command's own words hold."""
        if self._secrets is None:
            self._secrets = secrets_in(vars(self.args).values())
        return covered(text, self._secrets) if self._secrets else text

    def _clear(self) -> None:
        if isinstance(self.progress, Progress):
            self.progress.clear()

    def __enter__(self) -> Frame:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._space is not None:
            if error is None and not self.told_notices:
                for notice in self._space.notices:
                    self.remark(f"Note: {notice}")
            self._space.close()
        if self._begun is not None:
            self._begun.end()
        self._clear()


def json_text(document: Mapping[str, object]) -> str:
    """As JSON, in which what a terminal would obey is escaped too: the same to whoever parses it."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    if text.isascii() and "\x7f" not in text:
        return text
    return text.translate(
        {code: json.dumps(chr(code)).strip('"') for code in _CONTROLS if code > 31} | {127: "\\u007f"}
    )


def printable(text: str) -> str:
    """The text with control characters spelled out, so that recalled words cannot steer a terminal."""
    return text if text.isprintable() else text.translate(_CONTROLS)


class Progress:
    """Says how far long work is, on a terminal, in one line that it rewrites."""

    _AFTER = 0.3  # seconds; what is quicker needs no word
    _EVERY = 0.1

    def __init__(self) -> None:
        self._started = 0.0
        self._said = 0.0
        self._shown = False

    def __call__(self, what: str, done: int, everything: int) -> None:
        import time

        now = time.monotonic()
        if not self._started:
            self._started = now
        if now - self._started < self._AFTER or now - self._said < self._EVERY:
            return
        self._said = now
        self._shown = True
        share = f" ({done * 100 // everything} %)" if everything else ""
        sys.stderr.write(f"\r\x1b[K{what}: {done:,} of {everything:,}{share}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
