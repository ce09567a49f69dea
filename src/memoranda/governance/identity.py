"""Who calls: an identity from the credential that came with a request, and from nothing else.

`Tokens` are the service's own API tokens; `oidc.Oidc` takes the tokens of an identity provider.
"""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Literal, Protocol

from sqlalchemy import select, update

from memoranda.context import Context
from memoranda.errors import InvalidInput, NotFound, Unauthenticated
from memoranda.governance.names import column, moment, stamp
from memoranda.governance.registry import ROLES, find_agent, find_user
from memoranda.notes.ids import new_id
from memoranda.state import tables as t
from memoranda.state.database import Database, Remembered
from memoranda.values import dataclass

__all__ = ["ROLES", "Authenticator", "Authenticators", "Identity", "Kind", "Token", "Tokens"]

Kind = Literal["user", "agent", "service"]
PREFIX = "mem_tok_"
_USED_EVERY = timedelta(minutes=5)  # the last use is written at most this often


@dataclass(frozen=True, slots=True)
class Identity:
    """Who calls. A user's token: `user` is that user. An agent's token: `agent` is its id, and `user` the user for whom
    it acts. `tenant` is None for the platform's own people only."""

    tenant: str | None
    kind: Kind
    user: str
    agent: str | None
    roles: frozenset[str]
    organization: str | None
    token_id: str | None


