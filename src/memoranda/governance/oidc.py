"""Identities from the signed tokens of an OpenID provider.

What is taken is fixed here and not by the token: which algorithms (asymmetric ones only), whose keys (those that the
provider publishes at the configured address; a key or an address in a token's header is not looked at), which issuer
and which audience. A key serves the algorithms of its own kind only, so that no public key is ever taken for a
shared secret.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import jwt

from memoranda.context import Context
from memoranda.engines.egress import Egress
from memoranda.errors import ComponentUnavailable, ConfigRefused, InvalidInput, NotFound
from memoranda.governance.identity import Identity, unknown_credential
from memoranda.governance.names import checked
from memoranda.governance.registry import ROLES, Registry, roles_of
from memoranda.state.database import Database, Remembered
from memoranda.values import dataclass, field

# What a token may be called on record: a name, and none that one of ours could have.
_JTI = re.compile(r"(?!tok_)[A-Za-z0-9._:@+-]{1,128}")

_KINDS = {  # algorithm -> type and curve of the only keys that serve it
    "RS256": ("RSA", None), "RS384": ("RSA", None), "RS512": ("RSA", None),
    "PS256": ("RSA", None), "PS384": ("RSA", None), "PS512": ("RSA", None),
    "ES256": ("EC", "P-256"), "ES384": ("EC", "P-384"), "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}  # fmt: skip
_LONGEST = 16_384  # characters of a token
_MOST_KEYS = 100
_RSA_BITS = 2048
_FRESH = timedelta(minutes=10)  # a key that the provider withdraws serves no longer than this
_AGAIN = timedelta(seconds=30)  # between two looks for a key that is not known
_REST = timedelta(seconds=5)  # after a look that failed

Fetch = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Claims:
    """Where a token says what; a dot leads into an object (`realm_access.roles`). `roles` of the provider's are taken
    by `role_names` (theirs -> ours); others of theirs mean nothing here."""

    tenant: str = "tenant"
    user: str = "sub"
    agent: str = "agent"
    roles: str = "roles"
    role_names: Mapping[str, str] = field(default_factory=lambda: {role: role for role in ROLES})


class Oidc:
    """Takes the tokens of one issuer for one audience. `fetch` gives the provider's JWKS as parsed JSON."""

    def __init__(
        self,
        database: Database,
        registry: Registry,
        *,
        issuer: str,
        audience: str,
        fetch: Fetch,
        algorithms: tuple[str, ...] = ("RS256", "ES256"),
        claims: Claims | None = None,
        skew: float = 60,
    ) -> None:
        if not issuer or not audience:
            raise ConfigRefused(
                "OpenID needs an issuer and an audience.", remedy="Set `oidc.issuer` and `oidc.audience`."
            )
        if not algorithms or (wrong := sorted(set(algorithms) - set(_KINDS))):
            raise ConfigRefused(
                f"`oidc.algorithms` cannot have {', '.join(wrong) if algorithms else 'nothing'}.",
                why="Only signatures that the provider alone can make are taken.",
                remedy=f"Choose from {', '.join(_KINDS)}.",
            )
        if not 0 <= skew <= 300:
            raise ConfigRefused("`oidc.clock_skew_seconds` lies between 0 and 300.")
        self._issuer, self._audience, self._algorithms = issuer, audience, algorithms
        self._registry = registry
        self._claims = claims or Claims()
        self._skew = skew
        self._keys = _Keys(fetch)
        self._remembered = Remembered(database)

    def authenticate(self, context: Context, bearer: str) -> Identity:
        """Unauthenticated unless the token is this issuer's, for us, in its time, and names somebody we can know.

        ComponentUnavailable when the provider's keys are needed and cannot be had.
        """
        now = context.now()
        known = self._remembered.now()
        digest = sha256(bearer.encode("utf-8", "surrogatepass")).digest()
        keys = self._keys.current(now)
        found: tuple[object, Identity, dict[str, Any]] | None = known.get(digest)
        if found is None or found[0] is not keys:  # signed by a key that may have been withdrawn since
            told = self._verified(bearer, now)
            found = known[digest] = (self._keys.current(now), self._identity(told), told)
        _check_times(found[2], now, self._skew)
        return found[1]

    def _verified(self, bearer: str, now: datetime) -> dict[str, Any]:
        """The claims of a token that is signed by one of the provider's keys, for us."""
        try:
            if len(bearer) > _LONGEST:
                raise unknown_credential()
            header = jwt.get_unverified_header(bearer)
            algorithm, kid = header.get("alg"), header.get("kid")
            if algorithm not in self._algorithms or "crit" in header or not isinstance(kid, str | None):
                raise unknown_credential()
            told: dict[str, Any] = jwt.decode(
                bearer,
                self._keys.find(algorithm, kid, now),
                algorithms=[algorithm],
                audience=self._audience,
                issuer=self._issuer,
                options={
                    "require": ["exp", "iss", "aud"],
                    "verify_exp": False, "verify_nbf": False, "verify_iat": False,  # by the context's clock, below
                    "verify_sub": False, "verify_jti": False,
                },
            )  # fmt: skip
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise unknown_credential() from error
        return told

    def _identity(self, told: dict[str, Any]) -> Identity:
        tenant, user, agent = (
            _claim(told, name) for name in (self._claims.tenant, self._claims.user, self._claims.agent)
        )
        given = _claim(told, self._claims.roles)
        roles = {self._claims.role_names.get(name) for name in given if isinstance(name, str)} if (
            isinstance(given, list)
        ) else set()  # fmt: skip
        ours = frozenset(role for role in roles if role in ROLES)
        if not isinstance(user, str) or not isinstance(tenant, str | None) or not isinstance(agent, str | None):
            raise unknown_credential()
        try:
            checked("user", user)
            organization = None if tenant is None else self._registry.tenant(tenant).organization
            if agent is not None:
                self._registry.agent(tenant or "", agent)
        except (NotFound, InvalidInput) as error:
            raise unknown_credential() from error
        if agent is not None:
            ours = frozenset()  # an agent bears no roles, whatever its token says
        ours &= roles_of(tenant)
        jti = told.get("jti")
        return Identity(
            tenant,
            "user" if agent is None else "agent",
            user,
            agent,
            ours,
            organization,
            jti if isinstance(jti, str) and _JTI.fullmatch(jti) else None,
        )


