"""The egress client, attacked by real servers: what leads elsewhere, what never ends, what is not who it says."""

from __future__ import annotations

import ast
import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.engines.breaker import FAILURES, PAUSE, Breaker
from memoranda.engines.egress import Egress, EgressSettings, Target, on_behalf
from memoranda.errors import ComponentUnavailable, ConfigRefused, EngineUnavailable, InvalidInput
from tests.engines.component import Answer, Asked, Authority, Component, standing

DEVELOPMENT = EgressSettings(environment="development")
Making = Callable[..., Target]


def plain(_: Asked) -> Answer:
    return Answer(body={"fine": True})


@pytest.fixture
def making() -> Iterator[Making]:
    made: list[Egress] = []

    def make(url: str, settings: EgressSettings = DEVELOPMENT, resolve: Any = None, **more: Any) -> Target:
        egress = Egress(settings, resolve=resolve) if resolve else Egress(settings)
        made.append(egress)
        return egress.to(url, name="the engine", **{"timeout": 2.0, **more})

    yield make
    for egress in made:
        egress.close()


@pytest.fixture
def server() -> Iterator[Component]:
    with standing(plain) as component:
        yield component


def test_a_call_goes_to_the_declared_place_and_comes_back(making: Making, server: Component) -> None:
    target = making(f"{server.url}/base/")
    reply = target.request("POST", "/v1/things", query={"a": "b c"}, json={"x": "é"}, headers={"X-Key": "k"})
    assert (reply.status, target.answer(reply)) == (200, {"fine": True})
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.json) == ("POST", "/base/v1/things?a=b+c", {"x": "é"})
    assert asked.headers["host"] == f"127.0.0.1:{server.port}"
    assert asked.headers["x-key"] == "k" and asked.headers["content-type"] == "application/json"


def test_many_threads_share_the_connections_and_each_gets_its_own_answer(making: Making) -> None:
    with standing(lambda asked: Answer(body=asked.json)) as server:
        target, wrong = making(server.url, timeout=600.0), []

        def run(mine: int) -> None:
            for n in range(20):
                if target.answer(target.request("POST", "/", json=[mine, n])) != [mine, n]:
                    wrong.append((mine, n))

        threads = [threading.Thread(target=run, args=(n,)) for n in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong and len(server.asked) == 240


def test_a_server_that_closes_each_connection_is_called_again(making: Making) -> None:
    with standing(lambda _: Answer(body={}, headers={"connection": "close"})) as server:
        target = making(server.url)
        for _ in range(3):
            assert target.request("GET", "/").status == 200


def test_an_empty_path_is_the_declared_url_itself(making: Making, server: Component) -> None:
    making(f"{server.url}/oidc/keys").request("GET", "")
    making(server.url).request("GET", "", query={"a": "b"})
    assert [asked.path for asked in server.asked] == ["/oidc/keys", "/?a=b"]


def test_one_connection_serves_several_calls(making: Making, server: Component) -> None:
    target = making(server.url)
    for _ in range(3):
        target.request("GET", "/")
    assert len({asked.client for asked in server.asked}) == 1


@pytest.mark.requirement("P-064", "P-065")
@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308, 399])
def test_a_redirect_is_refused_and_its_place_never_called(making: Making, status: int) -> None:
    with standing(plain) as other:
        with standing(lambda _: Answer(status, headers={"location": f"{other.url}/stolen"})) as server:
            with pytest.raises(EngineUnavailable, match="redirects are refused"):
                making(server.url).request("POST", "/", json={"secret": 1}, headers={"authorization": "Bearer s"})
            assert len(server.asked) == 1
        assert other.asked == []


