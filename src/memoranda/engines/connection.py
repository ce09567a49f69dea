"""One engine instance elsewhere, as it is reached: where it lies, with whose key, and what its answers mean.

Nothing here knows a route. What an engine refuses and what it did not answer become the errors of the contract; whether
a write may have been done all the same is told by `asked` of the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from memoranda.engines.breaker import Breaker
from memoranda.engines.egress import Egress, Reply, Target
from memoranda.errors import ConfigRefused, EngineUnavailable
from memoranda.values import dataclass


class Secret(Protocol):
    """A credential that shows itself to nobody who does not ask for it."""

    def reveal(self) -> str: ...


class Keyring(Protocol):
    """Whose key a tenant is served with on one instance; None for what is asked in nobody's name."""

    def of(self, tenant: str | None) -> tuple[str, Secret] | None:
        """The reference and the key; None where none is declared. ComponentUnavailable when it cannot be had."""
        ...

    def forget(self, tenant: str | None) -> None:
        """The key was refused: it is looked up again at the next call."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine said: `data` is its JSON, None where the body was empty."""

    status: int
    data: Any


class Connection:
    """The way to one instance. Thread-safe; connections are shared by the calls with one key."""

    def __init__(
        self, egress: Egress, instance: str, base_url: str, keyring: Keyring, *, timeout: float = 30.0,
        tls_verify: bool = True, breaker: Breaker | None = None,
    ) -> None:  # fmt: skip
        self.instance = instance
        self.base_url = base_url
        self.timeout = timeout
        self._keyring = keyring
        self._breaker = breaker or Breaker()

        def to(apart: str) -> Target:
            return egress.to(
                base_url, name=f"The engine {instance}", tls_verify=tls_verify, timeout=timeout,
                apart=f"{instance}\n{apart}", breaker=self._breaker,
            )  # fmt: skip

        self._to: Callable[[str], Target] = to
        self._targets: dict[str, Target] = {}

    def target(self, apart: str = "") -> Target:
        """The declared place. ConfigRefused when it is not safe enough for the environment."""
        found = self._targets.get(apart)
        if found is None:
            found = self._targets[apart] = self._to(apart)
        return found

    def ask(
        self, tenant: str | None, method: str, path: str, *, query: Mapping[str, str] | None = None, json: Any = None,
        content: bytes | None = None, headers: Mapping[str, str] | None = None, timeout: float | None = None,
        authorized: Callable[[Secret], Mapping[str, str]] | None = None, raw: bool = False,
    ) -> Answer:  # fmt: skip
        """One call with the tenant's key; `authorized` makes the headers from it, by default `X-API-Key`.

        With `raw` a success is no JSON, and its bytes are the data.

        A key that is refused is looked up once more, since it may have been renewed. EngineUnavailable: no answer, an
        answer that cannot be used, or a key that is refused.
        """
        for again in (True, False):
            reply = self._asked(tenant, method, path, query, json, content, headers, timeout, authorized or _api_key)
            if reply.status != 401:
                break
            self._keyring.forget(tenant)
            if not again:
                refused = EngineUnavailable(
                    f"The engine {self.instance} does not accept the key it is entered with.",
                    why="It answered with status 401.",
                    remedy="Set the present key where the reference of the instance leads.",
                )
                refused.asked = False
                raise refused
        return Answer(reply.status, reply.body) if raw and reply.status == 200 else self._read(reply)

    def public(self, method: str, path: str, *, query: Mapping[str, str] | None = None) -> Answer:
        """One call in nobody's name, and so without a key."""
        reply = self._sent("", method, path, query, None, None, {}, None)
        return self._read(reply)

    def _read(self, reply: Reply) -> Answer:
        """What was said. An error may come from whatever stands before the engine, and need not be JSON."""
        if not reply.body:
            return Answer(reply.status, None)
        try:
            return Answer(reply.status, self.target().answer(reply))
        except EngineUnavailable as error:
            if reply.status >= 400:
                return Answer(reply.status, None)
            error.finished = True
            raise

    def _asked(
        self, tenant: str | None, method: str, path: str, query: Mapping[str, str] | None, json: Any,
        content: bytes | None, headers: Mapping[str, str] | None, timeout: float | None,
        authorized: Callable[[Secret], Mapping[str, str]],
    ) -> Reply:  # fmt: skip
        found = self._keyring.of(tenant)
        reference, own = ("", {}) if found is None else (found[0], dict(authorized(found[1])))
        return self._sent(reference, method, path, query, json, content, {**(headers or {}), **own}, timeout)

    def _sent(
        self, reference: str, method: str, path: str, query: Mapping[str, str] | None, json: Any,
        content: bytes | None, headers: Mapping[str, str], timeout: float | None,
    ) -> Reply:  # fmt: skip
        try:
            return self.target(reference).request(
                method, path, query=query, json=json, content=content, headers=headers, timeout=timeout
            )
        except ConfigRefused as error:
            unsafe = EngineUnavailable(
                f"The engine {self.instance} may not be called.", why=f"{error.what} {error.why}", remedy=error.remedy
            )
            unsafe.asked = False
            raise unsafe from error

    def odd(self, answer: Answer, why: str = "") -> EngineUnavailable:
        """The error for an answer that the engine should not have given; the engine's own words are not repeated."""
        error = EngineUnavailable(
            f"The engine {self.instance} gave no answer that can be used.",
            why=why or f"It answered with status {answer.status}.",
            remedy="Look at the engine's health, then try again.",
        )
        error.finished = True
        return error


def _api_key(secret: Secret) -> Mapping[str, str]:
    return {"x-api-key": secret.reveal()}
