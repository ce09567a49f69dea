"""Credentials of engines and components: references are resolved here, on the server, and nowhere else.

`env://NAME` reads a variable of the process whose name begins with `EAI_CRED_`, for the platform's own instances only.
`openbao://mount/path#field` reads a KV v2 secret of OpenBao, by AppRole; a tenant's lies under the tenant's own prefix,
whatever was checked when the reference was stored. A value that was resolved is kept for seconds, and is a `Secret`,
which shows itself to nobody who does not ask for it by name.
"""

from __future__ import annotations

import hmac
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from memoranda.engines.egress import Egress
from memoranda.errors import ComponentUnavailable, Forbidden, InvalidInput

TTL = 30.0  # seconds that a resolved credential is kept
PREFIX = "openbao://secret/tenants/{tenant}/"
_ENV = re.compile(r"env://(EAI_CRED_[A-Z0-9_]+)")
_OPENBAO = re.compile(r"openbao://([A-Za-z0-9._@+-]+)/([A-Za-z0-9._@+-]+(?:/[A-Za-z0-9._@+-]+)*)#([A-Za-z0-9._-]+)")
_KEPT = 1000


class Secret:
    """A value that only `reveal` gives away: not its text, not a format, not a log, not a pickle or a copy."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value, for the header that it is sent in."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __format__(self, _: str) -> str:
        return "Secret(…)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    __hash__ = None  # type: ignore[assignment]  # what is hashed is kept in sets and shown with them

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError("a secret is neither pickled nor copied")


class Credentials:
    """Resolves references. `prefix` is where tenants' own keys lie, as `Instances` has it."""

    def __init__(
        self,
        *,
        openbao: OpenBao | None = None,
        environ: Mapping[str, str] = os.environ,
        prefix: str = PREFIX,
        ttl: float = TTL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._openbao, self._environ, self._prefix, self._ttl, self._clock = openbao, environ, prefix, ttl, clock
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, Secret]] = {}

    @property
    def prefix(self) -> str:
        """Where tenants' own keys lie, with `{tenant}` in it."""
        return self._prefix

    def resolve(self, ref: str, tenant: str | None) -> Secret:
        """The credential that `ref` names; `tenant` is whose it is, None for the platform's own.

        InvalidInput: no such reference; Forbidden: not this owner's to use; ComponentUnavailable: it cannot be had.
        """
        if tenant is not None and not ref.startswith(self._prefix.format(tenant=tenant)):
            raise Forbidden(
                "This credential is not the tenant's to use.",
                why="A tenant's credentials lie in OpenBao, under the tenant's own prefix.",
            )
        if env := _ENV.fullmatch(ref):
            return self._from_environment(env[1])
        match = _OPENBAO.fullmatch(ref)
        if match is None or any(part.strip(".") == "" for part in match[2].split("/")):
            raise InvalidInput(
                "This is not a reference to a credential.",
                remedy="Write `openbao://mount/path#field`, or for the platform's own keys `env://EAI_CRED_…`.",
            )
        if self._openbao is None:
            raise ComponentUnavailable(
                "A credential lies in OpenBao, and no OpenBao is configured.", remedy="Configure it, or use env://."
            )
        now = self._clock()
        with self._lock:
            kept = self._kept.get(ref)
        if kept is not None and now < kept[0]:
            return kept[1]
        found = self._openbao.read(*match.groups())
        with self._lock:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[ref] = (now + self._ttl, found)
        return found

    def forget(self, ref: str) -> None:
        """What is kept of this reference is asked for again: an engine refused it, or it was set anew."""
        with self._lock:
            self._kept.pop(ref, None)

    def ready(self) -> None:
        """ComponentUnavailable where OpenBao is configured and does not let us in."""
        if self._openbao is not None:
            self._openbao.ready()

    def _from_environment(self, name: str) -> Secret:
        value = self._environ.get(name, "")
        if not value:
            raise ComponentUnavailable(
                f"The credential {name} is not in the environment.", remedy=f"Start the service with {name} set."
            )
        return Secret(value)