@pytest.mark.requirement("P-065")
@pytest.mark.parametrize("status", [200, 201, 202, 401, 503])
def test_no_word_of_an_answer_leads_elsewhere(making: Making, status: int) -> None:
    """Neither a header that only a redirect would have, nor one that browsers follow, nor the body itself."""
    with standing(plain) as other:
        headers = {
            "location": f"{other.url}/a", "content-location": f"{other.url}/b", "refresh": f"0; url={other.url}/c",
            "link": f'<{other.url}/d>; rel="canonical"', "alt-svc": f'http/1.1="127.0.0.1:{other.port}"',
        }  # fmt: skip
        body = f'<html><meta http-equiv="refresh" content="0; url={other.url}/e"><script>location="{other.url}"'
        with standing(lambda _: Answer(status, body.encode(), headers)) as server:
            target = making(server.url)
            for _ in range(2):
                assert target.request("GET", "/").status == status
            assert len(server.asked) == 2
        assert other.asked == []


@pytest.mark.parametrize(
    "path",
    ["http://elsewhere/", "//elsewhere/x\n", "x", "/../admin", "/a/../b", "/a/..", "/a?b=c", "/a#b", "/a b",
     "/a\r\nHost: x", "/é"],
)  # fmt: skip
def test_a_path_that_could_lead_elsewhere_is_not_called(making: Making, server: Component, path: str) -> None:
    with pytest.raises(InvalidInput):
        making(server.url).request("GET", path)
    assert server.asked == []


def test_two_slashes_name_no_other_host(making: Making, server: Component) -> None:
    making(server.url).request("GET", "//elsewhere.example/x")
    assert server.asked[0].path.endswith("/elsewhere.example/x")
    assert server.asked[0].headers["host"] == f"127.0.0.1:{server.port}"


@pytest.mark.requirement("P-064")
@pytest.mark.parametrize(
    "host",
    ["2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "127.1", "127.0.0.01", "0", "0x", "1.2.3.4.",
     "169.254.169.254", "2852039166", "0.0.0.0", "255.255.255.255", "100.100.100.200", "168.63.129.16", "host.0x7f",
     "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::169.254.169.254]", "[64:ff9b::a9fe:a9fe]",
     "[2002:a9fe:a9fe::1]", "[fe80::1]", "[fe80::1%25eth0]", "[0:0:0:0:0:0:0:1]", "[::01]", "[::]", "[fd00:ec2::254]",
     "[fd20:ce::254]", "[ff02::1]", "a..b", "-", ".", "\u2461.\u2462", "127。0。0。1"],
)  # fmt: skip
def test_an_address_in_disguise_and_one_of_a_metadata_service_are_no_declared_host(making: Making, host: str) -> None:
    """What a resolver would take for an address, and a reader for a name or for another address."""
    with pytest.raises(ConfigRefused):
        making(f"http://{host}:80")


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.7", "[::1]", "[2001:db8::7]", "mem0", "mem0-1.svc.local", "a_b"])
def test_a_host_in_its_usual_form_is_one(making: Making, host: str) -> None:
    making(f"http://{host}:8000")


@pytest.mark.parametrize(
    "url",
    ["ftp://h/", "http://", "http://user:pw@h/", "http://h/?q=1", "http://h/#f", "http://h:99999/", "http://h:0/",
     "http://h/../x", "file:///etc/passwd", "http://a b/", "h:80", "http://h:x/"],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(making: Making, url: str) -> None:
    with pytest.raises(ConfigRefused):
        making(url)


@pytest.mark.requirement("P-064")
def test_a_name_is_looked_up_once_and_a_changed_answer_changes_nothing(making: Making, server: Component) -> None:
    """The second answer points to where a service of the machine itself would listen."""
    asked: list[str] = []

    def resolve(host: str, _: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    with standing(plain, host="127.0.0.2") as other:
        target = making(f"http://engine.example:{server.port}", resolve=resolve)
        for _ in range(3):
            assert target.request("GET", "/").status == 200
        assert asked == ["engine.example"] and other.asked == []
    assert {one.headers["host"] for one in server.asked} == {f"engine.example:{server.port}"}


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fd00:ec2::254", "0.0.0.0", "224.0.0.1", "::",
     "100.100.100.200", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "::a9fe:a9fe", "no address"],
)  # fmt: skip
def test_a_name_that_leads_to_the_machines_own_services_is_not_called(
    making: Making, server: Component, address: str
) -> None:
    for answer in ([address], ["127.0.0.1", address]):
        target = making(f"http://engine.example:{server.port}", resolve=lambda *_, told=answer: told)
        with pytest.raises(EngineUnavailable):
            target.request("GET", "/")
    assert server.asked == []


