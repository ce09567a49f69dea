"""The real engines, started by the launchers. `make test-engines` says where they are; without that, nothing is run."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.manager.installing import install
from memoranda.manager.kinds import Engine, Models
from memoranda.manager.place import Place
from memoranda.manager.running import down, up
from memoranda.manager.sealing import FileVault
from tests.calling import call
from tests.masking import hide, pytest_runtest_makereport  # noqa: F401 - no report shows a key
from tests.openai_standin import OpenAI, Proxy, serving_openai, serving_proxy

COGNEE = "MEMORANDA_REAL_COGNEE"  # a virtual environment that has Cognee


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class Cognee:
    """One real Cognee, started by the launcher; `users` keeps the sessions of those who were registered."""

    def __init__(self, place: Place, engine: Engine, models: OpenAI, proxy: Proxy) -> None:
        self.place, self.engine, self.models, self.proxy = place, engine, models, proxy

    @property
    def base(self) -> str:
        return self.engine.base_url

    @property
    def secrets(self) -> dict[str, str]:
        return hide(self.place.vault.get(self.engine.id))

    @property
    def service(self) -> dict[str, str]:
        return {"x_api_key": self.secrets["service_api_key"]}

    def login(self, email: str, password: str) -> dict[str, str]:
        status, told = call(self.base, "POST", "/api/v1/auth/login", form={"username": email, "password": password})
        assert status == 200, (status, told)
        return {"authorization": f"Bearer {told['access_token']}"}

    def user(self, name: str) -> dict[str, str]:
        """A new user's session."""
        body = {"email": f"{name}@users.example", "password": f"pass-{name}-long"}
        status, told = call(self.base, "POST", "/api/v1/auth/register", body, **self.service)
        assert status == 201, (status, told)
        return self.login(body["email"], body["password"])


@pytest.fixture(scope="session")
def cognee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cognee]:
    told = os.environ.get(COGNEE)
    if not told:
        pytest.skip(f"NOT CHECKED against the real Cognee: {COGNEE} names none (`make test-engines` does)")
    folder = tmp_path_factory.mktemp("engines")
    folder.chmod(0o700)
    with serving_openai() as models, serving_proxy() as proxy:
        place = Place(folder, FileVault(folder / "sealed", folder / "seal.key"), str, {}, os.urandom)
        new = Engine(
            "cognee", "cognee", free_port(), None, "test", "cognee", Models(models.url), "", "", more=proxy.environment
        )
        engine = install(place, new, environment=Path(told))
        up(place, "cognee")
        try:
            yield Cognee(place, engine, models, proxy)
        finally:
            down(place, "cognee")