class OpenBao:
    """One OpenBao server, entered by AppRole; its token is renewed before it ends, and taken anew when it has ended."""

    def __init__(
        self,
        egress: Egress,
        url: str,
        role_id: str,
        secret_id: Secret,
        *,
        approle: str = "approle",
        timeout: float = 3.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target = egress.to(url, name="OpenBao", timeout=timeout, failing=ComponentUnavailable)
        self._role_id, self._secret_id, self._approle, self._clock = role_id, secret_id, approle, clock
        self._lock = threading.Lock()
        self._token: Secret | None = None
        self._renew_at = self._ends_at = 0.0

    def read(self, mount: str, path: str, field: str) -> Secret:
        """One field of the newest version of a secret."""
        status, answer = self._read(mount, path, self._entered())
        if status == 403:  # the token may have been revoked; that a path is forbidden looks the same
            status, answer = self._read(mount, path, self._entered(anew=True))
        if status == 403:
            raise _missing("OpenBao does not let this service read a credential.", "Its policy does not name the path.")
        if status == 404:
            raise _missing("OpenBao holds no such credential.", "There is nothing at its path.")
        if status != 200:
            self._target.fail(f"It answered with status {status}.")
        try:
            value = answer["data"]["data"][field]
        except (KeyError, TypeError):
            raise _missing("OpenBao holds no such credential.", "What lies there has no such field.") from None
        if not isinstance(value, str) or not value:
            raise _missing("OpenBao holds no such credential.", "What lies there is no text.")
        return Secret(value)

    def fields(self, mount: str, path: str) -> dict[str, str] | None:
        """All fields of the newest version of a secret, for whoever put them there; None when there is none."""
        status, answer = self._read(mount, path, self._entered())
        if status == 404:
            return None
        if status != 200:
            raise _missing("OpenBao does not give what was put there.", f"It answered with status {status}.")
        try:
            return {str(name): str(value) for name, value in answer["data"]["data"].items()}
        except (KeyError, TypeError, AttributeError):
            return None  # what is deleted keeps its place, with nothing in it

    def write(self, mount: str, path: str, fields: Mapping[str, str]) -> None:
        """A new version of a secret; earlier ones are destroyed."""
        self._change("POST", f"/v1/{mount}/data/{path}", {"data": dict(fields)})
        _, told = self._read(mount, path, self._entered())
        try:
            now = int(told["data"]["metadata"]["version"])
        except (KeyError, TypeError, ValueError):
            self._target.fail("It does not say which version it has kept.")
        if now > 1:
            self._change("PUT", f"/v1/{mount}/destroy/{path}", {"versions": list(range(max(1, now - 100), now))})

    def remove(self, mount: str, path: str) -> None:
        """Takes a secret away with all its versions; nothing happens where there is none."""
        self._change("DELETE", f"/v1/{mount}/metadata/{path}", None)

    def _change(self, method: str, path: str, body: object) -> None:
        headers = {"x-vault-token": self._entered().reveal()}
        reply = self._target.request(method, path, json=body, headers=headers)
        if reply.status not in (200, 204):
            raise _missing("OpenBao does not let this be written.", f"It answered with status {reply.status}.")

    def ready(self) -> None:
        """Returns where OpenBao answers, is unsealed, and lets this service in."""
        self._entered()
        reply = self._target.request("GET", "/v1/sys/health", query={"standbyok": "true", "perfstandbyok": "true"})
        if reply.status != 200:
            self._target.fail(f"It tells of its health with status {reply.status}.")
        told = self._target.answer(reply)
        if not isinstance(told, dict) or told.get("sealed") is not False:
            self._target.fail("It does not tell that it is unsealed.")

    def _read(self, mount: str, path: str, token: Secret) -> tuple[int, Any]:
        reply = self._target.request("GET", f"/v1/{mount}/data/{path}", headers={"x-vault-token": token.reveal()})
        return reply.status, self._target.answer(reply) if reply.status == 200 else None

    def _entered(self, anew: bool = False) -> Secret:
        with self._lock:
            now = self._clock()
            token = None if anew or now >= self._ends_at else self._token
            if token is not None and now >= self._renew_at:
                token = self._renewed(token, now)
            return token or self._login(now)

    def _login(self, now: float) -> Secret:
        body = {"role_id": self._role_id, "secret_id": self._secret_id.reveal()}
        reply = self._target.request("POST", f"/v1/auth/{self._approle}/login", json=body)
        if reply.status != 200:
            self._token = None
            raise _missing(
                "OpenBao does not let this service in.", f"It answered the AppRole login with status {reply.status}."
            )
        return self._taken(self._target.answer(reply), now)

    def _renewed(self, token: Secret, now: float) -> Secret | None:
        """The token with a longer life; None where it cannot have one."""
        headers = {"x-vault-token": token.reveal()}
        reply = self._target.request("POST", "/v1/auth/token/renew-self", json={}, headers=headers)
        return self._taken(self._target.answer(reply), now) if reply.status == 200 else None

    def _taken(self, answer: Any, now: float) -> Secret:
        try:
            token, seconds = answer["auth"]["client_token"], answer["auth"]["lease_duration"]
        except (KeyError, TypeError):
            self._target.fail("It gave no token.")
        if not isinstance(token, str) or not token or not isinstance(seconds, (int, float)):
            self._target.fail("It gave no token.")
        self._token = Secret(token)
        life = float(seconds) or float("inf")  # zero: a token that does not end
        self._renew_at, self._ends_at = now + life * 2 / 3, now + life * 0.95
        return self._token


def _missing(what: str, why: str) -> ComponentUnavailable:
    return ComponentUnavailable(what, why=why, remedy="Ask whoever keeps OpenBao to put it there, or to allow it.")
