"""Serves until it is told to stop."""

from __future__ import annotations

import json
import logging
import resource
import signal
import socket
import sys
from collections.abc import Iterator

import uvicorn

from memoranda.errors import Unavailable
from memoranda.faces.http import create_app
from memoranda.faces.http.config import Config
from memoranda.faces.http.operator import EXAMPLE, Made, first

_GRACE = 15  # seconds that requests have to end
_FILES = 65_536  # open files, for connections and open Homes; systems give a process 1,024 until it asks for more


def serve(config: Config, *, example: bool, in_json: bool) -> int:
    """Starts, says so, and serves; returns the exit code.

    Raises:
        ConfigRefused: a setting is wrong. Unavailable: the address cannot be listened at.
    """
    logging.basicConfig(
        level=config.log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("alembic").setLevel(logging.WARNING)  # its plugins and migrations are nobody's news
    _ask_for_files()
    listening = _listen(config)
    try:
        app = create_app(config)
        desk = app.state.desk
        made = Made("", "", "") if config.strict else first(desk, example=example)
        scheme = "https" if config.tls_certificate else "http"
        host, port = listening.getsockname()[:2]
        base = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        lonely = config.strict and not desk.registry.users(None) and not desk.registry.tenants()
        told = {"listening": base, "environment": config.environment, "tokens": made.json()}
        text = json.dumps(told) if in_json else "\n".join(_lines(config, base, made, example=example, lonely=lonely))
        stream = sys.stderr if config.audit_sink == "stdout" else sys.stdout
        stream.write(f"{text}\n")
        stream.flush()
        server = uvicorn.Server(
            uvicorn.Config(
                app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=_GRACE,
                ssl_certfile=config.tls_certificate, ssl_keyfile=config.tls_key, proxy_headers=False,
            )
        )  # fmt: skip
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the server takes it, ends in order, and raises it again
        server.run(sockets=[listening])
    finally:
        listening.close()
    return 0


def _ask_for_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if resource.RLIM_INFINITY != soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _listen(config: Config) -> socket.socket:
    host, port = config.address
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise Unavailable(
            f"It cannot listen at {config.listen}.", why=f"{error.strerror}.", remedy="Choose another with --listen."
        ) from None


def _lines(config: Config, base: str, made: Made, *, example: bool, lonely: bool) -> Iterator[str]:
    tenant, user, agent = EXAMPLE
    yield f"Memoranda serves {base} ({config.environment}); everything lies in {config.data}."
    if lonely:
        yield "Nobody can use it yet: `memoranda admin user add` and `memoranda admin token add` make the first."
    if made.administrator:
        yield ""
        yield "The first administrator's token, shown this once:"
        yield f"  {made.administrator}"
    if made.agent:
        yield ""
        yield f"The tenant `{tenant}`, with its administrator {user} and the agent {agent}; tokens, shown this once:"
        yield f"  {user:6}{made.user}"
        yield f"  {agent:6}{made.agent}"
        at = f"{base}/v1/memory/agents/{agent}"
        yield ""
        yield "Try it:"
        yield f"  export TOKEN={made.agent}"
        yield (
            f"  curl -s {at}/memories -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' "
            '-d \'{"content": "Acme is billed on the first of the month."}\''
        )
        yield (
            f"  curl -s {at}/recall -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' "
            '-d \'{"query": "When is Acme billed?"}\''
        )
        yield f"  curl -s {base}/openapi.json"
    elif example:
        yield f"The tenant `{tenant}` is there; its tokens were shown when it was made. A new one for the agent:"
        yield f"  memoranda admin token add --tenant {tenant} --user {user} --agent {agent} --data {config.data}"
