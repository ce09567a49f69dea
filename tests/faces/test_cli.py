"""The command line, each command in a real process on a real Home."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faces.conftest import Person, git

ITEM = {
    "id", "uri", "kind", "subject", "scope", "view", "text", "score", "why", "sources", "reviewed", "taint",
    "valid_from", "valid_to", "recorded_at", "supersedes", "superseded_by",
}  # fmt: skip


# A Home


def test_init_makes_a_home_of_nothing(person: Person) -> None:
    made = person.json("init", "box", "--name", "Box")
    assert made["home"] == "box" and made["path"] == str(person.work / "box")
    assert not made["nested"] and not made["existed"] and made["notes"] == 0
    assert (person.work / "box/memory/home.yaml").is_file()
    again = person.json("init", "box")
    assert again["existed"] and again["id"] == made["id"]
    assert git(person.work / "box", "status", "--porcelain") == ""


def test_init_keeps_a_vault_as_it_is(person: Person) -> None:
    vault = person.work / "vault"
    (vault / "deep").mkdir(parents=True)
    files = {"a.md": b"# A\r\n[[b]] #tag", "deep/b.md": b"\xef\xbb\xbf---\nno: yes\n---\n", "deep/c.md": b""}
    for name, data in files.items():
        (vault / name).write_bytes(data)
    said = person.says("init", "vault")
    assert "3 file(s)" in said
    assert {name: (vault / name).read_bytes() for name in files} == files


def test_init_nests_in_a_repository_of_code(person: Person) -> None:
    git(person.work, "init", "-q")
    (person.work / "main.py").write_text("print()\n")
    git(person.work, "add", "main.py")
    assert person.json("init", ".")["nested"]
    assert git(person.work, "status", "--porcelain") == "A  main.py\n"
    assert person.json("remember", "Tests run with make.")["home"] == person.work.name
    assert (person.work / ".memory/memory/notes").is_dir()


def test_without_a_home_the_persons_own_is_made_at_the_first_write(person: Person) -> None:
    nothing = person.json("recall", "tea")
    assert nothing["items"] == [] and nothing["coverage"]["notes"] == 0
    assert person.refused("log", code=4)["code"] == "memory_home_not_found"
    note = person.json("remember", "Dana drinks tea without milk.")
    assert note["home"] == "personal"
    assert (person.folder / "data/memoranda/home" / note["path"]).is_file()
    assert [item["id"] for item in person.json("recall", "tea")["items"]] == [note["id"]]


def test_a_named_home_is_the_only_one(person: Person) -> None:
    person.json("remember", "Dana drinks tea without milk.")
    home = person.home()
    for words, env in ((["--home", str(home)], {}), ([], {"MEMORANDA_HOME": str(home)})):
        assert person.json("recall", "tea", *words, env=env)["items"] == []
        assert [row["name"] for row in person.json("recall", "tea", *words, env=env)["coverage"]["homes"]] == ["notes"]
    assert person.json("--home", str(home), "list") == {"notes": []}
    problem = person.refused("recall", "tea", "--home", "nowhere", code=4)
    assert problem["code"] == "memory_home_not_found" and "memoranda init nowhere" in problem["remedy"]


def test_two_homes_are_recalled_together_and_the_nearest_is_written(person: Person) -> None:
    own = person.json("remember", "Dana likes the harbour at Ostermoor.")
    project = person.home("project")
    deep = project / "some/folder"
    deep.mkdir(parents=True)
    near = person.json("remember", "The harbour plan has seven berths.", cwd=deep)
    assert (own["home"], near["home"]) == ("personal", "project")
    view = person.json("recall", "harbour", cwd=deep)
    assert {item["id"]: item["home"] for item in view["items"]} == {own["id"]: "personal", near["id"]: "project"}
    assert [row["name"] for row in view["coverage"]["homes"]] == ["project", "personal"]
    assert view["coverage"]["notes"] == 2
    assert "in project" in person.says("recall", "harbour", cwd=deep)
    assert person.json("read", own["id"], cwd=deep)["home"] == "personal"


# Remember, recall, read


@pytest.mark.requirement("A-002", "A-004", "A-006", "A-020")
def test_remember_writes_a_note_with_everything_that_was_said(person: Person) -> None:
    home = person.home()
    old = person.json("remember", "Acme pays 12 euros.", "--subject", "customer/acme", "--home", str(home))
    note = person.json(
        "remember", "Acme", "pays 14 euros.", "--subject", "customer/acme", "--kind", "semantic", "--scope", "project",
        "--source", "https://acme.example/bill", "file:///bill.pdf", "--valid-from", "2026-10-02", "--valid-to",
        "2027-10-02", "--confidence", "0.8", "--supersedes", old["id"], "--session", "s-1", "--agent", "cleo",
        "--origin", "human", "--home", str(home),
    )  # fmt: skip
    assert set(note) == {"id", "uri", "path", "home", "sources", "supersedes", "session"}
    assert note["sources"] == ["https://acme.example/bill", "file:///bill.pdf"]
    text = (home / note["path"]).read_text()
    head, _, body = text.removeprefix("---\n").partition("---\n")
    assert body.strip() == "Acme pays 14 euros."
    fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    assert fields["id"] == note["id"] and fields["kind"] == "semantic" and fields["scope"] == "project"
    assert fields["subject"] == "customer/acme" and fields["origin"] == "human" and fields["confidence"] == "0.8"
    assert fields["valid_from"] == "2026-10-02" and fields["valid_to"] == "2027-10-02"
    assert old["id"] in head and "https://acme.example/bill" in head
    assert git(home, "status", "--porcelain") == ""
    assert note["id"] in git(home, "log", "-1", "--format=%B", "--", note["path"])
    assert git(home, "log", "-1", "--format=%an", "--", note["path"]) == "cleo\n"


@pytest.mark.requirement("A-002")
def test_without_a_source_the_call_itself_is_cited(person: Person) -> None:
    home = person.home()
    note = person.json("remember", "Luis decides.", "--agent", "cleo", "--home", str(home))
    (source,) = note["sources"]
    assert source.startswith("nas://notes/agents/cleo/journal/")
    assert "Luis decides." in person.json("read", source, "--home", str(home))["text"]


def test_remember_reads_standard_input(person: Person) -> None:
    home = person.home()
    note = person.json("remember", "-", "--home", str(home), input="# Brötchen\n\nmorgens um sechs\n")
    assert (home / note["path"]).read_text().endswith("# Brötchen\n\nmorgens um sechs\n")
    problem = person.refused("remember", "-", "--home", str(home), code=2, input=b"\xff\xfe\x00caf\xe9")
    assert problem["code"] == "memory_invalid_note"


def test_text_may_begin_with_a_dash_and_options_may_come_first(person: Person) -> None:
    home = str(person.home())
    first = person.json("remember", "--source", "x://y", "x://z", "Both sources.", "--home", home)
    assert first["sources"] == ["x://y", "x://z"]
    assert person.json("remember", "--home", home, "--", "--force is dangerous")["id"]
    assert person.json("remember", "- a list item", "--home", home)["id"]
    texts = {note["title"] for note in person.json("list", "--home", home)["notes"]}
    assert len(texts) == 3


@pytest.mark.requirement("A-025", "A-026")
def test_recall_answers_in_the_form_of_the_contract(person: Person) -> None:
    home = person.home()
    note = person.json("remember", "Acme renewed for 24 months.", "--subject", "customer/acme", "--home", str(home))
    said = person.json("journal", "append", "Acme asked for a discount.", "--speaker", "luis", "--home", str(home))
    view = person.json("recall", "what did Acme ask for?", "--home", str(home))
    assert list(view) == ["query", "items", "coverage", "budget"]
    assert view["query"] == "what did Acme ask for?"
    for item in view["items"]:
        assert set(item) >= ITEM
        assert item["view"] in ("full", "excerpt", "outline", "pointer")
        assert item["score"] == round(item["score"], 6) and item["why"]
        assert isinstance(item["sources"], list) and item["sources"]
        assert all(isinstance(item[name], list) for name in ("taint", "supersedes", "superseded_by"))
        assert item["recorded_at"].endswith("Z")
        assert item["uri"].startswith("nas://notes/")
    by_id = {item["id"]: item for item in view["items"]}
    assert set(by_id) == {note["id"], said["id"]}
    assert by_id[said["id"]]["kind"] == "journal" and by_id[said["id"]]["text"] == "Acme asked for a discount."
    assert by_id[note["id"]]["reviewed"] is False and by_id[note["id"]]["valid_to"] is None
    assert set(view["coverage"]) >= {"notes", "journal", "commit", "indexes"}
    assert view["coverage"]["notes"] == 1 and isinstance(view["coverage"]["indexes"], list)
    assert set(view["budget"]) == {"limit", "used"}
    assert 0 < view["budget"]["used"] <= view["budget"]["limit"] == 2000


@pytest.mark.requirement("A-025")
def test_recall_fits_its_budget_and_its_filters(person: Person) -> None:
    home = ["--home", str(person.home())]
    for number in range(6):
        kind = "preference" if number % 2 else "fact"
        text = f"# Ferry {number}\n\n" + f"The ferry number {number} leaves at dawn. " * 20
        person.json("remember", text, "--kind", kind, "--subject", f"ferry/n{number}", *home)
    for budget in (60, 200, 900):
        view = person.json("recall", "when does the ferry leave", "--budget", str(budget), *home)
        assert view["items"] and view["budget"]["used"] <= budget
    assert len(person.json("recall", "ferry", "--k", "2", *home)["items"]) == 2
    kinds = {item["kind"] for item in person.json("recall", "ferry", "--kind", "preference", *home)["items"]}
    assert kinds == {"preference"}
    (one,) = person.json("recall", "ferry", "--subject", "ferry/n3", *home)["items"]
    assert one["subject"] == "ferry/n3"
    assert person.json("recall", "ferry", "--scope", "team", *home)["items"] == []
    assert {i["kind"] for i in person.json("recall", "ferry", "--in", "notes,journal", *home)["items"]} <= kinds | {
        "fact", "journal",
    }  # fmt: skip


def test_recall_speaks_to_people(person: Person) -> None:
    home = ["--home", str(person.home())]
    person.json("remember", "The mole is closed.", "--valid-from", "2020-01-01", "--valid-to", "2021-01-01", *home)
    person.json("remember", "The mole is haunted, says a web page.", "--origin", "external", *home)
    said = person.says("recall", "mole", *home)
    assert "ended 2021-01-01" in said and "external" in said and "unreviewed" in said
    assert "   source: nas://notes/agents/cli/journal/" in said
    assert "Looked through 2 notes" in said and "tokens" in said
    assert "\x1b" not in said
    nothing = person.says("recall", "zeppelin", *home)
    assert nothing.startswith("Nothing found.") and "Looked through 2 notes" in nothing


def test_recalled_words_cannot_steer_a_terminal(person: Person) -> None:
    home = ["--home", str(person.home())]
    note = person.json("remember", "A dangerous \x1b]0;title\x07 note.", *home)
    assert "\x1b" not in person.says("recall", "dangerous", *home)
    assert "\\x1b]0;title\\x07" in person.says("recall", "dangerous", *home)
    assert "\x1b]0;title\x07" in person.json("recall", "dangerous", *home)["items"][0]["text"]
    assert "\x1b" in person.says("read", note["id"], *home)  # into a pipe, the bytes are what they are


@pytest.mark.parametrize("query", ["the of and", '" OR NEAR(', "AND OR NOT", "*", "''", "\u200b", "-"])
def test_a_query_of_nothing_is_answered_with_nothing(person: Person, query: str) -> None:
    person.json("remember", "Something.")
    assert person.json("recall", "--", query)["items"] == []


def test_time_has_two_axes(person: Person) -> None:
    home = ["--home", str(person.home())]
    old = person.json("remember", "The contact at Acme is Dana.", "--valid-from", "2026-01-01", *home)
    new = person.json("update", old["id"], "The contact at Acme is Luis.", "--valid-from", "2026-05-01", *home)
    assert new["supersedes"] == [old["id"]]

    def found(*words: str) -> list[str]:
        return [
            item["id"] for item in person.json("recall", "contact at Acme", "--in", "notes", *words, *home)["items"]
        ]

    assert found() == [new["id"]]
    assert found("--as-of", "2026-04-30") == [old["id"]]
    assert found("--as-of", "2026-05-01") == [new["id"]]
    assert found("--at", "2020-01-01") == []
    assert found("--known-at", "2020-01-01") == []
    assert set(found("--history")) == {old["id"], new["id"]}
    assert "superseded by" in person.says("recall", "contact", "--history", "--in", "notes", *home)


@pytest.mark.requirement("A-040", "A-057", "A-058")
def test_read_gives_what_was_asked_or_a_shorter_form(person: Person) -> None:
    home = person.home()
    words = ["--home", str(home)]
    text = "# Ferry\n\nWhat to know.\n\n## Times\n\nAt dawn.\n\n## Berths\n\n" + "Seven of them. " * 100
    note = person.json("remember", text, *words)
    whole = person.json("read", note["id"], *words)
    assert whole["view"] == "full" and "Seven of them." in whole["text"] and not whole["truncated"]
    outline = person.json("read", note["uri"], "--view", "outline", *words)
    assert [line.split(" (")[0].strip() for line in outline["text"].splitlines()] == ["Ferry", "Times", "Berths"]
    section = person.json("read", note["id"], "--section", "Times", *words)
    assert section["text"].strip() == "## Times\n\nAt dawn." and section["view"] == "section"
    first, last = section["first"], section["last"]
    lines = person.json("read", note["id"], "--lines", f"{first}-{last}", *words)
    assert lines["text"] == section["text"] and lines["uri"].endswith(f"#L{first}-L{last}")
    (home / note["path"]).write_text("Everything else is gone.\n")
    assert person.json("read", lines["uri"], *words)["text"] == lines["text"], "at its revision"
    short = person.json("read", note["uri"], "--budget", "60", *words)
    assert short["truncated"] and short["view"] == "outline" and short["tokens"] <= 60
    assert person.json("read", note["uri"], "--budget", "1", *words)["view"] == "pointer"
    assert person.says("read", lines["uri"], *words).strip() == section["text"].strip()
    told = person.run("read", note["uri"], "--budget", "60", *words)
    assert "does not fit 60 tokens" in told.stderr and "Berths" in told.stdout


def test_an_edit_in_an_editor_is_recalled_and_committed(person: Person) -> None:
    home = person.home()
    note = person.json("remember", "The ferry leaves at six.", "--home", str(home))
    path = home / note["path"]
    path.write_text(path.read_text().replace("six", "seven"))
    (home / "memory/notes/new.md").write_text("The zeppelin leaves at noon.\n")
    items = person.json("recall", "ferry leaves seven", "--in", "notes", "--home", str(home))["items"]
    assert [(i["id"], i["text"]) for i in items[:1]] == [(note["id"], "The ferry leaves at seven.")]
    assert person.json("recall", "zeppelin", "--home", str(home))["items"][0]["text"] == "The zeppelin leaves at noon."
    assert git(home, "status", "--porcelain") == ""


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
    assert "Dana Ott, 2026-10-02T09:12" in person.says("recall", "renew Luis", "--home", str(home))


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
    shown = person.says("history", new["id"], *words)
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
    assert "preference  x/y  A." in person.says("list", *home)
    assert person.refused("list", "--kind", "gossip", *home, code=2)["code"] == "memory_invalid"


def test_log_says_who_and_why(person: Person) -> None:
    home = ["--home", str(person.home())]
    person.json("remember", "Luis decides.", "--agent", "cleo", "--subject", "acme", *home)
    writes = person.json("log", *home)["writes"]
    assert writes[0]["reason"] == "Remember acme: Luis decides." and writes[0]["author"] == "cleo"
    assert set(writes[0]) == {"commit", "at", "author", "reason", "paths", "home"}
    assert "cleo" in person.says("log", "--limit", "1", *home).splitlines()[0]
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
    assert "0 file(s)" in said and "2 were here already" in said
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
    assert "1 notes" in person.says("doctor", *words)
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


# Bad input, exit codes, streams


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (["remember", ""], 2, "memory_invalid_note"),
        (["remember", "x", "--kind", "gossip"], 2, "memory_invalid_note"),
        (["remember", "x", "--scope", "galaxy"], 2, "memory_invalid_note"),
        (["remember", "x", "--origin", "hearsay"], 2, "memory_invalid_note"),
        (["remember", "x", "--valid-from", "2026-02-30"], 2, "memory_invalid_time"),
        (["remember", "x", "--valid-from", "soon"], 2, "memory_invalid_time"),
        (["remember", "x", "--valid-from", "2026-02-03", "--valid-to", "2026-02-02"], 2, "memory_invalid_time"),
        (["remember", "x", "--confidence", "2"], 2, "memory_invalid_note"),
        (["remember", "x", "--confidence", "sure"], 2, "memory_invalid"),
        (["remember", "x", "--supersedes", "mem_unknown"], 4, "memory_unknown_note"),
        (["remember", "x", "--source", "nas://box/../etc/passwd"], 2, "memory_invalid_pointer"),
        (["remember", "x", "--source", "hearsay"], 2, "memory_invalid_note"),
        (["remember", "x", "--agent", "../../etc"], 2, "memory_invalid"),
        (["remember", "x", "--session", "a b"], 2, "memory_invalid"),
        (["remember"], 2, "memory_invalid"),
        (["update", "mem_unknown", "x"], 4, "memory_unknown_note"),
        (["history", "mem_unknown"], 4, "memory_unknown_note"),
        (["read", "mem_unknown"], 4, "memory_not_found"),
        (["read", "../../etc/passwd"], 2, "memory_invalid_pointer"),
        (["read", "nas://"], 2, "memory_invalid_pointer"),
        (["read", "mem_x", "--view", "poster"], 2, "memory_invalid"),
        (["read", "mem_x", "--lines", "many"], 2, "memory_invalid"),
        (["recall", "x", "--k", "0"], 2, "memory_invalid"),
        (["recall", "x", "--budget", "-5"], 2, "memory_invalid"),
        (["recall", "x", "--budget", "much"], 2, "memory_invalid"),
        (["recall", "x", "--in", "attic"], 2, "memory_invalid"),
        (["recall", "x", "--as-of", "yesterday"], 2, "memory_invalid_time"),
        (["journal", "append", " "], 2, "memory_invalid_note"),
        (["journal"], 2, "memory_invalid"),
        (["jornal"], 2, "memory_invalid"),
        (["golden", "run", "--k", "0"], 2, "memory_invalid"),
        (["recall", "x", "--bogus"], 2, "memory_invalid"),
        ([], 2, "memory_invalid"),
    ],
)
def test_bad_input_gets_a_named_error_and_writes_nothing(
    person: Person, words: list[str], code: int, name: str
) -> None:
    home = person.home()
    before = git(home, "rev-parse", "HEAD")
    problem = person.json(*words, code=code, env={"MEMORANDA_HOME": str(home)})
    assert problem["code"] == name and problem["detail"] and problem["remedy"]
    told = person.run(*words, env={"MEMORANDA_HOME": str(home)})
    assert told.returncode == code and told.stdout == "" and f"memoranda: {problem['detail']}" in told.stderr
    assert git(home, "rev-parse", "HEAD") == before and git(home, "status", "--porcelain") == ""


def test_a_text_that_is_too_large_or_not_text_is_refused(person: Person) -> None:
    home = ["--home", str(person.home())]
    assert person.refused("remember", "-", *home, code=2, input="x" * 5_000_000)["code"] == "memory_invalid_note"
    assert person.refused("remember", "-", *home, code=2, input="a\x00b")["code"] == "memory_invalid_note"
    done = person.run("remember", os.fsdecode(b"caf\xe9"), "--json", *home)
    assert done.returncode == 2 and json.loads(done.stdout)["code"] == "memory_invalid"


def test_a_conflict_exits_with_five(person: Person) -> None:
    home = ["--home", str(person.home())]
    old = person.json("remember", "One.", *home)
    person.json("update", old["id"], "Two.", *home)
    problem = person.refused("remember", "Three.", "--supersedes", old["id"], *home, code=5)
    assert problem["code"] == "memory_chain_conflict" and problem["status"] == 409


def test_a_home_of_another_format_opens_read_only(person: Person) -> None:
    home = person.home()
    person.json("remember", "Still readable.", "--home", str(home))
    marker = home / "memory/home.yaml"
    marker.write_text(marker.read_text().replace("format: 1", "format: 99"))
    assert person.json("recall", "readable", "--home", str(home))["items"]
    assert person.refused("remember", "x", "--home", str(home), code=6)["code"] == "memory_home_format_unknown"


def test_a_damaged_home_is_unavailable(person: Person) -> None:
    home = person.home()
    (home / "memory/home.yaml").write_text("][")
    assert person.refused("recall", "x", "--home", str(home), code=6)["code"] == "memory_home_damaged"


def test_help_and_version(person: Person) -> None:
    from memoranda import __version__

    assert person.says("--version") == f"memoranda {__version__}\n"
    overview = person.says("--help")
    assert "journal append" in overview and "remember" in overview
    assert "journal append" in person.says("journal", "--help") and "recall" not in person.says("journal", "--help")
    assert "example:\n  memoranda recall " in person.says("recall", "--help")
    assert "Did you mean `memoranda recall`" in person.run("recal", "x").stderr


def test_nobody_listens_any_more(person: Person) -> None:
    home = person.home()
    note = person.json("remember", "-", "--home", str(home), input="a long line\n" * 50_000)
    command = [sys.executable, "-m", "memoranda", "read", note["id"], "--home", str(home)]
    with subprocess.Popen(
        command, env=person.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=person.work
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(30) == 141
        assert process.stderr.read() == b""


def test_an_interrupt_ends_without_a_traceback(person: Person) -> None:
    home = person.home()
    command = [sys.executable, "-m", "memoranda", "remember", "-", "--home", str(home)]
    with subprocess.Popen(
        command, env=person.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=person.work
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(b"half a thought")
        process.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read() == b""


def test_json_is_utf8_wherever_we_are(person: Person) -> None:
    home = ["--home", str(person.home())]
    env = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    person.json("remember", "Où sont les îles ?", *home)
    assert person.json("recall", "îles", *home, env=env)["items"][0]["text"] == "Où sont les îles ?"
    assert "\\xeeles" in person.says("recall", "îles", *home, env=env)


def test_a_home_keeps_its_keys_outside(person: Person) -> None:
    home = person.home()
    person.json("remember", "x y z", "--home", str(home))
    found = [path for path in (person.folder / "data/memoranda/keys").rglob("*.key")]
    assert found and not list(Path(home).rglob("*.key"))
