"""`forget`, `expire`, `hold` and `key` as a person types them, and what an agent is refused."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from home.erasing import places

from .conftest import Person, git
from .terminal import typed

TEXT = "Kowalskoff lives in Zebrafisch Lane."


def test_a_person_forgets_and_reads_two_columns(person: Person) -> None:
    home = person.home()
    at = ("--home", str(home))
    said = person.json("journal", "append", "Kowalskoff told me where he lives now.", *at)
    note = person.json("remember", TEXT, "--source", said["uri"], *at)
    cites = person.json("remember", "So he moved.", "--source", note["uri"], *at)
    quotes = person.json("remember", f"Dana wrote: {TEXT}", *at)
    dry = typed(person, "forget", note["id"], "--dry-run", "--json", *at)
    told = json.loads(dry[1])
    assert dry[0] == 0 and told["dry_run"] and {x["id"] for x in told["removed"]} >= {note["id"], cites["id"]}
    code, out = typed(person, "forget", note["id"], "--reason", "asked for", *at)
    assert code == 0
    head = next(line for line in out.splitlines() if line.startswith("REMOVED"))
    where = head.index("COULD NOT BE REMOVED, AND WHY")
    left, right = ("\n".join(part) for part in zip(*((x[:where], x[where:]) for x in out.splitlines()), strict=True))
    assert note["id"] in left and f"derived from {note['id']}" in left and said["id"] in left
    assert "history of this Home" in right and "backups" in right and quotes["id"] in right.replace("\n", " ")
    assert [item["id"] for item in person.json("recall", "Kowalskoff Zebrafisch", *at)["items"]] == [quotes["id"]]
    assert "asked for" in git(home, "log", "--format=%s")
    refused = person.refused("remember", TEXT, *at, code=3)
    assert refused["code"] == "memory_forgotten" and "Kowalskoff" not in json.dumps(refused)

    code, out = typed(person, "forget", note["id"], quotes["id"], "--erase", *at)
    assert code == 0 and "with its history" in out
    assert places(home, ["kowalskoff", "zebrafisch"]) == []
    assert git(home, "status", "--porcelain") == ""
    gone = person.refused("read", note["uri"], *at, code=4)
    assert gone["code"] == "memory_erased" and gone["status"] == 410 and "Erased on" in gone["detail"]
    assert person.json("doctor", *at)["ok"]
    code, out = typed(person, "remember", TEXT, *at)
    assert code == 0, out
    assert person.json("remember", TEXT, *at)["id"]


def test_an_agent_at_no_terminal_is_refused(person: Person) -> None:
    at = ("--home", str(person.home()))
    note = person.json("remember", TEXT, "--agent", "cleo", *at)
    for words in (
        ("forget", note["id"], "--erase"), ("forget", note["id"]), ("forget", "--session", note["session"]),
        ("hold", "set", note["id"], "--reason", "x"), ("key", "export", str(person.folder / "keys.json")),
    ):  # fmt: skip
        assert person.refused(*words, *at, code=3)["code"] == "memory_confirmation_required"
    done = person.json("forget", note["id"], *at, env={"MEMORANDA_AGENT": "cleo"})
    assert [item["id"] for item in done["removed"] if item["kind"] == "note"] == [note["id"]]
    assert person.refused("forget", *at, code=2)["code"] == "memory_invalid"
    assert person.refused("forget", "mem_nothing1", *at, code=4)["code"] == "memory_not_found"


def test_a_hold_and_its_release(person: Person) -> None:
    home = person.home()
    at = ("--home", str(home))
    note = person.json("remember", TEXT, "--legal-hold", "--retention-days", "0", *at)
    assert [item["id"] for item in person.json("hold", "list", *at)["held"]] == [note["id"]]
    code, out = typed(person, "--json", "forget", note["id"], "--erase", *at)
    assert code == 3 and json.loads(out)["code"] == "memory_legal_hold"
    assert person.refused("rollback", note["id"], *at, code=3)["code"] == "memory_legal_hold"
    due = person.json("remember", "The crane is red.", "--retention-days", "0", *at)
    done = person.json("expire", *at, code=3)
    assert done["code"] == "memory_legal_hold" and note["id"] in done["detail"]
    assert [item["id"] for item in done["removed"] if item["kind"] == "note"] == [due["id"]]
    assert any("legal hold" in item["why"] for item in done["remains"]) and (home / note["path"]).exists()
    told = person.run("expire", *at)
    assert told.returncode == 3 and f"memoranda: {note['id']}: under legal hold." in told.stderr
    assert f"under legal hold ({note['id']})" in " ".join(told.stdout.split())
    code, out = typed(person, "hold", "release", note["id"], "--reason", "case closed", *at)
    assert code == 0 and f"{note['id']}  free" in out
    assert [item["id"] for item in person.json("expire", *at)["removed"]][:1] == [note["id"]]
    assert not (home / note["path"]).exists()


def test_keys_travel_to_another_installation(person: Person) -> None:
    home = person.home()
    at = ("--home", str(home))
    note = person.json("remember", TEXT, *at)
    assert typed(person, "forget", note["id"], *at)[0] == 0
    keys = person.folder / "keys.json"
    assert typed(person, "key", "export", str(keys), *at)[0] == 0
    shutil.rmtree(person.folder / "data" / "memoranda" / "keys" / "tombstone")
    findings = person.json("doctor", *at, code=1)["findings"]
    assert any(f["code"] == "forgotten_unchecked" and "key import" in f["remedy"] for f in findings)
    assert person.json("key", "import", str(keys), *at)["fresh"] == 1
    assert person.json("doctor", *at)["ok"]
    assert person.refused("remember", TEXT, *at, code=3)["code"] == "memory_forgotten"
    assert person.refused("key", "import", str(home / "memory/home.yaml"), *at, code=2)["code"] == "memory_invalid"


def test_another_open_home_that_cites_it_is_named(person: Person) -> None:
    own = person.json("remember", "Before there is any other Home.")
    assert own["home"] == "personal"
    home = person.home()
    note = person.json("remember", TEXT, cwd=home)
    copy = person.json("remember", "He lives in a lane.", "--source", note["uri"], cwd=person.work)
    person.work = home
    code, out = typed(person, "forget", note["id"], "--json")
    assert code == 0
    assert any(copy["id"] in item["why"] for item in json.loads(out)["remains"])


@pytest.mark.parametrize("word", ["forget", "expire", "hold list", "hold set", "hold release", "key export"])
def test_help_says_what_needs_a_person(person: Person, word: str) -> None:
    said = person.says(*word.split(), "--help")
    assert re.search(r"example:\n  memoranda ", said)