def test_a_resolver_that_answers_late_does_not_hold_the_call(making: Making, server: Component) -> None:
    gate = threading.Event()

    def resolve(*_: object) -> list[str]:
        gate.wait(20)
        return ["127.0.0.1"]

    target = making(f"http://engine.example:{server.port}", resolve=resolve, timeout=0.2)
    with pytest.raises(EngineUnavailable):
        target.request("GET", "/")
    gate.set()


@pytest.mark.requirement("P-068")
@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=b"x" * 100, drip=0.05),
        Answer(raw=b"HTTP/1.1 200 OK\r\nx-a: " + b"y" * 100 + b"\r\ncontent-length: 0\r\n\r\n", drip=0.05),
        Answer(wait=3.0),
        Answer(raw=b"", wait=3.0),
        Answer(raw=b"HTTP/1.1 100 Continue\r\n\r\n" * 20, drip=0.01),
    ],
    ids=["drip of the body", "drip of the headers", "nothing for long", "nothing at all", "a promise for ever"],
)
def test_a_call_as_a_whole_ends_in_time(making: Making, answer: Answer) -> None:
    """Where bytes drip each step alone is quick enough: a client that bounds only these gets its answer."""
    with standing(lambda _: answer) as server:
        with pytest.raises(EngineUnavailable, match="in time"):
            making(server.url, timeout=0.4).request("GET", "/")


def test_a_deadline_of_the_request_ends_a_call_earlier(making: Making) -> None:
    with standing(lambda _: Answer(wait=3.0)) as server:
        target = making(server.url, timeout=30.0)
        with on_behalf(deadline=time.monotonic() + 0.2), pytest.raises(EngineUnavailable):
            target.request("GET", "/")


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=b"x" * 5001),
        Answer(raw=b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + (b"bb9\r\n" + b"x" * 3001 + b"\r\n") * 2),
        Answer(raw=b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5001),
    ],
    ids=["announced", "in chunks", "until the end"],
)  # fmt: skip
def test_an_answer_that_is_too_long_is_not_read(making: Making, answer: Answer) -> None:
    with standing(lambda _: answer) as server:
        with pytest.raises(EngineUnavailable, match="longer than 5000 bytes"):
            making(server.url, most=5000).request("GET", "/")
    with standing(lambda _: Answer(body=b"x" * 5000)) as server:
        assert len(making(server.url, most=5000).request("GET", "/").body) == 5000


