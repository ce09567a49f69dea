"""A review on the spot: only the person's browser answers, only on the page itself, once."""

from __future__ import annotations

import http.client
import os
import re
from collections.abc import Iterator
from urllib.parse import urlencode, urlsplit

import pytest

from memoranda.errors import Conflict
from memoranda.faces.mcp.desk import LIFE, Desk, Offer
from memoranda.faces.mcp.page import review_page, visible
from memoranda.operations.reviewing import Evidence, Waiting


class Browser:
    """What a browser sends; every part of it can be made to lie."""

    def __init__(self, offer: Offer) -> None:
        self.url = urlsplit(offer.url)
        self.cookie = ""
        self.form = ""

    def ask(
        self, method: str, path: str | None = None, body: str = "", **headers: str
    ) -> tuple[int, str, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.url.port or 0, timeout=10)
        sent = {"Host": self.url.netloc} | ({"Cookie": self.cookie} if self.cookie else {})
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path or self.url.path, skip_host=True)
        for name, value in sent.items():
            connection.putheader(name, value)
        if body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body.encode() if body else None)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text, {name.lower(): value for name, value in answer.getheaders()}

    def open(self) -> str:
        status, text, headers = self.ask("GET")
        assert status == 200, text
        self.cookie = headers["set-cookie"].partition(";")[0]
        (self.form,) = re.findall(r'name="form" value="([0-9a-f]+)"', text)
        return text

    def answer(self, verdict: str = "accept", *, form: str | None = None, **headers: str) -> tuple[int, str]:
        own = {"Origin": f"http://{self.url.netloc}", "Content-Type": "application/x-www-form-urlencoded"} | headers
        body = urlencode({"verdict": verdict, "form": self.form if form is None else form, "comment": "read"})
        return self.ask("POST", body=body, **own)[:2]


class Told(list[tuple[str, str]]):
    """The decisions that were carried out."""

    time = 0.0


ITEM = Waiting(
    "mem_4kq27vxjd83n5r0t", "nas://notes/memory/notes/a.md@" + "0" * 40, "memory/notes/a.md", "notes", "quarantined",
    "fact", "pay", "Pay <script>alert(1)</script> \u202eevil\u200b", ("mem_old1",),
    ({"kind": "tool", "source": "https://x.example/<b>", "reason": "a page"},), "cleo", "ses_1", None, None,
    (Evidence("nas://notes/j.md@1", "Mail: pay"), Evidence("https://x.example/", None)),
)  # fmt: skip


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def desk(told: Told) -> Iterator[Desk]:
    desk = Desk(os.urandom, lambda: told.time)
    yield desk
    desk.close()


@pytest.fixture
def offer(desk: Desk, told: Told) -> Offer:
    def decide(verdict: str, comment: str) -> None:
        told.append((verdict, comment))

    return desk.offer(lambda nonce, form: review_page(ITEM, "cleo", (), nonce, form), decide)


@pytest.mark.parametrize("verdict", ["accept", "reject"])
def test_a_person_answers_once(desk: Desk, offer: Offer, told: Told, verdict: str) -> None:
    browser = Browser(offer)
    browser.open()
    browser.open()  # looking twice is no answer
    assert desk.wait(offer.number, 0) is None and told == []
    assert browser.answer(verdict)[0] == 200
    assert told == [(verdict, "read")] and desk.wait(offer.number, 1) == verdict
    for again in (browser.ask("GET")[0], browser.answer("accept")[0]):
        assert again == 404
    assert len(told) == 1


def test_the_page_shows_words_as_data_and_what_cannot_be_seen(offer: Offer) -> None:
    text = Browser(offer).open()
    assert "<script" not in text and "&lt;script&gt;" in text and "&lt;b&gt;" in text
    assert "\u202e" not in text and "\u200b" not in text and "U+202E" in text and "U+200B" in text
    for word in ("mem_old1", "a page", "Mail: pay", "https://x.example/", "ses_1"):
        assert word in text
    assert visible("née ÷ 名前\n") == "née ÷ 名前\n" and visible("\x1b[2J") == "<mark>U+001B</mark>[2J"


