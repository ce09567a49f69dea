"""The clients of what decides, resolves and filters elsewhere. What has no URL is not asked, and its place is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from memoranda.engines.egress import Egress, EgressSettings
from memoranda.errors import ComponentUnavailable
from memoranda.governance.credentials import Credentials, OpenBao, Secret
from memoranda.governance.decisions import Decisions, Opa
from memoranda.governance.injection import Filter, GatewayFilter
from memoranda.governance.oidc import Claims, Oidc
from memoranda.governance.openfga import OpenFga
from memoranda.governance.relations import Relations
from memoranda.values import dataclass

if TYPE_CHECKING:
    from memoranda.faces.http.config import Config
    from memoranda.governance.registry import Registry
    from memoranda.state.database import Database


@dataclass(frozen=True, slots=True)
class Components:
    """What is asked elsewhere; None where the part that is built in does it."""

    egress: Egress
    engines: Egress  # the way out to engines, under the settings for these
    credentials: Credentials
    relations: Relations | None
    decisions: Decisions | None
    injection: Filter | None
    openbao: OpenBao | None


def components(config: Config) -> Components:
    """The clients of these settings; nobody is called yet. ConfigRefused."""
    # Plain HTTP to another machine was refused with the settings, in staging and production; to this one it is allowed.
    egress = Egress(EgressSettings(config.environment, config.engines_ca_file, allow_http=True))
    openbao = None
    if config.openbao_url:
        own = Credentials(environ=config.credentials)
        role, secret = own.resolve(config.openbao_role, None), own.resolve(config.openbao_secret, None)
        openbao = OpenBao(egress, config.openbao_url, role.reveal(), secret, timeout=config.openbao_timeout)
    credentials = Credentials(openbao=openbao, environ=config.credentials, prefix=config.openbao_tenant_prefix)

    def token(reference: str) -> Callable[[], Secret] | None:
        return (lambda: credentials.resolve(reference, None)) if reference else None

    relations = decisions = injection = None
    if config.openfga_url:
        relations = OpenFga(
            egress, config.openfga_url, config.openfga_store, config.openfga_model,
            token=token(config.openfga_credential), timeout=config.openfga_timeout,
        )  # fmt: skip
    if config.opa_url:
        decisions = Opa(egress, config.opa_url, token=token(config.opa_credential), timeout=config.opa_timeout)
    if config.gateway_url:
        injection = GatewayFilter(
            egress, config.gateway_url, token=token(config.gateway_credential), timeout=config.gateway_timeout
        )
    engines = Egress(EgressSettings(config.environment, config.engines_ca_file, config.engines_allow_http))
    return Components(egress, engines, credentials, relations, decisions, injection, openbao)


def oidc(config: Config, egress: Egress, database: Database, registry: Registry) -> Oidc:
    """The authenticator of the provider's tokens."""
    keys = egress.to(config.oidc_jwks_url, name="the OpenID provider", timeout=5.0, failing=ComponentUnavailable)

    def fetch() -> object:
        reply = keys.request("GET", "")
        if reply.status != 200:
            keys.fail(f"It answered with status {reply.status}.")
        return keys.answer(reply)

    claims = Claims(
        tenant=config.oidc_tenant_claim, user=config.oidc_user_claim, agent=config.oidc_agent_claim,
        roles=config.oidc_roles_claim,
    )  # fmt: skip
    return Oidc(
        database, registry, issuer=config.oidc_issuer, audience=config.oidc_audience, fetch=fetch,
        algorithms=config.oidc_algorithms, claims=claims,
    )  # fmt: skip
