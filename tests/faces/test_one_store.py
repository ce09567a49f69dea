"""Labels, quarantine and taint lie in the shared store: every runtime that opens it gets them."""

from __future__ import annotations

import json
import subprocess
import sys
from getpass import getuser
from typing import Any

import pytest

from tests.faces.conftest import Person
from tests.faces.terminal import typed
from tests.faces.test_mcp import connected, text_of

LIBRARY = """
import json, sys
from memoranda import Home
with Home.open(sys.argv[1]) as opened, opened.session(agent="cleo") as home:
    found = home.recall("wire limit", history=True)
    note = home.remember("Written by the library.")
    print(json.dumps({"items": {i.id: i.trust for i in found.items}, "note": note.id,
                      "withheld": [w.id for w in found.coverage.withheld]}))
"""


def by_the_library(person: Person, home: str) -> Any:
    done = subprocess.run([sys.executable, "-c", LIBRARY, home], env=person.env, capture_output=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.requirement("A-051")
def test_what_one_runtime_labels_all_others_see(person: Person) -> None:
    home = str(person.home())
    good = person.json("remember", "The wire limit is 500.", "--home", home)
    assert typed(person, "review", "accept", good["id"], "--home", home)[0] == 0
    bad: dict[str, str] = {}

    async def over_mcp(client: Any) -> None:
        """One runtime, in a process of its own: it meets a mail, and remembers what the mail says."""
        await client.call_tool("nas_session_taint", {"reason": "a mail"})
        note = await client.call_tool("nas_remember", {"text": "The wire limit is 9000."})
        bad["id"], bad["session"] = note.structured_content["id"], note.structured_content["session"]

    person.env["USER"] = person.env["LOGNAME"] = getuser()  # what a host hands to the server does not name the person
    connected(person, over_mcp, "--home", home, "--agent", "cleo")

    # The command line, a process later: the labels, the quarantine, and the session's taint.
    states = {item["id"]: item["state"] for item in person.json("review", "list", "--home", home)["waiting"]}
    assert states == {bad["id"]: "quarantined"}
    found = person.json("recall", "wire limit", "--home", home)
    assert [(item["id"], item["trust"]) for item in found["items"]] == [(good["id"], "reviewed")]
    assert [item["id"] for item in found["coverage"]["withheld"]] == [bad["id"]]
    # Asked last: who is told where a taint comes from has met it.
    assert person.json("session", "show", bad["session"], "--home", home)["tainted"]
    # The library, in the name of the same agent: its session is the tainted one, and what it writes is quarantined.
    seen = by_the_library(person, home)
    assert seen["items"][good["id"]] == "reviewed" and seen["items"][bad["id"]] == "quarantined"
    assert person.json("review", "show", seen["note"], "--home", home)["state"] == "quarantined"

    async def another(client: Any) -> None:
        told = await client.call_tool("nas_recall", {"query": "wire limit"})
        assert "9000" not in text_of(told) and bad["id"] in text_of(told)

    connected(person, another, "--home", home, "--agent", "reader")
    assert "9000" not in (person.folder / "notes" / "memory" / "MEMORY.md").read_text()
