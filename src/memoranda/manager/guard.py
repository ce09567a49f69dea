"""Stands in front of an engine's real application, inside the engine's own process and interpreter.

`python guard.py FILE` reads the private environment that the launcher wrote, deletes it, refuses to start where a
switch is not as it has to be, loads the application, and lets it listen on 127.0.0.1 once its administrator exists.
Every request passes the rules below before the application sees it: what is not on the list is refused.

This file runs where Memoranda is not installed: it imports the standard library and uvicorn, which both engines have,
and from an engine only what it must. Exit codes: 78 a switch or a file is not as it has to be, 70 the engine is not
what is expected here.
"""

from __future__ import annotations

import asyncio
import hmac
import io
import json
import os
import re
import stat
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qs, quote, urlencode

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = "127.0.0.1"
# Settings of this file itself: they are taken out of the environment before the engine is loaded.
OWN = "MEMORANDA_GUARD_"
SECRETS = re.compile(r"KEY|SECRET|PASSWORD|SALT|TOKEN")
# What each switch has to be; anything else refuses to start. `*`: any value, but not none.
SWITCHES = {
    "mem0": {"AUTH_DISABLED": "false", "MEM0_TELEMETRY": "false", "ADMIN_API_KEY": "*", "JWT_SECRET": "*"},
    "cognee": {
        "REQUIRE_AUTHENTICATION": "true", "ENABLE_BACKEND_ACCESS_CONTROL": "true", "HASH_API_KEY": "true",
        "API_KEY_HASH_SALT": "*", "FASTAPI_USERS_JWT_SECRET": "*", "FASTAPI_USERS_RESET_PASSWORD_TOKEN_SECRET": "*",
        "FASTAPI_USERS_VERIFICATION_TOKEN_SECRET": "*", "TELEMETRY_DISABLED": "*",
        "RUNTIME__DLTHUB_TELEMETRY": "false", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
        "TRANSFORMERS_OFFLINE": "1", "DO_NOT_TRACK": "1", "ALLOW_HTTP_REQUESTS": "*", "ALLOW_CYPHER_QUERY": "*",
        "COGNEE_ALLOWED_LOCAL_FILE_ROOTS": "*", "COGNEE_ENV_FILE": "*", "CACHING": "false",
    },
}  # fmt: skip
# The account that upstream Cognee makes when nobody names another.
DEFAULT_USER = "default_user@example.com"
_ID = r"[0-9a-fA-F-]{32,36}"
# Who passes: anybody, whoever has a credential, the service key alone.
PUBLIC, KNOWN, SERVICE = range(3)
RULES: dict[str, tuple[tuple[str, str, int], ...]] = {
    "mem0": (
        ("GET", r"/auth/setup-status", PUBLIC), ("POST", r"/auth/login", PUBLIC), ("POST", r"/auth/refresh", PUBLIC),
        ("GET", r"/auth/me", KNOWN), ("GET|POST", r"/api-keys", KNOWN), ("DELETE", rf"/api-keys/{_ID}", KNOWN),
        ("GET|POST|DELETE", r"/memories", KNOWN), ("GET|PUT|DELETE", r"/memories/[^/]+", KNOWN),
        ("GET", r"/memories/[^/]+/history", KNOWN), ("POST", r"/search", KNOWN),
    ),
    "cognee": (
        ("GET", r"/health", PUBLIC), ("POST", r"/api/v1/auth/login", PUBLIC),
        ("GET", r"/health/detailed", KNOWN), ("POST", r"/api/v1/auth/logout", KNOWN),
        ("GET", r"/api/v1/(auth|users)/me", KNOWN), ("PATCH", r"/api/v1/users/me", KNOWN),
        ("GET|POST", r"/api/v1/auth/api-keys", KNOWN), ("DELETE", rf"/api/v1/auth/api-keys/{_ID}", KNOWN),
        ("GET|POST", r"/api/v1/datasets", KNOWN), ("DELETE", rf"/api/v1/datasets/{_ID}(/data/{_ID})?", KNOWN),
        ("GET", r"/api/v1/datasets/status(/progress)?", KNOWN),
        ("GET", rf"/api/v1/datasets/{_ID}/(graph|data|data/count|processing-status|data/{_ID}/raw)", KNOWN),
        ("POST", r"/api/v1/(add|cognify|search)", KNOWN),
        ("POST|DELETE", rf"/api/v1/permissions/datasets/{_ID}", KNOWN),
        ("GET", rf"/api/v1/permissions/principals/{_ID}/datasets", KNOWN),
        ("POST", r"/api/v1/auth/register", SERVICE), ("GET|DELETE", rf"/api/v1/users/{_ID}", SERVICE),
        ("POST", r"/api/v1/users/get-user-id", SERVICE),
    ),
}  # fmt: skip
_RULES = {
    engine: [(set(methods.split("|")), re.compile(path), who) for methods, path, who in rules]
    for engine, rules in RULES.items()
}
_RENEW = 1500.0  # seconds after which the administrator's session is begun again; it lasts an hour


