"""Puts the parts of a service together, as its settings say: what is asked for is used, never something else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from memoranda.context import Context
from memoranda.errors import ConfigRefused
from memoranda.faces.http.components import components, oidc
from memoranda.faces.http.config import Config
from memoranda.faces.http.metrics import CountedDecisions, Metrics
from memoranda.faces.http.reading import POSTGRES
from memoranda.governance.decisions import EmbeddedDecisions
from memoranda.governance.sinks import STDOUT, open_sink
from memoranda.service.admin import EXAMPLE_TOKEN
from memoranda.service.opening import open_desk

if TYPE_CHECKING:
    from memoranda.governance.credentials import Credentials
    from memoranda.service.desk import Desk


_SECRET = 32  # characters that the secret of the Homes has at least


def assemble(config: Config, metrics: Metrics | None = None, *, serving: bool = True) -> Desk:
    """The desk of these settings.

    Args:
        serving: whether callers are answered. The operator, who revokes an example's token, does not serve anybody.

    Raises:
        ConfigRefused: a setting asks for what cannot be had, or an example's token is in force outside development.
    """
    context = Context(user="service", agent="service")
    parts = components(config)
    decisions = parts.decisions or EmbeddedDecisions()
    sinks = [open_sink(STDOUT if config.audit_sink == "stdout" else config.audit_sink)] if config.audit_sink else []
    desk = open_desk(
        context,
        config.data,
        database=database_url(config, parts.credentials),
        rendered=config.inventory,
        decisions=CountedDecisions(decisions, metrics) if metrics is not None else decisions,
        relations=parts.relations,
        injection=parts.injection,
        sinks=sinks,
        egress=parts.engines,
        credentials=parts.credentials,
        environment=config.environment,
        homes_secrets=_homes_secrets(config, parts.credentials),
        homes_open=config.homes_open,
        caches=config.homes_cache_limit,
    )
    longest = timedelta(days=config.oidc_token_days)
    desk = replace(desk, ends=(parts.egress.close, parts.engines.close), longest_token=longest)
    if config.oidc_issuer:
        desk = replace(desk, authenticators=(oidc(config, parts.egress, desk.database, desk.registry),))
    try:
        if config.strict and serving:
            _no_example(desk)
    except BaseException:
        desk.close()
        raise
    return desk


def database_url(config: Config, credentials: Credentials) -> str:
    """Where the state lies, with the password by which the service's role logs in."""
    if not config.database_credential:
        return config.database_url
    from sqlalchemy.engine import make_url

    password = credentials.resolve(config.database_credential, None).reveal()
    return make_url(config.database_url).set(password=password).render_as_string(hide_password=False)


def upgrade(config: Config, owner: str, *, alone: bool = False) -> str:
    """Brings the tables of the state to this version, on PostgreSQL as the URL `owner`; gives that version.

    `alone`: no node of an older version runs any more.

    Raises:
        ConfigRefused: the owner is missing, or the tables cannot be used. ComponentUnavailable: nobody answers.
    """
    if not config.database_credential:
        from memoranda.service.opening import state_url
        from memoranda.state.opening import open_database
        from memoranda.state.tables import HEAD

        open_database(state_url(config.data, config.database_url)).close()
        return HEAD
    from memoranda.state.postgres import upgrade_as_owner

    if not owner.startswith(POSTGRES):
        raise ConfigRefused(
            "Nobody was named who owns the tables.",
            why="The service's own role must not own them.",
            remedy=f"Give --owner {POSTGRES}owner:password@host/name, or set MEMORANDA_DATABASE_OWNER to it.",
        )
    return upgrade_as_owner(owner, database_url(config, components(config).credentials), alone=alone)


def _homes_secrets(config: Config, credentials: Credentials) -> tuple[bytes, ...]:
    """What seals the keys of Homes in PostgreSQL, and what opens them too; none where they lie in folders."""
    if not config.homes_on_postgresql:
        return ()
    found = []
    for name in ("homes.secret", "homes.other_secret"):
        named = getattr(config, name.replace(".", "_"))
        secret = credentials.resolve(named, None).reveal().encode("utf-8") if named else b""
        if named and len(secret) < _SECRET:
            raise ConfigRefused(
                f"The setting `{name}` is refused.", why=f"It has fewer than {_SECRET} characters.",
                remedy="Make one with `openssl rand -hex 32`, and give it to every node.",
            )  # fmt: skip
        found.append(secret)
    return tuple(filter(None, found))


def _no_example(desk: Desk) -> None:
    for tenant in (None, *(tenant.id for tenant in desk.registry.tenants())):
        for token in desk.tokens.list(tenant):
            if token.name == EXAMPLE_TOKEN and token.revoked_at is None:
                raise ConfigRefused(
                    "The setting `data` is refused: a token of the example is in force there.",
                    why=f"The token {token.id} was made by `memoranda serve --example`.",
                    remedy=f"Revoke it (`memoranda admin token revoke {token.id}`), or use another folder.",
                )
