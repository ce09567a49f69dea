"""The command line: journals, chains, lists, imports, indexes, golden questions, doctor."""

from __future__ import annotations

import json

import pytest

from .conftest import Person, git
from .terminal import typed

# Journals


def test_journal_append_and_its_options(person: Person) -> None:
    home = person.home()
    done = person.json(
        "journal", "append", "# We renew,\nbut Luis decides.", "--speaker", "Dana Ott", "--agent", "cleo", "--session",
        "s-9", "--origin", "human", "--at", "2026-10-02T09:12:33Z", "--home", str(home),
    )  # fmt: skip
    assert done["path"] == "agents/cleo/journal/2026-10-02.md" and done["session"] == "s-9"
    text = (home / done["path"]).read_text()
    assert text == f"## 2026-10-02T09:12:33Z Dana Ott ^{done['id']}\n\n\\# We renew,\nbut Luis decides.\n\n"
    assert person.json("read", done["uri"], "--home", str(home))["first"] == 1
    assert person.says("journal", "append", "-", "--home", str(home), input="more").startswith("j_")
    item = person.json("recall", "renew Luis", "--home", str(home))["items"][0]
    assert (item["speaker"], item["session"]) == ("Dana Ott", "s-9")
    assert "Dana Ott, 2026-10-02T09:12" in typed(person, "recall", "renew Luis", "--home", str(home))[1]
    assert "by=Dana%20Ott" in person.says("recall", "renew Luis", "--home", str(home))


