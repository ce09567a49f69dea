"""`mcp`: the server for agents."""

from __future__ import annotations

import argparse

from memoranda.faces.cli.frame import Command, Frame, Parser, who_options


def _options(parser: Parser) -> None:
    who_options(parser, agent="MEMORANDA_AGENT, then the client's own name")


def _mcp(_frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.faces.mcp import serve

    return serve(args.home, args.agent, args.session)


COMMANDS = {
    "mcp": Command(
        "Serves the tools nas_remember, nas_recall, nas_read, nas_journal, nas_forget, nas_session_taint and "
        "nas_review_queue over MCP on standard input and output, until the client closes it. It is started by an "
        "agent's host; docs/mcp.md shows how hosts are told.",
        _options,
        _mcp,
        "claude mcp add memoranda -- memoranda mcp --home ~/notes",
    ),
}