@pytest.mark.parametrize(
    "raw",
    [b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 two hundred\r\n\r\n", b"\x00" * 100,
     b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx"],
)  # fmt: skip
def test_what_is_not_http_is_no_answer(making: Making, raw: bytes) -> None:
    with standing(lambda _: Answer(raw=raw)) as server, pytest.raises(EngineUnavailable):
        making(server.url).request("GET", "/")


@pytest.mark.parametrize("coding", ["gzip", "gzip, chunked", "deflate", "chunked, chunked"])
def test_a_bomb_in_the_coding_of_the_transfer_is_not_unpacked(making: Making, coding: str) -> None:
    bomb = gzip.compress(b"0" * 2_000_000)
    chunk = f"{len(bomb):x}\r\n".encode() + bomb + b"\r\n0\r\n\r\n"
    raw = f"HTTP/1.1 200 OK\r\ntransfer-encoding: {coding}\r\n\r\n".encode() + chunk
    with standing(lambda _: Answer(raw=raw)) as server, pytest.raises(EngineUnavailable):
        making(server.url).request("GET", "/")


@pytest.mark.parametrize("body", [b"[" * 200_000, b"9" * 5000, b'{"a": NaN}', b"[Infinity]", b"\xff", b"", b'{"a":'])
def test_json_that_only_does_harm_is_no_answer(making: Making, body: bytes) -> None:
    with standing(lambda _: Answer(body=body)) as server:
        target = making(server.url)
        with pytest.raises(EngineUnavailable, match="no JSON"):
            target.answer(target.request("GET", "/"))


def test_headers_without_end_are_not_read(making: Making) -> None:
    raw = b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: %s\r\n" % (n, b"y" * 1000) for n in range(300)) + b"\r\n"
    with standing(lambda _: Answer(raw=raw)) as server, pytest.raises(EngineUnavailable):
        making(server.url).request("GET", "/")


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "gzip, gzip, gzip"])
def test_a_bomb_is_not_unpacked(making: Making, encoding: str) -> None:
    bomb = gzip.compress(b"0" * 2_000_000)
    with standing(lambda _: Answer(body=bomb, headers={"content-encoding": encoding})) as server:
        with pytest.raises(EngineUnavailable, match="encoding"):
            making(server.url).request("GET", "/")
        assert server.asked[0].headers["accept-encoding"] == "identity"


def test_connections_belong_to_one_instance_and_one_credential(server: Component) -> None:
    with closing(Egress(DEVELOPMENT)) as egress:
        for _ in range(2):
            for apart in ("mem0-1/acme", "mem0-1/globex", "mem0-2/acme"):
                egress.to(server.url, name="it", apart=apart).request("GET", "/", headers={"x-apart": apart})
    clients: dict[str, set[object]] = {}
    for asked in server.asked:
        clients.setdefault(asked.headers["x-apart"], set()).add(asked.client)
    assert [len(used) for used in clients.values()] == [1, 1, 1]
    assert len(set.union(*clients.values())) == 3


class TestTheBreaker:
    def test_leaves_alone_what_does_not_answer_and_says_when_it_tries_again(self, making: Making) -> None:
        now = [100.0]
        with standing(lambda _: Answer(raw=b"")) as server:
            target = making(server.url, breaker=Breaker(lambda: now[0]))
            for _ in range(FAILURES):
                with pytest.raises(EngineUnavailable, match="does not answer"):
                    target.request("GET", "/")
            with pytest.raises(EngineUnavailable, match=r"asked again at \d\d:\d\d:\d\dZ, in 5 s") as paused:
                target.request("GET", "/")
            assert paused.value.problem()["retry_after"] == 5 and not paused.value.asked
            assert len(server.asked) == FAILURES
            now[0] += 5.0  # one tries, and the pause grows
            with pytest.raises(EngineUnavailable, match="does not answer"):
                target.request("GET", "/")
            with pytest.raises(EngineUnavailable, match="in 10 s"):
                target.request("GET", "/")
            now[0] += 10.0
            server.answers = plain
            for _ in range(3):
                assert target.request("GET", "/").status == 200

    def test_takes_any_answer_for_one_and_no_impatient_caller_for_silence(self, making: Making) -> None:
        with standing(lambda _: Answer(500)) as server:
            target = making(server.url, breaker=Breaker())
            for _ in range(FAILURES + 1):
                assert target.request("GET", "/").status == 500
            server.answers = lambda _: Answer(wait=0.3)
            for _ in range(FAILURES + 1):
                with on_behalf(deadline=time.monotonic() + 0.05), pytest.raises(EngineUnavailable):
                    target.request("GET", "/")
            server.answers = plain
            assert target.request("GET", "/").status == 200

    def test_lets_one_call_try_while_the_others_wait(self) -> None:
        now = [0.0]
        breaker = Breaker(lambda: now[0])
        for _ in range(FAILURES):
            assert breaker.waits() is None
            breaker.failed()
        assert breaker.waits() == PAUSE
        now[0] = PAUSE
        assert breaker.waits() is None and breaker.waits() == 1.0
        breaker.undecided()
        assert breaker.waits() is None
        breaker.answered()
        assert [breaker.waits(), breaker.waits()] == [None, None]