class Refused(Exception):
    """The engine is not started: the exit code, and why."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


def private_environment(path: Path) -> dict[str, str]:
    """The variables of a file that only its owner can read; the file is gone afterwards. A line is NAME=value."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, encoding="utf-8") as file:
        told = os.fstat(file.fileno())
        if not stat.S_ISREG(told.st_mode) or told.st_uid != os.getuid() or told.st_mode & 0o077:
            raise Refused(78, f"{path} can be read by others, or is not ours.")
        lines = file.read().splitlines()
    path.unlink()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def check_switches(engine: str, environment: MutableMapping[str, str]) -> None:
    """Refused unless every switch of the engine is as it has to be."""
    for name, wanted in SWITCHES[engine].items():
        value = environment.get(name, "")
        if not value or (wanted != "*" and value.lower() != wanted):
            raise Refused(78, f"{name} has to be {'set' if wanted == '*' else wanted}.")


class Masked(io.TextIOBase):
    """A stream on which no secret is ever written."""

    def __init__(self, stream: Any, secrets: Iterable[str]) -> None:
        self._stream = stream
        told = sorted({one for one in secrets if len(one) >= 8}, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, told))) if told else None

    def write(self, text: str) -> int:
        self._stream.write(self._secrets.sub("[secret]", text) if self._secrets else text)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"


async def ask(
    app: App, method: str, path: str, *, json_body: Any = None, form: Any = None, headers: Any = ()
) -> tuple[int, Any]:
    """One request to the application inside this process, whether it listens or not: (status, its answer's JSON)."""
    body, sent = b"", [(b"host", LOOPBACK.encode()), *headers]
    if json_body is not None:
        body, kind = json.dumps(json_body).encode(), b"application/json"
        sent.append((b"content-type", kind))
    if form is not None:
        body = urlencode(form).encode()
        sent.append((b"content-type", b"application/x-www-form-urlencoded"))
    sent.append((b"content-length", str(len(body)).encode()))
    scope: Scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": path, "raw_path": quote(path).encode(), "root_path": "", "query_string": b"",
        "headers": sent, "client": ("launcher", 0), "server": (LOOPBACK, 0),
    }  # fmt: skip
    given = False
    status, parts = 500, []

    async def receive() -> Message:
        nonlocal given
        if given:
            await asyncio.Event().wait()  # whoever asks again waits for us to go, and we do not
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message["type"] == "http.response.body":
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    try:
        return status, json.loads(b"".join(parts) or b"null")
    except ValueError:
        return status, None


