"""The keys of a tenant in PostgreSQL: opened by every secret that a node was given, sealed by the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoranda.engines.shelves import PostgresShelf
from memoranda.errors import HomeDamaged
from memoranda.home.postgres.keys import SealedKeys
from memoranda.state.database import Database
from memoranda.state.opening import open_database
from tests.postgres import Urls

OLD, NEW = b"the secret that every node has until today", b"the secret that every node has from today on"


def keys(database: Database, folder: Path, *secrets: bytes) -> SealedKeys:
    return PostgresShelf(folder, database, secrets).keys_of("acme")


def test_a_secret_is_changed_while_nodes_run(postgres: Urls, tmp_path: Path) -> None:
    with open_database(postgres.service) as database:
        key = keys(database, tmp_path, OLD).get("ledger", "home")
        # 1. every node also opens what the new one seals  2. the new one seals  3. all is sealed again
        assert keys(database, tmp_path, OLD, NEW).get("ledger", "home") == key
        between = keys(database, tmp_path, NEW, OLD)
        assert between.get("ledger", "home") == key
        assert between.reseal() == 1
        assert between.reseal() == 0
        assert keys(database, tmp_path, OLD, NEW).get("ledger", "home") == key  # a node that is not restarted yet
        # 4. the old one is worth nothing any more
        assert keys(database, tmp_path, NEW).get("ledger", "home") == key
        with pytest.raises(HomeDamaged, match=r"homes\.secret"):
            keys(database, tmp_path, OLD).get("ledger", "home")


def test_a_renewed_key_leaves_the_one_before_beside_it(postgres: Urls, tmp_path: Path) -> None:
    with open_database(postgres.service) as database:
        own = keys(database, tmp_path, NEW)
        old = own.get("namespace", "service")
        own.renew("namespace", "service")
        fresh = own.get("namespace", "service")
        assert fresh != old
        other = keys(database, tmp_path / "other", NEW)
        assert other.get("namespace", "service") == fresh
        assert set(other.versions("namespace", "service").values()) == {old, fresh}


def test_what_was_sealed_for_one_place_opens_in_no_other(postgres: Urls, tmp_path: Path) -> None:
    with open_database(postgres.service) as database:
        own = keys(database, tmp_path, NEW)
        sealed = own._sealed("ledger", "home", own.get("ledger", "home"))
        for purpose, owner in (("ledger", "other"), ("tombstone", "home")):
            with pytest.raises(HomeDamaged):
                own._opened(purpose, owner, sealed)
