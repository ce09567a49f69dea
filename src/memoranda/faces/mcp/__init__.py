"""The face for agents: MCP over standard input and output. The SDK is imported only when it serves."""

from __future__ import annotations


def serve(home: str | None = None, agent: str | None = None, session: str | None = None) -> int:
    """Serves until the client closes standard input or a signal ends it; returns the exit code.

    `home`, `agent` and `session` are what `memoranda mcp` was given; without an agent it is the client's own name.
    """
    from memoranda.faces.mcp.server import run

    return run(home, agent, session)
