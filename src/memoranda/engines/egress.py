"""The one way out: HTTP to a host and port that somebody declared, and to nothing else.

Redirects are refused, a name is looked up once for a connection and that address is spoken to, no proxy and no
credential comes from the environment, TLS is verified against the system's authorities and the Manager's, a call as a
whole takes no longer than its time-out, an answer is no longer than its bound, and `traceparent` goes with every call.
It stands on httpcore2, which httpx2 itself stands on, because that neither follows, nor decodes, nor looks into the
environment; so there is nothing to be switched off.
"""

from __future__ import annotations

import json as jsonlib
import logging
import os
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode, urlsplit

import httpcore2

from memoranda.engines._pinned import PinnedBackend, Resolve, call_ends, system_resolve
from memoranda.engines.addresses import host_is_plain
from memoranda.engines.breaker import Breaker, moment_in
from memoranda.errors import ConfigRefused, EngineUnavailable, InvalidInput, Unavailable
from memoranda.values import dataclass

# At its lowest level it writes down the headers of every answer, and those are the other side's words.
logging.getLogger("httpcore2").setLevel(logging.INFO)

MOST = 8 * 1024 * 1024  # bytes of an answer, where nothing else is said
# Seconds that a connection is kept for the next call; then a name is looked up again. Shorter than servers keep theirs
# (uvicorn: 5), so that none is closed by them just when it is used.
_IDLE = 2.0
_CONNECTIONS = 64  # to one host at a time
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~!$&'()*+,;=:@%-]*)*")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

Origin = tuple[str, str, int, bool, str]  # scheme, host, port, whether TLS is verified, and whose connections they are

_carried: ContextVar[str | None] = ContextVar("traceparent", default=None)
_until: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def on_behalf(traceparent: str | None = None, deadline: float | None = None) -> Iterator[None]:
    """Calls inside are made for this trace, and end by `deadline` (a point of `time.monotonic()`)."""
    tokens = _carried.set(traceparent), _until.set(deadline)
    try:
        yield
    finally:
        _carried.reset(tokens[0])
        _until.reset(tokens[1])


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Calls inside end in so many seconds, whatever deadline there was: to find out what came of one that it ended."""
    token = _until.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(token)


@contextmanager
def no_later_than(seconds: float) -> Iterator[None]:
    """Calls inside end in so many seconds, or earlier where there is an earlier deadline."""
    until, ends = _until.get(), time.monotonic() + seconds
    token = _until.set(ends if until is None else min(until, ends))
    try:
        yield
    finally:
        _until.reset(token)


@dataclass(frozen=True, slots=True)
class EgressSettings:
    """What holds for every call. `environment` is development, staging or production; any other word is production.

    `ca_file` is EAI_MEMORY_ENGINES_CA_FILE (PEM), `allow_http` is EAI_MEMORY_ENGINES_ALLOW_HTTP.
    """

    environment: str = "production"
    ca_file: Path | None = None
    allow_http: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: header names are in lower case; of several with one name, the last."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Egress:
    """Makes targets; one for a process. Thread-safe."""

    def __init__(
        self,
        settings: EgressSettings,
        *,
        resolve: Resolve = system_resolve,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.settings = settings
        self._backend = PinnedBackend(resolve)
        self._random = random
        self._lock = threading.Lock()
        self._pools: dict[Origin, httpcore2.ConnectionPool] = {}
        self._contexts: dict[bool, ssl.SSLContext] = {}

    def to(
        self,
        base_url: str,
        *,
        name: str,
        tls_verify: bool = True,
        timeout: float = 30.0,
        most: int = MOST,
        failing: type[Unavailable] = EngineUnavailable,
        apart: str = "",
        breaker: Breaker | None = None,
    ) -> Target:
        """What lies at `base_url` (scheme, host, port and perhaps a path), and nothing else.

        `name` is what errors call it, `failing` the error that they are, `timeout` the seconds of a whole call, `most`
        the bytes of an answer. Connections are shared by the targets with the same `apart`, and by no others: an
        instance and a credential have their own. With `breaker` it is left alone for a while when it does not answer.
        ConfigRefused: no such URL, or not safe enough for the environment.
        """
        parts = _declared(base_url, name)
        secure = parts.scheme == "https"
        guarded = self.settings.environment != "development"
        if guarded and not secure and not self.settings.allow_http:
            raise ConfigRefused(
                f"{name} is declared with plain HTTP.",
                why=f"In {self.settings.environment} nothing is sent unencrypted.",
                remedy="Declare https://, or set EAI_MEMORY_ENGINES_ALLOW_HTTP.",
            )
        if guarded and not tls_verify:
            raise ConfigRefused(
                f"{name} is declared with tls_verify false.",
                why=f"In {self.settings.environment} every certificate is verified.",
                remedy="Give the authority's certificate by EAI_MEMORY_ENGINES_CA_FILE.",
            )
        port = parts.port or (443 if secure else 80)
        origin = parts.scheme, parts.hostname or "", port, tls_verify, apart
        return Target(self, name, origin, parts.path.rstrip("/"), timeout, most, failing, breaker)

    def close(self) -> None:
        """Closes all connections."""
        with self._lock:
            for pool in self._pools.values():
                pool.close()
            self._pools.clear()

    def traceparent(self) -> str:
        """The trace that a call belongs to: the one it is made for, the current span's, or a new one."""
        carried = _carried.get()
        if carried and _TRACEPARENT.fullmatch(carried):
            return carried
        return _of_span() or f"00-{self._random(16).hex()}-{self._random(8).hex()}-00"

    def pool(self, origin: Origin) -> httpcore2.ConnectionPool:
        """The connections to one declared host and port."""
        with self._lock:
            pool = self._pools.get(origin)
            if pool is None:
                pool = self._pools[origin] = httpcore2.ConnectionPool(
                    ssl_context=self._context(origin[3]),
                    max_connections=_CONNECTIONS,
                    keepalive_expiry=_IDLE,
                    network_backend=self._backend,
                )
            return pool

    def _context(self, verify: bool) -> ssl.SSLContext:
        if verify not in self._contexts:
            context = httpcore2.default_ssl_context()
            if self.settings.ca_file is not None:
                try:
                    context.load_verify_locations(self.settings.ca_file)
                except (OSError, ssl.SSLError) as error:
                    raise ConfigRefused(
                        f"The authorities in {self.settings.ca_file} cannot be read.",
                        why=str(error),
                        remedy="EAI_MEMORY_ENGINES_CA_FILE names a file with certificates in PEM.",
                    ) from error
            if not verify:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            self._contexts[verify] = context
        return self._contexts[verify]