def test_no_other_site_frames_it_caches_it_or_runs_in_it(offer: Offer) -> None:
    _, _, headers = Browser(offer).ask("GET")
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "script" not in policy
    assert headers["cache-control"] == "no-store" and headers["x-content-type-options"] == "nosniff"
    assert "HttpOnly" in headers["set-cookie"] and "SameSite=Strict" in headers["set-cookie"]
    assert "server" not in headers and "access-control-allow-origin" not in headers


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1", "evil.example:{port}", "localhost:{port}"])
def test_a_rebound_name_is_another_host(offer: Offer, told: Told, host: str) -> None:
    browser = Browser(offer)
    browser.open()
    name = host.format(port=browser.url.port)
    status, text, _ = browser.ask("GET", Host=name)
    assert status == 403 and "Pay" not in text
    assert browser.answer(Host=name, Origin=f"http://{name}")[0] == 403
    assert told == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_an_answer_from_another_page_is_none(offer: Offer, told: Told, headers: dict[str, str]) -> None:
    browser = Browser(offer)
    browser.open()
    assert browser.answer(**headers)[0] == 403 and told == []
    assert browser.answer()[0] == 200, "and the page still takes the person's own"


def test_who_knows_the_address_but_not_the_page_answers_nothing(offer: Offer, told: Told) -> None:
    person, other = Browser(offer), Browser(offer)
    person.open()
    status, text, _ = other.ask("GET")
    assert status == 403 and "Pay" not in text and "Opened already" in text
    other.form = person.form
    assert other.answer()[0] == 403
    other.cookie = "review=" + "0" * 64
    assert other.answer()[0] == 403
    assert person.answer(form="0" * 64)[0] == 403 and person.answer("perhaps")[0] == 400
    assert told == []
    never = Browser(offer)
    assert never.answer(form="0" * 64)[0] == 403


def test_an_answer_before_anybody_looked_is_none(offer: Offer, told: Told) -> None:
    browser = Browser(offer)
    assert browser.answer()[0] == 403 and told == []


@pytest.mark.parametrize("path", ["/", "/review/", "/review/" + "0" * 64, "/review/../review", "/favicon.ico", "*"])
def test_other_addresses_lead_nowhere(offer: Offer, path: str) -> None:
    assert Browser(offer).ask("GET", path)[0] == 404


def test_a_preview_uses_nothing_up(offer: Offer) -> None:
    browser = Browser(offer)
    assert browser.ask("GET", Sec_Purpose="prefetch")[0] == 503
    assert browser.ask("HEAD")[0] == 501 and browser.ask("PUT")[0] == 501
    browser.open()


def test_a_page_ends_with_its_time_and_when_it_is_withdrawn(desk: Desk, offer: Offer, told: Told) -> None:
    browser = Browser(offer)
    browser.open()
    told.time += LIFE
    assert browser.answer()[0] == 404 and browser.ask("GET")[0] == 404
    told.time = 0
    desk.withdraw(offer.number)
    assert browser.answer()[0] == 404 and told == []


def test_many_pages_push_out_the_oldest(desk: Desk, offer: Offer) -> None:
    for _ in range(40):
        last = desk.offer(lambda nonce, form: review_page(ITEM, "cleo", (), nonce, form), lambda *_: None)
    assert Browser(offer).ask("GET")[0] == 404
    Browser(last).open()


def test_too_much_is_no_answer(offer: Offer, told: Told) -> None:
    browser = Browser(offer)
    browser.open()
    body = urlencode({"verdict": "accept", "form": browser.form, "comment": "x" * 5000})
    assert browser.ask("POST", body=body, Origin=f"http://{browser.url.netloc}")[0] == 400 and told == []


def test_what_cannot_be_decided_says_so(desk: Desk) -> None:
    def changed(_verdict: str, _comment: str) -> None:
        raise Conflict("memory/notes/a.md has changed since.")

    offer = desk.offer(lambda nonce, form: review_page(ITEM, "cleo", (), nonce, form), changed)
    browser = Browser(offer)
    browser.open()
    status, text = browser.answer()
    assert status == 409 and "has changed since" in text and desk.wait(offer.number, 0) is None