class Guard:
    """The application behind its rules. `prepare` runs once the application has started and before it listens."""

    def __init__(self, engine: str, app: App, own: MutableMapping[str, str]) -> None:
        self.engine, self.app, self._own = engine, app, own
        self._service_key = own.get("SERVICE_API_KEY", "").encode()
        self._session: tuple[bytes, float] = (b"", 0.0)
        self._entering = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "lifespan.startup.complete":
                try:
                    await self.prepare()
                except Refused as error:
                    message = {"type": "lifespan.startup.failed", "message": str(error)}
            await send(message)

        await self.app(scope, receive, sent)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        keys = [value for name, value in headers if name == b"x-api-key"]
        service = bool(self._service_key) and any(hmac.compare_digest(key, self._service_key) for key in keys)
        credential = service or any(name in (b"x-api-key", b"authorization") and value for name, value in headers)
        status, why = self.judge(scope, credential=credential, service=service)
        if status:
            await _refuse(send, status, why)
            return
        # A browser's cookie is no credential here: what comes by itself with a request must not open anything.
        headers = [(name, value) for name, value in headers if name != b"cookie"]
        if service:
            headers = [(name, value) for name, value in headers if name not in (b"x-api-key", b"authorization")]
            headers.append((b"authorization", b"Bearer " + await self._administrator()))
        await self.app({**scope, "headers": headers}, receive, send)

    def judge(self, scope: Scope, *, credential: bool, service: bool) -> tuple[int, str]:
        """(0, "") for a request that may pass, else the status it is answered with, and why."""
        who = next(
            (who for methods, path, who in _RULES[self.engine]
             if scope["method"] in methods and path.fullmatch(scope["path"])), None,
        )  # fmt: skip
        if who == PUBLIC or (who == SERVICE and service):
            return 0, ""
        if scope["path"].endswith("/register"):
            return 403, "Registration is closed."
        if not credential:
            return 401, "A credential is needed."
        if who != KNOWN:
            return 403, "This is closed here." if who is None else "This is for the service alone."
        if service and scope["method"] == "PATCH":
            return 403, "The administrator is changed by the launcher alone."
        if self.engine == "mem0" and scope["method"] == "DELETE" and scope["path"] == "/memories":
            told = parse_qs(scope["query_string"].decode("latin-1"))
            named = [value for name in ("user_id", "agent_id", "run_id") for value in told.get(name, [])]
            if not named or any("*" in value for value in named):
                return 403, "What is deleted has to be named exactly."
        return 0, ""

    async def prepare(self) -> None:
        """What has to be true before anybody can connect."""
        await (_prepare_mem0 if self.engine == "mem0" else _prepare_cognee)(self.app, self._own)

    async def _administrator(self) -> bytes:
        async with self._entering:
            token, until = self._session
            if time.monotonic() >= until:
                status, told = await ask(self.app, "POST", "/api/v1/auth/login", form=_login(self._own))
                if status != 200:
                    return b"none"  # the application answers 401, as to anybody
                token, until = told["access_token"].encode(), time.monotonic() + _RENEW
                self._session = token, until
            return token


async def _refuse(send: Send, status: int, why: str) -> None:
    body = json.dumps({"detail": why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _login(own: MutableMapping[str, str]) -> dict[str, str]:
    return {"username": own["ADMIN_EMAIL"], "password": own["ADMIN_PASSWORD"]}


async def _prepare_cognee(app: App, own: MutableMapping[str, str]) -> None:
    """Its administrator can enter by the password that is in force; upstream's default account is not there."""
    from cognee.infrastructure.databases.relational import get_relational_engine  # type: ignore[import-not-found]
    from cognee.modules.users.get_user_db import get_user_db_context  # type: ignore[import-not-found]
    from cognee.modules.users.get_user_manager import get_user_manager_context  # type: ignore[import-not-found]
    from fastapi_users.exceptions import UserNotExists  # type: ignore[import-not-found]

    async with get_relational_engine().get_async_session() as session:
        async with get_user_db_context(session) as users, get_user_manager_context(users) as manager:
            try:
                await manager.get_by_email(DEFAULT_USER)
            except UserNotExists:
                pass
            else:
                raise Refused(78, f"The account {DEFAULT_USER} exists: it has to be removed first.")
            if (await ask(app, "POST", "/api/v1/auth/login", form=_login(own)))[0] != 200:
                user = await manager.get_by_email(own["ADMIN_EMAIL"])
                hashed = manager.password_helper.hash(own["ADMIN_PASSWORD"])
                await users.update(user, {"hashed_password": hashed, "is_active": True})
    status, _ = await ask(app, "POST", "/api/v1/auth/login", form=_login(own))
    if status != 200:
        raise Refused(70, "The administrator cannot enter.")
    if (await ask(app, "GET", "/api/v1/datasets"))[0] != 401:
        raise Refused(78, "It answers without a credential.")
    # The first look at its health loads half of its libraries and holds everybody up: before anybody has come.
    await ask(app, "GET", "/health")


async def _prepare_mem0(app: App, own: MutableMapping[str, str]) -> None:
    """Its first administrator exists and can enter by the password that is in force."""
    login = {"email": own["ADMIN_EMAIL"], "password": own["ADMIN_PASSWORD"]}
    status, told = await ask(app, "GET", "/auth/setup-status")
    if status != 200:
        raise Refused(70, "It does not say whether it is set up.")
    if told["needsSetup"]:
        status, _ = await ask(app, "POST", "/auth/register", json_body={"name": "administrator", **login})
        if status != 200:
            raise Refused(70, f"The first administrator could not be made: {status}.")
    elif (await ask(app, "POST", "/auth/login", json_body=login))[0] != 200:
        await asyncio.to_thread(_mem0_password, own)
    if (await ask(app, "POST", "/auth/login", json_body=login))[0] != 200:
        raise Refused(70, "The administrator cannot enter.")
    if (await ask(app, "GET", "/memories"))[0] != 401:
        raise Refused(78, "It answers without a credential.")


def _mem0_password(own: MutableMapping[str, str]) -> None:
    from auth import hash_password  # type: ignore[import-not-found]
    from db import SessionLocal  # type: ignore[import-not-found]
    from models import RefreshTokenJti, User  # type: ignore[import-not-found]

    with SessionLocal() as session:
        user = session.query(User).filter(User.email == own["ADMIN_EMAIL"]).one()
        user.password_hash = hash_password(own["ADMIN_PASSWORD"])
        session.query(RefreshTokenJti).filter(RefreshTokenJti.user_id == user.id).delete()
        session.commit()


def load_cognee(_: MutableMapping[str, str]) -> App:
    """Cognee's application, of the version that is expected."""
    from cognee.api.client import app  # type: ignore[import-not-found]

    _expect(app, ("/api/v1/auth/login", "/api/v1/datasets", "/api/v1/add", "/api/v1/cognify", "/api/v1/search"))
    return app  # type: ignore[no-any-return]


def load_mem0(own: MutableMapping[str, str]) -> App:
    """The application of the installed server, its tables carried to what it needs."""
    folder = Path(own["SERVER_DIR"])
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    _mem0_database()
    from alembic import command
    from alembic.config import Config

    config = Config(str(folder / "alembic.ini"))
    config.set_main_option("script_location", str(folder / "alembic"))
    command.upgrade(config, "head")
    import main  # type: ignore[import-not-found]

    _expect(main.app, ("/auth/setup-status", "/auth/register", "/auth/login", "/api-keys", "/memories", "/search"))
    return main.app  # type: ignore[no-any-return]


def _mem0_database() -> None:
    """Its database for accounts, made where it is not there yet."""
    import psycopg  # type: ignore[import-not-found,unused-ignore]

    name = os.environ["APP_DB_NAME"]
    with psycopg.connect(
        host=os.environ["POSTGRES_HOST"], port=os.environ["POSTGRES_PORT"], dbname=os.environ["POSTGRES_DB"],
        user=os.environ["POSTGRES_USER"], password=os.environ["POSTGRES_PASSWORD"], autocommit=True,
    ) as connection:  # fmt: skip
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone() is None:
            connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))


