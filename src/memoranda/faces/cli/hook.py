"""`hook claude-code`: run by the harness of an agent at each of its events, so quick, and never in the agent's way."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.errors import InvalidInput
from memoranda.faces import local
from memoranda.faces.cli.frame import Command, Frame, Parser

if TYPE_CHECKING:
    from memoranda.context import Context
    from memoranda.operations.hook_events import Event
    from memoranda.operations.hooks import Answer

AGENT = "claude-code"  # as Claude Code calls itself over MCP, so that hook and server speak of the same agent
# Each event with how many seconds the harness waits for us.
_EVENTS = {
    "SessionStart": 30, "UserPromptSubmit": 30, "PostToolUse": 30, "PostToolUseFailure": 30, "PreCompact": 60,
    "Stop": 60, "SubagentStop": 60, "SessionEnd": 60,
}  # fmt: skip


def _options(parser: Parser) -> None:
    parser.add_argument(
        "--print-config", action="store_true", help="print what goes into settings.json, and do nothing"
    )
    parser.add_argument("--budget", type=int, default=2000, metavar="TOKENS", help="how much may be loaded (2000)")
    parser.add_argument("--agent", metavar="NAME", help=f"who works (default: MEMORANDA_AGENT, then {AGENT})")


def _hook(frame: Frame, args: argparse.Namespace) -> int:
    if args.print_config:
        frame.document(config(args))
        return 0
    if sys.stdin.isatty():
        raise InvalidInput(
            "Standard input is a terminal, and an event is expected there.",
            remedy="`memoranda hook claude-code --print-config` says how the agent's harness is told to run this.",
        )
    from memoranda.operations.hook_events import LARGEST, read_event

    event = read_event(sys.stdin.buffer.read(LARGEST + 1))
    if _brings_nothing(event):
        return 0
    context = local.make_context(args.agent, event.session, otherwise=AGENT)
    said = _handled(context, event, args).json(event.name)
    if event.name == "SessionStart":
        _pass_on(context)
    if said:
        frame.document(said)
    return 0


def _brings_nothing(event: Event) -> bool:
    """Whether a tool was used that brings nothing in from outside, whomever one trusts: most of the events."""
    if not event.is_tool or event.too_large:
        return False
    from memoranda.trust.tools import Trusted, brought

    return brought(event.tool, event.arguments, Trusted()) is None


def _handled(context: Context, event: Event, args: argparse.Namespace) -> Answer:
    from memoranda.operations.hooks import Harness, handle

    project = os.environ.get("CLAUDE_PROJECT_DIR", "")
    real = project.startswith("/") and not os.environ.get("CLAUDECODE")
    folder = os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude"
    # Not the folder that the event names: that follows the agent, who may be in somebody else's repository by now.
    start = Path(project) if project.startswith("/") else Path.cwd()
    choice = local.choose(args.home, start)
    mine = () if choice.personal is None else tuple({str(start), os.path.realpath(start)})
    harness = Harness(real, Path(folder).expanduser() / "projects", args.budget, mine)
    with local.open_space(context, choice) as space:
        return handle(context, space, event, harness)


def _pass_on(context: Context) -> None:
    """Tells the agent's shell whose session it is in, so that `memoranda` there is not another, clean agent's."""
    told = os.environ.get("CLAUDE_ENV_FILE")
    if told:
        with Path(told).open("a", encoding="utf-8") as file:
            file.write(f"export MEMORANDA_SESSION={context.session}\nexport MEMORANDA_AGENT={context.agent}\n")


def config(args: argparse.Namespace) -> dict[str, object]:
    """What goes into Claude Code's settings.json."""
    import shlex
    import shutil

    program = shutil.which("memoranda") or ""
    words = [os.path.abspath(program)] if program else [sys.executable, "-P", "-m", "memoranda"]  # noqa: PTH100
    words += ["hook", AGENT]
    if args.home:
        words += ["--home", os.path.abspath(os.path.expanduser(args.home))]  # noqa: PTH100, PTH111 - links keep names
    for option, value in (("--agent", args.agent), ("--budget", None if args.budget == 2000 else str(args.budget))):
        if value:
            words += [option, value]
    command = shlex.join(words)
    return {
        "hooks": {
            name: [
                ({"matcher": "*"} if name.startswith("PostToolUse") else {})
                | {"hooks": [{"type": "command", "command": command, "timeout": seconds}]}
            ]
            for name, seconds in _EVENTS.items()
        }
    }


COMMANDS = {
    "hook claude-code": Command(
        "Takes one event of Claude Code's hooks as JSON on standard input. Loads the automatic context when a session "
        "starts, writes the turns to the journal, and taints the session when a tool brought in content from outside. "
        "Never holds the agent up: what goes wrong is told on standard error, with exit code 1.",
        _options,
        _hook,
        "memoranda hook claude-code --print-config --home ~/notes",
    ),
}
