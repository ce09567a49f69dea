"""HTTP as anybody would speak it to an engine: the bare client that ours is held against."""

from __future__ import annotations

import http.client
import json
import socket
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit


def call(
    base: str,
    method: str,
    path: str,
    json_body: Any = None,
    *,
    form: Mapping[str, str] | None = None,
    parts: tuple[Sequence[tuple[str, str]], Sequence[tuple[str, str, bytes]]] | None = None,
    timeout: float = 120.0,
    **headers: str,
) -> tuple[int, Any]:
    """(status, the JSON of the answer or its bytes). `parts` are fields and files of a multipart form; an underscore in
    the name of a header is a hyphen."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    body: bytes | None = None
    if json_body is not None:
        body, told["content-type"] = json.dumps(json_body).encode(), "application/json"
    if form is not None:
        body, told["content-type"] = urlencode(form).encode(), "application/x-www-form-urlencoded"
    if parts is not None:
        body, told["content-type"] = multipart(*parts)
    where = urlsplit(base)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=timeout)
    try:
        connection.request(method, path, body, told)
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    try:
        return response.status, json.loads(answer)
    except ValueError:
        return response.status, answer


def multipart(fields: Sequence[tuple[str, str]], files: Sequence[tuple[str, str, bytes]]) -> tuple[bytes, str]:
    """The body of a form with files, and its type."""
    edge, body = uuid.uuid4().hex, b""
    for name, value in fields:
        body += f'--{edge}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
    for name, file, content in files:
        head = f'Content-Disposition: form-data; name="{name}"; filename="{file}"\r\nContent-Type: text/plain\r\n\r\n'
        body += f"--{edge}\r\n{head}".encode() + content + b"\r\n"
    return body + f"--{edge}--\r\n".encode(), f"multipart/form-data; boundary={edge}"


def listening(port: int) -> set[str]:
    """The addresses of this machine at which somebody listens at a port."""
    found = set()
    for file, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{file}").read_text().splitlines()[1:]:
            address, _, at = line.split()[1].partition(":")
            if line.split()[3] == "0A" and int(at, 16) == port:
                words = [bytes.fromhex(address[n : n + 8])[::-1] for n in range(0, len(address), 8)]
                found.add(socket.inet_ntop(family, b"".join(words)))
    return found
