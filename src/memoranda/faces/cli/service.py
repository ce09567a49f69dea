"""`serve`, `config check` and `audit verify`: the service, at its machine."""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.errors import ConfigRefused
from memoranda.faces.cli.frame import Command, Frame, Parser, counted

if TYPE_CHECKING:
    from memoranda.faces.http.config import Config
    from memoranda.service.desk import Desk

_NEEDED = ("alembic", "fastapi", "prometheus_client", "regorus", "sqlalchemy", "uvicorn")


def where_options(parser: Parser) -> None:
    """`--config` and `--data`."""
    parser.add_argument("--config", metavar="FILE", help="the settings (else MEMORANDA_CONFIG)")
    parser.add_argument("--data", metavar="DIR", help="the folder of the service (else the setting `data`)")


def without_service() -> ConfigRefused | None:
    """The refusal of whatever needs the service, where only the notes of one person are installed."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if not missing:
        return None
    return ConfigRefused(
        f"The service is not installed: {', '.join(missing)} cannot be imported.",
        remedy="Install it with `pip install 'memoranda[service]'`.",
    )


def configured(args: argparse.Namespace) -> Config:
    """The settings that the command is to use. ConfigRefused; SecretRefused for a secret in what is printed."""
    if (refused := without_service()) is not None:
        raise refused
    from memoranda.faces.http.config import load
    from memoranda.operations.admission import refuse_secrets

    told = {"MEMORANDA_DATA": args.data, "MEMORANDA_LISTEN": getattr(args, "listen", None)}
    file = args.config or os.environ.get("MEMORANDA_CONFIG")
    environ = {**os.environ, **{name: value for name, value in told.items() if value}}
    config = load(Path(file) if file else None, environ)
    if config.database_url.startswith("postgresql") and importlib.util.find_spec("psycopg") is None:
        raise ConfigRefused(
            "The setting `database.url` needs psycopg, which cannot be imported.",
            remedy="Install it with `pip install 'memoranda[service]'`.",
        )
    refuse_secrets((("data folder", str(config.data)), ("address", config.listen)))  # both are told in the open
    return config


@contextmanager
def opened(args: argparse.Namespace) -> Iterator[Desk]:
    """The service's own state; a running service sees what changes at its next request."""
    config = configured(args)
    from memoranda.faces.http.assembling import assemble

    desk = assemble(config, serving=False)
    try:
        yield desk
    finally:
        desk.close()


def _serve_options(parser: Parser) -> None:
    where_options(parser)
    parser.add_argument("--listen", metavar="HOST:PORT", help="where to listen (default 127.0.0.1:8080)")
    parser.add_argument("--example", action="store_true", help="make an example tenant; in development only")


def _serve(frame: Frame, args: argparse.Namespace) -> int:
    config = configured(args)
    _remark_strangers(frame)
    if args.example and config.strict:
        raise ConfigRefused(
            f"The example is refused in {config.environment}.",
            why="Its tokens stand on a screen and in its history.",
            remedy="Set EAI_ENVIRONMENT=development to try it.",
        )
    from memoranda.faces.http.starting import serve

    return serve(config, example=args.example, in_json=frame.json)


def _check_options(parser: Parser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="the settings, as TOML (else MEMORANDA_CONFIG, or none)"
    )


def _remark_strangers(frame: Frame) -> None:
    """Names the variables that somebody may take for settings, and that nothing reads."""
    from memoranda.faces.http.config import strangers

    for name in strangers(os.environ):
        frame.remark(f"The variable {name} is no setting, and is left out; docs/service.md lists all settings.")


def _check(frame: Frame, args: argparse.Namespace) -> int:
    args.config, args.data = args.file, None
    config = configured(args)
    _remark_strangers(frame)
    frame.answer(
        {"environment": config.environment, "listen": config.listen, "data": str(config.data)},
        [f"The settings are right for {config.environment}: it would listen at {config.listen}."],
    )
    return 0


def _verify(frame: Frame, args: argparse.Namespace) -> int:
    from memoranda.faces.http.operator import operator

    with opened(args) as desk:
        from memoranda.service.audits import verify

        verdict = verify(desk, operator(None))

    def lines() -> Iterator[str]:
        for finding in verdict.findings:
            yield f"chain {finding.chain}, line {finding.seq}: {finding.what}"
        held = "as they were written" if verdict.whole else f"{counted(len(verdict.findings), 'finding')}"
        yield f"{counted(verdict.lines, 'line')} in {counted(verdict.chains, 'chain')}: {held}."

    frame.answer(verdict.json(), lines())
    return 0 if verdict.whole else 1


def _upgrade_options(parser: Parser) -> None:
    where_options(parser)
    parser.add_argument(
        "--owner", metavar="URL", help="PostgreSQL as whoever owns the tables (else MEMORANDA_DATABASE_OWNER)"
    )
    parser.add_argument(
        "--alone", action="store_true", help="no node of an older version runs any more: what it would misread may come"
    )


def _upgrade(frame: Frame, args: argparse.Namespace) -> int:
    config = configured(args)
    from memoranda.faces.http.assembling import upgrade

    version = upgrade(config, args.owner or os.environ.get("MEMORANDA_DATABASE_OWNER") or "", alone=args.alone)
    frame.answer({"version": version}, [f"The tables of the state are of version {version}."])
    return 0


def _reseal(frame: Frame, args: argparse.Namespace) -> int:
    with opened(args) as desk:
        from memoranda.service.upkeep import reseal

        changed = reseal(desk)
    frame.answer({"resealed": changed}, [f"{counted(changed, 'key')} sealed again; the rest was already."])
    return 0


COMMANDS = {
    "serve": Command(
        "Serves the governed memory of many tenants over HTTP, until it is told to stop (an interrupt, or SIGTERM). "
        "docs/service.md lists its settings and its routes.",
        _serve_options,
        _serve,
        "EAI_ENVIRONMENT=development memoranda serve --example --data /tmp/memoranda",
    ),
    "config check": Command(
        "Says whether the service would start with these settings and the variables of this environment.",
        _check_options,
        _check,
        "memoranda config check /etc/memoranda.toml",
    ),
    "db upgrade": Command(
        "Brings the tables of the service's state to this version, and on PostgreSQL gives the service's role what it "
        "needs there. On SQLite the service does it by itself when it starts.",
        _upgrade_options,
        _upgrade,
        "memoranda db upgrade --config /etc/memoranda.toml",
    ),
    "db reseal": Command(
        "Seals the keys of Homes in PostgreSQL again, after `homes.secret` was changed and the former one became "
        "`homes.other_secret` on every node (docs/deploy.md). Safe to repeat.",
        where_options,
        _reseal,
        "memoranda db reseal --config /etc/memoranda.toml",
    ),
    "audit verify": Command(
        "Holds every line of the audit against its chain: a changed, removed or reordered line is found. Exit code 1 "
        "when one is.",
        where_options,
        _verify,
        "memoranda audit verify --data /var/lib/memoranda",
    ),
}
