"""Where the manager keeps what it has installed: one folder, readable by its owner alone.

`engines/<id>/` holds one engine (`engine.json`, `data/`, `log`, `lock`), `environments/` the interpreters that were
made for them, `sealed/` the secrets in sealed files, `inventory.toml` the instances as the service reads them, and
`service.env` the keys that the service enters with, where they do not lie in OpenBao.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from memoranda.errors import InvalidInput, NotFound, Unavailable
from memoranda.governance.names import checked
from memoranda.home.durable import write_durably
from memoranda.home.keys import write_privately
from memoranda.manager.kinds import Engine, Models, Postgres
from memoranda.manager.sealing import Vault
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """One manager: its folder, where secrets are sealed, how references are resolved, its variables and chance."""

    folder: Path
    vault: Vault
    resolve: Callable[[str], str]
    environ: Mapping[str, str]
    random: Callable[[int], bytes]

    def of(self, engine: str) -> Path:
        """The folder of one engine. InvalidInput for what is no name."""
        return self.folder / "engines" / checked("engine", engine)

    @property
    def inventory(self) -> Path:
        return self.folder / "inventory.toml"

    @property
    def service_env(self) -> Path:
        return self.folder / "service.env"


def engines(place: Place) -> list[Engine]:
    """All that are installed, by id."""
    found = sorted((place.folder / "engines").glob("*/engine.json"))
    return [_read(path) for path in found]


def get(place: Place, engine: str) -> Engine:
    """NotFound when it is not installed."""
    path = place.of(engine) / "engine.json"
    if not path.exists():
        raise NotFound(f"There is no engine {engine}.", remedy="`memoranda engine status` lists them.")
    return _read(path)


def keep(place: Place, engine: Engine) -> None:
    """Keeps the description of an engine; it holds no secret."""
    folder = place.of(engine.id)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    told = {**asdict(engine), "more": dict(engine.more)}
    write_durably(folder / "engine.json", json.dumps(told, indent=1).encode())


def write_secret(path: Path, lines: Mapping[str, str]) -> None:
    """An environment file that only its owner can read; InvalidInput for a value that is more than one line."""
    for name, value in lines.items():
        if "\n" in value or "\r" in value or "\0" in value:
            raise InvalidInput(f"The variable {name} has more than one line.")
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    write_privately(fresh, "".join(f"{name}={value}\n" for name, value in lines.items()).encode())
    fresh.replace(path)


def _read(path: Path) -> Engine:
    try:
        told: dict[str, Any] = json.loads(path.read_bytes())
        postgres = told.pop("postgres")
        return Engine(
            **{**told, "models": Models(**told["models"]), "postgres": Postgres(**postgres) if postgres else None}
        )
    except (ValueError, TypeError, KeyError) as error:
        raise Unavailable(
            f"{path} cannot be read.", why=f"{type(error).__name__}.", remedy="Install the engine again."
        ) from None
