"""A review on the spot: a page on this machine, for one question and one answer, that the person's own browser opens.

The address holds a token that is made for one page, handed to the client for the browser and to nobody else, and no
part of what the model is told. What the agent's own connection says is never an answer. The page answers only to its
own host name (a rebound DNS name is another one), only the browser that opened it first may answer, and only from the
page itself; the token ends with the first answer or with its time.
"""

from __future__ import annotations

import hmac
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from memoranda.errors import MemorandaError
from memoranda.faces.mcp.page import notice_page

LIFE = 600  # seconds that a page waits for its answer
_PATH = re.compile(r"/review/([0-9a-f]{64})")
_BODY = 4096  # bytes that an answer may have
_PATIENCE = 10  # seconds for one request to arrive
_PAGES = 32  # that wait at once; an agent may ask for any number
_OPENED = (
    "Another browser or program has opened this page. If that was not you, reject the note at a terminal: "
    "memoranda review reject."
)
_SAID = {"accept": "It is accepted and will be loaded.", "reject": "It is rejected and will not be loaded."}


@dataclass(slots=True)
class _Sheet:
    """One page: its secrets, when it ends (monotonic seconds), and what was answered."""

    token: str
    number: str
    form: str
    ends: float
    show: Callable[[str, str], str]
    decide: Callable[[str, str], None]
    said: Mapping[str, str]
    cookie: str | None = None
    used: bool = False
    verdict: str | None = None
    answered: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class Offer:
    """A page that waits: its address, and a number by which it is spoken of."""

    number: str
    url: str


class Desk:
    """The pages of one server process. Threads may share it."""

    def __init__(self, random: Callable[[int], bytes], clock: Callable[[], float] = time.monotonic) -> None:
        self._random = random
        self._clock = clock
        self._lock = threading.Lock()
        self._sheets: dict[str, _Sheet] = {}
        self._server: ThreadingHTTPServer | None = None

    def offer(
        self, show: Callable[[str, str], str], decide: Callable[[str, str], None], said: Mapping[str, str] = _SAID
    ) -> Offer:
        """A page for one question: `show(nonce, form)` gives its HTML, `decide(verdict, comment)` carries it out.

        `said` is what the person is told of each verdict.
        """
        secret, form, number = (self._random(32).hex() for _ in range(3))
        with self._lock:
            server = self._listening()
            self._sweep()
            self._sheets[number[:16]] = _Sheet(secret, number[:16], form, self._clock() + LIFE, show, decide, said)
        return Offer(number[:16], f"http://127.0.0.1:{server.server_port}/review/{secret}")

    def wait(self, number: str, seconds: float) -> str | None:
        """The answer of a page, accept or reject, as soon as it is given; None when it is not within these seconds."""
        sheet = self._sheets.get(number)
        if sheet is None or not sheet.answered.wait(seconds):
            return None
        return sheet.verdict

    def waits(self, number: str) -> bool:
        """Whether this page is there, answered or not."""
        with self._lock:
            return number in self._sheets

    def withdraw(self, number: str) -> None:
        """The person does not want to look at it now: the page ends."""
        with self._lock:
            self._sheets.pop(number, None)

    def close(self) -> None:
        with self._lock:
            server, self._server = self._server, None
            self._sheets.clear()
        if server is not None:
            server.shutdown()
            server.server_close()

    def _listening(self) -> ThreadingHTTPServer:
        if self._server is None:
            self._server = _Server(("127.0.0.1", 0), _handler_of(self))
            self._server.daemon_threads = True
            threading.Thread(target=self._server.serve_forever, name="review page", daemon=True).start()
        return self._server

    def _sweep(self) -> None:
        """Pages whose time is over go, and the oldest when there are too many."""
        now = self._clock()
        for number in [n for n, sheet in self._sheets.items() if now >= sheet.ends]:
            del self._sheets[number]
        while len(self._sheets) >= _PAGES:
            del self._sheets[next(iter(self._sheets))]

    def find(self, token: str) -> _Sheet | None:
        """The page of a token that is still good."""
        with self._lock:
            found = [s for s in self._sheets.values() if hmac.compare_digest(s.token, token)]
            return found[0] if found and not found[0].used and self._clock() < found[0].ends else None

    def first(self, sheet: _Sheet, cookie: str | None) -> str | None:
        """The cookie of the browser that may look and answer: the first one's; None for any other browser."""
        with self._lock:
            if sheet.cookie is None:
                sheet.cookie = self._random(32).hex()
                return sheet.cookie
            same = cookie is not None and hmac.compare_digest(sheet.cookie, cookie)
            return sheet.cookie if same else None

    def use(self, sheet: _Sheet, cookie: str | None, form: str) -> bool:
        """Uses a page up; False when it was, or when this is not an answer from its own page."""
        with self._lock:
            own = cookie is not None and sheet.cookie is not None and hmac.compare_digest(sheet.cookie, cookie)
            if sheet.used or not own or not hmac.compare_digest(sheet.form, form):
                return False
            sheet.used = True
            return True

    def nonce(self) -> str:
        return self._random(16).hex()