class Authenticator(Protocol):
    """What turns a credential into an identity."""

    def authenticate(self, context: Context, bearer: str) -> Identity:
        """Unauthenticated when nobody is known by it; the error says no more."""
        ...


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it may be listed: everything but the secret. Times are RFC 3339 texts; `used_at` is at most some
    minutes old. `roles` is None where the token has those of its user."""

    id: str
    tenant: str | None
    kind: Kind
    user: str
    agent: str | None
    roles: frozenset[str] | None
    name: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    used_at: str | None


@dataclass(frozen=True, slots=True)
class _Known:
    identity: Identity
    expires_at: str | None


class Tokens:
    """API tokens: kept as salted hashes, shown once, revoked at once for every process.

    A secret has 160 random bits, so that one round of SHA-256 with a salt is as good as many.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._remembered = Remembered(database)
        self._used: dict[str, datetime] = {}

    def issue(
        self,
        context: Context,
        tenant: str | None,
        user: str,
        agent: str | None = None,
        roles: tuple[str, ...] | None = None,
        expires_at: datetime | None = None,
        name: str = "",
        kind: Kind | None = None,
    ) -> tuple[str, str]:
        """A new token's id and secret; the secret is nowhere to be read again.

        With `agent` it is that agent's, acting for `user`; it bears no roles. `roles` narrows what the user's roles
        give (None: all of them). NotFound when there is no such user or agent; InvalidInput for roles that the user
        has not.
        """
        kind = kind or ("agent" if agent is not None else "user")
        if (kind == "agent") != (agent is not None) or (agent is not None and (roles or tenant is None)):
            raise InvalidInput("An agent's token names its agent and its tenant, and bears no roles.")
        token_id = new_id("tok", context.random)
        secret = f"{PREFIX}{token_id[4:]}_{new_id('s', context.random)[2:]}{new_id('s', context.random)[2:]}"
        salt = context.random(16).hex()
        with self._database.changing(tenant) as connection:
            has = find_user(connection, tenant, user).roles
            if agent is not None and tenant is not None:
                find_agent(connection, tenant, agent)
            if more := sorted(set(roles or ()) - has):
                raise InvalidInput(f"roles: {user} has not {', '.join(more)}.", remedy="Give the user the role first.")
            connection.execute(
                t.tokens.insert().values(
                    id=token_id, tenant=column(tenant), user_id=user, agent=agent, kind=kind, salt=salt,
                    roles=[] if agent is not None else roles if roles is None else sorted(set(roles)),
                    hash=_hashed(salt, secret), name=name, created_at=moment(context),
                    expires_at=None if expires_at is None else stamp(expires_at),
                )
            )  # fmt: skip
        return token_id, secret

    def revoke(self, context: Context, tenant: str | None, token_id: str) -> None:
        """Counts from the next call on, in every process. NotFound when the tenant has no such token."""
        ours = (t.tokens.c.id == token_id, t.tokens.c.tenant == column(tenant))
        with self._database.changing(tenant) as connection:
            if connection.execute(select(t.tokens.c.id).where(*ours)).first() is None:
                raise NotFound("No such token.")
            at = moment(context)
            connection.execute(update(t.tokens).where(*ours, t.tokens.c.revoked_at.is_(None)).values(revoked_at=at))

    def list(self, tenant: str | None) -> list[Token]:
        """All of a tenant's (None: of the platform's), the revoked ones too, by the time they were made."""
        of = select(t.tokens).where(t.tokens.c.tenant == column(tenant)).order_by(t.tokens.c.created_at, t.tokens.c.id)
        with self._database.read(tenant) as connection:
            return [_token(row, tenant) for row in connection.execute(of)]

    def authenticate(self, context: Context, bearer: str) -> Identity:
        """Unauthenticated when the token is unknown, expired, revoked, or its user, agent or tenant is gone."""
        known = self._remembered.now()
        digest = sha256(bearer.encode("utf-8", "surrogatepass")).digest()  # no secret is kept in memory
        found: _Known | None = known.get(digest)
        if found is None:
            found = self._look(bearer)
            if found is None:
                raise unknown_credential()
            known[digest] = found
        now = context.now()
        if found.expires_at is not None and found.expires_at <= stamp(now):
            raise unknown_credential()
        used = self._used.get(found.identity.token_id or "")
        if used is None or now - used > _USED_EVERY:
            self._note_use(found.identity, now)
        return found.identity

    def _look(self, bearer: str) -> _Known | None:
        """What the state says; an unknown id takes the same way as a wrong secret."""
        ident = bearer[len(PREFIX) : len(PREFIX) + 16] if bearer.startswith(PREFIX) else ""
        if not (ident.isascii() and ident.isalnum()):  # no id has others, and some of them no database takes
            ident = ""
        with self._database.read() as connection:
            every = t.every_tokens  # whose it is, it says itself
            row = connection.execute(select(every).where(every.c.id == f"tok_{ident}")).first()
            salt, kept = ("", "") if row is None else (row.salt, row.hash)
            right = hmac.compare_digest(_hashed(salt, bearer), kept or _hashed("-", ""))
            if row is None or not right or row.revoked_at is not None:
                return None
        tenant = row.tenant or None
        with self._database.read(tenant) as connection:
            try:
                roles = find_user(connection, tenant, row.user_id).roles
                if row.agent is not None:
                    find_agent(connection, row.tenant, row.agent)
            except NotFound:
                return None
            organization = connection.execute(
                select(t.tenants.c.organization).where(t.tenants.c.tenant == row.tenant)
            ).scalar()
        if row.roles is not None:
            roles &= frozenset(row.roles)
        identity = Identity(tenant, row.kind, row.user_id, row.agent, roles, organization, row.id)
        return _Known(identity, row.expires_at)

    def _note_use(self, identity: Identity, now: datetime) -> None:
        if len(self._used) > 100_000:
            self._used.clear()
        self._used[identity.token_id or ""] = now
        with self._database.begin(identity.tenant) as connection:
            connection.execute(update(t.tokens).where(t.tokens.c.id == identity.token_id).values(used_at=stamp(now)))


class Authenticators:
    """The service's own tokens, and beside them those of an identity provider where there is one."""

    def __init__(self, tokens: Tokens, provider: Authenticator | None = None) -> None:
        self._tokens, self._provider = tokens, provider

    def authenticate(self, context: Context, bearer: str) -> Identity:
        """What the one says that the credential is for: no credential is tried twice."""
        if bearer.startswith(PREFIX):
            return self._tokens.authenticate(context, bearer)
        if self._provider is None:
            raise unknown_credential()
        return self._provider.authenticate(context, bearer)


def _hashed(salt: str, secret: str) -> str:
    return sha256(f"{salt}\n{secret}".encode("utf-8", "surrogatepass")).hexdigest()


def _token(row: Any, tenant: str | None) -> Token:
    roles = None if row.roles is None else frozenset(row.roles)
    return Token(
        row.id, tenant, row.kind, row.user_id, row.agent, roles, row.name, row.created_at, row.expires_at,
        row.revoked_at, row.used_at,
    )  # fmt: skip


def unknown_credential() -> Unauthenticated:
    """The one error for every credential that gives no identity: it says nothing of why."""
    return Unauthenticated(
        "The credential is not known here, or no longer valid.",
        remedy="Send a valid token as `Authorization: Bearer …`.",
    )
