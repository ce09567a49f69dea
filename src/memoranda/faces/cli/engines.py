"""`engine …`: the engines that this machine runs for the service."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.faces.cli.frame import Command, Frame, Parser, counted, usage_error
from memoranda.faces.cli.service import opened, where_options
from memoranda.faces.local import data_folder

if TYPE_CHECKING:
    from memoranda.manager.place import Place
    from memoranda.manager.running import Status

_SERVER = "MEM0_SERVER_DIR"


def _place(args: argparse.Namespace) -> Place:
    """The manager of this machine: secrets go to the OpenBao of the service's settings, where they name one."""
    from memoranda.faces.cli.service import configured
    from memoranda.faces.http.components import components
    from memoranda.manager.place import Place
    from memoranda.manager.sealing import BaoVault, FileVault

    args.data = None
    config = configured(args)
    parts = components(config)
    folder = Path(args.folder).expanduser().absolute() if args.folder else data_folder() / "engines"
    key_file = Path(args.key_file).expanduser().absolute() if args.key_file else folder / "seal.key"
    vault = FileVault(folder / "sealed", key_file) if parts.openbao is None else BaoVault(parts.openbao)
    return Place(folder, vault, lambda ref: parts.credentials.resolve(ref, None).reveal(), os.environ, os.urandom)


def _where(parser: Parser) -> None:
    parser.add_argument("--folder", metavar="DIR", help="where the engines are (default: in the data folder)")
    parser.add_argument("--key-file", metavar="FILE", help="what opens the sealed secrets (default: in the folder)")
    parser.add_argument("--config", metavar="FILE", help="the service's settings: with OpenBao, secrets lie there")


def _one(parser: Parser) -> None:
    parser.add_argument("engine", metavar="ENGINE", help="which one: mem0, cognee, or the id that it was given")
    _where(parser)


def _install_options(parser: Parser) -> None:
    parser.add_argument("kind", metavar="KIND", choices=("mem0", "cognee"), help="mem0 or cognee")
    parser.add_argument("--id", metavar="ID", help="what it is called (default: its kind)")
    parser.add_argument("--port", metavar="PORT", type=int, help="where it listens on 127.0.0.1 (8701, 8702)")
    parser.add_argument("--tenant", metavar="ID", help="the one tenant that it is for")
    parser.add_argument("--cluster", metavar="NAME", default="local", help="manager_cluster (default: local)")
    parser.add_argument("--models", metavar="URL", help="a server of models that speaks OpenAI's protocol")
    parser.add_argument("--model", metavar="NAME", help="the language model (default: gpt-4o-mini)")
    parser.add_argument("--embedder", metavar="NAME", help="the embedder (default: text-embedding-3-small)")
    parser.add_argument("--dimensions", metavar="N", type=int, help="of the embedder's vectors (default: 1536)")
    parser.add_argument("--models-credential", metavar="REF", help="a reference to the key of that server")
    parser.add_argument("--environment", metavar="DIR", help="a virtual environment that has what it needs")
    parser.add_argument("--python", metavar="FILE", help="the interpreter that a new environment is made with")
    parser.add_argument("--server", metavar="DIR", help=f"the folder of Mem0's server (else {_SERVER})")
    parser.add_argument("--postgres", metavar="USER@HOST:PORT/DB", help="where Mem0 keeps what it has")
    parser.add_argument("--postgres-credential", metavar="REF", help="a reference to its password")
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="a variable of the engine's own"
    )
    _where(parser)