def test_what_was_certainly_not_asked_is_told_apart(making: Making) -> None:
    """On it hangs whether a write may have been done."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with pytest.raises(EngineUnavailable) as refused:
            making(f"http://127.0.0.1:{nobody.getsockname()[1]}").request("POST", "/", json={})
    assert not refused.value.asked
    for answer in (Answer(raw=b""), Answer(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx"), Answer(wait=1.0)):
        with standing(lambda _, told=answer: told) as server, pytest.raises(EngineUnavailable) as broken:
            making(server.url, timeout=0.3).request("POST", "/", json={})
        assert broken.value.asked


def test_an_answer_in_an_encoding_that_was_not_asked_for_is_not_unpacked(making: Making) -> None:
    with standing(lambda _: Answer(headers={"content-encoding": "gzip"})) as server:
        with pytest.raises(EngineUnavailable, match="encoding"):
            making(server.url).request("GET", "/")


def test_nobody_there_and_no_json_are_the_declared_error(making: Making, server: Component) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        target = making(f"http://127.0.0.1:{nobody.getsockname()[1]}", failing=ComponentUnavailable)
        with pytest.raises(ComponentUnavailable):
            target.request("GET", "/")
    server.answers = lambda _: Answer(body=b"<html>")
    target = making(server.url)
    with pytest.raises(EngineUnavailable):
        target.answer(target.request("GET", "/"))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "manager")


@pytest.mark.requirement("P-067")
def test_the_managers_authority_is_added_and_replaces_none(
    making: Making, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Authority(tmp_path, "usual")
    monkeypatch.setenv("SSL_CERT_FILE", str(usual.file))
    settings = EgressSettings(ca_file=authority.file)
    for known in (authority, usual):
        with standing(plain, known.certificate("127.0.0.1")) as server:
            assert making(server.url, settings).request("GET", "/").status == 200
    with standing(plain, Authority(tmp_path, "foreign").certificate("127.0.0.1")) as server:
        with pytest.raises(EngineUnavailable, match="certificate"):
            making(server.url, settings).request("GET", "/")


@pytest.mark.requirement("P-067")
def test_the_managers_authority_is_trusted_beside_the_usual_ones(making: Making, authority: Authority) -> None:
    settings = EgressSettings(ca_file=authority.file)
    with standing(plain, authority.certificate("engine.example", "127.0.0.1")) as server:
        named = making(f"https://engine.example:{server.port}", settings, resolve=lambda *_: ["127.0.0.1"])
        assert named.request("GET", "/").status == 200
        assert making(server.url, settings).request("GET", "/").status == 200


@pytest.mark.requirement("P-066")
def test_a_certificate_of_a_foreign_authority_or_for_another_name_is_refused(
    making: Making, authority: Authority, tmp_path: Path
) -> None:
    settings = EgressSettings(ca_file=authority.file)
    with standing(plain, Authority(tmp_path, "foreign").certificate("127.0.0.1")) as server:
        with pytest.raises(EngineUnavailable, match="certificate"):
            making(server.url, settings).request("GET", "/", headers={"authorization": "Bearer s"})
        assert server.asked == []
    with standing(plain, authority.certificate("other.example")) as server:
        target = making(f"https://engine.example:{server.port}", settings, resolve=lambda *_: ["127.0.0.1"])
        with pytest.raises(EngineUnavailable, match="certificate"):
            target.request("GET", "/")
        assert server.asked == []
    with standing(plain, authority.certificate("127.0.0.1")) as server:
        with pytest.raises(EngineUnavailable, match="certificate"):  # without the file it is as foreign as any
            making(server.url, EgressSettings()).request("GET", "/")


def test_authorities_that_cannot_be_read_are_refused_at_once(making: Making, tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("no certificate")
    for file in (tmp_path / "no.pem", tmp_path / "missing.pem"):
        with pytest.raises(ConfigRefused, match="EAI_MEMORY_ENGINES_CA_FILE"):
            making("https://engine.example", EgressSettings(ca_file=file))


@pytest.mark.requirement("P-070", "P-071")
@pytest.mark.parametrize("environment", ["staging", "production", "", "anything"])
def test_outside_development_plain_http_and_unverified_tls_are_refused(making: Making, environment: str) -> None:
    guarded = EgressSettings(environment=environment)
    with pytest.raises(ConfigRefused, match="EAI_MEMORY_ENGINES_ALLOW_HTTP"):
        making("http://engine.example", guarded)
    with pytest.raises(ConfigRefused, match="tls_verify"):
        making("https://engine.example", guarded, tls_verify=False)
    allowing = EgressSettings(environment=environment, allow_http=True)
    making("http://engine.example", allowing)
    with pytest.raises(ConfigRefused, match="tls_verify"):
        making("https://engine.example", allowing, tls_verify=False)


def test_in_development_tls_can_be_left_unverified(making: Making, authority: Authority) -> None:
    with standing(plain, authority.certificate("127.0.0.1")) as server:
        assert making(server.url, tls_verify=False).request("GET", "/").status == 200
        with pytest.raises(EngineUnavailable, match="certificate"):
            making(server.url).request("GET", "/")


def test_no_proxy_and_no_password_is_taken_from_the_environment(
    making: Making, server: Component, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with standing(plain) as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login root password secret\n")
        monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
        monkeypatch.setenv("HOME", str(tmp_path))
        making(server.url).request("GET", "/")
        assert proxy.asked == [] and len(server.asked) == 1
        assert "authorization" not in server.asked[0].headers


@pytest.mark.requirement("P-069")
def test_every_call_carries_a_trace(making: Making, server: Component) -> None:
    target = making(server.url)
    given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with on_behalf(traceparent=given):
        target.request("GET", "/")
    with on_behalf(traceparent="nonsense\r\nx: y"):
        target.request("GET", "/")
    target.request("GET", "/")
    first, *others = (asked.headers["traceparent"] for asked in server.asked)
    assert first == given
    for one in others:
        assert [len(part) for part in one.split("-")] == [2, 32, 16, 2] and one != given


def test_a_header_cannot_smuggle_another(making: Making, server: Component) -> None:
    with pytest.raises(EngineUnavailable):
        making(server.url).request("GET", "/", headers={"x-key": "a\r\nx-admin: yes"})
    assert server.asked == []


@pytest.mark.requirement("P-063")
def test_nothing_below_the_faces_opens_a_connection_but_the_egress_client() -> None:
    """Read from the source: no HTTP client, no socket, and no SDK is imported by what speaks to engines."""
    ways_out = {"socket", "http", "urllib.request", "httpx", "httpx2", "httpcore", "httpcore2", "requests", "aiohttp",
                "urllib3", "mem0", "cognee", "grpc", "websockets", "ftplib", "smtplib", "asyncio"}  # fmt: skip
    folder = Path(memoranda.__file__).parent
    found: dict[str, set[str]] = {}
    for file in (f for floor in ("engines", "governance", "service") for f in (folder / floor).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            used = {name for name in names if name in ways_out or name.partition(".")[0] in ways_out - {"urllib"}}
            if used:
                found.setdefault(file.name, set()).update(used)
    assert found == {"egress.py": {"httpcore2"}, "_pinned.py": {"httpcore2", "socket"}}
