"""A database with Homes restored to a moment, as docs/deploy.md says it: base backup, archived log, caches deleted."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from home.test_nodes import Node, rows_are_one_history
from memoranda.context import Context
from memoranda.engines.contract import UpdateRequest
from tests.home.test_nodes import WHERE
from tests.postgres import Server, connect, fresh

pytestmark = pytest.mark.postgres


@pytest.fixture
def server() -> Iterator[Server]:
    """One that archives its log."""
    folder = Path(tempfile.mkdtemp(prefix="memoranda-pg-own-"))
    folder.chmod(0o755)
    archive = folder / "archive"
    archive.mkdir()
    settings = f"archive_mode = on\narchive_command = 'cp %p {archive}/%f'\n"
    made = Server(folder, settings)
    if made._user:
        shutil.chown(archive, made._user)
    made.start()
    yield made
    made.stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


def base_backup(server: Server) -> Path:
    target = server.folder / "base"
    command = [server._bin / "pg_basebackup", "-h", server.folder, "-U", "postgres", "-D", target, "-c", "fast"]
    subprocess.run(command, check=True, user=server._user, cwd=server.folder, capture_output=True)
    return target


def restore(server: Server, base: Path, moment: str) -> None:
    """The server's data as they were at this moment, from the backup and the archived log."""
    server.stop()
    shutil.rmtree(server.data)
    base.rename(server.data)
    with (server.data / "postgresql.conf").open("a") as file:
        file.write(f"restore_command = 'cp {server.folder}/archive/%f %p'\n")
        file.write(f"recovery_target_time = '{moment}'\nrecovery_target_action = 'promote'\n")
    (server.data / "recovery.signal").touch()
    server.start()
    with connect(server.url) as asked:
        while asked.execute("SELECT pg_is_in_recovery()").fetchone() != (False,):
            time.sleep(0.05)


@pytest.mark.parametrize("deleted", [True, False], ids=["caches deleted", "caches left"])
def test_what_was_there_at_a_moment_is_there_again_and_it_goes_on(
    server: Server, tmp_path: Path, context: Context, deleted: bool
) -> None:
    """Who forgets to delete the caches is shown nothing that is not in the database either."""
    urls = fresh(server.url)
    node = Node(urls.service, tmp_path / "node", context)
    before = node.remember("The mill stands by the river.")
    base = base_backup(server)
    kept = node.remember("The ferry leaves at six.")
    with connect(urls.superuser) as asked:
        (moment,) = asked.execute("SELECT clock_timestamp()::text").fetchone() or ("",)
        time.sleep(0.05)
        lost = node.remember("The lighthouse is white.")
        change = UpdateRequest(content="The mill was closed.")
        node.engine.update(node.context, WHERE, before, change, if_match=None)
        assert "The lighthouse is white." in node.texts("lighthouse")
        asked.execute("SELECT pg_switch_wal()")
    node.close()
    restore(server, base, moment)
    if deleted:
        shutil.rmtree(tmp_path / "node")
    again = Node(urls.service, tmp_path / "node", context)
    try:
        assert again.listed() == {before: "The mill stands by the river.", kept: "The ferry leaves at six."}
        assert not {"The lighthouse is white.", "The mill was closed."} & set(again.texts("lighthouse mill"))
        assert "The mill stands by the river." in again.texts("mill")
        assert lost not in again.listed()
        fresh_one = again.remember("The lighthouse is red.")
        assert again.texts("lighthouse") == ["The lighthouse is red."] and fresh_one in again.listed()
        rows_are_one_history(again.database, tmp_path)
    finally:
        again.close()
