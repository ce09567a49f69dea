"""The keys of a tenant, or of the service itself, as sealed rows.

Every node has the same ones, and who reads the database alone has none.

A key is sealed by a secret of the service, which lies in no database: a pad drawn from it for this one row, and a MAC.
What is written down beside the keys (settings, tombstones) are rows too, numbered one after the other in the tenant.
"""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memoranda.errors import HomeDamaged
from memoranda.home.keys import PURPOSES, SIZE, Keys, Lines, fingerprint, is_within, plain_owner
from memoranda.home.postgres.locks import lock
from memoranda.home.postgres.store import PostgresStore
from memoranda.home.postgres.transactions import Cursor

_SALT = 16


class SealedKeys(Keys):
    """The keys of one tenant.

    Args:
        store: gives transactions of the tenant's.
        secrets: the service's, the same on every node. The first seals; each of them opens, while nodes are given
            another one.
        folder: of this node, for what is not shared.
    """

    def __init__(self, store: PostgresStore, secrets: tuple[bytes, ...], folder: Path) -> None:
        super().__init__(folder)
        self._store = store
        self._secrets = secrets
        self._texts: dict[str, list[bytes]] = {}
        self._known = -1  # the newest line that was read
        self._reading = threading.Lock()

    # Keys

    def _load(self, purpose: str, owner: str) -> bytes:
        owner = plain_owner(owner)
        found = self._own(purpose, owner)
        if found is None:
            key = os.urandom(SIZE)
            self._add(purpose, owner, key, own=True)  # of two nodes, one makes the key and both read it
            found = self._own(purpose, owner)
        assert found is not None
        return found

    def _own(self, purpose: str, owner: str) -> bytes | None:
        named = " AND ".join(
            f"{column} = convert_from('\\x{value.encode().hex()}', 'UTF8')"
            for column, value in (("purpose", _checked(purpose)), ("owner", owner))
        )
        rows = self._store.ask(f"SELECT sealed FROM memory_keys WHERE {named} AND own")
        return self._opened(purpose, owner, rows[0][0]) if rows else None

    def versions(self, purpose: str, owner: str) -> dict[str, bytes]:
        owner = plain_owner(owner)
        query = "SELECT sealed FROM memory_keys WHERE purpose = %s AND owner = %s ORDER BY NOT own, fingerprint"
        with self._store.reading() as cursor:
            rows = cursor.execute(query, (_checked(purpose), owner)).fetchall()
        keys = [self._opened(purpose, owner, row[0]) for row in rows]
        return {fingerprint(key): key for key in keys}

    def take_in(self, purpose: str, owner: str, key: bytes) -> bool:
        return self._add(purpose, plain_owner(owner), key, own=False)

    def beside(self, folder: Path) -> SealedKeys:
        """The same keys, with another folder for what is not shared."""
        return SealedKeys(self._store, self._secrets, folder)

    def adopt(self, purpose: str, owner: str, key: bytes) -> bool:
        owner = plain_owner(owner)
        self._add(purpose, owner, key, own=True)
        with self._lock:
            self._held.clear()
            self._begun.clear()
        return self._own(purpose, owner) == key

    def of(self, owner: str) -> list[tuple[str, str, bytes, bool]]:
        return [row for row in self.all() if is_within(row[1], owner)]

    def all(self) -> list[tuple[str, str, bytes, bool]]:
        """(purpose, owner, key, own) of every key of the tenant."""
        with self._store.reading() as cursor:
            rows = cursor.execute("SELECT purpose, owner, sealed, own FROM memory_keys").fetchall()
        return [(purpose, owner, self._opened(purpose, owner, sealed), own) for purpose, owner, sealed, own in rows]

    def renew(self, purpose: str, owner: str) -> None:
        """As `Keys.renew`."""
        named = plain_owner(owner)
        with self._lock, self._store.writing() as cursor:
            lock(cursor, f"{self._store.tenant}\n{purpose}\n{named}")
            cursor.execute("UPDATE memory_keys SET own = false WHERE purpose = %s AND owner = %s", (purpose, named))
            self._insert(cursor, purpose, named, os.urandom(SIZE), own=True)
        self._held.pop((purpose, owner), None)
        self._begun.pop((purpose, owner), None)

    def reseal(self) -> int:
        """Seals every key of the tenant under the first secret that is not yet; how many. Safe to repeat."""
        changed = 0
        with self._store.writing() as cursor:
            rows = cursor.execute("SELECT purpose, owner, fingerprint, sealed FROM memory_keys FOR UPDATE").fetchall()
            for purpose, owner, print_, sealed in rows:
                if self._by(self._secrets[0], purpose, owner, sealed) is None:
                    again = self._sealed(purpose, owner, self._opened(purpose, owner, sealed))
                    query = "UPDATE memory_keys SET sealed = %s WHERE purpose = %s AND owner = %s AND fingerprint = %s"
                    changed += cursor.execute(query, (again, purpose, owner, print_)).rowcount
        return changed

    def _add(self, purpose: str, owner: str, key: bytes, *, own: bool) -> bool:
        with self._store.writing() as cursor:
            return self._insert(cursor, purpose, owner, key, own=own)

    def _insert(self, cursor: Cursor, purpose: str, owner: str, key: bytes, *, own: bool) -> bool:
        query = (
            "INSERT INTO memory_keys (tenant, purpose, owner, fingerprint, own, sealed)"
            " VALUES (tenant(), %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
        )
        values = _checked(purpose), owner, fingerprint(key), own, self._sealed(purpose, owner, key)
        return cursor.execute(query, values).rowcount == 1

    def _sealed(self, purpose: str, owner: str, key: bytes) -> bytes:
        secret, salt = self._secrets[0], os.urandom(_SALT)
        hidden = bytes(a ^ b for a, b in zip(key, self._pad(secret, purpose, owner, salt), strict=True))
        return salt + hidden + self._tag(secret, purpose, owner, salt + hidden)

    def _opened(self, purpose: str, owner: str, sealed: bytes) -> bytes:
        for secret in self._secrets:
            key = self._by(secret, purpose, owner, sealed)
            if key is not None:
                return key
        raise HomeDamaged(
            "A key of the memories cannot be opened.",
            why="It was sealed under another secret of the service, or changed.",
            remedy="Give this node the same `homes.secret` as the others; docs/deploy.md says how it is changed.",
        )

    def _by(self, secret: bytes, purpose: str, owner: str, sealed: bytes) -> bytes | None:
        """The key, if it was sealed by this secret."""
        salt, hidden, tag = sealed[:_SALT], sealed[_SALT:-SIZE], sealed[-SIZE:]
        if len(hidden) != SIZE or not hmac.compare_digest(tag, self._tag(secret, purpose, owner, salt + hidden)):
            return None
        return bytes(a ^ b for a, b in zip(hidden, self._pad(secret, purpose, owner, salt), strict=True))

    def _pad(self, secret: bytes, purpose: str, owner: str, salt: bytes) -> bytes:
        return hmac.digest(secret, self._about("pad", purpose, owner) + salt, "sha256")

    def _tag(self, secret: bytes, purpose: str, owner: str, data: bytes) -> bytes:
        return hmac.digest(secret, self._about("tag", purpose, owner) + data, "sha256")

    def _about(self, what: str, purpose: str, owner: str) -> bytes:
        return "\0".join(("memoranda", what, self._store.tenant, purpose, owner, "")).encode("utf-8", "surrogatepass")

    # What is written down beside them

    def settled(self, owner: str) -> Lines:
        return RowLines(self, f"settings/{owner}")

    def forgotten(self, home: str) -> Lines:
        return RowLines(self, f"tombstones/{home}")

    def heard(self, newest: int) -> None:
        """The number of the tenant's newest line, as it was just read: what is behind the known ones is read."""
        if newest <= self._known:
            return
        with self._reading:
            query = "SELECT n, name, line FROM memory_lines WHERE n > %s ORDER BY n"
            with self._store.reading() as cursor:
                rows = cursor.execute(query, (self._known,)).fetchall()
            for n, name, line in rows:
                if n > self._known:
                    self._texts.setdefault(name, []).append(line)
                    self._known = n
            self._known = max(self._known, newest)

    def lines(self, name: str) -> list[bytes]:
        """The lines under a name, as they were read last."""
        if self._known < 0:
            self.heard(0)
        return self._texts.get(name, [])

    def names(self) -> list[str]:
        """The names under which lines were written."""
        self.lines("")
        return sorted(self._texts)

    def add(self, name: str, line: bytes) -> None:
        with self._store.writing() as cursor:
            n = add_line(cursor, self._store.tenant, name, line)
        self.heard(n)

    @contextmanager
    def alone(self, name: str) -> Iterator[None]:
        with self._store.writing() as cursor:
            lock(cursor, f"{self._store.tenant}\n{name}")
            self.heard(self._newest(cursor.execute))
            yield

    def _newest(self, execute: Callable[[str], Any]) -> int:
        return int(execute("SELECT coalesce(max(n), 0) FROM memory_lines").fetchone()[0])


class RowLines:
    """Implements `Lines` by rows."""

    def __init__(self, keys: SealedKeys, name: str) -> None:
        self._keys = keys
        self._name = name
        self.place = f"{keys.folder}#{name}"

    def mark(self) -> object | None:
        return len(self._keys.lines(self._name)) or None

    def read(self) -> bytes:
        return b"".join(self._keys.lines(self._name))

    def add(self, data: bytes) -> None:
        self._keys.add(self._name, data)

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._keys.alone(self._name):
            yield


def add_line(cursor: Any, tenant: str, name: str, line: bytes) -> int:
    """Adds a line in a transaction; its number. Lines get their numbers in the order in which they are committed."""
    lock(cursor, f"{tenant}\nlines")
    query = (
        "INSERT INTO memory_lines (tenant, n, name, line)"
        " SELECT tenant(), coalesce(max(n), 0) + 1, %s, %s FROM memory_lines RETURNING n"
    )
    return int(cursor.execute(query, (name, line)).fetchone()[0])


def _checked(purpose: str) -> str:
    if purpose not in PURPOSES:
        raise ValueError(f"no key has the purpose {purpose!r}")
    return purpose
