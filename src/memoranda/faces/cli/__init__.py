"""The command line, `memoranda`. Only what the command at hand needs is imported, so that a first answer is quick."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from memoranda.errors import MemorandaError
    from memoranda.faces.cli.frame import Command

# name -> (module of this package, one line for the list of commands)
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("making", "make a Home of a folder, new or full of notes"),
    "remember": ("writing", "write one note"),
    "recall": ("recalling", "find what is remembered, with its evidence"),
    "read": ("reading", "read a note, a journal, or the lines that a pointer names"),
    "update": ("writing", "write a note that supersedes another"),
    "list": ("listing", "the notes that hold now"),
    "history": ("listing", "the chain of a note, oldest first"),
    "timeline": ("listing", "what held when, and what was believed when"),
    "diff": ("listing", "what changed along a chain"),
    "log": ("listing", "the newest writes, with who and why"),
    "journal append": ("journal", "add one entry to an agent's journal"),
    "journal import": ("journal", "take in a conversation from a file"),
    "import": ("making", "take in a folder of Markdown"),
    "clone": ("clones", "make a clone of a Home, with its ledger"),
    "pull": ("clones", "take in what another clone has, with its ledger"),
    "index status": ("upkeep", "show the indexes and what they reflect"),
    "index add": ("recipes", "put another way of finding beside the one that answers"),
    "index try": ("recipes", "answer one question by it"),
    "index promote": ("recipes", "let it answer from now on"),
    "index retire": ("recipes", "take one away"),
    "index rebuild": ("upkeep", "make every index again"),
    "index drop": ("upkeep", "delete the indexes; nothing is lost"),
    "golden add": ("goldens", "add a question and the notes that must be found"),
    "golden run": ("goldens", "ask every golden question"),
    "review list": ("trust", "what waits for a review"),
    "review show": ("trust", "a note as a reviewer needs it"),
    "review accept": ("trust", "stand by notes, byte for byte"),
    "review reject": ("trust", "do not stand by notes"),
    "review revoke": ("trust", "take an acceptance back"),
    "context": ("trust", "what is loaded automatically"),
    "trace": ("tracing", "what something came from and what it touched"),
    "rollback": ("tracing", "undo what something touched"),
    "forget": ("forgetting", "take notes away with all that goes with them, and say what could not go"),
    "expire": ("forgetting", "remove what has been kept long enough"),
    "hold list": ("forgetting", "the notes under legal hold"),
    "hold set": ("forgetting", "keep notes from being removed"),
    "hold release": ("forgetting", "let held notes be removed again"),
    "key export": ("forgetting", "give the keys of what is forgotten to another installation"),
    "key import": ("forgetting", "take such keys"),
    "session show": ("trust", "what a session has met"),
    "session taint": ("trust", "say that a session met content from outside"),
    "session fresh": ("trust", "begin a clean ambient session"),
    "allow add": ("allowing", "let a text, a tool, a server or a domain through"),
    "allow list": ("allowing", "what is let through"),
    "allow once": ("allowing", "let one refused operation through, once"),
    "allow asked": ("allowing", "the refused operations that a person can let through"),
    "allow revoke": ("allowing", "let it through no longer"),
    "policy show": ("allowing", "what may be kept here"),
    "policy set": ("allowing", "say what may be kept here"),
    "hook claude-code": ("hook", "take an event of Claude Code's hooks"),
    "doctor": ("upkeep", "find what is wrong, and explain it"),
    "scan": ("upkeep", "find secrets that are kept already"),
    "serve": ("service", "serve many tenants over HTTP"),
    "config check": ("service", "say whether the service would start"),
    "db upgrade": ("service", "bring the tables of the service to this version"),
    "db reseal": ("service", "seal the keys in PostgreSQL again after the secret was changed"),
    "move": ("homes", "carry memories of the service between folders and PostgreSQL"),
    "audit verify": ("service", "hold the service's audit against its chains"),
    "admin tenant": ("admin", "the tenants of the service"),
    "admin user": ("admin", "its users and their roles"),
    "admin team": ("admin", "teams of a tenant"),
    "admin agent": ("admin", "agents of a tenant"),
    "admin token": ("admin", "tokens of users and agents"),
    "admin hold": ("admin", "what is under legal hold in a tenant"),
    "admin relation": ("admin", "who may do what with an agent"),
    "engine install": ("engines", "install an engine for the service on this machine"),
    "engine up": ("engines", "start it, and wait until it answers"),
    "engine status": ("engines", "the engines of this machine"),
    "engine rotate": ("engines", "give its secrets new values"),
    "engine renew": ("engines", "a new key for the prefix of identifiers in engines"),
    "engine down": ("engines", "stop it, or take it away"),
    "engine export": ("moving", "an agent's memories as notes, out of whichever engine"),
    "engine import": ("moving", "such notes into the engine of an agent's policy"),
    "mcp": ("serving", "serve agents over MCP on standard input and output"),
}
GROUPS = (
    "journal",
    "index",
    "golden",
    "review",
    "hold",
    "key",
    "session",
    "allow",
    "policy",
    "hook",
    "config",
    "db",
    "audit",
    "admin",
    "engine",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code. Without `argv` it is the whole process, and ends it.

    0 done, 1 a check failed, 2 usage, 3 refused, 4 not found, 5 conflict, 6 unavailable or damaged, 130 interrupted.
    """
    if argv is None:
        _whole_process()
    return _safely(list(argv))


