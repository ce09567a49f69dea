"""Tokens of an OpenID provider: the right one is taken, and every forgery that is known is not."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st

from memoranda.context import Context
from memoranda.engines.egress import Egress, EgressSettings
from memoranda.errors import ComponentUnavailable, ConfigRefused, Unauthenticated
from memoranda.governance.identity import Authenticators, Identity, Tokens
from memoranda.governance.oidc import Claims, Oidc, published
from memoranda.governance.registry import Registry
from memoranda.state.database import Database
from tests.conftest import Clock

ISSUER, US = "https://id.example", "memoranda"


@cache
def _rsa(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


@cache
def _ec(name: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _jwk(key: Any, kid: str, **more: str) -> dict[str, Any]:
    made = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    return {**made.to_jwk(key.public_key(), as_dict=True), "kid": kid, **more}


class Provider:
    """What a provider publishes, and how often it was asked."""

    def __init__(self) -> None:
        self.keys: list[dict[str, Any]] = [_jwk(_rsa("one"), "one", use="sig"), _jwk(_ec("two"), "two")]
        self.asked = 0
        self.broken: Exception | None = None

    def __call__(self) -> object:
        self.asked += 1
        if self.broken is not None:
            raise self.broken
        return {"keys": self.keys}


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
def oidc(state: Database, registry: Registry, provider: Provider) -> Oidc:
    return Oidc(state, registry, issuer=ISSUER, audience=US, fetch=provider)


def _claims(now: datetime, **more: Any) -> dict[str, Any]:
    at = int(now.timestamp())
    claims = {"iss": ISSUER, "aud": US, "sub": "ana", "tenant": "acme", "roles": ["developer", "offline_access"],
              "iat": at, "exp": at + 600, "jti": "j-1"}  # fmt: skip
    claims.update(more)
    return {name: value for name, value in claims.items() if value is not None}


def _signed(claims: dict[str, Any], key: Any = None, alg: str = "RS256", **header: Any) -> str:
    return jwt.encode(claims, key or _rsa("one"), algorithm=alg, headers={"kid": "one", **header})


def _refused(oidc: Oidc, context: Context, token: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        oidc.authenticate(context, token)
    assert str(refused.value) == (
        "The credential is not known here, or no longer valid. Send a valid token as `Authorization: Bearer …`."
    )


def test_a_token_of_the_provider_gives_the_user_of_its_tenant(oidc: Oidc, context: Context, clock: Clock) -> None:
    expected = Identity("acme", "user", "ana", None, frozenset({"developer"}), "acme-group", "j-1")
    assert oidc.authenticate(context, _signed(_claims(clock.now))) == expected
    assert oidc.authenticate(context, _signed(_claims(clock.now), _ec("two"), "ES256", kid="two")) == expected
    assert oidc.authenticate(context, _signed(_claims(clock.now, aud=["other", US]))) == expected


def test_a_token_may_name_an_agent_which_bears_no_roles(oidc: Oidc, context: Context, clock: Clock) -> None:
    who = oidc.authenticate(context, _signed(_claims(clock.now, agent="cleo", roles=["tenant_admin"])))
    assert (who.kind, who.agent, who.user, who.roles) == ("agent", "cleo", "ana", frozenset())


def test_claims_are_found_where_the_configuration_says(
    state: Database, registry: Registry, provider: Provider, context: Context, clock: Clock
) -> None:
    claims = Claims(user="email", roles="realm_access.roles", role_names={"mem-audit": "auditor"})
    oidc = Oidc(state, registry, issuer=ISSUER, audience=US, fetch=provider, claims=claims)
    told = _claims(clock.now, email="ana@acme.example", realm_access={"roles": ["mem-audit", "developer", 7]})
    who = oidc.authenticate(context, _signed(told))
    assert (who.user, who.roles) == ("ana@acme.example", {"auditor"})


def test_no_tenant_can_give_the_role_of_the_platform(oidc: Oidc, context: Context, clock: Clock) -> None:
    assert oidc.authenticate(context, _signed(_claims(clock.now, roles=["platform_admin"]))).roles == frozenset()
    who = oidc.authenticate(context, _signed(_claims(clock.now, roles=["platform_admin"], tenant=None)))
    assert (who.tenant, who.roles) == (None, {"platform_admin"})
    who = oidc.authenticate(
        context, _signed(_claims(clock.now, roles=["tenant_admin", "auditor"], tenant=None, jti="tok_1"))
    )
    assert (who.roles, who.token_id) == ({"auditor"}, None)


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _by_hand(header: dict[str, Any], claims: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    body = f"{_b64(json.dumps(header).encode())}.{_b64(json.dumps(claims).encode())}"
    return f"{body}.{_b64(sign(body.encode()))}"


def _public_pem(key: Any) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


class TestForgeries:
    @pytest.mark.parametrize("alg", ["none", "None", "NONE", "", None])
    def test_without_a_signature(self, oidc: Oidc, context: Context, clock: Clock, alg: str | None) -> None:
        for sign in (lambda _: b"", lambda _: b"x"):
            _refused(oidc, context, _by_hand({"alg": alg, "kid": "one"}, _claims(clock.now), sign))

    @pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512"])
    def test_signed_with_the_public_key_as_a_shared_secret(
        self, oidc: Oidc, context: Context, clock: Clock, alg: str
    ) -> None:
        der = _rsa("one").public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )  # fmt: skip
        modulus = _jwk(_rsa("one"), "one")["n"].encode()
        for secret in (_public_pem(_rsa("one")), der, modulus, json.dumps(_jwk(_rsa("one"), "one")).encode(), b""):
            forged = _by_hand(
                {"alg": alg, "kid": "one"}, _claims(clock.now),
                lambda body, secret=secret: hmac.digest(secret, body, f"sha{alg[2:]}"),
            )  # fmt: skip
            _refused(oidc, context, forged)

    def test_signed_with_a_shared_secret_that_the_provider_publishes_by_mistake(
        self, oidc: Oidc, context: Context, clock: Clock, provider: Provider
    ) -> None:
        provider.keys.append({"kty": "oct", "k": _b64(b"s" * 32), "kid": "shared", "alg": "HS256"})
        provider.keys.append({"kty": "oct", "k": _b64(b"s" * 32), "kid": "posing", "alg": "RS256"})
        for kid, alg in (("shared", "HS256"), ("posing", "HS256")):
            _refused(oidc, context, jwt.encode(_claims(clock.now), b"s" * 32, algorithm=alg, headers={"kid": kid}))

    def test_signed_with_another_key(self, oidc: Oidc, context: Context, clock: Clock) -> None:
        _refused(oidc, context, _signed(_claims(clock.now), _rsa("mallory")))
        _refused(oidc, context, _signed(_claims(clock.now), _ec("mallory"), "ES256", kid="two"))

    def test_that_bring_their_own_key_or_say_where_it_lies(
        self, oidc: Oidc, context: Context, clock: Clock, provider: Provider
    ) -> None:
        mallory = _rsa("mallory")
        for header in (
            {"jwk": _jwk(mallory, "one")},
            {"jku": "https://mallory.example/keys"},
            {"x5u": "https://mallory.example/cert", "kid": "../../keys/one"},
            {"x5c": [_b64(_public_pem(mallory))]},
        ):
            _refused(oidc, context, _signed(_claims(clock.now), mallory, **header))

    def test_that_take_a_key_of_one_kind_for_another(self, oidc: Oidc, context: Context, clock: Clock) -> None:
        _refused(oidc, context, _signed(_claims(clock.now), _ec("two"), "ES256", kid="one"))
        _refused(oidc, context, _signed(_claims(clock.now), _rsa("one"), "RS256", kid="two"))

    def test_by_an_algorithm_that_is_not_the_pinned_one(self, oidc: Oidc, context: Context, clock: Clock) -> None:
        for alg in ("RS384", "RS512", "PS256"):
            _refused(oidc, context, _signed(_claims(clock.now), alg=alg))

    def test_by_a_key_that_is_for_something_else_or_too_short(
        self, oidc: Oidc, context: Context, clock: Clock, provider: Provider
    ) -> None:
        provider.keys = [
            _jwk(_rsa("one"), "enc", use="enc"), _jwk(_rsa("one"), "ps", alg="PS256"),
            _jwk(_rsa("short", 1024), "short"),
        ]  # fmt: skip
        for kid, key in (("enc", _rsa("one")), ("ps", _rsa("one"))):
            _refused(oidc, context, _signed(_claims(clock.now), key, kid=kid))
        with pytest.warns(match="below"):
            weak = _signed(_claims(clock.now), _rsa("short", 1024), kid="short")
        _refused(oidc, context, weak)

    def test_with_critical_extensions_that_nobody_understands(self, oidc: Oidc, context: Context, clock: Clock) -> None:
        _refused(oidc, context, _signed(_claims(clock.now), crit=["exp"]))
        _refused(oidc, context, _signed(_claims(clock.now), b64=False, crit=["b64"]))

    @pytest.mark.parametrize(
        "claims",
        [
            {"iss": "https://id.example.mallory"}, {"iss": "https://id.example/"}, {"iss": None}, {"iss": [ISSUER]},
            {"aud": "other"}, {"aud": []}, {"aud": None}, {"aud": "memoranda-x"}, {"aud": ["memo", "randa"]},
            {"exp": None}, {"exp": "soon"}, {"exp": True}, {"exp": [9e9]}, {"exp": float("inf")}, {"exp": 10**400},
            {"nbf": "x"}, {"nbf": None, "iat": "x"},
            {"sub": None}, {"sub": 7}, {"sub": ""}, {"sub": "a b"}, {"sub": "../ana"}, {"sub": ["ana"]},
            {"tenant": "nowhere"}, {"tenant": ["acme"]}, {"tenant": ""}, {"tenant": {"id": "acme"}},
            {"agent": "nobody"}, {"agent": ["cleo"]}, {"agent": "cleo", "tenant": None}, {"agent": ""},
        ],
    )  # fmt: skip
    def test_that_say_something_else(self, oidc: Oidc, context: Context, clock: Clock, claims: dict[str, Any]) -> None:
        told = _claims(clock.now)
        told.update(claims)
        body = {name: value for name, value in told.items() if value is not None}
        header = {"alg": "RS256", "kid": "one"}
        signer = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256)
        _refused(oidc, context, _by_hand(header, body, lambda data: signer.sign(data, _rsa("one"))))

    def test_whose_claims_were_changed(self, oidc: Oidc, context: Context, clock: Clock) -> None:
        head, _, signature = _signed(_claims(clock.now)).split(".")
        body = _b64(json.dumps(_claims(clock.now, tenant="globex")).encode())
        _refused(oidc, context, f"{head}.{body}.{signature}")

    def test_that_are_no_tokens_at_all(self, oidc: Oidc, context: Context, clock: Clock) -> None:
        right = _signed(_claims(clock.now))
        for text in (right + "x", right[:-4], right + "." + right, right * 100, f" {right}", "[" * 9000):
            _refused(oidc, context, text)

        @given(st.text(max_size=60) | st.from_regex(r"[\w-]{0,40}\.[\w-]{0,40}\.[\w-]{0,40}", fullmatch=True))
        def check(text: str) -> None:
            _refused(oidc, context, text)

        check()


class TestTime:
    def test_an_expired_token_ends_with_the_skew_and_also_when_it_is_known(
        self, oidc: Oidc, context: Context, clock: Clock
    ) -> None:
        token = _signed(_claims(clock.now, exp=int(clock.now.timestamp()) + 100))
        oidc.authenticate(context, token)
        clock.tick(seconds=159)
        oidc.authenticate(context, token)
        clock.tick(seconds=2)
        _refused(oidc, context, token)

    def test_a_token_of_the_future_is_not_taken_before_its_time(
        self, oidc: Oidc, context: Context, clock: Clock
    ) -> None:
        at = int(clock.now.timestamp())
        for name in ("nbf", "iat"):
            oidc.authenticate(context, _signed(_claims(clock.now, **{name: at + 50})))
            _refused(oidc, context, _signed(_claims(clock.now, **{name: at + 90})))


class TestRotation:
    def test_a_new_key_is_looked_for_once(self, oidc: Oidc, context: Context, clock: Clock, provider: Provider) -> None:
        oidc.authenticate(context, _signed(_claims(clock.now)))
        provider.keys = [_jwk(_rsa("three"), "three")]
        clock.tick(minutes=1)
        oidc.authenticate(context, _signed(_claims(clock.now), _rsa("three"), kid="three"))
        oidc.authenticate(context, _signed(_claims(clock.now), _rsa("three"), kid="three"))
        assert provider.asked == 2

    def test_names_that_somebody_makes_up_do_not_make_us_ask_and_ask(
        self, oidc: Oidc, context: Context, clock: Clock, provider: Provider
    ) -> None:
        for n in range(50):
            _refused(oidc, context, _signed(_claims(clock.now), _rsa("mallory"), kid=f"made-up-{n}"))
        assert provider.asked == 1
        clock.tick(minutes=1)
        for n in range(50):
            _refused(oidc, context, _signed(_claims(clock.now), _rsa("mallory"), kid=f"made-up-{n}"))
        assert provider.asked == 2

    def test_a_key_that_is_withdrawn_serves_no_longer_than_minutes_for_known_tokens_too(
        self, oidc: Oidc, context: Context, clock: Clock, provider: Provider
    ) -> None:
        token = _signed(_claims(clock.now, exp=int(clock.now.timestamp()) + 90_000))
        oidc.authenticate(context, token)
        provider.keys = [_jwk(_ec("two"), "two")]
        clock.tick(minutes=11)
        _refused(oidc, context, token)

    def test_a_token_without_a_key_name_is_taken_when_one_key_alone_can_be_meant(
        self, oidc: Oidc, context: Context, clock: Clock, provider: Provider
    ) -> None:
        token = jwt.encode(_claims(clock.now), _rsa("one"), algorithm="RS256")
        oidc.authenticate(context, token)
        provider.keys.append(_jwk(_rsa("three"), "three"))
        clock.tick(minutes=11)
        _refused(oidc, context, jwt.encode(_claims(clock.now), _rsa("one"), algorithm="RS256"))


class TestWhenTheProviderFails:
    @pytest.mark.parametrize("answer", [{}, {"keys": {}}, [], None, {"keys": [{}] * 101}])
    def test_nobody_is_taken_for_anybody(
        self, state: Database, registry: Registry, context: Context, clock: Clock, answer: object
    ) -> None:
        oidc = Oidc(state, registry, issuer=ISSUER, audience=US, fetch=lambda: answer)
        with pytest.raises(ComponentUnavailable):
            oidc.authenticate(context, _signed(_claims(clock.now)))

    def test_known_keys_serve_until_they_are_old_and_it_recovers_by_itself(
        self, oidc: Oidc, context: Context, clock: Clock, provider: Provider
    ) -> None:
        oidc.authenticate(context, _signed(_claims(clock.now)))
        provider.broken = ComponentUnavailable("down")
        clock.tick(minutes=9)
        oidc.authenticate(context, _signed(_claims(clock.now)))
        clock.tick(minutes=2)
        for _ in range(20):
            with pytest.raises(ComponentUnavailable):
                oidc.authenticate(context, _signed(_claims(clock.now)))
        assert provider.asked == 2
        provider.broken = None
        clock.tick(seconds=6)
        oidc.authenticate(context, _signed(_claims(clock.now)))

    def test_keys_that_cannot_be_read_take_nothing_from_the_others(
        self, oidc: Oidc, context: Context, clock: Clock, provider: Provider
    ) -> None:
        provider.keys += [{"kty": "RSA", "kid": "one", "n": "!", "e": "AQAB"}, {"kty": "RSA"}, {"kty": 7}]  # type: ignore[dict-item]
        oidc.authenticate(context, _signed(_claims(clock.now)))


@pytest.mark.parametrize("algorithms", [("none",), ("HS256",), ("RS256", "HS256"), ("",), (), ("RS1",)])
def test_algorithms_by_which_anybody_could_sign_are_refused_at_the_start(
    state: Database, registry: Registry, provider: Provider, algorithms: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigRefused, match="algorithms"):
        Oidc(state, registry, issuer=ISSUER, audience=US, fetch=provider, algorithms=algorithms)


def test_who_is_gone_from_the_registry_is_not_known_any_more(
    oidc: Oidc, context: Context, clock: Clock, registry: Registry
) -> None:
    token = _signed(_claims(clock.now, agent="cleo"))
    oidc.authenticate(context, token)
    registry.remove_agent("acme", "cleo")
    _refused(oidc, context, token)


def test_each_credential_goes_to_the_one_that_it_is_for(
    oidc: Oidc, state: Database, context: Context, clock: Clock, provider: Provider
) -> None:
    tokens = Tokens(state)
    both = Authenticators(tokens, oidc)
    _, secret = tokens.issue(context, "acme", "otto")
    assert both.authenticate(context, secret).user == "otto" and provider.asked == 0
    assert both.authenticate(context, _signed(_claims(clock.now))).user == "ana"
    with pytest.raises(Unauthenticated):
        Authenticators(tokens).authenticate(context, _signed(_claims(clock.now)))
    with pytest.raises(Unauthenticated):
        both.authenticate(context, "mem_tok_x" + _signed(_claims(clock.now)))


class TestOverTheNetwork:
    @pytest.fixture
    def served(self) -> Iterator[tuple[str, dict[str, Any]]]:
        told: dict[str, Any] = {"status": 200, "body": json.dumps({"keys": [_jwk(_rsa("one"), "one")]}).encode()}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                told["path"] = self.path
                self.send_response(told["status"])
                self.send_header("content-length", str(len(told["body"])))
                self.end_headers()
                self.wfile.write(told["body"])

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/realms/acme/keys", told
        server.shutdown()
        server.server_close()

    def test_the_keys_are_read_at_the_configured_address(
        self, served: tuple[str, dict[str, Any]], state: Database, registry: Registry, context: Context, clock: Clock
    ) -> None:
        egress = Egress(EgressSettings(environment="development"))
        oidc = Oidc(state, registry, issuer=ISSUER, audience=US, fetch=published(egress, served[0]))
        assert oidc.authenticate(context, _signed(_claims(clock.now))).user == "ana"
        assert served[1]["path"] == "/realms/acme/keys"
        for status, body in ((500, b"{}"), (200, b"<html>"), (302, b"")):
            served[1].update(status=status, body=body)
            clock.tick(minutes=11)
            with pytest.raises(ComponentUnavailable):
                oidc.authenticate(context, _signed(_claims(clock.now)))
        egress.close()

    def test_plain_http_is_refused_in_production(self, served: tuple[str, dict[str, Any]]) -> None:
        with pytest.raises(ConfigRefused):
            published(Egress(EgressSettings()), served[0])


def test_the_skew_is_bounded(state: Database, registry: Registry, provider: Provider) -> None:
    for skew in (-1, 301, float("nan")):
        with pytest.raises(ConfigRefused):
            Oidc(state, registry, issuer=ISSUER, audience=US, fetch=provider, skew=skew)