class _Keys:
    """The keys that the provider publishes, as they were read last; read again when they are old, or one is missing."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._held: tuple[dict[str, Any], ...] = ()
        self._read_at: datetime | None = None
        self._tried_at: datetime | None = None
        self._failed = False

    def current(self, now: datetime) -> object:
        """What is different after every reading; reads when what is there is too old to be trusted."""
        if self._read_at is None or now - self._read_at > _FRESH:
            with self._lock:
                if self._read_at is None or now - self._read_at > _FRESH:
                    self._read(now)
        return self._held

    def find(self, algorithm: str, kid: str | None, now: datetime) -> Any:
        """The one key of this name that serves the algorithm, else Unauthenticated."""
        self.current(now)
        found = _serving(self._held, algorithm, kid)
        if not found and kid is not None:
            with self._lock:  # a new key of the provider's, or a name that somebody made up: looked for now and then
                found = _serving(self._held, algorithm, kid)
                if not found and (self._tried_at is None or now - self._tried_at >= _AGAIN):
                    self._read(now)
                    found = _serving(self._held, algorithm, kid)
        if len(found) != 1:
            raise unknown_credential()
        return found[0]

    def _read(self, now: datetime) -> None:
        if self._failed and self._tried_at is not None and now - self._tried_at < _REST:
            raise _no_keys("It did not answer a moment ago.")
        self._tried_at, self._failed = now, True
        told = self._fetch()
        keys = told.get("keys") if isinstance(told, dict) else None
        if not isinstance(keys, list) or len(keys) > _MOST_KEYS:
            raise _no_keys("It answered something that is no set of keys.")
        self._held = tuple(key for key in keys if isinstance(key, dict))
        self._read_at, self._failed = now, False


def _serving(keys: tuple[dict[str, Any], ...], algorithm: str, kid: str | None) -> list[Any]:
    kind, curve = _KINDS[algorithm]
    found = []
    for key in keys:
        fits = key.get("kty") == kind and (curve is None or key.get("crv") == curve)
        fits = fits and key.get("use", "sig") == "sig" and key.get("alg", algorithm) == algorithm
        if fits and (kid is None or key.get("kid") == kid):
            try:
                made = jwt.PyJWK(key, algorithm).key
            except (jwt.PyJWTError, ValueError, TypeError):
                continue  # one key that cannot be read takes nothing from the others
            if kind != "RSA" or made.key_size >= _RSA_BITS:
                found.append(made)
    return found


def _check_times(told: Mapping[str, Any], now: datetime, skew: float) -> None:
    at = now.timestamp()
    expires, begins, issued = (
        _second(told.get(name, missing)) for name, missing in (("exp", None), ("nbf", 0), ("iat", 0))
    )
    if at >= expires + skew or at < begins - skew or at < issued - skew:
        raise unknown_credential()


def _second(time: object) -> float:
    if isinstance(time, int | float) and not isinstance(time, bool) and 0 <= time < 1e12:  # neither nan nor infinite
        return float(time)
    raise unknown_credential()


def _claim(told: Mapping[str, Any], name: str) -> object:
    if name in told:
        return told[name]
    found: object = told
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def published(egress: Egress, jwks_url: str) -> Fetch:
    """Reads the keys at this address, by the one client to anything outside. ConfigRefused: not a safe address."""
    parts = urlsplit(jwks_url)
    target = egress.to(
        f"{parts.scheme}://{parts.netloc}", name="The OpenID provider", timeout=5, failing=ComponentUnavailable
    )

    def fetch() -> object:
        reply = target.request("GET", parts.path or "/")
        if reply.status != 200:
            target.fail(f"It answered with status {reply.status}.")
        told: object = target.answer(reply)
        return told

    return fetch


def _no_keys(why: str) -> ComponentUnavailable:
    return ComponentUnavailable(
        "The OpenID provider gave no keys that can be used.", why=why, remedy="Check that it runs; then try again."
    )