def _whole_process() -> NoReturn:
    """One command and nothing else: it makes little garbage, and what it leaves behind, the system takes back.

    Not collecting and not tidying up spare a tenth of a quick command's time.
    """
    if sys.getfilesystemencoding() != "utf-8":
        _again_in_utf8()
    import gc
    import os

    for name in ("stdin", "stdout", "stderr"):  # a shell may have closed them
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: SIM115, PTH123 - as long as we live
    gc.set_threshold(50_000, 20, 20)
    code = _safely(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)


def _safely(words: list[str]) -> int:
    try:
        code = _guarded(words)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _forget_stdout()
        return 141  # what a shell reports of a program that nobody listens to any more


def _again_in_utf8() -> None:
    """Notes and their names are UTF-8, whatever the locale says: starts over in Python's own UTF-8 mode."""
    import os

    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _guarded(words: list[str]) -> int:
    """Runs the command; every error is told, none leaves. To a harness, exit code 2 of a hook would mean `block`."""
    code = _told(words)
    first = _first(words)
    return 1 if code and words[first : first + 1] == ["hook"] else code


def _told(words: list[str]) -> int:
    from memoranda.errors import MemorandaError

    in_json = _wants_json(words)
    _prepare_streams(in_json)
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except MemorandaError as error:
        return _say(error, in_json, words)
    except BrokenPipeError:
        raise
    except OSError as error:
        from memoranda.faces.local import refused_by_system

        return _say(refused_by_system(error), in_json, words)
    except ModuleNotFoundError as error:
        from memoranda.faces.cli.service import without_service

        ours = (error.name or "").partition(".")[0] == "memoranda"
        refused = None if ours else without_service()
        return _defect(error, in_json, words) if refused is None else _say(refused, in_json, words)
    except Exception as error:  # noqa: BLE001 - the outermost net: a defect is told as one, with its traceback
        from memoranda.index.journal_mode import named

        if named_error := named(error):
            return _say(named_error, in_json, words)
        return _defect(error, in_json, words)


def _defect(error: Exception, in_json: bool, words: list[str]) -> int:
    from memoranda.errors import Unavailable
    from memoranda.faces.covering import frames_of

    sys.stderr.write(frames_of(error))
    why = f"{type(error).__name__} was not expected here; this is a defect of Memoranda."
    return _say(Unavailable("The command broke off.", why=why, remedy="Please report it."), in_json, words)


def _run(words: list[str]) -> int:
    name, rest = _split(words)
    if name is None:
        return _without_command(rest)
    from memoranda.faces.cli.frame import Frame, check_unicode, make_parser

    command = find(name)
    try:
        args = make_parser(name, command).parse(rest)
    except SystemExit as done:  # --help has said everything
        return int(done.code or 0)
    check_unicode(args)
    with Frame(args) as frame:
        code = command.run(frame, args)
        sys.stdout.flush()
    return code