def test_journal_import_takes_what_is_good_and_names_what_is_not(person: Person) -> None:
    home = ["--home", str(person.home())]
    lines = [
        {"speaker": "dana", "text": "We renew.", "at": "2026-10-02T09:00:00Z", "session": "s-1", "agent": "cleo"},
        {"speaker": "luis", "text": "For 24 months.", "at": "2026-10-02T09:01:00Z", "session": "s-1", "agent": "cleo"},
    ]
    file = person.work / "talk.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + "{broken\n")
    done = person.json("journal", "import", str(file), *home)
    assert done["written"] == 2 and done["sessions"] == ["s-1"]
    assert done["damaged"] == [{"line": 3, "reason": "It is not JSON."}]
    assert person.json("journal", "import", str(file), *home)["written"] == 0
    assert "2 were here already" in person.says("journal", "import", str(file), *home)
    transcript = person.work / "session.jsonl"
    transcript.write_text(
        json.dumps(
            {
                "type": "user", "uuid": "u-1", "sessionId": "x-1", "timestamp": "2026-08-10T12:00:00Z",
                "message": {"role": "user", "content": "Why does the import skip a BOM?"},
            }
        )
        + "\n"
    )  # fmt: skip
    assert person.json("journal", "import", str(transcript), *home)["written"] == 1
    (item,) = person.json("recall", "import BOM", *home)["items"]
    assert item["speaker"] == "user" and item["session"] == "x-1"
    assert person.refused("journal", "import", "missing.jsonl", *home, code=4)["code"] == "memory_not_found"


def test_journal_import_of_nothing_but_damaged_lines_is_no_success(person: Person) -> None:
    home = ["--home", str(person.home())]
    file = person.work / "talk.jsonl"
    file.write_text("{broken\n[1, 2\n")
    said = person.json("journal", "import", str(file), *home, code=2)
    assert [row["line"] for row in said["damaged"]] == [1, 2], "they are named all the same"
    result = person.run("journal", "import", str(file), *home)
    assert result.returncode == 2 and "Wrote 0 entries" in result.stdout and "line 2:" in result.stdout
    file.write_text('{"role": "user", "content": "of another program"}\n{"text": null}\n')
    said = person.json("journal", "import", str(file), *home, code=2)
    assert [row["line"] for row in said["damaged"]] == [1, 2] and not said["skipped"], "no line vanishes unnamed"
    assert "has no text" in said["damaged"][0]["reason"] or "'content'" in said["damaged"][0]["reason"]
    file.write_text("")
    assert person.json("journal", "import", str(file), *home)["written"] == 0, "an empty file is no damage"


# Chains, lists, log


@pytest.mark.requirement("A-046")
def test_update_supersedes_and_the_old_note_stays_as_it_was(person: Person) -> None:
    home = person.home()
    words = ["--home", str(home)]
    old = person.json("remember", "Twelve months.", "--subject", "deal", "--kind", "semantic", *words)
    before = (home / old["path"]).read_bytes()
    new = person.json("update", old["id"], "Twenty-four months.", *words)
    assert (home / old["path"]).read_bytes() == before
    (head,) = person.json("list", *words)["notes"]
    assert (head["id"], head["kind"], head["subject"]) == (new["id"], "semantic", "deal")
    wrong = person.json("update", old["id"], "Thirty months.", "--correct", "--confidence", "0.5", *words)
    chain = person.json("history", old["id"], *words)["chain"]
    assert [link["id"] for link in chain] == [old["id"], new["id"], wrong["id"]]
    assert [link["head"] for link in chain] == [False, False, True]
    assert [link["held"] for link in chain] == [True, False, True]
    _, shown = typed(person, "history", new["id"], *words)
    assert "never held" in shown and "head" in shown
    diff = person.json("diff", new["id"], *words)["diff"]
    assert "-Twelve months." in diff and "+Thirty months." in diff
    assert "+Thirty months." in person.says("diff", old["id"], *words)
    assert "changed nothing" in person.says("diff", person.json("remember", "Alone.", *words)["id"], *words)


def test_list_is_narrowed(person: Person) -> None:
    home = ["--home", str(person.home())]
    assert "no note here" in person.says("list", *home)
    person.json("remember", "A.", "--kind", "preference", "--subject", "x/y", *home)
    person.json("remember", "B.", "--kind", "fact", "--scope", "team", *home)
    assert len(person.json("list", "--kind", "fact,preference", *home)["notes"]) == 2
    assert [n["title"] for n in person.json("list", "--subject", "x", *home)["notes"]] == ["A."]
    assert [n["title"] for n in person.json("list", "--scope", "team", *home)["notes"]] == ["B."]
    assert person.says("list", "--kind", "episodic", *home) == "None.\n"
    assert "preference  x/y  A." in typed(person, "list", *home)[1]
    assert "kind=preference about=x/y" in person.says("list", *home), "for a model"
    assert person.refused("list", "--kind", "gossip", *home, code=2)["code"] == "memory_invalid"


def test_log_says_who_and_why(person: Person) -> None:
    home = ["--home", str(person.home())]
    person.json("remember", "Luis decides.", "--agent", "cleo", "--subject", "acme", *home)
    writes = person.json("log", *home)["writes"]
    assert writes[0]["reason"] == "Remember acme: Luis decides." and writes[0]["author"] == "cleo"
    assert set(writes[0]) == {"commit", "at", "author", "reason", "paths", "home"}
    assert "cleo" in typed(person, "log", "--limit", "1", *home)[1].splitlines()[0]
    assert len(person.json("log", "--limit", "1", *home)["writes"]) == 1
    person.refused("log", "--limit", "0", *home, code=2)


# Import, indexes, golden questions, doctor


def test_import_counts_and_changes_no_byte(person: Person) -> None:
    home = person.home()
    folder = person.work / "Vault"
    (folder / "sub").mkdir(parents=True)
    files = {"plain.md": b"Plain.\r\n", "sub/odd.md": b"---\nkind: gossip\n---\nOdd.\n", "sub/no.txt": b"no"}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    done = person.json("import", str(folder), "--home", str(home))
    assert done["taken"] == 2 and done["folder"] == "memory/notes/vault"
    assert [row["path"] for row in done["odd"]] == ["sub/odd.md"] and done["odd"][0]["reason"]
    assert (home / "memory/notes/vault/plain.md").read_bytes() == b"Plain.\r\n"
    said = person.says("import", str(folder), "--home", str(home))
    assert "Took 0 files" in said and "2 were here already" in said
    assert person.refused("import", "missing", "--home", str(home), code=4)


@pytest.mark.requirement("A-042", "A-043", "A-044")
def test_indexes_are_shown_dropped_and_made_again(person: Person) -> None:
    home = person.home()
    words = ["--home", str(home)]
    person.json("remember", "Luis decides at Acme.", *words)
    before = person.json("recall", "who decides", *words)
    (status,) = person.json("index", "status", *words)["homes"]
    for index in status["indexes"]:
        assert index["recipe"]["name"] and index["recipe"]["version"] is not None
        assert index["inputs"]["commit"] and index["state"] == "fresh"
    assert "fresh" in person.says("index", "status", *words)
    one = status["indexes"][0]["name"]
    assert person.json("index", "drop", one, *words)["homes"][0]["dropped"] == [one]
    assert len(person.json("index", "drop", *words)["homes"][0]["dropped"]) >= 1
    assert person.json("recall", "who decides", *words) == before
    (rebuilt,) = person.json("index", "rebuild", *words)["homes"]
    assert {index["state"] for index in rebuilt["indexes"]} == {"fresh"}
    assert person.json("recall", "who decides", *words) == before
    assert person.refused("index", "drop", "nothing", *words, code=4)


@pytest.mark.requirement("A-049")
def test_golden_questions_pass_and_fail(person: Person) -> None:
    home = person.home()
    words = ["--home", str(home)]
    assert person.refused("golden", "run", *words, code=4)["code"] == "memory_not_found"
    note = person.json("remember", "Luis decides at Acme.", *words)
    other = person.json("remember", "The moon is far.", *words)
    person.refused("golden", "add", "Who decides?", *words, code=2)
    assert person.refused("golden", "add", "Who?", "--expect", "mem_unknown", *words, code=4)["code"] == (
        "memory_unknown_note"
    )
    added = person.json("golden", "add", "Who decides at Acme?", "--expect", note["id"], other["id"], *words)
    assert added["expect"] == [note["id"], other["id"]]
    report = person.json("golden", "run", *words)
    assert report["passed"] and report["hit@8"] == 1 and report["mrr"] == 1 and report["misses"] == []
    assert "Passed" in person.says("golden", "run", "--k", "3", *words)
    person.says("golden", "add", "How far is the sun?", "--expect", note["id"], "--as-of", "2026-01-01", *words)
    failed = person.json("golden", "run", code=1, **{"env": {"MEMORANDA_HOME": str(home)}})
    assert not failed["passed"] and failed["misses"][0]["question"] == "How far is the sun?"
    told = person.run("golden", "run", *words)
    assert told.returncode == 1 and "missed: How far is the sun?" in told.stdout and "Failed" in told.stdout
    assert git(home, "status", "--porcelain") == ""


def test_doctor_is_content_or_explains(person: Person) -> None:
    home = person.home()
    words = ["--home", str(home)]
    note = person.json("remember", "Fine.", *words)
    assert person.json("doctor", *words)["ok"] is True
    assert "1 note, 1 journal entry" in person.says("doctor", *words)
    (home / "memory/notes/lost.md").write_text(
        f"---\nid: mem_lost\nsupersedes: [mem_nowhere]\nsources: [nas://notes/gone.md@{'0' * 40}]\n---\nLost.\n"
    )
    (home / ".memoranda/lexical-000000000000").mkdir(parents=True)
    report = person.json("doctor", *words, code=1)
    assert not report["ok"]
    codes = {finding["code"] for finding in report["findings"]}
    assert {"supersedes_unknown", "source_dangling", "index_foreign"} <= codes
    assert all(finding["what"] and finding["remedy"] for finding in report["findings"])
    fixed = person.run("doctor", "--fix", *words)
    assert fixed.returncode == 1 and "fixed: lexical-000000000000" in fixed.stdout
    assert not (home / ".memoranda/lexical-000000000000").exists()
    assert (home / note["path"]).is_file()