def _install(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.manager.installing import install
    from memoranda.manager.kinds import PORTS, Engine, Models

    if not args.models:
        raise usage_error("An engine needs models.", "Say where they are, with --models.")
    told = {
        "model": args.model, "embedder": args.embedder, "dimensions": args.dimensions,
        "credential": args.models_credential,
    }  # fmt: skip
    models = Models(args.models, **{name: value for name, value in told.items() if value})
    more = dict(_pair(one) for one in args.set)
    new = Engine(
        args.id or args.kind, args.kind, args.port or PORTS[args.kind], args.tenant, args.cluster,
        args.id or args.kind, models, "", "", args.server or os.environ.get(_SERVER, ""), _postgres(args), more,
    )  # fmt: skip
    place = _place(args)
    made = install(place, new, python=args.python or "", environment=_folder(args.environment))
    frame.answer(
        {"id": made.id, "kind": made.kind, "version": made.version, "base_url": made.base_url,
         "inventory": str(place.inventory)},
        [f"{made.id} is installed ({made.kind} {made.version}); `memoranda engine up {made.id}` starts it.",
         f"The service reads {place.inventory} (`engines.instances`)."],
    )  # fmt: skip
    return 0


def _folder(told: str | None) -> Path | None:
    return Path(told).expanduser().absolute() if told else None


def _pair(told: str) -> tuple[str, str]:
    name, equals, value = told.partition("=")
    if not equals or not name.isidentifier():
        raise usage_error("--set needs NAME=VALUE.", "Write it so.")
    if re.search("KEY|SECRET|PASSWORD|TOKEN", name.upper()):
        raise usage_error(f"{name} would be a secret on a command line.", "Name a key by a reference.")
    return name, value


def _postgres(args: argparse.Namespace) -> Any:
    if not args.postgres:
        return None
    from urllib.parse import urlsplit

    from memoranda.manager.kinds import Postgres

    parts = urlsplit(f"//{args.postgres}")
    if not parts.hostname or not parts.username or parts.password:
        raise usage_error(
            "--postgres needs USER@HOST:PORT/DB, without a password.", "Name it by --postgres-credential."
        )
    return Postgres(
        parts.hostname, parts.port or 5432, parts.username, parts.path.strip("/") or "postgres",
        args.postgres_credential or "",
    )  # fmt: skip


def _up(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.manager.running import up

    return _told(frame, [up(_place(args), args.engine, timeout=args.timeout)])


def _up_options(parser: Parser) -> None:
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=300.0, help="how long it may take (300)")
    _one(parser)


def _status_options(parser: Parser) -> None:
    parser.add_argument("engine", metavar="ENGINE", nargs="?", help="which one; without it, all")
    _where(parser)


def _status(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.manager.running import status

    return _told(frame, status(_place(args), args.engine))


def _rotate_options(parser: Parser) -> None:
    _one(parser)
    parser.add_argument("secrets", metavar="SECRET", nargs="+", help="the names of the secrets")


def _rotate(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.manager.installing import rotate

    told, now = rotate(_place(args), args.engine, args.secrets)
    frame.answer(
        {"id": args.engine, "rotated": told, "state": now.state},
        [f"{args.engine}: {', '.join(told)}: new values are in force; it is {now.state}."],
    )
    return 0


def _down_options(parser: Parser) -> None:
    parser.add_argument("--remove", action="store_true", help="take it away: its data, its secrets, its keys")
    _one(parser)


def _down(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.manager.installing import remove
    from memoranda.manager.running import down

    place = _place(args)
    if not args.remove:
        return _told(frame, [down(place, args.engine)])
    left = remove(place, args.engine)
    frame.answer({"id": args.engine, "removed": True, "left": left}, [f"{args.engine} is removed.", *left])
    return 0


def _renew(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.service.upkeep import renew_prefix

    with opened(args) as desk:
        older = renew_prefix(desk)
    frame.answer(
        {"renewed": True, "older": older},
        ["Identifiers in engines bear a new prefix, once the service was started again, on every node.",
         f"What was written before is found under the former one: {counted(older, 'older key')} kept."],
    )  # fmt: skip
    return 0


def _told(frame: Frame, found: list[Status]) -> int:
    rows = [
        {"id": one.id, "kind": one.kind, "state": one.state, "base_url": one.base_url, "version": one.version,
         "tenant": one.tenant, "pid": one.pid}
        for one in found
    ]  # fmt: skip

    def lines() -> Iterator[str]:
        for one in found:
            whose = f"  for {one.tenant}" if one.tenant else ""
            yield f"{one.id}  {one.state}  {one.base_url}  {one.kind} {one.version}{whose}"
        if not found:
            yield "No engine is installed here."

    frame.answer({"engines": rows}, lines())
    return 0


COMMANDS = {
    "engine install": Command(
        "Installs an engine on this machine, or carries it over to what is told now. Its secrets are made here and "
        "sealed; nothing is started.",
        _install_options,
        _install,
        "memoranda engine install cognee --models http://127.0.0.1:11434/v1",
    ),
    "engine up": Command(
        "Starts an engine and waits until it answers. It listens on 127.0.0.1, and only once its administrator exists.",
        _up_options,
        _up,
        "memoranda engine up cognee",
    ),
    "engine status": Command(
        "Shows the engines of this machine, and whether they answer.",
        _status_options,
        _status,
        "memoranda engine status",
    ),
    "engine rotate": Command(
        "Gives secrets of an engine new values, and starts it again if it runs.",
        _rotate_options,
        _rotate,
        "memoranda engine rotate cognee service_api_key",
    ),
    "engine renew": Command(
        "Gives the prefix of all identifiers in engines a new key. What was written before stays found. Start the "
        "service again afterwards, on every node.",
        where_options,
        _renew,
        "memoranda engine renew --config /etc/memoranda.toml",
    ),
    "engine down": Command(
        "Stops an engine; with --remove it is taken away as well, with everything of it that lies here.",
        _down_options,
        _down,
        "memoranda engine down cognee",
    ),
}