def find(name: str) -> Command:
    """The command of this name, imported now."""
    from importlib import import_module

    module: Any = import_module(f"memoranda.faces.cli.{COMMANDS[name][0]}")
    command: Command = module.COMMANDS[name]
    return command


def _split(words: list[str]) -> tuple[str | None, list[str]]:
    """(name of the command, its arguments); options of every command may stand before it."""
    first = _first(words)
    before, after = words[:first], words[first:]
    if not after or any(word in before for word in ("--help", "-h", "--version")):
        return None, words
    name = after.pop(0)
    if name in GROUPS:
        if not after or after[0].startswith("-"):
            return None, [name, *before, *after]
        name = f"{name} {after.pop(0)}"
    if name not in COMMANDS:
        raise _unknown(name)
    return name, [*before, *after]


def _first(words: list[str]) -> int:
    """Where the command stands, behind the options before it."""
    first = 0
    while first < len(words) and words[first].startswith("-"):
        first += 2 if words[first] == "--home" else 1
    return first


def _unknown(name: str) -> MemorandaError:
    import difflib

    from memoranda.errors import InvalidInput

    near = difflib.get_close_matches(name, COMMANDS, 1, 0.5)
    meant = f"Did you mean `memoranda {near[0]}`? " if near else ""
    return InvalidInput(f"There is no command {name!r}.", remedy=f"{meant}`memoranda --help` shows the commands.")


def _without_command(words: list[str]) -> int:
    """`--version`, help on everything or on a group; anything else lacks its command."""
    if "--version" in words:
        from memoranda import __version__

        sys.stdout.write(f"memoranda {__version__}\n")
        return 0
    group = words[0] if words and words[0] in GROUPS else None
    if "--help" in words or "-h" in words:
        sys.stdout.write(overview(group))
        return 0
    from memoranda.errors import InvalidInput

    if "--json" not in words:
        sys.stderr.write(overview(group) + "\n")
    which = f"`memoranda {group}` lacks its second word" if group else "No command was given"
    raise InvalidInput(f"{which}.", remedy="`memoranda --help` shows the commands.")


def overview(group: str | None = None) -> str:
    """The help on all commands, or on those of one group."""
    rows = [(name, about) for name, (_, about) in COMMANDS.items() if group is None or name.startswith(group + " ")]
    width = max(len(name) for name, _ in rows)
    title = "Memory for AI agents: notes in Markdown, in Git. `memoranda COMMAND --help` shows the options of one."
    lines = [f"usage: memoranda {f'{group} ' if group else ''}COMMAND … [--home DIR] [--json]", "", title, ""]
    lines += [f"  {name:{width}}  {about}" for name, about in rows]
    lines += ["", "  memoranda --version", ""]
    return "\n".join(lines)


def _wants_json(words: list[str]) -> bool:
    return "--json" in words[: words.index("--") if "--" in words else len(words)]


def _prepare_streams(in_json: bool) -> None:
    """JSON is UTF-8 wherever we are; a character that a terminal cannot show is spelled out."""
    for stream, encoding in ((sys.stdout, "utf-8" if in_json else None), (sys.stderr, None)):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding=encoding, errors="backslashreplace")


def _say(error: MemorandaError, in_json: bool, words: list[str]) -> int:
    """Tells an error: a problem document on standard output, or what, why and remedy on standard error.

    A secret among the words of the command is not said again.
    """
    from memoranda.faces.covering import covered, covered_data, secrets_in

    secrets = secrets_in([words])
    from memoranda.faces.cli.frame import json_text, printable

    if in_json:
        document = covered_data(error.problem(), secrets)
        sys.stdout.write(json_text(document) + "\n")
        sys.stdout.flush()
        return error.exit_code
    lines = [f"memoranda: {error.what}", *(f"  {line}" for line in (error.why, error.remedy) if line)]
    sys.stderr.write(printable(covered("\n".join(lines), secrets)) + "\n")
    return error.exit_code


def _forget_stdout() -> None:
    """Nobody reads any more: what is left in the buffer goes nowhere, silently."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
