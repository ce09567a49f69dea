"""Installing, starting, renewing and taking away, with a stand-in for Cognee in a process of its own."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import ConfigRefused, Conflict, EngineUnavailable, InvalidInput, NotFound
from memoranda.manager import installing
from memoranda.manager.installing import install, remove, rotate
from memoranda.manager.kinds import ADMINISTRATOR, SECRETS
from memoranda.manager.place import Place, get
from memoranda.manager.running import down, running, status, up
from tests.calling import call

from .conftest import cognee


@pytest.fixture
def running_engine(place: Place, environment: Path) -> str:
    """The address of an installed and started engine."""
    made = install(place, cognee(), environment=environment)
    up(place, "cognee", timeout=60)
    return made.base_url


def opens(base: str, **credential: str) -> bool:
    return call(base, "GET", "/api/v1/datasets", **credential)[0] == 200


def service(place: Place) -> dict[str, str]:
    return {"x_api_key": place.vault.get("cognee")["service_api_key"]}


def registered(place: Place, base: str) -> dict[str, str]:
    told = {"email": "ana@users.example", "password": "long-enough-1"}
    assert call(base, "POST", "/api/v1/auth/register", told, **service(place))[0] == 201
    form = {"username": told["email"], "password": told["password"]}
    return {"authorization": f"Bearer {call(base, 'POST', '/api/v1/auth/login', form=form)[1]['access_token']}"}


@pytest.mark.requirement("S-034", "S-035", "S-036", "S-037", "S-038", "S-039")
def test_all_secrets_are_made_and_sealed_at_installation(place: Place, environment: Path) -> None:
    install(place, cognee(), environment=environment)
    secrets = place.vault.get("cognee")
    assert set(secrets) == set(SECRETS["cognee"]) and len(set(secrets.values())) == 6
    assert all(len(value) >= 40 for value in secrets.values())
    assert (place.folder / "seal.key").stat().st_mode & 0o777 == 0o600
    for path in place.folder.rglob("*"):
        if path.is_file() and path != place.service_env:
            assert not any(value.encode() in path.read_bytes() for value in secrets.values()), path
    assert running(place, "cognee") is None  # nothing was started


def test_what_is_installed_again_keeps_its_secrets(place: Place, environment: Path) -> None:
    install(place, cognee(), environment=environment)
    before = place.vault.get("cognee")
    install(place, cognee(tenant="acme"), environment=environment)
    assert place.vault.get("cognee") == before and get(place, "cognee").tenant == "acme"


@pytest.mark.requirement("S-047")
def test_the_inventory_says_what_the_service_needs(place: Place, environment: Path) -> None:
    install(place, cognee(), environment=environment)
    install(place, cognee("cognee-acme", tenant="acme"), environment=environment)
    shared, dedicated = tomllib.loads(place.inventory.read_text())["instances"]
    assert shared["credential_ref"] == "env://EAI_CRED_MEMORY_COGNEE_API_KEY" and "tenant_id" not in shared
    assert dedicated["tenant_id"] == "acme" and dedicated["manager_service"] == "cognee-acme"
    assert dedicated["manager_cluster"] == "local" and dedicated["access_control"] is True
    keys = dict(line.split("=", 1) for line in place.service_env.read_text().splitlines())
    assert keys[shared["credential_ref"][6:]] == place.vault.get("cognee")["service_api_key"]
    assert keys[dedicated["credential_ref"][6:]] == place.vault.get("cognee-acme")["service_api_key"]
    assert place.service_env.stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("S-040", "S-041")
def test_no_secret_is_in_an_argument_a_variable_or_the_log(place: Place, environment: Path) -> None:
    install(place, cognee(STANDIN_SPEAKS="1"), environment=environment)
    up(place, "cognee", timeout=60)
    pid = running(place, "cognee")
    values = [value.encode() for value in (*place.vault.get("cognee").values(), "model-key-0123")]
    told = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
    log = (place.of("cognee") / "log").read_bytes()
    assert b"my salt is [secret]" in log  # it tried
    for value in values:
        assert value not in told and value not in log
    assert not list(place.folder.rglob("start.env"))


def test_a_second_start_leaves_the_first_alone(place: Place, running_engine: str) -> None:
    pid = running(place, "cognee")
    assert up(place, "cognee").pid == pid and status(place)[0].state == "running"
    with pytest.raises(Conflict, match="runs"):
        install(place, cognee())
    assert down(place, "cognee").state == "stopped" and running(place, "cognee") is None
    assert down(place, "cognee").state == "stopped"


@pytest.mark.requirement("S-043")
def test_the_services_key_is_renewed(place: Place, running_engine: str) -> None:
    before = service(place)
    assert opens(running_engine, **before)
    rotate(place, "cognee", ["service_api_key"])
    assert not opens(running_engine, **before) and opens(running_engine, **service(place))
    assert service(place)["x_api_key"] in place.service_env.read_text()
    assert before["x_api_key"] not in place.service_env.read_text()


@pytest.mark.requirement("S-044")
def test_a_changed_jwt_secret_ends_every_session(place: Place, running_engine: str) -> None:
    who = registered(place, running_engine)
    assert opens(running_engine, **who)
    rotate(place, "cognee", ["service_api_key"])
    assert opens(running_engine, **who)
    rotate(place, "cognee", ["jwt_secret"])
    assert not opens(running_engine, **who) and opens(running_engine, **service(place))


@pytest.mark.requirement("S-045")
def test_a_changed_salt_voids_every_key_but_the_services(place: Place, running_engine: str) -> None:
    who = registered(place, running_engine)
    key = call(running_engine, "POST", "/api/v1/auth/api-keys", {"name": "k"}, **who)[1]["key"]
    assert opens(running_engine, x_api_key=key)
    rotate(place, "cognee", ["api_key_salt"])
    assert not opens(running_engine, x_api_key=key)
    assert opens(running_engine, **service(place)) and opens(running_engine, **who)


def test_a_changed_password_of_the_administrator_is_in_force(place: Place, running_engine: str) -> None:
    before = place.vault.get("cognee")["admin_password"]
    rotate(place, "cognee", ["admin_password"])
    for password, wanted in ((before, 400), (place.vault.get("cognee")["admin_password"], 200)):
        form = {"username": ADMINISTRATOR, "password": password}
        assert call(running_engine, "POST", "/api/v1/auth/login", form=form)[0] == wanted
    assert opens(running_engine, **service(place))


def test_only_secrets_that_it_has_are_renewed(place: Place, environment: Path) -> None:
    install(place, cognee(), environment=environment)
    for names in (["admin_api_key"], [], ["jwt_secret", "nonsense"]):
        with pytest.raises(InvalidInput, match="no such secret"):
            rotate(place, "cognee", names)


def test_what_is_taken_away_leaves_no_secret_behind(place: Place, running_engine: str) -> None:
    secrets = place.vault.get("cognee")
    registered(place, running_engine)
    remove(place, "cognee")
    with pytest.raises(NotFound):
        place.vault.get("cognee")
    with pytest.raises(OSError, match="refused"):
        call(running_engine, "GET", "/")
    assert not place.service_env.exists() and "[[instances]]" not in place.inventory.read_text()
    left = [path for path in place.folder.rglob("*") if path.is_file()]
    assert {path.name for path in left} == {"seal.key", "inventory.toml"}
    for path in left:
        assert not any(value.encode() in path.read_bytes() for value in secrets.values())


def test_an_upgrade_keeps_the_data_and_leaves_no_secret_and_no_former_environment_behind(
    place: Place, environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = place.folder / "environments/cognee-1.6.4"
    shutil.copytree(environment, former, symlinks=True)
    (dist,) = former.rglob("cognee-1.6.5.dist-info")
    (dist / "METADATA").write_text((dist / "METADATA").read_text().replace("1.6.5", "1.6.4"))
    dist.rename(dist.with_name("cognee-1.6.4.dist-info"))
    monkeypatch.setattr(installing, "COGNEE_VERSION", "1.6.4")
    made = install(place, cognee(), environment=former)
    assert (made.version, Path(made.python).parent.parent) == ("1.6.4", former)
    up(place, "cognee", timeout=60)
    who, secrets = registered(place, made.base_url), place.vault.get("cognee")
    down(place, "cognee")

    monkeypatch.setattr(installing, "COGNEE_VERSION", "1.6.5")
    assert install(place, made, environment=environment).version == "1.6.5"
    assert not former.exists() and place.vault.get("cognee") == secrets
    up(place, "cognee", timeout=60)
    assert opens(made.base_url, **who) and opens(made.base_url, **service(place))
    for path in place.folder.rglob("*"):
        if path.is_file() and path != place.service_env:
            assert not any(value.encode() in path.read_bytes() for value in secrets.values()), path
    remove(place, "cognee")
    assert {path.name for path in place.folder.rglob("*") if path.is_file()} == {"seal.key", "inventory.toml"}


@pytest.mark.parametrize("name", ["ALLOW_HTTP_REQUESTS", "REQUIRE_AUTHENTICATION"])
def test_what_the_engine_reads_of_its_own_accord_cannot_open_it(place: Place, environment: Path, name: str) -> None:
    folder = environment / "lib"
    path = next(folder.glob("python3*")) / "site-packages/cognee/api/client.py"
    before = path.read_text()
    path.write_text(before.replace("import os\n", f"import os\nos.environ['{name}'] = 'maybe'\n", 1))
    try:
        install(place, cognee(), environment=environment)
        with pytest.raises(ConfigRefused, match="has ended"):
            up(place, "cognee", timeout=60)
        assert name in (place.of("cognee") / "log").read_text()
        assert running(place, "cognee") is None
    finally:
        path.write_text(before)


def test_upstreams_account_keeps_it_from_starting(place: Place, running_engine: str) -> None:
    down(place, "cognee")
    store = place.of("cognee") / "data/system/standin.json"
    told = json.loads(store.read_text())
    told["users"]["default_user@example.com"] = {"id": "x", "email": "default_user@example.com", "hashed_password": ""}
    store.write_text(json.dumps(told))
    with pytest.raises(EngineUnavailable, match="has ended"):
        up(place, "cognee", timeout=60)
    assert "default_user@example.com" in (place.of("cognee") / "log").read_text()


def test_an_engine_that_ends_says_why_and_leaves_nothing_open(place: Place, environment: Path) -> None:
    made = install(place, cognee(), environment=environment)
    (place.of("cognee") / "engine.json").write_text(
        (place.of("cognee") / "engine.json").read_text().replace(made.python, "/bin/false")
    )
    with pytest.raises(EngineUnavailable, match="has ended before it answered"):
        up(place, "cognee", timeout=60)
    assert not list(place.folder.rglob("start.env")) and running(place, "cognee") is None


@pytest.mark.requirement("S-023")
@pytest.mark.parametrize("value", ["true", "1", "no", ""])
def test_mem0_is_not_started_with_telemetry(place: Place, value: str) -> None:
    from memoranda.manager.guard import Refused, check_switches

    told = {"AUTH_DISABLED": "false", "MEM0_TELEMETRY": "false", "ADMIN_API_KEY": "k", "JWT_SECRET": "s"}
    check_switches("mem0", told)
    for name in ("MEM0_TELEMETRY", "AUTH_DISABLED"):
        with pytest.raises(Refused, match=name):
            check_switches("mem0", {**told, name: value})


def test_a_folder_that_is_not_mem0s_server_is_refused(place: Place, tmp_path: Path) -> None:
    from memoranda.manager.kinds import Engine, Models, Postgres

    (tmp_path / "main.py").write_text("app = None\n")
    new = Engine("mem0", "mem0", 0, None, "local", "mem0", Models("http://127.0.0.1:9/v1"), "", "", str(tmp_path),
                 Postgres("127.0.0.1", 5432, "postgres"))  # fmt: skip
    with pytest.raises(ConfigRefused, match="not Mem0's server"):
        install(place, new)
    assert not (place.folder / "sealed").exists()


def test_the_private_file_must_be_private(tmp_path: Path) -> None:
    from memoranda.manager.guard import Refused, private_environment

    path = tmp_path / "start.env"
    path.write_text("A=b=c\n")
    path.chmod(0o640)
    with pytest.raises(Refused, match="read by others"):
        private_environment(path)
    path.chmod(0o600)
    assert private_environment(path) == {"A": "b=c"} and not path.exists()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        private_environment(path)


@pytest.mark.requirement("S-008", "S-009", "S-024", "S-025", "S-026", "S-027", "S-028", "S-029", "S-018", "S-019")
def test_cognee_is_started_with_every_switch_or_not_at_all(tmp_path: Path) -> None:
    from memoranda.manager.guard import SWITCHES, Refused, check_switches
    from memoranda.manager.kinds import environment as told

    given = told(cognee(), tmp_path, dict.fromkeys(SECRETS["cognee"], "a-secret-value"), "", "")
    check_switches("cognee", given)
    assert given["ALLOW_HTTP_REQUESTS"] == given["ALLOW_CYPHER_QUERY"] == given["RUNTIME__DLTHUB_TELEMETRY"] == "false"
    named = ("TELEMETRY_DISABLED", "HF_HUB_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "TRANSFORMERS_OFFLINE", "DO_NOT_TRACK")
    assert all(given[name] == "1" for name in named)
    for name, wanted in SWITCHES["cognee"].items():
        for value in ("", *(() if wanted == "*" else ("0", "maybe"))):
            with pytest.raises(Refused, match=name):
                check_switches("cognee", {**given, name: value})


@pytest.mark.requirement("S-006")
def test_the_first_administrator_is_made_before_anything_listens() -> None:
    import asyncio
    import json

    from memoranda.manager.guard import Guard

    told: list[str] = []
    users: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            return
        path, body = scope["path"], (await receive())["body"]
        status, answer = 401, {}
        if path == "/auth/setup-status":
            status, answer = 200, {"needsSetup": not users}
        elif path == "/auth/register":
            told.append("registered")
            users.append(json.loads(body)["email"])
            status = 200
        elif path == "/auth/login":
            status = 200 if users else 401
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    async def receive() -> Any:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        told.append(message["type"])

    own = {"ADMIN_EMAIL": ADMINISTRATOR, "ADMIN_PASSWORD": "a-long-password"}
    asyncio.run(Guard("mem0", app, own)({"type": "lifespan"}, receive, send))
    assert told == ["registered", "lifespan.startup.complete"] and users == [ADMINISTRATOR]
