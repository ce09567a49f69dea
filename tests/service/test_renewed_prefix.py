"""A new key for the prefix of identifiers, by the command: nothing in an engine is lost by it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.contract import GraphSearchRequest, IngestRequest, PurgeRequest, RecallRequest, UpdateRequest
from memoranda.engines.egress import Egress, EgressSettings
from memoranda.governance.credentials import Credentials
from memoranda.service import knowledge, memories
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.service.opening import open_desk
from tests.cognee_standin import Server
from tests.engines.mem0_standin import KEY, Mem0Server
from tests.service.test_hybrid import LYON, SIX, USER, ana, cognee, desk, ingest, mem0, remember  # noqa: F401 fixtures

ROME = "Ines moves the Archive to Rome in March."


@pytest.fixture
def database() -> str:
    """In folders on every run: the command is told a folder and no configuration."""
    return ""


def renewed(folder: Path) -> int:
    """What the command says: how many older keys are kept."""
    words = [sys.executable, "-m", "memoranda", "engine", "renew", "--data", str(folder), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["older"])


def prefixes(mem0: Mem0Server, cognee: Server) -> set[str]:  # noqa: F811
    named = [str(one["name"]) for one in cognee.cognee.told["datasets"].values()]
    return {name.partition(":")[0] for name in (*named, *(row["user_id"] for row in mem0.rows.values()))}


@pytest.mark.requirement("S-056")
def test_what_was_written_before_is_found_changed_and_removed(
    desk: Desk, ana: Caller, mem0: Mem0Server, cognee: Server, context: Context, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    old = remember(desk, ana)
    dataset = ingest(desk, ana, LYON)
    before = prefixes(mem0, cognee)
    assert len(before) == 2  # of each instance
    folder = tmp_path / "service"
    assert renewed(folder) == 1 and renewed(folder) == 2

    egress = Egress(EgressSettings("development"))
    keys = Credentials(environ={"EAI_CRED_MEMORY_COGNEE_API_KEY": USER, "EAI_CRED_MEMORY_MEM0_API_KEY": KEY})
    again = open_desk(context, folder, egress=egress, credentials=keys)  # the service, started again
    try:
        asked = RecallRequest(query="office closes Hugo Lyon")
        assert {item.content for item in memories.search(again, ana, "cleo", asked).items} == {SIX, LYON}
        more = remember(again, ana, "The office opens at nine.")
        other = ingest(again, ana, ROME)
        fresh = prefixes(mem0, cognee) - before
        assert len(fresh) == 2  # what is written from now on bears another prefix
        knowledge.ingest(again, ana, "cleo", IngestRequest(texts=("And on Sundays.",), dataset_id=dataset))
        found = knowledge.search_graph(again, ana, "cleo", GraphSearchRequest(query="Hugo Rome"))
        assert {passage.dataset_id for passage in found.passages} == {dataset, other}
        memories.update(again, ana, "cleo", old, UpdateRequest(content="The office closes at noon."))
        listed = memories.list_items(again, ana, "cleo", include_content=True).items
        assert {item.content for item in listed} == {"The office closes at noon.", "The office opens at nine."}
        assert memories.forget(again, ana, "cleo", more).removed == 1
        assert memories.purge(again, ana, "cleo", PurgeRequest(scope="user", confirm=True)).removed == 2
        assert knowledge.delete(again, ana, "cleo", dataset).removed == 2
        assert mem0.rows == {} and prefixes(mem0, cognee) <= fresh
    finally:
        again.close()
        egress.close()
