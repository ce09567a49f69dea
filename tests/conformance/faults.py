"""What can go wrong with an engine elsewhere, by name; the same of Mem0 and of Cognee."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from typing import Any, Protocol

from memoranda.engines.connection import Connection
from tests.cognee_standin import Server, hashed
from tests.engines.component import Answer
from tests.engines.mem0_standin import Mem0Server

FULL = b'{"detail": "No space left on device"}'
# Answers: a status and a body. What the engine was asked was not done.
ANSWERED: dict[str, tuple[int, bytes]] = {
    "a full disk": (500, FULL), "wrong JSON": (200, b"{'results': []}"), "a page": (502, b"<html>Bad gateway</html>"),
    "200 with an error inside": (200, b'{"error": "boom"}'), "200 with nothing": (200, b""),
}  # fmt: skip
CUT = ("reset mid-body", "a byte a second")
FAULTS = (*ANSWERED, *CUT)


class Elsewhere(Protocol):
    """What lies elsewhere, as far as a test makes it fail."""

    def breaks(self, fault: str | None) -> None:
        """From now on it answers every call with this fault; None: as it should again, and it is not left alone."""

    def rotates(self, *, told: bool) -> None:
        """Its key is another one from now on; `told`: the reference that leads to the key has the new one."""

    def ends(self) -> None:
        """Nobody listens there any more."""


class OfMem0:
    """The stand-in for Mem0, and the connection that leads there."""

    def __init__(self, server: Mem0Server, connection: Connection) -> None:
        self._server, self._connection = server, connection

    def breaks(self, fault: str | None) -> None:
        self._connection._breaker.answered()
        if fault is None:
            self._server.fault = None
            return
        head = b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n"
        cut = {
            "reset mid-body": Answer(raw=head + b'{"results": ['),
            "a byte a second": Answer(raw=head + b"{" * 60, drip=1.0),
        }
        answer = cut[fault] if fault in cut else Answer(*ANSWERED[fault])
        self._server.fault = lambda *_: answer

    def rotates(self, *, told: bool) -> None:
        self._connection._breaker.answered()
        keyring: Any = self._connection._keyring
        fresh = f"{keyring.key}-renewed"
        self._server.keys = {fresh}
        keyring.next = fresh if told else keyring.key

    def ends(self) -> None:
        self._server.component.shutdown()
        self._server.component.server_close()
        for one in self._server.component.open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class OfCognee:
    """The stand-in for Cognee, likewise."""

    def __init__(self, server: Server, connection: Connection) -> None:
        self._server, self._connection = server, connection

    def breaks(self, fault: str | None) -> None:
        self._connection._breaker.answered()
        if fault is None:
            self._server.always = None
        else:
            self._server.always = {"reset mid-body": "reset", "a byte a second": "slow"}.get(fault) or ANSWERED[fault]

    def rotates(self, *, told: bool) -> None:
        self._connection._breaker.answered()
        keyring: Any = self._connection._keyring
        user, _, password = keyring.key.partition(":")
        with self._server.cognee.lock:
            self._server.cognee.told["users"][user]["hashed_password"] = hashed(f"{password}-renewed")
        keyring.next = f"{user}:{password}-renewed" if told else keyring.key

    def ends(self) -> None:
        self._server.gone = True
        self._server.shutdown()
        self._server.server_close()


class OfBoth:
    def __init__(self, several: Sequence[Elsewhere]) -> None:
        self._several = several

    def breaks(self, fault: str | None) -> None:
        for one in self._several:
            one.breaks(fault)

    def rotates(self, *, told: bool) -> None:
        for one in self._several:
            one.rotates(told=told)

    def ends(self) -> None:
        for one in self._several:
            one.ends()
