"""A service is put together as its settings say: a component that is named is asked, and nothing takes its place."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from memoranda.errors import ConfigRefused, InvalidInput
from memoranda.faces.http import create_app
from memoranda.faces.http.assembling import assemble
from memoranda.faces.http.config import load
from memoranda.faces.http.operator import operator
from memoranda.governance.oidc import Oidc
from memoranda.service import admin

from .standing_in import furnish

ULID = "01HVMMBCMGZNT3SED4CT2KA8NJ"


def nobody() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def settings(folder: Path, **more: str) -> dict[str, str]:
    return {"MEMORANDA_DATA": str(folder / "service"), "EAI_ENVIRONMENT": "development", **more}


def test_the_application_needs_no_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with TestClient(create_app()) as client:
        assert client.get("/readyz").json()["status"] == "ok"
        assert client.get("/v1/memory/engines").status_code == 401
    assert (tmp_path / "memoranda/service").is_dir()


@pytest.mark.parametrize(
    ("component", "more"),
    [
        ("decisions", {"MEMORANDA_OPA_URL": ""}),
        (
            "relations",
            {"MEMORANDA_OPENFGA_URL": "", "MEMORANDA_OPENFGA_STORE": ULID, "MEMORANDA_OPENFGA_MODEL": ULID},
        ),
        ("injection", {"MEMORANDA_GATEWAY_URL": ""}),
    ],
)
def test_a_component_that_is_named_and_down_means_no(tmp_path: Path, component: str, more: dict[str, str]) -> None:
    plain = assemble(load(None, settings(tmp_path)))
    tokens: dict[str, Any] = furnish(plain)
    plain.close()
    given = {name: value or nobody() for name, value in more.items()}
    desk = assemble(load(None, settings(tmp_path, **given)))
    app = create_app(load(None, settings(tmp_path, **given)), desk)
    with TestClient(app) as client:
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["components"][component]) == (503, "unavailable")
        assert set(ready.json()["components"].values()) == {"ok", "unavailable"}
        at = "/v1/memory/agents/cleo"
        by = tokens["ana"]  # the agent itself is known without asking the relations
        answers = [client.post(f"{at}/recall", json={"query": "x"}, headers=by)]
        if component != "injection":  # it is asked about what is given back, and nothing is found yet
            answers.append(client.post(f"{at}/memories", json={"content": "Not kept."}, headers=by))
            for answer in answers:
                assert (answer.status_code, answer.json()["code"]) == (503, "memory_component_unavailable")
                assert "127.0.0.1" not in answer.text and answer.headers["retry-after"]
        else:
            assert client.post(f"{at}/memories", json={"content": "A lamp."}, headers=by).status_code == 201
            refused = client.post(f"{at}/recall", json={"query": "lamp"}, headers=by)
            assert (refused.status_code, refused.json()["code"]) == (503, "memory_component_unavailable")
            assert "A lamp." not in refused.text
    desk.close()


def test_identities_of_a_provider_are_taken_beside_tokens(tmp_path: Path) -> None:
    more = {
        "MEMORANDA_OIDC_ISSUER": "https://id.example", "MEMORANDA_OIDC_AUDIENCE": "memoranda",
        "MEMORANDA_OIDC_JWKS_URL": f"{nobody()}/keys",
    }  # fmt: skip
    desk = assemble(load(None, settings(tmp_path, **more)))
    assert [type(one) for one in desk.authenticators] == [Oidc]
    desk.close()


def test_an_openbao_without_its_credentials_does_not_start(tmp_path: Path) -> None:
    more = {
        "MEMORANDA_OPENBAO_URL": nobody(), "MEMORANDA_OPENBAO_ROLE": "env://EAI_CRED_ROLE",
        "MEMORANDA_OPENBAO_SECRET": "env://EAI_CRED_SECRET",
    }  # fmt: skip
    with pytest.raises(ConfigRefused, match=r"openbao\.role"):
        load(None, settings(tmp_path, **more))
    desk = assemble(load(None, settings(tmp_path, **more, EAI_CRED_ROLE="role-1", EAI_CRED_SECRET="secret-1")))
    desk.close()


def test_a_token_of_the_example_starts_nothing_outside_development(tmp_path: Path) -> None:
    desk = assemble(load(None, settings(tmp_path)))
    admin.add_user(desk, operator(None), "admin", ("platform_admin",))
    token_id, _ = admin.issue_token(desk, operator(None), user="admin", name=admin.EXAMPLE_TOKEN)
    desk.close()
    strict = load(None, settings(tmp_path, EAI_ENVIRONMENT="production"))
    with pytest.raises(ConfigRefused, match="example"):
        assemble(strict)
    desk = assemble(strict, serving=False)  # the operator, who is told to revoke it, can
    admin.revoke_token(desk, operator(None), token_id)
    desk.close()
    with pytest.raises(InvalidInput, match="example"):  # or anybody could keep the service from starting again
        admin.issue_token(desk := assemble(strict), operator(None), user="admin", name=admin.EXAMPLE_TOKEN)
    assert admin.issue_token(desk, operator(None), user="admin", name="examples")
    desk.close()
    assemble(strict).close()


def test_a_service_that_is_closed_twice_closes_nothing_of_the_next_one(tmp_path: Path) -> None:
    config = load(None, settings(tmp_path, MEMORANDA_AUDIT_SINK=str(tmp_path / "audit.jsonl")))
    first = assemble(config)
    first.close()
    second = assemble(config)  # with the numbers of files that the first one had
    furnish(second)
    first.close()
    admin.add_user(second, operator("acme"), "eve")
    second.database.ready()
    assert "add_user" in (tmp_path / "audit.jsonl").read_text()
    second.close()
    second.close()
