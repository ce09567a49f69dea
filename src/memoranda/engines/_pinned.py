"""The connections of the egress client: to the address that was looked up, and no byte later than the call's end."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import httpcore2

from memoranda.engines.addresses import forbidden

Resolve = Callable[[str, int], Sequence[str]]  # (host, port) -> addresses, in the order to try

_WHOLE = 65_536  # bytes of a request that leave as one

_deadline = threading.local()  # `.at`: when the call of this thread ends, by time.monotonic()


def call_ends(at: float | None) -> None:
    """Sets when the call that this thread is about to make has to be over."""
    _deadline.at = at


def _left(timeout: float | None) -> float:
    """Seconds that this step may take; raises when the call is over."""
    at = getattr(_deadline, "at", None)
    left = (at - time.monotonic()) if at is not None else 30.0
    if left <= 0:
        raise httpcore2.ReadTimeout("the call took too long")
    return min(left, timeout) if timeout is not None else left


def system_resolve(host: str, port: int) -> list[str]:
    """What the system's resolver says of a name."""
    return list(dict.fromkeys(str(told[4][0]) for told in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))


class PinnedBackend(httpcore2.NetworkBackend):
    """Looks a name up once for a connection, and connects to what it was told then."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._plain = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connects within what is left of the call."""
        addresses = self._addresses(host, port, _left(timeout))
        if not addresses or any(forbidden(address) for address in addresses):
            raise httpcore2.ConnectError("the name leads nowhere that may be asked")
        failed: Exception | None = None
        for address in addresses:
            try:
                stream = self._plain.connect_tcp(address, port, _left(timeout), local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
            else:
                return _Stream(stream)
        raise failed or httpcore2.ConnectError("no address")

    def _addresses(self, host: str, port: int, timeout: float) -> Sequence[str]:
        try:
            return [str(ipaddress.ip_address(host.strip("[]")))]
        except ValueError:
            pass
        told: list[Sequence[str]] = []
        failed: list[OSError] = []

        def look() -> None:
            try:
                told.append(self._resolve(host, port))
            except OSError as error:
                failed.append(error)

        # A resolver has no time-out that could be set, so it is not waited for longer than the call may take.
        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        thread.join(timeout)
        if failed or not told:
            raise httpcore2.ConnectError("the name is not known" if failed else "the name was not found in time")
        return told[0]


class _Stream(httpcore2.NetworkStream):
    """A connection whose every step ends with the call that it is made for.

    A small request leaves whole when its answer is waited for: headers and body as two packets are two wake-ups at
    either end.
    """

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner
        self._held = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            self._send(timeout)
        except httpcore2.WriteError:
            pass  # it may have answered all the same, as one does that closes before it has read everything
        return self._inner.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._held += buffer
        if len(self._held) > _WHOLE:
            self._send(timeout)

    def _send(self, timeout: float | None) -> None:
        held, self._held = self._held, b""
        if held:
            self._inner.write(held, _left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _left(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
