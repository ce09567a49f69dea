"""The ledger: who wrote which bytes in which session. Kept at `refs/memoranda/ledger`, apart from the notes.

Its tree holds a folder per replica with segments `000001.jsonl`, `000002.jsonl`, …, closed at 64 KB; a line is one JSON
object whose last member `mac` is an HMAC under the installation's key for this Home. A replica writes only its own
folder, so that two clones' ledgers are joined by taking both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from memoranda.home.jsonline import json_line
from memoranda.home.keys import Keys
from memoranda.home.objects import GitObject, TreeEditor, make_object, read_tree
from memoranda.values import dataclass

SEGMENT_SIZE = 64 << 10
REDACTED = "erased"  # how the words begin that an erasing has put in the place of others


@dataclass(frozen=True, slots=True)
class Pen:
    """Signs the lines of one replica of one Home."""

    keys: Keys
    home: str
    replica: str

    def line(self, fields: Mapping[str, Any]) -> str:
        """The line, with its MAC, without a newline."""
        body = json_line(dict(fields))
        return f'{body[:-1]},"mac":"{self.keys.mac("ledger", self.home, self._bytes(body))}"}}'

    def vouches(self, line: str) -> bool:
        """Whether this installation wrote the line, in this Home and replica, as it stands."""
        body, comma, mac = line.rpartition(',"mac":"')
        if not comma:
            return False
        return self.keys.mac("ledger", self.home, self._bytes(body + "}")) == mac.removesuffix('"}')

    def _bytes(self, body: str) -> bytes:
        return f"{self.home}\n{self.replica}\n{body}".encode()


def segment_path(replica: str, number: int) -> str:
    return f"{replica}/{number:06d}.jsonl"


class LedgerTail:
    """The open segment of one replica, as the committer extends it."""

    def __init__(self, replica: str, read: Callable[[str], bytes | None]) -> None:
        self._replica = replica
        self._read = read
        self._content: tuple[str, bytes] | None = None

    def extend(self, editor: TreeEditor, lines: Iterable[str], emit: Callable[[GitObject], None], number: int) -> int:
        """Appends lines to segment `number` or, when it is full, to new ones; returns the last one's number."""
        path = segment_path(self._replica, number)
        old = editor.get(path)
        content = b""
        if old is not None:
            held = self._content
            content = held[1] if held and held[0] == old else self._read(old) or b""
        for line in lines:
            if len(content) >= SEGMENT_SIZE:
                old = self._put(editor, path, content, old, emit)
                number += 1
                path, content, old = segment_path(self._replica, number), b"", None
            content += line.encode("ascii") + b"\n"
        last = self._put(editor, path, content, old, emit)
        self._content = (last, content) if last else None
        return number

    def _put(
        self, editor: TreeEditor, path: str, content: bytes, old: str | None, emit: Callable[[GitObject], None]
    ) -> str | None:
        if not content:
            return old
        blob = make_object("blob", content, old)
        if blob.oid != old:
            emit(blob)
            editor.put(path, blob.oid)
        return blob.oid


def last_segment(tree: bytes) -> int:
    """The number of the newest segment in a replica's folder; 1 when there is none."""
    numbers = [int(name[:6]) for _, name, _ in read_tree(tree) if name[:6].isdigit()]
    return max(numbers, default=1)


def read_lines(data: bytes) -> Iterator[dict[str, Any]]:
    """The lines of a segment; one that is not a JSON object is passed over (`doctor` counts them)."""
    for line in data.splitlines():
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(fields, dict):
            yield fields
