"""The real server of Mem0, started by the launcher: who is let in, what is closed, and what is renewed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import ConfigRefused
from memoranda.manager.installing import install, remove, rotate
from memoranda.manager.kinds import ADMINISTRATOR, SECRETS, Engine, Models, Postgres
from memoranda.manager.place import Place
from memoranda.manager.running import down, running, up
from memoranda.manager.sealing import FileVault
from memoranda.values import replace
from tests.calling import call
from tests.masking import hide
from tests.openai_standin import Proxy, serving_openai, serving_proxy
from tests.postgres import Server
from tests.real.conftest import free_port
from tests.real.mem0 import MEM0, SERVER

pytestmark = pytest.mark.xdist_group("mem0")


class Launched:
    """One that was started by the launcher."""

    def __init__(self, place: Place, engine: Engine, proxy: Proxy) -> None:
        self.place, self.engine, self.proxy = place, engine, proxy

    @property
    def secrets(self) -> dict[str, str]:
        return hide(self.place.vault.get("mem0"))

    @property
    def admin(self) -> dict[str, str]:
        return {"x_api_key": self.secrets["admin_api_key"]}

    def status(self, method: str, path: str, body: Any = None, **headers: str) -> int:
        return call(self.engine.base_url, method, path, body, **headers)[0]

    def login(self, password: str) -> tuple[int, Any]:
        told = {"email": ADMINISTRATOR, "password": password}
        return call(self.engine.base_url, "POST", "/auth/login", told)


@pytest.fixture(scope="module")
def mem0() -> Iterator[Launched]:
    told, source = os.environ.get(MEM0), os.environ.get(SERVER)
    if not told or not source:
        pytest.skip(f"NOT CHECKED on the real server of Mem0: {SERVER} and {MEM0} name none; it is on no registry")
    folder = Path(tempfile.mkdtemp(prefix="m0-"))
    folder.chmod(0o755)
    (folder / "m").mkdir(mode=0o700)
    port = free_port()
    database = Server(folder, f"listen_addresses = '127.0.0.1'\nport = {port}")
    database.start()
    try:
        with serving_openai() as models, serving_proxy() as proxy:
            place = Place(folder / "m", FileVault(folder / "m/sealed", folder / "m/seal.key"), str, {}, os.urandom)
            new = Engine(
                "mem0", "mem0", free_port(), None, "test", "mem0", Models(models.url), "", "", source,
                Postgres("127.0.0.1", port, "postgres"), proxy.environment,
            )  # fmt: skip
            engine = install(place, new, environment=Path(told))
            try:
                up(place, "mem0")
                yield Launched(place, engine, proxy)
            finally:
                down(place, "mem0")
    finally:
        database.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.requirement("S-001", "S-002", "S-003", "S-004", "S-005", "S-007", "S-016")
def test_who_is_let_in_and_who_is_not(mem0: Launched) -> None:
    path = "/memories?user_id=x"
    assert mem0.status("GET", path) == mem0.status("GET", path, x_api_key="a-wrong-key-0000") == 401
    assert mem0.status("GET", path, authorization="Bearer nonsense") == 401
    assert mem0.status("GET", path, **mem0.admin) == 200
    body = {"name": "m", "email": "m@users.example", "password": "long-enough-1"}
    assert (
        mem0.status("POST", "/auth/register", body) == mem0.status("POST", "/auth/register", body, **mem0.admin) == 403
    )
    _, made = call(mem0.engine.base_url, "POST", "/api-keys", {"label": "k"}, **mem0.admin)
    assert hide(made["key"]).startswith("m0sk_") and mem0.status("GET", path, x_api_key=made["key"]) == 200
    assert mem0.status("DELETE", f"/api-keys/{made['id']}", **mem0.admin) == 200
    assert mem0.status("GET", path, x_api_key=made["key"]) == 401
    session = mem0.login(mem0.secrets["admin_password"])[1]["access_token"]
    assert mem0.status("GET", path, authorization=f"Bearer {session}") == 200


def test_nothing_is_deleted_but_by_its_exact_name(mem0: Launched) -> None:
    body = {"messages": [{"role": "user", "content": "Greta pays Hugo."}], "user_id": "x", "infer": False}
    assert mem0.status("POST", "/memories", body, **mem0.admin) == 200
    for method, path in (
        ("POST", "/reset"), ("POST", "/configure"), ("DELETE", "/memories"), ("DELETE", "/memories?user_id=*"),
        ("DELETE", "/memories?user_id="), ("DELETE", "/entities/user/x"), ("GET", "/entities"), ("GET", "/docs"),
    ):  # fmt: skip
        assert mem0.status(method, path, {} if method == "POST" else None, **mem0.admin) == 403, path
    found = call(mem0.engine.base_url, "GET", "/memories?user_id=x", **mem0.admin)[1]["results"]
    assert [one["memory"] for one in found] == ["Greta pays Hugo."]


@pytest.mark.requirement("S-031", "S-032", "S-033", "S-040", "S-041", "S-046")
def test_its_secrets_are_sealed_and_told_nowhere(mem0: Launched) -> None:
    values = [value.encode() for value in mem0.secrets.values()]
    assert set(mem0.secrets) == set(SECRETS["mem0"])
    pid = running(mem0.place, "mem0")
    told = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
    assert not any(value in told for value in values)
    keys = mem0.place.service_env
    assert keys.read_text().startswith("EAI_CRED_MEMORY_MEM0_API_KEY=") and keys.stat().st_mode & 0o777 == 0o600
    for path in mem0.place.folder.rglob("*"):
        if path.is_file() and path != keys:
            assert not any(value in path.read_bytes() for value in values), path


@pytest.mark.requirement("S-022", "S-023")
def test_it_is_not_started_with_telemetry(mem0: Launched) -> None:
    down(mem0.place, "mem0")
    for refused in (
        replace(mem0.place, environ={"MEM0_TELEMETRY": "true"}),
        replace(mem0.place, environ={"MEM0_TELEMETRY": "on"}),
    ):
        with pytest.raises(ConfigRefused, match="MEM0_TELEMETRY"):
            up(refused, "mem0")
        assert running(mem0.place, "mem0") is None
    up(replace(mem0.place, environ={"MEM0_TELEMETRY": "false"}), "mem0")


@pytest.mark.requirement("S-043", "S-044")
def test_its_secrets_are_renewed_and_it_is_taken_away(mem0: Launched) -> None:
    path, before = "/memories?user_id=x", mem0.secrets
    session = mem0.login(before["admin_password"])[1]["access_token"]
    rotate(mem0.place, "mem0", ["jwt_secret"])
    assert mem0.status("GET", path, authorization=f"Bearer {session}") == 401
    assert mem0.status("GET", path, x_api_key=before["admin_api_key"]) == 200
    rotate(mem0.place, "mem0", ["admin_api_key", "admin_password"])
    assert mem0.status("GET", path, x_api_key=before["admin_api_key"]) == 401
    assert mem0.status("GET", path, **mem0.admin) == 200
    assert mem0.login(before["admin_password"])[0] == 401
    assert mem0.login(mem0.secrets["admin_password"])[0] == 200
    assert mem0.proxy.asked == []
    last = mem0.secrets
    left = remove(mem0.place, "mem0")
    assert "PostgreSQL" in left[0] and not mem0.place.service_env.exists()
    for path_left in mem0.place.folder.rglob("*"):
        if path_left.is_file():
            assert not any(value.encode() in path_left.read_bytes() for value in last.values())
    install(mem0.place, mem0.engine, environment=Path(mem0.engine.python).parent.parent)  # for whoever ends it