def _expect(app: Any, paths: Iterable[str]) -> None:
    missing = set(paths) - set(app.openapi()["paths"])
    if missing:
        raise Refused(70, f"The application has no {', '.join(sorted(missing))}: it is not what is expected here.")


def main(file: str) -> int:
    """Serves until it is told to stop."""
    os.umask(0o077)
    environment = private_environment(Path(file))
    own = {name.removeprefix(OWN): value for name, value in environment.items() if name.startswith(OWN)}
    given = {name: value for name, value in environment.items() if not name.startswith(OWN)}
    engine = own["ENGINE"]
    check_switches(engine, given)
    os.environ.update(given)
    secrets = [value for name, value in environment.items() if SECRETS.search(name)]
    sys.stdout, sys.stderr = Masked(sys.stdout, secrets), Masked(sys.stderr, secrets)
    import uvicorn

    app = load_cognee(own) if engine == "cognee" else load_mem0(own)
    check_switches(engine, os.environ)  # an engine may read files of its own, and believe them more than us
    changed = [name for name, value in given.items() if os.environ.get(name) != value]
    if changed:
        raise Refused(78, f"Something of the engine's has changed {', '.join(sorted(changed))}.")
    server = uvicorn.Server(
        uvicorn.Config(
            Guard(engine, app, own), host=LOOPBACK, port=int(own["PORT"]), lifespan="on", access_log=False,
            server_header=False, proxy_headers=False, timeout_keep_alive=30, timeout_graceful_shutdown=10,
            log_level="warning",
        )
    )  # fmt: skip
    server.run()
    return 0 if server.started else 70


def _exit(code: int, why: str) -> NoReturn:
    print(f"Not started: {why}", file=sys.stderr, flush=True)
    raise SystemExit(code)


if __name__ == "__main__":
    try:
        code = main(sys.argv[1])
    except Refused as error:
        _exit(error.code, str(error))
    raise SystemExit(code)
