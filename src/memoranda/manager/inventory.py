"""What the manager renders for the service: its instances, and the environment file with the keys to them."""

from __future__ import annotations

import json
import re

from memoranda.engines.contract import InstanceDeclaration
from memoranda.home.durable import write_durably
from memoranda.manager.kinds import API_KEY, CREDENTIAL, Engine
from memoranda.manager.place import Place, engines, write_secret


def render(place: Place) -> None:
    """Writes `inventory.toml` and `service.env` anew, for all that is installed. NotFound: secrets are missing."""
    there = engines(place)
    place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = "# Written by `memoranda engine`; read by the service (`engines.instances`), which sees when it changes.\n"
    write_durably(place.inventory, (text + "".join(_entry(place, one) for one in there)).encode())
    keys = {
        variable(one): place.vault.get(one.id)[API_KEY[one.kind]]
        for one in there
        if place.vault.reference(one.id, API_KEY[one.kind]) is None
    }
    if keys:
        write_secret(place.service_env, keys)
    else:
        place.service_env.unlink(missing_ok=True)


def declaration(place: Place, engine: Engine) -> InstanceDeclaration:
    """The instance as the service is told of it."""
    reference = place.vault.reference(engine.id, API_KEY[engine.kind])
    return InstanceDeclaration(
        id=engine.id, provider=engine.kind, base_url=engine.base_url, tenant_id=engine.tenant,
        credential_ref=reference or f"env://{variable(engine)}", access_control=engine.kind == "cognee",
        manager_cluster=engine.cluster, manager_service=engine.service,
    )  # fmt: skip


def variable(engine: Engine) -> str:
    """The variable that the service finds its key in; the documents name that of an engine called by its kind."""
    name = CREDENTIAL[engine.kind]
    return name if engine.id == engine.kind else f"{name}_{re.sub(r'[^A-Z0-9]', '_', engine.id.upper())}"


def _entry(place: Place, engine: Engine) -> str:
    told = declaration(place, engine).model_dump(exclude_none=True)
    lines = [f"{name} = {json.dumps(value)}" for name, value in told.items()]  # these values are the same in TOML
    return "\n".join(["\n[[instances]]", *lines, ""])
