"""A Git object as the bytes of a row: deflated, whole or as a delta against another row, as Git's own packs do it."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from memoranda.errors import HomeDamaged
from memoranda.home.objects import KINDS, GitObject, deflated, delta, object_id

_NAMES = {number: kind for kind, number in KINDS.items()}
MOST_DELTAS = 24  # in a row, as far as who writes knows: who reads one object reads so many rows, seldom more
_HELD = 4 << 20  # bytes of newest versions that are kept at hand, for the deltas of the next ones


class Row(NamedTuple):
    """One object in the database. `base` is the id of the row that `data` is a delta against, None for a whole one."""

    oid: bytes
    kind: int
    base: bytes | None
    data: bytes


class Writer:
    """Makes rows. It remembers the newest versions, so that the next ones are short."""

    def __init__(self) -> None:
        self._newest: OrderedDict[str, tuple[int, bytes]] = OrderedDict()  # id -> how deep it lies, its bytes
        self._size = 0

    def rows(self, objects: Iterable[GitObject]) -> list[Row]:
        """The rows of these objects, each behind what it is a delta against, where that is one of them."""
        return [self._row(item) for item in objects]

    def _row(self, item: GitObject) -> Row:
        depth, made = 0, None
        base = self._newest.get(item.base) if item.base and item.base != item.oid else None
        if base is not None and base[0] < MOST_DELTAS:
            change = delta(base[1], item.data)
            if len(change) < len(item.data) // 2:
                depth, made = base[0] + 1, deflated(change)
        if item.kind == "tree" or item.base:
            self._keep(item.oid, depth, item.data)
        name, kind = bytes.fromhex(item.oid), KINDS[item.kind]
        if made is None or item.base is None:
            return Row(name, kind, None, deflated(item.data))
        return Row(name, kind, bytes.fromhex(item.base), made)

    def _keep(self, oid: str, depth: int, data: bytes) -> None:
        if (before := self._newest.pop(oid, None)) is not None:
            self._size -= len(before[1])
        self._newest[oid] = (depth, data)
        self._size += len(data)
        while self._size > _HELD:
            _, (_, old) = self._newest.popitem(last=False)
            self._size -= len(old)

    def known(self, oids: Iterable[bytes]) -> None:
        """These had a row already, and nobody here knows how deep it lies: nothing more is a delta against them."""
        for oid in oids:
            if (held := self._newest.pop(oid.hex(), None)) is not None:
                self._size -= len(held[1])

    def forget(self) -> None:
        """What was written last may not be there: nothing is a delta against it."""
        self._newest.clear()
        self._size = 0


def read_rows(rows: Mapping[bytes, Row], names: Sequence[bytes]) -> list[GitObject | None]:
    """The objects of these names, as far as `rows` has them and what they are deltas against; HomeDamaged for bytes
    that are not what their name says."""
    whole: dict[bytes, bytes] = {}
    found: list[GitObject | None] = []
    for name in names:
        row = rows.get(name)
        data = _whole(rows, name, whole) if row is not None else None
        if row is None or data is None:
            found.append(None)
            continue
        kind = _NAMES[row.kind]
        if object_id(kind, data) != name.hex():
            raise HomeDamaged(
                f"The object {name.hex()[:12]} holds other bytes than its name says.",
                remedy="Restore the database from a backup.",
            )
        found.append(GitObject(kind, data, name.hex()))
    return found


def _whole(rows: Mapping[bytes, Row], name: bytes, whole: dict[bytes, bytes]) -> bytes | None:
    chain: list[Row] = []
    met: set[bytes] = set()
    at: bytes | None = name
    data: bytes | None = None
    while at is not None:
        data = whole.get(at)
        if data is not None:
            break
        row = rows.get(at)
        if row is None or at in met:
            return None
        chain.append(row)
        met.add(at)
        at = row.base
    for row in reversed(chain):
        told = zlib.decompress(row.data)
        data = told if row.base is None else applied(data or b"", told)
        whole[row.oid] = data
    return data


def applied(base: bytes, change: bytes) -> bytes:
    """What a Git delta makes of `base` (see gitformat-pack)."""
    _, at = _varint(change, 0)
    wanted, at = _varint(change, at)
    out = bytearray()
    end = len(change)
    while at < end:
        op = change[at]
        at += 1
        if op & 0x80:
            offset = size = 0
            for bit in range(4):
                if op & 1 << bit:
                    offset |= change[at] << 8 * bit
                    at += 1
            for bit in range(3):
                if op & 1 << 4 + bit:
                    size |= change[at] << 8 * bit
                    at += 1
            out += base[offset : offset + (size or 0x10000)]
        else:
            out += change[at : at + op]
            at += op
    if len(out) != wanted:
        raise HomeDamaged("A delta does not make what it says.", remedy="Restore the database from a backup.")
    return bytes(out)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def in_order(rows: Iterable[Row], take: Callable[[Row], None]) -> None:
    """Hands the rows on, each behind what it is a delta against."""
    waiting: dict[bytes, list[Row]] = {}
    done: set[bytes] = set()

    def settle(first: Row) -> None:
        todo = [first]
        while todo:
            row = todo.pop()
            take(row)
            done.add(row.oid)
            todo += waiting.pop(row.oid, [])

    for row in rows:
        if row.base is None or row.base in done:
            settle(row)
        else:
            waiting.setdefault(row.base, []).append(row)
    if waiting:
        raise HomeDamaged("Objects lack what they are written against.", remedy="Restore the database from a backup.")
