"""Several nodes on one database: what one of them signs, seals or names, the others check, open and find."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from memoranda.context import Context
from memoranda.service.cursors import seal, unseal
from memoranda.service.opening import open_desk
from memoranda.service.upkeep import reseal
from tests.postgres import Urls

OLD, NEW = b"the secret that every node has until today", b"the secret that every node has from today on"


def test_a_cursor_of_one_node_is_good_at_another(postgres: Urls, tmp_path: Path, context: Context) -> None:
    with (
        closing(open_desk(context, tmp_path / "one", database=postgres.service, homes_secrets=(OLD,))) as one,
        closing(open_desk(context, tmp_path / "two", database=postgres.service, homes_secrets=(OLD,))) as two,
    ):
        cursor = seal(one.keys, "acme", ("list",), ("2026-10-02", "mem_1"))
        assert tuple(unseal(two.keys, "acme", ("list",), cursor)) == ("2026-10-02", "mem_1")
        assert one.keys.get("namespace", "engines") == two.keys.get("namespace", "engines")
        assert set(one.keys.versions("audit", "service")) == set(two.keys.versions("audit", "service"))


def test_the_service_s_own_keys_are_sealed_again_too(postgres: Urls, tmp_path: Path, context: Context) -> None:
    with closing(open_desk(context, tmp_path / "one", database=postgres.service, homes_secrets=(OLD,))) as desk:
        cursor = seal(desk.keys, "acme", ("list",), ("2026-10-02", "mem_1"))
    with closing(open_desk(context, tmp_path / "one", database=postgres.service, homes_secrets=(NEW, OLD))) as desk:
        assert reseal(desk) > 0
    with closing(open_desk(context, tmp_path / "one", database=postgres.service, homes_secrets=(NEW,))) as desk:
        assert tuple(unseal(desk.keys, "acme", ("list",), cursor)) == ("2026-10-02", "mem_1")
