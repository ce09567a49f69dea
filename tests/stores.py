"""Where a test's Home lies: in a folder, or in PostgreSQL. The same tests run on both.

A test that asks for `space`, `opening` or `site` runs on both stores, unless it asks for `home`, the folder itself, or
is marked `disk`: its subject is the files of a folder (edits made elsewhere, Git beside us, the intake log, other
processes that are told a path). Which of these run when is said in tests/README.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pytest
from home.erasing import places
from home.tools import assert_sound, git

from memoranda.context import Context
from memoranda.home.create import create, finish
from memoranda.home.keys import Keys
from memoranda.home.postgres.copying import objects_in_folder
from memoranda.home.postgres.keys import SealedKeys
from memoranda.home.postgres.node import node_layout
from memoranda.home.postgres.places import make_place
from memoranda.home.postgres.repository import PostgresRepository
from memoranda.home.postgres.store import PostgresStore
from memoranda.operations.space import Space
from memoranda.state.database import Database

DISK, POSTGRES = "disk", "postgres"
STORES = os.environ.get("MEMORANDA_TEST_STORES", "")
SECRET = b"the secret that seals the keys of a test"
PLACE = "project:web"
Opening = Callable[..., AbstractContextManager[Space]]


def choose(metafunc: pytest.Metafunc) -> None:
    """Has a test run on each store that is meant for it."""
    asked = metafunc.fixturenames
    if "site" not in asked or "home" in asked or metafunc.definition.get_closest_marker("disk") is not None:
        return
    metafunc.parametrize("home_store", [DISK, pytest.param(POSTGRES, marks=pytest.mark.postgres)], indirect=True)


def leave_out(items: list[pytest.Item]) -> None:
    """Takes away the cases of a test whose subject is a folder, and that were to run on PostgreSQL all the same."""
    items[:] = [item for item in items if not (_store_of(item) == POSTGRES and item.get_closest_marker("disk"))]


def _store_of(item: pytest.Item) -> object:
    return item.callspec.params.get("home_store") if hasattr(item, "callspec") else None


class Site(Protocol):
    """One Home and where it lies. `root` is its folder on this node, `keys` are those that it is made with."""

    root: Path
    keys: Keys

    def open(self, context: Context, keys: Keys | None = None, **more: Any) -> AbstractContextManager[Space]:
        """A space of its own with this Home, as another process would have it."""

    # What lies there, asked by no part of the program that holds it open

    def file(self, path: str) -> bytes | None:
        """The bytes of a file of the Home, None when there is none."""

    def places(self, words: Iterable[str]) -> list[str]:
        """Where any of these words stands, also in caches."""

    def git(self, *words: str) -> str:
        """What Git says of the Home's history."""

    def sound(self) -> None:
        """Fails when Git finds anything wrong."""


class OnDisk:
    """A fresh Home in a folder, in which nothing was remembered yet."""

    def __init__(self, folder: Path, context: Context, keys: Keys) -> None:
        self.keys = keys
        self.root = create(folder, context).root
        finish(self.root, context, keys)

    def open(self, context: Context, keys: Keys | None = None, **more: Any) -> AbstractContextManager[Space]:
        return Space(context, keys or self.keys, self.root, None, **more)

    def file(self, path: str) -> bytes | None:
        return (self.root / path).read_bytes() if (self.root / path).exists() else None

    def places(self, words: Iterable[str]) -> list[str]:
        return places(self.root, words)

    def git(self, *words: str) -> str:
        return git(self.root, *words)

    def sound(self) -> None:
        assert_sound(self.root)


class InPostgres:
    """The same in a tenant of its own of a database that tests share."""

    def __init__(self, folder: Path, context: Context, database: Database) -> None:
        self.root = folder
        self._database, self._tenant = database, f"t-{uuid4().hex[:12]}"
        self.keys: Keys = self._keys(folder)
        self._place = make_place(self._store(0), context, PLACE, folder.name)
        self._used: set[Path] = set()

    def _store(self, home: int) -> PostgresStore:
        return PostgresStore(self._database, self._tenant, home)

    def _keys(self, folder: Path) -> SealedKeys:
        return SealedKeys(self._store(0), (SECRET,), folder.with_name(f"{folder.name}-keys"))

    @contextmanager
    def open(self, context: Context, keys: Keys | None = None, **more: Any) -> Iterator[Space]:
        """On the node of before, as after a restart; on another one where that has the Home open."""
        folder, n = self.root, 1
        while folder in self._used:
            n += 1
            folder = self.root.with_name(f"{self.root.name}-on-node-{n}")
        mine = self.keys if folder == self.root else self._keys(folder)
        assert keys is None or keys is self.keys, "there are no other keys of a tenant"

        def made(_admit: object) -> PostgresRepository:
            return PostgresRepository(self._store(self._place.home), self._place, mine, context, folder)

        home = Space(context, mine, None, None, **more).take(folder, self._place.id, made)
        self._used.add(folder)
        try:
            yield Space(context, mine, None, None, given=[home], **more)
        finally:
            self._used.discard(folder)
            home.close()

    def file(self, path: str) -> bytes | None:
        store = self._store(self._place.home)
        found = store.get(f"{store.look().main}:{path}")
        return found.data if found is not None else None

    @contextmanager
    def _copy(self) -> Iterator[Path]:
        with objects_in_folder(self._store(self._place.home), node_layout(self.root.with_name("looked-at"))) as layout:
            yield layout.root

    def places(self, words: Iterable[str]) -> list[str]:
        wanted = list(words)
        with self._copy() as root:
            found = places(root, wanted)
        for folder in self.root.parent.glob(f"{self.root.name}*"):  # of every node, and what lies beside the keys
            for path in folder.rglob("*"):
                data = path.read_bytes().lower() if path.is_file() else b""
                found += [f"{path}: {word}" for word in wanted if word.lower().encode() in data]
        with self._database.read(self._tenant) as connection:
            for name in ("heads", "lines", "erasures", "refs", "homes"):
                rows = connection.exec_driver_sql(f"SELECT * FROM memory_{name}").fetchall()
                said = b"\n".join(v if isinstance(v, bytes) else str(v).encode() for row in rows for v in row).lower()
                found += [f"memory_{name}: {word}" for word in wanted if word.lower().encode() in said]
        return found

    def git(self, *words: str) -> str:
        with self._copy() as root:
            return git(root, *words)

    def sound(self) -> None:
        self.git("fsck", "--strict")