class Target:
    """One declared host and port; made by `Egress.to`."""

    def __init__(
        self,
        egress: Egress,
        name: str,
        origin: Origin,
        base: str,
        timeout: float,
        most: int,
        failing: type[Unavailable],
        breaker: Breaker | None,
    ) -> None:
        self._egress, self.name, self._origin, self._base = egress, name, origin, base
        self._timeout, self._most, self._failing, self._breaker = timeout, most, failing, breaker
        scheme, host, port, *_ = origin
        host = f"[{host}]" if ":" in host else host
        self._host = host if port == (443 if scheme == "https" else 80) else f"{host}:{port}"
        egress.pool(origin)  # authorities that cannot be read are refused now

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        json: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """One call to `path` below the declared URL, or with an empty one to that itself.

        Any status but a redirect is an answer.

        `json` is sent as JSON, `content` as it is. The declared error when there is no answer in time, none at all,
        one that is too long, or a redirect; InvalidInput when the path would lead elsewhere.
        """
        if not _PATH.fullmatch(path):
            raise InvalidInput(f"{name_of(path)} is not a path of {self.name}.")
        sent = {
            "host": self._host,
            "accept": "application/json",
            "accept-encoding": "identity",
            "traceparent": self._egress.traceparent(),
            "user-agent": "memoranda",
        }
        if json is not None:
            content = jsonlib.dumps(json, ensure_ascii=False, separators=(",", ":")).encode()
            sent["content-type"] = "application/json"
        if content is not None or method not in ("GET", "HEAD", "DELETE"):
            sent["content-length"] = str(len(content or b""))
        sent.update((name.lower(), value) for name, value in (headers or {}).items())
        scheme, host, port, *_ = self._origin
        target = (self._base + path or "/") + (f"?{urlencode(query)}" if query else "")
        url = httpcore2.URL(scheme=scheme, host=host, port=port, target=target)
        ends = time.monotonic() + min(timeout or self._timeout, self._timeout)
        until = _until.get()
        own = until is None or ends <= until  # it has all the time that it was given, and not only a caller's rest
        self._refuse_paused()
        try:
            reply = self._made(method, url, list(sent.items()), content, ends if until is None else min(ends, until))
        except BaseException as error:
            self._tell_breaker(error, own)
            raise
        self._tell_breaker(None, own)
        return reply

    def _refuse_paused(self) -> None:
        waits = None if self._breaker is None else self._breaker.waits()
        if waits is not None:
            paused = self._failing(
                f"{self.name} is left alone for the moment.",
                why="It has not answered several times in a row.",
                remedy=f"It is asked again at {moment_in(waits)}, in {waits:.0f} s.",
            )
            paused.asked, paused.retry_after = False, waits
            raise paused

    def _tell_breaker(self, error: BaseException | None, own: bool) -> None:
        if self._breaker is None:
            return
        if error is None:
            self._breaker.answered()
        elif isinstance(error, self._failing) and own:
            self._breaker.failed()
        else:
            self._breaker.undecided()

    def answer(self, reply: Reply) -> Any:
        """The JSON of an answer; the declared error when it is none."""
        try:
            return jsonlib.loads(reply.body, parse_constant=_no_number)
        except (ValueError, RecursionError):
            self.fail("It answered something that is no JSON.")

    def fail(self, why: str) -> NoReturn:
        """Raises the declared error: `why` says what was wrong with the answer."""
        raise self._unusable(why)

    def _unusable(self, why: str) -> Unavailable:
        return self._failing(
            f"{self.name} gave no answer that can be used.", why=why, remedy="Check that it runs and can be reached."
        )

    def _made(
        self, method: str, url: httpcore2.URL, headers: list[tuple[str, str]], content: bytes | None, ends: float
    ) -> Reply:
        call_ends(ends)
        left = max(ends - time.monotonic(), 0.001)
        limits = {"timeout": {"connect": left, "read": left, "write": left, "pool": left}}
        try:
            with self._egress.pool(self._origin).stream(
                method, url, headers=headers, content=content, extensions=limits
            ) as response:
                told = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
                if 300 <= response.status < 400:
                    self.fail("It wanted to send us elsewhere, and redirects are refused.")
                if told.get("content-encoding", "identity") != "identity":
                    self.fail("It answered in an encoding that was not asked for.")
                return Reply(response.status, told, self._body(response))
        except httpcore2.TimeoutException as error:
            raise self._unreachable("It did not answer in time.", error) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise self._unreachable(_said(error), error) from error
        finally:
            call_ends(None)

    def _body(self, response: httpcore2.Response) -> bytes:
        parts, size = [], 0
        for part in response.iter_stream():
            parts.append(part)
            size += len(part)
            if size > self._most:
                too_long = self._unusable(f"Its answer is longer than {self._most} bytes.")
                too_long.finished = True
                raise too_long
        return b"".join(parts)

    def _unreachable(self, why: str, error: Exception) -> Unavailable:
        found = self._failing(
            f"{self.name} does not answer.", why=why, remedy="Check that it runs and can be reached; then try again."
        )
        found.asked = not isinstance(error, _NEVER_ASKED)
        return found


