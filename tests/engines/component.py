"""A server in the place of a component or an engine: a real one on a socket, which answers as a test says."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    client: tuple[str, int]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    """What is sent; `drip` seconds between the bytes of the body, `wait` before anything."""

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0
    drip: float = 0.0
    raw: bytes | None = None  # sent instead of all of this

    def bytes(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Component(ThreadingHTTPServer):
    """`asked` tells what came; `answers` decides what is sent."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answers: Callable[[Asked], Answer], host: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__((host, port), _Handler)
        self.answers = answers
        self.asked: list[Asked] = []
        self.scheme = "http"
        self.open: list[Any] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.append(request)
        super().process_request(request, client_address)

    def handle_error(self, *_: object) -> None:
        pass  # a client that goes away is what is tested


class _Handler(BaseHTTPRequestHandler):
    server: Component
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError, ssl.SSLError):
            super().handle_one_request()

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, body, self.client_address)
        self.server.asked.append(asked)
        answer = self.server.answers(asked)
        time.sleep(answer.wait)
        if answer.raw is not None:
            self.close_connection = True
            self._slowly(answer.raw, answer.drip)
            return
        told = answer.bytes()
        self.send_response(answer.status)
        for name, value in {"content-length": str(len(told)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self._slowly(told, answer.drip)

    def _slowly(self, told: bytes, drip: float) -> None:
        if not drip:
            self.wfile.write(told)
            return
        for n in range(len(told)):
            self.wfile.write(told[n : n + 1])
            time.sleep(drip)

    do_GET = do_POST = do_PUT = do_DELETE = do_CONNECT = _any

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def standing(
    answers: Callable[[Asked], Answer],
    certificate: tuple[Path, Path] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
) -> Iterator[Component]:
    """A component that answers until the end; with `certificate` (file, key) it speaks TLS."""
    server = Component(answers, host, port)
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*certificate)
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.scheme = "https"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        for connection in server.open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Authority:
    """One that signs certificates; `file` is its own, in PEM."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        own = self._sign(self._subject, self._key, x509.BasicConstraints(ca=True, path_length=0), None)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def certificate(self, *names: str) -> tuple[Path, Path]:
        """A certificate for these names and addresses, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives: list[x509.GeneralName] = []
        for name in names:
            try:
                alternatives.append(x509.IPAddress(ipaddress.ip_address(name)))
            except ValueError:
                alternatives.append(x509.DNSName(name))
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0])])
        made = self._sign(subject, key, x509.BasicConstraints(ca=False, path_length=None), alternatives)
        files = self._folder / f"{self._name}-{names[0]}.crt", self._folder / f"{self._name}-{names[0]}.key"
        files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
        files[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return files

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        constraints: x509.BasicConstraints,
        alternatives: list[x509.GeneralName] | None,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(constraints, critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        if alternatives:
            made = made.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return made.sign(self._key, hashes.SHA256())