class _Server(ThreadingHTTPServer):
    """Says nothing on standard error when a browser goes away."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        del request, client_address


def _handler_of(desk: Desk) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE

        def do_GET(self) -> None:
            sheet = self._sheet()
            if sheet is None:
                return
            if "prefetch" in self.headers.get("Sec-Purpose", ""):
                self._say(503, "Not yet", "This page is opened once, by a person.")
                return
            cookie = desk.first(sheet, self._cookie())
            if cookie is None:
                self._say(403, "Opened already", _OPENED)
                return
            nonce = desk.nonce()
            try:
                page = sheet.show(nonce, sheet.form)
            except MemorandaError as error:
                self._say(409, "Nothing to review", error.what)
                return
            self._send(200, page, nonce, f"review={cookie}; HttpOnly; SameSite=Strict; Path={self.path}")

        def do_POST(self) -> None:
            sheet = self._sheet()
            if sheet is None:
                return
            own = f"http://127.0.0.1:{self._port()}"
            site = self.headers.get("Sec-Fetch-Site", "same-origin")
            if self.headers.get("Origin") != own or site != "same-origin":
                self._say(403, "Not from here", "An answer is given on the page itself.")
                return
            answer = self._answer()
            verdict = answer.get("verdict", "")
            if verdict not in ("accept", "reject"):
                self._say(400, "No answer", "Choose one of the two buttons.")
                return
            if not desk.use(sheet, self._cookie(), answer.get("form", "")):
                self._say(403, "Not from here", "An answer is given on the page itself, once.")
                return
            try:
                sheet.decide(verdict, answer.get("comment", "")[:500])
            except MemorandaError as error:
                self._say(409, "Nothing was decided", str(error))
                return
            sheet.verdict = verdict
            sheet.answered.set()
            self._say(200, "Done", f"{sheet.said[verdict]} You can close this page.")

        def _sheet(self) -> _Sheet | None:
            if self.headers.get_all("Host") != [f"127.0.0.1:{self._port()}"]:
                self._say(403, "Not this host", "This page has one address.")
                return None
            match = _PATH.fullmatch(self.path)
            sheet = desk.find(match[1]) if match else None
            if sheet is None:
                self._say(404, "Nothing here", "The page was answered, its time is over, or it never was.")
            return sheet

        def _port(self) -> int:
            return self.server.server_port  # type: ignore[attr-defined, no-any-return]

        def _cookie(self) -> str | None:
            found = re.search(r"(?:^|;\s*)review=([0-9a-f]{64})(?:;|$)", self.headers.get("Cookie", ""))
            return found[1] if found else None

        def _answer(self) -> dict[str, str]:
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or len(length) > 6 or int(length) > _BODY:
                return {}
            fields = parse_qs(self.rfile.read(int(length)).decode("utf-8", "replace"), max_num_fields=10)
            return {name: values[0] for name, values in fields.items()}

        def _say(self, status: int, title: str, text: str) -> None:
            nonce = desk.nonce()
            self._send(status, notice_page(title, text, nonce), nonce)

        def _send(self, status: int, page: str, nonce: str, cookie: str | None = None) -> None:
            data = page.encode()
            self.send_response_only(status)
            policy = f"default-src 'none'; style-src 'nonce-{nonce}'; form-action 'self'; base-uri 'none'"
            for name, value in (
                ("Content-Type", "text/html; charset=utf-8"),
                ("Content-Length", str(len(data))),
                ("Content-Security-Policy", f"{policy}; frame-ancestors 'none'"),
                ("Cache-Control", "no-store"),
                ("Referrer-Policy", "same-origin"),
                ("X-Content-Type-Options", "nosniff"),
                ("Cross-Origin-Opener-Policy", "same-origin"),
                ("Cross-Origin-Resource-Policy", "same-origin"),
                ("Connection", "close"),
            ):
                self.send_header(name, value)
            if cookie is not None:
                self.send_header("Set-Cookie", cookie)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: addresses of pages are secrets."""

    return Handler
