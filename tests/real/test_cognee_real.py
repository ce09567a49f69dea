"""The real Cognee behind our guard: who is let in, what is closed, who sees whose, and what is renewed."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from memoranda.manager.installing import rotate
from memoranda.manager.kinds import ADMINISTRATOR
from memoranda.manager.running import running, status
from tests.calling import call, listening
from tests.masking import hide

from .conftest import Cognee

pytestmark = pytest.mark.xdist_group("cognee")
TEXT = b"Alice works with Bob at Acme in Paris. The Invoice is due Monday."


def dataset(cognee: Cognee, who: dict[str, str], name: str, *texts: bytes, build: bool = True) -> str:
    """A dataset with these texts, its graph built."""
    _, made = call(cognee.base, "POST", "/api/v1/datasets", {"name": name}, **who)
    files = [("data", f"{n}.txt", text) for n, text in enumerate(texts)]
    told, answer = call(cognee.base, "POST", "/api/v1/add", parts=([("datasetId", made["id"])], files), **who)
    assert told == 200, answer
    if build:
        cognify(cognee, who, made["id"])
        wait_built(cognee, who, made["id"])
    return str(made["id"])


def cognify(cognee: Cognee, who: dict[str, str], one: str) -> None:
    body = {"datasetIds": [one], "runInBackground": True}
    told, answer = call(cognee.base, "POST", "/api/v1/cognify", body, **who)
    assert told == 200, answer


def wait_built(cognee: Cognee, who: dict[str, str], one: str, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while (said := state(cognee, who, one)) != "DATASET_PROCESSING_COMPLETED":
        assert time.monotonic() < until and said != "DATASET_PROCESSING_ERRORED", said
        time.sleep(0.3)


def state(cognee: Cognee, who: dict[str, str], one: str) -> Any:
    return call(cognee.base, "GET", f"/api/v1/datasets/status?dataset={one}", **who)[1].get(one)


def search(cognee: Cognee, who: dict[str, str], one: str, kind: str = "CHUNKS") -> tuple[int, Any]:
    body = {"query": "Where does Alice work?", "searchType": kind, "datasetIds": [one], "topK": 5}
    return call(cognee.base, "POST", "/api/v1/search", body, **who)


def add_text(cognee: Cognee, who: dict[str, str], one: str, text: str) -> int:
    return call(cognee.base, "POST", "/api/v1/add", parts=([("datasetId", one), ("raw_data", text)], []), **who)[0]


@pytest.mark.requirement("S-008", "S-011", "S-017")
def test_nobody_enters_without_a_key_or_with_a_wrong_one(cognee: Cognee) -> None:
    for path in ("/api/v1/datasets", "/api/v1/users/me", "/health/detailed", "/docs", "/"):
        assert call(cognee.base, "GET", path)[0] == 401
    for wrong in ("x", cognee.secrets["service_api_key"][:-1], cognee.secrets["service_api_key"] + "x"):
        assert call(cognee.base, "GET", "/api/v1/datasets", x_api_key=wrong)[0] == 401
        assert call(cognee.base, "GET", "/api/v1/datasets", authorization=f"Bearer {wrong}")[0] == 401
    assert call(cognee.base, "GET", "/api/v1/datasets", **cognee.service)[0] == 200
    assert call(cognee.base, "GET", "/health")[0] == 200


@pytest.mark.requirement("S-013", "S-014", "S-017")
def test_only_the_service_key_registers(cognee: Cognee) -> None:
    body = {"email": "mallory@users.example", "password": "a-long-password"}
    assert call(cognee.base, "POST", "/api/v1/auth/register", body)[0] == 403
    known = cognee.user("rita")
    assert call(cognee.base, "POST", "/api/v1/auth/register", body, **known)[0] == 403
    assert call(cognee.base, "POST", "/api/v1/auth/register", body, x_api_key="wrong")[0] == 403
    assert call(cognee.base, "POST", "/api/v1/auth/register", body, **cognee.service)[0] == 201


@pytest.mark.requirement("S-012", "S-017")
def test_the_account_of_upstream_does_not_exist(cognee: Cognee) -> None:
    asked = {"email": "default_user@example.com"}
    assert call(cognee.base, "POST", "/api/v1/users/get-user-id", asked, **cognee.service)[0] == 404
    with sqlite3.connect(database(cognee)) as open_:
        emails = {row[0] for row in open_.execute("SELECT email FROM users")}
    assert ADMINISTRATOR in emails and "default_user@example.com" not in emails


def database(cognee: Cognee) -> Path:
    return next((cognee.place.of("cognee") / "data/system").rglob("cognee_db"))


@pytest.mark.requirement("S-010", "S-017")
def test_keys_are_kept_as_salted_hashes_and_a_revoked_one_is_refused(cognee: Cognee) -> None:
    who = cognee.user("keys")
    _, made = call(cognee.base, "POST", "/api/v1/auth/api-keys", {"name": "k"}, **who)
    key = hide(made["key"])
    assert call(cognee.base, "GET", "/api/v1/datasets", x_api_key=key)[0] == 200
    for path in cognee.place.folder.rglob("*"):
        if path.is_file():
            assert key.encode() not in path.read_bytes(), path
    with sqlite3.connect(database(cognee)) as open_:
        kept = [row[0] for row in open_.execute("SELECT api_key FROM user_api_key")]
    assert kept and all(one.startswith("pbkdf2_sha256$") for one in kept)
    assert call(cognee.base, "DELETE", f"/api/v1/auth/api-keys/{made['id']}", **who)[0] in (200, 204)
    assert call(cognee.base, "GET", "/api/v1/datasets", x_api_key=key)[0] == 401


@pytest.mark.requirement("S-015", "S-017", "S-018", "S-019", "S-020")
def test_what_is_closed_stays_closed(cognee: Cognee) -> None:
    who = cognee.user("closed")
    one = dataset(cognee, who, "closed", TEXT)
    for who_else in (who, cognee.service):
        assert call(cognee.base, "POST", "/api/v1/sync", {}, **who_else)[0] == 403
        assert call(cognee.base, "GET", "/api/v1/sync/status", **who_else)[0] == 403
        assert call(cognee.base, "POST", "/api/v1/checks/connection", **who_else)[0] == 403
        assert call(cognee.base, "POST", "/api/v1/settings", {}, **who_else)[0] == 403
        assert call(cognee.base, "DELETE", "/api/v1/datasets", **who_else)[0] == 403  # all of them at once
    assert call(cognee.base, "POST", "/api/v1/auth/forgot-password", {"email": "closed@users.example"}, **who)[0] == 403
    assert add_text(cognee, who, one, "https://example.org/page") == 403
    assert add_text(cognee, who, one, "http://169.254.169.254/latest") == 403
    key_file = cognee.place.folder / "seal.key"
    assert add_text(cognee, who, one, f"file://{key_file}") == 415
    assert add_text(cognee, who, one, "file:///etc/passwd") == 415
    for kind in ("CYPHER", "NATURAL_LANGUAGE"):
        assert search(cognee, who, one, kind)[0] == 403


@pytest.mark.requirement("S-065", "S-066", "S-009", "S-017")
def test_two_users_are_kept_apart_until_a_read_permission_is_given(cognee: Cognee) -> None:
    ana, ben = cognee.user("ana"), cognee.user("ben")
    one = dataset(cognee, ana, "facts", TEXT)
    assert search(cognee, ana, one)[0] == 200

    def ben_is_kept_out() -> None:
        assert one not in str(call(cognee.base, "GET", "/api/v1/datasets", **ben)[1])
        for path in ("graph", "data", "data/count", "processing-status"):
            assert call(cognee.base, "GET", f"/api/v1/datasets/{one}/{path}", **ben)[0] == 403
        for kind in ("CHUNKS", "CHUNKS_LEXICAL", "SUMMARIES", "RAG_COMPLETION", "GRAPH_COMPLETION"):
            told, answer = search(cognee, ben, one, kind)
            assert told == 403 and "Acme" not in str(answer)

    ben_is_kept_out()
    files = ([("datasetId", one)], [("data", "x.txt", b"Ben was here.")])
    assert call(cognee.base, "POST", "/api/v1/add", parts=files, **ben)[0] == 403
    assert call(cognee.base, "DELETE", f"/api/v1/datasets/{one}", **ben)[0] == 403
    body = {"datasetIds": [one], "runInBackground": True}
    assert call(cognee.base, "POST", "/api/v1/cognify", body, **ben)[0] == 403
    assert call(cognee.base, "POST", "/api/v1/datasets", {"name": "facts"}, **ben)[1]["id"] != one

    principal = call(cognee.base, "GET", "/api/v1/users/me", **ben)[1]["id"]
    path = f"/api/v1/permissions/datasets/{principal}?permission_name=read"
    assert call(cognee.base, "POST", path, [one], **ben)[0] == 403  # nobody gives it to himself
    ben_is_kept_out()
    assert call(cognee.base, "POST", path, [one], **ana)[0] == 200
    told, answer = search(cognee, ben, one)
    assert told == 200 and "Acme" in str(answer)
    assert call(cognee.base, "GET", f"/api/v1/datasets/{one}/graph", **ben)[0] == 200
    assert call(cognee.base, "DELETE", f"/api/v1/datasets/{one}", **ben)[0] == 403  # to read is not to delete
    assert call(cognee.base, "DELETE", path, [one], **ana)[0] == 200
    ben_is_kept_out()


@pytest.mark.requirement("S-040", "S-041", "S-017")
def test_no_secret_is_in_an_argument_a_log_a_variable_or_a_file(cognee: Cognee) -> None:
    pid = running(cognee.place, "cognee")
    assert pid is not None
    values = [value.encode() for value in cognee.secrets.values()]
    assert len(values) == 6
    told = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
    assert not any(value in told for value in values)
    keys = cognee.place.service_env
    assert keys.stat().st_mode & 0o777 == 0o600
    for path in cognee.place.folder.rglob("*"):
        if path.is_file() and path != keys:
            held = path.read_bytes()
            assert not any(value in held for value in values), path
    assert not list(cognee.place.folder.rglob("start.env"))


def test_it_listens_on_this_machine_alone(cognee: Cognee) -> None:
    assert listening(cognee.engine.port) == {"127.0.0.1"}
    assert status(cognee.place, "cognee")[0].state == "running"


@pytest.mark.requirement("S-043", "S-044", "S-045", "S-017")
def test_secrets_are_renewed(cognee: Cognee) -> None:
    who = cognee.user("renewed")
    own = hide(call(cognee.base, "POST", "/api/v1/auth/api-keys", {"name": "k"}, **who)[1]["key"])
    before = cognee.secrets

    def opens(**credential: str) -> bool:
        return call(cognee.base, "GET", "/api/v1/datasets", **credential)[0] == 200

    rotate(cognee.place, "cognee", ["service_api_key", "jwt_secret"])  # each alone: tests/manager
    assert not opens(x_api_key=before["service_api_key"]) and not opens(**who)
    assert opens(**cognee.service) and opens(x_api_key=own)
    assert cognee.secrets["service_api_key"] in cognee.place.service_env.read_text()

    rotate(cognee.place, "cognee", ["api_key_salt", "admin_password", "reset_password_secret", "verification_secret"])
    assert not opens(x_api_key=own)
    assert opens(**cognee.service)
    form = {"username": ADMINISTRATOR, "password": before["admin_password"]}
    assert call(cognee.base, "POST", "/api/v1/auth/login", form=form)[0] == 400
    assert opens(**cognee.login(ADMINISTRATOR, cognee.secrets["admin_password"]))
    assert not set(before.values()) & set(cognee.secrets.values())


@pytest.mark.requirement("S-030")
def test_the_only_way_out_stayed_unused(cognee: Cognee) -> None:
    assert cognee.models.calls  # it asked the models beside it
    assert cognee.proxy.asked == []