_NEVER_ASKED = (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.PoolTimeout, httpcore2.LocalProtocolError)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def name_of(path: str) -> str:
    """A path as an error may show it: short, and without what follows a question mark."""
    return repr(path.partition("?")[0][:60])


def _declared(base_url: str, name: str) -> Any:
    try:
        parts = urlsplit(base_url)
        port_ok = parts.port != 0
    except ValueError:
        parts, port_ok = urlsplit(""), False
    host = parts.hostname or ""
    if (
        not port_ok
        or parts.scheme not in ("http", "https")
        or not host_is_plain(host)
        or "@" in parts.netloc
        or parts.query
        or parts.fragment
        or not _PATH.fullmatch(parts.path)
    ):
        raise ConfigRefused(
            f"The address of {name} is not one that can be called.",
            why="It has to be http:// or https://, a host, perhaps a port and a path, and nothing else. "
            "An address is written in its usual form, and no cloud's metadata service is called.",
        )
    return parts


def _said(error: Exception) -> str:
    """What went wrong, without an address."""
    cause = error.__cause__ or error.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"Its certificate is not one that is trusted here: {cause.verify_message}."
    if isinstance(error, httpcore2.ConnectError):
        return "It cannot be reached."
    return "It broke off, or does not speak HTTP."


def _of_span() -> str | None:
    """The current span of OpenTelemetry as `traceparent`; None where there is none."""
    from opentelemetry import trace

    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return None
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"
