"""What can go wrong with an engine elsewhere, by name; the same of Mem0 and of Cognee."""

from __future__ import annotations

from collections.abc import Callable

from tests.cognee_standin import Server
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


def of_mem0(server: Mem0Server) -> Callable[[str | None], None]:
    """Makes the stand-in for Mem0 answer every call with a fault, until it is told None."""

    def breaks(fault: str | None) -> None:
        if fault is None:
            server.fault = None
            return
        head = b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n"
        cut = {
            "reset mid-body": Answer(raw=head + b'{"results": ['),
            "a byte a second": Answer(raw=head + b"{" * 60, drip=1.0),
        }
        answer = cut[fault] if fault in cut else Answer(*ANSWERED[fault])
        server.fault = lambda *_: answer

    return breaks


def of_cognee(server: Server) -> Callable[[str | None], None]:
    """The same for Cognee."""

    def breaks(fault: str | None) -> None:
        if fault is None:
            server.always = None
        else:
            server.always = {"reset mid-body": "reset", "a byte a second": "slow"}.get(fault) or ANSWERED[fault]

    return breaks
